"""From points, wherever they are, to a FrequencyMatrix. Sensitive.

One Ibis expression does it in the engine where the points are: keep those inside the bounds, find
each one's cell, bound what each person contributes, count per cell. Only non-empty cells come back.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import ibis
import numpy as np
from ibis.expr.types import Table

from htf.base import arguments
from htf.base.options import AUTO, USUAL_MOST_RECORDS
from htf.curator.contributions import RecordsPerPerson
from htf.curator.distinct import PeopleByBox
from htf.curator.frequency import MOST_RECORDS, FrequencyMatrix, WeighedRecords, unravel
from htf.errors import InputError
from htf.frame.division import Division
from htf.frame.domain import Domain, FloatArray, check_domain
from htf.ingest import people
from htf.ingest.engines import Engine, Progress
from htf.ingest.reading import DUCKDB, POINT, Access, Reading
from htf.ingest.remarks import Tell, check_times, guess_told, remark_nothing, remark_unread
from htf.ingest.rows import Rows, box_of, cell_of, in_span, inside_of, open_rows
from htf.ingest.sources import Source, open_source
from htf.ingest.text import Needed
from htf.ingest.weights import ABOVE, KEPT, count_weights, only_weighed
from htf.privacy.distinct import NOT_PEOPLE, most_boxes
from htf.privacy.origins import mark_files
from htf.privacy.protection import PEOPLE, PERSON, RECORD, Protection

OUTSIDE_OF_BOUNDS = "the engine counted records outside of the bounds: is a file damaged, so that its statistics do not fit its rows?"


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
    reading = Reading.of(locals())  # here the arguments alone
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
    protection = reading.protection
    weights = partial(count_weights, most=protection.max_weight)
    is_weighed = protection.weight is not None

    def count(located: Table, of_query: bool) -> Table:
        if protection.count == PEOPLE:
            shares = weights if is_weighed else people.count_shares
            return people.count_shared(located, protection.shares, shares)
        records = weights if is_weighed else people.count_records
        if protection.unit == RECORD:
            return records(located)
        return people.count_kept(located, protection.max_records, of_query=of_query, count=records)

    opened, counts = _counted(source, domain, reading, count, progress=progress, tell=tell)
    return _to_matrix(domain, counts, reading, opened)


def check_source(source: Any, domain: Domain, reading: Reading) -> None:
    """Refuse a source that cannot be opened, or whose columns a release could not read. Nothing is counted."""
    with _located(source, domain, reading, None):
        pass


def read_records_of_each(
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

    def count(located: Table, _: bool) -> Table:
        return people.records_of_each(located, most, reading.max_weight or 1)

    _, histogram = _counted(source, domain, reading, count, progress=progress, tell=tell)
    numbers = np.zeros(most, dtype=np.int64)
    numbers[np.asarray(histogram["records"], dtype=np.int64) - 1] = histogram["people"]
    return numbers


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
    reading = Reading.of(locals())  # here the arguments alone
    return read_people(source, domain, reading, grid, progress=progress, tell=tell)


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
    division = Division.of(grid)
    boxes = division.number(check_domain(domain))
    if reading.user is None:
        raise InputError(NOT_PEOPLE)
    reading = replace(
        reading, count=PEOPLE, max_records=None, once_per=None, weight=None, max_weight=None
    )
    most = most_boxes(boxes)

    def count(located: Table, _: bool) -> Table:
        return people.count_distinct(located, most)

    _, found = _counted(source, domain, reading, count, division, progress=progress, tell=tell)
    table = np.zeros((most, boxes), dtype=np.int64)
    places = tuple(np.asarray(found[name], np.int64) for name in (people.RANK, people.BOX))
    ends = zip(places, table.shape, strict=True)
    if any(np.any((place < 0) | (place >= end)) for place, end in ends):
        raise InputError(OUTSIDE_OF_BOUNDS)
    table[places] = found["people"]
    return PeopleByBox(division.given, table, reading.per, reading.told_apart)


def weigh_points(path: Path, domain: Domain, columns: Sequence[str]) -> FloatArray:
    """The number of public points in each cell, for all cells, or the sums of their column `weight`.

    A cell with a negative weight gets that weight, and one with a missing weight gets NaN, so that the
    caller can refuse them.
    """
    reading = Reading(columns)
    with open_rows(path, domain, reading) as rows:
        weighted = people.WEIGHT in rows.opened.columns
        names = [*rows.names, people.WEIGHT] if weighted else rows.names
        table = rows.opened.select(list(dict.fromkeys(names)))
        worth: Any = ibis.literal(1.0)
        if weighted:
            worth = rows.opened.number(table, people.WEIGHT).fill_null(float("nan"))
        with rows.placed(table, worth=worth) as (engine, placed):
            inside = inside_of(placed, domain)
            inside = inside.mutate(cell=cell_of(inside, domain, engine))
            inside = inside.filter(inside[people.CELL].notnull())
            sums_of = {"sum": inside.worth.sum(), "least": inside.worth.min()}
            totals = engine.run(inside.group_by(people.CELL).agg(**sums_of), rows.opened.name)
    sums, least = (np.asarray(totals[name], dtype=np.float64) for name in ("sum", "least"))
    weights = np.zeros(domain.size)
    weights[np.asarray(totals[people.CELL], dtype=np.int64)] = np.where(least < 0, least, sums)
    return weights.reshape(domain.shape)


def has_columns(path: Path, names: Sequence[str]) -> bool:
    """Whether a file can be read and has these columns."""
    try:
        needed = Needed(lambda header: set(names) <= set(header))
        with open_source(path, Access(), needed) as opened:
            return set(names) <= set(opened.columns)
    except InputError:
        return False


def _counted(
    source: Any,
    domain: Domain,
    reading: Reading,
    count: Callable[[Table, bool], Table],
    division: Division | None = None,
    *,
    progress: Progress | None,
    tell: Tell | None,
) -> tuple[Source, dict[str, Any]]:
    """What `count` makes of the records inside, and the source that had them. It is told whether they come from a query."""
    check_domain(domain)
    arguments.function(progress, "progress")
    arguments.function(tell, "tell")
    with _located(source, domain, reading, tell, division) as (rows, engine, located):
        opened = rows.opened
        counts = engine.run(count(located, opened.of_query), opened.name, progress)
        opened.listing.check_unchanged()  # so that remarks are about the rows that were counted
        if tell is not None:
            remark_unread(rows, tell)
        if not all(map(len, counts.values())):
            remark_nothing(rows, tell)
        opened.listing.check_unchanged()
    return opened, counts


@contextmanager
def _located(
    source: Any,
    domain: Domain,
    reading: Reading,
    tell: Tell | None,
    division: Division | None = None,
) -> Iterator[tuple[Rows, Engine, Table]]:
    """The records inside the bounds, each with its cell and, if there are any, its person and time; and the engine
    that has them. With a `division`, also the area of it that the record lies in."""
    with open_rows(source, domain, reading) as rows:
        if reading.wanted(source, domain)[0] is None:
            (tell or logging.getLogger("htf").info)(guess_told(rows))
        table = rows.table()
        check_times(rows, table, tell)
        whose = rows.whose(table)
        with rows.placed(table, **whose) as (engine, placed):
            inside = inside_of(in_span(placed, reading), domain)
            for name in (people.PERSON, people.PERIOD):
                if name in whose:
                    inside = inside.filter(inside[name].notnull())
            kept = {n: inside[n] for n in (*people.WHO, people.TIME, people.WEIGHT) if n in whose}
            if division is not None:
                kept[people.BOX] = box_of(inside, domain, engine, division)
            located = inside.select(cell=cell_of(inside, domain, engine), **kept)
            if reading.weight is not None:
                located = only_weighed(located)
            yield rows, engine, located if reading.once_per is None else people.keep_once(located)


def _to_matrix(
    domain: Domain, counts_by_cell: dict[str, Any], reading: Reading, opened: Source
) -> FrequencyMatrix:
    protection = replace(reading.protection, of_query=opened.of_query)
    order = np.argsort(counts_by_cell[people.CELL])  # the engine returns cells in any order
    keys = np.asarray(counts_by_cell[people.CELL], dtype=np.int64)[order]
    if len(keys) and not 0 <= keys[0] <= keys[-1] < domain.size:
        raise InputError(OUTSIDE_OF_BOUNDS)
    counts = np.asarray(counts_by_cell["records"], dtype=np.int64)[order]
    if int(counts.sum()) > MOST_RECORDS:
        what = "more than 2**40 records" if protection.weight is None else "sums above 2**40"
        raise InputError(f"{what} are not supported")
    weighed = None
    if protection.weight is not None:
        kept, above = (int(np.sum(counts_by_cell[name])) for name in (KEPT, ABOVE))
        weighed, some = WeighedRecords(kept - above, above), counts > 0
        keys, counts = keys[some], counts[some]
    files, cells = mark_files(opened.listing.paths), unravel(keys, domain.shape)
    return FrequencyMatrix(domain, cells, counts, protection, files, weighed, reading.told_apart)


def read_records_per_person(
    source: Any,
    domain: Domain,
    columns: Sequence[str | None] | None = None,
    *,
    user: str,
    most: int = USUAL_MOST_RECORDS,
    per: str | None = None,
    once_per: str | None = None,
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
) -> RecordsPerPerson:
    """Count how many people have how many records inside the map, for `measure_activity`.

    Give the arguments that `read_points` gets, so that the same records count: those outside the bounds do not.

    Parameters
    ----------
    source : object
        As in `read_points`.
    domain : Domain
        The map.
    columns : sequence of str, optional
        One column for each axis of the map, as in `read_points`.
    user : str
        Column naming the person.
    most : int
        Someone with more records counts as having that many. Choose it without looking at the data, as
        `--most-records` of the command line.
    per : {"day", "week", "month"}, optional
        Count each person in each such period of `time` as one.
    once_per : {"hour", "day", "all"}, optional
        First keep at most one record for each person, cell and hour or day of `time`, or ever.
    time : str, optional
        Column of times.
    time_unit : str
        The unit of times that are numbers.
    time_format : str, optional
        The form of times that are text, such as `%d.%m.%Y %H:%M`. By default ISO 8601.
    utc_offset : int
        Seconds to add to times before they are cut into hours and days.
    since, until : int or str, optional
        Count only records of this time or later, and before that one.
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
    RecordsPerPerson
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
    >>> rides = {"lon": [0.5, 0.6, 9.5], "lat": [0.5, 0.4, 1.5], "rider": ["a", "a", "a"]}
    >>> people = htf.read_records_per_person(rides, domain, ["lon", "lat"], user="rider")
    >>> activity = htf.measure_activity(people, 0.1, noise="seeded:1")
    """
    reading = replace(Reading.of(locals()), max_records=AUTO)  # here the arguments alone
    Protection(PERSON, most)  # refuses what is no number of records
    counted = read_records_of_each(source, domain, reading, most, progress=progress, tell=tell)
    return RecordsPerPerson(counted, reading.told_apart)
