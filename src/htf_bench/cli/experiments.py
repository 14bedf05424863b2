"""Shared by `htf evaluate` and `htf paper`: data, trials with progress, and results. Commands import it when they run."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich import progress as rich

from htf.cli.screen import console, remark, safe_text, say, show_table
from htf.errors import InputError
from htf.files import exists
from htf.forecasts.places import DataSet
from htf.query.texts import read_numbers
from htf.recipes.maps import read_domain
from htf_bench.datasets import built_in_sets, is_matrix, open_matrix, open_points, split_key
from htf_bench.figures import save_figure
from htf_bench.results import MARKING, Results, check_folder
from htf_bench.runner import Estimate, Progress, run_plan, trials_to_do
from htf_bench.summary import Contender, contenders, write_summary
from htf_bench.trials import Plan

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SECONDS_BETWEEN_LINES = 30.0
MOST_FAILURES_ON_SCREEN = 8


def open_data(
    text: str, columns: tuple[str, str], bounds: str | None, cells: str | None
) -> DataSet:
    """A file of points, a matrix of counts, or a made-up data set."""
    if is_matrix(text):
        if cells:
            raise InputError("a matrix has its own cells: give --bounds W,S,E,N or nothing")
        west, south, east, north = (
            read_numbers(bounds, "--bounds", 4, "W,S,E,N") if bounds else [0.0] * 4
        )
        return open_matrix(text, (west, south, east, north) if bounds else None)
    if text in built_in_sets() and not exists(text):
        if bounds or cells:
            raise InputError(f"{text} has its own map: leave out --bounds and --cells")
        return built_in_sets()[text]
    return open_points(text, columns, read_domain(bounds, None, cells or "1024"))


def check_results_folder(folder: Path, inputs: Iterable[str], overwrite: bool) -> None:
    """`inputs` as they were typed: names of files, of arrays in them (sets.npz:KEY), and of workloads."""
    named = (split_key(text.strip().removeprefix("file:"))[0] for text in inputs)
    check_folder(folder, [path for path in named if os.path.exists(path)], overwrite=overwrite)


def mark_as_not_private() -> None:
    """Say that the results are not for publication."""
    console().print(MARKING, style="bold red")


def typed_command() -> str:
    """The command as it was typed, for a page that is passed on: without the folders of its files."""
    words = [Path(word).name if os.path.exists(word) else word for word in sys.argv[1:]]
    return shlex.join(["htf", *words])


def run_trials(plan: Plan, folder: Path, jobs: int) -> Results:
    """Run those that have no result yet, with progress and the time left."""
    waiting = trials_to_do(plan, folder)
    kept = len(plan.trials) - len(waiting)
    guess = _show_time(Estimate(waiting, jobs).seconds_left)
    say(
        f"{len(plan.trials):,} trials, of which {kept:,} are done already; the rest may take {guess} in "
        f"{jobs} process{'es' if jobs > 1 else ''}. You can stop it and resume later."
    )
    with progress_of_trials(len(plan.trials), kept) as tell:
        return run_plan(plan, folder, jobs, tell)


@contextmanager
def progress_of_trials(total: int, kept: int) -> Iterator[Callable[[Progress], None]]:
    """A bar with the time left. Without a terminal, a line now and then."""
    screen = console(stderr=True)
    time_left = rich.TextColumn("{task.fields[left]} left")
    label = rich.TextColumn("{task.description}", markup=False)
    look = time_left, rich.BarColumn(), rich.MofNCompleteColumn(), label
    with rich.Progress(
        *look, console=screen, transient=True, disable=not screen.is_terminal
    ) as bar:
        task = bar.add_task("starting", total=total, completed=kept, left="?")
        last_line = time.monotonic()

        def tell(progress: Progress) -> None:
            nonlocal last_line
            left = _show_time(progress.seconds_left)
            latest = safe_text(progress.latest, "")
            bar.update(task, completed=progress.done, description=latest, left=left)
            if not screen.is_terminal and time.monotonic() - last_line > SECONDS_BETWEEN_LINES:
                last_line = time.monotonic()
                remark(f"{progress.done:,} of {progress.total:,} trials, {left} left")

        yield tell


def _show_time(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def show_failures(results: Results) -> None:
    """The first trials that gave no result, and why."""
    failures = results.failures()
    if not failures:
        return
    rows = list({row[:3]: row for row in failures}.values())[:MOST_FAILURES_ON_SCREEN]
    title = f"{len(failures)} trials without a result (failures.parquet lists all of them)"
    show_table(("data set", "mechanism", ">epsilon", "why"), rows, title)


def write_reports(
    results: Results, plan: Plan, folder: Path, entrants: Sequence[Contender] | None = None
) -> None:
    """Tables of the results. Without entrants, every ladder of heights is one, and all others alone."""
    if entrants is None:
        entrants = contenders(dict.fromkeys(trial.spec for trial in plan.trials))
    write_summary(results, plan, folder, typed_command(), entrants)
    say(f"All values: {folder / 'results.parquet'}; tables: {folder / 'summary.md'}")


def draw_all(folder: Path, figures: Iterable[tuple[str, Figure]]) -> None:
    """Draw the figures of the results."""
    for name, figure in figures:
        save_figure(figure, folder / name)
        say(f"Figure: {folder / name}")
