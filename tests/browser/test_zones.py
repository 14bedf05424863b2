"""Releases of zones in a browser, on the page and in a file: what they show is what the library says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from htf import Release
from htf.cli.main import run
from htf.query.answer_texts import show_count
from serving import running
from support import wait_for
from zoning import boxes_with_offences, zoned

KINDS = ("plain", "hours", "kinds", "trips", "rest")
MIDDLES = {"Tract 01": (4.05, 52.05), "Tract 05": (4.25, 52.05), "Tract 12": (4.55, 52.15)}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("zones")
    releases = {kind: zoned(kind) for kind in KINDS}
    releases |= {"later": zoned(noise="seeded:2"), "boxes": boxes_with_offences()}
    for name, release in releases.items():
        release.save(folder / f"{name}.parquet")
    return {name: folder / f"{name}.parquet" for name in releases}


@pytest.fixture(scope="module")
def server(files: dict[str, Path], chromium: Any) -> Iterator[str]:  # noqa: ARG001 - without it no server is needed
    with running(list(files.values()), allow_not_private=True) as (address, _):
        yield address


@pytest.fixture
def start(server: str, window: Any) -> Any:
    def open_page(at: str, **options: Any) -> Any:
        page = window(**options).open(f"{server}/#{at}")
        settled(page)
        return page

    return open_page


def settled(page: Any) -> None:
    page.wait_for_selector("html[data-ready=yes]")
    page.wait_for_selector("#answer[aria-busy=false] .row-count")


def on_screen(page: Any, zone: str) -> tuple[float, float]:
    longitude, latitude = MIDDLES[zone]
    point = page.evaluate(f"htf.maps[0].project([{longitude}, {latitude}])")
    frame = page.evaluate("htf.maps[0].getContainer().getBoundingClientRect().toJSON()")
    return frame["x"] + point["x"], frame["y"] + point["y"]


# A tooltip follows the pointer from frame to frame; before, it may still tell of another zone.
FRAMES = "new Promise((seen) => requestAnimationFrame(() => requestAnimationFrame(seen)))"


def tooltip(page: Any, zone: str) -> list[str]:
    page.mouse.move(*on_screen(page, zone))
    page.evaluate(FRAMES)
    page.wait_for_selector(".tooltip:not([hidden])")
    found: list[str] = page.locator(".tooltip > div").all_inner_texts()
    return found


def address(page: Any) -> str:
    found: str = page.evaluate("location.hash")
    return found


def column(page: Any, place: int) -> list[str]:
    cells = page.locator(f"#zone-table tbody tr > :nth-child({place})")
    return [text.strip() for text in cells.all_inner_texts()]


def answer_of(release: Release, **where: Any) -> dict[str, float]:
    return release.count(where=where).to_dicts()[0]


def assert_shown(lines: list[str], answer: dict[str, float]) -> None:
    count, low, high = (show_count(answer[n]).replace("-", "−") for n in ("count", "low", "high"))
    assert f"{count} records" in lines
    assert f"95 %: {low} to {high}" in lines


def wait_for_shown(page: Any, zone: str, expected: dict[str, float]) -> None:
    """A map that is drawn anew may still show what it showed before."""

    def is_shown() -> bool:
        try:
            assert_shown(tooltip(page, zone), expected)
        except AssertionError:
            return False
        return True

    wait_for(is_shown)


def colour_at(page: Any, zone: str) -> tuple[int, ...]:
    """Beside the middle of the zone, where nothing else is drawn."""
    import io

    from PIL import Image

    x, y = on_screen(page, zone)
    page.mouse.move(5, 5)
    with Image.open(io.BytesIO(page.screenshot())) as picture:
        found: Any = picture.convert("RGB").getpixel((int(x) + 6, int(y) + 9))
    return tuple(found)


def test_hover_level_and_table(start: Any, files: dict[str, Path]) -> None:
    release = Release.load(files["plain"])
    page = start("r=plain")
    lines = tooltip(page, "Tract 05")
    assert lines[:2] == ["Tract 05", "District 2"]
    assert_shown(lines, answer_of(release, zone="Tract 05"))
    dense, blank = colour_at(page, "Tract 01"), colour_at(page, "Tract 05")
    assert sum(dense) < sum(blank)
    assert len(column(page, 1)) == 12
    assert column(page, 1)[:2] == ["Tract 01", "Tract 07"]  # those with most come first
    page.select_option("#level", "district")
    wait_for(lambda: len(column(page, 1)) == 3)
    settled(page)
    lines = tooltip(page, "Tract 05")
    assert lines[0] == "District 2"
    assert_shown(lines, answer_of(release, zone="District 2"))
    wait_for(lambda: "l=district" in address(page))


def test_the_table_is_sorted_by_mouse_and_keys(start: Any) -> None:
    page = start("r=plain")
    heading = page.locator("#zone-table th", has_text="records")
    assert heading.get_attribute("aria-sort") == "descending"
    counts = [float(text.replace(",", "").replace("−", "-")) for text in column(page, 3)]
    assert counts == sorted(counts, reverse=True)
    page.click("[data-sort=records]")
    assert column(page, 3)[0] != f"{counts[0]:,.0f}"
    assert heading.get_attribute("aria-sort") == "ascending"
    page.focus("[data-sort=tract]")
    page.keyboard.press("Enter")
    assert column(page, 1) == [f"Tract {n:02}" for n in range(1, 13)]
    assert page.evaluate("document.activeElement.dataset.sort") == "tract"
    page.keyboard.press("Enter")
    assert column(page, 1)[0] == "Tract 12"


def test_a_zone_is_chosen_on_the_map_in_the_table_and_by_keys(
    start: Any, files: dict[str, Path]
) -> None:
    release = Release.load(files["plain"])
    page = start("r=plain")
    page.mouse.click(*on_screen(page, "Tract 12"))
    wait_for(lambda: "Tract 12" in page.inner_text("#answer .row-name"))
    settled(page)
    expected = show_count(answer_of(release, zone="Tract 12")["count"])
    assert page.inner_text("#answer .row-count") == expected
    assert page.get_attribute("#zone-table [aria-pressed=true]", "type") == "button"
    page.click("#clear")
    wait_for(lambda: "all zones" in page.inner_text("#answer .row-name"))
    page.locator("#zone-table tbody button", has_text="Tract 07").press("Enter")
    wait_for(lambda: "Tract 07" in page.inner_text("#answer .row-name"))
    wait_for(lambda: "z=Tract%2007" in address(page))
    again = start(address(page)[1:])
    assert "Tract 07" in again.inner_text("#answer .row-name")


def test_trips_from_and_to_a_zone(start: Any, files: dict[str, Path]) -> None:
    release = Release.load(files["trips"])
    page = start("r=trips")
    assert "where trips start. Click a zone" in page.inner_text("#hint")
    page.mouse.click(*on_screen(page, "Tract 01"))
    wait_for(lambda: "where trips from Tract 01 end" in page.inner_text("#hint"))
    settled(page)
    lines = tooltip(page, "Tract 12")
    assert_shown(lines, answer_of(release, zone="Tract 01", dest_zone="Tract 12"))
    page.click("[data-direction=to]")
    wait_for(lambda: "where trips to Tract 01 start" in page.inner_text("#hint"))
    settled(page)
    lines = tooltip(page, "Tract 12")
    assert_shown(lines, answer_of(release, zone="Tract 12", dest_zone="Tract 01"))
    name, count = page.inner_text("#answer .row-name"), page.inner_text("#answer .row-count")
    assert name == "trips, trips to Tract 01"
    assert count == show_count(answer_of(release, dest_zone="Tract 01")["count"])
    page.select_option("#level", "district")
    wait_for(lambda: "where trips end. Click a zone" in page.inner_text("#hint"))


def test_hours_and_kinds_are_chosen(start: Any, files: dict[str, Path]) -> None:
    page = start("r=hours")
    page.locator(".range input").first.press("ArrowRight")
    wait_for(lambda: "w=hour" in address(page))
    settled(page)
    expected = answer_of(Release.load(files["hours"]), zone="Tract 01", hour=(6, 24))
    wait_for_shown(page, "Tract 01", expected)
    page = start("r=kinds")
    page.select_option("[data-axis=offence]", label="Violent")
    wait_for(lambda: "w=offence" in address(page))
    settled(page)
    expected = answer_of(Release.load(files["kinds"]), zone="Tract 01", offence="Violent")
    wait_for_shown(page, "Tract 01", expected)


def test_kinds_are_chosen_on_a_map_of_boxes(start: Any, files: dict[str, Path]) -> None:
    page = start("r=boxes")
    page.select_option("[data-axis=offence]", label="Theft")
    expected = show_count(answer_of(Release.load(files["boxes"]), offence="Theft")["count"])
    wait_for(lambda: page.inner_text("#answer .row-count") == expected)
    settled(page)
    assert page.locator("#zone-card").is_hidden()


def test_two_releases_and_back_to_boxes(start: Any) -> None:
    page = start("r=plain&c=later&m=difference")
    lines = tooltip(page, "Tract 01")
    assert any(line.startswith("plain: ") for line in lines)
    assert "any zone is marked without reason is at most 5 %" in page.inner_text("#map-note")
    page.click("[data-mode=side]")
    page.wait_for_selector(".panel[data-panel='1']:visible")
    settled(page)
    tooltip(page, "Tract 05")
    assert page.locator(".tooltip:visible").count() == 2
    page.select_option("#first", "boxes")
    wait_for(lambda: page.locator("#draw-box").is_visible())
    settled(page)
    assert page.locator("#zone-card").is_hidden()


def test_a_phone_has_all_of_it(start: Any) -> None:
    options = {"viewport": {"width": 390, "height": 780}, "has_touch": True, "is_mobile": True}
    page = start("r=trips", **options)
    page.touchscreen.tap(*on_screen(page, "Tract 05"))
    wait_for(lambda: "Tract 05" in page.inner_text("#answer .row-name"))
    page.click("#fold")
    assert page.locator("#zone-table").is_visible()
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= 390


def test_the_file_without_a_network(files: dict[str, Path], tmp_path: Path, window: Any) -> None:
    out = tmp_path / "map.html"
    assert run(["map", str(files["trips"]), "-o", str(out)]) == 0
    one = window()
    one.context.set_offline(True)
    page = one.open(out.as_uri())
    release = Release.load(files["trips"])
    hint = "Colours show where trips start. Click a zone to see where its trips end."
    assert page.inner_text("#note") == hint
    lines = tooltip(page, "Tract 05")
    assert lines[:2] == ["Tract 05", "District 2"]
    page.mouse.click(*on_screen(page, "Tract 01"))
    assert "where trips from Tract 01 end" in page.inner_text("#note")
    shown = float(tooltip(page, "Tract 12")[2].split(" ")[0].replace(",", "").replace("−", "-"))
    expected = answer_of(release, zone="Tract 01", dest_zone="Tract 12")
    assert abs(shown - expected["count"]) <= expected["std_error"] / 32 + 0.5
    page.select_option("#level", label="district")
    assert tooltip(page, "Tract 05")[0] == "District 2"
    assert all(url.startswith(("file:", "blob:", "data:")) for url in one.requests)


def test_a_file_of_a_difference_of_zones(
    files: dict[str, Path], tmp_path: Path, window: Any
) -> None:
    out = tmp_path / "map.html"
    names = [str(files["plain"]), str(files["later"])]
    assert run(["map", *names, "--difference", "-o", str(out)]) == 0
    page = window().open(out.as_uri())
    lines = tooltip(page, "Tract 01")
    assert any(line.startswith("plain: ") for line in lines)
    assert page.locator("#outlines").is_hidden()
