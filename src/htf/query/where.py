"""Boxes and ranges, made into full rows, for maps with any number of axes.

A box gives edges of the first two axes (W,S,E,N) or of all; `where` gives ranges of single axes, such
as `{"hour": (7, 10)}`, or names on them, such as `{"offence": "Assault"}`. An axis that neither names is taken whole. Only this module decides that:
counts, views and everything else that asks by place and range use it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from htf.base import arguments
from htf.errors import InputError
from htf.frame.axis import show
from htf.frame.domain import Axis, Domain, FloatArray

Where = Mapping[str, Sequence[float] | str]


def full_rows(
    domain: Domain, boxes: ArrayLike | None = None, where: Where | None = None
) -> FloatArray:
    """One row of 2 d numbers for each box: all low edges in the order of the axes, then all high.

    `boxes` is one box or many as rows. A box has 2 d numbers, or 4: W,S,E,N in the first two axes, while
    the others come from `where` or are taken whole. None means the whole map, once.
    """
    whole = full_ranges(domain, where).T.reshape(1, -1)
    if boxes is None:
        return whole
    rows = _as_rows(boxes, domain)
    _check_finite(rows)
    number = rows.shape[1] // 2  # of the axes that a box names itself
    columns = [*range(number), *range(domain.dimensions, domain.dimensions + number)]
    named = [axis.name for axis in domain.axes[:number]]
    twice = [name for name in read_where(where) if name in named]
    if twice:
        raise InputError(
            f"boxes of {rows.shape[1]} numbers name {', '.join(named)} themselves: leave "
            f"{', '.join(twice)} out of where, or give no boxes for the whole map"
        )
    full = np.repeat(whole, len(rows), axis=0)
    full[:, columns] = rows
    _check_order(domain, full)
    return full


def full_ranges(domain: Domain, where: Where | None = None) -> FloatArray:
    """The low and high end of each axis in map coordinates, from `where` or of the whole axis."""
    ranges = np.array([(axis.low, axis.high) for axis in domain.axes])
    for name, asked in read_where(where).items():
        number = axis_number(domain, name)
        ranges[number] = _read_range(domain.axes[number], asked)
    return ranges


def read_where(where: object) -> Where:
    """Ranges by the names of axes; none if `where` is None."""
    if where is None:
        return {}
    return arguments.mapping(where, "where", 'a dictionary such as {"hour": (7, 10)}')


def axis_number(domain: Domain, name: str) -> int:
    """The place of the axis of that name."""
    if arguments.text(name, "the name of an axis") not in domain.names:
        raise InputError(f"there is no axis {name!r:.100}: the map has {', '.join(domain.names)}")
    return domain.names.index(name)


def _check_order(domain: Domain, rows: FloatArray) -> None:
    """Refuse full rows that go down along an axis."""
    for number, axis in enumerate(domain.axes):
        low, high = rows[:, number], rows[:, number + domain.dimensions]
        wrong = np.flatnonzero(low > high)
        if len(wrong):
            row = wrong[0]
            raise InputError(
                f"the box in row {row} (counted from 0) goes along {axis.name} from {low[row]} "
                f"down to {high[row]}: are they swapped?"
            )


def _read_range(axis: Axis, asked: object) -> tuple[float, float]:
    name = axis.name
    if isinstance(asked, str):
        return axis.range_of(asked)
    ends = arguments.numbers(asked, f"a range of {name}") if _is_list(asked) else np.empty(0)
    if ends.shape != (2,):
        raise arguments.unfit(f"a range of {name}", "two numbers, low and high", asked)
    low, high = ends.tolist()
    said = f"{name} from {show(low)} to {show(high)}"
    if not (math.isfinite(low) and math.isfinite(high)):
        raise InputError(f"a range must be finite, got {said}")
    if low > high:
        around = f"{show(low)} to {show(axis.high)} and {show(axis.low)} to {show(high)}"
        raise InputError(
            f"a range goes up, got {said}: are they swapped? A range that goes around the end, such "
            f"as the hours of a night, is two ranges: query {around}, and add the counts"
        )
    if low == high:
        raise InputError(f"the range of {said} is empty: its high end is not part of it")
    if high <= axis.low or low >= axis.high:
        raise InputError(
            f"the range of {said} lies outside of the map, which goes from {show(axis.low)} to "
            f"{show(axis.high)}"
        )
    return low, high


def _is_list(value: object) -> bool:
    return isinstance(value, (Sequence, np.ndarray)) and not isinstance(value, (str, bytes))


def told_range(asked: Sequence[float] | str) -> str:
    """What `where` says of one axis, in words: `7 to 10`, or a name."""
    if isinstance(asked, str):
        return asked
    low, high = asked
    return f"{show(low)} to {show(high)}"


def told_where(where: Where) -> str:
    """A sentence for a rule on the ranges of further axes that were counted; empty if they were whole."""
    ranges = (f"{name} from {told_range(asked)}" for name, asked in where.items())
    return f" Counted: {', '.join(ranges)}." if where else ""


def show_range(axis: Axis, low: float, high: float, level: int | None = None) -> str:
    """The range along an axis; by name if it has one, on the level that was asked for or any."""
    if level is None and low <= axis.low and axis.high <= high:
        return "all"
    return axis.show_range(low, high, level or 0)


def _as_rows(boxes: ArrayLike, domain: Domain) -> FloatArray:
    sizes = sorted({4 if domain.has_map else 2 * domain.dimensions, 2 * domain.dimensions})
    form = f"{sizes[-1]} numbers, {_edge_names(domain, domain.dimensions)}"
    if len(sizes) > 1:
        form += f", or {sizes[0]}, {_edge_names(domain, 2)} with all of the other axes"
    try:
        rows = arguments.numbers(boxes, "boxes", public=True)
    except InputError as error:
        raise InputError(f"a box must be {form}: {error}") from None
    if rows.shape == (0,):
        return rows.reshape(0, sizes[-1])
    shape = rows.shape
    rows = rows[None] if rows.ndim == 1 else rows
    if rows.ndim != 2 or rows.shape[1] not in sizes:
        named = (
            "" if domain.has_map or not domain.outlined else "; ask for zones by --zone or --level"
        )
        raise InputError(f"a box must be {form}, got an array of shape {shape}{named}")
    return rows


def _edge_names(domain: Domain, number: int) -> str:
    names = domain.names[:number]
    return ", ".join(f"{edge} {name}" for edge in ("low", "high") for name in names)


def _check_finite(rows: FloatArray) -> None:
    wrong = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if len(wrong):
        shown = ", ".join(str(value) for value in rows[wrong[0]].tolist())
        raise InputError(
            f"edges of boxes must be finite, got {shown} in row {wrong[0]} (counted from 0)"
        )
