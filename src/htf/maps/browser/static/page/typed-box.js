/* The form to type a box in. */

import { byId } from "../shared/elements.js";
import { toSixDigits } from "../shared/numbers.js";
import { words } from "../words.js";
import { setShape, startDrawing } from "./draw-tools.js";
import { panels } from "./panels.js";
import { complain } from "./problem.js";
import { boundsOf, boxOf, isOnEarth } from "./shapes.js";
import { canDraw, chosen, edgesOf, showsZones, state } from "./state.js";

const EDGES = ["west", "south", "east", "north"];
const inputs = () => EDGES.map((name) => byId("typed").elements[name]);

export function listenToTypedBox() {
  byId("typed").addEventListener("submit", (event) => {
    event.preventDefault();
    const edges = inputs().map(({ value }) => readNumber(value));
    const problem = problemOf(edges);
    if (problem) complain(problem);
    else countTyped(edges);
  });
}

/* Shows the shape, and opens the form where it is the only way to ask. */
export function fillTypedBox() {
  const bounds = state.shape ? boundsOf(state.shape).map(toSixDigits) : ["", "", "", ""];
  inputs().forEach((input, i) => {
    input.value = bounds[i];
  });
  const edges = showsZones() ? null : edgesOf(chosen()[0]);
  const card = byId("typed").closest("details");
  card.hidden = !edges; // a release of one axis has no boxes
  if (!canDraw()) card.open = true;
  if (edges) byId("typed-note").textContent = words.typedHelp(canDraw(), edges.map(toSixDigits));
}

/* With a point or a comma, and with either minus sign. */
function readNumber(text) {
  const plain = text.trim().replace(",", ".").replace("−", "-");
  return plain ? Number(plain) : NaN;
}

function problemOf(edges) {
  const [west, south, east, north] = edges;
  if (!edges.every(Number.isFinite) || west >= east || south >= north) return words.notABox;
  const isThere = isOnEarth([west, south]) && isOnEarth([east, north]);
  return canDraw() && !isThere ? words.notDegrees : null;
}

function countTyped(edges) {
  const [west, south, east, north] = edges;
  setShape(boxOf(...edges), true);
  startDrawing(null);
  if (!canDraw()) return;
  const { map } = panels[0];
  const seen = map.getBounds();
  if (seen.contains([west, south]) && seen.contains([east, north])) return;
  map.fitBounds([[west, south], [east, north]], { padding: 80, maxZoom: 16, animate: false });
}
