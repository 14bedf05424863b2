"""A map inside zones beside the two alone: errors of zones, and of squares on the map.

Zones are Voronoi cells around jittered records, in districts, as in benchmarks/zones.py. A release of both has
`--share` of epsilon for the zones and the rest for the map. It is compared with zones alone of the same share, and a map
alone of the same rest. Errors are means of |error| / max(count, 20), in %.

The row `polygons of a map` compares other things, both for all of epsilon: zones alone, and polygons of a map alone.

    python benchmarks/inside_zones.py toronto_crime.parquet --bounds=-79.64,43.58,-79.11,43.86
"""

from __future__ import annotations

import argparse
import itertools
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import shapely
from scipy.spatial import cKDTree

import htf
from htf.frame.crs import CRS84
from htf.frame.names import Outlines

SIDES = (8, 32, 102, 230)  # cells of 1,024
ASKED = 1000  # squares of each size, around records and anywhere
SMOOTHING = 20
JITTER = 0.01  # of the side of the map


def read(path: Path, columns: tuple[str, str], bounds: tuple[float, ...]) -> np.ndarray:
    table = pq.read_table(path, columns=list(columns))
    points = np.column_stack([table[name].to_numpy() for name in columns])
    inside = np.all((points >= bounds[:2]) & (points < bounds[2:]), axis=1)
    return points[inside]


def make_zones(points: np.ndarray, bounds: tuple[float, ...], number: int, seed: int) -> htf.Axis:
    """Voronoi cells around jittered records, ordered by district: the nearest of about sqrt(number) of them."""
    random = np.random.default_rng(seed)
    sides = np.subtract(bounds[2:], bounds[:2])
    sites = points[random.choice(len(points), number, replace=False)]
    sites = np.clip(sites + random.normal(0, JITTER, sites.shape) * sides, bounds[:2], bounds[2:])
    middles = sites[random.choice(number, int(np.sqrt(number)), replace=False)]
    district = cKDTree(middles).query(sites)[1]
    order = np.argsort(district, kind="stable")
    frame = shapely.box(*bounds)
    cells = shapely.voronoi_polygons(
        shapely.multipoints(sites[order]), extend_to=frame, ordered=True
    )
    shapes = shapely.intersection(shapely.get_parts(cells), frame)
    columns = {
        "tract": [f"t{n}" for n in range(number)],
        "district": [f"d{n}" for n in district[order].tolist()],
    }
    outlines = Outlines(tuple(shapely.to_wkb(shapes, byte_order=1)))
    return htf.Axis.named("zone", htf.Names.of(columns, outlines=outlines))


def squares(points: np.ndarray, bounds: tuple[float, ...], seed: int) -> dict[str, np.ndarray]:
    """Boxes of each size, around records and anywhere, moved so that they are inside of the map."""
    random = np.random.default_rng(seed)
    low, sides = np.array(bounds[:2]), np.subtract(bounds[2:], bounds[:2])
    found = {}
    for side, around in itertools.product(SIDES, (True, False)):
        size = sides * side / 1024
        if around:
            corner = points[random.integers(0, len(points), ASKED)] - size / 2
        else:
            corner = low + random.uniform(size=(ASKED, 2)) * (sides - size)
        corner = np.clip(corner, low, low + sides - size)
        where = "around records" if around else "anywhere"
        found[f"{side} cells {where}"] = np.column_stack([corner, corner + size])
    return found


def true_counts(points: np.ndarray, boxes: np.ndarray) -> np.ndarray:
    """By sorting along x, so that each box looks at a slice."""
    ordered = points[np.argsort(points[:, 0])]
    first, last = np.searchsorted(ordered[:, 0], boxes[:, [0, 2]]).T
    heights = ordered[:, 1]
    return np.array(
        [
            np.count_nonzero((heights[a:b] >= south) & (heights[a:b] < north))
            for a, b, south, north in zip(first, last, boxes[:, 1], boxes[:, 3], strict=True)
        ]
    )


