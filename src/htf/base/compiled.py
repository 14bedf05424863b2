"""Compiles loops, and decides where their compiled form is kept. All loops are compiled here.

Compiling takes seconds, so numba keeps the result on disk: in NUMBA_CACHE_DIR, else beside the source, else in
the user's cache folder. It gives up if it can write to none of them, as in a read-only installation used by
somebody without a home folder. Then we offer our own folder among the temporary files; without that, the loop is
compiled in every process. The files on disk only save time, so any trouble with them costs time and no more.
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import FunctionCache, NullCache

OWNER_ONLY = 0o700
PACKAGE = __name__.partition(".")[0] + "."


def compiled(function: Callable[..., Any]) -> Any:
    """A decorator for loops that release Python's global lock and are kept on disk."""
    loop = numba.njit(nogil=True)(function)
    loop._cache = _cache_for(function)  # as `cache=True` would do, or raise
    return loop


class _PatientCache(FunctionCache):  # type: ignore[misc]
    """Numba's cache, except that a full disk or a damaged file is no error: the loop is then compiled.

    Code and constants of other files are compiled into a loop too. Numba notices only changes of the
    loop's own file, so this stamp covers all of them.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file._source_stamp = [_stamp(path) for path in source_files(function)]

    def load_overload(self, *arguments: Any) -> Any:
        with suppress(Exception):
            return super().load_overload(*arguments)
        return None

    def save_overload(self, *arguments: Any) -> None:
        with suppress(Exception):
            super().save_overload(*arguments)


def source_files(function: Callable[..., Any]) -> list[Path]:
    """Our own files from which the module takes functions, classes or modules, directly or through others.

    A constant does not show where it comes from, so a loop that needs one of another file imports that
    module.
    """
    waiting, seen = [function.__module__], {function.__module__}
    while waiting:
        names = vars(sys.modules[waiting.pop()]).values()
        found = {
            str(getattr(value, "__module__", getattr(value, "__name__", ""))) for value in names
        }
        further = {name for name in found if name.startswith(PACKAGE)} - seen
        waiting += further
        seen |= further
    return sorted(Path(str(sys.modules[name].__file__)) for name in seen)


def _stamp(path: Path) -> tuple[str, int, int]:
    """The stamp of a file. One without a state of its own, as in an archive, does not change."""
    with suppress(OSError):
        found = path.stat()
        return path.name, found.st_mtime_ns, found.st_size
    return path.name, 0, 0


def _cache_for(function: Callable[..., Any]) -> Any:
    with suppress(RuntimeError, OSError):  # it found no folder that it may write to
        return _PatientCache(function)
    folder = temporary_folder()
    if folder is not None:
        with _offered(folder), suppress(RuntimeError, OSError):
            return _PatientCache(function)
    return NullCache()


@contextmanager
def _offered(folder: Path) -> Iterator[None]:
    """Offer our folder only while a cache is made, because other packages that use numba keep their own."""
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(folder)
    try:
        yield
    finally:
        numba.config.CACHE_DIR = before


def temporary_folder() -> Path | None:
    """A folder that later processes of this user find again; None if other users could change it.

    Numba runs the code it finds there. So the folder must be ours and closed to others, and nobody else
    may be able to move it away and put another in its place.
    """
    if not hasattr(os, "geteuid"):  # on Windows every user has a cache folder
        return None
    user = os.geteuid()
    try:
        parent = Path(tempfile.gettempdir()).resolve()
        folder = parent / f"htf-compiled-{user}"
        with suppress(FileExistsError):
            folder.mkdir(mode=OWNER_ONLY)
        around, found = parent.lstat(), folder.lstat()
    except OSError:
        return None
    shared = bool(around.st_mode & 0o022) and not around.st_mode & stat.S_ISVTX
    if shared or around.st_uid not in (0, user):
        return None
    is_ours = stat.S_ISDIR(found.st_mode) and found.st_uid == user
    return folder if is_ours and stat.S_IMODE(found.st_mode) == OWNER_ONLY else None
