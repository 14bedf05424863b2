"""Counts of polygons in map coordinates, with intervals.

A polygon counts each leaf by the share of its area that it covers, as a box does (htf.query.boxes), and
its interval follows from those shares in the same way, so a rectangle gets the same answer as the box.
Areas are measured in the coordinates of the map, in which the grid is even.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from htf.errors import InputError
from htf.frame.domain import Domain, FloatArray, IntArray
from htf.query.answer import Answer
from htf.query.asked import AskedPolygons
from htf.query.boxes import share_inside, snap_to_cells, to_snapped_cells
from htf.query.columns import COUNTS, place
from htf.query.shapes import Gathered, Shapes, check_map, gather, need_shapely, place_shapes
from htf.query.where import Where, full_ranges, read_where

if TYPE_CHECKING:
    from htf.query.index import BoxIndex
    from htf.query.tree_index import TreeIndex


class Outlines(NamedTuple):
    """Polygons in cell coordinates, each on the left of its rings, and a range of each further axis.
    Rings and polygons stand one after another: each end is the index after the last corner or ring."""

    corners: FloatArray
    ring_ends: IntArray
    polygon_ends: IntArray
    ranges: FloatArray
    pieces: IntArray  # of each polygon


def count_polygons(
    domain: Domain,
    index: BoxIndex | TreeIndex,
    geometries: Any,
    *,
    crs: Any = None,
    where: Where | None = None,
    labels: tuple[str, ...] | None = None,
) -> Answer:
    """Count one polygon or many (htf.query.shapes says what they may be), in the first two axes. They may have labels.

    `where` gives ranges of further axes, such as `{"hour": (7, 10)}`; those that it does not name
    are counted whole. Area outside the map counts nothing. An empty polygon counts 0, with an
    interval of 0 to 0. Corners within a billionth of a cell of a grid line are moved onto it.
    """
    given = geometries if isinstance(geometries, Gathered) else gather(geometries)
    check_map(domain)
    shapes = place_shapes(given, domain, crs)
    ranges, share = _read_ranges(domain, where)
    cells = _in_cells(shapes, domain)
    table = index.answer_polygons(_outlines(cells, ranges)).T.copy()
    table[place("inside")] = _share_inside(cells, domain) * share
    table.flags.writeable = False
    known = next((one for one in (crs, given.crs) if one is not None), domain.crs)
    came = given.frame, given.properties, labels
    asked = AskedPolygons(domain, given.shapes, known, where or {}, *came)
    return Answer(COUNTS, tuple(table), asked=asked)


def _read_ranges(domain: Domain, where: Where | None) -> tuple[FloatArray, float]:
    """The low and high end of each axis but the first two, in cells; and the share of these ranges that lies on the map."""
    named = [name for name in read_where(where) if name in domain.names[:2]]
    if named:
        raise InputError(f"polygons already fix {named[0]}: leave it out of where")
    axes, ends = domain.axes[2:], full_ranges(domain, where)[2:]
    if not axes:
        return np.empty((0, 2)), 1.0
    cells = [to_snapped_cells(axis, pair) for axis, pair in zip(axes, ends, strict=True)]
    return np.array(cells), float(share_inside(axes, ends.T.reshape(1, -1))[0])


def _in_cells(shapes: Shapes, domain: Domain) -> Shapes:
    shapely = need_shapely()
    x, y = domain.axes[:2]
    with np.errstate(over="ignore", invalid="ignore"):
        cells = shapely.transform(
            shapes,
            lambda xy: np.column_stack([snap_to_cells(x, xy[:, 0]), snap_to_cells(y, xy[:, 1])]),
        )
        areas = shapely.area(cells)
    wrong = np.flatnonzero(~np.isfinite(areas))
    if len(wrong):
        raise InputError(
            f"polygon {wrong[0]} (counted from 0) is absurdly large: are its coordinates those of "
            "the map?"
        )
    return np.asarray(shapely.orient_polygons(cells))


def _outlines(cells: Shapes, ranges: FloatArray) -> Outlines:
    """The corners of the rings, without the repeated first corner that ends a ring in shapely."""
    shapely = need_shapely()
    parts, owner = shapely.get_parts(cells, return_index=True)
    rings, part = shapely.get_rings(parts, return_index=True)
    corners, ring = shapely.get_coordinates(rings, return_index=True)
    is_last = np.append(ring[1:] != ring[:-1], True) if len(ring) else np.zeros(0, dtype=bool)
    ring_sizes = np.bincount(ring[~is_last], minlength=len(rings))
    polygon_sizes = np.bincount(owner[part], minlength=len(cells))
    return Outlines(
        np.ascontiguousarray(corners[~is_last]),
        np.cumsum(ring_sizes, dtype=np.int64),
        np.cumsum(polygon_sizes, dtype=np.int64),
        ranges,
        np.bincount(owner, minlength=len(cells)),
    )


def _share_inside(cells: Shapes, domain: Domain) -> FloatArray:
    shapely = need_shapely()
    areas, bounds = shapely.area(cells), np.nan_to_num(shapely.bounds(cells))
    shape = np.array(domain.shape[:2], dtype=np.float64)
    crossing = np.flatnonzero((bounds[:, :2] < 0).any(axis=1) | (bounds[:, 2:] > shape).any(axis=1))
    share = (areas > 0).astype(np.float64)
    on_map = shapely.area(shapely.intersection(cells[crossing], shapely.box(0, 0, *shape)))
    np.divide(on_map, areas[crossing], out=on_map, where=areas[crossing] > 0)
    share[crossing] = np.minimum(on_map, 1.0)
    return np.asarray(share)
