"""The tree of regions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from htf import InputError, publish
from htf.frame.tree import RegionTree
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
