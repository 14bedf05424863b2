"""`htf evaluate`: compare mechanisms on exact data. For researchers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from htf.cli.declared import option_of
from htf.cli.experiments import (
    MOST_QUERIES,
    MOST_RUNS,
    check_results_folder,
    draw_all,
    mark_as_not_private,
    open_data,
    run_trials,
    show_failures,
    write_reports,
)
from htf.cli.options import folder_option, jobs_option, overwrite_folder_option, seed_option
from htf.cli.points import MapOptions
from htf.cli.screen import console, show_table
from htf.cli.types import WholeNumber

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from htf.evaluation.results import Results
    from htf.evaluation.trials import Bench, Plan


@click.command()
@click.argument("points")
@option_of(MapOptions, "x_column", default="lon", show_default=True, help="Column of x.")
@option_of(MapOptions, "y_column", default="lat", show_default=True, help="Column of y.")
@option_of(MapOptions, "bounds", help="Bounds of the map.")
@option_of(MapOptions, "around")
@option_of(MapOptions, "cells", default=None, help="Cells of the grid per side.  [default: 1024]")
@click.option(
    "--mechanisms",
    default="all",
    show_default=True,
    metavar="NAME:PARAMETER=VALUE:…,…",
    help="See `htf mechanisms`. `all` means every one, trees at several heights.",
)
@click.option(
    "--epsilons", default="0.1,0.3,0.5", show_default=True, help="Epsilons, separated by commas."
)
@click.option(
    "--workloads",
    default="random,2%,6%,10%",
    show_default=True,
    help="Separated by commas: random, P%, data-P% (squares around records), file:boxes.csv.",
)
@click.option(
    "--queries",
    default=2000,
    show_default=True,
    type=WholeNumber(1, MOST_QUERIES),
    help="Boxes per workload.",
)
@click.option(
    "--runs",
    default=10,
    show_default=True,
    type=WholeNumber(1, MOST_RUNS),
    help="Releases per mechanism and epsilon.",
)
@seed_option
@jobs_option
@folder_option
@overwrite_folder_option
def evaluate(
    points: str,
    x_column: str,
    y_column: str,
    bounds: str | None,
    around: str | None,
    cells: str | None,
    mechanisms: str,
    epsilons: str,
    workloads: str,
    queries: int,
    runs: int,
    seed: int,
    jobs: int,
    folder: Path,
    overwrite: bool,
) -> None:
    """Compare mechanisms on exact data. The results are not for publication.

    POINTS is a CSV or Parquet file, a NumPy matrix of counts (counts.npy or sets.npz:KEY), or a
    made-up data set: city, gaussian-20-1, gaussian-20-2, gaussian-50-1, … gaussian-100-2.
    """
    from htf.evaluation.specs import read_specs
    from htf.evaluation.trials import Plan, plan_trials

    data_set = open_data(points, (x_column, y_column), bounds, around, cells)
    check_results_folder(folder, [points, *workloads.split(",")], overwrite)
    specs = read_specs(mechanisms, data_set.domain)
    chosen = _read_epsilons(epsilons)
    bench = _read_bench(workloads, queries, seed)
    bench.check(data_set)
    pairs = [(spec, epsilon) for spec in specs for epsilon in chosen]
    plan = Plan(bench, tuple(plan_trials(data_set, pairs, runs)))
    mark_as_not_private()
    results = run_trials(plan, folder, jobs)
    _show_summary(results, plan)
    draw_all(folder, _draw_figure(results, plan))
    write_reports(results, plan, folder)
    mark_as_not_private()


def _read_epsilons(text: str) -> list[str]:
    from htf.privacy.epsilon import Epsilon

    return list(dict.fromkeys(str(Epsilon.of(part.strip())) for part in text.split(",")))


def _read_bench(workloads: str, queries: int, seed: int) -> Bench:
    from htf.evaluation.trials import Bench
    from htf.evaluation.workloads import read_workload

    distinct = dict.fromkeys(read_workload(part.strip()) for part in workloads.split(","))
    return Bench(tuple(distinct), queries, seed)


def _show_summary(results: Results, plan: Plan) -> None:
    from htf.evaluation.summary import compare_all, contenders, show_value

    workloads = [workload.text for workload in plan.bench.workloads]
    entrants = contenders(dict.fromkeys(trial.spec for trial in plan.trials))
    headers = ("mechanism", *(f">{w}{' *' if w.startswith('data-') else ''}" for w in workloads))
    for data_set in dict.fromkeys(trial.data_set.name for trial in plan.trials):
        for epsilon in dict.fromkeys(trial.epsilon for trial in plan.trials):
            lines = compare_all(results, data_set, epsilon, workloads, entrants)
            rows = [(line.label, *map(show_value, line.values)) for line in lines]
            title = f"{data_set}, epsilon {epsilon}: mean relative error in %, ± standard deviation over runs"
            show_table(headers, rows, title)
    if any(workload.is_from_data for workload in plan.bench.workloads):
        console().print("* the boxes of this workload are themselves drawn from the sensitive data")
    show_failures(results)


def _draw_figure(results: Results, plan: Plan) -> Iterator[tuple[str, Figure]]:
    """All mechanisms by workload, with one colour per epsilon."""
    from htf.evaluation.figures import draw_dots
    from htf.evaluation.summary import contenders

    name = plan.trials[0].data_set.name
    panels = [
        (f"{w.text}{' (drawn from the data)' if w.is_from_data else ''}", name, w.text)
        for w in plan.bench.workloads
    ]
    epsilons = list(dict.fromkeys(trial.epsilon for trial in plan.trials))
    entrants = contenders(dict.fromkeys(trial.spec for trial in plan.trials))
    yield (
        f"{name}.png",
        draw_dots(results, panels, epsilons, entrants, f"{name}: error by workload"),
    )
