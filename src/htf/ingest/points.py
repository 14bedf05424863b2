"""From points, wherever they are, to a FrequencyMatrix. Sensitive.

One Ibis expression does it in the engine where the points are: keep those inside the bounds, find
each one's cell, bound what each person contributes, count per cell. Only non-empty cells come back.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields as fields_of
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from htf.base import arguments
from htf.curator.distinct import PeopleByBox
from htf.curator.frequency import MOST_RECORDS, FrequencyMatrix, WeighedRecords, unravel
from htf.errors import InputError, NothingInsideError
from htf.frame.crs import same_crs
from htf.frame.division import Division
from htf.frame.domain import Axis, Domain, FloatArray, check_domain
from htf.ingest import expressions as ex
from htf.ingest.columns import (
    Field,
    check_there,
    columns_in,
    find_fields,
    fits,
    pairs,
    refuse_degrees,
)
from htf.ingest.engines import Engine, Progress
from htf.ingest.geometry import coordinate, projected
from htf.ingest.people import (
    BOX,
    CELL,
    PERIOD,
    PERSON,
    RANK,
    SPELLING,
    TIME,
    WEIGHT,
    WHEN,
    WHO,
    count_distinct,
    count_kept,
    count_records,
    count_shared,
    keep_once,
    part_along,
    records_of_each,
)
from htf.ingest.placing import needs_function, place_of
from htf.ingest.reading import DECIMALS, DUCKDB, POINT, Access, Reading
from htf.ingest.sources import Source, moved, open_source
from htf.ingest.text import Needed
from htf.ingest.time_formats import likely_formats
from htf.ingest.unread import AS_IN, EYES_ONLY, Reason, Times, describe_unread, reasons_of
from htf.ingest.weights import ABOVE, KEPT, as_weight, count_weights, only_weighed
from htf.privacy.apart import ToldApart
from htf.privacy.distinct import NOT_PEOPLE, most_boxes
from htf.privacy.origins import FileMark, mark_files
from htf.privacy.protection import PEOPLE, RECORD, Protection

if TYPE_CHECKING:
    from ibis.expr.types import FloatingValue, IntegerValue, Table, Value

OUTSIDE_OF_BOUNDS = "the engine counted records outside of the bounds: is a file damaged, so that its statistics do not fit its rows?"
Tell = Callable[[str], None]


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
    >>> any(one.category is htf.NothingInside for one in caught)
    True
    """


