"""The data sets of the bench: the paper's Gaussian sets, the invented city, files of points, matrices.

A data set is a small description that can be sent to another process; `load` makes the matrix.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htf.curator.frequency import FrequencyMatrix
from htf.errors import InputError
from htf.evaluation import gaussian
from htf.evaluation.synthetic import BOUNDS, synthetic_city
from htf.files import is_file
from htf.frame.domain import Axis, Domain

MATRIX_SUFFIXES = (".npy", ".npz")
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
class GaussianSet(DataSet):
    """One of the paper's synthetic sets."""

    sigma: int
    draw: int
    points: int = gaussian.POINTS
    cells: int = gaussian.CELLS

    @property
    def domain(self) -> Domain:
        return gaussian.gaussian_domain(self.cells)

    def load(self) -> FrequencyMatrix:
        return gaussian.gaussian_matrix(self.sigma, self.draw, self.points, self.cells)


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
        return f"{self!r} {_file_state(self.path)}"


@dataclass(frozen=True)
class MatrixFile(DataSet):
    """A two-dimensional array of counts, indexed [x, y], in a .npy file or under a key of a .npz."""

    path: Path
    key: str = ""
    bounds: tuple[float, float, float, float] | None = None

    @property
    def domain(self) -> Domain:
        columns, rows = _read_array(self.path, self.key).shape
        if self.bounds is None:
            return Domain((Axis("x", 0.0, columns, columns), Axis("y", 0.0, rows, rows)))
        return Domain.from_bounds(*self.bounds, cells=(columns, rows), crs=None)

    def load(self) -> FrequencyMatrix:
        return FrequencyMatrix.from_dense(self.domain, _read_array(self.path, self.key))

    def fingerprint(self) -> str:
        return f"{self!r} {_file_state(self.path)}"


def built_in_sets() -> dict[str, Callable[[], DataSet]]:
    """Data sets that need no file, by name."""
    sets: dict[str, Callable[[], DataSet]] = {CITY: lambda: City(CITY)}
    for data_set in gaussian_sets():
        sets[data_set.name] = lambda data_set=data_set: data_set  # type: ignore[misc]
    return sets


def gaussian_sets(
    sigmas: Sequence[int] = gaussian.SIGMAS, draws: Sequence[int] = gaussian.DRAWS
) -> list[GaussianSet]:
    """The paper's six sets, `gaussian-20-1` to `gaussian-100-2`."""
    return [GaussianSet(f"gaussian-{s}-{d}", s, d) for s in sigmas for d in draws]


def is_matrix(text: str) -> bool:
    return split_key(text)[0].suffix.lower() in MATRIX_SUFFIXES


def open_matrix(text: str, bounds: tuple[float, float, float, float] | None = None) -> MatrixFile:
    """`counts.npy`, or `sets.npz:KEY`. Without bounds, map coordinates are cells."""
    path, key = split_key(text)
    data_set = MatrixFile(f"{path.stem}-{key}" if key else path.stem, path, key, bounds)
    _ = data_set.domain  # an unreadable file is named now, not in the middle of a long run
    return data_set


def open_points(text: str, columns: tuple[str, str], domain: Domain) -> PointsFile:
    """A file of points. Errors in it are reported when it is loaded."""
    path = Path(text)
    if not is_file(path):
        raise InputError(
            f"there is no file {path}; data sets that need none are {', '.join(built_in_sets())}"
        )
    return PointsFile(path.stem, path.resolve(), columns, domain)


def split_key(text: str) -> tuple[Path, str]:
    """The file, and the name of the array in it that is meant, if there is one."""
    before, colon, key = text.rpartition(":")
    if colon and Path(before).suffix.lower() == ".npz":
        return Path(before), key
    return Path(text), ""


def _read_array(path: Path, key: str) -> NDArray[Any]:
    if not is_file(path):
        raise InputError(f"there is no file {path}")
    try:
        content = np.load(path, allow_pickle=False)
    except (ValueError, OSError, EOFError):
        raise InputError(f"{path} is not a NumPy file of plain numbers") from None
    array = content if isinstance(content, np.ndarray) else _pick(content, path, key)
    if array.ndim != 2 or array.size == 0:
        raise InputError(f"a matrix of counts has two axes, got shape {array.shape} in {path}")
    return np.asarray(array)


def _pick(content: Any, path: Path, key: str) -> NDArray[Any]:
    with content:
        keys = list(content)
        chosen = key or (keys[0] if len(keys) == 1 else "")
        if chosen not in keys:
            raise InputError(
                f"name one of the matrices in {path}, as {path.name}:{keys[0] if keys else 'KEY'}; "
                f"there are {', '.join(keys)}"
            )
        return np.asarray(content[chosen])


def _file_state(path: Path) -> str:
    state = path.stat()
    return f"{state.st_size} bytes at {state.st_mtime_ns}"
