"""A map of a release, drawn with matplotlib. A release with more axes is shown as a view of two of them.

Only public values are drawn: the leaves of a release, their counts and the scale of their noise. Counts
that do not stand clear of the noise are left blank, so that an empty map looks empty.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from htf.base import arguments, figures
from htf.errors import InputError, MissingExtraError
from htf.frame.areas import square_kilometres
from htf.frame.crs import CRS84
from htf.frame.domain import KM_PER_DEGREE, Domain, FloatArray, IntArray
from htf.maps.plot_basemap import add_basemap, note_map
from htf.maps.views import PLACES, View, Viewable, outlines, read_axes, view
from htf.query.answer_texts import counted_note, counts_of
from htf.query.where import Where

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from htf.privacy.protection import Protection

UNSURE = "#c3bfcd"  # neither of the colour map nor blank
BLANK = "#e9edf2"  # a calm colour that the colour map does not have
COLOURS, PALEST, DARKEST = "magma_r", 0.03, 0.93  # short of black, which hides the centre
GREY = "#4a545e"
WARNING = "#c40018"
NOT_PRIVATE = "NOT PRIVATE – seeded or scripted noise"
MOST_DECADES = 4.0
LONG_SIDE_INCHES = 6.4
LONGEST_LINE = 64  # letters of the small text above a map
LONGEST_NOTE = 80  # and of that below it
THINNEST = 0.11  # width over length: a thinner map would look like a line


@runtime_checkable
class Plottable(Viewable, Protocol):
    """The fields of a release that a map needs."""

    @property
    def low(self) -> IntArray: ...
    @property
    def high(self) -> IntArray: ...
    @property
    def epsilon(self) -> object: ...
    @property
    def protection(self) -> Protection: ...
    @property
    def quantity(self) -> str: ...
    @property
    def counted(self) -> str: ...
    @property
    def private(self) -> bool: ...
    @property
    def mechanism(self) -> str: ...


def plot_release(
    release: Plottable,
    *,
    ax: Axes | None = None,
    boxes: bool = False,
    pixels: int = 700,
    axes: tuple[str, str] = ("x", "y"),
    where: Where | None = None,
    by: str | None = None,
    level: str | None = None,
    title: str | None = None,
    basemap: bool = False,
) -> Figure:
    """Draw the density of a release on a map; needs no display. `title` stands above it, and `basemap` adds coasts,
    borders and names of places.

    Axes that are not drawn are summed, within the ranges of `where`, such as `{"hour": (7, 10)}`. With
    `by`, the name of one of them, there is a panel for each of its steps. `boxes` adds the outlines
    of the leaves. A release of zones is drawn by zones of `level`, by default the lowest; one of trips between
    zones, of which `where` names neither end, by lines. Save the figure with its `savefig`. Raises InputError for axes that the release does
    not have, and for ranges outside the map.
    """
    _check_plottable(release, ax)
    arguments.flag(boxes, "boxes")
    pixels = arguments.whole(pixels, "pixels")
    if title is not None and ax is not None:
        raise InputError("a title stands above a whole figure: leave out title, or ax")
    figure = _draw(release, ax, boxes, pixels, axes, where, by, level)
    if arguments.flag(basemap, "basemap"):
        add_basemap(figure)
    figures.add_title(figure, title)
    return figure


def _draw(
    release: Plottable,
    ax: Axes | None,
    boxes: bool,
    pixels: int,
    axes: tuple[str, str],
    where: Where | None,
    by: str | None,
    level: str | None,
) -> Figure:
    if is_drawn_by_zones(release.domain, axes):
        from htf.maps.plot_zones import plot_zones

        check_zone_options(boxes)
        return plot_zones(release, ax=ax, level=level, where=where, by=by)
    check_no_level(level)
    if by is not None:
        from htf.maps.plot_panels import plot_panels

        if ax is not None or boxes:
            raise InputError("panels need a figure of their own, and cannot show outlines")
        return plot_panels(release, by, axes=axes, where=where, pixels=pixels)
    seen = view(release, axes, where, pixels)
    density = visible_density(seen)
    target = new_figure(map_size(seen)).add_subplot() if ax is None else ax
    image = draw_density(target, seen, density, colour_limits(density))
    if np.isfinite(density).any():
        options: dict[str, Any] = {"is_below": is_wide(seen), "has_unsure": has_unsure(seen)}
        draw_colour_bar([target], image, seen, release.quantity, **options)
    else:
        write_in_the_middle(target, "nothing rises above the noise")
    if boxes:
        draw_boxes(target, release, axes, where)
    draw_frame(target, heading(release), seen)
    write_footer(target, footer(release, seen), is_own_figure=ax is None)
    if not release.private:
        draw_warning(target)
    return target.figure.figure  # the whole figure, even if the axes are on a subfigure


def _check_plottable(release: object, ax: object) -> None:
    try:
        import matplotlib  # noqa: F401
        from matplotlib.axes import Axes
    except ImportError as error:
        raise MissingExtraError("matplotlib", "plot", "Drawing a map") from error
    if not isinstance(release, Plottable):
        raise arguments.unfit(
            "release", "a Release", release, "read one with htf.Release.load(path)"
        )
    if ax is not None:
        arguments.instance(ax, Axes, "ax", "those of a figure of matplotlib")


def is_drawn_by_zones(domain: Domain, axes: object) -> bool:
    """Whether a map shows zones: those of a release that has some, unless other axes are named."""
    return bool(domain.zoned) and not domain.has_map and read_axes(axes) == PLACES[0]


def check_zone_options(boxes: bool) -> None:
    if boxes:
        raise InputError("a map of zones always shows their outlines: leave out boxes")


def check_no_level(level: object) -> None:
    """Refuse a level of zones on a map that shows none."""
    if level is not None:
        raise InputError("a level is one of zones, and this map shows none: leave it out")


def visible_density(seen: View) -> FloatArray:
    """Density per pixel, as rows from south to north; NaN where counts are no more than noise."""
    return np.where(seen.is_clear, seen.counts / _pixel_areas(seen), np.nan).T


def _pixel_areas(seen: View) -> FloatArray:
    """The area of a pixel in each row, in square kilometres, or in cells if the ground is not known."""
    x, y = seen.domain.axes
    area = _ground(seen)
    if area is None:
        return np.full(y.cells, seen.cells[0] / x.cells * (seen.cells[1] / y.cells))
    return area


def _ground(seen: View) -> FloatArray | None:
    """The area of a pixel in each row in square kilometres; None if the map has no known ground."""
    rows = np.arange(seen.domain.axes[1].cells)
    low = np.column_stack([np.zeros_like(rows), rows])
    return square_kilometres(seen.domain, low, low + 1)


def map_size(seen: View) -> tuple[float, float]:
    """Width and height in inches, with room for the text around the map. The colour bar of a wide map
    lies below it."""
    height_to_width = shown_ratio(seen)
    width = LONG_SIDE_INCHES * min(1.0, 1 / height_to_width)
    height = LONG_SIDE_INCHES * min(1.0, height_to_width)
    below = 2.1 if is_wide(seen) else 1.25
    above = 0.18 * len(wrap(seen.summed, LONGEST_LINE))
    return max(width + 1.9, 5.2), height + below + above


def new_figure(size: tuple[float, float]) -> Figure:
    """A figure whose maps and colour bars make room for each other."""
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    layout = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08, compress=True)
    return figures.new_figure(size, layout=layout)


def _true_ratio(seen: View) -> float:
    """Height to width on the ground, or in map units if the ground is not known; 1 if it is no place."""
    if not seen.is_place:
        return 1.0
    x, y = seen.domain.axes
    return (y.high - y.low) / ((x.high - x.low) * _narrowing(seen.domain))


def _narrowing(domain: Domain) -> float:
    """The length of a degree of longitude relative to one of latitude, in the middle of the map."""
    y = domain.axes[1]
    return math.cos(math.radians((y.low + y.high) / 2)) if domain.crs == CRS84 else 1.0


def shown_ratio(seen: View) -> float:
    return min(max(_true_ratio(seen), THINNEST), 1 / THINNEST)


def is_wide(seen: View) -> bool:
    return shown_ratio(seen) < 0.55


def draw_density(ax: Axes, seen: View, density: FloatArray, limits: tuple[float, float]) -> Any:
    from matplotlib.colors import ListedColormap, LogNorm

    x, y = seen.domain.axes
    look: dict[str, Any] = {
        "extent": (x.low, x.high, y.low, y.high),
        "origin": "lower",
        "interpolation": "nearest",
        "aspect": shown_ratio(seen) * (x.high - x.low) / (y.high - y.low),
    }
    # Values are clipped, because those below the least colour would be drawn blank.
    shown = np.clip(density, *limits)
    image = ax.imshow(shown, cmap=colours_of_density(), norm=LogNorm(*limits), **look)
    if seen.is_unsure is not None and seen.is_unsure.any():
        marked = np.where(seen.is_unsure, 1.0, np.nan).T
        ax.imshow(marked, cmap=ListedColormap([UNSURE]), **look)
    return image


def has_unsure(seen: View) -> bool:
    return seen.is_unsure is not None and bool(seen.is_unsure.any())


def colours_of_density(palest: float = PALEST) -> Any:
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    colours = ListedColormap(colormaps[COLOURS](np.linspace(palest, DARKEST, 256)))
    return colours.with_extremes(bad=BLANK, under=BLANK)


def write_in_the_middle(ax: Axes, words: str) -> None:
    ax.text(0.5, 0.5, words, transform=ax.transAxes, ha="center", va="center", color=GREY)


def colour_limits(density: FloatArray) -> tuple[float, float]:
    """The ends of the colour scale: those of the visible values without the few most extreme, one to
    four decades apart.

    A narrow range is widened upwards, so that values that barely pass the noise stay pale.
    """
    visible = density[np.isfinite(density)]
    if visible.size == 0:
        return 1.0, 10.0
    least, most = (float(limit) for limit in np.percentile(visible, [1.0, 99.7]))
    return max(least, most / 10**MOST_DECADES), max(most, 10 * least)


def limits_by_area(density: FloatArray, area: FloatArray) -> tuple[float, float]:
    """The same ends for shapes, of which large ones have more pixels."""
    is_visible = np.isfinite(density) & (density > 0)
    density, area = density[is_visible], area[is_visible]
    if len(density) == 0:
        return 1.0, 10.0
    order = np.argsort(density)
    share = np.cumsum(area[order]) / area.sum()
    least, most = density[order][np.searchsorted(share, [0.01, 0.997]).clip(0, len(order) - 1)]
    return float(max(least, most / 10**MOST_DECADES)), float(max(most, 10 * least))


def draw_colour_bar(
    axes: Sequence[Axes],
    image: Any,
    seen: View,
    quantity: str,
    *,
    is_below: bool,
    unit: str | None = None,
    noise_word: bool = True,
    has_unsure: bool = False,
) -> None:
    """One bar for all `axes`, beside or below them. The unit is km², or else cells, unless it is given."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    # As a share of the width of the axes that the bar is for.
    pad = min(0.03 * max(1.0, shown_ratio(seen)), 0.3) if len(axes) == 1 else 0.015
    bar = axes[0].figure.colorbar(
        image,
        ax=axes,
        location="bottom" if is_below else "right",
        extend="min" if noise_word else "neither",
        extendrect=True,
        extendfrac=0.06,
        shrink=0.9,
        aspect=28,
        pad=pad,
    )
    bar.set_label(f"{quantity} per {unit or ('cell' if _ground(seen) is None else 'km²')}")
    lowest, decades = image.norm.vmin, math.log10(image.norm.vmax / image.norm.vmin)
    nearest = lowest * 10 ** (
        decades * 0.05 * noise_word
    )  # a lower number would overlap those words
    bar.locator = LogLocator(subs=(1.0, 2.0, 5.0) if decades < 2.5 else (1.0,))
    bar.formatter = FuncFormatter(
        lambda value, _: short_number(value) if is_below or value >= nearest else ""
    )
    bar.minorticks_off()
    bar.update_ticks()
    if not noise_word:
        return
    x, y, words = (
        (-0.06, 1.2, "no more than noise") if is_below else (1.4, -0.03, "no more\nthan noise")
    )
    place = "bottom" if is_below else "center"
    bar.ax.text(x, y, words, transform=bar.ax.transAxes, va=place, fontsize=8)
    if has_unsure:
        _explain_unsure(bar.ax, is_below)


