"use strict";
/* What the map file of `htf map` and the page of `htf serve` share: colours, legend, numbers, the layer
   of rectangles, the graticule, light and dark. A plain script, so that a file can carry it. */
const Htf = (() => {
  // Magma, pale to dark and dark to pale: told apart by brightness alone, whatever the eye.
  const PALE_TO_DARK = ["#fcf0b2", "#fed597", "#febb81", "#fea16e", "#fb8560", "#f56b5c", "#e85362", "#d5446d", "#bf3a77",
    "#a6317d", "#902a81", "#782281", "#621980", "#4c117a", "#331067", "#1d1147", "#0b0924"];
  const DARK_TO_PALE = ["#29115a", "#400f74", "#56147d", "#6a1c81", "#802582", "#942c80", "#aa337d", "#bf3a77", "#d5446d",
    "#e75263", "#f3655c", "#fa7f5e", "#fd9869", "#feb078", "#fec88c", "#fde2a3", "#fcf9bb"];
  // Purple for less, orange for more: also told apart without red and green.
  const DIVERGING_LIGHT = ["#3c0f63", "#522584", "#6b4f9b", "#867ab0", "#a39bc7", "#bcb7d8", "#d2d3e7", "#e5e7f0", "#f6f6f7",
    "#fbead2", "#fedaa9", "#fdc278", "#f4a84c", "#e3881d", "#cb6e0d", "#b05606", "#934607"];
  const DIVERGING_DARK = ["#cbb8ff", "#b49df5", "#9d83e6", "#866bd2", "#7058b8", "#5b4a99", "#484078", "#383a56", "#2c3440",
    "#433a30", "#634426", "#86501c", "#aa6016", "#cb761d", "#e6922f", "#f7b055", "#ffd08c"];
  const THEMES = {
    light: { scale: PALE_TO_DARK, diverging: DIVERGING_LIGHT, blank: "#e9edf2", beyond: "#dfe4ea", line: "#4a545e",
      graticule: "rgba(60,72,86,.22)", label: "#3b4754", halo: "rgba(255,255,255,.85)", frame: "#76828f" },
    dark: { scale: DARK_TO_PALE, diverging: DIVERGING_DARK, blank: "#1b222b", beyond: "#10151b", line: "#c3ccd6",
      graticule: "rgba(200,212,225,.16)", label: "#c3ccd6", halo: "rgba(16,21,27,.85)", frame: "#5b6774" },
  };
  const FAINT = 10; // added to a shade that is no more than noise
  const DEVIATIONS = 1.96; // of a 95 % interval
  const STYLE_WAIT = 10000; // milliseconds

  // --- light and dark -------------------------------------------------------------------------------
  const theme = (() => {
    const system = window.matchMedia("(prefers-color-scheme: dark)");
    const listeners = [];
    let chosen = null;
    try { chosen = localStorage.getItem("htf-theme"); } catch { /* a file may have no storage */ }
    const name = () => chosen || (system.matches ? "dark" : "light");
    function apply() {
      document.documentElement.dataset.theme = name();
      listeners.forEach((listener) => listener(name()));
    }
    system.addEventListener("change", apply);
    document.documentElement.dataset.theme = name();
    return {
      name,
      colours: () => THEMES[name()],
      onChange: (listener) => listeners.push(listener),
      toggle() {
        chosen = name() === "dark" ? "light" : "dark";
        try { localStorage.setItem("htf-theme", chosen); } catch { /* as above */ }
        apply();
      },
    };
  })();

  // --- numbers --------------------------------------------------------------------------------------
  const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
  function countText(value) {
    const rounded = Math.round(value);
    return whole.format(rounded === 0 ? 0 : rounded).replace("-", "−");
  }
  /* Its ends as they are, also below zero or off the count: the numbers of files and of the server. */
  function intervalText({ low, high }, join = " to ") {
    return `${countText(low)}${join}${countText(high)}`;
  }
  /* As it looks to a reader, with all numbers rounded. */
  function isOutsideInterval({ count, low, high }) {
    return Math.round(count) < Math.round(low) || Math.round(count) > Math.round(high);
  }
  const OUTSIDE_IN_SHORT = "outside: noise was taken out of the count";
  const WHY_OUTSIDE = "The count lies outside of its interval. That can be: the count is the best guess, smoothed by what lies around it and cut at zero; the interval comes from the raw noisy counts alone.";
  function signedText(value) {
    return (Math.round(value) > 0 ? "+" : "") + countText(value);
  }
  function shortNumber(value) {
    for (const [unit, name] of [[1e9, " G"], [1e6, " M"], [1e3, " k"]]) {
      if (value >= unit * (1 - 1e-9)) return `${+(value / unit).toPrecision(3)}${name}`;
    }
    return String(+value.toPrecision(3));
  }
  /* Of two answers with noise of their own: variances add up. Middles of intervals have no bias. */
  function difference(first, second) {
    const value = (first.low + first.high - second.low - second.high) / 2;
    const std_error = Math.hypot(first.std_error, second.std_error);
    const half = DEVIATIONS * std_error;
    return { count: value, std_error, low: value - half, high: value + half, isBeyond: Math.abs(value) > half };
  }

  // --- Web Mercator, the square from 0 to 1 ------------------------------------------------------------
  const squareX = (longitude) => longitude / 360 + 0.5;
  function squareY(latitude) {
    const clipped = Math.max(-85.051129, Math.min(85.051129, latitude));
    return 0.5 - Math.atanh(Math.sin((clipped * Math.PI) / 180)) / (2 * Math.PI);
  }
  const longitudeOf = (x) => (x - 0.5) * 360;
  const latitudeOf = (y) => (Math.asin(Math.tanh((0.5 - y) * 2 * Math.PI)) * 180) / Math.PI;

  // --- shades ----------------------------------------------------------------------------------------
  function shadeOf(density, isClear, [least, most]) {
    if (!isClear || !(density > 0)) return -1;
    return Math.max(0, Math.min(1, Math.log(density / least) / Math.log(most / least)));
  }
  function divergingShade(density, isBeyond, [least, most]) {
    const size = Math.max(isBeyond ? 0.3 : 0.08, Math.min(1, Math.log(Math.abs(density) / least) / Math.log(most / least) || 0));
    const shade = 0.5 + 0.5 * Math.sign(density) * size;
    return isBeyond ? shade : shade + FAINT;
  }

  // --- rectangles ---------------------------------------------------------------------------------------
  /* A sheet: { frame: [x, y, size], corners, length, shade, zoom: [least, most] }. Corners are SW, SE, NW, NE
     within the frame, eight numbers a rectangle; or W, S, E, N, four columns one after another, as files have it. */
  function eightCorners(columns, length) {
    const corners = new Float32Array(8 * length);
    const stride = columns.length / length;
    const order = stride === 4 ? [0, 1, 2, 1, 0, 3, 2, 3] : [0, 1, 2, 3, 4, 5, 6, 7];
    order.forEach((column, place) => {
      for (let i = 0; i < length; i++) corners[8 * i + place] = columns[column * length + i];
    });
    return corners;
  }

  async function unpack(text, Kind) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Kind(await new Response(stream).arrayBuffer());
  }
  /* Rectangles as files and the API pack them (htf.maps.browser.rectangles). */
  async function readOutlines({ frame, length, corners }) {
    return { frame, length, corners: eightCorners(await unpack(corners, Float32Array), length) };
  }

  const VERTEX = `#version 300 es
    uniform mat4 u_matrix; uniform bool u_loop; uniform vec2 u_size;
    in vec4 a_south; in vec4 a_north; in float a_shade; out float v_shade; out float v_line;
    void main() {
      vec4 low = u_matrix * vec4(a_south.xy, 0.0, 1.0), high = u_matrix * vec4(a_north.zw, 0.0, 1.0);
      vec2 sides = abs(high.xy / high.w - low.xy / low.w) * u_size / 2.0; // pixels
      v_line = clamp((min(sides.x, sides.y) - 2.0) / 10.0, 0.12, 1.0); // many small ones would hide the colours
      vec2 place = gl_VertexID == 0 ? a_south.xy : gl_VertexID == 1 ? a_south.zw
        : (gl_VertexID == 2) != u_loop ? a_north.xy : a_north.zw;
      v_shade = a_shade;
      gl_Position = u_matrix * vec4(place, 0.0, 1.0);
    }`;
  const FRAGMENT = `#version 300 es
    precision highp float;
    uniform vec3 u_stops[17]; uniform vec4 u_blank; uniform vec4 u_line; uniform bool u_loop; uniform float u_opacity;
    in float v_shade; in float v_line; out vec4 colour;
    void main() {
      if (u_loop) { colour = vec4(u_line.rgb, 1.0) * u_line.a * v_line; return; }
      if (v_shade < 0.0) { colour = vec4(u_blank.rgb * u_blank.a, u_blank.a); return; }
      bool faint = v_shade > 5.0;
      float at = clamp(faint ? v_shade - 10.0 : v_shade, 0.0, 1.0) * 16.0;
      int below = min(int(at), 15);
      vec3 full = mix(u_stops[below], u_stops[below + 1], at - float(below));
      if (faint) full = mix(u_blank.rgb, full, 0.22);
      float alpha = faint ? min(u_opacity, max(u_blank.a, 0.25)) : u_opacity;
      colour = vec4(full * alpha, alpha);
    }`;

  const parts = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255);

  /* A layer for MapLibre that draws rectangles with one call a sheet, sharp at every zoom. */
  class RectangleLayer {
    constructor(id, { diverging = false, hasBaseMap = false } = {}) {
      Object.assign(this, { id, type: "custom", renderingMode: "2d", diverging, hasBaseMap });
      this.sheets = [];
      this.outlines = [];
      this.showsOutlines = false;
      this.drawn = new Map(); // what is on the graphics card, by sheet
    }

    onAdd(map, gl) {
      this.map = map;
      this.gl = gl;
      this.drawn.clear();
      this.program = gl.createProgram();
      for (const [kind, source] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
        const shader = gl.createShader(kind);
        gl.shaderSource(shader, source);
        gl.compileShader(shader);
        gl.attachShader(this.program, shader);
      }
      gl.linkProgram(this.program);
      this.places = {};
      for (const name of ["u_matrix", "u_loop", "u_stops", "u_blank", "u_line", "u_opacity", "u_size"]) {
        this.places[name] = gl.getUniformLocation(this.program, name);
      }
    }

    set({ sheets = this.sheets, outlines = this.outlines, showsOutlines = this.showsOutlines }) {
      Object.assign(this, { sheets, outlines, showsOutlines });
      const kept = new Set([...sheets, ...outlines]);
      for (const [sheet, { array, buffers }] of this.drawn) {
        if (kept.has(sheet)) continue;
        this.gl.deleteVertexArray(array);
        buffers.forEach((buffer) => this.gl.deleteBuffer(buffer));
        this.drawn.delete(sheet);
      }
      if (this.map) this.map.triggerRepaint();
    }

    upload(sheet) {
      const { gl } = this;
      const array = gl.createVertexArray();
      gl.bindVertexArray(array);
      const buffers = [sheet.corners, sheet.shade || new Float32Array(sheet.length)].map((values) => {
        const buffer = gl.createBuffer();
        gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
        gl.bufferData(gl.ARRAY_BUFFER, values, gl.STATIC_DRAW);
        return buffer;
      });
      const attributes = [["a_south", 0, 4, 32, 0], ["a_north", 0, 4, 32, 16], ["a_shade", 1, 1, 4, 0]];
      for (const [name, buffer, size, stride, start] of attributes) {
        const place = gl.getAttribLocation(this.program, name);
        gl.bindBuffer(gl.ARRAY_BUFFER, buffers[buffer]);
        gl.enableVertexAttribArray(place);
        gl.vertexAttribPointer(place, size, gl.FLOAT, false, stride, start);
        gl.vertexAttribDivisor(place, 1);
      }
      const made = { array, buffers };
      this.drawn.set(sheet, made);
      return made;
    }

    render(gl, { defaultProjectionData }) {
      const colours = theme.colours();
      gl.useProgram(this.program);
      gl.disable(gl.DEPTH_TEST);
      gl.disable(gl.STENCIL_TEST);
      gl.enable(gl.BLEND);
      gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
      gl.uniform3fv(this.places.u_stops, (this.diverging ? colours.diverging : colours.scale).flatMap(parts));
      gl.uniform4f(this.places.u_blank, ...parts(colours.blank), this.hasBaseMap ? 0 : 1);
      gl.uniform4f(this.places.u_line, ...parts(colours.line), 0.45);
      gl.uniform1f(this.places.u_opacity, this.hasBaseMap ? 0.78 : 1);
      const { clientWidth, clientHeight } = this.map.getContainer();
      gl.uniform2f(this.places.u_size, clientWidth, clientHeight);
      const zoom = this.map.getZoom();
      const shown = this.sheets.filter(({ zoom: [least, most] = [0, 99] }) => zoom >= least && zoom < most);
      this.draw(shown, defaultProjectionData.mainMatrix, false);
      if (this.showsOutlines) this.draw(this.outlines, defaultProjectionData.mainMatrix, true);
      gl.bindVertexArray(null);
    }

    draw(sheets, matrix, isLoop) {
      const { gl } = this;
      gl.uniform1i(this.places.u_loop, isLoop ? 1 : 0);
      for (const sheet of sheets) {
        const { array } = this.drawn.get(sheet) || this.upload(sheet);
        gl.uniformMatrix4fv(this.places.u_matrix, false, inFrame(matrix, sheet.frame));
        gl.bindVertexArray(array);
        gl.drawArraysInstanced(isLoop ? gl.LINE_LOOP : gl.TRIANGLE_STRIP, 0, 4, sheet.length);
      }
    }
  }

  /* Multiplied here, where numbers have 53 bits: the graphics card has 24, too few for a street. */
  function inFrame(m, [x, y, size]) {
    const made = new Float32Array(16);
    for (let row = 0; row < 4; row++) {
      made[row] = m[row] * size;
      made[4 + row] = m[4 + row] * size;
      made[8 + row] = m[8 + row];
      made[12 + row] = m[row] * x + m[4 + row] * y + m[12 + row];
    }
    return made;
  }

  /* Finds the rectangle at a place, by a grid of lists; made at the first question. */
  class Finder {
    constructor(sheet) {
      const { corners, length } = sheet;
      this.sheet = sheet;
      const low = [Infinity, Infinity], high = [-Infinity, -Infinity];
      for (let i = 0; i < corners.length; i++) {
        low[i % 2] = Math.min(low[i % 2], corners[i]);
        high[i % 2] = Math.max(high[i % 2], corners[i]);
      }
      this.low = low;
      this.side = Math.max(1, Math.min(512, Math.ceil(Math.sqrt(length))));
      this.step = [0, 1].map((axis) => (high[axis] - low[axis]) / this.side || 1);
      const ranges = (i) => {
        const found = [];
        for (const axis of [0, 1]) {
          const ends = [0, 2, 4, 6].map((at) => corners[8 * i + at + axis]);
          found.push(this.cell(Math.min(...ends), axis), this.cell(Math.max(...ends), axis));
        }
        return found;
      };
      const each = (visit) => {
        for (let i = 0; i < length; i++) {
          const [west, east, north, south] = ranges(i);
          for (let x = west; x <= east; x++) for (let y = north; y <= south; y++) visit(x * this.side + y, i);
        }
      };
      this.start = new Uint32Array(this.side * this.side + 1);
      each((cell) => { this.start[cell + 1]++; });
      for (let i = 1; i < this.start.length; i++) this.start[i] += this.start[i - 1];
      this.found = new Uint32Array(this.start[this.start.length - 1]);
      const next = this.start.slice();
      each((cell, i) => { this.found[next[cell]++] = i; });
    }

    cell(value, axis) {
      return Math.max(0, Math.min(this.side - 1, Math.floor((value - this.low[axis]) / this.step[axis])));
    }

    at(x, y) {
      const { frame, corners } = this.sheet;
      const u = (x - frame[0]) / frame[2], v = (y - frame[1]) / frame[2];
      const cell = this.cell(u, 0) * this.side + this.cell(v, 1);
      for (let at = this.start[cell]; at < this.start[cell + 1]; at++) {
        const i = this.found[at];
        if (isInside(corners, 8 * i, u, v)) return i;
      }
      return -1;
    }
  }

  function isInside(c, at, u, v) {
    const ring = [0, 2, 6, 4]; // SW, SE, NE, NW
    let sign = 0;
    for (let k = 0; k < 4; k++) {
      const a = at + ring[k], b = at + ring[(k + 1) % 4];
      const turn = (c[b] - c[a]) * (v - c[a + 1]) - (c[b + 1] - c[a + 1]) * (u - c[a]);
      if (turn !== 0 && sign !== 0 && Math.sign(turn) !== sign) return false;
      if (turn !== 0) sign = Math.sign(turn);
    }
    return true;
  }

  /* The corners of a rectangle of a sheet in the square, around it. */
  function ringOf({ corners, frame: [x, y, size] }, i) {
    return [0, 2, 6, 4].map((at) => [x + size * corners[8 * i + at], y + size * corners[8 * i + at + 1]]);
  }

  // --- the map ----------------------------------------------------------------------------------------
  function baseStyle(address) {
    if (address && address.includes("{z}")) {
      const source = { type: "raster", tiles: [address], tileSize: 256 };
      return { version: 8, sources: { base: source }, layers: [{ id: "base", type: "raster", source: "base" }] };
    }
    if (address) return address;
    const background = { "background-color": theme.colours().beyond };
    return { version: 8, sources: {}, layers: [{ id: "background", type: "background", paint: background }] };
  }

  function makeMap(container, { bounds, style = null, label, ...rest }) {
    const map = new maplibregl.Map({
      container, bounds, style: baseStyle(style), fitBoundsOptions: { padding: 24 }, attributionControl: false,
      dragRotate: false, pitchWithRotate: false, touchPitch: false, maxPitch: 0, maxZoom: 22, renderWorldCopies: false,
      fadeDuration: 0, canvasContextAttributes: { antialias: true }, locale: { "Map.Title": label }, ...rest,
    });
    map.touchZoomRotate.disableRotation();
    map.keyboard.disableRotation();
    map.addControl(new maplibregl.NavigationControl({ showCompass: false }), "top-right");
    const credit = 'drawn with <a href="https://maplibre.org/" target="_blank" rel="noreferrer">MapLibre</a>';
    map.addControl(new maplibregl.AttributionControl({ compact: false, customAttribution: credit }), "bottom-right");
    theme.onChange(() => {
      if (map.getLayer("background")) map.setPaintProperty("background", "background-color", theme.colours().beyond);
      map.triggerRepaint();
    });
    return map;
  }

  /* When layers can be added; whether with the style that was asked for. One that cannot be loaded, or takes too
     long, is done without. */
  function whenStyled(map) {
    if (map.getStyle()) return Promise.resolve(true);
    return new Promise((resolve) => {
      let isOurs = true;
      const doWithout = () => {
        if (!isOurs || map.getStyle()) return;
        isOurs = false;
        map.setStyle(baseStyle(null), { diff: false });
      };
      const timer = setTimeout(doWithout, STYLE_WAIT);
      map.on("error", doWithout);
      map.once("style.load", () => {
        clearTimeout(timer);
        map.off("error", doWithout);
        resolve(isOurs);
      });
    });
  }

  /* Lines of longitude and latitude with their numbers, the frame of the map, a cross in the middle for
     those who look by keyboard. `plane` is of a map that lies nowhere on earth. */
  class Overlay {
    constructor(map, { plane = null, frames = [] } = {}) {
      Object.assign(this, { map, plane, frames, isCrossed: false, highlight: null });
      this.canvas = document.createElement("canvas");
      this.canvas.className = "overlay";
      this.canvas.setAttribute("aria-hidden", "true");
      map.getCanvasContainer().append(this.canvas);
      for (const event of ["move", "resize", "load"]) map.on(event, () => this.draw());
      theme.onChange(() => this.draw());
      const canvas = map.getCanvas();
      canvas.addEventListener("focus", () => { this.isCrossed = canvas.matches(":focus-visible"); this.draw(); });
      canvas.addEventListener("blur", () => { this.isCrossed = false; this.draw(); });
      if (!plane) map.addControl(new maplibregl.ScaleControl({ maxWidth: 110 }), "bottom-left");
      this.draw();
    }

    toPlace(x, y) {
      const { plane } = this;
      return plane ? [plane.x + (x - 0.5) / plane.scale, plane.y - (y - 0.5) / plane.scale] : [longitudeOf(x), latitudeOf(y)];
    }

    toSquare(a, b) {
      const { plane } = this;
      return plane ? [0.5 + (a - plane.x) * plane.scale, 0.5 - (b - plane.y) * plane.scale] : [squareX(a), squareY(b)];
    }

    project(x, y) {
      const { x: across, y: down } = this.map.project([longitudeOf(x), latitudeOf(y)]);
      return [across, down];
    }

    draw() {
      const { map, canvas } = this;
      const { clientWidth: width, clientHeight: height } = map.getContainer();
      const ratio = window.devicePixelRatio || 1;
      canvas.width = width * ratio;
      canvas.height = height * ratio;
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
      const pen = canvas.getContext("2d");
      pen.scale(ratio, ratio);
      const colours = theme.colours();
      for (const ring of this.frames) this.drawRing(pen, ring, [[1.25, colours.frame]]);
      this.drawGraticule(pen, colours, width, height);
      if (this.highlight) this.drawRing(pen, this.highlight, [[4, colours.halo], [1.75, colours.label]]);
      if (this.isCrossed) this.drawCross(pen, colours, width / 2, height / 2);
    }

    drawRing(pen, ring, strokes) {
      for (const [width, colour] of strokes) {
        pen.lineWidth = width;
        pen.strokeStyle = colour;
        pen.beginPath();
        ring.forEach(([x, y], at) => pen[at ? "lineTo" : "moveTo"](...this.project(x, y)));
        pen.closePath();
        pen.stroke();
      }
    }

    drawGraticule(pen, colours, width, height) {
      const at = (px, py) => {
        const { lng, lat } = this.map.unproject([px, py]);
        return this.toPlace(squareX(lng), squareY(lat));
      };
      const [west, north] = at(0, 0), [east, south] = at(width, height);
      const wanted = Math.max(((east - west) / width) * 130, 1e-9);
      const power = 10 ** Math.floor(Math.log10(wanted));
      const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= wanted);
      const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
      pen.lineWidth = 1;
      pen.font = "11px system-ui, sans-serif";
      const lines = (low, high) => {
        const found = [];
        for (let k = Math.ceil(low / step); k * step <= high && found.length < 60; k++) found.push(k * step);
        return found;
      };
      pen.strokeStyle = colours.graticule;
      pen.beginPath();
      const columns = lines(west, east).map((a) => [a, this.project(...this.toSquare(a, (south + north) / 2))[0]]);
      const rows = lines(south, north).map((b) => [b, this.project(...this.toSquare((west + east) / 2, b))[1]]);
      for (const [, x] of columns) { pen.moveTo(Math.round(x) + 0.5, 0); pen.lineTo(Math.round(x) + 0.5, height); }
      for (const [, y] of rows) { pen.moveTo(0, Math.round(y) + 0.5); pen.lineTo(width, Math.round(y) + 0.5); }
      pen.stroke();
      const write = (text, x, y, align) => {
        pen.textAlign = align;
        pen.lineWidth = 3;
        pen.strokeStyle = colours.halo;
        pen.strokeText(text, x, y);
        pen.fillStyle = colours.label;
        pen.fillText(text, x, y);
      };
      const say = (value, [plus, minus]) => {
        const size = Math.abs(value).toFixed(digits);
        return this.plane ? value.toFixed(digits) : `${size}°${value === 0 ? "" : value > 0 ? ` ${plus}` : ` ${minus}`}`;
      };
      for (const [a, x] of columns) if (x > 40 && x < width - 60) write(say(a, "EW"), x, 14, "center");
      for (const [b, y] of rows) if (y > 26 && y < height - 60) write(say(b, "NS"), 5, y - 4, "left");
    }

    drawCross(pen, colours, x, y) {
      for (const [width, colour] of [[5, colours.halo], [2, colours.label]]) {
        pen.lineWidth = width;
        pen.strokeStyle = colour;
        pen.beginPath();
        for (const [dx, dy] of [[1, 0], [-1, 0], [0, 1], [0, -1]]) {
          pen.moveTo(x + 4 * dx, y + 4 * dy);
          pen.lineTo(x + 13 * dx, y + 13 * dy);
        }
        pen.stroke();
      }
    }
  }

  /* Two maps that look at the same place. */
  function synchronise(maps) {
    let isFollowing = false;
    for (const map of maps) {
      map.on("move", () => {
        if (isFollowing) return;
        isFollowing = true;
        const view = { center: map.getCenter(), zoom: map.getZoom() };
        maps.filter((other) => other !== map).forEach((other) => other.jumpTo(view));
        isFollowing = false;
      });
    }
  }

  /* What is at a place, beside it. Lines are texts, or [text, class]. */
  class Tooltip {
    constructor(map) {
      this.map = map;
      this.box = element("div", { className: "tooltip", role: "status", "aria-live": "polite", hidden: "" });
      map.getContainer().append(this.box);
    }

    show(x, y, lines) {
      this.box.replaceChildren(...lines.map((line) => {
        const [textContent, className] = Array.isArray(line) ? line : [line, ""];
        return element("div", { textContent, className });
      }));
      this.box.hidden = false;
      const { clientWidth: width, clientHeight: height } = this.map.getContainer();
      const { offsetWidth: wide, offsetHeight: high } = this.box;
      const left = x + 16 + wide > width ? Math.max(4, x - 16 - wide) : x + 16;
      const top = Math.max(4, Math.min(height - high - 4, y + 16 + high > height ? y - 16 - high : y + 16));
      this.box.style.transform = `translate(${Math.min(left, Math.max(4, width - wide - 4))}px, ${top}px)`;
    }

    hide() { this.box.hidden = true; }
  }

  /* Calls back with a place of the map when someone points at it, taps it, or moves the middle by keys. */
  function onPlace(map, visit, leave) {
    map.on("mousemove", (event) => visit(event.point, event.lngLat));
    map.on("click", (event) => visit(event.point, event.lngLat));
    map.getCanvas().addEventListener("mouseleave", leave);
    const canvas = map.getCanvas();
    const middle = () => {
      if (document.activeElement !== canvas || !canvas.matches(":focus-visible")) return;
      const { clientWidth, clientHeight } = map.getContainer();
      visit({ x: clientWidth / 2, y: clientHeight / 2 }, map.getCenter());
    };
    canvas.addEventListener("focus", middle);
    map.on("moveend", middle);
  }

  // --- legend -----------------------------------------------------------------------------------------
  function ticks(least, most) {
    const steps = Math.log10(most / least) < 2.5 ? [1, 2, 5] : [1];
    const found = [];
    for (let power = Math.floor(Math.log10(least)); power <= Math.log10(most); power++) {
      for (const step of steps) {
        const value = step * 10 ** power;
        if (value >= least * 0.999 && value <= most * 1.001) found.push(value);
      }
    }
    return found;
  }
  function element(name, properties = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(properties)) {
      if (key === "className" || key === "textContent" || key.startsWith("on")) made[key] = value;
      else made.setAttribute(key, value);
    }
    made.append(...children);
    return made;
  }
  function legend(container, { limits, unit, sides = null }) {
    const colours = theme.colours();
    const [least, most] = limits;
    const place = (value) => (Math.log(value / least) / Math.log(most / least)) * 100;
    const bar = element("div", { className: "legend-bar" });
    const marks = element("div", { className: "legend-ticks" });
    const mark = (at, text) => {
      const made = element("span", { textContent: text });
      made.style.left = `${at}%`;
      marks.append(made);
    };
    if (sides) {
      bar.style.background = `linear-gradient(to right, ${colours.diverging.join(",")})`;
      const power = 10 ** Math.floor(Math.log10(most));
      for (const value of [power, power / 10].filter((v) => place(v) > 25)) {
        mark(50 + place(value) / 2, `+${shortNumber(value)}`);
        mark(50 - place(value) / 2, `−${shortNumber(value)}`);
      }
      mark(50, "0");
    } else {
      bar.style.background = `linear-gradient(to right, ${colours.scale.join(",")})`;
      ticks(least, most).forEach((value) => mark(place(value), shortNumber(value)));
    }
    const noise = element("div", { className: "legend-noise" }, element("i"),
      sides ? "faint: no more than noise" : "no more than noise");
    noise.firstChild.style.background = sides
      ? `linear-gradient(to right, ${colours.diverging[4]}55, ${colours.blank}, ${colours.diverging[12]}55)` : colours.blank;
    const title = element("div", { className: "legend-title", textContent: unit });
    const children = [title, element("div", { className: "legend-scale" }, bar, marks), noise];
    if (sides) {
      const side = (name, colour) => {
        const made = element("div", { className: "legend-noise" }, element("i"), `more in ${name}`);
        made.firstChild.style.background = colour;
        return made;
      };
      children.push(side(sides[0], colours.diverging[13]), side(sides[1], colours.diverging[3]));
    }
    container.replaceChildren(...children);
  }

  return {
    theme, countText, intervalText, isOutsideInterval, OUTSIDE_IN_SHORT, WHY_OUTSIDE, signedText, shortNumber, difference, squareX, squareY, longitudeOf, latitudeOf,
    shadeOf, divergingShade, unpack, readOutlines, RectangleLayer, Finder, ringOf, makeMap, whenStyled, Overlay, synchronise, Tooltip, onPlace, legend, element,
  };
})();
