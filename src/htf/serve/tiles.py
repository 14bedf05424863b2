"""Web map tiles of a release: as GeoJSON, and smaller as vector tiles.

`htf.maps.tiles` says what a tile holds. As GeoJSON, shapes are cut off at the edge of the tile, so that tiles never
overlap. Counts are those of the whole leaf or square, whose edges are in `box`.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from htf.frame.crs import CRS84, transformer
from htf.frame.domain import Domain, FloatArray, IntArray
from htf.maps.browser.rectangles import MOST_OUTLINES, packed_outlines
from htf.maps.tiles import DEEPEST, Bounds, Contents, tile_contents
from htf.maps.tiles import tile_bounds as bounds_of
from htf.maps.vector_tiles import POINTS_PER_EDGE, POLYGON, vector_tile
from htf.query.where import Where, full_ranges
from htf.serve.limits import Refusal
from htf.serve.replies import Packed

if TYPE_CHECKING:
    from htf.serve.holdings import Holding

MOST_DIGITS = len(str(2**DEEPEST))
PLACES = 9  # decimals of degrees: a tenth of a millimetre
VECTOR_GZIP = 6  # a third more of time than for other answers, for a tenth less of bytes


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


def read_place(z: str, x: str, y: str) -> tuple[int, int, int]:
    """Zoom, column and row from a URL, as plain digits only: Python would fail at thousands of digits, and
    accept those of other scripts."""
    texts = z, x, y
    if not all(text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS for text in texts):
        raise _no_tile(*texts)
    return int(z), int(x), int(y)


def tile_bounds(z: int, x: int, y: int) -> Bounds:
    """W,S,E,N in degrees of a tile of the usual web map, y counted from the north."""
    if not (0 <= z <= DEEPEST and 0 <= x < 2**z and 0 <= y < 2**z):
        raise _no_tile(z, x, y)
    return bounds_of(z, x, y)


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
    _check_further(release.domain, where)
    contents = tile_contents(release, bounds, where)
    features = [] if contents is None else _features(release.domain, contents, bounds)
    said = {"type": "FeatureCollection", "epsilon": str(release.epsilon), **holding.label}
    return Packed.of(orjson.dumps({**said, "features": features}))


def make_vector_tile(holding: Holding, place: tuple[int, int, int], where: Where) -> Packed:
    """The tile as a Mapbox Vector Tile, compressed too."""
    _check_further(holding.release.domain, where)
    return Packed.of(vector_tile(holding.release, place, where, intervals=False), VECTOR_GZIP)


def make_outlines(holding: Holding, where: Where) -> Packed:
    """The outlines of all leaves, packed as in a map file. They show where the tree is fine or coarse."""
    release = holding.release
    _check_further(release.domain, where)
    outlines = packed_outlines(release, where)
    if outlines is None:
        raise Refusal(413, f"this release has more than {MOST_OUTLINES:,} leaves: too many to draw")
    return Packed.of(orjson.dumps({**outlines, **holding.mark}))


def _check_further(domain: Domain, where: Where) -> None:
    full_ranges(domain, where)  # names an axis that there is not
    if set(where) & set(domain.names[:2]):
        raise Refusal(
            400, "a tile already names the place on the map: where is for further axes only"
        )


def _features(domain: Domain, drawn: Contents, bounds: Bounds) -> list[dict[str, Any]]:
    edges = drawn.boxes
    columns = dict(drawn.columns) if drawn.are_leaves else {"count": drawn.columns["count"]}
    if drawn.area is not None:
        columns["density"] = columns["count"] / drawn.area
    kept, rings = (_cut if domain.crs == CRS84 else _bent)(domain, edges, bounds)
    values = np.column_stack([column[kept] for column in columns.values()]).tolist()
    features = []
    marks = zip(drawn.is_clear[kept].tolist(), drawn.is_unsure[kept].tolist(), strict=True)
    for ring, value, box, (clear, unsure) in zip(
        rings, values, edges[kept].tolist(), marks, strict=True
    ):
        properties: dict[str, Any] = dict(zip(columns, value, strict=True))
        properties |= {"box": box, "clear": clear, "unsure": unsure}
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
