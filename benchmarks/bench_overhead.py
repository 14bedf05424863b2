"""What the bench of mechanisms costs beside the mechanisms: queries, truth, bookkeeping.

    python benchmarks/bench_overhead.py

One mechanism, `htf-paper`, which is among the fastest, so that the share of the rest is at its
highest; the paper's four workloads of 2,000 boxes. What counts as overhead is all that is neither the release nor the
answering of the queries by it: drawing boxes, true counts, errors, seeds, keys, parts on disk, and
sending trials to processes. The limit is a fifth. Starting processes and loading the data happen once, and are
told apart.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np

from htf import Domain, FrequencyMatrix
from htf.forecasts.counting import ExactCounter
from htf.forecasts.places import City
from htf_bench.metrics import METRICS
from htf_bench.results import Store, read_results
from htf_bench.runner import run_plan, run_trials
from htf_bench.specs import BenchSpec
from htf_bench.trials import Bench, Outcome, Plan, Trial, plan_trials
from htf_bench.workloads import read_workload

WORKLOADS = ("random", "2%", "6%", "10%")
RUNS = 30
LIMIT = 0.2


def main() -> None:
    bench = Bench(tuple(read_workload(text) for text in WORKLOADS), 2000, seed=1)
    city = City("city", 3_500_000)
    trials = plan_trials(city, [(BenchSpec.of("htf-paper"), "0.1")], RUNS)
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        run_plan(Plan(bench, tuple(trials)), Path(folder), jobs=1)
        total = time.perf_counter() - started
    outcomes = list(run_trials(bench, trials, 1))[
        1:
    ]  # the first loads the data and the compiled loops
    releasing = sum(outcome.seconds for outcome in outcomes)
    answering = sum(outcome.answering_seconds for outcome in outcomes)
    inside = sum(outcome.total_seconds for outcome in outcomes)
    with tempfile.TemporaryDirectory() as folder:
        extra = keeping(bench, trials, Path(folder)) * len(outcomes) / len(trials)
    everything = inside + extra
    print(f"{len(outcomes)} trials of htf-paper, the city with 3,500,000 points on 1024 x 1024")
    print("| what | seconds | share |\n| --- | ---: | ---: |")
    print(f"| releases | {releasing:.2f} | {releasing / everything:.1%} |")
    print(f"| answering 4 x 2,000 boxes each | {answering:.2f} | {answering / everything:.1%} |")
    overhead = everything - releasing - answering
    print(f"| overhead (limit {LIMIT:.0%}) | {overhead:.2f} | {overhead / everything:.1%} |")
    print(f"\nThe whole command, with a new process and loading the data: {total:.1f} s")
    fine_grid()


def keeping(bench: Bench, trials: list[Trial], folder: Path) -> float:
    """Seconds of the parent process: keys, rows, parts, the final table."""
    values = tuple((w, metric, 1.0) for w in WORKLOADS for metric in METRICS)
    started = time.perf_counter()
    store = Store(folder)
    for trial in trials:
        store.add(bench, Outcome(trial, values))
        store.flush()  # after every trial, the worst case
    read_results(Plan(bench, tuple(trials)), store.read()).write(folder)
    return time.perf_counter() - started


def fine_grid() -> None:
    """True counts of 10,000 random boxes on a grid of a million cells a side."""
    generator = np.random.default_rng(1)
    domain = Domain.from_bounds(0, 0, 1, 1, 2**20)
    cells = (generator.normal(0.5, 0.1, (2, 1_000_000)).clip(0, 0.999) * 2**20).astype(np.int64)
    matrix = FrequencyMatrix.from_cells(domain, cells)
    boxes = read_workload("random").draw(matrix, 10_000, np.random.SeedSequence(1))
    started = time.perf_counter()
    counter = ExactCounter(matrix)
    built = time.perf_counter()
    counter.count(boxes)
    print("\n2**20 x 2**20 cells, 1,000,000 points, 10,000 random boxes: ", end="")
    print(f"{built - started:.2f} s to build, {time.perf_counter() - built:.2f} s to count")


if __name__ == "__main__":
    main()
