"""DAWA along a Hilbert curve: buckets of similar cells, counted for the workload of all boxes.

C. Li, M. Hay, G. Miklau, Y. Wang: A data- and workload-aware algorithm for range queries under
differential privacy, PVLDB 2014; in two dimensions along a Hilbert curve, as they do and
DPBench (Hay et al., SIGMOD 2016), whose share of a quarter for the partition is the default.

Stage 1 cuts the curve into buckets, runs of 2^k cells, so that the cells of a bucket are alike: the
partition of least noisy cost, where a bucket costs its L1 deviation plus the error 1 / epsilon_2 that
its own noise will have. Stage 2 counts the buckets, or also sums of them with weights made for the workload
and least squares. The count of a bucket is spread evenly over its cells.

Departures, each for a reason:

* The noise of stage 1 covers what the proof needs (docs/proofs/least-cost-buckets.md). The authors' code
  draws half of that, none for buckets of one cell, and cuts noisy deviations at zero; with such cuts the
  proof does not go through.
* With noise on every one of some 17 candidates a cell, the cheapest partition is one of the luckiest
  draws: thousands of small buckets with negative noise. So a bucket also costs `noise_penalty` /
  epsilon_1, which is public and leaves the proof as it is. Of 0 to 32, the default did best on DPBench's
  two-dimensional sets and the synthetic city; 0 is as published, and no better than noise on each cell.
* Stage 2 of the paper (GreedyH) weights every node of a binary hierarchy of buckets greedily. With
  `strategy=hierarchy` nodes of one level have one weight, and the weights of the levels are the optimal
  ones for a fixed sample of boxes as the partition shows them: for such a hierarchy the squared error
  is a sum over levels. By default buckets are counted alone: a box cuts the curve into so many runs,
  and cells within a bucket differ so much, that on the sets above the hierarchy gains up to 5 % of the
  root mean squared error of random boxes, and mostly loses 2 to 24 % in relative error.
* Grids of more than 256 x 256 cells are coarsened, in the open (`grid` among the facts). Other than two axes
  with more than one cell are taken in Morton order (`curve`).

The curve visits the quadrants of a map one after the other, and their quadrants in turn. So a bucket
falls into few squares made by halving, and these are the boxes that are released. The boxes of a
bucket have one noise between them: their estimates are correlated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from htf.curator.window import Steps, Window
from htf.errors import BudgetError, InputError
from htf.estimation.noise_law import noise_variance, scales_of_variances
from htf.frame.curve import morton_index
from htf.frame.domain import FloatArray, IntArray
from htf.frame.grids import even_edges
from htf.frame.tree import RegionTree
from htf.mechanisms.base import (
    Histogram,
    Mechanism,
    check_share,
    parameter,
    read_integer,
    read_share,
    read_text,
    split_epsilon,
)
from htf.privacy.epsilon import UNITS_PER_EPSILON, Epsilon
from htf_bench.grids import LEAST_MOST_CELLS, NOTHING, check_most_cells, coarse_shape
from htf_bench.mechanisms.hdmm import minimise

if TYPE_CHECKING:
    from htf.release.release import Release

ESTIMATOR = "dawa"
BUCKETS, HIERARCHY = "buckets", "hierarchy"
LARGEST_PENALTY = 2**40
SUM_OF_WEIGHTS = 2**9
SAMPLE_BOXES = 200  # enough for weights: twice as many move the expected error by less than 1 %
WEIGHT_ITERATIONS = 200
GOLDEN = 0.6180339887498949


@dataclass(frozen=True)
class Dawa(Mechanism):
    """DAWA: runs of similar cells along a Hilbert curve, each counted once."""

    name = "dawa"
    citation = (
        "Li, Hay, Miklau, Wang: A data- and workload-aware algorithm for range queries under "
        "differential privacy, PVLDB 2014"
    )

    partition_share: float = parameter(0.25, read_share, "share of the budget for the partition")
    noise_penalty: int = parameter(
        11, read_integer, "cost of a bucket for the noise in costs, over the partition's epsilon"
    )
    strategy: str = parameter(
        BUCKETS,
        read_text,
        "buckets: count buckets alone; hierarchy: and sums of them, for all boxes",
    )
    most_cells: int = parameter(
        LEAST_MOST_CELLS, read_integer, "grids with more cells than this are coarsened"
    )

    def check(self) -> None:
        check_share("partition_share", self.partition_share)
        check_most_cells(self.most_cells)
        if self.strategy not in (BUCKETS, HIERARCHY):
            raise InputError(f"strategy must be buckets or hierarchy, got {self.strategy!r}")
        if self.noise_penalty < 0:
            raise InputError(f"noise_penalty must not be negative, got {self.noise_penalty}")

    def build(self, window: Window) -> Steps[Histogram]:
        partition, data = split_epsilon(window.epsilon, self.partition_share, "partition_share")
        penalty = self._penalty(partition, data)
        curve = Curve.over(window.domain.shape, self.most_cells)
        begins = yield from window.least_cost_buckets(
            curve.edges, curve.positions, penalty, partition, "partition of the curve"
        )
        buckets = Buckets(curve, begins)
        weights = choose_weights(buckets) if self.strategy == HIERARCHY else [1]
        hierarchy = Hierarchy(buckets, weights)
        noisy = yield from window.weighted_runs(
            curve.edges, curve.positions, *hierarchy.runs(), data, "buckets and sums of buckets"
        )
        leaves = buckets.cut(window.tree)
        low, high = window.tree.low[leaves], window.tree.high[leaves]
        estimates, scales = hierarchy.estimate_boxes(low, high, noisy, data.units)
        facts = {
            "grid": list(curve.grid),
            "curve": curve.name,
            "buckets": len(buckets.lengths),
            "level_weights": hierarchy.weights,
        }
        return Histogram(leaves, estimates, scales, ESTIMATOR, facts)

    def _penalty(self, partition: Epsilon, data: Epsilon) -> int:
        """1 / epsilon_2, as published, plus noise_penalty / epsilon_1; whole, and rounded up."""
        penalty = math.ceil(1 / data.fraction + self.noise_penalty / partition.fraction)
        if penalty + Fraction(4) / partition.fraction > LARGEST_PENALTY:
            raise BudgetError(
                f"epsilon {partition} for the partition and {data} for the counts are too small: "
                f"a bucket would cost {penalty}, more than {LARGEST_PENALTY}. Raise epsilon."
            )
        return penalty


def reconstruct_dawa(release: Release) -> tuple[FloatArray, FloatArray]:
    """Estimates and scales of a release's leaves, from its measurements; nothing if they do not fit."""
    table, shape = release.measurements, release.domain.shape
    begins, noisy = table.value[table.line == 0], table.value[table.line == 1]
    most_cells = int(release.parameters["most_cells"])
    if len(begins) != math.prod(coarse_shape(shape, most_cells)) or begins[0] != 1:
        return NOTHING
    curve = Curve.over(shape, most_cells)
    weights = [int(weight) for weight in release.facts.get("level_weights", ())]
    levels = len(begins).bit_length()
    if not 1 <= len(weights) <= levels or weights[0] < 1 or not set(begins.tolist()) <= {0, 1}:
        return NOTHING
    if not 0 <= min(weights) <= max(weights) <= SUM_OF_WEIGHTS:
        return NOTHING
    hierarchy = Hierarchy(Buckets(curve, begins), weights)
    if len(noisy) != len(hierarchy.runs()[0]):
        return NOTHING
    paid = int(table.epsilon[table.line == 1].max())
    return hierarchy.estimate_boxes(release.low, release.high, noisy, paid)


