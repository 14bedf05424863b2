"""From points, wherever they are, to a FrequencyMatrix. Sensitive.

One SQL expression does it in DuckDB, for files and for tables in memory: keep the points inside the
bounds, find each one's cell, count per cell. Only non-empty cells come back.

How a file is read must not depend on its records, or one record could change what becomes of the
others. So nothing about a CSV file is guessed from its rows: the first line names the columns and,
with them, the separator; fields may be quoted with "; and a field that is not a number counts as
missing. DuckDB's own error messages quote the data, so none of them is passed on or kept.
"""

from __future__ import annotations

import csv
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from htf.domain import Axis, Domain, FloatArray
from htf.errors import InputError
from htf.frequency import MOST_RECORDS, FrequencyMatrix, unravel

if TYPE_CHECKING:
    import duckdb

T = TypeVar("T")
Progress = Callable[[float], None]  # is told the share done, from 0 to 1

TEXT_FILES = (".csv", ".tsv", ".txt", ".gz", ".zst")
PARQUET_FILES = (".parquet", ".geoparquet", ".pq")
SEPARATORS = (",", ";", "\t", "|")
LONGEST_HEADER = 1 << 20
BYTES_AT_ONCE = 1 << 24
NUMBERS = (
    "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE", "DECIMAL", "NULL",
)  # fmt: skip
POLL_SECONDS = 0.1
WEIGHT = "weight"  # the column of public points that says how much each counts


class Relation(NamedTuple):
    """What to select from, with its arguments; and, of a text file, the fields as they stand."""

    sql: str
    arguments: list[str]
    text_sql: str = ""

    @property
    def name(self) -> str:
        return self.arguments[0] if self.arguments else "the table"


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
    names = _column_names(source, domain, columns)
    with _engine() as connection:
        relation = _open(connection, source, names)
        _check_columns(connection, relation, names)
        found = _run(connection, relation, _counting_query(relation, domain, names), progress)
        if len(found["cell"]) == 0 and relation.text_sql:
            _refuse_text(connection, relation, names)
    order = np.argsort(found["cell"])  # the engine gives them in any order
    keys = np.asarray(found["cell"], dtype=np.int64)[order]
    counts = np.asarray(found["records"], dtype=np.int64)[order]
    if int(counts.sum()) > MOST_RECORDS:
        raise InputError("more than 2**40 records are not supported")
    return FrequencyMatrix(domain, unravel(keys, domain.shape), counts)


def weigh_points(path: Path, domain: Domain, columns: Sequence[str]) -> FloatArray:
    """Public points of each cell, all cells; of points with a column `weight`, the sums of that.

    A cell with a negative weight has that weight, and one with a missing one NaN, to be refused by.
    """
    names = _column_names(path, domain, columns)
    with _engine() as connection:
        relation = _open(connection, path, names)
        all_columns = relation._replace(sql=relation.text_sql or relation.sql)
        if WEIGHT in _column_types(connection, all_columns):
            relation = _open(connection, path, [*names, WEIGHT])
            _check_columns(connection, relation, [*names, WEIGHT])
            query = _counting_query(relation, domain, names, WEIGHT)
        else:
            _check_columns(connection, relation, names)
            query = _counting_query(relation, domain, names)
        found = _run(connection, relation, query, None)
    sums = np.asarray(found["records"], dtype=np.float64)
    least = np.asarray(found.get("least", sums), dtype=np.float64)
    weights = np.zeros(domain.size)
    weights[np.asarray(found["cell"], dtype=np.int64)] = np.where(least < 0, least, sums)
    return weights.reshape(domain.shape)


def has_columns(path: Path, names: Sequence[str]) -> bool:
    """Whether a file can be read and has these columns."""
    try:
        with _engine() as connection:
            _check_columns(connection, _open(connection, path, list(names)), list(names))
    except InputError:
        return False
    return True


@contextmanager
def _engine() -> Iterator[duckdb.DuckDBPyConnection]:
    import duckdb

    with (
        tempfile.TemporaryDirectory(prefix="htf-") as folder,  # for what does not fit in memory
        duckdb.connect(config={"temp_directory": folder}) as connection,
    ):
        yield connection


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


