"""The uniform grid, and the grids on which this and other mechanisms lay their boxes.

W. Qardaji, W. Yang, N. Li: Differentially private grids for geospatial data, ICDE 2013 [QYL13].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

import numpy as np

from htf.curator.window import Steps, Window
from htf.domain import Domain, IntArray
from htf.epsilon import Epsilon
from htf.errors import BudgetError, InputError
from htf.inference import LEAST_SQUARES, TreeCounts, estimate_leaves
from htf.mechanisms.base import Histogram, Mechanism, parameter, read_optional_integer
from htf.tree import RegionTree

POINTS_PER_CELL = 10  # c of [QYL13, Guideline 1]
MOST_LEAVES = 2**22  # what a laptop holds; a finer grid is made coarser, and the facts show it


def read_share(name: str, text: str) -> float:
    try:
        return float(Decimal(text))
    except InvalidOperation:
        raise InputError(f"{name} must be a number between 0 and 1, got {text!r}") from None


def check_share(name: str, share: float) -> None:
    if not 0 < share < 1:
        raise InputError(f"{name} must be between 0 and 1, got {share}")


@dataclass(frozen=True)
class UniformGrid(Mechanism):
    """Uniform grid: as many equal cells as its noise makes worth while, each counted once."""

    name = "ug"
    citation = "Qardaji, Yang, Li: Differentially private grids for geospatial data, ICDE 2013"

    epsilon_total_share: float = parameter(
        0.01, read_share, "share of the budget that buys N, the number of records"
    )
    public_total: int | None = parameter(
        None, read_optional_integer, "N, if it is public already: it is then disclosed exactly"
    )

    def __post_init__(self) -> None:
        check_share("epsilon_total_share", self.epsilon_total_share)
        check_public_total(self.public_total)

    def build(self, window: Window) -> Steps[Histogram]:
        counts = TreeCounts()
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
        return public_total, window.epsilon, {"public_total": told}
    for_total, rest = split_epsilon(window.epsilon, share, "epsilon_total_share")
    noisy = yield from window.count([0], for_total, "total")
    counts.add(np.zeros(1, dtype=np.int64), noisy, for_total)
    return int(noisy[0]), rest, {"noisy_total": int(noisy[0])}


def split_epsilon(epsilon: Epsilon, share: float, name: str) -> tuple[Epsilon, Epsilon]:
    """`share` of the budget, rounded down, and all the rest."""
    part = Epsilon(int(epsilon.units * Fraction(repr(share))))
    if not 0 < part.units < epsilon.units:
        raise BudgetError(f"epsilon {epsilon} is too small: {name} {share} of it is nothing")
    return part, epsilon - part


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


def wide_axes(domain: Domain) -> int:
    """The number of axes that can be cut."""
    return max(sum(cells > 1 for cells in domain.shape), 1)


def limit_parts(parts: IntArray, most: int = MOST_LEAVES) -> IntArray:
    """`parts[i, axis]` slabs of region i along an axis, no axis finer than it must be for all
    regions together to come to at most `most` boxes."""
    low, high = 1, int(parts.max())  # the finest common limit, by bisection
    while low < high:
        middle = (low + high + 1) // 2
        fits = int(np.prod(np.minimum(parts, middle), axis=1).sum()) <= most
        low, high = (middle, high) if fits else (low, middle - 1)
    return np.asarray(np.minimum(parts, low))


@dataclass(frozen=True)
class Grid:
    """A grid over the domain, of `shape` cells as equal as whole cells of the domain allow."""

    cells: IntArray  # of the domain, per axis
    shape: IntArray

    @classmethod
    def whole(cls, domain: Domain) -> Grid:
        """The domain's own grid."""
        cells = np.array(domain.shape, dtype=np.int64)
        return cls(cells, cells)

    @classmethod
    def limited(cls, domain: Domain, most: int) -> Grid:
        """The domain's own grid, or the finest with at most `most` cells where that has more."""
        cells = np.array(domain.shape, dtype=np.int64)
        return cls(cells, limit_parts(cells[None], most)[0])

    def widths(self, tree: RegionTree, regions: IntArray) -> IntArray:
        """How many cells of this grid the regions, cut along its lines, have on each axis."""
        return self._line(tree.high[regions]) - self._line(tree.low[regions])

    def cut_evenly(self, tree: RegionTree, regions: IntArray, parts: IntArray) -> IntArray:
        """Cut region i into `parts[i, axis]` slabs along each axis, along this grid's lines.

        Slabs of a region differ by at most one cell of this grid. Returns the pieces; a region
        that is not to be cut is its own piece.
        """
        pieces, owners = regions, np.arange(len(regions))
        for axis in range(tree.dimensions):
            slabs = parts[owners, axis]
            cut = slabs > 1
            if not cut.any():
                continue
            cuts = self._even_cuts(tree, pieces[cut], axis, slabs[cut])
            children = tree.cut(pieces[cut], np.full(int(cut.sum()), axis), cuts, slabs[cut] - 1)
            pieces, owners = np.repeat(pieces, slabs), np.repeat(owners, slabs)
            pieces[np.repeat(cut, slabs)] = children
        return pieces

    def _even_cuts(
        self, tree: RegionTree, regions: IntArray, axis: int, slabs: IntArray
    ) -> IntArray:
        first = np.cumsum(slabs - 1) - (slabs - 1)
        owners = np.repeat(np.arange(len(regions)), slabs - 1)
        place = np.arange(len(owners)) - first[owners] + 1
        low = self._line(tree.low[regions])[:, axis]
        width = self._line(tree.high[regions])[:, axis] - low
        lines = low[owners] + place * width[owners] // slabs[owners]
        return np.asarray(lines * self.cells[axis] // self.shape[axis])

    def _line(self, edges: IntArray) -> IntArray:
        """Which line of this grid an edge is; line j lies at floor(j * cells / shape)."""
        return -(-edges * self.shape // self.cells)
