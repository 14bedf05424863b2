"""Rows that could not be read: the curator's screen says how many, and why."""

from __future__ import annotations

import datetime as dt
import math
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from htf import Axis, Domain, InputError, measure_activity, publish, read_points
from htf.cli import main

MAP = Domain.from_bounds(0, 0, 1, 1, 4)
HOURS = Domain((*MAP.axes, Axis("hour", 0, 24, 24)))
OF_HOURS = ["lon", "lat", "hour(at)"]


def told(source: Any, domain: Domain = MAP, columns: Any = None, **options: Any) -> list[str]:
    """The lines of the note; without the places of rows, and remarks on guessed columns and on an empty map."""
    return [
        re.sub("; see .*[.]$", ".", line) for line in told_fully(source, domain, columns, **options)
    ]


def told_fully(source: Any, domain: Domain = MAP, columns: Any = None, **options: Any) -> list[str]:
    found: list[str] = []
    read_points(source, domain, columns, tell=found.append, **options)
    notes = [note for note in found if note.startswith("For your eyes only")]
    return [line.strip() for note in notes for line in note.splitlines()[1:]]


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_nothing_is_said_where_all_is_well(tmp_path: Path) -> None:
    """Rows outside of the bounds were read."""
    assert told(write(tmp_path / "a.csv", "lon,lat", "0.5,0.5", "7,7")) == []
    assert told((pa.array([0.5, 9.0]), pa.array([0.5, 0.5]))) == []


def test_fields_that_are_no_numbers(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.csv", "lon,lat", "0.5,0.5", "E0.5,0.5", "nan,0.5", ",0.5", '"0,5",0.5'
    )
    assert told_fully(path) == [
        "1 of 5 rows is left out: the column 'lon' is empty there; see line 5.",
        "1 of 5 rows is left out: the column 'lon' holds a number with a decimal comma there (to read it: --read decimal=,); see line 6.",
        "2 of 5 rows are left out: the column 'lon' holds no number there; see lines 3, 4.",
    ]


@pytest.mark.parametrize("in_file", [True, False])
def test_numbers_that_are_none(in_file: bool, tmp_path: Path) -> None:
    """Also where the statistics of the file know nothing of them."""
    table = pa.table({"lon": [0.1, 0.2, math.nan, None], "lat": [0.5, 0.5, 0.5, math.nan]})
    pq.write_table(table, tmp_path / "a.parquet")
    assert told(tmp_path / "a.parquet" if in_file else table) == [
        "1 of 4 rows is left out: the column 'lon' is empty there.",
        "1 of 4 rows is left out: the column 'lon' holds no number there.",
        "1 of 4 rows is left out: the column 'lat' holds no number there.",
    ]


def test_dates_in_another_form(tmp_path: Path) -> None:
    """Half of them are lost, and the curator hears of it."""
    rows = [f"0.5,0.5,2020-01-{day:02}" for day in range(1, 21)]
    rows += [f"0.5,0.5,{day:02}.01.2020" for day in range(1, 21)]
    path = write(tmp_path / "a.csv", "lon,lat,at", *rows)
    line = (
        "20 of 40 rows are left out: the column 'at' holds no time there that is written as in "
        "2017-09-11T08:30:00+08:00 (--read time-format names another form)."
    )
    assert told(path, HOURS, OF_HOURS) == [line]


@pytest.mark.parametrize("form", ["csv", "parquet", "float"])
def test_milliseconds_without_their_unit(form: str, tmp_path: Path) -> None:
    moments = [1_577_836_800_000 + 1000 * n for n in range(10)]
    source: Any = pa.table({"lon": [0.5] * 10, "lat": [0.5] * 10, "at": moments})
    if form == "csv":
        source = write(tmp_path / "a.csv", "lon,lat,at", *(f"0.5,0.5,{at}" for at in moments))
    elif form == "float":
        source = source.set_column(2, "at", source["at"].cast(pa.float64()))
    (line,) = told(source, HOURS, OF_HOURS, allow_empty=True)
    assert line.startswith("10 of 10 rows are left out: the column 'at' holds no time of the years")
    assert "is --read time-unit right?" in line
    assert told(source, HOURS, OF_HOURS, time_unit="ms") == []


def test_people_and_their_times(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.csv",
        "lon,lat,who,at",
        "0.5,0.5,ann,2020-01-01",
        "0.5,0.5,,noon",
        "0.5,0.5,bob,",
    )
    people: dict[str, Any] = {"user": "who", "max_records": 1, "time": "at"}
    assert told(path, **people) == [
        "1 of 3 rows is taken to be of one moment: the column 'at' is empty there.",
        "1 of 3 rows is taken to be of one moment: the column 'at' holds no time there that is "
        "written as in 2017-09-11T08:30:00+08:00 (--read time-format names another form).",
        "1 of 3 rows is left out: the column 'who' names nobody there.",
    ]
    assert told(path, **people, once_per="all") == [
        "1 of 3 rows is left out: the column 'who' names nobody there."
    ]


def test_people_who_are_counted_need_times_only_in_periods(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.csv",
        "lon,lat,who,at",
        "0.5,0.5,ann,2020-01-01",
        "0.5,0.5,,noon",
        "0.5,0.5,bob,",
    )
    nobody = "1 of 3 rows is left out: the column 'who' names nobody there."
    people: dict[str, Any] = {"user": "who", "count": "people", "time": "at"}
    assert told(path, **people) == [nobody]
    assert told(path, **people, once_per="all") == [nobody]
    assert told(path, **people, per="week") == [
        "1 of 3 rows is left out: the column 'at' is empty there.",
        "1 of 3 rows is left out: the column 'at' holds no time there that is written as in "
        "2017-09-11T08:30:00+08:00 (--read time-format names another form).",
        nobody,
    ]
    assert told(path, **people, once_per="day")[0] == (
        "1 of 3 rows is taken to be of one moment: the column 'at' is empty there."
    )


