"""How useful releases with three and four axes are: relative error of random boxes.

    python benchmarks/axes.py                       # invented trips
    python benchmarks/axes.py trips.parquet --bounds W,S,E,N --utc-offset 8
    python benchmarks/axes.py trips.parquet --bounds W,S,E,N --utc-offset 8 --middles

A file has columns lon, lat, dest_lon, dest_lat and ts (Unix seconds). Each table is one grid: the mean
relative error in per cent (of counts below 20, relative to 20), with the least and the largest of the runs,
of `htf`, of `htf-paper` and of a flat grid, that is noise on each cell. The noise of a flat grid in a box of n
cells is the sum of n discrete Laplace variables, and is drawn as the difference of two negative binomial ones, which is the
same: so no grid is too large for it. With `--middles`, root mean square errors of the count of `htf` beside those of the
raw answer, for single hours of the whole map and three hours of squares, with 256 x 256 cells.
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.parquet as pq

from htf import Axis, Domain, FrequencyMatrix, publish
from htf.forecasts.counting import ExactCounter, answer_boxes
from htf.forecasts.workloads import Boxes, read_workload
from htf.frame.crs import CRS84
from htf.frame.domain import FloatArray, IntArray
from htf.synthetic.trips import synthetic_trips
from htf_bench.metrics import measure_errors, reaches_for_count

EPSILONS = ("0.1", "1")
WORKLOADS = {
    "random": "boxes of any size",
    "data-1%": "1 % of the grid, at records",
    "data-0.01%": "0.01 % of the grid, at records",
}
MECHANISMS = ("htf", "htf-paper", "flat grid")
QUERIES = 2000


class Column(NamedTuple):
    low: float
    high: float
    values: FloatArray


def read_columns(path: Path | None, bounds: list[float], utc_offset: float) -> dict[str, Column]:
    """By axis: bounds and values. The bounds are public, chosen without the data."""
    if path is None:
        trips = synthetic_trips()
        west, south, east, north = trips.domain_bounds
        origin, goal, hour = (trips.x, trips.y), (trips.dest_x, trips.dest_y), trips.hour
    else:
        west, south, east, north = bounds
        table = pq.read_table(path)
        names = ("lon", "lat", "dest_lon", "dest_lat", "ts")
        x, y, dest_x, dest_y, seconds = (table[name].to_numpy() for name in names)
        origin, goal = (x, y), (dest_x, dest_y)
        hour = (seconds / 3600 + utc_offset) % 24
    return {
        "x": Column(west, east, origin[0]),
        "y": Column(south, north, origin[1]),
        "dest_x": Column(west, east, goal[0]),
        "dest_y": Column(south, north, goal[1]),
        "hour": Column(0, 24, hour),
    }


def make_matrix(columns: dict[str, Column], cells: dict[str, int]) -> FrequencyMatrix:
    axes = tuple(Axis(n, columns[n].low, columns[n].high, number) for n, number in cells.items())
    places = np.array([np.floor(a.to_cells(columns[a.name].values)) for a in axes])
    shape = np.array([axis.cells for axis in axes])[:, None]
    inside = np.all((places >= 0) & (places < shape), axis=0)
    return FrequencyMatrix.from_cells(Domain(axes, CRS84), places[:, inside])


def flat_grid(
    generator: np.random.Generator, boxes: Boxes, truth: IntArray, eps: str
) -> FloatArray:
    cells = np.prod(boxes.high - boxes.low, axis=1, dtype=np.int64)
    stop = 1 - math.exp(-float(eps))
    noise = generator.negative_binomial(cells, stop) - generator.negative_binomial(cells, stop)
    return np.asarray(truth + noise, dtype=np.float64)


def measure(matrix: FrequencyMatrix, eps: str, runs: int) -> dict[tuple[str, str], list[float]]:
    """(workload, mechanism) -> relative error of each run."""
    exact = ExactCounter(matrix)
    found: dict[tuple[str, str], list[float]] = {}
    for run in range(runs):
        releases = {m: publish(matrix, eps, m, noise=f"seeded:{run}") for m in MECHANISMS[:2]}
        for number, workload in enumerate(WORKLOADS):
            seeds = np.random.SeedSequence([run, number])
            boxes = read_workload(workload).draw(matrix, QUERIES, seeds)
            truth = exact.count(boxes)
            for mechanism in MECHANISMS:
                answers = (
                    answer_boxes(releases[mechanism], boxes)
                    if mechanism in releases
                    else flat_grid(np.random.default_rng([run, 7]), boxes, truth, eps)
                )
                error = measure_errors(truth, answers)["MRE"]
                found.setdefault((workload, mechanism), []).append(error)
    return found


def show(found: dict[tuple[str, str], list[float]], eps: str) -> None:
    for workload, words in WORKLOADS.items():
        cells = []
        for mechanism in MECHANISMS:
            runs = found[workload, mechanism]
            cells.append(
                f"{short(float(np.mean(runs)))} ({short(min(runs))} to {short(max(runs))})"
            )
        print(f"| {eps} | {words} | {' | '.join(cells)} |")


def measure_middles(matrix: FrequencyMatrix, eps: str, runs: int) -> None:
    """Of the count, of the raw answer, and how often the interval reaches out for the count."""
    exact, shape = ExactCounter(matrix), np.array(matrix.domain.shape)
    releases = [publish(matrix, eps, noise=f"seeded:{run}") for run in range(runs)]
    print(
        f"\nepsilon {eps}: root mean square error of the count, of the raw answer; reaches out for the count"
    )
    for side in (0.05, 0.2, 0.45, 1.0):
        count, middle, outside = [], [], []
        for run, release in enumerate(releases):
            boxes = draw_squares(shape, side, run)
            edges = [
                axis.from_cells(ends[:, place])
                for ends in (boxes.low, boxes.high)
                for place, axis in enumerate(matrix.domain.axes)
            ]
            found, truth = release.count(np.column_stack(edges)), exact.count(boxes)
            count.append(found.count - truth)
            middle.append(found.raw - truth)
            outside.append(reaches_for_count(found))
        errors = [math.sqrt(float(np.mean(np.square(off)))) for off in (count, middle)]
        print(f"  {side:.0%} of the side: {errors[0]:.1f}, {errors[1]:.1f}; {np.mean(outside):.1%}")


def draw_squares(shape: IntArray, side: float, run: int) -> Boxes:
    """Three hours of squares anywhere; of the whole map, every hour of the day."""
    widths = np.array([*np.rint(side * shape[:2]), 1 if side == 1 else 3]).astype(np.int64)
    number = 24 if side == 1 else QUERIES
    starts = np.random.default_rng([run, 3]).random((number, 3)) * (shape - widths + 1)
    if side == 1:
        starts[:, 2] = np.arange(24)
    low = starts.astype(np.int64)
    return Boxes(low, low + widths)


def short(value: float) -> str:
    """Two digits, or whole numbers."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("points", nargs="?", type=Path)
    parser.add_argument("--bounds", default="")
    parser.add_argument("--utc-offset", type=float, default=0.0, help="hours")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--middles", action="store_true")
    given = parser.parse_args()
    bounds = [float(edge) for edge in given.bounds.split(",") if edge]
    columns = read_columns(given.points, bounds, given.utc_offset)
    place, goal = ("x", "y"), ("dest_x", "dest_y")
    grids = [
        {**dict.fromkeys(place, 64), "hour": 24},
        {**dict.fromkeys(place, 256), "hour": 24},
        dict.fromkeys((*place, *goal), 32),
        dict.fromkeys((*place, *goal), 64),
    ]
    if given.middles:
        for eps in EPSILONS:
            measure_middles(make_matrix(columns, grids[1]), eps, given.runs)
        return
    for cells in grids:
        started = time.perf_counter()
        matrix = make_matrix(columns, cells)
        print(f"\n### {' x '.join(f'{name} {number}' for name, number in cells.items())}\n")
        print(f"| ε | boxes | {' | '.join(MECHANISMS)} |\n| ---: | --- |" + " ---: |" * 3)
        for eps in EPSILONS:
            show(measure(matrix, eps, given.runs), eps)
        print(f"\n{time.perf_counter() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
