"""A two-dimensional view of a release with any number of axes.

Two axes are drawn; the others are summed, whole or within the ranges of `where`. Each of the parts that
answers are made of (`Derived.parts`) is spread evenly over the pixels it covers, so that a pixel holds
the count that `Release.count` would give for it. Only public values are used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from htf.base import arguments
from htf.base.read_only import ReadOnlyArrays, make_read_only
from htf.errors import InputError
from htf.estimation.noise_law import noise_variances
from htf.frame.crs import CRS84
from htf.frame.domain import Axis, Domain, FloatArray, IntArray, read_pair
from htf.query.boxes import to_snapped_cells
from htf.query.columns import place as column_place
from htf.query.where import Where, axis_number, full_ranges, read_where, told_range
from htf.release.release import Release, check_release

MOST_PIXELS = 1024  # per side, by default
THINNEST = 0.11  # width over length: a thinner map would look like a line
# Pairs of axes that together are a place, in the coordinate reference system of the map.
PLACES = (("x", "y"), ("dest_x", "dest_y"))


@dataclass(frozen=True, slots=True)
class Frame:
    """The part of a plane that a map shows, along two axes."""

    domain: Domain
    is_place: bool = True  # both axes are lengths on the same map

    @property
    def narrowing(self) -> float:
        """The length of a degree of longitude relative to one of latitude, in the middle of the map."""
        y = self.domain.axes[1]
        return math.cos(math.radians((y.low + y.high) / 2)) if self.domain.crs == CRS84 else 1.0

    @property
    def true_ratio(self) -> float:
        """Height to width on the ground, or in map units if the ground is not known; 1 if it is no place."""
        if not self.is_place:
            return 1.0
        x, y = self.domain.axes
        return (y.high - y.low) / ((x.high - x.low) * self.narrowing)

    @property
    def ratio(self) -> float:
        """The one that is drawn."""
        return min(max(self.true_ratio, THINNEST), 1 / THINNEST)

    @property
    def aspect(self) -> float:
        """The same in units of both axes, as matplotlib has it."""
        x, y = self.domain.axes
        return self.ratio * (x.high - x.low) / (y.high - y.low)

    @property
    def is_wide(self) -> bool:
        return self.ratio < 0.55


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
        make_read_only(self.counts, self.noise, self.is_clear)
        if self.is_unsure is not None:
            make_read_only(self.is_unsure)

    @property
    def edges(self) -> tuple[FloatArray, FloatArray]:
        """The edges of the pixels in map coordinates: one more than there are pixels, for each axis."""
        first, second = (axis.from_cells(np.arange(axis.cells + 1)) for axis in self.domain.axes)
        return first, second


def view(
    release: Release,
    axes: tuple[str, str] = ("x", "y"),
    where: Where | None = None,
    cells: int | tuple[int, int] | None = None,
) -> View:
    """The counts of a release along two of its axes, within `where`, on at most `cells` pixels a side.

    Ranges of axes that are not drawn are exact, cells that they cut counting by share. A range of an
    axis that is drawn crops the view, at whole cells: `edges` says where. Raises InputError for axes that
    are not there, and ranges off the map.
    """
    domain = check_release(release).domain
    drawn = drawn_axes(domain, axes)
    first, end = ranges_in_cells(domain, drawn, where)
    parts = release.derived.parts
    touched = np.flatnonzero(np.all((parts.low < end) & (parts.high > first), axis=1))
    low, high = parts.low[touched], parts.high[touched]
    share = np.ones(len(touched))
    for number in set(range(domain.dimensions)) - set(drawn):
        inside = np.minimum(high[:, number], end[number]) - np.maximum(
            low[:, number], first[number]
        )
        share *= inside / (high - low)[:, number]
    frame = np.array([first[list(drawn)], end[list(drawn)]], dtype=np.int64)
    shape = _display_shape(frame[1] - frame[0], cells)
    low, high = low[:, drawn], high[:, drawn]
    masses = share * parts.estimates[touched]
    counts = rasterise(low, high, masses, frame, shape)
    variances = np.square(share) * noise_variances(parts.scales[touched])
    noise = np.sqrt(np.maximum(rasterise(low, high, variances, frame, shape, power=2), 0))
    clear = low, high, release.derived.clear_leaves[parts.leaf[touched]]
    is_clear = _clear_pixels(release, drawn, (first, end), frame, shape, clear)
    unsure = None
    if domain.dimensions == 2:
        leaves = low, high, release.derived.unsure_leaves[parts.leaf[touched]]
        unsure = _mostly(*leaves, frame, shape) & ~is_clear
    columns, rows = (int(number) for number in frame[1] - frame[0])
    return View(
        domain=_display_domain(domain, drawn, frame, shape),
        cells=(columns, rows),
        is_place=is_place(domain, drawn),
        counts=counts,
        noise=noise,
        is_clear=is_clear,
        summed=describe_summed(domain, drawn, where, silent=drawn),
        is_unsure=unsure,
    )


def frame_of(domain: Domain, axes: tuple[str, str], where: Where | None) -> Frame:
    """What a view shows, without its counts."""
    drawn = drawn_axes(domain, axes)
    first, end = ranges_in_cells(domain, drawn, where)
    frame = np.array([first[list(drawn)], end[list(drawn)]], dtype=np.int64)
    return Frame(_display_domain(domain, drawn, frame, (1, 1)), is_place(domain, drawn))


def _clear_pixels(
    release: Release,
    drawn: tuple[int, int],
    ranges: tuple[FloatArray, FloatArray],
    frame: IntArray,
    shape: tuple[int, int],
    parts: tuple[IntArray, IntArray, NDArray[np.bool_]],
) -> NDArray[np.bool_]:
    """Which pixels are more than noise. `parts` are the edges of the parts of leaves along the axes drawn, and whether
    their leaf is.

    On a plain map a pixel may be much smaller than a leaf. Nobody knows where in the leaf the records are, so the interval
    of the pixel says nothing; that of the leaf, which is drawn there, counts.
    """
    starts, stops = frame.astype(np.float64)
    edges = [np.linspace(starts[at], stops[at], shape[at] + 1) for at in (0, 1)]
    found = np.zeros(shape, dtype=bool)
    if release.domain.dimensions == 2:
        found = _mostly(*parts, frame, shape)
        if shape == tuple(frame[1] - frame[0]):
            return found
    start, stop = (np.tile(side, (shape[0] * shape[1], 1)) for side in ranges)
    for place, number in enumerate(drawn):
        for side, ends in ((start, edges[place][:-1]), (stop, edges[place][1:])):
            along = ends[:, None] if place == 0 else ends[None, :]
            side[:, number] = np.broadcast_to(along, shape).ravel()
    own = release.derived.answer_cells(start, stop)[:, column_place("low")] > 0
    return np.asarray(found | own.reshape(shape))


def _mostly(
    low: IntArray,
    high: IntArray,
    marked: NDArray[np.bool_],
    frame: IntArray,
    shape: tuple[int, int],
) -> NDArray[np.bool_]:
    """Which pixels lie in marked rectangles by more than half."""
    cells = np.prod(high - low, axis=1) * marked
    pixel = float(np.prod((frame[1] - frame[0]) / shape))
    return np.asarray(rasterise(low, high, cells.astype(np.float64), frame, shape) > 0.5 * pixel)


def drawn_axes(domain: Domain, names: tuple[str, str]) -> tuple[int, int]:
    """The numbers of the two axes that are drawn. `x` and `y` stand for the first two axes of a map
    that has other names for them."""
    if domain.dimensions < 2:
        raise InputError(f"a map needs two axes, but this release has only {domain.names[0]!r}")
    names = read_axes(names)
    if tuple(names) == PLACES[0] and not set(names) & set(domain.names):
        if not domain.has_map:
            raise InputError(
                f"a map needs axes x and y, but this release has {', '.join(domain.names)}: name two of them"
            )
        return 0, 1
    if names[0] == names[1]:
        raise InputError(f"a map is drawn along two different axes, got {', '.join(names)}")
    return axis_number(domain, names[0]), axis_number(domain, names[1])


def read_axes(names: object) -> tuple[str, str]:
    """The names of the axes that are drawn."""
    given = arguments.items(names, "axes", "the names of two axes, such as ('x', 'y')")
    texts = [arguments.text(name, "the name of an axis") for name in given]
    if len(texts) != 2:
        raise InputError(f"a map is drawn along two different axes, got {', '.join(texts)}")
    return texts[0], texts[1]


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


def ranges_in_cells(
    domain: Domain, drawn: tuple[int, int], where: Where | None
) -> tuple[FloatArray, FloatArray]:
    """The ends of each axis in cells, rounded to whole cells along the axes that are drawn."""
    ranges = full_ranges(domain, where)
    cells = [to_snapped_cells(axis, ends) for axis, ends in zip(domain.axes, ranges, strict=True)]
    first, end = np.array(cells).T
    for number in drawn:
        first[number], end[number] = np.floor(first[number]), np.ceil(end[number])
    return first, end


def outlines(release: Release, axes: tuple[str, str], where: Where | None) -> FloatArray:
    """The leaves within `where` as rows W,S,E,N along two axes; those that differ only along a
    summed-out axis share one outline."""
    domain = release.domain
    drawn = drawn_axes(domain, axes)
    first, end = ranges_in_cells(domain, drawn, where)
    touched = np.all((release.low < end) & (release.high > first), axis=1)
    low, high = release.low[touched][:, drawn], release.high[touched][:, drawn]
    west, south, east, north = np.unique(np.hstack([low, high]), axis=0).T
    x, y = (domain.axes[number] for number in drawn)
    edges = x.from_cells(west), y.from_cells(south), x.from_cells(east), y.from_cells(north)
    return np.column_stack(edges)


def _display_shape(available: IntArray, cells: int | tuple[int, int] | None) -> tuple[int, int]:
    wanted = MOST_PIXELS if cells is None else cells
    columns, rows = read_pair(wanted, "the number of pixels")
    if min(columns, rows) < 1:
        raise InputError(f"a map needs at least one pixel a side, got {columns} x {rows}")
    return min(columns, int(available[0])), min(rows, int(available[1]))


def _display_domain(
    domain: Domain, drawn: tuple[int, int], frame: IntArray, shape: tuple[int, int]
) -> Domain:
    axes = []
    for place, number in enumerate(drawn):
        axis = domain.axes[number]
        low, high = axis.from_cells(frame[:, place]).tolist()
        axes.append(Axis(axis.name, low, high, shape[place]))
    return Domain(tuple(axes), domain.crs if is_place(domain, drawn) else None)


def is_place(domain: Domain, drawn: tuple[int, int]) -> bool:
    return drawn == (0, 1) or (domain.names[drawn[0]], domain.names[drawn[1]]) in PLACES


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
