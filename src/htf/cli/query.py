"""`htf query`: counts of boxes or polygons."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from htf.cli.options import json_option, overwrite_option, release_argument, where_option
from htf.cli.query_distinct import distinct_option, query_distinct
from htf.cli.query_means import load_counts, means_rule, per_option, show_means
from htf.cli.query_polygons import by_option, polygons_option, query_polygons
from htf.cli.query_series import query_series
from htf.cli.questions import (
    by_name,
    read_asked,
    read_parts,
    show_questions,
    tell_outside,
)
from htf.cli.screen import (
    progress_bar,
    say,
    say_json,
    show_answers,
    warn_if_not_private,
)
from htf.cli.types import FileName
from htf.errors import InputError
from htf.files import check_output
from htf.query.columns import COLUMNS, COUNTED, COUNTED_MEANS, label_answers
from htf.query.texts import read_where

if TYPE_CHECKING:
    import pyarrow as pa

    from htf.frame.domain import Domain, FloatArray
    from htf.query.box_files import BoxFile
    from htf.query.columns import Answers
    from htf.query.ratios import Ratios
    from htf.release.release import Release


class AnswersCommand(click.Command):
    """A command whose help describes the columns of an answer."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_options(ctx, formatter)
        with formatter.section("Columns of an answer"):
            columns = [(name, column.describe()) for name, column in COLUMNS.items()]
            formatter.write_dl([*columns, (COUNTED, f"{COUNTED_MEANS} In files and JSON.")])


@click.command(cls=AnswersCommand)
@release_argument
@click.option("--box", "boxes", multiple=True, metavar="W,S,E,N", help="A box. Can be repeated.")
@click.option(
    "--boxes",
    "boxes_file",
    type=FileName(),
    help="CSV file of boxes, with columns west, south, east, north and, for further axes, e.g. hour_low, "
    "hour_high. Other columns, such as names, are copied to the answers.",
)
@polygons_option
@by_option
@click.option(
    "--zone", "zones", multiple=True, metavar="NAME", help="A zone of any level. Can be repeated."
)
@click.option(
    "--level",
    "levels",
    multiple=True,
    metavar="LEVEL",
    help="A row for each zone of a level, e.g. district; of trips, for each pair. zone:district is of one axis.",
)
@click.option(
    "--change", is_flag=True, help="Of a series: what changed from each period to the next."
)
@distinct_option
@per_option
@where_option
@json_option
@click.option(
    "-o",
    "--output",
    type=FileName(),
    help="File to write. Its ending sets the format: .csv, .xlsx, .json, .parquet, .geojson, .gpkg or .fgb.",
)
@overwrite_option
def query(release_file: Path, change: bool, **given: Any) -> None:
    """Count the records or split people in boxes or polygons, with a standard error and an interval.

    Without boxes or polygons, the whole map is counted; of a release of zones, each zone. If the release has
    more axes than the map's two, `--where hour=7:10` or `--where offence=Assault` selects a part; axes that you
    do not name count in full. `--by offence` gives a row for each.

    RELEASE may also be the folder of a series: then every box or zone is counted in each period, and `--change` shows what
    changed from each period to the next. A file ending in .png, .svg or .pdf is a picture of that.

    With `--per RELEASE`, a release of sums is divided by the number of records: the answers are means.

    The interval covers the noise. Where estimates use every count in the tree, it also covers
    records or split people that are spread unevenly.
    """
    from htf.series.plan import is_series

    if is_series(release_file):
        _check_of_series(*(given.pop(name) for name in ("distinct", "per")))
        query_series(release_file, change=change, **given)
    elif change:
        raise InputError("--change is for a series: compare two releases with `htf compare`")
    else:
        query_release(release_file, **given)


