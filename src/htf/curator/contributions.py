"""Measures how many records people have, with noise. Sensitive.

The activity of people is a histogram over marks. Someone whose number of records lies between two marks is split
between them in proportion, so one person moves all numbers together by one, and sums over the marks tell how many
records there are. That tells how many are missed, and which number to keep gives the least error.
Proof: docs/proofs/people.md.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from htf.base import arguments
from htf.base.read_only import ReadOnlyArrays
from htf.curator.frequency import MOST_RECORDS
from htf.curator.noise import NoiseSource
from htf.curator.payment import Payment
from htf.errors import InputError
from htf.frame.domain import IntArray
from htf.privacy.activity import LEAST_PRICE, PARTS, Activity, marks
from htf.privacy.apart import ToldApart, check_told_apart
from htf.privacy.budget import BudgetFile
from htf.privacy.epsilon import EpsilonLike
from htf.privacy.protection import MOST_RECORDS_OF_A_PERSON, PERSON, Protection

PARTS_OF_A_PERSON = PARTS  # over all marks together: what noise must cover


class RecordsPerPerson(ReadOnlyArrays):
    """How many people have 1, 2, … records. Sensitive: its repr shows no data.

    Parameters
    ----------
    persons : array_like of int
        The number of people with 1, 2, … records. The last entry counts those with that many or more.
        Choose the number of entries without the data.
    told_apart : ToldApart, optional
        By which columns people, and their periods, are told apart. A budget file compares it with that of the map.
    weight : str, optional
        The column of weights, where records count by one. Entries are then of people with 1, 2, … units in all.
    max_weight : int
        How often a record counts, at most.

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

    __slots__ = ("_persons", "max_weight", "told_apart", "weight")

    def __init__(
        self,
        persons: ArrayLike,
        told_apart: ToldApart | None = None,
        weight: str | None = None,
        max_weight: int = 1,
    ) -> None:
        """Take the number of people with 1, 2, … records."""
        Protection(weight=weight, max_weight=max_weight)
        self.weight, self.max_weight = weight, max_weight
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


def measure_activity(
    people: RecordsPerPerson,
    epsilon: EpsilonLike,
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
        total too. Choose it without the data, and no larger than needed: a few such people cannot be distinguished from none,
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
    remedy = "make one with htf.RecordsPerPerson.from_records(records, most)"
    arguments.instance(people, RecordsPerPerson, "people", remedy)
    unit = Protection(PERSON, per=per).name
    payment = Payment.of(epsilon, noise, budget, label, unit, people.told_apart)
    if payment.price < LEAST_PRICE:
        raise InputError(f"an activity of people costs at least {LEAST_PRICE}, got {payment.price}")
    with payment.charged(Activity.kind) as entry:
        return Activity(
            payment.add_noise(parts_by_mark(people), payment.price, PARTS_OF_A_PERSON),
            people.most,
            payment.price,
            *payment.drawn,
            per=per,
            budget_entry=entry,
            told_apart=people.told_apart,
            weight=people.weight,
            max_weight=people.max_weight,
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
