"""Rows by name: zones, categories, and every step of an axis.

Whatever is asked is a row of edges (htf.query.where). This module turns names into such rows, and tells what each row
is called: its labels on every level, and what the layer of zones says of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from htf.errors import InputError
from htf.frame.division import Part, names_of
from htf.frame.domain import Axis, Domain, FloatArray, IntArray
from htf.query.asked import AskedRows
from htf.query.frames import rectangles
from htf.query.shapes import need_shapely
from htf.query.where import show
from htf.release.zones import labels_of

MOST_ROWS = 1_000_000


def zone_axis(domain: Domain, name: str | None = None) -> int:
    """The place of the axis of zones, by default the first."""
    if name is not None and name in domain.names:
        number = domain.names.index(name)
        if domain.axes[number].names is not None:
            return number
        raise InputError(f"the cells of axis {name!r} have no names: give it a range, with --where")
    if not domain.zoned or name is not None:
        raise InputError(
            f"this release has no {'axis ' + repr(name) if name else 'zones'}: its axes are {', '.join(domain.names)}"
        )
    return domain.zoned[0]


def ask_names(asked: AskedRows, number: int, labels: Sequence[str]) -> AskedRows:
    """One row for each name along an axis, from the edges of all other axes."""
    if len(asked) != 1 or asked.columns:
        raise InputError("give boxes or names of zones, not both")
    domain = asked.domain
    names = names_of(domain.axes[number])
    ranges = np.array([names.range_of(label) for label in labels], dtype=np.float64)
    rows = np.repeat(asked.rows, len(labels), axis=0)
    rows[:, number], rows[:, domain.dimensions + number] = ranges.T
    return AskedRows(domain, rows, {domain.names[number]: list(labels)}, {number: 0})


def ask_by(asked: AskedRows, parts: Sequence[Part]) -> AskedRows:
    """Each row again for every label of the parts, in order: the last part changes fastest."""
    for part in parts:
        asked = _cross(asked, part)
    return asked


def as_column(values: Any) -> Any:
    """A column of a layer, as an array of Arrow: numbers or texts if all are, else texts."""
    import pyarrow as pa

    if not isinstance(values, list):
        return values
    try:
        return pa.array(values)
    except pa.ArrowException:
        return pa.array([None if value is None else str(value) for value in values])


def _cross(asked: AskedRows, part: Part) -> AskedRows:
    axis, number, size = asked.domain.axes[part.axis], part.axis, asked.domain.dimensions
    low, high = _steps(axis, part.level)
    edges = axis.from_cells(low), axis.from_cells(high)
    _check_whole(axis, asked.rows[:, [number, size + number]])
    if len(asked) * len(low) > MOST_ROWS:
        raise InputError(
            f"that would be {len(asked) * len(low):,} rows, but at most {MOST_ROWS:,} are allowed: ask for less at a time"
        )
    again = asked.take(np.repeat(np.arange(len(asked)), len(low)))
    rows = again.rows.copy()
    for place, ends in zip((number, size + number), edges, strict=True):
        rows[:, place] = np.tile(ends, len(asked))
    told = _told(axis, part.level, low, high)
    columns = _with(
        dict(again.columns), axis, {name: column * len(asked) for name, column in told.items()}
    )
    return replace(again, rows=rows, columns=columns, levels={**asked.levels, number: part.level})


def names_of_cells(domain: Domain, low: IntArray, high: IntArray) -> dict[str, list[Any]]:
    """What ranges of cells `[low, high)`, one row each, are called along every axis that has names."""
    found: dict[str, list[Any]] = {}
    for number, axis in enumerate(domain.axes):
        if axis.names is not None:
            found = _with(found, axis, _told(axis, 0, low[:, number], high[:, number]))
    return found


def _with(
    columns: dict[str, list[Any]], axis: Axis, told: dict[str, list[Any]]
) -> dict[str, list[Any]]:
    """The columns, and those of a further axis: the start and the end of a trip have the same layer."""
    free = {n if n not in columns else f"{axis.name} {n}": column for n, column in told.items()}
    return {**columns, **free}


def _check_whole(axis: Axis, ends: FloatArray) -> None:
    """An axis that gets a row for each of its steps is not cut as well."""
    if np.any(ends != [axis.low, axis.high]):
        raise InputError(
            f"counts by {axis.name!r} are of all of it: leave it out of --where, --zone and boxes"
        )


def _steps(axis: Axis, level: int) -> tuple[IntArray, IntArray]:
    """The cells of each label, or each cell."""
    edges = np.arange(axis.cells + 1) if axis.names is None else axis.names.edges(level)
    return edges[:-1], edges[1:]


def _told(axis: Axis, level: int, low: IntArray, high: IntArray) -> dict[str, list[Any]]:
    """What rows are called: labels of this level and those above, and on the lowest one all that the layer says."""
    if axis.names is None:
        ends = zip(axis.from_cells(low).tolist(), axis.from_cells(high).tolist(), strict=True)
        return {axis.name: [f"{show(a)} to {show(b)}" for a, b in ends]}
    found: dict[str, list[Any]] = {}
    for number, above in enumerate(axis.names.levels[level:], start=level):
        found[above.name] = labels_of(axis.names, number, low, high)
    if level == 0 and axis.names.outlines is not None:
        single = list(zip(low.tolist(), (high == low + 1).tolist(), strict=True))
        for name, values in axis.names.outlines.attributes:
            found.setdefault(name, [values[cell] if is_one else None for cell, is_one in single])
    return found


def shapes_of(domain: Domain, rows: FloatArray) -> Any:
    """A shape for each row: its zone, the line of its trips, or its rectangle on the map. Needs shapely."""
    need_shapely("A frame with shapes")
    if domain.zoned:
        return outlines_of(domain, rows)
    if not domain.has_map:
        raise InputError(
            f"shapes need a map with axes x and y, but this one has {', '.join(domain.names)}: use to_pandas()"
        )
    return rectangles(domain, rows)


def outlines_of(domain: Domain, rows: FloatArray) -> Any:
    """The outlines of rows along the axis of zones, joined where a row holds several; of flows, lines. Needs shapely."""
    shapely = need_shapely("A layer of zones")
    ends = [shapes_along(domain, rows, place) for place in domain.zoned[:2]]
    if len(ends) == 1:
        return ends[0]
    has_both = ~np.any([shapely.is_empty(end) for end in ends], axis=0)  # the rest has no place
    middles = [shapely.get_coordinates(shapely.point_on_surface(end[has_both])) for end in ends]
    lines = np.full(len(rows), shapely.LineString(), dtype=object)
    lines[has_both] = shapely.linestrings(np.stack(middles, axis=1))
    return lines


def shapes_along(domain: Domain, rows: FloatArray, place: int) -> Any:
    """The outlines of rows along one axis of zones, joined where a row holds several. Needs shapely."""
    shapely = need_shapely()
    outlines = names_of(domain.axes[place]).outlines
    assert outlines is not None
    shapes = shapely.from_wkb([shape or None for shape in outlines.shapes])
    shapes = np.where(shapely.is_missing(shapes), shapely.Polygon(), shapes)
    ranges = rows[:, [place, domain.dimensions + place]].astype(np.int64)
    of_range: dict[tuple[int, int], Any] = {}
    for low, high in map(tuple, np.unique(ranges, axis=0).tolist()):
        one = high == low + 1
        of_range[low, high] = shapes[low] if one else shapely.union_all(shapes[low:high])
    return np.array(
        [of_range[low, high] for low, high in map(tuple, ranges.tolist())], dtype=object
    )
