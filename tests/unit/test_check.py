"""`htf check` and `htf.check_points`: what a source holds, for the curator's eyes only, and what to do about it."""

from __future__ import annotations

import json
import shlex
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from htf import Domain, InputError, Release, check_points
from htf.cli.main import run

MAP = Domain.from_bounds(0, 0, 1, 4, 4)
COLUMNS: dict[str, list[Any]] = {
    "lon": [0.5, 0.25, 3.5, 9.0, None, 0.0],
    "lat": [0.5, 3.5, 0.25, 9.0, 0.5, 0.0],
    "user_id": [1, 1, 1, 2, 2, 3],
    "ts": [1_700_000_000 + 86_400 * n for n in range(6)],
}


def in_csv(folder: Path) -> tuple[Any, dict[str, Any]]:
    names = list(COLUMNS)
    rows = [
        ["" if v is None else str(v) for v in row] for row in zip(*COLUMNS.values(), strict=True)
    ]
    (folder / "a.csv").write_text("\n".join(",".join(row) for row in [names, *rows]))
    return folder / "a.csv", {}


def in_parquet(folder: Path) -> tuple[Any, dict[str, Any]]:
    pq.write_table(pa.table(COLUMNS), folder / "a.parquet")
    return folder / "a.parquet", {}


def in_folder(folder: Path) -> tuple[Any, dict[str, Any]]:
    (folder / "many").mkdir()
    table = pa.table(COLUMNS)
    for number in range(2):
        pq.write_table(table.slice(3 * number, 3), folder / "many" / f"{number}.parquet")
    return folder / "many", {}


def in_sqlite(folder: Path) -> tuple[Any, dict[str, Any]]:
    with closing(sqlite3.connect(folder / "a.sqlite")) as connection:
        connection.execute(f"CREATE TABLE t ({', '.join(COLUMNS)})")
        rows = zip(*COLUMNS.values(), strict=True)
        connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
        connection.commit()
    return folder / "a.sqlite", {"table": "t"}


def in_duckdb(folder: Path) -> tuple[Any, dict[str, Any]]:
    rows = pa.table(COLUMNS)
    with duckdb.connect(str(folder / "a.duckdb")) as connection:
        connection.execute("CREATE TABLE t AS SELECT * FROM rows")
    del rows
    return folder / "a.duckdb", {"table": "t"}


def in_memory(_: Path) -> tuple[Any, dict[str, Any]]:
    return pa.table(COLUMNS), {}


SOURCES = [in_csv, in_parquet, in_folder, in_sqlite, in_duckdb, in_memory]


@pytest.mark.parametrize("make", SOURCES)
def test_every_source_has_the_same_facts(make: Callable[[Path], Any], tmp_path: Path) -> None:
    source, options = make(tmp_path)
    found = check_points(source, MAP, **options)
    assert found.rows == 6
    assert found.roles == {"x": "lon", "y": "lat", "user": "user_id", "time": "ts"}
    assert (found.inside, found.outside, found.swapped) == (3, 2, 3)
    assert found.extent == (0, 9, 0, 9)
    assert found.at_zero == 1
    assert found.people == 3
    assert found.records_per_person == {"median": 2, "90 %": 3, "99 %": 3, "most": 3}
    assert (found.first, found.last) == ("2023-11-14T22:13:20", "2023-11-19T22:13:20")
    (unread,) = found.unread
    assert unread["rows"] == 1
    assert "'lon' is empty" in unread["reason"]
    expected = {"in_csv": "line 6", "in_parquet": "row 5", "in_folder": "row 2 of 1.parquet"}
    assert unread["where"] == expected.get(make.__name__, "")


