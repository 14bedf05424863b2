"""Every command and every Python block of the README is run; so are those of the pages in docs that show how
to do something. (Three tutorials are walked in tests/browser/test_tutorials.py. The example in CONTRIBUTING is run by tests/contract/test_plugins.py.) One command of each kind
has a process of its own, as a reader would start it; the others run in this one, because starting takes seconds."""

from __future__ import annotations

import doctest
import json
import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from htf import BudgetFile, Protection, Release, publish, synthetic_zones
from htf.cli.main import run as run_here
from htf.forecasts.made_up import StandIn
from htf.forecasts.people import Crowd, RecordsEach
from htf.forecasts.places import City
from walking import README, ROOT, commands, run, run_block, run_process, steps, write_recipe

SET_UP = ("make demo", "pip install .", "make test", "source .venv/bin/activate")


@pytest.fixture(scope="module")
def demonstrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where `make demo` has been run."""
    place = tmp_path_factory.mktemp("readme")
    (command,) = re.findall(r"^\t\$\(BIN\)/(htf demo .*)$", (ROOT / "Makefile").read_text(), re.M)
    run_process(command, place)
    (place / "boxes.csv").write_text("west,south,east,north\n-30.02,39.98,-29.98,40.02\n")
    return place


@pytest.fixture(scope="module")
def released(demonstrated: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the first release of the README has been made, too."""
    place = tmp_path_factory.mktemp("released") / "readme"
    shutil.copytree(demonstrated, place)
    run_process(next(c for c in commands() if c.startswith("htf release")), place)
    return place


@pytest.fixture
def folder(demonstrated: Path, tmp_path: Path) -> Path:
    """The same for each page: its commands write files that others write too."""
    return shutil.copytree(demonstrated, tmp_path / "readme")


@pytest.fixture
def city(released: Path, tmp_path: Path) -> Path:
    """A folder with city.parquet in it."""
    return shutil.copytree(released, tmp_path / "readme")


def test_the_set_up_commands_are_those_we_promise() -> None:
    found = [command for command in commands() if not command.startswith("htf ")]
    assert tuple(found) == SET_UP
    for target in ("demo", "test"):
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.M)


def made_small(command: str) -> str:
    """A forecast with fewer runs, records and cells: more only take longer."""
    return command.replace("1000000", "50000").replace("--cells 1024", "--cells 128") + " --runs 1"


