"""What it costs to protect people: counts of people, and counts of records with a limit per person.

    python benchmarks/people.py                       # invented visits
    python benchmarks/people.py checkins.parquet --bounds W,S,E,N --user user_id --picture people.png

A file has columns lon and lat. Errors are mean relative errors in per cent, of records relative to at least 20, of
people relative to at least 20 records' worth of them. Coverage is the share of 95 % intervals that hold the truth.
Squares are drawn around records. Epsilons are for a person and include all that a release spends.

Records are judged against *all* records, kept or not. `bias` is the error of the exact counts of K records of each
person, scaled to the true total. `hindsight` is the error of a release of K records of each person that spends all of
epsilon on the map and is then scaled to the true total, which nobody knows; the best K is the best of those tried, in
the same runs. `auto` is what `htf release --max-records auto` does. All that is printed is computed from exact data.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from htf import (
    Domain,
    Epsilon,
    FrequencyMatrix,
    RecordsPerPerson,
    Release,
    best_max_records,
    measure_activity,
    publish,
    read_points,
)
from htf.forecasts.counting import ExactCounter
from htf.forecasts.workloads import Boxes, read_workload
from htf.frame.domain import FloatArray, IntArray
from htf.ingest.points import read_records_of_each
from htf.ingest.reading import Reading
from htf.privacy import protection as units
from htf.privacy.protection import MOST_RECORDS_OF_A_PERSON, SHARES_OF_A_PERSON
from htf.synthetic.visits import synthetic_visits

EPSILONS = ("0.5", "1", "2")
SIZES = ("0.01%", "0.1%", "1%", "5%")
QUERIES = 1000
KEPT = [digit * 10**power for power in range(4) for digit in (1, 2, 3, 5, 7)]
SHARES = (1, 4, 16, 64, 256, 1024, 4096)
ACTIVITY = Fraction(1, 10)  # of epsilon, as in `htf release`
MOST = 1000  # that auto looks for K among
SMOOTHING = 20  # records
NAME = "SHARES_OF_A_PERSON"  # in htf.privacy.protection, for which there is no option
MANY_SHARES = 2**20  # of a person, where the truth is computed


class Data:
    """Points of people on a map."""

    def __init__(self, source: Any, domain: Domain, user: str) -> None:
        self.source, self.domain, self.user = source, domain, user
        self.read_kept, self.read_people = cache(self._read_kept), cache(self._read_people)
        self.records = read_points(source, domain, ["lon", "lat"])
        self.total = int(self.records.exact_counts.sum())
        options = Reading(["lon", "lat"], user=user)
        self.people = read_records_of_each(source, domain, options, MOST_RECORDS_OF_A_PERSON)

    def _read_kept(self, most: int) -> FrequencyMatrix:
        return read_points(
            self.source, self.domain, ["lon", "lat"], user=self.user, max_records=most
        )

    def _read_people(self, shares: int = SHARES_OF_A_PERSON) -> FrequencyMatrix:
        with _shares(shares):
            return read_points(self.source, self.domain, ["lon", "lat"], user=self.user)


@contextmanager
def _shares(number: int) -> Iterator[None]:
    usual = vars(units)[NAME]
    setattr(units, NAME, number)
    try:
        yield
    finally:
        setattr(units, NAME, usual)


class Exam:
    """Squares of all sizes around records with their true counts, other squares in each run."""

    def __init__(
        self, data: Data, truth: FrequencyMatrix, runs: int, one: int, least: float
    ) -> None:
        """`one` is what a whole record or person has in the matrix; errors are relative to at least `least`."""
        self.domain, self.least, exact = data.domain, least, ExactCounter(truth)
        self.boxes: list[dict[str, Boxes]] = []
        self.truth: list[dict[str, FloatArray]] = []
        for run in range(runs):
            seeds = np.random.SeedSequence([run, 1])
            drawn = {
                size: read_workload(f"data-{size}").draw(data.records, QUERIES, seeds)
                for size in SIZES
            }
            self.boxes.append(drawn)
            self.truth.append({size: exact.count(boxes) / one for size, boxes in drawn.items()})

    def rows(self, run: int, size: str) -> FloatArray:
        boxes, axes = self.boxes[run][size], self.domain.axes
        edges = [
            axis.from_cells(side[:, number])
            for side in (boxes.low, boxes.high)
            for number, axis in enumerate(axes)
        ]
        return np.column_stack(edges)

    def error(self, run: int, size: str, counts: FloatArray) -> float:
        truth = self.truth[run][size]
        return float(100 * np.mean(np.abs(counts - truth) / np.maximum(truth, self.least)))

    def judge(self, releases: Sequence[Release]) -> Judged:
        """Errors and coverage of all sizes: means over runs, and the spread of errors."""
        errors, covered, widths = [], [], []
        for run, release in enumerate(releases):
            answers = {size: release.count(self.rows(run, size)) for size in SIZES}
            truth = self.truth[run]
            errors.append([self.error(run, size, answers[size].count) for size in SIZES])
            covered.append([np.mean((a.low <= truth[s]) & (truth[s] <= a.high)) for s, a in answers.items()])  # fmt: skip
            widths.append([np.median((a.high - np.maximum(a.low, 0)) / np.maximum(truth[s], self.least)) for s, a in answers.items()])  # fmt: skip
        return Judged(*(np.array(found) for found in (errors, covered, widths)))


class Judged(NamedTuple):
    """Run by run, for each size of squares."""

    errors: FloatArray
    covered: FloatArray
    widths: FloatArray  # of intervals, relative: the median

    def cells(self) -> list[str]:
        return [
            " / ".join(short(value) for value in self.errors.mean(axis=0)),
            " / ".join(f"{100 * value:.0f}" for value in self.covered.mean(axis=0)),
            " / ".join(f"{100 * value:.0f}" for value in self.widths.mean(axis=0)),
        ]


def release_people(data: Data, epsilon: str, runs: int, shares: int) -> list[Release]:
    matrix = data.read_people(shares)
    return [publish(matrix, epsilon, noise=f"seeded:{run}") for run in range(runs)]


def release_auto(data: Data, epsilon: str, runs: int, most: int | None = None) -> list[Release]:
    """As `htf release --max-records auto`, or with a number."""
    total, people, made = Epsilon.of(epsilon), RecordsPerPerson(data.people), []
    price = Epsilon(int(total.units * ACTIVITY))
    for run in range(runs):
        activity = measure_activity(people, price, noise=f"seeded:{1000 + run}")
        kept = most or best_max_records(activity, total - price, MOST)
        matrix, noise = data.read_kept(kept), f"seeded:{run}"
        made.append(publish(matrix, total, noise=noise, bought=(activity,)))
    return made


class Hindsight(NamedTuple):
    """One K: errors of 1 % squares, scaled to the true total."""

    bias: float
    error: dict[str, float]  # by epsilon


def sweep(data: Data, exam: Exam, runs: int) -> dict[int, Hindsight]:
    """Every K, up to one that keeps all."""
    found: dict[int, Hindsight] = {}
    for most in KEPT:
        kept = data.read_kept(most)
        number, exact = int(kept.exact_counts.sum()), ExactCounter(kept)
        factor = np.float64(data.total / number)
        scaled = [np.asarray(exact.count(exam.boxes[run]["1%"]) * factor) for run in range(runs)]
        bias = np.mean([exam.error(run, "1%", counts) for run, counts in enumerate(scaled)])
        errors = {}
        for epsilon in EPSILONS:
            each = []
            for run in range(runs):
                release = publish(kept, epsilon, noise=f"seeded:{run}")
                counts = release.count(exam.rows(run, "1%")).count * (data.total / number)
                each.append(exam.error(run, "1%", counts))
            errors[epsilon] = float(np.mean(each))
        found[most] = Hindsight(float(bias), errors)
        if number == data.total:
            break
    return found


def best(found: dict[int, Hindsight], epsilon: str) -> int:
    return min(found, key=lambda most: found[most].error[epsilon])


def show_table(headers: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    print(f"| {' | '.join(headers)} |\n|{' ---: |' * len(headers)}")
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |", flush=True)


def short(value: float) -> str:
    """Two digits, or whole numbers."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def show_people(data: Data, exam: Exam, runs: int) -> dict[str, float]:
    """Also the error of 1 % squares, by epsilon."""
    judged = {e: exam.judge(release_people(data, e, runs, SHARES_OF_A_PERSON)) for e in EPSILONS}
    print(f"\n### People: squares of {', '.join(SIZES)} of the map around records\n")
    headers = ["ε", "error, %", "covered, %", "width of intervals, %"]
    show_table(headers, [[epsilon, *found.cells()] for epsilon, found in judged.items()])
    return {epsilon: float(found.errors[:, 2].mean()) for epsilon, found in judged.items()}


