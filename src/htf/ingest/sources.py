"""From what a curator has to a table in an engine. Sensitive.

Files and tables in memory are read by DuckDB, or files by Spark; databases, Ibis tables and Spark
DataFrames stay where they are.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from htf.errors import InputError, MissingExtraError
from htf.ingest import sqlite
from htf.ingest.engines import (
    DUCKDB,
    ENGINES,
    SPARK,
    DuckDB,
    Engine,
    Spark,
    open_duckdb,
    open_spark,
    quietly,
)
from htf.ingest.geometry import name_of_crs, read_geo_metadata
from htf.ingest.listing import Listing, list_database, list_files
from htf.ingest.text import Fits, Layout, check_quotes, read_layout

if TYPE_CHECKING:
    import sqlite3

    from ibis.expr.types import Table

DUCKDB_FILES = (".duckdb", ".ddb")
SQLITE_FILES = (".sqlite", ".sqlite3", ".db")
SERVERS = ("postgresql://", "postgres://")
GEOMETRY = "geometry"


@dataclass(frozen=True, slots=True)
class Access:
    """How to get at the points."""

    table: str | None = None  # of a database
    sql: str | None = None  # a query of a database
    engine: str = DUCKDB
    memory: str | None = None  # what the engine may take, such as 4GB

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise InputError(f"the engine must be one of {', '.join(ENGINES)}, got {self.engine!r}")
        if self.table is not None and self.sql is not None:
            raise InputError("give a table or a query of the database, not both")


@dataclass(frozen=True, slots=True)
class Source:
    """A table that is there, and what is known of it without looking at its rows."""

    engine: Engine
    name: str  # for messages
    columns: tuple[str, ...]
    select: Callable[[Sequence[str]], Table]  # of columns that are there
    text: bool = False  # every field is text, as it stands in the file
    of_query: bool = False
    geometry: str | None = None  # a column of points
    crs: str | None = None
    check_unchanged: Callable[[], None] = lambda: None


@contextmanager
def open_source(source: Any, access: Access, fits: Fits, wanted: str) -> Iterator[Source]:
    """`fits` tells of a text file's first line, cut at some separator, whether it may be right."""
    if isinstance(source, (str, Path)):
        opened = _open_name(str(source), access, fits, wanted)
    else:
        if access.table is not None or access.sql is not None:
            raise InputError("a table or a query is for a database: a file's or a server's name")
        opened = _open_object(source, access)
    with opened as found:
        yield found


def _open_name(name: str, access: Access, fits: Fits, wanted: str) -> Any:
    suffix = Path(name).suffix.lower()
    if name.startswith(SERVERS) or suffix in (*DUCKDB_FILES, *SQLITE_FILES):
        if access.engine != DUCKDB:
            raise InputError("a database counts in its own engine: leave --engine out")
        if (access.table is None) == (access.sql is None):
            raise InputError("which table of the database? Give --table NAME, or --sql QUERY")
        return _open_database(name, suffix, access)
    if access.table is not None or access.sql is not None:
        known = ", ".join((*DUCKDB_FILES, *SQLITE_FILES, *SERVERS))
        raise InputError(f"a table or a query is for a database: {known}")
    listing = list_files(name)
    layout = read_layout(listing.paths, fits, wanted) if listing.is_text else None
    return (_files_in_spark if access.engine == SPARK else _files_in_duckdb)(
        listing, layout, access
    )


def _open_object(source: Any, access: Access) -> Any:
    module = type(source).__module__
    if module.startswith("ibis."):
        return _ibis_table(source)
    if module.startswith("pyspark."):
        return _spark_frame(source)
    if access.engine != DUCKDB:
        raise InputError("a table in memory is read by DuckDB: leave the engine out")
    return _in_memory(source, access)


# Files -------------------------------------------------------------------------------------------


