"""Given hierarchies: every level of named cells is counted, and all counts are used together.

Zones of a public layer lie in districts, and those in a city. Nothing need be found out about where to cut: the levels
are public (htf.frame.hierarchy), and so are their shares of the budget. One noisy count per zone with all of epsilon has
the least noise at the lowest level, but sums of many such counts are noisy. A small share buys upper levels with far
fewer regions, and the noise of all levels is drawn together, so that counts agree (htf.curator.agreeing). The shares are those with the least geometric mean of errors over all levels, where the lowest level is
at most `lowest` times as noisy as with all of epsilon. In tables of several axes most regions hold nothing: these are
found first, and spend more on their own count than on those inside them. Estimates are whole numbers that are not
negative and add up (htf.estimation.hierarchy). docs/zones.md has the formula, docs/measurements.md what was
measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htf.base import numerals
from htf.curator.window import Steps, Window
from htf.errors import BudgetError, InputError
from htf.estimation.agreeing import tiers
from htf.estimation.hierarchy import HIERARCHY, estimate_hierarchy
from htf.estimation.least_squares import TreeCounts
from htf.frame.domain import FloatArray, IntArray
from htf.frame.grids import MOST_GRID_CELLS, MOST_LEAVES
from htf.frame.hierarchy import Edges, cells_below, level_size, levels_of, refine, refined_sizes
from htf.frame.nesting import Nesting
from htf.frame.tree import RegionTree
from htf.mechanisms.base import (
    Histogram,
    Mechanism,
    parameter,
    read_integer,
    read_number,
    read_text,
)
from htf.privacy.epsilon import UNITS_PER_EPSILON, Epsilon

_ROOT = np.zeros(1, dtype=np.int64)
DECISION = 0.04  # of the budget: a table that decides which regions are small
OF_SMALL = 0.7  # of what a small region has left, for its own count
MOST_ASKED = 2**20  # regions in such a table
AUTO, EVEN = "auto", "even"
WORDS = {"shares": AUTO, "weights": EVEN}
LOWEST = 1.09  # times
ENOUGH = 0.4  # of the error of flat sums
MOST_EPSILON = 20.0  # beyond it there is no noise to speak of, and sinh overflows
PARTS = 1000  # of epsilon, into which shares are rounded
FIRST_PARTS = 10  # of an upper level, where the search for shares begins
# Parts that are moved from one level to another, while that helps; then half as many.
FIRST_MOVE = 32
LEAST_GAIN = 1e-12
MOST_DRAWS = 2**20  # of noise, in all, for counts that add up: up to some seconds, with OpenDP
LEAST_DRAWS = 4.0  # that each of them may take in any case
WORSE = 20.0  # times: how much more it counts if an upper level is noisier than sums of flat counts


@dataclass(frozen=True)
class Zones(Mechanism):
    """Given hierarchy of zones or categories: every level counted, whole numbers that add up."""

    name = "zones"
    citation = (
        "Hay, Rastogi, Miklau, Suciu: Boosting the accuracy of differentially private histograms "
        "through consistency, PVLDB 2010; Hardt, Talwar: On the geometry of differential privacy, STOC 2010; "
        "what was changed is in docs/zones.md"
    )

    shares: str = parameter(
        AUTO,
        read_text,
        "of the budget, from the cells up, such as 0.8,0.1,0.1; auto: the best, by formula",
    )
    weights: str = parameter(
        EVEN,
        read_text,
        "how much each level matters, from the cells up, such as 2,1,1; even: all alike",
    )
    lowest: float = parameter(
        LOWEST,
        read_number,
        "noise of the cells, at most, in times what it is with all of the budget",
    )
    small: float = parameter(
        3.0,
        read_number,
        "a region below so many deviations of the noise in the sum of its cells is small; 0: none is",
    )
    most_cells: int = parameter(
        MOST_GRID_CELLS, read_integer, "cells of axes without names are joined where there are more"
    )

    def check(self) -> None:
        for name, word in WORDS.items():
            if getattr(self, name) != word:
                _read_list(getattr(self, name), name)
        if not 1 < self.lowest <= 100:
            raise InputError(f"lowest must be above 1 and at most 100, got {self.lowest}")
        if not 0 <= self.small < math.inf:
            raise InputError(f"small must not be negative, got {self.small}")
        if self.most_cells < 1:
            raise InputError(f"most_cells must be positive, got {self.most_cells}")

    def build(self, window: Window) -> Steps[Histogram]:
        levels = levels_of(window.domain, self.most_cells)
        decided = [depth for depth in range(len(levels)) if self._decides(levels, depth)]
        price = Epsilon(int(window.epsilon.units * DECISION))
        shares = self.choose_shares(window.epsilon - price * len(decided), levels)
        units, counts, leaves = [share.units for share in shares], TreeCounts(), []
        growing, pending = _Growing(_ROOT, np.full(1, np.inf), np.full(1, sum(units))), _Pending()
        for depth, edges in enumerate(levels):
            if growing.beyond(window.tree, edges, MOST_LEAVES).any():  # which ones, counts decide
                growing = growing.known((yield from pending.count(window, counts)))
            whole, growing = growing.divide(growing.beyond(window.tree, edges, MOST_LEAVES))
            yield from whole.count(window, f"level {depth}: not divided", counts)
            growing = growing.refined(window.tree, edges)
            below = refined_sizes(window.tree, growing.regions, levels[-1])
            prices = growing.part(units[depth], sum(units[depth:]))
            if depth in decided and price.units:
                table = yield from _ask_table(
                    window, edges, price, f"level {depth}: which are small"
                )
                small = growing.are_small(table, edges, window.tree, below, self.small)
                prices = np.where(small, (growing.left * OF_SMALL).astype(np.int64), prices)
            prices = np.where(below == 1, growing.left, prices)
            growing = pending.add(growing, prices, depth)
            final, growing = growing.divide(below == 1)
            leaves += [whole.regions, final.regions]
        yield from pending.count(window, counts)
        found = np.concatenate(leaves)
        estimates, scales = estimate_hierarchy(window.tree, found, counts)
        facts = {
            "levels": [level_size(edges) for edges in levels],
            "shares": [str(share) for share in shares],
        }
        return Histogram(found, estimates, scales, HIERARCHY, facts)

    def _decides(self, levels: Sequence[Edges], depth: int) -> bool:
        """Whether it is asked which regions of a level are small: where it divides several axes, and is itself divided."""
        divided = sum(len(edge) > 2 for edge in levels[depth])
        between = 0 < depth < len(levels) - 1
        return (
            self.small > 0 and between and divided > 1 and level_size(levels[depth]) <= MOST_ASKED
        )

    def choose_shares(self, epsilon: Epsilon, levels: Sequence[Edges]) -> list[Epsilon]:
        """The share of each level, from the whole map down to the cells."""
        if self.shares == AUTO:
            weights = None if self.weights == EVEN else self._of_levels("weights", len(levels))
            most = min(float(epsilon), MOST_EPSILON)
            parts = best_shares(cells_below(levels), most, weights, self.lowest)
        else:
            parts = self._of_levels("shares", len(levels))
        found = epsilon.share([Fraction(repr(part)) for part in parts])
        if found[-1].units == 0:
            raise BudgetError(
                f"epsilon {epsilon} is too small to be shared by {len(levels)} levels"
            )
        return found

    def _of_levels(self, name: str, levels: int) -> list[float]:
        """One number for each level, from the whole map down. Levels beyond those that are given have 0."""
        numbers = _read_list(getattr(self, name), name)
        if len(numbers) > levels:
            raise InputError(
                f"{name} has {len(numbers)} numbers, and there are only {levels} levels, the whole map included"
            )
        return [0.0] * (levels - len(numbers)) + numbers[::-1]


@dataclass(frozen=True, eq=False)
class _Growing:
    """The regions of a level, with what is known of each, and what is left of its budget."""

    regions: IntArray
    counts: FloatArray
    left: IntArray  # units

    def divide(self, some: NDArray[np.bool_]) -> tuple[_Growing, _Growing]:
        """Some of them, and the others."""
        return self._among(some), self._among(~some)

    def _among(self, some: NDArray[np.bool_]) -> _Growing:
        return _Growing(self.regions[some], self.counts[some], self.left[some])

    def part(self, of_level: int, of_all: int) -> IntArray:
        """What each may spend on this level: its part of what this and all lower levels have."""
        return np.array([left * of_level // of_all for left in self.left.tolist()], dtype=np.int64)

    def count(self, window: Window, label: str, counts: TreeCounts) -> Steps[None]:
        """Count them with all that each has left."""
        some = self.left > 0
        if some.any():
            noisy = yield from window.count(self.regions[some], self.left[some], label)
            counts.add(self.regions[some], noisy, self.left[some])

    def known(self, counts: FloatArray) -> _Growing:
        """With the counts of all regions of the tree, NaN where there is none."""
        there = counts[self.regions]
        return _Growing(self.regions, np.where(np.isnan(there), self.counts, there), self.left)

    def are_small(
        self, table: IntArray, edges: Edges, tree: RegionTree, below: IntArray, deviations: float
    ) -> NDArray[np.bool_]:
        """Which hold so little, by a table of their level, that the sum of what is to be counted below them, in so many
        cells, would be lost in its noise."""
        places = [
            np.searchsorted(edge, tree.low[self.regions, axis]) for axis, edge in enumerate(edges)
        ]
        found = table.reshape([len(edge) - 1 for edge in edges])[tuple(places)]
        noise = np.sqrt(2.0 * below) / np.maximum(self.left / UNITS_PER_EPSILON, 1e-300)
        return np.asarray(found < deviations * noise)

    def beyond(self, tree: RegionTree, edges: Edges, most: int) -> NDArray[np.bool_]:
        """Which regions are not refined, because there would be more than `most`: those with the lowest counts."""
        sizes = refined_sizes(tree, self.regions, edges)
        order = np.argsort(-self.counts, kind="stable")
        stays = np.zeros(len(sizes), dtype=bool)
        stays[order[len(sizes) + np.cumsum(sizes[order] - 1) > most]] = True
        return np.asarray(stays & (sizes > 1))

    def refined(self, tree: RegionTree, edges: Edges) -> _Growing:
        """The regions of the next level. Until they are counted, each has its share by cells."""
        sizes = refined_sizes(tree, self.regions, edges)
        owners = np.repeat(np.arange(len(sizes)), sizes)
        finer = refine(tree, self.regions, edges)
        share = tree.cells(finer) / tree.cells(self.regions)[owners]
        return _Growing(finer, self.counts[owners] * share, self.left[owners])


class _Pending:
    """Regions of one or more levels that are to be counted together, with the price of each."""

    def __init__(self) -> None:
        self._regions: list[IntArray] = []
        self._prices: list[IntArray] = []
        self._levels: list[int] = []

    def add(self, growing: _Growing, prices: IntArray, level: int) -> _Growing:
        """One whose price is 0 is not counted. Returns them with what they have left."""
        asked = prices > 0
        self._regions.append(growing.regions[asked])
        self._prices.append(prices[asked])
        self._levels.append(level)
        return _Growing(growing.regions, growing.counts, growing.left - prices)

    def count(self, window: Window, counts: TreeCounts) -> Steps[FloatArray]:
        """Count them, so that counts of different levels add up where that does not take too long to draw. Returns the
        counts of all regions of the tree, NaN where there is none."""
        known = np.full(len(window.tree), np.nan)
        regions, place = np.unique(np.concatenate(self._regions), return_inverse=True)
        prices = np.zeros(len(regions), dtype=np.int64)
        np.add.at(prices, place, np.concatenate(self._prices))  # one zone may be its whole district
        nesting = Nesting.of(window.tree, regions)
        tier = tiers(nesting, prices, max(MOST_DRAWS / max(len(regions), 1), LEAST_DRAWS))
        for number in range(int(tier.max(initial=-1)) + 1):
            some, each = regions[tier == number], prices[tier == number]
            label = f"levels {self._levels[0]} to {self._levels[-1]}"
            label += f": inside {number} others" if number else ""
            noisy = yield from window.count_agreeing(some, each, label)
            counts.add(some, noisy, each, agreeing=True)
            known[some] = noisy
        self._regions, self._prices, self._levels = [], [], []
        return known


def _ask_table(window: Window, edges: Edges, price: Epsilon, label: str) -> Steps[IntArray]:
    """Noisy counts of all regions of a level, that decide and are not used again. Estimates from counts that had decided
    how often they are taken would be biased, and sums of many regions would be far off."""
    each = [np.eye(len(edge) - 1, dtype=np.int64) for edge in edges]
    return (yield from window.linear_queries(each, edges, price, label))


def best_shares(
    cells: Sequence[tuple[IntArray, IntArray]],
    epsilon: float,
    weights: Sequence[float] | None = None,
    lowest: float = LOWEST,
) -> list[float]:
    """The shares of levels, from the whole map down, with the least geometric mean of their errors relative to sums of
    one count per cell with all of the budget. `cells` are from htf.frame.hierarchy.cells_below. Only public numbers decide.

    The error of the cells is at most `lowest` times that of such flat counts. For an upper level to be worse than flat sums
    counts WORSE times as much, and to be better than ENOUGH of them counts no more.
    """
    if len(cells) == 1:
        return [1.0]
    matters = np.ones(len(cells)) if weights is None else np.asarray(weights, dtype=np.float64)

    def cost(parts: IntArray) -> float:
        ratios = error_ratios(cells, parts / PARTS, epsilon)
        if ratios[-1] > lowest:
            return math.inf
        each = np.log(np.maximum(ratios, ENOUGH)) + WORSE * np.log(np.maximum(ratios, 1.0))
        return float(np.sum((matters * each)[:-1]))

    starts = [_start(chosen) for chosen in product((0, 1), repeat=len(cells) - 1)]
    _, parts = min((_descend(cost, start) for start in starts), key=lambda found: found[0])
    return [part / PARTS for part in parts.tolist()]


def _start(chosen: Sequence[int]) -> IntArray:
    """A few parts for each of some upper levels, and the rest for the lowest one."""
    parts = np.append(np.array(chosen) * FIRST_PARTS, 0)
    parts[-1] = PARTS - parts.sum()
    return parts


def _descend(cost: Callable[[IntArray], float], parts: IntArray) -> tuple[float, IntArray]:
    """Move parts from one level to another while that makes the cost less."""
    least, move, levels = cost(parts), FIRST_MOVE, range(len(parts))
    while move:
        tries = [_moved(parts, a, b, move) for a in levels for b in levels]
        found = [(cost(one), one) for one in tries if one[:-1].min() >= 0 and one[-1] > 0]
        best, moved = min(found, key=lambda pair: pair[0])
        if best < least - LEAST_GAIN:
            least, parts = best, moved
        else:
            move //= 2
    return least, parts


def _moved(parts: IntArray, giver: int, taker: int, number: int) -> IntArray:
    moved = parts.copy()
    moved[giver] -= number
    moved[taker] += number
    return moved


def error_ratios(
    cells: Sequence[tuple[IntArray, IntArray]], shares: FloatArray, epsilon: float
) -> FloatArray:
    """The error of each level, from the whole map down, over that of sums of flat counts with all of the budget.

    A count with the share e of epsilon has the noise q = 1 / (2 sinh(e epsilon / 2)^2), and a flat sum of n cells n times
    that of e = 1. The sum of n cells is about normal, with n times the noise v per cell of the level below; that it agrees
    with a count of its own multiplies its law by exp(-rate |x|) (htf.estimation.agreeing). Regions weigh by the relative
    error of flat sums, 1 / sqrt(n). Cells are judged by the mean error of a count, 1 / sinh(e epsilon), which is larger
    where whole numbers are coarse. What is known of a region in the end also helps the parts of it.
    """
    from htf.estimation.sharp import peaked  # slow to load

    given = np.asarray(shares, dtype=np.float64) * epsilon
    flat = 0.5 / math.sinh(epsilon / 2) ** 2
    ratios, gains = np.empty(len(cells)), np.ones(len(cells))
    per_cell = 0.5 / math.sinh(given[-1] / 2) ** 2
    ratios[-1] = math.sinh(epsilon) / math.sinh(given[-1])
    for level in range(len(cells) - 2, -1, -1):
        number, times = cells[level]
        noise = number * per_cell
        _, mean, spread = peaked(2 * math.sinh(given[level] / 2) * np.sqrt(noise))
        weight = times / np.sqrt(number)
        each = mean * np.sqrt(math.pi / 2 * noise / (number * flat))
        ratios[level] = np.sum(weight * each) / weight.sum()
        gains[level] = np.sum(times * noise * spread) / np.sum(times * noise)
        per_cell = float(np.sum(times * noise * spread) / np.sum(times * number))
    for level in range(1, len(cells)):
        siblings = cells[level][1].sum() / cells[level - 1][1].sum()
        known = math.sqrt(1 - (1 - gains[level - 1]) / siblings)
        ratios[level] *= known
        gains[level] *= known**2
    return ratios


def _read_list(text: str, name: str) -> list[float]:
    try:
        numbers = [numerals.decimal(one.strip()) for one in text.split(",")]
    except ValueError:
        numbers = [-1.0]
    if not all(0 <= number < math.inf for number in numbers) or numbers[0] == 0:
        raise InputError(
            f"{name} must be {WORDS[name]}, or numbers with commas between them, none below 0 and the first above it, "
            f"got {text!r:.100}"
        )
    return numbers


def _estimate_release(release: Any) -> tuple[FloatArray, FloatArray]:
    """The same from the measurements of a release, for `htf verify`."""
    counts, shares = release.measurements.tree_counts(), release.protection.shares
    return estimate_hierarchy(release.tree, release.leaves, counts, shares, release.background)


Zones.estimators = {HIERARCHY: _estimate_release}
