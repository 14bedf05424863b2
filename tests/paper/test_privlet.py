"""The mechanism `privlet` against its paper: transform, weights, noise variance, any grid size."""

from __future__ import annotations

import math

import numpy as np
import pytest

from htf import BudgetError, FrequencyMatrix, InputError, publish
from htf.curator.noise import ScriptedNoise, SeededNoise
from htf.estimation.noise_law import noise_variance, noise_variances
from htf.frame.domain import FloatArray, IntArray
from htf.frame.grids import MOST_GRID_CELLS, even_edges
from htf_bench.grids import coarse_shape, padded
from htf_bench.mechanisms.privlet import (
    Privlet,
    cell_variance,
    haar_matrix,
    invert_haar,
    reconstruct_privlet,
    sensitivity_of,
)
from support import grid

# Each check of a variance is two-sided at this many standard errors of its estimate; with seeds
# fixed they pass for good, with fresh ones about one run in 15,000 of each would raise an alarm.
ALARM = 4.0


def paper_coefficients(values: IntArray) -> tuple[list[float], list[float]]:
    """Section IV, word by word: mean of the left half less that of the right, over 2; and weights."""
    coefficients, weights = [float(np.mean(values))], [float(len(values))]
    parts = [values]
    while len(parts[0]) > 1:
        halves = [np.split(part, 2) for part in parts]
        coefficients += [float(np.mean(left) - np.mean(right)) / 2 for left, right in halves]
        weights += [float(len(part)) for part in parts]
        parts = [half for pair in halves for half in pair]
    return coefficients, weights


@pytest.mark.parametrize("size", [1, 2, 8, 64])
def test_what_is_measured_is_the_papers_coefficient_times_its_weight(size: int) -> None:
    values = np.random.default_rng(size).integers(0, 50, size)
    coefficients, weights = paper_coefficients(values)
    expected = np.array(coefficients) * np.array(weights)
    assert (haar_matrix(size) @ values).tolist() == pytest.approx(expected.tolist())


def test_the_papers_example() -> None:
    """Section IV: 9, 3, 6, 2, 8, 4, 5, 7 has base 5.5 and coefficients -0.5, 1, 0, 3, 2, 2, -1."""
    values = np.array([9, 3, 6, 2, 8, 4, 5, 7])
    coefficients, weights = paper_coefficients(values)
    assert coefficients == [5.5, -0.5, 1, 0, 3, 2, 2, -1]
    assert weights == [8, 8, 4, 4, 2, 2, 2, 2]
    assert (haar_matrix(8) @ values).tolist() == [44, -4, 4, 0, 6, 4, 4, -2]


@pytest.mark.parametrize("cells", [1, 2, 5, 7, 8, 100])
def test_the_inverse_is_the_inverse_and_the_sensitivity_the_papers(cells: int) -> None:
    size = padded(cells)
    full = haar_matrix(size)
    generator = np.random.default_rng(cells)
    values = generator.normal(size=(3, size))
    assert np.allclose(invert_haar(values @ full.T, 1), values)
    assert np.allclose(invert_haar(full @ values.T, 0), values.T)
    assert np.array_equal(haar_matrix(cells), full[:, :cells])
    assert np.all(np.abs(full).sum(axis=0) == 1 + math.log2(size))
    assert sensitivity_of([cells, cells]) == (1 + math.log2(size)) ** 2


@pytest.mark.parametrize(
    "shape", [(1,), (5,), (7, 100), (100, 5), (1, 50), (5, 7, 3), (3, 2, 5, 4), (64, 64)]
)
def test_without_noise_every_cell_is_exact(shape: tuple[int, ...]) -> None:
    counts = np.random.default_rng(1).poisson(30, shape)
    matrix = FrequencyMatrix.from_dense(grid(*shape), counts)
    release = publish(matrix, "1", "privlet", noise=ScriptedNoise())
    assert release.estimates.tolist() == counts.ravel().tolist()
    assert np.array_equal(release.low, np.argwhere(np.ones(shape)))
    assert release.facts == {"grid": list(shape)}
    assert release.ledger[0].sensitivity == sensitivity_of(shape)


def noise_of_runs(shape: tuple[int, ...], epsilon: str, runs: int) -> FloatArray:
    """Estimates of an empty map: noise alone, one row for each run."""
    empty = FrequencyMatrix.from_dense(grid(*shape), np.zeros(shape, dtype=np.int64))
    source = SeededNoise(12)
    return np.array(
        [publish(empty, epsilon, "privlet", noise=source).estimates for _ in range(runs)]
    ).reshape(runs, *shape)


