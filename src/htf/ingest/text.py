"""The layout of text files. Sensitive.

The way a file is read must not depend on its records, or one record could change how the others are
read. So nothing about a text file is guessed from its rows: the first line names the columns and
thereby shows the separator, fields may be quoted with ", and a field that is not a number counts
as missing.

All engines read UTF-8 from the first line to the last. So a file in another encoding, or with lines before its header
or after its records, is copied to a temporary folder first, without those lines. The copy is removed at the end.
"""

from __future__ import annotations

import codecs
import csv
import difflib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from htf.base.leftovers import temporary_folder
from htf.base.unpacking import check_room
from htf.errors import InputError
from htf.ingest.engines import quietly
from htf.ingest.listing import Listing, Piece
from htf.ingest.reading import Access

SEPARATORS = (",", ";", "\t", "|")
LONGEST_HEADER = 1 << 20
LONGEST_RECORD = 2 * 10**6  # bytes. DuckDB silently drops some longer ones at the end of a file
BYTES_AT_ONCE = 1 << 24
COPIED_AT_ONCE = 1 << 22
MOST_PREAMBLE = 64  # lines that are looked at for the names of columns
MOST_NAMED = 5  # lines that are named
UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

Fits = Callable[[Sequence[str]], bool]


class Needed(NamedTuple):
    """The columns that we need: whether a header has them, in words, and those that were named."""

    fits: Fits
    told: str = ""
    named: tuple[str, ...] = ()
    quick: bool = False  # whether all cores may read one file, if nothing in it is quoted


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of a text file, and their separator."""

    header: tuple[str, ...]
    separator: str
    parallel: bool = False  # whether all cores read one file


def read_layout(pieces: Sequence[Piece], needed: Needed) -> Layout:
    """The layout whose separator finds the columns we need in the first lines. All files share it."""
    layouts = {_read_layout(piece, needed) for piece in pieces}
    if len(layouts) > 1:
        raise InputError(
            f"the first lines of {Path(pieces[0].name).parent} differ from file to file: "
            "files that are read together must name the same columns, in the same order"
        )
    return layouts.pop()


def check_text(pieces: Sequence[Piece]) -> list[Shape]:
    """Check the bytes of whole files, in the same way for every engine. Some engines would read different
    bytes that are not UTF-8 as the same character, and so take several people for one."""
    shapes = []
    for path, name, _ in pieces:
        shape = quietly(partial(_read_shape, path), name)
        if not shape.quotes_end:
            raise InputError(
                f"{name} has a quoted field that never ends: the reader would read everything after it as that field"
            )
        if shape.longest_record > LONGEST_RECORD:
            raise InputError(
                f"{name} has a record of more than {LONGEST_RECORD // 10**6} MB: is a line end missing, "
                "or does the name claim another format than the file has?"
            )
        shapes.append(shape)
    return shapes


def explain_lines(pieces: Sequence[Piece], layout: Layout) -> str | None:
    """Why an engine refused the text: the first lines that have another number of fields than the header; None if
    no line has."""
    for piece in pieces:
        uneven = uneven_lines(piece, layout)
        if uneven:
            where = ", ".join(f"line {line} ({fields})" for line, fields in uneven[:MOST_NAMED])
            return (
                f"the line that names the columns has {len(layout.header)} fields, but others have more or fewer: "
                f"{where}{' and more' if len(uneven) > MOST_NAMED else ''} of {piece.name}. Repair them, or, if they "
                "are totals at the end, leave them out with --read skip-last=N"
            )
    return None


def uneven_lines(piece: Piece, layout: Layout) -> list[tuple[int, int]]:
    """The lines of a file whose number of fields is not that of the header, and that number."""
    found: list[tuple[int, int]] = []
    for records in _records(piece, layout.separator):
        wrong = np.flatnonzero(~records.blank & (records.fields != len(layout.header)))
        found += zip(records.lines[wrong].tolist(), records.fields[wrong].tolist(), strict=True)
    return found


def last_lines(piece: Piece, most: int) -> list[int]:
    """The numbers of the last lines that are not empty."""
    last: list[int] = []
    for records in _records(piece, ","):
        last = (last + records.lines[~records.blank][-most:].tolist())[-most:]
    return last


def lines_of(piece: Piece, numbers: Sequence[int]) -> list[int]:
    """The lines that records begin in. The record with number 1 is the first after the header."""
    wanted, lines, before = np.asarray(numbers), [], 0
    for records in _records(piece, ","):
        starts = records.lines[~records.blank]
        here = wanted[(wanted >= before) & (wanted < before + len(starts))]
        lines += starts[here - before].tolist()
        before += len(starts)
    return lines


def _read_layout(piece: Piece, needed: Needed) -> Layout:
    line, *others = quietly(lambda: first_lines(piece.path), piece.name)
    found = find_layout(line, needed.fits)
    if found is not None:
        return found
    for number, other in enumerate(others, start=1):
        if find_layout(other, needed.fits) is not None:
            raise InputError(
                f"line {piece.first_line + number} of {piece.name} names the columns, not line {piece.first_line}: "
                f"give --read skip-lines={piece.first_line + number - 1}"
            )
    raise InputError(
        f"the first line of {piece.name} must name the columns, each once, and {needed.told} among them "
        f"(it is not quoted here, since it may be data){_close_names(line, needed.named)}"
    )


def find_layout(line: str, fits: Fits) -> Layout | None:
    """The layout by which a line names the columns we need."""
    for separator in SEPARATORS:
        header = split_header(line, separator)
        if fits(header) and len(set(header)) == len(header):
            return Layout(tuple(header), separator)
    return None


def _close_names(line: str, named: Sequence[str]) -> str:
    """Names in a line that are almost those we look for: these are no data."""
    there = {name for separator in SEPARATORS for name in split_header(line, separator)}
    folded = {name.casefold() for name in there}
    close = dict[str, None]()
    for one in named:
        alike = difflib.get_close_matches(one.casefold(), folded) if one not in there else []
        for like in alike:
            close |= dict.fromkeys(name for name in sorted(there) if name.casefold() == like)
    return f". It has {', '.join(map(repr, close))}" if close else ""


def split_header(line: str, separator: str) -> list[str]:
    """The names of the columns. One without a name, such as pandas' index, is called by its place."""
    try:
        rows = csv.reader([line], delimiter=separator, skipinitialspace=True)
        names = [name.strip() for name in next(rows, [])]
        return [name or f"column {place}" for place, name in enumerate(names, start=1)]
    except csv.Error:  # a line of a megabyte, or one that does not end
        return []


