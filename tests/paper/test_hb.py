"""The hierarchy with the best branching factor: its formula by brute force, and its noise by its
formula."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from htf import BudgetError, FrequencyMatrix, InputError, Release, publish
from htf.curator.noise import ScriptedNoise, SeededNoise
from htf.estimation.noise_law import noise_variances
from htf.frame.domain import FloatArray
from htf.privacy.ledger import sum_along_paths
from htf_bench.mechanisms.hb import HierarchyBest, average_variance, best_branching, height_of
from support import city_matrix, dense, grid


def brute_force_variance(shape: tuple[int, ...], branching: int) -> float:
    """With matrices: every level's boxes as rows, least squares, all ranges one by one."""
    height = height_of(np.array(shape), branching)
    rows = []
    for level in range(1, height + 1):
        sides = [cells // branching**level for cells in shape]
        for corner in itertools.product(
            *(range(0, n, side) for n, side in zip(shape, sides, strict=True))
        ):
            box = np.zeros(shape)
            box[tuple(slice(c, c + side) for c, side in zip(corner, sides, strict=True))] = 1
            rows.append(box.ravel())
    design = np.array(rows) / height  # the noise of a level has height times the scale
    covariance = np.linalg.inv(design.T @ design)
    one_axis = [
        [(np.arange(n) >= low) & (np.arange(n) < high) for low in range(n) for high in range(low + 1, n + 1)]
        for n in shape
    ]  # fmt: skip
    variances = []
    for ranges in itertools.product(*one_axis):
        query = ranges[0].astype(float)
        for other in ranges[1:]:
            query = np.outer(query, other).ravel()
        variances.append(query @ covariance @ query)
    return float(np.mean(variances))


@pytest.mark.parametrize(
    ("shape", "branching"),
    [((8,), 2), ((27,), 3), ((16,), 4), ((4, 4), 2), ((9, 9), 3), ((6, 6), 6)],
)
def test_the_average_variance_is_exact(shape: tuple[int, ...], branching: int) -> None:
    expected = brute_force_variance(shape, branching)
    assert average_variance(np.array(shape), branching) == pytest.approx(expected, rel=1e-9)


def papers_variance(cells: int, branching: int) -> float:
    """[QYL13h, Eq. 3], for one axis and without inference."""
    height = height_of(np.array([cells]), branching)
    return (branching - 1) * height**3 - 2 * (branching + 1) * height**2 / 3


@pytest.mark.parametrize("cells", [64, 1024, 4096, 2**16])
def test_on_one_axis_inference_improves_on_the_papers_formula(cells: int) -> None:
    """Both agree where there is nothing to infer (one level), and inference never loses."""
    shape = np.array([cells])
    assert average_variance(shape, cells) == pytest.approx(papers_variance(cells, cells), rel=0.15)
    for branching in (2, 3, 4, 8, 16, 40):
        assert average_variance(shape, branching) < papers_variance(cells, branching)


def test_on_one_axis_the_papers_factor_is_as_good() -> None:
    """4096 cells: 16 by the paper's formula, and within 1 % of the best after inference."""
    shape = np.array([4096])
    best = min(range(2, 4097), key=lambda branching: papers_variance(4096, branching))
    assert best == 16
    chosen = average_variance(shape, best_branching(shape))
    assert average_variance(shape, 16) == pytest.approx(chosen, rel=0.01)


@pytest.mark.parametrize("shape", [(60,), (64, 64), (100, 30), (20, 20, 20), (1, 1), (200, 200)])
def test_the_choice_is_the_best_of_all_factors(shape: tuple[int, ...]) -> None:
    """Beyond 64 not every factor is tried; that may cost 2 %."""
    sizes = np.array(shape)
    everything = [average_variance(sizes, b) for b in range(2, max(shape) + 2)]
    assert average_variance(sizes, best_branching(sizes)) <= min(everything) * 1.02


@pytest.mark.parametrize(("shape", "branching"), [((12, 12), 5), ((20, 13), 7), ((30,), 4)])
def test_the_average_variance_is_close_where_boxes_are_unequal(
    shape: tuple[int, ...], branching: int
) -> None:
    """From the counts of a release, single cells counted twice among them."""
    empty = FrequencyMatrix.from_dense(grid(*shape), np.zeros(shape, dtype=np.int64))
    release = publish(empty, "1", HierarchyBest(branching=branching), noise=SeededNoise(1))
    tree, table = release.tree, release.measurements
    rows = np.zeros((len(table), *shape))
    for row, region, units in zip(rows, table.region, table.epsilon, strict=True):
        box = zip(tree.low[region], tree.high[region], strict=True)
        row[tuple(slice(low, high) for low, high in box)] = units / 1e15
    design = rows.reshape(len(table), -1)
    covariance = np.linalg.inv(design.T @ design)
    weights = np.ones((1, 1))  # how often two cells lie in one range, as a product over the axes
    for cells in shape:
        edges = itertools.combinations(range(cells + 1), 2)
        ranges = np.array(
            [(np.arange(cells) >= low) & (np.arange(cells) < high) for low, high in edges]
        )
        weights = np.kron(weights, ranges.T.astype(float) @ ranges / len(ranges))
    exact = float(np.sum(covariance * weights))
    assert average_variance(np.array(shape), branching) == pytest.approx(exact, rel=0.03)


def empty_releases(shape: tuple[int, int], epsilon: str, runs: int) -> list[Release]:
    empty = FrequencyMatrix.from_dense(grid(*shape), np.zeros(shape, dtype=np.int64))
    return [publish(empty, epsilon, "hb", noise=SeededNoise(seed)) for seed in range(runs)]


def as_grid(release: Release) -> FloatArray:
    cells = np.zeros(release.domain.shape)
    cells[tuple(release.low.T)] = release.estimates
    return cells


def test_the_noise_has_the_variance_of_the_formula() -> None:
    """64 x 64 cells (16 x 16 boxes of 4 x 4), all cells and 500 random ranges, 300 runs. The mean square
    of a run is averaged over runs; it may be off by 5 of its standard errors, which a right
    implementation exceeds about twice in a million seeds."""
    shape, epsilon = (64, 64), 0.5
    releases = empty_releases(shape, "0.5", 300)
    assert releases[0].facts == {"branching": 16, "height": 2, "grid": [64, 64]}
    count_variance = float(noise_variances(np.array([2 / epsilon]))[0])
    random = np.random.default_rng(8)
    corners = np.sort(random.integers(0, 65, (2, 4000, 2)), axis=2)
    corners = corners[:, np.all(corners[:, :, 0] < corners[:, :, 1], axis=0)][:, :500]
    cell_squares, range_squares = [], []
    for release in releases:
        noise = as_grid(release)
        sums = np.pad(noise.cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))
        (a, b), (c, d) = corners[0].T, corners[1].T
        ranges = sums[b, d] - sums[a, d] - sums[b, c] + sums[a, c]
        cell_squares.append(np.mean(noise**2))
        range_squares.append(np.mean(ranges**2))
    # A cell: s - s^2 / S + (s / S)^2 V_p with 16 siblings and 1 / V_p = 1 / s + 1 / (16 s).
    parent = 1 / (1 + 1 / 16)
    cell = count_variance * (1 - 1 / 16 + parent / 16**2)
    assert abs(np.mean(cell_squares) - cell) < 5 * np.std(cell_squares) / np.sqrt(300)
    assert noise_variances(releases[0].scales).tolist() == pytest.approx([cell] * 4096)
    in_units = ranges_variance(corners[0], corners[1])
    assert abs(np.mean(range_squares) - in_units * count_variance) < 5 * np.std(
        range_squares
    ) / np.sqrt(300)
    # The sampled ranges stand for all: the formula's average is near.
    assert in_units * 4 == pytest.approx(average_variance(np.array(shape), 16), rel=0.1)


