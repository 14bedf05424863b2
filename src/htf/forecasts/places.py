"""Where records are that stand in for others: the made-up city, a public file of points, or an earlier release.

A data set is a small description that can be sent to another process; `load` makes the matrix.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from htf.curator.frequency import FrequencyMatrix
from htf.errors import InputError
from htf.estimation.nonnegative import non_negative
from htf.estimation.parts import Parts
from htf.frame.domain import Axis, Domain, FloatArray, IntArray
from htf.ingest.reading import Written
from htf.release.release import Release
from htf.synthetic.city import BOUNDS, synthetic_city

SEED = 2021  # fixed: a stand-in is one population, and the runs differ by noise and questions alone
CITY = "city"
CITY_POINTS = 1_000_000
FEWEST_POINTS = 100_000  # of the city, before zones draw from it
CELLS_AROUND_ZONES = 1024
MOST_CELLS_WITH_RECORDS = 2**24  # some GB of memory; a release of a few kB may speak of far more


@dataclass(frozen=True)
class DataSet(ABC):
    """A source of exact counts. `name` stands for it in tables and figures."""

    name: str

    @property
    @abstractmethod
    def domain(self) -> Domain: ...

    @abstractmethod
    def load(self) -> FrequencyMatrix: ...


@lru_cache(maxsize=1)
def load_once(data_set: DataSet) -> FrequencyMatrix:
    """The records of a data set, of which there must be some."""
    matrix = data_set.load()
    if not matrix.exact_counts.any():
        raise InputError(f"{data_set.name} holds no records: nothing can be forecast by it")
    return matrix


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
        return FrequencyMatrix.from_cells(self.map, np.array(cells))


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
        at, records = zone[inside].astype(np.int64), matrix.exact_counts[inside]
        counts = np.bincount(at, records, self.zones.cells).astype(np.int64)
        if not counts.any():
            raise InputError(f"no record of {self.name} is in the zones: check their layer")
        cells = np.arange(self.zones.cells)[None]
        return FrequencyMatrix.from_cells(self.domain, cells, _drawn(counts, self.points))


@dataclass(frozen=True)
class PointsFile(DataSet):
    """A CSV or Parquet file of points, as it is or drawn from with replacement."""

    path: Path
    columns: tuple[str, str]
    map: Domain
    points: int | None = None
    written: Written = field(default_factory=Written)

    @property
    def domain(self) -> Domain:
        return self.map

    def load(self) -> FrequencyMatrix:
        from htf.ingest.points import read_points

        reading: dict[str, Any] = asdict(self.written)
        matrix = read_points(
            self.path, self.map, self.columns, tell=lambda _: None, allow_empty=True, **reading
        )
        if not matrix.exact_counts.any():
            raise InputError(f"none of the points of {self.path.name} lies within the bounds")
        counts = _drawn(matrix.exact_counts, self.points)
        return FrequencyMatrix.from_cells(self.map, matrix.exact_coordinates, counts)


def _drawn(counts: IntArray | FloatArray, number: int | None) -> Any:
    """So many records, drawn from these with replacement; None: these."""
    if number is None:
        return counts
    return np.random.default_rng(SEED).multinomial(number, counts / counts.sum())


@dataclass(frozen=True)
class PastRelease(DataSet):
    """Records drawn from an earlier release, on its own map.

    The release is public, so looking at it costs no budget. It does not say where records lie within a part.
    Evenly spread records would be easier to release than real ones, so they are scattered as unevenly as
    neighbouring regions of the release differ, if its estimator shows that.
    """

    release: Release
    points: int | None = None  # as many as the release says, where None
    cells: tuple[int, ...] | None = None  # a coarser grid than its own
    of_leaves: bool = False  # scatter records over whole leaves, not over the parts of leaves

    def __post_init__(self) -> None:
        own = self.release.domain.shape
        wanted = own if self.cells is None else self.cells
        if len(wanted) != len(own) or any(a < 1 or b % a for a, b in zip(wanted, own, strict=True)):
            raise InputError(
                f"a grid of {_show(wanted)} cells does not fit the release, which has {_show(own)}: "
                "take its own, or divide it by whole numbers (it knows nothing of a finer one)"
            )

    @property
    def domain(self) -> Domain:
        own = self.release.domain
        axes = zip(own.axes, self.cells or own.shape, strict=True)
        return Domain(tuple(replace(axis, cells=n) for axis, n in axes), own.crs)

    def load(self) -> FrequencyMatrix:
        generator = np.random.default_rng(SEED)
        parts, noise = self._parts, self.release.derived.tree_index
        records = _round_at_random(self._expected(parts), generator)
        unevenness = 0.0 if noise is None else noise.unevenness
        cells, counts = scatter(parts.low, parts.high, records, unevenness, generator)
        steps = np.array(self.release.domain.shape) // np.array(self.domain.shape)
        return FrequencyMatrix.from_cells(self.domain, (cells // steps).T, counts)

    @property
    def _parts(self) -> Parts:
        release = self.release
        if self.of_leaves:
            each = np.arange(len(release))
            return Parts(release.low, release.high, release.estimates, release.scales, each)
        return release.derived.parts

    def _expected(self, parts: Parts) -> FloatArray:
        """Records of each part, none below zero, scaled to the number wanted."""
        weights, size = non_negative(parts), self.release.domain.size
        number = np.rint(self.release.estimates.sum()) if self.points is None else self.points
        if number < 1 or not weights.any():
            raise InputError(
                f"the release {self.name} says that there are no records: nothing can be forecast by it"
            )
        if min(number, size) > MOST_CELLS_WITH_RECORDS:
            raise InputError(
                f"the release {self.name} says that there are {number:.3g} records on {size:.3g} cells, and a forecast is "
                f"for at most {MOST_CELLS_WITH_RECORDS:,} cells with records: give fewer points"
            )
        return np.asarray(weights * (number / weights.sum()))


def scatter(
    low: IntArray,
    high: IntArray,
    records: IntArray,
    unevenness: float,
    generator: np.random.Generator,
) -> tuple[IntArray, IntArray]:
    """Cells, and the records in each, of boxes with so many records.

    Boxes are halved along their longest side down to the cells. The share of a half of w of the cells
    is drawn from a beta distribution of mean w and variance w (1 - w) times the unevenness: the model
    of the intervals (htf.query.tree_index).
    """
    cells, counts = [], []
    while True:
        some = records > 0
        low, high, records = low[some], high[some], records[some]
        widths = high - low
        done = widths.max(axis=1, initial=1) == 1
        cells.append(low[done])
        counts.append(records[done])
        low, high, records, widths = low[~done], high[~done], records[~done], widths[~done]
        if len(low) == 0:
            return np.concatenate(cells), np.concatenate(counts)
        rows, axis = np.arange(len(low)), widths.argmax(axis=1)
        width = widths[rows, axis]
        share = _beta(width // 2 / width, unevenness, generator)
        left = generator.binomial(records, share)
        middle_high, middle_low = high.copy(), low.copy()
        middle_high[rows, axis] = middle_low[rows, axis] = low[rows, axis] + width // 2
        low, high = np.concatenate([low, middle_low]), np.concatenate([middle_high, high])
        records = np.concatenate([left, records - left])


def _beta(mean: FloatArray, spread: float, generator: np.random.Generator) -> FloatArray:
    """Numbers between 0 and 1 of this mean and of variance mean (1 - mean) times the spread."""
    if spread <= 0:
        return mean
    weight = max(1 / spread - 1, 1e-3)
    return np.asarray(generator.beta(mean * weight, (1 - mean) * weight))


def _round_at_random(expected: FloatArray, generator: np.random.Generator) -> IntArray:
    """Up with the probability of the fraction: many parts of a tenth of a record keep their sum."""
    whole = np.floor(expected)
    up = generator.random(len(expected)) < expected - whole
    records = np.asarray(whole + up, dtype=np.int64)
    records[np.argmax(expected)] += not records.any()  # where few records are asked for
    return records


def _show(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))


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


def middles(domain: Domain, cells: NDArray[Any]) -> tuple[FloatArray, FloatArray]:
    """The middles of cells of a map, on its first two axes."""
    x, y = (axis.from_cells(at + 0.5) for axis, at in zip(domain.axes[:2], cells, strict=False))
    return x, y
