"""Draws the curve of a target: the typical error against epsilon, and where it meets the target."""

from __future__ import annotations

from typing import TYPE_CHECKING

from htf.base.figures import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from htf.forecasts.search import Found

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#4a545e"
SIZE = (7.0, 4.6)  # inches


def draw_curve(found: Found, quantity: str, footer: str) -> Figure:
    """The figure. Both axes are logarithmic, on which errors fall nearly along a line."""
    figure = new_figure(SIZE, layout="constrained")
    ax, target = figure.add_subplot(), found.target
    scale = 100 if target.is_relative else 1
    limit = scale * target.limit
    epsilons, errors = zip(*((float(e), scale * error) for e, error, _ in found.curve), strict=True)
    ax.plot(epsilons, errors, "o-", color=BLUE, label="simulated releases")
    ax.axhline(limit, color=GREY, linestyle="--", label=f"target: {target.told(quantity)}")
    if (best := found.epsilon) is not None:
        ax.plot([float(best)], [limit], "D", color=ORANGE, label=f"epsilon {best}", zorder=3)
    ylabel = f"typical error in {target.place}, {'%' if target.is_relative else quantity}"
    ax.set(xscale="log", yscale="log", xlabel="epsilon", ylabel=ylabel)
    _write_plain_numbers(ax)
    ax.grid(visible=True, which="both", alpha=0.25)
    ax.legend(frameon=False)
    ax.set_title(footer, fontsize=7, color=GREY, loc="left", wrap=True)
    return figure


def _write_plain_numbers(ax: Axes) -> None:
    """0.2 and not 2 x 10^-1, also between powers of ten where the axis is short."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 3, 5)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(FuncFormatter(lambda *_: ""))
