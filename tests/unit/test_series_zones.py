"""Series of zones: a table by district every month."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow.csv
import pytest

import htf
from htf import InputError, Series
from htf.cli.main import run
from htf.series.verification import verify_series
from htf.serve.holdings import find_sources

ADD = ["series", "add", "tracts", "visits.csv", "--noise", "fast"]
RECIPE = """
zones = "zones.gpkg"
by = "tract"
within = "district"
time = "when"
epsilon = 2
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A layer, visits of three months, and a series of the first two. In February, half of the visits are gone."""
    place = tmp_path_factory.mktemp("zones")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        htf.synthetic_zones(tracts=12, districts=3).to_file("zones.gpkg")
        city, random = htf.synthetic_city(6000, seed=1), np.random.default_rng(1)
        day = random.integers(0, 90, 6000)
        kept = ~((day >= 31) & (day < 59) & (random.random(6000) < 0.5))
        rows = [
            f"{x:.5f},{y:.5f},{np.datetime64('2026-01-01') + int(one)}"
            for x, y, one in zip(city.x[kept], city.y[kept], day[kept], strict=True)
        ]
        Path("visits.csv").write_text("\n".join(["lon,lat,when", *rows]) + "\n")
        Path("tracts.toml").write_text(RECIPE)
        assert run(["series", "init", "tracts", "tracts.toml", "--releases", "6"]) == 0
        for month in ("2026-01", "2026-02"):
            assert run([*ADD, "--period", month]) == 0
    return place


@pytest.fixture
def place(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(made, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


def test_the_plan_keeps_the_layer(place: Path) -> None:
    opened = Series(place / "tracts")
    names = opened.plan.domain.axes[0].names
    assert names is not None
    assert names.outlines is not None
    axis = htf.read_zones("zones.gpkg", "tract", ["district"])
    assert opened.plan.domain == htf.Domain((axis,))
    assert opened.release("2026-02").domain == opened.plan.domain
    assert "layer" not in opened.plan.to_dict()["domain"]
    assert list(opened.plan.layers.values()) == ["zones.gpkg"]


def test_zones_are_released_and_checked(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    opened = Series(place / "tracts")
    for period in opened.periods:
        release = opened.release(period)
        assert (release.mechanism, release.priors, release.background) == ("zones", (), None)
    assert all(check.passed for check in verify_series("tracts"))
    assert run([*ADD, "--period", "2026-03"]) == 0
    assert Series("tracts").periods[-1] == "2026-03"
    assert run(["series", "show", "tracts"]) == 0
    assert "3 of 6 periods were released" in capsys.readouterr().out


def test_a_changed_layer_is_found(place: Path) -> None:
    file = place / "tracts" / "series.json"
    said = json.loads(file.read_text())
    layer = said["domain"]["layer"]
    layer[0][2] = layer[1][2]
    file.write_text(json.dumps(said))
    with pytest.raises(InputError, match="is of another map"):
        Series("tracts").release("2026-01")
    layer.pop()
    file.write_text(json.dumps(said))
    with pytest.raises(InputError, match="zones are missing"):
        Series("tracts")


def test_questions_by_name(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    opened = Series(place / "tracts")
    table = opened.release("2026-01").table("district").to_pydict()
    assert run(["query", "tracts", "--by", "period", "--level", "district", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["count"] for row in rows if row["period"] == "2026-01"] == table["count"]
    assert [row["district"] for row in rows][:3] == table["district"]
    district = table["district"][int(np.argmax(table["count"]))]
    assert run(["query", "tracts", "--zone", district, "--change", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["since"], row["period"], row["zone"]) == ("2026-01", "2026-02", district)
    assert row["percent"] == pytest.approx(-55, abs=15)  # half, of a month with 28 days
    assert row["beyond_noise"]
    assert run(["query", "tracts", "--change"]) == 0
    assert "zone" in capsys.readouterr().out
    for wrong in (["--box", "0,0,1,1"], ["--polygons", "zones.gpkg"], ["--zone", "Atlantis"]):
        assert run(["query", "tracts", *wrong]) == 2


def test_tables_layers_and_pictures(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["export", "tracts", "-o", "long.csv"]) == 0
    long = pyarrow.csv.read_csv("long.csv")
    assert long.column_names[:3] == ["period", "tract", "district"]
    assert {"low", "high", "tract", "district", "dwellings"} <= set(long.column_names)
    assert len(long) == 2 * 12
    assert run(["export", "tracts", "-o", "long.geojson"]) == 0
    features = json.loads(Path("long.geojson").read_text())["features"]
    assert len(features) == 24
    assert features[0]["geometry"]["type"] in ("Polygon", "MultiPolygon")
    for name in ("months.png", "months.html"):
        assert run(["map", "tracts", "--level", "district", "-o", name]) == 0
    assert run(["query", "tracts", "-o", "counts.csv"]) == 0
    assert "Wrote counts.csv: 24 answers." in capsys.readouterr().err
    assert run(["query", "tracts", "--change", "-o", "change.png"]) == 0
    assert "Wrote change.png: 12 changes." in capsys.readouterr().err
    change = ["query", "tracts", "--level", "district", "--change", "-o", "change.csv"]
    assert run(change) == 0
    assert "Wrote change.csv: 3 changes." in capsys.readouterr().err
    for wrong in (
        ["export", "tracts", "--grid", "4,4", "-o", "grid.csv"],
        ["series", "revise", "tracts", "-o", "revised"],
    ):
        assert run(wrong) == 2
    assert run(["compare", "tracts/2026-01.parquet", "tracts/2026-02.parquet", "--json"]) == 0
    assert place.exists()


def test_zones_are_served_as_a_series(place: Path) -> None:
    sources = find_sources([place / "tracts"])
    assert [one.name for one in sources] == ["tracts 2026-01", "tracts 2026-02"]
    series = {"id": "tracts", "name": "tracts"}
    assert [one.series for one in sources] == [
        series | {"period": m} for m in ("2026-01", "2026-02")
    ]


def test_the_layer_is_never_the_data(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy("zones.gpkg", "copy.parquet")
    assert run(["series", "add", "tracts", "copy.parquet", "--period", "2026-03"]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert (
        "copy.parquet is zones.gpkg, which names the zones or categories of tracts, or a copy of it"
        in told
    )
    assert "Nothing was charged." in told
    assert place.exists()
