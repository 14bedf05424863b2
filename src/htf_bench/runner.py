"""Runs the trials of a plan in separate processes, stores finished ones, and resumes after a stop."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from htf_bench.results import Results, Store, finished_trials, read_results
from htf_bench.specs import BenchSpec
from htf_bench.trials import Bench, Outcome, Plan, Trial, run_trial, trial_key

# One thread a process: processes are what runs side by side, times are comparable, and sums of
# floats do not depend on how many threads a library finds.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
TYPICAL_SECONDS = 0.4  # of a trial, before any has been timed


class Progress(NamedTuple):
    """How far a bench is."""

    done: int
    total: int
    seconds_left: float
    latest: str


class Estimate:
    """The time left: what is still to do, each at the mean time of its like."""

    def __init__(self, trials: Sequence[Trial], jobs: int) -> None:
        self._jobs, self._left = jobs, Counter(trial.spec for trial in trials)
        self._times: dict[BenchSpec, list[float]] = {}

    def finish(self, outcome: Outcome) -> None:
        spec = outcome.trial.spec
        self._left[spec] -= 1
        self._times.setdefault(spec, []).append(outcome.seconds + outcome.answering_seconds)

    @property
    def seconds_left(self) -> float:
        known = {spec: fmean(times) for spec, times in self._times.items()}
        usual = fmean(known.values()) if known else TYPICAL_SECONDS
        return sum(n * known.get(spec, usual) for spec, n in self._left.items()) / self._jobs


def trials_to_do(plan: Plan, folder: Path) -> list[Trial]:
    """The trials that have no result in the folder yet."""
    finished = finished_trials(Store(folder).read())
    return [trial for trial in plan.trials if trial_key(plan.bench, trial) not in finished]


def run_plan(
    plan: Plan, folder: Path, jobs: int = 1, tell: Callable[[Progress], None] = lambda _: None
) -> Results:
    """Run what is not finished, and write and return the results of the whole plan."""
    store = Store(folder)
    trials = trials_to_do(plan, folder)
    passing = []  # failures that another time may not bring: told, not kept
    estimate, done = Estimate(trials, jobs), len(plan.trials) - len(trials)
    try:
        for outcome in run_trials(plan.bench, trials, jobs):
            if outcome.is_lasting:
                store.add(plan.bench, outcome)
            else:
                passing.append(outcome)
            estimate.finish(outcome)
            done += 1
            trial = outcome.trial
            latest = f"{trial.data_set.name}: {trial.spec.label}, epsilon {trial.epsilon}"
            tell(Progress(done, len(plan.trials), estimate.seconds_left, latest))
    finally:
        store.flush()
    results = read_results(plan, store.read(), passing)
    results.write(folder)
    return results


def run_trials(bench: Bench, trials: Sequence[Trial], jobs: int) -> Iterator[Outcome]:
    """The outcomes as they come. A process that dies takes down only the trial it was at."""
    waiting = deque(trials)
    while waiting:
        flying: dict[Future[Outcome], Trial] = {}
        try:
            with _workers(jobs) as pool:
                while waiting or flying:
                    while waiting and len(flying) < 2 * jobs:
                        # A pool that is broken refuses it: then it waits for the next pool.
                        flying[pool.submit(run_trial, bench, waiting[0])] = waiting[0]
                        waiting.popleft()
                    done, _ = wait(flying, return_when=FIRST_COMPLETED)
                    for future in done:
                        outcome = future.result()
                        del flying[future]
                        yield outcome
        except BrokenProcessPool:
            for trial in flying.values():
                yield _run_alone(bench, trial)


def _run_alone(bench: Bench, trial: Trial) -> Outcome:
    """Run a trial in its own process, so that it is clear which trial ends it."""
    try:
        with _workers(1) as pool:
            return pool.submit(run_trial, bench, trial).result()
    except BrokenProcessPool:
        reason = "the process ended: was there too little memory?"
        return Outcome(trial, failure=reason, is_lasting=False)


@contextmanager
def _workers(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Fresh processes, that hold the data set they are at. They finish the trial under way."""
    before = {name: os.environ[name] for name in THREAD_VARIABLES if name in os.environ}
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    fresh = multiprocessing.get_context("spawn")  # forking a process with threads may hang
    pool = ProcessPoolExecutor(jobs, mp_context=fresh, initializer=_start_worker)
    try:
        yield pool
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        for name in THREAD_VARIABLES:
            del os.environ[name]
        os.environ.update(before)


def _start_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process is the one to be interrupted
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End with the parent: if it is killed it cannot say so, and its workers would wait for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
