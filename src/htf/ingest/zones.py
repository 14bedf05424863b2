"""Finds the zone of each record, by exact tests of its point against outlines. Sensitive.

Each point is tested alone, and by the same compiled loop on every engine. So records go to the same zones on all of
them, and a record has no influence on another. Coordinates that are missing, NaN or infinite are in no zone, and
not elsewhere either.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from htf.errors import InputError
from htf.frame.domain import Axis, FloatArray
from htf.frame.zone_index import Shapes, find_cells, zone_index
from htf.ingest.geometry import column_function

if TYPE_CHECKING:
    from ibis.expr.types import FloatingValue, Value


def zone_of(x: Value, y: Value, axis: Axis, columns_as: str) -> FloatingValue:
    """The cell of a zoned axis that a point is in; missing or NaN if it is in none."""
    assert axis.names is not None
    assert axis.names.outlines is not None
    function = _zone_function(axis.names.outlines.shapes, axis.names.rest is not None, columns_as)
    found: FloatingValue = function(x, y)
    return found


@lru_cache(maxsize=8)
def _zone_function(shapes: Shapes, has_rest: bool, columns_as: str) -> Any:
    if not any(shapes):
        raise InputError(
            "the zones of this map have no outlines: read their layer by htf.read_zones"
        )
    zone_index(shapes)  # so that an error is raised here, and not inside the engine

    def find(x: FloatArray, y: FloatArray) -> FloatArray:
        return find_cells(shapes, has_rest, x, y)

    digest = hashlib.sha256(b"".join(shapes)).hexdigest()[:32]
    name = f"htf_zone_{digest}_{len(shapes)}_{int(has_rest)}"
    return column_function(find, name, "float64", 2, columns_as)
