"""`htf check`: look at points before a release, for the curator's eyes only."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from htf.cli.declared import options_of, take
from htf.cli.options import json_option
from htf.cli.points import name_of_points
from htf.cli.screen import progress_bar, say, say_json
from htf.ingest.reading import Reading
from htf.recipes.maps import MapOptions

if TYPE_CHECKING:
    from htf.frame.domain import Domain

OF_A_MAP = ("bounds", "around", "zones", "by", "map_crs")
NOT_OF_THE_MAP = (
    "cells", "within", "elsewhere", "dest_x", "dest_y", "dest_zones", "dest_by", "dest_within", "axes",
    "categories", "other",
)  # fmt: skip
NOT_OF_POINTS = (
    "count", "per", "max_records", "once_per", "weight", "max_weight", "since", "until", "allow_empty", "engine",
)  # fmt: skip


@click.command()
@click.argument("points")
@options_of(MapOptions, without=NOT_OF_THE_MAP)
@options_of(Reading, without=NOT_OF_POINTS)
@json_option
def check(points: str, as_json: bool, **given: Any) -> None:
    """Look at points before a release. For the curator's eyes only.

    It counts rows, different people and what cannot be read, exactly and without noise: do not publish what it prints. It
    guesses the options that you leave out, advises on what it found, and ends with a command for `htf release`. It
    writes nothing and charges nothing.

    POINTS is as for `htf release`. Choose bounds, epsilon and the grid without these numbers: the guarantee does not
    cover a choice that depends on the data.
    """
    from htf.ingest.check import check_source

    options = MapOptions(**take(MapOptions, given))
    domain = _read_map(options)
    columns = options.x_column, options.y_column
    reading = Reading(columns, **take(Reading, given))
    flags = {name: "--crs" if name == "map_crs" else f"--{name}" for name in OF_A_MAP}
    told = [
        word
        for name, flag in flags.items()
        if given[name] is not None
        for word in (flag, str(given[name]))
    ]
    with progress_bar() as bar:
        task = bar.add_task(f"looking at {name_of_points(points)}", total=1.0)
        found = check_source(
            points,
            domain,
            reading,
            progress=lambda share: bar.update(task, completed=share),
            told_map=told,
        )
    if as_json:
        say_json(json.dumps(found.to_dict(), indent=2, ensure_ascii=False))
    else:
        say(found)


def _read_map(options: MapOptions) -> Domain | None:
    """The map; None if no option says where it is."""
    from htf.frame.domain import Domain

    if options.bounds is None and options.around is None and options.zones is None:
        return None
    read, _ = options.read()
    return Domain(read.axes[:1] if read.outlined else read.axes[:2], read.crs)
