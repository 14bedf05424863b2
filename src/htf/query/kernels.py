"""The inner loops of box counts, compiled.

A box is a row of low edges followed by high edges. Fetching memory takes longer than the arithmetic, so values
that are read together lie together. Most nodes are skipped after a look at their bounding box alone, so bounding
boxes are kept apart from sums.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from htf.base.compiled import compiled, inlined
from htf.estimation.noise_kernels import half_width
from htf.frame.domain import FloatArray
from htf.query.columns import place

# Columns of `axes`: the numbers needed to find the cell of a coordinate.
LOW_END, HIGH_END, CELLS, PER_UNIT, TOLERANCE = range(5)
# Columns of `answers` (htf.query.columns).
COUNT, STD_ERROR, LOW, HIGH = place("count"), place("std_error"), place("low"), place("high")
PARTIAL, INSIDE, RAW = place("partial"), place("inside"), place("raw")
FARTHEST = 1e300  # cells: farther away, the length of a box would overflow
LEAST_INSIDE = 1e-300  # for a box that touches the map at all: 0 means that it does not
# Columns of `sums`, over the leaves of each node.
ESTIMATE, ABSOLUTE, VARIANCE, FOURTH_CUMULANT, NOISY_LEAVES = range(5)
SUMS = 5
# Columns of `measures`: the same sums, each leaf by its covered share, then that of absolute values over leaves that are
# covered in part; and of leaves with noise the least and the largest share (1 and 0 if there are none).
PARTIAL_ABSOLUTE, SMALLEST_WEIGHT, LARGEST_WEIGHT = range(SUMS, SUMS + 3)
MEASURES = SUMS + 3


@compiled
def snap_rows(rows: FloatArray, axes: FloatArray) -> FloatArray:
    """Convert boxes from map coordinates to cells, clipped to the map, with cell edges made exact."""
    cells = np.empty(rows.shape)
    for row in range(len(rows)):
        for column in range(rows.shape[1]):
            axis = column % len(axes)
            # Clip first, so that nothing can overflow.
            value = min(max(rows[row, column], axes[axis, LOW_END]), axes[axis, HIGH_END])
            cells[row, column] = min(max(_snap(value, axes, axis), 0.0), axes[axis, CELLS])
    return cells


@inlined
def _snap(value: float, axes: FloatArray, axis: int) -> float:
    cells = (value - axes[axis, LOW_END]) * axes[axis, PER_UNIT]
    edge = np.rint(cells)
    return float(edge if abs(cells - edge) <= axes[axis, TOLERANCE] else cells)


@compiled
def fill_inside(rows: FloatArray, axes: FloatArray, answers: FloatArray) -> None:
    """Fill in the share of each box that lies on the map, over all axes; 0 for a box without width."""
    for row in range(len(rows)):
        share, touches = 1.0, True
        for axis in range(len(axes)):
            low = max(_snap(rows[row, axis], axes, axis), -FARTHEST)
            high = min(_snap(rows[row, len(axes) + axis], axes, axis), FARTHEST)
            on_map = min(high, axes[axis, CELLS]) - max(low, 0.0)
            if on_map > 0.0:
                share *= on_map / (high - low)
            else:
                touches = False
        answers[row, INSIDE] = max(share, LEAST_INSIDE) if touches else 0.0


@compiled
def answer_leaves(
    rows: FloatArray,
    axes: FloatArray,
    boxes: FloatArray,
    skip: NDArray[np.int64],
    sums: FloatArray,
    answers: FloatArray,
) -> None:
    """Count boxes in map coordinates, over leaves with independent noise."""
    measures = np.empty((len(rows), MEASURES))
    measure_leaves(snap_rows(rows, axes), boxes, skip, sums, measures)
    finish_leaves(measures, answers)
    fill_inside(rows, axes, answers)


@compiled
def measure_leaves(
    queries: FloatArray,
    boxes: FloatArray,
    skip: NDArray[np.int64],
    sums: FloatArray,
    measures: FloatArray,
) -> None:
    """Walk the nodes in depth-first order for each query. `skip` is the next node once a node is
    settled and its subtree can be skipped."""
    nodes, dimensions = len(boxes), queries.shape[1] // 2
    for query in range(len(queries)):
        row = measures[query]
        row[:] = 0.0
        row[SMALLEST_WEIGHT] = 1.0
        node = 0
        for axis in range(dimensions):
            if queries[query, axis] >= queries[query, dimensions + axis]:
                node = nodes  # an empty box touches nothing
        while node < nodes:
            outside = False
            inside = True
            for axis in range(dimensions):
                low, high = queries[query, axis], queries[query, dimensions + axis]
                if low >= boxes[node, dimensions + axis] or high <= boxes[node, axis]:
                    outside = True
                    break
                if low > boxes[node, axis] or high < boxes[node, dimensions + axis]:
                    inside = False
            if outside:
                node = skip[node]
            elif inside:
                add_node(sums, node, row)
                node = skip[node]
            elif skip[node] > node + 1:
                node += 1  # into its first child
            else:
                add_part(covered_share(queries[query], boxes, node, 0), sums, node, row)
                node += 1


@inlined
def covered_share(box: FloatArray, table: FloatArray, row: int, at: int) -> float:
    """The share of a row of a table, with edges from column `at` on, that a box covers: exactly 1 where it covers all."""
    share, dimensions = 1.0, len(box) // 2
    for axis in range(dimensions):
        start, stop = table[row, at + axis], table[row, at + dimensions + axis]
        both = min(box[dimensions + axis], stop) - max(box[axis], start)
        share *= max(both, 0.0) / (stop - start)
    return share


@inlined
def add_node(sums: FloatArray, node: int, row: FloatArray) -> None:
    """Add a node that lies wholly inside the query."""
    for column in range(SUMS):
        row[column] += sums[node, column]
    if sums[node, NOISY_LEAVES] > 0:
        row[LARGEST_WEIGHT] = 1.0


@inlined
def add_part(weight: float, sums: FloatArray, node: int, row: FloatArray) -> None:
    """Add a leaf of which only a share is counted."""
    row[ESTIMATE] += weight * sums[node, ESTIMATE]
    row[ABSOLUTE] += weight * sums[node, ABSOLUTE]
    row[PARTIAL_ABSOLUTE] += weight * sums[node, ABSOLUTE]
    if sums[node, NOISY_LEAVES] > 0:
        squared = weight * weight
        row[VARIANCE] += squared * sums[node, VARIANCE]
        row[FOURTH_CUMULANT] += squared * squared * sums[node, FOURTH_CUMULANT]
        row[NOISY_LEAVES] += 1
        row[SMALLEST_WEIGHT] = min(row[SMALLEST_WEIGHT], weight)
        row[LARGEST_WEIGHT] = max(row[LARGEST_WEIGHT], weight)


@compiled
def finish_leaves(measures: FloatArray, answers: FloatArray) -> None:
    """Turn the measures of boxes or polygons into answers with intervals; all columns but INSIDE."""
    for query in range(len(measures)):
        row = measures[query]
        half = half_width(
            row[VARIANCE],
            row[FOURTH_CUMULANT],
            row[NOISY_LEAVES],
            row[SMALLEST_WEIGHT],
            row[LARGEST_WEIGHT],
        )
        partial, whole = row[PARTIAL_ABSOLUTE], row[ABSOLUTE]
        write_answer(
            row[ESTIMATE], row[ESTIMATE], half, half, row[VARIANCE], partial, whole, answers, query
        )


@inlined
def write_answer(
    count: float,
    middle: float,
    half: float,
    upper: float,
    variance: float,
    partial: float,
    whole: float,
    answers: FloatArray,
    query: int,
) -> None:
    """Fill all columns of an answer but INSIDE. No other place fills them. The interval reaches `half` down from the
    middle and `upper` up. `enclose_counts` finishes it."""
    answers[query, COUNT] = count
    answers[query, STD_ERROR] = np.sqrt(variance)
    answers[query, LOW] = middle - half
    answers[query, HIGH] = middle + upper
    answers[query, PARTIAL] = partial / whole if whole > 0 else 0.0
    answers[query, RAW] = middle


@compiled
def enclose_counts(answers: FloatArray) -> None:
    """Finish the intervals. No true number is below zero, and nobody should have to choose between a count and its interval:
    it is cut off at zero, and reaches as far as the count."""
    for row in range(len(answers)):
        count = answers[row, COUNT]
        answers[row, LOW] = max(min(answers[row, LOW], count), 0.0)
        answers[row, HIGH] = max(answers[row, HIGH], count, 0.0)
