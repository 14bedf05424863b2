"""Answers of the library as bodies of replies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from htf.frame.domain import Domain, FloatArray
from htf.maps.basemap import CREDIT
from htf.maps.browser.base_map import around
from htf.maps.browser.mercator import Bounds
from htf.maps.browser.street_tiles import Archive, overlaps
from htf.query.boxes import count_boxes
from htf.query.columns import COLUMNS, place
from htf.query.outside import outside_note, polygons_note
from htf.query.polygons import count_polygons

if TYPE_CHECKING:
    from htf.query.shapes import Shapes
    from htf.query.where import Where
    from htf.release.release import Release
    from htf.serve.holdings import Holding
    from htf.serve.workers import Deadline

INSIDE = place("inside")
EDGES = ("west", "south", "east", "north")
SLICE = 8192  # boxes counted between two looks at the clock
POLYGON_SLICE = 256


def count_rows(release: Release, rows: FloatArray, deadline: Deadline) -> FloatArray:
    """The columns of the answers. Rows were checked before, so that errors name the row that was sent."""
    columns = np.empty((len(COLUMNS), len(rows)))
    domain, index = release.domain, release.derived.answering_index
    for start in range(0, len(rows), SLICE):
        deadline.check()
        part = slice(start, start + SLICE)
        columns[:, part] = [*count_boxes(domain, index, rows[part]).to_columns().values()]
    return columns


def one_count(holding: Holding, row: list[float], answer: list[float]) -> bytes:
    told: dict[str, Any] = {**dict(zip(COLUMNS, answer, strict=True)), **holding.label}
    if not answer[INSIDE]:
        told |= _warning(holding.release.domain, np.array([row]), np.zeros(1))
    return orjson.dumps(told)


def counts_as_json(holding: Holding, rows: FloatArray, deadline: Deadline, **more: Any) -> bytes:
    columns = count_rows(holding.release, rows, deadline)
    told = {**more, **dict(zip(COLUMNS, columns, strict=True)), **_notes(holding, rows, columns)}
    return orjson.dumps(told, option=orjson.OPT_SERIALIZE_NUMPY)


def counts_as_arrow(holding: Holding, rows: FloatArray, deadline: Deadline) -> bytes:
    import pyarrow as pa

    columns = count_rows(holding.release, rows, deadline)
    notes = _notes(holding, rows, columns)
    schema = pa.schema([(name, pa.float64()) for name in COLUMNS], metadata=notes)
    batch = pa.record_batch([pa.array(column) for column in columns], schema=schema)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def polygon_counts(holding: Holding, shapes: Shapes, where: Where, deadline: Deadline) -> bytes:
    domain, index = holding.release.domain, holding.release.derived.answering_index
    answers: list[dict[str, float]] = []
    for start in range(0, max(len(shapes), 1), POLYGON_SLICE):
        deadline.check()
        part = shapes[start : start + POLYGON_SLICE]
        answers += count_polygons(domain, index, part, where=where).to_dicts()
    note = polygons_note(domain, np.array([answer["inside"] for answer in answers]))
    return orjson.dumps({"answers": answers, **_as_warning(note), **holding.label})


def _notes(holding: Holding, rows: FloatArray, columns: FloatArray) -> dict[str, str]:
    return {**holding.label, **_warning(holding.release.domain, rows, columns[INSIDE])}


def _warning(domain: Domain, rows: FloatArray, inside: FloatArray) -> dict[str, str]:
    """The warning in an answer about boxes outside the map; empty if all boxes touch it."""
    return {} if inside.all() else _as_warning(outside_note(domain, rows, inside))


def _as_warning(note: str | None) -> dict[str, str]:
    return {} if note is None else {"warning": note}


def different_people(holding: Holding) -> bytes:
    found = holding.release.count_distinct()
    edges = found.asked.edges()
    places: dict[str, Any] = {name: edges[name] for name in EDGES if name in edges}
    if found.asked.columns:
        places = {"labels": found.asked.columns}
    told = {**places, **found.to_columns(), "quantity": found.quantity, **holding.mark}
    return orjson.dumps(told, option=orjson.OPT_SERIALIZE_NUMPY)


def base_map(bounds: Bounds | None, streets: Archive | None) -> bytes:
    """Empty for a release that lies nowhere on earth, and on a server that was asked for none."""
    if bounds is None:
        return orjson.dumps({"parts": [], "zoom": 0, "names": [], "credit": None, "tiles": None})
    told = {**around(bounds), "credit": CREDIT, "tiles": None}
    if streets is not None and overlaps(bounds, streets.bounds):
        told |= {"credit": f"{CREDIT}, {streets.credit}", "tiles": streets.told()}
    return orjson.dumps(told)
