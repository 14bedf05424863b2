"""Compiled loops over positions along a curve. Integers only: nothing here draws."""

from __future__ import annotations

from typing import Any

import numpy as np

from htf.base.compiled import compiled
from htf.curator.kernels import add_to_trees, sum_of_first
from htf.frame.domain import IntArray


@compiled
def deviations_of_runs(counts: IntArray, ranks: IntArray, distinct: IntArray, length: int) -> Any:
    """The L1 deviation of every run of `length` positions, rounded down.

    `ranks` says which of the ascending `distinct` counts each position has. Two Fenwick trees over
    the distinct counts hold number and sum of the positions in the run, as it slides along. With
    total = mean * length + rest, the deviation is
    2 * (sum above - mean * number above) - 2 * rest * number above / length.
    """
    result = np.zeros(counts.size - length + 1, np.int64)
    number_tree = np.zeros(distinct.size + 1, np.int64)
    sum_tree = np.zeros(distinct.size + 1, np.int64)
    total = 0
    for place in range(counts.size):
        total += counts[place]
        add_to_trees(number_tree, sum_tree, ranks[place], 1, counts[place])
        if place >= length:
            total -= counts[place - length]
            add_to_trees(number_tree, sum_tree, ranks[place - length], -1, -counts[place - length])
        if place >= length - 1:
            mean, rest = total // length, total % length
            places = np.searchsorted(distinct, mean, side="right")
            below_number, below_sum = sum_of_first(number_tree, sum_tree, places)
            above = length - below_number
            whole = 2 * (total - below_sum - mean * above)
            result[place - length + 1] = whole - (2 * rest * above + length - 1) // length
    return result


@compiled
def least_cost_starts(costs: Any, positions: int) -> Any:
    """Mark where the buckets of the cheapest partition begin: 1 there, 0 elsewhere.

    `costs[level, start]` is the cost of the bucket of 2**level positions from `start`. Among equally
    cheap partitions the one with the shortest last bucket wins, then the last but one, and so on.
    """
    best = np.zeros(positions + 1, costs.dtype)
    chosen = np.zeros(positions + 1, np.int64)
    for end in range(1, positions + 1):
        best[end] = best[end - 1] + costs[0, end - 1]
        level, length = 1, 2
        while level < costs.shape[0] and length <= end:
            cost = best[end - length] + costs[level, end - length]
            if cost < best[end]:
                best[end], chosen[end] = cost, level
            level, length = level + 1, 2 * length
    starts = np.zeros(positions, np.int64)
    end = positions
    while end > 0:
        end -= 1 << chosen[end]
        starts[end] = 1
    return starts
