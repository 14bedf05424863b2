"""Reads polygons in any common form, and makes them valid in the coordinates of a map.

Accepted are shapely geometries, GeoPandas series and frames, and GeoJSON, as dictionaries or objects with
`__geo_interface__`. Anything but a polygon is refused, with the row it is in. A missing or empty polygon
stays empty, and counts nothing. One that crosses itself is repaired by `shapely.make_valid` with the
method "structure": each ring encloses what it winds around, parts that overlap are united, holes are cut out.

An edge is straight in the reference system of the polygon, but rarely in another. So before corners are
transformed, long edges get more of them: no piece is longer than 1/256 of the map, or 1/4096 of a
polygon that is far larger than the map. If a polygon of another system crosses the antimeridian or
surrounds a pole, its longitudes jump. It is then cut there, as maps in degrees are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from htf.base import arguments
from htf.base.extras import need
from htf.errors import InputError
from htf.frame.crs import CRS84, is_in_degrees, parse_crs, same_crs, shown_crs, transformer
from htf.frame.domain import Domain, FloatArray

Shapes = NDArray[np.object_]  # of shapely geometries

POLYGON, MULTIPOLYGON = 3, 6  # as shapely numbers types of geometry; -1 is missing
MISSING = -1
HALF_TURN, TURN = 180.0, 360.0  # degrees
PIECES_OF_MAP = 256
PIECES_OF_POLYGON = 4096


def read_shapes(geometries: Any, domain: Domain, crs: Any = None) -> Shapes:
    """One geometry or many, as valid polygons in the coordinates of the map.

    `crs` is the reference system of the geometries. Without it, GeoPandas knows it, GeoJSON is in
    degrees of longitude and latitude, and bare shapely geometries are in the coordinates of the map.
    """
    check_map(domain)
    return place_shapes(gather(geometries), domain, crs)


def place_shapes(gathered: Gathered, domain: Domain, crs: Any = None) -> Shapes:
    """The same for geometries that were gathered already."""
    shapes = _repair(_check(gathered.shapes))
    given_crs = crs if crs is None or isinstance(crs, str) else parse_crs(crs)
    source = _source(given_crs, gathered.crs, domain)
    if source is None:
        return shapes
    return _repair(to_crs(shapes, source, domain.crs, domain))  # bent edges may cross


def check_map(domain: Domain, what: str = "polygons") -> None:
    """Refuse polygons where there is no map to place them on."""
    if not domain.has_map:
        raise InputError(
            f"{what} need a map with axes x and y, but this one has {', '.join(domain.names)}"
        )


def need_shapely(purpose: str = "Counting polygons") -> Any:
    """The shapely package, or an error that names what to install."""
    return need(purpose, "shapely")


def to_crs(shapes: Shapes, source: Any, target: Any, domain: Domain) -> Shapes:
    """Transform shapes from one reference system to another. One of the two is the map's."""
    if same_crs(source, target):
        return shapes
    shapely, change = need_shapely(), transformer(source, target)
    lengths = _longest_pieces(shapes, _width_of_map(domain, source))
    shapes = shapely.segmentize(shapes, lengths)
    moved = shapely.transform(
        shapes, lambda xy: np.column_stack(change.transform(xy[:, 0], xy[:, 1]))
    )
    _check_finite(
        moved,
        f"cannot be transformed from {shown_crs(source)} to {shown_crs(target)}: cut off what is far from the map",
    )
    return _cut_at_antimeridian(np.asarray(moved)) if is_in_degrees(target) else np.asarray(moved)


class Gathered(NamedTuple):
    """Geometries as an array, and what they bring along."""

    shapes: Shapes
    crs: Any = None  # None: not known
    frame: Any = None  # of GeoPandas
    properties: tuple[Any, ...] = ()  # of GeoJSON


