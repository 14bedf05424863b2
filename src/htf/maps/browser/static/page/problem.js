/* What went wrong, in words; and asking again when the server was away. */

import { byId } from "../shared/elements.js";
import { isAborted, listReleases, Unreachable } from "./api.js";
import { state } from "./state.js";
import { pause } from "../shared/timing.js";

let isWaiting = false;
let whenBack = () => {};

/* The action to run when the server answers again. */
export function onServerBack(action) {
  whenBack = action;
}

/* Shows an error or a text, or with null nothing. Requests that the page itself stopped are no
   error. */
export function complain(error) {
  if (error && isAborted(error)) return;
  const place = byId("problem");
  place.hidden = !error;
  place.textContent = error ? sentence(`${error.message || error}`) : "";
  if (error instanceof Unreachable) waitForServer(error.wait);
}

export const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/* If the server comes back with other releases, the page starts anew; the address keeps the view.
   */
async function waitForServer(wait) {
  if (isWaiting || !state.releases.length) return;
  isWaiting = true;
  let found = null;
  while (!found) {
    await pause(wait);
    found = await listReleases().catch(() => null);
  }
  isWaiting = false;
  if (JSON.stringify(found) !== JSON.stringify(state.releases)) location.reload();
  whenBack();
}
