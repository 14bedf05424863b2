"""Looks at a source of points before a release, for the curator's eyes only. Sensitive: nothing here has noise.

It reads points as a release does, with the same expressions. But it may guess what a release must not: columns, the
encoding, decimal signs and the form of times. A release never guesses these from records, because one record could then
change how all others are read. Here the guesses become a command for the curator to judge.
"""

from __future__ import annotations

import codecs
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from dataclasses import fields as fields_of
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from htf.base import arguments
from htf.base.options import words_of
from htf.errors import InputError
from htf.frame.axis import PLACE
from htf.frame.domain import Domain, check_domain
from htf.ingest import columns, text
from htf.ingest import expressions as ex
from htf.ingest.columns import like, likely_pairs
from htf.ingest.engines import Progress
from htf.ingest.listing import Listing, Piece
from htf.ingest.reading import COMMA, POINT, Reading
from htf.ingest.remarks import EYES_ONLY, count_inside, count_unread, describe
from htf.ingest.rows import Rows, open_rows, within
from htf.ingest.sources import Source, is_arrays, listed, open_source
from htf.ingest.text import Needed, plain
from htf.ingest.time_formats import likely_formats

POINTS = "points"
NUMBER = re.compile(ex.NUMBER.replace(r"\z", r"\Z"))
WITH_COMMA = re.compile(ex.NUMBER.replace(r"\.", ",").replace(r"\z", r"\Z"))
WHOLE = re.compile(ex.WHOLE.replace(r"\z", r"\Z"))
TIME = re.compile(ex.TIME.replace(r"\z", r"\Z"))
ENOUGH = 0.8  # of lines or values that must agree with a guess
LINES_AFTER = 20
MOST_TOTALS = 5  # lines at the end
WHOLE_NUMBERS, NUMBERS, COMMA_NUMBERS = "whole numbers", "numbers", "numbers with decimal commas"
TIMES, TEXT, NOTHING = "times", "text", "nothing"
LEAST_SECONDS = 1e8  # a number of seconds since 1970 that is a likely time: March 1973
TRIED = 1000  # rows, before a charge
SAMPLE = 2000  # rows that show the kinds of columns
QUANTILES = {"median": 0.5, "90 %": 0.9, "99 %": 0.99, "most": 1.0}
FARTHEST = 1e300
WORLD = (-180.0, -90.0, 180.0, 90.0)
OF_PEOPLE = re.compile(
    "(user|person|people|rider|phone|device|customer|member|driver|bike|vehicle|taxi|subscriber|passenger|visitor|"
    "patient|uid|imsi|imei|msisdn|who)(_?(id|no|nr|number|hash|key|name))?"
)
OF_TIMES = re.compile("(.*_)?(time|timestamp|ts|datetime|date|when|at)(_utc|_local)?")
OUTSIDE_THE_GUARANTEE = (
    "Choose the bounds, epsilon and the grid from public knowledge, never from these numbers: the guarantee does not "
    "cover a choice that depends on the data. Bounds at the edges of the data would publish where the outermost "
    "records are."
)


@dataclass(frozen=True, slots=True, repr=False)
class PointsCheck:
    """What a source of points holds. Sensitive: exact numbers, for the curator's eyes only.

    Attributes
    ----------
    source : str
        The name of the source.
    rows : int
        The number of rows.
    columns : mapping
        The kind of each column. Those of text files are judged by the first rows.
    roles : mapping
        The columns that were given or guessed: x, y, user and time.
    unread : sequence of mappings
        Why rows cannot be read: `reason`, `fate`, `rows` and `where` the first of them are.
    inside, outside, swapped : int or None
        How many places are inside the map and not; and how many would be inside if x and y were swapped. None
        without a map.
    extent : sequence of float or None
        The least and the largest x, and y.
    people : int or None
        The number of different people.
    records_per_person : mapping
        Quantiles of the number of records of a person.
    first, last : str or None
        The first and the last time.
    at_zero : int
        How many places are 0, 0, which often stands for a missing one.
    hints : sequence of str
        Advice on what was found.
    command : str
        A command to make a release, with the options that these points need.

    Examples
    --------
    >>> import htf
    >>> rides = {"lon": [0.5, 0.6, 1.5], "lat": [0.5, 0.4, None], "rider": ["a", "a", "b"]}
    >>> check = htf.check_points(rides)
    >>> check
    PointsCheck(the dict, exact numbers not shown: print it)
    >>> check.rows, check.people
    (3, 2)
    >>> check.roles
    {'x': 'lon', 'y': 'lat', 'user': 'rider'}
    """

    source: str
    rows: int
    columns: Mapping[str, str]
    roles: Mapping[str, str]
    unread: Sequence[Mapping[str, Any]]
    inside: int | None
    outside: int | None
    swapped: int | None
    extent: Sequence[float] | None
    people: int | None
    records_per_person: Mapping[str, int]
    first: str | None
    last: str | None
    at_zero: int
    hints: Sequence[str] = ()
    command: str = ""

    def __repr__(self) -> str:
        return f"PointsCheck({self.source}, exact numbers not shown: print it)"

    def __str__(self) -> str:
        return "\n".join(_told(self))

    def to_dict(self) -> dict[str, Any]:
        """All of it, for JSON. Sensitive.

        Returns
        -------
        dict
            The attributes by their names, after a note that they must not be published.

        Examples
        --------
        >>> check.to_dict()["records_per_person"]
        {'median': 1, '90 %': 2, '99 %': 2, 'most': 2}
        """
        return {"note": EYES_ONLY.rstrip(":"), **asdict(self), "choices": OUTSIDE_THE_GUARANTEE}


