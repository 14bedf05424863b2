"""The mechanism `dawa`: its stages, its hierarchy, and what it releases."""

from __future__ import annotations

import math

import numpy as np
import pytest

from htf import BudgetError, Epsilon, FrequencyMatrix, InputError, publish
from htf.curator.noise import ScriptedNoise, SeededNoise
from htf.frame.domain import FloatArray, IntArray
from htf.frame.tree import RegionTree
from htf_bench.mechanisms.dawa import (
    SUM_OF_WEIGHTS,
    Buckets,
    Curve,
    Dawa,
    Hierarchy,
    _sample_ranges,
    box_energies,
    choose_weights,
    reconstruct_dawa,
)
from support import city_matrix, dense, grid


def quadrants() -> FrequencyMatrix:
    """Flat but for one cell: quadrants of 40, 0, 3 and 7 records a cell."""
    counts = np.kron(np.array([[40, 0], [3, 7]]), np.ones((16, 16), dtype=np.int64))
    counts[5, 6] = 900
    return FrequencyMatrix.from_dense(grid(32, 32), counts)


def spread(
    estimates: FloatArray, low: IntArray, high: IntArray, shape: tuple[int, ...]
) -> FloatArray:
    """Each box's estimate, evenly over its cells."""
    cells = np.zeros(shape)
    for estimate, first, last in zip(estimates, low, high, strict=True):
        box = tuple(slice(a, b) for a, b in zip(first, last, strict=True))
        cells[box] = estimate / cells[box].size
    return cells


@pytest.mark.parametrize("strategy", ["buckets", "hierarchy"])
def test_without_noise_flat_parts_come_out_as_they_are(strategy: str) -> None:
    matrix = quadrants()
    release = publish(matrix, "1", Dawa(strategy=strategy), noise=ScriptedNoise())
    found = spread(release.estimates, release.low, release.high, (32, 32))
    assert np.array_equal(found, dense(matrix))
    assert release.facts["buckets"] < 30
    assert len(release) < 60
    assert release.estimates.sum() == dense(matrix).sum()


def test_the_budget_is_shared_and_all_spent() -> None:
    release = publish(quadrants(), "0.8", "dawa", noise=SeededNoise(1))
    partition, counts = release.ledger
    assert (partition.kind, counts.kind) == ("buckets", "runs")
    assert partition.largest_epsilon == Epsilon.of("0.2")
    assert counts.largest_epsilon == Epsilon.of("0.6")
    assert release.spent == Epsilon.of("0.8")


def test_the_penalty_is_the_papers_and_one_for_the_noise() -> None:
    partition, data = Epsilon.of("0.025"), Epsilon.of("0.075")
    assert Dawa(noise_penalty=0)._penalty(partition, data) == math.ceil(1 / 0.075)
    assert Dawa()._penalty(partition, data) == math.ceil(1 / 0.075 + 11 / 0.025)


def test_flat_data_have_few_buckets_and_an_empty_map_too() -> None:
    for value in (0, 6):
        counts = np.full((64, 64), value)
        matrix = FrequencyMatrix.from_dense(grid(64, 64), counts)
        release = publish(matrix, "0.1", "dawa", noise=SeededNoise(2))
        assert release.facts["buckets"] < 400, "of 4096 cells"


def test_what_the_penalty_for_noise_is_good_for() -> None:
    """As published (0) the noise alone tears the map apart."""
    matrix = city_matrix()
    torn, whole = (
        publish(matrix, "0.1", Dawa(noise_penalty=p), noise=SeededNoise(3)).facts["buckets"]
        for p in (0, 11)
    )
    assert torn > 5 * whole


@pytest.mark.parametrize("shape", [(1, 1), (1, 50), (7, 13), (9, 8, 5), (5, 4, 3, 6), (300, 20)])
def test_boxes_tile_any_grid_and_lie_in_one_bucket_each(shape: tuple[int, ...]) -> None:
    curve = Curve.over(shape, 2**16)
    generator = np.random.default_rng(5)
    begins = (generator.random(len(curve.positions)) < 0.2).astype(np.int64)
    begins[0] = 1
    tree = RegionTree(shape)
    buckets = Buckets(curve, begins)
    leaves = buckets.cut(tree)
    assert tree.is_covered_once_by(leaves)
    for low, high in zip(tree.low[leaves], tree.high[leaves], strict=True):
        box = tuple(slice(a, b) for a, b in zip(low, high, strict=True))
        assert len(np.unique(buckets.of_cell[box])) == 1


def random_buckets(number: int, shape: tuple[int, ...] = (16, 16)) -> Buckets:
    curve, cells = Curve.over(shape, 2**16), math.prod(shape)
    begins = np.zeros(cells, dtype=np.int64)
    begins[np.random.default_rng(number).choice(np.arange(1, cells), number - 1, replace=False)] = 1
    begins[0] = 1
    return Buckets(curve, begins)


def dense_strategy(hierarchy: Hierarchy) -> FloatArray:
    """What is measured, as a matrix over buckets."""
    starts, stops, weights = hierarchy.runs()
    inside = (hierarchy.buckets.starts >= starts[:, None]) & (
        hierarchy.buckets.starts < stops[:, None]
    )
    return np.asarray(inside * weights[:, None], dtype=np.float64)


