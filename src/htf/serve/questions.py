"""Reads queries from the URL or body of a request, and refuses them with the command line's messages.

Anyone can send a body, so its size is checked before any work, and cheap checks come before costly ones.
"""

from __future__ import annotations

import math
import struct
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from htf.base.numerals import LONGEST
from htf.errors import InputError
from htf.frame.crs import CRS84
from htf.frame.domain import Domain, FloatArray
from htf.query.shapes import PIECES_OF_MAP, PIECES_OF_POLYGON, Shapes, need_shapely, read_shapes
from htf.query.tables import edge_places, rows_of_table
from htf.query.texts import read_boxes, read_where
from htf.query.where import Where, full_rows
from htf.serve.declared import Parameter, read_query
from htf.serve.holdings import bounds_in_degrees
from htf.serve.limits import Limits, Refusal
from htf.serve.workers import Row
from htf.serve.zone_map import refuse_boxes

PLAIN = b"0123456789.,-"
MOST_PIECES = 1_000_000  # of long edges, which are divided before they are transformed
MOST_UNREAD = 10_000  # bytes of GeoJSON that only htf.query.shapes can read
GEOMETRY_COLLECTION = 7  # as shapely numbers types of geometry
RECORD_BATCH = 3  # in Arrow's Message.fbs
HEADER_TYPE, HEADER, COMPRESSION = 1, 2, 3  # fields of Message and RecordBatch


def read_row(domain: Domain, query: bytes) -> Row:
    """The box in a URL as a full row: all low edges, then all high ones."""
    plain = _read_plain_row(domain, query)
    if plain is not None:
        return plain
    asked = read_query(query, (BOX, WHERE))
    if asked["box"] is not None:
        refuse_boxes(domain)
    row: Row = full_rows(domain, asked["box"], asked["where"])[0].tolist()
    return row


def _read_box(texts: list[str], name: str) -> list[float] | None:
    if len(texts) > 1:
        raise Refusal(400, "this counts one box: POST many to …/counts")
    return read_boxes(texts, name)[0] if texts else None


BOX = Parameter("box", "W,S,E,N in the coordinates of the map.", _read_box)
WHERE = Parameter(
    "where",
    "A range of a further axis, such as hour=7:10, or a name on one, such as offence=Assault or zone=District 1; may be "
    "repeated.",
    read_where,
    [str],
    ["hour=7:10"],
)
WHERE_OF_ARROW = replace(WHERE, words="Of an Arrow stream; JSON has its own.")


def _read_plain_row(domain: Domain, query: bytes) -> Row | None:
    """The same for a valid `box=W,S,E,N` and nothing else, in a tenth of the time; otherwise None."""
    if not query.startswith(b"box=") or len(query) > LONGEST or not domain.has_map:
        return None
    if query[4:].translate(None, PLAIN):  # `float` takes more than people write: 1_0, for one
        return None
    try:
        west, south, east, north = map(float, query[4:].split(b","))
    except ValueError:
        return None
    if not (west <= east and south <= north and math.isfinite(east - west + north - south)):
        return None
    further = domain.axes[2:]
    if not further:
        return [west, south, east, north]
    return [west, south, *(a.low for a in further), east, north, *(a.high for a in further)]


def read_json_boxes(body: bytes, domain: Domain, limits: Limits) -> FloatArray:
    """Full rows from {"boxes": [[W,S,E,N], …], "where": {"hour": [7, 10], "offence": "Assault"}}."""
    refuse_boxes(domain)
    asked = _read_json(body)
    unknown = sorted(set(asked) - {"boxes", "where"})
    if unknown or not isinstance(asked.get("boxes"), list):
        raise InputError(
            'the body must be {"boxes": [[W,S,E,N], …], "where": {"hour": [7, 10]}}, where left out or '
            f"not, got the members {', '.join(sorted(asked)) or 'none'}"
        )
    where = asked.get("where") or {}
    if not isinstance(where, dict):
        raise InputError('where must be an object of ranges, such as {"hour": [7, 10]}')
    _check_number(len(asked["boxes"]), limits.boxes, "boxes")
    ranges = [asked_for for asked_for in where.values() if not isinstance(asked_for, str)]
    for values in (asked["boxes"], *ranges):  # a name on an axis is a text
        _check_no_texts(values)
    return full_rows(domain, asked["boxes"], where)


def _check_no_texts(values: Any) -> None:
    """Refuse texts: NumPy and `float` would parse them in their own way. They refuse other things."""
    rows = values if isinstance(values, list) else [values]
    lists = [row if isinstance(row, list) else [row] for row in rows]
    if str in set(map(type, chain.from_iterable(lists))):
        raise InputError(
            'edges of boxes and ranges must be numbers, got text: write 1.5, not "1.5"'
        )


def read_arrow_boxes(body: bytes, domain: Domain, where: Where, limits: Limits) -> FloatArray:
    """Full rows from an Arrow stream with the columns of a file of boxes."""
    refuse_boxes(domain)
    try:
        table = _read_arrow(body, domain, limits)
    except Refusal:
        raise
    except Exception as error:  # whatever pyarrow makes of bytes from outside
        told = f"{type(error).__name__}: {error}"
        raise Refusal(400, f"the body is not an Arrow stream that can be read: {told}") from None
    return rows_of_table(table, domain, where, "the stream", "where")


