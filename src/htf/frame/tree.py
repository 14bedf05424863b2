"""The tree of regions, as flat arrays.

Region 0 is the whole domain. Regions are only ever added, by cutting a region into slabs along one
axis, so by construction

* a child lies inside its parent, and its index is larger than its parent's;
* the children of a region are disjoint and together are the region.

The privacy accounting rests on these two facts, and on no mechanism's good manners. The tree is
public: it holds boxes, never counts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from htf.errors import InputError
from htf.frame.domain import IntArray, cell_counts

NO_REGION = -1
COLUMNS = ("_low", "_high", "_parent", "_depth", "_axis", "_first_child", "_slabs")  # of a tree
# Much of the work is done layer by layer. The deepest trees are cut along the lines of a grid of up to
# 1024 x 1024 cells, one line at a time.
MOST_LAYERS = 4096
TOO_DEEP = f"the regions are nested more than {MOST_LAYERS} deep"
NO_TREE = "the regions do not form a tree"


class RegionTree:
    """The regions of a map: an append-only tree of boxes of cells. It is public and holds no counts.

    Region 0 is the whole map. A region is cut once, into slabs along one axis. Arrays that are given out
    are read-only.

    Parameters
    ----------
    shape : sequence of int
        The number of cells along each axis.

    Examples
    --------
    >>> import htf
    >>> import numpy as np
    >>> from htf.mechanisms import RegionTree
    >>> tree = RegionTree((4, 4))
    >>> tree.split(np.array([0]), np.array([0]), np.array([2]))
    array([[1, 2]])
    >>> len(tree)
    3
    """

    __slots__ = (*COLUMNS, "_layered", "_size")

    def __init__(self, shape: Sequence[int]) -> None:
        self._size = 1
        self._low = np.zeros((1, len(shape)), dtype=np.int64)
        self._high = np.array([shape], dtype=np.int64)
        self._parent = np.array([NO_REGION], dtype=np.int64)
        self._depth = np.zeros(1, dtype=np.int64)
        self._axis = np.array([-1], dtype=np.int64)
        self._first_child = np.array([NO_REGION], dtype=np.int64)
        self._slabs = np.zeros(1, dtype=np.int64)
        self._layered: tuple[tuple[int, int], list[IntArray]] = (0, 0), []  # of what, and layers

    def __len__(self) -> int:
        return self._size

    @property
    def dimensions(self) -> int:
        """The number of axes."""
        return self._low.shape[1]

    @property
    def low(self) -> IntArray:
        """First cell of each region, per axis."""
        return self._view(self._low)

    @property
    def high(self) -> IntArray:
        """One past the last cell of each region, per axis."""
        return self._view(self._high)

    @property
    def parent(self) -> IntArray:
        """The region that each was cut from; -1 for the whole map."""
        return self._view(self._parent)

    @property
    def depth(self) -> IntArray:
        """How many regions each lies in, itself not included."""
        return self._view(self._depth)

    @property
    def axis(self) -> IntArray:
        """The axis along which each region is cut, or -1 where it is not."""
        return self._view(self._axis)

    @property
    def first_child(self) -> IntArray:
        """The first child of each region, or -1 where it is not cut."""
        return self._view(self._first_child)

    @property
    def slabs(self) -> IntArray:
        """The number of children: they are `first_child`, `first_child + 1`, …"""
        return self._view(self._slabs)

    def cells(self, regions: IntArray | None = None) -> IntArray:
        """Count the cells of regions.

        Parameters
        ----------
        regions : ndarray of int
            The regions.

        Returns
        -------
        ndarray of int
            The number of cells of each.

        Examples
        --------
        >>> tree.cells(np.array([0, 1, 2]))
        array([16,  8,  8])
        """
        if regions is None:
            return cell_counts(self.low, self.high)
        return cell_counts(self._low.take(regions, axis=0), self._high.take(regions, axis=0))

    def layers(self, first: int = 0) -> list[IntArray]:
        """Group regions by depth, in ascending order.

        Parameters
        ----------
        first : int
            Regions before this one are left out.

        Returns
        -------
        list of ndarray of int
            The regions of each depth.

        Examples
        --------
        >>> tree.layers()
        [array([0]), array([1, 2])]
        """
        of = first, self._size
        if self._layered[0] != of:  # asked for again and again
            self._layered = of, self._find_layers(first)
        return list(self._layered[1])

    def _find_layers(self, first: int) -> list[IntArray]:
        # Sorted by counting, as 64 bits are not. MOST_LAYERS fits: a depth that wraps around would come
        # before its parents, and the ledger would forget what they have lost.
        depths = self._depth[first : self._size].astype(np.int16)
        order = np.argsort(depths, kind="stable")
        starts = np.flatnonzero(np.diff(depths[order])) + 1
        regions = order + first
        regions.flags.writeable = False
        return np.split(regions, starts) if len(order) else []

    def nearest(self, chosen: NDArray[np.bool_]) -> IntArray:
        """Find the smallest chosen region that each region lies in, other than itself.

        Parameters
        ----------
        chosen : ndarray of bool
            Which regions are chosen.

        Returns
        -------
        ndarray of int
            That region for each, or -1 where there is none.

        Examples
        --------
        >>> tree.nearest(np.array([True, False, False]))
        array([-1,  0,  0])
        """
        found = self.parent.copy()
        for layer in self.layers(1):
            parents = self._parent[layer]
            found[layer] = np.where(chosen[parents], parents, found[parents])
        return found

    def preorder(self) -> IntArray:
        """Rank regions so that parents come first and subtrees of siblings stay together.

        Returns
        -------
        ndarray of int
            The rank of each region.

        Examples
        --------
        >>> tree.preorder()
        array([0, 1, 2])
        """
        layers = self.layers(1)
        sizes = np.ones(self._size, dtype=np.int64)  # of subtrees, in regions
        for layer in reversed(layers):
            np.add.at(sizes, self._parent[layer], sizes[layer])
        before, ranks = np.zeros((2, self._size), dtype=np.int64)
        for layer in layers:
            parents = self._parent[layer]
            before[layer] = np.cumsum(sizes[layer]) - sizes[layer]
            ranks[layer] = ranks[parents] + 1 + before[layer] - before[self._first_child[parents]]
        return ranks

    def is_covered_once_by(self, regions: IntArray) -> bool:
        """Whether regions tile the map: every region that is not cut lies in exactly one of them.

        Parameters
        ----------
        regions : ndarray of int
            The regions.

        Returns
        -------
        bool
            Whether they do.

        Examples
        --------
        >>> tree.is_covered_once_by(np.array([1, 2])), tree.is_covered_once_by(np.array([1]))
        (True, False)
        """
        times = np.zeros(self._size, dtype=np.int64)
        np.add.at(times, regions, 1)
        for layer in self.layers(1):
            times[layer] += times[self._parent[layer]]
        return bool(np.all(times[self._slabs[: self._size] == 0] == 1))

    def split(self, regions: IntArray, axes: IntArray, cuts: IntArray) -> IntArray:
        """Cut each region in two: cells below its cut, and from its cut on.

        Parameters
        ----------
        regions, axes, cuts : ndarray of int
            The regions, the axis of each, and the cell where each is cut.

        Returns
        -------
        ndarray of int
            The children, one row (left, right) for each region.

        Raises
        ------
        InputError
            If a region was cut before, or a cut leaves no cells on one side.

        Examples
        --------
        >>> tree.split(np.array([1]), np.array([1]), np.array([3]))
        array([[3, 4]])
        """
        children = self.cut(regions, axes, cuts, np.ones(len(regions), dtype=np.int64))
        return children.reshape(-1, 2)

    def halve(self, regions: IntArray, axes: Sequence[int]) -> IntArray:
        """Cut each region in the middle along every axis on which it has two cells or more.

        Parameters
        ----------
        regions : ndarray of int
            The regions.
        axes : sequence of int
            The axes.

        Returns
        -------
        ndarray of int
            The parts. A region that could not be cut at all is its own part.

        Raises
        ------
        InputError
            If a region was cut before.

        Examples
        --------
        >>> tree.halve(np.array([2]), (0, 1))
        array([5, 6, 7, 8])
        """
        parts = np.asarray(regions, dtype=np.int64)
        for axis in axes:
            low, high = self._low[parts, axis], self._high[parts, axis]
            wide = high - low > 1
            along = np.full(int(wide.sum()), axis)
            halves = self.split(parts[wide], along, ((low + high) // 2)[wide])
            parts = np.concatenate([parts[~wide], halves.ravel()])
        return parts

    def cut(
        self, regions: IntArray, axes: IntArray, cuts: IntArray, cuts_each: IntArray
    ) -> IntArray:
        """Cut region i into `cuts_each[i] + 1` slabs along `axes[i]`.

        Parameters
        ----------
        regions, axes : ndarray of int
            The regions, and the axis of each.
        cuts : ndarray of int
            The cuts of all regions one after the other, ascending within a region and strictly inside it.
        cuts_each : ndarray of int
            How many of the cuts belong to each region.

        Returns
        -------
        ndarray of int
            The children of all regions, in order.

        Raises
        ------
        InputError
            If a region was cut before, or the cuts do not fit.

        Examples
        --------
        >>> from htf.mechanisms import RegionTree
        >>> line = RegionTree((6,))
        >>> line.cut(np.array([0]), np.array([0]), np.array([1, 3]), np.array([2]))
        array([1, 2, 3])
        """
        regions, axes, cuts, cuts_each = (
            np.asarray(a, dtype=np.int64) for a in (regions, axes, cuts, cuts_each)
        )
        self._check_cuts(regions, axes, cuts, cuts_each)
        slabs = cuts_each + 1
        low, high = _slabs_of(self._low, self._high, regions, axes, slabs, cuts)
        depth = np.repeat(self._depth[regions] + 1, slabs)
        return self._append(regions, axes, slabs, low, high, depth)

    def copy(self, more: int = 0) -> RegionTree:
        """Copy the tree. The copy can be cut further on its own.

        Parameters
        ----------
        more : int
            How many regions are to come: with room for them, arrays are moved only once.

        Returns
        -------
        RegionTree
            The copy.

        Examples
        --------
        >>> len(tree.copy())
        3
        """
        copy = RegionTree(self.high[0])
        copy._take_rows(self, self._size + more)
        copy._size = self._size
        return copy

    @classmethod
    def from_arrays(
        cls, shape: Sequence[int], parent: IntArray, low: IntArray, high: IntArray
    ) -> RegionTree:
        """Make the tree with these arrays, which must be what cuts of the map give.

        All groups of siblings are checked at once: each must be what one cut makes of its parent. The first
        region is the map, so every other region is what it says.

        Parameters
        ----------
        shape : sequence of int
            The number of cells along each axis.
        parent, low, high : ndarray of int
            The arrays of a tree.

        Returns
        -------
        RegionTree
            The tree.

        Raises
        ------
        InputError
            If the arrays do not form a tree.

        Examples
        --------
        >>> from htf.mechanisms import RegionTree
        >>> len(RegionTree.from_arrays((4, 4), tree.parent, tree.low, tree.high))
        3
        """
        tree, children = cls(shape), parent[1:]
        same_map = np.array_equal(low[:1], tree.low) and np.array_equal(high[:1], tree.high)
        if not same_map or not np.array_equal(parent[:1], tree.parent):
            raise InputError(NO_TREE)
        if np.any((children < 0) | (children > np.arange(len(children)))):
            raise InputError(NO_TREE)
        first = 1 + np.flatnonzero(np.diff(children, prepend=NO_REGION))  # of its siblings
        owners, slabs = parent[first], np.diff(np.append(first, len(parent)))
        if np.bincount(owners).max(initial=0) > 1 or np.any(slabs < 2):
            raise InputError(NO_TREE)
        axes = np.argmax(low[first + 1] != low[owners], axis=1)
        cuts = low[
            np.delete(np.arange(len(parent)), np.append(0, first)), np.repeat(axes, slabs - 1)
        ]
        wanted_low, wanted_high = _slabs_of(low, high, owners, axes, slabs, cuts)
        same = np.array_equal(low[1:], wanted_low) and np.array_equal(high[1:], wanted_high)
        if not same or np.any(low >= high):
            raise InputError(NO_TREE)
        tree._append(owners, axes, slabs, wanted_low, wanted_high, _depths(parent)[1:])
        return tree

    def _append(
        self,
        owners: IntArray,
        axes: IntArray,
        slabs: IntArray,
        low: IntArray,
        high: IntArray,
        depth: IntArray,
    ) -> IntArray:
        """Add the slabs that the owners are cut into, one owner after the other."""
        start, stop = self._size, self._size + len(low)
        self._reserve(stop)
        new = slice(start, stop)
        self._low[new], self._high[new] = low, high
        self._parent[new], self._depth[new] = np.repeat(owners, slabs), depth
        self._axis[new], self._first_child[new], self._slabs[new] = -1, NO_REGION, 0
        self._axis[owners], self._slabs[owners] = axes, slabs
        self._first_child[owners] = start + np.cumsum(slabs) - slabs
        self._size = stop
        return np.arange(start, stop)

    def _check_cuts(
        self, regions: IntArray, axes: IntArray, cuts: IntArray, cuts_each: IntArray
    ) -> None:
        self.check_regions(regions)
        if len(axes) != len(regions) or len(cuts_each) != len(regions):
            raise InputError("each region to be cut needs one axis and one number of cuts")
        if len(cuts) != cuts_each.sum() or np.any(cuts_each < 1):
            raise InputError("each region to be cut needs at least one cut")
        if np.any((axes < 0) | (axes >= self.dimensions)):
            raise InputError(f"an axis must lie between 0 and {self.dimensions - 1}")
        named = np.zeros(self._size, dtype=bool)
        named[regions] = True  # a region that is named twice is marked once
        if np.count_nonzero(named) < len(regions) or np.any(self._slabs[regions] > 0):
            raise InputError("a region can be cut only once")
        if np.any(self._depth[regions] >= MOST_LAYERS):
            raise InputError(TOO_DEEP)
        owner = np.repeat(regions, cuts_each)
        along = np.repeat(axes, cuts_each)
        if np.any(cuts <= self._low[owner, along]) or np.any(cuts >= self._high[owner, along]):
            raise InputError("a cut must leave cells on both sides of it")
        if np.any((np.diff(cuts) <= 0) & (owner[1:] == owner[:-1])):
            raise InputError("the cuts of a region must ascend")

    def check_regions(self, regions: IntArray) -> None:
        """Refuse regions that are not there.

        Parameters
        ----------
        regions : ndarray of int
            The regions.

        Raises
        ------
        InputError
            If one is not in the tree.

        Examples
        --------
        >>> tree.check_regions(np.array([0, 2]))
        """
        if len(regions) and (regions.min() < 0 or regions.max() >= self._size):
            raise InputError(f"a region must lie between 0 and {self._size - 1}")

    def _view(self, array: IntArray) -> IntArray:
        view = array[: self._size]
        view.flags.writeable = False
        return view

    def _reserve(self, size: int) -> None:
        capacity = len(self._parent)
        if size > capacity:
            self._take_rows(self, max(size, 2 * capacity))

    def _take_rows(self, other: RegionTree, capacity: int) -> None:
        """Copy a tree into arrays with room for so many. They are cut out of one, which the system gives in large pages."""
        numbers = np.empty(capacity * (len(COLUMNS) + 2 * (self.dimensions - 1)), dtype=np.int64)
        end = 0
        for name in COLUMNS:
            old = getattr(other, name)[: other._size]
            start, end = end, end + capacity * (old.size // other._size)
            room = numbers[start:end].reshape(capacity, *old.shape[1:])
            room[: other._size] = old
            setattr(self, name, room)


def _slabs_of(
    low: IntArray, high: IntArray, owners: IntArray, axes: IntArray, slabs: IntArray, cuts: IntArray
) -> tuple[IntArray, IntArray]:
    """The slabs of owners: as wide as these, but along its axis each begins at a cut, where the last one ends."""
    parents, first = np.repeat(owners, slabs), np.cumsum(slabs) - slabs
    low, high = low.take(parents, axis=0), high.take(parents, axis=0)
    later, along = np.delete(np.arange(len(parents)), first), np.repeat(axes, slabs - 1)
    low[later, along] = high[later - 1, along] = cuts
    return low, high


def _depths(parent: IntArray) -> IntArray:
    """How many regions each lies in. Steps towards the root are doubled, so that a long chain takes few."""
    above = np.maximum(parent, 0)
    depths: IntArray = (parent != NO_REGION).astype(np.int64)
    while above.any():
        depths += depths[above]
        above = above[above]
        if depths.max() > MOST_LAYERS:
            raise InputError(TOO_DEEP)
    return depths
