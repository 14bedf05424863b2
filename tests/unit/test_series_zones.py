"""Series of zones: a table by district every month."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.csv
import pytest

import htf
from htf import InputError, Series
from htf.cli.main import run
from htf.frame.domain import IntArray
from htf.series.borrowing import borrow
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
    first, second = (opened.release(period) for period in opened.periods)
    assert (second.mechanism, second.priors, first.background) == ("zones", (), None)
    assert second.background is not None
    assert "borrow from 1 other releases" in second.statement
    assert np.array_equal(second.estimates, np.rint(second.estimates))
    districts = second.table("district")["count"].to_numpy()
    assert districts.sum() == second.estimates.sum()
    assert all(check.passed for check in verify_series("tracts"))
    assert all(check.passed for check in htf.verify("tracts/2026-02.parquet"))
    assert run(["series", "revise", "tracts", "-o", "revised"]) == 0
    assert np.array_equal(opened.revised("2026-01").scales, first.scales)
    assert run([*ADD, "--period", "2026-03"]) == 0
    assert Series("tracts").periods[-1] == "2026-03"
    assert run(["series", "show", "tracts"]) == 0
    assert "3 of 6 periods were released" in capsys.readouterr().out


def fifth_month(mixed: bool, sides: int, seed: int) -> tuple[list[htf.Release], IntArray]:
    """A release of zones, or of pairs of them, without what it borrows and with it, and the exact counts. The month may be
    mixed up."""
    names = htf.Names.of(
        {"zone": [f"z{n}" for n in range(24)], "group": [f"g{n // 6}" for n in range(24)]}
    )
    domain = htf.Domain(tuple(htf.Axis.named(name, names) for name in ("from", "to")[:sides]))
    random, before = np.random.default_rng(seed), []
    usual = random.gamma(0.5, 200 if sides == 1 else 20, domain.shape)
    for month in range(5):
        if mixed and month == 4:
            usual = random.permutation(usual.ravel()).reshape(usual.shape)
        exact = random.poisson(usual * np.exp(random.normal(0, 0.1, usual.shape)))
        matrix = htf.FrequencyMatrix.from_dense(domain, exact)
        before.append(htf.publish(matrix, "0.05", noise=f"seeded:{10 * seed + month}"))
    plain = before.pop()
    return [plain, borrow(plain, before)], exact


def borrowed_over_plain(mixed: bool, sides: int, seed: int) -> tuple[float, float]:
    """ln of the error with what was borrowed over that without, and how often intervals hold the truth."""
    releases, exact = fifth_month(mixed, sides, seed)
    cells, true = np.indices(exact.shape).reshape(sides, -1).T, exact.ravel()
    plain, made = (one.count(np.hstack([cells, cells + 1]).astype(np.float64)) for one in releases)
    errors = [np.abs(one.count - true).mean() for one in (made, plain)]
    held = (made.low <= true) & (true <= made.high)
    return float(np.log(errors[0] / errors[1])), float(held.mean())


@pytest.mark.parametrize("sides", [1, 2])
def test_zones_gain_where_little_changes_and_lose_next_to_nothing_where_all_does(
    sides: int,
) -> None:
    """Twenty seeds give 0.73 and 1.00 for zones, 0.80 and 0.99 for pairs."""
    (alike, held), (apart, held_apart) = (
        np.mean([borrowed_over_plain(mixed, sides, seed) for seed in range(8)], axis=0)
        for mixed in (False, True)
    )
    assert np.exp(alike) < 0.9
    assert np.exp(apart) < 1.03
    assert min(held, held_apart) > 0.92


def test_another_background_of_zones_is_found() -> None:
    (plain, made), _ = fifth_month(False, 1, 1)
    assert not np.array_equal(made.estimates, plain.estimates)
    assert np.array_equal(made.scales, plain.scales)  # intervals borrow nothing
    assert all(check.passed for check in htf.verify(made) if check.name != "noise")
    assert made.background is not None
    known = replace(made.background, values=made.background.values[::-1].copy())
    forged = htf.verify(replace(made, background=known))
    assert [check.name for check in forged if not check.passed] == ["sums"]


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
    assert run(["export", "tracts", "--grid", "4,4", "-o", "grid.csv"]) == 2
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
