"""What it costs to protect people instead of records, and how many records of each to keep.

    python benchmarks/people.py                       # invented visits
    python benchmarks/people.py checkins.parquet --bounds W,S,E,N --user user_id --time ts --picture people.png

A file has columns lon and lat. Errors are mean relative errors in per cent (of counts below 20, relative to 20), against the true
counts of all records, kept or not. Their parts: `bias` is the error of the exact counts of the kept records, `noise` how
far the release is from those; the whole is at most their sum. `scaled` is the whole for someone who knows the true total, and
multiplies all counts to reach it. Epsilons are for a person. All that is printed is computed from the exact data.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from htf import (
    Domain,
    FrequencyMatrix,
    RecordsPerPerson,
    Release,
    publish,
    read_points,
    suggest_max_records,
)
from htf.evaluation.counting import ExactCounter, answer_boxes
from htf.evaluation.metrics import MRE, measure_errors
from htf.evaluation.visits import synthetic_visits
from htf.evaluation.workloads import Boxes, read_workload
from htf.frame.domain import FloatArray, IntArray
from htf.ingest.points import read_records_per_person
from htf.ingest.reading import Reading
from htf.privacy.protection import MOST_RECORDS_OF_A_PERSON, ONCE_PER, Suggestion

EPSILONS = ("0.5", "1", "2")
WORKLOADS = {
    "data-1%": "squares of 1 % of the map, at records",
    "random": "boxes of any size, anywhere",
}
QUERIES = 2000
KEPT = [digit * 10**power for power in range(6) for digit in (1, 2, 3, 5, 7)]
PRICES = ("0.05", "0.1", "0.2")
QUANTILES = ("0.9", "0.95", "0.98")
USED = 3  # suggestions for each run that a release is made with
RANGE = 1000  # where the suggestion is looked for; the default of `htf release`
LEVEL_SHARE = Fraction(1, 10)  # of epsilon, for the total that counts are scaled to
LEVEL_FACTOR = 10  # times K: the records of each in that total


class Data:
    """Points of people on a map."""

    def __init__(self, source: Any, domain: Domain, user: str, time: str | None) -> None:
        self.source, self.domain, self.user, self.time = source, domain, user, time
        self.read, self.read_level = cache(self._read), cache(self._read_level)

    def _read(self, most: int, once_per: str | None = None) -> FrequencyMatrix:
        return read_points(
            self.source, self.domain, ["lon", "lat"],
            user=self.user, max_records=most, once_per=once_per, time=self.time,
        )  # fmt: skip

    def read_all(self, once_per: str | None) -> FrequencyMatrix:
        """What is to be estimated: all records, or all that are left where one of several counts."""
        if once_per is not None:
            return self.read(MOST_RECORDS_OF_A_PERSON, once_per)
        return read_points(self.source, self.domain, ["lon", "lat"])

    def _read_level(self, most: int) -> FrequencyMatrix:
        """A map of one cell: the total alone."""
        x, y = self.domain.axes
        whole = Domain.from_bounds(x.low, y.low, x.high, y.high, cells=1)
        return read_points(self.source, whole, ["lon", "lat"], user=self.user, max_records=most)

    def people(self, most: int, once_per: str | None = None) -> IntArray:
        reading = Reading(["lon", "lat"], user=self.user, time=self.time, once_per=once_per)
        return read_records_per_person(self.source, self.domain, reading, most)


class Errors(NamedTuple):
    """Means over runs, and the spread of the whole."""

    bias: float
    noise: float
    whole: float
    scaled: float
    least: float
    most: float


class Exam:
    """The boxes of one workload with their true counts, other boxes in each run."""

    def __init__(self, truth: FrequencyMatrix, workload: str, runs: int) -> None:
        kind, exact = read_workload(workload), ExactCounter(truth)
        self.total = int(truth.exact_counts.sum())
        self.boxes: list[Boxes] = [
            kind.draw(truth, QUERIES, np.random.SeedSequence([run, 1])) for run in range(runs)
        ]
        self.counts = [exact.count(boxes) for boxes in self.boxes]

    def error(self, run: int, answers: FloatArray) -> float:
        return measure_errors(self.counts[run], answers)[MRE]

    def judge(self, kept: FrequencyMatrix, releases: Sequence[Release]) -> Errors:
        exact, number = ExactCounter(kept), int(kept.exact_counts.sum())
        rows = []
        for run, release in enumerate(releases):
            truth, bounded = self.counts[run], exact.count(self.boxes[run])
            answers = answer_boxes(release, self.boxes[run])
            parts = bounded, truth + answers - bounded, answers, answers * self.total / number
            rows.append([self.error(run, np.asarray(part, dtype=float)) for part in parts])
        bias, noise, whole, scaled = np.mean(rows, axis=0).tolist()
        runs = [row[2] for row in rows]
        return Errors(bias, noise, whole, scaled, min(runs), max(runs))


def release_all(matrix: FrequencyMatrix, epsilon: str, runs: int) -> list[Release]:
    return [publish(matrix, epsilon, noise=f"seeded:{run}") for run in range(runs)]


def sweep(
    data: Data, exams: dict[str, Exam], epsilons: Sequence[str], once_per: str | None = None
) -> Iterator[tuple[int, dict[tuple[str, str], Errors]]]:
    """K, and (workload, epsilon) -> errors; up to a K that keeps all."""
    runs = len(next(iter(exams.values())).boxes)
    everything = data.read(MOST_RECORDS_OF_A_PERSON, once_per).exact_counts.sum()
    for most in KEPT:
        kept = data.read(most, once_per)
        found: dict[tuple[str, str], Errors] = {}
        for epsilon in epsilons:
            releases = release_all(kept, epsilon, runs)
            found |= {(name, epsilon): exam.judge(kept, releases) for name, exam in exams.items()}
        yield most, found
        if kept.exact_counts.sum() == everything:
            return


Sweep = dict[int, dict[tuple[str, str], Errors]]


def best(found: Sweep, workload: str, epsilon: str, scaled: bool = False) -> int:
    """K of the least error, in hindsight."""
    part = "scaled" if scaled else "whole"
    return min(found, key=lambda most: float(getattr(found[most][workload, epsilon], part)))


def show_table(headers: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    print(f"| {' | '.join(headers)} |\n|{' ---: |' * len(headers)}")
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |", flush=True)


def short(value: float) -> str:
    """Two digits, or whole numbers."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def show_sweep(data: Data, found: Sweep, exams: dict[str, Exam]) -> None:
    people = data.people(MOST_RECORDS_OF_A_PERSON)
    for workload, words in WORKLOADS.items():
        rows = []
        for most, errors in found.items():
            kept = data.read(most).exact_counts.sum() / exams[workload].total
            cut = people[most:].sum() / people.sum()
            row = [f"{most:,}", f"{cut:.1%}", f"{kept:.0%}", short(errors[workload, "1"].bias)]
            for epsilon in EPSILONS:
                its = errors[workload, epsilon]
                row += [short(its.noise), f"{short(its.whole)} ({short(its.least)} to {short(its.most)})", short(its.scaled)]  # fmt: skip
            rows.append(row)
        headers = ["K", "people cut", "records kept", "bias"]
        headers += [f"ε {eps}: {part}" for eps in EPSILONS for part in ("noise", "whole", "scaled")]
        print(f"\n### {words}\n")
        show_table(headers, rows)


