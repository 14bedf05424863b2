"""The quadtree against its paper: splits, budgets, heights, pruning."""

from __future__ import annotations

import math

import numpy as np
import pytest

from htf import BudgetError, Epsilon, FrequencyMatrix, InputError, publish
from htf.curator.noise import ScriptedNoise, SeededNoise
from htf.privacy.ledger import sum_along_paths
from htf_bench.mechanisms.quadtree import Quadtree, level_shares
from support import city_matrix, dense, grid

Box = tuple[tuple[int, int], ...]


def naive_boxes(box: Box, height: int) -> list[Box]:
    """All nodes of the tree in no order, each split at the midpoints of all its axes."""
    if height == 0 or all(high - low == 1 for low, high in box):
        return [box]
    children: list[Box] = [()]
    for low, high in box:
        middle = low + (high - low) // 2
        halves = [(low, middle), (middle, high)] if high - low > 1 else [(low, high)]
        children = [(*child, half) for child in children for half in halves]
    return [box, *(found for child in children for found in naive_boxes(child, height - 1))]


@pytest.mark.parametrize("shape", [(8, 8), (7, 13), (1, 9), (5, 4, 3), (1, 1)])
@pytest.mark.parametrize("height", [0, 1, 2, 6])
def test_nodes_are_split_at_their_midpoints(shape: tuple[int, ...], height: int) -> None:
    """The counted regions are those of a naive recursion; halves in between are not counted."""
    counts = np.random.default_rng(2).poisson(9, shape)
    matrix = FrequencyMatrix.from_dense(grid(*shape), counts)
    release = publish(matrix, "1", Quadtree(height=height, prune_below=0), noise=SeededNoise(1))
    counted = np.unique(release.measurements.region)
    low, high = release.tree.low[counted].tolist(), release.tree.high[counted].tolist()
    found = {tuple(zip(*box, strict=True)) for box in zip(low, high, strict=True)}
    root: Box = tuple((0, cells) for cells in shape)
    assert found == {*naive_boxes(root, min(height, release.facts["height"]))}


@pytest.mark.parametrize("height", [0, 1, 5, 10])
@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_budgets_of_the_levels(height: int, dimensions: int) -> None:
    """[CPSSY12, Lemma 3]: 2^((h - i) / 3) * eps * (2^(1/3) - 1) / (2^((h + 1) / 3) - 1) at height i
    of a map; with d axes a border crosses 2^(d - 1) times as many nodes a level down."""
    epsilon = Epsilon.of("0.3")
    ratio = 2 ** ((dimensions - 1) / 3)
    weights = [ratio**depth for depth in range(height + 1)]
    shares = level_shares(epsilon, height, "geo", dimensions)
    assert [float(s) for s in shares] == pytest.approx([0.3 * w / sum(weights) for w in weights])
    if dimensions == 2:
        root = 2 ** (1 / 3)
        paper = [
            2 ** ((height - i) / 3) * 0.3 * (root - 1) / (2 ** ((height + 1) / 3) - 1)
            for i in range(height, -1, -1)
        ]
        assert [float(s) for s in shares] == pytest.approx(paper)
    even = level_shares(epsilon, height, "uniform", dimensions)
    assert [float(s) for s in even] == pytest.approx([0.3 / (height + 1)] * (height + 1))
    for budget in (shares, even):
        assert sum(s.units for s in budget) <= epsilon.units


@pytest.mark.parametrize("budget", ["geo", "uniform"])
def test_the_counts_are_taken_with_these_budgets(budget: str) -> None:
    release = publish(city_matrix(), "0.5", Quadtree(height=4, budget=budget), noise=SeededNoise(1))
    shares = level_shares(Epsilon.of("0.5"), 4, budget, 2)
    assert [line.largest_epsilon for line in release.ledger] == shares
    assert [line.answers for line in release.ledger] == [4**i for i in range(5)]


