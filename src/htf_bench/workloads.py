"""Further boxes that the bench asks for, beside those of a forecast.

| text | boxes |
| --- | --- |
| `places-8` | squares of 8 x 8 cells that hold a record, and lie inside the map. Drawn from the sensitive data |
| `places` | stands for places-2, places-4, … places-64 |
| `grid-32` | all squares of a grid of 32 x 32 over the map, for the distances of whole maps (htf_bench.metrics) |
| `file:boxes.csv` | boxes of a file with columns west, south, east, north |

Squares of `places` are whole cells. Each is moved by a random number of cells, so that its record may be anywhere
in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from htf.base.numerals import whole
from htf.curator.frequency import FrequencyMatrix
from htf.errors import InputError
from htf.files import is_file
from htf.forecasts import workloads
from htf.forecasts.workloads import Boxes, Workload, draw_cells, snap_to_cells
from htf.frame.domain import Domain
from htf.frame.grids import even_edges

FORMS = f"{workloads.FORMS}, places-CELLS (such as places-8), places, grid-SQUARES (such as grid-32) or file:boxes.csv"
GRID = "grid"
MOST_SQUARES = 1024  # per side
PLACES, PLACE_SIDES = "places", (2, 4, 8, 16, 32, 64)
EDGES = ("west", "south", "east", "north")


@dataclass(frozen=True)
class Places(Workload):
    """Squares of whole cells, each around the cell of a record and inside the map."""

    at_records: bool = True
    side: int = 1  # in cells

    def draw(self, matrix: FrequencyMatrix, number: int, seeds: np.random.SeedSequence) -> Boxes:
        """So many squares."""
        generator = np.random.default_rng(seeds)
        shape = np.array(matrix.domain.shape, dtype=np.int64)
        if self.side > shape.min():
            raise InputError(
                f"the squares of {self.text} do not fit on a map of {' x '.join(map(str, shape))} cells: "
                "give a smaller number or a finer grid"
            )
        cells = draw_cells(generator, matrix, number)
        low = np.clip(cells - generator.integers(0, self.side, cells.shape), 0, shape - self.side)
        return Boxes(low, low + self.side)


@dataclass(frozen=True)
class WholeMap(Workload):
    """All squares of a grid over the map."""

    squares: int = 1  # per side

    def draw(self, matrix: FrequencyMatrix, number: int, seeds: np.random.SeedSequence) -> Boxes:  # noqa: ARG002
        """All squares, row by row."""
        domain = matrix.domain
        x, y = even_edges(domain.shape, self.grid_shape(domain))
        low = np.stack(np.meshgrid(x[:-1], y[:-1], indexing="ij"), axis=-1).reshape(-1, 2)
        high = np.stack(np.meshgrid(x[1:], y[1:], indexing="ij"), axis=-1).reshape(-1, 2)
        return Boxes(low, high)

    def grid_shape(self, domain: Domain) -> tuple[int, int]:
        """How many squares a grid has along each axis: no more than cells."""
        if domain.dimensions != 2:
            raise InputError(f"{self.text} is for maps with two axes")
        width, height = domain.shape
        most = self.squares
        return min(most, width), min(most, height)


@dataclass(frozen=True)
class BoxesOfFile(Workload):
    """Boxes of a CSV file."""

    path: Path = Path()

    def draw(self, matrix: FrequencyMatrix, number: int, seeds: np.random.SeedSequence) -> Boxes:  # noqa: ARG002
        """All boxes of the file."""
        return _read_boxes(self.path, matrix.domain)


def read_workloads(text: str) -> list[Workload]:
    """Those of a list with commas, each once; `places` stands for places of all sides."""
    found: list[Workload] = []
    for word in (part.strip() for part in text.split(",")):
        words = [f"{PLACES}-{side}" for side in PLACE_SIDES] if word == PLACES else [word]
        found += map(read_workload, words)
    return list(dict.fromkeys(found))


def read_workload(text: str) -> Workload:
    """The workload that a text on the command line names."""
    if text.startswith("file:"):
        path = Path(text.removeprefix("file:"))
        if not is_file(path):
            raise InputError(f"there is no file {path}, named by the workload {text!r}")
        return BoxesOfFile(text, path=path.resolve())
    if text.startswith(f"{GRID}-"):
        squares = _read_number(text, GRID, "squares", MOST_SQUARES)
        return WholeMap(f"{GRID}-{squares}", squares=squares)
    if text.startswith(f"{PLACES}-"):
        side = _read_number(text, PLACES, "cells")
        return Places(f"{PLACES}-{side}", side=side)
    try:
        return workloads.read_workload(text)
    except InputError:
        raise InputError(f"a workload is {FORMS}, got {text!r}") from None


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
