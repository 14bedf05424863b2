"""`htf query --polygons`: files of every kind in and out, labels, and mistakes."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pandas
import pyogrio
import pytest
import shapely

from htf import Domain, FrequencyMatrix, Release, publish
from htf.cli.main import run
from support import read_layer

BOW_TIE = shapely.Polygon([(2, 52), (4, 54), (4, 52), (2, 54)])
SHAPES = [
    shapely.box(0, 50, 3, 53),
    shapely.Point(5, 55).buffer(2),
    BOW_TIE,
    shapely.box(7, 57, 13, 60),
]
NAMES = ["Aa", "Öst", "Tie", "Edge"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("polygons")
    domain = Domain.from_bounds(0, 50, 10, 60, cells=32)
    cells = np.random.default_rng(2).normal(16, 6, (2, 20_000)).astype(np.int64)
    inside = np.all((cells >= 0) & (cells < 32), axis=0)
    matrix = FrequencyMatrix.from_cells(domain, cells[:, inside])
    publish(matrix, "1", "ug", noise="seeded:1").save(place / "r.parquet")
    frame = geopandas.GeoDataFrame({"name": NAMES, "code": [3, 1, 4, 1]}, geometry=SHAPES, crs=4326)
    frame.to_file(place / "zones.geojson")
    frame.to_file(place / "zones.gpkg")
    frame.to_parquet(place / "zones.parquet")
    frame.to_file(place / "zones.shp", encoding="utf-8")
    frame.to_file(place / "zones.fgb", driver="FlatGeobuf", SPATIAL_INDEX="NO")
    frame.assign(geometry=shapely.points([1, 2, 3, 4], 55)).to_file(place / "points.geojson")
    frame.to_file(place / "two.gpkg", layer="one")
    frame.to_file(place / "two.gpkg", layer="other")
    (place / "no.geojson").write_text("nothing")
    (place / "table.csv").write_text("a,b\n1,2\n")
    return place


def ask(folder: Path, *options: Any) -> int:
    return run(["query", str(folder / "r.parquet"), *map(str, options)])


@pytest.mark.parametrize("ending", ["geojson", "gpkg", "parquet", "shp", "fgb"])
def test_files_of_every_kind_give_the_answers_of_the_library(
    folder: Path, ending: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert ask(folder, "--polygons", folder / f"zones.{ending}", "--by", "name", "--json") == 0
    told = capfd.readouterr()
    expected = Release.load(folder / "r.parquet").count_polygons(SHAPES).to_dicts()
    codes = [3, 1, 4, 1]
    for row, answer, name, code in zip(json.loads(told.out), expected, NAMES, codes, strict=True):
        assert [*row] == ["label", "name", "code", *answer, "counted"]
        assert row.pop("counted") == "records"
        assert (row.pop("label"), row.pop("name"), row.pop("code")) == (name, name, code)
        assert row == pytest.approx(answer, rel=1e-6)
    assert expected[3]["inside"] == pytest.approx(0.5)
    assert "1 of 4 polygons (Tie)" in told.err
    assert "NOT PRIVATE" in told.err


@pytest.mark.parametrize("ending", ["geojson", "gpkg", "parquet", "fgb"])
def test_layers_are_written_with_geometry_and_statement(
    folder: Path, tmp_path: Path, ending: str
) -> None:
    out = tmp_path / f"out.{ending}"
    assert ask(folder, "--polygons", folder / "zones.gpkg", "-o", out) == 0
    read = geopandas.read_parquet if ending == "parquet" else read_layer
    layer = read(out).set_index("label").loc[NAMES]
    answers = Release.load(folder / "r.parquet").count_polygons(SHAPES)
    for name, column in answers.to_columns().items():
        np.testing.assert_allclose(layer[name], column, rtol=1e-9)
    assert layer.crs.equals("EPSG:4326", ignore_axis_order=True)
    np.testing.assert_allclose(shapely.area(layer.geometry.to_numpy()), shapely.area(SHAPES), 1e-6)
    assert b"NOT PRIVATE" in out.read_bytes() or ending == "parquet"
    assert list(tmp_path.iterdir()) == [out]


def test_a_csv_has_a_row_for_each_feature(folder: Path, tmp_path: Path) -> None:
    """Also where a label is there twice: rows are kept apart, as their bars do not add up."""
    out = tmp_path / "out.csv"
    assert ask(folder, "--polygons", folder / "zones.geojson", "--by", "code", "-o", out) == 0
    with open(out, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == [
        "label", "name", "code", "count", "std_error", "low", "high", "partial", "inside", "raw", "counted",
    ]  # fmt: skip
    assert [row["name"] for row in rows] == NAMES
    assert [row["label"] for row in rows] == ["3", "1", "4", "1"]


def test_labels_are_guessed_only_where_one_column_is_text(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert ask(folder, "--polygons", folder / "zones.geojson") == 0
    told = capfd.readouterr().out
    assert "Öst" in told
    assert "50.0%" in told
    frame = geopandas.read_file(folder / "zones.geojson")
    frame.assign(other=["a", None, "b", "c"]).to_file(tmp_path / "two.gpkg")
    assert ask(folder, "--polygons", tmp_path / "two.gpkg", "--json") == 0
    assert [row["label"] for row in json.loads(capfd.readouterr().out)] == ["0", "1", "2", "3"]
    assert ask(folder, "--polygons", tmp_path / "two.gpkg", "--by", "other", "--json") == 0
    assert [row["label"] for row in json.loads(capfd.readouterr().out)] == ["a", "", "b", "c"]


def test_labels_are_no_markup(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    names = ["[bold]Old Town[/bold]", "Ward [/3]", ":smile:"]
    frame = geopandas.GeoDataFrame({"name": names}, geometry=SHAPES[:3], crs=4326)
    frame.to_file(tmp_path / "[red]x.geojson")
    assert ask(folder, "--polygons", tmp_path / "[red]x.geojson") == 0
    told = capfd.readouterr().out
    assert all(name in told for name in names)


def test_tables_without_geometry_are_no_layers(folder: Path, tmp_path: Path) -> None:
    """QGIS keeps styles in a table of a GeoPackage."""
    shutil.copy(folder / "zones.gpkg", tmp_path / "zones.gpkg")
    styles = pandas.DataFrame({"styleName": ["a"]})
    pyogrio.write_dataframe(styles, tmp_path / "zones.gpkg", layer="layer_styles", append=True)
    assert len(pyogrio.list_layers(tmp_path / "zones.gpkg")) == 2
    assert ask(folder, "--polygons", tmp_path / "zones.gpkg", "-o", tmp_path / "out.csv") == 0
    assert (tmp_path / "out.csv").read_text("utf-8").count("\n") == len(SHAPES) + 1


@pytest.mark.parametrize("ending", ["geojson", "gpkg", "parquet", "fgb", "csv"])
def test_features_without_an_outline_are_told_and_kept(
    folder: Path, tmp_path: Path, ending: str, capfd: pytest.CaptureFixture[str]
) -> None:
    shapes = [SHAPES[0], None, shapely.Polygon()]
    frame = geopandas.GeoDataFrame({"name": ["a", "b", "c"]}, geometry=shapes, crs=4326)
    frame.to_parquet(tmp_path / "some.parquet")
    out = tmp_path / f"out.{ending}"
    assert ask(folder, "--polygons", tmp_path / "some.parquet", "-o", out) == 0
    assert "no outline: 2 of 3 polygons (b, c)" in capfd.readouterr().err
    read = {"parquet": geopandas.read_parquet, "csv": pandas.read_csv}.get(ending, read_layer)  # fmt: skip
    found = read(out)
    assert found["label"].tolist() == ["a", "b", "c"]
    assert (found["count"] == 0).tolist() == [False, True, True]


def test_a_layer_that_misses_the_map_is_told(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Coordinates in metres whose reference system got lost look like polygons far away."""
    metres = geopandas.GeoSeries(SHAPES, crs=4326).to_crs(3857).set_crs(None, allow_override=True)
    for crs, says in ((None, "names no reference system"), (3035, "ETRS89-extended / LAEA Europe")):
        frame = geopandas.GeoDataFrame({"name": NAMES}, geometry=metres.to_numpy(), crs=crs)
        frame.translate(5e6).to_frame("geometry").to_parquet(tmp_path / "far.parquet")
        assert ask(folder, "--polygons", tmp_path / "far.parquet") == 0
        told = " ".join(capfd.readouterr().err.split())
        assert "No polygon lies on the map (OGC:CRS84); their file" in told
        assert says in told