def show_shares(data: Data, exam: Exam, runs: int) -> None:
    rows = []
    for shares in SHARES:
        judged = [exam.judge(release_people(data, epsilon, runs, shares)) for epsilon in EPSILONS]
        rows.append([shares, *(found.cells()[0] for found in judged)])
    print("\n### Shares of a person: errors of people\n")
    show_table(["shares", *(f"ε = {epsilon}" for epsilon in EPSILONS)], rows)


def show_sweep(data: Data, found: dict[int, Hindsight]) -> None:
    rows = []
    for most, its in found.items():
        cut = data.people[most:].sum() / data.people.sum()
        kept = data.read_kept(most).exact_counts.sum() / data.total
        errors = [short(its.error[epsilon]) for epsilon in EPSILONS]
        rows.append([f"{most:,}", f"{cut:.1%}", f"{kept:.0%}", short(its.bias), *errors])
    print("\n### Records, in hindsight: 1 % squares, scaled to the true total\n")
    headers = ["K", "people cut", "records kept", "bias"]
    show_table(headers + [f"error, ε = {epsilon}" for epsilon in EPSILONS], rows)


def show_auto(
    data: Data, exam: Exam, found: dict[int, Hindsight], runs: int
) -> dict[str, tuple[IntArray, float]]:
    """The numbers kept and the error of 1 % squares, by epsilon."""
    rows, chosen = [], {}
    for epsilon in EPSILONS:
        releases = release_auto(data, epsilon, runs)
        kept = np.array([release.protection.max_records for release in releases])
        totals = np.array([release.estimates.sum() for release in releases]) / data.total
        judged, most = exam.judge(releases), best(found, epsilon)
        error, least = float(judged.errors[:, 2].mean()), found[most].error[epsilon]
        chosen[epsilon] = kept, error
        rows.append([
            epsilon, f"{most} ({short(least)})", f"{kept.min()} to {kept.max()}", f"{short(error)} ({error / least:.2f})",
            f"{100 * np.mean(np.abs(totals - 1)):.1f}", *judged.cells(),
        ])  # fmt: skip
    print(f"\n### Records, auto: squares of {', '.join(SIZES)} of the map around records\n")
    headers = [
        "ε",
        "best K (error), hindsight",
        "K, auto",
        "error of 1 % squares (times hindsight)",
    ]
    headers += ["error of the total, %", "error, %", "covered, %", "width of intervals, %"]
    show_table(headers, rows)
    return chosen


