"""Boxes and ranges of any axes, against sums over all cells of small maps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from htf import Domain, FrequencyMatrix, InputError, Release, publish
from htf.frame.domain import Axis, FloatArray
from htf.query.where import full_ranges, full_rows

HOURS = Domain((Axis("x", 0, 6, 6), Axis("y", 10, 20, 5), Axis("hour", 0, 24, 8)))
TRIPS = Domain(
    (Axis("x", 0, 6, 6), Axis("y", 10, 20, 5), Axis("dest_x", 0, 6, 3), Axis("dest_y", 10, 20, 4))
)


def release_of(domain: Domain, mechanism: str = "singular") -> Release:
    generator = np.random.default_rng(4)
    counts = generator.poisson(30, domain.shape)
    return publish(FrequencyMatrix.from_dense(domain, counts), "1", mechanism, noise="seeded:1")


def naive_count(release: Release, ranges: dict[str, tuple[float, float]]) -> float:
    """Each leaf by the share of it that lies in all ranges, axis by axis, in map coordinates."""
    total = 0.0
    parts = release.derived.parts
    for low, high, estimate in zip(parts.low, parts.high, parts.estimates, strict=True):
        share = 1.0
        for number, axis in enumerate(release.domain.axes):
            first, end = axis.from_cells(np.array([low[number], high[number]]))
            asked = ranges.get(axis.name, (axis.low, axis.high))
            share *= max(min(end, asked[1]) - max(first, asked[0]), 0) / (end - first)
        total += share * estimate
    return total


@pytest.mark.parametrize("mechanism", ["singular", "htf", "htf-paper"])
@pytest.mark.parametrize(
    ("domain", "box", "where"),
    [
        (HOURS, None, {"hour": (6.0, 9.0)}),
        (HOURS, None, {"hour": (7.0, 10.5)}),
        (HOURS, (1.0, 12.0, 4.5, 17.0), {"hour": (3.0, 6.0)}),
        (HOURS, (1.0, 12.0, 4.0, 16.0), None),
        (HOURS, None, {"x": (1.0, 2.5), "hour": (20.0, 99.0)}),
        (TRIPS, (1.0, 12.0, 4.5, 17.0), {"dest_x": (2.0, 5.0)}),
        (TRIPS, (1.0, 12.0, 4.5, 17.0), {"dest_y": (11.0, 19.0), "dest_x": (0.0, 1.0)}),
        (TRIPS, None, None),
    ],
)
def test_counts_by_box_and_range_equal_the_sum_of_shares(
    domain: Domain, box: Any, where: dict[str, tuple[float, float]] | None, mechanism: str
) -> None:
    release = release_of(domain, mechanism)
    ranges = dict(where or {})
    if box is not None:
        ranges |= {"x": (box[0], box[2]), "y": (box[1], box[3])}
    answers = release.count(box, where=where)
    assert len(answers) == 1
    assert answers.count[0] == pytest.approx(naive_count(release, ranges), rel=1e-9)
    asked = [ranges.get(axis.name, (axis.low, axis.high)) for axis in domain.axes]
    full = [low for low, _ in asked] + [high for _, high in asked]
    assert release.count(full).to_dicts() == answers.to_dicts()


def test_many_boxes_have_the_same_ranges() -> None:
    rows = full_rows(HOURS, [[0, 10, 1, 11], [2, 12, 3, 13]], {"hour": (7, 10)})
    assert rows.tolist() == [[0, 10, 7, 1, 11, 10], [2, 12, 7, 3, 13, 10]]
    whole = full_rows(HOURS, [[0, 10, 1, 11]])
    assert whole.tolist() == [[0, 10, 0, 1, 11, 24]]
    assert full_rows(HOURS).tolist() == [[0, 10, 0, 6, 20, 24]]
    assert full_rows(HOURS, []).shape == full_rows(HOURS, np.zeros((0, 4))).shape == (0, 6)


def test_the_parts_of_a_day_add_up() -> None:
    release = release_of(HOURS, "htf")
    box = [1.0, 12.0, 4.5, 17.0]
    parts = [
        release.count(box, where={"hour": ends}).count[0] for ends in ((0, 4), (4, 22), (22, 24))
    ]
    assert sum(parts) == pytest.approx(release.count(box).count[0], rel=1e-12)


def test_ranges_are_those_of_the_axes_or_asked() -> None:
    ranges: FloatArray = full_ranges(HOURS, {"hour": (7, 10)})
    assert ranges.tolist() == [[0, 6], [10, 20], [7, 10]]


def test_a_single_axis_has_boxes_of_two_numbers() -> None:
    line = Domain((Axis("hour", 0, 24, 24),))
    assert full_rows(line, [3, 5]).tolist() == full_rows(line, None, {"hour": (3, 5)}).tolist()


@pytest.mark.parametrize(
    ("boxes", "where", "message"),
    [
        (None, {"our": (1, 2)}, "no axis 'our': the map has x, y, hour"),
        (None, {"hour": (22, 4)}, r"query 22 to 24 and 0 to 4, and add the counts"),
        (None, {"hour": (24, 30)}, "hour from 24 to 30 lies outside of the map.* from 0 to 24"),
        (None, {"hour": (-5, 0)}, "outside"),
        (None, {"hour": (7, 7)}, "hour from 7 to 7 is empty"),
        (None, {"hour": (float("nan"), 7)}, "finite"),
        (None, {"hour": 7}, "two numbers, low and high, got 7"),
        (None, {"hour": (1, 2, 3)}, "two numbers"),
        ([0, 10, 1, 11], {"x": (0, 1)}, "name x, y themselves: leave x out of where"),
        ([0, 10, 0, 1, 11, 24], {"hour": (0, 1)}, "name x, y, hour themselves"),
        ([0, 10, 0, 1, 11], None, r"6 numbers, low x, .*, or 4, low x, low y, .* shape \(5,\)"),
        ([3, 10, 1, 11], {"hour": (7, 10)}, "row 0 .* x from 3.0 down to 1.0.*swapped"),
        ([0, 10, 23, 1, 11, 4], None, "row 0 .* hour from 23.0 down to 4.0"),
    ],
    ids=str,
)
def test_mistakes_are_named(boxes: Any, where: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        full_rows(HOURS, boxes, where)
