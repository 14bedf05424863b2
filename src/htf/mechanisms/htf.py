"""HTF, adaptive: the default.

The homogeneous tree of the paper (htf_paper.py), with other answers to its three questions. *Where* to
cut a region: in the middle, along the axes in turn, which costs nothing. *Whether* to cut it: while it holds
enough records for the budget it has left, and more than that where it is homogeneous; both are read off
noisy counts that are paid for anyway. *What* it holds: not its last count alone, but what all
counts of the tree say together (htf.estimation.homogeneous). docs/mechanism.md has the reasons and what was measured.

The tree grows in rounds. In a round each region that is to be cut falls into up to 2^4 pieces, in its last round
into up to 2^2, and all of them are counted; a region that is not cut spends all it has left on one more count of
itself. A fifth of the budget is kept for the last count of each path. The rest is spent in rounds that grow by half:
with two rounds before the last, 4/19 and 6/19 of it, and 9/19 are added to what was kept.

In a series of releases, earlier maps foresee where to cut (`foresight`): as long as the counts agree with them, rounds
before the last cost less.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from htf.curator.window import Steps, Window
from htf.errors import InputError
from htf.estimation.homogeneous import FROM_LEAVES, PRIOR_TRUST, Estimated, estimate_regions
from htf.estimation.least_squares import TreeCounts, join_near, smooth_variances
from htf.estimation.noise_law import count_variances, scales_of_variances
from htf.frame.domain import FloatArray, IntArray
from htf.frame.grids import MOST_LEAVES, wide_axes
from htf.frame.halving import halve_often, halving_axes
from htf.frame.tree import RegionTree
from htf.mechanisms.base import (
    Histogram,
    Mechanism,
    check_share,
    parameter,
    read_integer,
    read_number,
    read_share,
    split_epsilon,
)
from htf.mechanisms.last_counts import ALONE, RoundCounts, lower_medians
from htf.privacy.epsilon import UNITS_PER_EPSILON

if TYPE_CHECKING:
    from htf.estimation.prior import Prior

LAST_HALVINGS = 2  # in the last round, at most: what it is cut into should be known well before
OCTAVES = 13  # of how clear counts are of their noise, by which regions are told apart
LEAST_LEAF_SIGNAL = 1e-9  # so that dividing by it does not overflow
LEAST_EVEN, MOST_EVEN = 0.7, 16.0  # times the usual records at which a region is cut
MORE_EVEN = 4.0  # in a round: a map that is even may have a pattern just below what was seen
FIT_BY_CHANCE = 1.0  # deviations of a fit that are not believed
LEAST_FIT = 0.4  # the slope of counts over forecasts, above which forecasts are used
DRIFT = 0.3  # the deviation of a count from its forecast, relative to it


@dataclass(frozen=True)
class Htf(Mechanism):
    """Homogeneous tree, adaptive: halved while it pays, estimated from all counts together."""

    name = "htf"
    citation = (
        "Shaham, Ghinita, Ahuja, Krumm, Shahabi: HTF, SIGSPATIAL 2021; "
        "what was changed is in docs/mechanism.md"
    )
    takes_prior = True

    total_share: float = parameter(
        0.01, read_share, "share of the budget that buys the number of records"
    )
    leaf_signal: float = parameter(
        3.0, read_number, "records of a region times the budget it has left, above which it is cut"
    )
    halvings: int = parameter(
        4, read_integer, "halvings of a region in a round before the last, at most"
    )
    growth: float = parameter(1.5, read_number, "of the budget, from one round to the next")
    last_share: float = parameter(
        0.2, read_share, "share of the budget that rounds before the last do not touch"
    )
    look_share: float = parameter(
        0.5,
        read_number,
        "share of the price of a last count that buys a look, after which the rest refines it or searches the region "
        "(0: no looks)",
    )
    foresight: float = parameter(
        0.0,
        read_number,
        "growth from round to round while the priors fit the counts; they then help to decide where to cut (0: never)",
    )

    def check(self) -> None:
        check_share("total_share", self.total_share)
        if not LEAST_LEAF_SIGNAL <= self.leaf_signal < float("inf"):
            raise InputError(
                f"leaf_signal must be at least {LEAST_LEAF_SIGNAL}, got {self.leaf_signal}"
            )
        for name, share in (("last_share", self.last_share), ("look_share", self.look_share)):
            if not 0 <= share < 1:
                raise InputError(f"{name} must be at least 0 and below 1, got {share}")
        for name, value, most in (("halvings", self.halvings, 12), ("growth", self.growth, 16)):
            if not 1 <= value <= most:
                raise InputError(f"{name} must be between 1 and {most}, got {value}")
        if self.foresight != 0 and not 1 <= self.foresight <= 16:
            raise InputError(f"foresight must be 0, or between 1 and 16, got {self.foresight}")

    def build(self, window: Window) -> Steps[Histogram]:
        counts, rounds = TreeCounts(), 0
        leaves: list[IntArray] = []
        growing = yield from self._count_all(window, counts)
        least_signal = self._least_signal(growing)
        kept = int(growing.left[0] * self.last_share)
        forecast = Forecast(window.tree, window.priors if self.foresight else ())
        while len(growing):
            rounds += 1
            growth = self.foresight if forecast.fits else self.growth
            halvings = self._halvings(window, growing, least_signal)
            halvings = self._limit(
                growing, halvings, MOST_LEAVES - sum(len(some) for some in leaves)
            )
            whole = growing.among(halvings == 0)
            some = halvings > 0
            grown = self._cut(window.tree, growing.among(some), halvings[some], kept, growth)
            asked = whole.asked_with(grown)
            room = MOST_LEAVES - sum(len(some) for some in leaves)
            noisy, ends = yield from asked.ask(
                window, self.look_share, room, counts, f"round {rounds}"
            )
            leaves.append(ends)
            growing = forecast.learn(grown, grown.learn(window.tree, noisy[len(whole) :]))
            growing = growing.among(growing.left > 0)
        found = np.concatenate(leaves)
        facts: dict[str, Any] = {"rounds": rounds}
        made = estimate_regions(window.tree, counts, window.priors, window.shares)
        if window.priors:
            facts[PRIOR_TRUST] = made.trust.tolist()
        return Histogram(found, *_of_leaves(window.tree, found, made), FROM_LEAVES, facts)

    def _count_all(self, window: Window, counts: TreeCounts) -> Steps[GrowingRegions]:
        first, rest = split_epsilon(window.epsilon, self.total_share, "total_share")
        root = np.zeros(1, dtype=np.int64)
        noisy = yield from window.count(root, first, "all records")
        counts.add(root, noisy, first)
        variance = count_variances(np.array([first.units]))
        known = noisy.astype(np.float64), variance, np.ones(1), noisy.astype(np.float64)
        return GrowingRegions(root, root, np.array([rest.units]), *known)

    def _least_signal(self, root: GrowingRegions) -> float:
        """`leaf_signal`, or more if that would give more leaves than a laptop holds."""
        return max(self.leaf_signal, 2 * float(root.signals[0]) / MOST_LEAVES)

    def _halvings(self, window: Window, growing: GrowingRegions, least_signal: float) -> IntArray:
        """How often each region is to be halved from here on, in this round and later ones.

        [QYL13] balance noise and unevenness for grids: cells in proportion to records times epsilon,
        on a map, and to another power of it in other dimensions. Here the same for each region.
        """
        tree, axes = window.tree, wide_axes(window.domain)
        signals = growing.signals / (least_signal * growing.evenness)
        pieces = np.maximum(signals, 1.0) ** (2 * axes / (axes + 2))
        pieces = np.where(growing.turns == 0, np.maximum(pieces, 4.0), pieces)
        halvings = np.where(pieces >= 2, np.ceil(np.log2(pieces)), 0)
        possible = len(halving_axes(window.domain.shape)) - growing.turns
        possible = np.where(tree.cells(growing.regions) > 1, possible, 0)
        halvings = np.minimum(halvings, possible)
        if axes == 2:  # down to squares: regions twice as long as wide are cut by more edges
            halvings = np.maximum(halvings - (growing.turns + halvings) % 2, 0)
        return np.asarray(halvings, dtype=np.int64)

    def _limit(self, growing: GrowingRegions, halvings: IntArray, most: int) -> IntArray:
        """The same, but nothing for regions of least signal where there would be more than `most`.

        `_least_signal` limits what records make; with a low `leaf_signal` noise alone makes more.
        """
        _, steps = self._rounds(halvings)
        more = 2**steps - 1
        if len(growing) + int(more.sum()) <= most:
            return halvings
        order = np.argsort(-growing.signals, kind="stable")
        beyond = order[len(growing) + np.cumsum(more[order]) > most]
        halvings[beyond] = 0
        return halvings

    def _rounds(self, halvings: IntArray) -> tuple[IntArray, IntArray]:
        """The rounds before the last for so many halvings, and the halvings in the one that comes next."""
        before = np.maximum(halvings - LAST_HALVINGS, 0)
        rounds = -(-before // self.halvings)
        return rounds, np.where(rounds > 0, -(-before // np.maximum(rounds, 1)), halvings)

    def _cut(
        self,
        tree: RegionTree,
        growing: GrowingRegions,
        halvings: IntArray,
        kept: int,
        growth: float,
    ) -> Grown:
        """Cut regions for this round. With rounds to go a region pays from what is not kept for the last of
        them, and leaves most of that too."""
        rounds, steps = self._rounds(halvings)
        shares = 1 / np.cumsum(float(growth) ** np.arange(rounds.max(initial=0) + 1))
        purse = np.maximum(growing.left - kept, 0)
        price = np.maximum((purse * shares[rounds]).astype(np.int64), 1)
        price = np.where(rounds == 0, growing.left, price)
        return Grown(
            growing, steps, price, *halve_often(tree, growing.regions, growing.turns, steps)
        )


@dataclass(frozen=True, eq=False)
class GrowingRegions:
    """Regions that were counted and may have budget left."""

    regions: IntArray
    turns: IntArray  # of halving that they have had
    left: IntArray  # of the budget, in units
    counts: FloatArray  # what is known of them so far
    variances: FloatArray
    evenness: FloatArray  # how many times more records than usual they must hold to be cut
    usual: FloatArray  # the median of the pieces of what each is a piece of

    def __len__(self) -> int:
        return len(self.regions)

    @property
    def signals(self) -> FloatArray:
        """Records times the budget that is left: how clear of its noise the next count will be."""
        return np.asarray(np.maximum(self.counts, 0.0) * (self.left / UNITS_PER_EPSILON))

    def among(self, some: Any) -> GrowingRegions:
        return GrowingRegions(*(getattr(self, f.name)[some] for f in fields(self)))

    def asked_with(self, grown: Grown) -> RoundCounts:
        """These regions, which are not cut, and the pieces of others."""
        growing, owners = grown.growing, grown.owners
        parts = (
            (self.regions, grown.pieces),
            (self.turns, (growing.turns + grown.steps)[owners]),
            (self.left, grown.prices),
            (np.ones(len(self), np.bool_), (growing.left == grown.price)[owners]),
            (self.evenness, growing.evenness[owners]),
            (self.usual, np.zeros(len(owners))),
            (np.full(len(self), ALONE), owners),
        )
        return RoundCounts(*(np.concatenate(both) for both in parts))


@dataclass(frozen=True, eq=False)
class Grown:
    """The pieces that regions were cut into."""

    growing: GrowingRegions
    steps: IntArray  # of halving, for each region
    price: IntArray  # of the count of any of its pieces, in units
    pieces: IntArray
    owners: IntArray  # the place among `growing` of what each is a piece of

    @property
    def prices(self) -> IntArray:
        return np.asarray(self.price[self.owners])

    def learn(self, tree: RegionTree, noisy: IntArray) -> GrowingRegions:
        """The pieces with their counts, moved towards the sum that was known before."""
        growing, owners = self.growing, self.owners
        variance, pieces = count_variances(self.price), np.bincount(owners, minlength=len(growing))
        lack = growing.counts - np.bincount(owners, noisy, minlength=len(growing))
        moved = lack * variance / (pieces * variance + growing.variances)
        return GrowingRegions(
            self.pieces,
            (growing.turns + self.steps)[owners],
            (growing.left - self.price)[owners],
            noisy + moved[owners],
            variance[owners],
            self._evenness(tree, noisy, variance, growing.counts / np.maximum(pieces, 1))[owners],
            lower_medians(owners, noisy),
        )

    def _evenness(
        self, tree: RegionTree, noisy: IntArray, variance: FloatArray, mean: FloatArray
    ) -> FloatArray:
        """How even the pieces of each region are, pooled over regions with about equally clear counts.

        The spread is the variance of the pieces' counts around a plane, less that of the noise, over the square
        of their mean. Noise and unevenness balance at a number of records that goes with the
        inverse of its root; at a spread of one, at the usual number. What is pooled must be found
        round after round to count in full.
        """
        squares, freedom = squares_around_plane(tree, self.pieces, self.owners, noisy)
        clearness = np.maximum(mean, 0.0) / np.sqrt(variance)
        known = (clearness > 1) & (freedom > 0)
        octave = np.log2(np.clip(clearness, 1.0, 2.0 ** (OCTAVES - 1))).astype(np.int64)
        spread = (squares / np.maximum(freedom, 1) - variance)[known] / mean[known] ** 2

        def pool(values: FloatArray | IntArray) -> FloatArray:
            return np.asarray(np.bincount(octave[known], values, minlength=OCTAVES))

        numbers, freedoms = pool(np.ones(known.sum())), pool(freedom[known])
        # A spread below two standard deviations of its own noise says no more than these.
        least = np.sqrt(8 / np.maximum(freedoms, 1)) / 4.0 ** np.arange(OCTAVES)
        pooled = np.maximum(pool(spread) / np.maximum(numbers, 1), least)
        evenness = np.where(numbers > 0, np.clip(pooled**-0.5, LEAST_EVEN, MOST_EVEN), 1.0)
        found = np.minimum(evenness[octave], MORE_EVEN * self.growing.evenness)
        return np.asarray(np.where(freedom > 0, found, self.growing.evenness))


class Forecast:
    """What priors say about the pieces of regions. It is used as long as the noisy counts bear it out.

    Priors are public, and noisy counts are too: both may decide about cuts and prices. Where priors are right, rounds
    that only find out where to cut need little of the budget. All counts of the rounds so far are
    compared with their forecasts: the slope of what the counts move into pieces, compared with even regions, over what
    the forecast moves there. If it is too small, the priors decide nothing from then on.
    """

    def __init__(self, tree: RegionTree, priors: Sequence[Prior]) -> None:
        self._tree, self._priors = tree, priors
        self.fits = len(priors) > 0
        self._product = self._fit = 0.0

    def learn(self, grown: Grown, found: GrowingRegions) -> GrowingRegions:
        """The pieces, with counts that are joined with their forecasts if these fit what was counted so far."""
        if not self.fits or len(found) == 0:
            return found
        held = np.maximum(grown.growing.counts, 0.0)[grown.owners]
        shares = [self._shares(grown, partial(one.measure, self._tree)) for one in self._priors]
        forecast = held * np.mean(shares, axis=0)
        even = held * self._shares(grown, self._tree.cells)
        moved = (forecast - even) / found.variances
        self._product += float(moved @ (forecast - even))
        self._fit += float(moved @ (found.counts - even))
        by_chance = FIT_BY_CHANCE * self._product**0.5
        self.fits = self._fit - by_chance > LEAST_FIT * self._product
        return _joined(found, forecast) if self.fits else found

    def _shares(self, grown: Grown, measure: Callable[[IntArray], Any]) -> FloatArray:
        """The share that each piece has of its region, by some measure of regions."""
        whole = measure(grown.growing.regions)[grown.owners]
        return np.asarray(measure(grown.pieces) / whole)


def _joined(found: GrowingRegions, forecast: FloatArray) -> GrowingRegions:
    """Counts and forecasts, by the inverse of their variances, except where they are too far apart."""
    drift = (DRIFT * forecast) ** 2 + forecast + 1
    counts, variances = join_near(found.counts, found.variances, forecast, drift)
    return replace(found, counts=counts, variances=variances)


def squares_around_plane(
    tree: RegionTree, pieces: IntArray, owners: IntArray, noisy: IntArray
) -> tuple[FloatArray, IntArray]:
    """The squares of each group's counts around a plane through them, and their degrees of freedom.

    Counts are scaled to equal cells, because pieces may differ by one. Pieces form a regular grid,
    so that the plane's slopes along the axes are found one by one.
    """
    number = np.bincount(owners)

    def centre(values: FloatArray) -> FloatArray:
        return np.asarray(values - (np.bincount(owners, values) / number)[owners])

    cells = tree.cells(pieces).astype(np.float64)
    y = centre(noisy * ((np.bincount(owners, cells) / number)[owners] / cells))
    squares, freedom = np.bincount(owners, y**2).astype(np.float64), number - 1
    for axis in range(tree.dimensions):
        x = centre((tree.low[pieces, axis] + tree.high[pieces, axis]) / 2)
        length, slope = np.bincount(owners, x**2), np.bincount(owners, x * y)
        sloped = length > 0
        squares[sloped] -= slope[sloped] ** 2 / length[sloped]
        freedom = freedom - sloped
    return np.maximum(squares, 0.0), freedom


def _of_leaves(
    tree: RegionTree, leaves: IntArray, made: Estimated
) -> tuple[FloatArray, FloatArray]:
    """The estimates of the leaves from all counts, and the scale of the noise that least squares leave in
    each, from which the intervals are made."""
    variances = smooth_variances(tree, made.variances)[leaves]
    return made.estimates[leaves], scales_of_variances(variances)


def _estimate_release(release: Any) -> tuple[FloatArray, FloatArray]:
    """The same from the measurements of a release, for `htf verify`.

    What was found about priors is found again, and must be what the release says.
    """
    made = estimate_regions(
        release.tree,
        release.measurements.tree_counts(),
        release.priors,
        release.protection.shares,
        release.background,
    )
    if release.priors and not np.array_equal(made.trust, release.prior_trust):
        raise InputError("the trust in priors does not follow from the measurements")
    return _of_leaves(release.tree, release.leaves, made)


Htf.estimators = {FROM_LEAVES: _estimate_release}
