"""What borrowing gains and loses in a series of zones, of trips between them, and of trips on a map by hours; all made up.

    python benchmarks/series_zones.py [--runs 20]

A month has the rates of the month before, each times the exponential of a normal number (deviation 0.1), and Poisson counts.
The last of six months is judged. In `half new` half of its cells swap their rates, in `all new` all do; in `collapsed` a
fifth of the records are left, in half of the cells nearly none. Ratios are of mean absolute errors, with what was borrowed
over without, from the same noise: a geometric mean over runs, and the worst run in brackets.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

import numpy as np

import htf
from htf.estimation.prior import Prior
from htf.frame.domain import FloatArray, IntArray
from htf.query.cells import cell_counts
from htf.series.borrowing import borrow

MONTHS, DRIFT = 6, 0.1
BREAKS = ("stable", "half new", "all new", "collapsed")
BOXES = 300  # of any size, on a map


@dataclass(frozen=True)
class Case:
    """What is published: its name, the map, the mean count of a cell, and how unevenly records lie (a shape of gamma)."""

    name: str
    domain: htf.Domain
    mean: float
    shape: float

    def rows(self, random: np.random.Generator) -> dict[str, FloatArray]:
        """The boxes that are judged, by what they are called."""
        shape = np.array(self.domain.shape)
        names = self.domain.axes[0].names
        if names is None:
            ends = np.sort(random.integers(0, shape + 1, (2 * BOXES, 2, len(shape))), axis=1)
            ends = np.sort(ends, axis=1)[np.all(ends[:, 0] < ends[:, 1], axis=1)]
            return {"boxes": ends.reshape(len(ends), -1).astype(np.float64)}
        return {
            level.name: _regions(names.edges(n), len(shape)) for n, level in enumerate(names.levels)
        }


def _regions(edges: IntArray, sides: int) -> FloatArray:
    places = np.indices([len(edges) - 1] * sides).reshape(sides, -1).T
    return np.hstack([edges[places], edges[places + 1]]).astype(np.float64)


def zones(number: int, groups: int) -> htf.Names:
    labels = {"zone": [f"z{n}" for n in range(number)]}
    labels["district"] = [f"d{n * groups // number}" for n in range(number)]
    return htf.Names.of(labels)


def named(number: int, groups: int, sides: int) -> htf.Domain:
    names = zones(number, groups)
    return htf.Domain(tuple(htf.Axis.named(one, names) for one in ("from", "to")[:sides]))


def months(case: Case, change: str, random: np.random.Generator) -> list[IntArray]:
    rates = random.gamma(case.shape, case.mean / case.shape, case.domain.shape)
    found = []
    for month in range(MONTHS):
        rates = rates * np.exp(random.normal(0, DRIFT, rates.shape))
        if month == MONTHS - 1 and change != "stable":
            rates = broken(rates.ravel(), change, random).reshape(rates.shape)
        found.append(random.poisson(rates))
    return found


def broken(rates: FloatArray, change: str, random: np.random.Generator) -> FloatArray:
    if change == "collapsed":
        return np.asarray(0.2 * rates * random.choice([0.1, 1.9], len(rates)))
    some = random.permutation(len(rates))[: len(rates) // (2 if change == "half new" else 1)]
    changed = rates.copy()
    changed[some] = rates[random.permutation(some)]
    return changed


def sums(counts: IntArray, rows: FloatArray) -> FloatArray:
    half = rows.shape[1] // 2
    boxes = [tuple(map(slice, one[:half], one[half:])) for one in rows.astype(int)]
    return np.array([counts[box].sum() for box in boxes], dtype=np.float64)


def run(case: Case, change: str, epsilon: str, seed: int) -> dict[str, tuple[float, float]]:
    """The logarithm of the ratio, and how many intervals hold the truth, by what is judged."""
    random, before = np.random.default_rng(seed), []
    exact = months(case, change, random)
    for month, counts in enumerate(exact):
        matrix = htf.FrequencyMatrix.from_dense(case.domain, counts)
        noise = f"seeded:{100 * seed + month}"
        before.append(htf.publish(matrix, epsilon, noise=noise))
    plain = before.pop()
    given: dict[str, Any] = {}
    if case.domain.axes[0].names is None:  # as `Series.add` does it
        cells = [cell_counts(one) for one in before]
        given["prior"] = [
            Prior.of(one, case.domain, "earlier", "0" * 64)
            for one in (cells[-1], np.mean(cells, axis=0))
        ]
    made = borrow(htf.publish(matrix, epsilon, noise=noise, **given), before)
    found = {}
    for name, rows in case.rows(random).items():
        true, answer = sums(exact[-1], rows), made.count(rows)
        errors = [np.abs(one.count - true).mean() for one in (answer, plain.count(rows))]
        held = np.mean((answer.low <= true) & (true <= answer.high))
        found[name] = float(np.log(errors[0] / errors[1])), float(held)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--epsilons", default="0.05,0.5")
    given = parser.parse_args()
    steps = [
        htf.Axis(one, 0, n, n)
        for one, n in zip(("x", "y", "dest_x", "dest_y", "hour"), (8, 8, 8, 8, 4), strict=True)
    ]
    cases = [
        Case("8 zones", named(8, 2, 1), 200, 0.6),
        Case("60 zones", named(60, 6, 1), 200, 0.6),
        Case("600 zones", named(600, 20, 1), 100, 0.6),
        Case("trips between 30 zones", named(30, 5, 2), 10, 0.25),
        Case("trips on a map by hours", htf.Domain(tuple(steps)), 2, 0.05),
    ]
    print("| what | ε | judged |", " | ".join(BREAKS), "| counts held |")
    print("| --- | ---: | --- |", " ---: |" * (len(BREAKS) + 1))
    for case in cases:
        for epsilon in given.epsilons.split(","):
            by_change = [
                [run(case, change, epsilon, seed) for seed in range(given.runs)]
                for change in BREAKS
            ]
            for judged in by_change[0][0]:
                logs = [np.array([one[judged][0] for one in runs]) for runs in by_change]
                told = [f"{np.exp(one.mean()):.2f} ({np.exp(one.max()):.2f})" for one in logs]
                held = 100 * np.mean([one[judged][1] for runs in by_change for one in runs])
                print(
                    f"| {case.name} | {epsilon} | {judged} |",
                    " | ".join(told),
                    f"| {held:.1f} % |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
