"""`htf query` of zones, levels and categories, on the screen and in files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import geopandas
import openpyxl
import pytest

from htf import Axis, Names
from htf.cli.main import run
from support import read_layer
from support_zones import zone_domain, zone_release

KINDS = Axis.named("offence", Names.of({"offence": ["Assault", "=1+1"]}, rest="other"))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    saved = tmp_path_factory.mktemp("zones") / "zones.parquet"
    zone_release(zone_domain(KINDS)).save(saved)
    return saved


def told(capfd: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> str:
    assert run(list(map(str, arguments))) == code
    found = capfd.readouterr()
    return found.out if code == 0 else found.err


def test_on_the_screen(path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    shown = told(capfd, "query", path)
    assert all(tract in shown for tract in ("t0", "t8"))
    shown = told(capfd, "query", path, "--level", "district", "--where", "offence=Assault")
    assert "North" in shown
    assert "Assault" in shown
    shown = told(capfd, "query", path, "--zone", "South", "--zone", "t8", "--by", "offence")
    assert shown.count("South") == 3
    assert shown.count("other") == 2


def test_as_json(path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    rows = json.loads(told(capfd, "query", path, "--level", "district", "--json"))
    assert [row["district"] for row in rows] == ["North", "South", "East"]
    one = json.loads(told(capfd, "query", path, "--where", "zone=North", "--json"))
    assert len(one) == 1
    assert one[0]["count"] == rows[0]["count"]
    assert "zone_low" not in rows[0]


def test_as_a_workbook(path: Path, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "table.xlsx"
    told(capfd, "query", path, "--by", "offence", "-o", out)
    book = openpyxl.load_workbook(out)
    rows = [[cell.value for cell in row] for row in book["answers"].iter_rows()]
    assert rows[0][:2] == ["offence", "count"]
    assert [row[0] for row in rows[1:]] == ["Assault", "=1+1", "other"]
    assert book["answers"]["A3"].data_type == "s"  # a name that looks like a formula stays a name
    assert any(row[0].value == "statement" for row in book["about"].iter_rows())
    assert "already exists" in told(capfd, "query", path, "-o", out, code=2)


def test_as_a_layer(path: Path, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "table.gpkg"
    told(capfd, "query", path, "-o", out)
    frame = read_layer(out)
    assert list(frame["mayor"]) == [f"M{n}" for n in range(9)]
    assert frame.geometry.iloc[4].bounds == (1, 1, 2, 2)
    told(capfd, "query", path, "--level", "district", "-o", tmp_path / "d.geojson")
    districts = geopandas.read_file(tmp_path / "d.geojson")
    assert [shape.bounds for shape in districts.geometry] == [
        (0, 0, 3, 1),
        (0, 1, 3, 2),
        (0, 2, 3, 3),
    ]


WRONG: dict[str, tuple[Sequence[str], str]] = {
    "no zone": (["--zone", "Atlantis"], "there is no 'Atlantis': tract has 't0'"),
    "no level": (["--level", "county"], "no level 'county': zone has tract, district"),
    "several levels": (["--level", "district,offence"], "give one by --level and another by --by"),
    "too few edges": (["--box", "0,0,1"], "ask for zones by --zone or --level"),
    "boxes": (["--box", "0,0,1,1", "--zone", "North"], "boxes or --zone NAME, not both"),
    "polygons": (["--polygons", "x.gpkg", "--zone", "North"], "only one of them"),
    "a cut axis": (["--by", "offence", "--where", "offence=Assault"], "counts every offence"),
    "distinct": (["--distinct", "--level", "district"], "without boxes"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_refused(name: str, path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    options, says = WRONG[name]
    assert says in told(capfd, "query", path, *options, code=2)


def test_polygons_of_zones_are_refused(
    path: Path, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    told(capfd, "query", path, "-o", tmp_path / "z.gpkg")
    said = told(capfd, "query", path, "--polygons", tmp_path / "z.gpkg", code=2)
    assert "polygons need a map with axes x and y, but this one has zone, offence" in said


def test_without_openpyxl(
    path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "openpyxl", None)
    assert "htf-dp[tables]" in told(capfd, "query", path, "-o", "t.xlsx", code=2)


def test_points_of_zones_have_names(
    path: Path, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Numbers of cells would mean nothing elsewhere."""
    out = tmp_path / "points.csv"
    told(capfd, "sample", path, "-o", out, "--n", 500, "--seed", 1)
    header, *rows = out.read_text().splitlines()
    assert header == '"zone","offence"'
    assert {row.split(",")[0].strip('"') for row in rows} <= {f"t{n}" for n in range(9)}
    told(capfd, "export", path, "-o", tmp_path / "x.csv")
    assert "t3" in (tmp_path / "x.csv").read_text()
