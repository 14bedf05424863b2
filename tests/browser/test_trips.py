"""Trips between places on the page of `htf serve`: a box on one end, and a map of the other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from htf import Axis, Domain, FrequencyMatrix, Release, publish
from htf.frame.crs import CRS84
from htf.query.answer_texts import show_count
from serving import running

from .test_map_file import number, point_at

BOX = [4.0, 52.0, 4.5, 52.3]  # the south-west, whose trips end in the north-east
INSIDE = {"from": (4.9, 52.55), "to": (4.1, 52.05)}


@pytest.fixture(scope="module")
def trips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = Axis("x", 4.0, 5.0, 8), Axis("y", 52.0, 52.6, 8)
    ends = Axis("dest_x", 4.0, 5.0, 8), Axis("dest_y", 52.0, 52.6, 8)
    counts = np.ones((8, 8, 8, 8), dtype=int)
    counts[:4, :4, 4:, 4:] += 40
    counts[4:, 4:, :4, 4:] += 20
    matrix = FrequencyMatrix.from_dense(Domain((*place, *ends), CRS84), counts)
    path = tmp_path_factory.mktemp("trips") / "trips.parquet"
    publish(matrix, 1, noise="seeded:3").save(path)
    return path


@pytest.fixture(scope="module")
def server(trips: Path, chromium: Any) -> Iterator[str]:  # noqa: ARG001 - without it no server is needed
    with running([trips], allow_not_private=True) as (address, _):
        yield address


def settled(page: Any) -> None:
    page.wait_for_selector("html[data-ready=yes]")
    page.wait_for_selector("#answer[aria-busy=false] .row-count")


def square_at(page: Any, end: tuple[float, float]) -> tuple[float, list[float]]:
    """The count below a place, and the square that it is of."""
    page.mouse.move(5, 5)
    point_at(page, *end)
    page.wait_for_selector(".tooltip >> text=/95 %/")
    edges = page.evaluate(
        """([x, y]) => {
            const found = htf.panels[0].ends.at({ lng: x, lat: y });
            const degrees = ([a, b]) => [
                (a - 0.5) * 360, (Math.asin(Math.tanh((0.5 - b) * 2 * Math.PI)) * 180) / Math.PI];
            const ring = found.ring.map(degrees);
            return [...ring[0], ...ring[2]];
        }""",
        list(end),
    )
    return number(page.inner_text(".tooltip .big")), edges


def test_a_box_shows_the_other_end(server: str, trips: Path, window: Any) -> None:
    release = Release.load(trips)
    page = window().open(f"{server}/#r=trips&b={','.join(map(str, BOX))}")
    settled(page)
    west, south, east, north = BOX
    assert number(page.inner_text("#answer .row-count")) == round(
        float(release.count(BOX).count[0])
    )
    assert "trips from your box end" in page.inner_text("#hint")
    shown, edges = square_at(page, INSIDE["from"])
    left, low, right, high = np.round(edges, 3)
    expected = release.count([west, south, left, low, east, north, right, high]).count[0]
    assert shown == pytest.approx(expected, abs=1)
    assert shown > 100
    page.click("[data-direction=to]")  # nothing ends there
    settled(page)
    where = {"dest_x": (west, east), "dest_y": (south, north)}
    ended = float(release.count(where=where).count[0])
    assert page.inner_text("#answer .row-count") == show_count(ended)
    assert "trips to your box start" in page.inner_text("#hint")
    assert not page.is_visible("#district-card")
    shown, edges = square_at(page, INSIDE["to"])
    left, low, right, high = np.round(edges, 3)
    expected = release.count([left, low, west, south, right, high, east, north]).count[0]
    assert shown == pytest.approx(expected, abs=1)
    page.click("#clear")  # where all trips end
    settled(page)
    shown, edges = square_at(page, INSIDE["from"])
    left, low, right, high = np.round(edges, 3)
    expected = release.count(where={"dest_x": (left, right), "dest_y": (low, high)}).count[0]
    assert shown == pytest.approx(expected, abs=1)
    page.click("[data-direction=from]")
    settled(page)
    assert page.evaluate("htf.state.direction") == "from"
    assert "Draw a box to see where its trips end" in page.inner_text("#hint")
