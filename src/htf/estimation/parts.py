"""Parts of even density, of which every answer and every map is made. Public."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htf.base.read_only import ReadOnlyArrays, make_read_only
from htf.estimation.noise_law import CLEAR_DEVIATIONS, is_clear, noise_deviations
from htf.frame.domain import FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Parts(ReadOnlyArrays):
    """Parts of even density that tile the map: the leaves, or the pieces they are divided into."""

    low: IntArray
    high: IntArray
    estimates: FloatArray
    scales: FloatArray  # of noise that has the variance of each estimate
    clear_deviations: float = CLEAR_DEVIATIONS  # for htf.estimation.noise_law.is_clear

    def __post_init__(self) -> None:
        make_read_only(self.low, self.high, self.estimates, self.scales)

    def is_clear(self, some: Any = slice(None)) -> NDArray[np.bool_]:
        """Which parts, by default of all, are more than noise."""
        noise = noise_deviations(self.scales[some])
        return is_clear(self.estimates[some], noise, self.clear_deviations)
