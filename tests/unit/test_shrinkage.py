"""Empirical Bayes: what is learnt from noisy counts, against Bayes' rule with what made them.

Random tests have one seed each, and bounds of at least five standard deviations of what they bound:
with another seed each would fail less often than once in a million times.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from htf.estimation.shrinkage import (
    CLEAR,
    EXPECTED,
    LEAST_SPREAD,
    NOISY,
    SUPPORT,
    LearntCounts,
    Posterior,
)
from htf.frame.domain import FloatArray

SINGLE = pytest.mark.parametrize("single", [True, False])


def learn(noisy: FloatArray, expected: FloatArray | float, single: bool = True) -> LearntCounts:
    """From boxes of one level."""
    size = len(noisy)
    kind = np.full(size, single)
    return LearntCounts(noisy, np.broadcast_to(expected, size), kind, np.zeros(size, dtype=int))


def posterior(
    learnt: LearntCounts, noisy: FloatArray, expected: FloatArray | float, single: bool = True
) -> Posterior:
    size = len(noisy)
    kind = np.full(size, single)
    expected = np.array(np.broadcast_to(expected, size))
    return learnt.posterior(noisy, expected, kind, np.zeros(size, dtype=int))


def likelihood(distance: FloatArray, single: bool) -> FloatArray:
    """Of noise of variance one: Laplace for one count, normal for a sum of many."""
    exponent = -np.sqrt(2) * np.abs(distance) if single else -(distance**2) / 2
    return np.asarray(np.exp(exponent))


def draw_noise(generator: np.random.Generator, size: int, single: bool) -> FloatArray:
    return generator.laplace(size=size) / np.sqrt(2) if single else generator.normal(size=size)


@SINGLE
def test_a_posterior_is_bayes_rule_with_the_learnt_distribution(single: bool) -> None:
    """At the noisy counts of the table, where nothing is interpolated, summed term by term."""
    generator = np.random.default_rng(2)
    learnt = learn(draw_noise(generator, 300, single) + 2.0, 1.5, single)
    prior = learnt._prior[np.digitize(1.5, EXPECTED)]
    assert prior.sum() == pytest.approx(1)
    seen = NOISY[np.abs(NOISY) <= 4]  # farther out the floor under likelihoods is seen
    found = posterior(learnt, seen, 1.5, single)
    for number, noisy in enumerate(seen):
        weights = prior * likelihood(noisy - SUPPORT, single)
        mean = np.sum(weights * SUPPORT) / weights.sum()
        assert found.mean[number] == pytest.approx(mean, abs=1e-6)
        variance = np.sum(weights * (SUPPORT - mean) ** 2) / weights.sum()
        assert found.variance[number] == pytest.approx(max(variance, 1e-4), abs=1e-4)


@SINGLE
def test_the_learnt_posterior_is_near_that_of_what_made_the_counts(single: bool) -> None:
    """Seven of ten boxes are empty, the others hold five deviations; neither is told."""
    generator, size = np.random.default_rng(1), 20_000
    true = np.where(generator.random(size) < 0.7, 0.0, 5.0)
    learnt = learn(true + draw_noise(generator, size, single), 1.5, single)
    noisy = np.linspace(-3.0, 6.0, 37)
    full = 0.3 * likelihood(noisy - 5, single)
    best = 5 * full / (full + 0.7 * likelihood(noisy, single))
    assert np.abs(posterior(learnt, noisy, 1.5, single).mean - best).max() < 0.8


def test_a_map_of_empty_boxes_is_found_empty() -> None:
    generator, size = np.random.default_rng(3), 3000
    noisy = draw_noise(generator, size, single=True)
    learnt = learn(noisy, 0.1)
    found = posterior(learnt, noisy, 0.1)
    assert noisy.max() > 4
    assert np.mean(found.mean < 0.5) > 0.99
    kinds = np.ones(size, dtype=bool)
    expected, deviations = np.full(size, 0.1), np.full(size, 30.0)
    assert np.mean(learnt.is_empty(noisy, expected, kinds, deviations)) > 0.99


def test_a_box_clear_of_the_noise_is_not_empty_in_whatever_company() -> None:
    learnt = learn(draw_noise(np.random.default_rng(4), 3000, single=True), 0.1)
    noisy, expected = np.array([CLEAR, 20.0, 1e9]), np.full(3, 0.1)
    kinds: NDArray[np.bool_] = np.ones(3, dtype=bool)
    assert not learnt.is_empty(noisy, expected, kinds, np.full(3, 30.0)).any()
    found = posterior(learnt, noisy, expected)
    assert found.mean.tolist() == noisy.tolist()
    assert found.variance.tolist() == [1.0, 1.0, 1.0]


def test_what_boxes_differ_from_what_is_expected_is_learnt() -> None:
    """A twentieth, of counts far above the noise; then nothing at all."""
    generator, size = np.random.default_rng(5), 4000
    expected = generator.uniform(50, 400, size)
    true = expected * (1 + 0.05 * generator.normal(size=size))
    noisy = true + generator.normal(size=size)
    rough = learn(noisy, expected, single=False)
    found = posterior(rough, noisy, expected, single=False)
    spread = 0.05**2 * expected**2
    best = expected + spread / (spread + 1) * (noisy - expected)
    assert np.mean((found.mean - true) ** 2) < 1.01 * np.mean((best - true) ** 2)
    assert found.variance == pytest.approx(spread / (spread + 1), abs=0.1)

    noisy = expected + generator.normal(size=size)
    smooth = learn(noisy, expected, single=False)
    found = posterior(smooth, noisy, expected, single=False)
    error = np.sqrt(np.mean((found.mean - expected) ** 2))
    pulled = LEAST_SPREAD * 400**2 / (LEAST_SPREAD * 400**2 + 1)
    assert error < pulled
    assert np.all(found.variance < 1)


def test_noise_is_not_taken_for_what_boxes_differ() -> None:
    """Counts that are what is expected differ by their noise alone: they are pulled there."""
    noisy = 30 + np.random.default_rng(9).normal(size=4000)
    found = posterior(learn(noisy, 30.0, single=False), noisy, 30.0, single=False)
    assert np.abs(found.mean - 30).max() < 0.25 * np.abs(noisy - 30).max()
    assert found.variance.max() < 0.25


def test_levels_are_learnt_apart() -> None:
    generator, size = np.random.default_rng(6), 4000
    expected, level = np.full(size, 100.0), np.arange(size) % 2
    true = expected * (1 + np.where(level == 0, 0.3, 0.0) * generator.normal(size=size))
    noisy = true + generator.normal(size=size)
    kind = np.zeros(size, dtype=bool)
    learnt = LearntCounts(noisy, expected, kind, level)
    found = learnt.posterior(np.full(3, 110.0), np.full(3, 100.0), kind[:3], np.array([0, 1, 7]))
    assert found.mean[0] > 109
    assert found.mean[1] < 106
    assert found.mean[2] == found.mean[1], "a level that was not seen is as the last one seen"


def test_of_few_boxes_what_was_measured_stands() -> None:
    noisy, expected = np.array([300.0, 500.0]), np.array([400.0, 400.0])
    found = posterior(learn(noisy, expected), noisy, expected)
    assert found.mean == pytest.approx(noisy, rel=1e-4)


def test_nothing_seen_and_absurd_counts_give_finite_numbers() -> None:
    nothing = learn(np.empty(0), 1.0)
    noisy = np.array([-1e60, -1e9, 0.0, 7.9, 8.0, 1e9, 1e60])
    for expected in (0.0, 1e-30, 3.0, 1e9, 1e60):
        for learnt in (nothing, learn(noisy, expected)):
            found = posterior(learnt, noisy, expected)
            assert np.all(np.isfinite(found.mean))
            assert np.all(np.isfinite(found.variance))
            assert np.all(found.variance > 0)
