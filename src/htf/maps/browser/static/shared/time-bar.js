/* A slider through the periods of a series, with a button that plays them one after another.
   The document has it: #time with #play, #period, #period-name and #period-note. */

import { words } from "../words.js";
import { byId } from "./elements.js";
import { pause } from "./timing.js";

const STEP = 900; // milliseconds from one period to the next, at least
const KEYS = { ArrowLeft: -1, ArrowRight: 1 };

export class TimeBar {
  /* `show` gets the number of a period, and resolves when that is on the screen. */
  constructor({ show }) {
    this.show = show;
    this.names = [];
    this.at = 0;
    this.run = null; // what is being played, or null
    byId("period").addEventListener("input", () => {
      this.stop();
      this.go(+byId("period").value);
    });
    byId("play").addEventListener("click", () => (this.run ? this.stop() : this.play()));
    document.addEventListener("keydown", (event) => this.onKey(event));
    this.stop();
  }

  /* `names` are those of the periods; without any there is no bar. */
  fill(names, at) {
    this.names = names;
    this.at = at;
    byId("time").hidden = names.length < 2;
    byId("period").max = names.length - 1;
    this.tell();
  }

  tell() {
    const slider = byId("period");
    slider.value = this.at;
    slider.setAttribute("aria-valuetext", this.names[this.at] || "");
    byId("period-name").textContent = this.names[this.at] || "";
  }

  /* The map and the slider have arrow keys of their own; elsewhere they go through time. */
  onKey(event) {
    const step = KEYS[event.key];
    if (!step || event.target !== document.body || this.names.length < 2) return;
    event.preventDefault();
    this.stop();
    this.go(this.at + step);
  }

  async go(at) {
    const last = this.names.length - 1;
    this.at = Math.max(0, Math.min(last, at));
    this.tell();
    await this.show(this.at);
  }

  /* To the end; from there, from the beginning. */
  async play() {
    const run = {};
    this.run = run;
    byId("play").textContent = words.pause;
    if (this.at === this.names.length - 1) await this.go(0);
    while (this.run === run && this.at < this.names.length - 1) {
      await pause(STEP);
      if (this.run === run) await this.go(this.at + 1);
    }
    if (this.run === run) this.stop();
  }

  stop() {
    this.run = null;
    byId("play").textContent = words.play;
  }
}
