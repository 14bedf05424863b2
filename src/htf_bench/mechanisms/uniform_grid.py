"""The uniform grid, and the grids on which this and other mechanisms lay their boxes.

W. Qardaji, W. Yang, N. Li: Differentially private grids for geospatial data, ICDE 2013 [QYL13].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from htf.curator.window import Steps, Window
from htf.errors import InputError
from htf.estimation.least_squares import LEAST_SQUARES, TreeCounts, estimate_leaves
from htf.frame.domain import Domain
from htf.frame.grids import limit_parts, wide_axes
from htf.mechanisms.base import (
    Histogram,
    Mechanism,
    check_share,
    parameter,
    read_optional_integer,
    read_share,
    split_epsilon,
)
from htf.privacy.epsilon import Epsilon
from htf_bench.grids import Grid

POINTS_PER_CELL = 10  # c of [QYL13, Guideline 1]


@dataclass(frozen=True)
class UniformGrid(Mechanism):
    """Uniform grid: as many equal cells as its noise makes worth while, each counted once."""

    name = "ug"
    citation = "Qardaji, Yang, Li: Differentially private grids for geospatial data, ICDE 2013"

    epsilon_total_share: float = parameter(
        0.01, read_share, "share of the budget that buys N, the number of records; not with side"
    )
    public_total: int | None = parameter(
        None, read_optional_integer, "N, if it is public already: it is then disclosed exactly"
    )
    side: int | None = parameter(
        None, read_optional_integer, "cells along each axis; none: by the paper's rule, from N"
    )

    def check(self) -> None:
        check_share("epsilon_total_share", self.epsilon_total_share)
        check_public_total(self.public_total)
        if self.side is not None and self.side < 1:
            raise InputError(f"side must be at least 1, got {self.side}")
        if self.side is not None and self.public_total is not None:
            raise InputError(
                f"a side of {self.side} needs no N: leave out public_total={self.public_total}"
            )

    def build(self, window: Window) -> Steps[Histogram]:
        counts = TreeCounts()
        facts: dict[str, Any] = {}
        if self.side is not None:  # N is not needed, and not bought
            side, epsilon = min(self.side, max(window.domain.shape)), window.epsilon
        else:
            total, epsilon, facts = yield from learn_total(
                window, self.epsilon_total_share, self.public_total, counts
            )
            side = math.ceil(grid_side(window.domain, total * float(epsilon) / POINTS_PER_CELL))
        grid = Grid.whole(window.domain)
        parts = limit_parts(np.minimum(side, grid.shape)[None])
        leaves = grid.cut_evenly(window.tree, np.zeros(1, dtype=np.int64), parts)
        noisy = yield from window.count(leaves, epsilon, "cells of the grid")
        counts.add(leaves, noisy, epsilon)
        estimates, scales = estimate_leaves(window.tree, leaves, counts)
        facts = {**facts, "grid": parts[0].tolist()}
        return Histogram(leaves, estimates, scales, LEAST_SQUARES, facts)


def learn_total(
    window: Window, share: float, public_total: int | None, counts: TreeCounts
) -> Steps[tuple[int, Epsilon, dict[str, Any]]]:
    """N, what is left of the budget, and what to tell about it.

    The literature takes N for free, but N is data. Here it is bought, and the bought count goes
    into the estimates too; or the curator gives it.
    """
    if public_total is not None:
        told = f"N = {public_total} was disclosed exactly by the curator"
        return public_total * window.shares, window.epsilon, {"public_total": told}
    for_total, rest = split_epsilon(window.epsilon, share, "epsilon_total_share")
    noisy = yield from window.count([0], for_total, "total")
    counts.add(np.zeros(1, dtype=np.int64), noisy, for_total)
    found = int(noisy[0])
    told_total = found if window.shares == 1 else found / window.shares
    return found, rest, {"noisy_total": told_total}


def check_public_total(public_total: int | None) -> None:
    if public_total is not None and public_total < 0:
        raise InputError(f"public_total must not be negative, got {public_total}")


def grid_side(domain: Domain, signal: float) -> float:
    """The number of cells a side, before rounding, where `signal` is N * epsilon / c.

    On a map its square root [QYL13, Guideline 1]. In d dimensions noise grows with the root of the
    number of cells, m^(d/2) / epsilon, and what non-uniformity costs falls as N / m, so the two
    balance at m = signal^(2 / (d + 2)) (as in Su, Cao, Li, Bertino, Jin, CODASPY 2016). An axis of
    one cell is no dimension.
    """
    return float(max(signal, 1.0) ** (2 / (wide_axes(domain) + 2)))
