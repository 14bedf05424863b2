"""Half widths of intervals, for weighted sums of leaf noise: how far noise may have moved a count. Compiled,
and apart from `htf.estimation.noise_law`, because numba is slow to load.

A sum over leaves lies between one Laplace variable (95 % within 2.118 standard deviations) and a
normal one (1.960). How far along it is shows in the excess kurtosis, which is 3 / n for the sum of
n equal continuous Laplace variables. That family gives the table of the law. For sums of unequal ones it
is an approximation: continuous ones were found to be covered between 95.0 and 95.3 % of the time.

The noise is whole-numbered, which matters where scales are small. With weight w on every leaf the
sum moves in steps of w, and P(|sum| <= k w) is what a continuous variable puts within (k + 1/2) w.
So the continuous half width plus w / 2 is wide enough, and may be rounded down to a multiple of w.
"""

from __future__ import annotations

import math

import numpy as np

from htf.base.compiled import compiled
from htf.estimation import level, noise_law

# Compiled into the loops. The modules are imported whole, so that a change of theirs is noticed.
OUTSIDE, KURTOSES, QUANTILES = level.OUTSIDE, noise_law.KURTOSES, noise_law.QUANTILES


@compiled
def half_width(
    variance: float,
    fourth_cumulant: float,
    noisy_leaves: float,
    smallest_weight: float,
    largest_weight: float,
) -> float:
    """The half width of a weighted sum of independent leaf noise.

    The arguments are the cumulants of the sum, its number of leaves with noise, and the least and
    the largest of their weights. Coverage falls to 94.7 % at worst, where scales are below 0.3, and
    exceeds 96 % only where noise is so small that whole steps are too coarse for better.
    """
    if noisy_leaves == 0:
        return 0.0
    if noisy_leaves == 1 and variance > 0:
        return float(single_half_width(variance, largest_weight))
    half = continuous_half_width(variance, fourth_cumulant) + largest_weight / 2
    # Noise of whole leaves is a whole number: rounding down loses nothing.
    return float(np.floor(half)) if smallest_weight == 1 else half


@compiled
def continuous_half_width(variance: float, fourth_cumulant: float) -> float:
    """The half width of a continuous sum with these cumulants, by the table of the law."""
    squared = variance * variance
    kurtosis = fourth_cumulant / squared if squared > 0 else 0.0
    return float(math.sqrt(variance) * _quantile(kurtosis))


@compiled
def _quantile(kurtosis: float) -> float:
    """Interpolate between two entries of the table; beyond its ends, take the last entry."""
    if kurtosis <= KURTOSES[0]:
        return float(QUANTILES[0])
    for place in range(1, len(KURTOSES)):
        if kurtosis < KURTOSES[place]:
            before = KURTOSES[place - 1]
            slope = (QUANTILES[place] - QUANTILES[place - 1]) / (KURTOSES[place] - before)
            return float(QUANTILES[place - 1] + slope * (kurtosis - before))
    return float(QUANTILES[-1])


@compiled
def single_half_width(variance: float, weight: float) -> float:
    """The exact half width for one leaf: the least k with P(|X| > k) = 2 p^(k+1) / (1 + p) <= OUTSIDE.

    Its scale follows from its variance, which is also 1 / (2 sinh(1 / (2 b))^2).
    """
    scale = 0.5 / math.asinh(weight / math.sqrt(2 * variance))
    tail = OUTSIDE / 2 * (1 + math.exp(-1 / scale))
    steps = np.ceil(-scale * math.log(tail)) - 1
    return float(max(steps, 0.0) * weight)
