"""Polygons as well-known binary: read and joined without shapely, which takes long to load."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from htf.frame.axis import FloatArray, IntArray

POLYGON, MULTIPOLYGON, LINE = 3, 6, 2  # as well-known binary numbers types of geometry
START = struct.Struct("<BII")  # byte order, type, number of parts or rings
NOTHING = START.pack(1, POLYGON, 0)  # a polygon without rings
_LAYOUT = [("order", "u1"), ("kind", "<u4"), ("rings", "<u4"), ("points", "<u4")]
_RECTANGLE = np.dtype([*_LAYOUT, ("ring", "<f8", (5, 2))])
RECTANGLE = _RECTANGLE.itemsize  # bytes
Shapes = tuple[bytes, ...]


def joined(shapes: Shapes) -> bytes:
    """Several polygons as one of many parts."""
    parts = [part for shape in shapes for part in _parts(shape)]
    return START.pack(1, MULTIPOLYGON, len(parts)) + b"".join(parts)


def _parts(shape: bytes) -> list[bytes]:
    """The polygons of a shape, each as well-known binary of its own."""
    kind, number = START.unpack_from(shape)[1:]
    if kind == POLYGON:
        return [shape[: _end_of_polygon(shape, 0)]] if number else []
    parts, place = [], START.size
    for _ in range(number):
        end = _end_of_polygon(shape, place)
        parts.append(shape[place:end])
        place = end
    return parts


def _end_of_polygon(shape: bytes, place: int) -> int:
    rings = START.unpack_from(shape, place)[2]
    place += START.size
    for _ in range(rings):
        (points,) = struct.unpack_from("<I", shape, place)
        place += 4 + 16 * points
    return place


def _rings(shape: bytes) -> Iterator[FloatArray]:
    """The corners of each ring."""
    for part in _parts(shape):
        rings, place = START.unpack_from(part)[2], START.size
        for _ in range(rings):
            (points,) = struct.unpack_from("<I", part, place)
            yield np.frombuffer(part, dtype="<f8", count=2 * points, offset=place + 4).reshape(
                -1, 2
            )
            place += 4 + 16 * points


def is_sound(shape: bytes) -> bool:
    """Whether it is nothing, or a polygon in two dimensions whose corners are numbers."""
    if shape in (b"", NOTHING):
        return True
    try:
        order, kind, _ = START.unpack_from(shape)
        parts = _parts(shape) if kind in (POLYGON, MULTIPOLYGON) else []
        length = sum(map(len, parts)) + (START.size if kind == MULTIPOLYGON else 0)
        sound = all(START.unpack_from(part)[:2] == (1, POLYGON) for part in parts)
        sound &= order == 1 and len(parts) > 0 and length == len(shape)
        return sound and all(len(ring) > 3 and np.isfinite(ring).all() for ring in _rings(shape))
    except (struct.error, ValueError):
        return False


def rectangles(west: FloatArray, south: FloatArray, east: FloatArray, north: FloatArray) -> bytes:
    """Rectangles of `RECTANGLE` bytes each, one after the other."""
    outlines = np.zeros(len(west), dtype=_RECTANGLE)
    outlines["order"], outlines["kind"], outlines["rings"], outlines["points"] = 1, POLYGON, 1, 5
    corners = [(west, south), (east, south), (east, north), (west, north), (west, south)]
    for number, (along, across) in enumerate(corners):
        outlines["ring"][:, number, 0], outlines["ring"][:, number, 1] = along, across
    return outlines.tobytes()


@lru_cache(maxsize=8)
def boxes_around(shapes: Shapes) -> FloatArray:
    """W,S,E,N of each shape; NaN for one without an outline."""
    boxes = np.full((len(shapes), 4), np.nan)
    for number, shape in enumerate(shapes):
        corners = list(_rings(shape or NOTHING))
        if corners:
            together = np.concatenate(corners)
            boxes[number] = [*together.min(axis=0), *together.max(axis=0)]
    boxes.flags.writeable = False
    return boxes


def middles(shapes: Shapes, low: IntArray, high: IntArray) -> FloatArray:
    """The middle of the box around each range of shapes. One without an outline is put at the corner of the map, where
    its lines can be distinguished from others."""
    boxes = boxes_around(shapes)
    corner = np.array([np.nanmin(boxes[:, 0]), np.nanmin(boxes[:, 1])] * 2)
    boxes = np.where(np.isnan(boxes), corner, boxes)
    if np.all(high == low + 1):
        around = boxes[low]
    else:
        ends = zip(low.tolist(), high.tolist(), strict=True)
        pairs = [[*boxes[a:b, :2].min(axis=0), *boxes[a:b, 2:].max(axis=0)] for a, b in ends]
        around = np.array(pairs)
    return np.asarray((around[:, :2] + around[:, 2:]) / 2)