def test_every_command_of_the_readme_prints_what_it_shows(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for the numbers, which are drawn anew each time."""
    monkeypatch.setenv("COLUMNS", "100")
    (session,) = re.findall(r"```console\n(.*?)```", README, re.S)
    steps = re.findall(r"^\$ (htf .*)\n((?:(?!\$ ).*\n)*)", session, re.M)
    assert len(steps) == 5
    for command, shown in steps:
        assert without_numbers(run_process(command, folder)) == without_numbers(shown), command
    assert "htf" in run("htf mechanisms", folder)


def without_numbers(text: str) -> list[str]:
    """The words of each line that has any."""
    lines = [re.sub(r"[\d,.─-]+", "#", line).split() for line in text.splitlines()]
    return [" ".join(words) for words in lines if words]


def test_the_python_of_the_readme_prints_what_it_shows(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    (session,) = re.findall(r"```pycon\n(.*?)```", README, re.S)
    names: dict[str, object] = {}
    for step in doctest.DocTestParser().get_examples(session):
        exec(step.source, names)
        assert without_numbers(capsys.readouterr().out) == without_numbers(step.want)
    west, south, east, north = -30.02, 39.98, -29.98, 40.02
    points = pq.read_table("htf-demo/points.parquet").to_pydict()
    truth = sum(
        west <= x < east and south <= y < north
        for x, y in zip(points["lon"], points["lat"], strict=True)
    )
    assert f"The truth is {truth:,}." in README


def test_the_readme_is_short() -> None:
    assert len(README.split()) < 700


@pytest.mark.slow
def test_the_forecasts_work(city: Path) -> None:
    ours = [c for c in commands((ROOT / "docs/forecast.md").read_text()) if "forecast --" in c]
    assert len(ours) == 8
    places, crowd = City("city", 20_000, 64), Crowd(500, RecordsEach.alike(9))
    made_up = StandIn("city", "p", "a city", places.domain, places, crowd).draw(0)
    unit = Protection("person", count="people", shares=256)
    people = made_up.on(made_up.domain, made_up.counted(unit), unit)
    publish(people, 1, noise="fast").save(city / "people.parquet")
    for command in ours:
        assert "spent no budget" in run(made_small(command), city)


def test_the_prior_works(folder: Path) -> None:
    page = (ROOT / "docs/prior.md").read_text()
    (block,) = re.findall(r"```python\n(.*?)```", page, re.S)
    run_block(block, folder)
    ours = [c for c in commands(page) if len(c.split()) > 2]
    assert [c.split()[1] for c in ours] == ["release", "info"]
    told = [run(command, folder) for command in ours]
    assert "land.npy (SHA-256" in told[1]


def test_the_budget_works(folder: Path) -> None:
    page = re.sub(UNITS, "", (ROOT / "docs/budget.md").read_text(), flags=re.S)
    ours = [c for c in commands(page) if len(c.split()) > 3]
    assert [" ".join(c.split()[1:3]) for c in ours] == [
        "budget init", "release htf-demo/points.parquet", "budget show", "budget close", "budget publish", "budget init",
        "budget show",
    ]  # fmt: skip
    for command in ours[:3]:
        told = run(command, folder)
    assert "0.5 spent of 2, 1.5 remains" in told
    blocks = re.findall(r"```python\n(.*?)```", page, re.S)
    run_block(blocks[0], folder)
    entry = BudgetFile(folder / "budget.sqlite", "pings").charge("0.5", "htf").id
    (folder / "lost.parquet").write_bytes((folder / "htf-demo/release.parquet").read_bytes())
    assert "is published as lost.parquet" in run(ours[4].replace("ID", entry), folder)
    assert "1.25 of 2 was spent" in run(ours[3], folder)
    assert "for one person" in run(ours[5], folder)
    assert run_block(blocks[1], folder).split()[1:] == ["1.9"]
    assert '"label": "summer"' in run(ours[6], folder)


UNITS = r"## A worked example for each unit\n.*?(?=\n## )"


def test_the_examples_of_units_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table of sums is what the unit of each budget comes to."""
    monkeypatch.chdir(tmp_path)
    (section,) = re.findall(UNITS, (ROOT / "docs/budget.md").read_text(), re.S)
    (make,) = re.findall(r"```python\n(.*?)```", section, re.S)
    exec(make, {})
    ours = [c for c in commands(section) if len(c.split()) > 3]
    told = [run(command, tmp_path) for command in ours]
    assert len(ours) == 11
    assert told[-1].count("0.5 spent of 1, 0.5 remains") == 5
    days = np.arange(59) + np.datetime64("2026-01-01")
    weeks, months = {(int(d.astype(int)) + 3) // 7 for d in days}, {d.astype("M8[M]") for d in days}
    numbers = {"record": 59, "person-day": 59, "person-week": len(weeks), "person-month": len(months), "person": 1}  # fmt: skip
    for unit, number in numbers.items():
        (row,) = re.findall(rf"^\| {unit} \|.*\| ([0-9.]+)[^|]*\|$", section, re.M)
        assert float(row) == 0.5 * number
    per = {name: Release.load(f"by-{name}.parquet").protection.per for name in ("day", "week", "month", "rider")}  # fmt: skip
    assert per == {"day": "day", "week": "week", "month": "month", "rider": None}


def test_distinct_people_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs/distinct.md").read_text()
    make, publish = re.findall(r"```python\n(.*?)```", page, re.S)
    exec(make, {})
    ours = [c for c in commands(page) if len(c.split()) > 2]
    assert [c.split()[1] for c in ours] == ["release", "query", "query", "map", "map"]
    told = []
    for command in ours:
        assert run_here(shlex.split(command)[1:]) == 0
        told.append(capfd.readouterr().out)
    assert "Counting different people in 16 x 16 boxes" in told[0]
    assert "95 % interval" in told[1]
    assert len((tmp_path / "distinct.csv").read_text().splitlines()) == 257
    assert told[3:] == [
        f"Wrote distinct.{kind}: 256 boxes of different people.\n" for kind in ("html", "png")
    ]
    exec(publish, {})
    assert capfd.readouterr().out.split()[-2:] == ["different", "people"]


def test_sums_and_means_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs/weights.md").read_text()
    make, publish = re.findall(r"```python\n(.*?)```", page, re.S)
    exec(make, {})
    ours = [c for c in commands(page) if len(c.split()) > 4]
    assert [c.split()[1] for c in ours] == [
        "release",
        "query",
        "release",
        "query",
        "query",
        "release",
    ]
    told = []
    for command in ours:
        assert run_here(shlex.split(command)[1:]) == 0
        told.append(" ".join(capfd.readouterr().out.split()))
    assert "sum of passengers, at most 6 per record" in told[1]
    assert "mean of passengers, at most 6 per record" in told[3]
    assert "unbounded" in told[3]
    assert len((tmp_path / "means.csv").read_text().splitlines()) == 2
    exec(publish, {})
    shown = capfd.readouterr().out.splitlines()
    assert shown[0] == "sum of passengers, at most 6 per record"
    assert shown[1] == "mean of passengers, at most 6 per record True"


def test_the_guarantee_for_people_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs/people.md").read_text()
    make, *blocks = re.findall(r"```python\n(.*?)```", page, re.S)
    exec(make, {})
    ours = [c for c in commands(page) if len(c.split()) > 2]
    made = ["release", "query", "info", "release", "query", "release", "release"]
    assert [c.split()[1] for c in ours] == [*made, "budget", "release", "release", "budget"]
    told = []
    for command in ours:
        assert run_here(shlex.split(command)[1:]) == 0
        told.append(capfd.readouterr().out)
    assert "epsilon 1 for one person" in told[0]
    assert "The unit of protection is one person" in told[2]
    assert "this number has the least expected error" in told[3]
    assert "scaled" in told[4]
    names: dict[str, object] = {}
    for block in blocks:
        exec(block, names)
    shown = capfd.readouterr().out.splitlines()
    assert shown[0] == "split people one person, counted once and split across their records"
    assert shown[-1].endswith("per person, scaled")
    # All people of the page, with noise of scale 100: fails by chance less than once in 10^8 times.
    people = Release.load("people.parquet").count().count
    known = len(set(pq.read_table("visits.parquet")["person"].to_pylist()))
    assert abs(people - known) < 2500


@pytest.mark.slow
def test_more_axes_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """In this process, which is quicker than a new one for each of them."""
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs/axes.md").read_text()
    make, *blocks = re.findall(r"```python\n(.*?)```", page, re.S)
    exec(make, {})
    ours = [c for c in commands(page) if c.startswith("htf ")]
    assert [c.split()[1] for c in ours] == ["release"] * 2 + ["query"] * 3 + ["map"] * 3 + ["info"]
    for command in ours:
        assert run_here(shlex.split(command)[1:]) == 0
    assert "7 to 10" in capfd.readouterr().out
    for block in blocks:
        exec(block, {})


def test_every_source_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs/sources.md").read_text()
    make, make_messy, use = re.findall(r"```python\n(.*?)```", page, re.S)
    exec(make, {})
    exec(make_messy, {})
    ours = [c for c in commands(page) if c.startswith("htf release")]
    assert len(ours) == 10
    for command in ours:
        assert run_here(shlex.split(command)[1:]) == 0
    assert "No record is inside" not in capfd.readouterr().err
    exec(use, {})
    assert "of_query=True" in capfd.readouterr().out


def test_the_check_prints_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs/check.md").read_text()
    make, use = re.findall(r"```python\n(.*?)```", page, re.S)
    (shown,) = re.findall(r"```text\n(.*?)```", page, re.S)
    exec(make, {})
    command = next(c for c in commands(page) if c.startswith("htf check fahrten.csv"))
    assert run_here(shlex.split(command)[1:]) == 0
    assert capfd.readouterr().out.startswith(shown)
    exec(use, {})
    assert capfd.readouterr().out == "80 7 wann\n"


@pytest.mark.slow
def test_the_exports_work(city: Path) -> None:
    page = (ROOT / "docs/export.md").read_text()
    ours = [c for c in commands(page) if " -o " in c]
    assert [c.split()[1] for c in ours] == ["export"] * 5 + ["sample"] * 2
    for command in ours:
        assert run(command, city).startswith("Wrote ")
    (block,) = re.findall(r"```python\n(.*?)```", page, re.S)
    run_block(block, city)


def test_the_polygons_work(
    city: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(city)
    page = (ROOT / "docs/polygons.md").read_text()
    make, ask = re.findall(r"```python\n(.*?)```", page, re.S)
    exec(make, {})
    ours = [c for c in commands(page) if c.startswith("htf query")]
    assert len(ours) == 3
    for command in ours:
        assert run_here(shlex.split(command)[1:]) == 0
    assert "Harbour" in capfd.readouterr().out
    exec(ask, {})
    for name in ("districts.csv", "districts.gpkg"):
        assert (city / name).stat().st_size > 0


def test_the_answers_work(
    city: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(city)
    page = (ROOT / "docs/answers.md").read_text()
    make, count, ask = re.findall(r"```python\n(.*?)```", page, re.S)
    exec(make, {})
    ours = [c for c in commands(page) if c.startswith("htf query city")]
    assert len(ours) == 6
    for command in ours:
        assert run_here(shlex.split(command)[1:]) == 0
    told = capfd.readouterr()
    assert "Old Town" in told.out
    assert "outside of the map" not in told.err
    exec(count, {})
    assert "00123" in capfd.readouterr().out
    exec(ask, {})
    assert "[False False]" in capfd.readouterr().out
    assert "00123" in Path("places-counted.csv").read_text("utf-8")


def test_the_maps_work(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    page = (ROOT / "docs/maps.md").read_text()
    ours = [c for c in commands(page) if c.startswith(("htf release", "htf map ")) and " -o " in c]
    assert [c.split()[1] for c in ours] == ["release"] * 2 + ["map"] * 5
    for command in ours:
        assert run_here(shlex.split(command)[1:]) == 0
    told = capfd.readouterr().out
    assert told.count("Wrote ") == len(ours)


@pytest.mark.slow
def test_the_reports_work(city: Path) -> None:
    page = (ROOT / "docs/report.md").read_text()
    ours = [c for c in commands(page) if " -o " in c or " init " in c]
    assert [c.split()[1] for c in ours] == ["report", "budget", "release", "report", "info"]
    for command in ours:
        run(command, city)
    (block,) = re.findall(r"```python\n(.*?)```", page, re.S)
    run_block(block, city)
    assert (city / "record.yaml").read_text().count("TODO: ") > 5
    for name in ("report", "spring", "again"):
        assert "For the statistician" in (city / f"{name}.html").read_text()


PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.name)
def test_links_and_named_files_exist(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", path.read_text()):
        assert (path.parent / target).exists(), f"{path.name} links to {target}"
    for named in re.findall(r"docs/[\w/-]+\.md", path.read_text()):
        assert (ROOT / named).exists(), f"{path.name} names {named}"


def run_page(page: str, monkeypatch: pytest.MonkeyPatch, place: Path) -> list[str]:
    """Run the Python blocks of a page, the first of which makes the data, then its commands, then the other blocks."""
    monkeypatch.chdir(place)
    text = (ROOT / page).read_text()
    make, *blocks = re.findall(r"```python\n(.*?)```", text, re.S)
    exec(make, {})
    ours = [c for c in commands(text) if c.startswith("htf ") and len(c.split()) > 3]
    told = [run(command, place) for command in ours]
    for block in blocks:
        exec(block, {})
    return told


def test_a_table_by_district_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = run_page("docs/tutorials/zones.md", monkeypatch, tmp_path)
    assert "over 120 zones by zones, epsilon 1" in told[0]
    assert len(told[1].splitlines()) > 8
    for name in ("tracts.xlsx", "tracts.png", "districts.html", "kinds.parquet"):
        assert (tmp_path / name).stat().st_size > 0
    assert "Vandalism" in told[-1]


def test_series_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command of the page, on data that it does not show."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(1)
    months = np.datetime64("2026-01-01") + random.integers(0, 59, 8000)
    x, y = random.normal(-30, 0.05, 8000), random.normal(40, 0.04, 8000)
    table = pa.table({"lon": x, "lat": y, "time": months})
    pq.write_table(table, "visits.parquet")
    text = (ROOT / "docs/series.md").read_text()
    ours = [c for c in commands(text) if c.startswith("htf ") and len(c.split()) > 3]
    ours = [c for c in ours if not any(word in c for word in ("BEFORE", "-o revised", " FILE"))]
    for kind, block in steps(text):
        if kind == "toml":
            write_recipe(block, tmp_path)
    for name, seed in (("spring.parquet", 1), ("summer.parquet", 2)):
        run(
            f"htf release visits.parquet --bounds -30.176,39.865,-29.824,40.135 --epsilon {seed} -o {name}",
            tmp_path,
        )
    shape = {
        "type": "Polygon",
        "coordinates": [[[-30.1, 39.9], [-29.9, 39.9], [-29.9, 40.1], [-30.1, 39.9]]],
    }
    feature = {"type": "Feature", "properties": {"name": "North"}, "geometry": shape}
    layer = {"type": "FeatureCollection", "features": [feature]}
    (tmp_path / "districts.geojson").write_text(json.dumps(layer))
    synthetic_zones(tracts=12, districts=3).to_file("zones.gpkg")
    told = []
    for command in ours:
        if command.startswith("htf series show"):  # changes need a second month
            run("htf series add city visits.parquet --period 2026-02", tmp_path)
        told.append(run(command, tmp_path))
    assert any("more than noise" in one for one in told)
    for name in ("box.png", "long.csv", "change.xlsx", "tracts.csv", "tracts.png"):
        assert (tmp_path / name).stat().st_size > 0


def test_trips_between_zones_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = run_page("docs/tutorials/trips.md", monkeypatch, tmp_path)
    assert "over 40 x 40 zones by zones" in told[0]
    assert len((tmp_path / "flows.csv").read_text().splitlines()) == 65
    assert (tmp_path / "flows.png").stat().st_size > 0


def test_zones_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = run_page("docs/zones.md", monkeypatch, tmp_path)
    assert "over 60 zones" in told[0]
    assert any("inside 60 zones by htf" in one for one in told)
