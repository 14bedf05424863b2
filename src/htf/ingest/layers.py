"""Reads a public layer of zones, or a public list of categories, as an axis of named cells. Nothing here looks at records.

Zones keep their order, except that zones of one upper zone come together: then every upper zone is one range of
cells. An outline that crosses itself is repaired by `shapely.make_valid` with the method "structure", as polygons of
queries are. Zones that overlap by more than a sliver are refused, because a record would belong to both.

An edge is straight in the reference system of its layer, but rarely in another. So before corners are transformed,
long edges get more of them. Both zones along an edge get the same ones, to the last bit, so that no gap opens.
"""

from __future__ import annotations

import csv
import datetime as dt
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htf.base import arguments
from htf.base.extras import need
from htf.errors import InputError
from htf.files import is_file
from htf.frame import crs as systems
from htf.frame.domain import Axis, FloatArray
from htf.frame.names import MOST_NAMES, Names, Outlines
from htf.query.polygon_files import ZONES, read_layer
from htf.query.shapes import HALF_TURN, MULTIPOLYGON, POLYGON, Shapes, need_shapely

ZONE, DEST_ZONE = "zone", "dest_zone"
DROP, AS_ZONE = "drop", "zone"
ELSEWHERE = (DROP, AS_ZONE)
ELSEWHERE_LABEL = "elsewhere"
LARGEST_OVERLAP = 0.001  # of the smaller zone
PIECES_OF_LAYER = 256
FARTHEST = 1e80  # a coordinate beyond is no place
MISSING_VALUES = ("<NA>", "NaT")  # as pandas writes them
LISTS, TABLES = (".txt",), (".csv",)
OTHER = "other"
Rows = dict[str, list[Any]]


def read_zones(
    layer: Any,
    by: str,
    within: Sequence[str] = (),
    *,
    crs: str | None = None,
    elsewhere: str = DROP,
    name: str = ZONE,
) -> Axis:
    """Read a public layer of zones, such as census tracts, as an axis. Needs GeoPandas.

    A record is then in the zone that holds its point. Never make the layer from the data to be released.

    Parameters
    ----------
    layer : str, Path or geopandas.GeoDataFrame
        The layer: a GeoPackage, GeoJSON, shapefile or GeoParquet file, or a frame. All of its zones are taken.
    by : str
        The column that names the zones.
    within : sequence of str
        Columns that name the zones above them, from the lowest up, such as `["district", "city"]`. They must nest.
    crs : str, optional
        The reference system of the map, such as `EPSG:2056`. The layer is transformed to it. By default that of
        the layer. If the layer names none, this is it.
    elsewhere : {"drop", "zone"}
        What to do with places in no zone: leave the records out, or count them in a last cell, `elsewhere`.
    name : str
        The name of the axis.

    Returns
    -------
    Axis
        The axis. `htf.Domain((axis,))` is a map of zones, in the reference system of the axis.

    Raises
    ------
    InputError
        If the layer cannot be read; a zone has no name or outline; two have the same name, or overlap; or levels do
        not nest.

    Examples
    --------
    >>> import geopandas, shapely
    >>> import htf
    >>> shapes = [shapely.box(0, 0, 1, 1), shapely.box(1, 0, 2, 1), shapely.box(0, 1, 2, 2)]
    >>> columns = {"tract": ["a", "b", "c"], "district": ["north", "south", "north"]}
    >>> layer = geopandas.GeoDataFrame(columns, geometry=shapes, crs="EPSG:2056")
    >>> zones = htf.read_zones(layer, "tract", ["district"])
    >>> zones.names.levels[0].labels
    ('a', 'c', 'b')
    >>> zones.names.range_of("north")
    (0, 2)
    """
    levels = _level_names(by, within)
    arguments.text(name, "the name of an axis")
    arguments.choice(elsewhere, ELSEWHERE, "elsewhere")
    if crs is not None:
        arguments.text(crs, "crs", "write it like EPSG:2056")
    frame, told = _read_frame(layer)
    rows = _attributes(frame)
    labels = {level: _labels(rows, level, told) for level in levels}
    _check_number(len(frame), told)
    _refuse_twins(labels[by], by, told)
    check_nesting(labels)
    shapes = _outlines(frame, labels[by])
    shapes, own = _in_crs(shapes, frame.crs, crs, labels[by], told)
    _refuse_overlaps(shapes, labels[by], told)
    return Axis.named(name, _names(shapes, labels, rows, own, elsewhere == AS_ZONE))


