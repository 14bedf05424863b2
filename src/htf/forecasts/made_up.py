"""Made-up records, which a simulated release counts in place of data: where each is, whose it is, and what it weighs.

Places are those of a data set (the made-up city, public points, an earlier release). What it does not tell is made up
for each record: a trip ends at the place of another record, rather at a near one; times are as in a city, most of them in
the morning and the evening; names and weights are uneven.

A release reads made-up records by the same three functions as a source (htf.recipes.make.Reader).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from htf.curator.contributions import RecordsPerPerson
from htf.curator.distinct import PeopleByBox
from htf.curator.frequency import FrequencyMatrix, WeighedRecords, unravel
from htf.errors import InputError
from htf.forecasts.people import Crowd, locate, ranks
from htf.forecasts.places import SEED, ByZone, DataSet, load_once, middles, zone_middles
from htf.frame.division import Division
from htf.frame.domain import Axis, Domain, FloatArray, IntArray
from htf.ingest.columns import DESTINATION
from htf.ingest.reading import Reading
from htf.privacy.distinct import most_boxes
from htf.privacy.protection import PEOPLE, Protection
from htf.synthetic.trips import CHOICES, draw_hours

IN_MORNING = 0.4  # of trips
USUAL = 1 / 12  # of the side of the map: so far are trips, usually
LARGE_WEIGHTS = 3.0  # mean weights below the largest one: one record in twenty has a larger weight
Pair = FloatArray | tuple[FloatArray, FloatArray]  # x and y
MOST_ROWS = 20_000_000  # of records that are made up one by one


@dataclass(frozen=True, eq=False)
class MadeUp:
    """Made-up records. With people, every row is one record, and rows are in the order of people and then of cells."""

    domain: Domain
    cells: IntArray  # of each row, one line for each axis
    number: IntArray  # of records that each row stands for
    each: IntArray | None = None  # records of each person
    weight: IntArray | None = None  # of each row
    draw: int = 0

    @property
    def records(self) -> int:
        """How many records there are."""
        return int(self.number.sum())

    @cached_property
    def person(self) -> IntArray:
        """The number of the person whose record each row is."""
        assert self.each is not None
        return np.repeat(np.arange(len(self.each)), self.each)

    @cached_property
    def matrix(self) -> FrequencyMatrix:
        """How many records are in each cell."""
        return self.on(self.domain, self.number, Protection())

    def whole(self, unit: Protection) -> IntArray:
        """What each row counts if no record is left out."""
        if unit.count == PEOPLE:
            return self._shares(unit.shares)
        return self.number if self.weight is None else np.minimum(self.weight, unit.max_weight)

    def counted(self, unit: Protection) -> IntArray:
        """What each row counts in a release: of each person at most K records, chosen at random."""
        if self.each is None or unit.count == PEOPLE:
            return self.whole(unit)
        return (self._random_ranks(self.person, 2) < unit.max_records) * self.whole(unit)

    def on(
        self,
        domain: Domain,
        counts: IntArray,
        unit: Protection,
        weighed: WeighedRecords | None = None,
    ) -> FrequencyMatrix:
        """The exact counts on the map, or on the zones around it."""
        keys, place = self._keys if domain == self.domain else self._zones(domain)
        totals = np.bincount(place, counts, minlength=len(keys) + 1)[: len(keys)].astype(np.int64)
        some = totals > 0
        cells = unravel(keys[some], domain.shape)
        return FrequencyMatrix(domain, cells, totals[some], unit, weighed=weighed)

    def read_matrix(
        self, _source: Any, domain: Domain, reading: Reading, /, **_: Any
    ) -> FrequencyMatrix:
        """As htf.ingest.points.read_matrix."""
        unit, weighed = reading.protection, None
        counts = self.counted(unit)
        if self.weight is not None:
            above = self.weight[counts > 0] > unit.max_weight
            weighed = WeighedRecords(int(np.sum(~above)), int(np.sum(above)))
        return self.on(domain, counts, unit, weighed)

    def read_records_of_each(
        self, _source: Any, _domain: Domain, _reading: Reading, most: int, /, **_: Any
    ) -> IntArray:
        """As htf.ingest.points.read_records_of_each."""
        assert self.each is not None
        return RecordsPerPerson.from_records(self.each, most).exact_persons

    def read_people(
        self, _source: Any, domain: Domain, reading: Reading, grid: Any, /, **_: Any
    ) -> PeopleByBox:
        """As htf.ingest.points.read_people."""
        return PeopleByBox(grid, self.people_by_box(Division.of(grid), domain), reading.per)

    def people_by_box(self, division: Division, domain: Domain) -> IntArray:
        """How many people were in each box, as their first, second, … box, in an order drawn for each."""
        edges = division.edges(domain)
        pairs = zip(edges, self.cells, strict=True)
        boxes = [np.searchsorted(edge, cells, "right") - 1 for edge, cells in pairs]
        sizes = [len(edge) - 1 for edge in edges]
        size = math.prod(sizes)
        box = np.ravel_multi_index(boxes, sizes)
        person, box = np.divmod(np.unique(self.person * size + box), size)
        rank = self._random_ranks(person, 3)
        some = rank < most_boxes(size)
        people = np.zeros((most_boxes(size), size), dtype=np.int64)
        np.add.at(people, (rank[some], box[some]), 1)
        return people

    def _shares(self, shares: int) -> IntArray:
        """The shares of people, as htf.ingest.people hands them out."""
        assert self.each is not None
        rank, number = ranks(self.each), self.each[self.person]
        ends = [(2 * shares * at + number) // (2 * number) for at in (rank, rank + 1)]
        return np.asarray(ends[1] - ends[0])

    def _random_ranks(self, person: IntArray, purpose: int) -> IntArray:
        """The place of each row in a random order of all rows of that person. It is the same whenever it is asked, so that a
        map and the zones around it keep the same records."""
        generator = np.random.default_rng([SEED, self.draw, purpose])
        order = np.lexsort((generator.random(len(person)), person))
        found = np.empty(len(order), dtype=np.int64)
        found[order] = ranks(np.bincount(person))
        return found

    @cached_property
    def _keys(self) -> tuple[IntArray, IntArray]:
        """The cells that hold records, and which of them each row is in."""
        keys = np.ravel_multi_index(tuple(self.cells), self.domain.shape)
        return np.unique(keys, return_inverse=True)

    def _zones(self, domain: Domain) -> tuple[IntArray, IntArray]:
        """The zone of the middle of each row's cell. Those in no zone come after the last."""
        (axis,) = domain.axes
        found = axis.place(*middles(self.domain, self.cells))
        zone = np.where(np.isnan(found), axis.cells, found).astype(np.int64)
        return np.arange(axis.cells), zone


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
    axes = [number for number in stand_in.given if number is not None]
    is_plain = stand_in.crowd is None and stand_in.max_weight is None
    if is_plain and len(axes) == domain.dimensions:
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
        known = None if source is None else found[source]
        cells[number] = _further(domain, number, cells, generator) if known is None else known
    if each is not None:  # the order in which shares are handed out
        keys = np.ravel_multi_index(tuple(cells), domain.shape)
        cells = cells[:, np.lexsort((keys, np.repeat(np.arange(len(each)), each)))]
    weight = _weights(stand_in.max_weight, cells.shape[1], generator)
    return MadeUp(domain, cells, np.ones(cells.shape[1], dtype=np.int64), each, weight, run)


