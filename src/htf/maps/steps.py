"""The places of layers in time, or along an axis: periods of a series, equal steps, or names. Public."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from htf.base import arguments
from htf.errors import InputError
from htf.frame.division import read_by
from htf.frame.domain import Domain
from htf.maps.zone_views import labels_within
from htf.query.where import Where, axis_number, full_ranges

MOST_PANELS = 24
FEWEST_PANELS = 6  # if whole cells would give fewer, ranges cut through cells
Step = tuple[str, tuple[float, float]]  # its name, and its ends along the axis


def steps_of(domain: Domain, by: str, where: Where | None) -> tuple[int, list[Step]]:
    """The number of an axis, and its steps within `where`: names, or equal parts."""
    arguments.text(by, "the axis of panels")
    if by in domain.names or not any(axis.levels for axis in domain.axes):
        axis_number(domain, by)  # refuses one that is not there
    part, *further = read_by(domain, by)
    if further:
        ways = " or ".join(f"{domain.names[one.axis]}:{by}" for one in (part, *further))
        raise InputError(f"panels are of one axis: write --by {ways}")
    axis = domain.axes[part.axis]
    if not axis.levels:
        ranges = panel_ranges(domain, by, where)
        return part.axis, [(f"{by} {low:.6g} to {high:.6g}", (low, high)) for low, high in ranges]
    low, high = labels_within(axis, part.level, full_ranges(domain, where)[part.axis])
    if len(low) > MOST_PANELS:
        raise InputError(
            f"{by!r} has {len(low):,} names, but a picture has room for {MOST_PANELS} panels: choose a higher level, "
            f"or a part of it with --where {axis.name}=NAME"
        )
    which = f"{axis.name} " if part.axis in domain.outlined else ""
    titles = [which + label for label in axis.labels(low, high, part.level)]
    ends = zip(low.astype(float).tolist(), high.astype(float).tolist(), strict=True)
    return part.axis, list(zip(titles, ends, strict=True))


def panel_ranges(domain: Domain, by: str, where: Where | None) -> list[tuple[float, float]]:
    """Equal steps of an axis, of whole cells if that gives enough steps."""
    axis = domain.axes[axis_number(domain, by)]
    low, high = np.clip(full_ranges(domain, where)[axis_number(domain, by)], axis.low, axis.high)
    cells = max(round((high - low) / axis.cell_width), 1)
    number = max(n for n in range(1, MOST_PANELS + 1) if cells % n == 0)
    number = number if number >= min(cells, FEWEST_PANELS) else MOST_PANELS // 2
    return list(pairwise(np.linspace(low, high, number + 1).tolist()))
