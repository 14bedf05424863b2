"""The questions of `htf query` and `htf compare`: boxes and names, read from options and shown on the screen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from htf.cli.screen import MOST_ROWS_ON_SCREEN, say
from htf.errors import InputError
from htf.query.texts import read_boxes

if TYPE_CHECKING:
    from htf.frame.domain import Domain, FloatArray
    from htf.query.box_files import BoxFile
    from htf.query.named import Part
    from htf.query.where import Where


def read_asked(
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


def read_parts(domain: Domain, levels: tuple[str, ...], by: tuple[str, ...]) -> list[Part]:
    """The axes that get a row for each of their names or steps."""
    from htf.query.named import read_by, read_level

    parts = [part for text in levels for part in read_level(domain, text)]
    return parts + [part for text in by for part in read_by(domain, text)]


def by_name(
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


def tell_outside(domain: Domain, rows: FloatArray, inside: FloatArray) -> None:
    from htf.query.outside import outside_note

    note = outside_note(domain, rows, inside)
    if note is not None:
        say(note, err=True)


def show_questions(
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
    from htf.query.where import show_range

    size = domain.dimensions
    numbers = range(_on_map(domain), size)
    return [show_range(domain.axes[n], row[n], row[size + n], levels.get(n)) for n in numbers]
