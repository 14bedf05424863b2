"""The mechanism `privtree` against Zhang, Xiao, Xie 2016, and a naive implementation of it in floats."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from htf import BudgetError, Epsilon, FrequencyMatrix, InputError, Release, make_mechanism, publish
from htf.curator.noise import ScriptedNoise, SeededNoise
from htf.frame.domain import FloatArray, IntArray
from htf_bench.mechanisms.privtree import PrivTree, axes_by_depth
from support import city_matrix, dense, grid

Box = tuple[int, int, int, int]  # x from, x to, y from, y to


def halves(box: Box, axes: tuple[int, ...]) -> list[Box]:
    """In the middle along each of the axes that can be cut; if none can, along another one."""
    widths = (box[1] - box[0], box[3] - box[2])
    axes = tuple(a for a in axes if widths[a] > 1) or tuple(a for a in (0, 1) if widths[a] > 1)[:1]
    parts = [box]
    for axis in axes:
        middle = (box[2 * axis] + box[2 * axis + 1]) // 2
        parts = [
            (*p[:index], middle, *p[index + 1 :])  # type: ignore[misc]
            for p in parts
            for index in (2 * axis + 1, 2 * axis)
        ]
    return parts


def naive_privtree(
    counts: IntArray, fan_out: int, decay: float, noise: Callable[[], float]
) -> list[tuple[Box, int]]:
    """[PrivTree, Alg. 2] with theta = 0, and the depth of each leaf in splits."""
    waiting: list[tuple[Box, int]] = [((0, counts.shape[0], 0, counts.shape[1]), 0)]
    leaves = []
    while waiting:
        box, depth = waiting.pop()
        exact = counts[box[0] : box[1], box[2] : box[3]]
        biased = max(int(exact.sum()) - depth * decay, -decay)
        if exact.size > 1 and biased + noise() > 0:
            axes = (0, 1) if fan_out == 4 else (1 - depth % 2,)
            waiting += [(part, depth + 1) for part in halves(box, axes)]
        else:
            leaves.append((box, depth))
    return leaves


def noise_and_decay(epsilon: float, fan_out: int) -> tuple[float, float]:
    """[PrivTree, section 3]: lambda = (2 beta - 1) / (beta - 1) / epsilon, delta = lambda ln beta."""
    scale = (2 * fan_out - 1) / (fan_out - 1) / epsilon
    return scale, scale * math.log(fan_out)


def leaf_boxes(release: Release) -> list[Box]:
    ends = np.stack([release.low, release.high], axis=2).reshape(len(release), 4)
    return [(int(a), int(b), int(c), int(d)) for a, b, c, d in ends]


def relative_error(counts: IntArray, boxes: list[Box], estimates: FloatArray) -> float:
    """Mean relative error over fixed rectangles, records being spread evenly over a leaf."""
    spread = np.zeros(counts.shape)
    for (a, b, c, d), estimate in zip(boxes, estimates, strict=True):
        spread[a:b, c:d] = estimate / ((b - a) * (d - c))
    generator = np.random.default_rng(0)
    errors = []
    for _ in range(300):
        (a, b), (c, d) = (np.sort(generator.choice(counts.shape[0] + 1, 2, False)) for _ in "xy")
        exact = counts[a:b, c:d].sum()
        errors.append(abs(exact - spread[a:b, c:d].sum()) / max(exact, 20))
    return float(np.mean(errors))


@pytest.mark.parametrize("fan_out", [2, 4])
def test_as_good_as_the_naive_implementation(fan_out: int) -> None:
    """Number of leaves, their mean depth and the error of queries, on average over runs, within 10 %
    (15 % for the error, which varies more). Depth is the number of splits."""
    matrix, epsilon, runs = city_matrix(256, 200_000), 0.2, 12
    counts, generator = dense(matrix), np.random.default_rng(7)
    scale, decay = noise_and_decay(epsilon / 2, fan_out)
    ours, naive = np.zeros((runs, 3)), np.zeros((runs, 3))
    for run in range(runs):
        release = publish(matrix, epsilon, PrivTree(fan_out), noise=SeededNoise(run))
        cut = 256**2 // np.prod(release.high - release.low, axis=1)
        depths = np.log2(cut) / math.log2(fan_out)
        error = relative_error(counts, leaf_boxes(release), release.estimates)
        ours[run] = len(release), depths.mean(), error
        found = naive_privtree(counts, fan_out, decay, lambda: generator.laplace(0, scale))
        boxes = [box for box, _ in found]
        exact = np.array([counts[a:b, c:d].sum() for a, b, c, d in boxes])
        noisy = exact + generator.laplace(0, 2 / epsilon, len(boxes))
        depth = float(np.mean([depth for _, depth in found]))
        naive[run] = len(boxes), depth, relative_error(counts, boxes, noisy)
    ratios = ours.mean(axis=0) / naive.mean(axis=0)
    assert ratios[:2] == pytest.approx(1, abs=0.1)
    assert ratios[2] == pytest.approx(1, abs=0.15)


@pytest.mark.parametrize("fan_out", [2, 4])
@pytest.mark.parametrize("shape", [(64, 64), (16, 5), (1, 37)])
def test_without_noise_the_same_boxes_as_the_naive_implementation(
    fan_out: int, shape: tuple[int, int]
) -> None:
    """With delta rounded up, as whole noise needs it. And the counts are those of the data: the biased
    score, lower by delta for each split, is never released."""
    counts = dense(city_matrix())[: shape[0], : shape[1]] + (shape[0] < 64) * 9
    matrix = FrequencyMatrix.from_dense(grid(*shape), counts)
    release = publish(matrix, "1", PrivTree(fan_out), noise=ScriptedNoise())
    decay = math.ceil(noise_and_decay(0.5, min(fan_out, 4))[1])
    expected = [box for box, _ in naive_privtree(counts, fan_out, decay, lambda: 0.0)]
    assert sorted(leaf_boxes(release)) == sorted(expected)
    exact = [int(counts[a:b, c:d].sum()) for a, b, c, d in leaf_boxes(release)]
    assert release.estimates.tolist() == exact
    assert max(exact) > 0


def test_estimates_are_fresh_and_unbiased() -> None:
    """The leaves' noise has the scale of the second half of the budget, and mean zero."""
    matrix = city_matrix()
    counts, errors = dense(matrix), []
    for seed in range(8):
        release = publish(matrix, "0.5", PrivTree(), noise=SeededNoise(seed))
        exact = [counts[a:b, c:d].sum() for a, b, c, d in leaf_boxes(release)]
        errors.append(release.estimates - exact)
        assert np.all(release.scales == 4)
    noise = np.concatenate(errors)
    deviation = math.sqrt(2) * 4  # delta is some 11 to 22 a split: a biased score would show
    assert abs(noise.mean()) < 4 * deviation / math.sqrt(len(noise))
    assert noise.std() == pytest.approx(deviation, rel=0.1)


