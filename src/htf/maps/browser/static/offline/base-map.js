/* The base map that a file carries, and vector tiles such as streets. */

import { showBasemap } from "../shared/basemap.js";
import { PlaceNames } from "../shared/place-names.js";
import { unpack } from "../shared/sheets.js";
import { addStreets, replaced } from "../shared/streets.js";

let reading = null; // once for all panels
let bytes = null; // of tiles, too

async function read(packed) {
  return JSON.parse(new TextDecoder().decode(await unpack(packed, Uint8Array)));
}

/* Adds it to a map; resolves to whether the file has one. */
export async function addBasemap(map, basemap) {
  if (!basemap) return false;
  reading = reading || read(basemap.around);
  const told = await reading;
  const { tiles } = basemap;
  showBasemap(map, told, replaced(tiles));
  const names = new PlaceNames(map);
  names.set(told.names);
  if (tiles) addStreets(map, tiles, names, (place) => tileAt(tiles, place));
  return true;
}

function tileAt(tiles, place) {
  bytes = bytes || Uint8Array.from(atob(tiles.bytes), (letter) => letter.charCodeAt(0));
  const range = tiles.index[place];
  return range ? unzipped(bytes.slice(...range)) : null;
}

/* Tiles may be compressed. */
function unzipped(tile) {
  if (tile[0] !== 0x1f || tile[1] !== 0x8b) return tile.buffer;
  const stream = new Blob([tile]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}