def _further(
    domain: Domain, number: int, cells: IntArray, generator: np.random.Generator
) -> IntArray:
    """The cells along one axis, given those along the axes before it."""
    axis, rows = domain.axes[number], cells.shape[1]
    if axis.name == DESTINATION[1]:  # it follows from where the first coordinate was taken
        return np.asarray(cells[number])
    if axis.name == DESTINATION[0] and domain.has_map:
        goal = _destinations(middles(domain, cells), middles(domain, cells), generator)
        cells[number + 1] = cells[1][goal]
        return np.asarray(cells[0][goal])
    before = [one for one in domain.outlined if one < number]
    if number in domain.outlined and before:
        return _zones(domain.axes[before[0]], axis, cells[before[0]], generator)
    if axis.names is not None:
        shares = 1 / np.arange(1, axis.cells + 1)  # the first has twice as many as the second, …
        chances = generator.permutation(shares / shares.sum())
        return np.asarray(generator.choice(axis.cells, rows, p=chances))
    at = (draw_hours(generator, np.full(rows, IN_MORNING)) / 24 * axis.cells).astype(np.int64)
    return np.asarray(np.minimum(at, axis.cells - 1))


def _zones(start: Axis, goal: Axis, at: IntArray, generator: np.random.Generator) -> IntArray:
    """The zones in which trips end that begin in these zones."""
    ends = at
    if goal.names != start.names:
        counts = ByZone.of_city(goal, len(at)).load()
        ends = generator.permutation(np.repeat(counts.exact_coordinates[0], counts.exact_counts))
    places = zone_middles(start)[:, at], zone_middles(goal)[:, ends]
    return np.asarray(ends[_destinations(*places, generator)])


def _destinations(start: Pair, other: Pair, generator: np.random.Generator) -> IntArray:
    """Which of the other places each trip ends at, as in htf.synthetic.trips: of a few, rather a near one."""
    (x, y), (other_x, other_y) = start, other
    choices = generator.integers(0, len(other_x), (CHOICES, len(x)))
    side = max(np.ptp(other_x), np.ptp(other_y), 1e-300)
    far = np.hypot(other_x[choices] - x, other_y[choices] - y) / (side * USUAL)
    best = np.argmax(generator.gumbel(size=choices.shape) - far, axis=0)
    return np.asarray(np.take_along_axis(choices, best[None], axis=0)[0])


def mean_weight(most: int) -> float:
    """The mean of made-up weights that count up to `most`."""
    scale = most / LARGE_WEIGHTS
    return (1 - math.exp(-most / scale)) / (1 - math.exp(-1 / scale))


def _weights(most: int | None, number: int, generator: np.random.Generator) -> IntArray | None:
    if most is None:
        return None
    drawn = np.ceil(generator.exponential(most / LARGE_WEIGHTS, number))
    return np.asarray(np.maximum(drawn, 1), dtype=np.int64)
