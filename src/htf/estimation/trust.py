"""How far priors are trusted, learnt from noisy counts. Public: no data, no noise.

A prior says how the records of a region are shared between its two halves. So does the plain map: evenly, but leaning
towards fuller regions beside them. The noisy counts of many halves show which of the two is right. For regions of about
one size and one density, the *trust* in a prior is the weight with which its shares, mixed with those of the plain map,
come closest to the counts. It is found by regression, in which halves with much noise count for little. A prior that
says nothing true gets no weight, and then it changes nothing.

With x_k the records that prior k moves into the lower half, compared with the plain map, y the records that the counts
move there, and v the variance of y, trust is the w >= 0 with sum w <= 1 for which sum (y - w x)^2 / v + LIKENESS |w - u|^2
is least, where u is the trust over all sizes and densities.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from htf.frame.domain import FloatArray, IntArray

DENSITIES = np.array([0.25, 4.0])  # times that of the whole map: thin land, usual land, dense land
CLASSES = len(DENSITIES) + 1
UNEVEN = 0.25  # the variance of what halves hold around anything expected of them, relative to its square
DOUBT = 1.0  # evidence against every prior, before any count is seen
LIKENESS = 4.0  # evidence that trust is the same at all sizes and densities
# A prior that says nothing true fits by chance, with a deviation of the root of its product. So many deviations of what
# fits are not believed: over all, and at each size and density.
CHANCE, CHANCE_HERE = 1.0, 0.5
BORROWED = 0.5  # of the evidence at one size or density counts at the next
STEPS_OF_TRUST = 64  # trust is rounded to this part of one: the last digits depend on the processor


class Evidence:
    """Sums over halves, by level and density of the region that they are halves of."""

    def __init__(self, priors: int, levels: int) -> None:
        self.products = np.zeros((levels, CLASSES, priors, priors))
        self.fits = np.zeros((levels, CLASSES, priors))

    def add(
        self, level: IntArray, kind: IntArray, x: FloatArray, y: FloatArray, variances: FloatArray
    ) -> None:
        """`x[prior, row]` is what each prior moves into the lower half, and `y[row]` what the counts move there."""
        place = level * CLASSES + kind
        for one, moved in enumerate(x):
            self.fits[..., one] += self._sums(place, moved * y / variances)
            for other, moved_too in enumerate(x):
                self.products[..., one, other] += self._sums(place, moved * moved_too / variances)

    def _sums(self, place: IntArray, values: FloatArray) -> FloatArray:
        shape = self.fits.shape[:2]
        sums = np.bincount(place, values, minlength=shape[0] * CLASSES).astype(np.float64)
        return sums.reshape(shape)

    def trust(self) -> FloatArray:
        """The trust by prior, level and density. Each is like that at the next levels and densities, so that levels which
        no count has reached borrow from those above, and a little like that over all."""
        levels, _, priors = self.fits.shape
        overall = self._overall()
        near, like = (nearness(levels), nearness(CLASSES)), LIKENESS * np.eye(priors)
        products = np.einsum("lm,cd,mdij->lcij", *near, self.products)
        fits = np.einsum("lm,cd,mdi->lci", *near, self.fits)
        found = np.zeros((priors, levels, CLASSES))
        for place in np.ndindex(levels, CLASSES):
            by_chance = CHANCE_HERE * np.sqrt(np.diag(products[place]))
            found[(slice(None), *place)] = best_weights(
                products[place] + like, fits[place] - by_chance + LIKENESS * overall
            )
        return np.asarray(np.floor(found * STEPS_OF_TRUST + 0.5) / STEPS_OF_TRUST)

    def _overall(self) -> FloatArray:
        """The trust in each prior over all sizes and densities."""
        products, fits = self.products.sum(axis=(0, 1)), self.fits.sum(axis=(0, 1))
        by_chance = CHANCE * np.sqrt(np.diag(products))
        return best_weights(products + DOUBT * np.eye(len(fits)), fits - by_chance)


def best_weights(products: FloatArray, fits: FloatArray, most: float = 1.0) -> FloatArray:
    """The weights, none negative and together at most `most`, that fit best. There are few, so every choice of those that
    are not zero is tried."""
    best, best_gain = np.zeros(len(fits)), 0.0
    for number in range(1, len(fits) + 1):
        for chosen in combinations(range(len(fits)), number):
            some = np.array(chosen)
            inner, goal = products[np.ix_(some, some)], fits[some]
            weights = np.linalg.solve(inner, goal)
            if weights.sum() > most:  # on the edge, where they add up to that
                across = np.linalg.solve(inner, np.ones(number))
                weights = weights - across * (weights.sum() - most) / across.sum()
            gain = float(2 * weights @ goal - weights @ inner @ weights)
            if np.all(weights >= 0) and gain > best_gain:
                best, best_gain = np.zeros(len(fits)), gain
                best[some] = weights
    return best


def nearness(size: int) -> FloatArray:
    """How much the evidence in one place of a row counts in each other."""
    places = np.arange(size)
    return np.asarray(BORROWED ** np.abs(np.subtract.outer(places, places)).astype(np.float64))