def gather(geometries: Any) -> Gathered:
    """Geometries in any accepted form, as they are."""
    shapely = need_shapely()
    if isinstance(geometries, shapely.Geometry) or geometries is None:
        return Gathered(np.array([geometries], dtype=object))
    if hasattr(geometries, "crs"):  # a frame, a series or an array of GeoPandas
        column = getattr(geometries, "geometry", geometries)
        frame = geometries if hasattr(geometries, "columns") else None
        return Gathered(np.asarray(column, dtype=object), column.crs, frame)
    if isinstance(geometries, Mapping) or hasattr(geometries, "__geo_interface__"):
        return _from_geojson([geometries])
    is_scalar = isinstance(geometries, np.ndarray) and geometries.ndim == 0
    if isinstance(geometries, str | bytes) or not isinstance(geometries, Iterable) or is_scalar:
        kinds = "shapely geometries, a GeoPandas series or frame, or GeoJSON as dictionaries"
        raise arguments.unfit("polygons", kinds, geometries)
    items = list(geometries)
    bare = [isinstance(item, shapely.Geometry) or item is None for item in items]
    if all(bare):
        array = np.empty(len(items), dtype=object)
        array[:] = items
        return Gathered(array)
    if any(is_bare for is_bare, item in zip(bare, items, strict=True) if item is not None):
        raise InputError(
            "some polygons are shapely geometries and others are not: give one kind, because GeoJSON "
            "is in degrees and shapely geometries in the coordinates of the map"
        )
    return _from_geojson(items)


def _from_geojson(objects: list[Any]) -> Gathered:
    from shapely.geometry import shape

    # Objects still to read, each with the properties of the feature around it.
    waiting = [(item, None) for item in reversed(objects)]
    geometries, properties = list[Any](), list[Any]()
    while waiting:
        item, of_feature = waiting.pop()
        item = getattr(item, "__geo_interface__", item)
        try:
            if item is not None and item["type"] == "FeatureCollection":
                waiting += [(one, None) for one in reversed(item["features"])]
            elif item is not None and item["type"] == "Feature":
                waiting.append((item["geometry"], item.get("properties")))
            else:
                geometries.append(None if item is None else shape(item))
                properties.append(of_feature if isinstance(of_feature, Mapping) else {})
        except Exception as error:  # whatever shapely makes of a dictionary from outside
            raise InputError(
                f"polygon {len(geometries)} (counted from 0) is not GeoJSON that can be read: "
                f"{type(error).__name__}: {error}"
            ) from None
    array = np.empty(len(geometries), dtype=object)
    array[:] = geometries
    return Gathered(array, CRS84, properties=tuple(properties))


def _check(shapes: Shapes) -> Shapes:
    """Polygons without heights, checked for finite corners; missing ones become empty."""
    shapely = need_shapely()
    if not all(shape is None or isinstance(shape, shapely.Geometry) for shape in shapes.ravel()):
        raise InputError("polygons must be shapely geometries")
    kinds = shapely.get_type_id(shapes)
    wrong = np.flatnonzero(~np.isin(kinds, (POLYGON, MULTIPOLYGON, MISSING)))
    if len(wrong):
        raise InputError(
            f"geometry {wrong[0]} (counted from 0) is a {shapes[wrong[0]].geom_type}, not a polygon: "
            "only areas can be counted (a buffer makes one of a point or a line)"
        )
    shapes = np.where(kinds == MISSING, shapely.Polygon(), shapes)
    _check_finite(shapes, "has a corner that is no finite number")
    return np.asarray(shapely.force_2d(shapes))


def _check_finite(shapes: Shapes, what: str) -> None:
    shapely = need_shapely()
    corners, owner = shapely.get_coordinates(shapes, return_index=True)
    wrong = np.flatnonzero(~np.isfinite(corners).all(axis=1))
    if len(wrong):
        raise InputError(f"polygon {owner[wrong[0]]} (counted from 0) {what}")


def _repair(shapes: Shapes) -> Shapes:
    shapely = need_shapely()
    crossed = np.flatnonzero(~shapely.is_valid(shapes))
    if len(crossed):
        shapes = shapes.copy()
        shapes[crossed] = shapely.make_valid(
            shapes[crossed], method="structure", keep_collapsed=False
        )
    return shapes


