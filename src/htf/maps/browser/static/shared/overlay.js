/* Drawn over the map: lines of longitude and latitude with their numbers, the frames of releases,
   the rectangle that is pointed at, and a cross in the middle for those who use the keyboard. */

import { latitudeOf, longitudeOf, squareX, squareY } from "./mercator.js";
import { theme } from "./theme.js";

const LINE_PIXELS = 130; // between two lines, at least
const MOST_LINES = 60;

export class Overlay {
  /* `plane` is set for a map without a reference system, and gives its coordinates; `frames` are
     rings in the Mercator square. */
  constructor(map, { plane = null, frames = [] } = {}) {
    this.map = map;
    this.plane = plane;
    this.frames = frames;
    this.highlight = []; // rings that are pointed at
    this.chosen = []; // rings of a zone that was chosen
    this.isCrossed = false;
    this.canvas = document.createElement("canvas");
    this.canvas.className = "overlay";
    this.canvas.setAttribute("aria-hidden", "true");
    map.getCanvasContainer().append(this.canvas);
    this.listen();
    if (!plane) {
      map.addControl(new globalThis.maplibregl.ScaleControl({ maxWidth: 110 }), "bottom-left");
    }
    this.draw();
  }

  listen() {
    for (const event of ["move", "resize", "load"]) this.map.on(event, () => this.draw());
    theme.onChange(() => this.draw());
    const canvas = this.map.getCanvas();
    const cross = (isCrossed) => {
      this.isCrossed = isCrossed;
      this.draw();
    };
    canvas.addEventListener("focus", () => cross(canvas.matches(":focus-visible")));
    canvas.addEventListener("blur", () => cross(false));
  }

  /* Outlines a rectangle, or none. */
  mark(ring) {
    this.markAll(ring ? [ring] : []);
  }

  /* Outlines a zone, which may have several rings. */
  markAll(rings) {
    this.highlight = rings;
    this.draw();
  }

  /* Outlines a zone for as long as it is chosen. */
  choose(rings) {
    this.chosen = rings;
    this.draw();
  }

  toPlace(x, y) {
    const { plane } = this;
    if (!plane) return [longitudeOf(x), latitudeOf(y)];
    return [plane.x + (x - 0.5) / plane.scale, plane.y - (y - 0.5) / plane.scale];
  }

  toSquare(a, b) {
    const { plane } = this;
    if (!plane) return [squareX(a), squareY(b)];
    return [0.5 + (a - plane.x) * plane.scale, 0.5 - (b - plane.y) * plane.scale];
  }

  placeAt(left, top) {
    const { lng, lat } = this.map.unproject([left, top]);
    return this.toPlace(squareX(lng), squareY(lat));
  }

  project(corner) {
    const [x, y] = corner;
    const { x: left, y: top } = this.map.project([longitudeOf(x), latitudeOf(y)]);
    return [left, top];
  }

  draw() {
    const { map, canvas } = this;
    const { clientWidth: width, clientHeight: height } = map.getContainer();
    const ratio = globalThis.devicePixelRatio || 1;
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const colours = theme.colours();
    this.drawRings(pen, this.frames, [[1.25, colours.frame]]);
    this.drawGraticule(pen, colours, width, height);
    this.drawRings(pen, this.chosen, [[6, colours.halo], [3, colours.chosen]]);
    this.drawRings(pen, this.highlight, [[4, colours.halo], [1.75, colours.label]]);
    if (this.isCrossed) drawCross(pen, colours, width / 2, height / 2);
  }

  drawRings(pen, rings, strokes) {
    const paths = rings.map((ring) => ring.map((corner) => this.project(corner)));
    for (const [width, colour] of strokes) {
      pen.lineWidth = width;
      pen.strokeStyle = colour;
      pen.beginPath();
      for (const path of paths) {
        path.forEach((point, i) => (i ? pen.lineTo(...point) : pen.moveTo(...point)));
        pen.closePath();
      }
      pen.stroke();
    }
  }

  drawGraticule(pen, colours, width, height) {
    const [west, north] = this.placeAt(0, 0);
    const [east, south] = this.placeAt(width, height);
    const step = roundStep(((east - west) / width) * LINE_PIXELS);
    const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    const leftOf = (a) => this.project(this.toSquare(a, (south + north) / 2))[0];
    const topOf = (b) => this.project(this.toSquare((west + east) / 2, b))[1];
    const columns = multiples(step, west, east).map((a) => [a, leftOf(a)]);
    const rows = multiples(step, south, north).map((b) => [b, topOf(b)]);
    drawLines(pen, colours, columns, rows, width, height);
    pen.font = "11px system-ui, sans-serif";
    for (const [a, left] of columns) {
      if (left < 40 || left > width - 60) continue;
      write(pen, colours, this.coordinateText(a, digits, "E", "W"), left, 14, "center");
    }
    for (const [b, top] of rows) {
      if (top < 26 || top > height - 60) continue;
      write(pen, colours, this.coordinateText(b, digits, "N", "S"), 5, top - 4, "left");
    }
  }

  coordinateText(value, digits, plus, minus) {
    if (this.plane) return value.toFixed(digits);
    const size = `${Math.abs(value).toFixed(digits)}°`;
    return value === 0 ? size : `${size} ${value > 0 ? plus : minus}`;
  }
}

/* 1, 2 or 5 times a power of ten. */
function roundStep(least) {
  const wanted = Math.max(least, 1e-9);
  const power = 10 ** Math.floor(Math.log10(wanted));
  return [1, 2, 5, 10].map((n) => n * power).find((step) => step >= wanted);
}

function multiples(step, low, high) {
  const found = [];
  for (let k = Math.ceil(low / step); k * step <= high && found.length < MOST_LINES; k++) {
    found.push(k * step);
  }
  return found;
}

function drawLines(pen, colours, columns, rows, width, height) {
  pen.lineWidth = 1;
  pen.strokeStyle = colours.graticule;
  pen.beginPath();
  for (const [, left] of columns) {
    pen.moveTo(Math.round(left) + 0.5, 0);
    pen.lineTo(Math.round(left) + 0.5, height);
  }
  for (const [, top] of rows) {
    pen.moveTo(0, Math.round(top) + 0.5);
    pen.lineTo(width, Math.round(top) + 0.5);
  }
  pen.stroke();
}

function write(pen, colours, text, left, top, align) {
  pen.textAlign = align;
  pen.lineWidth = 3;
  pen.strokeStyle = colours.halo;
  pen.strokeText(text, left, top);
  pen.fillStyle = colours.label;
  pen.fillText(text, left, top);
}

function drawCross(pen, colours, left, top) {
  for (const [width, colour] of [[5, colours.halo], [2, colours.label]]) {
    pen.lineWidth = width;
    pen.strokeStyle = colour;
    pen.beginPath();
    for (const [dx, dy] of [[1, 0], [-1, 0], [0, 1], [0, -1]]) {
      pen.moveTo(left + 4 * dx, top + 4 * dy);
      pen.lineTo(left + 13 * dx, top + 13 * dy);
    }
    pen.stroke();
  }
}
