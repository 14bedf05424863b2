"""What is said of boxes and polygons that lie outside of the map.

A release knows nothing about what lies outside, so such a box counts 0, from 0 to 0. That looks like
any sure answer, while it mostly comes from a mistake, such as latitude before longitude. The command
line says it on standard error, the server in the answer, and `Release.count` as a Python warning.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import ArrayLike, NDArray

from htf.frame.domain import Domain, FloatArray
from htf.query.boxes import share_inside
from htf.query.where import Where, full_rows, show

MOST_NAMED = 5
OUR_CALLER = 3  # levels up the stack: the warning names the line that asked the release


def warn_of_boxes(
    domain: Domain, boxes: ArrayLike | None, where: Where | None, inside: FloatArray
) -> None:
    """A Python warning where `outside_note` has one."""
    if inside.all():
        return
    note = outside_note(domain, full_rows(domain, boxes, where), inside)
    if note is not None:
        warnings.warn(note, UserWarning, OUR_CALLER)


def warn_of_polygons(domain: Domain, inside: FloatArray) -> None:
    """A Python warning where `polygons_note` has one."""
    note = polygons_note(domain, inside)
    if note is not None:
        warnings.warn(note, UserWarning, OUR_CALLER)


def polygons_note(domain: Domain, inside: FloatArray) -> str | None:
    """A note where none of the polygons lies on the map. (That some lie elsewhere is usual: layers of
    districts go on where the map ends.)"""
    if len(inside) == 0 or inside.any():
        return None
    crs = f" ({domain.crs})" if domain.crs else ""
    return f"No area of the polygons lies on the map{crs}, which goes {describe_bounds(domain)}."


def outside_note(domain: Domain, rows: FloatArray, inside: FloatArray) -> str | None:
    """A note on boxes, given as full rows, of which nothing lies on the map; None where there are none.

    `inside` is that of their answers."""
    found = np.flatnonzero((inside == 0) & _lie_outside(domain, rows))
    if len(found) == 0:
        return None
    bounds, is_one = describe_bounds(domain), len(found) == 1
    if len(rows) == 1:
        edges = ", ".join(show(edge) for edge in rows[0])
        told = f"The box {edges} lies outside of the map, which goes {bounds}"
    else:
        told = (
            f"{len(found):,} of {len(rows):,} boxes {'lies' if is_one else 'lie'} outside of the map, which goes "
            f"{bounds}: {_named_rows(found)}"
        )
    known = f"The release knows nothing about {'it' if is_one else 'them'}."
    return f"{told}. {known}{_told_swapped(domain, rows[found])}"


def describe_bounds(domain: Domain) -> str:
    """The bounds of the map in words: from … to … along each axis."""
    ranges = [f"from {show(a.low)} to {show(a.high)} along {a.name}" for a in domain.axes]
    return " and ".join([", ".join(ranges[:-1]), ranges[-1]]) if len(ranges) > 1 else ranges[0]


def _lie_outside(domain: Domain, rows: FloatArray) -> NDArray[np.bool_]:
    """Boxes that are beyond the map along some axis. (Others that have nothing inside have no area.)"""
    low, high = np.array([(axis.low, axis.high) for axis in domain.axes]).T
    size = domain.dimensions
    beyond: NDArray[np.bool_] = np.any((rows[:, size:] <= low) | (rows[:, :size] >= high), axis=1)
    return beyond


def _named_rows(found: NDArray[np.int64]) -> str:
    numbers = ", ".join(str(row) for row in found[:MOST_NAMED])
    more = ", …" if len(found) > MOST_NAMED else ""
    return f"{'rows' if len(found) > 1 else 'row'} {numbers}{more} (counted from 0)"


def _told_swapped(domain: Domain, rows: FloatArray) -> str:
    """Whether boxes would lie on the map with the edges of its first two axes exchanged."""
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
