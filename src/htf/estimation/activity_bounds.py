"""How many records people have beyond K, with an interval that holds whatever the law of activity is. Public.

The noise at every mark is known exactly, so a sum of noisy numbers, less or plus a quantile of the noise in it, bounds
the sum of the true ones. No curve is assumed. There are several such sums: a lower one may leave out marks where noise
hides what there is, and all records may be bounded instead of those beyond K. All of them hold together with the
probability that is stated, so the best may be taken. Proof: docs/proofs/people.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from htf.frame.domain import FloatArray
from htf.privacy.activity import PARTS, Activity, marks
from htf.privacy.epsilon import Epsilon

# The probabilities that the truth is below and above. Upper ends allow for people who may be hidden, lower ends do
# not, so an interval of 95 % is shortest if most of what may fail is above.
BELOW, ABOVE = 0.01, 0.035
DRAWS = 4000  # of noise: the probabilities above are then off by about a tenth of themselves
SEED = 20  # public, and always the same: a verifier computes the same bounds
FURTHER = 3  # marks that count as the last before them


def records_beyond_bounds(activity: Activity, most: int, kept: float) -> tuple[float, float]:
    """The ends of a 95 % interval for the records beyond `most` of each person, in all, where `kept` are within.

    The lower end may be negative, although nobody has fewer than none: cut at 0 it would be the truth wherever nobody
    has more than `most`, and no room were left for the noise of the records up to `most`.

    Of weights nobody knows what the records kept of a person weigh, whatever `most` is: only all of it is bounded.
    """
    seen = np.array(activity.counted)
    if activity.weight is not None:
        lower, upper = _margins(activity.most, activity.epsilon.units, 0)
        low = float(np.max(lower.sums @ seen - lower.margins)) - kept
        return low, max(float(np.min(upper.sums @ seen + upper.margins)) - kept, low, 0.0)
    if most >= activity.most:
        return 0.0, 0.0
    lower, upper = _margins(activity.most, activity.epsilon.units, most)
    low = float(np.max(lower.sums @ seen - lower.margins - lower.of_all * kept))
    high = float(np.min(upper.sums @ seen + upper.margins - upper.of_all * kept))
    return low, max(high, low, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Margined:
    """Sums that bound the records, and what their noise may take away from them, or add to them."""

    sums: FloatArray
    of_all: FloatArray  # 1 for all records, 0 for those beyond K
    margins: FloatArray


@lru_cache(maxsize=256)  # of a few kB
def _margins(most: int, units: int, kept: int) -> tuple[Margined, Margined]:
    at, noise = marks(most), _noise(most, units)
    lower, upper = lower_sums(at, kept), upper_sums(at, kept)
    return (
        Margined(*lower, _joint_quantiles(noise @ lower[0].T, BELOW)),
        Margined(*upper, _joint_quantiles(noise @ -upper[0].T, ABOVE)),
    )


def lower_sums(at: tuple[int, ...], kept: int) -> tuple[FloatArray, FloatArray]:
    """Weights of the marks in sums that are never above the records; and whether of all, or of those beyond `kept`.

    Between two marks a sum counts someone by the line through both weights. The line n - kept is below what counts
    of n, from the last mark on that is at most `kept`. Marks may be left out, and people may count as having fewer.
    """
    numbers = np.array(at, dtype=np.float64)
    start = int(np.searchsorted(numbers, kept, side="right"))
    beyond = np.where(np.arange(len(at)) >= start - 1, numbers - kept, 0.0)
    found = []
    for of_all, line in ((0, beyond), (1, numbers)):
        for full in range(start + 1, len(at) + 1):
            for stop in range(full, min(full + FURTHER, len(at)) + 1):
                weight = np.minimum(line, line[full - 1])
                weight[stop:] = 0.0
                found.append((of_all, weight))
    sums = np.array([weight for _, weight in found])
    return sums - _rounding(sums), np.array([of_all for of_all, _ in found], dtype=np.float64)


def upper_sums(at: tuple[int, ...], kept: int) -> tuple[FloatArray, FloatArray]:
    """The same of sums that are never below: between two marks, max(n - kept, 0) is never above its chord."""
    numbers = np.array(at, dtype=np.float64)
    sums = np.array([np.maximum(numbers - kept, 0.0), numbers])
    return sums + _rounding(sums), np.array([0.0, 1.0])


def _rounding(sums: FloatArray) -> FloatArray:
    """What whole parts may change: less than one part of a person is at the wrong one of two marks."""
    steps = np.abs(np.diff(sums, axis=1)) / PARTS
    padded = np.pad(steps, ((0, 0), (1, 1)))
    return np.asarray(np.maximum(padded[:, 1:], padded[:, :-1]))


@lru_cache(maxsize=2)
def _noise(most: int, units: int) -> FloatArray:
    """Draws of the noise: (draws, marks). The difference of two geometric numbers of parts each."""
    scale = PARTS / float(Epsilon(units))
    uniform = np.random.default_rng(SEED).random((DRAWS, len(marks(most)), 2))
    geometric = np.floor(-np.log1p(-uniform) * scale)
    return np.asarray((geometric[..., 0] - geometric[..., 1]) / PARTS)


def _joint_quantiles(noise: FloatArray, share: float) -> FloatArray:
    """A quantile for each column, the same of all, such that this share of the rows pass any of them."""
    ranks = np.argsort(np.argsort(noise, axis=0), axis=0)
    joint = np.sort(ranks.max(axis=1))[int(np.ceil((1 - share) * len(noise))) - 1]
    return np.asarray(np.sort(noise, axis=0)[joint])
