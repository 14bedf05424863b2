"""PrivTree.

J. Zhang, X. Xiao, X. Xie: PrivTree: A Differentially Private Algorithm for Hierarchical Decompositions,
SIGMOD 2016. A region is split while its count, less a term that grows with its depth, and with noise
that does not, exceeds a threshold. So no height has to be chosen, and the noise does not grow with it.

The structure is one measurement of the Curator (docs/proofs/privtree.md), which gives away what was
split and nothing else: the biased scores never leave it. The leaves are then counted afresh with the
rest of the budget.

Choices. Regions of a single cell are not split. The threshold is 0 and half of the budget buys the
structure, as in the paper. The fan-out is 4, the paper's 2^d on a map; where a map has more axes than
one split cuts, they take turns.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

import numpy as np

from htf.curator.window import Steps, Window
from htf.errors import InputError
from htf.mechanisms.base import (
    Histogram,
    Mechanism,
    check_share,
    parameter,
    read_integer,
    read_share,
    split_epsilon,
)


@dataclass(frozen=True)
class PrivTree(Mechanism):
    """PrivTree: split where a biased count is large, with the same noise at any depth."""

    name = "privtree"
    citation = (
        "Zhang, Xiao, Xie: PrivTree: A differentially private algorithm for hierarchical "
        "decompositions, SIGMOD 2016"
    )

    fan_out: int = parameter(
        4, read_integer, "parts of a split, a power of two; 4 halves both axes of a map, 2 one"
    )
    structure_share: float = parameter(0.5, read_share, "share of the budget for the structure")
    threshold: int = parameter(0, read_integer, "theta: split where the biased count exceeds this")

    def check(self) -> None:
        if self.fan_out < 2 or self.fan_out & (self.fan_out - 1):
            raise InputError(f"fan_out must be a power of two, got {self.fan_out}")
        check_share("structure_share", self.structure_share)

    def build(self, window: Window) -> Steps[Histogram]:
        structure, data = split_epsilon(window.epsilon, self.structure_share, "structure_share")
        axes = axes_by_depth(window.tree.dimensions, self.fan_out)
        yield from window.grow_privtree(
            0, axes, structure, "structure: splits", threshold=self.threshold * window.shares
        )
        leaves = np.flatnonzero(window.tree.slabs == 0)
        noisy = yield from window.count(leaves, data, "leaves: counts")
        scales = np.full(len(leaves), 1 / float(data))
        return Histogram(leaves, noisy, scales, "last-count")


def axes_by_depth(dimensions: int, fan_out: int) -> tuple[tuple[int, ...], ...]:
    """The axes that are halved at depth 0, 1, …: log2(fan_out) of them, from the last one on, in turn.

    Where there are not so many axes, all are halved, and the fan-out is smaller.
    """
    together = min(fan_out.bit_length() - 1, dimensions)
    turns = dimensions // gcd(dimensions, together)
    return tuple(
        tuple(sorted((-1 - turn * together - i) % dimensions for i in range(together)))
        for turn in range(turns)
    )
