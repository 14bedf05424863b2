"""A trial: one release of one data set by one mechanism at one epsilon, with the queries of every workload.

What it gives is how far the answers of the release are off, for every workload and metric.

Seeds follow from the bench's seed and their purpose, so that a trial gives the same result whenever and
wherever it runs, and whatever else runs. Queries depend on the workload and the run: all mechanisms get the
same queries, and are compared in pairs.
"""

from __future__ import annotations

import hashlib
import inspect
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from htf.curator.frequency import FrequencyMatrix
from htf.errors import HtfError
from htf.forecasts.counting import ExactCounter, answer_boxes
from htf.forecasts.places import DataSet
from htf.forecasts.workloads import Boxes, Workload, derive_seeds
from htf.frame.domain import FloatArray, IntArray
from htf.mechanisms import registry
from htf.publication import publish
from htf.release.release import Release
from htf_bench.datasets import fingerprint
from htf_bench.metrics import measure_errors, measure_maps
from htf_bench.specs import HEIGHT, ZERO, BenchSpec, traditional
from htf_bench.traditional import TRADITIONAL, Table
from htf_bench.workloads import WholeMap

FORMAT = "2"  # changes where results of the same trial would differ
BOXES = "boxes"  # of the release; told beside the errors
NO_WORKLOAD = ""


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


class Outcome(NamedTuple):
    """The result of a trial: errors as (workload, metric, value), or the reason why there are none."""

    trial: Trial
    values: tuple[tuple[str, str, float], ...] = ()
    seconds: float = 0.0  # of the release
    answering_seconds: float = 0.0
    total_seconds: float = 0.0
    failure: str = ""
    is_lasting: bool = True  # whether trying again would give the same


class Plan(NamedTuple):
    """A bench and its trials."""

    bench: Bench
    trials: tuple[Trial, ...]


def plan_trials(
    data_set: DataSet, pairs: Sequence[tuple[BenchSpec, str]], runs: int
) -> list[Trial]:
    """All pairs of mechanism and epsilon, run after run: an interrupted bench has whole runs."""
    distinct = list(dict.fromkeys(pairs))
    return [
        Trial(data_set, spec, epsilon, run) for run in range(runs) for spec, epsilon in distinct
    ]


def trial_key(bench: Bench, trial: Trial) -> str:
    """The same for trials with the same result. It covers the mechanism's own file, so that results of an
    older version of it are not taken for those of the present one."""
    words = (
        FORMAT,
        fingerprint(trial.data_set),
        trial.spec.mechanism,
        trial.spec.parameters_text,
        _source_of(trial.spec.mechanism),
        trial.epsilon,
        trial.run,
        bench,
    )
    return hashlib.sha256("\x1f".join(map(str, words)).encode()).hexdigest()[:32]


def run_trial(bench: Bench, trial: Trial) -> Outcome:
    """Never raises: a mechanism that fails is a result, and stops no other."""
    started = time.perf_counter()
    try:
        outcome = _measure(bench, trial, started)
    except HtfError as error:
        return Outcome(trial, failure=f"{type(error).__name__}: {error}")
    except Exception as error:
        return Outcome(trial, failure=_describe(error), is_lasting=False)
    return outcome


def _measure(bench: Bench, trial: Trial, started: float) -> Outcome:
    asked = draw_questions(bench, trial.data_set, trial.run)
    released = time.perf_counter()
    release = make_release(bench, trial)
    seconds = time.perf_counter() - released
    values: list[tuple[str, str, float]] = []
    answering = time.perf_counter()
    # All are asked at once, because one table serves them all.
    low, high = (np.concatenate([getattr(b, edge) for b, _ in asked]) for edge in ("low", "high"))
    ends = np.cumsum([len(boxes) for boxes, _ in asked])[:-1]
    answers = np.split(_answer(release, Boxes(low, high)), ends)
    answering_seconds = time.perf_counter() - answering
    records = int(load_once(trial.data_set).exact_counts.sum())
    for workload, (_, exact_counts), answer in zip(bench.workloads, asked, answers, strict=True):
        errors = measure_errors(exact_counts, answer, records)
        if isinstance(workload, WholeMap):
            shape = workload.grid_shape(trial.data_set.domain)
            errors |= measure_maps(exact_counts.reshape(shape), answer.reshape(shape))
        values += [(workload.text, metric, value) for metric, value in errors.items()]
    values += _facts(release)
    total = time.perf_counter() - started
    return Outcome(trial, tuple(values), seconds, answering_seconds, total)


def make_release(bench: Bench, trial: Trial) -> Release | Table | None:
    """A release with seeded noise, the same whenever the trial is made, which is never private; None if there is nothing
    to make. Of what statistical offices did before, a table."""
    name, spec = trial.data_set.name, trial.spec
    if spec.mechanism == ZERO:
        return None
    matrix, old = load_once(trial.data_set), traditional(spec)
    if old is not None:
        seeds = derive_seeds(bench.seed, "keys", name, spec.label, trial.run)
        return old.publish(matrix, np.random.default_rng(seeds))
    seeds = derive_seeds(bench.seed, "noise", name, spec.label, trial.epsilon, trial.run)
    state = seeds.generate_state(2, np.uint64)
    noise = f"seeded:{int(state[0]) << 64 | int(state[1])}"
    return publish(matrix, trial.epsilon, spec.make(), noise=noise)


def _answer(release: Release | Table | None, boxes: Boxes) -> FloatArray:
    if release is None:
        return np.zeros(len(boxes))
    return release.answer(boxes) if isinstance(release, Table) else answer_boxes(release, boxes)


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


def check_data(bench: Bench, data_set: DataSet) -> None:
    """Report errors in the data or the boxes now, not in every trial."""
    matrix = data_set.load()
    for workload in bench.workloads:
        workload.draw(matrix, 1, np.random.SeedSequence(0))


def _facts(release: Release | Table | None) -> list[tuple[str, str, float]]:
    if release is None or isinstance(release, Table):
        return []
    facts = [(NO_WORKLOAD, BOXES, float(len(release)))]
    height = release.facts.get(HEIGHT)
    if isinstance(height, int):
        facts.append((NO_WORKLOAD, HEIGHT, float(height)))
    return facts


@lru_cache(maxsize=256)
def _source_of(mechanism: str) -> str:
    if mechanism == ZERO:
        return ""
    kind = TRADITIONAL.get(mechanism) or registry()[mechanism]
    try:
        source = inspect.getsource(inspect.getmodule(kind) or kind)
    except OSError:  # installed without its source
        return ""
    return hashlib.sha256(source.encode()).hexdigest()


def _describe(error: Exception) -> str:
    """The kind and place of an error, but not its message, which might quote the data."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {frame.name}, line {frame.lineno} of {frame.filename}"
