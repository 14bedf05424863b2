"""`htf info`: what a release says about itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from htf.cli.options import json_option, release_argument
from htf.cli.screen import console, say_json, show_table, warn_if_not_private
from htf.privacy.activity import CLASS_ENDS
from htf.privacy.protection import OF_RECORDS

if TYPE_CHECKING:
    from htf.release.release import Release

LONGEST_VALUE = 60


@click.command()
@release_argument
@json_option
def info(release_file: Path, as_json: bool) -> None:
    """Show the privacy statement, the ledger, the mechanism and its parameters."""
    from htf.release.release import Release

    release = Release.load(release_file)
    if as_json:
        say_json(json.dumps(release.summary(), indent=2))
        return
    screen = console()
    warn_if_not_private(release)
    screen.print(f"{release_file}: {len(release):,} leaves by {release.mechanism}\n", style="bold")
    screen.print(release.statement + "\n")
    _show_guarantee(release)
    _show_map(release)
    for title, values in (("Parameters", release.parameters), ("Found with noise", release.facts)):
        rows = [(name, _shortened(str(value))) for name, value in values.items()]
        show_table(("name", ">value"), rows, title)
    if release.prior is not None:
        rows = [(name, str(value)) for name, value in release.prior.to_dict().items()]
        show_table(("name", ">value"), rows, "Public prior")
    _show_ledger(release)


def _show_guarantee(release: Release) -> None:
    """Show what epsilon protects, and what was measured about people before the map."""
    if release.protection != OF_RECORDS:
        rows = [
            *release.protection.to_dict().items(),
            ("epsilon of a record", release.record_epsilon),
        ]
        show_table(
            ("name", ">value"), rows, f"Epsilon {release.epsilon} for {release.protection.name}"
        )
    if release.suggestion is not None:
        rows = [*release.suggestion.to_dict().items()]
        show_table(("name", ">value"), rows, "Suggested with noise")
    if (activity := release.activity) is not None:
        rows = [(f"up to {end:,}", n) for end, n in zip(CLASS_ENDS, activity.people, strict=True)]
        title = f"Activity, for epsilon {activity.epsilon}; counts are multiplied by {release.factor:.4g}"
        show_table(("records of a person", ">people, with noise"), rows, title)
    if (distinct := release.distinct) is not None:
        told = {**distinct.to_dict(), "grid": "{} x {}".format(*distinct.grid)}
        rows = [(name, value) for name, value in told.items() if name not in ("counts", "people")]
        show_table(
            ("name", ">value"), rows, f"Table of {distinct.quantity}: `htf query --distinct`"
        )


def _show_map(release: Release) -> None:
    rows = [
        (a.name, f"{a.low:.10g}", f"{a.high:.10g}", f"{a.cells:,}", f"{a.cell_width:.4g}")
        for a in release.domain.axes
    ]
    title = f"Map ({release.domain.crs}), {release.domain.size:,} cells"
    show_table(("axis", ">low", ">high", ">cells", ">width of a cell"), rows, title)


def _show_ledger(release: Release) -> None:
    each = "" if release.protection == OF_RECORDS else " for each record"
    rows = [
        (line.label, line.kind, line.answers, line.largest_epsilon, line.spent_after)
        for line in release.ledger
    ]
    title = f"Ledger: {release.spent} spent of {release.record_epsilon}{each}"
    show_table(("what for", "kind", ">answers", ">epsilon each", ">spent so far"), rows, title)


def _shortened(text: str) -> str:
    """Some values are long, such as HDMM's strategies. `--json` prints them in full."""
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]} …"
