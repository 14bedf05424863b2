"""What epsilon protects, and what is counted. Public: it travels from the matrix to the release.

The unit is one record, one person, or one person in one day, week or month. A person is counted in one of two
ways. Either at most `max_records` of their records are kept, and records are counted. Or the person counts once,
divided into `shares` that are split across all their records, and what is counted are split people. In both cases
one unit holds at most `most_shares` of what is counted, and each of these may cost epsilon divided by that number.

Split people are not different people, of whom everyone counts once in every place where they were. The words for both
are made here, by `split_people` and `different_people`, and every output takes them from here.

A record may have a weight, such as a number of passengers. It then counts that many times, at most `max_weight`, and
what is published is the sum of the weights. Proof: docs/proofs/weights.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from htf.base import arguments
from htf.errors import InputError
from htf.privacy.epsilon import Epsilon

if TYPE_CHECKING:
    from htf.privacy.purchase import Purchase

RECORD, PERSON = "record", "person"
RECORDS, PEOPLE = "records", "people"
COUNTED = (RECORDS, PEOPLE)
SPLIT, DIFFERENT = "split ", "different "  # before people, wherever they are counted
SUM_OF = "sum of "  # before the name of a column of weights
NO_WEIGHT_ONCE = (
    "once per hour, day or ever keeps one of several records, but their weights may differ: leave out --once-per or "
    "--weight (in Python: once_per, weight), or add them up in a query"
)
PERIODS = ("day", "week", "month")
ONCE_PER = ("hour", "day", "all")
SHARES_OF_A_PERSON = 256  # chosen by measurement: docs/decisions/0015-counting-people.md
MOST_SHARES = 2**20
MOST_RECORDS_OF_A_PERSON = 2**20
LONGEST_WEIGHT = 100  # characters of the name of a column of weights
MOST_WEIGHT = 2**20  # of a record, and of all records kept of a person together


@dataclass(frozen=True, slots=True)
class Protection:
    """The unit that a guarantee is for, what is counted, and how much of it one unit can hold.

    Parameters
    ----------
    unit : {"record", "person"}
        What one epsilon protects.
    max_records : int
        How many records were kept of each unit. 1 where split people are counted.
    once_per : {"hour", "day", "all"}, optional
        Of each person, cell and time slot, at most one record was kept.
    of_query : bool
        Whether the records are the rows of the result of a query or view.
    count : {"records", "people"}
        What is counted; `people` stands for split people: each counts once in total, split across all their records.
    per : {"day", "week", "month"}, optional
        The unit is one person in one such period, and everything above is for each period.
    shares : int
        How many equal shares one counted record or person is divided into.
    weight : str, optional
        What a record counts by, such as `passengers`: the name of the column of weights. Sums of it are counted.
    max_weight : int
        How often a record counts, at most. 1 without a weight.

    Raises
    ------
    InputError
        If the values do not go together.

    Examples
    --------
    >>> import htf
    >>> protection = htf.Protection("person", max_records=20)
    >>> protection.spoken
    'one person, at most 20 records each'
    >>> htf.Protection("person", count="people", shares=256, per="day").spoken
    'one person in one day, counted once and split across their records'
    >>> htf.Protection(weight="passengers", max_weight=6).told
    'sum of passengers, at most 6 per record'
    """

    unit: str = RECORD
    max_records: int = 1  # kept of each unit
    once_per: str | None = None  # of each person, cell and time slot at most one record was kept
    of_query: bool = False  # the records are the rows of a query's or view's result
    count: str = RECORDS
    per: str | None = None  # the unit is one person in one such period
    shares: int = 1  # that one counted record or person is divided into
    weight: str | None = None  # the column that says how often a record counts
    max_weight: int = 1  # how often it counts, at most

    def __post_init__(self) -> None:
        arguments.choice(self.unit, (RECORD, PERSON), "the unit")
        arguments.choice(self.count, COUNTED, "what is counted")
        self._check_whole(
            "max_records", MOST_RECORDS_OF_A_PERSON, "the number of records kept per person"
        )
        self._check_whole("shares", MOST_SHARES, "the number of shares of one person")
        arguments.optional(arguments.choice, self.once_per, ONCE_PER, "once_per")
        arguments.optional(arguments.choice, self.per, PERIODS, "the period (per)")
        arguments.flag(self.of_query, "of_query")
        arguments.optional(check_weight, self.weight)
        self._check_whole("max_weight", MOST_WEIGHT, "the largest weight of a record")
        self._check_together()

    def _check_whole(self, name: str, most: int, what: str) -> None:
        number = arguments.whole(getattr(self, name), f"{what} ({name})")
        if not 1 <= number <= most:
            raise InputError(f"{what} must be a whole number between 1 and {most}, got {number}")
        object.__setattr__(self, name, number)

    def _check_together(self) -> None:
        if self.unit == RECORD and (self.max_records != 1 or self.once_per is not None):
            raise InputError("records are limited per person, but no column names the person")
        if self.unit == RECORD and (self.count == PEOPLE or self.per is not None):
            raise InputError("split people are counted, but no column names the person")
        if self.count == PEOPLE and self.max_records != 1:
            raise InputError(
                "where split people are counted, all of their records count: leave out the number of records kept "
                f"per person (max_records), which is {self.max_records}"
            )
        if self.count == RECORDS and self.shares != 1:
            raise InputError(
                f"records are counted whole, not in {self.shares} shares: only split people have shares"
            )
        self._check_weight()

    def _check_weight(self) -> None:
        if self.weight is None:
            if self.max_weight != 1:
                raise InputError(
                    f"a largest weight of {self.max_weight} (max_weight) needs the column of weights (weight)"
                )
            return
        if self.once_per is not None:
            raise InputError(NO_WEIGHT_ONCE)
        if self.most_shares > MOST_WEIGHT:
            what, remedy = f"{self.max_records} records per person (max_records)", "keep fewer, or "
            if self.count == PEOPLE:
                what, remedy = f"{self.shares} shares of a person", ""
            raise InputError(
                f"{what} with weights up to {self.max_weight} (max_weight) are more than {MOST_WEIGHT} together: "
                f"{remedy}lower the largest weight"
            )

    @property
    def most_records(self) -> int:
        """How many records, or shares, one unit has at most, whatever they weigh."""
        return self.max_records * self.shares

    @property
    def most_shares(self) -> int:
        """The most that one unit can hold of what the matrix counts."""
        return self.most_records * self.max_weight

    @property
    def piece(self) -> str:
        """The smallest thing that is counted, in the singular: what noise is drawn for."""
        if self.weight is not None:
            of_share = "share of a " if self.count == PEOPLE else ""
            return f"{of_share}unit of {self.weight}"
        return RECORD if self.count == RECORDS else "share"

    @property
    def pieces(self) -> str:
        """The same in the plural."""
        first, of, rest = self.piece.partition(" of ")
        return f"{first}s{of}{rest}"

    @property
    def name(self) -> str:
        """As statements and budget files call the unit."""
        return f"one {self.unit}" + (f" in one {self.per}" if self.per else "")

    @property
    def spoken(self) -> str:
        """The unit with its bound, for tables."""
        weighing = "" if self.weight is None else f", {self.weight} up to {self.max_weight}"
        if self.unit == RECORD:
            return f"{self.name}{weighing}"
        each = " per record" if weighing else ""
        if self.count == PEOPLE:
            return f"{self.name}, counted once and split across their records{weighing}{each}"
        records = "record" if self.max_records == 1 else "records"
        return f"{self.name}, at most {self.max_records} {records} each{weighing}{each}"

    @property
    def quantity(self) -> str:
        """What counts are numbers of, in the plural."""
        of_people = split_people(self.per) if self.count == PEOPLE else ""
        if self.weight is not None:
            return f"{SUM_OF}{self.weight}" + (f" of {of_people}" if of_people else "")
        return of_people or RECORDS

    @property
    def told(self) -> str:
        """The quantity with its bound, to stand beside numbers."""
        if self.weight is None and (self.count == PEOPLE or self.unit == RECORD):
            return self.quantity
        in_each = "" if self.per is None else f" and {self.per}"
        kept = f"at most {self.max_records:,} per person{in_each}"
        if self.weight is None:
            return f"{RECORDS}, {kept}"
        each = f"{self.quantity}, at most {self.max_weight:,} per record"
        if self.unit == RECORD or self.count == PEOPLE:
            return each
        records = "record" if self.max_records == 1 else "records"
        return f"{each} and {self.max_records:,} {records} per person{in_each}"

    def to_dict(self) -> dict[str, Any]:
        """Describe the protection with plain values, for JSON.

        Returns
        -------
        dict
            What `from_dict` takes.

        Examples
        --------
        >>> protection.to_dict()["max_records"]
        20
        """
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Protection:
        """Make a protection from what `to_dict` gave.

        Parameters
        ----------
        data : mapping
            All fields by name.

        Returns
        -------
        Protection
            The unit and its bound.

        Raises
        ------
        InputError
            If something is missing or wrong.

        Examples
        --------
        >>> htf.Protection.from_dict(protection.to_dict()) == protection
        True
        """
        given = arguments.mapping(data, "what is protected", "a dictionary")
        names = [field.name for field in fields(cls)]
        return cls(**arguments.fields(given, "what is protected", names))


def check_weight(name: object) -> str:
    """The name of a column of weights, which stands beside every number of the release."""
    given = arguments.text(name, "the column of weights (weight)")
    if not arguments.is_name(given, LONGEST_WEIGHT):
        raise InputError(
            f"the column of weights stands beside every number, so its name has 1 to {LONGEST_WEIGHT} printable characters "
            f"and no blanks around it, got {arguments.described(name)}: rename it, or give it a name in a query (--read sql)"
        )
    return given


def split_people(per: str | None = None) -> str:
    """What is counted where everyone counts once in all, or once in each period, split across their records."""
    return SPLIT + _people(per)


def different_people(per: str | None = None) -> str:
    """What is counted where everyone counts once, or once in each period, in every place where they were."""
    return DIFFERENT + _people(per)


def _people(per: str | None) -> str:
    return PEOPLE if per is None else f"{PERSON}-{per}s"


def explain_people(quantity: str, place: str = "a box", places: str = "boxes") -> str:
    """What a number of split or of different people means, where there is room for it; empty for records and sums."""
    if not quantity.startswith((SPLIT, DIFFERENT)):
        return ""
    kind, _, people = quantity.partition(" ")
    name = f"{kind} {people}".capitalize()
    period = people.removeprefix(f"{PERSON}-").removesuffix("s")
    per = "" if people == PEOPLE else f" in each {period}"
    if quantity.startswith(SPLIT):
        return (
            f"{name}: each person counts once{per} on the whole map, split across their records. A place with many "
            f"{DIFFERENT}{people} may show far fewer {quantity}."
        )
    return (
        f"{name}: each person counts once{per} in every {place.rsplit(maxsplit=1)[-1]} where they were. {places.capitalize()} do not add up: somebody who was in two "
        "of them counts in both."
    )


def check_counts_records(what: str, protection: Protection, per: str | None) -> None:
    """Refuse what is about records of people, where something else is counted, or another unit is protected.

    What was measured for a person in one day has cost someone with records in k days k times its epsilon.
    """
    arguments.instance(protection, Protection, "protection", "see htf.Protection")
    if protection.unit != PERSON or protection.count != RECORDS:
        raise InputError(
            f"{what} needs records of people, but here the unit is {protection.name}, and {protection.quantity} are "
            "counted: leave it out"
        )
    measured = Protection(PERSON, per=per).name
    if measured != protection.name:
        raise InputError(
            f"{what} was measured for {measured}, but the unit of the release is {protection.name}, and their epsilons "
            "cannot be added: measure it for the same unit (per)"
        )


def price_of_bought(*bought: Purchase) -> Epsilon:
    """What was spent before the map; nothing, where nothing was bought."""
    return sum((one.epsilon for one in bought), Epsilon(0))


def price_of_map(epsilon: Epsilon, *bought: Purchase) -> Epsilon:
    """What a total of `epsilon` leaves for the map after paying for what was bought before it."""
    cost = price_of_bought(*bought)
    if cost >= epsilon:
        what = " and ".join(one.name for one in bought)
        raise InputError(
            f"what was measured before the map ({what}) cost {cost}, which is part of the epsilon of the "
            f"release: {epsilon} leaves nothing for the map"
        )
    return epsilon - cost


def epsilon_per_share(epsilon: Epsilon, protection: Protection, *bought: Purchase) -> Epsilon:
    """What measurements may cost each counted record or share of a person, so that each unit loses at most
    `epsilon` in all.

    Proof: docs/proofs/people.md
    """
    for one in bought:
        one.check_fits(protection)
    price = price_of_map(epsilon, *bought)
    share = price // protection.most_shares
    if share.units == 0:
        raise InputError(
            f"epsilon {price} over {protection.most_shares} {protection.pieces} per {protection.unit} is less than 1e-15 each, the smallest "
            "epsilon: keep fewer, or spend more"
        )
    return share


OF_RECORDS = Protection()
