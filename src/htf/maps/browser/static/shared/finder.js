/* Finds the rectangle of a sheet at a place. */

const MOST_SIDE = 512;

/* A grid whose squares list the rectangles that touch them. `start` and `found` hold the lists
   one after another: those of square k are found[start[k]] up to found[start[k + 1]]. */
export class Finder {
  constructor(sheet) {
    this.sheet = sheet;
    this.side = Math.max(1, Math.min(MOST_SIDE, Math.ceil(Math.sqrt(sheet.length))));
    this.measure();
    this.start = new Uint32Array(this.side * this.side + 1);
    this.visit((square) => this.start[square + 1]++);
    for (let i = 1; i < this.start.length; i++) this.start[i] += this.start[i - 1];
    this.found = new Uint32Array(this.start[this.start.length - 1]);
    const next = this.start.slice();
    this.visit((square, i) => {
      this.found[next[square]++] = i;
    });
  }

  measure() {
    const { corners } = this.sheet;
    const low = [Infinity, Infinity];
    const high = [-Infinity, -Infinity];
    for (let i = 0; i < corners.length; i++) {
      low[i % 2] = Math.min(low[i % 2], corners[i]);
      high[i % 2] = Math.max(high[i % 2], corners[i]);
    }
    this.low = low;
    this.step = [0, 1].map((axis) => (high[axis] - low[axis]) / this.side || 1);
  }

  visit(action) {
    for (let i = 0; i < this.sheet.length; i++) {
      const [west, east] = this.rangeOf(i, 0);
      const [north, south] = this.rangeOf(i, 1);
      for (let x = west; x <= east; x++) {
        for (let y = north; y <= south; y++) action(x * this.side + y, i);
      }
    }
  }

  /* The first and the last square of the grid that a rectangle touches along an axis. */
  rangeOf(i, axis) {
    const ends = [0, 2, 4, 6].map((at) => this.sheet.corners[8 * i + at + axis]);
    return [this.squareOf(Math.min(...ends), axis), this.squareOf(Math.max(...ends), axis)];
  }

  squareOf(value, axis) {
    const square = Math.floor((value - this.low[axis]) / this.step[axis]);
    return Math.max(0, Math.min(this.side - 1, square));
  }

  /* The number of the rectangle at a place of the Mercator square, or -1. */
  at(x, y) {
    const { frame, corners } = this.sheet;
    const u = (x - frame[0]) / frame[2];
    const v = (y - frame[1]) / frame[2];
    const square = this.squareOf(u, 0) * this.side + this.squareOf(v, 1);
    for (let at = this.start[square]; at < this.start[square + 1]; at++) {
      if (isInside(corners, 8 * this.found[at], u, v)) return this.found[at];
    }
    return -1;
  }
}

/* A place is inside if it lies on the same side of all four edges. */
function isInside(c, at, u, v) {
  const ring = [0, 2, 6, 4]; // SW, SE, NE, NW
  let side = 0;
  for (let k = 0; k < 4; k++) {
    const a = at + ring[k];
    const b = at + ring[(k + 1) % 4];
    const turn = (c[b] - c[a]) * (v - c[a + 1]) - (c[b + 1] - c[a + 1]) * (u - c[a]);
    if (turn !== 0 && side !== 0 && Math.sign(turn) !== side) return false;
    if (turn !== 0) side = Math.sign(turn);
  }
  return true;
}
