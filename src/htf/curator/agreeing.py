"""Noisy counts that add up: a region has what its parts have together. Sensitive: used by the Curator alone.

Each region has an epsilon of its own, as if it were counted for itself. But the noise of all regions is drawn together,
on the condition that it adds up:

    P(noise) is proportional to exp(-sum over regions of epsilon * |noise of the region|).

One record changes the sum by no more than the epsilons on its path, which is what the ledger charges. Proof:
docs/proofs/agreeing-counts.md. Beside counts that are drawn apart, nothing is lost to counts that contradict each other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from htf.curator.cells import ExactCells
from htf.curator.measurements import LARGEST_SCALE, CountRegions, Measurement
from htf.curator.noise import NoiseSource
from htf.errors import InputError
from htf.estimation.agreeing import MOST_TRIES, AgreeingLaw
from htf.frame.domain import IntArray
from htf.frame.nesting import OUTSIDE, Nesting
from htf.frame.tree import RegionTree
from htf.privacy.epsilon import UNITS_PER_EPSILON

MOST_DRAWS = 2**25  # of noise, as expected: a few minutes with OpenDP
SURELY = 1000  # times what is expected: noise that has not added up by then never will


@dataclass(frozen=True, slots=True, eq=False)
class AgreeingCounts(CountRegions):
    """The number of records in each region, with noise that adds up."""

    kind = "agreeing"
    proof = "docs/proofs/agreeing-counts.md"

    def answer(self, cells: ExactCells, noise: NoiseSource) -> IntArray:
        nesting = cells.nesting(self.regions)
        drawn = np.zeros(len(self.regions), dtype=np.int64)
        _draw(np.flatnonzero(nesting.above == OUTSIDE), nesting, self.epsilon, noise, drawn)
        return self.exact(cells) + drawn

    def check(self, tree: RegionTree) -> None:
        Measurement.check(self, tree)
        nesting = Nesting.of(tree, self.regions)
        if len(self.regions) * UNITS_PER_EPSILON > int(self.epsilon.min()) * LARGEST_SCALE:
            raise InputError(
                f"{self.label}: the sum of so much noise of so small an epsilon does not fit into 64 bits"
            )
        law = AgreeingLaw.of(nesting, self.epsilon)
        if law.total_draws > MOST_DRAWS or law.tries.max() > MOST_TRIES:
            raise InputError(
                f"{self.label}: noise that adds up would take too long to draw for these regions. Count them apart"
            )


def _draw(
    rows: IntArray, nesting: Nesting, epsilon: IntArray, noise: NoiseSource, drawn: IntArray
) -> None:
    """Draw the noise of these rows and of all that lie in them, into `drawn`.

    Parts are drawn first, each with the law that it has alone. Their sum is kept with the probability
    exp(-epsilon * |sum|), or else they are all drawn again, which gives the law above.
    """
    single = rows[nesting.number[rows] == 0]
    drawn[single] = noise.draw(epsilon[single], 1)
    left, tries = rows[nesting.number[rows] > 0], 0
    while len(left):
        _draw(nesting.parts_of(left)[0], nesting, epsilon, noise, drawn)
        drawn[left] = nesting.sum_parts(left, drawn)
        left = left[geometric(noise.draw(epsilon[left], 1)) < np.abs(drawn[left])]
        tries += 1
        if tries > SURELY * MOST_TRIES:
            raise InputError(
                f"the noise {noise.description} never adds up: it is not discrete Laplace noise"
            )


def geometric(laplace: IntArray) -> IntArray:
    """From discrete Laplace noise X with P(X = k) ~ q^|k|: a G >= 0 with P(G >= k) = q^k.

    G is X, or -1 - X where X is negative: P(X >= k) + P(X <= -1 - k) = (q^k + q^(k+1)) / (1 + q) = q^k.
    """
    return np.where(laplace >= 0, laplace, -1 - laplace)
