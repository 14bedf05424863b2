/* The page of `htf serve`: starts it, and joins its parts. */

import { fillLabels } from "../shared/elements.js";
import { onPlace } from "../shared/maplibre.js";
import { theme } from "../shared/theme.js";
import { labels, words } from "../words.js";
import { readAddress, saveAddress } from "./address.js";
import { askAgain, stopAsking } from "./answer.js";
import { listReleases, RETRY_DELAY, Unreachable } from "./api.js";
import { fillChoices, listenToChoices } from "./choices.js";
import { drawShapes, makeDrawTools, startDrawing } from "./draw-tools.js";
import { listenToLooks } from "./looks.js";
import { changeMap, drawLegend, showOutlines } from "./map-content.js";
import { arrangePanels, makePanels, moveTo, panels, showWhole } from "./panels.js";
import { leave, look } from "./pointing.js";
import { fillPrivacy } from "./privacy.js";
import { complain, onServerBack } from "./problem.js";
import { fillRanges } from "./ranges.js";
import { fillSaving, listenToSaving } from "./saving.js";
import { dropStrays, isPlace, releaseOf, state } from "./state.js";
import { pause } from "./timing.js";
import { fillTypedBox, listenToTypedBox } from "./typed-box.js";

async function start() {
  fillLabels(labels);
  listenToLooks();
  try {
    await loadReleases();
  } catch (error) {
    complain(error);
    return;
  }
  const view = readAddress();
  dropStrays();
  await makePanels(view);
  makeDrawTools(saveShape);
  listen();
  arrangePanels();
  if (!view) showWhole();
  globalThis.htf = { maps: panels.map(({ map }) => map), state }; // for tests, and for the curious
  refresh();
}

/* Asks until the server answers. */
async function loadReleases() {
  if (!globalThis.maplibregl) throw new Error(words.noMapLibre);
  while (!state.releases.length) {
    try {
      state.releases = await listReleases();
      if (!state.releases.length) throw new Error(words.noReleases);
    } catch (error) {
      if (!(error instanceof Unreachable)) throw error;
      complain(error);
      await pause(RETRY_DELAY);
    }
  }
  complain(null);
}

/* Shows anew what is chosen. */
function refresh() {
  dropStrays();
  fillChoices();
  fillRanges(changeRange);
  arrangePanels();
  drawShapes();
  fillTypedBox();
  fillSaving();
  startDrawing(null);
  stopAsking();
  askAgain();
  changeMap();
  fillPrivacy().catch(complain);
}

function saveShape() {
  fillTypedBox();
  saveAddress();
}

function changeRange() {
  askAgain();
  changeMap();
}

/* A release of another place is shown as a whole. */
function changeRelease(before) {
  dropStrays();
  const now = releaseOf(state.first);
  if (isPlace(now) && String(before.bounds84) !== String(now.bounds84)) showWhole();
  refresh();
}

function changeOutlines() {
  showOutlines();
  saveAddress();
}

function listen() {
  listenToChoices({ onRelease: changeRelease, onChange: refresh, onOutlines: changeOutlines });
  listenToTypedBox();
  listenToSaving();
  onServerBack(refresh);
  theme.onChange(drawLegend);
  for (const { map } of panels) onPlace(map, look, leave);
  panels[0].map.on("moveend", changeMap);
  addEventListener("hashchange", () => {
    const view = readAddress();
    if (view) moveTo(view);
    refresh();
  });
}

start();