def check_points(
    source: Any,
    domain: Domain | None = None,
    columns: Sequence[str | None] | None = None,
    *,
    user: str | None = None,
    time: str | None = None,
    time_unit: str = "s",
    time_format: str | None = None,
    utc_offset: int = 0,
    crs: str | None = None,
    table: str | None = None,
    sql: str | None = None,
    encoding: str | None = None,
    decimal: str = POINT,
    skip_lines: int | None = None,
    skip_last: int | None = None,
    memory: str | None = None,
    progress: Progress | None = None,
) -> PointsCheck:
    """Look at a source of points before a release. For the curator's eyes only: exact numbers, without noise.

    Options that are not given are guessed, those of text files too. Nothing is written.

    Parameters
    ----------
    source : object
        As in `read_points`.
    domain : Domain, optional
        The map. Choose it from public knowledge. Without one, places are not compared with bounds.
    columns : sequence of str, optional
        The columns of x and y.
    user : str, optional
        Column naming the person.
    time : str, optional
        Column of times.
    time_unit : str
        The unit of times that are numbers.
    time_format : str, optional
        The form of times that are text, such as `%d.%m.%Y %H:%M`.
    utc_offset : int
        Seconds to add to times.
    crs : str, optional
        The reference system of the coordinates, if it is not that of the map.
    table, sql : str, optional
        The table of a database or the layer of a file, or a query.
    encoding : str, optional
        The encoding of text files.
    decimal : {".", ","}
        The decimal sign of numbers in text.
    skip_lines, skip_last : int, optional
        How many lines of a text file to leave out before the one that names the columns, and at the end.
    memory : str, optional
        How much memory the engine may use, such as `4GB`.
    progress : callable, optional
        Called with the share done, from 0 to 1.

    Returns
    -------
    PointsCheck
        What was found. Sensitive.

    Raises
    ------
    InputError
        If arguments are wrong, or the source cannot be read.

    Examples
    --------
    >>> import htf
    >>> domain = htf.Domain.from_bounds(0, 0, 2, 2, cells=2)
    >>> check = htf.check_points({"x": [0.5, 5.0], "y": [0.5, 0.4]}, domain)
    >>> check.inside, check.outside
    (1, 1)
    """
    reading = Reading.of(locals())  # here the arguments alone
    return check_source(source, domain, reading, progress=progress)


