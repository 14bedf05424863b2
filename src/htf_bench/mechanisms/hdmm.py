"""HDMM: the matrix mechanism for all ranges, as a Kronecker product of optimised strategies.

R. McKenna, G. Miklau, M. Hay, A. Machanavajjhala: Optimizing error of high-dimensional statistical
queries under differential privacy, PVLDB 2018.

What is asked about is every box: the product, over the axes, of all ranges of an axis. What is
measured is a strategy A, also a product: along each axis a p-Identity matrix [HDMM, OPT_0], n
weighted cells and p weighted sums of cells, of which every column has the L1 norm 1. Its weights are
those that minimise the squared error of all ranges, trace(V (A'A)^-1) with V = W'W of the workload of
all ranges; p is n / 16, as in the paper. This is public: it depends on n alone. The cells are
estimated from the noisy answers by least squares.

* The weights are rounded to whole numbers before use, so that whole numbers are measured, with a
  sensitivity that is exact: every column sums to the same power of two.
* The workload of all ranges is the one this release is optimal for; the paper takes the workload from
  the user.
* Grids of more than 1024 cells along an axis, or 2^20 in all, are coarsened in the open (`grid` among the
  facts). The strategies are among the facts too, because an optimiser's last digits differ between
  machines, and with them the whole numbers.

As with Privlet the estimates of cells are correlated, and the variance of a range's count is far
smaller than the sum of its cells' variances.
"""

from __future__ import annotations

import base64
import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from htf.curator.window import Steps, Window
from htf.estimation.noise_law import noise_variance, scales_of_variances
from htf.frame.domain import FloatArray, IntArray
from htf.frame.grids import MOST_GRID_CELLS, even_edges
from htf.frame.hierarchy import refine
from htf.mechanisms.base import Histogram, Mechanism, parameter, read_integer
from htf.privacy.epsilon import UNITS_PER_EPSILON
from htf_bench.grids import NOTHING, check_most_cells, coarse_shape
from htf_bench.mechanisms.privlet import refuse_too_much_noise

if TYPE_CHECKING:
    from htf.release.release import Release

ESTIMATOR = "hdmm"
MOST_PER_AXIS = 1024  # a strategy of this size takes seconds to find
CELLS_PER_SUM = 16  # n / p
WEIGHT_BITS = 20  # of the whole numbers' scale, over all axes: 2**43 records fit 64 bits
ITERATIONS = 500  # by then the error is within 0.2 % of where it ends
REMEMBERED_STEPS = 10
STRIP = 64
LEAST_GAIN = 0.99
# Of a sum, where a cell has 1: far beyond it, rounding makes errors look negative.
MOST_WEIGHT = 1e4
SUMS_TYPE = np.dtype("<i4")

Objective = Callable[[FloatArray], tuple[float, FloatArray]]


@dataclass(frozen=True)
class Hdmm(Mechanism):
    """HDMM: the matrix mechanism, optimised for all ranges along each axis."""

    name = "hdmm"
    citation = (
        "McKenna, Miklau, Hay, Machanavajjhala: Optimizing error of high-dimensional statistical "
        "queries under differential privacy, PVLDB 2018"
    )

    most_cells: int = parameter(
        MOST_GRID_CELLS, read_integer, "grids with more cells than this are coarsened"
    )

    def check(self) -> None:
        check_most_cells(self.most_cells)

    def build(self, window: Window) -> Steps[Histogram]:
        grid = coarse_shape(window.domain.shape, self.most_cells, MOST_PER_AXIS)
        edges = even_edges(window.domain.shape, grid)
        strategies = choose_strategies(grid)
        refuse_too_much_noise(sensitivity_of(strategies), window.epsilon)
        noisy = yield from window.linear_queries(
            strategies, edges, window.epsilon, "optimised sums of cells"
        )
        leaves = refine(window.tree, np.zeros(1, dtype=np.int64), edges)
        estimates, scales = estimate_cells(strategies, noisy, window.epsilon.units)
        facts = {"grid": list(grid), "strategies": [encode_strategy(s) for s in strategies]}
        return Histogram(leaves, estimates, scales, ESTIMATOR, facts)


def reconstruct_hdmm(release: Release) -> tuple[FloatArray, FloatArray]:
    """Estimates and scales of a release's leaves, from its measurements; nothing if they do not fit."""
    table, most_cells = release.measurements, int(release.parameters["most_cells"])
    grid = coarse_shape(release.domain.shape, most_cells, MOST_PER_AXIS)
    if math.prod(grid) != len(release):
        return NOTHING
    try:
        packed = zip(release.facts["strategies"], grid, strict=True)
        strategies = [decode_strategy(text, cells) for text, cells in packed]
    except (KeyError, TypeError, ValueError, AttributeError):
        return NOTHING
    if len(table) != math.prod(len(strategy) for strategy in strategies):
        return NOTHING
    return estimate_cells(strategies, table.value, int(table.epsilon[0]))


