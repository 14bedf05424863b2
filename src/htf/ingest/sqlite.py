"""Rows of an SQLite file, as text. Sensitive.

SQLite has columns of mixed types, few functions and slow joins, so its rows are passed on unchanged.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa

from htf.errors import InputError

ROWS_AT_ONCE = 100_000


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


def read_as_text(
    connection: sqlite3.Connection, query: str, names: Sequence[str]
) -> pa.RecordBatchReader:

    cursor = connection.execute(query)
    schema = pa.schema([(name, pa.string()) for name in names])

    def batches() -> Iterator[pa.RecordBatch]:
        while rows := cursor.fetchmany(ROWS_AT_ONCE):
            columns = zip(*rows, strict=True)
            yield pa.record_batch(list(map(texts, columns)), schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


def texts(column: Iterable[Any]) -> pa.Array:
    """Values of a column as text."""

    return pa.array(map(_as_text, column), pa.string())


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
