"""Layers in one picture of matplotlib: alone, side by side, subtracted, or in a panel for each step. Needs no display.

Only public values are drawn. Counts that do not stand clear of the noise are left blank, so that an empty map looks empty.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from textwrap import fill, wrap
from typing import TYPE_CHECKING, Any

from htf.base import figures
from htf.base.extras import need
from htf.errors import InputError
from htf.frame.crs import CRS84
from htf.frame.domain import KM_PER_DEGREE
from htf.maps.kinds import Drawn, check_layers, counted_differs_note
from htf.maps.layer import Layer
from htf.maps.paint import BLANK, GREY, UNSURE, Scale, draw_outlines, paint, scale_of
from htf.maps.paint_basemap import draw_basemap
from htf.maps.scale import CHANCE, STRONG, short_number, signed_number
from htf.maps.steps import MOST_PANELS
from htf.maps.window import Frame
from htf.query.answer_texts import counts_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colorbar import Colorbar
    from matplotlib.figure import Figure
    from matplotlib.ticker import Locator

    from htf.privacy.protection import Protection
    from htf.release.release import Release

NOT_PRIVATE = "NOT PRIVATE – seeded or scripted noise"
WARNING: dict[str, Any] = {
    "ha": "center",
    "va": "center",
    "color": "white",
    "fontsize": 12,
    "weight": "bold",
    "zorder": 10,
    "bbox": {"facecolor": "#c40018", "edgecolor": "none", "boxstyle": "square,pad=0.45"},
}
PIXELS = 700  # per side, at most
ALONE_INCHES, PAIR_INCHES, PANELS_INCHES = 6.4, 5.2, 9.0  # one map; one of two; all panels
NOTE_INCHES = 0.18  # the height of a line above or below the map
LONGEST_LINE = 64  # letters of the small text above a map
LONGEST_NOTE, LONGEST_WIDE = 80, 110  # and of that below one or two
LONGEST_TITLE = 32  # and of that above a panel
WIDTH_TO_HEIGHT = 1.5
EMPTY = "nothing rises above the noise"


def figure_of(
    given: Sequence[Layer],
    *,
    ax: Axes | None = None,
    boxes: bool = False,
    pixels: int = PIXELS,
    basemap: bool = False,
) -> Figure:
    """Layers that are steps, or more than two, get small panels."""
    need("Drawing a map", "matplotlib", extra="plot")
    layers = check_layers(given)
    first = layers[0]
    if first.step is not None or len(layers) > 2:
        if ax is not None or boxes:
            raise InputError("panels need a figure of their own, and cannot show outlines")
        return _panels(layers, pixels)
    if len(layers) == 2 or first.second is not None:
        figure, panels = _compare(layers, pixels)
    else:
        figure, panels = _alone(first, ax, pixels)
    for panel, layer in zip(panels, layers, strict=True):
        if boxes:
            draw_outlines(panel, layer.outlines())
        if basemap and layer.frame.is_place and layer.frame.domain.crs is not None:
            draw_basemap(panel, layer.frame.domain)
        if not all(one.release.private for one in layer.sides):
            _warn(panel)
    return figure


def _alone(layer: Drawn, ax: Axes | None, pixels: int) -> tuple[Figure, list[Axes]]:
    values = layer.values(pixels)
    scale = scale_of([layer], [values])
    target = new_figure(_size_alone(layer)).add_subplot() if ax is None else ax
    paint(target, layer, values, scale)
    _draw_bar([target], scale, [layer], is_below=layer.frame.is_wide)
    _frame_alone(target, layer)
    words = _words_below(layer.notes, [layer])
    if ax is None:
        target.figure.figure.supxlabel(words, fontsize=8, color=GREY)
    else:  # the rest of the figure is the caller's
        ax.set_xlabel(f"{ax.get_xlabel()}\n{words}", fontsize=8)
    return target.figure.figure, [target]  # the whole figure, even if the axes are on a subfigure


def _size_alone(layer: Drawn) -> tuple[float, float]:
    """Width and height in inches, with room for the text around the map. The colour bar of a wide map
    lies below it."""
    ratio = layer.frame.ratio
    width = ALONE_INCHES * min(1.0, 1 / ratio)
    height = ALONE_INCHES * min(1.0, ratio)
    below = 2.1 if layer.frame.is_wide else 1.25
    lines = len(wrap(_summed(layer), LONGEST_LINE)) + len(layer.notes)
    return max(width + 1.9, 5.2), height + below + NOTE_INCHES * lines


def _compare(layers: Sequence[Drawn], pixels: int) -> tuple[Figure, list[Axes]]:
    """Two layers side by side, or one that is subtracted from another."""
    first, number = layers[0], len(layers)
    if number > 1:
        first.check_beside(layers[1])
    width = PAIR_INCHES if number > 1 else 1.25 * PAIR_INCHES
    ratio = min(max(one.frame.ratio for one in layers), 2.0)
    figure = new_figure((number * width + 1.7, width * ratio + 1.4))
    panels, scale = _paint_all(figure, (1, number), layers, pixels)
    for ax, layer in zip(panels, layers, strict=True):
        said = [layer.title, layer.heading] if number > 1 else [layer.name, _summed(layer)]
        ax.set_title("\n".join(text for text in dict.fromkeys(said) if text), fontsize=11)
        _label(ax, layer.frame, 8)
        ax.locator_params(nbins=5)
    sides = [side for one in layers for side in one.sides]
    words = [_summed(first), *first.shared_notes]
    if number == 1:
        words = [f"{STRONG} {CHANCE.replace('square', first.shape)} {scale.beyond}"]
    text = _words_below([*words, counted_differs_note(sides)], sides)
    figure.supxlabel(text, fontsize=8, color=GREY)
    return figure, panels


def _panels(every: Sequence[Drawn], pixels: int) -> Figure:
    """A small map for each layer, or for the latest 24."""
    layers = every[-MOST_PANELS:]
    for layer in layers[1:]:
        if layer.step is None:
            layers[0].check_beside(layer)
    ratio = layers[0].frame.ratio
    rows, columns = layout(len(layers), ratio)
    height = PANELS_INCHES / columns * (ratio + 0.12) * rows + 1.4
    figure = new_figure((PANELS_INCHES + 1.3, height))
    panels, _ = _paint_all(figure, (rows, columns), layers, max(pixels // 2, 1), wider=1.6)
    for ax, layer in zip(panels, layers, strict=False):
        ax.set_title(_shortened(layer), fontsize=9, pad=3)
    _frame_panels(panels, layers)
    shown = shown_for_all(layers)
    figure.suptitle(_title_of_panels(every, layers), fontsize=12)
    notes = dict.fromkeys(note for layer in layers for note in layer.shared_notes)
    figure.supxlabel(_words_below([*notes], [shown]), fontsize=8, color=GREY)
    if not shown.release.private:
        text = figure.text(0.45, 0.5, NOT_PRIVATE, **WARNING)
        text.set_in_layout(False)
        wide = figure.get_figwidth() * figure.dpi
        text.set_fontsize(12 * 0.75 * wide / text.get_window_extent().width)
    return figure


def _paint_all(
    figure: Figure, shape: tuple[int, int], layers: Sequence[Drawn], pixels: int, wider: float = 1.0
) -> tuple[list[Axes], Scale]:
    """Maps in rows and columns, in the colours of one scale, with its bar."""
    values = [layer.values(pixels) for layer in layers]
    scale = scale_of(layers, values)
    panels: list[Axes] = list(figure.subplots(*shape, squeeze=False).ravel())
    for ax, layer, one in zip(panels, layers, values, strict=False):
        paint(ax, layer, one, scale, wider=wider)
    _draw_bar(panels, scale, layers, is_below=False)
    return panels, scale


def _title_of_panels(every: Sequence[Drawn], layers: Sequence[Drawn]) -> str:
    first = layers[0]
    heading = first.heading
    if first.plan is not None:
        heading = f"{first.title}: {told_periods(layers)}"
        if len(every) > len(layers):
            heading += f"\nthe latest {len(layers)} of {len(every):,} {first.plan.period}s"
    return "\n".join(text for text in (heading, _summed(first)) if text)


def told_periods(layers: Sequence[Drawn]) -> str:
    """Which periods are shown, and what each of them costs."""
    names = [one.step for one in layers if one.step is not None]
    shown = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
    plan = layers[0].plan
    return shown if plan is None else f"{shown},  ε = {plan.each} for each {plan.period}"


def shown_for_all(layers: Sequence[Drawn]) -> Drawn:
    """The layer whose claim is shown for all: the latest, unless one is not private."""
    return next((one for one in layers if not one.release.private), layers[-1])


def _shortened(layer: Drawn) -> str:
    """A title that fits above a panel."""
    title = layer.name if layer.step is None else layer.step
    return title if len(title) <= LONGEST_TITLE else f"{title[: LONGEST_TITLE - 1]}…"


def _summed(layer: Drawn) -> str:
    return "; ".join(text for text in (layer.level_words, layer.summed) if text)


def new_figure(size: tuple[float, float]) -> Figure:
    """A figure whose maps and colour bars make room for each other."""
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    layout = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08, compress=True)
    return figures.new_figure(size, layout=layout)


def layout(panels: int, height_to_width: float) -> tuple[int, int]:
    """Numbers of rows and columns: near the shape of a page, and with no panel left empty if possible."""

    def badness(rows: int) -> float:
        columns = -(-panels // rows)
        shape = columns / (rows * (height_to_width + 0.12)) / WIDTH_TO_HEIGHT
        left_over = rows * columns - panels
        return abs(math.log(shape)) + min(12 * left_over / panels, 0.5)

    rows = min(range(1, panels + 1), key=badness)
    return rows, -(-panels // rows)


def _draw_bar(
    axes: Sequence[Axes], scale: Scale, layers: Sequence[Drawn], *, is_below: bool
) -> None:
    """What the colours mean, or that there are none."""
    if scale.is_empty:
        words = EMPTY if len(axes) == 1 else EMPTY.replace(" above", "\nabove")
        place: dict[str, Any] = {"ha": "center", "va": "center", "color": GREY}
        axes[0].text(0.5, 0.5, words, transform=axes[0].transAxes, **place)
    elif layers[0].second is not None:
        _bar_of_difference(axes[0], scale, layers[0])
    else:
        _bar_of_density(axes, scale, layers, is_below=is_below)


def _bar_of_difference(ax: Axes, scale: Scale, layer: Drawn) -> None:
    from matplotlib.ticker import FixedLocator

    _, most = scale.limits
    bar = ax.figure.colorbar(scale.mappable, ax=ax, shrink=0.9, aspect=28, pad=0.03)
    bar.set_label(f"difference in {layer.quantity} per {layer.unit}")
    _mark(bar, FixedLocator([-most, -most / 10, 0, most / 10, most]), signed_number)


def _mark(bar: Colorbar, locator: Locator, write: Callable[[float, Any], str]) -> None:
    """The numbers beside a colour bar."""
    from matplotlib.ticker import FuncFormatter

    bar.locator, bar.formatter = locator, FuncFormatter(write)
    bar.minorticks_off()
    bar.update_ticks()


def _bar_of_density(
    axes: Sequence[Axes], scale: Scale, layers: Sequence[Drawn], *, is_below: bool
) -> None:
    """One bar for all `axes`, beside or below them."""
    from matplotlib.ticker import LogLocator

    has_blank = layers[0].has_blank
    # As a share of the width of the axes that the bar is for.
    pad = min(0.03 * max(1.0, layers[0].frame.ratio), 0.3) if len(axes) == 1 else 0.015
    bar = axes[0].figure.colorbar(
        scale.mappable,
        ax=axes,
        location="bottom" if is_below else "right",
        extend="min" if has_blank else "neither",
        extendrect=True,
        extendfrac=0.06,
        shrink=0.9,
        aspect=28,
        pad=pad,
    )
    quantities = " or ".join(dict.fromkeys(one.quantity for one in layers))
    bar.set_label(f"{quantities} per {layers[0].unit}")
    lowest, most = scale.limits
    decades = math.log10(most / lowest)
    nearest = lowest * 10 ** (0.05 * decades * has_blank)  # a lower number would overlap words
    _mark(
        bar,
        LogLocator(subs=(1.0, 2.0, 5.0) if decades < 2.5 else (1.0,)),
        lambda value, _: short_number(value) if is_below or value >= nearest else "",
    )
    if not has_blank:
        return
    x, y, words = (
        (-0.06, 1.2, "no more than noise") if is_below else (1.4, -0.03, "no more\nthan noise")
    )
    place = "bottom" if is_below else "center"
    bar.ax.text(x, y, words, transform=bar.ax.transAxes, va=place, fontsize=8)
    if scale.has_unsure:
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


def _frame_alone(ax: Axes, layer: Drawn) -> None:
    """Title, axes and scale bar of a map."""
    summed = wrap(_summed(layer), LONGEST_LINE)
    ax.set_title(layer.heading, fontsize=13, pad=9 + 13 * len(summed))
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
    _label(ax, layer.frame, 9)
    width, height = _size_in_inches(ax)
    for axis, room in ((ax.xaxis, width / 0.9), (ax.yaxis, height / 0.5)):
        locator: Any = axis.get_major_locator()
        locator.set_params(nbins=min(max(int(room), 2), 6), steps=[1, 2, 5, 10])
    ax.tick_params("x", rotation=90 if width < 1.5 else 0)


def _label(ax: Axes, frame: Frame, size: float) -> None:
    """The names of the axes, their numbers in letters of that size, and a scale bar."""
    first, second = axis_labels(frame)
    ax.set(xlabel=first, ylabel=second)
    ax.tick_params(labelsize=size)
    ax.ticklabel_format(useOffset=False, style="plain")
    draw_scale_bar(ax, frame, size)


def _frame_panels(panels: Sequence[Axes], layers: Sequence[Drawn]) -> None:
    first = layers[0]
    for ax in panels:
        ax.set(xticks=[], yticks=[])
        ax.set_facecolor(BLANK if first.kind == "grid" else "white")
    for ax in panels[len(layers) :]:
        ax.set_axis_off()
    draw_scale_bar(panels[0], first.frame, fontsize=7)
    if first.frame.domain.crs != CRS84:
        x, y = first.frame.domain.names
        panels[0].set_xlabel(x, fontsize=8)
        panels[0].set_ylabel(y, fontsize=8)


def axis_labels(frame: Frame) -> tuple[str, str]:
    """The labels of the two axes; longitude and latitude for degrees, also of a destination."""
    first, second = frame.domain.names
    if frame.domain.crs != CRS84:
        return first, second
    where = "of the destination " if first.startswith("dest") else ""
    return f"longitude {where}(°)", f"latitude {where}(°)"


def draw_scale_bar(ax: Axes, frame: Frame, fontsize: float) -> None:
    if frame.domain.crs != CRS84:
        return
    from matplotlib.font_manager import FontProperties
    from mpl_toolkits.axes_grid1.anchored_artists import AnchoredSizeBar

    x = frame.domain.axes[0]
    km_per_unit = KM_PER_DEGREE * frame.narrowing
    length = round_length((x.high - x.low) * km_per_unit / 4)
    label = f"{length * 1000:g} m" if length < 1 else f"{length:g} km"
    look = {"pad": 0.5, "borderpad": 0.7, "sep": 0.4 * fontsize}
    font = FontProperties(size=fontsize)
    size = length / km_per_unit
    bar = AnchoredSizeBar(ax.transData, size, label, "lower left", fontproperties=font, **look)
    bar.size_bar.get_children()[0].set_linewidth(2)
    bar.patch.set(facecolor="white", edgecolor="none", alpha=0.8)
    ax.add_artist(bar)


def round_length(most: float) -> float:
    """The greatest of 1, 2 or 5 times a power of ten that is no more than `most`."""
    power = 10.0 ** math.floor(math.log10(most))
    # The half is for a logarithm that was rounded up to the next whole number.
    return next(step * power for step in (5, 2, 1, 0.5) if step * power <= most)


def unit_of(protection: Protection) -> str:
    """What is protected, to stand after `each`: `person in one day` is less than `person`."""
    return protection.name.removeprefix("one ")


def _words_below(words: Sequence[str | None], layers: Sequence[Drawn]) -> str:
    """Sentences, and of each layer what is counted and protected, and what else to know."""
    lines = [fill(line, LONGEST_WIDE) for line in words if line]
    claims = [
        "\n".join([_claim(one.release, one.quantity), *wrap(one.counted_note or "", LONGEST_NOTE)])
        for one in layers
    ]
    if layers[0].frame.ratio != layers[0].frame.true_ratio:
        claims.append("The map is stretched: its sides are not to the same scale")
    return "\n".join([*lines, *dict.fromkeys(claims)])


def _claim(release: Release, quantity: str) -> str:
    if not release.private:
        return f"No privacy guarantee: the noise only imitates ε = {release.epsilon}"
    counts = f"Differentially private {counts_of(quantity)}"
    return f"{counts}: ε-DP per {unit_of(release.protection)}, ε = {release.epsilon}"


def _warn(ax: Axes) -> None:
    ax.figure.figure.draw_without_rendering()  # settles the layout
    width, height = _size_in_inches(ax)
    upright = height > 1.5 * width
    turned = {"transform": ax.transAxes, "rotation": 90 if upright else 0}
    text = ax.text(0.5, 0.5, NOT_PRIVATE, **WARNING | turned)
    extent = text.get_window_extent()
    length = max(extent.width, extent.height) / ax.figure.dpi
    text.set_fontsize(12 * 0.92 * (height if upright else width) / length)


def _size_in_inches(ax: Axes) -> tuple[float, float]:
    ax.apply_aspect()
    extent = ax.get_window_extent()
    return extent.width / ax.figure.dpi, extent.height / ax.figure.dpi
