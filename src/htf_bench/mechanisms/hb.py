"""A hierarchy of noisy counts with the best branching factor.

M. Hay, V. Rastogi, G. Miklau, D. Suciu: Boosting the accuracy of differentially private histograms
through consistency, PVLDB 2010; W. Qardaji, W. Yang, N. Li: Understanding hierarchical methods for
differentially private histograms, PVLDB 2013 [QYL13h].
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from htf.curator.window import Steps, Window
from htf.errors import BudgetError, InputError
from htf.estimation.least_squares import LEAST_SQUARES, TreeCounts, estimate_leaves
from htf.frame.domain import FloatArray, IntArray
from htf.frame.grids import MOST_GRID_CELLS
from htf.mechanisms.base import Histogram, Mechanism, parameter, read_integer, read_optional_integer
from htf.privacy.epsilon import Epsilon
from htf_bench.grids import Grid
from htf_bench.mechanisms.quadtree import count_levels


@dataclass(frozen=True)
class HierarchyBest(Mechanism):
    """Hierarchy down to the cells, with the branching factor of least average variance."""

    name = "hb"
    citation = (
        "Hay, Rastogi, Miklau, Suciu: Boosting the accuracy of differentially private histograms "
        "through consistency, PVLDB 2010; Qardaji, Yang, Li: Understanding hierarchical methods "
        "for differentially private histograms, PVLDB 2013"
    )

    branching: int | None = parameter(
        None, read_optional_integer, "slabs of a node along every axis; none: the best, by formula"
    )
    most_cells: int = parameter(
        MOST_GRID_CELLS, read_integer, "more cells than this are joined to at most this many"
    )

    def check(self) -> None:
        if self.branching is not None and self.branching < 2:
            raise InputError(f"branching must be at least 2, got {self.branching}")
        if self.most_cells < 1:
            raise InputError(f"most_cells must be positive, got {self.most_cells}")

    def build(self, window: Window) -> Steps[Histogram]:
        """Every level below the root gets the same budget. The root is not counted: the levels
        below it add up to it."""
        grid = Grid.limited(window.domain, self.most_cells)
        branching = self.branching or best_branching(grid.shape)
        height = height_of(grid.shape, branching)
        share = window.epsilon // height
        if share.units == 0:
            raise BudgetError(
                f"epsilon {window.epsilon} is too small to be shared by {height} levels"
            )
        counts = TreeCounts()
        shares: list[Epsilon | None] = [None, *[share] * height]
        leaves = yield from count_levels(window, grid, branching, shares, counts)
        estimates, scales = estimate_leaves(window.tree, leaves, counts)
        facts = {"branching": branching, "height": height, "grid": grid.shape.tolist()}
        return Histogram(leaves, estimates, scales, LEAST_SQUARES, facts)


def height_of(shape: IntArray, branching: int) -> int:
    """Levels below the root until every axis is down to one cell; at least one."""
    height, reached, cells = 1, branching, int(np.max(shape))
    while reached < cells:
        height, reached = height + 1, reached * branching
    return height


def best_branching(shape: IntArray) -> int:
    """The branching factor along every axis with the least average variance; of equals the least.

    The choice depends on the grid alone, so it costs nothing.
    """
    candidates = branching_candidates(int(np.max(shape)))
    return min(candidates, key=lambda branching: average_variance(shape, branching))


def branching_candidates(cells: int) -> list[int]:
    """Every factor up to 64, then in steps of 5 %, and at last the one that makes a single level."""
    candidates = {max(cells, 2)}
    branching = 2
    while branching < cells:
        candidates.add(branching)
        branching = max(branching + 1, branching + branching // 20 if branching >= 64 else 0)
    return sorted(candidates)


def average_variance(shape: IntArray, branching: int) -> float:
    """The noise variance of a range count, averaged over all ranges of the grid, in units of the
    variance of one count with the whole budget.

    [QYL13h, Eq. 3] has (b - 1) h^3 - 2 (b + 1) h^2 / 3 on one axis, where the fewest counts are added
    up. Least squares does better, by more than half, so this is its variance, on any number of axes;
    exact where all boxes of a level are equal, else within some 3 %. Let P_l replace every cell by
    the mean of its box of level l, and m_l be the cells of such a box. The counts of level l weigh
    m_l P_l in the normal equations, and because the P_l are nested projections, the inverse of
    their sum is the sum of (P_l - P_(l-1)) / c_l with c_l = m_l + ... + m_h. With a budget of 1/h a
    level, a range q then has variance h^2 sum_l (|P_l q|^2 - |P_(l-1) q|^2) / c_l. The root is not
    counted: its part goes with that of the first level.
    """
    height = height_of(shape, branching)
    sizes, norms = np.ones(height), np.ones(height)  # of levels 1 to h; the last is single cells
    for cells in shape.tolist():
        for level, edges in enumerate(nested_edges(cells, branching, height - 1)):
            sizes[level] *= cells / (len(edges) - 1)
            norms[level] *= mean_squared_norm(cells, edges)
        norms[-1] *= (cells + 2) / 3  # the mean length of a range
    weights = np.cumsum(sizes[::-1])[::-1]
    return float(height**2 * np.sum(np.diff(norms, prepend=0.0) / weights))


def nested_edges(cells: int, branching: int, levels: int) -> list[IntArray]:
    """The edges of the slabs of one axis at levels 1, 2, …, as `Grid.cut_evenly` makes them."""
    found = [np.array([0, cells], dtype=np.int64)]
    for _ in range(levels):
        low, width = found[-1][:-1], np.diff(found[-1])
        slabs = np.minimum(width, branching)
        owners = np.repeat(np.arange(len(low)), slabs)
        place = np.arange(len(owners)) - (np.cumsum(slabs) - slabs)[owners]
        found.append(np.append(low[owners] + place * width[owners] // slabs[owners], cells))
    return found[1:]


def mean_squared_norm(cells: int, edges: IntArray) -> float:
    """|P q|^2 averaged over all ranges q of one axis, where P averages over the slabs.

    It is the sum over slabs of E[overlap^2] / width. Cells c <= c' lie together in (c + 1) (n - c')
    of the n (n + 1) / 2 ranges, so a slab [s, e) adds up (n - c') ((c' + 1)^2 - s (s + 1)) over
    c' in [s, e).
    """
    squares, plain = running_sums(cells)
    low, high = edges[:-1], edges[1:]
    start = low.astype(np.float64)
    overlaps = squares[high] - squares[low] - start * (start + 1) * (plain[high] - plain[low])
    return float(np.sum(overlaps / (high - low)) / (cells * (cells + 1) / 2))


@lru_cache(maxsize=4)
def running_sums(cells: int) -> tuple[FloatArray, FloatArray]:
    """Sums of (n - c) (c + 1)^2 and of n - c over the cells c below each edge."""
    cell = np.arange(cells, dtype=np.float64)
    terms = (cells - cell) * (cell + 1) ** 2, cells - cell
    squares, plain = (np.concatenate([[0.0], np.cumsum(term)]) for term in terms)
    return squares, plain
