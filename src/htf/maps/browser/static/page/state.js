/* What is chosen on the page, and what follows from it. */

import { boundsOf, overlap } from "./shapes.js";

export const state = {
  releases: [], // as the API lists them
  first: null, // id of the release that is shown
  second: null, // id of the release that it is compared with
  also: [], // ids of further releases, which the table of several releases has
  follows: false, // whether that is always the period before, in a series
  mode: "side", // or "difference"
  where: {}, // ranges of further axes, or names on them, by the name of the axis
  level: null, // of zones
  zone: null, // the label of a zone of that level
  direction: "from", // or "to": which end of trips the zone is
  shape: null, // what is counted (shapes.js); null is the whole map
  outlines: false,
  drawing: null, // "box" or "polygon" while one is being drawn
};

export const releaseOf = (id) => state.releases.find((release) => release.id === id) || null;

export const chosen = () => [state.first, state.second].map(releaseOf).filter(Boolean);

/* The releases of the same series, in the order of time; none for a release of its own. */
export function periodsOf({ series }) {
  if (!series) return [];
  return state.releases.filter((one) => one.series?.id === series.id);
}

/* The period before, or null. */
export function periodBefore(release) {
  const periods = periodsOf(release);
  return periods[periods.findIndex(({ id }) => id === release.id) - 1] || null;
}

/* What the colours of a release belong to: all periods of a series have the same. */
export function scaleOf(id) {
  const series = releaseOf(id)?.series;
  return series ? `series ${series.id}` : id;
}

/* Records cannot be subtracted from people. */
export const canSubtract = () => new Set(chosen().map(({ quantity }) => quantity)).size === 1;

export const isDifference = () =>
  state.second !== null && state.mode === "difference" && canSubtract();

/* Records of which a person keeps 5, and those of which a person keeps 20, are not the same. */
export const countsSame = () => new Set(chosen().map(({ counted }) => counted)).size === 1;

/* Whether a release has a reference system, and so a map. */
export const isPlace = (release) => Boolean(release.bounds84);

/* Whether it has zones, with names and outlines, and no boxes. */
export const isZoned = (release) => release.zones.length > 0;

export const showsZones = () => isZoned(releaseOf(state.first));

export const levelsOf = (release) => (isZoned(release) ? release.zones[0].levels : []);

/* The axes of both ends of trips, or null. */
export function tripEnds({ zones }) {
  return zones.length > 1 ? { from: zones[0].axis, to: zones[1].axis } : null;
}

export const chosenZone = () => (showsZones() ? state.zone : null);

/* The axis of the zone that was chosen. */
const chosenAxis = (release) => tripEnds(release)?.[state.direction] || release.zones[0].axis;

/* The axis whose zones are drawn: of trips, the other end than that of a zone that was chosen. */
export function drawnAxis(release) {
  const ends = tripEnds(release);
  if (!ends || !state.zone) return chosenAxis(release);
  return state.direction === "from" ? ends.to : ends.from;
}

export const isInDegrees = (release) => release.crs === "OGC:CRS84";

/* The axes of both ends of trips between places. */
export const ENDS = { from: ["x", "y"], to: ["dest_x", "dest_y"] };

/* Whether both ends are places on the map, in degrees. */
export function hasEnds(release) {
  const names = release.axes.map(({ name }) => name);
  const areThere = [...ENDS.from, ...ENDS.to].every((name) => names.includes(name));
  return areThere && isInDegrees(release) && release.axes.every((axis) => !axis.names);
}

/* Two releases are compared by where trips start. */
export const canChooseEnd = () => !state.second && hasEnds(releaseOf(state.first));

/* Whether what is drawn is where trips end. */
export const countsEnds = () => canChooseEnd() && state.direction === "to";

/* Whether the map shows another end than the tiles do, or only trips of a box. */
export const showsEnds = () =>
  canChooseEnd() && (state.direction === "to" || state.shape?.kind === "box");

