/* The two programs that draw a rectangle on the graphics card. */

export const VERTEX = `#version 300 es
  uniform mat4 u_matrix;
  uniform bool u_loop; // outlines, not areas
  uniform vec2 u_size; // of the map, in pixels
  in vec4 a_south;
  in vec4 a_north;
  in float a_shade;
  out float v_shade;
  out float v_line;
  void main() {
    vec4 low = u_matrix * vec4(a_south.xy, 0.0, 1.0);
    vec4 high = u_matrix * vec4(a_north.zw, 0.0, 1.0);
    vec2 sides = abs(high.xy / high.w - low.xy / low.w) * u_size / 2.0;
    // Lines of small rectangles are faint: many of them would hide the colours.
    v_line = clamp((min(sides.x, sides.y) - 2.0) / 10.0, 0.12, 1.0);
    vec2 place = gl_VertexID == 0 ? a_south.xy : gl_VertexID == 1 ? a_south.zw
      : (gl_VertexID == 2) != u_loop ? a_north.xy : a_north.zw;
    v_shade = a_shade;
    gl_Position = u_matrix * vec4(place, 0.0, 1.0);
  }`;

// A shade is -2 where there are too few to tell, -1 for blank, 0 to 1 for a colour. Faint: 10 more
// (colours.js).
export const FRAGMENT = `#version 300 es
  precision highp float;
  uniform vec3 u_stops[17];
  uniform vec4 u_blank;
  uniform vec3 u_unsure;
  uniform vec4 u_line;
  uniform bool u_loop;
  uniform float u_opacity;
  in float v_shade;
  in float v_line;
  out vec4 colour;
  void main() {
    if (u_loop) { colour = vec4(u_line.rgb, 1.0) * u_line.a * v_line; return; }
    if (v_shade < -1.5) { colour = vec4(u_unsure * u_opacity, u_opacity); return; }
    if (v_shade < 0.0) { colour = vec4(u_blank.rgb * u_blank.a, u_blank.a); return; }
    bool faint = v_shade > 5.0;
    float at = clamp(faint ? v_shade - 10.0 : v_shade, 0.0, 1.0) * 16.0;
    int below = min(int(at), 15);
    vec3 full = mix(u_stops[below], u_stops[below + 1], at - float(below));
    if (faint) full = mix(u_blank.rgb, full, 0.22);
    float most = faint ? (u_blank.a > 0.0 ? (1.0 + u_blank.a) / 2.0 : 0.25) : 1.0;
    float alpha = min(u_opacity, most);
    colour = vec4(full * alpha, alpha);
  }`;
