"""Rows of an SQLite file, as text. Sensitive.

SQLite has columns of mixed types, few functions and slow joins, so its rows are passed on unchanged.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa

from htf.errors import InputError

ROWS_AT_ONCE = 100_000
POINT = pa.struct([("x", pa.float64()), ("y", pa.float64())])


def connect(name: str) -> sqlite3.Connection:
    """Connect for reading only, and from any thread, because DuckDB fetches rows in its own thread."""
    address = f"{Path(name).absolute().as_uri()}?mode=ro"
    connection = sqlite3.connect(address, uri=True, check_same_thread=False)
    connection.text_factory = _read_text
    return connection


def _read_text(data: bytes) -> str | None:
    """Decode text. Text that is not UTF-8 is missing, or one row would decide whether all others can be
    read."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def query_of_table(connection: sqlite3.Connection, table: str, name: str) -> str:
    if _kind(connection, table) is None:
        raise InputError(f"there is no table {table!r} in {name}")
    return f"SELECT * FROM {quoted(table)}"


def is_view(connection: sqlite3.Connection, table: str) -> bool:
    return _kind(connection, table) != "table"


def columns_of(connection: sqlite3.Connection, query: str) -> tuple[str, ...]:
    with closing(connection.execute(f"SELECT * FROM (\n{query}\n) LIMIT 0")) as cursor:
        return tuple(column[0] for column in cursor.description)


def texts(column: Iterable[Any]) -> pa.Array:
    """Values of a column as text."""
    return pa.array(map(_as_text, column), pa.string())


def schema_of(names: Sequence[str], geometry: str | None = None) -> pa.Schema:
    """Columns of text, and perhaps one of points."""
    return pa.schema([(name, POINT if name == geometry else pa.string()) for name in names])


def read_as_text(
    name: str,
    query: str,
    names: Sequence[str],
    geometry: str | None = None,
    points: Callable[[Sequence[Any]], pa.Array] = texts,
) -> pa.RecordBatchReader:
    """The rows of a query in a file, whose columns have these names. `points` reads the column of points."""
    connection, schema = connect(name), schema_of(names, geometry)
    cursor = connection.execute(query)

    def batches() -> Iterator[pa.RecordBatch]:
        with closing(connection):
            while rows := cursor.fetchmany(ROWS_AT_ONCE):
                columns = zip(names, zip(*rows, strict=True), strict=True)
                arrays = [(points if n == geometry else texts)(column) for n, column in columns]
                yield pa.record_batch(arrays, schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


def _as_text(value: Any) -> str | None:
    """A value as text: numbers with every digit that matters; bytes are missing."""
    if value is None or isinstance(value, bytes):
        return None
    return repr(value) if isinstance(value, float) else str(value)


def _kind(connection: sqlite3.Connection, table: str) -> str | None:
    query = "SELECT type FROM sqlite_master WHERE name = ? AND type IN ('table', 'view')"
    found = connection.execute(query, (table,)).fetchone()
    return None if found is None else str(found[0])


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
