"""Arguments and options that several commands have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from htf.cli.types import FileName, WholeNumber
from htf.privacy.protection import PERIODS, PERSON, RECORD, Protection

F = TypeVar("F", bound=Callable[..., Any])
MOST_POINTS = 50_000_000  # that are made up
UNITS = {
    RECORD: Protection(),
    PERSON: Protection(PERSON),
    **{f"{PERSON}-{per}": Protection(PERSON, per=per) for per in PERIODS},
}

release_argument = click.argument("release_file", metavar="RELEASE", type=FileName())
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
overwrite_option = click.option(
    "--overwrite", is_flag=True, help="Replace the output if it exists. Never replaces a release."
)
output_option = click.option(
    "-o", "--output", required=True, type=FileName(), help="File to write."
)
where_option = click.option(
    "--where",
    multiple=True,
    metavar="AXIS=LOW:HIGH",
    help="Range of a further axis, e.g. hour=7:10. Can be repeated; other axes count in full.",
)
NO_BASEMAP = Path("none")
unit_option = click.option(
    "--unit",
    type=click.Choice(list(UNITS)),
    default=RECORD,
    show_default=True,
    help="What epsilon protects.",
)


def points_about_option(help: str) -> Callable[[F], F]:
    """How many records there are, roughly, for a simulation."""
    return click.option("--points-about", type=WholeNumber(1, MOST_POINTS), metavar="N", help=help)


def basemap_option(help: str) -> Callable[[F], F]:
    """What lies below the counts on a map in a browser."""
    usual = f"{help} {NO_BASEMAP}: leave out water, borders and names of places, too."
    return click.option("--basemap", type=FileName(), metavar=f"FILE|{NO_BASEMAP}", help=usual)


def noise_option(metavar: str, help: str) -> Callable[[F], F]:
    """Where the noise of a release comes from."""
    return click.option("--noise", default="opendp", show_default=True, metavar=metavar, help=help)
