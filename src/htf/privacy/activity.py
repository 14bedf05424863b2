"""How many people have how many records, found with noise. Public, and part of the release that it led to.

Where records of people are counted and at most K of each are kept, the counts miss the rest. The activity of people,
as a noisy number of people for each class of records and a noisy sum of their records, tells how much that is. Every
person is in one class, so it costs little. Proof: docs/proofs/people.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from htf.base import arguments
from htf.errors import InputError
from htf.privacy.epsilon import Epsilon
from htf.privacy.protection import PERSON, Protection, check_counts_records

# A person with n records is in the first class whose end is at least n.
DOUBLING = tuple(2**power for power in range(20))
PARTS, PARTS_OF_OFFSETS = 5, 1  # of the price: one of five for the offsets, and the rest for people
MOST_PEOPLE = 2**62  # and noise: sums of squares are still finite


def class_ends(most: int) -> tuple[int, ...]:
    """Where the classes of up to `most` records end: at every power of two below it, and at `most`."""
    return (*(end for end in DOUBLING if end < most), most)


def middles(ends: tuple[int, ...]) -> tuple[int, ...]:
    """The middle of each class. A person's offset is their number of records less that of their class."""
    return tuple((before + 1 + end) // 2 for before, end in zip((0, *ends), ends, strict=False))


def split_price(epsilon: Epsilon) -> tuple[Epsilon, Epsilon]:
    """The price of the people and that of the offsets, which add up to this."""
    offsets = Epsilon(epsilon.units * PARTS_OF_OFFSETS // PARTS)
    return epsilon - offsets, offsets


def least_price(most: int) -> Epsilon:
    """The least that an activity costs: offsets have a unit of epsilon for each step, so that noise fits 64 bits."""
    return Epsilon(PARTS * max(1, *reaches(class_ends(most))))


def reaches(ends: tuple[int, ...]) -> tuple[int, ...]:
    """How far an offset may be from 0, for each class. Middles are rounded down, so the end is furthest."""
    return tuple(end - middle for middle, end in zip(middles(ends), ends, strict=True))


def check_kept(kept: int | None, most: int | None) -> None:
    """Refuse to keep more records of a person than the activity counts anybody as having: it could not scale them."""
    if kept is not None and most is not None and kept > most:
        raise InputError(
            f"at most {kept:,} records of each person are kept (--max-records), but the activity counts nobody as having more "
            f"than {most:,} (--most-records): choose a larger --most-records, or keep fewer"
        )


@dataclass(frozen=True, slots=True)
class Activity:
    """How many people have 1, 2, 3 to 4, 5 to 8, … records, found with noise. `measure_activity` makes one.

    The classes end at 1, 2, 4, 8, 16 and so on, and at `most`.

    Attributes
    ----------
    people : tuple of int
        The noisy number of people in each class. It may be negative.
    offsets : tuple of int
        For each class, the noisy sum over its people of their number of records less the middle of the class.
    most : int
        People with more records than this count as having that many. It was chosen without the data.
    epsilon : Epsilon
        What it has cost each person: four fifths for `people`, a fifth for `offsets`.
    noise : str
        Where the noise came from.
    private : bool
        Whether that noise was secret.
    decides : bool
        Whether the number of records kept per person follows from it. If not, the curator chose that number.
    per : {"day", "week", "month"}, optional
        The period, if it counts each person in each such period.
    budget_entry : str, optional
        The entry of the budget file that was charged. It is not in the file of a release.

    Examples
    --------
    >>> import htf
    >>> people = htf.RecordsPerPerson([500, 300, 150, 40, 10])
    >>> activity = htf.measure_activity(people, 0.5, noise="seeded:1")
    >>> len(activity.people), str(activity.epsilon)
    (4, '0.5')
    """

    charged_as: ClassVar[str] = "activity"
    option: ClassVar[str] = "--activity"

    people: tuple[int, ...]
    offsets: tuple[int, ...]
    most: int
    epsilon: Epsilon  # for one person
    noise: str
    private: bool
    decides: bool = False
    per: str | None = None  # each person was counted in each such period
    budget_entry: str | None = field(default=None, compare=False)  # not in the file of a release

    def __post_init__(self) -> None:
        most = arguments.whole(self.most, "the most records of an activity")
        Protection(PERSON, most)
        object.__setattr__(self, "most", most)
        self._check_numbers("people")
        self._check_numbers("offsets")
        arguments.instance(self.epsilon, Epsilon, "the epsilon of an activity", "see Epsilon.of")
        if self.epsilon.units <= 0:
            raise InputError("the epsilon of an activity must be positive")
        arguments.text(self.noise, "the noise of an activity")
        for name in ("private", "decides"):
            arguments.flag(getattr(self, name), name)
        Protection(PERSON, per=self.per)
        if self.budget_entry is not None:
            arguments.text(self.budget_entry, "the budget entry of an activity")

    def _check_numbers(self, name: str) -> None:
        given = arguments.items(
            getattr(self, name), f"the {name} of an activity", "a list of whole numbers"
        )
        numbers = tuple(arguments.whole(one, f"the {name} of an activity") for one in given)
        if len(numbers) != len(self.ends) or any(abs(one) > MOST_PEOPLE for one in numbers):
            raise InputError(
                f"an activity has a number of {name} for each of {len(self.ends)} classes, none beyond 2**62, "
                f"got {len(numbers)} numbers"
            )
        object.__setattr__(self, name, numbers)

    @property
    def ends(self) -> tuple[int, ...]:
        """The largest number of records in each class."""
        return class_ends(self.most)

    @property
    def middles(self) -> tuple[int, ...]:
        """The middle of each class, which offsets are from."""
        return middles(self.ends)

    @property
    def reaches(self) -> tuple[int, ...]:
        """How far an offset may be from 0, for each class."""
        return reaches(self.ends)

    @property
    def prices(self) -> tuple[Epsilon, Epsilon]:
        """What the people and their offsets have cost. They add up to all of it."""
        return split_price(self.epsilon)

    def check_fits(self, protection: Protection) -> None:
        """Refuse a release that does not count records of the same unit.

        Parameters
        ----------
        protection : Protection
            What the release protects and counts.

        Raises
        ------
        InputError
            If it counts something else, or protects people in other periods.

        Examples
        --------
        >>> activity.check_fits(htf.Protection("person", max_records=3))
        """
        check_counts_records("the activity of people", protection, self.per)
        if protection.weight is not None:
            raise InputError(
                "the activity of people scales counts of records, and says nothing of their weights: leave it out, or the "
                "weight"
            )
        check_kept(protection.max_records, self.most)

    def to_dict(self) -> dict[str, Any]:
        """Describe the activity with plain values, for JSON.

        Returns
        -------
        dict
            What `from_dict` takes.

        Examples
        --------
        >>> activity.to_dict()["epsilon"]
        '0.5'
        """
        return {
            "people": list(self.people),
            "offsets": list(self.offsets),
            "most": self.most,
            "epsilon": str(self.epsilon),
            "noise": self.noise,
            "private": self.private,
            "decides": self.decides,
            "per": self.per,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Activity:
        """Make an activity from what `to_dict` gave.

        Parameters
        ----------
        data : mapping
            All fields by name, except the budget entry.

        Returns
        -------
        Activity
            The activity.

        Raises
        ------
        InputError
            If something is missing or wrong.

        Examples
        --------
        >>> htf.Activity.from_dict(activity.to_dict()) == activity
        True
        """
        names = [one.name for one in fields(cls) if one.name != "budget_entry"]
        known = arguments.fields(data, "an activity", names)
        return cls(**{**known, "epsilon": Epsilon.of(known["epsilon"])})
