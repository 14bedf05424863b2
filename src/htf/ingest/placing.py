"""Finds where each record is along an axis of names or of zones. Sensitive.

A record is at a name if its text equals that name, to the last letter, and in a zone by an exact test of its point against
outlines. Each record is placed alone, and by the same function on every engine. So a record has no influence on another,
and places are the same on all engines. Coordinates that are missing, NaN or infinite are in no zone, and not elsewhere
either. Short lists of names are compared in the engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from htf.frame.axis import LABEL, NUMBER, Axis
from htf.ingest.expressions import place_in_list
from htf.ingest.geometry import column_function

MOST_COMPARED = 50  # by the engine: it compares with one name after the other
TYPES = {"label": "string", "x": "float64", "y": "float64"}


def needs_function(axis: Axis) -> bool:
    """Whether places are found by our function, and not by the engine."""
    return axis.inputs != NUMBER and (axis.inputs != LABEL or axis.cells > MOST_COMPARED)


def place_of(values: Sequence[Any], axis: Axis, columns_as: str, collates: bool) -> Any:
    """Where records are along an axis, from the values of its columns; missing or NaN if nowhere."""
    if needs_function(axis):
        return _function(axis, columns_as)(*values)
    if axis.inputs == NUMBER:
        return values[0]
    names = axis.levels[0].labels
    return place_in_list(values[0], names, axis.has_rest, collates).cast("float64")


@lru_cache(maxsize=16)
def _function(axis: Axis, columns_as: str) -> Any:
    axis.place(*(np.empty(0) for _ in axis.inputs))  # an error is raised here, not in the engine
    kind, name = TYPES[axis.inputs[0]], f"htf_{axis.plural}_{axis.key}"
    return column_function(axis.place, name, kind, len(axis.inputs), columns_as)
