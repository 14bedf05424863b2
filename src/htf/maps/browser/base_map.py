"""The base map of a map in a browser: the part around it of the one that HTF carries.

A browser gets the part around a map twice: finely near the map, and coarsely for a look from afar.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from htf.frame.crs import CRS84
from htf.frame.domain import FloatArray
from htf.maps.basemap import DECIMALS, Bounds, Crop, crop_to_size, widened
from htf.maps.browser.mercator import corners_in_square

NEAR, FAR = 0.9, 14.0  # margins, in sides of the map
FARTHEST = 45.0  # degrees: a margin that is wide enough
MOST_NEAR, MOST_FAR, MOST = 11_000, 7_000, 14_000  # corners: some 100 kB of a file at most
MOST_NAMES = 300
FAR_ZOOM = 1.7  # levels of zoom below the one at which the whole map fits
WIDE = 300.0  # degrees: from there on nothing is farther away
PIXELS = (900.0, 520.0)  # of a window, to guess the zoom at which a map fits


def around(bounds: Bounds) -> dict[str, Any]:
    """What a browser draws around a map with these bounds W,S,E,N in degrees."""
    near = widened(bounds, NEAR)
    longest = max(bounds[2] - bounds[0], bounds[3] - bounds[1])
    far = widened(bounds, max(NEAR, min(FAR, FARTHEST / longest)))
    crops = [crop_to_size(near, MOST_NEAR, MOST_NAMES)]
    if near[2] - near[0] < WIDE:
        most, level = min(MOST_FAR, MOST - crops[0].size), crops[0].level + 1
        crops.append(crop_to_size(far, most, MOST_NAMES, min(level, len(DECIMALS) - 1)))
    names = {(one.name, one.x, one.y): one for crop in crops for one in crop.names}
    ordered = sorted(names.values(), key=lambda one: one.rank)
    return {
        "parts": [_part(crop) for crop in crops],
        "zoom": round(fitting_zoom(bounds) - FAR_ZOOM, 2),
        "names": [[one.name, one.x, one.y, one.rank, one.kind] for one in ordered],
    }


def fitting_zoom(bounds: Bounds) -> float:
    """The zoom at which a map fits into a window."""
    corners = corners_in_square(np.array([bounds]), CRS84, None).reshape(4, 2)
    sides = np.maximum(np.ptp(corners, axis=0), 1e-12)
    return float(np.log2(np.array(PIXELS) / (512 * sides)).min())


def _part(part: Crop) -> dict[str, Any]:
    """The bounds, the water in them, and lines of each kind and rank. Corners are whole numbers of `unit` degrees; all
    but the first of a ring or line are steps from the one before."""
    unit = 10.0 ** -DECIMALS[part.level]
    lines = [
        {
            "kind": kind,
            "rank": rank,
            "lines": [_steps(line, unit) for of, line in found if of == rank],
        }
        for kind, found in part.lines.items()
        for rank in sorted({rank for rank, _ in found})
    ]
    water = [[_steps(ring, unit) for ring in polygon] for polygon in part.water]
    return {"unit": unit, "bounds": part.bounds, "water": water, "lines": lines}


def _steps(places: FloatArray, unit: float) -> list[int]:
    whole = np.rint(places / unit).astype(np.int64)
    steps = np.diff(whole, axis=0, prepend=0)
    kept = np.r_[True, (steps[1:] != 0).any(axis=1)]
    found: list[int] = steps[kept].ravel().tolist()
    return found
