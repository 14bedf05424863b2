"""What takes the place of the records in a simulation: the invented city, or a file of points.

A data set is a small description that can be sent to another process; `load` makes the matrix.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from htf.curator.frequency import FrequencyMatrix
from htf.frame.domain import Domain
from htf.synthetic.city import BOUNDS, synthetic_city

CITY = "city"
CITY_POINTS = 1_000_000


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
