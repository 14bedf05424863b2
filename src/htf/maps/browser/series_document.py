"""A series as one HTML file that works without a network: a map for each period, and a slider through them.

All periods have one scale of colours. A second view shows the change since the period before, in squares that all periods
share, and colours only what is more than noise. Marks hold for all squares and periods of the file together, by the rule
of htf.query.change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from htf.base import arguments
from htf.estimation.level import OUTSIDE
from htf.estimation.noise_law import NORMAL_DEVIATIONS
from htf.frame.domain import Domain, FloatArray
from htf.maps.browser.document import (
    Wish,
    check_places,
    common_data,
    explained,
    frame_ring,
    how_to_read,
    packed_boxes,
    packed_numbers,
    packed_sheet,
    plane_of,
    write_page,
    zoom_of_squares,
)
from htf.maps.browser.rectangles import (
    MOST_RECTANGLES,
    Rectangles,
    pack,
    rectangles,
    squares_of,
    weighted_limits,
)
from htf.maps.comparison import Named, grids_to_compare, rows_of_grid, shared_grid
from htf.maps.plot import check_no_level
from htf.maps.scales import difference_limits
from htf.maps.series import name_of, releases_of, shown_for_all, told_periods
from htf.maps.views import describe_summed, drawn_axes
from htf.query.answer_texts import counts_of
from htf.query.question import Question
from htf.release.release import Release
from htf.series.series import Series

if TYPE_CHECKING:
    import pyarrow as pa

MOST_IN_SERIES = 4 * MOST_RECTANGLES  # of all periods: about 8 MB
MOST_SQUARES = 32  # per side: the more there are, the larger a change must be to be marked
MOST_GRIDS = 2
SQUARE_PIXELS = 28  # smaller squares show once they are as large on the screen
Squares = tuple[FloatArray, FloatArray]  # boxes, and their areas
ENTRY = "offline/series.js"


def html_series(series: Series, wish: Wish) -> str:
    """The text of the file for a series."""
    arguments.instance(series, Series, "series", "open one with htf.Series(folder)")
    arguments.instance(wish, Wish, "wish")
    check_no_level(wish.level)
    name, releases = name_of(series), releases_of(series)
    named = [Named(one, period) for period, one in releases.items()]
    check_places(named, wish)
    made = _rectangles(list(releases.values()), wish)
    latest = named[-1].release
    plane = plane_of(named)
    data = common_data([Named(latest, name)], [frame_ring(latest, wish, plane)], plane)
    found = [cells for cells, _ in made]
    data |= {"limits": weighted_limits(found), "period": series.plan.period}
    data["periods"] = [
        {"name": one.name, **packed_sheet(cells, one.release, data)}
        for one, cells in zip(named, found, strict=True)
    ]
    data["are_leaves"] = all(
        len(c.boxes) == len(one.release) for c, one in zip(found, named, strict=True)
    )
    data["changes"] = _changes(series, latest, wish, data) if len(named) > 1 else None
    shown = Named(shown_for_all(list(releases.values())), name)
    domain = latest.domain
    summed = describe_summed(domain, drawn_axes(domain, wish.axes), wish.where)
    subtitle = [told_periods(series, list(releases)), counts_of(latest.counted), summed]
    return write_page(
        [shown],
        wish,
        name,
        subtitle,
        data,
        [*_caption(data, [said for _, said in made]), *explained(named[-1:])],
        ENTRY,
        series.plan.told,
    )


def _rectangles(releases: list[Release], wish: Wish) -> list[tuple[Rectangles, str]]:
    most = min(MOST_RECTANGLES, MOST_IN_SERIES // len(releases))
    return [rectangles(one, wish.axes, wish.where, most) for one in releases]


def grids_of_changes(release: Release, wish: Wish) -> list[Domain]:
    """The squares in which periods are compared: large ones, and smaller ones for a closer look."""
    sizes = grids_to_compare(release, release, wish.axes, wish.where)
    kept = [one for one in sizes if max(one) <= MOST_SQUARES][-MOST_GRIDS:] or sizes[:1]
    return [shared_grid(release, release, size, wish.axes, wish.where) for size in kept]


def _changes(series: Series, latest: Release, wish: Wish, data: dict[str, Any]) -> dict[str, Any]:
    """Squares, their counts in both periods, and the changes between them. Squares of all sizes are asked about at once,
    so that marks hold for all of them together."""
    grids = grids_of_changes(latest, wish)

    rows = [rows_of_grid(latest, wish.axes, wish.where, grid) for grid in grids]
    table = series.ask(Question.boxes(np.vstack(rows))).changes().to_arrow()
    squares = [squares_of(grid) for grid in grids]
    number = sum(len(boxes) for boxes, _ in squares)
    starts = range(0, len(table), number)
    return {
        "grids": _packed_grids(grids, squares, table, latest, data),
        "periods": [_packed_change(table.slice(start, number)) for start in starts],
    }


def _packed_grids(
    grids: list[Domain],
    squares: list[Squares],
    table: pa.Table,
    latest: Release,
    data: dict[str, Any],
) -> list[dict[str, Any]]:
    """Where the squares of each size are, at which zoom they show, and where their colours end."""
    ring = np.array(data["panels"][0]["frames"][0])
    width = float(np.ptp(ring[:, 0]))
    zooms = [zoom_of_squares(width / grid.shape[0], SQUARE_PIXELS) for grid in grids]
    zooms = [0.0, *zooms[1:], 99.0]
    sizes = np.repeat(np.arange(len(grids)), [len(area) for _, area in squares])
    of_row = np.tile(sizes, len(table) // len(sizes))
    areas = np.tile(np.concatenate([area for _, area in squares]), len(table) // len(sizes))
    density, marks = _numbers(table, "change") / areas, _numbers(table, "beyond_noise")
    return [
        {
            **packed_boxes(boxes, latest, data),
            "area": pack(np.asarray(area, dtype=np.float32)),
            "limits": difference_limits(density[of_row == number], marks[of_row == number]),
            "zoom": zooms[number : number + 2],
        }
        for number, (boxes, area) in enumerate(squares)
    ]


def _packed_change(part: pa.Table) -> dict[str, Any]:
    """From one period to the next. The script subtracts one count from the other, so that all three agree."""
    low, high = _numbers(part, "low"), _numbers(part, "high")
    columns = {"first": _numbers(part, "after"), "second": _numbers(part, "before")}
    return {
        "since": part["since"][0].as_py(),
        **packed_numbers(
            columns | {"low": low, "high": high}, (high - low) / (2 * NORMAL_DEVIATIONS)
        ),
        "clear": pack(_numbers(part, "beyond_noise").astype(np.uint8)),
    }


def _numbers(table: pa.Table, name: str) -> Any:
    return table[name].to_numpy()


def _caption(data: dict[str, Any], words: list[str]) -> list[str]:
    kinds = [text.replace("of the release", "of each release") for text in dict.fromkeys(words)]
    if len(kinds) > 1:
        kinds = ["The rectangles are leaves, or squares where a release has too many."]
    said = [how_to_read(), "Move through time with the slider, the arrow keys, or “Play”.", *kinds]
    if data["changes"] is None:
        return said
    return [
        *said,
        "Changes are in squares, smaller ones as you zoom in, and only those that are more than noise have a colour. The "
        f"chance that any square of any {data['period']} is coloured without reason is at most {OUTSIDE * 100:g} %.",
    ]
