"""Exact budgets."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htf import Epsilon, InputError
from htf.privacy.epsilon import cube_root_of_two_to


@pytest.mark.parametrize("value", ["0.1", 0.1, Decimal("0.1"), Fraction(1, 10), "1e-1", "1/10"])
def test_one_tenth_is_one_tenth(value: Any) -> None:
    assert Epsilon.of(value).units == 10**14
    assert str(Epsilon.of(value)) == "0.1"


@pytest.mark.parametrize(
    "value",
    [0, -1, "0", "-0.5", "nan", "inf", float("nan"), float("inf"), "abc", "", 1001, "1e-16", None],
)
def test_what_is_no_budget_is_named(value: Any) -> None:
    with pytest.raises(InputError, match=r"epsilon must be .*got"):
        Epsilon.of(value)


@pytest.mark.parametrize(
    "value",
    [
        *("0_5", "1_0", "٠.٥", "０.５", "1e1000000000", "1e-1000000000", "1e1000", "1/0", "0x1", "1 2", "0." + "1" * 200),
        *(Decimal("1e1000000000"), Decimal("1e-1000000000"), Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity")),
        *(10**5000, -(10**5000), Fraction(10**5000, 3), Fraction(1, 10**5000), True, False, np.True_),
        *(np.float64("nan"), np.float32("inf"), np.int64(-1), np.uint64(2**64 - 1), np.array([0.5]), 1j, [1], b"1", object()),
    ],
    ids=lambda value: f"{type(value).__name__}",
)  # fmt: skip
def test_numbers_that_are_none_here_are_refused_at_once(value: Any) -> None:
    """None is written out in full, which of some would take minutes, and none shown at length."""
    with pytest.raises(InputError, match=r"epsilon must be .*got") as caught:
        Epsilon.of(value)
    assert len(str(caught.value)) < 250


@pytest.mark.parametrize(
    "value",
    [np.float64(0.1), np.float32(0.1), np.float16(0.1), np.str_("0.1"), Decimal("1e-1"), Decimal("0.1" + "0" * 500)],
)  # fmt: skip
def test_one_tenth_of_other_types(value: Any) -> None:
    assert Epsilon.of(value).units == 10**14


def test_whole_numbers_of_numpy() -> None:
    assert Epsilon.of(np.int8(3)) == Epsilon.of(np.uint64(3)) == Epsilon.of(3)  # type: ignore[arg-type]


def test_what_falls_between_units_is_rounded_down() -> None:
    assert Epsilon.of(Fraction(1, 3)).units == 333333333333333
    assert Epsilon.of("0.0019999999999999999").units == 1999999999999
    assert (Epsilon.of("0.001") // 7).units == 10**12 // 7


def test_budgets_are_multiplied_and_divided_by_whole_numbers() -> None:
    """A factor of 0.5 would be cut to 0, and cost nothing."""
    one: Any = Epsilon.of(1)
    wrong: list[Callable[[], Any]] = [
        lambda: one * 0.5,
        lambda: one * Fraction(3, 2),
        lambda: one // 2.5,
        lambda: one + 1,
        lambda: one - 1,
    ]
    for compute in wrong:
        with pytest.raises(TypeError):
            compute()
    for parts in (0, -1):
        with pytest.raises(InputError, match=f"at least one part, got {parts}"):
            one // parts


def test_units_are_pythons_whole_numbers() -> None:
    """Those of NumPy would wrap around."""
    many = Epsilon(np.int64(2**62)) * 4  # type: ignore[arg-type]
    assert (type(many.units), many.units) == (int, 2**64)
    wrong: list[Any] = [0.5, 2.0, True, "1", None]
    for units in wrong:
        with pytest.raises(InputError, match="the units of an Epsilon"):
            Epsilon(units)


def test_weights_are_fractions_from_0_on() -> None:
    """Beside one below 0 another would get more than the whole."""
    parts = Epsilon(100).share([Fraction(1), Fraction(0), Fraction(3)])
    assert [part.units for part in parts] == [25, 0, 75]
    wrong: list[Any] = [[2, -1], [-1, -1], [Fraction(1, 2), 0.5], [0.5, 0.5], [0, 0], []]
    for weights in wrong:
        with pytest.raises(InputError, match="weights must be fractions, none below 0"):
            Epsilon(100).share(weights)


def test_a_budget_cannot_go_below_zero() -> None:
    with pytest.raises(InputError):
        Epsilon.of(1) - Epsilon.of(2)


def test_sums_and_multiples_are_exact() -> None:
    third = Epsilon.of(Fraction(1, 3))
    assert third + Epsilon(7) == Epsilon(333_333_333_333_340)
    assert third * 3 == Epsilon(10**15 - 1)
    assert (third - Epsilon(33), float(Epsilon.of("0.25"))) == (Epsilon(333_333_333_333_300), 0.25)
    assert third.fraction == Fraction(333_333_333_333_333, 10**15)


@pytest.mark.parametrize("value", [True, False])
def test_a_truth_value_is_no_budget(value: bool) -> None:
    with pytest.raises(InputError, match="epsilon must be"):
        Epsilon.of(value)


@pytest.mark.parametrize("power", [-3, 0, 1, 2, 3, 30])
def test_cube_roots_are_right_to_fifty_digits(power: int) -> None:
    cubed = cube_root_of_two_to(power) ** 3
    assert abs(cubed / Fraction(2) ** power - 1) < Fraction(1, 10**50)


@given(
    st.integers(1, 10**18),
    st.lists(st.fractions(min_value=Fraction(1, 10**6), max_value=10**6), min_size=1, max_size=30),
)
def test_shares_never_exceed_the_whole_and_lose_less_than_a_unit_each(
    units: int, weights: list[Fraction]
) -> None:
    shares = Epsilon(units).share(weights)
    assert units - len(weights) < sum(share.units for share in shares) <= units


@given(st.integers(1, 10**18))
def test_text_is_exact(units: int) -> None:
    assert Epsilon.of(str(Epsilon(units))) == Epsilon(units)
