"""Writing files whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from pathlib import Path

from htf.errors import InputError


def check_writable(path: Path) -> None:
    """Refuse an output that could not be written, before any budget is spent on it."""
    if path.is_dir():
        raise InputError(f"cannot write {path}: it is a folder, give the name of a file")
    if not path.parent.is_dir():
        raise InputError(f"cannot write {path}: there is no folder {path.parent}")
    if not os.access(path.parent, os.W_OK):
        raise InputError(f"cannot write {path}: the folder does not allow it")


def write_whole(path: Path, write: Callable[[Path], None]) -> None:
    """Let `write` fill a new file beside `path`, and move it there when it is complete."""
    check_writable(path)
    # With the same ending, which some formats insist on.
    unfinished = path.with_name(f".{path.stem}.{secrets.token_hex(4)}.unfinished{path.suffix}")
    try:
        write(unfinished)
        with open(unfinished, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or 'is the disk full?'}") from None
    finally:
        unfinished.unlink(missing_ok=True)
