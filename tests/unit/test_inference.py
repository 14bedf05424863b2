"""Least squares on trees against a dense solve, and the non-negative estimates against a small QP."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from htf import Epsilon, InputError, publish, verify
from htf.estimation.least_squares import (
    NONNEGATIVE,
    SiblingLayer,
    TreeCounts,
    estimate_leaves,
    least_squares,
    nonnegative_least_squares,
)
from htf.estimation.noise_law import count_variances, noise_variances, scales_of_variances
from htf.frame.domain import FloatArray, IntArray
from htf.frame.tree import RegionTree
from htf.privacy.epsilon import UNITS_PER_EPSILON
from support import city_matrix
from telling import examples


@st.composite
def trees(draw: st.DrawFn) -> RegionTree:
    """Unbalanced trees of one or two axes, with two to four slabs a cut."""
    tree = RegionTree(draw(st.sampled_from([(9,), (5, 4), (12, 1)])))
    for _ in range(draw(st.integers(0, 6))):
        open_regions = np.flatnonzero((tree.slabs == 0) & (tree.cells(np.arange(len(tree))) > 1))
        if len(open_regions) == 0:
            break
        region = int(draw(st.sampled_from(open_regions.tolist())))
        widths = (tree.high - tree.low)[region]
        axis = int(np.argmax(widths))
        low, high = int(tree.low[region, axis]), int(tree.high[region, axis])
        inside = st.integers(low + 1, high - 1)
        cuts = sorted(draw(st.sets(inside, min_size=1, max_size=3)))
        tree.cut(np.array([region]), np.array([axis]), np.array(cuts), np.array([len(cuts)]))
    return tree


@st.composite
def counted_trees(draw: st.DrawFn) -> tuple[RegionTree, TreeCounts]:
    """A tree with any counts: regions without one, regions with several, one charge or more."""
    tree, counts = draw(trees()), TreeCounts()
    for _ in range(draw(st.integers(1, 3))):
        regions = draw(st.lists(st.integers(0, len(tree) - 1), max_size=2 * len(tree)))
        size = len(regions)
        noisy = draw(st.lists(st.integers(-50, 200), min_size=size, max_size=size))
        epsilon = draw(st.lists(st.sampled_from([1, 2, 5, 17, 80]), min_size=size, max_size=size))
        units = np.array(epsilon, dtype=np.int64) * (UNITS_PER_EPSILON // 100)
        counts.add(np.array(regions, dtype=np.int64), np.array(noisy, dtype=np.int64), units)
    return tree, counts


def membership(tree: RegionTree) -> FloatArray:
    """Which of the tree's own leaves lie in each region."""
    own_leaves = np.flatnonzero(tree.slabs == 0)
    inside = np.zeros((len(tree), len(own_leaves)))
    for column, leaf in enumerate(own_leaves):
        region = int(leaf)
        while region >= 0:
            inside[region, column] = 1
            region = int(tree.parent[region])
    return inside


def dense_solve(tree: RegionTree, counts: TreeCounts) -> tuple[FloatArray, FloatArray]:
    """Generalised least squares with matrices; NaN and infinity for what is not determined."""
    inside = membership(tree)
    regions, noisy = np.concatenate(counts.regions), np.concatenate(counts.noisy_counts)
    root_weights = 1 / np.sqrt(count_variances(np.concatenate(counts.epsilons)))
    design = inside[regions] * root_weights[:, None]
    solution = np.linalg.lstsq(design, noisy * root_weights, rcond=1e-10)[0]
    covariance = np.linalg.pinv(design.T @ design, rcond=1e-10)
    seen = np.linalg.pinv(design, rcond=1e-10) @ design  # projection on what the counts see
    unseen = np.linalg.norm(inside - inside @ seen, axis=1) > 1e-6
    estimates = np.where(unseen, np.nan, inside @ solution)
    variances = np.einsum("ij,jk,ik->i", inside, covariance, inside)
    return estimates, np.where(unseen, np.inf, variances)


