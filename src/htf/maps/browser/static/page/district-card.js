/* The card of districts from a file: opening and dropping one, what is wrong with it, the table. */

import { byId, element } from "../shared/elements.js";
import { countText, differenceTexts, isAtEnd } from "../shared/numbers.js";
import { noiseText } from "../shared/tooltip.js";
import { words } from "../words.js";
import { isAborted } from "./api.js";
import { readDistricts } from "./district-file.js";
import {
  boundsOfDistrict,
  chooseDistrict,
  chosenDistrict,
  colourDistricts,
  drawDistricts,
  pointAtDistrict,
} from "./district-map.js";
import { saveDistrictsAsCsv, saveDistrictsAsGeoJson } from "./district-saving.js";
import {
  countDistricts,
  districtFile,
  dropDistricts,
  nameDistricts,
  shownDistricts,
  takeDistricts,
} from "./districts.js";
import { fold, isNarrow } from "./looks.js";
import { panels } from "./panels.js";
import { sentence } from "./problem.js";
import { SortableTable } from "./sortable-table.js";
import { canCountFiles, canSubtract } from "./state.js";

let table = null;

export function listenToDistricts() {
  table = new SortableTable(byId("district-table"), {
    onChoose: ({ at }) => zoomTo(at),
    onPoint: (entry) => pointAtDistrict(entry ? entry.at : -1),
  });
  byId("open-districts").addEventListener("click", () => byId("district-file").click());
  byId("district-file").addEventListener("change", () => {
    const [file] = byId("district-file").files;
    byId("district-file").value = ""; // so that the same file can be opened again
    if (file) openFile(file);
  });
  byId("drop-districts").addEventListener("click", removeDistricts);
  byId("district-colours").addEventListener("change", () => {
    colourDistricts(byId("district-colours").checked);
  });
  byId("district-names").addEventListener("change", () => {
    nameDistricts(byId("district-names").value || null);
    fillTable();
  });
  byId("save-csv").addEventListener("click", () => say(words.saved(saveDistrictsAsCsv())));
  byId("save-geojson").addEventListener("click", () => say(words.saved(saveDistrictsAsGeoJson())));
  listenToDrops();
}

/* A file may be dropped anywhere on the page. */
function listenToDrops() {
  const hasFile = ({ dataTransfer }) => canCountFiles() && dataTransfer.types.includes("Files");
  const show = (isShown) => byId("drop-here").hidden = !isShown;
  addEventListener("dragover", (event) => {
    if (!hasFile(event)) return;
    event.preventDefault();
    show(true);
  });
  addEventListener("dragleave", ({ relatedTarget }) => show(relatedTarget !== null));
  addEventListener("drop", (event) => {
    show(false);
    if (!hasFile(event)) return;
    event.preventDefault();
    openFile(event.dataTransfer.files[0]);
  });
}

async function openFile(file) {
  byId("district-card").open = true;
  if (isNarrow()) fold(false);
  removeDistricts();
  say(words.reading(file.name));
  try {
    takeDistricts(await readDistricts(file));
  } catch (error) {
    complain(error);
    return;
  }
  fillNames();
  await fillDistricts();
  byId("district-card").scrollIntoView({ block: "nearest" });
}

function removeDistricts() {
  dropDistricts();
  complain(null);
  say("");
  drawDistricts();
  fillTable();
}

/* Counts anew, for what is chosen now. */
export async function fillDistricts() {
  byId("district-card").hidden = !canCountFiles();
  if (!districtFile()) return;
  drawDistricts();
  if (!canCountFiles()) return;
  try {
    await countDistricts((done, all) => say(words.counting(countText(done), countText(all))));
    complain(null);
    fillTable();
    drawDistricts();
  } catch (error) {
    if (!isAborted(error)) complain(error);
  }
}

function say(text) {
  byId("district-note").textContent = text;
}

function complain(error) {
  byId("district-problem").hidden = !error;
  byId("district-problem").textContent = error ? sentence(error.message) : "";
  if (error) say("");
}

