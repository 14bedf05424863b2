"""The HTML map of a series, opened as a file in a browser that has no network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from htf import Domain, FrequencyMatrix, Layer, Recipe, Series, draw, publish
from htf.cli.main import run
from htf.frame.crs import CRS84
from htf.frame.domain import Axis
from support import wait_for
from zoning import COUNTS, layer

from .conftest import MONTHS
from .test_map_file import number, pixels, place_of, point_at

CHANGED = (4.66, 52.39)  # in the block that changes
BLOCK = [4.625, 52.375, 4.6875, 52.4125]
QUIET = (4.2, 52.5)


@pytest.fixture
def page(months: Series, tmp_path: Path, window: Any) -> Any:
    out = tmp_path / "months.html"
    assert run(["map", str(months.folder), "-o", str(out)]) == 0
    one = window()
    one.context.set_offline(True)
    opened = one.open(out.as_uri())
    yield opened
    assert all(url.startswith(("file:", "data:", "blob:")) for url in one.requests), one.requests


def shown(page: Any) -> str:
    """The period on the screen, once its map is."""
    page.wait_for_selector("html[data-ready=yes]")
    text: str = page.inner_text("#period-name")
    return text


def lines(page: Any) -> list[str]:
    found: list[str] = page.locator(".tooltip > div").all_inner_texts()
    return found


def test_the_slider_and_the_arrow_keys_go_through_time(page: Any, months: Series) -> None:
    assert shown(page) == MONTHS[-1]
    size = page.evaluate("getComputedStyle(document.getElementById('period-name')).fontSize")
    assert float(size.removesuffix("px")) >= 20
    page.keyboard.press("ArrowLeft")  # nothing has the focus
    assert shown(page) == MONTHS[1]
    page.focus("#period")
    page.keyboard.press("ArrowLeft")
    assert shown(page) == MONTHS[0]
    assert page.get_attribute("#period", "aria-valuetext") == MONTHS[0]
    page.keyboard.press("ArrowLeft")  # there is none before
    assert shown(page) == MONTHS[0]
    page.fill("#period", "1")
    assert shown(page) == MONTHS[1]
    release = months.release(MONTHS[1])
    point_at(page, *CHANGED)
    name, big, interval = lines(page)[:3]
    assert name == MONTHS[1]
    x, y = release.domain.axes
    cell = np.array([(CHANGED[0] - x.low) / x.cell_width, (CHANGED[1] - y.low) / y.cell_width])
    (leaf,) = np.flatnonzero(np.all((release.low <= cell) & (cell < release.high), axis=1))
    (west, south), (east, north) = (
        (x.from_cells(ends[0]), y.from_cells(ends[1]))
        for ends in (release.low[leaf], release.high[leaf])
    )
    answer = release.count([west, south, east, north]).to_dicts()[0]
    step = answer["std_error"] / 32 + 0.5
    assert number(big) == pytest.approx(answer["count"], abs=step)
    low, high = interval.removeprefix("95 %: ").split(" to ")
    assert number(low) == pytest.approx(answer["low"], abs=step)
    assert number(high) == pytest.approx(answer["high"], abs=step)


def test_the_count_below_the_pointer_follows(page: Any) -> None:
    point_at(page, *CHANGED)
    assert lines(page)[0] == MONTHS[2]
    page.fill("#period", "1")
    assert shown(page) == MONTHS[1]
    assert lines(page)[0] == MONTHS[1]


def test_colours_mean_the_same_in_every_period(page: Any) -> None:
    legend = page.inner_text("#legend")
    box = [4.25, 52.2, 4.26, 52.21]  # in the block that never changes
    found = []
    for at in range(3):
        page.fill("#period", str(at))
        shown(page)
        assert page.inner_text("#legend") == legend
        x, y = place_of(page, box)
        found.append(pixels(page)[y, x])
    assert np.abs(np.array(found) - found[0]).max() < 60  # 63 in each cell, but for noise


def test_play_shows_every_period_and_stops_at_the_end(page: Any) -> None:
    page.evaluate(
        "window.seen = []; new MutationObserver(() => seen.push(document.getElementById('period-name')"
        ".textContent)).observe(document.getElementById('period-name'), {childList: true})"
    )
    page.click("#play")  # from the end, so from the beginning
    assert page.inner_text("#play") == "Pause"
    wait_for(lambda: page.inner_text("#play") == "Play")
    assert shown(page) == MONTHS[-1]
    assert page.evaluate("seen") == list(MONTHS)
    page.click("#play")
    page.click("#play")
    assert page.inner_text("#play") == "Play"  # paused, wherever it is
    page.focus("#period")
    page.keyboard.press("End")
    assert shown(page) == MONTHS[-1]


def test_changes_colour_only_what_is_more_than_noise(page: Any, months: Series) -> None:
    page.check("#change")
    for at, (since, sign) in enumerate((("2026-01", "+"), ("2026-02", "−")), start=1):
        page.fill("#period", str(at))
        assert shown(page) == MONTHS[at]
        assert page.inner_text("#period-note") == f"change since {since}"
        point_at(page, *CHANGED)
        wait_for(lambda: lines(page)[-1] == "more than noise")
        big, interval, after, before = lines(page)[:4]
        assert big.startswith(sign)
        first, second = number(after.rpartition(": ")[2]), number(before.rpartition(": ")[2])
        assert number(big) == first - second  # as a reader would subtract them
        assert after.startswith(f"{MONTHS[at]}: ")
        assert before.startswith(f"{since}: ")
        low, high = (number(text) for text in interval.removeprefix("95 %: ").split(" to "))
        assert low <= number(big) <= high
        page.mouse.move(5, 5)
        image = pixels(page)
        blank = np.array([0xE9, 0xED, 0xF2])
        x, y = place_of(page, [*CHANGED, *CHANGED])
        assert np.abs(image[y, x] - blank).max() > 60
        x, y = place_of(page, [*QUIET, *QUIET])
        assert np.abs(image[y, x] - blank).max() <= 20  # over the water of the base map
        assert "no more than noise" in page.inner_text("#legend")
        assert f"more in {since}" in page.inner_text("#legend")
    assert months.count(BLOCK).changes().beyond_noise.tolist() == [True, True]


def test_the_first_period_has_none_before_it(page: Any) -> None:
    page.check("#change")
    page.fill("#period", "0")
    assert shown(page) == MONTHS[0]
    assert page.inner_text("#period-note") == "the first one, with none before it"
    page.uncheck("#change")
    shown(page)
    assert page.inner_text("#period-note") == ""
    assert "records per km²" in page.inner_text("#legend")


def test_smaller_squares_show_closer_up(page: Any) -> None:
    page.check("#change")
    page.fill("#period", "1")
    shown(page)
    point_at(page, *CHANGED)
    wait_for(lambda: lines(page)[-1] == "more than noise")
    before = lines(page)[2]
    page.evaluate(f"void htf.maps[0].jumpTo({{center: {list(CHANGED)}, zoom: 12}})")
    page.mouse.move(5, 5)
    point_at(page, *CHANGED)
    wait_for(
        lambda: number(lines(page)[2].rpartition(": ")[2]) < number(before.rpartition(": ")[2])
    )


def test_on_a_phone(months: Series, tmp_path: Path, window: Any) -> None:
    out = tmp_path / "months.html"
    assert run(["map", str(months.folder), "-o", str(out)]) == 0
    page = window(viewport={"width": 390, "height": 780}).open(out.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.locator("#period").bounding_box()["width"] > 90


@pytest.fixture(scope="module")
def zone_months(tmp_path_factory: pytest.TempPathFactory) -> Series:
    """In the second month there is more in one tract, and in the third it is gone."""
    folder = tmp_path_factory.mktemp("zones") / "tracts"
    domain = Domain((Axis.named("zone", layer()),), CRS84)
    recipe = Recipe(domain=domain, epsilon=1)
    made = Series.create(folder, recipe, "month", releases=12)
    for month, extra in zip(MONTHS, (0, 900, 0), strict=True):
        counts = COUNTS + extra * (np.arange(len(COUNTS)) == 4)
        made.add(FrequencyMatrix.from_dense(domain, counts), month, noise="fast")
    return made


def test_zones_through_time(zone_months: Series, tmp_path: Path, window: Any) -> None:
    """The slider, the levels, the changes and the small maps, as for a grid."""
    out = tmp_path / "tracts.html"
    assert run(["map", str(zone_months.folder), "-o", str(out)]) == 0
    page = window().open(out.as_uri())
    assert shown(page) == MONTHS[-1]
    page.fill("#period", "1")
    assert shown(page) == MONTHS[1]
    release = zone_months.release(MONTHS[1])
    point_at(page, 4.25, 52.05)
    name, zone, district, big, interval = lines(page)[:5]
    assert (name, zone, district) == (MONTHS[1], "Tract 05", "District 2")
    answer = release.count(where={"zone": "Tract 05"}).to_dicts()[0]
    step = answer["std_error"] / 32 + 0.5
    assert number(big) == pytest.approx(answer["count"], abs=step)
    low, high = interval.removeprefix("95 %: ").split(" to ")
    assert number(low) == pytest.approx(answer["low"], abs=step)
    assert number(high) == pytest.approx(answer["high"], abs=step)
    page.check("#change")
    assert shown(page) == MONTHS[1]
    point_at(page, 4.25, 52.05)
    wait_for(lambda: lines(page)[-1] == "more than noise")
    assert lines(page)[2].startswith("+")
    page.select_option("#level", "1")
    assert shown(page) == MONTHS[1]
    point_at(page, 4.25, 52.05)
    wait_for(lambda: lines(page)[0] == "District 2")
    page.fill("#period", "0")
    shown(page)
    assert page.inner_text("#period-note") == "the first one, with none before it"


def test_small_maps_of_all_periods(zone_months: Series, tmp_path: Path, window: Any) -> None:
    out = tmp_path / "tracts.html"
    assert run(["map", str(zone_months.folder), "-o", str(out)]) == 0
    page = window().open(out.as_uri())
    page.click("#all")
    assert page.locator("#multiples button").all_inner_texts() == list(MONTHS)
    busy = "document.querySelectorAll('#multiples canvas')[1].getContext('2d').getImageData(5, 5, 1, 1).data[3]"
    wait_for(lambda: page.evaluate(busy) == 255)
    page.click("#multiples button:nth-child(2)")
    assert page.is_hidden("#multiples")
    assert shown(page) == MONTHS[1]


def test_trips_through_the_hours(tmp_path: Path, window: Any) -> None:
    """Of all trips, and of those from a zone; every hour with the same colours."""
    zone, dest = Axis.named("zone", layer()), Axis.named("dest_zone", layer())
    domain = Domain((zone, dest, Axis("hour", 0, 24, 3)), CRS84)
    dense = np.outer(COUNTS, COUNTS)[:, :, None] // 1000 * np.array([1, 4, 2])
    release = publish(FrequencyMatrix.from_dense(domain, dense), 1, "hb", noise="seeded:1")
    draw(Layer.of(release, "trips").by("hour"), tmp_path / "trips.html")
    page = window().open((tmp_path / "trips.html").as_uri())
    assert shown(page) == "hour 0 to 8"
    assert page.is_hidden("#change")
    page.fill("#period", "1")
    assert shown(page) == "hour 8 to 16"
    legend = page.inner_text("#legend")
    point_at(page, 4.05, 52.05)
    answer = release.count(where={"zone": "Tract 01", "hour": (8, 16)}).to_dicts()[0]
    wait_for(lambda: lines(page)[:3] == ["hour 8 to 16", "Tract 01", "District 1"])
    assert number(lines(page)[3]) == pytest.approx(
        answer["count"], abs=answer["std_error"] / 32 + 0.5
    )
    page.fill("#period", "0")
    assert shown(page) == "hour 0 to 8"
    assert page.inner_text("#legend") == legend
    point_at(page, 4.05, 52.05)
    page.mouse.down()
    page.mouse.up()
    wait_for(lambda: "Tract 01" in page.inner_text("#note"))
    page.click("#all")
    wait_for(lambda: page.locator("#multiples canvas").count() == 3)


def test_steps_of_an_axis(folder: Path, tmp_path: Path, window: Any) -> None:
    """A slider through the hours of one release, which have no changes."""
    out = tmp_path / "hours.html"
    asked = ["map", str(folder / "hours.parquet"), "--by", "hour", "-o", str(out)]
    assert run(asked) == 0
    page = window().open(out.as_uri())
    assert shown(page) == "hour 0 to 4"
    assert page.is_hidden("#change")
    page.fill("#period", "2")
    assert shown(page) == "hour 8 to 12"
    point_at(page, 4.5, 52.3)
    assert lines(page)[0] == "hour 8 to 12"
