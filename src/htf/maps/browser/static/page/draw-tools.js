/* The buttons that draw a box or a polygon, the hint below them, and the shape on both maps. */

import { byId } from "../shared/elements.js";
import { words } from "../words.js";
import { askAgain } from "./answer.js";
import { fold, isNarrow } from "./looks.js";
import { panels } from "./panels.js";
import { leave, look } from "./pointing.js";
import { ShapeEditor } from "./shape-editor.js";
import { LEAST_CORNERS } from "./sketch.js";
import { canChooseEnd, canDraw, releaseOf, showsZones, state, tripEnds } from "./state.js";

const KINDS = ["box", "polygon"];
const editors = [];
let whenDone = () => {};
const shared = { // by the shapes of all maps
  sketched: [], // the corners of a polygon that is being drawn
  sketch: setSketch,
  finish: finishPolygon,
  get: () => (canDraw() ? state.shape : null),
  set: setShape,
  drawing: () => state.drawing,
  stop: () => startDrawing(null),
  look,
  leave,
};

/* `onDone` runs whenever a shape has its final form. */
export function makeDrawTools(onDone) {
  whenDone = onDone;
  panels.forEach(({ map }, number) => editors.push(new ShapeEditor(map, shared, number === 0)));
  for (const kind of KINDS) {
    byId(`draw-${kind}`).addEventListener("click", (event) => {
      const isByKey = event.detail === 0;
      if (isByKey) placeShape(kind);
      else startDrawing(state.drawing === kind ? null : kind);
      if (state.drawing && isNarrow()) fold(true);
    });
  }
  byId("clear").addEventListener("click", () => {
    startDrawing(null);
    state.zone = null;
    setShape(null, true);
  });
  byId("finish").addEventListener("click", finishPolygon);
  byId("undo").addEventListener("click", undoCorner);
  byId("cancel").addEventListener("click", () => startDrawing(null));
  document.addEventListener("keydown", takeKey);
}

/* `isDone` is false while the shape is being drawn or dragged. */
export function setShape(shape, isDone) {
  state.shape = shape;
  drawShapes();
  if (isDone) showHint();
  askAgain();
  if (isDone) whenDone();
}

export function drawShapes() {
  for (const editor of editors) editor.draw();
}

/* Starts to draw a box or a polygon, or with null stops drawing. */
export function startDrawing(kind) {
  state.drawing = kind;
  for (const name of KINDS) {
    byId(`draw-${name}`).setAttribute("aria-pressed", String(kind === name));
  }
  byId("sketch").hidden = !kind;
  for (const name of ["finish", "undo"]) byId(name).hidden = kind !== "polygon";
  showHint();
  for (const editor of editors) editor.sketch.cancel();
  setSketch([]);
  leave();
}

/* The corners of a polygon so far. */
function setSketch(corners) {
  shared.sketched = corners;
  byId("finish").disabled = corners.length < LEAST_CORNERS;
  byId("undo").disabled = corners.length === 0;
  drawShapes();
}

function undoCorner() {
  setSketch(shared.sketched.slice(0, -1));
}

function finishPolygon() {
  const ring = shared.sketched;
  if (ring.length < LEAST_CORNERS) return;
  setShape({ kind: "polygon", ring }, true);
  startDrawing(null);
}

function placeShape(kind) {
  startDrawing(null);
  editors[0].place(kind);
}

/* A button of the sketch takes Enter for itself. */
function takeKey(event) {
  const { key, target } = event;
  const isForButton = key === "Enter" && target.closest?.("#sketch");
  if (!state.drawing || isForButton || target.matches?.("input, select")) return;
  const actions = {
    Escape: () => startDrawing(null),
    Enter: finishPolygon,
    Backspace: undoCorner,
    Delete: undoCorner,
  };
  if (!(key in actions)) return;
  event.preventDefault(); // the button that started it still has the focus
  actions[key]();
}

function restingHint() {
  if (showsZones()) {
    const hasTrips = tripEnds(releaseOf(state.first));
    return hasTrips
      ? words.trips(state.direction, state.zone, words.clickAZone)
      : words.hints.zones;
  }
  if (!canDraw()) return "";
  if (canChooseEnd() && state.shape?.kind !== "polygon") {
    return words.trips(state.direction, state.shape && words.yourBox, words.drawABox);
  }
  return state.shape ? words.hints.drawn : words.hints.none;
}

function showHint() {
  const place = byId("hint");
  place.textContent = words.hints[state.drawing] || restingHint();
  place.classList.toggle("resting", !state.drawing);
}
