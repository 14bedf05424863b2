/* Zones as MapLibre draws them: their areas in colours, and their outlines. */

import { shadeExpression } from "./colours.js";
import { theme } from "./theme.js";
import { ringsOf, ZoneFinder } from "./zones.js";

const SOURCE = "zones";
const SHADE = ["coalesce", ["feature-state", "shade"], -1];
const TRANSPARENT = "rgba(0, 0, 0, 0)";
const FEW = 300; // zones, whose lines are drawn in full strength

const collection = (features) => ({ type: /** @type {const} */ ("FeatureCollection"), features });

export class ZoneLayer {
  constructor(map, { hasBaseMap = false } = {}) {
    this.map = map;
    this.hasBaseMap = hasBaseMap;
    this.diverging = false;
    this.geometries = [];
    this.finder = null;
    theme.onChange(() => this.paint());
  }

  /* `geometries` are outlines, or null; `shades` has a number for each (colours.js). */
  set({ geometries, shades, diverging = false }) {
    this.diverging = diverging;
    if (!this.map.getSource(SOURCE)) this.add();
    if (geometries !== this.geometries) this.outline(geometries);
    shades.forEach((shade, i) =>
      this.map.setFeatureState({ source: SOURCE, id: i + 1 }, { shade })
    );
    this.paint();
  }

  add() {
    const data = collection([]);
    this.map.addSource(SOURCE, { type: "geojson", data, tolerance: 0.2, maxzoom: 16 });
    this.map.addLayer({ id: "zones", type: "fill", source: SOURCE });
    this.map.addLayer({ id: "zone-lines", type: "line", source: SOURCE });
  }

  outline(geometries) {
    this.geometries = geometries;
    this.finder = new ZoneFinder(geometries);
    const features = geometries.map((geometry, i) => (
      { type: "Feature", id: i + 1, properties: {}, geometry }
    ));
    this.map.removeFeatureState({ source: SOURCE });
    this.map.getSource(SOURCE).setData(collection(features.filter(({ geometry }) => geometry)));
  }

  paint() {
    if (!this.map.getLayer("zones")) return;
    const colours = theme.colours();
    const blank = this.hasBaseMap ? TRANSPARENT : colours.blank;
    const fill = shadeExpression(SHADE, colours, this.diverging, blank);
    this.map.setPaintProperty("zones", "fill-color", fill);
    this.map.setPaintProperty("zones", "fill-opacity", this.hasBaseMap ? 0.78 : 1);
    this.map.setPaintProperty("zone-lines", "line-color", colours.line);
    const isFew = this.geometries.length <= FEW;
    this.map.setPaintProperty("zone-lines", "line-opacity", isFew ? 0.5 : 0.25);
    this.map.setPaintProperty("zone-lines", "line-width", isFew ? 0.8 : 0.5);
  }

  clear() {
    if (this.map.getSource(SOURCE) && this.geometries.length) this.outline([]);
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
