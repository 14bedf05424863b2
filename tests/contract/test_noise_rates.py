"""What is charged is what sets the noise, for every measurement of the closed set.

A source that writes down what it is asked for shows at which rates a measurement draws, and how often. What is to be
expected is worked out here from the proofs in docs/proofs, cell by cell and without a measurement's own
`sensitivity` or `rate`: half of the noise, or noise that does not reach the answer, is seen at once and
without luck. Choices of medians draw no noise; their probabilities are in tests/properties/test_choices.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import fields, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from htf import Curator, Epsilon, FrequencyMatrix, InputError
from htf.curator.agreeing import AgreeingCounts
from htf.curator.catalogue import MEASUREMENTS
from htf.curator.curve_measurements import LeastCostBuckets, WeightedRuns
from htf.curator.looks import CountLooks, RefinedCounts
from htf.curator.measurements import (
    CountRegions,
    LinearQueries,
    Measurement,
    MedianCuts,
    NoisyIntegers,
    PrivTreeSplits,
    ScoreSplits,
    joint,
)
from htf.curator.noise import ScriptedNoise, SeededNoise
from htf.curator.sampler import Words
from htf.frame.domain import IntArray
from htf.mechanisms import registry
from htf.release.kinds import KINDS
from support import city_matrix, grid

Draws = Counter[Fraction]  # how many at each rate


class Recorder(SeededNoise):
    """Writes down the rate of every draw, and what was drawn."""

    def __init__(self, seed: int = 1) -> None:
        super().__init__(seed)
        self.draws: Draws = Counter()
        self.drawn: list[int] = []
        self.asked_for_words = 0

    def draw_at(self, rate: Fraction, size: int) -> IntArray:
        noise = super().draw_at(rate, size)
        self.draws[rate] += size
        self.drawn += noise.tolist()
        return noise

    def words(self, number: int) -> Words:
        self.asked_for_words += number
        return super().words(number)


def units(*epsilons: int) -> IntArray:
    """In units of 1e-15, as they are charged."""
    return np.array(epsilons, dtype=np.int64)


def price(measurement: Measurement, row: int = 0) -> Fraction:
    return Fraction(int(measurement.epsilon[row]), 10**15)


def draws_of_rows(measurement: Measurement, sensitivity: int) -> Draws:
    rows = range(len(measurement.regions))
    return Counter(price(measurement, row) / sensitivity for row in rows)


def draws_of_linear(question: LinearQueries) -> Draws:
    """By the columns of the whole product: what one record adds to all answers together."""
    product = np.ones((1, 1), dtype=np.int64)
    for factor in question.factors:
        product = np.kron(product, factor)
    moved = int(np.abs(product).sum(axis=0).max())
    return Counter({price(question) / moved: len(product)})


def draws_of_runs(question: WeightedRuns) -> Draws:
    """By what a record at each position adds to all runs together."""
    moved = [0] * len(question.positions)
    for start, stop, weight in zip(question.starts, question.stops, question.weights, strict=True):
        for position in range(start, stop):
            moved[position] += int(weight)
    return Counter({price(question) / max(moved): len(question.starts)})


def draws_of_buckets(question: LeastCostBuckets) -> Draws:
    """Every bucket there could be: 2 more than one record moves its own cost."""
    draws: Draws = Counter()
    positions, length = len(question.positions), 1
    while length <= positions:
        own = {1: 0, 2: 1}.get(length, 2)
        draws[price(question) / (own + 2)] += positions - length + 1
        length *= 2
    return draws


def draws_of_privtree(question: PrivTreeSplits, decisions: IntArray) -> Draws:
    """One for each region that could have been split, at epsilon (beta - 1) / (2 beta - 1)."""
    beta = max(2 ** len(axes) for axes in question.axes_by_depth)
    return Counter({price(question) * Fraction(beta - 1, 2 * beta - 1): len(decisions)})


EXPECTED: dict[type[Measurement], Callable[[Any, IntArray], Draws]] = {
    CountRegions: lambda question, _: draws_of_rows(question, 1),
    ScoreSplits: lambda question, _: draws_of_rows(question, 2),
    MedianCuts: lambda *_: Counter(),
    PrivTreeSplits: draws_of_privtree,
    LinearQueries: lambda question, _: draws_of_linear(question),
    LeastCostBuckets: lambda question, _: draws_of_buckets(question),
    WeightedRuns: lambda question, _: draws_of_runs(question),
    AgreeingCounts: lambda question, _: draws_of_rows(question, 1),  # and again until they agree
    CountLooks: lambda question, _: (
        draws_of_rows(question, 1) + draws_of_rows(replace(question, epsilon=question.full), 1)
    ),
}


def are_expected(draws: Draws, expected: Draws, questions: list[Measurement]) -> bool:
    """The same numbers at the same rates; only counts that agree may take more draws, at rates of their own."""
    together = [question for question in questions if isinstance(question, AgreeingCounts)]
    again = {rate for question in together for rate in draws_of_rows(question, 1)}
    return not expected - draws and set(draws - expected) <= again


SHAPE = (6, 4)
COUNTS = np.random.default_rng(8).poisson(7, SHAPE)
CURVE = tuple(np.arange(n + 1) for n in SHAPE), np.random.default_rng(9).permutation(24)
QUESTIONS: list[Measurement] = [
    CountRegions("c", units(0, 1, 2, 1), units(3, 5, 7, 5) * 10**12),
    ScoreSplits("s", units(0, 1, 2), units(3, 5, 3) * 10**12, units(1, 0, 1), units(2, 1, 3)),
    MedianCuts("m", units(0, 2), units(3, 5) * 10**13, units(0, 1)),
    PrivTreeSplits("p", units(2), units(10**15), ((0, 1),), 2),
    PrivTreeSplits("p", units(2), units(10**15), ((1,), (0,)), 2),
    PrivTreeSplits("p", units(1), units(10**15), ((1,), (0, 1)), 2),
    LinearQueries(
        "l",
        *joint(Epsilon.of("0.3")),
        (np.array([[1, -2, 0], [0, 3, 1]]), np.array([[1, 1], [1, -1], [0, 5]])),
        (units(0, 2, 3, 6), units(0, 1, 4)),
    ),
    LeastCostBuckets("b", *joint(Epsilon.of("0.7")), *CURVE, 2),
    WeightedRuns(
        "r", *joint(Epsilon.of("0.7")), *CURVE, units(0, 3, 3, 20), units(5, 24, 4, 24), units(2, 7, 1, 4)
    ),
    AgreeingCounts("a", units(2, 0, 1), units(3, 5, 7) * 10**12),
    CountLooks("k", units(2, 0, 1), units(3, 5, 7) * 10**12, units(8, 9, 8) * 10**12),
]  # fmt: skip
SENSITIVITIES = [1, 2, 1, 1, 1, 1, 35, 4, 11, 1, 1]  # as ledgers state them
every_question = pytest.mark.parametrize(
    "number", range(len(QUESTIONS)), ids=lambda n: f"{n}-{QUESTIONS[n].kind}"
)


def curator_with(noise: SeededNoise | ScriptedNoise) -> Curator:
    """A map cut in two, along its first axis."""
    matrix = FrequencyMatrix.from_dense(grid(*SHAPE), COUNTS)
    curator = Curator(matrix, Epsilon.of(10), noise)
    curator.window.tree.split(units(0), units(0), units(3))
    return curator


def test_every_measurement_is_asked() -> None:
    """But for the rest of a look, for which nothing is drawn (tests/properties/test_looks.py)."""
    kinds = {type(question) for question in QUESTIONS}
    assert kinds == set(EXPECTED) == set(MEASUREMENTS) - {RefinedCounts}


@every_question
def test_noise_is_drawn_at_the_rate_that_is_charged(number: int) -> None:
    question, noise = QUESTIONS[number], Recorder()
    curator = curator_with(noise)
    answer = curator.measure(question)
    assert not answer.flags.writeable  # what a release keeps is what was drawn
    assert are_expected(noise.draws, EXPECTED[type(question)](question, answer), [question])
    assert (noise.asked_for_words > 0) == isinstance(question, (MedianCuts, CountLooks))
    on_paths = [question.epsilon[np.isin(question.regions, [0, half])].sum() for half in (1, 2)]
    assert curator.spent.units == max(on_paths)
    (line,) = curator._ledger.lines
    assert (line.kind, line.sensitivity) == (question.kind, SENSITIVITIES[number])
    table = curator._table()  # and the release says what was charged, and for which regions
    assert set(table.region.tolist()) == set(question.regions.tolist())
    assert table.epsilon.sum() == question.epsilon.sum()


@every_question
def test_a_question_holds_numbers_of_its_own(number: int) -> None:
    """So that nobody changes them after they were charged: no array is the one that was given."""
    question = QUESTIONS[number]
    given = {name: writeable(value) for name, value in vars_of(question).items()}
    for name, value in vars_of(type(question)(**given)).items():
        for part, own in zip(parts_of(given[name]), parts_of(value), strict=True):
            if isinstance(own, np.ndarray):
                assert (own.dtype, own.flags.writeable) == (np.int64, False)
                assert not np.shares_memory(own, part)
            else:
                assert type(own) in (str, int)


def vars_of(question: Measurement) -> dict[str, Any]:
    return {f.name: getattr(question, f.name) for f in fields(question)}


def parts_of(value: Any) -> list[Any]:
    return [p for v in value for p in parts_of(v)] if isinstance(value, tuple) else [value]


def writeable(value: Any) -> Any:
    """A copy that may be changed, with NumPy's numbers for plain ones."""
    if isinstance(value, tuple):
        return tuple(map(writeable, value))
    return (
        value
        if isinstance(value, str)
        else np.int64(value)
        if isinstance(value, int)
        else value.copy()
    )


