/* The count of one shape in as many releases as someone ticks, as a table. */

import { byId, element, save } from "../shared/elements.js";
import { countText, isAtEnd } from "../shared/numbers.js";
import { debounced } from "../shared/timing.js";
import { words } from "../words.js";
import { saveAddress } from "./address.js";
import { countShape, isAborted } from "./api.js";
import { tableText } from "./csv.js";
import { complain } from "./problem.js";
import { SortableTable } from "./sortable-table.js";
import { chosen, countsEnds, isComparable, releaseOf, state } from "./state.js";

const FILE = "releases.csv";
const ANSWERS = ["count", "std_error", "low", "high", "raw", "partial", "inside"];
let table = null;
let request = null;
let shown = []; // { release, answer }

/* `onCompare` gets the id of a release. */
export function listenToSeveral(onCompare) {
  table = new SortableTable(byId("several-table"), {
    onChoose: ({ release }) => onCompare(release.id),
  });
  byId("several-card").open = state.also.length > 0; // as a link says
  byId("several-card").addEventListener("toggle", fillSeveral);
  byId("tick-all").addEventListener("click", () => tick(others().map(({ id }) => id)));
  byId("tick-none").addEventListener("click", () => tick([]));
  byId("save-several").addEventListener("click", saveTable);
}

const others = () =>
  countsEnds() ? [] : state.releases.filter((one) => isComparable(releaseOf(state.first), one));

/* What is on the map counts too. */
function ticked() {
  const rest = others().filter(({ id }) => state.also.includes(id) && id !== state.second);
  return [...chosen(), ...rest];
}

function tick(ids) {
  state.also = ids;
  saveAddress();
  fillSeveral();
}

/* Lists the releases of the same place, and asks those that are ticked. */
export function fillSeveral() {
  const list = others();
  byId("several-card").hidden = list.length < 2;
  if (list.length < 2 || !byId("several-card").open) return;
  const boxes = list.map((release) => {
    const input = element("input", { type: "checkbox", value: release.id });
    input.checked = state.also.includes(release.id) || release.id === state.second;
    input.disabled = release.id === state.second;
    input.addEventListener("change", () => {
      const rest = state.also.filter((id) => id !== release.id);
      tick(input.checked ? [...rest, release.id] : rest);
    });
    return element("label", { className: "switch" }, input, words.releaseOption(release));
  });
  const focused = document.activeElement?.getAttribute("value");
  byId("several-list").replaceChildren(...boxes);
  if (focused) byId("several-list").querySelector(`[value="${CSS.escape(focused)}"]`)?.focus();
  askSoon();
}

const askSoon = debounced(async () => {
  request?.abort();
  request = new AbortController();
  const { signal } = request;
  const { shape } = state;
  const releases = ticked();
  try {
    const answers = await Promise.all(releases.map((one) => countShape(one, shape, signal)));
    if (signal.aborted) return;
    shown = releases.map((release, at) => ({ release, answer: answers[at] }));
    draw(shape);
  } catch (error) {
    if (!isAborted(error)) complain(error);
  }
}, 120);

function draw(shape) {
  const number = (title, valueOf, textOf) => ({ title, valueOf, textOf, isNumber: true });
  const textOf = (release, value) => countText(value, release.quantity);
  const percent = ({ answer }) => `${Math.round(100 * answer.inside)} %`;
  const isNoted = shown.some(({ release, answer }) => isAtEnd(answer, release.quantity));
  table.fill({
    columns: [
      {
        title: words.releaseColumn,
        valueOf: ({ release }) => release.name,
        textOf: ({ release }) => release.name,
      },
      number(
        words.either(shown.map(({ release }) => release.quantity)),
        ({ answer }) => answer.count,
        ({ release, answer }) => textOf(release, answer.count),
      ),
      number(words.intervalColumn, ({ answer }) => answer.low, ({ release, answer }) => (
        words.range(textOf(release, answer.low), textOf(release, answer.high))
      )),
      number(words.insideColumn, ({ answer }) => answer.inside, percent),
    ],
    entries: shown,
    captionOf: (_, all) => words.noted(words.severalOf(all, shape?.kind), isNoted),
    isChosen: ({ release }) => [state.first, state.second].includes(release.id),
    start: 0,
  });
}

function saveTable() {
  const rows = shown.map(({ release, answer }) => [
    release.name,
    release.epsilon,
    ...ANSWERS.map((name) => answer[name]),
    release.counted,
  ]);
  const isPrivate = shown.every(({ release }) => release.private);
  save(
    tableText([["release", "epsilon", ...ANSWERS, "counted"], ...rows]),
    "text/csv",
    `${isPrivate ? "" : "NOT-PRIVATE-"}${FILE}`,
  );
}
