"""Opens any source of records that a curator has, as a table in an engine. Sensitive.

DuckDB reads files and tables in memory; Spark can read files too. Databases, Ibis tables and Spark
DataFrames stay where they are.
"""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from dataclasses import fields as fields_of
from functools import cache, partial
from pathlib import Path
from typing import Any

import ibis
import ibis.expr.operations as ops
import numpy as np
import pyarrow as pa
import sqlglot
from ibis.expr.types import FloatingValue, Table
from pyarrow import dataset
from sqlglot import exp
from sqlglot.errors import SqlglotError

from htf.base import arguments
from htf.base.extras import need
from htf.base.options import spoken
from htf.errors import InputError
from htf.files import is_file
from htf.frame.crs import name_of_crs
from htf.ingest import sqlite
from htf.ingest.columns import like
from htf.ingest.engines import DuckDB, Engine, Spark, open_duckdb, open_spark, quietly
from htf.ingest.expressions import FIRST_SECOND, LAST_SECOND, as_number
from htf.ingest.geometry import read_geo_metadata
from htf.ingest.listing import NO_FILES, Listing, Piece, list_alone, list_files, unpacked
from htf.ingest.parquet import Columns, read_columns
from htf.ingest.reading import DUCKDB, POINT, SPARK, Access, Written
from htf.ingest.sqlite import ROWS_AT_ONCE, quoted
from htf.ingest.text import (
    LONGEST_RECORD,
    Layout,
    Needed,
    check_text,
    explain_lines,
    plain,
    read_layout,
)
from htf.ingest.vector import LAYER_FILES, layer_paths, open_layer
from htf.privacy.origins import ARCHIVES

DUCKDB_FILES = (".duckdb", ".ddb")
DATABASES = (*DUCKDB_FILES, ".sqlite", ".sqlite3", ".db")
WITH_CATALOGUE = ("duckdb", "postgres")  # these tell tables from views
SERVERS = ("postgresql://", "postgres://")
ROW = "htf_number_of_row"
# DuckDB's kinds of times that Ibis does not know, or cuts towards 1970 and not down.
IN_NANOSECONDS = ("TIMESTAMP_NS", "TIMESTAMPTZ_NS")


Read = Callable[[Sequence[str]], Table]  # takes names of columns that exist


@dataclass(frozen=True, slots=True)
class Source:
    """An open table, and what is known about it without looking at its rows."""

    engine: Engine
    name: str  # for messages
    columns: tuple[str, ...]
    read: Read
    text: bool = False  # every field is text, as written in the file
    of_query: bool = False
    collates: bool = False  # the database may treat different texts as equal, by a collation
    geometry: str | None = None  # a column of points
    crs: str | None = None
    listing: Listing = NO_FILES  # the files that hold the rows
    decimal: str = POINT  # of numbers in text
    read_numbered: Callable[[Piece, Sequence[str]], Table | None] | None = None
    stored: Mapping[str, str] = field(default_factory=dict)  # names of columns, by others for them
    # Some of the first rows, all columns, where `read` would read all rows.
    first_rows: Callable[[int], dict[str, Any]] | None = None
    # Where no header tells the columns: the names that records have, for the eyes of the curator. `read` takes any name,
    # and a column that no record has is empty. So no record decides what a name means to the others.
    of_records: tuple[str, ...] | None = None
    unfit: str = ""  # where no record has a point: what they have instead

    def number(self, rows: Table, name: str) -> FloatingValue:
        """The numbers in a column."""
        return as_number(rows[name], name, self.text, self.decimal)

    def called(self, names: Sequence[str]) -> Source:
        """The same source, whose columns can be asked for by names that differ from theirs by case alone; or by any
        name, if only records have names."""
        if self.of_records is not None:
            return replace(self, columns=tuple(dict.fromkeys((*names, *self.columns))))
        found = {name: like(name, self.columns) for name in names}
        others = {name: one for name, one in found.items() if one is not None and one != name}
        return replace(self, columns=(*self.columns, *others), stored={**self.stored, **others})

    def select(self, names: Sequence[str]) -> Table:
        """Some of its columns."""
        return self._renamed(self.read(self._stored(names)), names)

    def numbered(self, piece: Piece, names: Sequence[str]) -> Table | None:
        """Columns of one of the files, and the number of each row, from 1 on; None where rows have no number."""
        if self.read_numbered is None:
            return None
        table = self.read_numbered(piece, self._stored(names))
        return None if table is None else self._renamed(table, (*names, ROW))

    def _stored(self, names: Sequence[str]) -> list[str]:
        return list(dict.fromkeys(self.stored.get(name, name) for name in names))

    def _renamed(self, table: Table, names: Sequence[str]) -> Table:
        stored = self.stored
        return table.select(**{n: table[stored.get(n, n)] for n in names}) if stored else table


