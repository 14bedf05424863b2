"""Records that an engine may stumble over, and what is to be read of each: nothing, or its own cell.

The other records all lie inside the map, so that the statistics of a file prove that no filter is needed
for them: an engine that trusts these leaves the filter out, and must stumble over none of the odd ones.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from htf import Axis, Domain
from support import NaiveRecord, naive_counts, naive_shares

DOMAIN = Domain((Axis("x", 0.0, 1.0, 4), Axis("y", 0.0, 1.0, 3), Axis("hour", 0, 24, 24)))
COLUMNS = ["x", "y", "hour(t)"]
# What is asked of each person: all records, a few of them, or shares, for all time or for each period.
KEPT: dict[str, Any] = {"user": "person", "max_records": 3}
SHARED: dict[str, Any] = {"user": "person", "count": "people"}
PER_MONTH: dict[str, Any] = {**SHARED, "per": "month", "time": "t"}
PER_DAY: dict[str, Any] = {**SHARED, "per": "day", "time": "t", "once_per": "hour"}
YEAR_1, YEAR_9999 = -62_135_596_800, 253_402_300_799
NAN, INF = math.nan, math.inf


@dataclass(frozen=True)
class Places:
    """A column of coordinates: how it is stored, and values that are unlike others."""

    kind: pa.DataType
    odd: tuple[Any, ...]
    plain: Callable[[float], Any] = float


@dataclass(frozen=True)
class Times:
    """A column of times: how a moment is stored, and odd values with the second that they mean."""

    kind: pa.DataType
    plain: Callable[[int], Any]
    odd: dict[Any, int | None]


def _near(per_second: int) -> dict[Any, int | None]:
    """Whole numbers at and beyond the ends of the years 1 to 9999, and those of 64 bits."""
    first, last = YEAR_1 * per_second, (YEAR_9999 + 1) * per_second - 1
    values = [
        first,
        first - 1,
        last,
        last + 1,
        0,
        -1,
        10**17,
        -(10**17),
        9 * 10**18,
        2**63 - 2,
        -(2**63),
    ]
    return {
        n: n // per_second if YEAR_1 <= n // per_second <= YEAR_9999 else None
        for n in values
        if abs(n) <= 2**63
    }  # fmt: skip


def _timestamps(unit: str, per_second: int) -> Times:
    # The smallest of 64 bits is what pandas takes for missing; as a moment, DuckDB and Spark differ on it.
    odd = {n: s for n, s in _near(per_second).items() if n != -(2**63)}
    return Times(pa.timestamp(unit), lambda second: second * per_second, odd)


FLOATS = (
    NAN,
    INF,
    -INF,
    1e308,
    -1e308,
    5e-324,
    -5e-324,
    -0.0,
    1.0,
    math.nextafter(1.0, 0.0),
    1e17,
    None,
)
PLACES = {
    "doubles": Places(pa.float64(), FLOATS),
    "floats": Places(pa.float32(), (NAN, INF, -INF, 1.0, -0.0, 0.5, None)),
    "decimals": Places(
        pa.decimal128(38, 4),
        (Decimal("9" * 34), Decimal("-" + "9" * 34), Decimal(1), Decimal("0.0001"), None),
        lambda place: Decimal(str(round(place, 4))),
    ),
}  # fmt: skip
TIMES = {
    "timestamps in ms": _timestamps("ms", 1000),
    "timestamps in us": _timestamps("us", 10**6),
    "timestamps in ns": _timestamps("ns", 10**9),
    "dates": Times(
        pa.date32(),
        lambda second: second // 86_400,
        {n: n * 86_400 if -719_162 <= n <= 2_932_896 else None
         for n in (0, -719_162, -719_163, 2_932_896, 2_932_897, 110_000_000, 2**31 - 2, -(2**31) + 2)},
    ),
    "whole seconds": Times(pa.int64(), int, _near(1)),
    "doubles": Times(
        pa.float64(),
        float,
        {NAN: None, INF: None, -INF: None, 1e300: None, -1e300: None, 1e17: None, 0.5: 0, -0.5: -1,
         float(YEAR_9999) + 1: None, float(YEAR_1): YEAR_1, float(YEAR_1) - 1: None},
    ),
    "text": Times(
        pa.string(),
        lambda second: dt.datetime.fromtimestamp(second, dt.UTC).strftime("%Y-%m-%dT%H:%M:%S"),
        {"31.12.2020": None, "": None, "2020-02-30": None, "2020-01-01T00:00:00Z": 1_577_836_800, "nan": None,
         "2020-01-01T08:00:00+08:00": 1_577_836_800, "9" * 18: None, "9" * 40: None, "infinity": None},
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Row:
    x: Any
    y: float
    person: str
    time: Any
    second: int | None  # that the time means


def plain_rows(places: Places, times: Times, number: int = 24) -> list[Row]:
    """Of a few people, so that many have too many records; all of them inside."""
    rows = []
    for n in range(number):
        # Whole days, since dates know no hours, and all of them after 1970.
        second = 86_400 * (15_000 + n)
        x, y = places.plain(((n * 7) % 16) / 16 + 0.03), ((n * 5) % 8) / 8 + 0.01
        rows.append(Row(x, y, f"person {n % 4}", times.plain(second), second))
    return rows


def odd_rows(places: Places, times: Times) -> list[Row]:
    """Each with one odd value, or the odd values of both; of somebody new, and of somebody known."""
    known = plain_rows(places, times, 1)[0]
    rows = [Row(x, known.y, "somebody new", known.time, known.second) for x in places.odd]
    rows += [Row(known.x, known.y, known.person, time, s) for time, s in times.odd.items()]
    rows.append(Row(places.odd[0], NAN, known.person, next(iter(times.odd)), None))
    return rows


def to_table(rows: list[Row], places: Places, times: Times) -> pa.Table:
    return pa.table({
        "x": pa.array([row.x for row in rows], places.kind),
        "y": pa.array([row.y for row in rows], pa.float64()),
        "person": pa.array([row.person for row in rows], pa.string()),
        "t": _stored([row.time for row in rows], times.kind),
    })  # fmt: skip


def _stored(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Times by their numbers: Python's own cannot be as far away."""
    if pa.types.is_timestamp(kind):
        return pa.array(values, pa.int64()).cast(kind)
    if pa.types.is_date(kind):
        return pa.array(values, pa.int32()).cast(kind)
    return pa.array(values, kind)


def expected(
    rows: list[Row], asked: Mapping[str, Any], domain: Domain = DOMAIN
) -> dict[tuple[int, ...], int]:
    """By Python, record by record. Without an axis of hours, records without a time are on the map."""
    records: list[NaiveRecord] = []
    for row in rows:
        hour = None if row.second is None else (row.second % 86_400) / 3600
        x = None if row.x is None else float(np.float64(row.x))
        second = row.second if "time" in asked else None
        records.append(((x, row.y, hour)[: domain.dimensions], row.person, second))
    if asked.get("count") == "people":
        return naive_shares(records, domain, 256, asked.get("once_per"), asked.get("per"))
    return naive_counts(records, domain, asked.get("max_records"))
