/* A sheet is many rectangles that are drawn with one call:
   { frame: [x, y, size], corners, length, shade, zoom: [least, most] }.
   Corners are SW, SE, NW, NE within the frame, eight numbers for each rectangle. */

const RING = [0, 2, 6, 4]; // SW, SE, NE, NW: around a rectangle

/* Files and the API give columns: W, S, E, N, or all eight numbers where sides are slanted. */
function eightCorners(columns, length) {
  const corners = new Float32Array(8 * length);
  const isUpright = columns.length === 4 * length;
  const order = isUpright ? [0, 1, 2, 1, 0, 3, 2, 3] : [0, 1, 2, 3, 4, 5, 6, 7];
  order.forEach((column, place) => {
    for (let i = 0; i < length; i++) corners[8 * i + place] = columns[column * length + i];
  });
  return corners;
}

/* Numbers that Python has packed (rectangles.py): deflated, as base64. */
export async function unpack(text, Kind) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Kind(await new Response(stream).arrayBuffer());
}

export async function readSheet({ frame, length, corners }) {
  return { frame, length, corners: eightCorners(await unpack(corners, Float32Array), length) };
}

/* The corners of rectangle i in the Mercator square, in order around it. */
export function ringOf({ corners, frame }, i) {
  const [x, y, size] = frame;
  return RING.map((at) => [x + size * corners[8 * i + at], y + size * corners[8 * i + at + 1]]);
}

export function isSheetShown({ zoom: [least, most] = [0, 99] }, zoom) {
  return zoom >= least && zoom < most;
}
