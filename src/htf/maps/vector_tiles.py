"""Mapbox Vector Tiles (version 2.1): the contents of a tile as protobuf, for map libraries and GIS tools.

All features of a tile are encoded at once, as arrays. A message is a sequence of varints but for the values,
which have a fixed length, so a layer is one long list of numbers and one of values.

Tiles are small because numbers are rounded, and because equal numbers are stored once. Counts, their intervals and
densities are rounded to a sixteenth of their standard error or less, which does not show beside the noise.
`west`, `south`, `width` and `height` are those of the whole leaf or square, in the coordinates of the map, whereas
shapes are cut off beyond the tile. Fields have the order that compresses best.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htf.frame.crs import CRS84, transformer
from htf.frame.domain import FloatArray, IntArray
from htf.maps.browser.mercator import to_square
from htf.maps.tiles import Contents, tile_bounds, tile_contents
from htf.query.where import Where
from htf.release.release import Release

Place = tuple[int, int, int]  # zoom, column and row
Rings = tuple[IntArray, IntArray, IntArray]
LAYER = "counts"
EXTENT = 4096  # units along the side of a tile
BUFFER = 16  # units beyond it, so that no edge shows where tiles meet
STEPS = 16  # of rounding in a standard error, at least
DIGITS = 7  # binary, of standard errors: within 0.4 %
POINTS_PER_EDGE = 8  # of rectangles that another reference system bends
TOLERANCE = 0.5  # units, below which a corner is not seen
ENDS = 2 ** np.array([7, 14, 21, 28])  # below which a varint takes one byte, two, and so on
POLYGON = 3  # a type of geometry, both here and in shapely
MOVE_TO, LINE_TO, CLOSE = 9, 2, 15  # commands: one move; a line, to which the number is added
# Fields of protobuf: eight times their number, and how they are stored.
LAYERS = 0x1A  # of a tile
NAME, FEATURE, KEY, VALUE, EXTENT_FIELD, VERSION = 0x0A, 0x12, 0x1A, 0x22, 0x28, 0x78  # of a layer
TAGS, TYPE, GEOMETRY = 0x12, 0x18, 0x22  # of a feature
FORMS = {"?": (0x38, "u1"), "f": (0x15, "<f4"), "d": (0x19, "<f8")}  # of a value: field and form


def vector_tile(release: Release, place: Place, where: Where, *, intervals: bool = True) -> bytes:
    """The tile z/x/y of a release, without bytes if nothing of the map lies in it.

    Without `intervals`, squares have only their count. Leaves always have theirs.
    """
    contents = tile_contents(release, tile_bounds(*place, BUFFER / EXTENT), where)
    if contents is None:
        return b""
    crs = str(release.domain.crs)
    is_upright = crs == CRS84
    rings = _upright(contents.boxes, place) if is_upright else _bent(contents.boxes, crs, place)
    corners, starts, kept = rings
    if not len(kept):
        return b""
    columns = _columns(contents, intervals=intervals or contents.are_leaves)
    if not release.private:
        columns["not_private"] = np.ones(len(contents), dtype=np.bool_)
    chosen = {name: column[kept] for name, column in columns.items()}
    return encode_layer(LAYER, corners, starts, chosen)


def _columns(contents: Contents, *, intervals: bool) -> dict[str, NDArray[Any]]:
    answers = contents.columns
    error = answers["std_error"]
    rounded = {name: _by_error(column, error) for name, column in answers.items()}
    rounded["std_error"] = _to_digits(error)
    found: dict[str, NDArray[Any]] = {}
    if contents.area is not None:
        found["density"] = _by_error(answers["count"] / contents.area, error / contents.area)
    found["count"] = rounded.pop("count")
    if intervals:
        found |= rounded
    boxes, sizes = contents.boxes, contents.sizes
    found |= {"clear": contents.is_clear, "unsure": contents.is_unsure}
    found |= {"south": boxes[:, 1], "height": sizes[:, 1]}
    return {**found, "width": sizes[:, 0], "west": boxes[:, 0]}


def _by_error(values: FloatArray, error: FloatArray) -> NDArray[np.float32]:
    """Rounded to a power of two that is at most a part of the standard error; not at all if there is none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        step = np.exp2(np.floor(np.log2(error / STEPS)))
        rounded = np.round(values / step) * step
    has_step = np.isfinite(step) & (step > 0) & np.isfinite(rounded)
    found: NDArray[np.float32] = np.where(has_step, rounded, values).astype(np.float32)
    found += np.float32(0)  # no -0
    return found


