/* Web Mercator: the earth as a square from 0 to 1, with y downwards. */

const MOST_LATITUDE = 85.051129; // where the square ends

export const squareX = (longitude) => longitude / 360 + 0.5;

export function squareY(latitude) {
  const clipped = Math.max(-MOST_LATITUDE, Math.min(MOST_LATITUDE, latitude));
  return 0.5 - Math.atanh(Math.sin((clipped * Math.PI) / 180)) / (2 * Math.PI);
}

export const longitudeOf = (x) => (x - 0.5) * 360;

export const latitudeOf = (y) => (Math.asin(Math.tanh((0.5 - y) * 2 * Math.PI)) * 180) / Math.PI;
