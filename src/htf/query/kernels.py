"""The inner loop of box counts, compiled. Import it where it is used: numba is slow to load."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from htf.domain import FloatArray

# The columns of `sums`, one row for each node of the hierarchy ...
ESTIMATE, ABSOLUTE, VARIANCE, FOURTH_CUMULANT, NOISY_LEAVES = range(5)
# ... and what `measures` adds to them, one row for each query.
PARTIAL_ABSOLUTE, SMALLEST_WEIGHT, LARGEST_WEIGHT = range(5, 8)


@njit(cache=True, nogil=True)
def measure_boxes(  # noqa: PLR0912 - one compiled loop over plain arrays
    query_low: FloatArray,
    query_high: FloatArray,
    node_low: FloatArray,
    node_high: FloatArray,
    skip: NDArray[np.int64],
    sums: FloatArray,
    measures: FloatArray,
) -> None:
    """Walk the nodes in depth-first order for each query, passing over those that are settled."""
    nodes, dimensions = node_low.shape
    for query in range(len(query_low)):
        row = measures[query]
        row[:] = 0.0
        row[SMALLEST_WEIGHT] = 1.0
        node = 0
        for axis in range(dimensions):
            if query_low[query, axis] >= query_high[query, axis]:
                node = nodes  # an empty box touches nothing
        while node < nodes:
            outside = False
            inside = True
            for axis in range(dimensions):
                low, high = query_low[query, axis], query_high[query, axis]
                if low >= node_high[node, axis] or high <= node_low[node, axis]:
                    outside = True
                    break
                if low > node_low[node, axis] or high < node_high[node, axis]:
                    inside = False
            if outside:
                node = skip[node]
            elif inside:
                for column in range(5):
                    row[column] += sums[node, column]
                if sums[node, NOISY_LEAVES] > 0:
                    row[LARGEST_WEIGHT] = 1.0
                node = skip[node]
            elif skip[node] > node + 1:
                node += 1  # into its first child
            else:
                weight = 1.0
                for axis in range(dimensions):
                    low = max(query_low[query, axis], node_low[node, axis])
                    high = min(query_high[query, axis], node_high[node, axis])
                    weight *= (high - low) / (node_high[node, axis] - node_low[node, axis])
                row[ESTIMATE] += weight * sums[node, ESTIMATE]
                row[ABSOLUTE] += weight * sums[node, ABSOLUTE]
                row[PARTIAL_ABSOLUTE] += weight * sums[node, ABSOLUTE]
                if sums[node, NOISY_LEAVES] > 0:
                    row[VARIANCE] += weight**2 * sums[node, VARIANCE]
                    row[FOURTH_CUMULANT] += weight**4 * sums[node, FOURTH_CUMULANT]
                    row[NOISY_LEAVES] += 1
                    row[SMALLEST_WEIGHT] = min(row[SMALLEST_WEIGHT], weight)
                    row[LARGEST_WEIGHT] = max(row[LARGEST_WEIGHT], weight)
                node += 1


# Of a tree of counts: the columns of `links` ...
FIRST_CHILD, SLABS, AXIS, PIVOT = range(4)
# ... of `values`, one row for each region: its edges along the axis of the cut that made it; its
# estimate, s and fourth cumulant; their running sums over the siblings up to it; the sums of s and
# cumulant over its children; and the variance of spread, for w (1 - w) = 1 ...
START, STOP, X, S, K, RUNNING, GROUP_S, GROUP_K, UNEVEN = 0, 1, 2, 3, 4, 5, 8, 9, 10
# ... and of what is measured, one row for each query.
RAW, NOISE, SPREAD, FOURTH, LARGEST, ONLY_LEAF = range(6)
# A region that is being walked through: which child is next, the last, the children wholly inside
# from and to; and sums over its children so far: of alpha s and alpha^2 s, of alpha^k K for k from 1
# to 4, and the alpha of the child nothing is known of.
NEXT, LAST, HOLE_FROM, HOLE_TO = range(4)
ALPHA_S, ALPHA2_S, ALPHA_K, PIVOT_ALPHA = 0, 1, 2, 6
SEVERAL = -1.0  # leaves
NONE_YET = -2.0


@njit(cache=True, nogil=True)
def running_sums(parent: NDArray[np.int64], values: FloatArray) -> FloatArray:
    """For each region the sum over the siblings up to it. (Differences of one long cumulative sum
    would lose the digits of small groups.)"""
    sums = values.copy()
    for region in range(1, len(parent)):
        if parent[region] == parent[region - 1]:
            sums[region] = sums[region - 1] + values[region]
    return sums


@njit(cache=True, nogil=True)
def measure_tree(
    query_low: FloatArray,
    query_high: FloatArray,
    box: FloatArray,
    links: NDArray[np.int64],
    values: FloatArray,
    root: FloatArray,
    depth: int,
    measures: FloatArray,
) -> None:
    """Walk the regions cut by each query's edges, children first; see `htf.query.tree_noise`."""
    path = np.empty(depth, dtype=np.int64)
    places = np.empty((depth, 4), dtype=np.int64)
    sums = np.empty((depth, 7))
    for query in range(len(query_low)):
        low, high, row = query_low[query], query_high[query], measures[query]
        row[:] = 0.0
        row[ONLY_LEAF] = NONE_YET
        empty = False
        for axis in range(len(low)):
            empty = empty or low[axis] >= high[axis]
        alpha = 0.0
        if not empty:  # an empty box touches nothing
            alpha = _measure_one(low, high, box, links, values, path, places, sums, row)
        row[NOISE] += alpha**2 * root[0]
        row[FOURTH] += alpha**4 * root[1]
        if row[ONLY_LEAF] == NONE_YET:
            row[ONLY_LEAF] = SEVERAL