def show_best(data: Data, found: Sweep, truth: FrequencyMatrix, exams: dict[str, Exam]) -> None:
    """The best K, beside what protects records only."""
    people = data.people(MOST_RECORDS_OF_A_PERSON)
    runs, rows = len(next(iter(exams.values())).boxes), []
    for epsilon in EPSILONS:
        plain = release_all(truth, epsilon, runs)
        for workload, words in WORKLOADS.items():
            row: list[object] = [epsilon, words]
            for scaled in (False, True):
                most = best(found, workload, epsilon, scaled)
                its = found[most][workload, epsilon]
                cut = people[most:].sum()
                error = short(its.scaled if scaled else its.whole)
                row += [f"{most:,}", f"{cut:,} ({cut / people.sum():.1%})", error]
            rows.append([*row, short(exams[workload].judge(truth, plain).whole)])
    headers = ["ε", "boxes", "best K", "people cut", "error"]
    headers += ["best K, scaled", "people cut", "error", "ε for a record"]
    print("\n### The best K in hindsight\n")
    show_table(headers, rows)


def show_once(data: Data, runs: int) -> None:
    """Another thing is counted, so the truth is another."""
    rows = []
    for once_per in ONCE_PER if data.time else ("all",):
        truth = data.read_all(once_per)
        exams = {"data-1%": Exam(truth, "data-1%", runs)}
        found = dict(sweep(data, exams, ("1",), once_per))
        people = data.people(MOST_RECORDS_OF_A_PERSON, once_per)
        most = best(found, "data-1%", "1")
        its, cut = found[most]["data-1%", "1"], people[most:].sum() / people.sum()
        kept = data.read(most, once_per).exact_counts.sum() / truth.exact_counts.sum()
        rows.append([once_per, f"{truth.exact_counts.sum():,}", most, f"{cut:.1%}", f"{kept:.0%}", short(its.bias), short(its.noise), short(its.whole)])  # fmt: skip
    print(f"\n### Once per …, ε 1, {WORKLOADS['data-1%']}\n")
    headers = ["once per", "records", "best K", "people cut", "kept", "bias", "noise", "error"]
    show_table(headers, rows)


