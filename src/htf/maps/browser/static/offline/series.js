/* The offline map of a series: a period at a time, or its change since the one before. All that it
   shows is in the file; modules.py joins this module and those that it imports into one script. */

import { aboveCounts } from "../shared/basemap.js";
import { changeShade, CLEAR, shadeOf, UNSURE } from "../shared/colours.js";
import { byId, fillLabels } from "../shared/elements.js";
import { Finder } from "../shared/finder.js";
import { showLegend } from "../shared/legend.js";
import { beyondEnd } from "../shared/limits.js";
import { addBasemap } from "./base-map.js";
import { makeMap, onPlace, whenStyled } from "../shared/maplibre.js";
import { squareX, squareY } from "../shared/mercator.js";
import { Overlay } from "../shared/overlay.js";
import { RectangleLayer } from "../shared/rectangle-layer.js";
import { isSheetShown, readSheet, ringOf, unpack } from "../shared/sheets.js";
import { theme } from "../shared/theme.js";
import { TimeBar } from "../shared/time-bar.js";
import { countLines, differenceLines, Tooltip } from "../shared/tooltip.js";
import { labels, words } from "../words.js";

const data = JSON.parse(byId("data").textContent);
const credits = data.basemap ? [data.basemap.credit] : [];
const [{ quantity }] = data.panels;
const view = { at: data.periods.length - 1, isChange: false, pointed: null };
const kept = new Map(); // what was read, by its name
let turn = 0;

/* Reads once. */
function once(name, read) {
  if (!kept.has(name)) kept.set(name, read());
  return kept.get(name);
}

async function readColumns(packed, names) {
  const columns = names.map(async (name) => [name, await unpack(packed[name], Float32Array)]);
  return Object.fromEntries(await Promise.all(columns));
}

const inFrame = (packed) => readSheet({ ...packed, frame: data.frame });

/* What is drawn is a list of sheets, of which one shows at each zoom. A period has one. */
const periodSheets = (at) =>
  once(`period ${at}`, async () => {
    const packed = data.periods[at];
    const columns = await readColumns(packed, ["count", "low", "high", "area"]);
    const clear = await unpack(packed.clear, Uint8Array);
    const shade = columns.count.map((count, i) =>
      shadeOf(count / columns.area[i], clear[i] === CLEAR, data.limits, clear[i] === UNSURE)
    );
    return [{ ...await inFrame(packed), ...columns, clear, shade }];
  });

/* The squares in which periods are compared, which are the same for all. */
const grids = () =>
  once("grids", () =>
    Promise.all(data.changes.grids.map(async (packed) => ({
      ...await inFrame(packed),
      area: await unpack(packed.area, Float32Array),
      limits: packed.limits,
      zoom: packed.zoom,
    }))));

/* The change to a period. Columns have squares of one size after those of another. */
const changeSheets = (at) =>
  once(`change ${at}`, async () => {
    const packed = data.changes.periods[at - 1];
    if (!packed) return (await grids()).map(withoutChange);
    const columns = await readColumns(packed, ["first", "second", "low", "high"]);
    columns.clear = await unpack(packed.clear, Uint8Array);
    let start = 0;
    return (await grids()).map((grid) => {
      const range = [start, start += grid.length];
      const own = Object.entries(columns).map(([name, all]) => [name, all.subarray(...range)]);
      return changeSheet({ ...grid, ...Object.fromEntries(own), since: packed.since });
    });
  });

/* The first period has none before it. */
const withoutChange = (grid) => ({ ...grid, shade: new Float32Array(grid.length).fill(-1) });

function changeSheet(sheet) {
  const { first, second, area, clear, limits } = sheet;
  const density = first.map((count, i) => (count - second[i]) / area[i]);
  const shade = density.map((one, i) => changeShade(one, clear[i], limits));
  const found = Array.from(density, (one, i) => ({ density: one, isBeyond: Boolean(clear[i]) }))
    .filter(({ isBeyond }) => isBeyond);
  return { ...sheet, shade, marked: found.length, beyond: beyondEnd(found, limits) };
}

const sheetsOf = (at) => (view.isChange ? changeSheets(at) : periodSheets(at));

function linesOf(sheet, i) {
  const name = data.periods[view.at].name;
  const [isClear, isUnsure] = [CLEAR, UNSURE].map((mark) => sheet.clear[i] === mark);
  const ends = { low: sheet.low[i], high: sheet.high[i] };
  if (view.isChange) {
    const sides = [[name, sheet.first[i]], [sheet.since, sheet.second[i]]];
    return differenceLines(ends, { isBeyond: isClear, sides, quantity });
  }
  const density = sheet.count[i] / sheet.area[i];
  const answer = { count: sheet.count[i], ...ends };
  const lines = countLines(answer, { isClear, isUnsure, density, quantity, unit: data.unit });
  return [[name, "name"], ...lines];
}