@pytest.mark.parametrize("shape", [(50, 37), (1, 50), (9, 8, 5), (1, 1)])
def test_every_cell_gets_the_whole_budget(shape: tuple[int, ...]) -> None:
    """A cell that is reached early is counted again: only what rounding takes is left over."""
    matrix = FrequencyMatrix.from_dense(grid(*shape), np.random.default_rng(1).poisson(5, shape))
    for mechanism in (Quadtree(height=9), Quadtree(height=9, budget="uniform")):
        release = publish(matrix, "1", mechanism, noise=SeededNoise(5))
        own = np.zeros(len(release.tree), dtype=np.int64)
        np.add.at(own, release.measurements.region, release.measurements.epsilon)
        ends = np.flatnonzero(release.tree.slabs == 0)
        spent = sum_along_paths(release.tree, own)[ends]
        assert np.all((spent <= 10**15) & (spent >= 10**15 - 10))


def test_without_noise_the_estimates_are_exact() -> None:
    matrix = city_matrix()
    for prune_below in (0, 32):
        release = publish(
            matrix, "1", Quadtree(height=6, prune_below=prune_below), noise=ScriptedNoise()
        )
        for low, high, estimate in zip(release.low, release.high, release.estimates, strict=True):
            assert dense(matrix)[low[0] : high[0], low[1] : high[1]].sum() == estimate


def test_pruning_stops_at_the_first_small_node_and_only_there() -> None:
    """Without noise: leaves hold fewer than 32 unless at the bottom, their parents at least 32."""
    matrix = city_matrix()
    release = publish(matrix, "1", Quadtree(height=6), noise=ScriptedNoise())
    sizes = (release.high - release.low).prod(axis=1)
    assert 1 < len(release) < 4**6
    assert np.all((release.estimates < 32) | (sizes == 1))
    exact = dense(matrix)
    for low, size in zip(release.low, (release.high - release.low)[:, 0], strict=True):
        parent = low // (2 * size) * (2 * size)
        if size < 64:
            box = np.s_[parent[0] : parent[0] + 2 * size, parent[1] : parent[1] + 2 * size]
            assert exact[box].sum() >= 32


def test_inference_helps() -> None:
    """Against the leaves' own counts, on an empty map, the variance of the whole map's total falls
    by far; the estimates say so, too."""
    empty = FrequencyMatrix.from_dense(grid(32, 32), np.zeros((32, 32), dtype=np.int64))
    mechanism = Quadtree(height=5, prune_below=0)
    releases = [publish(empty, "1", mechanism, noise=SeededNoise(seed)) for seed in range(200)]
    totals = np.array([release.estimates.sum() for release in releases])
    share = float(level_shares(Epsilon.of(1), 5, "geo", 2)[5])
    alone = 1024 * 2 / share**2  # the variance of 1024 leaf counts added up
    assert totals.var() < alone / 10


def test_the_height_is_what_was_set_or_what_the_grid_can_use() -> None:
    heights = {
        (1024, 1024): 7,
        (64, 64): 6,
        (1, 1): 0,
        (1, 50): 6,
        (2**20, 2**20): 7,
        (256, 256, 256): 6,
        (64, 64, 64, 64): 5,
    }
    for shape, height in heights.items():
        assert Quadtree().choose_height(grid(*shape)) == height
        assert math.prod(min(2**height, cells) for cells in shape) <= 2**20
    assert Quadtree(height=40).choose_height(grid(64, 100)) == 7


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(InputError, match="height must not be negative, got -1"):
        Quadtree(height=-1)
    with pytest.raises(InputError, match="budget must be geo or uniform, got 'even'"):
        Quadtree(budget="even")
    with pytest.raises(InputError, match="prune_below must not be negative, got -3"):
        Quadtree(prune_below=-3)
    with pytest.raises(InputError, match="height 12 makes 16777216 leaves"):
        Quadtree(height=12).choose_height(grid(2**20, 2**20))
    with pytest.raises(BudgetError, match="too small to be shared by 7 levels"):
        publish(city_matrix(), "3e-15", "quadtree", noise=ScriptedNoise([10**6]))
