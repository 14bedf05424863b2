"""What one epsilon protects. Public: it travels from the matrix to the release.

The unit is one record; or one person, of whom at most `max_records` records were kept, so that all
that is asked of a record may cost the epsilon divided by that number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from htf.errors import InputError

RECORD, PERSON = "record", "person"
ONCE_PER = ("hour", "day", "all")
MOST_RECORDS_OF_A_PERSON = 2**20


@dataclass(frozen=True, slots=True)
class Protection:
    """The unit that a guarantee is for, and how the records were bounded to give it."""

    unit: str = RECORD
    max_records: int = 1  # kept of each unit
    once_per: str | None = None  # of each person, cell and time slot at most one record was kept
    of_query: bool = False  # the records are the rows of a query's or view's result

    def __post_init__(self) -> None:
        if self.unit not in (RECORD, PERSON):
            raise InputError(f"the unit must be {RECORD} or {PERSON}, got {self.unit!r}")
        if type(self.max_records) is not int or not (
            1 <= self.max_records <= MOST_RECORDS_OF_A_PERSON
        ):
            raise InputError(
                "the most records of a person must be a whole number between 1 and "
                f"{MOST_RECORDS_OF_A_PERSON}, got {self.max_records!r}"
            )
        if self.once_per not in (None, *ONCE_PER):
            raise InputError(f"once per what? One of {', '.join(ONCE_PER)}, got {self.once_per!r}")
        if self.unit == RECORD and (self.max_records != 1 or self.once_per is not None):
            raise InputError("records are bounded for each person, and none was named")

    @property
    def name(self) -> str:
        """As statements and budget files call the unit."""
        return f"one {self.unit}"

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Protection:
        return cls(**data)


OF_RECORDS = Protection()
