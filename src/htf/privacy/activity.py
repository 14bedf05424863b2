"""How many people have how many records, found with noise. Public, and part of the release that it led to.

Where records of people are counted and at most K of each are kept, the counts miss the rest. The activity of people,
as a noisy number of people near each of a few marks, tells how much that is. Someone whose number of records lies
between two marks is split between both, in proportion, so sums over marks tell the number of people *and* of their
records, and everyone still counts once. Proof: docs/proofs/people.md.

Where records have weights, someone counts as having as many units as their records weigh together (docs/proofs/weights.md).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from htf.base import arguments
from htf.errors import InputError
from htf.privacy.apart import ToldApart
from htf.privacy.epsilon import Epsilon
from htf.privacy.protection import PERSON, RECORDS, Protection, check_counts_records
from htf.privacy.purchase import IF_GIVEN, FromCurator, Rows

if TYPE_CHECKING:
    from htf.release.release import Release

# Marks up to 64. Above, they are four times as far.
DOUBLING = tuple(2**power for power in range(7))
QUARTER = 4
PARTS = 4096  # of a person, of which each of two marks gets some
LEAST_PRICE = Epsilon(PARTS)  # a unit of epsilon for each part, so that noise fits 64 bits
MOST_PEOPLE = 2**62  # and noise: sums of squares are still finite

SCALED = (
    "How many people have how many records was measured with noise first, for {price} of the epsilon of {epsilon}.{decides} "
    "By that, counts were multiplied by {factor}, so that they are of all records and not only of those kept. The "
    "intervals include the error of this: that of the total, and that people with many records may be in other places "
    "than the rest."
)
AT_MOST = (
    " Someone with more than {most:,} {things} counts as having {most:,}. Noise may hide a few people with that many, so "
    "intervals reach further up than down."
)
SCALED_SUMS = (
    "How many people have how much {weight} in all their records was measured with noise first, for {price} of the epsilon "
    "of {epsilon}.{decides} By that, sums were multiplied by {factor}, so that they are of all records and not only of those "
    "kept. The intervals include the error of this: that of the total, and that people with many records may be in other "
    "places than the rest."
)
DECIDES = " The number of records to keep per person follows from it."


def marks(most: int) -> tuple[int, ...]:
    """The marks for people with up to `most` records: `most`, quarters of it, and from 64 down powers of two."""
    wide, end = [most], -(-most // QUARTER)
    while end > DOUBLING[-1]:
        wide.insert(0, end)
        end = -(-end // QUARTER)
    # None is so near to the next that noise at both would buy little.
    return (*(mark for mark in DOUBLING if 4 * mark <= 3 * wide[0]), *wide)


def check_kept(kept: int | None, most: int | None) -> None:
    """Refuse to keep more records of a person than the activity counts anybody as having: it could not scale them."""
    if kept is not None and most is not None and kept > most:
        raise InputError(
            f"at most {kept:,} records of each person are kept (--max-records), but the activity counts nobody as having more "
            f"than {most:,} (--most-records): choose a larger --most-records, or keep fewer"
        )


@dataclass(frozen=True, slots=True)
class Activity(FromCurator):
    """How many people have about 1, 2, 4, 8, … records, found with noise. `measure_activity` makes one.

    Someone with 5 records counts three quarters at the mark 4, and a quarter at the mark 8. The last mark is `most`.

    Attributes
    ----------
    people : tuple of int
        The noisy number of people at each mark, in parts of a person (`PARTS`). It may be negative.
    most : int
        People with more records than this count as having that many. It was chosen without the data.
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
    told_apart : ToldApart, optional
        By which columns people were told apart, as far as it is known. It is not in the file of a release.
    weight : str, optional
        The column of weights, if records count by one. Then marks are numbers of units of it, and so is `most`.
    max_weight : int
        How often a record counts, at most.

    Examples
    --------
    >>> import htf
    >>> people = htf.RecordsPerPerson([500, 300, 150, 40, 10])
    >>> activity = htf.measure_activity(people, 0.5, noise="seeded:1")
    >>> len(activity.counted), str(activity.epsilon)
    (3, '0.5')
    """

    kind: ClassVar[str] = "activity"
    name: ClassVar[str] = "the activity of people"
    words: ClassVar[tuple[str, ...]] = (SCALED, SCALED_SUMS, AT_MOST, DECIDES)

    people: tuple[int, ...]
    most: int
    epsilon: Epsilon  # for one person
    noise: str
    private: bool
    decides: bool = False
    per: str | None = None  # each person was counted in each such period
    budget_entry: str | None = field(default=None, compare=False)  # not in the file of a release
    told_apart: ToldApart | None = field(default=None, compare=False)  # nor is this
    weight: str | None = field(default=None, metadata=IF_GIVEN)
    max_weight: int = field(default=1, metadata=IF_GIVEN)

    def __post_init__(self) -> None:
        most = arguments.whole(self.most, "the most records of an activity")
        Protection(PERSON, most)
        object.__setattr__(self, "most", most)
        self._check_people()
        self._check_paid()
        Protection(weight=self.weight, max_weight=self.max_weight)
        arguments.flag(self.decides, "decides")
        Protection(PERSON, per=self.per)

    def _check_people(self) -> None:
        given = arguments.items(self.people, "the people of an activity", "a list of whole numbers")
        numbers = tuple(arguments.whole(one, "the people of an activity") for one in given)
        if len(numbers) != len(self.ends) or any(abs(one) > MOST_PEOPLE for one in numbers):
            raise InputError(
                f"an activity has a number of people for each of {len(self.ends)} marks, none beyond 2**62, "
                f"got {len(numbers)} numbers"
            )
        object.__setattr__(self, "people", numbers)

    @property
    def ends(self) -> tuple[int, ...]:
        """The marks."""
        return marks(self.most)

    @property
    def counted(self) -> tuple[float, ...]:
        """The noisy number of people at each mark, in people."""
        return tuple(one / PARTS for one in self.people)

    @property
    def things(self) -> str:
        """What people have: records, or units of a weight."""
        return RECORDS if self.weight is None else f"units of {self.weight}"

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
        if (protection.weight, protection.max_weight) != (self.weight, self.max_weight):
            raise InputError(
                f"the activity of people was measured for {self.things}, but the release counts {protection.told}: measure "
                "it with the same weight and limit (weight, max_weight), or leave it out"
            )
        check_kept(protection.max_records, self.most // self.max_weight)

    def sentences(self, release: Release) -> list[str]:
        """What the statement says of it."""
        scaled = (SCALED if self.weight is None else SCALED_SUMS).format(
            price=self.epsilon,
            epsilon=release.epsilon,
            decides=DECIDES if self.decides else "",
            factor=f"{release.factor:.4g}",
            weight=self.weight,
        )
        return [scaled + AT_MOST.format(most=self.most, things=self.things)]

    def rows(self, release: Release) -> Rows:
        """The noisy numbers of people, for people."""
        title = (
            f"Activity, for epsilon {self.epsilon}; counts are multiplied by {release.factor:.4g}"
        )
        rows = [
            (f"about {end:,}", f"{people:,.0f}")
            for end, people in zip(self.ends, self.counted, strict=True)
        ]
        return Rows(title, (f"{self.things} of a person", ">people, with noise"), rows)
