"""The kd-tree on noisy cells, and what it shares with `dpcube`.

Y. Xiao, L. Xiong, C. Yuan: Differentially Private Data Release through Multidimensional Partitioning,
Secure Data Management (SDM) 2010. Two phases:

1. the cells of a grid are counted with a share of the budget, and a kd-tree is built on these noisy
   counts alone, which costs nothing more;
2. its leaves are counted afresh with the rest.

Here a node is cut at the noisy median of its wider axis, as long as its cells do not look alike.
Choices where the paper leaves them open:

* The grid has at most 2**16 cells, 256 x 256 on a map, whatever the data; the facts of a release say
  how many. Below that grid nothing is cut.
* The paper measures uniformity by the variance of the cells and asks the user for a threshold. Here
  the threshold follows from the noise, which is known: cells look alike if no cut of the node, at any
  place on any axis, lowers the sum of squared deviations from the mean by more than
  `split_deviations` squared times the variance of the noise; noise alone lowers it by about that
  variance at any one place. (The variance of all cells, tested in the same way, overlooks what
  is small against the noise of a cell but large over many: on the maps tried its errors were up to
  four times as large.) Low thresholds do well, since a needless cut costs little and a large leaf
  that is not uniform costs much: the defaults did so on all maps tried.
* The sum of a leaf's noisy cells is a second count of it: by default both are combined by inverse
  variance (DPCube's inference, at the leaves). As cuts follow the noise of the cells, that second
  count is biased by them, and the stated scales leave this out. On maps that are large against
  the noise it gains much (a third of the squared error on Uber's pickups at epsilon 0.1), on others it
  loses (a third on 20,000 points at 0.2). `estimate=fresh` leaves the cells out: unbiased.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htf.curator.window import Steps, Window
from htf.errors import InputError
from htf.estimation.least_squares import TreeCounts
from htf.estimation.noise_law import count_variances, scales_of_variances
from htf.frame.domain import Domain, FloatArray, IntArray, cell_counts
from htf.frame.grids import MOST_GRID_CELLS, even_edges, limit_parts, sum_boxes, summed_area_table
from htf.frame.tree import RegionTree
from htf.mechanisms.base import (
    Histogram,
    Mechanism,
    check_share,
    parameter,
    read_number,
    read_optional_integer,
    read_share,
    read_text,
    split_epsilon,
)
from htf_bench.grids import NOTHING

CELLS_AND_COUNTS = "cells-and-counts"  # the estimator
COMBINED, FRESH = "combined", "fresh"
Cuts = tuple[
    IntArray, IntArray, NDArray[np.bool_]
]  # axes, places in cells of the grid, and whether each is worth making
USUAL_CELLS = 2**16
MOST_CELLS_PER_AXIS = 2**10  # all cells are asked for at once, by a square matrix for each axis


@dataclass(frozen=True)
class TwoPhases(Mechanism):
    """Count cells, cut them into a tree by their noisy counts, count its leaves afresh, combine."""

    cells_per_axis: int | None = parameter(
        None,
        read_optional_integer,
        "cells of the grid along an axis; none: 256 on a map, 2^16 in all",
    )
    cell_share: float = parameter(0.5, read_share, "share of the budget for the cells")
    split_deviations: float = parameter(
        2.0, read_number, "split where some cut parts halves that differ by so many deviations"
    )
    estimate: str = parameter(
        COMBINED, read_text, "of leaves, combined: from counts and cells; fresh: from counts alone"
    )

    def check(self) -> None:
        per_axis, deviations = self.cells_per_axis, self.split_deviations
        if per_axis is not None and not 1 <= per_axis <= MOST_CELLS_PER_AXIS:
            raise InputError(
                f"cells_per_axis must be from 1 to {MOST_CELLS_PER_AXIS}, got {per_axis}"
            )
        check_share("cell_share", self.cell_share)
        if not deviations >= 0:
            raise InputError(f"split_deviations must not be negative, got {deviations}")
        if self.estimate not in (COMBINED, FRESH):
            raise InputError(f"estimate must be {COMBINED} or {FRESH}, got {self.estimate!r}")

    @abstractmethod
    def _choose_cuts(self, cells: NoisyCells, low: IntArray, high: IntArray) -> Cuts:
        """Choose where to cut rectangles of cells, and whether that is worth it."""

    def build(self, window: Window) -> Steps[Histogram]:
        for_cells, for_leaves = split_epsilon(window.epsilon, self.cell_share, "cell_share")
        parts = grid_parts(window.domain, self.cells_per_axis)
        edges = even_edges(window.domain.shape, parts)
        each = [np.eye(part, dtype=np.int64) for part in parts]
        noisy = yield from window.linear_queries(each, edges, for_cells, "cells: counts")
        cells = NoisyCells.of(window.domain.shape, parts, noisy, for_cells.units)
        grow_on_cells(window.tree, cells, self._choose_cuts)
        leaves, facts = np.flatnonzero(window.tree.slabs == 0), {"cells_per_axis": parts}
        noisy = yield from window.count(leaves, for_leaves, "leaves: counts")
        if self.estimate == FRESH:
            scales = np.full(len(leaves), 1 / float(for_leaves))
            return Histogram(leaves, noisy, scales, "last-count", facts)
        counts = TreeCounts()
        counts.add(leaves, noisy, for_leaves)
        estimates, scales = combine_cells_and_counts(window.tree, leaves, cells, counts)
        return Histogram(leaves, estimates, scales, CELLS_AND_COUNTS, facts)


@dataclass(frozen=True)
class KdTreeCell(TwoPhases):
    """kd-tree on noisy cells: cut at noisy medians until cells look alike, then count the leaves."""

    name = "kdtree-cell"
    citation = (
        "Xiao, Xiong, Yuan: Differentially private data release through multidimensional "
        "partitioning, Secure Data Management 2010"
    )

    def _choose_cuts(self, cells: NoisyCells, low: IntArray, high: IntArray) -> Cuts:
        _, _, gains = cells.most_uniform_cuts(low, high)
        axes = np.argmax(high - low, axis=1)
        worth = gains > self.split_deviations**2 * cells.variance
        return axes, cells.medians(low, high, axes), worth


@dataclass(frozen=True, eq=False)
class NoisyCells:
    """Noisy counts of the cells of a grid, and sums over boxes of them. Boxes are in grid cells."""

    edges: tuple[IntArray, ...]  # of the grid along each axis, in cells of the domain
    values: IntArray
    variance: float  # of the noise in each

    @classmethod
    def of(
        cls, shape: Sequence[int], parts: Sequence[int], values: IntArray, epsilon_units: int
    ) -> NoisyCells:
        """From the answers for a grid with `parts` cells along the axes, in row-major order."""
        variance = float(count_variances(np.array([epsilon_units]))[0])
        return cls(even_edges(shape, parts), values.reshape(tuple(parts)), variance)

    @cached_property
    def _sums(self) -> IntArray:
        return summed_area_table(self.values)

    def boxes(self, tree: RegionTree, regions: IntArray) -> tuple[IntArray, IntArray]:
        """Regions that were cut along the lines of the grid, as boxes of its cells."""
        low, high = np.empty((2, len(regions), len(self.edges)), dtype=np.int64)
        for axis, edges in enumerate(self.edges):
            low[:, axis] = np.searchsorted(edges, tree.low[regions, axis])
            high[:, axis] = np.searchsorted(edges, tree.high[regions, axis])
        return low, high

    def lines(self, axes: IntArray, places: IntArray) -> IntArray:
        """Lines of the grid, in cells of the domain."""
        found = np.empty(len(places), dtype=np.int64)
        for axis, edges in enumerate(self.edges):
            found[axes == axis] = edges[places[axes == axis]]
        return found

    def sum(self, low: IntArray, high: IntArray) -> IntArray:
        return sum_boxes(self._sums, low, high)

    def medians(self, low: IntArray, high: IntArray, axes: IntArray) -> IntArray:
        """The cut of each box, which is wide along its axis, that leaves the most equal halves."""
        owners, places, left = self._left_sums(low, high, axes)
        imbalance = np.abs(2 * left - self.sum(low, high)[owners])
        return places[first_best(-imbalance, owners)]

    def most_uniform_cuts(
        self, low: IntArray, high: IntArray
    ) -> tuple[IntArray, IntArray, FloatArray]:
        """The cut of each box that lowers the sum of squared deviations from the mean the most:
        its axis, its place, and by how much (V-optimality). Every box must be wide along some axis.
        """
        found = [self._gains_along(low, high, axis) for axis in range(low.shape[1])]
        places, gains = (np.stack(part) for part in zip(*found, strict=True))
        axes, rows = np.argmax(gains, axis=0), np.arange(len(low))
        return axes, places[axes, rows], gains[axes, rows]

    def _gains_along(self, low: IntArray, high: IntArray, axis: int) -> tuple[IntArray, FloatArray]:
        """The best cuts along one axis; 0 and minus infinity for boxes that are not wide there."""
        best, gain = np.zeros(len(low), dtype=np.int64), np.full(len(low), -np.inf)
        wide = np.flatnonzero(high[:, axis] - low[:, axis] > 1)
        if len(wide) == 0:
            return best, gain
        low, high = low[wide], high[wide]
        owners, places, left = self._left_sums(low, high, np.full(len(wide), axis))
        size = cell_counts(low, high)[owners].astype(np.float64)
        share = (places - low[owners, axis]) / (high - low)[owners, axis]  # of the cells
        # With n cells, a share q of them on the left, sums l and s, the three sums of squared
        # deviations differ by (l - q s)^2 / (n q (1 - q)).
        surplus = left - self.sum(low, high)[owners] * share
        lowered = surplus**2 / (size * share * (1 - share))
        chosen = first_best(lowered, owners)
        best[wide], gain[wide] = places[chosen], lowered[chosen]
        return best, gain

    def _left_sums(
        self, low: IntArray, high: IntArray, axes: IntArray
    ) -> tuple[IntArray, IntArray, IntArray]:
        """All cuts of all boxes along their axes: whose, where, and the sum below the cut."""
        rows = np.arange(len(low))
        number = high[rows, axes] - low[rows, axes] - 1
        owners = np.repeat(rows, number)
        first = np.cumsum(number) - number
        along = axes[owners]
        places = low[owners, along] + 1 + np.arange(len(owners)) - first[owners]
        ends = high[owners]
        ends[np.arange(len(owners)), along] = places
        return owners, places, self.sum(low[owners], ends)


def grid_parts(domain: Domain, cells_per_axis: int | None) -> list[int]:
    """How many cells the grid has along each axis."""
    most = MOST_CELLS_PER_AXIS if cells_per_axis is None else cells_per_axis
    parts = np.minimum(np.array(domain.shape, dtype=np.int64), most)
    if cells_per_axis is None:
        parts = limit_parts(parts[None], USUAL_CELLS)[0]
    if math.prod(parts.tolist()) > MOST_GRID_CELLS:
        raise InputError(
            f"cells_per_axis {cells_per_axis} makes {math.prod(parts.tolist())} cells of this "
            f"domain, more than {MOST_GRID_CELLS}"
        )
    return [int(part) for part in parts]


def grow_on_cells(
    tree: RegionTree,
    cells: NoisyCells,
    choose_cuts: Callable[[NoisyCells, IntArray, IntArray], Cuts],
) -> None:
    """Cut the map along the lines of the grid, level by level, as long as it is worth it."""
    level = np.zeros(1, dtype=np.int64)
    while True:
        low, high = cells.boxes(tree, level)
        wide = np.any(high - low > 1, axis=1)
        if not wide.any():
            return
        axes, places, worth = choose_cuts(cells, low[wide], high[wide])
        axes, places = axes[worth], places[worth]
        level = tree.split(level[wide][worth], axes, cells.lines(axes, places)).ravel()


def combine_cells_and_counts(
    tree: RegionTree, leaves: IntArray, cells: NoisyCells, counts: TreeCounts
) -> tuple[FloatArray, FloatArray]:
    """Each leaf from its own count and from the sum of its cells, by inverse variance; and the scales.

    The correction is added to the count, so that counts which agree stay whole.
    """
    own, own_variances = (values[leaves] for values in counts.by_region(tree))
    low, high = cells.boxes(tree, leaves)
    from_cells, cell_variances = cells.sum(low, high), cell_counts(low, high) * cells.variance
    share = own_variances / (own_variances + cell_variances)
    return own + share * (from_cells - own), scales_of_variances(share * cell_variances)


def first_best(scores: NDArray[Any], owners: IntArray) -> IntArray:
    """The place of the first of the greatest scores of each owner; owners ascend without gaps."""
    starts = np.flatnonzero(np.diff(owners, prepend=-1))
    greatest = np.flatnonzero(scores == np.maximum.reduceat(scores, starts)[owners])
    return greatest[np.flatnonzero(np.diff(owners[greatest], prepend=-1))]


def reconstruct_cells_and_counts(release: Any) -> tuple[FloatArray, FloatArray]:
    """Estimates and scales of a release's leaves, from its measurements; nothing if they do not fit."""
    fresh, coarse = (release.measurements.of_kind(kind) for kind in ("count", "linear"))
    parts = release.facts.get("cells_per_axis", [])
    limits = [min(cells, MOST_CELLS_PER_AXIS) for cells in release.domain.shape]
    if len(parts) != len(limits) or math.prod(parts) != len(coarse):
        return NOTHING
    if not all(type(n) is int and 1 <= n <= most for n, most in zip(parts, limits, strict=True)):
        return NOTHING
    counts = TreeCounts()
    counts.add(fresh.region, fresh.value, fresh.epsilon)
    cells = NoisyCells.of(release.domain.shape, parts, coarse.value, int(coarse.epsilon.sum()))
    return combine_cells_and_counts(release.tree, release.leaves, cells, counts)


TwoPhases.estimators = {CELLS_AND_COUNTS: reconstruct_cells_and_counts}
