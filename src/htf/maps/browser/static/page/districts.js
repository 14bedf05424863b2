/* The districts of a file, and their counts in the releases that are shown. */

import { differenceOf, markBeyondNoise } from "../shared/numbers.js";
import { words } from "../words.js";
import { countFullBoxes, countGeometries, serverLimits } from "./api.js";
import { EDGES } from "./district-file.js";
import { canSubtract, chosen, isInDegrees, state, whereOf } from "./state.js";

const BATCH = 1000; // districts in one request, at most, so that there is progress to show
const FEATURE_BYTES = 80; // of a request for a district, besides its places
const NAMES = ["name", "id", "label"]; // of columns that name districts, as in docs/answers.md
const LONGEST_NAME = 100;
let loaded = null; // { file, columns, districts, left, by }
let counted = null; // { releases, entries, warning }
let request = null;

/* The file and its counts, or null as long as there are none. */
export const shownDistricts = () => (loaded && counted ? { ...loaded, ...counted } : null);

export const districtFile = () => loaded;

export function dropDistricts() {
  request?.abort();
  loaded = null;
  counted = null;
}

/* Takes what was read (district-file.js). */
export function takeDistricts(found) {
  const limits = serverLimits();
  const districts = found.districts.map((one) => ({ ...one, ...sizeOf(one.geometry) }));
  const { file } = found;
  dropDistricts();
  loaded = { ...found, districts, by: nameColumn(found) };
  const at = districts.findIndex(({ corners }) => corners > limits.corners);
  if (at < 0) return;
  const problem = words.tooManyCorners(file, labelOf(at), districts[at].corners, limits.corners);
  dropDistricts();
  throw new Error(problem);
}

function sizeOf({ coordinates }) {
  const text = JSON.stringify(coordinates);
  return { corners: text.split(",").length / 2, bytes: text.length + FEATURE_BYTES };
}

/* A column of that name, or else the first of texts. */
function nameColumn({ columns, districts }) {
  const named = columns.find((column) => NAMES.includes(column.toLowerCase()));
  const isText = (column) => districts.every(({ properties }) => isName(properties[column]));
  return named || columns.find(isText) || null;
}

/* Neither a number nor an outline as text. */
function isName(value) {
  if (typeof value !== "string" || !value.trim() || value.length > LONGEST_NAME) return false;
  return !Number.isFinite(Number(value));
}

/* Names districts by another column; null is by their number in the file. */
export function nameDistricts(column) {
  loaded.by = column;
  counted?.entries.forEach((entry, at) => entry.label = labelOf(at));
}

function labelOf(at) {
  const value = loaded.by === null ? null : loaded.districts[at].properties[loaded.by];
  return value === null || value === undefined || value === "" ? words.row(at + 1) : String(value);
}

/* Resolves when all are counted, or when another question came between. `tell` gets how many
   are. */
export async function countDistricts(tell) {
  request?.abort();
  request = new AbortController();
  const { signal } = request;
  const { districts } = loaded;
  const releases = chosen();
  const answers = releases.map(() => []);
  const warnings = [];
  for (const [number, release] of releases.entries()) {
    for (const batch of batchesOf(districts)) {
      const found = await countBatch(release, batch, signal);
      if (signal.aborted) return;
      answers[number].push(...found.answers);
      warnings.push(found.warning);
      tell(number * districts.length + answers[number].length, releases.length * districts.length);
    }
  }
  const warning = warnings.every(Boolean) ? warnings[0] : null;
  counted = { releases, entries: entriesOf(answers), warning };
}

function* batchesOf(districts) {
  const limits = serverLimits();
  let [batch, corners, bytes] = [[], 0, 0];
  for (const one of districts) {
    const isFull = batch.length >= Math.min(BATCH, limits.polygons) ||
      corners + one.corners > limits.corners || bytes + one.bytes > limits.bytes / 2;
    if (batch.length && isFull) {
      yield batch;
      [batch, corners, bytes] = [[], 0, 0];
    }
    batch.push(one);
    corners += one.corners;
    bytes += one.bytes;
  }
  if (batch.length) yield batch;
}

/* Boxes are asked for as such on a map in degrees, so that the answers are those of
   `htf query --boxes`. */
function countBatch(release, batch, signal) {
  const areBoxes = batch[0].ranges !== null;
  const own = areBoxes ? ownAxes(release, batch[0].ranges) : [];
  if (areBoxes && isInDegrees(release)) {
    const rows = batch.map(({ ranges }) => rowOf(release, ranges, own));
    return countFullBoxes(release, rows, own.length ? {} : whereOf(release), signal);
  }
  if (own.length) throw new Error(words.rangesInMetres(own));
  return countGeometries(release, batch.map(({ geometry }) => geometry), signal);
}

/* The further axes whose ranges are in the file. */
function ownAxes({ axes }, ranges) {
  const names = axes.slice(2).map(({ name }) => name);
  return names.filter((name) => `${name}_low` in ranges && `${name}_high` in ranges);
}

/* W,S,E,N, or with ranges of further axes all low edges and then all high ones. */
function rowOf({ axes }, ranges, own) {
  const [west, south, east, north] = EDGES.map((edge) => ranges[edge]);
  if (!own.length) return [west, south, east, north];
  const further = axes.slice(2).map(({ name, low, high }) => {
    if (own.includes(name)) return [ranges[`${name}_low`], ranges[`${name}_high`]];
    const asked = state.where[name];
    if (typeof asked === "string") throw new Error(words.namesBesideRanges(name));
    return asked || [low, high];
  });
  return [
    ...[west, south, ...further.map(([low]) => low)],
    ...[east, north, ...further.map(([, high]) => high)],
  ];
}

/* { at, label, answers, difference }: of two releases that count the same, the difference. */
function entriesOf(answers) {
  const entries = loaded.districts.map((_, at) => ({
    at,
    label: labelOf(at),
    answers: answers.map((one) => one[at]),
    difference: null,
  }));
  if (answers.length < 2 || !canSubtract()) return entries;
  const found = markBeyondNoise(entries.map((one) => differenceOf(one.answers[0], one.answers[1])));
  return entries.map((entry, at) => ({ ...entry, difference: found[at] }));
}
