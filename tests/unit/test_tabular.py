"""Answers as tables: what was asked stands beside what was answered, in Arrow, pandas and GeoPandas."""

from __future__ import annotations

import pickle
import sqlite3
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import openpyxl
import pandas
import pyarrow as pa
import pytest
import shapely
from click.testing import CliRunner

import htf
from htf.cli.main import cli
from htf.errors import InputError, MissingExtraError
from htf.export.tables import write_sheet

BOXES = [[0, 0, 1, 1], [0, 0, 2, 2]]


def release_of(**options: Any) -> htf.Release:
    domain = htf.Domain.from_bounds(0, 0, 2, 2, cells=2, **options)
    matrix = htf.FrequencyMatrix.from_dense(domain, [[500, 20], [0, 30]])
    return htf.publish(matrix, 1, "singular", noise="seeded:1")


@pytest.fixture(scope="module")
def release() -> htf.Release:
    return release_of()


def named_release() -> htf.Release:
    kinds = htf.Names.of({"kind": ["tram", "bus", "bike"]})
    domain = htf.Domain((htf.Axis.named("kind", kinds),))
    matrix = htf.FrequencyMatrix.from_dense(domain, [70, 30, 10])
    return htf.publish(matrix, 1, "singular", noise="seeded:1")


def districts() -> geopandas.GeoDataFrame:
    return geopandas.GeoDataFrame(
        {"name": ["west", "east"], "count": [7, None]},
        geometry=[shapely.box(0, 0, 1, 2), shapely.box(1, 0, 2, 2)],
        index=["w", "e"],
        crs="EPSG:4326",
    )


def test_boxes_have_their_edges_and_rectangles(release: htf.Release) -> None:
    answers = release.count(BOXES)
    frame = answers.to_geopandas()
    assert frame[["west", "south", "east", "north"]].to_numpy().tolist() == BOXES
    assert frame["count"].tolist() == answers.count.tolist()
    assert frame.bounds.to_numpy().tolist() == BOXES
    assert frame.crs == release.domain.crs
    assert answers.to_arrow().column_names == [*frame.columns.drop("geometry")]
    assert answers.to_arrow()["counted"].to_pylist() == ["records", "records"]


def test_polygons_of_a_frame_keep_attributes_index_and_system(release: htf.Release) -> None:
    given = districts().to_crs("EPSG:3857")
    frame = release.count_polygons(given).to_geopandas()
    assert frame.index.tolist() == ["w", "e"]
    assert frame["name"].tolist() == ["west", "east"]
    assert frame["given_count"].isna().tolist() == [False, True]
    assert frame.crs == given.crs
    assert frame.geometry.geom_equals(given.geometry).all()
    assert release.count_polygons(given).to_pandas().index.tolist() == ["w", "e"]


def test_polygons_of_geojson_keep_their_properties(release: htf.Release) -> None:
    feature = {"type": "Feature", "properties": {"name": "west"}, "geometry": None}
    shape = {"type": "Feature", "geometry": shapely.geometry.mapping(shapely.box(0, 0, 1, 2))}
    collection = {"type": "FeatureCollection", "features": [feature, shape]}
    frame = release.count_polygons(collection).to_geopandas()
    assert frame["name"].isna().tolist() == [False, True]
    assert frame.geometry.isna().tolist() == [True, False]
    assert str(frame.crs) == "OGC:CRS84"


def test_bare_polygons_are_in_the_given_system_or_the_maps(release: htf.Release) -> None:
    one = shapely.box(0, 0, 1, 1)
    assert release.count_polygons(one).to_geopandas().crs == release.domain.crs
    assert release.count_polygons(one, crs="EPSG:4326").to_geopandas().crs == "EPSG:4326"
    several = release.count_polygons(shape for shape in (one, one))  # can be read only once
    assert several.to_geopandas().bounds.to_numpy().tolist() == [BOXES[0]] * 2


def test_a_map_without_a_system_has_none() -> None:
    assert release_of(crs=None).count(BOXES).to_geopandas().crs is None


def test_names_stand_for_ranges() -> None:
    release = named_release()
    frame = release.count(where={"kind": "bus"}).to_pandas()
    assert frame["kind"].tolist() == ["bus"]
    assert release.count([[0, 3], [0, 2]]).to_pandas()["kind"].tolist() == ["all", "tram … bus"]
    with pytest.raises(InputError, match=r"shapes need a map .* has kind: use to_pandas"):
        release.count().to_geopandas()


