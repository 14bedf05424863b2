"""The closed set of measurements. Their order is stored in files: append only."""

from __future__ import annotations

from htf.curator.hilbert import LeastCostBuckets, WeightedRuns
from htf.curator.measurements import (
    CountRegions,
    LinearQueries,
    Measurement,
    MedianCuts,
    PrivTreeSplits,
    ScoreSplits,
)

MEASUREMENTS: tuple[type[Measurement], ...] = (
    CountRegions,
    ScoreSplits,
    MedianCuts,
    PrivTreeSplits,
    LinearQueries,
    LeastCostBuckets,
    WeightedRuns,
)
KINDS = tuple(measurement.kind for measurement in MEASUREMENTS)
