"""Small multiples: one map for each step of a further axis, such as the hours of a day.

All panels share one colour scale and cover ranges of equal length, so that they can be compared.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from htf.base import arguments
from htf.errors import InputError
from htf.frame.crs import CRS84
from htf.frame.domain import Domain
from htf.maps.plot import (
    BLANK,
    GREY,
    NOT_PRIVATE,
    WARNING,
    Plottable,
    colour_limits,
    draw_colour_bar,
    draw_density,
    draw_scale_bar,
    footer,
    has_unsure,
    heading,
    new_figure,
    shown_ratio,
    visible_density,
    write_in_the_middle,
)
from htf.maps.views import View, describe_summed, drawn_axes, view
from htf.maps.zones import Step, named_steps, plain_step
from htf.query.named import read_by
from htf.query.where import Where, axis_number, full_ranges, read_where

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_PANELS = 24
FEWEST_PANELS = 6  # if whole cells would give fewer, ranges cut through cells
INCHES = 9.0  # the width of all panels together
WIDTH_TO_HEIGHT = 1.5
LONGEST_TITLE = 32  # letters


def plot_panels(
    release: Plottable, by: str, *, axes: tuple[str, str], where: Where | None, pixels: int
) -> Figure:
    """A panel for each of up to 24 equal steps of the axis `by`, or of its range in `where`."""
    domain, drawn = release.domain, drawn_axes(release.domain, axes)
    number, steps = panel_steps(domain, by, where)
    if number in drawn:
        raise InputError(f"panels need an axis that is not drawn, but {by!r} is: give other axes")
    seen = [
        view(release, axes, {**read_where(where), **step.where}, max(pixels // 2, 1))
        for step in steps
    ]
    figure = draw_panels(seen, [step.title for step in steps], release.quantity)
    inside = {n: ends for n, ends in read_where(where).items() if n != domain.names[number]}
    rest = _summed_beside(domain, drawn, number, inside)
    figure.suptitle(heading(release) + (f"\n{rest}" if rest else ""), fontsize=12)
    figure.supxlabel(footer(release, seen[0]), fontsize=8, color=GREY)
    if not release.private:
        draw_warning_across(figure)
    return figure


def draw_panels(seen: list[View], titles: list[str], quantity: str) -> Figure:
    """A panel for each view, with one scale of colours."""
    densities = [visible_density(one) for one in seen]
    limits = colour_limits(np.concatenate([density.ravel() for density in densities]))
    rows, columns = layout(len(seen), shown_ratio(seen[0]))
    height = INCHES / columns * (shown_ratio(seen[0]) + 0.12) * rows + 1.4
    figure = new_figure((INCHES + 1.3, height))
    panels: list[Axes] = list(figure.subplots(rows, columns, squeeze=False).ravel())
    images = [
        draw_density(ax, one, density, limits)
        for ax, one, density in zip(panels, seen, densities, strict=False)
    ]
    for ax, title in zip(panels, titles, strict=False):
        ax.set_title(shorten(title), fontsize=9, pad=3)
    draw_frames(panels, seen)
    if any(np.isfinite(density).any() for density in densities):
        is_unsure = any(map(has_unsure, seen))
        draw_colour_bar(panels, images[0], seen[0], quantity, is_below=False, has_unsure=is_unsure)
    else:
        write_in_the_middle(panels[0], "nothing rises\nabove the noise")
    return figure


def panel_steps(domain: Domain, by: str, where: Where | None) -> tuple[int, list[Step]]:
    """The place of the axis that panels are of, and a step for each panel: a name, or an equal part of the axis."""
    arguments.text(by, "the axis of panels")
    if by in domain.names or not any(axis.names for axis in domain.axes):
        axis_number(domain, by)  # refuses one that is not there
    number = read_by(domain, by)[0].axis
    named = named_steps(domain, by, where)
    if named is None:
        return number, [plain_step(by, *ends) for ends in panel_ranges(domain, by, where)]
    if len(named) > MOST_PANELS:
        raise InputError(
            f"{by!r} has {len(named):,} names, but a picture has room for {MOST_PANELS} panels: choose a higher level, "
            f"or a part of it with --where {domain.names[number]}=NAME"
        )
    return number, named


def shorten(title: str) -> str:
    """A title that fits above a panel."""
    return title if len(title) <= LONGEST_TITLE else f"{title[: LONGEST_TITLE - 1]}…"


def panel_ranges(domain: Domain, by: str, where: Where | None) -> list[tuple[float, float]]:
    """Equal steps of an axis, of whole cells if that gives enough steps."""
    axis = domain.axes[axis_number(domain, by)]
    low, high = np.clip(full_ranges(domain, where)[axis_number(domain, by)], axis.low, axis.high)
    cells = max(round((high - low) / axis.cell_width), 1)
    number = max(n for n in range(1, MOST_PANELS + 1) if cells % n == 0)
    number = number if number >= min(cells, FEWEST_PANELS) else MOST_PANELS // 2
    edges = np.linspace(low, high, number + 1).tolist()
    return list(pairwise(edges))


def layout(panels: int, height_to_width: float) -> tuple[int, int]:
    """Numbers of rows and columns: near the shape of a page, and with no panel left empty if possible."""

    def badness(rows: int) -> float:
        columns = -(-panels // rows)
        shape = columns / (rows * (height_to_width + 0.12)) / WIDTH_TO_HEIGHT
        left_over = rows * columns - panels
        return abs(math.log(shape)) + min(12 * left_over / panels, 0.5)

    rows = min(range(1, panels + 1), key=badness)
    return rows, -(-panels // rows)


def _summed_beside(
    domain: Domain, drawn: tuple[int, int], number: int, where: dict[str, Any]
) -> str:
    """The text on summed axes, as for a view, but without the axis that the panels show."""
    others = Domain(tuple(axis for place, axis in enumerate(domain.axes) if place != number))
    first, second = (place - (place > number) for place in drawn)
    return describe_summed(others, (first, second), where)


def draw_frames(panels: list[Axes], seen: list[View], ground: str = BLANK) -> None:
    for ax in panels:
        ax.set_xticks([])
        ax.set_yticks([])
        ax.set_facecolor(ground)
    for ax in panels[len(seen) :]:
        ax.set_axis_off()
    if seen[0].domain.crs == CRS84:
        draw_scale_bar(panels[0], seen[0].domain, fontsize=7)
    else:
        panels[0].set_xlabel(seen[0].domain.names[0], fontsize=8)
        panels[0].set_ylabel(seen[0].domain.names[1], fontsize=8)


def draw_warning_across(figure: Figure) -> None:
    """Write the warning across all panels."""
    style = {"facecolor": WARNING, "edgecolor": "none", "boxstyle": "square,pad=0.45"}
    words: dict[str, Any] = {"ha": "center", "va": "center", "color": "white", "weight": "bold"}
    text = figure.text(0.45, 0.5, NOT_PRIVATE, fontsize=12, zorder=10, bbox=style, **words)
    text.set_in_layout(False)
    width = figure.get_figwidth() * figure.dpi
    text.set_fontsize(12 * 0.75 * width / text.get_window_extent().width)
