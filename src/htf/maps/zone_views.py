"""What a map of zones draws: each zone of a level with its outline, its area and its count. Public.

A release of trips between zones has two axes of zones. If one end of the trips is named, the zones of the other end
are drawn: where trips from there go, or where trips to there come from.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htf.errors import InputError
from htf.frame.areas import to_equal_area
from htf.frame.division import Part, read_level
from htf.frame.domain import Axis, Domain, FloatArray, IntArray
from htf.query.answer import Answer
from htf.query.answer_texts import show_count
from htf.query.named import MOST_ROWS
from htf.query.shapes import need_shapely
from htf.query.where import Where, full_ranges, full_rows, read_where
from htf.release.release import Release

Shapes = NDArray[Any]


class CutError(InputError):
    """A part of an axis that is no whole zones of a level."""


@dataclass(frozen=True, slots=True)
class Zones:
    """Zones of a level of one axis, which may be drawn: a range of cells for each."""

    domain: Domain
    number: int  # of the axis
    step: int  # of the level
    low: IntArray
    high: IntArray

    @classmethod
    def along(cls, domain: Domain, number: int, level: str | None, where: Where | None) -> Zones:
        """Those that lie in `where`, of a level that is named or the lowest."""
        step = level_along(domain, number, level)
        ends = full_ranges(domain, where)[number]
        return cls(domain, number, step, *labels_within(domain.axes[number], step, ends))

    @classmethod
    def of_part(cls, domain: Domain, part: Part) -> Zones:
        """All zones of a level."""
        edges = part.edges(domain)
        return cls(domain, part.axis, part.level, edges[:-1], edges[1:])

    @property
    def axis(self) -> Axis:
        return self.domain.axes[self.number]

    @property
    def level(self) -> str:
        return self.axis.levels[self.step].name

    @property
    def has_levels(self) -> bool:
        return len(self.axis.levels) > 1

    @property
    def labels(self) -> list[str]:
        return self.axis.labels(self.low, self.high, self.step)

    @property
    def above(self) -> list[list[str]]:
        """The labels of each higher level."""
        higher = range(self.step + 1, len(self.axis.levels))
        return [self.axis.labels(self.low, self.high, step) for step in higher]

    @property
    def shapes(self) -> Shapes:
        """The outlines in map coordinates, joined where a zone has several cells. That of the rest is empty."""
        return self._ground[0]

    @property
    def ground_area(self) -> FloatArray:
        """In square kilometres, or 1 for each that has an outline if the ground is not known."""
        return self._ground[1]

    @property
    def _ground(self) -> tuple[Shapes, FloatArray]:
        need_shapely("A map of zones")
        return _ground(
            self.domain, self.number, tuple(self.low.tolist()), tuple(self.high.tolist())
        )

    def rows(self, where: Where | None) -> FloatArray:
        """Rows of edges, for `Release.count`."""
        rows = np.repeat(full_rows(self.domain, None, where), len(self.low), axis=0)
        rows[:, self.number], rows[:, self.domain.dimensions + self.number] = self.low, self.high
        return rows


class Counted:
    """What has an answer of the release for each of its zones, or pairs of zones."""

    __slots__ = ()
    answers: Answer

    @property
    def is_clear(self) -> NDArray[np.bool_]:
        """Which counts are more than noise: those whose interval lies above zero."""
        return np.asarray((self.answers.low > 0) & (self.answers.count > 0))


@dataclass(frozen=True, slots=True, eq=False)
class ZoneView(Counted):
    """The zones of a map, each with the answer of the release."""

    zones: Zones
    answers: Answer
    of_people: bool = False  # different ones: each zone has its number, whatever its area

    @property
    def level(self) -> str:
        return self.zones.level

    @property
    def area(self) -> FloatArray:
        """0 for the rest."""
        area = self.zones.ground_area
        return np.sign(area) if self.of_people else area

    @property
    def unit(self) -> str:
        """What a density is per."""
        known = not self.of_people and to_equal_area(self.zones.domain.crs) is not None
        return "km²" if known else self.level

    @property
    def density(self) -> FloatArray:
        """NaN where there is no area."""
        return per_area(self.answers.count, self.area)

    def elsewhere(self, quantity: str) -> list[str]:
        """Counts that have no place on the map."""
        counts, labels = self.answers.count, self.zones.labels
        return [
            f"Not on the map: {show_count(float(counts[place]), quantity)} {quantity} of {labels[place]!r}"
            for place in np.flatnonzero(self.area == 0).tolist()
        ]


@dataclass(frozen=True, slots=True, eq=False)
class FlowView(Counted):
    """Trips between zones: each pair of an origin and a destination, origins first, with its answer."""

    zones: Zones  # where they start
    destinations: Zones
    answers: Answer

    @property
    def level(self) -> str:
        return " to ".join(dict.fromkeys([self.zones.level, self.destinations.level]))

    @property
    def ends(self) -> tuple[IntArray, IntArray]:
        """The places of the origin and of the destination of each pair, among the zones."""
        return np.divmod(np.arange(len(self.answers)), len(self.destinations.low))

    @property
    def is_within(self) -> NDArray[np.bool_]:
        """Whether a trip stays in its zone, or may: where one end lies in the other."""
        origin, destination = self.ends
        one, other = self.zones, self.destinations
        low = np.maximum(one.low[origin], other.low[destination])
        return low < np.minimum(one.high[origin], other.high[destination])

    @property
    def places(self) -> tuple[FloatArray, FloatArray]:
        """The middles of origins and of destinations; NaN for the rest."""
        starts, stops = (middles(end.shapes) for end in (self.zones, self.destinations))
        return starts[self.ends[0]], stops[self.ends[1]]


def per_area(counts: FloatArray, area: FloatArray, nowhere: float = np.nan) -> FloatArray:
    return np.asarray(np.divide(counts, area, out=np.full(len(counts), nowhere), where=area > 0))


def view_zones(
    release: Release, level: str | None = None, where: Where | None = None, axis: str | None = None
) -> ZoneView:
    """The zones of a level with their counts within `where`.

    By default the lowest level of the first axis of zones that `where` does not name. A range of the axis that is
    drawn crops the map.
    """
    domain = release.domain
    zones = Zones.along(domain, _drawn_axis(domain, where, axis), level, where)
    return ZoneView(zones, release.count(zones.rows(where)))


def shows_flows(domain: Domain, where: Where | None) -> bool:
    """Whether a map shows trips between zones: where neither end is named, or both are."""
    named = [domain.names[number] in read_where(where) for number in domain.outlined[:2]]
    return len(named) == 2 and named[0] == named[1]


def view_flows(release: Release, level: str | None = None, where: Where | None = None) -> FlowView:
    """All pairs of zones of a level with their counts within `where`."""
    domain = release.domain
    one, other = (Zones.along(domain, number, level, where) for number in domain.outlined[:2])
    number = len(one.low) * len(other.low)
    if number > MOST_ROWS:
        raise InputError(
            f"there are {number:,} pairs of zones, but a map has room for {MOST_ROWS:,}: choose a higher level, or "
            f"name one end, such as --where {one.axis.name}=NAME"
        )
    rows = np.repeat(one.rows(where), len(other.low), axis=0)
    rows[:, other.number] = np.tile(other.low, len(one.low))
    rows[:, domain.dimensions + other.number] = np.tile(other.high, len(one.low))
    return FlowView(one, other, release.count(rows))


def _drawn_axis(domain: Domain, where: Where | None, axis: str | None) -> int:
    if axis is not None:
        known = [domain.names[number] for number in domain.outlined]
        if axis not in known:
            raise InputError(
                f"there is no axis of zones {axis!r:.100}: there is {', '.join(known)}"
            )
        return domain.names.index(axis)
    named = read_where(where)
    free = [number for number in domain.outlined if domain.names[number] not in named]
    return (free or [*domain.outlined])[0]


def level_along(domain: Domain, number: int, level: str | None) -> int:
    """The number of a level, by its name, of one axis of zones."""
    if level is None:
        return 0
    found = [part.level for part in read_level(domain, level) if part.axis == number]
    if not found:
        levels = ", ".join(one.name for one in domain.axes[number].levels)
        raise InputError(
            f"{domain.names[number]}, which is drawn, has no level {level!r:.100}: it has {levels}"
        )
    return found[0]


def labels_within(axis: Axis, level: int, ends: FloatArray) -> tuple[IntArray, IntArray]:
    """The first cell of each label of a level within a range, and the one after its last."""
    edges = axis.edges(level)
    low, high = edges[:-1], edges[1:]
    inside = (low >= ends[0]) & (high <= ends[1])
    if not inside.any() or (low[inside][0], high[inside][-1]) != tuple(ends):
        one = axis.levels[level].name
        raise CutError(
            f"{axis.name} is cut within a {one}: choose a lower level, or a larger part of {axis.name}"
        )
    return low[inside], high[inside]


def check_same_zones(one: Domain, other: Domain) -> None:
    """Refuse two maps whose axes of zones are not of the same layers."""
    layers = [[domain.axes[number] for number in domain.outlined] for domain in (one, other)]
    if layers[0] != layers[1] or one.crs != other.crs:
        raise InputError(
            "the releases have different zones, so they cannot be compared: make both with the same layer"
        )


@lru_cache(maxsize=32)
def _ground(
    domain: Domain, number: int, low: tuple[int, ...], high: tuple[int, ...]
) -> tuple[Shapes, FloatArray]:
    """Outlines and areas. A server is asked for them again and again."""
    shapely, change = need_shapely(), to_equal_area(domain.crs)
    shapes = domain.axes[number].outline(np.array(low), np.array(high))
    if change is None:
        area = np.where(shapely.is_empty(shapes), 0.0, 1.0)
    else:
        area = np.asarray(shapely.area(shapely.transform(shapes, change)))
    shapes.flags.writeable = area.flags.writeable = False
    return shapes, area


def middles(shapes: Shapes) -> FloatArray:
    """A place within each zone, near its middle; NaN for one without an outline."""
    shapely = need_shapely("A map of zones")
    found = np.full((len(shapes), 2), np.nan)
    there = ~shapely.is_empty(shapes)
    centres = shapely.centroid(shapes[there])
    inside = shapely.contains(shapes[there], centres)
    centres[~inside] = shapely.point_on_surface(shapes[there][~inside])
    found[there] = shapely.get_coordinates(centres)
    return found


def bounds_of(shapes: Shapes) -> tuple[float, float, float, float]:
    """W,S,E,N of all outlines."""
    shapely = need_shapely("A map of zones")
    west, south, east, north = (float(edge) for edge in shapely.total_bounds(shapes))
    if not (west < east and south < north):
        raise InputError("these zones have no outlines, so there is no map of them")
    return west, south, east, north
