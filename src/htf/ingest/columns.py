"""Finds the columns that say where a record is, whose it is, and when it was made."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from htf.errors import InputError
from htf.frame.axis import LABEL, PLACE
from htf.frame.crs import CRS84, is_projected
from htf.frame.domain import Axis, Domain
from htf.ingest import expressions as ex

# Pairs of names that mean x and y. Both may have the same prefix, as in pickup_lon.
PAIRS = (
    ("lon", "lat"), ("lng", "lat"), ("long", "lat"), ("longitude", "latitude"), ("x", "y"),
    ("easting", "northing"), ("eastings", "northings"),
)  # fmt: skip
DEGREES_EAST = {"lon", "lng", "long", "longitude"}
DEGREES_NORTH = {"lat", "latitude"}
OF_TIME = tuple(ex.OF_TIME)
OF_GEOMETRY = ("x", "y")
OF_NAMES = "name"
DESTINATION = ("dest_x", "dest_y")
_OF_TIME = re.compile(rf"({'|'.join(OF_TIME)})\((.+)\)")


class Field(NamedTuple):
    """The source of the place along one axis: a column, or a part of its value."""

    column: str
    # Of a geometry: x or y; of a time: hour, weekday or day; of a list of names: name.
    part: str = ""

    @property
    def of_geometry(self) -> bool:
        return self.part in OF_GEOMETRY

    @property
    def of_time(self) -> bool:
        return self.part in OF_TIME

    @property
    def of_names(self) -> bool:
        return self.part == OF_NAMES


def inputs(domain: Domain) -> list[Axis]:
    """The axis of each column that a record needs. Zones need two, x and y, and all other axes one."""
    return [axis for axis in domain.axes for _ in axis.inputs]


def pairs(domain: Domain) -> list[int]:
    """The numbers of the columns that are an x with its y next to it: of places, destinations and zones."""
    starts = [0] if domain.has_map else []
    if domain.has_map and domain.names[2:4] == DESTINATION:
        starts.append(2)
    column = 0
    for axis in domain.axes:
        if axis.inputs == PLACE:
            starts.append(column)
        column += len(axis.inputs)
    return starts


def default_columns(domain: Domain) -> list[str | None]:
    """The columns if nobody names them: the first place is guessed, and all else has the name of its axis."""
    names: list[str | None] = []
    for number, axis in enumerate(domain.axes):
        if axis.inputs == PLACE:
            names += DESTINATION if number else [None, None]
        else:
            names.append(None if domain.has_map and number < 2 else axis.name)
    return names


def find_fields(
    there: Sequence[str], domain: Domain, wanted: Sequence[str | None], geometry: str | None
) -> list[Field]:
    """One field for each column that is needed. The first two are guessed if they are not named and the guess is
    clear."""
    axes = inputs(domain)
    fields = [
        None if name is None else _field_of(axis, name, there)
        for axis, name in zip(axes, wanted, strict=True)
    ]
    if fields[:2] == [None, None]:
        fields[:2] = _guess(there, geometry)
    for axis, field in zip(axes, fields, strict=True):
        if field is None:
            raise InputError(f"there is no column for axis {axis.name!r}: name one")
        check_there(field.column, there)
    found = [field for field in fields if field is not None]
    if domain.crs == CRS84 and 0 in pairs(domain):
        _refuse_swapped(found)
    return found


def fits(wanted: Iterable[str | None], others: Iterable[str | None], header: Sequence[str]) -> bool:
    """Whether a header has the columns we need, or leaves no doubt about the guess."""
    wanted = list(wanted)
    if any(like(name, header) is None for name in columns_in(wanted, others, header)):
        return False
    return None not in wanted[:2] or len(likely_pairs(header)) == 1


def columns_in(
    wanted: Iterable[str | None], others: Iterable[str | None], there: Sequence[str]
) -> list[str]:
    """The columns that are named, each once: of hour(ts) it is ts."""
    named = [_read_field(name, there).column for name in wanted if name is not None]
    return list(dict.fromkeys([*named, *(name for name in others if name is not None)]))


def like(name: str, there: Sequence[str]) -> str | None:
    """The column of this name, or else the only one that differs from it by case alone."""
    alike = [one for one in there if one.casefold() == name.casefold()]
    return name if name in there else alike[0] if len(alike) == 1 else None


def check_there(name: str, there: Sequence[str]) -> None:
    if name not in there:
        alike = [one for one in there if one.casefold() == name.casefold()]
        if alike:
            raise InputError(
                f"there is no column {name!r}, but {'several are' if alike[1:] else 'one is'} like it: name "
                f"{'one of ' if alike[1:] else ''}{', '.join(map(repr, alike))}"
            )
        names = ", ".join(map(repr, there))
        raise InputError(f"there is no column {name!r}; there are {names or 'none'}")


def _field_of(axis: Axis, name: str, there: Sequence[str]) -> Field:
    if axis.inputs == LABEL:
        return Field(name, OF_NAMES)
    return _read_field(name, there)


def _read_field(name: str, there: Sequence[str]) -> Field:
    """Read a field: `hour(ts)` is the hour of the column ts, unless a column has exactly that name."""
    match = None if name in there else _OF_TIME.fullmatch(name)
    return Field(name) if match is None else Field(match[2], match[1])


def _guess(there: Sequence[str], geometry: str | None) -> list[Field | None]:
    if geometry is not None:
        return [Field(geometry, part) for part in OF_GEOMETRY]
    pairs = likely_pairs(there)
    if len(pairs) == 1:
        return [Field(name) for name in pairs[0]]
    names = ", ".join(map(repr, there))
    why = "none" if not pairs else f"{len(pairs)} pairs"
    raise InputError(
        f"which columns are x and y? Of {names}, {why} would do: name them with --x and --y "
        "(in Python: columns)"
    )


def likely_pairs(there: Sequence[str]) -> list[tuple[str, str]]:
    """All (x, y) that could be meant. Plain names come before those with a prefix, as in dest_lon."""
    by_name = {name.casefold(): name for name in there}
    found = [
        (start, (name, by_name[start + y]))
        for name in there
        for start, word in [_split(name)]
        for x, y in PAIRS
        if word == x and start + y in by_name
    ]
    return [pair for start, pair in found if not start] or [pair for _, pair in found]


def _split(name: str) -> tuple[str, str]:
    """`Pickup_Lon` is pickup_ and lon."""
    match = re.fullmatch(r"(.*[^a-z])?([a-z]+)", name.casefold())
    return ("", "") if match is None else (match[1] or "", match[2])


def refuse_degrees(fields: Sequence[Field], domain: Domain, crs: str | None) -> None:
    """Refuse longitudes and latitudes on a map in metres, unless told. Only names of columns count."""
    if crs is not None or domain.crs is None or 0 not in pairs(domain):
        return
    x, y = fields[0].column, fields[1].column
    are_degrees = _split(x)[1] in DEGREES_EAST and _split(y)[1] in DEGREES_NORTH
    if are_degrees and is_projected(domain.crs):
        raise InputError(
            f"the map is in {domain.crs}, but the columns {x!r} and {y!r} have the names of degrees: say what they "
            "are in with --read points-crs (in Python: crs), EPSG:4326 for degrees or the map's own"
        )


def _refuse_swapped(fields: Sequence[Field]) -> None:
    """Refuse x and y in the wrong order: on a map in degrees x is the longitude. Only names count."""
    x, y = fields[0].column, fields[1].column if len(fields) > 1 else ""
    if _split(x)[1] in DEGREES_NORTH and _split(y)[1] in DEGREES_EAST:
        raise InputError(
            f"x should be the longitude, but it is the column {x!r}, and y is {y!r}: are they "
            "swapped? (If the columns have the wrong names, rename them.)"
        )
