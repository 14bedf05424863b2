/* Vector tiles of your own, such as streets, with the layers of Protomaps or of OpenMapTiles: parks
   and water below the counts; roads, rivers, borders and buildings above them as thin lines. Layers
   that are in neither are thin lines too. */

import { belowCounts } from "./basemap.js";
import { theme } from "./theme.js";

const SCHEME = "htf-tiles";
const SOURCE = "streets";
const COVER = "streets-cover"; // the ground of the area that tiles cover
const BUILDING_ZOOM = 14;
const DEEPEST = 22;
const ROADS = ["roads", "transportation"];
const BORDERS = ["boundaries", "boundary"];
const GREENS = ["landuse", "landcover", "park", "natural"];
const BUILDINGS = ["buildings", "building"];
const PLACES = ["places", "place"];
// Points, and lines that are also in another layer.
const NOT_DRAWN = new Set([
  ...["earth", "pois", "poi", "housenumber", "mountain_peak", "aerodrome_label"],
  ...["water_name", "transportation_name", "physical_line", "physical_point", ...PLACES],
]);
const MAJOR = ["highway", "major_road", "motorway", "trunk", "primary"];
const MEDIUM = ["medium_road", "secondary", "tertiary"];
const FAINT = ["path", "track", "service", "pier", "ferry", "other"];
const GREEN_KINDS = [
  ...["park", "forest", "wood", "grass", "grassland", "meadow", "nature_reserve", "national_park"],
  ...["protected_area", "cemetery", "garden", "golf_course", "recreation_ground", "scrub"],
];
const RANKS = { // of names in OpenMapTiles, which say how important, not from which zoom on
  city: 6,
  town: 9,
  village: 11,
  suburb: 11,
  quarter: 12,
  hamlet: 13,
  neighbourhood: 13,
};
const LARGE = ["country", "state", "region", "province", "continent"]; // which the base map names

const kindOf = ["coalesce", ["get", "kind"], ["get", "class"], ["get", "pmap:kind"], ""];
const isOf = (kinds) => ["in", kindOf, ["literal", kinds]];
const isArea = ["match", ["geometry-type"], ["Polygon", "MultiPolygon"], true, false];
const byRoad = (major, medium, faint, other) => [
  "case",
  ...[isOf(MAJOR), major, isOf(MEDIUM), medium, isOf(FAINT), faint, other],
];
const roadWidth = (more = 0) => [
  ...["interpolate", ["linear"], ["zoom"]],
  ...[8, byRoad(0.7 + more, 0.4 + more / 2, 0.1, 0.2)],
  ...[12, byRoad(1.4 + more, 0.9 + more, 0.3, 0.5 + more / 2)],
  ...[16, byRoad(3 + more, 2 + more, 0.8 + more, 1.4 + more)],
];

/* How each layer of the tiles is drawn: areas below the counts, lines above them. */
function looksOf(name) {
  if (name === "water") {
    const isInland = ["!", isOf(["ocean", "sea"])]; // seas are cut into pieces
    return [
      { type: "fill", colour: "water", filter: isArea },
      { type: "line", colour: "river", filter: isInland, width: 0.7, opacity: 0.7 },
    ];
  }
  if (name === "waterway") return [{ type: "line", colour: "river", width: 0.8, opacity: 0.75 }];
  if (GREENS.includes(name)) {
    const filter = name === "park" ? isArea : ["all", isArea, isOf(GREEN_KINDS)];
    return [{ type: "fill", colour: "park", filter }];
  }
  if (ROADS.includes(name)) {
    const opacity = byRoad(0.8, 0.65, 0.35, 0.55);
    return [ // the edges tell them from counts of about their own colour
      { type: "line", part: "-edge", colour: "roadEdge", width: roadWidth(1.4), opacity: 0.35 },
      { type: "line", colour: "road", width: roadWidth(), opacity },
    ];
  }
  if (BORDERS.includes(name)) {
    const filter = ["!=", ["get", "maritime"], 1];
    return [{ type: "line", colour: "border", filter, width: 0.8, opacity: 0.6 }];
  }
  if (BUILDINGS.includes(name)) {
    const minzoom = BUILDING_ZOOM;
    return [{ type: "line", colour: "road", minzoom, width: 0.5, opacity: 0.3 }];
  }
  if (NOT_DRAWN.has(name)) return [];
  return [{ type: "line", colour: "road", width: 0.6, opacity: 0.4 }];
}

