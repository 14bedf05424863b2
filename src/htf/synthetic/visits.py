"""Invented visits of invented people in the invented city: some have hundreds, most have a few.

Half of what someone visits is in one part of the city and half is anywhere, so that a person with many
visits makes that part look busier than it is; and what is lost when only some of them are kept is
not the same share everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from htf.frame.domain import FloatArray, IntArray
from htf.synthetic.city import synthetic_city

USUAL, SKEW = 5, 1.66  # visits of a person: log-normal, with this median; one in a hundred has 240
PARTS = 16  # of the city along each side
DAYS = 90


@dataclass(frozen=True, slots=True, eq=False)
class Visits:
    """Invented visits of invented people. `synthetic_visits` makes them.

    Attributes
    ----------
    x, y : ndarray of float
        Where each visit is, in degrees.
    person : ndarray of int
        Whose it is.
    time : ndarray of int
        When it is, in seconds since 1970.
    domain_bounds : (float, float, float, float)
        The public bounds: west, south, east, north.

    Examples
    --------
    >>> import htf
    >>> visits = htf.synthetic_visits(100, seed=1)
    >>> len(visits.person) == len(visits.time)
    True
    """

    x: FloatArray
    y: FloatArray
    person: IntArray
    time: IntArray
    domain_bounds: tuple[float, float, float, float]


def synthetic_visits(visits: int = 150_000, seed: int = 2021) -> Visits:
    """Invent visits in the invented city: some people have hundreds, most have a few.

    Parameters
    ----------
    visits : int
        How many.
    seed : int
        The same number and seed give the same visits.

    Returns
    -------
    Visits
        The visits and the public bounds.

    Raises
    ------
    InputError
        If there is not at least one visit.

    Examples
    --------
    >>> import htf
    >>> len(htf.synthetic_visits(1000, seed=7).x)
    1000
    """
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
