"""Data that stand in for those which may not be looked at: an earlier release, or public points.

A third one, the invented city, is in datasets.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from htf.domain import Domain, FloatArray, IntArray
from htf.errors import InputError
from htf.evaluation.datasets import DataSet, PointsFile
from htf.frequency import FrequencyMatrix
from htf.release import Release

SEED = 2021  # fixed: a stand-in is one population, and the runs differ by noise and questions alone
RECORDS_AT_A_TIME = 1_000_000  # bounds the memory for passing values


@dataclass(frozen=True)
class PastRelease(DataSet):
    """Records as an earlier release has them: each of its parts evenly filled, on its own map.

    What it says is public, so that nothing is spent by looking at it. But it cannot say how unevenly
    records lie within a part, and evenly spread records are easier to release than real ones.
    """

    release: Release
    points: int | None = None  # as many as the release says, where None
    cells: tuple[int, ...] | None = None  # a coarser grid than its own

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
        parts, domain = self.release.parts, self.domain
        records = _round_at_random(self._expected(), generator)
        steps = np.array(self.release.domain.shape) // np.array(domain.shape)
        keys, counts = [], []
        ends = np.cumsum(records)
        for start in range(0, int(ends[-1]), RECORDS_AT_A_TIME):
            stop = min(start + RECORDS_AT_A_TIME, int(ends[-1]))
            part = np.searchsorted(ends, np.arange(start, stop), side="right")
            # Each record anywhere in its part: a multinomial draw over the part's cells.
            cells = generator.integers(parts.low[part], parts.high[part]) // steps
            key, count = np.unique(
                np.ravel_multi_index(tuple(cells.T), domain.shape), return_counts=True
            )
            keys.append(key)
            counts.append(count)
        cells = np.array(np.unravel_index(np.concatenate(keys), domain.shape))
        return FrequencyMatrix.from_cells(domain, cells, np.concatenate(counts))

    def _expected(self) -> FloatArray:
        """Records of each part. Noise below zero is cut off, which adds records where there are
        none; so all are scaled to the total, which has next to no such bias."""
        weights = np.maximum(self.release.parts.estimates, 0.0)
        number = np.rint(self.release.estimates.sum()) if self.points is None else self.points
        if number < 1 or not weights.any():
            raise InputError(
                f"the release {self.name} says that there are no records: nothing can be forecast by it"
            )
        return np.asarray(weights * (number / weights.sum()))


@dataclass(frozen=True)
class PublicPoints(PointsFile):
    """A public file of points, as it is or drawn from with replacement."""

    points: int | None = None

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


def _round_at_random(expected: FloatArray, generator: np.random.Generator) -> IntArray:
    """Up with the probability of the fraction: many parts of a tenth of a record keep their sum."""
    whole = np.floor(expected)
    up = generator.random(len(expected)) < expected - whole
    records = np.asarray(whole + up, dtype=np.int64)
    records[np.argmax(expected)] += not records.any()  # where few records are asked for
    return records


def _show(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))
