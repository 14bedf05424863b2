"""Least-squares estimates from noisy counts of a tree's regions. Public: no data, no noise.

The true counts of a tree's regions add up: a region is the sum of its children. Noisy counts do not,
and every count says something about all regions around it. `least_squares` gives the estimates that
add up and are closest to the noisy counts, each weighted by the inverse of its variance. Among all linear
unbiased estimates they have the least variance (Gauss and Markov). Hay, Rastogi, Miklau and Suciu (PVLDB
2010) did this for complete trees; Cormode, Procopiuc, Srivastava, Shen and Yu (ICDE 2012) for
budgets that differ by level. Here the tree may have any shape, a region may have been counted
never, once or often, and leaves of the release may be inner regions of the tree.

Two passes over the layers of the tree are enough, as for a Kalman filter and its smoother:

up      z and s are estimate and variance of a region from the counts in it and below it: its own
        count and the sum of its children's z, combined by inverse variance;
down    with x_p and V_p those of the parent from all counts, and S the sum of s over the siblings,
        x_i = z_i + (s_i / S) (x_p - sum z),    V_i = s_i - s_i^2 / S + (s_i / S)^2 V_p.

All formulas add a correction to an estimate. So if the counts agree with each other, whole numbers stay
whole, whatever the weights.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htf.errors import InputError
from htf.estimation.agreeing import AgreeingLaw
from htf.estimation.noise_law import count_variances, scales_of_variances
from htf.frame.domain import FloatArray, IntArray
from htf.frame.nesting import Nesting
from htf.frame.tree import NO_REGION, RegionTree
from htf.privacy.epsilon import Epsilon

UNKNOWN = np.inf  # the variance of what the counts do not determine
SURPRISE = 2.5  # deviations: a guess that is farther away is not used

LEAST_SQUARES = "least-squares"
NONNEGATIVE = "nonnegative-least-squares"


@dataclass
class TreeCounts:
    """Noisy counts of regions, in the order in which they were taken."""

    regions: list[IntArray] = field(default_factory=list)
    noisy_counts: list[IntArray] = field(default_factory=list)
    epsilons: list[IntArray] = field(default_factory=list)  # in units
    agreeing: list[bool] = field(default_factory=list)  # whether their noise was drawn together
    searched: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))  # for spikes

    def add(
        self,
        regions: IntArray,
        noisy_counts: IntArray,
        epsilon: Epsilon | IntArray,
        agreeing: bool = False,
    ) -> None:
        """Counts of `regions`, each taken with `epsilon` (one for all, or units for each)."""
        units = epsilon.units if isinstance(epsilon, Epsilon) else epsilon
        regions = np.asarray(regions, dtype=np.int64)
        self.regions.append(regions)
        self.noisy_counts.append(np.asarray(noisy_counts, dtype=np.int64))
        self.epsilons.append(np.broadcast_to(np.asarray(units, dtype=np.int64), regions.shape))
        self.agreeing.append(agreeing)

    def by_region(self, tree: RegionTree) -> tuple[FloatArray, FloatArray]:
        """The counts of each region combined by inverse variance, and their variance. Counts that were drawn together
        have the variance of independent ones that are worth as much."""
        return self._combine(tree, self.variances(tree))

    def as_drawn(self, tree: RegionTree) -> tuple[FloatArray, FloatArray]:
        """The same, but every count has the variance of discrete Laplace noise of its own epsilon."""
        return self._combine(tree, [count_variances(units) for units in self.epsilons])

    def variances(self, tree: RegionTree) -> list[FloatArray]:
        """Of all counts, as they were added."""
        return [self._as_independent(tree, number) for number in range(len(self.regions))]

    def _as_independent(self, tree: RegionTree, number: int) -> FloatArray:
        if not self.agreeing[number]:
            return count_variances(self.epsilons[number])
        nesting = Nesting.of(tree, self.regions[number])
        return AgreeingLaw.of(nesting, self.epsilons[number]).as_independent

    def _combine(
        self, tree: RegionTree, variances_of_counts: list[FloatArray]
    ) -> tuple[FloatArray, FloatArray]:
        """The mean is taken as the first count plus the mean deviation from it: equal counts give
        themselves."""
        if not self.regions:
            return np.zeros(len(tree)), np.full(len(tree), UNKNOWN)
        regions, noisy = np.concatenate(self.regions), np.concatenate(self.noisy_counts)
        tree.check_regions(regions)
        weights = 1 / np.concatenate(variances_of_counts)
        first = np.zeros(len(tree), dtype=np.int64)
        first[regions[::-1]] = noisy[::-1]  # of repeated places the last assignment stays
        weight = np.bincount(regions, weights, minlength=len(tree))
        moved = np.bincount(regions, weights * (noisy - first[regions]), minlength=len(tree))
        known = weight > 0
        variances = np.divide(1.0, weight, out=np.full(len(tree), UNKNOWN), where=known)
        mean_deviations = np.divide(moved, weight, out=np.zeros(len(tree)), where=known)
        return first.astype(np.float64) + mean_deviations, variances


def least_squares(tree: RegionTree, counts: TreeCounts) -> tuple[FloatArray, FloatArray]:
    """Estimates of all regions from all counts, and their variances.

    A region that the counts do not determine has an estimate of NaN and an infinite variance.
    """
    estimates, variances, _ = least_squares_and_below(tree, counts)
    return estimates, variances


def least_squares_and_below(
    tree: RegionTree, counts: TreeCounts
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The same, and the variance of each region from the counts in it and below it alone."""
    layers = sibling_layers(tree)
    estimates, below = add_up(layers, *counts.by_region(tree))
    variances = below.copy()
    _smooth_downwards(layers, estimates, variances)
    return estimates, variances, below