def read_points(
    source: Any,
    domain: Domain,
    columns: Sequence[str | None] | None = None,
    *,
    user: str | None = None,
    count: str | None = None,
    per: str | None = None,
    max_records: int | str | None = None,
    once_per: str | None = None,
    weight: str | None = None,
    max_weight: int | None = None,
    time: str | None = None,
    time_unit: str = "s",
    time_format: str | None = None,
    utc_offset: int = 0,
    since: int | str | None = None,
    until: int | str | None = None,
    crs: str | None = None,
    table: str | None = None,
    sql: str | None = None,
    encoding: str | None = None,
    decimal: str = POINT,
    skip_lines: int | None = None,
    skip_last: int | None = None,
    engine: str = DUCKDB,
    memory: str | None = None,
    allow_empty: bool = False,
    progress: Progress | None = None,
    tell: Tell | None = None,
) -> FrequencyMatrix:
    """Count records or split people per cell, wherever they are stored.

    Records outside the bounds, on their upper edge, missing, NaN or infinite are left out.

    Parameters
    ----------
    source : object
        The name of a CSV or Parquet file, of a folder or a pattern of them; of a GeoJSON, GeoPackage, shapefile
        or zip file; of a DuckDB or SQLite file
        or a PostgreSQL server, with `table` or `sql`; a pandas, Polars, GeoPandas, Arrow or Ibis table,
        or a Spark DataFrame; a mapping from column names to arrays; or a sequence of arrays, one for
        each axis.
    domain : Domain
        The map.
    columns : sequence of str, optional
        One column for each axis, in order, or hour(T), weekday(T) or day(T) of a column T of times. The
        first two are guessed where there is one sensible guess, and `tell` says so.
    user : str, optional
        Column naming the person. Epsilon then protects people, not single records.
    count : {"people", "records"}, optional
        What to count. With `user` and without `max_records` it is split people: each person counts once, split
        evenly across their records inside the map.
    per : {"day", "week", "month"}, optional
        Protect, and count, each person in each such period of `time`, not over all of time. Records without
        a time are left out.
    max_records : int, optional
        How many records of each person to keep where records are counted.
    once_per : {"hour", "day", "all"}, optional
        First keep at most one record for each person, cell and hour or day of `time`, or ever.
    weight : str, optional
        Column of whole numbers: each record counts that often, so that sums are counted. Fractions are rounded down.
        Records whose weight is missing, negative, infinite or no number are left out.
    max_weight : int, optional
        Larger weights count as this one. Choose it without looking at the data.
    time : str, optional
        Column of times: ISO 8601 text, timestamps, or numbers since 1970.
    time_unit : str
        The unit of times that are numbers.
    time_format : str, optional
        The form of times that are text, such as `%d.%m.%Y %H:%M`. By default ISO 8601.
    utc_offset : int
        Seconds to add to times before they are cut into hours and days.
    since, until : int or str, optional
        Count only records of this time or later, and before that one: seconds since 1970, or text such as 2026-03-01.
    crs : str, optional
        The reference system of the coordinates, if it is not that of the map.
    table, sql : str, optional
        The table of a database or the layer of a file, or a query.
    encoding : str, optional
        The encoding of text files, such as `cp1252`. By default UTF-8.
    decimal : {".", ","}
        The decimal sign of numbers in text.
    skip_lines, skip_last : int, optional
        How many lines of a text file to leave out before the one that names the columns, and at the end.
    engine : {"duckdb", "spark"}
        What counts files.
    memory : str, optional
        How much memory it may use, such as `4GB`.
    allow_empty : bool
        Whether no record inside is a warning and not an error. docs/budget.md says when a program
        needs that.
    progress : callable, optional
        Called with the share done, from 0 to 1.
    tell : callable, optional
        Called with remarks for the curator's eyes only, such as how many rows could not be read.

    Returns
    -------
    FrequencyMatrix
        Exact counts. Sensitive.

    Raises
    ------
    InputError
        If arguments are wrong, records cannot be read, or a column is not there.
    NothingInsideError
        If no record is inside, so that no budget is spent on noise.

    Examples
    --------
    >>> import htf
    >>> domain = htf.Domain.from_bounds(0, 0, 2, 2, cells=2)
    >>> rides = {"lon": [0.5, 0.6, 1.5], "lat": [0.5, 0.4, 1.5], "rider": ["a", "a", "b"]}
    >>> matrix = htf.read_points(rides, domain, ["lon", "lat"], user="rider", max_records=1)
    >>> matrix.protection.spoken
    'one person, at most 1 record each'
    >>> htf.read_points(rides, domain, ["lon", "lat"], user="rider").protection.quantity
    'split people'
    >>> taxis = {"lon": [0.5, 0.6], "lat": [0.5, 0.4], "passengers": [2, 9]}
    >>> htf.read_points(taxis, domain, weight="passengers", max_weight=6).protection.told
    'sum of passengers, at most 6 per record'
    """
    given = locals()  # here the arguments alone, whose names and defaults are those of Reading
    reading = Reading(**{one.name: given[one.name] for one in fields_of(Reading)})
    return read_matrix(source, domain, reading, progress=progress, tell=tell)


def read_matrix(
    source: Any,
    domain: Domain,
    reading: Reading,
    *,
    progress: Progress | None = None,
    tell: Tell | None = None,
) -> FrequencyMatrix:
    """As `read_points`, with its options in one object."""
    check_domain(domain)
    arguments.function(progress, "progress")
    arguments.function(tell, "tell")
    protection = reading.protection
    with _located(source, domain, reading, tell) as (opened, engine, located):
        if protection.weight is not None:
            counted = _count_weights(located, protection, of_query=opened.of_query)
        elif reading.user is None:
            counted = count_records(located)
        elif protection.count == PEOPLE:
            counted = count_shared(located, protection.shares)
        else:
            counted = count_kept(located, protection.max_records, of_query=opened.of_query)
        counts_by_cell = engine.run(counted, opened.name, progress)
        opened.check_unchanged()  # so that remarks are about the rows that were counted
        if tell is not None:
            _remark_unread(opened, domain, reading, source, tell)
        if len(counts_by_cell[CELL]) == 0:
            _remark_nothing(opened, domain, reading, source, tell)
        opened.check_unchanged()
        protection = replace(protection, of_query=opened.of_query)
        files = mark_files(opened.files)
    return _to_matrix(domain, counts_by_cell, protection, files, reading.told_apart)


