"""Looks that are refined: their law and their loss by enumeration, draws against it, and what is refused."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from htf import BudgetError, Curator, Epsilon, FrequencyMatrix, InputError
from htf.curator.looks import CountLooks, RefinedCounts, no_more_probability
from htf.curator.noise import FastNoise, NoiseSource, OpenDPNoise, SeededNoise
from htf.frame.domain import FloatArray, IntArray
from htf.privacy.epsilon import UNITS_PER_EPSILON
from support import grid

ALARM = 1e-9  # of each comparison of frequencies: four, so one false alarm in 250 million runs
SOURCES: dict[str, Callable[[], NoiseSource]] = {
    "seeded": lambda: SeededNoise(5),
    "fast": FastNoise,
    "opendp": OpenDPNoise,
}
every_source = pytest.mark.parametrize("source", SOURCES)
LOOK, FULL = 0.3, 0.8
REACH = 60  # exp(-0.3 * 60) is 1.5e-8


def units(*epsilons: float) -> IntArray:
    return np.array([round(epsilon * UNITS_PER_EPSILON) for epsilon in epsilons])


def laplace(epsilon: float, reach: int = REACH) -> FloatArray:
    q, places = math.exp(-epsilon), np.abs(np.arange(-reach, reach + 1))
    return np.asarray((1 - q) / (1 + q) * q**places)


def no_more(look: float, full: float) -> float:
    """w of docs/proofs/looks.md, to 64 bits."""
    probability = no_more_probability(*units(look, full).tolist())
    return probability.words(2) / 2**64


def joint_law(look: float, full: float) -> FloatArray:
    """P(look = u, refined = v) for an exact count of 0, by its definition."""
    reach = np.arange(-REACH, REACH + 1)
    chance = no_more(look, full)
    more = (1 - chance) * laplace(look, 2 * REACH)
    more[2 * REACH] += chance
    return np.asarray(laplace(full)[None, :] * more[reach[:, None] - reach[None, :] + 2 * REACH])


@pytest.mark.parametrize(
    ("look", "full"), [(0.3, 0.8), (1.0, 1.001), (0.05, 2.0), (1e-3, 2e-3), (2.0, 9.0)]
)
def test_how_often_a_look_adds_nothing_follows_from_the_proof(look: float, full: float) -> None:
    q, better = math.exp(-look), math.exp(-full)
    limit = better / q * ((1 - q) / (1 - better)) ** 2
    assert no_more(look, full) == pytest.approx(limit, rel=1e-9)
    assert no_more(look, full) < limit * (1 - 2.0**-42)  # the margin for rounded scales is taken


def test_a_look_alone_has_the_law_of_a_count_at_its_price() -> None:
    law = joint_law(LOOK, FULL).sum(axis=1)
    middle = slice(REACH - 20, REACH + 21)  # what lies beyond the table is missing at its edges
    assert law[middle] == pytest.approx(laplace(LOOK)[middle], rel=1e-6)


def test_one_record_changes_no_outcome_by_more_than_was_paid() -> None:
    """By enumeration, and some outcome by as much: a look loses its price, both steps lose the full one."""
    law = np.log(joint_law(LOOK, FULL))
    both = np.abs(law[1:, 1:] - law[:-1, :-1])
    assert both.max() == pytest.approx(FULL, rel=1e-9)
    alone = np.log(joint_law(LOOK, FULL).sum(axis=1)[REACH - 20 : REACH + 21])
    assert np.abs(np.diff(alone)).max() == pytest.approx(LOOK, rel=1e-6)


def test_more_often_without_noise_a_look_would_lose_more() -> None:
    """The probability of the proof is the largest that is safe, so that the enumeration can fail."""
    chance = 1.2 * no_more(LOOK, FULL)
    reach = np.arange(-REACH, REACH + 1)
    more = (1 - chance) * laplace(LOOK, 2 * REACH)
    more[2 * REACH] += chance
    law = (laplace(FULL)[None, :] * more[reach[:, None] - reach[None, :] + 2 * REACH]).sum(axis=1)
    assert np.abs(np.diff(np.log(law[REACH - 20 : REACH + 21]))).max() > LOOK + 0.005


def measured(noise: NoiseSource, regions: int) -> tuple[IntArray, IntArray]:
    """Looks at cells where nothing is, and all of them refined."""
    empty = FrequencyMatrix.from_dense(grid(regions), np.zeros(regions, dtype=np.int64))
    curator = Curator(empty, Epsilon.of(1), noise)
    zero = np.zeros(1, dtype=np.int64)
    cells = curator.window.tree.cut(zero, zero, np.arange(1, regions), np.array([regions - 1]))
    looks, full = np.repeat(units(LOOK), regions), np.repeat(units(FULL), regions)
    seen = curator.measure(next(curator.window.look(cells, looks, full, "looks")))
    assert curator.spent == Epsilon.of(str(LOOK))
    refined = curator.measure(next(curator.window.refine(cells, full - looks, "refined")))
    assert curator.spent == Epsilon.of(str(FULL))
    return seen, refined


@every_source
def test_draws_have_the_law_of_the_proof(source: str) -> None:
    regions = 40_000
    seen = Counter(
        zip(*(part.tolist() for part in measured(SOURCES[source](), regions)), strict=True)
    )
    law = joint_law(LOOK, FULL) * regions
    common = np.argwhere(law >= 10)
    assert len(common) > 100
    observed = [seen[int(u) - REACH, int(v) - REACH] for u, v in common]
    expected = [float(law[u, v]) for u, v in common]
    observed.append(regions - sum(observed))
    expected.append(regions - sum(expected))
    assert stats.chisquare(observed, expected).pvalue > ALARM


def test_refined_counts_are_as_accurate_as_if_they_had_been_taken_at_once() -> None:
    _, refined = measured(SeededNoise(9), 40_000)
    found = [int(np.sum(np.abs(refined) <= k)) for k in (0, 1, 3)]
    chances = [float(laplace(FULL)[REACH - k : REACH + k + 1].sum()) for k in (0, 1, 3)]
    for number, chance in zip(found, chances, strict=True):
        assert stats.binomtest(number, 40_000, chance).pvalue > ALARM / 3


class TestRefusals:
    """Before a charge, with the ledger and the noise as they were."""

    def curator(self) -> Curator:
        matrix = FrequencyMatrix.from_dense(grid(8), np.arange(8))
        curator = Curator(matrix, Epsilon.of(1), SeededNoise(1))
        curator.window.tree.split(np.array([0]), np.array([0]), np.array([4]))
        return curator

    def look(self) -> CountLooks:
        return CountLooks("looks", np.array([2, 1]), units(0.2, 0.3), units(0.5, 0.4))

    @pytest.mark.parametrize(
        ("changed", "says"),
        [
            ({"full": units(0.2, 0.4)}, "more than a look"),
            ({"full": units(0.5)}, "more than a look"),
            ({"regions": np.array([1, 1])}, "looked at once"),
            ({"epsilon": units(0.0, 0.3)}, "must be positive"),
        ],
    )
    def test_looks(self, changed: dict[str, IntArray], says: str) -> None:
        curator = self.curator()
        with pytest.raises(InputError, match=says):
            curator.measure(replace(self.look(), **changed))  # type: ignore[arg-type]
        assert curator.spent.units == 0

    def rest(self, price: float, *regions: int) -> RefinedCounts:
        return RefinedCounts("rest", np.array(regions), units(*[price] * len(regions)))

    @pytest.mark.parametrize(
        ("regions", "price", "says"),
        [
            ([1], 0.3, "what a look left"),
            ([2], 0.2, "what a look left"),
            ([0], 0.3, "looked at"),
            ([2, 2], 0.3, "refined once"),
        ],
    )
    def test_rests(self, regions: list[int], price: float, says: str) -> None:
        curator = self.curator()
        curator.measure(self.look())
        with pytest.raises(InputError, match=says):
            curator.measure(self.rest(price, *regions))
        assert curator.spent == Epsilon.of("0.3")

    def test_looks_and_rests_that_were_told_before(self) -> None:
        """So a release holds them once, as its file must."""
        curator = self.curator()
        curator.measure(self.look())
        curator.measure(self.rest(0.3, 2))
        with pytest.raises(InputError, match="refined once"):
            curator.measure(self.rest(0.3, 2))
        with pytest.raises(InputError, match="looked at once"):
            curator.measure(self.look())
        assert curator.spent == Epsilon.of("0.5")

    def test_a_look_that_was_never_taken(self) -> None:
        curator = self.curator()
        self.curator().measure(self.look())  # by another, which keeps it to itself
        with pytest.raises(InputError, match="looked at"):
            curator.measure(self.rest(0.1, 1))
        assert curator.spent.units == 0
        assert len(curator._table()) == len(curator._ledger.lines) == 0

    def test_a_look_that_was_changed_after_it_was_charged(self) -> None:
        """The price of the rest is that of what was drawn, whatever the question says by now."""
        curator, look = self.curator(), self.look()
        curator.measure(look)
        object.__setattr__(look, "full", look.epsilon + 1)
        with pytest.raises(InputError, match="what a look left"):
            curator.measure(RefinedCounts("rest", np.array([1]), np.array([1])))

    def test_both_steps_must_fit_the_budget(self) -> None:
        curator = self.curator()
        curator.measure(CountLooks("looks", np.array([1]), units(0.6), units(1.5)))
        with pytest.raises(BudgetError):
            curator.measure(self.rest(0.9, 1))
        assert curator.spent == Epsilon.of("0.6")
