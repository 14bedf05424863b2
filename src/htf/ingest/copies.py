"""Copies of text files in UTF-8 that begin with the line that names the columns. Sensitive.

All engines read UTF-8 from the first line to the last. So a file in another encoding, or with lines before its header
or after its records, is copied to a temporary folder first, without those lines. The copy is removed at the end.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import IO

import pyarrow as pa

from htf.base.leftovers import temporary_folder
from htf.base.unpacking import check_room
from htf.errors import InputError
from htf.ingest.engines import quietly
from htf.ingest.listing import Listing, Piece
from htf.ingest.reading import Access

BYTES_AT_ONCE = 1 << 22


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
        part = stream.read(BYTES_AT_ONCE)
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
