"""Judges each leaf of a map from its own noisy count and from how full the land around it is: empirical
Bayes, as in htf.estimation.shrinkage, one leaf at a time. Public.

All numbers are in standard deviations of the noise of the leaf's count. Leaves with about the same counts beside
them, and about the same around them, have true counts of some unknown distribution: in a quiet street most are empty
and a few are full, in a park all are much alike. It is learnt from their noisy counts, and gives each leaf a posterior.

A distribution that makes the noisy counts most likely may still have another mean than they have, since very
small counts look like none. So what is not nothing is made more or less likely until the means agree: then sums
over many leaves are neither too high nor too low.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from htf.estimation.shrinkage import (
    NOISY,
    SUPPORT,
    Posterior,
    likelihoods,
    look_up,
    moments,
    most_likely,
    rows_of,
    spread_by_size,
    trust_in_clear,
)
from htf.frame.domain import FloatArray, IntArray

# Leaves are alike where both what is expected from beside them and the mean around them lie between the same two.
NEAR = np.r_[0.01, 0.03, 2.0 ** (np.arange(-7, 9) / 2)]
FAR = np.array([0.03, 0.2, 0.8, 3.2])
NOTHING = 20.0  # before anything is learnt, a leaf is so many times likelier to hold nothing than any one count
ITERATIONS = 100  # of EM: small counts are distinguished from none only slowly
FEWEST_LEAVES = 20  # from which a mean says something
LEAST_MEAN = 1e-4
LEAST_VARIANCE = 1e-3
LEAST_WEIGHT = 1e-9  # of each count, so that no noisy count is impossible


def judge_leaves(
    noisy: FloatArray, near: FloatArray, far: FloatArray, level: IntArray, inside: NDArray[np.bool_]
) -> Posterior:
    """The posterior of each leaf, given its noisy count and what is expected from beside and around it.

    Leaves of one `level`, counted from 0, are about equally large. What is learnt is learnt from leaves `inside`
    land that is not empty.
    """
    group = np.digitize(near, NEAR) * (len(FAR) + 1) + np.digitize(far, FAR)
    trust = trust_in_clear(spread_by_size(noisy[inside], near[inside], level[inside]), near, level)
    return look_up(_posteriors(noisy[inside], group[inside]), noisy, near, trust, group)


def _posteriors(noisy: FloatArray, group: IntArray) -> Posterior:
    """Mean and variance of the true count, for each group and noisy count."""
    groups = (len(NEAR) + 1) * (len(FAR) + 1)
    key = group * len(NOISY) + rows_of(np.minimum(noisy, NOISY[-1]))
    seen = np.bincount(key, minlength=groups * len(NOISY)).reshape(groups, -1).astype(np.float64)
    likelihood = likelihoods(NOISY, np.array([True]))
    guess = np.ones((groups, len(SUPPORT)))
    guess[:, 0] = NOTHING
    guess /= guess.sum(axis=1, keepdims=True)
    prior = most_likely(seen, likelihood, guess, ITERATIONS, LEAST_WEIGHT)
    return moments(_with_right_mean(prior, seen)[:, None, :] * likelihood, LEAST_VARIANCE)


def _with_right_mean(prior: FloatArray, seen: FloatArray) -> FloatArray:
    """The same distributions, with what is not nothing likelier or less likely, so that means are as seen."""
    leaves = seen.sum(axis=1)
    found = np.maximum(seen @ NOISY / np.maximum(leaves, 1), LEAST_MEAN)
    something = np.maximum(prior[:, 1:].sum(axis=1), LEAST_WEIGHT)
    times = np.minimum(found / np.maximum(prior @ SUPPORT, LEAST_MEAN), 1 / something)
    times = np.where(leaves >= FEWEST_LEAVES, times, 1.0)
    moved = prior * times[:, None]
    moved[:, 0] = np.maximum(1 - moved[:, 1:].sum(axis=1), LEAST_WEIGHT)
    return moved
