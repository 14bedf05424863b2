/* Light or dark: what the reader picked, else what the system prefers. */

import { THEMES } from "./colours.js";

const KEY = "htf-theme";
const system = matchMedia("(prefers-color-scheme: dark)");
const listeners = [];
let picked = readPicked();

function readPicked() {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null; // a file may have no storage
  }
}

function keepPicked() {
  try {
    localStorage.setItem(KEY, picked);
  } catch { /* then the system decides next time */ }
}

const name = () => picked || (system.matches ? "dark" : "light");

function apply() {
  document.documentElement.dataset.theme = name();
  for (const listener of listeners) listener();
}

system.addEventListener("change", apply);
apply();

export const theme = {
  isDark: () => name() === "dark",
  colours: () => THEMES[name()],
  onChange: (listener) => listeners.push(listener),
  toggle() {
    picked = name() === "dark" ? "light" : "dark";
    keepPicked();
    apply();
  },
};
