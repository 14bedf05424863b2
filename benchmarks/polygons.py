"""Time of polygon counts against shapely and GeoPandas, on the same parts and polygons, in one run.

    python benchmarks/polygons.py

A release of the synthetic city at epsilon 1, and layers that tile its map: Voronoi cells of random places whose
edges were made crooked, with about a hundred corners each. *shapely* takes for each polygon the parts that an STRtree finds,
and the areas of their intersections; *GeoPandas* does an overlay of both layers. Neither gives error bars.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import geopandas
import numpy as np
import shapely
from rich.console import Console
from rich.table import Table

from htf import Release, publish
from htf.frame.domain import Domain, FloatArray
from htf.ingest.points import read_points
from htf.query.shapes import Shapes
from htf.synthetic.city import synthetic_city

POINTS = 4_000_000
LAYERS = (100, 1000, 10_000)
SAMPLE = 20
CORNERS_OF_AN_EDGE = 16


def crooked_voronoi(domain: Domain, number: int, random: np.random.Generator) -> Shapes:
    """Polygons that tile the map, with many corners. Corners are moved as a function of where they are, so
    that neighbours stay neighbours."""
    x, y = domain.axes
    places = random.uniform((x.low, y.low), (x.high, y.high), (number, 2))
    outline = shapely.box(x.low, y.low, x.high, y.high)
    cells = shapely.get_parts(
        shapely.voronoi_polygons(shapely.multipoints(places), extend_to=outline)
    )
    size = np.sqrt((x.high - x.low) * (y.high - y.low) / number)
    waves = 2 * np.pi / size * np.array([3.1, 4.3, 7.7])

    def bend(corners: FloatArray) -> FloatArray:
        shift = sum(np.sin(wave * corners[:, ::-1]) for wave in waves)
        return np.asarray(corners + 0.01 * size * shift)

    fine = shapely.segmentize(cells, size / CORNERS_OF_AN_EDGE)
    return np.asarray(
        shapely.intersection(shapely.make_valid(shapely.transform(fine, bend)), outline)
    )


def parts_as_boxes(release: Release) -> Shapes:
    x, y = release.domain.axes
    low, high = release.derived.parts.low, release.derived.parts.high
    edges = [x.from_cells(low[:, 0]), y.from_cells(low[:, 1])]
    edges += [x.from_cells(high[:, 0]), y.from_cells(high[:, 1])]
    return np.asarray(shapely.box(*edges))


def count_with_shapely(
    tree: shapely.STRtree, areas: FloatArray, estimates: FloatArray, polygon: shapely.Polygon
) -> float:
    hits = tree.query(polygon)
    overlaps = shapely.area(shapely.intersection(tree.geometries[hits], polygon))
    return float(overlaps / areas[hits] @ estimates[hits])


def count_with_geopandas(boxes: Shapes, estimates: FloatArray, polygons: Shapes) -> FloatArray:
    parts = geopandas.GeoDataFrame(
        {"count": estimates, "area": shapely.area(boxes)}, geometry=boxes
    )
    zones = geopandas.GeoDataFrame({"zone": np.arange(len(polygons))}, geometry=polygons)
    pieces = geopandas.overlay(parts, zones, how="intersection")
    shares = pieces["count"] * pieces.area / pieces["area"]
    return np.asarray(shares.groupby(pieces["zone"]).sum())


def seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def main() -> None:
    city = synthetic_city(POINTS)
    domain = Domain.from_bounds(*city.domain_bounds, cells=1024)
    release = publish(read_points((city.x, city.y), domain), "1", noise="seeded:1")
    boxes, estimates = parts_as_boxes(release), release.derived.parts.estimates
    random = np.random.default_rng(3)
    build = seconds(lambda: release.count([0, 0, 1, 1]))
    first = seconds(lambda: release.count_polygons(boxes[0]))
    table = Table("polygons", "corners", "ours, s", "shapely, s", "times", "GeoPandas, s", "times")
    tree, areas = shapely.STRtree(boxes), shapely.area(boxes)
    for number in LAYERS:
        polygons = crooked_voronoi(domain, number, random)
        ours = seconds(lambda: release.count_polygons(polygons))  # noqa: B023
        sample = random.permutation(len(polygons))[:SAMPLE]
        naive = np.empty(len(sample))
        start = time.perf_counter()
        for place, chosen in enumerate(sample):
            naive[place] = count_with_shapely(tree, areas, estimates, polygons[chosen])
        theirs = (time.perf_counter() - start) / len(sample) * len(polygons)
        found = release.count_polygons(polygons[sample]).count
        np.testing.assert_allclose(found, naive, rtol=1e-6, atol=1e-6)
        cells = [f"{ours:.2f}", f"{theirs:.1f}", f"{theirs / ours:.0f}", "", ""]
        if number == 1000:
            overlay = seconds(lambda: count_with_geopandas(boxes, estimates, polygons))  # noqa: B023
            cells[3:] = [f"{overlay:.1f}", f"{overlay / ours:.0f}"]
        corners = shapely.get_num_coordinates(polygons).sum()
        table.add_row(f"{len(polygons):,}", f"{corners:,}", *cells)
        total = release.count_polygons(polygons).count.sum()
        np.testing.assert_allclose(total, release.estimates.sum(), rtol=1e-6)
    console = Console()
    console.print(
        f"{len(release):,} leaves, {len(boxes):,} parts; first box {build:.2f} s, first polygon {first:.2f} s"
    )
    console.print(table)


if __name__ == "__main__":
    main()
