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

# Scales are rounded by up to one part in 2**52. This much less often than in the limit, a look adds no noise.
MARGIN = Decimal(1) - Decimal(2) ** -40


@dataclass(frozen=True, slots=True, eq=False)
class CountLooks(CountRegions):
    """The number of records in each region, which `RefinedCounts` may ask for again at `full` together."""

    kind = "look"
    proof = "docs/proofs/looks.md"

    full: IntArray

    def answer(self, cells: ExactCells, noise: NoiseSource) -> IntArray:
        accurate = self.exact(cells) + noise.draw(self.full, 1)
        cells.hold(self, accurate)
        more = noise.draw(self.epsilon, 1)
        return np.where(no_more(self.epsilon, self.full, noise.words), accurate, accurate + more)

    def check(self, tree: RegionTree) -> None:
        Measurement.check(self, tree)
        if self.full.shape != self.epsilon.shape or np.any(self.full <= self.epsilon):
            raise InputError(
                f"{self.label}: what a look and the rest cost must be more than a look"
            )
        if len(np.unique(self.regions)) < len(self.regions):
            raise InputError(f"{self.label}: a region can be looked at once")


@dataclass(frozen=True, slots=True, eq=False)
class RefinedCounts(CountRegions):
    """What a look at these regions left out, for the difference in price."""

    kind = "refined"
    proof = "docs/proofs/looks.md"

    look: CountLooks

    def answer(self, cells: ExactCells, noise: NoiseSource) -> IntArray:  # noqa: ARG002
        return cells.held(self.look)[self._rows()]

    def check(self, tree: RegionTree) -> None:
        Measurement.check(self, tree)
        if type(self.look) is not CountLooks:
            raise InputError(f"{self.label}: only a look can be refined")
        rows = self._rows()
        if not np.array_equal(self.look.regions[rows], self.regions):
            raise InputError(f"{self.label}: only regions that were looked at can be refined")
        if not np.array_equal(self.epsilon, (self.look.full - self.look.epsilon)[rows]):
            raise InputError(f"{self.label}: the rest costs what a look left of the full price")

    def _rows(self) -> IntArray:
        """The place of each region in the look."""
        order = np.argsort(self.look.regions)
        places = np.searchsorted(self.look.regions, self.regions, sorter=order)
        return np.asarray(order[np.minimum(places, len(order) - 1)])


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
