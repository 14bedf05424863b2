/* The slider through the periods of a series, and the switch that compares each with the one
   before. */

import { byId } from "../shared/elements.js";
import { TimeBar } from "../shared/time-bar.js";
import { words } from "../words.js";
import { whenShown } from "./map-content.js";
import { panels } from "./panels.js";
import { isDifference, periodBefore, periodsOf, releaseOf, showsZones, state } from "./state.js";

let bar = null;
let whenChanged = () => {};

/* `onChange` runs when another period is shown. */
export function listenToPeriods(onChange) {
  whenChanged = onChange;
  bar = new TimeBar({ show: showPeriod });
  byId("change").addEventListener("change", () => {
    state.follows = byId("change").checked;
    state.mode = "difference";
    if (!state.follows) state.second = null;
    onChange();
  });
}

/* Resolves when the map shows it. Meanwhile the next one is fetched. */
async function showPeriod(at) {
  const periods = periodsOf(releaseOf(state.first));
  state.first = periods[at].id;
  const shown = whenShown();
  whenChanged();
  await shown;
  prefetch(periods[at + 1]);
}

/* Another release of the series, by a click on the chart. */
export function goTo(id) {
  const at = periodsOf(releaseOf(state.first)).findIndex((one) => one.id === id);
  bar.stop();
  bar.go(at);
}

function prefetch(release) {
  if (!release || isDifference() || showsZones()) return;
  panels[0].tiles.prefetch(release).catch(() => {}); // it is fetched again when it is shown
}

export function fillPeriods() {
  const first = releaseOf(state.first);
  const periods = periodsOf(first);
  const names = periods.map(({ series }) => series.period);
  bar.fill(names, Math.max(0, periods.findIndex(({ id }) => id === first.id)));
  byId("change").closest("label").hidden = periods.length < 2;
  byId("change").checked = state.follows;
  byId("period-note").textContent = state.follows ? noteOf(periodBefore(first)) : "";
}

function noteOf(before) {
  return before ? words.since(before.series.period) : words.noneBefore;
}
