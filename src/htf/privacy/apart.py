"""By which columns people, and their days, weeks or months, are told apart. Public: column names and a clock.

What several releases cost one unit adds up only if they mean the same units. A day of UTC and a day that begins twelve hours
later share records, so two releases by days of different clocks cost one day of either more than the sum of their epsilons.
Riders and drivers are different people. So an account of people keeps what its first charge said, and a series what its first
release said; others are refused. Proof: docs/proofs/people.md.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from htf.base import arguments
from htf.errors import InputError

ONE_PERSON, IN_ONE = "one person", "one person in one "  # how names of units of people begin
UNSAID = "{}"  # as it is stored where a program counts by itself and does not say


@dataclass(frozen=True, slots=True)
class ToldApart:
    """By which column people are told apart, and by which clock their days, weeks or months.

    `read_points` notes it. Say it where you count people yourself, so that a budget file can compare it.

    Parameters
    ----------
    user : str, optional
        The column that names people.
    time : str, optional
        The column of times.
    time_unit : str
        The unit of times that are numbers.
    utc_offset : int
        Seconds that are added to times.
    time_format : str, optional
        The form of times that are text.

    Examples
    --------
    >>> import htf
    >>> by_rider = htf.ToldApart("rider")
    >>> htf.RecordsPerPerson([500, 300, 150], told_apart=by_rider).told_apart == by_rider
    True
    """

    user: str | None = None
    time: str | None = None
    time_unit: str = "s"
    utc_offset: int = 0
    time_format: str | None = None

    def __post_init__(self) -> None:
        for name in ("user", "time", "time_format"):
            arguments.optional(arguments.text, getattr(self, name), name)
        arguments.text(self.time_unit, "time_unit")
        whole = arguments.whole(self.utc_offset, "the offset from UTC in seconds (utc_offset)")
        object.__setattr__(self, "utc_offset", whole)

    @property
    def clock(self) -> dict[str, Any]:
        """What says in which period a record lies."""
        if self.time is None:
            return {"time": None}
        clock = {"time": self.time, "time_unit": self.time_unit, "utc_offset": self.utc_offset}
        form = {} if self.time_format is None else {"time_format": self.time_format}
        return clock | form


def check_told_apart(given: object) -> ToldApart | None:
    """Refuse what does not say how people are told apart."""
    remedy = "as in htf.ToldApart('rider')"
    return arguments.optional(arguments.instance, given, ToldApart, "told_apart", remedy)


def as_stored(told: ToldApart | None, unit: str) -> str | None:
    """The part that matters to a unit, as an account keeps it; None for records, which need nothing to be told apart."""
    if not unit.startswith(ONE_PERSON):
        return None
    if told is None or told.user is None:
        return UNSAID
    clock = told.clock if unit.startswith(IN_ONE) else {}
    return json.dumps({"user": told.user, **clock}, sort_keys=True)


def check_alike(one: ToldApart | None, other: ToldApart | None, unit: str, name: str) -> None:
    """Refuse one release of two kinds of units. What does not say how units are told apart goes with everything."""
    kept, given = as_stored(one, unit), as_stored(other, unit)
    if kept != given and UNSAID not in (kept, given):
        raise InputError(
            f"{name} was measured with units told apart {spoken(str(kept), unit)}, and the counts do so "
            f"{spoken(str(given), unit)}: {unit} would be another one, and their epsilons cannot be added. Read both alike"
        )


def is_stored(text: object) -> bool:
    """Whether an account can have kept it."""
    try:
        return text is None or isinstance(json.loads(text), dict)  # type: ignore[arg-type]
    except (TypeError, ValueError, RecursionError):
        return False


def spoken(stored: str, unit: str) -> str:
    """In words."""
    said = json.loads(stored)
    if not said:
        return "in a way that the program which counted them did not say (told_apart)"
    people = f"by the column {said['user']!r}"
    if "time" not in said:
        return people
    offset = said.get("utc_offset", 0)
    sign, minutes = "-" if offset < 0 else "+", abs(offset) // 60
    told = f"{people}, and their {unit.removeprefix(IN_ONE)}s by the column {said['time']!r} at UTC{sign}{minutes // 60:02}:{minutes % 60:02}"
    if offset % 60:
        told += f" and {abs(offset) % 60} s"
    if said.get("time_unit", "s") != "s":
        told += f", where numbers are of the unit {said['time_unit']}"
    if "time_format" in said:
        told += f", in the form {said['time_format']!r}"
    return told


def check_same(kept: str | None, told: ToldApart | None, unit: str, dataset: str) -> None:
    """Refuse a charge that tells units apart in another way than the account."""
    given = as_stored(told, unit)
    if given is None or kept is None or given == kept:
        return
    raise InputError(
        f"{dataset!r} tells people apart {spoken(kept, unit)}, but this charge does so {spoken(given, unit)}: {unit} would be "
        "another one, and their epsilons cannot be added. Give --user, --time, --read time-unit, --read time-format and --read utc-offset as "
        "for the first charge (in Python: told_apart too); or make another budget for these units, under another name: "
        "docs/budget.md says what both together mean. Nothing was charged"
    )
