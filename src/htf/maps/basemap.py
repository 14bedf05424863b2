"""The base map that HTF carries: water, borders and names from Natural Earth, which needs no network.

`data/basemap.xz` has the whole world at 1:10 million, packed by `tools/basemap.py`. A map gets the part around it, as
fine as it can show. Coasts are off by some 500 metres, in places by 2 km: enough to see where one is, not to say on
which side of a shore a record lies. Nothing here depends on data.
"""

from __future__ import annotations

import io
import json
import lzma
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from htf.frame.domain import FloatArray

FILE = Path(__file__).parent / "data" / "basemap.xz"
QUANTUM = 1e-4  # degrees: corners lie on multiples
CELLS = (5.0, 20.0, 60.0, 60.0)  # degrees: water of each level is cut along multiples
CREDIT = "Natural Earth"
LINES = ("rivers", "borders", "states")
DECIMALS = (4, 3, 2, 2)  # of degrees, at each level
LEVELS = range(len(CELLS))  # the first is the finest
RANKS = (11, 8, 6, 4)  # highest ranks to try
NOT_WORTH = 3  # times too many corners: a guess that is not looked at more closely
Bounds = tuple[float, float, float, float]  # W,S,E,N
BoolArray = npt.NDArray[np.bool_]
Lines = list[tuple[int, FloatArray]]  # ranks and corners


@dataclass(frozen=True, slots=True)
class Features:
    """Lines or rings in degrees, one after another."""

    corners: FloatArray  # (n, 2)
    edges: Any  # where each part starts in `corners`, and where the last one ends
    ranks: Any  # small ones show first
    holes: BoolArray
    boxes: FloatArray  # W,S,E,N of each part

    def touching(self, bounds: Bounds) -> Any:
        """The numbers of the parts that may touch the bounds."""
        west, south, east, north = bounds
        w, s, e, n = self.boxes.T
        return np.flatnonzero((w < east) & (e > west) & (s < north) & (n > south))

    def near(self, bounds: Bounds, most_rank: int = RANKS[0]) -> Iterator[tuple[int, FloatArray]]:
        """Those parts, with their numbers."""
        found = self.touching(bounds)
        for number in found[self.ranks[found] <= most_rank].tolist():
            yield number, self.corners[self.edges[number] : self.edges[number + 1]]


@dataclass(frozen=True, slots=True)
class Name:
    """The name of a place, a country or a lake."""

    name: str
    x: float
    y: float
    rank: int  # small ones show first
    kind: str  # place, capital, country or water


@dataclass(frozen=True, slots=True)
class Crop:
    """The part of the base map within some bounds. Polygons of water are an outer ring and its holes."""

    bounds: Bounds
    level: int  # 0 is the finest
    water: list[list[FloatArray]]
    lines: dict[str, Lines]  # coasts, rivers, borders and states
    names: list[Name]

    @property
    def size(self) -> int:
        """The number of corners."""
        rings = sum(len(ring) for polygon in self.water for ring in polygon)
        return rings + sum(len(line) for found in self.lines.values() for _, line in found)


@lru_cache(maxsize=1)
def _world() -> tuple[list[dict[str, Features]], list[Name]]:
    """All of it, level by level. Reading takes about half a second, once."""
    with np.load(io.BytesIO(lzma.decompress(FILE.read_bytes())), allow_pickle=False) as packed:
        arrays = {name: packed[name] for name in packed.files}
    levels = [
        {name: _unpacked(arrays, f"{name}_{level}") for name in ("water", *LINES)}
        for level in LEVELS
    ]
    columns = json.loads(arrays["names"].tobytes())
    return levels, [Name(*row) for row in zip(*columns, strict=True)]


def _unpacked(arrays: dict[str, Any], name: str) -> Features:
    sizes = arrays[f"{name}_sizes"]
    edges = np.cumsum(np.append(0, sizes))
    starts = edges[:-1]
    words = np.stack([arrays[f"{name}_low"], arrays[f"{name}_high"]], axis=-1)
    steps = words.view("<i2")[..., 0].astype(np.int64)  # zero at the start of each part
    sums = np.cumsum(steps, axis=1)
    firsts = arrays[f"{name}_starts"] - sums[:, starts]
    corners = (sums + np.repeat(firsts, sizes, axis=1)).T * QUANTUM
    low, high = np.minimum.reduceat(corners, starts), np.maximum.reduceat(corners, starts)
    boxes = np.column_stack([low, high])
    return Features(corners, edges, arrays[f"{name}_ranks"], arrays[f"{name}_holes"], boxes)


def crop(bounds: Bounds, level: int = 0, most_rank: int = RANKS[0]) -> Crop:
    """The base map within bounds; lines and names of a higher rank are left out."""
    levels, names = _world()
    layers = levels[level]
    west, south, east, north = bounds
    water = _cropped_water(layers["water"], bounds)
    lines = {"coasts": _coasts(layers["water"], bounds, CELLS[level])}
    lines |= {name: _cropped_lines(layers[name], bounds, most_rank) for name in LINES}
    found = [
        one
        for one in names
        if west <= one.x <= east and south <= one.y <= north and one.rank <= most_rank
    ]
    return Crop(bounds, level, water, lines, found)