def estimate_cells(
    strategies: Sequence[IntArray], noisy: IntArray, epsilon_units: int
) -> tuple[FloatArray, FloatArray]:
    """Least squares: all cells, row by row; and the scales of noise like theirs.

    The solution is rounded and what the rounded one leaves unexplained is solved for again. That
    changes nothing but the rounding errors: without noise the counts come out as they are.
    """
    weights = [strategy.astype(np.float64) for strategy in strategies]
    inverses = [np.linalg.inv(weight.T @ weight) for weight in weights]
    solvers = [inverse @ weight.T for inverse, weight in zip(inverses, weights, strict=True)]
    answers = noisy.reshape([len(strategy) for strategy in strategies]).astype(np.float64)
    rounded = np.rint(multiply_axes(solvers, answers))
    estimates = rounded + multiply_axes(solvers, answers - multiply_axes(weights, rounded))
    share = np.ones(())
    for inverse in inverses:
        share = np.multiply.outer(share, np.diag(inverse))
    noise = noise_variance(sensitivity_of(strategies) * UNITS_PER_EPSILON / epsilon_units)
    return estimates.ravel(), scales_of_variances(noise * share.ravel())


def multiply_axes(matrices: Sequence[FloatArray], values: FloatArray) -> FloatArray:
    """The Kronecker product of `matrices`, one for each axis, times `values`."""
    for axis, matrix in enumerate(matrices):
        values = np.moveaxis(np.tensordot(matrix, values, (1, axis)), 0, axis)
    return values


def sensitivity_of(strategies: Sequence[IntArray]) -> int:
    return math.prod(int(strategy.sum(axis=0).max()) for strategy in strategies)


def choose_strategies(grid: Sequence[int]) -> list[IntArray]:
    """A strategy of whole numbers for each axis."""
    bits = WEIGHT_BITS // max(sum(cells > 1 for cells in grid), 1)
    return [whole_strategy(cells, bits) for cells in grid]


def whole_strategy(cells: int, bits: int) -> IntArray:
    """The optimised strategy times 2**bits, rounded so that every column sums to that exactly."""
    if cells == 1:
        return np.ones((1, 1), dtype=np.int64)
    sums = optimise_sums(cells)
    sums = np.floor(sums / (1 + sums.sum(axis=0)) * 2**bits).astype(np.int64)
    return np.concatenate([np.diag(2**bits - sums.sum(axis=0)), sums])


