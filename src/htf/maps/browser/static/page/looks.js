/* Light or dark, and on a narrow screen how much of the side is open. */

import { byId } from "../shared/elements.js";
import { theme } from "../shared/theme.js";
import { words } from "../words.js";

export const isNarrow = () => matchMedia("(max-width: 760px)").matches;

export function fold(isFolded) {
  const button = byId("fold");
  byId("side").classList.toggle("folded", isFolded);
  button.setAttribute("aria-expanded", String(!isFolded));
  button.textContent = isFolded ? words.more : words.less;
}

export function listenToLooks() {
  byId("fold").addEventListener("click", () => fold(!byId("side").classList.contains("folded")));
  fold(isNarrow());
  const nameTheme = () => {
    byId("theme").textContent = theme.isDark() ? words.lightMode : words.darkMode;
  };
  byId("theme").addEventListener("click", theme.toggle);
  theme.onChange(nameTheme);
  nameTheme();
}
