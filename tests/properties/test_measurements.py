"""Measurements: exact values against naive references, and sensitivity on neighbouring data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from htf import FrequencyMatrix, InputError
from htf.curator.cells import SWEEP_FROM, ExactCells, deviation_rounded_down
from htf.curator.measurements import CountRegions, ScoreSplits, own_integers
from htf.frame.domain import IntArray
from htf.frame.tree import RegionTree
from support import dense, grid, matrices, naive_objective, with_one_more
from telling import examples


def random_tree(draw: Any, shape: tuple[int, ...], cuts: int = 6) -> RegionTree:
    """A tree made by random cuts into two or more slabs."""
    tree = RegionTree(shape)
    for _ in range(cuts):
        uncut = np.flatnonzero(tree.slabs == 0)
        wide = [(r, a) for r in uncut for a in range(len(shape)) if _width(tree, r, a) > 1]
        if not wide:
            break
        region, axis = draw(st.sampled_from(wide))
        inner = range(int(tree.low[region, axis]) + 1, int(tree.high[region, axis]))
        chosen = sorted(draw(st.sets(st.sampled_from(inner), min_size=1, max_size=3)))
        tree.cut([region], [axis], chosen, [len(chosen)])  # type: ignore[arg-type]
    return tree


def _width(tree: RegionTree, region: Any, axis: int) -> int:
    return int(tree.high[region, axis] - tree.low[region, axis])


def part(counts: IntArray, tree: RegionTree, region: int) -> IntArray:
    ranges = zip(tree.low[region], tree.high[region], strict=True)
    return counts[tuple(slice(low, high) for low, high in ranges)]


def all_splits(tree: RegionTree) -> tuple[IntArray, IntArray, IntArray]:
    rows = [
        (region, axis, cut)
        for region in range(len(tree))
        for axis in range(tree.dimensions)
        for cut in range(int(tree.low[region, axis]) + 1, int(tree.high[region, axis]))
    ]
    columns = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    return columns[0], columns[1], columns[2]


@given(st.data(), matrices())
@examples(150)
def test_counts_and_objectives_agree_with_naive_references(
    data: Any, matrix: FrequencyMatrix
) -> None:
    tree = random_tree(data.draw, matrix.domain.shape)
    cells, counts = ExactCells(matrix, tree), dense(matrix)
    expected = [part(counts, tree, region).sum() for region in range(len(tree))]
    assert cells.count(np.arange(len(tree))).tolist() == expected
    regions, axes, cuts = all_splits(tree)
    for region, axis, cut, score in zip(
        regions, axes, cuts, cells.score_splits(regions, axes, cuts), strict=True
    ):
        inner = cut - tree.low[region, axis]
        assert score == naive_objective(part(counts, tree, region), axis, inner)[1]


@given(st.data(), matrices())
@examples(150)
def test_no_measurement_moves_by_more_than_it_claims(data: Any, matrix: FrequencyMatrix) -> None:
    """One record more: answers about its cell move by at most the sensitivity, others not at all."""
    tree = random_tree(data.draw, matrix.domain.shape)
    cell = [data.draw(st.integers(0, n - 1)) for n in matrix.domain.shape]
    before, after = ExactCells(matrix, tree), ExactCells(with_one_more(matrix, cell), tree)
    holds = np.all((tree.low <= cell) & (cell < tree.high), axis=1)
    everything = np.arange(len(tree))
    moved = np.abs(after.count(everything) - before.count(everything))
    assert np.all(moved == np.where(holds, CountRegions.sensitivity, 0))
    regions, axes, cuts = all_splits(tree)
    if len(regions):
        scores = [side.score_splits(regions, axes, cuts) for side in (before, after)]
        moved = np.abs(scores[1] - scores[0])
        assert np.all(moved <= np.where(holds[regions], ScoreSplits.sensitivity, 0))


def test_the_objectives_sensitivity_is_reached() -> None:
    """2 is not too cautious: rounding down can turn a move of just under 2 into one of 2.

    From the paper's bound 2 (kV - 1) / kV, with one record joining empty cells.
    """
    domain = grid(100)
    tree = RegionTree(domain.shape)
    empty = FrequencyMatrix.from_dense(domain, np.zeros(100, dtype=np.int64))
    crowded = with_one_more(empty, [3])
    moves = []
    for count in range(60):
        neighbour = with_one_more(crowded, [4])
        scores = [
            ExactCells(m, tree).score_splits(*_one(0, 0, 50))[0] for m in (crowded, neighbour)
        ]
        moves.append(abs(int(scores[1]) - int(scores[0])))
        crowded = with_one_more(neighbour, [(7 * count) % 50])
    assert max(moves) == ScoreSplits.sensitivity


def _one(*values: Any) -> list[IntArray]:
    return [np.array([value], dtype=np.int64) for value in values]


@pytest.mark.parametrize("shape", [(70,), (40, 9), (30, 5, 4)])
def test_sweep_over_many_cuts_equals_one_pass_for_each(shape: tuple[int, ...]) -> None:
    """The sweep (used from SWEEP_FROM cuts on) against the direct loop, on crowded cells."""
    generator = np.random.default_rng(11)
    matrix = FrequencyMatrix.from_dense(grid(*shape), generator.poisson(2, shape) ** 3)
    tree = RegionTree(shape)
    cells = ExactCells(matrix, tree)
    cuts = np.arange(1, shape[0])
    assert len(cuts) >= SWEEP_FROM
    zeros = np.zeros_like(cuts)
    together = cells.score_splits(zeros, zeros, cuts)
    one_by_one = [int(cells.score_splits(*_one(0, 0, cut))[0]) for cut in cuts]
    assert together.tolist() == one_by_one
    assert together.tolist() == [naive_objective(dense(matrix), 0, int(c))[1] for c in cuts]


@pytest.mark.parametrize("number", [SWEEP_FROM - 1, SWEEP_FROM, SWEEP_FROM + 1])
def test_from_how_many_cuts_on_they_are_swept(number: int) -> None:
    scored_as_defined((number + 1,), [])


def test_many_regions_and_axes_are_scored_at_once() -> None:
    """Several groups of cuts that are swept, none with those of another region or axis."""
    scored_as_defined((20, 40), [(0, 1, [20]), (1, 0, [1]), (2, 0, [1])])


def test_one_cut_of_each_of_many_regions() -> None:
    """They are not taken for many cuts of one region."""
    cells = 4 * SWEEP_FROM
    scored_as_defined((cells,), [(0, 0, list(range(4, cells, 4)))], inside=2)


def scored_as_defined(
    shape: tuple[int, ...], cut: list[tuple[int, int, list[int]]], inside: int | None = None
) -> None:
    """All cuts of all regions, or those so many cells inside, in no order."""
    generator = np.random.default_rng(12)
    counts = generator.poisson(2, shape) ** 3
    tree = RegionTree(shape)
    for region, axis, places in cut:
        regions, axes = _one(region, axis)
        tree.cut(regions, axes, np.array(places), np.array([len(places)]))
    rows = generator.permutation(np.array(all_splits(tree)), axis=1)
    if inside is not None:
        rows = rows[:, rows[2] == tree.low[rows[0], rows[1]] + inside]
    scores = ExactCells(FrequencyMatrix.from_dense(grid(*shape), counts), tree).score_splits(*rows)
    wanted = [
        naive_objective(part(counts, tree, region), axis, place - int(tree.low[region, axis]))[1]
        for region, axis, place in rows.T.tolist()
    ]
    assert scores.tolist() == wanted


def magnitudes(bits: int) -> st.SearchStrategy[int]:
    """Numbers of every size up to so many bits. Hypothesis would hardly ever draw large ones."""
    return st.integers(0, bits).flatmap(lambda size: st.integers(2**size // 2, 2**size))


@given(magnitudes(53), magnitudes(62).filter(bool), magnitudes(53), magnitudes(33))
@example(2**53 - 1, 2**62, 0, 2**33)
@example(2**33, 2**62, 0, 2**33)
@example(2**52, 2**60, 0, 2**10)  # the product is just 2**63
@examples(300)
def test_deviation_is_exact_beyond_64_bits(total: int, size: int, above: int, number: int) -> None:
    """2 * rest * number passes 64 bits on fine grids; Python's integers are the reference.

    As for real cells, the cells above the mean hold more than the mean each.
    """
    above = max(above, (total // size + 1) * number)
    if above > 2**60:
        return
    columns = [np.array([[value]], dtype=np.int64) for value in (total, size, above, number)]
    expected = (2 * (above * size - total * number)) // size
    assert int(deviation_rounded_down(*columns)[0, 0]) == expected


def test_numbers_that_would_wrap_around_are_refused() -> None:
    """Also beside smaller ones: as an epsilon it would be below 0."""
    numbers = np.array([1, 2**63], dtype=np.uint64)
    with pytest.raises(InputError, match="prices must fit 64 bits"):
        own_integers(numbers, "prices")
    assert own_integers(numbers - np.uint64(1), "prices").tolist() == [0, 2**63 - 1]
