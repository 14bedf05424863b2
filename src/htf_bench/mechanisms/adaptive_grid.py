"""The adaptive grid.

W. Qardaji, W. Yang, N. Li: Differentially private grids for geospatial data, ICDE 2013 [QYL13].
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from htf.curator.window import Steps, Window
from htf.errors import InputError
from htf.estimation.least_squares import LEAST_SQUARES, TreeCounts, estimate_leaves
from htf.frame.domain import Domain, IntArray
from htf.frame.grids import limit_parts, wide_axes
from htf.mechanisms.base import (
    Histogram,
    Mechanism,
    check_share,
    parameter,
    read_number,
    read_optional_integer,
    read_share,
    split_epsilon,
)
from htf.privacy.epsilon import Epsilon
from htf_bench.grids import Grid
from htf_bench.mechanisms.uniform_grid import (
    POINTS_PER_CELL,
    check_public_total,
    grid_side,
    learn_total,
)

POINTS_PER_SECOND_CELL = 5  # c2 = c / 2 of [QYL13, Section IV-B]
LEAST_CONSTANT, MOST_CONSTANT = 0.001, 1_000_000  # wide enough to try, and sides fit integers
LEAST_FIRST_CELLS = 100  # 10 x 10 on a map
FIRST_LEVEL_COARSER = 4  # than the uniform grid would be


@dataclass(frozen=True)
class AdaptiveGrid(Mechanism):
    """Adaptive grid: a coarse grid whose cells are divided again as far as their counts justify."""

    name = "ag"
    citation = "Qardaji, Yang, Li: Differentially private grids for geospatial data, ICDE 2013"

    alpha: float = parameter(0.5, read_share, "share of the budget for the first level")
    epsilon_total_share: float = parameter(
        0.01, read_share, "share of the budget that buys N, the number of records"
    )
    public_total: int | None = parameter(
        None, read_optional_integer, "N, if it is public already: it is then disclosed exactly"
    )
    c: float = parameter(
        float(POINTS_PER_CELL),
        read_number,
        "constant of the first level: the larger, the fewer cells",
    )
    c2: float = parameter(
        float(POINTS_PER_SECOND_CELL),
        read_number,
        "constant of the second level: the larger, the fewer cells",
    )

    def check(self) -> None:
        check_share("alpha", self.alpha)
        check_share("epsilon_total_share", self.epsilon_total_share)
        check_public_total(self.public_total)
        _check_constant("c", self.c)
        _check_constant("c2", self.c2)

    def build(self, window: Window) -> Steps[Histogram]:
        """[QYL13, Section IV-B]. Their two-level inference is least squares on the tree of both
        levels; a cell that is not divided is counted again with the second level's budget."""
        self._refuse_what_cannot_fit(window)
        counts, grid = TreeCounts(), Grid.whole(window.domain)
        total, epsilon, facts = yield from learn_total(
            window, self.epsilon_total_share, self.public_total, counts
        )
        first_epsilon, second_epsilon = split_epsilon(epsilon, self.alpha, "alpha")
        side = first_side(window.domain, total * float(epsilon), self.c)
        parts = limit_parts(np.minimum(side, grid.shape)[None])
        first = grid.cut_evenly(window.tree, np.zeros(1, dtype=np.int64), parts)
        noisy = yield from window.count(first, first_epsilon, "first level")
        counts.add(first, noisy, first_epsilon)
        sides = second_sides(window.domain, noisy, second_epsilon, self.c2)
        second_parts = np.minimum(sides[:, None], grid.widths(window.tree, first))
        leaves = grid.cut_evenly(window.tree, first, limit_parts(second_parts))
        noisy = yield from window.count(leaves, second_epsilon, "second level")
        counts.add(leaves, noisy, second_epsilon)
        estimates, scales = estimate_leaves(window.tree, leaves, counts)
        facts = {**facts, "first_grid": parts[0].tolist()}
        return Histogram(leaves, estimates, scales, LEAST_SQUARES, facts)

    def _refuse_what_cannot_fit(self, window: Window) -> None:
        rest = window.epsilon
        if self.public_total is None:
            rest = split_epsilon(rest, self.epsilon_total_share, "epsilon_total_share")[1]
        split_epsilon(rest, self.alpha, "alpha")


def _check_constant(name: str, value: float) -> None:
    if not LEAST_CONSTANT <= value <= MOST_CONSTANT:
        raise InputError(
            f"{name} must be between {LEAST_CONSTANT} and {MOST_CONSTANT}, got {value}"
        )


def first_side(domain: Domain, signal: float, c: float = POINTS_PER_CELL) -> int:
    """m1 = max(10, ceil(sqrt(N * epsilon / c)) / 4), rounded up, where `signal` is N * epsilon.

    In other than two dimensions at least as many cells in all as 10 x 10, roughly.
    """
    least = math.ceil(round(math.pow(LEAST_FIRST_CELLS, 1 / wide_axes(domain)), 9))
    uniform = math.ceil(grid_side(domain, signal / c))
    return max(least, -(-uniform // FIRST_LEVEL_COARSER))


def second_sides(
    domain: Domain, noisy_counts: IntArray, epsilon: Epsilon, c2: float = POINTS_PER_SECOND_CELL
) -> IntArray:
    """m2 = ceil(sqrt(N' * (1 - alpha) * epsilon / c2)) for each cell of noisy count N', at least 1."""
    signals = noisy_counts * float(epsilon) / c2
    sides = np.maximum(signals, 1.0) ** (2 / (wide_axes(domain) + 2))
    return np.asarray(np.ceil(sides), dtype=np.int64)
