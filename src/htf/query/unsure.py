"""Where a map cannot tell emptiness from a crowd: boxes whose interval holds none, and a third of the density around them.

In a dense place leaves are small, so each holds few records and many an interval includes zero. That is not the emptiness
of the sea, whose interval ends far below the density of any town.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from htf.frame.domain import FloatArray, IntArray
from htf.query.columns import place

SHARE = 1 / 3  # of the density around a box; colours are on a log scale, where that is a small step
Answer = Callable[[FloatArray, FloatArray], FloatArray]


def are_unsure(
    answer_cells: Answer, low: IntArray, high: IntArray, answers: FloatArray, shape: tuple[int, ...]
) -> NDArray[np.bool_]:
    """Which boxes in cells, with their answers, are so. What is around a box is the box with three times its width and
    height, cut at the map; its own interval must lie above zero."""
    found = np.zeros(len(low), dtype=np.bool_)
    open_ = np.flatnonzero((answers[:, place("low")] <= 0) & (answers[:, place("high")] > 0))
    if len(open_) == 0:
        return found
    near, far = low[open_].astype(np.float64), high[open_].astype(np.float64)
    wide_low, wide_high = near.copy(), far.copy()
    for axis in (0, 1):
        size = far[:, axis] - near[:, axis]
        wide_low[:, axis] = np.maximum(near[:, axis] - size, 0)
        wide_high[:, axis] = np.minimum(far[:, axis] + size, shape[axis])
    around = answer_cells(wide_low, wide_high)
    times = np.prod((wide_high - wide_low)[:, :2], axis=1) / np.prod((far - near)[:, :2], axis=1)
    reaches = answers[open_, place("high")] * times >= SHARE * around[:, place("count")]
    found[open_] = reaches & (around[:, place("low")] > 0)
    return found
