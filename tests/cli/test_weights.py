"""`htf release --weight` and `htf query --per`: what is charged, printed and written, and what is refused before
anything is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from htf import BudgetFile, Release, verify
from htf.cli.main import run

DRAW = np.random.default_rng(4)
NUMBER = 6000
PASSENGERS = np.where(DRAW.random(NUMBER) < 0.03, 40, DRAW.integers(0, 5, NUMBER))
TOLD = "sum of passengers, at most 6 per record"
BOXES = [[0, 0, 1, 1], [0, 0, 0.5, 1]]
WEIGHT = ["--weight", "passengers:6"]


@pytest.fixture(scope="module")
def points(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("points") / "rides.csv"
    rows = zip(DRAW.random(NUMBER), DRAW.random(NUMBER), PASSENGERS, strict=True)
    lines = [f"{x:.6f},{y:.6f},t{n % 700},{w}" for n, (x, y, w) in enumerate(rows)]
    odd = ["0.5,0.5,t1,-1", "0.5,0.5,t1,", "0.5,0.5,t1,several", "0.5,0.5,t1,nan"]
    path.write_text("\n".join(["lon,lat,taxi,passengers", *lines, *odd]) + "\n")
    return path


def command(points: Any, output: Path, *more: Any) -> list[str]:
    asked = ["--bounds", "0,0,1,1", "--cells", "16", "--epsilon", "1"]
    return ["release", *map(str, [points, *asked, "--noise", "fast", "-o", output, *more])]


@pytest.fixture(scope="module")
def pair(points: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Passengers, and rides."""
    folder = tmp_path_factory.mktemp("pair")
    sums, counts = folder / "passengers.parquet", folder / "rides.parquet"
    assert run(command(points, sums, *WEIGHT)) == 0
    assert run(command(points, counts)) == 0
    return sums, counts


