"""Cuts regions in half, one axis after the other, and finds the neighbours of each region. Public.

All regions that were halved equally often, from the whole map on, were cut along the same axes in the
same order: the *turns*. So they form a grid, as equal as whole cells allow, and a region has
neighbours of its own size. A region of one cell along an axis skips that turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from htf.errors import InputError
from htf.frame.domain import IntArray
from htf.frame.hierarchy import cut_some
from htf.frame.tree import NO_REGION, RegionTree

NO_HALVES = "the tree is not one of halves, cut along the axes in turn"


def halving_axes(shape: Sequence[int] | IntArray) -> tuple[int, ...]:
    """The axis of each turn: all axes, the longest first, until each is down to its cells."""
    halvings = [(int(cells) - 1).bit_length() for cells in shape]
    order = sorted(range(len(halvings)), key=lambda axis: -int(shape[axis]))
    return tuple(axis for turn in range(max(halvings)) for axis in order if turn < halvings[axis])


def halve_often(
    tree: RegionTree, regions: IntArray, turns: IntArray, steps: IntArray
) -> tuple[IntArray, IntArray]:
    """Halve region i, which had `turns[i]` turns before, in its next `steps[i]` ones.

    Returns the pieces and, for each, the index in `regions` of the region it is a piece of. Pieces of
    one region stand together.
    """
    axes = np.array(halving_axes(tree.high[0]), dtype=np.int64)
    pieces, owners = regions, np.arange(len(regions))
    for step in range(min(int(steps.max(initial=0)), len(axes))):
        turn = turns[owners] + step
        axis = axes[np.minimum(turn, len(axes) - 1)]
        low, high = tree.low[pieces, axis], tree.high[pieces, axis]
        cut = (step < steps[owners]) & (turn < len(axes)) & (high - low > 1)
        number = cut.astype(np.int64)
        pieces = cut_some(tree, pieces, axis, ((low + high) // 2)[cut], number)
        owners = np.repeat(owners, number + 1)
    return pieces, owners


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """The regions that are cut in one turn, and their neighbours along the axis that is cut."""

    cut: IntArray
    left: IntArray  # the half with the lower cells; the other one follows it
    before: IntArray  # the box beside it; itself at the edge of the map
    after: IntArray

    def among(self, chosen: Any) -> Step:
        return Step(*(getattr(self, f.name)[chosen] for f in fields(self)))


@dataclass(frozen=True, slots=True, eq=False)
class _Layer:
    """Regions that will be cut, and their neighbours: one row for each axis and end."""

    regions: IntArray
    beside: IntArray

    def among(self, chosen: IntArray) -> _Layer:
        return _Layer(self.regions.take(chosen), self.beside.take(chosen, axis=1))


class Neighbourhood:
    """The turns in which a tree of halves was cut, and the neighbours of each of its regions.

    `neighbours[region, axis, end]` is the region of the same size beside `region`, towards lower (0)
    or higher (1) cells; a larger one if no region of that size was cut; at the edge of the map, `region`
    itself. They are found from the top down: a half faces its other half, and the nearer half of what
    its parent faced. Without `all_boxes` there are only `turns` and `steps`, for which only regions that
    are cut are needed; that takes a quarter of the time.
    """

    def __init__(self, tree: RegionTree, *, all_boxes: bool = True) -> None:
        size, axes = len(tree), tree.dimensions
        self._tree, self._all_boxes = tree, all_boxes
        # The lower half of each box that is cut along an axis, NO_REGION for others.
        self._lower = [
            np.where(tree.axis == axis, tree.first_child, NO_REGION) for axis in range(axes)
        ]
        self.turns = np.zeros(size, dtype=np.int64)  # that each box has had
        self.neighbours = np.zeros((size if all_boxes else 0, axes, 2), dtype=np.int64)
        self.steps: list[Step] = []
        root = _Layer(np.zeros(1, dtype=np.int64), np.zeros((2 * axes, 1), dtype=np.int64))
        layer = root.among(np.flatnonzero(tree.slabs[:1]))
        for turn, axis in enumerate(halving_axes(tree.high[0])):
            layer = self._take_turn(turn, axis, layer)
        halves = 2 * sum(len(step.cut) for step in self.steps)
        if 1 + halves != size:
            raise InputError(NO_HALVES)

    def widths(self, regions: IntArray, axis: int) -> IntArray:
        """The cells of each region along an axis."""
        return np.asarray(self._tree.high[regions, axis] - self._tree.low[regions, axis])

    def _take_turn(self, turn: int, axis: int, layer: _Layer) -> _Layer:
        now = self._tree.axis[layer.regions] == axis
        cut, waiting = (layer.among(np.flatnonzero(some)) for some in (now, ~now))
        left = self._tree.first_child[cut.regions]
        self._check_turn(axis, cut.regions, left, waiting.regions)
        if len(left) == 0:
            return layer
        self.steps.append(Step(cut.regions, left, *cut.beside[2 * axis : 2 * axis + 2]))
        self.turns[left] = self.turns[left + 1] = turn + 1
        for end in (0, 1):  # what waits may face halves now
            beside = waiting.beside[2 * axis + end]
            waiting.beside[2 * axis + end] = self._nearer(axis, beside, 1 - end)
        self._note(waiting)
        layers = [waiting, *(self._halves(axis, cut, left, side) for side in (0, 1))]
        return _Layer(
            np.concatenate([one.regions for one in layers]),
            np.concatenate([one.beside for one in layers], axis=1),
        )

    def _check_turn(self, axis: int, cut: IntArray, left: IntArray, waiting: IntArray) -> None:
        """Check that regions are cut in the middle, or have only one cell along this axis."""
        low, high = self._tree.low[:, axis], self._tree.high[:, axis]
        in_middle = high[left] == (low[cut] + high[cut]) // 2
        if not np.all(in_middle) or np.any(self.widths(waiting, axis) > 1):
            raise InputError(NO_HALVES)

    def _halves(self, axis: int, cut: _Layer, left: IntArray, side: int) -> _Layer:
        """The halves on one side of boxes, as far as they are cut in turn."""
        cut_again = np.flatnonzero(self._tree.slabs[left + side] > 0)
        if not self._all_boxes:
            cut, left = cut.among(cut_again), left[cut_again]
        halves, beside = left + side, np.empty((len(cut.beside), len(left)), dtype=np.int64)
        for place, faced in enumerate(cut.beside):
            across, end = divmod(place, 2)
            if across == axis and end != side:
                beside[place] = left + end  # the other half
            else:
                nearer = self._nearer(axis, faced, 1 - end if across == axis else side)
                beside[place] = np.where(faced == cut.regions, halves, nearer)
        made = _Layer(halves, beside)
        self._note(made)
        return made.among(cut_again) if self._all_boxes else made

    def _nearer(self, axis: int, beside: IntArray, side: int) -> IntArray:
        """The half on that side of each box that is cut in this turn, and other boxes as they are."""
        lower = self._lower[axis][beside]
        return np.where(lower == NO_REGION, beside, lower + side)

    def _note(self, layer: _Layer) -> None:
        if self._all_boxes:
            shape = len(layer.regions), *self.neighbours.shape[1:]
            self.neighbours[layer.regions] = layer.beside.T.reshape(shape)
