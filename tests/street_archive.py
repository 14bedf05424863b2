"""Archives of vector tiles for tests: streets of a made-up place, in a layout of the two that are known."""

from __future__ import annotations

import gzip
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from htf.maps.browser.mercator import places_over

EXTENT = 4096
BUFFER = 64
POINT, LINE, POLYGON = 1, 2, 3
Feature = tuple[int, list[tuple[float, float]], dict[str, str]]  # type, degrees, attributes
Bounds = tuple[float, float, float, float]


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def _field(number: int, body: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(body)) + body


def _packed(numbers: Iterable[int]) -> bytes:
    return b"".join(map(_varint, numbers))


def _geometry(kind: int, corners: list[tuple[int, int]]) -> list[int]:
    found, (x, y) = [], (0, 0)
    for number, corner in enumerate(corners):
        if number < 2:
            found.append(1 << 3 | 1 if number == 0 else (len(corners) - 1) << 3 | 2)
        for step in (corner[0] - x, corner[1] - y):
            found.append(step << 1 ^ step >> 63)
        x, y = corner
    return [*found, 7 | 1 << 3] if kind == POLYGON else found


def encode_tile(layers: dict[str, list[Feature]], place: tuple[int, int, int]) -> bytes:
    """Shapes are not cut, only moved to the edge of the buffer: good enough for boxes and straight lines."""
    z, column, row = place

    def unit(longitude: float, latitude: float) -> tuple[int, int]:
        down = (1 - math.asinh(math.tan(math.radians(latitude))) / math.pi) / 2
        at = (((longitude + 180) / 360 * 2**z - column), (down * 2**z - row))
        x, y = (min(max(round(one * EXTENT), -BUFFER), EXTENT + BUFFER) for one in at)
        return x, y

    tile = b""
    for name, features in layers.items():
        keys: list[str] = []
        values: list[str] = []
        body = b""
        for kind, degrees, attributes in features:
            corners = [unit(*corner) for corner in degrees]
            is_inside = all(0 <= edge < EXTENT for edge in corners[0])
            if (kind == POINT and not is_inside) or (kind != POINT and len(set(corners)) < kind):
                continue
            tags = []
            for key, value in attributes.items():
                for table, one in ((keys, key), (values, value)):
                    if one not in table:
                        table.append(one)
                    tags.append(table.index(one))
            feature = _field(2, _packed(tags)) + _varint(3 << 3) + _varint(kind)
            body += _field(2, feature + _field(4, _packed(_geometry(kind, corners))))
        if body:
            head = _varint(15 << 3) + _varint(2) + _field(1, name.encode())
            tables = b"".join(_field(3, key.encode()) for key in keys)
            tables += b"".join(_field(4, _field(1, value.encode())) for value in values)
            tile += _field(3, head + body + tables + _varint(5 << 3) + _varint(EXTENT))
    return tile


def streets(bounds: Bounds, layout: str = "protomaps") -> dict[str, list[Feature]]:
    """A lake in the middle of the south, a park beside it, a grid of roads, buildings, a border and names."""
    west, south, east, north = bounds
    across, up = east - west, north - south

    def at(x: float, y: float) -> tuple[float, float]:
        return west + x * across, south + y * up

    def box(x: float, y: float, width: float, height: float) -> list[tuple[float, float]]:
        return [at(x, y + height), at(x + width, y + height), at(x + width, y), at(x, y)]

    is_first = layout == "protomaps"
    key = "kind" if is_first else "class"
    major, minor = ("major_road", "minor_road") if is_first else ("primary", "minor")
    lines = [number / 20 for number in range(1, 20)]
    roads: list[Feature] = []
    for number, one in enumerate(lines):
        kind = {key: major if number % 6 == 3 else minor}
        roads += [(LINE, [at(one, 0), at(one, 1)], kind), (LINE, [at(0, one), at(1, one)], kind)]
    houses: list[Feature] = [
        (POLYGON, box(x + 0.01, y + 0.01, 0.02, 0.02), {}) for x in lines[::2] for y in lines[::2]
    ]
    names = ("roads", "landuse", "buildings", "boundaries", "places")
    if not is_first:
        names = ("transportation", "park", "building", "boundary", "place")
    town, suburb = ("locality", "neighbourhood") if is_first else ("town", "suburb")
    parts: tuple[list[Feature], ...] = (
        roads,
        [(POLYGON, box(0.7, 0.1, 0.2, 0.3), {key: "park"})],
        houses,
        [(LINE, [at(0, 0.88), at(1, 0.88)], {key: "county"})],
        [
            (POINT, [at(0.3, 0.7)], {key: town, "name": "Streetham", "min_zoom": "7"}),
            (POINT, [at(0.8, 0.6)], {key: suburb, "name": "Laneside"}),
        ],
    )
    lake: list[Feature] = [(POLYGON, box(0.35, 0.1, 0.3, 0.25), {key: "lake"})]
    tram: list[Feature] = [(LINE, [at(0, 0.53), at(1, 0.53)], {"line": "7"})]
    return {"water": lake, **dict(zip(names, parts, strict=True)), "tramlines": tram}


