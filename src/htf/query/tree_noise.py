"""The noise of counts of boxes and polygons that come of least squares on a tree of counts.

After constrained inference (`htf.inference`) the errors of leaves are correlated: what one leaf has
too much its siblings have too little. So the variance of a sum is not the sum of variances. Here it is
exact, and costs time along the edges of what is counted only. docs/proofs/tree-noise.md has the proof of

    alpha_p = sum(alpha_i s_i) / S,    variance = alpha_root^2 V_root + sum over groups of
                                                  sum((alpha_i - alpha_p)^2 s_i),

where s_i is the variance of child i from the counts in it and below it, S the sum of s over a group of
siblings, and alpha of a leaf the share of it that is counted. In a group whose leaves are all counted,
or none of them, every alpha is 1, or 0, and the group adds nothing.

The shares may be any, so a polygon is as good as a box. Where it cuts through a leaf, the records of
the leaf are counted as if they were spread evenly. How wrong that may be is part of the interval. The
model: of n records in a leaf, a part of share w holds a Beta-binomial number, with mean w n and variance

    w (1 - w) (n (1 - kappa) + n^2 kappa).

kappa is 0 where every record falls anywhere, and 1 where all lie in one place. It is learned from pairs
of neighbouring siblings, which the noisy counts tell apart: there the model is about the two parts of
their union. Errors of different leaves are taken as independent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from htf.domain import FloatArray, IntArray
from htf.errors import InputError
from htf.homogeneous import HOMOGENEOUS
from htf.inference import (
    LEAST_SQUARES,
    NONNEGATIVE,
    UNKNOWN,
    TreeCounts,
    count_variances,
    least_squares,
    sum_upwards,
)
from htf.query.index import POLYGONS_AT_A_TIME, run_all
from htf.query.intervals import continuous_half_widths, noise_fourth_cumulants, single_half_widths
from htf.tree import NO_REGION, RegionTree

if TYPE_CHECKING:
    from htf.query.polygons import Outlines

# Estimates that are made from all counts of a tree, whatever bias they take on in the end.
ESTIMATORS = (LEAST_SQUARES, NONNEGATIVE, HOMOGENEOUS)
NOTHING_LEARNED = 1.0  # kappa where no counts stand clear of the noise: records may lie anywhere
CLEAR = 5.0  # standard deviations
CHUNK = 512  # boxes that a thread takes at a time; one takes up to a millisecond


@dataclass(frozen=True, slots=True, eq=False)
class TreeMeasures:
    """For each box or polygon: what least squares answer, the variances of its two errors, and how far the
    true count may be from the answer, in 95 of 100 cases."""

    estimate: FloatArray
    noise_variance: FloatArray
    spread_variance: FloatArray
    half_width: FloatArray


class TreeNoise:
    """Answers of least squares and their errors, for shapes over the leaves of a tree of counts."""

    __slots__ = ("_alone", "_box", "_depth", "_links", "_root_variance", "_values", "unevenness")

    def __init__(self, tree: RegionTree, counts: TreeCounts, leaves: IntArray) -> None:
        estimates, variances = least_squares(tree, counts)
        unknown = int(np.sum(variances[leaves] == UNKNOWN))
        if unknown:
            raise InputError(f"the counts do not determine {unknown} of {len(leaves)} leaves")
        _, below = sum_upwards(tree, counts)
        groups = _Groups(tree, leaves, below)
        cumulants = _fourth_cumulants(tree, counts, groups)
        self.unevenness = learn_unevenness(tree, groups, estimates, variances)
        # Where subtrees lie together, a walk through one stays within fast memory.
        order = np.argsort(np.append(-1, tree.preorder()[tree.parent[1:]]), kind="stable")
        self._alone = _counted_once(tree, counts, variances, groups)[order]
        self._root_variance = float(variances[0])
        self._depth = int(tree.depth.max()) + 1
        self._box, self._links, self._values = _tables(
            tree, groups, estimates, cumulants, self.unevenness, order
        )

    def measure(self, query_low: FloatArray, query_high: FloatArray) -> TreeMeasures:
        """For each box `[query_low, query_high)`, in cell coordinates."""
        from htf.query.kernels import measure_tree

        table = np.empty((len(query_low), 6))

        def run(start: int) -> None:
            rows = slice(start, start + CHUNK)
            # Copies, because a kernel is compiled anew for arrays of another layout.
            low = np.array(query_low[rows], dtype=np.float64, order="C")
            high = np.array(query_high[rows], dtype=np.float64, order="C")
            measure_tree(low, high, *self._walked(), table[rows])

        run_all(run, range(0, len(table), CHUNK))
        return self._measures(table)

    def measure_polygons(self, outlines: Outlines) -> TreeMeasures:
        """The same for polygons, with the share of each leaf that they cover."""
        from htf.query.polygon_kernels import measure_tree_polygons

        table = np.empty((len(outlines), 6))
        boxes = [np.ascontiguousarray(edges) for edges in np.hsplit(self._box, 2)]
        rest = self._walked()[1:]

        def run(start: int) -> None:
            chunk = start, min(start + POLYGONS_AT_A_TIME, len(table))
            measure_tree_polygons(*outlines.arrays, *chunk, *boxes, *rest, table)

        run_all(run, range(0, len(table), POLYGONS_AT_A_TIME))
        return self._measures(table)

    def _walked(self) -> tuple[FloatArray, IntArray, FloatArray, float, int]:
        """What the kernels walk over."""
        return self._box, self._links, self._values, self._root_variance, self._depth

    def _measures(self, table: FloatArray) -> TreeMeasures:
        """From what the kernels found, to how far the true count may be off."""
        from htf.query.kernels import FOURTH, LARGEST, NOISE, ONLY_LEAF, RAW, SPREAD

        noise, spread, largest = table[:, NOISE], table[:, SPREAD], table[:, LARGEST]
        half = continuous_half_widths(noise + spread, table[:, FOURTH]) + largest / 2
        only = table[:, ONLY_LEAF].astype(np.int64)
        exact = (only != NO_REGION) & (spread == 0) & self._alone[only]
        half[exact] = single_half_widths(noise[exact], largest[exact])
        return TreeMeasures(table[:, RAW], noise, spread, half)


class _Groups:
    """The tree down to the leaves of the release, and what groups of siblings have in common."""

    def __init__(self, tree: RegionTree, leaves: IntArray, below: FloatArray) -> None:
        parent, size = tree.parent[1:], len(tree)
        unknown = below == UNKNOWN
        self.is_leaf = np.zeros(size, dtype=bool)
        self.is_leaf[leaves] = True
        self.known = np.where(unknown, 0.0, below)  # s, and 0 for a region nothing is known of
        self.sums = np.bincount(parent, self.known[1:], minlength=size)
        # The one child nothing is known of. Two would leave a leaf undetermined.
        self.pivot = np.full(size, NO_REGION, dtype=np.int64)
        left_over = np.flatnonzero(unknown[1:]) + 1
        self.pivot[tree.parent[left_over]] = left_over
        # What the sum of the children weighs in z, as `inference` combines it with the own count.
        self.weight = np.zeros(size)
        summed = (self.sums > 0) & (self.pivot == NO_REGION)
        np.divide(below, self.sums, out=self.weight, where=summed)


def learn_unevenness(
    tree: RegionTree, groups: _Groups, estimates: FloatArray, variances: FloatArray
) -> float:
    """kappa from neighbouring siblings i and j, of all sizes.

    With t = x_i + x_j and i's share a of their cells, d = x_i - a t has the variance
    a (1 - a) (t (1 - kappa) + t^2 kappa) by the model, and that of its noise besides. So each pair
    has an unbiased say, of which the average is taken. Pairs weigh the same, whatever their counts:
    by t^2 the few of the largest regions would decide for all.
    """
    left = np.flatnonzero(tree.parent[1:-1] == tree.parent[2:]) + 1
    left = left[(groups.pivot[tree.parent[left]] == NO_REGION) & (variances[left] < UNKNOWN)]
    parent, right = tree.parent[left], left + 1
    share = tree.cells(left) / (tree.cells(left) + tree.cells(right))

    def noise(of_left: FloatArray, of_right: FloatArray) -> FloatArray:
        s_left, s_right, known = groups.known[left], groups.known[right], groups.sums[parent]
        tilt = (of_left * s_left + of_right * s_right) / known
        own = of_left**2 * s_left + of_right**2 * s_right
        return np.asarray(own + tilt**2 * (variances[parent] - known))

    total = estimates[left] + estimates[right]
    total_noise = noise(np.ones(len(left)), np.ones(len(left)))
    off = (1 - share) * estimates[left] - share * estimates[right]
    split = share * (1 - share)
    seen = off**2 - noise(1 - share, -share) - split * total
    most = split * (total**2 - total_noise - total)  # what would be seen if kappa were 1
    clear = (total > CLEAR * np.sqrt(np.maximum(total_noise, 0.0))) & (most > 0)
    if not clear.any():
        return NOTHING_LEARNED
    scale = 1 / total[clear] ** 2
    found = np.sum(seen[clear] * scale) / np.sum(most[clear] * scale)
    return float(np.clip(found, 0.0, 1.0))


def _fourth_cumulants(tree: RegionTree, counts: TreeCounts, groups: _Groups) -> FloatArray:
    """Of the noise in each region's estimate from the counts in it and below it."""
    regions = np.concatenate(counts.regions)
    of_counts = count_variances(np.concatenate(counts.epsilons))
    total = np.bincount(regions, 1 / of_counts, minlength=len(tree))
    parts = (1 / of_counts / total[regions]) ** 4 * noise_fourth_cumulants(of_counts)
    own = np.bincount(regions, parts, minlength=len(tree))
    cumulants = (1 - groups.weight) ** 4 * own
    below = np.zeros(len(tree))
    for layer in reversed(tree.layers(1)):
        cumulants[layer] += groups.weight[layer] ** 4 * below[layer]
        np.add.at(below, tree.parent[layer], cumulants[layer])
    cumulants[0] += groups.weight[0] ** 4 * below[0]
    return np.asarray(cumulants)


