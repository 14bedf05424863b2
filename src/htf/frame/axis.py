"""An axis of a map: a grid of numbers, a list of names, or a layer of zones.

All three answer the same questions: which columns of a record they read, where on the axis it then is, what their cells
are called, and what has an outline on the ground. So nobody else has to ask which of the three an axis is.

Every axis is half-open, `[low, high)`. So a point on the lower edge is inside, a point on the upper edge is outside, and
two maps that share an edge never count a point twice.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from htf.base import arguments
from htf.base.extras import need
from htf.errors import InputError
from htf.frame.names import Level, Names, Outlines

MOST_CELLS_PER_AXIS = 2**31 - 1  # cell indices are 32-bit
LONGEST_NAME = 100  # characters
NUMBER, LABEL, PLACE = ("number",), ("label",), ("x", "y")  # what a record has along an axis

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Axis:
    """One named axis: `cells` cells of equal width over `[low, high)`.

    Parameters
    ----------
    name : str
        A plain word, such as `x` or `hour`.
    low, high : float
        The bounds. A value equal to `high` is outside.
    cells : int
        How many cells there are.
    names : Names, optional
        What the cells are called, if they are categories or zones: `Axis.named` makes such axes.

    Raises
    ------
    InputError
        If the name is not a plain word, or the bounds or the number of cells make no sense.

    Examples
    --------
    >>> import htf
    >>> hour = htf.Axis("hour", 0, 24, cells=24)
    >>> hour.cell_width
    1.0
    """

    name: str
    low: float
    high: float
    cells: int
    names: Names | None = None

    inputs: ClassVar[tuple[str, ...]] = NUMBER
    plural: ClassVar[str] = "steps"  # what its cells are

    def __post_init__(self) -> None:
        name = arguments.text(self.name, "the name of an axis")
        if not name.isidentifier():
            raise InputError(f"an axis name must be a plain word, got {name!r:.100}")
        if len(name) > LONGEST_NAME:
            raise InputError(f"an axis name has at most {LONGEST_NAME} characters, got {len(name)}")
        for field in ("low", "high"):
            bound = arguments.number(getattr(self, field), f"the {field} bound of axis {name!r}")
            object.__setattr__(self, field, bound)
        cells = arguments.whole(self.cells, f"the number of cells of axis {name!r}")
        object.__setattr__(self, "cells", cells)
        if not math.isfinite(self.high - self.low):
            raise InputError(
                f"the bounds of axis {self.name!r} must be finite, got {self.low} and {self.high}"
            )
        if not self.low < self.high:
            raise InputError(
                f"the bounds of axis {self.name!r} must be low < high, "
                f"got {self.low} and {self.high}: are they swapped?"
            )
        if not 1 <= self.cells <= MOST_CELLS_PER_AXIS:
            raise InputError(
                f"axis {self.name!r} must have between 1 and {MOST_CELLS_PER_AXIS} cells, "
                f"got {self.cells!r}"
            )
        if not math.isfinite(self.cells_per_unit) or self.low + self.cell_width == self.low:
            raise InputError(
                f"axis {self.name!r} is too narrow for {self.cells} cells between "
                f"{self.low} and {self.high}: numbers cannot tell them apart"
            )
        self._check_names()

    def _check_names(self) -> None:
        if self.names is not None:
            raise InputError(f"make the axis {self.name!r} of names with Axis.named")

    @classmethod
    def named(cls, name: str, names: Names) -> Axis:
        """Make an axis of named cells: categories, or zones if the names have outlines.

        Parameters
        ----------
        name : str
            A plain word, such as `zone` or `offence`.
        names : Names
            What its cells are called.

        Returns
        -------
        Axis
            The axis. Its cell i is `[i, i + 1)`.

        Raises
        ------
        InputError
            If the name is not a plain word.

        Examples
        --------
        >>> htf.Axis.named("kind", htf.Names.of({"kind": ["tram", "bus"]})).cells
        2
        """
        size = len(arguments.instance(names, Names, "the names of an axis"))
        return _kind_of(names)(name, 0, size, size, names)

    @property
    def cells_per_unit(self) -> float:
        """The number of cells in one unit of the map."""
        return self.cells / (self.high - self.low)

    @property
    def cell_width(self) -> float:
        """The width of a cell in units of the map."""
        return (self.high - self.low) / self.cells

    @property
    def levels(self) -> tuple[Level, ...]:
        """The levels of names, from the cells up. None along a grid."""
        return ()

    @property
    def has_rest(self) -> bool:
        """Whether the last cell takes every label or place without a name of its own."""
        return False

    @property
    def key(self) -> str:
        """A digest of what decides where records are, as a part of names of functions."""
        return ""

    @property
    def outlines(self) -> Outlines | None:
        """The outlines of its cells on the ground, if they have some of their own."""
        return None

    def to_cells(self, values: FloatArray) -> FloatArray:
        """Convert map coordinates to cell coordinates, where cell i is [i, i + 1).

        Parameters
        ----------
        values : array_like of float
            Coordinates on the map.

        Returns
        -------
        ndarray of float
            Coordinates in cells.

        Raises
        ------
        InputError
            If the values are not numbers.

        Examples
        --------
        >>> hour.to_cells([0, 7.5])
        array([0. , 7.5])
        """
        return (arguments.numbers(values, "coordinates") - self.low) * self.cells_per_unit

    def from_cells(self, edges: NDArray[Any]) -> FloatArray:
        """Convert cell edges to map coordinates. The outermost edges are the bounds themselves.

        Parameters
        ----------
        edges : array_like of float
            Edges in cells.

        Returns
        -------
        ndarray of float
            Edges in map coordinates.

        Raises
        ------
        InputError
            If the edges are not numbers.

        Examples
        --------
        >>> hour.from_cells([0, 12, 24])
        array([ 0., 12., 24.])
        """
        edges = arguments.numbers(edges, "edges of cells")
        inner = self.low + edges * self.cell_width
        return np.where(edges >= self.cells, self.high, inner)

    def place(self, *columns: NDArray[Any]) -> FloatArray:
        """Find where records are along the axis.

        Parameters
        ----------
        *columns : ndarray
            One array for each of `inputs`: numbers, labels, or x and y.

        Returns
        -------
        ndarray of float
            A coordinate for each record; along names and zones the number of the cell. NaN for one that is nowhere.

        Examples
        --------
        >>> hour.place([7.5])
        array([7.5])
        """
        return np.asarray(columns[0], dtype=np.float64)

    def edges(self, level: int = 0) -> IntArray:
        """Find where the steps of a level begin, in cells, and where the last one ends.

        Parameters
        ----------
        level : int
            The number of the level. 0 is the lowest, and the only one of a grid.

        Returns
        -------
        ndarray of int
            One more than there are steps.

        Examples
        --------
        >>> htf.Axis("half", 0, 1, cells=2).edges()
        array([0, 1, 2])
        """
        del level
        return np.arange(self.cells + 1)

    def labels(self, low: IntArray, high: IntArray, level: int = 0) -> list[str]:
        """Name ranges of cells.

        Parameters
        ----------
        low, high : array_like of int
            The first cell of each, and the one after the last.
        level : int
            The level of the names.

        Returns
        -------
        list of str
            One for each range. A range of several names has the first and the last.

        Examples
        --------
        >>> hour.labels([0, 7], [1, 10])
        ['0 to 1', '7 to 10']
        """
        del level
        ends = zip(self.from_cells(low).tolist(), self.from_cells(high).tolist(), strict=True)
        return [f"{show(a)} to {show(b)}" for a, b in ends]

    def columns(self, low: IntArray, high: IntArray, level: int = 0) -> dict[str, list[Any]]:
        """Describe ranges of cells by all that is known of them.

        Parameters
        ----------
        low, high : array_like of int
            The first cell of each, and the one after the last.
        level : int
            The lowest level of the names.

        Returns
        -------
        dict
            Columns by their names: of each level, and on the lowest one what the layer of zones says of them.

        Examples
        --------
        >>> hour.columns([0], [12])
        {'hour': ['0 to 12']}
        """
        return {self.name: self.labels(low, high, level)}

    def outline(self, low: NDArray[Any], high: NDArray[Any]) -> Any:
        """Find the outlines of ranges of cells. Needs shapely.

        Parameters
        ----------
        low, high : array_like of int
            The first cell of each, and the one after the last.

        Returns
        -------
        ndarray of object
            A polygon for each range, in coordinates of the map; an empty one where there is none.

        Raises
        ------
        InputError
            If the cells are no zones.

        Examples
        --------
        >>> hour.outline([0], [12])
        Traceback (most recent call last):
        htf.errors.InputError: the cells of axis 'hour' have no outlines
        """
        del low, high
        raise InputError(f"the cells of axis {self.name!r} have no outlines")

    def show_range(self, low: float, high: float, level: int = 0) -> str:
        """Name a range in words.

        Parameters
        ----------
        low, high : float
            Its ends, in coordinates of the map.
        level : int
            The lowest level that may name it.

        Returns
        -------
        str
            The name, else the ends.

        Examples
        --------
        >>> hour.show_range(7, 10)
        '7 to 10'
        """
        del level
        return f"{low:g} to {high:g}"

    def range_of(self, label: str, level: str | None = None) -> tuple[float, float]:
        """Find the range of a label.

        Parameters
        ----------
        label : str
            The label, or `level:label` if two levels have it.
        level : str, optional
            The level it is of, by default any.

        Returns
        -------
        (float, float)
            Its ends, in coordinates of the map.

        Raises
        ------
        InputError
            If there is no such label, as always along a grid.

        Examples
        --------
        >>> hour.range_of("noon")
        Traceback (most recent call last):
        htf.errors.InputError: a range of hour takes AXIS=LOW:HIGH, such as hour=7:10, got 'hour=noon'
        """
        del level
        raise InputError(
            f"a range of {self.name} takes AXIS=LOW:HIGH, such as hour=7:10, got {f'{self.name}={label}'!r:.100}"
        )

    def level_number(self, level: str) -> int:
        """Find a level by its name.

        Parameters
        ----------
        level : str
            Its name.

        Returns
        -------
        int
            Its number. 0 is the lowest.

        Raises
        ------
        InputError
            If there is no such level, as always along a grid.

        Examples
        --------
        >>> htf.Axis.named("kind", htf.Names.of({"sort": ["tram", "bus"]})).level_number("sort")
        0
        """
        del level
        raise InputError(f"the cells of axis {self.name!r} have no names")

    def to_dict(self) -> dict[str, Any]:
        """Describe the axis with plain values, for JSON. Outlines are left out.

        Returns
        -------
        dict
            Its name, bounds, cells and names.

        Examples
        --------
        >>> hour.to_dict()
        {'name': 'hour', 'low': 0.0, 'high': 24.0, 'cells': 24}
        """
        return {"name": self.name, "low": self.low, "high": self.high, "cells": self.cells}

    def __str__(self) -> str:
        return f"{self.name} {self.low:g} to {self.high:g}, {self.cells:,} cells"


class NamedAxis(Axis):
    """An axis of names from a public list."""

    __slots__ = ()
    inputs: ClassVar[tuple[str, ...]] = LABEL
    plural = "names"

    def _check_names(self) -> None:
        size = len(arguments.instance(self.names, Names, f"the names of axis {self.name!r}"))
        if (self.low, self.high, self.cells) != (0, size, size):
            raise InputError(
                f"axis {self.name!r} of {size} names must have as many cells, from 0 to {size}: make it with Axis.named"
            )

    @property
    def _names(self) -> Names:
        assert self.names is not None
        return self.names

    @property
    def levels(self) -> tuple[Level, ...]:
        return self._names.levels

    @property
    def key(self) -> str:
        text = "\n".join(self.levels[0].labels).encode()
        return f"{hashlib.sha256(text).hexdigest()[:32]}_{int(self.has_rest)}"

    @property
    def has_rest(self) -> bool:
        return self._names.rest is not None

    def place(self, *columns: NDArray[Any]) -> FloatArray:
        places, (texts,) = _places(self.levels[0].labels), columns
        other = self.cells - 1 if self.has_rest else np.nan
        found = (places.get(t, other) if isinstance(t, str) else np.nan for t in texts)
        return np.fromiter(found, dtype=np.float64, count=len(texts))

    def edges(self, level: int = 0) -> IntArray:
        return self._names.edges(level)

    def labels(self, low: IntArray, high: IntArray, level: int = 0) -> list[str]:
        names, edges = self.levels[level].labels, self.edges(level)
        first, last = (
            (np.searchsorted(edges, cells, side="right") - 1).tolist()
            for cells in (np.asarray(low), np.asarray(high) - 1)
        )
        return [
            names[a] if a == b else f"{names[a]} … {names[b]}"
            for a, b in zip(first, last, strict=True)
        ]

    def columns(self, low: IntArray, high: IntArray, level: int = 0) -> dict[str, list[Any]]:
        levels = list(enumerate(self.levels))[level:]
        return {one.name: self.labels(low, high, number) for number, one in levels}

    def show_range(self, low: float, high: float, level: int = 0) -> str:
        if float(low).is_integer() and float(high).is_integer():
            return self._names.label_of(int(low), int(high), level)
        return f"{low:g} to {high:g}"

    def range_of(self, label: str, level: str | None = None) -> tuple[float, float]:
        return self._names.range_of(label, level)

    def level_number(self, level: str) -> int:
        return self._names.level_number(level)

    def to_dict(self) -> dict[str, Any]:
        return {**Axis.to_dict(self), "names": self._names.to_dict()}

    def __str__(self) -> str:
        levels = ", ".join(f"{len(one.labels):,} {one.name}" for one in self.levels)
        return f"{self.name}: {levels}"


class ZonedAxis(NamedAxis):
    """An axis of the zones of a public layer, in which a record has a place."""

    __slots__ = ()
    inputs = PLACE
    plural = "zones"

    @property
    def outlines(self) -> Outlines:
        assert self._names.outlines is not None
        return self._names.outlines

    @property
    def key(self) -> str:
        shapes = self.outlines.shapes
        digest = hashlib.sha256(b"".join(shapes)).hexdigest()[:32]
        return f"{digest}_{len(shapes)}_{int(self.has_rest)}"

    def place(self, *columns: NDArray[Any]) -> FloatArray:
        from htf.frame.zone_index import find_cells

        x, y = columns
        shapes = self.outlines.shapes
        if not any(shapes):
            raise InputError(
                "the zones of this map have no outlines: read their layer by htf.read_zones"
            )
        return find_cells(shapes, self.has_rest, x, y)

    def outline(self, low: NDArray[Any], high: NDArray[Any]) -> Any:
        shapely = need("A layer of zones", "shapely")
        shapes = shapely.from_wkb([shape or None for shape in self.outlines.shapes])
        shapes = np.where(shapely.is_missing(shapes), shapely.Polygon(), shapes)
        ranges = np.column_stack([low, high]).astype(np.int64)
        known: dict[tuple[int, int], Any] = {}
        for a, b in map(tuple, np.unique(ranges, axis=0).tolist()):
            known[a, b] = shapes[a] if b == a + 1 else shapely.union_all(shapes[a:b])
        return np.array([known[ends] for ends in map(tuple, ranges.tolist())], dtype=object)

    def columns(self, low: IntArray, high: IntArray, level: int = 0) -> dict[str, list[Any]]:
        found = NamedAxis.columns(self, low, high, level)
        if level > 0:
            return found
        low, high = np.asarray(low), np.asarray(high)
        single = list(zip(low.tolist(), (high == low + 1).tolist(), strict=True))
        for name, values in self.outlines.attributes:
            found.setdefault(name, [values[cell] if is_one else None for cell, is_one in single])
        return found


def _kind_of(names: Names) -> type[Axis]:
    return NamedAxis if names.outlines is None else ZonedAxis


@lru_cache(maxsize=16)
def _places(labels: tuple[str, ...]) -> dict[str, float]:
    return {label: float(place) for place, label in enumerate(labels)}


def read_axis(given: object, outlines: Mapping[str, Outlines]) -> Axis:
    """An axis from what `to_dict` gave, and the outlines of zones by the names of their axes."""
    fields = ("name", "low", "high", "cells")
    if not isinstance(given, Mapping) or "names" not in given:
        return Axis(**arguments.fields(given, "an axis", fields))
    known = arguments.fields(given, "an axis", (*fields, "names"))
    known["names"] = Names.from_dict(known["names"], outlines.get(known["name"]))
    return _kind_of(known["names"])(**known)


def show(value: float) -> str:
    """A coordinate as people write it."""
    return f"{value:.15g}"
