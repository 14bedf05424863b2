"""Areas on the ground. Public."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from htf.frame.crs import CRS84, parse_crs
from htf.frame.domain import KM_PER_DEGREE, Domain, FloatArray, IntArray

WGS84_AXES = (6378.137, 6356.752314245179)  # km: of the equator, of the poles


def square_kilometres(domain: Domain, low: IntArray, high: IntArray) -> FloatArray | None:
    """The areas of rectangles `[low, high)` in cells of the first two axes; None if not known.

    On a map in degrees it is the area on the ellipsoid between two parallels and two meridians. On a
    map in a unit of length it is the area on the map, which is as true as the projection.
    """
    if not domain.has_map or domain.crs is None:
        return None
    x, y = domain.axes[:2]
    west, east = x.from_cells(low[:, 0]), x.from_cells(high[:, 0])
    south, north = y.from_cells(low[:, 1]), y.from_cells(high[:, 1])
    if (angles := _in_degrees(domain.crs)) is not None:
        turn, axes = angles
        heights = _zone(north * turn, axes) - _zone(south * turn, axes)
        return np.asarray(np.radians(east * turn - west * turn) * heights)
    if (units := _in_metres(domain.crs)) is None:
        return None
    along, across = (unit / 1000 for unit in units)
    return np.asarray((east - west) * (north - south) * along * across)


def cell_metres(domain: Domain) -> tuple[float, float] | None:
    """The width and height of a cell in the middle of the map; None if the ground is not known."""
    if not domain.has_map or domain.crs is None:
        return None
    x, y = domain.axes[:2]
    if (angles := _in_degrees(domain.crs)) is None:
        units = _in_metres(domain.crs)
        return None if units is None else (x.cell_width * units[0], y.cell_width * units[1])
    turn = angles[0]
    degree = 1000 * KM_PER_DEGREE * turn
    narrowing = math.cos(math.radians(turn * (y.low + y.high) / 2))
    return x.cell_width * degree * narrowing, y.cell_width * degree


def length_text(metres: float) -> str:
    """Such as `500 m` and `1.5 km`."""
    return f"{metres:.3g} m" if metres < 1000 else f"{float(f'{metres / 1000:.3g}'):g} km"


def to_equal_area(crs: str | None) -> Callable[[FloatArray], FloatArray] | None:
    """A function from coordinates on the map, as rows x, y, to a plane on which areas are in square kilometres.

    None if the ground is not known. Of a map in degrees it is the cylinder that keeps areas.
    """
    if crs is None:
        return None
    if (angles := _in_degrees(crs)) is None:
        units = _in_metres(crs)
        return None if units is None else lambda places: np.asarray(places * np.array(units) / 1000)
    turn, axes = angles

    def on_cylinder(places: FloatArray) -> FloatArray:
        x, y = places.T * turn
        return np.column_stack([np.radians(x), _zone(y, axes)])

    return on_cylinder


def _in_degrees(crs: str) -> tuple[float, tuple[float, float]] | None:
    """The degrees of a unit, and the axes of the ellipsoid in kilometres; None if coordinates are no angles."""
    if crs == CRS84:
        return 1.0, WGS84_AXES
    found = parse_crs(crs)
    if not found.is_geographic:
        return None
    axes = found.ellipsoid.semi_major_metre / 1000, found.ellipsoid.semi_minor_metre / 1000
    return found.axis_info[0].unit_conversion_factor / math.radians(1), axes


def _in_metres(crs: str) -> tuple[float, float] | None:
    """The metres of a unit along both axes; None if coordinates are no lengths."""
    found = parse_crs(crs)
    if not found.is_projected:
        return None
    along, across = (axis.unit_conversion_factor for axis in found.axis_info[:2])
    return along, across


def _zone(latitude: FloatArray, axes: tuple[float, float]) -> FloatArray:
    """The area of the ellipsoid from the equator to a parallel, for one radian of longitude."""
    equator, pole = axes
    eccentricity = math.sqrt(1 - (pole / equator) ** 2)
    sine = np.sin(np.radians(latitude))
    if eccentricity == 0:
        return np.asarray(pole**2 * sine)
    slant = eccentricity * sine
    return np.asarray(pole**2 / 2 * (sine / (1 - slant**2) + np.arctanh(slant) / eccentricity))
