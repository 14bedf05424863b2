/* The counts of all periods of a series in the shape, or in the whole map, as a small chart. */

import { byId, element, svgElement } from "../shared/elements.js";
import { countText } from "../shared/numbers.js";
import { debounced } from "../shared/timing.js";
import { words } from "../words.js";
import { countShape } from "./api.js";
import { chosenZone, periodsOf, releaseOf, state } from "./state.js";

const [WIDTH, HEIGHT] = [330, 132];
const [LEFT, RIGHT, TOP, BOTTOM] = [8, 8, 18, 18]; // around the drawing
let request = null;
let drawn = null; // { key, shape, periods, answers } of what it shows
let whenChosen = (_id) => {};

/* `onChoose` gets the id of a release. */
export function listenToChart(onChoose) {
  whenChosen = onChoose;
}

/* Asks again if the question has changed, and marks the period that is shown. */
export function fillChart() {
  const periods = periodsOf(releaseOf(state.first));
  if (periods.length < 2) {
    hide();
    return;
  }
  const key = keyOf(periods);
  if (drawn?.key === key) draw();
  else askSoon();
}

function hide() {
  request?.abort();
  drawn = null;
  byId("chart").hidden = true;
}

function keyOf(periods) {
  return JSON.stringify([periods[0].series.id, state.shape, state.where, chosenZone()]);
}

const askSoon = debounced(async () => {
  const periods = periodsOf(releaseOf(state.first));
  if (periods.length < 2) return;
  request?.abort();
  request = new AbortController();
  const { signal } = request;
  const { shape } = state;
  const key = keyOf(periods);
  try {
    const answers = await Promise.all(periods.map((one) => countShape(one, shape, signal)));
    if (signal.aborted) return;
    drawn = { key, shape, periods, answers };
    draw();
  } catch { /* the answer above says what is wrong */ }
}, 120);

function draw() {
  const { shape, periods, answers } = drawn;
  const [{ quantity }] = periods;
  const texts = answers.map(({ count, low, high }, i) => {
    const told = [count, low, high].map((value) => countText(value, quantity));
    return words.inPeriod(periods[i].series.period, ...told);
  });
  const label = words.chart(shape?.kind, texts);
  const picture = svgElement("svg", {
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    role: "img",
    "aria-label": label,
  });
  picture.append(...axesOf(periods, answers), ...periods.map((_, i) => markOf(i, texts[i])));
  const caption = element("figcaption", { textContent: words.overTime });
  byId("chart").replaceChildren(caption, picture);
  byId("chart").hidden = false;
}

/* From zero to the highest end of an interval. */
function heightOf(value) {
  const most = Math.max(...drawn.answers.map(({ high }) => high), 1);
  return HEIGHT - BOTTOM - (Math.max(0, value) / most) * (HEIGHT - TOP - BOTTOM);
}

/* The middle of a period. */
function placeOf(i) {
  return LEFT + ((i + 0.5) / drawn.periods.length) * (WIDTH - LEFT - RIGHT);
}

function axesOf(periods, answers) {
  const most = Math.max(...answers.map(({ high }) => high), 1);
  const ground = heightOf(0);
  const line = (y) => svgElement("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: y, y2: y });
  const [first, last] = [periods[0], periods.at(-1)].map(({ series }) => series.period);
  return [
    line(ground),
    line(heightOf(most)),
    textAt(LEFT, TOP - 5, "start", countText(most, periods[0].quantity)),
    textAt(LEFT, HEIGHT - 4, "start", first),
    textAt(WIDTH - RIGHT, HEIGHT - 4, "end", last),
  ];
}

function textAt(x, y, anchor, textContent) {
  const made = svgElement("text", { x, y, "text-anchor": anchor });
  made.textContent = textContent;
  return made;
}

/* The interval, the count, and a wide strip to click. */
function markOf(i, text) {
  const { periods, answers: { [i]: { count, low, high } } } = drawn;
  const [x, width] = [placeOf(i), (WIDTH - LEFT - RIGHT) / periods.length];
  const isShown = periods[i].id === state.first;
  const mark = svgElement("g", {
    class: isShown ? "mark shown" : "mark",
    "data-id": periods[i].id,
  });
  const title = svgElement("title");
  title.textContent = text;
  mark.append(
    title,
    svgElement("rect", { x: x - width / 2, y: TOP, width, height: HEIGHT - TOP - BOTTOM }),
    svgElement("line", { x1: x, x2: x, y1: heightOf(low), y2: heightOf(high) }),
    svgElement("circle", { cx: x, cy: heightOf(count), r: Math.min(4, Math.max(1.5, width / 4)) }),
  );
  mark.addEventListener("click", () => whenChosen(periods[i].id));
  return mark;
}
