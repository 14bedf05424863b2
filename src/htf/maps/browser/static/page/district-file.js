/* Reads a file of districts: GeoJSON of polygons, or columns of boxes or of well-known text. What
   cannot be read is an error in words. */

import { words } from "../words.js";
import { readTable } from "./csv.js";
import { boxOf, isOnEarth, polygonOf } from "./shapes.js";
import { isPolygonText, readWkt } from "./wkt.js";

export const EDGES = ["west", "south", "east", "north"];
const GEOMETRY = ["geometry", "wkt", "geom", "the_geom"]; // names of columns
const MOST_BYTES = 64 * 2 ** 20;
const DEGREES = /CRS84$|EPSG:+4326$|^4326$/i;
const LEAST_RING = 4; // places of a ring, of which the last is the first again

/* { file, columns, districts, left } where a district is { geometry, properties, ranges }: `ranges`
   are the edges of a box by the names of their columns, and null for polygons; `left` is how many
   rows were left out, because they have no polygon. */
export async function readDistricts(file) {
  if (file.size > MOST_BYTES) throw new Error(words.fileTooLarge(file.name, MOST_BYTES / 2 ** 20));
  const text = await textOf(file);
  const found = /^\s*[{[]/.test(text) ? readGeoJson(text, file.name) : readCsv(text, file.name);
  if (!found.districts.length) throw new Error(words.noPolygons(file.name));
  return { file: file.name, ...found };
}

async function textOf(file) {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
  } catch {
    throw new Error(words.notUtf8(file.name));
  }
}

function readGeoJson(text, name) {
  let told;
  try {
    told = JSON.parse(text);
  } catch (error) {
    throw new Error(words.notJson(name, error.message));
  }
  const system = told.crs?.properties?.name;
  if (system && !DEGREES.test(system)) throw new Error(words.otherSystem(name, system));
  const features = featuresOf(told);
  if (!features) throw new Error(words.notGeoJson(name, told?.type || ""));
  const districts = features.flatMap((feature) => {
    const geometry = tidyGeometry(feature?.geometry, name);
    return geometry ? [{ geometry, properties: feature.properties || {}, ranges: null }] : [];
  });
  const columns = [...new Set(districts.flatMap(({ properties }) => Object.keys(properties)))];
  return { columns, districts, left: features.length - districts.length };
}

function featuresOf(told) {
  if (Array.isArray(told.features)) return told.features;
  if (told.type === "Feature") return [told];
  if (told.type === "GeometryCollection") return told.geometries.map((geometry) => ({ geometry }));
  return "coordinates" in told ? [{ geometry: told }] : null;
}

/* Closed rings of two numbers each; null without a polygon. */
function tidyGeometry(geometry, name) {
  const polygons = {
    Polygon: (one) => [one.coordinates],
    MultiPolygon: (one) => one.coordinates,
  }[geometry?.type]?.(geometry);
  if (!Array.isArray(polygons)) return null;
  const tidy = polygons.map((rings) => rings.map((ring) => tidyRing(ring, name)));
  const whole = tidy.filter((rings) => rings.length && rings.every(Boolean));
  if (!whole.length || whole.length < tidy.length) return null;
  if (geometry.type === "Polygon") return { type: "Polygon", coordinates: whole[0] };
  return { type: "MultiPolygon", coordinates: whole };
}

function tidyRing(ring, name) {
  if (!Array.isArray(ring)) return null;
  const places = ring.map((place) => [place?.[0], place?.[1]]);
  if (!places.every((place) => place.every(Number.isFinite))) return null;
  const stray = places.find((place) => !isOnEarth(place));
  if (stray) throw new Error(words.notDegreesIn(name, stray));
  if (String(places[0]) !== String(places.at(-1))) places.push(places[0]);
  return places.length < LEAST_RING ? null : places;
}

function readCsv(text, name) {
  const plain = text.replace(/^\uFEFF/, "");
  const isWanted = (column) => EDGES.includes(column) || GEOMETRY.includes(column.toLowerCase());
  const { header, rows, separator } = readTable(plain, isWanted);
  const twice = header.find((column, at) => header.indexOf(column) < at);
  if (twice) throw new Error(words.twoColumns(name, twice));
  const records = rows.map((row) => Object.fromEntries(header.map((key, at) => [key, row[at]])));
  const wkt = header.find((column) => GEOMETRY.includes(column.toLowerCase())) ||
    header.find((column) => isPolygonText(records[0]?.[column] || ""));
  const missing = EDGES.filter((edge) => !header.includes(edge));
  if (missing.length && !wkt) throw new Error(words.noEdges(name, missing));
  const read = missing.length
    ? (record) => ofText(record, wkt, name)
    : (record, at) => ofBox(record, { at, separator, name });
  const districts = records.map(read).filter(Boolean);
  return { columns: header, districts, left: records.length - districts.length };
}

function ofText(properties, column, name) {
  const { system, geometry } = readWkt(properties[column] || "");
  if (system && !DEGREES.test(system)) throw new Error(words.otherSystem(name, `EPSG:${system}`));
  const tidy = tidyGeometry(geometry, name);
  return tidy && { geometry: tidy, properties, ranges: null };
}

/* With decimal commas if the separator is another sign. Further axes have columns such as
   hour_low and hour_high. */
function ofBox(properties, { at, separator, name }) {
  const keys = Object.keys(properties);
  const names = keys.filter((key) => EDGES.includes(key) || /_(low|high)$/.test(key));
  const ranges = Object.fromEntries(names.map((key) => {
    const text = (properties[key] || "").trim();
    return [key, text ? Number(separator === "," ? text : text.replace(",", ".")) : NaN];
  }));
  const [west, south, east, north] = EDGES.map((edge) => ranges[edge]);
  if (!(west <= east && south <= north)) throw new Error(words.notABoxIn(name, at + 1));
  for (const place of [[west, south], [east, north]]) {
    if (!isOnEarth(place)) throw new Error(words.notDegreesIn(name, place));
  }
  return { geometry: polygonOf(boxOf(west, south, east, north).ring), properties, ranges };
}
