"""Every engine and every kind of source against each other, and against a slow reference in Python."""

from __future__ import annotations

import csv
import datetime as dt
import math
import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import duckdb
import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from htf import Axis, Domain, read_people_by_box, read_points
from support import NaiveRecord, counted, naive_counts, naive_people, naive_shares

DOMAIN = Domain((Axis("x", -1.0, 1.7, 7), Axis("y", 0.1, 0.9, 5)))
EPOCH = dt.datetime(1970, 1, 1)
PEOPLE = [
    "ann", "ann ", " ann", "Ann", "bob", "bob,2", 'he said "no"', "it's", "two\nlines", "a\tb", "Ωμέγα",
    "名前", "e\u0301", "é", "🙂", "-1", "01", "1", "1.0", "null", "NULL", "None", "\\N", "%s", "{x}", "$1", "", None,
]  # fmt: skip
MOMENTS = [
    dt.datetime(1883, 11, 18, 12, 3, 58, 1), dt.datetime(1969, 12, 31, 23, 59, 59, 999_999), EPOCH,
    dt.datetime(1970, 1, 1, 0, 59, 59, 999_999), dt.datetime(2000, 2, 29, 23, 59, 59, 500_000),
    dt.datetime(2038, 1, 19, 3, 14, 8), dt.datetime(2262, 4, 11, 23, 47), dt.datetime(2020, 12, 31, 23, 59, 59), None,
]  # fmt: skip


@dataclass(frozen=True)
class Row:
    x: float | None
    y: float | None
    person: str | None
    moment: dt.datetime | None

    @property
    def second(self) -> int | None:
        """Rounded down, before 1970 too."""
        if self.moment is None:
            return None
        return (self.moment - EPOCH) // dt.timedelta(seconds=1)


def nasty(axis: Axis) -> list[float | None]:
    """Edges of cells, what is just beside them, and what is no place at all."""
    edges = axis.from_cells(np.arange(axis.cells + 1))
    beside = [*np.nextafter(edges, -np.inf), *np.nextafter(edges, np.inf)]
    odd = [0.0, -0.0, 5e-324, -5e-324, math.nan, math.inf, -math.inf, 1e308, -1e308, 1e17, None]
    return [*map(float, [*edges, *beside]), *odd]


def make_rows(number: int = 1500) -> list[Row]:
    """Most of a few people, so that many have too many; a third of the numbers nasty."""
    draw = np.random.default_rng(11)

    def pick(pool: list[Any]) -> Any:
        return pool[int(draw.integers(len(pool)))]

    def place(axis: Axis) -> float | None:
        if draw.random() < 0.35:
            return pick(nasty(axis))  # type: ignore[no-any-return]
        return float(draw.uniform(axis.low - 0.1, axis.high + 0.1))

    def moment() -> dt.datetime | None:
        if draw.random() < 0.3:
            return pick(MOMENTS)  # type: ignore[no-any-return]
        return dt.datetime(2020, 2, 28) + dt.timedelta(seconds=float(draw.uniform(0, 200_000)))

    x, y = DOMAIN.axes
    rows = [Row(place(x), place(y), pick(PEOPLE), moment()) for _ in range(number)]
    return rows + rows[::5]  # the same to the last digit


ROWS = make_rows()


def as_text(row: Row, number: int) -> list[str]:
    """As CSV files may have it: ISO 8601 in several forms, all of them without a zone."""
    moment = row.moment
    if moment is None:
        said = ["", "unknown"][number % 2]
    elif moment.time() == dt.time():
        said = [moment.date().isoformat(), moment.isoformat(), f"{moment}"][number % 3]
    else:
        said = [moment.isoformat(), f" {moment} ", moment.isoformat().replace(".", ",")][number % 3]
    numbers = ["" if value is None else repr(value) for value in (row.x, row.y)]
    return [*numbers, row.person or "", said]


def write_csv(path: Path) -> Path:
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_MINIMAL, lineterminator="\n")
        writer.writerow(["x", "y", "person", "moment"])
        writer.writerows(as_text(row, number) for number, row in enumerate(ROWS))
    return path