def check_source(source: Any, domain: Domain, reading: Reading) -> None:
    """Refuse a source that cannot be opened, or whose columns a release could not read. Nothing is counted."""
    with _located(source, domain, reading, None):
        pass


def read_records_per_person(
    source: Any,
    domain: Domain,
    reading: Reading,
    most: int,
    *,
    progress: Progress | None = None,
    tell: Tell | None = None,
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """How many people have n records inside the bounds, for n = 1 … most; more count as `most`."""
    if reading.user is None:
        raise InputError("counting records per person needs the column of people: give user")
    with _located(source, domain, reading, tell) as (opened, engine, located):
        histogram = engine.run(records_of_each(located, most), opened.name, progress)
        if tell is not None:
            _remark_unread(opened, domain, reading, source, tell)
        if len(histogram["records"]) == 0:
            _remark_nothing(opened, domain, reading, source, tell)
        opened.check_unchanged()
    people = np.zeros(most, dtype=np.int64)
    people[np.asarray(histogram["records"], dtype=np.int64) - 1] = histogram["people"]
    return people


def read_people_by_box(
    source: Any,
    domain: Domain,
    grid: int | tuple[int, int] | str,
    columns: Sequence[str | None] | None = None,
    *,
    user: str,
    per: str | None = None,
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
    engine: str = DUCKDB,
    memory: str | None = None,
    allow_empty: bool = False,
    progress: Progress | None = None,
    tell: Tell | None = None,
) -> PeopleByBox:
    """Count the different people in each box of a coarse grid over a map, or in each zone, for `measure_distinct`.

    A person counts once in each of them where they have a record inside the map.

    Parameters
    ----------
    source : object
        As in `read_points`.
    domain : Domain
        The map.
    grid : int, (int, int) or str
        The number of boxes along the first two axes, or a pair of numbers. Further axes are not divided. Edges are as
        even as the cells of the map allow. Or the names by which a map is divided: a level of zones or categories such
        as `district`, of trips that of both ends; an axis such as `hour`; or several with commas between them.
    columns : sequence of str, optional
        One column for each axis of the map, as in `read_points`.
    user : str
        Column naming the person.
    per : {"day", "week", "month"}, optional
        Count a person in each such period of `time` as one.
    time : str, optional
        Column of times.
    time_unit : str
        The unit of times that are numbers.
    time_format : str, optional
        The form of times that are text, such as `%d.%m.%Y %H:%M`. By default ISO 8601.
    utc_offset : int
        Seconds to add to times before they are cut into days.
    crs : str, optional
        The reference system of the coordinates, if it is not that of the map.
    table, sql : str, optional
        The table of a database or the layer of a file, or a query.
    encoding : str, optional
        The encoding of text files, such as `cp1252`. By default UTF-8.
    decimal : {".", ","}
        The decimal sign of numbers in text.
    skip_lines, skip_last : int, optional
        How many lines of a text file to leave out before the one that names the columns, and at the end.
    engine : {"duckdb", "spark"}
        What counts files.
    memory : str, optional
        How much memory it may use, such as `4GB`.
    allow_empty : bool
        Whether no record inside is a warning and not an error.
    progress : callable, optional
        Called with the share done, from 0 to 1.
    tell : callable, optional
        Called with remarks for the curator's eyes only.

    Returns
    -------
    PeopleByBox
        Exact counts. Sensitive.

    Raises
    ------
    InputError
        If arguments are wrong, records cannot be read, or a column is not there.
    NothingInsideError
        If no record is inside, so that no budget is spent on noise.

    Examples
    --------
    >>> import htf
    >>> domain = htf.Domain.from_bounds(0, 0, 2, 2, cells=2)
    >>> rides = {"lon": [0.5, 0.6, 1.5], "lat": [0.5, 0.4, 1.5], "rider": ["a", "a", "b"]}
    >>> htf.read_people_by_box(rides, domain, 2, ["lon", "lat"], user="rider")
    PeopleByBox(2 x 2 boxes, exact numbers not shown)
    """
    given = locals()  # here the arguments alone, whose names and defaults are those of Reading
    named = {one.name: given[one.name] for one in fields_of(Reading) if one.name in given}
    return read_people(source, domain, Reading(**named), grid, progress=progress, tell=tell)


def read_people(
    source: Any,
    domain: Domain,
    reading: Reading,
    grid: int | tuple[int, int] | str,
    *,
    progress: Progress | None = None,
    tell: Tell | None = None,
) -> PeopleByBox:
    """As `read_people_by_box`, with its options in one object. How records are limited has no effect."""
    check_domain(domain)
    arguments.function(progress, "progress")
    arguments.function(tell, "tell")
    division = Division.of(grid)
    boxes = division.number(domain)
    if reading.user is None:
        raise InputError(NOT_PEOPLE)
    reading = replace(
        reading, count=PEOPLE, max_records=None, once_per=None, weight=None, max_weight=None
    )
    most = most_boxes(boxes)
    with _located(source, domain, reading, tell, division) as (opened, engine, located):
        found = engine.run(count_distinct(located, most), opened.name, progress)
        if tell is not None:
            _remark_unread(opened, domain, reading, source, tell)
        if len(found[BOX]) == 0:
            _remark_nothing(opened, domain, reading, source, tell)
        opened.check_unchanged()
    people = np.zeros((most, boxes), dtype=np.int64)
    places = np.asarray(found[RANK], dtype=np.int64), np.asarray(found[BOX], dtype=np.int64)
    if any(
        len(p) and (p.min() < 0 or p.max() >= size)
        for p, size in zip(places, people.shape, strict=True)
    ):
        raise InputError(OUTSIDE_OF_BOUNDS)
    people[places] = found["people"]
    return PeopleByBox(division.given, people, reading.per, reading.told_apart)


def weigh_points(path: Path, domain: Domain, columns: Sequence[str]) -> FloatArray:
    """The number of public points in each cell, for all cells, or the sums of their column `weight`.

    A cell with a negative weight gets that weight, and one with a missing weight gets NaN, so that the
    caller can refuse them.
    """
    reading = Reading(columns)
    with opened_for(path, domain, reading) as opened:
        fields = find_fields(opened.columns, domain, reading.wanted(path, domain), opened.geometry)
        weighted = WEIGHT in opened.columns
        names = names_of(fields, [WEIGHT] if weighted else [])
        table = opened.select(names)
        values = values_of(opened, table, fields, reading)
        if weighted:
            worth = opened.number(table, WEIGHT)
            values["worth"] = worth.fill_null(float("nan"))
        crs = other_crs(opened, fields, domain, reading)
        placed = placed_on(table.select(**values), domain, crs, opened.engine, opened.collates)
        inside = _inside(placed, domain)
        inside = inside.mutate(cell=_cell(inside, domain, opened.engine))
        inside = inside.filter(inside[CELL].notnull())
        weight_sums = (
            {"records": inside.worth.sum(), "least": inside.worth.min()} if weighted else {}
        )
        totals = opened.engine.run(
            inside.group_by(CELL).agg(**weight_sums or {"records": inside.count()}), opened.name
        )
    sums = np.asarray(totals["records"], dtype=np.float64)
    least = np.asarray(totals.get("least", sums), dtype=np.float64)
    weights = np.zeros(domain.size)
    weights[np.asarray(totals[CELL], dtype=np.int64)] = np.where(least < 0, least, sums)
    return weights.reshape(domain.shape)


def has_columns(path: Path, names: Sequence[str]) -> bool:
    """Whether a file can be read and has these columns."""
    try:
        needed = Needed(lambda header: set(names) <= set(header))
        with open_source(path, Access(), needed) as opened:
            return set(names) <= set(opened.columns)
    except InputError:
        return False


@contextmanager
def opened_for(source: Any, domain: Domain, reading: Reading) -> Iterator[Source]:
    wanted, others = reading.wanted(source, domain), reading.others
    given = tuple(name for name in (*wanted, *others) if name is not None)
    told = ["one pair like lon and lat (else give --x and --y)"] * (wanted[:2] == [None, None])
    needed = Needed(
        lambda header: fits(wanted, others, header), ", ".join([*told, *map(repr, given)]), given
    )
    with open_source(source, reading, needed) as opened:
        yield opened.called(columns_in(wanted, others, opened.columns))


@contextmanager
def _located(
    source: Any,
    domain: Domain,
    reading: Reading,
    tell: Tell | None,
    division: Division | None = None,
) -> Iterator[tuple[Source, Engine, Table]]:
    """The records inside the bounds, each with its cell and, if there are any, its person and time; and the engine
    that has them. With a `division`, also the area of it that the record lies in."""
    wanted = reading.wanted(source, domain)
    with opened_for(source, domain, reading) as opened:
        fields = find_fields(opened.columns, domain, wanted, opened.geometry)
        if wanted[0] is None:
            (tell or logging.getLogger("htf").info)(guess_told(fields))
        for name in reading.others:
            check_there(name, opened.columns)
        table = opened.select(names_of(fields, reading.others))
        _check_times(opened, table, fields, reading, tell)
        crs = other_crs(opened, fields, domain, reading)
        values = values_of(opened, table, fields, reading) | _whose(opened, table, reading)
        if reading.weight is not None:
            weight = opened.number(table, reading.weight)
            values[WEIGHT] = as_weight(weight, int(reading.max_weight or 1))
        if reading.spans:
            values[WHEN] = seconds_of(table, str(reading.time), opened, reading)
        with where_counted(opened, table.select(**values), domain, reading) as (engine, rows):
            placed = placed_on(rows, domain, crs, engine, opened.collates)
            inside = _inside(_in_span(placed, reading), domain)
            for name in (PERSON, PERIOD):
                if name in values:
                    inside = inside.filter(inside[name].notnull())
            located = inside.select(
                cell=_cell(inside, domain, engine),
                **{n: inside[n] for n in (*WHO, TIME, WEIGHT) if n in values},
                **({} if division is None else {BOX: _box(inside, domain, engine, division)}),
            )
            if reading.weight is not None:
                located = only_weighed(located)
            yield opened, engine, located if reading.once_per is None else keep_once(located)


def _whose(opened: Source, rows: Table, reading: Reading) -> dict[str, Any]:
    """The person of each record, and the period and time where they matter."""
    if reading.user is None:
        return {}
    person = ex.as_person(rows[reading.user], reading.user, opened.text)
    whose: dict[str, Any] = {PERSON: person}
    if opened.collates and person.type().is_string():
        whose[SPELLING] = ex.digest(person)
    if reading.per is not None:
        seconds = seconds_of(rows, str(reading.time), opened, reading)
        whose[PERIOD] = ex.period(seconds, reading.per)
    if reading.once_per is not None or reading.counted != PEOPLE:
        whose[TIME] = _time_key(rows, opened, reading)
    return whose


@contextmanager
def where_counted(
    opened: Source, rows: Table, domain: Domain, reading: Reading
) -> Iterator[tuple[Engine, Table]]:
    """The engine that counts: the one that has the rows, unless it cannot call our functions and has to."""
    if opened.engine.columns_as or not _calls_functions(domain):
        yield opened.engine, rows
    else:
        with moved(opened, rows, reading.memory) as there:
            yield there


def _calls_functions(domain: Domain) -> bool:
    """Whether places are found by functions of ours, which not every engine can call."""
    return any(map(needs_function, domain.axes))


def _count_weights(located: Table, protection: Protection, *, of_query: bool) -> Table:
    """The sum of weights in each cell and, to tell how many were cut, the number of records."""

    def count(records: Table) -> Table:
        return count_weights(records, protection.max_weight)

    if protection.unit == RECORD:
        return count(located)
    return count_kept(located, protection.max_records, of_query=of_query, count=count)


def guess_told(fields: Sequence[Field]) -> str:
    if fields[0].of_geometry:
        return f"Using the points of the column {fields[0].column!r}."
    return f"Using the columns {fields[0].column!r} as x and {fields[1].column!r} as y."


def names_of(fields: Sequence[Field], others: Sequence[str]) -> list[str]:
    return list(dict.fromkeys([*(field.column for field in fields), *others]))


def values_of(
    opened: Source, rows: Table, fields: Sequence[Field], reading: Reading
) -> dict[str, Any]:
    """The value of each column, under our own names, which no column of the data can have."""
    return {f"v{n}": _value(rows, field, opened, reading) for n, field in enumerate(fields)}


def other_crs(
    opened: Source, fields: Sequence[Field], domain: Domain, reading: Reading
) -> str | None:
    """The reference system of the points, if it is not that of the map."""
    crs = reading.crs or (opened.crs if fields[0].of_geometry else None)
    refuse_degrees(fields, domain, crs)
    if crs is None:
        return None
    if not pairs(domain):
        raise InputError(f"a reference system ({crs}) needs two axes x and y, but the map has none")
    if domain.crs is None:
        raise InputError(
            f"the points are in {crs}, but the map names no reference system: give it one"
        )
    if same_crs(crs, domain.crs):
        return None
    if not opened.engine.columns_as and not _calls_functions(domain):
        raise InputError(
            f"a database cannot transform {crs} to {domain.crs} for us: do it in the query, as with "
            "PostGIS's ST_Transform"
        )
    return crs


def placed_on(
    rows: Table, domain: Domain, crs: str | None, engine: Engine, collates: bool
) -> Table:
    """The place along each axis, from the values of columns, and all other columns."""
    values = [rows[name] for name in rows.columns if name.startswith("v")]
    if crs is not None:
        for first in pairs(domain):
            x, y = values[first : first + 2]
            values[first : first + 2] = projected(x, y, crs, str(domain.crs), engine.columns_as)
    places = {}
    waiting = iter(values)
    for number, axis in enumerate(domain.axes):
        columns = [next(waiting) for _ in axis.inputs]
        places[f"p{number}"] = place_of(columns, axis, engine.columns_as, collates)
    others = {name: rows[name] for name in rows.columns if not name.startswith("v")}
    return rows.select(**places, **others)


def _value(rows: Table, field: Field, opened: Source, reading: Reading) -> Value:
    column = rows[field.column]
    if field.of_geometry:
        return coordinate(column, field.part, opened.engine.columns_as)
    if field.of_names:
        return ex.as_label(column, field.column, opened.text)
    if not field.of_time:
        return opened.number(rows, field.column)
    seconds = seconds_of(rows, field.column, opened, reading)
    return ex.OF_TIME[field.part](seconds).cast("float64")


def seconds_of(rows: Table, name: str, opened: Source, reading: Reading) -> IntegerValue:
    text = are_texts(opened, rows, name)
    seconds = ex.as_seconds(rows[name], name, text, reading.time_unit, reading.form)
    return seconds + reading.utc_offset if reading.utc_offset else seconds


def _time_key(rows: Table, opened: Source, reading: Reading) -> IntegerValue:
    """The key that tells a person's records in one cell apart. Records without a time share one key."""
    import ibis

    nothing = ibis.literal(0).cast("int64")
    if reading.time is None or reading.once_per == "all":
        return nothing
    seconds = seconds_of(rows, reading.time, opened, reading)
    key = seconds if reading.once_per is None else ex.slot(seconds, reading.once_per)
    return ibis.coalesce(key, nothing)


def _inside(rows: Table, domain: Domain) -> Table:
    """The rows inside the bounds. Engines sort NaN above every number, so `< high` drops it along with
    infinity. If an engine skips the filter, NaN still has no cell."""
    for number, axis in enumerate(domain.axes):
        place = rows[f"p{number}"]
        rows = rows.filter((place >= ex.constant(axis.low)) & (place < ex.constant(axis.high)))
    return rows


def _in_span(rows: Table, reading: Reading) -> Table:
    """The rows of the span of time that is asked for. A row whose time cannot be read is in none."""
    if reading.since is not None:
        rows = rows.filter(rows[WHEN] >= reading.since)
    if reading.until is not None:
        rows = rows.filter(rows[WHEN] < reading.until)
    return rows


def _cell(rows: Table, domain: Domain, engine: Engine) -> IntegerValue:
    """Row-major numbers of cells; missing for a place in no cell, whatever was filtered before."""
    cell: Any = None
    for number, axis in enumerate(domain.axes):
        along = _cell_on_axis(rows, number, axis, engine)
        cell = along if cell is None else cell * axis.cells + along
    return cell


def _box(rows: Table, domain: Domain, engine: Engine, division: Division) -> IntegerValue:
    """Row-major numbers of the areas of a division. That of a place in no cell is missing, or its cell is."""
    import ibis

    box = ibis.literal(0).cast("int64")
    for number, (axis, edges) in enumerate(zip(domain.axes, division.edges(domain), strict=True)):
        if (parts := len(edges) - 1) == 1:
            continue
        cell = _cell_on_axis(rows, number, axis, engine)
        if division.grid is None:
            along = part_along(cell, edges, engine.columns_as)
        else:
            along = ex.part_of(cell, axis.cells, parts)
        box = box * parts + along
    return box


def _cell_on_axis(rows: Table, number: int, axis: Axis, engine: Engine) -> IntegerValue:
    place = rows[f"p{number}"]
    if not engine.floors_anything:
        place = ex.within(place, axis.low, axis.high)
    return _cell_along(axis, place)


def _cell_along(axis: Axis, place: FloatingValue) -> IntegerValue:
    """The cell along one axis, as by Axis.to_cells. A place just below the upper edge must not be
    rounded across it.

    The arithmetic is monotonic: if the last number below the edge is not rounded across it, none is,
    and rows need no check. A missing cell stays missing: engines ignore it in a `least`, which would
    put it into the last cell.
    """
    cell: Any = (place - ex.constant(axis.low)) * ex.constant(axis.cells_per_unit)
    whole = ex.floor(cell)
    if axis.to_cells(np.nextafter(axis.high, axis.low)) < axis.cells:
        return whole
    kept: IntegerValue = (whole >= axis.cells).ifelse(axis.cells - 1, whole)
    return kept


def _to_matrix(
    domain: Domain,
    counts_by_cell: dict[str, Any],
    protection: Protection,
    files: Sequence[FileMark],
    told_apart: ToldApart | None = None,
) -> FrequencyMatrix:
    order = np.argsort(counts_by_cell[CELL])  # the engine returns cells in any order
    keys = np.asarray(counts_by_cell[CELL], dtype=np.int64)[order]
    if len(keys) and not 0 <= keys[0] <= keys[-1] < domain.size:
        raise InputError(OUTSIDE_OF_BOUNDS)
    counts = np.asarray(counts_by_cell["records"], dtype=np.int64)[order]
    if int(counts.sum()) > MOST_RECORDS:
        what = "more than 2**40 records" if protection.weight is None else "sums above 2**40"
        raise InputError(f"{what} are not supported")
    weighed = None
    if protection.weight is not None:
        kept, above = (int(np.sum(counts_by_cell[name])) for name in (KEPT, ABOVE))
        weighed, keys, counts = (
            WeighedRecords(kept - above, above),
            keys[counts > 0],
            counts[counts > 0],
        )
    return FrequencyMatrix(
        domain, unravel(keys, domain.shape), counts, protection, files, weighed, told_apart
    )


def are_texts(opened: Source, rows: Table, name: str) -> bool:
    """Whether we read times from text. A database reads them better with its own functions."""
    return opened.text or (opened.engine.columns_as != "" and rows[name].type().is_string())


def _check_times(
    opened: Source,
    table: Table,
    fields: Sequence[Field],
    reading: Reading,
    tell: Tell | None,
) -> None:
    """Check that there are times at all, and that they can be put in one order."""
    times = {field.column for field in fields if field.of_time} | {reading.time} - {None}
    for name in sorted(map(str, times)):
        if not are_texts(opened, table, name):
            continue
        kinds_of_time = ex.kinds_of_time(table[name], reading.form)
        kinds = {kind: is_it.any() for kind, is_it in kinds_of_time.items()}
        kinds_found = opened.engine.run(table.agg(**kinds), opened.name)
        any_readable = any(kinds_found[kind][0] for kind in ("zoned", "bare", "number"))
        if kinds_found["some"][0] and not any_readable and not reading.allow_empty:
            raise InputError(
                f"column {name!r} must hold times, as in {reading.time_format or AS_IN}, but it holds other text"
                f"{_other_form(opened, table, name)}. (This message "
                "is for your eyes: it is a fact about the data. To release whatever they hold: --allow-empty)"
            )
        if kinds_found["zoned"][0] and kinds_found["bare"][0] and tell is not None:
            tell(
                f"{EYES_ONLY} some times in the column {name!r} name a time zone and some do not. Each is "
                "read on its own: those without one count as UTC."
            )


def _other_form(opened: Source, table: Table, name: str) -> str:
    """The forms that the first times may have. A wrong guess does no harm: it only goes into an error."""
    first = opened.engine.run(
        table.select(time=table[name].cast("string")).limit(1000), opened.name
    )
    forms = likely_formats(str(text) for text in first["time"] if text is not None)
    return "".join(
        f"{' or' if n else ': give'} --read time-format='{one}'" for n, one in enumerate(forms[:2])
    )


def _remark_unread(
    opened: Source, domain: Domain, reading: Reading, source: Any, tell: Tell
) -> None:
    """Remark on rows that could not be read, before any budget is spent on the others."""
    fields = find_fields(opened.columns, domain, reading.wanted(source, domain), opened.geometry)
    names = names_of(fields, reading.others)

    def make(table: Table) -> list[Reason]:
        return reasons_of(opened, table, fields, times_of(opened, table, fields, reading), reading)

    note = describe_unread(opened, names, make, refuses=not reading.allow_empty)
    if note is not None:
        tell(note)


def times_of(
    opened: Source, table: Table, fields: Sequence[Field], reading: Reading
) -> list[Times]:
    """The columns of times that matter."""
    of_axes = dict.fromkeys(field.column for field in fields if field.of_time)
    asked = [*of_axes, *({reading.time} - {None, *of_axes})]
    return [
        Times(
            name,
            are_texts(opened, table, name),
            seconds_of(table, name, opened, reading),
            name in of_axes or reading.per is not None or reading.spans,
        )
        for name in map(str, asked)
        if name in of_axes or _uses_times(reading)
    ]


def _uses_times(reading: Reading) -> bool:
    """Whether the times of records decide which of them count, or are told apart."""
    return (
        reading.per is not None
        or reading.spans
        or (
            reading.once_per != "all"
            and (reading.once_per is not None or reading.counted != PEOPLE)
        )
    )


def _remark_nothing(
    opened: Source,
    domain: Domain,
    reading: Reading,
    source: Any,
    tell: Tell | None,
) -> None:
    """Raise an error for the curator, who may have mistyped something; or make a remark, for a program
    whose releases must not reveal by their absence that there was nothing. The reasons are in
    docs/decisions/0013-before-the-charge.md."""
    where = "inside the bounds" if domain.has_map else "in any cell of the map"
    message = f"No record is {where}{_why_nothing(opened, domain, reading, source)}"
    if not reading.allow_empty:
        bounds = "the order of --bounds W,S,E,N, " if domain.has_map else ""
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


def _why_nothing(opened: Source, domain: Domain, reading: Reading, source: Any) -> str:
    """What may be wrong, judged by the columns that were read."""
    if opened.unfit:
        return f": {opened.unfit}."
    fields = find_fields(opened.columns, domain, reading.wanted(source, domain), opened.geometry)
    table = opened.select(names_of(fields, []))
    if opened.text:
        try:
            _refuse_text(opened, table, fields)
        except InputError as error:
            return f": {error}."
    why = "." if reading.user is None else f", or none there names a person in {reading.user!r}."
    if reading.weight is not None:
        why = f"{why[:-1]}, or none there has a weight in {reading.weight!r}."
    in_place = bool(opened.engine.columns_as) or not _calls_functions(domain)
    if 0 not in pairs(domain) or fields[0].of_geometry or not in_place:
        return why
    swapped = [fields[1], fields[0], *fields[2:]]
    values = values_of(opened, table, swapped, reading)
    crs = other_crs(opened, swapped, domain, reading)
    placed = placed_on(table.select(**values), domain, crs, opened.engine, opened.collates)
    inside = _inside(placed, domain)
    cells = inside.select(cell=_cell(inside, domain, opened.engine))
    first = opened.engine.run(cells.filter(cells[CELL].notnull()).limit(1), opened.name)
    if len(first[CELL]) == 0:
        return why
    return (
        f"{why} With x and y exchanged there would be some: are {fields[0].column!r} and "
        f"{fields[1].column!r} swapped, or the bounds?"
    )


def _refuse_text(opened: Source, table: Table, fields: Sequence[Field]) -> None:
    """Refuse a column of a text file without a single number: it is the wrong column."""
    for field in fields:
        if field.of_geometry or field.of_time or field.of_names:
            continue
        column = table[field.column]
        number = opened.number(table, field.column)
        sums = {
            "some": column.notnull().any(),
            "numbers": number.notnull().any(),
            **{f"with{n}": ex.is_number(column, one).any() for n, one in enumerate(DECIMALS)},
        }
        found = opened.engine.run(table.agg(**sums), opened.name)
        if found["some"][0] and not found["numbers"][0]:
            others = [one for n, one in enumerate(DECIMALS) if found[f"with{n}"][0]]
            hint = f" with another decimal sign: give --read decimal={others[0]}" if others else ""
            raise InputError(f"column {field.column!r} must hold numbers, but it holds text{hint}")
