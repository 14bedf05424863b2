/* The buttons that draw a box or a polygon, the hint below them, and the shape on both maps. */

import { byId } from "../shared/elements.js";
import { words } from "../words.js";
import { askAgain } from "./answer.js";
import { fold, isNarrow } from "./looks.js";
import { panels } from "./panels.js";
import { leave, look } from "./pointing.js";
import { ShapeEditor } from "./shape-editor.js";
import { canDraw, releaseOf, showsZones, state, tripEnds } from "./state.js";

const KINDS = ["box", "polygon"];
const editors = [];
let whenDone = () => {};

/* `onDone` runs whenever a shape has its final form. */
export function makeDrawTools(onDone) {
  whenDone = onDone;
  const shared = {
    get: () => (canDraw() ? state.shape : null),
    set: setShape,
    drawing: () => state.drawing,
    stop: () => startDrawing(null),
    look,
  };
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
  showHint();
  for (const editor of editors) {
    editor.sketch.cancel();
    editor.draw();
  }
  leave();
}

function placeShape(kind) {
  startDrawing(null);
  editors[0].place(kind);
}

function takeKey({ key }) {
  if (state.drawing && key === "Escape") startDrawing(null);
  if (state.drawing !== "polygon" || key !== "Enter") return;
  for (const { sketch } of editors) if (sketch.places.length) sketch.finishPolygon();
}

function restingHint() {
  if (showsZones()) {
    const hasTrips = tripEnds(releaseOf(state.first));
    return hasTrips ? words.trips(state.direction, state.zone) : words.hints.zones;
  }
  if (!canDraw()) return "";
  return state.shape ? words.hints.drawn : words.hints.none;
}

function showHint() {
  const place = byId("hint");
  place.textContent = words.hints[state.drawing] || restingHint();
  place.classList.toggle("resting", !state.drawing);
}