@every_question
def test_senseless_prices_and_regions_are_refused_and_cost_nothing(number: int) -> None:
    question, noise = QUESTIONS[number], Recorder()
    curator = curator_with(noise)
    several = len(question.regions) > 1 or isinstance(question, PrivTreeSplits)
    for changes, says in (
        ({"epsilon": 0 * question.epsilon}, "must be positive"),
        ({"epsilon": -question.epsilon}, "must be positive"),
        ({"epsilon": np.append(question.epsilon, 1)}, "one epsilon for each region"),
        ({"regions": question.regions + 3}, "between 0 and 2"),
        ({"regions": question.regions - 3}, "between 0 and 2"),
        ({"epsilon": units(), "regions": units()}, "."),
        *([] if several else [({"regions": units(1)}, "whole map")]),
    ):
        changed = replace(question, **changes)  # type: ignore[arg-type]
        with pytest.raises(InputError, match=says):
            curator.measure(changed)
    assert (curator.spent.units, noise.drawn, noise.asked_for_words) == (0, [], 0)


@every_question
def test_every_draw_reaches_an_answer_of_its_own(number: int) -> None:
    """Answers less the exact values are the draws; choices are compared with naive ones elsewhere, and counts that
    agree with their law (tests/properties/test_agreeing.py)."""
    question, noise = QUESTIONS[number], Recorder(3)
    answer = curator_with(noise).measure(question)
    exact = curator_with(ScriptedNoise()).measure(question)
    if isinstance(question, AgreeingCounts):
        drawn = answer - exact  # of the second half, the map, and the first half
        assert drawn[1] == drawn[0] + drawn[2]
        assert {int(drawn[0]), int(drawn[2])} <= set(noise.drawn)
    elif isinstance(question, CountLooks):  # noise at the full price, with or without more
        sums = {first + second for first in noise.drawn for second in (0, *noise.drawn)}
        assert set((answer - exact).tolist()) <= sums
    elif isinstance(question, (NoisyIntegers, WeightedRuns)):
        assert sorted((answer - exact).tolist()) == sorted(noise.drawn)
        assert len(set(noise.drawn)) > 1


