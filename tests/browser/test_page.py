"""The page of `htf serve` in a browser: what it says is what the library says."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from htf import Release
from htf.maps.browser.assets import own
from htf.maps.browser.street_tiles import Archive
from serving import running
from street_archive import write_archive
from support import require_module, wait_for

NUMBERS = itertools.count()  # so that each address is a new one
MOVE = """
    at => new Promise((done) => {
        addEventListener("hashchange", done, { once: true });  // after the page's own listener
        location.hash = at;
    }).then(() => true)
"""
LISTEN = """
    window.heard = new Set();
    new MutationObserver(() => heard.add(document.querySelector("#answer .row-count").textContent))
        .observe(document.getElementById("answer"), { childList: true });
"""
MIDDLE = (670, 330)  # of the map, on a screen of 1000 x 640


@pytest.fixture
def start(shared: Any) -> Any:
    """Goes to a place in the address."""

    def go(at: str = "r=east", view: str = "52.3,4.5,8.8") -> Any:
        shared.mouse.move(5, 5)
        shared.evaluate(MOVE, f"{at}&v={view}&n={next(NUMBERS)}")
        shared.wait_for_selector("html[data-ready=yes]")
        settled(shared)
        return shared

    return go


@pytest.fixture
def fresh(address: str, window: Any, with_token: str) -> Any:
    """Opens the page anew."""

    def open_page(at: str = "", **options: Any) -> Any:
        one = window(**options)
        one.context.add_init_script(with_token)
        page = one.open(f"{address}/{at}")
        settled(page)
        return page

    return open_page


def settled(page: Any) -> None:
    """The answer is that of the shape."""
    page.wait_for_selector("#answer[aria-busy=false] .row-count")


def wait_until(page: Any, expression: str) -> None:
    """Asked from outside: the page itself may not evaluate texts."""
    wait_for(lambda: page.evaluate(expression))


def counts(page: Any) -> list[float]:
    settled(page)
    texts = page.locator("#answer .row-count").all_inner_texts()
    return [float(text.replace(",", "").replace("−", "-").replace("+", "")) for text in texts]


def ring(page: Any) -> list[list[float]]:
    found: list[list[float]] = page.evaluate("htf.state.shape.ring")
    return found


def bounds(page: Any) -> list[float]:
    corners = np.array(ring(page))
    return [*corners.min(axis=0), *corners.max(axis=0)]


def draw_box(page: Any, start: tuple[int, int], end: tuple[int, int]) -> None:
    page.click("#draw-box")
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move((start[0] + end[0]) // 2, (start[1] + end[1]) // 2)
    page.mouse.move(*end)
    page.mouse.up()


def test_a_box_is_drawn_and_dragged(start: Any, releases: dict[str, Release]) -> None:
    east = releases["east"]
    page = start()
    assert counts(page) == [round(float(east.count().count[0]))]
    draw_box(page, (600, 250), (760, 400))
    first = counts(page)
    expected = east.count(bounds(page)).to_dicts()[0]
    assert first == [round(expected["count"])]
    shown = page.inner_text("#answer .row-interval")
    assert shown.startswith(f"between {expected['low']:,.0f} and {expected['high']:,.0f}")
    assert shown.endswith("(95 % interval)")
    page.mouse.move(680, 320)
    page.mouse.down()
    page.mouse.move(640, 300, steps=4)
    wait_until(
        page, f"document.querySelector('#answer .row-count').textContent !== '{first[0]:,.0f}'"
    )  # while it moves
    page.evaluate(LISTEN)
    places = itertools.cycle([*range(640, 670), *range(670, 640, -1)])

    def heard_enough() -> bool:
        page.mouse.move(next(places), 305)
        return bool(page.evaluate("heard.size > 5"))

    wait_for(heard_enough)  # without a rest
    page.mouse.move(650, 310)
    page.mouse.up()
    dragged = counts(page)
    assert dragged != first
    assert dragged == [round(float(east.count(bounds(page)).count[0]))]
    corner = page.locator(".shape-corner").nth(1).bounding_box()
    page.mouse.move(corner["x"] + corner["width"] / 2, corner["y"] + corner["height"] / 2)
    page.mouse.down()
    page.mouse.move(820, 480, steps=4)
    page.mouse.up()
    assert counts(page) == [round(float(east.count(bounds(page)).count[0]))]
    assert counts(page)[0] > dragged[0]


def test_a_polygon(start: Any, releases: dict[str, Release]) -> None:
    import shapely

    page = start()
    page.click("#draw-polygon")
    for point in ((600, 250), (760, 280), (800, 450), (640, 480)):
        page.mouse.click(*point)
    page.mouse.click(600, 250)
    shape = shapely.Polygon(ring(page))
    assert len(ring(page)) == 4
    answers = releases["east"].count_polygons([shape])
    assert counts(page) == [round(float(answers.count[0]))]


def test_a_polygon_is_finished_with_a_button_and_gets_another_corner(
    start: Any, releases: dict[str, Release]
) -> None:
    import shapely

    page = start()
    page.click("#draw-polygon")
    assert page.is_disabled("#finish")
    assert page.is_disabled("#undo")
    for point in ((600, 250), (760, 280), (800, 450), (500, 200)):
        page.mouse.click(*point)
    page.click("#undo")
    page.keyboard.press("Backspace")
    assert page.locator(".shape-dots >> nth=0").locator("circle").count() == 2
    assert page.is_disabled("#finish")
    page.mouse.click(640, 480)
    dots = page.evaluate(
        "[...document.querySelectorAll('.shape-dots circle')].slice(0, 3)"
        ".map((one) => one.getBoundingClientRect().toJSON())"
    )
    middles = [(dot["x"] + dot["width"] / 2, dot["y"] + dot["height"] / 2) for dot in dots]
    np.testing.assert_allclose(middles, [(600, 250), (760, 280), (640, 480)], atol=1)
    page.click("#finish")
    assert not page.is_visible("#sketch")
    corners = ring(page)
    assert len(corners) == 3
    page.mouse.move(680, 265)  # the middle of the first edge
    page.mouse.down()
    page.mouse.move(690, 200, steps=3)
    page.mouse.up()
    changed = ring(page)
    assert [changed[0], *changed[2:]] == corners
    at = page.evaluate("at => htf.maps[0].project(at)", changed[1])
    frame = page.evaluate("htf.maps[0].getContainer().getBoundingClientRect().toJSON()")
    assert (at["x"] + frame["x"], at["y"] + frame["y"]) == pytest.approx((690, 200), abs=1)
    page.keyboard.press("Insert")  # between this corner and the next
    assert len(ring(page)) == 5
    answers = releases["east"].count_polygons([shapely.Polygon(ring(page))])
    assert counts(page) == [round(float(answers.count[0]))]


@pytest.mark.parametrize("way", ["Enter", "Escape"])
def test_a_key_ends_the_drawing(start: Any, way: str) -> None:
    """And is not meant for the button that started it, which still has the focus."""
    page = start()
    page.click("#draw-polygon")
    for point in ((600, 250), (760, 280), (640, 480), (500, 300)):
        page.mouse.click(*point)
    page.keyboard.press(way)
    assert not page.is_visible("#sketch")
    shape = page.evaluate("htf.state.shape")
    assert shape is None if way == "Escape" else len(shape["ring"]) == 4


def tip(page: Any) -> Any:
    return page.locator("[data-panel='0'] .tooltip:not([hidden])")


def test_a_tooltip_goes_when_what_it_tells_of_does(start: Any) -> None:
    def point(page: Any) -> None:
        page.mouse.move(*MIDDLE)
        page.wait_for_selector(".tooltip >> text=/95 %/")

    page = start()
    leaving: list[Callable[[], Any]] = [
        lambda: page.mouse.move(5, 5),
        lambda: page.keyboard.press("Escape"),
        lambda: page.click("#draw-polygon"),
        lambda: page.evaluate("document.getElementById('token-dialog').showModal()"),
    ]
    for leave in leaving:
        page.mouse.move(5, 5)
        point(page)
        leave()
        tip(page).wait_for(state="detached")
        page.evaluate("document.getElementById('token-dialog').close()")
        start()
    page.locator("[data-panel='0'] canvas.maplibregl-canvas").focus()
    page.keyboard.press("ArrowLeft")
    page.wait_for_selector(".tooltip >> text=/95 %/")
    page.keyboard.press("Tab")  # away from the map
    tip(page).wait_for(state="detached")
    page.focus("#draw-box")
    page.keyboard.press("Enter")
    page.mouse.move(*MIDDLE)  # over the shape
    page.wait_for_selector(".tooltip >> text=/95 %/")
    page.mouse.down()
    page.mouse.move(MIDDLE[0] + 30, MIDDLE[1], steps=2)  # dragged away
    assert tip(page).count() == 0
    page.mouse.up()


@pytest.mark.parametrize(
    "change",
    [
        "htf.maps[0].jumpTo({ center: [4.6, 52.36], zoom: 10.5 })",
        "first.value = 'west', first.dispatchEvent(new Event('change'))",
    ],
    ids=["zoom", "release"],
)
def test_a_tooltip_is_of_what_is_now_below_the_pointer(start: Any, change: str) -> None:
    page = start()
    page.mouse.move(MIDDLE[0] + 150, MIDDLE[1])
    page.wait_for_selector(".tooltip >> text=/95 %/")
    before = page.inner_text(".tooltip")
    page.evaluate(f"void ({change})")
    page.wait_for_selector("html[data-ready=yes]")
    page.wait_for_selector(".tooltip >> text=/95 %/")
    assert page.inner_text(".tooltip") != before
    after = page.inner_text(".tooltip")
    page.mouse.move(5, 5)
    page.mouse.move(MIDDLE[0] + 150, MIDDLE[1])
    page.wait_for_selector(".tooltip >> text=/95 %/")
    assert page.inner_text(".tooltip") == after


def test_a_tooltip_of_a_tap_goes_with_the_next_one_elsewhere(fresh: Any) -> None:
    page = fresh("#r=east&c=west", viewport={"width": 400, "height": 700}, has_touch=True)
    frame = page.locator("[data-panel='0']").bounding_box()
    middle = frame["x"] + frame["width"] / 2, frame["y"] + frame["height"] / 2
    page.touchscreen.tap(*middle)
    page.wait_for_selector(".tooltip >> text=/95 %/")
    page.locator("h1").tap()
    tip(page).wait_for(state="detached")
    page.tap("#draw-polygon")
    frame = page.locator("[data-panel='0']").bounding_box()
    middle = frame["x"] + frame["width"] / 2, frame["y"] + frame["height"] / 2
    for dx, dy in ((0, 0), (40, 0), (40, 30)):
        page.touchscreen.tap(middle[0] + dx, middle[1] + dy)
    page.tap("#finish")
    assert len(ring(page)) == 3
    assert tip(page).count() == 0


def test_one_shape_in_several_releases(fresh: Any, releases: dict[str, Release]) -> None:
    box = [4.5, 52.2, 4.75, 52.5]
    page = fresh(f"#r=east&c=west&b={','.join(map(str, box))}&a=hours")
    rows = page.locator("#several-table tbody tr")
    page.wait_for_selector("#several-table tbody tr >> nth=2")

    def told(name: str) -> list[str]:
        found = releases[name].count(box).to_dicts()[0]
        count, low, high = (f"{found[one]:,.0f}" for one in ("count", "low", "high"))
        return [name, count, f"{low} to {high}", "100 %"]

    def shown() -> list[list[str]]:
        return [row.strip().split("\t") for row in rows.all_inner_texts()]

    assert shown() == [told(name) for name in ("east", "hours", "west")]
    page.check("#several-list [value=later]")
    page.wait_for_selector("#several-table tbody tr >> nth=3")
    assert shown() == [told(name) for name in ("east", "hours", "later", "west")]
    wait_until(page, "location.hash.includes('a=hours,later')")
    page.click("#several-table button >> text='later'")  # instead of west
    settled(page)
    assert page.evaluate("htf.state.second") == "later"
    assert counts(page)[1] == round(float(releases["later"].count(box).count[0]))
    with page.expect_download() as download:
        page.click("#save-several")
    assert download.value.suggested_filename == "NOT-PRIVATE-releases.csv"
    page.click("#tick-none")
    page.wait_for_selector("#several-table caption >> text=/in 2 releases/")


def test_by_keys_alone(start: Any, releases: dict[str, Release]) -> None:
    east = releases["east"]
    page = start()
    page.focus("#draw-box")
    page.keyboard.press("Enter")
    before = bounds(page)
    assert counts(page) == [round(float(east.count(before).count[0]))]
    assert page.evaluate("document.activeElement.classList.contains('shape-body')")
    page.keyboard.press("Shift+ArrowLeft")
    assert bounds(page)[0] < before[0]
    assert page.get_attribute(".shape", "role") == "application"  # which is given the arrow keys
    page.keyboard.press("Tab")  # to the first corner, south-west
    page.keyboard.press("ArrowDown")
    moved = bounds(page)
    assert moved[1] < before[1]
    assert moved[3] == pytest.approx(before[3])
    assert counts(page) == [round(float(east.count(moved).count[0]))]
    page.locator("summary", has_text="Type a box").focus()
    page.keyboard.press("Enter")
    for name, value in zip(
        ("west", "south", "east", "north"), (4.5, 52.2, 4.75, 52.5), strict=True
    ):
        page.fill(f"[name={name}]", str(value))
    page.keyboard.press("Enter")
    wait_until(page, "htf.state.shape.ring[0][0] === 4.5")
    assert counts(page) == [round(float(east.count([4.5, 52.2, 4.75, 52.5]).count[0]))]


def test_the_address_is_the_view(start: Any, fresh: Any, releases: dict[str, Release]) -> None:
    page = start()
    draw_box(page, (600, 250), (760, 400))
    settled(page)
    wait_until(page, "location.hash.includes('b=')")
    page.evaluate("htf.maps[0].jumpTo({center: [4.6, 52.35], zoom: 9.5})")
    wait_until(page, "location.hash.includes(',9.5')")
    shown = page.evaluate("location.hash")
    again = fresh(shown)
    assert counts(again) == pytest.approx(counts(page), abs=1)  # six digits of degrees
    assert bounds(again) == pytest.approx(bounds(page), abs=1e-6)
    assert again.evaluate("htf.maps[0].getZoom()") == pytest.approx(9.5)
    assert releases["east"].count(bounds(again)).count[0] == pytest.approx(
        counts(again)[0], abs=0.5
    )


def test_two_releases(start: Any, releases: dict[str, Release]) -> None:
    box = [4.5, 52.2, 4.75, 52.5]
    text = ",".join(map(str, box))
    page = start(f"r=east&c=west&m=side&b={text}")
    answers = [releases[name].count(box).to_dicts()[0] for name in ("east", "west")]
    first, second, difference = counts(page)
    assert [first, second] == [round(one["count"]) for one in answers]
    assert difference == first - second  # as a reader would subtract them
    changes = releases["east"].count(box).minus(releases["west"].count(box))
    ends = page.locator("#answer .row-interval").nth(2).inner_text().replace("−", "-")
    assert ends.startswith(f"between {changes.low[0]:+,.0f} and {changes.high[0]:+,.0f}")
    assert "more than noise" in page.inner_text("#answer")
    assert page.locator(".panel:not([hidden])").count() == 2
    page.click("[data-mode=difference]")
    page.wait_for_selector("html[data-ready=yes]")
    assert page.locator(".panel:not([hidden])").count() == 1
    frame = page.evaluate("htf.maps[0].getContainer().getBoundingClientRect().toJSON()")
    at = page.evaluate("htf.maps[0].project([4.6, 52.36])")
    page.mouse.move(frame["x"] + at["x"], frame["y"] + at["y"])
    page.wait_for_selector(".tooltip:not([hidden]) .beyond")
    assert page.inner_text(".tooltip .big").startswith("+")


MARKS = """
    async ([firsts, seconds]) => {
        const { differenceOf, markBeyondNoise } = await import("/static/shared/numbers.js");
        return markBeyondNoise(firsts.map((first, i) => differenceOf(first, seconds[i])));
    }
