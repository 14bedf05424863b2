/* The two maps of the page. The second shows only when two releases are side by side. */

import { aboveCounts } from "../shared/basemap.js";
import { squareX, squareY } from "../shared/mercator.js";
import { makeMap, synchronise } from "../shared/maplibre.js";
import { Overlay } from "../shared/overlay.js";
import { RectangleLayer } from "../shared/rectangle-layer.js";
import { Tooltip } from "../shared/tooltip.js";
import { ZoneLayer } from "../shared/zone-layer.js";
import { labels, words } from "../words.js";
import { Differences } from "./difference.js";
import { EndMap } from "./end-map.js";
import { boxOf } from "./shapes.js";
import { chosen, isDifference, isPlace, isZoned, showsEnds, showsZones, state } from "./state.js";
import { Tiles } from "./tiles.js";

// { section, map, overlay, layer, tiles, differences, ends, zones, districts,
// tooltip }
export const panels = [];
let isWhole = true; // all of the releases is seen, until someone moves the map

export const shownPanels = () => panels.filter(({ section }) => !section.hidden);

/* With a view from the address, or else with all of the releases. */
export async function makePanels(view) {
  isWhole = view === null;
  for (const section of document.querySelectorAll(".panel")) panels.push(makePanel(section, view));
  const maps = panels.map(({ map }) => map);
  await Promise.all(maps.map((map) => (map.isStyleLoaded() ? null : map.once("load"))));
  for (const { map, layer } of panels) map.addLayer(layer, aboveCounts(map));
  synchronise(maps);
  for (const map of maps) {
    map.on("movestart", ({ originalEvent }) => {
      if (originalEvent && originalEvent.type !== "resize") isWhole = false;
    });
  }
  maps[0].on("resize", () => {
    if (isWhole && !state.shape) showWhole();
  });
}

function makePanel(section, view) {
  const label = words.mapHelp(section.dataset.panel === "0" ? labels.map : labels.secondMap);
  const start = view || { bounds: boundsOfChosen() };
  const map = makeMap(section.querySelector(".map"), { label, ...start });
  const layer = new RectangleLayer("rectangles");
  return {
    section,
    map,
    overlay: new Overlay(map),
    layer,
    tiles: new Tiles(map, layer),
    differences: new Differences(map, layer),
    ends: new EndMap(map, layer),
    zones: new ZoneLayer(map),
    districts: new ZoneLayer(map, { id: "districts" }),
    tooltip: new Tooltip(map),
  };
}

function boundsOfChosen() {
  const found = chosen().filter(isPlace).map(({ bounds84 }) => bounds84);
  if (!found.length) return [[-1, -1], [1, 1]];
  const edge = (i, choose) => choose(...found.map((bounds) => bounds[i]));
  return [[edge(0, Math.min), edge(1, Math.min)], [edge(2, Math.max), edge(3, Math.max)]];
}

export function showWhole() {
  isWhole = true;
  panels[0].map.fitBounds(boundsOfChosen(), { padding: 24, animate: false });
}

export function moveTo(view) {
  isWhole = false;
  panels[0].map.jumpTo(view);
}

/* Sections, headings, frames and sizes, for what is chosen. */
export function arrangePanels() {
  const shown = chosen();
  const isSide = shown.length > 1 && !isDifference();
  panels[1].section.hidden = !isSide;
  panels.forEach(({ section, overlay }, number) => {
    const own = isSide ? shown.slice(number, number + 1) : shown;
    const heading = section.querySelector("h2");
    heading.hidden = shown.length < 2;
    heading.textContent = words.minus(own.map(({ name }) => name));
    section.setAttribute("aria-label", heading.textContent || labels.map);
    overlay.frames = own.filter((one) => isPlace(one) && !isZoned(one)).map(frameOf);
  });
  panels[0].layer.diverging = isDifference();
  if (!isSide) panels[1].tiles.clear();
  if (isDifference() || showsZones()) panels[0].tiles.clear();
  if (!isDifference() || showsZones()) panels[0].differences.clear();
  if (!showsEnds()) panels[0].ends.clear();
  for (const { map } of panels) map.resize();
  const [{ map }, { map: second }] = panels;
  second.jumpTo({ center: map.getCenter(), zoom: map.getZoom() });
  for (const { overlay } of panels) overlay.draw();
}

function frameOf({ bounds84 }) {
  return boxOf(...bounds84).ring.map(([longitude, latitude]) => [
    squareX(longitude),
    squareY(latitude),
  ]);
}