def _to_digits(values: FloatArray) -> NDArray[np.float32]:
    mantissa, exponent = np.frexp(values)
    rounded = np.ldexp(np.round(np.ldexp(mantissa, DIGITS)), exponent - DIGITS)
    return np.asarray(rounded, dtype=np.float32)


def _upright(boxes: FloatArray, place: Place) -> Rings:
    """Corners in units of the tile, clockwise as one sees them; where each ring starts; and which boxes are left."""
    west, north = _units(boxes[:, 0], boxes[:, 3], place)
    east, south = _units(boxes[:, 2], boxes[:, 1], place)
    ends = np.clip(np.round([west, north, east, south]), -BUFFER, EXTENT + BUFFER).astype(np.int64)
    is_inside = (west < EXTENT + BUFFER) & (east > -BUFFER) & (north < EXTENT + BUFFER)
    kept = np.flatnonzero(is_inside & (south > -BUFFER))
    left, top, right, bottom = ends[:, kept]
    # A box that is smaller than a unit stays, as the smallest that there is.
    left, top = np.minimum(left, EXTENT + BUFFER - 1), np.minimum(top, EXTENT + BUFFER - 1)
    right, bottom = np.maximum(right, left + 1), np.maximum(bottom, top + 1)
    corners = np.stack([left, top, right, top, right, bottom, left, bottom], axis=1)
    return corners.reshape(-1, 2), np.arange(len(kept) + 1) * 4, kept


def _bent(boxes: FloatArray, crs: str, place: Place) -> Rings:
    """The same for rectangles of another reference system, whose edges are bent."""
    from htf.query.shapes import need_shapely

    shapely = need_shapely("Tiles of a map that is not in degrees")
    sides = np.max(boxes[:, 2:] - boxes[:, :2], axis=1)
    shapes = shapely.segmentize(shapely.box(*boxes.T), sides / POINTS_PER_EDGE)
    to_degrees = transformer(crs, CRS84)

    def to_units(xy: FloatArray) -> FloatArray:
        longitude, latitude = to_degrees.transform(xy[:, 0], xy[:, 1])
        return np.column_stack(_units(longitude, latitude, place))

    window = shapely.box(-BUFFER, -BUFFER, EXTENT + BUFFER, EXTENT + BUFFER)
    shapes = shapely.intersection(shapely.transform(shapes, to_units), window)
    shapes = shapely.set_precision(shapely.simplify(shapes, TOLERANCE), 1)
    kept = np.flatnonzero((shapely.get_type_id(shapes) == POLYGON) & (shapely.area(shapes) > 0))
    # With y downwards, what shapely calls counter-clockwise is clockwise for the eye.
    outlines = shapely.get_exterior_ring(shapely.orient_polygons(shapes[kept]))
    points, owner = shapely.get_coordinates(outlines, return_index=True)
    is_first = np.diff(owner, prepend=-1) > 0  # which the last corner repeats
    corners = np.round(points[~is_first]).astype(np.int64)
    return corners, np.append(0, np.cumsum(np.bincount(owner[~is_first]))), kept


def _units(
    longitude: FloatArray, latitude: FloatArray, place: Place
) -> tuple[FloatArray, FloatArray]:
    """Positions in units of a tile; y grows southwards."""
    z, column, row = place
    x, y = to_square(longitude, latitude)
    return (x * 2**z - column) * EXTENT, (y * 2**z - row) * EXTENT


def encode_layer(
    name: str, corners: IntArray, starts: IntArray, columns: dict[str, NDArray[Any]]
) -> bytes:
    """A tile with one layer of polygons, each one ring without its last corner, and their attributes."""
    indexes, values = _value_table(list(columns.values()))
    features = _features(corners, starts, indexes)
    layer = b"".join(
        [
            *_texts(NAME, [name]),
            _varints(np.array([VERSION, 2])),
            features,
            *_texts(KEY, columns),
            *values,
            _varints(np.array([EXTENT_FIELD, EXTENT])),
        ]
    )
    return _varints(np.array([LAYERS, len(layer)])) + layer


def _texts(field: int, texts: Iterable[str]) -> list[bytes]:
    encoded = [text.encode() for text in texts]
    return [_varints(np.array([field, len(text)])) + text for text in encoded]


