/* The tiles of one release on one map, as the API cuts them. */

import { shadeOf } from "../shared/colours.js";
import { Finder } from "../shared/finder.js";
import { squareX, squareY } from "../shared/mercator.js";
import { ringOf } from "../shared/sheets.js";
import { fetchTile } from "./api.js";
import { whereText } from "./state.js";
import { readTile } from "./vector-tile.js";

export const UNIT = "km²"; // of densities
export const LEVELS = [1, 2]; // deeper than the map: coarse tiles at once, then fine ones
const DEEPEST = 22;
const MOST_TILES = 64; // on the map
const KEPT_TILES = 400; // in memory

export class Tiles {
  constructor(map, layer) {
    this.map = map;
    this.layer = layer;
    this.sheets = []; // on the map
    this.kept = new Map(); // in memory, by release, ranges and place
    this.request = null;
  }

  /* Resolves to whether all tiles have come and are still wanted. */
  async load(release, deeper) {
    this.request?.abort();
    this.request = new AbortController();
    const { signal } = this.request;
    const wanted = tilesOf(this.map, release, deeper);
    const tiles = await Promise.all(wanted.map((place) => this.fetch(release, place, signal)));
    if (signal.aborted) return false;
    this.sheets = tiles;
    this.forget();
    return true;
  }

  async fetch(release, place, signal) {
    const key = `${release.id}?${whereText(release)}/${place.join("/")}`;
    if (!this.kept.has(key)) {
      this.kept.set(key, sheetOf(await fetchTile(release, place.join("/"), signal), place));
    }
    return this.kept.get(key);
  }

  /* Fetches what the map would show of another release, for later. */
  async prefetch(release) {
    const { signal } = this.request;
    for (const deeper of LEVELS) {
      const wanted = tilesOf(this.map, release, deeper);
      await Promise.all(wanted.map((place) => this.fetch(release, place, signal)));
    }
  }

  /* The oldest go first, but none that is on the map. */
  forget() {
    for (const [key, sheet] of this.kept) {
      if (this.kept.size <= KEPT_TILES) return;
      if (!this.sheets.includes(sheet)) this.kept.delete(key);
    }
  }

  /* Sheets with other limits are made anew, so that the layer draws them again. */
  show(limits) {
    const name = limits.join();
    this.sheets = this.sheets.map((sheet) => {
      if (sheet.limits === name) return sheet;
      const made = { ...sheet, limits: name, shade: shadesOf(sheet, limits), finder: null };
      for (const [key, kept] of this.kept) if (kept === sheet) this.kept.set(key, made);
      return made;
    });
    this.layer.set({ sheets: this.sheets });
  }

  /* The rectangle at a place, with what the API says of it; or null. */
  at({ lng, lat }) {
    const [x, y] = [squareX(lng), squareY(lat)];
    for (const sheet of this.sheets) {
      const [left, top, size] = sheet.frame;
      const isHere = x >= left && y >= top && x < left + size && y < top + size;
      if (!isHere || !sheet.length) continue;
      sheet.finder = sheet.finder || new Finder(sheet);
      const found = sheet.finder.at(x, y);
      if (found < 0) continue;
      return { ring: ringOf(sheet, found), properties: propertiesOf(sheet, sheet.owner[found]) };
    }
    return null;
  }

  clear() {
    this.request?.abort();
    this.sheets = [];
    this.layer.set({ sheets: [] });
  }
}

/* Tiles [z, x, y] of what the map shows of a release, as deep as there are not too many of them.
   */
function tilesOf(map, release, deeper) {
  const [left, top, right, bottom] = visibleSquare(map, release.bounds84);
  if (left >= right || top >= bottom) return [];
  const deepest = Math.max(0, Math.min(DEEPEST, Math.round(map.getZoom()) + deeper));
  for (let z = deepest; z >= 0; z--) {
    const side = 2 ** z;
    const at = (edge) => Math.floor(edge * side);
    if ((at(right) - at(left) + 1) * (at(bottom) - at(top) + 1) > MOST_TILES) continue;
    const found = [];
    for (let x = at(left); x <= Math.min(at(right), side - 1); x++) {
      for (let y = at(top); y <= Math.min(at(bottom), side - 1); y++) found.push([z, x, y]);
    }
    return found;
  }
  return [];
}

function visibleSquare(map, [west, south, east, north]) {
  const seen = map.getBounds();
  return [
    Math.max(squareX(seen.getWest()), squareX(west)),
    Math.max(squareY(seen.getNorth()), squareY(north)),
    Math.min(squareX(seen.getEast()), squareX(east)),
    Math.min(squareY(seen.getSouth()), squareY(south)),
  ];
}

/* The sheet of a tile. A shape with many corners becomes several quadrangles; `owner` has the
   number of the shape that each belongs to. Shapes reach a little beyond the tile, and are cut
   there. */
function sheetOf(buffer, [z, x, y]) {
  const size = 2 ** -z;
  const tile = readTile(buffer) || { length: 0, columns: {}, points: [], starts: [0], extent: 1 };
  const { points, starts, extent } = tile;
  const at = (place) => Math.max(0, Math.min(extent, points[place])) / extent;
  const corners = [];
  const owner = [];
  for (let i = 0; i < tile.length; i++) {
    const ring = [];
    for (let k = starts[i]; k < starts[i + 1]; k++) ring.push([at(2 * k), at(2 * k + 1)]);
    for (const quadrangle of quadranglesOf(ring)) {
      for (const corner of quadrangle) corners.push(corner[0], corner[1]);
      owner.push(i);
    }
  }
  return {
    frame: [x * size, y * size, size],
    corners: Float32Array.from(corners),
    length: owner.length,
    owner,
    columns: tile.columns,
    properties: new Map(), // of those that someone pointed at
  };
}

/* What the tile says of a shape. Numbers are rounded there, until the API is asked (isExact). */
function propertiesOf({ columns, properties }, i) {
  if (!properties.has(i)) {
    const found = Object.fromEntries(Object.keys(columns).map((name) => [name, columns[name][i]]));
    const { west, south, width, height } = found;
    const box = [west, south, west + width, south + height];
    properties.set(i, { ...found, clear: found.clear === 1, unsure: found.unsure === 1, box });
  }
  return properties.get(i);
}

/* { density, count, clear } of all shapes that are more than noise. */
export function clearOf({ columns: { density = [], count, clear } }) {
  const found = [];
  for (let i = 0; i < density.length; i++) {
    if (clear[i]) found.push({ density: density[i], count: count[i], clear: true });
  }
  return found;
}

/* A fan around the first corner, two triangles at a time. */
function quadranglesOf(ring) {
  const found = [];
  for (let i = 1; i + 1 < ring.length; i += 2) {
    const last = ring[Math.min(i + 2, ring.length - 1)];
    found.push([ring[0], ring[i], last, ring[i + 1]]); // SW, SE, NW, NE
  }
  return found;
}

export const hasUnsure = ({ columns: { unsure = [] } }) => unsure.includes(1);

function shadesOf({ columns: { density, clear, unsure }, owner }, limits) {
  if (!density) return new Float32Array(owner.length).fill(-1); // where the ground is not known
  const shade = (i) => shadeOf(density[i], clear[i] === 1, limits, unsure[i] === 1);
  return Float32Array.from(owner, shade);
}
