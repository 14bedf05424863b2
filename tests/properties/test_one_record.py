"""With any one record added anywhere, no other record is read differently, and a file that could be read
still can. Else one record would decide about others, which no noise covers."""

from __future__ import annotations

import csv
import math
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from htf import Axis, Domain, read_points
from odd_records import (
    COLUMNS,
    DOMAIN,
    PLACES,
    TIMES,
    Row,
    expected,
    odd_rows,
    plain_rows,
    to_table,
)
from support import NaiveRecord, counted, naive_counts


def as_parquet(table: pa.Table, folder: Path) -> tuple[Any, dict[str, Any]]:
    pq.write_table(table, folder / "points.parquet")
    return folder / "points.parquet", {}


def as_small_groups(table: pa.Table, folder: Path) -> tuple[Any, dict[str, Any]]:
    """Each group of rows has statistics of its own."""
    pq.write_table(table, folder / "points.parquet", row_group_size=2)
    return folder / "points.parquet", {}


def as_files(table: pa.Table, folder: Path) -> tuple[Any, dict[str, Any]]:
    half = len(table) // 2
    pq.write_table(table[:half], folder / "a.parquet")
    pq.write_table(table[half:], folder / "b.parquet")
    return folder, {}


def as_database(table: pa.Table, folder: Path) -> tuple[Any, dict[str, Any]]:
    with duckdb.connect(str(folder / "points.duckdb")) as connection:
        connection.register("given", table)
        connection.execute("CREATE TABLE points AS SELECT * FROM given")
    return folder / "points.duckdb", {"table": "points"}


def as_arrow(table: pa.Table, _: Path) -> tuple[Any, dict[str, Any]]:
    return table, {}


Source = Callable[[pa.Table, Path], tuple[Any, dict[str, Any]]]
Kinds = tuple[str, str, str]  # of places and of times, and the column whose odd values are tried


def read(
    rows: list[Row],
    kinds: Kinds,
    source: Source,
    most: int | None,
    place: Path,
) -> dict[tuple[int, ...], int]:
    place.mkdir()
    given, options = source(to_table(rows, PLACES[kinds[0]], TIMES[kinds[1]]), place)
    if most is not None:
        options |= {"user": "person", "max_records": most}
    return counted(read_points(given, DOMAIN, COLUMNS, **options))


KINDS: list[Kinds] = [
    *((places, "whole seconds", "x") for places in PLACES),
    *(("doubles", times, "t") for times in TIMES),
]


def check_additions(
    kinds: Kinds, source: Source, most: int | None, step: int, folder: Path
) -> None:
    """Every `step`-th odd record, each alone among the others; against a reference that reads record by
    record."""
    places, times = PLACES[kinds[0]], TIMES[kinds[1]]
    rows = plain_rows(places, times)
    assert read(rows, kinds, source, most, folder / "without") == expected(rows, most)
    of_places = len(places.odd)  # which come first
    odd_ones = odd_rows(places, times)[
        slice(of_places) if kinds[2] == "x" else slice(of_places, None)
    ]
    for number, odd in enumerate(odd_ones[::step]):
        where = (7 * number) % (len(rows) + 1)
        added = [*rows[:where], odd, *rows[where:]]
        found = read(added, kinds, source, most, folder / str(number))
        assert found == expected(added, most), odd


@pytest.mark.parametrize("most", [None, 3])
@pytest.mark.parametrize("kinds", KINDS)
def test_no_record_decides_about_others(kinds: Kinds, most: int | None, tmp_path: Path) -> None:
    check_additions(kinds, as_parquet, most, 1, tmp_path)


@pytest.mark.parametrize("source", [as_small_groups, as_files, as_database, as_arrow])
@pytest.mark.parametrize("kinds", KINDS)
def test_no_record_decides_about_others_in_other_sources(
    kinds: Kinds, source: Source, tmp_path: Path
) -> None:
    check_additions(kinds, source, 3, 4, tmp_path)


@pytest.mark.parametrize("most", [None, 2])
def test_no_record_is_put_into_the_last_cell_for_want_of_one(
    most: int | None, tmp_path: Path
) -> None:
    """Of an axis whose last numbers are rounded across its upper edge, and brought back."""
    axis = Axis("x", -1.7906999186491817, 0.18340025505212498, 777)
    last = math.nextafter(axis.high, axis.low)
    assert axis.to_cells(np.array([last]))[0] >= axis.cells
    for others in (
        [0.1, 0.1, last],
        [0.1, 0.1, last, 5.0],
    ):  # the second beyond what statistics prove
        places = [*others, math.nan]
        table = pa.table({"x": places, "person": ["one"] * len(places)})
        options: dict[str, Any] = {} if most is None else {"user": "person", "max_records": most}
        pq.write_table(table, tmp_path / "points.parquet")
        found = read_points(tmp_path / "points.parquet", Domain((axis,)), ["x"], **options)
        records: list[NaiveRecord] = [((place,), "one", None) for place in places]
        assert counted(found) == naive_counts(records, Domain((axis,)), most)


@pytest.mark.parametrize("most", [None, 2])
def test_no_field_of_a_text_file_decides_about_others(most: int | None, tmp_path: Path) -> None:
    rows = plain_rows(PLACES["doubles"], TIMES["text"])
    said = [[repr(row.x), repr(row.y), row.person, row.time] for row in rows]
    good = rows[0]
    odd_fields = [
        ("x", text) for text in (
            "", "nan", "NaN", "inf", "-Infinity", "1e999", "-1e999", "0x1", "1_0", "½", "٣", "1,5", " ", "\t",
            "NULL", "12.5.3", "--1", '"', "a\nb", "9" * 400, "é" * 1000, "x" * 10**6,
        )
    ] + [("t", text) for text in TIMES["text"].odd if isinstance(text, str)]  # fmt: skip
    for number, (column, text) in enumerate(odd_fields):
        odd = [
            text if column == "x" else repr(good.x),
            repr(good.y),
            "somebody new",
            text if column == "t" else good.time,
        ]
        where = (5 * number) % (len(said) + 1)
        path = tmp_path / f"{number}.csv"
        with open(path, "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(
                [["x", "y", "person", "t"], *said[:where], odd, *said[where:]]
            )
        second = good.second if column == "x" else TIMES["text"].odd[text]
        x = None if column == "x" else good.x
        new = Row(x, good.y, "somebody new", "", second)
        options: dict[str, Any] = {} if most is None else {"user": "person", "max_records": most}
        found = counted(read_points(path, DOMAIN, COLUMNS, **options))
        assert found == expected([*rows, new], most), (column, text[:20])


@pytest.mark.parametrize("most", [None, 1])
def test_false_statistics_decide_nothing(most: int | None, tmp_path: Path) -> None:
    """They say of a damaged file that all its records are inside. Each row is looked at all the same."""
    path = tmp_path / "points.parquet"
    table = pa.table({"x": [0.1, 0.2, 7.5], "y": [0.5, 0.5, 0.5], "person": ["a", "b", "c"]})
    pq.write_table(table, path, use_dictionary=False, compression="none")
    data = path.read_bytes()
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    told, false = struct.pack("<d", 7.5), struct.pack("<d", 0.2)
    assert data[footer:].count(told) > 0
    path.write_bytes(data[:footer] + data[footer:].replace(told, false))
    assert pq.ParquetFile(path).metadata.row_group(0).column(0).statistics.max == 0.2
    options: dict[str, Any] = {} if most is None else {"user": "person", "max_records": most}
    matrix = read_points(path, Domain(DOMAIN.axes[:2]), ["x", "y"], **options)
    assert int(matrix.exact_counts.sum()) == 2
