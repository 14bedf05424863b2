"""Grids laid over a map: how fine they are, along which lines, and sums over their cells. Public."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htf.frame.domain import Axis, Domain, FloatArray, IntArray

MOST_LEAVES = 2**22  # what a laptop holds; a finer grid is made coarser, and the facts show it
MOST_GRID_CELLS = 2**20  # 1024 x 1024: mechanisms make a finer grid coarser


def rows_of(axes: Sequence[Axis], low: IntArray, high: IntArray) -> FloatArray:
    """Boxes of cells in the units of the axes: their low edges along each axis, and then their high ones."""
    ends = [axis.from_cells(cells[:, n]) for cells in (low, high) for n, axis in enumerate(axes)]
    return np.column_stack(ends)


def wide_axes(domain: Domain) -> int:
    """The number of axes that can be cut."""
    return max(sum(cells > 1 for cells in domain.shape), 1)


def limit_parts(parts: IntArray, most: int = MOST_LEAVES) -> IntArray:
    """Limit `parts[i, axis]`, the slabs of region i along an axis, so that all regions together have
    at most `most` pieces. No axis gets coarser than it must."""
    low, high = 1, int(parts.max())  # the finest common limit, by bisection
    while low < high:
        middle = (low + high + 1) // 2
        fits = int(np.prod(np.minimum(parts, middle), axis=1).sum()) <= most
        low, high = (middle, high) if fits else (low, middle - 1)
    return np.asarray(np.minimum(parts, low))


def even_edges(shape: Sequence[int], grid: Sequence[int]) -> tuple[IntArray, ...]:
    """The edges of the coarser grid's cells along each axis, as even as possible."""
    return tuple(
        np.arange(coarse + 1, dtype=np.int64) * cells // coarse
        for cells, coarse in zip(shape, grid, strict=True)
    )


def summed_area_table(dense: NDArray[Any]) -> NDArray[Any]:
    """Sums over all cells below and left of each corner; one longer than the grid on every axis."""
    table = np.pad(dense, [(1, 0)] * dense.ndim)
    for axis in range(dense.ndim):
        np.cumsum(table, axis=axis, out=table)
    return table


def sum_boxes(table: NDArray[Any], low: IntArray, high: IntArray) -> NDArray[Any]:
    """The sum in each box of cells, by inclusion and exclusion at its corners."""
    total, flat = np.zeros(len(low), dtype=table.dtype), table.ravel()
    steps = np.cumprod((1, *table.shape[:0:-1]))[::-1, None]  # in the flat table, along each axis
    ends = steps * low.T, steps * high.T
    for corner in product((0, 1), repeat=table.ndim):
        places = sum(ends[upper][axis] for axis, upper in enumerate(corner))
        total += (-1) ** (table.ndim - sum(corner)) * flat[places]
    return total
