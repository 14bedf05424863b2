"""The packed hierarchy against a plain loop over leaves."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htf.estimation.noise_law import noise_variances
from htf.frame.domain import FloatArray, IntArray
from htf.query.index import CHUNK, FAN_OUT, BoxIndex
from telling import examples

SUMMED = ("estimate", "absolute", "variance", "fourth_cumulant", "noisy_leaves", "partial_absolute")
NAMES = (*SUMMED, "smallest_weight", "largest_weight")


@dataclass(frozen=True)
class Leaves:
    low: IntArray
    high: IntArray
    estimates: FloatArray
    scales: FloatArray

    @property
    def index(self) -> BoxIndex:
        return BoxIndex(self.low, self.high, self.estimates, self.scales)


def cut(random: np.random.Generator, shape: list[int], cuts: int) -> tuple[IntArray, IntArray]:
    """A random guillotine tiling: time and again a leaf is cut in two."""
    leaves = [([0] * len(shape), list(shape))]
    for _ in range(cuts):
        low, high = leaves.pop(int(random.integers(len(leaves))))
        axis = int(random.integers(len(shape)))
        if high[axis] - low[axis] < 2:
            leaves.append((low, high))
            continue
        split = int(random.integers(low[axis] + 1, high[axis]))
        leaves.append((low, [*high[:axis], split, *high[axis + 1 :]]))
        leaves.append(([*low[:axis], split, *low[axis + 1 :]], high))
    edges = np.array(leaves, dtype=np.int64)
    return edges[:, 0], edges[:, 1]


def make_leaves(seed: int, shape: list[int], cuts: int) -> Leaves:
    random = np.random.default_rng(seed)
    low, high = cut(random, shape, cuts)
    estimates = random.integers(-20, 50, len(low)).astype(np.float64)
    scales = random.choice([0.0, 0.4, 3.0, 25.0], len(low))
    return Leaves(low, high, estimates, scales)


def make_queries(
    seed: int, shape: list[int], number: int, whole_share: float = 0.5
) -> tuple[FloatArray, FloatArray]:
    """Some edges on the grid and some between; some boxes without width."""
    random = np.random.default_rng(seed)
    edges = random.uniform(0, 1, (2, number, len(shape))) * shape
    edges = np.where(random.random(edges.shape) < whole_share, np.rint(edges), edges)
    return edges.min(axis=0), edges.max(axis=0)


def measure(index: BoxIndex, low: FloatArray, high: FloatArray) -> SimpleNamespace:
    return SimpleNamespace(**dict(zip(NAMES, index.measure(low, high).T, strict=True)))


def measure_naively(leaves: Leaves, low: FloatArray, high: FloatArray) -> dict[str, float]:
    total = dict.fromkeys(NAMES, 0.0)
    total["smallest_weight"] = 1.0
    variances = noise_variances(leaves.scales)
    for leaf in range(len(leaves.low)):
        weight = 1.0
        for axis in range(len(low)):
            start = max(low[axis], leaves.low[leaf, axis])
            stop = min(high[axis], leaves.high[leaf, axis])
            weight *= max(stop - start, 0) / (leaves.high[leaf, axis] - leaves.low[leaf, axis])
        if weight == 0:
            continue
        part, variance = weight * leaves.estimates[leaf], variances[leaf]
        total["estimate"] += part
        total["absolute"] += abs(part)
        total["partial_absolute"] += abs(part) if weight < 1 else 0
        if leaves.scales[leaf] > 0:
            total["variance"] += weight**2 * variance
            total["fourth_cumulant"] += weight**4 * (variance + 3 * variance**2)
            total["noisy_leaves"] += 1
            total["smallest_weight"] = min(total["smallest_weight"], weight)
            total["largest_weight"] = max(total["largest_weight"], weight)
    return total


@examples(150)
@given(
    seed=st.integers(0, 2**32),
    shape=st.lists(st.integers(1, 12), min_size=1, max_size=4),
    cuts=st.integers(0, 150),
)
def test_measures_are_those_of_a_plain_loop(seed: int, shape: list[int], cuts: int) -> None:
    leaves = make_leaves(seed, shape, cuts)
    low, high = make_queries(seed + 1, shape, 5)
    found = vars(measure(leaves.index, low, high))
    for row in range(len(low)):
        expected = measure_naively(leaves, low[row], high[row])
        assert {name: values[row] for name, values in found.items()} == pytest.approx(
            expected, rel=1e-9, abs=1e-9
        )


def test_the_tilings_of_these_tests_tile_and_are_deep() -> None:
    leaves = make_leaves(5, [12, 12, 12], 400)
    assert np.prod(leaves.high - leaves.low, axis=1).sum() == 12**3
    assert len(leaves.low) > FAN_OUT**2  # so at least three levels


def test_the_whole_grid_is_the_sum_of_the_leaves() -> None:
    leaves = make_leaves(2, [40, 9], 300)
    found = measure(leaves.index, np.zeros((1, 2)), np.array([[40.0, 9.0]]))
    assert found.estimate[0] == leaves.estimates.sum()
    assert found.partial_absolute[0] == 0
    assert found.noisy_leaves[0] == np.count_nonzero(leaves.scales)
    assert (found.smallest_weight[0], found.largest_weight[0]) == (1, 1)


def test_a_wholly_covered_node_is_not_entered() -> None:
    leaves = make_leaves(3, [64, 64], 1000)
    index = leaves.index
    _, _, sums = index._nodes
    sums[1:] = np.nan  # so entering would spoil the sum
    found = measure(index, np.zeros((1, 2)), np.full((1, 2), 64.0))
    assert found.estimate[0] == leaves.estimates.sum()


def test_neighbours_share_nodes() -> None:
    """The nodes of a level together cover the grid a few times; in random order each node would
    cover most of it."""
    index = make_leaves(4, [200, 200], 5000).index
    boxes, skip, _ = index._nodes
    inner = skip > np.arange(len(skip)) + 1
    covered = np.prod(boxes[:, 2:] - boxes[:, :2], axis=1)[inner].sum() / 200**2
    levels = 4  # 295, 37, 5 and 1 nodes above 2,359 leaves
    assert covered < 3 * levels


def test_leaves_without_noise_say_nothing_about_weights() -> None:
    low, high = np.array([[0], [4]]), np.array([[4], [8]])
    index = BoxIndex(low, high, np.array([8.0, 8.0]), np.array([0.0, 2.0]))
    found = measure(index, np.array([[0.0]]), np.array([[5.0]]))
    assert found.largest_weight[0] == 0.25
    assert found.smallest_weight[0] == 0.25
    assert found.noisy_leaves[0] == 1


def test_threads_give_what_one_thread_gives() -> None:
    leaves = make_leaves(7, [50, 50], 200)
    index = leaves.index
    low, high = make_queries(8, [50, 50], 2 * CHUNK + 100)
    together = vars(measure(index, low, high))
    pieces = [
        vars(measure(index, low[rows], high[rows]))
        for rows in (slice(0, 900), slice(CHUNK - 1, CHUNK + 1), slice(2 * CHUNK + 99, None))
    ]
    rows = np.r_[0:900, CHUNK - 1 : CHUNK + 1, 2 * CHUNK + 99]
    for name, values in together.items():
        assert np.array_equal(values[rows], np.concatenate([piece[name] for piece in pieces]))


def test_read_only_and_strided_queries_are_taken() -> None:
    leaves = make_leaves(9, [20, 20], 50)
    low, high = make_queries(10, [20, 20], 20)
    expected = measure(leaves.index, low, high).estimate
    both = np.column_stack([low, high])
    both.flags.writeable = False
    assert np.array_equal(measure(leaves.index, both[:, :2], both[:, 2:]).estimate, expected)


def test_queries_without_rows_give_none() -> None:
    leaves = make_leaves(9, [20, 20], 50)
    assert len(measure(leaves.index, np.zeros((0, 2)), np.zeros((0, 2))).estimate) == 0


def test_grids_as_large_as_allowed() -> None:
    most = 2**31 - 1
    low, high = np.array([[0, 0], [most - 1, 0]]), np.array([[most - 1, most], [most, most]])
    index = BoxIndex(low, high, np.array([3.0, 5.0]), np.zeros(2))
    found = measure(index, np.array([[most - 0.5, 0.0]]), np.array([[float(most), most / 2]]))
    assert found.estimate[0] == pytest.approx(5 / 4)


def test_importing_queries_does_not_load_the_compiler() -> None:
    code = "import sys, htf.query.boxes; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
