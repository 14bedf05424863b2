/* Which releases are shown and how, and what is to be said about them. */

import { byId, element } from "../shared/elements.js";
import { words } from "../words.js";
import {
  canDraw,
  canSubtract,
  chosen,
  edgesOf,
  isComparable,
  isDifference,
  isPlace,
  releaseOf,
  showsZones,
  state,
} from "./state.js";
import { fillZoneChoices } from "./zone-choices.js";

const namesOf = (releases) => releases.map(({ name }) => name);

/* `onRelease` gets the release that was shown before; `onOutlines` runs when only they change. */
export function listenToChoices({ onRelease, onChange, onOutlines }) {
  byId("first").addEventListener("change", () => {
    const before = releaseOf(state.first);
    state.first = byId("first").value;
    onRelease(before);
  });
  byId("second").addEventListener("change", () => {
    state.second = byId("second").value || null;
    state.follows = false;
    onChange();
  });
  for (const button of byId("modes").children) {
    button.addEventListener("click", () => {
      state.mode = button.dataset.mode;
      onChange();
    });
  }
  byId("outlines").addEventListener("change", () => {
    state.outlines = byId("outlines").checked;
    onOutlines();
  });
}

export function fillChoices() {
  const others = state.releases.filter((one) => isComparable(releaseOf(state.first), one));
  const nothing = element("option", { value: "", textContent: words.nothing });
  byId("first").replaceChildren(...state.releases.map(optionOf));
  byId("second").replaceChildren(nothing, ...others.map(optionOf));
  byId("first").value = state.first;
  byId("second").value = state.second || "";
  byId("second").closest("label").hidden = !others.length;
  byId("modes").hidden = !state.second;
  const mode = isDifference() ? "difference" : "side";
  for (const button of byId("modes").children) {
    button.setAttribute("aria-pressed", String(button.dataset.mode === mode));
    button.disabled = button.dataset.mode === "difference" && !canSubtract();
  }
  byId("outlines").checked = state.outlines;
  for (const name of ["draw-box", "draw-polygon", "outlines"]) byId(name).disabled = !canDraw();
  for (const name of ["draw-box", "draw-polygon"]) byId(name).hidden = showsZones();
  byId("outlines").closest("label").hidden = showsZones();
  byId("clear").hidden = showsZones() && !state.zone;
  fillZoneChoices();
  fillNotices();
}

function optionOf(release) {
  return element("option", { value: release.id, textContent: words.releaseOption(release) });
}

/* Releases that are not private, and releases without a map. */
function fillNotices() {
  const shown = chosen();
  document.title = words.title(namesOf(shown));
  const notPrivate = shown.filter((release) => !release.private);
  byId("badge").hidden = !notPrivate.length;
  byId("badge").textContent = words.notPrivate(namesOf(notPrivate));
  const unmapped = shown.filter((release) => !isPlace(release));
  byId("maps").classList.toggle("unmapped", unmapped.length > 0);
  byId("nowhere").hidden = !unmapped.length;
  byId("nowhere").textContent = words.noMap(namesOf(unmapped), Boolean(edgesOf(shown[0])));
}
