/* The zones as a table that can be sorted by each of its columns. */

import { byId } from "../shared/elements.js";
import { countText, differenceTexts, isAtEnd, shortNumber } from "../shared/numbers.js";
import { words } from "../words.js";
import { SortableTable } from "./sortable-table.js";
import { chosen, chosenZone, isDifference } from "./state.js";
import { shownZones } from "./zone-map.js";

let table = null;
let filled = null; // what the table has

/* `onChoose` gets the label of a zone. */
export function listenToTable(onChoose) {
  table = new SortableTable(byId("zone-table"), { onChoose: ({ label }) => onChoose(label) });
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
  table.fill({
    columns,
    entries: zones.entries[0],
    captionOf,
    isChosen: ({ label }) => label === chosenZone(),
    start: columns.length - 3, // the counts
  });
}

function captionOf(shown, all) {
  const [{ name, quantity }, second] = chosen();
  const title = isDifference() ? words.minus([name, second.name]) : name;
  const [entries] = shownZones().entries;
  const isNoted = !isDifference() && entries.some((one) => isAtEnd(one, quantity));
  return words.noted(words.tableOf(title, shown, all), isNoted);
}
