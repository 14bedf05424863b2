"""Positions in Web Mercator, the square from 0 to 1 in which the browser draws a map."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

import numpy as np

from htf.errors import InputError
from htf.frame.crs import CRS84, transformer
from htf.frame.domain import Domain, FloatArray

Bounds = tuple[float, float, float, float]  # W,S,E,N
NORTHERNMOST = 85.051129  # the edge of the square
PLANE_SIZE = 0.01  # for a map that lies nowhere on earth: as large as a country


@dataclass(frozen=True, slots=True)
class Plane:
    """The position of a map without a reference system: the middle of the square, true to shape."""

    x: float
    y: float
    scale: float

    @classmethod
    def of(cls, bounds: Bounds) -> Plane:
        west, south, east, north = bounds
        longest = max(east - west, north - south)
        return cls((west + east) / 2, (south + north) / 2, PLANE_SIZE / longest)

    @classmethod
    def for_map(cls, domain: Domain) -> Plane | None:
        """None for a map that lies on earth."""
        x, y = domain.axes[:2]
        return cls.of((x.low, y.low, x.high, y.high)) if domain.crs is None else None

    def to_degrees(self, x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Where places lie on the earth if the plane is put there."""
        return from_square(*self.to_square(x, y))

    def to_square(self, x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return 0.5 + (x - self.x) * self.scale, 0.5 - (y - self.y) * self.scale

    def to_dict(self) -> dict[str, float]:
        return {"x": self.x, "y": self.y, "scale": self.scale}


def corners_in_square(boxes: FloatArray, crs: str | None, plane: Plane | None) -> FloatArray:
    """The corners SW, SE, NW, NE of boxes W,S,E,N as rows of eight numbers; y grows southwards.

    Only corners are reprojected. The edges between them are drawn straight, although edges in another
    projection are slightly curved.
    """
    x, y = boxes[:, [0, 2, 0, 2]], boxes[:, [1, 1, 3, 3]]
    places = to_square(*to_degrees(x, y, crs)) if plane is None else plane.to_square(x, y)
    return np.stack(places, axis=2).reshape(len(boxes), 8)


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


def edges_in_degrees(bounds: Bounds, crs: str) -> Bounds:
    """W,S,E,N of a map in longitude and latitude."""
    return bounds if crs == CRS84 else transformed(bounds, crs, CRS84)


def transformed(bounds: Bounds, source: str, target: str) -> Bounds:
    """W,S,E,N in another reference system."""
    edges = transformer(source, target).transform_bounds(*bounds, densify_pts=21)
    west, south, east, north = edges
    return west, south, east, north


def to_square(longitude: FloatArray, latitude: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Degrees in the square."""
    clipped = np.clip(latitude, -NORTHERNMOST, NORTHERNMOST)
    down = np.asarray(0.5 - np.arctanh(np.sin(np.radians(clipped))) / (2 * np.pi))
    return longitude / 360 + 0.5, down


def from_square(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Longitude and latitude of places in the square."""
    return (x - 0.5) * 360, np.degrees(np.arctan(np.sinh((0.5 - y) * 2 * np.pi)))


def tiles_over(bounds: Bounds, zoom: int) -> tuple[range, range]:
    """The columns and the rows of the tiles of a zoom that touch W,S,E,N in degrees."""
    side = int(2**zoom)
    edges = to_square(np.array(bounds[::2]), np.array(bounds[:0:-2]))
    ends = [np.clip((one * side).astype(np.int64), 0, side - 1).tolist() for one in edges]
    (left, right), (top, bottom) = ends
    return range(left, right + 1), range(top, bottom + 1)


def places_over(bounds: Bounds, zoom: int) -> list[tuple[int, int, int]]:
    """The same tiles as zoom, column and row."""
    return [(zoom, x, y) for x, y in product(*tiles_over(bounds, zoom))]


def number_over(bounds: Bounds, zoom: int) -> int:
    """How many they are."""
    return math.prod(map(len, tiles_over(bounds, zoom)))
