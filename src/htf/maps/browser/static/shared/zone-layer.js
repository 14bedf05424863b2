/* Zones as MapLibre draws them: their areas in colours, and their outlines. */

import { aboveCounts } from "./basemap.js";
import { rgbOf, shadeExpression, VEIL } from "./colours.js";
import { theme } from "./theme.js";
import { ringsOf, ZoneFinder } from "./zones.js";

const SHADE = ["coalesce", ["feature-state", "shade"], -1];
const TRANSPARENT = "rgba(0, 0, 0, 0)";
const FEW = 300; // zones, whose lines are drawn in full strength

const collection = (features) => ({ type: /** @type {const} */ ("FeatureCollection"), features });

export class ZoneLayer {
  /* `id` names its source and its layers. */
  constructor(map, { id = "zones", hasBaseMap = false } = {}) {
    this.map = map;
    this.source = id;
    this.lines = `${id}-lines`;
    this.isFilled = true;
    this.hasBaseMap = hasBaseMap; // one that is fetched
    this.hasGround = false; // of the base map that we carry
    this.diverging = false;
    this.geometries = [];
    this.finder = null;
    theme.onChange(() => this.paint());
  }

  /* `geometries` are outlines, or null; `shades` has a number for each (colours.js). */
  set({ geometries, shades, diverging = false, isFilled = true }) {
    this.diverging = diverging;
    this.isFilled = isFilled;
    if (!this.map.getSource(this.source)) this.add();
    if (geometries !== this.geometries) this.outline(geometries);
    shades.forEach((shade, i) =>
      this.map.setFeatureState({ source: this.source, id: i + 1 }, { shade })
    );
    this.paint();
  }

  add() {
    const data = collection([]);
    const { source, lines } = this;
    const above = aboveCounts(this.map);
    this.map.addSource(source, { type: "geojson", data, tolerance: 0.2, maxzoom: 16 });
    this.map.addLayer({ id: source, type: "fill", source }, above);
    this.map.addLayer({ id: lines, type: "line", source }, above);
  }

  outline(geometries) {
    this.geometries = geometries;
    this.finder = new ZoneFinder(geometries);
    const features = geometries.map((geometry, i) => (
      { type: "Feature", id: i + 1, properties: {}, geometry }
    ));
    this.map.removeFeatureState({ source: this.source });
    this.map.getSource(this.source).setData(
      collection(features.filter(({ geometry }) => geometry)),
    );
  }

  paint() {
    const { map, source, lines, isFilled } = this;
    if (!map.getLayer(source)) return;
    const colours = theme.colours();
    const veil = `rgba(${rgbOf(colours.veil).map((part) => Math.round(255 * part))}, ${VEIL})`;
    const blank = this.hasBaseMap ? TRANSPARENT : this.hasGround ? veil : colours.blank;
    map.setPaintProperty(
      source,
      "fill-color",
      isFilled ? shadeExpression(SHADE, colours, this.diverging, blank) : TRANSPARENT,
    );
    map.setPaintProperty(source, "fill-opacity", this.hasBaseMap ? 0.78 : 1);
    map.setPaintProperty(lines, "line-color", isFilled ? colours.line : colours.chosen);
    const isFew = this.geometries.length <= FEW;
    map.setPaintProperty(lines, "line-opacity", !isFilled ? 0.9 : isFew ? 0.5 : 0.25);
    map.setPaintProperty(lines, "line-width", !isFilled ? 1.2 : isFew ? 0.8 : 0.5);
  }

  clear() {
    if (this.map.getSource(this.source) && this.geometries.length) this.outline([]);
  }

  /* The number of the zone at a place, or -1. */
  at(lngLat) {
    return this.finder ? this.finder.at(lngLat) : -1;
  }

  /* The rings of a zone in the Mercator square; none for -1. */
  ringsOf(i) {
    return i < 0 ? [] : ringsOf(this.geometries[i]);
  }
}
