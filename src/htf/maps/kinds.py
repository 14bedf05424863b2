"""The ways to draw a layer: on a grid, box by box, by zones, or as lines. Public.

Each knows its numbers, its frame and its words. That is all that arrangements ask, so that none of them asks which kind it
has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from htf.base import arguments
from htf.errors import InputError
from htf.frame.areas import cell_metres
from htf.frame.domain import Axis, Domain, FloatArray, IntArray
from htf.maps.layer import Layer
from htf.maps.scale import SPREAD
from htf.maps.steps import steps_of
from htf.maps.views import describe_summed, outlines, view
from htf.maps.window import PLACES, Frame, Window, read_axes, row_areas
from htf.maps.zone_views import (
    FlowView,
    Shapes,
    Zones,
    ZoneView,
    bounds_of,
    check_same_zones,
    per_area,
    shows_flows,
    view_flows,
    view_zones,
)
from htf.privacy.distinct import DistinctCounts
from htf.privacy.protection import explain_people
from htf.query.answer import Answer
from htf.query.answer_texts import counted_note
from htf.query.change import subtracted
from htf.query.columns import COUNTS
from htf.query.where import Where, full_ranges, read_where
from htf.release.release import Release, check_release

MOST_SQUARES = 64  # per side, of a difference in a picture
MOST_LINES = 150
MARGIN = 0.02  # around zones, as a share of the longer side
MAKE_ONE = "make one with htf.Layer.of"
Marks = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """The numbers of a layer that are drawn in colours."""

    density: FloatArray
    is_clear: Marks  # more than noise
    weight: FloatArray  # in the choice of the scale; 0 for what has no place on the map
    is_unsure: Marks | None = None
    edges: tuple[FloatArray, FloatArray] | None = None  # of a grid that is uneven


@dataclass(frozen=True, eq=False)
class Drawn(Layer):
    """What arrangements ask of every layer."""

    kind: ClassVar[str]
    shape: ClassVar[str] = "square"  # what one mark of a difference stands for
    has_blank: ClassVar[bool] = True  # places without colour are no more than noise
    spread: ClassVar[tuple[tuple[float, float], float]] = (SPREAD, 10.0)

    def __post_init__(self) -> None:
        _ = self.drawn  # refuses what is not there

    @property
    def sides(self) -> list[Drawn]:
        """The layer, and what is subtracted from it."""
        return [self] if self.second is None else [self, cast(Drawn, self.second)]

    @property
    def quantity(self) -> str:
        return self.release.quantity

    @property
    def heading(self) -> str:
        return title_of(self.release)

    @property
    def counted_note(self) -> str | None:
        """What is to be known about the quantity."""
        return counted_note(self.release.quantity, self.release.counted)

    @property
    def explained(self) -> str:
        """What its numbers of people mean; empty for others."""
        return explain_people(self.quantity)

    @property
    def notes(self) -> list[str]:
        """What the map does not show, and what its marks mean."""
        return self.shared_notes

    @property
    def shared_notes(self) -> list[str]:
        """Those of all panels."""
        return []

    @property
    def level_words(self) -> str:
        return ""

    @property
    def summed(self) -> str:
        """What was done to the axes that are not drawn."""
        domain = self.release.domain
        seen = [] if self.along is None else [domain.names.index(self.along)]
        seen += self.drawn if self.kind == "grid" else ()  # a part of those needs no words
        return describe_summed(domain, self.drawn, self.where, seen)

    @property
    def drawn(self) -> tuple[int, ...]:
        """The numbers of the axes that are drawn."""
        raise NotImplementedError

    @property
    def frame(self) -> Frame:
        raise NotImplementedError

    @property
    def unit(self) -> str:
        """What a density is per."""
        raise NotImplementedError

    def values(self, pixels: int) -> Values:
        """What a picture of at most so many pixels a side shows."""
        raise NotImplementedError

    def check_alike(self, other: Drawn) -> None:
        """Refuse a layer of other things."""
        if (self.kind == "grid") != (other.kind == "grid"):
            raise InputError("one release has zones and the other a grid: they cannot be compared")

    def check_beside(self, other: Drawn) -> None:
        """Refuse a layer that cannot be compared with this one."""
        self.check_alike(other)

    def outlines(self) -> FloatArray:
        """The rectangles of a release, in rows W,S,E,N."""
        raise InputError("a map of zones always shows their outlines: leave out boxes")


class Grid(Drawn):
    """Counts along two axes."""

    kind = "grid"

    @cached_property
    def asked(self) -> Window:
        """What the axes and ranges say."""
        return Window.of(self.release.domain, self.axes, self.where)

    @cached_property
    def window(self) -> Window:
        """What is drawn: whole cells, or the part that both sides of a difference cover."""
        if self.second is None:
            return self.asked.whole
        return self.asked.shared(cast(Grid, self.second).asked)

    @property
    def drawn(self) -> tuple[int, ...]:
        return self.asked.drawn

    @cached_property
    def frame(self) -> Frame:
        return Frame(self.window.grid((1, 1)), self.window.is_place)

    @property
    def unit(self) -> str:
        if cell_metres(self.frame.domain) is not None:
            return "km²"
        return "cell" if self.second is None else "square"

    def counts(self, grid: Domain) -> Answer:
        """What there is in the squares of a grid, or the difference there."""
        answers = [one.release.count(cast(Grid, one).asked.rows(grid)) for one in self.sides]
        return answers[0] if self.second is None else subtracted(*answers)

    def values(self, pixels: int) -> Values:
        if self.second is not None:
            return self._differences()
        seen = view(self.release, self.axes, self.where, pixels)
        cells = seen.cells[0] / seen.counts.shape[0] * (seen.cells[1] / seen.counts.shape[1])
        density = (seen.counts / row_areas(seen.domain, cells)).T
        unsure = None if seen.is_unsure is None else seen.is_unsure.T
        return Values(density, seen.is_clear.T, np.ones(density.shape), unsure)

    def _differences(self) -> Values:
        """In the smallest squares that a picture has room for."""
        shapes = self.window.shapes_to_compare()
        fitting = (one for one in shapes if max(one) <= MOST_SQUARES)
        grid = self.window.grid(max(fitting, default=shapes[0]))
        changes = self.counts(grid)
        density = (changes.change.reshape(grid.shape) / row_areas(grid)).T
        return Values(density, changes.beyond_noise.reshape(grid.shape).T, np.ones(density.shape))

    def check_beside(self, other: Drawn) -> None:
        super().check_beside(other)
        self.asked.shared(cast(Grid, other).asked)

    def outlines(self) -> FloatArray:
        if self.second is not None:
            raise InputError("a picture of a difference shows no outlines: leave out boxes")
        return outlines(self.release, self.asked)


class OfPeople(Drawn):
    """A table of different people. Its numbers do not add up, so colours are of numbers, not of densities."""

    @cached_property
    def table(self) -> Answer:
        return self.release.count_distinct()

    @property
    def bought(self) -> DistinctCounts:
        assert self.release.distinct is not None
        return self.release.distinct

    @cached_property
    def as_counts(self) -> Answer:
        """The table with the columns of counts, for views of zones."""
        table = self.table
        found, zero = table.different_people, np.zeros(len(table))
        columns = (found, table.std_error, table.low, table.high, zero, zero + 1, found)
        return replace(table, kind=COUNTS, values=columns)

    @property
    def ends(self) -> list[Zones]:
        """The zones, or those at both ends of trips."""
        domain = self.release.domain
        return [Zones.of_part(domain, part) for part in self.bought.division.parts(domain)]

    @property
    def quantity(self) -> str:
        return self.table.quantity

    @property
    def heading(self) -> str:
        return f"{self.quantity} in {self.bought.told},  ε = {self.release.epsilon}"

    @property
    def explained(self) -> str:
        return explain_people(self.quantity, *self.bought.division.place)

    @property
    def counted_note(self) -> str | None:
        return self.explained

    def check_alike(self, other: Drawn) -> None:  # noqa: ARG002 - none can be
        raise InputError("a table of different people is drawn alone: give one layer")


class Boxes(OfPeople, Grid):
    """A number for each box of a grid. Boxes may differ by a cell."""

    shape = "box"

    @property
    def unit(self) -> str:
        return "box"

    @property
    def edges(self) -> tuple[FloatArray, FloatArray]:
        """The lines between the boxes, along both axes."""
        table = self.table
        pairs = ((table.west, table.east), (table.south, table.north))
        first, second = (np.append(np.unique(low), high.max()) for low, high in pairs)
        return first, second

    def values(self, pixels: int) -> Values:  # noqa: ARG002 - the boxes are what they are
        columns, rows = self.edges
        shape = len(columns) - 1, len(rows) - 1
        number = self.table.different_people.reshape(shape).T
        clear = (self.table.low > 0).reshape(shape).T
        return Values(number, clear, np.ones(number.shape), edges=self.edges)

    def outlines(self) -> FloatArray:
        table = self.table
        return np.column_stack([table.west, table.south, table.east, table.north])


class Zoned(Drawn):
    """Counts of zones, or of pairs of zones."""

    @property
    def view(self) -> ZoneView | FlowView:
        raise NotImplementedError

    @property
    def shapes(self) -> Shapes:
        return self.view.zones.shapes

    @cached_property
    def frame(self) -> Frame:
        west, south, east, north = bounds_of(self.shapes)
        margin = MARGIN * max(east - west, north - south)
        x = Axis("x", west - margin, east + margin, 1)
        y = Axis("y", south - margin, north + margin, 1)
        return Frame(Domain((x, y), self.release.domain.crs))

    @property
    def level_words(self) -> str:
        return f"by {self.view.level}" if self.view.zones.has_levels else ""

    def check_alike(self, other: Drawn) -> None:
        super().check_alike(other)
        check_same_zones(self.release.domain, other.release.domain)


class Areas(Zoned):
    """The zones of a level."""

    kind = "shapes"
    shape = "zone"

    @cached_property
    def view(self) -> ZoneView:
        return view_zones(self.release, self.level, self.where)

    @property
    def drawn(self) -> tuple[int, ...]:
        return (self.view.zones.number,)

    @property
    def unit(self) -> str:
        return self.view.unit

    def difference(self) -> Answer:
        assert isinstance(self.second, Areas)
        return subtracted(self.view.answers, self.second.view.answers)

    def values(self, pixels: int) -> Values:  # noqa: ARG002 - zones are what they are
        area = self.view.area
        if self.second is None:
            return Values(self.view.density, self.view.is_clear, area)
        changes = self.difference()
        return Values(per_area(changes.change, area, 0.0), changes.beyond_noise, area)

    @property
    def notes(self) -> list[str]:
        elsewhere = [] if self.second else self.view.elsewhere(self.quantity)
        return [*elsewhere, *self.shared_notes]

    @property
    def shared_notes(self) -> list[str]:
        return [] if self.mark is None else ["The blue outline is the chosen end of the trips"]

    @cached_property
    def mark(self) -> Shapes | None:
        """The outline of the end of trips that `where` names; None if it names none."""
        domain = self.release.domain
        for number in domain.outlined:
            if number not in self.drawn and domain.names[number] in self.where:
                ends = full_ranges(domain, self.where)[number].astype(np.int64)
                return Zones(domain, number, 0, ends[:1], ends[1:]).shapes
        return None


class Lines(Zoned):
    """The most frequent trips between zones. Only those whose interval lies above zero are drawn."""

    kind = "lines"
    has_blank = False
    spread = ((0.0, 1.0), 2.0)  # lines need no room for values that barely pass the noise

    @cached_property
    def view(self) -> FlowView:
        return view_flows(self.release, self.level, self.where)

    @property
    def drawn(self) -> tuple[int, ...]:
        return self.view.zones.number, self.view.destinations.number

    @property
    def unit(self) -> str:
        level = self.view.level
        return f"pair of {level}s" if " to " not in level else "pair"

    @cached_property
    def is_line(self) -> Marks:
        return np.isfinite(np.column_stack(self.view.places)).all(axis=1) & ~self.view.is_within

    @cached_property
    def clear(self) -> IntArray:
        return np.flatnonzero(self.view.is_clear & self.is_line)

    @cached_property
    def shown(self) -> IntArray:
        order = np.argsort(-self.view.answers.count[self.clear], kind="stable")
        return np.asarray(self.clear[order[:MOST_LINES]])

    def values(self, pixels: int) -> Values:  # noqa: ARG002 - lines are what they are
        counts = self.view.answers.count[self.shown]
        return Values(counts, counts > 0, np.ones(len(counts)))

    @property
    def notes(self) -> list[str]:
        counts = self.view.answers.count
        rest, noise = len(self.clear) - len(self.shown), int(self.is_line.sum()) - len(self.clear)
        share = counts[self.shown].sum() / max(counts.sum(), 1e-9)
        within = counts[self.view.is_within].sum() / max(counts.sum(), 1e-9)
        drawn = f"{len(self.shown):,} lines, {share:.0%} of all {self.quantity}"
        less = [f"{rest:,} smaller ones"] if rest else []
        less += [f"{noise:,} that are no more than noise"] if noise else []
        less += [f"{within:.0%} that stay within one zone"] if within > 0.005 else []
        return [f"{drawn}. Not drawn: {', '.join(less)}" if less else drawn, *self.shared_notes]

    @property
    def shared_notes(self) -> list[str]:
        return ["Trips go from the wide end of a line to its narrow end"]

    def check_alike(self, other: Drawn) -> None:
        super().check_alike(other)
        origin, destination = (self.release.domain.names[number] for number in self.drawn)
        raise InputError(
            f"two releases of trips are compared zone by zone: name one end, with --where {origin}=NAME or "
            f"--where {destination}=NAME"
        )


class PeopleZones(OfPeople, Areas):
    """The number of different people in each zone."""

    @cached_property
    def view(self) -> ZoneView:
        (zones,) = self.ends
        return ZoneView(zones, self.as_counts, of_people=True)


class PeopleLines(OfPeople, Lines):
    """The number of different people between each pair of zones."""

    @cached_property
    def view(self) -> FlowView:
        origins, destinations = self.ends
        return FlowView(origins, destinations, self.as_counts)


def layer_of(
    release: Release,
    title: str | None,
    axes: tuple[str, str],
    where: Where | None,
    level: str | None,
    **place: Any,
) -> Drawn:
    """A grid, zones or lines. `place` are the other fields of the layer."""
    domain = check_release(release).domain
    if level is not None:  # of the zones that a map is inside of, too
        release = release.zones or release
        domain = release.domain
    of_zones = bool(domain.outlined) and not domain.has_map and read_axes(axes) == PLACES[0]
    if level is not None and not of_zones:
        raise InputError("a level is one of zones, and this map shows none: leave it out")
    kind = (Lines if shows_flows(domain, where) else Areas) if of_zones else Grid
    name = title_of(release) if title is None else arguments.text(title, "the title")
    return kind(release, name, axes, read_where(where), level, **place)


def people_of(release: Release, title: str | None) -> OfPeople:
    """The table of different people: box by box, by zones, or as lines between zones."""
    check_release(release).count_distinct()
    assert release.distinct is not None
    division, domain = release.distinct.division, release.domain
    kind: type[OfPeople] = Boxes
    if division.grid is None:
        ends = [part.axis for part in division.parts(domain)]
        kinds: dict[int, type[OfPeople]] = {1: PeopleZones, 2: PeopleLines}
        if len(ends) not in kinds or not set(ends) <= set(domain.outlined):
            raise InputError(
                f"different people by {division.by} are not one number for each zone, so there is no map of them: "
                "`htf query --distinct` has the table"
            )
        kind = kinds[len(ends)]
    name = title_of(release) if title is None else arguments.text(title, "the title")
    axes = PLACES[0] if division.grid is None else (domain.names[0], domain.names[1])
    return kind(release, name, axes)


def steps_along(layer: Layer, name: str) -> list[Drawn]:
    """A layer for each step of an axis, which may be of another kind."""
    assert isinstance(layer, Drawn)
    domain = layer.release.domain
    number, steps = steps_of(domain, name, layer.where)
    are_ends = layer.kind != "grid" and len(domain.outlined) > 1  # one is named, the other drawn
    if number in layer.drawn and not are_ends:
        raise InputError(f"panels need an axis that is not drawn, but {name!r} is: give another")
    axis = domain.names[number]
    return [
        layer_of(
            layer.release,
            layer.title,
            layer.axes,
            {**layer.where, axis: ends},
            layer.level,
            step=step,
            along=axis,
        )
        for step, ends in steps
    ]


def subtract(one: Layer, other: Layer) -> Drawn:
    """A difference stands alone: steps give it their names."""
    first, second = (_alone(layer) for layer in (one, other))
    first.check_beside(second)
    if first.quantity != second.quantity:
        raise InputError(
            f"the first release counts {first.quantity} and the second {second.quantity}, so their difference "
            "means nothing: draw them side by side, or make both releases count the same"
        )
    return replace(first, second=second)


def _alone(layer: Layer) -> Drawn:
    one = arguments.instance(layer, Drawn, "a layer to subtract", MAKE_ONE)
    if one.step is None:
        return one
    return replace(one, title=one.step, step=None, along=None, plan=None)


def check_layers(layers: object) -> list[Drawn]:
    """Layers that may be drawn together: steps of one thing, or things to compare."""
    given = arguments.items(layers, "layers", "a list of layers that htf.Layer.of has made")
    for one in given:
        arguments.instance(one, Drawn, "each layer", MAKE_ONE)
    if not given:
        raise InputError("there is nothing to draw: give at least one layer")
    if len({one.step is None for one in given}) > 1:
        raise InputError("layers are steps of one thing, or things to compare: do not mix them")
    if len(given) > 1 and any(one.second is not None for one in given):
        raise InputError("a difference is drawn alone: give one layer")
    return given


def releases_of(layers: Sequence[Layer]) -> list[Release]:
    """Every release that layers show, once."""
    every = [side.release for layer in check_layers(layers) for side in layer.sides]
    return list({id(one): one for one in every}.values())


def title_of(release: Release) -> str:
    return f"{release.mechanism},  ε = {release.epsilon}"


def counted_differs_note(layers: Sequence[Drawn]) -> str | None:
    """A warning for layers that do not count the same; None if they do."""
    if len({one.release.counted for one in layers}) == 1:
        return None
    counted = "; ".join(f"{one.title} counts {one.release.counted}" for one in layers)
    return f"The maps do not count the same, so do not compare their numbers. {counted}."