def _source(crs: Any, own_crs: Any, domain: Domain) -> Any:
    """The reference system to transform the shapes from, or None if they need no change."""
    by_geopandas = own_crs is not None and own_crs is not CRS84
    if crs is not None and by_geopandas and not same_crs(crs, own_crs):
        raise InputError(
            f"the polygons say that they are in {shown_crs(own_crs)}, but crs is {shown_crs(crs)}: "
            "leave crs out"
        )
    source = own_crs if crs is None else crs
    if domain.crs is None and (crs is not None or by_geopandas):
        raise InputError(
            f"the map has no reference system, so polygons in {shown_crs(source)} cannot be "
            "placed on it: give them in the map's coordinates, without one"
        )
    return None if domain.crs is None else source


def _width_of_map(domain: Domain, source: Any) -> float:
    """The larger side of the map, in units of the reference system `source`."""
    x, y = domain.axes[:2]
    sides = x.low, y.low, x.high, y.high
    if not same_crs(domain.crs, source):
        sides = transformer(domain.crs, source).transform_bounds(*sides, densify_pts=21)
    width, height = sides[2] - sides[0], sides[3] - sides[1]
    width += 360.0 if width < 0 else 0.0  # across the antimeridian
    if not (np.isfinite(width) and np.isfinite(height)):
        raise InputError(
            f"the map, in {domain.crs}, cannot be transformed to {shown_crs(source)}, that of the "
            "polygons"
        )
    return float(max(width, height))


def _cut_at_antimeridian(shapes: Shapes) -> Shapes:
    """Cut polygons whose corners were converted to degrees one by one. Pieces of edges are short, so a
    piece that seems to go half around the earth crosses the antimeridian."""
    shapely = need_shapely()
    corners, owner = shapely.get_coordinates(shapes, return_index=True)
    jumps = (np.abs(np.diff(corners[:, 0])) > HALF_TURN) & (owner[1:] == owner[:-1])
    jumping = np.unique(owner[1:][jumps])
    if len(jumping):
        shapes = shapes.copy()
        for number in jumping:
            shapes[number] = _cut_polygon(shapes[number])
    return shapes


def _cut_polygon(shape: Any) -> Any:
    """Make a polygon whole, with longitudes beyond half a turn, then cut it at the edges of the globe."""
    shapely = need_shapely()
    parts = []
    for part in shapely.get_parts(shape):
        outer, *holes = (unrolled(shapely.get_coordinates(r)[:-1]) for r in shapely.get_rings(part))
        west = outer[:, 0].min()
        for hole in holes:
            hole[:, 0] += TURN * math.ceil((west - hole[:, 0].min()) / TURN)
        parts.append(shapely.Polygon(outer, holes))
    whole = shapely.union_all(_repair(np.array(parts, dtype=object)))
    globe = shapely.box(-HALF_TURN, -90, HALF_TURN, 90)
    turned = [shapely.intersection(shifted(whole, turn), globe) for turn in (-TURN, 0.0, TURN)]
    pieces = shapely.get_parts(shapely.union_all(turned))
    return shapely.multipolygons(pieces[shapely.get_type_id(pieces) == POLYGON])


def unrolled(ring: FloatArray) -> FloatArray:
    """A ring on the globe as a ring in the plane: longitudes go on beyond half a turn instead of jumping.

    A ring around a pole spans a whole turn; it is closed along the pole.
    """
    steps = np.diff(np.append(ring[:, 0], ring[0, 0]))
    steps -= TURN * np.rint(steps / TURN)
    longitudes = ring[0, 0] + np.append(0.0, np.cumsum(steps))
    if abs(longitudes[-1] - longitudes[0]) < HALF_TURN:
        return np.column_stack([longitudes[:-1], ring[:, 1]])
    pole = math.copysign(90.0, ring[:, 1].mean())
    latitudes = [*ring[:, 1], ring[0, 1], pole, pole]
    return np.column_stack([[*longitudes, longitudes[-1], longitudes[0]], latitudes])


def shifted(shape: Any, turn: float) -> Any:
    return need_shapely().transform(shape, lambda corners: corners + np.array([turn, 0.0]))


def _longest_pieces(shapes: Shapes, width: float) -> NDArray[np.float64]:
    shapely = need_shapely()
    bounds = np.nan_to_num(shapely.bounds(shapes))  # NaN for empty shapes
    extent = np.max(bounds[:, 2:] - bounds[:, :2], axis=1)
    return np.asarray(np.maximum(width / PIECES_OF_MAP, extent / PIECES_OF_POLYGON))
