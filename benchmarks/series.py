"""What a release of a series gains by borrowing from earlier ones: its error over that of a release by itself, with the same
epsilon; and how often intervals of counts and of changes hold the truth.

    python benchmarks/series.py toronto.parquet --bounds=-79.65,43.57,-79.11,43.87 --time ts --period month --first 2019-01

`shuffled` moves and turns the map of every period, so that periods have nothing in common. `broken` does so with the last
one alone, and only that one is judged. In `collapsed` a fifth of the records are left in the second third of the periods,
and half of these lie as if the map were turned; then all is as before. In `replaced` the second half of the periods have
the map turned. A ratio is the geometric mean over squares around records and areas anywhere, of the paper's relative error
and of the RMSE, over the periods from the fourth on. `worst kind` is the largest mean of any kind of squares by either
measure, and `worst period` that of any period over all kinds.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

import htf
from htf.estimation.prior import Prior
from htf.frame.domain import FloatArray, IntArray
from htf.query.cells import cell_counts
from htf.series.borrowing import borrow, foreseeing
from htf.series.periods import Period
from squares import PLACES as SIDES  # type: ignore[import-not-found]
from squares import dense, errors, squares

FROM = 3  # periods before the first that is judged
BOXES = 600  # of any size, anywhere
PLACES = len(SIDES)  # kinds of squares around records; the others are anywhere


def next_period(period: Period) -> Period:
    """The one that begins when this one ends."""
    end = period.end
    names = {
        "day": f"{end:%Y-%m-%d}",
        "week": f"{end:%G-W%V}",
        "month": f"{end:%Y-%m}",
        "quarter": f"{end:%Y}-Q{(end.month + 2) // 3}",
        "year": f"{end:%Y}",
    }
    return Period.read(names[period.kind], period.kind)


def maps_of(given: argparse.Namespace, domain: htf.Domain) -> list[IntArray]:
    """The exact counts of each period."""
    period, found = Period.read(given.first, given.period), []
    for _ in range(given.periods):
        since, until = period.seconds
        matrix = htf.read_points(
            str(given.points),
            domain,
            ["lon", "lat"],
            time=given.time,
            since=since,
            until=until,
            allow_empty=True,
        )
        found.append(dense(matrix))
        period = next_period(period)
    return found


def shuffled(maps: Sequence[IntArray]) -> list[IntArray]:
    moves = [(len(one) // 3 * n, len(one) // 5 * n) for n, one in enumerate(maps)]
    return [
        np.roll(one if n % 2 else one.T, move, axis=(0, 1))
        for n, (one, move) in enumerate(zip(maps, moves, strict=True))
    ]


def broken(maps: Sequence[IntArray]) -> list[IntArray]:
    return [*maps[:-1], shuffled(maps)[-1]]


def collapsed(maps: Sequence[IntArray]) -> list[IntArray]:
    generator, third = np.random.default_rng(0), len(maps) // 3
    found = list(maps)
    for place in range(third, 2 * third):
        one = maps[place]
        mixed = (one + one[::-1, ::-1]).ravel() / (2 * one.sum())
        few = generator.multinomial(one.sum() // 5, mixed).reshape(one.shape)
        found[place] = few
    return found


def replaced(maps: Sequence[IntArray]) -> list[IntArray]:
    half = len(maps) // 2
    return [*maps[:half], *(one[::-1, ::-1] for one in maps[half:])]


def with_earlier(
    release: htf.Release,
    matrix: htf.FrequencyMatrix,
    epsilon: str,
    noise: str,
    before: list[htf.Release],
) -> htf.Release:
    """As `Series.add` makes it: earlier releases foresee where to cut, and are priors and a background."""
    if not before:
        return release
    counts = [cell_counts(one) for one in before]
    found = [counts[-1]] + ([np.mean(counts, axis=0)] if len(counts) > 1 else [])
    priors = [
        Prior.of(one, release.domain, str(n), "0" * 64) for n, one in enumerate(found) if one.any()
    ]
    recipe = htf.Recipe(source=matrix, domain=release.domain, prior=priors, epsilon=epsilon)
    recipe = replace(recipe, settings=foreseeing(recipe))
    return borrow(recipe.make(noise=noise), before)


def questions(counts: IntArray, generator: np.random.Generator) -> dict[str, IntArray]:
    """Squares around records and anywhere, and boxes of any size."""
    ends = np.sort(generator.integers(0, len(counts) + 1, (BOXES, 2, 2)), axis=1)
    ends = ends[np.all(ends[:, 0] < ends[:, 1], axis=1)]
    return {**squares(counts, generator), "random": np.hstack([ends[:, 0], ends[:, 1]])}


def true_counts(counts: IntArray, boxes: IntArray) -> IntArray:
    table = np.pad(counts, [(1, 0), (1, 0)]).cumsum(axis=0).cumsum(axis=1)
    x0, y0, x1, y1 = boxes.T
    return np.asarray(table[x1, y1] - table[x0, y1] - table[x1, y0] + table[x0, y0])


def run_series(
    maps: Sequence[IntArray], domain: htf.Domain, epsilon: str, seed: int
) -> tuple[FloatArray, list[float], list[float]]:
    """The logarithm of the ratio of every period, kind of squares and measure, and the shares of counts and changes inside
    their intervals."""
    before: list[htf.Release] = []
    ratios, held, changed = [], [], []
    for number, counts in enumerate(maps):
        matrix = htf.FrequencyMatrix.from_dense(domain, counts)
        noise = f"seeded:{1000 * seed + number}"
        plain = htf.publish(matrix, epsilon, noise=noise)
        made = with_earlier(plain, matrix, epsilon, noise, before)
        boxes = questions(counts, np.random.default_rng(number))
        ratios.append(np.log(errors(made, counts, boxes) / errors(plain, counts, boxes)))
        rows = np.concatenate([some[:100] for some in boxes.values()])
        edges = np.column_stack(
            [axis.from_cells(rows[:, n]) for n, axis in enumerate([*domain.axes] * 2)]
        )
        answers, true = made.count(edges), true_counts(counts, rows)
        held.append(float(np.mean((answers.low <= true) & (true <= answers.high))))
        if before:
            change = answers.minus(before[-1].count(edges))
            moved = true - true_counts(maps[number - 1], rows)
            changed.append(float(np.mean((change.low <= moved) & (moved <= change.high))))
        before.append(made)
    return np.array(ratios), held, changed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("points", type=Path)
    parser.add_argument("--bounds", required=True, help="W,S,E,N")
    parser.add_argument("--time", required=True)
    parser.add_argument("--period", default="month")
    parser.add_argument("--first", required=True, help="the first period")
    parser.add_argument("--periods", type=int, default=12)
    parser.add_argument("--cells", default="256")
    parser.add_argument("--epsilons", default="0.05,0.1,0.5,1")
    parser.add_argument("--runs", type=int, default=2)
    given = parser.parse_args()
    west, south, east, north = (float(edge) for edge in given.bounds.split(","))
    print(
        "| map | cells | epsilon | periods | places | areas | both | worst kind | worst period | counts held | changes held |\n"
        "| --- | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    )
    for cells in given.cells.split(","):
        domain = htf.Domain.from_bounds(west, south, east, north, cells=int(cells))
        maps = maps_of(given, domain)
        for epsilon in given.epsilons.split(","):
            for name, some in (
                ("as they are", maps),
                ("shuffled", shuffled(maps)),
                ("broken", broken(maps)),
                ("collapsed", collapsed(maps)),
                ("replaced", replaced(maps)),
            ):
                since = len(some) - 1 if name == "broken" else FROM
                runs = [run_series(some, domain, epsilon, seed) for seed in range(given.runs)]
                ratios = np.array([found[0][since:] for found in runs])
                kinds = np.exp(ratios.mean(axis=(0, 1)))
                places, areas = (
                    np.exp(np.log(some).mean()) for some in (kinds[:PLACES], kinds[PLACES:])
                )
                single = [
                    np.exp((run[:, :PLACES].mean() + run[:, PLACES:].mean()) / 2) for run in ratios
                ]
                both = f"{np.sqrt(places * areas):.2f} ({min(single):.2f} to {max(single):.2f})"
                worst_period = np.exp(ratios.mean(axis=(0, 2, 3))).max()
                held, changed = (np.mean([found[n] for found in runs]) for n in (1, 2))
                print(
                    f"| {given.points.stem} | {cells} | {epsilon} | {name} | {places:.2f} | {areas:.2f} | {both} | "
                    f"{kinds.max():.2f} | {worst_period:.2f} | "
                    f"{100 * held:.1f} % | {100 * changed:.1f} % |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
