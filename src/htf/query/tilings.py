"""Layers of zones that tile a map, as H3 hexagons or a plain grid, and their counts.

Zones are cut off at the edge of the map, so that their counts add up to the total of the release.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from htf.base import arguments
from htf.base.extras import need
from htf.errors import InputError
from htf.frame.crs import CRS84, same_crs
from htf.frame.domain import Axis, Domain, FloatArray, check_domain
from htf.query.shapes import (
    HALF_TURN,
    TURN,
    Shapes,
    check_map,
    need_shapely,
    shifted,
    to_crs,
    unrolled,
)

MOST_ZONES = 1_000_000
FINEST_RESOLUTION = 15  # of H3
EARTH_RADIUS_KM = 6371.0
COLLECTION = 7  # as shapely numbers types of geometry
LEAST_SHARE = 1e-12  # of a map: a zone that would have less of it is rounding


class Tiling(NamedTuple):
    """Zones that tile a map. `grid_zones` and `h3_zones` make them.

    Attributes
    ----------
    labels : list of str
        The name of each zone.
    geometries : ndarray of object
        Polygons in the coordinates of the map.

    Examples
    --------
    >>> import htf
    >>> domain = htf.Domain.from_bounds(0, 0, 2, 2, cells=2)
    >>> htf.grid_zones(domain, columns=2).labels
    ['1-1', '2-1', '1-2', '2-2']
    """

    labels: list[str]
    geometries: Shapes


def grid_zones(
    domain: Domain,
    width: float | None = None,
    height: float | None = None,
    *,
    columns: int | None = None,
    rows: int | None = None,
) -> Tiling:
    """Cut a map into rectangles, from its south-west corner on.

    Give either their size or their number. One of a pair stands for both. The last rectangles are cut off
    at the edge of the map. A label is `column-row`, both counted from 1.

    Parameters
    ----------
    domain : Domain
        The map.
    width, height : float, optional
        The size of a rectangle in units of the map.
    columns, rows : int, optional
        The number of rectangles along each axis.

    Returns
    -------
    Tiling
        The rectangles.

    Raises
    ------
    InputError
        If neither or both are given, or there would be too many.

    Examples
    --------
    >>> import htf
    >>> domain = htf.Domain.from_bounds(0, 0, 2, 2, cells=2)
    >>> len(htf.grid_zones(domain, width=0.5).labels)
    16
    """
    shapely = need_shapely("A grid of zones")
    check_map(check_domain(domain), "zones")
    x, y = domain.axes[:2]
    if (width is None and height is None) == (columns is None and rows is None):
        raise InputError("give the zones of a grid either a width and height, or columns and rows")
    (width, height), (columns, rows) = _both(width, height), _both(columns, rows)
    across = [_edges(x, width, columns), _edges(y, height, rows)]
    counts = [len(edges) - 1 for edges in across]
    _check_number(math.prod(counts))
    column, row = (place.ravel() for place in np.meshgrid(*map(np.arange, counts)))
    boxes = shapely.box(
        across[0][column], across[1][row], across[0][column + 1], across[1][row + 1]
    )
    labels = [f"{c}-{r}" for c, r in zip((column + 1).tolist(), (row + 1).tolist(), strict=True)]
    return Tiling(labels, np.asarray(boxes))


def h3_zones(domain: Domain, resolution: int) -> Tiling:
    """Find the H3 cells that touch a map, cut off at its edge. Needs h3.

    Neighbours are gathered from the cell in the middle of the map on, while they touch it. Edges of cells
    are taken as straight in degrees of longitude and latitude.

    Parameters
    ----------
    domain : Domain
        The map.
    resolution : int
        The resolution of H3, from 0 to 15.

    Returns
    -------
    Tiling
        The cells. Labels are their H3 addresses.

    Raises
    ------
    InputError
        If the map has no reference system, or there would be too many cells.

    Examples
    --------
    >>> import htf
    >>> domain = htf.Domain.square(40, -30, side_km=10)
    >>> htf.h3_zones(domain, resolution=5).labels[0]
    '8535ac2ffffffff'
    """
    h3, shapely = need("A layer of H3 cells", "h3"), need_shapely("Zones of H3")
    check_map(check_domain(domain), "zones")
    x, y = domain.axes[:2]
    if domain.crs is None:
        raise InputError("the map has no reference system, so H3 cells cannot be placed on it")
    resolution = arguments.whole(resolution, "the resolution of H3")
    if not 0 <= resolution <= FINEST_RESOLUTION:
        raise InputError(f"H3 has resolutions from 0 to {FINEST_RESOLUTION}, got {resolution}")
    outline = shapely.box(x.low, y.low, x.high, y.high)
    degrees = to_crs(np.array([outline]), domain.crs, CRS84, domain)
    _check_number(_square_kilometres(degrees) / h3.average_hexagon_area(resolution, unit="km^2"))
    longitude, latitude = _middle(domain)
    frontier = {h3.latlng_to_cell(latitude, longitude, resolution)}
    seen, pieces_by_cell = set(frontier), {}
    while frontier:
        cells = sorted(frontier)
        pieces = _cut_off(_cell_shapes(h3, cells, domain), outline)
        touching = {
            cell: piece for cell, piece in zip(cells, pieces, strict=True) if piece.area > 0
        }
        pieces_by_cell.update(touching)
        _check_number(len(pieces_by_cell))
        frontier = {near for cell in touching for near in h3.grid_disk(cell, 1)} - seen
        seen |= frontier
    labels = sorted(pieces_by_cell)
    return Tiling(labels, np.array([pieces_by_cell[label] for label in labels], dtype=object))


def _cell_shapes(h3: Any, cells: Sequence[str], domain: Domain) -> Shapes:
    """Cells as polygons in the coordinates of the map."""
    shapely = need_shapely()
    rings = [unrolled(np.array(h3.cell_to_boundary(cell))[:, ::-1]) for cell in cells]
    corners, owner = np.vstack(rings), np.repeat(np.arange(len(rings)), [len(r) for r in rings])
    shapes = shapely.polygons(shapely.linearrings(corners, indices=owner))
    if not same_crs(domain.crs, CRS84):
        moved = to_crs(shapes, CRS84, domain.crs, domain)
        return np.asarray(shapely.make_valid(moved, method="structure", keep_collapsed=False))
    bounds = shapely.bounds(shapes)
    for number in np.flatnonzero((bounds[:, 0] < -HALF_TURN) | (bounds[:, 2] > HALF_TURN)):
        # A map shows both sides of the antimeridian, far from each other.
        turned = [shifted(shapes[number], turn) for turn in (-TURN, 0.0, TURN)]
        shapes[number] = shapely.union_all(turned)
    return np.asarray(shapes)


def _cut_off(shapes: Shapes, outline: Any) -> Shapes:
    """The part of each shape within the outline of the map. A shape wholly inside stays as it is."""
    shapely = need_shapely()
    west, south, east, north = outline.bounds
    low, high = np.hsplit(shapely.bounds(shapes), 2)
    whole = ((low >= (west, south)) & (high <= (east, north))).all(axis=1)
    cut = shapes.copy()
    cut[~whole] = shapely.intersection(shapes[~whole], outline)
    for number in np.flatnonzero(shapely.get_type_id(cut) == COLLECTION):  # touches it elsewhere
        parts = shapely.get_parts(cut[number])
        cut[number] = shapely.union_all(parts[shapely.get_dimensions(parts) == 2])
    return cut


def _square_kilometres(outline: Shapes) -> float:
    """The approximate area of the map on the globe, from its outline in degrees."""
    west, south, east, north = need_shapely().total_bounds(outline)
    top, bottom = math.radians(min(north, 90)), math.radians(max(south, -90))
    turn = math.radians(min(east - west, TURN))
    return EARTH_RADIUS_KM**2 * turn * (math.sin(top) - math.sin(bottom))


def _middle(domain: Domain) -> tuple[float, float]:
    """Longitude and latitude of the middle of the map."""
    shapely = need_shapely()
    x, y = domain.axes[:2]
    middle = shapely.points([(x.low + x.high) / 2], [(y.low + y.high) / 2])
    corners = shapely.get_coordinates(to_crs(middle, domain.crs, CRS84, domain))
    return float(corners[0, 0]), float(corners[0, 1])


def _both(one: Any, other: Any) -> tuple[Any, Any]:
    """One of a pair stands for both."""
    return (other if one is None else one), (one if other is None else other)


def _edges(axis: Axis, size: float | None, number: int | None) -> FloatArray:
    """From zones of a size, or from their number."""
    low, high = axis.low, axis.high
    if number is not None:
        number = arguments.whole(number, "columns and rows of a grid, each,")
        if number < 1:
            raise InputError(f"a grid needs whole numbers of columns and rows, got {number}")
        _check_number(number)
        return np.linspace(low, high, number + 1)
    size = arguments.number(size, "the width and height of zones, each,")
    if size <= 0:
        raise InputError(f"the width and height of zones must be positive, got {size}")
    _check_number((high - low) / size)
    whole = max(math.ceil((high - low) / size * (1 - LEAST_SHARE)), 1)
    return np.append(low + size * np.arange(whole), high)


def _check_number(number: float) -> None:
    if number > MOST_ZONES:
        about = f"{number:,.0f}" if number < 1e15 else f"{number:.3g}"
        raise InputError(
            f"that would be about {about} zones, but at most {MOST_ZONES:,} are allowed: use larger ones"
        )
