/* The page of `htf serve`: starts it, and joins its parts. */

import { fillLabels } from "../shared/elements.js";
import { onPlace } from "../shared/maplibre.js";
import { theme } from "../shared/theme.js";
import { labels, words } from "../words.js";
import { readAddress, saveAddress } from "./address.js";
import { askAgain, stopAsking } from "./answer.js";
import { listReleases, RETRY_DELAY, Unreachable } from "./api.js";
import { loadBasemap } from "./base-map.js";
import { showBrand } from "./brand.js";
import { fillChart, listenToChart } from "./chart.js";
import { fillChoices, listenToChoices } from "./choices.js";
import { fillDistricts, listenToDistricts, showRow } from "./district-card.js";
import { districtAt, drawDistricts } from "./district-map.js";
import { drawShapes, makeDrawTools, startDrawing } from "./draw-tools.js";
import { listenToLooks } from "./looks.js";
import { fillMultiples, listenToMultiples } from "./multiples.js";
import { changeMap, drawLegend, listenToMap, showOutlines } from "./map-content.js";
import { arrangePanels, makePanels, moveTo, panels, showWhole } from "./panels.js";
import { fillPeriods, goTo, listenToPeriods } from "./periods.js";
import { fade, leave, listenToPointing, look } from "./pointing.js";
import { fillPrivacy } from "./privacy.js";
import { complain, onServerBack } from "./problem.js";
import { fillRanges } from "./ranges.js";
import { fillSaving, listenToSaving } from "./saving.js";
import { fillSeveral, listenToSeveral } from "./several.js";
import { canChooseEnd, dropStrays, isPlace, releaseOf, showsZones, state } from "./state.js";
import { pause } from "../shared/timing.js";
import { fillTypedBox, listenToTypedBox } from "./typed-box.js";
import { listenToZones } from "./zone-choices.js";
import { shownZones, zoneAt } from "./zone-map.js";
import { listenToTable } from "./zone-table.js";

async function start() {
  fillLabels(labels);
  showBrand();
  listenToLooks();
  try {
    await loadReleases();
  } catch (error) {
    complain(error);
    return;
  }
  const view = readAddress();
  dropStrays();
  listenToPeriods(refreshPeriod);
  fillPeriods(); // before the maps, which get the rest of the room
  await makePanels(view);
  makeDrawTools(saveShape);
  listen();
  arrangePanels();
  if (!view) showWhole();
  // For tests, and for the curious.
  globalThis.htf = { maps: panels.map(({ map }) => map), panels, state };
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
  fillRanges(changeRange);
  drawShapes();
  fillTypedBox();
  startDrawing(null);
  loadBasemap();
  refreshPeriod();
}

/* The same where only the period is another: what was drawn and pointed at stays. */
function refreshPeriod() {
  dropStrays();
  fillChoices();
  fillPeriods();
  fillChart();
  arrangePanels();
  fillSaving();
  stopAsking();
  askAgain();
  fade();
  changeMap();
  fillDistricts();
  fillSeveral();
  fillPrivacy().catch(complain);
}

function saveShape() {
  fillMultiples();
  fillTypedBox();
  fillChart();
  fillSeveral();
  saveAddress();
  if (showsZones()) refresh();
  else if (canChooseEnd()) changeRange();
}

/* A zone is left by choosing it again. */
function chooseZone(label) {
  state.zone = label === state.zone ? null : label;
  refresh();
}

function chooseZoneAt(panel, number, lngLat) {
  if (!showsZones() || !shownZones()) return;
  const found = zoneAt(panel, number, lngLat);
  if (found) chooseZone(found.entry.label);
}

function changeRange() {
  askAgain();
  fillChart();
  fade();
  changeMap();
  fillDistricts();
  fillSeveral();
}

/* A release of another place is shown as a whole. */
function changeRelease(before) {
  dropStrays();
  const now = releaseOf(state.first);
  if (isPlace(now) && String(before.bounds84) !== String(now.bounds84)) showWhole();
  refresh();
}

/* Choosing it again stops comparing. */
function compareWith(id) {
  if (id === state.first) return;
  state.second = id === state.second ? null : id;
  state.follows = false;
  refresh();
}

function changeOutlines() {
  showOutlines();
  saveAddress();
}

function listen() {
  listenToChoices({ onRelease: changeRelease, onChange: refresh, onOutlines: changeOutlines });
  listenToChart(goTo);
  listenToTypedBox();
  listenToSaving();
  onServerBack(refresh);
  theme.onChange(drawLegend);
  listenToZones(refresh);
  listenToTable(chooseZone);
  listenToDistricts();
  listenToSeveral(compareWith);
  listenToMultiples(goTo);
  listenToMap((limits) => {
    drawDistricts(limits);
    fillMultiples(limits);
  });
  listenToPointing((at) => showRow(at, false));
  panels.forEach((panel, number) => {
    const { map } = panel;
    onPlace(map, look, leave);
    map.on("click", ({ lngLat }) => {
      chooseZoneAt(panel, number, lngLat);
      if (!showsZones()) showRow(districtAt(lngLat), true);
    });
    map.getCanvas().addEventListener("keydown", ({ key }) => {
      if (key === "Enter") chooseZoneAt(panel, number, map.getCenter());
    });
  });
  panels[0].map.on("moveend", changeMap);
  document.addEventListener("focusin", ({ target }) => {
    if (/** @type {Element} */ (target).closest("dialog")) leave();
  });
  addEventListener("hashchange", () => {
    const view = readAddress();
    if (view) moveTo(view);
    refresh();
  });
}

start();
