"""With any one record added anywhere, no other record is read differently, and a file that could be read
still can. Else one record would decide about others, which no noise covers."""

from __future__ import annotations

import csv
import math
import struct
from collections.abc import Callable, Mapping
from itertools import product
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
    KEPT,
    PER_DAY,
    PER_MONTH,
    PLACES,
    SHARED,
    TIMES,
    Row,
    expected,
    odd_rows,
    plain_rows,
    to_table,
)
from support import NaiveRecord, counted, naive_counts, naive_shares
from telling import telling


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
    rows: list[Row], kinds: Kinds, source: Source, asked: Mapping[str, Any], place: Path
) -> dict[tuple[int, ...], int]:
    place.mkdir()
    given, options = source(to_table(rows, PLACES[kinds[0]], TIMES[kinds[1]]), place)
    return counted(read_points(given, DOMAIN, COLUMNS, **options, **asked))


ASKED: dict[str, dict[str, Any]] = {
    "records": {},
    "kept": KEPT,
    "shared": SHARED,
    "shared per month": PER_MONTH,
}
KINDS: list[Kinds] = [
    *((places, "whole seconds", "x") for places in PLACES),
    *(("doubles", times, "t") for times in TIMES),
]
SOURCES: list[Source] = [as_small_groups, as_files, as_database, as_arrow]


def at(case: Kinds | str) -> int:
    """The place of kinds, or of a way to ask, in its table."""
    return list(ASKED).index(case) if isinstance(case, str) else KINDS.index(case)


def check_additions(
    kinds: Kinds, source: Source, asked: Mapping[str, Any], step: int, folder: Path
) -> None:
    """Every `step`-th odd record, each alone among the others; against a reference that reads record by
    record."""
    places, times = PLACES[kinds[0]], TIMES[kinds[1]]
    rows = plain_rows(places, times)
    assert read(rows, kinds, source, asked, folder / "without") == expected(rows, asked)
    of_places = len(places.odd)  # which come first
    odd_ones = odd_rows(places, times)[
        slice(of_places) if kinds[2] == "x" else slice(of_places, None)
    ]
    for number, odd in enumerate(odd_ones[::step]):
        where = (7 * number) % (len(rows) + 1)
        added = [*rows[:where], odd, *rows[where:]]
        found = read(added, kinds, source, asked, folder / str(number))
        assert found == expected(added, asked), odd


@pytest.mark.parametrize(
    ("kinds", "asked"),  # every kind is asked in two of four ways
    telling(product(KINDS, ASKED), lambda kinds, asked: (at(kinds) + at(asked)) % 2 == 0),
)
def test_no_record_decides_about_others(kinds: Kinds, asked: str, tmp_path: Path) -> None:
    check_additions(kinds, as_parquet, ASKED[asked], 3 if "shared" in asked else 1, tmp_path)


@pytest.mark.parametrize(
    ("kinds", "source"),  # every kind is in one source, every source has two kinds at least
    telling(product(KINDS, SOURCES), lambda kinds, source: at(kinds) % 4 == SOURCES.index(source)),
)
def test_no_record_decides_about_others_in_other_sources(
    kinds: Kinds, source: Source, tmp_path: Path
) -> None:
    for name, asked, step in (("kept", KEPT, 4), ("shared", SHARED, 8)):
        folder = tmp_path / name
        folder.mkdir()
        check_additions(kinds, source, asked, step, folder)


@pytest.mark.parametrize("asked", [SHARED, PER_DAY, PER_MONTH])
@pytest.mark.parametrize("times", TIMES)
def test_records_without_a_time_count_where_no_period_is_asked_for(
    times: str, asked: dict[str, Any], tmp_path: Path
) -> None:
    """On a map without hours. In a period, such records have no place; the curator hears how many."""
    kinds, flat = (PLACES["doubles"], TIMES[times]), Domain(DOMAIN.axes[:2])
    rows = [*plain_rows(*kinds), *odd_rows(*kinds)]
    given, options = as_parquet(to_table(rows, *kinds), tmp_path)
    said: list[str] = []
    found = read_points(given, flat, COLUMNS[:2], **options, **asked, tell=said.append)
    assert counted(found) == expected(rows, asked, flat)
    lines = [line.strip() for note in said for line in note.splitlines() if "'t'" in line]
    timeless = sum(row.second is None for row in rows)
    left_out = [line for line in lines if "left out: the column 't'" in line]
    told = sum(int(line.split()[0]) for line in left_out)
    # The last odd row has no readable time either way; `second` says so of some times that are good.
    assert told <= timeless
    assert (told > 0) == ("per" in asked and timeless > 1)
    assert not any("taken to be of one moment" in line for line in lines)


@pytest.mark.parametrize("most", [None, 2, "shared"])
def test_no_record_is_put_into_the_last_cell_for_want_of_one(
    most: int | str | None, tmp_path: Path
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
        options: dict[str, Any] = {} if most is None else {"user": "person"}
        if isinstance(most, int):
            options["max_records"] = most
        pq.write_table(table, tmp_path / "points.parquet")
        found = read_points(tmp_path / "points.parquet", Domain((axis,)), ["x"], **options)
        records: list[NaiveRecord] = [((place,), "one", None) for place in places]
        if isinstance(most, str):
            assert counted(found) == naive_shares(records, Domain((axis,)))
        else:
            assert counted(found) == naive_counts(records, Domain((axis,)), most)


@pytest.mark.parametrize("asked", telling(ASKED, {"records", "shared"}.__contains__))
def test_no_field_of_a_text_file_decides_about_others(asked: str, tmp_path: Path) -> None:
    options = ASKED[asked]
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
        found = counted(read_points(path, DOMAIN, COLUMNS, **options))
        assert found == expected([*rows, new], options), (column, text[:20])


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
