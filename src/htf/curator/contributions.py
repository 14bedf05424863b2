"""Measures how many records people have, with noise, and chooses by it how many to keep. Sensitive.

The activity of people is a histogram over marks. Someone whose number of records lies between two marks is split
between them in proportion, so one person moves all numbers together by one, and sums over the marks tell how many
records there are. That tells how many are missed, and which number to keep gives the least error.

The older way to choose that number is a quantile. Keeping few records loses counts, keeping many costs noise, and
the numbers of records per person are secret. So the limit is a noisy quantile of records per person, by the
exponential mechanism over the public range 1 to `most`, sampled exactly. One person moves the ranks by one, however
many records they have, so the price is not multiplied by anything. Proof: docs/proofs/people.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
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
from htf.privacy.activity import LEAST_PRICE, PARTS, Activity, marks
from htf.privacy.apart import ToldApart, check_told_apart
from htf.privacy.budget import BudgetFile, check_adds_up, still_charged
from htf.privacy.epsilon import UNITS_PER_EPSILON, Epsilon
from htf.privacy.protection import MOST_RECORDS_OF_A_PERSON, PERSON, Protection, Suggestion

PARTS_OF_A_PERSON = PARTS  # over all marks together: what noise must cover
LARGEST_DENOMINATOR = 10**6  # of a quantile; times the most people, ranks still fit 64 bits


class RecordsPerPerson(ReadOnlyArrays):
    """How many people have 1, 2, … records. Sensitive: its repr shows no data.

    Parameters
    ----------
    persons : array_like of int
        The number of people with 1, 2, … records. The last entry counts those with that many or more.
        Choose the number of entries without the data.
    told_apart : ToldApart, optional
        By which columns people, and their periods, are told apart. A budget file compares it with that of the map.

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

    __slots__ = ("_persons", "told_apart")

    def __init__(self, persons: ArrayLike, told_apart: ToldApart | None = None) -> None:
        """Take the number of people with 1, 2, … records."""
        self.told_apart = check_told_apart(told_apart)
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
    def from_records(
        cls, records: ArrayLike, most: int, told_apart: ToldApart | None = None
    ) -> RecordsPerPerson:
        """Count people by their number of records. More than `most` count as `most`.

        Parameters
        ----------
        records : array_like of int
            The number of records of each person.
        most : int
            The end of the range, chosen without the data.
        told_apart : ToldApart, optional
            By which columns people, and their periods, are told apart.

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
        return cls(np.bincount(clipped, minlength=most + 1)[1:], told_apart)

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
    per: str | None = None,
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
    per : {"day", "week", "month"}, optional
        The period, if the unit is one person in one period. `people` then counts each of them.

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
    share = read_quantile(quantile)
    _check_people(people)
    purchase = Purchase.of(epsilon, noise, budget, label, per, people.told_apart)
    with purchase.charged(Suggestion.charged_as) as entry:
        chosen = _choose(people, purchase.price, share, purchase.noise)
        drawn = purchase.noise.description, purchase.noise.private
        return Suggestion(
            chosen, share, people.most, purchase.price, *drawn, per=per, budget_entry=entry
        )


def measure_activity(
    people: RecordsPerPerson,
    epsilon: Epsilon | str | int | float | Decimal | Fraction,
    *,
    noise: NoiseSource | str = "opendp",
    budget: BudgetFile | None = None,
    label: str = "",
    per: str | None = None,
) -> Activity:
    """Spend `epsilon`, for one person, on how many people have how many records.

    Someone whose number of records lies between two marks is split between them, in proportion. Hand the result to
    `publish`, whose epsilon is then the total of both. Its counts are then of all records, although only K of each
    person were kept, and its intervals include the error of that. `best_max_records` finds a K from it.

    Parameters
    ----------
    people : RecordsPerPerson
        How many people have how many records. Those with more than its `most` count as having that many, in the
        total too. Choose it without the data, and no larger than needed: a few such people cannot be told from none,
        and the upper ends of intervals allow for them.
    epsilon : Epsilon, str, int, float, Decimal or Fraction
        The privacy budget of this measurement.
    noise : NoiseSource or str
        As in `publish`.
    budget : BudgetFile, optional
        The budget to charge before anything is drawn. The charge stands whatever follows.
    label : str
        What to call the charge.
    per : {"day", "week", "month"}, optional
        The period, if the unit is one person in one period. `people` then counts each of them.

    Returns
    -------
    Activity
        The noisy numbers of people, and what they have cost.

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
    >>> [round(one) for one in htf.measure_activity(people, 0.5, noise="seeded:1").counted]
    [502, 409, 91]
    """
    _check_people(people)
    purchase = Purchase.of(epsilon, noise, budget, label, per, people.told_apart)
    if purchase.price < LEAST_PRICE:
        raise InputError(
            f"an activity of people costs at least {LEAST_PRICE}, got {purchase.price}"
        )
    at = np.array([purchase.price.units]).repeat(len(marks(people.most)))
    with purchase.charged(Activity.charged_as) as entry:
        noisy = parts_by_mark(people) + purchase.noise.draw(at, PARTS_OF_A_PERSON)
        drawn = purchase.noise.description, purchase.noise.private
        return Activity(
            tuple(noisy.tolist()),
            purchase.price,
            *drawn,
            per=per,
            budget_entry=entry,
            most=people.most,
        )


def parts_by_mark(people: RecordsPerPerson) -> IntArray:
    """The exact number of people at each mark, in parts of a person. Sensitive.

    Someone whose number lies between two marks is split between them, in proportion. The parts of one person add up
    to PARTS, and none is negative. They are whole: what is left of a part goes to the lower mark.
    """
    at, persons = np.array(marks(people.most)), people.exact_persons
    numbers = np.arange(1, people.most + 1)
    below = np.searchsorted(at, numbers, side="right") - 1
    above = np.minimum(below + 1, len(at) - 1)
    upper = PARTS * (numbers - at[below]) // np.maximum(at[above] - at[below], 1)
    found = np.zeros(len(at), dtype=np.int64)
    np.add.at(found, above, persons * upper)
    np.add.at(found, below, persons * (PARTS - upper))
    return found


def _check_people(people: object) -> None:
    remedy = "make one with htf.RecordsPerPerson.from_records(records, most)"
    arguments.instance(people, RecordsPerPerson, "people", remedy)


@dataclass(frozen=True)
class Purchase:
    """A measurement about people that is about to be paid for, with checked arguments."""

    price: Epsilon
    noise: NoiseSource
    budget: BudgetFile | None
    label: str
    unit: str
    told_apart: ToldApart | None

    @classmethod
    def of(
        cls,
        epsilon: object,
        noise: object,
        budget: object,
        label: object,
        per: object,
        told_apart: ToldApart | None,
    ) -> Purchase:
        if budget is not None:
            remedy = "open it with htf.BudgetFile(path, dataset)"
            arguments.instance(budget, BudgetFile, "budget", remedy)
        arguments.text(label, "label")
        unit = Protection(PERSON, per=per).name  # type: ignore[arg-type]
        price = Epsilon.of(epsilon)  # type: ignore[arg-type]
        source = noise_from_text(noise) if isinstance(noise, str) else noise
        remedy = "or one of the texts opendp, fast and seeded:NUMBER"
        arguments.instance(source, NoiseSource, "noise", remedy)  # type: ignore[type-abstract]
        return cls(price, source, budget, label, unit, told_apart)  # type: ignore[arg-type]

    @contextmanager
    def charged(self, what: str) -> Iterator[str | None]:
        """Charge before anything is drawn, and give the entry of the budget file."""
        check_noise(self.noise)
        load_loops()  # for the release that follows: without it this would be spent in vain
        with still_charged(self.budget):
            entry: str | None = None
            if self.budget is not None:
                check_adds_up(self.noise.private, {})
                charge = self.budget.charge(
                    self.price, what, self.label, unit=self.unit, told_apart=self.told_apart
                )
                entry = charge.id
            yield entry


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
