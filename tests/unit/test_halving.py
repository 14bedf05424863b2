"""Trees of halves: their turns, their pieces, and what lies beside each box, against a naive search."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htf import InputError
from htf.frame.domain import IntArray
from htf.frame.halving import Neighbourhood, halve_often, halving_axes
from htf.frame.tree import RegionTree
from telling import examples

SHAPES = [(1,), (2,), (7,), (1, 9), (5, 4), (3, 13), (8, 8), (3, 5, 7), (2, 1, 6), (4, 4, 4)]


@st.composite
def trees_of_halves(draw: st.DrawFn) -> RegionTree:
    """Some boxes are halved, then some of what they fell into, and so on."""
    tree = RegionTree(draw(st.sampled_from(SHAPES)))
    boxes, turns = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    for _ in range(draw(st.integers(0, 5))):
        chosen = draw(st.lists(st.booleans(), min_size=len(boxes), max_size=len(boxes)))
        boxes, turns = boxes[chosen], turns[chosen]
        number = st.lists(st.integers(1, 3), min_size=len(boxes), max_size=len(boxes))
        steps = np.array(draw(number), dtype=np.int64)
        boxes, owners = halve_often(tree, boxes, turns, steps)
        turns = (turns + steps)[owners]
    return tree


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((1, 1), ()),
        ((1, 2), (1,)),
        ((8, 8), (0, 1, 0, 1, 0, 1)),
        ((4, 16), (1, 0, 1, 0, 1, 1)),
        ((5, 3), (0, 1, 0, 1, 0)),
        ((2, 3, 4), (2, 1, 0, 2, 1)),
        ((9,), (0, 0, 0, 0)),
    ],
)
def test_all_axes_take_turns_the_longest_first(
    shape: tuple[int, ...], axes: tuple[int, ...]
) -> None:
    assert halving_axes(shape) == axes
    assert halving_axes(np.array(shape)) == axes


@given(st.lists(st.integers(1, 40), min_size=1, max_size=3))
@examples(30)
def test_after_all_turns_every_piece_is_a_cell(shape: list[int]) -> None:
    if np.prod(shape) > 5000:
        shape = shape[:2]
    tree, turns = RegionTree(shape), len(halving_axes(shape))
    zero = np.zeros(1, dtype=np.int64)
    pieces, _ = halve_often(tree, zero, zero, np.array([turns + 3]))
    assert len(pieces) == np.prod(shape)
    assert np.all(tree.cells(pieces) == 1)


@given(trees_of_halves(), st.data())
def test_pieces_stand_together_and_tile_what_they_are_pieces_of(
    tree: RegionTree, data: st.DataObject
) -> None:
    turns_had = Neighbourhood(tree).turns
    regions = np.flatnonzero(tree.slabs == 0)
    steps = np.array([data.draw(st.integers(0, 4)) for _ in regions])
    pieces, owners = halve_often(tree, regions, turns_had[regions], steps)
    assert np.all(np.diff(owners) >= 0)
    assert np.array_equal(np.unique(owners), np.arange(len(regions)))
    for number, region in enumerate(regions):
        own = pieces[owners == number]
        inside = (tree.low[own] >= tree.low[region]) & (tree.high[own] <= tree.high[region])
        assert inside.all()
        assert tree.cells(own).sum() == tree.cells(np.array([region]))[0]
        assert len(own) <= 2 ** steps[number]
        if steps[number] == 0:
            assert own.tolist() == [region]


def naive_neighbour(tree: RegionTree, created: IntArray, region: int, axis: int, end: int) -> int:
    """The smallest box on the other side, among those that there were when `region` was cut.

    A box that is not cut is done with as soon as there is one: it looks at boxes of its own age.
    """
    cell = tree.low[region].copy()
    cell[axis] = tree.high[region, axis] if end else cell[axis] - 1
    if not 0 <= cell[axis] < tree.high[0, axis]:
        return region
    is_cut = tree.slabs[region] > 0
    latest = created[tree.first_child[region]] - 1 if is_cut else created[region]
    holds = np.all((tree.low <= cell) & (cell < tree.high), axis=1) & (created <= latest)
    found = np.flatnonzero(holds)
    return int(found[np.argmin(tree.cells(found))])


@given(trees_of_halves())
@examples(150)
def test_neighbours_are_those_of_a_naive_search(tree: RegionTree) -> None:
    beside = Neighbourhood(tree)
    for region in range(len(tree)):
        for axis in range(tree.dimensions):
            for end in (0, 1):
                naive = naive_neighbour(tree, beside.turns, region, axis, end)
                assert beside.neighbours[region, axis, end] == naive
                if naive != region:  # it covers the whole side
                    others = np.arange(tree.dimensions) != axis
                    assert np.all(tree.low[naive, others] <= tree.low[region, others])
                    assert np.all(tree.high[region, others] <= tree.high[naive, others])


@given(trees_of_halves())
def test_steps_cut_every_region_once_after_its_parent(tree: RegionTree) -> None:
    beside = Neighbourhood(tree)
    done = {0}
    for step in beside.steps:
        assert set(step.cut.tolist()) <= done
        assert np.array_equal(step.left, tree.first_child[step.cut])
        axis = tree.axis[step.cut]
        assert np.array_equal(step.before, beside.neighbours[step.cut, axis, 0])
        assert np.array_equal(step.after, beside.neighbours[step.cut, axis, 1])
        done |= {*step.left.tolist(), *(step.left + 1).tolist()}
    cut = np.concatenate([np.empty(0, np.int64), *(step.cut for step in beside.steps)])
    assert sorted(cut) == np.flatnonzero(tree.slabs > 0).tolist()


@given(trees_of_halves())
def test_steps_are_the_same_where_only_boxes_that_are_cut_are_looked_at(tree: RegionTree) -> None:
    whole, lean = Neighbourhood(tree), Neighbourhood(tree, all_boxes=False)
    assert np.array_equal(lean.turns, whole.turns)
    for step, expected in zip(lean.steps, whole.steps, strict=True):
        for name in ("cut", "left", "before", "after"):
            assert np.array_equal(getattr(step, name), getattr(expected, name))


def cut_once(shape: tuple[int, ...], axis: int, *cuts: int) -> RegionTree:
    tree = RegionTree(shape)
    tree.cut(np.array([0]), np.array([axis]), np.array(cuts), np.array([len(cuts)]))
    return tree


@pytest.mark.parametrize(
    "tree",
    [
        cut_once((8, 4), 1, 2),  # not along the longest axis
        cut_once((8, 4), 0, 3),  # not in the middle
        cut_once((8, 4), 0, 4, 6),  # in three
        cut_once((1, 4), 1, 1),
    ],
)
def test_other_trees_are_refused(tree: RegionTree) -> None:
    with pytest.raises(InputError, match="not one of halves"):
        Neighbourhood(tree)


def test_a_box_that_skips_a_turn_it_could_take_is_refused() -> None:
    tree = RegionTree((8, 8))
    tree.split(np.array([0]), np.array([0]), np.array([4]))
    tree.split(np.array([1]), np.array([0]), np.array([2]))  # the turn is the other axis's
    with pytest.raises(InputError, match="not one of halves"):
        Neighbourhood(tree)