def _counted_once(
    tree: RegionTree, counts: TreeCounts, variances: FloatArray, groups: _Groups
) -> NDArray[np.bool_]:
    """Leaves whose estimate is one count, to which no other count adds anything."""
    regions = np.concatenate(counts.regions)
    own = np.zeros(len(tree))
    own[regions] = count_variances(np.concatenate(counts.epsilons))
    once = np.bincount(regions, minlength=len(tree)) == 1
    return np.asarray(groups.is_leaf & once & (variances >= own * (1 - 1e-9)))


def _tables(
    tree: RegionTree,
    groups: _Groups,
    estimates: FloatArray,
    cumulants: FloatArray,
    unevenness: float,
    order: IntArray,
) -> tuple[FloatArray, IntArray, FloatArray]:
    """What the kernel walks over, in the order of columns that it names."""
    from htf.query.kernels import running_sums

    n = np.maximum(estimates, 0.0)
    own = [estimates, groups.known, cumulants]
    values = [
        *own,
        n * (1 - unevenness) + n**2 * unevenness,
        groups.sums,
        np.bincount(tree.parent[1:], cumulants[1:], minlength=len(tree)),
        groups.weight,
        *(running_sums(tree.parent, column) for column in own),
    ]
    ends = groups.is_leaf | (tree.slabs == 0)
    place = np.empty(len(tree), dtype=np.int64)
    place[order] = np.arange(len(tree))
    links = [
        np.where(ends, NO_REGION, place[tree.first_child]),
        tree.slabs,
        tree.axis,
        np.where(groups.pivot == NO_REGION, NO_REGION, place[groups.pivot]),
    ]
    box = np.hstack([tree.low, tree.high]).astype(np.float64)
    return box[order], np.column_stack(links)[order], np.column_stack(values)[order]
