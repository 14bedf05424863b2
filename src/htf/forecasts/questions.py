"""The questions that simulated releases are asked: kinds of areas, what is truly in them, and what a release says.

Which kinds there are follows from the map: squares and rectangles on a map, the levels of zones and other names, trips
between squares or zones, single cells of a table, and boxes of a table of different people.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from htf.curator.frequency import FrequencyMatrix
from htf.errors import InputError
from htf.forecasts.counting import ExactCounter, answer_boxes, spread_estimates
from htf.forecasts.made_up import MadeUp, middles
from htf.forecasts.workloads import Boxes, Workload, draw_cells, read_workload, snap_to_cells
from htf.frame.division import Division, Part, read_by
from htf.frame.domain import Domain, FloatArray, IntArray
from htf.frame.zone_index import Shapes, find_cells
from htf.ingest.columns import DESTINATION
from htf.privacy.protection import Protection
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
    """Boxes of a workload, of all axes alike."""

    workload: Workload = field(kw_only=True)

    @classmethod
    def of(cls, workload: Workload) -> OfWorkload:
        if workload.share is None:
            return cls(
                workload.text, "any rectangle", "rectangles of any size", False, workload=workload
            )
        where = "at records" if workload.at_records else "anywhere"
        size = f"{100 * workload.share:g} %"
        at = workload.at_records
        place = f"squares of {size} of the map{' around records' if at else ''}"
        return cls(workload.text, f"{size} squares {where}", place, at, workload=workload)

    def draw(self, made_up: MadeUp, number: int, seeds: np.random.SeedSequence) -> Asked:
        matrix = made_up.on(made_up.domain, made_up.number, Protection())
        return AskedBoxes(self.workload.draw(matrix, number, seeds))


@dataclass(frozen=True)
class AroundRecords(Kind):
    """Boxes around records: so many cells wide along each axis, or all of it where there is no number."""

    sides: tuple[float | None, ...] = field(kw_only=True)

    def draw(self, made_up: MadeUp, number: int, seeds: np.random.SeedSequence) -> Asked:
        generator = np.random.default_rng(seeds)
        matrix = made_up.on(made_up.domain, made_up.number, Protection())
        corners = draw_cells(generator, matrix, number)
        centres = corners + generator.uniform(0, 1, corners.shape)
        shape = made_up.domain.shape
        wide = [
            2.0 * size if side is None else side
            for side, size in zip(self.sides, shape, strict=True)
        ]
        half = np.array(wide) / 2
        return AskedBoxes(snap_to_cells(centres - half, centres + half, made_up.domain))


@dataclass(frozen=True)
class ByNames(Kind):
    """Areas by names: each label of one level, or the cells of several axes around records."""

    parts: tuple[Part, ...] = field(kw_only=True)

    @classmethod
    def of(cls, domain: Domain, text: str) -> ByNames:
        """By a level or an axis, or by several with commas between them."""
        parts = [part for one in text.split(",") for part in read_by(domain, one.strip())]
        return cls(f"by {text}", f"by {text}", f"areas by {text}", parts=tuple(parts))

    def draw(self, made_up: MadeUp, number: int, seeds: np.random.SeedSequence) -> Asked:
        domain, edges = made_up.domain, [part.edges(made_up.domain) for part in self.parts]
        if len(self.parts) == 1:
            at = np.arange(len(edges[0]) - 1)[:, None]
        else:
            matrix = made_up.on(domain, made_up.number, Protection())
            cells = draw_cells(np.random.default_rng(seeds), matrix, number)
            pairs = zip(edges, self.parts, strict=True)
            at = np.stack([np.searchsorted(e, cells[:, p.axis], "right") - 1 for e, p in pairs], 1)
        low = np.zeros((len(at), domain.dimensions), dtype=np.int64)
        high = np.tile(np.array(domain.shape, dtype=np.int64), (len(at), 1))
        for place, (part, edge) in enumerate(zip(self.parts, edges, strict=True)):
            low[:, part.axis], high[:, part.axis] = edge[at[:, place]], edge[at[:, place] + 1]
        return AskedBoxes(Boxes(low, high))


@dataclass(frozen=True, eq=False)
class InZones(Kind, Asked):
    """Zones of a public layer on a map, as the cells whose middles they hold. They are the same in every run."""

    zone: IntArray = field(
        kw_only=True
    )  # of each cell, flat; the number of zones for those in none
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
        wide, high = np.indices(domain.shape)
        found = find_cells(shapes, False, *middles(domain, np.stack([wide.ravel(), high.ravel()])))
        zone = np.where(np.isnan(found), len(shapes), found).astype(np.int64)
        if (zone == len(shapes)).all():
            raise InputError("none of the zones lies on the map: check --bounds and the layer")
        return cls("zones", "zones", "zones", zone=zone, number=len(shapes))

    def draw(self, made_up: MadeUp, number: int, seeds: np.random.SeedSequence) -> Asked:  # noqa: ARG002
        return self

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
class ZonesAround(Kind, Asked):
    """The zones that a map is inside of, which have counts of their own."""

    domain: Domain = field(kw_only=True)

    def draw(self, made_up: MadeUp, number: int, seeds: np.random.SeedSequence) -> Asked:  # noqa: ARG002
        return self

    def count(self, exact: Exact) -> FloatArray:
        matrix, found = exact.on(self.domain), np.zeros(self.domain.size)
        found[matrix.exact_coordinates[0]] = matrix.exact_counts
        return found

    def answer(self, release: Release) -> FloatArray:
        assert release.zones is not None
        low = np.arange(self.domain.size)[:, None]
        return answer_boxes(release.zones, Boxes(low, low + 1))


@dataclass(frozen=True)
class DifferentPeople(Kind, Asked):
    """The table of different people that a release has beside its map."""

    scaled = False
    division: Division = field(kw_only=True)

    def draw(self, made_up: MadeUp, number: int, seeds: np.random.SeedSequence) -> Asked:  # noqa: ARG002
        return self

    def count(self, exact: Exact) -> FloatArray:
        people = exact.made_up.people_by_box(self.division, exact.made_up.domain)
        return np.asarray(people.sum(axis=0), dtype=np.float64)

    def answer(self, release: Release) -> FloatArray:
        return np.asarray(
            release.count_distinct().to_columns()["different_people"], dtype=np.float64
        )


def kinds_of(domain: Domain) -> Iterator[Kind]:
    """What a forecast asks of releases of a map."""
    if domain.has_map and domain.dimensions == 2:
        yield from (OfWorkload.of(read_workload(text)) for text in WORKLOADS)
    elif domain.has_map:
        yield from _squares_and_more(domain)
    else:
        yield from _names(domain)


def _squares_and_more(domain: Domain) -> Iterator[Kind]:
    """Squares on the map, with all of the other axes; trips between squares, or single steps of the other axes."""
    others = domain.dimensions - 2
    for size in SQUARES:
        sides = tuple((size / 100) ** 0.5 * cells for cells in domain.shape[:2])
        place = f"squares of {size:g} % of the map around records"
        yield AroundRecords(
            f"data-{size:g}%",
            f"{size:g} % squares at records",
            place,
            sides=(*sides, *[None] * others),
        )
        if domain.names[2:4] == DESTINATION:
            rest = [None] * (others - 2)
            yield AroundRecords(
                f"trips-{size:g}%", f"trips between {size:g} % squares", f"trips between {place}", sides=(*sides, *sides, *rest),
            )  # fmt: skip
    if domain.names[2:4] != DESTINATION:
        by = ", ".join(domain.names[2:])
        sides = tuple(0.1 * cells for cells in domain.shape[:2])
        yield AroundRecords(
            f"data-1% by {by}",
            f"1 % squares by {by}",
            f"squares of 1 % of the map by {by}",
            sides=(*sides, *[1.0] * others),
        )


def _names(domain: Domain) -> Iterator[Kind]:
    """Every level of the first axis of names, pairs of levels of trips, and single cells."""
    first, *others = domain.outlined or (0,)
    levels = [level.name for level in domain.axes[first].levels]
    for number, level in reversed(list(enumerate(levels))):
        yield ByNames(
            f"by {level}", f"by {level}", f"areas by {level}", parts=(Part(first, number),)
        )
    for other in others:
        both = zip(levels, domain.axes[other].levels, strict=False)
        for number, (level, _) in reversed(list(enumerate(both))):
            parts = Part(first, number), Part(other, number)
            name = f"trips by {level}"
            yield ByNames(name, name, name, parts=parts)
    if domain.dimensions > 1 + len(others) or not levels:
        by = ", ".join(domain.names)
        every = tuple(map(Part, range(domain.dimensions)))
        yield ByNames(f"by {by}", f"by {by}", f"areas by {by}", parts=every)


def shares_of(boxes: Boxes, domain: Domain) -> FloatArray:
    """The share of the map's cells that each box has."""
    return np.asarray(np.prod((boxes.high - boxes.low) / np.array(domain.shape), axis=1))
