/* Small maps of all steps at once, with the colours of the large one. */

import { colourOf } from "../shared/colours.js";
import { byId, element } from "../shared/elements.js";
import { ringsOf } from "../shared/zones.js";
import { isSheetShown, ringOf } from "../shared/sheets.js";
import { squareX, squareY } from "../shared/mercator.js";
import { theme } from "../shared/theme.js";
import { data } from "./data.js";

const PIXELS = 480; // of the longer side of a small map

export class SmallMaps {
  /* `sheetsOf` reads the sheets of a step, and `choose` shows it on the large map. */
  constructor({ view, sheetsOf, choose }) {
    this.view = view;
    this.sheetsOf = sheetsOf;
    this.choose = choose;
    this.box = byId("multiples");
    this.button = byId("all");
    this.button.hidden = false;
    this.button.addEventListener("click", () => this.show(this.box.hidden));
    this.box.addEventListener("keydown", ({ key }) => {
      if (key !== "Escape") return;
      this.show(false);
      this.button.focus();
    });
    for (const id of ["change", "level"]) byId(id).addEventListener("change", () => this.fill());
    theme.onChange(() => this.fill());
  }

  show(isShown) {
    this.box.hidden = !isShown;
    this.button.setAttribute("aria-pressed", String(isShown));
    this.fill();
  }

  /* Draws the maps one after another. */
  async fill() {
    if (this.box.hidden) return;
    const canvases = data.steps.map(() => element("canvas", { "aria-hidden": "true" }));
    this.box.replaceChildren(...data.steps.map((name, at) => {
      const properties = { type: "button", "aria-pressed": String(at === this.view.at) };
      const button = element("button", properties, canvases[at], name);
      button.addEventListener("click", () => {
        this.show(false);
        this.choose(at);
      });
      return button;
    }));
    // Trips of every step widen their scale.
    for (const at of data.trips ? data.steps.keys() : []) await this.sheetsOf(0, at);
    for (const [at, canvas] of canvases.entries()) {
      const sheets = await this.sheetsOf(0, at);
      if (!canvas.isConnected) return;
      paint(canvas, this.pick(sheets), this.view.isChange);
    }
  }

  /* The largest squares, or the zones of the level. */
  pick(sheets) {
    return sheets[0].geometries
      ? sheets[this.view.level]
      : sheets.find((one) => isSheetShown(one, 0));
  }
}

function paint(canvas, sheet, isDiverging) {
  const [[west, south], [east, north]] = data.bounds;
  const [left, top] = [squareX(west), squareY(north)];
  const [wide, high] = [squareX(east) - left, squareY(south) - top];
  const scale = PIXELS / Math.max(wide, high);
  Object.assign(canvas, { width: wide * scale, height: high * scale });
  const [pen, colours] = [canvas.getContext("2d"), theme.colours()];
  sheet.shade.forEach((shade, i) => {
    const rings = sheet.geometries ? ringsOf(sheet.geometries[i]) : [ringOf(sheet, i)];
    pen.beginPath();
    for (const ring of rings) {
      ring.forEach(([x, y], k) =>
        pen[k ? "lineTo" : "moveTo"]((x - left) * scale, (y - top) * scale)
      );
      pen.closePath();
    }
    pen.fillStyle = pen.strokeStyle = colourOf(shade, colours, isDiverging);
    pen.fill("evenodd");
    pen.stroke(); // or the ground would shine through between neighbours
  });
}
