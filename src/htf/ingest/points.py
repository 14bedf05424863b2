"""From points, wherever they are, to a FrequencyMatrix. Sensitive.

One SQL expression does it in DuckDB, for files and for tables in memory: keep the points inside the
bounds, find each one's cell, count per cell. Only non-empty cells come back.

DuckDB's own error messages quote the data, so none of them is passed on.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from htf.domain import Axis, Domain
from htf.errors import InputError
from htf.frequency import FrequencyMatrix, unravel

if TYPE_CHECKING:
    import duckdb

Progress = Callable[[float], None]  # is told the share done, from 0 to 1

READERS = {
    ".csv": "read_csv(?)",
    ".tsv": "read_csv(?)",
    ".txt": "read_csv(?)",
    ".gz": "read_csv(?)",
    ".zst": "read_csv(?)",
    ".parquet": "read_parquet(?)",
    ".geoparquet": "read_parquet(?)",
    ".pq": "read_parquet(?)",
}
NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE", "DECIMAL")
POLL_SECONDS = 0.1


def read_points(
    source: Any,
    domain: Domain,
    columns: Sequence[str] = ("lon", "lat"),
    *,
    progress: Progress | None = None,
) -> FrequencyMatrix:
    """Count points per cell.

    `source` is the path of a CSV or Parquet file; a pandas, Polars or Arrow table; a mapping from
    column names to arrays; or a sequence of arrays, one for each axis. `columns` names one column
    for each axis of the domain, in order. Points outside the bounds, on their upper edge, missing,
    NaN or infinite are left out, and not reported.
    """
    import duckdb

    names = _column_names(source, domain, columns)
    with duckdb.connect() as connection:
        relation, arguments = _open(connection, source, names)
        _check_columns(connection, relation, arguments, names)
        query = _counting_query(relation, domain, names)
        try:
            found = _run(connection, query, arguments, progress)
        except duckdb.Error as error:
            raise InputError(_reading_failed(source, error)) from None
    keys = np.asarray(found["cell"], dtype=np.int64)
    counts = np.asarray(found["records"], dtype=np.int64)
    return FrequencyMatrix(domain, unravel(keys, domain.shape), counts)


def _column_names(source: Any, domain: Domain, columns: Sequence[str]) -> list[str]:
    if _is_arrays(source):
        return list(domain.names)
    if len(columns) != domain.dimensions:
        raise InputError(
            f"the map has {domain.dimensions} axes ({', '.join(domain.names)}), so it needs as many "
            f"columns, got {', '.join(columns)}"
        )
    return list(columns)


def _is_arrays(source: Any) -> bool:
    return isinstance(source, (list, tuple, np.ndarray))


def _open(
    connection: duckdb.DuckDBPyConnection, source: Any, names: list[str]
) -> tuple[str, list[str]]:
    """What to select from, and the arguments it takes."""
    if isinstance(source, (str, Path)):
        return _reader(Path(source)), [str(source)]
    connection.register("points", _to_arrow(source, names))
    return "points", []


def _reader(path: Path) -> str:
    if not path.is_file():
        raise InputError(f"there is no file {path}")
    if path.suffix.lower() not in READERS:
        known = ", ".join(sorted(READERS))
        raise InputError(f"cannot tell what {path.name} is: the name must end in one of {known}")
    return READERS[path.suffix.lower()]


def _to_arrow(source: Any, names: list[str]) -> Any:
    """Arrow is what all tables have in common; columns are not copied where they need not be."""
    import pyarrow as pa

    try:
        if _is_arrays(source):
            return pa.table(
                dict(zip(names, (np.asarray(values) for values in source), strict=True))
            )
        if isinstance(source, Mapping):
            return pa.table({name: np.asarray(source[name]) for name in names if name in source})
        if hasattr(source, "to_arrow"):  # Polars
            return source.select([name for name in names if name in source.columns]).to_arrow()
        if hasattr(source, "__dataframe__") and hasattr(source, "loc"):  # pandas
            kept = source[[name for name in names if name in source.columns]]
            return pa.Table.from_pandas(kept, preserve_index=False)
        return pa.table(source)
    except (pa.ArrowException, TypeError, ValueError):
        raise InputError(
            f"cannot read points from a {type(source).__name__}: give a file name, a pandas, Polars "
            f"or Arrow table, or {len(names)} arrays of numbers of the same length"
        ) from None


def _check_columns(
    connection: duckdb.DuckDBPyConnection, relation: str, arguments: list[str], names: list[str]
) -> None:
    import duckdb

    try:
        rows = connection.execute(f"DESCRIBE SELECT * FROM {relation}", arguments).fetchall()
    except duckdb.Error as error:
        raise InputError(_reading_failed(arguments[0] if arguments else None, error)) from None
    types = {row[0]: str(row[1]) for row in rows}
    for name in names:
        if name not in types:
            raise InputError(f"there is no column {name!r}; {_name_columns(list(types))}")
        if not types[name].lstrip("U").startswith(NUMBERS):
            raise InputError(f"column {name!r} must hold numbers, but it holds {types[name]}")


def _name_columns(names: list[str]) -> str:
    """The columns there are. Without a header row a CSV's first record would pass for them."""
    if any(_looks_like_a_number(name) for name in names):
        return "does the file start with a row of column names? (Not quoted: it may be data.)"
    return f"there are {', '.join(map(repr, names))}"


