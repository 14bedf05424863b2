"""The mechanism `htf-paper` against the paper: its example, its formulas, its pseudocode, its heights."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from htf import BudgetError, Curator, Domain, Epsilon, FrequencyMatrix, InputError, publish
from htf.curator.cells import ExactCells
from htf.curator.noise import ScriptedNoise, SeededNoise
from htf.frame.domain import IntArray
from htf.frame.tree import RegionTree
from htf.mechanisms.htf_paper import CountBudget, HtfPaper, deepest_useful_height
from support import city_matrix, dense, grid, naive_objective


def test_figure_2_worked_example() -> None:
    """Section 4.1: node B1 = [[0,0],[3,3],[3,3]] has objective 0 when the top row is cut off, 6 when
    the bottom row is, and 8 undivided."""
    counts = np.array([[0, 0], [3, 3], [3, 3]])
    cells = ExactCells(FrequencyMatrix.from_dense(grid(3, 2), counts), RegionTree((3, 2)))
    zeros = np.zeros(2, dtype=np.int64)
    assert cells.score_splits(zeros, zeros, np.array([1, 2])).tolist() == [0, 6]
    mean = Fraction(12, 6)
    assert sum(abs(int(c) - mean) for c in counts.ravel()) == 8


@pytest.mark.parametrize(("epsilon", "height"), [("0.1", 15), ("0.3", 16), ("0.5", 17)])
def test_heights_of_section_5(epsilon: str, height: int) -> None:
    """3.5 million points on 1024 x 1024 give levels 15, 16 and 17."""
    matrix = FrequencyMatrix.from_cells(grid(1024, 1024), [[500], [500]], [3_500_000])
    release = publish(matrix, epsilon, HtfPaper(), noise=ScriptedNoise())
    assert release.facts == {"height": height, "noisy_total_for_height": 3_500_000}


def test_the_noisy_total_decides_the_height() -> None:
    matrix = FrequencyMatrix.from_cells(grid(1024, 1024), [[500], [500]], [3_500_000])
    release = publish(matrix, "0.1", HtfPaper(), noise=ScriptedNoise([-3_490_000, 0]))
    assert release.facts["height"] == math.floor(math.log2(10_000 * 0.1 / 10))
    assert (
        publish(matrix, "0.1", HtfPaper(), noise=ScriptedNoise([-3_600_000, 0])).facts["height"]
        == 0
    )


@pytest.mark.parametrize("height", [0, 1, 2, 7, 17, 40])
def test_geometric_allocation(height: int) -> None:
    """[HTF, Alg. 3 line 3] and its formula for eps_i, which sums to eps; the remainder at a stop."""
    epsilon = Epsilon.of("0.085")
    budget = CountBudget(epsilon, height)
    for i in range(height + 1):
        share = 2 ** ((height - i) / 3) * 0.085 * (2 ** (1 / 3) - 1) / (2 ** ((height + 1) / 3) - 1)
        assert float(budget.at(i)) == pytest.approx(share, rel=1e-9)
    total = sum(budget.at(i).units for i in range(height + 1))
    assert epsilon.units - height - 1 <= total <= epsilon.units
    for i in range(height + 1):
        spent = sum(budget.at(j).units for j in range(i, height + 1))
        assert budget.remaining_after(i).units == epsilon.units - spent


def test_the_defaults_are_the_papers() -> None:
    """Section 5.2: eps_prt' = 1E-3, eps_height = 1E-4, T = 3, 100 points, 5 cells."""
    assert HtfPaper().parameters() == {
        "epsilon_partition_level": "0.001",
        "epsilon_height": "0.0001",
        "height": None,
        "search_rounds": 3,
        "split": "search",
        "stop_count": 100,
        "stop_cells": 5,
        "even_axis": "",
    }


# --- the pseudocode, read line by line, with exact scores and counts -------------------------------


