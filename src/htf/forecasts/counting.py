"""Counts boxes of whole cells, both exactly and by a release.

A summed-area table answers any box with 2**d look-ups, and costs a few passes over the grid. If the grid
is too fine for a table, the index that answers analysts takes over: its time follows the number of
non-empty cells, or of leaves.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from htf.curator.frequency import FrequencyMatrix
from htf.forecasts.workloads import Boxes
from htf.frame.domain import FloatArray, IntArray
from htf.frame.grids import sum_boxes, summed_area_table
from htf.query.index import BoxIndex
from htf.query.kernels import ESTIMATE
from htf.release.release import Release

MOST_TABLE_CELLS = 4096 * 4096
# Filling that many cells of a table takes as long as one leaf or box of the index
CELLS_PER_LEAF = 256


class ExactCounter:
    """The true counts of boxes. Sensitive."""

    def __init__(self, matrix: FrequencyMatrix) -> None:
        cells, counts = matrix.exact_coordinates, matrix.exact_counts
        self._table: IntArray | None = None
        self._index: BoxIndex | None = None
        if matrix.domain.size <= MOST_TABLE_CELLS:
            dense = np.zeros(matrix.domain.shape, dtype=np.int64)
            dense[tuple(cells)] = counts
            self._table = summed_area_table(dense)
        elif len(counts):
            low = cells.T.astype(np.int64)
            # Sums of counts up to 2**53 are exact in floats.
            self._index = BoxIndex(low, low + 1, counts.astype(np.float64), np.zeros(len(counts)))

    def count(self, boxes: Boxes) -> IntArray:
        if self._table is not None:
            return sum_boxes(self._table, boxes.low, boxes.high)
        if self._index is None:
            return np.zeros(len(boxes), dtype=np.int64)
        low, high = boxes.low.astype(np.float64), boxes.high.astype(np.float64)
        return np.rint(self._index.measure(low, high)[:, ESTIMATE]).astype(np.int64)


def answer_boxes(release: Release, boxes: Boxes) -> FloatArray:
    """The answers of the release, as by `Release.count`, for boxes of whole cells and without intervals."""
    if release.domain.size <= CELLS_PER_LEAF * (len(release.derived.parts.low) + len(boxes)):
        table = summed_area_table(spread_estimates(release))
        return sum_boxes(table, boxes.low, boxes.high)
    low, high = boxes.low.astype(np.float64), boxes.high.astype(np.float64)
    return release.derived.index.measure(low, high)[:, ESTIMATE]


def spread_estimates(release: Release) -> FloatArray:
    """The estimate of each cell, the records of a part being spread evenly over it.

    Parts are painted by their corners: a signed density at each, and running sums along every axis.
    """
    low, high = release.derived.parts.low, release.derived.parts.high
    density = release.derived.parts.estimates / np.prod(high - low, axis=1, dtype=np.float64)
    shape = tuple(size + 1 for size in release.domain.shape)
    marks = np.zeros(int(np.prod(shape)))
    for corner in product((0, 1), repeat=low.shape[1]):
        places = np.where(np.array(corner, dtype=bool), high, low)
        sign = 1.0 if sum(corner) % 2 == 0 else -1.0
        keys = np.ravel_multi_index(tuple(places.T), shape)
        marks += np.bincount(keys, weights=sign * density, minlength=len(marks))
    cells = marks.reshape(shape)
    for axis in range(cells.ndim):
        np.cumsum(cells, axis=axis, out=cells)
    return cells[tuple(slice(0, -1) for _ in shape)]
