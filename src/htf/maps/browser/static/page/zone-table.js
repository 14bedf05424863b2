/* The zones as a table that can be sorted by each of its columns. */

import { byId, element } from "../shared/elements.js";
import { countText, differenceTexts, shortNumber } from "../shared/numbers.js";
import { words } from "../words.js";
import { chosen, chosenZone, isDifference } from "./state.js";
import { shownZones } from "./zone-map.js";

const MOST_ROWS = 500;
const sorting = { column: null, isUp: false };
let whenChosen = (_label) => {};
let filled = null; // what the table has

/* `onChoose` gets the label of a zone. */
export function listenToTable(onChoose) {
  whenChosen = onChoose;
}

/* A column is { title, textOf, valueOf, isNumber }. */
function columnsOf({ level }) {
  const [{ quantity }] = chosen();
  const textsOf = (entry) =>
    isDifference()
      ? differenceTexts([entry.first.count, entry.second.count], entry, quantity)
      : [entry.count, entry.low, entry.high].map((value) => countText(value, quantity));
  const number = (title, valueOf, textOf) => ({ title, valueOf, textOf, isNumber: true });
  const text = (title, valueOf) => ({ title, valueOf, textOf: valueOf, isNumber: false });
  return [
    text(level.name, ({ label }) => label),
    ...level.higher.map((name, i) => text(name, ({ above }) => above[i])),
    number(quantity, ({ count }) => count, (entry) => textsOf(entry)[0]),
    number(
      words.intervalColumn,
      ({ low }) => low,
      (entry) => words.range(textsOf(entry)[1], textsOf(entry)[2]),
    ),
    number(
      words.per(level.unit),
      ({ density }) => density,
      (entry) => densityText(entry),
    ),
  ];
}

function densityText({ density, clear, isBeyond }) {
  if (!Number.isFinite(density)) return words.noArea;
  const size = shortNumber(Math.abs(density));
  return (clear ?? isBeyond) ? `${density < 0 ? "−" : ""}${size}` : words.noise;
}

/* Shows what the map shows, if that has changed. */
export function fillTable() {
  const zones = shownZones();
  byId("zone-card").hidden = !zones;
  if (zones && zones !== filled) draw(zones);
  filled = zones;
}

function draw(zones) {
  const columns = columnsOf(zones);
  const place = columns.findIndex(({ title }) => title === sorting.column);
  const by = columns[place < 0 ? columns.length - 3 : place];
  const isUp = place >= 0 && sorting.isUp;
  const entries = sorted(zones.entries[0], by, isUp);
  const table = element(
    "table",
    {},
    element("caption", { textContent: captionOf(entries.length) }),
    element("thead", {}, element("tr", {}, ...columns.map((one) => headOf(one, by, isUp)))),
    element("tbody", {}, ...entries.slice(0, MOST_ROWS).map((entry) => rowOf(entry, columns))),
  );
  const focused = document.activeElement?.getAttribute("data-sort");
  byId("zone-table").replaceChildren(table);
  if (focused) byId("zone-table").querySelector(`[data-sort="${CSS.escape(focused)}"]`)?.focus();
}

function captionOf(number) {
  const [{ name }, second] = chosen();
  const title = isDifference() ? words.minus([name, second.name]) : name;
  return words.tableOf(title, Math.min(number, MOST_ROWS), number);
}

/* Zones without a value come last. */
function sorted(entries, { valueOf, isNumber }, isUp) {
  const sign = isUp ? 1 : -1;
  const compare = isNumber
    ? (a, b) => (Number.isFinite(a) ? a : -Infinity) - (Number.isFinite(b) ? b : -Infinity)
    : (a, b) => a.localeCompare(b, "en", { numeric: true });
  return [...entries].sort((a, b) => sign * compare(valueOf(a), valueOf(b)));
}

function headOf({ title, isNumber }, by, isUp) {
  const isSorted = title === by.title;
  const order = isUp ? "ascending" : "descending";
  const arrow = isSorted ? (isUp ? " ▲" : " ▼") : "";
  const button = element("button", { type: "button", "data-sort": title }, title + arrow);
  button.addEventListener("click", () => {
    sorting.isUp = isSorted ? !isUp : !isNumber;
    sorting.column = title;
    draw(shownZones());
  });
  const properties = { scope: "col", "aria-sort": isSorted ? order : "none" };
  return element("th", { ...properties, className: isNumber ? "number" : "" }, button);
}

function rowOf(entry, columns) {
  const [first, ...rest] = columns;
  const isChosen = entry.label === chosenZone();
  const button = element("button", { type: "button", "aria-pressed": String(isChosen) });
  button.textContent = first.textOf(entry);
  button.addEventListener("click", () => whenChosen(entry.label));
  const cells = rest.map(({ textOf, isNumber }) => (
    element("td", { textContent: textOf(entry), className: isNumber ? "number" : "" })
  ));
  return element("tr", {}, element("th", { scope: "row" }, button), ...cells);
}
