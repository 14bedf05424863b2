"""Intervals of whole answers cover the exact count 95 % of the time.

Each case makes many independent counts with fresh discrete Laplace noise, by way of
`count_boxes`. Exact coverage lies between 95.0 and 95.8 % at these scales (computed in
`test_query_intervals`), so the number covered is checked against binomials of 94.9 and 95.9 %, with
a chance of 1e-6 on either side. Seeds are fixed, so a run does not vary; with fresh seeds the false
alarms of all cases here together would be below 2e-5.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest
from scipy import stats

from htf.frame.domain import Axis, Domain, FloatArray
from htf.query.boxes import count_boxes
from htf.query.index import BoxIndex
from support import plain_intervals


@pytest.fixture(autouse=True, scope="module")
def _as_the_noise_gives_them() -> Iterator[None]:
    """Intervals before they are cut off at zero and reach as far as the count, which makes them cover more."""
    with plain_intervals():
        yield


# Leaves in a count, noise scale, and trials.
CASES = [(1, 5.0, 3000), (1, 1000.0, 3000), (10, 5.0, 3000), (10, 1e5, 3000), (1000, 20.0, 1000)]


@cache
def draw(leaves: int, scale: float, trials: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """How far each count is from the exact one, its half width and its standard error."""
    random = np.random.default_rng(1000 * leaves + int(scale))
    cells = leaves * trials
    stop = -np.expm1(-1 / scale)
    noise = random.geometric(stop, cells) - random.geometric(stop, cells)
    edges = np.arange(cells + 1)[:, None]
    index = BoxIndex(
        edges[:-1], edges[1:], np.add(noise, 7, dtype=np.float64), np.full(cells, scale)
    )
    starts = np.arange(0, cells, leaves)
    boxes = np.column_stack([starts, starts + leaves])
    answers = count_boxes(Domain((Axis("x", 0, cells, cells),)), index, boxes)
    return answers.count - 7 * leaves, (answers.high - answers.low) / 2, answers.std_error


def covers_as_claimed(errors: FloatArray, half: FloatArray) -> bool:
    covered = int(np.count_nonzero(np.abs(errors) <= half))
    too_few = stats.binom.cdf(covered, len(errors), 0.949) < 1e-6
    too_many = stats.binom.sf(covered - 1, len(errors), 0.959) < 1e-6
    return not (too_few or too_many)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_intervals_cover_the_exact_count(case: tuple[int, float, int]) -> None:
    errors, half, _ = draw(*case)
    assert covers_as_claimed(errors, half)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_check_rejects_wrong_widths(case: tuple[int, float, int]) -> None:
    errors, half, std_error = draw(*case)
    assert not covers_as_claimed(errors, 1.96 * std_error / 1.3)
    assert not covers_as_claimed(errors, half * 1.5)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_standard_errors_are_those_seen(case: tuple[int, float, int]) -> None:
    """Within 12 %. One leaf has kurtosis 6, so the standard deviation of this estimate is
    sqrt(5 / 4 / 3000) = 2.0 %, and 2.2 % for 1000 trials of a normal sum: five of them and more,
    so with fresh seeds false alarms would be below 1e-5."""
    errors, _, std_error = draw(*case)
    assert np.sqrt(np.mean(errors**2)) == pytest.approx(std_error[0], rel=0.12)
    assert np.all(std_error == pytest.approx(std_error[0], rel=1e-12))
