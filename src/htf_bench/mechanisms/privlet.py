"""Privlet: noise on the Haar wavelet coefficients of the whole map.

X. Xiao, G. Wang, J. Gehrke: Differential Privacy via Wavelet Transforms, ICDE 2010.

Their one-dimensional Haar coefficient of a node with s cells is the mean of its left half less the
mean of its right half, over 2, and has weight W = s; the base coefficient is the mean of all m cells,
with weight m. A coefficient gets noise in inverse proportion to its weight. So W times a coefficient
is what is measured here: the sum of the left half less the sum of the right half, and the total, whole
numbers that all get the same noise. Over several axes the transform is applied along one after
the other, and weights multiply [Privlet, Sec. VI].

One record moves 1 + log2(m) coefficients along an axis by 1 each, so the sensitivity is the product of
1 + log2(m) over the axes, the paper's generalised sensitivity. The noise in one cell then has
(1 + 2 / m^2) / 3, for each axis, of the variance of a coefficient's noise.

An axis whose cells are no power of two is padded with cells that do not exist: they hold nothing and
nothing is asked of them. Grids of more than `most_cells` cells are coarsened, in the open (`grid` among the
facts of the release).

The estimates of different cells are correlated, negatively on the whole: this is what the method
is about. The noise in the count of a range has a variance of the order of log(m)^3, for each axis,
however many cells it has; adding up the variances of its cells, as if they were independent, far
overstates the error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from htf.curator.window import Steps, Window
from htf.errors import BudgetError
from htf.estimation.noise_law import noise_variance, scales_of_variances
from htf.frame.domain import FloatArray, IntArray
from htf.frame.grids import MOST_GRID_CELLS, even_edges
from htf.frame.hierarchy import refine
from htf.mechanisms.base import Histogram, Mechanism, parameter, read_integer
from htf.privacy.epsilon import UNITS_PER_EPSILON, Epsilon
from htf_bench.grids import NOTHING, check_most_cells, coarse_shape, padded

if TYPE_CHECKING:
    from htf.release.release import Release

ESTIMATOR = "privlet"
LARGEST_SCALE = 10**15  # of noise; 64 bits hold a thousand times that


@dataclass(frozen=True)
class Privlet(Mechanism):
    """Privlet: equal noise on the weighted Haar wavelet coefficients of the map's cells."""

    name = "privlet"
    citation = "Xiao, Wang, Gehrke: Differential Privacy via Wavelet Transforms, ICDE 2010"

    most_cells: int = parameter(
        MOST_GRID_CELLS,
        read_integer,
        "grids with more cells than this, padding included, are coarsened",
    )

    def check(self) -> None:
        check_most_cells(self.most_cells)

    def build(self, window: Window) -> Steps[Histogram]:
        grid = coarse_shape(window.domain.shape, self.most_cells)
        edges = even_edges(window.domain.shape, grid)
        factors = [haar_matrix(cells) for cells in grid]
        refuse_too_much_noise(sensitivity_of(grid), window.epsilon)
        noisy = yield from window.linear_queries(
            factors, edges, window.epsilon, "wavelet coefficients"
        )
        leaves = refine(window.tree, np.zeros(1, dtype=np.int64), edges)
        estimates, scales = estimate_cells(grid, noisy, window.epsilon.units)
        return Histogram(leaves, estimates, scales, ESTIMATOR, {"grid": list(grid)})


def reconstruct_privlet(release: Release) -> tuple[FloatArray, FloatArray]:
    """Estimates and scales of a release's leaves, from its measurements; nothing if they do not fit."""
    grid = coarse_shape(release.domain.shape, int(release.parameters["most_cells"]))
    table = release.measurements
    if len(table) != math.prod(padded(cells) for cells in grid):
        return NOTHING
    return estimate_cells(grid, table.value, int(table.epsilon[0]))


def estimate_cells(
    grid: Sequence[int], noisy: IntArray, epsilon_units: int
) -> tuple[FloatArray, FloatArray]:
    """All cells, row by row, from the noisy coefficients; and the scales of noise like theirs."""
    coefficients = noisy.reshape([padded(cells) for cells in grid]).astype(np.float64)
    for axis in range(len(grid)):
        coefficients = invert_haar(coefficients, axis)
    estimates = coefficients[tuple(slice(cells) for cells in grid)].ravel()
    variance = cell_variance(grid, epsilon_units)
    return estimates, np.full(len(estimates), scales_of_variances(np.array([variance]))[0])


def cell_variance(grid: Sequence[int], epsilon_units: int) -> float:
    """The variance of the noise in one cell. A cell is total / m plus or minus (left - right) / s of every
    node above it, and 1 / m^2 + sum of 1 / s^2 over s = 2, 4, … m is (1 + 2 / m^2) / 3."""
    share = math.prod((1 + 2 / padded(cells) ** 2) / 3 for cells in grid)
    return share * noise_variance(sensitivity_of(grid) * UNITS_PER_EPSILON / epsilon_units)


def sensitivity_of(grid: Sequence[int]) -> int:
    """The product of 1 + log2(m) over the axes."""
    return math.prod(padded(cells).bit_length() for cells in grid)


def haar_matrix(cells: int) -> IntArray:
    """Weighted coefficients of an axis: the total, then left less right of each node, by level.

    Rows are those of the padded axis; columns of cells that do not exist are left out.
    """
    size = padded(cells)
    places = np.arange(size)
    matrix = np.zeros((size, size), dtype=np.int64)
    matrix[0] = 1
    nodes = 1
    while nodes < size:
        half = size // nodes // 2
        matrix[nodes + places // (2 * half), places] = 1 - 2 * (places // half % 2)
        nodes *= 2
    return matrix[:, :cells]


def invert_haar(coefficients: FloatArray, axis: int) -> FloatArray:
    """What `haar_matrix` of the padded axis was applied to.

    From the top: a node's halves are (sum + difference) / 2 and (sum - difference) / 2. Halving is
    exact in floats, so that without noise the counts come out as they are.
    """
    moved = np.moveaxis(coefficients, axis, 0)
    sums = moved[:1]
    while len(sums) < len(moved):
        differences = moved[len(sums) : 2 * len(sums)]
        halves = np.stack([sums + differences, sums - differences], axis=1) / 2
        sums = halves.reshape(2 * len(sums), *moved.shape[1:])
    return np.moveaxis(sums, 0, axis)


def refuse_too_much_noise(sensitivity: int, epsilon: Epsilon) -> None:
    """Refuse noise of a scale beyond LARGEST_SCALE, which might not fit 64 bits."""
    if sensitivity > LARGEST_SCALE * epsilon.fraction:
        raise BudgetError(
            f"epsilon {epsilon} is too small: one record moves the measured numbers by "
            f"{sensitivity} in all, and noise of scale {sensitivity} / {epsilon} is beyond "
            f"{LARGEST_SCALE}. Raise epsilon."
        )


Privlet.estimators = {ESTIMATOR: reconstruct_privlet}