def _level_names(by: object, within: object) -> list[str]:
    upper = arguments.items(within, "within", "a list of names of columns")
    levels = [arguments.text(by, "by, the column that names the zones")]
    levels += [arguments.text(one, "a name in within") for one in upper]
    if len(set(levels)) < len(levels):
        raise InputError(f"each level of zones needs a column of its own, got {', '.join(levels)}")
    return levels


# Reading -----------------------------------------------------------------------------------------


def _read_frame(layer: Any) -> tuple[Any, str]:
    """The layer as a frame of GeoPandas, and its name for messages."""
    geopandas = need("Reading a layer of zones", "geopandas")
    if isinstance(layer, (str, Path)):
        return read_layer(Path(layer), ZONES), Path(layer).name
    if not isinstance(layer, geopandas.GeoDataFrame):
        files = "GeoPackage, GeoJSON, shapefile, GeoParquet"
        expected = f"the name of a file ({files}) or a GeoDataFrame"
        raise arguments.unfit("a layer of zones", expected, layer)
    if layer.active_geometry_name is None:
        raise InputError("the frame of zones has no column of outlines: set its geometry")
    return layer, "the frame"


def _attributes(frame: Any) -> Rows:
    """Every column but the outlines, as plain values."""
    shown = [name for name in frame.columns if name != frame.active_geometry_name]
    return {str(name): [_plain(value) for value in frame[name].tolist()] for name in shown}


