"""The last counts of `htf`: each begins with a look, after which the region may be searched for a spike.

A region of few records is not cut further, so nobody looks inside it. One block of cells may hold most of what
it holds: a station, a stadium. Then the region has far more than those beside it. So its last count is a look at a share of
the price. If that is no surprise, the rest of the price refines the count, which is then as good as if nobody had looked
first (`Window.look`). If it is, the rest buys the counts of all blocks in the region. docs/mechanism.md gives the reasons.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htf.curator.window import Steps, Window
from htf.estimation.least_squares import TreeCounts
from htf.estimation.noise_law import count_variances
from htf.frame.domain import FloatArray, IntArray
from htf.frame.halving import halve_often
from htf.frame.tree import RegionTree

SURPRISING = 3.5  # deviations of a look above what is usual, from which a region is searched
BLOCK = 16  # cells of a block, at most
MOST_HALVINGS = 12  # from a region to its blocks: among more of them noise would stand out, too
ALONE = -1  # the group of regions that are counted once more, without those beside them


@dataclass(frozen=True, slots=True, eq=False)
class RoundCounts:
    """What is counted in a round."""

    regions: IntArray
    turns: IntArray  # of halving that they have had
    prices: IntArray  # in units
    last: NDArray[np.bool_]  # whether nothing is left for another count
    evenness: FloatArray  # of what they are pieces of
    usual: FloatArray  # the median of the pieces beside each, where that was counted before
    groups: IntArray  # pieces of one region, counted now, share a number

    def __len__(self) -> int:
        return len(self.regions)

    def among(self, some: Any) -> RoundCounts:
        return RoundCounts(*(getattr(self, f.name)[some] for f in fields(self)))

    def ask(
        self, window: Window, share: float, room: int, counts: TreeCounts, label: str
    ) -> Steps[tuple[IntArray, IntArray]]:
        """The noisy counts, and the leaves in which last counts end, `room` at most. A look costs `share` of the price."""
        looks = (self.prices * share).astype(np.int64)
        looked = self.last & (window.tree.cells(self.regions) > BLOCK) & (looks > 0)
        noisy, plain = np.empty(len(self), dtype=np.int64), self.among(~looked)
        if len(plain):
            question = plain.regions, plain.prices
            noisy[~looked] = yield from window.count(*question, f"{label}: counts")
            counts.add(plain.regions, noisy[~looked], plain.prices)
        leaves = plain.regions[plain.last]
        if looked.any():
            asked = self.among(looked)._look(
                window, looks[looked], room - len(plain), counts, label
            )
            noisy[looked], found = yield from asked
            leaves = np.concatenate([leaves, found])
        return noisy, leaves

    def _look(
        self, window: Window, looks: IntArray, room: int, counts: TreeCounts, label: str
    ) -> Steps[tuple[IntArray, IntArray]]:
        asked = window.look(self.regions, looks, self.prices, f"{label}: looks")
        noisy = np.array((yield from asked))
        halvings = _halvings(window.tree, self.regions)
        searched = self._surprising(noisy, looks, halvings, room)
        counts.add(self.regions[searched], noisy[searched], looks[searched])
        counts.searched = np.concatenate([counts.searched, self.regions[searched]])
        refined = np.flatnonzero(~searched)
        leaves = self.regions[refined]
        if len(refined):
            rest = (self.prices - looks)[refined]
            noisy[refined] = yield from window.refine(leaves, rest, f"{label}: refined")
            counts.add(leaves, noisy[refined], self.prices[refined])
        if searched.any():
            cut = self.regions[searched], self.turns[searched], halvings[searched]
            blocks, owners = halve_often(window.tree, *cut)
            prices = (self.prices - looks)[searched][owners]
            inside = yield from window.count(blocks, prices, f"{label}: blocks")
            counts.add(blocks, inside, prices)
            leaves = np.concatenate([leaves, blocks])
        return noisy, leaves

    def _surprising(
        self, noisy: IntArray, looks: IntArray, halvings: IntArray, room: int
    ) -> NDArray[np.bool_]:
        """Whether a look shows far more than is usual for the pieces beside it, the most surprising first.

        How far pieces differ is known from the rounds before, as evenness: 1 over their deviation, relative to their mean.
        """
        usual, pieces = self.usual.copy(), self.groups != ALONE
        usual[pieces] = lower_medians(self.groups[pieces], noisy[pieces])
        usual = np.maximum(usual, 0.0)
        spread = usual / np.maximum(self.evenness, 1.0)
        surprise = (noisy - usual - spread) / np.sqrt(count_variances(looks))
        order = np.argsort(-surprise, kind="stable")
        blocks = np.cumsum((1 << halvings)[order] - 1)
        affordable = np.empty(len(self), dtype=np.bool_)
        affordable[order] = len(self) + blocks <= room
        return affordable & (surprise > SURPRISING)


def lower_medians(groups: IntArray, values: IntArray | FloatArray) -> FloatArray:
    """For each value the middle one of its group, or the lower one of two: two spikes in four do not move it."""
    if len(values) == 0:
        return np.empty(0)
    _, members, numbers = np.unique(groups, return_inverse=True, return_counts=True)
    middles = np.cumsum(numbers) - numbers + (numbers - 1) // 2
    found = values[np.lexsort((values, members))][middles][members]
    return np.asarray(found, dtype=np.float64)


def _halvings(tree: RegionTree, regions: IntArray) -> IntArray:
    """From each region to its blocks."""
    halvings = np.ceil(np.log2(np.maximum(tree.cells(regions) / BLOCK, 1.0)))
    return np.minimum(halvings, MOST_HALVINGS).astype(np.int64)
