"""What the file of a release has of axes with names: labels and outlines of its rows, and the layer of zones itself.

A row of a map of zones has the outline of its zone, a row of flows a line from the middle of one zone to that of the
other. Both follow from the layer, which is stored once, in a list column: one entry for each zone, spread evenly over
the rows.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from htf.errors import ReleaseFileError
from htf.frame.domain import Axis, Domain, FloatArray, IntArray
from htf.frame.names import Names, Outlines

if TYPE_CHECKING:
    import pyarrow as pa

    from htf.release.release import Release

ZONES = "zones"  # the column of the layer
OWN = ("geometry", "count", "std_error", "noise_scale", "region", "regions", "measurements", "prior", "background", ZONES)  # fmt: skip
POLYGON, MULTIPOLYGON, LINE = 3, 6, 2  # as well-known binary numbers types of geometry
START = struct.Struct("<BII")  # byte order, type, number of parts or rings
NOTHING = START.pack(1, POLYGON, 0)  # a polygon without rings
LONGEST_ATTRIBUTES = 2**20  # bytes of JSON, of one zone


def label_columns(domain: Domain) -> dict[str, tuple[int, int]]:
    """The names of the columns of labels, with the axis and the level of each.

    A column has the name of its level, or of the axis too if that is taken. It has no dots, which mean something else in
    names of columns of Parquet.
    """
    edges = [f"{name}_{side}" for name in domain.names for side in ("low", "high")]
    taken, found = {*OWN, *edges}, {}
    for number, axis in enumerate(domain.axes):
        if axis.names is None:
            continue
        for level, one in enumerate(axis.names.levels):
            plain = one.name.replace(".", "_")
            name = plain if plain not in taken else f"{axis.name} {plain}"
            while name in taken:
                name = f"{name}_"
            found[name] = (number, level)
            taken.add(name)
    return found


def labels_at(names: Names, level: int, cells: IntArray) -> list[str]:
    """The labels of a level that cells lie in."""
    labels, edges = names.levels[level].labels, names.edges(level)
    return [labels[place] for place in (np.searchsorted(edges, cells, side="right") - 1).tolist()]


def labels_of(names: Names, level: int, low: IntArray, high: IntArray) -> list[str]:
    """The label of each range of cells on a level; of one that spans several, the first and the last."""
    pairs = zip(labels_at(names, level, low), labels_at(names, level, high - 1), strict=True)
    return [first if first == last else f"{first} … {last}" for first, last in pairs]


def row_outlines(release: Release) -> list[bytes]:
    """The outline of each leaf, as well-known binary: of its zone, or the line of its flow."""
    axes, places = release.domain.axes, release.domain.zoned
    if len(places) > 1:
        ends = [
            _middles(axes[place], release.low[:, place], release.high[:, place])
            for place in places[:2]
        ]
        lines = np.stack(ends, axis=1)
        start = START.pack(1, LINE, 2)
        return [start + line.tobytes() for line in lines]
    place = places[0]
    shapes = _shapes(axes[place])
    ranges = zip(release.low[:, place].tolist(), release.high[:, place].tolist(), strict=True)
    return [shapes[low] if high == low + 1 else _joined(shapes[low:high]) for low, high in ranges]


def kinds_of_outlines(domain: Domain) -> list[str]:
    """The types of geometry that rows have."""
    return ["LineString"] if len(domain.zoned) > 1 else ["MultiPolygon", "Polygon"]


def bounds_of_zones(domain: Domain) -> list[float]:
    """W,S,E,N of all zones."""
    boxes = np.concatenate([_boxes(domain.axes[place]) for place in domain.zoned])
    boxes = boxes[np.isfinite(boxes).all(axis=1)]
    if len(boxes) == 0:
        return [0.0, 0.0, 0.0, 0.0]
    return [*boxes[:, :2].min(axis=0).tolist(), *boxes[:, 2:].max(axis=0).tolist()]


def zone_type() -> pa.DataType:
    import pyarrow as pa

    fields = [("axis", pa.int64()), ("cell", pa.int64()), ("shape", pa.binary())]
    return pa.list_(pa.struct([*fields, ("attributes", pa.string())]))


def zone_lists(release: Release) -> pa.Array:
    """The layers, zone by zone, spread over the rows so that their numbers differ by at most one."""
    import pyarrow as pa

    columns = layer_columns(release.domain)
    types = zone_type().value_type
    arrays = [pa.array(columns[field.name], field.type) for field in types]
    offsets = np.arange(len(release) + 1) * len(columns["axis"]) // len(release)
    structs = pa.StructArray.from_arrays(arrays, [field.name for field in types])
    return pa.ListArray.from_arrays(pa.array(offsets, type=pa.int32()), structs)


def layer_columns(domain: Domain) -> dict[str, list[Any]]:
    """The layers, a row for each zone."""
    columns: dict[str, list[Any]] = {"axis": [], "cell": [], "shape": [], "attributes": []}
    for place in domain.zoned:
        outlines = _outlines(domain.axes[place])
        columns["axis"] += [place] * len(outlines.shapes)
        columns["cell"] += range(len(outlines.shapes))
        columns["shape"] += outlines.shapes
        columns["attributes"] += _attribute_texts(outlines)
    return columns


def with_outlines(domain: Domain, flat: pa.StructArray) -> Domain:
    """The map with the outlines that `zone_lists` wrote."""
    if flat.null_count or any(column.null_count for column in flat.flatten()):
        raise ReleaseFileError("values are missing")
    rows = {field.name: flat.field(number).to_pylist() for number, field in enumerate(flat.type)}
    wanted = [(place, cell) for place in domain.zoned for cell in range(domain.axes[place].cells)]
    if list(zip(rows["axis"], rows["cell"], strict=True)) != wanted:
        raise ReleaseFileError("zones are missing")
    found, start = {}, 0
    for place in domain.zoned:
        axis = domain.axes[place]
        end = start + axis.cells
        texts = rows["attributes"][start:end]
        found[axis.name] = Outlines(tuple(rows["shape"][start:end]), _read_attributes(texts))
        for shape in rows["shape"][start:end]:
            _check_shape(shape)
        start = end
    return Domain.from_dict(domain.to_dict(), found)


def content_of_zones(domain: Domain) -> Iterator[bytes]:
    """Everything in the layers, for a digest."""
    for place in domain.zoned:
        outlines = _outlines(domain.axes[place])
        for shape, text in zip(outlines.shapes, _attribute_texts(outlines), strict=True):
            yield len(shape).to_bytes(8, "little") + shape + text.encode() + b"\0"


def _outlines(axis: Axis) -> Outlines:
    assert axis.names is not None
    assert axis.names.outlines is not None
    return axis.names.outlines


def _attribute_texts(outlines: Outlines) -> list[str]:
    names = [name for name, _ in outlines.attributes]
    rows = zip(*(values for _, values in outlines.attributes), strict=True)
    texts = [json.dumps(dict(zip(names, row, strict=True))) for row in rows]
    return texts or ["{}"] * len(outlines.shapes)


def _read_attributes(texts: list[str]) -> tuple[tuple[str, tuple[Any, ...]], ...]:
    """Columns from rows, which must all have the same names and plain values."""
    rows = [_read_plain(text) for text in texts]
    names = list(rows[0]) if rows else []
    if any(list(row) != names for row in rows):
        raise ReleaseFileError("its zones have attributes that differ")
    return tuple((name, tuple(row[name] for row in rows)) for name in names)


def _read_plain(text: str) -> dict[str, Any]:
    if len(text) > LONGEST_ATTRIBUTES:
        raise ReleaseFileError("its zones have attributes of more than a megabyte")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    plain = (str, int, float, bool, type(None))
    if not isinstance(found, dict) or not all(isinstance(one, plain) for one in found.values()):
        raise ReleaseFileError("its zones have attributes that cannot be read")
    return found


def _shapes(axis: Axis) -> tuple[bytes, ...]:
    """The outlines of the zones; one without a ring for the rest."""
    return tuple(shape or NOTHING for shape in _outlines(axis).shapes)


def _joined(shapes: tuple[bytes, ...]) -> bytes:
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


def _check_shape(shape: bytes) -> None:
    """Refuse what is not a polygon in two dimensions, or has corners that are no numbers."""
    if shape in (b"", NOTHING):
        return
    try:
        order, kind, _ = START.unpack_from(shape)
        parts = _parts(shape) if kind in (POLYGON, MULTIPOLYGON) else []
        length = sum(map(len, parts)) + (START.size if kind == MULTIPOLYGON else 0)
        sound = all(START.unpack_from(part)[:2] == (1, POLYGON) for part in parts)
        sound &= order == 1 and len(parts) > 0 and length == len(shape)
        sound = sound and all(len(ring) > 3 and np.isfinite(ring).all() for ring in _rings(shape))
    except (struct.error, ValueError):
        sound = False
    if not sound:
        raise ReleaseFileError("its zones have outlines that are not polygons")


@lru_cache(maxsize=8)
def _boxes(axis: Axis) -> FloatArray:
    """W,S,E,N of each zone; NaN for one without an outline."""
    boxes = np.full((axis.cells, 4), np.nan)
    for number, shape in enumerate(_shapes(axis)):
        corners = list(_rings(shape))
        if corners:
            joined = np.concatenate(corners)
            boxes[number] = [*joined.min(axis=0), *joined.max(axis=0)]
    boxes.flags.writeable = False
    return boxes


def _middles(axis: Axis, low: IntArray, high: IntArray) -> FloatArray:
    """The middle of the box around the zones of each range of cells. The rest has none: it is put at the corner of
    the map, where its lines can be told from others."""
    boxes = _boxes(axis)
    corner = np.array([np.nanmin(boxes[:, 0]), np.nanmin(boxes[:, 1])] * 2)
    boxes = np.where(np.isnan(boxes), corner, boxes)
    if np.all(high == low + 1):
        of_rows = boxes[low]
    else:
        of_rows = np.array(
            [
                [*boxes[a:b, :2].min(axis=0), *boxes[a:b, 2:].max(axis=0)]
                for a, b in zip(low.tolist(), high.tolist(), strict=True)
            ]
        )
    return np.asarray((of_rows[:, :2] + of_rows[:, 2:]) / 2)