class Panel {
  constructor({ name, frames }) {
    const label = words.mapHelp(words.mapOf(name));
    const container = document.querySelector("[data-panel] .map");
    this.map = makeMap(container, { bounds: data.bounds, style: data.style, label, credits });
    this.overlay = new Overlay(this.map, { plane: data.plane, frames });
    this.tooltip = new Tooltip(this.map);
    this.finders = new Map();
    this.sheets = [];
  }

  async load() {
    const isStyled = await whenStyled(this.map);
    if (!isStyled) byId("without").hidden = false;
    const hasBaseMap = data.style !== null && isStyled;
    this.layer = new RectangleLayer("rectangles", { hasBaseMap });
    this.layer.hasGround = await addBasemap(this.map, data.basemap);
    this.map.addLayer(this.layer, aboveCounts(this.map));
  }

  set(sheets, outlines) {
    this.sheets = sheets;
    this.layer.diverging = view.isChange;
    this.layer.set({ sheets, outlines });
    this.look();
  }

  /* The sheet that shows at this zoom. */
  get sheet() {
    const zoom = this.map.getZoom();
    return this.sheets.find((one) => isSheetShown(one, zoom));
  }

  look(lngLat = view.pointed) {
    view.pointed = lngLat;
    const { sheet } = this;
    if (!lngLat || !sheet) return;
    if (!this.finders.has(sheet)) this.finders.set(sheet, new Finder(sheet));
    const found = this.finders.get(sheet).at(squareX(lngLat.lng), squareY(lngLat.lat));
    this.overlay.mark(found < 0 ? null : ringOf(sheet, found));
    if (found < 0 || !sheet.clear) this.tooltip.hide();
    else this.tooltip.show(lngLat, linesOf(sheet, found));
  }

  leave() {
    view.pointed = null;
    this.overlay.mark(null);
    this.tooltip.hide();
  }
}

/* Shows a period, and reads the next one meanwhile. */
async function show(panel, at) {
  const started = ++turn;
  document.documentElement.dataset.ready = "no"; // tests wait for "yes"
  view.at = at;
  const [sheets, outlines] = await Promise.all([sheetsOf(at), periodSheets(at)]);
  if (started !== turn) return;
  panel.set(sheets, outlines);
  tell(panel.sheet);
  if (at + 1 < data.periods.length) sheetsOf(at + 1);
  await panel.map.once("idle");
  if (started === turn) document.documentElement.dataset.ready = "yes";
}

function tell(sheet) {
  byId("period-note").textContent = view.isChange ? noteOf(sheet) : "";
  showColours(sheet);
}

function noteOf({ since, marked }) {
  return since ? words.since(since, marked) : words.noneBefore;
}

function showColours(sheet) {
  const { unit } = data;
  const legend = byId("legend");
  byId("theme").textContent = theme.isDark() ? words.lightMode : words.darkMode;
  if (!view.isChange) {
    const hasUnsure = sheet.clear.includes(UNSURE);
    showLegend(legend, { limits: data.limits, quantities: [quantity], unit, hasUnsure });
    return;
  }
  const { limits, since, beyond } = sheet;
  const sides = [data.periods[view.at].name, since];
  showLegend(legend, { limits, quantities: [quantity], unit, sides, beyond, isChange: true });
}

function listen(panel) {
  panel.map.on("zoomend", () => tell(panel.sheet));
  onPlace(panel.map, (lngLat) => panel.look(lngLat), () => panel.leave());
  byId("change").addEventListener("change", () => {
    view.isChange = byId("change").checked;
    show(panel, view.at);
  });
  const outlines = byId("outlines");
  const showOutlines = () => panel.layer.set({ showsOutlines: outlines.checked });
  outlines.addEventListener("change", showOutlines);
  outlines.checked = data.boxes && data.are_leaves;
  showOutlines();
  byId("theme").addEventListener("click", theme.toggle);
  theme.onChange(() => showColours(panel.sheet));
}

async function start() {
  fillLabels(labels);
  byId("change").closest("label").hidden = data.changes === null;
  byId("outlines").closest("label").hidden = !data.are_leaves;
  const time = new TimeBar({ show: (at) => show(panel, at) });
  time.fill(data.periods.map(({ name }) => name), view.at); // before the map, which gets the rest
  const panel = new Panel(data.panels[0]);
  await panel.load();
  listen(panel);
  globalThis.htf = { maps: [panel.map], view }; // for tests, and for the curious
  await show(panel, view.at);
}

start();