def _open(connection: duckdb.DuckDBPyConnection, source: Any, names: list[str]) -> Relation:
    if isinstance(source, (str, Path)):
        return _reader(Path(source), names)
    table = _to_arrow(source, names)
    _quietly(lambda: connection.register("points", table), type(source).__name__)
    return Relation("points", [])


def _reader(path: Path, names: list[str]) -> Relation:
    if not path.is_file():
        raise InputError(f"there is no file {path}")
    if set(str(path)) & set("*?[]"):  # which DuckDB would take for a pattern of several files
        raise InputError(f"the name {path} must not contain *, ? or brackets: rename the file")
    suffix = path.suffix.lower()
    if suffix in PARQUET_FILES:
        return Relation("read_parquet(?, hive_partitioning=false)", [str(path)])
    if suffix in TEXT_FILES:
        return _text_reader(path, names)
    known = ", ".join(sorted((*TEXT_FILES, *PARQUET_FILES)))
    raise InputError(f"cannot tell what {path.name} is: the name must end in one of {known}")


def _text_reader(path: Path, names: list[str]) -> Relation:
    header, separator = _read_header(path, names)
    if _quietly(lambda: _count_quotes(path), str(path)) % 2:
        raise InputError(
            f"{path} has a quoted field that never ends: the reader would take all that follows for it"
        )
    columns = ", ".join(f"{_quoted(name)}: 'VARCHAR'" for name in header)
    options = (
        "auto_detect=false, header=true, quote='\"', escape='\"', strict_mode=true, "
        # In parallel a quoted line break near a boundary of the scan is refused, or not, by chance.
        "parallel=false, hive_partitioning=false"
    )
    text = f"read_csv(?, delim='{separator}', columns={{{columns}}}, {options})"
    numbers = ", ".join(f"TRY_CAST({_quoted(n)} AS DOUBLE) AS {_quoted(n)}" for n in names)
    return Relation(f"(SELECT {numbers} FROM {text})", [str(path)], text)


def _read_header(path: Path, names: list[str]) -> tuple[list[str], str]:
    """The names in the first line, and the separator with which they include those we need."""
    line = _quietly(lambda: _first_line(path), str(path))
    for separator in SEPARATORS:
        header = _split_header(line, separator)
        if set(names) <= set(header) and len(set(header)) == len(header):
            return header, separator
    wanted = ", ".join(map(repr, names))
    raise InputError(
        f"the first line of {path} must name the columns, each once, and {wanted} among them "
        "(it is not quoted here, since it may be data)"
    )


def _split_header(line: str, separator: str) -> list[str]:
    try:
        rows = csv.reader([line], delimiter=separator, skipinitialspace=True)
        return [name.strip() for name in next(rows, [])]
    except csv.Error:  # a line of a megabyte, or one that does not end
        return []


def _first_line(path: Path) -> str:
    import pyarrow as pa

    with pa.input_stream(str(path), compression="detect") as stream:
        start: bytes = stream.read(LONGEST_HEADER)
    return start.split(b"\n")[0].decode("utf-8-sig").rstrip("\r")


def _count_quotes(path: Path) -> int:
    import pyarrow as pa

    quotes = 0
    with pa.input_stream(str(path), compression="detect") as stream:
        while part := stream.read(BYTES_AT_ONCE):
            quotes += part.count(b'"')
    return quotes


def _to_arrow(source: Any, names: list[str]) -> Any:
    """Arrow is what all tables have in common; columns are not copied where they need not be."""
    import pyarrow as pa

    def convert() -> Any:
        if _is_arrays(source):
            return pa.table(dict(zip(names, map(_as_array, source), strict=True)))
        if isinstance(source, Mapping):
            return pa.table({name: _as_array(source[name]) for name in names if name in source})
        if hasattr(source, "to_arrow"):  # Polars
            return source.select([name for name in names if name in source.columns]).to_arrow()
        if hasattr(source, "__dataframe__") and hasattr(source, "loc"):  # pandas
            kept = source[[name for name in names if name in source.columns]]
            return pa.Table.from_pandas(kept, preserve_index=False)
        return pa.table(source)

    try:
        return convert()
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        pass  # and out of its reach, for the message may quote the data
    raise InputError(
        f"cannot read points from a {type(source).__name__}: give a file name, a pandas, Polars "
        f"or Arrow table, or {len(names)} arrays of numbers of the same length"
    )