class Curve(NamedTuple):
    """A coarse grid and the position of each of its cells, row by row, along a curve."""

    name: str
    grid: tuple[int, ...]
    edges: tuple[IntArray, ...]
    positions: IntArray

    @classmethod
    def over(cls, shape: Sequence[int], most_cells: int) -> Curve:
        grid = coarse_shape(shape, most_cells)
        long_axes = [cells for cells in grid if cells > 1]
        places = np.indices(long_axes or [1]).reshape(max(len(long_axes), 1), -1)
        bits = max((cells - 1).bit_length() for cells in grid)
        name, index = ("hilbert", hilbert_index) if len(places) == 2 else ("morton", morton_index)
        positions = np.empty(math.prod(grid), dtype=np.int64)
        # Cells of the square of 2^bits that do not exist are skipped.
        positions[np.argsort(index(places, bits))] = np.arange(len(positions))
        return cls(name, grid, even_edges(shape, grid), positions)


def hilbert_index(places: IntArray, bits: int) -> IntArray:
    """How far along the Hilbert curve of a square of 2**bits cells the cells (x, y) are.

    From the largest quadrants to the smallest: the quadrant's number, and the cell as seen in a
    quadrant that is turned to where the curve enters it.
    """
    x, y = places[0].astype(np.int64), places[1].astype(np.int64)
    index = np.zeros_like(x)
    for bit in reversed(range(bits)):
        side = np.int64(1) << bit
        right, upper = (x & side) > 0, (y & side) > 0
        index += side * side * ((3 * right) ^ upper)
        x, y = x & (side - 1), y & (side - 1)
        mirrored = right & ~upper
        x, y = np.where(mirrored, side - 1 - x, x), np.where(mirrored, side - 1 - y, y)
        x, y = np.where(upper, x, y), np.where(upper, y, x)
    return np.asarray(index)


