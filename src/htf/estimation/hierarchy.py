"""Estimates all regions of a given hierarchy from noisy counts: whole numbers, none negative. Public: no data, no noise.

From the top down, the records of a region are divided between its children. The *measured* count of a child comes from
all counts in it and below it, by least squares. The *expected* count is its share of the region: by its cells and,
where there are several axes, by what the rest of the map holds in the same slab. So a trip from one tract is expected
to go where trips from all others go. The weight of each is learnt from all regions (htf.estimation.shrinkage). Where
most pairs of tracts are empty, a small count is taken for noise. Children add up to their parent at every step, and
are rounded to whole numbers by largest remainders.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from htf.errors import InputError
from htf.estimation.least_squares import (
    UNKNOWN,
    SiblingLayer,
    TreeCounts,
    sibling_layers,
    smooth_variances,
    sum_upwards,
)
from htf.estimation.noise_law import scales_of_variances
from htf.estimation.shrinkage import LearntCounts
from htf.frame.domain import FloatArray, IntArray
from htf.frame.tree import RegionTree

HIERARCHY = "hierarchy"  # the name of this estimator in a release
PASSES = 2  # that learn
EVEN_SHARE = 0.1  # of what is expected: no child is thought empty
STEP = 2.0**-10  # records: remainders are told apart by it, because the last digits depend on the processor
HALF = 0.5 - 2.0**-12  # of a step
LARGEST = 2.0**60  # records: whole numbers stay whole, and nothing overflows


def estimate_hierarchy(
    tree: RegionTree, leaves: IntArray, counts: TreeCounts
) -> tuple[FloatArray, FloatArray]:
    """The estimates of the leaves from all counts, and the scale of the noise that least squares leave in each,
    from which the intervals are made."""
    _, variances = sum_upwards(tree, counts)
    if np.any(variances == UNKNOWN):
        raise InputError("a region without any count in it or below it cannot be estimated")
    estimates = _Estimation(tree, *_sum_sharply(tree, counts)).run()
    return estimates[leaves], scales_of_variances(smooth_variances(tree, variances)[leaves])


def _sum_sharply(tree: RegionTree, counts: TreeCounts) -> tuple[FloatArray, FloatArray]:
    """As `sum_upwards`, but a region's own count is combined with the sum of its children by their laws, not by their
    variances alone (htf.estimation.sharp)."""
    from htf.estimation.sharp import combine  # slow to load

    own, of_own = counts.by_region(tree)
    measured, variances = own.copy(), of_own.copy()
    for layer in reversed(sibling_layers(tree)):
        parents = layer.parents
        below, spread = layer.sum(measured[layer.regions]), layer.sum(variances[layer.regions])
        counted = of_own[parents] < UNKNOWN
        measured[parents], variances[parents] = below, spread
        both = parents[counted]
        measured[both], variances[both] = combine(
            below[counted], spread[counted], own[both], of_own[both]
        )
    return measured, variances


class _Estimation:
    """The passes from the top down, and the values they share."""

    def __init__(self, tree: RegionTree, measured: FloatArray, variances: FloatArray) -> None:
        self.tree, self.layers = tree, sibling_layers(tree)
        self.measured, self.variances = measured, variances
        self.deviations = np.sqrt(variances)
        self.noisy = measured / self.deviations
        self.single: NDArray[np.bool_] = tree.slabs == 0
        self.shares = [_expected_shares(tree, layer, measured) for layer in self.layers]

    def run(self) -> FloatArray:
        estimates, expected = self._sweep(None)
        for _ in range(PASSES if self.layers else 0):
            estimates, expected = self._sweep(self._learn(estimates, expected))
        return estimates

    def _sweep(self, learnt: LearntCounts | None) -> tuple[FloatArray, FloatArray]:
        """Estimates, and the expected count of each region before its own counts are used."""
        estimates, expected = np.zeros(len(self.tree)), np.zeros(len(self.tree))
        estimates[0] = expected[0] = np.rint(np.clip(self.measured[0], 0.0, LARGEST))
        for layer, shares in zip(self.layers, self.shares, strict=True):
            total, some = estimates[layer.parents], layer.regions
            expected[some] = total[layer.group] * shares
            mean, variance = self.measured[some], self.variances[some]
            if learnt is not None:
                scaled = expected[some] / self.deviations[some]
                known = learnt.posterior(
                    self.noisy[some], scaled, self.single[some], self.tree.depth[some]
                )
                mean = known.mean * self.deviations[some]
                variance = known.variance * variance
            estimates[some] = _round(layer, total, layer.share_out(total, mean, variance))
        return estimates, expected

    def _learn(self, estimates: FloatArray, expected: FloatArray) -> LearntCounts:
        """Learn from all regions but those inside an empty one, in which nothing is expected."""
        inside = 1 + np.flatnonzero(estimates[self.tree.parent[1:]] > 0)
        scaled = expected[inside] / self.deviations[inside]
        return LearntCounts(
            self.noisy[inside], scaled, self.single[inside], self.tree.depth[inside]
        )


def _expected_shares(tree: RegionTree, layer: SiblingLayer, measured: FloatArray) -> FloatArray:
    """The share of its parent that each region is expected to hold, before its own counts are used."""
    cells = tree.cells(layer.regions).astype(np.float64)
    even = cells / layer.sum(cells)[layer.group]
    axes = tree.axis[layer.parents][layer.group]
    elsewhere = np.zeros(len(even))
    leaves = np.flatnonzero(tree.slabs == 0)
    for axis in np.unique(axes):
        some = axes == axis
        held = _held_below(tree, leaves, measured, int(axis))
        low, high = tree.low[layer.regions[some], axis], tree.high[layer.regions[some], axis]
        elsewhere[some] = held[high] - held[low] - measured[layer.regions[some]]
    elsewhere = np.maximum(elsewhere, 0.0)
    whole = layer.sum(elsewhere)[layer.group]
    least = 1e-6 * max(float(np.abs(measured[0])), 1.0)
    found = np.divide(elsewhere, whole, out=even.copy(), where=whole > least)
    return np.asarray(EVEN_SHARE * even + (1 - EVEN_SHARE) * found)


def _held_below(
    tree: RegionTree, leaves: IntArray, measured: FloatArray, axis: int
) -> FloatArray:
    """What the map holds before each cell along an axis; leaves are spread evenly over their cells."""
    low, high = tree.low[leaves, axis], tree.high[leaves, axis]
    cells = int(tree.high[0, axis])
    density = measured[leaves] / (high - low)
    steps = np.bincount(low, density, minlength=cells + 1)
    steps -= np.bincount(high, density, minlength=cells + 1)
    return np.concatenate([[0.0], np.cumsum(np.cumsum(steps)[:-1])])


def _round(layer: SiblingLayer, total: FloatArray, values: FloatArray) -> FloatArray:
    """Whole numbers that sum to the whole `total` of each group, by largest remainders; of equal ones the first."""
    stepped = np.floor(np.minimum(values, total[layer.group]) / STEP + HALF) * STEP
    whole = np.floor(stepped)
    lack = (total - layer.sum(whole)).astype(np.int64)
    order = np.lexsort((whole - stepped, layer.group))  # the largest remainder first, in each group
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order)) - layer.starts[layer.group[order]]
    size = np.diff(np.append(layer.starts, len(order)))
    more = lack // size  # beyond one each only where digits were lost
    whole += more[layer.group] + (rank < (lack - more * size)[layer.group])
    return np.maximum(whole, 0.0)
