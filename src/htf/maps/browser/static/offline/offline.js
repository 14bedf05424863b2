/* The offline map that `htf map` writes. All that it shows is in the file; modules.py joins this
   module and those that it imports into one script. */

import { aboveCounts } from "../shared/basemap.js";
import { CLEAR, divergingShade, shadeOf, UNSURE } from "../shared/colours.js";
import { byId, fillLabels } from "../shared/elements.js";
import { Finder } from "../shared/finder.js";
import { showLegend } from "../shared/legend.js";
import { beyondEnd } from "../shared/limits.js";
import { addBasemap } from "./base-map.js";
import { makeMap, onPlace, synchronise, whenStyled } from "../shared/maplibre.js";
import { squareX, squareY } from "../shared/mercator.js";
import { Overlay } from "../shared/overlay.js";
import { RectangleLayer } from "../shared/rectangle-layer.js";
import { isSheetShown, readSheet, ringOf, unpack } from "../shared/sheets.js";
import { theme } from "../shared/theme.js";
import { countLines, differenceLines, Tooltip } from "../shared/tooltip.js";
import { labels, words } from "../words.js";

const COLUMNS = ["count", "low", "high", "area", "first", "second"];
const data = JSON.parse(byId("data").textContent);
const credits = data.basemap ? [data.basemap.credit] : [];
const isDifference = data.sides !== null;

const readOutlines = (packed) => readSheet({ ...packed, frame: data.frame });

/* Rectangles with their counts, and the shade of each. */
async function readCounts(packed) {
  const columns = {};
  for (const name of COLUMNS) {
    if (packed[name]) columns[name] = await unpack(packed[name], Float32Array);
  }
  const clear = await unpack(packed.clear, Uint8Array);
  if (isDifference) columns.count = columns.first.map((count, i) => count - columns.second[i]);
  const toShade = isDifference ? divergingShade : shadeOf;
  const limits = packed.limits || data.limits;
  const density = columns.count.map((count, i) => count / columns.area[i]);
  const shade = density.map((one, i) => (
    toShade(one, clear[i] === CLEAR, limits, clear[i] === UNSURE)
  ));
  const beyond = isDifference ? beyondOf(density, clear, limits) : null;
  return {
    ...await readOutlines(packed),
    zoom: packed.zoom,
    ...columns,
    clear,
    shade,
    limits,
    beyond,
  };
}

function beyondOf(density, clear, limits) {
  const found = Array.from(density, (one, i) => ({ density: one, isBeyond: clear[i] === CLEAR }));
  return beyondEnd(found, limits);
}

function linesOf(sheet, i, quantity) {
  const answer = { count: sheet.count[i], low: sheet.low[i], high: sheet.high[i] };
  const [isClear, isUnsure] = [CLEAR, UNSURE].map((mark) => sheet.clear[i] === mark);
  if (isDifference) {
    const [first, second] = data.sides;
    const sides = [[first, sheet.first[i]], [second, sheet.second[i]]];
    return differenceLines(answer, { isBeyond: isClear, sides, quantity });
  }
  const density = data.per_box ? null : answer.count / sheet.area[i];
  return countLines(answer, { isClear, isUnsure, density, quantity, unit: data.unit });
}

class Panel {
  constructor({ number, name, quantity, frames }) {
    this.quantity = quantity;
    const container = document.querySelector(`[data-panel="${number}"] .map`);
    const label = words.mapHelp(words.mapOf(name));
    this.map = makeMap(container, { bounds: data.bounds, style: data.style, label, credits });
    this.overlay = new Overlay(this.map, { plane: data.plane, frames });
    this.tooltip = new Tooltip(this.map);
    this.finders = new Map(); // by sheet, made when somebody first points at it
  }

  async load({ sheets, outlines }) {
    const isStyled = await whenStyled(this.map);
    if (!isStyled) byId("without").hidden = false;
    this.sheets = await Promise.all(sheets.map(readCounts));
    const hasBaseMap = data.style !== null && isStyled;
    this.layer = new RectangleLayer("rectangles", { diverging: isDifference, hasBaseMap });
    this.layer.set({
      sheets: this.sheets,
      outlines: outlines ? [await readOutlines(outlines)] : [],
    });
    this.layer.hasGround = await addBasemap(this.map, data.basemap);
    this.map.addLayer(this.layer, aboveCounts(this.map));
  }

  /* The sheet that is drawn at this zoom. */
  get sheet() {
    const zoom = this.map.getZoom();
    return this.sheets.find((one) => isSheetShown(one, zoom));
  }

  look(lngLat) {
    const { sheet } = this;
    if (!this.finders.has(sheet)) this.finders.set(sheet, new Finder(sheet));
    const found = this.finders.get(sheet).at(squareX(lngLat.lng), squareY(lngLat.lat));
    this.overlay.mark(found < 0 ? null : ringOf(sheet, found));
    if (found < 0) this.tooltip.hide();
    else this.tooltip.show(lngLat, linesOf(sheet, found, this.quantity));
  }

  leave() {
    this.overlay.mark(null);
    this.tooltip.hide();
  }
}

function listen(panels) {
  const look = (lngLat) => panels.forEach((panel) => panel.look(lngLat));
  const leave = () => panels.forEach((panel) => panel.leave());
  for (const { map } of panels) onPlace(map, look, leave);
  synchronise(panels.map(({ map }) => map));
  const box = byId("outlines");
  const showOutlines = () => {
    for (const { layer } of panels) layer.set({ showsOutlines: box.checked });
  };
  box.addEventListener("change", showOutlines);
  box.checked = data.boxes;
  showOutlines();
  byId("theme").addEventListener("click", theme.toggle);
  const showColours = () => showTheme(panels[0].sheet);
  theme.onChange(showColours);
  if (isDifference) panels[0].map.on("zoomend", showColours);
  showColours();
}

/* Squares of another size have a scale of their own. */
function showTheme({ limits, beyond, clear }) {
  const { unit, sides, panels } = data;
  const quantities = panels.map(({ quantity }) => quantity);
  const hasUnsure = clear.includes(UNSURE);
  showLegend(byId("legend"), { limits, quantities, unit, sides, beyond, hasUnsure });
  byId("theme").textContent = theme.isDark() ? words.lightMode : words.darkMode;
}

async function start() {
  fillLabels(labels);
  if (data.per_box) byId("outlines").nextElementSibling.textContent = words.outlineBoxes;
  const panels = data.panels.map((packed) => new Panel(packed));
  await Promise.all(panels.map((panel, number) => panel.load(data.panels[number])));
  listen(panels);
  globalThis.htf = { maps: panels.map(({ map }) => map) }; // for tests, and for the curious
  await Promise.all(panels.map(({ map }) => map.once("idle")));
  document.documentElement.dataset.ready = "yes";
}

start();
