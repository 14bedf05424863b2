"""Estimates all regions of a tree of halves from noisy counts. Public: no data, no noise.

From the top down, the records of a region are divided between its two halves. The *expected* count of a
half comes from the regions beside it, and from public priors as far as they are trusted
(htf.estimation.expectation). The *measured* count of a half comes from
all counts in it and below it, by least squares. The weight of each is learnt from all regions of the map
(htf.estimation.shrinkage): where the map is smooth, the expected count weighs more; where most regions are
empty, a small count is taken for noise. Sums are kept at every step: the records that one half does not
get, the other does. docs/mechanism.md gives the reasons.

Before that, small regions are judged from below: each leaf from its own count and what lies around it
(htf.estimation.leaf_counts). Records often lie in clumps. Where one cell of sixteen holds them all, its count stands
clear of the noise and fifteen others say that they are empty, while the sum of the sixteen counts says little. So what
is known of leaves is added up instead of their counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from htf.errors import InputError
from htf.estimation.background import Background, join, trust_in_shares
from htf.estimation.expectation import Expectation, rounded
from htf.estimation.leaf_counts import judge_leaves
from htf.estimation.least_squares import UNKNOWN, TreeCounts, add_up, sibling_layers
from htf.estimation.prior import Prior
from htf.estimation.shrinkage import SMOOTHING, SMOOTHING_PEOPLE, LearntCounts, Posterior
from htf.frame.domain import FloatArray, IntArray
from htf.frame.halving import Neighbourhood
from htf.frame.tree import RegionTree

FROM_LEAVES = "homogeneous-from-leaves"  # the name of this estimator in a release
PRIOR_TRUST = "prior_trust"  # the fact of a release that says how far its priors were trusted
COARSE = 1 / 4096  # of the map: larger boxes are found empty or not, smaller ones only shrunk
FINE = 1 / 256  # of the map: what smaller boxes hold is added up from what is known of their leaves
AROUND = 10  # halvings: the region that much larger shows how full the land around a leaf is
FIRST_DEVIATIONS = 1.5  # in the first pass, before anything is learnt, less is taken for noise
PASSES = 2  # that learn; a third changes little

# What is made of halves: a mean and a variance for each, given what is expected of them.
Rule = Callable[[IntArray, FloatArray], tuple[FloatArray, FloatArray]]


@dataclass(frozen=True, slots=True, eq=False)
class Estimated:
    """Estimates of all regions of a tree of halves: none is negative, and halves add up."""

    estimates: FloatArray
    variances: FloatArray  # those of `least_squares.sum_upwards`
    trust: FloatArray  # in priors: by prior, level and density


def estimate_regions(
    tree: RegionTree,
    counts: TreeCounts,
    priors: Sequence[Prior] = (),
    shares: int = 1,
    background: Background | None = None,
) -> Estimated:
    """Estimates from all counts. Where the counts are of shares of people, `shares` is the number of them that one
    person has. A `background` counts as far as the priors are trusted or, where there are none, as its own shares are."""
    estimation = _Estimation(tree, counts, priors, shares, background)
    return Estimated(estimation.run(), estimation.as_measured[1], estimation.expectation.trust)


def _inside(tree: RegionTree, regions: IntArray) -> NDArray[np.bool_]:
    """Whether each region lies in one of these, and is not it."""
    given = np.zeros(len(tree), dtype=np.bool_)
    given[regions] = True
    inside = np.zeros(len(tree), dtype=np.bool_)
    if len(regions):
        for layer in tree.layers(1):
            above = tree.parent[layer]
            inside[layer] = inside[above] | given[above]
    return inside


def _share_out(
    total: FloatArray, mean: FloatArray, variance: FloatArray, expected: FloatArray
) -> FloatArray:
    """The records of the lower halves: the means of both, moved to the right sum by their variances.

    A variance of zero says that a half is empty. If both are, the expected counts decide.
    """
    both = variance.sum(axis=0)
    lack = total - mean.sum(axis=0)
    share = np.divide(variance[0], both, out=np.zeros_like(both), where=both > 0)
    left = np.clip(mean[0] + share * lack, 0.0, total)
    left = np.where(variance[1] == 0, total, left)
    left = np.where(variance[0] == 0, 0.0, left)
    return np.asarray(np.where(both > 0, left, expected[0]))


class _Estimation:
    """The passes from the top down, and the values they share. What small regions hold is added up from what is known
    of their leaves."""

    def __init__(
        self,
        tree: RegionTree,
        counts: TreeCounts,
        priors: Sequence[Prior],
        shares: int,
        background: Background | None,
    ) -> None:
        self.background, self.each = background, shares  # that a record or person counts as
        self.smoothing = SMOOTHING if shares == 1 else SMOOTHING_PEOPLE * shares
        self.own, self.layers = counts.by_region(tree), sibling_layers(tree)
        self.as_measured = add_up(self.layers, *self.own)
        self._take(*self.as_measured)
        if np.any(self.variances == UNKNOWN):
            raise InputError("a region without any count in it or below it cannot be estimated")
        turns = Neighbourhood(tree)
        self.tree, self.steps, self.neighbours = tree, turns.steps, turns.neighbours
        cells = tree.cells().astype(np.float64)
        self.expectation = Expectation(tree, turns.turns, priors, None, self.measured)
        self.single: NDArray[np.bool_] = tree.slabs == 0  # the noise is that of a count
        self.coarse: NDArray[np.bool_] = cells >= COARSE * cells[0]
        self.fine: NDArray[np.bool_] = (cells <= FINE * cells[0]) | _inside(tree, counts.searched)
        self.fine[0] = False
        # What was added up has learnt already, and is not pulled again towards what is expected; but it may be found empty.
        self.pulled = ~self.fine
        self.leaves = np.flatnonzero(tree.slabs == 0)
        self.around = self.leaves
        for _ in range(AROUND):
            self.around = np.maximum(tree.parent[self.around], 0)
        self.counted = self.noisy[self.leaves], self.deviations[self.leaves]

    def _take(self, measured: FloatArray, variances: FloatArray) -> None:
        """What is measured of all regions, from now on."""
        self.measured, self.variances, self.deviations = measured, variances, np.sqrt(variances)
        self.noisy = measured / self.deviations

    def run(self) -> FloatArray:
        estimates, expected = self._sweep(self._first_rule)
        for _ in range(PASSES):
            self.expectation.learn(self.steps, estimates, *self.as_measured)
            self._borrow(estimates)
            learnt = self._learn(estimates, expected)
            estimates, expected = self._sweep(partial(self._rule, learnt))
        return estimates

    def _borrow(self, estimates: FloatArray) -> None:
        """Join what was measured with the background."""
        if self.background is None:
            return
        level = self.expectation.level
        if len(self.expectation.trust):
            above = np.maximum(self.tree.parent, 0)
            trust = 1 - self.expectation.weights(above, estimates)[0]
        else:
            cells = self.tree.cells().astype(np.float64)
            trust = trust_in_shares(self.background, self.layers, cells, *self.as_measured, level)
        self._take(*join(*self.as_measured, self.background, level, trust, self.each))
        self.counted = self.noisy[self.leaves], self.deviations[self.leaves]

    def _sweep(self, rule: Rule) -> tuple[FloatArray, FloatArray]:
        """Estimates, and the expected count of each region before its own counts are used."""
        estimates, expected = np.zeros(len(self.tree)), np.zeros(len(self.tree))
        estimates[0] = expected[0] = rounded(np.maximum(self.measured[0], 0.0))
        for step in self.steps:
            total = estimates[step.cut]
            share = self.expectation.share(step, estimates)
            halves = np.stack([step.left, step.left + 1])
            expected[halves] = guess = np.stack([total * share, total * (1 - share)])
            left = rounded(_share_out(total, *rule(halves, guess), guess))
            estimates[halves] = left, total - left
        return estimates, expected

    def _first_rule(self, halves: IntArray, _: FloatArray) -> tuple[FloatArray, FloatArray]:
        clear = self.noisy[halves] > FIRST_DEVIATIONS
        mean, variance = self.measured[halves], self.variances[halves]
        return np.where(clear, mean, 0.0), np.where(clear, variance, 0.0)

    def _learn(self, estimates: FloatArray, expected: FloatArray) -> LearntCounts:
        """Learn from all regions but those inside an empty one, in which nothing is expected."""
        self._add_up(self._judge(estimates))
        inside = 1 + np.flatnonzero(estimates[self.tree.parent[1:]] > 0)
        scaled = expected[inside] / self.deviations[inside]
        return LearntCounts(
            self.noisy[inside], scaled, self.single[inside], self.expectation.level[inside]
        )

    def _rule(
        self, learnt: LearntCounts, halves: IntArray, guess: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        deviations, level = self.deviations[halves], self.expectation.level[halves]
        noisy, scaled, single = self.noisy[halves], guess / deviations, self.single[halves]
        mean, variance = self.measured[halves], self.variances[halves]
        some = self.pulled[halves]
        known = learnt.posterior(noisy[some], scaled[some], single[some], level[some])
        mean[some] = known.mean * deviations[some]
        variance[some] = known.variance * deviations[some] ** 2
        empty = self.coarse[halves]
        empty[empty] = learnt.is_empty(
            noisy[empty], scaled[empty], single[empty], deviations[empty], self.smoothing
        )
        return np.where(empty, 0.0, mean), np.where(empty, 0.0, variance)

    def _judge(self, estimates: FloatArray) -> Posterior:
        """What is known of each leaf, in deviations of its count."""
        leaves, expectation = self.leaves, self.expectation
        noisy, deviations = self.counted
        above = np.maximum(self.tree.parent[leaves], 0)
        expected = np.zeros((2, len(leaves)))
        for weight, measure in zip(
            expectation.weights(above, estimates), expectation.measures, strict=True
        ):
            if weight.any():
                expected += weight * self._near_and_far(estimates, measure)
        near, far = expected / deviations
        return judge_leaves(noisy, near, far, expectation.level[leaves], estimates[self.around] > 0)

    def _near_and_far(self, estimates: FloatArray, measure: FloatArray) -> FloatArray:
        """The records of each leaf if it were as dense as what lies beside it, and as the land around it."""
        leaves, around = self.leaves, self.around
        beside = self.neighbours[leaves].reshape(len(leaves), -1)
        other = beside != leaves[:, None]
        density = np.where(other, (estimates / measure)[beside], 0.0).sum(axis=1)
        near = density / np.maximum(other.sum(axis=1), 1)
        rest = measure[around] - measure[leaves]
        far = np.divide(
            estimates[around] - estimates[leaves], rest, out=np.zeros(len(leaves)), where=rest > 0
        )
        return np.stack([near, far]) * measure[leaves]

    def _add_up(self, known: Posterior) -> None:
        """Measured counts and variances of fine regions, from what is known of their leaves and their own counts."""
        (own, own_variances), (_, deviations) = self.own, self.counted
        own, own_variances = own.copy(), own_variances.copy()
        own[self.leaves] = known.mean * deviations
        own_variances[self.leaves] = known.variance * deviations**2
        measured, variances = add_up(self.layers, own, own_variances)
        fine = self.fine
        self._take(
            np.where(fine, measured, self.measured), np.where(fine, variances, self.variances)
        )
        self.single = self.single & ~fine