def check_source(
    source: Any,
    domain: Domain | None,
    reading: Reading,
    *,
    progress: Progress | None = None,
    told_map: Sequence[str] = (),
    recipe: str | None = None,
) -> PointsCheck:
    """As `check_points`, with its options in one object. `told_map` are the options that gave the map; or the name of the
    `recipe` that says all. Where the columns of all axes are named, records are looked for along all of them."""
    named = () if reading.columns is None else reading.columns
    if domain is not None and len(named) != len(columns.inputs(check_domain(domain))):
        domain = Domain(domain.axes[: 1 if domain.axes[0].inputs == PLACE else 2], domain.crs)
    arguments.function(progress, "progress")
    looked: Looked | None = None
    used = _of_arrays(source, reading) if is_arrays(source) else reading
    with listed(source, reading.table) as listing:
        if listing is not None and listing.is_text:
            there = columns.columns_in(used.columns or (), used.others, ())
            looked = look(listing, used, there)
            used = looked.reading
        try:
            rows, check = _look_at(source, domain, used, looked, progress)
        except InputError:
            if listing is None or looked is None or used.skip_last:
                raise
            totals = totals_after(listing, looked)
            if not totals:
                raise
            used = replace(used, skip_last=totals)
            rows, check = _look_at(source, domain, used, looked, progress)
    hints = tuple(_hints(check, rows.reading, reading))
    command = _command(source, rows, told_map)
    if recipe is not None:
        command = shlex.join(["htf", "release", recipe, "-o", f"{Path(recipe).stem}.parquet"])
    return replace(check, hints=hints, command=command)


def _of_arrays(source: Any, reading: Reading) -> Reading:
    """The same, whose columns are the first two arrays, x and y."""
    if len(source) < 2:
        raise InputError(
            f"points in arrays need one array for each axis, x and y first, got {len(source)}"
        )
    return reading if reading.columns is not None else replace(reading, columns=("0", "1"))


def _look_at(
    source: Any,
    domain: Domain | None,
    reading: Reading,
    looked: Looked | None,
    progress: Progress | None,
) -> tuple[Rows, PointsCheck]:
    """What is found, and the rows as they were read."""
    with _opened(source, reading, looked) as opened:
        seen = _seen(opened)
        rows = _guessed(opened, seen, reading, domain)
        reading, fields = rows.reading, rows.fields
        counts = _count(rows, domain, progress)
        # A pass over places, people and times sees all that is read, if there is no more.
        sees_all = len(fields) == 2 and reading.weight is None
        is_fine = sees_all and counts["fine"] == counts["total"]
        unread = [] if is_fine else _unread(rows)
        people = _people(rows)
        opened.listing.check_unchanged()
    extent = [counts[name] for name in ("x_low", "x_high", "y_low", "y_high")]
    inside, swapped, placed, first, last = (
        None if (found := counts.get(name)) is None else int(found)
        for name in ("inside", "swapped", "placed", "first", "last")
    )
    places = {"x": _told_field(fields[0]), "y": _told_field(fields[1])}
    others = {"user": reading.user, "time": reading.time}
    check = PointsCheck(
        source=opened.name,
        rows=int(counts["total"] or 0),
        columns=seen.kinds,
        roles=places | {role: name for role, name in others.items() if name is not None},
        unread=unread,
        inside=inside,
        outside=None if inside is None else (placed or 0) - inside,
        swapped=swapped,
        extent=None if None in extent else tuple(one or 0.0 for one in extent),
        people=None if people is None else int(people.sum()),
        records_per_person={} if people is None else _quantiles(people),
        first=_moment(first),
        last=_moment(last),
        at_zero=int(counts["at_zero"] or 0),
    )
    return rows, check


# Reading -----------------------------------------------------------------------------------------


@contextmanager
def _opened(source: Any, reading: Reading, looked: Looked | None) -> Iterator[Source]:
    wanted, others = list(reading.columns or ()), reading.others

    def has_columns(header: Sequence[str]) -> bool:
        if looked is not None:
            return tuple(header) == looked.layout.header
        return columns.fits([*wanted, None, None], others, header)

    with open_source(source, reading, Needed(has_columns, "columns", quick=True)) as opened:
        if not opened.columns:
            raise InputError(f"{opened.name} has no columns: points need those of x and y")
        there = (*(opened.of_records or ()), *opened.columns)
        for name in () if opened.of_records is None else columns.columns_in(wanted, others, ()):
            columns.check_there(name, there)
        yield replace(opened, columns=there)


class _Seen(NamedTuple):
    """The first rows, and the kind of each column."""

    sample: Mapping[str, Any]
    kinds: Mapping[str, str]


def _seen(opened: Source) -> _Seen:
    names = opened.columns
    if opened.first_rows is not None:
        sample = opened.first_rows(SAMPLE)
    else:
        sample = opened.engine.run(opened.select(names).limit(SAMPLE), opened.name)
    if opened.text:
        kinds = {name: kind_of(_texts(sample[name])) for name in names}
    else:
        kinds = {name: str(kind) for name, kind in opened.select(names).schema().items()}
    points = {} if opened.geometry is None else {opened.geometry: POINTS}
    return _Seen(sample, {**kinds, **points})


