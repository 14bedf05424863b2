"""Commands of the researcher, who compares mechanisms on exact data: `htf evaluate`, `htf paper`."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from htf.cli.points import read_domain
from htf.cli.screen import console, described, say, show_table
from htf.cli.types import FileName, WholeNumber
from htf.errors import InputError, MissingExtraError
from htf.files import exists
from htf.query.texts import read_numbers

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from htf.evaluation.datasets import DataSet
    from htf.evaluation.results import Results
    from htf.evaluation.runner import Progress
    from htf.evaluation.trials import Bench, Plan

SECONDS_BETWEEN_LINES = 30.0
MOST_FAILURES_ON_SCREEN = 8
MOST_QUERIES, MOST_RUNS = (
    1_000_000,
    1000,
)  # a trial keeps its queries, and a plan its runs, in memory

jobs_option = click.option(
    "--jobs", default=2, show_default=True, type=WholeNumber(1, 64), help="Processes at once."
)
output_option = click.option(
    "-o",
    "--output",
    "folder",
    required=True,
    type=FileName(file_okay=False),
    help="Folder for the results; the same command again goes on where it stopped.",
)
overwrite_option = click.option(
    "--overwrite", is_flag=True, help="Take a folder that has other files, and replace files in it."
)
x_option = click.option("--x", "x_column", default="lon", show_default=True, help="Column of x.")
y_option = click.option("--y", "y_column", default="lat", show_default=True, help="Column of y.")
seed_option = click.option(
    "--seed", default=1, show_default=True, type=WholeNumber(min=0), help="Of queries and noise."
)


@click.command()
@click.argument("points")
@x_option
@y_option
@click.option("--bounds", metavar="W,S,E,N", help="Bounds of the map.")
@click.option("--around", metavar="LAT,LON,KM", help="Instead: a square of KM km around a point.")
@click.option("--cells", metavar="N|NX,NY", help="Grid cells.  [default: 1024]")
@click.option(
    "--mechanisms",
    default="all",
    show_default=True,
    metavar="NAME:PARAMETER=VALUE:…,…",
    help="See `htf mechanisms`; all: every one, trees at several heights.",
)
@click.option("--epsilons", default="0.1,0.3,0.5", show_default=True, help="With commas.")
@click.option(
    "--workloads",
    default="random,2%,6%,10%",
    show_default=True,
    help="With commas: random, P%, data-P% (squares at records), file:boxes.csv.",
)
@click.option("--queries", default=2000, show_default=True, type=WholeNumber(1, MOST_QUERIES))
@click.option("--runs", default=10, show_default=True, type=WholeNumber(1, MOST_RUNS))
@seed_option
@jobs_option
@output_option
@overwrite_option
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

    POINTS is a CSV or Parquet file, a NumPy matrix of counts (counts.npy or sets.npz:KEY), or one
    of the made-up sets: city, gaussian-20-1, gaussian-20-2, gaussian-50-1, … gaussian-100-2.
    """
    from htf.evaluation.specs import read_specs
    from htf.evaluation.trials import Plan, plan_trials

    data_set = _open_data(points, (x_column, y_column), bounds, around, cells)
    _check_folder(folder, [points, *workloads.split(",")], overwrite)
    specs = read_specs(mechanisms, data_set.domain)
    chosen = _read_epsilons(epsilons)
    bench = _read_bench(workloads, queries, seed)
    bench.check(data_set)
    pairs = [(spec, epsilon) for spec in specs for epsilon in chosen]
    plan = Plan(bench, tuple(plan_trials(data_set, pairs, runs)))
    _mark()
    results = _run(plan, folder, jobs)
    _show_summary(results, plan)
    _draw_all(folder, _figure_of(results, plan))
    _write_reports(results, plan, folder)
    _mark()


