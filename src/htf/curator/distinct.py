"""Counts different people in the boxes of a coarse grid, or in zones, with noise. Sensitive.

Here a box is an area of a division of the map (htf.frame.division): no two overlap, whatever divides it. Each person is counted in at most M boxes, once in each, so one person moves at most M of the counts, each by one. M is
given, or chosen from how many people were in how many boxes, found with noise: every person is in one class of that
histogram, so one person moves one number by one. Proof: docs/proofs/people.md.
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
from htf.estimation.distinct import best_max_boxes
from htf.frame.division import MOST_AREAS, Division
from htf.frame.domain import IntArray
from htf.privacy.apart import ToldApart, check_told_apart
from htf.privacy.budget import BudgetFile
from htf.privacy.distinct import (
    CLASS_ENDS,
    DistinctCounts,
    check_max_boxes,
    most_boxes,
    number_of_classes,
)
from htf.privacy.epsilon import Epsilon, EpsilonLike
from htf.privacy.protection import PERIODS, PERSON, Protection

CLASSES_OF_A_PERSON = 1  # each person is counted in one class: what noise must cover
# A fifth of epsilon tells how many people were in how many boxes: docs/distinct.md.
PART_FOR_PEOPLE = 5


class PeopleByBox(ReadOnlyArrays):
    """How many people were in each box of a grid, or in each zone, as their first, second, … box. Sensitive: its repr shows no data.

    The boxes of a person are in an order that depends on that person's records alone. `read_people_by_box` makes one.

    Parameters
    ----------
    grid : int, (int, int) or str
        The number of boxes along the first two axes, or by which names the map is divided, such as `district`.
    people : array_like of int
        A row for first boxes, one for second boxes and so on, each with the number of people for each box.
        Boxes beyond the 64th of a person are left out. Rows at the end that are missing count as 0.
    per : {"day", "week", "month"}, optional
        The period, if a person in each period counts as one.
    told_apart : ToldApart, optional
        By which columns people, and their periods, are told apart.

    Raises
    ------
    InputError
        If the numbers are not whole, are negative or too many, or somebody has a second box and no first.

    Examples
    --------
    >>> import htf
    >>> htf.PeopleByBox((2, 1), [[500, 20], [0, 300]])
    PeopleByBox(2 x 1 boxes, exact numbers not shown)
    """

    __slots__ = ("_people", "division", "per", "told_apart")

    def __init__(
        self,
        grid: int | tuple[int, int] | str,
        people: ArrayLike,
        per: str | None = None,
        told_apart: ToldApart | None = None,
    ) -> None:
        """Take the number of people in each box, for first boxes, second boxes and so on."""
        self.division, self.told_apart = Division.of(grid), check_told_apart(told_apart)
        self.per = arguments.optional(arguments.choice, per, PERIODS, "the period (per)")
        given = arguments.array(people, "numbers of people")
        if given.ndim != 2 or given.dtype.kind not in "iu":
            raise InputError("people in boxes are counted in whole numbers, in rows")
        boxes = self.division.boxes or min(max(given.shape[1], 1), MOST_AREAS)
        most = most_boxes(boxes)
        if given.shape[1] != boxes or not 1 <= given.shape[0] <= most:
            whole = self.division.whole(boxes).removesuffix(" over the map")
            raise InputError(f"people in {whole} are 1 to {most} rows of {boxes} numbers")
        if given.min() < 0 or float(given.sum(dtype=np.float64)) > MOST_RECORDS:
            raise InputError("numbers of people must not be negative, nor pass 2**40 together")
        if np.any(np.diff(given.sum(axis=1, dtype=np.int64)) > 0):
            raise InputError(
                "nobody has a second box without a first: rows of people must not become larger"
            )
        self._people: IntArray = np.zeros((most, boxes), dtype=np.int64)
        self._people[: len(given)] = given
        self._people.flags.writeable = False

    @property
    def boxes(self) -> int:
        """The number of boxes. Public."""
        return int(self._people.shape[1])

    @property
    def exact_people(self) -> IntArray:
        """People in each box, a row for first boxes, second boxes and so on. Sensitive."""
        return self._people

    def __repr__(self) -> str:
        return f"PeopleByBox({self.division.told(self.boxes)}, exact numbers not shown)"


def measure_distinct(
    people: PeopleByBox,
    epsilon: EpsilonLike,
    *,
    max_boxes: int | None = None,
    noise: NoiseSource | str = "opendp",
    budget: BudgetFile | None = None,
    label: str = "",
) -> DistinctCounts:
    """Spend `epsilon`, for one person, on how many different people were in each box of a grid, or in each zone.

    Hand the result to `publish`, whose epsilon is then the total of both.

    Parameters
    ----------
    people : PeopleByBox
        The people in each box, from `read_people_by_box`.
    epsilon : Epsilon, str, int, float, Decimal or Fraction
        The privacy budget of this measurement. A fifth of it tells how many people were in how many boxes.
    max_boxes : int, optional
        In how many boxes to count each person, at most. If left out, the number with the least expected error is found
        from that fifth. Choose it without looking at the data.
    noise : NoiseSource or str
        As in `publish`.
    budget : BudgetFile, optional
        The budget to charge before anything is drawn. The charge stands whatever follows.
    label : str
        What to call the charge.

    Returns
    -------
    DistinctCounts
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
    >>> people = htf.PeopleByBox((2, 1), [[500, 20], [0, 300]])
    >>> htf.measure_distinct(people, 1, max_boxes=2, noise="seeded:1").counts
    (502, 322)
    """
    remedy = "make one with htf.read_people_by_box(source, domain, grid, user=column)"
    arguments.instance(people, PeopleByBox, "people", remedy)
    boxes = people.boxes
    if max_boxes is not None:
        max_boxes = check_max_boxes(max_boxes, people.division, boxes)
    unit = Protection(PERSON, per=people.per).name
    payment = Payment.of(epsilon, noise, budget, label, unit, people.told_apart)
    part = payment.price // PART_FOR_PEOPLE if boxes > 1 and max_boxes != boxes else Epsilon(0)
    rest = payment.price - part
    if boxes > 1 and max_boxes != boxes and part.units == 0:
        raise InputError(f"epsilon {payment.price} is too small to be divided: spend more")
    decides = max_boxes is None and boxes > 1
    with payment.charged(DistinctCounts.kind) as entry:
        by_class: tuple[int, ...] = ()
        if part.units:
            by_class = payment.add_noise(people_by_class(people), part, CLASSES_OF_A_PERSON)
        most = best_max_boxes(by_class, boxes, rest) if decides else max_boxes or 1
        counts = payment.add_noise(people_in_boxes(people, most), rest, most)
    return DistinctCounts(
        people.division.given,
        most,
        counts,
        by_class,
        payment.price,
        part,
        *payment.drawn,
        decides=decides,
        per=people.per,
        budget_entry=entry,
        told_apart=people.told_apart,
    )


def people_in_boxes(people: PeopleByBox, max_boxes: int) -> IntArray:
    """The exact number of people in each box, each person in their first `max_boxes` boxes. Sensitive. One person is
    once in each of at most so many numbers."""
    return np.asarray(people.exact_people[:max_boxes].sum(axis=0))


def people_by_class(people: PeopleByBox) -> IntArray:
    """The exact number of people in each class, by how many boxes they were in. Sensitive. One person is in one class.

    As many people were in more than n boxes as have a box number n + 1.
    """
    starts = np.array((0, *CLASS_ENDS[:-1]))[: number_of_classes(people.boxes)]
    more_than = people.exact_people.sum(axis=1)[starts]
    return np.asarray(more_than - np.append(more_than[1:], 0))
