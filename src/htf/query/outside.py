"""Notes about boxes and polygons that lie outside the map.

A release knows nothing about what lies outside, so such a box counts 0, from 0 to 0. That looks like
a certain answer, but it usually comes from a mistake, such as latitude before longitude. The command
line prints the note on standard error, the server puts it in the answer, and `Release.count` warns.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from htf.frame.axis import show
from htf.frame.domain import Domain, FloatArray
from htf.query.boxes import share_inside

MOST_NAMED = 5


def polygons_note(domain: Domain, inside: FloatArray) -> str | None:
    """A note if none of the polygons lies on the map. (Some usually lie elsewhere: layers of
    districts go on where the map ends.)"""
    if len(inside) == 0 or inside.any():
        return None
    crs = f" ({domain.crs})" if domain.crs else ""
    return f"No area of the polygons lies on the map{crs}, which goes {describe_bounds(domain)}."


def outside_note(domain: Domain, rows: FloatArray, inside: FloatArray) -> str | None:
    """A note on the boxes that lie wholly outside the map; None if there are none.

    `rows` are full rows, and `inside` is that column of their answers."""
    low, high = np.array([(axis.low, axis.high) for axis in domain.axes]).T
    size = domain.dimensions  # other boxes with nothing inside have no area
    beyond = np.any((rows[:, size:] <= low) | (rows[:, :size] >= high), axis=1)
    outside = np.flatnonzero((inside == 0) & beyond)
    if len(outside) == 0:
        return None
    bounds, is_one = describe_bounds(domain), len(outside) == 1
    if len(rows) == 1:
        edges = ", ".join(show(edge) for edge in rows[0])
        problem = f"The box {edges} lies outside of the map, which goes {bounds}"
    else:
        problem = (
            f"{len(outside):,} of {len(rows):,} boxes {'lies' if is_one else 'lie'} outside of the map, which goes "
            f"{bounds}: {_named_rows(outside)}"
        )
    consequence = f"The release knows nothing about {'it' if is_one else 'them'}."
    return f"{problem}. {consequence}{_swap_hint(domain, rows[outside])}"


def describe_bounds(domain: Domain) -> str:
    """The bounds of the map in words, from … to … along each axis."""
    ranges = [f"from {show(a.low)} to {show(a.high)} along {a.name}" for a in domain.axes]
    return " and ".join([", ".join(ranges[:-1]), ranges[-1]]) if len(ranges) > 1 else ranges[0]


def _named_rows(numbers_of_rows: NDArray[np.int64]) -> str:
    numbers = ", ".join(str(row) for row in numbers_of_rows[:MOST_NAMED])
    more = ", …" if len(numbers_of_rows) > MOST_NAMED else ""
    return f"{'rows' if len(numbers_of_rows) > 1 else 'row'} {numbers}{more} (counted from 0)"


def _swap_hint(domain: Domain, rows: FloatArray) -> str:
    """A hint if boxes would lie on the map with the edges of its first two axes swapped; else ""."""
    size = domain.dimensions
    if size < 2:
        return ""
    swapped = rows.copy()
    swapped[:, [0, 1, size, size + 1]] = rows[:, [1, 0, size + 1, size]]
    number = int(np.count_nonzero(share_inside(domain.axes, swapped)))
    if number == 0:
        return ""
    who = "it" if len(rows) == 1 else "they" if number == len(rows) else f"{number:,} of them"
    x, y = domain.names[:2]
    return (
        f" With {x} and {y} swapped {who} would lie on the map: a box is west, south, east, north."
    )
