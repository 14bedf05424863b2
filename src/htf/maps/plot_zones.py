"""A map of zones, drawn with matplotlib: each zone in the colour of its density, or trips as lines between zones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from htf.errors import InputError
from htf.frame.domain import Axis, Domain, FloatArray
from htf.maps.plot import (
    GREY,
    colours_of_density,
    draw_colour_bar,
    draw_frame,
    draw_warning,
    footer,
    heading,
    is_wide,
    limits_by_area,
    map_size,
    new_figure,
    shown_ratio,
    write_footer,
    write_in_the_middle,
)
from htf.maps.plot_flows import FlowLayer
from htf.maps.plot_panels import (
    INCHES,
    draw_frames,
    draw_warning_across,
    layout,
    panel_steps,
    shorten,
)
from htf.maps.views import View
from htf.maps.zones import (
    Drawn,
    Shapes,
    ZoneView,
    bounds_of,
    outlines,
    shows_flows,
    told_summed,
    view_flows,
    view_zones,
)
from htf.query.answer_texts import show_count
from htf.query.shapes import need_shapely
from htf.query.where import Where, full_ranges, read_where

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from htf.release.release import Release

MARK = "#0057b8"  # the outline of the end of trips that is named
MARGIN = 0.02  # around the zones, as a share of the longer side
LINES = ((200, 0.5), (2000, 0.3), (20_000, 0.12))  # up to so many zones: width of their outlines
ZONE_LINE = "#8b96a1"
NOTE_INCHES = 0.18  # the height of a line below the map


class ZoneLayer:
    """The zones of a level in colours."""

    def __init__(self, release: Release, level: str | None, where: Where | None) -> None:
        self.view = view_zones(release, level, where)
        self.quantity = release.quantity
        self.shapes = self.view.shapes
        self.density = np.where(self.view.is_clear, self.view.density, np.nan)
        self.summed, self.unit = self.view.summed, self.view.unit
        self.mark = _named_end(self.view, where)

    @property
    def has_values(self) -> bool:
        return bool(np.isfinite(self.density).any())

    @property
    def values(self) -> tuple[FloatArray, FloatArray]:
        """What colours are for, and its weight when their scale is chosen."""
        return self.density, self.view.area

    @property
    def notes(self) -> list[str]:
        """Counts that have no place on the map, and what the mark is."""
        there = [self._elsewhere(place) for place in np.flatnonzero(self.view.area == 0).tolist()]
        return [*there, *self.shared_notes]

    @property
    def shared_notes(self) -> list[str]:
        """What all panels have in common."""
        return [] if self.mark is None else ["The blue outline is the chosen end of the trips"]

    def _elsewhere(self, place: int) -> str:
        count = show_count(float(self.view.answers.count[place]), self.quantity)
        return f"Not on the map: {count} {self.quantity} of {self.view.labels[place]!r}"

    def draw(self, ax: Axes, limits: tuple[float, float]) -> Any:
        from matplotlib.colors import LogNorm

        zones = path_collection(
            self.shapes,
            cmap=colours_of_density(),
            norm=LogNorm(*limits),
            **line_style(len(self.shapes)),
        )
        zones.set_array(np.ma.masked_invalid(np.clip(self.density, *limits)))
        ax.add_collection(zones, autolim=False)
        if self.mark is not None:
            ax.add_collection(
                path_collection(self.mark, facecolors="none", edgecolors=MARK, linewidths=1.8),
                autolim=False,
            )
        return zones


Layer = ZoneLayer | FlowLayer


def plot_zones(
    release: Any, *, ax: Axes | None, level: str | None, where: Where | None, by: str | None
) -> Figure:
    """Draw zones, or trips between them; with `by`, in a panel for each step of an axis."""
    if by is not None:
        if ax is not None:
            raise InputError("panels need a figure of their own, and cannot show outlines")
        return _plot_panels(release, level, where, by)
    layer = layer_of(release, level, where)
    seen = frame_of(release.domain, layer.shapes, layer.summed)
    width, height = map_size(seen)
    size = width, height + NOTE_INCHES * len(layer.notes)
    target = new_figure(size).add_subplot() if ax is None else ax
    image = draw_layer(target, layer, seen, limits_of([layer]))
    if layer.has_values:
        _colour_bar([target], image, seen, layer, release.quantity, is_below=is_wide(seen))
    else:
        write_in_the_middle(target, "nothing rises above the noise")
    draw_frame(target, heading(release), seen)
    words = "\n".join([*layer.notes, footer(release, seen)])
    write_footer(target, words, is_own_figure=ax is None)
    if not release.private:
        draw_warning(target)
    return target.figure.figure


def limits_of(layers: Sequence[Layer]) -> tuple[float, float]:
    """The ends of the colour scale that layers share. Lines need no room for values that barely pass the noise."""
    values, weights = zip(*(one.values for one in layers), strict=True)
    if isinstance(layers[0], ZoneLayer):
        return limits_by_area(np.concatenate(values), np.concatenate(weights))
    counts = np.concatenate(values)
    return (
        (float(counts.min()), float(max(counts.max(), 2 * counts.min())))
        if len(counts)
        else (1.0, 10.0)
    )


def layer_of(release: Release, level: str | None, where: Where | None) -> Layer:
    """Lines if neither end of trips is named, else zones."""
    if shows_flows(release.domain, where):
        return FlowLayer(view_flows(release, level, where), release.quantity)
    return ZoneLayer(release, level, where)


def _plot_panels(release: Release, level: str | None, where: Where | None, by: str) -> Figure:
    domain = release.domain
    number, steps = panel_steps(domain, by, where)
    if domain.zoned == (number,):
        raise InputError(f"panels need an axis that is not drawn, but {by!r} is: give another")
    layers = [layer_of(release, level, {**read_where(where), **step.where}) for step in steps]
    titles = [step.title for step in steps]
    figure = draw_zone_panels(domain, layers, titles, release.quantity)
    seen = frame_of(domain, layers[0].shapes, "")
    inside = {n: ends for n, ends in read_where(where).items() if n != domain.names[number]}
    rest = told_summed(domain, (*domain.zoned, number), inside)
    figure.suptitle(heading(release) + (f"\n{rest}" if rest else ""), fontsize=12)
    notes = list(dict.fromkeys(note for layer in layers for note in layer.shared_notes))
    figure.supxlabel("\n".join([*notes, footer(release, seen)]), fontsize=8, color=GREY)
    if not release.private:
        draw_warning_across(figure)
    return figure


def draw_zone_panels(
    domain: Domain, layers: Sequence[Layer], titles: Sequence[str], quantity: str
) -> Figure:
    """A panel for each layer, with one scale of colours."""
    limits = limits_of(layers)
    seen = [frame_of(domain, layer.shapes, "") for layer in layers]
    rows, columns = layout(len(layers), shown_ratio(seen[0]))
    height = INCHES / columns * (shown_ratio(seen[0]) + 0.12) * rows + 1.4
    figure = new_figure((INCHES + 1.3, height))
    panels: list[Axes] = list(figure.subplots(rows, columns, squeeze=False).ravel())
    images = [
        draw_layer(ax, layer, frame, limits, of_panels=True)
        for ax, layer, frame in zip(panels, layers, seen, strict=False)
    ]
    for ax, title in zip(panels, titles, strict=False):
        ax.set_title(shorten(title), fontsize=9, pad=3)
    draw_frames(panels, seen, "white")
    if any(layer.has_values for layer in layers):
        _colour_bar(panels, images[0], seen[0], layers[0], quantity, is_below=False)
    else:
        write_in_the_middle(panels[0], "nothing rises\nabove the noise")
    return figure


def _colour_bar(
    axes: Sequence[Axes], image: Any, seen: View, layer: Layer, quantity: str, *, is_below: bool
) -> None:
    has_blank = isinstance(layer, ZoneLayer)
    options: dict[str, Any] = {"unit": layer.unit, "noise_word": has_blank}
    draw_colour_bar(axes, image, seen, quantity, is_below=is_below, **options)


def frame_of(domain: Domain, shapes: Shapes, summed: str) -> View:
    """The frame around zones, as a view of nothing."""
    west, south, east, north = bounds_of(shapes)
    margin = MARGIN * max(east - west, north - south)
    x = Axis("x", west - margin, east + margin, 1)
    y = Axis("y", south - margin, north + margin, 1)
    nothing = np.zeros((1, 1))
    frame = Domain((x, y), domain.crs)
    return View(frame, (1, 1), True, nothing, nothing.copy(), nothing > 0, summed)


def draw_layer(
    ax: Axes, layer: Layer, seen: View, limits: tuple[float, float], *, of_panels: bool = False
) -> Any:
    set_frame(ax, seen)
    if isinstance(layer, ZoneLayer):
        return layer.draw(ax, limits)
    ground = path_collection(layer.shapes, facecolors="#f4f6f8", **line_style(len(layer.shapes)))
    ax.add_collection(ground, autolim=False)
    return layer.draw(ax, limits, seen, of_panels=of_panels)


def set_frame(ax: Axes, seen: View) -> None:
    """The part of the map that axes show, true to shape."""
    x, y = seen.domain.axes
    ax.set_xlim(x.low, x.high)
    ax.set_ylim(y.low, y.high)
    ax.set_aspect(shown_ratio(seen) * (x.high - x.low) / (y.high - y.low))


def path_collection(shapes: Shapes, **style: Any) -> Any:
    """Polygons with their holes, one path for each shape."""
    from matplotlib.collections import PathCollection

    return PathCollection([_path_of(shape) for shape in shapes], **style)


def _path_of(shape: Any) -> Any:
    from matplotlib.path import Path

    shapely = need_shapely()
    rings = shapely.get_rings(shapely.orient_polygons(shapely.get_parts(shape)))
    if len(rings) == 0:
        return Path(np.empty((0, 2)))
    paths = [Path(shapely.get_coordinates(ring), closed=True) for ring in rings]
    return Path.make_compound_path(*paths)


def line_style(number: int) -> dict[str, Any]:
    """Lines of many zones are thin: they would hide the colours."""
    width = next((width for most, width in LINES if number <= most), 0.0)
    return {"edgecolors": ZONE_LINE, "linewidths": width}


def _named_end(view: ZoneView, where: Where | None) -> Shapes | None:
    """The outline of the end of trips that `where` names; None if it names none."""
    domain = view.domain
    for number in domain.zoned:
        if number != view.drawn.axis and domain.names[number] in read_where(where):
            ends = full_ranges(domain, where)[number].astype(np.int64)
            return outlines(domain, Drawn(number, 0, ends[:1], ends[1:]))
    return None
