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

    from htf.frame.domain import Axis, Domain, FloatArray
    from htf.query.box_files import BoxFile
    from htf.query.columns import Answers
    from htf.query.named import Part
    from htf.query.ratios import Ratios
    from htf.query.where import Where
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
def query(
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
    """Count the records or people in boxes or polygons, with a standard error and an interval.

    Without boxes or polygons, the whole map is counted; of a release of zones, each zone. If the release has
    more axes than the map's two, `--where hour=7:10` or `--where offence=Assault` selects a part; axes that you
    do not name count in full. `--by offence` gives a row for each.

    With `--per RELEASE`, a release of sums is divided by the number of records: the answers are means.

    The interval covers the noise. Where estimates use every count in the tree, it also covers
    records or people that are spread unevenly.
    """
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
    asked = _read_boxes(release.domain, boxes, boxes_file, ranges, output)
    parts = _read_parts(release.domain, levels, by)
    asked = _by_name(release.domain, asked, zones, parts, is_cut=bool(boxes or boxes_file))
    with progress_bar() as bar:
        bar.add_task(f"counting {len(asked.rows):,} boxes", total=None)
        shown, rule = _answer(release, counts, asked.rows)
    if output is not None or as_json:
        _give_out(release, asked, shown, rule, as_json, output, overwrite)
    else:
        _show_answers(release.domain, asked, shown, {part.axis: part.level for part in parts})
    _tell_outside(release.domain, asked.rows, shown.inside)
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


def _check_alone(*others: object, beside: str = "distinct") -> None:
    """Refuse other questions beside one for the table of distinct people, or for polygons."""
    if not any(others):
        return
    if beside == "polygons":
        raise InputError("give boxes, zones or --polygons FILE, only one of them")
    raise InputError(
        "distinct people are counted in the boxes that the release fixed, and do not add up: give --distinct "
        "without boxes, polygons, zones, --where and --per"
    )


def _read_boxes(
    domain: Domain,
    boxes: tuple[str, ...],
    boxes_file: Path | None,
    where: Where,
    output: Path | None,
) -> BoxFile:
    """The boxes to count; the whole map if none is given. Refuses an output that cannot be written."""
    from htf.export.answers import check_layer
    from htf.query.box_files import BoxFile, read_box_file
    from htf.query.where import full_rows

    if output is not None:
        check_layer(output, domain.crs, domain.has_map or bool(domain.zoned))
    if boxes and boxes_file:
        raise InputError("give --box W,S,E,N or --boxes FILE.csv, not both")
    if boxes_file is not None:
        return read_box_file(boxes_file, domain, where)
    return BoxFile(full_rows(domain, read_boxes(boxes) if boxes else None, where), {})


def _read_parts(domain: Domain, levels: tuple[str, ...], by: tuple[str, ...]) -> list[Part]:
    """The axes that get a row for each of their names or steps."""
    from htf.query.named import read_by, read_level

    parts = [part for text in levels for part in read_level(domain, text)]
    return parts + [part for text in by for part in read_by(domain, text)]


def _by_name(
    domain: Domain, asked: BoxFile, zones: tuple[str, ...], parts: list[Part], *, is_cut: bool
) -> BoxFile:
    """The question with a row for each zone, or for each name of a level or an axis. A release of zones that is asked
    for nothing in particular tells about each zone."""
    from htf.query.box_files import BoxFile
    from htf.query.named import Named, as_column, ask_by, ask_names, read_by, zone_axis

    named = Named(asked.rows, {name: column.to_pylist() for name, column in asked.given.items()})
    if zones:
        if is_cut:
            raise InputError("give boxes or --zone NAME, not both")
        named = ask_names(domain, asked.rows, zone_axis(domain), zones)
    elif domain.zoned and not (parts or is_cut or _is_cut(domain, asked.rows)):
        parts = read_by(domain, domain.names[domain.zoned[0]])
    if not (zones or parts):
        return asked
    named = ask_by(domain, named, parts)
    return BoxFile(named.rows, {name: as_column(column) for name, column in named.columns.items()})


def _is_cut(domain: Domain, rows: FloatArray) -> bool:
    """Whether --where asks for a part of the zones."""
    size = domain.dimensions
    return any(
        rows[0, n] > domain.axes[n].low or rows[0, size + n] < domain.axes[n].high
        for n in domain.zoned
    )


def _edge_columns(domain: Domain, rows: FloatArray) -> dict[str, FloatArray]:
    """The edges of the boxes, under the names that they have in a file of boxes. Edges between names say nothing."""
    from htf.query.tables import edge_places

    size = domain.dimensions
    return {
        name: rows[:, place]
        for name, place in edge_places(domain).items()
        if domain.axes[place % size].names is None
    }


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
    from htf.export.answers import join_columns, to_json

    edges = _edge_columns(release.domain, asked.rows)
    table = join_columns(edges, asked.given, shown.to_labelled_columns())
    if as_json:
        say_json(to_json(table))
    if output is not None:
        _write(release, asked, table, rule, output, overwrite)


def _write(
    release: Release, asked: BoxFile, table: pa.Table, rule: str, output: Path, overwrite: bool
) -> None:
    from htf.export.answers import LAYERS, rectangles, write_shapes, write_table
    from htf.export.provenance import provenance
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


def _tell_outside(domain: Domain, rows: FloatArray, inside: FloatArray) -> None:
    from htf.query.outside import outside_note

    note = outside_note(domain, rows, inside)
    if note is not None:
        say(note, err=True)


def _show_answers(
    domain: Domain, asked: BoxFile, answers: Answers | Ratios, levels: dict[int, int]
) -> None:
    """A table on the screen. `levels` are those that were asked for, by axis."""
    from htf.query.columns import Answers

    questions = _show_questions(domain, asked, levels)
    headers, texts = [header for header, _ in questions], [texts for _, texts in questions]
    if isinstance(answers, Answers):
        show_answers(headers, texts, answers)
    else:
        show_means(headers, texts, answers)


def _show_questions(
    domain: Domain, asked: BoxFile, levels: dict[int, int]
) -> list[tuple[str, list[str]]]:
    """Columns of the first boxes: their names, their edges on the map, the range of each further axis.

    Where names tell the boxes apart, the edges are left out: both would not fit on a screen."""
    from htf.export.answers import naming_column

    rows = asked.rows[:MOST_ROWS_ON_SCREEN]
    number = len(rows)
    header, names = (domain.has_map and naming_column(asked.given)) or ("", [])
    columns = [(header, names)] if names else []
    if domain.has_map and len(set(names[:number])) < number:
        columns.append(("box", [_show_box(domain, row) for row in rows]))
    ranges = [_show_ranges(domain, row, levels) for row in rows]
    further = enumerate(domain.names[_on_map(domain) :])
    shown = [(name, [row[place] for row in ranges]) for place, name in further]
    return [*columns, *((name, texts) for name, texts in shown if texts != names[:number])]


def _on_map(domain: Domain) -> int:
    return 2 if domain.has_map else 0


def _show_box(domain: Domain, row: FloatArray) -> str:
    size = domain.dimensions
    edges = [*row[: min(size, 2)], *row[size : size + min(size, 2)]]
    return ", ".join(f"{edge:.10g}" for edge in edges)


def _show_ranges(domain: Domain, row: FloatArray, levels: dict[int, int]) -> list[str]:
    size = domain.dimensions
    numbers = range(_on_map(domain), size)
    return [_show_range(domain.axes[n], row[n], row[size + n], levels.get(n)) for n in numbers]


def _show_range(axis: Axis, low: float, high: float, level: int | None) -> str:
    """The range along an axis; by name if it has one, on the level that was asked for or any."""
    if level is None and low <= axis.low and axis.high <= high:
        return "all"
    if axis.names is not None and low.is_integer() and high.is_integer():
        return axis.names.label_of(int(low), int(high), level or 0)
    return f"{low:g} to {high:g}"
