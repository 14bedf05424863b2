"""Chooses how many records to keep per person, with noise. Sensitive.

Keeping few records loses counts, keeping many costs noise, and the numbers of records per person are secret. So
the limit is a noisy quantile of records per person, by the exponential mechanism over the public range 1 to
`most`, sampled exactly. One person moves the ranks by one, however many records they have, so the price is not
multiplied by anything. Proof: docs/proofs/people.md.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from htf.base import arguments, numerals
from htf.base.read_only import ReadOnlyArrays
from htf.curator.frequency import MOST_RECORDS
from htf.curator.medians import Runs, choose_run_exactly, uniform_below, wide_words
from htf.curator.noise import NoiseSource, noise_from_text
from htf.curator.noise_check import check_noise
from htf.curator.rehearsal import load_loops
from htf.errors import InputError
from htf.frame.domain import IntArray
from htf.privacy.budget import SUGGESTION, BudgetFile, check_adds_up, still_charged
from htf.privacy.epsilon import UNITS_PER_EPSILON, Epsilon
from htf.privacy.protection import MOST_RECORDS_OF_A_PERSON, PERSON, Protection, Suggestion

LARGEST_DENOMINATOR = 10**6  # of a quantile; times the most people, ranks still fit 64 bits


class RecordsPerPerson(ReadOnlyArrays):
    """How many people have 1, 2, … records. Sensitive: its repr shows no data.

    Parameters
    ----------
    persons : array_like of int
        The number of people with 1, 2, … records. The last entry counts those with that many or more.
        Choose the number of entries without the data.

    Raises
    ------
    InputError
        If the numbers are not whole, are negative, or are too many.

    Examples
    --------
    >>> import htf
    >>> people = htf.RecordsPerPerson([500, 300, 150, 40, 10])
    >>> people
    RecordsPerPerson(1 to 5 records, exact numbers not shown)
    """

    __slots__ = ("_persons",)

    def __init__(self, persons: ArrayLike) -> None:
        """Take the number of people with 1, 2, … records."""
        counted = arguments.array(persons, "numbers of people")
        if counted.ndim != 1 or counted.dtype.kind not in "iu":
            raise InputError("people are counted in whole numbers, in one row")
        if not 1 <= len(counted) <= MOST_RECORDS_OF_A_PERSON:
            raise InputError(
                "how many records a person may have must be a whole number between 1 and "
                f"{MOST_RECORDS_OF_A_PERSON}, got {len(counted)}"
            )
        if counted.min() < 0 or float(counted.sum(dtype=np.float64)) > MOST_RECORDS:
            raise InputError("numbers of people must not be negative, nor pass 2**40 together")
        self._persons: IntArray = counted.astype(np.int64)
        self._persons.flags.writeable = False

    @classmethod
    def from_records(cls, records: ArrayLike, most: int) -> RecordsPerPerson:
        """Count people by their number of records. More than `most` count as `most`.

        Parameters
        ----------
        records : array_like of int
            The number of records of each person.
        most : int
            The end of the range, chosen without the data.

        Returns
        -------
        RecordsPerPerson
            The counts.

        Raises
        ------
        InputError
            If a number is not whole or below 1.

        Examples
        --------
        >>> htf.RecordsPerPerson.from_records([1, 1, 2, 70], most=50)
        RecordsPerPerson(1 to 50 records, exact numbers not shown)
        """
        Protection(PERSON, most)
        numbers = arguments.array(records, "records of each person")
        if numbers.size and (numbers.dtype.kind not in "iu" or numbers.min() < 1):
            raise InputError("the records of a person are a whole number, at least 1")
        clipped = np.minimum(numbers.ravel(), most).astype(np.int64)
        return cls(np.bincount(clipped, minlength=most + 1)[1:])

    @property
    def most(self) -> int:
        """The end of the range. Public."""
        return len(self._persons)

    @property
    def exact_persons(self) -> IntArray:
        """People with 1, 2, … records. Sensitive."""
        return self._persons

    def __repr__(self) -> str:
        return f"RecordsPerPerson(1 to {self.most} records, exact numbers not shown)"


def suggest_max_records(
    people: RecordsPerPerson,
    epsilon: Epsilon | str | int | float | Decimal | Fraction,
    *,
    quantile: Fraction | str | float | Decimal = Fraction(9, 10),
    noise: NoiseSource | str = "opendp",
    budget: BudgetFile | None = None,
    label: str = "",
) -> Suggestion:
    """Spend `epsilon`, for one person, on the K at which a share of `quantile` of people lose no record.

    Hand the suggestion to `publish`, whose epsilon is then the total of both.

    Parameters
    ----------
    people : RecordsPerPerson
        How many people have how many records.
    epsilon : Epsilon, str, int, float, Decimal or Fraction
        The privacy budget of the suggestion.
    quantile : Fraction, str, float or Decimal
        The share of people who are to lose no record.
    noise : NoiseSource or str
        As in `publish`.
    budget : BudgetFile, optional
        The budget to charge before anything is drawn. The charge stands whatever follows.
    label : str
        What to call the charge.

    Returns
    -------
    Suggestion
        The number, and what it has cost.

    Raises
    ------
    InputError
        If an argument is wrong.
    BudgetError
        If the budget does not suffice.

    Examples
    --------
    >>> import htf
    >>> people = htf.RecordsPerPerson([500, 300, 150, 40, 10])
    >>> htf.suggest_max_records(people, 0.5, noise="seeded:1").max_records
    3
    """
    remedy = "make one with htf.RecordsPerPerson.from_records(records, most)"
    arguments.instance(people, RecordsPerPerson, "people", remedy)
    if budget is not None:
        arguments.instance(
            budget, BudgetFile, "budget", "open it with htf.BudgetFile(path, dataset)"
        )
    arguments.text(label, "label")
    price, share = Epsilon.of(epsilon), read_quantile(quantile)
    source = noise_from_text(noise) if isinstance(noise, str) else noise
    remedy = "or one of the texts opendp, fast and seeded:NUMBER"
    arguments.instance(source, NoiseSource, "noise", remedy)  # type: ignore[type-abstract]
    check_noise(source)
    load_loops()  # for the release that follows: without it this would be spent in vain
    entry: str | None = None
    with still_charged(budget):
        if budget is not None:
            check_adds_up(source.private, {})
            unit = Protection(PERSON).name
            entry = budget.charge(price, SUGGESTION, label, unit=unit).id
        chosen = _choose(people, price, share, source)
    drawn = source.description, source.private
    return Suggestion(chosen, share, people.most, price, *drawn, budget_entry=entry)


def _choose(people: RecordsPerPerson, epsilon: Epsilon, share: Fraction, noise: NoiseSource) -> int:
    """k with probability proportional to exp(-rate * |utility of k|)."""
    runs = rank_runs(people, share)
    rate = Fraction(epsilon.units, 2 * utility_sensitivity(share) * UNITS_PER_EPSILON)
    drawn = int(wide_words(1, noise.words)[0])
    run = choose_run_exactly(runs, rate, drawn, noise.words)
    return int(runs[0][run] + uniform_below(runs[1][run : run + 1], noise.words)[0])


def rank_runs(people: RecordsPerPerson, share: Fraction) -> Runs:
    """Numbers k = 1 … most with their utilities, in runs of k that nobody's number tells apart.

    With share = a / (a + b), the utility of k is b * (people with up to k) - a * (people with more):
    zero if exactly that share of the people are covered. The runs have its absolute value.
    """
    up_to = np.cumsum(people.exact_persons)
    beyond = up_to[-1] - up_to
    a, b = share.numerator, share.denominator - share.numerator
    starts = np.flatnonzero(np.r_[True, people.exact_persons[1:] > 0])
    sizes = np.diff(np.r_[starts, people.most])
    return starts + 1, sizes, np.abs(b * up_to[starts] - a * beyond[starts])


def utility_sensitivity(share: Fraction) -> int:
    """One person more is one of "up to k" or one of "more", for every k."""
    return max(share.numerator, share.denominator - share.numerator)


def read_quantile(quantile: Fraction | str | float | Decimal) -> Fraction:
    try:
        known = isinstance(quantile, str) or arguments.is_number(quantile)
        share = numerals.fraction(str(quantile)) if known else Fraction(0)
    except ValueError:
        share = Fraction(0)
    if not (0 < share < 1 and share.denominator <= LARGEST_DENOMINATOR):
        raise InputError(
            "the quantile is the share of people who are to lose nothing, between 0 and 1 such as 0.9 and "
            f"with at most six digits, got {arguments.described(quantile)}"
        )
    return share
