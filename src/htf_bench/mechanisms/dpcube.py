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

from htf.frame.domain import IntArray
from htf.mechanisms.base import parameter, read_number
from htf_bench.mechanisms.kdtree_cell import Cuts, NoisyCells, TwoPhases


@dataclass(frozen=True)
class DpCube(TwoPhases):
    """DPCube: cut noisy cells into uniform regions, count those afresh, combine both counts."""

    name = "dpcube"
    citation = (
        "Xiao, Xiong, Fan, Goryczka, Li: DPCube: Differentially private histogram release through "
        "multidimensional partitioning, Transactions on Data Privacy 2014"
    )

    split_deviations: float = parameter(
        1.75, read_number, "split where some cut parts halves that differ by so many deviations"
    )

    def _choose_cuts(self, cells: NoisyCells, low: IntArray, high: IntArray) -> Cuts:
        axes, places, gains = cells.most_uniform_cuts(low, high)
        return axes, places, gains > self.split_deviations**2 * cells.variance