@contextmanager
def open_source(source: Any, access: Access, needed: Needed) -> Iterator[Source]:
    """Open a source. `needed` says whether a header line has the columns we need."""
    if isinstance(source, (str, Path)):
        opened = _open_name(str(source), access, needed)
    else:
        if access.table is not None or access.sql is not None:
            raise InputError("a table or a query is for a database: a file's or a server's name")
        opened = _open_object(source, access)
    with opened as table:
        if not (table.text and table.listing.is_text):
            _refuse_text_options(access, table.text)
        yield replace(table, decimal=access.decimal)


def _refuse_text_options(access: Access, text: bool) -> None:
    """Refuse options of text files for a source that is none."""
    for one in fields_of(Written):
        fits = text and one.name == "decimal"
        if getattr(access, one.name) != one.default and not fits:
            raise InputError(f"{spoken(access, one.name)} is for text files: leave it out")


def files_behind(name: str) -> tuple[Path, ...]:
    """The files that a name stands for; none if it is a server."""
    return () if "://" in name else _listing_of(name).paths


def _listing_of(name: str) -> Listing:
    path = Path(name)
    suffix = path.suffix.lower()
    if suffix in LAYER_FILES:
        return list_alone(name, layer_paths(path))
    return list_alone(name) if suffix in (*DATABASES, *ARCHIVES) else list_files(name)


@contextmanager
def listed(source: Any, table: str | None) -> Iterator[Listing | None]:
    """The text or Parquet files that a source stands for, also those in an archive; None if it is something else."""
    is_name = isinstance(source, (str, Path)) and "://" not in str(source)
    suffix = Path(source).suffix.lower() if is_name else ""
    if not is_name or suffix in (*DATABASES, *LAYER_FILES):
        yield None
    elif suffix in ARCHIVES and is_file(source):
        with unpacked(str(source), table) as listing:
            yield None if _holds_layer(listing) else listing
    else:
        yield list_files(source)


def _holds_layer(listing: Listing) -> bool:
    return listing.pieces[0].path.suffix.lower() in LAYER_FILES


def _open_name(name: str, access: Access, needed: Needed) -> Any:
    suffix = Path(name).suffix.lower()
    if name.startswith(SERVERS) or suffix in DATABASES:
        if access.engine != DUCKDB:
            raise InputError("a database counts in its own engine: leave --read engine out")
        if (access.table is None) == (access.sql is None):
            raise InputError(
                "which table of the database should be read? Give --read table=NAME, or --read sql=QUERY"
            )
        return _open_database(name, suffix, access)
    if "://" in name:  # the name is never shown, because it may hold a password
        raise InputError(
            f"only addresses of {' and '.join(SERVERS)} can be read: give files by name"
        )
    if suffix in (*LAYER_FILES, *ARCHIVES) and is_file(name):
        if access.engine != DUCKDB or access.sql is not None:
            unfit = "--read sql" if access.sql is not None else "--read engine"
            raise InputError(f"{unfit} is not for {suffix} files: leave it out")
        if suffix in ARCHIVES:
            return _open_archive(name, access, needed)
        listing = _listing_of(name)
        return _open_layer(listing, Path(name), listing.name, access)
    if access.table is not None or access.sql is not None:
        databases = ", ".join((*DATABASES, *SERVERS))
        raise InputError(f"a table or a query is for a database: {databases}")
    return _open_files(list_files(name), access, needed)