def first_lines(path: Path, most: int = MOST_PREAMBLE) -> list[str]:
    """The first lines of a text file in UTF-8; the first is the header, if the file is as it should be."""
    with pa.input_stream(str(path), compression="detect") as stream:
        start: bytes = stream.read(LONGEST_HEADER)
    if start.startswith(UTF16_MARKS) or b"\0" in start[:MOST_PREAMBLE]:
        raise InputError(
            f"{path.name} is not text in UTF-8. It looks like UTF-16: give --read encoding=utf-16"
        )
    first, *others = start.split(b"\n", most)
    lines = [one.decode("utf-8", "replace") for one in others[: most - 1]]
    return [one.rstrip("\r") for one in (first.decode("utf-8-sig"), *lines)]


class Shape(NamedTuple):
    """Facts about a text file, from one pass over its bytes."""

    quotes_end: bool
    longest_record: int  # bytes
    quoted: bool


def _read_shape(path: Path) -> Shape:
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
    return Shape(quotes % 2 == 0, max(longest, since_end), quotes > 0)


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


class _Records(NamedTuple):
    """Some records of a text file: the lines they begin in, their numbers of fields, and which are empty."""

    lines: NDArray[np.int64]
    fields: NDArray[np.int64]
    blank: NDArray[np.bool_]


def _records(piece: Piece, separator: str) -> Iterator[_Records]:
    line, rest = piece.first_line, b""
    with pa.input_stream(str(piece.path), compression="detect") as stream:
        while part := stream.read(BYTES_AT_ONCE):
            rest += part
            ends = _record_ends(rest, 0)
            if len(ends):
                yield _divided(rest[: ends[-1]], ends, separator, line)
                line += rest.count(b"\n", 0, int(ends[-1]))
                rest = rest[ends[-1] :]
    if rest:
        yield _divided(rest + b"\n", np.array([len(rest) + 1]), separator, line)


def _divided(part: bytes, ends: NDArray[np.int64], separator: str, line: int) -> _Records:
    """Records that end at these places, the first of which begins in this line."""
    data = np.frombuffer(part, dtype=np.uint8)
    within = np.cumsum(data == ord('"')) % 2 == 1 if b'"' in part else np.zeros(1, dtype=bool)
    separators = np.flatnonzero((data == ord(separator)) & ~within)
    starts = np.concatenate([[0], ends[:-1]])
    fields = np.diff(np.searchsorted(separators, ends), prepend=0) + 1
    line_ends = np.flatnonzero(data == ord("\n"))
    lines = line + np.searchsorted(line_ends, starts)
    lengths = ends - starts
    blank = (lengths <= 1) | ((lengths == len(b"\r\n")) & (data[starts] == ord("\r")))
    return _Records(lines, fields, blank)


# Copies that engines can read -------------------------------------------------------------------


@contextmanager
def plain(listing: Listing, access: Access) -> Iterator[Listing]:
    """The same text files, or copies of them if they are not plain."""
    if access.is_plain:
        yield listing
        return
    with temporary_folder() as folder:
        copies: list[Piece] = []
        for piece in listing.pieces:
            place = folder / f"{len(copies)}.csv"
            copies.append(quietly(partial(_copy, piece, place, access), piece.name))
        yield replace(listing, copies=tuple(copies))


def _copy(piece: Piece, place: Path, access: Access) -> Piece:
    encoding, skipped = access.encoding or "utf-8-sig", access.skip_lines or 0
    try:
        with (
            pa.input_stream(str(piece.path), compression="detect") as stream,
            open(place, "xb") as copy,
        ):
            for text in _decoded(stream, encoding, skipped):
                check_room(place.parent, len(text), piece.name)
                copy.write(text.encode())
    except UnicodeError:
        pass  # raise outside of this block, because the message quotes the data
    else:
        _cut(place, access.skip_last or 0)
        return Piece(place, piece.name, piece.first_line + skipped)
    raise InputError(
        f"{piece.name} is not text in {encoding}: give its encoding with --read encoding"
    )


def _decoded(stream: IO[bytes], encoding: str, skipped: int) -> Iterator[str]:
    """The text of a stream, without its first lines."""
    decoder = codecs.getincrementaldecoder(encoding)()
    part = b"?"
    while part:
        part = stream.read(COPIED_AT_ONCE)
        text = decoder.decode(part, final=not part)
        while skipped and text:
            _, ended, text = text.partition("\n")
            skipped -= bool(ended)
        yield text


def _cut(place: Path, lines: int) -> None:
    """Remove the last lines of a file. Empty lines at its end do not count."""
    end = os.path.getsize(place)
    if not lines or not end:
        return
    with open(place, "rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as text:
        for _ in range(lines):
            while end and text[end - 1] in b"\r\n":
                end -= 1
            end = text.rfind(b"\n", 0, end) + 1
    os.truncate(place, end)
