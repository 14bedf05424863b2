"""Compiled loops over the cells of regions. Integer sums only: nothing here divides or draws."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from htf.base.compiled import compiled
from htf.frame.domain import IntArray

Coordinates = NDArray[np.int32]


@compiled
def sum_regions(starts: IntArray, stops: IntArray, counts: IntArray) -> Any:
    """The sum of `counts[start:stop]` for each region."""
    totals = np.zeros(starts.size, np.int64)
    for i in range(starts.size):
        total = 0
        for cell in range(starts[i], stops[i]):
            total += counts[cell]
        totals[i] = total
    return totals


@compiled
def sort_into_slabs(
    starts: IntArray,
    stops: IntArray,
    axes: IntArray,
    cuts: IntArray,
    first_cut: IntArray,
    coordinates: Coordinates,
    counts: IntArray,
) -> Any:
    """Reorder the cells of each region by slab, in place and stably.

    Region i owns cells `starts[i]:stops[i]` and cuts `first_cut[i]:first_cut[i + 1]`. Returns where
    each slab ends, one after the other.
    """
    dimensions = coordinates.shape[0]
    ends = np.zeros(cuts.size + starts.size, np.int64)
    longest = 0
    for i in range(starts.size):
        longest = max(longest, stops[i] - starts[i])
    slab_of = np.empty(longest, np.int64)
    moved = np.empty(longest, np.int64)
    for i in range(starts.size):
        start, size = starts[i], stops[i] - starts[i]
        region_cuts = cuts[first_cut[i] : first_cut[i + 1]]
        first_slab = first_cut[i] + i
        fill = np.zeros(region_cuts.size + 2, np.int64)
        along = coordinates[axes[i]]
        for j in range(size):
            if region_cuts.size == 1:  # the common case, without a search
                slab = 1 if along[start + j] >= region_cuts[0] else 0
            else:
                slab = np.searchsorted(region_cuts, along[start + j], side="right")
            slab_of[j] = slab
            fill[slab + 1] += 1
        for slab in range(region_cuts.size + 1):
            fill[slab + 1] += fill[slab]
            ends[first_slab + slab] = start + fill[slab + 1]
        for j in range(size):  # from here on slab_of holds each cell's new place
            slab = slab_of[j]
            slab_of[j] = fill[slab]
            fill[slab] += 1
        for axis in range(dimensions):
            row = coordinates[axis]
            for j in range(size):
                moved[slab_of[j]] = row[start + j]
            for j in range(size):
                row[start + j] = moved[j]
        for j in range(size):
            moved[slab_of[j]] = counts[start + j]
        for j in range(size):
            counts[start + j] = moved[j]
    return ends


@compiled
def sum_above_mean_of_halves(
    starts: IntArray,
    stops: IntArray,
    axes: IntArray,
    cuts: IntArray,
    half_sizes: IntArray,
    coordinates: Coordinates,
    counts: IntArray,
) -> Any:
    """For each split and each half of it: the total, and sum and number of the cells above its mean.

    `half_sizes[i, half]` is the number of cells (empty ones too) of each half. A cell is above the
    mean total / size exactly if its count exceeds the quotient rounded down. Returns an array of
    (splits, halves, 3).
    """
    sums = np.zeros((starts.size, 2, 3), np.int64)
    for i in range(starts.size):
        along = coordinates[axes[i]]
        left_total, right_total, left_cells, right_cells = 0, 0, 0, 0
        for cell in range(starts[i], stops[i]):
            if along[cell] < cuts[i]:
                left_total += counts[cell]
                left_cells += 1
            else:
                right_total += counts[cell]
                right_cells += 1
        left_mean = left_total // half_sizes[i, 0]
        right_mean = right_total // half_sizes[i, 1]
        left_sum, right_sum = left_total, right_total
        if left_mean > 0 or right_mean > 0:  # else every non-empty cell is above the mean
            left_sum, right_sum, left_cells, right_cells = 0, 0, 0, 0
            for cell in range(starts[i], stops[i]):
                if along[cell] < cuts[i]:
                    if counts[cell] > left_mean:
                        left_sum += counts[cell]
                        left_cells += 1
                elif counts[cell] > right_mean:
                    right_sum += counts[cell]
                    right_cells += 1
        sums[i, 0, 0], sums[i, 0, 1], sums[i, 0, 2] = left_total, left_sum, left_cells
        sums[i, 1, 0], sums[i, 1, 1], sums[i, 1, 2] = right_total, right_sum, right_cells
    return sums


@compiled
def add_to_trees(
    number_tree: IntArray, sum_tree: IntArray, place: int, number: int, value: int
) -> None:
    """Add to one place of two Fenwick trees, which start at 1."""
    node = place + 1
    while node < number_tree.size:
        number_tree[node] += number
        sum_tree[node] += value
        node += node & -node


@compiled
def sum_of_first(number_tree: IntArray, sum_tree: IntArray, places: int) -> Any:
    """The sums of the first `places` places of two Fenwick trees."""
    number, value = 0, 0
    node = places
    while node > 0:
        number += number_tree[node]
        value += sum_tree[node]
        node -= node & -node
    return number, value


@compiled
def sweep_above_mean(
    cuts: IntArray,
    sizes: IntArray,
    along: Coordinates,
    counts: IntArray,
    ranks: IntArray,
    distinct: IntArray,
) -> Any:
    """As `sum_above_mean_of_halves`, for the cells below each of many ascending cuts of one region.

    `along` ascends; `ranks` says which of the ascending `distinct` counts each cell has. Two
    Fenwick trees over the distinct counts hold the number and the sum of the cells passed so far,
    so a region with c cells and u cuts costs (c + u) log c instead of c * u.
    """
    sums = np.zeros((cuts.size, 3), np.int64)
    number_tree = np.zeros(distinct.size + 1, np.int64)
    sum_tree = np.zeros(distinct.size + 1, np.int64)
    cell, total, passed = 0, 0, 0
    for i in range(cuts.size):
        while cell < along.size and along[cell] < cuts[i]:
            total += counts[cell]
            passed += 1
            add_to_trees(number_tree, sum_tree, ranks[cell], 1, counts[cell])
            cell += 1
        mean = total // sizes[i]
        places = np.searchsorted(distinct, mean, side="right")
        below_number, below_sum = sum_of_first(number_tree, sum_tree, places)
        sums[i, 0], sums[i, 1], sums[i, 2] = total, total - below_sum, passed - below_number
    return sums


@compiled
def median_runs(along: Coordinates, counts: IntArray, low: int, high: int) -> Any:
    """Runs of cuts of one region with the same records below: first cut, number, |2 * left - n|."""
    order = np.argsort(along)
    total = counts.sum()
    first = np.empty(along.size + 1, np.int64)
    sizes = np.empty(along.size + 1, np.int64)
    utilities = np.empty(along.size + 1, np.int64)
    runs, left, reached, cell = 0, 0, low + 1, 0
    while True:
        place = along[order[cell]] if cell < along.size else high
        last = min(place, high - 1)  # cuts up to this have the same records below them
        if last >= reached:
            first[runs], sizes[runs], utilities[runs] = (
                reached,
                last - reached + 1,
                abs(2 * left - total),
            )
            runs += 1
            reached = last + 1
        if cell == along.size:
            return first[:runs], sizes[:runs], utilities[:runs]
        left += counts[order[cell]]
        cell += 1


@compiled
def choose_median_runs(
    starts: IntArray,
    stops: IntArray,
    axes: IntArray,
    low: IntArray,
    high: IntArray,
    rates: NDArray[np.float64],
    uniforms: NDArray[np.float64],
    coordinates: Coordinates,
    counts: IntArray,
) -> Any:
    """For each region the run that its uniform number falls in: first cut and number of cuts.

    A number of 0 says that the uniform number is too close to a bound for floats to tell.
    """
    chosen_first, chosen_size = np.zeros(starts.size, np.int64), np.zeros(starts.size, np.int64)
    for i in range(starts.size):
        cells = slice(starts[i], stops[i])
        first, sizes, utilities = median_runs(
            coordinates[axes[i]][cells], counts[cells], low[i], high[i]
        )
        smallest, total = utilities.min(), 0.0
        for run in range(first.size):
            total += sizes[run] * np.exp(-rates[i] * (utilities[run] - smallest))
        target, reached = uniforms[i] * total, 0.0
        # Rounding: of the exponent (up to 745 * 2**-52), of each sum, and of the uniform number.
        margin = total * (1e-12 + first.size * 1e-15)
        for run in range(first.size):
            before = reached
            reached += sizes[run] * np.exp(-rates[i] * (utilities[run] - smallest))
            above = run == 0 or before + margin <= target
            below = run == first.size - 1 or target <= reached - margin
            if above and below:
                chosen_first[i], chosen_size[i] = first[run], sizes[run]
                break
    return chosen_first, chosen_size
