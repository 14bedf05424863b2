"""Compiles loops, and decides where their compiled form is kept. All loops are compiled here.

Compiling takes seconds, so numba keeps the result on disk: in NUMBA_CACHE_DIR, else beside the source, else in
the user's cache folder. It gives up if it can write to none of them, as in a read-only installation used by
somebody without a home folder. Then we offer our own folder among the temporary files; without that, the loop is
compiled in every process. The files on disk only save time, so any trouble with them costs time and no more.

Numba takes as long to load as a loop takes to answer thousands of boxes, once it is compiled. So it is loaded when a loop is
first called, and a few boxes are answered by loops as they are written: `few` says when.
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, update_wrapper
from pathlib import Path
from types import FunctionType
from typing import Any

OWNER_ONLY = 0o700
PACKAGE = __name__.partition(".")[0] + "."
FEW = 8  # rows: as written, each takes some hundredths of a second


def compiled(function: Callable[..., Any]) -> Any:
    """A decorator for loops that release Python's global lock and are kept on disk."""
    return _Loop(function)


def inlined(function: Callable[..., Any]) -> Any:
    """A decorator for pieces of loops that become part of each loop that calls them."""
    return _Loop(function, inline="always")


class _Loop:
    """A loop, which is compiled when it is first called, or when another loop that calls it is. What numba knows of it are
    its attributes."""

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        update_wrapper(self, function)
        self.py_func, self._options = function, options

    def __call__(self, *arguments: Any) -> Any:
        if _mode.as_written:
            return _as_written(self.py_func.__module__)[self.py_func.__name__](*arguments)
        return self.dispatcher(*arguments)

    @property
    def dispatcher(self) -> Any:
        """Numba's form of it."""
        with _lock:
            if "_dispatcher" not in self.__dict__:
                self._dispatcher = _dispatcher_of(self.py_func, self._options)
        return self._dispatcher

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_dispatcher":
            raise AttributeError(name)
        return getattr(self.dispatcher, name)


@cache
def _as_written(module: str) -> dict[str, Any]:
    """The names of a module, in which loops call each other directly: nine of ten calls are among them."""
    names = dict(vars(sys.modules[module]))
    for name, loop in names.items():
        if isinstance(loop, _Loop):
            home = loop.py_func.__module__
            around = names if home == module else _as_written(home)
            names[name] = FunctionType(loop.py_func.__code__, around, name)
    return names


class _Mode(threading.local):
    as_written = False


_mode, _lock, _asked = _Mode(), threading.RLock(), [0]


@contextmanager
def few(rows: int) -> Iterator[None]:
    """Run loops as they are written if few rows were asked for until now, and numba is not loaded. Answers are the same."""
    import numpy as np

    _asked[0] += rows
    before, _mode.as_written = _mode.as_written, _asked[0] <= FEW and "numba" not in sys.modules
    try:
        with np.errstate(all="ignore"):  # as in compiled loops
            yield
    finally:
        _mode.as_written = before


def nothing_asked() -> bool:
    """Whether this process has answered nothing so far, and numba is not loaded."""
    return _asked[0] == 0 and "numba" not in sys.modules


def many_ahead() -> None:
    """Compile loops from now on, because this process will answer many boxes."""
    _asked[0] = FEW + 1


def _dispatcher_of(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    import numba

    if options:
        return numba.njit(**options)(function)
    loop = numba.njit(nogil=True)(function)
    loop._cache = _cache_for(function)  # as `cache=True` would do, or raise
    return loop


def _patient_cache(function: Callable[..., Any]) -> Any:
    """Numba's cache, except that a full disk or a damaged file is no error: the loop is then compiled.

    Code and constants of other files are compiled into a loop too. Numba notices only changes of the
    loop's own file, so its stamp covers all of them.
    """
    from numba.core.caching import FunctionCache

    cache = FunctionCache(function)
    cache._cache_file._source_stamp = [_stamp(path) for path in source_files(function)]
    for name in ("load_overload", "save_overload"):
        setattr(cache, name, _or_none(getattr(cache, name)))
    return cache


def _or_none(call: Callable[..., Any]) -> Callable[..., Any]:
    def patient(*arguments: Any) -> Any:
        with suppress(Exception):
            return call(*arguments)
        return None

    return patient


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
        return _patient_cache(function)
    folder = temporary_folder()
    if folder is not None:
        with _offered(folder), suppress(RuntimeError, OSError):
            return _patient_cache(function)
    from numba.core.caching import NullCache

    return NullCache()


@contextmanager
def _offered(folder: Path) -> Iterator[None]:
    """Offer our folder only while a cache is made, because other packages that use numba keep their own."""
    import numba

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
