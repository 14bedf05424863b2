"""`htf compare`: what changed from one release to another."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from htf.cli.options import json_option, overwrite_option, where_option
from htf.cli.query_polygons import (
    by_option,
    check_layer_output,
    label_column,
    labels_of,
    polygons_option,
    read_layer,
    report_odd,
)
from htf.cli.questions import by_name, read_asked, read_parts, show_questions
from htf.cli.screen import (
    MOST_ROWS_ON_SCREEN,
    console,
    progress_bar,
    say,
    say_json,
    show_table,
    warn_if_not_private,
)
from htf.cli.types import FileName
from htf.errors import InputError
from htf.estimation.level import LEVEL_TEXT, OUTSIDE
from htf.query.answer_texts import show_count
from htf.query.texts import read_where

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from htf.frame.domain import FloatArray
    from htf.query.change import Changes
    from htf.query.where import Where
    from htf.release.release import Release

SQUARES = 8  # along the longer side of the map, where nothing is asked for in particular
HEADINGS = (">before", ">after", ">change", f">{LEVEL_TEXT} interval", ">per cent", "more than noise")  # fmt: skip


@dataclass(frozen=True)
class Asked:
    """What is compared: texts for the screen, columns for files, and how to write those."""

    headings: list[tuple[str, list[str]]]
    edges: dict[str, Any]  # or labels: the columns that name the questions
    columns: dict[str, Any]  # that came with them
    changes: Changes
    shapes: Any  # outlines for a layer
    crs: Any


@click.command()
@click.argument("before", type=FileName(), metavar="BEFORE")
@click.argument("after", type=FileName(), metavar="AFTER")
@click.option("--box", "boxes", multiple=True, metavar="W,S,E,N", help="A box. Can be repeated.")
@click.option(
    "--boxes", "boxes_file", type=FileName(), help="CSV file of boxes, as for `htf query`."
)
@polygons_option
@by_option
@click.option(
    "--zone", "zones", multiple=True, metavar="NAME", help="A zone of any level. Can be repeated."
)
@click.option(
    "--level", "levels", multiple=True, metavar="LEVEL", help="A row for each zone of a level."
)
@where_option
@json_option
@click.option(
    "-o",
    "--output",
    type=FileName(),
    help="File to write. Its ending sets the format: .csv, .xlsx, .json, .parquet, .geojson, .gpkg or .fgb.",
)
@overwrite_option
def compare(
    before: Path,
    after: Path,
    boxes: tuple[str, ...],
    boxes_file: Path | None,
    polygons_file: Path | None,
    by: tuple[str, ...],
    zones: tuple[str, ...],
    levels: tuple[str, ...],
    where: tuple[str, ...],
    as_json: bool,
    output: Path | None,
    overwrite: bool,
) -> None:
    """Show what changed from the release BEFORE to the release AFTER, and what of it is more than noise.

    Without boxes, polygons or zones, the map that both cover is divided into squares. The change is the difference of
    the two counts. Its interval comes from the raw noisy counts of both, whose noise was drawn apart.

    A change is marked as more than noise so that the chance of even one false mark in the whole table is at most 5 %.
    """
    from htf.query.change import check_comparable
    from htf.release.release import Release

    if polygons_file is not None and (boxes or boxes_file or zones or levels):
        raise InputError("give boxes, zones or --polygons FILE, only one of them")
    if output is not None:
        others = [one for one in (boxes_file, polygons_file) if one is not None]
        check_layer_output(output, (before, after, *others), overwrite)
    ranges = read_where(where)
    old, new = (_map_or_zones(Release.load(one), zones, levels) for one in (before, after))
    check_comparable(new, old)
    with progress_bar() as bar:
        bar.add_task("comparing", total=None)
        if polygons_file is not None:
            asked = _ask_polygons(new, old, polygons_file, by, ranges)
        else:
            given = (boxes, boxes_file, zones, levels, by)
            asked = _ask_boxes(new, old, given, ranges, output)
    _give_out((new, old), asked, as_json, output, overwrite)
    for one in (old, new):
        warn_if_not_private(one)


def _map_or_zones(release: Release, zones: tuple[str, ...], levels: tuple[str, ...]) -> Release:
    return (release.zones or release) if zones or levels else release


def _ask_polygons(
    new: Release, old: Release, path: Path, by: tuple[str, ...], where: Where
) -> Asked:
    from htf.query.change import difference_of
    from htf.query.frames import attributes

    if len(by) > 1:
        raise InputError(f"polygons are named by one column, got --by {' --by '.join(by)}")
    frame = read_layer(path)
    named = label_column(frame, by[0] if by else None, path)
    labels = labels_of(frame, named)
    changes = difference_of(new, old, polygons=frame, where=where)
    report_odd(new, frame, labels, new.count_polygons(frame, where=where).inside)
    columns = {n: column for n, column in attributes(frame).items() if n != named or n != "label"}
    asked = [("polygon", labels)], {"label": labels}, columns
    return Asked(*asked, changes, frame.geometry.to_numpy(), frame.crs)


def _ask_boxes(
    new: Release, old: Release, given: tuple[Any, ...], where: Where, output: Path | None
) -> Asked:
    """Boxes or names; if there are none, squares of what both maps cover, or all zones."""
    from htf.query.box_files import BoxFile
    from htf.query.change import difference_of
    from htf.query.frames import rectangles
    from htf.query.named import outlines_of
    from htf.query.tables import edge_columns

    boxes, boxes_file, zones, levels, by = given
    if new.domain.zoned and new.domain != old.domain:
        raise InputError("the two releases have different zones: they cannot be compared")
    asked = read_asked(new.domain, boxes, boxes_file, where, output)
    parts = read_parts(new.domain, levels, by)
    is_cut = bool(boxes or boxes_file)
    if not (is_cut or zones or parts or new.domain.zoned) and new.domain.has_map:
        asked = BoxFile(_squares(new, old, where), {})
    asked = by_name(new.domain, asked, zones, parts, is_cut=is_cut)
    changes = difference_of(new, old, asked.rows)
    shown = show_questions(new.domain, asked, {part.axis: part.level for part in parts})
    edges = edge_columns(new.domain, asked.rows)
    outlines = outlines_of if new.domain.zoned else rectangles
    has_shapes = bool(new.domain.zoned) or new.domain.has_map
    shapes = outlines(new.domain, asked.rows) if has_shapes and output is not None else None
    return Asked(shown, edges, dict(asked.given), changes, shapes, new.domain.crs)


def _squares(new: Release, old: Release, where: Where) -> FloatArray:
    """Squares of what both maps cover, as full rows."""
    import numpy as np

    from htf.maps.comparison import grid_rows, shared_bounds

    low, high = shared_bounds(new, old, ("x", "y"), where)
    widths = np.subtract(high, low)
    numbers = np.maximum(np.rint(SQUARES * widths / widths.max()), 1).astype(int)
    edges = [
        np.linspace(start, end, number + 1)
        for start, end, number in zip(low, high, numbers, strict=True)
    ]
    return grid_rows(new, ("x", "y"), where, edges[0], edges[1])


def _give_out(
    releases: tuple[Release, Release],
    asked: Asked,
    as_json: bool,
    output: Path | None,
    overwrite: bool,
) -> None:
    from htf.export.answers import to_json
    from htf.query.frames import join_columns

    table = without_endless(join_columns(asked.edges, asked.columns, asked.changes.to_columns()))
    if as_json:
        say_json(to_json(table))
    elif output is None:
        _show(asked)
    if output is not None:
        _write(releases, asked, table, output, overwrite)
        say(f"Wrote {output}: {len(asked.changes):,} changes.", err=True)


def without_endless(table: pa.Table) -> pa.Table:
    """Percentages that are no numbers, or unbounded, are empty."""
    import pyarrow.compute as pc

    for name in ("percent", "percent_low", "percent_high"):
        column = table[name]
        known = pc.if_else(pc.is_finite(column), column, None)
        table = table.set_column(table.schema.get_field_index(name), name, known)
    return table


def _show(asked: Asked) -> None:
    """The largest changes that are more than noise first would hide the order that was asked for, so that is kept."""
    changes = asked.changes
    number = min(len(changes), MOST_ROWS_ON_SCREEN)
    headings = [name for name, _ in asked.headings]
    rows = [
        (*(texts[row] for _, texts in asked.headings), *show_change(changes, row))
        for row in range(number)
    ]
    show_table((*headings, *HEADINGS), rows)
    if len(changes) > number:
        console().print(f"… and {len(changes) - number:,} more: use -o FILE.csv or --json")
    marked = int(changes.beyond_noise.sum())
    console().print(
        f"Counted: {changes.counted}. {marked:,} of {len(changes):,} changes are more than noise; the chance that "
        f"any of these marks is false is at most {OUTSIDE * 100:g} %.\n"
    )
    show_unmarked(changes.low, changes.high, changes.beyond_noise)


def show_unmarked(low: FloatArray, high: FloatArray, marked: NDArray[np.bool_]) -> None:
    """Explain once, under a table, why a change whose interval leaves out zero is not marked."""
    from htf.query.change import unmarked_note

    note = unmarked_note(low, high, marked)
    if note is not None:
        console().print(note + "\n")


def show_change(changes: Changes, row: int) -> list[str]:
    """One change in texts, in the order of HEADINGS."""
    before, after = (show_count(float(one[row])) for one in (changes.before, changes.after))
    # Of the counts as they are shown, so that a reader who subtracts one from the other finds it.
    shown = float(after.replace(",", "")) - float(before.replace(",", ""))
    low, high = min(float(changes.low[row]), shown), max(float(changes.high[row]), shown)
    return [
        before,
        after,
        show_signed(shown),
        f"{show_signed(low)} to {show_signed(high)}",
        _percent(changes, row),
        "yes" if changes.beyond_noise[row] else "no",
    ]


def show_signed(value: float) -> str:
    text = show_count(abs(value))
    return f"{'-' if value < 0 else '+'}{text}" if text.strip("0.,") else text


def _percent(changes: Changes, row: int) -> str:
    value, low, high = (
        float(ends[row]) for ends in (changes.percent, changes.percent_low, changes.percent_high)
    )
    if math.isnan(value):
        return "none before"
    if math.isinf(low) or math.isinf(high):
        return f"{value:+.0f} % (unbounded)"
    return f"{value:+.0f} % ({low:+.0f} to {high:+.0f})"


def _write(
    releases: tuple[Release, Release],
    asked: Asked,
    table: pa.Table,
    output: Path,
    overwrite: bool,
) -> None:
    from htf.export.answers import LAYERS, write_shapes, write_table
    from htf.export.provenance import provenance
    from htf.query.change import COLUMNS
    from htf.release.file import digests

    new, old = releases
    told = (f"{name}: {text.format(counted=new.counted)}" for name, text in COLUMNS.items())
    about = provenance(new, "One row per box, polygon or zone. " + " ".join(told))
    about["compared_with"] = {"release_digest": digests(old), "statement": old.statement}
    about["private"] = new.private and old.private
    if output.suffix.lower() in LAYERS:
        write_shapes(table, asked.shapes, asked.crs, output, about, "changes", overwrite=overwrite)
    else:
        write_table(table, output, about, overwrite=overwrite)
