"""Rows that could not be read, and why. Sensitive: exact counts, for the curator's eyes only.

A row whose place, time or person cannot be read is left out. That is right for a few odd rows, but wrong
if half of a file has dates in an unknown form: then the curator must hear of it before anything is
published. So rows are counted by reason, in one pass over the columns that are used. The counts go to the
curator's screen, and never into a release.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from htf.errors import InputError
from htf.ingest import expressions as ex
from htf.ingest.columns import Field
from htf.ingest.geometry import coordinate
from htf.ingest.reading import COMMA, POINT, Reading
from htf.ingest.sources import ROW, Source
from htf.ingest.text import MOST_NAMED, lines_of
from htf.ingest.time_formats import TimeFormat

if TYPE_CHECKING:
    from ibis.expr.types import BooleanValue, Table, Value

EYES_ONLY = (
    "For your eyes only (these are exact facts about the data, which no noise covers: do not publish "
    "them):"
)
LEFT_OUT, WITHOUT_TIME = "left out", "taken to be of one moment"
MOST_PIECES = 100  # files that are looked through for a row to name
WITH_COMMA = "--read decimal=,"
AS_IN = "2017-09-11T08:30:00+08:00"


class Reason(NamedTuple):
    """A reason why rows could not be read. `rows` says which rows, and `remedy` which option would help if it is
    the reason of most of them."""

    told: str
    rows: BooleanValue
    fate: str = LEFT_OUT
    remedy: str | None = None


class Times(NamedTuple):
    """A column of times: whether it is text, and the seconds that were read from it."""

    name: str
    text: bool
    seconds: Value
    places: bool  # whether it gives the place along an axis


MakeReasons = Callable[["Table"], list[Reason]]


def describe_unread(
    opened: Source, names: Sequence[str], make: MakeReasons, *, refuses: bool
) -> str | None:
    """A note on all rows that could not be read, by the reasons that `make` gives; None if there are none. With
    `refuses`, it is an error if an option would help most rows."""
    table = opened.select(names)
    reasons = make(table)
    counts = opened.engine.run(table.agg(total=table.count(), **sums_of(reasons)), opened.name)
    total = int(counts["total"][0])
    numbers = numbers_of(counts, len(reasons))
    for number, reason in zip(numbers, reasons, strict=True):
        if 2 * number > total and reason.remedy is not None and refuses:
            raise InputError(
                f"most rows cannot be read: {reason.told}. (This message is for your eyes: it is a fact about the "
                "data. To release whatever they hold: --allow-empty)"
            )
    places = places_of(opened, names, make, numbers)
    lines = [
        f"  {number:,} of {total:,} rows {'is' if number == 1 else 'are'} {reason.fate}: {reason.told}"
        f"{where and f'; see {where}'}."
        for number, reason, where in zip(numbers, reasons, places, strict=True)
        if number
    ]
    return "\n".join([EYES_ONLY, *lines]) if lines else None


def sums_of(reasons: Sequence[Reason]) -> dict[str, Any]:
    """Expressions that count the rows of each reason. A row with a missing answer is not counted."""
    return {f"n{n}": one.rows.fill_null(False).sum() for n, one in enumerate(reasons)}


def numbers_of(counts: Mapping[str, Any], reasons: int) -> list[int]:
    """The results of `sums_of`. A sum over no rows is missing."""
    found = np.array([counts[f"n{n}"][0] for n in range(reasons)], dtype=np.float64)
    return [int(one) for one in np.nan_to_num(found)]


def places_of(
    opened: Source, names: Sequence[str], make: MakeReasons, numbers: Sequence[int]
) -> list[str]:
    """Where the first rows of each reason are, by lines of a text file or rows of a Parquet file; empty if there is
    none, or the source has no order."""
    found = [""] * len(numbers)
    for reason, number in enumerate(numbers):
        if number and opened.numbered is not None:
            with suppress(InputError):  # places are a help: they must not decide whether rows count
                found[reason] = _first_places(opened, names, make, reason, number)
    return found


def _first_places(
    opened: Source, names: Sequence[str], make: MakeReasons, reason: int, number: int
) -> str:
    assert opened.numbered is not None
    for piece in opened.pieces[:MOST_PIECES]:
        table = opened.numbered(piece, names)
        if table is None:
            return ""
        rows = table.filter(make(table)[reason].rows.fill_null(False)).select(row=table[ROW])
        first = opened.engine.run(rows.limit(MOST_NAMED), opened.name)
        places = sorted(int(row) for row in first["row"])
        if places:
            places = lines_of(piece, places) if opened.text else places
            word = "line" if opened.text else "row"
            shown = ", ".join(map(str, places)) + (", …" if number > len(places) else "")
            of_file = f" of {Path(piece.name).name}" if len(opened.pieces) > 1 else ""
            return f"{word}{'s' if number > 1 else ''} {shown}{of_file}"
    return ""


def reasons_of(
    opened: Source,
    table: Table,
    fields: Sequence[Field],
    times: Sequence[Times],
    reading: Reading,
) -> list[Reason]:
    """All reasons why a row of the table may not be read."""
    return [
        *_places(opened, table, fields),
        *_times(table, times, reading.form),
        *_people(opened, table, reading.user),
        *_weights(opened, table, reading.weight),
    ]


def _places(opened: Source, table: Table, fields: Sequence[Field]) -> Iterator[Reason]:
    for name in dict.fromkeys(field.column for field in fields if not field.of_time):
        column, of_name = table[name], [field for field in fields if field.column == name]
        is_point = any(field.of_geometry for field in of_name)
        empty = column.isnull() if is_point else _is_empty(column, opened.text)
        yield Reason(f"the column {name!r} is empty there", empty)
        if is_point:
            x = coordinate(column, of_name[0].part, opened.engine.columns_as)
            yield Reason(f"the column {name!r} holds no point there", ~empty & ~ex.is_finite(x))
        elif not any(field.of_names for field in of_name):
            unread = ~empty & ~ex.is_finite(opened.number(table, name))
            if opened.text and opened.decimal == POINT:
                has_comma = ex.is_number(column, COMMA)
                words = f"the column {name!r} holds a number with a decimal comma there"
                yield Reason(
                    f"{words} (to read it: {WITH_COMMA})", unread & has_comma, remedy=WITH_COMMA
                )
                unread = unread & ~has_comma
            yield Reason(f"the column {name!r} holds no number there", unread)


def _times(table: Table, times: Sequence[Times], form: TimeFormat | None) -> Iterator[Reason]:
    for time in times:
        fate = LEFT_OUT if time.places else WITHOUT_TIME
        column, empty = table[time.name], _is_empty(table[time.name], time.text)
        unread = ~empty & time.seconds.isnull()
        number = ex.kinds_of_time(column, form)["number"] if time.text else ~empty
        yield Reason(f"the column {time.name!r} is empty there", empty, fate)
        yield Reason(
            f"the column {time.name!r} holds no time of the years 1 to 9999 there (if times are numbers: is "
            "--read time-unit right?)",
            unread & number,
            fate,
        )
        if time.text:
            as_in = (
                f"{AS_IN} (--read time-format names another form)"
                if form is None
                else repr(form.text)
            )
            words = f"the column {time.name!r} holds no time there that is written as in {as_in}"
            yield Reason(words, unread & ~number, fate)


def _people(opened: Source, table: Table, user: str | None) -> Iterator[Reason]:
    if user is not None:
        nobody = ex.as_person(table[user], user, opened.text).isnull()
        yield Reason(f"the column {user!r} names nobody there", nobody)


def _weights(opened: Source, table: Table, weight: str | None) -> Iterator[Reason]:
    if weight is not None:
        empty = _is_empty(table[weight], opened.text)
        number = opened.number(table, weight)
        finite = ex.is_finite(number)
        negative = finite & (number < ex.constant(0.0))
        yield Reason(f"the column {weight!r} is empty there", empty)
        yield Reason(f"the column {weight!r} holds no number there", ~empty & ~finite)
        yield Reason(f"the column {weight!r} is negative there", negative)


def _is_empty(column: Value, text: bool) -> BooleanValue:
    empty: BooleanValue = ex.is_blank(column) if text else column.isnull()
    return empty
