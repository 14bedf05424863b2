"""What takes the place of the records in a simulation: the invented city, or a file of points.

A data set is a small description that can be sent to another process; `load` makes the matrix.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

import numpy as np

from htf.curator.frequency import FrequencyMatrix
from htf.errors import InputError
from htf.forecasts.made_up import SEED, middles
from htf.frame.domain import Axis, Domain, FloatArray
from htf.synthetic.city import BOUNDS, synthetic_city

CITY = "city"
CITY_POINTS = 1_000_000
FEWEST_POINTS = 100_000  # of the city, before zones draw from it
CELLS_AROUND_ZONES = 1024


@dataclass(frozen=True)
class DataSet(ABC):
    """A source of exact counts. `name` stands for it in tables and figures."""

    name: str

    @property
    @abstractmethod
    def domain(self) -> Domain: ...

    @abstractmethod
    def load(self) -> FrequencyMatrix: ...

    def fingerprint(self) -> str:
        """A text that differs if the data may differ, so that results are reused only for the same data."""
        return repr(self)


@dataclass(frozen=True)
class City(DataSet):
    """The invented coastal city of the demonstration."""

    points: int = CITY_POINTS
    cells: int | tuple[int, int] = 1024
    map: Domain | None = None  # the city is stretched over this one, if it is given

    @property
    def domain(self) -> Domain:
        return self.map or Domain.from_bounds(*BOUNDS, cells=self.cells)

    def load(self) -> FrequencyMatrix:
        from htf.ingest.points import read_points

        city = synthetic_city(self.points)
        if self.map is None:
            return read_points((city.x, city.y), self.domain)
        places = zip((city.x, city.y), BOUNDS[:2], BOUNDS[2:], self.map.axes[:2], strict=True)
        cells = [
            np.clip((at - low) / (high - low) * axis.cells, 0, axis.cells - 1).astype(np.int64)
            for at, low, high, axis in places
        ]
        flat, counts = np.unique(np.ravel_multi_index(cells, self.map.shape), return_counts=True)
        return FrequencyMatrix.from_cells(
            self.map, np.array(np.unravel_index(flat, self.map.shape)), counts
        )


@dataclass(frozen=True)
class ByZone(DataSet):
    """The records of a map by the zone of a layer that the middle of their cell is in."""

    zones: Axis
    on_map: DataSet
    points: int | None = None  # so many are drawn; None: as many as are in the zones

    @property
    def domain(self) -> Domain:
        return Domain((self.zones,))

    @classmethod
    def of_city(cls, zones: Axis, points: int) -> Self:
        """The invented city, stretched over the zones."""
        low, high = extent(zones)
        around = Domain.from_bounds(*low, *high, cells=CELLS_AROUND_ZONES, crs=None)
        known = City(CITY, min(max(points, FEWEST_POINTS), CITY_POINTS), map=around)
        return cls(CITY, zones, known, points)

    def load(self) -> FrequencyMatrix:
        matrix = self.on_map.load()
        zone = self.zones.place(*middles(matrix.domain, matrix.exact_coordinates))
        inside = ~np.isnan(zone)
        counts = np.bincount(
            zone[inside].astype(np.int64), matrix.exact_counts[inside], self.zones.cells
        )
        if not counts.any():
            raise InputError(f"no record of {self.name} is in the zones: check their layer")
        if self.points is not None:
            shares = counts / counts.sum()
            counts = np.random.default_rng(SEED).multinomial(self.points, shares)
        return FrequencyMatrix.from_cells(
            self.domain, np.arange(self.zones.cells)[None], counts.astype(np.int64)
        )


@dataclass(frozen=True)
class Named(DataSet):
    """Records with names, the first of which has twice as many as the second, three times as many as the third, …"""

    axis: Axis
    points: int

    @property
    def domain(self) -> Domain:
        return Domain((self.axis,))

    def load(self) -> FrequencyMatrix:
        generator = np.random.default_rng(SEED)
        counts = generator.multinomial(self.points, name_shares(self.axis.cells))
        return FrequencyMatrix.from_cells(self.domain, np.arange(self.axis.cells)[None], counts)


def name_shares(number: int) -> FloatArray:
    """Shares of records by name."""
    shares = 1.0 / np.arange(1, number + 1)
    return np.asarray(shares / shares.sum())


@dataclass(frozen=True)
class PointsFile(DataSet):
    """A CSV or Parquet file of points."""

    path: Path
    columns: tuple[str, str]
    map: Domain

    @property
    def domain(self) -> Domain:
        return self.map

    def load(self) -> FrequencyMatrix:
        from htf.ingest.points import read_points

        return read_points(
            self.path,
            self.map,
            self.columns,
            tell=lambda _: None,
            allow_empty=True,
            **self.reading,
        )

    @property
    def reading(self) -> dict[str, Any]:
        """Further options of `read_points`."""
        return {}

    def fingerprint(self) -> str:
        return f"{self!r} {file_state(self.path)}"


def file_state(path: Path) -> str:
    state = path.stat()
    return f"{state.st_size} bytes at {state.st_mtime_ns}"


@lru_cache(maxsize=4)
def _outlines(zones: Axis) -> Any:
    import shapely

    assert zones.outlines is not None
    return shapely.from_wkb([shape or None for shape in zones.outlines.shapes])


def extent(zones: Axis) -> tuple[tuple[float, float], tuple[float, float]]:
    """The corners of a box around zones."""
    import shapely

    west, south, east, north = shapely.total_bounds(_outlines(zones)).tolist()
    if not west < east or not south < north:
        raise InputError(
            "the zones of this map have no outlines: read their layer by htf.read_zones"
        )
    return (west, south), (east, north)


def zone_middles(zones: Axis) -> FloatArray:
    """The middle of each zone, in the units of the map. The rest, which has no outline, is in the middle of all."""
    import shapely

    found = shapely.get_coordinates(shapely.point_on_surface(_outlines(zones)), include_z=False)
    every = np.tile(np.mean(extent(zones), axis=0), (zones.cells, 1))
    every[~shapely.is_missing(_outlines(zones))] = found
    return np.asarray(every.T)
