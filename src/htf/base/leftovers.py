"""Temporary folders that are removed however the process ends.

A context manager removes its folder when it is left. A process that is killed, or ended by SIGTERM while it is deep in a
library, leaves nothing. So a process that makes such a folder starts a guard, once: a tiny process of its own session, which
reads from a pipe the names of the folders that there are. When its other end is closed, by whatever end of the process, the
guard removes what is still there. Signals that end this process end it at once, as they do any other: nothing has to be
unwound first.

Where no guard can be started (on Windows, or if the system allows no more processes), folders are removed by their context
managers alone.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from htf.base.processes import once_per_process

# It knows nothing but Python's own modules, so it starts in some hundredths of a second. A line is + or - and a name.
GUARD = """
import os, sys
kept = set()
for line in sys.stdin.buffer:
    name = bytes.fromhex(line[1:].decode())
    (kept.add if line[:1] == b"+" else kept.discard)(name)
if kept:
    import shutil
    for name in kept:
        shutil.rmtree(name, ignore_errors=True)
"""
UNHEARD = ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM")  # which are often sent to all of a group


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder for copies of the data, which only this user can read. The guard knows of it before it is there."""
    folder, process = Path(tempfile.gettempdir()) / f"htf-{secrets.token_hex(8)}", os.getpid()
    _tell("+", folder)
    try:
        folder.mkdir(mode=0o700)
        yield folder
    finally:
        if os.getpid() == process:  # a forked child may come here too: the folder is its parent's
            shutil.rmtree(folder, ignore_errors=True)
            _tell("-", folder)


def _tell(sign: str, folder: Path) -> None:
    """A line of a few hundred bytes is written at once, whatever other threads write."""
    pipe = _guard()
    if pipe is not None:
        # Somebody may have ended it, or closed all files, whose numbers others have by now.
        with suppress(OSError):
            found = os.fstat(pipe)
            if stat.S_ISFIFO(found.st_mode) and _inodes.get(pipe, found.st_ino) == found.st_ino:
                os.write(pipe, f"{sign}{os.fsencode(folder).hex()}\n".encode())


@once_per_process
def _guard() -> int | None:
    """The end of the pipe to write to. It closes with the process."""
    return _start_guard()


def _start_guard() -> int | None:
    embedded = getattr(sys, "frozen", False) or "python" not in Path(sys.executable or "").name
    if embedded or not hasattr(os, "posix_spawn") or not Path(os.devnull).exists():
        return None
    reading, writing = os.pipe()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    streams = [(os.POSIX_SPAWN_DUP2, end, n) for n, end in enumerate((reading, nowhere, nowhere))]
    unheard = [getattr(signal, name) for name in UNHEARD]
    command = [sys.executable, "-I", "-S", "-c", GUARD]
    try:
        os.posix_spawn(
            sys.executable,
            command,
            os.environ,
            file_actions=streams,
            setsid=True,
            setsigmask=unheard,
        )
    except (OSError, NotImplementedError):
        os.close(writing)
        return None
    finally:
        os.close(reading)
        os.close(nowhere)
    _inodes[writing] = os.fstat(writing).st_ino
    return writing


def _close_in_child() -> None:
    """Else a forked child would keep the pipe open for as long as it lives."""
    for pipe in _inodes:
        with suppress(OSError):
            os.close(pipe)
    _inodes.clear()


# Of the pipes of this process, one or one for each thread that came first: by that a pipe is known again.
_inodes: dict[int, int] = {}
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_in_child)
