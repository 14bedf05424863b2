"""Two releases of the same zones in one picture: side by side with the same colours, or their difference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from htf.errors import InputError
from htf.maps.comparison import Difference, Named, check_same_quantity
from htf.maps.plot import draw_colour_bar, heading, new_figure, shown_ratio
from htf.maps.plot_zones import (
    ZoneLayer,
    draw_layer,
    frame_of,
    limits_of,
    line_style,
    path_collection,
    set_frame,
)
from htf.maps.zones import ZoneView, check_same_zones, per_area, shows_flows, view_zones
from htf.query.where import Where
from htf.release.release import Release

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INCHES = 5.2  # the width of one map


def check_zone_pair(first: Release, second: Release, where: Where | None) -> None:
    """Refuse releases of other zones, and trips of which neither end is named."""
    check_same_zones(first.domain, second.domain)
    if shows_flows(first.domain, where):
        origin, destination = (first.domain.names[number] for number in first.domain.zoned[:2])
        raise InputError(
            f"two releases of trips are compared zone by zone: name one end, with --where {origin}=NAME or "
            f"--where {destination}=NAME"
        )


def plot_zone_comparison(
    maps: Sequence[Named], level: str | None, where: Where | None
) -> tuple[Figure, list[Axes], list[ZoneLayer]]:
    """Both maps with the same colours."""
    check_zone_pair(maps[0].release, maps[1].release, where)
    layers = [ZoneLayer(one.release, level, where) for one in maps]
    limits = limits_of(layers)
    seen = frame_of(maps[0].release.domain, layers[0].shapes, layers[0].summed)
    height = INCHES * min(shown_ratio(seen), 2.0)
    figure = new_figure((2 * INCHES + 1.6, height + 1.1))
    panels: list[Axes] = list(figure.subplots(1, 2))
    images = [draw_layer(ax, layer, seen, limits) for ax, layer in zip(panels, layers, strict=True)]
    for ax, one in zip(panels, maps, strict=True):
        ax.set_title(f"{one.name}\n{heading(one.release)}", fontsize=11)
    quantities = " or ".join(dict.fromkeys(one.release.quantity for one in maps))
    unit = layers[0].unit
    draw_colour_bar(panels, images[0], seen, quantities, is_below=False, unit=unit)
    return figure, panels, layers


def zone_difference(
    first: Release, second: Release, level: str | None, where: Where | None, axis: str | None = None
) -> tuple[ZoneView, Difference]:
    """The zones, with the answers of the first release, and how they differ from those of the second."""
    check_same_zones(first.domain, second.domain)
    check_same_quantity(first, second)
    views = [view_zones(release, level, where, axis) for release in (first, second)]
    return views[0], Difference(first.domain, views[0].answers, views[1].answers)


def plot_zone_difference(
    maps: Sequence[Named], level: str | None, where: Where | None
) -> tuple[Figure, Axes, ZoneView, str]:
    """The first release minus the second, zone by zone; and what the caption says about the end of the scale."""
    from htf.maps.plot_compare import beyond_end, difference_colours, draw_difference_bar

    check_zone_pair(maps[0].release, maps[1].release, where)
    view, differences = zone_difference(maps[0].release, maps[1].release, level, where)
    seen = frame_of(view.domain, view.shapes, view.summed)
    figure = new_figure((INCHES * 1.25 + 1.9, INCHES * 1.25 * min(shown_ratio(seen), 2.0) + 1.7))
    ax = figure.add_subplot()
    set_frame(ax, seen)
    on_map = view.area > 0
    density = per_area(differences.value, view.area)[on_map]
    is_beyond = differences.is_beyond_noise[on_map]
    colours, scale = difference_colours(density, is_beyond)
    shapes = view.shapes[on_map]
    zones = path_collection(shapes, facecolors=colours, **line_style(len(shapes)))
    ax.add_collection(zones, autolim=False)
    draw_difference_bar(ax, scale, maps[0].release.quantity, f" per {view.unit}")
    return figure, ax, view, beyond_end(density, is_beyond)
