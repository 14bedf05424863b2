"""Pictures of the page of `htf serve`, and of HTML maps, for the documentation.

    python tools/screenshots.py                    # all of them, into docs/gallery and docs/tutorials
    python tools/screenshots.py page-districts     # one of them
    python tools/screenshots.py series-page        # those of the tutorial about series, by its own commands
    python tools/screenshots.py --out /tmp         # elsewhere

They show releases of made-up cities, which the command makes first, with private noise. So two runs differ in
their numbers. It needs Chromium, playwright (`htf-dp[dev]`) and the extras serve, geo and map.
"""

from __future__ import annotations

import argparse
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from playwright.sync_api import ViewportSize, sync_playwright

import htf

DOCS = Path(__file__).parent.parent / "docs"
GALLERY, TUTORIALS = DOCS / "gallery", DOCS / "tutorials"
SIZE: ViewportSize = {"width": 1180, "height": 820}
FLAGS = ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
YEARS = ("2021", "2022", "2023", "2024", "2025", "2026")


def make_releases(folder: Path) -> list[Path]:
    """A city twice, trips in it, and a series of it in which a quarter grows."""
    city, trips = htf.synthetic_city(400_000), htf.synthetic_trips()
    west, south, east, north = city.domain_bounds
    domain = htf.Domain.from_bounds(west, south, east, north, cells=256)
    files = []
    for name, part in (("city", slice(None)), ("sample", slice(0, 150_000))):
        files.append(folder / f"{name}.parquet")
        htf.publish(_matrix(folder, domain, {"x": city.x[part], "y": city.y[part]}), 1).save(
            files[-1]
        )
    place = (htf.Axis("x", west, east, 64), htf.Axis("y", south, north, 64))
    ends = (htf.Axis("dest_x", west, east, 64), htf.Axis("dest_y", south, north, 64))
    columns = {name: getattr(trips, name) for name in ("x", "y", "dest_x", "dest_y")}
    files.append(folder / "trips.parquet")
    four = htf.Domain((*place, *ends), "OGC:CRS84")
    htf.publish(_matrix(folder, four, columns), 1).save(files[-1])
    return [*files, _series(folder, city, htf.Domain(place, "OGC:CRS84"))]


def _matrix(folder: Path, domain: htf.Domain, columns: dict[str, Any]) -> htf.FrequencyMatrix:
    path = folder / "points.parquet"
    pq.write_table(pa.table(columns), path)
    return htf.read_points(path, domain, list(columns))


def _series(folder: Path, city: Any, domain: htf.Domain) -> Path:
    recipe = htf.Recipe(domain=domain, epsilon=1)
    made = htf.Series.create(folder / "years", recipe, "year", releases=len(YEARS))
    west, _, east, _ = city.domain_bounds
    generator = np.random.default_rng(1)
    for number, year in enumerate(YEARS):
        share = 0.1 + 0.05 * number * (city.x > west + 0.55 * (east - west))
        kept = generator.random(len(city.x)) < share
        made.add(_matrix(folder, domain, {"x": city.x[kept], "y": city.y[kept]}), year)
    return folder / "years"


@contextmanager
def served(paths: list[Path]) -> Iterator[str]:
    """The address of a server of these releases."""
    command = [sys.executable, "-m", "htf", "serve", *map(str, paths), "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert server.stdout is not None
    try:
        yield server.stdout.readline().rpartition(" on ")[2].strip()
    finally:
        server.terminate()
        server.wait()


def districts(page: Any, folder: Path) -> None:
    """A table of districts beside the map in their colours."""
    layer = folder / "districts.geojson"
    htf.synthetic_zones(tracts=60, districts=8).dissolve("district", as_index=False).rename(
        columns={"district": "name"}
    )[["name", "geometry"]].to_file(layer)
    page.click("#district-card summary")
    page.set_input_files("#district-file", layer)
    page.wait_for_selector("#district-table tbody tr")
    page.check("#district-colours")
    page.evaluate("document.getElementById('district-card').scrollIntoView()")
    _hover(page, 0.5, 0.5)


def trips(page: Any, _: Path) -> None:
    """Where trips from a box end."""
    _hover(page, 0.55, 0.45)


def periods(page: Any, _: Path) -> None:
    """Small maps of all periods of a series."""
    page.click("#all-periods")
    page.wait_for_selector("#multiples button >> nth=5")


def _hover(page: Any, across: float, down: float) -> None:
    box = page.locator("[data-panel='0'] .map").bounding_box()
    page.mouse.move(box["x"] + across * box["width"], box["y"] + down * box["height"])


SHOTS: dict[str, tuple[str, Callable[[Any, Path], None]]] = {
    "page-districts": ("r=city", districts),
    "page-trips": ("r=trips&b=-30.03,39.97,-29.99,40.0", trips),
    "page-periods": ("r=years-2024", periods),
}


def series_page(page: Any, folder: Path, out: Path) -> None:
    """Follow the tutorial about series. Its two pictures are kept, and one is taken of its page."""
    text = (TUTORIALS / "series.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.S)
    (recipe,) = re.findall(r"```toml\n(.*?)```", text, re.S)
    (folder / "city.toml").write_text(recipe)
    commands = [shlex.split(line) for line in re.findall(r"^    htf (.*)$", text, re.M)]
    for arguments in [*(["-c", block] for block in blocks), *(["-m", "htf", *c] for c in commands)]:
        subprocess.run([sys.executable, *arguments], cwd=folder, check=True, capture_output=True)
    for name in ("change", "months"):
        shutil.copyfile(folder / f"{name}.png", out / f"series-{name}.png")
    page.goto((folder / "months.html").as_uri())
    page.wait_for_selector("html[data-ready=yes]")
    page.check("#change")


# Pictures of HTML maps, which need no server. They make what they show, and may keep more pictures.
FILES: dict[str, Callable[[Any, Path, Path], None]] = {"series-page": series_page}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    known = [*SHOTS, *FILES]
    parser.add_argument("names", nargs="*", help=f"of {', '.join(known)}; all without any")
    parser.add_argument("--out", type=Path, help="folder of the pictures")
    asked = parser.parse_args()
    unknown = sorted(set(asked.names) - set(known))
    if unknown:
        parser.error(f"there is no picture {unknown[0]}: there are {', '.join(known)}")
    wanted = asked.names or known
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for shot in filter(FILES.get, wanted):
            take_file(folder, shot, asked.out or TUTORIALS)
        if served_ones := list(filter(SHOTS.get, wanted)):
            with served(make_releases(folder)) as address:
                for shot in served_ones:
                    take(address, folder, shot, asked.out or GALLERY)


@contextmanager
def photographed(path: Path) -> Iterator[Any]:
    """A page of a browser, of which a picture is taken at the end."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        page = browser.new_page(viewport=SIZE)
        yield page
        page.wait_for_timeout(2000)  # until the map has drawn it
        page.screenshot(path=path)
        browser.close()
    print(f"Wrote {path}.")


def take(address: str, folder: Path, name: str, out: Path) -> None:
    at, act = SHOTS[name]
    with photographed(out / f"{name}.png") as page:
        page.goto(f"{address}/#{at}")
        page.wait_for_selector("html[data-ready=yes]")
        act(page, folder)


def take_file(folder: Path, name: str, out: Path) -> None:
    with photographed(out / f"{name}.png") as page:
        FILES[name](page, folder, out)


if __name__ == "__main__":
    main()
