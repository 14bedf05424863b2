/* The base map around the release that is chosen, which the server sends. */

import { showBasemap } from "../shared/basemap.js";
import { setCredits } from "../shared/maplibre.js";
import { PlaceNames } from "../shared/place-names.js";
import { addStreets, replaced } from "../shared/streets.js";
import { fetchBasemap, fetchStreets } from "./api.js";
import { panels } from "./panels.js";
import { chosen, isPlace } from "./state.js";

const kept = new Map(); // by the bounds of a release: the periods of a series have the same
const namesOf = new Map(); // by panel
let shown = null; // the bounds of what is shown

/* Shows it once it is here. The page works without it. */
export async function loadBasemap() {
  const release = chosen().find(isPlace);
  const key = release ? release.bounds84.join() : null;
  if (key === shown) return;
  shown = key;
  if (release && !kept.has(key)) kept.set(key, fetchBasemap(release));
  const told = await Promise.resolve(kept.get(key)).catch(() => kept.delete(key) && null);
  if (shown !== key) return;
  if (release && !told) shown = null; // to ask again
  for (const panel of panels) show(panel, told);
}

function show(panel, told) {
  if (!namesOf.has(panel)) namesOf.set(panel, new PlaceNames(panel.map));
  const names = namesOf.get(panel);
  showBasemap(panel.map, told, replaced(told?.tiles));
  names.set(told?.names || []);
  if (told?.tiles) addStreets(panel.map, told.tiles, names, fetchStreets);
  setCredits(panel.map, told?.credit ? [told.credit] : []);
  const hasGround = Boolean(told?.parts.length);
  Object.assign(panel.layer, { hasGround });
  Object.assign(panel.zones, { hasGround });
  panel.zones.paint();
  panel.map.triggerRepaint();
}
