/* What is at a place, shown beside it. */

import { words } from "../words.js";
import { element } from "./elements.js";
import { countText, isOutsideInterval, shortNumber, signedText } from "./numbers.js";

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

  hide() {
    this.box.hidden = true;
  }
}

/* For a rectangle of one release. Its interval may still be on its way. */
export function countLines(answer, { isClear, density, unit }) {
  const hasInterval = answer.low !== undefined;
  return [
    [countText(answer.count), "big"],
    hasInterval ? words.interval(countText(answer.low), countText(answer.high)) : ["…", "quiet"],
    ...(hasInterval && isOutsideInterval(answer) ? [[words.outsideInShort, "quiet"]] : []),
    isClear ? `${shortNumber(density)} ${words.density(unit)}` : [words.onlyNoise, "quiet"],
  ];
}

/* For a square of a difference; `sides` are the names and counts of both releases. */
export function differenceLines({ count, low, high }, isBeyond, sides) {
  return [
    [signedText(count), "big"],
    words.interval(signedText(low), signedText(high)),
    ...sides.map(([name, value]) => `${name}: ${countText(value)}`),
    isBeyond ? [words.beyondNoise, "beyond"] : [words.onlyNoise, "quiet"],
  ];
}