"""


def test_the_page_compares_as_the_library_does(start: Any, releases: dict[str, Release]) -> None:
    corners = np.random.default_rng(5).uniform((4, 52), (4.9, 52.5), (200, 2))
    boxes = np.hstack([corners, corners + 0.1])
    east, west = releases["east"], releases["west"]
    answers = [one.count(boxes).to_dicts() for one in (east, west)]
    found = start().evaluate(MARKS, answers)
    changes = east.count(boxes).minus(west.count(boxes))
    assert 0 < changes.beyond_noise.sum() < len(boxes)
    assert [one["isBeyond"] for one in found] == changes.beyond_noise.tolist()
    for name in ("low", "high"):
        assert [one[name] for one in found] == pytest.approx(getattr(changes, name).tolist())
    assert [one["count"] for one in found] == pytest.approx(changes.change.tolist())


def type_box(page: Any, box: tuple[float, ...]) -> None:
    page.evaluate("document.getElementById('typed').closest('details').open = true")
    for name, value in zip(("west", "south", "east", "north"), box, strict=True):
        page.fill(f"#typed [name={name}]", repr(value))
    page.press("#typed [name=north]", "Enter")


def test_the_interval_is_that_of_the_server(start: Any, releases: dict[str, Release]) -> None:
    """Also where the raw counts lie far from the count."""
    corners = np.random.default_rng(3).uniform((4, 52), (4.9, 52.5), (2000, 2))
    boxes = np.round(np.hstack([corners, corners + 0.1]), 6)
    answers = releases["hours"].count(boxes)
    place = int(np.argmax((answers.count - answers.raw) / answers.std_error))
    answer = answers.to_dicts()[place]
    assert answer["count"] > answer["raw"] + 1.5 * answer["std_error"]
    page = start(f"r=hours&b={','.join(map(repr, boxes[place].tolist()))}")
    shown = page.inner_text("#answer .row-interval").replace("−", "-")
    low, high = (round(answer[end]) for end in ("low", "high"))
    assert shown.startswith(f"between {low:,} and {high:,}")
    assert low <= round(answer["count"]) <= high


def test_a_box_outside_of_the_map(fresh: Any) -> None:
    page = fresh("#r=east")
    assert "lies on the map" not in page.inner_text("#answer")
    type_box(page, (3.5, 52.0, 4.5, 52.6))
    page.wait_for_selector(
        "#answer >> text=50 % of your box lies on the map. The rest is not counted."
    )
    type_box(page, (52.1, 4.2, 52.4, 4.6))
    page.wait_for_selector("#answer >> text=With x and y swapped it would lie on the map")
    told = page.inner_text("#answer")
    assert "lies outside of the map, which goes from 4 to 5 along x" in told
    assert "about" not in told.split("which goes")[0]


def test_hours(start: Any, releases: dict[str, Release]) -> None:
    page = start("r=hours")
    assert counts(page) == [round(float(releases["hours"].count().count[0]))]
    low = page.get_by_label("hour, low end")
    low.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.inner_text(".range output") == "8 to 24"
    assert counts(page) == [round(float(releases["hours"].count(where={"hour": (8, 24)}).count[0]))]


def test_a_place_of_a_map_in_metres(start: Any, releases: dict[str, Release]) -> None:
    import shapely

    page = start("r=metres&b=-0.2,51.4,0.1,51.6", "51.5,0,8")
    box = shapely.box(-0.2, 51.4, 0.1, 51.6)
    expected = releases["metres"].count_polygons([box], crs="OGC:CRS84")
    assert counts(page) == [round(float(expected.count[0]))]


def test_pointing_asks_for_the_interval(start: Any) -> None:
    page = start("r=hours")  # whose tiles are squares, without intervals until one is asked for
    page.mouse.move(*MIDDLE)
    page.wait_for_selector(".tooltip:not([hidden]) div:nth-child(2):not(.quiet)")
    big, interval = page.locator(".tooltip > div").all_inner_texts()[:2]
    assert re.match(r"95 %: [−\d,]+ to [−\d,]+", interval)
    low, high = (
        float(text.replace(",", "").replace("−", "-")) for text in interval[6:].split(" to ")
    )
    assert low <= float(big.removesuffix(" records").replace(",", "")) <= high


def test_pointing_at_two_maps(start: Any) -> None:
    page = start("r=hours&c=later")
    frame = page.locator("[data-panel='0']").bounding_box()
    page.mouse.move(frame["x"] + frame["width"] / 2, frame["y"] + frame["height"] / 2)
    for number in (0, 1):  # each map asks for its interval
        page.wait_for_selector(f"[data-panel='{number}'] .tooltip >> text=/95 %: .* to /")


def test_on_a_phone_and_in_the_dark(fresh: Any) -> None:
    page = fresh(viewport={"width": 390, "height": 780}, color_scheme="dark", has_touch=True)
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    side = page.locator("#side").bounding_box()
    assert side["y"] > 350  # the map has the upper half
    assert not page.locator("#more").is_visible()
    page.click("#fold")
    assert page.locator("#first").is_visible()
    page.click("#fold")
    page.tap("#draw-polygon")
    for point in ((100, 120), (240, 130), (230, 220), (100, 120)):
        page.touchscreen.tap(*point)
    assert len(ring(page)) == 3
    assert counts(page)[0] > 0
    assert not page.locator(".tooltip").first.is_visible()  # the last tap was not of the map
    page.click("#draw-box")
    page.mouse.move(120, 150)
    page.mouse.down()
    page.mouse.move(260, 280, steps=3)
    page.mouse.up()
    assert counts(page)[0] > 0


def test_people_are_called_people(start: Any, releases: dict[str, Release]) -> None:
    box = [4.1, 52.05, 4.2, 52.1]
    page = start(f"r=weeks&b={','.join(map(str, box))}")
    answer = releases["weeks"].count(box).to_dicts()[0]
    assert answer["count"] < 99
    assert counts(page) == [pytest.approx(answer["count"], abs=0.0501)]
    shown = page.inner_text("#answer")
    assert re.search(r"about \d+\.\d split person-weeks", shown)
    assert "split person-weeks per km²" in page.inner_text("#legend")
    page.mouse.move(*MIDDLE)
    page.wait_for_selector(".tooltip:not([hidden]) div:nth-child(2):not(.quiet)")
    tooltip = page.inner_text(".tooltip")
    assert "split person-weeks" in tooltip
    page.evaluate("document.getElementById('about').open = true")
    page.wait_for_selector("#facts >> text=one person in one week")
    page.wait_for_selector("#facts >> text=for each share of a person")
    for text in (shown, tooltip, page.inner_text("#legend")):
        assert "records" not in text.replace("split across their records", "")
    with page.expect_download() as waited:
        page.click("#save-answer")
    (feature,) = json.loads(waited.value.path().read_text())["features"]
    assert feature["properties"]["counted"] == "split person-weeks"
    assert feature["properties"]["protects"] == "one person in one week"


def test_people_and_records_are_not_subtracted(start: Any) -> None:
    page = start("r=weeks&c=east&m=difference")
    assert page.locator(".panel:not([hidden])").count() == 2
    assert page.locator("[data-mode=difference]").is_disabled()
    assert "weeks counts split person-weeks; east counts records." in page.inner_text("#map-note")
    assert len(counts(page)) == 2
    assert "their difference means nothing" in page.inner_text("#answer")
    assert "split person-weeks or records per km²" in page.inner_text("#legend")


def test_the_answer_as_geojson_and_the_file(
    start: Any, releases: dict[str, Release], tmp_path: Any
) -> None:
    page = start("r=east&b=4.5,52.2,4.75,52.5")
    with page.expect_download() as waited:
        page.click("#save-answer")
    told = json.loads(waited.value.path().read_text())
    (feature,) = told["features"]
    expected = releases["east"].count([4.5, 52.2, 4.75, 52.5]).to_dicts()[0]
    assert {name: feature["properties"][name] for name in expected} == pytest.approx(expected)
    assert feature["properties"]["epsilon"] == "1"
    assert feature["properties"]["statement"] == releases["east"].statement
    with page.expect_download() as waited:
        page.click("#save-release")
    copy = tmp_path / "copy.parquet"
    waited.value.save_as(copy)
    assert Release.load(copy) == releases["east"]


def test_ledger_statement_and_outlines(start: Any, releases: dict[str, Release]) -> None:
    page = start("r=east")
    page.click("#about summary")
    assert page.locator("#facts tbody tr").count() == len(releases["east"].ledger)
    assert page.locator("#badge").is_visible()  # the noise of these tests is seeded
    page.click("#claim summary")
    assert page.inner_text("#statement .statement") == releases["east"].statement
    canvas = page.locator("canvas.maplibregl-canvas").first
    before = canvas.screenshot()
    with page.expect_response(re.compile("leaves")):
        page.check("#outlines")
    wait_for(lambda: canvas.screenshot() != before)


def test_it_asks_for_the_token(address: str, window: Any) -> None:
    one = window()
    one.page.goto(address)
    one.page.wait_for_selector("dialog[open]")
    one.page.fill("#token", "not-the-token-at-all")
    one.page.keyboard.press("Enter")
    one.page.wait_for_selector("#token-problem:not([hidden])")
    one.page.fill("#token", "a-token-of-a-test-0123456789")
    one.page.keyboard.press("Enter")
    one.ready()
    settled(one.page)
    assert (
        one.page.evaluate("sessionStorage.getItem('htf-token')") == "a-token-of-a-test-0123456789"
    )
    assert all(url.startswith((address, "data:", "blob:")) for url in one.requests)


def test_a_tap_makes_a_box_and_delete_takes_a_corner(
    start: Any, releases: dict[str, Release]
) -> None:
    """For those who cannot drag."""
    page = start()
    page.click("#draw-box")
    page.mouse.click(*MIDDLE)
    frame = page.evaluate("htf.maps[0].getContainer().getBoundingClientRect().toJSON()")
    west, south, east, north = bounds(page)
    middle = page.evaluate(
        "at => htf.maps[0].project(at)", [(west + east) / 2, (south + north) / 2]
    )
    assert middle["x"] + frame["x"] == pytest.approx(MIDDLE[0], abs=1)
    assert counts(page) == [round(float(releases["east"].count(bounds(page)).count[0]))]
    page.focus("#draw-polygon")
    page.keyboard.press("Enter")
    corners = ring(page)
    for _ in range(5):
        page.focus(".shape-corner >> nth=0")
        page.keyboard.press("Delete")
    assert ring(page) == corners[3:]  # the last three stay
    zoom = page.evaluate("htf.maps[0].getZoom()")
    page.mouse.move(*MIDDLE)
    page.mouse.wheel(0, -200)  # over the shape
    wait_until(page, f"htf.maps[0].getZoom() > {zoom}")


def test_a_release_that_lies_nowhere(fresh: Any, releases: dict[str, Release]) -> None:
    page = fresh("#r=plane&b=100,150,700,450")
    assert counts(page) == [round(float(releases["plane"].count([100, 150, 700, 450]).count[0]))]
    assert page.is_disabled("#draw-box")
    assert "no map of plane" in page.inner_text("#nowhere")
    page.fill("[name=east]", "650,5")
    page.keyboard.press("Enter")
    wait_until(page, "location.hash.includes('650.5')")
    box = [100, 150, 650.5, 450]
    assert counts(page) == [round(float(releases["plane"].count(box).count[0]))]
    page.fill("[name=east]", "90")
    page.keyboard.press("Enter")
    assert "west less than east" in page.inner_text("#problem")
    assert page.inner_text("#badge").startswith("NOT PRIVATE: plane.")
    page.select_option("#first", "east")
    page.wait_for_selector("html[data-ready=yes]")
    assert counts(page) == [round(float(releases["east"].count().count[0]))]  # not of that box
    assert page.locator("#second option").all_inner_texts() == [
        "nothing",
        "NOT PRIVATE: west (ε = 1)",
        "NOT PRIVATE: hours (ε = 1)",
        "NOT PRIVATE: later (ε = 1)",
        "NOT PRIVATE: weeks (ε = 1)",
    ]  # those of the same place


@pytest.mark.parametrize(
    "mistake", ["r=nope&v=100,500,3", "p=4,52;5,999;4,53", "b=5,53,4,52", "w=hour=9:2&c=metres"]
)
def test_an_address_with_mistakes(start: Any, releases: dict[str, Release], mistake: str) -> None:
    page = start(f"r=east&{mistake}")
    assert counts(page) == [round(float(releases["east"].count().count[0]))]
    assert page.evaluate("htf.state.second") is None


def test_the_server_goes_away(address: str, window: Any, with_token: str) -> None:
    one = window()
    one.expected.append("net::ERR_FAILED")
    one.context.add_init_script(with_token)
    page = one.open(f"{address}/#r=east")
    settled(page)
    before = counts(page)
    page.route("**/api/**", lambda route: route.abort())
    page.focus("#draw-box")
    page.keyboard.press("Enter")
    page.wait_for_selector("#problem:not([hidden])")
    assert "does not answer" in page.inner_text("#problem")
    assert page.inner_text("#answer") == ""  # none of before
    page.evaluate("sessionStorage.setItem('htf-token', 'of-yesterday')")
    page.unroute("**/api/**")
    page.wait_for_selector("#token-problem:not([hidden])")
    page.fill("#token", "a-token-of-a-test-0123456789")
    page.keyboard.press("Enter")
    settled(page)
    assert 0 < counts(page)[0] < before[0]
    assert not page.locator("#problem").is_visible()


@pytest.mark.parametrize("width", [320, 820, 1400])
def test_nothing_lies_over_the_maps(fresh: Any, width: int) -> None:
    page = fresh("#r=east&c=west", viewport={"width": width, "height": 700})
    boxes = [
        page.locator(name).bounding_box()
        for name in ("#badge", "#side", "[data-panel='0']", "[data-panel='1']", "#legend")
    ]
    for one, two in itertools.combinations(boxes, 2):
        across = min(one["x"] + one["width"], two["x"] + two["width"]) - max(one["x"], two["x"])
        down = min(one["y"] + one["height"], two["y"] + two["height"]) - max(one["y"], two["y"])
        assert min(across, down) <= 0
    assert all(box["height"] >= 75 for box in boxes[2:4])
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    west, south, east, north = page.evaluate("htf.state.releases[0].bounds84")
    assert page.evaluate(
        "([a, b]) => htf.maps[0].getBounds().contains(a) && htf.maps[0].getBounds().contains(b)",
        [[west, south], [east, north]],
    )  # all of it is seen


def luminance(colour: str) -> float:
    """https://www.w3.org/TR/WCAG22/#dfn-relative-luminance"""
    parts = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("number", [0, 1], ids=["light", "dark"])
