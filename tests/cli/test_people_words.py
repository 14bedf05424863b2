"""Nobody can confuse split people with different people: every output of a release with both says which it means.

People who are counted are either split (each counts once, split across their records) or different (each counts once in
every place where they were). The word alone is left to sentences about persons in general, which are listed here.
"""

from __future__ import annotations

import gzip
import html
import json
import re
import sqlite3
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from htf import Layer, Release
from htf.cli.main import run
from htf.maps.picture import figure_of
from htf.serve.limits import Limits
from htf.serve.openapi import describe
from serving import client, running
from support import require_module

BOUNDS = ("--x", "lon", "--y", "lat", "--bounds", "0,50,1,51", "--cells", "16", "--user", "who")
MADE = (*BOUNDS, "--epsilon", "4", "--noise", "seeded:1")
BY = {
    "people": (),
    "person-days": ("--per", "day", "--time", "time", "--read", "utc-offset=+00:00"),
}

# Not preceded by what says how they count. Names in code, such as people_epsilon, are no words.
ALONE = re.compile(
    r"(?<!\bsplit )(?<!\bdifferent )(?<![\w-])(?:people|person-(?:day|week|month)s)\b(?!_)",
    re.IGNORECASE,
)
IN_GENERAL = (
    "protected as if they were several people. People who share an identifier",
    "protected as two people, and each of several people who share one",
    "the activity of people",  # an option of `htf release`, and what it measures
    "how many records people have",
    "all people",
    "--count people",  # an option
    "--people",
    "People are made up: homes and places are drawn",
    "People were made up: how close together",
    '"count": "people"',  # fields of the file of a release, and of a forecast
    '"count":"people"',
    '"people": ',
)


def alone(text: str) -> list[str]:
    """Where the word stands alone, with what is around it."""
    said = " ".join(text.split())
    for sentence in IN_GENERAL:
        said = said.replace(sentence, "")
    return [said[max(0, one.start() - 50) : one.end() + 40] for one in ALONE.finditer(said)]


def test_the_word_alone_is_found() -> None:
    for wrong in (
        "982 people (978 to 985)",
        "People: 3",
        "distinct people",
        "3 person-days",
        '"people"',
    ):
        assert alone(wrong), wrong
    for right in (
        "982 split people",
        "Different people:",
        "split\n person-days",
        "people_epsilon",
        "one person in one day",
    ):
        assert not alone(right), right


@pytest.fixture(scope="module", params=BY)
def made(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, str]:
    """A folder with visits, a release of them with a table of different people, and a release of zones."""
    place, random = tmp_path_factory.mktemp("words"), np.random.default_rng(3)
    number = 4000
    columns = {
        "lon": random.normal(0.4, 0.1, number),
        "lat": random.normal(50.6, 0.1, number),
        "who": (number / 8 * random.random(number) ** 2).astype(np.int64),
        "time": [f"2026-01-{1 + day:02}T12:00:00" for day in random.integers(0, 28, number)],
    }
    pq.write_table(pa.table(columns), place / "visits.parquet")
    zones = {
        "type": "FeatureCollection",
        "features": [
            {
                "type": "Feature",
                "properties": {"name": name},
                "geometry": {
                    "type": "Polygon",
                    "coordinates": [[[x, 50], [x + 0.5, 50], [x + 0.5, 51], [x, 51], [x, 50]]],
                },
            }
            for name, x in (("west", 0.0), ("east", 0.5))
        ],
    }
    (place / "zones.geojson").write_text(json.dumps(zones), encoding="utf-8")
    by = BY[request.param]
    points = place / "visits.parquet"
    asked = ["release", str(points), *MADE, *by, "--distinct", "4", "-o", str(place / "r.parquet")]
    assert run(asked) == 0
    layer = ("--zones", str(place / "zones.geojson"), "--by", "name")
    plain = [one for one in MADE if one not in ("--bounds", "0,50,1,51", "--cells", "16")]
    assert (
        run(["release", str(points), *plain, *layer, *by, "-o", str(place / "zoned.parquet")]) == 0
    )
    return place, request.param


def commands(place: Path, by: tuple[str, ...], out: Path) -> Iterator[list[str]]:
    release, zoned, layer = (
        str(place / name) for name in ("r.parquet", "zoned.parquet", "zones.geojson")
    )
    made = ["release", str(place / "visits.parquet"), *MADE, *by, "--distinct", "4"]
    yield [*made, "-o", str(out / "again.parquet")]
    yield [*made, "-o", str(out / "never.parquet"), "--dry-run"]
    if by:  # the other surfaces take the same words
        yield ["info", release]
        yield ["query", release, "-o", str(out / "all.csv")]
        yield ["query", release, "--distinct", "-o", str(out / "distinct.csv")]
        yield ["map", release, "-o", str(out / "map.html")]
        yield ["forecast", "--epsilon", "1", "--like", release, "--runs", "2"]
        return
    for one in (release, zoned):
        yield ["info", one]
        yield ["info", one, "--json"]
        yield ["verify", one]
        yield ["report", one, "-o", str(out / f"report-{Path(one).stem}.html")]
        yield ["map", one, "-o", str(out / f"{Path(one).stem}.html")]
    yield ["map", release, "--distinct", "-o", str(out / "distinct-map.html")]
    yield ["map", release, str(place / "r.parquet"), "-o", str(out / "two.html")]
    yield ["query", release]
    yield ["query", release, "--json", "--box", "0.3,50.5,0.5,50.7"]
    yield ["query", release, "--box", "0.3,50.5,0.5,50.7", "-o", str(out / "boxes.csv")]
    yield ["query", release, "--box", "0.3,50.5,0.5,50.7", "-o", str(out / "boxes.geojson")]
    yield ["query", release, "--polygons", layer]
    yield ["query", release, "--polygons", layer, "-o", str(out / "polygons.gpkg")]
    yield ["query", zoned]
    yield ["query", zoned, "-o", str(out / "zones.xlsx")]
    yield ["query", release, "--distinct"]
    yield ["query", release, "--distinct", "--json"]
    for ending in ("csv", "geojson", "gpkg", "xlsx", "parquet"):
        yield ["query", release, "--distinct", "-o", str(out / f"distinct.{ending}")]
    for ending in ("gpkg", "geojson", "csv", "xlsx", "parquet"):
        yield ["export", release, "-o", str(out / f"leaves.{ending}")]
    yield ["export", release, "-o", str(out / "leaves.tif")]
    yield ["export", release, "-o", str(out / "tiles.pmtiles"), "--max-zoom", "6"]
    yield ["info", release, "--registry", "-o", str(out / "registry.yaml")]
    yield ["compare", release, release]
    yield ["compare", release, release, "--polygons", layer, "-o", str(out / "change.csv")]
    yield ["sample", release, "-o", str(out / "sample.csv")]
    yield ["forecast", "--epsilon", "1", "--like", release, "--runs", "2"]


