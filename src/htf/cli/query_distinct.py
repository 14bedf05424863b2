"""`htf query --distinct`: the table of different people of a release."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from htf.cli.screen import (
    MOST_ROWS_ON_SCREEN,
    console,
    say,
    say_json,
    show_table,
    warn_if_not_private,
)
from htf.estimation.level import LEVEL_TEXT
from htf.files import check_output
from htf.privacy.protection import explain_people

if TYPE_CHECKING:
    from htf.estimation.distinct import DistinctPeople
    from htf.release.release import Release

distinct_option = click.option(
    "--distinct",
    is_flag=True,
    help="Show the table of different people in the boxes of a fixed grid, if the release has one.",
)

RULE = (
    "One row per box of the grid, with the number of different people who were there. Boxes do not add up: somebody who "
    "was in two of them counts in both. west, south, east, north: edges of the box. different_people: best guess, of different "
    "person-days, -weeks or -months where quantity says so. std_error: standard "
    f"deviation of the errors that the interval covers. low, high: {LEVEL_TEXT} interval, for the noise and for whoever "
    "was in more boxes than they are counted in. quantity: what is counted."
)


def query_distinct(release_file: Path, as_json: bool, output: Path | None, overwrite: bool) -> None:
    from htf.export.answers import check_ending, check_layer, to_json
    from htf.release.release import Release

    if output is not None:
        check_ending(output)
        check_output(output, overwrite=overwrite, inputs=[release_file])
    release = Release.load(release_file)
    if output is not None:
        check_layer(output, release.domain.crs, release.domain.has_map)
    found = release.count_distinct()
    if as_json:
        say_json(to_json(found.to_arrow()))
    elif output is None:
        _show(found)
    if output is not None:
        _write(release, found, output, overwrite)
        say(f"Wrote {output}: {len(found):,} boxes.", err=True)
    warn_if_not_private(release)


def _show(found: DistinctPeople) -> None:
    """The boxes with the most different people first: of a coarse grid, most are often empty."""
    order = (-found.different_people).argsort(kind="stable")[:MOST_ROWS_ON_SCREEN]
    rows = [
        (
            ", ".join(
                f"{edge[box]:.10g}" for edge in (found.west, found.south, found.east, found.north)
            ),
            f"{found.different_people[box]:,.0f}",
            f"{found.std_error[box]:,.1f}",
            f"{found.low[box]:,.0f} to {found.high[box]:,.0f}",
        )
        for box in order
    ]
    headers = ("box", f">{found.quantity}", ">std. error", f">{LEVEL_TEXT} interval")
    show_table(headers, rows)
    if len(found) > len(rows):
        console().print(
            f"… and {len(found) - len(rows):,} more, with fewer: use -o FILE.csv or --json"
        )
    console().print(f"{explain_people(found.quantity)}\n")


def _write(release: Release, found: DistinctPeople, output: Path, overwrite: bool) -> None:
    from htf.export.answers import LAYERS, write_shapes, write_table
    from htf.export.provenance import provenance

    about, table = provenance(release, RULE), found.to_arrow()
    about |= {"quantity": found.quantity, "counted": found.quantity}  # not those of the map
    if output.suffix.lower() in LAYERS:
        import shapely

        shapes = shapely.box(found.west, found.south, found.east, found.north)
        write_shapes(
            table, shapes, release.domain.crs, output, about, "distinct", overwrite=overwrite
        )
    else:
        write_table(table, output, about, overwrite=overwrite)