def _texts(values: Any) -> list[str]:
    return [one for one in values if isinstance(one, str)]


def _guessed(opened: Source, seen: _Seen, reading: Reading, domain: Domain | None) -> Rows:
    """The columns and options that were given, and sensible guesses for the others."""
    there, kinds, plane = opened.columns, seen.kinds, Domain.from_bounds(*WORLD, 2, crs=None)
    if domain is not None and len(columns.inputs(domain)) > 2:
        plane = domain
    wanted = list(reading.columns or (None, None))[: len(columns.inputs(plane))]
    if wanted == [None, None] and opened.geometry is None and len(columns.likely_pairs(there)) > 1:
        wanted = list(columns.likely_pairs(there)[0])
    named = opened.called(columns.columns_in(wanted, reading.others, there))
    fields = columns.find_fields(named.columns, plane, wanted, opened.geometry)
    for name in reading.others:
        columns.check_there(name, named.columns)
    places = [columns.like(field.column, there) or field.column for field in fields]
    free = [name for name in there if name not in places]
    if reading.user is None:
        people = [name for name in free if OF_PEOPLE.fullmatch(_plain(name))]
        reading = replace(reading, user=next(iter(people), None))
    if reading.time is None:
        times = [name for name in free if _is_time(kinds[name], seen.sample.get(name))]
        named_so = [name for name in times if OF_TIMES.fullmatch(_plain(name))]
        likely = named_so or [name for name in times if not _is_number(kinds[name])]
        reading = replace(reading, time=next(iter(likely), None))
    if opened.text and reading.decimal == POINT:
        reading = replace(reading, decimal=decimal_of([kinds[name] for name in places]))
    reading = _with_form(reading, seen, there)
    used = columns.columns_in([field.column for field in fields], reading.others, there)
    opened = replace(opened, decimal=reading.decimal).called(used)
    return Rows(opened, plane if domain is None else domain, reading, fields)


def _with_form(reading: Reading, seen: _Seen, there: Sequence[str]) -> Reading:
    """The same with the form or the unit of times, if they are not the usual ones."""
    if reading.time is None or reading.time_format is not None:
        return reading
    name = columns.like(reading.time, there) or reading.time
    values = seen.sample.get(name, ())
    texts = _texts(values)
    if texts and seen.kinds[name] != TIMES and (forms := likely_formats(texts)):
        return replace(reading, time_format=forms[0])
    numbers = _as_numbers(values)
    if len(numbers) and reading.time_unit == "s":
        return replace(reading, time_unit=unit_of(float(np.median(numbers))))
    return reading


def _is_time(kind: str, values: Any) -> bool:
    if kind.startswith((TIMES, "timestamp", "date")):
        return True
    if not _is_number(kind):
        return False
    numbers = _as_numbers(() if values is None else values)
    return len(numbers) > 0 and bool(np.median(numbers) >= LEAST_SECONDS)


def _is_number(kind: str) -> bool:
    of_text = (WHOLE_NUMBERS, NUMBERS)
    return kind in of_text or kind.startswith(("int", "uint", "float"))


def _as_numbers(values: Any) -> Any:
    """The numbers among some values; none if they are no numbers."""
    try:
        numbers = np.asarray([one for one in values if one is not None and one != ""], np.float64)
    except (TypeError, ValueError):
        return np.zeros(0)
    return numbers[np.isfinite(numbers)]


def _plain(name: str) -> str:
    """`Rider ID` is rider_id."""
    return re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).casefold())


# Counting ----------------------------------------------------------------------------------------