def _as_array(values: Any) -> Any:
    """Masked values are missing ones."""
    if np.ma.isMaskedArray(values):
        return np.ma.filled(values.astype(np.float64), np.nan)
    return np.asarray(values)


def _check_columns(
    connection: duckdb.DuckDBPyConnection, relation: Relation, names: list[str]
) -> None:
    types = _column_types(connection, relation)
    for name in names:
        if name not in types:
            there = ", ".join(map(repr, types))
            raise InputError(f"there is no column {name!r}; there are {there or 'none'}")
        if not types[name].lstrip("U").startswith(NUMBERS):
            raise InputError(f"column {name!r} must hold numbers, but it holds {types[name]}")


def _column_types(connection: duckdb.DuckDBPyConnection, relation: Relation) -> dict[str, str]:
    describe = f"DESCRIBE SELECT * FROM {relation.sql}"
    rows = _quietly(
        lambda: connection.execute(describe, relation.arguments).fetchall(), relation.name
    )
    return {row[0]: str(row[1]).split("(")[0].strip('"') for row in rows}


def _refuse_text(
    connection: duckdb.DuckDBPyConnection, relation: Relation, names: list[str]
) -> None:
    """A column of a text file in which nothing at all is a number is the wrong column."""
    counts = ", ".join(
        f"count({column}) > 0 AND count(TRY_CAST({column} AS DOUBLE)) = 0"
        for column in map(_quoted, names)
    )
    query = f"SELECT {counts} FROM {relation.text_sql}"
    rows = _quietly(lambda: connection.execute(query, relation.arguments).fetchall(), relation.name)
    for name, only_text in zip(names, rows[0], strict=True):
        if only_text:
            raise InputError(f"column {name!r} must hold numbers, but it holds text")


def _counting_query(
    relation: Relation, domain: Domain, names: list[str], weight: str | None = None
) -> str:
    """Names of our own throughout, so that none of the data's can stand for something else."""
    places = [f"p{number}" for number in range(len(names))]
    values = ", ".join(
        f"CAST({_quoted(name)} AS DOUBLE) AS {place}"
        for name, place in zip(names, places, strict=True)
    )
    inside, cell, kept, told = [], "0", "", "count(*) AS records"
    if weight is not None:
        values += f", coalesce(CAST({_quoted(weight)} AS DOUBLE), 'NaN') AS worth"
        kept, told = ", worth", "sum(worth) AS records, min(worth) AS least"
    for axis, place in zip(domain.axes, places, strict=True):
        # DuckDB sorts NaN above every number, so `< high` drops it along with infinity.
        inside.append(f"{place} >= {_number(axis.low)} AND {place} < {_number(axis.high)}")
        cell = f"({cell}) * {axis.cells} + {_cell_of(axis, place)}"
    cells = f"SELECT {cell} AS cell{kept} FROM (SELECT {values} FROM {relation.sql}) WHERE {' AND '.join(inside)}"
    return f"SELECT cell, {told} FROM ({cells}) GROUP BY cell"


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
    relation: Relation,
    query: str,
    progress: Progress | None,
) -> dict[str, Any]:
    def count() -> dict[str, Any]:
        return dict(connection.execute(query, relation.arguments).fetchnumpy())

    if progress is None:
        return _quietly(count, relation.name)
    done = threading.Event()
    watcher = threading.Thread(target=_watch, args=(connection, done, progress), daemon=True)
    watcher.start()
    try:
        return _quietly(count, relation.name)
    finally:
        done.set()
        watcher.join()


def _watch(
    connection: duckdb.DuckDBPyConnection, done: threading.Event, progress: Progress
) -> None:
    while not done.wait(POLL_SECONDS):
        progress(max(0.0, min(1.0, connection.query_progress() / 100)))


def _quietly(work: Callable[[], T], what: str) -> T:
    """Do the work, or raise an error that neither quotes what the reader said nor keeps it."""
    import duckdb
    import pyarrow as pa

    kind = ""
    try:
        return work()
    except (duckdb.Error, pa.ArrowException, OSError, UnicodeDecodeError) as error:
        kind = type(error).__name__.removesuffix("Exception")
    raise InputError(
        f"cannot read {what} ({kind}): is it a complete CSV or Parquet file that may be read? "
        "(The reader's own message is withheld, since it may quote the data.)"
    )
