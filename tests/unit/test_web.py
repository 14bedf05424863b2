"""The HTML map as text, and what a notebook shows."""

from __future__ import annotations

import base64
import json
import re
import sys
import zlib
from dataclasses import replace
from pathlib import Path
from time import thread_time
from typing import Any

import numpy as np
import pytest

from htf import Domain, FrequencyMatrix, InputError, Release, publish
from htf.cli.main import run
from htf.frame.crs import CRS84
from htf.frame.domain import Axis
from htf.maps.browser.assets import own
from htf.maps.browser.mercator import Plane, corners_in_square
from htf.maps.browser.page import page_of
from htf.maps.browser.rectangles import rectangles
from htf.maps.browser.sheets import limits_of
from htf.maps.kinds import Grid
from htf.maps.layer import Layer
from htf.privacy.protection import PERSON, Protection
from support import people_matrix

pytest.importorskip("maplibre")


def release(crs: str | None = CRS84, cells: int = 16, hours: bool = False, noise: str = "seeded:1") -> Release:  # fmt: skip
    axes = [Axis("x", 4, 5, cells), Axis("y", 52, 53, cells)]
    domain = Domain((*axes, *([Axis("hour", 0, 24, 4)] if hours else [])), crs)
    counts = np.random.default_rng(1).poisson(9, domain.shape)
    return publish(FrequencyMatrix.from_dense(domain, counts), "1", noise=noise)


def data_of(text: str) -> Any:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    assert found is not None
    return json.loads(found[1])


def unpack(text: str, kind: str = "<f4") -> Any:
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), kind)


def test_the_file_has_all_boxes_with_their_answers() -> None:
    made = release()
    data = data_of(page_of([Layer.of(made, "city")]))
    ((sheet,),) = data["panels"][0]["steps"]
    x, y = made.domain.axes
    edges = (x, made.low[:, 0]), (y, made.low[:, 1]), (x, made.high[:, 0]), (y, made.high[:, 1])
    boxes = np.column_stack([axis.from_cells(cells) for axis, cells in edges])
    answers = made.count(boxes)
    assert (unpack(sheet["clear"], "u1") == 1).tolist() == (answers.low > 0).tolist()
    assert sheet["length"] == len(boxes)
    for name in ("count", "low", "high"):
        off = np.abs(unpack(sheet[name]) - getattr(answers, name))
        assert np.all(off <= answers.std_error / 32)
    west, south, east, _ = unpack(sheet["corners"]).astype(float).reshape(4, -1)
    left, top, size = data["frame"]
    assert (west * size + left - 0.5) * 360 == pytest.approx(boxes[:, 0], abs=1e-6)
    assert (east * size + left - 0.5) * 360 == pytest.approx(boxes[:, 2], abs=1e-6)
    latitude = np.degrees(2 * np.arctan(np.exp((0.5 - (south * size + top)) * 2 * np.pi)) - np.pi / 2)  # fmt: skip
    assert latitude == pytest.approx(boxes[:, 1], abs=1e-6)


def test_nothing_in_the_file_is_fetched() -> None:
    """But for links that someone has to click."""
    text = page_of([Layer.of(release(), "city")])
    assert "connect-src 'none'" in text
    assert not re.search(r'<(script|img|link|iframe)[^>]*\b(src|href)="', text)
    style = re.search(r"<style>(.*?)</style>", text, re.S)
    assert style is not None
    assert not re.search(r"url\((?!\"?'?data:)|@import", style[1])
    fetched = page_of([Layer.of(release(), "city")], style="https://tiles.example/{z}/{x}/{y}.png")
    assert "connect-src https: http:" in fetched
    assert "fetched from tiles.example" in fetched


def test_names_and_statements_cannot_break_out() -> None:
    text = page_of([Layer.of(release(), "</script><b>&'\"")])
    assert "</script><b>" not in text
    assert "&lt;/script&gt;&lt;b&gt;" in text
    assert "NOT PRIVATE" in text
    assert "Redistributions in binary form" in text
    assert "@license 3-Clause BSD" in text


def test_many_boxes_become_squares_and_the_caption_says_so() -> None:
    boxes, made, words = rectangles(Grid(release(), "city"), most=25)
    assert len(boxes) == 25
    assert "5 by 5" in words
    assert made.columns["count"].sum() == pytest.approx(release().count().count[0])
    assert made.area.sum() == pytest.approx(rectangles(Grid(release(), "city"))[1].area.sum())


def test_each_of_two_releases_has_its_own_claim() -> None:
    """One that protects records must not be said to protect people, because the other does."""
    people, records = release(noise="opendp"), release(hours=True, noise="opendp")
    people = replace(people, protection=Protection(PERSON, 3, None))
    pair = [Layer.of(people, "people"), Layer.of(records, "all")]
    for text in (page_of(pair), page_of([pair[0].minus(pair[1])])):
        assert "people with ε = 1 for each person, all with ε = 1 for each record." in text
        assert "all of hour" in text
    assert "people: The rectangles are the leaves" in page_of(pair)
    assert "all: The rectangles are the cells, 16 by 16" in page_of(pair)
    same = page_of([Layer.of(records, "a"), Layer.of(records, "b")])
    assert "Differentially private: ε = 1 for each record. What" in same


