"""The inner loops of counts over a tree of counts, compiled: htf.query.tree_index has the reasons.

Each query walks down through the regions that its edges cut, and then up again, because a region's alpha
follows from those of its children. The walk goes breadth first: the next regions are then known long before
they are needed, so the processor can fetch many at a time. Depth first takes twice as long, and so does
breadth first without hints to the processor (htf.query.prefetch).

Helpers in loops take numbers, not arrays: passing an array costs two atomic operations.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from htf.base.compiled import compiled, inlined
from htf.estimation.noise_kernels import continuous_half_width, single_half_width
from htf.frame import tree
from htf.frame.domain import FloatArray
from htf.query.kernels import covered_share, fill_inside, snap_rows, write_answer
from htf.query.prefetch import LINES, prefetch

# The module is imported whole, so that a change of its constant is noticed.
NO_REGION = tree.NO_REGION

# The columns of `regions`. First, the answer of least squares; the variance s and the fourth cumulant
# of the estimate from the counts in a region and below it (s is 0 if they say nothing about it).
X, S, K = range(3)
# The sums of s and of the cumulant over its children, and the weight that they have in it (0 if they
# do not determine it). A leaf has no children: there, the first is the standard error of the answer.
GROUP_S, GROUP_K, BELOW = range(3, 6)
ERROR = GROUP_S
# The published count, and the sum of its absolute values over the leaves.
ESTIMATE, ABSOLUTE = range(6, 8)
# The first child (children are slabs along an axis); -1 for a leaf. The first part of a divided leaf;
# -1 for others. The number of children or parts.
FIRST_CHILD, FIRST_PART, NUMBER, AXIS, REGION_BOX = range(8, 13)
# The columns of `running`: sums of columns above over the siblings up to a region, and how many of
# these siblings the counts say nothing about.
RUNNING_X, RUNNING_S, RUNNING_K, RUNNING_ESTIMATE, RUNNING_ABSOLUTE, RUNNING_UNKNOWN = range(6)
# The columns of `parts`, the pieces of leaves: the records in a part, and the parts of a part.
HELD, FIRST, PARTS, PART_BOX = range(4)
# The columns of `measures`: the answer of least squares, its variance from uneven records, the largest share of a
# leaf, the leaf if there is only one; the published count, its absolute sum, that of parts covered in part, by how much
# parts change the answer of whole leaves; the sum of the standard deviations of uneven records in leaves covered in
# part. Of these leaves, which may hold n records, with covered shares w, the sums of w n, w (1 - w) n and
# w (1 - w) n^2. So far they are sums over regions. Then the variance and the fourth cumulant of the noise, and the
# number of pieces of a polygon.
RAW, SPREAD, LARGEST, ONLY_LEAF, ANSWER, SIZE, CUT_SIZE, MOVED = range(8)
DEVIATIONS, HELD_IN_CUT, LINEAR, SQUARE, NOISE, FOURTH, PIECES = range(8, 15)
MEASURES = 15
# The model of uneven records: kappa for leaves, kappa for small places at records, and how far the errors of the leaves
# that a query cuts go together; by how many deviations of the noise sums are too high on average, because the tree
# grew where counts were; and how many standard deviations of uneven records a record that drew a query may add at most.
KAPPA, CLUMPS, TOGETHER, GROWN, MOST_LEAN = range(5)
SEVERAL = -1.0  # leaves
NONE_YET = -2.0
NOTHING_TAKEN = (0.0, 0.0, 0.0, NONE_YET, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
# For a region that is cut, sums over its children so far: alpha s and alpha^2 s, the alpha of the
# child about which nothing is known, and the lower coefficients of a polynomial for the fourth cumulant.
NO_CHILDREN = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
NO_NOISE = (0.0, 0.0, 0.0, 0.0)  # the polynomial of a leaf
UNKNOWN_ALPHA, C0 = 2, 3
SUMS = len(NO_CHILDREN)
Numbers = tuple[float, ...]
# The columns of `cut`: a region that the query's edges cut, and its parent's row in `cut`. The columns
# of `blocks`: parts that stand together.
REGION, PARENT = range(2)
START, STOP = range(2)
FIRST_ROOM = 512  # regions or blocks
NO_ROOM = -1
FEW = 8  # children that are visited one by one
FARTHEST_BELOW = 30.0  # deviations of a count below zero, from where on it says no more
SQRT_2, SQRT_HALF_PI = math.sqrt(2), math.sqrt(math.pi / 2)


@compiled
def answer_tree(
    rows: FloatArray,
    axes: FloatArray,
    regions: FloatArray,
    running: FloatArray,
    parts: FloatArray,
    alone: NDArray[np.bool_],
    model: FloatArray,
    root_variance: float,
    answers: FloatArray,
) -> None:
    """Count boxes in map coordinates, with intervals."""
    measures = np.empty((len(rows), MEASURES))
    queries = snap_rows(rows, axes)
    measure_tree(queries, regions, running, parts, model[KAPPA], root_variance, measures)
    finish_tree(measures, alone, model, answers)
    fill_inside(rows, axes, answers)


@compiled
def measure_tree(
    queries: FloatArray,
    regions: FloatArray,
    running: FloatArray,
    parts: FloatArray,
    kappa: float,
    root_variance: float,
    measures: FloatArray,
) -> None:
    """Measure boxes in cells, for `finish_tree`. Work arrays grow when a box needs more room."""
    cut = np.empty((FIRST_ROOM, 2), dtype=np.int64)
    blocks = np.empty((FIRST_ROOM, 2), dtype=np.int64)
    sums = np.empty((FIRST_ROOM, SUMS))
    for query in range(len(queries)):
        box, row = queries[query], measures[query]
        number, number_of_blocks = NO_ROOM, NO_ROOM
        while number == NO_ROOM:
            number, number_of_blocks = _walk_down(
                box, regions, running, parts, kappa, cut, blocks, sums, row
            )
            if number == NO_ROOM:
                cut = np.empty((2 * len(cut), 2), dtype=np.int64)
                blocks = np.empty((2 * len(blocks), 2), dtype=np.int64)
                sums = np.empty((2 * len(sums), SUMS))
        while number_of_blocks > 0 and not _take_parts(box, number_of_blocks, blocks, parts, row):
            blocks = _with_room(number_of_blocks, blocks)
        _walk_up(number, cut, regions, sums, root_variance, row)


@compiled
def _with_room(number: int, blocks: NDArray[np.int64]) -> NDArray[np.int64]:
    """The first `number` blocks, in twice the room. (Assigning a slice takes seconds to compile.)"""
    more = np.empty((2 * len(blocks), 2), dtype=np.int64)
    for block in range(number):
        more[block, START], more[block, STOP] = blocks[block, START], blocks[block, STOP]
    return more


@compiled
def _walk_down(
    box: FloatArray,
    regions: FloatArray,
    running: FloatArray,
    parts: FloatArray,
    kappa: float,
    cut: NDArray[np.int64],
    blocks: NDArray[np.int64],
    sums: FloatArray,
    row: FloatArray,
) -> tuple[int, int]:
    """List the regions with children that the box cuts and the parts of leaves that it cuts, and add
    what it covers of all others. Returns the number of both, or that there is no room for them.

    The first of the list lies above the root and is a group of one.
    """
    taken = NOTHING_TAKEN
    number, number_of_blocks, place = 1, 0, 0
    while place < number:
        whole_from, whole_to = NO_REGION, NO_REGION
        group, child, stop = NO_CHILDREN, 0, 1
        if place > 0:
            region = cut[place, REGION]
            child = int(regions[region, FIRST_CHILD])
            stop = child + int(regions[region, NUMBER])
            if stop - child > FEW:
                child, stop, whole_from, whole_to = _find_children(box, regions, region)
        if whole_from < whole_to:
            x, s, k, estimate, absolute, unknown = _sum_slabs(
                whole_from, whole_to, cut[place, REGION], regions, running
            )
            taken = with_sums(taken, 1.0, SEVERAL, x, 0.0, estimate, absolute, False, kappa)
            group = (s, s, unknown, k, 4 * k, 6 * k, 4 * k)
        if max(number, number_of_blocks) + stop - child > len(cut):
            return NO_ROOM, NO_ROOM
        while child < stop:
            if child == whole_from:
                child = whole_to
                continue
            share = covered_share(box, regions, child, REGION_BOX)
            if 0.0 < share < 1.0 and regions[child, FIRST_CHILD] >= 0:
                prefetch(regions, int(regions[child, FIRST_CHILD]))
                cut[number, REGION], cut[number, PARENT] = child, place
                number += 1
            elif share > 0.0:
                taken = with_region(taken, share, child, regions, kappa)
                if share < 1.0 and regions[child, FIRST_PART] >= 0:
                    first = int(regions[child, FIRST_PART])
                    end = first + int(regions[child, NUMBER])
                    for part in range(first, end, LINES):
                        prefetch(parts, part)
                    blocks[number_of_blocks, START], blocks[number_of_blocks, STOP] = first, end
                    number_of_blocks += 1
                s, k = regions[child, S], regions[child, K]
                group = with_child(group, share, NO_NOISE, s, k, place == 0)
            child += 1
        write(group, sums, place)
        place += 1
    for column in range(len(taken)):
        row[column] = taken[column]
    row[PIECES] = 1.0
    return number, number_of_blocks


@compiled
def _walk_up(
    number: int,
    cut: NDArray[np.int64],
    regions: FloatArray,
    sums: FloatArray,
    root_variance: float,
    row: FloatArray,
) -> None:
    """Compute the alphas of parents from those of their children, from the end of the list."""
    noise = 0.0
    for place in range(number - 1, 0, -1):
        parent = cut[place, PARENT]
        noise += close(cut[place, REGION], place, regions, sums, parent)
    row[NOISE] = noise + sums[0, UNKNOWN_ALPHA] * sums[0, UNKNOWN_ALPHA] * root_variance
    row[FOURTH] = sums[0, C0]


@compiled
def _take_parts(
    box: FloatArray, number: int, blocks: NDArray[np.int64], parts: FloatArray, row: FloatArray
) -> bool:
    """Add the parts of divided leaves; whether there was room. No part has a negative count."""
    answer, cut_size = 0.0, 0.0
    block = 0
    while block < number:
        start, stop = blocks[block, START], blocks[block, STOP]
        if number + stop - start > len(blocks):
            return False
        for part in range(start, stop):
            share = covered_share(box, parts, part, PART_BOX)
            if parts[part, PARTS] > 0.0 and 0.0 < share < 1.0:
                blocks[number, START] = int(parts[part, FIRST])
                blocks[number, STOP] = int(parts[part, FIRST] + parts[part, PARTS])
                number += 1
            else:
                held = share * parts[part, HELD]
                answer += held
                cut_size += held if share < 1.0 else 0.0
        block += 1
    row[ANSWER] += answer
    row[SIZE] += answer
    row[CUT_SIZE] += cut_size
    row[MOVED] += answer
    return True


@compiled
def _find_children(box: FloatArray, regions: FloatArray, region: int) -> tuple[int, int, int, int]:
    """The first child that the box touches and the one after the last, and the same for those that
    lie wholly inside and may be added together.

    Children are slabs along one axis, in order. If the box covers all of the other axes, it covers
    all slabs but perhaps the first and the last that it touches.
    """
    axis, dimensions = int(regions[region, AXIS]), len(box) // 2
    low, high = box[axis], box[dimensions + axis]
    first = int(regions[region, FIRST_CHILD])
    end = first + int(regions[region, NUMBER])
    starts, stops = REGION_BOX + axis, REGION_BOX + dimensions + axis
    start = first + np.searchsorted(regions[first:end, stops], low, side="right")
    stop = first + np.searchsorted(regions[first:end, starts], high, side="left")
    for other in range(dimensions):
        is_covered = (
            box[other] <= regions[region, REGION_BOX + other]
            and box[dimensions + other] >= regions[region, REGION_BOX + dimensions + other]
        )
        if other != axis and not is_covered:
            return start, stop, NO_REGION, NO_REGION
    whole_from = start + 1 if low > regions[start, starts] else start
    whole_to = stop - 1 if high < regions[stop - 1, stops] else stop
    if whole_to - whole_from < 2:
        return start, stop, NO_REGION, NO_REGION  # a single child may as well be visited
    return start, stop, whole_from, whole_to


@compiled
def _sum_slabs(
    start: int, stop: int, region: int, regions: FloatArray, running: FloatArray
) -> tuple[float, float, float, float, float, float]:
    """The sums over some children of a region, and whether nothing is known about one of them."""
    last, before = stop - 1, start - 1
    times = 1.0 if start > regions[region, FIRST_CHILD] else 0.0
    return (
        running[last, RUNNING_X] - times * running[before, RUNNING_X],
        running[last, RUNNING_S] - times * running[before, RUNNING_S],
        running[last, RUNNING_K] - times * running[before, RUNNING_K],
        running[last, RUNNING_ESTIMATE] - times * running[before, RUNNING_ESTIMATE],
        running[last, RUNNING_ABSOLUTE] - times * running[before, RUNNING_ABSOLUTE],
        running[last, RUNNING_UNKNOWN] - times * running[before, RUNNING_UNKNOWN],
    )


@inlined
def with_region(
    taken: Numbers, share: float, region: int, regions: FloatArray, kappa: float
) -> Numbers:
    """The sums of `measures` with a leaf, or a region that lies wholly inside. Parts of leaves are counted elsewhere."""
    leaf = float(region) if regions[region, FIRST_CHILD] < 0 else SEVERAL
    x, error = regions[region, X], regions[region, ERROR]
    estimate, absolute = regions[region, ESTIMATE], regions[region, ABSOLUTE]
    has_parts = regions[region, FIRST_PART] >= 0
    summed: Numbers = with_sums(taken, share, leaf, x, error, estimate, absolute, has_parts, kappa)
    return summed


@compiled
def with_sums(
    taken: Numbers,
    share: float,
    leaf: float,
    x: float,
    error: float,
    estimate: float,
    absolute: float,
    has_parts: bool,
    kappa: float,
) -> Numbers:
    """The same with these numbers of the region, or of several."""
    raw, spread, largest, only, answer, size = taken[:CUT_SIZE]
    cut_size, moved, deviations, in_cut, linear, square = taken[CUT_SIZE:]
    raw += share * x
    largest, only = max(largest, share), leaf if only == NONE_YET else SEVERAL
    if share < 1.0:
        of_leaf = share * (1 - share) * uneven(x, kappa)
        spread += of_leaf
        deviations += math.sqrt(of_leaf)
        records = may_hold(estimate, x, error)
        in_cut += share * records
        linear += share * (1 - share) * records
        square += share * (1 - share) * records * records
        cut_size += 0.0 if has_parts else share * absolute
    if share < 1.0 and has_parts:
        moved -= share * estimate
    else:
        answer += share * estimate
        size += share * absolute
    of_cut = cut_size, moved, deviations, in_cut, linear, square
    return raw, spread, largest, only, answer, size, *of_cut


@compiled
def with_parts(taken: Numbers, answer: float, cut_size: float) -> Numbers:
    """The same with what the parts of a leaf hold, and the new sum of those covered in part."""
    of_parts = taken[ANSWER] + answer, taken[SIZE] + answer, cut_size, taken[MOVED] + answer
    return *taken[:ANSWER], *of_parts, *taken[DEVIATIONS:]


@compiled
def may_hold(published: float, squares: float, error: float) -> float:
    """How many records a leaf may hold, for somebody who knows of one in it: the published count, or the mean of what
    is left of the error of least squares above zero, if that is more."""
    if error <= 0.0:
        return max(published, squares)
    off = max(squares / error, -FARTHEST_BELOW)
    density = math.exp(-0.5 * off * off) / (SQRT_HALF_PI * math.erfc(-off / SQRT_2))
    return max(published, error * (off + density))


@compiled
def uneven(estimate: float, kappa: float) -> float:
    """The variance that uneven records add to a leaf, divided by w (1 - w); see htf.query.tree_index."""
    records = max(estimate, 0.0)
    return records * (1 - kappa) + records * records * kappa


@inlined
def close(region: int, place: int, regions: FloatArray, sums: FloatArray, parent: int) -> float:
    """Add a region, of whose children are the sums, to those of the group that it is in. Returns the variance that its
    children add.

    The fourth cumulant of a sum that has c z in it, z being the region's estimate from below, is a
    polynomial in c: docs/proofs/tree-noise.md. That of the children becomes the region's.
    """
    of_s, of_s2, unknown, c0, c1, c2, c3 = read(sums, place)
    group_s, below = regions[region, GROUP_S], regions[region, BELOW]
    alpha = of_s / group_s if below > 0.0 else unknown
    # The sum of (alpha_i - alpha)^2 s_i.
    noise: float = max(of_s2 - 2 * alpha * of_s + alpha * alpha * group_s, 0.0)
    c0, c1, c2, c3 = moved_up(-alpha, regions[region, GROUP_K], (c0, c1, c2, c3))
    lower = (c0, below * c1, below * below * c2, below * below * below * c3)
    add_child(alpha, lower, region, regions, sums, parent)
    return noise


@inlined
def add_child(
    alpha: float, lower: Numbers, region: int, regions: FloatArray, sums: FloatArray, parent: int
) -> None:
    """Add the alpha and the polynomial of a region to the sums of the group that it is in; 0 is above the root."""
    s, k = regions[region, S], regions[region, K]
    write(with_child(read(sums, parent), alpha, lower, s, k, parent == 0), sums, parent)


@compiled
def with_child(
    group: Numbers, alpha: float, lower: Numbers, s: float, k: float, is_root: bool
) -> Numbers:
    """The sums over a group of siblings with one more: its alpha and its polynomial."""
    of_s, of_s2, unknown, c0, c1, c2, c3 = group
    d0, d1, d2, d3 = moved_up(alpha, k, lower)
    unknown = alpha if s == 0.0 or is_root else unknown
    return of_s + alpha * s, of_s2 + alpha * alpha * s, unknown, c0 + d0, c1 + d1, c2 + d2, c3 + d3


@inlined
def read(sums: FloatArray, place: int) -> Numbers:
    alphas = sums[place, 0], sums[place, 1], sums[place, 2]
    return *alphas, sums[place, 3], sums[place, 4], sums[place, 5], sums[place, 6]


@inlined
def write(group: Numbers, sums: FloatArray, place: int) -> None:
    for column in range(SUMS):
        sums[place, column] = group[column]


@compiled
def moved_up(by: float, leading: float, lower: Numbers) -> Numbers:
    """Rewrite a polynomial in c + `by` as one in c. Its leading coefficient stays the same."""
    c0, c1, c2, c3 = lower
    return (
        c0 + by * (by * (by * (by * leading + c3) + c2) + c1),
        c1 + by * (by * (4 * by * leading + 3 * c3) + 2 * c2),
        c2 + by * (6 * by * leading + 3 * c3),
        c3 + 4 * by * leading,
    )


@compiled
def finish_tree(
    measures: FloatArray, alone: NDArray[np.bool_], model: FloatArray, answers: FloatArray
) -> None:
    """Turn the measures of boxes or polygons into answers with intervals; all columns but INSIDE.

    The interval around the answer of least squares is exact for a single whole leaf that was counted once,
    if no other count says anything about it. Its upper end has room for records that drew the query.
    """
    for query in range(len(measures)):
        row = measures[query]
        only, spread = int(row[ONLY_LEAF]), row[SPREAD]
        if only >= 0 and row[HELD_IN_CUT] == 0.0 and alone[only]:
            half = single_half_width(row[NOISE], row[LARGEST])
            upper = half
        else:
            spread += model[TOGETHER] * max(row[DEVIATIONS] * row[DEVIATIONS] - spread, 0.0)
            half = continuous_half_width(row[NOISE] + spread, row[FOURTH]) + row[LARGEST] / 2
            upper = half
            if only == SEVERAL:
                half += model[GROWN] * np.sqrt(row[NOISE])
            if row[HELD_IN_CUT] > 0.0:
                lean, times = _lean_up(row, model)
                squared = times * times
                noise, fourth = row[NOISE] * squared, row[FOURTH] * (squared * squared)
                upper = continuous_half_width(noise + spread, fourth) + row[LARGEST] / 2 + lean
        middle, variance = row[RAW] + row[MOVED], row[NOISE] + spread
        partial, whole = row[CUT_SIZE], row[SIZE]
        write_answer(row[ANSWER], middle, half, upper, variance, partial, whole, answers, query)


@compiled
def _lean_up(row: FloatArray, model: FloatArray) -> tuple[float, float]:
    """How much more to expect in the parts of leaves that a query covers, if it was placed there because of a record in
    each of its pieces; and how many times more of the noise of those leaves it then holds. See htf.query.tree_index."""
    held, pieces = row[HELD_IN_CUT], row[PIECES]
    clumped = row[LINEAR] * (1 - model[CLUMPS]) + row[SQUARE] * model[CLUMPS]
    usual = row[LINEAR] * (1 - model[KAPPA]) + row[SQUARE] * model[KAPPA]
    others = (pieces - 1) * (clumped + usual) / 2
    lean = min((clumped + others) / held, model[MOST_LEAN] * np.sqrt(pieces * clumped))
    times = 1 + lean / (pieces * held + np.sqrt(row[NOISE]))
    return lean, min(times, 1 / row[LARGEST])
