"""The mechanism `dpcube`: its cuts are V-optimal. (What it shares is tested with `kdtree-cell`.)"""

from __future__ import annotations

import numpy as np
import pytest

from htf import FrequencyMatrix, publish
from htf.curator.noise import ScriptedNoise, SeededNoise
from htf.frame.domain import IntArray
from htf_bench.mechanisms.dpcube import DpCube
from support import grid


def blocks() -> IntArray:
    """Four flat areas, with borders that no halving and no median meets."""
    counts = np.full((32, 32), 5)
    counts[:, :7] = 200
    counts[21:, 7:] = 80
    counts[21:, 18:] = 400
    return counts


def test_flat_areas_are_found_exactly() -> None:
    release = publish(
        FrequencyMatrix.from_dense(grid(32, 32), blocks()), "1", "dpcube", noise=ScriptedNoise()
    )
    found = sorted(zip(release.low.tolist(), release.high.tolist(), strict=True))
    assert found == [
        ([0, 0], [21, 7]),
        ([0, 7], [21, 32]),
        ([21, 0], [32, 7]),
        ([21, 7], [32, 18]),
        ([21, 18], [32, 32]),
    ]


def test_with_noise_the_borders_are_still_cut() -> None:
    counts = blocks()
    matrix = FrequencyMatrix.from_dense(grid(32, 32), counts)
    release = publish(matrix, "0.5", DpCube(split_deviations=6), noise=SeededNoise(1))
    assert len(release) < 20
    for low, high in zip(release.low, release.high, strict=True):
        inside = counts[low[0] : high[0], low[1] : high[1]]
        assert inside.min() == inside.max()


@pytest.mark.parametrize("epsilon", ["0.1", "0.5"])
def test_uniform_boxes_serve_small_queries_better_than_one_count(epsilon: str) -> None:
    """The leaves give each cell's count far better than noise on every cell would."""
    counts = blocks()
    matrix = FrequencyMatrix.from_dense(grid(32, 32), counts)
    release = publish(matrix, epsilon, "dpcube", noise=SeededNoise(2))
    spread = np.zeros(counts.shape)
    for low, high, estimate in zip(release.low, release.high, release.estimates, strict=True):
        area = (slice(low[0], high[0]), slice(low[1], high[1]))
        spread[area] = estimate / np.prod(high - low)
    error = np.sqrt(np.mean((spread - counts) ** 2))
    assert error < 0.5 * np.sqrt(2) / float(epsilon)