MESSY = ["Fahrten im April", "", "Lon;lat;Wer;wann"]
MESSY += [
    f"0,{n:02};0,5;Jürgen {n % 7};{n % 28 + 1:02}.04.2012 {n % 24:02}:30" for n in range(10, 90)
]
MESSY[10] = "0,5;x;Jürgen 8;99.99.2012 00:00"
MESSY += ["Summe;80"]


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "utf-16"])
def test_the_command_reads_a_messy_file(
    encoding: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """The advice is enough: the command it ends with makes a release, and nothing was written before."""
    monkeypatch.chdir(tmp_path)
    Path("fahrten.csv").write_bytes("\r\n".join(MESSY).encode(encoding))
    assert run(["check", "fahrten.csv", "--user", "wer", "--bounds", "0,0,1,1", "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert list(tmp_path.iterdir()) == [tmp_path / "fahrten.csv"]
    assert found["note"].startswith("For your eyes only")
    assert found["rows"] == 80
    assert found["inside"] == 79
    assert [(one["rows"], one["where"]) for one in found["unread"]] == [(1, "line 11")] * 2
    assert found["people"] == 8
    assert found["first"] == "2012-04-01T04:30:00"
    assert ("--read encoding=" in found["command"]) == (encoding != "utf-8")
    command = shlex.split(found["command"])
    for option in (["--read", "skip-lines=2"], ["--read", "skip-last=1"], ["--read", "decimal=,"]):
        assert option[1] in command[command.index(option[0]) :]
    assert "time-format=%d.%m.%Y %H:%M" in command
    small = ["--cells", "8", "--noise", "fast", "--mechanism", "ug"]
    assert run([*command[1:], *small]) == 0
    assert Release.load(Path(command[-1])).protection.name == "one person"


def test_bounds_are_never_taken_from_the_data(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    source, _ = in_csv(tmp_path)
    assert run(["check", str(source)]) == 0
    told = capfd.readouterr().out
    assert told.startswith("For your eyes only")
    assert "--bounds W,S,E,N" in told
    assert "Choose the bounds, epsilon and the grid from public knowledge" in told
    assert "public region" in told


def test_advice(tmp_path: Path) -> None:
    hints = "\n".join(check_points({"lon": [40.0, 41.0], "lat": [-74.0, -73.0]}, NEW_YORK).hints)
    assert "if x and y were swapped" in hints
    assert "No column seems to name people" in hints
    metres = check_points({"x": [531_000.0], "y": [180_000.0]})
    assert "are no degrees" in "\n".join(metres.hints)
    rows = {"lon": [0.5, 0.5], "lat": [0.5, 0.5], "user": ["a", "b"]}
    assert "Everybody has one record" in "\n".join(check_points(rows, MAP).hints)
    millis = check_points({"lon": [0.5], "lat": [0.5], "ts": [1_700_000_000_123]})
    assert "--read time-unit=ms" in millis.command
    assert millis.first == "2023-11-14T22:13:20"
    del tmp_path


NEW_YORK = Domain.from_bounds(-75, 40, -73, 42, 4, crs=None)


def test_other_reference_systems_and_zones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flat = Domain.from_bounds(0, 0, 111_000, 111_000, 4, crs="EPSG:3857")
    found = check_points({"lon": [0.5, 5.0], "lat": [0.5, 0.5]}, flat, crs="EPSG:4326")
    assert (found.inside, found.outside) == (1, 1)
    assert "--read points-crs=EPSG:4326" in found.command
    import geopandas
    import shapely

    from htf import read_zones

    layer = geopandas.GeoDataFrame(
        {"n": ["a"], "d": ["A"]}, geometry=[shapely.box(0, 0, 1, 1)], crs="EPSG:4326"
    )
    zones = Domain((read_zones(layer, "n"),))
    found = check_points({"lon": [0.5, 5.0], "lat": [0.5, 0.5]}, zones)
    assert (found.inside, found.outside) == (1, 1)
    layer.to_file(tmp_path / "zones.gpkg")
    source, _ = in_csv(tmp_path)
    asked = ["--zones", str(tmp_path / "zones.gpkg"), "--by", "n", "--within", "d"]
    assert run(["check", str(source), *asked]) == 0
    assert " ".join(asked) in capsys.readouterr().out


def test_files_that_cannot_be_checked(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("lon,lat\n0.5,0.5\n0.5\n" + "0.5,0.5\n" * 9)
    with pytest.raises(InputError, match=r"line 3 \(1\)"):
        check_points(path)
    path.write_text("1,2\n3,4\n")
    with pytest.raises(InputError, match="names columns"):
        check_points(path)
    path.write_text("a,b\n3,4\n")
    with pytest.raises(InputError, match="which columns are x and y"):
        check_points(path)
    path.write_text("lon,lat\n")
    assert check_points(path, MAP).rows == 0


def test_arrays_are_checked_as_they_are_read() -> None:
    found = check_points([[0.5, 5.0], [0.5, 0.4]], Domain.from_bounds(0, 0, 2, 2, cells=2))
    assert (found.inside, found.outside) == (1, 1)
    for few in ([], (), [[0.5]]):
        with pytest.raises(
            InputError, match=f"one array for each axis, x and y first, got {len(few)}"
        ):
            check_points(few)
    with pytest.raises(InputError, match="the dict has no columns"):
        check_points({})


def test_exact_numbers_are_shown_only_on_request() -> None:
    found = check_points({"lon": [0.5] * 1234, "lat": [0.5] * 1234}, MAP)
    assert "1,234" not in repr(found)
    assert "1234" not in repr(found)
    assert "1,234 rows" in str(found)


def test_of_a_recipe_records_are_looked_for_along_all_axes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    columns = {
        **{name: [0.5] * 5 for name in ("lon", "lat", "lon2")}, "lat2": [0.5, 0.5, 0.5, 7.0, 0.5],
        "kind": ["bus", "tram", "car", "bus", "bus"], "riders": [1, 2, 3, 4, -1],
    }  # fmt: skip
    pq.write_table(pa.table(columns), "a.parquet")
    Path("r.toml").write_text(
        'source = "a.parquet"\nbounds = "0,0,1,1"\ncells = "4"\ndest_x = "lon2"\ndest_y = "lat2"\n'
        'categories = ["kind=bus,tram"]\nweight = "riders"\nmax_weight = 5\nepsilon = "1"\n'
    )
    assert run(["check", "r.toml", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["rows"], told["inside"], told["outside"]) == (5, 3, 2)
    assert [one["rows"] for one in told["unread"]] == [1]
    assert told["command"] == "htf release r.toml -o r.parquet"
    assert (
        run(["check", "r.toml", "--bounds", "0,0,1,8", "--json"]) == 0
    )  # in place of what it says
    assert json.loads(capsys.readouterr().out)["inside"] == 4
    Path("r.toml").write_text('bounds = "0,0,1,1"\nepsilon = "1"\n')
    assert run(["check", "r.toml"]) == 2
    assert "give it a source" in " ".join(capsys.readouterr().err.split())
