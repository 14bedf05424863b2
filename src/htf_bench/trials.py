"""What a trial of the bench gives: how far the answers of one release are off, for every workload and metric."""

from __future__ import annotations

import hashlib
import inspect
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from htf.errors import HtfError
from htf.forecasts.counting import answer_boxes
from htf.forecasts.places import DataSet
from htf.forecasts.workloads import Boxes, derive_seeds
from htf.frame.domain import FloatArray
from htf.mechanisms import registry
from htf.release.release import Release
from htf_bench import bench as benches
from htf_bench.bench import Bench, Trial, answer_all, draw_questions, load_once
from htf_bench.datasets import fingerprint
from htf_bench.map_metrics import measure_maps
from htf_bench.metrics import measure_errors
from htf_bench.specs import HEIGHT, ZERO, BenchSpec, traditional
from htf_bench.traditional import TRADITIONAL, Table
from htf_bench.workloads import WholeMap

FORMAT = "2"  # changes where results of the same trial would differ
BOXES = "boxes"  # of the release; told beside the errors
NO_WORKLOAD = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a trial: errors as (workload, metric, value), or the reason why there are none."""

    trial: Trial
    values: tuple[tuple[str, str, float], ...] = ()
    seconds: float = 0.0  # of the release
    answering_seconds: float = 0.0
    total_seconds: float = 0.0
    failure: str = ""
    is_lasting: bool = True  # whether trying again would give the same


@dataclass(frozen=True)
class Plan:
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
    answers = answer_all(partial(_answer, release), [boxes for boxes, _ in asked])
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
    """A release; None if there is nothing to make. Of what statistical offices did before, a table."""
    if trial.spec.mechanism == ZERO:
        return None
    old = traditional(trial.spec)
    if old is None:
        return benches.make_release(bench, trial)
    words = (trial.data_set.name, trial.spec.label, trial.run)
    seeds = derive_seeds(bench.seed, "keys", *words)
    return old.publish(load_once(trial.data_set), np.random.default_rng(seeds))


def _answer(release: Release | Table | None, boxes: Boxes) -> FloatArray:
    if release is None:
        return np.zeros(len(boxes))
    return release.answer(boxes) if isinstance(release, Table) else answer_boxes(release, boxes)


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