def test_differences_and_means_are_tables_too(release: htf.Release) -> None:
    changes = release.count(BOXES).minus(release.count(BOXES)).to_geopandas()
    assert changes["change"].tolist() == [0, 0]
    assert changes["west"].tolist() == [0, 0]
    assert changes.bounds.to_numpy().tolist() == BOXES
    taxis = {"lon": [0.5] * 500, "lat": [0.5] * 500, "passengers": [2] * 500}
    sums = htf.read_points(taxis, release.domain, weight="passengers", max_weight=6)
    trips = htf.read_points(taxis, release.domain)
    first, second = (
        htf.publish(one, 1, noise=f"seeded:{n}").count() for n, one in enumerate((sums, trips))
    )
    means = first.per(second)
    assert means.to_pandas()["mean"].between(1.8, 2.2).all()
    assert means.to_geopandas().bounds.to_numpy().tolist() == [BOXES[1]]


def test_what_was_asked_survives_a_pickle_and_cannot_be_changed(release: htf.Release) -> None:
    boxes = np.array(BOXES, dtype=float)
    answers = pickle.loads(pickle.dumps(release.count(boxes)))
    boxes[:] = 9
    assert answers.to_pandas()["east"].tolist() == [1, 2]


def test_answers_that_know_no_question(release: htf.Release) -> None:
    answers = replace(release.count(BOXES), asked=None)
    assert answers.to_arrow().column_names[0] == "count"
    with pytest.raises(InputError, match=r"do not know what was asked: take those of Release\.ask"):
        answers.to_geopandas()


@pytest.mark.parametrize(
    ("package", "method", "extra"),
    [("pandas", "to_pandas", "tables"), ("geopandas", "to_geopandas", "geo")],
)
def test_a_missing_package_is_named(
    package: str, method: str, extra: str, release: htf.Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = release.count(BOXES)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf"htf-dp\[{extra}\]"):
        getattr(answers, method)()


def test_a_notebook_shows_the_first_rows(release: htf.Release) -> None:
    frame = districts().assign(name=["<b>", "east"])
    html = release.count_polygons(frame)._repr_html_()
    assert "&lt;b&gt;" in html
    many = release.count(np.tile(BOXES, (20, 1)))._repr_html_()
    assert many.count("<tr>") == 1 + 20
    assert "40 rows, of which the first 20 are shown" in many


def test_a_notebook_shows_a_plot(release: htf.Release) -> None:
    figure = release.plot(title="Costs $5 and $6")
    png: bytes = figure._repr_png_()  # type: ignore[attr-defined]
    assert png.startswith(b"\x89PNG")
    assert figure.get_suptitle() == r"Costs \$5 and \$6"  # no formula
    ax = figure.axes[0]
    with pytest.raises(InputError, match="leave out title, or ax"):
        release.plot(title="x", ax=ax)


def styles_in(path: Path) -> dict[str, tuple[str, str]]:
    """Labels with their tests and colours, read as QGIS reads them."""
    with sqlite3.connect(path) as connection:
        rows = connection.execute(
            "SELECT f_table_name, f_geometry_column, useAsDefault, styleQML FROM layer_styles "
            "WHERE update_time IS NOT NULL"  # which QGIS orders by
        ).fetchall()
    (table, column, is_default, text), *rest = rows
    assert (column, bool(is_default), rest) == ("geom", True, [])
    assert table
    root = ET.fromstring(text)
    colours = {
        one.attrib["name"]: one.findall(".//Option[@name='color']")[0].attrib["value"]
        for one in root.iter("symbol")
    }
    return {
        one.attrib["label"]: (one.attrib["filter"], colours[one.attrib["symbol"]])
        for one in root.iter("rule")
    }


