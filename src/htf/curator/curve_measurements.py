"""Measurements along a curve through all cells of the map, such as Hilbert's.

The mechanism says which coarse grid it works on (`edges` along each axis) and in which order its cells
stand along the curve (`positions`, one for each cell, row by row). Any order will do: the proofs hold for
every one. Only the counts from `ExactCells` are sensitive; the order is public.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from htf.curator.measurements import GridQueries, NoisySums, own_whole_number
from htf.errors import InputError
from htf.frame.domain import IntArray
from htf.frame.tree import RegionTree
from htf.privacy.epsilon import UNITS_PER_EPSILON

if TYPE_CHECKING:
    from htf.curator.cells import ExactCells
    from htf.curator.noise import NoiseSource

MOST_POSITIONS = 2**20
LARGEST_PENALTY = 2**40
LARGEST_WEIGHTS = 2**9  # times 2**40 records fits 64 bits
LARGEST_COST = 2**62  # beyond, sums might pass 64 bits


@dataclass(frozen=True, slots=True, eq=False)
class CurveMeasurement(GridQueries):
    """A question about the cells of a coarse grid in the order of a curve, charged once to the root."""

    edges: tuple[IntArray, ...]
    positions: IntArray

    def check(self, tree: RegionTree) -> None:
        GridQueries.check(self, tree)
        number = len(self.positions)
        if number > MOST_POSITIONS or number != np.prod([len(e) - 1.0 for e in self.edges]):
            raise InputError(f"each cell needs one position, and at most {MOST_POSITIONS} have one")
        if not np.array_equal(np.sort(self.positions), np.arange(number)):
            raise InputError("the positions of the cells must be 0, 1, …, each once")


@dataclass(frozen=True, slots=True, eq=False)
class LeastCostBuckets(CurveMeasurement):
    """DAWA's first stage: the cheapest partition of the curve into buckets, by noisy costs.

    A bucket is a run of 2^k positions, from any position on. It costs its L1 deviation, rounded down,
    plus `penalty` plus noise. The answer is the partition of least cost, as a 1 for every position at
    which a bucket begins and a 0 for the others. No cost is revealed.
    """

    kind = "buckets"
    sensitivity = 4  # 2 of a bucket's own cost, and 2 of any other's
    proof = "docs/proofs/least-cost-buckets.md"

    penalty: int

    def __post_init__(self) -> None:
        CurveMeasurement.__post_init__(self)
        own_whole_number(self, "penalty", LARGEST_PENALTY)

    @property
    def rows(self) -> int:
        return len(self.positions)

    def answer(self, cells: ExactCells, noise: NoiseSource) -> IntArray:
        from htf.curator.curve_kernels import least_cost_starts

        costs = bucket_costs(counts_along_curve(cells, self.edges, self.positions)) + self.penalty
        for level, row in enumerate(costs):
            candidates = self.rows - 2**level + 1
            row[:candidates] += noise.draw_at(self.rate(level), candidates)
        largest = max(int(costs.max()), -int(costs.min()))
        if largest * self.rows < LARGEST_COST:
            return np.asarray(least_cost_starts(costs, self.rows))
        # The same loop in Python, over integers of any size: noise this large is next to impossible.
        return np.asarray(least_cost_starts.py_func(costs.astype(object), self.rows))

    def rate(self, level: int) -> Fraction:
        """The rate of the noise in the cost of 2**level positions: epsilon / (own sensitivity + 2)."""
        return Fraction(int(self.epsilon[0]), UNITS_PER_EPSILON * (min(level, 2) + 2))

    def check(self, tree: RegionTree) -> None:
        CurveMeasurement.check(self, tree)
        if self.penalty < 0:
            raise InputError(f"the penalty of a bucket must not be negative, got {self.penalty}")


@dataclass(frozen=True, slots=True, eq=False)
class WeightedRuns(CurveMeasurement, NoisySums):
    """Weighted sums of runs of positions: weights[i] times the records in starts[i] … stops[i] - 1.

    All are one measurement of the root, whose L1 sensitivity is the largest sum of the weights of
    runs that hold the same position.
    """

    kind = "runs"
    proof = "docs/proofs/weighted-runs.md"

    starts: IntArray
    stops: IntArray
    weights: IntArray

    @property
    def sensitivity(self) -> int:  # type: ignore[override]
        steps = np.zeros(len(self.positions) + 1, dtype=np.int64)
        np.add.at(steps, self.starts, self.weights)
        np.subtract.at(steps, self.stops, self.weights)
        return int(np.cumsum(steps).max())

    @property
    def rows(self) -> int:
        return len(self.starts)

    def exact(self, cells: ExactCells) -> IntArray:
        counts = counts_along_curve(cells, self.edges, self.positions)
        before = np.concatenate([[0], np.cumsum(counts)])
        sums: IntArray = self.weights * (before[self.stops] - before[self.starts])
        return sums

    def check(self, tree: RegionTree) -> None:
        if not len(self.starts) == len(self.stops) == len(self.weights) > 0:
            raise InputError("each run needs a start, a stop and a weight")
        inside = (
            (self.starts >= 0) & (self.starts < self.stops) & (self.stops <= len(self.positions))
        )
        if not inside.all():
            raise InputError("a run must begin before it ends, within the curve")
        if self.weights.min() < 1 or self.weights.max() > LARGEST_WEIGHTS:
            raise InputError(f"the weight of a run must lie between 1 and {LARGEST_WEIGHTS}")
        CurveMeasurement.check(self, tree)


def counts_along_curve(
    cells: ExactCells, edges: tuple[IntArray, ...], positions: IntArray
) -> IntArray:
    """The exact number of records at each position."""
    counts = np.empty(len(positions), dtype=np.int64)
    counts[positions] = cells.count_coarsely(edges).ravel()
    return counts


def bucket_costs(counts: IntArray) -> IntArray:
    """The deviations of all buckets: row k holds those of 2^k positions, by where they begin."""
    from htf.curator.curve_kernels import deviations_of_runs

    distinct, ranks = np.unique(counts, return_inverse=True)
    costs: Any = np.zeros((len(counts).bit_length(), len(counts)), dtype=np.int64)
    for level in range(1, len(costs)):  # a bucket of one position deviates from nothing
        found = deviations_of_runs(counts, ranks, distinct, 2**level)
        costs[level, : len(found)] = found
    return np.asarray(costs)