def _looks_like_a_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True


def _counting_query(relation: str, domain: Domain, names: list[str]) -> str:
    inside, cell = [], "0"
    for axis, name in zip(domain.axes, names, strict=True):
        column = f"CAST({_quoted(name)} AS DOUBLE)"
        # DuckDB sorts NaN above every number, so `< high` drops it along with infinity.
        inside.append(f"{column} >= {_number(axis.low)} AND {column} < {_number(axis.high)}")
        cell = f"({cell}) * {axis.cells} + {_cell_of(axis, column)}"
    return (
        f"SELECT {cell} AS cell, count(*) AS records FROM {relation} "
        f"WHERE {' AND '.join(inside)} GROUP BY cell"
    )


def _cell_of(axis: Axis, column: str) -> str:
    """As Axis.to_cells; a point just below the upper edge must not be rounded across it."""
    cell = f"({column} - {_number(axis.low)}) * {_number(axis.cells_per_unit)}"
    return f"least(CAST(floor({cell}) AS BIGINT), {axis.cells - 1})"


def _number(value: float) -> str:
    return f"CAST('{value!r}' AS DOUBLE)"  # as text, so that every bit arrives


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _run(
    connection: duckdb.DuckDBPyConnection,
    query: str,
    arguments: list[str],
    progress: Progress | None,
) -> dict[str, Any]:
    if progress is None:
        return dict(connection.execute(query, arguments).fetchnumpy())
    done = threading.Event()
    watcher = threading.Thread(target=_watch, args=(connection, done, progress), daemon=True)
    watcher.start()
    try:
        return dict(connection.execute(query, arguments).fetchnumpy())
    finally:
        done.set()
        watcher.join()


def _watch(
    connection: duckdb.DuckDBPyConnection, done: threading.Event, progress: Progress
) -> None:
    started = time.monotonic()
    while not done.wait(POLL_SECONDS):
        if time.monotonic() - started > POLL_SECONDS:
            progress(max(0.0, min(1.0, connection.query_progress() / 100)))


def _reading_failed(source: Any, error: Exception) -> str:
    what = str(source) if isinstance(source, (str, Path)) else f"the {type(source).__name__}"
    kind = type(error).__name__.removesuffix("Exception")
    return (
        f"cannot read {what} ({kind}): is it a complete CSV or Parquet file whose coordinate columns "
        "hold only numbers? (The reader's own message is withheld, since it may quote the data.)"
    )
