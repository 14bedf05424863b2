"""Speed and memory of a release, as ratios taken in one run.

    python benchmarks/release.py            all of it, about three minutes
    python benchmarks/release.py --quick    without the largest sizes

What is timed is all of it, from FrequencyMatrix to Release, after one warming run (compiled loops are
cached on disk). Times are the best of several; the machine may be shared, so look at the ratios.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from htf import Domain, FrequencyMatrix, publish, read_points
from htf.frame.domain import FloatArray
from htf.synthetic.city import synthetic_city

POINTS = 4_000_000
SITES = 150_000  # distinct places on the 1024 grid
DOUBLINGS = (100_000, 200_000, 400_000, 800_000, 1_600_000, 3_200_000, 6_400_000)
BYTES_IN_A_MIB = 2**20


def best_of(runs: int, work: Callable[[], object]) -> float:
    times = []
    for _ in range(runs):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)


def scattered_points(
    points: int = POINTS, sites: int = SITES, seed: int = 1
) -> tuple[FloatArray, FloatArray]:
    """Visits to `sites` distinct cells of a 1024 grid over the unit square, a few of them crowded."""
    generator = np.random.default_rng(seed)
    cells = generator.choice(1024 * 1024, sites, replace=False)
    popularity = generator.pareto(1.2, sites) + 0.05
    visited = np.concatenate(
        [cells, generator.choice(cells, points - sites, p=popularity / popularity.sum())]
    )
    x, y = (
        np.stack([visited // 1024, visited % 1024]) + generator.uniform(0, 1, (2, points))
    ) / 1024
    return x, y


def against_duckdb() -> None:
    """`htf-paper` at epsilon 0.1 against DuckDB's own count of the same points per cell."""
    city = synthetic_city(POINTS)
    west, south, east, north = city.domain_bounds
    x, y = (city.x - west) / (east - west), (city.y - south) / (north - south)
    _against_duckdb("the synthetic city", x, y)
    _against_duckdb("places scattered evenly, the hardest", *scattered_points())


def _against_duckdb(what: str, x: FloatArray, y: FloatArray) -> None:
    points = pa.table({"lon": x, "lat": y})  # read by DuckDB, by its name
    connection = duckdb.connect()
    connection.execute("CREATE TABLE points AS SELECT * FROM points")
    query = """SELECT floor(lon * 1024)::INT AS i, floor(lat * 1024)::INT AS j, count(*) AS n
               FROM points WHERE lon >= 0 AND lon < 1 AND lat >= 0 AND lat < 1 GROUP BY ALL"""
    del points
    reference = best_of(7, lambda: connection.execute(query).fetchnumpy())
    matrix = read_points((x, y), Domain.from_bounds(0, 0, 1, 1, 1024))
    print(
        f"\n{what}: {POINTS:,} points, {len(matrix.exact_counts):,} non-empty cells of 1024 x 1024, epsilon 0.1"
    )
    print("| what | seconds | times DuckDB's count | limit |\n| --- | ---: | ---: | ---: |")
    print(f"| DuckDB, count per cell from an in-memory table | {reference:.3f} | 1.0 | |")
    for name, noise, limit in (
        ("htf-paper", "opendp", 10),
        ("htf-paper", "fast", 4),
        ("htf", "opendp", ""),
        ("htf", "fast", ""),
    ):
        publish(matrix, 0.1, name, noise=noise)
        taken = best_of(
            7,
            lambda name=name, noise=noise: publish(matrix, 0.1, name, noise=noise),  # type: ignore[misc]
        )
        print(f"| {name}, noise {noise} | {taken:.3f} | {taken / reference:.1f} | {limit} |")


def against_the_paper() -> None:
    """`htf` against `htf-paper` on the city, in turn: with a larger budget it makes many more regions."""
    print(f"\nthe synthetic city, {POINTS:,} points and a million, htf and htf-paper in turn")
    print("| points | noise | epsilon | htf, s | htf-paper, s | ratio | limit |")
    print("| ---: | --- | ---: | ---: | ---: | ---: | ---: |")
    for points in (POINTS, 1_000_000):
        city = synthetic_city(points)
        matrix = read_points((city.x, city.y), Domain.from_bounds(*city.domain_bounds, cells=1024))
        for noise in ("fast", "opendp"):
            for epsilon in (0.1, 1):
                ours, papers = _in_turn(matrix, epsilon, noise)
                row = f"{points:,} | {noise} | {epsilon:g} | {ours:.3f} | {papers:.3f}"
                print(f"| {row} | {ours / papers:.2f} | 3 |")


def _in_turn(matrix: FrequencyMatrix, epsilon: float, noise: str) -> tuple[float, float]:
    """The best of seven times of each, after one warming run."""
    times: dict[str, list[float]] = {"htf": [], "htf-paper": []}
    for _ in range(8):
        for name, taken in times.items():
            taken.append(best_of(1, lambda name=name: publish(matrix, epsilon, name, noise=noise)))  # type: ignore[misc]
    return min(times["htf"][1:]), min(times["htf-paper"][1:])


