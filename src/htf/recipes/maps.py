"""Where the map of a recipe is, which axes it has, and which columns these come from, read from text."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from htf.base.numerals import decimal, whole
from htf.base.options import spoken
from htf.errors import InputError
from htf.query.texts import read_numbers

if TYPE_CHECKING:
    from htf.frame.domain import Axis, Domain
    from htf.recipes.recipe import Recipe

SAME = "same"
CELLS = "1024"


def read_axes(recipe: Recipe) -> tuple[Domain, list[str | None]]:
    """The map, and one column for each axis, two for zones; None where it is to be guessed."""
    from htf.frame.domain import Domain

    _check_pairs(recipe)
    columns: list[str | None] = [recipe.x, recipe.y]
    if recipe.zones is None or recipe.is_map_inside:
        flat = _read_flat(recipe)
        axes, crs = list(flat.axes), flat.crs
        axes += [] if recipe.dest_x is None else _destination(flat)
    else:
        axes, crs = _read_zones(recipe, recipe.zones), None
    columns += [] if recipe.dest_x is None else [recipe.dest_x, recipe.dest_y]
    for axis, column in (*map(read_axis, recipe.axes), *_read_categories(recipe)):
        axes.append(axis)
        columns.append(column)
    return Domain(tuple(axes), crs), columns


def read_zones_around(recipe: Recipe, domain: Domain) -> Domain | None:
    """The zones that a map is inside of, in its reference system; None if there are none."""
    from htf.frame.domain import Domain

    if recipe.zones is None or not recipe.is_map_inside:
        return None
    others = {"--dest x": recipe.dest_x, "--axis": recipe.axes, "--category": recipe.categories}
    for name, given in others.items():
        if given:
            raise InputError(
                f"a map inside zones has the axes x and y alone: leave out {name}, or --zones, or --bounds"
            )
    return Domain(tuple(_read_zones(recipe, recipe.zones, domain.crs)))


def map_files(recipe: Recipe) -> tuple[Path, ...]:
    """The public files of zones and categories."""
    lists = [text.partition("=")[2] for text in recipe.categories]
    named = [recipe.zones, recipe.dest_zones, *lists]
    return tuple(Path(name) for name in named if name is not None and Path(name).is_file())


def _check_pairs(recipe: Recipe) -> None:
    if (recipe.x is None) != (recipe.y is None):
        raise InputError("give both --x and --y, or neither")
    if (recipe.dest_x is None) != (recipe.dest_y is None):
        raise InputError("give both --dest x and --dest y, or neither")


def _read_flat(recipe: Recipe) -> Domain:
    named = ("by", "within", "dest_zones", "dest_by", "dest_within")
    for name in named:
        if getattr(recipe, name) is not None and recipe.zones is None:
            raise InputError(f"{spoken(recipe, name)} needs zones: give --zones FILE")
    return read_domain(recipe.bounds, recipe.around, recipe.cells or CELLS, recipe.crs)


def _read_zones(recipe: Recipe, layer: Path | str, crs: str | None = None) -> list[Axis]:
    """The axis of zones, and one of the zones of destinations if there are any."""
    from htf.frame.domain import Domain
    from htf.ingest.layers import AS_ZONE, DEST_ZONE, DROP, ZONE, read_zones

    if recipe.cells is not None and not recipe.is_map_inside:
        raise InputError(
            "zones have outlines of their own: leave out --cells, or give --bounds for a map inside the zones"
        )
    if recipe.by is None:
        raise InputError("say which column of the layer names the zones: give --by COLUMN")
    if recipe.dest_x is None and (recipe.dest_zones or recipe.dest_by or recipe.dest_within):
        raise InputError("name the columns of destinations: give --dest x and --dest y")
    elsewhere = AS_ZONE if ZONE in recipe.other else DROP
    zones = read_zones(
        layer, recipe.by, _listed(recipe.within), crs=crs or recipe.crs, elsewhere=elsewhere
    )
    if recipe.dest_x is None:
        return [zones]
    is_same = recipe.dest_zones in (None, SAME)
    other = read_zones(
        layer if is_same else str(recipe.dest_zones),
        recipe.dest_by or recipe.by,
        _listed(recipe.dest_within or (recipe.within if is_same and not recipe.dest_by else None)),
        crs=Domain((zones,)).crs,
        elsewhere=elsewhere,
        name=DEST_ZONE,
    )
    return [zones, other]


def _read_categories(recipe: Recipe) -> list[tuple[Axis, str]]:
    from htf.ingest.layers import OTHER, ZONE, read_category

    found = []
    for text in recipe.categories:
        named, given, listed = text.partition("=")
        name, _, column = named.partition(":")
        if not (given and name and listed):
            raise InputError(
                f"--category takes NAME=LIST or NAME:COLUMN=LIST, as in offence=offences.txt, got {text!r}"
            )
        rest = OTHER if name in recipe.other else None
        found.append((read_category(name, listed, rest), column or name))
    known = [axis.name for axis, _ in found]
    for name in recipe.other:
        if name not in known and not (name == ZONE and recipe.zones is not None):
            what = (
                "zones: give --zones FILE"
                if name == ZONE
                else f"a list: give --category {name}=LIST"
            )
            raise InputError(f"--other {name} needs {what}")
    return found


def _listed(text: str | None) -> list[str]:
    return [] if text is None else [one.strip() for one in text.split(",")]


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
    from htf.ingest.columns import DESTINATION

    return [replace(axis, name=name) for name, axis in zip(DESTINATION, flat.axes, strict=True)]