def _count(rows: Rows, domain: Domain | None, progress: Progress | None) -> dict[str, float | None]:
    """Everything that one pass over the rows can count, and how many are inside the map."""
    table, reading = rows.table(), rows.reading
    x, y = (ex.within(rows.values(table)[n], -FARTHEST, FARTHEST) for n in ("v0", "v1"))
    values = {"x": x, "y": y}
    if reading.time is not None:
        values["seconds"] = rows.seconds(table, reading.time)
    if reading.user is not None:
        values["person"] = rows.person(table)
    read = table.select(**values)
    is_placed = read.x.notnull() & read.y.notnull()
    is_fine = is_placed
    for name in set(values) - {"x", "y"}:
        is_fine = is_fine & read[name].notnull()
    is_at_zero = (read.x == ex.constant(0.0)) & (read.y == ex.constant(0.0))
    aggregates: dict[str, Any] = {
        "total": read.count(),
        **{f"{n}_{end}": getattr(read[n], of)() for n in "xy" for end, of in ENDS.items()},
        "placed": is_placed.sum(),
        "fine": is_fine.sum(),
        "at_zero": is_at_zero.sum(),
    }
    if reading.time is not None:
        aggregates |= {"first": read.seconds.min(), "last": read.seconds.max()}
    # Whether x and y are compared with bounds as they are.
    is_flat = domain is not None and domain.dimensions == 2 and not domain.outlined
    if is_plain := domain is not None and is_flat and rows.crs is None:
        for name, places in (("inside", (read.x, read.y)), ("swapped", (read.y, read.x))):
            aggregates[name] = within(places, domain).sum()
    opened = rows.opened
    found = opened.engine.run(read.agg(**aggregates), opened.name, progress)
    counts = {name: _number(first[0]) for name, first in found.items()}
    if domain is not None:
        for name, asked in (("inside", rows), ("swapped", rows.swapped)):
            counts[name] = (counts[name] or 0) if is_plain else count_inside(asked)
    return counts


def _unread(rows: Rows) -> list[dict[str, Any]]:
    """Why rows cannot be read. Times matter here if there are people too."""
    reading = rows.reading
    keeps = reading.user and reading.time and not reading.weight
    rows = replace(rows, reading=replace(reading, once_per="hour" if keeps else None))
    return describe(rows, count_unread(rows))


def try_rows(source: Any, domain: Domain, reading: Reading) -> str | None:
    """Why the first rows could not be released as they are; None if they could. It names columns, and no value or number."""
    with open_rows(source, domain, reading) as rows:
        unread = count_unread(rows, TRIED)
        if unread.of_most:
            why = "; ".join(reason.told for reason in unread.of_most)
            return f"most of the first rows cannot be read: {why}"
        if unread.total == 0:
            return "there are no rows"
        if count_inside(rows, TRIED):
            return None
    columns = ", ".join(dict.fromkeys(repr(field.column) for field in rows.fields))
    where = "inside the bounds" if domain.has_map else "in any cell of the map"
    return (
        f"none of the first rows is {where}: check the bounds, the columns ({columns}), and the reference systems "
        "(--crs, --read points-crs)"
    )


ENDS = {"low": "min", "high": "max"}


def _people(rows: Rows) -> Any:
    """How many people have how many records: the number of people, by records from 0 on; None without people."""
    if rows.reading.user is None:
        return None
    table = rows.opened.select([rows.reading.user])
    named = table.select(person=rows.person(table))
    named = named.filter(named.person.notnull())
    each = named.group_by("person").agg(records=named.count())
    of_each = each.group_by("records").agg(people=each.count())
    counts = rows.opened.engine.run(of_each, rows.opened.name)
    records = np.asarray(counts["records"], dtype=np.int64)
    return np.bincount(records, np.asarray(counts["people"], dtype=np.int64)).astype(np.int64)


def _quantiles(people: Any) -> dict[str, int]:
    """The least number of records that a share of people does not exceed."""
    upto = np.cumsum(people)
    if len(upto) == 0 or upto[-1] == 0:
        return {}
    return {
        name: int(np.searchsorted(upto, np.ceil(share * upto[-1])))
        for name, share in QUANTILES.items()
    }


def _number(value: Any) -> float | None:
    return None if value is None or np.isnan(float(value)) else float(value)


def _moment(seconds: int | None) -> str | None:
    if seconds is None:
        return None
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)).isoformat()[:19]


def _told_field(field: columns.Field) -> str:
    return f"{field.part} of {field.column}" if field.of_geometry else field.column


# Advice ------------------------------------------------------------------------------------------


