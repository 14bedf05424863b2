"""How many different people were in each box of a coarse grid, found with noise. Public, and part of a release.

A person counts once in each box, in at most `max_boxes` of them. Numbers of different people do not add up, so this is
a table of its own beside the map. How many people were in how many boxes, found with noise too, tells what the limit
costs. Proof: docs/proofs/people.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from htf.base import arguments
from htf.errors import InputError
from htf.frame.domain import Domain, read_pair
from htf.privacy.epsilon import Epsilon
from htf.privacy.protection import PERIODS, PERSON, Protection, different_people
from htf.privacy.purchase import Rows

if TYPE_CHECKING:
    from htf.release.release import Release

MOST_GRID_BOXES = 4096  # 64 x 64
MOST_BOXES_OF_A_PERSON = 64  # in which a person is counted; noise grows with them
# A person in n boxes is in the first class whose end is at least n; in more than all, in the last.
CLASS_ENDS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
LARGEST_COUNT = 2**62  # people and noise

NOT_PEOPLE = (
    "different people can be counted only where a column names the person: name it with --user (in Python: user), or "
    "leave out --distinct"
)

DISTINCT_TABLE = (
    "The release also has a table of {quantity} in a grid of {columns} x {rows} boxes over the map. Whoever has a record in "
    "a box counts there once{in_each}, in at most {most} boxes; of whoever was in more, {most} boxes were chosen by nothing but "
    "that person's records. This cost {price} of the epsilon of {epsilon}{chosen}. Numbers of {quantity} do not add "
    "up: somebody who was in two boxes counts in both."
)
DISTINCT_CHOSEN = ", of which {part} went into how many {quantity} were in how many boxes; the limit of {most} was chosen from that"
DISTINCT_GIVEN = ", of which {part} went into how many {quantity} were in how many boxes"
KNOWN_GRID = ", the grid of the table of {quantity}"
KNOWN_BOXES = " and in how many of its boxes a person counts"


@dataclass(frozen=True, slots=True)
class DistinctCounts:
    """Noisy numbers of different people in the boxes of a grid. `measure_distinct` makes one.

    Attributes
    ----------
    grid : (int, int)
        The number of boxes along the first two axes of the map. Their edges are as even as its cells allow.
    max_boxes : int
        In how many boxes each person was counted, at most.
    counts : tuple of int
        The noisy number of different people in each box, row by row: the second axis changes first. It may be negative.
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
        DISTINCT_TABLE, DISTINCT_CHOSEN, DISTINCT_GIVEN, KNOWN_GRID, KNOWN_BOXES,
    )  # fmt: skip

    grid: tuple[int, int]
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

    def __post_init__(self) -> None:
        object.__setattr__(self, "grid", check_grid(self.grid))
        most = check_max_boxes(self.max_boxes, self.grid)
        object.__setattr__(self, "max_boxes", most)
        object.__setattr__(self, "counts", _noisy(self.counts, "counts", self.boxes))
        classes = number_of_classes(self.boxes) if self._needs_people() else 0
        object.__setattr__(self, "people", _noisy(self.people, "people", classes))
        for name in ("epsilon", "people_epsilon"):
            arguments.instance(
                getattr(self, name), Epsilon, f"{name} of different people", "see Epsilon.of"
            )
        if not self.people_epsilon < self.epsilon or bool(self.people_epsilon.units) != bool(
            classes
        ):
            raise InputError(
                f"of the epsilon of different people, {self.epsilon}, a part is for the numbers of people by boxes, if "
                f"there are any, got {self.people_epsilon}"
            )
        arguments.text(self.noise, "the noise of different people")
        arguments.flag(self.private, "private")
        if self.per is not None:
            arguments.choice(self.per, PERIODS, "the period (per)")
        if self.budget_entry is not None:
            arguments.text(self.budget_entry, "the budget entry of different people")

    def _needs_people(self) -> bool:
        """Where nobody can be in more boxes than are counted, no people were measured unless they decide."""
        given = arguments.items(
            self.people, "the people of different people", "a list of whole numbers"
        )
        decides = arguments.flag(self.decides, "decides")
        return self.max_boxes < self.boxes or decides or len(given) > 0

    @property
    def charged_as(self) -> str:
        """How a budget file calls the charge."""
        return self.kind

    @property
    def boxes(self) -> int:
        """The number of boxes of the grid."""
        return self.grid[0] * self.grid[1]

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
        """Refuse a map on which the grid cannot lie.

        Parameters
        ----------
        domain : Domain
            The map.

        Raises
        ------
        InputError
            If the map has one axis, or fewer cells along an axis than the grid has boxes.

        Examples
        --------
        >>> distinct.check_map(htf.Domain.from_bounds(0, 0, 1, 1, cells=64))
        """
        check_grid_fits(self.grid, domain)

    def sentences(self, release: Release) -> list[str]:
        """What the statement says of it."""
        chosen = (DISTINCT_CHOSEN if self.decides else DISTINCT_GIVEN).format(
            part=self.people_epsilon, most=self.max_boxes, quantity=self.quantity
        )
        said = DISTINCT_TABLE.format(
            quantity=self.quantity,
            columns=self.grid[0],
            rows=self.grid[1],
            most=self.max_boxes,
            price=self.epsilon,
            epsilon=release.epsilon,
            chosen=chosen if self.people else "",
            in_each="" if self.per is None else f" in each {self.per}",
        )
        return [said]

    def known(self) -> str:
        """The grid is public, and in how many boxes a person counts unless that was found with noise."""
        return KNOWN_GRID.format(quantity=self.quantity) + ("" if self.decides else KNOWN_BOXES)

    def rows(self, release: Release) -> Rows:  # noqa: ARG002 - others need it
        """What the table is of; `htf query --distinct` shows its numbers."""
        told = {**self.to_dict(), "grid": "{} x {}".format(*self.grid)}
        rows = [(name, value) for name, value in told.items() if name not in ("counts", "people")]
        return Rows(f"Table of {self.quantity}: `htf query --distinct`", ("name", ">value"), rows)

    def to_dict(self) -> dict[str, Any]:
        """Describe the counts with plain values, for JSON.

        Returns
        -------
        dict
            What `from_dict` takes.

        Examples
        --------
        >>> distinct.to_dict()["epsilon"]
        '0.5'
        """
        return {
            "grid": list(self.grid),
            "max_boxes": self.max_boxes,
            "counts": list(self.counts),
            "people": list(self.people),
            "epsilon": str(self.epsilon),
            "people_epsilon": str(self.people_epsilon),
            "noise": self.noise,
            "private": self.private,
            "decides": self.decides,
            "per": self.per,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> DistinctCounts:
        """Make counts from what `to_dict` gave.

        Parameters
        ----------
        data : mapping
            All fields by name, except the budget entry.

        Returns
        -------
        DistinctCounts
            The counts.

        Raises
        ------
        InputError
            If something is missing or wrong.

        Examples
        --------
        >>> htf.DistinctCounts.from_dict(distinct.to_dict()) == distinct
        True
        """
        known = arguments.fields(data, "different people", NAMES)
        part = known["people_epsilon"]
        return cls(
            **{
                **known,
                "epsilon": Epsilon.of(known["epsilon"]),
                "people_epsilon": Epsilon(0) if part == "0" else Epsilon.of(part),
            }
        )


NAMES = (
    "grid", "max_boxes", "counts", "people", "epsilon", "people_epsilon", "noise", "private", "decides", "per",
)  # fmt: skip


def check_grid(given: object) -> tuple[int, int]:
    """The number of boxes along two axes: one whole number for both, or a pair."""
    columns, rows = read_pair(given, "the grid of different people")
    if columns < 1 or rows < 1 or columns * rows > MOST_GRID_BOXES:
        raise InputError(
            f"the grid of different people has at least one box along each axis and at most {MOST_GRID_BOXES:,} in all, "
            f"got {columns} x {rows}: for small areas use the map itself"
        )
    return columns, rows


def check_grid_fits(grid: tuple[int, int], domain: Domain) -> None:
    """Refuse a grid with more boxes along an axis than the map has cells."""
    if domain.dimensions < 2:
        raise InputError(
            "different people are counted on the first two axes of a map, but this one has one"
        )
    if not domain.has_map:
        raise InputError(
            f"different people are counted in boxes of a map with axes x and y, but this one has "
            f"{', '.join(domain.names)}"
        )
    for boxes, axis in zip(grid, domain.axes[:2], strict=True):
        if boxes > axis.cells:
            raise InputError(
                f"the grid of different people has {boxes} boxes along {axis.name!r}, but the map has only {axis.cells} "
                "cells there: take fewer boxes, or more cells"
            )


def check_max_boxes(given: object, grid: tuple[int, int]) -> int:
    """In how many boxes a person counts, at most."""
    number = arguments.whole(given, "the number of boxes in which a person counts (max_boxes)")
    most = most_boxes(grid[0] * grid[1])
    if not 1 <= number <= most:
        raise InputError(
            f"a person counts in 1 to {most} boxes of a grid of {grid[0]} x {grid[1]}, got {number} (max_boxes)"
        )
    return number


def most_boxes(boxes: int) -> int:
    """In how many boxes of a grid a person can be counted."""
    return min(boxes, MOST_BOXES_OF_A_PERSON)


def number_of_classes(boxes: int) -> int:
    """How many classes of people there are, by the number of boxes that they can be in."""
    return sum(start < boxes for start in (0, *CLASS_ENDS[:-1]))


def _noisy(given: object, name: str, number: int) -> tuple[int, ...]:
    what = f"the {name} of different people"
    found = tuple(
        arguments.whole(one, what)
        for one in arguments.items(given, what, "a list of whole numbers")
    )
    if len(found) != number or any(abs(one) > LARGEST_COUNT for one in found):
        raise InputError(f"{what} are {number} numbers, none beyond 2**62, got {len(found)}")
    return found
