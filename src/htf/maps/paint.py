"""The marks of layers in a picture of matplotlib: pixels, zones, and lines, in the colours of one scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from htf.frame.domain import FloatArray
from htf.maps.kinds import Areas, Drawn, Lines, Values
from htf.maps.scale import beyond_end, density_limits, difference_limits
from htf.maps.window import Frame
from htf.maps.zone_views import Shapes
from htf.query.shapes import need_shapely

if TYPE_CHECKING:
    from matplotlib.axes import Axes

UNSURE = "#c3bfcd"  # neither of the colour map nor blank
BLANK = "#e9edf2"  # a calm colour that the colour map does not have
GREY = "#4a545e"
COLOURS, PALEST, DARKEST = "magma_r", 0.03, 0.93  # short of black, which hides the centre
PALEST_LINE = 0.22  # paler lines would not be seen
DIVERGING, FAINT = "PuOr_r", 0.22  # purple to orange; the strength of what is no more than noise
LEAST = 0.15  # strength of what is more than noise, so that it is never as white as nothing
MARK = "#0057b8"  # the outline of the end of trips that is named
ZONE_LINE, GROUND = "#8b96a1", "#f4f6f8"
ZONE_LINES = ((200, 0.5), (2000, 0.3), (20_000, 0.12))  # up to so many zones: width of outlines
WIDEST, THINNEST = 0.022, 0.0022  # of a line, as shares of the longer side of the map
NARROWING = 0.22  # the end of a line, compared with its start
BEND = 0.16  # how far a line bends aside, compared with its length: there and back lie apart
POINTS = 24  # along a line


@dataclass(frozen=True, slots=True)
class Scale:
    """The colours that layers share."""

    limits: tuple[float, float]
    mappable: Any  # the colour map with its norm
    is_empty: bool  # nothing is more than noise
    beyond: str = ""  # a sentence on what lies beyond its end
    has_unsure: bool = False

    def fill(self, values: Values) -> dict[str, Any]:
        """Values with their colours, as images and collections of matplotlib take them."""
        # Values are clipped, because those below the least colour would be drawn blank.
        shown = np.where(values.is_clear, np.clip(values.density, *self.limits), np.nan)
        look = {"cmap": self.mappable.cmap, "norm": self.mappable.norm}
        return {"array": np.ma.masked_invalid(shown), **look}


class Diverging(Scale):
    """The colours of a difference. Noise is faint."""

    def fill(self, values: Values) -> dict[str, Any]:
        from matplotlib.colors import to_rgb

        density, is_beyond = values.density, values.is_clear
        strength = np.where(is_beyond, 1.0, FAINT)[..., None]
        shade = np.asarray(self.mappable.norm(density)) - 0.5
        least = np.where(is_beyond, LEAST, 0.0)
        shade = np.sign(density) * np.maximum(np.abs(shade), least) + 0.5
        colours = self.mappable.cmap(shade)[..., :3]
        return {"array": strength * colours + (1 - strength) * to_rgb(BLANK)}


def scale_of(layers: Sequence[Drawn], values: Sequence[Values]) -> Scale:
    """One scale for all layers."""
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LogNorm, SymLogNorm

    density, clear, weight = (
        np.concatenate([np.ravel(getattr(one, name)) for one in values])
        for name in ("density", "is_clear", "weight")
    )
    first, there = layers[0], weight > 0
    if first.second is not None:
        there_only = density[there], clear[there]
        least, most = difference_limits(*there_only)
        norm = SymLogNorm(least, vmin=-most, vmax=most, base=10)
        mappable = ScalarMappable(norm, colormaps[DIVERGING])
        return Diverging((least, most), mappable, False, beyond_end(*there_only))
    limits = density_limits(density[clear & there], weight[clear & there], *first.spread)
    colours = colours_of_density(PALEST if first.has_blank else PALEST_LINE)
    unsure = any(one.is_unsure is not None and one.is_unsure.any() for one in values)
    is_empty = not (clear & there).any()
    return Scale(limits, ScalarMappable(LogNorm(*limits), colours), is_empty, has_unsure=unsure)


def colours_of_density(palest: float = PALEST) -> Any:
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    colours = ListedColormap(colormaps[COLOURS](np.linspace(palest, DARKEST, 256)))
    return colours.with_extremes(bad=BLANK, under=BLANK)


def paint(ax: Axes, layer: Drawn, values: Values, scale: Scale, *, wider: float = 1.0) -> None:
    """Draw the marks of a layer. `wider` is for lines on a small map."""
    {"grid": _paint_grid, "shapes": _paint_zones, "lines": _paint_lines}[layer.kind](
        ax, layer, values, scale, wider
    )


def _paint_grid(ax: Axes, layer: Drawn, values: Values, scale: Scale, _: float) -> None:
    from matplotlib.colors import ListedColormap

    x, y = layer.frame.domain.axes
    fill = scale.fill(values)
    array, aspect = fill.pop("array"), layer.frame.aspect
    if values.edges is not None:
        ax.pcolormesh(*values.edges, array, **fill)
        ax.set_facecolor(BLANK)
        ax.set_aspect(aspect)
        return
    place: dict[str, Any] = {
        "extent": (x.low, x.high, y.low, y.high),
        "origin": "lower",
        "interpolation": "nearest",
        "aspect": aspect,
    }
    ax.imshow(array, **fill, **place)
    if values.is_unsure is not None and values.is_unsure.any():
        marked = np.where(values.is_unsure, 1.0, np.nan)
        ax.imshow(marked, cmap=ListedColormap([UNSURE]), **place)


def _paint_zones(ax: Axes, layer: Drawn, values: Values, scale: Scale, _: float) -> None:
    assert isinstance(layer, Areas)
    set_frame(ax, layer.frame)
    _add(ax, path_collection(layer.shapes, **line_style(len(layer.shapes))), scale.fill(values))
    if layer.mark is not None:
        style = {"facecolors": "none", "edgecolors": MARK, "linewidths": 1.8}
        ax.add_collection(path_collection(layer.mark, **style), autolim=False)


def _paint_lines(ax: Axes, layer: Drawn, values: Values, scale: Scale, wider: float) -> None:
    from matplotlib.collections import PolyCollection

    assert isinstance(layer, Lines)
    set_frame(ax, layer.frame)
    ground = line_style(len(layer.shapes)) | {"facecolors": GROUND}
    ax.add_collection(path_collection(layer.shapes, **ground), autolim=False)
    order = np.argsort(values.density, kind="stable")  # the most frequent lie on top
    start, end = (places[layer.shown[order]] for places in layer.view.places)
    share = np.clip(values.density[order] / scale.limits[1], 0, 1)
    ribbons = _ribbons(start, end, share, layer.frame, wider)
    lines = PolyCollection(ribbons, alpha=0.9, edgecolors="none", linewidths=0)
    fill = scale.fill(values)
    _add(ax, lines, fill | {"array": fill["array"][order]})


def _add(ax: Axes, marks: Any, fill: dict[str, Any]) -> None:
    """Marks in the colours of a scale, or in colours of their own."""
    if "norm" in fill:
        marks.set(**fill)
    else:
        marks.set_facecolor(fill["array"])
    ax.add_collection(marks, autolim=False)


def set_frame(ax: Axes, frame: Frame) -> None:
    """The part of the map that axes show, true to shape."""
    x, y = frame.domain.axes
    ax.set_xlim(x.low, x.high)
    ax.set_ylim(y.low, y.high)
    ax.set_aspect(frame.aspect)


def draw_outlines(ax: Axes, boxes: FloatArray) -> None:
    """Of rectangles, in rows W,S,E,N."""
    from matplotlib.collections import PolyCollection

    corners = boxes[:, [0, 1, 2, 1, 2, 3, 0, 3]].reshape(-1, 4, 2)
    style: dict[str, Any] = {"facecolors": "none", "edgecolors": GREY, "linewidths": 0.25}
    ax.add_collection(PolyCollection(list(corners), alpha=0.5, **style), autolim=False)


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
    width = next((width for most, width in ZONE_LINES if number <= most), 0.0)
    return {"edgecolors": ZONE_LINE, "linewidths": width}


def _ribbons(
    start: FloatArray, end: FloatArray, share: FloatArray, frame: Frame, wider: float
) -> list[FloatArray]:
    """Outlines of bent lines. They are made in a plane in which both axes have the same scale."""
    x, y = frame.domain.axes
    sides = np.array([1.0, frame.ratio]) / [x.high - x.low, y.high - y.low]
    longest = max(1.0, frame.ratio)
    a, b = start * sides, end * sides
    along = b - a
    middle = (a + b) / 2 + BEND * np.column_stack([along[:, 1], -along[:, 0]])
    t = np.linspace(0, 1, POINTS)[None, :, None]
    a, b, middle = a[:, None], b[:, None], middle[:, None]
    line = (1 - t) ** 2 * a + 2 * t * (1 - t) * middle + t**2 * b
    slope = 2 * (1 - t) * (middle - a) + 2 * t * (b - middle)
    aside = np.stack([-slope[..., 1], slope[..., 0]], axis=2)
    aside /= np.maximum(np.linalg.norm(aside, axis=2, keepdims=True), 1e-12)
    width = np.maximum(WIDEST * share, THINNEST)[:, None, None] * longest * wider
    half = width * (1 - (1 - NARROWING) * t) / 2
    both = np.concatenate([line + half * aside, (line - half * aside)[:, ::-1]], axis=1)
    return list(both / sides)
