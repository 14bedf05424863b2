"""Rows that could not be read, and why. Sensitive: exact counts, for the curator's eyes only.

A row whose place, time or person cannot be read is left out. That is right for a few odd rows, but wrong
if half of a file has dates in an unknown form: then the curator must hear of it before anything is
published. So rows are counted by reason, in one pass over the columns that are used. The counts go to the
curator's screen, and never into a release.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from htf.ingest import expressions as ex
from htf.ingest.columns import Field
from htf.ingest.sources import Source

if TYPE_CHECKING:
    from ibis.expr.types import BooleanValue, Table, Value

EYES_ONLY = (
    "For your eyes only (these are exact facts about the data, which no noise covers: do not publish "
    "them):"
)
LEFT_OUT, WITHOUT_TIME = "left out", "taken to be of one moment"
AS_IN = "2017-09-11T08:30:00+08:00"


class Reason(NamedTuple):
    """A reason why rows could not be read. `rows` says which rows."""

    told: str
    rows: BooleanValue
    fate: str = LEFT_OUT


class Times(NamedTuple):
    """A column of times: whether it is text, and the seconds that were read from it."""

    name: str
    text: bool
    seconds: Value
    places: bool  # whether it gives the place along an axis


def describe_unread(
    opened: Source,
    table: Table,
    fields: Sequence[Field],
    times: Sequence[Times],
    user: str | None,
    weight: str | None = None,
) -> str | None:
    """A note on all rows of the table that could not be read; None if there are none."""
    reasons = [
        *_places(opened, table, fields),
        *_times(table, times),
        *_people(opened, table, user),
        *_weights(opened, table, weight),
    ]
    # A sum over no rows is missing. A row with a missing answer is not counted.
    sums = {f"n{n}": one.rows.fill_null(False).sum() for n, one in enumerate(reasons)}
    counts = opened.engine.run(table.agg(total=table.count(), **sums), opened.name)
    total = int(counts["total"][0])
    numbers = [int(counts[name][0] or 0) if total else 0 for name in sums]
    lines = [
        f"  {number:,} of {total:,} rows {'is' if number == 1 else 'are'} {reason.fate}: {reason.told}."
        for number, reason in zip(numbers, reasons, strict=True)
        if number
    ]
    return "\n".join([EYES_ONLY, *lines]) if lines else None


def _places(opened: Source, table: Table, fields: Sequence[Field]) -> Iterator[Reason]:
    for name in dict.fromkeys(field.column for field in fields if not field.of_time):
        column, plain = table[name], any(f.of_geometry for f in fields if f.column == name)
        empty = _is_empty(column, opened.text)
        yield Reason(f"the column {name!r} is empty there", empty)
        if not plain and not any(f.of_names for f in fields if f.column == name):
            number = ex.as_number(column, name, opened.text)
            yield Reason(
                f"the column {name!r} holds no number there", ~empty & ~ex.is_finite(number)
            )


def _times(table: Table, times: Sequence[Times]) -> Iterator[Reason]:
    for time in times:
        fate = LEFT_OUT if time.places else WITHOUT_TIME
        column, empty = table[time.name], _is_empty(table[time.name], time.text)
        unread = ~empty & time.seconds.isnull()
        number = ex.kinds_of_time(column)["number"] if time.text else ~empty
        yield Reason(f"the column {time.name!r} is empty there", empty, fate)
        yield Reason(
            f"the column {time.name!r} holds no time of the years 1 to 9999 there (if times are numbers: is "
            "--time-unit right?)",
            unread & number,
            fate,
        )
        if time.text:
            words = f"the column {time.name!r} holds no time there that is written as in {AS_IN}"
            yield Reason(words, unread & ~number, fate)


def _people(opened: Source, table: Table, user: str | None) -> Iterator[Reason]:
    if user is not None:
        nobody = ex.as_person(table[user], user, opened.text).isnull()
        yield Reason(f"the column {user!r} names nobody there", nobody)


def _weights(opened: Source, table: Table, weight: str | None) -> Iterator[Reason]:
    if weight is not None:
        column, empty = table[weight], _is_empty(table[weight], opened.text)
        number = ex.as_number(column, weight, opened.text)
        finite = ex.is_finite(number)
        negative = finite & (number < ex.constant(0.0))
        yield Reason(f"the column {weight!r} is empty there", empty)
        yield Reason(f"the column {weight!r} holds no number there", ~empty & ~finite)
        yield Reason(f"the column {weight!r} is negative there", negative)


def _is_empty(column: Value, text: bool) -> BooleanValue:
    empty: BooleanValue = ex.is_blank(column) if text else column.isnull()
    return empty