@contextmanager
def _files_in_duckdb(listing: Listing, layout: Layout | None, access: Access) -> Iterator[Source]:
    with open_duckdb(access.memory) as engine:
        engine.read_again = layout is None
        paths = ", ".join(_text(str(path)) for path in listing.paths)
        if layout is None:
            geometry, crs = quietly(lambda: read_geo_metadata(listing.paths[0]), listing.name)
            rows = f"read_parquet([{paths}], hive_partitioning=false)"
        else:
            check_quotes(listing.paths)
            geometry, crs, rows = None, None, _csv_reader(paths, layout)
        columns = _describe(engine, rows, listing.name)
        yield Source(
            engine=engine,
            name=listing.name,
            columns=tuple(columns),
            select=lambda names: _view(engine, rows, columns, names, listing.name),
            text=layout is not None,
            geometry=geometry,
            crs=crs,
            check_unchanged=listing.check_unchanged,
        )


def _csv_reader(paths: str, layout: Layout) -> str:
    columns = ", ".join(f"{_quoted(name)}: 'VARCHAR'" for name in layout.header)
    options = (
        "auto_detect=false, header=true, quote='\"', escape='\"', strict_mode=true, "
        # In parallel a quoted line break near a boundary of the scan is refused, or not, by chance.
        "parallel=false, hive_partitioning=false"
    )
    return f"read_csv([{paths}], delim='{layout.separator}', columns={{{columns}}}, {options})"


def _describe(engine: DuckDB, rows: str, name: str) -> dict[str, str]:
    query = f"DESCRIBE SELECT * FROM {rows}"
    found = quietly(lambda: engine.connection.execute(query).fetchall(), name)
    return {row[0]: str(row[1]) for row in found}


def _view(
    engine: DuckDB, rows: str, types: Mapping[str, str], names: Sequence[str], what: str
) -> Table:
    """Just the columns we need, so that no other's type can be in the way."""

    def column(name: str) -> str:
        plain = _quoted(name)
        return f"CAST({plain} AS BLOB) AS {plain}" if types[name].startswith("GEOMETRY") else plain

    view = _new_name()
    chosen = ", ".join(map(column, names))
    quietly(
        lambda: engine.connection.execute(
            f"CREATE TEMP VIEW {view} AS SELECT {chosen} FROM {rows}"
        ),
        what,
    )
    return quietly(lambda: engine.backend.table(view), what)


@contextmanager
def _files_in_spark(listing: Listing, layout: Layout | None, access: Access) -> Iterator[Source]:
    with open_spark(access.memory) as engine:
        paths = [path.absolute().as_uri() for path in listing.paths]
        geometry, crs = None, None
        if layout is None:
            geometry, crs = quietly(lambda: read_geo_metadata(listing.paths[0]), listing.name)
            frame = quietly(lambda: engine.session.read.parquet(*paths), listing.name)
        else:
            check_quotes(listing.paths)
            frame = quietly(lambda: _csv_in_spark(engine, paths, layout), listing.name)
        yield Source(
            engine=engine,
            name=listing.name,
            columns=tuple(frame.columns),
            select=lambda names: _spark_view(engine, frame, names, listing.name),
            text=layout is not None,
            geometry=geometry,
            crs=crs,
            check_unchanged=listing.check_unchanged,
        )


def _csv_in_spark(engine: Spark, paths: list[str], layout: Layout) -> Any:
    from pyspark.sql.types import StringType, StructField, StructType

    schema = StructType([StructField(name, StringType()) for name in layout.header])
    options = {
        "header": True, "sep": layout.separator, "quote": '"', "escape": '"', "multiLine": True,
        "mode": "FAILFAST", "encoding": "UTF-8",
    }  # fmt: skip
    return engine.session.read.schema(schema).options(**options).csv(paths)


def _spark_view(engine: Spark, frame: Any, names: Sequence[str], what: str) -> Table:
    view = _new_name()

    def make() -> Any:
        frame.select([frame[f"`{name.replace('`', '``')}`"] for name in names]).createTempView(view)
        return engine.backend.table(view)

    return quietly(make, what)


# Databases ---------------------------------------------------------------------------------------


@contextmanager
def _open_database(name: str, suffix: str, access: Access) -> Iterator[Source]:
    if access.sql is not None:
        _check_query(access.sql)
    if name.startswith(SERVERS):
        engine = Engine(_connect_postgres(name))
        try:
            yield _database_source(engine, access, "the database server")
        finally:
            engine.backend.disconnect()
        return
    if not Path(name).is_file():
        raise InputError(f"there is no file {name}")
    listing = list_database(name)
    if suffix in DUCKDB_FILES:
        with open_duckdb(access.memory, name) as engine:
            yield replace(
                _database_source(engine, access, listing.name),
                check_unchanged=listing.check_unchanged,
            )
    else:
        with open_duckdb(access.memory) as engine, closing(sqlite.connect(name)) as connection:
            yield _sqlite_source(engine, connection, access, listing)