def arrow_table(unit: str = "us", zone: str | None = None) -> pa.Table:
    return pa.table({
        "x": pa.array([row.x for row in ROWS], pa.float64()),
        "y": pa.array([row.y for row in ROWS], pa.float64()),
        "person": pa.array([row.person for row in ROWS], pa.string()),
        "moment": pa.array([row.moment for row in ROWS], pa.timestamp("us", zone)).cast(
            pa.timestamp(unit, zone), safe=False
        ),
    })  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("engines")
    table = arrow_table()
    pq.write_table(table, place / "points.parquet", row_group_size=300)
    write_csv(place / "points.csv")
    with duckdb.connect(str(place / "points.duckdb")) as connection:
        connection.register("frame", table)
        connection.execute("CREATE TABLE points AS SELECT * FROM frame")
        connection.execute("CREATE VIEW seen AS SELECT * FROM points")
    with closing(sqlite3.connect(place / "points.sqlite")) as connection:
        connection.execute("CREATE TABLE points (x, y, person, moment)")
        rows = [(r.x, r.y, r.person, None if r.moment is None else str(r.moment)) for r in ROWS]
        connection.executemany("INSERT INTO points VALUES (?, ?, ?, ?)", rows)
        connection.execute("CREATE VIEW seen AS SELECT * FROM points")
        connection.commit()
    return place


@pytest.fixture(scope="module")
def server(postgres: Any) -> Iterator[str]:
    import psycopg

    address = str(postgres.get_uri())
    with psycopg.connect(address) as connection:
        connection.execute(
            "CREATE TABLE points (x float8, y float8, person text, moment timestamp)"
        )
        with connection.cursor().copy("COPY points FROM STDIN") as copy:
            for row in ROWS:
                copy.write_row((row.x, row.y, row.person, row.moment))
        connection.execute("CREATE VIEW seen AS SELECT * FROM points")
    yield address
    with psycopg.connect(address) as connection:
        connection.execute("DROP TABLE points CASCADE")


Open = Callable[[Path, Any], tuple[Any, dict[str, Any]]]
LOCAL: dict[str, Open] = {
    "parquet": lambda place, _: (place / "points.parquet", {}),
    "csv": lambda place, _: (place / "points.csv", {}),
    "duckdb": lambda place, _: (place / "points.duckdb", {"table": "points"}),
    "duckdb view": lambda place, _: (place / "points.duckdb", {"table": "seen"}),
    "duckdb query": lambda place, _: (place / "points.duckdb", {"sql": "FROM points -- all"}),
    "sqlite": lambda place, _: (place / "points.sqlite", {"table": "points"}),
    "sqlite view": lambda place, _: (place / "points.sqlite", {"table": "seen"}),
    "sqlite query": lambda place, _: (place / "points.sqlite", {"sql": "SELECT * FROM points -- all"}),
    "arrow": lambda *_: (arrow_table(), {}),
    "pandas": lambda *_: (arrow_table().to_pandas(), {}),
    "pandas, text times": lambda *_: (arrow_table().to_pandas().astype({"moment": "string"}), {}),
    "polars": lambda *_: (pl.from_arrow(arrow_table()), {}),
    "polars lazy": lambda *_: (pl.from_arrow(arrow_table()).lazy(), {}),
    "ibis": lambda *_: (ibis.memtable(arrow_table()), {}),
}  # fmt: skip
IN_SPARK: dict[str, Open] = {
    "spark parquet": lambda place, _: (place / "points.parquet", {"engine": "spark"}),
    "spark csv": lambda place, _: (place / "points.csv", {"engine": "spark"}),
    "ibis spark frame": lambda place, session: (
        ibis.pyspark.connect(session).read_parquet(str(place / "points.parquet")), {},
    ),
    "spark frame": lambda place, session: (session.read.parquet(str(place / "points.parquet")), {}),
}  # fmt: skip
ON_SERVER = {
    "postgres": {"table": "points"},
    "postgres view": {"table": "public.seen"},
    "postgres query": {"sql": "SELECT * FROM points WHERE true; "},
}
ARE_TEXT = ("csv", "sqlite", "sqlite view", "sqlite query", "spark csv")
ARE_QUERIES = ("view", "query", "frame")

CASES: dict[str, dict[str, Any]] = {
    "records": {},
    "people": {"max_records": 3},
    "people and times": {"max_records": 3, "time": "moment"},
    "once per hour": {"max_records": 4, "time": "moment", "once_per": "hour"},
    "once per day": {"max_records": 2, "time": "moment", "once_per": "day", "utc_offset": -5400},
    "once": {"max_records": 1, "once_per": "all"},
    "shared": {"count": "people"},
    "shared, once": {"count": "people", "once_per": "all"},
    "shared, once per hour": {"count": "people", "time": "moment", "once_per": "hour"},
    "shared per day": {"count": "people", "time": "moment", "per": "day", "utc_offset": 20_700},
    "shared per week": {"count": "people", "time": "moment", "per": "week", "once_per": "day"},
    "shared per month": {"count": "people", "time": "moment", "per": "month", "utc_offset": -5400},
    "kept per month": {"max_records": 2, "time": "moment", "per": "month", "once_per": "day"},
}
SHARED = [case for case in CASES if "shared" in case]


