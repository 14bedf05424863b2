"""The tree of regions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from htf import InputError, publish
from htf.frame.domain import IntArray
from htf.frame.tree import MOST_LAYERS, RegionTree
from support import city_matrix


def arrays(*values: Any) -> list[Any]:
    return [np.array(value, dtype=np.int64) for value in values]


def test_cutting_into_slabs() -> None:
    tree = RegionTree((10, 4))
    children = tree.cut(*arrays([0], [0], [2, 7], [2]))
    assert children.tolist() == [1, 2, 3]
    assert tree.low.tolist() == [[0, 0], [0, 0], [2, 0], [7, 0]]
    assert tree.high.tolist() == [[10, 4], [2, 4], [7, 4], [10, 4]]
    grand = tree.cut(*arrays([3, 1], [1, 0], [1, 3, 1], [2, 1]))
    assert tree.parent[grand].tolist() == [3, 3, 3, 1, 1]
    assert tree.high[grand].tolist() == [[10, 1], [10, 3], [10, 4], [1, 4], [2, 4]]
    assert tree.first_child[[3, 1, 2]].tolist() == [4, 7, -1]
    assert tree.preorder().tolist() == [0, 1, 4, 5, 6, 7, 8, 2, 3]


def test_what_is_not_cut_has_no_axis() -> None:
    tree = RegionTree((10, 4))
    assert (tree.axis.tolist(), tree.first_child.tolist(), tree.slabs.tolist()) == ([-1], [-1], [0])
    tree.split(*arrays([0], [0], [5]))
    assert tree.axis.tolist() == [0, -1, -1]


def test_parents_come_first_and_siblings_stay_together() -> None:
    tree = RegionTree((10, 4))
    assert tree.preorder().tolist() == [0]
    tree.cut(*arrays([0], [0], [2, 7], [2]))
    tree.cut(*arrays([3, 1], [1, 0], [1, 3, 1], [2, 1]))
    tree.split(*arrays([7], [1], [2]))
    assert tree.preorder().tolist() == [0, 1, 6, 7, 8, 9, 10, 2, 5, 3, 4]


@pytest.mark.parametrize(
    ("regions", "covered"),
    [
        ([0], True),
        ([1, 2], True),
        ([2, 3, 4], True),
        ([1, 3, 4], False),  # 3 and 4 lie in 1
        ([0, 1, 2], False),
        ([1], False),
        ([2], False),
        ([2, 3], False),
        ([1, 2, 2], False),
        ([3, 4], False),
        ([], False),
    ],
)
def test_regions_that_cover_everything_once(regions: list[int], covered: bool) -> None:
    tree = RegionTree((10, 4))
    tree.split(*arrays([0], [0], [5]))
    tree.split(*arrays([1], [1], [2]))
    assert tree.is_covered_once_by(np.array(regions, dtype=np.int64)) is covered


def test_single_cells_are_not_halved() -> None:
    tree = RegionTree((3, 1))
    assert tree.halve(np.array([0]), (0, 1)).tolist() == [1, 2]
    assert tree.halve(np.array([1, 2]), (0, 1)).tolist() == [1, 3, 4]
    assert tree.halve(np.array([3, 4]), (0, 1)).tolist() == [3, 4]  # which do not begin at 0
    assert tree.low[[1, 3, 4], 0].tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("cut", "says"),
    [
        (([5], [0], [1], [1]), "between 0 and 2"),
        (([0], [0], [5], [1]), "only once"),
        (([1, 1], [0, 0], [1, 2], [1, 1]), "only once"),
        (([1], [2], [1], [1]), "axis must lie between 0 and 1"),
        (([1], [0], [0], [1]), "both sides"),
        (([1], [0], [5], [1]), "both sides"),
        (([1], [0], [3, 3], [2]), "ascend"),
        (([1], [0], [], [0]), "at least one cut"),
        (([1], [0], [1, 2], [1]), "at least one cut"),
        (([1, 2], [0, 0], [1, 2, 8, 7], [2, 2]), "ascend"),  # not those of the first region
        (([1], [0, 0], [1], [1]), "one axis and one number"),
        (([1], [0], [1], [1, 1]), "one axis and one number"),
        (([-1, 1], [0, 0], [6, 1], [1, 1]), "between 0 and 2"),
        (([1, 5], [0, 0], [1, 6], [1, 1]), "between 0 and 2"),
    ],
)
def test_bad_cuts_are_refused_and_change_nothing(cut: Any, says: str) -> None:
    tree = RegionTree((10, 4))
    tree.split(*arrays([0], [0], [5]))
    before = tree.low.tolist(), tree.slabs.tolist()
    with pytest.raises(InputError, match=says):
        tree.cut(*arrays(*cut))
    assert (tree.low.tolist(), tree.slabs.tolist()) == before


def test_views_are_read_only() -> None:
    with pytest.raises(ValueError, match="read-only"):
        RegionTree((4,)).low[0, 0] = 1


def test_a_tree_is_rebuilt_from_its_arrays_and_nothing_else_is_accepted() -> None:
    tree = publish(city_matrix(), 1, noise="seeded:1").tree
    shape = tree.high[0].tolist()
    again = RegionTree.from_arrays(shape, tree.parent, tree.low, tree.high)
    for name in ("low", "high", "parent", "depth", "axis", "first_child", "slabs"):
        assert np.array_equal(getattr(again, name), getattr(tree, name))
    generator = np.random.default_rng(8)
    for _ in range(200):
        changed = {name: getattr(tree, name).copy() for name in ("parent", "low", "high")}
        array = changed[("parent", "low", "high")[generator.integers(3)]].reshape(-1)
        place = generator.integers(1, len(array))
        array[place] += generator.choice([-1, 1, 10**6])
        with pytest.raises(InputError):
            RegionTree.from_arrays(shape, **changed)


def test_cuts_may_be_neighbours() -> None:
    tree = RegionTree((4,))
    tree.cut(*arrays([0], [0], [1, 2, 3], [3]))
    assert tree.low[:, 0].tolist() == [0, 0, 1, 2, 3]


def test_a_copy_is_cut_on_its_own() -> None:
    tree = RegionTree((10, 4))
    alone = tree.copy()
    tree.split(*arrays([0], [0], [5]))
    copy = tree.copy()
    copy.split(*arrays([1], [1], [2]))
    tree.split(*arrays([2], [0], [7]))
    assert (len(alone), len(tree), len(copy)) == (1, 5, 5)
    assert (tree.slabs.tolist(), copy.slabs.tolist()) == ([2, 0, 2, 0, 0], [2, 2, 0, 0, 0])
    assert copy.high.tolist() == [[10, 4], [5, 4], [10, 4], [5, 2], [5, 4]]
    assert tree.high.tolist() == [[10, 4], [5, 4], [10, 4], [7, 4], [10, 4]]


@pytest.mark.parametrize(
    ("parent", "runs"),
    [
        ([], []),  # no region at all
        ([-1], [(1, 4)]),  # not the whole domain
        ([-1], [(0, 5)]),
        ([0], [(0, 4)]),
        (
            [-1, 3, 3, 0, 0],
            [(0, 4), (0, 1), (1, 2), (0, 2), (2, 4)],
        ),  # children before their parent
        (
            [-1, 0, 0, 1, 1, 0, 0],
            [(0, 4), (0, 2), (2, 4), (0, 1), (1, 2), (0, 3), (3, 4)],
        ),  # cut twice
        ([-1, 0], [(0, 4), (0, 4)]),  # a single child
        ([-1, 0, 1, 1], [(0, 4), (0, 4), (0, 2), (2, 4)]),
        ([-1, 0, 0, 1, 1, 2], [(0, 4), (0, 2), (2, 4), (0, 1), (1, 2), (2, 4)]),
        ([-1, 0, 0], [(0, 4), (0, 0), (0, 4)]),  # an empty region
    ],
)
def test_arrays_that_no_cuts_make(parent: list[int], runs: list[tuple[int, int]]) -> None:
    low, high = np.array(runs, dtype=np.int64).reshape(-1, 2).T
    with pytest.raises(InputError, match="do not form a tree"):
        RegionTree.from_arrays((4,), np.array(parent), low[:, None], high[:, None])


def test_a_tree_of_one_region_is_rebuilt() -> None:
    assert len(RegionTree.from_arrays((4,), *arrays([-1], [[0]], [[4]]))) == 1


def chain(layers: int) -> tuple[list[int], list[IntArray]]:
    """The shape and the arrays of a tree that is cut off the rest one cell at a time."""
    cuts, cells = np.arange(1, layers + 1), layers + 2
    parent = np.append(-1, np.repeat(2 * (cuts - 1), 2))
    low = np.append(0, np.stack([cuts - 1, cuts], axis=1))[:, None]
    high = np.append(cells, np.stack([cuts, np.full(layers, cells)], axis=1))[:, None]
    return [cells], [parent, low, high]


def test_trees_are_not_nested_without_end() -> None:
    """Neither those of a file nor those that are cut: the ledger adds up layer by layer."""
    shape, found = chain(MOST_LAYERS)
    tree = RegionTree.from_arrays(shape, *found)
    assert [int(layer[0]) for layer in tree.layers()[:3]] == [0, 1, 3]
    assert len(tree.layers()) == tree.depth[-1] + 1 == MOST_LAYERS + 1
    with pytest.raises(InputError, match="nested more than 4096 deep"):
        tree.split(*arrays([len(tree) - 1], [0], [MOST_LAYERS + 1]))
    shape, found = chain(MOST_LAYERS + 1)
    with pytest.raises(InputError, match="nested more than 4096 deep"):
        RegionTree.from_arrays(shape, *found)