def write_archive(
    path: Path,
    bounds: Bounds,
    layers: dict[str, list[Feature]] | None = None,
    *,
    zooms: tuple[int, int] = (5, 11),
    is_zipped: bool = True,
    header: dict[str, Any] | None = None,
) -> Path:
    """A PMTiles file with these layers, those of `streets` by default."""
    from pmtiles import tile as format
    from pmtiles.writer import Writer

    layers = streets(bounds) if layers is None else layers
    west, south, east, north = (round(edge * 10**7) for edge in bounds)
    found = [place for zoom in range(zooms[0], zooms[1] + 1) for place in places_over(bounds, zoom)]
    with open(path, "wb") as file:
        writer = Writer(file)
        for place in sorted(found, key=lambda one: format.zxy_to_tileid(*one)):
            body = encode_tile(layers, place)
            packed = gzip.compress(body, mtime=0) if is_zipped else body
            writer.write_tile(format.zxy_to_tileid(*place), packed)
        compression = format.Compression.GZIP if is_zipped else format.Compression.NONE
        told = {
            "tile_type": format.TileType.MVT,
            "tile_compression": compression,
            "min_lon_e7": west,
            "min_lat_e7": south,
            "max_lon_e7": east,
            "max_lat_e7": north,
            "center_zoom": zooms[0],
            "center_lon_e7": (west + east) // 2,
            "center_lat_e7": (south + north) // 2,
        }
        about = {
            "attribution": '<a href="https://example.org">&copy; Mappers</a>',
            "vector_layers": [{"id": name, "fields": {}} for name in layers],
        }
        writer.finalize(told | (header or {}), about)
        writer.tile_f.close()
    return path


def raw_archive(path: Path, metadata: bytes, directory: bytes, tile: bytes = b"") -> Path:
    """A PMTiles file with these parts as they are: what nobody's writer would write."""
    from pmtiles import tile as format

    at = 127 + len(directory)
    header = {
        "root_offset": 127, "root_length": len(directory), "metadata_offset": at, "metadata_length": len(metadata),
        "leaf_directory_offset": at + len(metadata), "leaf_directory_length": 0,
        "tile_data_offset": at + len(metadata), "tile_data_length": len(tile), "clustered": False,
        "internal_compression": format.Compression.GZIP, "tile_compression": format.Compression.GZIP,
        "tile_type": format.TileType.MVT, "min_zoom": 0, "max_zoom": 2,
    }  # fmt: skip
    path.write_bytes(format.serialize_header(header) + directory + metadata + tile)
    return path


def zeros(size: int, of: bytes = b"\0") -> bytes:
    """Many equal bytes, packed by gzip."""
    return gzip.compress(of * size, mtime=0)


def one_tile(length: int) -> bytes:
    """A directory that has the tile of the whole world, at the start of the tiles."""
    from pmtiles import tile as format

    return bytes(format.serialize_directory([format.Entry(0, 0, length, 1)]))