def expected(case: str, text: bool) -> dict[tuple[int, ...], int]:
    """In text files spaces around a field are not part of it."""
    asked = CASES[case]
    records: list[NaiveRecord] = []
    for row in ROWS:
        person = row.person and (row.person.strip(" \t\n\r\v\f") if text else row.person)
        second = row.second if "time" in asked else None
        if second is not None:
            second += asked.get("utc_offset", 0)
        records.append(((row.x, row.y), person, second))
    once_per, per = asked.get("once_per"), asked.get("per")
    if "count" in asked:
        return naive_shares(records, DOMAIN, 256, once_per, per)
    return naive_counts(records, DOMAIN, asked.get("max_records"), once_per, per)


def check(name: str, case: str, source: Any, options: dict[str, Any]) -> None:
    asked = dict(CASES[case])
    if case != "records":
        asked["user"] = "person"
    matrix = read_points(source, DOMAIN, ["x", "y"], **asked, **options)
    assert counted(matrix) == expected(case, name in ARE_TEXT)
    protection = matrix.protection
    assert protection.of_query == any(word in name for word in ARE_QUERIES)
    assert protection.unit == ("person" if "user" in asked else "record")
    assert protection.max_records == asked.get("max_records", 1)
    assert protection.once_per == asked.get("once_per")
    assert protection.count == asked.get("count", "records")
    assert protection.per == asked.get("per")
    assert protection.shares == (256 if "count" in asked else 1)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", LOCAL)
def test_here(name: str, case: str, folder: Path) -> None:
    check(name, case, *LOCAL[name](folder, None))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", ON_SERVER)
def test_in_postgresql(name: str, case: str, server: str) -> None:
    check(name, case, server, ON_SERVER[name])


@pytest.mark.parametrize(
    ("name", "case"),
    [
        *(("spark parquet", case) for case in CASES),
        *(("spark csv", case) for case in ("records", "people and times", "once per day")),
        ("spark csv", "shared per month"),
        *((name, "people and times") for name in ("spark frame", "ibis spark frame")),
        ("spark frame", "shared per week"),
    ],
)
def test_in_spark(name: str, case: str, folder: Path, spark: Any) -> None:
    check(name, case, *IN_SPARK[name](folder, spark))


# --- different people --------------------------------------------------------------------------------

GRID = 3, 2  # of 7 x 5 cells: boxes are not alike
DISTINCT: dict[str, dict[str, Any]] = {
    "ever": {},
    "per day": {"per": "day", "time": "moment", "utc_offset": -5400},
    "per week": {"per": "week", "time": "moment"},
}


def check_distinct(name: str, case: str, source: Any, options: dict[str, Any]) -> None:
    asked = DISTINCT[case]
    records: list[NaiveRecord] = []
    for row in ROWS:
        text = name in ARE_TEXT
        person = row.person and (row.person.strip(" \t\n\r\v\f") if text else row.person)
        second = None if row.second is None else row.second + asked.get("utc_offset", 0)
        records.append(((row.x, row.y), person, second))
    wanted = naive_people(records, DOMAIN, GRID, asked.get("per"))
    people = read_people_by_box(source, DOMAIN, GRID, ["x", "y"], user="person", **asked, **options)
    assert np.array_equal(people.exact_people, wanted)
    assert (people.division.given, people.per) == (GRID, asked.get("per"))
    assert wanted.sum(axis=1)[0] > wanted.sum(axis=1)[5] > 0


@pytest.mark.parametrize("case", DISTINCT)
@pytest.mark.parametrize("name", LOCAL)
def test_distinct_people_here(name: str, case: str, folder: Path) -> None:
    check_distinct(name, case, *LOCAL[name](folder, None))


@pytest.mark.parametrize("case", DISTINCT)
@pytest.mark.parametrize("name", ON_SERVER)
def test_distinct_people_in_postgresql(name: str, case: str, server: str) -> None:
    check_distinct(name, case, server, ON_SERVER[name])


@pytest.mark.parametrize(
    ("name", "case"),
    [
        *(("spark parquet", case) for case in DISTINCT),
        ("spark csv", "per day"),
        ("spark frame", "ever"),
    ],
)
def test_distinct_people_in_spark(name: str, case: str, folder: Path, spark: Any) -> None:
    check_distinct(name, case, *IN_SPARK[name](folder, spark))


