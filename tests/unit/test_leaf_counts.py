"""What is known of leaves one by one, and what that is worth where records lie in clumps.

Random tests have one seed each, and bounds of at least five standard deviations of what they bound.
"""

from __future__ import annotations

import numpy as np
import pytest

from htf import FrequencyMatrix, Release, publish
from htf.estimation.homogeneous import estimate_regions
from htf.estimation.leaf_counts import judge_leaves
from htf.estimation.shrinkage import CLEAR, Posterior
from htf.frame.domain import Domain, FloatArray, IntArray

LEAVES = 40_000


def judged(noisy: FloatArray, near: float, far: float) -> Posterior:
    ones = np.ones(len(noisy))
    level = np.zeros(len(noisy), dtype=np.int64)
    return judge_leaves(noisy, near * ones, far * ones, level, ones > 0)


def clumped(full: float, records: float, seed: int) -> tuple[FloatArray, FloatArray]:
    """True counts, of which a share is full and the rest empty, and the same with noise of variance one."""
    generator = np.random.default_rng(seed)
    true = np.where(generator.random(LEAVES) < full, records, 0.0)
    return true, true + generator.laplace(size=LEAVES) / np.sqrt(2)


def test_a_clump_stands_and_what_is_around_it_is_found_empty() -> None:
    true, noisy = clumped(0.05, 7.0, 1)
    known = judged(noisy, 0.3, 0.35)
    assert known.mean[true > 0].mean() == pytest.approx(7.0, abs=0.3)
    assert known.mean[true == 0].mean() < 0.05
    assert np.mean((known.mean - true) ** 2) < 0.1  # of the variance of the noise
    assert np.all(known.variance > 0)


@pytest.mark.parametrize("records", [0.3, 1.0, 3.0, 6.0])
@pytest.mark.parametrize("full", [0.002, 0.05, 0.5])
def test_sums_over_many_leaves_are_right(full: float, records: float) -> None:
    """Also where no leaf can be told from noise. The noise of the sum of 40,000 counts is 200."""
    true, noisy = clumped(full, records, 2)
    known = judged(noisy, 0.1, 0.1)
    assert abs(known.mean.sum() - true.sum()) < 5 * np.sqrt(LEAVES) + 0.02 * true.sum()


def test_counts_far_above_the_noise_are_what_was_counted() -> None:
    """Or nearly what lies beside them, where leaves were found to be like those beside them."""
    generator = np.random.default_rng(3)
    near = np.full(2000, 40.0)
    apart = near * np.exp(generator.normal(size=2000))
    alike = near + 0.01 * generator.normal(size=2000)
    level, inside = np.zeros(2000, dtype=np.int64), np.ones(2000, dtype=bool)
    for true, trust in ((apart, 0.99), (alike, 0.2)):
        noisy = true + generator.laplace(size=2000) / np.sqrt(2)
        known = judge_leaves(noisy, near, near, level, inside)
        clear = noisy > CLEAR
        moved = np.abs(known.mean - near)[clear] / np.abs(noisy - near)[clear]
        assert np.median(moved) == pytest.approx(trust, abs=0.2)


def test_with_few_leaves_or_none_inside_nothing_breaks() -> None:
    level = np.zeros(3, dtype=np.int64)
    values = np.array([-2.0, 0.5, 30.0])
    known = judge_leaves(values, values**0, values**0, level, np.zeros(3, dtype=bool))
    assert np.all(np.isfinite(known.mean))
    assert np.all(known.variance > 0)
    assert known.mean[2] == 30.0


def clumps(cells: int = 128) -> IntArray:
    """One cell in fifty holds all, more of them near the middle."""
    generator = np.random.default_rng(5)
    x, y = np.mgrid[:cells, :cells] / cells - 0.5
    full = generator.random((cells, cells)) < 0.08 * np.exp(-8 * (x**2 + y**2))
    return np.where(full, generator.geometric(0.02, (cells, cells)), 0).astype(np.int64)


@pytest.fixture(scope="module")
def release() -> Release:
    domain = Domain.from_bounds(0, 0, 128, 128, cells=128, crs=None)
    return publish(FrequencyMatrix.from_dense(domain, clumps()), "1", noise="seeded:1")


def test_estimates_add_up_and_none_is_negative(release: Release) -> None:
    estimates = estimate_regions(release.tree, release.measurements.tree_counts()).estimates
    assert estimates.min() >= 0
    assert release.estimates.sum() == estimates[0]
