"""Counts of boxes and polygons, with intervals, for estimates that use every count in the tree.

After constrained inference (`htf.estimation.least_squares`) the errors of leaves are correlated: where one leaf
has too much, its siblings have too little. So the variance of a sum is not the sum of variances. This module
computes it exactly, and only the edges of a query cost time. docs/proofs/tree-noise.md has the proof of

    alpha_p = sum(alpha_i s_i) / S,    variance = alpha_root^2 V_root + sum over groups of
                                                  sum((alpha_i - alpha_p)^2 s_i),

where s_i is the variance of child i from the counts in it and below it, S the sum of s over a group of
siblings, and alpha of a leaf the share of it that is counted. In a group whose leaves are all counted,
or none of them, every alpha is 1, or 0, and the group adds nothing.

The shares may take any value, so polygons work just as boxes do. Where a query cuts through a leaf, the
records of the leaf are counted as if they were spread evenly. The interval includes the error of that
assumption. Its model: of n records in a leaf, a part of share w holds a Beta-binomial number, with mean
w n and variance

    w (1 - w) (n (1 - kappa) + n^2 kappa).

kappa is 0 where records are spread independently, and 1 where all lie in one place. It is learned from pairs
of neighbouring siblings, which have separate noisy counts: there the model describes the two parts of
their union. Errors of different leaves are assumed to be independent.

Many queries are placed where somebody knows of a record. If a part of a leaf is chosen because a record is
in it, parts count in proportion to what they hold, and the expected number is not w n but

    w n + (1 - w) ((1 - kappa) + n kappa),

which is the mean plus the variance divided by the mean. The upper end of the interval has room for that;
the lower end stays where it is for queries placed without the data. There n is what the leaf may hold: the published
count, or more where the noise may hide more. A leaf that was found empty is no place without records for those who know
of one in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from htf.errors import InputError
from htf.estimation.hierarchy import HIERARCHY
from htf.estimation.homogeneous import FROM_LEAVES
from htf.estimation.inside_zones import INSIDE_ZONES, WITH_MAP
from htf.estimation.least_squares import (
    LEAST_SQUARES,
    NONNEGATIVE,
    UNKNOWN,
    TreeCounts,
    least_squares_and_below,
    sum_leaves,
)
from htf.estimation.noise_law import noise_fourth_cumulants
from htf.estimation.worth import AS_COUNTED, Worth
from htf.frame.domain import FloatArray, IntArray
from htf.frame.tree import NO_REGION, RegionTree
from htf.query.columns import COLUMNS
from htf.query.index import POLYGONS_AT_A_TIME, in_chunks, published
from htf.query.tree_kernels import FEW, KAPPA, MEASURES, PIECES, answer_tree, finish_tree

if TYPE_CHECKING:
    from htf.query.polygons import Outlines

# Estimators that use every count in the tree, whatever bias they add in the end.
ESTIMATORS = (LEAST_SQUARES, NONNEGATIVE, FROM_LEAVES, HIERARCHY, INSIDE_ZONES, WITH_MAP)
NOTHING_LEARNED = 1.0  # kappa where no counts stand clear of the noise: records may lie anywhere
CLEAR = 5.0  # standard deviations
FEWEST_PAIRS = 10  # of neighbours of about one size, from which kappa is learnt for small places
# kappa for small places, at least: what is finer than all leaves was not seen. A tree that grew has small leaves where
# many records are, and shows more of it.
LEAST_CLUMPS, LEAST_CLUMPS_OF_GRIDS = 0.5, 0.8
# A place that a record drew holds kappa of its leaf on average, and often more: about a deviation above that.
CLUMPIER = 1.5
# How far the errors of the leaves that a query cuts go together, by the number of axes; measured, not learnt.
TOGETHER, TOGETHER_BEYOND_MAPS = 0.03, 0.06
TOGETHER_WHERE_CUT_BY_DATA = 0.3  # leaves of such trees have their records along one edge
# Where a tree grows by its own counts, those that are too high by chance have more counts below them, so sums are too
# high on average, by so many deviations of the noise: also measured.
GROWN, GROWN_BEYOND_MAPS = 0.3, 0.8
WIDE = 8  # cells of a part: whole cells allow about equal ones then
MOST_EQUAL = 0.9  # of the regions of a tree that is cut without the data
# A record that drew a query adds at most so many deviations of uneven records, divided by a power of 1 - kappa: where
# all sizes show clumps, the covered part may well hold all of the leaf. Chosen by what was measured.
LEAST_LEAN, POWER, LEAST_EVEN = 2.0, 4, 0.2
LINE = 8  # numbers in a line of the processor's fast memory
HALVINGS = 4  # whose parts are visited one by one: that is less work than finding which are touched
CHUNK = 512  # boxes that a thread takes at a time; one takes up to a millisecond
ROWS_AT_ONCE = 2048  # of a table that is filled column by column: so many stay within fast memory


@dataclass(frozen=True, slots=True, eq=False)
class NestedParts:
    """The parts that some leaves are divided into, laid out as `tree_kernels` walks over them.

    Parts halved out of the same region stand together, and may be divided again. `first` and
    `number` say where the parts of each region stand, and `depth` how deep they are nested at most.
    """

    table: FloatArray
    first: IntArray
    number: IntArray
    depth: int

    @classmethod
    def of(cls, tree: RegionTree, finer: RegionTree, held: FloatArray) -> NestedParts:
        """Lay out the regions that `finer` has beyond those of `tree`. `held` is what each holds, as it was
        counted."""
        above, level = np.full(len(finer), NO_REGION), np.zeros(len(finer), dtype=np.int64)
        for layer in finer.layers(len(tree)):
            parent = finer.parent[layer]
            level[layer] = level[parent] + 1
            above[layer] = np.where(level[parent] % HALVINGS == 0, parent, above[parent])
        parts = np.arange(len(tree), len(finer))
        parts = parts[(level[parts] % HALVINGS == 0) | (finer.slabs[parts] == 0)]
        # Regions of `tree` have the same order in both trees; sorting them in `tree` is faster.
        ranks = (tree if level.max() <= HALVINGS else finer).preorder()
        parts = parts[np.argsort(ranks[above[parts]], kind="stable")]
        number = np.bincount(above[parts], minlength=len(finer))
        first = np.full(len(finer), NO_REGION, dtype=np.int64)
        first[above[parts[::-1]]] = np.arange(len(parts))[::-1]  # the first one is written last
        table = _make_table([held, first, number], finer.low, finer.high, parts)
        depth = -(-int(level.max()) // HALVINGS)
        return cls(table, first[: len(tree)], number[: len(tree)], depth)


class TreeIndex:
    """Counts shapes over the leaves of a tree of counts, and also by plain least squares.

    `estimates` are the published counts of the leaves, by default those of least squares. `parts`
    say where in the leaves the records are thought to be, and `grown` whether the counts decided how the tree grew. Both are as published; `counts` are of what was counted,
    such as shares of a person, and `worth` turns answers in these into published ones.
    """

    def __init__(
        self,
        tree: RegionTree,
        counts: TreeCounts,
        leaves: IntArray,
        estimates: FloatArray | None = None,
        parts: NestedParts | None = None,
        worth: Worth = AS_COUNTED,
        *,
        grown: bool = False,
    ) -> None:
        squares, variances, below = least_squares_and_below(tree, counts)
        unknown = int(np.sum(variances[leaves] == UNKNOWN))
        if unknown:
            raise InputError(f"the counts do not determine {unknown} of {len(leaves)} leaves")
        groups = _Groups(tree, leaves, below)
        self._model = learn_model(tree, groups, squares, variances, grown=grown)
        self.unevenness = float(self._model[KAPPA])
        self._root_variance = float(variances[0])
        self._worth = worth
        answered = squares[leaves] if estimates is None else estimates / worth.each
        # Where subtrees lie together, a walk through one stays within fast memory.
        order = np.argsort(np.append(-1, tree.preorder()[tree.parent[1:]]), kind="stable")
        counted = np.concatenate(counts.regions)
        of_counts = np.concatenate(counts.variances(tree))
        self._alone = _counted_once(counted, of_counts, variances, groups)[order]
        cumulants = _fourth_cumulants(tree, counted, of_counts, groups)
        held = (sum_leaves(tree, leaves, column) for column in (answered, np.abs(answered)))
        values = [squares, groups.known, cumulants, *held]
        self._regions = _region_table(tree, groups, values, variances, parts, order)
        self._running = _running_table(tree, groups, values, order)
        self._parts = np.empty((0, 3 + 2 * tree.dimensions)) if parts is None else parts.table
        self._depth = int(tree.depth.max()) + 1 + (0 if parts is None else parts.depth)

    def answer(self, rows: FloatArray, axes: FloatArray) -> FloatArray:
        """The columns of an answer (htf.query.columns), one row per box. `rows` are the edges of the boxes
        in map coordinates, and `axes` is `boxes.axis_table`."""
        tables = self._regions, self._running, self._parts, self._alone
        numbers = self._model, self._root_variance

        def run(chunk: slice, found: FloatArray) -> None:
            answer_tree(rows[chunk], axes, *tables, *numbers, found)

        return published(in_chunks(run, len(rows), len(COLUMNS), CHUNK), self._worth)

    def answer_polygons(self, outlines: Outlines) -> FloatArray:
        """The same for polygons, with the share of each leaf that they cover. The caller fills in how
        much of them lies on the map."""
        from htf.query import polygon_kernels  # slow to load

        tables = self._regions, self._parts, self._depth
        numbers = self.unevenness, self._root_variance

        def run(chunk: slice, found: FloatArray) -> None:
            polygon_kernels.measure_tree(outlines, chunk.start, *tables, *numbers, found)

        measures = in_chunks(run, len(outlines.pieces), MEASURES, POLYGONS_AT_A_TIME)
        measures[:, PIECES] = outlines.pieces
        answers = np.empty((len(measures), len(COLUMNS)))
        finish_tree(measures, self._alone, self._model, answers)
        return published(answers, self._worth)


class _Groups:
    """The tree down to the leaves of the release, with values shared by groups of siblings."""

    def __init__(self, tree: RegionTree, leaves: IntArray, below: FloatArray) -> None:
        parent, size = tree.parent[1:], len(tree)
        unknown = below == UNKNOWN
        self.is_leaf = np.zeros(size, dtype=bool)
        self.is_leaf[leaves] = True
        self.known = np.where(unknown, 0.0, below)  # s; 0 for a region about which nothing is known
        self.sums = np.bincount(parent, self.known[1:], minlength=size)
        # The only child about which nothing is known. Two would leave a leaf undetermined.
        self.pivot = np.full(size, NO_REGION, dtype=np.int64)
        left_over = np.flatnonzero(unknown[1:]) + 1
        self.pivot[tree.parent[left_over]] = left_over
        # The weight of the children's sum in z, as `least_squares` combines it with the own count.
        self.weight = np.zeros(size)
        summed = (self.sums > 0) & (self.pivot == NO_REGION)
        np.divide(below, self.sums, out=self.weight, where=summed)


def learn_model(
    tree: RegionTree,
    groups: _Groups,
    estimates: FloatArray,
    variances: FloatArray,
    *,
    grown: bool = False,
) -> FloatArray:
    """The model of uneven records: the numbers KAPPA to MOST_LEAN of `tree_kernels`."""
    pairs = _Pairs.of(tree, groups, estimates, variances)
    kappa = pairs.kappa()
    # A few pairs may look even by chance, and say nothing about what is finer than they are.
    shown = kappa if len(pairs.cells) >= FEWEST_PAIRS else NOTHING_LEARNED
    least = LEAST_CLUMPS if grown else LEAST_CLUMPS_OF_GRIDS
    clumps = max(min(CLUMPIER * shown, 1.0), pairs.finest().kappa(), least)
    bias = (GROWN if tree.dimensions <= 2 else GROWN_BEYOND_MAPS) if grown else 0.0
    most_lean = LEAST_LEAN / max(1 - shown, LEAST_EVEN) ** POWER
    return np.array([kappa, clumps, _together(tree), bias, most_lean])


def _together(tree: RegionTree) -> float:
    """How far the errors of cut leaves go together: farther if regions were not cut into equal parts."""
    cut = np.flatnonzero(tree.slabs > 0)
    axis, first = tree.axis[cut], tree.first_child[cut]
    width = tree.high[cut, axis] - tree.low[cut, axis]
    part = tree.high[first, axis] - tree.low[first, axis]
    wide = width >= WIDE * tree.slabs[cut]
    equal = np.abs(part * tree.slabs[cut] / width - 1) <= 1 / WIDE
    if np.any(wide) and np.mean(equal[wide]) < MOST_EQUAL:
        return TOGETHER_WHERE_CUT_BY_DATA
    return TOGETHER if tree.dimensions <= 2 else TOGETHER_BEYOND_MAPS


@dataclass(frozen=True, slots=True, eq=False)
class _Pairs:
    """Neighbouring siblings i and j of all sizes, of which kappa is learnt.

    With t = x_i + x_j and i's share a of their cells, d = x_i - a t has the variance
    a (1 - a) (t (1 - kappa) + t^2 kappa) by the model, plus the variance of its noise. So each pair
    gives an unbiased estimate, and these are averaged. Pairs weigh the same, whatever their counts:
    with weights t^2 the few largest regions would decide for all.
    """

    cells: IntArray  # of both together
    seen: FloatArray  # of kappa, and what would be seen if kappa were 1
    most: FloatArray

    @classmethod
    def of(
        cls, tree: RegionTree, groups: _Groups, estimates: FloatArray, variances: FloatArray
    ) -> _Pairs:
        left = np.flatnonzero(tree.parent[1:-1] == tree.parent[2:]) + 1
        left = left[(groups.pivot[tree.parent[left]] == NO_REGION) & (variances[left] < UNKNOWN)]
        parent, right = tree.parent[left], left + 1
        cells = tree.cells(left) + tree.cells(right)
        share = tree.cells(left) / cells

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
        most = split * (total**2 - total_noise - total)
        clear = (total > CLEAR * np.sqrt(np.maximum(total_noise, 0.0))) & (most > 0)
        return cls(cells[clear], *(one[clear] / total[clear] ** 2 for one in (seen, most)))

    def kappa(self) -> float:
        if len(self.cells) == 0:
            return NOTHING_LEARNED
        return float(np.clip(self.seen.sum() / self.most.sum(), 0.0, 1.0))

    def finest(self) -> _Pairs:
        """Pairs of the least size, by octaves, that enough pairs have: in small places records lie in clumps more often
        than from afar. All pairs, where no size has enough."""
        octave = np.rint(np.log2(self.cells)).astype(np.int64)
        enough = np.flatnonzero(np.bincount(octave) >= FEWEST_PAIRS)
        close = octave == enough[0] if len(enough) else np.ones(len(octave), dtype=bool)
        return _Pairs(self.cells[close], self.seen[close], self.most[close])


def _fourth_cumulants(
    tree: RegionTree, regions: IntArray, of_counts: FloatArray, groups: _Groups
) -> FloatArray:
    """The fourth cumulants of the noise in each region's estimate from the counts in it and below it.
    `regions` are those that were counted, and `of_counts` the variance of each count."""
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
    regions: IntArray, of_counts: FloatArray, variances: FloatArray, groups: _Groups
) -> NDArray[np.bool_]:
    """Which leaves have a single count as their estimate, to which no other count adds anything."""
    own = np.zeros(len(variances))
    own[regions] = of_counts
    once = np.bincount(regions, minlength=len(variances)) == 1
    return np.asarray(groups.is_leaf & once & (variances >= own * (1 - 1e-9)))


def _region_table(
    tree: RegionTree,
    groups: _Groups,
    values: list[FloatArray],
    variances: FloatArray,
    parts: NestedParts | None,
    order: IntArray,
) -> FloatArray:
    """The table that the kernels walk over, in the order of columns that they name."""
    squares, known, cumulants, answered, absolute = values
    place = np.empty(len(tree), dtype=np.int64)
    place[order] = np.arange(len(tree))
    ends = groups.is_leaf | (tree.slabs == 0)
    columns = [
        squares,
        known,
        cumulants,
        np.where(groups.is_leaf, np.sqrt(variances), groups.sums),
        np.bincount(tree.parent[1:], cumulants[1:], minlength=len(tree)),
        groups.weight,
        answered,
        absolute,
        np.where(ends, NO_REGION, place[tree.first_child]),
        np.full(len(tree), NO_REGION) if parts is None else parts.first,
        tree.slabs if parts is None else np.where(ends, parts.number, tree.slabs),
        tree.axis,
    ]
    return _make_table(columns, tree.low, tree.high, order)


def _running_table(
    tree: RegionTree, groups: _Groups, values: list[FloatArray], order: IntArray
) -> FloatArray:
    """For each region, the sums over the siblings up to it, in the order of columns that the kernel names; no rows where all
    groups are so small that it visits each region. (Differences of one long cumulative sum would lose digits of small
    groups.)"""
    most = int(tree.slabs.max())
    if most <= FEW:
        return np.empty((0, len(values) + 1))
    table = np.column_stack([*values, (groups.known == 0).astype(np.float64)])
    first, slabs = (column[tree.slabs > 0] for column in (tree.first_child, tree.slabs))
    for place in range(1, most):
        region = first[slabs > place] + place
        table[region] += table[region - 1]
    return table[order]


def _make_table(
    columns: Sequence[FloatArray | IntArray], low: IntArray, high: IntArray, rows: IntArray
) -> FloatArray:
    """A table of these rows of the columns followed by the edges, as the kernels want it. It begins at a cache line,
    so that most rows span as few lines as possible."""
    size = len(columns) + low.shape[1] + high.shape[1]
    room = np.empty(len(rows) * size + LINE)
    start = -(room.ctypes.data // room.itemsize) % LINE
    table = room[start : start + len(rows) * size].reshape(len(rows), size)
    every = [*columns, *low.T, *high.T]
    for begin in range(0, len(rows), ROWS_AT_ONCE):
        some = rows[begin : begin + ROWS_AT_ONCE]
        for place, column in enumerate(every):
            table[begin : begin + len(some), place] = column[some]
    return table
