"""A map and zones that agree: one estimate from the noisy counts of both. Public: no data, no noise.

The same records were counted twice: on a map of boxes, and by zones. Both counts are noisy, and independent of each
other. Leaves of the map are cut in halves along the borders of zones, until each lies in one zone by the middles of
its cells. So a zone is a sum of leaves, and what is wanted are leaves that fit both.

Let x be the leaves as the map has them, with errors of covariance C, and t the zones, with errors of covariance R. With A,
which adds up the leaves of each zone, the best linear correction is that of a Kalman filter:

    x + C A' y,    where (A C A' + R) y = t - A x.

Errors of both are those of trees. By least squares (htf.estimation.least_squares) the error of a region is a share of its
parent's and a part of its own, and those of siblings add up to zero. So C v takes one walk up the tree and one
down, and conjugate gradients need only that: nothing of the size of C is ever made. Inside a leaf nothing was counted. There
the records are taken to be even, give or take (`UNEVEN`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from htf.errors import InputError
from htf.estimation.least_squares import SiblingLayer, TreeCounts, sibling_layers, sum_upwards
from htf.frame.domain import FloatArray, IntArray
from htf.frame.grids import sum_boxes, summed_area_table
from htf.frame.halving import Neighbourhood, halve_often
from htf.frame.tree import RegionTree

# The fact of a map that says how many regions it had before zones cut it.
COUNTED_REGIONS = "counted_regions"
INSIDE_ZONES = "inside-zones"  # the name of this estimator in a release of a map
WITH_MAP = "with-map"  # and in that of its zones
OWN_EPSILON = "own_epsilon"  # the fact of such zones that says what their own counts were given
# The variance of a part of a leaf, in squares of its count, and in its count: measured (docs/measurements.md).
UNEVEN, ALONE = 5.0, 10.0
BEYOND_NOISE = 1.5  # times: estimates of a map are also wrong because it takes small counts for noise; measured, too
SMALLEST_RESIDUAL = 1e-9  # of the first: then another machine finds the same to many digits
MOST_STEPS = 2000


def cut_along_zones(
    tree: RegionTree, leaves: IntArray, zone_of_cell: IntArray
) -> tuple[IntArray, IntArray]:
    """Halve leaves in their turns until each lies in one zone. Returns them, and the index of the leaf that each is of."""
    changes = [_running_changes(zone_of_cell, axis) for axis in (0, 1)]
    turns = Neighbourhood(tree, all_boxes=False).turns[leaves]
    parts, owner, turn = leaves, np.arange(len(leaves)), turns.copy()
    whole: list[IntArray] = []
    owners: list[IntArray] = []
    while len(parts):
        mixed = _are_mixed(changes, tree.low[parts], tree.high[parts])
        whole.append(parts[~mixed])
        owners.append(owner[~mixed])
        parts, owner, turn = parts[mixed], owner[mixed], turn[mixed]
        halves, of = halve_often(tree, parts, turn, np.ones(len(parts), dtype=np.int64))
        parts, owner, turn = halves, owner[of], turn[of] + 1
    return np.concatenate(whole), np.concatenate(owners)


def counted_tree(tree: RegionTree, counted: int) -> tuple[RegionTree, IntArray]:
    """The tree before zones cut it, of so many regions, and its leaves."""
    if not 0 < counted <= len(tree):
        raise InputError(f"a tree of {len(tree):,} regions cannot have had {counted:,} before")
    parent, low, high = (part[:counted] for part in (tree.parent, tree.low, tree.high))
    found = RegionTree.from_arrays(tree.high[0].tolist(), parent, low, high)
    leaves = np.flatnonzero(found.slabs == 0)
    return found, leaves[np.argsort(found.preorder()[leaves])]


def regions_before(tree: RegionTree, regions: IntArray, counted: int) -> IntArray:
    """The region below `counted` that each region lies in."""
    found = regions.copy()
    while np.any(new := found >= counted):
        found[new] = tree.parent[found[new]]
    return found


def _running_changes(zones: IntArray, axis: int) -> IntArray:
    """How many cells differ in their zone from the one before them along an axis, added up from the corner on."""
    differ = np.diff(zones, axis=axis, prepend=zones.take([0], axis=axis)) != 0
    return summed_area_table(differ.astype(np.int64))


def _are_mixed(changes: list[IntArray], low: IntArray, high: IntArray) -> np.ndarray:
    """Whether boxes hold cells of different zones."""
    found = np.zeros(len(low), dtype=bool)
    for axis, sums in enumerate(changes):
        first = low.copy()
        first[:, axis] += 1  # a change at the first cell is one from outside
        found |= sum_boxes(sums, first, high) > 0
    return found


@dataclass(frozen=True, eq=False)
class TreeErrors:
    """The errors of least-squares estimates of a tree."""

    layers: list[SiblingLayer]
    below: FloatArray  # the variance of each region from the counts in it and below it

    @classmethod
    def of(
        cls, tree: RegionTree, counts: TreeCounts, of_parts: FloatArray | None = None
    ) -> TreeErrors:
        """Where the last regions of the tree were not counted, `of_parts` has their variances."""
        below = sum_upwards(tree, counts)[1]
        if of_parts is not None:
            below[len(tree) - len(of_parts) :] = of_parts
        if not np.isfinite(below).all():
            raise InputError("some regions were not counted, nor all that is in them")
        return cls(sibling_layers(tree), below)

    def times(self, vector: FloatArray) -> FloatArray:
        """The covariance matrix of all regions, times a vector that has one number for each of them."""
        carried = vector.copy()
        for layer in reversed(self.layers):
            share, _ = self._shares(layer)
            carried[layer.parents] += layer.sum(share * carried[layer.regions])
        found = np.zeros(len(vector))
        found[0] = self.below[0] * carried[0]
        for layer in self.layers:
            share, below = self._shares(layer)
            own = carried[layer.regions]
            middle = layer.sum(share * own)[layer.group]
            found[layer.regions] = share * found[layer.parents][layer.group] + below * (
                own - middle
            )
        return found

    def _shares(self, layer: SiblingLayer) -> tuple[FloatArray, FloatArray]:
        """How much of the error of its parent each region has, and its own variance."""
        below = self.below[layer.regions]
        sums = layer.sum(below)
        return below / np.where(sums > 0, sums, 1.0)[layer.group], below


def map_errors(
    tree: RegionTree, counted: int, counts: TreeCounts, estimates: FloatArray
) -> TreeErrors:
    """The errors of a map, whose regions from `counted` on are parts of leaves in which nothing was counted."""
    even = np.maximum(estimates[counted:], 0.0)
    found = TreeErrors.of(tree, counts, UNEVEN * even**2 + ALONE * even)  # what is empty stays so
    return replace(found, below=BEYOND_NOISE * found.below)


def fit_to_zones(
    leaves: IntArray,
    estimates: FloatArray,
    zones: IntArray,
    errors: TreeErrors,
    wanted: FloatArray,
    error_of_zones: Callable[[FloatArray], FloatArray],
) -> FloatArray:
    """Estimates of the leaves that fit the counts of zones, and are not negative.

    `zones` has the zone of each leaf, `wanted` the count of each zone, and `error_of_zones` multiplies by R.
    """
    number, size = len(wanted), len(errors.below)

    def corrected(weights: FloatArray) -> FloatArray:
        vector = np.zeros(size)
        vector[leaves] = weights[zones]
        return errors.times(vector)[leaves]

    def matrix(weights: FloatArray) -> FloatArray:
        return np.bincount(zones, corrected(weights), minlength=number) + error_of_zones(weights)

    gap = wanted - np.bincount(zones, estimates, minlength=number)
    found = estimates + corrected(_solve(matrix, gap))
    return _not_negative(found, zones, number)


def _not_negative(found: FloatArray, zones: IntArray, number: int) -> FloatArray:
    """Negative leaves become 0, and the others of their zone give what that takes."""
    sums = np.maximum(np.bincount(zones, found, minlength=number), 0.0)
    cut = np.maximum(found, 0.0)
    have = np.bincount(zones, cut, minlength=number)
    return np.asarray(cut * np.divide(sums, have, out=np.zeros(number), where=have > 0)[zones])


def _solve(matrix: Callable[[FloatArray], FloatArray], right: FloatArray) -> FloatArray:
    """Conjugate gradients (Hestenes and Stiefel, 1952), for a matrix that is symmetric and positive."""
    found, left = np.zeros(len(right)), right.copy()
    direction, size = left.copy(), float(left @ left)
    enough = size * SMALLEST_RESIDUAL**2
    for _ in range(MOST_STEPS):
        if size <= enough:
            break
        product = matrix(direction)
        step = size / float(direction @ product)
        found += step * direction
        left -= step * product
        size, before = float(left @ left), size
        direction = left + (size / before) * direction
    return found
