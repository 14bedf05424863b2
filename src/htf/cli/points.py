"""The options that describe points: where they are, what their columns mean, and the map.

`MapOptions` and `htf.ingest.reading.Reading` declare them. `htf release` has all of them; `htf forecast`,
`htf evaluate` and `htf paper` have some.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from htf.base.numerals import decimal, whole
from htf.base.options import option
from htf.cli.declared import option_of, options_of, take
from htf.errors import InputError
from htf.ingest.reading import Reading
from htf.query.texts import read_numbers

if TYPE_CHECKING:
    from htf.frame.domain import Axis, Domain

F = TypeVar("F", bound=Callable[..., Any])
DESTINATION = ("dest_x", "dest_y")


@dataclass(frozen=True, slots=True)
class MapOptions:
    """The map, and the columns that its axes come from."""

    x_column: str | None = field(
        default=None,
        metadata=option(
            "Column of the x axis, e.g. longitude.  [default: guessed]", "COLUMN", flag="--x"
        ),
    )
    y_column: str | None = field(
        default=None,
        metadata=option(
            "Column of the y axis, e.g. latitude.  [default: guessed]", "COLUMN", flag="--y"
        ),
    )
    bounds: str | None = field(
        default=None,
        metadata=option("Bounds of the map. Choose them without looking at the data.", "W,S,E,N"),
    )
    around: str | None = field(
        default=None, metadata=option("Or: a square of KM km around a point.", "LAT,LON,KM")
    )
    cells: str = field(default="1024", metadata=option("Cells of the grid per side.", "N|NX,NY"))
    map_crs: str | None = field(
        default=None,
        metadata=option(
            "Reference system of the map and its bounds.  [default: degrees, OGC:CRS84]",
            "CRS",
            flag="--crs",
        ),
    )
    dest_x: str | None = field(
        default=None,
        metadata=option("For trips: column of the destination's x, as a third axis.", "COLUMN"),
    )
    dest_y: str | None = field(
        default=None,
        metadata=option("For trips: column of the destination's y, as a fourth axis.", "COLUMN"),
    )
    axes: tuple[str, ...] = field(
        default=(),
        metadata=option(
            "One more axis. COLUMN may be hour(T), weekday(T) or day(T) of a column T of times.",
            "NAME:COLUMN:LOW:HIGH:CELLS",
            flag="--axis",
        ),
    )

    def read(self) -> tuple[Domain, list[str | None]]:
        """The map, and one column for each axis; None where it is to be guessed."""
        from htf.frame.domain import Domain

        flat = read_domain(self.bounds, self.around, self.cells, self.map_crs)
        columns: list[str | None] = [self.x_column, self.y_column]
        axes = list(flat.axes)
        if (self.x_column is None) != (self.y_column is None):
            raise InputError("give both --x and --y, or neither")
        if (self.dest_x is None) != (self.dest_y is None):
            raise InputError("give both --dest-x and --dest-y, or neither")
        if self.dest_x is not None:
            columns += [self.dest_x, self.dest_y]
            axes += _destination(flat)
        for text in self.axes:
            axis, column = read_axis(text)
            axes.append(axis)
            columns.append(column)
        return Domain(tuple(axes), flat.crs), columns


def points_options(command: F) -> F:
    """A decorator: POINTS and every option that describes them."""
    for decorate in (options_of(Reading), options_of(MapOptions), click.argument("points")):
        command = decorate(command)
    return command


def reading_option(name: str, **changes: Any) -> Callable[[F], F]:
    """A decorator: one option of `htf release` that says what its records mean, for a command without records."""
    return option_of(Reading, name, **changes)


def read_made_up(count: str | None, per: str | None, max_records: int | str | None) -> Reading:
    """What is counted of made-up people, by the rules of `htf release`."""
    return Reading(user="person", time="time", count=count, per=per, max_records=max_records)


@dataclass(frozen=True, slots=True)
class Points:
    """A source of points, and how to read it onto the map."""

    source: str
    domain: Domain
    reading: Reading

    @property
    def name(self) -> str:
        """For progress bars. An address may hold a password, so none of it is shown."""
        return "the database" if "://" in self.source else Path(self.source).name


def read_points_options(points: str, given: dict[str, Any]) -> Points:
    """Check everything that can be checked before the points are read."""
    reading = take(Reading, given)
    _check_words(reading["crs"], reading["memory"])
    domain, columns = MapOptions(**take(MapOptions, given)).read()
    return Points(points, domain, Reading(columns, **reading))


def _check_words(points_crs: str | None, memory: str | None) -> None:
    """Refuse now what the reader would refuse too, perhaps after minutes."""
    from htf.frame.crs import name_of_crs
    from htf.ingest.engines import read_memory

    if points_crs is not None:
        name_of_crs(points_crs)
    if memory is not None:
        read_memory(memory)


def read_domain(
    bounds: str | None, around: str | None, cells: str, crs: str | None = None
) -> Domain:
    """The flat map that --bounds or --around describe."""
    from htf.frame.bounds import check_bounds, check_not_polar
    from htf.frame.crs import CRS84, check_crs, same_crs
    from htf.frame.domain import Domain

    grid = read_cells(cells)
    if (bounds is None) == (around is None):
        raise InputError("say where the map is: give --bounds W,S,E,N or --around LAT,LON,KM")
    if bounds is not None:
        given = crs
        check_crs(crs or CRS84)
        if crs is None or same_crs(crs, CRS84):  # longitude always comes first, also in EPSG:4326
            crs = CRS84
        west, south, east, north = read_numbers(bounds, "--bounds", 4, "W,S,E,N")
        domain = Domain.from_bounds(west, south, east, north, grid, crs=crs)
        check_bounds(domain)
        if crs == CRS84 and given != CRS84:  # whoever writes that knows that longitude comes first
            check_not_polar(domain)
        return domain
    if crs is not None:
        raise InputError("--around is in degrees: with --crs give --bounds in its units")
    latitude, longitude, side = read_numbers(str(around), "--around", 3, "LAT,LON,KM")
    return Domain.square(latitude, longitude, side, grid)


def read_cells(text: str) -> int | tuple[int, int]:
    """`1024`, or `512,1024` for different numbers along x and y."""
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
    """`hour:hour(ts):0:24:24` is an axis and its column."""
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


def _destination(flat: Domain) -> list[Axis]:
    """The same bounds and cells again."""
    from htf.frame.domain import Axis

    return [
        Axis(name, axis.low, axis.high, axis.cells)
        for name, axis in zip(DESTINATION, flat.axes, strict=True)
    ]
