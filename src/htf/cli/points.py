"""What the options say of the points: where they are, what their columns mean, and the map."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from htf.base.numerals import decimal, whole
from htf.cli.types import WholeNumber
from htf.errors import InputError
from htf.query.texts import read_numbers

if TYPE_CHECKING:
    from htf.frame.domain import Axis, Domain
    from htf.ingest.points import Reading
    from htf.ingest.sources import Access

F = TypeVar("F", bound=Callable[..., Any])
DESTINATION = ("dest_x", "dest_y")

OPTIONS = (
    click.argument("points"),
    click.option("--table", metavar="NAME", help="Table of a database."),
    click.option("--sql", metavar="QUERY", help="Instead: one SELECT of it."),
    click.option("--x", "x_column", metavar="COLUMN", help="x axis, e.g. longitude.  [default: guessed]"),
    click.option("--y", "y_column", metavar="COLUMN", help="y axis, e.g. latitude.  [default: guessed]"),
    click.option("--bounds", metavar="W,S,E,N", help="Bounds of the map, chosen without the data."),
    click.option("--around", metavar="LAT,LON,KM", help="Instead: a square of KM km around a point."),
    click.option("--cells", default="1024", show_default=True, metavar="N|NX,NY", help="Grid cells."),
    click.option("--crs", metavar="CRS", help="Of the map and its bounds.  [default: degrees, OGC:CRS84]"),
    click.option("--points-crs", metavar="CRS", help="Of the points, if it is not the map's."),
    click.option("--dest-x", metavar="COLUMN", help="Of trips: x of the destination, a third axis."),
    click.option("--dest-y", metavar="COLUMN", help="… and its y, a fourth."),
    click.option(
        "--axis", "axes", multiple=True, metavar="NAME:COLUMN:LOW:HIGH:CELLS",
        help="One more axis; COLUMN may be hour(T), weekday(T) or day(T) of a column T of times.",
    ),
    click.option("--user", metavar="COLUMN", help="Who a record is of: epsilon is then for a person."),
    click.option("--max-records", type=WholeNumber(1), metavar="K", help="Records kept of each person at most."),
    click.option(
        "--once-per", metavar="hour|day|all",
        help="First keep one record of each person, cell and hour or day, or ever.",
    ),
    click.option("--time", metavar="COLUMN", help="When: ISO 8601, timestamps, or numbers since 1970."),
    click.option("--time-unit", default="s", show_default=True, metavar="s|ms|us|ns", help="Of numbers."),
    click.option("--utc-offset", metavar="±HH:MM", help="Added to times before hours and days are cut."),
    click.option("--engine", default="duckdb", show_default=True, metavar="duckdb|spark", help="For files."),
    click.option("--memory", metavar="SIZE", help="What the engine may take, e.g. 4GB; the rest is on disk."),
)  # fmt: skip


def points_options(command: F) -> F:
    """The options above, in their order."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


@dataclass(frozen=True, slots=True)
class Points:
    """Where the points are, and how to read them onto the map."""

    source: str
    domain: Domain
    reading: Reading
    access: Access
    max_records: int | None

    @property
    def name(self) -> str:
        """For progress bars: of an address, which may hold a password, nothing."""
        return "the database" if "://" in self.source else Path(self.source).name