def _explain_unsure(ax: Axes, is_below: bool) -> None:
    """A patch beyond the end of a colour bar: below it, or to its right."""
    from matplotlib.patches import Rectangle

    corner, width, height = ((1.03, 0.0), 0.06, 1.0) if is_below else ((0.0, -0.17), 1.0, 0.06)
    style: dict[str, Any] = {"facecolor": UNSURE, "edgecolor": "black", "linewidth": 0.8}
    ax.add_patch(Rectangle(corner, width, height, transform=ax.transAxes, clip_on=False, **style))
    x, y, words = (1.09, 1.2, "too few to tell") if is_below else (1.4, -0.14, "too few\nto tell")
    side, place = ("right", "bottom") if is_below else ("left", "center")
    ax.text(x, y, words, transform=ax.transAxes, ha=side, va=place, fontsize=8)


def short_number(value: float) -> str:
    """1500 as 1.5 k, 2000000 as 2 M."""
    for unit, name in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= unit * (1 - 1e-9):
            return f"{value / unit:.3g}{name}"
    return f"{value:.3g}"


def draw_boxes(ax: Axes, release: Plottable, names: tuple[str, str], where: Where | None) -> None:
    draw_outlines(ax, outlines(release, names, where))


def draw_outlines(ax: Axes, boxes: FloatArray) -> None:
    """Of rectangles, in rows W,S,E,N."""
    from matplotlib.collections import PolyCollection

    west, south, east, north = boxes.T
    columns, rows = (west, east, east, west), (south, south, north, north)
    corners = np.stack([np.stack(columns, axis=1), np.stack(rows, axis=1)], axis=2)
    style: dict[str, Any] = {"facecolors": "none", "edgecolors": GREY, "linewidths": 0.25}
    ax.add_collection(PolyCollection(list(corners), alpha=0.5, **style), autolim=False)


