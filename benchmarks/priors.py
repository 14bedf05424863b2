"""What a prior gains, and what a wrong one costs: errors with it over errors without it, from the same noisy counts.

    python benchmarks/priors.py toronto.parquet --bounds=-79.65,43.57,-79.11,43.87
    python benchmarks/priors.py new_york.parquet --bounds=-74.26,40.48,-73.70,40.92 --other uber.parquet

Half of the points, drawn by lot, are released. The priors are the other half (`half`), points of another source (`other`),
the map transposed (`transposed`) and an even map (`even`). `half, all` is trusted wholly, as if it were known to be right:
the gain of `half` over that of `half, all` says how much of the gain was found. A ratio is the geometric mean over
squares around records and areas anywhere, of the paper's relative error and of the RMSE.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

import htf
from htf.estimation.expectation import trust_shape
from htf.estimation.homogeneous import FROM_LEAVES, PRIOR_TRUST, estimate_regions
from htf.estimation.prior import Prior
from htf.frame.domain import FloatArray
from squares import dense, errors, squares  # type: ignore[import-not-found]


def read(path: Path, names: Sequence[str]) -> tuple[FloatArray, FloatArray]:
    table = pq.read_table(path, columns=list(names))
    x, y = (table[name].to_numpy().astype(np.float64) for name in names)
    return x, y


def with_priors(release: htf.Release, priors: Sequence[Prior], wholly: bool) -> htf.Release:
    """The same measurements, estimated with priors. That costs nothing."""
    trust = np.ones(trust_shape(release.domain.shape, len(priors))) if wholly else None
    made = estimate_regions(
        release.tree, release.measurements.tree_counts(), priors, 1, FROM_LEAVES, trust
    )
    facts = {**release.facts, PRIOR_TRUST: made.trust.tolist()}
    estimates = made.estimates[release.leaves]
    return replace(release, priors=tuple(priors), facts=facts, estimates=estimates)


def compare(
    points: tuple[FloatArray, FloatArray],
    other: tuple[FloatArray, FloatArray] | None,
    domain: htf.Domain,
    epsilon: str,
    runs: int,
) -> dict[str, list[float]]:
    """The ratio of each prior in each run, and the trust in it last."""
    ratios: dict[str, list[float]] = {}
    for run in range(runs):
        generator = np.random.default_rng(run)
        mine = generator.integers(0, 2, len(points[0])) == 0
        matrix, rest = (
            htf.read_points([points[0][some], points[1][some]], domain) for some in (mine, ~mine)
        )
        counts, half = dense(matrix), dense(rest)
        maps = {"half": half, "transposed": half.T, "even": np.ones_like(half)}
        if other is not None:
            maps["other"] = dense(htf.read_points(list(other), domain))
        boxes = squares(counts, generator)
        plain = htf.publish(matrix, epsilon, noise=f"seeded:{run}")
        before = errors(plain, counts, boxes)
        for name, weights in maps.items():
            prior = Prior.of(weights, domain, name, "0" * 64)
            for wholly in (False, True) if name == "half" else (False,):
                after = errors(with_priors(plain, [prior], wholly), counts, boxes)
                ratio = float(np.exp(np.mean(np.log(after / before))))
                ratios.setdefault(name + ", all" * wholly, []).append(ratio)
    return ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("points", type=Path)
    parser.add_argument("--bounds", required=True, help="W,S,E,N")
    parser.add_argument("--columns", default="lon,lat")
    parser.add_argument(
        "--other", type=Path, help="points of another source, for the prior `other`"
    )
    parser.add_argument("--cells", default="256,1024")
    parser.add_argument("--epsilons", default="0.1,1")
    parser.add_argument("--runs", type=int, default=2)
    given = parser.parse_args()
    names = given.columns.split(",")
    points = read(given.points, names)
    other = None if given.other is None else read(given.other, names)
    west, south, east, north = (float(edge) for edge in given.bounds.split(","))
    print(
        "| map | cells | epsilon | prior | with over without |\n| --- | ---: | ---: | --- | ---: |"
    )
    for cells in given.cells.split(","):
        domain = htf.Domain.from_bounds(west, south, east, north, cells=int(cells))
        for epsilon in given.epsilons.split(","):
            for name, found in compare(points, other, domain, epsilon, given.runs).items():
                mean = np.exp(np.mean(np.log(found)))
                span = f"{min(found):.2f} to {max(found):.2f}"
                row = f"{given.points.stem} | {cells} | {epsilon} | {name} | {mean:.3f} ({span})"
                print(f"| {row} |", flush=True)


if __name__ == "__main__":
    main()
