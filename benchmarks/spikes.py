"""Sharp spikes: does a release show a block of 4 x 4 cells that holds far more records than the land around it?

    python benchmarks/spikes.py [--points FILE --bounds W,S,E,N] [--even RECORDS] [--hill RECORDS] [--spikes 20]
                                [--epsilon 0.1] [--runs 20]

Blocks are told apart by how many standard deviations of one direct count with all of epsilon they hold: 10 to 15, 15 to 20,
20 to 30, 30 and more. For each kind: how many blocks there are, the share of their records that the release gives them,
and how often their interval holds the truth. Then the errors of squares around records and anywhere. Each for `htf` and for
`htf` that never looks inside regions of few records (`look_share=0`), and the ratios of the errors.

Without points it makes maps: records spread evenly, or over a hill, and in some blocks as many records as are 30 deviations.
What it prints about points is exact, so its output is not for publication.
"""

from __future__ import annotations

import argparse
import itertools
import math
from pathlib import Path

import numpy as np

import htf
from htf.frame.domain import FloatArray, IntArray
from squares import dense, errors, squares  # type: ignore[import-not-found]

CELLS, BLOCK = 1024, 4
KINDS = (10.0, 15.0, 20.0, 30.0, math.inf)  # deviations
LOOKS = {"with looks": 0.5, "without": 0.0}


def planted(shares: FloatArray, records: int, spikes: int, size: int) -> IntArray:
    """Records by these shares, and `spikes` blocks with `size` more: half of them in one cell, half all over the block."""
    generator = np.random.default_rng(5)
    counts = generator.multinomial(records, (shares / shares.sum()).ravel()).reshape(shares.shape)
    held = np.argwhere(shares >= shares.max() / 20) // BLOCK * BLOCK
    for number, (x, y) in enumerate(generator.choice(held, spikes, replace=False)):
        cells = generator.integers(0, BLOCK, (1 if number % 2 else size, 2)).T
        np.add.at(counts, (x + cells[0], y + cells[1]), size // cells.shape[1])
    return counts


def even(records: int, spikes: int, size: int) -> IntArray:
    return planted(np.ones((CELLS, CELLS)), records, spikes, size)


def hill(records: int, spikes: int, size: int) -> IntArray:
    slope = np.exp(-0.5 * ((np.arange(CELLS) - CELLS / 2) / (CELLS / 4)) ** 2)
    return planted(np.outer(slope, slope), records, spikes, size)


def measure(name: str, counts: IntArray, epsilon: float, runs: int) -> None:
    domain = htf.Domain.from_bounds(0, 0, CELLS, CELLS, cells=CELLS, crs=None)
    matrix = htf.FrequencyMatrix.from_dense(domain, counts)
    blocks = counts.reshape(CELLS // BLOCK, BLOCK, CELLS // BLOCK, BLOCK).sum(axis=(1, 3))
    deviation = math.sqrt(2) / epsilon
    place = np.argwhere(blocks >= KINDS[0] * deviation)
    true = blocks[tuple(place.T)]
    boxes = np.hstack([place * BLOCK, (place + 1) * BLOCK]).astype(float)
    asked = squares(counts, np.random.default_rng(1))
    mean = {}
    for label, share in LOOKS.items():
        got, held, wrong = [], [], []
        for run in range(runs):
            made = htf.make_mechanism("htf", look_share=share)
            release = htf.publish(matrix, epsilon, made, noise=f"seeded:{run + 1}")
            answers = release.count(boxes) if len(boxes) else None
            if answers is not None:
                got.append(answers.count / true)
                held.append((answers.low <= true) & (true <= answers.high))
            wrong.append(errors(release, counts, asked))
        mean[label] = np.mean(wrong, axis=0)
        cells = []
        for least, most in itertools.pairwise(KINDS):
            some = (true >= least * deviation) & (true < most * deviation)
            if some.any():
                share_got, covered = np.mean(got, axis=0)[some], np.mean(held, axis=0)[some]
                cells.append(
                    f"{least:g} to {most:g}: {some.sum()} blocks, {share_got.mean():.0%} of their records, "
                    f"{covered.mean():.0%} covered"
                )
        print(f"{name}, epsilon {epsilon:g}, {label}: {'; '.join(cells) or 'no such blocks'}")
    ratio = mean["with looks"] / mean["without"]
    around = np.array([kind.startswith("places") for kind in asked])
    means = [np.exp(np.log(ratio[kind]).mean(axis=0)) for kind in (around, ~around)]
    shown = [
        f"{kind} MRE {m[0]:.3f} RMSE {m[1]:.3f}"
        for kind, m in zip(("places", "areas"), means, strict=True)
    ]
    print(
        f"{name}, epsilon {epsilon:g}, errors with looks over errors without: {', '.join(shown)}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--points", type=Path)
    parser.add_argument("--bounds", help="W,S,E,N")
    parser.add_argument("--x", default="lon")
    parser.add_argument("--y", default="lat")
    parser.add_argument("--even", type=int, action="append", default=[])
    parser.add_argument("--hill", type=int, action="append", default=[])
    parser.add_argument("--spikes", type=int, default=20)
    parser.add_argument("--epsilon", type=float, default=0.1)
    parser.add_argument("--runs", type=int, default=20)
    chosen = parser.parse_args()
    size = math.ceil(30 * math.sqrt(2) / chosen.epsilon)
    maps = {}
    if chosen.points is not None:
        west, south, east, north = (float(edge) for edge in chosen.bounds.split(","))
        domain = htf.Domain.from_bounds(west, south, east, north, cells=CELLS)
        matrix = htf.read_points(chosen.points, domain, [chosen.x, chosen.y])
        maps[chosen.points.stem] = dense(matrix)
    maps |= {f"even, {number:,}": even(number, chosen.spikes, size) for number in chosen.even}
    maps |= {f"hill, {number:,}": hill(number, chosen.spikes, size) for number in chosen.hill}
    for name, counts in (maps or {"even, 130,000": even(130_000, chosen.spikes, size)}).items():
        measure(name, counts, chosen.epsilon, chosen.runs)


if __name__ == "__main__":
    main()
