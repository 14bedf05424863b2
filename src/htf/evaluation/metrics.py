"""Measures how far answers are from the truth, over the boxes of one run."""

from __future__ import annotations

import numpy as np

from htf.frame.domain import FloatArray, IntArray

SMOOTHING = 20  # [HTF, section 5.1]: below this count, errors are relative to it
MRE, RMSE, MAE = "MRE", "RMSE", "MAE"
METRICS = (MRE, RMSE, MAE)


def measure_errors(exact_counts: IntArray | FloatArray, answers: FloatArray) -> dict[str, float]:
    """Mean relative error in per cent, root of the mean square, mean absolute error."""
    errors = np.abs(answers - exact_counts)
    return {
        MRE: float(100 * np.mean(errors / np.maximum(exact_counts, SMOOTHING))),
        RMSE: float(np.sqrt(np.mean(np.square(errors)))),
        MAE: float(np.mean(errors)),
    }
