/* A table that can be sorted by each of its columns. A column is { title, textOf, valueOf,
   isNumber }, and the first one names the row, which can be chosen. */

import { element } from "../shared/elements.js";

const MOST_ROWS = 500;

export class SortableTable {
  /* `onChoose` gets an entry, and `onPoint` one that is pointed at, or null. */
  constructor(place, { onChoose, onPoint = (_entry) => {} }) {
    this.place = place;
    this.onChoose = onChoose;
    this.onPoint = onPoint;
    this.sorting = { column: null, isUp: false };
    this.rows = new Map(); // by entry
  }

  /* { columns, entries, captionOf(shown, all), isChosen(entry), start }: it is sorted by the column
     with the number `start` until someone sorts it. */
  fill(content) {
    this.content = content;
    this.draw();
  }

  draw() {
    const { columns, entries, captionOf, start } = this.content;
    const place = columns.findIndex(({ title }) => title === this.sorting.column);
    const by = columns[place < 0 ? start : place];
    const isUp = place >= 0 ? this.sorting.isUp : !by.isNumber;
    const shown = sorted(entries, by, isUp).slice(0, MOST_ROWS);
    this.rows = new Map(shown.map((entry) => [entry, this.rowOf(entry)]));
    const heads = columns.map((one) => this.headOf(one, by, isUp));
    const table = element(
      "table",
      {},
      element("caption", { textContent: captionOf(shown.length, entries.length) }),
      element("thead", {}, element("tr", {}, ...heads)),
      element("tbody", {}, ...this.rows.values()),
    );
    const focused = document.activeElement?.getAttribute("data-sort");
    this.place.replaceChildren(table);
    if (focused) this.place.querySelector(`[data-sort="${CSS.escape(focused)}"]`)?.focus();
  }

  headOf({ title, isNumber }, by, isUp) {
    const isSorted = title === by.title;
    const order = isUp ? "ascending" : "descending";
    const arrow = isSorted ? (isUp ? " ▲" : " ▼") : "";
    const button = element("button", { type: "button", "data-sort": title }, title + arrow);
    button.addEventListener("click", () => {
      this.sorting = { column: title, isUp: isSorted ? !isUp : !isNumber };
      this.draw();
    });
    const properties = { scope: "col", "aria-sort": isSorted ? order : "none" };
    return element("th", { ...properties, className: isNumber ? "number" : "" }, button);
  }

  rowOf(entry) {
    const { columns: [first, ...rest], isChosen } = this.content;
    const button = element("button", { type: "button", "aria-pressed": String(isChosen(entry)) });
    button.append(first.textOf(entry));
    button.addEventListener("click", () => this.onChoose(entry));
    const cells = rest.map(({ textOf, isNumber }) => (
      element("td", { className: isNumber ? "number" : "" }, textOf(entry))
    ));
    const row = element("tr", {}, element("th", { scope: "row" }, button), ...cells);
    for (const event of ["mouseenter", "focusin"]) {
      row.addEventListener(event, () => this.onPoint(entry));
    }
    for (const event of ["mouseleave", "focusout"]) {
      row.addEventListener(event, () => this.onPoint(null));
    }
    return row;
  }

  /* Marks what is chosen anew, without sorting. */
  mark() {
    for (const [entry, row] of this.rows) {
      row.querySelector("button").setAttribute(
        "aria-pressed",
        String(this.content.isChosen(entry)),
      );
    }
  }
}

/* Entries without a value come last. */
function sorted(entries, { valueOf, isNumber }, isUp) {
  const sign = isUp ? 1 : -1;
  const compare = isNumber
    ? (a, b) => (Number.isFinite(a) ? a : -Infinity) - (Number.isFinite(b) ? b : -Infinity)
    : (a, b) => String(a).localeCompare(String(b), "en", { numeric: true });
  return [...entries].sort((a, b) => sign * compare(valueOf(a), valueOf(b)));
}