def test_times_with_a_zone_and_without(tmp_path: Path) -> None:
    """Each is read by itself, so that no record decides about others; and the curator hears of it."""
    path = write(
        tmp_path / "a.csv",
        "lon,lat,at",
        "0.5,0.5,2020-01-01T05:00",
        "0.5,0.5,2020-01-01T05:00+04:00",
    )
    notes: list[str] = []
    matrix = read_points(path, HOURS, OF_HOURS, tell=notes.append)
    assert sorted(matrix.exact_coordinates[2].tolist()) == [1, 5]
    (note,) = notes
    assert note.startswith("For your eyes only")
    assert "some times in the column 'at' name a time zone and some do not" in note


def test_text_of_sqlite_that_is_not_utf8(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "a.sqlite")) as connection:
        connection.execute("CREATE TABLE pings (lon, lat, who)")
        connection.execute("INSERT INTO pings VALUES (0.5, 0.5, 'ann')")
        connection.execute("INSERT INTO pings VALUES (0.5, 0.5, CAST(x'ff' AS TEXT))")
        connection.commit()
    options: dict[str, Any] = {"table": "pings", "user": "who", "max_records": 1}
    matrix = read_points(tmp_path / "a.sqlite", MAP, ["lon", "lat"], **options)
    assert int(matrix.exact_counts.sum()) == 1
    assert told(tmp_path / "a.sqlite", **options) == [
        "1 of 2 rows is left out: the column 'who' names nobody there."
    ]


def test_points_of_geometries(tmp_path: Path) -> None:
    import geopandas

    points = geopandas.points_from_xy([0.5, 0.6], [0.5, 0.5]).tolist()
    geopandas.GeoDataFrame(geometry=[*points, None], crs="OGC:CRS84").to_parquet(
        tmp_path / "a.parquet"
    )
    assert told(tmp_path / "a.parquet") == [
        "1 of 3 rows is left out: the column 'geometry' is empty there."
    ]


@pytest.mark.parametrize("before", ["", '0.5,0.5,"quoted, and\nwith lines"\n'])
@pytest.mark.parametrize(
    "last",
    [
        "z" * 40_000_000,
        "0.5,0.5," + "z" * 2_100_000 + "\n0.5,0.5,a\n",
        '0.5,0.5,"' + "z\n" * 1_100_000 + '"\n',
    ],
)
def test_records_that_are_too_long_are_refused(last: str, before: str, tmp_path: Path) -> None:
    """DuckDB passes over the longest ones at the end of a file in silence."""
    (tmp_path / "a.csv").write_text(f"lon,lat,more\n0.5,0.5,a\n{before}{last}", encoding="utf-8")
    with pytest.raises(InputError, match="a record of more than 2 MB: is a line end missing"):
        read_points(tmp_path / "a.csv", MAP)


def test_long_records_and_long_files_are_read(tmp_path: Path) -> None:
    """Across the blocks in which a file is looked through, within quotes and not."""
    long = "z" * 1_900_000
    lines = [f"0.5,0.5,{long}", f'0.5,0.5,"{long[: 10**6]}\n\n{long[: 8 * 10**5]}"'] * 10
    matrix = read_points(write(tmp_path / "a.csv", "lon,lat,more", *lines), MAP)
    assert int(matrix.exact_counts.sum()) == 20


def test_the_screen_says_it_and_the_release_does_not(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    rows = ["0.5,0.5"] * 10 + ["north,0.5"] * 1234
    path, output = write(tmp_path / "a.csv", "lon,lat", *rows), tmp_path / "out.parquet"
    asked = [
        "release",
        str(path),
        "--bounds",
        "0,0,1,1",
        "--cells",
        "8",
        "--epsilon",
        "1",
        "-o",
        str(output),
    ]
    assert main.run([*asked, "--noise", "fast"]) == 0
    out, err = capfd.readouterr()
    assert (
        "1,234 of 1,244 rows are left out: the column 'lon' holds no number there; see lines 12,"
        in err
    )
    assert "For your eyes only" in err
    assert "1,234" not in out
    assert "holds no number" not in out + repr(pq.read_schema(output).metadata)


def test_it_is_said_once_and_before_an_activity_is_charged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """For that the data are read first, and then again for the release."""
    seen: list[str] = []

    def measure(*asked: Any, **options: Any) -> Any:
        seen.append(capfd.readouterr().err)
        return measure_activity(*asked, **options)

    monkeypatch.setattr("htf.curator.contributions.measure_activity", measure)
    rows = ["0.5,0.5,a"] * 10 + ["north,0.5,a"] * 1234
    path = write(tmp_path / "a.csv", "lon,lat,who", *rows)
    asked = ["release", str(path), "--bounds", "0,0,1,1", "--cells", "8", "--noise", "fast"]
    people = ["--user", "who", "--max-records", "auto", "--epsilon", "1"]
    assert main.run([*asked, *people, "-o", str(tmp_path / "out.parquet")]) == 0
    assert "1,234 of 1,244 rows are left out" in seen[0]
    assert "Using the columns" in seen[0]
    assert "left out" not in capfd.readouterr().err


def test_a_release_from_python_has_no_note_either() -> None:
    moment = dt.datetime(2020, 1, 1)
    table = pa.table({"lon": [0.5, None], "lat": [0.5, 0.5], "at": [moment, None]})
    notes: list[str] = []
    matrix = read_points(table, HOURS, OF_HOURS, tell=notes.append)
    assert len(notes) == 1
    assert "rows" not in str(publish(matrix, epsilon=1, noise="seeded:1").summary()["facts"])
