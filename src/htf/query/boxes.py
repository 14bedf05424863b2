"""Counts of boxes in map coordinates, with intervals.

A box counts each leaf by the share of it that it covers, as if the records of a leaf were spread
evenly. `partial` is the share of an answer that comes from leaves the box covers only in part, and
so rests on that assumption.

If every leaf has its own noise, the interval covers only that noise. If the estimates use every count
in the tree, the interval comes from `htf.query.tree_index`: it lies around the answer of plain least
squares, and includes an estimate of the error from unevenly spread records. That answer is unbiased,
while the estimates may have been cut at zero or shrunk, so `count` need not be in the middle of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from htf.base.compiled import few
from htf.frame.domain import Axis, Domain, FloatArray
from htf.query.answer import Answer
from htf.query.asked import AskedRows
from htf.query.columns import COLUMNS, COUNTS, place
from htf.query.kernels import fill_inside
from htf.query.where import Where, full_rows

if TYPE_CHECKING:
    from htf.query.index import BoxIndex
    from htf.query.tree_index import TreeIndex

BLOCK = 2**16  # boxes worked on at once: memory beyond the answers does not grow with their number
SNAP = 1e-9  # cells
SNAP_ROUNDINGS = 32 * float(np.finfo(np.float64).eps)


def count_boxes(
    domain: Domain, index: BoxIndex | TreeIndex, boxes: ArrayLike | None, where: Where | None = None
) -> Answer:
    """Count one box of 2 d numbers, or many as rows: all low edges in the order of the axes, then
    all high edges. On a plain map these are west, south, east, north. They are also enough on a map
    with more axes: those take their range from `where`, or are whole (htf.query.where).

    Area outside the map counts nothing, because a release says nothing about it. A box without width
    counts 0. Edges within a billionth of a cell, or within rounding error, of a grid line are moved
    onto it.
    """
    return count_rows(AskedRows(domain, full_rows(domain, boxes, where)), index)


def count_rows(asked: AskedRows, index: BoxIndex | TreeIndex) -> Answer:
    """Count rows that are known to be full."""
    domain, rows = asked.domain, asked.rows
    axes, table = axis_table(domain.axes), np.empty((len(COLUMNS), len(rows)))
    for start in range(0, len(rows), BLOCK):
        block = slice(start, start + BLOCK)
        with few(len(rows)):
            table[:, block] = index.answer(rows[block], axes).T
    table.flags.writeable = False
    return Answer(COUNTS, tuple(table), asked=asked)


def share_inside(axes: Sequence[Axis], rows: FloatArray) -> FloatArray:
    """`Answers.inside` for full rows: all low edges in the order of the axes, then all high ones."""
    answers = np.empty((len(rows), len(COLUMNS)))
    fill_inside(np.ascontiguousarray(rows, dtype=np.float64), axis_table(axes), answers)
    return answers[:, place("inside")]


def axis_table(axes: Sequence[Axis]) -> FloatArray:
    """The numbers that the kernels need about the axes of a map.

    An edge in map coordinates is itself rounded, by up to one ulp of the larger bound, and the
    conversion to cells adds a few roundings that grow with the number of cells. 32 machine epsilons
    cover both, and also coordinates written with 15 digits. On an ordinary axis that is far below a
    billionth of a cell, the smallest tolerance used.
    """
    rows = []
    for axis in axes:
        farthest = max(abs(axis.low), abs(axis.high)) * axis.cells_per_unit
        tolerance = max(SNAP, SNAP_ROUNDINGS * (axis.cells + farthest))
        rows.append([axis.low, axis.high, axis.cells, axis.cells_per_unit, tolerance])
    return np.array(rows, dtype=np.float64)


def to_snapped_cells(axis: Axis, values: ArrayLike) -> FloatArray:
    """Map coordinates to cell coordinates, clipped to the axis, with edges of cells made exact."""
    cells = snap_to_cells(axis, np.clip(np.array(values, dtype=np.float64), axis.low, axis.high))
    return np.asarray(np.clip(cells, 0.0, axis.cells))


def snap_to_cells(axis: Axis, values: FloatArray) -> FloatArray:
    """The same without clipping."""
    low, _, _, per_unit, tolerance = axis_table([axis])[0]
    cells = (values - low) * per_unit
    edges = np.rint(cells)
    return np.asarray(np.where(np.abs(cells - edges) <= tolerance, edges, cells))
