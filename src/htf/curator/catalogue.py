"""The closed set of measurements, in the order of `htf.release.kinds`, which files store."""

from __future__ import annotations

from htf.curator.agreeing import AgreeingCounts
from htf.curator.curve_measurements import LeastCostBuckets, WeightedRuns
from htf.curator.looks import CountLooks, RefinedCounts
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
    AgreeingCounts,
    CountLooks,
    RefinedCounts,
)
