"""Finds the size of a column of a Parquet file without decoding it.

A Parquet file of a few kilobytes may hold billions of values, because equal ones are stored as a number of
repeats. The footer may be wrong about them, and pyarrow goes by the pages. So this module reads the headers
of the pages, one after the other: they are short, and say how many values follow. Releases are written with
pages of Parquet 1.0; any other page is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

DATA_PAGE, DICTIONARY_PAGE = 0, 2
PLAIN, PLAIN_DICTIONARY, RLE_DICTIONARY = 0, 2, 8
LONGEST_HEADER = 4096  # bytes; statistics of a page may hold two of its values
DEEPEST = 3  # a page header holds that of the data, which holds statistics
VALUES_PER_PAGE = 4096  # at least, as written here, but for the last page of each column and group
BYTES_PER_PAGE = 2**19  # or else at least so many bytes, where values are long
SPARE_PAGES = 16

# Kinds of fields in Thrift's compact protocol.
STOP, TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, STRUCT = 0, 1, 2, 3, 4, 5, 6, 7, 8, 12


class PageError(Exception):
    """Pages that no release has."""


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a column once it is decoded."""

    values: int
    page_bytes: int  # of all its pages, decompressed
    has_dictionary: bool


def column_size(source: Any, chunk: Any) -> Size:
    """The size of one column in one group of rows; `source` is the file, `chunk` what its footer says."""
    place = chunk.data_page_offset
    if chunk.has_dictionary_page and chunk.dictionary_page_offset is not None:
        place = min(place, chunk.dictionary_page_offset)
    end, values, held, dictionaries, pages = place + chunk.total_compressed_size, 0, 0, 0, 0
    while values < chunk.num_values:
        header, length = _Fields(source.read_at(LONGEST_HEADER, place)).read()
        kind, size, stored = (_whole(header.get(number)) for number in (1, 2, 3))
        about = header.get(5 if kind == DATA_PAGE else 7)
        if kind not in (DATA_PAGE, DICTIONARY_PAGE) or not isinstance(about, dict):
            raise PageError("a page of a kind that no release has")
        if about.get(2) not in (PLAIN, PLAIN_DICTIONARY, RLE_DICTIONARY):
            raise PageError("values are encoded as in no release")
        pages, held, place = pages + 1, held + size, place + length + stored
        if kind == DATA_PAGE:
            values += _whole(about.get(1))
            dictionaries += about.get(2) != PLAIN
        else:
            dictionaries += 1
        most = SPARE_PAGES + chunk.num_values / VALUES_PER_PAGE + held / BYTES_PER_PAGE
        if place > end or pages > most:
            raise PageError("pages that no release has")
    if values != chunk.num_values:
        raise PageError("pages hold another number of values than they are said to")
    return Size(values, held, dictionaries > 0)


def _whole(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise PageError("a page header without its numbers")
    return value


class _Fields:
    """A struct in Thrift's compact protocol, as a dictionary of the fields that matter here."""

    def __init__(self, content: bytes) -> None:
        self._content, self._place = content, 0

    def read(self) -> tuple[dict[int, Any], int]:
        """The fields by their numbers, and how many bytes they take."""
        try:
            return self._struct(DEEPEST), self._place
        except IndexError:
            raise PageError("a page header that has no end") from None

    def _struct(self, deepest: int) -> dict[int, Any]:
        if deepest == 0:
            raise PageError("a page header that is nested too deep")
        fields: dict[int, Any] = {}
        number = 0
        while (head := self._byte()) != STOP:
            number = number + (head >> 4) if head >> 4 else self._zigzag()
            fields[number] = self._value(head & 15, deepest)
        return fields

    def _value(self, kind: int, deepest: int) -> Any:
        if kind in (TRUE, FALSE):
            return kind == TRUE
        if kind in (I16, I32, I64):
            return self._zigzag()
        if kind == STRUCT:
            return self._struct(deepest - 1)
        if kind in (BYTE, DOUBLE, BINARY):  # which nothing here asks for
            length = {BYTE: 1, DOUBLE: 8}.get(kind) or self._varint()
            self._place += length
            return None
        raise PageError("a field that no page header has")

    def _byte(self) -> int:
        found = self._content[self._place]
        self._place += 1
        return found

    def _varint(self) -> int:
        found = shift = 0
        while (byte := self._byte()) & 128:
            found, shift = found | (byte & 127) << shift, shift + 7
            if shift > 63:
                raise PageError("a number that is too long")
        return found | byte << shift

    def _zigzag(self) -> int:
        found = self._varint()
        return found >> 1 ^ -(found & 1)
