/* Numbers as text, and the difference of two answers. */

const DEVIATIONS = 1.96; // half of a 95 % interval, in standard errors
const LAPLACE_DEVIATIONS = 2.118303; // the same if all noise is that of one count
const PREFIXES = [{ size: 1e9, name: "G" }, { size: 1e6, name: "M" }, { size: 1e3, name: "k" }];
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

export function countText(value) {
  const rounded = Math.round(value);
  return whole.format(rounded === 0 ? 0 : rounded).replace("-", "−");
}

export const signedText = (value) => (Math.round(value) > 0 ? "+" : "") + countText(value);

export function shortNumber(value) {
  for (const { size, name } of PREFIXES) {
    if (value >= size * (1 - 1e-9)) return `${+(value / size).toPrecision(3)} ${name}`;
  }
  return String(+value.toPrecision(3));
}

/* Six digits after the point: a tenth of a metre, in degrees. */
export const toSixDigits = (value) => +value.toFixed(6);

/* Judged by the rounded numbers, which are those that a reader sees. */
export function isOutsideInterval({ count, low, high }) {
  return Math.round(count) < Math.round(low) || Math.round(count) > Math.round(high);
}

/* The raw answer that an interval was made around: as htf.maps.comparison has it. */
function centreOf({ low, high, std_error: error }) {
  return low + Math.min((high - low) / 2, LAPLACE_DEVIATIONS * error + 0.5);
}

/* The noise of two releases is independent, so variances add up. The centres of intervals are
   compared because they have next to no bias, unlike counts. */
export function differenceOf(first, second) {
  const count = centreOf(first) - centreOf(second);
  const half = DEVIATIONS * Math.hypot(first.std_error, second.std_error);
  return { count, low: count - half, high: count + half, isBeyond: Math.abs(count) > half };
}
