"""A release as an archive of vector tiles over many zooms (PMTiles, version 3): one file that a web map reads in parts.

Zooms go from the whole world down to where tiles show everything that the release knows: all leaves, or single cells.
Beyond, map libraries enlarge the last ones. A file that would have too many tiles ends earlier.
"""

from __future__ import annotations

import gzip
import math
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

from htf.base.extras import need
from htf.errors import InputError
from htf.export.provenance import EXPORT, provenance
from htf.files import write_whole
from htf.frame.domain import Domain
from htf.maps.browser.mercator import Bounds, edges_in_degrees, number_over, places_over
from htf.maps.tiles import DEEPEST, shows_all
from htf.maps.vector_tiles import LAYER, STEPS, vector_tile
from htf.query.columns import OF_LEAVES
from htf.query.where import Where, told_where
from htf.release.release import Release

MOST_TILES = 20_000  # about 5 minutes
GZIP_LEVEL = 9
RULE = (
    "Vector tiles. Where few leaves of the release reach into a tile, they are its features; elsewhere these are squares "
    f"of summed counts. Numbers are rounded to 1/{STEPS} of their standard error or less. Shapes are cut off beyond "
    "their tile; west, south, width and height are those of the whole rectangle, on the map of the release. density: "
    "{quantity} per square kilometre. clear: the interval lies above zero. unsure: it holds zero, and a "
    "third of the density around the place, or more."
)


@dataclass(frozen=True, slots=True)
class Written:
    """What an archive holds."""

    tiles: int
    zoom: int  # the deepest
    shows_all: bool  # whether the deepest tiles show all that the release knows


def write_tiles(
    release: Release,
    path: Path,
    where: Where | None = None,
    zoom: int | None = None,
    *,
    overwrite: bool = False,
    tell: Callable[[int], None] = lambda _: None,
) -> Written:
    """Write all tiles down to a zoom, or as deep as makes sense, and say what was written. `tell` is called for each zoom."""
    bounds = _bounds(release.domain)
    need("Writing PMTiles", "pmtiles")
    from pmtiles import tile as format
    from pmtiles.writer import Writer

    if zoom is not None:
        _check_number(bounds, zoom)
    about = provenance(release, RULE.format(quantity=release.quantity) + told_where(where or {}))
    found: list[Written] = []

    def write(unfinished: Path) -> None:
        with open(unfinished, "wb") as file:
            writer = Writer(file)
            with closing(writer.tile_f):  # its own temporary file, also if something fails
                made = _fill(writer, format.zxy_to_tileid, release, bounds, where or {}, zoom, tell)
                metadata = _metadata(release, about, path.stem, made.zoom)
                writer.finalize(_header(format, bounds), metadata)
        found.append(made)

    write_whole(path, write, overwrite=overwrite)
    return found[0]


def _bounds(domain: Domain) -> Bounds:
    if not domain.has_map or domain.crs is None:
        lack = "no reference system" if domain.has_map else "no axes x and y"
        other = ".gpkg" if domain.has_shapes else ".csv"
        raise InputError(
            f"this release has {lack}, so it has no tiles: write another format, such as {other}"
        )
    x, y = domain.axes[:2]
    return edges_in_degrees((x.low, y.low, x.high, y.high), domain.crs)


def _check_number(bounds: Bounds, deepest: int) -> None:
    """Refuse a zoom with too many tiles before any is made: each further zoom has up to four times as many."""
    numbers = list(accumulate(number_over(bounds, z) for z in range(deepest + 1)))
    if numbers[-1] > MOST_TILES:
        fits = sum(number <= MOST_TILES for number in numbers) - 1
        raise InputError(
            f"zoom {deepest} needs {numbers[-1]:,} tiles, and at most {MOST_TILES:,} are made: "
            f"give --max-zoom {fits} or less, or leave it out"
        )


def _fill(
    writer: Any,
    number_of: Callable[..., int],
    release: Release,
    bounds: Bounds,
    where: Where,
    deepest: int | None,
    tell: Callable[[int], None],
) -> Written:
    tiles, is_whole = 0, False
    for z in range(DEEPEST + 1):
        too_many = tiles + number_over(bounds, z) > MOST_TILES
        if is_whole or too_many if deepest is None else z > deepest:
            return Written(tiles, z - 1, is_whole)
        tell(z)
        places = sorted(places_over(bounds, z), key=lambda place: number_of(*place))
        for place in places:
            body = vector_tile(release, place, where)
            if body:
                writer.write_tile(number_of(*place), gzip.compress(body, GZIP_LEVEL, mtime=0))
                tiles += 1
        is_whole = all(shows_all(release, place) for place in places)
    return Written(tiles, DEEPEST, is_whole)


def _header(format: Any, bounds: Bounds) -> dict[str, Any]:
    west, south, east, north = (round(edge * 10**7) for edge in bounds)
    size = max((bounds[2] - bounds[0]) / 360, 1e-6)
    return {
        "tile_type": format.TileType.MVT,
        "tile_compression": format.Compression.GZIP,
        "min_lon_e7": west,
        "min_lat_e7": south,
        "max_lon_e7": east,
        "max_lat_e7": north,
        "center_zoom": min(max(int(-math.log2(size)), 0), DEEPEST),
        "center_lon_e7": (west + east) // 2,
        "center_lat_e7": (south + north) // 2,
    }


def _metadata(release: Release, about: dict[str, Any], name: str, zoom: int) -> dict[str, Any]:
    fields = {
        **dict.fromkeys((*OF_LEAVES, "density", "west", "south", "width", "height"), "Number"),
        **dict.fromkeys(("clear", "unsure"), "Boolean"),
    }
    if not release.private:
        fields["not_private"] = "Boolean"
    layer = {"id": LAYER, "fields": fields, "minzoom": 0, "maxzoom": zoom}
    return {
        "name": name,
        "description": about["statement"],
        "type": "overlay",
        "generator": about["software"],
        "vector_layers": [layer],
        EXPORT: about,
    }
