"""The engines that hold the records, and how to run an Ibis expression in them. Sensitive.

Engines quote the data in their own error messages, so none of those is passed on or kept.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

import duckdb
import ibis
import numpy as np
from ibis.backends import BaseBackend
from ibis.expr.types import Table
from numpy.typing import NDArray
from sqlglot import exp

from htf.base.extras import need
from htf.base.leftovers import temporary_folder
from htf.errors import HtfError, InputError
from htf.ingest.reading import SPARK

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
NOT_UTF8 = (
    "it is not text in UTF-8. If it is in another encoding, name it, as in --read encoding=cp1252 (Western European "
    "Windows) or --read encoding=utf-16"
)
MORE_MEMORY = "it needs more memory: allow more with --read memory, or take a coarser grid"
# Words in errors of engines, and our own message for each kind of trouble.
REASONS = {
    ("no space left", "could not write", "max_temp_directory_size"): (
        "the disk is full, perhaps that of temporary files: set TMPDIR to a folder with room"
    ),
    ("out of memory", "outofmemory"): MORE_MEMORY,
    ("file is not a database",): "it is not an SQLite file",
    ("permission denied",): "permission denied",
    ("could not set lock", "database is locked", "different configuration"): (
        "another program is using it: wait until that is done, or close it"
    ),
    ("could not connect", "connection refused", "connection failed", "could not translate"): (
        "the server does not answer, or does not accept the user, the password or the database's name"
    ),
    ("password", "authentication", "fatal: "): (
        "the server does not accept the user, the password or the database's name"
    ),
}
Progress = Callable[[float], None]  # called with the share done, from 0 to 1
POLL_SECONDS = 0.1
ARROW, PANDAS = "arrow", "pandas"
MEMORY = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,15})?) *([kmgt]?)i?b?", re.IGNORECASE)
BYTES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
SPARK_MEMORY = 2 * 10**9
LEAST_SPARK_MEMORY = 600 * 10**6  # Spark does not start with less
# For a single machine. With 200, the default for clusters, the smallest file takes seconds.
SPARK_PARTITIONS = 16
SPARK_PYTHON = "PYSPARK_PYTHON"
NANOSECONDS_AS_NUMBERS = "spark.sql.legacy.parquet.nanosAsLong"  # else Spark refuses nanoseconds
# Settings that we or Ibis change in a session that is not ours, and restore afterwards.
SPARK_SETTINGS = (
    "spark.sql.session.timeZone", "spark.sql.mapKeyDedupPolicy", NANOSECONDS_AS_NUMBERS,
)  # fmt: skip
# PySpark's own loggers. They print errors of queries, which quote the data, at any log level.
SPARK_ERROR_LOGS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
# DuckDB reports progress only while its own bar is on, and would print that bar among our results.
OWN_BAR_ONLY = "SET enable_progress_bar = true; SET enable_progress_bar_print = false"
# DuckDB skips filters that statistics prove. Those of a Parquet file ignore NaN, and may be wrong.
BY_ROWS_ONLY = "SET disabled_optimizers = 'statistics_propagation'"


class Engine:
    """An Ibis backend that holds the records."""

    columns_as = ""  # the form in which it passes columns to our functions, if it can
    # Whether `expressions.floor` is missing for NaN. PostgreSQL fails, and Spark gives 0.
    floors_anything = False

    def __init__(self, backend: BaseBackend) -> None:
        self.backend = backend
        self.explain: Callable[[], str | None] = lambda: None  # why reading failed, if it is known

    def run(self, rows: Table, what: str, progress: Progress | None = None) -> dict[str, Any]:
        """The columns of the engine's result."""

        def fetch() -> dict[str, NDArray[Any]]:
            columns = self.fetch(rows)
            return {name: np.asarray(columns[name].to_numpy()) for name in columns.column_names}

        with nullcontext() if progress is None else self._watched(progress):
            return quietly(fetch, what, self.explain)

    def fetch(self, rows: Table) -> Any:
        """The engine's result as an Arrow table."""
        return self.backend.to_pyarrow(rows)

    def share_done(self) -> float:
        """The share done of what is running now; below 0 if the engine does not know."""
        return -1.0

    @contextmanager
    def _watched(self, progress: Progress) -> Iterator[None]:
        done = threading.Event()

        def watch() -> None:
            while not done.wait(POLL_SECONDS):
                try:
                    share = self.share_done()
                except Exception:  # it is gone: whoever waits for its result will see an error
                    return
                if share >= 0:
                    progress(min(share, 1.0))

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join()
        progress(1.0)


class DuckDB(Engine):
    """The embedded engine, used by default.

    If an expression uses a value several times, DuckDB computes it once and keeps it, which takes memory
    for every record. With `read_again` it is computed again instead. That suits files, which are read
    fast and do not change.
    """

    columns_as = ARROW
    floors_anything = True

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, backend: BaseBackend | None = None
    ) -> None:
        super().__init__(backend or ibis.duckdb.from_connection(connection))
        self.connection = connection
        self.read_again = False

    def fetch(self, rows: Table) -> Any:
        if not self.read_again or _calls_python(rows):
            return super().fetch(rows)

        query = self.backend.compiler.to_sqlglot(rows)
        for part in query.find_all(exp.CTE):
            if part.find(exp.Distinct) is None:  # computing that again takes longer than reading
                part.set("materialized", False)
        found = self.connection.sql(query.sql(self.backend.dialect)).to_arrow_table()
        return found.cast(rows.schema().to_pyarrow())

    def share_done(self) -> float:
        return float(self.connection.query_progress()) / 100


