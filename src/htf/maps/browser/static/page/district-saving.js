/* The counts of districts as files, with everything that the file of districts says of them. Names
   and order of columns are those of `htf query -o` (docs/answers.md). */

import { save } from "../shared/elements.js";
import { tableText } from "./csv.js";
import { shownDistricts } from "./districts.js";
import { statementOf } from "./privacy.js";

const ANSWERS = ["count", "std_error", "low", "high", "raw", "partial", "inside"];
const RESERVED = ["geometry", "bbox"];

/* Of one release by the names of its columns; of two with its name before each. */
function answersOf({ answers, difference }, releases) {
  const columns = {};
  releases.forEach(({ name, counted }, number) => {
    const before = releases.length > 1 ? `${name} ` : "";
    for (const column of ANSWERS) columns[before + column] = answers[number][column];
    columns[`${before}counted`] = counted;
  });
  if (difference) {
    const { count, low, high, isBeyond } = difference;
    Object.assign(columns, {
      difference: count,
      difference_low: low,
      difference_high: high,
      beyond_noise: isBeyond,
    });
  }
  return columns;
}

/* Columns of the file first. One that has the name of an answer gets `given_` before it. */
function recordsOf({ districts, entries, releases, columns }) {
  return entries.map((entry) => {
    const found = answersOf(entry, releases);
    const taken = new Set([...Object.keys(found), "label", ...RESERVED]);
    const given = columns.map((name) => [
      taken.has(name.toLowerCase()) ? `given_${name}` : name,
      districts[entry.at].properties[name],
    ]);
    return { label: entry.label, ...Object.fromEntries(given), ...found };
  });
}

const asText = (
  value,
) => (value !== null && typeof value === "object" ? JSON.stringify(value) : value);

/* What stands before the name of a file that must not be taken for a private one. */
function fileName({ file, releases }, ending) {
  const mark = releases.every((one) => one.private) ? "" : "NOT-PRIVATE-";
  return `${mark}${file.replace(/\.[^.]*$/, "")}-counts.${ending}`;
}

export function saveDistrictsAsCsv() {
  const shown = shownDistricts();
  const records = recordsOf(shown);
  const header = Object.keys(records[0]);
  const rows = records.map((record) => header.map((name) => asText(record[name])));
  return save(tableText([header, ...rows]), "text/csv", fileName(shown, "csv"));
}

export function saveDistrictsAsGeoJson() {
  const shown = shownDistricts();
  const features = recordsOf(shown).map((properties, at) => (
    { type: "Feature", geometry: shown.districts[at].geometry, properties }
  ));
  const releases = shown.releases.map(({ id, name, epsilon, unit, protects, counted }) => (
    { name, epsilon, unit, protects, counted, statement: statementOf(id) }
  ));
  const text = JSON.stringify({ type: "FeatureCollection", releases, features });
  return save(text, "application/geo+json", fileName(shown, "geojson"));
}