/* The end that the map then shows: the other one than that of a box. */
export function drawnEnd() {
  if (state.shape?.kind !== "box") return state.direction;
  return state.direction === "from" ? "to" : "from";
}

/* All low ends and then all high ones, from ranges by the names of axes, within those that are
   chosen. */
export function fullRow({ axes }, ranges) {
  const pairs = axes.map(({ name, low, high }) => {
    const [own, asked] = [ranges[name], state.where[name]];
    if (!own || !asked) return own || asked || [low, high];
    const from = Math.max(own[0], asked[0]);
    return [from, Math.max(from, Math.min(own[1], asked[1]))];
  });
  return [...pairs.map(([low]) => low), ...pairs.map(([, high]) => high)];
}

/* Districts are counted by where trips start. */
export const canCountFiles = () => canDraw() && !countsEnds();

/* Boxes and polygons. */
export const canDraw = () => isPlace(releaseOf(state.first)) && !showsZones();

/* The axes beside the map. */
export function furtherAxes(release) {
  if (!isZoned(release)) return release.axes.slice(2);
  const zoned = new Set(release.zones.map(({ axis }) => axis));
  return release.axes.filter(({ name }) => !zoned.has(name));
}

/* In degrees, or else in coordinates of its own. A release of one axis has none. */
export const edgesOf = (release) => release.bounds84 || release.bounds;

/* Two maps are compared where both lie: elsewhere one of them would have nothing to show. */
export function isComparable(first, second) {
  if (first.id === second.id || isPlace(first) !== isPlace(second)) return false;
  if (isZoned(first) || isZoned(second)) return layerOf(first) === layerOf(second);
  const [one, other] = [edgesOf(first), edgesOf(second)];
  return Boolean(one && other) && overlap(one, other);
}

/* All names of zones, in one text. */
function layerOf({ axes, zones }) {
  const zoned = new Set(zones.map(({ axis }) => axis));
  return JSON.stringify(axes.filter(({ name }) => zoned.has(name)));
}

/* Drops what does not fit the release that is shown: one to compare with, and a shape elsewhere.
   */
export function dropStrays() {
  const first = releaseOf(state.first);
  if (state.follows) state.second = periodBefore(first)?.id || null;
  if (!first.series) state.follows = false;
  const second = releaseOf(state.second);
  if (second && !isComparable(first, second)) state.second = null;
  dropStrayZones(first);
  const edges = isZoned(first) ? null : edgesOf(first);
  if (state.shape && !(edges && overlap(boundsOf(state.shape), edges))) state.shape = null;
}

function dropStrayZones(release) {
  const levels = levelsOf(release);
  if (!levels.includes(state.level)) state.level = levels[0] || null;
  if (!isZoned(release)) state.zone = null;
  if (!state.zone) return;
  const { names } = release.axes.find(({ name }) => name === release.zones[0].axis);
  const { labels } = names.levels.find(({ name }) => name === state.level);
  if (!labels.includes(state.zone)) state.zone = null;
}

/* The chosen ranges of those axes that a release has. */
export function whereOf({ axes }) {
  const names = new Set(axes.map(({ name }) => name));
  return Object.fromEntries(Object.entries(state.where).filter(([name]) => names.has(name)));
}

/* The zone that was chosen, as if it were such a range. */
export function zoneWhere(release) {
  return state.zone ? { [chosenAxis(release)]: `${state.level}:${state.zone}` } : {};
}

/* The same for the map, on which only trips depend on it. */
export const tripsWhere = (release) => (tripEnds(release) ? zoneWhere(release) : {});

export const rangeText = (asked) => (typeof asked === "string" ? asked : asked.join(":"));

/* The ranges, for an address of the API. */
export function whereText(release, more = {}) {
  return Object.entries({ ...whereOf(release), ...more })
    .map(([name, asked]) => `where=${encodeURIComponent(`${name}=${rangeText(asked)}`)}`)
    .join("&");
}
