"""Stand-ins for data that may not be looked at: an earlier release, or public points.

A third one, the invented city, is in datasets.py.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from htf.curator.frequency import FrequencyMatrix
from htf.errors import InputError
from htf.estimation.nonnegative import non_negative
from htf.estimation.parts import Parts
from htf.forecasts.datasets import DataSet, PointsFile
from htf.frame.domain import Domain, FloatArray, IntArray
from htf.ingest.reading import Written
from htf.release.release import Release

SEED = 2021  # fixed: a stand-in is one population, and the runs differ by noise and questions alone
MOST_CELLS_WITH_RECORDS = (
    2**24
)  # with records: some GB of memory; a release of a few kB may speak of far more


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
        wanted = own.shape if self.cells is None else self.cells
        axes = [replace(axis, cells=n) for axis, n in zip(own.axes, wanted, strict=True)]
        return Domain(tuple(axes), own.crs)

    def load(self) -> FrequencyMatrix:
        generator = np.random.default_rng(SEED)
        parts, noise = self._parts, self.release.derived.tree_index
        records = _round_at_random(self._expected(), generator)
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

    def _expected(self) -> FloatArray:
        """Records of each part, none below zero, scaled to the number wanted."""
        weights = non_negative(self._parts)
        number = np.rint(self.release.estimates.sum()) if self.points is None else self.points
        if number < 1 or not weights.any():
            raise InputError(
                f"the release {self.name} says that there are no records: nothing can be forecast by it"
            )
        if min(number, self.release.domain.size) > MOST_CELLS_WITH_RECORDS:
            raise InputError(
                f"the release {self.name} says that there are {number:.3g} records on {self.release.domain.size:.3g} "
                f"cells, and a forecast is for at most {MOST_CELLS_WITH_RECORDS:,} cells with records: give fewer points"
            )
        return np.asarray(weights * (number / weights.sum()))


@dataclass(frozen=True)
class PublicPoints(PointsFile):
    """A public file of points, as it is or drawn from with replacement."""

    points: int | None = None
    written: Written | None = None  # None: in the usual way

    @property
    def reading(self) -> dict[str, Any]:
        return {} if self.written is None else asdict(self.written)

    def load(self) -> FrequencyMatrix:
        matrix = super().load()
        total = int(matrix.exact_counts.sum())
        if total == 0:
            raise InputError(f"none of the points of {self.path.name} lies within the bounds")
        if self.points is None:
            return matrix
        shares = matrix.exact_counts / total
        drawn = np.random.default_rng(SEED).multinomial(self.points, shares)
        return FrequencyMatrix.from_cells(self.map, matrix.exact_coordinates, drawn)


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
