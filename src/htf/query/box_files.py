"""Files of boxes: text with the columns of `htf.query.tables`, and others that the analyst keeps there.

The separator is that with which the first line names the edges. Edges are numbers, and may have decimal
commas where the separator is another. Every other column is kept with the answers as it was written: a
column becomes numbers only where that loses nothing, so that a code such as 00123 stays what it is.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from htf.errors import InputError
from htf.files import is_file
from htf.frame.domain import Domain, FloatArray
from htf.query.tables import edge_places, rows_of_table
from htf.query.where import Where

if TYPE_CHECKING:
    import pyarrow as pa

SEPARATORS = (",", ";", "\t", "|")
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class BoxFile(NamedTuple):
    """Full rows, and the columns that are no edges."""

    rows: FloatArray
    given: dict[str, pa.Array]


def read_box_file(path: Path, domain: Domain, where: Where) -> BoxFile:
    """Further axes that the file has no columns of are those of `where`, or whole."""
    import pyarrow as pa

    data = _read_utf8(path)
    edges = edge_places(domain)
    header, separator = _layout(data, edges)
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise InputError(f"{path} has two columns {twice[0]!r}: rename one of them")
    table = _read_texts(data, header, separator, path)
    numbers = {
        name: _as_edges(table[name], name, separator, path) for name in header if name in edges
    }
    # Without edges a table would have no rows: the error is that columns are missing.
    rows = rows_of_table(pa.table(numbers), domain, where, str(path))
    return BoxFile(rows, {n: _as_given(table[n]) for n in header if n not in edges})


def _read_utf8(path: Path) -> bytes:
    if not is_file(path):
        raise InputError(f"there is no file {path}")
    try:
        data = path.read_bytes()
        data.decode("utf-8")
    except OSError as error:
        raise InputError(f"cannot read boxes from {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"cannot read boxes from {path}: line {line} is not UTF-8. Save it as CSV in UTF-8"
        ) from None
    return data.removeprefix(BYTE_ORDER_MARK)


def _layout(data: bytes, edges: dict[str, int]) -> tuple[list[str], str]:
    """The names of the columns, and the separator with which most of the edges are among them."""
    line = data.split(b"\n", 1)[0].decode().rstrip("\r")
    headers = [(_split(line, separator), separator) for separator in SEPARATORS]
    return max(headers, key=lambda found: sum(name in edges for name in found[0]))


def _split(line: str, separator: str) -> list[str]:
    """A column without a name, such as that of pandas' row numbers, is called by its place."""
    try:
        names = next(csv.reader([line], delimiter=separator, skipinitialspace=True), [])
    except csv.Error:  # a line of a megabyte
        names = []
    return [name.strip() or f"column {place}" for place, name in enumerate(names, start=1)]


def _read_texts(data: bytes, header: list[str], separator: str, path: Path) -> pa.Table:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    try:
        return arrow_csv.read_csv(
            pa.BufferReader(data),
            read_options=arrow_csv.ReadOptions(column_names=header, skip_rows=1),
            parse_options=arrow_csv.ParseOptions(delimiter=separator, newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(header, pa.string()), strings_can_be_null=False
            ),
        )
    except pa.ArrowException as error:
        if not data.partition(b"\n")[2].strip():  # which Arrow refuses
            return pa.table({name: pa.array([], pa.string()) for name in header})
        raise InputError(f"cannot read boxes from {path}: {error}") from None


def _as_edges(column: pa.ChunkedArray, name: str, separator: str, path: Path) -> pa.ChunkedArray:
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = pc.utf8_trim_whitespace(column)
    if separator != ",":
        texts = pc.replace_substring(texts, ",", ".")
    try:
        return texts.cast(pa.float64())
    except pa.ArrowInvalid:
        row = next(row for row, text in enumerate(texts) if not _is_number(text))
        raise InputError(
            f"{path} must have numbers in the column {name}, got {column[row].as_py()!r} in row {row} "
            "(counted from 0)"
        ) from None


def _is_number(text: pa.Scalar) -> bool:
    import pyarrow as pa

    try:
        text.cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    return True


def _as_given(column: pa.ChunkedArray) -> pa.Array:
    """Numbers where they are written in the same way again, else text. An empty field of a column of
    numbers is missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = column.combine_chunks()
    filled = pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column)
    if filled.null_count == len(filled):
        return column
    for kind in (pa.int64(), pa.float64()):
        try:
            numbers = filled.cast(kind)
        except pa.ArrowInvalid:
            continue
        if numbers.cast(pa.string()).equals(filled) and pc.all(pc.is_finite(numbers)).as_py():
            return numbers
    return column
