"""How often the 95 % intervals of squares around places hold the truth, and among the busiest of them.

    python benchmarks/place_coverage.py [--runs 4] [--epsilons 0.05,0.1,0.5,1] [--points FILE --bounds W,S,E,N --name NAME] ...
    python benchmarks/place_coverage.py --points FILE --bounds W,S,E,N --user user_id        # counts of people
    python benchmarks/place_coverage.py ... --save before.npz;  python benchmarks/place_coverage.py ... --against before.npz

Places are cells that hold records: a café with a thousand check-ins is one of them, and so is a house with one. Squares
of 2 to 32 cells of 1024 (of 0.01 % of the map, for people) are drawn around records at random, and around places, where every
place counts once. The *busiest tenth* of those around places are the ones that truly hold most. An average over records
or places hides how they fare. `above` and `busiest above` are the shares of truths above the interval, of places and of
the busiest of them. Then come boxes anywhere.
`width` is the mean width of all intervals of squares around records (or of boxes anywhere), and with --against, in times
of the one before, for the same releases. Without --points, maps are made up: see MADE_UP.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from htf import Domain, FrequencyMatrix, publish, read_points
from htf.forecasts.counting import ExactCounter
from htf.forecasts.workloads import Boxes
from htf.frame.domain import FloatArray, IntArray
from htf.synthetic.city import synthetic_city

CELLS = 1024
SIDES = (2, 4, 8, 16, 32)
OF_PEOPLE = (10,)  # cells along a side of 0.01 % of the map
AREAS = (0.02, 0.06, 0.1)  # of the map's side
EACH = 800
PLACES = 2500  # at most
BUSIEST = 0.1
ENOUGH = 0.93
EPSILONS = "0.05,0.1,0.5,1"


class Seen(NamedTuple):
    """Intervals and truths of one kind of boxes in all runs, one row each."""

    low: FloatArray
    high: FloatArray
    truth: FloatArray
    busiest: FloatArray

    @property
    def held(self) -> FloatArray:
        return np.asarray((self.low <= self.truth) & (self.truth <= self.high), dtype=np.float64)

    def share(self, chosen: FloatArray) -> float:
        return float(chosen[self.busiest > 0].mean())


def clumped_city(places: int, records: int, tail: float, seed: int) -> FrequencyMatrix:
    """A city with few places: these lie about centres, and their records have a Pareto tail of that exponent."""
    random = np.random.default_rng(seed)
    centres = random.uniform(0.2, 0.8, (12, 2))
    spread = np.exp(random.uniform(np.log(0.01), np.log(0.15), 12))
    own = random.choice(12, places, p=random.dirichlet(np.ones(12)))
    at = centres[own] + random.normal(0, 1, (places, 2)) * spread[own, None]
    at = at[np.all((at > 0) & (at < 1), axis=1)]
    busy = random.pareto(tail, len(at)) + 1
    counts = 1 + random.multinomial(records - len(at), busy / busy.sum())
    points = np.repeat(at, counts, axis=0)
    return read_points((points[:, 0], points[:, 1]), _unit_square())


def _unit_square() -> Domain:
    return Domain.from_bounds(0, 0, 1, 1, CELLS, crs=None)


def made_up() -> dict[str, FrequencyMatrix]:
    city = synthetic_city(200_000)
    smooth = Domain.from_bounds(*city.domain_bounds, cells=CELLS)
    return {
        "made up, 3,000 places": clumped_city(3_000, 100_000, 1.2, 1),
        "made up, 800 places": clumped_city(800, 20_000, 1.0, 2),
        "made up, even city": read_points((city.x, city.y), smooth),
    }


def read_map(path: str, bounds: str, user: str | None) -> FrequencyMatrix:
    west, south, east, north = map(float, bounds.split(","))
    table = pq.read_table(path, columns=["lon", "lat", *([user] if user else [])])
    lon, lat = table["lon"].to_numpy(), table["lat"].to_numpy()
    inside = (lon >= west) & (lon < east) & (lat >= south) & (lat < north)
    domain = Domain.from_bounds(west, south, east, north, CELLS)
    return read_points(table.filter(pa.array(inside)), domain, ["lon", "lat"], user=user)


def around(cells: IntArray, width: int) -> Boxes:
    low = np.clip(cells - width // 2, 0, CELLS - width)
    return Boxes(low, low + width)


def boxes_of(
    matrix: FrequencyMatrix, sides: tuple[int, ...], random: np.random.Generator
) -> Iterator[tuple[str, str, Boxes]]:
    cells, counts = matrix.exact_coordinates.T.astype(np.int64), matrix.exact_counts
    for side in sides:
        drawn = random.choice(len(cells), EACH, p=counts / counts.sum())
        yield f"{side} cells", "records", around(cells[drawn], side)
        yield f"{side} cells", "places", around(random.permutation(cells)[:PLACES], side)
    for share in AREAS:
        width = round(share * CELLS)
        low = random.integers(0, CELLS - width + 1, (EACH, 2))
        yield f"{share:.0%} of the side", "anywhere", Boxes(low, low + width)


def look(
    matrix: FrequencyMatrix, epsilon: str, sides: tuple[int, ...], runs: int
) -> dict[tuple[str, str], Seen]:
    exact, found = ExactCounter(matrix), dict[tuple[str, str], list[Seen]]()
    x, y = matrix.domain.axes
    for run in range(runs):
        release = publish(matrix, epsilon, noise=f"seeded:{run}")
        each = release.derived.worth.each
        for size, kind, boxes in boxes_of(matrix, sides, np.random.default_rng(run)):
            (w, s), (e, n) = boxes.low.T, boxes.high.T
            edges = [x.from_cells(w), y.from_cells(s), x.from_cells(e), y.from_cells(n)]
            answers, truth = release.count(np.column_stack(edges)), exact.count(boxes) * each
            most = max(round(BUSIEST * len(truth)), 1)
            busiest = np.zeros(len(truth))
            busiest[np.argsort(-truth, kind="stable")[:most]] = 1
            found.setdefault((size, kind), []).append(
                Seen(answers.low, answers.high, np.asarray(truth, np.float64), busiest)
            )
    return {kind: Seen(*map(np.concatenate, zip(*some, strict=True))) for kind, some in found.items()}  # fmt: skip


def row_of(
    seen: dict[tuple[str, str], Seen], size: str, before: dict[tuple[str, str], FloatArray]
) -> list[float]:
    """By record, by place, of the busiest tenth, and that above; boxes anywhere have the first alone."""
    kind = "records" if (size, "records") in seen else "anywhere"
    first = seen[size, kind]
    row = [float(first.held.mean())]
    if kind == "records":
        places = seen[size, "places"]
        over = np.asarray(places.truth > places.high, dtype=np.float64)
        row += [float(places.held.mean()), float(over.mean())]
        row += [places.share(places.held), places.share(over)]
    else:
        row += [np.nan] * 4
    width = float(np.mean(first.high - first.low))
    if before:
        width /= float(before[size, kind])
    return [*row, width]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--epsilons", default=EPSILONS)
    for option in ("--points", "--bounds", "--name"):
        parser.add_argument(option, action="append", default=[])
    parser.add_argument("--user")
    parser.add_argument("--save")
    parser.add_argument("--against")
    given = parser.parse_args()
    files = zip(given.name, given.points, given.bounds, strict=True)
    maps = {name: read_map(path, bounds, given.user) for name, path, bounds in files} or made_up()
    sides = OF_PEOPLE if given.user else SIDES
    earlier = dict(np.load(given.against)) if given.against else {}
    widths: dict[str, float] = {}
    columns = ("by record", "by place", "above", "busiest tenth", "busiest above")
    every: dict[str, list[float]] = {column: [] for column in columns}
    print(f"| map, epsilon | square | {' | '.join(columns)} | width |")
    print("| --- | --- |" + " ---: |" * (len(columns) + 1))
    for name, matrix in maps.items():
        for epsilon in given.epsilons.split(","):
            seen = look(matrix, epsilon, sides, given.runs)
            label = f"{name}, {epsilon}"
            for (size, kind), some in seen.items():
                widths[f"{label}, {size}, {kind}"] = float(np.mean(some.high - some.low))
            before = {key: earlier[f"{label}, {key[0]}, {key[1]}"] for key in seen} if earlier else {}  # fmt: skip
            for size in dict.fromkeys(size for size, _ in seen):
                row = row_of(seen, size, before)
                for column, value in zip(every, row, strict=False):
                    every[column] += [value] if np.isfinite(value) else []
                shares = [f"{value:.1%}" if np.isfinite(value) else "" for value in row[:-1]]
                print(f"| {label} | {size} | {' | '.join(shares)} | {row[-1]:.3g} |", flush=True)
    for column, found in every.items():
        if "above" in column:
            continue
        few = sum(share < ENOUGH for share in found)
        print(f"\n{column}: {few} of {len(found)} below {ENOUGH:.0%}; least {min(found):.1%}, mean {np.mean(found):.1%}")  # fmt: skip
    if given.save:
        with open(given.save, "wb") as file:
            np.savez(file, **widths)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
