"""Given hierarchies: estimates are unbiased and as good as least squares, and intervals hold what they promise.

Seeds are fixed, so these tests give the same figures every time. Bounds are wide enough that other seeds would fail less
than once in 100,000 times (4.5 standard deviations), for each of them.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from htf import Axis, Domain, FrequencyMatrix, Names, Release, publish
from htf.curator.noise import SeededNoise
from htf.estimation.least_squares import least_squares
from htf.frame.domain import FloatArray, IntArray
from htf.mechanisms.zones import Zones

GROUPS, ZONES, RUNS = 10, 12, 80
DEVIATIONS = 4.5
NAMES = Names.of(
    {
        "zone": [f"z{i}" for i in range(GROUPS * ZONES)],
        "group": [f"g{i // ZONES}" for i in range(GROUPS * ZONES)],
        "map": ["all"] * (GROUPS * ZONES),
    }
)
LEVELS = {"zone": 0, "group": 1, "map": 2}


@cache
def truth() -> IntArray:
    return np.random.default_rng(8).integers(2_000, 40_000, GROUPS * ZONES)


@cache
def releases() -> list[Release]:
    matrix = FrequencyMatrix.from_dense(Domain((Axis.named("zone", NAMES),)), truth())
    mechanism = Zones(shares="0.7,0.2,0.1")
    return [publish(matrix, "0.2", mechanism, noise=SeededNoise(seed)) for seed in range(RUNS)]


@cache
def answered(level: str) -> tuple[FloatArray, FloatArray]:
    """The errors of all regions of a level, a row for each run, and whether intervals hold the truth."""
    edges = NAMES.edges(LEVELS[level])
    exact = np.add.reduceat(truth(), edges[:-1])
    errors, inside = [], []
    for release in releases():
        answers = release.count(np.column_stack([edges[:-1], edges[1:]]).astype(np.float64))
        errors.append(np.asarray(answers.count) - exact)
        inside.append((answers.low <= exact) & (exact <= answers.high))
    return np.array(errors), np.array(inside, dtype=np.float64)


def expected_variance(level: str) -> float:
    """That of least squares, for a region of the level."""
    release = releases()[0]
    _, variances = least_squares(release.tree, release.measurements.tree_counts())
    cells = np.diff(NAMES.edges(LEVELS[level]))[0]
    return float(variances[release.tree.cells() == cells].mean())


@pytest.mark.parametrize("level", LEVELS)
def test_estimates_are_unbiased_far_from_zero(level: str) -> None:
    errors, _ = answered(level)
    bound = DEVIATIONS * np.sqrt(expected_variance(level) / RUNS)
    assert abs(errors.mean()) < bound / np.sqrt(GROUPS if level != "map" else 1)
    assert np.abs(errors.mean(axis=0)).max() < bound


@pytest.mark.parametrize("level", LEVELS)
def test_errors_are_at_most_those_of_least_squares(level: str) -> None:
    """The kurtosis of Laplace noise is 6, so a squared error has a variance of at most 5 times its squared mean."""
    errors, _ = answered(level)
    independent = RUNS * (1 if level == "map" else GROUPS)
    allowed = 1 + DEVIATIONS * np.sqrt(5 / independent)
    assert np.mean(errors**2) < allowed * expected_variance(level)
    assert np.mean(errors**2) > expected_variance(level) / 2


@pytest.mark.parametrize("level", LEVELS)
def test_intervals_hold_the_truth_at_every_level(level: str) -> None:
    _, inside = answered(level)
    independent = RUNS * (1 if level == "map" else GROUPS)
    slack = DEVIATIONS * np.sqrt(0.95 * 0.05 / independent)
    assert abs(inside.mean() - 0.95) < slack


def test_published_levels_add_up() -> None:
    for release in releases()[:5]:
        zones, groups, whole = (
            np.asarray(release.count(boxes).count)
            for boxes in (
                np.column_stack([edges[:-1], edges[1:]]).astype(np.float64)
                for edges in (NAMES.edges(number) for number in range(3))
            )
        )
        assert np.array_equal(zones.reshape(GROUPS, ZONES).sum(axis=1), groups)
        assert groups.sum() == whole[0]
        assert np.array_equal(zones, np.rint(zones))
