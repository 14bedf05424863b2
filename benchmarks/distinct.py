"""How good tables of distinct people are, and whether their intervals hold the true numbers.

    python benchmarks/distinct.py                     # invented visits
    python benchmarks/distinct.py checkins.parquet --bounds=W,S,E,N --user user_id

A file has columns lon and lat. The table has a fifth of each epsilon, as by `htf release --distinct`. What is printed is
computed from exact data, so it is not for publication.
"""

from __future__ import annotations

import argparse

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from htf import Domain, Epsilon, measure_distinct, read_people_by_box, synthetic_visits
from htf.estimation.distinct import estimate_distinct

EPSILONS = ("0.5", "1", "2")
SHARE = 5  # the table has one of so many parts of epsilon
FULLEST = 20  # boxes
FEW = 20  # people


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("points", nargs="?")
    parser.add_argument("--bounds", default="-30.176,39.865,-29.824,40.135")
    parser.add_argument("--user", default="person")
    parser.add_argument("--grids", default="8,16,32,64")
    parser.add_argument(
        "--boxes", type=int, help="count people in so many boxes; found with noise if left out"
    )
    parser.add_argument("--runs", type=int, default=100)
    asked = parser.parse_args()
    west, south, east, north = map(float, asked.bounds.split(","))
    domain = Domain.from_bounds(west, south, east, north, cells=1024)
    if asked.points is None:
        made = synthetic_visits()
        source = pa.table({"lon": made.x, "lat": made.y, asked.user: made.person})
    else:
        source = pq.read_table(asked.points, columns=["lon", "lat", asked.user])
    print(
        "| grid | ε | M | covered | of boxes with 20 people or more | of the 20 fullest | error of these | half width of these | half width |"
    )
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for grid in map(int, asked.grids.split(",")):
        people = read_people_by_box(source, domain, grid, ["lon", "lat"], user=asked.user)
        true = true_people(source, domain, grid, asked.user)
        fullest, some = np.argsort(-true)[:FULLEST], true >= FEW
        for epsilon in EPSILONS:
            rows = []
            for seed in range(asked.runs):
                price = Epsilon.of(epsilon) // SHARE
                found = measure_distinct(
                    people, price, max_boxes=asked.boxes, noise=f"seeded:{seed}"
                )
                table = estimate_distinct(found)
                held = (table.low <= true) & (true <= table.high)
                half = (table.high - table.low) / 2
                error = np.abs(table.different_people - true)[fullest] / true[fullest]
                rows.append(
                    (found.max_boxes, held.mean(), held[some].mean(), held[fullest].mean(), error.mean(),
                        half[fullest].mean(), half.mean())
                )  # fmt: skip
            mean = np.mean(rows, axis=0)
            most = [row[0] for row in rows]
            print(
                f"| {grid} x {grid} | {epsilon} | {min(most)} to {max(most)} | {mean[1]:.1%} | {mean[2]:.1%} | "
                f"{mean[3]:.1%} | {mean[4]:.1%} | {mean[5]:.0f} | {mean[6]:.0f} |",
                flush=True,
            )


def true_people(source: pa.Table, domain: Domain, grid: int, user: str) -> np.ndarray:
    """All pairs of a person and a box, however many a person has."""
    along = []
    for axis, name in zip(domain.axes, ("lon", "lat"), strict=True):
        place = source[name].to_numpy()
        inside = (place >= axis.low) & (place < axis.high)
        cell = np.minimum(
            np.floor(axis.to_cells(np.where(inside, place, axis.low))), axis.cells - 1
        )
        along.append((np.where(inside, ((cell + 1) * grid - 1) // axis.cells, -1)).astype(np.int64))
    inside = (along[0] >= 0) & (along[1] >= 0)
    _, who = np.unique(np.asarray(source[user]), return_inverse=True)
    pairs = np.unique(np.stack([who[inside], along[0][inside] * grid + along[1][inside]]), axis=1)
    return np.bincount(pairs[1], minlength=grid * grid)


if __name__ == "__main__":
    main()
