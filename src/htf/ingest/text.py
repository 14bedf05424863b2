"""How text files are laid out. Sensitive.

How a file is read must not depend on its records, or one record could change what becomes of the
others. So nothing about a text file is guessed from its rows: the first line names the columns and,
with them, the separator; fields may be quoted with "; and a field that is not a number counts as
missing.
"""

from __future__ import annotations

import codecs
import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from htf.errors import InputError
from htf.ingest.engines import quietly

SEPARATORS = (",", ";", "\t", "|")
LONGEST_HEADER = 1 << 20
BYTES_AT_ONCE = 1 << 24

Fits = Callable[[Sequence[str]], bool]


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of a text file, and what stands between them."""

    header: tuple[str, ...]
    separator: str


def read_layout(paths: Sequence[Path], fits: Fits, wanted: str) -> Layout:
    """The same for all files: that with which the first lines name the columns which we need."""
    found = {_read_layout(path, fits, wanted) for path in paths}
    if len(found) > 1:
        raise InputError(
            f"the first lines of {paths[0].parent} differ from file to file: "
            "files that are read together must name the same columns, in the same order"
        )
    return found.pop()


def check_text(paths: Sequence[Path]) -> None:
    """Of the whole file, and alike for every engine. Some would take each other's bytes that are not
    UTF-8 for one sign, and so several persons for one."""
    for path in paths:
        if not quietly(lambda path=path: _quotes_end(path), str(path)):  # type: ignore[misc]
            raise InputError(
                f"{path} has a quoted field that never ends: the reader would take all that follows for it"
            )


def _read_layout(path: Path, fits: Fits, wanted: str) -> Layout:
    line = quietly(lambda: _first_line(path), str(path))
    for separator in SEPARATORS:
        header = _split_header(line, separator)
        if fits(header) and len(set(header)) == len(header):
            return Layout(tuple(header), separator)
    raise InputError(
        f"the first line of {path} must name the columns, each once, and {wanted} among them "
        "(it is not quoted here, since it may be data)"
    )


def _split_header(line: str, separator: str) -> list[str]:
    """A column without a name, such as that of pandas' row numbers, is called by its place."""
    try:
        rows = csv.reader([line], delimiter=separator, skipinitialspace=True)
        names = [name.strip() for name in next(rows, [])]
        return [name or f"column {place}" for place, name in enumerate(names, start=1)]
    except csv.Error:  # a line of a megabyte, or one that does not end
        return []


def _first_line(path: Path) -> str:
    import pyarrow as pa

    with pa.input_stream(str(path), compression="detect") as stream:
        start: bytes = stream.read(LONGEST_HEADER)
    return start.split(b"\n")[0].decode("utf-8-sig").rstrip("\r")


def _quotes_end(path: Path) -> bool:
    import pyarrow as pa

    quotes, decoder = 0, codecs.getincrementaldecoder("utf-8")()
    with pa.input_stream(str(path), compression="detect") as stream:
        while part := stream.read(BYTES_AT_ONCE):
            quotes += part.count(b'"')
            decoder.decode(part)
    decoder.decode(b"", final=True)
    return quotes % 2 == 0