@contextmanager
def _open_files(listing: Listing, access: Access, needed: Needed) -> Iterator[Source]:
    opener = _files_in_spark if access.engine == SPARK else _files_in_duckdb
    if not listing.is_text:
        form = read_columns([piece.path for piece in listing.pieces], listing.name)
        with opener(listing, form, access) as source:
            yield source
        return
    if access.engine == SPARK and not access.is_plain:
        raise InputError(
            "Spark reads text in UTF-8 from the first line to the last: convert the files, or leave the engine out"
        )
    with plain(listing, access) as readable:
        layout = read_layout(readable.pieces, needed)
        shapes = check_text(readable.pieces)
        if needed.quick and not any(shape.quoted for shape in shapes):
            layout = replace(layout, parallel=True)
        with opener(readable, layout, access) as source:
            source.engine.explain = lambda: explain_lines(readable.pieces, layout)
            yield source


def _open_object(source: Any, access: Access) -> Any:
    module = type(source).__module__
    if module.startswith("ibis."):
        return _ibis_table(source, access)
    if module.startswith("pyspark."):
        return _spark_frame(source)
    if access.engine != DUCKDB:
        raise InputError("a table in memory is read by DuckDB: leave the engine out")
    return _in_memory(source, access)


# Files -------------------------------------------------------------------------------------------


@contextmanager
def _files_in_duckdb(listing: Listing, form: Layout | Columns, access: Access) -> Iterator[Source]:
    with open_duckdb(access.memory) as engine:
        engine.read_again = not isinstance(form, Layout)
        rows = _reader(listing.pieces, form)

        def is_by_arrow(names: Sequence[str]) -> bool:
            return isinstance(form, Columns) and any(map(form.in_milliseconds, names))

        def view(names: Sequence[str]) -> Table:
            found = _register_dataset(engine, listing) if is_by_arrow(names) else rows
            return _view(engine, found, names, listing.name)

        def numbered(piece: Piece, names: Sequence[str]) -> Table | None:
            if is_by_arrow(names):
                return None  # it does not number rows
            return _view(engine, _numbered(piece, form), [*names, ROW], listing.name)

        columns = _describe(engine, rows, listing.name)
        source = _files_source(engine, listing, form, columns, view)
        yield replace(source, read_numbered=numbered)


def _register_dataset(engine: DuckDB, listing: Listing) -> str:
    """Register Parquet files to be read by Arrow, which changes no value. DuckDB turns times in
    milliseconds into microseconds as it reads, and fails if one is too far away for that."""
    name, paths = _new_name(), [str(one.path) for one in listing.pieces]

    def register() -> None:
        engine.connection.register(name, dataset.dataset(paths, format="parquet"))

    quietly(register, listing.name)
    return name


def _files_source(
    engine: Engine, listing: Listing, form: Layout | Columns, columns: Iterable[str], view: Read
) -> Source:
    text = isinstance(form, Layout)
    geometry, crs = (None, None) if text else _geo_metadata(listing)

    def select(names: Sequence[str]) -> Table:
        if isinstance(form, Columns):
            form.check_alike(names)
        return view(names)

    source = Source(engine, listing.name, tuple(columns), select, text=text, listing=listing)
    return replace(source, geometry=geometry, crs=crs)


def _geo_metadata(listing: Listing) -> tuple[str | None, str | None]:
    """The column of points and its reference system, which must be the same in all files."""
    geometries = {
        quietly(partial(read_geo_metadata, piece.path), listing.name) for piece in listing.pieces
    }
    if len(geometries) > 1:
        raise InputError(
            f"the files of {listing.name} differ in their column of points or its reference system: "
            "release them one by one, or convert them to the same"
        )
    return geometries.pop()


def _reader(pieces: Sequence[Piece], form: Layout | Columns, more: str = "") -> str:
    """SQL that reads some files."""
    paths = ", ".join(_text(str(piece.path)) for piece in pieces)
    if isinstance(form, Columns):
        return f"read_parquet([{paths}], hive_partitioning=false{more})"
    columns = ", ".join(f"{quoted(name)}: 'VARCHAR'" for name in form.header)
    options = (
        "auto_detect=false, header=true, quote='\"', escape='\"', strict_mode=true, "
        # A parallel scan may refuse a quoted line break near one of its boundaries, by chance.
        f"parallel={str(form.parallel).lower()}, hive_partitioning=false, max_line_size={LONGEST_RECORD}"
    )
    return f"read_csv([{paths}], delim='{form.separator}', columns={{{columns}}}, {options})"


