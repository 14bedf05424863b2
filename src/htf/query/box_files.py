"""Files of boxes: text with the columns of `htf.query.tables`, and any other columns.

The separator is the one that finds the names of the edges in the first line. Edges are numbers, with
decimal commas allowed if the separator is not a comma. Every other column is kept with the answers as it
was written: it becomes numbers only if that loses nothing, so that a code such as 00123 stays as it is.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any

from htf.errors import InputError
from htf.files import is_file
from htf.frame.domain import Domain
from htf.query.asked import AskedRows
from htf.query.tables import edge_places, rows_of_table
from htf.query.where import Where

if TYPE_CHECKING:
    import pyarrow as pa

SEPARATORS = (",", ";", "\t", "|")
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read_box_file(path: Path, domain: Domain, where: Where) -> AskedRows:
    """Read boxes, with the columns that are not edges. Further axes without columns take their range from `where`, or are whole."""
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
    # A table without any edge has no rows, and fails because columns are missing.
    rows = rows_of_table(pa.table(numbers), domain, where, str(path))
    return AskedRows(domain, rows, {n: _as_given(table[n]) for n in header if n not in edges})


def _read_utf8(path: Path) -> bytes:
    if not is_file(path):
        raise InputError(f"there is no file {path} with boxes")
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
    """The names of the columns, and the separator that finds the most edges among them."""
    line = data.split(b"\n", 1)[0].decode().rstrip("\r")
    headers = [(_split(line, separator), separator) for separator in SEPARATORS]
    return max(headers, key=lambda header: sum(name in edges for name in header[0]))


def _split(line: str, separator: str) -> list[str]:
    """The names of the columns. One without a name, such as pandas' index, is called by its place."""
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
        if not data.partition(b"\n")[2].strip():  # Arrow refuses a header without rows
            return pa.table({name: pa.array([], pa.string()) for name in header})
        raise InputError(f"cannot read boxes from {path}: {error}") from None


def _as_edges(column: pa.ChunkedArray, name: str, separator: str, path: Path) -> pa.ChunkedArray:
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = pc.utf8_trim_whitespace(column)
    if separator != ",":
        texts = pc.replace_substring(texts, ",", ".")
    numbers = _cast(texts, pa.float64())
    if numbers is None:
        row = next(row for row, text in enumerate(texts) if _cast(text, pa.float64()) is None)
        raise InputError(
            f"{path} must have numbers in the column {name}, got {column[row].as_py()!r} in row {row} "
            "(counted from 0)"
        )
    return numbers


def _cast(texts: Any, kind: pa.DataType) -> Any:
    """Texts as numbers; None if some are none."""
    import pyarrow as pa

    try:
        return texts.cast(kind)
    except pa.ArrowInvalid:
        return None


def _as_given(column: pa.ChunkedArray) -> pa.Array:
    """Numbers if writing them again gives the same text, else text. An empty field in a column of
    numbers is missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = column.combine_chunks()
    filled = pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column)
    if filled.null_count == len(filled):
        return column
    for kind in (pa.int64(), pa.float64()):
        numbers = _cast(filled, kind)
        is_same = numbers is not None and numbers.cast(pa.string()).equals(filled)
        if is_same and pc.all(pc.is_finite(numbers)).as_py():
            return numbers
    return column
