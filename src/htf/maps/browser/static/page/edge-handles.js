/* A handle in the middle of each edge of a polygon, which makes a corner there. They are for
   pointers: with keys, corners are added at corners. */

import { svgElement } from "../shared/elements.js";

const LEAST_EDGE = 48; // pixels of an edge that has a handle

export class EdgeHandles {
  constructor(editor) {
    this.editor = editor;
    this.root = svgElement("g", { "aria-hidden": "true" });
  }

  draw(shape, points) {
    const { childNodes: handles } = this.root;
    const number = shape?.kind === "polygon" ? points.length : 0;
    while (handles.length > number) this.root.lastChild.remove();
    while (handles.length < number) this.add(handles.length);
    handles.forEach((handle, at) => {
      const [[ax, ay], [bx, by]] = [points[at], points[(at + 1) % number]];
      handle.setAttribute("transform", `translate(${(ax + bx) / 2},${(ay + by) / 2})`);
      const isLong = Math.hypot(bx - ax, by - ay) >= LEAST_EDGE;
      handle.setAttribute("visibility", isLong ? "visible" : "hidden");
    });
  }

  add(at) {
    const { editor } = this;
    const handle = svgElement("g", { class: "shape-middle" });
    handle.append(
      svgElement("circle", { r: 14, class: "shape-touch" }),
      svgElement("circle", { r: 4.5 }),
    );
    this.root.append(handle);
    handle.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      editor.insertCorner(at, false);
      editor.startDrag(editor.corners.childNodes[at + 1], at + 1, event);
    });
  }
}