def _numbered(piece: Piece, form: Layout | Columns) -> str:
    """SQL that reads one file, with the number of each row."""
    if isinstance(form, Columns):
        rows, number = _reader([piece], form, ", file_row_number=true"), "file_row_number + 1"
    else:
        rows, number = _reader([piece], replace(form, parallel=False)), "row_number() OVER ()"
    return f"(SELECT *, {number} AS {ROW} FROM {rows})"


def _describe(engine: DuckDB, rows: str, name: str) -> dict[str, str]:
    query = f"DESCRIBE SELECT * FROM {rows}"
    columns = quietly(lambda: engine.connection.execute(query).fetchall(), name)
    return {row[0]: str(row[1]) for row in columns}


def _view(engine: DuckDB, rows: str, names: Sequence[str], what: str) -> Table:
    """A view of just the columns we need, so that the type of another column cannot cause an error."""
    types = _describe(engine, rows, what)

    def column(name: str) -> str:
        plain = quoted(name)
        if types[name].startswith("GEOMETRY"):
            return f"CAST({plain} AS BLOB) AS {plain}"
        if types[name] in IN_NANOSECONDS:
            return f"make_timestamp({_to_micros(f'epoch_ns({plain})', '//')}) AS {plain}"
        return plain

    view = _new_name()
    made = f"CREATE TEMP VIEW {view} AS SELECT {', '.join(map(column, names))} FROM {rows}"
    quietly(lambda: engine.connection.execute(made), what)
    return quietly(lambda: engine.backend.table(view), what)


@contextmanager
def _files_in_spark(listing: Listing, form: Layout | Columns, access: Access) -> Iterator[Source]:
    if any(path.suffix.lower() == ".zst" for path in listing.paths):
        raise InputError("Spark does not read .zst files: unpack them, or leave the engine out")
    with open_spark(access.memory) as engine:
        # Spark wants no escapes in them.
        paths = [f"file://{piece.path.absolute()}" for piece in listing.pieces]
        if isinstance(form, Layout):
            numbers, make = None, partial(_csv_in_spark, engine, paths, form)
        else:
            numbers, make = form, partial(_parquet_in_spark, engine, paths, form)
        frame = quietly(make, listing.name)

        def view(names: Sequence[str]) -> Table:
            return _spark_view(engine, frame, names, listing.name, numbers)

        yield _files_source(engine, listing, form, frame.columns, view)


def _csv_in_spark(engine: Spark, paths: list[str], layout: Layout) -> Any:
    from pyspark.sql.types import StringType, StructField, StructType

    schema = StructType([StructField(name, StringType()) for name in layout.header])
    options = {
        "header": True, "sep": layout.separator, "quote": '"', "escape": '"', "multiLine": True,
        "mode": "FAILFAST", "encoding": "UTF-8",
        "columnPruning": False,  # else a line with too few or too many fields goes unnoticed
    }  # fmt: skip
    return engine.session.read.schema(schema).options(**options).csv(paths)


def _parquet_in_spark(engine: Spark, paths: list[str], form: Columns) -> Any:
    """Read times in milliseconds as numbers: Spark fails if one is too far away for its microseconds."""
    from pyspark.sql.types import LongType, StructField, StructType

    schema = engine.session.read.parquet(*paths).schema
    kinds = [LongType() if form.in_milliseconds(one.name) else one.dataType for one in schema]
    as_numbers = [StructField(one.name, kind) for one, kind in zip(schema, kinds, strict=True)]
    return engine.session.read.schema(StructType(as_numbers)).parquet(*paths)


def _spark_view(
    engine: Spark, frame: Any, names: Sequence[str], what: str, form: Columns | None = None
) -> Table:
    """A view of the columns we need. Nanoseconds and milliseconds in `form` arrive as numbers."""
    from pyspark.sql import functions

    view = _new_name()

    def column(name: str) -> Any:
        plain = f"`{name.replace('`', '``')}`"
        if form is not None and form.in_nanoseconds(name):
            micros = _to_micros(plain, "div")
            return functions.expr(f"timestamp_micros({micros})").alias(name)
        if form is not None and form.in_milliseconds(name):
            near = f"{plain} BETWEEN {FIRST_SECOND * 1000} AND {LAST_SECOND * 1000 + 999}"
            moment = f"CASE WHEN {near} THEN timestamp_millis({plain}) END"
            return functions.expr(moment).alias(name)
        return frame[plain]

    def make() -> Any:
        frame.select([column(name) for name in names]).createTempView(view)
        engine.views.append(view)
        return engine.backend.table(view)

    return quietly(make, what)


