/* Trips between zones: where all of them start or end, or those from or to a chosen zone. */

import { CLEAR } from "../shared/colours.js";
import { byId } from "../shared/elements.js";
import { densityLimits } from "../shared/limits.js";
import { words } from "../words.js";
import { data, shaded } from "./data.js";

const COLUMNS = ["count", "low", "high"];
const scales = new Map(); // by what is chosen: the ends of its colours, which all steps share

/* The sheet of a level for what is chosen in `view`, whose colours have a scale of their own. */
export function tripSheet(sheet, { direction, chosen }) {
  const { trips, labels, area, shape } = sheet;
  const columns = chosen < 0 ? trips[direction] : pairsOf(trips.pairs, labels.length);
  const clear = Array.from(
    columns.count,
    (count, i) => (columns.low[i] > 0 && count > 0 ? CLEAR : 0),
  );
  const found = Array.from(columns.count, (count, i) => (
    { count, density: area[i] > 0 ? count / area[i] : 0, clear: clear[i] === CLEAR }
  ));
  const scale = [shape, direction, chosen].join();
  const limits = densityLimits(found, scales.get(scale));
  scales.set(scale, limits);
  return shaded({ ...sheet, ...columns, clear, limits });

  function pairsOf(pairs, size) {
    const at = direction === "from" ? (i) => chosen * size + i : (i) => i * size + chosen;
    const pick = (column) => Array.from({ length: size }, (_, i) => column[at(i)]);
    return Object.fromEntries(COLUMNS.map((name) => [name, pick(pairs[name])]));
  }
}

/* Says what the colours show. Too many pairs of zones are left out of the file: none can be chosen
   then. */
export function tellTrips({ labels, trips }, { direction, chosen }) {
  const label = chosen < 0 ? null : labels[chosen];
  byId("note").textContent = words.trips(direction, label, trips.pairs && words.clickAZone);
  byId("note").hidden = false;
  for (const button of byId("directions").children) {
    button.setAttribute("aria-pressed", String(button.dataset.direction === direction));
  }
}

/* A zone that was chosen is left by choosing it again, or a place outside of all zones. Enter
   chooses the one in the middle. */
export function listenToTrips(panel, view, again) {
  byId("directions").hidden = false;
  for (const button of byId("directions").children) {
    button.addEventListener("click", () => {
      view.direction = button.dataset.direction;
      again();
    });
  }
  const choose = async (lngLat) => {
    if (!panel.sheet.trips.pairs) return;
    const found = panel.at(lngLat);
    view.chosen = found === view.chosen ? -1 : found;
    await again();
    panel.look(lngLat);
  };
  panel.map.on("click", ({ lngLat }) => choose(lngLat));
  panel.map.getCanvas().addEventListener("keydown", ({ key }) => {
    if (key === "Enter") choose(panel.map.getCenter());
  });
}

export const hasTrips = Boolean(data.trips);
