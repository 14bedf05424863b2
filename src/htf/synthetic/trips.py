"""Invented trips in the invented city: where and at what hour they begin, and where they end.

Both ends are visits of `synthetic_city`. Far from the centre trips begin in the morning rather than in the evening,
and most are short: so hour and place depend on each other, as do the two ends, as in a real city.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from htf.frame.domain import KM_PER_DEGREE, FloatArray
from htf.synthetic.city import DISTRICTS, KM_PER_DEGREE_EAST, synthetic_city, to_degrees

CHOICES = 6  # places that a trip may go to
USUAL_KM = 2.5  # how fast nearer ones are preferred


@dataclass(frozen=True, slots=True, eq=False)
class Trips:
    """Invented trips. `synthetic_trips` makes them.

    Attributes
    ----------
    x, y : ndarray of float
        Where each trip begins, in degrees.
    dest_x, dest_y : ndarray of float
        Where it ends.
    hour : ndarray of float
        When it begins, in hours since midnight.
    domain_bounds : (float, float, float, float)
        The public bounds: west, south, east, north.

    Examples
    --------
    >>> import htf
    >>> trips = htf.synthetic_trips(100, seed=1)
    >>> bool((trips.hour < 24).all())
    True
    """

    x: FloatArray
    y: FloatArray
    dest_x: FloatArray
    dest_y: FloatArray
    hour: FloatArray
    domain_bounds: tuple[float, float, float, float]


def synthetic_trips(trips: int = 250_000, seed: int = 2021) -> Trips:
    """Invent trips in the invented city, with the hour and the destination.

    Parameters
    ----------
    trips : int
        How many.
    seed : int
        The same number and seed give the same trips.

    Returns
    -------
    Trips
        The trips and the public bounds.

    Raises
    ------
    InputError
        If there is not at least one trip.

    Examples
    --------
    >>> import htf
    >>> len(htf.synthetic_trips(1000, seed=7).dest_x)
    1000
    """
    city = synthetic_city(trips, seed)
    generator = np.random.default_rng([seed, 1])
    choices = generator.integers(0, trips, (CHOICES, trips))
    preference = generator.gumbel(size=choices.shape)
    preference -= _km(city.x[choices] - city.x, city.y[choices] - city.y) / USUAL_KM
    goal = np.take_along_axis(choices, preference.argmax(axis=0)[None], axis=0)[0]
    centre = DISTRICTS[0]
    east, north = to_degrees(np.array(centre.east), np.array(centre.north))
    in_morning = 0.1 + 0.6 / (1 + np.exp(3.0 - _km(city.x - east, city.y - north)))
    hour = draw_hours(generator, in_morning)
    return Trips(city.x, city.y, city.x[goal], city.y[goal], hour, city.domain_bounds)


def draw_hours(generator: np.random.Generator, in_morning: FloatArray) -> FloatArray:
    """In the morning, in the evening, or at any hour of the day."""
    number = len(in_morning)
    kind = generator.random(number)
    morning, evening = generator.normal(8, 1, number), generator.normal(18, 1.6, number)
    peak = np.where(kind < in_morning, morning, evening)
    return np.asarray(np.where(kind > 0.85, generator.uniform(0, 24, number), peak) % 24)


def _km(degrees_east: FloatArray, degrees_north: FloatArray) -> FloatArray:
    return np.asarray(np.hypot(degrees_east * KM_PER_DEGREE_EAST, degrees_north * KM_PER_DEGREE))
