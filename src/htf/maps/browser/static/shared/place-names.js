/* The names of places, on a canvas above the map: with the fonts of the system, because the letters
   that MapLibre draws would have to be fetched. Names of low rank come first; one that would touch
   another is left out. */

import { theme } from "./theme.js";

const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";
const GAP = 4; // pixels between two names
const EDGE = 3; // and from the edge of the map
const DOT = 2.2; // radius
const COUNTRY_ZOOM = 7; // from there on, the names of countries say nothing
// By kind: size of the letters for the lowest and the highest rank, weight and style.
const LOOKS = {
  country: { sizes: [15, 11], font: "600" },
  capital: { sizes: [14, 12], font: "600" },
  place: { sizes: [14, 11], font: "500" },
  water: { sizes: [13, 11], font: "italic 400" },
};

export class PlaceNames {
  constructor(map) {
    this.map = map;
    this.names = [];
    this.own = [];
    this.more = [];
    this.canvas = document.createElement("canvas");
    this.canvas.className = "overlay names";
    this.canvas.setAttribute("aria-hidden", "true");
    map.getCanvasContainer().append(this.canvas);
    for (const event of ["move", "resize", "load"]) map.on(event, () => this.draw());
    theme.onChange(() => this.draw());
  }

  /* Rows of name, longitude, latitude, rank and kind, those of low rank first. */
  set(names) {
    this.own = names;
    this.join();
  }

  /* The same from tiles, in any order. */
  setMore(names) {
    this.more = names;
    this.join();
  }

  join() {
    const known = new Set(this.own.map(([name]) => name));
    const more = this.more.filter(([name]) => !known.has(name));
    this.names = [...this.own, ...more].sort((one, other) => one[3] - other[3]);
    this.draw();
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
    pen.lineJoin = "round";
    pen.textBaseline = "middle";
    const shown = [];
    const taken = [];
    const zoom = map.getZoom();
    for (const [name, longitude, latitude, rank, kind] of this.names) {
      if (!isWorth(rank, kind, zoom)) continue;
      const { x, y } = map.project([longitude, latitude]);
      if (x < 0 || y < 0 || x > width || y > height) continue;
      const label = this.place(pen, { name, x, y, rank, kind }, taken, width, height);
      if (!label) continue;
      taken.push(label.box);
      shown.push(name);
      write(pen, label);
    }
    canvas.dataset.names = shown.join("; "); // for tests
  }

  /* Where a name fits: beside its dot, or in the middle of what it names. */
  place(pen, { name, x, y, rank, kind }, taken, width, height) {
    const { sizes: [large, small], font } = LOOKS[kind] || LOOKS.place;
    const size = Math.round(large + ((small - large) * Math.min(rank, 8)) / 8);
    pen.font = `${font} ${size}px ${FONT}`;
    const long = pen.measureText(name).width;
    const hasDot = kind === "place" || kind === "capital";
    const lefts = hasDot ? [x + DOT + 4, x - DOT - 4 - long] : [x - long / 2];
    for (const left of lefts) {
      const right = left + long;
      const start = hasDot ? Math.min(left, x - DOT) : left;
      const box = [start, y - size / 2, hasDot ? Math.max(right, x + DOT) : right, y + size / 2];
      const isInside = box[0] >= EDGE && box[2] <= width - EDGE && box[1] >= EDGE &&
        box[3] <= height - EDGE;
      if (isInside && !taken.some((other) => overlaps(box, other))) {
        return { name, x, y, left, hasDot, kind, box, font: pen.font };
      }
    }
    return null;
  }
}

/* A name of high rank shows from a higher zoom on. */
function isWorth(rank, kind, zoom) {
  if (kind === "country") return zoom < COUNTRY_ZOOM && rank <= zoom + 1.5;
  return rank <= zoom + (kind === "water" ? 0 : 1);
}

function overlaps(one, other) {
  return one[0] - GAP < other[2] && other[0] - GAP < one[2] && one[1] - GAP < other[3] &&
    other[1] - GAP < one[3];
}

function write(pen, { name, x, y, left, hasDot, kind, font }) {
  const colours = theme.colours();
  pen.font = font;
  pen.strokeStyle = colours.halo;
  pen.fillStyle = kind === "water" ? colours.waterName : colours.placeName;
  if (hasDot) {
    pen.beginPath();
    pen.arc(x, y, DOT, 0, 2 * Math.PI);
    pen.lineWidth = 2.5;
    pen.stroke();
    pen.fill();
  }
  pen.lineWidth = 3.5;
  pen.strokeText(name, left, y);
  pen.fillText(name, left, y);
}
