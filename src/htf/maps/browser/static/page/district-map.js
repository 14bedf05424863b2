/* The districts of a file on the maps: outlines or colours, and the ones that stand out. */

import { divergingShade, shadeOf } from "../shared/colours.js";
import { shownDistricts } from "./districts.js";
import { panels, shownPanels } from "./panels.js";
import { canCountFiles, isDifference } from "./state.js";

const EARTH = 6371.0088; // km
const RADIANS = Math.PI / 180;
const areas = new WeakMap(); // in km², by geometry
let isColoured = false;
let chosen = -1; // the number of a district
let pointed = -1;
let limits = null; // of the colours of the map
let geometries = [];

export const areDistrictsColoured = () =>
  isColoured && canCountFiles() && shownDistricts() !== null;

/* With the limits of the colours of the map, which they share. */
export function drawDistricts(newLimits = limits) {
  limits = newLimits;
  const shown = canCountFiles() ? shownDistricts() : null;
  const wanted = shown ? shown.districts.map(({ geometry }) => geometry) : [];
  if (wanted.length !== geometries.length || wanted[0] !== geometries[0]) {
    geometries = wanted;
    [chosen, pointed] = [-1, -1];
  }
  shownPanels().forEach((panel, number) => {
    if (!shown) {
      panel.districts.clear();
      return;
    }
    panel.districts.set({
      geometries,
      shades: shown.entries.map((entry) => shadeIn(entry, number)),
      diverging: isDifference(),
      isFilled: isColoured,
    });
  });
  standOut();
}

export function colourDistricts(areColoured) {
  isColoured = areColoured;
  drawDistricts();
}

function shadeIn({ at, answers, difference }, number) {
  if (!isColoured || !limits) return -1;
  const area = areaOf(geometries[at]);
  if (difference && isDifference()) {
    return divergingShade(difference.count / area, difference.isBeyond, limits);
  }
  const { count, low } = answers[number] || answers[0];
  return shadeOf(densityOf(at, answers[number] || answers[0]), low > 0 && count > 0, limits);
}

/* Per km² of what lies on the map. */
export function densityOf(at, { count, inside }) {
  return count / (areaOf(geometries[at]) * inside);
}

function areaOf(geometry) {
  if (!areas.has(geometry)) {
    const { type, coordinates } = geometry;
    const polygons = type === "Polygon" ? [coordinates] : coordinates;
    areas.set(
      geometry,
      polygons.reduce((sum, [outer, ...holes]) => (
        sum + ringArea(outer) - holes.reduce((part, hole) => part + ringArea(hole), 0)
      ), 0),
    );
  }
  return areas.get(geometry);
}

/* On a sphere. */
function ringArea(ring) {
  let sum = 0;
  for (let i = 1; i < ring.length; i++) {
    const [[ax, ay], [bx, by]] = [ring[i - 1], ring[i]];
    sum += (bx - ax) * RADIANS * (2 + Math.sin(ay * RADIANS) + Math.sin(by * RADIANS));
  }
  return Math.abs(sum * EARTH ** 2) / 2;
}

/* The number of the district at a place, or -1. */
export const districtAt = (lngLat) => (geometries.length ? panels[0].districts.at(lngLat) : -1);

export const pointedDistrict = () => pointed;
export const chosenDistrict = () => chosen;

export function pointAtDistrict(at) {
  if (at === pointed) return;
  pointed = at;
  standOut();
}

export function chooseDistrict(at) {
  chosen = at;
  standOut();
}

function standOut() {
  if (!geometries.length && chosen < 0 && pointed < 0) return;
  for (const { districts, overlay } of shownPanels()) {
    const numbers = geometries.length ? [...new Set([chosen, pointed])] : [];
    overlay.choose(numbers.flatMap((at) => districts.ringsOf(at)));
  }
}

/* West, south, east and north. */
export function boundsOfDistrict(at) {
  const places = geometries[at].coordinates.flat(geometries[at].type === "Polygon" ? 1 : 2);
  const bounds = [Infinity, Infinity, -Infinity, -Infinity];
  for (const [x, y] of places) {
    bounds[0] = Math.min(bounds[0], x);
    bounds[1] = Math.min(bounds[1], y);
    bounds[2] = Math.max(bounds[2], x);
    bounds[3] = Math.max(bounds[3], y);
  }
  return bounds;
}
