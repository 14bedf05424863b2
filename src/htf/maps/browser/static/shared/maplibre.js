/* Maps as MapLibre draws them, set up for us: flat, north up, light or dark. */

import { words } from "../words.js";
import { basemapStyle, paintBasemap } from "./basemap.js";
import { element } from "./elements.js";
import { theme } from "./theme.js";

const STYLE_WAIT = 10000; // milliseconds
const creditOf = new WeakMap(); // the control of a map that says whose work it shows
const CREDIT_LINK = '<a href="https://maplibre.org/" target="_blank" rel="noreferrer">MapLibre</a>';

/* The address of a style or of tiles, or null for a plain background. */
function baseStyle(address) {
  if (address && address.includes("{z}")) {
    const base = { type: "raster", tiles: [address], tileSize: 256 };
    return {
      version: 8,
      sources: { base },
      layers: [{ id: "base", type: "raster", source: "base" }],
    };
  }
  if (address) return address;
  const paint = { "background-color": theme.colours().beyond };
  const background = { id: "background", type: "background", paint };
  const { sources, layers } = basemapStyle();
  return { version: 8, sources, layers: [background, ...layers] };
}

export function makeMap(container, { style = null, label, credits = [], ...rest }) {
  const { Map: MapLibreMap, NavigationControl } = globalThis.maplibregl;
  const map = new MapLibreMap({
    container,
    style: baseStyle(style),
    fitBoundsOptions: { padding: 24 },
    attributionControl: false,
    dragRotate: false,
    pitchWithRotate: false,
    touchPitch: false,
    maxPitch: 0,
    maxZoom: 22,
    renderWorldCopies: false,
    fadeDuration: 0,
    canvasContextAttributes: { antialias: true },
    locale: { "Map.Title": label },
    ...rest,
  });
  map.touchZoomRotate.disableRotation();
  map.keyboard.disableRotation();
  map.addControl(new NavigationControl({ showCompass: false }), "top-right");
  setCredits(map, credits);
  theme.onChange(() => {
    if (map.getLayer("background")) {
      map.setPaintProperty("background", "background-color", theme.colours().beyond);
      paintBasemap(map);
    }
    map.triggerRepaint();
  });
  return map;
}

/* Says whose work the map shows, besides MapLibre's. Credits are plain text. */
export function setCredits(map, credits) {
  if (creditOf.has(map)) map.removeControl(creditOf.get(map));
  const texts = credits.map((text) => element("span", { textContent: text }).innerHTML);
  const customAttribution = [...texts, words.credit(CREDIT_LINK)];
  const { AttributionControl } = globalThis.maplibregl;
  creditOf.set(map, new AttributionControl({ compact: false, customAttribution }));
  map.addControl(creditOf.get(map), "bottom-right");
}

/* Resolves when layers can be added, to whether the style is the one that was asked for. A style
   that cannot be loaded, or takes too long, is replaced by the plain background. */
export function whenStyled(map) {
  if (map.getStyle()) return Promise.resolve(true);
  return new Promise((resolve) => {
    let isOurs = true;
    const doWithout = () => {
      if (!isOurs || map.getStyle()) return;
      isOurs = false;
      map.setStyle(baseStyle(null), { diff: false });
    };
    const timer = setTimeout(doWithout, STYLE_WAIT);
    map.on("error", doWithout);
    map.once("style.load", () => {
      clearTimeout(timer);
      map.off("error", doWithout);
      resolve(isOurs);
    });
  });
}

/* Maps that always look at the same place. */
export function synchronise(maps) {
  let isFollowing = false;
  for (const map of maps) {
    map.on("move", () => {
      if (isFollowing) return;
      isFollowing = true;
      const view = { center: map.getCenter(), zoom: map.getZoom() };
      for (const other of maps) if (other !== map) other.jumpTo(view);
      isFollowing = false;
    });
  }
}

function viewOf(map) {
  const { clientWidth, clientHeight } = map.getContainer();
  return [...map.getCenter().toArray(), map.getZoom(), clientWidth, clientHeight].join();
}

/* Calls `visit` with the place that someone points at, taps, or moves to the middle with the
   keys; and `leave` as soon as they no longer do, or the map moves away below the pointer. */
export function onPlace(map, visit, leave) {
  const canvas = map.getCanvas();
  let resting = null; // where a mouse is, on the screen; a finger is nowhere once it is lifted
  let isTouch = false;
  const depart = () => {
    resting = null;
    leave();
  };
  canvas.addEventListener("pointerdown", ({ pointerType }) => isTouch = pointerType === "touch");
  map.on("mousemove", ({ point, lngLat }) => {
    resting = isTouch ? null : point;
    visit(lngLat);
  });
  map.on("click", ({ lngLat }) => visit(lngLat));
  canvas.addEventListener("mouseleave", depart);
  canvas.addEventListener("blur", leave);
  let view = viewOf(map);
  map.on("move", () => { // which may also be said of a map that stays where it is
    if (view !== viewOf(map)) leave();
    view = viewOf(map);
  });
  document.addEventListener("pointerdown", ({ target }) => {
    if (!map.getContainer().contains(/** @type {Node} */ (target))) depart();
  });
  document.addEventListener("keydown", ({ key }) => {
    if (key === "Escape") leave();
  });
  const visitAgain = () => {
    if (canvas.matches(":focus-visible")) visit(map.getCenter());
    else if (resting) visit(map.unproject(resting));
  };
  canvas.addEventListener("focus", visitAgain);
  map.on("moveend", visitAgain);
}