def test_contrast(number: int) -> None:
    """Of texts 4.5, of the edges of what can be pressed 3: WCAG 2.2, level AA."""
    block = re.findall(r":root[^{]*\{([^}]*)\}", own("shared/base.css"))[number]
    colours = dict(re.findall(r"--([\w-]+): (#\w{6})", block))
    texts = [(name, ground) for name in ("ink", "soft") for ground in ("paper", "ground")]
    texts += [("accent", "paper"), ("accent-ink", "accent"), ("warning", "paper")]
    edges = [(name, ground) for name in ("control", "shape") for ground in ("paper", "ground")]
    for pairs, least in ((texts, 4.5), (edges, 3.0)):
        for front, back in pairs:
            low, high = sorted(luminance(colours[name]) for name in (front, back))
            assert (high + 0.05) / (low + 0.05) >= least, (front, back)


def test_the_base_map_follows_the_release(start: Any) -> None:
    page = start()
    first = page.locator("canvas.names").first
    wait_for(lambda: "Amsterdam" in (first.get_attribute("data-names") or ""))
    assert page.evaluate(
        "htf.maps[0].queryRenderedFeatures({layers: ['basemap-near-water']}).length"
    )
    assert "Natural Earth" in page.inner_text(".maplibregl-ctrl-attrib >> nth=0")
    page = start("r=metres", "51.5,-0.1,8")
    wait_for(lambda: "London" in (first.get_attribute("data-names") or ""))


