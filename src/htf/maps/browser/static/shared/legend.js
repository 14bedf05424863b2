/* What the colours mean. */

import { words } from "../words.js";
import { element } from "./elements.js";
import { countText, shortNumber } from "./numbers.js";
import { theme } from "./theme.js";

/* `sides` are the names of two releases, for a difference, and `beyond` what lies beyond the end of
   its scale (limits.js). `isChange` is for a map that colours nothing but what is more than noise.
   `quantities` are what they count. */
export function showLegend(
  container,
  { limits, quantities, unit, sides = null, beyond = null, isChange = false, hasUnsure = false },
) {
  const colours = theme.colours();
  const quantity = words.either(quantities);
  const name = isChange ? words.changeOf : sides ? words.densityDifference : words.density;
  const title = name(quantity, unit);
  const marks = sides ? differenceMarks(limits) : densityMarks(limits);
  const children = [
    element("div", { className: "legend-title", textContent: title }),
    scaleOf(sides ? colours.diverging : colours.scale, marks),
  ];
  if (sides) children[1].classList.add("to-the-ends"); // marks at both ends need room beside them
  if (beyond) {
    const textContent = words.beyondEnd(
      countText(beyond.number),
      `±${shortNumber(beyond.largest)}`,
    );
    children.push(element("div", { className: "legend-note", textContent }));
  }
  container.replaceChildren(...children, ...swatchesOf(colours, sides, isChange, hasUnsure));
}

function swatchesOf(colours, sides, isChange, hasUnsure) {
  const blank = swatch(colours.blank, words.onlyNoise);
  if (!sides) return [blank, ...(hasUnsure ? [swatch(colours.unsure, words.tooFewToTell)] : [])];
  const [less, more] = [colours.diverging[4], colours.diverging[12]];
  const faint = `linear-gradient(to right, ${less}55, ${colours.blank}, ${more}55)`;
  const [first, second] = sides;
  return [
    isChange ? blank : swatch(faint, words.faintIsNoise),
    ...(second ? [swatch(colours.diverging[13], words.moreIn(first))] : []),
    ...(second ? [swatch(colours.diverging[3], words.moreIn(second))] : []),
  ];
}

function scaleOf(colours, marks) {
  const bar = element("div", { className: "legend-bar" });
  bar.style.background = `linear-gradient(to right, ${colours.join(",")})`;
  const ticks = element("div", { className: "legend-ticks" });
  for (const [at, textContent] of marks) {
    const tick = element("span", { textContent });
    tick.style.left = `${at}%`;
    ticks.append(tick);
  }
  return element("div", { className: "legend-scale" }, bar, ticks);
}

function swatch(background, text) {
  const colour = element("i");
  colour.style.background = background;
  return element("div", { className: "legend-swatch" }, colour, text);
}

/* How far along the bar a value is, in percent. */
const placeOf = (value, [least, most]) => (Math.log(value / least) / Math.log(most / least)) * 100;

function densityMarks(limits) {
  return ticksBetween(...limits).map((value) => [placeOf(value, limits), shortNumber(value)]);
}

function differenceMarks(limits) {
  const [, most] = limits;
  return [[50, "0"]].concat([most, most / 10].flatMap((value) => {
    const half = placeOf(value, limits) / 2;
    return [[50 + half, `+${shortNumber(value)}`], [50 - half, `−${shortNumber(value)}`]];
  }));
}

function ticksBetween(least, most) {
  const steps = Math.log10(most / least) < 2.5 ? [1, 2, 5] : [1];
  const found = [];
  for (let power = Math.floor(Math.log10(least)); power <= Math.log10(most); power++) {
    for (const step of steps) {
      const value = step * 10 ** power;
      if (value >= least * 0.999 && value <= most * 1.001) found.push(value);
    }
  }
  return found;
}