class Buckets:
    """A partition of the curve: `begins` is 1 where a bucket begins, 0 elsewhere."""

    def __init__(self, curve: Curve, begins: IntArray) -> None:
        self.curve = curve
        self.starts = np.flatnonzero(begins)
        self.lengths = np.diff(np.append(self.starts, len(begins)))
        self.of_cell = (np.cumsum(begins) - 1)[curve.positions].reshape(curve.grid)

    def cut(self, tree: RegionTree) -> IntArray:
        """Halve the map, and what it falls into, until no part lies in two buckets."""
        lowest, highest = [self.of_cell], [self.of_cell]
        while lowest[-1].size > 1:
            lowest.append(_reduce_pairs(lowest[-1], np.minimum))
            highest.append(_reduce_pairs(highest[-1], np.maximum))
        regions = np.zeros(1, dtype=np.int64)
        corners = np.zeros((1, len(self.curve.grid)), dtype=np.int64)
        leaves = []
        for level in reversed(range(len(lowest))):
            done = lowest[level][tuple(corners.T)] == highest[level][tuple(corners.T)]
            leaves.append(regions[done])
            regions, corners = regions[~done], 2 * corners[~done]
            for axis in range(len(self.curve.grid)):
                regions, corners = self._halve(tree, regions, corners, axis, level)
        return np.concatenate(leaves)

    def _halve(
        self, tree: RegionTree, regions: IntArray, corners: IntArray, axis: int, level: int
    ) -> tuple[IntArray, IntArray]:
        """Where there are cells beyond the middle. Corners are in units of half a part."""
        middle = (corners[:, axis] + 1) << max(level - 1, 0)
        wide = middle < self.curve.grid[axis]
        cuts = self.curve.edges[axis][middle[wide]]
        halves = tree.split(regions[wide], np.full(len(cuts), axis), cuts)
        beyond = corners[wide].copy()
        beyond[:, axis] += 1
        return (
            np.concatenate([regions[~wide], halves[:, 0], halves[:, 1]]),
            np.concatenate([corners[~wide], corners[wide], beyond]),
        )


def _reduce_pairs(values: IntArray, smaller_or_larger: Any) -> IntArray:
    """The smaller (or larger) of each two neighbours along every axis; a last one without a pair stays."""
    for axis in range(values.ndim):
        starts = np.arange(0, values.shape[axis], 2)
        values = smaller_or_larger.reduceat(values, starts, axis=axis)
    return values


class Hierarchy:
    """Buckets, pairs of them, pairs of pairs, …: weights[j] on every sum of 2^j buckets."""

    def __init__(self, buckets: Buckets, weights: list[int]) -> None:
        self.buckets, self.weights = buckets, weights

    def runs(self) -> tuple[IntArray, IntArray, IntArray]:
        """Starts, stops and weights of what is measured, level by level, without weights of 0."""
        ends = np.append(self.buckets.starts, self.buckets.lengths.sum())
        starts, stops, weights = [], [], []
        for level, weight in self._measured():
            first = np.arange(0, len(ends) - 1, 2**level)
            starts.append(ends[first])
            stops.append(ends[np.minimum(first + 2**level, len(ends) - 1)])
            weights.append(np.full(len(first), weight))
        return np.concatenate(starts), np.concatenate(stops), np.concatenate(weights)

    def estimate_boxes(
        self, low: IntArray, high: IntArray, noisy: IntArray, epsilon_units: int
    ) -> tuple[FloatArray, FloatArray]:
        """Boxes that lie in one bucket each have their share of its count."""
        variance = noise_variance(sum(self.weights) * UNITS_PER_EPSILON / epsilon_units)
        counts, variances = self.least_squares(noisy, variance)
        edges = self.buckets.curve.edges
        corner = [np.searchsorted(edge, low[:, axis]) for axis, edge in enumerate(edges)]
        beyond = [np.searchsorted(edge, high[:, axis]) for axis, edge in enumerate(edges)]
        cells = np.prod(np.array(beyond) - np.array(corner), axis=0)
        bucket = self.buckets.of_cell[tuple(corner)]
        share = cells / self.buckets.lengths[bucket]
        return counts[bucket] * share, scales_of_variances(variances[bucket] * share**2)

    def least_squares(self, noisy: IntArray, variance: float) -> tuple[FloatArray, FloatArray]:
        """The buckets' counts and variances from all sums: up the hierarchy and down again.

        The formulas of htf.estimation.least_squares, for a binary hierarchy of which the last sums may be short.
        """
        own = self._own_estimates(noisy)
        z, s = [own[0]], [np.full(len(own[0]), variance / self.weights[0] ** 2)]
        for level in range(1, len(self.weights)):
            pairs = np.arange(0, len(z[-1]), 2)
            total, spread = np.add.reduceat(z[-1], pairs), np.add.reduceat(s[-1], pairs)
            weight = self.weights[level] ** 2 / variance
            if weight:
                total = total + (own[level] - total) * (weight * spread / (1 + weight * spread))
                spread = spread / (1 + weight * spread)
            z.append(total)
            s.append(spread)
        x, v = z[-1], s[-1]
        for level in reversed(range(len(z) - 1)):
            pairs, pair = np.arange(0, len(z[level]), 2), np.arange(len(z[level])) // 2
            share = s[level] / np.add.reduceat(s[level], pairs)[pair]
            x = z[level] + share * (x - np.add.reduceat(z[level], pairs))[pair]
            v = s[level] * (1 - share) + share**2 * v[pair]
        return x, v

    def _own_estimates(self, noisy: IntArray) -> list[FloatArray]:
        """What each level's measurements say about its own sums; nothing where none were taken."""
        estimates = [np.empty(0) for _ in self.weights]
        for level, weight in self._measured():
            sums = (len(self.buckets.lengths) + 2**level - 1) >> level
            estimates[level], noisy = noisy[:sums] / weight, noisy[sums:]
        return estimates

    def _measured(self) -> list[tuple[int, int]]:
        return [(level, weight) for level, weight in enumerate(self.weights) if weight]


