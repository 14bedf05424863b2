"""A report, opened as a file and printed: three sheets of A4, and nothing is fetched."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from htf import Series, write_report

SHEET = 297 / 25.4 * 96  # pixels that a sheet of A4 is high


@pytest.mark.parametrize("name", ["hours", "weeks", "months"])
def test_three_sheets(
    name: str, folder: Path, months: Series, chromium: Any, tmp_path: Path
) -> None:
    """Releases that are not private, whose red bars take room, and a series."""
    source = months.folder if name == "months" else folder / f"{name}.parquet"
    output = tmp_path / "report.html"
    write_report(source, output, title="A report of some length about what we did", runs=1)
    page = chromium.new_page(viewport={"width": 1000, "height": 900})
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(output.as_uri())
    printed = page.pdf(prefer_css_page_size=True)
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) == 3
    assert [one for one in requests if not one.startswith("data:")] == [output.as_uri()]
    page.emulate_media(media="print")
    pages = "[...document.querySelectorAll('.page')]"
    heights = page.evaluate(f"{pages}.map((page) => page.scrollHeight)")
    assert len(heights) == 3
    assert max(heights) <= SHEET
    widths = page.evaluate(f"{pages}.map((page) => page.scrollWidth - page.clientWidth)")
    assert widths == [0, 0, 0]
    page.emulate_media(media="screen")
    page.set_viewport_size({"width": 390, "height": 800})  # a phone: nothing is cut off at the side
    assert page.evaluate("document.documentElement.scrollWidth <= 390")
    page.close()
