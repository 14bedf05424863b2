"""Counts of boxes in map coordinates, with error bars.

A box counts each leaf by the share of it that it covers, as if the points of a leaf were spread
evenly. `partial` tells how much of an answer rests on leaves that the box covers in part, and so on
that assumption.

Where every leaf has noise of its own, the interval is about that noise only. Where the estimates come
of all counts of a tree, it is that of `htf.query.tree_index`: about the answer of plain least
squares, with an estimate of what uneven points add. That answer has no bias, while the estimates may
have been cut at zero or shrunk; so the interval need not have `count` in its middle.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from htf.errors import InputError
from htf.frame.domain import Axis, Domain, FloatArray
from htf.query.columns import COLUMNS, Answers, place
from htf.query.where import Where, full_rows

if TYPE_CHECKING:
    from htf.query.index import BoxIndex
    from htf.query.tree_index import TreeIndex

BLOCK = 2**16  # boxes worked on at once: memory beyond the answers does not grow with their number
SNAP = 1e-9  # cells
SNAP_ROUNDINGS = 32 * float(np.finfo(np.float64).eps)


def count_boxes(
    domain: Domain,
    index: BoxIndex | TreeIndex,
    boxes: ArrayLike | None,
    where: Where | None = None,
) -> Answers:
    """Count one box of 2 d numbers, or many as rows: all low edges in the order of the axes, then
    all high edges. For a map that is west, south, east, north; which on a map with more axes is
    enough, the others being those of `where`, or whole (htf.query.where).

    What lies outside of the map counts nothing: a release says nothing about it. A box of no width
    counts 0. Edges within a billionth of a cell, or within rounding error, of an edge of the grid
    are taken as that edge.
    """
    if index.dimensions != domain.dimensions:
        raise InputError(
            f"the domain has {domain.dimensions} axes, but the leaves have {index.dimensions}"
        )
    rows, axes = full_rows(domain, boxes, where), axis_table(domain.axes)
    table = np.empty((len(COLUMNS), len(rows)))
    for start in range(0, len(rows), BLOCK):
        block = slice(start, start + BLOCK)
        table[:, block] = index.answer(rows[block], axes).T
    table.flags.writeable = False
    return Answers(*table)


def share_inside(axes: Sequence[Axis], rows: FloatArray) -> FloatArray:
    """`Answers.inside` of full rows: all low edges in the order of the axes, then all high ones."""
    from htf.query.kernels import fill_inside

    found = np.empty((len(rows), len(COLUMNS)))
    fill_inside(np.ascontiguousarray(rows, dtype=np.float64), axis_table(axes), found)
    return found[:, place("inside")]


class RowCounter:
    """Counts boxes that are given as full rows and known to be sound, with little around it."""

    __slots__ = ("_axes", "_index")

    def __init__(self, domain: Domain, index: BoxIndex | TreeIndex) -> None:
        self._axes, self._index = axis_table(domain.axes), index

    def count(self, rows: list[list[float]]) -> list[list[float]]:
        """The columns of an answer for each, in their order (htf.query.columns)."""
        found: list[list[float]] = self._index.answer(np.array(rows), self._axes).tolist()
        return found


def axis_table(axes: Sequence[Axis]) -> FloatArray:
    """What the kernels need of the axes of a map.

    An edge in map coordinates is itself rounded, by up to an ulp of the larger bound, and the way
    back adds a few roundings that grow with the number of cells. 32 epsilons cover both, and also
    coordinates that were written with 15 digits. On an ordinary axis that is far below a billionth
    of a cell, which is the least that is snapped.
    """
    rows = []
    for axis in axes:
        farthest = max(abs(axis.low), abs(axis.high)) * axis.cells_per_unit
        tolerance = max(SNAP, SNAP_ROUNDINGS * (axis.cells + farthest))
        rows.append([axis.low, axis.high, axis.cells, axis.cells_per_unit, tolerance])
    return np.array(rows, dtype=np.float64)


def to_snapped_cells(axis: Axis, values: ArrayLike) -> FloatArray:
    """Map coordinates to cell coordinates, clipped to the axis, with edges of cells made exact."""
    from htf.query.kernels import snap_rows

    column = np.array(values, dtype=np.float64)
    return np.asarray(snap_rows(column.reshape(-1, 1), axis_table([axis])).reshape(column.shape))


def snap_to_cells(axis: Axis, values: FloatArray) -> FloatArray:
    """The same without clipping."""
    from htf.query.kernels import snap_column

    return np.asarray(snap_column(np.ascontiguousarray(values), axis_table([axis])))
