"""Workloads: the boxes that the bench asks for.

| text | boxes |
| --- | --- |
| `random` | centre uniform on the map, width and height uniform between nothing and the whole map |
| `2%` | squares of that share of the map's area, centre uniform on the map |
| `data-1%` | the same squares centred on records, so on where people ask. Drawn from the sensitive data |
| `places-8` | squares of 8 x 8 cells that hold a record, and lie inside the map. Drawn from the sensitive data |
| `places` | stands for places-2, places-4, … places-64 |
| `grid-32` | all squares of a grid of 32 x 32 over the map, for the distances of whole maps (htf.evaluation.map_metrics) |
| `file:boxes.csv` | boxes of a file with columns west, south, east, north |

A "square" takes the same share of each axis, the root of its share of the area, so that it is a
square on a square map. Boxes are clipped at the edge of the map: near it, a square of 2 % covers
less. Edges are then moved to the nearest edge between cells, each box keeping at least one cell, so
that the true count of a box is a sum of whole cells and exact. Squares of `places` are whole cells
from the start. Each is moved by a random number of cells, so that its record may be anywhere in it.

The paper says of the random workload "random rectangular queries with center selected uniformly at
random" and "random shape and size", and of the squares "a region covering {2 %, 6 %, 10 %} of the
dataspace". How sizes are drawn and what happens at the edge are our reading.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from htf.base.numerals import decimal, whole
from htf.curator.frequency import FrequencyMatrix
from htf.errors import InputError
from htf.files import is_file
from htf.frame.domain import Domain, FloatArray, IntArray
from htf.frame.grids import even_edges

FORMS = (
    "random, P% (such as 2%), data-P% (such as data-0.1%), places-CELLS (such as places-8), places, "
    "grid-SQUARES (such as grid-32) or file:boxes.csv"
)
GRID = "grid"
MOST_SQUARES = 1024  # per side
PLACES, PLACE_SIDES = "places", (2, 4, 8, 16, 32, 64)
EDGES = ("west", "south", "east", "north")


@dataclass(frozen=True, slots=True, eq=False)
class Boxes:
    """Half-open boxes of whole cells, one row each."""

    low: IntArray
    high: IntArray

    def __len__(self) -> int:
        return len(self.low)


@dataclass(frozen=True, slots=True)
class Workload:
    """One kind of boxes. `text` is how the command line and the tables call it."""

    text: str
    share: float | None = None  # of the map's area; None: random sizes
    at_records: bool = False
    side: int | None = None  # of squares that hold a record, in cells
    path: Path | None = None
    squares: int | None = None  # of a grid over the map, per side
    sides: tuple[float, ...] | None = None  # of squares, in cells along each axis

    @property
    def is_from_data(self) -> bool:
        """Whether the boxes themselves reveal the data."""
        return self.at_records

    def draw(self, matrix: FrequencyMatrix, number: int, seeds: np.random.SeedSequence) -> Boxes:
        """`number` boxes, or all those of the file or the grid."""
        if self.path is not None:
            return _read_boxes(self.path, matrix.domain)
        if self.squares is not None:
            return _grid_boxes(matrix.domain, self.grid_shape(matrix.domain))
        generator = np.random.default_rng(seeds)
        if self.side is not None:
            return _draw_places(generator, matrix, number, self.side, self.text)
        shape = np.array(matrix.domain.shape, dtype=np.float64)
        if self.at_records:
            centres = _draw_records(generator, matrix, number)
        else:
            centres = generator.uniform(0, 1, (number, len(shape))) * shape
        if self.sides is not None:
            sides = np.broadcast_to(np.array(self.sides), centres.shape)
        elif self.share is None:
            # 1 - [0, 1): a side may be the whole map, never nothing.
            sides = (1 - generator.random((number, len(shape)))) * shape
        else:
            sides = np.broadcast_to(self.share ** (1 / len(shape)) * shape, centres.shape)
        return snap_to_cells(centres - sides / 2, centres + sides / 2, matrix.domain)

    def grid_shape(self, domain: Domain) -> tuple[int, int]:
        """How many squares a grid has along each axis: no more than cells."""
        if domain.dimensions != 2:
            raise InputError(f"{self.text} is for maps with two axes")
        width, height = domain.shape
        most = self.squares or 1
        return min(most, width), min(most, height)


def read_workloads(text: str) -> list[Workload]:
    """Those of a list with commas, each once; `places` stands for places of all sides."""
    found: list[Workload] = []
    for word in (part.strip() for part in text.split(",")):
        words = [f"{PLACES}-{side}" for side in PLACE_SIDES] if word == PLACES else [word]
        found += map(read_workload, words)
    return list(dict.fromkeys(found))


def read_workload(text: str) -> Workload:
    """The workload that a text on the command line names."""
    if text == "random":
        return Workload(text)
    if text.startswith("file:"):
        path = Path(text.removeprefix("file:"))
        if not is_file(path):
            raise InputError(f"there is no file {path}, named by the workload {text!r}")
        return Workload(text, path=path.resolve())
    if text.startswith(f"{GRID}-"):
        squares = _read_number(text, GRID, "squares", MOST_SQUARES)
        return Workload(f"{GRID}-{squares}", squares=squares)
    if text.startswith(f"{PLACES}-"):
        side = _read_number(text, PLACES, "cells")
        return Workload(f"{PLACES}-{side}", at_records=True, side=side)
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
    if not text.endswith("%"):
        return None
    try:
        percent = decimal(text[:-1])
    except ValueError:
        return None
    return percent / 100 if math.isfinite(percent) and 0 < percent <= 100 else None


def _read_number(text: str, kind: str, things: str, most: int | None = None) -> int:
    try:
        number = whole(text.removeprefix(f"{kind}-"))
    except ValueError:
        number = 0
    if number < 1 or (most is not None and number > most):
        range_ = "1 or more" if most is None else f"from 1 to {most:,}"
        raise InputError(
            f"{kind}-{things.upper()} takes a whole number of {things}, {range_}, got {text!r}"
        )
    return number


def _grid_boxes(domain: Domain, shape: tuple[int, int]) -> Boxes:
    """All squares of a grid, row by row."""
    x, y = even_edges(domain.shape, shape)
    low = np.stack(np.meshgrid(x[:-1], y[:-1], indexing="ij"), axis=-1).reshape(-1, 2)
    high = np.stack(np.meshgrid(x[1:], y[1:], indexing="ij"), axis=-1).reshape(-1, 2)
    return Boxes(low, high)


def _draw_places(
    generator: np.random.Generator, matrix: FrequencyMatrix, number: int, side: int, text: str
) -> Boxes:
    """Squares of whole cells, each around the cell of a record and inside the map."""
    shape = np.array(matrix.domain.shape, dtype=np.int64)
    if side > shape.min():
        raise InputError(
            f"the squares of {text} do not fit on a map of {' x '.join(map(str, shape))} cells: "
            "give a smaller number or a finer grid"
        )
    cells = _draw_cells(generator, matrix, number)
    low = np.clip(cells - generator.integers(0, side, cells.shape), 0, shape - side)
    return Boxes(low, low + side)


def _draw_records(
    generator: np.random.Generator, matrix: FrequencyMatrix, number: int
) -> FloatArray:
    """Places of records, each anywhere within its cell."""
    corners = _draw_cells(generator, matrix, number)
    return np.asarray(corners + generator.uniform(0, 1, corners.shape))


def _draw_cells(generator: np.random.Generator, matrix: FrequencyMatrix, number: int) -> IntArray:
    """The cells of records, drawn with replacement."""
    cumulative = np.cumsum(matrix.exact_counts)
    if len(cumulative) == 0:
        raise InputError("a workload at records needs records, and there are none on this map")
    record = generator.integers(0, cumulative[-1], number)
    cell = np.searchsorted(cumulative, record, side="right")
    return matrix.exact_coordinates[:, cell].T.astype(np.int64)


def _read_boxes(path: Path, domain: Domain) -> Boxes:
    import pyarrow as pa
    from pyarrow import csv

    options = csv.ConvertOptions(column_types=dict.fromkeys(EDGES, pa.float64()))
    try:
        table = csv.read_csv(path, convert_options=options)
        columns = [table[name].to_numpy() for name in EDGES]
    except (pa.ArrowException, KeyError):
        raise InputError(f"{path} must hold numbers in columns {', '.join(EDGES)}") from None
    x, y = domain.axes
    low = np.column_stack([x.to_cells(columns[0]), y.to_cells(columns[1])])
    high = np.column_stack([x.to_cells(columns[2]), y.to_cells(columns[3])])
    shape = np.array(domain.shape)
    sound = np.all((low < high) & (low < shape) & (high > 0), axis=1)
    if len(low) == 0 or not sound.all():
        row = int(np.argmin(sound)) if len(low) else 0
        raise InputError(f"box {row + 1} of {path} is missing, empty, swapped or outside the map")
    return snap_to_cells(low, high, domain)
