"""A two-dimensional view of a release with any number of axes.

Two axes are drawn; the others are summed, whole or within the ranges of `where`. Each of the parts that
answers are made of (`Derived.parts`) is spread evenly over the pixels it covers, so that a pixel holds
the count that `Release.count` would give for it. Only public values are used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from htf.base.read_only import ReadOnlyArrays, make_read_only
from htf.errors import InputError
from htf.estimation.noise_law import noise_variances
from htf.frame.domain import Domain, FloatArray, IntArray, read_pair
from htf.frame.grids import rows_of
from htf.maps.window import PLACES, Window, edges_of, rows_between
from htf.query.columns import place as column_place
from htf.query.where import Where, read_where, told_range
from htf.release.release import Release, check_release

MOST_PIXELS = 1024  # per side, by default


@dataclass(frozen=True, slots=True, eq=False)
class View(ReadOnlyArrays):
    """Counts of a release on a regular grid along two axes. `Release.view` makes one.

    The grid is never finer than that of the release.

    Attributes
    ----------
    domain : Domain
        The grid.
    cells : (int, int)
        How many cells of the release the grid covers each way.
    is_place : bool
        Whether both axes are lengths on the same map.
    counts : ndarray of float
        The counts, indexed `[first axis, second axis]`.
    noise : ndarray of float
        The standard deviation of each count, as far as noise is known for each part.
    is_clear : ndarray of bool
        Where a count is more than noise: the interval of the pixel, or of the leaf that it lies in, is above zero.
    summed : str
        What was done to the axes that are not drawn, in words.
    is_unsure : ndarray of bool, optional
        On a plain map, where the interval of the leaf holds zero, and also a third of the density around it.

    Examples
    --------
    >>> import htf
    >>> domain = htf.Domain.from_bounds(0, 0, 2, 2, cells=2)
    >>> matrix = htf.FrequencyMatrix.from_dense(domain, [[500, 20], [0, 30]])
    >>> view = htf.publish(matrix, 1, noise="seeded:1").view()
    >>> view.counts.round()
    array([[500.,  21.],
           [  0.,  29.]])
    """

    domain: Domain
    cells: tuple[int, int]
    is_place: bool  # both axes are lengths on the same map
    counts: FloatArray
    noise: FloatArray
    is_clear: NDArray[np.bool_]
    summed: str
    is_unsure: NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        make_read_only(self.counts, self.noise, self.is_clear, self.is_unsure)

    @property
    def edges(self) -> tuple[FloatArray, FloatArray]:
        """The edges of the pixels in map coordinates: one more than there are pixels, for each axis."""
        first, second = edges_of(self.domain)
        return first, second


def view(
    release: Release,
    axes: tuple[str, str] = PLACES[0],
    where: Where | None = None,
    cells: int | tuple[int, int] | None = None,
) -> View:
    """The counts of a release along two of its axes, within `where`, on at most `cells` pixels a side.

    Ranges of axes that are not drawn are exact, cells that they cut counting by share. A range of an
    axis that is drawn crops the view, at whole cells: `edges` says where. Raises InputError for axes that
    are not there, and ranges off the map.
    """
    domain = check_release(release).domain
    window = Window.of(domain, axes, where).whole
    drawn = list(window.drawn)
    ranges = window.cells
    parts = release.derived.parts
    touched, share = _share_inside(parts.low, parts.high, window)
    leaf = parts.leaf[touched]
    low, high = parts.low[touched][:, drawn], parts.high[touched][:, drawn]
    frame = ranges[drawn].T.astype(np.int64)
    columns, rows = (frame[1] - frame[0]).tolist()
    shape = _display_shape((columns, rows), cells)
    spread = partial(rasterise, low, high, frame=frame, shape=shape)

    def mostly(marked: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which pixels lie in marked leaves by more than half."""
        held = spread(np.prod(high - low, axis=1) * marked[leaf].astype(np.float64))
        return np.asarray(held > 0.5 * columns * rows / math.prod(shape))

    is_plain, is_clear, unsure = domain.dimensions == 2, np.zeros(shape, dtype=np.bool_), None
    if is_plain:
        is_clear = mostly(release.derived.clear_leaves)
    if not is_plain or shape != (columns, rows):
        # On a plain map a pixel may be much smaller than a leaf. Nobody knows where in the leaf the records are, so the
        # interval of the pixel says nothing; that of the leaf, which is drawn there, counts.
        sides = zip(*frame.tolist(), shape, strict=True)
        edges = [np.linspace(start, end, number + 1) for start, end, number in sides]
        lows, highs = np.hsplit(rows_between(ranges, window.drawn, edges), 2)
        own = release.derived.answer_cells(lows, highs)[:, column_place("low")] > 0
        is_clear |= own.reshape(shape)
    if is_plain:
        unsure = mostly(release.derived.unsure_leaves) & ~is_clear
    variances = np.square(share) * noise_variances(parts.scales[touched])
    return View(
        domain=window.grid(shape),
        cells=(columns, rows),
        is_place=window.is_place,
        counts=spread(share * parts.estimates[touched]),
        noise=np.sqrt(np.maximum(spread(variances, power=2), 0)),
        is_clear=is_clear,
        summed=describe_summed(domain, window.drawn, where, silent=window.drawn),
        is_unsure=unsure,
    )


