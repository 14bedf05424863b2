"""The inner loops of polygon counts, compiled. Import them where they are used: numba is slow to load.

A loop goes down from the whole map to the leaves, and clips the polygon to each region, starting from what
was left of it in the region around. The clipped area is exact, even with holes: the clip of Sutherland and
Hodgman (CACM 1974) leaves edges that run to and fro along the sides of the region, and those cancel in a
signed area. If no edge is left inside a region, the region lies wholly inside or outside the polygon, and
the loop goes no deeper. So the time follows the number of regions along the outline, not the number inside.

Outlines run with the polygon on their left, also around holes. The *pile* holds the corners of what is
left, ring after ring and level upon level: `ends` says where each ring ends, `tops` how many rings lie
below each level, and `frames` has the bounding box of each level.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from htf.base.compiled import compiled, inlined
from htf.frame.domain import FloatArray

# The modules are imported whole, so that a change of their constants is noticed.
from htf.query import kernels
from htf.query import tree_kernels as tree

if TYPE_CHECKING:
    from htf.query.polygons import Outlines

DEEPEST_INDEX = 64  # levels: enough for groups of at least two
NEXT, STOP = range(2)  # the children of a region that are still to be visited
GROWTH = 6  # clipping at one side leaves at most 1.5 times the corners, and 1.5**4 is less
LEAST_SHARE = 1e-300  # for a region that an edge runs through, even if its area is rounded to 0
LARGEST_SHARE = 1 - 2.0**-53


class Pile(NamedTuple):
    """The pieces left of a polygon, level by level, and room to work in."""

    corners: FloatArray
    ends: NDArray[np.int64]
    tops: NDArray[np.int64]
    frames: FloatArray
    one: FloatArray
    other: FloatArray


@compiled
def measure_leaves(
    outlines: Outlines,
    first: int,
    boxes: FloatArray,
    skip: NDArray[np.int64],
    sums: FloatArray,
    measures: FloatArray,
) -> None:
    """Like `kernels.measure_leaves`, for polygons in the first two axes and ranges of the others.
    Measures as many as there are rows of `measures`, from `first` on."""
    nodes = len(boxes)
    until = np.full(DEEPEST_INDEX, nodes)  # where the node of each level ends
    pile = _new_pile(DEEPEST_INDEX)
    for query in range(len(measures)):
        row = measures[query]
        row[:] = 0.0
        row[kernels.SMALLEST_WEIGHT] = 1.0
        pile = _lay(outlines, first + query, pile)
        node, level = 0, 0
        while node < nodes:
            while node >= until[level]:
                level -= 1
            weight, pile = _covered_share(boxes, 0, node, outlines.ranges, level, pile)
            if weight == 0.0:
                node = skip[node]
            elif weight == 1.0:
                kernels.add_node(sums, node, row)
                node = skip[node]
            elif skip[node] > node + 1:
                level += 1
                until[level] = skip[node]
                node += 1
            else:
                kernels.add_part(weight, sums, node, row)
                node += 1


@compiled
def measure_tree(
    outlines: Outlines,
    first: int,
    regions: FloatArray,
    parts: FloatArray,
    depth: int,
    kappa: float,
    root_variance: float,
    measures: FloatArray,
) -> None:
    """Like `tree_kernels.measure_tree`, for polygons in the first two axes and ranges of the others.
    Measures as many as there are rows of `measures`, from `first` on.

    It walks depth first, because the pile has room for one path down at a time. Level 0 lies above the
    root and is a group of one. Regions that the polygon does not touch add nothing.
    """
    ranges = outlines.ranges
    path = np.empty(depth + 1, dtype=np.int64)
    places = np.empty((depth + 1, 2), dtype=np.int64)
    sums = np.empty((depth + 1, tree.SUMS))
    pile = _new_pile(depth + 1)
    for query in range(len(measures)):
        row = measures[query]
        pile = _lay(outlines, first + query, pile)
        taken, noise, level = tree.NOTHING_TAKEN, 0.0, 0
        tree.write(tree.NO_CHILDREN, sums, 0)
        places[0, NEXT], places[0, STOP] = 0, 1
        while level > 0 or places[0, NEXT] < places[0, STOP]:
            if places[level, NEXT] == places[level, STOP]:  # go up: all children were visited
                level -= 1
                noise += tree.close(path[level + 1], level + 1, regions, sums, level)
                continue
            region = places[level, NEXT]
            places[level, NEXT] += 1
            share, pile = _covered_share(regions, tree.REGION_BOX, region, ranges, level, pile)
            number = int(regions[region, tree.NUMBER])
            if 0.0 < share < 1.0 and regions[region, tree.FIRST_CHILD] >= 0:
                level += 1
                path[level] = region
                tree.write(tree.NO_CHILDREN, sums, level)
                places[level, NEXT] = int(regions[region, tree.FIRST_CHILD])
                places[level, STOP] = places[level, NEXT] + number
            elif share > 0.0:
                taken = tree.with_region(taken, share, region, regions, kappa)
                tree.add_child(share, tree.NO_NOISE, region, regions, sums, level)
                if share < 1.0 and regions[region, tree.FIRST_PART] >= 0:
                    places[level + 1, NEXT] = int(regions[region, tree.FIRST_PART])
                    places[level + 1, STOP] = places[level + 1, NEXT] + number
                    taken, pile = _with_parts(taken, ranges, parts, places, level + 1, pile)
        for column in range(len(taken)):
            row[column] = taken[column]
        unknown = sums[0, tree.UNKNOWN_ALPHA]
        row[tree.NOISE] = noise + unknown * unknown * root_variance
        row[tree.FOURTH] = sums[0, tree.C0]


@compiled
def _with_parts(
    taken: tree.Numbers,
    ranges: FloatArray,
    parts: FloatArray,
    places: NDArray[np.int64],
    bottom: int,
    pile: Pile,
) -> tuple[tree.Numbers, Pile]:
    """Add the parts of a divided leaf. They belong to this level, and so does what the pile has left
    of the polygon in the leaf."""
    level, answer, cut_size = bottom, 0.0, taken[tree.CUT_SIZE]
    while level >= bottom:
        if places[level, NEXT] == places[level, STOP]:
            level -= 1
            continue
        part = places[level, NEXT]
        places[level, NEXT] += 1
        share, pile = _covered_share(parts, tree.PART_BOX, part, ranges, level, pile)
        if parts[part, tree.PARTS] > 0.0 and 0.0 < share < 1.0:
            level += 1
            places[level, NEXT] = int(parts[part, tree.FIRST])
            places[level, STOP] = places[level, NEXT] + int(parts[part, tree.PARTS])
        else:
            answer += share * parts[part, tree.HELD]
            cut_size += share * parts[part, tree.HELD] if share < 1.0 else 0.0
    return tree.with_parts(taken, answer, cut_size), pile


@compiled
def _new_pile(depth: int) -> Pile:
    tops = np.zeros(depth + 2, dtype=np.int64)
    frames = np.empty((depth + 1, 4))
    ends = np.empty(64, dtype=np.int64)
    return Pile(np.empty((1024, 2)), ends, tops, frames, np.empty((256, 2)), np.empty((256, 2)))


@compiled
def _lay(outlines: Outlines, number: int, pile: Pile) -> Pile:
    """Lay a whole polygon down as the lowest level of the pile."""
    polygon_ends, ring_ends = outlines.polygon_ends, outlines.ring_ends
    first = polygon_ends[number - 1] if number > 0 else 0
    start = ring_ends[first - 1] if first > 0 else 0
    rings = polygon_ends[number] - first
    stop = ring_ends[first + rings - 1] if rings > 0 else start
    pile = _with_room(0, stop - start, rings, pile)
    _copy(outlines.corners, start, stop - start, pile.corners, 0)
    for ring in range(rings):
        pile.ends[ring] = ring_ends[first + ring] - start
    pile.tops[0], pile.tops[1] = 0, rings
    _frame(0, pile)
    return pile


@compiled
def _with_room(used: int, more: int, rings: int, pile: Pile) -> Pile:
    """The pile with room for `more` corners, both on it and to work in, and for `rings` in total."""
    corners, ends, one, other = pile.corners, pile.ends, pile.one, pile.other
    if used + more > len(corners):
        corners = np.empty((2 * (used + more), 2))
        _copy(pile.corners, 0, used, corners, 0)
    if rings > len(ends):
        ends = np.empty(2 * rings, dtype=np.int64)
        for ring in range(len(pile.ends)):
            ends[ring] = pile.ends[ring]
    if more > len(one):
        one, other = np.empty((2 * more, 2)), np.empty((2 * more, 2))
    return Pile(corners, ends, pile.tops, pile.frames, one, other)


@inlined
def _copy(source: FloatArray, start: int, number: int, target: FloatArray, to: int) -> None:
    """Copy corners. (Assigning a slice takes seconds to compile.)"""
    for corner in range(number):
        for axis in range(2):
            target[to + corner, axis] = source[start + corner, axis]


@compiled
def _first_corner(level: int, pile: Pile) -> int:
    rings = pile.tops[level]
    return int(pile.ends[rings - 1]) if rings > 0 else 0


@compiled
def _frame(level: int, pile: Pile) -> None:
    """Set the bounding box of a level. That of an empty level touches nothing."""
    for axis in range(2):
        least, most = np.inf, -np.inf
        for corner in range(_first_corner(level, pile), _first_corner(level + 1, pile)):
            least = min(least, pile.corners[corner, axis])
            most = max(most, pile.corners[corner, axis])
        pile.frames[level, axis], pile.frames[level, 2 + axis] = least, most


@compiled
def _covered_share(
    boxes: FloatArray, at: int, box: int, ranges: FloatArray, level: int, pile: Pile
) -> tuple[float, Pile]:
    """The share of a region that is counted, and the pile with what is left of the polygon in it, as
    level + 1. The share is 0 or 1 only if the region lies wholly outside or inside. The region is row
    `box` of a table, with low edges from column `at` on."""
    to = at + 2 + len(ranges)  # where the high edges begin
    for axis in range(2):
        if pile.frames[level, axis] >= boxes[box, to + axis]:
            return 0.0, pile
        if pile.frames[level, 2 + axis] <= boxes[box, at + axis]:
            return 0.0, pile
    along = 1.0
    for axis in range(len(ranges)):
        start, stop = boxes[box, at + 2 + axis], boxes[box, to + 2 + axis]
        if ranges[axis, 0] > start or ranges[axis, 1] < stop:
            both = min(ranges[axis, 1], stop) - max(ranges[axis, 0], start)
            along *= max(both, 0.0) / (stop - start)
    if along == 0.0:
        return 0.0, pile
    used = _first_corner(level + 1, pile)
    more = GROWTH * (used - _first_corner(level, pile))
    rings = 2 * pile.tops[level + 1] - pile.tops[level]
    if used + more > len(pile.corners) or more > len(pile.one) or rings > len(pile.ends):
        pile = _with_room(used, more, rings, pile)
    _clip(boxes, at, to, box, level, pile)
    area, through = _area(boxes, at, to, box, level + 1, pile)
    width, height = boxes[box, to] - boxes[box, at], boxes[box, to + 1] - boxes[box, at + 1]
    share = area / (width * height)
    if through:
        return along * min(max(share, LEAST_SHARE), LARGEST_SHARE), pile
    return along * min(max(np.rint(share), 0.0), 1.0), pile


@compiled
def _clip(boxes: FloatArray, at: int, to: int, box: int, level: int, pile: Pile) -> None:
    """Clip a level to a region, and put the result on top of the pile, which has room for it."""
    top, used = pile.tops[level + 1], _first_corner(level + 1, pile)
    one, other = pile.one, pile.other
    start = _first_corner(level, pile)
    for ring in range(pile.tops[level], pile.tops[level + 1]):
        count = pile.ends[ring] - start
        _copy(pile.corners, start, count, one, 0)
        start = pile.ends[ring]
        for side in range(4):
            axis, above = side % 2, side < 2
            bound = boxes[box, at + axis] if above else boxes[box, to + axis]
            kept = _clip_side(one, count, other, axis, bound, above)
            if kept >= 0:
                one, other, count = other, one, kept
        if count >= 3:
            _copy(one, 0, count, pile.corners, used)
            used += count
            pile.ends[top] = used
            top += 1
    pile.tops[level + 2] = top
    _frame(level + 1, pile)


@compiled
def _clip_side(
    ring: FloatArray, count: int, kept: FloatArray, axis: int, bound: float, above: bool
) -> int:
    """Clip by one side, after Sutherland and Hodgman; -1 if there is nothing to cut off.

    New corners lie exactly on the side, and within the edge that they divide.
    """
    sign = 1.0 if above else -1.0
    least, most = np.inf, -np.inf
    for corner in range(count):
        beyond = sign * (ring[corner, axis] - bound)
        least, most = min(least, beyond), max(most, beyond)
    if least >= 0.0:
        return -1
    if most <= 0.0:
        return 0  # the ring at most touches the side
    number, before = 0, count - 1
    was_inside = sign * (ring[before, axis] - bound) >= 0.0
    for corner in range(count):
        inside = sign * (ring[corner, axis] - bound) >= 0.0
        if inside != was_inside:
            start, stop = ring[before, 1 - axis], ring[corner, 1 - axis]
            way = (bound - ring[before, axis]) / (ring[corner, axis] - ring[before, axis])
            place = start + way * (stop - start)
            kept[number, axis] = bound
            kept[number, 1 - axis] = min(max(place, min(start, stop)), max(start, stop))
            number += 1
        if inside:
            kept[number, 0], kept[number, 1] = ring[corner, 0], ring[corner, 1]
            number += 1
        before, was_inside = corner, inside
    return number


@compiled
def _area(
    boxes: FloatArray, at: int, to: int, box: int, level: int, pile: Pile
) -> tuple[float, bool]:
    """The signed area of a level, and whether one of its edges runs through the inside of the region.

    Each ring is measured from one of its own corners, or a small ring far away would lose digits.
    """
    west, south = boxes[box, at], boxes[box, at + 1]
    east, north = boxes[box, to], boxes[box, to + 1]
    area, through = 0.0, False
    start = _first_corner(level, pile)
    for ring in range(pile.tops[level], pile.tops[level + 1]):
        stop = pile.ends[ring]
        x, y = pile.corners[stop - 1, 0], pile.corners[stop - 1, 1]
        from_x, from_y = x, y
        for corner in range(start, stop):
            to_x, to_y = pile.corners[corner, 0], pile.corners[corner, 1]
            area += ((from_x - x) * (to_y - y) - (to_x - x) * (from_y - y)) / 2
            if from_x == to_x:
                through = through or (west < to_x < east and from_y != to_y)
            elif from_y == to_y:
                through = through or south < to_y < north
            else:
                through = True
            from_x, from_y = to_x, to_y
        start = stop
    return area, through
