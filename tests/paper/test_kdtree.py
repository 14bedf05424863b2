"""The mechanism `kdtree` against Cormode et al. 2012: its medians, its budgets, its inference."""

from __future__ import annotations

import numpy as np
import pytest

from htf import BudgetError, Epsilon, FrequencyMatrix, InputError, Release, publish
from htf.curator.noise import ScriptedNoise, SeededNoise
from htf.frame.domain import IntArray
from htf.privacy.ledger import sum_along_paths
from htf_bench.mechanisms.kdtree import KdTree, PathBudget
from support import city_matrix, dense, grid


def box_sums(counts: IntArray, low: IntArray, high: IntArray) -> IntArray:
    """The exact count of each box of a map, by slicing."""
    boxes = zip(low, high, strict=True)
    return np.array([counts[a[0] : b[0], a[1] : b[1]].sum() for a, b in boxes])


def spent_on_paths(release: Release) -> IntArray:
    """What the records of each region that is not cut were charged, in units."""
    own = np.zeros(len(release.tree), dtype=np.int64)
    np.add.at(own, release.measurements.region, release.measurements.epsilon)
    spent = sum_along_paths(release.tree, own)[release.tree.slabs == 0]
    return np.asarray(spent)


@pytest.mark.parametrize("height", [1, 2, 7, 16])
@pytest.mark.parametrize("geometric", [True, False])
def test_budget_of_each_level(height: int, geometric: bool) -> None:
    """Cormode et al.: eps_i = 2^((h-i)/3) eps (2^(1/3) - 1) / (2^((h+1)/3) - 1), or
    eps / (h + 1); 85 % for the counts, 15 % for the medians of h levels."""
    budget = PathBudget(Epsilon.of("0.1"), height, 0.15, "geo" if geometric else "uniform")
    ratio = 2 ** (1 / 3)
    for i in range(height + 1):
        share = 1 / (height + 1)
        if geometric:
            share = ratio ** (height - i) * (ratio - 1) / (ratio ** (height + 1) - 1)
        assert float(budget.counts[i]) == pytest.approx(0.085 * share, rel=1e-9)
    assert float(budget.median) == pytest.approx(0.015 / height, rel=1e-9)
    assert budget.left_at(height) == Epsilon.of("0.1")
    assert float(budget.left_at(0)) == pytest.approx(float(budget.counts[0]), abs=1e-12)
    assert budget.left_at(0) >= budget.counts[0]


def test_without_a_cut_everything_goes_to_the_count() -> None:
    release = publish(city_matrix(), "0.3", KdTree(height=0), noise=SeededNoise(1))
    assert len(release) == 1
    assert release.measurements.epsilon.tolist() == [Epsilon.of("0.3").units]


@pytest.mark.parametrize("budget", ["geo", "uniform"])
@pytest.mark.parametrize("shape", [(64, 64), (5, 3), (1, 9)])
def test_every_path_spends_all_of_epsilon(budget: str, shape: tuple[int, int]) -> None:
    """Also where a node of one cell ends a path early: what remains is spent there."""
    counts = np.random.default_rng(2).poisson(5, shape)
    matrix = FrequencyMatrix.from_dense(grid(*shape), counts)
    mechanism = KdTree(height=6, budget=budget, prune_below=0)
    release = publish(matrix, "0.7", mechanism, noise=SeededNoise(3))
    assert np.all(spent_on_paths(release) == Epsilon.of("0.7").units)
    assert np.any(release.tree.cells(release.leaves) == 1) or shape == (64, 64)


def test_cuts_are_near_the_medians_at_a_large_epsilon() -> None:
    matrix = city_matrix()
    release = publish(matrix, "200", KdTree(height=6, prune_below=0), noise=SeededNoise(5))
    tree, counts = release.tree, dense(matrix)
    assert release.facts == {"height": 6}
    nodes = np.flatnonzero(tree.slabs > 0)
    assert len(nodes) == 2**6 - 1
    for node in nodes:
        axis, child = int(tree.axis[node]), int(tree.first_child[node])
        low, high = tree.low[node], tree.high[node]
        inside = counts[low[0] : high[0], low[1] : high[1]]
        below = np.cumsum(inside.sum(axis=1 - axis))[:-1]
        imbalance = np.abs(2 * below - inside.sum())
        chosen = imbalance[tree.high[child, axis] - low[axis] - 1]
        # exp(-5 / 2 * 8) for the median's 30 / 6, at each of some sixty cuts
        assert chosen <= imbalance.min() + 8


