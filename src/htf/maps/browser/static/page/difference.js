/* The difference of two releases in squares, which get smaller as one zooms in. */

import { divergingShade } from "../shared/colours.js";
import { Finder } from "../shared/finder.js";
import { differenceLimits } from "../shared/limits.js";
import { squareX, squareY } from "../shared/mercator.js";
import { differenceOf, markBeyondNoise } from "../shared/numbers.js";
import { ringOf } from "../shared/sheets.js";
import { countBoxes } from "./api.js";
import { isInDegrees } from "./state.js";

const SQUARE_PIXELS = 14;
const POLYGON_PIXELS = 28; // where each square is asked for as a polygon, which takes longer
const EARTH = 6371.0088; // km

export class Differences {
  constructor(map, layer) {
    this.map = map;
    this.layer = layer;
    this.sheet = null;
    this.finder = null;
    this.request = null;
    this.size = ""; // of the grid
  }

  /* Resolves to the limits of colours; null if it was stopped, or if the map shows no square. */
  async load(first, second, before) {
    this.request?.abort();
    this.request = new AbortController();
    const { signal } = this.request;
    const grid = gridOf(this.map, first, second);
    const boxes = squaresOf(this.map, first, second, grid);
    if (!boxes.length) {
      this.layer.set({ sheets: [] });
      return null;
    }
    const answers = await Promise.all(
      [first, second].map((release) => countBoxes(release, boxes, signal)),
    );
    if (signal.aborted) return null;
    const found = markBeyondNoise(compare(boxes, ...answers), grid[0] * grid[1]);
    const limits = differenceLimits(found, this.size === grid.join() ? before : null);
    this.size = grid.join();
    const shades = found.map(({ density, isBeyond }) => (
      divergingShade(density, isBeyond, limits)
    ));
    this.sheet = sheetOf(boxes, found, shades);
    this.finder = new Finder(this.sheet);
    this.layer.set({ sheets: [this.sheet] });
    return limits;
  }

  at({ lng, lat }) {
    const found = this.sheet ? this.finder.at(squareX(lng), squareY(lat)) : -1;
    return found < 0 ? null : { ring: ringOf(this.sheet, found), ...this.sheet.found[found] };
  }

  clear() {
    this.request?.abort();
    this.sheet = null;
  }
}

/* West, south, east and north of the squares that the map shows of what both releases cover. */
export function squaresOf(map, first, second, grid) {
  const [columns, rows] = grid;
  const [west, south, east, north] = sharedBounds(first, second);
  const [dx, dy] = [(east - west) / columns, (north - south) / rows];
  const clip = (value, most) => Math.max(0, Math.min(most, value));
  const seen = map.getBounds();
  const left = clip(Math.floor((seen.getWest() - west) / dx), columns);
  const right = clip(Math.ceil((seen.getEast() - west) / dx), columns);
  const bottom = clip(Math.floor((seen.getSouth() - south) / dy), rows);
  const top = clip(Math.ceil((seen.getNorth() - south) / dy), rows);
  const found = [];
  for (let x = left; x < right; x++) {
    for (let y = bottom; y < top; y++) {
      found.push([west + x * dx, south + y * dy, west + (x + 1) * dx, south + (y + 1) * dy]);
    }
  }
  return found;
}

function sharedBounds({ bounds84: a }, { bounds84: b }) {
  return [
    Math.max(a[0], b[0]),
    Math.max(a[1], b[1]),
    Math.min(a[2], b[2]),
    Math.min(a[3], b[3]),
  ];
}

/* Columns and rows: as many as the first release has cells, halved until squares are large
   enough. */
export function gridOf(map, first, second) {
  const bounds = sharedBounds(first, second);
  const [west, south, east, north] = bounds;
  const least = isInDegrees(first) && isInDegrees(second) ? SQUARE_PIXELS : POLYGON_PIXELS;
  const corner = map.project([west, south]);
  const pixels = [
    map.project([east, south]).x - corner.x,
    corner.y - map.project([west, north]).y,
  ];
  return pixels.map((side, i) => {
    const share = (bounds[i + 2] - bounds[i]) / (first.bounds84[i + 2] - first.bounds84[i]);
    let number = Math.max(1, Math.round(first.axes[i].cells * share));
    while (side / number < least && number > 1) number >>= 1;
    return number;
  });
}

function compare(boxes, firsts, seconds) {
  return boxes.map((box, i) => {
    const [first, second] = [firsts[i], seconds[i]];
    const difference = differenceOf(first, second);
    return { ...difference, first, second, density: difference.count / areaOf(box) };
  });
}

/* In km². */
export function areaOf(box) {
  const [west, south, east, north] = box;
  const sine = (latitude) => Math.sin((latitude * Math.PI) / 180);
  return EARTH ** 2 * (((east - west) * Math.PI) / 180) * (sine(north) - sine(south));
}

/* A sheet of boxes in degrees, each with its shade. */
export function sheetOf(boxes, found, shades) {
  const frame = [squareX(boxes[0][0]), squareY(boxes[0][1]), 1];
  const corners = new Float32Array(8 * boxes.length);
  boxes.forEach(([west, south, east, north], i) => {
    const [left, right] = [west, east].map((lng) => squareX(lng) - frame[0]);
    const [low, high] = [south, north].map((lat) => squareY(lat) - frame[1]);
    corners.set([left, low, right, low, left, high, right, high], 8 * i);
  });
  return { frame, corners, length: boxes.length, shade: Float32Array.from(shades), found };
}
