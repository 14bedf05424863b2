"""What takes the place of the records of a recipe: places, people, and what else a record has.

Places are those of a data set (the made-up city, public points, an earlier release). What it does not tell is made up
for each record: a trip ends at the place of another record, rather at a near one; times are as in a city, most of them in
the morning and the evening; names and weights are uneven.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from htf.curator.frequency import FrequencyMatrix
from htf.errors import InputError
from htf.forecasts.datasets import ByZone, DataSet, name_shares, zone_middles
from htf.forecasts.made_up import SEED, MadeUp, middles
from htf.forecasts.population import Crowd, locate
from htf.frame.domain import Axis, Domain, FloatArray, IntArray
from htf.ingest.columns import DESTINATION

CHOICES = 6  # places that a trip may end at
USUAL = 1 / 12  # of the side of the map: so far are trips, usually
LARGE_WEIGHTS = 3.0  # mean weights below the largest one: one record in twenty has a larger weight
MOST_ROWS = 20_000_000  # of records that are made up one by one
PEAKS = ((0.4, 8.0, 1.0), (0.45, 18.0, 1.6))  # shares of records, the hour, and its deviation


@dataclass(frozen=True)
class StandIn:
    """What stands in for the records of a release on some map."""

    kind: str  # city, release or points
    name: str
    words: str  # how sentences call it
    domain: Domain
    places: DataSet
    crowd: Crowd | None = None
    max_weight: int | None = None  # of records, if they have weights
    notes: tuple[str, ...] = ()

    def draw(self, run: int) -> MadeUp:
        """The records of a run. Another population in each, because the error depends on a few people with many
        records; without people they stay the same, and runs differ by noise and questions."""
        return _draw(self, 0 if self.crowd is None else run)

    @property
    def given(self) -> list[int | None]:
        """For each axis of the map: its number among those of the places, if they have it."""
        have = {axis.name: number for number, axis in enumerate(self.places.domain.axes)}
        return [have.get(axis.name) for axis in self.domain.axes]


@lru_cache(maxsize=2)  # two runs, since those of a search do not end together
def _draw(stand_in: StandIn, run: int) -> MadeUp:
    domain, matrix = stand_in.domain, load_once(stand_in.places)
    is_whole = None not in stand_in.given
    if stand_in.crowd is None and is_whole and stand_in.max_weight is None:
        axes = [number for number in stand_in.given if number is not None]
        cells = matrix.exact_coordinates[axes].astype(np.int64)
        return MadeUp(domain, cells, matrix.exact_counts, draw=run)
    each: IntArray | None = None
    if stand_in.crowd is not None:
        each = stand_in.crowd.each(run)
        found = locate(stand_in.places, each, run)
    else:
        total = int(matrix.exact_counts.sum())
        if total > MOST_ROWS:
            raise InputError(
                f"a forecast of this kind is for at most {MOST_ROWS:,} records, got {total:,}: give --points-about"
            )
        found = np.repeat(matrix.exact_coordinates.astype(np.int64), matrix.exact_counts, axis=1)
    generator = np.random.default_rng([SEED, run, 4])
    cells = np.empty((domain.dimensions, found.shape[1]), dtype=np.int64)
    for number, source in enumerate(stand_in.given):
        cells[number] = (
            _further(domain, number, cells, generator) if source is None else found[source]
        )
    if each is not None:  # the order in which shares are handed out
        keys = np.ravel_multi_index(tuple(cells), domain.shape)
        cells = cells[:, np.lexsort((keys, np.repeat(np.arange(len(each)), each)))]
    weight = _weights(stand_in.max_weight, cells.shape[1], generator)
    return MadeUp(domain, cells, np.ones(cells.shape[1], dtype=np.int64), each, weight, run)


@lru_cache(maxsize=1)
def load_once(data_set: DataSet) -> FrequencyMatrix:
    """The records of a data set."""
    matrix = data_set.load()
    if not matrix.exact_counts.any():
        raise InputError(f"{data_set.name} holds no records: nothing can be forecast by it")
    return matrix


def _further(
    domain: Domain, number: int, cells: IntArray, generator: np.random.Generator
) -> IntArray:
    """The cells along one axis, given those along the axes before it."""
    axis, rows = domain.axes[number], cells.shape[1]
    if axis.name == DESTINATION[1]:  # it follows from where the first coordinate was taken
        return np.asarray(cells[number])
    if axis.name == DESTINATION[0] and domain.has_map:
        goal = _destinations(*middles(domain, cells), *middles(domain, cells), generator)
        cells[number + 1] = cells[1][goal]
        return np.asarray(cells[0][goal])
    before = [one for one in domain.outlined if one < number]
    if number in domain.outlined and before:
        return _zones(domain.axes[before[0]], axis, cells[before[0]], generator)
    if axis.names is not None:
        shares = generator.permutation(name_shares(axis.cells))
        return np.asarray(generator.choice(axis.cells, rows, p=shares))
    return np.asarray(_hours(rows, generator) / 24 * axis.cells, dtype=np.int64)


def _zones(start: Axis, goal: Axis, at: IntArray, generator: np.random.Generator) -> IntArray:
    """The zones in which trips end that begin in these zones."""
    ends = at
    if goal.names != start.names:
        counts = ByZone.of_city(goal, len(at)).load()
        ends = generator.permutation(np.repeat(counts.exact_coordinates[0], counts.exact_counts))
    x, y = zone_middles(start)[:, at]
    other_x, other_y = zone_middles(goal)[:, ends]
    return np.asarray(ends[_destinations(x, y, other_x, other_y, generator)])


def _destinations(
    x: FloatArray,
    y: FloatArray,
    other_x: FloatArray,
    other_y: FloatArray,
    generator: np.random.Generator,
) -> IntArray:
    """Which of the other places each trip ends at, as in htf.synthetic.trips: of a few, rather a near one."""
    choices = generator.integers(0, len(other_x), (CHOICES, len(x)))
    side = max(np.ptp(other_x), np.ptp(other_y), 1e-300)
    far = np.hypot(other_x[choices] - x, other_y[choices] - y) / (side * USUAL)
    best = np.argmax(generator.gumbel(size=choices.shape) - far, axis=0)
    return np.asarray(np.take_along_axis(choices, best[None], axis=0)[0])


def _hours(number: int, generator: np.random.Generator) -> FloatArray:
    kind, found = generator.random(number), generator.uniform(0, 24, number)
    start = 0.0
    for share, hour, deviation in PEAKS:
        at_peak = (kind >= start) & (kind < start + share)
        found[at_peak] = generator.normal(hour, deviation, int(at_peak.sum())) % 24
        start += share
    return np.asarray(np.minimum(found, math.nextafter(24.0, 0.0)))


def mean_weight(most: int) -> float:
    """The mean of made-up weights that count up to `most`."""
    scale = most / LARGE_WEIGHTS
    return (1 - math.exp(-most / scale)) / (1 - math.exp(-1 / scale))


def _weights(most: int | None, number: int, generator: np.random.Generator) -> IntArray | None:
    if most is None:
        return None
    drawn = np.ceil(generator.exponential(most / LARGE_WEIGHTS, number))
    return np.asarray(np.maximum(drawn, 1), dtype=np.int64)
