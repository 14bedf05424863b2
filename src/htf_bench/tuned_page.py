"""Tables of mechanisms against rivals at their best setting: for the screen, a page and a file."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from htf.files import write_text
from htf.forecasts.accuracy import show_value
from htf_bench.marking import MARKING
from htf_bench.metrics import MEANINGS, UNITS
from htf_bench.results import write_marked
from htf_bench.summary import table_of
from htf_bench.tuned import Choice, Comparison

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
