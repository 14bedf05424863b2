"""The table of different people of a release in one picture: a colour for each box of its grid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from htf.base import arguments
from htf.errors import MissingExtraError
from htf.frame.domain import Domain, FloatArray
from htf.maps.plot import (
    BLANK,
    claim,
    colour_limits,
    colours_of_density,
    draw_colour_bar,
    draw_frame,
    draw_outlines,
    draw_warning,
    is_wide,
    map_size,
    new_figure,
    shown_ratio,
    write_footer,
    write_in_the_middle,
)
from htf.maps.views import View, describe_summed, is_place
from htf.privacy.protection import explain_people
from htf.release.release import Release, check_release

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from htf.estimation.distinct import DistinctPeople

PER = "box"  # what numbers are for; they are not densities, because boxes do not add up


def plot_distinct(release: Release, *, boxes: bool = False) -> Figure:
    """Draw the table of different people that a release carries, box by box. Needs matplotlib.

    Colours are numbers of different people, not densities. Boxes whose interval reaches down to zero are left blank.

    Parameters
    ----------
    release : Release
        A release with a table of different people.
    boxes : bool
        Whether to add the outlines of the boxes.

    Returns
    -------
    matplotlib.figure.Figure
        Save it with its `savefig`.

    Raises
    ------
    InputError
        If the release has no such table.

    Examples
    --------
    >>> import htf
    >>> rides = {"lon": [0.5, 0.6, 1.5], "lat": [0.5, 0.4, 1.5], "rider": ["a", "a", "b"]}
    >>> domain = htf.Domain.from_bounds(0, 0, 2, 2, cells=2)
    >>> people = htf.read_people_by_box(rides, domain, 2, user="rider")
    >>> distinct = htf.measure_distinct(people, 1, noise="seeded:1")
    >>> matrix = htf.read_points(rides, domain, user="rider")
    >>> release = htf.publish(matrix, 2, bought=[distinct], noise="seeded:2")
    >>> htf.plot_distinct(release).savefig("distinct.png")
    """
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("matplotlib", "plot", "Drawing a map") from error
    check_release(release)
    arguments.flag(boxes, "boxes")
    table, seen = release.count_distinct(), _frame(release)
    ax = new_figure(map_size(seen)).add_subplot()
    image = _draw_boxes(ax, seen, table)
    if boxes:
        edges = np.column_stack([table.west, table.south, table.east, table.north])
        draw_outlines(ax, edges)
    if np.any(table.low > 0):
        draw_colour_bar([ax], image, seen, table.quantity, is_below=is_wide(seen), unit=PER)
    else:
        write_in_the_middle(ax, "nothing rises above the noise")
    draw_frame(ax, heading(release, table), seen)
    words = claim(release, table.quantity, seen, explain_people(table.quantity))
    write_footer(ax, words, is_own_figure=True)
    if not release.private:
        draw_warning(ax)
    return ax.figure.figure


def heading(release: Release, table: DistinctPeople) -> str:
    """What the table is, for a title."""
    columns, rows = (len(edges) - 1 for edges in _edges(table))
    return f"{table.quantity} in {columns} x {rows} boxes,  ε = {release.epsilon}"


def _edges(table: DistinctPeople) -> tuple[FloatArray, FloatArray]:
    """The lines between the boxes, along both axes."""
    first, second = (
        np.append(np.unique(low), high.max())
        for low, high in ((table.west, table.east), (table.south, table.north))
    )
    return first, second


def _frame(release: Release) -> View:
    """A view without counts, which is needed for its frame."""
    domain = release.domain
    drawn, one = Domain(domain.axes[:2], domain.crs), np.zeros((1, 1))
    return View(
        domain=drawn,
        cells=(drawn.shape[0], drawn.shape[1]),
        is_place=is_place(domain, (0, 1)),
        counts=one,
        noise=one.copy(),
        is_clear=np.zeros((1, 1), dtype=bool),
        summed=describe_summed(domain, (0, 1), None),
    )


def _draw_boxes(ax: Axes, seen: View, table: DistinctPeople) -> Any:
    """Boxes may differ by a cell, so they are no pixels of an image."""
    from matplotlib.colors import LogNorm

    columns, rows = _edges(table)
    visible = np.where(table.low > 0, table.different_people, np.nan)
    limits = colour_limits(visible)
    values = np.clip(visible, *limits).reshape(len(columns) - 1, len(rows) - 1).T
    image = ax.pcolormesh(columns, rows, values, cmap=colours_of_density(), norm=LogNorm(*limits))
    ax.set_facecolor(BLANK)
    x, y = seen.domain.axes
    ax.set_aspect(shown_ratio(seen) * (x.high - x.low) / (y.high - y.low))
    return image
