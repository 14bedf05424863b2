"""How often the 95 % intervals of polygons hold the truth.

    python benchmarks/polygon_intervals.py [--runs 5] [--mechanism htf] ... [--points FILE --bounds W,S,E,N] ...

Polygons of several kinds, new ones in every release: stars of 5 to 20, 20 to 80 and 80 to 400 cells across, thin
strips along crooked lines, and nine small stars taken as one, with centres anywhere or at records drawn at random; and
Voronoi cells that tile the map. The truth is the number of points inside of each. The last column has how often the estimate
itself lies outside of its interval, over all of those.
"""

from __future__ import annotations

import argparse
import itertools

import numpy as np
import pyarrow.parquet as pq
import shapely
from numpy.typing import NDArray

from htf import Domain, publish, read_points
from htf.evaluation.counting import reaches_for_count
from htf.evaluation.synthetic import synthetic_city
from htf.frame.domain import FloatArray, IntArray
from htf.query.shapes import Shapes

CELLS = 1024
POINTS = 1_000_000
EPSILONS = ("0.1", "1")
EACH = 150  # polygons of a kind in a release
STARS = {"stars, small": (5, 20), "stars, middling": (20, 80), "stars, large": (80, 400)}
KINDS = (*STARS, "thin", "nine small", "tiling")


def stars(centres: FloatArray, across: FloatArray, random: np.random.Generator) -> Shapes:
    """Outlines of 5 to 40 corners, seen whole from their centre."""
    found = []
    for centre, width in zip(centres, across, strict=True):
        number = int(random.integers(5, 41))
        angles = (np.arange(number) + random.uniform(0, 0.9, number)) * (2 * np.pi / number)
        radii = width / 2 * random.uniform(0.3, 1, number)
        way = np.column_stack([np.cos(angles), np.sin(angles)])
        found.append(shapely.Polygon(centre + radii[:, None] * way))
    return np.array(found)


def strips(centres: FloatArray, random: np.random.Generator) -> Shapes:
    """1 to 5 cells wide, 100 to 600 long, with a bend every 50."""
    found = []
    for centre in centres:
        number = int(random.integers(2, 13))
        turns = random.uniform(0, 2 * np.pi) + np.cumsum(random.normal(0, 0.4, number))
        steps = 50 * np.column_stack([np.cos(turns), np.sin(turns)])
        line = centre + np.vstack([[0, 0], np.cumsum(steps, axis=0)])
        found.append(shapely.LineString(line).buffer(random.uniform(0.5, 2.5), quad_segs=2))
    return np.array(found)


def tiling(random: np.random.Generator) -> Shapes:
    outline = shapely.box(0, 0, CELLS, CELLS)
    places = shapely.multipoints(random.uniform(0, CELLS, (EACH, 2)))
    cells = shapely.get_parts(shapely.voronoi_polygons(places, extend_to=outline))
    return np.asarray(shapely.intersection(cells, outline))


def polygons_of(
    points: FloatArray, at_records: bool, random: np.random.Generator
) -> dict[str, Shapes]:
    """In cell coordinates."""

    def centres(number: int) -> FloatArray:
        if at_records:
            return np.asarray(points[random.integers(0, len(points), number)])
        return random.uniform(0, CELLS, (number, 2))

    kinds = {}
    for name, limits in STARS.items():
        least, most = np.log(limits)
        across = np.exp(random.uniform(least, most, EACH))
        kinds[name] = stars(centres(EACH), across, random)
    kinds["thin"] = strips(centres(EACH), random)
    small = stars(centres(9 * EACH), random.uniform(4, 12, 9 * EACH), random)
    kinds["nine small"] = shapely.union_all(small.reshape(EACH, 9), axis=1)
    if not at_records:
        kinds["tiling"] = tiling(random)
    return kinds


def count_points(points: FloatArray, polygons: Shapes) -> IntArray:
    """`points` ascend along x."""
    parts, owner = shapely.get_parts(polygons, return_index=True)
    bounds = shapely.bounds(parts)
    start, stop = (np.searchsorted(points[:, 0], bounds[:, side]) for side in (0, 2))
    shapely.prepare(parts)
    found = np.empty(len(parts), dtype=np.int64)
    for number, part in enumerate(parts):
        near = points[start[number] : stop[number]]
        near = near[(near[:, 1] >= bounds[number, 1]) & (near[:, 1] <= bounds[number, 3])]
        found[number] = np.count_nonzero(shapely.contains_xy(part, near))
    return np.bincount(owner, found, minlength=len(polygons)).astype(np.int64)


def coverage(
    points: FloatArray, mechanism: str, epsilon: str, at_records: bool, runs: int
) -> dict[str, NDArray[np.bool_]]:
    """For points in cell coordinates, ascending along x."""
    domain = Domain.from_bounds(0, 0, CELLS, CELLS, CELLS, crs=None)
    matrix = read_points((points[:, 0], points[:, 1]), domain)
    held: dict[str, list[NDArray[np.bool_]]] = {}
    for run in range(runs):
        release = publish(matrix, epsilon, mechanism, noise=f"seeded:{run}")
        kinds = polygons_of(points, at_records, np.random.default_rng(run))
        for kind, polygons in kinds.items():
            answers, truth = release.count_polygons(polygons), count_points(points, polygons)
            held.setdefault(kind, []).append((truth >= answers.low) & (truth <= answers.high))
            off = reaches_for_count(answers)
            held.setdefault("reaches for count", []).append(off)
    return {kind: np.concatenate(found) for kind, found in held.items()}


def in_cells(x: FloatArray, y: FloatArray, bounds: tuple[float, ...]) -> FloatArray:
    west, south, east, north = bounds
    cells = np.column_stack([(x - west) / (east - west), (y - south) / (north - south)]) * CELLS
    cells = cells[np.all((cells >= 0) & (cells < CELLS), axis=1)]
    return np.asarray(cells[np.argsort(cells[:, 0])])


def read_sets(paths: list[str], bounds: list[str]) -> dict[str, FloatArray]:
    if not paths:
        city = synthetic_city(POINTS)
        return {"city": in_cells(city.x, city.y, city.domain_bounds)}
    sets = {}
    for path, text in zip(paths, bounds, strict=True):
        table = pq.read_table(path, columns=["lon", "lat"])
        west, south, east, north = map(float, text.split(","))
        x, y = table["lon"].to_numpy(), table["lat"].to_numpy()
        sets[path.rpartition("/")[2].removesuffix(".parquet")] = in_cells(
            x, y, (west, south, east, north)
        )
    return sets


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--mechanism", action="append", default=[])
    parser.add_argument("--points", action="append", default=[])
    parser.add_argument("--bounds", action="append", default=[])
    given = parser.parse_args()
    columns = [*KINDS, "reaches for count"]
    print(f"| map, mechanism, epsilon, where | {' | '.join(columns)} |")
    print("| --- |" + " ---: |" * len(columns))
    for name, points in read_sets(given.points, given.bounds).items():
        asked = itertools.product(given.mechanism or ["htf"], EPSILONS, (False, True))
        for mechanism, epsilon, at_records in asked:
            found = coverage(points, mechanism, epsilon, at_records, given.runs)
            cells = [f"{found[c].mean():.1%}" if c in found else "" for c in columns]
            where = "at records" if at_records else "anywhere"
            print(f"| {name}, {mechanism}, {epsilon}, {where} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