def test_only_decisions_and_leaf_counts_leave_the_curator() -> None:
    release = publish(city_matrix(), "1", PrivTree(), noise=SeededNoise(2))
    assert [line.kind for line in release.ledger] == ["privtree", "count"]
    table = release.measurements
    structure = table.line == 0
    assert table.region[structure].tolist() == [0]
    # One decision for each region that could have been split; its number follows from the tree.
    visited = int(np.sum(release.tree.depth % 2 == 0)) - int(
        np.sum(
            (release.tree.depth % 2 == 0) & (release.tree.cells(np.arange(len(release.tree))) == 1)
        )
    )
    assert table.value[structure].tolist() == [visited]
    assert table.region[~structure].tolist() == np.flatnonzero(release.tree.slabs == 0).tolist()


def test_dense_areas_are_split_deeper() -> None:
    counts = np.zeros((64, 64), dtype=np.int64)
    counts[:16, :16] = 500
    matrix = FrequencyMatrix.from_dense(grid(64, 64), counts)
    release = publish(matrix, "0.2", PrivTree(), noise=SeededNoise(1))
    inside = np.all(release.high <= 16, axis=1)
    width = (release.high - release.low)[:, 0]
    assert inside.sum() > 150
    assert np.median(width[inside]) == 1
    assert np.mean(width[~inside]) > 4 * np.mean(width[inside])


def test_the_noise_does_not_grow_with_the_depth() -> None:
    """A single point of great mass is followed down to its cell, twenty splits deep, at a small epsilon."""
    matrix = FrequencyMatrix.from_cells(grid(2**20, 2**20), [[12345], [678901]], [100_000])
    place = [12345, 678901]
    release = publish(matrix, "0.05", PrivTree(), noise=SeededNoise(3))
    found = np.all((release.low <= place) & (release.high > place), axis=1)
    assert (release.high - release.low)[found].tolist() == [[1, 1]]
    assert abs(release.estimates[found][0] - 100_000) < 1000


def test_half_of_the_budget_buys_the_structure() -> None:
    release = publish(city_matrix(), "0.3", PrivTree(), noise=SeededNoise(1))
    half = Epsilon.of("0.15").units
    assert release.measurements.epsilon[0] == half
    assert np.all(release.measurements.epsilon[1:] == half)
    tenth = PrivTree(structure_share=0.1)
    release = publish(city_matrix(), "0.3", tenth, noise=SeededNoise(1))
    assert release.measurements.epsilon[0] == Epsilon.of("0.03").units
    assert release.spent == release.epsilon


def test_a_higher_threshold_makes_fewer_leaves() -> None:
    sizes = [
        len(publish(city_matrix(), "1", PrivTree(threshold=theta), noise=SeededNoise(1)))
        for theta in (0, 50, 1000)
    ]
    assert sizes[0] > sizes[1] > sizes[2]


@pytest.mark.parametrize(
    ("dimensions", "fan_out", "expected"),
    [
        (1, 4, ((0,),)),
        (2, 2, ((1,), (0,))),
        (2, 4, ((0, 1),)),
        (3, 2, ((2,), (1,), (0,))),
        (3, 4, ((1, 2), (0, 2), (0, 1))),
        (3, 8, ((0, 1, 2),)),
        (4, 4, ((2, 3), (0, 1))),
        (4, 16, ((0, 1, 2, 3),)),
    ],
)
def test_axes_take_turns(
    dimensions: int, fan_out: int, expected: tuple[tuple[int, ...], ...]
) -> None:
    assert axes_by_depth(dimensions, fan_out) == expected


def test_refusals() -> None:
    for fan_out in (0, 1, 3, -4):
        with pytest.raises(InputError, match="fan_out must be a power of two"):
            PrivTree(fan_out)
    with pytest.raises(InputError, match="structure_share must be between 0 and 1"):
        PrivTree(structure_share=0)
    with pytest.raises(BudgetError, match=r"structure_share 0\.5 of it is nothing"):
        publish(city_matrix(), "1e-15", PrivTree(), noise=SeededNoise(1))
    assert make_mechanism("privtree", fan_out="2", structure_share="0.1") == PrivTree(2, 0.1)
