"""An invented coastal city: points for demonstrations and benchmarks that belong to nobody.

The geography is fixed: a shore with a harbour, islands and a river, districts with streets of their
own, main roads, parks. A seed draws the *places* of the city, such as houses, shops and stops, and
then the points, each a visit to one of them. Places are unequal, as real ones are, so that
counts have a long tail; and their number does not follow that of the points, so that ten times
the points is the same city seen for longer, not a city ten times as full.

Distances are in kilometres east and north of the south-west corner of the box, up to the end, where
they become degrees.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from htf.base import arguments
from htf.errors import InputError
from htf.frame.domain import KM_PER_DEGREE, FloatArray

SIDE_KM = 30.0
# In the open Atlantic, so that nobody takes it for a real city.
LONGITUDE, LATITUDE = -30.0, 40.0
KM_PER_DEGREE_EAST = KM_PER_DEGREE * math.cos(math.radians(LATITUDE))
BOUNDS = (
    LONGITUDE - SIDE_KM / 2 / KM_PER_DEGREE_EAST,
    LATITUDE - SIDE_KM / 2 / KM_PER_DEGREE,
    LONGITUDE + SIDE_KM / 2 / KM_PER_DEGREE_EAST,
    LATITUDE + SIDE_KM / 2 / KM_PER_DEGREE,
)
OVERHANG_KM = 1.5  # the country goes on beyond the box, as it does around a real one
MOST_TRIES = 50
POINTS_AT_A_TIME = 1_000_000  # bounds the memory for passing values

BoolArray = NDArray[np.bool_]
Positions = tuple[FloatArray, FloatArray]


@dataclass(frozen=True, slots=True, eq=False)
class CityPoints:
    """Invented points of a coastal city. `synthetic_city` makes one.

    Attributes
    ----------
    x, y : ndarray of float
        Longitudes and latitudes.
    domain_bounds : (float, float, float, float)
        The public bounds: west, south, east, north.

    Examples
    --------
    >>> import htf
    >>> city = htf.synthetic_city(100, seed=1)
    >>> htf.Domain.from_bounds(*city.domain_bounds, cells=64).shape
    (64, 64)
    """

    x: FloatArray
    y: FloatArray
    domain_bounds: tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class _Patch:
    """A turned rectangle, or a turned ellipse with an uneven edge; sizes are half ones."""

    east: float
    north: float
    along: float
    across: float
    degrees: float = 0.0
    is_round: bool = True

    def covers(self, east: FloatArray, north: FloatArray) -> BoolArray:
        east, north = east - self.east, north - self.north
        reach = self.along + self.across
        covered = (np.abs(east) < reach) & (np.abs(north) < reach)
        # Most points are far off: the costly part is for the few that are near.
        along, across = _turn(east[covered], north[covered], -self.degrees)
        covered[covered] = self._covers_scaled(along / self.along, across / self.across)
        return np.asarray(covered)

    def _covers_scaled(self, along: FloatArray, across: FloatArray) -> BoolArray:
        if not self.is_round:
            return np.asarray(np.maximum(np.abs(along), np.abs(across)) <= 1)
        edge = 0.9 + 0.15 * np.sin(3 * along + self.north) * np.cos(4 * across + self.east)
        return np.asarray(along**2 + across**2 <= edge)


@dataclass(frozen=True, slots=True)
class _District:
    """A centre whose places stand along streets of its own direction and block size."""

    east: float
    north: float
    along: float  # one standard deviation
    across: float
    degrees: float
    block: float
    places: int
    visits: float  # share of all points
    scatter: float = 0.004  # how far places stand from the line of their street


@dataclass(frozen=True, slots=True)
class _Road:
    """A main road through `stops`, drawn as a smooth curve; busiest near its first stop."""

    stops: tuple[tuple[float, float], ...]
    places: int
    visits: float
    fading: float = 0.6  # 0: equally busy all along


@dataclass(frozen=True, slots=True)
class _Places:
    """Where places are, the share of visits that each has, and how far visits lie around it."""

    east: FloatArray
    north: FloatArray
    share: FloatArray
    spread: FloatArray


ISLANDS = (
    _Patch(7.4, 4.6, 1.7, 0.7, 20),
    _Patch(21.5, 3.1, 0.8, 0.5, -30),
    _Patch(22.9, 2.3, 0.35, 0.25),
)
HARBOUR = _Patch(13.6, 8.6, 2.0, 1.1, 25)
PIERS = tuple(_Patch(12.5 + 0.42 * i, 9.35 + 0.12 * i, 0.07, 0.42, -8, False) for i in range(5))
LAKE = _Patch(22.6, 24.4, 1.5, 0.6, 35)
PARKS = (
    _Patch(16.0, 13.3, 0.85, 0.38, 24, False),
    _Patch(11.3, 13.6, 0.55, 0.4, 10),
    _Patch(19.9, 11.2, 0.4, 0.7, 12),
    _Patch(7.2, 15.4, 1.0, 0.7, 40),
    _Patch(13.2, 18.4, 0.8, 0.5, -20),
    _Patch(25.3, 19.2, 2.3, 1.4, 60),  # a wooded hill
    _Patch(4.6, 23.6, 1.9, 1.5, 15),
    _Patch(20.6, 20.9, 1.3, 0.45, -35, False),  # the airfield
)

DISTRICTS = (
    _District(14.0, 12.0, 1.35, 0.85, 24, 0.11, 17_000, 0.235),  # the old centre
    _District(14.6, 12.6, 3.3, 2.4, 24, 0.15, 44_000, 0.20),  # the inner city
    _District(10.4, 11.9, 1.3, 0.8, -18, 0.13, 12_000, 0.055),
    _District(19.3, 13.6, 1.5, 1.1, 5, 0.16, 13_000, 0.065),
    _District(16.6, 17.4, 1.1, 1.7, 38, 0.17, 12_000, 0.05),
    _District(17.4, 8.6, 1.0, 0.5, 12, 0.13, 5_000, 0.022),  # the beach
    _District(8.9, 17.9, 1.3, 0.8, 62, 0.18, 8_000, 0.026),
    _District(24.8, 11.6, 0.9, 0.6, -10, 0.14, 5_000, 0.026),
    _District(4.2, 12.6, 0.8, 0.5, 30, 0.15, 3_500, 0.015),
    _District(24.2, 27.0, 0.7, 0.5, 45, 0.16, 3_000, 0.014),
    _District(11.6, 24.6, 0.8, 0.6, 12, 0.16, 3_500, 0.016),
    _District(2.4, 19.2, 0.4, 0.35, 0, 0.14, 1_200, 0.004),
    _District(28.2, 15.6, 0.5, 0.3, 20, 0.14, 1_500, 0.006),
    _District(17.6, 27.6, 0.35, 0.3, 70, 0.14, 900, 0.003),
    _District(7.5, 4.6, 0.55, 0.3, 20, 0.13, 900, 0.004),  # on the great island
)
# fmt: off
ROADS = (  # the stops on the way, places, share of all points
    # The ring.
    _Road(((9.2, 10.9), (9.4, 14.4), (12.0, 16.6), (15.4, 17.2), (18.6, 15.6), (20.4, 12.6),
           (19.9, 10.6), (18.2, 8.9)), 6_000, 0.055, fading=0.0),
    # Out of the centre.
    _Road(((14.0, 12.0), (13.0, 15.2), (11.0, 19.5), (11.6, 24.6), (10.4, 32.0)), 4_500, 0.038),
    _Road(((14.0, 12.0), (16.2, 15.2), (18.6, 19.6), (21.4, 22.2), (24.2, 27.0), (26.0, 32.0)),
          5_000, 0.042),
    _Road(((14.0, 12.0), (19.3, 13.3), (24.6, 13.6), (28.2, 15.6), (32.0, 16.4)), 4_500, 0.036),
    _Road(((14.0, 12.0), (10.6, 13.0), (8.9, 17.9), (4.4, 20.6), (-2.0, 23.0)), 4_500, 0.032),
    # Along the shore.
    _Road(((14.0, 12.0), (11.4, 11.2), (9.2, 11.0), (6.6, 12.2), (4.2, 12.6), (1.2, 13.4),
           (-2.0, 13.6)), 2_500, 0.014),
    _Road(((14.0, 12.0), (16.4, 10.8), (20.6, 10.2), (24.8, 11.4), (28.4, 12.6), (32.0, 13.0)),
          2_800, 0.016),
    # Between the outer towns.
    _Road(((11.6, 24.6), (17.6, 27.6), (24.2, 27.0)), 1_300, 0.003, fading=0.0),
    _Road(((2.4, 19.2), (5.6, 20.4), (11.6, 24.6)), 1_000, 0.0025, fading=0.0),
)
# fmt: on
# Sharp spots: position, radius in km, share of the points. The stadium is a ring of seats.
STADIUM = (17.9, 10.75, 0.11, 0.012)
SPOTS = (
    (19.72, 20.02, 0.045, 0.014),  # the airport's terminal
    (14.35, 12.75, 0.035, 0.013),  # the central station
    (13.7, 11.25, 0.025, 0.006),  # the ferry
    (19.1, 14.1, 0.05, 0.005),  # a shopping centre
)
VILLAGES, VILLAGE_PLACES, VILLAGE_VISITS = 70, 9_000, 0.022
RURAL_PLACES, RURAL_VISITS = 16_000, 0.014


def synthetic_city(points: int = 1_000_000, seed: int = 2021) -> CityPoints:
    """Invent the points of a coastal city. They belong to nobody.

    Parameters
    ----------
    points : int
        How many.
    seed : int
        The same number and seed give the same points.

    Returns
    -------
    CityPoints
        The points and the public bounds.

    Raises
    ------
    InputError
        If there is not at least one point.

    Examples
    --------
    >>> import htf
    >>> len(htf.synthetic_city(1000, seed=7).x)
    1000
    """
    points, seed = arguments.whole(points, "points"), arguments.seed(seed, "seed")
    if points < 1:
        raise InputError(f"a city needs at least one point, got points={points}")
    generator = np.random.default_rng(seed)
    places = _draw_places(generator)
    cumulative = np.cumsum(places.share)
    x, y = np.empty(points), np.empty(points)
    for start in range(0, points, POINTS_AT_A_TIME):
        part = slice(start, min(start + POINTS_AT_A_TIME, points))
        x[part], y[part] = _visit(generator, places, cumulative, part.stop - part.start)
    return CityPoints(x, y, BOUNDS)


def is_water(x: FloatArray, y: FloatArray) -> BoolArray:
    """Whether longitudes and latitudes lie in the sea, the harbour, the river or the lake."""
    return _water(*_to_km(x, y))


def is_park(x: FloatArray, y: FloatArray) -> BoolArray:
    """Whether longitudes and latitudes lie in a park, on the wooded hill or on the airfield."""
    return _covered(PARKS, *_to_km(x, y))


def _water(east: FloatArray, north: FloatArray) -> BoolArray:
    sea = (north < _shore(east)) & ~_covered(ISLANDS, east, north)
    harbour = HARBOUR.covers(east, north)
    inland = LAKE.covers(east, north) | _river(east, north)
    return np.asarray((sea | harbour | inland) & ~_covered(PIERS, east, north))


def _shore(east: FloatArray) -> FloatArray:
    """How far north the sea reaches."""
    bays = (
        1.7 * np.sin(east / 4.1 + 0.9) + 0.5 * np.sin(east / 1.55) + 0.3 * np.sin(east / 0.83 + 2)
    )
    inlets = 0.1 * np.sin(east / 0.37) + 0.06 * np.sin(east / 0.21 + 1)
    return np.asarray(9.2 + 0.0035 * (east - 13.0) ** 2 + bays + inlets)


def _river(east: FloatArray, north: FloatArray) -> BoolArray:
    """From the northern edge into the harbour, wider towards its mouth."""
    inland = north - 8.6
    middle = 14.9 + 0.115 * inland + 0.75 * np.sin(inland / 2.6) + 0.2 * np.sin(inland / 0.9)
    half_width = 0.05 + 0.13 * np.exp(-np.maximum(inland, 0) / 5.0)
    return np.asarray((inland > 0) & (np.abs(east - middle) < half_width))


def _covered(patches: Sequence[_Patch], east: FloatArray, north: FloatArray) -> BoolArray:
    return np.asarray(np.any([patch.covers(east, north) for patch in patches], axis=0))


def _draw_places(generator: np.random.Generator) -> _Places:
    parts = [_district_places(generator, district) for district in DISTRICTS]
    parts += [_road_places(generator, road) for road in ROADS]
    parts += [_spot_places(*spot) for spot in SPOTS]
    parts += [_stadium_places(generator), _village_places(generator), _rural_places(generator)]
    east, north, share, spread = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("east", "north", "share", "spread")
    )
    return _Places(east, north, share / share.sum(), spread)


def _district_places(generator: np.random.Generator, district: _District) -> _Places:
    def draw(number: int) -> Positions:
        along = generator.normal(0, district.along, number)
        across = generator.normal(0, district.across, number)
        along, across = _onto_streets(generator, along, across, district)
        east, north = _turn(along, across, district.degrees)
        return east + district.east, north + district.north

    return _with_shares(generator, _on_land(draw, district.places), district.visits, 0.007)


def _onto_streets(
    generator: np.random.Generator, along: FloatArray, across: FloatArray, district: _District
) -> Positions:
    """Move each place to the nearest street of one of the two directions.

    A third goes to the nearest avenue instead, every fourth street: those are the busy ones.
    """
    step = district.block * np.where(generator.random(len(along)) < 1 / 3, 4, 1)
    offset = generator.normal(0, district.scatter, len(along))
    turned = generator.random(len(along)) < 0.5
    return (
        np.where(turned, along, np.round(along / step) * step + offset),
        np.where(turned, np.round(across / step) * step + offset, across),
    )


def _road_places(generator: np.random.Generator, road: _Road) -> _Places:
    curve = _smooth(np.array(road.stops))
    lengths = np.hypot(*np.diff(curve, axis=0).T)
    mileage = np.concatenate([[0.0], np.cumsum(lengths)])

    def draw(number: int) -> Positions:
        fraction = generator.random(number) ** (1 + road.fading)
        east, north = (np.interp(fraction * mileage[-1], mileage, curve[:, i]) for i in (0, 1))
        return east + generator.normal(0, 0.006, number), north + generator.normal(0, 0.006, number)

    return _with_shares(generator, _on_land(draw, road.places), road.visits, 0.009)


def _smooth(stops: FloatArray) -> FloatArray:
    """Cut the corners of a line four times over (Chaikin): a smooth curve with the same ends."""
    for _ in range(4):
        near = 0.75 * stops[:-1] + 0.25 * stops[1:]
        far = 0.25 * stops[:-1] + 0.75 * stops[1:]
        middle = np.stack([near, far], axis=1).reshape(-1, 2)
        stops = np.concatenate([stops[:1], middle, stops[-1:]])
    return stops


def _spot_places(east: float, north: float, radius: float, share: float) -> _Places:
    return _Places(*(np.array([value]) for value in (east, north, share, radius)))


def _stadium_places(generator: np.random.Generator) -> _Places:
    east, north, radius, share = STADIUM
    angle = np.linspace(0, 2 * math.pi, 120, endpoint=False)
    positions = east + 1.3 * radius * np.cos(angle), north + radius * np.sin(angle)
    return _with_shares(generator, positions, share, 0.012, tail=0.2)


def _village_places(generator: np.random.Generator) -> _Places:
    centres = np.stack(_on_land(lambda number: _anywhere(generator, number), VILLAGES))
    sizes = generator.lognormal(-1.6, 0.4, VILLAGES)

    def draw(number: int) -> Positions:
        village = generator.integers(VILLAGES, size=number)
        east, north = centres[:, village] + sizes[village] * generator.normal(0, 1, (2, number))
        return east, north

    return _with_shares(generator, _on_land(draw, VILLAGE_PLACES), VILLAGE_VISITS, 0.01)


def _rural_places(generator: np.random.Generator) -> _Places:
    positions = _on_land(lambda number: _anywhere(generator, number), RURAL_PLACES)
    return _with_shares(generator, positions, RURAL_VISITS, 0.015)


def _anywhere(generator: np.random.Generator, number: int) -> Positions:
    east, north = generator.uniform(-OVERHANG_KM, SIDE_KM + OVERHANG_KM, (2, number))
    return east, north


def _on_land(draw: Callable[[int], Positions], number: int) -> Positions:
    """Draw positions until `number` of them are where places can be: on land, in no park."""
    east, north = np.empty(0), np.empty(0)
    for _ in range(MOST_TRIES):
        more_east, more_north = draw(2 * (number - len(east)))
        fits = _fits(more_east, more_north)
        east = np.concatenate([east, more_east[fits]])[:number]
        north = np.concatenate([north, more_north[fits]])[:number]
        if len(east) == number:
            return east, north
    raise AssertionError("a part of the city lies in the water: the geography is at odds")


def _fits(east: FloatArray, north: FloatArray) -> BoolArray:
    middle = SIDE_KM / 2
    near = np.maximum(np.abs(east - middle), np.abs(north - middle)) < middle + OVERHANG_KM
    return np.asarray(near & _habitable(*to_degrees(east, north)))


def _habitable(x: FloatArray, y: FloatArray) -> BoolArray:
    # In degrees, the form in which points are handed out, so that no rounding wets a point.
    return ~(is_water(x, y) | is_park(x, y))


def _with_shares(
    generator: np.random.Generator,
    positions: Positions,
    visits: float,
    spread: float,
    tail: float = 1.1,
) -> _Places:
    popularity = generator.lognormal(0, tail, len(positions[0]))
    share = popularity * (visits / popularity.sum())
    return _Places(*positions, share, np.full(len(share), spread))


def _visit(
    generator: np.random.Generator, places: _Places, cumulative: FloatArray, number: int
) -> Positions:
    chosen = np.searchsorted(cumulative, generator.random(number), side="right")
    chosen = np.minimum(chosen, len(cumulative) - 1)  # the sum may end just below one
    east, north, spread = places.east[chosen], places.north[chosen], places.spread[chosen]
    x, y = to_degrees(
        east + spread * generator.standard_normal(number),
        north + spread * generator.standard_normal(number),
    )
    # A visit that would end in the water or in a park stays at the door of its place.
    astray = ~_habitable(x, y)
    x[astray], y[astray] = to_degrees(east[astray], north[astray])
    return x, y


def _turn(east: FloatArray, north: FloatArray, degrees: float) -> Positions:
    cosine, sine = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    return east * cosine - north * sine, east * sine + north * cosine


def to_degrees(east: FloatArray, north: FloatArray) -> Positions:
    return (
        LONGITUDE + (east - SIDE_KM / 2) / KM_PER_DEGREE_EAST,
        LATITUDE + (north - SIDE_KM / 2) / KM_PER_DEGREE,
    )


def _to_km(x: FloatArray, y: FloatArray) -> Positions:
    return (
        SIDE_KM / 2 + (x - LONGITUDE) * KM_PER_DEGREE_EAST,
        SIDE_KM / 2 + (y - LATITUDE) * KM_PER_DEGREE,
    )
