"""Invented visits of invented people in the invented city: some have hundreds, most have a few.

Half of what someone visits is in one part of the city and half is anywhere, so that a person with many
visits makes that part look busier than it is; and what is lost when only some of them are kept is
not the same share everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from htf.evaluation.synthetic import synthetic_city
from htf.frame.domain import FloatArray, IntArray

USUAL, SKEW = 5, 1.66  # visits of a person: log-normal, with this median; one in a hundred has 240
PARTS = 16  # of the city along each side
DAYS = 90


@dataclass(frozen=True, slots=True, eq=False)
class Visits:
    """One entry a visit: where in degrees, whose, and when in seconds since 1970; and the public box."""

    x: FloatArray
    y: FloatArray
    person: IntArray
    time: IntArray
    domain_bounds: tuple[float, float, float, float]


def synthetic_visits(visits: int = 150_000, seed: int = 2021) -> Visits:
    """Invented visits; the same for the same number and seed."""
    city = synthetic_city(visits, seed)
    generator = np.random.default_rng([seed, 2])
    # Visits in the order of parts of the city, half of them in any: each person has the next few.
    west, south, east, north = city.domain_bounds
    column = np.clip((city.x - west) / (east - west) * PARTS, 0, PARTS - 1).astype(np.int64)
    row = np.clip((city.y - south) / (north - south) * PARTS, 0, PARTS - 1).astype(np.int64)
    part = column * PARTS + row
    stray = generator.random(visits) < 0.5
    part[stray] = generator.permutation(part[stray])
    order = np.lexsort((generator.random(visits), part))
    each = np.ceil(generator.lognormal(np.log(USUAL), SKEW, visits)).astype(np.int64)
    person = np.repeat(np.arange(visits), np.minimum(each, visits))[:visits]
    time = generator.integers(0, DAYS * 24 * 3600, visits)
    return Visits(city.x[order], city.y[order], person, time, city.domain_bounds)
