/* A shape is { kind: "box" | "polygon", ring: [[longitude, latitude], ...] }. The ring of a box
   is SW, SE, NE, NW. */

export function boxOf(west, south, east, north) {
  return { kind: "box", ring: [[west, south], [east, south], [east, north], [west, north]] };
}

/* The box with these two corners, in whatever order. */
export function boxBetween([x0, y0], [x1, y1]) {
  return boxOf(Math.min(x0, x1), Math.min(y0, y1), Math.max(x0, x1), Math.max(y0, y1));
}

/* West, south, east and north. */
export function boundsOf({ ring }) {
  const longitudes = ring.map(([x]) => x);
  const latitudes = ring.map(([, y]) => y);
  return [
    Math.min(...longitudes),
    Math.min(...latitudes),
    Math.max(...longitudes),
    Math.max(...latitudes),
  ];
}

/* As GeoJSON, which repeats the first corner at the end. */
export const polygonOf = (ring) => ({ type: "Polygon", coordinates: [[...ring, ring[0]]] });

export function isOnEarth(place) {
  const [longitude, latitude] = place;
  return Math.abs(longitude) <= 360 && Math.abs(latitude) <= 90;
}

/* Whether two bounds have a place in common. */
export const overlap = (a, b) => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];
