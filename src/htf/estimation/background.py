"""What earlier releases say about the regions of a map, and how it is joined with the counts of a new period. Public.

For every region there are two guesses: the counts of this period, and the *background*, the mean of what the releases of
earlier periods count there, scaled to the records of this period. Each has its variance. That of the background has two
parts: the noise of the earlier releases, and the *drift*, by which a period truly differs from those before it. Drift is
learnt from how far the two guesses lie apart, for regions of one size: a part that goes with the square of the count, a
part that is the same everywhere, and the scatter of independent events, which goes with the count. Then the two
guesses are joined by the inverse of their variances.

Maps may change abruptly. So the background counts only as far as the shape of the earlier maps is trusted
(htf.estimation.trust), and not at all in a region where both guesses lie farther apart than noise and drift allow. Where
earlier maps are priors too, their trust is that of the priors. Else it is learnt from how the background shares out the
records of a region among its parts, of which there may be any number: halves of a map, or zones of a district.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from htf.base import arguments
from htf.base.read_only import ReadOnlyArrays, make_read_only
from htf.errors import InputError
from htf.estimation.least_squares import SiblingLayer, join_near
from htf.estimation.trust import DENSITIES, UNEVEN, Evidence, best_weights, nearness
from htf.frame.domain import FloatArray, IntArray

CAUTION = 2.0  # drift is taken to be so many times as large as it was found to be
LARGEST_SQUARE = 9.0  # times its variance: a few regions that changed do not tell about the others
FIRST_DRIFT = 0.25  # of the square of the mean count, before anything is learnt
USUAL_DRIFT = np.array([0.05, 0.05])  # relative variances, which count as much as one region
ROUNDS = 4  # of learning
LEAST_TRUST = 1e-3
LEAST_DEVIATION = 0.1  # records: no count of an earlier release is exact


@dataclass(frozen=True, eq=False)
class Background(ReadOnlyArrays):
    """What earlier periods count in each region of a tree, in the mean.

    Attributes
    ----------
    values, variances : ndarray of float
        One for each region.
    periods : int
        How many releases it is the mean of.

    Raises
    ------
    InputError
        If these do not go together.

    Examples
    --------
    >>> import htf
    >>> import numpy as np
    >>> from htf.estimation.background import Background
    >>> Background(np.array([90.0, 40.0]), np.array([9.0, 9.0]), periods=3).periods
    3
    """

    values: FloatArray
    variances: FloatArray
    periods: int

    def __post_init__(self) -> None:
        for name in ("values", "variances"):
            arguments.row(getattr(self, name), "f", f"{name} of a background")
        arguments.whole(self.periods, "the number of periods of a background")
        if self.values.shape != self.variances.shape or self.values.ndim != 1:
            raise InputError("a background needs one value and one variance for each region")
        if not np.all(np.isfinite(self.values)) or not np.all(self.variances > 0):
            raise InputError(
                "the values of a background must be finite, and its variances positive"
            )
        if self.periods < 1:
            raise InputError(f"a background is of at least one release, got {self.periods}")
        make_read_only(self.values, self.variances)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Background):
            return NotImplemented
        same = self.periods == other.periods
        pairs = (self.values, other.values), (self.variances, other.variances)
        return same and all(np.array_equal(*pair) for pair in pairs)

    def __hash__(self) -> int:
        return hash((len(self.values), self.periods))

    @classmethod
    def of(cls, values: list[FloatArray], deviations: list[FloatArray]) -> Background:
        """Take the mean of several releases, each scaled to the same total, by the inverse of their variances.

        Parameters
        ----------
        values, deviations : list of ndarray of float
            What each of them counts in every region, the whole map first, and the standard deviations of that.

        Returns
        -------
        Background
            The mean.

        Examples
        --------
        >>> counts = [np.array([90.0, 40.0]), np.array([180.0, 80.0])]
        >>> from htf.estimation.background import Background
        >>> Background.of(counts, [np.ones(2), np.ones(2)]).values
        array([135.,  60.])
        """
        totals = [max(float(one[0]), 1.0) for one in values]
        scales = [np.mean(totals) / total for total in totals]
        weights = np.array(
            [
                1 / np.maximum(one * scale, LEAST_DEVIATION) ** 2
                for one, scale in zip(deviations, scales, strict=True)
            ]
        )
        scaled = np.array([one * scale for one, scale in zip(values, scales, strict=True)])
        whole = weights.sum(axis=0)
        return cls((weights * scaled).sum(axis=0) / whole, 1 / whole, len(values))


def trust_in_shares(
    background: Background,
    layers: Sequence[SiblingLayer],
    cells: FloatArray,
    measured: FloatArray,
    variances: FloatArray,
    level: IntArray,
) -> FloatArray:
    """How far the background is trusted in each region: by level and density, as a prior would be."""
    evidence = Evidence(1, 1 + int(level.max()))
    usual, kind = max(float(measured[0]), 1.0) / cells[0], np.zeros(len(cells), dtype=np.int64)
    for layer in layers:
        some, above = layer.regions, layer.parents[layer.group]
        even, total = cells[some] / cells[above], np.maximum(measured[above], 0.0)
        held = np.maximum(background.values[some], 0.0)
        whole = layer.sum(held)[layer.group]
        share = np.divide(held, whole, out=even.copy(), where=whole > 0)
        kind[some] = np.digitize(total / (usual * cells[above]), DENSITIES)
        noise = variances[some] + UNEVEN * (total * np.minimum(even, 1 - even)) ** 2
        moved, found = total * (share - even), measured[some] - total * even
        evidence.add(level[some], kind[some], moved[np.newaxis], found, noise)
    return np.asarray(evidence.trust()[0, level, kind])


def join(
    measured: FloatArray,
    variances: FloatArray,
    background: Background,
    level: IntArray,
    trust: FloatArray,
    each: float,
) -> tuple[FloatArray, FloatArray]:
    """Both guesses joined, and their variances. `each` is the number that one record or person counts as."""
    scale = max(float(measured[0]), 1.0) / max(float(background.values[0]), 1.0)
    values, noise = scale * background.values, scale**2 * background.variances
    drift = _learn_drift(measured, values, variances + noise, level, background, each)
    spread = (noise + drift) / np.maximum(trust, LEAST_TRUST) ** 2
    spread[0] = np.inf  # the total of a period is its own
    return join_near(measured, variances, values, spread)


def _learn_drift(
    measured: FloatArray,
    values: FloatArray,
    noise: FloatArray,
    level: IntArray,
    background: Background,
    each: float,
) -> FloatArray:
    """The variance of drift in each region.

    A tree has small regions where this period has records. If the map has changed, earlier periods have next to none
    there, and drift that is relative to their counts alone would look small. So it is relative to the mean count of
    whichever guess has more.
    """
    counts, apart = np.maximum(values, 0.0), measured - values
    regions = np.maximum(np.bincount(level), 1)
    means = np.stack([np.bincount(level, guess) / regions for guess in (counts, measured)])
    usual = np.maximum(means.max(axis=0), 1.0)[level]
    events = each * counts * (1 + 1 / background.periods)
    kinds = np.stack([usual**2, counts**2])
    found = FIRST_DRIFT * usual**2
    for turn in range(ROUNDS):
        variance = noise + events + found
        squares = apart**2 - noise - events
        if turn:
            squares = np.minimum(squares, LARGEST_SQUARE * variance)
        weights = 1 / (2 * variance**2)
        found = (_parts_by_level(kinds, squares, weights, level)[:, level] * kinds).sum(axis=0)
    return np.asarray(events + CAUTION * found)


def _parts_by_level(
    kinds: FloatArray, squares: FloatArray, weights: FloatArray, level: IntArray
) -> FloatArray:
    """The two parts of drift for each level, none negative: weighted least squares, with a little that is usual."""
    levels = 1 + int(level.max())
    products, fits = np.zeros((levels, 2, 2)), np.zeros((levels, 2))
    for one in (0, 1):
        fits[:, one] = np.bincount(level, weights * kinds[one] * squares, minlength=levels)
        for other in (0, 1):
            sums = np.bincount(level, weights * kinds[one] * kinds[other], minlength=levels)
            products[:, one, other] = sums
    near = nearness(levels)
    products = np.einsum("lm,mij->lij", near, products) + np.eye(2)
    fits = near @ fits + USUAL_DRIFT
    pairs = zip(products, fits, strict=True)
    return np.stack([best_weights(*pair, most=np.inf) for pair in pairs], axis=1)
