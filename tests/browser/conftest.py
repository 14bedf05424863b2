"""A real Chromium, a server in a process of its own, and releases of made-up cities."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from htf import Domain, FrequencyMatrix, Recipe, Release, Series, publish
from htf.frame.crs import CRS84
from htf.frame.domain import Axis
from support import PATIENCE, people_matrix, require, require_module

FLAGS = [
    "--no-sandbox",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WAIT = 1000 * PATIENCE  # milliseconds
TOKEN = "a-token-of-a-test-0123456789"
MONTHS = ("2026-01", "2026-02", "2026-03")  # of a series
PLACE = (Axis("x", 4.0, 5.0, 64), Axis("y", 52.0, 52.6, 64))


def lumpy(domain: Domain, seed: int, centre: float) -> FrequencyMatrix:
    """Many records around a place, few elsewhere."""
    generator = np.random.default_rng(seed)
    shares = np.meshgrid(*(np.linspace(0, 1, axis.cells) for axis in domain.axes), indexing="ij")
    away = sum((share - centre) ** 2 for share in shares[:2])
    counts = generator.poisson(600 * np.exp(-away / 0.02) * (64**2 / np.prod(domain.shape[:2])))
    return FrequencyMatrix.from_dense(domain, counts)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("browser")
    flat = Domain(PLACE, CRS84)
    for name, domain, centre in (
        ("east", flat, 0.6),
        ("west", flat, 0.4),
        ("hours", Domain((*PLACE, Axis("hour", 0, 24, 6)), CRS84), 0.5),
        ("later", Domain((*PLACE, Axis("hour", 0, 24, 6)), CRS84), 0.4),
        ("metres", Domain.from_bounds(500_000, 150_000, 564_000, 214_000, 64, crs="EPSG:27700"), 0.5),
        ("plane", Domain((Axis("x", 0, 1000, 64), Axis("y", 0, 600, 64))), 0.5),
    ):  # fmt: skip
        publish(lumpy(domain, 7, centre), "1", noise="seeded:7").save(place / f"{name}.parquet")
    people = publish(people_matrix(flat, per="week"), "1", noise="seeded:7")
    people.save(place / "weeks.parquet")
    return place


def with_block(extra: int) -> FrequencyMatrix:
    domain = Domain(PLACE, CRS84)
    found = np.full(domain.shape, 3)
    found[8:24, 8:24] += 60
    found[40:44, 40:44] += extra
    return FrequencyMatrix.from_dense(domain, found)


@pytest.fixture(scope="session")
def months(tmp_path_factory: pytest.TempPathFactory) -> Series:
    """In the second month there are 4,800 records more in one block, and in the third they are gone."""
    recipe = Recipe(domain=Domain(PLACE, CRS84), epsilon=1)
    made = Series.create(tmp_path_factory.mktemp("series") / "months", recipe, "month", releases=12)
    for month, extra in zip(MONTHS, (0, 300, 0), strict=True):
        made.add(with_block(extra), month, noise="fast")
    return made


@pytest.fixture(scope="session")
def releases(folder: Path) -> dict[str, Release]:
    return {path.stem: Release.load(path) for path in sorted(folder.glob("*.parquet"))}


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    path = require("chromium", "chromium")
    require_module("maplibre", "map")
    api = require_module("playwright.sync_api", "dev")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS, timeout=WAIT)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def address(folder: Path, chromium: Any) -> Iterator[str]:  # noqa: ARG001 - without it no server is needed
    """Of a server that asks for a token."""
    names = [
        str(folder / f"{name}.parquet")
        for name in ("east", "west", "hours", "later", "metres", "plane", "weeks")
    ]
    server = subprocess.Popen(
        [sys.executable, "-m", "htf", "serve", *names, "--port", "0", "--allow-not-private"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "HTF_TOKEN": TOKEN},
        text=True,
    )
    assert server.stdout is not None
    try:
        line = server.stdout.readline()
        assert " on http" in line, line
        yield line.rpartition(" on ")[2].strip()
    finally:
        server.terminate()
        server.wait(PATIENCE)
        server.stdout.close()


# Whatever a page shows at any time, in text or in attributes that are read aloud.
NOTICE_FAULTS = r"""
(() => {
  const fault = /\bundefined\b|\bNaN\b|\bnull\b|\[object |\bInfinity\b|Invalid Date/;
  const spoken = ["aria-label", "aria-valuetext", "aria-description", "title", "alt", "placeholder"];
  const silent = "script, style, template";
  const look = (text, parent) => {
    if (fault.test(text ?? "") && !parent?.closest(silent)) console.error(`shown: ${text}`);
  };
  const read = (node) => {
    if (node.nodeType === Node.TEXT_NODE) return look(node.data, node.parentElement);
    if (node.nodeType !== Node.ELEMENT_NODE) return;
    for (const name of spoken) look(node.getAttribute(name), node);
    node.childNodes.forEach(read);
  };
  new MutationObserver((changes) => {
    for (const { type, target, addedNodes, attributeName } of changes) {
      if (type === "childList") addedNodes.forEach(read);
      else if (type === "attributes") look(target.getAttribute(attributeName), target);
      else read(target);
    }
  }).observe(document, {
    subtree: true, childList: true, characterData: true, attributes: true, attributeFilter: spoken,
  });
})();
"""


class Window:
    """A page that fails its test when a script fails, or when it shows what is no answer, such as `undefined`."""

    def __init__(self, chromium: Any, **options: Any) -> None:
        options.setdefault("viewport", {"width": 1000, "height": 640})
        self.context = chromium.new_context(**options)
        self.context.add_init_script(NOTICE_FAULTS)
        self.page = self.context.new_page()
        self.page.set_default_timeout(WAIT)
        self.requests: list[str] = []
        self.faults: list[str] = []
        self.expected = ["401 (Unauthorized)"]  # on the way to a token
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("console", self._listen)

    def _listen(self, message: Any) -> None:
        is_expected = any(text in message.text for text in self.expected)
        if message.type == "error" and not is_expected:
            self.faults.append(message.text)

    def open(self, url: str) -> Any:
        self.page.goto(url)
        self.ready()
        return self.page

    def ready(self) -> None:
        self.page.wait_for_selector("html[data-ready=yes]")

    def close(self) -> None:
        self.context.close()
        assert self.faults == []


@pytest.fixture
def window(chromium: Any) -> Iterator[Any]:
    """Makes windows, and closes them."""
    opened: list[Window] = []

    def make(**options: Any) -> Window:
        opened.append(Window(chromium, **options))
        return opened[-1]

    yield make
    for one in opened:
        one.close()


@pytest.fixture(scope="session")
def with_token() -> str:
    """A script that has the token before the page asks for it."""
    return f"sessionStorage.setItem('htf-token', '{TOKEN}')"


@pytest.fixture(scope="session")
def shared(address: str, chromium: Any, with_token: str) -> Iterator[Any]:
    """One page for most tests of it, which go from address to address."""
    one = Window(chromium)
    one.context.add_init_script(with_token)
    yield one.open(f"{address}/#r=west")
    one.close()
