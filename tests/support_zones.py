"""A small layer of made-up zones, and releases of it."""

from __future__ import annotations

import numpy as np
import shapely

from htf import Axis, Domain, FrequencyMatrix, Names, Release, publish
from htf.frame.crs import CRS84
from htf.frame.names import Outlines

TRACTS = [f"t{n}" for n in range(9)]
DISTRICTS = ["North", "North", "North", "South", "South", "South", "East", "East", "East"]


def squares(number: int = 9) -> tuple[bytes, ...]:
    """Unit squares in rows of three, as well-known binary."""
    boxes = [shapely.box(n % 3, n // 3, n % 3 + 1, n // 3 + 1) for n in range(number)]
    return tuple(shapely.to_wkb(box, byte_order=1) for box in boxes)


def zones(rest: str | None = None) -> Names:
    """Nine tracts in three districts; with a `rest`, that has no outline."""
    more = 0 if rest is None else 1
    attributes = (
        ("dwellings", (*range(9), *[None] * more)),
        ("mayor", (*[f"M{n}" for n in range(9)], *[None] * more)),
    )
    outlines = Outlines(squares() + (b"",) * more, attributes)
    return Names.of({"tract": TRACTS, "district": DISTRICTS}, rest=rest, outlines=outlines)


def zone_domain(*further: Axis, rest: str | None = None) -> Domain:
    return Domain((Axis.named("zone", zones(rest)), *further), CRS84)


def zone_release(
    domain: Domain, mechanism: str = "singular", seed: int = 1, epsilon: float | str = 1
) -> Release:
    """Of counts that grow with the number of the cell."""
    counts = np.arange(domain.size).reshape(domain.shape) * 10
    matrix = FrequencyMatrix.from_dense(domain, counts)
    return publish(matrix, epsilon, mechanism, noise=f"seeded:{seed}")
