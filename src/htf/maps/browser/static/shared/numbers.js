/* Numbers as text, and the difference of two answers. Counts are rounded as in
   query/answer_texts.py. */

const DEVIATIONS = 1.96; // half of a 95 % interval, in standard errors
const PREFIXES = [{ size: 1e9, name: "G" }, { size: 1e6, name: "M" }, { size: 1e3, name: "k" }];
const RECORDS = "records";
const DISTINCT = "distinct "; // people who count once each, not by shares
const SUM_OF = "sum of "; // before what is added up
const WITH_DECIMALS = 99.95; // counts of people below this have one decimal
const FORMATS = [0, 1].map((digits) =>
  new Intl.NumberFormat("en", { minimumFractionDigits: digits, maximumFractionDigits: digits })
);

/* Records, distinct people and weights are whole. People count by shares, so that few of them need
   a decimal. */
function decimalsOf(value, quantity) {
  const isWhole = quantity === RECORDS || quantity.startsWith(DISTINCT) ||
    quantity.startsWith(SUM_OF);
  return isWhole || Math.abs(value) >= WITH_DECIMALS ? 0 : 1;
}

/* As a reader sees it, and never minus zero. */
export function roundedCount(value, quantity) {
  const steps = 10 ** decimalsOf(value, quantity);
  return (Math.round(value * steps) / steps) || 0;
}

export function countText(value, quantity = RECORDS) {
  const format = FORMATS[decimalsOf(value, quantity)];
  return format.format(roundedCount(value, quantity)).replace("-", "−");
}

export function signedText(value, quantity) {
  return (roundedCount(value, quantity) > 0 ? "+" : "") + countText(value, quantity);
}

export function shortNumber(value) {
  for (const { size, name } of PREFIXES) {
    if (value >= size * (1 - 1e-9)) return `${+(value / size).toPrecision(3)} ${name}`;
  }
  return String(+value.toPrecision(3));
}

/* Six digits after the point: a tenth of a metre, in degrees. */
export const toSixDigits = (value) => +value.toFixed(6);

/* The noise of two releases is independent, so variances add up. Raw answers are compared because
   they have next to no bias, unlike counts. */
export function differenceOf(first, second) {
  const count = first.raw - second.raw;
  const half = DEVIATIONS * Math.hypot(first.std_error, second.std_error);
  return { count, low: count - half, high: count + half, isBeyond: Math.abs(count) > half };
}
