"""Workloads: the boxes that simulated releases are asked for.

| text | boxes |
| --- | --- |
| `random` | centre uniform on the map, width and height uniform between nothing and the whole map |
| `2%` | squares of that share of the map's area, centre uniform on the map |
| `data-1%` | the same squares centred on records, so on where people ask. Drawn from the sensitive data |

A "square" takes the same share of each axis, the root of its share of the area, so that it is a
square on a square map. Boxes are clipped at the edge of the map: near it, a square of 2 % covers
less. Edges are then moved to the nearest edge between cells, each box keeping at least one cell, so
that the true count of a box is a sum of whole cells and exact.

The paper says of the random workload "random rectangular queries with center selected uniformly at
random" and "random shape and size", and of the squares "a region covering {2 %, 6 %, 10 %} of the
dataspace". How sizes are drawn and what happens at the edge are our reading.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from htf.base.numerals import decimal
from htf.curator.frequency import FrequencyMatrix
from htf.errors import InputError
from htf.frame.domain import Domain, FloatArray, IntArray

FORMS = "random, P% (such as 2%) or data-P% (such as data-0.1%)"


@dataclass(frozen=True, slots=True, eq=False)
class Boxes:
    """Half-open boxes of whole cells, one row each."""

    low: IntArray
    high: IntArray

    def __len__(self) -> int:
        return len(self.low)


@dataclass(frozen=True)
class Workload:
    """One kind of boxes. `text` is how the command line and the tables call it."""

    text: str
    share: float | None = None  # of the map's area; neither this nor sides: random sizes
    at_records: bool = False  # so that the boxes themselves reveal the data
    sides: tuple[float | None, ...] | None = None  # in cells; None: all of that axis

    def draw(self, matrix: FrequencyMatrix, number: int, seeds: np.random.SeedSequence) -> Boxes:
        """So many boxes."""
        generator = np.random.default_rng(seeds)
        shape = np.array(matrix.domain.shape, dtype=np.float64)
        if self.at_records:  # anywhere within the cell of a record
            corners = draw_cells(generator, matrix, number)
            centres = corners + generator.uniform(0, 1, corners.shape)
        else:
            centres = generator.uniform(0, 1, (number, len(shape))) * shape
        if self.sides is not None:
            sides = np.array(
                [2 * n if one is None else one for one, n in zip(self.sides, shape, strict=True)]
            )
        elif self.share is None:
            # 1 - [0, 1): a side may be the whole map, never nothing.
            sides = (1 - generator.random((number, len(shape)))) * shape
        else:
            sides = self.share ** (1 / len(shape)) * shape
        return snap_to_cells(centres - sides / 2, centres + sides / 2, matrix.domain)


def derive_seeds(seed: int, *words: object) -> np.random.SeedSequence:
    """Separate seeds for whatever the words name."""
    digest = hashlib.sha256("\x1f".join(map(str, words)).encode()).digest()
    return np.random.SeedSequence(seed, spawn_key=np.frombuffer(digest, dtype=np.uint32).tolist())


def read_workload(text: str) -> Workload:
    """The workload that a text names."""
    if text == "random":
        return Workload(text)
    share = _read_share(text.removeprefix("data-"))
    if share is None:
        raise InputError(f"a workload is {FORMS}, got {text!r}")
    return Workload(text, share, at_records=text.startswith("data-"))


def snap_to_cells(low: FloatArray, high: FloatArray, domain: Domain) -> Boxes:
    """Clip boxes in cell coordinates, and move their edges to the nearest edge between cells."""
    shape = np.array(domain.shape, dtype=np.int64)
    first = np.rint(np.clip(low, 0, shape)).astype(np.int64)
    end = np.rint(np.clip(high, 0, shape)).astype(np.int64)
    first = np.minimum(first, shape - 1)
    return Boxes(first, np.maximum(end, first + 1))


def _read_share(text: str) -> float | None:
    try:
        percent = decimal(text.removesuffix("%"))
    except ValueError:
        return None
    return percent / 100 if text.endswith("%") and 0 < percent <= 100 else None


def draw_cells(generator: np.random.Generator, matrix: FrequencyMatrix, number: int) -> IntArray:
    """The cells of records, drawn with replacement."""
    cumulative = np.cumsum(matrix.exact_counts)
    if len(cumulative) == 0:
        raise InputError("a workload at records needs records, and there are none on this map")
    record = generator.integers(0, cumulative[-1], number)
    cell = np.searchsorted(cumulative, record, side="right")
    return matrix.exact_coordinates[:, cell].T.astype(np.int64)
