"""Bytes of map tiles, and the time until the page of `htf serve` shows them, beside an earlier version in one run.

    python benchmarks/tiles.py RELEASE [--before COMMIT] [--repeats N]

Both versions serve the same release and are opened in the same Chromium, in turns: this one, and that of a commit, whose
page took GeoJSON tiles. A server is started anew for each repeat, so that no tile has been made before; the page is
then opened a second time, when the server has them. Times are by the clock of the page. The first picture is the frame after the
first rectangles were drawn, with coarse tiles; the last one has the fine tiles too. "Asked" is when the page
asks for its first tile: what comes before (scripts, MapLibre) has nothing to do with tiles. Processor time, of the server
and of the page's own thread after it asked, is disturbed less by what else the machine does. "Tiles alone" is the processor
time of a server of its own that is asked for the same tiles without a browser, one after another: it makes and compresses them.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any
from urllib.request import Request, urlopen

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[1]
BEFORE = "0554351cbb1b"  # the last commit whose page took GeoJSON
VIEWPORT = {"width": 1280, "height": 800}
FLAGS = [
    "--no-sandbox",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--disable-background-networking",
]
WATCH = """
    window.seen = { first: null, last: null, drawn: 0 };
    const original = WebGL2RenderingContext.prototype.drawArraysInstanced;
    WebGL2RenderingContext.prototype.drawArraysInstanced = function (...values) {
        if (seen.first === null && values[3] > 0) {
            seen.first = 0;
            requestAnimationFrame(() => { seen.first = performance.now(); });
        }
        return original.apply(this, values);
    };
    new MutationObserver(() => {
        if (document.documentElement.dataset.ready === "yes") seen.last ||= performance.now();
    }).observe(document, { attributes: true, subtree: true, attributeFilter: ["data-ready"] });
    performance.setResourceTimingBufferSize(2000);
"""
MEASURE = """() => {
    const tiles = performance.getEntriesByType("resource").filter((one) => one.name.includes("/tiles/"));
    const sum = (key) => tiles.reduce((total, one) => total + one[key], 0);
    return {
        addresses: tiles.map((one) => new URL(one.name).pathname + new URL(one.name).search),
        tiles: tiles.length,
        bytes: sum("encodedBodySize"),
        plain: sum("decodedBodySize"),
        asked: Math.min(...tiles.map((one) => one.startTime)),
        first: seen.first,
        last: seen.last,
    };
}"""


@contextmanager
def server(source: Path, release: Path) -> Iterator[tuple[str, int]]:
    """A server of the code in a folder, until the block ends; its address and process."""
    command = [sys.executable, "-m", "htf", "serve", str(release), "--port", "0"]
    environment = {**os.environ, "PYTHONPATH": str(source)}
    if (source / "htf/maps/basemap").exists() or (source / "htf/maps/basemap.py").exists():
        command += ["--basemap", "none"]  # which the version before does not have
    with subprocess.Popen(
        [*command, "--allow-not-private"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().rpartition(" on ")[2].strip(), process.pid
        finally:
            process.terminate()


def processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def make_tiles(source: Path, release: Path, addresses: list[str]) -> float:
    """Processor time to make tiles that no one asked for before, without a browser."""
    with server(source, release) as (address, pid):
        before = processor_seconds(pid)
        for one in addresses:
            asked = Request(f"{address}{one}", headers={"Accept-Encoding": "gzip"})
            with urlopen(asked) as answer:
                answer.read()
        return (processor_seconds(pid) - before) * 1000


def visit(browser: Any, address: str, pid: int) -> dict[str, Any]:
    """The page in a window of its own, with nothing in its cache."""
    context = browser.new_context(viewport=VIEWPORT)
    context.add_init_script(WATCH)
    page = context.new_page()
    session = context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    before = processor_seconds(pid)
    page.goto(address)
    page.wait_for_selector("html[data-ready=yes]", timeout=120_000)
    page.wait_for_timeout(200)
    found: dict[str, Any] = page.evaluate(MEASURE)
    metrics = {
        one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]
    }
    found["page"] = metrics["TaskDuration"] * 1000
    found["server"] = (processor_seconds(pid) - before) * 1000
    context.close()
    return {
        **found,
        "asked to first": found["first"] - found["asked"],
        "asked to last": found["last"] - found["asked"],
    }


def extract(commit: str, folder: Path) -> Path:
    """The code of a commit."""
    archive = subprocess.run(
        ["git", "archive", commit, "src"], cwd=ROOT, check=True, stdout=subprocess.PIPE
    ).stdout
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive, check=True)
    return folder / "src"


def show(name: str, before: list[float], now: list[float], unit: str, scale: float) -> None:
    ratios = [one / other for one, other in zip(now, before, strict=True)]
    told = f"{median(before) / scale:8.3f} {unit} -> {median(now) / scale:8.3f} {unit}"
    print(
        f"  {name:16} {told}  ratio {median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("release", type=Path)
    parser.add_argument("--before", default=BEFORE)
    parser.add_argument("--repeats", type=int, default=5)
    asked = parser.parse_args()
    kinds = ("tiles not made before", "tiles that the server has")
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as playwright:
        sources = {"before": extract(asked.before, Path(temporary)), "now": ROOT / "src"}
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        for repeat in range(-1, asked.repeats):  # the first one compiles, and is not counted
            for version, source in sources.items():
                with server(source, asked.release) as (address, pid):
                    for kind in kinds:
                        values = visit(browser, address, pid)
                        if kind == kinds[0]:
                            values["tiles alone"] = make_tiles(
                                source, asked.release, values["addresses"]
                            )
                        if repeat >= 0:
                            found.setdefault((version, kind), []).append(values)
    for kind in kinds:
        before, now = (found[version, kind] for version in sources)
        print(f"\n{kind}, {asked.repeats} times (median; ratios are within a repeat)")
        for name, unit, scale in (
            ("tiles", "", 1),
            ("bytes", "MB", 1e6),
            ("plain", "MB", 1e6),
            ("asked", "s", 1000),
            ("first", "s", 1000),
            ("last", "s", 1000),
            ("asked to first", "s", 1000),
            ("asked to last", "s", 1000),
            ("server", "s", 1000),
            ("page", "s", 1000),
            ("tiles alone", "s", 1000),
        ):
            if name not in now[0]:
                continue
            show(name, [one[name] for one in before], [one[name] for one in now], unit, scale)


if __name__ == "__main__":
    main()
