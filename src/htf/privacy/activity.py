"""How many people have how many records, found with noise. Public, and part of the release that it led to.

Where records of people are counted and at most K of each are kept, the counts miss the rest. The activity of people,
as a noisy number of people for each class of records, tells how much that is. Every person is in one class, so it
costs little. Proof: docs/proofs/people.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from htf.base import arguments
from htf.errors import InputError
from htf.privacy.epsilon import Epsilon
from htf.privacy.protection import PERSON, Protection, check_counts_records

# A person with n records is in the first class whose end is at least n; with more than all, in the last. Classes
# are wider where few people are, since each has the same noise.
CLASS_ENDS = (*(2**power for power in range(7)), *(4**power for power in range(4, 11)))
MOST_PEOPLE = 2**62  # and noise: sums of squares are still finite


@dataclass(frozen=True, slots=True)
class Activity:
    """How many people have 1, 2, 3 to 4, 5 to 8, … records, found with noise. `measure_activity` makes one.

    The classes end at 1, 2, 4, 8, 16, 32, 64, 256, 1024 and so on, up to 2**20.

    Attributes
    ----------
    people : tuple of int
        The noisy number of people in each class. It may be negative.
    epsilon : Epsilon
        What it has cost each person.
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
    (14, '0.5')
    """

    charged_as: ClassVar[str] = "activity"
    option: ClassVar[str] = "--activity"

    people: tuple[int, ...]
    epsilon: Epsilon  # for one person
    noise: str
    private: bool
    decides: bool = False
    per: str | None = None  # each person was counted in each such period
    budget_entry: str | None = field(default=None, compare=False)  # not in the file of a release

    def __post_init__(self) -> None:
        given = arguments.items(self.people, "the people of an activity", "a list of whole numbers")
        people = tuple(arguments.whole(one, "the people of an activity") for one in given)
        if len(people) != len(CLASS_ENDS) or any(abs(one) > MOST_PEOPLE for one in people):
            raise InputError(
                f"an activity has a number of people for each of {len(CLASS_ENDS)} classes, none beyond 2**62, "
                f"got {len(people)} numbers"
            )
        object.__setattr__(self, "people", people)
        arguments.instance(self.epsilon, Epsilon, "the epsilon of an activity", "see Epsilon.of")
        if self.epsilon.units <= 0:
            raise InputError("the epsilon of an activity must be positive")
        arguments.text(self.noise, "the noise of an activity")
        for name in ("private", "decides"):
            arguments.flag(getattr(self, name), name)
        Protection(PERSON, per=self.per)
        if self.budget_entry is not None:
            arguments.text(self.budget_entry, "the budget entry of an activity")

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
        names = [field.name for field in fields(cls) if field.name != "budget_entry"]
        known = arguments.fields(data, "an activity", names)
        return cls(**{**known, "epsilon": Epsilon.of(known["epsilon"])})
