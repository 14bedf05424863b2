/* The offline map of a release of zones. All that it shows is in the file; modules.py joins this
   module and those that it imports into one script. */

import { byId, element, fillLabels } from "../shared/elements.js";
import { showLegend } from "../shared/legend.js";
import { beyondEnd, densityLimits, differenceLimits } from "../shared/limits.js";
import { addBasemap } from "./base-map.js";
import { makeMap, onPlace, synchronise, whenStyled } from "../shared/maplibre.js";
import { Overlay } from "../shared/overlay.js";
import { unpack } from "../shared/sheets.js";
import { theme } from "../shared/theme.js";
import { countLines, differenceLines, nameLines, Tooltip } from "../shared/tooltip.js";
import { ZoneLayer } from "../shared/zone-layer.js";
import { differenceShades, differencesOf, entriesOf, shadesOf } from "../shared/zones.js";
import { labels, words } from "../words.js";

const COLUMNS = ["count", "low", "high", "std_error", "raw"];
const data = JSON.parse(byId("data").textContent);
const credits = data.basemap ? [data.basemap.credit] : [];
const isDifference = data.sides !== null;
const view = { level: data.level, direction: "from", chosen: -1 };

async function readLevel(packed) {
  const text = new TextDecoder().decode(await unpack(packed.shapes, Uint8Array));
  const area = await unpack(packed.area, Float32Array);
  return { ...packed, area, geometries: JSON.parse(text) };
}

async function readAnswers(packed) {
  const columns = COLUMNS.map(async (name) => [name, await unpack(packed[name], Float32Array)]);
  return Object.fromEntries(await Promise.all(columns));
}

/* Trips have answers for both ends, and for pairs of zones if they fit into the file. */
async function readTrips({ from, to, pairs }) {
  return {
    from: await readAnswers(from),
    to: await readAnswers(to),
    pairs: pairs && await readAnswers(pairs),
  };
}

/* Of all zones, or of trips from or to the one that was chosen. */
function answersOf(all) {
  if (!data.trips) return all;
  const { level, direction, chosen } = view;
  if (chosen < 0) return all[direction];
  const size = data.levels[level].labels.length;
  const at = direction === "from" ? (i) => chosen * size + i : (i) => i * size + chosen;
  const pick = (column) => Array.from({ length: size }, (_, i) => column[at(i)]);
  return Object.fromEntries(COLUMNS.map((name) => [name, pick(all.pairs[name])]));
}

class Panel {
  constructor({ number, name, quantity }) {
    this.quantity = quantity;
    const container = document.querySelector(`[data-panel="${number}"] .map`);
    const label = words.mapHelp(words.mapOf(name));
    this.map = makeMap(container, { bounds: data.bounds, style: data.style, label, credits });
    this.overlay = new Overlay(this.map, { plane: data.plane });
    this.tooltip = new Tooltip(this.map);
    this.second = () => null; // of a difference
  }

  async load({ answers }) {
    const isStyled = await whenStyled(this.map);
    if (!isStyled) byId("without").hidden = false;
    this.answers = await Promise.all(answers.map(data.trips ? readTrips : readAnswers));
    this.layer = new ZoneLayer(this.map, { hasBaseMap: data.style !== null && isStyled });
    this.layer.hasGround = await addBasemap(this.map, data.basemap);
  }

  read() {
    return answersOf(this.answers[view.level]);
  }

  /* Too many pairs of zones are left out of the file: none can be chosen then. */
  hasPairs() {
    return Boolean(this.answers[view.level].pairs);
  }

  show(level, entries, limits) {
    this.entries = entries;
    const shades = (isDifference ? differenceShades : shadesOf)(entries, limits);
    this.layer.set({ geometries: level.geometries, shades, diverging: isDifference });
    this.overlay.choose(this.layer.ringsOf(view.chosen));
  }

  look(lngLat) {
    const found = this.layer.at(lngLat);
    this.overlay.markAll(this.layer.ringsOf(found));
    if (found < 0) this.tooltip.hide();
    else this.tooltip.show(lngLat, this.linesOf(this.entries[found]));
  }