def _plain(value: Any) -> Any:
    """A value of an attribute as JSON has it: text, number, truth, or None."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    text = str(value)
    if text in MISSING_VALUES:
        return None
    return value.isoformat() if isinstance(value, (dt.date, dt.time)) else text


def _labels(rows: Rows, level: str, told: str) -> list[str]:
    """The names of one level, as text."""
    if level not in rows:
        there = ", ".join(map(repr, rows)) or "none"
        raise InputError(f"{told} has no column {level!r}; there are {there}")
    labels = [_label(value) for value in rows[level]]
    if "" in labels:
        raise InputError(
            f"zone {labels.index('')} (counted from 0) of {told} has no name in the column {level!r}"
        )
    return labels


def _label(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():  # a code, where some are missing
        value = int(value)
    return str(value).strip()


# Checks ------------------------------------------------------------------------------------------


def _check_number(number: int, told: str) -> None:
    if number == 0:
        raise InputError(f"{told} has no zones")
    if number >= MOST_NAMES:
        raise InputError(f"{told} has {number:,} zones: at most {MOST_NAMES - 1:,} are supported")


def _refuse_twins(labels: Sequence[str], by: str, told: str) -> None:
    label, number = Counter(labels).most_common(1)[0]
    if number > 1:
        raise InputError(
            f"two zones of {told} are named {label!r:.100} in the column {by!r}: take a column in which names "
            "differ, or join the rows of a zone to one"
        )


def _outlines(frame: Any, labels: Sequence[str]) -> Shapes:
    """Valid polygons without heights."""
    shapely = need_shapely("Reading a layer of zones")
    shapes = np.asarray(frame.geometry.to_numpy(), dtype=object)
    for shape, label in zip(shapes, labels, strict=True):
        if shape is None or shape.is_empty:
            raise InputError(f"the zone {label!r:.100} has no outline")
        if shapely.get_type_id(shape) not in (POLYGON, MULTIPOLYGON):
            raise InputError(f"the zone {label!r:.100} is a {shape.geom_type}: zones are polygons")
    _check_corners(shapes, labels, "has a corner that is no finite place")
    return _repaired(np.asarray(shapely.force_2d(shapes)), labels)


def _check_corners(shapes: Shapes, labels: Sequence[str], what: str) -> None:
    corners, owner = need_shapely().get_coordinates(shapes, return_index=True)
    wrong = np.flatnonzero(~(np.abs(corners) < FARTHEST).all(axis=1))
    if len(wrong):
        raise InputError(f"the zone {labels[int(owner[wrong[0]])]!r:.100} {what}")


def _repaired(shapes: Shapes, labels: Sequence[str]) -> Shapes:
    shapely = need_shapely()
    crossed = np.flatnonzero(~shapely.is_valid(shapes))
    valid = shapely.make_valid(shapes[crossed], method="structure", keep_collapsed=False)
    shapes = shapes.copy()
    shapes[crossed] = valid
    for number in crossed:
        if shapely.area(shapes[number]) == 0:
            raise InputError(
                f"the outline of the zone {labels[int(number)]!r:.100} encloses no area"
            )
    return shapes


def _refuse_overlaps(shapes: Shapes, labels: Sequence[str], told: str) -> None:
    """Refuse zones that share more than a sliver, which drawing and rounding leave."""
    shapely = need_shapely()
    one, other = _overlapping(shapes)
    areas = shapely.area(shapes)
    shared = shapely.area(shapely.intersection(shapes[one], shapes[other]))
    smaller = np.minimum(areas[one], areas[other])
    wrong = np.flatnonzero(shared > LARGEST_OVERLAP * smaller)
    if len(wrong):
        first = wrong[0]
        percent = 100 * shared[first] / smaller[first]
        raise InputError(
            f"the zones {labels[one[first]]!r:.100} and {labels[other[first]]!r:.100} of {told} overlap, by "
            f"{percent:.3g} % of the smaller one, so a record would be in both: cut the overlap off one of them, or "
            "leave one out"
        )


def _overlapping(shapes: Shapes) -> NDArray[np.int64]:
    """Pairs whose interiors meet."""
    shapely = need_shapely()
    tree = shapely.STRtree(shapes)
    pairs = np.hstack([tree.query(shapes, predicate=how) for how in ("overlaps", "covers")])
    pairs = np.sort(pairs[:, pairs[0] != pairs[1]], axis=0)
    return np.unique(pairs, axis=1)


# Reference systems -------------------------------------------------------------------------------


def _in_crs(
    shapes: Shapes, own: Any, asked: str | None, labels: Sequence[str], told: str
) -> tuple[Shapes, str]:
    """The outlines in the reference system of the map, and its name."""
    if own is None and asked is None:
        raise InputError(
            f"{told} names no reference system: say which it is in with --crs (in Python: crs), as in EPSG:2056"
        )
    if own is None or asked is None:
        return shapes, _name(asked if own is None else own.to_json_dict())
    target = _name(asked)
    if systems.same_crs(own, target):
        return shapes, target
    moved = _transformed(shapes, own, target)
    where = f"cannot be transformed from {systems.shown_crs(own)} to {systems.shown_crs(target)}"
    _check_corners(moved, labels, where)
    if systems.is_in_degrees(target):
        _refuse_jumps(moved, labels)
    return _repaired(moved, labels), target


def _name(crs: Any) -> str:
    """The name of a reference system. Longitude and latitude on WGS 84 have only one here."""
    name = systems.name_of_crs(crs)
    return systems.CRS84 if systems.same_crs(name, systems.CRS84) else name


def _transformed(shapes: Shapes, source: Any, target: str) -> Shapes:
    shapely, change = need_shapely(), systems.transformer(systems.parse_crs(source), target)
    west, south, east, north = shapely.total_bounds(shapes)
    longest = max(east - west, north - south) / PIECES_OF_LAYER
    rings, polygon = shapely.get_rings(shapely.get_parts(shapes), return_index=True)
    corners, ring = shapely.get_coordinates(rings, return_index=True)
    corners, ring = _divided(corners, ring, longest)
    moved = np.column_stack(change.transform(corners[:, 0], corners[:, 1]))
    moved[~np.isfinite(moved)] = 2 * FARTHEST  # so that the zone is named in an error
    polygons = shapely.polygons(shapely.linearrings(moved, indices=ring), indices=polygon)
    zone = shapely.get_parts(shapes, return_index=True)[1]
    return np.asarray(shapely.multipolygons(polygons, indices=zone))


def _divided(
    corners: FloatArray, ring: NDArray[np.int64], longest: float
) -> tuple[FloatArray, NDArray[np.int64]]:
    """Rings with more corners on long edges: the same ones whichever way an edge is walked."""
    edge = np.append(ring[1:] == ring[:-1], False)  # from a corner to the next of its ring
    ahead = np.roll(corners, -1, axis=0)
    length = np.where(edge, np.hypot(*(ahead - corners).T), 0.0)
    pieces = np.maximum(np.ceil(length / longest), 1).astype(np.int64)
    owner = np.repeat(np.arange(len(corners)), pieces)
    step = np.arange(len(owner)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    start, end, number = corners[owner], ahead[owner], pieces[owner]
    swap = (end[:, 0] < start[:, 0]) | ((end[:, 0] == start[:, 0]) & (end[:, 1] < start[:, 1]))
    first = np.where(swap[:, None], end, start)
    last = np.where(swap[:, None], start, end)
    share = np.where(swap, number - step, step) / number
    between = first + (last - first) * share[:, None]
    return np.where((step == 0)[:, None], start, between), ring[owner]


def _refuse_jumps(shapes: Shapes, labels: Sequence[str]) -> None:
    """Pieces of edges are short. One that seems to go half around the earth crosses the antimeridian."""
    corners, owner = need_shapely().get_coordinates(shapes, return_index=True)
    jumps = (np.abs(np.diff(corners[:, 0])) > HALF_TURN) & (owner[1:] == owner[:-1])
    if np.any(jumps):
        label = labels[owner[1:][jumps][0]]
        raise InputError(
            f"the zone {label!r:.100} crosses the antimeridian, where degrees jump: leave --crs out (in Python: crs), "
            "so that points are tested in the reference system of the layer"
        )


# The axis ----------------------------------------------------------------------------------------


def _names(
    shapes: Shapes, labels: Mapping[str, Sequence[str]], rows: Rows, crs: str, has_rest: bool
) -> Names:
    order = order_of(labels)
    wkb = need_shapely().to_wkb(shapes, byte_order=1)
    rest = [None] if has_rest else []
    outlines = Outlines(
        tuple(bytes(wkb[n]) for n in order) + ((b"",) if has_rest else ()),
        tuple((name, (*(values[n] for n in order), *rest)) for name, values in rows.items()),
        crs,
    )
    columns = {level: [given[n] for n in order] for level, given in labels.items()}
    return Names.of(columns, rest=ELSEWHERE_LABEL if has_rest else None, outlines=outlines)


def check_nesting(labels: Mapping[str, Sequence[str]]) -> None:
    """Refuse a label that lies in two of the level above."""
    levels = list(labels)
    for below, above in pairwise(levels):
        parents: dict[str, str] = {}
        for child, parent in zip(labels[below], labels[above], strict=True):
            if parents.setdefault(child, parent) != parent:
                raise InputError(
                    f"levels must nest, but {below} {child!r:.100} lies in two of {above}: {parents[child]!r:.100} "
                    f"and {parent!r:.100}"
                )


def order_of(labels: Mapping[str, Sequence[str]]) -> list[int]:
    """An order in which all of an upper label stand together, each level by first appearance."""
    ranks = []
    for given in list(labels.values())[1:]:
        first = {label: place for place, label in reversed(list(enumerate(given)))}
        ranks.append([first[label] for label in given])
    size = len(next(iter(labels.values())))
    return sorted(range(size), key=lambda n: (*(rank[n] for rank in reversed(ranks)), n))


# Categories -------------------------------------------------------------------------------------


def read_category(name: str, listed: str, rest: str | None = None) -> Axis:
    """An axis of names from a list in a file, one name on each line of a .txt file, or the columns of a .csv file, whose
    first line names the levels from the lowest up; or from names with commas between them."""
    suffix = Path(listed).suffix.lower()
    if suffix in LISTS + TABLES and not is_file(listed):
        raise InputError(f"there is no file {listed} with the list of {name!r}")
    if suffix in TABLES:
        levels = _read_table(Path(listed))
    elif suffix in LISTS:
        levels = {name: [line for line in map(str.strip, _lines(Path(listed))) if line]}
    else:
        levels = {name: [one.strip() for one in listed.split(",")]}
    if not next(iter(levels.values()), None):
        raise InputError(f"the list of {name!r} is empty")
    check_nesting(levels)
    order = order_of(levels)
    columns = {level: [labels[n] for n in order] for level, labels in levels.items()}
    return Axis.named(name, Names.of(columns, rest=rest))


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeError):
        raise InputError(f"cannot read {path}: is it text in UTF-8?") from None


def _read_table(path: Path) -> dict[str, list[str]]:
    rows = [[one.strip() for one in row] for row in csv.reader(_lines(path)) if row]
    if not rows or any(len(row) != len(rows[0]) for row in rows):
        raise InputError(
            f"{path} must have a first line that names the levels, as in offence,group, and as many names on every line"
        )
    if len(set(rows[0])) < len(rows[0]):
        raise InputError(f"{path} names a level twice: {', '.join(rows[0])}")
    columns = zip(*rows[1:], strict=True) if len(rows) > 1 else [()] * len(rows[0])
    return {level: list(labels) for level, labels in zip(rows[0], columns, strict=True)}
