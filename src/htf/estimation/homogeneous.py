"""Estimates all regions of a tree of halves from noisy counts. Public: no data, no noise.

From the top down, the records of a region are divided between its two halves. The *expected* count of a
half comes from the regions beside it, by linear interpolation of their densities. A density is records per
cell or, with a public prior (htf.estimation.prior), per unit of the prior; and along axes beyond the map's
two, such as the hour, per unit of what the whole map holds there. The *measured* count of a half comes from
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

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from htf.errors import InputError
from htf.estimation.leaf_counts import judge_leaves
from htf.estimation.least_squares import UNKNOWN, TreeCounts, add_up, sibling_layers
from htf.estimation.shrinkage import LOST, SMOOTHING, SMOOTHING_PEOPLE, LearntCounts, Posterior
from htf.frame.domain import FloatArray, IntArray
from htf.frame.halving import Neighbourhood, Step, halve_often
from htf.frame.tree import RegionTree

if TYPE_CHECKING:
    from htf.estimation.prior import Prior

FROM_LEAVES = "homogeneous-from-leaves"  # the name of this estimator in a release
HOMOGENEOUS = "homogeneous"  # and of the one before it, which did not judge leaves first
ON_MAP = FROM_LEAVES, HOMOGENEOUS  # both interpolate between leaves
PULL = 0.25  # the middle of a half lies a quarter of the way to that of the box beside it
COARSE = 1 / 4096  # of the map: larger boxes are found empty or not, smaller ones only shrunk
FINE = 1 / 256  # of the map: what smaller boxes hold is added up from what is known of their leaves
LOST_FROM_LEAVES = 1.5  # deviations, as shrinkage.LOST: what is added up like that has smaller ones
AROUND = 10  # halvings: the region that much larger shows how full the land around a leaf is
FIRST_DEVIATIONS = 1.5  # in the first pass, before anything is learnt, less is taken for noise
PASSES = 2  # that learn; a third changes little
TURNS_OF_A_LEVEL = 2  # boxes that were halved so many times more are told apart
FINER = 4  # halvings of a leaf in which its density is interpolated
STEP = 2.0**-10  # records: estimates are multiples of it, so that sums are exact in any order
HALF = 0.5 - 2.0**-12  # of a step
LARGEST = 2.0**100  # records: far beyond any sum of counts, and nothing overflows
MOST_PARTS = 2**21  # what a laptop holds; beyond, the leaves that would gain least stay whole
EVEN_SHARE = 0.05  # of what is expected along a further axis: no part of it is thought empty
LEAST_MOVED = 0.5  # records that interpolation must move for a leaf to be divided

# What is made of halves: a mean and a variance for each, given what is expected of them.
Rule = Callable[[IntArray, FloatArray], tuple[FloatArray, FloatArray]]


def estimate_regions(
    tree: RegionTree,
    counts: TreeCounts,
    prior: Prior | None = None,
    shares: int = 1,
    estimator: str = FROM_LEAVES,
) -> tuple[FloatArray, FloatArray]:
    """Estimates of all regions of a tree of halves: none is negative, and halves add up. The variances are those of
    `least_squares.sum_upwards`.

    Where the counts are of shares of people, `shares` is the number of them that one person has.
    """
    smoothing = SMOOTHING if shares == 1 else SMOOTHING_PEOPLE * shares
    kind = _FromLeaves if estimator == FROM_LEAVES else _Estimation
    estimation = kind(tree, counts, prior, smoothing)
    return estimation.run(), estimation.below


def measures(tree: RegionTree, prior: Prior | None, regions: IntArray | None = None) -> FloatArray:
    """The measure that densities of regions (by default all) are divided by: cells, or the prior."""
    if prior is None:
        return tree.cells(regions).astype(np.float64)
    return prior.measure(tree, np.arange(len(tree)) if regions is None else regions)


def interpolate(
    tree: RegionTree, leaves: IntArray, estimates: FloatArray, prior: Prior | None = None
) -> tuple[RegionTree, FloatArray, IntArray]:
    """A finer tree, in which the density of leaves leans towards fuller neighbours, and its estimates.

    The count of a leaf is kept. Inside the leaf the density is interpolated, with no more parts than
    needed: a leaf stays whole if it is empty, or level with its surroundings and its prior. For each
    part of a leaf, the last array has the index of that leaf in `leaves`; for other regions it has -1.
    """
    if not np.all((estimates >= 0) & (estimates < LARGEST)) or np.any(tree.slabs[leaves] > 0):
        raise InputError(
            "leaves must not be cut, and their counts must be neither negative nor absurdly large"
        )
    finer, leaf = _divide(tree, leaves, estimates, prior)
    measure = measures(finer, prior)
    found = np.concatenate([estimates, np.zeros(len(finer) - len(tree))])
    for step in Neighbourhood(finer, all_boxes=False).steps:
        new = step.among(step.left >= len(tree))
        total = found[new.cut]
        left = _rounded(total * _expected_share(new, found, measure))
        found[new.left], found[new.left + 1] = left, total - left
    return finer, found, leaf


def _divide(
    tree: RegionTree, leaves: IntArray, estimates: FloatArray, prior: Prior | None
) -> tuple[RegionTree, IntArray]:
    """The finer tree and, for each of its regions that is a part of a leaf, the index of that leaf.

    Parts are divided again while the prior is uneven in them: a large leaf may hold much of its detail.
    """
    finer, turns = tree.copy(), Neighbourhood(tree)
    measure = measures(tree, prior)
    moved = _moved_records(turns, leaves, estimates, measure)
    parts, owner = leaves, np.arange(len(leaves))
    found: list[tuple[IntArray, IntArray]] = []  # parts that stay whole, and their leaves
    records, had = estimates[leaves], turns.turns[leaves]
    while len(parts):
        room = max(MOST_PARTS - len(parts) - sum(len(kept) for kept, _ in found), 0) // 2**FINER
        if prior is not None:
            full = _largest(records, LEAST_MOVED, room)
            by_prior = _moved_by_prior(finer, parts[full], had[full], records[full], prior)
            moved[full] = np.maximum(moved[full], by_prior)
        some = _largest(moved, LEAST_MOVED, room)
        found.append((parts[~some], owner[~some]))
        cut, steps = parts[some], np.full(int(some.sum()), FINER)
        finer.make_room(len(cut) * (2 ** (FINER + 1) - 2))
        parts, of = halve_often(finer, cut, had[some], steps)
        owner = owner[some][of]
        if prior is None:
            found.append((parts, owner))
            break
        share = measures(finer, prior, parts) / measures(finer, prior, cut)[of]
        records, moved = records[some][of] * share, np.zeros(len(parts))
        had = had[some][of] + FINER
    leaf = np.full(len(finer), -1)
    for some_parts, owners in found:
        leaf[some_parts] = owners
    return finer, leaf


def _moved_records(
    turns: Neighbourhood, leaves: IntArray, estimates: FloatArray, measure: FloatArray
) -> FloatArray:
    """The records that interpolation would move from one half of a leaf to the other, at most."""
    density = estimates / measure
    beside = density[turns.neighbours[leaves]]  # leaf, axis, end
    slope = np.abs(beside[:, :, 1] - beside[:, :, 0]) * (turns.widths(leaves) > 1)
    full = 2 * density[leaves] + PULL * (beside.sum(axis=2).max(axis=1) - 2 * density[leaves])
    share = np.divide(PULL * slope.max(axis=1), full, out=np.zeros(len(leaves)), where=full > 0)
    return np.asarray(estimates[leaves] * share / 2)


def _moved_by_prior(
    tree: RegionTree, parts: IntArray, turns: IntArray, records: FloatArray, prior: Prior
) -> FloatArray:
    """The records of each part that lie elsewhere by the prior than if they were spread evenly."""
    trial = tree.copy()
    pieces, owners = halve_often(trial, parts, turns, np.full(len(parts), FINER))
    expected = prior.measure(trial, pieces) / prior.measure(tree, parts)[owners]
    even = trial.cells(pieces) / tree.cells(parts)[owners]
    apart = np.bincount(owners, np.abs(expected - even), minlength=len(parts))
    return np.asarray(records * apart / 2)


def _largest(values: FloatArray, least: float, most: int) -> NDArray[np.bool_]:
    """The values that are at least `least`, or the `most` largest of them if there are more."""
    some = values >= least
    if np.count_nonzero(some) > most:
        order = np.argsort(-values, kind="stable")
        some[order[most:]] = False
    return np.asarray(some)


def _expected_share(step: Step, estimates: FloatArray, measure: FloatArray) -> FloatArray:
    """The share of each region that its lower half is expected to have.

    The density in the middle of a half is interpolated between the middle of the region and that of
    the region beside it. At the edge of the map a region is beside itself.
    """
    density = estimates[step.cut] / measure[step.cut]
    before = estimates[step.before] / measure[step.before]
    after = estimates[step.after] / measure[step.after]
    left = measure[step.left] * (density + PULL * (before - density))
    right = measure[step.left + 1] * (density + PULL * (after - density))
    even = measure[step.left] / measure[step.cut]
    return np.divide(left, left + right, out=even, where=left + right > 0)


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


def _rounded(estimates: FloatArray) -> FloatArray:
    """Round to the nearest step, and half-way values down, even if the last digits miss half-way.

    Halves of equal regions often lie half-way, and the last digits depend on the processor.
    """
    return np.asarray(np.floor(estimates / STEP + HALF) * STEP)


def _further_densities(tree: RegionTree, measured: FloatArray, prior: Prior | None) -> FloatArray:
    """The density of each region due to its place along the axes beyond the first two, learnt from the
    whole map, relative to what would be expected otherwise.

    The spread of records over the hours of a day is known far better for the whole map than for a region. A
    region compared only with those beside it would be drawn towards an even day, and all regions in the same
    direction. Along the map's own axes, finding out which places are full is the regions' task.
    """
    densities = np.ones(len(tree))
    leaves = np.flatnonzero(tree.slabs == 0)
    for axis in range(2, tree.dimensions):
        low, high = tree.low[:, axis], tree.high[:, axis]
        edges = np.unique(np.append(low[leaves], high[leaves]))  # those of all other regions too
        first, last = np.searchsorted(edges, low), np.searchsorted(edges, high)
        of_cells = measured[leaves] / (high - low)[leaves]
        steps = np.bincount(first[leaves], of_cells, minlength=len(edges))
        steps -= np.bincount(last[leaves], of_cells, minlength=len(edges))
        held = np.maximum(np.cumsum(steps)[:-1], 0.0) * np.diff(edges)
        if held.sum() > 0:
            expected = _slab_measures(tree, axis, edges, prior)
            found = EVEN_SHARE * expected + (1 - EVEN_SHARE) * held / held.sum()
            before = np.cumsum(np.pad([expected, found], [(0, 0), (1, 0)]), axis=1)
            otherwise, here = before[:, last] - before[:, first]
            densities *= here / otherwise
    return densities


def _slab_measures(tree: RegionTree, axis: int, edges: IntArray, prior: Prior | None) -> FloatArray:
    """The share of the whole map that is expected between each two edges along an axis."""
    slabs, inner = RegionTree(tree.high[0].tolist()), edges[1:-1]
    root = np.zeros(1, dtype=np.int64)
    parts = slabs.cut(root, np.array([axis]), inner, np.array([len(inner)])) if len(inner) else root
    found = measures(slabs, prior, parts)
    return np.asarray(found / found.sum())


class _Estimation:
    """The passes from the top down, and the values they share."""

    lost = LOST

    def __init__(
        self,
        tree: RegionTree,
        counts: TreeCounts,
        prior: Prior | None,
        smoothing: float,
    ) -> None:
        self.smoothing = smoothing
        self.own, self.layers = counts.by_region(tree), sibling_layers(tree)
        self.measured, self.variances = add_up(self.layers, *self.own)
        self.below = self.variances
        if np.any(self.variances == UNKNOWN):
            raise InputError("a region without any count in it or below it cannot be estimated")
        turns = Neighbourhood(tree)
        self.tree, self.steps, self.neighbours = tree, turns.steps, turns.neighbours
        self.level = turns.turns // TURNS_OF_A_LEVEL
        cells = tree.cells().astype(np.float64)
        self.measure = measures(tree, prior)
        self.measure *= _further_densities(tree, self.measured, prior)
        self.deviations = np.sqrt(self.variances)
        self.noisy = self.measured / self.deviations
        self.single: NDArray[np.bool_] = tree.slabs == 0  # the noise is that of a count
        self.coarse: NDArray[np.bool_] = cells >= COARSE * cells[0]

    def run(self) -> FloatArray:
        estimates, expected = self._sweep(self._first_rule)
        for _ in range(PASSES):
            learnt = self._learn(estimates, expected)
            estimates, expected = self._sweep(partial(self._rule, learnt))
        return estimates

    def _sweep(self, rule: Rule) -> tuple[FloatArray, FloatArray]:
        """Estimates, and the expected count of each region before its own counts are used."""
        estimates, expected = np.zeros(len(self.tree)), np.zeros(len(self.tree))
        estimates[0] = expected[0] = _rounded(np.maximum(self.measured[0], 0.0))
        for step in self.steps:
            total = estimates[step.cut]
            share = _expected_share(step, estimates, self.measure)
            halves = np.stack([step.left, step.left + 1])
            expected[halves] = guess = np.stack([total * share, total * (1 - share)])
            left = _rounded(_share_out(total, *rule(halves, guess), guess))
            estimates[halves] = left, total - left
        return estimates, expected

    def _first_rule(self, halves: IntArray, _: FloatArray) -> tuple[FloatArray, FloatArray]:
        clear = self.noisy[halves] > FIRST_DEVIATIONS
        mean, variance = self.measured[halves], self.variances[halves]
        return np.where(clear, mean, 0.0), np.where(clear, variance, 0.0)

    def _learn(self, estimates: FloatArray, expected: FloatArray) -> LearntCounts:
        """Learn from all regions but those inside an empty one, in which nothing is expected."""
        inside = 1 + np.flatnonzero(estimates[self.tree.parent[1:]] > 0)
        scaled = expected[inside] / self.deviations[inside]
        return LearntCounts(self.noisy[inside], scaled, self.single[inside], self.level[inside])

    def _rule(
        self, learnt: LearntCounts, halves: IntArray, guess: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        deviations = self.deviations[halves]
        noisy, scaled, single = self.noisy[halves], guess / deviations, self.single[halves]
        known = learnt.posterior(noisy, scaled, single, self.level[halves])
        empty = self.coarse[halves]
        empty[empty] = learnt.is_empty(
            noisy[empty], scaled[empty], single[empty], deviations[empty], self.smoothing, self.lost
        )
        mean, variance = known.mean * deviations, known.variance * deviations**2
        return np.where(empty, 0.0, mean), np.where(empty, 0.0, variance)


class _FromLeaves(_Estimation):
    """The same, with what small regions hold added up from what is known of their leaves."""

    lost = LOST_FROM_LEAVES

    def __init__(
        self, tree: RegionTree, counts: TreeCounts, prior: Prior | None, smoothing: float
    ) -> None:
        super().__init__(tree, counts, prior, smoothing)
        cells = tree.cells().astype(np.float64)
        self.fine: NDArray[np.bool_] = cells <= FINE * cells[0]
        self.fine[0] = False
        self.leaves = np.flatnonzero(tree.slabs == 0)
        self.around = self.leaves
        for _ in range(AROUND):
            self.around = np.maximum(tree.parent[self.around], 0)
        self.counted = self.noisy[self.leaves], self.deviations[self.leaves]

    def _learn(self, estimates: FloatArray, expected: FloatArray) -> LearntCounts:
        self._add_up(self._judge(estimates))
        return super()._learn(estimates, expected)

    def _judge(self, estimates: FloatArray) -> Posterior:
        """What is known of each leaf, in deviations of its count."""
        leaves, around, measure = self.leaves, self.around, self.measure
        noisy, deviations = self.counted
        beside = self.neighbours[leaves].reshape(len(leaves), -1)
        other = beside != leaves[:, None]
        density = np.where(other, (estimates / measure)[beside], 0.0).sum(axis=1)
        near = density / np.maximum(other.sum(axis=1), 1)
        rest = measure[around] - measure[leaves]
        far = np.divide(
            estimates[around] - estimates[leaves], rest, out=np.zeros(len(leaves)), where=rest > 0
        )
        scale = measure[leaves] / deviations
        inside = estimates[around] > 0
        return judge_leaves(noisy, near * scale, far * scale, self.level[leaves], inside)

    def _add_up(self, known: Posterior) -> None:
        """Measured counts and variances of fine regions, from what is known of their leaves and their own counts."""
        (own, own_variances), (_, deviations) = self.own, self.counted
        own, own_variances = own.copy(), own_variances.copy()
        own[self.leaves] = known.mean * deviations
        own_variances[self.leaves] = known.variance * deviations**2
        measured, variances = add_up(self.layers, own, own_variances)
        fine = self.fine
        self.measured = np.where(fine, measured, self.measured)
        self.variances = np.where(fine, variances, self.variances)
        self.deviations = np.sqrt(self.variances)
        self.noisy = self.measured / self.deviations
        self.single = self.single & ~fine

    def _rule(
        self, learnt: LearntCounts, halves: IntArray, guess: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """As before for large regions. For small ones, what was added up has learnt already, and is not pulled
        again; but it may be found empty."""
        mean, variance = super()._rule(learnt, halves, guess)
        stands = self.fine[halves] & (variance > 0)
        return (
            np.where(stands, self.measured[halves], mean),
            np.where(stands, self.variances[halves], variance),
        )
