/* A slider with two ends for each further axis, such as hours; for one of names, a list. */

import { byId, element } from "../shared/elements.js";
import { toSixDigits } from "../shared/numbers.js";
import { words } from "../words.js";
import { selectOf } from "./selects.js";
import { chosen, furtherAxes, state } from "./state.js";

/* `onChange` runs whenever a range changes. */
export function fillRanges(onChange) {
  const axes = new Map();
  for (const release of chosen()) {
    for (const axis of furtherAxes(release)) {
      const others = axes.get(axis.name)?.releases || [];
      axes.set(axis.name, { axis, releases: [...others, release] });
    }
  }
  for (const name of Object.keys(state.where)) if (!axes.has(name)) delete state.where[name];
  const fields = [...axes.values()].map(({ axis, releases }) => {
    const only = releases.length < chosen().length ? words.onlyIn(releases[0].name) : "";
    if (axis.names) return selectOf(axis, only, onChange);
    return new Range(axis, only, onChange).field;
  });
  byId("ranges").replaceChildren(...fields);
}

class Range {
  constructor(axis, only, onChange) {
    this.axis = axis;
    this.step = (axis.high - axis.low) / axis.cells;
    this.only = only;
    if (typeof state.where[axis.name] === "string") delete state.where[axis.name];
    const [low, high] = state.where[axis.name] || [axis.low, axis.high];
    this.inputs = [
      this.makeInput("low", low, words.lowEnd(axis.name)),
      this.makeInput("high", high, words.highEnd(axis.name)),
    ];
    this.output = element("output");
    this.field = element(
      "fieldset",
      { className: "range" },
      element("legend", {}, `${axis.name}: `, this.output),
      element("div", { className: "range-track" }, ...this.inputs),
    );
    this.inputs.forEach((input, number) => {
      input.addEventListener("input", () => {
        this.read(number);
        this.show();
        onChange();
      });
    });
    this.show();
  }

  makeInput(end, value, label) {
    return element("input", {
      type: "range",
      min: 0,
      max: this.axis.cells,
      step: 1,
      value: Math.round((value - this.axis.low) / this.step),
      "aria-label": label,
      "data-end": end,
    });
  }

  /* Reads the sliders into the state. An end that would meet the other keeps one cell away. */
  read(moved) {
    const { name, low, high, cells } = this.axis;
    let [from, to] = this.inputs.map(({ value }) => +value);
    if (from >= to && moved === 0) from = to - 1;
    else if (from >= to) to = from + 1;
    if (from < 0) [from, to] = [0, 1];
    if (to > cells) [from, to] = [cells - 1, cells];
    this.inputs[0].value = from;
    this.inputs[1].value = to;
    const at = (cell) => (cell === cells ? high : toSixDigits(low + cell * this.step));
    if (from === 0 && to === cells) delete state.where[name];
    else state.where[name] = [at(from), at(to)];
  }

  show() {
    const { name, low, cells } = this.axis;
    const range = state.where[name];
    const text = range ? words.range(...range.map((end) => this.textOf(end))) : words.wholeRange;
    this.output.textContent = text + this.only;
    const [from, to] = this.inputs.map(({ value }) => `${(100 * value) / cells}%`);
    this.field.style.setProperty("--from", from);
    this.field.style.setProperty("--to", to);
    for (const input of this.inputs) {
      input.setAttribute("aria-valuetext", this.textOf(low + input.value * this.step));
    }
  }

  /* With one digit more than it takes to tell cells apart. */
  textOf(value) {
    return String(+value.toFixed(Math.max(0, 1 + Math.ceil(-Math.log10(this.step)))));
  }
}
