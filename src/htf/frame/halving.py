"""Cutting boxes in half, one axis after the other; and what then lies beside each box. Public.

All boxes that were halved equally often, from the whole map on, were cut along the same axes in the
same order: the *turns*. So they form a grid, as equal as whole cells allow, and a box has
neighbours of its own size. A box of one cell along an axis lets that turn pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from htf.errors import InputError
from htf.frame.domain import IntArray
from htf.frame.tree import RegionTree

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

    Returns the pieces, and for each the place in `regions` of what it is a piece of. Pieces of one
    region stand together.
    """
    axes = np.array(halving_axes(tree.high[0]), dtype=np.int64)
    pieces, owners = regions, np.arange(len(regions))
    for step in range(min(int(steps.max(initial=0)), len(axes))):
        turn = turns[owners] + step
        axis = axes[np.minimum(turn, len(axes) - 1)]
        low, high = tree.low[pieces, axis], tree.high[pieces, axis]
        cut = (step < steps[owners]) & (turn < len(axes)) & (high - low > 1)
        halves = tree.split(pieces[cut], axis[cut], ((low + high) // 2)[cut])
        times = np.where(cut, 2, 1)
        pieces, owners = np.repeat(pieces, times), np.repeat(owners, times)
        pieces[np.repeat(cut, times)] = halves.ravel()
    return pieces, owners


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """Boxes that are cut in one turn, and what lies beside each along the axis that is cut."""

    cut: IntArray
    left: IntArray  # the half with the lower cells; the other one follows it
    before: IntArray  # the box beside it; itself at the edge of the map
    after: IntArray

    def among(self, some: Any) -> Step:
        return Step(*(getattr(self, f.name)[some] for f in fields(self)))


class Neighbourhood:
    """The turns in which a tree of halves was cut, and what lies beside each of its boxes.

    `neighbours[region, axis, end]` is the box of the same size beside `region`, towards lower (0) or
    higher (1) cells; a larger one where no box of that size was cut; at the edge of the map, `region`
    itself. They are found from the top down: a half faces its other half, and the nearer
    half of what its parent faced.
    """

    def __init__(self, tree: RegionTree) -> None:
        size, axes = len(tree), tree.dimensions
        self._tree = tree
        self.turns = np.zeros(size, dtype=np.int64)  # that each box has had
        self.neighbours = np.repeat(np.arange(size), 2 * axes).reshape(size, axes, 2)
        self.steps: list[Step] = []
        layer = np.zeros(1, dtype=np.int64)
        for turn, axis in enumerate(halving_axes(tree.high[0])):
            layer = layer[tree.slabs[layer] > 0]
            layer = self._take_turn(turn, axis, layer)
        halves = 2 * sum(len(step.cut) for step in self.steps)
        if 1 + halves != size:
            raise InputError(NO_HALVES)

    def widths(self, regions: IntArray) -> IntArray:
        """The cells of each region along each axis."""
        return np.asarray(self._tree.high[regions] - self._tree.low[regions])

    def _take_turn(self, turn: int, axis: int, layer: IntArray) -> IntArray:
        now = self._tree.axis[layer] == axis
        cut, waiting = layer[now], layer[~now]
        left = self._tree.first_child[cut]
        self._check_turn(axis, cut, left, waiting)
        if len(cut) == 0:
            return layer
        self.steps.append(Step(cut, left, *self.neighbours[cut, axis].T))
        self.turns[left] = self.turns[left + 1] = turn + 1
        self._pass_on(axis, cut)
        for end in (0, 1):  # what waits may face halves now
            beside = self.neighbours[waiting, axis, end]
            self.neighbours[waiting, axis, end] = self._nearer(axis, beside, 1 - end)
        return np.concatenate([waiting, left, left + 1])

    def _check_turn(self, axis: int, cut: IntArray, left: IntArray, waiting: IntArray) -> None:
        """What is cut is cut in the middle, and what waits has one cell only along this axis."""
        low, high = self._tree.low[cut, axis], self._tree.high[cut, axis]
        in_middle = self._tree.high[left, axis] == (low + high) // 2
        if not np.all(in_middle) or np.any(self.widths(waiting)[:, axis] > 1):
            raise InputError(NO_HALVES)

    def _pass_on(self, axis: int, cut: IntArray) -> None:
        left = self._tree.first_child[cut]
        for side in (0, 1):
            half = left + side
            for across in range(self._tree.dimensions):
                for end in (0, 1):
                    beside = self.neighbours[cut, across, end]
                    nearer = self._nearer(axis, beside, 1 - end if across == axis else side)
                    at_edge = beside == cut
                    self.neighbours[half, across, end] = np.where(at_edge, half, nearer)
            self.neighbours[half, axis, 1 - side] = left + 1 - side

    def _nearer(self, axis: int, beside: IntArray, side: int) -> IntArray:
        """The half on that side of each box that is cut in this turn, and other boxes as they are."""
        is_cut = self._tree.axis[beside] == axis
        return np.where(is_cut, self._tree.first_child[beside] + side, beside)
