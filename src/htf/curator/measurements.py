"""The closed set of questions that a Curator answers.

Each knows its exact value and its sensitivity: by how much one record more or less, in a cell of
the region asked about, can move one answer. A record elsewhere does not move it at all. A new
measurement belongs here, with a proof in docs/proofs/, and nowhere else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from htf.domain import IntArray
from htf.errors import InputError
from htf.tree import RegionTree

if TYPE_CHECKING:
    from htf.curator.cells import ExactCells


@dataclass(frozen=True, slots=True, eq=False)
class Measurement(ABC):
    """One integer question for each row: about `regions[i]`, at `epsilon[i]` units."""

    kind: ClassVar[str]
    sensitivity: ClassVar[int]

    label: str
    regions: IntArray
    epsilon: IntArray

    @abstractmethod
    def exact(self, cells: ExactCells) -> IntArray:
        """The exact answers. Called by the Curator, with what only the Curator has."""

    @property
    def details(self) -> tuple[IntArray, IntArray]:
        """The axis and the cut asked about, or -1."""
        nothing = np.full(len(self.regions), -1, dtype=np.int64)
        return nothing, nothing

    def check(self, tree: RegionTree) -> None:
        """Refuse a question that makes no sense, before it is charged."""
        tree.check_regions(self.regions)
        if self.epsilon.shape != self.regions.shape:
            raise InputError("a measurement needs one epsilon for each region")


@dataclass(frozen=True, slots=True, eq=False)
class CountRegions(Measurement):
    """The number of records in each region. Proof: docs/proofs/count.md"""

    kind = "count"
    sensitivity = 1

    def exact(self, cells: ExactCells) -> IntArray:
        return cells.count(self.regions)


@dataclass(frozen=True, slots=True, eq=False)
class ScoreSplits(Measurement):
    """The homogeneity objective of cutting each region at `cuts` along `axes` [HTF, Eq. 4],
    each half rounded down to an integer. Proof: docs/proofs/homogeneity.md"""

    kind = "homogeneity"
    sensitivity = 2

    axes: IntArray
    cuts: IntArray

    def exact(self, cells: ExactCells) -> IntArray:
        return cells.score_splits(self.regions, self.axes, self.cuts)

    @property
    def details(self) -> tuple[IntArray, IntArray]:
        return self.axes, self.cuts

    def check(self, tree: RegionTree) -> None:
        Measurement.check(self, tree)
        if self.axes.shape != self.regions.shape or self.cuts.shape != self.regions.shape:
            raise InputError("scoring splits needs one axis and one cut for each region")
        if np.any((self.axes < 0) | (self.axes >= tree.dimensions)):
            raise InputError(f"an axis must lie between 0 and {tree.dimensions - 1}")
        low, high = tree.low[self.regions, self.axes], tree.high[self.regions, self.axes]
        if np.any((self.cuts <= low) | (self.cuts >= high)):
            raise InputError("a split must leave cells on both sides of it")


MEASUREMENTS: tuple[type[Measurement], ...] = (CountRegions, ScoreSplits)
SENSITIVITY_OF_KIND = {measurement.kind: measurement.sensitivity for measurement in MEASUREMENTS}