class Spark(Engine):
    """The engine for data too large for one machine."""

    columns_as = PANDAS

    def __init__(self, session: SparkSession, backend: BaseBackend | None = None) -> None:
        from pyspark.logger import PySparkLogger

        # Times are compared in UTC: Ibis sets the session's zone to it.
        self.settings = {name: session.conf.get(name, None) for name in SPARK_SETTINGS}
        super().__init__(backend or ibis.pyspark.connect(session))
        self.session = session
        session.conf.set(NANOSECONDS_AS_NUMBERS, "true")
        self.views: list[str] = []
        logs = [PySparkLogger.getLogger(name) for name in SPARK_ERROR_LOGS]
        self.silenced = [log for log in logs if not log.disabled]
        for log in self.silenced:
            log.disabled = True

    def close(self) -> None:
        for log in self.silenced:
            log.disabled = False
        for view in self.views:
            self.session.catalog.dropTempView(view)
        for name, value in self.settings.items():
            if value is None:
                self.session.conf.unset(name)
            else:
                self.session.conf.set(name, value)

    def share_done(self) -> float:
        tracker = self.session.sparkContext.statusTracker()
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        known = [stage for stage in stages if stage is not None]
        tasks = sum(stage.numTasks for stage in known)
        return sum(stage.numCompletedTasks for stage in known) / tasks if tasks else -1.0


@contextmanager
def open_duckdb(memory: str | None, database: str | None = None) -> Iterator[DuckDB]:
    """Open DuckDB in memory, or a database file for reading. Data beyond `memory` goes to disk."""
    with temporary_folder() as folder:
        settings: dict[str, Any] = {"temp_directory": str(folder)}
        if memory is not None:
            settings["memory_limit"] = f"{read_memory(memory)}B"
        where = ":memory:" if database is None else database
        connection = quietly(
            lambda: duckdb.connect(where, read_only=database is not None, config=settings), where
        )
        with connection:
            connection.execute(f"{OWN_BAR_ONLY}; {BY_ROWS_ONLY}")
            yield DuckDB(connection)


@contextmanager
def open_spark(memory: str | None) -> Iterator[Spark]:
    """Use the session that is already running, as on a cluster; else start one on this machine."""
    need("The engine spark", "pyspark", extra=SPARK)
    from pyspark.sql import SparkSession

    wanted = SPARK_MEMORY if memory is None else read_memory(memory)
    if wanted < LEAST_SPARK_MEMORY:
        raise InputError(f"Spark needs at least {LEAST_SPARK_MEMORY // 10**6}MB, got {memory!r}")
    running = SparkSession.getActiveSession()
    session = running or quietly(
        lambda: _start_spark(wanted), "a session of Spark: it needs Java 17 or newer"
    )
    engine = Spark(session)
    try:
        yield engine
    finally:
        engine.close()
        if running is None:
            session.stop()


def _start_spark(memory: int) -> SparkSession:
    """Start Spark for a single machine: quietly, because its log quotes the data, and reachable only
    from this machine."""
    from pyspark.sql import SparkSession

    settings = {
        "spark.driver.memory": f"{memory // 2**20}m",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
        "spark.sql.shuffle.partitions": str(SPARK_PARTITIONS),
        "spark.sql.session.timeZone": "UTC",
    }
    builder = SparkSession.builder.appName("htf").config(map=settings)
    chosen = os.environ.get(SPARK_PYTHON)
    os.environ[SPARK_PYTHON] = chosen or sys.executable  # this one has our packages
    try:
        session: SparkSession = builder.getOrCreate()
    finally:
        if chosen is None:
            del os.environ[SPARK_PYTHON]
    return session


def read_memory(text: str) -> int:
    """`4GB` in bytes."""
    match = MEMORY.fullmatch(text.strip())
    size = 0 if match is None else int(float(match[1]) * BYTES[match[2].lower()])
    if size < 1:
        raise InputError(f"an engine's memory is a size as in 500MB or 4GB, got {text!r}")
    return size


def quietly(
    work: Callable[[], T], what: str, explain: Callable[[], str | None] = lambda: None
) -> T:
    """Do the work; if it fails, raise an error without the engine's message, which may quote the data.
    `explain` may know the reason.

    The error is raised after its cause is out of reach, not while handling it, because a debugger or
    logger would follow the link between the two.
    """
    try:
        return work()
    except HtfError:
        raise
    except Exception as error:
        reason = _reason(error)
    if (explained := explain()) is not None:
        reason = explained
    raise InputError(
        f"cannot read {what}: {reason}. (The reader's own message is withheld, since it may quote the data.)"
    )


def _reason(error: Exception) -> str:
    """Our own words for an error, chosen by words in its message."""
    message, kind = str(error).casefold(), type(error).__name__.removesuffix("Exception")
    if isinstance(error, UnicodeError):
        return NOT_UTF8
    if isinstance(error, MemoryError):
        return MORE_MEMORY
    for signs, reason in REASONS.items():
        if any(sign in message for sign in signs):
            return reason
    return f"is it complete, and may it be read? ({kind})"


def _calls_python(rows: Table) -> bool:
    """Whether our functions are called: calling them again costs more than keeping their results."""
    from ibis.expr.operations.udf import InputType, ScalarUDF

    return any(call.__input_type__ is not InputType.BUILTIN for call in rows.op().find(ScalarUDF))