# --- people on maps with further axes ---------------------------------------------------------------

TRIPS = Domain((*DOMAIN.axes, Axis("dest_x", -1.0, 1.7, 3), Axis("dest_y", 0.1, 0.9, 4)))
BY_HOUR = Domain((*DOMAIN.axes, Axis("hour", 0, 24, 6)))


@pytest.mark.parametrize("per", [None, "day", "month"])
@pytest.mark.parametrize("of_trips", [True, False], ids=["trips", "by hour"])
def test_people_on_maps_with_further_axes(
    of_trips: bool, per: str | None, folder: Path, server: str, spark: Any
) -> None:
    """A trip is one record, in one cell of four axes; its destination is here the place, mirrored."""
    domain = TRIPS if of_trips else BY_HOUR
    columns = ["x", "y", "x", "y"] if of_trips else ["x", "y", "hour(moment)"]
    records: list[NaiveRecord] = []
    for row in ROWS:
        hour = None if row.second is None else row.second % 86_400 / 3600
        further = (row.x, row.y) if of_trips else (hour,)
        records.append(((row.x, row.y, *further), row.person, row.second))
    wanted = naive_shares(records, domain, 256, None, per)
    options: dict[str, Any] = {"user": "person", "count": "people", "per": per, "time": "moment"}
    sources: list[tuple[Any, dict[str, Any]]] = [
        (folder / "points.parquet", {}),
        (folder / "points.parquet", {"engine": "spark"}),
        (server, {"table": "points"}),
    ]
    for source, place in sources:
        assert counted(read_points(source, domain, columns, **options, **place)) == wanted
    del spark


MONTHS = [
    *(dt.datetime(year, month, day) for year in (1, 4, 100, 400, 1600, 1899, 1900, 1904, 1970, 2000, 2023, 2024, 2100, 9999)
      for month in range(1, 13) for day in (1, 28)),
    *(dt.datetime(year, 3, 1) - dt.timedelta(seconds=1) for year in range(1890, 2110)),
    *(dt.datetime(year, 12, 31, 23, 59, 59) for year in (1, 399, 400, 1969, 1999, 2000, 9999)),
]  # fmt: skip


