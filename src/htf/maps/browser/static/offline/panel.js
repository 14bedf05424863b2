/* One map of the file, with what is at a place beside it. */

import { CLEAR, UNSURE } from "../shared/colours.js";
import { byId } from "../shared/elements.js";
import { makeMap, whenStyled } from "../shared/maplibre.js";
import { Overlay } from "../shared/overlay.js";
import { countLines, differenceLines, nameLines, Tooltip } from "../shared/tooltip.js";
import { words } from "../words.js";
import { addBasemap } from "./base-map.js";
import { data, inFrame, isDifference } from "./data.js";
import { Rectangles, Zones } from "./marks.js";

const credits = data.basemap ? [data.basemap.credit] : [];

export class Panel {
  constructor({ number, name, quantity, frames, outlines }) {
    this.quantity = quantity;
    this.outlines = outlines;
    const container = document.querySelector(`[data-panel="${number}"] .map`);
    const label = words.mapHelp(words.mapOf(name));
    this.map = makeMap(container, { bounds: data.bounds, style: data.style, label, credits });
    this.overlay = new Overlay(this.map, { plane: data.plane, frames });
    this.tooltip = new Tooltip(this.map);
    this.pointed = null;
    this.view = null;
    this.sheets = [];
  }

  async load() {
    const isStyled = await whenStyled(this.map);
    if (!isStyled) byId("without").hidden = false;
    const Marks = data.kind === "grid" ? Rectangles : Zones;
    this.marks = new Marks(this.map, data.style !== null && isStyled);
    this.marks.add(await addBasemap(this.map, data.basemap));
    this.leaves = this.outlines?.corners ? [await inFrame(this.outlines)] : [];
  }

  /* `own` are the sheets of this step, whose rectangles may be the leaves. */
  show(sheets, own, view) {
    this.sheets = sheets;
    this.view = view;
    const outlines = this.outlines === "sheets" ? own : this.leaves;
    const diverging = isDifference || view.isChange;
    this.marks.show({ sheets, sheet: this.sheet, outlines, diverging });
    this.overlay.choose(this.marks.ringsOf(this.sheet, view.chosen));
    if (this.pointed) this.look(this.pointed);
  }

  /* The one that is drawn: of this zoom, or of the level. */
  get sheet() {
    return this.marks.pick(this.sheets, this.view.level);
  }

  at(lngLat) {
    return this.marks.at(this.sheet, lngLat);
  }

  look(lngLat) {
    this.pointed = lngLat;
    const { sheet } = this;
    const found = this.marks.at(sheet, lngLat);
    this.overlay.markAll(this.marks.ringsOf(sheet, found));
    if (found < 0 || !sheet.clear) this.tooltip.hide();
    else this.tooltip.show(lngLat, this.linesOf(sheet, found));
  }

  linesOf(sheet, i) {
    const { quantity, view } = this;
    const [isClear, isUnsure] = [CLEAR, UNSURE].map((mark) => sheet.clear[i] === mark);
    const answer = { count: sheet.count[i], low: sheet.low[i], high: sheet.high[i] };
    const step = data.steps[view.at];
    const above = [
      ...(step && !view.isChange ? [[step, "name"]] : []),
      ...(sheet.labels ? nameLines({ label: sheet.labels[i], above: sheet.above[i] }) : []),
    ];
    if (sheet.first) {
      const names = data.sides || [step, data.steps[view.at - 1]];
      const sides = names.map((name, at) => [name, [sheet.first, sheet.second][at][i]]);
      return [...above, ...differenceLines(answer, { isBeyond: isClear, sides, quantity })];
    }
    const density = data.per_box ? null : sheet.area[i] > 0 ? sheet.density[i] : NaN;
    const { unit } = sheet;
    return [...above, ...countLines(answer, { isClear, isUnsure, density, quantity, unit })];
  }

  leave() {
    this.pointed = null;
    this.overlay.markAll([]);
    this.tooltip.hide();
  }
}
