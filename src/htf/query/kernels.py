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
def measure_boxes(
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
                add_node(sums, node, row)
                node = skip[node]
            elif skip[node] > node + 1:
                node += 1  # into its first child
            else:
                weight = 1.0
                for axis in range(dimensions):
                    low = max(query_low[query, axis], node_low[node, axis])
                    high = min(query_high[query, axis], node_high[node, axis])
                    weight *= (high - low) / (node_high[node, axis] - node_low[node, axis])
                add_part(weight, sums, node, row)
                node += 1


@njit(inline="always")
def add_node(sums: FloatArray, node: int, row: FloatArray) -> None:
    """A node that lies wholly inside."""
    for column in range(5):
        row[column] += sums[node, column]
    if sums[node, NOISY_LEAVES] > 0:
        row[LARGEST_WEIGHT] = 1.0


@njit(inline="always")
def add_part(weight: float, sums: FloatArray, node: int, row: FloatArray) -> None:
    """A leaf of which a share is counted."""
    row[ESTIMATE] += weight * sums[node, ESTIMATE]
    row[ABSOLUTE] += weight * sums[node, ABSOLUTE]
    row[PARTIAL_ABSOLUTE] += weight * sums[node, ABSOLUTE]
    if sums[node, NOISY_LEAVES] > 0:
        row[VARIANCE] += weight**2 * sums[node, VARIANCE]
        row[FOURTH_CUMULANT] += weight**4 * sums[node, FOURTH_CUMULANT]
        row[NOISY_LEAVES] += 1
        row[SMALLEST_WEIGHT] = min(row[SMALLEST_WEIGHT], weight)
        row[LARGEST_WEIGHT] = max(row[LARGEST_WEIGHT], weight)


# Of a tree of counts: the columns of `links` ...
FIRST_CHILD, SLABS, AXIS, PIVOT = range(4)
# ... of `values`, one row for each region: its estimate, s and fourth cumulant; the variance of
# spread, for w (1 - w) = 1; the sums of s and cumulant over its children, and the weight that they
# have in it; and running sums of the first three over the siblings up to it ...
X, S, K, UNEVEN, GROUP_S, GROUP_K, BELOW, RUNNING_X, RUNNING_S, RUNNING_K = range(10)
# ... and of what is measured, one row for each query.
RAW, NOISE, SPREAD, FOURTH, LARGEST, ONLY_LEAF = range(6)
# A region that is being walked through: which child is next, the last, the children wholly inside
# from and to; and sums over its children so far: of alpha s and alpha^2 s, the alpha of the child
# nothing is known of, and the four lower coefficients of a polynomial for the fourth cumulant.
NEXT, LAST, HOLE_FROM, HOLE_TO = range(4)
ALPHA_S, ALPHA2_S, PIVOT_ALPHA, QUARTIC = range(4)
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
    root_variance: float,
    depth: int,
    measures: FloatArray,
) -> None:
    """Walk the regions cut by each query's edges, children first; see `htf.query.tree_noise`."""
    path = np.empty(depth, dtype=np.int64)
    places = np.empty((depth, 4), dtype=np.int64)
    sums = np.empty((depth + 1, QUARTIC + 4))  # the last one for the region just left
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
            shift(alpha, values[0, K], sums, depth)
            row[FOURTH] = sums[depth, QUARTIC]
        row[NOISE] += alpha**2 * root_variance
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
    """The root's alpha; all else goes to `row`. `path` is where the walk is, region by region.

    Helpers get whole arrays and row numbers: a view of a row costs more than they do.
    """
    level, region, left = -1, 0, len(sums) - 1
    while True:
        alpha: float = _covered_share(low, high, box, region)
        if 0.0 < alpha < 1.0 and links[region, FIRST_CHILD] >= 0:
            level += 1
            path[level] = region
            _open(low, high, box, region, links, values, places, sums, level, row)
        else:
            if alpha > 0.0:
                take(alpha, region, links, values, row)
            for column in range(QUARTIC, QUARTIC + 4):
                sums[left, column] = 0.0
            if level < 0:
                return alpha
            add(alpha, region, links[path[level], PIVOT], values, sums, level)
        while True:  # up, until there is a child to go to
            if places[level, NEXT] == places[level, HOLE_FROM]:
                places[level, NEXT] = places[level, HOLE_TO] + 1
            if places[level, NEXT] <= places[level, LAST]:
                region = places[level, NEXT]
                places[level, NEXT] += 1
                break
            region = path[level]
            alpha = close(region, links, values, sums, level, row)
            level -= 1
            if level < 0:
                return alpha
            add(alpha, region, links[path[level], PIVOT], values, sums, level)


@njit(inline="always")
def _covered_share(low: FloatArray, high: FloatArray, box: FloatArray, region: int) -> float:
    share: float = 1.0
    dimensions = len(low)
    for axis in range(dimensions):
        start, stop = box[region, axis], box[region, dimensions + axis]
        if low[axis] > start or high[axis] < stop:
            share *= max(min(high[axis], stop) - max(low[axis], start), 0.0) / (stop - start)
    return share


@njit(inline="always")
def take(
    weight: float, region: int, links: NDArray[np.int64], values: FloatArray, row: FloatArray
) -> None:
    """A leaf, or a region that lies wholly inside."""
    row[RAW] += weight * values[region, X]
    row[LARGEST] = max(row[LARGEST], weight)
    if weight < 1.0:
        row[SPREAD] += weight * (1 - weight) * values[region, UNEVEN]
    is_leaf = links[region, FIRST_CHILD] < 0
    only = is_leaf and row[ONLY_LEAF] == NONE_YET
    row[ONLY_LEAF] = region if only else SEVERAL


