"""What differs between two releases beyond their noise."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from htf import Domain, FrequencyMatrix, InputError, Layer, Release, publish
from htf.frame.crs import CRS84
from htf.frame.domain import Axis
from htf.maps.browser.page import page_of
from htf.maps.kinds import Grid
from htf.maps.window import Window
from htf.privacy.protection import Protection
from htf.query.answer import Answer
from htf.query.change import error_of_change
from support import city_matrix

XY = ("x", "y")


def release(bounds: tuple[float, float, float, float] = (4, 52, 5, 53), seed: int = 1, cells: int = 32, crs: str | None = CRS84, mechanism: str = "htf") -> Release:  # fmt: skip
    domain = Domain.from_bounds(*bounds, cells=cells, crs=crs)
    counts = np.random.default_rng(3).poisson(20, (cells, cells))
    matrix = FrequencyMatrix.from_dense(domain, counts)
    return publish(matrix, "1", mechanism, noise=f"seeded:{seed}")


def test_the_difference_is_that_of_the_counts_and_its_interval_that_of_raw_answers() -> None:
    first, second = release(seed=1), release(seed=2)
    found = subtract(first, second, (8, 4))
    rows = window(first).rows(window(first).grid((8, 4)))
    changes = first.count(rows).minus(second.count(rows))
    assert found.low == pytest.approx(changes.low)
    assert found.high == pytest.approx(changes.high)
    assert found.beyond_noise.tolist() == changes.beyond_noise.tolist()
    edges = np.linspace(4, 5, 9), np.linspace(52, 53, 5)
    at = 0
    for column in range(8):
        for row in range(4):
            box = [edges[0][column], edges[1][row], edges[0][column + 1], edges[1][row + 1]]
            one, other = first.count(box).to_dicts()[0], second.count(box).to_dicts()[0]
            raw = one["raw"] - other["raw"]
            error = np.sqrt(one["std_error"] ** 2 + other["std_error"] ** 2)
            assert found.change[at] == pytest.approx(one["count"] - other["count"])
            assert error_of_change(found)[at] == pytest.approx(error)
            assert found.low[at] <= raw <= found.high[at]
            assert found.low[at] <= found.change[at] <= found.high[at]
            at += 1


def subtract(first: Release, second: Release, squares: tuple[int, int]) -> Answer:
    layer = Grid(first, "first", second=Grid(second, "second"))
    return layer.counts(layer.window.grid(squares))


def window(made: Release, where: Any = None) -> Window:
    return Window.of(made.domain, XY, where)


def shared(first: Release, second: Release) -> Window:
    return window(first).shared(window(second))


@pytest.mark.parametrize("mechanism", ["htf", "quadtree"])
def test_the_same_data_seldom_differ(mechanism: str) -> None:
    """Twenty pairs of releases of one lumpy map, 16 squares each, which the mechanisms cut along. One pair in twenty may
    have a mark; more than six of twenty would have one by chance less than once in 10,000 times (the seeds are fixed)."""
    matrix = city_matrix(32, 5000)
    marked = 0
    for pair in range(20):
        made = [publish(matrix, "0.5", mechanism, noise=f"seeded:{2 * pair + k}") for k in (0, 1)]
        marked += int(subtract(made[0], made[1], (4, 4)).beyond_noise.any())
    assert marked <= 6


def test_only_what_both_cover_is_compared() -> None:
    first, second = release((4, 52, 5, 53)), release((4.5, 52.5, 5.5, 53.5))
    assert shared(first, second).ranges.tolist() == [[4.5, 5], [52.5, 53]]
    assert shared(first, second).grid((2, 2)).axes[0] == Axis("x", 4.5, 5, 2)
    with pytest.raises(InputError, match=r"do not overlap.*4, 52, 5, 53 and 8, 52, 9, 53"):
        shared(first, release((8, 52, 9, 53)))
    with pytest.raises(InputError, match="has no reference system"):
        shared(first, release(crs=None))
    with pytest.raises(InputError, match="different reference systems, OGC:CRS84 and EPSG:4258"):
        shared(first, release(crs="EPSG:4258"))
    by_code = release((4.5, 52.5, 5.5, 53.5), crs="EPSG:4326")  # longitude first here too
    assert shared(first, by_code).ranges.tolist() == [[4.5, 5], [52.5, 53]]


def test_grids_halve_down_to_a_few_squares() -> None:
    assert window(release(cells=64)).shapes_to_compare() == [(16, 16), (32, 32), (64, 64)]
    assert window(release(cells=8)).shapes_to_compare() == [(8, 8)]


def test_rows_of_a_grid_name_every_axis() -> None:
    domain = Domain((Axis("x", 0, 4, 4), Axis("y", 0, 4, 4), Axis("hour", 0, 24, 24)))
    matrix = FrequencyMatrix.from_dense(domain, np.ones((4, 4, 24), dtype=np.int64))
    made = publish(matrix, "1", noise="seeded:1")
    asked = window(made, {"hour": (7, 10)})
    rows = asked.rows(asked.grid((2, 1)))
    assert rows.tolist() == [[0, 0, 7, 2, 4, 10], [2, 0, 7, 4, 4, 10]]
    early, late = (Layer.of(made, where={"hour": hours}) for hours in ((0, 6), (6, 24)))
    (change,) = Grid(made, "late", where=late.where, second=early).counts(asked.grid((1, 1))).change
    assert change == pytest.approx(made.count(where=late.where).count[0] - made.count(where=early.where).count[0])  # fmt: skip


def test_people_minus_records_mean_nothing() -> None:
    pytest.importorskip("matplotlib")
    from htf.maps.picture import figure_of

    one = release(seed=1)
    people = replace(one, protection=Protection("person", count="people", shares=256))
    bounded = replace(one, protection=Protection("person", 3))
    may, june = Layer.of(people, "may"), Layer.of(one, "june")
    with pytest.raises(
        InputError, match="counts split people and the second records, so their diff"
    ):
        may.minus(june)
    note = (
        "not count the same, so do not compare their numbers. may counts split people; june counts"
    )
    figure = figure_of([may, june])
    assert note in figure.get_supxlabel().replace("\n", " ")
    assert any(ax.get_ylabel().startswith("split people or records per") for ax in figure.axes)
    assert note in page_of([may, june])
    figure = figure_of([Layer.of(bounded, "may").minus(june)])
    assert "may counts records, at most 3 per person" in figure.get_supxlabel().replace("\n", " ")
    assert any(ax.get_ylabel().startswith("difference in records") for ax in figure.axes)


def test_pictures_of_two_have_both_names_and_the_claim() -> None:
    pytest.importorskip("matplotlib")
    from htf.maps.picture import figure_of

    maps = [Layer.of(release(seed=1), "before"), Layer.of(release(seed=2), "after")]
    difference = [maps[0].minus(maps[1])]
    for figure in (figure_of(maps, boxes=True), figure_of(difference)):
        texts = [text.get_text() for ax in figure.axes for text in [ax.title, *ax.texts]]
        words = " ".join([*texts, figure.get_supxlabel()])
        assert "before" in words
        assert "after" in words
        assert "NOT PRIVATE" in words
        assert "ε = 1" in words
    assert figure_of(difference).axes[0].get_title() == "before minus after"
