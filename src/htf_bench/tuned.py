"""Rivals at the setting that did best in hindsight, and mechanisms compared with them.

A rival whose constants suit other data than these is easy to beat. So each rival runs at many settings, and for
every data set, epsilon, workload and metric the one with the least mean error counts. It is picked with the truth,
which no publisher has, and from the very runs that it is then judged by: both favour the rivals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from htf.errors import InputError
from htf.files import write_text
from htf.forecasts.accuracy import show_value
from htf.frame.domain import Domain, FloatArray
from htf.frame.grids import MOST_LEAVES
from htf_bench.judging import common_runs, ratio_interval
from htf_bench.mechanisms.quadtree import leaf_number
from htf_bench.metrics import MEANINGS, METRICS, UNITS
from htf_bench.results import MARKING, Results, write_marked
from htf_bench.specs import HEIGHT, BenchSpec, with_floors
from htf_bench.summary import FLOORS, Contender, table_of
from htf_bench.trials import Plan

AS_PUBLISHED, TUNED = "as-published", "tuned"
GRID_SIDES = tuple(2**power for power in range(3, 11))  # 8 to 1024 cells
# The published constants are 10, 5 and 0.5.
AG_C, AG_C2, AG_ALPHA = (0.625, 2.5, 10, 40), (1.25, 2.5, 5, 10, 20), (0.1, 0.25, 0.5)
THRESHOLDS = (-1000, -300, -100, -30, -10, 0, 10, 30, 100, 300, 1000)
FLOOR = "floors"


class Choice(NamedTuple):
    """A rival at its best setting: its errors by run, and the ratio of the judged mechanism's to them."""

    rival: str
    spec: BenchSpec
    errors: FloatArray
    ratio: float
    low: float  # of the ratio's 95 % interval
    high: float

    @property
    def mean(self) -> float:
        return float(self.errors.mean())

    @property
    def setting(self) -> str:
        """The parameters that are not as published."""
        if self.rival == FLOOR:
            return self.spec.mechanism
        texts = [f"{name}={value.removesuffix('.0')}" for name, value in self.spec.settings]
        return " ".join(texts) or AS_PUBLISHED


class Comparison(NamedTuple):
    """One mechanism against every rival, for one data set, epsilon, workload and metric."""

    data_set: str
    epsilon: str
    workload: str
    metric: str
    judged: BenchSpec
    errors: FloatArray
    choices: tuple[Choice, ...]

    @property
    def best(self) -> Choice:
        """The best of all rivals."""
        return min(self.choices, key=lambda choice: choice.mean)


def tuned_rivals(domain: Domain) -> list[Contender]:
    """Every rival with all of its settings on this map."""
    finest = max(domain.shape)
    constants = product(AG_ALPHA, AG_C, AG_C2)
    tried: dict[str, list[dict[str, object]]] = {
        "ug": [{}, *({"side": side} for side in GRID_SIDES if side <= finest)],
        "ag": [{"alpha": alpha, "c": c, "c2": c2} for alpha, c, c2 in constants],
        "privtree": [{"threshold": threshold} for threshold in THRESHOLDS],
        "quadtree": [{HEIGHT: height} for height in _quadtree_heights(domain)],
    }
    return [
        Contender(
            f"{name}, best setting", tuple(dict.fromkeys(BenchSpec.of(name, s) for s in all_))
        )
        for name, all_ in tried.items()
    ]


def floor_rival() -> Contender:
    """The floors: whoever is worse than they are is no rival."""
    return Contender(FLOOR, tuple(with_floors([])))


def judged_specs(specs: Sequence[BenchSpec], named: str) -> list[BenchSpec]:
    """Those to compare with the rivals: all that the user named but the floors."""
    judged = [spec for spec in specs if spec.mechanism not in FLOORS]
    if not judged:
        raise InputError(
            f"--mechanisms {TUNED} needs a mechanism to compare with the rivals: give htf,{TUNED}, "
            f"got {named!r}"
        )
    return judged


def compare_with_rivals(
    results: Results, plan: Plan, judged: Sequence[BenchSpec], rivals: Sequence[Contender]
) -> list[Comparison]:
    """One comparison for each mechanism, data set, epsilon, workload and metric with results."""
    data_sets = dict.fromkeys(trial.data_set.name for trial in plan.trials)
    epsilons = dict.fromkeys(trial.epsilon for trial in plan.trials)
    workloads = [workload.text for workload in plan.bench.workloads]
    found = []
    places = product(data_sets, epsilons, METRICS, workloads, judged)
    for data_set, epsilon, metric, workload, spec in places:
        errors = results.values(data_set, spec, epsilon, workload, metric)
        cell = data_set, epsilon, workload, metric
        choices = [_choose(results, cell, spec, rival) for rival in rivals]
        known = tuple(choice for choice in choices if choice is not None)
        if len(errors) and known:
            found.append(Comparison(*cell, spec, errors, known))
    return found