def _share_inside(low: IntArray, high: IntArray, window: Window) -> tuple[IntArray, FloatArray]:
    """The boxes in cells that reach into a window, and which share of each lies in it along the axes that are not drawn."""
    first, end = window.cells.T
    touched = np.flatnonzero(np.all((low < end) & (high > first), axis=1))
    low, high, share = low[touched], high[touched], np.ones(len(touched))
    for number in set(range(len(first))) - set(window.drawn):
        start, stop = low[:, number], high[:, number]
        inside = np.minimum(stop, end[number]) - np.maximum(start, first[number])
        share *= inside / (stop - start)
    return touched, share


def describe_summed(
    domain: Domain, drawn: Sequence[int], where: Where | None, silent: Sequence[int] = ()
) -> str:
    """The text on axes that are not drawn, and on the part of those that are; empty if there is nothing to say, or only
    about axes that are to be left out."""
    asked = read_where(where)
    rest = [name for number, name in enumerate(domain.names) if number not in silent]
    cut = [f"{name} {told_range(asked[name])}" for name in rest if name in asked]
    drawn_names = [domain.names[number] for number in drawn]
    whole = [name for name in rest if name not in asked and name not in drawn_names]
    return "; ".join([*cut, *([f"all of {', '.join(whole)}"] if whole else [])])


def outlines(release: Release, window: Window) -> FloatArray:
    """The leaves within a window as rows W,S,E,N; those that differ only along a summed-out axis share one outline."""
    first, end = window.cells.T
    touched = np.all((release.low < end) & (release.high > first), axis=1)
    low, high = (ends[touched][:, window.drawn] for ends in (release.low, release.high))
    rows = np.unique(np.hstack([low, high]), axis=0)
    axes = [release.domain.axes[number] for number in window.drawn]
    return rows_of(axes, *np.hsplit(rows, 2))


def _display_shape(
    available: tuple[int, int], cells: int | tuple[int, int] | None
) -> tuple[int, int]:
    wanted = MOST_PIXELS if cells is None else cells
    columns, rows = read_pair(wanted, "the number of pixels")
    if min(columns, rows) < 1:
        raise InputError(f"a map needs at least one pixel a side, got {columns} x {rows}")
    return min(columns, available[0]), min(rows, available[1])


def rasterise(
    low: IntArray,
    high: IntArray,
    masses: FloatArray,
    frame: IntArray,
    shape: tuple[int, int],
    *,
    power: int = 1,
) -> FloatArray:
    """Spread the mass of each rectangle evenly over its area, and sum it in each of `shape` pixels.

    `frame` has the corners of what is drawn, in cells, and every rectangle must reach into it. With
    `power` 2 each mass counts by the square of the share that falls in a pixel, as variances
    do. The share is a product of one profile per axis, and a profile is constant except at its ends.
    So a profile has four differences, a rectangle sixteen, and two running sums undo the differences.
    The cost is rectangles plus pixels, however fine the grid.
    """
    (columns, column_steps), (rows, row_steps) = (
        _profile_steps(low[:, axis], high[:, axis], frame[:, axis], shape[axis], power)
        for axis in (0, 1)
    )
    width, height = shape[0] + 1, shape[1] + 1  # room for the step down after the last pixel
    steps = np.zeros(width * height)
    for column, column_step in zip(columns, column_steps, strict=True):
        for row, row_step in zip(rows, row_steps, strict=True):
            weights = masses * column_step * row_step
            steps += np.bincount(column * height + row, weights, width * height)
    raster = steps.reshape(width, height).cumsum(axis=0).cumsum(axis=1)
    return np.asarray(raster[:-1, :-1])


def _profile_steps(
    low: IntArray, high: IntArray, frame: IntArray, pixels: int, power: int
) -> tuple[list[IntArray], list[FloatArray]]:
    """The pixels at which the share of a range per pixel changes, and by how much it changes.

    In units of which a pixel has `cells` and a cell has `pixels`, all edges are whole numbers. So
    nothing is lost, however small a leaf is compared with a pixel.
    """
    cells = int(frame[1] - frame[0])
    start = (np.maximum(low, frame[0]) - frame[0]) * pixels
    stop = (np.minimum(high, frame[1]) - frame[0]) * pixels
    first, last = start // cells, (stop - 1) // cells
    length = (high - low) * pixels
    head = ((np.minimum(stop, (first + 1) * cells) - start) / length) ** power
    tail = ((stop - np.maximum(start, last * cells)) / length) ** power
    # A range within a single pixel has no middle part to step up to.
    middle = np.where(first == last, head, (cells / length) ** power)
    steps = [head, middle - head, tail - middle, -tail]
    return [first, first + 1, last, last + 1], steps
