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

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from htf.base.compiled import compiled
from htf.frame.domain import FloatArray

# As in htf.query.tree_kernels. After a change there, delete the compiled cache of this module.
from htf.query.kernels import SMALLEST_WEIGHT, add_node, add_part
from htf.query.tree_kernels import (
    ABSOLUTE,
    ALPHA2_S,
    ALPHA_S,
    ANSWER,
    BELOW,
    C0,
    C1,
    C2,
    C3,
    CUT_SIZE,
    DEVIATIONS,
    ERROR,
    ESTIMATE,
    FIRST,
    FIRST_CHILD,
    FIRST_PART,
    FOURTH,
    GROUP_K,
    GROUP_S,
    HELD,
    HELD_IN_CUT,
    LARGEST,
    LINEAR,
    MOVED,
    NOISE,
    NONE_YET,
    NUMBER,
    ONLY_LEAF,
    PART_BOX,
    PARTS,
    RAW,
    REGION_BOX,
    SEVERAL,
    SIZE,
    SPREAD,
    SQUARE,
    SUMS,
    UNKNOWN_ALPHA,
    K,
    S,
    X,
    close,
    may_hold,
    moved_up,
    uneven,
)

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
    corners: FloatArray,
    ring_ends: NDArray[np.int64],
    polygon_ends: NDArray[np.int64],
    ranges: FloatArray,
    first: int,
    last: int,
    boxes: FloatArray,
    skip: NDArray[np.int64],
    sums: FloatArray,
    measures: FloatArray,
) -> None:
    """Like `kernels.measure_leaves`, for polygons in the first two axes and ranges of the others.
    Measures those from `first` up to but not including `last`."""
    nodes = len(boxes)
    until = np.full(DEEPEST_INDEX, nodes)  # where the node of each level ends
    pile = _new_pile(DEEPEST_INDEX)
    for query in range(first, last):
        row = measures[query]
        row[:] = 0.0
        row[SMALLEST_WEIGHT] = 1.0
        pile = _lay(corners, ring_ends, polygon_ends, query, pile)
        node, level = 0, 0
        while node < nodes:
            while node >= until[level]:
                level -= 1
            weight, pile = _covered_share(boxes, 0, node, ranges, level, pile)
            if weight == 0.0:
                node = skip[node]
            elif weight == 1.0:
                add_node(sums, node, row)
                node = skip[node]
            elif skip[node] > node + 1:
                level += 1
                until[level] = skip[node]
                node += 1
            else:
                add_part(weight, sums, node, row)
                node += 1


@compiled
def measure_tree(
    corners: FloatArray,
    ring_ends: NDArray[np.int64],
    polygon_ends: NDArray[np.int64],
    ranges: FloatArray,
    first: int,
    last: int,
    regions: FloatArray,
    parts: FloatArray,
    depth: int,
    kappa: float,
    root_variance: float,
    measures: FloatArray,
) -> None:
    """Like `tree_kernels.measure_tree`, for polygons in the first two axes and ranges of the others.
    Measures those from `first` up to but not including `last`."""
    path = np.empty(depth + 1, dtype=np.int64)
    places = np.empty((depth + 1, 2), dtype=np.int64)
    sums = np.empty((depth + 1, SUMS))
    pile = _new_pile(depth + 1)
    for query in range(first, last):
        row = measures[query]
        row[:] = 0.0
        row[ONLY_LEAF] = NONE_YET
        pile = _lay(corners, ring_ends, polygon_ends, query, pile)
        pile = _walk(ranges, regions, parts, kappa, path, places, sums, pile, row)
        row[NOISE] += sums[0, UNKNOWN_ALPHA] * sums[0, UNKNOWN_ALPHA] * root_variance
        row[FOURTH] = sums[0, C0]


