/* The ends of the scale of colours. */

const MOST_CONTRAST = 1e4; // between both ends
const DIFFERENCE_CONTRAST = 100;
const SAME = 1e-9; // ratios that differ by less are the same
const SHARE = 0.98; // of the differences that are more than noise lie within the scale

/* Of what has { density, count, clear }: those of all that is seen, but for the most extreme by
   area. With the ends from before they only ever move apart, so that colours keep their meaning.
   */
export function densityLimits(shown, before = null) {
  const seen = shown
    .filter(({ density, clear }) => clear && density > 0)
    .map(({ density, count }) => [density, count / density]);
  if (!seen.length) return before || [1, 10];
  seen.sort(([a], [b]) => a - b);
  let [least, most] = [densityAt(seen, 0.01), densityAt(seen, 0.997)];
  if (before) [least, most] = [Math.min(least, before[0]), Math.max(most, before[1])];
  return [Math.max(least, most / MOST_CONTRAST), Math.max(most, 10 * least)];
}

/* The density below which this share of the area lies. */
function densityAt(seen, share) {
  const total = seen.reduce((sum, [, area]) => sum + area, 0);
  let sum = 0;
  for (const [density, area] of seen) {
    sum += area;
    if (sum >= share * total) return density;
  }
  return seen.at(-1)[0];
}

/* Of differences, { density, isBeyond }, by their size; as in maps/scales.py. The end is a round
   number. */
export function differenceLimits(found, before = null) {
  const sizes = drawnSizes(found).sort((a, b) => a - b);
  const wanted = percentile(sizes, SHARE);
  const most = Math.max(wanted > 0 ? roundNumber(wanted) : 1, before ? before[1] : 0);
  return [most / DIFFERENCE_CONTRAST, most];
}

/* Of those that are more than noise; of all, if none is. */
function drawnSizes(found) {
  const beyond = found.filter(({ isBeyond }) => isBeyond);
  return (beyond.length ? beyond : found).map(({ density }) => Math.abs(density));
}

/* As NumPy has it: between two values, in proportion. */
function percentile(sorted, share) {
  if (!sorted.length) return 0;
  const at = share * (sorted.length - 1);
  const [low, high] = [Math.floor(at), Math.ceil(at)].map((i) => sorted[i]);
  return low + (high - low) * (at % 1);
}

/* The next number from there on that is 1, 2 or 5 times a power of ten. */
function roundNumber(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((n) => n * power).find((one) => one >= value * (1 - SAME));
}

/* How many differences lie beyond the end of the scale, and the size of the largest; or null. */
export function beyondEnd(found, [, most]) {
  const beyond = drawnSizes(found).filter((size) => size > most);
  if (!beyond.length) return null;
  return { number: beyond.length, largest: beyond.reduce((a, b) => Math.max(a, b)) };
}
