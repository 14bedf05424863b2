"""The uniform and the adaptive grid against their rules, and against naive versions of themselves."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from htf import BudgetError, FrequencyMatrix, InputError, publish
from htf.curator.noise import ScriptedNoise, SeededNoise
from htf.frame.domain import FloatArray, IntArray
from htf.frame.grids import limit_parts
from htf.frame.tree import RegionTree
from htf.mechanisms import Mechanism
from htf.privacy.ledger import sum_along_paths
from htf_bench.grids import Grid
from htf_bench.mechanisms.adaptive_grid import AdaptiveGrid, first_side
from htf_bench.mechanisms.uniform_grid import UniformGrid, grid_side
from support import dense, grid

SMOOTHING = 20


def even_edges(low: int, high: int, parts: int) -> list[int]:
    parts = min(parts, high - low)
    return [low + j * (high - low) // parts for j in range(parts + 1)]


def naive_uniform_grid(counts: IntArray, epsilon: float, random: np.random.Generator) -> FloatArray:
    """[QYL13, Guideline 1] cell by cell; N for free, and Laplace noise in floats."""
    side = math.ceil(math.sqrt(counts.sum() * epsilon / 10))
    spread = np.zeros(counts.shape)
    rows, columns = (even_edges(0, cells, side) for cells in counts.shape)
    for top, bottom in pairwise(rows):
        for left, right in pairwise(columns):
            box = np.s_[top:bottom, left:right]
            spread[box] = (counts[box].sum() + random.laplace(0, 1 / epsilon)) / counts[box].size
    return spread


def naive_adaptive_grid(
    counts: IntArray, epsilon: float, random: np.random.Generator
) -> FloatArray:
    """[QYL13, Section IV-B] cell by cell, alpha = 0.5, with their formulas for the inference."""
    side = max(10, math.ceil(math.ceil(math.sqrt(counts.sum() * epsilon / 10)) / 4))
    spread, half = np.zeros(counts.shape), epsilon / 2
    rows, columns = (even_edges(0, cells, side) for cells in counts.shape)
    for top, bottom in pairwise(rows):
        for left, right in pairwise(columns):
            noisy = counts[top:bottom, left:right].sum() + random.laplace(0, 1 / half)
            parts = math.ceil(math.sqrt(max(noisy, 0) * half / 5)) or 1
            inner_rows = even_edges(top, bottom, parts)
            inner_columns = even_edges(left, right, parts)
            boxes = [
                np.s_[a:b, c:d] for a, b in pairwise(inner_rows) for c, d in pairwise(inner_columns)
            ]
            inner = [counts[box].sum() + random.laplace(0, 1 / half) for box in boxes]
            number = len(boxes)
            combined = (number * noisy + sum(inner)) / (number + 1)
            for box, count in zip(boxes, inner, strict=True):
                spread[box] = (count + (combined - sum(inner)) / number) / counts[box].size
    return spread


Naive = Callable[[IntArray, float, np.random.Generator], FloatArray]
NAIVE: dict[str, Naive] = {"ug": naive_uniform_grid, "ag": naive_adaptive_grid}


def random_rectangles(shape: tuple[int, int], number: int) -> IntArray:
    random = np.random.default_rng(11)
    corners = [np.sort(random.integers(0, cells + 1, (number, 2)), axis=1) for cells in shape]
    boxes = np.stack([corners[0], corners[1]], axis=1)
    return np.asarray(boxes[np.all(boxes[:, :, 1] > boxes[:, :, 0], axis=1)])


def box_sums(counts: FloatArray | IntArray, boxes: IntArray) -> FloatArray:
    sums = np.zeros((counts.shape[0] + 1, counts.shape[1] + 1))
    sums[1:, 1:] = counts.cumsum(axis=0).cumsum(axis=1)
    (top, bottom), (left, right) = boxes[:, 0].T, boxes[:, 1].T
    return np.asarray(sums[bottom, right] - sums[top, right] - sums[bottom, left] + sums[top, left])


def mean_relative_error(answers: FloatArray, exact: FloatArray) -> float:
    return float(np.mean(np.abs(answers - exact) / np.maximum(exact, SMOOTHING)))


def our_errors(
    counts: IntArray, mechanism: Mechanism, epsilon: float, boxes: IntArray, runs: int
) -> FloatArray:
    """The mean relative error of each of `runs` releases, asked as an analyst would."""
    matrix = FrequencyMatrix.from_dense(grid(*counts.shape), counts)
    exact = box_sums(counts, boxes)
    corners = np.concatenate([boxes[:, :, 0], boxes[:, :, 1]], axis=1)
    releases = (publish(matrix, epsilon, mechanism, noise=SeededNoise(run)) for run in range(runs))
    return np.array([mean_relative_error(r.count(corners).count, exact) for r in releases])


def naive_errors(
    counts: IntArray, naive: Naive, epsilon: float, boxes: IntArray, runs: int
) -> FloatArray:
    exact = box_sums(counts, boxes)
    spreads = (naive(counts, epsilon, np.random.default_rng(1000 + run)) for run in range(runs))
    return np.array([mean_relative_error(box_sums(spread, boxes), exact) for spread in spreads])


def towns(cells: int, points: int, seed: int) -> IntArray:
    """Towns in open country, and a tenth of the records spread everywhere."""
    random = np.random.default_rng(seed)
    centres, spreads = random.uniform(0, cells, (9, 2)), random.uniform(0.01, 0.1, 9) * cells
    town = random.integers(0, 9, points)
    drawn = centres[town] + random.normal(size=(points, 2)) * spreads[town, None]
    drawn[: points // 10] = random.uniform(0, cells, (points // 10, 2))
    cell = np.floor(drawn).astype(np.int64).clip(0, cells - 1)
    counts = np.zeros((cells, cells), dtype=np.int64)
    np.add.at(counts, (cell[:, 0], cell[:, 1]), 1)
    return counts


MECHANISMS = {"ug": UniformGrid, "ag": AdaptiveGrid}
RUNS = 100
BOXES = random_rectangles((96, 96), 400)


@cache
def naive_error(name: str, epsilon: float, points: int) -> float:
    counts = towns(96, points, 4)
    return float(naive_errors(counts, NAIVE[name], epsilon, BOXES, RUNS).mean())


@pytest.mark.parametrize("name", ["ug", "ag"])
@pytest.mark.parametrize("epsilon", [0.1, 0.5])
@pytest.mark.parametrize("points", [30_000, 300_000])
@pytest.mark.parametrize("public", [True, False])
def test_errors_are_those_of_a_naive_version(
    name: str, epsilon: float, points: int, public: bool
) -> None:
    """Within 10 %. The means of 100 runs each differ by chance with a standard deviation of 1.2 to
    1.9 % (measured): with N public a right implementation fails with less than one seed in a
    million. Buying N really costs some 2 %, so that there it is one in some ten thousand."""
    counts = towns(96, points, 4)
    mechanism = MECHANISMS[name](public_total=int(counts.sum()) if public else None)
    ours = our_errors(counts, mechanism, epsilon, BOXES, RUNS).mean()
    assert ours == pytest.approx(naive_error(name, epsilon, points), rel=0.1)


def test_a_wrong_budget_would_be_seen() -> None:
    """The comparison can fail: half of the budget thrown away is far more than 10 %."""
    ours = our_errors(towns(96, 30_000, 4), AdaptiveGrid(), 0.1, BOXES, RUNS).mean()
    assert ours > 1.3 * naive_error("ag", 0.2, 30_000)


@pytest.mark.parametrize(("points", "side"), [(1_000_000, 100), (1_000_001, 101), (9, 1), (0, 1)])
def test_the_uniform_grid_has_the_papers_side(points: int, side: int) -> None:
    matrix = FrequencyMatrix.from_cells(grid(300, 200), [[7], [9]], [points])
    release = publish(matrix, "0.1", UniformGrid(public_total=points), noise=ScriptedNoise())
    assert release.facts["grid"] == [side, side]
    assert len(release) == side**2
    assert release.facts["public_total"] == f"N = {points} was disclosed exactly by the curator"
    widths = release.high - release.low
    assert np.all(widths.max(axis=0) - widths.min(axis=0) <= 1)


def test_the_adaptive_grid_has_the_papers_sides() -> None:
    """N = 1e6 at epsilon 0.1: m1 = ceil(100 / 4) = 25, and all records in one of its cells:
    m2 = ceil(sqrt(1e6 * 0.05 / 5)) = 100, cut down to the 20 x 20 cells that are there."""
    matrix = FrequencyMatrix.from_cells(grid(500, 500), [[7], [9]], [1_000_000])
    release = publish(matrix, "0.1", AdaptiveGrid(public_total=10**6), noise=ScriptedNoise())
    assert release.facts["first_grid"] == [25, 25]
    assert len(release) == 25**2 - 1 + 20**2
    matrix = FrequencyMatrix.from_cells(grid(500, 500), [[7], [9]], [1_000])
    release = publish(matrix, "0.1", AdaptiveGrid(public_total=10**3), noise=ScriptedNoise())
    assert release.facts["first_grid"] == [10, 10]
    assert len(release) == 10**2 - 1 + 4**2


@pytest.mark.parametrize(("side", "parts"), [(1, [1, 1]), (64, [64, 64]), (10**18, [300, 200])])
def test_a_uniform_grid_of_a_given_side_buys_no_total(side: int, parts: list[int]) -> None:
    matrix = FrequencyMatrix.from_cells(grid(300, 200), [[7], [9]], [1000])
    release = publish(matrix, "0.1", UniformGrid(side=side), noise=ScriptedNoise())
    assert release.facts == {"grid": parts}
    assert len(release) == np.prod(parts)
    assert [str(entry.largest_epsilon) for entry in release.ledger] == ["0.1"]


def test_larger_constants_make_an_adaptive_grid_coarser() -> None:
    """N = 1e6 at epsilon 0.1: m1 = ceil(ceil(sqrt(1e5 / c)) / 4), m2 = ceil(sqrt(5e4 / c2))."""
    matrix = FrequencyMatrix.from_cells(grid(500, 500), [[7], [9]], [1_000_000])
    for c, c2, first, second in ((10, 5, 25, 20), (2.5, 500, 50, 10), (40, 2000, 13, 5)):
        mechanism = AdaptiveGrid(public_total=10**6, c=c, c2=c2)
        release = publish(matrix, "0.1", mechanism, noise=ScriptedNoise())
        assert release.facts["first_grid"] == [first, first]
        assert len(release) == first**2 - 1 + second**2


def test_sides_in_other_dimensions() -> None:
    assert grid_side(grid(50, 50), 1e4) == pytest.approx(100)
    assert grid_side(grid(50, 1), 1e6) == grid_side(grid(50), 1e6) == pytest.approx(1e4)
    assert grid_side(grid(50, 50, 50), 1e5) == pytest.approx(100)
    assert [first_side(grid(*[50] * d), 1.0) for d in (1, 2, 3, 4)] == [100, 10, 5, 4]


@pytest.mark.parametrize("mechanism", [UniformGrid(), AdaptiveGrid()])
def test_the_total_is_bought(mechanism: UniformGrid | AdaptiveGrid) -> None:
    """The noisy total decides, the exact one does not; it costs its share and no more."""
    matrix = FrequencyMatrix.from_cells(grid(400, 400), [[7], [9]], [1_000_000])
    release = publish(matrix, "0.1", mechanism, noise=ScriptedNoise([-750_000, 0]))
    assert release.facts["noisy_total"] == 250_000
    assert release.facts.get("grid", [50, 50]) == [50, 50]
    assert release.facts.get("first_grid", [13, 13]) == [13, 13]
    assert str(release.ledger[0].largest_epsilon) == "0.001"
    assert "public_total" not in release.facts


@pytest.mark.parametrize("name", ["ug", "ag"])
def test_every_cell_gets_the_whole_budget(name: str) -> None:
    """To the unit: what is not divided further is counted again, not left over."""
    release = publish(
        FrequencyMatrix.from_dense(grid(50, 37), towns(50, 9000, 2)[:, :37]), "1", name,
        noise=SeededNoise(5),
    )  # fmt: skip
    own = np.zeros(len(release.tree), dtype=np.int64)
    np.add.at(own, release.measurements.region, release.measurements.epsilon)
    spent = sum_along_paths(release.tree, own)[release.leaves]
    assert np.all(spent == release.epsilon.units)


@pytest.mark.parametrize("name", ["ug", "ag"])
def test_estimates_keep_their_signs(name: str) -> None:
    """Counts cut at zero would add up to far too much on an empty map."""
    empty = FrequencyMatrix.from_dense(grid(64, 64), np.zeros((64, 64), dtype=np.int64))
    releases = [publish(empty, "0.1", name, noise=SeededNoise(seed)) for seed in range(5)]
    assert any(float(release.estimates.min()) < 0 for release in releases)


@pytest.mark.parametrize("name", ["ug", "ag"])
def test_a_budget_too_small_is_refused_before_the_first_draw(name: str) -> None:
    matrix = FrequencyMatrix.from_dense(grid(2, 2), np.ones((2, 2), dtype=np.int64))
    with pytest.raises(BudgetError, match=r"0\.000000000000009 is too small"):
        publish(matrix, "9e-15", name, noise=ScriptedNoise([10**6]))


def test_mistakes_are_named() -> None:
    with pytest.raises(InputError, match="alpha must be between 0 and 1, got 1"):
        AdaptiveGrid(alpha=1)
    with pytest.raises(InputError, match="epsilon_total_share must be between 0 and 1, got 0"):
        UniformGrid(epsilon_total_share=0)
    with pytest.raises(InputError, match="public_total must not be negative, got -1"):
        UniformGrid(public_total=-1)
    with pytest.raises(InputError, match="side must be at least 1, got 0"):
        UniformGrid(side=0)
    with pytest.raises(InputError, match="a side of 8 needs no N: leave out public_total=5"):
        UniformGrid(side=8, public_total=5)
    for name, value in (("c", 0), ("c2", -1), ("c", 1e7), ("c2", 1e-4)):
        with pytest.raises(InputError, match=rf"{name} must be between 0\.001 and 1000000, got"):
            AdaptiveGrid.from_settings({name: value})
    with pytest.raises(InputError, match="alpha must be a number between 0 and 1, got 'x'"):
        AdaptiveGrid.from_settings({"alpha": "x"})


def test_limits_are_as_fine_as_they_can_be() -> None:
    parts = np.array([[1000, 10], [500, 2000]])
    assert limit_parts(parts, 10**9).tolist() == parts.tolist()
    limited = limit_parts(parts, 5000)
    assert limited.tolist() == [[65, 10], [65, 65]]  # 4875; with 66 it would be 5016
    assert limit_parts(np.array([[2**31, 2**31]]), 2**20).tolist() == [[1024, 1024]]
    assert limit_parts(np.array([[2**20, 2**20]])).tolist() == [[2048, 2048]]


@pytest.mark.parametrize("cells", [(7, 13), (1024, 5), (2**31 - 1, 3)])
def test_a_coarse_grid_is_even_and_nested(cells: tuple[int, int]) -> None:
    """Cut in two steps or in one, along lines of the same grid."""
    coarse = Grid.limited(grid(*cells), 60)
    trees = [RegionTree(cells), RegionTree(cells)]
    root = np.zeros(1, dtype=np.int64)
    at_once = coarse.cut_evenly(trees[0], root, coarse.shape[None])
    some = coarse.cut_evenly(trees[1], root, np.minimum(coarse.shape, 3)[None])
    rest = coarse.cut_evenly(trees[1], some, coarse.widths(trees[1], some))
    boxes = [
        {*map(tuple, np.hstack([tree.low[leaves], tree.high[leaves]]).tolist())}
        for tree, leaves in zip(trees, (at_once, rest), strict=True)
    ]
    assert boxes[0] == boxes[1]
    assert len(boxes[0]) == coarse.shape.prod()
    widths = trees[0].high[at_once] - trees[0].low[at_once]
    assert np.all(widths.max(axis=0) - widths.min(axis=0) <= 1)


def test_without_noise_the_estimates_are_exact() -> None:
    counts = towns(40, 5000, 6)
    matrix = FrequencyMatrix.from_dense(grid(40, 40), counts)
    for name in ("ug", "ag"):
        release = publish(matrix, "1", name, noise=ScriptedNoise())
        for low, high, estimate in zip(release.low, release.high, release.estimates, strict=True):
            assert dense(matrix)[low[0] : high[0], low[1] : high[1]].sum() == estimate
