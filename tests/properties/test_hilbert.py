"""Questions along a curve: exact values, sensitivity, the cheapest partition, and its privacy."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htf import Curator, Epsilon, FrequencyMatrix, InputError
from htf.curator.cells import ExactCells
from htf.curator.curve_kernels import least_cost_starts
from htf.curator.curve_measurements import (
    LeastCostBuckets,
    WeightedRuns,
    bucket_costs,
    counts_along_curve,
)
from htf.curator.measurements import joint
from htf.curator.noise import NoiseSource, ScriptedNoise, SeededNoise
from htf.frame.curve import morton_index
from htf.frame.domain import FloatArray, IntArray
from htf.frame.tree import RegionTree
from htf_bench.mechanisms.dawa import Curve, hilbert_index
from support import dense, grid, matrices, with_one_more
from telling import examples, telling

Counts = st.lists(st.sampled_from([0, 0, 1, 2, 3, 50]), min_size=1, max_size=24)


@pytest.mark.parametrize("bits", [1, 2, 3, 6])
def test_the_hilbert_curve_visits_every_cell_and_goes_to_neighbours(bits: int) -> None:
    places = np.indices((2**bits, 2**bits)).reshape(2, -1)
    index = hilbert_index(places, bits)
    assert sorted(index.tolist()) == list(range(4**bits))
    walk = places[:, np.argsort(index)]
    assert np.all(np.abs(np.diff(walk, axis=1)).sum(axis=0) == 1)


@pytest.mark.parametrize("level", [1, 2, 3])
def test_aligned_runs_of_the_curves_are_squares_made_by_halving(level: int) -> None:
    square = np.indices((16, 16)).reshape(2, -1)
    cube = np.indices((8, 8, 8)).reshape(3, -1)
    for places, index in ((square, hilbert_index(square, 4)), (cube, morton_index(cube, 3))):
        run = index >> (len(places) * level)
        block = np.ravel_multi_index(tuple(places >> level), (16 >> level,) * len(places))
        assert len(set(zip(run.tolist(), block.tolist(), strict=True))) == run.max() + 1


@pytest.mark.parametrize("shape", [(1, 1), (1, 50), (7, 13), (256, 16), (9, 8, 5), (3, 1, 5, 2)])
def test_any_grid_has_each_position_once(shape: tuple[int, ...]) -> None:
    curve = Curve.over(shape, 2**16)
    assert sorted(curve.positions.tolist()) == list(range(math.prod(shape)))
    if shape == (1, 50):
        assert curve.positions.tolist() == list(range(50)), "a row is its own curve"


def naive_deviation(counts: IntArray) -> int:
    mean = Fraction(int(counts.sum()), len(counts))
    return math.floor(sum((abs(int(c) - mean) for c in counts), Fraction(0)))


@given(Counts)
@examples(150)
def test_costs_are_the_deviations_rounded_down(values: list[int]) -> None:
    counts = np.array(values)
    costs = bucket_costs(counts)
    assert 2 ** (len(costs) - 1) <= len(counts) < 2 ** len(costs)
    for level, row in enumerate(costs):
        for start in range(len(counts) - 2**level + 1):
            assert row[start] == naive_deviation(counts[start : start + 2**level])


@given(Counts, st.data())
@examples(200)
def test_costs_move_by_no_more_than_the_proof_says(values: list[int], data: Any) -> None:
    """By 0 for one position, 1 for two, 2 for more; and only in buckets that hold the record."""
    counts = np.array(values)
    place = data.draw(st.integers(0, len(counts) - 1))
    more = counts.copy()
    more[place] += 1
    moved = np.abs(bucket_costs(more) - bucket_costs(counts))
    for level, row in enumerate(moved):
        starts = np.arange(len(counts))
        holds = (starts <= place) & (place < starts + 2**level)
        assert np.all(row <= np.where(holds, min(level, 2), 0))


def all_partitions(positions: int) -> list[tuple[int, ...]]:
    """All tuples of powers of two that sum to this."""
    if positions == 0:
        return [()]
    lengths = [2**level for level in range(positions.bit_length())]
    return [(*rest, n) for n in lengths for rest in all_partitions(positions - n)]


def cost_of(partition: tuple[int, ...], costs: IntArray) -> int:
    ends = np.cumsum(partition)
    rows = zip(partition, ends - np.array(partition), strict=True)
    return sum(int(costs[length.bit_length() - 1, start]) for length, start in rows)


@given(st.integers(1, 9), st.integers(1, 4), st.data())
@examples(150)
def test_the_cheapest_of_all_partitions_is_found(positions: int, spread: int, data: Any) -> None:
    """Against all of them, with many ties, which go to the shortest last buckets."""
    levels = positions.bit_length()
    drawn = st.lists(
        st.integers(-spread, spread), min_size=levels * positions, max_size=levels * positions
    )
    costs = np.array(data.draw(drawn)).reshape(levels, positions)
    best = min(all_partitions(positions), key=lambda p: (cost_of(p, costs), p[::-1]))
    starts = np.zeros(positions, dtype=np.int64)
    starts[np.cumsum((0, *best[:-1]))] = 1
    assert least_cost_starts(costs, positions).tolist() == starts.tolist()
    large = costs.astype(object) * 2**80  # the loop in Python, for numbers of any size
    assert least_cost_starts.py_func(large, positions).tolist() == starts.tolist()


def partition_probabilities(counts: IntArray, rates: list[float], penalty: int) -> FloatArray:
    """Exact chances, up to 1e-9, of the partitions 1+1+1, 2+1 and 1+2 of three positions.

    Given the noise of the first and the last position on its own, the three costs are independent.
    Ties go to the shortest last bucket, so in the order named.
    """
    reach = 40
    values = np.arange(-reach, reach + 1)
    single, pair = (np.tanh(rate / 2) * np.exp(-rate * np.abs(values)) for rate in rates)
    costs = bucket_costs(counts)[1]
    first, last = values[:, None, None], values[None, :, None]
    three = first + last + values + 3 * penalty
    two_one = last + values + costs[0] + 2 * penalty
    one_two = first + values + costs[1] + 2 * penalty
    weight = single[:, None] * single[None, :]

    def at_least(other: IntArray, bound: IntArray) -> FloatArray:
        """P(other >= bound), for costs `other` of pairs, of which the last axis is noise."""
        tails = np.append(np.cumsum(pair[::-1])[::-1], 0.0)
        smallest = other[..., :1]
        return np.asarray(tails[np.clip(bound - smallest, 0, len(tails) - 1)])

    def singles_above(bound: IntArray) -> FloatArray:
        tails = np.append(np.cumsum(single[::-1])[::-1], 0.0)
        return np.asarray(tails[np.clip(bound - three[..., :1], 0, len(tails) - 1)])

    chances = [
        np.sum(weight[..., None] * single * at_least(two_one, three) * at_least(one_two, three)),
        np.sum(weight[..., None] * pair * singles_above(two_one + 1) * at_least(one_two, two_one)),
        np.sum(
            weight[..., None] * pair * singles_above(one_two + 1) * at_least(two_one, one_two + 1)
        ),
    ]
    return np.array(chances)


def greatest_loss(rates: list[float], penalty: int) -> float:
    """Over all neighbours with counts up to 3, by enumeration."""
    loss = 0.0
    for counts in itertools.product(range(4), repeat=3):
        here = partition_probabilities(np.array(counts), rates, penalty)
        assert here.sum() == pytest.approx(1, abs=1e-8)
        for place in range(3):
            more = np.array(counts)
            more[place] += 1
            there = partition_probabilities(more, rates, penalty)
            loss = max(loss, float(np.abs(np.log(there / here)).max()))
    return loss


@pytest.mark.parametrize("penalty", telling([0, 2], lambda penalty: penalty == 2))
def test_the_partition_of_three_positions_loses_no_more_than_epsilon(penalty: int) -> None:
    """And the check can fail: with a third of the noise it loses more."""
    question = ask(LeastCostBuckets, 3, "2", penalty=penalty)
    rates = [float(question.rate(level)) for level in (0, 1)]
    assert greatest_loss(rates, penalty) <= 2 * (1 + 1e-6)
    assert greatest_loss([3 * rate for rate in rates], penalty) > 2


def ask(kind: Any, cells: int, epsilon: str, **rest: Any) -> Any:
    edges = (np.arange(cells + 1),)
    return kind("question", *joint(Epsilon.of(epsilon)), edges, np.arange(cells), **rest)


def line(counts: Any) -> ExactCells:
    counts = np.asarray(counts, dtype=np.int64)
    domain = grid(len(counts))
    return ExactCells(FrequencyMatrix.from_dense(domain, counts), RegionTree(domain.shape))


def test_every_candidate_has_noise_of_its_own_rate() -> None:
    drawn: list[tuple[Fraction, int]] = []

    class Recorder(NoiseSource):
        private, description = False, "recorder"

        def draw_at(self, rate: Fraction, size: int) -> IntArray:
            drawn.append((rate, size))
            return np.zeros(size, dtype=np.int64)

    ask(LeastCostBuckets, 9, "0.6", penalty=1).answer(line([1] * 9), Recorder())
    tenth = Fraction(6, 10)
    assert drawn == [(tenth / 2, 9), (tenth / 3, 8), (tenth / 4, 6), (tenth / 4, 2)]


def test_without_noise_buckets_are_the_flat_parts() -> None:
    counts = [7] * 8 + [0] * 16 + [50] * 4 + [3] * 2 + [90, 2]
    starts = ask(LeastCostBuckets, 32, "1", penalty=1).answer(line(counts), ScriptedNoise())
    assert np.flatnonzero(starts).tolist() == [0, 8, 24, 28, 30, 31]


def test_flat_data_have_few_buckets() -> None:
    question = ask(LeastCostBuckets, 4096, "0.1", penalty=200)
    starts = question.answer(line([5] * 4096), SeededNoise(1))
    assert starts.sum() < 40


def test_noise_beyond_64_bits_of_sums_is_added_up_exactly() -> None:
    question = ask(LeastCostBuckets, 64, "0.001", penalty=1)
    for noise in (2**60, 2**62):  # two of the latter pass 64 bits, and no cost is below 0
        assert question.answer(line([3] * 64), ScriptedNoise([noise])).sum() == 1
    assert question.answer(line([3] * 64), ScriptedNoise([-(2**60)])).sum() == 64


@given(matrices(), st.data())
@examples(80)
def test_runs_are_sums_along_the_curve_and_move_by_their_sensitivity(
    matrix: FrequencyMatrix, data: Any
) -> None:
    curve = Curve.over(matrix.domain.shape, 2**16)
    number = len(curve.positions)
    runs = st.tuples(st.integers(0, number - 1), st.integers(1, number), st.integers(1, 9))
    drawn = data.draw(st.lists(runs.filter(lambda r: r[0] < r[1]), min_size=1, max_size=6))
    starts, stops, weights = np.array(drawn).T
    question = WeightedRuns(
        "runs", *joint(Epsilon.of(1)), tuple(curve.edges), curve.positions, starts, stops, weights
    )
    tree = RegionTree(matrix.domain.shape)
    question.check(tree)
    along = np.empty(number, dtype=np.int64)
    along[curve.positions] = dense(matrix).ravel()
    exact = question.exact(ExactCells(matrix, tree))
    naive = [w * along[a:b].sum() for a, b, w in zip(starts, stops, weights, strict=True)]
    assert exact.tolist() == naive
    covering = [sum(w for a, b, w in drawn if a <= p < b) for p in range(number)]
    assert question.sensitivity == max(covering)
    cell = [data.draw(st.integers(0, n - 1)) for n in matrix.domain.shape]
    after = question.exact(ExactCells(with_one_more(matrix, cell), tree))
    assert np.abs(after - exact).sum() <= question.sensitivity


def test_cells_are_joined_into_the_coarse_grid() -> None:
    matrix = FrequencyMatrix.from_dense(grid(4, 3), np.arange(12).reshape(4, 3))
    edges = (np.array([0, 1, 4]), np.array([0, 2, 3]))
    cells = ExactCells(matrix, RegionTree((4, 3)))
    assert counts_along_curve(cells, edges, np.array([3, 0, 1, 2])).tolist() == [2, 39, 24, 1]


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        (LeastCostBuckets, {"penalty": -1}, "penalty of a bucket"),
        (LeastCostBuckets, {"penalty": 1.5}, "whole number"),
        (LeastCostBuckets, {"penalty": 2**40 + 1}, "must lie between"),
        (LeastCostBuckets, {"positions": [0, 1, 2, 2]}, "each once"),
        (LeastCostBuckets, {"positions": [0, 1, 2]}, "each cell needs one position"),
        (LeastCostBuckets, {"edges": (np.array([0, 2, 3]),)}, "must ascend from 0 to 4"),
        (LeastCostBuckets, {"edges": (np.arange(5), np.arange(2))}, "edges for each axis"),
        (LeastCostBuckets, {"regions": [1]}, "whole map"),
        (WeightedRuns, {"stops": [2, 9]}, "within the curve"),
        (WeightedRuns, {"starts": [0, 4]}, "begin before it ends"),
        (WeightedRuns, {"starts": [0, -1]}, "within the curve"),  # whose weight would not count
        (WeightedRuns, {"starts": [-4, 2], "stops": [4, 4]}, "within the curve"),
        (WeightedRuns, {"starts": [0]}, "a start, a stop and a weight"),
        (WeightedRuns, {"stops": [4]}, "a start, a stop and a weight"),
        (WeightedRuns, {"starts": [], "stops": [], "weights": []}, "a start, a stop and a weight"),
        (WeightedRuns, {"weights": [1, 0]}, "weight of a run"),
        (WeightedRuns, {"weights": [2**9 + 1, 1]}, "weight of a run"),
        (WeightedRuns, {"weights": [1]}, "a start, a stop and a weight"),
    ],
)
def test_senseless_questions_are_refused_and_cost_nothing(
    kind: Any, changes: dict[str, Any], message: str
) -> None:
    curator = Curator(
        FrequencyMatrix.from_dense(grid(4), np.arange(4)), Epsilon.of(1), SeededNoise(1)
    )
    curator.window.tree.split(np.array([0]), np.array([0]), np.array([2]))
    regions, epsilon = joint(Epsilon.of(1))
    rest: dict[str, Any] = {"penalty": 1}
    if kind is WeightedRuns:
        rest = {"starts": [0, 2], "stops": [4, 4], "weights": [1, 2]}
    given_ = {"regions": regions, "edges": (np.arange(5),), "positions": np.arange(4), **rest}
    curator.measure(kind(label="sound", epsilon=epsilon // 2, **given_))
    with pytest.raises(InputError, match=message):
        curator.measure(kind(label="senseless", epsilon=epsilon // 2, **{**given_, **changes}))
    assert curator.spent == Epsilon.of("0.5")
