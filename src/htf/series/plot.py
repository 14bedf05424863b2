"""Pictures of counts over the periods of a series, with their intervals. Needs matplotlib."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from htf.base.figures import new_figure
from htf.estimation.level import LEVEL_TEXT
from htf.files import write_whole
from htf.query.answer import PERIOD
from htf.query.columns import CHANGES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from htf.query.answer import Answer

SHOWN = ("change", "mean", "count")  # the first of these columns that an answer has
MOST_LINES = 8  # more cannot be told apart
MARKED, UNMARKED = "#b2182b", "#7f7f7f"


def draw_periods(answer: Answer, path: Path, *, overwrite: bool = False) -> None:
    """Write the picture of the answer of a series."""
    figure = plot_periods(answer)
    kind = path.suffix.lower().lstrip(".")
    write_whole(
        path,
        lambda unfinished: figure.savefig(unfinished, format=kind, dpi=150, bbox_inches="tight"),
        overwrite=overwrite,
    )


def plot_periods(answer: Answer) -> Figure:
    """One panel for each box: the count or the change over periods, with its interval."""
    change, number = answer.kind == CHANGES, len(answer.periods[PERIOD])
    periods = list(dict.fromkeys(answer.periods[PERIOD]))
    every = number // len(periods)
    shown = min(every, MOST_LINES)
    labels = [" ".join(parts) for parts in zip(*_headed(answer.take(slice(shown))), strict=True)]
    size = max(6.4, 0.45 * len(periods) + 2), 1.8 * shown + 1.0
    figure = new_figure(size, layout="constrained")
    panels = figure.subplots(shown, 1, sharex=True, squeeze=False)[:, 0]
    for place, panel in enumerate(panels):
        _draw(panel, answer.take(slice(place, None, every)).to_dicts(), change)
        panel.set_title(labels[place], loc="left", fontsize=10)
    panels[-1].set_xticks(range(len(periods)), periods, rotation=60 if len(periods) > 6 else 0)
    what = "change since the period before" if change else answer.counted
    figure.supylabel(what, fontsize=10)
    told = f"Bars: {LEVEL_TEXT} intervals" + (". Red: more than noise" if change else "")
    if every > shown:
        told += f". The first {shown} of {every:,}: name those that you want to see"
    figure.suptitle(told, fontsize=9)
    return figure


def _headed(answer: Answer) -> list[list[str]]:
    """What the rows are about, without their periods."""
    return [texts for name, texts in answer.named if name not in answer.periods]


def _draw(panel: Any, rows: list[dict[str, Any]], change: bool) -> None:
    value = np.array([row[next(name for name in SHOWN if name in row)] for row in rows])
    below, above = (
        np.maximum(value - [row["low"] for row in rows], 0),
        np.maximum(np.array([row["high"] for row in rows]) - value, 0),
    )
    for place, row in enumerate(rows):
        colour = MARKED if change and row["beyond_noise"] else UNMARKED if change else "C0"
        panel.errorbar(
            place, value[place], [[below[place]], [above[place]]],
            fmt="o", capsize=3, color=colour, markersize=4,
        )  # fmt: skip
    if change:
        panel.axhline(0, color="black", linewidth=0.8)
    else:
        panel.plot(range(len(rows)), value, color="C0", linewidth=1, alpha=0.6)
        panel.set_ylim(bottom=0)
    panel.grid(axis="y", alpha=0.3)
