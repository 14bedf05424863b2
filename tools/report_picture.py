"""Makes docs/report.png: the pages of a report side by side, as a browser prints them.

python tools/report_picture.py RELEASE [TITLE]
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

import htf

OUTPUT = Path(__file__).parents[1] / "docs/report.png"
WIDTH, HEIGHT = 794, 1123  # of a sheet of A4, in pixels of a browser


def main(release: str, title: str | None = None) -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page_file = Path(folder) / "report.html"
        htf.write_report(release, page_file, title=title)
        path = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.emulate_media(media="print")
        page.goto(page_file.as_uri())
        shots = [Path(folder) / f"{number}.png" for number in range(3)]
        for sheet, shot in zip(page.locator(".page").all(), shots, strict=True):
            sheet.screenshot(path=shot)
        browser.close()
        side_by_side([Image.open(shot) for shot in shots]).save(OUTPUT, optimize=True)


def side_by_side(sheets: list[Any]) -> Any:
    gap = 16
    width = sum(sheet.width for sheet in sheets) + gap * (len(sheets) + 1)
    height = max(sheet.height for sheet in sheets) + 2 * gap
    whole, left = Image.new("RGB", (width, height), "#c9d0d8"), gap
    for sheet in sheets:
        whole.paste(sheet, (left, gap))
        left += sheet.width + gap
    return whole.quantize(128)


if __name__ == "__main__":
    main(*sys.argv[1:3])
