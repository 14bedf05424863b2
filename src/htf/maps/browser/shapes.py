"""Layers of zones as a browser draws them: the outlines of every level, and sheets of their numbers. Public.

Of trips there are numbers for both ends, and for each pair of zones if there are not too many.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from htf.errors import InputError
from htf.estimation.level import LEVEL_TEXT
from htf.frame.domain import FloatArray
from htf.frame.names import BETWEEN
from htf.maps.browser.mercator import Plane, to_degrees
from htf.maps.browser.sheets import (
    Packed,
    Sheet,
    limits_of,
    pack,
    pack_text,
    packed_changes,
    packed_sheets,
)
from htf.maps.kinds import Areas, Drawn, Lines, PeopleLines, PeopleZones
from htf.maps.zone_views import CutError, Shapes, ZoneView, bounds_of, view_flows, view_zones
from htf.query.shapes import need_shapely
from htf.release.release import Release

MOST_PAIRS = 250_000  # of one level: about 2 MB of a file
MOST_CORNERS = 300_000  # of a level, before its outlines are simplified
FINEST = 1 / 10_000  # of the width of the map: simplified outlines are as true as that
PLACES = 6  # decimals of degrees: a tenth of a metre


class ShapeSheets:
    """What a page of zones carries."""

    def __init__(self, layers: Sequence[Drawn]) -> None:
        self.layers = layers
        first = layers[0]
        if isinstance(first, PeopleLines):
            raise InputError(
                "a page of trips colours zones by all trips from or to them, but different people of pairs do not add up: "
                "draw a picture, as in -o map.png, or count by one end, as in --distinct zone:district"
            )
        self.has_trips = isinstance(first, Lines)
        self.levels = _levels(first)
        domain = first.release.domain
        views = [_view(first, level) for level in self.levels]
        shapes = views[0].zones.shapes
        plane = Plane.of(bounds_of(shapes)) if domain.crs is None else None
        west, south, east, north = bounds_of(in_degrees(shapes, domain.crs, plane))
        names = [one.level for one in views]
        self.data: Packed = {
            "kind": "shapes",
            "plane": None if plane is None else plane.to_dict(),
            "bounds": [[west, south], [east, north]],
            "level": 0 if first.level is None else names.index(_plain(first.level)),
            "trips": self.has_trips,
            "shapes": [_packed_level(one, plane) for one in views],
        }
        if self.has_trips:
            return
        # Every level of every layer, with one scale of colours for each level.
        self._zones = [[_at(layer, level) for level in self.levels] for layer in layers]
        self._sheets = [[_sheet(one) for one in levels] for levels in self._zones]
        self.limits = [limits_of(of_level) for of_level in zip(*self._sheets, strict=True)]

    def panel(self, number: int) -> Packed:  # noqa: ARG002 - all alike
        return {"frames": [], "outlines": None}

    def sheets(self, number: int) -> list[Packed]:
        """One for each level."""
        if self.has_trips:
            release = self.layers[number].release
            return [
                {"shape": n, "trips": _packed_trips(release, _plain(level), self.layers[number])}
                for n, level in enumerate(self.levels)
            ]
        return packed_sheets(self._sheets[number], self.limits)

    def changes(self) -> list[list[Packed] | None] | None:
        """From each step to the next, in the zones of all levels. Trips have none: too many pairs."""
        if self.has_trips:
            return None
        answers = [[zones.view.answers for zones in levels] for levels in self._zones]
        return packed_changes(self.layers, answers, [one.view.area for one in self._zones[0]])

    @property
    def caption(self) -> list[str]:
        said = [
            "Point at the map, tap it, or move it with the arrow keys, for a zone's name, its count and its "
            f"{LEVEL_TEXT} interval."
        ]
        if self.has_trips:
            said.append("By keyboard, Enter chooses the zone in the middle.")
        first = self.layers[0]
        if first.second is not None or first.step is not None:
            return said
        view = _view(first, self.levels[0])
        return [*said, *(f"{text}." for text in view.elsewhere(first.quantity))]


def _view(layer: Drawn, level: str) -> ZoneView:
    """The zones of a level; of trips, where they begin."""
    if isinstance(layer, Areas):
        return _at(layer, level).view
    return view_zones(layer.release, level, layer.where)


def _at(layer: Drawn, level: str) -> Areas:
    """A layer at another level."""
    assert isinstance(layer, Areas)
    if isinstance(layer, PeopleZones):  # of one
        return layer
    second = None if layer.second is None else replace(layer.second, level=level)
    return replace(layer, level=level, second=second)


def _sheet(layer: Areas) -> Sheet:
    area = layer.view.area
    if layer.second is not None:
        return Sheet.of_difference(area, layer.difference())
    return Sheet.of(area, layer.view.answers, layer.view.is_clear)


def _packed_trips(release: Release, level: str, layer: Drawn) -> Packed:
    ends = [release.domain.names[number] for number in release.domain.outlined[:2]]
    views = [view_zones(release, level, layer.where, end) for end in ends]
    is_small = np.prod([float(len(one.zones.low)) for one in views]) <= MOST_PAIRS
    told = [one.answers for one in views]
    if is_small:
        told.append(view_flows(release, level, layer.where).answers)
    packed = [Sheet.of(np.ones(len(one)), one, one.low > 0).packed((1.0, 10.0)) for one in told]
    return dict(zip(("from", "to", "pairs"), [*packed, None][:3], strict=True))


def _plain(level: str) -> str:
    return level.rpartition(BETWEEN)[2]


def _levels(layer: Drawn) -> list[str]:
    """Each level that `where` does not cut through, from the lowest up."""
    domain = layer.release.domain
    axis = domain.axes[layer.drawn[0]]
    if isinstance(layer, PeopleZones):
        return [f"{axis.name}{BETWEEN}{layer.view.level}"]
    found = []
    for one in axis.levels:
        name = f"{axis.name}{BETWEEN}{one.name}"
        try:
            view_zones(layer.release, name, layer.where)
        except CutError:
            continue
        found.append(name)
    return found


def in_degrees(shapes: Shapes, crs: str | None, plane: Plane | None = None) -> Shapes:
    """Outlines in longitude and latitude; those that lie nowhere on earth near 0, 0."""
    shapely = need_shapely("A map of zones")

    def change(places: FloatArray) -> FloatArray:
        x, y = places.T
        if plane is None:
            return np.column_stack(to_degrees(x, y, crs))
        return np.column_stack(plane.to_degrees(x, y))

    return np.asarray(shapely.transform(shapes, change))


def lighter(shapes: Shapes, most: int = MOST_CORNERS) -> Shapes:
    """The same outlines, with fewer corners if there are very many. Neighbours still meet."""
    shapely = need_shapely("A map of zones")
    if shapely.get_num_coordinates(shapes).sum() <= most:
        return shapes
    west, south, east, north = bounds_of(shapes)
    return np.asarray(shapely.coverage_simplify(shapes, FINEST * max(east - west, north - south)))


def geojson_of(shapes: Shapes, places: int = PLACES) -> list[Any]:
    """Each outline as GeoJSON; None for one that is empty."""
    shapely = need_shapely("A map of zones")
    shapes = shapely.transform(shapely.orient_polygons(shapes), lambda xy: np.round(xy, places))
    has_one = shapely.get_num_geometries(shapes) == 1
    shapes = np.where(has_one, shapely.get_geometry(shapes, 0), shapes)
    texts = np.where(shapely.is_empty(shapes), "null", shapely.to_geojson(shapes))
    return [json.loads(text) for text in texts]


def _packed_level(view: ZoneView, plane: Plane | None) -> Packed:
    zones, labels = view.zones, view.zones.labels
    shapes = in_degrees(lighter(zones.shapes), zones.domain.crs, plane)
    outlines = geojson_of(shapes, PLACES if plane is None else PLACES + 3)
    return {
        "name": view.level,
        "unit": view.unit,
        "labels": labels,
        "above": list(zip(*zones.above, strict=True)) or [()] * len(labels),
        "length": len(labels),
        "area": pack(np.asarray(view.area, dtype=np.float32)),
        "shapes": pack_text(json.dumps(outlines, separators=(",", ":"))),
    }
