/* Trips between places: where those from a box end, or where those to it start, in squares. */

import { shadeOf } from "../shared/colours.js";
import { Finder } from "../shared/finder.js";
import { densityLimits } from "../shared/limits.js";
import { squareX, squareY } from "../shared/mercator.js";
import { ringOf } from "../shared/sheets.js";
import { countFullBoxes } from "./api.js";
import { areaOf, gridOf, sheetOf, squaresOf } from "./difference.js";
import { boundsOf } from "./shapes.js";
import { drawnEnd, ENDS, fullRow, state } from "./state.js";

export class EndMap {
  constructor(map, layer) {
    this.map = map;
    this.layer = layer;
    this.sheet = null;
    this.finder = null;
    this.request = null;
  }

  /* Resolves to the limits of colours; null if it was stopped, or if the map shows no square. */
  async load(release, before) {
    this.request?.abort();
    this.request = new AbortController();
    const { signal } = this.request;
    const end = drawnEnd();
    const plane = planeOf(release, end);
    const boxes = squaresOf(this.map, plane, plane, gridOf(this.map, plane, plane));
    const rows = boxes.map((box) => fullRow(release, { ...otherEnd(end), ...rangesOf(end, box) }));
    if (!boxes.length) {
      this.layer.set({ sheets: [] });
      return null;
    }
    const { answers } = await countFullBoxes(release, rows, {}, signal);
    if (signal.aborted) return null;
    const found = answers.map((answer, i) => {
      const [density, clear] = [answer.count / areaOf(boxes[i]), answer.low > 0];
      return { ...answer, density, clear, isExact: true };
    });
    const limits = densityLimits(found, before);
    const shades = found.map(({ density, clear }) => shadeOf(density, clear, limits));
    this.sheet = sheetOf(boxes, found, shades);
    this.finder = new Finder(this.sheet);
    this.layer.set({ sheets: [this.sheet] });
    return limits;
  }

  /* As tiles do. */
  at({ lng, lat }) {
    const found = this.sheet ? this.finder.at(squareX(lng), squareY(lat)) : -1;
    return found < 0
      ? null
      : { ring: ringOf(this.sheet, found), properties: this.sheet.found[found] };
  }

  clear() {
    this.request?.abort();
    this.sheet = null;
  }
}

/* The map of one end, as if it were a release. */
function planeOf({ axes, crs }, end) {
  const [x, y] = ENDS[end].map((name) => axes.find((axis) => axis.name === name));
  return { axes: [x, y], crs, bounds84: [x.low, y.low, x.high, y.high] };
}

function rangesOf(end, box) {
  const [west, south, east, north] = box;
  const [x, y] = ENDS[end];
  return { [x]: [west, east], [y]: [south, north] };
}

/* The box that was drawn, on the end that is not; or nothing. */
function otherEnd(end) {
  if (state.shape?.kind !== "box") return {};
  return rangesOf(end === "to" ? "from" : "to", boundsOf(state.shape));
}
