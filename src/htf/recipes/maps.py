"""Where a map is, which axes it has, and which columns these come from, declared once and read from text."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from htf.base.numerals import decimal, whole
from htf.base.options import DEST, option, spoken
from htf.errors import InputError
from htf.query.texts import read_numbers

if TYPE_CHECKING:
    from htf.frame.domain import Axis, Domain

SAME = "same"
CELLS = "1024"


@dataclass(frozen=True, slots=True)
class MapOptions:
    """The map, and the columns that its axes come from."""

    x_column: str | None = option(
        "Column of the x axis, e.g. longitude.  [default: guessed]", "COLUMN", flag="--x"
    )
    y_column: str | None = option(
        "Column of the y axis, e.g. latitude.  [default: guessed]", "COLUMN", flag="--y"
    )
    bounds: str | None = option(
        "Bounds of the map. Choose them without looking at the data.", "W,S,E,N"
    )
    around: str | None = option("Or: a square of KM km around a point.", "LAT,LON,KM")
    cells: str | None = option(f"Cells of the grid per side.  [default: {CELLS}]", "N|NX,NY")
    zones: Path | None = option(
        "Or: a public layer of zones (GeoPackage, GeoJSON, shapefile, GeoParquet). Counts are then of zones, not "
        "of cells of a grid. With --bounds or --around: of both, a map that adds up to the zones.",
        "FILE",
    )
    by: str | None = option("With --zones: column of the layer that names zones.", "COLUMN")
    within: str | None = option(
        "With --zones: columns that name the zones above them, from the lowest up.", "COLUMN,…"
    )
    map_crs: str | None = option(
        "Reference system of the map and its bounds.  [default: that of the zones, else degrees, OGC:CRS84]",
        "CRS",
        flag="--crs",
    )
    dest_x: str | None = option(
        "Column of the destination's x, as a further axis.", "COLUMN", group=DEST
    )
    dest_y: str | None = option(
        "Column of the destination's y, as a further axis.", "COLUMN", group=DEST
    )
    dest_zones: str | None = option(
        "The layer of destinations.  [default: same, the layer of --zones]",
        f"FILE|{SAME}",
        group=DEST,
    )
    dest_by: str | None = option(
        "Column of that layer that names zones.  [default: --by]", "COLUMN", group=DEST
    )
    dest_within: str | None = option(
        "Columns of that layer that name the zones above them.  [default: none; --within for the same layer]",
        "COLUMN,…",
        group=DEST,
    )
    axes: tuple[str, ...] = option(
        "One more axis. COLUMN may be hour(T), weekday(T) or day(T) of a column T of times.",
        "NAME:COLUMN:LOW:HIGH:CELLS",
        flag="--axis",
        default=(),
    )
    categories: tuple[str, ...] = option(
        "One more axis, of names from a public list: names with commas between them, a .txt file with one on each "
        "line, or a .csv file whose first line names levels, as in offence,group. Never take it from the data.",
        "NAME[:COLUMN]=LIST",
        flag="--category",
        default=(),
    )
    other: tuple[str, ...] = option(
        "Count values that are not in the list of this category under the name `other`; or, for zone, points in no "
        "zone under the name `elsewhere`. Without it such records are left out.",
        "NAME|zone",
        default=(),
    )

    def read(self) -> tuple[Domain, list[str | None]]:
        """The map, and one column for each axis, two for zones; None where it is to be guessed."""
        from htf.frame.domain import Domain

        self._check_pairs()
        columns: list[str | None] = [self.x_column, self.y_column]
        if self.zones is None or self.is_map_inside:
            flat = self._read_flat()
            axes, crs = list(flat.axes), flat.crs
            axes += [] if self.dest_x is None else _destination(flat)
        else:
            axes = self._read_zones(self.zones)
            crs = Domain(tuple(axes)).crs
        columns += [] if self.dest_x is None else [self.dest_x, self.dest_y]
        for axis, column in (*map(read_axis, self.axes), *self._read_categories()):
            axes.append(axis)
            columns.append(column)
        return Domain(tuple(axes), crs), columns

    @property
    def is_map_inside(self) -> bool:
        """Whether both a map and zones are asked for."""
        return self.zones is not None and (self.bounds is not None or self.around is not None)

    def read_zones_around(self, domain: Domain) -> Domain | None:
        """The zones that a map is inside of, in its reference system; None if there are none."""
        from htf.frame.domain import Domain

        if self.zones is None or not self.is_map_inside:
            return None
        others = {"--dest x": self.dest_x, "--axis": self.axes, "--category": self.categories}
        for name, given in others.items():
            if given:
                raise InputError(
                    f"a map inside zones has the axes x and y alone: leave out {name}, or --zones, or --bounds"
                )
        return Domain(tuple(self._read_zones(self.zones, domain.crs)))

    @property
    def files(self) -> tuple[Path, ...]:
        """The public files of zones and categories."""
        lists = [text.partition("=")[2] for text in self.categories]
        named = [self.zones, self.dest_zones, *lists]
        return tuple(Path(name) for name in named if name is not None and Path(name).is_file())

    def _check_pairs(self) -> None:
        if (self.x_column is None) != (self.y_column is None):
            raise InputError("give both --x and --y, or neither")
        if (self.dest_x is None) != (self.dest_y is None):
            raise InputError("give both --dest x and --dest y, or neither")

    def _read_flat(self) -> Domain:
        named = ("by", "within", "dest_zones", "dest_by", "dest_within")
        for name in named:
            if getattr(self, name) is not None and self.zones is None:
                raise InputError(f"{spoken(self, name)} needs zones: give --zones FILE")
        return read_domain(self.bounds, self.around, self.cells or CELLS, self.map_crs)

    def _read_zones(self, layer: Path, crs: str | None = None) -> list[Axis]:
        """The axis of zones, and one of the zones of destinations if there are any."""
        from htf.ingest.layers import AS_ZONE, DEST_ZONE, DROP, ZONE, read_zones

        if self.cells is not None and not self.is_map_inside:
            raise InputError(
                "zones have outlines of their own: leave out --cells, or give --bounds for a map inside the zones"
            )
        if self.by is None:
            raise InputError("say which column of the layer names the zones: give --by COLUMN")
        if self.dest_x is None and (self.dest_zones or self.dest_by or self.dest_within):
            raise InputError("name the columns of destinations: give --dest x and --dest y")
        elsewhere = AS_ZONE if ZONE in self.other else DROP
        zones = read_zones(
            layer, self.by, _listed(self.within), crs=crs or self.map_crs, elsewhere=elsewhere
        )
        if self.dest_x is None:
            return [zones]
        is_same = self.dest_zones in (None, SAME)
        other = read_zones(
            layer if is_same else str(self.dest_zones),
            self.dest_by or self.by,
            _listed(self.dest_within or (self.within if is_same and not self.dest_by else None)),
            crs=_crs_of(zones),
            elsewhere=elsewhere,
            name=DEST_ZONE,
        )
        return [zones, other]

    def _read_categories(self) -> list[tuple[Axis, str]]:
        from htf.ingest.layers import OTHER, ZONE, read_category

        found = []
        for text in self.categories:
            named, given, listed = text.partition("=")
            name, _, column = named.partition(":")
            if not (given and name and listed):
                raise InputError(
                    f"--category takes NAME=LIST or NAME:COLUMN=LIST, as in offence=offences.txt, got {text!r}"
                )
            rest = OTHER if name in self.other else None
            found.append((read_category(name, listed, rest), column or name))
        known = [axis.name for axis, _ in found]
        for name in self.other:
            if name not in known and not (name == ZONE and self.zones is not None):
                what = (
                    "zones: give --zones FILE"
                    if name == ZONE
                    else f"a list: give --category {name}=LIST"
                )
                raise InputError(f"--other {name} needs {what}")
        return found


def _listed(text: str | None) -> list[str]:
    return [] if text is None else [one.strip() for one in text.split(",")]


def _crs_of(zones: Axis) -> str | None:
    outlines = None if zones.names is None else zones.names.outlines
    return None if outlines is None else outlines.crs


def read_domain(
    bounds: str | None, around: str | None, cells: str, crs: str | None = None
) -> Domain:
    """The flat map that --bounds or --around describe."""
    from htf.frame.bounds import check_bounds, check_not_polar
    from htf.frame.crs import CRS84, check_crs, same_crs
    from htf.frame.domain import Domain

    grid = read_cells(cells)
    if (bounds is None) == (around is None):
        raise InputError(
            "say where the map is: give --bounds W,S,E,N, or --around LAT,LON,KM, or --zones FILE"
        )
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
    from htf.ingest.columns import DESTINATION

    return [
        Axis(name, axis.low, axis.high, axis.cells)
        for name, axis in zip(DESTINATION, flat.axes, strict=True)
    ]