def test_axes_take_turns_and_an_exhausted_axis_gives_way() -> None:
    tree = publish(city_matrix(), "1", KdTree(height=4, prune_below=0), noise=SeededNoise(1)).tree
    for depth in range(4):
        assert set(tree.axis[tree.depth == depth].tolist()) == {1 - depth % 2}  # y at even heights
    row = FrequencyMatrix.from_dense(grid(1, 40), np.full((1, 40), 50))
    tree = publish(row, "1", KdTree(height=5, prune_below=0), noise=SeededNoise(1)).tree
    assert set(tree.axis[tree.slabs > 0].tolist()) == {1}


def test_without_noise_the_leaves_are_exact() -> None:
    matrix = city_matrix()
    release = publish(matrix, "1", KdTree(height=9), noise=ScriptedNoise())
    assert release.estimates.tolist() == box_sums(dense(matrix), release.low, release.high).tolist()


def test_estimates_are_those_of_a_dense_least_squares() -> None:
    """Every count is an equation in the leaves, weighted by its epsilon (in all but the last digits:
    discrete noise of scale b has a variance slightly below 2 b^2)."""
    matrix = city_matrix(16, 3000)
    mechanism = KdTree(height=5, prune_below=0)
    release = publish(matrix, "0.001", mechanism, noise=SeededNoise(8))
    table, tree = release.measurements, release.tree
    rows = table.kind == 0
    region, noisy = table.region[rows], table.value[rows].astype(np.float64)
    weight = table.epsilon[rows].astype(np.float64)
    contains = np.all(tree.low[region][:, None] <= release.low, axis=2)
    contains &= np.all(release.high <= tree.high[region][:, None], axis=2)
    solved = np.linalg.lstsq(contains * weight[:, None], noisy * weight, rcond=None)[0]
    assert release.estimates == pytest.approx(solved, rel=1e-6, abs=1e-3)


def test_pruning_ends_at_the_first_small_estimate() -> None:
    matrix = city_matrix()
    settings = {"height": 10, "budget": "geo"}
    whole = publish(matrix, "1", KdTree(**settings, prune_below=0), noise=SeededNoise(4))  # type: ignore[arg-type]
    pruned = publish(matrix, "1", KdTree(**settings, prune_below=100), noise=SeededNoise(4))  # type: ignore[arg-type]
    assert pruned.tree.parent.tolist() == whole.tree.parent.tolist()
    assert len(pruned) < len(whole)
    assert pruned.estimates.sum() == pytest.approx(whole.estimates.sum())
    # The estimate of any region is the sum over the leaves of the whole tree that lie in it.
    sums = np.zeros(len(whole.tree))
    sums[whole.leaves] = whole.estimates
    for layer in reversed(whole.tree.layers(1)):
        np.add.at(sums, whole.tree.parent[layer], sums[layer])
    assert pruned.estimates == pytest.approx(sums[pruned.leaves])
    inner = pruned.tree.slabs[pruned.leaves] > 0
    assert np.all(pruned.estimates[inner] < 100)
    parents = pruned.tree.parent[pruned.leaves]
    assert np.all(sums[parents] >= 100)


def test_a_geometric_budget_counts_the_leaves_more_precisely() -> None:
    scales = [
        publish(city_matrix(), "1", KdTree(8, budget), noise=SeededNoise(1)).scales.mean()
        for budget in ("geo", "uniform")
    ]
    assert scales[0] < scales[1]


def test_the_height_is_no_more_than_the_grid_can_use() -> None:
    matrix = FrequencyMatrix.from_dense(grid(4, 4), np.full((4, 4), 10))
    assert publish(matrix, "1", KdTree(30), noise=SeededNoise(1)).facts == {"height": 4}


def test_refusals() -> None:
    matrix = city_matrix()
    for settings, message in (
        ({"height": -1}, "height must not be negative"),
        ({"budget": "best"}, "budget must be geo or uniform"),
        ({"partition_share": 1.5}, "partition_share must be between 0 and 1"),
        ({"prune_below": -5}, "prune_below must not be negative"),
    ):
        with pytest.raises(InputError, match=message):
            KdTree(**settings)
    with pytest.raises(BudgetError, match="shared by the counts of 13 levels"):
        publish(matrix, "3e-14", KdTree(12), noise=SeededNoise(1))
    fine = FrequencyMatrix.from_cells(grid(2**20, 2**20), [[5], [5]])
    with pytest.raises(InputError, match="height 30 makes up to 1073741824 leaves"):
        publish(fine, "1", KdTree(30), noise=SeededNoise(1))
