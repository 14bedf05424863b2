"""What a prior gains, and what a wrong one costs: errors with it over errors without it, from the same noisy counts.

    python benchmarks/priors.py toronto.parquet --bounds=-79.65,43.57,-79.11,43.87
    python benchmarks/priors.py new_york.parquet --bounds=-74.26,40.48,-73.70,40.92 --other uber.parquet
    python benchmarks/priors.py toronto.parquet --bounds=-79.65,43.57,-79.11,43.87 --records 500,2000 --runs 10 \
        --elsewhere checkins.parquet --elsewhere-bounds=-97.17,32.46,-96.42,33.09

Half of the points, drawn by lot, are released, or `--records` of them. The priors are the other half (`half`), points of
another source (`other`), another city stretched over the map (`elsewhere`), the map transposed (`transposed`), its blocks
shuffled (`blocks`), an even map (`even`) and one with everything in one cell (`point`). `half, all` is trusted wholly, as if it were known to be right:
the gain of `half` over that of `half, all` says how much of the gain was found. A ratio is the geometric mean over
squares around records and areas anywhere, of the paper's relative error and of the RMSE.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

import htf
from htf.estimation.homogeneous import PRIOR_TRUST, estimate_regions
from htf.estimation.prior import Prior
from htf.frame.domain import FloatArray, IntArray
from squares import dense, errors, squares  # type: ignore[import-not-found]

BLOCKS = 8  # along each side of the map


def read(path: Path, names: Sequence[str]) -> tuple[FloatArray, FloatArray]:
    table = pq.read_table(path, columns=list(names))
    x, y = (table[name].to_numpy().astype(np.float64) for name in names)
    return x, y


def map_of(bounds: str, cells: int) -> htf.Domain:
    west, south, east, north = (float(edge) for edge in bounds.split(","))
    return htf.Domain.from_bounds(west, south, east, north, cells=cells)


def with_priors(release: htf.Release, priors: Sequence[Prior]) -> htf.Release:
    """The same measurements, estimated with priors. That costs nothing."""
    made = estimate_regions(release.tree, release.measurements.tree_counts(), priors)
    facts = {**release.facts, PRIOR_TRUST: made.trust.tolist()}
    estimates = made.estimates[release.leaves]
    return replace(release, priors=tuple(priors), facts=facts, estimates=estimates)


def shuffled_blocks(counts: IntArray, generator: np.random.Generator) -> IntArray:
    size = len(counts) // BLOCKS
    blocks = counts.reshape(BLOCKS, size, BLOCKS, size).swapaxes(1, 2).reshape(-1, size, size)
    moved = generator.permutation(blocks).reshape(BLOCKS, BLOCKS, size, size)
    return np.asarray(moved.swapaxes(1, 2).reshape(counts.shape))


def compare(
    points: tuple[FloatArray, FloatArray],
    others: dict[str, IntArray],
    domain: htf.Domain,
    epsilon: str,
    runs: int,
    records: int | None = None,
) -> dict[str, list[float]]:
    """The ratio of each prior in each run."""
    ratios: dict[str, list[float]] = {}
    for run in range(runs):
        generator = np.random.default_rng(run)
        mine = generator.integers(0, 2, len(points[0])) == 0
        some = np.flatnonzero(mine)
        if records is not None and records < len(some):
            some = generator.choice(some, records, replace=False)
        matrix, rest = (
            htf.read_points([points[0][rows], points[1][rows]], domain) for rows in (some, ~mine)
        )
        counts, half = dense(matrix), dense(rest)
        point = np.zeros_like(half)
        point[tuple(generator.integers(0, half.shape))] = 1
        blocks = shuffled_blocks(half, generator)
        maps = {"half": half, "transposed": half.T, "blocks": blocks}
        maps |= {"even": np.ones_like(half), "point": point, **others}
        boxes = squares(counts, generator)
        plain = htf.publish(matrix, epsilon, noise=f"seeded:{run}")
        before = errors(plain, counts, boxes)
        for name, weights in maps.items():
            prior = Prior.of(weights, domain, name, "0" * 64)
            after = errors(with_priors(plain, [prior]), counts, boxes)
            ratio = float(np.exp(np.mean(np.log(after / before))))
            ratios.setdefault(name, []).append(ratio)
    return ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("points", type=Path)
    parser.add_argument("--bounds", required=True, help="W,S,E,N")
    parser.add_argument("--columns", default="lon,lat")
    parser.add_argument(
        "--other", type=Path, help="points of another source, for the prior `other`"
    )
    parser.add_argument("--elsewhere", type=Path, help="points of another place")
    parser.add_argument("--elsewhere-bounds", help="W,S,E,N of it, stretched over the map")
    parser.add_argument("--records", default="", help="how many are released; all by default")
    parser.add_argument("--cells", default="256,1024")
    parser.add_argument("--epsilons", default="0.1,1")
    parser.add_argument("--runs", type=int, default=2)
    given = parser.parse_args()
    names = given.columns.split(",")
    points = read(given.points, names)
    numbers: list[int | None] = [int(text) for text in given.records.split(",") if text]
    print(
        "| map | records | cells | epsilon | prior | with over without (least to most) |\n"
        "| --- | ---: | ---: | ---: | --- | ---: |"
    )
    for cells in given.cells.split(","):
        domain = map_of(given.bounds, int(cells))
        far = map_of(given.elsewhere_bounds or given.bounds, int(cells))
        others = {
            name: dense(htf.read_points(list(read(path, names)), place))
            for name, path, place in (
                ("other", given.other, domain),
                ("elsewhere", given.elsewhere, far),
            )
            if path is not None
        }
        for records, epsilon in product(numbers or [None], given.epsilons.split(",")):
            ratios = compare(points, others, domain, epsilon, given.runs, records)
            for name, found in ratios.items():
                mean = np.exp(np.mean(np.log(found)))
                span = f"{min(found):.2f} to {max(found):.2f}"
                number = "all" if records is None else f"{records:,}"
                row = f"{given.points.stem} | {number} | {cells} | {epsilon} | {name} | {mean:.3f} ({span})"
                print(f"| {row} |", flush=True)


if __name__ == "__main__":
    main()
