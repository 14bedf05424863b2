"""The base map on a picture: coasts, rivers and borders as thin lines, and a few names, above the counts.

Nothing lies below the counts, so the colours of a picture mean what they meant without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from htf.frame.crs import CRS84, transformer
from htf.frame.domain import Domain, FloatArray
from htf.maps.basemap import CREDIT, Name, crop_to_size
from htf.maps.browser.mercator import edges_in_degrees

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST, MOST_NAMES = 20_000, 60  # corners, and names to choose from
LOOKS = {  # colour and width of lines
    "coasts": ("#3f6a94", 0.7),
    "rivers": ("#5d87b0", 0.6),
    "states": ("#6d6276", 0.35),
    "borders": ("#6d6276", 0.9),
}
POINTS = 7.5  # of the letters
LETTER = 0.62  # width of a letter, in heights
COUNTRY_DEGREES = 4.0  # a smaller map has no names of countries


def draw_basemap(ax: Axes, domain: Domain) -> None:
    """Draw the base map on a map that lies on earth."""
    from matplotlib.collections import LineCollection

    x, y = domain.axes[:2]
    bounds = edges_in_degrees((x.low, y.low, x.high, y.high), str(domain.crs))
    part = crop_to_size(bounds, MOST, MOST_NAMES)
    limits = ax.get_xlim(), ax.get_ylim()
    most_rank = 2.0 + np.log2(360 / max(bounds[2] - bounds[0], 1e-9))
    for kind, (colour, width) in LOOKS.items():
        lines = [_placed(line, domain) for rank, line in part.lines[kind] if rank <= most_rank]
        style: dict[str, Any] = {"colors": colour, "linewidths": width, "alpha": 0.8}
        ax.add_collection(LineCollection(lines, **style, zorder=2), autolim=False)
    is_small = bounds[2] - bounds[0] < COUNTRY_DEGREES
    _write_names(
        ax, domain, [one for one in part.names if not (is_small and one.kind == "country")]
    )
    ax.set(xlim=limits[0], ylim=limits[1])
    style = {"fontsize": 6, "color": "#4a545e", "ha": "right", "va": "bottom", "zorder": 4}
    ax.text(0.995, 0.005, CREDIT, transform=ax.transAxes, path_effects=_halo(), **style)


def _placed(places: FloatArray, domain: Domain) -> FloatArray:
    """Degrees in the coordinates of a map."""
    if domain.crs == CRS84:
        return places
    return np.column_stack(transformer(CRS84, domain.crs).transform(*places.T))


def _write_names(ax: Axes, domain: Domain, names: list[Name]) -> None:
    """Names of low rank first; one that would touch another, or the edge, is left out."""
    if not names:
        return
    places = _placed(np.array([[one.x, one.y] for one in names]), domain)
    ax.figure.figure.draw_without_rendering()  # settles the layout
    frame = ax.get_window_extent()
    inch = ax.figure.dpi
    height = POINTS / 72 * inch
    taken: list[FloatArray] = []
    for name, (x, y), (left, low) in zip(
        names, places, ax.transData.transform(places), strict=True
    ):
        wide = LETTER * height * len(name.name)
        has_dot = name.kind in ("place", "capital")
        start = left + 0.4 * height if has_dot else left - wide / 2
        box = np.array([start, low - height / 2, start + wide, low + height / 2])
        inside = (box[:2] > frame.min).all() and (box[2:] < frame.max).all()
        if not inside or any(
            (box[:2] < one[2:]).all() and (one[:2] < box[2:]).all() for one in taken
        ):
            continue
        taken.append(box)
        _write(ax, name, (x, y), has_dot)


def _write(ax: Axes, name: Name, place: tuple[float, float], has_dot: bool) -> None:
    if has_dot:
        ax.plot(*place, "o", color="#16202b", markersize=2, zorder=3)
    ax.annotate(
        name.name,
        place,
        xytext=(0.4 * POINTS if has_dot else 0, 0),
        textcoords="offset points",
        ha="left" if has_dot else "center",
        va="center",
        fontsize=POINTS,
        style="italic" if name.kind == "water" else "normal",
        color="#2f5578" if name.kind == "water" else "#16202b",
        path_effects=_halo(),
        zorder=4,
    )


def _halo() -> list[Any]:
    from matplotlib.patheffects import withStroke

    return [withStroke(linewidth=1.6, foreground=(1, 1, 1, 0.85))]
