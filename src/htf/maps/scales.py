"""The ends of the scale of colours for differences, chosen from those that are drawn."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from htf.frame.domain import FloatArray

SHARE = 98  # per cent of the differences that are more than noise lie within the scale
CONTRAST = 100.0  # between its end and where its colours begin
STEPS = (1.0, 2.0, 5.0, 10.0)
SAME = 1e-9


def difference_limits(density: FloatArray, is_beyond: NDArray[np.bool_]) -> tuple[float, float]:
    """Where colours begin and where they end, for the sizes of differences that are more than noise, or of all if none
    is. The end is a round number."""
    sizes = np.abs(density[is_beyond] if is_beyond.any() else density)
    wanted = float(np.percentile(sizes, SHARE)) if sizes.size else 0.0
    most = round_number(wanted) if wanted > 0 else 1.0
    return most / CONTRAST, most


def round_number(value: float) -> float:
    """The next number from there on that is 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in STEPS if step * power >= value * (1 - SAME))
