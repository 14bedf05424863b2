"""Values computed from a release: the parts of its leaves, and the indexes that answer queries. Public.

The file holds none of them, because they follow from what it does hold. They take a moment to compute, so
each is made once, when it is first needed, and kept with the release as `Release.derived`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from htf.base.compiled import FEW, few, nothing_asked
from htf.base.read_only import ReadOnlyArrays, make_read_only
from htf.estimation.expectation import STEP, Expectation
from htf.estimation.homogeneous import FROM_LEAVES
from htf.estimation.inside_zones import COUNTED_REGIONS, INSIDE_ZONES, counted_tree, regions_before
from htf.estimation.interpolation import interpolate
from htf.estimation.least_squares import TreeCounts, sum_leaves
from htf.estimation.noise_law import noise_variances, scales_of_variances
from htf.estimation.parts import Parts
from htf.estimation.prior import Prior
from htf.estimation.worth import AS_COUNTED, Worth, worth_of
from htf.frame.domain import Axis, FloatArray, IntArray
from htf.frame.halving import Neighbourhood
from htf.frame.tree import RegionTree
from htf.query.boxes import axis_table
from htf.query.columns import place
from htf.query.index import BoxIndex
from htf.query.kernels import snap_rows
from htf.query.unsure import are_unsure

if TYPE_CHECKING:
    from htf.query.asked import AskedRows
    from htf.query.tree_index import NestedParts, TreeIndex
    from htf.release.release import Release


T = TypeVar("T", bound=np.generic)


@dataclass(frozen=True, eq=False)
class Divided:
    """A finer tree, in which some leaves of a release are divided into parts."""

    tree: RegionTree
    estimates: FloatArray  # one for every region
    leaf: IntArray  # the index of the leaf that a region is a part of; -1 for other regions


@dataclass(frozen=True, eq=False)
class CutLeaves:
    """The leaves of a map that were cut along the borders of zones, beyond what was counted. Intervals follow from
    what was counted, so for them these leaves are parts of counted ones."""

    tree: RegionTree
    leaves: IntArray
    estimates: FloatArray
    owner: IntArray  # the index of the counted leaf that each is a part of
    before: tuple[
        RegionTree, IntArray, FloatArray, FloatArray
    ]  # tree, leaves, estimates and scales

    @classmethod
    def of(cls, release: Release) -> CutLeaves:
        counted = int(release.facts[COUNTED_REGIONS])
        tree, leaves = counted_tree(release.tree, counted)
        estimates = sum_leaves(release.tree, release.leaves, release.estimates)[leaves]
        place = np.zeros(len(tree), dtype=np.int64)
        place[leaves] = np.arange(len(leaves))
        owner = place[regions_before(release.tree, release.leaves, counted)]
        share = release.tree.cells(release.leaves) / tree.cells(leaves)[owner]
        variances = np.zeros(len(leaves))
        variances[owner] = noise_variances(release.scales) / share**2
        before = tree, leaves, estimates, scales_of_variances(variances)
        return cls(release.tree, release.leaves, release.estimates, owner, before)

    def divided(self) -> Divided:
        """The counted leaves in parts: those that zones cut, and in them where the density is uneven."""
        every = sum_leaves(self.tree, self.leaves, self.estimates)
        finer, found, leaf = interpolate(self.tree, self.leaves, every)
        return Divided(finer, found, np.where(leaf >= 0, self.owner[leaf], -1))


@dataclass(frozen=True, eq=False)
class Derived(ReadOnlyArrays):
    """The values computed from one release. It holds the fields it needs, not the release itself,
    because the release holds this."""

    estimator: str
    tree: RegionTree
    leaves: IntArray
    estimates: FloatArray
    scales: FloatArray
    priors: tuple[Prior, ...]
    trust: FloatArray  # in priors
    tree_counts: TreeCounts  # of what was counted, such as shares of people
    worth: Worth = AS_COUNTED
    cut: CutLeaves | None = None  # of a map that zones have cut

    @classmethod
    def of(cls, release: Release) -> Derived:
        cut = CutLeaves.of(release) if release.estimator == INSIDE_ZONES else None
        counted = release.tree, release.leaves, release.estimates, release.scales
        before = counted if cut is None else cut.before
        priors, counts = (release.priors, release.prior_trust), release.measurements.tree_counts()
        return cls(release.estimator, *before, *priors, counts, worth_of(release), cut)

    @cached_property
    def parts(self) -> Parts:
        """The pieces that answers are made of: the leaves or, with `htf`, finer parts of those leaves
        whose density is uneven. They follow from the leaves and the prior."""
        if (divided := self._divided) is None:
            low, high = self.tree.low[self.leaves], self.tree.high[self.leaves]
            return Parts(low, high, self.estimates, self.scales, np.arange(len(low)))
        parts = np.flatnonzero(divided.leaf >= 0)
        owner = divided.leaf[parts]
        share = divided.tree.cells(parts) / self.tree.cells(self.leaves)[owner]
        if self.priors:  # records are not spread evenly, and neither is their noise
            full = self.estimates[owner] > 0
            share[full] = divided.estimates[parts][full] / self.estimates[owner][full]
        return Parts(
            divided.tree.low[parts],
            divided.tree.high[parts],
            divided.estimates[parts],
            # A share of a leaf's noise is no whole number, so only its variance matters.
            scales_of_variances(share**2 * noise_variances(self.scales)[owner]),
            owner,
        )

    @cached_property
    def nested(self) -> NestedParts | None:
        """The parts, nested in their leaves; None where no leaf can be divided."""
        return None if self._divided is None else self._nest(self._divided)

    def _nest(self, divided: Divided) -> NestedParts:
        from htf.query.tree_index import NestedParts

        return NestedParts.of(self.tree, divided.tree, divided.estimates / self.worth.each)

    @cached_property
    def index(self) -> BoxIndex:
        """The parts, each with its own noise, for sums of estimates."""
        parts = self.parts
        return BoxIndex(parts.low, parts.high, parts.estimates, parts.scales, self.worth)

    @cached_property
    def tree_index(self) -> TreeIndex | None:
        """The index for estimates that use every count in the tree, so that their errors are
        correlated; None for other estimators."""
        from htf.query.tree_index import ESTIMATORS  # slow to load

        return self._tree_index(self.nested) if self.estimator in ESTIMATORS else None

    def _tree_index(self, nested: NestedParts | None) -> TreeIndex:
        from htf.query.tree_index import TreeIndex

        return TreeIndex(
            self.tree,
            self.tree_counts,
            self.leaves,
            self.estimates,
            nested,
            self.worth,
            grown=self.estimator in (FROM_LEAVES, INSIDE_ZONES),
        )

    @property
    def answering_index(self) -> BoxIndex | TreeIndex:
        """The index that gives counts their intervals."""
        return self.tree_index or self.index

    def index_for(self, asked: AskedRows) -> BoxIndex | TreeIndex:
        """The index that answers these. The first one of a process divides only the leaves that a few boxes need."""
        is_plain = self.estimator == FROM_LEAVES and not self.priors
        if not (is_plain and nothing_asked() and len(asked.rows) <= FEW):
            return self.answering_index
        with few(0):
            boxes = snap_rows(asked.rows, axis_table(asked.domain.axes))
        return self._tree_index(self._nest(self._divide(boxes)))

    def answer_cells(self, low: FloatArray | IntArray, high: FloatArray | IntArray) -> FloatArray:
        """The columns of an answer (htf.query.columns), one row per box, for boxes in cells."""
        axes = [Axis("cells", 0, int(cells), int(cells)) for cells in self.tree.high[0]]
        rows = np.hstack([low, high]).astype(np.float64)
        return self.answering_index.answer(rows, axis_table(axes))

    @cached_property
    def clear_leaves(self) -> NDArray[np.bool_]:
        """Which leaves are more than noise, so that maps colour them: those whose interval lies above zero."""
        return _fixed(self._answers_of_leaves[:, place("low")] > 0)

    @cached_property
    def unsure_leaves(self) -> NDArray[np.bool_]:
        """Which leaves may hold none, and about as many as what is around them (htf.query.unsure). Of maps of two axes."""
        low, high = self.tree.low[self.leaves], self.tree.high[self.leaves]
        shape = tuple(self.tree.high[0].tolist())
        return _fixed(are_unsure(self.answer_cells, low, high, self._answers_of_leaves, shape))

    @property
    def _answers_of_leaves(self) -> FloatArray:
        return self.answer_cells(self.tree.low[self.leaves], self.tree.high[self.leaves])

    @cached_property
    def trust_by_size(self) -> FloatArray:
        """How far each prior was trusted in regions of each level, down to that of the smallest leaf: the mean over
        their records."""
        found: FloatArray = np.zeros((0, 0))
        if self.priors:
            turns = Neighbourhood(self.tree, all_boxes=False).turns
            records = sum_leaves(self.tree, self.leaves, self.estimates)
            expectation = Expectation(self.tree, turns, self.priors, self.trust)
            weights = expectation.weights(np.arange(len(self.tree)), records)[1:]
            level = expectation.level
            sums = np.stack([np.bincount(level, weight * records) for weight in weights])
            found = sums / np.maximum(np.bincount(level, records), STEP)
        return _fixed(found)

    @cached_property
    def _divided(self) -> Divided | None:
        if self.estimator not in (FROM_LEAVES, INSIDE_ZONES):
            return None
        if self.cut is not None:
            return self.cut.divided()
        return self._divide()

    def _divide(self, boxes: FloatArray | None = None) -> Divided:
        # The estimates of halves add up exactly, so those of all regions follow from the leaves.
        estimates = sum_leaves(self.tree, self.leaves, self.estimates)
        known = self.priors, self.trust
        return Divided(*interpolate(self.tree, self.leaves, estimates, *known, boxes))


def _fixed(array: NDArray[T]) -> NDArray[T]:
    """The array, read-only from now on."""
    make_read_only(array)
    return array