def _sqlite_source(
    engine: DuckDB, connection: sqlite3.Connection, access: Access, listing: Listing
) -> Source:
    """A column of SQLite may hold anything in each row, as a text file's does: so it is read as one."""
    query = access.sql or sqlite.query_of_table(connection, str(access.table), listing.name)
    query = query.strip().rstrip(";")

    def select(names: Sequence[str]) -> Table:
        chosen = ", ".join(map(_quoted, names))
        rows = f"SELECT {chosen} FROM ({query})"
        reader = quietly(lambda: sqlite.read_as_text(connection, rows, names), listing.name)
        view = _new_name()
        engine.connection.register(f"{view}_rows", reader)
        copy = f"CREATE TEMP TABLE {view} AS SELECT * FROM {view}_rows"
        quietly(lambda: engine.connection.execute(copy), listing.name)
        return quietly(lambda: engine.backend.table(view), listing.name)

    return Source(
        engine=engine,
        name=listing.name,
        columns=quietly(lambda: sqlite.columns_of(connection, query), listing.name),
        select=select,
        text=True,
        of_query=access.sql is not None or sqlite.is_view(connection, str(access.table)),
        check_unchanged=listing.check_unchanged,
    )


def _connect_postgres(name: str) -> Any:
    import ibis

    try:
        import psycopg  # noqa: F401
    except ImportError:
        raise MissingExtraError("psycopg", "postgres", "Reading from PostgreSQL") from None
    return quietly(
        lambda: ibis.connect(name.replace("postgresql://", "postgres://", 1)), "from the server"
    )


def _database_source(engine: Engine, access: Access, what: str) -> Source:
    if access.sql is not None:
        sql = access.sql.strip().rstrip(";")
        table = quietly(lambda: engine.backend.sql(sql), f"the result of the query, from {what}")
    else:
        table = quietly(
            lambda: _find_table(engine, str(access.table)), f"the table {access.table} of {what}"
        )
    return Source(
        engine=engine,
        name=what,
        columns=tuple(table.columns),
        select=lambda names: table.select(*names),
        of_query=access.sql is not None or _is_view(engine, str(access.table)),
    )


def _find_table(engine: Engine, name: str) -> Table:
    schema, dot, plain = name.rpartition(".")
    return engine.backend.table(plain, database=schema) if dot else engine.backend.table(name)


def _is_view(engine: Engine, name: str) -> bool:
    """In doubt, yes: the statement then says what a view may do."""
    import ibis

    schema, _, plain = name.rpartition(".")
    where = f" AND table_schema = {_text(schema)}" if schema else ""
    query = (
        "SELECT table_type FROM information_schema.tables WHERE table_name = "
        + _text(plain)
        + where
    )
    schema_ = ibis.schema({"table_type": "string"})
    found = quietly(
        lambda: engine.run(engine.backend.sql(query, schema=schema_), "the catalogue"),
        "the catalogue",
    )
    return list(found["table_type"]) != ["BASE TABLE"]


def _check_query(sql: str) -> None:
    """One SELECT and nothing else: a curator's slip must not change the data."""
    import sqlglot
    from sqlglot.errors import SqlglotError

    try:
        parsed = sqlglot.parse(sql)
    except SqlglotError:
        parsed = []
    if len(parsed) != 1 or not isinstance(parsed[0], sqlglot.exp.Query):
        raise InputError("--sql takes one SELECT, as in 'SELECT lon, lat FROM trips WHERE paid'")


# Tables in memory, and in other engines ------------------------------------------------------------


@contextmanager
def _ibis_table(table: Any) -> Iterator[Source]:
    import ibis.expr.operations as ops

    backend = quietly(table.get_backend, "the Ibis table")
    engine = Engine(backend)
    if backend.name == "duckdb":
        engine = DuckDB(backend.con)
        engine.backend = backend
    plain = isinstance(table.op(), (ops.DatabaseTable, ops.InMemoryTable))
    yield Source(
        engine=engine,
        name="the Ibis table",
        columns=tuple(table.columns),
        select=lambda names: table.select(*names),
        of_query=not plain,
    )


