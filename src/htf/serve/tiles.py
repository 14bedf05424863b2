"""Web map tiles: the counts of a release within one tile, as GeoJSON.

If few leaves of the release reach into a tile, they are its features, with intervals. If many do, or if the
map has more than two axes, the tile is a grid of squares with summed counts, never finer than the cells of
the release. Sides of squares are powers of two cells, so that they fit those of other tiles. Shapes are cut
off at the edge of the tile, so that tiles never overlap. Counts are those of the whole leaf or square, whose
edges are in `box`.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
from numpy.typing import NDArray

from htf.frame.areas import square_kilometres
from htf.frame.crs import CRS84, transformer
from htf.frame.domain import Domain, FloatArray, IntArray
from htf.maps.browser.rectangles import MOST_OUTLINES, packed_outlines
from htf.query.boxes import to_snapped_cells
from htf.query.columns import place
from htf.query.where import Where, full_ranges
from htf.serve.holdings import Bounds
from htf.serve.limits import Refusal
from htf.serve.replies import Packed

if TYPE_CHECKING:
    from htf.release.release import Release
    from htf.serve.holdings import Holding

DEEPEST = 24
MOST_DIGITS = len(str(2**DEEPEST))
MOST_LEAVES = 2048
GRID = 64  # squares per side, at most
PLACES = 9  # decimals of degrees: a tenth of a millimetre
POINTS_PER_EDGE = 8  # of rectangles that another reference system bends
POLYGON = 3  # as shapely numbers types of geometry


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """The contents of a tile: leaves of the release or squares, in cells of the first two axes, with answers."""

    low: IntArray
    high: IntArray
    columns: dict[str, FloatArray]
    is_clear: NDArray[np.bool_]  # more than noise, as on every map: the interval lies above zero


class TileCache:
    """The tiles requested last, up to a number of bytes."""

    def __init__(self, most: int) -> None:
        self._most, self._size = most, 0
        self._tiles: OrderedDict[str, Packed] = OrderedDict()

    def get(self, key: str) -> Packed | None:
        if key in self._tiles:
            self._tiles.move_to_end(key)
        return self._tiles.get(key)

    def put(self, key: str, tile: Packed) -> None:
        if key in self._tiles or tile.size > self._most:
            return
        self._tiles[key] = tile
        self._size += tile.size
        while self._size > self._most:
            _, dropped = self._tiles.popitem(last=False)
            self._size -= dropped.size


def read_place(*texts: str) -> tuple[int, ...]:
    """Zoom, column and row from a URL, as plain digits only: Python would fail at thousands of digits, and
    accept those of other scripts."""
    if not all(text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS for text in texts):
        raise _no_tile(*texts)
    return tuple(map(int, texts))


def tile_bounds(z: int, x: int, y: int) -> Bounds:
    """W,S,E,N in degrees of a tile of the usual web map, y counted from the north."""
    if not (0 <= z <= DEEPEST and 0 <= x < 2**z and 0 <= y < 2**z):
        raise _no_tile(z, x, y)

    def latitude(row: int) -> float:
        return math.degrees(math.atan(math.sinh(math.pi * (1 - 2 * row / 2**z))))

    return x / 2**z * 360 - 180, latitude(y + 1), (x + 1) / 2**z * 360 - 180, latitude(y)


def _no_tile(*place: int | str) -> Refusal:
    told = "/".join(map(str, place))
    return Refusal(
        404, f"there is no tile {told:.100}: zoom goes to {DEEPEST}, columns and rows from 0"
    )


def check_tiles(domain: Domain) -> None:
    if not domain.has_map or domain.crs is None:
        if domain.zoned:
            raise Refusal(404, "this release has zones, so it has no tiles: …/zones has its map")
        lack = "no reference system" if domain.has_map else "no axes x and y"
        raise Refusal(404, f"this release has {lack}, so it has no tiles")


def make_tile(holding: Holding, bounds: Bounds, where: Where) -> Packed:
    """The tile as GeoJSON, compressed too."""
    release = holding.release
    ranges = full_ranges(release.domain, where)
    _check_further(release.domain, where)
    edges = _edges_on_map(release.domain, bounds)
    features: list[dict[str, Any]] = []
    if edges is not None:
        features = _features(release.domain, _boxes(release, edges, ranges), bounds)
    said = {"type": "FeatureCollection", "epsilon": str(release.epsilon), **holding.label}
    return Packed.of(orjson.dumps({**said, "features": features}))


def make_outlines(holding: Holding, where: Where) -> Packed:
    """The outlines of all leaves, packed as in a map file. They show where the tree is fine or coarse."""
    release = holding.release
    _check_further(release.domain, where)
    outlines = packed_outlines(release, where)
    if outlines is None:
        raise Refusal(413, f"this release has more than {MOST_OUTLINES:,} leaves: too many to draw")
    return Packed.of(orjson.dumps({**outlines, **holding.mark}))


def _check_further(domain: Domain, where: Where) -> None:
    if set(where) & set(domain.names[:2]):
        raise Refusal(
            400, "a tile already names the place on the map: where is for further axes only"
        )


def _edges_on_map(domain: Domain, bounds: Bounds) -> FloatArray | None:
    """The low and high edges of a tile in the coordinates of the map; None if it does not touch it."""
    sides: Any = bounds
    if domain.crs != CRS84:
        sides = transformer(CRS84, str(domain.crs)).transform_bounds(*bounds, densify_pts=21)
    edges = np.array(sides, dtype=np.float64).reshape(2, 2)
    on_map = np.array([(axis.low, axis.high) for axis in domain.axes[:2]]).T
    touches = np.all(np.isfinite(edges)) and np.all((edges[0] < on_map[1]) & (edges[1] > on_map[0]))
    return edges if touches else None


def _boxes(release: Release, edges: FloatArray, ranges: FloatArray) -> Features:
    axes = release.domain.axes[:2]
    cells = np.column_stack(
        [to_snapped_cells(axis, ends) for axis, ends in zip(axes, edges.T, strict=True)]
    )
    frame = np.array([np.floor(cells[0]), np.ceil(cells[1])], dtype=np.int64)
    spans = (edges[1] - edges[0]) * [axis.cells_per_unit for axis in axes]
    if release.domain.dimensions == 2:
        inside = (release.low < frame[1]) & (release.high > frame[0])
        touched = np.flatnonzero(np.all(inside, axis=1))
        if len(touched) <= MOST_LEAVES:
            return _leaves(release, touched)
    return _grid(release, frame, spans, ranges)


def _leaves(release: Release, touched: IntArray) -> Features:
    low, high = release.low[touched], release.high[touched]
    answers = release.count(_on_map(release.domain, low, high))
    return Features(low, high, answers.to_columns(of_leaves=True), answers.low > 0)


def _grid(release: Release, frame: IntArray, spans: FloatArray, ranges: FloatArray) -> Features:
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
    count, least = (answers[:, place(name)] for name in ("count", "low"))
    return Features(low, high, {"count": count}, least > 0)


def _on_map(domain: Domain, low: IntArray, high: IntArray) -> FloatArray:
    """W,S,E,N of rectangles in cells."""
    x, y = domain.axes[:2]
    edges = ((x, low[:, 0]), (y, low[:, 1]), (x, high[:, 0]), (y, high[:, 1]))
    return np.column_stack([axis.from_cells(cells) for axis, cells in edges])


def _features(domain: Domain, drawn: Features, bounds: Bounds) -> list[dict[str, Any]]:
    edges = _on_map(domain, drawn.low, drawn.high)
    columns = dict(drawn.columns)
    area = square_kilometres(domain, drawn.low, drawn.high)
    if area is not None:
        columns["density"] = columns["count"] / area
    kept, rings = (_cut if domain.crs == CRS84 else _bent)(domain, edges, bounds)
    values = np.column_stack([column[kept] for column in columns.values()]).tolist()
    features = []
    are_clear = drawn.is_clear[kept].tolist()
    for ring, value, box, clear in zip(rings, values, edges[kept].tolist(), are_clear, strict=True):
        properties: dict[str, Any] = dict(zip(columns, value, strict=True))
        properties |= {"box": box, "clear": clear}
        shape = {"type": "Polygon", "coordinates": [ring]}
        features.append({"type": "Feature", "geometry": shape, "properties": properties})
    return features


def _cut(_: Domain, edges: FloatArray, bounds: Bounds) -> tuple[IntArray, list[Any]]:
    """Rectangles in degrees, cut at the tile: which of them are left, and their rings."""
    west, south = np.maximum(edges[:, 0], bounds[0]), np.maximum(edges[:, 1], bounds[1])
    east, north = np.minimum(edges[:, 2], bounds[2]), np.minimum(edges[:, 3], bounds[3])
    kept = np.flatnonzero((west < east) & (south < north))
    corners = [(west, south), (east, south), (east, north), (west, north), (west, south)]
    rings = np.stack([np.column_stack([x[kept], y[kept]]) for x, y in corners], axis=1)
    return kept, np.round(rings, PLACES).tolist()


def _bent(domain: Domain, edges: FloatArray, bounds: Bounds) -> tuple[IntArray, list[Any]]:
    """The same for rectangles of another reference system, whose edges are bent in degrees."""
    from htf.query.shapes import need_shapely

    shapely = need_shapely("Tiles of a map that is not in degrees")
    sides = np.max(edges[:, 2:] - edges[:, :2], axis=1)
    shapes = shapely.segmentize(shapely.box(*edges.T), sides / POINTS_PER_EDGE)
    to_degrees = transformer(str(domain.crs), CRS84)
    shapes = shapely.transform(
        shapes, lambda xy: np.column_stack(to_degrees.transform(xy[:, 0], xy[:, 1]))
    )
    shapes = shapely.intersection(shapes, shapely.box(*bounds), grid_size=0)
    kept = np.flatnonzero((shapely.get_type_id(shapes) == POLYGON) & (shapely.area(shapes) > 0))
    outlines = shapely.get_exterior_ring(shapely.orient_polygons(shapes[kept]))
    return kept, [np.round(shapely.get_coordinates(one), PLACES).tolist() for one in outlines]
