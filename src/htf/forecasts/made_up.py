"""Made-up records, which a simulated release counts in place of data: where each is, whose it is, and what it weighs.

A release reads them by the same three functions as a source (htf.recipes.make.Reader).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htf.curator.contributions import RecordsPerPerson
from htf.curator.distinct import PeopleByBox
from htf.curator.frequency import FrequencyMatrix, WeighedRecords, unravel
from htf.frame.division import Division
from htf.frame.domain import Domain, FloatArray, IntArray
from htf.ingest.reading import Reading
from htf.privacy.distinct import most_boxes
from htf.privacy.protection import PEOPLE, Protection

SEED = 2021


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
        return self._are_kept(unit.max_records) * self.whole(unit)

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

    def read_records_per_person(
        self, _source: Any, _domain: Domain, _reading: Reading, most: int, /, **_: Any
    ) -> IntArray:
        """As htf.ingest.points.read_records_per_person."""
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
        order = np.lexsort((self._chance(3).random(len(box)), person))
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = ranks(np.bincount(person))
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

    def _are_kept(self, most: int) -> IntArray:
        assert self.each is not None
        order = np.lexsort((self._chance(2).random(len(self.person)), self.person))
        kept = np.zeros(len(order), dtype=np.int64)
        kept[order] = ranks(self.each) < most
        return kept

    def _chance(self, purpose: int) -> np.random.Generator:
        """The same whenever it is asked, so that a map and the zones around it keep the same records."""
        return np.random.default_rng([SEED, self.draw, purpose])

    @cached_property
    def _keys(self) -> tuple[IntArray, IntArray]:
        keys = np.ravel_multi_index(tuple(self.cells), self.domain.shape)
        distinct, place = np.unique(keys, return_inverse=True)
        return distinct, place

    def _zones(self, domain: Domain) -> tuple[IntArray, IntArray]:
        """The zone of the middle of each row's cell. Those in no zone come after the last."""
        (axis,) = domain.axes
        found = axis.place(*middles(self.domain, self.cells))
        zone = np.where(np.isnan(found), axis.cells, found).astype(np.int64)
        return np.arange(axis.cells), zone


def ranks(each: IntArray) -> IntArray:
    """0, 1, … for each of so many groups."""
    starts = np.cumsum(each) - each
    return np.asarray(np.arange(int(each.sum())) - np.repeat(starts, each))


def middles(domain: Domain, cells: NDArray[Any]) -> tuple[FloatArray, FloatArray]:
    """The middles of cells of a map, on its first two axes."""
    x, y = (axis.from_cells(at + 0.5) for axis, at in zip(domain.axes[:2], cells, strict=False))
    return x, y
