"""Measures how far answers are from the truth, over the boxes of one run.

Whole maps are compared by the distances that official statistics use, on a grid of squares that covers the map. Counts
below zero are taken as zero, and both maps are scaled to a total of 1, so that they compare the shape of maps and not
their totals.

- *Hellinger distance*: the root of half the sum of (sqrt(p) - sqrt(q))^2 over squares. 0 is the same, 1 is nothing in common.
- *Wasserstein distance*: how far the records of one map must be moved on average to make the other, in the best way. It is in
  per cent of the map's side, measured on a grid of at most 32 x 32 squares.
- *Loss of Moran's I*: how much the correlation of a square with the squares beside it differs from that of the truth.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from htf.forecasts.accuracy import SMOOTHING, relative_error
from htf.frame.domain import FloatArray, IntArray
from htf.query.answer import Answer

HELLINGER, WASSERSTEIN, MORAN = "Hellinger", "Wasserstein", "Moran-loss"
MAP_METRICS = (HELLINGER, WASSERSTEIN, MORAN)
# Squares per side between which records are moved: the time grows with the sixth power.
MOST_PILES = 32
MOST_STEPS = 10_000_000
SMOOTHING_SHARE = 0.001  # of all records: the same in the papers of UG, AG and PrivTree
MRE, MRE_SHARE, RMSE, MAE = "MRE", "MRE-0.1%", "RMSE", "MAE"
METRICS = (MRE, MRE_SHARE, RMSE, MAE, *MAP_METRICS)
UNITS = {MRE: "%", MRE_SHARE: "%", RMSE: "records", MAE: "records"}
UNITS |= {HELLINGER: "0 to 1", WASSERSTEIN: "% of the map's side", MORAN: "difference of I"}
MEANINGS = {
    MRE: f"mean error relative to the true count, or to {SMOOTHING} where that is less",
    MRE_SHARE: "mean error relative to the true count, or to 0.1 % of all records where that is less",
    RMSE: "root of the mean squared error",
    MAE: "mean absolute error",
    HELLINGER: "Hellinger distance of the maps, scaled to the same total",
    WASSERSTEIN: "how far records must be moved on average to turn one map into the other",
    MORAN: "difference of Moran's I, the correlation of squares with those beside them",
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


def measure_maps(exact: IntArray | FloatArray, answers: FloatArray) -> dict[str, float]:
    """The three distances between two grids of counts. There are none if one of the maps is empty."""
    true, found = exact.astype(np.float64), np.maximum(answers, 0.0)
    if true.sum() <= 0 or found.sum() <= 0:
        return {}
    true, found = true / true.sum(), found / found.sum()
    return {
        HELLINGER: float(np.sqrt(0.5 * np.sum((np.sqrt(true) - np.sqrt(found)) ** 2))),
        WASSERSTEIN: 100 * wasserstein(_coarser(true), _coarser(found)),
        MORAN: abs(morans_i(true) - morans_i(found)),
    }


def morans_i(grid: FloatArray) -> float:
    """Moran's I with squares that share a side as neighbours; 0 for an even map."""
    apart = grid - grid.mean()
    spread = float(np.sum(apart**2))
    pairs = apart[1:] * apart[:-1], apart[:, 1:] * apart[:, :-1]
    number = sum(one.size for one in pairs)
    if spread == 0 or number == 0:
        return 0.0
    return float(sum(one.sum() for one in pairs) / number * grid.size / spread)


def wasserstein(true: FloatArray, found: FloatArray) -> float:
    """The least mean distance over which one map, of total 1, is moved to make the other. Sides are 1 long.

    What lies in both maps need not be moved, because distances are a metric. That leaves a smaller problem.
    """
    import ot

    change = (true - found).ravel()
    less, more = np.flatnonzero(change > 0), np.flatnonzero(change < 0)
    moved = float(change[less].sum())
    if moved <= 0 or len(more) == 0:
        return 0.0
    middles = [(np.arange(size) + 0.5) / size for size in true.shape]
    x, y = (one.ravel() for one in np.meshgrid(*middles, indexing="ij"))
    lengths = np.hypot(x[less][:, None] - x[more], y[less][:, None] - y[more])
    taken, put = change[less] / moved, -change[more] / -change[more].sum()
    return moved * float(ot.emd2(taken, put, lengths, numItermax=MOST_STEPS))


def _coarser(grid: FloatArray) -> FloatArray:
    """The grid with at most so many squares per side as records are moved between."""
    for axis in range(2):
        pieces = min(grid.shape[axis], MOST_PILES)
        starts = np.arange(pieces) * grid.shape[axis] // pieces
        grid = np.add.reduceat(grid, starts, axis=axis)
    return grid
