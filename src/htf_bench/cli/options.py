"""Options that `htf evaluate` and `htf paper` share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from htf.cli.types import FileName, WholeNumber

F = TypeVar("F", bound=Callable[..., Any])
# A trial keeps its queries in memory, and a plan its runs.
MOST_QUERIES, MOST_RUNS = 1_000_000, 1000
jobs_option = click.option(
    "--jobs", default=2, show_default=True, type=WholeNumber(1, 64), help="Number of processes."
)
folder_option = click.option(
    "-o",
    "--output",
    "folder",
    required=True,
    type=FileName(file_okay=False),
    help="Folder for the results. Run the same command again to resume.",
)
overwrite_folder_option = click.option(
    "--overwrite",
    is_flag=True,
    help="Use a folder that holds other files, and replace files in it.",
)
seed_option = click.option(
    "--seed",
    default=1,
    show_default=True,
    type=WholeNumber(min=0),
    help="Seed of queries and noise.",
)


def options_of_runs(command: F) -> F:
    """A decorator: how trials are run, and where their results go."""
    for option in (overwrite_folder_option, folder_option, jobs_option, seed_option):
        command = option(command)
    return command
