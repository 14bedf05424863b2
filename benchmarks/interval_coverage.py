"""How often the 95 % intervals hold the truth, for every kind of question.

    python benchmarks/interval_coverage.py [--runs 3] [--mechanism htf] ... [--epsilons 0.05,0.1,1,2] [--points FILE --bounds W,S,E,N] ...
    python benchmarks/interval_coverage.py --axes [--runs 6]

Squares of 3, 10, 32, 100 and 300 cells, stars of 5 to 20, 20 to 80 and 80 to 400 cells across, thin strips along
crooked lines, nine small stars taken as one, with centres anywhere or at records drawn at random; and Voronoi cells that
tile the map: new ones in every release. The truth is the number of points inside of each. With --axes, boxes of a tenth,
three tenths and six tenths of the sides of invented trips with one, three and four axes. The last lines count the kinds
that are covered less than 93 %. In large boxes the noise of one release makes all right or all wrong: use many runs.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterable

import numpy as np
import pyarrow.parquet as pq
import shapely
from numpy.typing import NDArray

from htf import Axis, Domain, FrequencyMatrix, publish, read_points
from htf.forecasts.counting import ExactCounter
from htf.forecasts.workloads import Boxes
from htf.frame.domain import FloatArray, IntArray
from htf.query.shapes import Shapes
from htf.synthetic.city import synthetic_city
from htf.synthetic.trips import synthetic_trips

CELLS = 1024
POINTS = 1_000_000
EPSILONS = "0.05,0.1,1,2"
EACH = 150  # polygons or boxes of a kind in a release
SQUARES = (3, 10, 32, 100, 300)  # cells
ENOUGH = 0.93  # covered
TRIPS = 300_000
AXES = {
    "one axis": ("x",),
    "three axes": ("x", "y", "hour"),
    "four axes": ("x", "y", "dest_x", "dest_y"),
}
SIDES = (0.1, 0.3, 0.6)
STARS = {"stars, small": (5, 20), "stars, middling": (20, 80), "stars, large": (80, 400)}
KINDS = (*(f"squares, {side}" for side in SQUARES), *STARS, "thin", "nine small", "tiling")


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
    for side in SQUARES:
        low = np.clip(np.rint(centres(EACH) - side / 2), 0, CELLS - side)
        kinds[f"squares, {side}"] = shapely.box(*low.T, *(low + side).T)
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
            if kind.startswith("squares"):
                answers = release.count(shapely.bounds(polygons))
            else:
                answers = release.count_polygons(polygons)
            truth = count_points(points, polygons)
            held.setdefault(kind, []).append((truth >= answers.low) & (truth <= answers.high))
    return {kind: np.concatenate(found) for kind, found in held.items()}


def trips(names: tuple[str, ...]) -> FrequencyMatrix:
    made = synthetic_trips(TRIPS, 1)
    west, south, east, north = made.domain_bounds
    known = {"x": (west, east, 64), "y": (south, north, 64), "hour": (0.0, 24.0, 24)}
    axes = tuple(Axis(name, *known[name.removeprefix("dest_")]) for name in names)
    cells = np.array([np.floor(axis.to_cells(getattr(made, axis.name))) for axis in axes])
    shape = np.array([axis.cells for axis in axes])[:, None]
    inside = np.all((cells >= 0) & (cells < shape), axis=0)
    return FrequencyMatrix.from_cells(Domain(axes), cells[:, inside].astype(np.int64))


def boxes_of(
    matrix: FrequencyMatrix, side: float, at_records: bool, random: np.random.Generator
) -> Boxes:
    shape = np.array(matrix.domain.shape)
    widths = shape * side * np.exp(random.uniform(-0.5, 0.5, (EACH, len(shape))))
    widths = np.clip(np.rint(widths).astype(np.int64), 1, shape)
    centres = (random.random((EACH, len(shape))) * shape).astype(np.int64)
    if at_records:
        shares = matrix.exact_counts / matrix.exact_counts.sum()
        centres = matrix.exact_coordinates[:, random.choice(len(shares), EACH, p=shares)].T
    low = np.clip(centres - widths // 2, 0, shape - widths)
    return Boxes(low, low + widths)


def coverage_of_axes(
    matrix: FrequencyMatrix, epsilon: str, at_records: bool, runs: int
) -> dict[str, NDArray[np.bool_]]:
    exact, axes = ExactCounter(matrix), matrix.domain.axes
    held: dict[str, list[NDArray[np.bool_]]] = {}
    for run in range(runs):
        release = publish(matrix, epsilon, noise=f"seeded:{run}")
        random = np.random.default_rng(run)
        for side in SIDES:
            boxes = boxes_of(matrix, side, at_records, random)
            edges = np.hstack([boxes.low, boxes.high]).astype(np.float64)
            rows = [axis.from_cells(edges[:, i]) for i, axis in enumerate(axes * 2)]
            answers, truth = release.count(np.column_stack(rows)), exact.count(boxes)
            found = (truth >= answers.low) & (truth <= answers.high)
            held.setdefault(f"{side:.0%} of the sides", []).append(found)
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


def show(rows: Iterable[tuple[str, dict[str, NDArray[np.bool_]]]], columns: list[str]) -> None:
    """A table with a row for each, as they come; and how many cells are below ENOUGH."""
    print(f"| | {' | '.join(columns)} |")
    print("| --- |" + " ---: |" * len(columns))
    every: list[float] = []
    for label, found in rows:
        shares = {kind: float(held.mean()) for kind, held in found.items()}
        every += shares.values()
        cells = [f"{shares[kind]:.1%}" if kind in shares else "" for kind in columns]
        print(f"| {label} | {' | '.join(cells)} |", flush=True)
    few = sum(share < ENOUGH for share in every)
    print(f"\n{few} of {len(every)} kinds below {ENOUGH:.0%}; least {min(every):.1%}, mean {np.mean(every):.1%}")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--mechanism", action="append", default=[])
    parser.add_argument("--epsilons", default=EPSILONS)
    parser.add_argument("--points", action="append", default=[])
    parser.add_argument("--bounds", action="append", default=[])
    parser.add_argument("--axes", action="store_true")
    given = parser.parse_args()
    places = {False: "anywhere", True: "at records"}
    epsilons = given.epsilons.split(",")
    if given.axes:
        rows = (
            (f"{label}, {e}, {places[at]}", coverage_of_axes(trips(names), e, at, given.runs))
            for (label, names), e, at in itertools.product(AXES.items(), epsilons, places)
        )
        show(rows, [f"{side:.0%} of the sides" for side in SIDES])
        return
    sets = read_sets(given.points, given.bounds)
    mechanisms = given.mechanism or ["htf"]
    asked = itertools.product(sets.items(), mechanisms, epsilons, places)
    rows = (
        (f"{name}, {m}, {e}, {places[at]}", coverage(points, m, e, at, given.runs))
        for (name, points), m, e, at in asked
    )
    show(rows, list(KINDS))


if __name__ == "__main__":
    main()
