"""Three tutorials, from their first step to their last, as a reader would take them. What they make for a browser is opened
in one, and used."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import geopandas
import pytest

from htf import Release, Series
from htf.query.answer_texts import show_count
from walking import commands, follow, run


def never(address: str) -> str:
    raise AssertionError(f"nothing is served here, but {address} is")


def test_five_minutes_of_a_curator(window: Any, tmp_path: Path) -> None:
    told = follow("docs/tutorials/curator.md", tmp_path, never)
    assert told[0].startswith("For your eyes only")
    assert any("for one person, counted once and split" in one for one in told)
    assert "1 spent of 2, 1 remains" in told[-1]
    assert (tmp_path / "pings.png").stat().st_size > 10_000
    page = window().page
    page.goto((tmp_path / "report.html").as_uri())
    text = " ".join(page.inner_text("body").split())
    assert "For the board" in text
    assert "ε = 1 for one person" in text
    assert "together ε = 1 of at most 2" in text  # of the budget


@pytest.fixture
def city(tmp_path: Path) -> Path:
    """Where the README has made its release."""
    run("htf demo --out htf-demo", tmp_path)
    run(next(one for one in commands() if one.startswith("htf release")), tmp_path)
    return tmp_path


def test_five_minutes_of_an_analyst(window: Any, city: Path) -> None:
    def visit(address: str) -> str:
        page = window().open(f"{address}/#r=city")
        page.click("#district-card summary")
        page.set_input_files("#district-file", city / "districts.geojson")
        page.wait_for_selector("#district-table tbody tr >> nth=1")
        return str(page.inner_text("#district-table"))

    told = follow("docs/tutorials/analyst.md", city, visit)
    for name in ("counts.csv", "city.tif", "city.html", "hexagons.gpkg"):
        assert (city / name).stat().st_size > 0
    (served,) = [one for one in told if "centre" in one and "Wrote" not in one and "─" not in one]
    districts = geopandas.read_file(city / "districts.geojson")
    answers = Release.load(city / "city.parquet").count_polygons(districts)
    for count in answers.count:
        assert show_count(float(count)) in served  # the page says what the command does
    offline = window()
    page = offline.open((city / "city.html").as_uri())
    box = page.locator("[data-panel='0'] .map").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_selector(".tooltip:visible")
    assert "records" in page.inner_text(".tooltip")
    assert [one for one in offline.requests if one.startswith("http")] == []


def test_a_map_every_month(window: Any, tmp_path: Path) -> None:
    told = follow("docs/tutorials/series.md", tmp_path, never)
    assert "A record is seen by the releases of one month only" in " ".join(told[0].split())
    assert "3 of 12 periods were released" in told[4]
    counts = Series(tmp_path / "city").count(
        [[-30.03, 39.97, -29.97, 40.03], [-29.90, 40.06, -29.84, 40.12]]
    )
    assert counts.changes().beyond_noise[3]  # the new quarter
    for name in ("change.png", "months.png"):
        assert (tmp_path / name).stat().st_size > 0
    assert len((tmp_path / "long.csv").read_text().splitlines()) == 1 + 3 * 64
    page = window().open((tmp_path / "months.html").as_uri())
    assert "2026-03" in page.inner_text("body")
    page.check("#change")
    page.wait_for_selector("html[data-ready=yes]")
    shutil.rmtree(tmp_path / "city")  # the page needs nothing but itself
    page.reload()
    page.wait_for_selector("html[data-ready=yes]")
