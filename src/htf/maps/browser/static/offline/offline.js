/* The offline map that `htf map` writes: layers alone, side by side, subtracted, or with a slider
   through steps and their changes. All that it shows is in the file; modules.py joins this module
   and those that it imports into one script. */

import { byId, element, fillLabels } from "../shared/elements.js";
import { showLegend } from "../shared/legend.js";
import { onPlace, synchronise } from "../shared/maplibre.js";
import { theme } from "../shared/theme.js";
import { TimeBar } from "../shared/time-bar.js";
import { labels, words } from "../words.js";
import { changeSheets, data, stepSheets } from "./data.js";
import { SmallMaps } from "./multiples.js";
import { Panel } from "./panel.js";
import { hasTrips, listenToTrips, tellTrips, tripSheet } from "./trips.js";

const steps = data.steps.length;
const view = {
  at: data.at,
  level: data.level || 0,
  isChange: false,
  direction: "from",
  chosen: -1,
};
let turn = 0;

async function sheetsOf(panel, at) {
  const sheets = await (view.isChange ? changeSheets(at) : stepSheets(panel, at));
  return hasTrips ? sheets.map((one) => tripSheet(one, view)) : sheets;
}

/* Draws what is chosen in `view`, and reads the next step meanwhile. */
async function show(panels) {
  const started = ++turn;
  document.documentElement.dataset.ready = "no"; // tests wait for "yes"
  const { at } = view;
  const read = panels.map((_, number) =>
    Promise.all([sheetsOf(number, at), stepSheets(number, at)])
  );
  const found = await Promise.all(read);
  if (started !== turn) return;
  panels.forEach((panel, number) => {
    const [sheets, own] = found[number];
    panel.show(sheets, own, view);
  });
  tell(panels[0]);
  if (at + 1 < steps) sheetsOf(0, at + 1);
  await Promise.all(panels.map(({ map }) => map.once("idle")));
  if (started === turn) document.documentElement.dataset.ready = "yes";
}

function tell({ sheet }) {
  const since = data.steps[view.at - 1];
  byId("period-note").textContent = !view.isChange
    ? ""
    : since
    ? words.since(since, sheet.marked)
    : words.noneBefore;
  if (hasTrips) tellTrips(sheet, view);
  showColours(sheet);
}

/* Squares of another size, and zones of another level, have a scale of their own. */
function showColours({ limits, unit = data.unit, beyond, hasUnsure }) {
  const quantities = data.panels.map(({ quantity }) => quantity);
  const { isChange } = view;
  const sides = isChange ? [data.steps[view.at], data.steps[view.at - 1]] : data.sides;
  showLegend(byId("legend"), { limits, quantities, unit, sides, beyond, isChange, hasUnsure });
  byId("theme").textContent = theme.isDark() ? words.lightMode : words.darkMode;
}

function listen(panels, again) {
  const leave = () => panels.forEach((panel) => panel.leave());
  for (const { map } of panels) {
    onPlace(map, (lngLat) => panels.forEach((panel) => panel.look(lngLat)), leave);
    map.on("zoomend", () => tell(panels[0]));
  }
  synchronise(panels.map(({ map }) => map));
  byId("level").addEventListener("change", () => {
    Object.assign(view, { level: +byId("level").value, chosen: -1 });
    leave();
    again();
  });
  byId("change").addEventListener("change", () => {
    view.isChange = byId("change").checked;
    again();
  });
  const outlines = byId("outlines");
  const outline = () => panels.forEach(({ marks }) => marks.outline(outlines.checked));
  outlines.addEventListener("change", outline);
  outlines.checked = data.boxes && data.panels.every((panel) => panel.outlines);
  outline();
  if (hasTrips) { for (const panel of panels) listenToTrips(panel, view, again); }
  byId("theme").addEventListener("click", theme.toggle);
  theme.onChange(() => tell(panels[0]));
}

function fillControls() {
  fillLabels(labels);
  if (data.per_box) byId("outlines").nextElementSibling.textContent = words.outlineBoxes;
  const levels = data.kind === "grid" ? [] : data.shapes;
  const options = levels.map(({ name }, value) => element("option", { value, textContent: name }));
  byId("level").replaceChildren(...options);
  byId("level").value = view.level;
  byId("level").closest("label").hidden = levels.length < 2;
  byId("change").closest("label").hidden = data.changes === null;
  byId("outlines").closest("label").hidden = !data.panels.some((panel) => panel.outlines);
}

async function start() {
  fillControls();
  const panels = [];
  const again = () => show(panels);
  const time = new TimeBar({
    show: (at) => {
      view.at = at;
      return again();
    },
  });
  time.fill(data.steps, view.at); // before the map, which gets the rest
  panels.push(...data.panels.map((packed) => new Panel(packed)));
  globalThis.htf = { maps: panels.map(({ map }) => map), view }; // for tests, and for the curious
  await Promise.all(panels.map((panel) => panel.load()));
  if (steps > 1) new SmallMaps({ view, sheetsOf, choose: (at) => time.go(at) });
  const shown = again();
  await shown;
  listen(panels, again);
}

start();
