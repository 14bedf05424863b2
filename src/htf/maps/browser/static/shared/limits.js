/* The ends of the scale of colours. */

const MOST_CONTRAST = 1e4; // between both ends
const DIFFERENCE_CONTRAST = 100;

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

/* Of differences, { density, isBeyond }, by their size. */
export function differenceLimits(found, before = null) {
  const beyond = found.filter(({ isBeyond }) => isBeyond);
  const sizes = (beyond.length ? beyond : found).map(({ density }) => Math.abs(density));
  sizes.sort((a, b) => a - b);
  const most = Math.max(sizes[Math.floor(sizes.length * 0.997)] || 1, before ? before[1] : 0);
  return [most / DIFFERENCE_CONTRAST, most];
}
