"""The table of what works: everything that can be published, against everything that can be done with it, tried for real.

A row is a recipe: a place, what is counted there, and whom epsilon protects. A column is a deed, a function that does it on
tiny data and checks what came out. A cell is empty only for a reason in mathematics (`EMPTY`), and HTF must refuse it then.

    python tests/contract/test_pairs.py --write        writes docs/what-works.md
    python tests/contract/test_pairs.py [ROW [COLUMN]]  tries all cells and says which fail; both are parts of names
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import shutil
import sys
import tempfile
import time
import traceback
import warnings
import zlib
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cached_property
from io import StringIO
from itertools import combinations, product
from pathlib import Path
from typing import Any

import geopandas
import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

import htf
from htf import Layer, Question, Recipe, Release, Series
from htf.cli.main import run
from htf.maps.kinds import PeopleLines
from htf.recipes.files import save_recipe
from htf.serve.app import Service
from htf.serve.holdings import load_holdings
from serving import HOST, tiles_over

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "what-works.md"
BOUNDS = (4.0, 52.0, 4.6, 52.2)
POINTS, LAYER, RECIPE = "points.parquet", "zones.geojson", "recipe.toml"
MONTHS = ("2026-01", "2026-02")
PICTURE = b"\x89PNG"

# --- rows -----------------------------------------------------------------------------------------------

MAP = {"bounds": BOUNDS, "cells": 8}
ZONES = {"zones": LAYER, "by": "name", "within": "district"}
TO = {"dest_x": "lon2", "dest_y": "lat2"}
PLACES: dict[str, dict[str, Any]] = {
    "a map": MAP,
    "zones": ZONES,
    "trips between zones": {**ZONES, **TO},
    "trips on a map": {**MAP, "cells": 4, **TO},
}
CONTENTS: dict[str, dict[str, Any]] = {
    "counts": {},
    "with hours": {"axes": ["hour:hour(at):0:24:4"], "time": "at"},
    "with categories": {"categories": ["kind=bus,tram"]},
    "sums of weights": {"weight": "riders", "max_weight": 3},
}
KEPT = {"user": "who", "max_records": 2}
UNITS: dict[str, dict[str, Any]] = {
    "records": {},
    "people, split": {"user": "who", "count": "people"},
    "people, K records": KEPT,
    "person-months": {**KEPT, "per": "month", "time": "at"},
    "different people": {"user": "who", "distinct": 4},
}


@dataclass(frozen=True)
class Row:
    """What is published: the names of its parts, and the fields of its recipe beside the source."""

    place: str
    content: str
    unit: str

    @property
    def name(self) -> str:
        return f"{self.place}, {self.content}, {self.unit}"

    @property
    def fields(self) -> dict[str, Any]:
        made = {**PLACES[self.place], **CONTENTS[self.content], **UNITS[self.unit], "epsilon": 2}
        if "distinct" in made and "weight" in made:
            made |= KEPT
        if "distinct" in made and "zones" in made:
            made["distinct"] = "district"
        return made

    @property
    def has_map(self) -> bool:
        return "bounds" in self.fields

    @property
    def has_zones(self) -> bool:
        return "zones" in self.fields

    @property
    def is_trip(self) -> bool:
        return "dest_x" in self.fields


ROWS = [Row(*parts) for parts in product(PLACES, CONTENTS, UNITS)]


def covering() -> list[Row]:
    """Rows in which every two of a place, a content and a unit meet: a Latin square, and its missing diagonal."""
    places, contents, units = list(PLACES), list(CONTENTS), list(UNITS)
    met = [(i, j, (i + j) % len(units)) for i, j in product(range(4), repeat=2)]
    met += [(i, i, (i + 4) % len(units)) for i in range(4)]
    return [Row(places[i], contents[j], units[k]) for i, j, k in met]


# A few rows that have every place, content and unit: these always run, those of `covering` where slow tests do.
TELLING = [
    Row("a map", "sums of weights", "person-months"),
    Row("zones", "with hours", "records"),
    Row("trips between zones", "with categories", "different people"),
    Row("trips on a map", "sums of weights", "people, K records"),
    Row("zones", "counts", "people, split"),
]

# --- what is published, made once for each row ----------------------------------------------------------


def write_data(folder: Path) -> None:
    """Six hundred trips of two hundred people in two months, and a layer of six zones in two districts."""
    chance, number = np.random.default_rng(7), 600
    start, day = 1_767_225_600_000_000, 86_400_000_000  # 2026-01-01
    month = np.arange(number) % 2
    columns = {
        **{name: chance.uniform(4, 4.6, number) for name in ("lon", "lon2")},
        **{name: chance.uniform(52, 52.2, number) for name in ("lat", "lat2")},
        "who": chance.integers(0, 200, number),
        "riders": chance.integers(1, 5, number),
        "kind": chance.choice(["bus", "tram"], number),
        "at": pa.array(start + 31 * day * month + chance.integers(0, 28 * day, number), pa.timestamp("us")),
    }  # fmt: skip
    table = pa.table(columns)
    pq.write_table(table, folder / POINTS)
    for place, name in enumerate(MONTHS):
        pq.write_table(table.filter(pa.array(month == place)), folder / f"{name}.parquet")
    column, line = np.divmod(np.arange(6), 2)
    shapes = shapely.box(4 + 0.2 * column, 52 + 0.1 * line, 4.2 + 0.2 * column, 52.1 + 0.1 * line)
    names = {
        "name": [f"Zone {n + 1}" for n in range(6)],
        "district": ["West", "West", "West", "East", "East", "East"],
    }
    layer = geopandas.GeoDataFrame(names, geometry=shapes, crs="OGC:CRS84")
    layer.to_file(folder / LAYER, driver="GeoJSON")


class Made:
    """What is published of a row, made when a deed first needs it."""

    def __init__(self, row: Row) -> None:
        self.row = row
        self.slug = re.sub(r"[^a-z0-9]+", "-", row.name.lower())

    @property
    def fields(self) -> dict[str, Any]:
        return self.row.fields

    def file(self, ending: str) -> Path:
        """A new file of this row."""
        path = Path(f"{self.slug}{ending}")
        path.unlink(missing_ok=True)
        return path

    @cached_property
    def recipe(self) -> Recipe:
        return Recipe(source=POINTS, **self.fields)

    @cached_property
    def recipe_file(self) -> Path:
        path = self.file(".toml")
        save_recipe(self.recipe, path)
        return path

    @cached_property
    def budget(self) -> htf.BudgetFile:
        unit = self.recipe.quote().unit.name
        return htf.BudgetFile.create(self.file(".sqlite"), "trips", "5", unit=unit)

    @cached_property
    def release(self) -> Release:
        return self.recipe.make(budget=self.budget, noise="fast")

    @cached_property
    def path(self) -> Path:
        path = self.file(".parquet")
        self.budget.save(self.release, path)
        return path

    @cached_property
    def later(self) -> Path:
        path = self.file("-later.parquet")
        self.recipe.make(noise="fast").save(path)
        return path

    @cached_property
    def series(self) -> Path:
        folder = Path(f"{self.slug}-series")
        shutil.rmtree(folder, ignore_errors=True)
        told = ["--period", "month", "--releases", "2", "--epsilon-total", "4"]
        command("series", "init", folder, self.recipe_file, *told)
        for month in MONTHS:
            words = ["--period", month, "--noise", "fast", "--yes"]
            command("series", "add", folder, f"{month}.parquet", *words)
        return folder

    @cached_property
    def questions(self) -> dict[str, Question]:
        """Questions that fit, by name."""
        found = {"all": Question.boxes() if self.row.has_map else Question.by()}
        if self.row.has_map:
            found["boxes"] = Question.boxes([4.0, 52.0, 4.3, 52.1])
            found["polygons"] = Question.polygons(shapely.Point(4.3, 52.1).buffer(0.08))
        else:
            found["zones"] = Question.zones("Zone 1", "West")
            found["district"] = Question.by("district")
        if self.row.content == "with hours":
            found["hours"] = Question.by("hour")
        if self.row.content == "with categories":
            found["kinds"] = Question.by("kind")
        if self.row.unit == "different people":
            found["people"] = Question.different_people()
        return found


def command(*words: object, says: str = "") -> str:
    """Run a command of the command line, which must work and say that."""
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run([str(word) for word in words])
    if code != 0:
        raise Failed(err.getvalue() or out.getvalue())
    both = " ".join((out.getvalue() + err.getvalue()).split())
    assert says in both, f"it does not say {says!r}"
    return out.getvalue()


class Failed(Exception):
    """A command that refused, with its words."""


def check_answer(answer: Any) -> None:
    """Every row has a number and an interval around it."""
    assert len(answer) > 0
    table = answer.to_arrow()
    numbers = {name: np.asarray(table[name]) for name in ("low", "high")}
    first = next(
        name for name in ("count", "change", "different_people") if name in table.column_names
    )
    assert np.isfinite(numbers["low"]).all()
    assert np.isfinite(numbers["high"]).all()
    assert np.all(numbers["low"] <= np.asarray(table[first]) + 1e-9)
    assert np.all(np.asarray(table[first]) <= numbers["high"] + 1e-9)
    is_wide = numbers["low"] < numbers["high"]  # noise far below zero leaves 0 to 0 of people
    assert np.all(is_wide | ((first == "different_people") & (numbers["high"] == 0)))


# --- columns --------------------------------------------------------------------------------------------


def release(made: Made) -> None:
    """`htf release`"""
    assert Release.load(made.path) == made.release
    assert len(made.release) > 0
    assert str(made.release.epsilon) == "2"
    assert (made.release.distinct is not None) == (made.row.unit == "different people")


def dry_run(made: Made) -> None:
    """`htf release --dry-run`"""
    output = made.file("-dry.parquet")
    words = ["--dry-run", "--points-about", "600", "-o", output]
    command("release", made.recipe_file, *words, says="Expected error")
    assert not output.exists()


def forecast(made: Made) -> None:
    """`htf forecast`"""
    words = ["--points-about", "600", "--runs", "1", "--json"]
    told = json.loads(command("forecast", made.recipe_file, *words))
    assert told["simulation"] is True
    assert told["budget_spent"] == 0
    (expected,) = (one for one in told["outlooks"] if one["epsilon"] == told["epsilon"])
    assert expected["areas"]
    assert all(math.isfinite(one["median_error"]["mean"]) for one in expected["areas"])


def target(made: Made) -> None:
    """`htf forecast --target`"""
    wanted = "40 % in zones" if made.row.has_zones else "40 % in squares of 12 km"
    words = ["--target", wanted, "--points-about", "5000", "--runs", "1", "--json"]
    told = json.loads(command("forecast", made.recipe_file, *words))
    assert told["epsilon"] is None or float(told["epsilon"]) > 0
    assert told["curve"]


def budget(made: Made) -> None:
    """`htf budget`"""
    assert made.path.exists()
    account = made.budget.account()
    assert str(account.spent) == "2"
    assert {one.state for one in account.entries} == {"published"}
    command("budget", "check", made.budget.path, says="is sound")


def series(made: Made) -> None:
    """`htf series`"""
    opened = Series(made.series)
    assert opened.periods == list(MONTHS)
    for name, question in made.questions.items():
        if name != "people":
            check_answer(opened.ask(question))
    command("series", "show", made.series, says="2 of 2 periods were released")
    command("verify", made.series)


def borrowing(made: Made) -> None:
    """Later periods borrow from earlier ones"""
    last = Series(made.series).release(MONTHS[1])
    assert last.background is not None


def query(made: Made) -> None:
    """`htf query`"""
    for name, question in made.questions.items():
        answer = made.release.ask(question)
        check_answer(answer)
        options = {
            "boxes": ["--box", "4.0,52.0,4.3,52.1"], "district": ["--level", "district"], "zones": ["--zone", "Zone 1", "--zone", "West"],
            "hours": ["--by", "hour"], "kinds": ["--by", "kind"], "people": ["--distinct"],
        }.get(name)  # fmt: skip
        if options is not None:
            told = json.loads(command("query", made.path, *options, "--json"))
            assert told == answer.to_arrow().to_pylist()


def compare(made: Made) -> None:
    """`htf compare`"""
    later = Release.load(made.later)
    for name, question in made.questions.items():
        if name != "people":
            check_answer(later.ask(question).minus(made.release.ask(question)))
    words = [] if made.row.has_map else ["--level", "district"]
    told = json.loads(command("compare", made.path, made.later, *words, "--json"))
    assert told
    assert all(math.isfinite(one["change"]) for one in told)


def picture(made: Made) -> None:
    """`htf map -o FILE.png`"""
    for number, layers in enumerate(layers_of(made)):
        path = made.file(f"-{number}.png")
        htf.draw(layers, path)
        assert path.read_bytes().startswith(PICTURE)


def page(made: Made) -> None:
    """`htf map -o FILE.html`"""
    path = made.file(".html")
    command("map", made.path, "-o", path)
    assert panels_of(path)
    for number, layers in enumerate(layers_of(made)):
        path = made.file(f"-{number}.html")
        if isinstance(layers[0], PeopleLines):
            with pytest.raises(htf.InputError, match="different people of pairs do not add up"):
                htf.draw(layers, path)
            continue
        htf.draw(layers, path)
        assert panels_of(path)


def through_time(made: Made) -> None:
    """A page with a slider through periods"""
    for ending in (".png", ".html"):
        path = made.file(f"-series{ending}")
        command("map", made.series, "-o", path)
    steps = data_of(path)["steps"]
    assert [str(one) for one in steps] == list(MONTHS)
    assert len(panels_of(path)[0]["steps"]) == len(MONTHS)


def layers_of(made: Made) -> Iterator[list[Layer]]:
    """What can be drawn: the whole, by hours or categories, the destinations, and the table of different people."""
    yield [Layer.of(made.release, "trips")]
    if made.row.content in ("with hours", "with categories"):
        yield Layer.of(made.release, "trips").by("hour" if "axes" in made.fields else "kind")
    if made.row.is_trip and made.row.has_map:
        yield [Layer.of(made.release, "trips", axes=("dest_x", "dest_y"))]
    if made.row.is_trip and made.row.has_zones:
        yield [Layer.of(made.release, "trips", where={"zone": "Zone 1"})]
    if made.row.unit == "different people":
        yield [Layer.distinct(made.release, "people")]


def data_of(path: Path) -> Any:
    """What a page carries, with numbers that can be unpacked."""
    text = path.read_text()
    assert text.startswith("<!DOCTYPE html>")
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    assert found is not None
    return json.loads(found[1])


def panels_of(path: Path) -> list[Any]:
    """The maps of a page, whose numbers have intervals."""
    panels = data_of(path)["panels"]
    assert isinstance(panels, list)
    shown = [sheet for panel in panels for step in panel["steps"] for sheet in step]
    shown = [one for sheet in shown for one in sheet.get("trips", {"all": sheet}).values()]
    for sheet in shown:
        low, high = (_unpacked(sheet[name]) for name in ("low", "high"))
        assert len(low) == len(high) > 0
        assert np.all(np.isfinite(low) & np.isfinite(high) & (low <= high))
    return panels


def _unpacked(text: str) -> Any:
    return np.frombuffer(zlib.decompress(b64decode(text)), "<f4")


def serve(made: Made) -> None:
    """`htf serve`"""
    check_served(ask_server([made.path], paths_of(made.row)))


def serve_series(made: Made) -> None:
    """`htf serve` of a series: its page goes through time"""
    answers = ask_server([made.series], paths_of(made.row))
    check_served(answers)
    listed = answers["/api/releases"].json()["releases"]
    assert [one["series"] and one["series"]["period"] for one in listed] == list(MONTHS)


def check_served(answers: dict[str, httpx.Response]) -> None:
    for path, answer in answers.items():
        assert answer.status_code == 200, f"{path}: {answer.status_code} {answer.text[:300]}"
    told = answers["/api/releases/{id}/count"].json()
    assert told["low"] <= told["count"] <= told["high"]
    assert answers["/"].text.startswith("<!DOCTYPE html>")


def paths_of(row: Row) -> list[str]:
    one = "/api/releases/{id}"
    paths = ["/", "/api/releases", one, f"{one}/count", f"{one}/download", f"{one}/basemap"]
    if row.has_zones:
        paths += [f"{one}/zones?level=district", f"{one}/table?by=district"]
    if row.has_map:
        z, x, y = tiles_over(BOUNDS, 9)[0]
        paths += [f"{one}/tiles/{z}/{x}/{y}.mvt", f"{one}/leaves", f"{one}/count?box={','.join(map(str, BOUNDS))}"]  # fmt: skip
    if row.content == "with hours":
        paths.append(f"{one}/table?by=hour")
    if row.content == "with categories":
        paths.append(f"{one}/table?by=kind")
    if row.unit == "different people":
        paths.append(f"{one}/distinct")
    return paths


def ask_server(files: list[Path], paths: list[str]) -> dict[str, httpx.Response]:
    """The answers to GET of each path. `{id}` is each release; the worst answer stands for all."""
    service = Service(load_holdings(files))
    vars(service.log)["write"] = service.log._lines.clear  # quiet

    async def ask() -> dict[str, httpx.Response]:
        transport = httpx.ASGITransport(service)
        async with httpx.AsyncClient(transport=transport, base_url=f"http://{HOST}") as client:
            found: dict[str, httpx.Response] = {}
            for path in paths:
                given = [await client.get(path.format(id=one)) for one in service.holdings]
                found[path] = max(given, key=lambda one: one.status_code)
            return found

    try:
        return asyncio.run(ask())
    finally:
        service.close()


def report(made: Made) -> None:
    """`htf report`"""
    check_report(made.path, made.file("-report.html"))


def report_series(made: Made) -> None:
    """`htf report` of a series"""
    check_report(made.series, made.file("-report.html"))


def check_report(source: Path, path: Path) -> None:
    command("report", source, "--runs", "1", "-o", path)
    text = path.read_text()
    assert text.count("<article") == 3
    assert "simulated" in text.lower()


def export(made: Made) -> None:
    """`htf export`"""
    total = made.release.estimates.sum()
    for ending in (".csv", ".gpkg", ".geojson", ".parquet"):
        path = made.file(f"-export{ending}")
        command("export", made.path, "-o", path)
        read = (
            geopandas.read_parquet(path)
            if ending == ".parquet"
            else geopandas.read_file(path, **({"layer": "leaves"} if ending == ".gpkg" else {}))
        )
        assert len(read) == len(made.release)
        assert abs(read["count"].astype(float).sum() - total) < 1e-3 * max(abs(total), 1)
    if made.row.has_map:
        for ending in (".tif", ".pmtiles"):
            path = made.file(f"-export{ending}")
            command("export", made.path, "-o", path)
            assert path.stat().st_size > 100


def export_series(made: Made) -> None:
    """`htf export` of a series: a long table"""
    path = made.file("-series.csv")
    command("export", made.series, "-o", path)
    assert set(geopandas.read_file(path)["period"]) == set(MONTHS)


def sample(made: Made) -> None:
    """`htf sample`"""
    path = made.file("-sample.parquet")
    command("sample", made.path, "--n", "300", "--seed", "1", "-o", path)
    drawn = pq.read_table(path)
    assert len(drawn) == 300
    columns = {name: drawn[name].to_numpy(zero_copy_only=False) for name in drawn.column_names}
    trip = made.row.is_trip
    if made.row.has_map:
        for x, y in [("lon", "lat"), *([("dest_x", "dest_y")] if trip else [])]:
            assert np.all((columns[x] >= 4) & (columns[x] < 4.6))
            assert np.all((columns[y] >= 52) & (columns[y] < 52.2))
    else:
        for zone in ["zone", *(["dest_zone"] if trip else [])]:
            assert set(columns[zone]) <= {f"Zone {n + 1}" for n in range(6)}
    if "axes" in made.fields:
        assert np.all((columns["hour"] >= 0) & (columns["hour"] < 24))
    if "categories" in made.fields:
        assert set(columns["kind"]) <= {"bus", "tram"}


def verify(made: Made) -> None:
    """`htf verify`"""
    checks = htf.verify(made.path)
    assert checks
    assert all(one.passed for one in checks)
    command("verify", made.path)


def info(made: Made) -> None:
    """`htf info`"""
    command("info", made.path, says=made.release.protection.name)
    told = json.loads(command("info", made.path, "--json"))
    assert told["epsilon"] == "2"
    path = made.file(".yaml")
    command("info", made.path, "--registry", "-o", path)
    assert "privacy_unit" in path.read_text()


def check(made: Made) -> None:
    """`htf check`"""
    told = json.loads(command("check", made.recipe_file, "--json"))
    assert (told["rows"], told["inside"], told["unread"]) == (600, 600, [])
    assert told["command"].startswith(f"htf release {made.recipe_file}")


DEEDS: dict[str, Callable[[Made], None]] = {
    "release": release, "dry run": dry_run, "forecast": forecast, "target": target, "budget": budget, "series": series,
    "borrowing": borrowing, "query": query, "compare": compare, "picture": picture, "page": page, "through time": through_time,
    "serve": serve, "report": report, "export": export, "sample": sample, "verify": verify, "info": info, "check": check,
    "serve series": serve_series, "report series": report_series, "export series": export_series,
}  # fmt: skip

# --- cells that are empty ------------------------------------------------------------------------------

# A row, a part of its name, and the column (None: all), with the reason in mathematics.
EMPTY: list[tuple[tuple[str, ...], str | None, str]] = []


def reason(row: Row, deed: str) -> str:
    """Why a cell is empty; nothing if it is not."""
    parts = (row.place, row.content, row.unit)
    fitting = [why for of, column, why in EMPTY if set(of) <= set(parts) and column in (None, deed)]
    return fitting[0] if fitting else ""


# --- trying --------------------------------------------------------------------------------------------


def try_cell(made: Made, deed: str) -> str:
    """Do it. Returns what went wrong; nothing if it works."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "fetch_arrow_table", DeprecationWarning)
        try:
            DEEDS[deed](made)
        except (Exception, SystemExit) as error:
            words = " ".join(str(error).split())[-400:]
            return f"{type(error).__name__}: {words or traceback.extract_tb(error.__traceback__)[-1].line}"
    return ""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pairs")
    write_data(folder)
    return folder


