"""The mechanism `kdtree-cell`, and what it shares with `dpcube`, against slow, obvious references."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from htf import BudgetError, Epsilon, FrequencyMatrix, InputError, publish
from htf.curator.noise import ScriptedNoise, SeededNoise
from htf.estimation.least_squares import TreeCounts
from htf.frame.domain import FloatArray, IntArray
from htf.frame.grids import even_edges
from htf.frame.tree import RegionTree
from htf.mechanisms import registry
from htf.mechanisms.base import Mechanism
from htf.release.release import Release
from htf_bench.mechanisms.kdtree_cell import (
    KdTreeCell,
    NoisyCells,
    combine_cells_and_counts,
    grid_parts,
)
from support import city_matrix, dense, grid

both = pytest.mark.parametrize("name", ["kdtree-cell", "dpcube"])
UNITS = Epsilon.of("0.5").units


def deviations(values: FloatArray | IntArray) -> float:
    return float(np.sum((values - values.mean()) ** 2))


def gain(values: IntArray, axis: int, place: int) -> float:
    """By how much a cut lowers the sum of squared deviations."""
    halves = np.split(values.astype(np.float64), [place], axis=axis)
    return deviations(values) - sum(deviations(half) for half in halves)


def naive_leaves(values: IntArray, variance: float, threshold: float, cut: str) -> list[Any]:
    """The kd-tree on noisy cells, one node after the other. Boxes as (low, high) in cells."""
    waiting, leaves = [((0,) * values.ndim, values.shape)], []
    while waiting:
        low, high = waiting.pop()
        inside = values[tuple(slice(a, b) for a, b in zip(low, high, strict=True))]
        cuts = [(axis, k) for axis in range(values.ndim) for k in range(1, inside.shape[axis])]
        gains = [gain(inside, *c) for c in cuts]
        if not cuts or max(gains) <= threshold**2 * variance:
            leaves.append((low, high))
            continue
        axis, place = cuts[int(np.argmax(gains))]
        if cut == "median":
            axis = int(np.argmax(inside.shape))
            others = tuple(a for a in range(values.ndim) if a != axis)
            below = np.cumsum(inside.sum(axis=others))[:-1]
            place = 1 + int(np.argmin(np.abs(2 * below - inside.sum())))
        middle = list(high)
        middle[axis] = low[axis] + place
        waiting.append((low, tuple(middle)))
        start = list(low)
        start[axis] = low[axis] + place
        waiting.append((tuple(start), high))
    return leaves


def cells_of(release: Release) -> NoisyCells:
    """The noisy cells, read off a release."""
    parts, table = release.facts["cells_per_axis"], release.measurements
    rows = table.line == 0
    return NoisyCells.of(
        release.domain.shape, parts, table.value[rows], int(table.epsilon[rows][0])
    )


def leaf_boxes(release: Release) -> list[Any]:
    pairs = zip(release.low.tolist(), release.high.tolist(), strict=True)
    return sorted((tuple(low), tuple(high)) for low, high in pairs)


@both
@pytest.mark.parametrize("shape", [(16, 16), (1, 30), (7, 12), (5, 4, 6)])
def test_the_same_tree_as_one_node_at_a_time(name: str, shape: tuple[int, ...]) -> None:
    generator = np.random.default_rng(4)
    counts = generator.poisson(generator.choice([0, 3, 60], shape))
    matrix = FrequencyMatrix.from_dense(grid(*shape), counts)
    mechanism = registry()[name](split_deviations=2.5)  # type: ignore[call-arg]
    release = publish(matrix, "0.4", mechanism, noise=SeededNoise(6))
    cells = cells_of(release)
    assert cells.values.shape == shape
    cut = "median" if name == "kdtree-cell" else "v-optimal"
    expected = naive_leaves(cells.values, cells.variance, 2.5, cut)
    assert len(expected) > 3
    assert leaf_boxes(release) == sorted(expected)


def random_cells(shape: tuple[int, ...]) -> NoisyCells:
    values = np.random.default_rng(1).integers(-50, 500, shape)
    return NoisyCells.of(shape, shape, values.ravel(), UNITS)


@pytest.mark.parametrize("shape", [(9,), (6, 11), (4, 5, 6)])
def test_sums_medians_and_gains(shape: tuple[int, ...]) -> None:
    cells, generator = random_cells(shape), np.random.default_rng(2)
    ends = np.sort(generator.integers(0, np.array(shape) - 1, (2, 200, len(shape))), axis=0)
    low, high = ends[0], ends[1] + 2  # at least two cells wide everywhere
    axes = generator.integers(0, len(shape), 200)
    medians, sums = cells.medians(low, high, axes), cells.sum(low, high)
    best_axes, best, gains = cells.most_uniform_cuts(low, high)
    for i in range(200):
        inside = cells.values[tuple(slice(a, b) for a, b in zip(low[i], high[i], strict=True))]
        assert sums[i] == inside.sum()
        others = tuple(a for a in range(len(shape)) if a != axes[i])
        below = np.cumsum(inside.sum(axis=others))[:-1]
        imbalance = np.abs(2 * below - inside.sum())
        assert imbalance[medians[i] - low[i, axes[i]] - 1] == imbalance.min()
        every = [gain(inside, a, k) for a in range(len(shape)) for k in range(1, inside.shape[a])]
        assert gains[i] == pytest.approx(max(every))
        assert gain(inside, best_axes[i], best[i] - low[i, best_axes[i]]) == pytest.approx(gains[i])


def test_leaf_and_cells_are_combined_by_inverse_variance() -> None:
    """Two halves of a row of 3 + 1 cells, by hand. Noise of scale b has variance 1 / (2 sinh(1/2b)^2)."""
    tree = RegionTree((1, 4))
    leaves = tree.split(np.array([0]), np.array([1]), np.array([3])).ravel()
    cells = NoisyCells.of((1, 4), (1, 4), np.array([10, 20, 30, 40]), Epsilon.of("0.2").units)
    counts = TreeCounts()
    counts.add(leaves, np.array([90, 36]), Epsilon.of("0.3"))
    estimates, scales = combine_cells_and_counts(tree, leaves, cells, counts)
    of_cell, of_count = (1 / (2 * math.sinh(e / 2) ** 2) for e in (0.2, 0.3))
    assert of_cell == pytest.approx(cells.variance)
    for i, (sum_of_cells, size, count) in enumerate([(60, 3, 90), (40, 1, 36)]):
        weights = 1 / (size * of_cell), 1 / of_count
        mean = (weights[0] * sum_of_cells + weights[1] * count) / sum(weights)
        assert estimates[i] == pytest.approx(mean)
        assert 1 / (2 * math.sinh(1 / (2 * scales[i])) ** 2) == pytest.approx(1 / sum(weights))


@both
def test_estimates_follow_from_the_release(name: str) -> None:
    release = publish(city_matrix(), "0.5", name, noise=SeededNoise(3))
    table, counts = release.measurements, TreeCounts()
    rows = table.line == 1
    counts.add(table.region[rows], table.value[rows], table.epsilon[rows])
    estimates, scales = combine_cells_and_counts(
        release.tree, release.leaves, cells_of(release), counts
    )
    assert release.estimator == "cells-and-counts"
    assert release.estimates.tolist() == estimates.tolist()
    assert release.scales.tolist() == scales.tolist()


def leaf_errors(matrix: FrequencyMatrix, mechanism: Mechanism, epsilon: str) -> FloatArray:
    """Estimate less truth, of all leaves of ten releases."""
    counts, errors = dense(matrix), []
    for seed in range(10):
        release = publish(matrix, epsilon, mechanism, noise=SeededNoise(seed))
        boxes = zip(release.low, release.high, strict=True)
        exact = np.array([counts[a[0] : b[0], a[1] : b[1]].sum() for a, b in boxes])
        errors.append(release.estimates - exact)
    return np.concatenate(errors)


@both
def test_where_counts_are_large_the_cells_halve_the_variance(name: str) -> None:
    """Leaves are single cells here, and are counted twice with the same epsilon."""
    counts = np.random.default_rng(5).integers(0, 10_000, (16, 16))
    matrix = FrequencyMatrix.from_dense(grid(16, 16), counts)
    for estimate, variance in (("combined", 100), ("fresh", 200)):
        mechanism = registry()[name](estimate=estimate)  # type: ignore[call-arg]
        errors = leaf_errors(matrix, mechanism, "0.2")
        assert np.mean(errors**2) == pytest.approx(variance, rel=0.1)


@both
def test_fresh_estimates_are_unbiased_whatever_was_cut(name: str) -> None:
    mechanism = registry()[name](estimate="fresh")  # type: ignore[call-arg]
    errors = leaf_errors(city_matrix(), mechanism, "0.2")
    assert np.mean(errors**2) == pytest.approx(200, rel=0.1)
    assert abs(errors.mean()) < 4 * math.sqrt(200 / len(errors))
    release = publish(city_matrix(), "0.2", mechanism, noise=SeededNoise(1))
    assert release.estimator == "last-count"
    assert np.all(release.scales == 10)


@both
def test_the_budget(name: str) -> None:
    mechanism: Mechanism = registry()[name](cell_share=0.3)  # type: ignore[call-arg]
    release = publish(city_matrix(), "0.7", mechanism, noise=SeededNoise(3))
    assert [line.kind for line in release.ledger] == ["linear", "count"]
    assert release.ledger[0].largest_epsilon == Epsilon.of("0.21")
    assert release.ledger[1].smallest_epsilon == Epsilon.of("0.49")
    assert release.spent == release.epsilon == Epsilon.of("0.7")


@both
def test_without_noise_the_leaves_are_exact(name: str) -> None:
    matrix = city_matrix()
    release = publish(matrix, "1", name, noise=ScriptedNoise())
    counts = dense(matrix)
    assert len(release) > 50
    for low, high, estimate in zip(release.low, release.high, release.estimates, strict=True):
        assert estimate == counts[low[0] : high[0], low[1] : high[1]].sum()


@both
def test_a_flat_map_is_hardly_cut_and_a_lumpy_one_is(name: str) -> None:
    flat = FrequencyMatrix.from_dense(grid(64, 64), np.full((64, 64), 3))
    mechanism: Mechanism = registry()[name](split_deviations=5)  # type: ignore[call-arg]
    sizes = [len(publish(flat, "0.5", mechanism, noise=SeededNoise(s))) for s in range(5)]
    assert np.mean(sizes) < 10
    assert len(publish(city_matrix(), "2", mechanism, noise=SeededNoise(1))) > 50


@pytest.mark.parametrize(
    ("shape", "setting", "parts"),
    [
        ((1024, 1024), None, [256, 256]),
        ((100, 70), None, [100, 70]),
        ((2**20, 2**20), None, [256, 256]),
        ((1, 2**20), None, [1, 1024]),
        ((1024, 1024, 24), None, [52, 52, 24]),
        ((64, 64, 64, 64), None, [16, 16, 16, 16]),
        ((1024, 1024), 512, [512, 512]),
        ((300, 1000), 512, [300, 512]),
    ],
)
def test_the_grid_is_chosen_in_the_open(
    shape: tuple[int, ...], setting: int | None, parts: list[int]
) -> None:
    assert grid_parts(grid(*shape), setting) == parts
    for edges, cells, part in zip(even_edges(shape, parts), shape, parts, strict=True):
        assert (edges[0], edges[-1], len(edges)) == (0, cells, part + 1)
        assert np.diff(edges).max() - np.diff(edges).min() <= 1
        assert np.diff(edges).min() >= 1


def test_leaves_lie_on_the_lines_of_a_grid_that_does_not_divide_the_domain() -> None:
    counts = np.random.default_rng(3).poisson(20, (50, 37)) * (np.arange(37) > 20)
    matrix = FrequencyMatrix.from_dense(grid(50, 37), counts)
    release = publish(matrix, "1", KdTreeCell(cells_per_axis=8), noise=SeededNoise(1))
    assert release.facts == {"cells_per_axis": [8, 8]}
    for axis, edges in enumerate(even_edges((50, 37), (8, 8))):
        assert set(release.low[:, axis]) | set(release.high[:, axis]) <= set(edges)
    assert len(release) > 4


@both
def test_refusals(name: str) -> None:
    mechanism = registry()[name]
    for settings, message in (
        ({"cells_per_axis": 0}, "cells_per_axis must be from 1 to 1024, got 0"),
        ({"cells_per_axis": 2000}, "cells_per_axis must be from 1 to 1024, got 2000"),
        ({"cell_share": 1.0}, "cell_share must be between 0 and 1"),
        ({"estimate": "best"}, "estimate must be combined or fresh, got 'best'"),
        ({"split_deviations": -1.0}, "split_deviations must not be negative"),
        ({"split_deviations": math.nan}, "split_deviations must be a finite number, got nan"),
    ):
        with pytest.raises(InputError, match=message):
            mechanism(**settings)
    with pytest.raises(BudgetError, match=r"cell_share 0\.5 of it is nothing"):
        publish(city_matrix(), "1e-15", name, noise=SeededNoise(1))
    with pytest.raises(InputError, match="more than 1048576"):
        grid_parts(grid(500, 500, 500), 500)
    with pytest.raises(InputError, match="split_deviations must be a number"):
        mechanism.from_settings({"split_deviations": "many"})
