"""Runs `htf` commands in a process with limits, and judges how each one ended.

A command may succeed or refuse with an exit code of the contract. It may not raise anything else, crash,
hang, take more memory than the limit, or write raw control characters to the screen. Loading the packages
takes seconds, so one process runs many commands; a new one takes its place when it dies.
Time is counted in processor seconds, which a busy machine does not change.
"""

from __future__ import annotations

import io
import json
import os
import resource
import selectors
import signal
import subprocess
import sys
import warnings
from collections import Counter
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

MOST_SECONDS = (
    20  # of processor time, for one command; compiling a loop for the first time takes some
)
LONGEST_WAIT = 300  # seconds by the clock, for a process that waits for something that never comes
MOST_GROWTH = 2**30  # bytes of memory beyond what the process had at first
HARD_LIMIT = 4 * 2**30  # bytes of data that the system lets it have
LONGEST_OUTPUT = 100_000
GOOD_CODES = (0, 2, 3)
SHARDS = 2  # processes at once
OUT_OF_MEMORY = "does not fit into memory"


@dataclass(frozen=True, slots=True)
class Ending:
    """How a command ended."""

    code: int
    said: str
    seconds: float
    growth: int  # of memory while it ran, at the peak, in bytes

    @property
    def wrong(self) -> str:
        """What must not happen; nothing if all is well."""
        if self.code < 0:
            return f"killed by {signal.Signals(-self.code).name}"
        if self.code not in GOOD_CODES:
            return f"exit {self.code}"
        if self.growth > MOST_GROWTH or OUT_OF_MEMORY in self.said:
            return f"{self.growth / 2**20:,.0f} MB of memory"
        if raw := sorted({one for one in self.said if is_raw(one)}):
            return f"raw control characters {raw}"
        if self.code and "Error: " not in self.said:
            return "no message"
        return ""


def is_raw(character: str) -> bool:
    """A character that makes a terminal do something."""
    return (ord(character) < 32 and character not in "\n\t") or 127 <= ord(character) < 160


@dataclass
class Tally:
    """How often each thing was tried, and with what result."""

    what: str
    results: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)

    @property
    def tried(self) -> int:
        return sum(self.results.values())

    def add(self, result: str, finding: str = "") -> None:
        self.results[result] += 1
        if finding:
            self.findings.append(finding)

    def take(self, results: Counter[str], findings: list[str]) -> None:
        """What was counted elsewhere; a result is counted whether or not something was wrong with it."""
        self.results += results
        self.findings += findings

    @staticmethod
    def joined(shares: Iterable[Iterable[Tally]]) -> list[Tally]:
        """Those of several workers, by what was tried."""
        found: dict[str, Tally] = {}
        for tally in (one for share in shares for one in share):
            whole = found.setdefault(tally.what, Tally(tally.what))
            whole.results += tally.results
            whole.findings += tally.findings
        return [found[what] for what in sorted(found)]


class Sandbox:
    """The limited process, started when it is first needed."""

    def __init__(self, most_seconds: float, longest_wait: float) -> None:
        self.most_seconds, self.longest_wait = most_seconds, longest_wait
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, *arguments: Any) -> Ending:
        """`htf` with these arguments."""
        process = self._process or self._start()
        assert process.stdin is not None
        process.stdin.write(json.dumps([str(one) for one in arguments]).encode() + b"\n")
        process.stdin.flush()
        answer = self._answer(process)
        if answer is None:
            process.communicate()  # closes what led to it
            code, self._process = process.returncode, None
            return Ending(code if code < 0 else -signal.SIGKILL, "", self.most_seconds, 0)
        return Ending(**answer)

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _start(self) -> subprocess.Popen[bytes]:
        tests = Path(__file__).resolve().parent.parent
        paths = [str(tests), str(tests.parent / "src"), os.environ.get("PYTHONPATH", "")]
        command = [sys.executable, "-m", "reliability.sandbox", str(self.most_seconds)]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        )
        return self._process

    def _answer(self, process: subprocess.Popen[bytes]) -> dict[str, Any] | None:
        """None where the process died, or did nothing for so long that it was ended."""
        assert process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            if not selector.select(self.longest_wait):
                process.kill()
                return None
        line = process.stdout.readline()
        return json.loads(line) if line else None


@contextmanager
def sandbox(
    most_seconds: float = MOST_SECONDS, longest_wait: float = LONGEST_WAIT
) -> Iterator[Sandbox]:
    made = Sandbox(most_seconds, longest_wait)
    try:
        yield made
    finally:
        made.close()


def serve_commands(most_seconds: float) -> None:
    """The limited process: reads commands, a line of JSON each, and says how they ended."""
    from htf.cli.main import run

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # libraries that write to the screen themselves
    resource.setrlimit(resource.RLIMIT_DATA, (HARD_LIMIT, HARD_LIMIT))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        held = _start_peak()
        before = resource.getrusage(resource.RUSAGE_SELF)
        allowed = int(before.ru_utime + before.ru_stime + most_seconds) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (allowed, resource.RLIM_INFINITY))
        screen = io.StringIO()
        with redirect_stdout(screen), redirect_stderr(screen):
            code = _run(run, json.loads(line))
        after = resource.getrusage(resource.RUSAGE_SELF)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        said, growth = screen.getvalue()[:LONGEST_OUTPUT], _memory("VmHWM") - held
        answer = {"code": code, "said": said, "seconds": seconds, "growth": growth}
        print(json.dumps(answer), file=answers, flush=True)


def _start_peak() -> int:
    """The memory that the process has, from which on its peak is taken anew."""
    Path("/proc/self/clear_refs").write_text("5")
    return _memory("VmRSS")


def _memory(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(name))


def _run(run: Any, arguments: Sequence[str]) -> int:
    try:
        return int(run(list(arguments)))
    except BaseException as error:  # `run` is to let nothing through
        print(f"Error: it let a {type(error).__name__} through")
        return 1


if __name__ == "__main__":
    serve_commands(float(sys.argv[1]))
