"""The part of a map that is drawn: along two of its axes, within ranges of all. Public."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from htf.base import arguments
from htf.errors import InputError
from htf.frame.areas import square_kilometres
from htf.frame.crs import CRS84, same_crs
from htf.frame.domain import Axis, Domain, FloatArray
from htf.query.boxes import to_snapped_cells
from htf.query.where import Where, axis_number, full_ranges

FEWEST_SQUARES, MOST_SQUARES = 12, 65_536  # of a comparison: per side; in total
MOST_HALVINGS = 31
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
class Window:
    """The two axes of a map that are drawn, and the range of each of its axes."""

    domain: Domain
    drawn: tuple[int, int]
    ranges: FloatArray  # the low and high end of every axis

    @classmethod
    def of(cls, domain: Domain, axes: tuple[str, str], where: Where | None) -> Window:
        return cls(domain, drawn_axes(domain, axes), full_ranges(domain, where))

    @property
    def is_place(self) -> bool:
        first, second = (self.domain.names[number] for number in self.drawn)
        return self.drawn == (0, 1) or (first, second) in PLACES

    @property
    def cells(self) -> FloatArray:
        """The ends of each axis in cells, rounded to whole cells along the axes that are drawn."""
        pairs = zip(self.domain.axes, self.ranges, strict=True)
        found = np.array([to_snapped_cells(axis, ends) for axis, ends in pairs])
        for number in self.drawn:
            found[number] = np.floor(found[number, 0]), np.ceil(found[number, 1])
        return found

    @property
    def whole(self) -> Window:
        """The same up to the edges of cells, along the axes that are drawn."""
        ranges, cells = self.ranges.copy(), self.cells
        for number in self.drawn:
            ranges[number] = self.domain.axes[number].from_cells(cells[number])
        return replace(self, ranges=ranges)

    def grid(self, shape: tuple[int, int]) -> Domain:
        """So many squares along both axes that are drawn."""
        axes = tuple(
            Axis(self.domain.names[number], float(low), float(high), cells)
            for number, (low, high), cells in zip(
                self.drawn, self.ranges[list(self.drawn)], shape, strict=True
            )
        )
        return Domain(axes, self.domain.crs if self.is_place else None)

    def rows(self, grid: Domain) -> FloatArray:
        """Full rows, for `Release.count`, of the squares of a grid along the axes that are drawn; columns first."""
        return rows_between(self.ranges, self.drawn, edges_of(grid))

    def shared(self, other: Window) -> Window:
        """The part of it that another map covers, too; an error if they do not overlap."""
        if not is_same_system(self.domain, other.domain):
            raise InputError(
                f"the maps have different reference systems, {self.domain.crs} and {other.domain.crs}: "
                "only an HTML map shows them together, side by side"
            )
        ends = [window.ranges[list(window.drawn)] for window in (self, other)]
        low, high = np.maximum(*ends)[:, 0], np.minimum(*ends)[:, 1]
        if np.any(low >= high):
            shown = " and ".join(", ".join(f"{end:.6g}" for end in one.T.ravel()) for one in ends)
            raise InputError(f"the maps do not overlap: their bounds W,S,E,N are {shown}")
        ranges = self.ranges.copy()
        ranges[list(self.drawn)] = np.column_stack([low, high])
        return replace(self, ranges=ranges)

    def shapes_to_compare(self) -> list[tuple[int, int]]:
        """Numbers of squares along both axes, from few large ones to many small ones: each grid halves the one before. A
        difference that shows in a district may drown in the noise of its streets."""
        columns, rows = (
            round(float(np.ptp(self.ranges[number])) * self.domain.axes[number].cells_per_unit)
            for number in self.drawn
        )
        halved = ((columns >> n, rows >> n) for n in range(MOST_HALVINGS))
        every = dict.fromkeys((max(one, 1), max(other, 1)) for one, other in halved)
        fitting = [shape for shape in every if math.prod(shape) <= MOST_SQUARES]
        fine = [shape for shape in fitting[1:] if max(shape) >= FEWEST_SQUARES]
        return [*fitting[:1], *fine][::-1]


def edges_of(grid: Domain) -> list[FloatArray]:
    """The edges of the squares of a grid along its axes."""
    return [axis.from_cells(np.arange(axis.cells + 1)) for axis in grid.axes]


def rows_between(
    ranges: FloatArray, drawn: tuple[int, int], edges: Sequence[FloatArray]
) -> FloatArray:
    """Rows of the low and then the high ends of all axes: squares between edges along two of them, columns first, and the
    same range along every other."""
    columns, rows = (len(ends) - 1 for ends in edges)
    full = np.repeat(ranges.T.reshape(1, -1), columns * rows, axis=0)
    places = np.divmod(np.arange(columns * rows), rows)
    for number, ends, place in zip(drawn, edges, places, strict=True):
        full[:, number], full[:, number + len(ranges)] = ends[place], ends[place + 1]
    return full


def squares_of(grid: Domain) -> FloatArray:
    """The squares of a grid as rows W,S,E,N."""
    return rows_between(np.zeros((2, 2)), (0, 1), edges_of(grid))


def row_areas(grid: Domain, unknown: float = 1.0) -> FloatArray:
    """The area of a square in each row of a grid, in square kilometres if the ground is known."""
    rows = np.arange(grid.shape[1])
    low = np.column_stack([np.zeros_like(rows), rows])
    area = square_kilometres(grid, low, low + 1)
    return np.full(len(rows), unknown) if area is None else area


def is_same_system(one: Domain, other: Domain) -> bool:
    """Whether two maps have the same reference system; an error if only one of them has one."""
    if one.crs == other.crs:
        return True
    if one.crs is None or other.crs is None:
        raise InputError("one of the maps has no reference system: they cannot be compared")
    return same_crs(one.crs, other.crs)


def drawn_axes(domain: Domain, names: tuple[str, str]) -> tuple[int, int]:
    """The numbers of the two axes that are drawn. `x` and `y` stand for the first two axes of a map
    that has other names for them."""
    if domain.dimensions < 2:
        raise InputError(f"a map needs two axes, but this release has only {domain.names[0]!r}")
    names = read_axes(names)
    if names == PLACES[0] and not set(names) & set(domain.names):
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
