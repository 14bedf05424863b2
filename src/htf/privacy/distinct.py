"""How many different people were in each box of a coarse grid, or in each zone, found with noise. Public, and part of a
release.

A map is divided into areas that do not overlap (htf.frame.division): boxes of a grid, or names, such as districts. Here
all are called boxes. A person counts once in each box, in at most `max_boxes` of them. Numbers of different people do not add up, so this is
a table of its own beside the map. How many people were in how many boxes, found with noise too, tells what the limit
costs. Proof: docs/proofs/people.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from htf.base import arguments
from htf.errors import InputError
from htf.frame.division import MOST_AREAS, Division
from htf.frame.domain import Domain
from htf.privacy.apart import ToldApart
from htf.privacy.epsilon import Epsilon
from htf.privacy.protection import PERIODS, PERSON, Protection, different_people
from htf.privacy.purchase import FromCurator, Rows

if TYPE_CHECKING:
    from htf.release.release import Release

MOST_BOXES_OF_A_PERSON = 64  # in which a person is counted; noise grows with them
# A person in n boxes is in the first class whose end is at least n; in more than all, in the last.
CLASS_ENDS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
LARGEST_COUNT = 2**62  # people and noise
NUMBERS = "a list of whole numbers"

NOT_PEOPLE = (
    "different people can be counted only where a column names the person: name it with --user (in Python: user), or "
    "leave out --distinct"
)

DISTINCT_TABLE = (
    "The release also has a table of {quantity} in {whole}. Whoever has a record in "
    "{place} counts there once{in_each}, in at most {most} {places}; of whoever was in more, {most} {places} were chosen by nothing but "
    "that person's records. This cost {price} of the epsilon of {epsilon}{chosen}. Numbers of {quantity} do not add "
    "up: somebody who was in two {places} counts in both."
)
DISTINCT_CHOSEN = ", of which {part} went into how many {quantity} were in how many {places}; the limit of {most} was chosen from that"
DISTINCT_GIVEN = ", of which {part} went into how many {quantity} were in how many {places}"
KNOWN_GRID = ", the grid of the table of {quantity}"
KNOWN_NAMES = ", the names of the table of {quantity}"
KNOWN_BOXES = " and in how many of its {places} a person counts"


@dataclass(frozen=True, slots=True)
class DistinctCounts(FromCurator):
    """Noisy numbers of different people in the boxes of a grid, or in zones. `measure_distinct` makes one.

    Attributes
    ----------
    grid : (int, int) or str
        The number of boxes along the first two axes of the map, whose edges are as even as its cells allow; or by which
        names it is divided, such as `district`. Then a box is a district.
    max_boxes : int
        In how many boxes each person was counted, at most.
    counts : tuple of int
        The noisy number of different people in each box, row by row: the last axis changes first. It may be negative.
    people : tuple of int
        The noisy number of people who were in 1, 2, 3, 4, 5 to 6, … boxes. It may be empty if nobody can be in more than
        `max_boxes`.
    epsilon : Epsilon
        What all of it has cost each person.
    people_epsilon : Epsilon
        The part of it that `people` has cost.
    noise : str
        Where the noise came from.
    private : bool
        Whether that noise was secret.
    decides : bool
        Whether `max_boxes` follows from `people`. If not, the curator chose it.
    per : {"day", "week", "month"}, optional
        The period, if the unit is one person in one period. Each of them counts.
    budget_entry : str, optional
        The entry of the budget file that was charged. It is not in the file of a release.
    told_apart : ToldApart, optional
        By which columns people were told apart, as far as it is known. It is not in the file of a release.

    Examples
    --------
    >>> import htf
    >>> people = htf.PeopleByBox((2, 1), [[500, 20], [0, 300]])
    >>> distinct = htf.measure_distinct(people, 0.5, noise="seeded:1")
    >>> distinct.grid, distinct.max_boxes
    ((2, 1), 2)
    """

    kind: ClassVar[str] = "distinct"
    name: ClassVar[str] = "the table of different people"
    words: ClassVar[tuple[str, ...]] = (
        DISTINCT_TABLE, DISTINCT_CHOSEN, DISTINCT_GIVEN, KNOWN_GRID, KNOWN_NAMES, KNOWN_BOXES,
    )  # fmt: skip

    grid: tuple[int, int] | str
    max_boxes: int
    counts: tuple[int, ...]
    people: tuple[int, ...]
    epsilon: Epsilon  # for one person
    people_epsilon: Epsilon  # the part for `people`
    noise: str
    private: bool
    decides: bool = False
    per: str | None = None
    budget_entry: str | None = field(default=None, compare=False)  # not in the file of a release
    told_apart: ToldApart | None = field(default=None, compare=False)  # nor is this

    def __post_init__(self) -> None:
        object.__setattr__(self, "grid", self.division.given)
        given = arguments.items(self.counts, "the counts of different people", NUMBERS)
        number = self.division.boxes or min(max(len(given), 1), MOST_AREAS)
        most = check_max_boxes(self.max_boxes, self.division, number)
        object.__setattr__(self, "max_boxes", most)
        object.__setattr__(self, "counts", _noisy(given, "counts", number))
        classes = number_of_classes(number) if self._needs_people() else 0
        object.__setattr__(self, "people", _noisy(self.people, "people", classes))
        self._check_paid("people_epsilon")
        has_part = bool(self.people_epsilon.units)
        if not self.people_epsilon < self.epsilon or has_part != bool(classes):
            raise InputError(
                f"of the epsilon of different people, {self.epsilon}, a part is for the numbers of people by boxes, if "
                f"there are any, got {self.people_epsilon}"
            )
        arguments.optional(arguments.choice, self.per, PERIODS, "the period (per)")

    def _needs_people(self) -> bool:
        """Where nobody can be in more boxes than are counted, no people were measured unless they decide."""
        given = arguments.items(self.people, "the people of different people", NUMBERS)
        decides = arguments.flag(self.decides, "decides")
        return self.max_boxes < self.boxes or decides or len(given) > 0

    @property
    def division(self) -> Division:
        """How the map is divided."""
        return Division.of(self.grid)

    @property
    def boxes(self) -> int:
        """The number of boxes."""
        return len(self.counts)

    @property
    def told(self) -> str:
        """The boxes in a few words."""
        return self.division.told(self.boxes)

    @property
    def counts_epsilon(self) -> Epsilon:
        """The part of epsilon that the counts of boxes have cost."""
        return self.epsilon - self.people_epsilon

    @property
    def quantity(self) -> str:
        """What is counted, in two words: `different people` or, for example, `different person-days`."""
        return different_people(self.per)

    def check_fits(self, protection: Protection) -> None:
        """Refuse a release that protects something else.

        Parameters
        ----------
        protection : Protection
            What the release protects and counts.

        Raises
        ------
        InputError
            If the unit is not a person, or not in the same period.

        Examples
        --------
        >>> distinct.check_fits(htf.Protection("person", max_records=3))
        """
        if protection.unit != PERSON:
            raise InputError(NOT_PEOPLE)
        if protection.per != self.per:
            here = Protection(PERSON, per=self.per).name
            raise InputError(
                f"different people were counted for {here}, but the release is for {protection.name}: count both alike"
            )

    def check_map(self, domain: Domain) -> None:
        """Refuse a map on which the grid cannot lie, or that has not these names.

        Parameters
        ----------
        domain : Domain
            The map.

        Raises
        ------
        InputError
            If the map has one axis, fewer cells along an axis than the grid has boxes, or other names.

        Examples
        --------
        >>> distinct.check_map(htf.Domain.from_bounds(0, 0, 1, 1, cells=64))
        """
        number = self.division.number(domain)
        if number != self.boxes:
            raise InputError(
                f"different people were counted in {self.told}, but by {self.grid} this map has {number:,}: count both on "
                "the same map"
            )

    def sentences(self, release: Release) -> list[str]:
        """What the statement says of it."""
        division = self.division
        place, places = division.place
        words = {"quantity": self.quantity, "most": self.max_boxes, "places": places}
        chosen = DISTINCT_CHOSEN if self.decides else DISTINCT_GIVEN
        said = DISTINCT_TABLE.format(
            whole=division.whole(self.boxes),
            place=place,
            price=self.epsilon,
            epsilon=release.epsilon,
            chosen=chosen.format(part=self.people_epsilon, **words) if self.people else "",
            in_each="" if self.per is None else f" in each {self.per}",
            **words,
        )
        return [said]

    def known(self) -> str:
        """The grid or the names are public, and in how many boxes a person counts unless that was found with noise."""
        known = KNOWN_NAMES if self.division.grid is None else KNOWN_GRID
        limit = "" if self.decides else KNOWN_BOXES.format(places=self.division.place[1])
        return known.format(quantity=self.quantity) + limit

    def rows(self, release: Release) -> Rows:  # noqa: ARG002 - others need it
        """What the table is of; `htf query --distinct` shows its numbers."""
        told = {**self.to_dict(), "grid": self.told.removesuffix(" boxes")}
        rows = [(name, value) for name, value in told.items() if name not in ("counts", "people")]
        return Rows(f"Table of {self.quantity}: `htf query --distinct`", ("name", ">value"), rows)


def check_max_boxes(given: object, division: Division, number: int) -> int:
    """In how many of so many boxes a person counts, at most."""
    limit = arguments.whole(given, "the number of boxes in which a person counts (max_boxes)")
    most = most_boxes(number)
    if not 1 <= limit <= most:
        told = division.told(number).removesuffix(" boxes")
        where = f"areas by {division.by}" if division.grid is None else f"boxes of a grid of {told}"
        raise InputError(f"a person counts in 1 to {most} {where}, got {limit} (max_boxes)")
    return limit


def most_boxes(boxes: int) -> int:
    """In how many boxes of a grid a person can be counted."""
    return min(boxes, MOST_BOXES_OF_A_PERSON)


def number_of_classes(boxes: int) -> int:
    """How many classes of people there are, by the number of boxes that they can be in."""
    return sum(start < boxes for start in (0, *CLASS_ENDS[:-1]))


def _noisy(given: object, name: str, number: int) -> tuple[int, ...]:
    what = f"the {name} of different people"
    found = tuple(arguments.whole(one, what) for one in arguments.items(given, what, NUMBERS))
    if len(found) != number or any(abs(one) > LARGEST_COUNT for one in found):
        raise InputError(f"{what} are {number} numbers, none beyond 2**62, got {len(found)}")
    return found