@examples(300)
@given(counted_trees())
def test_estimates_and_variances_are_those_of_a_dense_solve(
    counted: tuple[RegionTree, TreeCounts],
) -> None:
    tree, counts = counted
    estimates, variances = least_squares(tree, counts)
    expected, expected_variances = dense_solve(tree, counts)
    np.testing.assert_allclose(estimates, expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(variances, expected_variances, rtol=1e-6)


@examples(100)
@given(counted_trees(), st.randoms(use_true_random=False))
def test_counts_that_agree_are_kept_to_the_last_bit(
    counted: tuple[RegionTree, TreeCounts], random: Any
) -> None:
    """Without noise the estimates are the exact counts, not nearly."""
    tree, counts = counted
    inside = membership(tree)
    exact = inside @ np.array(
        [random.randrange(10**6) for _ in range(inside.shape[1])], dtype=float
    )
    agreeing = TreeCounts()
    for regions, units in zip(counts.regions, counts.epsilons, strict=True):
        agreeing.add(regions, exact[regions].astype(np.int64), units)
    for estimate in (least_squares, nonnegative_least_squares):
        estimates, variances = estimate(tree, agreeing)
        known = np.isfinite(variances)
        assert estimates[known].tolist() == exact[known].tolist()
        assert np.isnan(estimates[~known]).all()


@examples(200)
@given(counted_trees())
def test_nonnegative_estimates_add_up_and_keep_what_was_not_negative(
    counted: tuple[RegionTree, TreeCounts],
) -> None:
    tree, counts = counted
    plain, plain_variances = least_squares(tree, counts)
    estimates, variances = nonnegative_least_squares(tree, counts)
    known = np.isfinite(variances)
    assert variances.tolist() == plain_variances.tolist()
    assert np.all(estimates[known] >= 0)
    if np.all(plain[known] >= 0):
        np.testing.assert_allclose(estimates[known], plain[known], rtol=1e-9, atol=1e-9)
    for region in np.flatnonzero(tree.slabs > 0):
        children = tree.first_child[region] + np.arange(tree.slabs[region])
        if known[region] and known[children].all():
            assert estimates[children].sum() == pytest.approx(estimates[region], abs=1e-7)


def one_layer(sizes: list[int]) -> SiblingLayer:
    starts = np.cumsum([0, *sizes[:-1]])
    group = np.repeat(np.arange(len(sizes)), sizes)
    return SiblingLayer(
        np.arange(len(group)) + 1, np.zeros(len(sizes), dtype=np.int64), starts, group
    )


def small_qp(total: float, z: FloatArray, s: FloatArray) -> FloatArray:
    """The least sum of (y - z)^2 / s with y >= 0 that sums to `total`, by a general solver."""
    solve: Any = optimize.minimize
    found = solve(
        lambda y: np.sum((y - z) ** 2 / s),
        np.full(len(z), total / len(z)),
        jac=lambda y: 2 * (y - z) / s,
        bounds=[(0, None)] * len(z),
        constraints={"type": "eq", "fun": lambda y: y.sum() - total},
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    return np.asarray(found.x)


@examples(60)
@given(st.integers(0, 2**32 - 1), st.lists(st.integers(1, 6), min_size=1, max_size=4))
def test_the_projection_is_that_of_a_quadratic_program(seed: int, sizes: list[int]) -> None:
    random, layer = np.random.default_rng(seed), one_layer(sizes)
    z, s = random.normal(0, 20, len(layer.group)), random.uniform(0.3, 4, len(layer.group))
    parent = np.maximum(random.normal(10, 20, len(sizes)), 0.0)
    shared = layer.share_out(parent, z, s)
    for number, total in enumerate(parent):
        mine = layer.group == number
        assert shared[mine].sum() == pytest.approx(total, abs=1e-9)
        expected = small_qp(float(total), z[mine], s[mine])
        np.testing.assert_allclose(shared[mine], expected, atol=2e-3)


def test_a_region_without_counts_takes_what_is_left_over() -> None:
    layer, inf = one_layer([3, 3, 3]), np.inf
    z = np.array([5.0, -1.0, 0.0, 5.0, 4.0, 0.0, 5.0, 0.0, 0.0])
    s = np.array([1.0, 1.0, inf, 1.0, 1.0, inf, 1.0, inf, inf])
    shared = layer.share_out(np.array([7.0, 3.0, 9.0]), z, s)
    assert shared[:6].tolist() == [5, 0, 2, 2, 1, 0]
    assert shared[6] == 5
    assert np.isnan(shared[7:]).all()


def test_inner_regions_may_be_leaves_of_a_release() -> None:
    """A pruned region's estimate rests on what was counted below it too."""
    tree, counts = RegionTree((4,)), TreeCounts()
    halves = tree.split(np.array([0]), np.array([0]), np.array([2]))[0]
    quarters = tree.split(halves[:1], np.array([0]), np.array([1]))[0]
    one = Epsilon.of(1)
    counts.add(halves, np.array([10, 7]), one)
    counts.add(quarters, np.array([6, 7]), one)
    estimates, scales = estimate_leaves(tree, halves, counts)
    variance = float(noise_variances(np.array([1.0]))[0])
    assert estimates.tolist() == pytest.approx([11, 7])  # 10 and 6 + 7, weighted 2 : 1
    assert noise_variances(scales).tolist() == pytest.approx([variance * 2 / 3, variance])


def test_leaves_that_the_counts_do_not_determine_are_refused() -> None:
    tree, counts = RegionTree((4,)), TreeCounts()
    halves = tree.split(np.array([0]), np.array([0]), np.array([2]))[0]
    with pytest.raises(InputError, match="do not determine 2 of 2 leaves"):
        estimate_leaves(tree, halves, counts)
    counts.add(np.array([0]), np.array([5]), Epsilon.of(1))
    with pytest.raises(InputError, match="do not determine 2 of 2 leaves"):
        estimate_leaves(tree, halves, counts, NONNEGATIVE)


def test_scales_have_the_variances() -> None:
    variances = np.geomspace(1e-3, 1e12, 40)
    np.testing.assert_allclose(
        noise_variances(scales_of_variances(variances)), variances, rtol=1e-9
    )
    units: IntArray = np.array([UNITS_PER_EPSILON // 10])
    assert scales_of_variances(count_variances(units)).tolist() == pytest.approx([10])


def test_a_huge_epsilon_overflows_nothing() -> None:
    tree, counts = RegionTree((4,)), TreeCounts()
    halves = tree.split(np.array([0]), np.array([0]), np.array([2]))[0]
    counts.add(np.array([0]), np.array([12]), Epsilon.of(1000))
    counts.add(halves, np.array([5, 9]), Epsilon.of("0.5"))
    estimates, scales = estimate_leaves(tree, halves, counts)
    assert estimates.tolist() == pytest.approx([4, 8])
    assert np.all(np.isfinite(scales))


def test_verify_computes_the_estimates_again() -> None:
    """And finds an estimate or a scale that does not follow from the counts."""
    release = publish(city_matrix(), "0.5", "ag", noise="seeded:3")
    sums = {check.name: check.passed for check in verify(release)}
    assert sums["sums"]
    moved = release.estimates.copy()
    moved[7] += 0.01
    for doctored in (
        replace(release, estimates=moved),
        replace(release, scales=release.scales * 0.999),
        replace(release, estimator=NONNEGATIVE),
    ):
        assert not {check.name: check.passed for check in verify(doctored)}["sums"]
