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
    number = read_by(domain, by)[0].axis
    steps = named_ranges(domain, by, where)
    if steps is None:
        ranges = panel_ranges(domain, by, where)
        steps = [(f"{by} {low:.6g} to {high:.6g}", (low, high)) for low, high in ranges]
    elif len(steps) > MOST_PANELS:
        raise InputError(
            f"{by!r} has {len(steps):,} names, but a picture has room for {MOST_PANELS} panels: choose a higher level, "
            f"or a part of it with --where {domain.names[number]}=NAME"
        )
    return number, steps


def named_ranges(domain: Domain, by: str, where: Where | None) -> list[Step] | None:
    """Each name of a level or an axis that lies in `where`, with its cells; None if its cells have no names."""
    parts = read_by(domain, by)
    if len(parts) > 1:
        ways = " or ".join(f"{domain.names[part.axis]}:{by}" for part in parts)
        raise InputError(f"panels are of one axis: write --by {ways}")
    axis, level = domain.axes[parts[0].axis], parts[0].level
    if not axis.levels:
        return None
    low, high = labels_within(axis, level, full_ranges(domain, where)[parts[0].axis])
    which = f"{axis.name} " if parts[0].axis in domain.outlined else ""
    titles = [which + label for label in axis.labels(low, high, level)]
    ends = [(float(a), float(b)) for a, b in zip(low, high, strict=True)]
    return list(zip(titles, ends, strict=True))


def panel_ranges(domain: Domain, by: str, where: Where | None) -> list[tuple[float, float]]:
    """Equal steps of an axis, of whole cells if that gives enough steps."""
    axis = domain.axes[axis_number(domain, by)]
    low, high = np.clip(full_ranges(domain, where)[axis_number(domain, by)], axis.low, axis.high)
    cells = max(round((high - low) / axis.cell_width), 1)
    number = max(n for n in range(1, MOST_PANELS + 1) if cells % n == 0)
    number = number if number >= min(cells, FEWEST_PANELS) else MOST_PANELS // 2
    return list(pairwise(np.linspace(low, high, number + 1).tolist()))