def query_release(
    release_file: Path,
    boxes: tuple[str, ...],
    boxes_file: Path | None,
    polygons_file: Path | None,
    by: tuple[str, ...],
    zones: tuple[str, ...],
    levels: tuple[str, ...],
    distinct: bool,
    per: Path | None,
    where: tuple[str, ...],
    as_json: bool,
    output: Path | None,
    overwrite: bool,
) -> None:
    """Ask one release."""
    from htf.export.answers import check_ending
    from htf.release.release import Release

    if distinct:
        _check_alone(boxes, boxes_file, polygons_file, by, zones, levels, where, per)
        return query_distinct(release_file, as_json, output, overwrite)
    if polygons_file is not None:
        _check_alone(boxes, boxes_file, zones, levels, beside="polygons")
        return query_polygons(
            release_file, polygons_file, by, per, where, as_json, output, overwrite
        )
    if output is not None:
        check_ending(output)
        check_output(output, overwrite=overwrite, inputs=[release_file, boxes_file, per])
    ranges = read_where(where)
    release = Release.load(release_file)
    release = (release.zones or release) if zones or levels else release
    counts = None if per is None else load_counts(per, release)
    asked = read_asked(release.domain, boxes, boxes_file, ranges, output)
    parts = read_parts(release.domain, levels, by)
    asked = by_name(release.domain, asked, zones, parts, is_cut=bool(boxes or boxes_file))
    with progress_bar() as bar:
        bar.add_task(f"counting {len(asked.rows):,} boxes", total=None)
        shown, rule = _answer(release, counts, asked.rows)
    if output is not None or as_json:
        _give_out(release, asked, shown, rule, as_json, output, overwrite)
    else:
        _show_answers(release.domain, asked, shown, {part.axis: part.level for part in parts})
    tell_outside(release.domain, asked.rows, shown.inside)
    for one in (release, counts):
        if one is not None:
            warn_if_not_private(one)
    return None


def _answer(
    release: Release, counts: Release | None, rows: FloatArray
) -> tuple[Answers | Ratios, str]:
    """The answers for boxes, or their means where there are counts to divide by, and how they were computed."""
    from htf.export.answers import boxes_rule
    from htf.query.boxes import count_boxes
    from htf.query.ratios import divide, mean_of

    found = count_boxes(release.domain, release.derived.answering_index, rows)
    if counts is None:
        return label_answers(found, release), boxes_rule(release.quantity)
    under = count_boxes(counts.domain, counts.derived.answering_index, rows)
    means = divide(found, under, mean_of(release.protection))
    return means, means_rule("One row per box that was asked for", means, counts)


def _check_of_series(*others: object) -> None:
    if any(others):
        raise InputError(
            "a series is asked for boxes, polygons or zones: leave out --distinct and --per"
        )


def _check_alone(*others: object, beside: str = "distinct") -> None:
    """Refuse other questions beside one for the table of different people, or for polygons."""
    if not any(others):
        return
    if beside == "polygons":
        raise InputError("give boxes, zones or --polygons FILE, only one of them")
    raise InputError(
        "different people are counted in the boxes that the release fixed, and do not add up: give --distinct "
        "without boxes, polygons, zones, --where and --per"
    )


def _give_out(
    release: Release,
    asked: BoxFile,
    shown: Answers | Ratios,
    rule: str,
    as_json: bool,
    output: Path | None,
    overwrite: bool,
) -> None:
    """Print the answers as JSON, or write them to a file, or both."""
    from htf.export.answers import to_json
    from htf.query.frames import join_columns
    from htf.query.tables import edge_columns

    edges = edge_columns(release.domain, asked.rows)
    table = join_columns(edges, asked.given, shown.to_labelled_columns())
    if as_json:
        say_json(to_json(table))
    if output is not None:
        _write(release, asked, table, rule, output, overwrite)


def _write(
    release: Release, asked: BoxFile, table: pa.Table, rule: str, output: Path, overwrite: bool
) -> None:
    from htf.export.answers import LAYERS, write_shapes, write_table
    from htf.export.provenance import provenance
    from htf.query.frames import rectangles
    from htf.query.named import outlines_of

    about = provenance(release, rule)
    if output.suffix.lower() in LAYERS:
        zoned = bool(release.domain.zoned)
        shapes = (outlines_of if zoned else rectangles)(release.domain, asked.rows)
        crs = release.domain.crs
        write_shapes(table, shapes, crs, output, about, "boxes", overwrite=overwrite)
    else:
        write_table(table, output, about, overwrite=overwrite)
    say(f"Wrote {output}: {len(asked.rows):,} answers.", err=True)


def _show_answers(
    domain: Domain, asked: BoxFile, answers: Answers | Ratios, levels: dict[int, int]
) -> None:
    """A table on the screen. `levels` are those that were asked for, by axis."""
    from htf.query.columns import Answers

    questions = show_questions(domain, asked, levels)
    headers, texts = [header for header, _ in questions], [texts for _, texts in questions]
    if isinstance(answers, Answers):
        show_answers(headers, texts, answers)
    else:
        show_means(headers, texts, answers)
