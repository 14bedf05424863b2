"""The inner loops that find the zone of a point, exactly. Import them where they are used: numba is slow to load.

A point is in a zone if a ray from it to the right crosses the zone's outline an odd number of times. Edges are
half-open: an edge from y1 up to y2 is crossed by rays with y1 <= y < y2, and only if the point lies strictly to its
left. So a point on an outline is treated as if it lay a tiny bit further right and up. In a tiling with shared
corners each point then belongs to exactly one zone, also on edges and corners. That holds only if the side of an
edge is decided without rounding: where doubles leave a doubt, exact sums of doubles decide (Shewchuk, "Adaptive
Precision Floating-Point Arithmetic", 1997).

Two sorted lists of lines cut the plane into rows and columns. A *run* is a zone in one row: its edges there. Each
cell of this index knows the zones that reach into it, in order. If no edge of the first of them touches the cell, all
of the cell is in that zone, and its number stands for the cell. Other cells have a list: how many zones, and for each
its number and where the edges of its run start and end, or an empty run if all of the cell is in the zone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from htf.base.compiled import compiled
from htf.frame.domain import FloatArray

NOWHERE = -1.0
EMPTY, LISTED = -1, -2  # in place of a zone's number: no zone, or a list at `LISTED - number`
ENTRY = 3  # numbers for each zone in a list
TINY = 2.0**-400  # coordinates closer to 0 are 0, so that no product is too small for a double
LARGEST = 2.0**300  # coordinates of outlines are below it, so that no product is too large
DOUBT = 4.0 * 2.0**-53  # more than the rounding error of a cross product, as a share of its terms
SPLITTER = 134_217_729.0  # 2**27 + 1: cuts a double into two halves
TERMS = 16

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
EDGE = X1, Y1, X2, Y2 = range(4)  # the lower end comes first


class ZoneIndex(NamedTuple):
    """Zones that points can be looked up in."""

    x_lines: FloatArray
    y_lines: FloatArray
    cells: Ints  # row by row
    lists: Ints
    edges: FloatArray


@compiled
def find_zones(index: ZoneIndex, x: FloatArray, y: FloatArray, found: FloatArray) -> None:
    """The number of the first zone that holds each point, `NOWHERE` for other points, NaN for those that are no
    finite place."""
    x_lines, y_lines, cells, lists, edges = index
    columns = len(x_lines) - 1
    for point in range(len(x)):
        px, py = x[point], y[point]
        found[point] = NOWHERE
        if not (np.isfinite(px) and np.isfinite(py)):
            found[point] = np.nan
            continue
        px = 0.0 if abs(px) < TINY else px
        py = 0.0 if abs(py) < TINY else py
        column, row = place_of(x_lines, px), place_of(y_lines, py)
        if column < 0 or row < 0:
            continue
        number = cells[row * columns + column]
        if number > LISTED:
            found[point] = number
            continue
        first = LISTED - number
        for entry in range(first + 1, first + 1 + ENTRY * lists[first], ENTRY):
            start, end = lists[entry + 1], lists[entry + 2]
            if start == end or _is_inside(edges, start, end, px, py):
                found[point] = lists[entry]
                break


@compiled
def place_of(lines: FloatArray, value: float) -> int:
    """The interval `[lines[i], lines[i + 1])` that a value lies in; -1 if it lies in none."""
    left = len(lines) - 1
    if not lines[0] <= value < lines[left]:
        return -1
    place = 0
    while left > 1:  # a step without a branch: a processor would guess half of them wrong
        half = left // 2
        place += half if lines[place + half] <= value else 0
        left -= half
    return place


@compiled
def _is_inside(edges: FloatArray, start: int, end: int, x: float, y: float) -> bool:
    inside = False
    for number in range(start, end):
        if edges[number, Y1] <= y < edges[number, Y2] and is_left(
            edges[number, X1], edges[number, Y1], edges[number, X2], edges[number, Y2], x, y
        ):
            inside = not inside
    return inside


@compiled
def is_left(x1: float, y1: float, x2: float, y2: float, x: float, y: float) -> bool:
    """Whether a point lies strictly to the left of an edge that goes up, at the height of the edge."""
    if x < min(x1, x2):
        return True
    if x >= max(x1, x2):
        return False
    across, along = (x2 - x1) * (y - y1), (y2 - y1) * (x - x1)
    difference, doubt = across - along, DOUBT * (abs(across) + abs(along))
    if difference > doubt:
        return True
    if difference < -doubt:
        return False
    side: int = exact_side(x1, y1, x2, y2, x, y)
    return side > 0


@compiled
def exact_side(x1: float, y1: float, x2: float, y2: float, x: float, y: float) -> int:
    """The sign of (x2 - x1) (y - y1) - (y2 - y1) (x - x1): 1, 0 or -1. No rounding."""
    total = np.zeros(TERMS + 1)
    size = _add_product(total, 0, _difference(x2, x1), _difference(y, y1))
    size = _add_product(total, size, _difference(y1, y2), _difference(x, x1))
    for place in range(size - 1, -1, -1):  # the largest term that is not 0 has the sign of all
        if total[place] != 0:
            return 1 if total[place] > 0 else -1
    return 0


@compiled
def _add_product(
    total: FloatArray, size: int, one: tuple[float, float], other: tuple[float, float]
) -> int:
    """Add the product of two sums of two doubles. Returns the number of terms."""
    for a in one:
        for b in other:
            high, low = _product(a, b)
            size = _grow(total, size, low)
            size = _grow(total, size, high)
    return size


@compiled
def _grow(total: FloatArray, size: int, term: float) -> int:
    """Add a double to terms that do not overlap, the smallest first."""
    for place in range(size):
        term, total[place] = _sum(term, total[place])
    total[size] = term
    return size + 1


@compiled
def _sum(a: float, b: float) -> tuple[float, float]:
    """The rounded sum, and what rounding took away."""
    rounded = a + b
    of_b = rounded - a
    return rounded, (a - (rounded - of_b)) + (b - of_b)


@compiled
def _difference(a: float, b: float) -> Any:
    return _sum(a, -b)


@compiled
def _product(a: float, b: float) -> tuple[float, float]:
    """The rounded product, and what rounding took away."""
    rounded = a * b
    a_high, a_low = _halves(a)
    b_high, b_low = _halves(b)
    rest = rounded - a_high * b_high - a_low * b_high - a_high * b_low
    return rounded, a_low * b_low - rest


@compiled
def _halves(value: float) -> tuple[float, float]:
    """Two doubles of half the digits that add up to the value."""
    scaled = SPLITTER * value
    high = scaled - (scaled - value)
    return high, value - high


# The index ---------------------------------------------------------------------------------------


@compiled
def list_zones(
    x_lines: FloatArray,
    y_lines: FloatArray,
    edges: FloatArray,
    run_starts: Longs,
    run_rows: Ints,
    run_zones: Ints,
    counts: Ints,
    cells: Ints,
    lists: Ints,
) -> None:
    """Count the zones that reach into each cell. If there are lists to write, write them to where `cells` says."""
    columns = len(x_lines) - 1
    touched, crossed = np.zeros(columns + 1, np.int64), np.zeros(columns + 1, np.int64)
    for run in range(len(run_rows)):
        touched[:], crossed[:] = 0, 0
        bottom, reach = y_lines[run_rows[run]], 0
        for number in range(run_starts[run], run_starts[run + 1]):
            x1, x2 = edges[number, X1], edges[number, X2]
            first, last = _span(x_lines, min(x1, x2), max(x1, x2))
            touched[first] += 1
            touched[last + 1] -= 1
            reach = max(reach, last + 1)
            if edges[number, Y1] <= bottom < edges[number, Y2]:
                crossed[0] += 1  # by rays from all columns to the left
                crossed[first] -= 1
        edges_here, crossings = 0, 0
        for column in range(reach):
            edges_here += touched[column]
            crossings += crossed[column]
            if edges_here > 0 or crossings % 2 == 1:
                cell = run_rows[run] * columns + column
                if len(lists) > 0 and cells[cell] <= LISTED:
                    entry = LISTED - cells[cell] + 1 + ENTRY * counts[cell]
                    lists[entry - 1 - ENTRY * counts[cell]] += 1
                    lists[entry] = run_zones[run]
                    if edges_here > 0:
                        lists[entry + 1], lists[entry + 2] = run_starts[run], run_starts[run + 1]
                elif counts[cell] == 0 and edges_here == 0:
                    cells[cell] = run_zones[run]
                counts[cell] += 1


@compiled
def place_lists(counts: Ints, cells: Ints) -> int:
    """Give each cell without an answer of its own a place for its list. Returns the size of all lists."""
    size = 0
    for cell in range(len(cells)):
        if cells[cell] == EMPTY and counts[cell] > 0:
            cells[cell] = LISTED - size
            size += 1 + ENTRY * counts[cell]
    return size


@compiled
def _span(lines: FloatArray, low: float, high: float) -> tuple[int, int]:
    """The first and the last interval that an edge touches. The last line closes the last interval."""
    last = len(lines) - 2
    first = place_of(lines, low)
    until = place_of(lines, high)
    return last if first < 0 else first, last if until < 0 else until
