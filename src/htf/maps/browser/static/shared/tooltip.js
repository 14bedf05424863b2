/* What is at a place, shown beside it. */

import { words } from "../words.js";
import { element } from "./elements.js";
import { countText, differenceTexts, excludesZero, isAtEnd, shortNumber } from "./numbers.js";

const GAP = 16; // pixels between the place and the box
const EDGE = 4; // between the box and the edge of the map

export class Tooltip {
  constructor(map) {
    this.map = map;
    const properties = { className: "tooltip", role: "status", "aria-live": "polite", hidden: "" };
    this.box = element("div", properties);
    map.getContainer().append(this.box);
  }

  /* Lines are texts, or [text, class]. */
  show(lngLat, lines) {
    this.box.replaceChildren(...lines.map((line) => {
      const [textContent, className] = Array.isArray(line) ? line : [line, ""];
      return element("div", { textContent, className });
    }));
    this.box.hidden = false;
    this.box.classList.remove("old");
    this.placeBeside(this.map.project(lngLat));
  }

  placeBeside({ x, y }) {
    const { clientWidth: width, clientHeight: height } = this.map.getContainer();
    const { offsetWidth: wide, offsetHeight: high } = this.box;
    const right = x + GAP;
    const left = right + wide > width ? Math.max(EDGE, x - GAP - wide) : right;
    const below = y + GAP;
    const top = below + high > height ? y - GAP - high : below;
    const across = Math.min(left, Math.max(EDGE, width - wide - EDGE));
    const down = Math.max(EDGE, Math.min(height - high - EDGE, top));
    this.box.style.transform = `translate(${across}px, ${down}px)`;
  }

  /* Until the next lines come, what it says is of what was there before. */
  fade() {
    this.box.classList.add("old");
  }

  hide() {
    this.box.hidden = true;
  }
}

/* The name of a zone, and those of the larger ones that it lies in. */
export const nameLines = (
  { label, above },
) => [[label, "name"], ...above.map((text) => [text, "quiet"])];

const densityLines = (density, quantity, unit) =>
  density === null ? [] : [`${shortNumber(density)} ${words.density(quantity, unit)}`];

/* For a rectangle of one release. Its interval may still be on its way. Numbers that are not
   spread over an area have no density. */
export function countLines(answer, { isClear, isUnsure = false, density, quantity, unit }) {
  const hasInterval = answer.low !== undefined;
  const [low, high] = [answer.low, answer.high].map((value) => countText(value, quantity));
  return [
    [words.countOf(countText(answer.count, quantity), quantity), "big"],
    hasInterval ? words.interval(low, high) : ["…", "quiet"],
    ...(hasInterval && isAtEnd(answer, quantity) ? [[words.guessedFromNearby, "quiet"]] : []),
    ...(isClear
      ? densityLines(density, quantity, unit)
      : [[isUnsure ? words.noneOrMany : words.onlyNoise, "quiet"]]),
  ];
}

/* Among many places, a few have an interval without zero by chance. */
export const noiseText = (difference) =>
  excludesZero(difference) ? words.maybeChance : words.onlyNoise;

/* For a square of a difference; `sides` are the names and counts of both releases. */
export function differenceLines(difference, { isBeyond, sides, quantity }) {
  const values = sides.map(([, value]) => value);
  const [count, low, high] = differenceTexts(values, difference, quantity);
  return [
    [words.countOf(count, quantity), "big"],
    words.interval(low, high),
    ...sides.map(([name, value]) => `${name}: ${countText(value, quantity)}`),
    isBeyond ? [words.beyondNoise, "beyond"] : [noiseText(difference), "quiet"],
  ];
}
