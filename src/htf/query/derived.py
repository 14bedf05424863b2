"""Values computed from a release: the parts of its leaves, and the indexes that answer queries. Public.

The file holds none of them, because they follow from what it does hold. They take a moment to compute, so
each is made once, when it is first needed, and kept with the release as `Release.derived`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from htf.base.read_only import ReadOnlyArrays
from htf.estimation.homogeneous import HOMOGENEOUS, interpolate, measures
from htf.estimation.least_squares import TreeCounts, sum_leaves
from htf.estimation.noise_law import (
    CLEAR_DEVIATIONS_DENOISED,
    noise_variances,
    scales_of_variances,
)
from htf.estimation.parts import Parts
from htf.estimation.prior import Prior
from htf.estimation.worth import AS_COUNTED, Worth, worth_of
from htf.frame.domain import FloatArray, IntArray
from htf.frame.tree import RegionTree
from htf.query.index import BoxIndex

if TYPE_CHECKING:
    from htf.query.tree_index import NestedParts, TreeIndex
    from htf.release.release import Release


@dataclass(frozen=True, eq=False)
class Divided:
    """A finer tree, in which some leaves of a release are divided into parts."""

    tree: RegionTree
    estimates: FloatArray  # one for every region
    leaf: IntArray  # the index of the leaf that a region is a part of; -1 for other regions


@dataclass(frozen=True, eq=False)
class Derived(ReadOnlyArrays):
    """The values computed from one release. It holds the fields it needs, not the release itself,
    because the release holds this."""

    estimator: str
    tree: RegionTree
    leaves: IntArray
    estimates: FloatArray
    scales: FloatArray
    prior: Prior | None
    tree_counts: TreeCounts  # of what was counted, such as shares of people
    worth: Worth = AS_COUNTED

    @classmethod
    def of(cls, release: Release) -> Derived:
        return cls(
            release.estimator,
            release.tree,
            release.leaves,
            release.estimates,
            release.scales,
            release.prior,
            release.measurements.tree_counts(),
            worth_of(release),
        )

    @cached_property
    def parts(self) -> Parts:
        """The pieces that answers are made of: the leaves or, with `htf`, finer parts of those leaves
        whose density is uneven. They follow from the leaves and the prior."""
        divided = self._divided
        if divided is None:
            low, high = self.tree.low[self.leaves], self.tree.high[self.leaves]
            return Parts(low, high, self.estimates, self.scales)
        parts = np.flatnonzero(divided.leaf >= 0)
        owner = divided.leaf[parts]
        whole = measures(self.tree, self.prior, self.leaves)
        share = measures(divided.tree, self.prior, parts) / whole[owner]
        return Parts(
            divided.tree.low[parts],
            divided.tree.high[parts],
            divided.estimates[parts],
            # A share of a leaf's noise is no whole number, so only its variance matters.
            scales_of_variances(share**2 * noise_variances(self.scales)[owner]),
            CLEAR_DEVIATIONS_DENOISED,
        )

    @cached_property
    def nested(self) -> NestedParts | None:
        """The parts, nested in their leaves; None where no leaf can be divided."""
        from htf.query.tree_index import NestedParts

        divided = self._divided
        if divided is None:
            return None
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
        from htf.query.tree_index import ESTIMATORS, TreeIndex  # slow to load

        if self.estimator not in ESTIMATORS:
            return None
        return TreeIndex(
            self.tree, self.tree_counts, self.leaves, self.estimates, self.nested, self.worth
        )

    @property
    def answering_index(self) -> BoxIndex | TreeIndex:
        """The index that gives counts their intervals."""
        return self.tree_index or self.index

    @cached_property
    def _divided(self) -> Divided | None:
        if self.estimator != HOMOGENEOUS:
            return None
        # The estimates of halves add up exactly, so those of all regions follow from the leaves.
        all_estimates = sum_leaves(self.tree, self.leaves, self.estimates)
        return Divided(*interpolate(self.tree, self.leaves, all_estimates, self.prior))