@pytest.mark.parametrize(
    "row",
    [pytest.param(row, marks=[] if row in TELLING else [pytest.mark.slow]) for row in covering()],
    ids=lambda row: row.name,
)
def test_every_deed_works_with(row: Row, place: Path) -> None:
    with chdir(place):
        made = Made(row)
        failed = {}
        for deed in DEEDS:
            wrong = try_cell(made, deed)
            if reason(row, deed):
                if not re.match("InputError|Failed", wrong):
                    failed[deed] = f"should be refused: {wrong or 'works'}"
            elif wrong:
                failed[deed] = wrong
    assert not failed, "\n".join(f"{deed}: {wrong}" for deed, wrong in failed.items())


def test_what_always_runs_has_every_part() -> None:
    for parts in (PLACES, CONTENTS, UNITS):
        assert set(parts) <= {
            part for row in TELLING for part in (row.place, row.content, row.unit)
        }
    assert set(TELLING) <= set(covering())


def test_every_two_parts_meet() -> None:
    met = {pair for row in covering() for pair in combinations(vars(row).items(), 2)}
    assert met == {pair for row in ROWS for pair in combinations(vars(row).items(), 2)}


def test_the_page_is_what_this_file_says() -> None:
    assert PAGE.read_text() == written(), "run python tests/contract/test_pairs.py --write"


