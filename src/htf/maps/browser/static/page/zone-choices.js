/* Which level of zones is shown, and of trips which end. */

import { byId, element } from "../shared/elements.js";
import { canChooseEnd, levelsOf, releaseOf, state, tripEnds } from "./state.js";

/* `onChange` runs when another level or end is shown. */
export function listenToZones(onChange) {
  byId("level").addEventListener("change", () => {
    state.level = byId("level").value;
    state.zone = null;
    onChange();
  });
  for (const button of byId("directions").children) {
    button.addEventListener("click", () => {
      state.direction = button.dataset.direction;
      onChange();
    });
  }
}

export function fillZoneChoices() {
  const release = releaseOf(state.first);
  const levels = levelsOf(release);
  const options = levels.map((value) => element("option", { value, textContent: value }));
  byId("level").replaceChildren(...options);
  byId("level").value = state.level;
  byId("level").closest("label").hidden = levels.length < 2;
  byId("directions").hidden = !tripEnds(release) && !canChooseEnd();
  for (const button of byId("directions").children) {
    button.setAttribute("aria-pressed", String(button.dataset.direction === state.direction));
  }
}