def test_a_map_of_people_says_people() -> None:
    made = publish(people_matrix(per="week"), "1", noise="opendp")
    text = page_of([Layer.of(made, "weeks")])
    assert "htf, ε = 1; counts of split person-weeks" in text
    assert "ε = 1 for each person in one week. What" in text
    assert data_of(text)["panels"][0]["quantity"] == "split person-weeks"
    shown = made._repr_html_()
    assert ">split person-weeks</th>" in shown
    assert "ε = 1 for each person in one week" in shown
    assert ">records</th>" not in shown


def test_a_difference_is_framed_by_what_both_cover() -> None:
    domain = Domain((Axis("x", 4.5, 8, 16), Axis("y", 52.25, 52.5, 16)), CRS84)
    other = publish(FrequencyMatrix.from_dense(domain, np.ones((16, 16), dtype=np.int64)), "1", noise="seeded:1")  # fmt: skip
    pair = [Layer.of(release(), "a"), Layer.of(other, "b")]
    data = data_of(page_of([pair[0].minus(pair[1])]))
    assert np.array(data["bounds"]) == pytest.approx(np.array([[4.5, 52.25], [5, 52.5]]))
    ring = np.array(data["panels"][0]["frames"][0])
    assert (ring[:, 0] - 0.5) * 360 == pytest.approx([4.5, 5, 5, 4.5])
    assert np.array(data_of(page_of(pair))["bounds"])[:, 0].tolist() == pytest.approx([4, 8])


def test_further_axes_are_summed_within_where() -> None:
    made = release(hours=True)
    layer = Layer.of(made, "city", where={"hour": (6, 12)})
    assert isinstance(layer, Grid)
    _, found, _ = rectangles(layer)
    assert found.columns["count"].sum() == pytest.approx(
        made.count(where={"hour": (6, 12)}).count[0]
    )
    text = page_of([layer])
    assert "hour 6 to 12" in text
    with pytest.raises(InputError, match="x, hour are not places"):
        page_of([Layer.of(made, "city", axes=("x", "hour"))])


def test_a_map_that_lies_nowhere_keeps_its_shape() -> None:
    bounds = 0.0, 0.0, 200.0, 100.0
    corners = corners_in_square(np.array([bounds]), None, Plane.of(bounds)).reshape(4, 2)
    width, height = corners.max(axis=0) - corners.min(axis=0)
    assert (width, height) == (pytest.approx(0.01), pytest.approx(0.005))
    assert data_of(page_of([Layer.of(release(crs=None), "grid")]))["unit"] == "cell"


def test_limits_of_colours_go_by_area() -> None:
    _, found, _ = rectangles(Grid(release(), "city"))
    least, most = limits_of([found])
    inside = found.is_clear & (found.density >= least * 0.999) & (found.density <= most * 1.001)
    share = found.area[inside].sum() / found.area[found.is_clear].sum()
    assert share > 0.97
    assert most >= 10 * least * 0.999


def test_colours_are_those_of_pictures() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    from htf.maps.paint import COLOURS, DARKEST, PALEST

    listed = re.search(r"PALE_TO_DARK = \[(.*?)\]", own("shared/colours.js"), re.S)
    assert listed is not None
    ours = re.findall(r"#\w{6}", listed[1])
    theirs = matplotlib.colormaps[COLOURS](np.linspace(PALEST, DARKEST, len(ours)))
    assert ours == [matplotlib.colors.to_hex(colour) for colour in theirs]


def test_a_notebook_shows_facts_and_a_picture_quickly() -> None:
    made = release()
    made._repr_html_()  # loads matplotlib
    took = []
    for _ in range(3):
        started = thread_time()  # what others do on this machine does not count
        shown = made._repr_html_()
        took.append(thread_time() - started)
    assert min(took) < 1  # it takes 0.02
    assert "data:image/png;base64," in shown
    assert "<details>" in shown
    assert "NOT PRIVATE" in shown
    assert "<script" not in shown


def test_a_notebook_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("matplotlib")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    shown = release()._repr_html_()
    assert "<img" not in shown
    assert "<table>" in shown
    assert "leaves" in shown


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["{a}", "--difference", "-o", "m.html"], "--difference needs two releases"),
        (["{a}", "{b}", "{a}", "-o", "m.html"], "shows one release or two, got 3"),
        (["{a}", "-o", "m.html", "--by", "x"], "panels need an axis that is not drawn"),
        (["{a}", "{b}", "-o", "m.html", "--by", "x"], "--by draws the steps of one release"),
        (["{a}", "-o", "m.png", "--style", "https://tiles.example"], "--style is for maps in a browser"),
        (["{a}", "-o", "m.html", "--style", "tiles"], "web address of a MapLibre style"),
        (["{a}", "-o", "m.gif"], "a map is a .html or .png or .svg or .pdf file"),
        (["{a}", "{nowhere}", "-o", "m.html"], "has no reference system"),
    ],
)  # fmt: skip
def test_mistakes(
    arguments: list[str],
    words: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    release().save("a.parquet")
    release(noise="seeded:2").save("b.parquet")
    release(crs=None).save("n.parquet")
    names = {"a": "a.parquet", "b": "b.parquet", "nowhere": "n.parquet"}
    assert run(["map", *(argument.format(**names) for argument in arguments)]) == 2
    assert words in capfd.readouterr().err
    assert not list(tmp_path.glob("m.*"))
