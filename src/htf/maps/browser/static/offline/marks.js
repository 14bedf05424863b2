/* How sheets are drawn and found on a map: rectangles by a layer of our own, zones by MapLibre. */

import { aboveCounts } from "../shared/basemap.js";
import { Finder } from "../shared/finder.js";
import { squareX, squareY } from "../shared/mercator.js";
import { RectangleLayer } from "../shared/rectangle-layer.js";
import { isSheetShown, ringOf } from "../shared/sheets.js";
import { ZoneLayer } from "../shared/zone-layer.js";

export class Rectangles {
  constructor(map, hasBaseMap) {
    this.map = map;
    this.layer = new RectangleLayer("rectangles", { hasBaseMap });
    this.finders = new Map(); // by sheet, made when somebody first points at it
  }

  /* Below it lies the base map, if the file has one. */
  add(hasGround) {
    this.layer.hasGround = hasGround;
    this.map.addLayer(this.layer, aboveCounts(this.map));
  }

  /* The sheet that is drawn at this zoom. */
  pick(sheets) {
    const zoom = this.map.getZoom();
    return sheets.find((one) => isSheetShown(one, zoom));
  }

  show({ sheets, outlines, diverging }) {
    this.layer.diverging = diverging;
    this.layer.set({ sheets, outlines });
  }

  outline(showsOutlines) {
    this.layer.set({ showsOutlines });
  }

  /* The number of the place, or -1. */
  at(sheet, { lng, lat }) {
    if (!this.finders.has(sheet)) this.finders.set(sheet, new Finder(sheet));
    return this.finders.get(sheet).at(squareX(lng), squareY(lat));
  }

  ringsOf(sheet, i) {
    return i < 0 ? [] : [ringOf(sheet, i)];
  }
}

export class Zones {
  constructor(map, hasBaseMap) {
    this.layer = new ZoneLayer(map, { hasBaseMap });
  }

  add(hasGround) {
    this.layer.hasGround = hasGround;
  }

  pick(sheets, level) {
    return sheets[level];
  }

  show({ sheet, diverging }) {
    const { geometries, shade } = sheet;
    this.layer.set({ geometries, shades: shade, diverging });
  }

  outline() {/* zones always have outlines */}

  at(_, lngLat) {
    return this.layer.at(lngLat);
  }

  ringsOf(_, i) {
    return this.layer.ringsOf(i);
  }
}
