"""`htf query SERIES`: the same boxes or polygons in every period, and what changed from one period to the next."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from htf.base.figures import PICTURES
from htf.cli.compare import HEADINGS, show_change, without_endless
from htf.cli.query_polygons import label_column, labels_of, read_layer
from htf.cli.questions import read_asked, show_questions
from htf.cli.screen import (
    MOST_ROWS_ON_SCREEN,
    console,
    progress_bar,
    say,
    say_json,
    show_table,
    warn_if_not_private,
)
from htf.errors import InputError
from htf.estimation.level import OUTSIDE
from htf.files import check_output
from htf.query.answer_texts import answer_headings, show_answer
from htf.query.texts import read_where

if TYPE_CHECKING:
    import pyarrow as pa

    from htf.query.columns import Answers
    from htf.release.release import Release
    from htf.series.series import Series

PERIOD = "period"
TABLES = (".csv", ".xlsx", ".json", ".parquet")


@dataclass(frozen=True)
class Questions:
    """What is asked of every period: names for the screen and the picture, columns for files, and how to ask."""

    labels: list[str]
    columns: dict[str, Any]
    ask: Any  # takes a release, gives its answers


def query_series(
    folder: Path,
    boxes: tuple[str, ...],
    boxes_file: Path | None,
    polygons_file: Path | None,
    by: tuple[str, ...],
    where: tuple[str, ...],
    change: bool,
    as_json: bool,
    output: Path | None,
    overwrite: bool,
) -> None:
    """Count in every period, or find what changed, and show, print, draw or write it."""
    from htf.series.series import Series

    _check(by, polygons_file, output, (folder, boxes_file), overwrite)
    opened = Series(folder)
    with progress_bar() as bar:
        bar.add_task(f"counting {len(opened.periods):,} periods", total=None)
        named = next((one for one in by if one != PERIOD), None)
        asked = _questions(opened, boxes, boxes_file, polygons_file, named, where)
        table = _answer(opened, asked, change)
    written = without_endless(table) if change else table
    if as_json:
        from htf.export.answers import to_json

        say_json(to_json(written))
    elif output is None:
        (_show_changes if change else _show_counts)(table)
    if output is not None:
        _write(opened, written, change, output, overwrite)
    warn_if_not_private(opened.release(opened.periods[-1]))


def _check(
    by: tuple[str, ...],
    polygons_file: Path | None,
    output: Path | None,
    inputs: tuple[Path | None, ...],
    overwrite: bool,
) -> None:
    others = [one for one in by if one != PERIOD]
    if others and polygons_file is None:
        raise InputError(f"a series is counted by period, got --by {others[0]}")
    if output is not None:
        if output.suffix.lower() not in (*PICTURES, *TABLES):
            endings = ", ".join((*TABLES, *PICTURES))
            raise InputError(
                f"cannot tell the format of {output.name!r}: the name must end in one of {endings}"
            )
        check_output(output, overwrite=overwrite, inputs=[*inputs, polygons_file])


def _questions(
    opened: Series,
    boxes: tuple[str, ...],
    boxes_file: Path | None,
    polygons_file: Path | None,
    named: str | None,
    where: tuple[str, ...],
) -> Questions:
    from htf.query.tables import edge_columns

    domain, ranges = opened.plan.domain, read_where(where)
    if polygons_file is not None:
        if boxes or boxes_file:
            raise InputError("give boxes or --polygons FILE, only one of them")
        frame = read_layer(polygons_file)
        labels = labels_of(frame, label_column(frame, named, polygons_file))
        return Questions(
            labels, {"label": labels}, lambda release: release.count_polygons(frame, where=ranges)
        )
    asked = read_asked(domain, boxes, boxes_file, ranges, None)
    shown = show_questions(domain, asked, {})
    texts = [" ".join(parts) for parts in zip(*(texts for _, texts in shown), strict=True)]
    labels = texts if boxes or boxes_file else ["the whole map"]
    columns = {**edge_columns(domain, asked.rows), **asked.given}

    def ask(release: Release) -> Answers:
        return release.count(asked.rows)

    return Questions(labels, columns, ask)


def _answer(opened: Series, asked: Questions, change: bool) -> pa.Table:
    """The answers of all periods, with what was asked beside them."""
    import numpy as np

    from htf.series.questions import changes_of_periods, count_periods

    table = (changes_of_periods if change else count_periods)(opened, asked.ask)
    place = table["box"].to_numpy()
    labels = [*asked.labels, *(f"box {n + 1}" for n in range(len(asked.labels), place.max() + 1))]
    table = table.set_column(
        table.schema.get_field_index("box"), "asked", [[labels[number] for number in place]]
    )
    for name, values in asked.columns.items():
        column = values.to_pylist() if hasattr(values, "to_pylist") else list(values)
        table = table.append_column(name, [[column[number] for number in np.asarray(place)]])
    return table


def _show_counts(table: pa.Table) -> None:
    rows = table.slice(0, MOST_ROWS_ON_SCREEN).to_pylist()
    quantity = _quantity(rows[0]["counted"])
    texts = [(row[PERIOD], row["asked"], *show_answer(row, quantity)) for row in rows]
    show_table((PERIOD, "box", *answer_headings(quantity)), texts)
    _tell_more(table, rows)
    console().print(f"Counted: {rows[0]['counted']}.\n")


def _show_changes(table: pa.Table) -> None:
    from htf.query.change import Changes

    rows = table.slice(0, MOST_ROWS_ON_SCREEN)
    names = [name for name in Changes.__dataclass_fields__ if name != "counted"]
    columns = {name: rows[name].to_numpy().copy() for name in names}
    changes = Changes(**columns, counted=rows["counted"][0].as_py())
    told = rows.select(["since", PERIOD, "asked"]).to_pylist()
    texts = [
        (row["since"], row[PERIOD], row["asked"], *show_change(changes, number))
        for number, row in enumerate(told)
    ]
    show_table(("since", PERIOD, "box", *HEADINGS), texts)
    _tell_more(table, told)
    marked = sum(table["beyond_noise"].to_pylist())
    console().print(
        f"Counted: {changes.counted}. {marked:,} of {len(table):,} changes are more than noise; the chance that any of "
        f"these marks is false is at most {OUTSIDE * 100:g} %.\n"
    )


def _tell_more(table: pa.Table, rows: list[Any]) -> None:
    if len(table) > len(rows):
        console().print(f"… and {len(table) - len(rows):,} more: use -o FILE.csv or --json")


def _quantity(counted: str) -> str:
    return counted.partition(",")[0]


def _write(opened: Series, table: pa.Table, change: bool, output: Path, overwrite: bool) -> None:
    from htf.export.answers import write_table
    from htf.export.provenance import provenance
    from htf.query.change import COLUMNS
    from htf.query.columns import describe_columns

    last = opened.release(opened.periods[-1])
    if output.suffix.lower() in PICTURES:
        from htf.series.plot import draw_periods

        draw_periods(table, output, change=change, overwrite=overwrite)
    else:
        told = (
            " ".join(
                f"{name}: {text.format(counted=last.counted)}" for name, text in COLUMNS.items()
            )
            if change
            else describe_columns(last.quantity)
        )
        rule = f"One row per period and box of the series {opened.folder.name}. {told}"
        about = provenance(last, rule)
        about["statement"] = f"{' '.join(opened.plan.told)} The last release says: {last.statement}"
        write_table(table, output, about, overwrite=overwrite)
    say(f"Wrote {output}: {len(opened.periods):,} periods.", err=True)
