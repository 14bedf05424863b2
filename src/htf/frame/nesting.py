"""Which of some regions lie in which others of them, and whether they make them up. Public."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from htf.errors import InputError
from htf.frame.domain import IntArray
from htf.frame.tree import NO_REGION, RegionTree

Number = TypeVar("Number", np.int64, np.float64)
OUTSIDE = -1  # what lies in none of the regions
MOST_DEPTH = 64  # regions in which one lies: levels have names, and nobody has named more


@dataclass(frozen=True, eq=False)
class Nesting:
    """The order of some regions, by row. The *parts* of a region are the largest of the others that lie in it."""

    above: IntArray  # the row of the smallest region that each lies in, or OUTSIDE
    number: IntArray  # of the parts of each
    first: IntArray  # where the parts of each begin in `order`
    order: IntArray  # rows, those of one region together
    depth: IntArray  # in how many of the regions each lies

    @classmethod
    def of(cls, tree: RegionTree, regions: IntArray) -> Nesting:
        """Of regions that differ. One that has parts must be made up of them."""
        row = np.full(len(tree), OUTSIDE, dtype=np.int64)
        row[regions] = np.arange(len(regions))
        if np.any(row[regions] != np.arange(len(regions))):
            raise InputError("counts that add up must be of regions that differ")
        nearest = tree.nearest(row != OUTSIDE)[regions]
        above = np.where(nearest == NO_REGION, OUTSIDE, row[nearest])
        inner = np.flatnonzero(above != OUTSIDE)
        order = inner[np.argsort(above[inner], kind="stable")]
        number = np.bincount(above[inner], minlength=len(regions))
        cells = np.zeros(len(regions), dtype=np.int64)
        np.add.at(cells, above[inner], tree.cells(regions[inner]))
        if np.any((number > 0) & (cells != tree.cells(regions))):
            raise InputError("counts that add up need all parts of a region, or none")
        return cls(above, number, np.cumsum(number) - number, order, _depths(above))

    def parts_of(self, rows: IntArray) -> tuple[IntArray, IntArray]:
        """The parts of rows that have some, and where those of each begin."""
        number = self.number[rows]
        starts = np.cumsum(number) - number
        place = np.arange(number.sum()) - np.repeat(starts, number)
        return self.order[np.repeat(self.first[rows], number) + place], starts

    def inner_layers(self) -> list[IntArray]:
        """The rows that have parts, by depth, the deepest first."""
        inner = self.number > 0
        return [
            np.flatnonzero(inner & (self.depth == depth))
            for depth in range(int(self.depth.max(initial=0)), -1, -1)
            if np.any(inner & (self.depth == depth))
        ]

    def sum_parts(self, rows: IntArray, values: NDArray[Number]) -> NDArray[Number]:
        """For rows that have parts, the sum of the values of these."""
        parts, starts = self.parts_of(rows)
        return np.asarray(np.add.reduceat(values[parts], starts), dtype=values.dtype)


def _depths(above: IntArray) -> IntArray:
    depths, left = np.zeros(len(above), dtype=np.int64), above
    while np.any(left != OUTSIDE):
        depths += left != OUTSIDE
        if depths.max() > MOST_DEPTH:
            raise InputError(f"counts that add up are nested more than {MOST_DEPTH} deep")
        left = np.where(left == OUTSIDE, OUTSIDE, above[left])
    return depths
