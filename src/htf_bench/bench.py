"""A trial: one release of one data set by one mechanism at one epsilon, with the queries of every workload.

Seeds follow from the bench's seed and their purpose, so that a trial gives the same result whenever and
wherever it runs, and whatever else runs. Queries depend on the workload and the run: all mechanisms get the
same queries, and are compared in pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from htf.curator.frequency import FrequencyMatrix
from htf.forecasts.counting import ExactCounter
from htf.forecasts.places import DataSet
from htf.forecasts.workloads import Boxes, Workload, derive_seeds
from htf.frame.domain import FloatArray, IntArray
from htf.publication import publish
from htf.release.release import Release
from htf_bench.specs import BenchSpec


@dataclass(frozen=True, slots=True)
class Bench:
    """The settings that all trials of a run share."""

    workloads: tuple[Workload, ...]
    queries: int
    seed: int


@dataclass(frozen=True)
class Trial:
    """One release to make and to judge, or what stands in its place."""

    data_set: DataSet
    spec: BenchSpec
    epsilon: str
    run: int


def make_release(bench: Bench, trial: Trial) -> Release:
    """A release with seeded noise, the same whenever the trial is made, which is never private."""
    words = (trial.data_set.name, trial.spec.label, trial.epsilon, trial.run)
    state = derive_seeds(bench.seed, "noise", *words).generate_state(2, np.uint64)
    noise = f"seeded:{int(state[0]) << 64 | int(state[1])}"
    return publish(load_once(trial.data_set), trial.epsilon, trial.spec.make(), noise=noise)


def answer_all(answer: Callable[[Boxes], FloatArray], asked: list[Boxes]) -> list[FloatArray]:
    """The answers to each workload; all are asked at once, because one table serves them all."""
    low, high = (np.concatenate([getattr(b, edge) for b in asked]) for edge in ("low", "high"))
    return np.split(answer(Boxes(low, high)), np.cumsum([len(boxes) for boxes in asked])[:-1])


@lru_cache(maxsize=1)  # trials come one data set after another
def load_once(data_set: DataSet) -> FrequencyMatrix:
    return data_set.load()


@lru_cache(maxsize=1)
def _counter(data_set: DataSet) -> ExactCounter:
    return ExactCounter(load_once(data_set))


@lru_cache(maxsize=2)  # two runs, since processes do not end together
def draw_questions(bench: Bench, data_set: DataSet, run: int) -> list[tuple[Boxes, IntArray]]:
    """The boxes of each workload and their true counts."""
    matrix, counter = load_once(data_set), _counter(data_set)
    drawn = [
        workload.draw(
            matrix, bench.queries, derive_seeds(bench.seed, "queries", workload.text, run)
        )
        for workload in bench.workloads
    ]
    return [(boxes, counter.count(boxes)) for boxes in drawn]
