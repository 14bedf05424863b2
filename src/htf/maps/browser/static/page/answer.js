/* The count in the shape, or in the whole map, with its interval. */

import { byId, element } from "../shared/elements.js";
import {
  countText,
  differenceOf,
  differenceTexts,
  excludesZero,
  isAtEnd,
  markBeyondNoise,
  roundedCount,
} from "../shared/numbers.js";
import { words } from "../words.js";
import { countShape, isAborted } from "./api.js";
import { complain } from "./problem.js";
import { canChooseEnd, chosen, chosenZone, isZoned, state, tripEnds } from "./state.js";

const WORTH_SAYING = 0.005; // a share that rounds to 1 %
let request = null;
let turns = 0;
let isAsking = false;
let latest = null;

/* { shape, shown, answers } of what the page now shows, or null. */
export const latestAnswer = () => latest;

/* Stops a question about what was chosen before. */
export function stopAsking() {
  request?.abort();
}

/* One question at a time, and the newest one next: while a shape is dragged, the count follows it
   one answer behind. */
export async function askAgain() {
  turns += 1;
  const place = byId("answer");
  place.setAttribute("aria-busy", "true");
  if (isAsking) return;
  isAsking = true;
  for (let turn = null; turn !== turns;) {
    turn = turns;
    await askOnce();
  }
  isAsking = false;
  place.setAttribute("aria-busy", "false");
}

async function askOnce() {
  const { shape } = state;
  const shown = chosen();
  request = new AbortController();
  const { signal } = request;
  try {
    const asked = shown.map((release) => countShape(release, shape, signal));
    latest = { shape, shown, answers: await Promise.all(asked) };
    byId("answer").replaceChildren(...rowsOf(latest), ...explanationsOf(latest.shown));
    complain(null);
  } catch (error) {
    if (isAborted(error)) return;
    latest = null;
    byId("answer").replaceChildren();
    complain(error);
  }
}

function rowsOf({ shape, shown, answers }) {
  const rows = answers.map((answer, number) => answerRow(shown[number], shape, answer));
  if (answers.length < 2 || answers.some(({ inside }) => inside === 0)) return rows;
  const [first, second] = shown;
  if (first.quantity === second.quantity) {
    rows.push(differenceRow(answers, first.quantity));
  } else {
    const note = element("div", { className: "quiet", textContent: words.noDifference(shown) });
    rows.push(rowOf(words.difference, note));
  }
  return rows;
}

function answerRow(release, shape, answer) {
  const name = isZoned(release)
    ? words.countedInZone(release.name, chosenZone(), tripEnds(release) && state.direction)
    : canChooseEnd() && shape?.kind === "box"
    ? words.countedInZone(release.name, words.yourBox, state.direction)
    : words.countedIn(release.name, shape?.kind);
  if (answer.inside === 0) {
    return rowOf(name, answer.warning || words.outsideTheMap(shape?.kind));
  }
  const { quantity, counted } = release;
  const texts = [answer.count, answer.low, answer.high].map((value) => countText(value, quantity));
  return countRow({ name, texts, counted }, ...notesOf(answer, shape, quantity));
}

function differenceRow([first, second], quantity) {
  const [found] = markBeyondNoise([differenceOf(first, second)]);
  const [className, textContent] = found.isBeyond
    ? ["beyond", words.beyondNoise]
    : ["quiet", excludesZero(found) ? words.maybeChanceAlone : words.onlyNoise];
  const note = element("div", { className, textContent });
  const texts = differenceTexts([first.count, second.count], found, quantity);
  return countRow({ name: words.difference, texts, counted: quantity }, note);
}

/* What a reader should know to read the count. */
function notesOf(answer, shape, quantity) {
  const { count, partial, inside } = answer;
  const notes = [];
  if (partial > WORTH_SAYING) notes.push(words.byArea(percentOf(partial), shape?.kind));
  if (roundedCount(count, quantity) < 0) notes.push(words.belowZero(quantity));
  if (isAtEnd(answer, quantity)) notes.push(words.atEnd);
  if (inside < 1 - WORTH_SAYING) {
    const isLess = inside < WORTH_SAYING;
    notes.push(words.onTheMap(isLess ? words.lessThanOne : percentOf(inside), shape?.kind));
  }
  return notes.map(quietNote);
}

const quietNote = (textContent) => element("div", { className: "quiet small", textContent });

/* What the counts mean, once for all rows. */
const explanationsOf = (releases) =>
  [...new Set(releases.map(({ explained }) => explained))].filter(Boolean).map(quietNote);

const percentOf = (share) => `${Math.round(100 * share)} %`;

function countRow({ name, texts, counted }, ...notes) {
  const [count, low, high] = texts;
  const number = element("span", { className: "row-count", textContent: count });
  const between = element("span", { textContent: words.between(low, high) });
  const interval = element("span", { textContent: words.intervalName });
  return rowOf(
    name,
    element("div", { className: "row-line" }, `${words.about} `, number, ` ${counted}`),
    element("div", { className: "row-interval" }, between, " ", interval),
    ...notes,
  );
}

function rowOf(name, ...children) {
  const heading = element("div", { className: "row-name", textContent: name });
  return element("div", { className: "row" }, heading, ...children);
}
