/* The base map: water and ground below the counts, coasts, borders and roads above them as thin
   lines, and names on top. What it shows is in the file, or comes from the server of the page. */

import { theme } from "./theme.js";

const NEAR = "basemap-near";
const FAR = "basemap-far";
const EMPTY = { type: /** @type {const} */ ("FeatureCollection"), features: [] };
const FIRST_LINE = `${FAR}-rivers`; // counts are drawn below this layer
const NEVER = 24; // a zoom
// Those of high ranks show from a higher zoom on.
const LINES = [
  { kind: "rivers", colour: "river", width: 0.9, opacity: 0.75 },
  { kind: "coasts", colour: "coast", width: 0.9, opacity: 0.7 },
  { kind: "states", colour: "border", width: 0.7, opacity: 0.5 },
  { kind: "borders", colour: "border", width: 1.4, opacity: 0.75 },
];

/* The sources and layers of a style, empty at first. */
export function basemapStyle() {
  const source = { type: "geojson", data: EMPTY, tolerance: 0.2, buffer: 16 };
  const layers = [
    ...[FAR, NEAR].flatMap((name) => ["ground", "water"].map((kind) => areaLayer(name, kind))),
    ...[FAR, NEAR].flatMap((name) => LINES.map((line) => lineLayer(name, line))),
  ];
  return { sources: { [FAR]: source, [NEAR]: source }, layers };
}

function areaLayer(source, kind) {
  const paint = { "fill-color": theme.colours()[kind], "fill-antialias": kind === "water" };
  const filter = ["==", ["get", "kind"], kind];
  return { id: `${source}-${kind}`, type: "fill", source, filter, paint };
}

function lineLayer(source, { kind, colour, width, opacity }) {
  const paint = {
    "line-color": theme.colours()[colour],
    "line-width": width,
    "line-opacity": opacity,
  };
  const isShown = ["<=", ["get", "rank"], ["+", ["zoom"], 1]];
  const filter = ["all", ["==", ["get", "kind"], kind], isShown];
  const layout = { "line-join": "round" };
  return { id: `${source}-${kind}`, type: "line", source, filter, paint, layout };
}

/* The layer that counts are drawn below; none without a base map of our own. */
export const aboveCounts = (map) => (map.getLayer(FIRST_LINE) ? FIRST_LINE : undefined);

/* The layer that is drawn next above the ground and water of the base map, and above those of a
   source that were added to them. */
export function belowCounts(map, source) {
  const order = map.getLayersOrder();
  let at = order.indexOf(`${NEAR}-water`) + 1;
  while (order[at]?.startsWith(`${source}-`)) at++;
  return order[at];
}

/* Shows the base map around a map (base_map.py), or none. Tiles may replace some kinds of its lines
   from a zoom on (streets.js). */
export function showBasemap(map, told, replaced = { zoom: NEVER, kinds: [] }) {
  if (!map.getSource(NEAR)) return;
  const { parts = [], zoom = NEVER } = told || {};
  const [near = EMPTY, far = EMPTY] = parts.map(featuresOf);
  map.getSource(NEAR).setData(near);
  map.getSource(FAR).setData(far);
  const isFar = far !== EMPTY;
  for (const { kind } of LINES) {
    const end = replaced.kinds.includes(kind) ? replaced.zoom : NEVER;
    const turn = isFar ? Math.max(zoom, 0) : 0;
    map.setLayerZoomRange(`${NEAR}-${kind}`, Math.min(turn, end), end);
    map.setLayerZoomRange(`${FAR}-${kind}`, 0, Math.min(turn, end));
  }
}

/* As GeoJSON: the ground, the water on it, and lines of each kind and rank (base_map.py). */
function featuresOf({ unit, bounds: [west, south, east, north], water, lines }) {
  const ground = [[west, south], [east, south], [east, north], [west, north], [west, south]];
  const read = (steps) => cornersOf(steps, unit);
  const features = [
    featureOf("Polygon", [ground], "ground"),
    featureOf("MultiPolygon", water.map((rings) => rings.map(read)), "water"),
    ...lines.map(({ kind, rank, lines: found }) =>
      featureOf("MultiLineString", found.map(read), kind, rank)
    ),
  ];
  return { ...EMPTY, features };
}

function featureOf(type, coordinates, kind, rank = 0) {
  return { type: "Feature", properties: { kind, rank }, geometry: { type, coordinates } };
}

/* Each corner is a step from the one before. */
function cornersOf(steps, unit) {
  const found = [];
  let [x, y] = [0, 0];
  for (let i = 0; i < steps.length; i += 2) {
    x += steps[i];
    y += steps[i + 1];
    found.push([x * unit, y * unit]);
  }
  return found;
}

export function paintBasemap(map) {
  if (!map.getSource(NEAR)) return;
  const colours = theme.colours();
  for (const name of [NEAR, FAR]) {
    for (const kind of ["ground", "water"]) {
      map.setPaintProperty(`${name}-${kind}`, "fill-color", colours[kind]);
    }
    for (const { kind, colour } of LINES) {
      map.setPaintProperty(`${name}-${kind}`, "line-color", colours[colour]);
    }
  }
}
