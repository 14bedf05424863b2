"""Standard input, output and error, even if they are closed, full or lack most characters."""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO

from htf.errors import OutputError

NAMES = ("stdin", "stdout", "stderr")  # in the order of their numbers


def prepare() -> None:
    """Check and replace the streams before a command does anything."""
    has_output = sys.stdout is not None
    for number, name in enumerate(NAMES):
        if getattr(sys, name) is None:
            setattr(sys, name, _open_null(number))
    if not has_output:
        raise OutputError(
            "standard output is closed: redirect it to a file, or to /dev/null if you do not need it"
        )
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout = Output.instead_of(sys.stdout)


def give_up() -> None:
    """Drop what a broken stream still holds. Otherwise Python would complain at exit, and return a code of
    its own."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, OutputError):
            with suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


class Output(io.TextIOWrapper):
    """Standard output whose errors name it. Characters that its encoding lacks are escaped, as on
    standard error."""

    @classmethod
    def instead_of(cls, stream: io.TextIOWrapper) -> Output:
        encoding, by_line = stream.encoding, stream.line_buffering
        return cls(stream.buffer, encoding, "backslashreplace", line_buffering=by_line)

    def write(self, text: str) -> int:
        with _as_output_error():
            return super().write(text)

    def flush(self) -> None:
        with _as_output_error():
            super().flush()


@contextmanager
def _as_output_error() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:  # the reader has seen enough; this is no error
        raise
    except OSError as error:
        raise OutputError(f"cannot write to standard output: {error.strerror}") from None


def _open_null(number: int) -> IO[str]:
    """Replace a closed stream. The next file to be opened would get its number, and with it everything
    that is written for the screen."""
    mode = "r" if number == 0 else "w"
    try:
        os.fstat(number)
    except OSError:
        null = os.open(os.devnull, os.O_RDWR)
        if null != number:
            os.dup2(null, number)
            os.close(null)
        return open(number, mode, encoding="utf-8")
    return open(os.devnull, mode, encoding="utf-8")  # too late: the number is another file's


def let_interrupt() -> None:
    """Let Ctrl-C end a question at the terminal. Polars, once it is imported, makes reading go on after a signal."""
    if hasattr(signal, "siginterrupt"):  # not on Windows
        signal.siginterrupt(signal.SIGINT, True)