def naive_variance(shape: tuple[int, int], box: tuple[slice, slice], scale: float) -> float:
    """Of the noise in a sum of cells: through a dense inverse."""
    share = 1.0
    for cells, part in zip(shape, box, strict=True):
        inside = np.zeros(padded(cells))
        inside[part] = 1
        share *= float(np.sum((inside @ np.linalg.inv(haar_matrix(padded(cells)))) ** 2))
    return noise_variance(scale) * share


@pytest.mark.parametrize("shape", [(16, 8), (7, 5)])
def test_noise_variance_of_cells_and_ranges(shape: tuple[int, int]) -> None:
    runs, scale = 3000, float(sensitivity_of(shape)) / 0.5
    noise = noise_of_runs(shape, "0.5", runs)
    cell = cell_variance(shape, 5 * 10**14)
    assert cell == pytest.approx(naive_variance(shape, (slice(0, 1), slice(0, 1)), scale))
    boxes = [(slice(2, 3), slice(1, 2)), (slice(1, 6), slice(0, 3)), (slice(0, 7), slice(2, 5))]
    for box in boxes:
        sums = noise[:, box[0], box[1]].sum(axis=(1, 2))
        expected = naive_variance(shape, box, scale)
        kurtosis = float(np.mean(sums**4) / np.mean(sums**2) ** 2)
        error = math.sqrt((kurtosis - 1) / runs)
        assert abs(np.mean(sums**2) / expected - 1) < ALARM * error
        assert abs(np.mean(sums)) < ALARM * math.sqrt(expected / runs)


def test_the_variance_check_would_see_noise_of_the_wrong_scale() -> None:
    """A tenth more noise is beyond the alarm of the check above."""
    sums = noise_of_runs((16, 8), "0.5", 3000)[:, 2, 1]
    error = math.sqrt((float(np.mean(sums**4) / np.mean(sums**2) ** 2) - 1) / len(sums))
    assert 1.2 * ALARM * error < 1.1**2 - 1


def test_scales_say_what_noise_a_cell_has_and_ranges_have_far_less_than_their_sum() -> None:
    shape = (256, 256)
    empty = FrequencyMatrix.from_dense(grid(*shape), np.zeros(shape, dtype=np.int64))
    release = publish(empty, "1", "privlet", noise=SeededNoise(3))
    expected = 2 * 81**2 / 9
    assert noise_variances(release.scales)[0] == pytest.approx(expected, rel=1e-3)
    assert np.var(release.estimates) == pytest.approx(expected, rel=0.1)
    half = (slice(0, 100), slice(30, 200))
    assert naive_variance(shape, half, 81.0) < 0.02 * expected * 100 * 170


def test_fine_grids_are_coarsened_in_the_open() -> None:
    matrix = FrequencyMatrix.from_cells(grid(3000, 5000), [[0, 2999], [17, 4999]], [40, 2])
    release = publish(matrix, "1", "privlet", noise=ScriptedNoise())
    assert release.facts == {"grid": [1024, 1024]}
    assert len(release) == 1024 * 1024
    assert sorted(release.estimates)[-2:] == [2, 40]
    assert release.estimates.sum() == 42


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((1024, 1024), (1024, 1024)),
        ((1025, 1000), (1024, 1000)),
        ((2**20, 2**20), (1024, 1024)),
        ((100_000, 300), (2048, 300)),
        ((3, 10**6), (3, 2**18)),
        ((500, 500, 24), (256, 128, 24)),
        ((10**6,), (10**6,)),
        ((40, 40, 40, 40), (32, 32, 32, 32)),
    ],
)
def test_the_grid_worked_on(shape: tuple[int, ...], expected: tuple[int, ...]) -> None:
    assert coarse_shape(shape, MOST_GRID_CELLS) == expected
    for edges, cells, coarse in zip(even_edges(shape, expected), shape, expected, strict=True):
        widths = np.diff(edges)
        assert (edges[0], edges[-1], len(widths)) == (0, cells, coarse)
        assert widths.max() - widths.min() <= 1


def test_estimates_can_be_recomputed_and_doctored_ones_are_found() -> None:
    matrix = FrequencyMatrix.from_dense(grid(5, 7), np.arange(35).reshape(5, 7))
    release = publish(matrix, "1", "privlet", noise=SeededNoise(1))
    estimates, scales = reconstruct_privlet(release)
    assert np.array_equal(estimates, release.estimates)
    assert np.array_equal(scales, release.scales)


def test_what_cannot_be_done_is_refused_before_the_first_draw() -> None:
    with pytest.raises(InputError, match="most_cells must be at least 65536, got 100"):
        Privlet(most_cells=100)
    matrix = FrequencyMatrix.from_dense(grid(8, 8), np.ones((8, 8), dtype=np.int64))
    with pytest.raises(BudgetError, match="moves the measured numbers by 16 in all"):
        publish(matrix, "1e-15", "privlet", noise=SeededNoise(1))