def choose_weights(buckets: Buckets) -> list[int]:
    """The weights of the levels with which boxes have the least squared error, as whole numbers.

    All sums of 2^j buckets have weight w_j. The hierarchy's A'A then has the eigenspaces of the Haar
    wavelets: what is constant on 2^(j-1) buckets and sums to 0 on 2^j, with eigenvalue
    sum of w_i^2 2^i over i < j. With t_j the energy of the boxes in that space the squared error is
    (sum of w)^2 times the sum of t_j over the eigenvalues.
    """
    energies = box_energies(buckets)
    levels = len(energies)
    sizes = 2.0 ** np.arange(levels)

    def objective(roots: FloatArray) -> tuple[float, FloatArray]:
        weights = roots**2
        values = np.cumsum(weights**2 * sizes)
        total, error = weights.sum(), np.sum(energies / values)
        later = np.cumsum((energies / values**2)[::-1])[::-1]
        slopes = 2 * total * error - total**2 * 2 * weights * sizes * later
        return float(total**2 * error), slopes * 2 * roots

    roots = minimise(objective, np.ones(levels), WEIGHT_ITERATIONS)
    weights = roots**2 / np.sum(roots**2)
    whole = [int(weight) for weight in np.floor(weights * (SUM_OF_WEIGHTS - 1))]
    return [whole[0] + 1, *whole[1:]]  # every bucket is measured


def box_energies(buckets: Buckets) -> FloatArray:
    """The energy of a fixed sample of boxes in each level's space, the finest first.

    A box is seen as the share of each bucket that lies in it.
    """
    grid, number = buckets.curve.grid, len(buckets.lengths)
    levels = (number - 1).bit_length()
    bounds = [_sample_ranges(cells, axis, len(grid)) for axis, cells in enumerate(grid)]
    smooth = np.zeros(levels + 1)  # the energy that is left after averaging over 2^j buckets
    of_cell = buckets.of_cell
    for box in range(SAMPLE_BOXES):
        inside = of_cell[tuple(slice(*bound[box]) for bound in bounds)]
        seen = np.bincount(inside.ravel(), minlength=number) / buckets.lengths
        for level in range(levels + 1):
            smooth[level] += np.sum(seen**2) / 2**level
            seen = np.add.reduceat(seen, np.arange(0, len(seen), 2))
    return np.append(smooth[:-1] - smooth[1:], smooth[-1])


def _sample_ranges(cells: int, axis: int, axes: int) -> IntArray:
    """Ranges of an axis, evenly spread over all: multiples of irrational numbers, modulo 1."""
    steps = np.arange(1, SAMPLE_BOXES + 1)[:, None] * (
        GOLDEN ** np.array([axis + 1, axis + 1 + axes])
    )
    ends = np.sort(np.floor(steps % 1 * (cells + 1)).astype(np.int64), axis=1)
    ends[:, 1] = np.maximum(ends[:, 1], np.minimum(ends[:, 0] + 1, cells))
    ends[:, 0] = np.minimum(ends[:, 0], ends[:, 1] - 1)
    return ends


Dawa.estimators = {ESTIMATOR: reconstruct_dawa}