@contextmanager
def _spark_frame(frame: Any) -> Iterator[Source]:
    """A DataFrame is a query: it may hold a limit or a join."""
    engine = Spark(frame.sparkSession)
    try:
        yield Source(
            engine=engine,
            name="the DataFrame",
            columns=tuple(frame.columns),
            select=lambda names: _spark_view(engine, frame, names, "the DataFrame"),
            of_query=True,
        )
    finally:
        engine.close()


@contextmanager
def _in_memory(source: Any, access: Access) -> Iterator[Source]:
    is_geo = type(source).__module__.startswith("geopandas")
    geometry = str(source.geometry.name) if is_geo else None
    crs = name_of_crs(source.crs.to_json_dict()) if is_geo and source.crs is not None else None
    columns = _columns_of(source)
    with open_duckdb(access.memory) as engine:

        def select(names: Sequence[str]) -> Table:
            table = _to_arrow(source, names, geometry)
            view = _new_name()
            quietly(lambda: engine.connection.register(view, table), type(source).__name__)
            return quietly(lambda: engine.backend.table(view), type(source).__name__)

        yield Source(
            engine=engine,
            name=f"the {type(source).__name__}",
            columns=columns,
            select=select,
            geometry=geometry,
            crs=crs,
        )


def is_arrays(source: Any) -> bool:
    return isinstance(source, (list, tuple, np.ndarray))


def _columns_of(source: Any) -> tuple[str, ...]:
    if is_arrays(source):
        return tuple(map(str, range(len(source))))
    if isinstance(source, Mapping):
        return tuple(source)
    names = getattr(source, "column_names", None)  # Arrow
    if names is None and hasattr(source, "collect_schema"):  # Polars
        names = source.collect_schema().names()
    if names is None:
        names = getattr(source, "columns", None)
    if names is None:
        raise _unreadable(source)
    return tuple(map(str, names))


def _to_arrow(source: Any, names: Sequence[str], geometry: str | None) -> Any:
    """Arrow is what all tables have in common; columns are not copied where they need not be."""
    import pyarrow as pa

    try:
        table = _convert(source, list(names), geometry)
        empty = [name for name in names if pa.types.is_null(table[name].type)]
        for name in empty:  # nothing at all is as well a number
            place = table.column_names.index(name)
            table = table.set_column(place, name, table[name].cast(pa.float64()))
    except (pa.ArrowException, TypeError, ValueError, OverflowError, KeyError):
        pass  # and out of its reach, for the message may quote the data
    else:
        return table
    raise _unreadable(source)


def _convert(source: Any, names: list[str], geometry: str | None) -> Any:
    import pyarrow as pa

    if is_arrays(source):
        return pa.table({name: _as_array(source[int(name)]) for name in names})
    if isinstance(source, Mapping):
        return pa.table({name: _as_array(source[name]) for name in names})
    if geometry is not None:
        wkb = {geometry: pa.array(source.geometry.to_wkb(), type=pa.binary())}
        return pa.table({n: wkb[n] if n in wkb else pa.Array.from_pandas(source[n]) for n in names})
    if hasattr(source, "collect_schema"):  # Polars, perhaps not read yet
        chosen = source.select(names)
        return (chosen.collect() if hasattr(chosen, "collect") else chosen).to_arrow()
    if hasattr(source, "loc"):  # pandas
        return pa.Table.from_pandas(source[names], preserve_index=False)
    return pa.table(source).select(names)


def _unreadable(source: Any) -> InputError:
    return InputError(
        f"cannot read points from a {type(source).__name__}: give the name of a file, a folder or a "
        "database; a pandas, Polars, GeoPandas, Arrow, Ibis or Spark table; or arrays of numbers of "
        "the same length, one for each axis"
    )


def _as_array(values: Any) -> Any:
    """Masked values are missing ones."""
    if np.ma.isMaskedArray(values):
        return np.ma.filled(values.astype(np.float64), np.nan)
    return np.asarray(values)


def _new_name() -> str:
    return f"points_{uuid.uuid4().hex}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