@compiled
def _walk(
    ranges: FloatArray,
    regions: FloatArray,
    parts: FloatArray,
    kappa: float,
    path: NDArray[np.int64],
    places: NDArray[np.int64],
    sums: FloatArray,
    pile: Pile,
    row: FloatArray,
) -> Pile:
    """Walk depth first, because the pile has room for one path down at a time. Level 0 lies above the
    root and is a group of one. Regions that the polygon does not touch add nothing."""
    level = 0
    sums[0, :] = 0.0
    places[0, NEXT], places[0, STOP] = 0, 1
    while True:
        while places[level, NEXT] == places[level, STOP]:  # go up until a child is left to visit
            if level == 0:
                return pile
            level -= 1
            _close(path[level + 1], regions, sums, level, row)
        region = places[level, NEXT]
        places[level, NEXT] += 1
        alpha, pile = _covered_share(regions, REGION_BOX, region, ranges, level, pile)
        if 0.0 < alpha < 1.0 and regions[region, FIRST_CHILD] >= 0:
            level += 1
            path[level] = region
            sums[level, :] = 0.0
            places[level, NEXT] = int(regions[region, FIRST_CHILD])
            places[level, STOP] = places[level, NEXT] + int(regions[region, NUMBER])
        elif alpha > 0.0:
            _take(alpha, region, regions, kappa, row)
            _add(alpha, 0.0, 0.0, 0.0, 0.0, region, regions, sums, level)
            if alpha < 1.0 and regions[region, FIRST_PART] >= 0:
                row[MOVED] -= alpha * regions[region, ESTIMATE]
                places[level + 1, NEXT] = int(regions[region, FIRST_PART])
                places[level + 1, STOP] = places[level + 1, NEXT] + int(regions[region, NUMBER])
                pile = _take_parts(ranges, parts, places, level + 1, pile, row)


@compiled
def _take(weight: float, region: int, regions: FloatArray, kappa: float, row: FloatArray) -> None:
    """Add a leaf, or a region that lies wholly inside; `_take_parts` counts divided leaves."""
    row[RAW] += weight * regions[region, X]
    row[LARGEST] = max(row[LARGEST], weight)
    is_first = regions[region, FIRST_CHILD] < 0 and row[ONLY_LEAF] == NONE_YET
    row[ONLY_LEAF] = region if is_first else SEVERAL
    if weight < 1.0:
        of_leaf = weight * (1 - weight) * uneven(regions[region, X], kappa)
        row[SPREAD] += of_leaf
        row[DEVIATIONS] += np.sqrt(of_leaf)
        estimate, x = regions[region, ESTIMATE], regions[region, X]
        records = may_hold(estimate, x, regions[region, ERROR])
        row[HELD_IN_CUT] += weight * records
        row[LINEAR] += weight * (1 - weight) * records
        row[SQUARE] += weight * (1 - weight) * records * records
        if regions[region, FIRST_PART] >= 0:
            return
        row[CUT_SIZE] += weight * regions[region, ABSOLUTE]
    row[ANSWER] += weight * regions[region, ESTIMATE]
    row[SIZE] += weight * regions[region, ABSOLUTE]


@compiled
def _take_parts(
    ranges: FloatArray,
    parts: FloatArray,
    places: NDArray[np.int64],
    bottom: int,
    pile: Pile,
    row: FloatArray,
) -> Pile:
    """Add the parts of a divided leaf. They belong to this level, and so does what the pile has left
    of the polygon in the leaf."""
    level, answer = bottom, 0.0
    while level >= bottom:
        if places[level, NEXT] == places[level, STOP]:
            level -= 1
            continue
        part = places[level, NEXT]
        places[level, NEXT] += 1
        share, pile = _covered_share(parts, PART_BOX, part, ranges, level, pile)
        if parts[part, PARTS] > 0.0 and 0.0 < share < 1.0:
            level += 1
            places[level, NEXT] = int(parts[part, FIRST])
            places[level, STOP] = places[level, NEXT] + int(parts[part, PARTS])
        else:
            answer += share * parts[part, HELD]
            if share < 1.0:
                row[CUT_SIZE] += share * parts[part, HELD]
    row[ANSWER] += answer
    row[SIZE] += answer
    row[MOVED] += answer
    return pile