def ranges_variance(rows: FloatArray, columns: FloatArray) -> float:
    """The mean variance of these ranges of 64 x 64 cells in boxes of 4 x 4, from the text of
    `average_variance`: |P_1 q|^2 / 17 + |q|^2 - |P_1 q|^2, in units of one count's variance."""
    total = 0.0
    for (a, b), (c, d) in zip(rows, columns, strict=True):
        query = np.zeros((64, 64))
        query[a:b, c:d] = 1
        in_boxes = query.reshape(16, 4, 16, 4).sum(axis=(1, 3))
        coarse = float(np.sum(in_boxes**2) / 16)
        total += coarse / 17 + query.sum() - coarse
    return total / len(rows)


def test_without_noise_the_estimates_are_the_cells() -> None:
    matrix = city_matrix()
    release = publish(matrix, "1", "hb", noise=ScriptedNoise())
    assert np.array_equal(as_grid(release), dense(matrix))


@pytest.mark.parametrize("shape", [(50, 37), (1, 50), (9, 8, 5), (1, 1), (11, 130)])
def test_every_cell_gets_the_whole_budget(shape: tuple[int, ...]) -> None:
    matrix = FrequencyMatrix.from_dense(grid(*shape), np.random.default_rng(1).poisson(5, shape))
    for branching in (None, 2, 3):
        release = publish(matrix, "1", HierarchyBest(branching=branching), noise=SeededNoise(5))
        assert len(release) == np.prod(shape)
        own = np.zeros(len(release.tree), dtype=np.int64)
        np.add.at(own, release.measurements.region, release.measurements.epsilon)
        spent = sum_along_paths(release.tree, own)[release.leaves]
        assert np.all((spent <= 10**15) & (spent >= 10**15 - 10))


def test_a_grid_too_fine_is_coarsened_in_the_open() -> None:
    matrix = FrequencyMatrix.from_cells(grid(2**20, 300), [[7], [9]], [50])
    release = publish(matrix, "1", HierarchyBest(most_cells=2**12), noise=ScriptedNoise())
    assert release.facts["grid"] == [64, 64]
    assert len(release) == 64**2
    assert release.estimates.sum() == 50


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(InputError, match="branching must be at least 2, got 1"):
        HierarchyBest(branching=1)
    with pytest.raises(InputError, match="most_cells must be positive, got 0"):
        HierarchyBest(most_cells=0)
    with pytest.raises(BudgetError, match="too small to be shared by 6 levels"):
        publish(city_matrix(), "3e-15", HierarchyBest(branching=2), noise=ScriptedNoise([10**6]))
