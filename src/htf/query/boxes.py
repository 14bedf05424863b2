"""Counts of boxes in map coordinates, with error bars.

A box counts each leaf by the share of it that it covers, as if the points of a leaf were spread
evenly. `partial` tells how much of an answer rests on leaves that the box covers in part, and so on
that assumption.

Where every leaf has noise of its own, the interval is about that noise only. Where the estimates come
of all counts of a tree, it is that of `htf.query.tree_noise`: about the answer of plain least
squares, with an estimate of what uneven points add. That answer has no bias, while the estimates may
have been cut at zero or shrunk; so the interval need not have `count` in its middle.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from htf.domain import Axis, Domain, FloatArray
from htf.errors import InputError
from htf.query.index import BoxIndex, Measures
from htf.query.intervals import half_widths
from htf.query.where import Where, full_rows

if TYPE_CHECKING:
    from htf.query.tree_noise import TreeMeasures, TreeNoise

BLOCK = 2**16  # boxes worked on at once: memory beyond the answers does not grow with their number
SNAP = 1e-9  # cells
SNAP_ROUNDINGS = 32 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """One entry for each box, in read-only arrays.

    `low` and `high` bound the 95 % interval, and `std_error` is the standard deviation of the errors
    that it speaks of. `partial` is the share of the answer, by absolute parts, that comes from
    leaves covered in part; 0 where there is nothing.
    """

    count: FloatArray
    std_error: FloatArray
    low: FloatArray
    high: FloatArray
    partial: FloatArray

    def __len__(self) -> int:
        return len(self.count)

    def to_columns(self) -> dict[str, FloatArray]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def to_dicts(self) -> list[dict[str, float]]:
        columns = self.to_columns()
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        return [dict(zip(columns, row, strict=True)) for row in rows]


def count_boxes(
    domain: Domain,
    index: BoxIndex,
    boxes: ArrayLike | None,
    tree_noise: TreeNoise | None = None,
    leaf_index: BoxIndex | None = None,
    where: Where | None = None,
) -> Answers:
    """Count one box of 2 d numbers, or many as rows: all low edges in the order of the axes, then
    all high edges. For a map that is west, south, east, north; which on a map with more axes is
    enough, the others being those of `where`, or whole (htf.query.where).

    What lies outside of the map counts nothing: a release says nothing about it. A box of no width
    counts 0. Edges within a billionth of a cell, or within rounding error, of an edge of the grid
    are taken as that edge. Error bars are those of `tree_noise`, if it is given; they count leaves
    that are covered in part by area. Where `index` divides leaves into finer parts, `leaf_index` has
    them whole, and the bars are moved by the difference that makes.
    """
    if index.dimensions != domain.dimensions:
        raise InputError(
            f"the domain has {domain.dimensions} axes, but the leaves have {index.dimensions}"
        )
    rows = full_rows(domain, boxes, where)
    table = np.empty((len(fields(Answers)), len(rows)))
    for start in range(0, len(rows), BLOCK):
        block = slice(start, start + BLOCK)
        table[:, block] = _count_block(domain, index, rows[block], tree_noise, leaf_index)
    table.flags.writeable = False
    return Answers(*table)


def to_snapped_cells(axis: Axis, values: FloatArray) -> FloatArray:
    """Map coordinates to cell coordinates, clipped to the axis, with edges of cells made exact."""
    clipped = np.clip(values, axis.low, axis.high)  # first, so that nothing can overflow
    return np.clip(snap_to_cells(axis, clipped), 0, axis.cells)


def snap_to_cells(axis: Axis, values: FloatArray) -> FloatArray:
    """Map coordinates to cell coordinates, with edges of cells made exact.

    An edge in map coordinates is itself rounded, by up to an ulp of the larger bound, and the way
    back adds a few roundings that grow with the number of cells. 32 epsilons cover both, and also
    coordinates that were written with 15 digits. On an ordinary axis that is far below a billionth
    of a cell, which is the least that is snapped.
    """
    cells = axis.to_cells(values)
    farthest = max(abs(axis.low), abs(axis.high)) * axis.cells_per_unit
    tolerance = max(SNAP, SNAP_ROUNDINGS * (axis.cells + farthest))
    edges = np.rint(cells)
    return np.where(np.abs(cells - edges) <= tolerance, edges, cells)


def _count_block(
    domain: Domain,
    index: BoxIndex,
    rows: FloatArray,
    tree_noise: TreeNoise | None,
    leaf_index: BoxIndex | None,
) -> list[FloatArray]:
    cells = np.column_stack(
        [
            to_snapped_cells(axis, column)
            for axis, column in zip(domain.axes * 2, rows.T, strict=True)
        ]
    )
    low, high = cells[:, : domain.dimensions], cells[:, domain.dimensions :]
    raw = None if tree_noise is None else tree_noise.measure(low, high)
    of_leaves = None if leaf_index is None else leaf_index.measure(low, high)
    return with_bars(index.measure(low, high), raw, of_leaves)


def with_bars(
    measures: Measures, raw: TreeMeasures | None, of_leaves: Measures | None
) -> list[FloatArray]:
    """The columns of `Answers`, whatever the shapes are that were measured.

    `raw` is what `tree_noise` measured of them, and `of_leaves` what whole leaves would answer,
    where `measures` are of finer parts.
    """
    partial = np.zeros(len(measures.estimate))
    np.divide(
        measures.partial_absolute, measures.absolute, out=partial, where=measures.absolute > 0
    )
    if raw is None:
        middle, variance = measures.estimate, measures.variance
        half = half_widths(
            measures.variance,
            measures.fourth_cumulant,
            measures.noisy_leaves,
            measures.smallest_weight,
            measures.largest_weight,
        )
    else:
        middle, half = raw.estimate, raw.half_width
        if of_leaves is not None:
            middle = middle + measures.estimate - of_leaves.estimate
        variance = raw.noise_variance + raw.spread_variance
    return [measures.estimate, np.sqrt(variance), middle - half, middle + half, partial]
