"""The command line as a user meets it: exit codes and what is on the screen, of one real process for each command;
what else a command can do runs in this process, because starting takes seconds."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from htf import Release
from htf.cli.main import cli, run
from htf.frame.crs import CRS84
from htf.recipes.maps import read_domain

BOUNDS = "-74.3,40.4,-73.6,41.0"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("cli")
    generator = np.random.default_rng(1)
    lon, lat = generator.normal(-74, 0.05, 30_000), generator.normal(40.7, 0.05, 30_000)
    pq.write_table(pa.table({"lon": lon, "lat": lat}), place / "points.parquet")
    (place / "boxes.csv").write_text(
        "name,west,south,east,north\na,-74.1,40.6,-73.9,40.8\nb,-74.3,40.4,-73.6,41.0\nc,-10,1,-9,2\n"
    )
    release = ["release", str(place / "points.parquet"), "--bounds", BOUNDS, "--cells", "256"]
    assert (
        run([*release, "--epsilon", "0.5", "--noise", "fast", "-o", str(place / "out.parquet")])
        == 0
    )
    seeded = ["--epsilon", "0.5", "--noise", "seeded:42", "-o", str(place / "seeded.parquet")]
    assert run([*release, *seeded]) == 0
    return place


def htf(*arguments: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "htf", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def htf_here(*arguments: Any) -> subprocess.CompletedProcess[str]:
    out, err, words = StringIO(), StringIO(), list(map(str, arguments))
    with redirect_stdout(out), redirect_stderr(err):
        code = run(words)
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())


def test_release_writes_what_it_says(folder: Path, tmp_path: Path) -> None:
    ran = htf(
        "release", folder / "points.parquet", "--x", "lon", "--y", "lat", "--bounds", BOUNDS, "--cells", "128,64",
        "--epsilon", "0.5", "--mechanism", "htf-paper", "--set", "height=6", "--set", "search_rounds=2",
        "-o", tmp_path / "out.parquet",
    )  # fmt: skip
    assert (ran.returncode, ran.stderr) == (0, "")
    release = Release.load(tmp_path / "out.parquet")
    assert release.domain.shape == (128, 64)
    assert release.private
    assert release.noise.startswith("OpenDP")
    assert (release.parameters["height"], release.parameters["search_rounds"]) == (6, 2)
    assert f"{len(release):,} leaves by htf-paper, epsilon 0.5" in ran.stdout


def test_a_square_around_a_point(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    arguments = ["--around", "40.7,-74,70", "--epsilon", "0.5", "--noise", "fast", "-o", str(out)]
    assert run(["release", str(folder / "points.parquet"), *arguments]) == 0
    x, y = Release.load(out).domain.axes
    assert (y.high - y.low) * 111.32 == pytest.approx(70)
    assert (x.high - x.low) * 111.32 * np.cos(np.radians(40.7)) == pytest.approx(70)


def test_query_json_is_in_the_order_asked(folder: Path) -> None:
    boxes = ["-74.1,40.6,-73.9,40.8", "-74.05,40.65,-73.95,40.75"]
    ran = htf_here(
        "query", folder / "seeded.parquet", "--box", boxes[0], "--box", boxes[1], "--json"
    )
    assert ran.returncode == 0
    answers = json.loads(ran.stdout)
    for box, answer in zip(boxes, answers, strict=True):
        assert [answer[e] for e in ("west", "south", "east", "north")] == [
            float(v) for v in box.split(",")
        ]
        assert {"count", "std_error", "low", "high", "partial"} <= set(answer)
        assert answer["low"] < answer["count"] < answer["high"]
    assert answers[0]["count"] > answers[1]["count"] > 10_000


def test_query_files(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "answers.csv"
    ran = htf("query", folder / "out.parquet", "--boxes", folder / "boxes.csv", "-o", out)
    assert (ran.returncode, ran.stdout) == (0, "")
    with open(out, newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == [
        "west", "south", "east", "north", "name", "count", "std_error", "low", "high", "partial", "inside", "raw", "counted",
    ]  # fmt: skip
    assert [float(row["west"]) for row in rows] == [-74.1, -74.3, -10]
    release = Release.load(folder / "out.parquet")
    assert float(rows[1]["count"]) == pytest.approx(release.estimates.sum())
    assert float(rows[1]["partial"]) == 0
    assert float(rows[2]["count"]) == 0
    assert [row["name"] for row in rows] == ["a", "b", "c"]
    assert [float(row["inside"]) for row in rows] == [1, 1, 0]
    assert "1 of 3 boxes lies outside of the map, which goes from -74.3 to -73.6" in ran.stderr


def test_query_table(folder: Path) -> None:
    ran = htf_here("query", folder / "out.parquet", "--box", "-74.1,40.6,-73.9,40.8")
    assert ran.returncode == 0
    assert "95 % interval" in ran.stdout
    assert "NOT PRIVATE" not in ran.stdout + ran.stderr


def test_info(folder: Path) -> None:
    told = json.loads(htf("info", folder / "out.parquet", "--json").stdout)
    assert told["epsilon"] == "0.5"
    assert told["private"] is True
    assert told["mechanism"] == "htf"
    assert told["parameters"]["halvings"] == 4
    assert told["leaves"] == len(Release.load(folder / "out.parquet"))
    assert told["ledger"][-1]["spent_after"] == told["spent"]
    shown = htf_here("info", folder / "out.parquet").stdout
    for words in (
        "0.5-differentially private",
        "one record",
        "Not protected",
        "round 1: counts",
        "Ledger",
    ):
        assert words in shown


def test_verify(folder: Path, tmp_path: Path) -> None:
    ran = htf("verify", folder / "out.parquet")
    assert ran.returncode == 0
    assert ran.stdout.count(" ok ") == 8
    (tmp_path / "cut.parquet").write_bytes((folder / "out.parquet").read_bytes()[:-50])
    ran = htf_here("verify", tmp_path / "cut.parquet")
    assert ran.returncode == 2
    assert "not a sound Parquet file" in ran.stderr


def test_a_seeded_release_cannot_be_mistaken(folder: Path, tmp_path: Path) -> None:
    """Release, info, query and verify say so, and the saved file and the picture carry it."""
    path = folder / "seeded.parquet"
    for command in (["info", path], ["query", path, "--box", "-74.1,40.6,-73.9,40.8"]):
        ran = htf_here(*command)
        assert ran.returncode == 0
        assert "NOT PRIVATE" in ran.stderr + ran.stdout
    assert "NOT private" in htf_here("verify", path).stdout
    told = json.loads(htf_here("info", path, "--json").stdout)
    assert told["private"] is False
    assert told["statement"].startswith("NOT PRIVATE")
    figure = Release.load(path).plot()
    texts = [text.get_text() for axes in figure.axes for text in axes.texts] + [
        t.get_text() for t in figure.texts
    ]
    assert any("NOT PRIVATE" in text for text in texts)
    made = htf_here(
        "release", folder / "points.parquet", "--bounds", BOUNDS, "--cells", "64", "--epsilon", "1",
        "--noise", "seeded:7", "-o", tmp_path / "again.parquet",
    )  # fmt: skip
    assert "NOT PRIVATE" in made.stderr


def test_mechanisms() -> None:
    listed = json.loads(htf("mechanisms", "--json").stdout)
    paper = next(m for m in listed if m["name"] == "htf-paper")
    assert {p["name"]: p["default"] for p in paper["parameters"]}[
        "epsilon_partition_level"
    ] == "0.001"
    assert "SIGSPATIAL 2021" in htf_here("mechanisms").stdout


def test_demo(tmp_path: Path) -> None:
    ran = htf("demo", "--out", tmp_path / "demo", "--points", 50_000)
    assert ran.returncode == 0
    for name in ("points.parquet", "release.parquet", "map.png"):
        assert (tmp_path / "demo" / name).stat().st_size > 1000
    assert "the whole map" in ran.stdout
    assert Release.load(tmp_path / "demo" / "release.parquet").private


def mistakes(folder: Path) -> dict[str, tuple[list[Any], int, str]]:
    points, out = folder / "points.parquet", folder / "never.parquet"
    good = ["release", points, "--bounds", BOUNDS, "--epsilon", "0.5", "-o", out]

    def but(*changes: Any) -> list[Any]:
        return [*good, *changes]

    return {
        "swapped bounds": (but("--bounds", "-73,40,-74,41"), 2, "west must be less than east"),
        "three bounds": (but("--bounds", "1,2,3"), 2, "got '1,2,3'"),
        "no bounds": (["release", points, "--epsilon", "1", "-o", out], 2, "--bounds W,S,E,N"),
        "both bounds": (but("--around", "1,2,3"), 2, "give --bounds"),
        "no epsilon": (["release", points, "--bounds", BOUNDS, "-o", out], 2, "--epsilon"),
        "bad epsilon": (but("--epsilon", "-1"), 2, "got '-1'"),
        "bad cells": (but("--cells", "10x10"), 2, "got '10x10'"),
        "zero cells": (but("--cells", "0"), 2, "got 0"),
        "no file": (["release", folder / "no.csv", *good[2:]], 2, "no.csv"),
        "no column": (
            but("--x", "longitude", "--y", "lat"),
            2,
            "no column 'longitude'; there are 'lon', 'lat'",
        ),
        "no mechanism": (but("--mechanism", "magic"), 2, "no mechanism 'magic'; there are"),
        "no parameter": (but("--set", "size=3"), 2, "no parameter 'size'; it has"),
        "half a setting": (but("--set", "height"), 2, "NAME=VALUE, got 'height'"),
        "twice set": (but("--set", "height=1", "--set", "height=2"), 2, "given twice"),
        "bad setting": (
            but("--set", "halvings=tall"),
            2,
            "halvings must be a whole number, got 'tall'",
        ),
        "bad noise": (but("--noise", "pink"), 2, "got 'pink'"),
        "no folder": (but("-o", folder / "no" / "out.parquet"), 2, "there is no folder"),
        "no budget": (
            but("--epsilon", "0.01", "--mechanism", "htf-paper"),
            3,
            "0.001 for each of 20 levels",
        ),
        "dear partition": (
            but("--mechanism", "htf-paper", "--set", "epsilon_partition_level=0.1"),
            3,
            "come to 2.0001",
        ),
        "unknown option": (but("--fast"), 2, "No such option"),
        "unknown command": (["publish"], 2, "No such command"),
        "bad box": (["query", folder / "out.parquet", "--box", "1,2,3"], 2, "4 numbers"),
        "text box": (["query", folder / "out.parquet", "--box", "a,b,c,d"], 2, "got 'a,b,c,d'"),
        "swapped box": (["query", folder / "out.parquet", "--box", "-73,40,-74,41"], 2, "swapped"),
        "no boxes file": (
            ["query", folder / "out.parquet", "--boxes", "no.csv"],
            2,
            "no file no.csv",
        ),
        "not a release": (["info", points], 2, "not a release"),
        "no release": (["info", folder / "no.parquet"], 2, "there is no file"),
    }


@pytest.mark.parametrize("case", list(mistakes(Path())))
def test_mistakes_are_named_with_their_exit_code_and_no_traceback(
    case: str, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    arguments, code, says = mistakes(folder)[case]
    assert run(list(map(str, arguments))) == code
    told = capfd.readouterr()
    assert says in " ".join(told.err.split())
    assert "Traceback" not in told.err + told.out
    assert not (folder / "never.parquet").exists()


def test_our_own_faults_leave_with_1_and_do_not_quote(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("a point at 51.4778901")

    monkeypatch.setattr("htf.ingest.points.read_matrix", fail)
    out = str(folder / "never.parquet")
    code = run(
        ["release", str(folder / "points.parquet"), "--bounds", BOUNDS, "--epsilon", "1", "-o", out]
    )
    told = capfd.readouterr().err
    assert code == 1
    assert "a bug in HTF (RuntimeError)" in told
    assert "51.4778901" not in told


def test_help_names_the_commands() -> None:
    told = htf("--help").stdout
    for command in ("forecast", "release", "query", "info", "verify", "mechanisms", "demo"):
        assert command in told
    assert htf("--version").stdout.startswith("htf, version")


def _help(name: str) -> str:
    with click.Context(cli) as context:
        command = cli.get_command(context, name)
        assert command is not None
        return " ".join(command.get_help(context).split())


def test_help_has_no_range_without_ends() -> None:
    with click.Context(cli) as context:
        for name in cli.list_commands(context):
            assert "=None" not in _help(name), name


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("release", ("on your screen only", "--allow-empty", "nothing is charged", "Never replaces a release that was charged", ".geoparquet or .pq")),
        ("query", ("Without boxes or polygons, the whole map is counted", "Never replaces a release", "Columns of an answer: count Best guess", ".csv, .xlsx, .json, .parquet, .geojson, .gpkg or .fgb")),
    ],
)  # fmt: skip
def test_help_says_what_is_written_and_what_is_refused(command: str, told: tuple[str, ...]) -> None:
    assert [text for text in told if text not in _help(command)] == []


@pytest.mark.parametrize(
    ("given", "crs"),
    [(None, CRS84), ("EPSG:4326", CRS84), ("WGS84", CRS84), ("EPSG:27700", "EPSG:27700")],
)
def test_degrees_are_degrees_by_any_name(given: str | None, crs: str) -> None:
    """Longitude comes first whatever the code says, and pictures know degrees by one name."""
    bounds = "4,52,5,53" if crs == CRS84 else "400000,520000,500000,530000"
    assert read_domain(bounds, None, "8", given).crs == crs


@pytest.mark.parametrize("more", [(), ("--box", "-74.1,40.6,-73.9,40.8")])
def test_a_reader_that_has_seen_enough_is_no_mistake(folder: Path, more: tuple[str, ...]) -> None:
    """As in `htf info R | head -1`: the other end of the pipe is gone before anything is written."""
    command = "query" if more else "info"
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "wb") as pipe:
        ran = subprocess.run(
            [sys.executable, "-m", "htf", command, str(folder / "out.parquet"), *more],
            stdout=pipe,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert (ran.returncode, ran.stderr) == (0, b"")
