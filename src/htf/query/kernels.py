"""The inner loops of box counts, compiled. Import them where they are used: numba is slow to load.

Tables have named columns, and after them the low edges of a box and its high edges: what is looked at
together lies together, since fetching it takes longer than the arithmetic. `htf.query.index` makes them.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from htf.domain import FloatArray
from htf.query.half_widths import half_width

# Of an axis: what is needed to find the cell of a coordinate.
LOW_END, HIGH_END, CELLS, PER_UNIT, TOLERANCE = range(5)
# Of an answer, in the order of `boxes.Answers`.
COUNT, STD_ERROR, LOW, HIGH, PARTIAL = range(5)
# Of `nodes`: sums over leaves, the node that follows when its own are skipped, and its box.
ESTIMATE, ABSOLUTE, VARIANCE, FOURTH_CUMULANT, NOISY_LEAVES, SKIP, NODE_BOX = range(7)
SUMS = 5
# Of `measures`: the same sums, and three more.
PARTIAL_ABSOLUTE, SMALLEST_WEIGHT, LARGEST_WEIGHT = range(SUMS, SUMS + 3)
MEASURES = SUMS + 3


@njit(cache=True, nogil=True)
def snap_rows(rows: FloatArray, axes: FloatArray) -> FloatArray:
    """Boxes from map coordinates to cells: clipped to the map, with edges of cells made exact."""
    cells = np.empty(rows.shape)
    for row in range(len(rows)):
        for column in range(rows.shape[1]):
            axis = column % len(axes)
            # Clipped first, so that nothing can overflow.
            value = min(max(rows[row, column], axes[axis, LOW_END]), axes[axis, HIGH_END])
            cells[row, column] = min(max(_snap(value, axes, axis), 0.0), axes[axis, CELLS])
    return cells


@njit(cache=True, nogil=True)
def snap_column(values: FloatArray, axes: FloatArray) -> FloatArray:
    """Coordinates along the one axis, wherever they are."""
    cells = np.empty(len(values))
    for place in range(len(values)):
        cells[place] = _snap(values[place], axes, 0)
    return cells


@njit(inline="always")
def _snap(value: float, axes: FloatArray, axis: int) -> float:
    cells = (value - axes[axis, LOW_END]) * axes[axis, PER_UNIT]
    edge = np.rint(cells)
    return float(edge if abs(cells - edge) <= axes[axis, TOLERANCE] else cells)


@njit(cache=True, nogil=True)
def answer_leaves(
    rows: FloatArray, axes: FloatArray, nodes: FloatArray, answers: FloatArray
) -> None:
    """Counts of boxes in map coordinates, over leaves with noise of their own."""
    measures = np.empty((len(rows), MEASURES))
    measure_leaves(snap_rows(rows, axes), nodes, measures)
    finish_leaves(measures, answers)


@njit(cache=True, nogil=True)
def measure_leaves(queries: FloatArray, nodes: FloatArray, measures: FloatArray) -> None:
    """Walk the nodes in depth-first order for each query, passing over those that are settled."""
    dimensions = queries.shape[1] // 2
    for query in range(len(queries)):
        row = measures[query]
        row[:] = 0.0
        row[SMALLEST_WEIGHT] = 1.0
        node = 0
        for axis in range(dimensions):
            if queries[query, axis] >= queries[query, dimensions + axis]:
                node = len(nodes)  # an empty box touches nothing
        while node < len(nodes):
            touched, inside = compare(queries, query, nodes, NODE_BOX, node)
            following = int(nodes[node, SKIP])
            if not touched:
                node = following
            elif inside:
                add_node(nodes, node, row)
                node = following
            elif following > node + 1:
                node += 1  # into its first child
            else:
                weight = covered_share(queries, query, nodes, NODE_BOX, node)
                add_part(weight, nodes, node, row)
                node += 1


@njit(inline="always")
def compare(
    queries: FloatArray, query: int, table: FloatArray, at: int, row: int
) -> tuple[bool, bool]:
    """Whether a query touches the box that begins in column `at` of a row, and has all of it inside."""
    dimensions = queries.shape[1] // 2
    inside = True
    for axis in range(dimensions):
        low, high = queries[query, axis], queries[query, dimensions + axis]
        start, stop = table[row, at + axis], table[row, at + dimensions + axis]
        if low >= stop or high <= start:
            return False, False
        if low > start or high < stop:
            inside = False
    return True, inside


@njit(inline="always")
def covered_share(queries: FloatArray, query: int, table: FloatArray, at: int, row: int) -> float:
    """The share that a query covers of the box that begins in column `at` of a row."""
    dimensions = queries.shape[1] // 2
    share = 1.0
    for axis in range(dimensions):
        share *= covered_length(
            queries[query, axis],
            queries[query, dimensions + axis],
            table[row, at + axis],
            table[row, at + dimensions + axis],
        )
    return share


@njit(cache=True, nogil=True)
def covered_length(low: float, high: float, start: float, stop: float) -> float:
    """The share of a range that another covers: exactly 1 if it is all of it."""
    return max(min(high, stop) - max(low, start), 0.0) / (stop - start)


@njit(inline="always")
def add_node(nodes: FloatArray, node: int, row: FloatArray) -> None:
    """A node that lies wholly inside."""
    for column in range(SUMS):
        row[column] += nodes[node, column]
    if nodes[node, NOISY_LEAVES] > 0:
        row[LARGEST_WEIGHT] = 1.0


@njit(inline="always")
def add_part(weight: float, nodes: FloatArray, node: int, row: FloatArray) -> None:
    """A leaf of which a share is counted."""
    row[ESTIMATE] += weight * nodes[node, ESTIMATE]
    row[ABSOLUTE] += weight * nodes[node, ABSOLUTE]
    row[PARTIAL_ABSOLUTE] += weight * nodes[node, ABSOLUTE]
    if nodes[node, NOISY_LEAVES] > 0:
        row[VARIANCE] += weight**2 * nodes[node, VARIANCE]
        row[FOURTH_CUMULANT] += weight**4 * nodes[node, FOURTH_CUMULANT]
        row[NOISY_LEAVES] += 1
        row[SMALLEST_WEIGHT] = min(row[SMALLEST_WEIGHT], weight)
        row[LARGEST_WEIGHT] = max(row[LARGEST_WEIGHT], weight)


@njit(cache=True, nogil=True)
def finish_leaves(measures: FloatArray, answers: FloatArray) -> None:
    """Answers with error bars, from what was measured of boxes or polygons."""
    for query in range(len(measures)):
        row = measures[query]
        half = half_width(
            row[VARIANCE],
            row[FOURTH_CUMULANT],
            row[NOISY_LEAVES],
            row[SMALLEST_WEIGHT],
            row[LARGEST_WEIGHT],
        )
        answers[query, COUNT] = row[ESTIMATE]
        answers[query, STD_ERROR] = np.sqrt(row[VARIANCE])
        answers[query, LOW] = row[ESTIMATE] - half
        answers[query, HIGH] = row[ESTIMATE] + half
        answers[query, PARTIAL] = share_of(row[PARTIAL_ABSOLUTE], row[ABSOLUTE])


@njit(inline="always")
def share_of(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0
