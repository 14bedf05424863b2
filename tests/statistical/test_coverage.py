"""Coverage of the 95 % intervals on whole releases: boxes along leaf edges, against the exact counts.

A region of the tree that holds 1, about 10 or about 1,000 leaves is a box along leaf edges. Seeds are fixed.
Each size is seen thousands of times, or, for 1,000 leaves, some hundreds: then the standard error of the
coverage is about 1 %, and the limits of 93 and 97 % are two of them away.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from htf import FrequencyMatrix, Release, publish
from htf.curator.cells import ExactCells
from htf.domain import Domain, IntArray
from htf.evaluation.synthetic import synthetic_city
from htf.ingest.points import read_points
from htf.mechanisms.htf_paper import HtfPaper

RUNS = 120


@pytest.fixture(scope="module")
def matrix() -> FrequencyMatrix:
    city = synthetic_city(1_000_000)
    return read_points((city.x, city.y), Domain.from_bounds(*city.domain_bounds, cells=1024))


def leaves_below(release: Release) -> IntArray:
    """The number of leaves in each region."""
    numbers = np.zeros(len(release.tree), dtype=np.int64)
    numbers[release.leaves] = 1
    for layer in reversed(release.tree.layers(1)):
        np.add.at(numbers, release.tree.parent[layer], numbers[layer])
    return numbers


def boxes_of(release: Release, regions: IntArray) -> Any:
    """Regions as W,S,E,N."""
    x, y = release.domain.axes
    low, high = release.tree.low[regions], release.tree.high[regions]
    edges = [x.from_cells(low[:, 0]), y.from_cells(low[:, 1])]
    return np.column_stack([*edges, x.from_cells(high[:, 0]), y.from_cells(high[:, 1])])


def covered(release: Release, matrix: FrequencyMatrix, regions: IntArray, widen: float) -> Any:
    answers = release.count(boxes_of(release, regions))
    assert np.all(answers.partial == 0), "these boxes follow leaf edges"
    truth = ExactCells(matrix, release.tree).count(regions)
    return np.abs(answers.count - truth) <= widen * (answers.high - answers.count)


def coverages(matrix: FrequencyMatrix, widen: float = 1.0, runs: int = RUNS) -> dict[str, float]:
    seen: dict[str, list[Any]] = {"1": [], "10": [], "1000": []}
    for seed in range(runs):
        release = publish(matrix, "0.5", HtfPaper(stop_count=20), noise=f"seeded:{seed}")
        numbers = leaves_below(release)
        generator = np.random.default_rng(seed)
        for name, (fewest, most) in {"1": (1, 1), "10": (8, 12), "1000": (700, 1400)}.items():
            found = np.flatnonzero((numbers >= fewest) & (numbers <= most))
            chosen = generator.permutation(found)[:60]
            seen[name].append(covered(release, matrix, chosen, widen))
    return {name: float(np.concatenate(parts).mean()) for name, parts in seen.items()}


def test_coverage_is_what_it_says(matrix: FrequencyMatrix) -> None:
    found = coverages(matrix)
    assert all(0.93 <= share <= 0.97 for share in found.values()), found


def test_wrong_widths_would_be_seen(matrix: FrequencyMatrix) -> None:
    for widen in (0.8, 1.25):
        found = coverages(matrix, widen, runs=30)
        assert not all(0.93 <= share <= 0.97 for share in found.values()), found
