"""Two releases in one picture: side by side with the same colour scale, or their difference."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from htf.base import arguments
from htf.errors import InputError, MissingExtraError
from htf.frame.areas import square_kilometres
from htf.frame.crs import CRS84
from htf.frame.domain import FloatArray
from htf.maps.comparison import (
    CHANCE,
    STRONG,
    Difference,
    Named,
    check_pair,
    check_same_quantity,
    counted_differs_note,
    difference,
    grids_to_compare,
    shared_bounds,
)
from htf.maps.plot import (
    BLANK,
    GREY,
    axis_labels,
    check_no_level,
    check_zone_options,
    colour_limits,
    draw_boxes,
    draw_colour_bar,
    draw_density,
    draw_scale_bar,
    draw_warning,
    footer,
    has_unsure,
    heading,
    is_drawn_by_zones,
    new_figure,
    short_number,
    shown_ratio,
    visible_density,
)
from htf.maps.plot_basemap import note_map
from htf.maps.scales import difference_limits
from htf.maps.views import View, view
from htf.query.where import Where

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from htf.release.release import Release

INCHES = 5.2  # the width of one map
DIVERGING, FAINT = "PuOr_r", 0.22  # purple to orange; the strength of what is no more than noise
LEAST = 0.15  # strength of what is more than noise, so that it is never as white as nothing
MOST_SQUARES = 64  # per side
LINE = 110  # letters


def plot_comparison(
    maps: Sequence[Named],
    *,
    axes: tuple[str, str] = ("x", "y"),
    where: Where | None = None,
    boxes: bool = False,
    level: str | None = None,
) -> Figure:
    """Draw two maps side by side, with the same colours. Needs matplotlib.

    Parameters
    ----------
    maps : sequence of Named
        Two releases with their names.
    axes : (str, str)
        The axes to draw. Others are summed.
    where : mapping, optional
        Ranges of axes, such as `{"hour": (7, 10)}`.
    boxes : bool
        Whether to add the outlines of the leaves.
    level : str, optional
        The level of zones, by default the lowest.

    Returns
    -------
    matplotlib.figure.Figure
        Save it with its `savefig`.

    Raises
    ------
    InputError
        If the maps do not overlap, or have different reference systems.

    Examples
    --------
    >>> import htf
    >>> domain = htf.Domain.from_bounds(0, 0, 2, 2, cells=2)
    >>> matrix = htf.FrequencyMatrix.from_dense(domain, [[500, 20], [0, 30]])
    >>> maps = [htf.Named(htf.publish(matrix, 1), name) for name in ("May", "June")]
    >>> htf.plot_comparison(maps).savefig("both.png")
    """
    _check_matplotlib()
    first, second = check_pair(maps)
    arguments.flag(boxes, "boxes")
    if is_pair_of_zones(first, second, axes):
        check_zone_options(boxes)
        return _compare_zones(maps, level, where)
    check_no_level(level)
    shared_bounds(first, second, axes, where)  # refuses maps that do not overlap
    seen = [view(one.release, axes, where, 700) for one in maps]
    densities = [visible_density(one) for one in seen]
    limits = colour_limits(np.concatenate([density.ravel() for density in densities]))
    height = INCHES * min(max(shown_ratio(one) for one in seen), 2.0)
    figure = new_figure((2 * INCHES + 1.6, height + 1.1))
    panels: list[Axes] = list(figure.subplots(1, 2))
    images = [
        draw_density(ax, one, density, limits)
        for ax, one, density in zip(panels, seen, densities, strict=True)
    ]
    for ax, one, shown in zip(panels, maps, seen, strict=True):
        ax.set_title(f"{one.name}\n{heading(one.release)}", fontsize=11)
        _label(ax, shown)
        if boxes:
            draw_boxes(ax, one.release, axes, where)
    quantities = " or ".join(dict.fromkeys(one.release.quantity for one in maps))
    is_unsure = any(map(has_unsure, seen))
    draw_colour_bar(panels, images[0], seen[0], quantities, is_below=False, has_unsure=is_unsure)
    _finish(figure, panels, maps, seen[0], [])
    return figure


def plot_difference(
    maps: Sequence[Named],
    *,
    axes: tuple[str, str] = ("x", "y"),
    where: Where | None = None,
    level: str | None = None,
) -> Figure:
    """Draw the first map minus the second, in squares, pale where noise explains it. Needs matplotlib.

    Parameters
    ----------
    maps : sequence of Named
        Two releases with their names.
    axes : (str, str)
        The axes to draw. Others are summed.
    where : mapping, optional
        Ranges of axes, such as `{"hour": (7, 10)}`.
    level : str, optional
        The level of zones, by default the lowest.

    Returns
    -------
    matplotlib.figure.Figure
        Save it with its `savefig`.

    Raises
    ------
    InputError
        If the maps do not overlap, have different reference systems, or count different quantities.

    Examples
    --------
    >>> import htf
    >>> domain = htf.Domain.from_bounds(0, 0, 2, 2, cells=2)
    >>> matrix = htf.FrequencyMatrix.from_dense(domain, [[500, 20], [0, 30]])
    >>> maps = [htf.Named(htf.publish(matrix, 1), name) for name in ("May", "June")]
    >>> htf.plot_difference(maps).savefig("difference.png")
    """
    _check_matplotlib()
    first, second = check_pair(maps)
    check_same_quantity(first, second)
    if is_pair_of_zones(first, second, axes):
        return _subtract_zones(maps, level, where)
    check_no_level(level)
    sizes = grids_to_compare(first, second, axes, where)
    size = max((one for one in sizes if max(one) <= MOST_SQUARES), default=sizes[0])
    differences = difference(first, second, size, axes, where)
    seen = view(first, axes, where, 1)
    shown = View(differences.domain, seen.cells, seen.is_place, *_nothing(size), summed=seen.summed)
    figure = new_figure((INCHES * 1.25 + 1.9, INCHES * 1.25 * min(shown_ratio(shown), 2.0) + 1.7))
    ax = figure.add_subplot()
    beyond = _draw_difference(ax, differences, shown, first.quantity)
    _finish_difference(figure, ax, maps, shown, f"{CHANCE} {beyond}")
    return figure


def is_pair_of_zones(first: Release, second: Release, axes: object) -> bool:
    """Whether both releases are drawn by zones; an error if only one of them is."""
    are_zoned = [is_drawn_by_zones(one.domain, axes) for one in (first, second)]
    if are_zoned[0] != are_zoned[1]:
        raise InputError("one release has zones and the other a grid: they cannot be compared")
    return are_zoned[0]


def _compare_zones(maps: Sequence[Named], level: str | None, where: Where | None) -> Figure:
    from htf.maps.plot_zone_compare import plot_zone_comparison
    from htf.maps.plot_zones import frame_of

    figure, panels, layers = plot_zone_comparison(maps, level, where)
    seen = frame_of(maps[0].release.domain, layers[0].shapes, layers[0].summed)
    for ax in panels:
        _label(ax, seen)
    _finish(figure, panels, maps, seen, [layers[0].summed, *layers[0].shared_notes])
    return figure


def _subtract_zones(maps: Sequence[Named], level: str | None, where: Where | None) -> Figure:
    from htf.maps.plot_zone_compare import plot_zone_difference
    from htf.maps.plot_zones import frame_of

    figure, ax, view, beyond = plot_zone_difference(maps, level, where)
    seen = frame_of(view.domain, view.shapes, view.summed)
    _finish_difference(figure, ax, maps, seen, f"{CHANCE.replace('square', 'zone')} {beyond}")
    return figure


def _finish_difference(
    figure: Figure, ax: Axes, maps: Sequence[Named], seen: View, chance: str
) -> None:
    names = [one.name for one in maps]
    title = f"{names[0]} minus {names[1]}" + (f"\n{seen.summed}" if seen.summed else "")
    ax.set_title(title, fontsize=12)
    _label(ax, seen)
    _finish(figure, [ax], maps, seen, [f"{STRONG} {chance}"])


def _nothing(size: tuple[int, int]) -> tuple[FloatArray, FloatArray, Any]:
    """Empty values in place of counts, for a view that is needed only for its frame."""
    return np.zeros(size), np.zeros(size), np.zeros(size, dtype=bool)


def _draw_difference(ax: Axes, differences: Difference, shown: View, quantity: str) -> str:
    """Returns what the caption says about differences beyond the end of the scale."""
    columns, rows = differences.domain.shape
    low = np.stack(np.divmod(np.arange(columns * rows), rows), axis=1)
    area = square_kilometres(differences.domain, low, low + 1)
    density = differences.value / (1.0 if area is None else area)
    colours, scale = difference_colours(density, differences.is_beyond_noise)
    x, y = differences.domain.axes
    ax.imshow(
        colours.reshape(columns, rows, 3).transpose(1, 0, 2),
        extent=(x.low, x.high, y.low, y.high),
        origin="lower",
        interpolation="nearest",
        aspect=shown_ratio(shown) * (x.high - x.low) / (y.high - y.low),
    )
    draw_difference_bar(ax, scale, quantity, " per km²" if area is not None else "")
    return beyond_end(density, differences.is_beyond_noise)


def difference_colours(density: FloatArray, is_beyond: NDArray[np.bool_]) -> tuple[FloatArray, Any]:
    """Red, green and blue of each difference, and the scale of colours. Noise is faint."""
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import SymLogNorm, to_rgb

    least, most = difference_limits(density, is_beyond)
    norm = SymLogNorm(least, vmin=-most, vmax=most, base=10)
    scale = ScalarMappable(norm, colormaps[DIVERGING])
    strength = np.where(is_beyond, 1.0, FAINT)[:, None]
    shade = np.asarray(norm(density)) - 0.5
    shade = np.sign(density) * np.maximum(np.abs(shade), np.where(is_beyond, LEAST, 0.0)) + 0.5
    colours = strength * scale.cmap(shade)[:, :3] + (1 - strength) * to_rgb(BLANK)
    return np.asarray(colours), scale


def beyond_end(density: FloatArray, is_beyond: NDArray[np.bool_]) -> str:
    """A sentence on differences that lie beyond the end of the scale; empty if none does."""
    _, most = difference_limits(density, is_beyond)
    drawn = density[is_beyond] if is_beyond.any() else density
    number = int(np.sum(np.abs(drawn) > most))
    if number == 0:
        return ""
    lie = "1 difference lies" if number == 1 else f"{number:,} differences lie"
    largest = _signed(float(drawn[np.argmax(np.abs(drawn))]))
    return f"The colours end at ±{short_number(most)}: {lie} beyond, the largest at {largest}."


def draw_difference_bar(ax: Axes, scale: Any, quantity: str, per: str) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter

    most = scale.norm.vmax
    bar = ax.figure.colorbar(scale, ax=ax, shrink=0.9, aspect=28, pad=0.03)
    bar.set_label(f"difference in {quantity}{per}")
    bar.locator = FixedLocator([-most, -most / 10, 0, most / 10, most])
    bar.formatter = FuncFormatter(_signed)
    bar.minorticks_off()
    bar.update_ticks()


def _signed(value: float, _: object = None) -> str:
    sign = "+" if value > 0 else "−" if value < 0 else ""
    return sign + short_number(abs(value))


def _label(ax: Axes, seen: View) -> None:
    note_map(ax, seen)
    first, second = axis_labels(seen)
    ax.set_xlabel(first)
    ax.set_ylabel(second)
    ax.tick_params(labelsize=8)
    ax.ticklabel_format(useOffset=False, style="plain")
    ax.locator_params(nbins=5)
    if seen.domain.crs == CRS84:
        draw_scale_bar(ax, seen.domain, fontsize=8)


def _finish(
    figure: Figure, panels: list[Axes], maps: Sequence[Named], seen: View, words: list[str]
) -> None:
    """Write what is counted and the privacy claim of each release below, and a warning if there is none."""
    note = counted_differs_note(maps)
    words = [word for word in (*words, note) if word]
    claims = dict.fromkeys(footer(one.release, seen) for one in maps)
    figure.supxlabel(
        "\n".join([*(fill(line, LINE) for line in words), *claims]), fontsize=8, color=GREY
    )
    for ax, one in zip(panels, maps, strict=False):
        if not (one.release.private if len(panels) > 1 else all(m.release.private for m in maps)):
            draw_warning(ax)


def _check_matplotlib() -> None:
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("matplotlib", "plot", "Drawing a map") from error
