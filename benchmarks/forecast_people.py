"""How well forecasts of releases of people come out: held-back halves of real data.

    python benchmarks/forecast_people.py checkins.parquet --bounds W,S,E,N --user user_id

A file has columns lon and lat. People are split in two halves at random. Releases of one half are the truth. The
forecast knows of the other half, in turn: its release at the same epsilon (`release`); its number of people and
quantiles of records, with a plain release of its records (`plain`) or with its points (`points`) as stand-in. Errors
are medians of |answer - truth| in squares around records, against all records or people; ratios are forecast / real.
All that is printed is computed from the exact data.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from htf import (
    Domain,
    Epsilon,
    FrequencyMatrix,
    Recipe,
    RecordsPerPerson,
    Release,
    publish,
    read_points,
)
from htf.base.options import AUTO
from htf.curator.contributions import measure_activity
from htf.estimation.activity import best_max_records
from htf.forecasts.counting import ExactCounter, answer_boxes
from htf.forecasts.people import RecordsEach
from htf.forecasts.plan import Assumed, plan_of
from htf.forecasts.questions import OfWorkload
from htf.forecasts.simulation import look
from htf.forecasts.workloads import read_workload
from htf.frame.domain import FloatArray
from htf.privacy.protection import MOST_RECORDS_OF_A_PERSON, PEOPLE, RECORDS, price_of_map

WORKLOADS = ("data-0.01%", "data-0.1%", "data-1%", "data-5%")
EPSILONS = ("0.5", "1", "2")
QUANTILES = (0.5, 0.9, 0.99, 1.0)
SHARE = Fraction(1, 10)
RANGE = 1000
QUERIES = 1000
WAYS = ("release", "plain", "points")


@dataclass(frozen=True)
class Half:
    path: Path
    domain: Domain
    each: tuple[int, ...]  # records of each person inside the bounds
    seed: int  # other noise for each half

    def read(self, **options: Any) -> FrequencyMatrix:
        return _read(self.path, self.domain, tuple(options.items()))

    def release(self, count: str, epsilon: str, seed: int) -> Release:
        seed += 10_000 * self.seed
        noise, total = f"seeded:{seed}", Epsilon.of(epsilon)
        if count == PEOPLE:
            return publish(self.read(user="person", count=PEOPLE), total, noise=noise)
        people = RecordsPerPerson.from_records(np.array(self.each), MOST_RECORDS_OF_A_PERSON)
        part = Epsilon(int(total.units * SHARE))
        activity = measure_activity(people, part, noise=f"seeded:{seed + 5_000}")
        most = best_max_records(activity, price_of_map(total, activity), RANGE)
        matrix = self.read(user="person", max_records=most)
        return publish(matrix, total, noise=noise, bought=(activity,))


@lru_cache(maxsize=32)
def _read(path: Path, domain: Domain, options: tuple[tuple[str, Any], ...]) -> FrequencyMatrix:
    return read_points(path, domain, ["lon", "lat"], tell=lambda _: None, **dict(options))


def split(points: Path, edges: str, user: str, number: int, folder: Path) -> list[Half]:
    """Two halves of the people."""
    table = pq.read_table(points, columns=["lon", "lat", user])
    lon, lat = (table[name].to_numpy() for name in ("lon", "lat"))
    west, south, east, north = (float(edge) for edge in edges.split(","))
    domain = Domain.from_bounds(west, south, east, north, cells=1024)
    inside = (lon >= west) & (lon < east) & (lat >= south) & (lat < north)
    lon, lat = lon[inside], lat[inside]
    names, person = np.unique(table[user].to_numpy()[inside], return_inverse=True)
    side = np.random.default_rng(number).random(len(names)) < 0.5
    halves = []
    for place, mask in enumerate((side[person], ~side[person])):
        path = folder / f"half{place}.parquet"
        columns = {"lon": lon[mask], "lat": lat[mask], "person": person[mask]}
        pq.write_table(pa.table(columns), path)
        each = np.bincount(person[mask])
        halves.append(Half(path, domain, tuple(each[each > 0].tolist()), 2 * number + place))
    return halves


def real_errors(half: Half, count: str, epsilon: str, runs: int) -> FloatArray:
    """Medians of the errors, run by run."""
    truth = half.read()
    counted = half.read(user="person", count=PEOPLE) if count == PEOPLE else truth
    exact = ExactCounter(counted)
    rows = []
    for run in range(runs):
        release = half.release(count, epsilon, run)
        row = []
        for number, workload in enumerate(map(read_workload, WORKLOADS)):
            boxes = workload.draw(truth, QUERIES, np.random.SeedSequence([run, number]))
            right = exact.count(boxes) / counted.protection.shares
            row.append(np.median(np.abs(answer_boxes(release, boxes) - right)))
        rows.append(row)
    return np.array(rows)


def forecast(
    half: Half, way: str, count: str, epsilon: str, runs: int, past: int = 0
) -> FloatArray:
    """The forecast medians, from what is known of the other half. `past` is the number of its release."""
    people, each = len(half.each), _quantiles(half)
    unit: dict[str, Any] = {"count": PEOPLE} if count == PEOPLE else {"max_records": AUTO}
    recipe = Recipe(source=None, domain=half.domain, epsilon=epsilon, user="person", **unit)
    assumed = Assumed(people=people, records_per_person=each)
    if way == "points":
        assumed = replace(assumed, like=half.path)
    elif way == "plain":
        assumed = replace(assumed, like=publish(half.read(), epsilon, noise=f"seeded:{99 + past}"))
    else:
        assumed = Assumed(like=half.release(count, epsilon, 9_900 + past))
    kinds = tuple(OfWorkload.of(read_workload(text)) for text in WORKLOADS)
    plan = replace(plan_of(recipe, assumed, runs), kinds=kinds, queries=QUERIES)
    return np.array([area.errors for area in look(plan, plan.epsilon, runs).areas]).T


def _quantiles(half: Half) -> RecordsEach:
    found = np.quantile(half.each, QUANTILES, method="inverted_cdf")
    return RecordsEach(QUANTILES, tuple(int(number) for number in found))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("points", type=Path)
    parser.add_argument("--bounds", required=True, metavar="W,S,E,N")
    parser.add_argument("--user", required=True, metavar="COLUMN")
    parser.add_argument("--splits", type=int, default=1, help="each gives two held-back halves")
    parser.add_argument("--runs", type=int, default=8, help="simulated releases")
    parser.add_argument("--real-runs", type=int, default=30, help="releases of the held-back half")
    parser.add_argument(
        "--past", type=int, default=3, help="releases of the other half to learn from"
    )
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--counts", default=f"{PEOPLE},{RECORDS}")
    args = parser.parse_args()
    cells: dict[tuple[str, ...], list[tuple[float, float]]] = {}
    for number in range(args.splits):
        with TemporaryDirectory() as folder:
            halves = split(args.points, args.bounds, args.user, number, Path(folder))
            for count, epsilon, (other, held) in product(
                args.counts.split(","), EPSILONS, (halves, halves[::-1])
            ):
                real = real_errors(held, count, epsilon, args.real_runs).mean(axis=0)
                for way, past in product(args.ways.split(","), range(args.past)):
                    told = forecast(other, way, count, epsilon, args.runs, past).mean(axis=0)
                    print(
                        f"split {number} {count:7} {epsilon:3} {way:8}",
                        *_pairs(told, real),
                        flush=True,
                    )
                    for workload, *pair in zip(WORKLOADS, told, real, strict=True):
                        cells.setdefault((count, epsilon, way, workload), []).append((*pair,))
    print("\nforecast / real, the geometric mean over halves and past releases, and each of them")
    means = {cell: float(np.exp(np.mean(_logs(pairs)))) for cell, pairs in cells.items()}
    for cell, pairs in cells.items():
        each = " ".join(f"{ratio:.2f}" for ratio in np.exp(_logs(pairs)))
        print(*(f"{word:10}" for word in cell), f"{means[cell]:.2f}   ({each})")
    for count, way in product(args.counts.split(","), args.ways.split(",")):
        logs = [np.log(mean) for cell, mean in means.items() if cell[0] == count and cell[2] == way]
        worst = np.exp(max(logs, key=abs))
        inside = np.abs(np.exp(logs) - 1) <= 0.25
        single = np.concatenate(
            [_logs(pairs) for cell, pairs in cells.items() if cell[0] == count and cell[2] == way]
        )
        alone = np.mean(np.abs(np.exp(single) - 1) <= 0.25)
        print(
            f"{count:7} {way:8} mean ratio {np.exp(np.mean(logs)):.2f}, worst {worst:.2f}, within 25 %: {inside.sum()} of "
            f"{len(inside)} means, {alone:.0%} of single forecasts"
        )


def _logs(pairs: list[tuple[float, float]]) -> FloatArray:
    return np.array([np.log(told / real) for told, real in pairs])


def _pairs(told: FloatArray, real: FloatArray) -> list[str]:
    return [f"{a:.4g} / {b:.4g} = {a / b:.2f};" for a, b in zip(told, real, strict=True)]


if __name__ == "__main__":
    main()
