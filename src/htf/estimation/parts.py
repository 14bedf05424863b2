"""Parts of even density, of which every answer and every map is made. Public."""

from __future__ import annotations

from dataclasses import dataclass

from htf.base.read_only import ReadOnlyArrays, make_read_only
from htf.frame.domain import FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Parts(ReadOnlyArrays):
    """Parts of even density that tile the map: the leaves, or the pieces they are divided into."""

    low: IntArray
    high: IntArray
    estimates: FloatArray
    scales: FloatArray  # of noise that has the variance of each estimate
    leaf: IntArray  # the index of the leaf that each is a part of

    def __post_init__(self) -> None:
        make_read_only(self.low, self.high, self.estimates, self.scales, self.leaf)
