"""The page of `htf serve` with a series: a slider through time, changes, and a chart."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from htf import Domain, FrequencyMatrix, Recipe, Release, Series
from htf.frame.crs import CRS84
from htf.frame.domain import Axis
from serving import running
from support import wait_for
from zoning import COUNTS, layer

from .conftest import MONTHS
from .test_map_file import number, point_at

BLOCK = [4.625, 52.375, 4.6875, 52.4125]  # which has more in the second month
IN_BLOCK = (4.66, 52.39)
TEXT = ",".join(map(str, BLOCK))
IDS = [f"months-{month}" for month in MONTHS]


@pytest.fixture(scope="module")
def server(months: Series, folder: Path, chromium: Any) -> Iterator[str]:  # noqa: ARG001 - without it no server is needed
    files = [months.folder, folder / "east.parquet"]
    with running(files, allow_not_private=True) as (address, _):
        yield address


@pytest.fixture
def start(server: str, window: Any) -> Any:
    """Opens the page: a window, which has its requests."""

    def open_page(at: str = f"r={IDS[0]}") -> Any:
        one = window()
        one.open(f"{server}/#{at}")
        settled(one.page)
        return one

    return open_page


def settled(page: Any) -> None:
    page.wait_for_selector("html[data-ready=yes]")
    page.wait_for_selector("#answer[aria-busy=false] .row-count")


def shown(page: Any) -> str:
    """The period on the screen, once its map and its count are."""
    settled(page)
    text: str = page.inner_text("#period-name")
    return text


def wait_until_address_has(page: Any, text: str) -> None:
    wait_for(lambda: text in page.evaluate("location.hash"))


def counted(page: Any) -> list[float]:
    return [number(text) for text in page.locator("#answer .row-count").all_inner_texts()]


def tiles(one: Any, name: str) -> list[str]:
    return [url for url in one.requests if f"/{name}/tiles/" in url]


def test_the_slider_goes_through_time(start: Any, months: Series) -> None:
    page = start().page
    assert page.get_attribute("#period", "max") == "2"
    for at, month in enumerate(MONTHS):
        page.fill("#period", str(at))
        assert shown(page) == month
        assert counted(page) == [round(float(months.release(month).count().count[0]))]
        wait_until_address_has(page, f"r={IDS[at]}")
    page.locator("h1").click()  # leaves the slider
    page.keyboard.press("ArrowLeft")
    assert shown(page) == MONTHS[1]
    page.select_option("#first", IDS[0])
    assert shown(page) == MONTHS[0]
    assert page.input_value("#period") == "0"


def test_a_period_is_loaded_when_shown_and_the_next_one_before(start: Any) -> None:
    one = start()
    page = one.page
    assert tiles(one, IDS[0])
    assert not tiles(one, IDS[1])
    assert not tiles(one, IDS[2])
    page.fill("#period", "1")
    assert shown(page) == MONTHS[1]
    wait_for(lambda: tiles(one, IDS[2]))  # which was not shown yet
    page.fill("#period", "2")
    assert shown(page) == MONTHS[2]
    asked = len(tiles(one, IDS[2]))
    page.fill("#period", "0")
    assert shown(page) == MONTHS[0]
    page.fill("#period", "2")
    assert shown(page) == MONTHS[2]
    assert len(tiles(one, IDS[2])) == asked


def test_play(start: Any) -> None:
    page = start().page
    page.evaluate(
        "void (window.seen = [], new MutationObserver(() => seen.push(document.getElementById('period-name')"
        ".textContent)).observe(document.getElementById('period-name'), {childList: true}))"
    )
    page.click("#play")
    assert page.inner_text("#play") == "Pause"
    wait_for(lambda: page.inner_text("#play") == "Play")
    assert shown(page) == MONTHS[-1]
    assert list(dict.fromkeys(page.evaluate("seen")))[-2:] == list(MONTHS[1:])


def test_the_count_below_the_pointer_follows(start: Any) -> None:
    page = start().page
    point_at(page, *IN_BLOCK)
    page.wait_for_selector(".tooltip >> text=/95 %/")
    before = number(page.inner_text(".tooltip .big"))
    page.focus("#period")
    page.keyboard.press("ArrowRight")
    assert shown(page) == MONTHS[1]
    wait_for(lambda: number(page.inner_text(".tooltip .big")) > before + 100)


def test_colours_keep_their_meaning(start: Any) -> None:
    page = start().page
    for at in (1, 2):
        page.fill("#period", str(at))
        shown(page)
    legend = page.inner_text("#legend")
    for at in (0, 1, 2):
        page.fill("#period", str(at))
        shown(page)
        assert page.inner_text("#legend") == legend


def test_changes_since_the_period_before(start: Any, months: Series) -> None:
    page = start(f"r={IDS[1]}&b={TEXT}").page
    page.check("#change")
    assert shown(page) == MONTHS[1]
    assert page.inner_text("#period-note") == f"change since {MONTHS[0]}"
    after, before, difference = counted(page)
    assert difference == after - before
    assert "more than noise" in page.inner_text("#answer")
    assert "for each period" in page.inner_text("#map-note")
    point_at(page, *IN_BLOCK)
    page.wait_for_selector(".tooltip .beyond")
    assert page.inner_text(".tooltip .big").startswith("+")
    page.fill("#period", "2")
    assert shown(page) == MONTHS[2]
    assert page.inner_text("#period-note") == f"change since {MONTHS[1]}"
    wait_for(lambda: page.inner_text(".tooltip .big").startswith("−"))
    assert counted(page)[1] == after
    page.fill("#period", "0")
    assert shown(page) == MONTHS[0]
    assert page.inner_text("#period-note") == "the first one, with none before it"
    assert len(counted(page)) == 1
    page.fill("#period", "1")
    assert shown(page) == MONTHS[1]
    wait_until_address_has(page, f"r={IDS[1]}&c={IDS[0]}&f=1")  # not that of another period
    again = start(page.evaluate("location.hash").removeprefix("#")).page
    assert again.is_checked("#change")
    assert counted(again) == [after, before, difference]
    again.uncheck("#change")
    assert shown(again) == MONTHS[1]
    assert counted(again) == [after]
    assert months.count(BLOCK).changes().beyond_noise.tolist() == [True, True]


def test_the_chart_has_a_count_with_its_interval_for_each_period(
    start: Any, months: Series
) -> None:
    page = start(f"r={IDS[0]}&b={TEXT}").page
    page.wait_for_selector("#chart .mark >> nth=2")
    for at, row in enumerate(months.count(BLOCK).to_arrow().to_pylist()):
        told = f"{row['period']}: {row['count']:,.0f} ({row['low']:,.0f} to {row['high']:,.0f})"
        assert page.locator("#chart .mark title").nth(at).text_content() == told
        assert told in page.get_attribute("#chart svg", "aria-label")
    marks = page.locator("#chart .mark")
    ends = [
        [float(marks.nth(at).locator("line").get_attribute(f"y{end}")) for end in (1, 2)]
        for at in range(3)
    ]
    middles = [float(marks.nth(at).locator("circle").get_attribute("cy")) for at in range(3)]
    for (low, high), middle in zip(ends, middles, strict=True):
        assert high <= middle <= low  # y goes down
    assert middles[1] < middles[0]
    assert page.locator("#chart .mark.shown").get_attribute("data-id") == IDS[0]
    marks.nth(1).locator("rect").click()
    assert shown(page) == MONTHS[1]
    page.wait_for_selector(f"#chart .mark.shown[data-id='{IDS[1]}']")
    page.click("#clear")  # the whole map
    total = f"{MONTHS[0]}: {months.release(MONTHS[0]).count().count[0]:,.0f} ("
    wait_for(lambda: page.locator("#chart .mark title").first.text_content().startswith(total))


def test_a_release_of_its_own_has_no_slider(start: Any, releases: dict[str, Release]) -> None:
    page = start(f"r={IDS[1]}&f=1").page
    assert page.is_checked("#change")
    page.select_option("#first", "east")
    settled(page)
    assert counted(page) == [round(float(releases["east"].count().count[0]))]
    for part in ("#time", "#chart", "#change"):
        assert not page.is_visible(part)


PIXEL = """
    ([at, x, y]) => {
        const canvas = document.querySelectorAll("#multiples canvas")[at];
        const place = [x * canvas.width, y * canvas.height];
        return [...canvas.getContext("2d").getImageData(...place, 1, 1).data];
    }
