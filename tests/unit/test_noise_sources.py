"""The seam of noise: names, rounding, grouping, and the exactness of our sampler by scripted words."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Context, Decimal, getcontext
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htf import InputError
from htf.curator.noise import (
    FastNoise,
    OpenDPNoise,
    ScriptedNoise,
    SeededNoise,
    noise_from_text,
    round_up,
)
from htf.curator.sampler import (
    Probability,
    Words,
    WordSource,
    _at_least_one,
    _digit,
    _zero,
    plan_for,
    sample_discrete_laplace,
)
from htf.frame.domain import IntArray


def test_sources_are_found_by_text() -> None:
    assert isinstance(noise_from_text("opendp"), OpenDPNoise)
    assert isinstance(noise_from_text("fast"), FastNoise)
    assert noise_from_text("seeded:42").description == "seeded:42"
    for text in (
        "",
        "seeded",
        "seeded:",
        "seeded:-1",
        "seeded:x",
        "seeded:+1",
        "other:1",
        "fast:1",
        "OpenDP",
        "laplace",
    ):
        with pytest.raises(InputError, match=re.escape(f"got {text!r}")):
            noise_from_text(text)


@given(st.fractions(min_value=Fraction(1, 10**6), max_value=10**16))
def test_scales_are_rounded_up(value: Fraction) -> None:
    rounded = round_up(value)
    assert Fraction(rounded) >= value
    assert Fraction(np.nextafter(rounded, 0)) < value


def test_each_row_is_drawn_at_its_own_epsilon() -> None:
    class Spy(ScriptedNoise):
        def draw_at(self, rate: Fraction, size: int) -> IntArray:
            return np.full(size, rate.denominator)

    units = np.array([10**15, 5 * 10**14, 10**15, 2 * 10**14])
    assert Spy().draw(units, 2).tolist() == [2, 4, 2, 10]


def test_opendp_noise_passes_32_bits() -> None:
    """Its plain `int` saturates at 2**31; noise of scale 1e12 must not."""
    draws = OpenDPNoise().draw_at(Fraction(1, 10**12), 200)
    assert np.abs(draws).max() > 2**33
    assert len(np.unique(np.abs(draws))) == 200


def test_threads_draw_as_many_as_were_asked_for() -> None:
    for size in (0, 1, 200, 203, 401):
        assert len(OpenDPNoise().draw_at(Fraction(1, 10), size)) == size


def test_seeds_repeat_and_system_noise_does_not() -> None:
    rate = Fraction(1, 1000)
    assert np.array_equal(SeededNoise(1).draw_at(rate, 50), SeededNoise(1).draw_at(rate, 50))
    assert not np.array_equal(SeededNoise(1).draw_at(rate, 50), SeededNoise(2).draw_at(rate, 50))
    for source in (FastNoise, OpenDPNoise):
        assert not np.array_equal(source().draw_at(rate, 50), source().draw_at(rate, 50))


# --- the digit-wise sampler -----------------------------------------------------------------------


def words_from(script: Iterable[int]) -> WordSource:
    waiting = iter(script)

    def words(number: int) -> Words:
        return np.array([next(waiting) for _ in range(number)], dtype=np.uint32)

    return words


def exact_probability(rate: Fraction, k: int) -> Decimal:
    q = (-Decimal(rate.numerator) / rate.denominator).exp()
    return (1 - q) / (1 + q) * q ** abs(k)


@pytest.mark.parametrize("rate", [Fraction(1, 3), Fraction(3), Fraction(23), Fraction(7, 5)])
def test_digit_probabilities_multiply_to_the_discrete_laplace(rate: Fraction) -> None:
    """Adding up, over all outcomes of the decisions, the probabilities that the plan states gives
    the distribution itself, to forty digits. The plan's words are read as far as that takes."""
    getcontext().prec = 60
    plan = plan_for(rate)
    stated = [Decimal(p.words(6)) / (1 << 192) for p in plan.probabilities]
    zero, high, *digits = stated
    for k in range(min(8, 1 << plan.places)):
        geometric = Decimal(1)
        for place, digit in enumerate(digits):
            geometric *= digit if k >> place & 1 else 1 - digit
        found = (1 - zero) / 2 * geometric * (1 - high)
        assert abs(found / exact_probability(rate, k + 1) - 1) < Decimal("1e-40")
    assert abs(zero / exact_probability(rate, 0) - 1) < Decimal("1e-40")


