"""What epsilon protects. Public: it travels from the matrix to the release.

The unit is one record, or one person with at most `max_records` kept records. The measurements of each
record may then cost epsilon divided by that number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from fractions import Fraction
from typing import Any

from htf.base import arguments, numerals
from htf.errors import InputError
from htf.privacy.epsilon import Epsilon

RECORD, PERSON = "record", "person"
ONCE_PER = ("hour", "day", "all")
MOST_RECORDS_OF_A_PERSON = 2**20


@dataclass(frozen=True, slots=True)
class Protection:
    """The unit that a guarantee is for, and how the records were bounded to give it.

    Parameters
    ----------
    unit : {"record", "person"}
        What one epsilon protects.
    max_records : int
        How many records were kept of each unit.
    once_per : {"hour", "day", "all"}, optional
        Of each person, cell and time slot, at most one record was kept.
    of_query : bool
        Whether the records are the rows of the result of a query or view.

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
    """

    unit: str = RECORD
    max_records: int = 1  # kept of each unit
    once_per: str | None = None  # of each person, cell and time slot at most one record was kept
    of_query: bool = False  # the records are the rows of a query's or view's result

    def __post_init__(self) -> None:
        arguments.choice(self.unit, (RECORD, PERSON), "the unit")
        most = arguments.whole(
            self.max_records, "the number of records kept per person (max_records)"
        )
        if not 1 <= most <= MOST_RECORDS_OF_A_PERSON:
            raise InputError(
                "the number of records kept per person must be a whole number between 1 and "
                f"{MOST_RECORDS_OF_A_PERSON}, got {most}"
            )
        object.__setattr__(self, "max_records", most)
        if self.once_per is not None:
            arguments.choice(self.once_per, ONCE_PER, "once_per")
        arguments.flag(self.of_query, "of_query")
        if self.unit == RECORD and (self.max_records != 1 or self.once_per is not None):
            raise InputError("records are limited per person, but no column names the person")

    @property
    def name(self) -> str:
        """As statements and budget files call the unit."""
        return f"one {self.unit}"

    @property
    def spoken(self) -> str:
        """The unit with its bound, for tables."""
        if self.unit == RECORD:
            return self.name
        records = "record" if self.max_records == 1 else "records"
        return f"{self.name}, at most {self.max_records} {records} each"

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
        names = [field.name for field in fields(cls)]
        return cls(**arguments.fields(data, "what is protected", names))


@dataclass(frozen=True, slots=True)
class Suggestion:
    """How many records of each person to keep, found with noise. `suggest_max_records` makes one.

    Attributes
    ----------
    max_records : int
        The suggested number.
    quantile : Fraction
        The share of people who are to lose no record.
    most : int
        The number was chosen from 1 to this, which is public.
    epsilon : Epsilon
        What the suggestion has cost each person.
    noise : str
        Where the noise came from.
    private : bool
        Whether that noise was secret.
    budget_entry : str, optional
        The entry of the budget file that was charged. It is not in the file of a release.

    Examples
    --------
    >>> import htf
    >>> people = htf.RecordsPerPerson([500, 300, 150, 40, 10])
    >>> suggestion = htf.suggest_max_records(people, 0.5, noise="seeded:1")
    >>> suggestion.max_records
    3
    """

    max_records: int
    quantile: Fraction  # the share of people who are to lose nothing
    most: int  # it was chosen from 1 to this, which is public
    epsilon: Epsilon  # for one person
    noise: str
    private: bool
    budget_entry: str | None = field(default=None, compare=False)  # not in the file of a release

    def __post_init__(self) -> None:
        Protection(PERSON, self.most)
        most = arguments.whole(self.max_records, "the suggested number of records")
        share = arguments.instance(self.quantile, Fraction, "the quantile of a suggestion")
        arguments.instance(self.epsilon, Epsilon, "the epsilon of a suggestion", "see Epsilon.of")
        arguments.text(self.noise, "the noise of a suggestion")
        arguments.flag(self.private, "private")
        if self.budget_entry is not None:
            arguments.text(self.budget_entry, "the budget entry of a suggestion")
        if not (1 <= most <= self.most and 0 < share < 1):
            raise InputError(f"a suggestion lies between 1 and {self.most}, at a share below 1")

    def to_dict(self) -> dict[str, Any]:
        """Describe the suggestion with plain values, for JSON.

        Returns
        -------
        dict
            What `from_dict` takes.

        Examples
        --------
        >>> suggestion.to_dict()["quantile"]
        '9/10'
        """
        return {
            "max_records": self.max_records,
            "quantile": str(self.quantile),
            "most": self.most,
            "epsilon": str(self.epsilon),
            "noise": self.noise,
            "private": self.private,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Suggestion:
        """Make a suggestion from what `to_dict` gave.

        Parameters
        ----------
        data : mapping
            All fields by name, except the budget entry.

        Returns
        -------
        Suggestion
            The suggestion.

        Raises
        ------
        InputError
            If something is missing or wrong.

        Examples
        --------
        >>> htf.Suggestion.from_dict(suggestion.to_dict()) == suggestion
        True
        """
        names = [field.name for field in fields(cls) if field.name != "budget_entry"]
        known = arguments.fields(data, "a suggestion", names)
        try:
            share = numerals.fraction(arguments.text(known["quantile"], "the quantile"))
        except ValueError:
            raise arguments.unfit("the quantile", "a fraction", known["quantile"]) from None
        return cls(**{**known, "quantile": share, "epsilon": Epsilon.of(known["epsilon"])})


def suggested_at(suggestion: Suggestion | None) -> Epsilon:
    """What was spent on a suggestion; nothing, where there is none."""
    return Epsilon(0) if suggestion is None else suggestion.epsilon


def price_of_records(epsilon: Epsilon, suggestion: Suggestion | None) -> Epsilon:
    """What a total of `epsilon` leaves for the records after paying for a suggestion."""
    cost = suggested_at(suggestion)
    if cost >= epsilon:
        raise InputError(
            f"the suggestion cost {cost}, which is part of the epsilon of the release: {epsilon} leaves "
            "nothing for the records"
        )
    return epsilon - cost


def epsilon_per_record(
    epsilon: Epsilon, protection: Protection, suggestion: Suggestion | None = None
) -> Epsilon:
    """What measurements may cost each record, so that each unit loses at most `epsilon` in all.

    Proof: docs/proofs/people.md
    """
    if suggestion is not None and protection.unit != PERSON:
        raise InputError(
            f"a suggested number of records per person needs person-level data, but the unit here is "
            f"{protection.name}: leave the suggestion out"
        )
    price = price_of_records(epsilon, suggestion)
    share = price // protection.max_records
    if share.units == 0:
        raise InputError(
            f"epsilon {price} over {protection.max_records} records per person is less than 1e-15 per "
            "record, the smallest epsilon: keep fewer records, or spend more"
        )
    return share


OF_RECORDS = Protection()
