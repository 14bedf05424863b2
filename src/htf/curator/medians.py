"""The exponential mechanism for cuts near the median, sampled exactly. Sensitive.

Cut k of a region with n records, `left` of them below k, is chosen with probability proportional to
exp(-epsilon / 2 * |2 * left - n|). Between two neighbouring non-empty places the utility is the same,
so cuts come in runs: first a run is chosen by its weight, then a cut within it, uniformly.

A run is chosen by comparing a uniform number with the cumulated weights. Floats decide if they leave
no doubt, which is nearly always. In doubt, decimals of growing precision and more random words decide.
So the distribution is exact. Proof: docs/proofs/median.md.
"""

from __future__ import annotations

from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from htf.curator.sampler import WORD_BITS, WordSource
from htf.frame.domain import IntArray
from htf.privacy.epsilon import UNITS_PER_EPSILON

Runs = tuple[IntArray, IntArray, IntArray]  # first cut, number of cuts, utility's absolute value
UTILITY_SENSITIVITY = 1


def choose_medians(
    starts: IntArray,
    stops: IntArray,
    axes: IntArray,
    low: IntArray,
    high: IntArray,
    epsilon: IntArray,
    coordinates: NDArray[np.int32],
    counts: IntArray,
    words: WordSource,
) -> IntArray:
    """One cut strictly inside each region `[low, high)`."""
    from htf.curator import kernels

    rates = epsilon / (2 * UTILITY_SENSITIVITY * UNITS_PER_EPSILON)
    drawn = wide_words(len(starts), words)
    first, size = kernels.choose_median_runs(
        starts, stops, axes, low, high, rates, drawn / 2.0**64, coordinates, counts
    )
    for row in np.flatnonzero(size == 0):  # floats left it in doubt
        along = coordinates[axes[row], starts[row] : stops[row]]
        inside = counts[starts[row] : stops[row]]
        runs = kernels.median_runs(along, inside, low[row], high[row])
        rate = Fraction(int(epsilon[row]), 2 * UTILITY_SENSITIVITY * UNITS_PER_EPSILON)
        chosen = choose_run_exactly(runs, rate, int(drawn[row]), words)
        first[row], size[row] = runs[0][chosen], runs[1][chosen]
    cuts: IntArray = first + uniform_below(size, words)
    return cuts


def choose_run_exactly(runs: Runs, rate: Fraction, drawn: int, words: WordSource) -> int:
    """The run in which a uniform number falls whose first 64 bits are `drawn`."""
    bits = 64
    while True:
        bounds = _cumulated(runs, rate, digits=30 + bits)
        slack = Fraction(1, 2 ** (bits + 40))
        low, high = Fraction(drawn, 2**bits), Fraction(drawn + 1, 2**bits)
        for run in range(len(bounds) - 1):
            below = bounds[run] + slack <= low or run == 0
            above = high <= bounds[run + 1] - slack or run == len(bounds) - 2
            if below and above and runs[1][run] > 0:
                return run
        drawn, bits = (drawn << WORD_BITS) | int(words(1)[0]), bits + WORD_BITS


def _cumulated(runs: Runs, rate: Fraction, digits: int) -> list[Fraction]:
    """Cumulated probabilities, from 0 to 1, of runs with cuts; others get no share."""
    context = Context(prec=digits, Emin=-2 * digits)  # smaller weights are far below the slack
    smallest = min(int(u) for u, size in zip(runs[2], runs[1], strict=True) if size > 0)
    weights = []
    for size, utility in zip(runs[1], runs[2], strict=True):
        exponent = rate * (int(utility) - smallest)
        decimal = context.divide(Decimal(-exponent.numerator), Decimal(exponent.denominator))
        weights.append(Fraction(context.exp(decimal)) * int(size))
    total, reached, bounds = sum(weights), Fraction(0), [Fraction(0)]
    for weight in weights:
        reached += weight
        bounds.append(reached / total)
    return bounds


def uniform_below(limits: IntArray, words: WordSource) -> IntArray:
    """An exactly uniform integer in [0, limit) for each limit: draws that would bias it are repeated."""
    found = np.zeros(len(limits), dtype=np.int64)
    waiting = np.flatnonzero(limits > 1)
    while len(waiting):
        sizes = limits[waiting].astype(np.uint64)
        drawn = wide_words(len(waiting), words)
        uneven = (np.uint64(2**64 - 1) % sizes + np.uint64(1)) % sizes  # 2**64 modulo the limit
        fair = drawn <= np.uint64(2**64 - 1) - uneven
        found[waiting[fair]] = (drawn[fair] % sizes[fair]).astype(np.int64)
        waiting = waiting[~fair]
    return found


def wide_words(number: int, words: WordSource) -> NDArray[np.uint64]:
    """Uniform 64-bit words."""
    halves = words(2 * number).astype(np.uint64).reshape(2, number)
    wide: NDArray[np.uint64] = (halves[0] << np.uint64(WORD_BITS)) | halves[1]
    return wide
