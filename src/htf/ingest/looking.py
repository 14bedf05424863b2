"""Guesses how a text file is written, for `htf check` alone. Sensitive.

A release never guesses these from records, because one record could then change how all others are read. Here the
guesses only become options that the curator is advised to give.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from htf.errors import InputError
from htf.ingest import expressions as ex
from htf.ingest import text
from htf.ingest.columns import like, likely_pairs
from htf.ingest.listing import Listing, Piece
from htf.ingest.reading import COMMA, POINT, Reading
from htf.ingest.text import plain
from htf.ingest.time_formats import likely_formats

NUMBER = re.compile(ex.NUMBER.replace(r"\z", r"\Z"))
WITH_COMMA = re.compile(ex.NUMBER.replace(r"\.", ",").replace(r"\z", r"\Z"))
WHOLE = re.compile(ex.WHOLE.replace(r"\z", r"\Z"))
TIME = re.compile(ex.TIME.replace(r"\z", r"\Z"))
ENOUGH = 0.8  # of lines or values that must agree with a guess
LINES_AFTER = 20
MOST_TOTALS = 5  # lines at the end
WHOLE_NUMBERS, NUMBERS, COMMA_NUMBERS = "whole numbers", "numbers", "numbers with decimal commas"
TIMES, TEXT, NOTHING = "times", "text", "nothing"
LEAST_SECONDS = 1e8  # a number of seconds since 1970 that is a likely time: March 1973


class Looked(NamedTuple):
    """How a text file seems to be written."""

    reading: Reading
    layout: text.Layout


def look(listing: Listing, reading: Reading, named: Sequence[str]) -> Looked:
    """The encoding, the lines before the header and the separator of text files; what was given stands."""
    piece = listing.pieces[0]
    if reading.encoding is None:
        reading = replace(reading, encoding=_guess_encoding(piece.path))
    with plain(listing, replace(reading, skip_last=None)) as readable:
        lines = text.first_lines(readable.pieces[0].path)
    found = _guess_header(lines, named)
    if found is None:
        raise InputError(
            f"no line of the first {text.MOST_PREAMBLE} of {piece.name} names columns that the next lines have: is it a "
            "table, with names of columns above it? Give --read skip-lines=N if they are further down"
        )
    skipped, layout = found
    if skipped:
        reading = replace(reading, skip_lines=(reading.skip_lines or 0) + skipped)
    return Looked(reading, layout)


def totals_after(listing: Listing, looked: Looked) -> int:
    """The number of lines after the records that have another number of fields; 0 if others have that too."""
    with plain(listing, looked.reading) as readable:
        numbers = {_totals(piece, looked.layout) for piece in readable.pieces}
    return numbers.pop() if len(numbers) == 1 else 0


def _totals(piece: Piece, layout: text.Layout) -> int:
    uneven = [line for line, _ in text.uneven_lines(piece, layout)]
    last = text.last_lines(piece, MOST_TOTALS)
    return len(uneven) if uneven and uneven == last[-len(uneven) :] else 0


def _guess_encoding(path: Path) -> str | None:
    """None for UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    with pa.input_stream(str(path), compression="detect") as stream:
        part = stream.read(text.BYTES_AT_ONCE)
        if part.startswith(text.UTF16_MARKS):
            return "utf-16"
        if b"\0" in part[: text.MOST_PREAMBLE]:
            return "utf-16-le" if part[1:2] == b"\0" else "utf-16-be"
        try:
            while part:
                decoder.decode(part)
                part = stream.read(text.BYTES_AT_ONCE)
        except UnicodeDecodeError:
            return "cp1252"
    return None


def _guess_header(lines: Sequence[str], named: Sequence[str]) -> tuple[int, text.Layout] | None:
    """The number of lines before the header, and the layout that it has. Names that make sense are best."""
    for sensible in (True, False):
        for skipped, line in enumerate(lines):
            following = [one for one in lines[skipped + 1 :] if one.strip()][:LINES_AFTER]
            headers = [
                (len(names), one, names) for one in text.SEPARATORS if (names := _names(line, one))
            ]
            for fields, separator, names in sorted(headers, reverse=True):
                is_known = bool(named) or bool(likely_pairs(names))
                if (is_known or not sensible) and all(like(one, names) for one in named):
                    even = [len(text.split_header(one, separator)) == fields for one in following]
                    if sum(even) >= ENOUGH * len(even) and (even or sensible):
                        return skipped, text.Layout(tuple(names), separator)
    return None


def _names(line: str, separator: str) -> list[str]:
    """The names of columns in a line; none if it cannot be a header."""
    names = text.split_header(line, separator)
    is_header = len(names) > 1 and len(set(names)) == len(names)
    return names if is_header and not any(map(NUMBER.match, names)) else []


def kind_of(texts: Sequence[str]) -> str:
    """The kind of most of some texts."""
    known = [text.strip() for text in texts if text.strip()]
    if not known:
        return NOTHING
    kinds = {WHOLE_NUMBERS: WHOLE, NUMBERS: NUMBER, COMMA_NUMBERS: WITH_COMMA, TIMES: TIME}
    for kind, pattern in kinds.items():
        if sum(pattern.match(text) is not None for text in known) >= ENOUGH * len(known):
            return kind
    forms = likely_formats(known)
    return f"{TIMES} like {forms[0]}" if forms else TEXT


def decimal_of(kinds: Sequence[str]) -> str:
    return COMMA if COMMA_NUMBERS in kinds else POINT


def unit_of(largest: float) -> str:
    """The unit in which a number is a time of this or the next century."""
    for unit, least in (("ns", 1e17), ("us", 1e14), ("ms", 1e11)):
        if largest >= least:
            return unit
    return "s"
