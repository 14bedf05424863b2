"""Distinct people: an audit of what is lost, and how often intervals hold the true numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from htf import Domain, PeopleByBox, measure_distinct, read_people_by_box, synthetic_visits
from htf.curator.noise import FastNoise, NoiseSource, OpenDPNoise, SeededNoise
from htf.estimation.distinct import estimate_distinct

ALARM = 1e-8
RUNS = 400
SIDE = 32  # 1,024 boxes at once: each pair of them is an experiment of its own
SOURCES = {"seeded": SeededNoise(3), "fast": FastNoise(), "opendp": OpenDPNoise()}


def proved_epsilon(likely: int, rare: int, runs: int) -> float:
    least = stats.beta.ppf(ALARM / 2, likely, runs - likely + 1)
    most = stats.beta.isf(ALARM / 2, rare + 1, runs - rare)
    return math.log(least / most)


def frequency(source: NoiseSource, most: int, with_person: bool, paid: float) -> int:
    """How often all boxes of a person are counted as not empty. Each group of `most` boxes has a person of its own, or
    nobody: groups share no noise, so one measurement is many experiments about one person."""
    boxes = SIDE * SIDE
    people, groups = np.zeros((most, boxes), dtype=np.int64), boxes // most
    for rank in range(most):
        people[rank, rank : groups * most : most] = with_person
    # Somebody's second box is another than the first: ranks are columns of a group.
    table, found = PeopleByBox(SIDE, people), 0
    for _ in range(RUNS * most // 16):
        made = measure_distinct(table, paid, max_boxes=most, noise=source)
        counts = np.array(made.counts[: groups * most]).reshape(groups, most)
        found += int(np.all(counts >= 1, axis=1).sum())
    return found


@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.parametrize("source", ["seeded", "fast"])
def test_no_table_loses_more_than_it_claims(source: str, most: int) -> None:
    """Nor much less, of the four fifths that are for the counts: the audit is not blind."""
    runs = RUNS * most // 16 * (SIDE * SIDE // most)
    likely, rare = (frequency(SOURCES[source], most, side, 1.25) for side in (True, False))
    assert 0.6 < proved_epsilon(likely, rare, runs) <= 1
    likely, rare = (frequency(SOURCES[source], most, side, 1.25 * 1.5) for side in (True, False))
    assert proved_epsilon(likely, rare, runs) > 1, "noise of too small a scale is caught"


@pytest.mark.parametrize("grid", [8, 16])
@pytest.mark.parametrize("epsilon", [0.1, 0.2, 0.4])
def test_intervals_hold_the_true_numbers(grid: int, epsilon: float) -> None:
    """Of all boxes, and of the fullest, with M found with noise and with an M that is too small."""
    made = synthetic_visits()
    domain = Domain.from_bounds(-30.176, 39.865, -29.824, 40.135, cells=1024)
    source = {"lon": made.x, "lat": made.y, "who": made.person}
    people = read_people_by_box(source, domain, grid, user="who")
    true = people.exact_people.sum(axis=0)
    fullest = np.argsort(-true)[:20]
    for most in (None, 4):
        held = []
        for seed in range(20):
            found = measure_distinct(people, epsilon, max_boxes=most, noise=f"seeded:{seed}")
            table = estimate_distinct(found)
            held.append((table.low <= true) & (true <= table.high))
        assert np.mean(held) > 0.93
        assert np.mean(np.array(held)[:, fullest]) > 0.93
