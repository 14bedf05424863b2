"""Boxes over least squares on a tree: answers, variances and cumulants against dense matrices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from htf import Domain, FrequencyMatrix, InputError, Release, publish, read_prior
from htf.curator.cells import ExactCells
from htf.curator.noise import ScriptedNoise
from htf.estimation.homogeneous import PRIOR_TRUST
from htf.estimation.least_squares import NONNEGATIVE, TreeCounts, estimate_leaves
from htf.estimation.noise_kernels import single_half_width
from htf.estimation.noise_law import count_variances, noise_fourth_cumulants
from htf.frame.domain import Axis, FloatArray, IntArray
from htf.frame.tree import RegionTree
from htf.privacy.epsilon import UNITS_PER_EPSILON, Epsilon
from htf.query.boxes import axis_table
from htf.query.index import BoxIndex, join_edges
from htf.query.kernels import (
    COUNT,
    FOURTH_CUMULANT,
    HIGH,
    LARGEST_WEIGHT,
    LOW,
    NOISY_LEAVES,
    PARTIAL,
    SMALLEST_WEIGHT,
    VARIANCE,
)
from htf.query.kernels import RAW as PLAIN
from htf.query.tree_index import (
    CHUNK,
    LEAST_CLUMPS,
    LEAST_CLUMPS_OF_GRIDS,
    NOTHING_LEARNED,
    TOGETHER,
    TOGETHER_BEYOND_MAPS,
    TOGETHER_WHERE_CUT_BY_DATA,
    TreeIndex,
)
from htf.query.tree_kernels import (
    CLUMPS,
    FEW,
    FIRST_ROOM,
    KAPPA,
    MEASURES,
    MOST_LEAN,
    NOISE,
    RAW,
    SPREAD,
    measure_tree,
)
from htf.query.tree_kernels import TOGETHER as TOGETHER_COLUMN
from htf_bench.mechanisms.quadtree import Quadtree
from support import (
    city_matrix,
    counted_trees,
    dense_coefficients,
    grid,
    half_widths,
    plain_intervals,
    uneven_reach,
)
from telling import examples


@pytest.fixture(autouse=True)
def _as_the_noise_gives_them() -> Iterator[None]:
    """What is looked at here are intervals before they are cut off at zero."""
    with plain_intervals():
        yield


def shares(tree: RegionTree, leaves: IntArray, low: FloatArray, high: FloatArray) -> FloatArray:
    return shares_of(tree.low[leaves], tree.high[leaves], low, high)


def shares_of(start: IntArray, stop: IntArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """The share of each leaf that each box covers, one row for each box."""
    overlap = np.minimum(high[:, None], stop) - np.maximum(low[:, None], start)
    return np.asarray(np.prod(np.maximum(overlap, 0.0) / (stop - start), axis=2))


def random_boxes(tree: RegionTree, seed: int) -> tuple[FloatArray, FloatArray]:
    """Some along edges of cells, some not, some empty, some reaching beyond the map."""
    random = np.random.default_rng(seed)
    corners = random.uniform(-0.2, 1.2, (2, 40, tree.dimensions)) * tree.high[0]
    corners[:, :20] = np.rint(corners[:, :20])
    return corners.min(axis=0), corners.max(axis=0)


@examples(400)
@given(counted_trees(), st.integers(0, 2**32 - 1))
def test_answers_and_variances_are_those_of_dense_matrices(
    made: tuple[RegionTree, TreeCounts, IntArray], seed: int
) -> None:
    tree, counts, leaves = made
    low, high = random_boxes(tree, seed)
    found = measured(TreeIndex(tree, counts, leaves), low, high)
    check_against_dense(found, tree, counts, leaves, shares(tree, leaves, low, high))


def check_against_dense(
    found: Measured, tree: RegionTree, counts: TreeCounts, leaves: IntArray, weights: FloatArray
) -> None:
    coefficients, variances = dense_coefficients(tree, counts, leaves)
    of_counts = weights @ coefficients
    expected = of_counts @ np.concatenate(counts.noisy_counts)
    np.testing.assert_allclose(found.estimate, expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found.noise_variance, of_counts**2 @ variances, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("seed", range(60))
def test_wide_groups_of_which_nothing_is_known_of_one(seed: int) -> None:
    """More siblings than are looked at one by one, so that whole slabs are taken together. Boxes cut
    one axis and cover the others, or cut all; edges of some are edges of slabs."""
    random = np.random.default_rng(seed)
    shape = [(40,), (30, 3), (2, 25, 3), (4, 2, 20, 2)][seed % 4]
    tree, longest = RegionTree(shape), int(np.argmax(shape))
    for region in (0, *random.choice(np.arange(1, shape[longest]), 2, replace=False)):
        axis = longest if region == 0 else int(np.argmax(tree.high[region] - tree.low[region]))
        cuts = np.arange(tree.low[region, axis] + 1, tree.high[region, axis])
        if len(cuts):
            tree.cut(np.array([region]), np.array([axis]), cuts, np.array([len(cuts)]))
    assert tree.slabs[0] > 2 * FEW
    unknown = 1 + random.integers(tree.slabs[0])
    regions = np.flatnonzero((np.arange(len(tree)) != unknown) & (tree.parent != unknown))
    if tree.slabs[unknown]:  # all children but one: they leave the sum open
        regions = np.append(regions, np.flatnonzero(tree.parent == unknown)[1:])
    counts = TreeCounts()
    units = random.choice([1, 5, 17], len(regions)) * (UNITS_PER_EPSILON // 20)
    counts.add(regions, random.integers(-50, 200, len(regions)), units)
    leaves = np.flatnonzero(tree.slabs == 0)
    low, high = random_boxes(tree, seed)
    low[::2, :longest], low[::2, longest + 1 :] = 0, 0
    high[::2] = np.where(np.arange(len(shape)) == longest, high[::2], shape)
    found = measured(TreeIndex(tree, counts, leaves), low, high)
    check_against_dense(found, tree, counts, leaves, shares(tree, leaves, low, high))


@examples(200)
@given(counted_trees(), st.integers(0, 2**32 - 1))
def test_half_widths_are_those_of_the_cumulants_of_dense_coefficients(
    made: tuple[RegionTree, TreeCounts, IntArray], seed: int
) -> None:
    """A count with coefficient g adds g^4 times its fourth cumulant."""
    tree, counts, leaves = made
    low, high = random_boxes(tree, seed)
    index = TreeIndex(tree, counts, leaves)
    found = measured(index, low, high)
    coefficients, variances = dense_coefficients(tree, counts, leaves)
    weights = shares(tree, leaves, low, high)
    fourth = (weights @ coefficients) ** 4 @ noise_fourth_cumulants(variances)
    squares = coefficients @ np.concatenate(counts.noisy_counts)
    noise = found.noise_variance, fourth
    deviations = np.sqrt(coefficients**2 @ variances)
    down, up, _ = uneven_reach(index._model, weights, squares, deviations, noise)
    several = np.count_nonzero(weights, axis=1) > 1
    answers = answers_in_cells(index, low, high)
    below, above = found.estimate - answers[:, LOW], answers[:, HIGH] - found.estimate
    np.testing.assert_allclose(below[several], down[several], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(above[several], up[several], rtol=1e-6, atol=1e-6)


class Measured(NamedTuple):
    """Of each box, what least squares answer, and the variances of its two errors."""

    estimate: FloatArray
    noise_variance: FloatArray
    spread_variance: FloatArray


def measured(index: TreeIndex, low: FloatArray, high: FloatArray) -> Measured:
    """What the error bars are made of, for boxes in cells."""
    table = np.empty((len(low), MEASURES))
    tables = index._regions, index._running, index._parts
    measure_tree(join_edges(low, high), *tables, index.unevenness, index._root_variance, table)
    return Measured(table[:, RAW], table[:, NOISE], table[:, SPREAD])


def answers_in_cells(index: TreeIndex, low: FloatArray, high: FloatArray) -> FloatArray:
    axes = [Axis("x", 0, 4096, 4096)] * low.shape[1]  # at least as large as all maps here
    return index.answer(np.hstack([low, high]), axis_table(axes))


def half_of(index: TreeIndex, low: FloatArray, high: FloatArray) -> FloatArray:
    """How far the ends of the interval are from its middle."""
    answers = answers_in_cells(index, low, high)
    return np.asarray((answers[:, HIGH] - answers[:, LOW]) / 2)


def strips(epsilon: str, sizes: list[int], noisy: list[int]) -> tuple[RegionTree, TreeCounts]:
    """Slabs of these sizes along one axis, each counted once, and nothing else."""
    tree, counts = RegionTree((sum(sizes),)), TreeCounts()
    cuts = np.cumsum(sizes)[:-1]
    leaves = tree.cut(np.array([0]), np.array([0]), cuts, np.array([len(cuts)]))
    counts.add(leaves, np.array(noisy), Epsilon.of(epsilon))
    return tree, counts


def test_where_only_leaves_were_counted_noise_is_independent() -> None:
    """As `BoxIndex` and `half_widths` have it, whose steps of whole numbers are rounded down."""
    tree, counts = strips("0.3", [2, 1, 3, 2], [40, -3, 7, 900])
    leaves = np.arange(1, 5)
    low, high = np.array([[0.0], [2.0], [3.0], [2.0]]), np.array([[8.0], [8.0], [6.0], [3.0]])
    index = TreeIndex(tree, counts, leaves)
    found, half = measured(index, low, high), half_of(index, low, high)
    scales = np.full(4, 1 / 0.3)
    noisy = counts.noisy_counts[0].astype(np.float64)
    plain = BoxIndex(tree.low[leaves], tree.high[leaves], noisy, scales).measure(low, high)
    np.testing.assert_allclose(found.noise_variance, plain[:, VARIANCE], rtol=1e-12)
    shape = VARIANCE, FOURTH_CUMULANT, NOISY_LEAVES, SMALLEST_WEIGHT, LARGEST_WEIGHT
    expected = half_widths(*(plain[:, column] for column in shape))
    assert np.floor(half).tolist() == expected.tolist()
    assert half[2:].tolist() == expected[2:].tolist()  # one leaf: exact, not rounded
    assert found.estimate.tolist() == [944, 904, 7, -3]


def test_a_leaf_that_other_counts_speak_of_is_not_taken_for_a_single_count() -> None:
    tree, counts = strips("0.3", [2, 2], [40, 10])
    counts.add(np.array([0]), np.array([55]), Epsilon.of("0.3"))
    index, box = TreeIndex(tree, counts, np.array([1, 2])), (np.zeros((1, 1)), np.full((1, 1), 2.0))
    found = measured(index, *box)
    # Three counts of equal variance v: the leaf's has 2 v / 3.
    assert found.noise_variance[0] == pytest.approx(count_variances(counts.epsilons[0])[0] * 2 / 3)
    assert half_of(index, *box)[0] != single_half_width(found.noise_variance[0], 1.0)


def test_what_a_cut_leaf_adds() -> None:
    """w (1 - w) (n (1 - kappa) + n^2 kappa), and nothing where the estimate is negative."""
    tree, counts = strips("0.3", [4, 4], [200, -30])
    noise = TreeIndex(tree, counts, np.array([1, 2]))
    found = measured(noise, np.array([[1.0], [4.0]]), np.array([[4.0], [5.0]]))
    kappa = noise.unevenness
    expected = 3 / 16 * (200 * (1 - kappa) + 200**2 * kappa)
    np.testing.assert_allclose(found.spread_variance, [expected, 0.0], rtol=1e-12)
    np.testing.assert_allclose(found.estimate, [150, -7.5], rtol=1e-12)


def test_the_upper_end_has_room_for_a_record_that_drew_the_query() -> None:
    """The mean of a part that is chosen in proportion to what it holds is E[K^2] / E[K]. Whole leaves
    add nothing, and a sliver of a leaf adds next to nothing."""
    tree, counts = strips("2", [8, 8], [40, 500])
    index = TreeIndex(tree, counts, np.array([1, 2]))
    index._model[CLUMPS] = clumps = 0.8
    low, high = np.array([[0.0], [0.0], [0.0], [0.0]]), np.array([[3.0], [8.0], [8 + 1e-9], [16.0]])
    answers, found = answers_in_cells(index, low, high), measured(index, low, high)
    leans = answers[:, HIGH] + answers[:, LOW] - 2 * found.estimate
    a = 1 / clumps - 1
    law = stats.betabinom(40, 3 / 8 * a, 5 / 8 * a)
    k = np.arange(41)
    chosen = float(np.sum(k**2 * law.pmf(k)) / law.mean()) - 15
    # The noise of so much more of the leaf comes with it.
    noise, spread = found.noise_variance[0], found.spread_variance[0]
    more = np.sqrt(noise * (1 + chosen / 15) ** 2 + spread) - np.sqrt(noise + spread)
    assert leans[0] == pytest.approx(chosen + 1.96 * more, rel=0.01)
    assert leans[[1, 3]] == pytest.approx(0, abs=1e-9)
    assert 0 < leans[2] < 10  # of 500 records


def halved_to_cells() -> tuple[RegionTree, IntArray]:
    """A tree of halves over 256 cells along one axis, and its leaves, which are the cells."""
    tree, level = RegionTree((256,)), np.zeros(1, dtype=np.int64)
    for _ in range(8):
        middle = (tree.low[level, 0] + tree.high[level, 0]) // 2
        level = tree.split(level, np.zeros(len(level), dtype=np.int64), middle).ravel()
    return tree, level


def test_the_upper_end_does_not_jump() -> None:
    """A hundredth of a leaf might hold all of it, but is not given room for that."""
    tree, counts = strips("2", [100, 100], [10_000, 0])
    index, box = TreeIndex(tree, counts, np.array([1, 2])), (np.zeros((1, 1)), np.ones((1, 1)))
    index._model[MOST_LEAN] = 3.0
    answers, found = answers_in_cells(index, *box), measured(index, *box)
    lean = answers[0, HIGH] + answers[0, LOW] - 2 * found.estimate[0]
    clumps = index._model[CLUMPS]
    clumped = 0.99 / 100 * (10_000 * (1 - clumps) + 10_000**2 * clumps)
    assert lean == pytest.approx(3 * np.sqrt(clumped), rel=1e-3)


def test_where_records_come_in_clumps_a_small_part_may_hold_all_of_a_leaf() -> None:
    """Every fourth cell holds all: kappa is then large at all sizes. Where cells are alike it is 0, and a hundredth of a
    leaf may hold little of it."""
    tree, level = halved_to_cells()
    for cells, least, most in (
        (np.tile([4000, 0, 0, 0], 64), 100, 1e9),
        (np.full(256, 1000), 1.9, 2.1),
    ):
        counts = TreeCounts()
        counts.add(level, cells, Epsilon.of(20))
        assert least < TreeIndex(tree, counts, level, grown=True)._model[MOST_LEAN] < most


def test_few_pairs_show_nothing_about_small_places() -> None:
    """Four leaves with as many records in each, as the release of a few people in two towns may have."""
    tree, counts = strips("1", [256] * 4, [9000] * 4)
    model = TreeIndex(tree, counts, np.arange(1, 5), grown=True)._model
    assert model[KAPPA] < 0.01
    assert model[CLUMPS] == NOTHING_LEARNED
    assert model[MOST_LEAN] > 1000


def test_a_leaf_that_seems_empty_has_room_for_what_noise_may_hide() -> None:
    """A place in it is given what a normal law around the count, cut off at zero, expects: 0.8 deviations around zero,
    and less below. So its interval does not shrink to nothing with the place."""
    tree, counts = strips("0.1", [400, 400, 400], [0, -40, 500])
    index = TreeIndex(tree, counts, np.array([1, 2, 3]), np.array([0.0, 0.0, 500.0]))
    low = np.array([[3.0], [403.0]])
    deviation = float(np.sqrt(count_variances(counts.epsilons[0])[0]))
    zero, below = answers_in_cells(index, low, low + 1)[:, HIGH]
    assert index._model[CLUMPS] == NOTHING_LEARNED
    law = stats.truncnorm(40 / deviation, np.inf, -40, deviation)
    assert zero > 0.8 * deviation
    assert law.mean() * 0.99 < below < zero


def test_small_places_are_taken_to_be_more_clumped_than_large_ones() -> None:
    """Even halves of halves, in which every fourth cell holds what four hold: kappa of the finest pairs is that of cells."""
    (tree, level), counts = halved_to_cells(), TreeCounts()
    cells = np.zeros(256, dtype=np.int64)
    cells[::4] = 4000
    counts.add(level, cells, Epsilon.of(20))
    model = TreeIndex(tree, counts, level, grown=True)._model
    assert model[KAPPA] == pytest.approx(
        128 / 191, abs=0.01
    )  # pairs that hold records, two levels of them uneven
    assert model[CLUMPS] == pytest.approx(1.0, abs=0.01)
    even = TreeCounts()
    even.add(level, np.full(256, 1000), Epsilon.of(20))
    assert TreeIndex(tree, even, level, grown=True)._model[CLUMPS] == LEAST_CLUMPS
    assert TreeIndex(tree, even, level)._model[CLUMPS] == LEAST_CLUMPS_OF_GRIDS


def test_leaves_that_were_cut_by_the_data_err_together() -> None:
    """Halves and slabs are cut without the data, and so are those of a map that cannot be halved evenly."""
    for name, expected in (
        ("htf", TOGETHER),
        ("quadtree", TOGETHER),
        ("ag", TOGETHER),
        ("hb", TOGETHER),
        ("kdtree", TOGETHER_WHERE_CUT_BY_DATA),
    ):
        for release in (publish(city_matrix(), "1", name, noise="seeded:5"),):
            index = release.derived.tree_index
            assert index is not None
            assert index._model[TOGETHER_COLUMN] == expected
    index = hourly_city().derived.tree_index
    assert index is not None
    assert index._model[TOGETHER_COLUMN] == TOGETHER_BEYOND_MAPS


def polya_tree(kappa: float, records: int, seed: int) -> tuple[RegionTree, TreeCounts]:
    """Halves of halves, down to cells, sharing records by the model; all counted almost exactly."""
    random = np.random.default_rng(seed)
    tree, counts, level = RegionTree((2**10,)), TreeCounts(), np.zeros(1, dtype=np.int64)
    numbers, prior = np.array([records]), (1 / kappa - 1) / 2
    for _ in range(10):
        left = random.binomial(numbers, random.beta(prior, prior, len(numbers)))
        numbers = np.column_stack([left, numbers - left]).ravel()
        middle = (tree.low[level, 0] + tree.high[level, 0]) // 2
        level = tree.split(level, np.zeros(len(level), dtype=np.int64), middle).ravel()
    counts.add(level, numbers, Epsilon.of(20))
    return tree, counts


@pytest.mark.parametrize("kappa", [0.02, 0.1, 0.4])
def test_unevenness_is_learned(kappa: float) -> None:
    """A thousand pairs, of which some hundreds stand clear; within a fifth, or 0.03."""
    tree, counts = polya_tree(kappa, 10**7, seed=4)
    noise = TreeIndex(tree, counts, np.flatnonzero(tree.slabs == 0))
    assert noise.unevenness == pytest.approx(kappa, rel=0.2, abs=0.03)


def test_unevenness_of_noise_is_not_learned() -> None:
    random = np.random.default_rng(1)
    tree, counts = strips("0.01", [1] * 50, random.integers(-100, 100, 50).tolist())
    assert TreeIndex(tree, counts, np.arange(1, 51)).unevenness == NOTHING_LEARNED
    whole, total = RegionTree((8,)), TreeCounts()
    total.add(np.array([0]), np.array([10**6]), Epsilon.of(1))
    assert TreeIndex(whole, total, np.array([0])).unevenness == NOTHING_LEARNED


def test_even_records_give_no_unevenness() -> None:
    random = np.random.default_rng(2)
    tree, counts = strips("1", [1] * 500, random.poisson(400, 500).tolist())
    assert TreeIndex(tree, counts, np.arange(1, 501)).unevenness < 0.001


def test_undetermined_leaves_are_refused() -> None:
    tree, _ = strips("1", [1, 1, 1], [5, 6, 7])
    thin = TreeCounts()
    thin.add(np.array([1]), np.array([5]), Epsilon.of(1))
    with pytest.raises(InputError, match="do not determine 2 of 3 leaves"):
        TreeIndex(tree, thin, np.arange(1, 4))
    with pytest.raises(InputError, match="do not determine 3 of 3 leaves"):
        TreeIndex(tree, TreeCounts(), np.arange(1, 4))


@pytest.mark.parametrize("name", ["ag", "ug", "hb", "quadtree", "kdtree", "htf"])
def test_without_noise_answers_are_exact(name: str) -> None:
    """Whole numbers that agree stay whole numbers, whatever regions are added up."""
    matrix = city_matrix()
    release = publish(matrix, "1", name, noise=ScriptedNoise())
    assert release.derived.tree_index is not None
    inside = np.zeros(len(release.tree), dtype=bool)  # regions below a leaf are cut leaves
    inside[release.leaves] = True
    for layer in reversed(release.tree.layers(1)):
        inside[release.tree.parent[layer]] |= inside[layer]
    regions = np.flatnonzero(inside)
    low, high = release.tree.low[regions], release.tree.high[regions]
    found = measured(release.derived.tree_index, low.astype(np.float64), high.astype(np.float64))
    exact = ExactCells(matrix, release.tree).count(regions)
    assert found.estimate.tolist() == exact.tolist()
    assert not found.spread_variance.any()


def test_one_at_a_time_or_all_together() -> None:
    release = publish(city_matrix(), "1", "ag", noise="seeded:3")
    random = np.random.default_rng(8)
    corners = random.uniform(0, 64, (2, 3 * CHUNK + 5, 2))
    low, high = corners.min(axis=0), corners.max(axis=0)
    noise = release.derived.tree_index
    assert noise is not None
    together = answers_in_cells(noise, low, high)
    for row in (0, CHUNK - 1, CHUNK, len(low) - 1):
        alone = answers_in_cells(noise, low[row : row + 1], high[row : row + 1])
        assert alone[0].tolist() == together[row].tolist()
    assert len(answers_in_cells(noise, low[:0], high[:0])) == 0


def test_intervals_of_a_release_are_about_least_squares() -> None:
    """Estimates cut at zero are biased; the answer in the middle of the interval is not."""
    plain = publish(city_matrix(points=300), "0.1", "quadtree", noise="seeded:7")
    counts = TreeCounts()
    table = plain.measurements.of_kind("count")
    counts.add(table.region, table.value, table.epsilon)
    cut, scales = estimate_leaves(plain.tree, plain.leaves, counts, NONNEGATIVE)
    release = replace(plain, estimator=NONNEGATIVE, estimates=cut, scales=scales)
    boxes = [[0, 0, 32, 32], [3.5, 10, 40.25, 64], [0, 0, 64, 64], [5, 5, 5, 9]]
    ours, theirs = release.count(boxes), plain.count(boxes)
    assert ours.low.tolist() == theirs.low.tolist()
    whole = [0, 2, 3]  # the room above for what is in cut leaves follows from the published counts
    assert ours.high[whole].tolist() == theirs.high[whole].tolist()
    assert ours.std_error.tolist() == theirs.std_error.tolist()
    assert ours.raw.tolist() == theirs.raw.tolist()
    np.testing.assert_allclose(theirs.raw, theirs.count, atol=1e-6)
    assert not np.allclose(ours.raw, ours.count, atol=1)
    assert [ours.low[3], ours.high[3], ours.std_error[3]] == [0, 0, 0]


def test_other_releases_have_independent_noise() -> None:
    assert publish(city_matrix(), "1", "htf-paper", noise="seeded:1").derived.tree_index is None


def uneven_city(prior: bool) -> Release:
    """A few large leaves and many small ones; with a prior, which divides their parts once more."""
    random, domain = np.random.default_rng(9), grid(256, 256)
    crowd, rest = random.normal((60, 190), 9, (4000, 2)), random.uniform(0, 256, (900, 2))
    cells = np.concatenate([crowd, rest]).astype(np.int64)
    cells = cells[np.all((cells >= 0) & (cells < 256), axis=1)]
    known = read_prior(random.gamma(0.3, 1, (128, 128)), domain) if prior else None
    matrix = FrequencyMatrix.from_cells(domain, cells.T)
    made = publish(matrix, "0.2", "htf", noise="seeded:4", prior=known)
    if not prior:
        return made
    # Trusted wholly, because it has nothing to do with the data.
    return replace(
        made, facts={**made.facts, PRIOR_TRUST: np.ones(made.prior_trust.shape).tolist()}
    )


def hourly_city() -> Release:
    axes = Axis("x", 0, 16, 16), Axis("y", 0, 16, 16), Axis("hour", 0, 24, 24)
    cells = np.random.default_rng(4).normal([5, 9, 8], [3, 2, 4], (20_000, 3)).astype(np.int64)
    inside = np.all((cells >= 0) & (cells < (16, 16, 24)), axis=1)
    return publish(FrequencyMatrix.from_cells(Domain(axes), cells[inside].T), "1", noise="seeded:1")


RELEASES: dict[str, Callable[[], Release]] = {
    "divided": lambda: uneven_city(prior=False),
    "divided twice": lambda: uneven_city(prior=True),
    "three axes": hourly_city,
    **{
        name: partial(publish, city_matrix(), "0.3", name, noise="seeded:5")
        for name in ("ag", "hb", "ug", "kdtree", "quadtree")
    },
}


@pytest.mark.parametrize("name", RELEASES)
def test_counts_are_those_of_the_parts(name: str) -> None:
    """Every part that a box covers, looked at one by one; so too how far they move the interval."""
    release = RELEASES[name]()
    index, parts = release.derived.tree_index, release.derived.parts
    assert index is not None
    if name.startswith("divided"):
        nested = release.derived.nested
        assert nested is not None
        assert nested.depth > 1 if name == "divided twice" else nested.depth == 1
    low, high = random_boxes(release.tree, 11)
    found = answers_in_cells(index, low, high).T
    covered = shares_of(parts.low, parts.high, low, high)
    of_leaves = shares_of(release.low, release.high, low, high)
    expected = covered @ parts.estimates
    np.testing.assert_allclose(found[COUNT], expected, rtol=1e-9, atol=1e-7)
    touched = covered * np.abs(parts.estimates)
    cut = (touched * (covered < 1)).sum(axis=1)
    share = np.divide(cut, touched.sum(axis=1), out=np.zeros(len(cut)), where=cut > 0)
    np.testing.assert_allclose(found[PARTIAL], share, rtol=1e-7, atol=1e-9)
    moved = found[PLAIN] - measured(index, low, high).estimate
    np.testing.assert_allclose(moved, expected - of_leaves @ release.estimates, atol=1e-5)


def test_more_cut_regions_than_there_is_room_for_at_first() -> None:
    """A thin box all along a map whose leaves are single cells, so that it cuts thousands of regions."""
    matrix = FrequencyMatrix.from_dense(grid(4096, 2), np.ones((4096, 2), dtype=np.int64))
    release = publish(matrix, "1", Quadtree(height=12, prune_below=0), noise="seeded:1")
    answers = release.count([[0.5, 0.25, 4095.5, 1.75], [0, 0, 4096, 2]])
    parts = release.derived.parts
    covered = shares_of(parts.low, parts.high, np.array([[0.5, 0.25]]), np.array([[4095.5, 1.75]]))
    assert np.count_nonzero(covered) > 8 * FIRST_ROOM
    assert answers.count[0] == pytest.approx(float(covered[0] @ parts.estimates), rel=1e-9)
