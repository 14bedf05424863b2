/* The zones of a level. A level is { name, labels, above, area, geometries }: each zone has a
   label, those of higher levels, an area (0 without an outline) and an outline as GeoJSON, or null.
   Answers are columns { count, low, high }, one entry for each zone. */

import { divergingShade, shadeOf } from "./colours.js";
import { squareX, squareY } from "./mercator.js";
import { differenceOf, markBeyondNoise } from "./numbers.js";

/* A zone is more than noise if its interval lies above zero, as in htf.maps.zone_views. */
export function entriesOf(level, answers) {
  return level.labels.map((label, i) => {
    const [count, low, high] = [answers.count[i], answers.low[i], answers.high[i]];
    const clear = low > 0 && count > 0;
    const density = level.area[i] > 0 ? count / level.area[i] : NaN;
    return { label, above: level.above[i], count, low, high, density, clear };
  });
}

/* What the first release has more than the second. */
export function differencesOf(level, first, second) {
  const found = level.labels.map((label, i) => {
    const [one, other] = [first, second].map((answers) => ({
      count: answers.count[i],
      low: answers.low[i],
      high: answers.high[i],
      std_error: answers.std_error[i],
      raw: answers.raw[i],
    }));
    const difference = differenceOf(one, other);
    const density = level.area[i] > 0 ? difference.count / level.area[i] : 0;
    return { label, above: level.above[i], ...difference, density, first: one, second: other };
  });
  return markBeyondNoise(found);
}

export function shadesOf(entries, limits) {
  return entries.map(({ density, clear }) => shadeOf(density, clear, limits));
}

export function differenceShades(entries, limits) {
  return entries.map(({ density, isBeyond }) => divergingShade(density, isBeyond, limits));
}

/* All rings of a polygon or of several, in longitude and latitude. */
function placesOf(geometry) {
  if (!geometry) return [];
  return geometry.type === "Polygon" ? geometry.coordinates : geometry.coordinates.flat();
}

/* The same in the Mercator square, as the overlay draws them. */
export function ringsOf(geometry) {
  return placesOf(geometry).map((ring) => ring.map(([x, y]) => [squareX(x), squareY(y)]));
}

/* Finds the zone at a place. */
export class ZoneFinder {
  constructor(geometries) {
    this.rings = geometries.map(placesOf);
    this.bounds = this.rings.map(boundsOf);
  }

  /* Its number, or -1. */
  at({ lng, lat }) {
    return this.bounds.findIndex(([west, south, east, north], i) =>
      lng >= west && lng <= east && lat >= south && lat <= north && this.isInside(i, lng, lat)
    );
  }

  /* A place is inside if a line from it to the east crosses rings an odd number of times. */
  isInside(i, lng, lat) {
    let isIn = false;
    for (const ring of this.rings[i]) {
      ring.forEach(([bx, by], k) => {
        const [ax, ay] = ring.at(k - 1);
        if ((ay > lat) === (by > lat)) return;
        if (lng < ax + ((lat - ay) / (by - ay)) * (bx - ax)) isIn = !isIn;
      });
    }
    return isIn;
  }
}

function boundsOf(rings) {
  const bounds = [Infinity, Infinity, -Infinity, -Infinity];
  for (const [x, y] of rings.flat()) {
    bounds[0] = Math.min(bounds[0], x);
    bounds[1] = Math.min(bounds[1], y);
    bounds[2] = Math.max(bounds[2], x);
    bounds[3] = Math.max(bounds[3], y);
  }
  return bounds;
}