def split_point(counts: IntArray, axis: int, rounds: int) -> tuple[int, list[int]]:
    """[HTF, Alg. 1] without noise and with midpoints offset by l; also which k were scored."""
    scored: dict[int, int] = {}

    def o(k: int) -> int:
        return scored.setdefault(k, naive_objective(counts, axis, k)[1])

    left, right = 1, counts.shape[axis]
    k = left + (right - left) // 2
    o(k)
    while left <= right and rounds > 0:
        k1, k2 = left + (k - left) // 2, k + (right - k) // 2
        smallest = min(o(k1), o(k), o(k2))
        if smallest == o(k):
            left, right = k1, k2
        elif smallest == o(k1):
            k, right = k1, k
        else:
            left, k = k, k2
        rounds -= 1
    return k, sorted(scored)


def perturb(
    counts: IntArray, low: tuple[int, int], height: int, leaves: list[Any], rounds: int, stop: int
) -> None:
    """[HTF, Alg. 2 and 3] without noise: y is cut at even heights."""
    if height == 0 or counts.sum() <= stop or counts.size < 5:
        high = (low[0] + counts.shape[0], low[1] + counts.shape[1])
        leaves.append((low, high, int(counts.sum())))
        return
    axis = 1 if height % 2 == 0 else 0
    if counts.shape[axis] == 1:
        axis = 1 - axis
    k, _ = split_point(counts, axis, rounds)
    first, second = np.split(counts, [k], axis=axis)
    moved = (low[0] + k, low[1]) if axis == 0 else (low[0], low[1] + k)
    perturb(first, low, height - 1, leaves, rounds, stop)
    perturb(second, moved, height - 1, leaves, rounds, stop)


@pytest.mark.parametrize("rounds", [0, 1, 3, 5])
@pytest.mark.parametrize("shape", [(64, 64), (7, 31), (1, 40), (3, 3)])
def test_noiseless_tree_equals_the_pseudocode(rounds: int, shape: tuple[int, int]) -> None:
    generator = np.random.default_rng(rounds + shape[0])
    counts = dense(city_matrix()) if shape == (64, 64) else generator.poisson(60, shape) ** 2
    matrix = FrequencyMatrix.from_dense(grid(*shape), counts)
    release = publish(
        matrix, "0.5", HtfPaper(height=9, search_rounds=rounds), noise=ScriptedNoise()
    )
    expected: list[Any] = []
    perturb(counts, (0, 0), min(9, deepest_useful_height(matrix.domain)), expected, rounds, 100)
    found = [
        (tuple(low), tuple(high), int(count))
        for low, high, count in zip(
            release.low.tolist(), release.high.tolist(), release.estimates, strict=True
        )
    ]
    assert sorted(found) == sorted(expected)


def test_each_candidate_is_scored_once() -> None:
    counts = np.random.default_rng(1).poisson(50, (9, 2)) ** 2
    matrix = FrequencyMatrix.from_dense(grid(9, 2), counts)
    release = publish(matrix, "0.5", HtfPaper(height=1, search_rounds=6), noise=ScriptedNoise())
    table = release.measurements
    cuts = table.cut[table.axis >= 0].tolist()
    assert sorted(cuts) == split_point(counts, 0, 6)[1]
    assert len(set(cuts)) == len(cuts)
    share = Epsilon.of("0.001") // 13
    assert set(table.epsilon[table.axis >= 0].tolist()) == {share.units}


