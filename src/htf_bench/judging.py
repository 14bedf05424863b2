"""Compares two mechanisms on one data set.

Both answer the same queries, so they are compared run by run: by the ratio of their errors, with a 95 %
interval for its geometric mean. One wins if the interval excludes 1; else it is a tie. A tree whose height
the user must choose is taken at the height with the least mean error.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from htf.forecasts.accuracy import show_number, show_value
from htf.forecasts.places import DataSet
from htf.frame.domain import FloatArray
from htf_bench.metrics import MRE
from htf_bench.paper import HTF, HTF_LOW, RANDOM, Design
from htf_bench.results import Results
from htf_bench.specs import HEIGHT, BenchSpec
from htf_bench.trials import NO_WORKLOAD

HELD, IN_PART, NOT_HELD = "held", "held in part", "did not hold"
UNDECIDED, UNKNOWN = "undecided", "not measured"
# Student's t for 95 % and 1, 2, … degrees of freedom.
STUDENT = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23)
Spec = BenchSpec | None


class Finding(NamedTuple):
    """The verdict of one data set on a claim."""

    data_set: str
    verdict: str
    measured: str


class Comparison(NamedTuple):
    """Two errors under one setting, and their ratio with its 95 % interval."""

    setting: str
    ours: str
    theirs: str
    ratio: float
    low: float
    high: float

    @property
    def won(self) -> bool:
        return self.high < 1

    @property
    def lost(self) -> bool:
        return self.low > 1

    def __str__(self) -> str:
        interval = f"{show_number(self.low)} to {show_number(self.high)}"
        return (
            f"{self.setting}: {self.ours} against {self.theirs} %, "
            f"ratio {show_number(self.ratio)} ({interval})"
        )


class Judge:
    """One data set's results, with the questions that claims ask of them."""

    def __init__(self, source: DataSet, design: Design, results: Results) -> None:
        self.source, self.data_set, self.results = source, source.name, results
        self.lineup = design.lineups[source.name]
        self.epsilons, self.grid_epsilons = design.scale.epsilons, design.scale.grid_epsilons

    @property
    def ours(self) -> Spec:
        """HTF at its own height."""
        return self.lineup.singles.get(HTF)

    def mean(self, spec: Spec, epsilon: str, workload: str = RANDOM, metric: str = MRE) -> float:
        """The mean error; NaN if there are no results."""
        found = self.results.values(self.data_set, spec, epsilon, workload, metric)
        return float(found.mean()) if len(found) else math.nan

    def best(
        self, labels: Iterable[str], epsilon: str, workload: str
    ) -> tuple[str, BenchSpec] | None:
        """The best of several methods, trees over all heights, with a name for it."""
        options: dict[BenchSpec, str] = {}
        for label in labels:
            if label in self.lineup.ladders and label not in (HTF, HTF_LOW):
                ladder = self.lineup.ladders[label]
                options |= {spec: f"{label} at height {h}" for h, spec in ladder.items()}
            elif label in self.lineup.singles:
                options[self.lineup.singles[label]] = label
        found = self.results.best(self.data_set, options, epsilon, workload)
        return None if found is None else (options[found], found)

    def compare(
        self, ours: Spec, theirs: Spec, epsilon: str, workload: str, setting: str
    ) -> Comparison | None:
        mine = self.results.by_run(self.data_set, ours, epsilon, workload)
        other = self.results.by_run(self.data_set, theirs, epsilon, workload)
        pairs = common_runs(mine, other)
        if pairs is None:
            return None
        (a, b), (ratio, low, high) = pairs, ratio_interval(*pairs)
        return Comparison(setting, show_value(a), show_value(b), ratio, low, high)

    def means(self, label: str, epsilon: str) -> dict[int, float]:
        """The mean errors of the trees of a ladder, by height, for random queries."""
        ladder = self.lineup.ladders.get(label, {})
        found = {height: self.mean(spec, epsilon) for height, spec in ladder.items()}
        return {height: mean for height, mean in found.items() if not math.isnan(mean)}

    def own_height(self, epsilon: str) -> float:
        """The height that HTF chose, a mean over the runs."""
        return self.mean(self.ours, epsilon, NO_WORKLOAD, HEIGHT)

    def finding(self, verdict: str, measured: str) -> Finding:
        return Finding(self.data_set, verdict, measured)

    def weigh(self, comparisons: Iterable[Comparison | None]) -> Finding:
        """Held where every setting was won; undecided where none was won or lost."""
        found = [comparison for comparison in comparisons if comparison is not None]
        if not found:
            return self.finding(UNKNOWN, "no results")
        won, lost = sum(c.won for c in found), sum(c.lost for c in found)
        verdict = _verdict(won, lost, len(found))
        found.sort(key=lambda c: c.ratio)
        text = f"won {won}, tied {len(found) - won - lost}, lost {lost}. "
        if len(found) == 1:
            return self.finding(verdict, text + str(found[0]))
        return self.finding(verdict, f"{text}Best: {found[0]}. Worst: {found[-1]}")

    def tally(self, checks: Iterable[tuple[bool, str]]) -> Finding:
        """Held where every check passed; in part where some did."""
        found = list(checks)
        if not found:
            return self.finding(UNKNOWN, "no results")
        passed = sum(is_passed for is_passed, _ in found)
        verdict = HELD if passed == len(found) else IN_PART if passed else NOT_HELD
        texts = "; ".join(text for _, text in found)
        return self.finding(verdict, f"{passed} of {len(found)}. {texts}")


def _verdict(won: int, lost: int, settings: int) -> str:
    if won == settings:
        return HELD
    if won == lost == 0:
        return UNDECIDED
    return NOT_HELD if lost > won else IN_PART


def common_runs(
    ours: Mapping[int, float], theirs: Mapping[int, float]
) -> tuple[FloatArray, FloatArray] | None:
    """The values of both in the runs that both finished; None if there are none."""
    runs = sorted(ours.keys() & theirs.keys())
    if not runs:
        return None
    return np.array([ours[run] for run in runs]), np.array([theirs[run] for run in runs])


def ratio_interval(ours: FloatArray, theirs: FloatArray) -> tuple[float, float, float]:
    """The geometric mean of the ratios, run by run, and its 95 % interval by Student's t."""
    tiny = 1e-12
    logs = np.log(np.maximum(ours, tiny)) - np.log(np.maximum(theirs, tiny))
    mean = float(logs.mean())
    if len(logs) < 2:
        return math.exp(mean), 0.0, math.inf
    quantile = STUDENT[min(len(logs) - 2, len(STUDENT) - 1)]
    half = min(quantile * float(logs.std(ddof=1)) / math.sqrt(len(logs)), 100.0)
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)
