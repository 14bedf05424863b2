/* A layer for MapLibre that draws each sheet of rectangles with one call, sharp at every zoom. */

import { rgbOf, VEIL } from "./colours.js";
import { FRAGMENT, VERTEX } from "./shaders.js";
import { isSheetShown } from "./sheets.js";
import { theme } from "./theme.js";

const UNIFORMS = [
  "u_matrix",
  "u_loop",
  "u_stops",
  "u_blank",
  "u_unsure",
  "u_line",
  "u_opacity",
  "u_size",
];
// The name, which buffer, how many numbers, and bytes to the next and to the first.
const ATTRIBUTES = [
  ["a_south", 0, 4, 32, 0],
  ["a_north", 0, 4, 32, 16],
  ["a_shade", 1, 1, 4, 0],
];

export class RectangleLayer {
  constructor(id, { diverging = false, hasBaseMap = false } = {}) {
    this.id = id;
    this.type = "custom"; // this and the next are MapLibre's
    this.renderingMode = "2d";
    this.diverging = diverging;
    this.hasBaseMap = hasBaseMap; // one that is fetched
    this.hasGround = false; // of the base map that we carry
    this.sheets = [];
    this.outlines = [];
    this.showsOutlines = false;
    this.uploaded = new Map(); // what is on the graphics card, by sheet
  }

  onAdd(map, gl) {
    this.map = map;
    this.gl = gl;
    this.uploaded.clear();
    this.program = gl.createProgram();
    for (const [kind, source] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      gl.attachShader(this.program, shader);
    }
    gl.linkProgram(this.program);
    this.places = {};
    for (const name of UNIFORMS) this.places[name] = gl.getUniformLocation(this.program, name);
  }

  set({ sheets = this.sheets, outlines = this.outlines, showsOutlines = this.showsOutlines }) {
    this.sheets = sheets;
    this.outlines = outlines;
    this.showsOutlines = showsOutlines;
    const kept = new Set([...sheets, ...outlines]);
    for (const [sheet, { array, buffers }] of this.uploaded) {
      if (kept.has(sheet)) continue;
      this.gl.deleteVertexArray(array);
      for (const buffer of buffers) this.gl.deleteBuffer(buffer);
      this.uploaded.delete(sheet);
    }
    if (this.map) this.map.triggerRepaint();
  }

  upload(sheet) {
    const { gl } = this;
    const array = gl.createVertexArray();
    gl.bindVertexArray(array);
    const shade = sheet.shade || new Float32Array(sheet.length);
    const buffers = [sheet.corners, shade].map((values) => {
      const buffer = gl.createBuffer();
      gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
      gl.bufferData(gl.ARRAY_BUFFER, values, gl.STATIC_DRAW);
      return buffer;
    });
    for (const [name, buffer, size, stride, start] of ATTRIBUTES) {
      const place = gl.getAttribLocation(this.program, name);
      gl.bindBuffer(gl.ARRAY_BUFFER, buffers[buffer]);
      gl.enableVertexAttribArray(place);
      gl.vertexAttribPointer(place, size, gl.FLOAT, false, stride, start);
      gl.vertexAttribDivisor(place, 1);
    }
    const made = { array, buffers };
    this.uploaded.set(sheet, made);
    return made;
  }

  /* Called by MapLibre for every frame. */
  render(gl, { defaultProjectionData: { mainMatrix } }) {
    gl.useProgram(this.program);
    gl.disable(gl.DEPTH_TEST);
    gl.disable(gl.STENCIL_TEST);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    this.setColours(gl);
    const { clientWidth, clientHeight } = this.map.getContainer();
    gl.uniform2f(this.places.u_size, clientWidth, clientHeight);
    const zoom = this.map.getZoom();
    this.draw(this.sheets.filter((sheet) => isSheetShown(sheet, zoom)), mainMatrix, false);
    if (this.showsOutlines) this.draw(this.outlines, mainMatrix, true);
    gl.bindVertexArray(null);
  }

  setColours(gl) {
    const colours = theme.colours();
    const stops = this.diverging ? colours.diverging : colours.scale;
    gl.uniform3fv(this.places.u_stops, stops.flatMap(rgbOf));
    const blank = this.hasGround ? [...rgbOf(colours.veil), VEIL] : [...rgbOf(colours.blank), 1];
    gl.uniform4f(this.places.u_blank, ...blank.slice(0, 3), this.hasBaseMap ? 0 : blank[3]);
    gl.uniform3f(this.places.u_unsure, ...rgbOf(colours.unsure));
    gl.uniform4f(this.places.u_line, ...rgbOf(colours.line), 0.45);
    gl.uniform1f(this.places.u_opacity, this.hasBaseMap ? 0.78 : 1);
  }

  draw(sheets, matrix, isLoop) {
    const { gl } = this;
    gl.uniform1i(this.places.u_loop, isLoop ? 1 : 0);
    for (const sheet of sheets) {
      const { array } = this.uploaded.get(sheet) || this.upload(sheet);
      gl.uniformMatrix4fv(this.places.u_matrix, false, inFrame(matrix, sheet.frame));
      gl.bindVertexArray(array);
      gl.drawArraysInstanced(isLoop ? gl.LINE_LOOP : gl.TRIANGLE_STRIP, 0, 4, sheet.length);
    }
  }
}

/* Multiplied here, with 53 bits: the graphics card has 24, too few at street level. */
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
