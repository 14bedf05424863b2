"""Grids that rivals lay over a map: how fine they are, and how they cut the tree. Public.

A mechanism that cannot work on every cell of a fine grid works on a coarser one. That grid is chosen from
public numbers alone, and the facts of the release name it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from htf.errors import InputError
from htf.frame.domain import Domain, IntArray
from htf.frame.grids import limit_parts
from htf.frame.hierarchy import cut_some
from htf.frame.tree import RegionTree

# In place of estimates and scales, where measurements do not fit.
NOTHING = (np.empty(0), np.empty(0))
LEAST_MOST_CELLS = 2**16  # no map need be coarser than 256 x 256


class Grid(NamedTuple):
    """A grid over the domain, of `shape` cells as equal as whole cells of the domain allow."""

    cells: IntArray  # of the domain, per axis
    shape: IntArray

    @classmethod
    def whole(cls, domain: Domain) -> Grid:
        """The domain's own grid."""
        cells = np.array(domain.shape, dtype=np.int64)
        return cls(cells, cells)

    @classmethod
    def limited(cls, domain: Domain, most: int) -> Grid:
        """The domain's own grid, or the finest with at most `most` cells where that has more."""
        cells = np.array(domain.shape, dtype=np.int64)
        return cls(cells, limit_parts(cells[None], most)[0])

    def widths(self, tree: RegionTree, regions: IntArray) -> IntArray:
        """How many cells of this grid the regions, cut along its lines, have on each axis."""
        return self._line(tree.high[regions]) - self._line(tree.low[regions])

    def cut_evenly(self, tree: RegionTree, regions: IntArray, parts: IntArray) -> IntArray:
        """Cut region i into `parts[i, axis]` slabs along each axis, along this grid's lines.

        Slabs of a region differ by at most one cell of this grid. Returns the pieces; a region
        that is not to be cut is its own piece.
        """
        pieces, owners = regions, np.arange(len(regions))
        for axis in range(tree.dimensions):
            slabs = parts[owners, axis]
            cuts = self._even_cuts(tree, pieces, axis, slabs)
            pieces = cut_some(tree, pieces, axis, cuts, slabs - 1)
            owners = np.repeat(owners, slabs)
        return pieces

    def _even_cuts(
        self, tree: RegionTree, regions: IntArray, axis: int, slabs: IntArray
    ) -> IntArray:
        first = np.cumsum(slabs - 1) - (slabs - 1)
        owners = np.repeat(np.arange(len(regions)), slabs - 1)
        place = np.arange(len(owners)) - first[owners] + 1
        low = self._line(tree.low[regions])[:, axis]
        width = self._line(tree.high[regions])[:, axis] - low
        lines = low[owners] + place * width[owners] // slabs[owners]
        return np.asarray(lines * self.cells[axis] // self.shape[axis])

    def _line(self, edges: IntArray) -> IntArray:
        """The number of the grid line at an edge; line j lies at floor(j * cells / shape)."""
        return -(-edges * self.shape // self.cells)


def check_most_cells(most_cells: int) -> None:
    if most_cells < LEAST_MOST_CELLS:
        raise InputError(f"most_cells must be at least {LEAST_MOST_CELLS}, got {most_cells}")


def padded(cells: int) -> int:
    """The smallest power of two that is not below the number."""
    return 1 << (cells - 1).bit_length()


def coarse_shape(
    shape: Sequence[int], most_cells: int, most_per_axis: int | None = None
) -> tuple[int, ...]:
    """The finest grid to work on: powers of two along axes that are too fine, the others whole.

    The axis with the fewest cells so far is doubled as long as the grid, padded, has no more than
    `most_cells`. So a long axis takes nothing from a short one.
    """
    most_per_axis = most_per_axis or max(shape)
    limits = [min(cells, most_per_axis) for cells in shape]
    grid = [1] * len(limits)
    while True:
        growing = [axis for axis, cells in enumerate(grid) if cells < limits[axis]]
        if not growing or 2 * math.prod(padded(cells) for cells in grid) > most_cells:
            return tuple(grid)
        axis = min(growing, key=lambda a: (grid[a], -shape[a]))
        grid[axis] = min(2 * grid[axis], limits[axis])