def show_suggestions(data: Data, found: Sweep, exams: dict[str, Exam], draws: int) -> None:
    """What is drawn, and the error of releases that use it; all prices are part of their epsilon."""
    people = RecordsPerPerson(data.people(RANGE))
    rows = []
    asked = [(price, QUANTILES[0], False) for price in PRICES]
    asked += [(PRICES[1], quantile, False) for quantile in QUANTILES[1:]]
    for price, quantile, levelled in [*asked, (PRICES[0], QUANTILES[0], True)]:
        drawn = draw_suggestions(people, price, quantile, draws)
        low, middle, high = np.quantile([s.max_records for s in drawn], [0.05, 0.5, 0.95])
        row: list[object] = [price, quantile, f"{middle:.0f} ({low:.0f} to {high:.0f})"]
        row.append("yes" if levelled else "")
        for epsilon in EPSILONS:
            errors = use_suggestions(data, exams, epsilon, drawn, levelled)
            for workload, its in errors.items():
                least = found[best(found, workload, epsilon)][workload, epsilon].whole
                row.append(f"{short(its)} ({its / least:.2f})")
        rows.append(row)
    print(
        "\n### Suggested K, and the error with it (beside it: times that of the best K)\n\n"
        f"Scaled: to a total of {LEVEL_FACTOR} K records of each, for {LEVEL_SHARE} of ε.\n"
    )
    headers = ["price", "quantile", "K (9 in 10 draws)", "scaled"]
    show_table(headers + [f"ε {e}, {w}" for e in EPSILONS for w in exams], rows)


def draw_suggestions(
    people: RecordsPerPerson, price: str, quantile: str, draws: int
) -> list[Suggestion]:
    return [
        suggest_max_records(people, price, quantile=quantile, noise=f"seeded:{number}")
        for number in range(draws)
    ]


def use_suggestions(
    data: Data, exams: dict[str, Exam], epsilon: str, drawn: Sequence[Suggestion], levelled: bool
) -> dict[str, float]:
    """Workload -> mean error of releases, each with a suggestion of its own."""
    runs = len(next(iter(exams.values())).boxes)
    errors: dict[str, list[float]] = {workload: [] for workload in exams}
    for number, suggestion in enumerate(drawn[: USED * runs]):
        price = Fraction(epsilon) * (LEVEL_SHARE if levelled else 0)
        matrix, noise = data.read(suggestion.max_records), f"seeded:{number}"
        release = publish(matrix, Fraction(epsilon) - price, noise=noise, suggestion=suggestion)
        factor = 1.0
        if levelled:
            level = data.read_level(LEVEL_FACTOR * suggestion.max_records)
            total = publish(level, price, "uniform", noise=f"seeded:{number + 1000}")
            factor = max(total.estimates.sum() / max(release.estimates.sum(), 1), 1)
        for workload, exam in exams.items():
            run = number % runs
            answers = factor * answer_boxes(release, exam.boxes[run])
            errors[workload].append(exam.error(run, answers))
    return {workload: float(np.mean(its)) for workload, its in errors.items()}


