"""The window through which a mechanism asks: the public side of the Curator.

A mechanism is a generator. It yields measurements and is sent noisy answers; the Curator drives it.
So the mechanism holds the public domain, the public tree and the budget, and nothing from which the
data could be reached: there is no reference to follow.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from htf.curator.curve_measurements import LeastCostBuckets, WeightedRuns
from htf.curator.measurements import (
    CountRegions,
    LinearQueries,
    Measurement,
    MedianCuts,
    PrivTreeSplits,
    ScoreSplits,
)
from htf.frame.domain import Domain, IntArray
from htf.frame.tree import RegionTree
from htf.privacy.epsilon import Epsilon

if TYPE_CHECKING:
    from htf.estimation.prior import Prior

T = TypeVar("T")
Steps = Generator[Measurement, IntArray, T]


@dataclass(frozen=True, slots=True)
class Window:
    """The domain, the tree of regions and the total budget, with a method for each measurement.

    Use them as `noisy = yield from window.count(regions, epsilon, "what it is for")`.
    """

    domain: Domain
    tree: RegionTree
    epsilon: Epsilon
    prior: Prior | None = None  # what the curator says without the data of where records are

    def count(self, regions: Any, epsilon: Epsilon | IntArray, label: str) -> Steps[IntArray]:
        """Noisy numbers of records in `regions`."""
        regions = _integers(regions)
        return (yield CountRegions(label, regions, _each(epsilon, regions)))

    def score_splits(
        self, regions: Any, axes: Any, cuts: Any, epsilon: Epsilon | IntArray, label: str
    ) -> Steps[IntArray]:
        """Noisy homogeneity objectives of cutting `regions` at `cuts` along `axes`."""
        regions, axes, cuts = _integers(regions), _integers(axes), _integers(cuts)
        return (yield ScoreSplits(label, regions, _each(epsilon, regions), axes, cuts))

    def choose_medians(
        self, regions: Any, axes: Any, epsilon: Epsilon | IntArray, label: str
    ) -> Steps[IntArray]:
        """Cuts near the medians of `regions` along `axes`, by the exponential mechanism."""
        regions, axes = _integers(regions), _integers(axes)
        return (yield MedianCuts(label, regions, _each(epsilon, regions), axes))

    def grow_privtree(
        self,
        region: int,
        axes_by_depth: tuple[tuple[int, ...], ...],
        epsilon: Epsilon,
        label: str,
        *,
        threshold: int = 0,
    ) -> Steps[IntArray]:
        """Let PrivTree cut `region` into a subtree; returns the decisions, and the tree has grown."""
        root = _integers(region)
        return (yield PrivTreeSplits(label, root, _each(epsilon, root), axes_by_depth, threshold))

    def linear_queries(
        self,
        factors: Sequence[IntArray],
        edges: Sequence[IntArray],
        epsilon: Epsilon,
        label: str,
    ) -> Steps[IntArray]:
        """Noisy integer combinations of all cells, row-major over the rows of the factors."""
        root = _integers(0)
        parts = tuple(factors), tuple(edges)
        return (yield LinearQueries(label, root, _each(epsilon, root), *parts))

    def least_cost_buckets(
        self,
        edges: Sequence[IntArray],
        positions: IntArray,
        penalty: int,
        epsilon: Epsilon,
        label: str,
    ) -> Steps[IntArray]:
        """The cheapest partition of a curve into buckets: a 1 where one begins, else a 0."""
        root = _integers(0)
        price = _each(epsilon, root)
        return (yield LeastCostBuckets(label, root, price, tuple(edges), positions, penalty))

    def weighted_runs(
        self,
        edges: Sequence[IntArray],
        positions: IntArray,
        starts: IntArray,
        stops: IntArray,
        weights: IntArray,
        epsilon: Epsilon,
        label: str,
    ) -> Steps[IntArray]:
        """Noisy weighted sums of runs of positions along a curve."""
        root = _integers(0)
        curve = _each(epsilon, root), tuple(edges), positions
        return (yield WeightedRuns(label, root, *curve, starts, stops, weights))


def _integers(values: Any) -> IntArray:
    """As an array; the measurement refuses what are not whole numbers."""
    return np.atleast_1d(np.asarray(values))


def _each(epsilon: Epsilon | IntArray, regions: IntArray) -> IntArray:
    if isinstance(epsilon, Epsilon):
        return np.full(len(regions), epsilon.units, dtype=np.int64)
    return _integers(epsilon)