def _hints(check: PointsCheck, reading: Reading, given: Reading) -> Iterator[str]:
    for one, found in GUESSED.items():
        if getattr(reading, one) != getattr(given, one):
            words = words_of(Reading, one, getattr(reading, one))
            yield f"{found}. A release never guesses that, so give it {shlex.join(words)}"
    if check.inside is not None and check.swapped is not None and check.swapped > check.inside:
        yield "More places would be inside the bounds if x and y were swapped: are --x and --y, or the bounds, right?"
    west, east, south, north = check.extent or (0.0,) * 4
    is_beyond = west < -360 or east > 360 or south < -180 or north > 180  # degrees
    if is_beyond and reading.crs is None:
        yield (
            "Some x or y are no degrees. If all are in another reference system, name it with --read points-crs, and that of "
            "the map with --crs. If only a few are odd, they are left out."
        )
    if check.at_zero:
        yield (
            f"{check.at_zero:,} places are 0, 0, which often stands for a missing one. Bounds without that point leave "
            "them out."
        )
    unread = sum(one["rows"] for one in check.unread)
    if unread > check.rows / 100:
        yield "More than 1 % of rows cannot be read: see the reasons above."
    if check.people is None:
        yield (
            "No column seems to name people, so epsilon would protect single records. If a person has several, name "
            "their column with --user."
        )
    else:
        yield (
            f"With --user {shlex.quote(str(reading.user))} epsilon protects people, with all their records. Is this column the "
            "person, and not the record?"
        )
        if check.people == check.rows:
            yield "Everybody has one record. If the column only numbers rows, leave --user out."
    if check.inside is None:
        yield (
            "Give --bounds W,S,E,N (or --around, or --zones) to see how many places are inside. Take round bounds of a "
            "public region, such as the city's limits."
        )


OF_SOURCE = ("crs", "table", "sql", "encoding", "skip_lines", "skip_last")
OF_RECORDS = ("user", "time", "time_format", "decimal", "time_unit")
GUESSED = {
    "encoding": "The text is not UTF-8",
    "skip_lines": "Lines come before the names of columns",
    "skip_last": "Lines at the end have another number of fields, as totals have",
    "decimal": "Numbers have decimal commas",
    "time_format": "Times are not written as in ISO 8601 (check that day and month are not exchanged)",
    "time_unit": "Times are numbers that are not seconds",
}


def _command(source: Any, rows: Rows, told_map: Sequence[str]) -> str:
    """`htf release` with the options that these points need."""
    name = str(source) if isinstance(source, (str, Path)) else "FILE"
    if "://" in name:  # it may hold a password
        name = "postgresql://USER@HOST/DATABASE"
    reading, parts = rows.reading, ["htf", "release", name]
    if not rows.fields[0].of_geometry:
        parts += ["--x", rows.fields[0].column, "--y", rows.fields[1].column]
    usual = {one.name: one.default for one in fields_of(Reading)}
    for one in (*OF_SOURCE, *OF_RECORDS):
        if (value := getattr(reading, one)) != usual[one]:
            parts += words_of(Reading, one, value)
    stem = "" if "://" in name else f"{Path(name).name.split('.')[0]}-"
    bounds = told_map or ["--bounds", "W,S,E,N"]
    return shlex.join([*parts, *bounds, "--epsilon", "1", "-o", f"{stem}release.parquet"])


def _told(check: PointsCheck) -> Iterator[str]:
    yield EYES_ONLY
    yield f"  {check.source}: {check.rows:,} rows, {len(check.columns)} columns"
    roles = {column: role for role, column in check.roles.items()}
    width = max(map(len, check.columns), default=0)
    for name, kind in check.columns.items():
        is_point = f"x of {name}" in roles
        role = "  (x, y)" if is_point else f"  ({roles[name]})" if name in roles else ""
        yield f"    {name:{width}}  {kind}{role}"
    if check.extent is not None:
        west, east, south, north = check.extent
        yield f"  x from {west:.6g} to {east:.6g}, y from {south:.6g} to {north:.6g}"
    if check.inside is not None:
        yield (
            f"  {check.inside:,} places are inside the map, {check.outside:,} are not; with x and y swapped "
            f"{check.swapped:,} would be inside"
        )
    for one in check.unread:
        where = one["where"] and f"; see {one['where']}"
        rows = "1 row is" if one["rows"] == 1 else f"{one['rows']:,} rows are"
        yield f"  {rows} {one['fate']}: {one['reason']}{where}"
    if check.people is not None:
        each = ", ".join(f"{name} {value:,}" for name, value in check.records_per_person.items())
        yield f"  {check.people:,} different people; records of a person: {each}"
    if check.first is not None:
        yield f"  times from {check.first} to {check.last}"
    yield "\nAdvice:"
    yield from (f"  {hint}" for hint in check.hints)
    yield f"\nA command to begin with:\n  {check.command}\n\n{OUTSIDE_THE_GUARANTEE}"


