"""Noise on every cell: the identity of the literature."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from htf.curator.window import Steps, Window
from htf.errors import InputError
from htf.frame.grids import MOST_GRID_CELLS
from htf.mechanisms.base import Histogram, Mechanism, parameter, read_integer
from htf_bench.grids import Grid


@dataclass(frozen=True)
class Singular(Mechanism):
    """Every cell counted on its own, with the whole budget; a grid too fine for that is coarsened."""

    name = "singular"
    citation = "Dwork, McSherry, Nissim, Smith: Calibrating noise to sensitivity, TCC 2006"

    most_cells: int = parameter(
        MOST_GRID_CELLS, read_integer, "more cells than this are joined to at most this many"
    )

    def check(self) -> None:
        if self.most_cells < 1:
            raise InputError(f"most_cells must be positive, got {self.most_cells}")

    def build(self, window: Window) -> Steps[Histogram]:
        grid = Grid.limited(window.domain, self.most_cells)
        leaves = grid.cut_evenly(window.tree, np.zeros(1, dtype=np.int64), grid.shape[None])
        noisy = yield from window.count(leaves, window.epsilon, "cells")
        scales = np.full(len(leaves), 1 / float(window.epsilon))
        return Histogram(leaves, noisy, scales, "last-count", {"grid": grid.shape.tolist()})
