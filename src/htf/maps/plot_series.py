"""A series as small multiples: one map for each period, with one scale of colours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from htf.base import arguments
from htf.errors import InputError, MissingExtraError
from htf.maps.plot import GREY, footer
from htf.maps.plot_panels import MOST_PANELS, draw_panels, draw_warning_across
from htf.maps.plot_zones import draw_zone_panels, frame_of, layer_of
from htf.maps.series import name_of, releases_of, shown_for_all, told_periods
from htf.maps.views import view
from htf.query.where import Where
from htf.release.release import Release
from htf.series.series import Series

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PIXELS = 350  # per side of a panel


def plot_series(
    series: Series,
    *,
    axes: tuple[str, str] = ("x", "y"),
    where: Where | None = None,
    level: str | None = None,
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
    if series.plan.of_zones:
        return _plot_zones(series, releases, names, len(found), level)
    if level is not None:
        raise InputError("this series is of a map, which has no levels: leave out the level")
    seen = [view(one, axes, where, PIXELS) for one in releases]
    shown = shown_for_all(releases)
    figure = draw_panels(seen, names, shown.quantity)
    title = _title(series, names, len(found))
    figure.suptitle(title + (f"\n{seen[0].summed}" if seen[0].summed else ""), fontsize=12)
    figure.supxlabel(footer(shown, seen[0]), fontsize=8, color=GREY)
    if not shown.private:
        draw_warning_across(figure)
    return figure


def _title(series: Series, names: list[str], number: int) -> str:
    title = f"{name_of(series)}: {told_periods(series, names)}"
    if number > len(names):
        title += f"\nthe latest {len(names)} of {number:,} {series.plan.period}s"
    return title


def _plot_zones(
    series: Series, releases: list[Release], names: list[str], number: int, level: str | None
) -> Figure:
    """The zones of a level in a panel for each period."""
    layers = [layer_of(one, level, None) for one in releases]
    shown = shown_for_all(releases)
    seen = frame_of(series.plan.domain, layers[0].shapes, "")
    figure = draw_zone_panels(series.plan.domain, layers, names, shown.quantity)
    figure.suptitle(_title(series, names, number), fontsize=12)
    figure.supxlabel(footer(shown, seen), fontsize=8, color=GREY)
    if not shown.private:
        draw_warning_across(figure)
    return figure
