"""A small made-up layer: twelve tracts in three districts, and releases of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import shapely

from htf import Domain, FrequencyMatrix, Names, Release, publish
from htf.frame.crs import CRS84
from htf.frame.domain import Axis
from htf.frame.names import Outlines

WEST, SOUTH, SIDE = 4.0, 52.0, 0.1
COLUMNS, ROWS = 6, 2  # a district has two columns
COUNTS = np.array([900, 40, 0, 120, 300, 0, 700, 80, 60, 0, 500, 20])


def squares(side: float = SIDE) -> Any:
    """The tracts, column after column from the west."""
    column, row = np.divmod(np.arange(COLUMNS * ROWS), ROWS)
    west, south = WEST + side * column, SOUTH + side * row
    return shapely.box(west, south, west + side, south + side)


def layer(rest: str | None = None, side: float = SIDE) -> Names:
    shapes = tuple(shapely.to_wkb(one, byte_order=1) for one in squares(side))
    number = np.arange(COLUMNS * ROWS)
    columns = {
        "tract": [f"Tract {n + 1:02}" for n in number],
        "district": [f"District {n // 4 + 1}" for n in number],
    }
    dwellings = (("dwellings", tuple(range(len(number) + (rest is not None)))),)
    return Names.of(
        columns, rest=rest, outlines=Outlines(shapes + ((b"",) if rest else ()), dwellings)
    )


OFFENCES = Names.of(
    {"offence": ["Assault", "Robbery", "Theft"], "group": ["Violent", "Violent", "Property"]}
)


def zoned(
    kind: str = "plain",
    crs: str | None = CRS84,
    noise: str = "seeded:1",
    seed: int = 1,
    **options: Any,
) -> Release:
    """A release of tracts; with hours, offences, the rest, or of trips between tracts."""
    names = layer("elsewhere" if kind == "rest" else None, **options)
    zone, generator = Axis.named("zone", names), np.random.default_rng(seed)
    further: dict[str, tuple[Axis, ...]] = {
        "hours": (Axis("hour", 0, 24, 4),),
        "kinds": (Axis.named("offence", OFFENCES),),
        "trips": (Axis.named("dest_zone", names),),
    }
    domain = Domain((zone, *further.get(kind, ())), crs)
    counts = np.append(COUNTS, 55) if kind == "rest" else COUNTS
    if kind == "trips":
        dense = np.outer(COUNTS, COUNTS) // 1000
    elif domain.dimensions == 2:
        dense = generator.multinomial(COUNTS, np.full(domain.shape[1], 1 / domain.shape[1]))
    else:
        dense = counts
    return publish(FrequencyMatrix.from_dense(domain, dense), "1", "hb", noise=noise)


def boxes_with_offences() -> Release:
    """A map of boxes whose third axis has names."""
    place = (Axis("x", 4.0, 5.0, 8), Axis("y", 52.0, 52.6, 8))
    domain = Domain((*place, Axis.named("offence", OFFENCES)), CRS84)
    counts = np.random.default_rng(2).poisson(40, domain.shape)
    return publish(FrequencyMatrix.from_dense(domain, counts), "1", "hb", noise="seeded:1")
