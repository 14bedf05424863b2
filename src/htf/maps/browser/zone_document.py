"""A release of zones, or two, as one HTML file that works without a network.

The file carries the outlines of every level, and counts with intervals. Of trips it carries counts for both ends, and
for each pair of zones if there are not too many.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from htf.errors import InputError
from htf.estimation.level import LEVEL_TEXT
from htf.frame.domain import Axis, Domain, FloatArray
from htf.frame.names import BETWEEN
from htf.maps.browser.mercator import Plane, to_degrees
from htf.maps.browser.rectangles import pack, pack_text
from htf.maps.comparison import CHANCE, STRONG, Named, check_same_quantity, counted_differs_note
from htf.maps.zones import (
    CutError,
    Shapes,
    ZoneView,
    bounds_of,
    check_same_zones,
    drawn_zones,
    shows_flows,
    told_summed,
    view_flows,
    view_zones,
)
from htf.query.answer import Answer
from htf.query.answer_texts import show_count
from htf.query.named import names_of
from htf.query.shapes import need_shapely
from htf.query.where import Where
from htf.release.release import Release

MOST_PAIRS = 250_000  # of one level: about 2 MB of a file
MOST_CORNERS = 300_000  # of a level, before its outlines are simplified
FINEST = 1 / 10_000  # of the width of the map: simplified outlines are as true as that
PLACES = 6  # decimals of degrees: a tenth of a metre
STEPS = 32  # numbers are rounded to 1/32 of their standard error


def zone_data(
    maps: Sequence[Named], level: str | None, where: Where | None, *, as_difference: bool
) -> tuple[dict[str, Any], list[str], list[str]]:
    """The data of the file, what its caption says, and what was done to axes that are not drawn."""
    first = maps[0].release
    has_trips = shows_flows(first.domain, where)
    _check(maps, has_trips, as_difference)
    views = _views(first, level, where)
    names = [one.level for one in views]
    plane = _plane(first.domain, views[0].shapes)
    west, south, east, north = bounds_of(in_degrees(views[0].shapes, first.domain.crs, plane))
    panels = [
        {
            "number": number,
            "name": one.name,
            "quantity": one.release.quantity,
            "is_headed": len(maps) > 1,
            "answers": [_panel_answers(one.release, name, where, has_trips) for name in names],
        }
        for number, one in enumerate(maps[:1] if as_difference else maps)
    ]
    data: dict[str, Any] = {
        "plane": None if plane is None else plane.to_dict(),
        "bounds": [[west, south], [east, north]],
        "level": 0 if level is None else names.index(_plain_level(level)),
        "trips": has_trips,
        "levels": [_level(one, plane) for one in views],
        "sides": [one.name for one in maps] if as_difference else None,
        "panels": panels,
    }
    if as_difference:
        second = maps[1].release
        data["second"] = [_packed(view_zones(second, name, where).answers) for name in names]
        panels[0] |= {"name": " minus ".join(data["sides"]), "is_headed": False}
    summed = told_summed(first.domain, first.domain.zoned, where)
    return data, _caption(maps, views, has_trips, as_difference), [summed]


def _check(maps: Sequence[Named], has_trips: bool, as_difference: bool) -> None:
    if len(maps) < 2:
        return
    first, second = (one.release for one in maps)
    check_same_zones(first.domain, second.domain)
    if as_difference:
        check_same_quantity(first, second)
    if has_trips:
        origin, destination = (first.domain.names[number] for number in first.domain.zoned[:2])
        raise InputError(
            f"two releases of trips are compared zone by zone: name one end, with --where {origin}=NAME or "
            f"--where {destination}=NAME"
        )


def _plain_level(level: str) -> str:
    return level.rpartition(BETWEEN)[2]


def _views(release: Release, level: str | None, where: Where | None) -> list[ZoneView]:
    """Each level that `where` does not cut through, from the lowest up."""
    if level is not None:
        view_zones(release, level, where)  # refuses one that is not there
    domain = release.domain
    axis = domain.axes[drawn_zones(domain, None, where).axis]
    found = []
    for one in names_of(axis).levels:
        try:
            found.append(view_zones(release, f"{axis.name}{BETWEEN}{one.name}", where))
        except CutError:
            continue
    return found


def _plane(domain: Domain, shapes: Shapes) -> Plane | None:
    if domain.crs is not None:
        return None
    west, south, east, north = bounds_of(shapes)
    return Plane.of(Domain((Axis("x", west, east, 1), Axis("y", south, north, 1))))


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
    if shapely.get_num_coordinates(shapes).sum() <= most or not hasattr(
        shapely, "coverage_simplify"
    ):
        return shapes
    west, south, east, north = bounds_of(shapes)
    return np.asarray(shapely.coverage_simplify(shapes, FINEST * max(east - west, north - south)))


def geojson_of(shapes: Shapes, places: int = PLACES) -> list[Any]:
    """Each outline as GeoJSON; None for one that is empty."""
    shapely = need_shapely("A map of zones")
    return [_geojson(shapely, shape, places) for shape in shapes]


def _geojson(shapely: Any, shape: Any, places: int) -> dict[str, Any] | None:
    polygons = [
        [
            np.round(shapely.get_coordinates(ring), places).tolist()
            for ring in shapely.get_rings(part)
        ]
        for part in shapely.get_parts(shapely.orient_polygons(shape))
    ]
    polygons = [rings for rings in polygons if rings]
    if not polygons:
        return None
    if len(polygons) == 1:
        return {"type": "Polygon", "coordinates": polygons[0]}
    return {"type": "MultiPolygon", "coordinates": polygons}


def _level(view: ZoneView, plane: Plane | None) -> dict[str, Any]:
    shapes = in_degrees(lighter(view.shapes), view.domain.crs, plane)
    outlines = geojson_of(shapes, PLACES if plane is None else PLACES + 3)
    above = list(zip(*view.above.values(), strict=True)) or [()] * len(view.labels)
    return {
        "name": view.level,
        "unit": view.unit,
        "labels": view.labels,
        "above": above,
        "area": pack(np.asarray(view.area, dtype=np.float32)),
        "shapes": pack_text(json.dumps(outlines, separators=(",", ":"))),
    }


def _panel_answers(
    release: Release, level: str, where: Where | None, has_trips: bool
) -> dict[str, Any]:
    if not has_trips:
        return _packed(view_zones(release, level, where).answers)
    ends = [release.domain.names[number] for number in release.domain.zoned[:2]]
    views = [view_zones(release, level, where, end) for end in ends]
    is_small = np.prod([float(len(one.labels)) for one in views]) <= MOST_PAIRS
    pairs = _packed(view_flows(release, level, where).answers) if is_small else None
    return {"from": _packed(views[0].answers), "to": _packed(views[1].answers), "pairs": pairs}


def _packed(answers: Answer) -> dict[str, str]:
    """Columns of answers. Digits far below the standard error are dropped, because they compress badly."""
    step = 2.0 ** np.floor(np.log2(np.maximum(answers.std_error, 1e-6) / STEPS))
    columns = {
        name: getattr(answers, name) for name in ("count", "low", "high", "std_error", "raw")
    }
    return {
        name: pack(np.asarray(np.rint(values / step) * step, dtype=np.float32))
        for name, values in columns.items()
    }


def _caption(
    maps: Sequence[Named], views: Sequence[ZoneView], has_trips: bool, as_difference: bool
) -> list[str]:
    said = [
        "Point at the map, tap it, or move it with the arrow keys, for a zone's name, its count and its "
        f"{LEVEL_TEXT} interval."
    ]
    if has_trips:
        said.append("By keyboard, Enter chooses the zone in the middle.")
    if as_difference:
        said.append(f"{STRONG} {CHANCE.replace('square', 'zone')}")
    elif len(maps) > 1:
        said.append("Both maps have the same colours, and move together.")
    if not as_difference:
        said += [
            _elsewhere(maps[0].release, views[0], place)
            for place in np.flatnonzero(views[0].area == 0).tolist()
        ]
    return [*said, *(note for note in [counted_differs_note(maps)] if len(maps) > 1 and note)]


def _elsewhere(release: Release, view: ZoneView, place: int) -> str:
    count = show_count(float(view.answers.count[place]), release.quantity)
    return f"Not on the map: {count} {release.quantity} of {view.labels[place]!r}."
