/* Polygons as well-known text, such as POLYGON ((4 52, 5 52, 5 53, 4 52)). */

const HEAD = /^\s*(?:SRID=(\d+);)?\s*(MULTIPOLYGON|POLYGON)\s*(?:Z|M|ZM)?\s*(?=\(|EMPTY)/i;
const PLACE = /[^\s(),]+(?:\s+[^\s(),]+)+/g;

export const isPolygonText = (text) => HEAD.test(text);

/* { system, geometry }: the number of a reference system or null, and GeoJSON. A text that cannot
   be read has no geometry. */
export function readWkt(text) {
  const [head, system = null, kind] = HEAD.exec(text) || [];
  const type = kind?.toUpperCase() === "POLYGON" ? "Polygon" : "MultiPolygon";
  return { system, geometry: kind ? geometryOf(type, text.slice(head.length)) : null };
}

function geometryOf(type, body) {
  const asJson = body
    .replace(PLACE, (place) => JSON.stringify(place.trim().split(/\s+/).slice(0, 2).map(Number)))
    .replaceAll("(", "[")
    .replaceAll(")", "]");
  try {
    return { type, coordinates: JSON.parse(asJson) };
  } catch {
    return null;
  }
}
