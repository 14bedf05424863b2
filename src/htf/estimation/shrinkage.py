"""Estimates true counts from noisy ones, with what all of them together show: empirical Bayes. Public.

The input is noisy counts z, each with an expected count r (from the regions around it), both in standard
deviations of the noise of z. Regions with about the same expected count have true counts of some unknown
distribution: most of them may be empty, or all may be near the expected count. That distribution is learnt
from their noisy counts, as the one that makes these most likely (Kiefer and Wolfowitz 1956; Laird 1978 for
the iteration used here). Then each region has a posterior.

If the expected count and the noisy one both stand far clear of the noise, a count is pulled towards the
expected one by as much as counts of that size have been found to differ from it (James and Stein).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from htf.estimation.noise_law import log_likelihoods
from htf.frame.domain import FloatArray, IntArray

# True counts that are told apart, in standard deviations of the noise.
SUPPORT = np.r_[0.0, np.geomspace(0.08, 14.0, 30)]
LOST = 1.75  # standard deviations: so much is lost in the noise
# Boxes are alike where what is expected of them lies between the same two of these.
EXPECTED = np.r_[2.0 ** (np.arange(-6, 9) / 2), 32.0, 64.0]
NOISY = np.linspace(-12.0, 12.0, 121)  # noisy counts that are told apart
CLEAR = 8.0  # a noisy count of so many deviations is not from an empty box
CLEAR_EXPECTED = 2.0 ** np.arange(4, 16)
SMOOTHING = 20.0  # records: the paper judges |error| / max(count, 20)
SMOOTHING_PEOPLE = 5.0  # people: fewer, because one person is many records
ITERATIONS = 25
LEAST_VARIANCE = 1e-4
LEAST_WEIGHT = 1e-7  # in EM, of each true count
WEIGHT_OF_GUESS = 10.0  # a guess at the distribution counts as much as so many boxes
FEWEST_BOXES = 10  # from which a spread can be learnt
LARGEST_SPREAD, LEAST_SPREAD = 4.0, 1e-4


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """The posterior of true counts, in standard deviations of the noise."""

    mean: FloatArray
    variance: FloatArray


class LearntCounts:
    """The distributions of true counts, learnt from noisy ones."""

    def __init__(
        self, noisy: FloatArray, expected: FloatArray, single: NDArray[np.bool_], level: IntArray
    ) -> None:
        """`single` says whether the noise is that of one count, not of a sum of many. Regions of one
        `level`, counted from 0, are about equally large."""
        self._prior = prior = _most_likely_prior(noisy, expected, single)
        likelihood = _likelihoods_by_kind()  # kind of noise, noisy, true
        self._table = moments(likelihood[:, None] * prior[None, :, None, :], LEAST_VARIANCE)
        self._spread = spread_by_size(noisy, expected, level)

    def posterior(
        self, noisy: FloatArray, expected: FloatArray, single: NDArray[np.bool_], level: IntArray
    ) -> Posterior:
        """The posterior of regions with these noisy and expected counts."""
        kind, group = single.astype(np.int64), np.digitize(expected, EXPECTED)
        trust = trust_in_clear(self._spread, expected, level)
        return look_up(self._table, noisy, expected, trust, kind, group)

    def is_empty(
        self,
        noisy: FloatArray,
        expected: FloatArray,
        single: NDArray[np.bool_],
        deviations: FloatArray,
        smoothing: float = SMOOTHING,
        lost: float = LOST,
    ) -> NDArray[np.bool_]:
        """Which regions are best called empty, because the median of the posterior is lost in the noise: it is
        at most `lost` standard deviations.

        It is the median that makes the relative error least, so small counts weigh more. `deviations` are
        those of the noise, in what is counted, and so is the count below which errors are not relative.
        """
        likelihood = likelihoods(noisy, single[:, None])
        posterior = likelihood * self._prior[np.digitize(expected, EXPECTED)]
        posterior /= np.maximum(SUPPORT * deviations[:, None], smoothing)
        small = posterior[:, lost >= SUPPORT].sum(axis=1)
        return np.asarray((noisy < CLEAR) & (small > 0.5 * posterior.sum(axis=1)))


def moments(joint: FloatArray, least: float) -> Posterior:
    """The mean and the variance, `least` at least, of the distributions of SUPPORT along the last axis."""
    joint = joint / joint.sum(axis=-1, keepdims=True)
    mean = joint @ SUPPORT
    return Posterior(mean, np.maximum(joint @ SUPPORT**2 - mean**2, least))


def look_up(
    table: Posterior, noisy: FloatArray, expected: FloatArray, trust: FloatArray, *groups: IntArray
) -> Posterior:
    """What a table says of each noisy count. Its last axis is NOISY, and its others are groups.

    Far from nothing, what was measured stands, or is pulled towards what was expected.
    """
    place = (np.clip(noisy, NOISY[0], NOISY[-1]) - NOISY[0]) / (NOISY[1] - NOISY[0])
    below = np.minimum(place.astype(np.int64), len(NOISY) - 2)
    clear, found = noisy >= CLEAR, []
    for values in (table.mean, table.variance):
        at, after = values[(*groups, below)], values[(*groups, below + 1)]
        found.append(at + (place - below) * (after - at))
    mean, variance = found
    pulled = expected + trust * (noisy - expected)
    return Posterior(np.where(clear, pulled, mean), np.where(clear, trust, variance))


def trust_in_clear(spread: FloatArray, expected: FloatArray, level: IntArray) -> FloatArray:
    """How far a count that stands clear of the noise is trusted against what was expected, given `spread_by_size`."""
    size = np.clip(np.digitize(expected, CLEAR_EXPECTED) - 1, 0, len(CLEAR_EXPECTED) - 1)
    deviation = spread[np.minimum(level, len(spread) - 1), size] * expected**2
    return np.where(expected >= CLEAR_EXPECTED[0], deviation / (deviation + 1), 1.0)


def rows_of(noisy: FloatArray) -> IntArray:
    """The places in NOISY of noisy counts, those below it at its start."""
    rows = np.rint((np.maximum(noisy, NOISY[0]) - NOISY[0]) / (NOISY[1] - NOISY[0]))
    return np.asarray(rows.astype(np.int64))


def likelihoods(noisy: FloatArray, single: NDArray[np.bool_]) -> FloatArray:
    """The likelihood of noisy counts given true ones: of single counts, or of sums of many."""
    distance = np.abs(noisy[:, None] - SUPPORT)
    return np.asarray(np.exp(log_likelihoods(distance, single)) + 1e-12)


def _likelihoods_by_kind() -> FloatArray:
    """For normal noise and for Laplace noise."""
    return np.stack([likelihoods(NOISY, np.array([single])) for single in (False, True)])


def most_likely(
    seen: FloatArray, likelihood: FloatArray, guess: FloatArray, iterations: int, least: float
) -> FloatArray:
    """The distribution of true counts for each group, by EM on how often each noisy count was seen in it.

    Each iteration adds `least` for each box to every true count, so that none is ruled out.
    """
    boxes, prior = seen.sum(axis=1, keepdims=True), guess.copy()
    for _ in range(iterations):
        prior *= (seen / np.maximum(prior @ likelihood.T, 1e-300)) @ likelihood + least * boxes
        prior /= np.maximum(prior.sum(axis=1, keepdims=True), 1e-300)
    return np.where(boxes > 0, prior, guess)


def _most_likely_prior(
    noisy: FloatArray, expected: FloatArray, single: NDArray[np.bool_]
) -> FloatArray:
    """The distribution of true counts for each group of regions, from a histogram of the noisy ones."""
    guess = _guess()
    groups, kinds = len(guess), 2
    used = noisy < CLEAR + 2
    group = np.digitize(expected[used], EXPECTED)
    key = (group * kinds + single[used]) * len(NOISY) + rows_of(noisy[used])
    seen = np.bincount(key, minlength=groups * kinds * len(NOISY)).astype(np.float64)
    seen = seen.reshape(groups, kinds * len(NOISY))
    likelihood = _likelihoods_by_kind().reshape(-1, len(SUPPORT))
    prior = most_likely(seen, likelihood, guess, ITERATIONS, LEAST_WEIGHT)
    boxes = seen.sum(axis=1, keepdims=True)
    weight = boxes / (boxes + WEIGHT_OF_GUESS)
    return np.asarray(np.where(boxes > 0, weight * prior, 0.0) + (1 - weight) * guess)


def _guess() -> FloatArray:
    """The starting point of EM: any size up to eight times the expected count, or nothing at all."""
    middle = np.sqrt(np.r_[EXPECTED[0] / 4, EXPECTED] * np.r_[EXPECTED, 100.0])
    middle = np.clip(middle, 0.15, 100.0)
    guess = np.where(8 * middle[:, None] >= SUPPORT, 1.0, 1e-6)
    guess[:, 0] = 2.0
    return np.asarray(guess / guess.sum(axis=1, keepdims=True))


def spread_by_size(noisy: FloatArray, expected: FloatArray, level: IntArray) -> FloatArray:
    """The variance of true counts around the expected ones, relative to their square: by expected count,
    and by level, because a map that is rough from afar may be smooth from near by."""
    sizes, levels = len(CLEAR_EXPECTED), 1 + int(level.max(initial=0))
    size = np.digitize(expected, CLEAR_EXPECTED) - 1
    clear = size >= 0
    r, key = expected[clear], (level * sizes + size)[clear]
    relative = np.minimum(((noisy[clear] - r) ** 2 - 1) / r**2, LARGEST_SPREAD)
    boxes = np.bincount(key, minlength=levels * sizes).reshape(levels, sizes)
    sums = np.bincount(key, relative, minlength=levels * sizes).reshape(levels, sizes)
    spread = np.ones((levels, sizes))  # where too few boxes tell, what was measured stands
    for row in range(levels):
        known = np.flatnonzero(boxes[row] >= FEWEST_BOXES)
        if len(known):
            mean = np.maximum(sums[row, known] / boxes[row, known], LEAST_SPREAD)
            spread[row] = np.interp(np.arange(sizes), known, mean)
    return spread
