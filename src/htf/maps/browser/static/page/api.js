/* Questions to the server. All that the page shows comes from here. */

import { words } from "../words.js";
import { boundsOf, boxOf, polygonOf } from "./shapes.js";
import {
  countsEnds,
  drawnAxis,
  ENDS,
  fullRow,
  hasEnds,
  isInDegrees,
  isPlace,
  isZoned,
  state,
  whereOf,
  whereText,
  zoneWhere,
} from "./state.js";
import { askForToken, keptToken } from "./token.js";

/* Below the page, which may be behind a proxy with a prefix of its own. */
const RELEASES = "api/releases";
export const RETRY_DELAY = 3000; // milliseconds

/* The server cannot be reached, or is busy: worth asking again. */
export class Unreachable extends Error {
  constructor(message, wait = RETRY_DELAY) {
    super(message);
    this.wait = wait;
  }
}

export const isAborted = (error) => error.name === "AbortError";

/**
 * @param {string} path
 * @param {{ body?: object, signal?: AbortSignal }} options
 */
export async function request(path, { body, signal } = {}) {
  const token = keptToken();
  const headers = {
    ...(token && { Authorization: `Bearer ${token}` }),
    ...(body && { "Content-Type": "application/json" }),
  };
  const options = { headers, signal, ...(body && { method: "POST", body: JSON.stringify(body) }) };
  const reply = await fetch(path, options).catch((error) => {
    throw isAborted(error) ? error : new Unreachable(words.noAnswer);
  });
  if (reply.status === 401) {
    await askForToken(token !== null);
    return request(path, { body, signal });
  }
  if (!reply.ok) throw await errorOf(reply);
  return reply;
}

async function errorOf(reply) {
  const told = await reply.json().catch(() => null); // a proxy may not send JSON
  const detail = told?.detail || words.status(reply.status);
  const message = typeof detail === "string" ? detail : JSON.stringify(detail);
  const isProxys = reply.status === 502 || reply.status === 504; // it cannot reach the server
  if (!isProxys && !reply.headers.has("Retry-After")) return new Error(message);
  const wait = 1000 * reply.headers.get("Retry-After");
  return new Unreachable(words.tryingAgain(message), Math.max(RETRY_DELAY, wait));
}

async function ask(path, options) {
  return (await request(path, options)).json();
}

/* An address below a release, such as count?box=…&where=…; empty parts of the query are left out.
   */
function pathOf(id, rest = "", ...query) {
  const path = `${RELEASES}/${encodeURIComponent(id)}${rest}`;
  const asked = query.filter(Boolean).join("&");
  return asked ? `${path}?${asked}` : path;
}

let limits = null; // of one request, as the server says

export const serverLimits = () => limits;

export async function listReleases() {
  const found = [];
  let next = RELEASES;
  while (next) {
    const told = await ask(next);
    found.push(...told.releases);
    ({ limits } = told);
    next = told.next && RELEASES + new URL(told.next, location.href).search;
  }
  return found;
}

export const describeRelease = (id) => ask(pathOf(id));

export const downloadPath = (id) => pathOf(id, "/download");

export async function fetchTile(release, key, signal) {
  const path = pathOf(release.id, `/tiles/${key}.mvt`, whereText(release));
  return (await request(path, { signal })).arrayBuffer();
}

export const fetchBasemap = (release) => ask(pathOf(release.id, "/basemap"));

/* A tile z/x/y of the base map; one that cannot be had is left out. */
export async function fetchStreets(place, signal) {
  try {
    return (await request(`api/basemap/${place}.mvt`, { signal })).arrayBuffer();
  } catch (error) {
    if (isAborted(error)) throw error;
    return null;
  }
}

export const leavesPath = (release) => pathOf(release.id, "/leaves", whereText(release));

export const fetchLeaves = (path) => ask(path);

/* The outlines of the zones of the level that is shown. */
export function fetchZones(release, signal) {
  const [level, axis] = [state.level, drawnAxis(release)].map(encodeURIComponent);
  return ask(pathOf(release.id, "/zones", `level=${level}&axis=${axis}`), { signal });
}

/* Columns of answers, with a row for each zone. */
export function fetchTable(release, by, more, signal) {
  const asked = `by=${encodeURIComponent(by)}`;
  return ask(pathOf(release.id, "/table", asked, whereText(release, more)), { signal });
}

export function countBox(release, box, signal) {
  const asked = box ? `box=${box.join()}` : "";
  return ask(pathOf(release.id, "/count", asked, whereText(release)), { signal });
}

/* { answers, warning } of polygons, as GeoJSON. */
export function countGeometries(release, geometries, signal) {
  const features = geometries.map((geometry) => ({ type: "Feature", properties: {}, geometry }));
  const body = { type: "FeatureCollection", features };
  return ask(pathOf(release.id, "/polygons", whereText(release)), { body, signal });
}

async function countPolygons(release, rings, signal) {
  return (await countGeometries(release, rings.map(polygonOf), signal)).answers;
}

/* The count in a shape, or without one in the whole map; where there are zones, in the one that was
   chosen. A box in degrees is no box on a map in metres, so it is asked for as a polygon. */
export async function countShape(release, shape, signal) {
  if (isZoned(release)) {
    return ask(pathOf(release.id, "/count", whereText(release, zoneWhere(release))), { signal });
  }
  if (shape && countsEnds() && hasEnds(release)) return countTripsTo(release, shape, signal);
  const isBox = shape?.kind === "box" && (isInDegrees(release) || !isPlace(release));
  if (!shape || isBox) return countBox(release, shape && boundsOf(shape), signal);
  return (await countPolygons(release, [shape.ring], signal))[0];
}

async function countTripsTo(release, shape, signal) {
  if (shape.kind !== "box") throw new Error(words.tripsNeedBox);
  const [west, south, east, north] = boundsOf(shape);
  const [x, y] = ENDS.to;
  const row = fullRow(release, { [x]: [west, east], [y]: [south, north] });
  const { answers: [answer], warning } = await countFullBoxes(release, [row], {}, signal);
  return { ...answer, warning };
}

/* The counts in many boxes, given in degrees. */
export async function countBoxes(release, boxes, signal) {
  if (!isInDegrees(release)) {
    return countPolygons(release, boxes.map((box) => boxOf(...box).ring), signal);
  }
  return (await countFullBoxes(release, boxes, whereOf(release), signal)).answers;
}

/* { answers, warning } of boxes that may have ranges of all axes. */
export async function countFullBoxes(release, boxes, where, signal) {
  const found = await ask(pathOf(release.id, "/counts"), { body: { boxes, where }, signal });
  const columns = Object.entries(found).filter(([, values]) => Array.isArray(values));
  const answers = boxes.map((_, i) =>
    Object.fromEntries(columns.map(([name, values]) => [name, values[i]]))
  );
  return { answers, warning: found.warning };
}
