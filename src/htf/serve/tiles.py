"""What the map of a release is drawn from: vector tiles, and the outlines of all leaves.

`htf.maps.tiles` says what a tile holds, and `htf.maps.vector_tiles` encodes it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping

import orjson

from htf.frame.domain import Domain
from htf.maps.browser.rectangles import MOST_OUTLINES, packed_outlines
from htf.maps.tiles import DEEPEST
from htf.maps.vector_tiles import vector_tile
from htf.query.where import Where, full_ranges
from htf.serve.holdings import Holding
from htf.serve.limits import Refusal
from htf.serve.replies import Packed

MOST_DIGITS = len(str(2**DEEPEST))
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


def read_place(path: Mapping[str, str]) -> tuple[int, int, int]:
    """Zoom, column and row from a URL, as plain digits only: Python would fail at thousands of digits, and
    accept those of other scripts."""
    texts = path["z"], path["x"], path["y"]
    if all(text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS for text in texts):
        z, x, y = map(int, texts)
        if z <= DEEPEST and max(x, y) < 2**z:
            return z, x, y
    raise Refusal(
        404,
        f"there is no tile {'/'.join(texts):.100}: zoom goes to {DEEPEST}, columns and rows from 0",
    )


def check_tiles(domain: Domain) -> None:
    if not domain.has_map or domain.crs is None:
        if domain.outlined:
            raise Refusal(404, "this release has zones, so it has no tiles: …/zones has its map")
        lack = "no reference system" if domain.has_map else "no axes x and y"
        raise Refusal(404, f"this release has {lack}, so it has no tiles")


def make_vector_tile(holding: Holding, place: tuple[int, int, int], where: Where) -> bytes:
    check_tiles(holding.release.domain)
    _check_further(holding.release.domain, where)
    return vector_tile(holding.release, place, where, intervals=False)


def make_outlines(holding: Holding, where: Where) -> bytes:
    """The outlines of all leaves, packed as in a map file. They show where the tree is fine or coarse."""
    release = holding.release
    check_tiles(release.domain)
    _check_further(release.domain, where)
    outlines = packed_outlines(release, where)
    if outlines is None:
        raise Refusal(413, f"this release has more than {MOST_OUTLINES:,} leaves: too many to draw")
    return orjson.dumps({**outlines, **holding.mark})


def _check_further(domain: Domain, where: Where) -> None:
    full_ranges(domain, where)  # names an axis that there is not
    if set(where) & set(domain.names[:2]):
        raise Refusal(
            400, "a tile already names the place on the map: where is for further axes only"
        )