@njit(inline="always")
def add(
    alpha: float, region: int, pivot: int, values: FloatArray, sums: FloatArray, level: int
) -> None:
    """A child's alpha to the sums of its parent."""
    if region == pivot:
        sums[level, PIVOT_ALPHA] = alpha
    sums[level, ALPHA_S] += alpha * values[region, S]
    sums[level, ALPHA2_S] += alpha * alpha * values[region, S]
    left = len(sums) - 1
    shift(alpha, values[region, K], sums, left)
    for column in range(QUARTIC, QUARTIC + 4):
        sums[level, column] += sums[left, column]


@njit(inline="always")
def shift(by: float, leading: float, sums: FloatArray, level: int) -> None:
    """The polynomial in c + `by` as one in c. Its leading coefficient stays the same."""
    third = sums[level, QUARTIC + 3]
    second = sums[level, QUARTIC + 2]
    first = sums[level, QUARTIC + 1]
    sums[level, QUARTIC + 3] += 4 * by * leading
    sums[level, QUARTIC + 2] += by * (6 * by * leading + 3 * third)
    sums[level, QUARTIC + 1] += by * (by * (4 * by * leading + 3 * third) + 2 * second)
    sums[level, QUARTIC] += by * (by * (by * (by * leading + third) + second) + first)


@njit(inline="always")
def _open(
    low: FloatArray,
    high: FloatArray,
    box: FloatArray,
    region: int,
    links: NDArray[np.int64],
    values: FloatArray,
    places: NDArray[np.int64],
    sums: FloatArray,
    level: int,
    row: FloatArray,
) -> None:
    """Find the children that the box touches; those wholly inside are taken together.

    Children are slabs along one axis, in order. If the box covers all of the others, it covers all
    slabs but perhaps the first and the last that it touches.
    """
    axis, first, dimensions = links[region, AXIS], links[region, FIRST_CHILD], len(low)
    start, stop = first, first + links[region, SLABS]
    while start < stop:  # the first that ends beyond the box's low edge
        middle = (start + stop) // 2
        if box[middle, dimensions + axis] > low[axis]:
            stop = middle
        else:
            start = middle + 1
    begin, stop = start, first + links[region, SLABS]
    while start < stop:  # the first that starts at the box's high edge or beyond
        middle = (start + stop) // 2
        if box[middle, axis] >= high[axis]:
            stop = middle
        else:
            start = middle + 1
    last = start - 1
    places[level, NEXT], places[level, LAST] = begin, last
    places[level, HOLE_FROM], places[level, HOLE_TO] = -1, -1
    for column in range(QUARTIC + 4):
        sums[level, column] = 0.0
    for other in range(dimensions):
        inside = low[other] <= box[region, other] and high[other] >= box[region, dimensions + other]
        if other != axis and not inside:
            return
    hole_from = begin + 1 if low[axis] > box[begin, axis] else begin
    hole_to = last - 1 if high[axis] < box[last, dimensions + axis] else last
    if hole_from >= hole_to:
        return  # one is as well visited
    places[level, HOLE_FROM], places[level, HOLE_TO] = hole_from, hole_to
    x, s, cumulant = (
        values[hole_to, RUNNING_X],
        values[hole_to, RUNNING_S],
        values[hole_to, RUNNING_K],
    )
    if hole_from > first:
        x -= values[hole_from - 1, RUNNING_X]
        s -= values[hole_from - 1, RUNNING_S]
        cumulant -= values[hole_from - 1, RUNNING_K]
    row[RAW] += x
    row[LARGEST], row[ONLY_LEAF] = 1.0, SEVERAL
    sums[level, ALPHA_S], sums[level, ALPHA2_S] = s, s
    sums[level, QUARTIC], sums[level, QUARTIC + 1] = cumulant, 4 * cumulant
    sums[level, QUARTIC + 2], sums[level, QUARTIC + 3] = 6 * cumulant, 4 * cumulant
    if hole_from <= links[region, PIVOT] <= hole_to:
        sums[level, PIVOT_ALPHA] = 1.0


@njit(inline="always")
def close(
    region: int,
    links: NDArray[np.int64],
    values: FloatArray,
    sums: FloatArray,
    level: int,
    row: FloatArray,
) -> float:
    """A region's alpha, when all its children have theirs.

    The fourth cumulant of a sum that has c z in it, z being the region's estimate from below, is a
    polynomial in c: docs/proofs/tree-noise.md. That of the children becomes the region's.
    """
    of_s, known_s = sums[level, ALPHA_S], values[region, GROUP_S]
    alpha = sums[level, PIVOT_ALPHA] if links[region, PIVOT] >= 0 else of_s / known_s
    # The sum of (alpha_i - alpha)^2 s_i.
    noise = sums[level, ALPHA2_S] - 2 * alpha * of_s + alpha**2 * known_s
    row[NOISE] += max(noise, 0.0)
    shift(-alpha, values[region, GROUP_K], sums, level)
    power, left = 1.0, len(sums) - 1
    for column in range(QUARTIC, QUARTIC + 4):
        sums[left, column] = power * sums[level, column]
        power *= values[region, BELOW]
    return float(alpha)