@click.command()
@click.option("--quick", is_flag=True, help="A small version, in less than three minutes.")
@click.option("--points", multiple=True, metavar="FILE", help="A data set; may be repeated.")
@x_option
@y_option
@click.option(
    "--bounds", multiple=True, metavar="W,S,E,N", help="Of the map of each FILE, in their order."
)
@click.option(
    "--runs", type=WholeNumber(1, MOST_RUNS), help="Runs of everything.  [default: 10, or 3]"
)
@seed_option
@jobs_option
@output_option
@overwrite_option
def paper(
    quick: bool,
    points: tuple[str, ...],
    x_column: str,
    y_column: str,
    bounds: tuple[str, ...],
    runs: int | None,
    seed: int,
    jobs: int,
    folder: Path,
    overwrite: bool,
) -> None:
    """Redo the experiments of the HTF paper: its figures, and which of its claims hold.

    The data are its Gaussian sets, a made-up city in place of Los Angeles, which is not public, and
    the files given. The full run takes the better part of an hour on two processes.
    """
    from htf.evaluation.claims_page import write_claims
    from htf.evaluation.paper import FULL, QUICK, plan_paper

    scale = QUICK if quick else FULL
    own = [
        _open_data(text, (x_column, y_column), place, None, None)
        for text, place in _pair_with_bounds(points, bounds)
    ]
    _check_folder(folder, points, overwrite)
    design = plan_paper(scale, own, runs=runs or scale.runs, seed=seed)
    for data_set in own:
        design.plan.bench.check(data_set)
    _mark()
    for note in design.notes:
        say(f"Note: {note}")
    results = _run(design.plan, folder, jobs)
    _show_failures(results)
    _draw_all(folder, design.draw(results))
    write_claims(design, results, folder, _command())
    _write_reports(results, design.plan, folder)
    say(f"Which claims held: {folder / 'claims.md'}")
    _mark()


def _open_data(
    text: str,
    columns: tuple[str, str],
    bounds: str | None,
    around: str | None,
    cells: str | None,
) -> DataSet:
    from htf.evaluation.datasets import built_in_sets, is_matrix, open_matrix, open_points

    if is_matrix(text):
        if around or cells:
            raise InputError("a matrix has its own cells: give --bounds W,S,E,N or nothing")
        west, south, east, north = (
            read_numbers(bounds, "--bounds", 4, "W,S,E,N") if bounds else [0.0] * 4
        )
        return open_matrix(text, (west, south, east, north) if bounds else None)
    if text in built_in_sets() and not exists(text):
        if bounds or around or cells:
            raise InputError(f"{text} has a map of its own: leave --bounds, --around, --cells out")
        return built_in_sets()[text]()
    if not exists(text):
        raise InputError(
            f"there is no file {text}; data sets that need none are {', '.join(built_in_sets())}"
        )
    return open_points(text, columns, read_domain(bounds, around, cells or "1024"))


def _check_folder(folder: Path, inputs: Iterable[str], overwrite: bool) -> None:
    """`inputs` as they were typed: names of files, of arrays in them (sets.npz:KEY), and of workloads."""
    from htf.evaluation.datasets import split_key
    from htf.evaluation.results import check_folder

    named = (split_key(text.strip().removeprefix("file:"))[0] for text in inputs)
    check_folder(folder, [path for path in named if os.path.exists(path)], overwrite=overwrite)


def _pair_with_bounds(
    points: tuple[str, ...], bounds: tuple[str, ...]
) -> list[tuple[str, str | None]]:
    from htf.evaluation.datasets import is_matrix

    needing = [text for text in points if not is_matrix(text)]
    if len(needing) != len(bounds):
        raise InputError(
            f"each --points file takes a --bounds W,S,E,N of its own, in the same order: got "
            f"{len(needing)} files and {len(bounds)} bounds"
        )
    left = iter(bounds)
    return [(text, None if is_matrix(text) else next(left)) for text in points]