def _read_arrow(body: bytes, domain: Domain, limits: Limits) -> pa.Table:
    """The columns that are edges, as numbers. Compressed batches are refused: a small one may unpack
    to any size."""
    messages = pa.ipc.MessageReader.open_stream(pa.BufferReader(body))
    schema = pa.ipc.read_schema(messages.read_next_message())
    names = [name for name in edge_places(domain) if name in schema.names]
    batches, rows = [], 0
    for message in messages:
        if _is_compressed(message.metadata):
            raise Refusal(400, "the Arrow stream is compressed: send it as it is")
        batch = pa.ipc.read_record_batch(message, schema)
        batch.validate(full=True)
        rows += batch.num_rows
        _check_number(rows, limits.boxes, "boxes")
        batches.append(batch.select(names))
    kept = pa.schema([schema.field(name) for name in names])
    plain = pa.schema([(name, pa.float64()) for name in names])
    return pa.Table.from_batches(batches, kept).cast(plain)


def _is_compressed(metadata: Any) -> bool:
    """Whether the flatbuffer of a message is that of a record batch with compressed buffers."""
    raw = memoryview(metadata).cast("B")
    message = struct.unpack_from("<I", raw, 0)[0]
    kind = _field(raw, message, HEADER_TYPE)
    if kind is None or raw[kind] != RECORD_BATCH:
        return False
    place = _field(raw, message, HEADER)
    if place is None:
        return False
    batch = place + struct.unpack_from("<I", raw, place)[0]
    return _field(raw, batch, COMPRESSION) is not None


def _field(raw: memoryview, table: int, number: int) -> int | None:
    """The position of a field of a flatbuffer's table; None if it has its default."""
    vtable = table - struct.unpack_from("<i", raw, table)[0]
    size = struct.unpack_from("<H", raw, vtable)[0]
    if 4 + 2 * number >= size:
        return None
    offset = struct.unpack_from("<H", raw, vtable + 4 + 2 * number)[0]
    return table + int(offset) if offset else None


def read_polygons(body: bytes, domain: Domain, limits: Limits) -> Shapes:
    """Valid polygons in map coordinates, from GeoJSON in degrees."""
    refuse_boxes(domain)
    shapely = need_shapely()
    if domain.crs is None:
        raise InputError(
            "the map has no reference system, so polygons in degrees cannot be placed on it: query boxes"
        )
    asked = _read_json(body)
    features = asked.get("features")
    _check_number(len(features) if isinstance(features, list) else 1, limits.polygons, "polygons")
    geometry = shapely.from_geojson(body, on_invalid="ignore")  # as they are: not yet repaired
    if geometry is not None:
        is_collection = shapely.get_type_id(geometry) == GEOMETRY_COLLECTION
        shapes = shapely.get_parts(geometry) if is_collection else np.array([geometry])
        _check_effort(shapely, shapes, domain, limits)
    elif len(body) > MOST_UNREAD:
        raise InputError(
            "the body is not GeoJSON of polygons that can be read: rings must be closed, and features "
            "without a geometry left out"
        )
    return read_shapes(asked, domain)


def _check_effort(shapely: Any, shapes: Shapes, domain: Domain, limits: Limits) -> None:
    """Refuse polygons that would take time or memory out of proportion to their size."""
    corners = shapely.get_num_coordinates(shapes)
    _check_number(int(corners.sum()), limits.corners, "corners")
    crossing = corners[~shapely.is_valid(shapes)].astype(np.float64)
    if np.sum(crossing**3) > limits.crossing_corners**3:
        raise InputError(
            f"{len(crossing)} polygons cross themselves and have up to {crossing.max():.0f} corners: here "
            f"only one of {limits.crossing_corners} is repaired, or many of a few; repair them before "
            "(shapely.make_valid)"
        )
    bounds = bounds_in_degrees(domain)
    if bounds is None or domain.crs == CRS84:
        return
    edges = np.nan_to_num(shapely.bounds(shapes))
    extent = np.max(edges[:, 2:] - edges[:, :2], axis=1, initial=0.0)
    width = max(bounds[2] - bounds[0], bounds[3] - bounds[1])
    pieces = shapely.length(shapes) / np.maximum(width / PIECES_OF_MAP, extent / PIECES_OF_POLYGON)
    if pieces.sum() > MOST_PIECES:
        raise InputError(
            f"the edges of the polygons are too long to be transformed to {domain.crs}: cut off what is far "
            "from the map, or query fewer at once"
        )


def _read_json(body: bytes) -> dict[str, Any]:
    try:
        asked = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Refusal(400, f"the body is not JSON: {error}") from None
    if not isinstance(asked, dict):
        raise Refusal(400, "the body must be a JSON object")
    return asked


def _check_number(number: int, most: int, what: str) -> None:
    if number > most:
        raise Refusal(
            413, f"at most {most:,} {what} at once, got {number:,}: send several requests"
        )