@pytest.mark.parametrize("number", [1, 2, 7, 32, 100])
@pytest.mark.parametrize("weights", [[1], [3, 0, 2], [5, 1, 1, 4, 0, 0, 2, 7]])
def test_the_hierarchys_estimates_are_the_least_squares(number: int, weights: list[int]) -> None:
    levels = (number - 1).bit_length() + 1
    hierarchy = Hierarchy(random_buckets(number), weights[:levels])
    strategy = dense_strategy(hierarchy)
    noisy = np.random.default_rng(1).integers(-1000, 1000, len(strategy))
    estimates, variances = hierarchy.least_squares(noisy, 3.0)
    assert np.allclose(estimates, np.linalg.lstsq(strategy, noisy, rcond=None)[0])
    assert np.allclose(variances, 3 * np.diag(np.linalg.inv(strategy.T @ strategy)))


def squared_error(hierarchy: Hierarchy, boxes: FloatArray) -> float:
    strategy = dense_strategy(hierarchy)
    covariance = np.linalg.inv(strategy.T @ strategy)
    return float(sum(hierarchy.weights) ** 2 * np.sum(boxes * (boxes @ covariance)))


def shares_in(buckets: Buckets, ranges: IntArray) -> FloatArray:
    """The share of each bucket that lies in each of the boxes `ranges[box, axis]`."""
    rows = []
    for box in ranges:
        inside = buckets.of_cell[tuple(slice(*bounds) for bounds in box)]
        rows.append(np.bincount(inside.ravel(), minlength=len(buckets.lengths)))
    return np.array(rows) / buckets.lengths


def test_the_weights_are_made_for_boxes() -> None:
    """Better than buckets alone, and than equal weights, for boxes that were not the sample."""
    buckets = random_buckets(256, (600,))
    chosen = choose_weights(buckets)
    assert chosen[0] >= 1
    assert sum(chosen) <= SUM_OF_WEIGHTS
    generator = np.random.default_rng(6)
    ranges = np.sort([generator.choice(601, 2, replace=False) for _ in range(2000)], axis=1)
    boxes = shares_in(buckets, ranges[:, None, :])
    errors = [
        squared_error(Hierarchy(buckets, weights), boxes) for weights in (chosen, [1], [1] * 9)
    ]
    assert errors[0] < 0.8 * min(errors[1:])


def test_a_hierarchy_over_one_bucket_is_that_bucket() -> None:
    matrix = FrequencyMatrix.from_dense(grid(1, 1), np.array([[7]]))
    release = publish(matrix, "1", Dawa(strategy="hierarchy"), noise=ScriptedNoise())
    assert release.estimates.tolist() == [7]


@pytest.mark.parametrize("weights", [[1, 0, 0, 0, 0, 0, 0], [4, 1, 0, 2, 3, 0, 1]])
def test_the_squared_error_is_a_sum_over_levels(weights: list[int]) -> None:
    buckets = random_buckets(64)
    ranges = np.stack([_sample_ranges(16, axis, 2) for axis in (0, 1)], axis=1)
    values = np.cumsum(np.array(weights) ** 2 * 2.0 ** np.arange(7))
    expected = sum(weights) ** 2 * np.sum(box_energies(buckets) / values)
    found = squared_error(Hierarchy(buckets, weights), shares_in(buckets, ranges))
    assert found == pytest.approx(expected)


@pytest.mark.parametrize("strategy", ["buckets", "hierarchy"])
def test_estimates_can_be_recomputed(strategy: str) -> None:
    release = publish(city_matrix(), "1", Dawa(strategy=strategy), noise=SeededNoise(1))
    estimates, scales = reconstruct_dawa(release)
    assert np.array_equal(estimates, release.estimates)
    assert np.array_equal(scales, release.scales)
    release.facts["level_weights"] = [1, 1]
    assert not np.array_equal(reconstruct_dawa(release)[0], release.estimates)


def test_fine_grids_are_coarsened_in_the_open() -> None:
    matrix = FrequencyMatrix.from_cells(grid(3000, 500), [[0, 2999], [17, 499]], [4000, 200])
    release = publish(matrix, "1", "dawa", noise=ScriptedNoise())
    assert release.facts["grid"] == [256, 256]
    assert release.facts["curve"] == "hilbert"
    assert release.estimates.sum() == 4200
    three = FrequencyMatrix.from_cells(grid(64, 64, 64), [[1], [2], [3]], [5])
    facts = publish(three, "1", "dawa", noise=ScriptedNoise()).facts
    assert (facts["grid"], facts["curve"]) == ([64, 32, 32], "morton")


def test_what_cannot_be_done_is_refused_before_the_first_draw() -> None:
    with pytest.raises(InputError, match="partition_share must be between 0 and 1, got 1"):
        Dawa(partition_share=1.0)
    with pytest.raises(InputError, match="strategy must be buckets or hierarchy, got 'greedy'"):
        Dawa(strategy="greedy")
    with pytest.raises(InputError, match="noise_penalty must not be negative, got -1"):
        Dawa(noise_penalty=-1)
    with pytest.raises(BudgetError, match="are too small: a bucket would cost"):
        publish(city_matrix(), "1e-11", "dawa", noise=SeededNoise(1))
