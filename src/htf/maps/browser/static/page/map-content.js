/* What the maps show: tiles or a difference, outlines of the leaves, and the legend. */

import { byId } from "../shared/elements.js";
import { showLegend } from "../shared/legend.js";
import { beyondEnd, densityLimits } from "../shared/limits.js";
import { readSheet } from "../shared/sheets.js";
import { words } from "../words.js";
import { saveAddress } from "./address.js";
import { fetchLeaves, isAborted, leavesPath } from "./api.js";
import { panels, shownPanels } from "./panels.js";
import { leave, lookAgain } from "./pointing.js";
import { complain } from "./problem.js";
import {
  chosen,
  countsSame,
  isDifference,
  isPlace,
  isZoned,
  scaleOf,
  showsEnds,
  showsZones,
  state,
} from "./state.js";
import { clearOf, hasUnsure, LEVELS, UNIT } from "./tiles.js";
import { debounced } from "../shared/timing.js";
import { clearZones, loadZones, shownZones } from "./zone-map.js";
import { fillTable } from "./zone-table.js";

let limits = null; // of the colours
let limitsKey = ""; // what they belong to
let turn = 0; // how often the map was asked to change
let waiting = []; // for the map to be drawn
let whenLoaded = (_limits) => {};
const outlinesOf = new Map(); // by their address

/* `onLoad` gets the limits of the colours whenever the map has changed. */
export function listenToMap(onLoad) {
  whenLoaded = onLoad;
}

const loadSoon = debounced(() => {
  loadMap();
  showOutlines();
  saveAddress();
}, 80);

/* Shows what is chosen where the map now looks. */
export function changeMap() {
  turn += 1;
  document.documentElement.dataset.ready = "no"; // tests wait for "yes"
  loadSoon();
}

/* Resolves when the map shows what is chosen now. */
export const whenShown = () => new Promise((resolve) => waiting.push(resolve));

function tellShown() {
  document.documentElement.dataset.ready = "yes";
  for (const resolve of waiting) resolve();
  waiting = [];
}

async function loadMap() {
  const started = turn;
  if (!showsZones()) clearZones();
  const { first, second, mode, where, level } = state;
  const trips = showsEnds() ? [state.direction, state.shape] : null;
  const key = JSON.stringify([scaleOf(first), scaleOf(second), mode, where, level, trips]);
  if (key !== limitsKey) limits = null;
  limitsKey = key;
  try {
    if (showsZones()) limits = await loadZones(limits) || limits;
    else if (isDifference()) await loadDifference();
    else await (showsEnds() ? loadEnds() : loadTiles());
    fillTable();
    byId("map-note").textContent = noteOfMap();
    drawLegend();
    whenLoaded(limits);
    lookAgain();
  } catch (error) {
    if (isAborted(error)) return;
    leave();
    complain(error);
  }
  await Promise.all(shownPanels().map(whenDrawn));
  if (started === turn) tellShown();
}

function noteOfMap() {
  const notes = [
    isDifference() ? words.strongColours(showsZones() ? "zone" : "square", state.follows) : "",
    countsSame() ? "" : words.countDifferently(chosen()),
  ];
  return notes.filter(Boolean).join(" ");
}

function whenDrawn({ map }) {
  return new Promise((resolve) => {
    map.once("idle", resolve);
    map.triggerRepaint();
  });
}

async function loadDifference() {
  limits = await panels[0].differences.load(...chosen(), limits) || limits;
}

/* Trips from a box have a scale of their own. */
async function loadEnds() {
  const [{ ends, tiles }] = panels;
  tiles.request?.abort();
  limits = await ends.load(chosen()[0], limits) || limits;
}

/* Both maps have the same colours. */
async function loadTiles() {
  const shown = chosen().map((release, number) => [release, panels[number].tiles]);
  for (const deeper of LEVELS) {
    const loading = shown.map(([release, tiles]) =>
      isPlace(release) && tiles.load(release, deeper)
    );
    const done = await Promise.all(loading);
    if (!done.some(Boolean)) return;
    const sheets = shown.flatMap(([, tiles]) => tiles.sheets);
    limits = densityLimits(sheets.flatMap(clearOf), limits);
    for (const [, tiles] of shown) tiles.show(limits);
    drawLegend();
  }
}

export function drawLegend() {
  const legend = byId("legend");
  legend.hidden = !isPlace(chosen()[0]);
  if (!limits) return;
  const sides = isDifference() ? chosen().map(({ name }) => name) : null;
  const quantities = chosen().map(({ quantity }) => quantity);
  const unit = shownZones()?.level.unit || UNIT;
  const found = shownZones()?.entries[0] || panels[0].differences.sheet?.found;
  const beyond = sides && found ? beyondEnd(found, limits) : null;
  const hasTiles = !sides && !showsZones() && !showsEnds();
  const isUnsure = hasTiles && shownPanels().some(({ tiles }) => tiles.sheets.some(hasUnsure));
  showLegend(legend, { limits, quantities, unit, sides, beyond, hasUnsure: isUnsure });
}

export function showOutlines() {
  const shown = isDifference() ? chosen().slice(0, 1) : chosen();
  shown.forEach((release, number) => {
    showOutlinesOf(release, panels[number].layer).catch(complain);
  });
}

async function showOutlinesOf(release, layer) {
  if (!state.outlines || !isPlace(release) || isZoned(release)) {
    layer.set({ showsOutlines: false });
    return;
  }
  const path = leavesPath(release);
  if (!outlinesOf.has(path)) outlinesOf.set(path, await readSheet(await fetchLeaves(path)));
  layer.set({ outlines: [outlinesOf.get(path)], showsOutlines: state.outlines });
}
