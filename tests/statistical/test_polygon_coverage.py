"""Coverage of the 95 % intervals of polygons on whole releases, against the points inside of them.

Stars, strips, nine small stars as one, and Voronoi cells, with centres anywhere or at records. Seeds are fixed. What to
expect is what was measured, since how uneven records are inside of leaves is only estimated: at least 93 % for
each kind, and mostly more (docs/measurements.md). Here there are 240 polygons of a kind, of which those of one release
are wrong together. Six other sets of seeds gave 98.2 to 99.0 % over all, and 95.8 % or more for each kind: with fresh
seeds the limits of 95 to 99.5 % and of 91 % would be passed by chance less than once in a hundred runs.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import shapely

from htf import FrequencyMatrix, publish, read_points
from htf.frame.domain import Domain, FloatArray, IntArray
from htf.query.shapes import Shapes
from htf.synthetic.city import synthetic_city

CELLS, POINTS, EACH, RUNS = 256, 200_000, 40, 6


@cache
def city() -> tuple[FloatArray, FrequencyMatrix]:
    """Points in cell coordinates, and their counts."""
    made = synthetic_city(POINTS)
    west, south, east, north = made.domain_bounds
    x, y = (made.x - west) / (east - west), (made.y - south) / (north - south)
    points = np.column_stack([x, y]) * CELLS
    points = points[np.all((points >= 0) & (points < CELLS), axis=1)]
    points = points[np.argsort(points[:, 0])]
    domain = Domain.from_bounds(0, 0, CELLS, CELLS, CELLS, crs=None)
    return points, read_points((points[:, 0], points[:, 1]), domain)


def stars(
    random: np.random.Generator, centres: FloatArray, number: int, least: float, most: float
) -> Shapes:
    found = []
    for centre in random.permutation(centres)[:number]:
        corners = int(random.integers(5, 41))
        angles = (np.arange(corners) + random.uniform(0, 0.9, corners)) * (2 * np.pi / corners)
        radii = random.uniform(least, most) / 2 * random.uniform(0.3, 1, corners)
        way = np.column_stack([np.cos(angles), np.sin(angles)])
        found.append(shapely.Polygon(centre + radii[:, None] * way))
    return np.array(found)


def polygons(random: np.random.Generator, centres: FloatArray) -> dict[str, Shapes]:
    crooked = random.permutation(centres)[:EACH, None] + random.normal(0, 40, (EACH, 3, 2))
    places = shapely.multipoints(random.permutation(centres)[:EACH])
    outline = shapely.box(0, 0, CELLS, CELLS)
    cells = shapely.get_parts(shapely.voronoi_polygons(places, extend_to=outline))
    nine = stars(random, centres, 9 * EACH, 3, 9).reshape(EACH, 9)
    return {
        "small": stars(random, centres, EACH, 5, 20),
        "middling": stars(random, centres, EACH, 20, 80),
        "large": stars(random, centres, EACH, 80, 250),
        "thin": shapely.buffer(shapely.linestrings(crooked), 0.7),
        "many parts": shapely.union_all(nine, axis=1),
        "tiling": shapely.intersection(cells, outline),
    }


def count_points(points: FloatArray, shapes: Shapes) -> IntArray:
    """Part by part, which is quicker than nine parts far from each other. `points` ascend along x."""
    parts, owner = shapely.get_parts(shapes, return_index=True)
    shapely.prepare(parts)
    bounds = shapely.bounds(parts)
    start, stop = (np.searchsorted(points[:, 0], bounds[:, side]) for side in (0, 2))
    found = np.empty(len(parts))
    for number, part in enumerate(parts):
        near = points[start[number] : stop[number]]
        near = near[(near[:, 1] >= bounds[number, 1]) & (near[:, 1] <= bounds[number, 3])]
        found[number] = np.count_nonzero(shapely.contains_xy(part, near))
    return np.bincount(owner, found, minlength=len(shapes)).astype(np.int64)


@cache
def errors() -> dict[str, FloatArray]:
    """How far each truth is from the middle of its interval, in half widths."""
    points, matrix = city()
    seen: dict[str, list[FloatArray]] = {}
    for seed in range(RUNS):
        epsilon = ("0.2", "1", "5")[seed % 3]
        release = publish(matrix, epsilon, "htf", noise=f"seeded:{seed}")
        random = np.random.default_rng(seed)
        centres = {
            "anywhere": random.uniform(0, CELLS, (9 * EACH, 2)),
            "at records": random.choice(points, 9 * EACH, replace=False),
        }
        for where, places in centres.items():
            for kind, shapes in polygons(random, places).items():
                answers, truth = release.count_polygons(shapes), count_points(points, shapes)
                middle, half = (answers.low + answers.high) / 2, (answers.high - answers.low) / 2
                off = np.abs(truth - middle)
                found = off / np.where(off > 0, half, 1.0)
                seen.setdefault(f"{kind}, {where}", []).append(found)
    return {kind: np.concatenate(found) for kind, found in seen.items()}


def is_fine(widen: float = 1.0) -> bool:
    """Whether intervals that are made so much wider would pass."""
    held = {kind: found <= widen for kind, found in errors().items()}
    overall = float(np.concatenate(list(held.values())).mean())
    return 0.95 <= overall <= 0.995 and all(kind.mean() >= 0.91 for kind in held.values())


def test_coverage_is_what_it_says() -> None:
    assert is_fine(), {kind: np.mean(found <= 1) for kind, found in errors().items()}


def test_wrong_widths_would_be_seen() -> None:
    for widen in (0.75, 1.5):
        assert not is_fine(widen)
