"""How far answers are from the truth, relative to it, and how tables show that."""

from __future__ import annotations

import math

import numpy as np

from htf.frame.domain import FloatArray, IntArray

SMOOTHING = 20  # [HTF, section 5.1]: below this count, errors are relative to it


def relative_error(
    exact_counts: IntArray | FloatArray, answers: FloatArray, least: float = SMOOTHING
) -> float:
    """The mean of |answer - truth| / max(truth, least), in per cent."""
    errors = np.abs(answers - exact_counts)
    return float(100 * np.mean(errors / np.maximum(exact_counts, least)))


def typical(errors: FloatArray) -> float:
    """The median; where half of the answers are exact, as counts of zones may be, the mean."""
    return float(np.median(errors)) or float(np.mean(errors))


def show_value(values: FloatArray) -> str:
    """Mean and standard deviation over the runs."""
    if len(values) == 0:
        return "–"
    if len(values) == 1:
        return show_number(float(values[0]))
    return f"{show_number(float(values.mean()))} ± {show_number(float(values.std(ddof=1)))}"


def show_number(value: float) -> str:
    """Two or three figures, without exponents."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    decimals = max(0, 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{min(decimals, 4)}f}"


def rounded(value: float, figures: int = 2) -> str:
    """Rounded to the few digits that a forecast can give."""
    text = f"{value:.{figures}g}"
    return text if abs(value) < 10 else f"{float(text):,.0f}"