def draw(found: Sweep, suggested: tuple[float, float], path: Path) -> None:
    import matplotlib as mpl  # noqa: PLC0415

    mpl.use("Agg")
    import matplotlib.pyplot as plt  # noqa: PLC0415

    workload, numbers = "data-1%", list(found)
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), sharey=True, layout="constrained")
    styles = {
        "bias": ("bias: records that were dropped", "#3b6fb6", "--"),
        "noise": ("noise", "#c46a1b", "--"),
        "whole": ("error", "#222222", "-"),
        "scaled": ("error, scaled to the true total", "#2e8b57", ":"),
    }
    for ax, epsilon in zip(axes, EPSILONS, strict=True):
        ax.axvspan(*suggested, color="#d8dde4", lw=0, label="suggested, in 9 of 10 draws")
        for part, (label, colour, line) in styles.items():
            values = [getattr(found[most][workload, epsilon], part) for most in numbers]
            ax.plot(numbers, values, line, color=colour, label=label)
        least = best(found, workload, epsilon)
        ax.plot(least, found[least][workload, epsilon].whole, "o", color="#222222", label="best K")
        ax.set(
            xscale="log", ylim=(0, 105), xlabel="K, records kept of each", title=f"ε = {epsilon}"
        )
        ax.xaxis.set_major_formatter("{x:,.0f}")
    axes[0].set_ylabel("mean relative error, %")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=8.5)
    figure.savefig(path, dpi=100)


def suggested_range(data: Data, draws: int) -> tuple[float, float]:
    people = RecordsPerPerson(data.people(RANGE))
    drawn = draw_suggestions(people, PRICES[1], QUANTILES[0], draws)
    low, high = np.quantile([s.max_records for s in drawn], [0.05, 0.95])
    return float(low), float(high)


def read_data(given: argparse.Namespace) -> Data:
    if given.points is not None:
        west, south, east, north = map(float, given.bounds.split(","))
        domain = Domain.from_bounds(west, south, east, north, cells=given.cells)
        return Data(str(given.points), domain, given.user, given.time)
    made = synthetic_visits(given.visits)
    domain = Domain.from_bounds(*made.domain_bounds, cells=given.cells)
    source = {"lon": made.x, "lat": made.y, "person": made.person, "time": made.time}
    return Data(source, domain, "person", "time")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("points", nargs="?", type=Path)
    parser.add_argument("--bounds", default="")
    parser.add_argument("--user", default="user")
    parser.add_argument("--time")
    parser.add_argument("--cells", type=int, default=1024)
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--draws", type=int, default=200, help="of suggestions")
    parser.add_argument("--visits", type=int, default=150_000, help="without POINTS: invented ones")
    parser.add_argument("--picture", type=Path)
    given = parser.parse_args(arguments)
    started = time.perf_counter()
    data = read_data(given)
    truth, people = data.read_all(None), data.people(MOST_RECORDS_OF_A_PERSON)
    shares = np.cumsum(people) / people.sum()
    spread = {q: int(np.searchsorted(shares, q)) + 1 for q in (0.5, 0.9, 0.95, 0.99, 1 - 1e-12)}
    told = ", ".join(f"{q:.0%} have up to {n:,}" for q, n in spread.items())
    print(f"{truth.exact_counts.sum():,} records of {people.sum():,} people: {told}")
    exams = {workload: Exam(truth, workload, given.runs) for workload in WORKLOADS}
    found = dict(sweep(data, exams, EPSILONS))
    show_sweep(data, found, exams)
    show_best(data, found, truth, exams)
    show_once(data, given.runs)
    show_suggestions(data, found, exams, given.draws)
    if given.picture is not None:
        draw(found, suggested_range(data, given.draws), given.picture)
    print(f"\n{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
