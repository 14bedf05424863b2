"""The law of noise that adds up (htf.curator.agreeing), by formula. Public: no data, no noise.

The noise of a region is the sum of that of its parts, kept with the probability exp(-epsilon * |sum|). A sum of many
is about normal, so the noise has about the law of a normal one times exp(-epsilon |x|). From the bottom up this gives the
variance of each region, how often it has to be drawn, and the variance that a count *for itself* would need
to have the same effect. With those, everything that is known about independent counts holds for these too: least squares,
and the variance of any sum. If a region has few parts and most of the budget, its noise is not near normal: all three
numbers are then too large, up to twice for two parts and equal shares. So intervals are too wide there, never too narrow.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from htf.estimation.noise_law import count_variances
from htf.frame.domain import FloatArray, IntArray
from htf.frame.nesting import OUTSIDE, Nesting

MOST_TRIES = 1000.0  # of a region, as expected
NO_NEWS = 1e12  # times the variance of the parts: a count that adds nothing to what they say


@dataclass(frozen=True, eq=False)
class AgreeingLaw:
    """By row: the variance of noise in a region from the counts in it, the variance of an independent count of it that would
    have the same effect, and the draws that it is expected to take with all that lies in it."""

    variances: FloatArray
    as_independent: FloatArray
    draws: FloatArray
    tries: FloatArray  # of the region, until the sum of its parts is kept
    total_draws: float

    @classmethod
    def of(cls, nesting: Nesting, epsilon: IntArray, apart: float = np.inf) -> AgreeingLaw:
        """Regions that would take more than `apart` draws for each region in them, or more than MOST_TRIES, are drawn apart
        from their parts, if that is a number."""
        from htf.estimation.sharp import peaked  # slow to load

        own = count_variances(epsilon)
        variances, alone = own.copy(), own.copy()
        draws, tries, inside = np.ones((3, len(own)))
        for rows in nesting.inner_layers():
            below = nesting.sum_parts(rows, variances)
            kept, _, spread = peaked(np.sqrt(2 * below / own[rows]))
            inside[rows] = 1 + nesting.sum_parts(rows, inside)
            taken = (1 + nesting.sum_parts(rows, draws)) / kept
            tied = (taken <= apart * inside[rows]) & ((1 / kept <= MOST_TRIES) | np.isinf(apart))
            draws[rows], tries[rows] = np.where(tied, [taken, 1 / kept], 1.0)
            variances[rows] = np.where(tied, below * spread, own[rows])
            news = np.maximum(1 / spread - 1, 1 / NO_NEWS)
            alone[rows] = np.where(tied, below / news, own[rows])
        return cls(variances, alone, draws, tries, float(draws[nesting.above == OUTSIDE].sum()))


def tiers(nesting: Nesting, epsilon: IntArray, apart: float) -> IntArray:
    """In how many regions that are drawn apart from their parts each one lies: those of one tier can be drawn together."""
    law = AgreeingLaw.of(nesting, epsilon, apart)
    is_apart = (nesting.number > 0) & (law.draws == 1)
    found = np.zeros(len(epsilon), dtype=np.int64)
    for rows in reversed(nesting.inner_layers()):
        parts, _ = nesting.parts_of(rows)
        above = nesting.above[parts]
        found[parts] = found[above] + is_apart[above]
    return found
