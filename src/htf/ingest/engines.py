"""Where the points are, and how to run an Ibis expression there. Sensitive.

Engines quote the data in their own error messages, so none of those is passed on or kept.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from htf.errors import HtfError, InputError, MissingExtraError

if TYPE_CHECKING:
    import duckdb
    from ibis.backends import BaseBackend
    from ibis.expr.types import Table
    from pyspark.sql import SparkSession

T = TypeVar("T")
Progress = Callable[[float], None]  # is told the share done, from 0 to 1
POLL_SECONDS = 0.1
DUCKDB, SPARK = "duckdb", "spark"
ENGINES = (DUCKDB, SPARK)
SPARK_MEMORY = "2g"
# DuckDB tells how far it is only while its own bar is on, which it would print among our results.
OWN_BAR_ONLY = "SET enable_progress_bar = true; SET enable_progress_bar_print = false"


class Engine:
    """An Ibis backend that holds the points."""

    def __init__(self, backend: BaseBackend) -> None:
        self.backend = backend

    def run(self, rows: Table, what: str, progress: Progress | None = None) -> dict[str, Any]:
        """The columns of what the engine finds."""

        def fetch() -> dict[str, NDArray[Any]]:
            found = self.fetch(rows)
            return {name: _to_numpy(found[name]) for name in found.column_names}

        if progress is None:
            return quietly(fetch, what)
        with self._watched(progress):
            found = quietly(fetch, what)
        progress(1.0)
        return found

    def fetch(self, rows: Table) -> Any:
        """What the engine finds, as an Arrow table."""
        return self.backend.to_pyarrow(rows)

    def share_done(self) -> float:
        """Of what is running now; below 0 if the engine cannot tell."""
        return -1.0

    @contextmanager
    def _watched(self, progress: Progress) -> Iterator[None]:
        done = threading.Event()

        def watch() -> None:
            while not done.wait(POLL_SECONDS):
                if (share := self.share_done()) >= 0:
                    progress(min(share, 1.0))

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join()


class DuckDB(Engine):
    """The embedded default.

    What an expression uses several times DuckDB computes once and keeps, which takes memory for every
    record. `read_again` says that it had better be computed again: so it is with files that are read
    fast and do not change.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        import ibis

        super().__init__(ibis.duckdb.from_connection(connection))
        self.connection = connection
        self.read_again = False

    def fetch(self, rows: Table) -> Any:
        if not self.read_again:
            return super().fetch(rows)
        from sqlglot import exp

        query = self.backend.compiler.to_sqlglot(rows)
        for part in query.find_all(exp.CTE):
            if part.find(exp.Distinct) is None:  # that takes longer than to read
                part.set("materialized", False)
        found = self.connection.sql(query.sql(self.backend.dialect)).to_arrow_table()
        return found.cast(rows.schema().to_pyarrow())

    def share_done(self) -> float:
        return float(self.connection.query_progress()) / 100


class Spark(Engine):
    """For more than a machine."""

    def __init__(self, session: SparkSession) -> None:
        import ibis

        # Times are compared as UTC; Ibis sets the session's zone to that, and we set it back.
        self.zone = session.conf.get("spark.sql.session.timeZone")
        super().__init__(ibis.pyspark.connect(session))
        self.session = session

    def close(self) -> None:
        self.session.conf.set("spark.sql.session.timeZone", self.zone)

    def share_done(self) -> float:
        tracker = self.session.sparkContext.statusTracker()
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        known = [stage for stage in stages if stage is not None]
        tasks = sum(stage.numTasks for stage in known)
        return sum(stage.numCompletedTasks for stage in known) / tasks if tasks else -1.0


@contextmanager
def open_duckdb(memory: str | None, database: str | None = None) -> Iterator[DuckDB]:
    """In memory, or a database file that is only read. What does not fit `memory` goes to disk."""
    import duckdb

    with tempfile.TemporaryDirectory(prefix="htf-") as folder:
        settings: dict[str, Any] = {"temp_directory": folder}
        if memory is not None:
            settings["memory_limit"] = memory
        where = ":memory:" if database is None else database
        connection = quietly(
            lambda: duckdb.connect(where, read_only=database is not None, config=settings),
            database or "memory",
        )
        with connection:
            connection.execute(OWN_BAR_ONLY)
            yield DuckDB(connection)


@contextmanager
def open_spark(memory: str | None) -> Iterator[Spark]:
    """A session that runs already, as on a cluster; else one on this machine."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise MissingExtraError("pyspark", SPARK, "The engine spark") from None
    running = SparkSession.getActiveSession()
    session = running or quietly(
        lambda: _start_spark(memory), "a session of Spark: it needs Java 17 or newer"
    )
    engine = Spark(session)
    try:
        yield engine
    finally:
        engine.close()
        if running is None:
            session.stop()


def _start_spark(memory: str | None) -> SparkSession:
    """Quiet, for its log quotes the data; and on the loopback only, for a single machine."""
    from pyspark.sql import SparkSession

    settings = {
        "spark.driver.memory": memory or SPARK_MEMORY,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
        "spark.sql.session.timeZone": "UTC",
    }
    builder = SparkSession.builder.appName("htf")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session: SparkSession = builder.getOrCreate()
    return session


def quietly(work: Callable[[], T], what: str) -> T:
    """Do it; if it fails, say so without the engine's message, which may quote the data.

    The error is raised after its cause is out of reach, not while handling it: a debugger or logger
    would walk from one to the other.
    """
    try:
        return work()
    except HtfError:
        raise
    except Exception as error:
        reason = _reason(error)
    raise InputError(
        f"cannot read {what}: {reason}. (The reader's own message is withheld, since it may quote the data.)"
    )


def _reason(error: Exception) -> str:
    """In words of our own, by what the message speaks of."""
    message, kind = str(error).casefold(), type(error).__name__.removesuffix("Exception")
    if "no space left" in message or "could not write" in message:
        return "the disk is full"
    if isinstance(error, MemoryError) or "out of memory" in message or "outofmemory" in message:
        return "it needs more memory: allow more with --memory, or take a coarser grid"
    if isinstance(error, PermissionError) or "permission denied" in message:
        return "permission denied"
    if "could not connect" in message or "connection refused" in message:
        return "the server does not answer"
    if "password" in message or "authentication" in message:
        return "the server does not accept the user or password"
    return f"is it complete, and may it be read? ({kind})"


def _to_numpy(column: Any) -> NDArray[Any]:
    return np.asarray(column.to_numpy())