def heading(release: Plottable) -> str:
    return f"{release.mechanism},  ε = {release.epsilon}"


def draw_frame(ax: Axes, title: str, seen: View) -> None:
    """Title, axes and scale bar of a map."""
    note_map(ax, seen)
    from matplotlib.ticker import MaxNLocator, ScalarFormatter

    summed = wrap(seen.summed, LONGEST_LINE)
    ax.set_title(title, fontsize=13, pad=9 + 13 * len(summed))
    ax.annotate(
        "\n".join(summed),
        (0.5, 1.0),
        xycoords="axes fraction",
        xytext=(0, 7),
        textcoords="offset points",
        ha="center",
        fontsize=9,
        color=GREY,
    )
    first, second = axis_labels(seen)
    ax.set_xlabel(first)
    ax.set_ylabel(second)
    width, height = _size_in_inches(ax)
    for axis, room in ((ax.xaxis, width / 0.9), (ax.yaxis, height / 0.5)):
        ticks = min(max(int(room), 2), 6)
        axis.set_major_locator(MaxNLocator(ticks, steps=[1, 2, 5, 10]))
        plain = ScalarFormatter(useOffset=False)
        plain.set_scientific(False)
        axis.set_major_formatter(plain)
    ax.tick_params(labelsize=9)
    ax.tick_params(axis="x", rotation=90 if width < 1.5 else 0)
    if seen.domain.crs == CRS84:
        draw_scale_bar(ax, seen.domain)


