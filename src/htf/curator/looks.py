"""Counts in two steps: a look first and, if the mechanism wants it, the rest for the difference in price. Sensitive.

A count for epsilon a that is followed by another for epsilon b is worth less than one for a + b. Here it is worth the same:
the noise of the accurate count is drawn first and kept by the Curator, and the look adds more noise to it. Whoever has the
accurate count learns nothing from the look. Whoever has the look alone knows no more than what they paid for. Proof:
docs/proofs/looks.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from htf.curator.cells import ExactCells
from htf.curator.measurements import CountRegions, Measurement
from htf.curator.noise import NoiseSource
from htf.curator.sampler import Probability, WordSource
from htf.errors import InputError
from htf.frame.domain import IntArray
from htf.frame.tree import RegionTree
from htf.privacy.epsilon import UNITS_PER_EPSILON

# 1 - 2**-40. Scales are rounded by up to one part in 2**52: this much less often than in the limit, a look adds no noise.
MARGIN = Decimal("0.9999999999990905052982270717620849609375")


@dataclass(frozen=True, slots=True, eq=False)
class CountLooks(CountRegions):
    """The number of records in each region, which `RefinedCounts` may ask for again at `full` together."""

    kind = "look"
    proof = "docs/proofs/looks.md"

    full: IntArray

    def answer(self, cells: ExactCells, noise: NoiseSource) -> IntArray:
        accurate = self.exact(cells) + noise.draw(self.full, 1)
        more = noise.draw(self.epsilon, 1)
        same = no_more(self.epsilon, self.full, noise.words)
        cells.held.hold(self.regions, self.full - self.epsilon, accurate)
        return np.where(same, accurate, accurate + more)

    def check(self, tree: RegionTree) -> None:
        Measurement.check(self, tree)
        if self.full.shape != self.epsilon.shape or np.any(self.full <= self.epsilon):
            raise InputError(
                f"{self.label}: what a look and the rest cost must be more than a look"
            )

    def _check_after(self, cells: ExactCells) -> None:
        cells.held.check_new(self.regions, self.label)


@dataclass(frozen=True, slots=True, eq=False)
class RefinedCounts(CountRegions):
    """What the looks at these regions left out, for the difference in price."""

    kind = "refined"
    proof = "docs/proofs/looks.md"

    def answer(self, cells: ExactCells, noise: NoiseSource) -> IntArray:  # noqa: ARG002
        return cells.held.tell(self.regions)

    def _check_after(self, cells: ExactCells) -> None:
        cells.held.check_rest(self.regions, self.epsilon, self.label)


def no_more(looks: IntArray, full: IntArray, words: WordSource) -> NDArray[np.bool_]:
    """Decide for each look whether it adds no noise to the accurate count."""
    decided = np.zeros(len(looks), dtype=np.bool_)
    pairs, places = np.unique(np.stack([looks, full]), axis=1, return_inverse=True)
    for number, (look, whole) in enumerate(pairs.T.tolist()):
        rows = np.flatnonzero(places.ravel() == number)
        probability = no_more_probability(look, whole)
        drawn, first = words(len(rows)), probability.words(1)
        decided[rows] = drawn < first
        for tie in np.flatnonzero(drawn == first):
            decided[rows[tie]] = probability.happens(int(drawn[tie]), words)
    return decided


@lru_cache(maxsize=1024)
def no_more_probability(look: int, full: int) -> Probability:
    """(q' / q) ((1 - q) / (1 - q'))^2 with q = exp(-look) and q' = exp(-full), less a margin."""
    whole = Fraction(full, UNITS_PER_EPSILON)

    def formula(exp_look: Decimal, context: Context) -> Decimal:
        rate = context.divide(Decimal(whole.numerator), Decimal(whole.denominator))
        exp_full = context.exp(rate)
        one = Decimal(1)
        ratio = context.divide(context.subtract(exp_look, one), context.subtract(exp_full, one))
        squared = context.multiply(context.multiply(ratio, ratio), MARGIN)
        return context.multiply(squared, context.divide(exp_full, exp_look))

    return Probability(Fraction(look, UNITS_PER_EPSILON), formula)
