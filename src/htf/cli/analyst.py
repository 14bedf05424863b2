"""Commands of the analyst, who has the release: `htf query`, `htf info`, `htf verify`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from htf.cli.screen import (
    MOST_ROWS_ON_SCREEN,
    console,
    overwrite_option,
    progress_bar,
    release_argument,
    say,
    say_json,
    show_answer_note,
    show_table,
    warn_if_not_private,
    where_option,
)
from htf.cli.types import FileName
from htf.cli.zones import by_option, polygons_option, query_polygons
from htf.errors import InputError, ReleaseFileError
from htf.estimation.level import LEVEL_TEXT
from htf.files import check_output
from htf.privacy.protection import OF_RECORDS
from htf.query.answer_texts import show_count, show_interval
from htf.query.texts import read_boxes, read_where

if TYPE_CHECKING:
    import pyarrow as pa

    from htf.frame.domain import Domain, FloatArray
    from htf.query.box_files import BoxFile
    from htf.query.boxes import Answers
    from htf.release.release import Release

LONGEST_VALUE = 60

json_option = click.option("--json", "as_json", is_flag=True, help="As JSON.")


@click.command()
@release_argument
@click.option("--box", "boxes", multiple=True, metavar="W,S,E,N", help="A box; may be repeated.")
@click.option(
    "--boxes",
    "boxes_file",
    type=FileName(),
    help="A CSV file of boxes, with columns west, south, east, north; and, of further axes, such as "
    "hour_low, hour_high. Its other columns, such as names, are kept in the answers.",
)
@polygons_option
@by_option
@where_option
@json_option
@click.option(
    "-o",
    "--output",
    type=FileName(),
    help="Write the answers, as the ending says: .csv, .json, .parquet, .geojson, .gpkg or .fgb.",
)
@overwrite_option
def query(
    release_file: Path,
    boxes: tuple[str, ...],
    boxes_file: Path | None,
    polygons_file: Path | None,
    by: str | None,
    where: tuple[str, ...],
    as_json: bool,
    output: Path | None,
    overwrite: bool,
) -> None:
    """Count the records in boxes or polygons, with a standard error and an interval.

    Of a release with more axes than those of the map, `--where hour=7:10` says which part to count;
    axes that are not named are counted whole. Without boxes it is the whole map.

    `partial` is the share of the answer that rests on partly covered boxes of the release, where
    records are assumed to be spread evenly. `inside` is the share of the box that lies on the map: the
    release knows nothing about the rest, and does not count it. The interval is for the noise; after
    constrained inference it has room for uneven records too.
    """
    from htf.export.answers import check_ending, join_columns, to_json
    from htf.query.boxes import count_boxes
    from htf.release.release import Release

    if polygons_file is not None and not (boxes or boxes_file):
        query_polygons(release_file, polygons_file, by, where, as_json, output, overwrite)
        return
    if polygons_file is not None or by is not None:
        raise InputError("give either boxes or --polygons FILE; --by is for polygons")
    if output is not None:
        check_ending(output)
        check_output(output, overwrite=overwrite, inputs=[release_file, boxes_file])
    ranges = read_where(where)
    release = Release.load(release_file)
    asked = _read_boxes(release.domain, boxes, boxes_file, ranges, output)
    with progress_bar() as bar:
        bar.add_task(f"counting {len(asked.rows):,} boxes", total=None)
        answers = count_boxes(release.domain, release.derived.answering_index, asked.rows)
    edges = _edge_columns(release.domain, asked.rows)
    table = join_columns(edges, asked.given, answers.to_columns())
    if as_json:
        say_json(to_json(table))
    elif output is None:
        _show_answers(release.domain, asked, answers)
    if output is not None:
        _write(release, asked, table, output, overwrite)
        say(f"Wrote {output}: {len(asked.rows):,} answers.", err=True)
    _tell_outside(release.domain, asked.rows, answers)
    warn_if_not_private(release)


@click.command()
@release_argument
@json_option
def info(release_file: Path, as_json: bool) -> None:
    """Show the privacy statement, the ledger, the mechanism and its parameters."""
    from htf.release.release import Release

    release = Release.load(release_file)
    summary = release.summary()
    if as_json:
        say_json(json.dumps(summary, indent=2))
        return
    screen = console()
    warn_if_not_private(release)
    screen.print(f"{release_file}: {len(release):,} boxes by {release.mechanism}\n", style="bold")
    screen.print(release.statement + "\n")
    _show_guarantee(release)
    axes = [
        (a.name, f"{a.low:.10g}", f"{a.high:.10g}", f"{a.cells:,}", f"{a.cell_width:.4g}")
        for a in release.domain.axes
    ]
    title = f"Map ({release.domain.crs}), {release.domain.size:,} cells"
    show_table(("axis", ">low", ">high", ">cells", ">width of a cell"), axes, title)
    for title, told in (("Parameters", release.parameters), ("Found with noise", release.facts)):
        rows = [(name, _shortened(str(value))) for name, value in told.items()]
        show_table(("name", ">value"), rows, title)
    if release.prior is not None:
        rows = [(name, str(value)) for name, value in release.prior.to_dict().items()]
        show_table(("name", ">value"), rows, "Public prior")
    each = "" if release.protection == OF_RECORDS else " for each record"
    lines = [
        (line.label, line.kind, line.answers, line.largest_epsilon, line.spent_after)
        for line in release.ledger
    ]
    title = f"Ledger: {release.spent} spent of {release.record_epsilon}{each}"
    show_table(("what for", "kind", ">answers", ">epsilon each", ">spent so far"), lines, title)


def _show_guarantee(release: Release) -> None:
    """For whom the epsilon is, and how a suggestion of the bound was made, where there was one."""
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


def _shortened(text: str) -> str:
    """HDMM's strategies, for one, are long; `--json` has them whole."""
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]} …"