MISTAKES = {
    "no file": (["no.gpkg"], "there is no file"),
    "a folder": (["."], "is a folder: name the file in it"),
    "no format": (
        ["no.geojson"],
        "not recognized as being in a supported file format. The formats are",
    ),
    "no geometry": (["table.csv"], "has no geometry"),
    "no GeoParquet": (["r.parquet", "--by", "no"], "no column 'no'"),
    "points": (["points.geojson"], "geometry 0 (counted from 0) is a Point, not a polygon"),
    "two layers": (["two.gpkg"], "has several layers (one, other)"),
    "no column": (
        ["zones.geojson", "--by", "no"],
        "no column 'no'; its columns are 'name', 'code'",
    ),
    "boxes too": (
        ["zones.geojson", "--box", "0,50,1,51"],
        "give boxes, zones or --polygons FILE, only one of them",
    ),
    "no axis": (["zones.geojson", "--where", "hour=7:10"], "no axis 'hour'"),
    "no writer": (["zones.geojson", "-o", "out.shp"], "must end in one of"),
    "no folder": (["zones.geojson", "-o", "none/out.gpkg"], "there is no folder"),
    "the release": (["zones.geojson", "-o", "r.parquet", "--overwrite"], "would be lost"),
    "the polygons": (["zones.geojson", "-o", "zones.geojson", "--overwrite"], "would be lost"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes_are_named(
    case: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    options, says = MISTAKES[case]
    before = sorted(path.name for path in folder.iterdir())
    assert ask(folder, "--polygons", *options) == 2
    told = capfd.readouterr()
    assert says in " ".join(told.err.split())
    assert "Traceback" not in told.err
    assert sorted(path.name for path in folder.iterdir()) == before


def test_a_column_needs_polygons(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert ask(folder, "--box", "0,50,1,51", "--by", "name") == 2
    assert "there is no level 'name'" in capfd.readouterr().err
