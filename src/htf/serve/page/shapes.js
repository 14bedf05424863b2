"use strict";
/* A box or a polygon on a map, drawn, dragged and moved by keys. The shape is shared by all maps:
   { kind: "box" | "polygon", ring: [[longitude, latitude], ...] }, a box as SW, SE, NE, NW. */
const Shapes = (() => {
  const NAMES = ["south-west", "south-east", "north-east", "north-west"];
  const STEP = 8, LARGE_STEP = 40; // pixels

  const svg = (name, attributes = {}) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };
  function box(west, south, east, north) {
    return { kind: "box", ring: [[west, south], [east, south], [east, north], [west, north]] };
  }
  function boundsOf({ ring }) {
    const longitudes = ring.map(([x]) => x), latitudes = ring.map(([, y]) => y);
    return [Math.min(...longitudes), Math.min(...latitudes), Math.max(...longitudes), Math.max(...latitudes)];
  }
  const between = ([x0, y0], [x1, y1]) => box(Math.min(x0, x1), Math.min(y0, y1), Math.max(x0, x1), Math.max(y0, y1));

  /* `shared` has get(), set(shape, isDone), drawing(), the kind that is being drawn, or null, stop(), and
     look(place), of what someone points at through the shape. */
  class Editor {
    constructor(map, shared, isFirst) {
      Object.assign(this, { map, shared, points: [], tabindex: isFirst ? "0" : "-1" }); // one way through it by keys, on the first map
      this.root = svg("svg", { class: "shape", role: "application", "aria-label": "Your shape on the map" }); // so that readers of screens leave it the arrow keys
      this.halo = svg("polygon", { class: "shape-halo" });
      this.body = svg("polygon", { class: "shape-body", tabindex: this.tabindex, role: "img" });
      this.corners = svg("g");
      this.preview = svg("polyline", { class: "shape-preview" });
      this.root.append(this.halo, this.body, this.corners, this.preview);
      this.surface = Htf.element("div", { className: "draw-surface", hidden: "" });
      map.getContainer().append(this.surface, this.root);
      for (const above of [this.surface, this.root]) { // which lie over the map, and would keep it from zooming
        above.addEventListener("wheel", (event) => { event.preventDefault(); map.getCanvas().dispatchEvent(new WheelEvent(event.type, event)); });
      }
      for (const event of ["move", "resize"]) map.on(event, () => this.draw());
      this.drag(this.body, () => -1);
      this.keys(this.body, () => -1);
      this.body.addEventListener("pointermove", (event) => {
        if (event.buttons === 0) shared.look(map.unproject(this.pointOf(event)));
      });
      this.listen();
    }

    project(place) { const { x, y } = this.map.project(place); return [x, y]; }
    unproject(point) { const { lng, lat } = this.map.unproject(point); return [lng, lat]; }
    pointOf(event) {
      const { left, top } = this.map.getContainer().getBoundingClientRect();
      return [event.clientX - left, event.clientY - top];
    }

    draw() {
      const shape = this.shared.get();
      this.root.classList.toggle("empty", !shape);
      this.surface.hidden = !this.shared.drawing();
      this.root.setAttribute("aria-hidden", String(!shape || this.tabindex !== "0"));
      const points = shape ? shape.ring.map((place) => this.project(place)) : [];
      for (const line of [this.halo, this.body]) line.setAttribute("points", points.map((point) => point.join()).join(" "));
      if (!shape) { this.corners.replaceChildren(); return; }
      this.body.setAttribute("aria-label", `Your ${shape.kind}. Arrow keys move it, with Shift in large steps; Delete removes it.`);
      while (this.corners.childNodes.length > points.length) this.corners.lastChild.remove();
      while (this.corners.childNodes.length < points.length) this.addCorner(this.corners.childNodes.length);
      points.forEach(([x, y], at) => {
        const corner = this.corners.childNodes[at];
        corner.setAttribute("transform", `translate(${x},${y})`);
        const name = shape.kind === "box" ? `${NAMES[at]} corner` : `corner ${at + 1} of ${points.length}`;
        corner.setAttribute("aria-label", `The ${name}. Arrow keys move it.${points.length > 3 && shape.kind === "polygon" ? " Delete removes it." : ""}`);
      });
    }

    addCorner(at) {
      const corner = svg("g", { class: "shape-corner", tabindex: this.tabindex, role: "img" });
      corner.append(svg("circle", { r: 14, class: "shape-touch" }), svg("circle", { r: 6.5 }));
      this.corners.append(corner);
      this.drag(corner, () => at);
      this.keys(corner, () => at);
    }

    /* The shape with a corner, or with corner -1 all of it, moved by pixels. */
    moved(shape, at, [dx, dy]) {
      const shift = (place) => { const [x, y] = this.project(place); return this.unproject([x + dx, y + dy]); };
      if (at < 0) return { ...shape, ring: shape.ring.map(shift) };
      const ring = shape.ring.slice();
      ring[at] = shift(ring[at]);
      if (shape.kind === "box") {
        const level = at ^ 1, upright = 3 - at; // the corners beside it
        ring[level] = [ring[level][0], ring[at][1]];
        ring[upright] = [ring[at][0], ring[upright][1]];
      }
      return { ...shape, ring };
    }
    finished(shape) { return shape.kind === "box" ? box(...boundsOf(shape)) : shape; }

    drag(target, corner) {
      target.addEventListener("pointerdown", (down) => {
        if (down.button !== 0) return;
        down.preventDefault();
        down.stopPropagation();
        target.setPointerCapture(down.pointerId);
        target.focus({ preventScroll: true });
        const start = this.pointOf(down), shape = this.shared.get();
        const move = (event) => {
          const [x, y] = this.pointOf(event);
          this.shared.set(this.moved(shape, corner(), [x - start[0], y - start[1]]), false);
        };
        const up = () => {
          target.removeEventListener("pointermove", move);
          target.removeEventListener("pointerup", up);
          target.removeEventListener("pointercancel", up);
          this.shared.set(this.finished(this.shared.get()), true);
        };
        target.addEventListener("pointermove", move);
        target.addEventListener("pointerup", up);
        target.addEventListener("pointercancel", up);
      });
    }

    keys(target, corner) {
      target.addEventListener("keydown", (event) => {
        const step = event.shiftKey ? LARGE_STEP : STEP;
        const way = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, -step], ArrowDown: [0, step] }[event.key];
        if (way) this.shared.set(this.finished(this.moved(this.shared.get(), corner(), way)), true);
        else if (event.key === "Delete" || event.key === "Backspace") {
          this.remove(corner());
        } else return;
        event.preventDefault();
        event.stopPropagation();
      });
    }

    /* A corner of a polygon that has another three, or all of the shape. */
    remove(at) {
      const shape = this.shared.get();
      if (at >= 0 && (shape.kind === "box" || shape.ring.length < 4)) return;
      this.shared.set(at < 0 ? null : { ...shape, ring: shape.ring.filter((_, number) => number !== at) }, true);
      if (at < 0) this.map.getCanvas().focus(); else this.corners.childNodes[Math.min(at, shape.ring.length - 2)].focus();
    }

    /* While something is drawn, a surface over the map takes the pointer. */
    listen() {
      const { surface } = this;
      surface.addEventListener("pointerdown", (event) => {
        event.preventDefault();
        surface.setPointerCapture(event.pointerId);
        if (this.shared.drawing() === "box") this.start = this.unproject(this.pointOf(event));
      });
      surface.addEventListener("touchend", (event) => event.preventDefault()); // else the map below is tapped too
      surface.addEventListener("pointermove", (event) => {
        const place = this.unproject(this.pointOf(event));
        if (this.start) this.shared.set(between(this.start, place), false);
        else if (this.points.length) this.showPreview([...this.points, place]);
      });
      surface.addEventListener("pointerup", (event) => {
        const point = this.pointOf(event);
        if (this.shared.drawing() === "polygon") { this.addPoint(point); return; }
        if (!this.start) return;
        const [x, y] = this.project(this.start);
        const isDrawn = Math.hypot(point[0] - x, point[1] - y) > 4;
        if (isDrawn) this.shared.set(between(this.start, this.unproject(point)), true);
        else this.place("box", point); // a tap
        this.start = null;
        this.shared.stop();
      });
    }

    addPoint(point) {
      const near = ([x, y]) => Math.hypot(point[0] - x, point[1] - y) < 12;
      const { points } = this;
      const last = points.length ? this.project(points[points.length - 1]) : null;
      const closes = points.length > 2 && (near(this.project(points[0])) || near(last));
      if (closes) { this.finish(); return; }
      if (last && near(last)) return;
      points.push(this.unproject(point));
      this.showPreview(points);
    }

    finish() {
      const ring = this.points;
      this.cancel();
      if (ring.length > 2) { this.shared.set({ kind: "polygon", ring }, true); this.shared.stop(); }
    }

    cancel() {
      this.points = [];
      this.start = null;
      this.preview.setAttribute("points", "");
    }

    showPreview(places) {
      this.preview.setAttribute("points", places.map((place) => this.project(place).join()).join(" "));
    }

    /* Around a point, or in the middle of what is seen: for those who tap, or draw by keys. */
    place(kind, middle = null) {
      const { clientWidth: width, clientHeight: height } = this.map.getContainer();
      const [centre, level] = middle || [width / 2, height / 2];
      const size = Math.min(width, height) / 5;
      const corners = kind === "box" ? [[-1, 1], [1, 1], [1, -1], [-1, -1]]
        : [0, 1, 2, 3, 4, 5].map((k) => [Math.cos((k * Math.PI) / 3), Math.sin((k * Math.PI) / 3)]);
      const ring = corners.map(([x, y]) => this.unproject([centre + x * size, level + y * size]));
      this.shared.set(this.finished({ kind, ring }), true);
      this.body.focus();
    }
  }

  return { Editor, box, boundsOf };
})();