def crop_to_size(bounds: Bounds, most: int, most_names: int, least_level: int = 0) -> Crop:
    """The same with at most so many corners and names: as fine as fits."""
    for level in LEVELS[least_level:]:
        for most_rank in RANKS:
            if _guessed_size(bounds, level, most_rank) > NOT_WORTH * most:
                continue
            found = crop(bounds, level, most_rank)
            if found.size <= most:
                return replace(found, names=found.names[:most_names])
    names = crop(bounds, LEVELS[-1]).names
    return replace(crop(bounds, LEVELS[-1], 0), names=names[:most_names])


def _guessed_size(bounds: Bounds, level: int, most_rank: int) -> int:
    """The corners of all parts that may touch the bounds: more than a part of the map has."""
    number = 0
    for layer in _world()[0][level].values():
        found = layer.touching(bounds)
        sizes = np.diff(layer.edges)
        number += int(sizes[found[layer.ranks[found] <= most_rank]].sum())
    return number


def widened(bounds: Bounds, factor: float) -> Bounds:
    """Bounds with a margin of `factor` times each side, or half of that for a side that is shorter, as far as the world
    goes."""
    west, south, east, north = bounds
    sides = np.array([east - west, north - south])
    across, up = (factor * np.maximum(sides, sides.max() / 2)).tolist()
    return (
        max(west - across, -180.0),
        max(south - up, -90.0),
        min(east + across, 180.0),
        min(north + up, 90.0),
    )


def _cropped_water(layer: Features, bounds: Bounds) -> list[list[FloatArray]]:
    found: dict[int, list[FloatArray]] = {}  # by the number of the outer ring
    outer = np.maximum.accumulate(np.where(layer.holes, 0, np.arange(len(layer.holes))))
    for number, ring in layer.near(bounds):
        kept = _clipped(ring, bounds)
        if len(kept) < 4:
            continue
        if not layer.holes[number]:
            found[number] = [kept]
        elif outer[number] in found:
            found[outer[number]].append(kept)
    return list(found.values())


def _clipped(ring: FloatArray, bounds: Bounds) -> FloatArray:
    """The part of a ring inside bounds, by one side after another (Sutherland and Hodgman)."""
    west, south, east, north = bounds
    for axis, edge, sign in ((0, west, 1), (0, east, -1), (1, south, 1), (1, north, -1)):
        if len(ring) < 4:
            return ring[:0]
        away = sign * (ring[:, axis] - edge)
        if (away < 0).any():
            ring = _cut(ring, away)
    return ring


def _cut(ring: FloatArray, away: FloatArray) -> FloatArray:
    """The part of a closed ring where `away` is not negative."""
    here, there = away[:-1], away[1:]
    crosses = (here < 0) != (there < 0)
    share = np.divide(here, here - there, out=np.zeros_like(here), where=crosses)
    crossings = ring[:-1] + (ring[1:] - ring[:-1]) * share[:, None]
    pairs = np.stack([crossings, ring[1:]], axis=1).reshape(-1, 2)
    kept = pairs[np.stack([crosses, there >= 0], axis=1).ravel()]
    return np.concatenate([kept, kept[:1]]) if len(kept) else kept


def _coasts(layer: Features, bounds: Bounds, cell: float) -> Lines:
    """The edges of water, without those that it was cut along."""
    found: Lines = []
    for _, ring in layer.near(bounds):
        on_cut = np.abs(ring - np.rint(ring / cell) * cell) < QUANTUM / 2
        is_along = np.abs(np.diff(ring, axis=0)) < QUANTUM / 2
        is_cut = (on_cut[1:] & on_cut[:-1] & is_along).any(axis=1)
        found += [(0, run) for run in _runs(ring, ~is_cut & _touches(ring, bounds))]
    return found


def _cropped_lines(layer: Features, bounds: Bounds, most_rank: int) -> Lines:
    return [
        (int(layer.ranks[number]), run)
        for number, line in layer.near(bounds, most_rank)
        for run in _runs(line, _touches(line, bounds))
    ]


def _touches(line: FloatArray, bounds: Bounds) -> BoolArray:
    """Which pieces between two corners may touch the bounds."""
    low, high = np.minimum(line[:-1], line[1:]), np.maximum(line[:-1], line[1:])
    return np.asarray(((low <= bounds[2:]) & (high >= bounds[:2])).all(axis=1))


def _runs(line: FloatArray, kept: BoolArray) -> list[FloatArray]:
    """The stretches of a line whose pieces are kept."""
    edges = np.flatnonzero(np.diff(np.r_[False, kept, False]))
    return [line[start : end + 1] for start, end in zip(edges[::2], edges[1::2], strict=True)]