def test_a_geopackage_opens_in_the_colours_of_our_maps(
    release: htf.Release, tmp_path: Path
) -> None:
    """Tried with QGIS 3.22: the layer opened in these colours."""
    release.save(tmp_path / "city.parquet")
    output = tmp_path / "city.gpkg"
    ran = CliRunner().invoke(cli, ["export", str(tmp_path / "city.parquet"), "-o", str(output)])
    assert ran.exit_code == 0, ran.output
    found = styles_in(output)
    assert len(found) == 8
    assert found["no more than noise"] == ("ELSE", "233,237,242,255")
    frame = pandas.DataFrame(geopandas.read_file(output, layer="leaves").drop(columns="geometry"))
    tests = [test for test, _ in found.values() if test != "ELSE"]
    hits = sum(_holds(test, frame) for test in tests)
    assert (
        hits.tolist() == (frame["low"] > 0).astype(int).tolist()
    )  # one colour for each that is clear


def _holds(test: str, frame: pandas.DataFrame) -> Any:
    parts = [one.replace('"', "") for one in test.split(" AND ") if one != "TRUE"]
    return frame.eval(" and ".join(f"({one})" for one in parts)).astype(int)


def test_a_geopackage_of_changes_has_two_sides(release: htf.Release, tmp_path: Path) -> None:
    before, after, output = (tmp_path / name for name in ("a.parquet", "b.parquet", "c.gpkg"))
    release.save(before)
    domain = release.domain
    matrix = htf.FrequencyMatrix.from_dense(domain, [[900, 20], [0, 30]])
    htf.publish(matrix, 1, "singular", noise="seeded:2").save(after)
    ran = CliRunner().invoke(cli, ["compare", str(before), str(after), "-o", str(output)])
    assert ran.exit_code == 0, ran.output
    labels = [*styles_in(output)]
    assert [one[0] for one in labels] == ["−"] * 3 + ["+"] * 3 + ["n"]


@pytest.mark.parametrize("ending", [".pdf", ".svg", ".png"])
def test_a_picture_carries_its_title_and_statement(
    ending: str, release: htf.Release, tmp_path: Path
) -> None:
    release.save(tmp_path / "city.parquet")
    outputs = [tmp_path / f"{number}{ending}" for number in range(2)]
    for output in outputs:
        arguments = [
            "map",
            str(tmp_path / "city.parquet"),
            "-o",
            str(output),
            "--title",
            "Our town",
        ]
        assert CliRunner().invoke(cli, arguments).exit_code == 0
    first, second = (output.read_bytes() for output in outputs)
    assert first == second  # no date, no random names
    assert b"Our town" in first


def test_a_page_has_its_title(release: htf.Release, tmp_path: Path) -> None:
    release.save(tmp_path / "city.parquet")
    output = tmp_path / "city.html"
    arguments = ["map", str(tmp_path / "city.parquet"), "-o", str(output), "--title", "A & <b>"]
    assert CliRunner().invoke(cli, arguments).exit_code == 0
    text = output.read_text(encoding="utf-8")
    assert "<title>A &amp; &lt;b&gt;</title>" in text
    assert "<p>city; singular" in text


def test_leaves_and_zones_as_sheets(release: htf.Release, tmp_path: Path) -> None:
    release.save(tmp_path / "city.parquet")
    for name, options in (("leaves", []), ("zones", ["--grid", "2,2"])):
        output = tmp_path / f"{name}.xlsx"
        arguments = ["export", str(tmp_path / "city.parquet"), "-o", str(output), *options]
        ran = CliRunner().invoke(cli, arguments)
        assert ran.exit_code == 0, ran.output
        sheets = pandas.read_excel(output, sheet_name=None)
        assert len(sheets["answers"]) == (len(release) if name == "leaves" else 4)
        assert "geometry" not in sheets["answers"].columns
        assert "statement" in pandas.read_excel(output, "about", header=None)[0].tolist()


def test_no_text_of_a_sheet_is_a_formula(tmp_path: Path) -> None:
    """Neither a value nor the name of a column, which may come from anybody's layer."""
    evil = '=HYPERLINK("http://example.org","x")'
    write_sheet(pa.table({evil: ["=1+1"], "count": [2]}), tmp_path / "x.xlsx", {evil: "=2+2"})
    for sheet in openpyxl.load_workbook(tmp_path / "x.xlsx").worksheets:
        for cell in (cell for row in sheet.iter_rows() for cell in row):
            assert cell.data_type != "f", (sheet.title, cell.coordinate)
    assert openpyxl.load_workbook(tmp_path / "x.xlsx")["answers"]["A1"].value == evil
