"""Answers of the library as bodies of replies."""

from __future__ import annotations

from typing import Any

import numpy as np
import orjson

from htf.frame.domain import FloatArray
from htf.maps.basemap import CREDIT
from htf.maps.browser.base_map import around
from htf.maps.browser.mercator import Bounds
from htf.maps.browser.street_tiles import Archive, overlaps
from htf.query.boxes import count_boxes
from htf.query.columns import COLUMNS, place
from htf.query.outside import outside_note, polygons_note
from htf.query.polygons import count_polygons
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
    label = holding.label if answer[INSIDE] else _notes(holding, np.array([row]), np.zeros(1))
    return orjson.dumps({**dict(zip(COLUMNS, answer, strict=True)), **label})


def counts_as_json(holding: Holding, rows: FloatArray, deadline: Deadline, **more: Any) -> bytes:
    columns = count_rows(holding.release, rows, deadline)
    told = {
        **more,
        **dict(zip(COLUMNS, columns, strict=True)),
        **_notes(holding, rows, columns[INSIDE]),
    }
    return orjson.dumps(told, option=orjson.OPT_SERIALIZE_NUMPY)


def counts_as_arrow(holding: Holding, rows: FloatArray, deadline: Deadline) -> bytes:
    import pyarrow as pa

    columns = count_rows(holding.release, rows, deadline)
    notes = _notes(holding, rows, columns[INSIDE])
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
    return orjson.dumps({"answers": answers, **_label(holding, note)})


def _notes(holding: Holding, rows: FloatArray, inside: FloatArray) -> dict[str, str]:
    """The label of an answer, with a warning about boxes outside the map."""
    is_inside = inside.all()
    return _label(
        holding, None if is_inside else outside_note(holding.release.domain, rows, inside)
    )


def _label(holding: Holding, note: str | None) -> dict[str, str]:
    return holding.label if note is None else {**holding.label, "warning": note}


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
