"""What is expected of the two halves of a region, before their own counts are used. Public: no data, no noise.

The density in the middle of a half is interpolated between the region and the one beside it. A density is records per
cell or, with a prior (htf.estimation.prior), per unit of the prior; and along axes beyond the map's two, such as the hour,
per unit of what the whole map holds there. With priors there are several expectations, and they are mixed by
how far each prior is trusted (htf.estimation.trust).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from htf.estimation.prior import Prior
from htf.estimation.trust import CLASSES, DENSITIES, UNEVEN, Evidence
from htf.frame.domain import FloatArray, IntArray
from htf.frame.halving import Step, halving_axes
from htf.frame.tree import RegionTree

PULL = 0.25  # the middle of a half lies a quarter of the way to that of the box beside it
TURNS_OF_A_LEVEL = 2  # boxes that were halved so many times more are told apart
STEP = 2.0**-10  # records: estimates are multiples of it, so that sums are exact in any order
HALF = 0.5 - 2.0**-12  # of a step
EVEN_SHARE = 0.05  # of what is expected along a further axis: no part of it is thought empty


def trust_shape(shape: Sequence[int] | IntArray, priors: int) -> tuple[int, int, int]:
    """Of the table of trust on a map of so many cells: priors, levels, densities."""
    return priors, len(halving_axes(shape)) // TURNS_OF_A_LEVEL + 1, CLASSES


class Expectation:
    """What is expected of halves: as the plain map says, as priors say, or a mix of these."""

    def __init__(
        self,
        tree: RegionTree,
        turns: IntArray,
        priors: Sequence[Prior],
        trust: FloatArray | None = None,
        measured: FloatArray | None = None,
    ) -> None:
        """`turns` are those of halving that each region has had. `trust` has the weights of priors; None says that they
        are to be learnt. From `measured` counts follows what the whole map holds along further axes."""
        self.tree, self.level = tree, turns // TURNS_OF_A_LEVEL
        self.measures = [measures(tree, prior) for prior in (None, *priors)]
        if measured is not None:
            for place, prior in enumerate((None, *priors)):
                self.measures[place] *= further_densities(tree, measured, prior)
        self.learns = trust is None and len(priors) > 0
        shape = trust_shape(tree.high[0], len(priors))
        self.trust = np.zeros(shape) if trust is None else trust

    def weights(self, regions: IntArray, estimates: FloatArray) -> FloatArray:
        """Of the plain map and of each prior, inside these regions."""
        if len(self.trust) == 0:
            return np.ones((1, len(regions)))
        return mix(self.trust, self.level[regions], self._density(regions, estimates))

    def share(self, step: Step, estimates: FloatArray) -> FloatArray:
        """The share of each region that its lower half is expected to have."""
        if len(self.trust) == 0:
            return _share_by(step, estimates, self.measures[0])
        found = np.zeros(len(step.cut))
        for weight, measure in zip(self.weights(step.cut, estimates), self.measures, strict=True):
            if weight.any():
                found += weight * _share_by(step, estimates, measure)
        return found

    def learn(
        self,
        steps: Sequence[Step],
        estimates: FloatArray,
        measured: FloatArray,
        variances: FloatArray,
    ) -> None:
        """Find the trust from what was measured in halves, and the variances of that."""
        if not self.learns:
            return
        evidence = Evidence(*self.trust.shape[:2])
        for every in steps:
            step = every.among(estimates[every.cut] > 0)
            total, left, right = estimates[step.cut], step.left, step.left + 1
            even, *by_priors = (_share_by(step, estimates, measure) for measure in self.measures)
            both = variances[left] + variances[right]
            # From both halves, given their sum: the lower one's count, and what the other one leaves.
            lower = variances[right] * measured[left] + variances[left] * (total - measured[right])
            noise = variances[left] * variances[right] / both
            evidence.add(
                self.level[step.cut],
                self._density(step.cut, estimates),
                np.stack([total * (share - even) for share in by_priors]),
                lower / both - even * total,
                noise + UNEVEN * (total * np.minimum(even, 1 - even)) ** 2,
            )
        self.trust = evidence.trust()

    def _density(self, regions: IntArray, estimates: FloatArray) -> IntArray:
        return density_classes(self.tree, regions, estimates[regions], float(estimates[0]))


def mix(trust: FloatArray, level: IntArray, density: IntArray) -> FloatArray:
    """The weights of the plain map and of each prior, given the level and the density of regions."""
    of_priors = trust[:, np.minimum(level, trust.shape[1] - 1), density]
    return np.concatenate([1 - of_priors.sum(axis=0, keepdims=True), of_priors])


def density_classes(
    tree: RegionTree, regions: IntArray, records: FloatArray, of_map: float
) -> IntArray:
    """Whether land is thin, usual or dense, compared with the whole map."""
    cells_of_map = float(tree.cells(np.zeros(1, dtype=np.int64))[0])
    usual = max(of_map, 1.0) / cells_of_map * tree.cells(regions)
    return np.asarray(np.digitize(records / usual, DENSITIES))


def shares_of_pieces(
    tree: RegionTree,
    regions: IntArray,
    pieces: IntArray,
    owners: IntArray,
    weights: FloatArray,
    priors: Sequence[Prior],
) -> FloatArray:
    """The share of its region that each piece is expected to have, if density is even in it by the measures that
    `weights` mix. `owners` are the places of the pieces' regions among `regions`."""
    found = np.zeros(len(pieces))
    for weight, prior in zip(weights, (None, *priors), strict=True):
        if weight.any():
            whole = measures(tree, prior, regions)
            found += weight[owners] * measures(tree, prior, pieces) / whole[owners]
    return found


def rounded(estimates: FloatArray) -> FloatArray:
    """Round to the nearest step, and half-way values down, even if the last digits miss half-way.

    Halves of equal regions often lie half-way, and the last digits depend on the processor.
    """
    return np.asarray(np.floor(estimates / STEP + HALF) * STEP)


def measures(tree: RegionTree, prior: Prior | None, regions: IntArray | None = None) -> FloatArray:
    """The measure that densities of regions (by default all) are divided by: cells, or the prior."""
    if prior is None:
        return tree.cells(regions).astype(np.float64)
    return prior.measure(tree, np.arange(len(tree)) if regions is None else regions)


def _share_by(step: Step, estimates: FloatArray, measure: FloatArray) -> FloatArray:
    """The share of the lower halves, with densities by one measure.

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


def further_densities(tree: RegionTree, measured: FloatArray, prior: Prior | None) -> FloatArray:
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
