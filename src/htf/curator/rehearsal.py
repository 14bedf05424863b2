"""Loads every compiled loop of the curator before anything is charged.

A loop is compiled, or read from disk, when it is first called. If that failed after the charge, the epsilon
would be lost. So the curator first answers one small measurement of each kind on invented records.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np

from htf.curator.agreeing import AgreeingCounts
from htf.curator.cells import SWEEP_FROM, ExactCells
from htf.curator.curve_measurements import LeastCostBuckets, WeightedRuns
from htf.curator.frequency import FrequencyMatrix
from htf.curator.looks import CountLooks, RefinedCounts
from htf.curator.measurements import (
    CountRegions,
    LinearQueries,
    Measurement,
    MedianCuts,
    PrivTreeSplits,
    ScoreSplits,
    joint,
)
from htf.curator.noise import ScriptedNoise
from htf.errors import InputError
from htf.frame.domain import Domain
from htf.frame.tree import RegionTree
from htf.privacy.epsilon import Epsilon

WIDTH = SWEEP_FROM + 4  # cells along each axis: enough cuts for a sweep, and to spare


@cache
def load_loops() -> None:
    """Load the loops once in each process; a forked child has those of its parent."""
    try:
        from htf.curator import kernels

        for measurement, cells in rehearsal():
            measurement.answer(cells, ScriptedNoise())
        # Needed once in a billion medians, where floats leave a doubt.
        along, counts = np.arange(2, dtype=np.int32), np.ones(2, dtype=np.int64)
        kernels.median_runs(along, counts, np.int64(0), np.int64(4))
    except Exception as error:
        raise InputError(
            f"the compiled loops of the curator cannot be loaded ({type(error).__name__}: {error}). Nothing "
            "was charged. Check the installation of numba and numpy"
        ) from error


def rehearsal() -> Iterator[tuple[Measurement, ExactCells]]:
    """One question of each kind that the curator answers, on maps of their own, for PrivTree grows its tree."""
    one, two = np.full(1, Epsilon.of(1).units), np.full(2, Epsilon.of(1).units)
    edges = (np.arange(0, WIDTH + 1, 2),) * 2
    curve = (*joint(Epsilon.of(1)), edges, np.arange((WIDTH // 2) ** 2))
    factors = (np.eye(WIDTH // 2, dtype=np.int64),) * 2
    halves, axes = np.array([1, 2]), np.array([1, 1])
    many = np.arange(1, SWEEP_FROM + 1)
    root = np.zeros_like(many)
    for measurement in (
        CountRegions("count", halves, two),
        AgreeingCounts("agreeing", np.arange(3), np.repeat(one, 3)),
        CountLooks("look", halves, two, 2 * two),
        ScoreSplits("score", halves, two, axes, np.array([3, 4])),
        ScoreSplits("sweep", root, np.repeat(one, len(many)), root, many),
        MedianCuts("median", halves, two, axes),
        PrivTreeSplits("privtree", np.zeros(1, dtype=np.int64), one, ((0, 1),), 0),
        LinearQueries("linear", *joint(Epsilon.of(1)), factors, edges),
        LeastCostBuckets("buckets", *curve, 1),
        WeightedRuns("runs", *curve, np.array([0, 5]), np.array([5, 9]), np.array([1, 1])),
    ):
        tree = RegionTree((WIDTH, WIDTH))
        if not isinstance(measurement, PrivTreeSplits):
            tree.split(np.array([0]), np.array([0]), np.array([WIDTH // 2]))
        measurement.check(tree)
        cells = ExactCells(_invented_records(), tree)
        yield measurement, cells
        if isinstance(measurement, CountLooks):  # which was answered by now
            yield RefinedCounts("refined", halves, two), cells


def _invented_records() -> FrequencyMatrix:
    """A few in every cell."""
    counts = np.arange(WIDTH * WIDTH).reshape(WIDTH, WIDTH) % 5
    return FrequencyMatrix.from_dense(Domain.square(0, 0, 1, cells=WIDTH), counts)
