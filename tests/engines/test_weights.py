"""Weights of records on every engine and kind of source, against a slow reference in Python."""

from __future__ import annotations

import csv
import hashlib
import math
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import ibis
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from htf import Axis, Domain, FrequencyMatrix, read_points
from support import counted, naive_cell

DOMAIN = Domain((Axis("x", -1.0, 1.7, 7), Axis("y", 0.1, 0.9, 5)))
MOST = 6
INFINITE = 2.0**1023  # from here on a number counts as infinite
ODD: list[float | None] = [
    0.0, -0.0, 5e-324, -5e-324, -0.5, -1.0, -1e300, 0.5, math.nextafter(1, 0), 1.0, math.nextafter(3, 0), 3.0,
    math.nextafter(6, 0), 6.0, math.nextafter(6, 9), 6.5, math.nextafter(7, 0), 7.0, 7.5, 40.0, 2.0**31, 2.0**53, 2.0**63,
    1e19, 1e300, 1.7e308, math.nan, math.inf, -math.inf, None,
]  # fmt: skip
CASES: dict[str, dict[str, Any]] = {
    "records": {},
    "people": {"user": "person", "max_records": 3},
    "people by day": {"user": "person", "max_records": 2, "time": "second", "per": "day"},
    "one each": {"user": "person", "max_records": 1, "time": "second"},
}


@dataclass(frozen=True)
class Row:
    x: float
    y: float
    person: str | None
    second: int | None
    weight: float | None


def make_rows(number: int = 1200) -> list[Row]:
    """Few places and moments, so that many records differ in nothing but their weight."""
    draw = np.random.default_rng(23)
    xs, ys = draw.uniform(-1.1, 1.8, 12), draw.uniform(0.0, 1.0, 12)
    people = ["ann", "bob", "it's", "Ωμέγα", "12", None]
    rows = []
    for _ in range(number):
        odd = draw.random() < 0.4
        weight = ODD[int(draw.integers(len(ODD)))] if odd else float(draw.integers(0, 10))
        second = None if draw.random() < 0.1 else int(draw.integers(0, 4)) * 50_000
        person = people[int(draw.integers(len(people)))]
        place = draw.integers(12, size=2)
        rows.append(Row(float(xs[place[0]]), float(ys[place[1]]), person, second, weight))
    return rows


ROWS = make_rows()


def naive_weight(weight: float | None) -> int | None:
    """0 to MOST, or one more for all that is larger; None for what is no weight."""
    if weight is None or not 0 <= weight < INFINITE:
        return None
    return min(math.floor(weight), MOST + 1)


def expected(case: str) -> tuple[dict[tuple[int, ...], int], tuple[int, int]]:
    """Sums of weights by cell, and the numbers of records within the limit and above it."""
    asked = CASES[case]
    mine: dict[Any, list[tuple[int, int, int]]] = defaultdict(list)
    for row in ROWS:
        cell, weight = naive_cell((row.x, row.y), DOMAIN), naive_weight(row.weight)
        no_period = "per" in asked and row.second is None
        if cell is None or weight is None or ("user" in asked and not row.person) or no_period:
            continue
        time = (row.second or 0) if "time" in asked else 0
        period = (row.second or 0) // 86_400 if "per" in asked else None
        mine[row.person if "user" in asked else None, period].append((cell, time, weight))
    sums: Counter[int] = Counter()
    cut: Counter[bool] = Counter()
    for (person, _), found in mine.items():
        copies: Counter[tuple[int, int]] = Counter()
        ranked = []
        for cell, time, weight in sorted(found):
            parts = (person, cell, time, copies[cell, time])
            copies[cell, time] += 1
            key = hashlib.md5(",".join(map(str, parts)).encode()).hexdigest()[:12]
            ranked.append((key, *parts[1:], weight))
        for _, cell, _, _, weight in sorted(ranked)[: asked.get("max_records")]:
            sums[cell] += min(weight, MOST)
            cut[weight > MOST] += 1
    shape = DOMAIN.shape
    cells = {tuple(map(int, np.unravel_index(c, shape))): n for c, n in sums.items() if n > 0}
    return cells, (cut[False], cut[True])


