/* The shape on one map: shown, dragged, and moved with the keys. It is SVG, so that the shape and
   its corners take focus and have names for screen readers. */

import { svgElement } from "../shared/elements.js";
import { words } from "../words.js";
import { EdgeHandles } from "./edge-handles.js";
import { LEAST_CORNERS, Sketch } from "./sketch.js";
import { boundsOf, boxOf } from "./shapes.js";

const STEP = 8; // pixels that an arrow key moves
const LARGE_STEP = 40; // with Shift
const WHOLE = -1; // in place of the number of a corner
const ADDING = ["Insert", "+"]; // keys that add a corner

/* A box that was dragged beyond its own edges has its corners in another order. */
const inOrder = (shape) => (shape.kind === "box" ? boxOf(...boundsOf(shape)) : shape);

export class ShapeEditor {
  /* `shared` belongs to all maps (draw-tools.js). Only the first map takes focus, so that keys
     meet each shape once. */
  constructor(map, shared, isFirst) {
    this.map = map;
    this.shared = shared;
    this.isFirst = isFirst;
    this.sketch = new Sketch(this);
    this.root = svgElement("svg", {
      class: "shape",
      role: "application", // screen readers then leave the arrow keys to us
      "aria-label": words.yourShape,
    });
    this.halo = svgElement("polygon", { class: "shape-halo" });
    this.body = this.focusable("polygon", "shape-body");
    this.handles = new EdgeHandles(this);
    this.corners = svgElement("g");
    const { preview, dots } = this.sketch;
    this.root.append(this.halo, this.body, this.handles.root, this.corners, preview, dots);
    map.getContainer().append(this.sketch.surface, this.root);
    this.listen();
  }

  focusable(name, className) {
    return svgElement(name, { class: className, tabindex: this.isFirst ? 0 : -1, role: "img" });
  }

  listen() {
    const { map } = this;
    for (const above of [this.sketch.surface, this.root]) { // which would keep the map from zooming
      above.addEventListener("wheel", (event) => {
        event.preventDefault();
        map.getCanvas().dispatchEvent(new WheelEvent(event.type, event));
      });
    }
    for (const event of ["move", "resize"]) map.on(event, () => this.draw());
    this.makeMovable(this.body, WHOLE);
    let resting = null; // where the pointer is, on the screen
    this.body.addEventListener("pointermove", (event) => {
      resting = event.buttons === 0 && event.pointerType !== "touch" ? this.pointOf(event) : null;
      if (event.buttons === 0) this.shared.look(map.unproject(this.pointOf(event)));
    });
    this.body.addEventListener("pointerleave", () => {
      resting = null;
      this.shared.leave();
    });
    map.on("moveend", () => {
      if (resting) this.shared.look(map.unproject(resting));
    });
  }

  /* From a place to a point of the screen, and back. */
  project(place) {
    const { x, y } = this.map.project(place);
    return [x, y];
  }

  unproject(point) {
    const { lng, lat } = this.map.unproject(point);
    return [lng, lat];
  }

  pointOf(event) {
    const { left, top } = this.map.getContainer().getBoundingClientRect();
    return [event.clientX - left, event.clientY - top];
  }

  draw() {
    const shape = this.shared.get();
    this.root.classList.toggle("empty", !shape);
    this.sketch.surface.hidden = !this.shared.drawing();
    this.root.setAttribute("aria-hidden", String(!shape || !this.isFirst));
    const points = shape ? shape.ring.map((place) => this.project(place)) : [];
    for (const line of [this.halo, this.body]) line.setAttribute("points", points.join(" "));
    if (shape) this.body.setAttribute("aria-label", words.shapeHelp(shape.kind));
    this.drawCorners(shape, points);
    this.handles.draw(shape, points);
    this.sketch.draw();
  }

  drawCorners(shape, points) {
    const { childNodes: corners } = this.corners;
    while (corners.length > points.length) this.corners.lastChild.remove();
    while (corners.length < points.length) this.addCorner(corners.length);
    points.forEach(([x, y], at) => {
      const isBox = shape.kind === "box";
      const name = isBox ? words.boxCorners[at] : words.polygonCorner(at + 1, points.length);
      const canRemove = !isBox && points.length > LEAST_CORNERS;
      corners[at].setAttribute("transform", `translate(${x},${y})`);
      corners[at].setAttribute("aria-label", words.cornerHelp(name, !isBox, canRemove));
    });
  }

