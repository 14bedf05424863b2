"""The private kd-tree.

G. Cormode, C. Procopiuc, D. Srivastava, E. Shen, T. Yu: Differentially Private Spatial Decompositions,
ICDE 2012. Every node is cut near its median, found by the exponential mechanism, and counted; then
least squares makes the counts of the whole tree agree, here for a tree in which some branches end
early; and subtrees of small count are cut off.

Choices. As in the HTF paper the tree is binary, every level is counted, and the medians have 15 % of
the budget, shared evenly by the levels. The geometric budget grows by the cube root of 2 from one
level to the next, towards the leaves. A node of one cell cannot be cut: it is a leaf, is known to be one
before it is counted, and gets in one count all that its path has not spent. There is no rule for
the height: of 8 to 20, 12 to 18 were best on the maps tried, and 16 never far from it. Medians put
as many points into each leaf, so empty land ends up in few large leaves together with what lies at
their edges: more budget does not mend that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from htf.curator.window import Steps, Window
from htf.errors import BudgetError, InputError
from htf.estimation.least_squares import TreeCounts
from htf.frame.domain import Domain, IntArray
from htf.frame.grids import MOST_LEAVES
from htf.mechanisms.base import (
    Histogram,
    Mechanism,
    check_share,
    parameter,
    read_integer,
    read_share,
    read_text,
    split_epsilon,
)
from htf.mechanisms.htf_paper import choose_axes, deepest_useful_height
from htf.privacy.epsilon import Epsilon
from htf_bench.mechanisms.quadtree import GEOMETRIC, check_tree, estimate_and_prune, level_shares


@dataclass(frozen=True)
class KdTree(Mechanism):
    """Private kd-tree: cut near the medians, count every level, make the counts agree."""

    name = "kdtree"
    citation = (
        "Cormode, Procopiuc, Srivastava, Shen, Yu: Differentially private spatial decompositions, "
        "ICDE 2012"
    )

    height: int = parameter(16, read_integer, "height of the tree, in binary cuts")
    budget: str = parameter(
        GEOMETRIC, read_text, "of the counts over the levels: geo (grows to the leaves) or uniform"
    )
    partition_share: float = parameter(0.15, read_share, "share of the budget for the medians")
    prune_below: int = parameter(
        32, read_integer, "an estimate below this makes a node a leaf, afterwards (0: no pruning)"
    )

    def check(self) -> None:
        check_tree(self.height, self.budget, self.prune_below)
        check_share("partition_share", self.partition_share)

    def build(self, window: Window) -> Steps[Histogram]:
        height = self._clamp_height(window.domain)
        budget = PathBudget(window.epsilon, height, self.partition_share, self.budget)
        budget.refuse_if_too_small()
        counts = TreeCounts()
        level = np.zeros(1, dtype=np.int64)
        for node_height in range(height, -1, -1):
            if len(level):
                level = yield from self._build_level(window, level, node_height, budget, counts)
        leaves = np.flatnonzero(window.tree.slabs == 0)
        return estimate_and_prune(window, leaves, counts, self.prune_below, height)

    def _clamp_height(self, domain: Domain) -> int:
        """The height as set, but no more than the grid can use."""
        height = min(self.height, deepest_useful_height(domain))
        if 2**height > MOST_LEAVES:
            raise InputError(
                f"height {height} makes up to {2**height} leaves, more than {MOST_LEAVES}: "
                "set a lower height"
            )
        return height

    def _build_level(
        self, window: Window, level: IntArray, height: int, budget: PathBudget, counts: TreeCounts
    ) -> Steps[IntArray]:
        """Count the nodes of one height and cut those that can be cut. Returns their children."""
        is_leaf = (window.tree.cells(level) == 1) | (height == 0)
        epsilon = np.where(is_leaf, budget.left_at(height).units, budget.counts[height].units)
        noisy = yield from window.count(level, epsilon, f"height {height}: counts")
        counts.add(level, noisy, epsilon)
        nodes: IntArray = level[~is_leaf]
        if len(nodes) == 0:
            return level[:0]
        axis_order = list(range(window.tree.dimensions))[::-1]  # y, x on a map, as in htf-paper
        axes = choose_axes(window.tree, nodes, height, axis_order)
        cuts = yield from window.choose_medians(
            nodes, axes, budget.median, f"height {height}: medians"
        )
        children: IntArray = window.tree.split(nodes, axes, cuts).ravel()
        return children


class PathBudget:
    """The budget that a path from the root to a leaf spends at each height, on counts and on medians."""

    def __init__(self, epsilon: Epsilon, height: int, partition_share: float, budget: str) -> None:
        partition, data = Epsilon(0), epsilon
        if height > 0:
            partition, data = split_epsilon(epsilon, partition_share, "partition_share")
        shares = level_shares(data, height, budget, dimensions=2)
        self.counts = shares[::-1]
        self.median = partition // max(height, 1)
        self._epsilon, self._height = epsilon, height

    def left_at(self, height: int) -> Epsilon:
        """The budget left to a path at a node of this height, before the node is counted."""
        above = sum(share.units for share in self.counts[height + 1 :])
        return Epsilon(self._epsilon.units - above - self.median.units * (self._height - height))

    def refuse_if_too_small(self) -> None:
        least = min(share.units for share in self.counts)
        if least == 0 or (self._height > 0 and self.median.units == 0):
            raise BudgetError(
                f"epsilon {self._epsilon} is too small to be shared by the counts of "
                f"{self._height + 1} levels and the medians of {self._height}"
            )