# --- the page ------------------------------------------------------------------------------------------

HEAD = """\
# What works

This page is for everybody who wants to know whether HTF can do something with something. `tests/contract/test_pairs.py` tries
every cell on tiny data, and writes this page; the tests of each change try 20 rows, in which every two parts of a row meet.

"""


def written() -> str:
    """The page: a table for each unit, and the reasons of what is empty."""
    lines = [HEAD + "| column | what is tried |\n| --- | --- |"]
    lines += [f"| {name} | {deed.__doc__} |" for name, deed in DEEDS.items()]
    reasons: list[str] = []
    for unit in UNITS:
        lines += [f"\n## {unit[0].upper()}{unit[1:]}\n", f"| | {' | '.join(DEEDS)} |", f"| --- |{' --- |' * len(DEEDS)}"]  # fmt: skip
        for place, content in product(PLACES, CONTENTS):
            row = Row(place, content, unit)
            cells = [_cell(row, deed, reasons) for deed in DEEDS]
            lines.append(f"| {place}, {content} | {' | '.join(cells)} |")
    if reasons:
        lines += ["\n## Why cells are empty\n"]
        lines += [f"{number}. {why}" for number, why in enumerate(reasons, 1)]
    return "\n".join(lines) + "\n"


def _cell(row: Row, deed: str, reasons: list[str]) -> str:
    why = reason(row, deed)
    if not why:
        return "✓"
    if why not in reasons:
        reasons.append(why)
    return f"– [{reasons.index(why) + 1}](#why-cells-are-empty)"


