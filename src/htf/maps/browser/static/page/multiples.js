/* Small maps of all periods of a series at once, with the colours of the large one. */

import { colourOf, divergingShade, shadeOf } from "../shared/colours.js";
import { byId, element } from "../shared/elements.js";
import { squareX, squareY } from "../shared/mercator.js";
import { differenceOf, markBeyondNoise } from "../shared/numbers.js";
import { theme } from "../shared/theme.js";
import { countBoxes, isAborted } from "./api.js";
import { areaOf } from "./difference.js";
import { panels } from "./panels.js";
import { complain } from "./problem.js";
import {
  isDifference,
  isInDegrees,
  isPlace,
  isZoned,
  periodBefore,
  periodsOf,
  releaseOf,
  state,
  whereText,
} from "./state.js";

const MOST_SQUARES = 48; // along a side
const MOST_POLYGONS = 24; // where each square is asked for as a polygon, which takes longer
const PIXELS = 480; // of the longer side of a small map
const SAME = 1e-9; // edges that differ by less of a square are the same
let limits = null; // of the colours of the map
let request = null;
let kept = new Map(); // answers, by what was asked
let whenChosen = (_id) => {};

const isOpen = () => !byId("multiples").hidden;

/* `onChoose` gets the id of a release. */
export function listenToMultiples(onChoose) {
  whenChosen = onChoose;
  byId("all-periods").addEventListener("click", () => show(!isOpen()));
  theme.onChange(() => fillMultiples());
  byId("multiples").addEventListener("keydown", ({ key }) => {
    if (key !== "Escape") return;
    show(false);
    byId("all-periods").focus();
  });
}

function show(isShown) {
  byId("multiples").hidden = !isShown;
  byId("all-periods").setAttribute("aria-pressed", String(isShown));
  if (isShown) fillMultiples();
  else request?.abort();
}

/* Draws what is seen of each period, one after another. */
export async function fillMultiples(newLimits = limits) {
  limits = newLimits;
  const first = releaseOf(state.first);
  const periods = periodsOf(first);
  const canShow = periods.length > 1 && isPlace(first) && !isZoned(first);
  byId("all-periods").hidden = !canShow;
  if (!canShow && isOpen()) show(false);
  if (!isOpen() || !limits) return;
  request?.abort();
  request = new AbortController();
  const { signal } = request;
  const grid = gridOf(first);
  const canvases = makeButtons(periods, grid);
  try {
    for (const [at, period] of periods.entries()) {
      const shades = await shadesOf(period, grid.boxes, signal);
      if (signal.aborted) return;
      paint(canvases[at], grid, shades);
    }
  } catch (error) {
    if (!isAborted(error)) complain(error);
  }
}

/* Squares of whole cells, as small as there are not too many of them, where the map now looks. */
function gridOf(release) {
  const [west, south, east, north] = release.bounds84;
  const seen = panels[0].map.getBounds();
  const most = isInDegrees(release) ? MOST_SQUARES : MOST_POLYGONS;
  const [across, up] = release.axes;
  const columns = steps([west, east], [seen.getWest(), seen.getEast()], across.cells, most);
  const rows = steps([south, north], [seen.getSouth(), seen.getNorth()], up.cells, most);
  const boxes = columns.flatMap(([left, right]) => (
    rows.map(([low, high]) => [left, low, right, high])
  ));
  if (!boxes.length) return { boxes, bounds: release.bounds84 };
  const bounds = [columns[0][0], rows[0][0], columns.at(-1)[1], rows.at(-1)[1]];
  return { boxes, bounds };
}

function steps([low, high], [from, to], cells, most) {
  const [start, end] = [Math.max(low, from), Math.min(high, to)];
  if (start >= end) return [];
  let number = cells;
  while (number > 1 && (number * (end - start)) / (high - low) > most) {
    number = Math.ceil(number / 2);
  }
  const step = (high - low) / number;
  const first = Math.floor((start - low) / step + SAME);
  const last = Math.ceil((end - low) / step - SAME);
  const edge = (at) => (at === number ? high : low + at * step);
  return Array.from({ length: last - first }, (_, i) => [edge(first + i), edge(first + i + 1)]);
}

/* A button for each period: { canvas } in the order of time. */
function makeButtons(periods, { bounds: [west, south, east, north] }) {
  const [wide, high] = [squareX(east) - squareX(west), squareY(south) - squareY(north)];
  const scale = PIXELS / Math.max(wide, high);
  const canvases = periods.map(() => element("canvas", { "aria-hidden": "true" }));
  const focused = document.activeElement?.getAttribute("data-period");
  byId("multiples").replaceChildren(...periods.map(({ id, series }, at) => {
    Object.assign(canvases[at], { width: wide * scale, height: high * scale });
    const properties = {
      type: "button",
      "data-period": id,
      "aria-pressed": String(id === state.first),
    };
    const button = element("button", properties, canvases[at], series.period);
    button.addEventListener("click", () => {
      show(false);
      whenChosen(id);
    });
    return button;
  }));
  if (focused) byId("multiples").querySelector(`[data-period="${CSS.escape(focused)}"]`)?.focus();
  return canvases;
}

async function answersOf(release, boxes, signal) {
  const key = JSON.stringify([
    release.id,
    whereText(release),
    boxes[0],
    boxes.at(-1),
    boxes.length,
  ]);
  if (!kept.has(key)) kept.set(key, await countBoxes(release, boxes, signal));
  if (kept.size > 4 * state.releases.length) kept = new Map(); // of views that are long gone
  return kept.get(key) || countBoxes(release, boxes, signal);
}

/* Densities; or the difference from the period before, or from another release, if the map shows
   that. A period with none before it is blank then. */
async function shadesOf(period, boxes, signal) {
  if (!boxes.length) return [];
  const answers = await answersOf(period, boxes, signal);
  if (!isDifference()) {
    return answers.map(({ count, low }, i) => shadeOf(count / areaOf(boxes[i]), low > 0, limits));
  }
  const base = state.follows ? periodBefore(period) : releaseOf(state.second);
  if (!base || base.id === period.id) return boxes.map(() => -1);
  const others = await answersOf(base, boxes, signal);
  const found = markBeyondNoise(answers.map((one, i) => differenceOf(one, others[i])));
  return found.map(({ count, isBeyond }, i) => (
    divergingShade(count / areaOf(boxes[i]), isBeyond, limits)
  ));
}

function paint(canvas, { boxes, bounds: [west, south, east, north] }, shades) {
  const colours = theme.colours();
  const pen = canvas.getContext("2d");
  const [left, top] = [squareX(west), squareY(north)];
  const scale = [
    canvas.width / (squareX(east) - left),
    canvas.height / (squareY(south) - top),
  ];
  const place = ([x, y]) => [(squareX(x) - left) * scale[0], (squareY(y) - top) * scale[1]];
  boxes.forEach(([x0, y0, x1, y1], i) => {
    const [[a, b], [c, d]] = [place([x0, y1]), place([x1, y0])];
    pen.fillStyle = colourOf(shades[i], colours, isDifference());
    pen.fillRect(Math.floor(a), Math.floor(b), Math.ceil(c - a) + 1, Math.ceil(d - b) + 1);
  });
  if (!state.shape) return;
  pen.strokeStyle = colours.chosen;
  pen.lineWidth = 4;
  pen.beginPath();
  state.shape.ring.forEach((corner, i) => pen[i ? "lineTo" : "moveTo"](...place(corner)));
  pen.closePath();
  pen.stroke();
}
