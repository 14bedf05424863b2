"""An audit: run on neighbouring data sets and look for more privacy loss than was claimed.

The attacker sees the raw measurements and knows both data sets. By Neyman and Pearson the best
statistic is the log-likelihood ratio of the two, computed from the claimed noise. For an event E on
it, ln(P(E | D) / P(E | D')) is at most the true epsilon; Clopper-Pearson bounds make that a bound
that a sound mechanism exceeds with probability at most ALARM for each test.

Seeds are fixed, so the outcome is the same every time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy import stats

from htf import Curator, Epsilon, FrequencyMatrix, Protection, Release
from htf.curator.catalogue import MEASUREMENTS
from htf.curator.cells import ExactCells
from htf.curator.ledger import Ledger
from htf.curator.measurements import CountRegions, Measurement, ScoreSplits
from htf.curator.noise import SeededNoise
from htf.curator.window import Steps, Window
from htf.domain import IntArray
from htf.epsilon import UNITS_PER_EPSILON
from htf.mechanisms.base import Histogram, Mechanism
from htf.mechanisms.htf_paper import HtfPaper
from support import grid, with_one_more

ALARM = 1e-5
EPSILON = Epsilon.of(1)
COUNTS = np.array([[3, 0, 0, 1], [0, 9, 0, 0], [0, 2, 30, 0], [0, 0, 0, 0]])
LESS = FrequencyMatrix.from_dense(grid(4, 4), COUNTS)
MORE = with_one_more(LESS, (1, 1))
SMALL = HtfPaper(
    height=1, stop_count=-1000, stop_cells=2, epsilon_partition_level=Epsilon.of("0.05")
)
DEEP = HtfPaper(height=3, stop_count=5, stop_cells=2, epsilon_partition_level=Epsilon.of("0.05"))


class CountOnce(Mechanism):
    """All of the budget for one count of the map."""

    name = "count-once"
    citation = "none"

    def build(self, window: Window) -> Steps[Histogram]:
        noisy = yield from window.count([0], window.epsilon, "total")
        return Histogram(np.array([0]), noisy, np.array([1 / float(window.epsilon)]), "last-count")


class CountTwice(CountOnce):
    """Spends the budget twice; only a ledger that looks away lets it."""

    name = "count-twice"

    def build(self, window: Window) -> Steps[Histogram]:
        yield from window.count([0], window.epsilon, "total")
        return (yield from super().build(window))


class HalfScaleNoise(SeededNoise):
    """Broken on purpose: noise at half the scale that was paid for."""

    def draw(self, epsilon_units: IntArray, sensitivity: int) -> IntArray:
        return super().draw(2 * epsilon_units, sensitivity)


def loss_of(release: Release, more: FrequencyMatrix = MORE) -> float:
    """ln of the likelihood of the measurements with `more` over that with LESS, as claimed."""
    table = release.measurements
    exact = [exact_values(release, matrix) for matrix in (LESS, more)]
    sensitivity = np.where(table.kind == MEASUREMENTS.index(ScoreSplits), 2, 1)
    rates = table.epsilon / UNITS_PER_EPSILON / sensitivity
    closer = np.abs(table.value - exact[0]) - np.abs(table.value - exact[1])
    return float(np.sum(rates * closer))


def exact_values(release: Release, matrix: FrequencyMatrix) -> IntArray:
    table, cells = release.measurements, ExactCells(matrix, release.tree)
    counts = cells.count(table.region)
    scored = np.flatnonzero(table.kind == MEASUREMENTS.index(ScoreSplits))
    if len(scored):
        counts[scored] = cells.score_splits(
            table.region[scored], table.axis[scored], table.cut[scored]
        )
    plain = [MEASUREMENTS.index(CountRegions), MEASUREMENTS.index(ScoreSplits)]
    assert np.all(np.isin(table.kind, plain))
    return counts


def run_many(
    mechanism: Mechanism, matrix: FrequencyMatrix, noise: Callable[[int], SeededNoise], runs: int
) -> Any:
    losses = np.empty(runs)
    for run in range(runs):
        curator = Curator(matrix, EPSILON, noise(run if matrix is LESS else 10**6 + run))
        losses[run] = loss_of(curator.run(mechanism))
    return losses


@cache
def audited_epsilon(
    mechanism: Mechanism, noise: Callable[[int], SeededNoise], runs: int = 2000
) -> float:
    """The largest epsilon that the attack proves, over events `loss >= t` and `loss <= t`.

    The thresholds come from the first half of the runs, the bounds from the second.
    """
    less, more = (run_many(mechanism, matrix, noise, 2 * runs) for matrix in (LESS, MORE))
    thresholds = np.quantile(
        np.concatenate([less[:runs], more[:runs]]), np.linspace(0.05, 0.95, 10)
    )
    level = ALARM / (4 * len(thresholds))
    best = 0.0
    for t in thresholds:
        for top, bottom in ((more >= t, less >= t), (less <= t, more <= t)):
            likely, rare = int(top[runs:].sum()), int(bottom[runs:].sum())
            if likely > 0:
                least = stats.beta.ppf(level, likely, runs - likely + 1)
                most = stats.beta.isf(level, rare + 1, runs - rare)
                best = max(best, math.log(least / most))
    return best


def test_sound_mechanisms_lose_no_more_than_claimed() -> None:
    assert audited_epsilon(CountOnce(), SeededNoise) <= float(EPSILON)
    assert audited_epsilon(SMALL, SeededNoise, runs=600) <= float(EPSILON)


def test_the_audit_is_not_blind() -> None:
    """For a single count the attack proves most of what is lost."""
    assert audited_epsilon(CountOnce(), SeededNoise) > 0.6 * float(EPSILON)


def test_half_scale_noise_is_caught() -> None:
    assert audited_epsilon(CountOnce(), HalfScaleNoise) > float(EPSILON)
    assert audited_epsilon(SMALL, HalfScaleNoise, runs=600) > float(EPSILON)


def test_a_skipped_charge_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    charge = Ledger.charge

    def skip_the_first(self: Ledger, measurement: Measurement) -> None:
        if len(self.lines) == 0 and not getattr(skip_the_first, "skipped", False):
            skip_the_first.skipped = True  # type: ignore[attr-defined]
            return
        skip_the_first.skipped = False  # type: ignore[attr-defined]
        charge(self, measurement)

    monkeypatch.setattr(Ledger, "charge", skip_the_first)
    assert audited_epsilon(CountTwice(), SeededNoise) > float(EPSILON)


def test_no_run_of_the_paper_mechanism_exceeds_its_claim() -> None:
    """Stronger than any sample: with exact accounting the loss of every single run is bounded."""
    for matrix in (LESS, MORE):
        losses = run_many(DEEP, matrix, SeededNoise, 200)
        assert np.max(np.abs(losses)) <= float(EPSILON) + 1e-9
        assert np.max(np.abs(losses)) > 0.3, "the bound must be put to the test"


def of_people(matrix: FrequencyMatrix, number: int) -> FrequencyMatrix:
    kept = matrix.exact_coordinates, matrix.exact_counts
    return FrequencyMatrix(matrix.domain, *kept, Protection("person", number))


@pytest.mark.parametrize("places", [[(1, 1)] * 3, [(0, 0), (1, 1), (2, 2)]])
@pytest.mark.parametrize("mechanism", [CountOnce(), DEEP])
def test_no_run_tells_more_of_a_person_than_is_claimed(
    places: list[tuple[int, int]], mechanism: Mechanism
) -> None:
    """One person more is three records more, in one cell or in several."""
    more = LESS
    for place in places:
        more = with_one_more(more, place)
    for number, claimed in ((3, True), (2, False)):  # with a bound that was not kept it shows
        losses = []
        for run in range(150):
            matrix = of_people(more if run % 2 else LESS, number)
            made = Curator(matrix, EPSILON, SeededNoise(run)).run(mechanism)
            losses.append(abs(loss_of(made, more)))
        assert (max(losses) <= float(EPSILON) + 1e-9) == claimed
        assert max(losses) > 0.3, "the bound must be put to the test"