def _try_all(wanted: list[str]) -> int:
    """Try cells, and say which fail: for each column the rows, by what went wrong. Returns how many."""
    row_part, deed_part = [*wanted, "", ""][:2]
    found: dict[str, dict[str, list[str]]] = {deed: {} for deed in DEEDS if deed_part in deed}
    rows = [row for row in ROWS if row_part in row.name]
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        write_data(Path(folder))
        for row in rows:
            made, started = Made(row), time.perf_counter()
            for deed, wrongs in found.items():
                wrong = try_cell(made, deed).replace(made.slug, "…") or "works"
                expected = reason(row, deed)
                if bool(expected) == bool(re.match("InputError|Failed", wrong)) and (expected or wrong == "works"):  # fmt: skip
                    continue
                wrongs.setdefault(wrong, []).append(row.name)
            print(f"{row.name}: {time.perf_counter() - started:.1f} s", file=sys.stderr)
    for deed, wrongs in found.items():
        number = sum(map(len, wrongs.values()))
        print(f"\n## {deed}: {len(rows) - number} of {len(rows)} as expected")
        for wrong, names in wrongs.items():
            print(f"- {wrong[-300:]}\n    {'; '.join(names)}")
    return sum(len(names) for wrongs in found.values() for names in wrongs.values())


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(written())
    else:
        sys.exit(_try_all(sys.argv[1:]) > 0)