def axis_labels(seen: View) -> tuple[str, str]:
    """The labels of the two axes; longitude and latitude for degrees, also of a destination."""
    first, second = seen.domain.names
    if seen.domain.crs != CRS84:
        return first, second
    where = "of the destination " if first.startswith("dest") else ""
    return f"longitude {where}(°)", f"latitude {where}(°)"


def draw_scale_bar(ax: Axes, domain: Domain, fontsize: float = 10) -> None:
    from matplotlib.offsetbox import AnchoredOffsetbox, AuxTransformBox, TextArea, VPacker
    from matplotlib.patches import Rectangle

    x = domain.axes[0]
    km_per_unit = KM_PER_DEGREE * _narrowing(domain)
    length = round_length((x.high - x.low) * km_per_unit / 4)
    label = f"{length * 1000:g} m" if length < 1 else f"{length:g} km"
    line = AuxTransformBox(ax.transData)
    line.add_artist(Rectangle((0, 0), length / km_per_unit, 0, edgecolor="black", linewidth=2))
    packed = VPacker(
        pad=0,
        sep=0.4 * fontsize,
        align="center",
        children=[line, TextArea(label, textprops={"fontsize": fontsize})],
    )
    anchored = AnchoredOffsetbox(
        "lower left", child=packed, pad=0.05 * fontsize, borderpad=0.07 * fontsize
    )
    anchored.patch.set(facecolor="white", edgecolor="none", alpha=0.8)
    ax.add_artist(anchored)


