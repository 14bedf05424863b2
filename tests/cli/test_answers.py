"""`htf query` with boxes: the same numbers on the screen and in files, names, endings, and the map's edge."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pandas
import pyarrow.parquet as pq
import pytest
import shapely

from htf import Domain, FrequencyMatrix, Protection, Release, publish
from htf.cli.main import run
from htf.frame.domain import FloatArray
from support import people_matrix, read_layer

EDGES = ["west", "south", "east", "north"]
ANSWERS = ["count", "std_error", "low", "high", "partial", "inside", "raw"]
LABEL = "counted"
NAMED = (
    "name,code,count,west,south,east,north\n"
    "Öst,00123,7,1,51,3,53\n"
    "half,00045,8,-2,52,2,54\n"
    "lost,00007,9,52,2,54,4\n"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("answers")
    cells = np.random.default_rng(2).normal(16, 4, (2, 20_000)).astype(np.int64)
    inside = np.all((cells >= 0) & (cells < 64), axis=0)
    for name, crs in (("r", "OGC:CRS84"), ("plane", None)):
        domain = Domain.from_bounds(0, 50, 10, 60, cells=64, crs=crs)
        matrix = FrequencyMatrix.from_cells(domain, cells[:, inside])
        publish(matrix, "0.1", noise="seeded:1").save(place / f"{name}.parquet")
    people = people_matrix(Domain.from_bounds(0, 50, 10, 60, cells=64), per="day")
    publish(people, 1, noise="seeded:1").save(place / "people.parquet")
    (place / "named.csv").write_text(NAMED, encoding="utf-8")
    return place


def ask(folder: Path, *options: Any, release: str = "r") -> int:
    return run(["query", str(folder / f"{release}.parquet"), *map(str, options)])


def odd_box(folder: Path) -> tuple[FloatArray, dict[str, float]]:
    """The box whose raw answer is farthest below zero, in standard errors, and its answer."""
    corners = np.random.default_rng(5).uniform((0, 50), (9, 59), (20_000, 2))
    boxes = np.hstack([corners, corners + 0.5])
    found = Release.load(folder / "r.parquet").count(boxes)
    place = int(np.argmin(found.raw / found.std_error))
    assert found.raw[place] < 0
    return boxes[place], found.to_dicts()[place]


def test_the_screen_has_the_interval_of_the_files(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Also where the raw counts are below zero."""
    box, answer = odd_box(folder)
    asked = ",".join(map(repr, box.tolist()))
    assert ask(folder, "--box", asked) == 0
    shown = " ".join(capfd.readouterr().out.split())
    assert answer["low"] == 0 <= answer["count"] <= answer["high"]
    assert f" {answer['low']:,.0f} to {answer['high']:,.0f} " in shown
    assert "below zero" not in shown
    assert ask(folder, "--box", asked, "--json", "-o", tmp_path / "out.csv") == 0
    (told,) = json.loads(capfd.readouterr().out)
    with open(tmp_path / "out.csv", newline="", encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    for name in ANSWERS:
        assert told[name] == float(row[name]) == answer[name]
    shape = geopandas.GeoDataFrame({"name": ["x"]}, geometry=[shapely.box(*box)], crs=4326)
    shape.to_parquet(tmp_path / "shape.parquet")
    assert ask(folder, "--polygons", tmp_path / "shape.parquet") == 0
    shown = " ".join(capfd.readouterr().out.split())
    assert f" {answer['low']:,.0f} to {answer['high']:,.0f} " in shown


def test_without_a_box_it_is_the_whole_map(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert ask(folder, "--json") == 0
    (told,) = json.loads(capfd.readouterr().out)
    expected = Release.load(folder / "r.parquet").count().to_dicts()[0]
    assert told == {**dict(zip(EDGES, [0, 50, 10, 60], strict=True)), **expected, LABEL: "records"}
    assert told["inside"] == 1
    assert ask(folder, "-o", tmp_path / "out.csv") == 0


@pytest.mark.parametrize("ending", ["csv", "json", "parquet", "geojson", "gpkg", "fgb"])
def test_answers_about_people_say_so(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], ending: str
) -> None:
    """On the screen, where few people have a decimal, and in every file."""
    asked = ["--box", "0,50,10,60", "--box", "0,50,0.2,50.2"]
    out = tmp_path / f"out.{ending}"
    assert ask(folder, *asked, "-o", out, release="people") == 0
    assert "records" not in capfd.readouterr().out
    readers = {
        "csv": pandas.read_csv,
        "json": lambda path: pandas.DataFrame(json.loads(path.read_text("utf-8"))),
        "parquet": pandas.read_parquet,
    }
    frame = readers.get(ending, read_layer)(out)
    assert frame[LABEL].tolist() == ["split person-days", "split person-days"]
    assert ask(folder, *asked, release="people") == 0
    shown = capfd.readouterr().out
    assert "records" not in shown.replace("split across their records", "")
    rows = [line.strip() for line in shown.splitlines() if "%" in line]
    header, all_of_it, few = (re.split(r"\s{2,}", row) for row in rows)
    assert header[1] == "split person-days"
    assert all_of_it[1].isdigit()
    assert re.fullmatch(r"-?\d+\.\d", few[1])


def test_a_bound_stands_below_the_table(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    release = Release.load(folder / "r.parquet")
    bounded = replace(release, protection=Protection("person", 20))
    bounded.save(tmp_path / "r.parquet")
    assert ask(tmp_path) == 0
    assert "Counted: records, at most 20 per person." in capfd.readouterr().out
    assert ask(folder) == 0
    assert "Counted:" not in capfd.readouterr().out


def test_a_box_outside_is_warned_of(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert ask(folder, "--box", "52,2,54,4", "--json") == 0
    told = capfd.readouterr()
    assert json.loads(told.out)[0]["inside"] == 0
    assert (
        "The box 52, 2, 54, 4 lies outside of the map, which goes from 0 to 10 along x and from 50 to 60 along "
        "y. The release knows nothing about it. With x and y swapped it would lie on the map"
        in told.err
    )
    assert ask(folder, "--box", "-2,52,2,54") == 0
    told = capfd.readouterr()
    assert "inside map" in told.out
    assert "50.0%" in told.out
    assert "outside" not in told.err


def test_python_warns_of_a_box_outside(folder: Path) -> None:
    release = Release.load(folder / "r.parquet")
    with pytest.warns(UserWarning, match="With x and y swapped it would lie on the map") as told:
        assert release.count([52, 2, 54, 4]).inside.tolist() == [0]
    assert told[0].filename == __file__
    release.count([1, 51, 1, 52])  # of no area, which holds nothing for sure


def test_names_are_on_the_screen(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert ask(folder, "--boxes", folder / "named.csv") == 0
    shown = capfd.readouterr().out
    assert re.search(r"^  name +records ", shown, re.M)
    assert [line.split()[0] for line in shown.splitlines() if "%" in line][1:] == [
        "Öst", "half", "lost",
    ]  # fmt: skip
    for header, names, words in (
        ("kind", ("a", "b"), ["kind", "records"]),
        ("ID", (1, 2), ["ID", "records"]),
        ("kind", ("a", "a"), ["kind", "box", "records"]),  # which tells nothing apart
        ("share", (0.5, 1.5), ["box", "records"]),
    ):
        rows = "".join(f"1,51,{east},52,{n}\n" for east, n in zip((2, 3), names, strict=True))
        (tmp_path / "b.csv").write_text(f"west,south,east,north,{header}\n{rows}")
        assert ask(folder, "--boxes", tmp_path / "b.csv") == 0
        lines = capfd.readouterr().out.splitlines()
        assert next(line for line in lines if "std. error" in line).split()[: len(words)] == words


@pytest.mark.parametrize("ending", ["csv", "json", "parquet", "geojson", "gpkg", "fgb"])
def test_the_ending_says_the_format_and_names_are_kept(
    folder: Path, tmp_path: Path, ending: str
) -> None:
    out = tmp_path / f"out.{ending}"
    assert ask(folder, "--boxes", folder / "named.csv", "-o", out) == 0
    readers = {
        "csv": lambda path: pandas.read_csv(path, dtype={"code": str}),
        "json": lambda path: pandas.DataFrame(json.loads(path.read_text("utf-8"))),
        "parquet": pandas.read_parquet,
    }
    frame = readers.get(ending, read_layer)(out).set_index("name", drop=False)
    frame = frame.loc[["Öst", "half", "lost"]]
    shape = ["geometry"] if ending in ("geojson", "gpkg", "fgb") else []
    assert list(frame.columns) == [*EDGES, "name", "code", "given_count", *ANSWERS, LABEL, *shape]
    assert frame["code"].tolist() == ["00123", "00045", "00007"]
    assert frame["given_count"].tolist() == [7, 8, 9]
    assert frame[LABEL].tolist() == ["records"] * 3
    boxes = np.array([[1, 51, 3, 53], [-2, 52, 2, 54]])
    expected = Release.load(folder / "r.parquet").count(boxes)
    for name, column in expected.to_columns().items():
        np.testing.assert_allclose(frame[name][:2], column, rtol=1e-12)
    if shape:
        found = shapely.bounds(frame.geometry.to_numpy())
        np.testing.assert_allclose(found[:2], boxes, atol=1e-9)
    if ending == "parquet":
        assert b"htf-export" in pq.read_schema(out).metadata
    assert list(tmp_path.iterdir()) == [out]


def test_what_cannot_be_written_is_refused_before_counting(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise AssertionError("counted")

    monkeypatch.setattr("htf.query.boxes.count_rows", fail)
    monkeypatch.setattr("htf.query.polygons.count_polygons", fail)
    shape = geopandas.GeoDataFrame({"name": ["x"]}, geometry=[shapely.box(1, 51, 2, 52)])
    shape.to_parquet(tmp_path / "plane.parquet")
    shape.set_crs(4326).to_parquet(tmp_path / "shape.parquet")
    for name in ("out.shp", "out.ods", "out.txt", "out"):
        for asked in (["--box", "1,51,2,52"], ["--polygons", tmp_path / "shape.parquet"]):
            assert ask(folder, *asked, "-o", tmp_path / name) == 2
            told = " ".join(capfd.readouterr().err.split())
            assert f"cannot tell the format of '{name}'" in told
            assert ".csv, .xlsx, .json, .parquet, .geojson, .fgb, .gpkg" in told
    for asked in (["--box", "1,51,2,52"], ["--polygons", tmp_path / "plane.parquet"]):
        assert ask(folder, *asked, "-o", tmp_path / "out.geojson", release="plane") == 2
        assert "there is no reference system" in capfd.readouterr().err
    assert not list(tmp_path.glob("out*"))


def test_attributes_of_every_kind_are_kept(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """As they are where a table can have them, else as text; under other names where ours are taken."""
    outlines = [shapely.box(1, 51, 3, 53), shapely.box(2, 52, 4, 54)]
    frame = geopandas.GeoDataFrame(
        {
            "label": ["a", "b"], "Count": [1, 2], "name": ["x", None], "Name": ["y", "z"], "bbox": ["p", "q"],
            "fid": [7, 7], "geom": ["g", "h"], "pop": [1.5, np.inf], "gap": pandas.array([4, None], "Int64"),
            "ok": [True, False], "big": np.array([2**63 + 1, 1], np.uint64), "bytes": [b"ab", b"\xff"],
            "tags": [[1, 2], []], "facts": [{"a": 1.5}, {"a": None}],
            "when": pandas.to_datetime(["2020-01-02T03:04:05", None]), "kind": pandas.Categorical(["u", "v"]),
        },
        geometry=outlines, crs=4326,
    )  # fmt: skip
    frame["second"] = geopandas.GeoSeries(outlines, crs=4326)
    frame.to_parquet(tmp_path / "zones.parquet")
    expected = {
        "label": "a", "given_Count": 1, "name": "x", "given_Name": "y", "given_bbox": "p", "fid": 7, "geom": "g",
        "pop": 1.5, "gap": 4, "ok": True, "big": "9223372036854775809", "bytes": "6162", "tags": "[1, 2]",
        "facts": '{"a": 1.5}', "when": "2020-01-02T03:04:05", "kind": "u", "second": outlines[0].wkt,
    }  # fmt: skip
    asked = ["--polygons", tmp_path / "zones.parquet", "--by", "label"]
    assert ask(folder, *asked, "--json") == 0
    first, second = json.loads(capfd.readouterr().out, parse_constant=pytest.fail)
    assert [*first] == [*expected, *ANSWERS, LABEL]
    assert {name: first[name] for name in expected} == expected
    assert [second[name] for name in ("name", "pop", "gap", "when")] == [None] * 4
    for ending in ("csv", "json", "parquet", "geojson", "gpkg", "fgb"):
        out = tmp_path / f"out.{ending}"
        assert ask(folder, *asked, "-o", out) == 0
        readers = {"csv": pandas.read_csv, "json": pandas.read_json, "parquet": pandas.read_parquet}
        found = readers.get(ending, read_layer)(out)
        found = found.set_index("label").loc[["a", "b"]]
        shape = [] if ending in ("csv", "json") else ["geometry"]
        extra = ["bbox"] if ending == "parquet" else []  # the covering of GeoParquet
        assert list(found.columns) == [*expected, *ANSWERS, LABEL, *shape, *extra][1:], ending
        assert found["given_Count"].tolist() == [1, 2]
        assert found["fid"].tolist() == [7, 7]


def test_two_columns_of_one_name_are_refused(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    frame = geopandas.GeoDataFrame({"a": ["x"], "b": ["y"]}, geometry=[shapely.box(1, 51, 3, 53)])
    frame.to_parquet(tmp_path / "zones.parquet")
    table = pq.read_table(tmp_path / "zones.parquet").replace_schema_metadata(
        {b"geo": pq.read_schema(tmp_path / "zones.parquet").metadata[b"geo"]}
    )
    pq.write_table(table.rename_columns(["a", "a", "geometry"]), tmp_path / "zones.parquet")
    assert ask(folder, "--polygons", tmp_path / "zones.parquet") == 2
    assert "a" in capfd.readouterr().err


def test_some_polygons_outside_are_told(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    shapes = [shapely.box(1, 51, 3, 53), shapely.box(20, 51, 30, 53)]
    frame = geopandas.GeoDataFrame({"name": ["here", "there"]}, geometry=shapes, crs=4326)
    frame.to_parquet(tmp_path / "zones.parquet")
    assert ask(folder, "--polygons", tmp_path / "zones.parquet") == 0
    told = " ".join(capfd.readouterr().err.split())
    assert "Counted as 0, because they lie off the map: 1 of 2 polygons (there)." in told
