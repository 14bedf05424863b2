"""Estimates without negative numbers: what is kept, and that sums stay right."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htf import publish
from htf.curator.noise import SeededNoise
from htf.estimation.nonnegative import non_negative
from htf.estimation.parts import Parts
from htf.frame.domain import FloatArray
from support import city_matrix, dense

numbers = st.floats(-1e6, 1e6) | st.integers(-3, 3).map(float)


def strip(estimates: list[float], scales: list[float] | None = None) -> Parts:
    """Unit boxes side by side."""
    low = np.arange(len(estimates), dtype=np.int64)[:, None]
    every = np.arange(len(estimates))
    return Parts(low, low + 1, np.array(estimates), np.array(scales or [1.0] * len(every)), every)


@given(st.lists(st.tuples(numbers, st.floats(0, 100)), min_size=1, max_size=40))
def test_the_total_is_kept_and_nothing_grows(rows: list[tuple[float, float]]) -> None:
    estimates, scales = ([row[i] for row in rows] for i in (0, 1))
    found = non_negative(strip(estimates, scales))
    size = np.abs(estimates).sum()
    assert np.all(found >= 0)
    assert np.all(found <= np.maximum(estimates, 0))  # so that 0 stays 0
    assert found.sum() == pytest.approx(max(sum(estimates), 0), abs=1e-9 * size)


def test_nothing_changes_where_nothing_is_negative() -> None:
    estimates = np.random.default_rng(1).exponential(size=777).tolist()
    assert non_negative(strip(estimates)) == pytest.approx(estimates, rel=1e-9)


@pytest.mark.parametrize(
    ("estimates", "scales"),
    [([5, -2], [1, 1]), ([5, -2, 4, 1], [1, 2, 3, 1]), ([3, 1, -8, 9], [1, 1, 1, 2])],
)
def test_halves_are_divided_by_weighted_least_squares(
    estimates: list[float], scales: list[float]
) -> None:
    """Against a search through all divisions, one level after the other."""

    def divide(total: float, values: FloatArray, variances: FloatArray) -> list[float]:
        if len(values) == 1:
            return [total]
        half = len(values) // 2
        sums = values[:half].sum(), values[half:].sum()
        spread = variances[:half].sum(), variances[half:].sum()
        first = np.linspace(0, total, 100_001)
        cost = (first - sums[0]) ** 2 / spread[0] + (total - first - sums[1]) ** 2 / spread[1]
        best = float(first[cost.argmin()])
        left = divide(best, values[:half], variances[:half])
        return left + divide(total - best, values[half:], variances[half:])

    expected = divide(sum(estimates), np.array(estimates, dtype=float), np.square(scales))
    assert non_negative(strip(estimates, scales)) == pytest.approx(expected, abs=1e-3)


def test_large_sums_stay_right() -> None:
    """Where cutting off at zero and scaling would make squares four times as wrong, or more."""
    matrix = city_matrix(128, 100_000)
    parts = publish(matrix, 0.1, "singular", noise=SeededNoise(3)).derived.parts
    assert np.mean(parts.estimates < 0) > 0.2
    cut = np.maximum(parts.estimates, 0) * (
        parts.estimates.sum() / np.maximum(parts.estimates, 0).sum()
    )

    def error(values: FloatArray) -> float:
        found = np.zeros((128, 128))
        found[tuple(parts.low.T)] = values  # each part is a cell
        errors = (found - dense(matrix)).reshape(4, 32, 4, 32).sum(axis=(1, 3))
        return float(np.abs(errors).mean())

    assert error(non_negative(parts)) < error(cut) / 4
    assert error(non_negative(parts)) < 1.5 * error(parts.estimates)
