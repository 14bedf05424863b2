"""Standard input, output and error, whatever they are: closed, full, or without most characters."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO

from htf.errors import OutputError

NAMES = ("stdin", "stdout", "stderr")  # in the order of their numbers


def prepare() -> None:
    """Before a command does anything, so that nothing is done in vain."""
    is_shown = sys.stdout is not None
    for number, name in enumerate(NAMES):
        if getattr(sys, name) is None:
            setattr(sys, name, _open_null(number))
    if not is_shown:
        raise OutputError(
            "standard output is closed: redirect it to a file, or to /dev/null if nobody is to read it"
        )
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout = Output.instead_of(sys.stdout)


def give_up() -> None:
    """Let go of what waits for a stream that cannot be written: Python would complain at its end, and
    leave with a code of its own."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, OutputError):
            with suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


class Output(io.TextIOWrapper):
    """Standard output, whose errors say that they are its own. A character that its encoding lacks is
    escaped, as on standard error."""

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
    except BrokenPipeError:  # the reader has seen enough, which is no error
        raise
    except OSError as error:
        raise OutputError(f"cannot write to standard output: {error.strerror}") from None


def _open_null(number: int) -> IO[str]:
    """In place of a stream that is closed: the next file that is opened would get its number, and with it
    whatever anyone writes for the screen."""
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
