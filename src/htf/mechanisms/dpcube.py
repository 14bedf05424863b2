"""DPCube.

Y. Xiao, L. Xiong, L. Fan, S. Goryczka, H. Li: DPCube: Differentially Private Histogram Release through
Multidimensional Partitioning, Transactions on Data Privacy 7(3), 2014 (shown at VLDB 2012). The
same two phases as in `kdtree-cell`: noisy cells, a kd-tree on them, fresh counts of its leaves, and an
inference that makes one of the two sets of counts. It differs in where a node is cut: at the place, on
any axis, that leaves the most uniform halves, by the sum of squared deviations from their means
(V-optimality).

The paper leaves the same choices open as that of `kdtree-cell`, and they are made in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass

from htf.curator.window import Steps, Window
from htf.domain import IntArray
from htf.mechanisms.base import (
    Histogram,
    Mechanism,
    parameter,
    read_number,
    read_optional_integer,
    read_share,
    read_text,
)
from htf.mechanisms.kdtree_cell import (
    COMBINED,
    Cuts,
    KdTreeCell,
    NoisyCells,
    check_two_phases,
    release_two_phases,
)


@dataclass(frozen=True)
class DpCube(Mechanism):
    """DPCube: cut noisy cells into uniform boxes, count those afresh, combine both counts."""

    name = "dpcube"
    citation = (
        "Xiao, Xiong, Fan, Goryczka, Li: DPCube: Differentially private histogram release through "
        "multidimensional partitioning, Transactions on Data Privacy 2014"
    )

    cells_per_axis: int | None = parameter(
        None,
        read_optional_integer,
        "cells of the grid along an axis; none: 256 on a map, 2^16 in all",
    )
    cell_share: float = parameter(0.5, read_share, "share of the budget for the cells")
    split_deviations: float = parameter(
        1.75, read_number, "split where some cut parts halves that differ by so many deviations"
    )
    estimate: str = parameter(
        COMBINED, read_text, "of leaves, combined: from counts and cells; fresh: from counts alone"
    )

    def __post_init__(self) -> None:
        check_two_phases(self)

    def build(self, window: Window) -> Steps[Histogram]:
        return (yield from release_two_phases(window, self, self._choose_cuts))

    def _choose_cuts(self, cells: NoisyCells, low: IntArray, high: IntArray) -> Cuts:
        axes, places, gains = cells.most_uniform_cuts(low, high)
        return Cuts(axes, places, gains > self.split_deviations**2 * cells.variance)


DpCube.estimators = KdTreeCell.estimators