@pytest.mark.parametrize("per", ["day", "week", "month"])
def test_periods_of_all_years(per: str, tmp_path: Path, spark: Any, postgres: Any) -> None:
    """With one person, the total is the number of periods; in each of them cells get what is theirs."""
    import psycopg

    seconds = [(moment - EPOCH) // dt.timedelta(seconds=1) for moment in MONTHS]
    places = [(number % 27 / 10 - 1, 0.5) for number in range(len(seconds))]
    x, y = zip(*places, strict=True)
    table = pa.table({"x": x, "y": y, "who": ["ann"] * len(seconds), "at": seconds})
    pq.write_table(table, tmp_path / "times.parquet")
    with psycopg.connect(postgres.get_uri()) as connection:
        connection.execute("CREATE TABLE moments (x float8, y float8, who text, at int8)")
        rows = [(*place, "ann", second) for place, second in zip(places, seconds, strict=True)]
        connection.cursor().executemany("INSERT INTO moments VALUES (%s, %s, %s, %s)", rows)
    records: list[NaiveRecord] = [
        (place, "ann", second) for place, second in zip(places, seconds, strict=True)
    ]
    wanted = naive_shares(records, DOMAIN, 256, None, per)
    options: dict[str, Any] = {"user": "who", "per": per, "time": "at"}
    found = [
        read_points(tmp_path / "times.parquet", DOMAIN, ["x", "y"], **options),
        read_points(tmp_path / "times.parquet", DOMAIN, ["x", "y"], engine="spark", **options),
        read_points(postgres.get_uri(), DOMAIN, ["x", "y"], table="moments", **options),
    ]
    with psycopg.connect(postgres.get_uri()) as connection:
        connection.execute("DROP TABLE moments")
    assert [counted(matrix) for matrix in found] == [wanted] * 3
    del spark


@pytest.mark.slow
def test_someone_with_millions_of_records(spark: Any) -> None:
    """Row numbers of Spark have 32 bits, which 512 times five million are too many for."""
    number = 5_000_000
    rows = spark.range(number).selectExpr(
        "(id % 3) / 2.0D - 0.9 AS x", "0.5D AS y", "'ann' AS person"
    )
    found = counted(read_points(rows, DOMAIN, ["x", "y"], user="person"))
    assert sorted(found.values()) == [85, 85, 86]


# --- axes from times --------------------------------------------------------------------------------

HOURS = Domain(
    (Axis("day", -40_000, 120_000, 160_000), Axis("weekday", 0, 7, 7), Axis("hour", 0, 24, 86_400))
)
PARTS = ["day(moment)", "weekday(moment)", "hour(moment)"]
OFFSET = 5 * 3600 + 45 * 60


def parts(second: int | None) -> list[float | None]:
    """By Python's own calendar."""
    if second is None:
        return [None, None, None]
    moment = EPOCH + dt.timedelta(seconds=second + OFFSET)
    clock = moment.hour * 3600 + moment.minute * 60 + moment.second
    return [float((moment - EPOCH).days), float(moment.weekday()), clock / 3600]


HOURS_EXPECTED = naive_counts([(parts(row.second), None, None) for row in ROWS], HOURS)


def check_hours(source: Any, **options: Any) -> None:
    matrix = read_points(source, HOURS, PARTS, utc_offset=OFFSET, **options)
    assert counted(matrix) == HOURS_EXPECTED


@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Kathmandu"])
@pytest.mark.parametrize("unit", ["us", "ns"])
def test_timestamps_with_and_without_a_zone(
    unit: str, zone: str | None, tmp_path: Path, spark: Any
) -> None:
    path = tmp_path / "points.parquet"
    pq.write_table(arrow_table(unit, zone), path)
    check_hours(path)
    if zone != "UTC":
        check_hours(path, engine="spark")
    check_hours(arrow_table(unit, zone))
    assert spark.conf.get("spark.sql.legacy.parquet.nanosAsLong", "false") == "false"


def test_times_of_older_files_and_text(folder: Path, tmp_path: Path, spark: Any) -> None:
    """The 96 bits of Spark and Impala; and text."""
    path, before = tmp_path / "old.parquet", spark.catalog.listTables()
    pq.write_table(arrow_table(), path, use_deprecated_int96_timestamps=True)
    check_hours(path)
    check_hours(path, engine="spark")
    check_hours(folder / "points.csv")
    check_hours(folder / "points.csv", engine="spark")
    assert spark.catalog.listTables() == before


def test_times_in_milliseconds_and_dates(tmp_path: Path, spark: Any) -> None:
    path = tmp_path / "points.parquet"
    dates = [row.moment and row.moment.date() for row in ROWS]
    table = pa.table({"moment": arrow_table("ms")["moment"], "date": pa.array(dates, pa.date32())})
    pq.write_table(table, path)
    del spark
    cut = table["moment"].to_pylist()  # what a writer made of them
    seconds = [None if m is None else (m - EPOCH) // dt.timedelta(seconds=1) for m in cut]
    by_day = [None if d is None else (d - EPOCH.date()).days * 86_400 for d in dates]
    for engine in ("duckdb", "spark"):
        for names, known in (
            (PARTS, seconds),
            ([p.replace("moment", "date") for p in PARTS], by_day),
        ):
            found = read_points(path, HOURS, names, utc_offset=OFFSET, engine=engine)
            records: list[NaiveRecord] = [(parts(second), None, None) for second in known]
            assert counted(found) == naive_counts(records, HOURS)


ZONED = [
    ("2017-09-11T08:30:00Z", 1505118600), ("2017-09-11 08:30:00 +08:00", 1505118600 - 8 * 3600),
    ("2017-09-11T08:30:00.999-0330", 1505118600 + 12_600), ("2017-09-11t08:30z", 1505118600),
    ("2017-09-11T08:30+05", 1505118600 - 5 * 3600), ("1505118600", 1505118600), ("-1", -1),
    ("0001-01-01T00:00:00Z", -62135596800), ("0000-12-31T23:59:59Z", None), ("9999-12-31T23:59:59Z", 253402300799),
    ("2017-09-11T24:00:00Z", None), ("2017-13-11T08:30:00Z", None), ("11/09/2017 08:30", None),
    ("2017-09-11T08:30:60Z", None), ("2021-02-29T00:00Z", None), ("2020-02-29T00:00Z", 1582934400), ("2017-09-11T08:30:00-00:30", 1505120400), ("999999999999999999", None), ("20170911", 20170911), ("1e9", None),
]  # fmt: skip
ALL_YEARS = Domain((Axis("day", -800_000, 3_000_000, 3_800_000), Axis("hour", 0, 24, 86_400)))


def test_iso_text_in_many_forms(tmp_path: Path, spark: Any) -> None:
    path = tmp_path / "times.csv"
    path.write_text("t\n" + "\n".join(text for text, _ in ZONED) + "\n")
    records: list[NaiveRecord] = []
    for _, second in ZONED:
        days, clock = (None, None) if second is None else divmod(second, 86_400)
        places = None if days is None else float(days), None if clock is None else clock / 3600
        records.append((places, None, None))
    for engine in ("duckdb", "spark"):
        found = read_points(path, ALL_YEARS, ["day(t)", "hour(t)"], engine=engine)
        assert counted(found) == naive_counts(records, ALL_YEARS)
    del spark


WHOLE = [0, -1, 1, 3599, -86_401, 2**31, 2**63 - 1, -(2**63), 253402300799, 253402300800, None]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_as_numbers(unit: str, tmp_path: Path, spark: Any, postgres: Any) -> None:
    import psycopg

    per = {"s": 1, "ms": 1000, "us": 10**6, "ns": 10**9}[unit]
    floats = [None if n is None else float(n) for n in WHOLE] + [
        math.nan,
        math.inf,
        -math.inf,
        -0.5,
        1e300,
    ]
    wholes = [*WHOLE, *[None] * 5]
    path = tmp_path / "times.parquet"
    pq.write_table(pa.table({"i": pa.array(wholes, pa.int64()), "f": pa.array(floats)}), path)
    with psycopg.connect(postgres.get_uri()) as connection:
        connection.execute("CREATE TABLE times (i int8, f float8)")
        values = list(zip(wholes, floats, strict=True))
        connection.cursor().executemany("INSERT INTO times VALUES (%s, %s)", values)
    for column, numbers in (("i", wholes), ("f", floats)):
        records: list[NaiveRecord] = [(known(n, per), None, None) for n in numbers]
        options: dict[str, Any] = {"time_unit": unit}
        names = [f"day({column})", f"hour({column})"]
        wanted = naive_counts(records, ALL_YEARS)
        assert counted(read_points(path, ALL_YEARS, names, **options)) == wanted
        if unit in ("s", "ns"):
            found = read_points(path, ALL_YEARS, names, engine="spark", **options)
            assert counted(found) == wanted
        here = read_points(postgres.get_uri(), ALL_YEARS, names, table="times", **options)
        assert counted(here) == wanted
    with psycopg.connect(postgres.get_uri()) as connection:
        connection.execute("DROP TABLE times")
    del spark


def known(number: float | None, per: int) -> tuple[float | None, float | None]:
    """The day and the hour, between the years 1 and 9999."""
    if number is None or not math.isfinite(number):
        return None, None
    if isinstance(number, int) and abs(number) > 2**63 - 10**10:  # at the ends of 64 bits
        return None, None
    second = math.floor(number / per if isinstance(number, float) else number // per)
    if not -62135596800 <= second <= 253402300799:
        return None, None
    return float(second // 86_400), second % 86_400 / 3600


# --- identifiers and numbers of all kinds -----------------------------------------------------------

IDENTIFIERS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int64": (pa.int64(), [2**63 - 1, -(2**63), -1, 0, 7, None]),
    "uint64": (pa.uint64(), [2**64 - 1, 2**63, 0, 7, None]),
    "int8": (pa.int8(), [-128, 127, 0, None]),
    "decimal": (pa.decimal128(30, 0), [Decimal(10**29), Decimal(-1), Decimal(0), None]),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), ["a", "b ", "ü", "", None]),
}


@pytest.mark.parametrize("kind", IDENTIFIERS)
def test_identifiers(kind: str, tmp_path: Path, spark: Any) -> None:
    type_, pool = IDENTIFIERS[kind]
    draw = np.random.default_rng(2)
    people = [pool[i] for i in draw.integers(len(pool), size=80)]
    x, y = draw.uniform(-1, 1.7, 80), draw.uniform(0.1, 0.9, 80)
    table = pa.table({"x": x, "y": y, "who": pa.array(people, type_)})
    pq.write_table(table, tmp_path / "points.parquet")
    names = [None if who is None else str(who) for who in people]
    records: list[NaiveRecord] = [
        ((float(a), float(b)), n, None) for a, b, n in zip(x, y, names, strict=True)
    ]
    wanted = naive_counts(records, DOMAIN, 3)
    for engine in ("duckdb", "spark"):
        found = read_points(
            tmp_path / "points.parquet", DOMAIN, user="who", max_records=3, engine=engine
        )
        assert counted(found) == wanted
    assert counted(read_points(table, DOMAIN, user="who", max_records=3)) == wanted
    del spark


def test_identifiers_of_a_database(postgres: Any, tmp_path: Path) -> None:
    """UUIDs, and fixed-width text of PostgreSQL, which has spaces at its end."""
    import psycopg

    people = [UUID(int=number % 5 << 100) for number in range(60)]
    rows = [(number % 27 / 10 - 1, 0.5, who) for number, who in enumerate(people)]
    records: list[NaiveRecord] = [((x, y), str(who), None) for x, y, who in rows]
    wanted = naive_counts(records, DOMAIN, 4)
    with psycopg.connect(postgres.get_uri()) as connection:
        connection.execute("CREATE TABLE visits (x float8, y float8, who uuid)")
        connection.cursor().executemany("INSERT INTO visits VALUES (%s, %s, %s)", rows)
    with duckdb.connect(str(tmp_path / "visits.duckdb")) as local:
        local.execute("CREATE TABLE visits (x DOUBLE, y DOUBLE, who UUID)")
        local.executemany("INSERT INTO visits VALUES (?, ?, ?)", rows)
    for source in (postgres.get_uri(), tmp_path / "visits.duckdb"):
        found = read_points(source, DOMAIN, table="visits", user="who", max_records=4)
        assert counted(found) == wanted
    with psycopg.connect(postgres.get_uri()) as connection:
        connection.execute("DROP TABLE visits")


def test_decimals_and_small_floats(tmp_path: Path, spark: Any) -> None:
    """A decimal becomes the nearest double, a float of 32 bits the double it is."""
    draw = np.random.default_rng(4)
    fine = Domain((Axis("x", -1.0, 1.0, 2**30), Axis("y", -1.0, 1.0, 2**30)))
    decimals = [Decimal(int(n)).scaleb(-20) for n in draw.integers(-(10**18), 10**18, 300)]
    decimals = [value * 100 for value in decimals]
    floats = draw.uniform(-1, 1, 300).astype(np.float32)
    table = pa.table({"x": pa.array(decimals, pa.decimal128(38, 20)), "y": floats})
    pq.write_table(table, tmp_path / "points.parquet")
    records: list[NaiveRecord] = [
        ((float(a), float(b)), None, None) for a, b in zip(decimals, floats, strict=True)
    ]
    for engine in ("duckdb", "spark"):
        found = read_points(tmp_path / "points.parquet", fine, engine=engine)
        assert counted(found) == naive_counts(records, fine)
    del spark


NUMBERS = [
    "1e-400", "-1e-400", "0", "-0", "5e-324", "2e-324", "1.", "+.5", "-.5e0", "1e999", "-1E+2", "0x10", "1_0", "nan",
    "inf", "Infinity", " 0.25 ", "\t0.25", "\u00a00.25", "0.25\u2028", "0;5", "1d", "1f", "", "９",
    "0.1234567890123456789012345678901234567890", "0." + "3" * 400, "--1", "1e", "e1", ".", "0.5e-",
]  # fmt: skip


def test_what_text_is_a_number(tmp_path: Path, spark: Any) -> None:
    """Digits as in programs, and nothing that a language has beyond."""
    domain = Domain((Axis("x", -1.0, 1.0, 7), Axis("row", 0, 40, 40)))
    lines = [f'"{text}",{row}' for row, text in enumerate(NUMBERS)]
    (tmp_path / "points.csv").write_text("x,row\n" + "\n".join(lines) + "\n")
    strange = {
        "0x10",
        "1_0",
        "nan",
        "inf",
        "Infinity",
        "\u00a00.25",
        "0.25\u2028",
        "1d",
        "1f",
        "９",
    }
    records: list[NaiveRecord] = []
    for row, text in enumerate(NUMBERS):
        try:
            place = None if text in strange else float(text)
        except ValueError:
            place = None
        records.append(((place, float(row)), None, None))
    for engine in ("duckdb", "spark"):
        found = read_points(tmp_path / "points.csv", domain, ["x", "row"], engine=engine)
        assert counted(found) == naive_counts(records, domain)
    del spark


def test_folders_of_text_and_files_without_rows(tmp_path: Path, spark: Any) -> None:
    """Each file has its own first line; of none there is nothing to say."""
    (tmp_path / "many").mkdir()
    (tmp_path / "many" / "a.csv").write_text('x;y;"t, when"\n0.5;0.5;2020-01-01\n')
    (tmp_path / "many" / "b.csv").write_text('x;y;"t, when"\n0.6;0.5;\n1.2;0.2;2020-01-01')
    (tmp_path / "none.csv").write_text("x,y,t\n")
    records: list[NaiveRecord] = [
        ((x, y), None, None) for x, y in ((0.5, 0.5), (0.6, 0.5), (1.2, 0.2))
    ]
    days = Domain((*DOMAIN.axes, Axis("day", 0, 10, 10)))
    for engine in ("duckdb", "spark"):
        found = read_points(tmp_path / "many", DOMAIN, engine=engine)
        assert counted(found) == naive_counts(records, DOMAIN)
        told: list[str] = []
        none = read_points(
            tmp_path / "none.csv",
            days,
            ["x", "y", "day(t)"],
            engine=engine,
            tell=told.append,
            allow_empty=True,
        )
        assert counted(none) == {}
        assert told[0].startswith("No record is inside the bounds")
    del spark


@pytest.mark.parametrize("encoding", ["WKB", "geoarrow"])
def test_geometries_and_other_systems(encoding: Any, tmp_path: Path, spark: Any) -> None:
    """A folder as Spark writes it, of British points on a map in degrees; pyproj is the reference."""
    import geopandas
    import pyproj

    draw = np.random.default_rng(6)
    east, north = draw.uniform(400_000, 600_000, 500), draw.uniform(100_000, 300_000, 500)
    points = geopandas.points_from_xy(east, north, crs="EPSG:27700")
    frame = geopandas.GeoDataFrame(geometry=points)
    for day, part in (("1", frame[:200]), ("2", frame[200:])):
        (tmp_path / f"day={day}").mkdir()
        path = tmp_path / f"day={day}" / "part ü%20,1.parquet"
        part.to_parquet(path, geometry_encoding=encoding, schema_version="1.1.0")
    (tmp_path / "_SUCCESS").touch()
    domain = Domain.from_bounds(-2, 51, 0.5, 52.5, 30)
    change = pyproj.Transformer.from_crs("EPSG:27700", "OGC:CRS84", always_xy=True)
    lon, lat = change.transform(east, north)
    records: list[NaiveRecord] = [
        ((float(x), float(y)), None, None) for x, y in zip(lon, lat, strict=True)
    ]
    for engine in ("duckdb", "spark"):
        assert counted(read_points(tmp_path, domain, engine=engine)) == naive_counts(
            records, domain
        )
    del spark


LONG = pd.DataFrame({"x": np.zeros(50), "y": np.full(50, 0.5), "person": "ann"})


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM long ORDER BY random() LIMIT 20",
        "SELECT * FROM long WHERE random() < 0.5",
        "SELECT x, y, CAST(floor(random() * 4) AS INT) AS person FROM long",
    ],
)
def test_a_query_that_gives_other_rows_each_time_is_bounded_too(
    query: str, tmp_path: Path, postgres: Any
) -> None:
    import psycopg

    with duckdb.connect(str(tmp_path / "long.duckdb")) as connection:
        connection.register("frame", LONG)
        connection.execute("CREATE TABLE long AS SELECT * FROM frame")
    with psycopg.connect(postgres.get_uri()) as server:
        server.execute("CREATE TABLE long (x float8, y float8, person text)")
        server.cursor().executemany("INSERT INTO long VALUES (%s, %s, %s)", LONG.values.tolist())
    most = 4 if "AS person" in query else 1
    asked: dict[str, Any] = {"user": "person", "max_records": 2}
    for source in [tmp_path / "long.duckdb", postgres.get_uri()] * 5:
        found = read_points(source, DOMAIN, sql=query, **asked)
        assert found.exact_counts.sum() <= 2 * most
    with psycopg.connect(postgres.get_uri()) as server:
        server.execute("DROP TABLE long")


def test_a_frame_that_gives_other_rows_each_time_is_bounded_too(spark: Any) -> None:
    """Spark takes a function for one that gives the same each time, and calls it in every scan. Read in
    more than one, this frame gave up to 75 records of 50 people."""
    from pyspark.sql import functions

    anyone = functions.udf(lambda _: random.randrange(50), "int")
    rows = spark.range(200).selectExpr("0.0D AS x", "0.5D AS y", "id")
    frame = rows.withColumn("person", anyone("id"))
    for _ in range(2):
        kept = read_points(frame, DOMAIN, user="person", max_records=1)
        assert 0 < kept.exact_counts.sum() <= 50
