"""The HTML map, opened as a file in a browser that has no network."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
from PIL import Image

from htf import Domain, FrequencyMatrix, PeopleByBox, Protection, Release, measure_distinct, publish
from htf.cli.main import run
from htf.maps.kinds import Grid
from htf.query.change import error_of_change
from street_archive import streets, write_archive
from support import require_module, wait_for


def number(text: str) -> float:
    """Of a count, with or without what is counted."""
    return float(text.split(" ", maxsplit=1)[0].replace(",", "").replace("−", "-").replace("+", ""))


def draw(folder: Path, tmp_path: Path, *names: str, more: tuple[str, ...] = ()) -> str:
    out = tmp_path / "map.html"
    files = [str(folder / f"{name}.parquet") for name in names]
    assert run(["map", *files, "-o", str(out), *more]) == 0
    return out.as_uri()


def busiest(release: Release) -> list[float]:
    """W,S,E,N of the leaf with most records per cell."""
    return outline(release, int(np.argmax(release.estimates / sizes(release))))


def emptiest(release: Release) -> list[float]:
    """Of the largest leaf that is no more than noise, although what is around it is no more, or much denser."""
    others = release.derived.clear_leaves | release.derived.unsure_leaves
    return outline(release, int(np.argmax(sizes(release) * ~others)))


def sizes(release: Release) -> Any:
    return np.prod(release.high - release.low, axis=1)


def outline(release: Release, best: int) -> list[float]:
    low, high = release.low[best], release.high[best]
    x, y = release.domain.axes[:2]
    edges = (x, low[0]), (y, low[1]), (x, high[0]), (y, high[1])
    return [float(axis.from_cells(np.array(edge))) for axis, edge in edges]


def point_at(page: Any, longitude: float, latitude: float) -> tuple[float, float]:
    """Moves the mouse there; where that is on the screen."""
    point = page.evaluate(f"htf.maps[0].project([{longitude}, {latitude}])")
    frame = page.evaluate("htf.maps[0].getContainer().getBoundingClientRect().toJSON()")
    at = frame["x"] + point["x"], frame["y"] + point["y"]
    page.mouse.move(*at)
    page.wait_for_selector(".tooltip:not([hidden])")
    return at


def test_it_needs_no_network_and_says_what_the_release_says(
    folder: Path, tmp_path: Path, releases: dict[str, Release], window: Any
) -> None:
    one = window()
    one.context.set_offline(True)
    page = one.open(draw(folder, tmp_path, "east"))
    box = busiest(releases["east"])
    point_at(page, (box[0] + box[2]) / 2, (box[1] + box[3]) / 2)
    big, interval = page.locator(".tooltip > div").all_inner_texts()[:2]
    answer = releases["east"].count(box).to_dicts()[0]
    step = answer["std_error"] / 32 + 0.5  # what the file leaves out, and rounding on the screen
    assert number(big) == pytest.approx(answer["count"], abs=step)
    low, high = interval.removeprefix("95 %: ").split(" to ")
    assert number(low) == pytest.approx(answer["low"], abs=step)
    assert number(high) == pytest.approx(answer["high"], abs=step)
    assert all(url.startswith(("file:", "data:", "blob:")) for url in one.requests), one.requests
    page.click("details.claim summary")
    assert releases["east"].statement[:60] in page.inner_text("details.claim")
    assert "Redistributions in binary form" in page.text_content("#maplibre-licence")


def test_a_gap_in_a_dense_place_is_not_drawn_as_empty(
    folder: Path, tmp_path: Path, releases: dict[str, Release], window: Any
) -> None:
    release = releases["east"]
    unsure = release.derived.unsure_leaves
    assert 0 < unsure.sum() < np.sum(~release.derived.clear_leaves)
    box = outline(release, int(np.argmax(sizes(release) * unsure)))
    page = window(color_scheme="light").open(
        draw(folder, tmp_path, "east", more=("--basemap", "none"))
    )
    x, y = point_at(page, (box[0] + box[2]) / 2, (box[1] + box[3]) / 2)
    assert "too few to tell: none, or a third of the density" in page.inner_text(".tooltip")
    assert "too few to tell" in page.inner_text("#legend")
    page.mouse.move(5, 5)
    page.wait_for_selector(".tooltip", state="hidden")
    with Image.open(io.BytesIO(page.screenshot())) as picture:
        assert picture.convert("RGB").getpixel((int(x), int(y))) == (0xC3, 0xBF, 0xCD)


def test_an_interval_contains_its_count(
    folder: Path, tmp_path: Path, releases: dict[str, Release], window: Any
) -> None:
    release = releases["east"]
    boxes = np.array([outline(release, part) for part in range(len(release))])
    answers = release.count(boxes)
    part = int(np.argmin(answers.raw + 2.2 * answers.std_error))  # the raw counts are far below
    answer = answers.to_dicts()[part]
    assert answer["raw"] < 0 <= answer["count"] <= answer["high"]
    page = window().open(draw(folder, tmp_path, "east"))
    point_at(page, *(boxes[part][:2] + boxes[part][2:]) / 2)
    big, interval = page.locator(".tooltip > div").all_inner_texts()[:2]
    step = answer["std_error"] / 32 + 0.5
    low, high = interval.removeprefix("95 %: ").split(" to ")
    assert number(high) == pytest.approx(answer["high"], abs=step)
    assert number(low) <= number(big) <= number(high)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_are_those_of_the_legend(
    folder: Path, tmp_path: Path, releases: dict[str, Release], window: Any, scheme: str
) -> None:
    """Read off the screen: the densest part has the last colour of the scale, an empty one the blank."""
    one = window(color_scheme=scheme)
    page = one.open(draw(folder, tmp_path, "east", more=("--basemap", "none")))
    assert page.evaluate("document.documentElement.dataset.theme") == scheme
    boxes = busiest(releases["east"]), emptiest(releases["east"])
    image = pixels(page)
    last, blank = ("#0b0924", "#e9edf2") if scheme == "light" else ("#fcf9bb", "#1b222b")
    for box, colour in zip(boxes, (last, blank), strict=True):
        expected = [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
        x, y = place_of(page, box)
        found = image[y, x]
        assert np.abs(found - expected).max() <= 12, (found, expected)
    page.click("#theme")
    assert page.evaluate("document.documentElement.dataset.theme") != scheme


def test_by_keys_and_by_tapping(
    folder: Path, tmp_path: Path, releases: dict[str, Release], window: Any
) -> None:
    one = window(has_touch=True)
    page = one.open(draw(folder, tmp_path, "east"))
    page.locator("canvas.maplibregl-canvas").focus()
    before = page.evaluate("htf.maps[0].getCenter()")
    page.keyboard.press("ArrowRight")
    wait_for(lambda: page.evaluate("htf.maps[0].getCenter()") != before)
    wait_for(lambda: not page.evaluate("htf.maps[0].isMoving()"))  # the map slides
    middle = page.evaluate("htf.maps[0].getCenter()")
    wait_for_count(page, part_count(releases["east"], middle["lng"], middle["lat"]))
    frame = page.evaluate("htf.maps[0].getContainer().getBoundingClientRect().toJSON()")
    at = page.evaluate("htf.maps[0].project([4.6, 52.36])")
    page.touchscreen.tap(frame["x"] + at["x"], frame["y"] + at["y"])
    wait_for_count(page, part_count(releases["east"], 4.6, 52.36))


def wait_for_count(page: Any, expected: float) -> None:
    """Until it is the one on the tooltip, which follows the map and the mouse in its own time."""
    near = pytest.approx(expected, abs=1.5)
    wait_for(lambda: number(page.inner_text(".tooltip .big")) == near)


def part_count(release: Release, longitude: float, latitude: float) -> float:
    """By looking at all leaves."""
    x, y = release.domain.axes[:2]
    cell = np.array([(longitude - x.low) / x.cell_width, (latitude - y.low) / y.cell_width])
    (found,) = np.flatnonzero(np.all((release.low <= cell) & (cell < release.high), axis=1))
    return float(release.estimates[found])


def test_a_map_in_metres_lies_where_it_should(
    folder: Path, tmp_path: Path, releases: dict[str, Release], window: Any
) -> None:
    import pyproj

    page = window().open(draw(folder, tmp_path, "metres"))
    to_degrees = pyproj.Transformer.from_crs("EPSG:27700", "OGC:CRS84", always_xy=True)
    for easting, northing in ((532_500.0, 182_500.0), (540_500.0, 175_500.0)):
        point_at(page, *to_degrees.transform(easting, northing))
        wait_for_count(page, part_count(releases["metres"], easting, northing))


def test_differences_with_their_interval(
    folder: Path, tmp_path: Path, releases: dict[str, Release], window: Any
) -> None:
    page = window().open(draw(folder, tmp_path, "east", "west", more=("--difference",)))
    east, west = releases["east"], releases["west"]
    place = (4.62, 52.37)
    point_at(page, *place)
    lines = page.locator(".tooltip > div").all_inner_texts()
    zoom = page.evaluate("htf.maps[0].getZoom()")
    width = 1 / 360  # of the map, in Web Mercator
    layer = Grid(east, "east", second=Grid(west, "west"))
    sizes = layer.window.shapes_to_compare()
    fine = [size for size in sizes if 512 * 2**zoom * width / size[0] >= 14]
    grid = layer.window.grid(max(fine, default=sizes[0]))
    found = layer.counts(grid)
    x, y = grid.axes
    at = math.floor((place[0] - x.low) / x.cell_width) * y.cells + math.floor(
        (place[1] - y.low) / y.cell_width
    )
    step = error_of_change(found)[at] / 32 + 0.5
    assert number(lines[0]) == pytest.approx(found.change[at], abs=2 * step)
    low, high = (number(text) for text in lines[1].removeprefix("95 %: ").split(" to "))
    assert low == pytest.approx(found.low[at], abs=step)
    assert high == pytest.approx(found.high[at], abs=step)
    first, second = (number(line.rpartition(": ")[2]) for line in lines[2:4])
    assert number(lines[0]) == first - second  # as a reader would subtract them
    assert lines[-1] == "more than noise"
    legend = page.inner_text("#legend")
    page.evaluate("htf.maps[0].jumpTo({zoom: 12})")  # to smaller squares, with a scale of their own
    wait_for(lambda: page.inner_text("#legend") != legend)


def test_people_are_called_people(
    folder: Path, tmp_path: Path, releases: dict[str, Release], window: Any
) -> None:
    page = window().open(draw(folder, tmp_path, "weeks"))
    box = busiest(releases["weeks"])
    point_at(page, (box[0] + box[2]) / 2, (box[1] + box[3]) / 2)
    lines = page.locator(".tooltip > div").all_inner_texts()
    answer = releases["weeks"].count(box).to_dicts()[0]
    assert lines[0].endswith(" split person-weeks")
    assert number(lines[0]) == pytest.approx(answer["count"], abs=answer["std_error"] / 32 + 0.06)
    assert "split person-weeks per km²" in page.inner_text("#legend")
    assert "counts of split person-weeks" in page.inner_text("header")


def test_two_maps_move_together(folder: Path, tmp_path: Path, window: Any) -> None:
    page = window().open(draw(folder, tmp_path, "east", "west"))
    page.evaluate("htf.maps[0].jumpTo({center: [4.3, 52.2], zoom: 10})")
    centre = page.evaluate("htf.maps[1].getCenter()")
    assert (centre["lng"], centre["lat"]) == (pytest.approx(4.3), pytest.approx(52.2))
    assert page.evaluate("htf.maps[1].getZoom()") == pytest.approx(10)
    assert page.locator(".panel h2").all_inner_texts() == ["east", "west"]


class StyleHandler(BaseHTTPRequestHandler):
    """A base map of one colour, for any page."""

    def do_GET(self) -> None:
        layers = [{"id": "sea", "type": "background", "paint": {"background-color": "#0000ff"}}]
        body = json.dumps({"version": 8, "name": "blue", "sources": {}, "layers": layers}).encode()
        is_there = self.path == "/style.json"
        self.send_response(200 if is_there else 404)
        self.send_header("Access-Control-Allow-Origin", "*")
        self.end_headers()
        self.wfile.write(body if is_there else b"")

    def log_message(self, *_: Any) -> None:
        """Nothing: it would be among the output of tests."""


@pytest.fixture
def styles() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), StyleHandler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def pixels(page: Any) -> Any:
    """Of the map, as they are on the screen: row, column, colour."""
    from PIL import Image

    canvas = Image.open(io.BytesIO(page.locator("canvas.maplibregl-canvas").screenshot()))
    return np.asarray(canvas.convert("RGB"), dtype=float)


def place_of(page: Any, box: list[float]) -> tuple[int, int]:
    """Where the middle of a box is, in pixels of the map."""
    middle = [(box[0] + box[2]) / 2, (box[1] + box[3]) / 2]
    place = page.evaluate(f"htf.maps[0].project({middle})")
    return int(place["x"]), int(place["y"])


def test_a_base_map_lies_below(
    folder: Path, tmp_path: Path, releases: dict[str, Release], styles: str, window: Any
) -> None:
    page = window().open(draw(folder, tmp_path, "east", more=("--style", f"{styles}/style.json")))
    image = pixels(page)
    assert image[3, 3].tolist() == [0, 0, 255]  # beyond the release
    x, y = place_of(page, busiest(releases["east"]))
    assert np.abs(image[y, x] - [0, 0, 255]).max() > 50
    assert page.is_hidden("#without")


def test_without_its_base_map_it_is_drawn_all_the_same(
    folder: Path, tmp_path: Path, releases: dict[str, Release], styles: str, window: Any
) -> None:
    one = window()
    one.expected += ["404 (Not Found)", "AJAXError"]
    page = one.open(draw(folder, tmp_path, "east", more=("--style", f"{styles}/gone.json")))
    assert page.is_visible("#without")
    x, y = place_of(page, busiest(releases["east"]))
    assert (
        np.abs(pixels(page)[y, x] - [0x0B, 0x09, 0x24]).max() <= 12
    )  # the last colour of the scale


def test_distinct_people_are_shown_box_by_box(tmp_path: Path, window: Any) -> None:
    domain = Domain.from_bounds(-0.1, 51.4, 0.1, 51.6, 30)
    by_box = PeopleByBox((4, 4), [[40 * (box % 5) for box in range(16)]])
    table = measure_distinct(by_box, 1, max_boxes=1, noise="seeded:1")
    shared = Protection("person", count="people", shares=256)
    people = FrequencyMatrix(domain, np.zeros((2, 1), dtype=np.int32), np.array([25_600]), shared)
    release = publish(people, 2, "ug", bought=(table,), noise="seeded:2")
    release.save(tmp_path / "reach.parquet")
    page = window().open(draw(tmp_path, tmp_path, "reach", more=("--distinct",)))
    found = release.count_distinct()
    for box in (int(np.argmax(found.different_people)), int(np.argmin(found.different_people))):
        edges = found.west[box], found.south[box], found.east[box], found.north[box]
        point_at(page, (edges[0] + edges[2]) / 2, (edges[1] + edges[3]) / 2)
        big, interval, *rest = page.locator(".tooltip > div").all_inner_texts()
        step = found.std_error[box] / 32 + 0.5
        assert big.endswith(" different people")
        assert number(big) == pytest.approx(found.different_people[box], abs=step)
        low, high = interval.removeprefix("95 %: ").split(" to ")
        assert number(low) == pytest.approx(found.low[box], abs=step)
        assert number(high) == pytest.approx(found.high[box], abs=step)
        assert rest == ([] if found.low[box] > 0 else ["no more than noise"])
    assert "different people per box" in page.inner_text("#legend")
    assert "different people in 4 x 4 boxes" in page.inner_text("header")
    assert "Outline the boxes" in page.inner_text("header")
    assert "Boxes do not add up" in page.inner_text("footer")


def test_the_base_map_needs_no_network(folder: Path, tmp_path: Path, window: Any) -> None:
    one = window()
    one.context.set_offline(True)
    page = one.open(draw(folder, tmp_path, "east"))
    names = page.locator("canvas.names").get_attribute("data-names")
    assert "Amsterdam" in names.split("; ")
    order = page.evaluate("htf.maps[0].getLayersOrder()")
    places = [order.index(f"basemap-near-{kind}") for kind in ("water", "coasts")]
    assert places[0] < order.index("rectangles") < places[1]
    image = pixels(page)
    sea = np.array([0xBD, 0xD0, 0xE3])
    x, y = place_of(page, [3.9, 52.3, 3.9, 52.3])  # west of the frame
    assert np.abs(image[y, x] - sea).max() <= 3
    page.click("#theme")
    x, y = place_of(page, [3.9, 52.3, 3.9, 52.3])
    assert np.abs(pixels(page)[y, x] - [0x0B, 0x27, 0x40]).max() <= 3
    assert "Natural Earth" in page.inner_text(".maplibregl-ctrl-attrib")


def test_a_map_without_a_base_map(folder: Path, tmp_path: Path, window: Any) -> None:
    page = window().open(draw(folder, tmp_path, "east", more=("--basemap", "none")))
    assert page.locator("canvas.names").count() == 0
    assert "Natural Earth" not in page.inner_text("body")
    assert pixels(page)[3, 3].tolist() == [0xDF, 0xE4, 0xEA]


def test_streets_from_an_archive_need_no_network(folder: Path, tmp_path: Path, window: Any) -> None:
    require_module("pmtiles", "geo")
    bounds = 4.0, 52.0, 5.0, 52.6
    layers = {**streets(bounds, "protomaps"), **streets(bounds, "openmaptiles")}
    archive = write_archive(tmp_path / "town.pmtiles", bounds, layers)
    one = window()
    one.context.set_offline(True)
    page = one.open(draw(folder, tmp_path, "east", more=("--basemap", str(archive))))
    names = page.locator("canvas.names")
    wait_for(lambda: "Streetham" in (names.get_attribute("data-names") or ""))
    order = page.evaluate("htf.maps[0].getLayersOrder()")
    areas = ("water-fill", "landuse-fill", "park-fill")  # of both layouts
    lines = ("roads-line", "transportation-line", "buildings-line", "boundary-line")
    below = [order.index(f"streets-{name}") for name in areas]
    above = [order.index(f"streets-{name}") for name in (*lines, "tramlines-line")]
    assert order.index("basemap-near-water") < min(below)
    assert max(below) < order.index("rectangles") < min(above)
    assert drawn_at(page, place_of(page, [4.2, 52.315, 4.2, 52.321])) == [
        "streets-roads-line",
        "streets-roads-line-edge",
        "streets-tramlines-line",  # in no layout
        "streets-transportation-line",
        "streets-transportation-line-edge",
    ]
    lake = place_of(page, [4.43, 52.136, 4.43, 52.136])  # where the map is blank
    assert drawn_at(page, lake) == ["streets-water-fill"]
    sea = np.array([0xBD, 0xD0, 0xE3])
    land, veil = np.array([0xDF, 0xE4, 0xEA]), np.array([0xF3, 0xF6, 0xFA])
    image = pixels(page)
    assert np.abs(image[lake[1], lake[0]] - (sea + veil) / 2).max() <= 4
    x, y = place_of(page, [4.075, 52.075, 4.075, 52.075])  # in the sea of the base map
    assert np.abs(image[y, x] - (land + veil) / 2).max() <= 4
    assert "Natural Earth, © Mappers" in page.inner_text(".maplibregl-ctrl-attrib")
    assert all(url.startswith(("file:", "data:", "blob:")) for url in one.requests), one.requests
    page.click("#theme")
    x, y = lake
    dark = np.mean([(0x0B, 0x27, 0x40), (0x26, 0x2F, 0x3B)], axis=0)  # water below the veil
    wait_for(lambda: np.abs(pixels(page)[y, x] - dark).max() <= 4)


def drawn_at(page: Any, place: tuple[int, int]) -> list[str]:
    """The layers of tiles at a place, in pixels of the map."""
    found = page.evaluate(
        f"htf.maps[0].queryRenderedFeatures({list(place)}).map((one) => one.layer.id)"
    )
    return sorted({name for name in found if name.startswith("streets-") and "cover" not in name})
