"""The questions that simulated releases are asked: kinds of areas, what is truly in them, and what a release says.

Which kinds there are follows from the map: squares and rectangles on a map, the levels of zones and other names, trips
between squares or zones, single cells of a table, and boxes of a table of different people.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from htf.curator.frequency import FrequencyMatrix
from htf.errors import InputError
from htf.forecasts.counting import ExactCounter, answer_boxes, spread_estimates
from htf.forecasts.made_up import MadeUp
from htf.forecasts.places import middles
from htf.forecasts.workloads import Boxes, Workload, draw_cells, read_workload
from htf.frame.division import Division, Part, read_by
from htf.frame.domain import Domain, FloatArray, IntArray
from htf.frame.zone_index import Shapes, find_cells
from htf.ingest.columns import DESTINATION
from htf.privacy.protection import Protection
from htf.recipes.make import Prepared
from htf.release.release import Release

WORKLOADS = ("data-0.01%", "data-0.1%", "data-1%", "data-5%", "2%", "6%", "10%", "random")
SQUARES = (0.1, 1.0, 5.0)  # per cent of a map with further axes
MOST_CELLS_IN_ZONES = 4096 * 4096


@dataclass(frozen=True, eq=False)
class Exact:
    """What is truly counted of made-up records, by row: of all, or of those that a release keeps."""

    made_up: MadeUp
    counts: IntArray
    unit: Protection

    def on(self, domain: Domain) -> FrequencyMatrix:
        """The same on the map, or on the zones around it."""
        return self.made_up.on(domain, self.counts, self.unit)

    @cached_property
    def counter(self) -> ExactCounter:
        """Counts boxes of the map."""
        return ExactCounter(self.on(self.made_up.domain))


class Asked(ABC):
    """Questions of one kind, for one draw of records."""

    scaled = True  # whether answers follow the total that counts are scaled to
    boxes: Boxes | None = None

    @abstractmethod
    def count(self, exact: Exact) -> FloatArray:
        """The exact counts."""

    @abstractmethod
    def answer(self, release: Release) -> FloatArray:
        """What a release says."""


@dataclass(frozen=True)
class Kind(ABC):
    """One kind of question. `text` stands for it in tables, `place` in sentences."""

    text: str
    name: str
    place: str
    at_records: bool = True  # whether sentences name it, because people ask about such places

    @abstractmethod
    def draw(self, made_up: MadeUp, number: int, seeds: np.random.SeedSequence) -> Asked:
        """So many questions, or as many as there are."""


@dataclass(frozen=True, eq=False)
class AskedBoxes(Asked):
    """Boxes of whole cells."""

    boxes: Boxes

    def count(self, exact: Exact) -> FloatArray:
        return exact.counter.count(self.boxes).astype(np.float64)

    def answer(self, release: Release) -> FloatArray:
        return answer_boxes(release, self.boxes)


@dataclass(frozen=True)
class OfWorkload(Kind):
    """Boxes of a workload."""

    workload: Workload = field(kw_only=True)

    @classmethod
    def of(cls, workload: Workload) -> OfWorkload:
        """Boxes of a part of the map, the same along all axes."""
        text, at = workload.text, workload.at_records
        if workload.share is None:
            return cls(text, "any rectangle", "rectangles of any size", False, workload=workload)
        size = f"{100 * workload.share:g} %"
        name = f"{size} squares {'at records' if at else 'anywhere'}"
        place = f"squares of {size} of the map{' around records' if at else ''}"
        return cls(text, name, place, at, workload=workload)

    @classmethod
    def around(cls, text: str, name: str, place: str, sides: Sequence[float | None]) -> OfWorkload:
        """Boxes around records, so many cells wide along each axis, or all of it where there is no number."""
        workload = Workload(text, at_records=True, sides=tuple(sides))
        return cls(text, name, place, workload=workload)

    def draw(self, made_up: MadeUp, number: int, seeds: np.random.SeedSequence) -> Asked:
        return AskedBoxes(self.workload.draw(made_up.matrix, number, seeds))


@dataclass(frozen=True)
class ByNames(Kind):
    """Areas by names: each label of one level, or the cells of several axes around records."""

    parts: tuple[Part, ...] = field(kw_only=True)

    @classmethod
    def of(cls, domain: Domain, text: str) -> ByNames:
        """By a level or an axis, or by several with commas between them."""
        return cls.by(
            [part for one in text.split(",") for part in read_by(domain, one.strip())], text
        )

    @classmethod
    def by(cls, parts: Sequence[Part], text: str) -> ByNames:
        return cls(f"by {text}", f"by {text}", f"areas by {text}", parts=tuple(parts))

    def draw(self, made_up: MadeUp, number: int, seeds: np.random.SeedSequence) -> Asked:
        if len(self.parts) == 1:
            return AskedBoxes(boxes_of_names(made_up.domain, self.parts[0]))
        cells = draw_cells(np.random.default_rng(seeds), made_up.matrix, number)
        low = np.zeros_like(cells)
        high = np.broadcast_to(np.array(made_up.domain.shape), cells.shape).copy()
        for part in self.parts:
            edges, axis = part.edges(made_up.domain), part.axis
            label = np.searchsorted(edges, cells[:, axis], "right")
            low[:, axis], high[:, axis] = edges[label - 1], edges[label]
        return AskedBoxes(Boxes(low, high))


def boxes_of_names(domain: Domain, part: Part) -> Boxes:
    """Every name of a level of an axis, with all of the other axes."""
    edges = part.edges(domain)
    low = np.zeros((len(edges) - 1, domain.dimensions), dtype=np.int64)
    high = np.broadcast_to(np.array(domain.shape, dtype=np.int64), low.shape).copy()
    low[:, part.axis], high[:, part.axis] = edges[:-1], edges[1:]
    return Boxes(low, high)


class TheSame(Kind, Asked):
    """Questions that are the same for all records, in every run."""

    def draw(self, made_up: MadeUp, number: int, seeds: np.random.SeedSequence) -> Asked:  # noqa: ARG002
        return self


@dataclass(frozen=True, eq=False)
class InZones(TheSame):
    """Zones of a public layer on a map, as the cells whose middles they hold."""

    zone: IntArray = field(kw_only=True)  # of each cell; the number of zones for those in none
    number: int = field(kw_only=True)

    @classmethod
    def of(cls, shapes: Shapes, domain: Domain) -> InZones:
        if not domain.has_map or domain.dimensions != 2:
            raise InputError(
                f"zones of a file are for a map of two axes, and this one has {', '.join(domain.names)}"
            )
        if domain.size > MOST_CELLS_IN_ZONES:
            raise InputError(
                f"a target in zones is for at most {MOST_CELLS_IN_ZONES:,} cells, got {domain.size:,}: give fewer --cells"
            )
        cells = np.indices(domain.shape).reshape(2, -1)
        found = find_cells(shapes, False, *middles(domain, cells))
        zone = np.where(np.isnan(found), len(shapes), found).astype(np.int64)
        if (zone == len(shapes)).all():
            raise InputError("none of the zones lies on the map: check --bounds and the layer")
        return cls("zones", "zones", "zones", zone=zone, number=len(shapes))

    def count(self, exact: Exact) -> FloatArray:
        return self.add(exact.on(exact.made_up.domain))

    def add(self, matrix: FrequencyMatrix) -> FloatArray:
        """What a matrix counts in each zone."""
        places = np.ravel_multi_index(tuple(matrix.exact_coordinates), matrix.domain.shape)
        return self._add(self.zone[places], matrix.exact_counts)

    def answer(self, release: Release) -> FloatArray:
        return self._add(self.zone, spread_estimates(release).ravel())

    def _add(self, zones: IntArray, values: FloatArray | IntArray) -> FloatArray:
        found = np.bincount(zones, weights=values, minlength=self.number + 1)
        return np.asarray(found[: self.number], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class ZonesAround(TheSame):
    """The zones that a map is inside of, which have counts of their own."""

    domain: Domain = field(kw_only=True)

    def count(self, exact: Exact) -> FloatArray:
        matrix, found = exact.on(self.domain), np.zeros(self.domain.size)
        found[matrix.exact_coordinates[0]] = matrix.exact_counts
        return found

    def answer(self, release: Release) -> FloatArray:
        assert release.zones is not None
        return answer_boxes(release.zones, boxes_of_names(self.domain, Part(0)))


@dataclass(frozen=True, eq=False)
class DifferentPeople(TheSame):
    """The table of different people that a release has beside its map."""

    scaled = False
    division: Division = field(kw_only=True)

    def count(self, exact: Exact) -> FloatArray:
        people = exact.made_up.people_by_box(self.division, exact.made_up.domain)
        return np.asarray(people.sum(axis=0), dtype=np.float64)

    def answer(self, release: Release) -> FloatArray:
        answer = release.count_distinct().to_columns()["different_people"]
        return np.asarray(answer, dtype=np.float64)


def kinds_of(prepared: Prepared) -> Iterator[Kind]:
    """What a forecast asks of releases of a recipe."""
    domain = prepared.domain
    if domain.has_map and domain.dimensions == 2:
        yield from (OfWorkload.of(read_workload(text)) for text in WORKLOADS)
    elif domain.has_map:
        yield from _squares_and_more(domain)
    else:
        yield from _names(domain)
    if prepared.around is not None:
        yield ZonesAround("zones", "zones", "zones", domain=prepared.around)
    if prepared.division is not None:
        name = f"different people in each {prepared.division.place[0]}"
        yield DifferentPeople("distinct", name, name, division=prepared.division)


def _squares_and_more(domain: Domain) -> Iterator[Kind]:
    """Squares on the map, with all of the other axes; trips between squares, or single steps of the other axes."""
    others = domain.names[2:]
    are_trips = others[:2] == DESTINATION
    for size in SQUARES:
        sides = [(size / 100) ** 0.5 * cells for cells in domain.shape[:2]]
        squares, place = f"{size:g} % squares", f"squares of {size:g} % of the map around records"
        whole = [None] * len(others)
        yield OfWorkload.around(f"data-{size:g}%", f"{squares} at records", place, [*sides, *whole])
        if are_trips:
            between = f"trips between {squares}", f"trips between {place}"
            yield OfWorkload.around(f"trips-{size:g}%", *between, [*sides * 2, *whole[2:]])
    if not are_trips:
        by = ", ".join(others)
        sides = [0.1 * cells for cells in domain.shape[:2]]
        words = f"data-1% by {by}", f"1 % squares by {by}", f"squares of 1 % of the map by {by}"
        yield OfWorkload.around(*words, [*sides, *[1.0] * len(others)])


def _names(domain: Domain) -> Iterator[Kind]:
    """Every level of the first axis of names, pairs of levels of trips, and single cells."""
    first, *others = domain.outlined or (0,)
    levels = [level.name for level in domain.axes[first].levels]
    for number, level in reversed(list(enumerate(levels))):
        yield ByNames.by([Part(first, number)], level)
    for other in others:
        both = zip(levels, domain.axes[other].levels, strict=False)
        for number, (level, _) in reversed(list(enumerate(both))):
            name = f"trips by {level}"
            yield ByNames(name, name, name, parts=(Part(first, number), Part(other, number)))
    if domain.dimensions > 1 + len(others) or not levels:
        yield ByNames.by(list(map(Part, range(domain.dimensions))), ", ".join(domain.names))
