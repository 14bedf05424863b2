"""Exact privacy budgets.

An epsilon is a whole number of units of 1e-15, so that sums, differences and comparisons in the
ledger are exact and fit 64-bit arrays. Whatever does not fall on a unit is rounded *down*: a share
can only be smaller than asked for, and the noise it buys only larger.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import TypeAlias

from htf.base import arguments, numerals
from htf.errors import InputError

UNITS_PER_EPSILON = 10**15
UNIT_DIGITS = 15
LARGEST_EPSILON = 1000  # far beyond any use, and sums along a path stay far below 2**63 units


@dataclass(frozen=True, order=True, slots=True)
class Epsilon:
    """A non-negative privacy budget, exact: a whole number of units of 1e-15.

    Epsilons add, subtract and compare exactly. Multiply one by a whole number, or divide it with `//`
    into equal shares, each rounded down.

    Parameters
    ----------
    units : int
        How many units of 1e-15. Use `Epsilon.of` for an epsilon such as 0.5.

    Raises
    ------
    InputError
        If the units are not a whole number, or are negative.

    Examples
    --------
    >>> import htf
    >>> epsilon = htf.Epsilon.of("0.5")
    >>> str(epsilon // 3)
    '0.166666666666666'
    >>> epsilon + epsilon == htf.Epsilon.of(1)
    True
    """

    units: int

    def __post_init__(self) -> None:
        units = self.units
        if type(units) is not int:  # which is nearly always, and quick
            remedy = "for an epsilon such as 0.5 write Epsilon.of('0.5')"
            units = arguments.whole(units, "the units of an Epsilon, of 1e-15 each,", remedy=remedy)
            object.__setattr__(self, "units", units)
        if units < 0:
            raise InputError(f"epsilon must not be negative, got {units}e-15")

    @classmethod
    def of(cls, value: EpsilonLike) -> Epsilon:
        """Make the greatest representable budget that is not above `value`.

        Parameters
        ----------
        value : Epsilon, str, int, float, Decimal or Fraction
            A positive number of at most 1000. A float stands for the decimal it prints as: 0.1 is one
            tenth.

        Returns
        -------
        Epsilon
            The budget.

        Raises
        ------
        InputError
            If the value is not a number, not positive, or more than 1000.

        Examples
        --------
        >>> htf.Epsilon.of(0.1)
        Epsilon(units=100000000000000)
        """
        units = (
            value.units if isinstance(value, Epsilon) else _to_fraction(value) * UNITS_PER_EPSILON
        )
        if not 1 <= units <= LARGEST_EPSILON * UNITS_PER_EPSILON:
            raise InputError(
                f"epsilon must be positive, at least 1e-15 and at most {LARGEST_EPSILON}, "
                f"got {arguments.described(value)}"
            )
        return cls(int(units))

    # Of operands that they do not know, operators say NotImplemented: Python's own error follows.

    def __add__(self, other: Epsilon) -> Epsilon:
        if not isinstance(other, Epsilon):
            return NotImplemented
        return Epsilon(self.units + other.units)

    def __sub__(self, other: Epsilon) -> Epsilon:
        if not isinstance(other, Epsilon):
            return NotImplemented
        return Epsilon(self.units - other.units)

    def __mul__(self, times: int) -> Epsilon:
        if not arguments.is_whole(times):
            return NotImplemented
        return Epsilon(self.units * int(times))

    def __floordiv__(self, parts: int) -> Epsilon:
        """One of `parts` equal shares, rounded down."""
        if not arguments.is_whole(parts):
            return NotImplemented
        if parts < 1:
            raise InputError(f"epsilon is divided into at least one part, got {int(parts)}")
        return Epsilon(self.units // int(parts))

    def __float__(self) -> float:
        return self.units / UNITS_PER_EPSILON

    def __str__(self) -> str:
        text = f"{Decimal(self.units).scaleb(-15, _WIDE):f}"
        return text.rstrip("0").rstrip(".") if "." in text else text

    @property
    def fraction(self) -> Fraction:
        """The budget as a fraction."""
        return Fraction(self.units, UNITS_PER_EPSILON)

    def share(self, weights: Sequence[Fraction]) -> list[Epsilon]:
        """Divide the budget in proportion to weights. Each share is rounded down, so they never exceed it.

        Parameters
        ----------
        weights : sequence of Fraction
            The weights, none below 0 and not all of them 0.

        Returns
        -------
        list of Epsilon
            One share for each weight.

        Raises
        ------
        InputError
            If the weights are not fractions, or are negative or all 0.

        Examples
        --------
        >>> from fractions import Fraction
        >>> [str(part) for part in epsilon.share([Fraction(1), Fraction(3)])]
        ['0.125', '0.375']
        """
        given = arguments.items(weights, "weights", "a list of fractions")
        if not all(isinstance(w, (int, Fraction)) and w >= 0 for w in given) or not any(given):
            raise InputError("weights must be fractions, none below 0 and not all of them 0")
        total = Fraction(sum(given))
        return [Epsilon(int(self.units * weight / total)) for weight in given]


EpsilonLike: TypeAlias = Epsilon | str | int | float | Decimal | Fraction  # what Epsilon.of takes
_WIDE = Context(prec=60, rounding=ROUND_FLOOR)


def epsilon_from_text(text: EpsilonLike) -> Epsilon:
    """What `str` gave. Unlike `Epsilon.of`, it takes 0."""
    return Epsilon(0) if text == "0" else Epsilon.of(text)


def cube_root_of_two_to(power: int) -> Fraction:
    """2 ** (power / 3) to sixty digits, as a weight for `Epsilon.share`."""
    return Fraction(_WIDE.power(Decimal(2), _WIDE.divide(Decimal(power), Decimal(3))))


def _to_fraction(value: object) -> Fraction:
    """Exact. Numbers whose exponent alone rules them out are not written out: that could take for ever."""
    try:
        if isinstance(value, str):
            return numerals.fraction(value)
        if isinstance(value, Decimal):
            return _from_decimal(value)
        if isinstance(value, Fraction):
            return value
        if arguments.is_whole(value):  # NumPy's integers too
            return Fraction(operator.index(value))  # type: ignore[arg-type]
        if arguments.is_number(value):  # as they print, NumPy's floats too
            return numerals.fraction(str(value))
    except ValueError:
        pass
    raise arguments.unfit("epsilon", "a positive number", value)


def _from_decimal(value: Decimal) -> Fraction:
    if not value.is_finite():
        raise ValueError("not a number")
    if value and not -UNIT_DIGITS <= value.adjusted() <= UNIT_DIGITS:
        return Fraction(0) if value.adjusted() < 0 else Fraction(UNITS_PER_EPSILON)
    return Fraction(value)