def test_words_are_compared_with_the_binary_expansion() -> None:
    """All outcomes of a plan with few decisions, each steered by a word just below or above."""
    rate = Fraction(6)  # places 0 and 1, since 6 * 4 > 23
    plan = plan_for(rate)
    assert plan.places == 2
    first = plan.first_words.astype(np.int64)
    for happens in product([False, True], repeat=4):
        if happens[1]:
            continue
        words = [int(w) - 1 if h else int(w) + 1 for w, h in zip(first, happens, strict=True)]
        for sign in (0, 1):
            drawn = sample_discrete_laplace(rate, 1, words_from([*words, sign]))[0]
            magnitude = 0 if happens[0] else 1 + happens[2] + 2 * happens[3]
            assert drawn == (-magnitude if sign else magnitude)


def test_ties_go_on_to_the_next_word() -> None:
    rate = Fraction(1, 2)
    plan = plan_for(rate)
    zero = plan.probabilities[0]
    second = zero.words(2) & 0xFFFFFFFF
    first = int(plan.first_words[0])
    others = [0xFFFFFFFF] * (len(plan.probabilities) - 1)
    for following, is_zero in ((second - 1, True), (second + 1, False)):
        drawn = sample_discrete_laplace(rate, 1, words_from([first, *others, following, 0]))[0]
        assert (drawn == 0) == is_zero


@pytest.mark.parametrize(("away", "first"), [("1e-70", 2**31), ("-1e-70", 2**31 - 1)])
def test_an_expansion_is_computed_until_its_words_are_certain(away: str, first: int) -> None:
    """Beside one half, eighty digits with their margin leave the first word open."""
    beside_half = Probability(Fraction(1), lambda _, c: c.add(Decimal("0.5"), Decimal(away)))
    assert beside_half.words(1) == first


@pytest.mark.parametrize(
    "rate", [Fraction(1, 2 * 10**15), Fraction(1, 3), Fraction(22), Fraction(1000)]
)
@pytest.mark.parametrize("digits", [80, 160])
def test_the_margin_covers_what_rounding_does(rate: Fraction, digits: int) -> None:
    """At both ends of the range of rates too, where differences lose digits and q is next to nothing."""
    wide = Context(prec=4 * digits, Emax=10**9, Emin=-(10**9))
    q = wide.exp(wide.divide(Decimal(-rate.numerator), Decimal(rate.denominator)))
    one = Decimal(1)
    sums = wide.subtract(one, q), wide.add(one, q)
    for formula, exact in (
        (_zero, wide.divide(*sums)),
        (_at_least_one, q),
        (_digit, wide.divide(q, sums[1])),
    ):
        low, high = Probability(rate, formula)._bounds(digits)
        assert 0 < low < Fraction(exact) < high
        assert high - low < Fraction(exact) / 10 ** (digits - 30)


def test_high_digits_are_reached() -> None:
    """A word of zero ties with, or undercuts, the rare event of a digit beyond the plan."""
    rate = Fraction(30)  # no places: only the high digits
    plan = plan_for(rate)
    assert plan.places == 0
    largest = 0xFFFFFFFF
    assert plan.first_words.tolist() == [largest, 0]  # so that these words tie
    rare = plan.probabilities[1].words(2) - 1  # a second word that makes it happen
    # Not zero; a high digit; then, for its value, one success more and a failure; negative.
    script = [largest, 0, largest, rare, 0, rare, largest, 1]
    assert sample_discrete_laplace(rate, 1, words_from(script))[0] == -(1 + 2)


def test_high_digits_stand_above_the_others() -> None:
    """Two in all, above two low digits of which the first is 1."""
    rate, largest = Fraction(6), 0xFFFFFFFF
    plan = plan_for(rate)
    assert plan.places == 2
    assert plan.first_words[1] == 0  # a word that ties
    rare = plan.probabilities[1].words(2) - 1
    # Not zero; a high digit; 1 and no 2; the tie; one high digit more and no other; positive.
    script = [largest, 0, 0, largest, rare, 0, rare, largest, 0]
    assert sample_discrete_laplace(rate, 1, words_from(script))[0] == 1 + 1 + (2 << 2)


def test_extreme_rates() -> None:
    assert not SeededNoise(1).draw_at(Fraction(1000), 1000).any()
    wide = SeededNoise(1).draw_at(Fraction(1, 2 * 10**15), 1000).astype(float)
    assert np.abs(wide).mean() == pytest.approx(2e15, rel=0.2)
