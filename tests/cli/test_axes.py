"""`htf query --where`, `htf map` and `htf info` on releases with three and four axes."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from htf import Domain, FrequencyMatrix, Release, publish
from htf.cli.main import run
from htf.frame.crs import CRS84
from htf.frame.domain import Axis

PLACE = (Axis("x", 4.0, 5.0, 16), Axis("y", 52.0, 52.5, 16))
HOURS = Domain((*PLACE, Axis("hour", 0, 24, 24)), CRS84)
TRIPS = Domain((*PLACE, Axis("dest_x", 4.0, 5.0, 8), Axis("dest_y", 52.0, 52.5, 8)), CRS84)
BOX = "4.25,52.1,4.75,52.4"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("axes")
    generator = np.random.default_rng(1)
    for name, domain in (("hours", HOURS), ("trips", TRIPS)):
        counts = generator.poisson(20, domain.shape)
        for noise in ("fast", "seeded:1"):
            matrix = FrequencyMatrix.from_dense(domain, counts)
            release = publish(matrix, "1", "htf-paper" if name == "trips" else "htf", noise=noise)
            release.save(place / f"{name}-{noise[:4]}.parquet")
    return place


def told(capfd: pytest.CaptureFixture[str], *arguments: Any) -> str:
    assert run([str(argument) for argument in arguments]) == 0
    return capfd.readouterr().out


def test_a_box_and_ranges(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = folder / "hours-fast.parquet"
    (answer,) = json.loads(
        told(capfd, "query", path, "--box", BOX, "--where", "hour=7:10", "--json")
    )
    assert list(answer)[:6] == ["west", "south", "east", "north", "hour_low", "hour_high"]
    assert [answer[name] for name in list(answer)[:6]] == [4.25, 52.1, 4.75, 52.4, 7, 10]
    expected = Release.load(path).count([4.25, 52.1, 7, 4.75, 52.4, 10]).to_dicts()[0]
    assert {name: answer[name] for name in expected} == expected
    shown = told(capfd, "query", path, "--box", BOX, "--where", "hour=7:10")
    assert "hour" in shown
    assert "7 to 10" in shown
    assert " all " in told(capfd, "query", path, "--box", BOX)


def test_ranges_of_the_whole_map(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = folder / "trips-fast.parquet"
    ranges = ["--where", "dest_x=4.25:4.5", "--where", "dest_y=52:52.25"]
    (answer,) = json.loads(told(capfd, "query", path, *ranges, "--json"))
    release = Release.load(path)
    expected = release.count(where={"dest_x": (4.25, 4.5), "dest_y": (52, 52.25)})
    assert answer["count"] == expected.count[0]
    assert (answer["west"], answer["dest_x_low"], answer["dest_y_high"]) == (4.0, 4.25, 52.25)


def test_a_file_of_boxes_may_have_further_columns(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path, boxes, out = folder / "hours-fast.parquet", tmp_path / "in.csv", tmp_path / "out.csv"
    boxes.write_text(
        "name,hour_high,hour_low,west,south,east,north\n"
        "a,10,7,4.25,52.1,4.75,52.4\nb,24,0,4.25,52.1,4.75,52.4\n"
    )
    told(capfd, "query", path, "--boxes", boxes, "-o", out)
    with open(out, newline="") as file:
        rows = list(csv.DictReader(file))
    release = Release.load(path)
    expected = [
        release.count([4.25, 52.1, 4.75, 52.4], where={"hour": (7, 10)}).count[0],
        release.count([4.25, 52.1, 4.75, 52.4]).count[0],
    ]
    assert [float(row["count"]) for row in rows] == expected
    again = json.loads(told(capfd, "query", path, "--boxes", out, "--json"))  # answers can be asked
    assert [answer["count"] for answer in again] == expected
    boxes.write_text("west,south,east,north\n4.25,52.1,4.75,52.4\n")
    whole = json.loads(told(capfd, "query", path, "--boxes", boxes, "--json"))
    early = told(capfd, "query", path, "--boxes", boxes, "--where", "hour=7:10", "--json")
    assert [whole[0]["count"], json.loads(early)[0]["count"]] == expected[::-1]


def test_info_shows_every_axis(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    shown = told(capfd, "info", folder / "trips-fast.parquet")
    for name in TRIPS.names:
        assert f"  {name} " in shown
    assert "16,384 cells" in shown
    assert "0.0625" in shown  # the width of a cell
    assert told(capfd, "verify", folder / "trips-fast.parquet").count(" ok ") == 8


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("png", ["--where", "hour=7:10", "--boxes"]),
        ("svg", ["--axes", "hour,y"]),
        ("png", ["--by", "hour", "--where", "hour=6:12", "--where", "x=4.2:4.8"]),
    ],
    ids=str,
)
def test_maps(folder: Path, tmp_path: Path, kind: str, options: list[str]) -> None:
    pytest.importorskip("matplotlib")
    out = tmp_path / f"map.{kind}"
    assert run(["map", str(folder / "hours-fast.parquet"), "-o", str(out), *options]) == 0
    content = out.read_bytes()
    assert content.startswith(b"\x89PNG" if kind == "png" else b"<?xml")
    assert b"1-differentially private" in content  # the statement travels with the picture
    assert b"NOT PRIVATE" not in content
    again = ["map", str(folder / "hours-fast.parquet"), "-o", str(out), *options, "--overwrite"]
    assert run(again) == 0
    assert out.read_bytes() == content


def test_a_map_of_seeded_noise_cannot_be_mistaken(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "map.png"
    path = folder / "trips-seed.parquet"
    assert run(["map", str(path), "-o", str(out), "--axes", "dest_x,dest_y"]) == 0
    assert "NOT PRIVATE" in capfd.readouterr().err
    assert b"NOT PRIVATE" in out.read_bytes()


MISTAKES: dict[str, tuple[list[str], str]] = {
    "no axis": (["query", "--where", "day=1:2"], "no axis 'day': the map has x, y, hour"),
    "around midnight": (["query", "--where", "hour=22:4"], "22 to 24 and 0 to 4, and add"),
    "outside": (["query", "--where", "hour=24:25"], "outside"),
    "no range": (["query", "--where", "hour=7"], "AXIS=LOW:HIGH, such as hour=7:10, got 'hour=7'"),
    "words": (["query", "--where", "hour=a:b"], "AXIS=LOW:HIGH"),
    "twice": (["query", "--where", "hour=0:4", "--where", "hour=22:24"], "names hour twice"),
    "box and range": (["query", "--box", BOX, "--where", "x=4:5"], "leave x out of where"),
    "two kinds of boxes": (["query", "--box", BOX, "--boxes", "full.csv"], "give --box"),
    "lacks": (["query", "--boxes", "half.csv"], "hour_high is missing"),
    "both": (["query", "--boxes", "full.csv", "--where", "hour=1:2"], "leave it out of --where"),
    "down": (["query", "--boxes", "down.csv"], "hour from 22.0 down to 4.0"),
    "kind": (["map", "-o", "map.bmp"], ".svg or .pdf file, got 'map.bmp'"),
    "folder": (["map", "-o", "no/map.png"], "there is no folder"),
    "axes": (["map", "-o", "map.png", "--axes", "x"], "two different axes, got x"),
    "panels": (
        ["map", "-o", "map.png", "--by", "x"],
        "panels need an axis that is not drawn, but 'x' is: give another",
    ),
}


@pytest.mark.parametrize("case", list(MISTAKES))
def test_mistakes_are_named(
    case: str,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    edges = "west,south,east,north,hour_low"
    Path("half.csv").write_text(f"{edges}\n4,52,5,53,1\n")
    Path("full.csv").write_text(f"{edges},hour_high\n4,52,5,53,1,2\n")
    Path("down.csv").write_text(f"{edges},hour_high\n4,52,5,53,22,4\n")
    (command, *rest), says = MISTAKES[case]
    assert run([command, str(folder / "hours-fast.parquet"), *rest]) == 2
    assert says in " ".join(capfd.readouterr().err.split())
    assert not Path("map.png").exists()
