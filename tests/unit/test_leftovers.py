"""Copies of the data are removed, however the process ends that made them."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from htf.base import leftovers
from htf.base.leftovers import temporary_folder
from support import PATIENCE

pytestmark = pytest.mark.skipif(not hasattr(os, "posix_spawn"), reason="no guard on this system")

# Makes folders without end, some inside of others, and forks a child that outlives it.
BUSY = """
import os, sys, time
from htf.base.leftovers import temporary_folder
print("ready", flush=True)
with temporary_folder() as kept:
    (kept / "inner").mkdir()
    (kept / "inner" / "data").write_text("a copy of the data")
    if "fork" in sys.argv and os.fork() == 0:
        os.close(0), os.close(1)
        time.sleep(600)
    while True:
        with temporary_folder() as folder:
            (folder / "data").write_text("a copy of the data")
            print(folder.name, flush=True)
"""
# Deep in a library, where no handler of a signal written in Python would run.
IN_A_LIBRARY = """
import sys
import numpy as np, htf
from htf.ingest.engines import open_duckdb
with open_duckdb(None) as engine:
    print("ready", flush=True)
    print("counting", flush=True)
    engine.connection.execute("SELECT count(*) FROM range(100000000000) a WHERE a.range % 7 = 3").fetchall()
"""


def started(code: str, folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, "TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_until_empty(folder: Path) -> None:
    """A guard that works comes to it at once; one that does not, never."""
    deadline = time.monotonic() + PATIENCE / 10
    while left := sorted(one.name for one in folder.iterdir()):
        assert time.monotonic() < deadline, f"{left} was left"
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("how", "code"),
    [
        ("SIGTERM", BUSY),
        ("SIGKILL", BUSY),
        ("SIGTERM to the group", BUSY),
        ("SIGTERM", IN_A_LIBRARY),
    ],
    ids=["SIGTERM", "SIGKILL", "SIGTERM to the group", "SIGTERM in a library"],
)
def test_a_process_that_is_ended_leaves_nothing(tmp_path: Path, how: str, code: str) -> None:
    """Whenever it is ended: after a number of folders that is drawn here, with a fixed seed."""
    process = started(code, tmp_path)
    assert process.stdout is not None
    lines = 2 if code is IN_A_LIBRARY else random.Random(how).randrange(2, 40)
    for _ in range(lines):
        assert process.stdout.readline()
    assert any(tmp_path.iterdir())
    number = getattr(signal, how.split(maxsplit=1)[0])
    os.killpg(process.pid, number) if "group" in how else os.kill(process.pid, number)
    assert process.wait(PATIENCE) == -number
    wait_until_empty(tmp_path)
    process.stdout.close()


def test_a_child_that_lives_on_keeps_nothing(tmp_path: Path) -> None:
    process = started(BUSY, tmp_path, "fork")
    assert process.stdout is not None
    for _ in range(3):
        process.stdout.readline()
    os.kill(process.pid, signal.SIGKILL)
    process.wait(PATIENCE)
    wait_until_empty(tmp_path)
    os.killpg(process.pid, signal.SIGKILL)  # the child
    process.stdout.close()


def test_what_is_left_properly_is_removed_at_once() -> None:
    with temporary_folder() as folder:
        (folder / "data").write_text("a copy of the data")
        assert folder.stat().st_mode & 0o077 == 0
    assert not folder.exists()


@pytest.mark.parametrize("trouble", [OSError, NotImplementedError])
def test_without_a_guard_folders_are_removed_all_the_same(monkeypatch: Any, trouble: type) -> None:
    def spawn(*_: Any, **__: Any) -> int:
        raise trouble

    monkeypatch.setattr(leftovers, "_guard", leftovers._start_guard)
    monkeypatch.setattr(os, "posix_spawn", spawn)
    before = set(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").is_dir() else set()
    with temporary_folder() as folder:
        pass
    assert not folder.exists()
    if before:
        assert set(os.listdir("/proc/self/fd")) == before


def test_a_guard_that_was_ended_is_not_missed(monkeypatch: Any) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    monkeypatch.setattr(leftovers, "_guard", lambda: writing)
    with temporary_folder() as folder:
        pass
    assert not folder.exists()
    os.close(writing)


def test_a_link_is_removed_and_not_followed(tmp_path: Path) -> None:
    """The guard removes what it is told to remove, and nothing that this leads to."""
    (tmp_path / "own").mkdir()
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "data").write_text("not ours")
    (tmp_path / "own" / "link").symlink_to(tmp_path / "kept")
    line = f"+{os.fsencode(tmp_path / 'own').hex()}\n+{os.fsencode(tmp_path / 'gone').hex()}\n"
    subprocess.run(
        [sys.executable, "-I", "-S", "-c", leftovers.GUARD], input=line.encode(), check=True
    )
    assert not (tmp_path / "own").exists()
    assert (tmp_path / "kept" / "data").exists()
    shutil.rmtree(tmp_path / "kept")
