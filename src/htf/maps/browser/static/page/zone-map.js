/* The zones of the releases that are shown: their outlines, their counts, and their colours. */

import { densityLimits, differenceLimits } from "../shared/limits.js";
import { differenceShades, differencesOf, entriesOf, shadesOf } from "../shared/zones.js";
import { fetchTable, fetchZones } from "./api.js";
import { panels } from "./panels.js";
import { chosen, chosenZone, drawnAxis, isDifference, state, tripsWhere } from "./state.js";

const levels = new Map(); // by release and level: what the API says of outlines does not change
let request = null;
let shown = null; // { asked, limits, level, entries: one list for each map }

/* { level, entries } of what the maps now show, or null. */
export const shownZones = () => shown;

/* Resolves to the limits of colours, no narrower than `before`; null if it was stopped. */
export async function loadZones(before) {
  request?.abort();
  request = new AbortController();
  const { signal } = request;
  const releases = chosen();
  const asked = JSON.stringify([releases.map(({ id }) => id), questionOf()]);
  if (shown && shown.asked === asked) return shown.limits; // only the map has moved
  const by = `${drawnAxis(releases[0])}:${state.level}`;
  const tables = releases.map((one) => fetchTable(one, by, tripsWhere(one), signal));
  const [level, ...answers] = await Promise.all([levelOf(releases[0], signal), ...tables]);
  if (signal.aborted) return null;
  const entries = isDifference()
    ? [differencesOf(level, ...answers)]
    : answers.map((one) => entriesOf(level, one));
  shown = { asked, level, entries, limits: colour(level, entries, before) };
  return shown.limits;
}

function questionOf() {
  const { mode, where, level, zone, direction } = state;
  return [mode, where, level, zone, direction];
}

function colour(level, entries, before) {
  const diverging = isDifference();
  const limits = (diverging ? differenceLimits : densityLimits)(entries.flat(), before);
  entries.forEach((list, number) => {
    const { zones, overlay } = panels[number];
    const shades = (diverging ? differenceShades : shadesOf)(list, limits);
    zones.set({ geometries: level.geometries, shades, diverging });
    overlay.choose(zones.ringsOf(level.labels.indexOf(chosenZone())));
  });
  return limits;
}

async function levelOf(release, signal) {
  const key = `${release.id}/${drawnAxis(release)}/${state.level}`;
  if (!levels.has(key)) levels.set(key, readLevel(await fetchZones(release, signal)));
  return levels.get(key);
}

/* What shared/zones.js calls a level. */
function readLevel({ level: name, unit, labels: [own, ...higher], features }) {
  const properties = features.map((feature) => feature.properties);
  return {
    name,
    unit,
    higher,
    labels: properties.map((one) => one[own]),
    above: properties.map((one) => higher.map((level) => one[level])),
    area: properties.map(({ area }, i) => area ?? (features[i].geometry ? 1 : 0)),
    geometries: features.map(({ geometry }) => geometry),
  };
}

/* The zone at a place of a map: { entry, rings }, or null. */
export function zoneAt(panel, number, lngLat) {
  const found = shown ? panel.zones.at(lngLat) : -1;
  if (found < 0) return null;
  return { entry: shown.entries[number][found], rings: panel.zones.ringsOf(found) };
}

/* The outline of the zone that was chosen, or null. */
export function chosenOutline() {
  const at = shown ? shown.level.labels.indexOf(chosenZone()) : -1;
  return at < 0 ? null : shown.level.geometries[at];
}

export function clearZones() {
  request?.abort();
  if (!shown) return;
  shown = null;
  for (const { zones, overlay } of panels) {
    zones.clear();
    overlay.choose([]);
  }
}
