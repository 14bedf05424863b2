/* The colours of the map, and which one a density gets. */

// Magma, pale to dark and dark to pale. Brightness alone tells the steps apart, so that everyone
// can read the map.
// deno-fmt-ignore
const PALE_TO_DARK = [
  "#fcf0b2", "#fed597", "#febb81", "#fea16e", "#fb8560", "#f56b5c", "#e85362", "#d5446d", "#bf3a77",
  "#a6317d", "#902a81", "#782281", "#621980", "#4c117a", "#331067", "#1d1147", "#0b0924",
];
// deno-fmt-ignore
const DARK_TO_PALE = [
  "#29115a", "#400f74", "#56147d", "#6a1c81", "#802582", "#942c80", "#aa337d", "#bf3a77", "#d5446d",
  "#e75263", "#f3655c", "#fa7f5e", "#fd9869", "#feb078", "#fec88c", "#fde2a3", "#fcf9bb",
];
// Purple for less and orange for more, which differ for those who cannot tell red from green.
// deno-fmt-ignore
const DIVERGING_LIGHT = [
  "#3c0f63", "#522584", "#6b4f9b", "#867ab0", "#a39bc7", "#bcb7d8", "#d2d3e7", "#e5e7f0", "#f6f6f7",
  "#fbead2", "#fedaa9", "#fdc278", "#f4a84c", "#e3881d", "#cb6e0d", "#b05606", "#934607",
];
// deno-fmt-ignore
const DIVERGING_DARK = [
  "#cbb8ff", "#b49df5", "#9d83e6", "#866bd2", "#7058b8", "#5b4a99", "#484078", "#383a56", "#2c3440",
  "#433a30", "#634426", "#86501c", "#aa6016", "#cb761d", "#e6922f", "#f7b055", "#ffd08c",
];

export const THEMES = {
  light: {
    scale: PALE_TO_DARK,
    diverging: DIVERGING_LIGHT,
    blank: "#e9edf2", // no more than noise
    unsure: "#c3bfcd", // too few to tell
    beyond: "#dfe4ea", // outside the map
    veil: "#f3f6fa", // half of it over the ground is `blank`
    ground: "#dfe4ea", // of the base map
    park: "#d3dfd8", // of tiles
    water: "#bdd0e3",
    coast: "#6f8aa6",
    river: "#7d9cbb",
    border: "#7a6a80",
    road: "#5f6872",
    roadEdge: "#ffffff",
    placeName: "#27313c",
    waterName: "#2f5578",
    line: "#4a545e",
    graticule: "rgba(60,72,86,.22)",
    label: "#3b4754",
    halo: "rgba(255,255,255,.85)",
    frame: "#76828f",
    chosen: "#0057b8",
  },
  dark: {
    scale: DARK_TO_PALE,
    diverging: DIVERGING_DARK,
    blank: "#1b222b",
    unsure: "#464457",
    beyond: "#10151b",
    veil: "#262f3b",
    ground: "#10151b",
    park: "#11201d",
    water: "#0b2740",
    coast: "#53728f",
    river: "#47688a",
    border: "#8d7f96",
    road: "#8a94a0",
    roadEdge: "#10151b",
    placeName: "#e6ebf1",
    waterName: "#9cc3e8",
    line: "#c3ccd6",
    graticule: "rgba(200,212,225,.16)",
    label: "#c3ccd6",
    halo: "rgba(16,21,27,.85)",
    frame: "#5b6774",
    chosen: "#6db5ff",
  },
};

export const VEIL = 0.5; // opacity of `veil`
const FAINT = 10; // added to a shade that is no more than noise; the shader takes it off again
const FAINTNESS = 0.22; // of its colour
const LEAST_BEYOND = 0.3; // how far from the middle a difference is at least drawn, beyond noise
const LEAST_FAINT = 0.08;

/* Where a density lies on a log scale, from 0 to 1. */
const onLogScale = (density, [least, most]) => Math.log(density / least) / Math.log(most / least);

/* What a file says of each rectangle. */
export const CLEAR = 1; // more than noise
export const UNSURE = 2; // too few to tell

/* From 0 to 1, -1 for a density that is no more than noise, -2 where there are too few to tell. */
export function shadeOf(density, isClear, limits, isUnsure = false) {
  if (isUnsure) return -2;
  if (!isClear || !(density > 0)) return -1;
  return Math.max(0, Math.min(1, onLogScale(density, limits)));
}

/* 0.5 is no difference; below it the second release has more, above it the first. */
export function divergingShade(density, isBeyond, limits) {
  const size = Math.min(1, onLogScale(Math.abs(density), limits) || 0);
  const drawn = Math.max(isBeyond ? LEAST_BEYOND : LEAST_FAINT, size);
  const shade = 0.5 + 0.5 * Math.sign(density) * drawn;
  return isBeyond ? shade : shade + FAINT;
}

/* The same for a map that colours only what is more than noise. */
export const changeShade = (density, isBeyond, limits) =>
  isBeyond ? divergingShade(density, true, limits) : -1;

const faint = (colour, blank) => {
  const [ours, theirs] = [rgbOf(colour), rgbOf(blank)];
  const mixed = ours.map((part, i) =>
    Math.round(255 * (FAINTNESS * part + (1 - FAINTNESS) * theirs[i]))
  );
  return `rgb(${mixed.join()})`;
};

/* The colour of a shade as CSS: what shaders.js does for rectangles. */
export function colourOf(shade, { scale, diverging, blank, unsure }, isDiverging) {
  if (shade < 0) return shade < -1 ? unsure : blank;
  const stops = isDiverging ? diverging : scale;
  const isFaint = shade > FAINT / 2;
  const at = Math.max(0, Math.min(1, isFaint ? shade - FAINT : shade)) * (stops.length - 1);
  const below = Math.min(Math.floor(at), stops.length - 2);
  const [low, high, ground] = [stops[below], stops[below + 1], blank].map(rgbOf);
  const mixed = low.map((part, i) => {
    const full = part + (high[i] - part) * (at - below);
    return Math.round(255 * (isFaint ? ground[i] + (full - ground[i]) * FAINTNESS : full));
  });
  return `rgb(${mixed.join()})`;
}

/* The colour of a shade, as an expression of MapLibre: what shaders.js does for rectangles. */
export function shadeExpression(shade, colours, isDiverging, blank = colours.blank) {
  const stops = isDiverging ? colours.diverging : colours.scale;
  const ramp = (at, list) => [
    "interpolate",
    ["linear"],
    at,
    ...list.flatMap((colour, i) => [i / (list.length - 1), colour]),
  ];
  const fainter = stops.map((colour) => faint(colour, colours.blank));
  const isFaint = [">", shade, FAINT / 2];
  return [
    "case",
    ["<", shade, 0],
    blank,
    isFaint,
    ramp(["-", shade, FAINT], fainter),
    ramp(shade, stops),
  ];
}

/* Red, green and blue of "#rrggbb", from 0 to 1. */
export const rgbOf = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255);
