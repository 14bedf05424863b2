/* A shape while it is being drawn. A surface over the map takes the pointer meanwhile. */

import { element, svgElement } from "../shared/elements.js";
import { boxBetween } from "./shapes.js";

const TAP = 4; // pixels: a shorter drag is a tap
const NEAR = 12; // pixels to the corner that closes a polygon
export const LEAST_CORNERS = 3;

const distance = ([ax, ay], [bx, by]) => Math.hypot(bx - ax, by - ay);

export class Sketch {
  constructor(editor) {
    this.editor = editor;
    this.shared = editor.shared; // whose `sketched` are the corners of a polygon so far
    this.start = null; // the first corner of a box
    this.pointer = null; // where the next corner would be
    this.preview = svgElement("polyline", { class: "shape-preview" });
    this.dots = svgElement("g", { class: "shape-dots" });
    this.surface = element("div", { className: "draw-surface", hidden: "" });
    this.listen();
  }

  listen() {
    const { surface, editor } = this;
    surface.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      if (!event.isPrimary) return; // a second finger
      surface.setPointerCapture(event.pointerId);
      if (this.shared.drawing() === "box") this.start = editor.unproject(editor.pointOf(event));
    });
    surface.addEventListener("pointermove", (event) => {
      this.pointer = editor.unproject(editor.pointOf(event));
      if (this.start) this.shared.set(boxBetween(this.start, this.pointer), false);
      else this.draw();
    });
    surface.addEventListener("pointerleave", () => {
      this.pointer = null;
      this.draw();
    });
    surface.addEventListener("pointerup", (event) => {
      if (!event.isPrimary || event.button !== 0) return;
      const point = editor.pointOf(event);
      if (this.shared.drawing() === "polygon") this.addCorner(point);
      else if (this.start) this.finishBox(point);
    });
    surface.addEventListener("touchend", (event) => event.preventDefault()); // no tap on the map
  }

  finishBox(point) {
    const { editor, start } = this;
    const isTap = distance(editor.project(start), point) <= TAP;
    if (isTap) editor.place("box", point);
    else this.shared.set(boxBetween(start, editor.unproject(point)), true);
    this.start = null;
    this.shared.stop();
  }

  /* The first corner again closes the polygon, as does the last one: a double click. */
  addCorner(point) {
    const { editor, shared: { sketched } } = this;
    const isNear = (place) => place && distance(editor.project(place), point) < NEAR;
    const isLast = isNear(sketched.at(-1));
    if (sketched.length >= LEAST_CORNERS && (isLast || isNear(sketched[0]))) this.shared.finish();
    else if (!isLast) this.shared.sketch([...sketched, editor.unproject(point)]);
  }

  cancel() {
    this.start = null;
    this.pointer = null;
    this.draw();
  }

  /* A line to the pointer, and a mark at each corner. */
  draw() {
    const { sketched } = this.shared;
    const places = sketched.length && this.pointer ? [...sketched, this.pointer] : sketched;
    const points = places.map((place) => this.editor.project(place));
    this.preview.setAttribute("points", points.join(" "));
    const isClosable = sketched.length >= LEAST_CORNERS;
    this.dots.replaceChildren(
      ...points.slice(0, sketched.length).map(([cx, cy], at) => (
        svgElement("circle", { cx, cy, r: at === 0 && isClosable ? NEAR - 3 : 5 })
      )),
    );
  }
}
