"""Time of box counts against shapely's STRtree, on the same leaves and boxes, in one run.

    python benchmarks/query.py
    python benchmarks/query.py RELEASE

The leaves are a random kd tiling of a 1024 x 1024 grid, small where synthetic points are dense. Then the error
bars of least squares, on a binary tree of which every region was counted. With a release, the processor time of
processes that load it and count one box; that of its first count after loading in a warm process, which computes what
answers are made of; and boxes of 2 and 10 % of its map's side, on one core: the best of five times.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median

import numpy as np
import shapely
from rich.console import Console
from rich.table import Table

from htf import Release
from htf.base.compiled import many_ahead
from htf.estimation.least_squares import TreeCounts
from htf.frame.domain import Domain, FloatArray, IntArray
from htf.frame.tree import RegionTree
from htf.privacy.epsilon import Epsilon
from htf.query.boxes import axis_table, count_boxes
from htf.query.index import BoxIndex
from htf.query.tree_index import TreeIndex

SIDE = 1024
POINTS = 1_000_000
MOST_POINTS_PER_LEAF = 27  # gives about 50,000 leaves
BOXES = 1_000_000
SAMPLE = 200
TREE_HEIGHT = 17  # gives 262,143 regions, of 2 x 4 cells at the bottom
TREE_BOXES = 10_000
SMALL_CALL = 500  # boxes
FIRST_COUNTS = 9
COLD = "import sys, htf; htf.Release.load(sys.argv[1]).count([float(edge) for edge in sys.argv[2].split(',')])"


def make_points(random: np.random.Generator) -> FloatArray:
    """Some towns of different sizes, and a tenth spread evenly."""
    towns = random.uniform(0, SIDE, (30, 2))
    spreads = random.uniform(10, 120, 30)
    town = random.integers(0, 30, POINTS)
    points = random.normal(towns[town], spreads[town, None])
    even = random.random(POINTS) < 0.1
    points[even] = random.uniform(0, SIDE, (int(even.sum()), 2))
    inside = np.all((points >= 0) & (points < SIDE), axis=1)
    return np.asarray(points[inside])


def make_leaves(random: np.random.Generator, points: FloatArray) -> tuple[IntArray, IntArray]:
    leaves = []
    work = [((0, 0), (SIDE, SIDE), points)]
    while work:
        low, high, inside = work.pop()
        axis = int(high[1] - low[1] > high[0] - low[0])  # the longer one
        if len(inside) <= MOST_POINTS_PER_LEAF or high[axis] - low[axis] < 2:
            leaves.append((low, high))
            continue
        middle, spread = (low[axis] + high[axis]) // 2, (high[axis] - low[axis]) // 4
        split = middle + int(random.integers(-spread, spread + 1))
        split = min(max(split, low[axis] + 1), high[axis] - 1)
        below = inside[:, axis] < split
        work.append((low, replace(high, axis, split), inside[below]))
        work.append((replace(low, axis, split), high, inside[~below]))
    edges = np.array(leaves, dtype=np.int64)
    return edges[:, 0], edges[:, 1]


def replace(corner: tuple[int, int], axis: int, value: int) -> tuple[int, int]:
    return (value, corner[1]) if axis == 0 else (corner[0], value)


def make_boxes(random: np.random.Generator, number: int) -> FloatArray:
    """Centre, width and height uniform; parts beyond the edge count nothing."""
    centres = random.uniform(0, SIDE, (number, 2))
    sizes = random.uniform(0, SIDE, (number, 2))
    return np.column_stack([centres - sizes / 2, centres + sizes / 2])


def make_aligned_boxes(low: IntArray, high: IntArray, wanted: int) -> FloatArray:
    """Boxes with edges on edges of the grid, that touch about `wanted` leaves each."""
    if wanted == 1:
        return np.column_stack([low, high]).astype(np.float64)
    half = SIDE * np.sqrt(wanted / len(low)) / 2
    centres = (low + high) // 2
    return np.asarray(np.rint(np.column_stack([centres - half, centres + half])))


def count_with_shapely(
    tree: shapely.STRtree, areas: FloatArray, estimates: FloatArray, box: FloatArray
) -> float:
    shape = shapely.box(*box)
    hits = tree.query(shape)  # by bounding box, which for boxes is exact and fastest
    overlaps = shapely.area(shapely.intersection(tree.geometries[hits], shape))
    return float(overlaps / areas[hits] @ estimates[hits])


def seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def main() -> None:
    many_ahead()
    random = np.random.default_rng(20240)
    low, high = make_leaves(random, make_points(random))
    assert np.prod(high - low, axis=1).sum() == SIDE**2
    estimates = random.poisson(MOST_POINTS_PER_LEAF, len(low)) + random.normal(0, 14, len(low))
    scales = np.full(len(low), 10.0)
    domain = Domain.from_bounds(0, 0, SIDE, SIDE, SIDE, crs=None)

    timings: dict[str, tuple[float, int]] = {}
    index = BoxIndex(low, high, estimates, scales)
    timings["build the index"] = seconds(lambda: BoxIndex(low, high, estimates, scales)), 1
    one_box = [[100.5, 100.5, 300.5, 300.5]]
    timings["first count (loads or compiles)"] = (
        seconds(lambda: count_boxes(domain, index, one_box)),
        1,
    )
    repeats = 200
    timings["one box a call"] = (
        seconds(lambda: [count_boxes(domain, index, one_box) for _ in range(repeats)]),
        repeats,
    )
    boxes = make_boxes(random, BOXES)
    timings["random boxes"] = seconds(lambda: count_boxes(domain, index, boxes)), BOXES
    for wanted in (1, 10, 1000):
        aligned = make_aligned_boxes(low, high, wanted)
        label = f"aligned boxes of about {wanted} leaves"
        timings[label] = seconds(partial(count_boxes, domain, index, aligned)), len(aligned)

    tree = shapely.STRtree(shapely.box(low[:, 0], low[:, 1], high[:, 0], high[:, 1]))
    areas = np.prod(high - low, axis=1).astype(np.float64)
    sample = boxes[:SAMPLE]
    expected: list[float] = []
    timings["shapely STRtree, random boxes"] = (
        seconds(
            lambda: expected.extend(
                count_with_shapely(tree, areas, estimates, box) for box in sample
            )
        ),
        SAMPLE,
    )
    np.testing.assert_allclose(count_boxes(domain, index, sample).count, expected, rtol=1e-6)
    timings.update(time_tree(random))
    report(len(low), timings)


def time_tree(random: np.random.Generator) -> dict[str, tuple[float, int]]:
    """Estimates from all counts of a tree: building what answers with their error bars, and asking it."""
    tree, counts = RegionTree((SIDE, SIDE)), TreeCounts()
    leaves = np.zeros(1, dtype=np.int64)
    for level in range(TREE_HEIGHT):
        leaves = tree.halve(leaves, [level % 2])
    counts.add(np.arange(len(tree)), random.integers(0, 1000, len(tree)), Epsilon.of("0.1"))
    boxes = make_boxes(random, TREE_BOXES)
    index = TreeIndex(tree, counts, leaves)
    axes = axis_table(Domain.from_bounds(0, 0, SIDE, SIDE, SIDE, crs=None).axes)
    index.answer(boxes[:1], axes)  # loads or compiles
    return {
        f"a tree of {len(tree):,} regions: build": (
            seconds(lambda: TreeIndex(tree, counts, leaves)),
            1,
        ),
        "a tree, random boxes": (seconds(lambda: index.answer(boxes, axes)), TREE_BOXES),
    }


def time_release(path: str) -> None:
    """Boxes anywhere on the map, in calls that are too small for threads."""
    release, random = Release.load(path), np.random.default_rng(0)
    index, axes = release.derived.answering_index, axis_table(release.domain.axes[:2])
    low, high = axes[:, 0], axes[:, 1]
    print(f"{len(release):,} leaves, {len(release.derived.parts.low):,} parts")
    time_cold(path, low, high)
    many_ahead()
    time_first_count(path)
    for share in (0.02, 0.1):
        sides = share * (high - low)
        starts = low + random.random((TREE_BOXES, 2)) * (high - low - sides)
        boxes = np.hstack([starts, starts + sides])
        calls = np.split(boxes, TREE_BOXES // SMALL_CALL)
        ask = partial(_ask_all, index, calls, axes)
        best = min(seconds(ask) for _ in range(5))
        print(f"boxes of {share:.0%} of the side: {best / TREE_BOXES * 1e6:.2f} microseconds each")


def time_cold(path: str, low: FloatArray, high: FloatArray) -> None:
    """The first answer of a new process, about a fifth of each side: the least processor time of several."""
    box = ",".join(str(edge) for edge in np.r_[low + 0.4 * (high - low), low + 0.6 * (high - low)])
    for name, words in (
        ("htf query", ["-m", "htf", "query", path, f"--box={box}"]),
        ("Release.load and count", ["-c", COLD, path, box]),
    ):
        took = []
        for _ in range(FIRST_COUNTS):
            child = subprocess.Popen([sys.executable, *words], stdout=subprocess.DEVNULL)
            _, status, used = os.wait4(child.pid, 0)
            child.returncode = status
            took.append(used.ru_utime + used.ru_stime)
        print(f"{name} in a new process: {min(took):.2f} s of processor time at best")


def time_first_count(path: str) -> None:
    """In a warm process, of a release that was just loaded: median and least of several."""
    took = []
    for _ in range(FIRST_COUNTS + 1):
        release = Release.load(path)
        start = time.process_time()
        release.count()
        took.append(time.process_time() - start)
    took = took[1:]  # the first one loads or compiles
    print(f"first count: {median(took):.3f} s of processor time, {min(took):.3f} at best")


def _ask_all(index: BoxIndex | TreeIndex, calls: Sequence[FloatArray], axes: FloatArray) -> None:
    for call in calls:
        index.answer(call, axes)


def report(leaves: int, timings: dict[str, tuple[float, int]]) -> None:
    table = Table("what", "number", "seconds", "microseconds each", title=f"{leaves:,} leaves")
    for name, (took, number) in timings.items():
        table.add_row(name, f"{number:,}", f"{took:.3f}", f"{took / number * 1e6:,.2f}")
    each = {name: took / number for name, (took, number) in timings.items()}
    ratio = each["shapely STRtree, random boxes"] / each["random boxes"]
    console = Console()
    console.print(table)
    console.print(f"random boxes: {ratio:,.0f} times as fast as shapely, for each box")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        time_release(sys.argv[1])
    else:
        main()