def scattered(cells: int, non_empty: int, seed: int = 3) -> FrequencyMatrix:
    """Clustered non-empty cells on a grid of `cells` a side, a few dozen records each."""
    generator = np.random.default_rng(seed)
    domain = Domain.from_bounds(0, 0, 1, 1, cells)
    centres, spreads = generator.uniform(0, 1, (200, 2)), generator.pareto(1, 200) * 0.02 + 0.005
    kept = np.empty(0, dtype=np.int64)
    while len(kept) < non_empty:
        chosen = generator.integers(0, 200, 2 * non_empty)
        drawn = centres[chosen] + generator.normal(size=(2 * non_empty, 2)) * spreads[chosen, None]
        cell = np.floor(drawn * cells).astype(np.int64)
        cell = cell[np.all((cell >= 0) & (cell < cells), axis=1)]
        kept = np.union1d(kept, cell[:, 0] * cells + cell[:, 1])
    kept = generator.permutation(kept)[:non_empty]
    counts = generator.geometric(0.05, non_empty)
    return FrequencyMatrix.from_cells(domain, np.stack([kept // cells, kept % cells]), counts)


def doublings(sizes: tuple[int, ...]) -> None:
    """Time and memory as the non-empty cells double. Each size in a process of its own."""
    print("\nNon-empty cells of a 16,384 x 16,384 grid, htf, fast noise, epsilon 0.1")
    print("| cells | seconds | times the size before | limit | bytes per cell | limit |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: |")
    before = None
    for size in sizes:
        taken, peak = _in_a_new_process(size)
        growth = f"{taken / before:.2f}" if before else ""
        print(f"| {size:,} | {taken:.3f} | {growth} | 2.3 | {peak / size:.0f} | 300 |")
        before = taken


def _in_a_new_process(size: int) -> tuple[float, float]:
    command = [sys.executable, __file__, "--one", str(size)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    told = json.loads(ran.stdout)
    return float(told["seconds"]), float(told["bytes"])


def one(size: int) -> None:
    """Peak memory is that of a process that loads the cells from a file and releases them, above
    that of the same process with hardly any cells."""
    matrix = scattered(16_384, size)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "cells.npz"
        np.savez(place, cells=matrix.exact_coordinates, counts=matrix.exact_counts)
        np.savez(Path(folder) / "few.npz", cells=[[1], [1]], counts=[1])
        peak = _peak(place) - _peak(Path(folder) / "few.npz")
    publish(matrix, 0.1, noise="fast")
    runs = 5 if size < 1_000_000 else 2
    seconds = best_of(runs, lambda: publish(matrix, 0.1, noise="fast"))
    print(json.dumps({"seconds": seconds, "bytes": peak}))


def _peak(place: object) -> int:
    code = f"""
import numpy as np, htf
data = np.load({str(place)!r})
domain = htf.Domain.from_bounds(0, 0, 1, 1, 16_384)
matrix = htf.FrequencyMatrix(domain, data["cells"].astype(np.int32), data["counts"].astype(np.int64))
htf.publish(matrix, 0.1, noise="fast")
lines = open("/proc/self/status").read().splitlines()  # Linux; ru_maxrss would count the parent's
print(1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")))
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return int(ran.stdout)


def fine_grid() -> None:
    """The same non-empty cells on a grid of a million a side and on one of 1024."""
    coarse = scattered(1024, 150_000)
    fine_domain = Domain.from_bounds(0, 0, 1, 1, 2**20)
    fine = FrequencyMatrix.from_cells(
        fine_domain, coarse.exact_coordinates.astype(np.int64) * 1024 + 511, coarse.exact_counts
    )
    times = []
    for matrix in (coarse, fine):
        publish(matrix, 0.1, "htf-paper", noise="fast")
        times.append(
            best_of(7, lambda matrix=matrix: publish(matrix, 0.1, "htf-paper", noise="fast"))  # type: ignore[misc]
        )
    print("\n150,000 non-empty cells, htf-paper, fast noise, epsilon 0.1")
    print("| grid | seconds | ratio | limit |\n| --- | ---: | ---: | ---: |")
    print(f"| 1024 x 1024 | {times[0]:.3f} | 1.00 | |")
    print(f"| 1,048,576 x 1,048,576 | {times[1]:.3f} | {times[1] / times[0]:.2f} | 1.5 |")


def start_up() -> None:
    print("\n| what | seconds | limit |\n| --- | ---: | ---: |")
    for name, command, limit in (
        ("htf --help", ["-m", "htf", "--help"], 0.25),
        ("import htf", ["-c", "import htf"], 0.5),
    ):
        with quietly() as run:
            taken = best_of(7, lambda command=command: run(command))  # type: ignore[misc]
        print(f"| `{name}` | {taken:.3f} | {limit} |")


@contextmanager
def quietly() -> Iterator[Callable[[list[str]], object]]:
    yield lambda command: subprocess.run(
        [sys.executable, *command], stdout=subprocess.DEVNULL, check=True
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="leave the largest sizes out")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        one(options.one)
        return
    start_up()
    against_duckdb()
    against_the_paper()
    fine_grid()
    doublings(DOUBLINGS[:4] if options.quick else DOUBLINGS)


if __name__ == "__main__":
    main()
