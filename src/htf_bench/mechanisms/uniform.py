"""One noisy total, spread evenly: the floor under every comparison."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from htf.curator.window import Steps, Window
from htf.mechanisms.base import Histogram, Mechanism


@dataclass(frozen=True)
class Uniform(Mechanism):
    """The whole map as one region, counted with the whole budget."""

    name = "uniform"
    citation = "Hay, Machanavajjhala, Miklau, Chen, Zhang: DPBench, SIGMOD 2016"

    def build(self, window: Window) -> Steps[Histogram]:
        root = np.zeros(1, dtype=np.int64)
        noisy = yield from window.count(root, window.epsilon, "total")
        scales = np.full(1, 1 / float(window.epsilon))
        return Histogram(root, noisy, scales, "last-count")
