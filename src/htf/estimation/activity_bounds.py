"""How many records people have beyond K, with an interval that holds whatever the law of activity is. Public.

The noise of every class is known exactly, so a sum of noisy numbers, less or plus a quantile of the noise in it, bounds
the sum of the true ones. No curve is assumed. There are several such bounds, because in classes where noise hides the
sum of records, the number of people times an end of the class bounds it better. All of them hold together with the
probability that is stated, so the best may be taken. Proof: docs/proofs/people.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from htf.frame.domain import FloatArray
from htf.privacy.activity import Activity, class_ends, middles, reaches, split_price
from htf.privacy.epsilon import Epsilon

# The probabilities that the truth is below and above. Upper ends allow for people who may be hidden, lower ends do
# not, so an interval of 95 % is shortest if most of what may fail is above.
BELOW, ABOVE = 0.01, 0.035
DRAWS = 4000  # of noise: the probabilities above are then off by about a tenth of themselves
SEED = 20  # public, and always the same: a verifier computes the same bounds
FURTHER = 3  # classes that count by their starts, after those that count by their sums


def records_beyond_bounds(activity: Activity, most: int) -> tuple[float, float]:
    """The ends of a 95 % interval for the records beyond `most` of each person, in all.

    The lower end may be negative, although nobody has fewer than none: cut at 0 it would be the truth wherever nobody
    has more than `most`, and no room were left for the noise of the records up to `most`.
    """
    if most >= activity.most:
        return 0.0, 0.0
    seen = np.array([activity.people, activity.offsets], dtype=np.float64)
    lower, upper = _margins(activity.most, activity.epsilon.units, most)
    low = float(np.max(_weigh(lower.sums, seen) - lower.margins))
    high = float(np.min(_weigh(upper.sums, seen) + upper.margins))
    return low, max(high, low, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Margined:
    """Sums that bound the records beyond K, and what their noise may take away from them, or add to them."""

    sums: FloatArray
    margins: FloatArray


@lru_cache(maxsize=256)  # of a few kB
def _margins(most: int, units: int, kept: int) -> tuple[Margined, Margined]:
    ends, noise = class_ends(most), _noise(most, units)
    lower, upper = lower_sums(ends, kept), upper_sums(ends, kept)
    return (
        Margined(lower, _joint_quantiles(_weigh(lower, noise), BELOW)),
        Margined(upper, _joint_quantiles(-_weigh(upper, noise), ABOVE)),
    )


def lower_sums(ends: tuple[int, ...], kept: int) -> FloatArray:
    """Weights of people and of offsets, for each class, of sums that are never above the records beyond `kept`.

    Someone with n records in a class from `first` on has n - kept beyond, or more, and at least first - kept.
    Classes may be left out: nobody has fewer than none.
    """
    first, middle = np.array((0, *ends[:-1])) + 1, np.array(middles(ends))
    place, beyond = np.arange(len(ends)), np.array(ends) > kept
    by_start = np.maximum(first - kept, 0)
    found = []
    for sums in range(int(np.argmax(beyond)), len(ends) + 1):
        for stop in range(sums, min(sums + FURTHER, len(ends)) + 1):
            by_sum = beyond & (place < sums)
            weight = np.where(by_sum, middle - kept, np.where(beyond & (place < stop), by_start, 0))
            if weight.any() or by_sum.any():
                found.append([weight, by_sum])
    return np.array(found, dtype=np.float64)


def upper_sums(ends: tuple[int, ...], kept: int) -> FloatArray:
    """The same of sums that are never below.

    Someone has at most end - kept beyond. In the class that holds `kept`, n - kept or 0, whichever is more, is at most
    the chord (n - before) * (end - kept) / (end - before).
    """
    before, end, middle = np.array((0, *ends[:-1])), np.array(ends), np.array(middles(ends))
    place, beyond = np.arange(len(ends)), end > kept
    zero = np.where(before < kept, before, kept)
    slope = np.where(before < kept, (end - kept) / (end - before), 1.0)
    found = []
    for sums in range(int(np.argmax(beyond)), len(ends) + 1):
        by_sum = beyond & (place < sums)
        weight = np.where(by_sum, middle - zero, np.where(beyond, end - zero, 0))
        found.append([slope * weight, slope * by_sum])
    return np.array(found, dtype=np.float64)


def _weigh(sums: FloatArray, numbers: FloatArray) -> FloatArray:
    """Each sum of each row of numbers: (..., people or offsets, classes) gives (..., sums)."""
    flat = sums.reshape(len(sums), -1)
    return np.asarray(numbers.reshape(*numbers.shape[:-2], -1) @ flat.T)


@lru_cache(maxsize=2)
def _noise(most: int, units: int) -> FloatArray:
    """Draws of the noise: (draws, people or offsets, classes). The difference of two geometric numbers each."""
    reach = np.array(reaches(class_ends(most)), dtype=np.float64)
    of_people, of_offsets = (1 / float(price) for price in split_price(Epsilon(units)))
    scales = np.array([np.full(len(reach), of_people), reach * of_offsets])
    uniform = np.random.default_rng(SEED).random((DRAWS, *scales.shape, 2))
    geometric = np.floor(-np.log1p(-uniform) * scales[..., None])
    return np.asarray(geometric[..., 0] - geometric[..., 1])


def _joint_quantiles(noise: FloatArray, share: float) -> FloatArray:
    """A quantile for each column, the same of all, such that this share of the rows pass any of them."""
    ranks = np.argsort(np.argsort(noise, axis=0), axis=0)
    joint = np.sort(ranks.max(axis=1))[int(np.ceil((1 - share) * len(noise))) - 1]
    return np.asarray(np.sort(noise, axis=0)[joint])
