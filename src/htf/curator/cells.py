"""Exact answers about regions of the tree. Sensitive: only the Curator holds one of these.

The non-empty cells are kept in an order in which every region of the tree is one contiguous run.
When a region is cut, the cells of its run are sorted by slab; its ancestors' runs stay as they are.
So a level of the tree costs one pass over the cells it still covers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htf.curator.frequency import FrequencyMatrix
from htf.curator.held import HeldCounts
from htf.curator.medians import choose_medians
from htf.curator.sampler import WordSource
from htf.frame.domain import IntArray
from htf.frame.nesting import Nesting
from htf.frame.tree import RegionTree

SWEEP_FROM = 16  # cuts per region from which one sweep is cheaper than one pass a cut


class ExactCells:
    """The cells of a frequency matrix, in the order of a tree of regions."""

    __slots__ = ("_coordinates", "_counts", "_starts", "_stops", "_tree", "held")

    def __init__(self, matrix: FrequencyMatrix, tree: RegionTree) -> None:
        self._tree = tree
        self._coordinates = matrix.exact_coordinates.copy()
        self._counts = matrix.exact_counts.copy()
        self._starts = np.zeros(1, dtype=np.int64)
        self._stops = np.array([len(self._counts)], dtype=np.int64)
        self.held = HeldCounts()

    def __repr__(self) -> str:
        return "ExactCells(exact counts not shown)"

    def count(self, regions: IntArray) -> IntArray:
        """The exact number of records in each region."""
        from htf.curator import kernels

        self._follow_tree()
        totals: IntArray = kernels.sum_regions(
            self._starts[regions], self._stops[regions], self._counts
        )
        return totals

    def nesting(self, regions: IntArray) -> Nesting:
        """Which of these regions make up which others. Public."""
        return Nesting.of(self._tree, regions)

    def score_splits(self, regions: IntArray, axes: IntArray, cuts: IntArray) -> IntArray:
        """The homogeneity objective of each split, rounded down [HTF, Eq. 4].

        The deviation of a half with `size` cells and mean `total / size` is
        2 * (sum above the mean - mean * number above the mean): deviations above and below the
        mean cancel, so those above are half of all, and empty cells are never above it. Each half
        is rounded down for itself.
        """
        self._follow_tree()
        half_sizes = self._half_sizes(regions, axes, cuts)
        sums = self._sums_above_mean(regions, axes, cuts, half_sizes)
        deviations = deviation_rounded_down(sums[:, :, 0], half_sizes, sums[:, :, 1], sums[:, :, 2])
        return np.asarray(deviations.sum(axis=1))

    def choose_medians(
        self, regions: IntArray, axes: IntArray, epsilon: IntArray, words: WordSource
    ) -> IntArray:
        """A cut near the median of each region, by the exponential mechanism."""
        self._follow_tree()
        tree = self._tree
        return choose_medians(
            self._starts[regions],
            self._stops[regions],
            axes,
            tree.low[regions, axes],
            tree.high[regions, axes],
            epsilon,
            self._coordinates,
            self._counts,
            words,
        )

    def grow_privtree(
        self,
        region: int,
        axes_by_depth: tuple[tuple[int, ...], ...],
        decide: Callable[[IntArray, int], NDArray[np.bool_]],
    ) -> IntArray:
        """Cut regions that `decide` picks by their exact counts and depth, level by level.

        Returns the decisions.
        """
        tree, level, decisions = self._tree, np.array([region]), [np.empty(0, dtype=np.int64)]
        depth = 0
        while True:
            axes = axes_by_depth[depth % len(axes_by_depth)]
            widths = tree.high[level] - tree.low[level]
            level = level[np.any(widths > 1, axis=1)]  # public: a single cell cannot be split
            if len(level) == 0:
                return np.concatenate(decisions)
            split = decide(self.count(level), depth)
            decisions.append(split.astype(np.int64))
            level = self._cut_privtree(level[split], axes)
            depth += 1

    def _cut_privtree(self, regions: IntArray, axes: tuple[int, ...]) -> IntArray:
        """Cut in half along `axes`; if those are down to one cell, along the widest axis."""
        widths = self._tree.high[regions] - self._tree.low[regions]
        usual = np.any(widths[:, list(axes)] > 1, axis=1)
        widest = np.argmax(widths, axis=1)
        parts = [self._tree.halve(regions[usual], axes)]
        for axis in np.unique(widest[~usual]):
            parts.append(self._tree.halve(regions[~usual & (widest == axis)], [int(axis)]))
        return np.concatenate(parts)

    def combine(self, factors: tuple[IntArray, ...], edges: tuple[IntArray, ...]) -> IntArray:
        """The Kronecker product of `factors` times the counts of the grid with these edges."""
        coarse = self.count_coarsely(edges)
        bound = max(int(self._counts.sum()), 1)
        for factor in factors:
            bound *= max(int(np.abs(factor).max()), 1)
        # Floats multiply fast and are exact up to 2**53; beyond, integers of any size take over.
        kind: Any = np.float64 if bound < 2**53 else object
        result = coarse.astype(kind)
        for axis, factor in enumerate(factors):
            result = np.moveaxis(np.tensordot(factor.astype(kind), result, (1, axis)), 0, axis)
        return result.ravel().astype(np.int64)

    def count_coarsely(self, edges: tuple[IntArray, ...]) -> IntArray:
        """The exact counts of a coarser grid, with these edges along each axis, as a dense array."""
        coarse = np.zeros([len(edge) - 1 for edge in edges], dtype=np.int64)
        places = tuple(
            np.searchsorted(edge, row, side="right") - 1
            for edge, row in zip(edges, self._coordinates, strict=True)
        )
        np.add.at(coarse, places, self._counts)
        return coarse

    def _half_sizes(self, regions: IntArray, axes: IntArray, cuts: IntArray) -> IntArray:
        low, high = self._tree.low[regions, axes], self._tree.high[regions, axes]
        slice_size = self._tree.cells(regions) // (high - low)
        return np.stack([slice_size * (cuts - low), slice_size * (high - cuts)], axis=1)

    def _sums_above_mean(
        self, regions: IntArray, axes: IntArray, cuts: IntArray, half_sizes: IntArray
    ) -> IntArray:
        """Total, sum above and number above the mean, of each half of each split."""
        from htf.curator import kernels

        group = regions * self._tree.dimensions + axes
        order = np.lexsort((cuts, group))
        starts = np.flatnonzero(np.r_[True, np.diff(group[order]) != 0])
        sizes = np.diff(np.r_[starts, len(order)])
        few = np.repeat(sizes < SWEEP_FROM, sizes)
        sums = np.empty((len(regions), 2, 3), dtype=np.int64)
        rows = order[few]
        sums[rows] = kernels.sum_above_mean_of_halves(
            self._starts[regions[rows]],
            self._stops[regions[rows]],
            axes[rows],
            cuts[rows],
            half_sizes[rows],
            self._coordinates,
            self._counts,
        )
        for start, size in zip(starts, sizes, strict=True):
            if size >= SWEEP_FROM:
                rows = order[start : start + size]
                sums[rows] = self._sweep(
                    regions[rows[0]], axes[rows[0]], cuts[rows], half_sizes[rows]
                )
        return sums

    def _sweep(
        self, region: np.int64, axis: np.int64, cuts: IntArray, half_sizes: IntArray
    ) -> IntArray:
        """All ascending cuts of one region at once: upwards for the left halves, downwards for the
        right ones (mirrored, so that the same sweep serves both)."""
        from htf.curator import kernels

        run = slice(self._starts[region], self._stops[region])
        along, counts = self._coordinates[axis, run], self._counts[run]
        order = np.argsort(along, kind="stable")
        along, counts = along[order], counts[order]
        distinct, ranks = np.unique(counts, return_inverse=True)
        left = kernels.sweep_above_mean(cuts, half_sizes[:, 0], along, counts, ranks, distinct)
        mirrored = (-1 - along[::-1]).astype(np.int32)
        right = kernels.sweep_above_mean(
            -cuts[::-1],
            half_sizes[::-1, 1].copy(),
            mirrored,
            counts[::-1].copy(),
            ranks[::-1].copy(),
            distinct,
        )
        return np.stack([left, right[::-1]], axis=1)

    def _follow_tree(self) -> None:
        """Sort the cells of the regions that were cut since the last question."""
        known, tree = len(self._starts), self._tree
        if known == len(tree):
            return
        new = np.arange(known, len(tree))
        ends = self._starts, self._stops
        self._starts, self._stops = (np.append(one, np.zeros_like(new)) for one in ends)
        for depth in np.unique(tree.depth[new]):
            self._sort_children(new[tree.depth[new] == depth])

    def _sort_children(self, children: IntArray) -> None:
        """Give runs to `children`: all slabs, in order, of regions that have their runs already."""
        from htf.curator import kernels

        tree = self._tree
        parents = np.unique(tree.parent[children])
        parents = parents[np.argsort(tree.first_child[parents])]
        axes, slabs = tree.axis[parents], tree.slabs[parents]
        later = children[children != tree.first_child[tree.parent[children]]]
        cuts = tree.low[later, tree.axis[tree.parent[later]]]
        first_cut = np.concatenate([[0], np.cumsum(slabs - 1)])
        ends = kernels.sort_into_slabs(
            self._starts[parents],
            self._stops[parents],
            axes,
            cuts,
            first_cut,
            self._coordinates,
            self._counts,
        )
        self._stops[children] = ends
        self._starts[children[1:]] = ends[:-1]
        self._starts[tree.first_child[parents]] = self._starts[parents]


def deviation_rounded_down(
    totals: IntArray, sizes: IntArray, sums_above: IntArray, numbers_above: IntArray
) -> IntArray:
    """floor(2 * (sum above - total / size * number above)), exactly.

    With total = quotient * size + rest, only 2 * rest * number / size is not whole, and only its
    product may pass 64 bits: then Python's integers take over.
    """
    quotients, rests = totals // sizes, totals % sizes
    whole: IntArray = 2 * (sums_above - quotients * numbers_above)
    fits = rests <= np.int64(2**62) // np.maximum(2 * numbers_above, 1)
    products: IntArray = np.where(fits, 2 * rests * numbers_above, 0)
    result = whole - -(-products // sizes)
    for place in zip(*np.nonzero(~fits), strict=True):
        product = 2 * int(rests[place]) * int(numbers_above[place])
        result[place] = int(whole[place]) - -(-product // int(sizes[place]))
    return result
