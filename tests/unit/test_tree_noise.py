"""Boxes over least squares on a tree: answers, variances and cumulants against dense matrices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from htf import InputError, publish
from htf.curator.cells import ExactCells
from htf.curator.noise import ScriptedNoise
from htf.domain import FloatArray, IntArray
from htf.epsilon import UNITS_PER_EPSILON, Epsilon
from htf.inference import UNKNOWN, TreeCounts, count_variances, least_squares
from htf.query.intervals import continuous_half_widths, noise_fourth_cumulants, single_half_widths
from htf.query.tree_noise import NOTHING_LEARNED, TreeNoise
from htf.tree import RegionTree
from support import city_matrix

SHAPES = [(9,), (5, 4), (12, 1), (3, 4, 3)]


@st.composite
def trees(draw: st.DrawFn) -> RegionTree:
    """Unbalanced trees of one to three axes, with two to five slabs a cut."""
    tree = RegionTree(draw(st.sampled_from(SHAPES)))
    for _ in range(draw(st.integers(0, 7))):
        open_regions = np.flatnonzero((tree.slabs == 0) & (tree.cells(np.arange(len(tree))) > 1))
        if len(open_regions) == 0:
            break
        region = int(draw(st.sampled_from(open_regions.tolist())))
        wide = np.flatnonzero((tree.high - tree.low)[region] > 1).tolist()
        axis = int(draw(st.sampled_from(wide)))
        inside = st.integers(int(tree.low[region, axis]) + 1, int(tree.high[region, axis]) - 1)
        cuts = sorted(draw(st.sets(inside, min_size=1, max_size=4)))
        tree.cut(np.array([region]), np.array([axis]), np.array(cuts), np.array([len(cuts)]))
    return tree


@st.composite
def releases(draw: st.DrawFn) -> tuple[RegionTree, TreeCounts, IntArray]:
    """A tree with counts of which some regions have none and others several, and leaves that tile it,
    some of them inner regions; only such as the counts determine."""
    tree, counts = draw(trees()), TreeCounts()
    skipped = draw(st.sets(st.integers(0, len(tree) - 1), max_size=len(tree) // 2))
    again = draw(st.lists(st.integers(0, len(tree) - 1), max_size=4))
    regions = np.array([r for r in range(len(tree)) if r not in skipped] + again, dtype=np.int64)
    size = len(regions)
    noisy = draw(st.lists(st.integers(-50, 200), min_size=size, max_size=size))
    epsilon = draw(st.lists(st.sampled_from([1, 5, 17, 80]), min_size=size, max_size=size))
    units = np.array(epsilon, dtype=np.int64) * (UNITS_PER_EPSILON // 100)
    counts.add(regions, np.array(noisy, dtype=np.int64), units)
    ends = draw(st.sets(st.integers(1, len(tree)), max_size=3))
    leaves, waiting = [], [0]
    while waiting:
        region = waiting.pop()
        if tree.slabs[region] == 0 or region in ends:
            leaves.append(region)
        else:
            waiting += range(
                tree.first_child[region], tree.first_child[region] + tree.slabs[region]
            )
    assume(np.all(least_squares(tree, counts)[1][leaves] < UNKNOWN))
    return tree, counts, np.array(leaves)


def dense_coefficients(
    tree: RegionTree, counts: TreeCounts, leaves: IntArray
) -> tuple[FloatArray, FloatArray]:
    """The estimates of `leaves` as a matrix times the counts, by the pseudo-inverse of generalised
    least squares, G = (A^T W A)^+ A^T W; and the variance of each count."""
    own_leaves = np.flatnonzero(tree.slabs == 0)
    inside = np.zeros((len(tree), len(own_leaves)))
    for column, leaf in enumerate(own_leaves):
        region = int(leaf)
        while region >= 0:
            inside[region, column] = 1
            region = int(tree.parent[region])
    variances = count_variances(np.concatenate(counts.epsilons))
    design = inside[np.concatenate(counts.regions)]
    weighted = design / np.sqrt(variances)[:, None]
    solve = np.linalg.pinv(weighted, rcond=1e-10) / np.sqrt(variances)
    return inside[leaves] @ solve, variances


def shares(tree: RegionTree, leaves: IntArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """The share of each leaf that each box covers, one row for each box."""
    overlap = np.minimum(high[:, None], tree.high[leaves]) - np.maximum(
        low[:, None], tree.low[leaves]
    )
    part = np.maximum(overlap, 0.0) / (tree.high[leaves] - tree.low[leaves])
    return np.asarray(np.prod(part, axis=2))


def random_boxes(tree: RegionTree, seed: int) -> tuple[FloatArray, FloatArray]:
    """Some along edges of cells, some not, some empty, some reaching beyond the map."""
    random = np.random.default_rng(seed)
    corners = random.uniform(-0.2, 1.2, (2, 40, tree.dimensions)) * tree.high[0]
    corners[:, :20] = np.rint(corners[:, :20])
    return corners.min(axis=0), corners.max(axis=0)


@settings(max_examples=400, deadline=None)
@given(releases(), st.integers(0, 2**32 - 1))
def test_answers_and_variances_are_those_of_dense_matrices(
    made: tuple[RegionTree, TreeCounts, IntArray], seed: int
) -> None:
    tree, counts, leaves = made
    low, high = random_boxes(tree, seed)
    found = TreeNoise(tree, counts, leaves).measure(low, high)
    coefficients, variances = dense_coefficients(tree, counts, leaves)
    weights = shares(tree, leaves, low, high)
    of_counts = weights @ coefficients
    expected = of_counts @ np.concatenate(counts.noisy_counts)
    np.testing.assert_allclose(found.estimate, expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found.noise_variance, of_counts**2 @ variances, rtol=1e-6, atol=1e-9)


@settings(max_examples=200, deadline=None)
@given(releases(), st.integers(0, 2**32 - 1))
def test_half_widths_are_those_of_the_cumulants_of_dense_coefficients(
    made: tuple[RegionTree, TreeCounts, IntArray], seed: int
) -> None:
    """A count with coefficient g adds g^4 times its fourth cumulant."""
    tree, counts, leaves = made
    low, high = random_boxes(tree, seed)
    found = TreeNoise(tree, counts, leaves).measure(low, high)
    coefficients, variances = dense_coefficients(tree, counts, leaves)
    weights = shares(tree, leaves, low, high)
    fourth = (weights @ coefficients) ** 4 @ noise_fourth_cumulants(variances)
    expected = continuous_half_widths(found.noise_variance + found.spread_variance, fourth)
    expected += weights.max(axis=1) / 2
    several = np.count_nonzero(weights, axis=1) > 1
    np.testing.assert_allclose(found.half_width[several], expected[several], rtol=1e-6)
