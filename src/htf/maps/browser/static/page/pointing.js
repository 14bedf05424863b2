/* The count at the place that someone points at. */

import { countLines, differenceLines, nameLines } from "../shared/tooltip.js";
import { countBox } from "./api.js";
import { areDistrictsColoured, densityOf, districtAt, pointAtDistrict } from "./district-map.js";
import { shownDistricts } from "./districts.js";
import { panels, shownPanels } from "./panels.js";
import { chosen, isDifference, showsEnds, showsZones } from "./state.js";
import { UNIT } from "./tiles.js";
import { debounced } from "../shared/timing.js";
import { shownZones, zoneAt } from "./zone-map.js";

const HOVER_DELAY = 120; // milliseconds
let pointed = null; // a place, or null
const askers = []; // one for each map
let whenPointed = (_at) => {};

/* `onPoint` gets the number of the district that is pointed at, or -1. */
export function listenToPointing(onPoint) {
  whenPointed = onPoint;
}

export function look(lngLat) {
  pointed = lngLat;
  const district = showsZones() ? -1 : districtAt(lngLat);
  pointAtDistrict(district);
  whenPointed(district);
  shownPanels().forEach((panel, number) => {
    if (district >= 0 && areDistrictsColoured()) lookAtDistrict(panel, number, district);
    else if (showsZones()) lookAtZone(panel, number, lngLat);
    else if (isDifference()) lookAtDifference(panel, lngLat);
    else lookAtTile(panel, number, lngLat);
  });
}

/* Before the map changes below the pointer. Answers on their way are of what was there. */
export function fade() {
  if (pointed) pointed = { lng: pointed.lng, lat: pointed.lat };
  for (const { tooltip } of panels) tooltip.fade();
}

/* After the map has changed below the pointer. */
export function lookAgain() {
  if (pointed) look(pointed);
}

export function leave() {
  pointed = null;
  pointAtDistrict(-1);
  whenPointed(-1);
  for (const { overlay, tooltip } of panels) {
    overlay.mark(null);
    tooltip.hide();
  }
}

function lookAtZone(panel, number, lngLat) {
  const { overlay, tooltip } = panel;
  const found = zoneAt(panel, number, lngLat);
  overlay.markAll(found ? found.rings : []);
  if (!found) {
    tooltip.hide();
    return;
  }
  const { entry } = found;
  const { density, clear: isClear } = entry;
  const { quantity } = chosen()[number];
  const { unit } = shownZones().level;
  const lines = isDifference()
    ? linesOfDifference(entry)
    : countLines(entry, { isClear, density, quantity, unit });
  tooltip.show(lngLat, [...nameLines(entry), ...lines]);
}

function lookAtDistrict({ overlay, tooltip }, number, at) {
  const { label, answers, difference } = shownDistricts().entries[at];
  const answer = answers[number] || answers[0];
  const { quantity } = chosen()[number];
  const density = densityOf(at, answer);
  const isClear = answer.low > 0;
  const lines = difference && isDifference()
    ? linesOfDifference({ ...difference, first: answers[0], second: answers[1] })
    : countLines(answer, { isClear, density, quantity, unit: UNIT });
  overlay.mark(null);
  tooltip.show(pointed, [...nameLines({ label, above: [] }), ...lines]);
}

function lookAtDifference({ differences, overlay, tooltip }, lngLat) {
  const found = differences.at(lngLat);
  overlay.mark(found && found.ring);
  if (found) tooltip.show(lngLat, linesOfDifference(found));
  else tooltip.hide();
}

function linesOfDifference(found) {
  const answers = [found.first, found.second];
  const sides = chosen().map(({ name }, number) => [name, answers[number].count]);
  const { isBeyond } = found;
  const [{ quantity }] = chosen();
  return differenceLines(found, { isBeyond, sides, quantity });
}

/* The numbers of a tile are rounded, and squares have no interval, until somebody asks. */
function lookAtTile({ tiles, ends, overlay, tooltip }, number, lngLat) {
  const found = (showsEnds() ? ends : tiles).at(lngLat);
  overlay.mark(found && found.ring);
  if (!found) {
    tooltip.hide();
    return;
  }
  const { properties } = found;
  const { density, clear: isClear, unsure: isUnsure } = properties;
  const { quantity } = chosen()[number];
  const show = () => {
    if (pointed !== lngLat) return;
    tooltip.show(
      lngLat,
      countLines(properties, { isClear, isUnsure, density, quantity, unit: UNIT }),
    );
  };
  show();
  if (properties.isExact) return;
  askers[number] = askers[number] || makeAsker();
  askers[number](chosen()[number], properties, show);
}

/* Asks for the count and its interval once the pointer rests, and keeps them with the tile. */
function makeAsker() {
  let running = null;
  return debounced(async (release, properties, show) => {
    running?.abort();
    running = new AbortController();
    try {
      const found = await countBox(release, properties.box, running.signal);
      Object.assign(properties, found, { isExact: true });
      show();
    } catch { /* the next move of the pointer asks again */ }
  }, HOVER_DELAY);
}
