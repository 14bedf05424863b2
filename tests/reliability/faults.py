"""Injected faults: the n-th read, write, sync, rename or removal of `htf release --budget` fails.

After each, the exit code, what was said, the budget file and the output must agree. A shim between Python
and the C library (`faults.c`, compiled with cc) makes calls on files below one folder fail with EIO or
ENOSPC, once or from then on, or kills the process there. A worker has imported everything and forks for
each case, so a case takes a fraction of a second.

`campaign` tries every call, or each so-many-th, with every error; kills.py does the same with kills.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import importlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reliability.sandbox import Tally

READS, WRITES = 1, 2
NEVER = 2**40  # no command makes so many calls
KILL = -1
SPARE = re.compile(r"[^ ]*release-[0-9a-f]{8}\.parquet")


@dataclass(frozen=True, slots=True)
class Mode:
    """What happens at the n-th call of these kinds."""

    error: int
    kinds: int = READS | WRITES
    from_then_on: bool = False


MODES = {
    "EIO": Mode(errno.EIO),
    "EIO from then on": Mode(errno.EIO, from_then_on=True),
    "ENOSPC": Mode(errno.ENOSPC, WRITES),
    "ENOSPC from then on": Mode(errno.ENOSPC, WRITES, from_then_on=True),
    "SIGKILL": Mode(KILL),
}
MAP = ("--bounds", "0,0,1,1", "--cells", "16", "--mechanism", "ug", "--noise", "fast")
# The last is charged three times: for the limit, for the activity and for the map.
SCENARIOS = {
    "records": ("--epsilon", "0.6"),
    "people": ("--epsilon", "0.6", "--user", "who"),
    "limited": ("--epsilon", "0.6", "--user", "who", "--max-records", "auto"),
}


@dataclass(frozen=True, slots=True)
class Case:
    """One run of the command, and what it left behind."""

    scenario: str
    mode: str
    number: int
    fired: str  # the call that failed first; nothing if there were not so many
    calls: int  # how many of these kinds it made; 0 if it was killed
    code: int
    said: str
    folder: Path

    @property
    def name(self) -> str:
        return f"{self.scenario}, {self.mode} at call {self.number} ({self.fired})"


def build_shim(folder: Path) -> Path:
    """The compiled shim. Raises FileNotFoundError where there is no compiler."""
    source, shim = Path(__file__).with_suffix(".c"), folder / "faults.so"
    command = ["cc", "-O1", "-shared", "-fPIC", "-o", str(shim), str(source), "-ldl"]
    subprocess.run(command, check=True)
    return shim


class Worker:
    """Runs cases, each in a process of its own with the fault armed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._made = 0
        _make_inputs(folder / "inputs")
        pipe = subprocess.PIPE
        tests = Path(__file__).resolve().parent.parent
        paths = [str(tests), str(tests.parent / "src"), os.environ.get("PYTHONPATH", "")]
        command = [sys.executable, "-m", "reliability.faults"]
        environment = {
            **os.environ,
            "LD_PRELOAD": str(build_shim(folder)),
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        }
        self._process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, text=True, env=environment
        )

    def run(self, scenario: str, mode: str, number: int, after: float | None = None) -> Case:
        """The fault comes at a call of this number; or a kill `after` so many seconds."""
        self._made += 1
        folder = self.folder / f"case{self._made}"
        shutil.copytree(self.folder / "inputs" / scenario, folder)
        output = ["--budget", "budget.sqlite", "--dataset", "pings", "-o", "out.parquet"]
        words = ["release", "points.csv", *MAP, *SCENARIOS[scenario], *output]
        files = ("points.csv", "budget.sqlite", "out.parquet")
        arguments = [str(folder / word) if word in files else word for word in words]
        order = {"folder": str(folder), "number": number, "arguments": arguments, "mode": mode}
        order["after"] = after
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(order), file=self._process.stdin, flush=True)
        told = json.loads(self._process.stdout.readline())
        return Case(scenario, mode, number, folder=folder, **told)

    def close(self) -> None:
        self._process.communicate()