# Layers and archives -----------------------------------------------------------------------------


@contextmanager
def _open_layer(listing: Listing, path: Path, name: str, access: Access) -> Iterator[Source]:
    """A source in a layer, whose columns are copied once for each choice of them."""
    layer = open_layer(path, name, access.table)
    with open_duckdb(access.memory) as engine:

        @cache
        def copied(names: tuple[str, ...]) -> Table:
            rows = quietly(lambda: layer.read(names), name)
            return _copy(engine, rows, names, name)

        def first_rows(number: int) -> dict[str, Any]:
            names = (*(layer.of_records or ()), *layer.columns)
            found: dict[str, Any] = layer.read(names).slice(0, number).to_pydict()
            return found

        # DuckDB would not tell apart names that differ by case alone.
        first = None if layer.of_records is None else first_rows
        facts = {n: getattr(layer, n) for n in ("text", "geometry", "crs", "of_records", "unfit")}
        source = Source(engine, name, layer.columns, lambda names: copied(tuple(names)), **facts)
        yield replace(source, of_query=layer.of_query, listing=listing, first_rows=first)


@contextmanager
def _open_archive(name: str, access: Access, needed: Needed) -> Iterator[Source]:
    with unpacked(name, access.table) as listing:
        piece = listing.pieces[0]
        if _holds_layer(listing):
            named = Path(piece.name)
            of_file = access.table in (piece.path.stem, named.stem, named.name)
            inner = replace(access, table=None) if of_file else access
            opened = _open_layer(listing, piece.path, piece.name, inner)
        else:
            opened = _open_files(listing, access, needed)
        with opened as source:
            yield source


# Databases ---------------------------------------------------------------------------------------


@contextmanager
def _open_database(name: str, suffix: str, access: Access) -> Iterator[Source]:
    if name.startswith(SERVERS):
        _check_query(access.sql, "postgres")
        engine = Engine(_connect_postgres(name))
        try:
            yield _database_source(engine, access, "the database server")
        finally:
            engine.backend.disconnect()
        return
    _check_query(access.sql, "duckdb" if suffix in DUCKDB_FILES else "sqlite")
    if not is_file(name):
        raise InputError(f"there is no file {name}")
    listing = list_alone(name)
    if suffix in DUCKDB_FILES:
        with open_duckdb(access.memory, name) as engine:
            yield replace(_database_source(engine, access, listing.name), listing=listing)
    else:
        connecting = closing(quietly(lambda: sqlite.connect(name), listing.name))
        with connecting as connection, open_duckdb(access.memory) as engine:
            yield _sqlite_source(engine, connection, access, listing)


def _sqlite_source(
    engine: DuckDB, connection: sqlite3.Connection, access: Access, listing: Listing
) -> Source:
    """A source in SQLite. Like a text file, a column may hold anything in each row, so all is read as
    text."""
    sql, table, path = access.sql, str(access.table), str(listing.paths[0])
    if sql is None:
        sql = quietly(lambda: sqlite.query_of_table(connection, table, listing.name), listing.name)
    query = sql.strip().rstrip(";")

    def read(names: Sequence[str], end: str = "") -> Any:
        chosen = ", ".join(map(quoted, names))
        rows = f"SELECT {chosen} FROM (\n{query}\n){end}"  # the query's last line may be a comment
        return quietly(lambda: sqlite.read_as_text(path, rows, names), listing.name)

    columns = quietly(lambda: sqlite.columns_of(connection, query), listing.name)

    def first_rows(number: int) -> dict[str, Any]:
        reader = read(columns, f" LIMIT {number}")
        found: dict[str, Any] = quietly(reader.read_all, listing.name).to_pydict()
        return found

    def select(names: Sequence[str]) -> Table:
        return _copy(engine, read(names), names, listing.name)

    source = Source(engine, listing.name, columns, select, text=True, first_rows=first_rows)
    of_query = access.sql is not None or sqlite.is_view(connection, table)
    return replace(source, of_query=of_query, listing=listing)


def _connect_postgres(name: str) -> Any:
    need("Reading from PostgreSQL", "psycopg", extra="postgres")
    return quietly(
        lambda: ibis.connect(name.replace("postgresql://", "postgres://", 1)), "from the server"
    )