  /* In the middle between a corner of a polygon and the next one. */
  insertCorner(at, isDone) {
    const shape = this.shared.get();
    const [[ax, ay], [bx, by]] = [shape.ring[at], shape.ring[(at + 1) % shape.ring.length]]
      .map((place) => this.project(place));
    const ring = shape.ring.toSpliced(at + 1, 0, this.unproject([(ax + bx) / 2, (ay + by) / 2]));
    this.shared.set({ ...shape, ring }, isDone);
    this.corners.childNodes[at + 1].focus({ preventScroll: true });
  }

  addCorner(at) {
    const corner = this.focusable("g", "shape-corner");
    corner.append(
      svgElement("circle", { r: 14, class: "shape-touch" }),
      svgElement("circle", { r: 6.5 }),
    );
    this.corners.append(corner);
    this.makeMovable(corner, at);
  }

  /* The shape with one corner, or the whole of it, moved by pixels. */
  moved(shape, at, [dx, dy]) {
    const shift = (place) => {
      const [x, y] = this.project(place);
      return this.unproject([x + dx, y + dy]);
    };
    if (at === WHOLE) return { ...shape, ring: shape.ring.map(shift) };
    const ring = shape.ring.slice();
    ring[at] = shift(ring[at]);
    if (shape.kind === "box") { // the corners beside it follow
      const level = at ^ 1;
      const upright = 3 - at;
      ring[level] = [ring[level][0], ring[at][1]];
      ring[upright] = [ring[at][0], ring[upright][1]];
    }
    return { ...shape, ring };
  }

  makeMovable(target, at) {
    target.addEventListener("pointerdown", (event) => {
      if (event.button === 0) this.startDrag(target, at, event);
    });
    target.addEventListener("keydown", (event) => {
      if (!this.takesKey(event, at)) return;
      event.preventDefault();
      event.stopPropagation();
    });
  }

  startDrag(target, at, down) {
    down.preventDefault();
    down.stopPropagation();
    this.shared.leave();
    target.setPointerCapture(down.pointerId);
    target.focus({ preventScroll: true });
    const start = this.pointOf(down);
    const shape = this.shared.get();
    const listening = new AbortController();
    const move = (event) => {
      const [x, y] = this.pointOf(event);
      this.shared.set(this.moved(shape, at, [x - start[0], y - start[1]]), false);
    };
    const end = () => {
      listening.abort();
      this.shared.set(inOrder(this.shared.get()), true);
    };
    const { signal } = listening;
    target.addEventListener("pointermove", move, { signal });
    target.addEventListener("pointerup", end, { signal });
    target.addEventListener("pointercancel", end, { signal });
  }

  takesKey({ key, shiftKey }, at) {
    if (key === "Delete" || key === "Backspace") {
      this.remove(at);
      return true;
    }
    if (at !== WHOLE && ADDING.includes(key) && this.shared.get().kind === "polygon") {
      this.insertCorner(at, true);
      return true;
    }
    const step = shiftKey ? LARGE_STEP : STEP;
    const ways = {
      ArrowLeft: [-step, 0],
      ArrowRight: [step, 0],
      ArrowUp: [0, -step],
      ArrowDown: [0, step],
    };
    if (!(key in ways)) return false;
    this.shared.set(inOrder(this.moved(this.shared.get(), at, ways[key])), true);
    return true;
  }

  /* The whole shape, or a corner of a polygon that keeps three others. */
  remove(at) {
    const shape = this.shared.get();
    if (at === WHOLE) {
      this.shared.set(null, true);
      this.map.getCanvas().focus();
      return;
    }
    if (shape.kind === "box" || shape.ring.length <= LEAST_CORNERS) return;
    const ring = shape.ring.filter((_, number) => number !== at);
    this.shared.set({ ...shape, ring }, true);
    this.corners.childNodes[Math.min(at, ring.length - 1)].focus();
  }

  /* Puts a shape around a point, or in the middle of what is seen: for taps, and for the
     keyboard. */
  place(kind, middle = null) {
    const { clientWidth: width, clientHeight: height } = this.map.getContainer();
    const [left, top] = middle || [width / 2, height / 2];
    const size = Math.min(width, height) / 5;
    const hexagon = [0, 1, 2, 3, 4, 5].map((k) => (k * Math.PI) / 3);
    const corners = kind === "box"
      ? [[-1, 1], [1, 1], [1, -1], [-1, -1]]
      : hexagon.map((angle) => [Math.cos(angle), Math.sin(angle)]);
    const ring = corners.map(([x, y]) => this.unproject([left + x * size, top + y * size]));
    this.shared.set(inOrder({ kind, ring }), true);
    this.body.focus();
  }
}
