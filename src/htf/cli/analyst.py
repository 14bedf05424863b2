"""Commands of the analyst, who has the release: `htf query`, `htf info`, `htf verify`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from htf.cli.screen import (
    MOST_ROWS_ON_SCREEN,
    console,
    overwrite_option,
    progress_bar,
    release_argument,
    show_interval,
    show_table,
    warn_if_not_private,
    where_option,
)
from htf.cli.zones import by_option, polygons_option, query_polygons
from htf.errors import InputError, ReleaseFileError
from htf.files import check_output, write_whole
from htf.protection import OF_RECORDS
from htf.query.texts import read_boxes, read_where

if TYPE_CHECKING:
    from htf.domain import Domain, FloatArray
    from htf.query.boxes import Answers
    from htf.release import Release

LONGEST_VALUE = 60

json_option = click.option("--json", "as_json", is_flag=True, help="As JSON.")


@click.command()
@release_argument
@click.option("--box", "boxes", multiple=True, metavar="W,S,E,N", help="A box; may be repeated.")
@click.option(
    "--boxes",
    "boxes_file",
    type=click.Path(path_type=Path),
    help="A CSV file of boxes, with columns west, south, east, north; and, of further axes, such as "
    "hour_low, hour_high.",
)
@polygons_option
@by_option
@where_option
@json_option
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Write the answers as CSV; those for polygons also as .geojson, .gpkg, .fgb or .parquet.",
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
    """Count the records in boxes or polygons, with a standard error and a 95 % interval.

    Of a release with more axes than those of the map, `--where hour=7:10` says which part to count;
    axes that are not named are counted whole. Without boxes it is the whole map.

    `partial` is the share of the answer that rests on partly covered boxes of the release, where
    records are assumed to be spread evenly. The interval is for the noise; after constrained
    inference it has room for uneven records too.
    """
    from htf.release import Release

    if polygons_file is not None and not (boxes or boxes_file):
        query_polygons(release_file, polygons_file, by, where, as_json, output, overwrite)
        return
    if polygons_file is not None or by is not None:
        raise InputError("give either boxes or --polygons FILE; --by is for polygons")
    if output is not None:
        check_output(output, overwrite=overwrite, inputs=[release_file, boxes_file])
    ranges = read_where(where)
    release = Release.load(release_file)
    asked = _read_boxes(release.domain, boxes, boxes_file, ranges)
    with progress_bar() as bar:
        bar.add_task(f"counting {len(asked):,} boxes", total=None)
        answers = release.count(asked)
    if as_json:
        click.echo(json.dumps(_as_objects(release.domain, asked, answers), indent=2))
    elif output is None:
        _show_answers(release.domain, asked, answers)
    if output is not None:
        _write_csv(release.domain, asked, answers, output, overwrite)
        click.echo(f"Wrote {output}: {len(asked):,} answers.", err=True)
    warn_if_not_private(release)


@click.command()
@release_argument
@json_option
def info(release_file: Path, as_json: bool) -> None:
    """Show the privacy statement, the ledger, the mechanism and its parameters."""
    from htf.release import Release

    release = Release.load(release_file)
    summary = release.summary()
    if as_json:
        click.echo(json.dumps(summary, indent=2))
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
) -> FloatArray:
    """Full rows: all low edges in the order of the axes, then all high ones."""
    from htf.query.where import full_rows

    if (boxes and boxes_file) or not (boxes or boxes_file or where):
        raise InputError(
            "say what to count: either --box W,S,E,N, or --boxes FILE.csv, or --polygons FILE; or, "
            "of the whole map, "
            "--where AXIS=LOW:HIGH"
        )
    if boxes_file is not None:
        return _read_boxes_file(boxes_file, domain, where)
    if not boxes:
        return full_rows(domain, None, where)
    return full_rows(domain, read_boxes(boxes), where)


def _read_boxes_file(
    path: Path, domain: Domain, where: dict[str, tuple[float, float]]
) -> FloatArray:
    """Further axes that the file has no columns of are those of `where`, or whole."""
    import pyarrow as pa
    from pyarrow import csv

    from htf.query.tables import edge_places, rows_of_table

    if not path.is_file():
        raise InputError(f"there is no file {path}")
    options = csv.ConvertOptions(column_types=dict.fromkeys(edge_places(domain), pa.float64()))
    try:
        table = csv.read_csv(path, convert_options=options)
    except pa.ArrowException as error:
        raise InputError(f"cannot read boxes from {path}: {error}") from None
    return rows_of_table(table, domain, where, str(path))


def _as_columns(domain: Domain, asked: FloatArray, answers: Answers) -> dict[str, Any]:
    """What was asked, under the names that a file of boxes has, and the answers."""
    from htf.query.tables import edge_places

    columns = {name: asked[:, place] for name, place in edge_places(domain).items()}
    return {**columns, **answers.to_columns()}


def _as_objects(domain: Domain, asked: FloatArray, answers: Answers) -> list[dict[str, float]]:
    columns = _as_columns(domain, asked, answers)
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def _write_csv(
    domain: Domain, asked: FloatArray, answers: Answers, path: Path, overwrite: bool
) -> None:
    import pyarrow as pa
    from pyarrow import csv

    table = pa.table(_as_columns(domain, asked, answers))
    write_whole(path, lambda unfinished: csv.write_csv(table, unfinished), overwrite=overwrite)


def _show_answers(domain: Domain, asked: FloatArray, answers: Answers) -> None:
    rows = [
        (
            *_show_asked(domain, row),
            f"{answer['count']:,.0f}",
            f"{answer['std_error']:,.1f}",
            show_interval(answer),
            f"{answer['partial']:.1%}",
        )
        for row, answer in zip(
            asked[:MOST_ROWS_ON_SCREEN], answers.to_dicts()[:MOST_ROWS_ON_SCREEN], strict=True
        )
    ]
    told = (">count", ">std. error", ">95 % interval", ">partial")
    show_table(("box", *domain.names[2:], *told), rows)
    if len(asked) > len(rows):
        console().print(f"… and {len(asked) - len(rows):,} more: use -o FILE.csv or --json")


def _show_asked(domain: Domain, row: FloatArray) -> list[str]:
    """The box on the map, and the range of each further axis."""
    size = domain.dimensions
    box = [*row[: min(size, 2)], *row[size : size + min(size, 2)]]
    ranges = zip(domain.axes[2:], row[2:size], row[size + 2 :], strict=True)
    return [
        ", ".join(f"{edge:.10g}" for edge in box),
        *(
            "all" if low <= axis.low and axis.high <= high else f"{low:g} to {high:g}"
            for axis, low, high in ranges
        ),
    ]
