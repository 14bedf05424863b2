"""Time and memory of counting points per zone, against the engine's own plain count of the same file per cell.

    python benchmarks/zones_ingest.py                               # 10 million points, 5,000 zones
    python benchmarks/zones_ingest.py --points 1 --zones 500 --folder FOLDER

Points are those of benchmarks/ingest.py, and the plain count is the one measured there. Zones are Voronoi cells
around as many places, with about 100 corners each and winding borders. Linux only.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import geopandas
import numpy as np
import shapely

from htf import Domain, read_points, read_zones
from htf.frame.domain import FloatArray
from htf.frame.zone_index import zone_index
from ingest import BOUNDS, KEPT, PEOPLE, ask_duckdb, plain_parts, points_in, show_table, take_turns  # type: ignore[import-not-found]

TARGET = 6.0  # times the plain count
CORNERS = 100
WINDING = 0.2  # of the spacing of zones


def make_zones(number: int, corners: int = CORNERS, seed: int = 5) -> geopandas.GeoDataFrame:
    """Cells around random places. Corners that two of them share stay the same for both."""
    generator = np.random.default_rng(seed)
    west, south, east, north = BOUNDS
    places = shapely.MultiPoint(generator.uniform((west, south), (east, north), (number, 2)))
    frame = shapely.box(*BOUNDS)
    cells = shapely.get_parts(shapely.voronoi_polygons(places, extend_to=frame))
    cells = shapely.intersection(cells, frame)
    cells = shapely.segmentize(cells, np.median(shapely.length(cells)) / corners)
    spacing = np.sqrt((east - west) * (north - south) / number)
    zones = shapely.transform(cells, lambda xy: _wound(np.asarray(np.round(xy, 9)), spacing))
    return geopandas.GeoDataFrame(
        {"zone": [f"zone {n}" for n in range(number)]}, geometry=zones, crs="OGC:CRS84"
    )


def _wound(corners: FloatArray, spacing: float) -> FloatArray:
    """A smooth map of the plane that makes straight borders wind."""
    x, y = 2 * np.pi * corners.T / spacing
    return corners + WINDING / 4 * spacing * np.column_stack([np.sin(2 * y), np.sin(2 * x)])


def show_times(path: Path, number: int, rounds: int) -> None:
    layer = make_zones(number)
    started = time.process_time()
    axis = read_zones(layer, "zone")
    of_layer = time.process_time() - started
    assert axis.names is not None
    assert axis.names.outlines is not None
    started = time.process_time()
    zone_index(axis.names.outlines.shapes)
    of_index = time.process_time() - started
    corners = int(np.sum(shapely.get_num_coordinates(layer.geometry)))
    print(f"{number:,} zones of {corners / number:.0f} corners; reading and checking them takes")
    print(
        f"{of_layer:.1f} s of the processor, and their index {of_index:.1f} s (compiling included)."
    )
    plain, domain = plain_parts(f"'{path}'")["plain"], Domain((axis,))
    ways: dict[str, Callable[[], object]] = {
        "plain": lambda: ask_duckdb(plain),
        "records": lambda: read_points(path, domain, ["lon", "lat"]),
        "people": lambda: read_points(path, domain, ["lon", "lat"], **PEOPLE),
        "kept records": lambda: read_points(path, domain, ["lon", "lat"], **KEPT),
    }
    taken = take_turns(ways, rounds)
    lines = Path("/proc/self/status").read_text().splitlines()
    peak = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    print(f"Load {os.getloadavg()[0]:.1f}; peak memory {peak / 1000:.0f} MB.")
    show_table(
        ("what", "seconds", "times plain", "processor", "times plain", "target"),
        (
            (
                name, f"{spent.clock:.2f}", f"{spent.clock / taken['plain'].clock:.2f}",
                f"{spent.processor:.2f}", f"{spent.processor / taken['plain'].processor:.2f}",
                TARGET if name == "records" else "",
            )
            for name, spent in taken.items()
        ),
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="where files of points are kept")
    parser.add_argument("--points", type=float, default=10, help="millions")
    parser.add_argument("--zones", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        show_times(points_in(folder, options.points), options.zones, options.rounds)


if __name__ == "__main__":
    main()
