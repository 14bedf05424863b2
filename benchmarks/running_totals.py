"""Running totals over many periods: the sum of separate counts, or one tree over time. From how many periods on does the tree pay?

    python benchmarks/running_totals.py -o docs/running-totals.png

Each record lies in one period. Counted one by one, every period has all of epsilon, and a running total over t periods has
the noise of t counts. A tree over time shares epsilon among its levels, and needs few counts for any span: `hb` has the
best number of branches, `privlet` a wavelet, `hdmm` is the matrix mechanism, all under pure epsilon. The error does not
depend on the data. Shown is the root of the mean square error over all running totals, and over all spans of periods.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import htf
from htf.files import write_whole
from htf.frame.domain import FloatArray
from htf.query.kernels import ESTIMATE

MECHANISMS = {"singular": "period by period", "hb": "hb", "privlet": "privlet", "hdmm": "hdmm"}
PERIODS = (7, 12, 24, 52, 104, 208, 365, 730)
RUNS = 40
SPANS = 2000


def errors(mechanism: str, periods: int, runs: int) -> FloatArray:
    """Root mean square errors at epsilon 1: of running totals, and of spans drawn at random."""
    domain = htf.Domain((htf.Axis("period", 0, periods, periods),))
    counts = np.full(periods, 1000)
    matrix, squares = htf.FrequencyMatrix.from_dense(domain, counts), np.zeros(2)
    spans = np.sort(np.random.default_rng(1).integers(0, periods + 1, (SPANS, 2)), axis=1)
    spans = spans[spans[:, 0] < spans[:, 1]]
    for run in range(runs):
        made = htf.publish(matrix, 1, mechanism, noise=f"seeded:{run}")
        edges = np.arange(periods + 1, dtype=np.float64)[:, None]
        found = made.derived.index.measure(edges[:-1], edges[1:])[:, ESTIMATE]
        error = np.concatenate([[0.0], np.cumsum(found - counts)])
        squares += np.mean(error[1:] ** 2), np.mean((error[spans[:, 1]] - error[spans[:, 0]]) ** 2)
    return np.sqrt(squares / runs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, help="picture to write")
    parser.add_argument("--runs", type=int, default=RUNS)
    given = parser.parse_args()
    found = {
        name: np.array([errors(name, periods, given.runs) for periods in PERIODS])
        for name in MECHANISMS
    }
    for place, what in enumerate(("running totals", "spans")):
        print(
            f"| {what}, periods | {' | '.join(map(str, PERIODS))} |\n| --- |{' ---: |' * len(PERIODS)}"
        )
        for name, rows in found.items():
            print(f"| {MECHANISMS[name]} | {' | '.join(f'{row[place]:.1f}' for row in rows)} |")
        print()
    if given.output is not None:
        draw(found, given.output)


def draw(found: dict[str, FloatArray], path: Path) -> None:
    figure = Figure(figsize=(9, 3.8))
    panels = figure.subplots(1, 2, sharey=True)
    for place, (panel, title) in enumerate(
        zip(panels, ("running totals", "spans of any length"), strict=True)
    ):
        for name, rows in found.items():
            panel.plot(PERIODS, rows[:, place], marker="o", markersize=3, label=MECHANISMS[name])
        panel.set(xscale="log", yscale="log", xlabel="periods", title=title)
        panel.grid(alpha=0.3, which="both")
    panels[0].set_ylabel("error at ε = 1, records (RMSE)")
    panels[1].legend()
    figure.tight_layout()
    write_whole(path, lambda new: figure.savefig(new, format="png", dpi=130), overwrite=True)


if __name__ == "__main__":
    main()
