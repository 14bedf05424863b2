"""A series as small multiples: one map for each period, with one scale of colours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from htf.base import arguments
from htf.errors import MissingExtraError
from htf.maps.plot import GREY, footer
from htf.maps.plot_panels import MOST_PANELS, draw_panels, draw_warning_across
from htf.maps.series import name_of, releases_of, shown_for_all, told_periods
from htf.maps.views import view
from htf.query.where import Where
from htf.series.series import Series

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PIXELS = 350  # per side of a panel


def plot_series(
    series: Series, *, axes: tuple[str, str] = ("x", "y"), where: Where | None = None
) -> Figure:
    """A panel for each period, or for the latest 24. Needs matplotlib."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("matplotlib", "plot", "Drawing a map") from error
    arguments.instance(series, Series, "series", "open one with htf.Series(folder)")
    found = releases_of(series)
    names = list(found)[-MOST_PANELS:]
    releases = [found[name] for name in names]
    seen = [view(one, axes, where, PIXELS) for one in releases]
    shown = shown_for_all(releases)
    figure = draw_panels(seen, names, shown.quantity)
    title = f"{name_of(series)}: {told_periods(series, names)}"
    if len(found) > len(names):
        title += f"\nthe latest {len(names)} of {len(found):,} {series.plan.period}s"
    figure.suptitle(title + (f"\n{seen[0].summed}" if seen[0].summed else ""), fontsize=12)
    figure.supxlabel(footer(shown, seen[0]), fontsize=8, color=GREY)
    if not shown.private:
        draw_warning_across(figure)
    return figure