"""


def test_small_maps_of_all_periods(start: Any) -> None:
    page = start(f"r={IDS[0]}").page
    page.click("#all-periods")
    page.wait_for_selector("#multiples button >> nth=2")
    assert page.locator("#multiples button").all_inner_texts() == list(MONTHS)
    assert page.get_attribute("#multiples [aria-pressed=true]", "data-period") == IDS[0]

    def colours(x: float, y: float) -> list[tuple[int, ...]]:
        return [tuple(page.evaluate(PIXEL, [at, x, y])) for at in range(3)]

    block, corner = (0.66, 0.35), (0.25, 0.75)  # which changes, and which does not
    wait_for(lambda: colours(*corner)[2][3] == 255)  # the last one is drawn
    assert np.ptp([sum(one) for one in colours(*corner)]) < 60  # one scale
    before, during, after = (sum(one) for one in colours(*block))
    assert during < min(before, after) - 60  # darker
    page.click("#multiples button >> nth=1")
    assert shown(page) == MONTHS[1]
    assert not page.is_visible("#multiples")
    page.check("#change")
    settled(page)
    page.click("#all-periods")
    wait_for(
        lambda: page.locator("#multiples canvas").count() == 3 and colours(*block)[2][3] == 255
    )
    red, _, blue, _ = colours(*block)[1]
    assert red > blue  # more: orange
    red, _, blue, _ = colours(*block)[2]
    assert red < blue  # less: purple
    page.focus("#multiples button >> nth=0")
    page.keyboard.press("Escape")
    assert not page.is_visible("#multiples")
    assert page.evaluate("document.activeElement.id") == "all-periods"


def test_zones_through_time(tmp_path: Path, window: Any) -> None:
    """The slider, changes and the chart, as for a map; and one scale of colours."""
    domain = Domain((Axis.named("zone", layer()),), CRS84)
    recipe = Recipe(domain=domain, epsilon=1)
    series = Series.create(tmp_path / "tracts", recipe, "month", releases=12)
    for month, extra in zip(MONTHS, (0, 900, 0), strict=True):
        counts = COUNTS + extra * (np.arange(len(COUNTS)) == 4)
        series.add(FrequencyMatrix.from_dense(domain, counts), month, noise="fast")
    with running([series.folder]) as (address, _):
        page = window().open(f"{address}/#r=tracts-{MONTHS[0]}")
        settled(page)
        for at, month in enumerate(MONTHS):
            page.fill("#period", str(at))
            assert shown(page) == month
            assert counted(page) == [round(float(series.release(month).count().count[0]))]
        legend = page.inner_text("#legend")
        page.fill("#period", "1")
        assert shown(page) == MONTHS[1]
        assert page.inner_text("#legend") == legend
        assert page.locator("#chart .mark").count() == len(MONTHS)
        point_at(page, 4.25, 52.05)
        wait_for(lambda: "Tract 05" in page.inner_text(".tooltip"))
        page.check("#change")
        shown(page)
        assert page.inner_text("#period-note") == f"change since {MONTHS[0]}"
        wait_for(lambda: "more than noise" in page.inner_text("#answer"))
