"""`Series.add`, killed at every step, and then taken up again.

Whatever is left must be sound: taken up again, the period is released once, was charged once, and `htf verify` finds the
series whole. A child forks for each case and dies at its n-th statement to the budget file, draw of noise, sync or move
of a file. At which step it dies is repeatable.
"""

from __future__ import annotations

import functools
import os
import shutil
import signal
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

import htf
from htf.curator.noise import FastNoise
from htf.series.verification import verify_series
from reliability.sandbox import Tally

MOST_STEPS = 2000
DOMAIN = htf.Domain.from_bounds(0, 0, 1, 1, cells=8)
# The unit, and whether it is a correction that is killed.
SCENARIOS = {
    f"{unit}, {'correction' if correct else 'first'}": (unit, correct)
    for unit in ("record", "person")
    for correct in (False, True)
}
# The same where the place of the release was taken when it was done, so that it is saved elsewhere.
IN_THE_WAY = b"something that came here meanwhile"
SPARE_SCENARIOS = {"record, saved elsewhere": "record", "person, saved elsewhere": "person"}


class Steps:
    """Counts steps of this process, and dies at one of them."""

    def __init__(self) -> None:
        self.left = 0

    def take(self) -> None:
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def watched(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(*arguments: Any, **options: Any) -> Any:
            self.take()
            return function(*arguments, **options)

        return wrapper


def counts_of(unit: str, month: int) -> htf.FrequencyMatrix:
    places = np.random.default_rng(month).random((2, 200))
    if unit == "record":
        return htf.read_points(list(places), DOMAIN)
    people = {"lon": places[0], "lat": places[1], "who": np.arange(200) % 40}
    return htf.read_points(people, DOMAIN, ["lon", "lat"], user="who")


def campaign(scale: float, seed: int, folder: Path) -> list[Tally]:
    """Each so-many-th step, from one that the seed chooses on."""
    memory = Path("/dev/shm")  # syncs are quick there
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else folder) as name:
        return _campaign(scale, seed, Path(name))


def _campaign(scale: float, seed: int, folder: Path) -> list[Tally]:
    every = max(round(1 / scale), 1)
    tallies = []
    for name, (unit, correct) in SCENARIOS.items():
        tally = Tally(f"series, killed: {name}")
        made = _make(folder / name.replace(", ", "-"), unit, correct)
        for step in range(1 + seed % every, MOST_STEPS, every):
            case = made.with_name(f"{made.name}-{step}")
            shutil.copytree(made, case)
            died = _killed(case, unit, correct, step)
            tally.add("killed" if died else "done", _finding(case, unit, correct, step))
            shutil.rmtree(case)
            if not died:
                break
        tallies.append(tally)
    return [*tallies, *(_saved_elsewhere(name, folder, every, seed) for name in SPARE_SCENARIOS)]


def _saved_elsewhere(name: str, folder: Path, every: int, seed: int) -> Tally:
    """Killed at every step, with a release that is saved beside its place. Once a spare file is there, it is the release."""
    tally, unit = Tally(f"series, killed: {name}"), SPARE_SCENARIOS[name]
    made = _make(folder / name.replace(", ", "-").replace(" ", "-"), unit, False)
    for step in range(1 + seed % every, MOST_STEPS, every):
        case = made.with_name(f"{made.name}-{step}")
        shutil.copytree(made, case)
        died = _killed(case, unit, False, step, in_the_way=True)
        spares = [one.read_bytes() for one in case.glob("release-*.parquet")]
        (case / "2026-02.parquet").unlink(missing_ok=True)  # the curator moves it away
        entries = [one for account in htf.Series(case).accounts() for one in account.entries]
        is_published = any(one.label == "2026-02" and one.state == "published" for one in entries)
        if is_published:  # only its place is missing, and the message names the command
            htf.Series(case).adopt(next(case.glob("release-*.parquet")))
        wrong = _finding(case, unit, False, step)
        if not wrong and spares and spares != [(case / "2026-02.parquet").read_bytes()]:
            wrong = f"step {step}: a second release of one charge"
        tally.add("killed" if died else "done", wrong)
        shutil.rmtree(case)
        if not died:
            break
    return tally


def _make(folder: Path, unit: str, correct: bool) -> Path:
    """A series of one month, or of two if the second is to be corrected."""
    recipe = htf.Recipe(domain=DOMAIN, user=None if unit == "record" else "who", epsilon="0.5")
    series = htf.Series.create(folder, recipe, "month", releases=4, total=4)
    for month in (1, 2) if correct else (1,):
        series.add(counts_of(unit, month), f"2026-0{month}", noise="fast")
    return folder


def _killed(folder: Path, unit: str, correct: bool, step: int, *, in_the_way: bool = False) -> bool:
    """Whether the child died at that step. If it had no so many steps, it finished."""
    matrix = counts_of(unit, 2)
    child = os.fork()
    if child == 0:
        steps = Steps()

        class Connection(sqlite3.Connection):
            execute = steps.watched(sqlite3.Connection.execute)

        class Noise(FastNoise):
            def draw(self, *arguments: Any) -> Any:
                return steps.watched(super().draw)(*arguments)

        connect = functools.partial(sqlite3.connect, factory=Connection)
        sqlite3.connect = connect  # type: ignore[assignment]
        os.fsync, os.replace = steps.watched(os.fsync), steps.watched(os.replace)
        os.link = steps.watched(os.link)
        steps.left = step
        try:
            if in_the_way:
                _add_elsewhere(folder, matrix, Noise())
            else:
                htf.Series(folder).add(matrix, "2026-02", noise=Noise(), correct=correct)
            os._exit(0)
        except BaseException:
            os._exit(7)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code not in (0, -signal.SIGKILL):
        raise RuntimeError(f"the child left with {code}")
    return code != 0


def _add_elsewhere(folder: Path, matrix: htf.FrequencyMatrix, noise: FastNoise) -> None:
    """As `htf series add` does it, where something is in the place of the release once it has been made."""
    from htf.cli.making import Run, _save
    from htf.errors import OutputError

    series = htf.Series(folder)
    with series.adding("2026-02") as addition:
        assert not isinstance(addition, htf.Release)
        made = series.fill(addition, matrix).make(budget=addition.budget, noise=noise)
        addition.output.write_bytes(IN_THE_WAY)
        run = Run(addition.output, overwrite=False, budget=addition.budget)
        with suppress(OutputError):
            _save(run, made)


def _finding(folder: Path, unit: str, correct: bool, step: int) -> str:
    """What is wrong after the release was taken up again."""
    number, label = (2, "2026-02.2") if correct else (1, "2026-02")
    series = htf.Series(folder)
    entries = [one for account in series.accounts() for one in account.entries]
    charged = [one for one in entries if one.label == label]
    there = (folder / f"{label}.parquet").exists()
    published = bool(charged) and charged[0].state == "published"
    if there and not charged:
        return f"step {step}: a release that was not charged"
    if not published:
        again = {"correct": correct, "resume": bool(charged)}
        series.add(counts_of(unit, 2), "2026-02", noise="fast", **again)
    after = [one for account in series.accounts() for one in account.entries if one.label == label]
    wrong = [f"{len(after)} charges"] if len(after) != 1 else []
    wrong += [
        f"{check.name}: {check.finding}" for check in verify_series(folder) if not check.passed
    ]
    if [one.number for one in series.released if one.period.name == "2026-02"][-1] != number:
        wrong.append("another number of releases")
    return f"step {step}: {'; '.join(wrong)}" if wrong else ""