def _database_source(engine: Engine, access: Access, what: str) -> Source:
    schema, _, name = str(access.table).rpartition(".")
    if access.sql is not None:
        sql, told = access.sql.strip().rstrip(";"), f"the result of the query, from {what}"
        table = quietly(lambda: _query_view(engine, sql), told)
    else:
        told = f"the table {access.table} of {what}"
        table = quietly(lambda: engine.backend.table(name, database=schema or None), told)
    of_query = access.sql is not None or _is_view(engine, schema, name)
    return _collating(engine, what, table, lambda names: table.select(*names), of_query)


def _collating(engine: Engine, what: str, table: Any, read: Read, of_query: bool) -> Source:
    """A table of a database, which may treat different texts as equal."""
    columns = tuple(table.columns)
    return Source(engine, what, columns, read, of_query=of_query, collates=True)


def _query_view(engine: Engine, sql: str) -> Table:
    """Make a view of a query in the database's own SQL: Ibis would translate it, and knows only the types
    of a view."""
    view = _new_name()
    statement = f"CREATE TEMPORARY VIEW {view} AS {sql}"
    if isinstance(engine, DuckDB):
        engine.connection.execute(statement)
    else:
        with closing(engine.backend.raw_sql(statement)):
            pass
    return engine.backend.table(view)


def _is_view(engine: Engine, schema: str, name: str) -> bool:
    """Whether it is a view; yes if in doubt, because the statement then says what a view may do."""
    if engine.backend.name not in WITH_CATALOGUE:
        return True
    where = f" AND table_schema = {_text(schema)}" if schema else ""
    query = f"SELECT table_type FROM information_schema.tables WHERE table_name = {_text(name)}"
    catalogue = engine.run(
        engine.backend.sql(query + where, schema=ibis.schema({"table_type": "string"})),
        "the catalogue",
    )
    return list(catalogue["table_type"]) != ["BASE TABLE"]


def _check_query(sql: str | None, dialect: str) -> None:
    """Refuse anything but a single SELECT: a curator's slip must not change the data."""
    if sql is None:
        return

    try:
        parsed = sqlglot.parse(sql, read=dialect)
    except SqlglotError:
        parsed = []
    changing = exp.Insert, exp.Update, exp.Delete, exp.Merge, exp.Into, exp.Command
    if len(parsed) != 1 or not isinstance(parsed[0], exp.Query) or parsed[0].find(*changing):
        raise InputError(
            "--read sql takes one SELECT, as in 'SELECT lon, lat FROM trips WHERE paid'"
        )


# Tables in memory, and in other engines ------------------------------------------------------------


@contextmanager
def _ibis_table(table: Any, access: Access) -> Iterator[Source]:
    backend = quietly(table.get_backend, "the Ibis table")
    with _engine_of(backend, access) as engine:

        def select(names: Sequence[str]) -> Table:
            chosen = table.select(*names)
            if engine.backend is backend:
                return chosen
            return _moved(engine, backend, chosen, "the Ibis table")

        of_query = _is_query(table.op(), engine, backend)
        yield _collating(engine, "the Ibis table", table, select, of_query)


@contextmanager
def _engine_of(backend: Any, access: Access) -> Iterator[Any]:
    """The engine of a backend. Backends that lack functions we need, or that round differently, pass
    their rows to DuckDB."""
    if backend.name == "duckdb":
        yield DuckDB(backend.con, backend)
    elif backend.name == "pyspark":
        with closing(Spark(backend._session, backend)) as engine:
            yield engine
    elif backend.name == "postgres":
        yield Engine(backend)
    else:
        with open_duckdb(access.memory) as engine:
            yield engine


def _is_query(node: Any, engine: Engine, backend: Any) -> bool:
    if isinstance(node, ops.DatabaseTable) and engine.backend is backend:
        return _is_view(engine, node.namespace.database or "", node.name)
    return not isinstance(node, ops.InMemoryTable)


def _copy(engine: DuckDB, reader: Any, names: Sequence[str], what: str) -> Table:
    """Copy rows that can be read only once into a table."""
    rows = _new_name()

    def copy() -> None:
        engine.connection.register(f"{rows}_given", reader)
        engine.connection.execute(f"CREATE TEMP TABLE {rows} AS SELECT * FROM {rows}_given")
        engine.connection.unregister(f"{rows}_given")

    quietly(copy, what)
    return _view(engine, rows, names, what)