def read_points_options(
    points: str,
    table: str | None,
    sql: str | None,
    x_column: str | None,
    y_column: str | None,
    bounds: str | None,
    around: str | None,
    cells: str,
    crs: str | None,
    points_crs: str | None,
    dest_x: str | None,
    dest_y: str | None,
    axes: tuple[str, ...],
    user: str | None,
    max_records: int | None,
    once_per: str | None,
    time: str | None,
    time_unit: str,
    utc_offset: str | None,
    engine: str,
    memory: str | None,
) -> Points:
    """Check all that can be checked before the points are looked at."""
    from htf.frame.domain import Domain
    from htf.ingest.points import Reading
    from htf.ingest.sources import Access

    _check_words(points_crs, memory)
    flat = read_domain(bounds, around, cells, crs)
    columns: list[str | None] = [x_column, y_column]
    more = list(flat.axes)
    if (x_column is None) != (y_column is None):
        raise InputError("give both or neither: --x and --y")
    if (dest_x is None) != (dest_y is None):
        raise InputError("give both or neither: --dest-x and --dest-y")
    if dest_x is not None:
        columns += [dest_x, dest_y]
        more += _destination(flat)
    for text in axes:
        axis, column = read_axis(text)
        more.append(axis)
        columns.append(column)
    offset = 0 if utc_offset is None else read_offset(utc_offset)
    reading = Reading(columns, points_crs, user, time, time_unit, offset, once_per)
    domain = Domain(tuple(more), flat.crs)
    return Points(points, domain, reading, Access(table, sql, engine, memory), max_records)


def _check_words(points_crs: str | None, memory: str | None) -> None:
    """Refuse what only the reader would, after minutes perhaps."""
    from htf.frame.crs import name_of_crs
    from htf.ingest.engines import read_memory

    if points_crs is not None:
        name_of_crs(points_crs)
    if memory is not None:
        read_memory(memory)


def read_domain(
    bounds: str | None, around: str | None, cells: str, crs: str | None = None
) -> Domain:
    from htf.frame.bounds import check_bounds, check_not_polar
    from htf.frame.crs import CRS84, check_crs, same_crs
    from htf.frame.domain import Domain

    grid = read_cells(cells)
    if (bounds is None) == (around is None):
        raise InputError("give the map's place: either --bounds W,S,E,N or --around LAT,LON,KM")
    if bounds is not None:
        given = crs
        check_crs(crs or CRS84)
        if crs is None or same_crs(crs, CRS84):  # longitude always comes first, also of EPSG:4326
            crs = CRS84
        west, south, east, north = read_numbers(bounds, "--bounds", 4, "W,S,E,N")
        found = Domain.from_bounds(west, south, east, north, grid, crs=crs)
        check_bounds(found)
        if crs == CRS84 and given != CRS84:  # who writes that knows that longitude comes first
            check_not_polar(found)
        return found
    if crs is not None:
        raise InputError("--around is in degrees: with --crs give --bounds in its units")
    latitude, longitude, side = read_numbers(str(around), "--around", 3, "LAT,LON,KM")
    return Domain.square(latitude, longitude, side, grid)


def read_cells(text: str) -> int | tuple[int, int]:
    try:
        numbers = [whole(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) == 1:
        return numbers[0]
    if len(numbers) == 2:
        return numbers[0], numbers[1]
    raise InputError(f"--cells takes N or NX,NY, whole numbers, got {text!r}")


def read_axis(text: str) -> tuple[Axis, str]:
    """`hour:hour(ts):0:24:24` is an axis and the column that it is of."""
    from htf.frame.domain import Axis

    name, _, rest = text.partition(":")
    parts = rest.rsplit(":", 3)
    try:
        column, low, high = parts[0], decimal(parts[1]), decimal(parts[2])
        cells = whole(parts[3])
    except (ValueError, IndexError):
        raise InputError(
            f"--axis takes NAME:COLUMN:LOW:HIGH:CELLS, as in hour:hour(ts):0:24:24, got {text!r}"
        ) from None
    return Axis(name, low, high, cells), column


def read_offset(text: str) -> int:
    """`+08:00` is 28800 seconds."""
    found = re.fullmatch(r"([+-])([0-9]{1,2}):?([0-5][0-9])?", text)
    if found is None:
        raise InputError(
            f"--utc-offset takes hours and minutes, as in +08:00 or -05:30, got {text!r}"
        )
    seconds = int(found[2]) * 3600 + int(found[3] or 0) * 60
    return -seconds if found[1] == "-" else seconds


def _destination(flat: Domain) -> list[Axis]:
    """The same bounds and cells again."""
    from htf.frame.domain import Axis

    return [
        Axis(name, axis.low, axis.high, axis.cells)
        for name, axis in zip(DESTINATION, flat.axes, strict=True)
    ]
