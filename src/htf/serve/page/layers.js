"use strict";
/* What a release looks like in the part of the map that is seen: tiles of the API, or, of two releases,
   the difference of their counts in squares. */
const Layers = (() => {
  const MOST_TILES = 64, KEPT_TILES = 200;
  const LEVELS = [1, 2]; // of tiles deeper than the map's zoom: coarse ones at once, then fine ones
  const SQUARE_PIXELS = 14, POLYGON_PIXELS = 28; // of a difference; fewer where each is a polygon
  const EARTH = 6371.0088; // km

  const degrees84 = (release) => release.crs === "OGC:CRS84";

  function visibleSquare(map) {
    const bounds = map.getBounds();
    return [Htf.squareX(bounds.getWest()), Htf.squareY(bounds.getNorth()), Htf.squareX(bounds.getEast()), Htf.squareY(bounds.getSouth())];
  }

  /* A ring of any number of corners as quadrangles, each with two sides of a fan. */
  function quadrangles(ring) {
    const found = [];
    for (let i = 1; i + 1 < ring.length; i += 2) {
      const last = ring[Math.min(i + 2, ring.length - 1)];
      found.push([ring[0], ring[i], last, ring[i + 1]]); // SW, SE, NW, NE
    }
    return found;
  }
  /* Without corners that lie on a straight line, as far as can be seen. */
  function straightened(ring, tolerance) {
    const kept = [];
    ring.forEach(([x, y], i) => {
      const [ax, ay] = kept.length ? kept[kept.length - 1] : ring[ring.length - 1], [bx, by] = ring[(i + 1) % ring.length];
      const length = Math.hypot(bx - ax, by - ay);
      if (length === 0 || Math.abs((bx - ax) * (y - ay) - (by - ay) * (x - ax)) / length > tolerance) kept.push([x, y]);
    });
    return kept;
  }

  function sheetOfTile({ features }, z, x, y) {
    const size = 2 ** -z, frame = [x * size, y * size, size];
    const corners = [], owner = [];
    features.forEach(({ geometry }, number) => {
      let ring = geometry.coordinates[0].slice(0, -1).map(([lng, lat]) =>
        [(Htf.squareX(lng) - frame[0]) / size, (Htf.squareY(lat) - frame[1]) / size]);
      if (ring.length > 4) ring = straightened(ring, 1 / 8192);
      for (const quad of quadrangles(ring)) { corners.push(...quad.flat()); owner.push(number); }
    });
    const properties = features.map((feature) => feature.properties);
    return { frame, corners: new Float32Array(corners), length: owner.length, owner, properties };
  }

  /* Ends of the scale of colours: of all that is seen but the few most extreme, by area. */
  function limitsOf(sheets, before) {
    const seen = [];
    for (const { properties } of sheets) {
      for (const { count, density, clear } of properties) if (clear && density > 0) seen.push([density, count / density]);
    }
    if (!seen.length) return before || [1, 10];
    seen.sort(([a], [b]) => a - b);
    const total = seen.reduce((sum, [, area]) => sum + area, 0);
    const at = (share) => {
      let sum = 0;
      for (const [density, area] of seen) { sum += area; if (sum >= share * total) return density; }
      return seen[seen.length - 1][0];
    };
    let [least, most] = [at(0.01), at(0.997)];
    if (before) [least, most] = [Math.min(least, before[0]), Math.max(most, before[1])];
    return [Math.max(least, most / 1e4), Math.max(most, 10 * least)];
  }

  /* The tiles of one release on one map. */
  class Tiles {
    constructor(map, layer, fetchTile) {
      Object.assign(this, { map, layer, fetchTile, kept: new Map(), sheets: [], generation: null });
    }

    needed(release, deeper) {
      const [west, south, east, north] = release.bounds84;
      const [left, top, right, bottom] = visibleSquare(this.map);
      const range = [Math.max(left, Htf.squareX(west)), Math.max(top, Htf.squareY(north)),
        Math.min(right, Htf.squareX(east)), Math.min(bottom, Htf.squareY(south))];
      if (range[0] >= range[2] || range[1] >= range[3]) return [];
      for (let z = Math.max(0, Math.min(22, Math.round(this.map.getZoom()) + deeper)); z >= 0; z--) {
        const found = [], side = 2 ** z;
        const [x0, y0, x1, y1] = range.map((edge) => Math.floor(edge * side));
        if ((x1 - x0 + 1) * (y1 - y0 + 1) > MOST_TILES) continue;
        for (let x = x0; x <= Math.min(x1, side - 1); x++) for (let y = y0; y <= Math.min(y1, side - 1); y++) found.push([z, x, y]);
        return found;
      }
      return [];
    }

    /* Resolves to whether all has come, and no other request was made since. */
    async load(release, where, deeper) {
      if (this.generation) this.generation.abort();
      const generation = this.generation = new AbortController();
      const scope = `${release.id}?${where}`;
      if (this.scope !== scope) { this.scope = scope; this.kept.clear(); }
      const wanted = this.needed(release, deeper);
      const tiles = await Promise.all(wanted.map(async ([z, x, y]) => {
        const key = `${z}/${x}/${y}`;
        if (!this.kept.has(key)) {
          const sheet = sheetOfTile(await this.fetchTile(release.id, key, where, generation.signal), z, x, y);
          if (this.scope === scope) this.kept.set(key, sheet);
          return sheet;
        }
        return this.kept.get(key);
      }));
      if (generation.signal.aborted) return false;
      for (const key of this.kept.keys()) {
        if (this.kept.size <= KEPT_TILES) break;
        if (!tiles.includes(this.kept.get(key))) this.kept.delete(key);
      }
      this.sheets = tiles;
      return true;
    }

    /* Shades by these limits; sheets that have other ones are drawn anew. */
    show(limits) {
      const key = limits.join();
      this.sheets = this.sheets.map((sheet) => {
        if (sheet.limits === key) return sheet;
        const shade = sheet.properties.map(({ density, clear }) => Htf.shadeOf(density, clear, limits));
        const made = { ...sheet, limits: key, shade: Float32Array.from(sheet.owner, (number) => shade[number]), finder: null };
        for (const [name, kept] of this.kept) if (kept === sheet) this.kept.set(name, made);
        return made;
      });
      this.layer.set({ sheets: this.sheets });
    }

    at(lng, lat) {
      const x = Htf.squareX(lng), y = Htf.squareY(lat);
      for (const sheet of this.sheets) {
        const [left, top, size] = sheet.frame;
        if (x < left || y < top || x >= left + size || y >= top + size || !sheet.length) continue;
        sheet.finder = sheet.finder || new Htf.Finder(sheet);
        const found = sheet.finder.at(x, y);
        if (found >= 0) return { ring: Htf.ringOf(sheet, found), properties: sheet.properties[sheet.owner[found]] };
      }
      return null;
    }

    clear() {
      if (this.generation) this.generation.abort();
      this.sheets = [];
      this.layer.set({ sheets: [] });
    }
  }

  function area([west, south, east, north]) {
    const sine = (latitude) => Math.sin((latitude * Math.PI) / 180);
    return EARTH ** 2 * (((east - west) * Math.PI) / 180) * (sine(north) - sine(south));
  }

  /* Squares in degrees over what both releases cover and the map shows; halved as one zooms in. */
  function squares(map, first, second) {
    const both = [0, 1, 2, 3].map((i) => Math[i < 2 ? "max" : "min"](first.bounds84[i], second.bounds84[i]));
    const [west, south, east, north] = both;
    const pixels = degrees84(first) && degrees84(second) ? SQUARE_PIXELS : POLYGON_PIXELS;
    const bounds = map.getBounds();
    const [left, low] = [map.project([west, south]).x, map.project([west, south]).y];
    const sides = [map.project([east, south]).x - left, low - map.project([west, north]).y];
    const [columns, rows] = sides.map((side, i) => {
      const share = (both[i + 2] - both[i]) / (first.bounds84[i + 2] - first.bounds84[i]);
      let number = Math.max(1, Math.round(first.axes[i].cells * share));
      while (side / number < pixels && number > 1) number >>= 1;
      return number;
    });
    const [dx, dy] = [(east - west) / columns, (north - south) / rows];
    const clip = (value, most) => Math.max(0, Math.min(most, value));
    const [x0, x1] = [clip(Math.floor((bounds.getWest() - west) / dx), columns), clip(Math.ceil((bounds.getEast() - west) / dx), columns)];
    const [y0, y1] = [clip(Math.floor((bounds.getSouth() - south) / dy), rows), clip(Math.ceil((bounds.getNorth() - south) / dy), rows)];
    const boxes = [];
    for (let x = x0; x < x1; x++) for (let y = y0; y < y1; y++) boxes.push([west + x * dx, south + y * dy, west + (x + 1) * dx, south + (y + 1) * dy]);
    return boxes;
  }

  /* The sheet of a difference, from the answers of both. */
  function differenceSheet(boxes, first, second, before) {
    const found = boxes.map((box, i) => {
      const answer = Htf.difference(first[i], second[i]);
      return { ...answer, first: first[i], second: second[i], density: answer.count / area(box) };
    });
    const beyond = found.filter(({ isBeyond }) => isBeyond);
    const sizes = (beyond.length ? beyond : found).map(({ density }) => Math.abs(density)).sort((a, b) => a - b);
    const most = Math.max(sizes[Math.floor(sizes.length * 0.997)] || 1, before ? before[1] : 0);
    const limits = [most / 100, most];
    const frame = [0.5, 0.5, 1];
    frame[0] = Htf.squareX(boxes[0][0]);
    frame[1] = Htf.squareY(boxes[0][1]);
    const corners = new Float32Array(8 * boxes.length);
    boxes.forEach(([west, south, east, north], i) => {
      const [left, right] = [west, east].map((lng) => Htf.squareX(lng) - frame[0]);
      const [low, high] = [south, north].map((lat) => Htf.squareY(lat) - frame[1]);
      corners.set([left, low, right, low, left, high, right, high], 8 * i);
    });
    const shade = Float32Array.from(found, ({ density, isBeyond }) => Htf.divergingShade(density, isBeyond, limits));
    return { sheet: { frame, corners, length: boxes.length, shade, found }, limits };
  }

  return { LEVELS, Tiles, limitsOf, squares, differenceSheet, degrees84 };
})();
