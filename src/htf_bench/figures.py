"""Draws the bench's figures with matplotlib, without a display. Each carries the marking."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from htf.base.figures import new_figure
from htf.files import write_whole
from htf.frame.domain import FloatArray
from htf_bench.results import CONSEQUENCE, WARNING, Results
from htf_bench.specs import HEIGHT, BenchSpec
from htf_bench.summary import Contender, Line, compare_all
from htf_bench.trials import NO_WORKLOAD

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which most colour-blind readers can tell apart.
COLOURS = ("#D55E00", "#E69F00", "#0072B2", "#56B4E9", "#009E73", "#CC79A7", "#000000")
MARKERS = ("o", "s", "^", "v", "D", "P", "X")
OURS = "#D55E00"
GREY = "#4a545e"
RED = "#c40018"
DOTS_PER_INCH = 130
RELATIVE_ERROR = "mean relative error, %"


class Point(NamedTuple):
    """One place on a curve: what was run, and where it stands along x."""

    x: float
    spec: BenchSpec
    epsilon: str


class Curve(NamedTuple):
    """A line of a panel. `own` stands alone, at the height that the mechanism chose itself."""

    label: str
    points: tuple[Point, ...]
    style: int
    own: tuple[BenchSpec, str] | None = None


class Panel(NamedTuple):
    """One plot of a figure."""

    title: str
    workload: str
    curves: tuple[Curve, ...]


class FigurePlan(NamedTuple):
    """The curves to draw, and thereby the trials to run."""

    name: str
    title: str
    x_label: str
    panels: tuple[Panel, ...]
    floor: tuple[BenchSpec, str]  # drawn as a line across every panel

    def pairs(self) -> list[tuple[BenchSpec, str]]:
        """Every mechanism and epsilon it shows."""
        curves = [curve for panel in self.panels for curve in panel.curves]
        shown = [(point.spec, point.epsilon) for curve in curves for point in curve.points]
        return [*shown, *(curve.own for curve in curves if curve.own is not None)]


def draw_curves(results: Results, data_set: str, plan: FigurePlan) -> Figure:
    """A panel each, with a logarithmic scale of its own; the last three are by query size."""
    number = len(plan.panels)
    columns = number if number <= 4 else 3
    rows = -(-number // columns)
    figure = new_figure((13, 3.6 * rows + 1.6), dpi=DOTS_PER_INCH)
    grid = figure.subplots(rows, columns, squeeze=False)
    spaces = list(grid.flat)
    used = spaces if number == len(spaces) else [*spaces[: number - 3], *spaces[-3:]]
    for axes in spaces:
        axes.set_visible(axes in used)
    for panel, axes in zip(plan.panels, used, strict=True):
        for curve in panel.curves:
            _draw_curve(axes, results, data_set, panel.workload, curve)
        _draw_floor(axes, results, data_set, panel.workload, plan.floor)
        axes.set_title(panel.title, fontsize=10, loc="left")
        _dress_log_scale(axes.yaxis, axes)
        ticks = sorted({point.x for curve in panel.curves for point in curve.points})
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.set_xlabel(plan.x_label, fontsize=9)
    for axes in grid[:, 0]:
        axes.set_ylabel(RELATIVE_ERROR, fontsize=9)
    labelled = [
        pair for axes in used for pair in zip(*axes.get_legend_handles_labels(), strict=True)
    ]
    handles = {label: handle for handle, label in sorted(labelled, key=lambda pair: str(pair[1]))}
    _add_frame(figure, f"{data_set}: {plan.title}", handles)
    return figure


def draw_dots(
    results: Results,
    panels: Sequence[tuple[str, str, str]],
    series: Sequence[str],
    entrants: Sequence[Contender],
    title: str,
    highlighted: str = "",
) -> Figure:
    """A panel for each (title, data set, workload), a row for each mechanism, a colour for each epsilon."""
    columns = min(len(panels), 4)
    rows = -(-len(panels) // columns)
    found = {
        (data_set, workload, epsilon): compare_all(results, data_set, epsilon, [workload], entrants)
        for _, data_set, workload in panels
        for epsilon in series
    }
    order = _order(found, entrants)
    size = 2.6 + 2.7 * columns, rows * (0.23 * len(order) + 0.9) + 1.6
    figure = new_figure(size, dpi=DOTS_PER_INCH)
    grid = figure.subplots(rows, columns, squeeze=False, sharey=True)
    for (name, data_set, workload), axes in zip(panels, grid.flat, strict=False):
        for number, epsilon in enumerate(series):
            offset = (number - (len(series) - 1) / 2) * 0.22
            colour = COLOURS[(2, 4, 0, 5, 1, 3)[number % 6]]
            lines = found[data_set, workload, epsilon]
            _draw_dots(axes, lines, order, offset, colour, f"ε = {epsilon}", highlighted)
        axes.set_title(name, fontsize=10, loc="left")
        axes.set_ylim(len(order) - 0.4, -0.6)
        _dress_log_scale(axes.xaxis, axes)
        axes.set_yticks(range(len(order)), order, fontsize=8.5)
    for axes in list(grid.flat)[len(panels) :]:
        axes.set_visible(False)
    for axes in grid[:, 0] if highlighted in order else ():
        axes.get_yticklabels()[order.index(highlighted)].set_fontweight("bold")
    handles = dict(zip(*reversed(grid[0, 0].get_legend_handles_labels()), strict=True))
    _add_frame(figure, title, handles if len(series) > 1 else {}, f"{RELATIVE_ERROR}, logarithmic")
    return figure


def save_figure(figure: Figure, path: Path) -> None:
    write_whole(path, lambda unfinished: figure.savefig(unfinished, format="png"), overwrite=True)


def _draw_floor(
    axes: Axes, results: Results, data_set: str, workload: str, floor: tuple[BenchSpec, str]
) -> None:
    values = results.values(data_set, *floor, workload)
    if len(values):
        mean = float(values.mean())
        axes.axhline(mean, label="zero: answering nothing", color=GREY, ls=":", lw=1.2, zorder=1)


def _draw_curve(axes: Axes, results: Results, data_set: str, workload: str, curve: Curve) -> None:
    colour, marker = COLOURS[curve.style % 7], MARKERS[curve.style % 7]
    found = [
        (point.x, values)
        for point in curve.points
        if len(values := results.values(data_set, point.spec, point.epsilon, workload))
    ]
    if found:
        # Moved aside a little, so that error bars do not hide one another.
        aside = 0.006 * (curve.style - 2) * (found[-1][0] - found[0][0])
        x = [place + aside for place, _ in found]
        means = np.array([values.mean() for _, values in found])
        spreads = _spreads(means, [values for _, values in found])
        look: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 5, "lw": 1.4}
        axes.errorbar(x, means, yerr=spreads, label=curve.label, capsize=2, **look)
    if curve.own is None:
        return
    values = results.values(data_set, *curve.own, workload)
    heights = results.values(data_set, *curve.own, NO_WORKLOAD, HEIGHT)
    if len(values) and len(heights):
        star: dict[str, Any] = {"marker": "*", "s": 170, "edgecolor": "black", "zorder": 5}
        label = f"{curve.label}, at its own height"
        axes.scatter([heights.mean()], [values.mean()], label=label, color=colour, **star)


def _spreads(means: FloatArray, values: Sequence[FloatArray]) -> FloatArray:
    """Error bars of one standard deviation, kept above zero for the logarithmic scale."""
    spread = np.array([v.std(ddof=1) if len(v) > 1 else 0.0 for v in values])
    return np.stack([np.minimum(spread, 0.9 * means), spread])


def _order(
    found: dict[tuple[str, str, str], list[Line]], entrants: Sequence[Contender]
) -> list[str]:
    """One order for all panels: by the mean rank."""
    ranks: dict[str, list[int]] = {}
    for lines in found.values():
        for rank, line in enumerate(lines):
            ranks.setdefault(line.contender.label, []).append(rank)
    labels = [entrant.label for entrant in entrants if entrant.label in ranks]
    return sorted(labels, key=lambda label: float(np.mean(ranks[label])))


def _draw_dots(
    axes: Axes,
    lines: Sequence[Line],
    order: Sequence[str],
    offset: float,
    colour: str,
    label: str,
    highlighted: str,
) -> None:
    for line in lines:
        values = line.values[0]
        mean, place = float(values.mean()), order.index(line.contender.label) + offset
        spread = _spreads(np.array([mean]), [values])
        is_ours = line.contender.label == highlighted
        axes.errorbar(
            [mean],
            [place],
            xerr=spread,
            color=OURS if is_ours else colour,
            marker="*" if is_ours else "o",
            markersize=11 if is_ours else 5,
            markerfacecolor="white" if line.contender.is_floor else None,
            capsize=2,
            lw=1,
            label=label if line is lines[0] else None,
        )
        height = line.chosen[0].height if line.chosen[0] is not None else None
        if len(line.contender.specs) > 1 and height is not None:
            axes.annotate(
                f"h {height}",
                (mean * (1 + spread[1, 0] / mean), place),
                xytext=(4, 0),
                textcoords="offset points",
                fontsize=6.5,
                color=GREY,
                va="center",
            )


def _dress_log_scale(axis: Any, axes: Axes) -> None:
    """Plain numbers at 1, 2 and 5, since most panels span less than two decades."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis._set_axes_scale("log")
    low, high = axis.get_view_interval()
    steps = (1.0,) if high / max(low, 1e-9) > 300 else (1.0, 2.0, 5.0)
    axis.set_major_locator(LogLocator(subs=steps))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axis.set_minor_formatter(NullFormatter())
    axes.tick_params(labelsize=8)
    axes.grid(alpha=0.25, which="major")
    axes.spines[["top", "right"]].set_visible(False)


