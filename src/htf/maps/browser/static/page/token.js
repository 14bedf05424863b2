/* The token of a server that needs one. The tab keeps it until it is closed. */

import { byId } from "../shared/elements.js";

const KEY = "htf-token";
let asking = null; // one dialog, however many requests wait for it

export function keptToken() {
  try {
    return sessionStorage.getItem(KEY);
  } catch {
    return null;
  }
}

function keepToken(token) {
  try {
    sessionStorage.setItem(KEY, token);
  } catch { /* then it is asked for again */ }
}

/* Resolves when someone has typed a token. */
export function askForToken(wasRefused) {
  asking = asking || openDialog(wasRefused).finally(() => {
    asking = null;
  });
  return asking;
}

function openDialog(wasRefused) {
  const dialog = byId("token-dialog");
  byId("token-problem").hidden = !wasRefused;
  byId("token").value = "";
  if (!dialog.open) dialog.showModal();
  return new Promise((resolve) => {
    const close = () => {
      keepToken(byId("token").value);
      resolve();
    };
    dialog.addEventListener("close", close, { once: true });
  });
}