const idOf = (name, { type, part = "" }) => `streets-${name}-${type}${part}`;

const ORDER = [...GREENS, "water", "waterway", ...BUILDINGS, ...BORDERS, ...ROADS];

/* Those of the tiles from the lowest up; if they are not known, all that may be there. */
function ordered(layers) {
  const known = layers.length ? layers : [...ORDER, ...PLACES];
  const place = (name) => ORDER.indexOf(name);
  return [...new Set(known)].sort((one, other) => place(one) - place(other));
}

/* The lines of the base map that tiles replace, and from which zoom on. */
export function replaced(tiles) {
  if (!tiles) return undefined;
  const names = ordered(tiles.layers);
  const kinds = [];
  if (names.includes("water")) kinds.push("coasts");
  if (names.includes("water") || names.includes("waterway")) kinds.push("rivers");
  if (BORDERS.some((name) => names.includes(name))) kinds.push("states", "borders");
  return { zoom: tiles.minzoom, kinds };
}

/* Adds tiles to a map, once. `load` gives the bytes of tile z/x/y, or null. */
export function addStreets(map, tiles, names, load) {
  if (map.getSource(SOURCE)) return;
  const { minzoom, maxzoom, bounds } = tiles;
  globalThis.maplibregl.addProtocol(SCHEME, async ({ url }, { signal }) => {
    const tile = await load(url.slice(SCHEME.length + 3), signal);
    return { data: tile || new ArrayBuffer(0) };
  });
  const addresses = [`${SCHEME}://{z}/{x}/{y}`];
  map.addSource(SOURCE, { type: "vector", tiles: addresses, minzoom, maxzoom, bounds });
  const layers = ordered(tiles.layers);
  const drawn = layers.flatMap((name) =>
    looksOf(name).map((look) => ({ ...look, name, id: idOf(name, look) }))
  );
  if (layers.includes("water")) addCover(map, bounds, minzoom);
  for (const { id, name, type, filter, width, opacity, minzoom: least = minzoom } of drawn) {
    const paint = type === "line" ? { "line-width": width, "line-opacity": opacity } : {};
    const layer = { id, type, source: SOURCE, "source-layer": name, minzoom: least, paint };
    const below = type === "fill" ? belowCounts(map, SOURCE) : undefined;
    map.addLayer({ ...layer, ...(filter && { filter }) }, below);
  }
  const repaint = () => paint(map, drawn);
  repaint();
  theme.onChange(repaint);
  map.on("idle", () => names.setMore(placesOf(map, layers)));
}

/* Hides the water of the base map below it, which is coarser. */
function addCover(map, [west, south, east, north], minzoom) {
  const ring = [[west, south], [east, south], [east, north], [west, north], [west, south]];
  const data = { type: "Polygon", coordinates: [ring] };
  map.addSource(COVER, { type: "geojson", data });
  const layer = { id: COVER, type: "fill", source: COVER, minzoom, maxzoom: DEEPEST + 2 };
  map.addLayer(layer, belowCounts(map, SOURCE));
  map.setPaintProperty(COVER, "fill-antialias", false);
}

function paint(map, drawn) {
  const colours = theme.colours();
  if (map.getLayer(COVER)) map.setPaintProperty(COVER, "fill-color", colours.ground);
  for (const { id, type, colour } of drawn) {
    map.setPaintProperty(id, `${type}-color`, colours[colour]);
  }
}

/* The names of places in the tiles that are loaded, as rows for PlaceNames. */
function placesOf(map, layers) {
  const found = new Map();
  for (const sourceLayer of PLACES.filter((name) => layers.includes(name))) {
    for (const { properties, geometry } of map.querySourceFeatures(SOURCE, { sourceLayer })) {
      const name = properties["name:en"] || properties.name;
      const kind = properties.kind || properties.class || properties["pmap:kind"];
      if (!name || geometry.type !== "Point" || LARGE.includes(kind)) continue;
      const rank = RANKS[kind] ?? properties.min_zoom ?? properties["pmap:min_zoom"] ?? 12;
      found.set(name, [name, ...geometry.coordinates, rank, "place"]);
    }
  }
  return [...found.values()];
}