def nonnegative_least_squares(
    tree: RegionTree, counts: TreeCounts
) -> tuple[FloatArray, FloatArray]:
    """Estimates that add up and are nowhere negative; and the variances of `least_squares`.

    From the top down: the root's estimate, cut at zero, is split among its children so that none
    is negative, they add up to it, and they are closest to their own estimates, weighted by the
    inverse of the variance which those have from the counts below; then theirs to their children.
    If no estimate of `least_squares` is negative, nothing changes. Otherwise the result is biased:
    empty regions come out above zero on average, and the variances are those before the cut.
    """
    layers = sibling_layers(tree)
    estimates, variances = add_up(layers, *counts.by_region(tree))
    cut = estimates.copy()
    cut[0] = np.nan if variances[0] == UNKNOWN else max(cut[0], 0.0)
    for layer in layers:
        cut[layer.regions] = layer.share_out(
            cut[layer.parents], estimates[layer.regions], variances[layer.regions]
        )
    _smooth_downwards(layers, estimates, variances)
    return cut, variances


ESTIMATORS = {LEAST_SQUARES: least_squares, NONNEGATIVE: nonnegative_least_squares}


def estimate_leaves(
    tree: RegionTree, leaves: IntArray, counts: TreeCounts, estimator: str = LEAST_SQUARES
) -> tuple[FloatArray, FloatArray]:
    """Estimates of the leaves of a release, and the scales of noise that has their variances.

    Mechanisms and `htf.verify` both call this, so that one can check the other.
    """
    estimates, variances = ESTIMATORS[estimator](tree, counts)
    unknown = int(np.sum(variances[leaves] == UNKNOWN))
    if unknown:
        raise InputError(f"the counts do not determine {unknown} of {len(leaves)} leaves")
    return estimates[leaves], scales_of_variances(variances[leaves])


def sum_upwards(tree: RegionTree, counts: TreeCounts) -> tuple[FloatArray, FloatArray]:
    """Each region from the counts in it and below it, and the variance of that."""
    return add_up(sibling_layers(tree), *counts.by_region(tree))


def sum_leaves(tree: RegionTree, leaves: IntArray, values: FloatArray) -> FloatArray:
    """The sum over the leaves in each region; 0 for regions below leaves."""
    sums = np.zeros(len(tree))
    sums[leaves] = values
    for layer in reversed(tree.layers(1)):
        np.add.at(sums, tree.parent[layer], sums[layer])
    return sums


def smooth_variances(tree: RegionTree, variances: FloatArray) -> FloatArray:
    """The variances of `least_squares`, from those of `sum_upwards`."""
    smoothed = variances.copy()
    _smooth_downwards(sibling_layers(tree), np.zeros(len(tree)), smoothed)
    return smoothed


