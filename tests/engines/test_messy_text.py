"""Decimal commas and other forms of times mean the same on Spark; the rest is refused there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from htf import Axis, Domain, InputError, check_points, read_points
from support import counted

HOURS = Domain((*Domain.from_bounds(0, 0, 4, 4, 4).axes, Axis("hour", 0, 24, 24)))
COLUMNS = ["lon", "lat", "hour(at)"]
TIMES = [
    "07.04.2012 08:30 AM",
    "7.4.2012 12:05 pm",
    "31.04.2012 01:00 AM",
    "noon",
    "",
    "1.1.2012 1:1 AM",
]


def test_text_in_spark(tmp_path: Path, spark: Any) -> None:
    path = tmp_path / "a.csv"
    rows = [f"0,{n}5;1,5;{time}" for n, time in enumerate(TIMES)]
    path.write_text("\n".join(["LON;lat;At", *rows, "1.5;1,5;07.04.2012 08:30 AM"]))
    options: dict[str, Any] = {"decimal": ",", "time_format": "%d.%m.%Y %I:%M %p"}
    found = read_points(path, HOURS, COLUMNS, engine="spark", **options)
    assert counted(found) == counted(read_points(path, HOURS, COLUMNS, **options))
    assert counted(found) == {(0, 1, 8): 1, (0, 1, 12): 1, (0, 1, 1): 1}
    for more in ({"encoding": "cp1252"}, {"skip_lines": 1}, {"skip_last": 1}):
        with pytest.raises(InputError, match="Spark reads text in UTF-8"):
            read_points(path, HOURS, COLUMNS, engine="spark", **options, **more)
    del spark


def test_a_check_of_a_postgresql_table(postgres: Any) -> None:
    import psycopg

    address = str(postgres.get_uri())
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE looked_at AS SELECT 0.5 * n AS lon, CASE WHEN n % 2 = 1 THEN 'NaN'::float8 ELSE 0.5 END AS lat, "
            "n % 3 AS user_id, '2026-03-01'::timestamp + n * interval '1 hour' AS at FROM generate_series(1, 6) AS n"
        )
        try:
            found = check_points(address, Domain(HOURS.axes[:2]), table="looked_at")
        finally:
            connection.execute("DROP TABLE looked_at")
    assert (found.rows, found.people, found.inside) == (6, 3, 3)
    assert [one["rows"] for one in found.unread] == [3]
    assert found.last == "2026-03-01T06:00:00"
    assert address not in found.command
