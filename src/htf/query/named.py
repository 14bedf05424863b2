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
from htf.frame.division import Part
from htf.frame.domain import Axis, Domain, IntArray
from htf.query.asked import AskedRows

MOST_ROWS = 1_000_000


def zone_axis(domain: Domain, name: str | None = None) -> int:
    """The place of the axis of zones, by default the first."""
    if name is not None and name in domain.names:
        number = domain.names.index(name)
        if domain.axes[number].levels:
            return number
        raise InputError(f"the cells of axis {name!r} have no names: give it a range, with --where")
    if not domain.outlined or name is not None:
        raise InputError(
            f"this release has no {'axis ' + repr(name) if name else 'zones'}: its axes are {', '.join(domain.names)}"
        )
    return domain.outlined[0]


def ask_names(asked: AskedRows, number: int, labels: Sequence[str]) -> AskedRows:
    """One row for each name along an axis, from the edges of all other axes."""
    if len(asked) != 1 or asked.columns:
        raise InputError("give boxes or names of zones, not both")
    domain = asked.domain
    axis = domain.axes[number]
    ranges = np.array([axis.range_of(label) for label in labels], dtype=np.float64)
    rows = np.repeat(asked.rows, len(labels), axis=0)
    rows[:, number], rows[:, domain.dimensions + number] = ranges.T
    return AskedRows(domain, rows, {axis.name: list(labels)}, {number: 0})


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
    steps = part.edges(asked.domain)
    low, high = steps[:-1], steps[1:]
    edges = axis.from_cells(low), axis.from_cells(high)
    if np.any(asked.rows[:, [number, size + number]] != [axis.low, axis.high]):
        raise InputError(
            f"`--by {axis.name}` counts every {axis.name}: leave it out of --where, --zone and boxes{_other_end(asked, part)}"
        )
    if len(asked) * len(low) > MOST_ROWS:
        raise InputError(
            f"that would be {len(asked) * len(low):,} rows, but at most {MOST_ROWS:,} are allowed: ask for less at a time"
        )
    again = asked.take(np.repeat(np.arange(len(asked)), len(low)))
    rows = again.rows.copy()
    for place, ends in zip((number, size + number), edges, strict=True):
        rows[:, place] = np.tile(ends, len(asked))
    of_steps = axis.columns(low, high, part.level).items()
    columns = _with(dict(again.columns), axis, {n: column * len(asked) for n, column in of_steps})
    return replace(again, rows=rows, columns=columns, levels={**asked.levels, number: part.level})


def _other_end(asked: AskedRows, part: Part) -> str:
    """How to fix one end of trips, and count by the other."""
    others = [number for number in asked.domain.outlined if number != part.axis]
    if part.axis not in asked.domain.outlined or not others:
        return ""
    other = asked.domain.axes[others[0]]
    return f", or count by the other end alone, as in --level {other.name}:{other.levels[-1].name}"


def names_of_cells(domain: Domain, low: IntArray, high: IntArray) -> dict[str, list[Any]]:
    """What ranges of cells `[low, high)`, one row each, are called along every axis that has names."""
    found: dict[str, list[Any]] = {}
    for number, axis in enumerate(domain.axes):
        if axis.levels:
            found = _with(found, axis, axis.columns(low[:, number], high[:, number]))
    return found


def _with(
    columns: dict[str, list[Any]], axis: Axis, further: dict[str, list[Any]]
) -> dict[str, list[Any]]:
    """The columns, and those of a further axis: the start and the end of a trip have the same layer."""
    free = {n if n not in columns else f"{axis.name} {n}": column for n, column in further.items()}
    return {**columns, **free}
