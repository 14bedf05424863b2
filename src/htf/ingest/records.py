"""How many records people have: what `measure_activity` starts from (sensitive)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from htf.base.options import AUTO, USUAL_MOST_RECORDS
from htf.curator.contributions import RecordsPerPerson
from htf.frame.domain import Domain
from htf.ingest import points
from htf.ingest.engines import Progress
from htf.ingest.reading import DUCKDB, POINT, Reading
from htf.ingest.remarks import Tell
from htf.privacy.protection import PERSON, Protection


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
    counted = points.read_records_per_person(
        source, domain, reading, most, progress=progress, tell=tell
    )
    return RecordsPerPerson(counted, reading.told_apart)