# How a text file is written ---------------------------------------------------------------------


class Looked(NamedTuple):
    """How a text file seems to be written."""

    reading: Reading
    layout: text.Layout


def look(listing: Listing, reading: Reading, named: Sequence[str]) -> Looked:
    """The encoding, the lines before the header and the separator of text files; what was given stands."""
    piece = listing.pieces[0]
    if reading.encoding is None:
        reading = replace(reading, encoding=_guess_encoding(piece.path))
    with plain(listing, replace(reading, skip_last=None)) as readable:
        lines = text.first_lines(readable.pieces[0].path)
    found = _guess_header(lines, named)
    if found is None:
        raise InputError(
            f"no line of the first {text.MOST_PREAMBLE} of {piece.name} names columns that the next lines have: is it a "
            "table, with names of columns above it? Give --read skip-lines=N if they are further down"
        )
    skipped, layout = found
    if skipped:
        reading = replace(reading, skip_lines=(reading.skip_lines or 0) + skipped)
    return Looked(reading, layout)


def totals_after(listing: Listing, looked: Looked) -> int:
    """The number of lines after the records that have another number of fields; 0 if others have that too."""
    with plain(listing, looked.reading) as readable:
        numbers = {_totals(piece, looked.layout) for piece in readable.pieces}
    return numbers.pop() if len(numbers) == 1 else 0


def _totals(piece: Piece, layout: text.Layout) -> int:
    uneven = [line for line, _ in text.uneven_lines(piece, layout)]
    last = text.last_lines(piece, MOST_TOTALS)
    return len(uneven) if uneven and uneven == last[-len(uneven) :] else 0


def _guess_encoding(path: Path) -> str | None:
    """None for UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    with pa.input_stream(str(path), compression="detect") as stream:
        part = stream.read(text.BYTES_AT_ONCE)
        if part.startswith(text.UTF16_MARKS):
            return "utf-16"
        if b"\0" in part[: text.MOST_PREAMBLE]:
            return "utf-16-le" if part[1:2] == b"\0" else "utf-16-be"
        try:
            while part:
                decoder.decode(part)
                part = stream.read(text.BYTES_AT_ONCE)
        except UnicodeDecodeError:
            return "cp1252"
    return None


def _guess_header(lines: Sequence[str], named: Sequence[str]) -> tuple[int, text.Layout] | None:
    """The number of lines before the header, and the layout that it has. Names that make sense are best."""
    for sensible in (True, False):
        for skipped, line in enumerate(lines):
            following = [one for one in lines[skipped + 1 :] if one.strip()][:LINES_AFTER]
            headers = [
                (len(names), one, names) for one in text.SEPARATORS if (names := _names(line, one))
            ]
            for fields, separator, names in sorted(headers, reverse=True):
                is_known = bool(named) or bool(likely_pairs(names))
                if (is_known or not sensible) and all(like(one, names) for one in named):
                    even = [len(text.split_header(one, separator)) == fields for one in following]
                    if sum(even) >= ENOUGH * len(even) and (even or sensible):
                        return skipped, text.Layout(tuple(names), separator)
    return None


def _names(line: str, separator: str) -> list[str]:
    """The names of columns in a line; none if it cannot be a header."""
    names = text.split_header(line, separator)
    is_header = len(names) > 1 and len(set(names)) == len(names)
    return names if is_header and not any(map(NUMBER.match, names)) else []


def kind_of(texts: Sequence[str]) -> str:
    """The kind of most of some texts."""
    known = [text.strip() for text in texts if text.strip()]
    if not known:
        return NOTHING
    kinds = {WHOLE_NUMBERS: WHOLE, NUMBERS: NUMBER, COMMA_NUMBERS: WITH_COMMA, TIMES: TIME}
    for kind, pattern in kinds.items():
        if sum(pattern.match(text) is not None for text in known) >= ENOUGH * len(known):
            return kind
    forms = likely_formats(known)
    return f"{TIMES} like {forms[0]}" if forms else TEXT


def decimal_of(kinds: Sequence[str]) -> str:
    return COMMA if COMMA_NUMBERS in kinds else POINT


def unit_of(largest: float) -> str:
    """The unit in which a number is a time of this or the next century."""
    for unit, least in (("ns", 1e17), ("us", 1e14), ("ms", 1e11)):
        if largest >= least:
            return unit
    return "s"
