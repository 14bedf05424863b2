"""What a curator is told about the records that were read, or not, before any budget is spent. Sensitive.

All of it is for the curator's eyes, and none of it goes into a release.

A row whose place, time or person cannot be read is left out. That is right for a few odd rows, but wrong
if half of a file has dates in an unknown form: then the curator must hear of it before anything is
published. So rows are counted by reason, in one pass over the columns that are used.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from ibis.expr.types import BooleanValue, Table, Value

from htf.errors import InputError, NothingInsideError
from htf.ingest import expressions as ex
from htf.ingest.columns import pairs
from htf.ingest.geometry import coordinate
from htf.ingest.reading import COMMA, DECIMALS, POINT, Reading
from htf.ingest.rows import Rows, places_in, within
from htf.ingest.sources import ROW, Source
from htf.ingest.text import MOST_NAMED, lines_of
from htf.ingest.time_formats import likely_formats
from htf.privacy.protection import PEOPLE

EYES_ONLY = (
    "For your eyes only (these are exact facts about the data, which no noise covers: do not publish "
    "them):"
)
LEFT_OUT, WITHOUT_TIME = "left out", "taken to be of one moment"
MOST_PIECES = 100  # files that are looked through for a row to name
WITH_COMMA = "--read decimal=,"
AS_IN = "2017-09-11T08:30:00+08:00"
Tell = Callable[[str], None]
TO_RELEASE = "(This message is for your eyes: it is a fact about the data. To release whatever they hold: --allow-empty)"


class NothingInside(UserWarning):
    """A warning that no record is inside the bounds, where an empty matrix is allowed.

    For the curator's eyes, like NothingInsideError.

    Examples
    --------
    >>> import warnings
    >>> import htf
    >>> domain = htf.Domain.from_bounds(0, 0, 1, 1, cells=4)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     _ = htf.read_points({"lon": [50.0], "lat": [50.0]}, domain, allow_empty=True)
    >>> from htf.ingest.remarks import NothingInside
    >>> any(one.category is NothingInside for one in caught)
    True
    """


def guess_told(rows: Rows) -> str:
    """Which columns were guessed."""
    first, second = rows.fields[:2]
    if first.of_geometry:
        return f"Using the points of the column {first.column!r}."
    return f"Using the columns {first.column!r} as x and {second.column!r} as y."


def check_times(rows: Rows, table: Table, tell: Tell | None) -> None:
    """Check that there are times at all, and that they can be put in one order."""
    opened, reading = rows.opened, rows.reading
    times = {field.column for field in rows.fields if field.of_time} | {reading.time} - {None}
    for name in sorted(map(str, times)):
        if not rows.has_texts(table, name):
            continue
        kinds_of_time = ex.kinds_of_time(table[name], reading.form)
        kinds = {kind: is_it.any() for kind, is_it in kinds_of_time.items()}
        kinds_found = opened.engine.run(table.agg(**kinds), opened.name)
        any_readable = any(kinds_found[kind][0] for kind in ("zoned", "bare", "number"))
        if kinds_found["some"][0] and not any_readable and not reading.allow_empty:
            as_in, other = reading.time_format or AS_IN, _other_form(opened, table, name)
            raise InputError(
                f"column {name!r} must hold times, as in {as_in}, but it holds other text{other}. {TO_RELEASE}"
            )
        if kinds_found["zoned"][0] and kinds_found["bare"][0] and tell is not None:
            tell(
                f"{EYES_ONLY} some times in the column {name!r} name a time zone and some do not. Each is "
                "read on its own: those without one count as UTC."
            )


def _other_form(opened: Source, table: Table, name: str) -> str:
    """The forms that the first times may have. A wrong guess does no harm: it only goes into an error."""
    times = table.select(time=table[name].cast("string"))
    first = opened.engine.run(times.limit(1000), opened.name)
    forms = likely_formats(str(text) for text in first["time"] if text is not None)
    return "".join(
        f"{' or' if n else ': give'} --read time-format='{one}'" for n, one in enumerate(forms[:2])
    )


def remark_unread(rows: Rows, tell: Tell) -> None:
    """Remark on rows that could not be read, before any budget is spent on the others. It is an error if an option
    would help most rows."""
    unread = count_unread(rows)
    for reason in unread.of_most:
        if reason.remedy is not None and not rows.reading.allow_empty:
            raise InputError(f"most rows cannot be read: {reason.told}. {TO_RELEASE}")
    lines = []
    for one in describe(rows, unread):
        number, where = one["rows"], one["where"] and f"; see {one['where']}"
        fate = f"{'is' if number == 1 else 'are'} {one['fate']}"
        lines.append(f"  {number:,} of {unread.total:,} rows {fate}: {one['reason']}{where}.")
    if lines:
        tell("\n".join([EYES_ONLY, *lines]))


def remark_nothing(rows: Rows, tell: Tell | None) -> None:
    """Raise an error for the curator, who may have mistyped something; or make a remark, for a program
    whose releases must not reveal by their absence that there was nothing. The reasons are in
    docs/decisions/0013-before-the-charge.md."""
    has_map = rows.domain.has_map
    where = "inside the bounds" if has_map else "in any cell of the map"
    message = f"No record is {where}{_why_nothing(rows)}"
    if not rows.reading.allow_empty:
        bounds = "the order of --bounds W,S,E,N, " if has_map else ""
        places = 2 if has_map else len(rows.domain.outlined)
        is_further = rows.domain.dimensions > places
        further = "the further axes (--axis, --category), " if is_further else ""
        raise NothingInsideError(
            f"{message} Check {bounds}the columns (--x, --y), {further}and the reference systems "
            "(--crs, --read points-crs). To make a release whatever the data hold, as a program must: --allow-empty "
            "(in Python allow_empty=True). (This message is for your eyes: it is a fact about the data.)"
        )
    message += (
        " The release will be noise alone. (This is for your eyes: it is a fact about the data.)"
    )
    if tell is None:
        warnings.warn(message, NothingInside, stacklevel=3)
    else:
        tell(message)


def _why_nothing(rows: Rows) -> str:
    """What may be wrong, judged by the columns that were read."""
    opened, reading, fields = rows.opened, rows.reading, rows.fields
    if opened.unfit:
        return f": {opened.unfit}."
    table = rows.table()
    if opened.text and (wrong := _text_in(rows, table)):
        return wrong
    why = "." if reading.user is None else f", or none there names a person in {reading.user!r}."
    if reading.weight is not None:
        why = f"{why[:-1]}, or none there has a weight in {reading.weight!r}."
    if 0 not in pairs(rows.domain) or fields[0].of_geometry or not rows.counted_in_place:
        return why
    if not count_inside(rows.swapped):
        return why
    return (
        f"{why} With x and y exchanged there would be some: are {fields[0].column!r} and "
        f"{fields[1].column!r} swapped, or the bounds?"
    )


def count_inside(rows: Rows, most: int | None = None) -> int:
    """How many rows, or of the first, are inside any map: of zones, of another reference system, or with further axes."""
    with rows.placed(rows.table(most)) as (engine, placed):
        is_inside = within(places_in(placed, rows.domain), rows.domain)
        counts = engine.run(placed.agg(n=is_inside.sum()), rows.opened.name)
    return int(np.nan_to_num(counts["n"].astype(np.float64))[0])  # no sum over no rows


def _text_in(rows: Rows, table: Table) -> str:
    """Which column of a text file has not a single number: it is the wrong column. Empty if none."""
    opened = rows.opened
    for field in rows.fields:
        if field.of_geometry or field.of_time or field.of_names:
            continue
        column = table[field.column]
        sums = {
            "some": column.notnull().any(),
            "numbers": opened.number(table, field.column).notnull().any(),
            **{sign: ex.is_number(column, sign).any() for sign in DECIMALS},
        }
        found = opened.engine.run(table.agg(**sums), opened.name)
        if found["some"][0] and not found["numbers"][0]:
            others = [sign for sign in DECIMALS if found[sign][0]]
            hint = f" with another decimal sign: give --read decimal={others[0]}" if others else ""
            return f": column {field.column!r} must hold numbers, but it holds text{hint}."
    return ""


# Rows that could not be read --------------------------------------------------------------------


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
    found = []
    for place, (number, reason) in enumerate(unread.by_reason):
        if number:
            where = ""
            with suppress(InputError):  # places are a help: they must not decide whether rows count
                where = _first_places(rows, place, number)
            told = {"reason": reason.told, "fate": reason.fate, "rows": number, "where": where}
            found.append(told)
    return found


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