def _of_html(path: Path) -> str:
    """What a browser shows, and the data that its script draws."""
    text = path.read_text(encoding="utf-8")
    data = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    shown = re.sub(r"<(script|style).*?</(script|style)>", " ", text, flags=re.S)
    return html.unescape(re.sub(r"<[^>]+>", " ", shown)) + "".join(data)


def _of_sheets(path: Path) -> str:
    with zipfile.ZipFile(path) as file:
        return " ".join(file.read(name).decode() for name in file.namelist() if ".xml" in name)


def _of_layers(path: Path) -> str:
    with closing(sqlite3.connect(path)) as file:
        return " ".join(str(row) for row in file.iterdump())


def _of_parquet(path: Path) -> str:
    table = pq.read_table(path)
    texts = [column.to_pylist() for column in table.columns if pa.types.is_string(column.type)]
    notes = {
        key: value.decode() for key, value in table.schema.metadata.items() if b"ARROW" not in key
    }
    return f"{table.column_names} {texts} {notes}"


def _of_raster(path: Path) -> str:
    with require_module("rasterio", "geo").open(path) as file:
        return f"{file.tags()} {file.tags(1)} {file.descriptions}"


def _of_tiles(path: Path) -> str:
    """The metadata of an archive of tiles, which are packed by gzip."""
    data = path.read_bytes()
    at, length = (int.from_bytes(data[place : place + 8], "little") for place in (24, 32))
    return gzip.decompress(data[at : at + length]).decode()


READ: dict[str, Callable[[Path], str]] = {
    ".html": _of_html, ".xlsx": _of_sheets, ".gpkg": _of_layers, ".parquet": _of_parquet, ".tif": _of_raster,
    ".pmtiles": _of_tiles,
}  # fmt: skip


def written(path: Path) -> str:
    """All the text that a reader of a file can come across."""
    read = READ.get(path.suffix)
    return path.read_text(encoding="utf-8") if read is None else read(path)


def test_no_command_and_no_file_says_people_alone(
    made: tuple[Path, str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    place, quantity = made
    capfd.readouterr()
    for command in commands(place, BY[quantity], tmp_path):
        assert run(command) == 0, (command, capfd.readouterr().err)
        said = "".join(capfd.readouterr())
        assert alone(said) == [], command
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > (3 if BY[quantity] else 20)
    for path in files:
        assert alone(written(path)) == [], path.name
        if path.name == "sample.csv":  # it has places alone, and its words in a file beside it
            continue
        kind = "different" if path.name.startswith("distinct") else "split"
        assert f"{kind} {quantity}" in written(path), path.name


def test_no_picture_says_people_alone(made: tuple[Path, str]) -> None:
    from matplotlib.text import Text

    place, quantity = made
    release = Release.load(place / "r.parquet")
    for kind, layer in (("split", Layer.of(release)), ("different", Layer.distinct(release))):
        figure = figure_of([layer])
        said = " ".join(one.get_text() for one in figure.findobj() if isinstance(one, Text))
        assert alone(said) == []
        assert f"{kind} {quantity} per " in said
        assert f"{kind.capitalize()} {quantity}: each person counts once" in said


def test_no_view_in_a_notebook_says_people_alone(made: tuple[Path, str]) -> None:
    shown = Release.load(made[0] / "r.parquet")._repr_html_()
    assert f"split {made[1]}" in shown
    assert alone(re.sub(r"<[^>]+>", " ", shown)) == []


def test_no_answer_of_the_server_says_people_alone(made: tuple[Path, str]) -> None:
    place, quantity = made
    with (
        running([place / "r.parquet"], allow_not_private=True) as (address, _),
        client(address) as api,
    ):
        for path, kind in (
            ("", "split"),
            ("/r/count", "split"),
            ("/r/distinct", "different"),
            ("/r/statement", "split"),
        ):
            answer = api.get(f"/api/releases{path}")
            if answer.status_code == 404:
                continue
            assert f"{kind} {quantity}" in answer.text, path
            assert alone(answer.text) == [], path
        [about] = api.get("/api/releases").json()["releases"]
    assert about["explained"].startswith(f"Split {quantity}: each person counts once")
    assert alone(json.dumps(describe(Limits(), False))) == []
