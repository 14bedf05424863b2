"""One set of releases and one server for all tests that need nothing special."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from htf import Release
from htf.serve.app import Service
from serving import client, make_releases, running


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return make_releases(tmp_path_factory.mktemp("releases"))


@pytest.fixture(scope="session")
def served(files: dict[str, Path]) -> Iterator[tuple[str, Service]]:
    with running(list(files.values()), allow_not_private=True) as found:
        yield found


@pytest.fixture
def api(served: tuple[str, Service]) -> Iterator[httpx.Client]:
    with client(served[0]) as found:
        yield found


@pytest.fixture(scope="session")
def releases(files: dict[str, Path]) -> dict[str, Release]:
    return {name: Release.load(path) for name, path in files.items()}
