/* A shape while it is being drawn. A surface over the map takes the pointer meanwhile. */

import { element, svgElement } from "../shared/elements.js";
import { boxBetween } from "./shapes.js";

const TAP = 4; // pixels: a shorter drag is a tap
const NEAR = 12; // pixels to the corner that closes a polygon

const distance = ([ax, ay], [bx, by]) => Math.hypot(bx - ax, by - ay);

export class Sketch {
  constructor(editor) {
    this.editor = editor;
    this.shared = editor.shared;
    this.start = null; // the first corner of a box
    this.places = []; // the corners of a polygon so far
    this.preview = svgElement("polyline", { class: "shape-preview" });
    this.surface = element("div", { className: "draw-surface", hidden: "" });
    this.listen();
  }

  listen() {
    const { surface, editor } = this;
    surface.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      surface.setPointerCapture(event.pointerId);
      if (this.shared.drawing() === "box") this.start = editor.unproject(editor.pointOf(event));
    });
    surface.addEventListener("pointermove", (event) => {
      const place = editor.unproject(editor.pointOf(event));
      if (this.start) this.shared.set(boxBetween(this.start, place), false);
      else if (this.places.length) this.showPreview([...this.places, place]);
    });
    surface.addEventListener("pointerup", (event) => {
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
    const { editor, places } = this;
    const isNear = (place) => place && distance(editor.project(place), point) < NEAR;
    const isLast = isNear(places.at(-1));
    if (places.length > 2 && (isLast || isNear(places[0]))) {
      this.finishPolygon();
    } else if (!isLast) {
      places.push(editor.unproject(point));
      this.showPreview(places);
    }
  }

  finishPolygon() {
    const ring = this.places;
    this.cancel();
    if (ring.length < 3) return;
    this.shared.set({ kind: "polygon", ring }, true);
    this.shared.stop();
  }

  cancel() {
    this.places = [];
    this.start = null;
    this.showPreview([]);
  }

  showPreview(places) {
    const points = places.map((place) => this.editor.project(place));
    this.preview.setAttribute("points", points.join(" "));
  }
}
