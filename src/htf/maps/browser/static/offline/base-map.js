/* The base map that a file carries. */

import { showBasemap } from "../shared/basemap.js";
import { PlaceNames } from "../shared/place-names.js";
import { unpack } from "../shared/sheets.js";

let reading = null; // once for all panels

async function read(packed) {
  return JSON.parse(new TextDecoder().decode(await unpack(packed, Uint8Array)));
}

/* Adds it to a map; resolves to whether the file has one. */
export async function addBasemap(map, basemap) {
  if (!basemap) return false;
  reading = reading || read(basemap.around);
  const told = await reading;
  showBasemap(map, told);
  new PlaceNames(map).set(told.names);
  return true;
}
