"""What a web map tile holds: the leaves of a release within it, or squares of summed counts.

If few leaves of the release reach into a tile, they are its features, with intervals. If many do, or if the
map has more than two axes, the tile is a grid of squares with summed counts, never finer than the cells of
the release. Sides of squares are powers of two cells, so that they fit those of other tiles.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from htf.errors import InputError
from htf.frame.areas import square_kilometres
from htf.frame.crs import CRS84, transformer
from htf.frame.domain import Domain, FloatArray, IntArray
from htf.maps.browser.rectangles import in_map_coordinates
from htf.query.boxes import to_snapped_cells
from htf.query.columns import OF_LEAVES, place
from htf.query.unsure import are_unsure
from htf.query.where import Where, full_ranges

if TYPE_CHECKING:
    from htf.release.release import Release

Bounds = tuple[float, float, float, float]

DEEPEST = 24
MOST_LEAVES = 2048
GRID = 64  # squares per side, at most
FINE = 512  # cells along a tile, at most, where every cell has its true place


@dataclass(frozen=True, slots=True, eq=False)
class Contents:
    """Leaves of the release or squares, with answers."""

    boxes: FloatArray  # W,S,E,N in the coordinates of the map
    sizes: FloatArray  # widths and heights: the same number for the same number of cells
    columns: dict[str, FloatArray]
    area: FloatArray | None  # km²; None where the ground is not known
    is_clear: NDArray[np.bool_]  # more than noise, as on every map: the interval lies above zero
    is_unsure: NDArray[np.bool_]  # too few to tell: see htf.query.unsure
    are_leaves: bool

    def __len__(self) -> int:
        return len(self.boxes)


def tile_bounds(z: int, x: int, y: int) -> Bounds:
    """W,S,E,N in degrees of a tile of the usual web map, y counted from the north."""
    if not (0 <= z <= DEEPEST and 0 <= x < 2**z and 0 <= y < 2**z):
        raise InputError(f"there is no tile {z}/{x}/{y}: zoom goes to {DEEPEST}")

    def latitude(row: int) -> float:
        return math.degrees(math.atan(math.sinh(math.pi * (1 - 2 * row / 2**z))))

    return x / 2**z * 360 - 180, latitude(y + 1), (x + 1) / 2**z * 360 - 180, latitude(y)


def tile_contents(release: Release, bounds: Bounds, where: Where) -> Contents | None:
    """What reaches into the bounds, in degrees; None if the map does not. `where` is for further axes only."""
    domain = release.domain
    ranges = full_ranges(domain, where)
    if set(where) & set(domain.names[:2]):
        raise InputError(
            "a tile already names the place on the map: where is for further axes only"
        )
    edges = _edges_on_map(domain, bounds)
    if edges is None:
        return None
    touched = _touched(release, edges)
    if touched is not None:
        return _leaves(release, touched)
    return _grid(release, _frame(domain, edges), _spans(domain, edges), ranges)


def shows_all(release: Release, place: tuple[int, int, int]) -> bool:
    """Whether tiles below this one would show no more: it has all leaves or all cells, at their true places."""
    edges = _edges_on_map(release.domain, tile_bounds(*place))
    if edges is None:
        return True
    spans = _spans(release.domain, edges)
    has_cells = bool(np.all(spans <= GRID - 1))
    return has_cells or (bool(np.all(spans <= FINE)) and _touched(release, edges) is not None)


def in_degrees(bounds: Bounds, crs: str) -> Bounds:
    """W,S,E,N of a map in longitude and latitude."""
    if crs == CRS84:
        return bounds
    west, south, east, north = transformer(crs, CRS84).transform_bounds(*bounds, densify_pts=21)
    return west, south, east, north


def _frame(domain: Domain, edges: FloatArray) -> IntArray:
    """The first cell along both axes that a tile touches, and the one after the last."""
    cells = np.column_stack(
        [to_snapped_cells(axis, ends) for axis, ends in zip(domain.axes[:2], edges.T, strict=True)]
    )
    return np.array([np.floor(cells[0]), np.ceil(cells[1])], dtype=np.int64)


def _spans(domain: Domain, edges: FloatArray) -> FloatArray:
    """How many cells a tile is wide and high, also where it reaches beyond the map."""
    return np.asarray((edges[1] - edges[0]) * [axis.cells_per_unit for axis in domain.axes[:2]])


def _touched(release: Release, edges: FloatArray) -> IntArray | None:
    """The leaves that reach into a tile; None if there are too many, or further axes."""
    if release.domain.dimensions != 2:
        return None
    low, high, frame = release.low, release.high, _frame(release.domain, edges)
    # One axis after the other: four times as fast as both at once.
    touched = np.flatnonzero((low[:, 0] < frame[1, 0]) & (high[:, 0] > frame[0, 0]))
    touched = touched[(low[touched, 1] < frame[1, 1]) & (high[touched, 1] > frame[0, 1])]
    return touched if len(touched) <= MOST_LEAVES else None


def _edges_on_map(domain: Domain, bounds: Bounds) -> FloatArray | None:
    """The low and high edges of a tile in the coordinates of the map; None if it does not touch it."""
    sides: Any = bounds
    if domain.crs != CRS84:
        sides = transformer(CRS84, str(domain.crs)).transform_bounds(*bounds, densify_pts=21)
    edges = np.array(sides, dtype=np.float64).reshape(2, 2)
    on_map = np.array([(axis.low, axis.high) for axis in domain.axes[:2]]).T
    touches = np.all(np.isfinite(edges)) and np.all((edges[0] < on_map[1]) & (edges[1] > on_map[0]))
    return edges if touches else None


def _leaves(release: Release, touched: IntArray) -> Contents:
    low, high = release.low[touched], release.high[touched]
    answers = release.count(in_map_coordinates(release.domain, low, high))
    columns = answers.to_columns(of_leaves=True)
    unsure = release.derived.unsure_leaves[touched]
    return _contents(release, low, high, columns, unsure, are_leaves=True)


def _grid(release: Release, frame: IntArray, spans: FloatArray, ranges: FloatArray) -> Contents:
    """Squares of a power of two cells a side, by the span of the tile, wherever the map ends."""
    domain = release.domain
    edges = []
    for axis in (0, 1):
        first, end = frame[:, axis].tolist()
        step = 1
        while spans[axis] / step > GRID - 1:  # those at both ends may be cut
            step *= 2
        starts = np.arange(first // step * step, end, step)
        edges.append((starts, np.minimum(starts + step, domain.axes[axis].cells)))
    low = np.stack(np.meshgrid(edges[0][0], edges[1][0], indexing="ij"), -1).reshape(-1, 2)
    high = np.stack(np.meshgrid(edges[0][1], edges[1][1], indexing="ij"), -1).reshape(-1, 2)
    further = [
        to_snapped_cells(axis, pair) for axis, pair in zip(domain.axes[2:], ranges[2:], strict=True)
    ]
    lows, highs = (
        np.column_stack([side, *(np.full(len(side), pair[end]) for pair in further)])
        for end, side in enumerate((low, high))
    )
    answers = release.derived.answer_cells(lows, highs)
    columns = {name: answers[:, place(name)] for name in OF_LEAVES}
    unsure = are_unsure(release.derived.answer_cells, lows, highs, answers, domain.shape)
    return _contents(release, low, high, columns, unsure, are_leaves=False)


def _contents(
    release: Release,
    low: IntArray,
    high: IntArray,
    columns: dict[str, FloatArray],
    unsure: NDArray[np.bool_],
    *,
    are_leaves: bool,
) -> Contents:
    domain = release.domain
    boxes = in_map_coordinates(domain, low, high)
    sizes = (high - low) * [axis.cell_width for axis in domain.axes[:2]]
    area = square_kilometres(domain, low, high)
    return Contents(boxes, sizes, columns, area, columns["low"] > 0, unsure, are_leaves)