def test_baseline_scores_every_candidate_with_an_equal_share() -> None:
    matrix = city_matrix()
    release = publish(matrix, "0.5", HtfPaper(height=1, split="baseline"), noise=ScriptedNoise())
    table = release.measurements
    scored = table.axis >= 0
    assert table.cut[scored].tolist() == list(range(1, 64))
    assert set(table.epsilon[scored].tolist()) == {Epsilon.of("0.001").units // 63}
    best = min(range(1, 64), key=lambda k: naive_objective(dense(matrix), 0, k)[1])
    assert release.high[0].tolist() == [best, 64]


def test_axes_alternate_y_at_even_heights_and_can_be_swapped() -> None:
    """Section 4.2: y if the current height is even. An exhausted axis gives way to the other."""
    matrix = city_matrix()
    for setting, even in (("", 1), ("y", 1), ("x", 0)):
        mechanism = HtfPaper(height=6, even_axis=setting)
        tree = publish(matrix, "0.5", mechanism, noise=SeededNoise(2)).tree
        cut = tree.axis >= 0
        assert np.array_equal(tree.axis[cut] == even, (6 - tree.depth[cut]) % 2 == 0)
    flat = FrequencyMatrix.from_dense(grid(40, 1), np.full((40, 1), 1000))
    tree = publish(flat, "0.5", HtfPaper(height=4), noise=SeededNoise(2)).tree
    assert tree.axis[0] == 0
    with pytest.raises(InputError, match="even_axis must be one of x, y, got 'lon'"):
        publish(matrix, "0.5", HtfPaper(even_axis="lon"), noise=SeededNoise(2))


def test_stop_spends_what_remains_and_leaves_keep_their_first_count() -> None:
    mechanism = HtfPaper(height=3, stop_count=1000)
    release = publish(city_matrix(), "0.5", mechanism, noise=ScriptedNoise())
    table, budget = release.measurements, CountBudget(Epsilon.of("0.497"), 3)
    for leaf in release.leaves:
        height = 3 - int(release.tree.depth[leaf])
        paid = table.epsilon[(table.region == leaf) & (table.axis < 0)].tolist()
        if height == 0:
            assert paid == [budget.at(0).units]
        else:
            assert paid == [budget.at(height).units, budget.remaining_after(height).units]
    heights = 3 - release.tree.depth[release.leaves]
    assert np.any(heights == 0)
    assert np.any(heights > 0), "both kinds of leaf must be seen"
    assert release.spent <= Epsilon.of("0.5")


def test_stop_conditions() -> None:
    """Stop at a noisy count <= 100 (exactly 100 stops, 101 does not) or at fewer than 5 cells."""
    for count, boxes in ((100, 1), (101, 2)):
        matrix = FrequencyMatrix.from_cells(grid(4, 2), [[0], [0]], [count])
        assert len(publish(matrix, 1, HtfPaper(height=1), noise=ScriptedNoise())) == boxes
    for cells, boxes in ((4, 1), (5, 2)):
        matrix = FrequencyMatrix.from_cells(grid(cells, 1), [[0], [0]], [10_000])
        assert len(publish(matrix, 1, HtfPaper(height=1), noise=ScriptedNoise())) == boxes


class NoDraws(ScriptedNoise):
    def draw(self, epsilon_units: IntArray, sensitivity: int) -> IntArray:  # noqa: ARG002
        raise AssertionError("noise was drawn")


@pytest.mark.parametrize(
    ("mechanism", "epsilon", "says"),
    [
        (HtfPaper(), "0.02", "0.001 for each of 20 levels.*epsilon_height 0.0001 come to 0.0201"),
        (HtfPaper(height=12), "0.012", "0.001 for each of 12 levels .as set. come to 0.012"),
        (HtfPaper(epsilon_height=Epsilon.of(1), height=None), "0.5", "come to 1.02"),
        (
            HtfPaper(epsilon_partition_level=Epsilon.of("5e-15")),
            "0.5",
            "too small to be shared by 7",
        ),
        (
            HtfPaper(epsilon_partition_level=Epsilon.of("1e-12"), split="baseline"),
            "0.5",
            "too small to be shared by 1024",
        ),
    ],
)
def test_what_cannot_fit_is_refused_before_the_first_draw(
    mechanism: HtfPaper, epsilon: str, says: str
) -> None:
    matrix = FrequencyMatrix.from_cells(grid(1024, 1024), [[1], [1]], [4_000_000])
    curator = Curator(matrix, Epsilon.of(epsilon), NoDraws())
    with pytest.raises(BudgetError, match=says):
        curator.run(mechanism)
    assert curator.spent.units == 0


def test_what_just_fits_is_accepted() -> None:
    matrix = city_matrix()
    release = publish(
        matrix, "0.0122", HtfPaper(), noise=SeededNoise(1)
    )  # 12 levels and the height, 0.0121
    assert release.spent <= Epsilon.of("0.0122")


def test_los_angeles_box() -> None:
    """Section 5.1: 70 x 70 km around 34.05223, -118.24368. Edges worked out by hand."""
    domain = Domain.square(34.05223, -118.24368, 70)
    x, y = domain.axes
    assert (x.low, x.high) == pytest.approx((-118.62316, -117.86420), abs=1e-5)
    assert (y.low, y.high) == pytest.approx((33.73782, 34.36664), abs=1e-5)
    assert domain.shape == (1024, 1024)
