"""Commands of the analyst, who has the release: `htf query`, `htf info`, `htf verify`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from htf.cli.screen import (
    console,
    progress_bar,
    read_numbers,
    show_interval,
    show_table,
    warn_if_not_private,
)
from htf.errors import InputError, ReleaseFileError
from htf.files import check_writable, write_whole
from htf.protection import OF_RECORDS

if TYPE_CHECKING:
    from htf.domain import FloatArray
    from htf.query.boxes import Answers
    from htf.release import Release

EDGES = ("west", "south", "east", "north")
MOST_ROWS_ON_SCREEN = 60
LONGEST_VALUE = 60

release_argument = click.argument(
    "release_file", metavar="RELEASE", type=click.Path(path_type=Path)
)
json_option = click.option("--json", "as_json", is_flag=True, help="As JSON.")


@click.command()
@release_argument
@click.option("--box", "boxes", multiple=True, metavar="W,S,E,N", help="A box; may be repeated.")
@click.option(
    "--boxes",
    "boxes_file",
    type=click.Path(path_type=Path),
    help="A CSV file of boxes, with columns west, south, east, north.",
)
@json_option
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write the answers as CSV.")
def query(
    release_file: Path,
    boxes: tuple[str, ...],
    boxes_file: Path | None,
    as_json: bool,
    output: Path | None,
) -> None:
    """Count the records in boxes, with a standard error and a 95 % interval.

    `partial` is the share of the answer that rests on partly covered boxes of the release, where
    records are assumed to be spread evenly. The interval is for the noise; after constrained
    inference it has room for uneven records too.
    """
    from htf.release import Release

    if output is not None:
        check_writable(output)
    asked = _read_boxes(boxes, boxes_file)
    release = Release.load(release_file)
    with progress_bar() as bar:
        bar.add_task(f"counting {len(asked):,} boxes", total=None)
        answers = release.count(asked)
    if as_json:
        click.echo(json.dumps(_as_objects(asked, answers), indent=2))
    elif output is None:
        _show_answers(asked, answers)
    if output is not None:
        _write_csv(asked, answers, output)
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
    axes = [(a.name, a.low, a.high, a.cells) for a in release.domain.axes]
    show_table(("axis", ">low", ">high", ">cells"), axes, f"Map ({release.domain.crs})")
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


def _read_boxes(boxes: tuple[str, ...], boxes_file: Path | None) -> FloatArray:
    import numpy as np

    if bool(boxes) == (boxes_file is not None):
        raise InputError("give boxes: either --box W,S,E,N, or --boxes FILE.csv")
    if boxes_file is not None:
        return _read_boxes_file(boxes_file)
    lengths = {box.count(",") + 1 for box in boxes}
    size = lengths.pop() if len(lengths) == 1 and lengths != {1} else len(EDGES)
    return np.array([read_numbers(box, "--box", size, "W,S,E,N") for box in boxes])


def _read_boxes_file(path: Path) -> FloatArray:
    import numpy as np
    import pyarrow as pa
    from pyarrow import csv

    if not path.is_file():
        raise InputError(f"there is no file {path}")
    options = csv.ConvertOptions(column_types=dict.fromkeys(EDGES, pa.float64()))
    try:
        table = csv.read_csv(path, convert_options=options)
    except pa.ArrowException as error:
        raise InputError(f"cannot read boxes from {path}: {error}") from None
    missing = [name for name in EDGES if name not in table.column_names]
    if missing:
        raise InputError(
            f"{path} must have the columns {', '.join(EDGES)}; {', '.join(missing)} is missing"
        )
    return np.column_stack([table[name].to_numpy() for name in EDGES])


def _as_columns(asked: FloatArray, answers: Answers) -> dict[str, Any]:
    size = asked.shape[1]
    names = EDGES if size == len(EDGES) else [f"edge_{number}" for number in range(size)]
    return {**dict(zip(names, asked.T, strict=True)), **answers.to_columns()}


def _as_objects(asked: FloatArray, answers: Answers) -> list[dict[str, float]]:
    columns = _as_columns(asked, answers)
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def _write_csv(asked: FloatArray, answers: Answers, path: Path) -> None:
    import pyarrow as pa
    from pyarrow import csv

    table = pa.table(_as_columns(asked, answers))
    write_whole(path, lambda unfinished: csv.write_csv(table, unfinished))


def _show_answers(asked: FloatArray, answers: Answers) -> None:
    rows = [
        (
            ", ".join(f"{edge:g}" for edge in box),
            f"{answer['count']:,.0f}",
            f"{answer['std_error']:,.1f}",
            show_interval(answer),
            f"{answer['partial']:.1%}",
        )
        for box, answer in zip(
            asked[:MOST_ROWS_ON_SCREEN], answers.to_dicts()[:MOST_ROWS_ON_SCREEN], strict=True
        )
    ]
    show_table(("box", ">count", ">std. error", ">95 % interval", ">partial"), rows)
    if len(asked) > len(rows):
        console().print(f"… and {len(asked) - len(rows):,} more: use -o FILE.csv or --json")