@contextmanager
def moved(source: Source, rows: Table, memory: str | None) -> Iterator[tuple[Engine, Table]]:
    """The rows of a database that cannot call our functions, in a DuckDB of our own, which keeps on disk what does
    not fit into memory. They are read once, in batches."""
    with open_duckdb(memory) as engine:
        yield engine, _moved(engine, source.engine.backend, rows, source.name)


def _moved(engine: DuckDB, backend: Any, rows: Table, what: str) -> Table:
    reader = quietly(lambda: backend.to_pyarrow_batches(rows, chunk_size=ROWS_AT_ONCE), what)
    return _copy(engine, reader, rows.columns, what)


@contextmanager
def _spark_frame(frame: Any) -> Iterator[Source]:
    """A source in a Spark DataFrame, which counts as a query: it may hold a limit or a join."""
    with closing(Spark(frame.sparkSession)) as engine:
        what = "the DataFrame"
        yield _collating(engine, what, frame, lambda n: _spark_view(engine, frame, n, what), True)


@contextmanager
def _in_memory(source: Any, access: Access) -> Iterator[Source]:
    geometry = getattr(source, "active_geometry_name", None)  # GeoPandas
    has_crs = geometry is not None and source.crs is not None
    crs = name_of_crs(source.crs.to_json_dict()) if has_crs else None
    columns = _columns_of(source)
    with open_duckdb(access.memory) as engine:

        def select(names: Sequence[str]) -> Table:
            table = _to_arrow(source, names, geometry)
            view, what = _new_name(), type(source).__name__
            quietly(lambda: engine.connection.register(view, table), what)
            return _view(engine, view, names, what)

        name = f"the {type(source).__name__}"
        yield Source(engine, name, columns, select, geometry=geometry, crs=crs)


def is_arrays(source: Any) -> bool:
    return isinstance(source, (list, tuple)) or (isinstance(source, np.ndarray) and source.ndim > 0)


def _columns_of(source: Any) -> tuple[str, ...]:
    if is_arrays(source):
        names: Any = range(len(source))
    elif isinstance(source, Mapping):
        names = source
    elif isinstance(source, type):  # a class has the same attributes as its tables
        names = None
    elif hasattr(source, "collect_schema"):  # Polars
        names = source.collect_schema().names()
    else:  # Arrow has both, and its columns are no names
        names = getattr(source, "column_names", getattr(source, "columns", None))
    if names is None:
        raise _unreadable(source)
    return tuple(map(str, names))


def _to_arrow(source: Any, names: Sequence[str], geometry: str | None) -> Any:
    """An Arrow table, the common form of all tables; columns are copied only if they must be."""
    try:
        table = _convert(source, list(names), geometry)
        # An empty column may as well hold whole numbers, which fit any use.
        kinds = [pa.int64() if pa.types.is_null(one.type) else one.type for one in table.schema]
        return table.cast(pa.schema(zip(table.column_names, kinds, strict=True)))
    except Exception:
        pass  # raise outside of this block, because the message may quote the data
    raise _unreadable(source)


def _convert(source: Any, names: list[str], geometry: str | None) -> Any:
    if is_arrays(source):
        source = {name: source[int(name)] for name in names}
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
        f"cannot read points from {arguments.described(source)}: give the name of a file, a folder or a "
        "database; a pandas, Polars, GeoPandas, Arrow, Ibis or Spark table; or arrays of numbers of "
        "the same length, one for each axis"
    )


def _as_array(values: Any) -> Any:
    """An Arrow array, in which masked values are missing."""
    if np.ma.isMaskedArray(values):
        return np.ma.filled(values.astype(np.float64), np.nan)
    return np.asarray(values)


def _to_micros(nanos: str, divided_by: str) -> str:
    """SQL that turns nanoseconds into microseconds, rounded down. Quotients are truncated towards zero,
    and subtracting the remainder first would overflow 64 bits near their end."""
    return f"(({nanos} {divided_by} 1000) - CASE WHEN {nanos} % 1000 < 0 THEN 1 ELSE 0 END)"


def _new_name() -> str:
    return f"points_{uuid.uuid4().hex}"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