def most_sums(cells: int) -> int:
    """The sums that a strategy has beside its cells, if any are worth having."""
    return max(cells // CELLS_PER_SUM, 1)


@lru_cache(maxsize=64)
def optimise_sums(cells: int) -> FloatArray:
    """The p rows Theta of A = [I; Theta] D, where D makes every column's sum 1."""
    start = np.sqrt(nested_blocks(most_sums(cells), cells))

    def objective(roots: FloatArray) -> tuple[float, FloatArray]:
        """In terms of square roots, which need no bounds to keep the weights positive."""
        if (roots**2).max() > MOST_WEIGHT:
            return math.inf, roots  # no step goes there
        error, slopes = range_error((roots**2).reshape(start.shape))
        return error, (2 * slopes).ravel() * roots

    sums: FloatArray = minimise(objective, start.ravel(), ITERATIONS).reshape(start.shape) ** 2
    if range_error(sums)[0] > LEAST_GAIN * own_ranges(cells).sum():
        sums = np.zeros((0, cells))  # on short axes nothing is better than the cells alone
    sums.flags.writeable = False
    return sums


def nested_blocks(sums: int, cells: int) -> FloatArray:
    """Where the search starts: all cells, halves, quarters, … until there are enough sums.

    Weights elsewhere are small but not zero, and differ: equal ones would stay equal.
    """
    steps = (np.arange(sums * cells) * 0.6180339887498949) % 1  # evenly spread, as if at random
    weights = np.asarray(0.02 + 0.02 * steps.reshape(sums, cells), dtype=np.float64)
    blocks = [(i, parts) for parts in 2 ** np.arange(sums.bit_length()) for i in range(parts)]
    for row, (i, parts) in enumerate(blocks[:sums]):
        weights[row, i * cells // parts : (i + 1) * cells // parts] += 0.5
    return weights


def own_ranges(cells: int) -> FloatArray:
    """The diagonal of V = W'W of all ranges: how many ranges hold a cell."""
    place = np.arange(cells, dtype=np.float64)
    return (place + 1) * (cells - place)


def multiply_ranges(rows: FloatArray) -> FloatArray:
    """rows @ V. The ranges that hold both i <= j number (i + 1) (n - j): running sums do."""
    cells = rows.shape[1]
    before, after = np.arange(1.0, cells + 1), np.arange(cells, 0.0, -1)
    rightwards = np.cumsum(rows * before, axis=1)
    leftwards = np.cumsum((rows * after)[:, ::-1], axis=1)[:, ::-1] - rows * after
    return np.asarray(after * rightwards + before * leftwards)


def range_error(sums: FloatArray) -> tuple[float, FloatArray]:
    """trace(V (A'A)^-1) of A = [I; Theta] D, and its slope in every entry of Theta.

    (A'A)^-1 = S (I - Theta' M Theta) S with S = D^-1 = diag(1 + column sums of Theta) and the small
    matrix M = (I + Theta Theta')^-1 (Woodbury); so the error is trace(SVS) - trace(M Theta SVS Theta').
    """
    column = 1 + sums.sum(axis=0)
    own = column * own_ranges(len(column))
    small: FloatArray = np.linalg.inv(np.eye(len(sums)) + _across(sums, sums)).astype(np.float64)
    half = multiply_ranges(sums * column)
    full = half * column
    inner = _across(full, sums)
    error = float(np.sum(column * own) - np.sum(small * inner))
    slopes = 2 * (_along(small @ inner @ small, sums) - _along(small, full))
    slopes += 2 * own - 2 * np.sum(sums * _along(small, half), axis=0)  # of the column sums in S
    return error, slopes


def minimise(objective: Objective, point: FloatArray, iterations: int) -> FloatArray:
    """L-BFGS with a backtracking search along the line (Nocedal and Wright, Alg. 7.5)."""
    value, slope = objective(point)
    moves: list[FloatArray] = []
    turns: list[FloatArray] = []
    for _ in range(iterations):
        if not slope.any():
            return point  # as where there is nothing to choose
        direction = -_apply_inverse_hessian(slope, moves, turns)
        step = 1.0 if moves else 0.1 * math.sqrt(_dot(point, point) / _dot(slope, slope))
        descent = _dot(direction, slope)
        while True:
            new_value, new_slope = objective(point + step * direction)
            if new_value <= value + 1e-4 * step * descent:
                break
            step /= 2
            if step < 1e-12:
                return point
        move, turn = step * direction, new_slope - slope
        if _dot(move, turn) > 0:  # keeps the approximate Hessian positive
            moves, turns = [*moves, move][-REMEMBERED_STEPS:], [*turns, turn][-REMEMBERED_STEPS:]
        point, value, slope = point + move, new_value, new_slope
    return point


def _apply_inverse_hessian(
    slope: FloatArray, moves: list[FloatArray], turns: list[FloatArray]
) -> FloatArray:
    """The two loops of L-BFGS (Nocedal and Wright, Alg. 7.4)."""
    result, shares = slope.copy(), []
    for move, turn in zip(reversed(moves), reversed(turns), strict=True):
        shares.append(_dot(move, result) / _dot(move, turn))
        result -= shares[-1] * turn
    if moves:
        result *= _dot(moves[-1], turns[-1]) / _dot(turns[-1], turns[-1])
    for move, turn, share in zip(moves, turns, reversed(shares), strict=True):
        result += move * (share - _dot(turn, result) / _dot(move, turn))
    return result


# Large products start threads for every call, and on a busy machine wait for them: the search took ten
# times as long. So products are taken in strips that are too small for threads.


def _across(left: FloatArray, right: FloatArray) -> FloatArray:
    """left @ right.T"""
    strips = range(0, left.shape[1], STRIP)
    return np.asarray(sum(left[:, i : i + STRIP] @ right[:, i : i + STRIP].T for i in strips))


def _along(small: FloatArray, rows: FloatArray) -> FloatArray:
    """small @ rows"""
    strips = range(0, rows.shape[1], STRIP)
    return np.concatenate([small @ rows[:, i : i + STRIP] for i in strips], axis=1)


def _dot(left: FloatArray, right: FloatArray) -> float:
    return float(np.einsum("i,i->", left, right))


def encode_strategy(strategy: IntArray) -> str:
    """As text: the number of columns, and the rows of sums packed; the cells' weights make up the rest."""
    cells = strategy.shape[1]
    packed = zlib.compress(strategy[cells:].astype(SUMS_TYPE).tobytes(), 9)
    return f"{cells}:{int(strategy[:, 0].sum())}:{base64.b64encode(packed).decode()}"


def decode_strategy(text: str, cells: int) -> IntArray:
    """A strategy for so many cells. The text may be anybody's, and a few bytes may be packed that come to
    gigabytes: no more is unpacked than such a strategy can have."""
    columns, column, packed = text.split(":")
    most = most_sums(cells) * cells * SUMS_TYPE.itemsize
    unpacking = zlib.decompressobj()
    try:
        content = unpacking.decompress(base64.b64decode(packed, validate=True), most + 1)
    except zlib.error:
        raise ValueError("the strategy is not packed as it should be") from None
    whole = unpacking.eof and len(content) <= most and 0 < int(column) <= 2**WEIGHT_BITS
    if int(columns) != cells or not whole:
        raise ValueError(f"the strategy is not one for {cells} cells")
    sums = np.frombuffer(content, dtype=SUMS_TYPE).astype(np.int64).reshape(-1, cells)
    return np.concatenate([np.diag(int(column) - sums.sum(axis=0)), sums])


Hdmm.estimators = {ESTIMATOR: reconstruct_hdmm}