@pytest.mark.parametrize("name", sorted(registry()))
def test_mechanisms_are_answered_at_the_rates_they_pay_for(name: str) -> None:
    """All draws of a release are those of its measurements, and each was charged before."""
    noise = Recorder(4)
    curator = Curator(city_matrix(16, 3000), Epsilon.of(1), noise)
    release = curator.run(registry()[name]())
    expected: Draws = Counter()
    for question, answer in curator._taken:
        expected += EXPECTED[type(question)](question, answer)
    assert are_expected(noise.draws, expected, [question for question, _ in curator._taken])
    told = [(line.kind, line.answers, line.largest_epsilon.units) for line in release.ledger]
    asked = [(q.kind, q.rows, int(q.epsilon.max())) for q, _ in curator._taken]
    assert told == asked
    table = release.measurements
    for line, (question, _) in enumerate(curator._taken):  # and the release says so
        own = table.line == line
        assert table.epsilon[own].sum() == question.epsilon.sum()
        assert set(table.region[own].tolist()) == set(question.regions.tolist())
        assert {question.kind} == {KINDS[kind] for kind in table.kind[own]}


def test_half_of_the_noise_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checks can fail: weighted runs at less than their noise."""
    monkeypatch.setattr(WeightedRuns, "sensitivity", 6)
    question, noise = QUESTIONS[-3], Recorder()
    assert isinstance(question, WeightedRuns)
    curator_with(noise).measure(question)
    assert draws_of_runs(question) == {price(question) / 11: 4}
    assert noise.draws == {price(question) / 6: 4}
