"""The Homogeneous Tree Framework as published.

S. Shaham, G. Ghinita, R. Ahuja, J. Krumm, C. Shahabi: HTF: Homogeneous Tree Framework for
Differentially-Private Release of Location Data, SIGSPATIAL 2021. Where the paper is wrong or silent,
docs/paper-map.md says what is done instead.

The paper first splits the whole tree (Algorithm 2) and then prunes it by noisy counts (Algorithm 3).
Here each level is counted first and only the nodes that survive are split: a pruned node's splits
are never looked at, so the distribution of the release is the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from htf.curator.window import Steps, Window
from htf.errors import BudgetError, InputError
from htf.frame.domain import Domain, FloatArray, IntArray
from htf.frame.tree import RegionTree
from htf.mechanisms.base import (
    Histogram,
    Mechanism,
    parameter,
    read_epsilon,
    read_integer,
    read_optional_integer,
    read_text,
)
from htf.privacy.epsilon import Epsilon, cube_root_of_two_to

POINTS_PER_LEAF = 10  # c0 of the height formula, from the uniform grid's rule


@dataclass(frozen=True)
class HtfPaper(Mechanism):
    """Homogeneous Tree Framework as published: homogeneity-driven splits, pruned by noisy counts."""

    name = "htf-paper"
    citation = "Shaham, Ghinita, Ahuja, Krumm, Shahabi: HTF, SIGSPATIAL 2021"

    epsilon_partition_level: Epsilon = parameter(
        Epsilon.of("0.001"), read_epsilon, "budget for the splits of one level, ε_prt'"
    )
    epsilon_height: Epsilon = parameter(
        Epsilon.of("0.0001"), read_epsilon, "budget for estimating the height"
    )
    height: int | None = parameter(
        None,
        read_optional_integer,
        "height of the tree, at most what the grid can use; none: estimated",
    )
    search_rounds: int = parameter(3, read_integer, "T: rounds of the search for a split")
    split: str = parameter(
        "search", read_text, "search: Algorithm 1; baseline: score every candidate"
    )
    stop_count: int = parameter(100, read_integer, "stop at a noisy count of at most this")
    stop_cells: int = parameter(5, read_integer, "stop at fewer cells than this")
    even_axis: str = parameter(
        "", read_text, "axis cut at even heights (empty: the last one, y on a map)"
    )

    def check(self) -> None:
        if self.height is not None and self.height < 0:
            raise InputError(f"height must not be negative, got {self.height}")
        if self.search_rounds < 0:
            raise InputError(f"search_rounds must not be negative, got {self.search_rounds}")
        if self.split not in ("search", "baseline"):
            raise InputError(f"split must be search or baseline, got {self.split!r}")

    def build(self, window: Window) -> Steps[Histogram]:
        axes = self._axis_order(window.domain)
        self._refuse_what_cannot_fit(window)
        height, facts = yield from self._choose_height(window)
        budget = CountBudget(Epsilon(window.epsilon.units - self._structure_units(height)), height)
        leaves = Leaves()
        level = np.zeros(1, dtype=np.int64)
        for node_height in range(height, -1, -1):
            level = yield from self._build_level(window, level, node_height, budget, axes, leaves)
            if len(level) == 0:
                break
        return leaves.histogram({"height": height, **facts})

    def _build_level(
        self,
        window: Window,
        level: IntArray,
        height: int,
        budget: CountBudget,
        axes: list[int],
        leaves: Leaves,
    ) -> Steps[IntArray]:
        """[HTF, Alg. 3] for the nodes of one height: count them, prune, split the others.

        Returns their children.
        """
        noisy = yield from window.count(level, budget.at(height), f"height {height}: counts")
        if height == 0:  # nothing remains to be spent: the first count stands
            leaves.add(level, noisy, budget.at(0))
            return level[:0]
        stop = (noisy <= self.stop_count * window.shares) | (
            window.tree.cells(level) < max(self.stop_cells, 2)
        )
        if stop.any():
            stopped, remaining = level[stop], budget.remaining_after(height)
            noisy = yield from window.count(stopped, remaining, f"height {height}: stopped nodes")
            leaves.add(stopped, noisy, remaining)
        return (yield from self._split_level(window, level[~stop], height, axes))

    def _split_level(
        self, window: Window, nodes: IntArray, height: int, axis_order: list[int]
    ) -> Steps[IntArray]:
        """[HTF, Alg. 2] for the nodes of one height. Every node has at least two cells."""
        if len(nodes) == 0:
            return nodes
        axes = choose_axes(window.tree, nodes, height, axis_order)
        cuts = Cuts(window, nodes, axes, f"height {height}: splits")
        if self.split == "search":
            steps = cuts.find_split_points(self.epsilon_partition_level, self.search_rounds)
        else:
            steps = cuts.score_all_split_points(self.epsilon_partition_level)
        return window.tree.split(nodes, axes, (yield from steps)).ravel()

    def _choose_height(self, window: Window) -> Steps[tuple[int, dict[str, Any]]]:
        """floor(log2(noisy total * epsilon / 10)), between 0 and what the grid can use."""
        if self.height is not None:
            return min(self.height, deepest_useful_height(window.domain)), {}
        noisy = yield from window.count([0], self.epsilon_height, "height estimation: total")
        noisy_total = int(noisy[0])
        leaf_number = noisy_total * window.epsilon.fraction / POINTS_PER_LEAF
        estimate = math.floor(math.log2(leaf_number)) if leaf_number >= 1 else 0
        height = min(estimate, deepest_useful_height(window.domain))
        return height, {"noisy_total_for_height": noisy_total}

    def _structure_units(self, height: int) -> int:
        height_units = self.epsilon_height.units if self.height is None else 0
        return self.epsilon_partition_level.units * height + height_units

    def _refuse_what_cannot_fit(self, window: Window) -> None:
        """Refuse a budget that is too small for the greatest possible height, before the first draw."""
        deepest = deepest_useful_height(window.domain)
        height = deepest if self.height is None else min(self.height, deepest)
        structure, level = self._structure_units(height), self.epsilon_partition_level
        left = max(window.epsilon.units - structure, 0)
        # The root's is the smallest share.
        if CountBudget(Epsilon(left), height).at(height).units == 0:
            estimated = self.height is None
            estimation = f" and epsilon_height {self.epsilon_height}" if estimated else ""
            origin = "the greatest height that this grid can use" if estimated else "as set"
            raise BudgetError(
                f"epsilon {window.epsilon} is too small: epsilon_partition_level {level} for each "
                f"of {height} levels ({origin}){estimation} come to {Epsilon(structure)} and leave "
                "nothing for the counts. Raise epsilon, or lower epsilon_partition_level or height."
            )
        most = 2 * self.search_rounds + 1 if self.split == "search" else max(window.domain.shape)
        if height > 0 and level.units < most:
            raise BudgetError(
                f"epsilon_partition_level {level} is too small to be shared by {most} candidates"
            )

    def _axis_order(self, domain: Domain) -> list[int]:
        """The axes cut at heights 0, 1, … modulo their number: y, x on a map."""
        names = domain.names
        if self.even_axis and self.even_axis not in names:
            raise InputError(f"even_axis must be one of {', '.join(names)}, got {self.even_axis!r}")
        first = names.index(self.even_axis) if self.even_axis else len(names) - 1
        return [(first - i) % len(names) for i in range(len(names))]


class CountBudget:
    """The budget of the counts at heights h to 0, growing by the cube root of 2 from level to level
    towards the leaves [HTF, Alg. 3 line 3]."""

    def __init__(self, epsilon_data: Epsilon, height: int) -> None:
        self._epsilon_data = epsilon_data
        self._shares = epsilon_data.share(
            [cube_root_of_two_to(height - i) for i in range(height + 1)]
        )

    def at(self, height: int) -> Epsilon:
        return self._shares[height]

    def remaining_after(self, height: int) -> Epsilon:
        """The budget left to a path that stops at this height."""
        return Epsilon(self._epsilon_data.units - sum(s.units for s in self._shares[height:]))


class Leaves(list[tuple[IntArray, IntArray, FloatArray]]):
    """Collects leaves as they are found, each with one raw count and its scale."""

    def add(self, regions: IntArray, noisy_counts: IntArray, epsilon: Epsilon) -> None:
        self.append((regions, noisy_counts, np.full(len(regions), 1 / float(epsilon))))

    def histogram(self, facts: dict[str, Any]) -> Histogram:
        regions, counts, scales = (np.concatenate(column) for column in zip(*self, strict=True))
        return Histogram(regions, counts, scales, "last-count", facts)


def deepest_useful_height(domain: Domain) -> int:
    """Halvings after which every node of a balanced tree is one cell."""
    return sum((cells - 1).bit_length() for cells in domain.shape)


def choose_axes(tree: RegionTree, nodes: IntArray, height: int, axis_order: list[int]) -> IntArray:
    """The axis whose turn it is at this height, or the next one that is not down to one cell."""
    axes = np.full(len(nodes), -1, dtype=np.int64)
    for step in range(len(axis_order)):
        axis = axis_order[(height + step) % len(axis_order)]
        widths = tree.high[nodes, axis] - tree.low[nodes, axis]
        axes[(axes < 0) & (widths > 1)] = axis
    return axes


class Cuts:
    """Chooses where to cut the nodes of a level, in cells. Noisy objectives of candidates are bought once each, and
    remembered."""

    def __init__(self, window: Window, nodes: IntArray, axes: IntArray, label: str) -> None:
        self._window, self._nodes, self._axes, self._label = window, nodes, axes, label
        self._low, self._high = window.tree.low[nodes, axes], window.tree.high[nodes, axes]
        self._candidates, self._values = np.empty((2, len(nodes), 0), dtype=np.int64)

    def find_split_points(self, epsilon: Epsilon, rounds: int) -> Steps[IntArray]:
        """[HTF, Alg. 1], for all nodes of a level at once.

        k = 1 … U - 1 cells go to the left child. The search holds an interval [l, r] and its best
        candidate k, and tries the middles of [l, k] and [k, r]. A candidate is scored once.
        """
        each = epsilon // (2 * rounds + 1)
        left, right = np.ones_like(self._low), self._high - self._low
        middle = left + (right - left) // 2
        middle_score = (yield from self._scores(middle[:, None], each))[:, 0]
        for _ in range(rounds):
            before, after = left + (middle - left) // 2, middle + (right - middle) // 2
            new = yield from self._scores(np.stack([before, after], axis=1), each)
            scores = np.stack([middle_score, new[:, 0], new[:, 1]])
            best = np.argmin(scores, axis=0)  # ties: the middle
            left, middle, right = (
                np.choose(best, [before, left, middle]),
                np.choose(best, [middle, before, after]),
                np.choose(best, [after, middle, right]),
            )
            middle_score = np.choose(best, scores)
        return self._low + middle

    def _scores(self, candidates: IntArray, epsilon: Epsilon) -> Steps[IntArray]:
        """The noisy objective of each node's candidates, one column each."""
        known = self._values.shape[1]
        self._candidates = np.column_stack([self._candidates, candidates])
        places = np.argmax(self._candidates[:, None, :] == candidates[:, :, None], axis=2)
        rows, columns = np.nonzero(places == known + np.arange(candidates.shape[1]))
        values = np.zeros(candidates.shape, dtype=np.int64)
        if len(rows):
            cuts = self._low[rows] + candidates[rows, columns]
            values[rows, columns] = yield from self._window.score_splits(
                self._nodes[rows], self._axes[rows], cuts, epsilon, self._label
            )
        self._values = np.column_stack([self._values, values])
        return np.take_along_axis(self._values, places, axis=1)

    def score_all_split_points(self, epsilon: Epsilon) -> Steps[IntArray]:
        """The paper's baseline: all U - 1 candidates, each with an equal share of the level's budget."""
        candidates = self._high - self._low - 1
        first = np.cumsum(candidates) - candidates
        owner = np.repeat(np.arange(len(candidates)), candidates)
        cuts = self._low[owner] + 1 + np.arange(len(owner)) - first[owner]
        shares = (epsilon.units // candidates)[owner]
        question = self._nodes[owner], self._axes[owner], cuts, shares, self._label
        noisy = yield from self._window.score_splits(*question)
        # Within a node the smallest first, ties to the lowest cut.
        order = np.lexsort((noisy, owner))
        chosen: IntArray = cuts[order[first]]
        return chosen