@compiled
def _close(region: int, regions: FloatArray, sums: FloatArray, level: int, row: FloatArray) -> None:
    """Add a region whose children have all been visited to the sums of its parent on that level."""
    alpha, noise, c0, c1, c2, c3 = close(
        sums[level + 1, ALPHA_S],
        sums[level + 1, ALPHA2_S],
        sums[level + 1, UNKNOWN_ALPHA],
        sums[level + 1, C0],
        sums[level + 1, C1],
        sums[level + 1, C2],
        sums[level + 1, C3],
        regions[region, GROUP_S],
        regions[region, GROUP_K],
        regions[region, BELOW],
    )
    row[NOISE] += noise
    _add(alpha, c0, c1, c2, c3, region, regions, sums, level)


@compiled
def _add(
    alpha: float,
    c0: float,
    c1: float,
    c2: float,
    c3: float,
    region: int,
    regions: FloatArray,
    sums: FloatArray,
    level: int,
) -> None:
    """Add a child's alpha and polynomial to the sums of its parent."""
    s = regions[region, S]
    if s == 0.0 or level == 0:
        sums[level, UNKNOWN_ALPHA] = alpha
    sums[level, ALPHA_S] += alpha * s
    sums[level, ALPHA2_S] += alpha * alpha * s
    c0, c1, c2, c3 = moved_up(alpha, regions[region, K], c0, c1, c2, c3)
    sums[level, C0] += c0
    sums[level, C1] += c1
    sums[level, C2] += c2
    sums[level, C3] += c3


@compiled
def _new_pile(depth: int) -> Pile:
    tops = np.zeros(depth + 2, dtype=np.int64)
    frames = np.empty((depth + 1, 4))
    ends = np.empty(64, dtype=np.int64)
    return Pile(np.empty((1024, 2)), ends, tops, frames, np.empty((256, 2)), np.empty((256, 2)))


@compiled
def _lay(
    corners: FloatArray,
    ring_ends: NDArray[np.int64],
    polygon_ends: NDArray[np.int64],
    number: int,
    pile: Pile,
) -> Pile:
    """Lay a whole polygon down as the lowest level of the pile."""
    first = polygon_ends[number - 1] if number > 0 else 0
    start = ring_ends[first - 1] if first > 0 else 0
    rings = polygon_ends[number] - first
    stop = ring_ends[first + rings - 1] if rings > 0 else start
    pile = _with_room(0, stop - start, rings, pile)
    for corner in range(stop - start):
        for axis in range(2):
            pile.corners[corner, axis] = corners[start + corner, axis]
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
        for corner in range(used):
            for axis in range(2):
                corners[corner, axis] = pile.corners[corner, axis]
    if rings > len(ends):
        ends = np.empty(2 * rings, dtype=np.int64)
        for ring in range(len(pile.ends)):
            ends[ring] = pile.ends[ring]
    if more > len(one):
        one, other = np.empty((2 * more, 2)), np.empty((2 * more, 2))
    return Pile(corners, ends, pile.tops, pile.frames, one, other)


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
        for corner in range(count):
            for axis in range(2):
                one[corner, axis] = pile.corners[start + corner, axis]
        start = pile.ends[ring]
        for side in range(4):
            axis, above = side % 2, side < 2
            bound = boxes[box, at + axis] if above else boxes[box, to + axis]
            kept = _clip_side(one, count, other, axis, bound, above)
            if kept >= 0:
                one, other, count = other, one, kept
        if count >= 3:
            for corner in range(count):
                for axis in range(2):
                    pile.corners[used + corner, axis] = one[corner, axis]
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
    west, south, east, north = (
        boxes[box, at],
        boxes[box, at + 1],
        boxes[box, to],
        boxes[box, to + 1],
    )
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
