"""The quadtree of noisy counts.

G. Cormode, C. Procopiuc, D. Srivastava, E. Shen, T. Yu: Differentially private spatial
decompositions, ICDE 2012 [CPSSY12]. The height counts halvings of every axis: height k stands at 2k
in the figures of the HTF paper, whose trees halve one axis at a time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from htf.curator.window import Steps, Window
from htf.errors import BudgetError, InputError
from htf.estimation.least_squares import LEAST_SQUARES, TreeCounts, least_squares
from htf.estimation.noise_law import scales_of_variances
from htf.frame.domain import Domain, FloatArray, IntArray
from htf.frame.grids import MOST_LEAVES, wide_axes
from htf.frame.tree import RegionTree
from htf.mechanisms.base import (
    Histogram,
    Mechanism,
    parameter,
    read_integer,
    read_optional_integer,
    read_text,
)
from htf.privacy.epsilon import Epsilon, cube_root_of_two_to
from htf_bench.grids import Grid

GEOMETRIC, UNIFORM = "geo", "uniform"
USUAL_HEIGHT = 7  # 14 in the figures of the HTF paper; with pruning good from 1e5 to 4e6 records
USUAL_LEAVES = 2**20  # a lower height where more axes would make more


@dataclass(frozen=True)
class Quadtree(Mechanism):
    """Quadtree: midpoints as splits, every level counted, constrained inference over all counts."""

    name = "quadtree"
    citation = (
        "Cormode, Procopiuc, Srivastava, Shen, Yu: Differentially private spatial decompositions, "
        "ICDE 2012"
    )

    height: int | None = parameter(
        None, read_optional_integer, "levels below the root; none: 7, or what 2^20 leaves allow"
    )
    budget: str = parameter(
        GEOMETRIC,
        read_text,
        "geo: growing towards the leaves by 2^(1/3) a level; uniform: all levels equal",
    )
    prune_below: int = parameter(
        32, read_integer, "a node whose estimate is below this is not divided further (0: all are)"
    )

    def check(self) -> None:
        check_tree(self.height, self.budget, self.prune_below)

    def build(self, window: Window) -> Steps[Histogram]:
        height = self.choose_height(window.domain)
        shares = level_shares(window.epsilon, height, self.budget, wide_axes(window.domain))
        refuse_empty_shares(window.epsilon, shares)
        counts, grid = TreeCounts(), Grid.whole(window.domain)
        # Pruning is their last step: all nodes are counted, and all counts used, before it.
        leaves = yield from count_levels(window, grid, 2, shares, counts)
        return estimate_and_prune(window, leaves, counts, self.prune_below, height)

    def choose_height(self, domain: Domain) -> int:
        """The height as set, or a usual one; never more than leaves one cell a node."""
        deepest = max((cells - 1).bit_length() for cells in domain.shape)
        if self.height is None:
            heights = range(min(USUAL_HEIGHT, deepest) + 1)
            return max(h for h in heights if leaf_number(domain, h) <= USUAL_LEAVES)
        height = min(self.height, deepest)
        if leaf_number(domain, height) > MOST_LEAVES:
            raise InputError(
                f"height {height} makes {leaf_number(domain, height)} leaves of this grid, more "
                f"than {MOST_LEAVES}: set a lower height"
            )
        return height


def check_tree(height: int | None, budget: str, prune_below: int) -> None:
    for name, value in (("height", height), ("prune_below", prune_below)):
        if value is not None and value < 0:
            raise InputError(f"{name} must not be negative, got {value}")
    if budget not in (GEOMETRIC, UNIFORM):
        raise InputError(f"budget must be {GEOMETRIC} or {UNIFORM}, got {budget!r}")


def leaf_number(domain: Domain, height: int) -> int:
    return math.prod(min(2**height, cells) for cells in domain.shape)


def level_shares(epsilon: Epsilon, height: int, budget: str, dimensions: int) -> list[Epsilon]:
    """The shares of the budget for the counts of each level, from the root down.

    geo: the best for n_i counts of level i in a query is in proportion to the cube root of n_i
    [CPSSY12, Lemma 3]. A query's border crosses nodes in proportion to 2^((d - 1) i): on a map each
    level gets 2^(1/3) times the one above it.
    """
    if budget == UNIFORM:
        return [epsilon // (height + 1)] * (height + 1)
    return epsilon.share([cube_root_of_two_to((dimensions - 1) * i) for i in range(height + 1)])


def refuse_empty_shares(epsilon: Epsilon, shares: list[Epsilon]) -> None:
    if min(share.units for share in shares) == 0:
        raise BudgetError(f"epsilon {epsilon} is too small to be shared by {len(shares)} levels")


def count_levels(
    window: Window, grid: Grid, fan_out: int, shares: Sequence[Epsilon | None], counts: TreeCounts
) -> Steps[IntArray]:
    """Divide the map by `fan_out` along every axis, level by level, and count level i with
    `shares[i]`, if it has one. Returns the leaves.

    A node of one cell is a leaf, and all that the levels below it would get goes to a second count.
    """
    level, leaves = np.zeros(1, dtype=np.int64), []
    for depth, share in enumerate(shares):
        if depth > 0:
            parts = np.minimum(grid.widths(window.tree, level), fan_out)
            level = grid.cut_evenly(window.tree, level, parts)
        if share is not None:
            noisy = yield from window.count(level, share, f"level {depth}")
            counts.add(level, noisy, share)
        if depth == len(shares) - 1:
            leaves.append(level)
            break
        single = np.all(grid.widths(window.tree, level) == 1, axis=1)
        if single.any():
            leaves.append(level[single])
            remaining = Epsilon(sum(s.units for s in shares[depth + 1 :] if s is not None))
            noisy = yield from window.count(
                level[single], remaining, f"level {depth}: single cells"
            )
            counts.add(level[single], noisy, remaining)
            level = level[~single]
        if len(level) == 0:
            break
    return np.concatenate(leaves)


def estimate_and_prune(
    window: Window, leaves: IntArray, counts: TreeCounts, prune_below: int, height: int
) -> Histogram:
    """Least squares over all counts; then nodes whose estimate is below the limit become leaves, unless that is 0."""
    estimates, variances = least_squares(window.tree, counts)
    if prune_below > 0:
        leaves = prune(window.tree, leaves, counts, estimates, prune_below * window.shares)
    scales = scales_of_variances(variances[leaves])
    return Histogram(leaves, estimates[leaves], scales, LEAST_SQUARES, {"height": height})


def prune(
    tree: RegionTree, leaves: IntArray, counts: TreeCounts, estimates: FloatArray, below: int
) -> IntArray:
    """The topmost counted regions with estimates under `below`, and the leaves outside of them."""
    counted = np.zeros(len(tree), dtype=bool)
    for regions in counts.regions:
        counted[regions] = True
    ends = counted & (estimates < below)
    ends[leaves] = True
    inside = np.zeros(len(tree), dtype=bool)  # of a region that ends above
    for layer in tree.layers(1):
        parents = tree.parent[layer]
        inside[layer] = inside[parents] | ends[parents]
    return np.flatnonzero(ends & ~inside)
