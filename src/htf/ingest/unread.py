"""Rows that could not be read, and why. Sensitive: exact counts, for the curator's eyes only.

A row whose place, time or person cannot be read is left out. That is right for a few odd rows, but wrong
if half of a file has dates in an unknown form: then the curator must hear of it before anything is
published. So rows are counted by reason, in one pass over the columns that are used. The counts go to the
curator's screen, and never into a release.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from ibis.expr.types import BooleanValue, Table, Value

from htf.errors import InputError
from htf.ingest import expressions as ex
from htf.ingest.geometry import coordinate
from htf.ingest.reading import COMMA, POINT, Reading
from htf.ingest.rows import Rows
from htf.ingest.sources import ROW
from htf.ingest.text import MOST_NAMED, lines_of
from htf.privacy.protection import PEOPLE

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


class Unread(NamedTuple):
    """The rows of a source that cannot be read: their number by reason, and that of all rows."""

    total: int
    by_reason: list[tuple[int, Reason]]  # all reasons, in their order

    @property
    def of_most(self) -> list[Reason]:
        """The reasons why most rows cannot be read."""
        return [reason for number, reason in self.by_reason if 2 * number > self.total]


def count_unread(rows: Rows, most: int | None = None) -> Unread:
    """Why rows cannot be read, or the first of them."""
    table = rows.table(most)
    reasons = reasons_of(rows, table)
    # A row with a missing answer is not counted, and a sum over no rows is missing.
    sums = {f"n{n}": one.rows.fill_null(False).sum() for n, one in enumerate(reasons)}
    counts = rows.opened.engine.run(table.agg(total=table.count(), **sums), rows.opened.name)
    numbers = np.nan_to_num(np.array([counts[name][0] for name in sums], dtype=np.float64))
    by_reason = [(int(n), one) for n, one in zip(numbers, reasons, strict=True)]
    return Unread(int(counts["total"][0]), by_reason)


def describe(rows: Rows, unread: Unread) -> list[dict[str, Any]]:
    """Why rows cannot be read, how many, and where the first of them are."""
    return [
        {
            "reason": reason.told,
            "fate": reason.fate,
            "rows": number,
            "where": _where(rows, place, number),
        }
        for place, (number, reason) in enumerate(unread.by_reason)
        if number
    ]


def _where(rows: Rows, reason: int, number: int) -> str:
    """Where the first rows of a reason are; empty if nobody knows."""
    with suppress(InputError):  # places are a help: they must not decide whether rows count
        return _first_places(rows, reason, number)
    return ""


def _first_places(rows: Rows, reason: int, number: int) -> str:
    """By lines of a text file or rows of a Parquet file; empty if the source has no order."""
    opened = rows.opened
    for piece in opened.listing.pieces[:MOST_PIECES]:
        table = opened.numbered(piece, rows.names)
        if table is None:
            return ""
        is_so = reasons_of(rows, table)[reason].rows.fill_null(False)
        unread = table.filter(is_so).select(row=table[ROW])
        first = opened.engine.run(unread.limit(MOST_NAMED), opened.name)
        places = sorted(int(row) for row in first["row"])
        if places:
            places = lines_of(piece, places) if opened.text else places
            word = "line" if opened.text else "row"
            shown = ", ".join(map(str, places)) + (", …" if number > len(places) else "")
            of_file = f" of {Path(piece.name).name}" if len(opened.listing.pieces) > 1 else ""
            return f"{word}{'s' if number > 1 else ''} {shown}{of_file}"
    return ""


def reasons_of(rows: Rows, table: Table) -> list[Reason]:
    """All reasons why a row of the table may not be read."""
    return [one for of in (_places, _times, _people, _weights) for one in of(rows, table)]


def _places(rows: Rows, table: Table) -> Iterator[Reason]:
    opened, fields = rows.opened, rows.fields
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
                words = f"the column {name!r} holds a number with a decimal comma there (to read it: {WITH_COMMA})"
                yield Reason(words, unread & has_comma, remedy=WITH_COMMA)
                unread = unread & ~has_comma
            yield Reason(f"the column {name!r} holds no number there", unread)


def _times(rows: Rows, table: Table) -> Iterator[Reason]:
    """The columns of times that matter."""
    reading, form = rows.reading, rows.reading.form
    of_axes = [field.column for field in rows.fields if field.of_time]
    others = [reading.time] if reading.time is not None and _uses_times(reading) else []
    for name in dict.fromkeys([*of_axes, *others]):
        column, text = table[name], rows.has_texts(table, name)
        is_needed = name in of_axes or reading.per is not None or reading.spans
        fate = LEFT_OUT if is_needed else WITHOUT_TIME
        empty = _is_empty(column, text)
        unread = ~empty & rows.seconds(table, name).isnull()
        number = ex.kinds_of_time(column, form)["number"] if text else ~empty
        yield Reason(f"the column {name!r} is empty there", empty, fate)
        yield Reason(
            f"the column {name!r} holds no time of the years 1 to 9999 there (if times are numbers: is "
            "--read time-unit right?)",
            unread & number,
            fate,
        )
        if text:
            usual = f"{AS_IN} (--read time-format names another form)"
            as_in = usual if form is None else repr(form.text)
            words = f"the column {name!r} holds no time there that is written as in {as_in}"
            yield Reason(words, unread & ~number, fate)


def _uses_times(reading: Reading) -> bool:
    """Whether the times of records decide which of them count, or are told apart."""
    if reading.per is not None or reading.spans:
        return True
    many = reading.once_per is not None or reading.counted != PEOPLE
    return reading.once_per != "all" and many


def _people(rows: Rows, table: Table) -> Iterator[Reason]:
    if (user := rows.reading.user) is not None:
        yield Reason(f"the column {user!r} names nobody there", rows.person(table).isnull())


def _weights(rows: Rows, table: Table) -> Iterator[Reason]:
    if (weight := rows.reading.weight) is not None:
        empty = _is_empty(table[weight], rows.opened.text)
        number = rows.opened.number(table, weight)
        finite = ex.is_finite(number)
        yield Reason(f"the column {weight!r} is empty there", empty)
        yield Reason(f"the column {weight!r} holds no number there", ~empty & ~finite)
        is_negative = finite & (number < ex.constant(0.0))
        yield Reason(f"the column {weight!r} is negative there", is_negative)


def _is_empty(column: Value, text: bool) -> BooleanValue:
    empty: BooleanValue = ex.is_blank(column) if text else column.isnull()
    return empty
