"""Reference systems: what the coordinates of a map mean. The only module that uses pyproj.

Coordinates always come in the order x, y: longitude before latitude, also in EPSG:4326. So EPSG:4326 and
OGC:CRS84 are the same here. Maps in OGC:CRS84 need no pyproj.
"""

from __future__ import annotations

import json
import math
from functools import lru_cache
from typing import Any

from htf.base import arguments
from htf.base.extras import need
from htf.errors import InputError

CRS84 = "OGC:CRS84"  # longitude and latitude on WGS 84, in degrees and in that order
LONGEST_SHOWN = 60  # characters; a full definition would fill the screen


def parse_crs(crs: Any) -> Any:
    """The pyproj object, or an error that says how to name a reference system."""
    pyproj = _need_pyproj(crs)
    try:
        return pyproj.CRS.from_user_input(crs)
    except (pyproj.exceptions.CRSError, TypeError, ValueError, OverflowError):
        shown = arguments.described(crs)
        raise InputError(
            f"there is no reference system {shown}: write it like EPSG:27700"
        ) from None


def check_crs(crs: str | None) -> None:
    """Refuse a reference system that does not exist, before any budget is spent."""
    if crs not in (None, CRS84):
        parse_crs(crs)


def same_crs(one: Any, other: Any) -> bool:
    """Whether coordinates in both mean the same."""
    if str(one) == str(other):
        return True
    return bool(parse_crs(one).equals(parse_crs(other), ignore_axis_order=True))


def transformer(source: Any, target: Any) -> Any:
    """A transformer from one reference system to another. Threads may share it."""
    return _transformer(_hashable(source), _hashable(target))


def name_of_crs(crs: Any) -> str:
    """The short name of a reference system, such as EPSG:27700, if it has one; else its full text."""
    found = parse_crs(crs if isinstance(crs, str) else json.dumps(crs))
    authority = found.to_authority()
    return ":".join(authority) if authority else str(found.to_wkt())


def shown_crs(crs: Any) -> str:
    """A name that fits into a message."""
    if isinstance(crs, str):
        return crs if len(crs) < LONGEST_SHOWN else "this reference system"
    found = str(getattr(crs, "to_string", lambda: str(crs))())
    return found if len(found) < LONGEST_SHOWN else str(getattr(crs, "name", crs))


def to_projjson(crs: str | None) -> Any:
    """A reference system in the form that GeoParquet stores."""
    return None if crs is None else parse_crs(crs).to_json_dict()


def same_projjson(one: Any, other: Any) -> bool:
    """Whether two descriptions that GeoParquet stores are of the same reference system."""
    pyproj = _need_pyproj(one)
    try:
        same = pyproj.CRS.from_json_dict(one) == pyproj.CRS.from_json_dict(other)
    except (pyproj.exceptions.CRSError, TypeError, ValueError, AttributeError):
        return False
    return bool(same)


def is_projected(crs: str) -> bool:
    """Whether its coordinates are lengths, not angles."""
    return crs != CRS84 and full_turn(crs) is None


def is_in_degrees(crs: Any) -> bool:
    if crs == CRS84:
        return True
    found = parse_crs(crs)
    return bool(found.is_geographic and found.axis_info[0].unit_name == "degree")  # and not grads


@lru_cache(maxsize=64)
def full_turn(crs: str) -> float | None:
    """A full circle in the units of a geographic reference system, mostly 360; None for others."""
    found = parse_crs(crs)
    if not found.is_geographic:
        return None
    return round(2 * math.pi / float(found.axis_info[0].unit_conversion_factor), 9)


@lru_cache(maxsize=64)
def _transformer(source: Any, target: Any) -> Any:
    pyproj = _need_pyproj(source)
    try:
        return pyproj.Transformer.from_crs(parse_crs(source), parse_crs(target), always_xy=True)
    except pyproj.exceptions.ProjError:
        raise InputError(
            f"coordinates in {shown_crs(source)} cannot be transformed to {shown_crs(target)}"
        ) from None


def _hashable(crs: Any) -> Any:
    """A hashable reference system: names and pyproj's objects are; others are parsed first."""
    return crs if isinstance(crs, str) else parse_crs(crs)


def _need_pyproj(crs: Any) -> Any:
    shown = shown_crs(crs) if isinstance(crs, str) else arguments.described(crs)
    return need(f"The reference system {shown}", "pyproj")
