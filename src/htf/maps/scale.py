"""The ends of the scale of colours, chosen from what is drawn. Public."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from htf.estimation.level import OUTSIDE
from htf.frame.domain import FloatArray

MOST_DECADES = 4.0  # between both ends of a scale of densities
SPREAD = (0.01, 0.997)  # the few most extreme densities lie beyond the ends
SHARE = 98  # per cent of the differences that are more than noise lie within the scale
CONTRAST = 100.0  # between its end and where its colours begin
STEPS = (1.0, 2.0, 5.0, 10.0)
SAME = 1e-9
STRONG = "Strong colours mark differences that are more than noise."
CHANCE = f"The chance that any square is marked without reason is at most {OUTSIDE * 100:g} %."


def density_limits(
    density: FloatArray,
    weight: FloatArray,
    spread: tuple[float, float] = SPREAD,
    widening: float = 10.0,
) -> tuple[float, float]:
    """Those of the densities that are drawn, one to four decades apart. Large shapes have more weight, as they have
    more pixels.

    A narrow range is widened upwards, so that values that barely pass the noise stay pale.
    """
    is_visible = np.isfinite(density) & (density > 0)
    density, weight = density[is_visible], weight[is_visible]
    if len(density) == 0:
        return 1.0, 10.0
    order = np.argsort(density)
    share = np.cumsum(weight[order]) / weight.sum()
    places = np.searchsorted(share, spread).clip(0, len(order) - 1)
    least, most = (float(limit) for limit in density[order][places])
    return max(least, most / 10**MOST_DECADES), max(most, widening * least)


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


def beyond_end(density: FloatArray, is_beyond: NDArray[np.bool_]) -> str:
    """A sentence on differences that lie beyond the end of the scale; empty if none does."""
    _, most = difference_limits(density, is_beyond)
    drawn = density[is_beyond] if is_beyond.any() else density
    number = int(np.sum(np.abs(drawn) > most))
    if number == 0:
        return ""
    lie = "1 difference lies" if number == 1 else f"{number:,} differences lie"
    largest = signed_number(float(drawn[np.argmax(np.abs(drawn))]))
    return f"The colours end at ±{short_number(most)}: {lie} beyond, the largest at {largest}."


def short_number(value: float) -> str:
    """1500 as 1.5 k, 2000000 as 2 M."""
    for unit, name in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= unit * (1 - 1e-9):
            return f"{value / unit:.3g}{name}"
    return f"{value:.3g}"


def signed_number(value: float, _: object = None) -> str:
    sign = "+" if value > 0 else "−" if value < 0 else ""
    return sign + short_number(abs(value))