CHARGED: dict[str, tuple[list[str], list[tuple[str, str]]]] = {
    "a twentieth": (WEIGHT, [("clipped", "0.05"), ("htf", "0.95")]),
    "a share": ([*WEIGHT, "--spend", "clipped=0.2"], [("clipped", "0.2"), ("htf", "0.8")]),
    "nothing": ([*WEIGHT, "--spend", "clipped=0"], [("htf", "1")]),
}
OF_TAXIS: dict[str, tuple[list[str], list[tuple[str, str]]]] = {
    "kept": (["--max-records", "3"], [("clipped", "0.05"), ("htf", "0.95")]),
    "not scaled": (["--max-records", "3", "--spend", "activity=0"], [("clipped", "0.05"), ("htf", "0.95")]),
    "with distinct": (
        ["--max-records", "3", "--distinct", "4"],
        [("distinct", "0.2"), ("clipped", "0.05"), ("htf", "0.75")],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", [*CHARGED, *OF_TAXIS])
def test_each_part_is_charged_once(
    case: str, points: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    of_people = case in OF_TAXIS
    options, wanted = OF_TAXIS[case] if of_people else CHARGED[case]
    unit = "one person" if of_people else "one record"
    budget = BudgetFile.create(tmp_path / "budget.sqlite", "rides", 3, unit=unit)
    to = ["--budget", budget.path, "--dataset", "rides"]
    more = [*options, *to, *([*WEIGHT, "--user", "taxi"] if of_people else [])]
    assert run(command(points, tmp_path / "out.parquet", *more)) == 0, capfd.readouterr().err
    found = [(e.mechanism, str(e.epsilon), e.state) for e in budget.account().entries]
    assert found == [(*one, "published") for one in wanted]
    made = Release.load(tmp_path / "out.parquet")
    assert all(check.passed for check in verify(tmp_path / "out.parquet"))
    assert made.counted.startswith(TOLD)
    exact = int(np.minimum(PASSENGERS, 6).sum())
    if not of_people:
        assert made.count().low[0] - 400 < exact < made.count().high[0] + 400
    assert (made.clipped is None) == (case == "nothing")
    told = capfd.readouterr().err
    assert "1 of 6,004 rows is left out: the column 'passengers' is negative there" in told


REFUSED: dict[str, tuple[list[str], str]] = {
    "no limit": (["--weight", "passengers"], "it takes COLUMN:W"),
    "no column": (["--weight", ":6"], "it takes COLUMN:W"),
    "a limit of 0": (["--weight", "passengers:0"], "1"),
    "people": ([*WEIGHT, "--user", "taxi"], "--max-records K"),
    "counted people": (
        ["--weight", "passengers:5000", "--user", "taxi", "--count", "people"], "256 shares of a person with weights up to 5000",
    ),
    "once": ([*WEIGHT, "--user", "taxi", "--max-records", "3", "--once-per", "all"], "may differ"),
    "auto without people": ([*WEIGHT, "--max-records", "auto"], "name the column of people"),
    "auto without an activity": (
        [*WEIGHT, "--user", "taxi", "--max-records", "auto", "--spend", "activity=0"], "give --spend activity a share above 0",
    ),
    "cut without weights": (["--spend", "clipped=0.1"], "it is about records above a largest weight"),
    "all of it": ([*WEIGHT, "--spend", "clipped=1"], "--spend clipped takes a share of epsilon"),
    "not a share": ([*WEIGHT, "--spend", "clipped=some"], "--spend clipped takes a share of epsilon"),
    "hardly any": ([*WEIGHT, "--spend", "clipped=1e-16"], "less than 0.000000000000001, the smallest"),
    "nothing left": (
        [*WEIGHT, "--user", "taxi", "--max-records", "3", "--spend", "clipped=0.9", "--distinct", "4"], "leave nothing for the map",
    ),
    "too much together": (["--weight", "passengers:1000000", "--user", "taxi", "--max-records", "3"], "more than 1048576 together"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_go_together_is_refused_before_anything_is_read(
    case: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    options, says = REFUSED[case]
    assert run(command(tmp_path / "nowhere.csv", tmp_path / "out.parquet", *options)) != 0
    told = " ".join(capfd.readouterr().err.split())
    assert says in told
    assert "nowhere" not in told


@pytest.mark.parametrize("asked", [["auto"], ["3", "--spend", "activity=0.1"]])
def test_sums_are_scaled_to_all_records(
    asked: list[str], points: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Without being asked, sums are of the kept records."""
    out, plain = tmp_path / "scaled.parquet", tmp_path / "kept.parquet"
    options = [*WEIGHT, "--user", "taxi", "--max-records"]
    assert run(command(points, out, *options, *asked)) == 0
    made = Release.load(out)
    assert made.activity is not None
    assert (made.activity.weight, made.activity.max_weight) == ("passengers", 6)
    assert made.activity.decides == (asked == ["auto"])
    assert made.factor >= 1
    assert made.counted.endswith(", scaled")
    assert all(check.passed for check in verify(made))
    assert "How many people have how much passengers" in made.statement
    assert run(["info", str(out)]) == 0
    assert "units of passengers of a person" in " ".join(capfd.readouterr().out.split())
    assert run(command(points, plain, *options, "3")) == 0
    assert Release.load(plain).activity is None
    plain.unlink()
    counts = ["--user", "taxi", "--max-records", "3", "--spend", "activity=0"]
    assert run(command(points, plain, *counts)) == 0
    assert run(["query", str(out), "--per", str(plain)]) == 2
    assert "Make both with --spend activity=0" in " ".join(capfd.readouterr().err.split())


def test_it_is_shown(pair: tuple[Path, Path], capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["info", str(pair[0])]) == 0
    shown = " ".join(capfd.readouterr().out.split())
    assert "sums of passengers, at most 6 per record" in shown
    assert "most passengers counted per record 6" in shown
    assert "above 6, counted as 6" in shown
    assert "How much was cut off from them is not known" in shown
    assert run(["query", str(pair[0]), "--box", "0,0,0.5,0.5"]) == 0
    shown = " ".join(capfd.readouterr().out.split())
    assert f"Counted: {TOLD}." in shown
    assert run(["verify", str(pair[0])]) == 0
    assert "records above 6, with noise" in " ".join(capfd.readouterr().out.split())


def test_means_of_boxes(
    pair: tuple[Path, Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    boxes = tmp_path / "boxes.csv"
    boxes.write_text("name,west,south,east,north\nall,0,0,1,1\nhalf,0,0,0.5,1\nnone,2,2,3,3\n")
    asked = ["query", str(pair[0]), "--per", str(pair[1]), "--boxes", str(boxes)]
    assert run(asked) == 0
    shown = " ".join(capfd.readouterr().out.split())
    assert "Counted: mean of passengers, at most 6 per record." in shown
    assert "unbounded" in shown
    sums, counts = map(Release.load, pair)
    wanted = sums.count(BOXES).per(counts.count(BOXES))
    exact = np.minimum(PASSENGERS, 6).mean()
    assert wanted.low[0] - 0.1 < exact < wanted.high[0] + 0.1
    assert run([*asked, "--json"]) == 0
    rows = json.loads(capfd.readouterr().out)
    assert [row["mean"] for row in rows] == [*wanted.mean.tolist(), None]
    assert [row["bounded"] for row in rows] == [True, True, False]
    assert [row["high"] for row in rows] == [*wanted.high.tolist(), None]
    for ending in ("csv", "parquet", "geojson"):
        output = tmp_path / f"means.{ending}"
        assert run([*asked, "-o", str(output)]) == 0, capfd.readouterr().err
        if ending == "csv":
            table = pyarrow.csv.read_csv(output)
            assert table["mean"].to_pylist() == pytest.approx(rows_of(rows, "mean"), nan_ok=True)
            assert table["counted"].to_pylist() == ["mean of passengers, at most 6 per record"] * 3
        if ending == "parquet":
            about = json.loads(pq.read_schema(output).metadata[b"htf-export"])
            assert "divided by the number of records of another" in about["rule"]
            assert "mean of passengers" in about["rule"]


def rows_of(rows: list[dict[str, Any]], name: str) -> list[Any]:
    return [row[name] for row in rows]


def test_means_of_polygons(
    pair: tuple[Path, Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("geopandas")
    ring = [[0.1, 0.1], [0.9, 0.1], [0.5, 0.9], [0.1, 0.1]]
    feature = {"type": "Feature", "properties": {"name": "triangle"}, "geometry": {"type": "Polygon", "coordinates": [ring]}}  # fmt: skip
    polygons = tmp_path / "zones.geojson"
    polygons.write_text(json.dumps({"type": "FeatureCollection", "features": [feature]}))
    asked = ["query", str(pair[0]), "--per", str(pair[1]), "--polygons", str(polygons)]
    assert run([*asked, "--json"]) == 0, capfd.readouterr().err
    (row,) = json.loads(capfd.readouterr().out)
    sums, counts = map(Release.load, pair)
    wanted = sums.count_polygons(feature["geometry"]).per(
        counts.count_polygons(feature["geometry"])
    )
    assert row["mean"] == pytest.approx(wanted.mean[0])
    assert row["low"] == pytest.approx(wanted.low[0])
    assert run(asked) == 0
    assert "triangle" in capfd.readouterr().out
    assert run([*asked, "-o", str(tmp_path / "means.gpkg")]) == 0, capfd.readouterr().err


def test_means_that_cannot_be(
    pair: tuple[Path, Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for first, second, says in (
        (pair[1], pair[0], "needs the sum of a weight"),
        (pair[0], pair[0], "a mean is per record"),
        (pair[0], tmp_path / "none.parquet", "there is no file"),
    ):
        assert run(["query", str(first), "--per", str(second)]) != 0
        assert says in " ".join(capfd.readouterr().err.split())
    assert run(["query", str(pair[0]), "--per", str(pair[1]), "--distinct"]) != 0
    assert "--per" in capfd.readouterr().err
