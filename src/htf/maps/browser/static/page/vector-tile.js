/* Reads Mapbox Vector Tiles as the server makes them: one layer of polygons, each a single ring.
   All features are read at once into columns, quicker than objects would be made. */

const VARINT = 0; // how a field is stored; else it is four bytes
const EIGHT_BYTES = 1;
const LENGTH = 2;

/* { extent, length, columns: { name: Float64Array }, points: Int32Array, starts: Uint32Array }, or
   null for a tile without features. The ring of feature i has the points starts[i] up to
   starts[i + 1], each x and y. */
export function readTile(buffer) {
  const reader = new Reader(new Uint8Array(buffer));
  let layer = null;
  reader.fields(reader.bytes.length, (field, end) => {
    if (field === 3) layer = readLayer(reader, end);
  });
  return layer;
}

class Reader {
  constructor(bytes) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer);
    this.at = 0;
  }

  varint() {
    const { bytes } = this;
    let byte = bytes[this.at++];
    let found = byte & 127;
    for (let shift = 7; byte > 127 && shift < 35; shift += 7) {
      byte = bytes[this.at++];
      found |= (byte & 127) << shift;
    }
    return found >>> 0;
  }

  /* Visits the fields up to `end`. A visitor gets the number of the field, and where it ends if it
     has a length; if it has none, its value. */
  fields(end, visit) {
    while (this.at < end) {
      const key = this.varint();
      const kind = key & 7;
      if (kind === LENGTH) {
        const size = this.varint();
        const after = this.at + size;
        visit(key >> 3, after);
        this.at = after;
      } else visit(key >> 3, this.number(kind));
    }
  }

  number(kind) {
    if (kind === VARINT) return this.varint();
    const size = kind === EIGHT_BYTES ? 8 : 4;
    this.at += size;
    if (size === 8) return this.view.getFloat64(this.at - 8, true);
    return this.view.getFloat32(this.at - 4, true);
  }
}

function readLayer(reader, end) {
  const features = []; // where each starts, and where it ends
  const keys = [];
  const values = [];
  let extent = 4096;
  reader.fields(end, (field, found) => {
    if (field === 2) features.push(reader.at, found);
    else if (field === 3) {
      keys.push(new TextDecoder().decode(reader.bytes.subarray(reader.at, found)));
    } else if (field === 4) values.push(readValue(reader, found));
    else if (field === 5) extent = found;
  });
  return { extent, length: features.length / 2, ...readFeatures(reader, features, keys, values) };
}

function readValue(reader, end) {
  let value = NaN;
  reader.fields(end, (_, found) => {
    value = found;
  });
  return value;
}

function readFeatures(reader, features, keys, values) {
  const length = features.length / 2;
  const columns = keys.map(() => new Float64Array(length).fill(NaN));
  const starts = new Uint32Array(length + 1);
  const points = [];
  for (let i = 0; i < length; i++) {
    reader.at = features[2 * i];
    while (reader.at < features[2 * i + 1]) {
      const field = reader.varint() >> 3;
      const size = reader.varint(); // or the type of the geometry
      const end = reader.at + size;
      if (field === 2) {
        while (reader.at < end) columns[reader.varint()][i] = values[reader.varint()];
      } else if (field === 4) readRing(reader, end, points);
    }
    starts[i + 1] = points.length / 2;
  }
  const named = Object.fromEntries(keys.map((key, place) => [key, columns[place]]));
  return { columns: named, points: Int32Array.from(points), starts };
}

function readRing(reader, end, points) {
  let [x, y] = [0, 0];
  while (reader.at < end) {
    const command = reader.varint();
    if ((command & 7) === 7) continue; // closes the ring
    for (let left = command >> 3; left > 0; left--) {
      x += signed(reader.varint());
      y += signed(reader.varint());
      points.push(x, y);
    }
  }
}

const signed = (number) => (number >>> 1) ^ -(number & 1);