def _read_epsilons(text: str) -> list[str]:
    from htf.privacy.epsilon import Epsilon

    return list(dict.fromkeys(str(Epsilon.of(part.strip())) for part in text.split(",")))


def _read_bench(workloads: str, queries: int, seed: int) -> Bench:
    from htf.evaluation.trials import Bench
    from htf.evaluation.workloads import read_workload

    found = dict.fromkeys(read_workload(part.strip()) for part in workloads.split(","))
    return Bench(tuple(found), queries, seed)


def _mark() -> None:
    from htf.evaluation.marking import MARKING

    console().print(MARKING, style="bold red")


def _command() -> str:
    # Files by their names alone: where they lie on this machine is not for a page that is passed on.
    words = [Path(word).name if os.path.exists(word) else word for word in sys.argv[1:]]
    return shlex.join(["htf", *words])


def _run(plan: Plan, folder: Path, jobs: int) -> Results:
    from htf.evaluation.runner import Estimate, run_plan, trials_to_do

    waiting = trials_to_do(plan, folder)
    kept = len(plan.trials) - len(waiting)
    guess = _show_time(Estimate(waiting, jobs).seconds_left)
    say(
        f"{len(plan.trials):,} trials, {kept:,} of them finished before; the rest may take "
        f"{guess} in {jobs} process{'es' if jobs > 1 else ''}. Interrupt it at will."
    )
    with _progress(len(plan.trials), kept) as tell:
        return run_plan(plan, folder, jobs, tell)


@contextmanager
def _progress(total: int, kept: int) -> Iterator[Callable[[Progress], None]]:
    """A bar with the time left; where there is no terminal, a line now and then."""
    from rich import progress as rich

    screen = console(stderr=True)
    look = rich.TextColumn("{task.fields[left]} left"), rich.BarColumn(), rich.MofNCompleteColumn()
    with rich.Progress(
        *look, described(), console=screen, transient=True, disable=not screen.is_terminal
    ) as bar:
        task = bar.add_task("starting", total=total, completed=kept, left="?")
        told = time.monotonic()

        def tell(progress: Progress) -> None:
            nonlocal told
            left = _show_time(progress.seconds_left)
            bar.update(task, completed=progress.done, description=progress.latest, left=left)
            if not screen.is_terminal and time.monotonic() - told > SECONDS_BETWEEN_LINES:
                told = time.monotonic()
                say(f"{progress.done:,} of {progress.total:,} trials, {left} left", err=True)

        yield tell


def _show_time(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


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
        console().print("* even the boxes of this workload are drawn from the sensitive data")
    _show_failures(results)


def _show_failures(results: Results) -> None:
    failures = results.failures()
    if not failures:
        return
    distinct = {(f.data_set, f.mechanism, f.epsilon): f for f in failures}
    shown = list(distinct.values())[:MOST_FAILURES_ON_SCREEN]
    rows = [(f.data_set, f.mechanism, f.epsilon, f.reason) for f in shown]
    title = f"{len(failures)} trials without a result (all are in failures.parquet)"
    show_table(("data set", "mechanism", ">epsilon", "why"), rows, title)


def _write_reports(results: Results, plan: Plan, folder: Path) -> None:
    from htf.evaluation.summary import write_summary

    write_summary(results, plan, folder, _command())
    say(f"Every value: {folder / 'results.parquet'}; tables: {folder / 'summary.md'}")


def _draw_all(folder: Path, figures: Iterator[tuple[str, Figure]]) -> None:
    """Figures are a part that may be missing; the results are there without them."""
    from htf.evaluation.figures import save_figure

    try:
        for name, figure in figures:
            save_figure(figure, folder / name)
            say(f"Figure: {folder / name}")
    except MissingExtraError as error:
        say(f"No figures: {error}", err=True)


def _figure_of(results: Results, plan: Plan) -> Iterator[tuple[str, Figure]]:
    """All mechanisms by workload, a colour for each epsilon."""
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
