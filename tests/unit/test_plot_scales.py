"""The scale of colours of a difference shows something, and says where it ends."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest

from htf import Domain, FrequencyMatrix, Layer, Release, publish
from htf.maps.browser.page import page_of
from htf.maps.picture import figure_of
from htf.maps.scale import difference_limits, round_number


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1, 1),
        (1.3, 2),
        (2.0000000001, 2),
        (3, 5),
        (7, 10),
        (0.0042, 0.005),
        (0.3, 0.5),
        (8.4e6, 1e7),
        (1000, 1000),
    ],
)
def test_ends_are_one_two_or_five_times_a_power_of_ten(value: float, expected: float) -> None:
    assert round_number(value) == pytest.approx(expected)


def test_the_end_is_that_of_the_differences_beyond_noise() -> None:
    density = np.concatenate([np.linspace(-100, 100, 201), [90_000.0], np.full(500, 4000.0)])
    is_beyond = np.zeros(len(density), dtype=bool)
    is_beyond[:202] = True  # the one that is far away too, but not the many that are noise
    assert difference_limits(density, is_beyond) == (1, 100)
    assert difference_limits(density, np.zeros(len(density), dtype=bool)) == (50, 5000)
    assert difference_limits(np.zeros(4), np.zeros(4, dtype=bool)) == (0.01, 1)
    assert difference_limits(np.zeros(0), np.zeros(0, dtype=bool)) == (0.01, 1)


def differing() -> Layer:
    """Of two maps that differ a little in a half, and very much in one cell."""
    domain = Domain.from_bounds(4, 52, 4.4, 52.24, cells=16)
    before = np.full((16, 16), 500)
    after = before.copy()
    after[8:] += 300
    after[12, 3] += 400_000
    return Layer.of(released(domain, after), "after").minus(
        Layer.of(released(domain, before), "before")
    )


def released(domain: Domain, counts: Any) -> Release:
    matrix = FrequencyMatrix.from_dense(domain, counts)
    return publish(matrix, 1, "singular", noise="seeded:1")


def test_a_picture_says_what_lies_beyond_its_end() -> None:
    pytest.importorskip("matplotlib")
    figure = figure_of([differing()])
    said = figure.get_supxlabel().replace("\n", " ")
    found = re.search(
        r"The colours end at ±(.+?): 1 difference lies beyond, the largest at \+(.+?)\.", said
    )
    assert found is not None, said
    bar = figure.axes[1]
    figure.draw_without_rendering()
    ticks = [text.get_text() for text in bar.get_yticklabels()]
    assert ticks[-1] == f"+{found[1]}"
    assert ticks[2] == "0"


def test_each_size_of_squares_has_its_own_end() -> None:
    pytest.importorskip("maplibre")
    text = page_of([differing()])
    found = re.search(r'id="data">(.+?)</script>', text)
    assert found is not None
    data = json.loads(found[1])
    (sheets,) = data["panels"][0]["steps"]
    assert len(sheets) > 1 or sheets[0]["length"] == 256
    for sheet in sheets:
        least, most = sheet["limits"]
        assert most == pytest.approx(round_number(most))
        assert most == pytest.approx(100 * least)
        assert most < 10_000  # the one cell, at 100,000 per km² and more, does not set it
