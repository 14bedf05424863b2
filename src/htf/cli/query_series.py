"""`htf query SERIES`: the same boxes or polygons in every period, and what changed from one period to the next."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from htf.base.figures import PICTURES
from htf.cli.compare import HEADINGS, show_change, show_unmarked, without_endless
from htf.cli.query_polygons import label_column, labels_of, read_layer
from htf.cli.questions import by_name, read_asked, read_parts, show_questions
from htf.cli.screen import (
    MOST_ROWS_ON_SCREEN,
    console,
    progress_bar,
    say,
    say_json,
    show_answer_notes,
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

    from htf.frame.domain import FloatArray
    from htf.query.columns import Answers
    from htf.release.release import Release
    from htf.series.series import Series

PERIOD, BOX, ZONE = "period", "box", "zone"
TABLES = (".csv", ".xlsx", ".json", ".parquet")


@dataclass(frozen=True)
class Questions:
    """What is asked of every period: names for the screen and the picture, columns for files, and how to ask."""

    labels: list[str]
    columns: dict[str, Any]
    ask: Any  # takes a release, gives its answers
    heading: str = BOX
    rows: Any = None  # of zones

    @property
    def named(self) -> str:
        """The column that says what was asked for."""
        return ZONE if self.heading == ZONE else "asked"


def query_series(
    folder: Path,
    boxes: tuple[str, ...],
    boxes_file: Path | None,
    polygons_file: Path | None,
    by: tuple[str, ...],
    zones: tuple[str, ...],
    levels: tuple[str, ...],
    where: tuple[str, ...],
    change: bool,
    as_json: bool,
    output: Path | None,
    overwrite: bool,
) -> None:
    """Count in every period, or find what changed, and show, print, draw or write it."""
    from htf.series.series import Series

    opened = Series(folder)
    others = tuple(one for one in by if one != PERIOD)
    if opened.plan.of_zones:
        _check_zones(boxes, boxes_file, polygons_file)
    else:
        _check_map(others, zones, levels, polygons_file)
    _check_output(output, (folder, boxes_file, polygons_file), overwrite)
    with progress_bar() as bar:
        bar.add_task(f"counting {len(opened.periods):,} periods", total=None)
        if opened.plan.of_zones:
            asked = _zones_asked(opened, zones, levels, others, where)
        else:
            named = next(iter(others), None)
            asked = _questions(opened, boxes, boxes_file, polygons_file, named, where)
        table = _answer(opened, asked, change)
    written = without_endless(table) if change else table
    if as_json:
        from htf.export.answers import to_json

        say_json(to_json(written))
    elif output is None:
        (_show_changes if change else _show_counts)(table, asked)
    if output is not None:
        _write(opened, written, change, output, overwrite, asked)
    warn_if_not_private(opened.release(opened.periods[-1]))


def _check_map(
    others: tuple[str, ...],
    zones: tuple[str, ...],
    levels: tuple[str, ...],
    polygons_file: Path | None,
) -> None:
    if zones or levels:
        raise InputError(
            "this series is of a map, which has no zones of its own: leave out --zone and --level, and count "
            "zones of a layer with --polygons"
        )
    if others and polygons_file is None:
        raise InputError(f"a series is counted by period, got --by {others[0]}")


def _check_zones(
    boxes: tuple[str, ...], boxes_file: Path | None, polygons_file: Path | None
) -> None:
    if boxes or boxes_file or polygons_file:
        raise InputError(
            "this series is of zones, and knows nothing of other areas: ask for --zone NAME or --level LEVEL"
        )


def _check_output(output: Path | None, inputs: tuple[Path | None, ...], overwrite: bool) -> None:
    if output is None:
        return
    if output.suffix.lower() not in (*PICTURES, *TABLES):
        endings = ", ".join((*TABLES, *PICTURES))
        raise InputError(
            f"cannot tell the format of {output.name!r}: the name must end in one of {endings}"
        )
    check_output(output, overwrite=overwrite, inputs=inputs)


def counts_of_zones(opened: Series) -> tuple[pa.Table, FloatArray]:
    """A row for each period and zone of a series of zones; and the zones, as rows of a question."""
    asked = _zones_asked(opened, (), (), (), ())
    return _answer(opened, asked, change=False), asked.rows


def _zones_asked(
    opened: Series,
    zones: tuple[str, ...],
    levels: tuple[str, ...],
    by: tuple[str, ...],
    where: tuple[str, ...],
) -> Questions:
    """Zones by name, those of a level, or all of them."""
    domain = opened.plan.domain
    asked = read_asked(domain, (), None, read_where(where), None)
    asked = by_name(domain, asked, zones, read_parts(domain, levels, by), is_cut=False)
    labels = ["; ".join(where)]  # a part of the zones
    if asked.given:
        labels = list(map(str, next(iter(asked.given.values())).to_pylist()))

    def ask(release: Release) -> Answers:
        return release.count(asked.rows)

    return Questions(labels, dict(asked.given), ask, ZONE, asked.rows)


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

    from htf.query.frames import free_name
    from htf.series.questions import changes_of_periods, count_periods

    table = (changes_of_periods if change else count_periods)(opened, asked.ask)
    place = table["box"].to_numpy()
    labels = [*asked.labels, *(f"box {n + 1}" for n in range(len(asked.labels), place.max() + 1))]
    told = [[labels[number] for number in place]]
    table = table.set_column(table.schema.get_field_index(BOX), asked.named, told)
    for name, values in asked.columns.items():
        column = values.to_pylist() if hasattr(values, "to_pylist") else list(values)
        if name == asked.named and [*map(str, column)] == asked.labels:  # the zone again
            continue
        free = free_name(name, {one.casefold() for one in table.column_names})
        table = table.append_column(free, [[column[number] for number in np.asarray(place)]])
    return table


def _show_counts(table: pa.Table, asked: Questions) -> None:
    rows = table.slice(0, MOST_ROWS_ON_SCREEN).to_pylist()
    quantity = _quantity(rows[0]["counted"])
    texts = [(row[PERIOD], row[asked.named], *show_answer(row, quantity)) for row in rows]
    show_table((PERIOD, asked.heading, *answer_headings(quantity)), texts)
    _tell_more(table, rows)
    console().print(f"Counted: {rows[0]['counted']}.\n")
    show_answer_notes(rows, quantity)


def _show_changes(table: pa.Table, asked: Questions) -> None:
    from htf.query.change import COLUMNS, Changes

    rows = table.slice(0, MOST_ROWS_ON_SCREEN)
    names = [name for name in COLUMNS if name != "counted"]
    columns = {name: rows[name].to_numpy().copy() for name in names}
    changes = Changes(**columns, counted=rows["counted"][0].as_py())
    told = rows.select(["since", PERIOD, asked.named]).to_pylist()
    texts = [
        (row["since"], row[PERIOD], row[asked.named], *show_change(changes, number))
        for number, row in enumerate(told)
    ]
    show_table(("since", PERIOD, asked.heading, *HEADINGS), texts)
    _tell_more(table, told)
    marked = sum(table["beyond_noise"].to_pylist())
    console().print(
        f"Counted: {changes.counted}. {marked:,} of {len(table):,} changes are more than noise; the chance that any of "
        f"these marks is false is at most {OUTSIDE * 100:g} %.\n"
    )
    low, high, mark = (table[name].to_numpy() for name in ("low", "high", "beyond_noise"))
    show_unmarked(low, high, mark)


def _tell_more(table: pa.Table, rows: list[Any]) -> None:
    if len(table) > len(rows):
        console().print(f"… and {len(table) - len(rows):,} more: use -o FILE.csv or --json")


def _quantity(counted: str) -> str:
    return counted.partition(",")[0]


def _write(
    opened: Series, table: pa.Table, change: bool, output: Path, overwrite: bool, asked: Questions
) -> None:
    from htf.export.answers import write_table
    from htf.export.provenance import provenance
    from htf.query.change import COLUMNS
    from htf.query.columns import describe_columns

    last = opened.release(opened.periods[-1])
    if output.suffix.lower() in PICTURES:
        from htf.series.plot import draw_periods

        draw_periods(table, output, change=change, named=asked.named, overwrite=overwrite)
    else:
        told = (
            " ".join(
                f"{name}: {text.format(counted=last.counted)}" for name, text in COLUMNS.items()
            )
            if change
            else describe_columns(last.quantity)
        )
        rule = f"One row per period and {asked.heading} of the series {opened.folder.name}. {told}"
        about = provenance(last, rule)
        about["statement"] = f"{' '.join(opened.plan.told)} The last release says: {last.statement}"
        write_table(table, output, about, overwrite=overwrite)
    number, what = len(opened.periods), "period"
    if change:
        number, what = len(table), "change"
    say(f"Wrote {output}: {number:,} {what}{'s' if number != 1 else ''}.", err=True)
