"""An index of public outlines, in which the zone of a point is found exactly.

Each point is tested alone. Coordinates that are missing, NaN or infinite are in no zone, and not elsewhere either.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from htf.base.extras import need
from htf.frame.axis import FloatArray, IntArray

if TYPE_CHECKING:
    from htf.frame.zone_kernels import ZoneIndex

MOST_LINES = 2048
MOST_ENTRIES = 50_000_000  # edges in all rows of the index, 32 bytes each
Shapes = tuple[bytes, ...]


def find_cells(shapes: Shapes, has_rest: bool, x: FloatArray, y: FloatArray) -> FloatArray:
    """The number of the first zone that holds each point. Points in none are in the last cell if that takes the
    rest, else NaN; places that are not finite are always NaN."""
    from htf.frame import zone_kernels as kernels

    found = np.empty(len(x))
    kernels.find_zones(zone_index(shapes), np.ascontiguousarray(x), np.ascontiguousarray(y), found)
    found[found == kernels.NOWHERE] = len(shapes) - 1 if has_rest else np.nan
    return found


@lru_cache(maxsize=8)
def zone_index(shapes: Shapes) -> ZoneIndex:
    """The index of outlines given as well-known binary. Empty ones hold no point."""
    edges, ends = _edges(shapes)
    lines = int(2 * np.sqrt(len(edges))) + 2
    while True:
        lines = min(lines, MOST_LINES)
        made = _make_index(edges, ends, lines)
        if made is not None:
            return made
        lines //= 2


def _edges(shapes: Shapes) -> tuple[FloatArray, IntArray]:
    """All edges, from the lower end to the upper, zone by zone; and where those of each zone end."""
    from htf.frame.zone_kernels import TINY

    shapely = need("Counting in zones", "shapely")
    outlines = shapely.from_wkb([shape or None for shape in shapes])
    polygons, zone_of_polygon = shapely.get_parts(outlines, return_index=True)
    rings, polygon_of_ring = shapely.get_rings(polygons, return_index=True)
    corners, ring = shapely.get_coordinates(rings, return_index=True)
    corners[np.abs(corners) < TINY] = 0.0
    same_ring = ring[1:] == ring[:-1]
    edges = np.column_stack([corners[:-1], corners[1:]])[same_ring]
    zones = zone_of_polygon[polygon_of_ring[ring[1:][same_ring]]]
    is_down = (edges[:, 3] < edges[:, 1]) | (
        (edges[:, 3] == edges[:, 1]) & (edges[:, 2] < edges[:, 0])
    )
    edges[is_down] = edges[is_down][:, [2, 3, 0, 1]]
    return np.ascontiguousarray(edges), np.cumsum(np.bincount(zones, minlength=len(shapes)))


def _make_index(edges: FloatArray, ends: IntArray, lines: int) -> ZoneIndex | None:
    """The index, or None if it would be too large."""
    from htf.frame import zone_kernels as kernels

    x_lines, y_lines = (_quantiles(edges[:, [low, low + 2]].ravel(), lines) for low in (0, 1))
    first, last = (_intervals(y_lines, edges[:, end]) for end in (kernels.Y1, kernels.Y2))
    times = last - first + 1
    if times.sum() > MOST_ENTRIES and lines > 2:
        return None
    edge = np.repeat(np.arange(len(edges)), times)  # once for each row that it touches
    row = first[edge] + np.arange(len(edge)) - (np.cumsum(times) - times)[edge]
    run = np.searchsorted(ends, edge, side="right") * len(y_lines) + row
    order = np.argsort(run, kind="stable")
    laid = edges[edge[order]]
    known, starts = np.unique(run[order], return_index=True)
    run_starts = np.append(starts, len(order))
    run_zones, run_rows = (part.astype(np.int32) for part in np.divmod(known, len(y_lines)))
    size = (len(x_lines) - 1) * (len(y_lines) - 1)
    counts = np.zeros(size, dtype=np.int32)
    cells, lists = np.full(size, kernels.EMPTY, np.int32), np.zeros(0, np.int32)
    runs_of = x_lines, y_lines, laid, run_starts, run_rows, run_zones
    kernels.list_zones(*runs_of, counts, cells, lists)
    lists = np.zeros(kernels.place_lists(counts, cells), np.int32)
    counts[:] = 0
    kernels.list_zones(*runs_of, counts, cells, lists)
    return kernels.ZoneIndex(x_lines, y_lines, cells, lists, laid)


def _intervals(lines: FloatArray, values: FloatArray) -> IntArray:
    """The interval between two lines that each value lies in. The last line closes the last interval."""
    return np.minimum(np.searchsorted(lines, values, side="right") - 1, len(lines) - 2)


def _quantiles(values: FloatArray, number: int) -> FloatArray:
    """Lines with about the same number of corners between any two, at corners themselves."""
    ordered = np.sort(values)
    places = np.linspace(0, len(ordered) - 1, number).round().astype(np.int64)
    lines = np.unique(ordered[places])
    if len(lines) == 1:  # a line of no width, which holds no point
        lines = np.array([lines[0], np.nextafter(lines[0], np.inf)])
    return lines
