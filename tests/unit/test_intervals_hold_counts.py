"""One interval everywhere: never below zero, around the count, and around the truth as often as before."""

from __future__ import annotations

import numpy as np
import pytest

from htf import Domain, FrequencyMatrix, Protection, Release, publish
from htf.mechanisms import registry
from htf.query.answer import Answer
from support import plain_intervals

BOXES = np.random.default_rng(8).uniform(0, 0.9, (400, 2))
BOXES = np.hstack([BOXES, BOXES + np.random.default_rng(9).uniform(0.01, 0.1, (400, 2))])


def released(mechanism: str, protection: Protection | None = None) -> Release:
    domain = Domain.from_bounds(0, 0, 1, 1, cells=32)
    counts = np.random.default_rng(1).gamma(0.1, 40, (32, 32)).astype(np.int64)
    matrix = FrequencyMatrix.from_dense(domain, counts)
    if protection is not None:
        found = matrix.exact_coordinates, matrix.exact_counts * protection.shares
        matrix = FrequencyMatrix(domain, *found, protection)
    return publish(matrix, "0.3", mechanism, noise="seeded:2")


def holds(answers: Answer) -> bool:
    enclosed = np.maximum(answers.count, 0.0)
    return bool(np.all((answers.low >= 0) & (answers.low <= enclosed) & (enclosed <= answers.high)))


@pytest.mark.parametrize("mechanism", sorted(registry()))
def test_intervals_are_not_below_zero_and_contain_the_count(mechanism: str) -> None:
    release = released(mechanism)
    assert holds(release.count(BOXES))
    shapely = pytest.importorskip("shapely")
    assert holds(release.count_polygons([shapely.box(*box) for box in BOXES]))


def test_so_are_those_of_people() -> None:
    release = released("htf", Protection("person", count="people", shares=256))
    assert holds(release.count(BOXES))


def test_nothing_but_what_cannot_be_was_cut_off() -> None:
    """A true number that was in the interval stays in it. On a map with one full corner, some land is found empty whose raw
    counts are far from zero."""
    corner = np.zeros((32, 32), dtype=np.int64)
    corner[:4, :4] = 200
    matrix = FrequencyMatrix.from_dense(Domain.from_bounds(0, 0, 1, 1, cells=32), corner)
    release = publish(matrix, "0.3", noise="seeded:13")
    boxes = np.concatenate([BOXES, BOXES / 2, BOXES / 3])
    now = release.count(boxes)
    with plain_intervals():
        before = release.count(boxes)
    for true in (0.0, 1.0, 10.0, 100.0):
        was = (before.low <= true) & (true <= before.high)
        assert np.all((now.low <= true) & (true <= now.high) | ~was)
    outside = (before.count < before.low) | (before.count > before.high)
    assert outside.any()
    assert np.any(before.low < 0)
    assert np.array_equal(now.raw, before.raw)
