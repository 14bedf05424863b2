"""Coverage of the 95 % intervals of polygons on whole releases, against the points inside of them.

Polygons with centres anywhere: stars, strips, nine small stars as one, and Voronoi cells. Seeds are fixed. What to expect
is what was measured, since how uneven records are inside of leaves is only estimated: between 94 and 97.5 %
for each kind (docs/performance.md). Here there are 240 polygons of a kind, and 1,440 in all, of which those
of one release are wrong together. Six other sets of seeds gave 94.8 to 96.0 % over all, and 93.3 % or more for each kind: with
fresh seeds the limits of 93 to 98.5 % and of 87 % would be passed by chance less than once in a hundred runs.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import shapely

from htf import FrequencyMatrix, publish, read_points
from htf.evaluation.synthetic import synthetic_city
from htf.frame.domain import Domain, FloatArray, IntArray
from htf.query.shapes import Shapes

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


def stars(random: np.random.Generator, number: int, least: float, most: float) -> Shapes:
    found = []
    for centre in random.uniform(0, CELLS, (number, 2)):
        corners = int(random.integers(5, 41))
        angles = (np.arange(corners) + random.uniform(0, 0.9, corners)) * (2 * np.pi / corners)
        radii = random.uniform(least, most) / 2 * random.uniform(0.3, 1, corners)
        way = np.column_stack([np.cos(angles), np.sin(angles)])
        found.append(shapely.Polygon(centre + radii[:, None] * way))
    return np.array(found)


def polygons(random: np.random.Generator) -> dict[str, Shapes]:
    ends = random.uniform(0, CELLS, (EACH, 3, 2))
    places = shapely.multipoints(random.uniform(0, CELLS, (EACH, 2)))
    outline = shapely.box(0, 0, CELLS, CELLS)
    cells = shapely.get_parts(shapely.voronoi_polygons(places, extend_to=outline))
    return {
        "small": stars(random, EACH, 5, 20),
        "middling": stars(random, EACH, 20, 80),
        "large": stars(random, EACH, 80, 250),
        "thin": shapely.buffer(shapely.linestrings(ends), 0.7),
        "many parts": shapely.union_all(stars(random, 9 * EACH, 3, 9).reshape(EACH, 9), axis=1),
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
        for kind, shapes in polygons(np.random.default_rng(seed)).items():
            answers, truth = release.count_polygons(shapes), count_points(points, shapes)
            middle, half = (answers.low + answers.high) / 2, (answers.high - answers.low) / 2
            seen.setdefault(kind, []).append(np.abs(truth - middle) / half)
    return {kind: np.concatenate(found) for kind, found in seen.items()}


def is_fine(widen: float = 1.0) -> bool:
    """Whether intervals that are made so much wider would pass."""
    held = {kind: found <= widen for kind, found in errors().items()}
    overall = float(np.concatenate(list(held.values())).mean())
    return 0.93 <= overall <= 0.985 and all(kind.mean() >= 0.87 for kind in held.values())


def test_coverage_is_what_it_says() -> None:
    assert is_fine(), {kind: np.mean(found <= 1) for kind, found in errors().items()}


def test_wrong_widths_would_be_seen() -> None:
    for widen in (0.75, 1.5):
        assert not is_fine(widen)
