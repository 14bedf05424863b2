"""Synthetic points drawn from a release, for tools that want points.

First a part of the release is drawn in proportion to its count (made non-negative), then a place within
the part, uniformly. Points are drawn one by one from the same distribution, so the first thousand of a
file are a fair sample too.

The points are computed from the release alone: they cost no budget, and its guarantee holds for them.
For the same reason the randomness need not be secret. Whoever knows the seed can at most reconstruct the
release, which is public. This randomness protects nobody; the noise in the release does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from htf.base import arguments
from htf.errors import InputError
from htf.estimation.nonnegative import non_negative
from htf.export.provenance import SAMPLE, as_metadata, beside, provenance, write_beside
from htf.files import check_output, write_whole
from htf.frame.crs import CRS84
from htf.frame.domain import Domain, FloatArray
from htf.frame.names import Level
from htf.release.release import Release

RULE = (
    "Synthetic points, none of them a record or a person: parts of the release drawn in proportion to their estimates, "
    "made non-negative with the same total; then a place in the part, all places alike. The release counts "
    "{counted}; by default there is one point for each of them."
)
CHUNK = 2**19  # points in memory at once
MOST_POINTS = 10**9  # a few minutes, and a file of 16 GB; a release may count far more records
MOST_IN_TABLE = 10**8  # 1.6 GB of memory
SUFFIXES = (".csv", ".parquet")

Progress = Callable[[int, int], None]  # called with the points written so far, and all of them


def draw_points(release: Release, n: int | None = None, seed: int | None = None) -> pa.Table:
    """A table of `n` points, by default as many as the release counts. Its metadata say what it is."""

    sample = Sample(release, n, seed, MOST_IN_TABLE)
    return pa.Table.from_batches(sample.batches(), sample.schema)


def write_points(
    release: Release,
    path: Path,
    n: int | None = None,
    seed: int | None = None,
    progress: Progress | None = None,
    *,
    overwrite: bool = False,
) -> Sample:
    """Write points as CSV or Parquet, a chunk at a time, so that memory does not grow with their number.

    CSV has no place for the provenance, so that goes to a text file beside it.
    """
    suffix = check_sample_name(path, overwrite=overwrite)
    sample = Sample(release, n, seed)
    write_whole(path, lambda unfinished: _write(sample, unfinished, progress), overwrite=overwrite)
    if suffix == ".csv":
        write_beside(path, sample.about, overwrite=overwrite)
    return sample


def check_sample_name(path: Path, *, overwrite: bool = False, inputs: Iterable[Path] = ()) -> str:
    """Refuse a file that cannot be written, before any work. Returns the ending."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(
            f"points are written as CSV or Parquet: the name must end in {' or '.join(SUFFIXES)}, "
            f"got {path.name!r}"
        )
    for output in (path, beside(path)) if suffix == ".csv" else (path,):
        check_output(output, overwrite=overwrite, inputs=inputs)
    return suffix


class Sample:
    """Points that are yet to be drawn, chunk by chunk."""

    def __init__(
        self, release: Release, n: int | None, seed: int | None, most: int = MOST_POINTS
    ) -> None:
        parts = release.derived.parts
        weights = non_negative(parts)
        total = float(release.estimates.sum())
        self.points = _check_points(total, n, most)
        if self.points and not weights.any():
            raise InputError(
                f"the release counts no {release.quantity} (its total is {total:.6g}), so no point can be drawn from it"
            )
        self.seed = None if seed is None else arguments.seed(seed, "the seed")
        used = np.flatnonzero(weights)
        self._sums = np.cumsum(weights[used])
        self._edges = [
            (axis.from_cells(parts.low[used, number]), axis.from_cells(parts.high[used, number]))
            for number, axis in enumerate(release.domain.axes)
        ]
        self._levels = [axis.levels for axis in release.domain.axes]
        self.columns = point_columns(release.domain)
        rule = RULE.format(counted=release.counted)
        self.about = {**provenance(release, rule), "points": self.points, "seed": self.seed}

    @property
    def schema(self) -> pa.Schema:

        columns = [
            pa.field(name, pa.string() if levels else pa.float64(), nullable=False)
            for name, levels in zip(self.columns, self._levels, strict=True)
        ]
        return pa.schema(columns, as_metadata(SAMPLE, self.about))

    def batches(self) -> Iterator[pa.RecordBatch]:

        generator, schema = np.random.default_rng(self.seed), self.schema
        for start in range(0, self.points, CHUNK):
            drawn = self._draw(min(CHUNK, self.points - start), generator)
            columns = [
                _labels(levels[0], column) if levels else pa.array(column)
                for column, levels in zip(drawn, self._levels, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    def _draw(self, number: int, generator: np.random.Generator) -> list[FloatArray]:
        places = np.searchsorted(
            self._sums, generator.random(number) * self._sums[-1], side="right"
        )
        places = np.minimum(places, len(self._sums) - 1)  # a product may be rounded up to the total
        return [
            _between(low[places], high[places], generator.random(number))
            for low, high in self._edges
        ]


def _labels(level: Level, places: FloatArray) -> pa.Array:
    """Points on an axis of named cells are told by name: the numbers of cells mean nothing elsewhere."""

    return pa.array(level.labels, pa.string()).take(pa.array(places.astype(np.int64)))


def point_columns(domain: Domain) -> list[str]:
    """The names of the axes; `lon` and `lat` for x and y in degrees, as `htf release` expects them."""
    names = list(domain.names)
    if domain.crs == CRS84 and names[:2] == ["x", "y"] and not {"lon", "lat"} & set(names):
        names[:2] = ["lon", "lat"]
    return names


def _between(low: FloatArray, high: FloatArray, share: FloatArray) -> FloatArray:
    """Places within `[low, high)`, even if the sum would be rounded up."""
    return np.minimum(low + share * (high - low), np.nextafter(high, low))


def _write(sample: Sample, path: Path, progress: Progress | None) -> None:
    from pyarrow import csv

    kind: Any = csv.CSVWriter if path.suffix.lower() == ".csv" else pq.ParquetWriter
    with kind(path, sample.schema) as writer:
        done = 0
        for batch in sample.batches():
            writer.write_batch(batch)
            done += batch.num_rows
            if progress is not None:
                progress(done, sample.points)


def _check_points(total: float, n: int | None, most: int) -> int:
    """How many points to draw: `n`, or as many as the release counts."""
    asked = max(round(total), 0) if n is None else n
    if arguments.is_whole(
        asked
    ):  # also of numbers that are too large to be read, the error names our limit
        asked = min(asked, most + 1)
    points = arguments.whole(asked, "points (n)", 0)
    if points > most:
        counted = f"the release counts {total:.6g}: say how many with --n"
        remedy = counted if n is None else "ask for fewer"
        where = "" if most == MOST_POINTS else " into memory"
        raise InputError(f"at most {most:,} points can be drawn{where}; {remedy}")
    return points
