"""Squares around records and anywhere, and the errors of a release in them: for benchmarks."""

from __future__ import annotations

import numpy as np

import htf
from htf.frame.domain import FloatArray, IntArray
from htf.query.kernels import ESTIMATE

PLACES = (2, 4, 8, 16, 32, 64)  # cells of 1024 along a side, around records
AREAS = (0.02, 0.06, 0.1)  # of the map's side, anywhere
SQUARES = 600
SMOOTHING = 20.0


def dense(matrix: htf.FrequencyMatrix) -> IntArray:
    counts = np.zeros(matrix.domain.shape, dtype=np.int64)
    counts[tuple(matrix.exact_coordinates)] = matrix.exact_counts
    return counts


def squares(counts: IntArray, generator: np.random.Generator) -> dict[str, IntArray]:
    """Boxes in cells: those around records, and those anywhere."""
    cells, flat = len(counts), counts.ravel()
    found = {}
    for side in PLACES:
        width = max(side * cells // 1024, 1)
        place = np.array(
            np.unravel_index(
                generator.choice(len(flat), SQUARES, p=flat / flat.sum()), counts.shape
            )
        ).T
        found[f"places-{side}"] = _boxes(place - width // 2, width, cells)
    for share in AREAS:
        width = max(round(share * cells), 1)
        place = generator.integers(0, cells - width + 1, (SQUARES, 2))
        found[f"{share:.0%}"] = _boxes(place, width, cells)
    return found


def _boxes(low: IntArray, width: int, cells: int) -> IntArray:
    low = np.clip(low, 0, cells - width)
    return np.hstack([low, low + width])


def errors(release: htf.Release, counts: IntArray, boxes: dict[str, IntArray]) -> FloatArray:
    """The relative error and the RMSE of each kind of box."""
    table = np.pad(counts, [(1, 0), (1, 0)]).cumsum(axis=0).cumsum(axis=1)
    rows = []
    for some in boxes.values():
        x0, y0, x1, y1 = some.T
        true = table[x1, y1] - table[x0, y1] - table[x1, y0] + table[x0, y0]
        low, high = some[:, :2].astype(float), some[:, 2:].astype(float)
        found = release.derived.index.measure(low, high)[:, ESTIMATE]
        error = np.abs(found - true)
        rows.append([np.mean(error / np.maximum(true, SMOOTHING)), np.sqrt(np.mean(error**2))])
    return np.array(rows)