def error(found: np.ndarray, truth: np.ndarray) -> float:
    return float(100 * np.mean(np.abs(found - truth) / np.maximum(truth, SMOOTHING)))


def _shapes(axis: htf.Axis) -> list[bytes]:
    assert axis.names is not None
    assert axis.names.outlines is not None
    return list(axis.names.outlines.shapes)


def _round(of_zones: htf.FrequencyMatrix, level: str) -> np.ndarray:
    """The exact counts, by way of a release whose noise is far below one half."""
    exact = htf.publish(of_zones, 1000, "singular", noise="seeded:1")
    return np.asarray(exact.table(level)["count"].to_numpy()).round()


def compare(
    points: np.ndarray,
    bounds: tuple[float, ...],
    number: int,
    epsilon: float,
    share: float,
    seed: int,
) -> dict[str, tuple[float, float]]:
    """Errors alone and together, by what was asked."""
    axis = make_zones(points, bounds, number, seed)
    domain = htf.Domain.from_bounds(bounds[0], bounds[1], bounds[2], bounds[3], cells=1024)
    layer = htf.Domain((axis,), CRS84)
    columns = [points[:, 0], points[:, 1]]
    of_zones = htf.read_points(columns, layer)
    noise = [f"seeded:{2 * seed}", f"seeded:{2 * seed + 1}"]
    on_map = htf.publish(
        htf.read_points(columns, domain), round(epsilon * (1 - share), 12), noise=noise[0]
    )
    zones = htf.publish(of_zones, round(epsilon * share, 12), noise=noise[1])
    both = htf.inside_zones(on_map, zones)
    assert both.zones is not None
    found = {}
    for level in ("tract", "district"):
        truth = _round(of_zones, level)
        counts = [one.table(level)["count"].to_numpy() for one in (zones, both.zones)]
        found[level] = (error(counts[0], truth), error(counts[1], truth))
    everything = htf.publish(htf.read_points(columns, domain), epsilon, noise=noise[0])
    polygons = everything.count_polygons(shapely.from_wkb(_shapes(axis))).count
    truth = _round(of_zones, "tract")
    all_of_it = htf.publish(of_zones, epsilon, noise=noise[1]).table("tract")["count"].to_numpy()
    found["polygons of a map"] = (error(all_of_it, truth), error(polygons, truth))
    for name, boxes in squares(points, bounds, seed).items():
        truth = true_counts(points, boxes)
        counts = [one.count(boxes).count for one in (on_map, both)]
        found[name] = (error(counts[0], truth), error(counts[1], truth))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("points", type=Path)
    parser.add_argument("--bounds", required=True, type=lambda t: tuple(map(float, t.split(","))))
    parser.add_argument("--columns", default="lon,lat")
    parser.add_argument("--zones", default="140,1000,5000")
    parser.add_argument("--epsilons", default="0.1,1")
    parser.add_argument("--share", type=float, default=0.2)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    points = read(given.points, tuple(given.columns.split(",")), given.bounds)
    print(f"{given.points.stem}, share of zones {given.share}, {given.runs} runs\n")
    print("| zones, epsilon | asked | alone | together | ratio |\n| --- | --- | --- | --- | --- |")
    for number, epsilon in itertools.product(
        map(int, given.zones.split(",")), map(float, given.epsilons.split(","))
    ):
        started = time.perf_counter()
        runs = [
            compare(points, given.bounds, number, epsilon, given.share, seed)
            for seed in range(1, given.runs + 1)
        ]
        ratios = []
        for asked in runs[0]:
            alone, together = np.mean([run[asked] for run in runs], axis=0)
            if "cells" in asked:
                ratios.append(together / alone)
            print(
                f"| {number}, {epsilon:g} | {asked} | {alone:.2f} | {together:.2f} | {together / alone:.2f} |"
            )
        mean = float(np.exp(np.mean(np.log(ratios))))
        took = time.perf_counter() - started
        print(f"| {number}, {epsilon:g} | map, geometric mean | | | {mean:.2f} |")
        print(f"({took:.0f} s)")


if __name__ == "__main__":
    main()