def _value_table(columns: Sequence[NDArray[Any]]) -> tuple[IntArray, list[bytes]]:
    """For each feature and column the index of its value, and the values, each once."""
    indexes = np.empty((len(columns[0]), len(columns)), dtype=np.int64)
    values: list[bytes] = []
    number = 0
    for kind in (np.bool_, np.float64, np.float32):
        chosen = [place for place, column in enumerate(columns) if column.dtype == kind]
        if chosen:
            together = np.stack([columns[place] for place in chosen], axis=1)
            found, which = np.unique(together, return_inverse=True)
            indexes[:, chosen] = number + which.reshape(together.shape)
            values.append(_values(found))
            number += len(found)
    return indexes, values


def _values(found: NDArray[Any]) -> bytes:
    """Messages that hold one number each: two bytes that announce the message, one that says its kind."""
    kind, form = FORMS[found.dtype.char]
    fields = [("field", "u1"), ("size", "u1"), ("kind", "u1"), ("value", form)]
    made = np.empty(len(found), dtype=fields)
    made["field"], made["size"], made["kind"] = VALUE, np.dtype(form).itemsize + 1, kind
    made["value"] = found
    return made.tobytes()


def _features(corners: IntArray, starts: IntArray, indexes: IntArray) -> bytes:
    """All features, one after another. Each is two lists of numbers, the tags and the geometry, and their
    lengths in bytes, which are known once the numbers are."""
    number, keys = indexes.shape
    tags = np.empty((number, 2 * keys), dtype=np.int64)
    tags[:, ::2], tags[:, 1::2] = np.arange(keys), indexes
    tag_bytes = _sizes(tags).sum(axis=1)
    geometry, geometry_starts = _geometry(corners, starts)
    geometry_bytes = np.add.reduceat(_sizes(geometry), geometry_starts[:-1])
    body = 1 + _sizes(tag_bytes) + tag_bytes + 2 + 1 + _sizes(geometry_bytes) + geometry_bytes
    before = np.empty((number, 4 + 2 * keys + 4), dtype=np.int64)
    before[:, 0], before[:, 1] = FEATURE, body
    before[:, 2], before[:, 3] = TAGS, tag_bytes
    before[:, 4:-4] = tags
    before[:, -4:] = np.column_stack(
        [np.full((number, 3), (TYPE, POLYGON, GEOMETRY)), geometry_bytes]
    )
    widths = np.diff(geometry_starts)
    total = before.shape[1] + widths
    at = np.append(0, np.cumsum(total))[:-1]
    numbers = np.empty(int(total.sum()), dtype=np.int64)
    numbers[at[:, None] + np.arange(before.shape[1])] = before
    inside = np.arange(len(geometry)) - np.repeat(geometry_starts[:-1], widths)
    numbers[np.repeat(at + before.shape[1], widths) + inside] = geometry
    return _varints(numbers)


def _geometry(corners: IntArray, starts: IntArray) -> tuple[IntArray, IntArray]:
    """Commands: move to the first corner, draw a line to each of the others, close."""
    lengths = np.diff(starts)
    moves = np.diff(corners, axis=0, prepend=np.zeros((1, 2), dtype=np.int64))
    moves[starts[:-1]] = corners[starts[:-1]]  # from the origin, for each feature
    zigzag = (moves << 1) ^ (moves >> 63)
    begins = np.append(0, np.cumsum(2 * lengths + 3))
    found = np.empty(int(begins[-1]), dtype=np.int64)
    inside = np.arange(len(corners)) - np.repeat(starts[:-1], lengths)
    at = np.repeat(begins[:-1], lengths) + 1 + 2 * inside + (inside > 0)
    found[at], found[at + 1] = zigzag.T
    found[begins[:-1]] = MOVE_TO
    found[begins[:-1] + 3] = (lengths - 1) * 8 + LINE_TO
    found[begins[1:] - 1] = CLOSE
    return found, begins


def _sizes(numbers: IntArray) -> IntArray:
    """How many bytes each takes as a varint, below 2^35."""
    return np.searchsorted(ENDS, numbers, side="right") + 1


def _varints(numbers: IntArray) -> bytes:
    """Seven bits in each byte, the lowest first; the highest bit says that more follow."""
    sizes = _sizes(numbers)
    ends = np.cumsum(sizes)
    made = np.empty(int(ends[-1]), dtype=np.uint8)
    starts = ends - sizes
    for byte in range(5):
        longer = sizes > byte
        if not longer.any():
            break
        rest = numbers[longer] >> 7 * byte
        more = np.where(sizes[longer] > byte + 1, 0x80, 0)
        made[starts[longer] + byte] = (rest & 0x7F) | more
    return made.tobytes()
