"""The documentation, built and opened from a folder without a network: pages and search."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from support import require_module

ROOT = Path(__file__).parents[2]


def test_the_site_works_without_a_network(window: Any, tmp_path: Path) -> None:
    require_module("mkdocs", "docs")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    one = window()
    one.context.set_offline(True)
    one.page.goto((tmp_path / "site" / "index.html").as_uri())
    one.page.fill("input[name=query]", "epsilon")
    found = one.page.locator(".md-search-result__link")
    found.first.wait_for()
    found.first.click()
    one.page.locator("h1").wait_for()
    assert "psilon" in one.page.inner_text("article")
    assert all(url.startswith(("file:", "data:", "blob:", "about:")) for url in one.requests)