def test_streets_of_an_archive(folder: Path, tmp_path: Path, window: Any, with_token: str) -> None:
    require_module("pmtiles", "geo")
    archive = Archive(write_archive(tmp_path / "town.pmtiles", (4.0, 52.0, 5.0, 52.6)))
    files = [folder / f"{name}.parquet" for name in ("east", "metres")]
    token = with_token.split("'")[3].encode()
    settings: dict[str, Any] = {"allow_not_private": True, "streets": archive, "token": token}
    with running(files, **settings) as (address, _):
        one = window()
        one.context.add_init_script(with_token)
        page = one.open(f"{address}/#r=east&v=52.3,4.5,8.8")
        names = page.locator("canvas.names").first
        wait_for(lambda: "Streetham" in (names.get_attribute("data-names") or ""))
        order = page.evaluate("htf.maps[0].getLayersOrder()")
        below, above = order.index("streets-water-fill"), order.index("streets-roads-line")
        assert below < order.index("rectangles") < above
        seen = "htf.maps[0].queryRenderedFeatures({layers: ['streets-roads-line']}).length"
        assert page.evaluate(seen) > 10
        assert "© Mappers" in page.inner_text(".maplibregl-ctrl-attrib >> nth=0")
        page.evaluate(MOVE, f"r=metres&v=51.5,-0.1,8&n={next(NUMBERS)}")
        wait_for(lambda: "London" in (names.get_attribute("data-names") or ""))
        wait_for(lambda: page.evaluate(seen) == 0)
        page.close()
    archive.close()
