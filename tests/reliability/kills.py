"""`htf release --budget`, killed at every call on a file, and at times drawn at random.

Whatever is left must be sound: the budget file can be read and charged, no charge that was told is lost, a
release is there whole or not at all, and none is there that was not charged. At which call it dies is
repeatable. What a process had come to after so many milliseconds is not: the clock decides.
"""

from __future__ import annotations

import random
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from reliability.faults import NEVER, SCENARIOS, Worker, findings, started_worker, try_faults
from reliability.sandbox import Tally

RANDOM_KILLS = 300  # at scale 1, of each scenario
MODE = "SIGKILL"


def campaign(scale: float, seed: int, folder: Path) -> list[Tally]:
    del folder  # the worker has one of its own, in memory
    every = max(round(1 / scale), 1)
    numbers = range(1 + seed % every, NEVER, every)

    def of_scenario(scenario: str) -> list[Tally]:
        at_calls, at_times = Tally("kills, at a call on a file"), Tally("kills, at a random time")
        with started_worker(scenario) as worker:
            at_calls.take(*try_faults(worker, scenario, MODE, numbers))
            _kill_at_times(worker, scenario, max(int(RANDOM_KILLS * scale), 5), seed, at_times)
        return [at_calls, at_times]

    with ThreadPoolExecutor(len(SCENARIOS)) as pool:
        return Tally.joined(pool.map(of_scenario, SCENARIOS))


def _kill_at_times(worker: Worker, scenario: str, number: int, seed: int, tally: Tally) -> None:
    started = time.monotonic()
    shutil.rmtree(worker.run(scenario, MODE, NEVER).folder)
    longest, chance = time.monotonic() - started, random.Random(seed)
    for _ in range(number):
        case = worker.run(scenario, MODE, NEVER, after=chance.uniform(0, longest))
        wrong = "; ".join(findings(case))
        tally.add(f"exit {case.code}", f"{case.name}: {wrong}\n{case.said}" if wrong else "")
        shutil.rmtree(case.folder)
