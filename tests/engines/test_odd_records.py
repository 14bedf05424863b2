"""Odd records on Spark and PostgreSQL: each is read by itself there too, and none makes a query fail."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from htf import Domain, read_points
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
from support import counted

KINDS = [
    ("floats", "whole seconds"),
    ("decimals", "whole seconds"),
    *(("doubles", t) for t in TIMES),
]
MAP = Domain(DOMAIN.axes[:2])  # on which records without a time are, too


@pytest.mark.parametrize("kinds", KINDS)
def test_in_spark(kinds: tuple[str, str], tmp_path: Path, spark: Any) -> None:
    """All odd records at once: Spark leaves out no filter, whatever the statistics say."""
    places, times = PLACES[kinds[0]], TIMES[kinds[1]]
    rows = [*plain_rows(places, times), *odd_rows(places, times)]
    pq.write_table(to_table(rows, places, times), tmp_path / "points.parquet")
    path, asked = tmp_path / "points.parquet", [KEPT, SHARED, PER_MONTH]
    for options in asked[:: 1 if kinds[0] == "doubles" else 2]:
        found = read_points(path, DOMAIN, COLUMNS, engine="spark", **options)
        assert counted(found) == expected(rows, options)
    found = read_points(path, MAP, COLUMNS[:2], engine="spark", **PER_DAY)
    assert counted(found) == expected(rows, PER_DAY, MAP)
    del spark


# As PostgreSQL has them: a kind of column, a plain value, and odd values with the second that they mean.
OF_PLACES = {
    "float8": ("NaN", "Infinity", "-Infinity", "1e308", "-1e308", "5e-324", None),
    "real": ("NaN", "Infinity", "1e38", None),
    "numeric": ("1e400", "-1e400", "1e-400", "NaN", "Infinity", "-Infinity", "1e5000", None),
    "numeric(1000,500)": ("1e499", "NaN", "1e-499", None),
}
OF_TIMES: dict[str, dict[str | None, int | None]] = {
    "timestamp": {"infinity": None, "-infinity": None, "4713-01-01 BC": None, "294276-12-31": None, "9999-12-31 23:59:59.999999": 253_402_300_799, None: None},
    "timestamptz": {"infinity": None, "-infinity": None, "294276-12-30": None, None: None},
    "date": {"infinity": None, "-infinity": None, "5874897-12-31": None, "4713-01-01 BC": None, "9999-12-31": 253_402_214_400, None: None},
    "float8": {"NaN": None, "Infinity": None, "-Infinity": None, "1e300": None, "1e17": None, "0.5": 0, None: None},
    "bigint": {str(2**63 - 1): None, str(-(2**63)): None, str(10**17): None, "-1": -1, None: None},
}  # fmt: skip


def rows_of(place: str, time: str) -> tuple[list[tuple[Any, ...]], list[Row]]:
    """What is stored, as text, and what it means."""
    stored: list[tuple[Any, ...]] = []
    meant: list[Row] = []
    for n in range(12):
        second, x = 86_400 * (15_000 + n), n / 16 + 0.03125
        moment = dt.datetime.fromtimestamp(second, dt.UTC)
        told = str(second) if time in ("float8", "bigint") else f"{moment:%Y-%m-%d %H:%M:%S+00}"
        stored.append((str(x), 0.5, f"person {n % 3}", told))
        meant.append(Row(x, 0.5, f"person {n % 3}", told, second))
    good = stored[0][3]
    for odd in OF_PLACES[place]:
        stored.append((odd, 0.5, "somebody new", good))
        is_tiny = odd in ("5e-324", "1e-400", "1e-499")  # and so inside
        meant.append(Row(0.0 if is_tiny else None, 0.5, "somebody new", good, meant[0].second))
    for odd, second_of in OF_TIMES[time].items():
        stored.append((stored[0][0], 0.5, "person 0", odd))
        meant.append(Row(meant[0].x, 0.5, "person 0", odd, second_of))
    return stored, meant


@pytest.fixture(scope="module")
def connection(postgres: Any) -> Iterator[Any]:
    import psycopg

    with psycopg.connect(str(postgres.get_uri()), autocommit=True) as found:
        found.execute("SET timezone = 'UTC'")
        yield found


@pytest.mark.parametrize(
    ("place", "time"),
    [*((place, "bigint") for place in OF_PLACES), *(("float8", time) for time in OF_TIMES)],
)
def test_in_postgresql(place: str, time: str, postgres: Any, connection: Any) -> None:
    stored, meant = rows_of(place, time)
    connection.execute(f"CREATE TABLE odd (x {place}, y float8, person text, t {time})")
    try:
        for row in stored:
            connection.execute(
                f"INSERT INTO odd VALUES (%s::text::{place}, %s, %s, %s::text::{time})", row
            )
        for asked in ({}, KEPT, SHARED, PER_MONTH, PER_DAY):
            for domain in (DOMAIN, MAP):
                columns = COLUMNS[: domain.dimensions]
                found = read_points(str(postgres.get_uri()), domain, columns, table="odd", **asked)
                assert counted(found) == expected(meant, asked, domain)
    finally:
        connection.execute("DROP TABLE odd")