def round_length(most: float) -> float:
    """The greatest of 1, 2 or 5 times a power of ten that is no more than `most`."""
    power = 10.0 ** math.floor(math.log10(most))
    # The half is for a logarithm that was rounded up to the next whole number.
    return next(step * power for step in (5, 2, 1, 0.5) if step * power <= most)


def unit_of(protection: Protection) -> str:
    """What is protected, to stand after `each`: `person in one day` is less than `person`."""
    return protection.name.removeprefix("one ")


def footer(release: Plottable, seen: View) -> str:
    note = counted_note(release.quantity, release.counted)
    return claim(release, release.quantity, seen, note)


def claim(release: Plottable, quantity: str, seen: View, note: str | None) -> str:
    """What is counted and protected, and what else to know."""
    counts = f"Differentially private {counts_of(quantity)}"
    words = f"{counts}: ε-DP per {unit_of(release.protection)}, ε = {release.epsilon}"
    if not release.private:
        words = f"No privacy guarantee: the noise only imitates ε = {release.epsilon}"
    if note is not None:
        words += "\n" + "\n".join(wrap(note, LONGEST_NOTE))
    if shown_ratio(seen) != _true_ratio(seen):
        words += "\nThe map is stretched: its sides are not to the same scale"
    return words


def write_footer(ax: Axes, words: str, *, is_own_figure: bool) -> None:
    if is_own_figure:
        ax.figure.supxlabel(words, fontsize=8, color=GREY)
    else:  # the rest of the figure is the caller's
        ax.set_xlabel(f"{ax.get_xlabel()}\n{words}", fontsize=8)


def draw_warning(ax: Axes) -> None:
    width, height = _size_in_inches(ax, final=True)
    upright = height > 1.5 * width
    text = ax.text(
        0.5,
        0.5,
        NOT_PRIVATE,
        transform=ax.transAxes,
        ha="center",
        va="center",
        rotation=90 if upright else 0,
        color="white",
        fontsize=12,
        weight="bold",
        zorder=10,
        bbox={"facecolor": WARNING, "edgecolor": "none", "boxstyle": "square,pad=0.45"},
    )
    extent = text.get_window_extent()
    length = max(extent.width, extent.height) / ax.figure.dpi
    text.set_fontsize(12 * 0.92 * (height if upright else width) / length)


def _size_in_inches(ax: Axes, *, final: bool = False) -> tuple[float, float]:
    if final:
        ax.figure.figure.draw_without_rendering()  # settles the layout
    ax.apply_aspect()
    extent = ax.get_window_extent()
    return extent.width / ax.figure.dpi, extent.height / ax.figure.dpi
