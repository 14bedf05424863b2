"""The part of `htf query` for --per: means, the sums of one release divided by the counts of another."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from htf.cli.screen import MOST_ROWS_ON_SCREEN, console, show_table
from htf.cli.types import FileName
from htf.estimation.level import LEVEL_TEXT
from htf.query.answer_texts import show_count

if TYPE_CHECKING:
    from htf.query.ratios import Ratios
    from htf.release.release import Release

HEADINGS = (">mean", f">{LEVEL_TEXT} interval", ">sum", ">records", ">partial", ">inside map")
NOTHING = "no record expected"

per_option = click.option(
    "--per",
    type=FileName(),
    metavar="RELEASE",
    help="For a release with a weight: another release of the number of the same records. The answers are then means, "
    "the sum divided by that number.",
)


def load_counts(path: Path, sums: Release) -> Release:
    """The release to divide by. Refuses one that does not go with the sums."""
    from htf.query.ratios import check_pair
    from htf.release.release import Release

    counts = Release.load(path)
    check_pair(sums, counts)
    return counts


def show_means(headers: Sequence[str], questions: Sequence[Sequence[str]], means: Ratios) -> None:
    """Print a table of means: the given columns that say what was asked, and then the means."""
    shown = means.to_dicts()[:MOST_ROWS_ON_SCREEN]
    rows = [
        (*(column[number] for column in questions), *_show(row)) for number, row in enumerate(shown)
    ]
    show_table((*headers, *HEADINGS), rows)
    if len(means) > len(rows):
        console().print(f"… and {len(means) - len(rows):,} more: use -o FILE.csv or --json")
    console().print(f"Counted: {means.counted}.\n")


def _show(row: dict[str, Any]) -> list[str]:
    from htf.query.ratios import UNBOUNDED

    mean, low, high = (_short(row[name]) for name in ("mean", "low", "high"))
    counts = [show_count(row[name]) for name in ("sum", "records")]
    shares = [format(row[name], ".1%") for name in ("partial", "inside")]
    interval = f"{low} to {high}" if row["bounded"] else UNBOUNDED
    return [NOTHING if row["mean"] != row["mean"] else mean, interval, *counts, *shares]


def _short(value: float) -> str:
    """Four digits, or all digits before the point."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def means_rule(rows: str, means: Ratios, counts: Release) -> str:
    """How means were computed, for their provenance. `rows` says what the rows are."""
    from htf.query.ratios import COLUMNS
    from htf.release.file import digests

    columns = (f"{name}: {told.format(counted=means.counted)}" for name, told in COLUMNS.items())
    return (
        f"{rows}, with the sum of the release divided by the number of records of another (digests "
        f"{', '.join(digests(counts))}; epsilon {counts.epsilon} for {counts.protection.name}). {' '.join(columns)}"
    )