def draw(
    found: dict[int, Hindsight],
    chosen: dict[str, tuple[IntArray, float]],
    people: dict[str, float],
    path: Path,
) -> None:
    import matplotlib as mpl  # noqa: PLC0415

    mpl.use("Agg")
    import matplotlib.pyplot as plt  # noqa: PLC0415

    numbers = list(found)
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), sharey=True, layout="constrained")
    for ax, epsilon in zip(axes, EPSILONS, strict=True):
        kept, error = chosen[epsilon]
        bias = [found[most].bias for most in numbers]
        hindsight = [found[most].error[epsilon] for most in numbers]
        ax.axvspan(kept.min(), kept.max(), color="#d8dde4", lw=0, label="K chosen by auto")
        ax.plot(numbers, bias, "--", color="#3b6fb6", label="records: bias")
        ax.plot(numbers, hindsight, "-", color="#222222", label="records, scaled in hindsight")
        ax.axhline(error, color="#c46a1b", label="records, auto")
        ax.axhline(people[epsilon], color="#2e8b57", ls=":", lw=2, label="people")
        ax.set(xscale="log", ylim=(0, 60), xlabel="K, records kept of each", title=f"ε = {epsilon}")
        ax.xaxis.set_major_formatter("{x:,.0f}")
    axes[0].set_ylabel("mean relative error, %")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=8.5)
    figure.savefig(path, dpi=100)


def read_data(given: argparse.Namespace) -> Data:
    if given.points is not None:
        west, south, east, north = map(float, given.bounds.split(","))
        domain = Domain.from_bounds(west, south, east, north, cells=given.cells)
        return Data(str(given.points), domain, given.user)
    made = synthetic_visits(given.visits)
    domain = Domain.from_bounds(*made.domain_bounds, cells=given.cells)
    return Data({"lon": made.x, "lat": made.y, "person": made.person}, domain, "person")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("points", nargs="?", type=Path)
    parser.add_argument("--bounds", default="")
    parser.add_argument("--user", default="user")
    parser.add_argument("--cells", type=int, default=1024)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--visits", type=int, default=150_000, help="without POINTS: invented ones")
    parser.add_argument("--shares", action="store_true", help="also try other numbers of shares")
    parser.add_argument("--picture", type=Path)
    given = parser.parse_args(arguments)
    started = time.perf_counter()
    data = read_data(given)
    number = int(data.people.sum())
    shares = np.cumsum(data.people) / number
    spread = {q: int(np.searchsorted(shares, q)) + 1 for q in (0.5, 0.9, 0.95, 0.99, 1 - 1e-12)}
    told = ", ".join(f"{q:.0%} have up to {n:,}" for q, n in spread.items())
    print(f"{data.total:,} records of {number:,} people: {told}")
    worth = SMOOTHING * number / data.total
    of_people = Exam(data, data.read_people(MANY_SHARES), given.runs, MANY_SHARES, worth)
    of_records = Exam(data, data.records, given.runs, 1, SMOOTHING)
    people = show_people(data, of_people, given.runs)
    if given.shares:
        show_shares(data, of_people, given.runs)
    found = sweep(data, of_records, given.runs)
    show_sweep(data, found)
    chosen = show_auto(data, of_records, found, given.runs)
    if given.picture is not None:
        draw(found, chosen, people, given.picture)
    print(f"\n{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