def add_up(
    layers: list[SiblingLayer], own: FloatArray, own_variances: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """z and s: each region from the counts in it and below it; 0 and UNKNOWN where there are none."""
    estimates, variances = own.copy(), own_variances.copy()
    for layer in reversed(layers):
        parents = layer.parents
        below = layer.sum(estimates[layer.regions])
        below_variance = layer.sum(variances[layer.regions])
        own_variance = own_variances[parents]
        no_own, both = own_variance == UNKNOWN, own_variance + below_variance < UNKNOWN
        share = np.where(no_own & (below_variance < UNKNOWN), 1.0, 0.0)
        np.divide(own_variance, own_variance + below_variance, out=share, where=both)
        estimates[parents] = own[parents] + share * (below - own[parents])
        variance = np.minimum(own_variance, below_variance)
        np.multiply(share, below_variance, out=variance, where=both)
        variances[parents] = variance
    return estimates, variances


def _smooth_downwards(
    layers: list[SiblingLayer], estimates: FloatArray, variances: FloatArray
) -> None:
    """x and V in place of z and s."""
    if variances[0] == UNKNOWN:
        estimates[0] = np.nan
    for layer in layers:
        estimates[layer.regions], variances[layer.regions] = layer.smooth(
            estimates[layer.parents],
            variances[layer.parents],
            estimates[layer.regions],
            variances[layer.regions],
        )


def join_near(
    measured: FloatArray, variances: FloatArray, guess: FloatArray, spread: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Counts and guesses joined by the inverse of their variances, and the variances of that. A guess that is farther from
    its count than both allow is not used."""
    far = np.abs(measured - guess) > SURPRISE * np.sqrt(variances + spread)
    weight = np.where(far, 0.0, 1 / spread)
    whole = 1 / variances + weight
    return (measured / variances + weight * guess) / whole, 1 / whole


@dataclass(frozen=True)
class SiblingLayer:
    """All regions of one depth. Siblings stand together; a group is all children of one region."""

    regions: IntArray
    parents: IntArray  # of each group
    starts: IntArray  # of each group, in `regions`
    group: IntArray  # of each region

    @classmethod
    def of(cls, regions: IntArray, parents: IntArray) -> SiblingLayer:
        """Regions of which siblings stand together, and the parent of each."""
        is_first = np.diff(parents, prepend=NO_REGION) != 0
        starts = np.flatnonzero(is_first)
        return cls(regions, parents[starts], starts, np.cumsum(is_first) - 1)

    def sum(self, values: NDArray[Any]) -> FloatArray:
        """The sum over each group."""
        return np.asarray(np.add.reduceat(values, self.starts, dtype=np.float64))

    def smooth(
        self, parent: FloatArray, parent_variance: FloatArray, z: FloatArray, s: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """x and V of these regions, from x and V of their parents.

        If nothing is known about one region in a group, it takes what its siblings leave, with the
        noise of them all, and the siblings keep their own estimates. About two, nothing is known.
        """
        unknown = s == UNKNOWN
        unknowns = self.sum(unknown)
        known_s = np.where(unknown, 0.0, s)
        known_sum = self.sum(known_s)
        share = np.where(unknowns == 0, 1.0, 0.0)[self.group] * known_s
        share /= np.where(known_sum > 0, known_sum, 1.0)[self.group]
        share[unknown] = 1.0
        gap = parent - self.sum(z)
        x = z + np.where(share > 0, share * gap[self.group], 0.0)
        # In groups with an unknown region nothing but that region follows the parent.
        above = np.where(unknowns == 0, parent_variance, parent_variance + known_sum)
        above = np.where(above == UNKNOWN, 0.0, above)
        variance = known_s - share * known_s + share**2 * above[self.group]
        lost = (unknowns > 1) | ((unknowns == 1) & (parent_variance == UNKNOWN))
        lost_here = unknown & lost[self.group]
        return np.where(lost_here, np.nan, x), np.where(lost_here, UNKNOWN, variance)

    def share_out(self, parent: FloatArray, z: FloatArray, s: FloatArray) -> FloatArray:
        """The y >= 0 that sum to `parent` in each group and have the least sum of (y - z)^2 / s.

        A region about which nothing is known costs nothing: it takes what is left over. If the
        parent itself is unknown, or two regions are, each is only cut at zero.
        """
        unknown = s == UNKNOWN
        unknowns = self.sum(unknown)
        cut = np.where(unknown, 0.0, np.maximum(z, 0.0))
        left = parent - self.sum(cut)
        lost = (unknowns > 1) | np.isnan(parent)
        settled = lost | ((unknowns == 1) & (left >= 0))
        rest = np.where(lost, np.nan, left)
        cut = np.where(unknown, rest[self.group], cut)
        projected = self._project(
            parent, z, np.where(unknown, 0.0, s), ~unknown & ~settled[self.group]
        )
        return np.where(settled[self.group], cut, projected)

    def _project(
        self, total: FloatArray, z: FloatArray, s: FloatArray, active: NDArray[np.bool_]
    ) -> FloatArray:
        """The weighted projection on the simplex: y = z - lambda * s where that is positive.

        Michelot's algorithm (J. Optim. Theory Appl. 1986), for all groups at once: project on the
        sum alone, drop what became negative for good, and again until nothing does.
        """
        while True:
            weight = self.sum(np.where(active, s, 0.0))
            excess = self.sum(np.where(active, z, 0.0)) - total
            slope = np.divide(excess, weight, out=np.zeros_like(weight), where=weight > 0)
            y = z - slope[self.group] * s
            dropped = active & (y < 0)
            if not dropped.any():
                return np.where(active, y, 0.0)
            active = active & ~dropped


def sibling_layers(tree: RegionTree) -> list[SiblingLayer]:
    """All regions but the root, by ascending depth. A tree adds siblings together, in order."""
    return [SiblingLayer.of(regions, tree.parent[regions]) for regions in tree.layers(1)]
