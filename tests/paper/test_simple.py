"""The two floors: every cell on its own, and the map as one box."""

from __future__ import annotations

import numpy as np
import pytest

from htf import FrequencyMatrix, InputError, publish
from htf.curator.noise import ScriptedNoise, SeededNoise
from htf.estimation.noise_law import noise_variances
from htf_bench.mechanisms.singular import Singular
from support import city_matrix, dense, grid


def test_singular_counts_every_cell_with_the_whole_budget() -> None:
    matrix = city_matrix()
    release = publish(matrix, "0.3", "singular", noise=ScriptedNoise())
    cells = np.zeros((64, 64))
    cells[tuple(release.low.T)] = release.estimates
    assert np.array_equal(cells, dense(matrix))
    assert np.all(release.high - release.low == 1)
    assert [str(line.largest_epsilon) for line in release.ledger] == ["0.3"]
    assert release.facts == {"grid": [64, 64]}


def test_singular_has_its_variance_and_keeps_its_signs() -> None:
    """4096 empty cells in one run: the mean square may be off by 5 standard errors, about twice in a
    million seeds."""
    empty = FrequencyMatrix.from_dense(grid(64, 64), np.zeros((64, 64), dtype=np.int64))
    squares = publish(empty, "0.3", "singular", noise=SeededNoise(2)).estimates ** 2
    variance = float(noise_variances(np.array([1 / 0.3]))[0])
    assert abs(squares.mean() - variance) < 5 * squares.std() / 64
    signs = np.sign(publish(empty, "0.3", "singular", noise=SeededNoise(2)).estimates)
    assert abs(signs.mean()) < 5 / 64


def test_singular_coarsens_a_grid_too_fine_in_the_open() -> None:
    fine = FrequencyMatrix.from_cells(grid(2**20, 1000), [[2**20 - 1], [9]], [40])
    release = publish(fine, "1", Singular(most_cells=1000), noise=ScriptedNoise())
    assert release.facts == {"grid": [31, 31]}
    assert len(release) == 31**2
    widths = release.high - release.low
    assert np.all(widths.max(axis=0) - widths.min(axis=0) <= 1)
    assert release.estimates.sum() == 40
    with pytest.raises(InputError, match="most_cells must be positive, got 0"):
        Singular(most_cells=0)


def test_uniform_is_one_box_with_the_whole_budget() -> None:
    matrix = city_matrix()
    release = publish(matrix, "0.3", "uniform", noise=ScriptedNoise([-7]))
    assert release.estimates.tolist() == [int(matrix.exact_counts.sum()) - 7]
    assert release.low.tolist() == [[0, 0]]
    assert release.high.tolist() == [[64, 64]]
    assert release.scales.tolist() == [1 / 0.3]