@contextmanager
def started_worker(*scenarios: str) -> Iterator[Worker]:
    """Warm: a case of each scenario was run to its end, so that the worker has imported what they need."""
    memory = Path("/dev/shm")  # syncs are quick there
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        worker = Worker(Path(name))
        try:
            for scenario in scenarios:
                shutil.rmtree(worker.run(scenario, "EIO", NEVER).folder)
            yield worker
        finally:
            worker.close()


def try_faults(
    worker: Worker, scenario: str, mode: str, numbers: Sequence[int]
) -> tuple[Counter[str], list[str]]:
    """These calls, until there are no more. How they ended, and what was wrong."""
    ends, wrong = Counter[str](), []
    for number in numbers:
        case = worker.run(scenario, mode, number)
        fired = bool(case.fired) or case.code == -signal.SIGKILL
        if fired:
            ends[f"exit {case.code}"] += 1
        wrong += [f"{case.name}: {finding}\n{case.said}" for finding in findings(case)]
        _find_output(case).unlink(missing_ok=True)  # which may be elsewhere
        shutil.rmtree(case.folder)
        if not fired:
            break
    return ends, wrong


def findings(case: Case) -> list[str]:
    """Where the exit code, the messages, the budget and the output do not agree."""
    from htf.errors import InputError
    from htf.privacy.apart import ToldApart
    from htf.privacy.budget import BudgetFile
    from htf.release.release import Release

    output = _find_output(case)
    budget = BudgetFile(case.folder / "budget.sqlite", "pings")
    account = budget.account()  # sound, in any case
    entries = account.entries
    written = output.exists()
    wrong = []
    # The output, or a spare one where that failed, in its folder or elsewhere.
    files = sorted({*case.folder.glob("[!.]*.parquet"), *([output] if written else [])})
    for file in files:
        try:
            if Release.load(file).epsilon > account.spent:
                wrong.append("more was released than charged")
        except InputError as error:
            wrong.append(f"half a file: {error}")
    digests = {hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
    published = [entry for entry in entries if entry.state == "published"]
    if any(entry.sha256 not in digests for entry in published):
        wrong.append("what is published is not there")
    if case.code == -signal.SIGKILL:
        told = _told_entries(case)
        wrong += [f"entry {id_} is told and lost" for id_ in told if id_ not in _ids(entries)]
        kept = account.told_apart
        apart = None if kept is None else ToldApart(**json.loads(kept))
        budget.charge("0.1", "ug", unit=account.unit, told_apart=apart)  # nothing is left locked
        return wrong
    asked = (case.folder / "out.parquet").exists()  # elsewhere is not where it was asked for
    done = asked and bool(entries) and published == list(entries)
    if case.code not in (0, 2):
        wrong.append(f"exit {case.code}")
    if (case.code == 0) != done:
        wrong.append(f"exit {case.code}, and {'all' if done else 'not all'} is done")
    if any(file.name not in case.said for file in files if file != output):
        wrong.append("a spare release is there, and not told")
    if "a bug in HTF" in case.said or "Traceback" in case.said:
        wrong.append("a bug in HTF")
    if written != any(words in case.said for words in ("Wrote ", "was written", "is complete, as")):
        wrong.append(f"the release is {'' if written else 'not '}there, and the message differs")
    return wrong + _about_charges(case, _ids(entries))


def _ids(entries: Sequence[Any]) -> list[str]:
    return [entry.id for entry in entries]


def _told_entries(case: Case) -> list[str]:
    words = case.said.replace(",", " ").replace(":", " ").replace(".", " ").split()
    return [words[place + 1] for place, word in enumerate(words[:-1]) if word == "entry"]


def _find_output(case: Case) -> Path:
    """Where it was asked for; or elsewhere, as the message says."""
    spare = SPARE.search(case.said)
    output = case.folder / "out.parquet"
    return output if spare is None or output.exists() else case.folder / spare[0]


def _about_charges(case: Case, ids: list[str]) -> list[str]:
    """Every charge that stands is told, and every one that does not."""
    told = _told_entries(case)
    unsure = "may stand" in case.said
    # The charge of an activity is part of what was asked for. If all went well, only the map's,
    # which comes last, is told by itself.
    due = ids[-1:] if case.code == 0 else ids
    wrong = [f"the charge of entry {id_} is not told" for id_ in due if id_ not in told]
    if not unsure:
        wrong += [f"entry {id_} is told and not there" for id_ in told if id_ not in ids]
    nothing = "Nothing was charged" in case.said or "was not entered" in case.said
    if not ids and not (nothing or unsure):
        wrong.append("nothing was charged, and that is not told")
    if ids and "Nothing was charged" in case.said:
        wrong.append("a charge stands, and the message says that nothing was charged")
    return wrong


def _make_inputs(folder: Path) -> None:
    import random

    from htf.privacy.account import ONE_RECORD
    from htf.privacy.budget import BudgetFile
    from htf.privacy.protection import PERSON, Protection

    chance = random.Random(1)
    rows = [f"{chance.random():.3f},{chance.random():.3f},p{n % 30}" for n in range(300)]
    for scenario, options in SCENARIOS.items():
        unit = Protection(PERSON).name if "--user" in options else ONE_RECORD
        (folder / scenario).mkdir(parents=True)
        (folder / scenario / "points.csv").write_text("\n".join(["lon,lat,who", *rows, ""]))
        BudgetFile.create(folder / scenario / "budget.sqlite", "pings", 1, unit=unit)


def serve_orders() -> None:
    """The worker: forks for each order, and starts no threads itself, which would not outlive a fork.

    What the first run of a scenario imports in its child, the worker imports afterwards.
    """
    from htf.cli.main import run

    shim = ctypes.CDLL(None)
    shim.faults_fired.restype = ctypes.c_char_p
    shim.faults_calls.restype = ctypes.c_long
    for line in sys.stdin:
        told = _in_a_child(shim, json.loads(line), run)
        for name in told.pop("imported"):
            with suppress(Exception):
                importlib.import_module(name)
        print(json.dumps(told), flush=True)


def _in_a_child(shim: Any, order: dict[str, Any], run: Any) -> dict[str, Any]:
    mode, folder = MODES[order["mode"]], order["folder"]
    before = set(sys.modules)
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as fired:
        child = os.fork()
        if child == 0:
            for stream in (1, 2):
                os.dup2(said.fileno(), stream)
            faults = order["number"], mode.error, int(mode.from_then_on), mode.kinds
            shim.faults_arm(os.fsencode(folder) + b"/", ctypes.c_long(faults[0]), *faults[1:])
            code = run(order["arguments"])
            shim.faults_disarm()
            sys.stdout.flush()
            sys.stderr.flush()
            imported = [name for name in sys.modules if name not in before]
            fault = {"fired": os.fsdecode(shim.faults_fired()), "calls": shim.faults_calls()}
            report = {**fault, "imported": imported}
            os.write(fired.fileno(), json.dumps(report).encode())
            os._exit(code)
        if order["after"] is not None:
            time.sleep(order["after"])
            os.kill(child, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        said.seek(0)
        fired.seek(0)
        text = said.read().decode(errors="replace")
        nothing = b'{"fired": "", "calls": 0, "imported": []}'
        report = json.loads(fired.read() or nothing)  # which comes of one that was killed
        return {"code": code, "said": text, **report}


def campaign(scale: float, seed: int, folder: Path) -> list[Tally]:
    """Each so-many-th call, from one that the seed chooses on."""
    del folder  # the worker has one of its own, in memory
    every = max(round(1 / scale), 1)
    numbers = range(1 + seed % every, NEVER, every)

    def of_scenario(scenario: str) -> list[Tally]:
        tallies = []
        with started_worker(scenario) as worker:
            for mode in (mode for mode in MODES if MODES[mode].error != KILL):
                tallies.append(Tally(f"faults, {mode}"))
                tallies[-1].take(*try_faults(worker, scenario, mode, numbers))
        return tallies

    with ThreadPoolExecutor(len(SCENARIOS)) as pool:
        return Tally.joined(pool.map(of_scenario, SCENARIOS))


if __name__ == "__main__":
    serve_orders()
