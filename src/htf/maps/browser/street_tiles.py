"""Vector tiles of your own as a base map, such as streets: read from a PMTiles file, which stays where it is.

A file for a browser carries the tiles around its map, at the zooms that fit into it. The server sends single tiles. Both
draw the layers of Protomaps and of OpenMapTiles (static/shared/streets.js).
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
import os
import re
import threading
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from htf.base.extras import need
from htf.base.unpacking import TooLargeError, gunzip
from htf.errors import InputError
from htf.files import is_file
from htf.maps.basemap import Bounds, widened
from htf.maps.browser.mercator import NORTHERNMOST, number_over, places_over
from htf.maps.tiles import DEEPEST

MOST_BYTES = 8_000_000  # of tiles in a file, before they become text
MOST_TILES = 20_000  # of a zoom: more are not looked for
MARGIN = 0.25  # in sides of the map
LONGEST_CREDIT = 200  # letters
WORLD: Bounds = (-180.0, -NORTHERNMOST, 180.0, NORTHERNMOST)
KEPT_DIRECTORIES = 16
HEADER_BYTES = 127
# What may be unpacked. Archives of the whole world stay far below: an archive is anybody's, and a megabyte may stand for a gigabyte.
MOST_METADATA = 4_000_000
MOST_DIRECTORY = 2_000_000
MOST_ENTRIES = 100_000  # of a directory
MOST_TILE = 8_000_000
VARINT = 10  # bytes of a number, at most
GZIP_START = b"\x1f\x8b"
Place = tuple[int, int, int]  # zoom, column and row


class Archive:
    """A PMTiles file of vector tiles, open for reading. Several threads may read it."""

    def __init__(self, path: Path) -> None:
        need("A base map from PMTiles", "pmtiles")
        from pmtiles import tile as format

        if not is_file(path):
            raise InputError(f"there is no file {path}")
        self.path, self._format = path, format
        self._lock = threading.Lock()
        self._file = open(path, "rb")  # noqa: SIM115 - open as long as tiles are read
        self._directory = lru_cache(KEPT_DIRECTORIES)(self._read_directory)
        try:
            self._read_head()
        except BaseException:
            self.close()
            raise

    def _read_head(self) -> None:
        try:
            head = self._bytes(0, HEADER_BYTES, HEADER_BYTES)
            self._header = self._format.deserialize_header(head)
            told = self._told(self._header)
            self._directory(self._header["root_offset"], self._header["root_length"])
        except Exception as error:
            reason = f" ({error})" if isinstance(error, TooLargeError) else ""
            raise InputError(
                f"{self.path} is not a PMTiles archive of version 3{reason}: --basemap takes one with vector tiles"
            ) from error
        kind, packing = self._header["tile_type"], self._header["tile_compression"]
        if kind != self._format.TileType.MVT:
            raise InputError(
                f"{self.path} has tiles of type {kind.name}: --basemap takes vector tiles (MVT), not pictures"
            )
        known = self._format.Compression
        if packing not in (known.GZIP, known.NONE, known.UNKNOWN):
            raise InputError(
                f"{self.path} has tiles compressed with {packing.name.lower()}: write it again with gzip"
            )
        self._stamp = self._now()
        self.etag = hashlib.sha256(head + repr(self._stamp).encode()).hexdigest()[:32]
        self.zooms = self._header["min_zoom"], min(self._header["max_zoom"], DEEPEST)
        self.bounds = _covered(self._header)
        listed = told.get("vector_layers")
        found = listed if isinstance(listed, list) else []
        self.layers = [str(one["id"]) for one in found if isinstance(one, dict) and "id" in one]
        credit = re.sub(r"<[^>]*>", "", str(told.get("attribution") or self.path.stem))
        self.credit = html.unescape(credit)[:LONGEST_CREDIT]

    def _told(self, header: Any) -> dict[str, Any]:
        body = self._bytes(header["metadata_offset"], header["metadata_length"], MOST_METADATA)
        told = json.loads(gunzip(body, MOST_METADATA) if body.startswith(GZIP_START) else body)
        if not isinstance(told, dict):
            raise TypeError("metadata are an object")
        return told

    def _now(self) -> tuple[int, int]:
        state = os.fstat(self._file.fileno())
        return state.st_size, state.st_mtime_ns

    def _bytes(self, start: int, length: int, most: int) -> bytes:
        """Bytes of the file. Where they are is what the file itself says."""
        if length > most:
            raise TooLargeError(f"a part of {self.path} has {length:,} bytes, more than {most:,}")
        if start + length > os.fstat(self._file.fileno()).st_size:
            raise InputError(f"{self.path} is damaged: a part of it would lie beyond its end")
        with self._lock:
            self._file.seek(start)
            return self._file.read(length)

    def _read_directory(self, start: int, length: int) -> Any:
        try:
            packed = self._bytes(start, length, MOST_DIRECTORY)
            _check_directory(gunzip(packed, MOST_DIRECTORY))
            return self._format.deserialize_directory(packed)
        except Exception as error:
            raise InputError(f"{self.path} is damaged: its directory of tiles is broken") from error

    def find(self, place: Place) -> tuple[int, int] | None:
        """Where the bytes of a tile start, and how many there are; None if there is no such tile."""
        number = self._format.zxy_to_tileid(*place)
        start, length = self._header["root_offset"], self._header["root_length"]
        for _ in range(4):  # directories of directories
            found = self._format.find_tile(self._directory(start, length), number)
            if found is None:
                return None
            if found.run_length:
                return self._header["tile_data_offset"] + found.offset, found.length
            start, length = self._header["leaf_directory_offset"] + found.offset, found.length
        return None

    def read(self, start: int, length: int) -> bytes:
        """The bytes of a tile as they are in the file, compressed or not."""
        if self._now() != self._stamp:
            raise InputError(f"{self.path} has changed since it was opened: start again")
        return self._bytes(start, length, MOST_TILE)

    def tile(self, place: Place) -> tuple[bytes, bytes | None]:
        """A tile, and the same compressed if it is so in the file. Without bytes if there is none."""
        found = self.find(place)
        if found is None:
            return b"", None
        body = self.read(*found)
        if not body.startswith(GZIP_START):
            return body, None
        try:
            return gunzip(body, MOST_TILE), body
        except (TooLargeError, ValueError) as error:
            raise InputError(f"a tile of {self.path} is damaged: {error}") from error

    def told(self) -> dict[str, Any]:
        """What a browser needs to draw tiles."""
        return {
            "minzoom": self.zooms[0],
            "maxzoom": self.zooms[1],
            "bounds": list(self.bounds),
            "layers": self.layers,
        }

    def close(self) -> None:
        self._file.close()


def _check_directory(unpacked: bytes) -> None:
    """Refuse a directory with very many entries, or very long numbers: reading one takes as long as its square."""
    goes_on = np.frombuffer(unpacked, dtype=np.uint8) >= 0x80
    ends = np.flatnonzero(~goes_on)
    longest = np.diff(ends, prepend=-1).max(initial=0)
    entries = 0
    for place, byte in enumerate(unpacked[: VARINT + 1]):
        entries |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            break
    if longest > VARINT or goes_on[-1:].any() or entries > MOST_ENTRIES:
        raise ValueError("no archive has such a directory")


def _covered(header: Any) -> Bounds:
    west, south, east, north = (
        header[name] / 10**7 for name in ("min_lon_e7", "min_lat_e7", "max_lon_e7", "max_lat_e7")
    )
    is_told = west < east and south < north
    return _common((west, south, east, north), WORLD) if is_told else WORLD


def _common(one: Bounds, other: Bounds) -> Bounds:
    west, south = map(max, one[:2], other[:2])
    east, north = map(min, one[2:], other[2:])
    return west, south, east, north


def overlaps(one: Bounds, other: Bounds) -> bool:
    west, south, east, north = _common(one, other)
    return west < east and south < north


def carried_tiles(path: Path, bounds: Bounds, fitting_zoom: float) -> tuple[dict[str, Any], str]:
    """The tiles around a map as text, from the zoom at which all of it is seen to the deepest that fits; and whose work
    they are."""
    with closing(Archive(path)) as archive:
        return _carried(archive, bounds, fitting_zoom), archive.credit


def _carried(archive: Archive, bounds: Bounds, fitting_zoom: float) -> dict[str, Any]:
    around = widened(bounds, MARGIN)
    first, last = archive.zooms
    chosen: dict[Place, tuple[int, int]] = {}
    deepest = first
    for zoom in range(min(max(math.floor(fitting_zoom) - 1, first), last), last + 1):
        if number_over(around, zoom) > MOST_TILES:
            break
        found = {place: at for place in places_over(around, zoom) if (at := archive.find(place))}
        size = sum(length for _, length in {*chosen.values(), *found.values()})
        if size > MOST_BYTES and chosen:
            break
        if size > MOST_BYTES:
            raise InputError(
                f"the tiles of {archive.path} around this map have {size / 1e6:.1f} MB at zoom {zoom}, and a map in one file "
                f"carries at most {MOST_BYTES // 10**6} MB: take an archive with fewer layers, draw a smaller map, or use "
                "htf serve --basemap"
            )
        chosen |= found
        deepest = zoom
    if not chosen:
        raise InputError(
            f"{archive.path} has no tiles where this map is, at {_shown(bounds)}: it covers {_shown(archive.bounds)}, "
            f"at zooms {first} to {last}"
        )
    return {
        **archive.told(),
        "minzoom": min(chosen)[0],
        "maxzoom": deepest,
        "bounds": list(_common(around, archive.bounds)),
        **_joined(archive, chosen),
    }


def _joined(archive: Archive, chosen: dict[Place, tuple[int, int]]) -> dict[str, Any]:
    """All tiles one after another, equal ones once, and where each is."""
    joined = bytearray()
    starts: dict[tuple[int, int], int] = {}
    index: dict[str, list[int]] = {}
    for place, at in chosen.items():
        if at not in starts:
            starts[at] = len(joined)
            archive.tile(place)  # a browser would unpack whatever it is given
            joined += archive.read(*at)
        index["/".join(map(str, place))] = [starts[at], starts[at] + at[1]]
    return {"index": index, "bytes": base64.b64encode(bytes(joined)).decode()}


def _shown(bounds: Bounds) -> str:
    return ",".join(f"{edge:.6g}" for edge in bounds)