def _choose(
    results: Results, cell: tuple[str, str, str, str], judged: BenchSpec, rival: Contender
) -> Choice | None:
    """The best setting of a rival, by the mean over the runs."""
    data_set, epsilon, workload, metric = cell
    best = results.best(data_set, rival.specs, epsilon, workload, metric)
    if best is None:
        return None
    mine = results.by_run(data_set, judged, epsilon, workload, metric)
    other = results.by_run(data_set, best, epsilon, workload, metric)
    pairs = common_runs(mine, other)
    if pairs is None:
        return None
    errors = results.values(data_set, best, epsilon, workload, metric)
    return Choice(rival_name(rival), best, errors, *ratio_interval(*pairs))


def rival_name(rival: Contender) -> str:
    """The name of a rival without what is said about its settings."""
    return FLOOR if rival.label == FLOOR else rival.specs[0].mechanism


def _quadtree_heights(domain: Domain) -> list[int]:
    """From one cut of every axis to single cells, or to as many leaves as a quadtree may have."""
    deepest = max((cells - 1).bit_length() for cells in domain.shape)
    heights = range(1, deepest + 1)
    return [height for height in heights if leaf_number(domain, height) <= MOST_LEAVES] or [0]


# The page ---------------------------------------------------------------------------------------

HEADINGS = ("workload", "mechanism", "setting", ">error", ">ratio to it")
PAGE, TABLE = "rivals.md", "rivals.parquet"
PREFACE = """For researchers: how far each mechanism is from the best of its rivals, every rival at its best setting.

Each rival stands at the setting with the least mean error for that data set, epsilon, workload and metric, picked
with the truth. Nobody could pick it without the data, and the runs that pick it also judge it: both favour the rivals.
A ratio is the geometric mean, run by run, of the mechanism's error divided by that of the rival, with its 95 % interval
by Student's t. A ratio below 1 favours the mechanism. Errors are means ± standard deviations over the runs.
"""
Key = tuple[str, str, str]


def by_table(comparisons: Sequence[Comparison]) -> dict[Key, list[Comparison]]:
    """The rows of each table: those of one data set, epsilon and metric."""
    found: dict[Key, list[Comparison]] = {}
    for one in comparisons:
        found.setdefault((one.data_set, one.epsilon, one.metric), []).append(one)
    return found


def table_title(key: Key) -> str:
    data_set, epsilon, metric = key
    return f"{data_set}, epsilon {epsilon}: {metric} ({UNITS[metric]}), {MEANINGS[metric]}"


def table_rows(one: Comparison, mark: str = "") -> list[tuple[str, str, str, str, str]]:
    """The mechanism, and below it every rival at its best setting, the best of all first."""
    mine = (one.workload + mark, one.judged.label, "", show_value(one.errors), "")
    return [mine] + [
        (
            "",
            f"{choice.rival} (best)" if choice is one.best else choice.rival,
            choice.setting,
            show_value(choice.errors),
            show_ratio(choice),
        )
        for choice in sorted(one.choices, key=lambda choice: choice.mean)
    ]


def show_ratio(choice: Choice) -> str:
    """The ratio, and its interval where there is more than one run."""
    if math.isinf(choice.high):
        return f"{choice.ratio:.2f}"
    return f"{choice.ratio:.2f} ({choice.low:.2f} to {choice.high:.2f})"


def conclusions(comparisons: Sequence[Comparison]) -> list[str]:
    """One line for each mechanism and metric, over all data sets, epsilons and workloads."""
    groups: dict[tuple[str, str], list[Choice]] = {}
    for one in comparisons:
        groups.setdefault((one.judged.label, one.metric), []).append(one.best)
    return [
        f"{label}, {metric}: {math.exp(np.mean([math.log(c.ratio) for c in bests])):.2f} times the error of "
        f"the best rival (geometric mean of {len(bests)}); better beyond doubt in "
        f"{sum(c.high < 1 for c in bests)}, worse beyond doubt in {sum(c.low > 1 for c in bests)}."
        for (label, metric), bests in groups.items()
    ]


def write_rivals(comparisons: Sequence[Comparison], folder: Path, command: str) -> None:
    """The page with all tables, and a file with one row for each comparison and rival."""
    write_text(folder / PAGE, rivals_page(comparisons, command), overwrite=True)
    rows = [row for one in comparisons for row in _tidy(one)]
    write_marked(pa.Table.from_pylist(rows), folder / TABLE)


def rivals_page(comparisons: Sequence[Comparison], command: str) -> str:
    parts = ["# Against rivals at their best setting\n", PREFACE, f"**{MARKING}**\n"]
    parts.append(f"Made by `{command}`.\n")
    parts += [f"* {line}" for line in conclusions(comparisons)]
    for key, group in by_table(comparisons).items():
        rows = [row for one in group for row in table_rows(one)]
        parts.append(f"\n## {table_title(key)}\n\n{table_of(HEADINGS, rows)}")
    return "\n".join(parts) + "\n"


def _tidy(one: Comparison) -> list[dict[str, Any]]:
    best = one.best
    common = {
        "dataset": one.data_set,
        "epsilon": float(one.epsilon),
        "workload": one.workload,
        "metric": one.metric,
        "mechanism": one.judged.label,
        "error": float(one.errors.mean()),
    }
    return [
        {
            **common,
            "rival": choice.rival,
            "setting": choice.spec.label,
            "rival_error": choice.mean,
            "is_best": choice is best,
            "ratio": choice.ratio,
            "low": choice.low,
            "high": choice.high,
        }
        for choice in one.choices
    ]
