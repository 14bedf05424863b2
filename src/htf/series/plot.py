"""Pictures of counts over the periods of a series, with their intervals. Needs matplotlib."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from htf.base.figures import new_figure
from htf.estimation.level import LEVEL_TEXT
from htf.files import write_whole

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure

MOST_LINES = 8  # more cannot be told apart
MARKED, UNMARKED = "#b2182b", "#7f7f7f"


def draw_periods(
    table: pa.Table, path: Path, *, change: bool, named: str = "asked", overwrite: bool = False
) -> None:
    """Write the picture of a table of `htf.series.questions`. The column `named` says what was asked for."""
    figure = plot_periods(table, change=change, named=named)
    kind = path.suffix.lower().lstrip(".")
    write_whole(
        path,
        lambda unfinished: figure.savefig(unfinished, format=kind, dpi=150, bbox_inches="tight"),
        overwrite=overwrite,
    )


def plot_periods(table: pa.Table, *, change: bool = False, named: str = "asked") -> Figure:
    """One panel for each box: the count or the change over periods, with its interval."""
    every = list(dict.fromkeys(table[named].to_pylist()))
    labels = every[:MOST_LINES]
    periods = list(dict.fromkeys(table["period"].to_pylist()))
    size = max(6.4, 0.45 * len(periods) + 2), 1.8 * len(labels) + 1.0
    figure = new_figure(size, layout="constrained")
    panels = figure.subplots(len(labels), 1, sharex=True, squeeze=False)[:, 0]
    rows = table.to_pylist()
    for panel, label in zip(panels, labels, strict=True):
        mine = {row["period"]: row for row in rows if row[named] == label}
        _draw(panel, [mine[period] for period in periods], change)
        panel.set_title(label, loc="left", fontsize=10)
    panels[-1].set_xticks(range(len(periods)), periods, rotation=60 if len(periods) > 6 else 0)
    counted = rows[0]["counted"]
    what = "change since the period before" if change else counted
    figure.supylabel(what, fontsize=10)
    told = f"Bars: {LEVEL_TEXT} intervals" + (". Red: more than noise" if change else "")
    if len(every) > len(labels):
        told += f". The first {len(labels)} of {len(every):,}: name those that you want to see"
    figure.suptitle(told, fontsize=9)
    return figure


def _draw(panel: Any, rows: list[dict[str, Any]], change: bool) -> None:
    value = np.array([row["change" if change else "count"] for row in rows])
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