@click.command()
@release_argument
def verify(release_file: Path) -> None:
    """Recompute what the release spent and check it against what it says."""
    from htf.verification import verify as run_checks

    checks = run_checks(release_file)
    rows = [(check.name, "ok" if check.passed else "WRONG", check.finding) for check in checks]
    show_table(("check", "result", "finding"), rows)
    wrong = [check.name for check in checks if not check.passed]
    if wrong:
        raise ReleaseFileError(f"{release_file} does not hold together: {', '.join(wrong)}")


def _read_boxes(
    domain: Domain,
    boxes: tuple[str, ...],
    boxes_file: Path | None,
    where: dict[str, tuple[float, float]],
    output: Path | None,
) -> BoxFile:
    """What is asked, the whole map where nothing is said. Refuses an output that could not be made."""
    from htf.export.answers import check_layer
    from htf.query.box_files import BoxFile, read_box_file
    from htf.query.where import full_rows

    if output is not None:
        check_layer(output, domain.crs, domain.dimensions)
    if boxes and boxes_file:
        raise InputError("give either --box W,S,E,N or --boxes FILE.csv, not both")
    if boxes_file is not None:
        return read_box_file(boxes_file, domain, where)
    return BoxFile(full_rows(domain, read_boxes(boxes) if boxes else None, where), {})


def _edge_columns(domain: Domain, rows: FloatArray) -> dict[str, FloatArray]:
    """What was asked, under the names that a file of boxes has."""
    from htf.query.tables import edge_places

    return {name: rows[:, place] for name, place in edge_places(domain).items()}


def _write(
    release: Release, asked: BoxFile, table: pa.Table, output: Path, overwrite: bool
) -> None:
    from htf.export.answers import BOXES_RULE, LAYERS, rectangles, write_shapes, write_table
    from htf.export.provenance import provenance

    about = provenance(release, BOXES_RULE)
    if output.suffix.lower() in LAYERS:
        shapes = rectangles(release.domain, asked.rows)
        crs = release.domain.crs
        write_shapes(table, shapes, crs, output, about, "boxes", overwrite=overwrite)
    else:
        write_table(table, output, about, overwrite=overwrite)


def _tell_outside(domain: Domain, rows: FloatArray, answers: Answers) -> None:
    from htf.query.outside import outside_note

    note = outside_note(domain, rows, answers.inside)
    if note is not None:
        say(note, err=True)


def _show_answers(domain: Domain, asked: BoxFile, answers: Answers) -> None:
    shown = answers.to_dicts()[:MOST_ROWS_ON_SCREEN]
    questions = _show_questions(domain, asked, len(shown))
    told = (">count", ">std. error", f">{LEVEL_TEXT} interval", ">partial", ">inside map")
    rows = [
        (
            *(values[number] for _, values in questions),
            show_count(answer["count"]),
            f"{answer['std_error']:,.1f}",
            show_interval(answer),
            f"{answer['partial']:.1%}",
            f"{answer['inside']:.1%}",
        )
        for number, answer in enumerate(shown)
    ]
    show_table((*(header for header, _ in questions), *told), rows)
    if len(answers) > len(rows):
        console().print(f"… and {len(answers) - len(rows):,} more: use -o FILE.csv or --json")
    show_answer_note(shown)


def _show_questions(domain: Domain, asked: BoxFile, number: int) -> list[tuple[str, list[str]]]:
    """Columns of the first boxes: their names, their edges on the map, the range of each further axis.

    Names that tell the boxes apart stand for the edges, which would not fit a screen beside them."""
    from htf.export.answers import naming_column

    rows = asked.rows[:number]
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
