/* The address keeps what is chosen and seen, so that a link shows it to others:
   r and c releases, a further ones, f whether c follows r as the period before, m mode, w ranges,
   b box or p polygon, l level, z zone, d direction of trips, o outlines, v view. */

import { toSixDigits } from "../shared/numbers.js";
import { panels } from "./panels.js";
import { boundsOf, boxOf, isOnEarth } from "./shapes.js";
import { isPlace, rangeText, releaseOf, showsZones, state } from "./state.js";
import { debounced } from "../shared/timing.js";

const numbersOf = (text) => text.split(",").map(Number);
const areFinite = (numbers, length) => numbers.length === length && numbers.every(Number.isFinite);

/* Reads the address into the state, and ignores what makes no sense. Returns the view, or null.
   */
export function readAddress() {
  const asked = new URLSearchParams(location.hash.slice(1));
  const known = (id) => (releaseOf(id) ? id : null);
  state.first = known(asked.get("r")) || state.first || state.releases[0].id;
  state.second = known(asked.get("c"));
  state.also = (asked.get("a") || "").split(",").filter(releaseOf);
  state.follows = asked.get("f") === "1";
  state.mode = asked.get("m") === "difference" ? "difference" : "side";
  state.outlines = asked.get("o") === "1";
  state.where = readWhere(asked.getAll("w"));
  state.level = asked.get("l");
  state.zone = asked.get("z");
  state.direction = asked.get("d") === "to" ? "to" : "from";
  const shape = readShape(asked.get("b"), asked.get("p"));
  const canBe = shape && (!isPlace(releaseOf(state.first)) || shape.ring.every(isOnEarth));
  state.shape = canBe ? shape : null;
  return readView(asked.get("v"));
}

function readWhere(texts) {
  const where = {};
  for (const text of texts) {
    const [, name, low, high] = /^(\w+)=([^:]+):(.+)$/.exec(text) || [];
    if (!name) continue;
    const areNumbers = Number.isFinite(+low) && Number.isFinite(+high);
    if (!areNumbers) where[name] = `${low}:${high}`; // a level and a name
    else if (+low < +high) where[name] = [+low, +high];
  }
  return where;
}

function readShape(box, polygon) {
  if (box !== null) {
    const edges = numbersOf(box);
    const isBox = areFinite(edges, 4) && edges[0] < edges[2] && edges[1] < edges[3];
    return isBox ? boxOf(...edges) : null;
  }
  const ring = polygon === null ? [] : polygon.split(";").map(numbersOf);
  const isRing = ring.length > 2 && ring.every((place) => areFinite(place, 2));
  return isRing ? { kind: "polygon", ring } : null;
}

function readView(text) {
  const [latitude, longitude, zoom, ...rest] = text === null ? [] : numbersOf(text);
  const center = [longitude, latitude];
  const isView = !rest.length && areFinite([...center, zoom], 3) && isOnEarth(center);
  return isView ? { center, zoom } : null;
}

export function writeAddress() {
  const { first, second, follows, mode, where, shape, outlines, zone, direction } = state;
  const asked = [["r", first]];
  if (second) asked.push(["c", second]);
  if (state.also.length) asked.push(["a", state.also.join()]);
  if (follows) asked.push(["f", "1"]);
  if (second || follows) asked.push(["m", mode]);
  for (const [name, range] of Object.entries(where)) {
    asked.push(["w", `${name}=${rangeText(range)}`]);
  }
  if (showsZones()) asked.push(["l", state.level]);
  if (zone) asked.push(["z", zone]);
  if (direction !== "from") asked.push(["d", direction]);
  if (shape) asked.push(shapeText(shape));
  if (outlines) asked.push(["o", "1"]);
  const { map } = panels[0];
  const { lng, lat } = map.getCenter();
  asked.push(["v", [toSixDigits(lat), toSixDigits(lng), +map.getZoom().toFixed(2)].join()]);
  const texts = asked.map(([name, value]) => `${name}=${readable(value)}`);
  history.replaceState(null, "", `#${texts.join("&")}`);
}

export const saveAddress = debounced(writeAddress, 150);

function shapeText(shape) {
  if (shape.kind === "box") return ["b", boundsOf(shape).map(toSixDigits).join()];
  return ["p", shape.ring.map((place) => place.map(toSixDigits).join()).join(";")];
}

/* Encoded, but for signs that do no harm there. */
function readable(value) {
  return encodeURIComponent(value).replace(/%(2C|3B|3A|3D)/g, (code) => decodeURIComponent(code));
}
