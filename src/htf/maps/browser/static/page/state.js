/* What is chosen on the page, and what follows from it. */

import { boundsOf, overlap } from "./shapes.js";

export const state = {
  releases: [], // as the API lists them
  first: null, // id of the release that is shown
  second: null, // id of the release that it is compared with
  mode: "side", // or "difference"
  where: {}, // ranges of further axes, by the name of the axis
  shape: null, // what is counted (shapes.js); null is the whole map
  outlines: false,
  drawing: null, // "box" or "polygon" while one is being drawn
};

export const releaseOf = (id) => state.releases.find((release) => release.id === id) || null;

export const chosen = () => [state.first, state.second].map(releaseOf).filter(Boolean);

/* Records cannot be subtracted from people. */
export const canSubtract = () => new Set(chosen().map(({ quantity }) => quantity)).size === 1;

export const isDifference = () =>
  state.second !== null && state.mode === "difference" && canSubtract();

/* Records of which a person keeps 5, and those of which a person keeps 20, are not the same. */
export const countsSame = () => new Set(chosen().map(({ counted }) => counted)).size === 1;

/* Whether a release has a reference system, and so a map. */
export const isPlace = (release) => Boolean(release.bounds84);

export const isInDegrees = (release) => release.crs === "OGC:CRS84";

export const canDraw = () => isPlace(releaseOf(state.first));

/* In degrees, or else in coordinates of its own. A release of one axis has none. */
export const edgesOf = (release) => release.bounds84 || release.bounds;

/* Two maps are compared where both lie: elsewhere one of them would have nothing to show. */
export function isComparable(first, second) {
  if (first.id === second.id || isPlace(first) !== isPlace(second)) return false;
  const [one, other] = [edgesOf(first), edgesOf(second)];
  return Boolean(one && other) && overlap(one, other);
}

/* Drops what does not fit the release that is shown: one to compare with, and a shape elsewhere.
   */
export function dropStrays() {
  const [first, second] = [state.first, state.second].map(releaseOf);
  if (second && !isComparable(first, second)) state.second = null;
  const edges = edgesOf(first);
  if (state.shape && !(edges && overlap(boundsOf(state.shape), edges))) state.shape = null;
}

/* The chosen ranges of those axes that a release has. */
export function whereOf({ axes }) {
  const names = new Set(axes.map(({ name }) => name));
  return Object.fromEntries(Object.entries(state.where).filter(([name]) => names.has(name)));
}

/* The same, for an address of the API. */
export function whereText(release) {
  return Object.entries(whereOf(release))
    .map(([name, [low, high]]) => `where=${encodeURIComponent(`${name}=${low}:${high}`)}`)
    .join("&");
}
