"""Copies of text files in UTF-8 that begin with the line that names the columns. Sensitive.

All engines read UTF-8 from the first line to the last. So a file in another encoding, or with lines before its header
or after its records, is copied to a temporary folder first, without those lines. The copy is removed at the end.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
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
        copies = [
            quietly(
                lambda piece=piece, n=n: _copy(piece, folder / f"{n}.csv", access),  # type: ignore[misc]
                piece.name,
            )
            for n, piece in enumerate(listing.pieces)
        ]
        yield replace(listing, copies=tuple(copies))


def _copy(piece: Piece, place: Path, access: Access) -> Piece:

    encoding, skipped = access.encoding or "utf-8-sig", access.skip_lines or 0
    with (
        pa.input_stream(str(piece.path), compression="detect") as stream,
        open(place, "xb") as copy,
    ):
        try:
            _write(
                stream,
                copy,
                encoding,
                skipped,
                lambda size: check_room(place.parent, size, piece.name),
            )
        except UnicodeError:
            pass  # raise outside of this block, because the message quotes the data
        else:
            _cut(place, access.skip_last or 0, copy)
            return Piece(place, piece.name, piece.first_line + skipped)
    raise InputError(
        f"{piece.name} is not text in {encoding}: give its encoding with --read encoding"
    )


def _write(
    stream: IO[bytes], copy: IO[bytes], encoding: str, skipped: int, check: Callable[[int], None]
) -> None:
    """Write a stream in UTF-8, without its first lines, as long as there is room."""
    decoder = codecs.getincrementaldecoder(encoding)()
    part = b"?"
    while part:
        part = stream.read(BYTES_AT_ONCE)
        text = decoder.decode(part, final=not part)
        while skipped and text:
            _, ended, text = text.partition("\n")
            skipped -= bool(ended)
        check(len(text))
        copy.write(text.encode())


def _cut(place: Path, lines: int, copy: IO[bytes]) -> None:
    """Remove the last lines of a file. Empty lines at its end do not count."""
    copy.flush()
    end = size = os.path.getsize(place)
    with open(place, "rb") as written:
        for _ in range(lines):
            end = _start_of_last_line(written, end)
    if end < size:
        copy.truncate(end)


def _start_of_last_line(written: IO[bytes], end: int) -> int:
    """Where the last line before `end` begins that is not empty."""
    kept = b""
    while end:
        start = max(0, end - BYTES_AT_ONCE)
        written.seek(start)
        kept = (
            (written.read(end - start) + kept).rstrip(b"\r\n")
            if not kept
            else written.read(end - start) + kept
        )
        end = start
        if (found := kept.rfind(b"\n")) >= 0:
            return start + found + 1
    return 0