def _add_frame(figure: Figure, title: str, handles: dict[str, Any], x_label: str = "") -> None:
    """Title above, legend and marking below, each with its own room in inches."""
    width, height = figure.get_size_inches()
    rows = -(-len(handles) // 4) if handles else 0
    below = 0.6 + 0.25 * rows + (0.25 if x_label else 0)
    figure.subplots_adjust(left=0.01, right=0.99)
    figure.tight_layout(rect=(0, below / height, 1, 1 - 0.42 / height), h_pad=1.6, w_pad=1.2)
    figure.text(0.012, 1 - 0.28 / height, title, fontsize=12, fontweight="bold", va="center")
    if x_label:
        place = (below - 0.08) / height
        figure.text(0.5, place, x_label, fontsize=9, ha="center", va="center", color=GREY)
    if handles:
        figure.legend(
            list(handles.values()),
            list(handles),
            loc="lower center",
            ncols=min(4, len(handles)),
            bbox_to_anchor=(0.5, 0.5 / height),
            frameon=False,
            fontsize=9,
        )
    lines = [WARNING, *textwrap.wrap(CONSEQUENCE, int(15 * width))]
    figure.text(
        0.5, 0.24 / height, "\n".join(lines), fontsize=8, color=RED, ha="center", va="center"
    )
