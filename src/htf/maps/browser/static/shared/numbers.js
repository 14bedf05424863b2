/* Numbers as text, and the difference of two answers. */

const DEVIATIONS = 1.96; // half of a 95 % interval, in standard errors
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

/* The noise of two releases is independent, so variances add up. The middles of intervals are
   compared because they have no bias, unlike counts. */
export function differenceOf(first, second) {
  const count = (first.low + first.high - second.low - second.high) / 2;
  const half = DEVIATIONS * Math.hypot(first.std_error, second.std_error);
  return { count, low: count - half, high: count + half, isBeyond: Math.abs(count) > half };
}
