"""The guarantee for one person: its noise is that of a plain release with epsilon / K, and the noisy
quantile of records per person has the probabilities that its proof is about."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from decimal import Context, Decimal
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from htf import (
    Activity,
    Epsilon,
    FrequencyMatrix,
    InputError,
    Protection,
    RecordsPerPerson,
    publish,
    verify,
)
from htf.cli.release import _part
from htf.curator.contributions import (
    PARTS_OF_A_PERSON,
    _choose,
    parts_by_mark,
    rank_runs,
    suggest_max_records,
    utility_sensitivity,
)
from htf.curator.medians import Runs, _cumulated, choose_run_exactly
from htf.curator.noise import ScriptedNoise, SeededNoise
from htf.curator.sampler import Words
from htf.mechanisms import registry
from htf.privacy.activity import LEAST_PRICE, OLDER_ENDS, PARTS, marks
from htf.privacy.epsilon import UNITS_PER_EPSILON
from htf.privacy.protection import (
    OF_RECORDS,
    Suggestion,
    epsilon_per_share,
    price_of_bought,
    price_of_map,
)
from support import city_matrix

ALARM = 1e-6  # for each statistical check; seeds are fixed
SHARES = [Fraction(1, 2), Fraction(9, 10), Fraction(1, 4), Fraction(2, 3)]


def of_people(matrix: FrequencyMatrix, number: int) -> FrequencyMatrix:
    """The same counts, said to be at most so many of each person."""
    kept = matrix.exact_coordinates, matrix.exact_counts
    return FrequencyMatrix(matrix.domain, *kept, Protection("person", number))


# --- accounting -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(registry()))
def test_a_person_with_k_records_gets_a_release_of_a_kth_of_epsilon(name: str) -> None:
    """Bit by bit, but for what is claimed. 2 / 3 falls on no unit, and is rounded down."""
    matrix, number, total = city_matrix(32, 3000), 3, Epsilon.of(2)
    made = publish(of_people(matrix, number), total, name, noise="seeded:4")
    plain = publish(matrix, total // number, name, noise="seeded:4")
    assert (made.epsilon, made.record_epsilon) == (total, Epsilon(666_666_666_666_666))
    assert made != plain
    assert replace(made, epsilon=plain.epsilon, protection=OF_RECORDS) == plain
    assert made.spent * number <= made.epsilon
    assert [check for check in verify(made) if not check.passed] == []


@given(
    st.integers(1, 10**18),
    st.integers(1, 2**20),
    st.one_of(st.just(0), st.integers(0, 10**18)),
    st.one_of(st.just(0), st.integers(0, 10**18)),
)
@settings(max_examples=300)
def test_the_parts_never_exceed_the_claim(
    units: int, number: int, suggested: int, measured: int
) -> None:
    """Of any epsilon, bound and prices of what was bought; and less than one unit a record is lost."""
    total, cost = Epsilon(units), suggested + measured
    bought = (
        Suggestion(1, SHARES[0], 2, Epsilon(suggested), "", True) if suggested else None,
        Activity((0,) * len(OLDER_ENDS), Epsilon(measured), "", True) if measured else None,
    )
    assert price_of_bought(*bought) == Epsilon(cost)
    protection = Protection("person", number)
    if units - cost < number:
        with pytest.raises(
            InputError, match=r"leaves nothing|over \d+ records per person is less than 1e-15 each"
        ):
            epsilon_per_share(total, protection, *bought)
        return
    each = epsilon_per_share(total, protection, *bought)
    assert price_of_map(total, *bought) == Epsilon(units - cost)
    assert 0 <= units - cost - each.units * number < number
    lost = price_of_bought(*bought) + each * number
    assert lost <= total


@given(
    st.integers(1, 10**18),
    st.fractions(0, 1).filter(lambda share: share < 1),
)
@settings(max_examples=200)
def test_a_share_of_epsilon_leaves_something(units: int, share: Fraction) -> None:
    """As `htf release --activity` takes it: rounded down, and never all."""
    total = Epsilon(units)
    if share > 0 and int(units * share) < LEAST_PRICE.units:
        with pytest.raises(InputError, match=f"less than {LEAST_PRICE}, the smallest"):
            _part(total, share)
        return
    part = _part(total, share)
    assert 0 <= units * share - part.units < 1
    assert part < total


# --- the activity ---------------------------------------------------------------------------------


def test_one_person_moves_the_marks_together_by_one() -> None:
    """All data of up to three people, with numbers of records around the marks. The bound is reached, by everybody."""
    at = marks(300)
    numbers = sorted({n for mark in at for n in (mark - 1, mark, mark + 1) if 1 <= n <= 300})
    for people in range(3):
        for records in product(numbers[::2] if people else numbers, repeat=people):
            before = parts_by_mark(RecordsPerPerson.from_records(list(records), 300))
            for added in numbers:
                more = RecordsPerPerson.from_records([*records, added], 300)
                moved = parts_by_mark(more) - before
                assert np.abs(moved).sum() == moved.sum() == PARTS == PARTS_OF_A_PERSON


def test_no_activity_tells_more_than_epsilon() -> None:
    """The exact loss of one person more: the rate of the noise, times what that person moves."""
    price = Epsilon.of("0.1").fraction
    for number in range(1, 301):
        moved = np.abs(parts_by_mark(RecordsPerPerson.from_records([number], 300)))
        assert price / PARTS_OF_A_PERSON * int(moved.sum()) == price


@given(st.lists(st.integers(1, 2**21), max_size=30), st.integers(1, 2**20))
@settings(max_examples=60, deadline=None)
def test_marks_tell_how_many_people_and_records_there_are(records: list[int], most: int) -> None:
    people = RecordsPerPerson.from_records(np.array(records, dtype=np.int64), most)
    counted, at = parts_by_mark(people), np.array(marks(most))
    assert np.all(counted >= 0)
    assert counted.sum() == PARTS * len(records)
    lost = PARTS * sum(min(one, most) for one in records) - int(counted @ at)
    assert 0 <= lost <= len(records) * int(np.max(np.diff(at), initial=0))


# --- the quantile ---------------------------------------------------------------------------------


def naive_utility(records: list[int], k: int, share: Fraction) -> int:
    a, b = share.numerator, share.denominator - share.numerator
    return abs(b * sum(n <= k for n in records) - a * sum(n > k for n in records))


def probabilities(records: list[int], most: int, share: Fraction, epsilon: float) -> Any:
    """The exponential mechanism, number by number, from the definition."""
    rate = epsilon / 2 / max(share.numerator, share.denominator - share.numerator)
    utilities = [naive_utility(records, k, share) for k in range(1, most + 1)]
    weights = np.array([math.exp(-rate * (u - min(utilities))) for u in utilities])
    return weights / weights.sum()


@given(st.lists(st.integers(1, 9), max_size=15), st.integers(1, 9), st.sampled_from(SHARES))
@settings(max_examples=150, deadline=None)
def test_runs_list_every_number_once_with_its_utility(
    records: list[int], most: int, share: Fraction
) -> None:
    found: dict[int, int] = {}
    runs = rank_runs(RecordsPerPerson.from_records(records, most), share)
    for first, size, utility in zip(*runs, strict=True):
        assert size > 0
        found.update(dict.fromkeys(range(int(first), int(first + size)), int(utility)))
    clipped = [min(n, most) for n in records]
    assert found == {k: naive_utility(clipped, k, share) for k in range(1, most + 1)}


def test_one_person_moves_no_utility_by_more_than_the_sensitivity() -> None:
    """All data of up to four people with up to four records; the bound is reached, for each share."""
    for share in SHARES:
        moved = [
            abs(naive_utility([*records, added], k, share) - naive_utility(list(records), k, share))
            for people in range(5)
            for records in product(range(1, 5), repeat=people)
            for added in range(1, 5)
            for k in range(1, 5)
        ]
        assert max(moved) == utility_sensitivity(share)


@pytest.mark.parametrize("share", SHARES)
def test_no_number_tells_more_than_epsilon(share: Fraction) -> None:
    """Exact probabilities on neighbours: all small data, and skewed ones that come near the bound."""
    small = [list(r) for people in range(5) for r in product(range(1, 5), repeat=people)]
    skewed = [[1] * a + [2] * b + [4] * c for a, b, c in product((0, 7, 40), repeat=3)]
    worst = 0.0
    for records in small + skewed:
        before = probabilities(records, 4, share, 0.8)
        for added in range(1, 5):
            after = probabilities([*records, added], 4, share, 0.8)
            worst = max(worst, np.abs(np.log(after / before)).max())
    assert 0.5 < worst <= 0.8 + 1e-9
    if share == Fraction(9, 10):  # the check can fail: with the rarer side's weight it would
        cheap = [probabilities(r, 4, share, 9 * 0.8) for r in (skewed[-1], [*skewed[-1], 4])]
        assert np.abs(np.log(cheap[1] / cheap[0])).max() > 0.8


MANY_DIGITS = Context(prec=300)


def exponential(exponent: Fraction) -> Fraction:
    quotient = MANY_DIGITS.divide(Decimal(exponent.numerator), Decimal(exponent.denominator))
    return Fraction(MANY_DIGITS.exp(quotient))


def computed(
    records: list[int], most: int, share: Fraction, epsilon: Epsilon, digits: int = 94
) -> tuple[Runs, Fraction, list[Fraction]]:
    """What the sampler compares a uniform number with: with 64 bits of it, to 94 digits."""
    runs = rank_runs(RecordsPerPerson.from_records(records, most), share)
    rate = Fraction(epsilon.units, 2 * utility_sensitivity(share) * UNITS_PER_EPSILON)
    return runs, rate, _cumulated(runs, rate, digits)


@pytest.mark.parametrize("share", [*SHARES, Fraction(999_999, 1_000_000)])
@pytest.mark.parametrize("text", ["0.3", "40"])
def test_computed_probabilities_are_those_of_the_definition(share: Fraction, text: str) -> None:
    """To ninety digits, and on all small neighbours within exp(epsilon) of each other."""
    epsilon, most = Epsilon.of(text), 4
    found: dict[tuple[int, ...], list[Fraction]] = {}
    rate = epsilon.fraction / (2 * max(share.numerator, share.denominator - share.numerator))
    for records in (r for people in range(4) for r in product(range(1, 6), repeat=people)):
        runs, _, bounds = computed(list(records), most, share, epsilon)
        parts = [
            (high - low) / int(n)
            for low, high, n in zip(bounds[:-1], bounds[1:], runs[1], strict=True)
        ]
        found[records] = [p for p, n in zip(parts, runs[1], strict=True) for _ in range(n)]
        clipped = [min(n, most) for n in records]
        weights = [
            exponential(-rate * naive_utility(clipped, k, share)) for k in range(1, most + 1)
        ]
        for probability, weight in zip(found[records], weights, strict=True):
            assert abs(probability - weight / sum(weights)) < Fraction(1, 10**90)
    limit = exponential(epsilon.fraction) * (1 + Fraction(1, 10**50))
    for after in (records for records in found if records):
        for one, other in zip(found[after], found[after[:-1]], strict=True):
            assert max(one, other) <= limit * min(one, other)


def test_uniform_numbers_beside_a_bound_fall_on_the_right_side() -> None:
    """Numbers of 160 bits around every bound, which the first 64 leave open."""
    generator, asked = random.Random(7), 0
    for _ in range(12):
        records = [generator.randrange(1, 9) for _ in range(generator.randrange(12))]
        price = Epsilon.of(generator.choice(["0.1", "1", "9"]))
        runs, rate, bounds = computed(records, 8, generator.choice(SHARES), price, digits=300)
        for bound in bounds[1:-1]:
            for away in (-(2**70), -(2**30), -3, 3, 2**30, 2**70):
                number = min(max(int(bound * 2**160) + away, 0), 2**160 - 1)
                left = [number >> shift & 0xFFFFFFFF for shift in (64, 32, 0)]

                def words(size: int, left: list[int] = left) -> Words:
                    return np.array([left.pop(0) for _ in range(size)], dtype=np.uint32)

                chosen = choose_run_exactly(runs, rate, number >> 96, words)
                assert chosen == sum(b <= Fraction(number, 2**160) for b in bounds[1:-1])
                asked += len(left) < 3
    assert asked > 100


@pytest.mark.parametrize("side", [1, -1])
def test_a_bound_beside_the_first_64_bits_is_decided_by_more(side: int) -> None:
    """It is 2**-110 away from three quarters, and the uniform number between the two."""
    bound = Fraction(3, 4) + side * Fraction(1, 2**110)
    context = Context(prec=150)
    odds = bound / (1 - bound)
    rate = Fraction(context.ln(context.divide(Decimal(odds.numerator), Decimal(odds.denominator))))
    runs = np.array([1, 2]), np.array([1, 1]), np.array([0, 1])
    word, first = (0, 3 * 2**62) if side > 0 else (2**32 - 1, 3 * 2**62 - 1)

    def words(size: int) -> Words:
        return np.full(size, word, dtype=np.uint32)

    assert choose_run_exactly(runs, rate, first, words) == (0 if side > 0 else 1)


class Word(ScriptedNoise):
    """Uniform numbers that all begin with the same 64 bits."""

    def __init__(self, bits: int) -> None:
        super().__init__()
        self.halves = bits >> 32, bits & 0xFFFFFFFF

    def words(self, number: int) -> Words:
        return np.resize(np.array(self.halves, dtype=np.uint32), number)


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("text", ["0.1", "2"])
def test_the_number_changes_where_the_price_says(share: Fraction, text: str) -> None:
    """Of two numbers to choose from, just below and just above the probability of the first."""
    records, epsilon = [1, 1, 1, 2], Epsilon.of(text)
    larger = max(share.numerator, share.denominator - share.numerator)
    rate = epsilon.fraction / (2 * larger)
    first, second = (exponential(-rate * naive_utility(records, k, share)) for k in (1, 2))
    bound = int(first / (first + second) * 2**64)
    people = RecordsPerPerson.from_records(records, 2)
    for bits, number in ((bound - 2, 1), (bound + 2, 2)):
        assert (
            suggest_max_records(people, epsilon, quantile=share, noise=Word(bits)).max_records
            == number
        )


def draws(records: list[int], most: int, share: Fraction, epsilon: str, size: int) -> Any:
    people, noise = RecordsPerPerson.from_records(records, most), SeededNoise(11)
    price = Epsilon.of(epsilon)
    drawn = [_choose(people, price, share, noise) for _ in range(size)]
    return np.bincount(drawn, minlength=most + 1)[1:]


RECORDS = [1] * 12 + [2] * 9 + [3] * 2 + [6] * 4 + [30]


@pytest.mark.parametrize("epsilon", ["0.1", "2"])
@pytest.mark.parametrize("share", [SHARES[0], SHARES[1]])
def test_numbers_come_with_the_probabilities_of_the_formula(share: Fraction, epsilon: str) -> None:
    observed = draws(RECORDS, 10, share, epsilon, 3000)
    clipped = [min(n, 10) for n in RECORDS]
    expected = 3000 * probabilities(clipped, 10, share, float(epsilon))
    rare = expected < 5
    if rare.any():  # taken together
        observed = np.r_[observed[~rare], observed[rare].sum()]
        expected = np.r_[expected[~rare], expected[rare].sum()]
    assert stats.chisquare(observed, expected).pvalue > ALARM
    wrong = 3000 * probabilities(clipped, 10, share, 3 * float(epsilon))
    if not rare.any():  # the check can fail
        assert stats.chisquare(observed, wrong).pvalue < ALARM


def test_the_number_found_is_the_quantile_where_people_are_many() -> None:
    """With secret noise; a number beyond these bounds is off by thousands of ranks, so exp(-100) rare."""
    generator = np.random.default_rng(3)
    records = generator.geometric(0.2, 100_000)
    for share in (Fraction(1, 2), Fraction(9, 10), Fraction(99, 100)):
        people = RecordsPerPerson.from_records(records, 1000)
        found = suggest_max_records(people, 1, quantile=share, noise="fast")
        assert abs(np.mean(records <= found.max_records) - float(share)) < 0.06
        assert (found.most, found.quantile, found.private) == (1000, share, True)


def test_the_middle_of_an_empty_range_is_drawn_uniformly() -> None:
    """Nobody there: every number is as good. The script's word is the middle."""
    nobody = RecordsPerPerson(np.zeros(7, dtype=int))
    assert np.all(draws([], 4, SHARES[1], "1", 2000) > 400)
    assert 1 <= suggest_max_records(nobody, 1, noise=ScriptedNoise()).max_records <= 7
