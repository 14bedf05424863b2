"""The public frame of a release: its axes, and the grid of their cells.

Bounds and cells are chosen by the curator without looking at the data: taken from the data they
would leak. Points that are outside, missing, NaN or infinite belong to no cell: they are left out
silently, because even their number would be an exact fact about the data.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from htf.base import arguments
from htf.errors import InputError
from htf.frame.axis import NUMBER, Axis, FloatArray, IntArray, read_axis
from htf.frame.crs import CRS84, same_crs, shown_crs
from htf.frame.names import LONGEST_NAMES, Outlines

__all__ = ["Axis", "Domain", "FloatArray", "IntArray"]

KM_PER_DEGREE = 111.32  # of latitude, and of longitude at the equator
MOST_DOMAIN_CELLS = 2**62  # a number of cells fits a 64-bit integer
MOST_AXES = 8  # a box has 2**axes corners, and some of the work is for each
LONGEST_CRS = 10_000  # characters: well-known text may be long


@dataclass(frozen=True, slots=True)
class Domain:
    """The axes of a map, and the coordinate reference system of the first two.

    Choose the bounds and the cells without looking at the data: bounds taken from the data leak.

    Parameters
    ----------
    axes : tuple of Axis
        The axes, in order.
    crs : str, optional
        The reference system of the first two axes, such as `EPSG:2056`. By default that of zones, if an axis has
        them.

    Raises
    ------
    InputError
        If there are no axes or too many, two have the same name, or the grid is too fine.

    Examples
    --------
    >>> import htf
    >>> domain = htf.Domain((htf.Axis("x", 0, 10, 5), htf.Axis("hour", 0, 24, 24)))
    >>> domain.shape
    (5, 24)
    """

    axes: tuple[Axis, ...]
    crs: str | None = None

    def __post_init__(self) -> None:
        axes = arguments.items(self.axes, "the axes of a domain", "a tuple of htf.Axis")
        for axis in axes:
            remedy = "make one with htf.Axis(name, low, high, cells)"
            arguments.instance(axis, Axis, "each axis of a domain", remedy)
        object.__setattr__(self, "axes", tuple(axes))
        arguments.optional(arguments.text, self.crs, "crs", "write it like EPSG:2056")
        self._settle_crs()
        names = self.names
        if not names:
            raise InputError("a domain needs at least one axis")
        if len(names) > MOST_AXES:
            raise InputError(f"a domain has at most {MOST_AXES} axes, got {len(names)}")
        if self.crs is not None and len(self.crs) > LONGEST_CRS:
            raise InputError(
                f"a reference system is a text of at most {LONGEST_CRS:,} characters, got {len(self.crs):,}"
            )
        if len(set(names)) < len(names):
            raise InputError(f"axis names must differ, got {', '.join(names)}")
        if self.size > MOST_DOMAIN_CELLS:
            raise InputError(
                f"the grid {' x '.join(map(str, self.shape))} has more than 2**62 cells: "
                "use fewer cells per axis"
            )
        named = [axis.names.to_dict() for axis in self.axes if axis.names is not None]
        if named and len(json.dumps(named)) > LONGEST_NAMES:
            raise InputError(
                f"the names of this map take more than {LONGEST_NAMES:,} bytes: use fewer or shorter ones"
            )

    def _settle_crs(self) -> None:
        """Take the reference system from zones, or check that theirs is the same."""
        for axis in self.axes:
            crs = None if axis.outlines is None else axis.outlines.crs
            if crs is None:
                continue
            if self.crs is None:
                object.__setattr__(self, "crs", crs)
            elif not same_crs(self.crs, crs):
                raise InputError(
                    f"the zones of axis {axis.name!r} are in {shown_crs(crs)}, but the map is in "
                    f"{shown_crs(self.crs)}: give both the same, by the argument crs of htf.read_zones"
                )

    @classmethod
    def from_bounds(
        cls,
        west: float,
        south: float,
        east: float,
        north: float,
        cells: int | tuple[int, int] = 1024,
        *,
        crs: str | None = CRS84,
    ) -> Domain:
        """Make a map of axes x and y, by default in degrees of longitude and latitude.

        Parameters
        ----------
        west, south, east, north : float
            The bounds.
        cells : int or (int, int)
            The number of cells along each axis, or a pair of numbers.
        crs : str, optional
            The reference system of the bounds.

        Returns
        -------
        Domain
            The map.

        Raises
        ------
        InputError
            If the bounds are not finite, are swapped or, in degrees, lie beyond the globe.

        Examples
        --------
        >>> htf.Domain.from_bounds(-30.176, 39.865, -29.824, 40.135, cells=1024).shape
        (1024, 1024)
        """
        given = {"west": west, "south": south, "east": east, "north": north}
        west, south, east, north = (arguments.number(v, name) for name, v in given.items())
        columns, rows = read_pair(cells, "cells")
        if isinstance(crs, str) and crs == CRS84:
            _check_degrees(west, south, east, north)
        return cls((Axis("x", west, east, columns), Axis("y", south, north, rows)), crs)

    @classmethod
    def square(
        cls, latitude: float, longitude: float, side_km: float, cells: int | tuple[int, int] = 1024
    ) -> Domain:
        """Make a square map around a point.

        One degree of latitude counts as 111.32 km, and one of longitude as 111.32 km times the cosine of
        the latitude of the centre.

        Parameters
        ----------
        latitude, longitude : float
            The centre, in degrees.
        side_km : float
            The side of the square in kilometres.
        cells : int or (int, int)
            The number of cells along each axis, or a pair of numbers.

        Returns
        -------
        Domain
            The map.

        Raises
        ------
        InputError
            If the square is not on the globe or has no area.

        Examples
        --------
        >>> losangeles = htf.Domain.square(34.05223, -118.24368, 70)
        >>> [round(axis.low, 3) for axis in losangeles.axes]
        [-118.623, 33.738]
        """
        latitude = arguments.number(latitude, "the latitude")
        longitude = arguments.number(longitude, "the longitude")
        side_km = arguments.number(side_km, "the side of the square")
        if side_km <= 0:
            raise InputError(f"the side of the square must be positive, got {side_km} km")
        if not -90 < latitude < 90:
            raise InputError(f"the latitude must lie between -90 and 90, got {latitude}")
        half_height = side_km / 2 / KM_PER_DEGREE
        half_width = half_height / math.cos(math.radians(latitude))
        return cls.from_bounds(
            longitude - half_width,
            latitude - half_height,
            longitude + half_width,
            latitude + half_height,
            cells,
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the axes."""
        return tuple(axis.name for axis in self.axes)

    @property
    def dimensions(self) -> int:
        """The number of axes."""
        return len(self.axes)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of cells along each axis."""
        return tuple(axis.cells for axis in self.axes)

    @property
    def size(self) -> int:
        """The number of cells, exact however large."""
        return math.prod(self.shape)

    @property
    def has_map(self) -> bool:
        """Whether the first two axes are coordinates, so that there are boxes and polygons on a map."""
        return self.dimensions > 1 and all(axis.inputs == NUMBER for axis in self.axes[:2])

    @property
    def outlined(self) -> tuple[int, ...]:
        """The places of the axes whose cells have outlines of their own: zones."""
        return tuple(number for number, axis in enumerate(self.axes) if axis.outlines is not None)

    @property
    def has_shapes(self) -> bool:
        """Whether what is counted has a shape on the ground: a box of a map, a zone, or a trip between zones."""
        return self.has_map or bool(self.outlined)

    def to_dict(self) -> dict[str, Any]:
        """Describe the map with plain values, for JSON.

        Returns
        -------
        dict
            What `from_dict` takes.

        Examples
        --------
        >>> domain.to_dict()["axes"][0]
        {'name': 'x', 'low': 0.0, 'high': 10.0, 'cells': 5}
        """
        return {"axes": [axis.to_dict() for axis in self.axes], "crs": self.crs}

    @classmethod
    def from_dict(
        cls, data: Mapping[str, Any], outlines: Mapping[str, Outlines] | None = None
    ) -> Domain:
        """Make a map from what `to_dict` gave.

        Parameters
        ----------
        data : mapping
            The axes and the reference system.
        outlines : mapping, optional
            The outlines of zones, by the names of their axes.

        Returns
        -------
        Domain
            The map.

        Raises
        ------
        InputError
            If something is missing or wrong.

        Examples
        --------
        >>> htf.Domain.from_dict(domain.to_dict()) == domain
        True
        """
        known = arguments.fields(data, "a domain", ("axes", "crs"))
        given = arguments.items(known["axes"], "the axes of a domain", "a list of dictionaries")
        shapes = {} if outlines is None else outlines
        arguments.mapping(shapes, "outlines", "a dictionary of htf.frame.names.Outlines by axis")
        return cls(tuple(read_axis(one, shapes) for one in given), known["crs"])


def check_domain(given: object) -> Domain:
    """The map that a caller names."""
    remedy = "make one with htf.Domain.from_bounds(west, south, east, north, cells=1024)"
    return arguments.instance(given, Domain, "domain", remedy)


def read_pair(given: object, name: str) -> tuple[int, int]:
    """A whole number for both axes of a map, or a pair, one for each."""
    pair = given if isinstance(given, (tuple, list)) else (given, given)
    if len(pair) != 2:
        raise InputError(f"{name} must be one whole number or a pair of them, got {len(pair)}")
    return arguments.whole(pair[0], name), arguments.whole(pair[1], name)


def cell_counts(low: IntArray, high: IntArray) -> IntArray:
    """The number of cells of each box."""
    cells = high[:, 0] - low[:, 0]
    for axis in range(1, low.shape[1]):  # several times as fast as a product along short rows
        cells *= high[:, axis] - low[:, axis]
    return np.asarray(cells)


def _check_degrees(west: float, south: float, east: float, north: float) -> None:
    if west >= east:
        raise InputError(
            f"bounds are W,S,E,N: west must be less than east, got west {west:.15g} and east {east:.15g} "
            "(a map across the antimeridian has to be released as two)"
        )
    if south >= north:
        raise InputError(
            f"bounds are W,S,E,N: south must be less than north, got south {south:.15g} and "
            f"north {north:.15g}"
        )
    if south < -90 or north > 90 or west < -180 or east > 180:
        raise InputError(
            f"bounds are W,S,E,N in degrees, longitude within ±180 and latitude within ±90, "
            f"got {west:.15g},{south:.15g},{east:.15g},{north:.15g}: are longitude and latitude swapped?"
        )
