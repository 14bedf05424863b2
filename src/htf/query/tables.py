"""Boxes as the columns of a table: the names of the columns, and full rows made from them.

The edges on the map are `west`, `south`, `east` and `north`, those of a further axis `hour_low` and
`hour_high`. Files of boxes, answers and Arrow streams all have these names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from htf.errors import InputError
from htf.frame.domain import Domain, FloatArray
from htf.query.where import Where, full_rows

if TYPE_CHECKING:
    import pyarrow as pa

EDGES = ("west", "south", "east", "north")


def edge_places(domain: Domain) -> dict[str, int]:
    """The names of the edges of a box, and where each stands in a full row."""
    size, on_map = domain.dimensions, 2 if domain.has_map else 0
    plane = [*range(on_map), *range(size, size + on_map)]
    places = dict(zip(EDGES if on_map else (), plane, strict=True))
    for number, name in enumerate(domain.names[on_map:], start=on_map):
        places[f"{name}_low"], places[f"{name}_high"] = number, size + number
    return places


def edge_columns(domain: Domain, rows: FloatArray) -> dict[str, FloatArray]:
    """The edges of the boxes, under the names that they have in a file of boxes. Edges between names say nothing."""
    size = domain.dimensions
    return {
        name: np.ascontiguousarray(rows[:, place])
        for name, place in edge_places(domain).items()
        if not domain.axes[place % size].levels
    }


def rows_of_table(
    table: pa.Table, domain: Domain, where: Where, source: str, option: str = "--where"
) -> FloatArray:
    """Full rows from a table of boxes. Further axes without columns take their range from `where`, or are
    whole. `source` names the table in errors."""
    places = edge_places(domain)
    own_axes = {place % domain.dimensions for n, place in places.items() if n in table.column_names}
    twice = [
        name for number, name in enumerate(domain.names) if number in own_axes and name in where
    ]
    if twice:
        raise InputError(f"{source} has columns of {twice[0]}: leave it out of {option}")
    needed = {n: p for n, p in places.items() if p % domain.dimensions in {0, 1, *own_axes}}
    missing = [name for name in needed if name not in table.column_names]
    if missing:
        raise InputError(
            f"{source} must have the columns {', '.join(needed)}; {', '.join(missing)} is missing"
        )
    rows = np.repeat(full_rows(domain, None, where), len(table), axis=0)
    for name, place in needed.items():
        rows[:, place] = table[name].to_numpy()
    return full_rows(domain, rows)
