"""A fixed hierarchy over the leaves of a release, for fast sums within boxes.

Leaves are sorted along a space-filling curve and packed into groups, groups into groups of groups,
and so on. Every node knows its bounding box and the sums over its leaves. A query takes the sums of
a node that lies wholly inside and descends only where its own edges run. So its time follows the
number of leaves along its edges, not the number inside.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from htf.estimation.noise_law import noise_fourth_cumulants, noise_variances
from htf.estimation.worth import AS_COUNTED, Worth
from htf.frame.curve import places_on_curve
from htf.frame.domain import FloatArray, IntArray
from htf.query.columns import COLUMNS, place
from htf.query.kernels import MEASURES, answer_leaves, enclose_counts, finish_leaves, measure_leaves

if TYPE_CHECKING:
    from htf.query.polygons import Outlines

FAN_OUT = 8  # anything from 2 to 16 is about as fast
CHUNK = 4096  # queries that a thread takes at a time
POLYGONS_AT_A_TIME = 16  # per thread
PUBLISHED = ("count", "std_error", "low", "high", "raw")
# Of what each counted thing is worth, by which each of the measures grows.
POWERS = np.array([1.0, 1.0, 2.0, 4.0, 0.0, 1.0, 0.0, 0.0])


class BoxIndex:
    """Sums over leaves `[low, high)`, in cells, that tile a grid and have independent noise.

    Estimates and scales are published ones. The noise is a whole number of what was counted, such as shares of a
    person, so sums and intervals are made in those, and `worth` turns them into answers.
    """

    def __init__(
        self,
        low: IntArray,
        high: IntArray,
        estimates: FloatArray,
        scales: FloatArray,
        worth: Worth = AS_COUNTED,
    ) -> None:
        self._worth = worth
        order = np.argsort(places_on_curve(low, high), kind="stable")
        self._nodes = _pack(
            low[order].astype(np.float64),
            high[order].astype(np.float64),
            _leaf_sums(*worth.as_counted(estimates[order], scales[order])),
        )

    def answer(self, rows: FloatArray, axes: FloatArray) -> FloatArray:
        """The columns of an answer (htf.query.columns), one row per box. `rows` are the edges of the boxes
        in map coordinates, and `axes` is `boxes.axis_table`."""

        def run(chunk: slice, found: FloatArray) -> None:
            answer_leaves(rows[chunk], axes, *self._nodes, found)

        return published(in_chunks(run, len(rows), len(COLUMNS), CHUNK), self._worth)

    def answer_polygons(self, outlines: Outlines) -> FloatArray:
        """The same for polygons, each leaf weighted by the share of it that they cover. The caller fills
        in how much of them lies on the map."""
        from htf.query import polygon_kernels

        def run(chunk: slice, found: FloatArray) -> None:
            polygon_kernels.measure_leaves(outlines, chunk.start, *self._nodes, found)

        measures = in_chunks(run, len(outlines.pieces), MEASURES, POLYGONS_AT_A_TIME)
        answers = np.empty((len(measures), len(COLUMNS)))
        finish_leaves(measures, answers)
        return published(answers, self._worth)

    def measure(self, query_low: FloatArray, query_high: FloatArray) -> FloatArray:
        """The sums over the leaves that each box `[query_low, query_high)`, in cell coordinates, touches: the columns of
        `measures` in htf.query.kernels."""
        queries = join_edges(query_low, query_high)

        def run(chunk: slice, found: FloatArray) -> None:
            measure_leaves(queries[chunk], *self._nodes, found)

        found = in_chunks(run, len(queries), MEASURES, CHUNK)
        return found * self._worth.each**POWERS


def published(answers: FloatArray, worth: Worth) -> FloatArray:
    """The columns of answers as they are published, from those of what was counted. Changes them in place.

    Intervals come out finished: `enclose_counts` is the last step.
    """
    if worth != AS_COUNTED:
        count, std_error, low, high, raw = (answers[:, place(name)] for name in PUBLISHED)
        count[:], std_error[:], low[:], high[:] = worth.of_answers(count, std_error, low, high)
        raw *= worth.each
    enclose_counts(answers)
    return answers


def join_edges(low: FloatArray, high: FloatArray) -> FloatArray:
    """Boxes in the layout that the kernels expect. (Another layout would make them compile again.)"""
    return np.ascontiguousarray(np.hstack([low, high]), dtype=np.float64)


def in_chunks(
    run: Callable[[slice, FloatArray], None], number: int, columns: int, size: int
) -> FloatArray:
    """Fill the rows of a table, in threads if there are many; kernels release Python's global lock."""
    results = np.empty((number, columns))
    chunks = [slice(start, start + size) for start in range(0, number, size)]
    if len(chunks) <= 1:
        run(slice(0, number), results)
        return results
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda chunk: run(chunk, results[chunk]), chunks))
    return results


def _leaf_sums(estimates: FloatArray, scales: FloatArray) -> FloatArray:
    """The columns in the order that the kernel names."""
    variances = noise_variances(scales)
    fourth_cumulants = noise_fourth_cumulants(variances)
    noisy = (variances > 0).astype(np.float64)
    return np.column_stack([estimates, np.abs(estimates), variances, fourth_cumulants, noisy])


def _pack(
    low: FloatArray, high: FloatArray, sums: FloatArray
) -> tuple[FloatArray, IntArray, FloatArray]:
    """Nodes in depth-first order: their bounding boxes, the node that follows each one's subtree, and
    their sums."""
    first = np.arange(len(low), dtype=np.int64)
    levels = [(low, high, sums, first, first + 1)]
    while len(levels[0][0]) > 1:
        levels.insert(0, _group(*levels[0]))
    low, high, sums, first, end = (np.concatenate(parts) for parts in zip(*levels, strict=True))
    # The sort is stable, so among nodes that begin at the same leaf the outermost stays first.
    order = np.argsort(first, kind="stable")
    skip = np.searchsorted(first[order], end[order]).astype(np.int64)
    return join_edges(low[order], high[order]), skip, sums[order]


def _group(
    low: FloatArray, high: FloatArray, sums: FloatArray, first: IntArray, end: IntArray
) -> tuple[FloatArray, FloatArray, FloatArray, IntArray, IntArray]:
    starts = np.arange(0, len(low), FAN_OUT)
    return (
        np.minimum.reduceat(low, starts),
        np.maximum.reduceat(high, starts),
        np.add.reduceat(sums, starts),
        first[starts],
        np.maximum.reduceat(end, starts),
    )