def check(matrix: FrequencyMatrix, case: str) -> None:
    sums, cut = expected(case)
    assert counted(matrix) == sums
    assert matrix.exact_weighed is not None
    assert matrix.exact_weighed.exact == cut
    assert min(cut) > 0
    protection = matrix.protection
    assert (protection.weight, protection.max_weight) == ("weight", MOST)
    assert protection.most_shares == MOST * CASES[case].get("max_records", 1)


def read(source: Any, case: str, **options: Any) -> FrequencyMatrix:
    asked = {**CASES[case], **options}
    return read_points(source, DOMAIN, ["x", "y"], weight="weight", max_weight=MOST, **asked)


def arrow_table() -> pa.Table:
    return pa.table({
        "x": pa.array([row.x for row in ROWS], pa.float64()),
        "y": pa.array([row.y for row in ROWS], pa.float64()),
        "person": pa.array([row.person for row in ROWS], pa.string()),
        "second": pa.array([row.second for row in ROWS], pa.int64()),
        "weight": pa.array([row.weight for row in ROWS], pa.float64()),
    })  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("weights")
    table = arrow_table()
    pq.write_table(table, place / "points.parquet", row_group_size=100)
    with open(place / "points.csv", "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(table.column_names)
        for row in ROWS:
            odd = ["", "many", "3 or 4", "1,5"][row.second is None :][0]
            weight = odd if row.weight is None else f" {row.weight!r} "
            second = "" if row.second is None else row.second
            writer.writerow([row.x, row.y, row.person or "", second, weight])
    with duckdb.connect(str(place / "points.duckdb")) as connection:
        connection.register("frame", table)
        connection.execute("CREATE TABLE points AS SELECT * FROM frame")
        connection.execute("CREATE VIEW seen AS SELECT * FROM points")
    with closing(sqlite3.connect(place / "points.sqlite")) as connection:
        connection.execute("CREATE TABLE points (x, y, person, second, weight)")
        rows = [(r.x, r.y, r.person, r.second, r.weight) for r in ROWS]
        connection.executemany("INSERT INTO points VALUES (?, ?, ?, ?, ?)", rows)
        connection.commit()
    return place


@pytest.fixture(scope="module")
def server(postgres: Any) -> Iterator[str]:
    import psycopg

    address = str(postgres.get_uri())
    with psycopg.connect(address) as connection:
        connection.execute(
            "CREATE TABLE rides (x float8, y float8, person text, second int8, weight float8)"
        )
        with connection.cursor().copy("COPY rides FROM STDIN") as copy:
            for row in ROWS:
                copy.write_row((row.x, row.y, row.person, row.second, row.weight))
        connection.execute("CREATE VIEW seen_rides AS SELECT * FROM rides")
    yield address
    with psycopg.connect(address) as connection:
        connection.execute("DROP TABLE rides CASCADE")


Open = Callable[[Path, Any], tuple[Any, dict[str, Any]]]
LOCAL: dict[str, Open] = {
    "parquet": lambda place, _: (place / "points.parquet", {}),
    "csv": lambda place, _: (place / "points.csv", {}),
    "duckdb": lambda place, _: (place / "points.duckdb", {"table": "points"}),
    "duckdb view": lambda place, _: (place / "points.duckdb", {"table": "seen"}),
    "duckdb query": lambda place, _: (place / "points.duckdb", {"sql": "FROM points"}),
    "sqlite": lambda place, _: (place / "points.sqlite", {"table": "points"}),
    "arrow": lambda *_: (arrow_table(), {}),
    "pandas": lambda *_: (arrow_table().to_pandas().astype({"second": "Int64"}), {}),
    "polars": lambda *_: (pl.from_arrow(arrow_table()), {}),
    "ibis": lambda *_: (ibis.memtable(arrow_table()), {}),
}
IN_SPARK: dict[str, Open] = {
    "spark parquet": lambda place, _: (place / "points.parquet", {"engine": "spark"}),
    "spark csv": lambda place, _: (place / "points.csv", {"engine": "spark"}),
    "spark frame": lambda place, session: (session.read.parquet(str(place / "points.parquet")), {}),
}
ON_SERVER = {
    "postgres": {"table": "rides"},
    "postgres view": {"table": "public.seen_rides"},
    "postgres query": {"sql": "SELECT * FROM rides"},
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", LOCAL)
def test_here(name: str, case: str, folder: Path) -> None:
    source, options = LOCAL[name](folder, None)
    check(read(source, case, **options), case)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", ON_SERVER)
def test_in_postgresql(name: str, case: str, server: str) -> None:
    check(read(server, case, **ON_SERVER[name]), case)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", IN_SPARK)
def test_in_spark(name: str, case: str, folder: Path, spark: Any) -> None:
    source, options = IN_SPARK[name](folder, spark)
    check(read(source, case, **options), case)


KINDS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int8": (pa.int8(), [-3, 0, 5, 6, 7, 120, None]),
    "int64": (pa.int64(), [-(2**62), 0, 5, 6, 7, 2**62, None]),
    "uint64": (pa.uint64(), [0, 5, 6, 7, 2**63, 2**64 - 1, None]),
    "float32": (pa.float32(), [-0.5, 0.0, 5.75, 6.5, 7.0, 3e38, math.nan, math.inf, None]),
    "decimal": (pa.decimal128(12, 2), ["-0.01", "0.00", "5.99", "6.99", "7.00", "9999.50", None]),
}


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("kind", KINDS)
def test_types_of_weights(kind: str, tmp_path: Path) -> None:
    arrow, values = KINDS[kind]
    if kind == "decimal":
        values = [None if value is None else Decimal(value) for value in values]
    size = len(values)
    columns = {"x": np.linspace(-0.9, 1.6, size), "y": np.full(size, 0.5)}
    table = pa.table({**columns, "weight": pa.array(values, arrow)})
    pq.write_table(table, tmp_path / "points.parquet")
    wanted: Counter[tuple[int, ...]] = Counter()
    for x, value in zip(columns["x"], values, strict=True):
        weight = naive_weight(None if value is None else float(value))
        cell = naive_cell((float(x), 0.5), DOMAIN)
        if weight:
            assert cell is not None
            wanted[tuple(map(int, np.unravel_index(cell, DOMAIN.shape)))] += min(weight, MOST)
    for options in ({}, {"engine": "spark"}):
        assert counted(read(tmp_path / "points.parquet", "records", **options)) == wanted


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("rest", [50.0, 3.0, 0.0, -4.0])
def test_one_nan_is_left_out_whatever_the_statistics_of_the_file_say(
    rest: float, tmp_path: Path
) -> None:
    """Statistics of Parquet files ignore NaN, so an engine may take a comparison for granted."""
    size = 1000
    weights = np.full(size, rest)
    weights[[10, 500]] = math.nan
    table = pa.table({"x": np.zeros(size), "y": np.full(size, 0.5), "weight": weights})
    pq.write_table(table, tmp_path / "points.parquet", row_group_size=100)
    each = naive_weight(rest)
    for options in ({}, {"engine": "spark"}):
        matrix = read(
            tmp_path / "points.parquet", "records", allow_empty=True, tell=lambda _: None, **options
        )
        kept = 0 if each is None else size - 2
        assert int(matrix.exact_counts.sum()) == kept * min(each or 0, MOST)
        assert matrix.exact_weighed is not None
        assert sum(matrix.exact_weighed.exact) == kept
