"""Refuses bounds that must be mistakes, as far as one can tell without the data.

Wrong bounds cost as much budget as a good map. So bounds that the reference system rules out are refused
before anything is charged: a latitude beyond the pole, or degrees where the system uses metres.
"""

from __future__ import annotations

from htf.errors import InputError
from htf.frame.crs import CRS84, full_turn, shown_crs
from htf.frame.domain import Domain

HALF_TURN, QUARTER_TURN = 180.0, 90.0  # degrees
POLAR = -60.0  # degrees of latitude: south of it are Antarctica and its sea, and hardly a record


def check_bounds(domain: Domain) -> None:
    """Refuse bounds that the map's reference system rules out. Maps in OGC:CRS84 were checked when made."""
    if domain.crs in (None, CRS84) or not domain.has_map:
        return
    x, y = domain.axes[:2]
    shown = f"{x.low:g},{y.low:g},{x.high:g},{y.high:g}"
    turn = full_turn(str(domain.crs))
    if turn is not None:
        if max(abs(y.low), abs(y.high)) > turn / 4 or max(abs(x.low), abs(x.high)) > turn:
            raise InputError(
                f"bounds are W,S,E,N, and in {shown_crs(domain.crs)} these are longitudes and latitudes: got {shown}. "
                "Are they swapped, or of another reference system?"
            )
    elif _look_like_degrees(domain):
        raise InputError(
            f"bounds are in the units of {shown_crs(domain.crs)}, such as metres, but {shown} look like degrees: give "
            "them in its units, or leave the reference system of the map out"
        )


def check_not_polar(domain: Domain) -> None:
    """Refuse bounds that are more likely S,W,N,E in place of W,S,E,N than a map of Antarctica."""
    if domain.axes[1].high <= POLAR:
        raise InputError(
            f"the bounds W,S,E,N put the whole map south of {-POLAR:g}° S: are latitude and longitude swapped? If "
            f"it is meant to be a map of Antarctica, say so with --crs {CRS84}"
        )


def _look_like_degrees(domain: Domain) -> bool:
    x, y = domain.axes[:2]
    return (
        max(abs(x.low), abs(x.high)) <= HALF_TURN and max(abs(y.low), abs(y.high)) <= QUARTER_TURN
    )