@njit(cache=True, nogil=True)
def _measure_one(
    low: FloatArray,
    high: FloatArray,
    box: FloatArray,
    links: NDArray[np.int64],
    values: FloatArray,
    path: NDArray[np.int64],
    places: NDArray[np.int64],
    sums: FloatArray,
    row: FloatArray,
) -> float:
    """The root's alpha; all else goes to `row`. `path` is where the walk is, region by region."""
    level, region = -1, 0
    while True:
        weight = _covered_share(low, high, box[region])
        if 0.0 < weight < 1.0 and links[region, FIRST_CHILD] >= 0:
            level += 1
            path[level] = region
            _open(low, high, box[region], links[region], values, places[level], sums[level], row)
            alpha = -1.0
        else:
            alpha = weight
            if weight > 0.0:
                is_leaf = links[region, FIRST_CHILD] < 0
                _take(weight, is_leaf, region, values[region], row)
        while True:  # hand alphas up, until there is a child to go to
            if alpha >= 0.0:
                if level < 0:
                    return alpha
                _add(alpha, region, values[region], links[path[level], PIVOT], sums[level])
            place = places[level]
            if place[NEXT] == place[HOLE_FROM]:
                place[NEXT] = place[HOLE_TO] + 1
            if place[NEXT] <= place[LAST]:
                region = place[NEXT]
                place[NEXT] += 1
                break
            region = path[level]
            alpha = _close(links[region, PIVOT], values[region], sums[level], row)
            level -= 1


@njit(cache=True, nogil=True)
def _covered_share(low: FloatArray, high: FloatArray, box: FloatArray) -> float:
    share = 1.0
    dimensions = len(low)
    for axis in range(dimensions):
        start, stop = box[axis], box[dimensions + axis]
        if low[axis] > start or high[axis] < stop:
            share *= max(min(high[axis], stop) - max(low[axis], start), 0.0) / (stop - start)
    return share


@njit(cache=True, nogil=True)
def _take(weight: float, is_leaf: bool, region: int, value: FloatArray, row: FloatArray) -> None:
    """A leaf, or a region that lies wholly inside."""
    row[RAW] += weight * value[X]
    row[LARGEST] = max(row[LARGEST], weight)
    if weight < 1.0:
        row[SPREAD] += weight * (1 - weight) * value[UNEVEN]
    row[ONLY_LEAF] = region if is_leaf and row[ONLY_LEAF] == NONE_YET else SEVERAL


