"""Positions in Web Mercator, the square from 0 to 1 in which the browser draws a map."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

import numpy as np

from htf.errors import InputError
from htf.frame.crs import CRS84, transformer
from htf.frame.domain import Domain, FloatArray

NORTHERNMOST = 85.051129  # the edge of the square
PLANE_SIZE = 0.01  # for a map that lies nowhere on earth: as large as a country


@dataclass(frozen=True, slots=True)
class Plane:
    """The position of a map without a reference system: the middle of the square, true to shape."""

    x: float
    y: float
    scale: float

    @classmethod
    def of(cls, domain: Domain) -> Plane:
        x, y = domain.axes[:2]
        longest = max(x.high - x.low, y.high - y.low)
        return cls((x.low + x.high) / 2, (y.low + y.high) / 2, PLANE_SIZE / longest)

    def to_degrees(self, x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Where places lie on the earth if the plane is put there."""
        across, down = (x - self.x) * self.scale, (y - self.y) * self.scale
        return across * 360, np.degrees(np.arcsin(np.tanh(down * 2 * np.pi)))

    def to_dict(self) -> dict[str, float]:
        return {"x": self.x, "y": self.y, "scale": self.scale}


def corners_in_square(boxes: FloatArray, crs: str | None, plane: Plane | None) -> FloatArray:
    """The corners SW, SE, NW, NE of boxes W,S,E,N as rows of eight numbers; y grows southwards.

    Only corners are reprojected. The edges between them are drawn straight, although edges in another
    projection are slightly curved.
    """
    west, south, east, north = boxes.T
    x = np.stack([west, east, west, east], axis=1)
    y = np.stack([south, south, north, north], axis=1)
    if plane is not None:
        x, y = 0.5 + (x - plane.x) * plane.scale, 0.5 - (y - plane.y) * plane.scale
    else:
        longitude, latitude = to_degrees(x, y, crs)
        x, y = longitude / 360 + 0.5, _square_y(latitude)
    return np.stack([x, y], axis=2).reshape(len(boxes), 8)


def to_degrees(x: FloatArray, y: FloatArray, crs: str | None) -> tuple[FloatArray, FloatArray]:
    """Longitude and latitude of places in the coordinates of a map."""
    if crs == CRS84:
        return x, y
    longitude, latitude = transformer(crs, CRS84).transform(x, y)
    if not (np.isfinite(longitude).all() and np.isfinite(latitude).all()):
        raise InputError(
            f"the map reaches beyond where its reference system {crs} is defined: draw it as .png or .svg"
        )
    return longitude, latitude


def _square_y(latitude: FloatArray) -> FloatArray:
    clipped = np.clip(latitude, -NORTHERNMOST, NORTHERNMOST)
    return np.asarray(0.5 - np.arctanh(np.sin(np.radians(clipped))) / (2 * np.pi))


def tiles_over(bounds: tuple[float, ...], zoom: int) -> tuple[range, range]:
    """The columns and the rows of the tiles of a zoom that touch W,S,E,N in degrees."""
    west, south, east, north = bounds
    side = int(2**zoom)
    across = np.array([west, east]) / 360 + 0.5
    down = _square_y(np.array([north, south]))
    ends = [np.clip((one * side).astype(np.int64), 0, side - 1).tolist() for one in (across, down)]
    (left, right), (top, bottom) = ends
    return range(left, right + 1), range(top, bottom + 1)


def places_over(bounds: tuple[float, ...], zoom: int) -> list[tuple[int, int, int]]:
    """The same tiles as zoom, column and row."""
    return [(zoom, x, y) for x, y in product(*tiles_over(bounds, zoom))]


def number_over(bounds: tuple[float, ...], zoom: int) -> int:
    """How many they are."""
    return math.prod(map(len, tiles_over(bounds, zoom)))
