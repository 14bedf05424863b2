"""Measures how far answers are from the truth, over the boxes of one run."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from htf.forecasts.accuracy import SMOOTHING, relative_error
from htf.frame.domain import FloatArray, IntArray
from htf.query.answer import Answer
from htf_bench.map_metrics import MAP_MEANINGS, MAP_METRICS, MAP_UNITS

SMOOTHING_SHARE = 0.001  # of all records: the same in the papers of UG, AG and PrivTree
MRE, MRE_SHARE, RMSE, MAE = "MRE", "MRE-0.1%", "RMSE", "MAE"
METRICS = (MRE, MRE_SHARE, RMSE, MAE, *MAP_METRICS)
UNITS = {MRE: "%", MRE_SHARE: "%", RMSE: "records", MAE: "records", **MAP_UNITS}
MEANINGS = {
    MRE: f"mean error relative to the true count, or to {SMOOTHING} where that is less",
    MRE_SHARE: "mean error relative to the true count, or to 0.1 % of all records where that is less",
    RMSE: "root of the mean squared error",
    MAE: "mean absolute error",
    **MAP_MEANINGS,
}


def measure_errors(
    exact_counts: IntArray | FloatArray, answers: FloatArray, records: float = 0
) -> dict[str, float]:
    """Mean relative errors in per cent, root of the mean square, mean absolute error.

    `records` is the number of all records. Without any there is no error relative to their number.
    """
    errors = np.abs(answers - exact_counts)
    found = {
        MRE: relative_error(exact_counts, answers),
        RMSE: float(np.sqrt(np.mean(np.square(errors)))),
        MAE: float(np.mean(errors)),
    }
    if records > 0:
        found[MRE_SHARE] = relative_error(exact_counts, answers, SMOOTHING_SHARE * records)
    return found


def reaches_for_count(answers: Answer) -> NDArray[np.bool_]:
    """Where the interval of the raw counts was made longer so that it contains the count: it ends there then."""
    return np.asarray(
        ((answers.low == answers.count) & (answers.count > 0)) | (answers.high == answers.count)
    )