@njit(cache=True, nogil=True)
def _add(alpha: float, region: int, value: FloatArray, pivot: int, sums: FloatArray) -> None:
    """A child's alpha to the sums of its parent."""
    if region == pivot:
        sums[PIVOT_ALPHA] = alpha
    sums[ALPHA_S] += alpha * value[S]
    sums[ALPHA2_S] += alpha**2 * value[S]
    power = value[K]
    for column in range(ALPHA_K, ALPHA_K + 4):
        power *= alpha
        sums[column] += power


@njit(cache=True, nogil=True)
def _open(
    low: FloatArray,
    high: FloatArray,
    box: FloatArray,
    link: NDArray[np.int64],
    values: FloatArray,
    place: NDArray[np.int64],
    sums: FloatArray,
    row: FloatArray,
) -> None:
    """Find the children that the box touches; those wholly inside are taken together.

    Children are slabs along one axis, in order. If the box covers all of the others, it covers all
    slabs but perhaps the first and the last that it touches.
    """
    axis, first = link[AXIS], link[FIRST_CHILD]
    start, stop = first, first + link[SLABS]
    while start < stop:  # the first that ends beyond the box's low edge
        middle = (start + stop) // 2
        if values[middle, STOP] > low[axis]:
            stop = middle
        else:
            start = middle + 1
    begin, stop = start, first + link[SLABS]
    while start < stop:  # the first that starts at the box's high edge or beyond
        middle = (start + stop) // 2
        if values[middle, START] >= high[axis]:
            stop = middle
        else:
            start = middle + 1
    last = start - 1
    place[NEXT], place[LAST], place[HOLE_FROM], place[HOLE_TO] = begin, last, -1, -1
    sums[:] = 0.0
    dimensions = len(low)
    for other in range(dimensions):
        if other != axis and (low[other] > box[other] or high[other] < box[dimensions + other]):
            return
    hole_from = begin + 1 if low[axis] > values[begin, START] else begin
    hole_to = last - 1 if high[axis] < values[last, STOP] else last
    if hole_from >= hole_to:
        return  # one is as well visited
    place[HOLE_FROM], place[HOLE_TO] = hole_from, hole_to
    x = values[hole_to, RUNNING]
    s = values[hole_to, RUNNING + 1]
    cumulant = values[hole_to, RUNNING + 2]
    if hole_from > first:
        x -= values[hole_from - 1, RUNNING]
        s -= values[hole_from - 1, RUNNING + 1]
        cumulant -= values[hole_from - 1, RUNNING + 2]
    row[RAW] += x
    row[LARGEST], row[ONLY_LEAF] = 1.0, SEVERAL
    sums[ALPHA_S], sums[ALPHA2_S] = s, s
    sums[ALPHA_K : ALPHA_K + 4] = cumulant
    if hole_from <= link[PIVOT] <= hole_to:
        sums[PIVOT_ALPHA] = 1.0


@njit(cache=True, nogil=True)
def _close(pivot: int, value: FloatArray, sums: FloatArray, row: FloatArray) -> float:
    """A region's alpha, when all its children have theirs."""
    alpha = sums[PIVOT_ALPHA] if pivot >= 0 else sums[ALPHA_S] / value[GROUP_S]
    noise = sums[ALPHA2_S] - 2 * alpha * sums[ALPHA_S] + alpha**2 * value[GROUP_S]
    row[NOISE] += max(noise, 0.0)
    first, second = sums[ALPHA_K], sums[ALPHA_K + 1]
    third, fourth = sums[ALPHA_K + 2], sums[ALPHA_K + 3]
    cumulant = fourth - 4 * alpha * third + 6 * alpha**2 * second - 4 * alpha**3 * first
    row[FOURTH] += max(cumulant + alpha**4 * value[GROUP_K], 0.0)
    return alpha
