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