  linesOf(entry) {
    const { quantity } = this;
    const [clear, density, unit] = [entry.clear, entry.density, data.levels[view.level].unit];
    if (!isDifference) {
      const isClear = clear;
      return [...nameLines(entry), ...countLines(entry, { isClear, density, quantity, unit })];
    }
    const [first, second] = data.sides;
    const sides = [[first, entry.first.count], [second, entry.second.count]];
    const { isBeyond } = entry;
    return [...nameLines(entry), ...differenceLines(entry, { isBeyond, sides, quantity })];
  }

  leave() {
    this.overlay.markAll([]);
    this.tooltip.hide();
  }
}

/* All panels have the same colours. */
function show(levels, panels) {
  const level = levels[view.level];
  const answers = panels.map((panel) => panel.read());
  const entries = answers.map((one) => entriesOf(level, one));
  if (isDifference) entries[0] = differencesOf(level, answers[0], panels[0].second());
  const limits = (isDifference ? differenceLimits : densityLimits)(entries.flat());
  panels.forEach((panel, number) => panel.show(level, entries[number], limits));
  const quantities = data.panels.map(({ quantity }) => quantity);
  const { unit } = level;
  const beyond = isDifference ? beyondEnd(entries[0], limits) : null;
  showLegend(byId("legend"), { limits, quantities, unit, sides: data.sides, beyond });
  showNote(level, panels.every((panel) => panel.hasPairs()));
}

function showNote(level, hasPairs) {
  if (!data.trips) return;
  const label = view.chosen < 0 ? null : level.labels[view.chosen];
  byId("note").textContent = words.trips(view.direction, label, hasPairs && words.clickAZone);
  byId("note").hidden = false;
  for (const button of byId("directions").children) {
    button.setAttribute("aria-pressed", String(button.dataset.direction === view.direction));
  }
}

function listen(levels, panels) {
  const again = () => show(levels, panels);
  const look = (lngLat) => panels.forEach((panel) => panel.look(lngLat));
  const leave = () => panels.forEach((panel) => panel.leave());
  for (const { map } of panels) onPlace(map, look, leave);
  synchronise(panels.map(({ map }) => map));
  byId("level").addEventListener("change", () => {
    Object.assign(view, { level: +byId("level").value, chosen: -1 });
    leave();
    again();
  });
  for (const button of byId("directions").children) {
    button.addEventListener("click", () => {
      view.direction = button.dataset.direction;
      again();
    });
  }
  if (data.trips) { for (const panel of panels) listenToChoice(panel, again); }
  byId("theme").addEventListener("click", theme.toggle);
  theme.onChange(() => {
    nameTheme();
    again();
  });
}

/* A zone that was chosen is left by choosing it again, or a place outside of all zones. Enter
   chooses the one in the middle. */
function listenToChoice(panel, again) {
  const choose = (lngLat) => {
    if (!panel.hasPairs()) return;
    const found = panel.layer.at(lngLat);
    view.chosen = found === view.chosen ? -1 : found;
    again();
    panel.look(lngLat);
  };
  panel.map.on("click", ({ lngLat }) => choose(lngLat));
  panel.map.getCanvas().addEventListener("keydown", ({ key }) => {
    if (key === "Enter") choose(panel.map.getCenter());
  });
}

function nameTheme() {
  byId("theme").textContent = theme.isDark() ? words.lightMode : words.darkMode;
}

function fillControls(levels) {
  byId("outlines").closest("label").hidden = true;
  const options = levels.map(({ name }, value) => element("option", { value, textContent: name }));
  byId("level").replaceChildren(...options);
  byId("level").value = view.level;
  byId("level").closest("label").hidden = levels.length < 2;
  byId("directions").hidden = !data.trips;
  nameTheme();
}

async function start() {
  fillLabels(labels);
  const levels = await Promise.all(data.levels.map(readLevel));
  fillControls(levels);
  const panels = data.panels.map((packed) => new Panel(packed));
  await Promise.all(panels.map((panel, number) => panel.load(data.panels[number])));
  if (isDifference) {
    const second = await Promise.all(data.second.map(readAnswers));
    panels[0].second = () => second[view.level];
  }
  listen(levels, panels);
  show(levels, panels);
  globalThis.htf = { maps: panels.map(({ map }) => map) }; // for tests, and for the curious
  await Promise.all(panels.map(({ map }) => map.once("idle")));
  document.documentElement.dataset.ready = "yes";
}

start();
