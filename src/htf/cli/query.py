"""`htf query`: counts of boxes or polygons."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from htf.cli.options import json_option, overwrite_option, release_argument, where_option
from htf.cli.query_distinct import distinct_option, query_distinct
from htf.cli.query_means import load_counts, means_rule, per_option, show_means
from htf.cli.query_polygons import by_option, polygons_option, query_polygons
from htf.cli.screen import (
    MOST_ROWS_ON_SCREEN,
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
from htf.query.texts import read_boxes, read_where

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
@distinct_option
@per_option
@where_option
@json_option
@click.option(
    "-o",
    "--output",
    type=FileName(),
    help="File to write. Its ending sets the format: .csv, .json, .parquet, .geojson, .gpkg or .fgb.",
)
@overwrite_option
def query(
    release_file: Path,
    boxes: tuple[str, ...],
    boxes_file: Path | None,
    polygons_file: Path | None,
    by: str | None,
    distinct: bool,
    per: Path | None,
    where: tuple[str, ...],
    as_json: bool,
    output: Path | None,
    overwrite: bool,
) -> None:
    """Count the records or people in boxes or polygons, with a standard error and an interval.

    Without boxes or polygons, the whole map is counted. If the release has more axes than the map's two,
    `--where hour=7:10` selects a part; axes that you do not name count in full.

    With `--per RELEASE`, a release of sums is divided by the number of records: the answers are means.

    The interval covers the noise. Where estimates use every count in the tree, it also covers
    records or people that are spread unevenly.
    """
    from htf.export.answers import check_ending, join_columns, to_json
    from htf.release.release import Release

    if distinct:
        _check_distinct_alone(boxes, boxes_file, polygons_file, by, where, per)
        query_distinct(release_file, as_json, output, overwrite)
        return
    if polygons_file is not None and not (boxes or boxes_file):
        query_polygons(release_file, polygons_file, by, per, where, as_json, output, overwrite)
        return
    if polygons_file is not None or by is not None:
        raise InputError("give boxes or --polygons FILE, not both; --by is for polygons")
    if output is not None:
        check_ending(output)
        check_output(output, overwrite=overwrite, inputs=[release_file, boxes_file, per])
    ranges = read_where(where)
    release = Release.load(release_file)
    counts = None if per is None else load_counts(per, release)
    asked = _read_boxes(release.domain, boxes, boxes_file, ranges, output)
    with progress_bar() as bar:
        bar.add_task(f"counting {len(asked.rows):,} boxes", total=None)
        shown, rule = _answer(release, counts, asked.rows)
    edges = _edge_columns(release.domain, asked.rows)
    table = join_columns(edges, asked.given, shown.to_labelled_columns())
    if as_json:
        say_json(to_json(table))
    elif output is None:
        _show_answers(release.domain, asked, shown)
    if output is not None:
        _write(release, asked, table, rule, output, overwrite)
        say(f"Wrote {output}: {len(asked.rows):,} answers.", err=True)
    _tell_outside(release.domain, asked.rows, shown.inside)
    for one in (release, counts):
        if one is not None:
            warn_if_not_private(one)


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


def _check_distinct_alone(*others: object) -> None:
    """Refuse other questions beside that for the table of distinct people."""
    if any(others):
        raise InputError(
            "distinct people are counted in the boxes that the release fixed, and do not add up: give --distinct "
            "without boxes, polygons, --per and --where"
        )


def _read_boxes(
    domain: Domain,
    boxes: tuple[str, ...],
    boxes_file: Path | None,
    where: dict[str, tuple[float, float]],
    output: Path | None,
) -> BoxFile:
    """The boxes to count; the whole map if none is given. Refuses an output that cannot be written."""
    from htf.export.answers import check_layer
    from htf.query.box_files import BoxFile, read_box_file
    from htf.query.where import full_rows

    if output is not None:
        check_layer(output, domain.crs, domain.has_map)
    if boxes and boxes_file:
        raise InputError("give --box W,S,E,N or --boxes FILE.csv, not both")
    if boxes_file is not None:
        return read_box_file(boxes_file, domain, where)
    return BoxFile(full_rows(domain, read_boxes(boxes) if boxes else None, where), {})


def _edge_columns(domain: Domain, rows: FloatArray) -> dict[str, FloatArray]:
    """The edges of the boxes, under the names that they have in a file of boxes."""
    from htf.query.tables import edge_places

    return {name: rows[:, place] for name, place in edge_places(domain).items()}


def _write(
    release: Release, asked: BoxFile, table: pa.Table, rule: str, output: Path, overwrite: bool
) -> None:
    from htf.export.answers import LAYERS, rectangles, write_shapes, write_table
    from htf.export.provenance import provenance

    about = provenance(release, rule)
    if output.suffix.lower() in LAYERS:
        shapes = rectangles(release.domain, asked.rows)
        crs = release.domain.crs
        write_shapes(table, shapes, crs, output, about, "boxes", overwrite=overwrite)
    else:
        write_table(table, output, about, overwrite=overwrite)


def _tell_outside(domain: Domain, rows: FloatArray, inside: FloatArray) -> None:
    from htf.query.outside import outside_note

    note = outside_note(domain, rows, inside)
    if note is not None:
        say(note, err=True)


def _show_answers(domain: Domain, asked: BoxFile, answers: Answers | Ratios) -> None:
    from htf.query.columns import Answers

    questions = _show_questions(domain, asked)
    headers, texts = [header for header, _ in questions], [texts for _, texts in questions]
    if isinstance(answers, Answers):
        show_answers(headers, texts, answers)
    else:
        show_means(headers, texts, answers)


def _show_questions(domain: Domain, asked: BoxFile) -> list[tuple[str, list[str]]]:
    """Columns of the first boxes: their names, their edges on the map, the range of each further axis.

    Where names tell the boxes apart, the edges are left out: both would not fit on a screen."""
    from htf.export.answers import naming_column

    rows = asked.rows[:MOST_ROWS_ON_SCREEN]
    number = len(rows)
    header, names = naming_column(asked.given) or ("", [])
    columns = [(header, names)] if names else []
    if len(set(names[:number])) < number:
        columns.append(("box", [_show_box(domain, row) for row in rows]))
    ranges = [_show_ranges(domain, row) for row in rows]
    further = enumerate(domain.names[2:])
    return [*columns, *((name, [row[place] for row in ranges]) for place, name in further)]


def _show_box(domain: Domain, row: FloatArray) -> str:
    size = domain.dimensions
    edges = [*row[: min(size, 2)], *row[size : size + min(size, 2)]]
    return ", ".join(f"{edge:.10g}" for edge in edges)


def _show_ranges(domain: Domain, row: FloatArray) -> list[str]:
    size = domain.dimensions
    ranges = zip(domain.axes[2:], row[2:size], row[size + 2 :], strict=True)
    return [
        "all" if low <= axis.low and axis.high <= high else f"{low:g} to {high:g}"
        for axis, low, high in ranges
    ]
