"""What each part of the default mechanism is worth: its error without the part, over its error with it.

    python benchmarks/ablation.py [--runs 5] [--set SET] ... [--points FILE --bounds W,S,E,N] ...
    python benchmarks/ablation.py --leave-one-out ...

Geometric means over the data sets, epsilon 0.1, 0.3 and 1, and the workloads, with queries shared and noise seeded as
in `htf evaluate`. Without arguments: the made-up city and three of the paper's Gaussian sets. Above 1, the part helps.
The second figure is a standard error, from the scatter between runs.

With --leave-one-out: whether the constants are tuned to the data sets. Each set is left out in turn; of some settings,
that which does best on the others is taken, and its error on the set left out compared with that of the defaults.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import product
from typing import Any
from unittest import mock

import numpy as np

import htf.estimation.homogeneous as estimation
import htf.mechanisms.htf as growth
from htf.estimation import expectation, interpolation
from htf.estimation.least_squares import LEAST_SQUARES, least_squares, nonnegative_least_squares
from htf.forecasts.places import DataSet
from htf.frame.domain import Domain
from htf_bench.datasets import built_in_sets, open_points
from htf_bench.specs import read_spec
from htf_bench.trials import Bench, Trial, run_trial
from htf_bench.workloads import read_workload

AREAS = ("random", "2%", "6%", "10%")
PLACES = ("places-2", "places-4", "places-8", "places-16", "places-32", "places-64")
COLUMNS = {
    "MRE, areas": ("MRE", AREAS),
    "RMSE, areas": ("RMSE", AREAS),
    "MRE, places": ("MRE", PLACES),
    "MRE-0.1%, places": ("MRE-0.1%", PLACES),
}
EPSILONS = ("0.1", "0.3", "1")
DEFAULT_SETS = ("city", "gaussian-20-1", "gaussian-50-1", "gaussian-100-1")
Patches = list[tuple[Any, str, Any]]


def estimate_by(inference: Callable[..., Any]) -> Patches:
    """Other estimates of the leaves, under another name: so they are not shared out inside leaves."""

    def estimate(tree: Any, counts: Any, *_: Any) -> estimation.Estimated:
        estimates, variances = inference(tree, counts)
        return estimation.Estimated(estimates, variances, np.zeros((0, 0, 0)))

    return [(growth, "estimate_regions", estimate), (growth, "FROM_LEAVES", LEAST_SQUARES)]


VARIANTS: dict[str, tuple[str, Patches]] = {
    "leaves are even inside, not interpolated": ("htf", [(interpolation, "LEAST_MOVED", np.inf)]),
    "halves are expected to be equal, whatever lies beside them": (
        "htf",
        [(expectation, "PULL", 0.0), (interpolation, "PULL", 0.0)],
    ),
    "no box is called empty": ("htf", [(estimation, "COARSE", 2.0)]),
    "all boxes may be called empty": ("htf", [(estimation, "COARSE", 0.0)]),
    "learnt in one pass, not two": ("htf", [(estimation, "PASSES", 1)]),
    "one spread for boxes of all sizes": ("htf", [(expectation, "TURNS_OF_A_LEVEL", 1000)]),
    "nothing learnt: non-negative least squares": ("htf", estimate_by(nonnegative_least_squares)),
    "nothing learnt: least squares": ("htf", estimate_by(least_squares)),
    "even boxes are cut like others": ("htf", [(growth, "MOST_EVEN", 1.0)]),
    "nothing is kept for the last round": ("htf:last_share=0", []),
    "twice as much is kept for the last round": ("htf:last_share=0.4", []),
    "four halvings in the last round": ("htf", [(growth, "LAST_HALVINGS", 4)]),
    "the same budget in every round": ("htf:growth=1", []),
    "half the pieces in a round": ("htf:halvings=3", []),
    "twice the pieces in a round": ("htf:halvings=5", []),
    "cut at half as many records": ("htf:leaf_signal=1.5", []),
    "cut at twice as many records": ("htf:leaf_signal=6", []),
}

SETTINGS = [
    f"htf:leaf_signal={signal}:halvings={halvings}:growth={growth}"
    for signal, halvings, growth in product((2, 3, 4.5), (3, 4, 5), (1.3, 1.5))
]


@contextmanager
def patched(patches: Patches) -> Iterator[None]:
    with ExitStack() as stack:
        for place, name, value in patches:
            stack.enter_context(mock.patch.object(place, name, value))
        yield


def errors(
    bench: Bench, sets: list[DataSet], runs: int, text: str, patches: Patches
) -> np.ndarray[Any, Any]:
    """Mean log errors by set, epsilon, run and column."""
    found = np.zeros((len(sets), len(EPSILONS), runs, len(COLUMNS)))
    with patched(patches):
        for i, data_set in enumerate(sets):
            for run in range(runs):
                for j, epsilon in enumerate(EPSILONS):
                    outcome = run_trial(bench, Trial(data_set, read_spec(text), epsilon, run))
                    if outcome.failure:
                        raise SystemExit(outcome.failure)
                    values = {(w, m): value for w, m, value in outcome.values}
                    found[i, j, run] = [
                        np.mean(np.log([values[w, metric] for w in workloads]))
                        for metric, workloads in COLUMNS.values()
                    ]
    return found


def show(label: str, found: np.ndarray[Any, Any], reference: np.ndarray[Any, Any]) -> None:
    by_run = (found - reference).mean(axis=(0, 1))
    cells = []
    for column in by_run.T:
        spread = np.std(column, ddof=1) / np.sqrt(len(column)) if len(column) > 1 else np.nan
        cells.append(f"{np.exp(column.mean()):.2f} ± {spread:.2f}")
    print(f"| {label} | {' | '.join(cells)} |", flush=True)


def remove_parts(bench: Bench, sets: list[DataSet], runs: int) -> None:
    print(f"| without | {' | '.join(COLUMNS)} |")
    print(f"| --- |{' ---: |' * len(COLUMNS)}")
    reference = errors(bench, sets, runs, "htf", [])
    for label, (text, patches) in VARIANTS.items():
        show(label, errors(bench, sets, runs, text, patches), reference)


def leave_one_out(bench: Bench, sets: list[DataSet], runs: int) -> None:
    """All columns count alike."""
    print("| left out | chosen on the others | its error over the default's | best there |")
    print("| --- | --- | ---: | ---: |")
    default = errors(bench, sets, runs, "htf", []).mean(axis=(1, 2, 3))
    tried = [errors(bench, sets, runs, text, []).mean(axis=(1, 2, 3)) for text in SETTINGS]
    differences = np.array(tried) - default  # setting, set
    for number, data_set in enumerate(sets):
        chosen = int(np.argmin(np.delete(differences, number, axis=1).mean(axis=1)))
        label = SETTINGS[chosen].removeprefix("htf:").replace(":", ", ")
        here, best = np.exp(differences[chosen, number]), np.exp(differences[:, number].min())
        print(f"| {data_set.name} | {label} | {here:.3f} | {best:.3f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--queries", type=int, default=2000)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--points", action="append", default=[])
    parser.add_argument("--bounds", action="append", default=[])
    parser.add_argument("--leave-one-out", action="store_true")
    given = parser.parse_args()
    names = given.set or ([] if given.points else DEFAULT_SETS)
    sets = [built_in_sets()[name] for name in names]
    for path, bounds in zip(given.points, given.bounds, strict=True):
        west, south, east, north = map(float, bounds.split(","))
        domain = Domain.from_bounds(west, south, east, north, cells=1024)
        sets.append(open_points(path, ("lon", "lat"), domain))
    workloads = tuple(read_workload(text) for text in (*AREAS, *PLACES))
    task = leave_one_out if given.leave_one_out else remove_parts
    task(Bench(workloads, given.queries, seed=1), sets, given.runs)


if __name__ == "__main__":
    main()
