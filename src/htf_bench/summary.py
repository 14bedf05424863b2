"""Summarises results: means and spreads over the runs, trees at their best height."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from htf.files import write_text
from htf.forecasts.accuracy import show_value
from htf.frame.domain import FloatArray
from htf_bench.metrics import MEANINGS, METRICS, MRE, UNITS
from htf_bench.results import MARKING, Results
from htf_bench.specs import UNIFORM, ZERO, BenchSpec, label_of
from htf_bench.trials import Plan

FLOORS = (ZERO, UNIFORM)
AUDIENCE = "For researchers: the errors of every mechanism, by data set, epsilon and workload."


class Contender(NamedTuple):
    """One entrant of a comparison: a mechanism, or a tree at the best of several heights."""

    label: str
    specs: tuple[BenchSpec, ...]

    @property
    def is_floor(self) -> bool:
        return self.label in FLOORS


class Line(NamedTuple):
    """One contender's values over the workloads: a mean, a spread and the spec for each."""

    contender: Contender
    values: tuple[FloatArray, ...]  # by run, for each workload
    chosen: tuple[BenchSpec | None, ...]

    @property
    def label(self) -> str:
        """The label, with the best heights if there was a choice."""
        heights = [spec.height for spec in self.chosen if spec is not None]
        distinct = sorted({height for height in heights if height is not None})
        if len(self.contender.specs) == 1 or not distinct:
            return self.contender.label + (" (floor)" if self.contender.is_floor else "")
        return f"{self.contender.label} ({', '.join(map(str, distinct))})"

    @property
    def typical(self) -> float:
        """The geometric mean over the workloads, to sort by."""
        means = [found.mean() for found in self.values if len(found)]
        return math.exp(np.mean(np.log(np.maximum(means, 1e-12)))) if means else math.inf


def contenders(specs: Iterable[BenchSpec]) -> list[Contender]:
    """Specs of one ladder together, all others alone."""
    groups: dict[str, list[BenchSpec]] = {}
    for spec in specs:
        label = f"{spec.family}, best height" if spec.of_ladder else spec.label
        groups.setdefault(label, []).append(spec)
    return [Contender(label, tuple(group)) for label, group in groups.items()]


def compare_all(
    results: Results,
    data_set: str,
    epsilon: str,
    workloads: Sequence[str],
    entrants: Sequence[Contender],
    metric: str = MRE,
) -> list[Line]:
    """One line for each contender that has results, the best first."""
    lines = []
    for contender in entrants:
        chosen = tuple(
            results.best(data_set, contender.specs, epsilon, workload, metric)
            for workload in workloads
        )
        values = tuple(
            results.values(data_set, spec, epsilon, workload, metric)
            for spec, workload in zip(chosen, workloads, strict=True)
        )
        if any(len(found) for found in values):
            lines.append(Line(contender, values, chosen))
    return sorted(lines, key=lambda line: line.typical)


def median_seconds(results: Results) -> dict[str, float]:
    """The median time of a release for each mechanism and parameters, over all runs."""
    seconds: dict[tuple[str, str], list[float]] = {}
    for row in results.table.to_pylist():
        seconds.setdefault((row["mechanism"], row["parameters"]), []).append(row["seconds"])
    return {label_of(*key): float(np.median(times)) for key, times in seconds.items()}


def write_summary(
    results: Results, plan: Plan, folder: Path, command: str, entrants: Sequence[Contender]
) -> None:
    """All metrics as tables in `summary.md`, and what the folder holds in `README.md`."""
    parts = [f"# Results of the bench\n\n{AUDIENCE}\n\n**{MARKING}**\n"]
    parts += [f"* {metric}: {MEANINGS[metric]}, in {UNITS[metric]}" for metric in METRICS]
    workloads = [workload.text for workload in plan.bench.workloads]
    epsilons = list(dict.fromkeys(trial.epsilon for trial in plan.trials))
    for data_set in dict.fromkeys(trial.data_set.name for trial in plan.trials):
        for metric in METRICS:
            rows = [
                (epsilon, line.label, *map(show_value, line.values))
                for epsilon in epsilons
                for line in compare_all(results, data_set, epsilon, workloads, entrants, metric)
            ]
            if rows:
                table = table_of(("ε", "mechanism", *(f">{name}" for name in workloads)), rows)
                parts.append(f"\n## {data_set}: {metric} ({UNITS[metric]})\n\n{table}\n")
    write_text(folder / "summary.md", "\n".join(parts), overwrite=True)
    write_text(folder / "README.md", _readme(results, plan, command), overwrite=True)


def table_of(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of Markdown. The headings of numbers begin with >."""
    names = [name.removeprefix(">") for name in headings]
    lines = ["---:" if name.startswith(">") else "---" for name in headings]
    return "\n".join(f"| {' | '.join(row)} |" for row in (names, lines, *rows))


def _readme(results: Results, plan: Plan, command: str) -> str:
    bench = plan.bench
    from_data = [workload.text for workload in bench.workloads if workload.at_records]
    notes = (
        f"\nThe boxes of {', '.join(from_data)} were drawn from the data too." if from_data else ""
    )
    seconds = median_seconds(results)
    rows = [(label, f"{seconds[label]:.3f}") for label in sorted(seconds, key=lambda k: seconds[k])]
    return f"""# A bench of mechanisms

**{MARKING}**{notes}

Made by `{command}`, with {bench.queries} boxes per workload and seed {bench.seed}.

* `results.parquet`: one row for each data set, mechanism, epsilon, workload, run and metric; `failures.parquet`: trials
  without a result ({len(results.failures())}), and why.
* `summary.md`: means ± standard deviations over the runs. A tree whose height is the user's choice stands at
  the height that did best, which nobody could know without the data.
* `rivals.md`, `rivals.parquet`: with `--mechanisms tuned`, mechanisms against rivals at their best setting in hindsight.
* `parts/`: finished trials. Run the same command again to resume.

{table_of(("mechanism", ">median seconds of a release"), rows)}
"""
