"""The layout of text files. Sensitive.

The way a file is read must not depend on its records, or one record could change how the others are
read. So nothing about a text file is guessed from its rows: the first line names the columns and
thereby shows the separator, fields may be quoted with ", and a field that is not a number counts
as missing.
"""

from __future__ import annotations

import codecs
import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from htf.errors import InputError
from htf.ingest.engines import quietly

SEPARATORS = (",", ";", "\t", "|")
LONGEST_HEADER = 1 << 20
LONGEST_RECORD = 2 * 10**6  # bytes. DuckDB silently drops some longer ones at the end of a file
BYTES_AT_ONCE = 1 << 24

Fits = Callable[[Sequence[str]], bool]


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of a text file, and their separator."""

    header: tuple[str, ...]
    separator: str


def read_layout(paths: Sequence[Path], fits: Fits, wanted: str) -> Layout:
    """The layout whose separator finds the columns we need in the first lines. All files share it."""
    layouts = {_read_layout(path, fits, wanted) for path in paths}
    if len(layouts) > 1:
        raise InputError(
            f"the first lines of {paths[0].parent} differ from file to file: "
            "files that are read together must name the same columns, in the same order"
        )
    return layouts.pop()


def check_text(paths: Sequence[Path]) -> None:
    """Check the bytes of whole files, in the same way for every engine. Some engines would read different
    bytes that are not UTF-8 as the same character, and so take several people for one."""
    for path in paths:
        shape = quietly(lambda path=path: _read_shape(path), str(path))  # type: ignore[misc]
        if not shape.quotes_end:
            raise InputError(
                f"{path} has a quoted field that never ends: the reader would read everything after it as that field"
            )
        if shape.longest_record > LONGEST_RECORD:
            raise InputError(
                f"{path} has a record of more than {LONGEST_RECORD // 10**6} MB: is a line end missing, "
                "or does the name claim another format than the file has?"
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
    """The names of the columns. One without a name, such as pandas' index, is called by its place."""
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


class _Shape(NamedTuple):
    """Facts about a text file, from one pass over its bytes."""

    quotes_end: bool
    longest_record: int  # bytes


def _read_shape(path: Path) -> _Shape:
    import pyarrow as pa

    quotes, longest, since_end = 0, 0, 0
    decoder = codecs.getincrementaldecoder("utf-8")()
    with pa.input_stream(str(path), compression="detect") as stream:
        while part := stream.read(BYTES_AT_ONCE):
            decoder.decode(part)
            ends = _record_ends(part, quotes)
            edges = np.concatenate([[-since_end], ends])
            longest = max(longest, int(np.diff(edges).max(initial=0)))
            since_end = len(part) - int(edges[-1])
            quotes += part.count(b'"')
    decoder.decode(b"", final=True)
    return _Shape(quotes % 2 == 0, max(longest, since_end))


def _record_ends(part: bytes, quotes_before: int) -> NDArray[np.int64]:
    """Where records end: after line ends that are not within quotes."""
    data = np.frombuffer(part, dtype=np.uint8)
    ends = np.flatnonzero(data == ord("\n"))
    if len(ends) == 0:
        ends = np.flatnonzero(data == ord("\r"))  # old systems end lines with it alone
    if quotes_before % 2 or b'"' in part:
        quotes = quotes_before + np.searchsorted(np.flatnonzero(data == ord('"')), ends)
        ends = ends[quotes % 2 == 0]
    return ends + 1
