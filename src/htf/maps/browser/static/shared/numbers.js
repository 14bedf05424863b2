/* Numbers as text, and the difference of two answers. Counts are rounded as in
   query/answer_texts.py, and compared as in query/change.py. */

const DEVIATIONS = 1.96; // half of a 95 % interval, in standard errors
const OUTSIDE = 0.05; // the chance that any mark is false, at most
const PREFIXES = [{ size: 1e9, name: "G" }, { size: 1e6, name: "M" }, { size: 1e3, name: "k" }];
const RECORDS = "records";
const SPLIT = "split "; // before people who count once in all, split across their records
const WITH_DECIMALS = 99.95; // counts of split people below this have one decimal
const FORMATS = [0, 1].map((digits) =>
  new Intl.NumberFormat("en", { minimumFractionDigits: digits, maximumFractionDigits: digits })
);

/* Records, different people and weights are whole. Of split people a place may hold a fraction, so
   few of them need a decimal. */
const decimalsOf = (value, quantity) =>
  quantity.startsWith(SPLIT) && Math.abs(value) < WITH_DECIMALS ? 1 : 0;

/* As a reader sees it, and never minus zero. */
export function roundedCount(value, quantity) {
  const steps = 10 ** decimalsOf(value, quantity);
  return (Math.round(value * steps) / steps) || 0;
}

/* Whether a count is an end of its interval. Zero explains itself. */
export const isAtEnd = ({ count, low, high }, quantity) =>
  low < high && (count === low || count === high) && roundedCount(count, quantity) > 0;

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

/* The difference of the two counts. Its interval is around the difference of the raw answers, which
   have next to no bias, and reaches as far as that of the counts. The noise of two releases is
   drawn apart, so the squares of their errors add up. `chance` is at most the chance that noise
   alone is so large, where it matters: below 5 %, the tail of Laplace noise is the longest. */
export function differenceOf(first, second) {
  const count = first.count - second.count;
  const raw = first.raw - second.raw;
  const [down, up] = [reachOf(first, second), reachOf(second, first)];
  const reach = Math.hypot(longerSide(first), longerSide(second));
  const deviations = reach > 0 ? (DEVIATIONS * Math.abs(raw)) / reach : 0;
  return {
    count,
    low: Math.min(raw - down, count),
    high: Math.max(raw + up, count),
    chance: Math.exp(-Math.SQRT2 * deviations),
  };
}

/* Of an interval. Where a box cuts leaves, it makes room for what is spread unevenly in them. */
const longerSide = (answer) => Math.max(DEVIATIONS * answer.std_error, answer.high - answer.raw);

/* How far one answer may be too high and the other too low, together. */
const reachOf = (high, low) => Math.hypot(DEVIATIONS * high.std_error, low.high - low.raw);

/* The same differences, with `isBeyond` where they are more than noise: by Holm's rule, for all of
   them together and for others that are not shown, if there are `all` of them. */
export function markBeyondNoise(found, all = found.length) {
  const order = found.map((_, i) => i).sort((a, b) => found[a].chance - found[b].chance);
  const passes = (i, rank) => found[i].chance <= OUTSIDE / (all - rank);
  const first = order.findIndex((i, rank) => !passes(i, rank));
  const marked = new Set(first < 0 ? order : order.slice(0, first));
  return found.map((one, i) => ({ ...one, isBeyond: marked.has(i) }));
}

/* Whether a difference looks like more than noise by its own interval alone. */
export const excludesZero = ({ low, high }) => low > 0 || high < 0;

/* The texts of a difference and of its interval. It is the difference of the counts as they are
   shown, so that a reader who subtracts one from the other finds it. */
export function differenceTexts([first, second], { low, high }, quantity) {
  const shown = roundedCount(first, quantity) - roundedCount(second, quantity);
  return [shown, Math.min(low, shown), Math.max(high, shown)]
    .map((value) => signedText(value, quantity));
}
