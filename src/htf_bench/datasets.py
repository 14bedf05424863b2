"""The data sets of the bench: the paper's Gaussian sets, the invented city, files of points, matrices.

The paper's synthetic data are one Gaussian cluster on a grid.

[HTF, section 5.1]: "a cluster center is selected uniformly at random. Next, coordinates for each
data point x and y are drawn from a Gaussian distribution", with standard deviations 20, 50 and 100.
The paper leaves open what is fixed here:

* the unit of the standard deviation: cells of the 1024 x 1024 grid;
* the number of points: one million;
* how six sets come from three deviations: two draws of the centre for each;
* points that fall outside the map: drawn again, so that every set has the same size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htf.curator.frequency import FrequencyMatrix
from htf.errors import InputError
from htf.files import is_file
from htf.forecasts.places import CITY, City, DataSet, PointsFile
from htf.frame.domain import Axis, Domain, FloatArray

CELLS = 1024
POINTS = 1_000_000
SIGMAS = (20, 50, 100)
DRAWS = (1, 2)
SEED = 2021
MATRIX_SUFFIXES = (".npy", ".npz")


@dataclass(frozen=True)
class GaussianSet(DataSet):
    """One of the paper's synthetic sets."""

    sigma: int
    draw: int
    points: int = POINTS
    cells: int = CELLS

    @property
    def domain(self) -> Domain:
        return gaussian_domain(self.cells)

    def load(self) -> FrequencyMatrix:
        return gaussian_matrix(self.sigma, self.draw, self.points, self.cells)


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


def fingerprint(data_set: DataSet) -> str:
    """A text that differs if the data may differ, so that results are reused only for the same data."""
    path = getattr(data_set, "path", None)
    if path is None:
        return repr(data_set)
    state = path.stat()
    return f"{data_set!r} {state.st_size} bytes at {state.st_mtime_ns}"


def built_in_sets() -> dict[str, DataSet]:
    """Data sets that need no file, by name."""
    return {one.name: one for one in (City(CITY), *gaussian_sets())}


def gaussian_sets(
    sigmas: Sequence[int] = SIGMAS, draws: Sequence[int] = DRAWS
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
            f"there is no file {path}; data sets that need no file are {', '.join(built_in_sets())}"
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


def gaussian_domain(cells: int = CELLS) -> Domain:
    """A map whose coordinates are cells; it lies nowhere on Earth."""
    return Domain((Axis("x", 0.0, float(cells), cells), Axis("y", 0.0, float(cells), cells)))


def gaussian_matrix(
    sigma: float, draw: int, points: int = POINTS, cells: int = CELLS
) -> FrequencyMatrix:
    """`points` points around a centre; the same for the same arguments."""
    if not sigma > 0 or points < 0:
        raise InputError(f"a Gaussian set needs sigma > 0 and points >= 0, got {sigma}, {points}")
    generator = np.random.default_rng([SEED, round(1000 * sigma), draw])
    centre = generator.uniform(0, cells, 2)
    positions = np.empty((0, 2))
    while len(positions) < points:
        more = _draw_inside(generator, centre, sigma, cells, points - len(positions))
        positions = np.concatenate([positions, more])
    cell = np.floor(positions).astype(np.int64)
    return FrequencyMatrix.from_cells(gaussian_domain(cells), cell.T)


def _draw_inside(
    generator: np.random.Generator, centre: FloatArray, sigma: float, cells: int, number: int
) -> FloatArray:
    drawn = generator.normal(centre, sigma, (number, 2))
    return np.asarray(drawn[np.all((drawn >= 0) & (drawn < cells), axis=1)])