function fillNames() {
  const { columns, by } = districtFile();
  const none = element("option", { value: "", textContent: words.rowNumbers });
  const options = columns.map((value) => element("option", { value, textContent: value }));
  byId("district-names").replaceChildren(none, ...options);
  byId("district-names").value = by || "";
}

function fillTable() {
  const shown = shownDistricts();
  byId("district-tools").hidden = !shown;
  byId("drop-districts").hidden = !districtFile();
  if (!shown) return;
  const notes = [shown.warning || "", shown.left ? words.leftOut(shown.left) : ""];
  say(notes.filter(Boolean).map(sentence).join(" "));
  table.fill({
    columns: columnsOf(shown),
    entries: shown.entries,
    captionOf: (some, all) => words.noted(words.districtsOf(shown.file, some, all), hasEnds(shown)),
    isChosen: ({ at }) => at === chosenDistrict(),
    start: 1,
  });
}

const hasEnds = ({ releases, entries }) =>
  entries.some(({ answers }) => answers.some((one, at) => isAtEnd(one, releases[at].quantity)));
const number = (title, valueOf, textOf) => ({ title, valueOf, textOf, isNumber: true });
const name = () => (
  { title: words.district, valueOf: ({ label }) => label, textOf: ({ label }) => label }
);
const percent = (share) => `${Math.round(100 * share)} %`;
const inside = () => (
  number(words.insideColumn, insideOf, (entry) => percent(insideOf(entry)))
);
const insideOf = ({ answers }) => Math.min(...answers.map((one) => one.inside));

function columnsOf({ releases }) {
  const [{ quantity }] = releases;
  if (releases.length > 1) {
    const counts = releases.map(countColumn);
    return [name(), ...(canSubtract() ? [change(quantity)] : []), ...counts, inside()];
  }
  return [
    name(),
    number(quantity, ({ answers: [{ count }] }) => count, ({ answers: [{ count }] }) => (
      countText(count, quantity)
    )),
    number(words.intervalColumn, ({ answers: [{ low }] }) => low, ({ answers: [one] }) => (
      intervalText(one, quantity)
    )),
    inside(),
  ];
}

const intervalText = ({ low, high }, quantity) =>
  words.range(countText(low, quantity), countText(high, quantity));

/* A number with its interval below. */
function twoLines(text, interval, className = "") {
  const lines = document.createElement("span");
  lines.append(
    element("span", { className, textContent: text }),
    element("br"),
    element("span", { className: "quiet", textContent: interval }),
  );
  return lines;
}

function countColumn({ name: title, quantity }, at) {
  return number(title, ({ answers }) => answers[at].count, ({ answers }) => (
    twoLines(countText(answers[at].count, quantity), intervalText(answers[at], quantity))
  ));
}

/* What is more than noise among all districts is marked. */
function change(quantity) {
  return number(words.difference, ({ difference }) => difference.count, (entry) => {
    const { answers, difference } = entry;
    const counts = answers.map(({ count }) => count);
    const [text, low, high] = differenceTexts(counts, difference, quantity);
    const mark = difference.isBeyond ? words.beyondNoise : noiseText(difference);
    const shown = twoLines(text, words.range(low, high), difference.isBeyond ? "beyond" : "");
    shown.append(element("br"), element("span", { className: "quiet", textContent: mark }));
    return shown;
  });
}

/* Choosing it again leaves it. */
function zoomTo(at) {
  const isLeft = at === chosenDistrict();
  chooseDistrict(isLeft ? -1 : at);
  table.mark();
  if (isLeft) return;
  const [west, south, east, north] = boundsOfDistrict(at);
  panels[0].map.fitBounds([[west, south], [east, north]], { padding: 60, maxZoom: 16 });
}

/* The row of a district that is pointed at or clicked on the map. */
export function showRow(at, isClicked) {
  const entry = shownDistricts()?.entries[at];
  for (const [other, row] of table.rows) row.classList.toggle("pointed", other === entry);
  if (!isClicked || !entry) return;
  chooseDistrict(at);
  table.mark();
  table.rows.get(entry)?.scrollIntoView({ block: "nearest" });
}
