"""What a curator is told about the records that were read, or not, before any budget is spent. Sensitive.

All of it is for the curator's eyes, and none of it goes into a release.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

from ibis.expr.types import Table

from htf.errors import InputError, NothingInsideError
from htf.ingest import expressions as ex
from htf.ingest.columns import pairs
from htf.ingest.people import CELL
from htf.ingest.reading import DECIMALS
from htf.ingest.rows import Rows, cell_of, inside_of
from htf.ingest.sources import Source
from htf.ingest.time_formats import likely_formats
from htf.ingest.unread import AS_IN, EYES_ONLY, count_unread, describe

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
        raise NothingInsideError(
            f"{message} Check {bounds}the columns (--x, --y), and the reference systems "
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
    with rows.swapped.placed(table) as (engine, placed):
        inside = inside_of(placed, rows.domain)
        cells = inside.select(cell=cell_of(inside, rows.domain, engine))
        first = engine.run(cells.filter(cells[CELL].notnull()).limit(1), opened.name)
    if len(first[CELL]) == 0:
        return why
    return (
        f"{why} With x and y exchanged there would be some: are {fields[0].column!r} and "
        f"{fields[1].column!r} swapped, or the bounds?"
    )


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
