/* What the file carries (sheets.py, rectangles.py and shapes.py write it), read when it is first
   asked for. A sheet is { length, area, clear, columns of numbers, shade, limits } and where its
   places are: rectangles with corners, or zones with geometries. */

import { changeShade, CLEAR, divergingShade, shadeOf, UNSURE } from "../shared/colours.js";
import { byId } from "../shared/elements.js";
import { beyondEnd } from "../shared/limits.js";
import { readSheet, unpack } from "../shared/sheets.js";

const COLUMNS = ["count", "first", "second", "low", "high"];

export const data = JSON.parse(byId("data").textContent);
export const isDifference = data.sides !== null;

const kept = new Map(); // what was read, by its name

/* Reads once. */
function once(name, read) {
  if (!kept.has(name)) kept.set(name, read());
  return kept.get(name);
}

export const inFrame = (packed) => readSheet({ ...packed, frame: data.frame });

/* Where the places of a sheet are: in the sheet, or among the shapes that several sheets share. */
async function readPlaces(packed) {
  const area = await unpack(packed.area, Float32Array);
  if (packed.corners) return { ...await inFrame(packed), area };
  const text = new TextDecoder().decode(await unpack(packed.shapes, Uint8Array));
  return { area, geometries: JSON.parse(text) };
}

const placesOf = (packed) => {
  const { shape } = packed;
  if (shape === undefined) return readPlaces(packed);
  return once(`shape ${shape}`, async () => {
    const shared = data.shapes[shape];
    return { ...shared, ...await readPlaces(shared) };
  });
};

export async function readColumns(packed) {
  const names = COLUMNS.filter((name) => packed[name]);
  const read = names.map(async (name) => [name, await unpack(packed[name], Float32Array)]);
  return Object.fromEntries(await Promise.all(read));
}

async function readSheetOf(packed, toShade) {
  const { unit } = data;
  const places = { unit, ...packed, ...await placesOf(packed) };
  if (packed.trips) return { ...places, trips: await readTrips(packed.trips) };
  const columns = await readColumns(packed);
  const clear = await unpack(packed.clear, Uint8Array);
  return shaded({ ...places, ...columns, clear }, toShade);
}

/* Trips have numbers for both ends, and for pairs of zones if they fit into the file. */
async function readTrips({ from, to, pairs }) {
  const read = [from, to, pairs].map((packed) => packed && readColumns(packed));
  const [first, second, both] = await Promise.all(read);
  return { from: first, to: second, pairs: both };
}

/* With the shade of each place. Two counts are subtracted, so that all three agree. */
export function shaded(sheet, toShade = shadeOf) {
  const { first, second, area, clear, limits } = sheet;
  const count = first ? first.map((one, i) => one - second[i]) : sheet.count;
  const density = Array.from(count, (one, i) => (area[i] > 0 ? one / area[i] : 0));
  const shade = density.map((one, i) =>
    toShade(one, clear[i] === CLEAR, limits, clear[i] === UNSURE)
  );
  const found = density.map((one, i) => ({ density: one, isBeyond: clear[i] === CLEAR }))
    .filter((_, i) => area[i] > 0);
  const marked = found.filter(({ isBeyond }) => isBeyond);
  const drawn = toShade === changeShade ? marked : found; // a change colours nothing else
  return {
    ...sheet,
    count,
    density,
    shade: Float32Array.from(shade),
    marked: marked.length,
    beyond: first ? beyondEnd(drawn, limits) : null,
    hasUnsure: clear.includes(UNSURE),
  };
}

/* The sheets of a step on a panel: one for each size of squares, or level of zones. */
export const stepSheets = (panel, at) =>
  once(
    `panel ${panel} ${at}`,
    () =>
      Promise.all(data.panels[panel].steps[at].map((packed) =>
        readSheetOf(packed, isDifference ? divergingShade : shadeOf)
      )),
  );

/* The change to a step; blank for the first one, which has none before it. */
export const changeSheets = (at) =>
  once(`change ${at}`, () => {
    const packed = data.changes[at];
    if (packed) return Promise.all(packed.map((one) => readSheetOf(one, changeShade)));
    return Promise.all(data.changes[1].map(async ({ shape, limits }) => {
      const places = await placesOf({ shape });
      return { ...places, limits, shade: new Float32Array(places.area.length).fill(-1) };
    }));
  });
