"""A release, or two, as one HTML file that works without a network.

The file carries everything: MapLibre, our scripts, and rectangles with counts and intervals. A policy in
its head forbids it to fetch anything, unless a base map was asked for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from htf.base import arguments
from htf.errors import InputError
from htf.estimation.level import LEVEL_TEXT
from htf.frame.domain import FloatArray
from htf.maps.basemap import CREDIT
from htf.maps.browser.assets import LICENCE, maplibre, own
from htf.maps.browser.base_map import around, fitting_zoom
from htf.maps.browser.mercator import Plane, corners_in_square
from htf.maps.browser.modules import joined
from htf.maps.browser.rectangles import (
    MOST_RECTANGLES,
    Rectangles,
    difference_rectangles,
    distinct_rectangles,
    leaf_boxes,
    pack,
    pack_text,
    packed_corners,
    rectangles,
    weighted_limits,
)
from htf.maps.browser.street_tiles import carried_tiles
from htf.maps.browser.zone_document import zone_data
from htf.maps.comparison import (
    CHANCE,
    STRONG,
    Named,
    counted_differs_note,
    difference,
    grids_to_compare,
    is_same_system,
    shared_bounds,
)
from htf.maps.plot import (
    NOT_PRIVATE,
    check_no_level,
    check_zone_options,
    is_drawn_by_zones,
    unit_of,
)
from htf.maps.plot_distinct import PER, heading
from htf.maps.scales import difference_limits
from htf.maps.views import PLACES, describe_summed, drawn_axes, read_axes
from htf.privacy.protection import explain_people
from htf.query.answer_texts import counts_of
from htf.query.where import Where, full_ranges, read_where
from htf.release.release import Release

STYLES = ("shared/base.css", "shared/map.css", "shared/time.css", "offline/offline.css")
SQUARE_PIXELS = 14  # a square of a difference is at least as large on the screen
ABOUT_BASEMAP = "The base map is from Natural Earth; its coasts and borders may be off by 2 km."
ABOUT_TILES = "Close up it is drawn from other tiles, which the file carries too."
STEPS = 32  # numbers are rounded to 1/32 of their standard error


@dataclass(frozen=True)
class Wish:
    """The choices of what to draw, and how."""

    axes: tuple[str, str] = PLACES[0]
    where: Where | None = None
    boxes: bool = False  # whether outlines show at first
    style: str | None = None  # address of a base map
    level: str | None = None  # of zones, that shows at first
    title: str | None = None  # instead of the names of the maps
    basemap: bool | Path = True  # the one that HTF carries, none, or also tiles in a file

    def __post_init__(self) -> None:
        read_axes(self.axes)
        read_where(self.where)
        arguments.flag(self.boxes, "boxes")
        if self.style is not None:
            check_style(arguments.text(self.style, "style"))
        if self.level is not None:
            arguments.text(self.level, "level")
        if self.title is not None:
            arguments.text(self.title, "title")
        if not isinstance(self.basemap, Path):
            arguments.flag(self.basemap, "basemap")


def html_map(maps: Sequence[Named], wish: Wish, *, as_difference: bool = False) -> str:
    """The text of the file for one release, for two side by side, or for their difference."""
    arguments.instance(wish, Wish, "wish")
    _check_maps(maps, arguments.flag(as_difference, "as_difference"))
    drawing = _draw_zones if _are_zoned(maps, wish) else _draw_places
    data, caption, summed, entry = drawing(maps, wish, as_difference)
    words = [f"{one.release.mechanism}, ε = {one.release.epsilon}" for one in maps]
    counts = [counts_of(one.release.counted) for one in maps]
    title = (" minus " if as_difference else " and ").join(one.name for one in maps)
    caption += explained(maps)
    return write_page(maps, wish, title, [*words, *counts, *summed], data, caption, entry)


def html_distinct(named: Named, wish: Wish) -> str:
    """The text of the file for the table of different people of a release, over the map's first two axes."""
    arguments.instance(named, Named, "the map", "Named(release, name) makes one")
    arguments.instance(wish, Wish, "wish")
    release = named.release
    first, second = release.domain.names[:2] if release.domain.dimensions > 1 else PLACES[0]
    wish = replace(wish, axes=(first, second), where=None)
    found = distinct_rectangles(release)
    data = common_data([named], [frame_ring(release, wish, plane := plane_of([named]))], plane)
    data |= {"limits": weighted_limits([found]), "sides": None, "unit": PER, "per_box": True}
    panel = data["panels"][0]
    table = release.count_distinct()
    panel["quantity"] = table.quantity
    panel["sheets"] = [packed_sheet(found, release, data)]
    panel["outlines"] = packed_boxes(found.boxes, release, data)
    summed = describe_summed(release.domain, (0, 1), None)
    said = [
        how_to_read(),
        explain_people(table.quantity),
        "Boxes whose interval reaches down to zero have no colour.",
    ]
    return write_page([named], wish, named.name, [heading(release, table), summed], data, said)


def write_page(
    maps: Sequence[Named],
    wish: Wish,
    title: str,
    subtitle: Sequence[str],
    data: dict[str, Any],
    caption: Sequence[str],
    entry: str = "offline/offline.js",
    plan: Sequence[str] = (),
) -> str:
    """The whole file. `plan` are sentences about more than these releases, above their own statements."""
    script = maplibre("maplibre-gl.js")
    below = [*([] if wish.title is None else [title]), *subtitle]
    drawn = drawn_basemap(wish, data)
    shown = {**data, "boxes": wish.boxes, "style": wish.style, "basemap": drawn}
    summary, statement = _statement(maps)
    statement = "".join(f"<p>{escape(told)}</p>" for told in plan) + statement
    is_private = all(one.release.private for one in maps)
    return _fill(
        own("offline/offline.html"),
        policy=_policy(wish.style),
        description=escape(" ".join(one.release.statement for one in maps), quote=True),
        title=escape(wish.title or title, quote=True),
        subtitle=escape("; ".join(text for text in dict.fromkeys(below) if text)),
        badge="" if is_private else f'<strong class="badge">{NOT_PRIVATE}</strong>',
        styles="".join([maplibre("maplibre-gl.css"), *map(own, STYLES)]),
        panels="".join(_panel(panel) for panel in data["panels"]),
        caption=escape(" ".join([*caption, _about_base_map(wish.style, drawn)]).strip()),
        claim="" if is_private else "not-private",
        summary=escape(summary),
        statement=statement,
        licence=own(LICENCE),
        data=json.dumps(shown).replace("<", "\\u003c"),
        maplibre=script,
        script=joined(entry),
    )


Drawing = tuple[dict[str, Any], list[str], list[str], str]


def _are_zoned(maps: Sequence[Named], wish: Wish) -> bool:
    """Whether maps show zones; an error if only one of two does."""
    are_zoned = [is_drawn_by_zones(one.release.domain, wish.axes) for one in maps]
    if len(set(are_zoned)) > 1:
        raise InputError("one release has zones and the other a grid: they cannot be compared")
    return are_zoned[0]


def _draw_zones(maps: Sequence[Named], wish: Wish, as_difference: bool) -> Drawing:
    """The data of the file, its caption, what was done to other axes, and the script that draws it."""
    check_zone_options(wish.boxes)
    made = zone_data(maps, wish.level, wish.where, as_difference=as_difference)
    return *made, "offline/zones.js"


def _draw_places(maps: Sequence[Named], wish: Wish, as_difference: bool) -> Drawing:
    """The same for rectangles."""
    check_no_level(wish.level)
    check_places(maps, wish)
    data, caption = _difference(maps, wish) if as_difference else _side_by_side(maps, wish)
    domains = [one.release.domain for one in maps]
    summed = [describe_summed(one, drawn_axes(one, wish.axes), wish.where) for one in domains]
    return data, caption, summed, "offline/offline.js"


def _fill(template: str, **texts: str) -> str:
    """Fill a template in one pass, so that inserted text is never filled in again."""
    return re.sub(r"\{\{(\w+)\}\}", lambda match: texts[match[1]], template)


def _check_maps(maps: object, as_difference: bool) -> None:
    items = arguments.items(maps, "maps", "a list of one or two htf.maps.comparison.Named")
    for one in items:
        arguments.instance(one, Named, "each map", "Named(release, name) makes one")
    if not (1 + as_difference <= len(items) <= 2):
        raise InputError(f"a map shows one release or two, a difference two, got {len(items)} maps")


def check_places(maps: Sequence[Named], wish: Wish) -> None:
    for one in maps:
        domain = one.release.domain
        drawn = drawn_axes(domain, wish.axes)
        names = domain.names[drawn[0]], domain.names[drawn[1]]
        if drawn != (0, 1) and names not in PLACES:
            raise InputError(
                f"an HTML map shows places, and {', '.join(names)} are not places: draw them as .png or .svg"
            )


def _side_by_side(maps: Sequence[Named], wish: Wish) -> tuple[dict[str, Any], list[str]]:
    if len(maps) > 1:
        _check_overlap(maps, wish)
    most = MOST_RECTANGLES // len(maps)
    made = [rectangles(one.release, wish.axes, wish.where, most) for one in maps]
    found = [one for one, _ in made]
    plane = plane_of(maps)
    data = common_data(maps, [frame_ring(one.release, wish, plane) for one in maps], plane)
    data |= {"limits": weighted_limits(found), "sides": None}
    for panel, one, cells in zip(data["panels"], maps, found, strict=True):
        panel["sheets"] = [packed_sheet(cells, one.release, data)]
    words = [said for _, said in made]
    if len(set(words)) > 1:
        words = [f"{one.name}: {said}" for one, said in zip(maps, words, strict=True)]
    said = [how_to_read(), *dict.fromkeys(words)]
    if len(maps) > 1:
        said.append("Both maps have the same colours, and move together.")
        said += [note for note in [counted_differs_note(maps)] if note is not None]
    return _with_outlines(data, maps, wish), said


def _check_overlap(maps: Sequence[Named], wish: Wish) -> None:
    """Refuse maps of different reference systems that do not overlap in the square they are drawn in."""
    first, second = (one.release for one in maps)
    if is_same_system(first.domain, second.domain):
        shared_bounds(first, second, wish.axes, wish.where)
        return
    one, other = (frame_ring(release, wish, None) for release in (first, second))
    if np.any(np.maximum(one.min(0), other.min(0)) >= np.minimum(one.max(0), other.max(0))):
        raise InputError(f"the maps {maps[0].name} and {maps[1].name} do not overlap")


def _difference(maps: Sequence[Named], wish: Wish) -> tuple[dict[str, Any], list[str]]:
    first, second = (one.release for one in maps)
    sizes = grids_to_compare(first, second, wish.axes, wish.where)
    found = [
        difference_rectangles(difference(first, second, size, wish.axes, wish.where))
        for size in sizes
    ]
    plane = plane_of(maps)
    low, high = shared_bounds(first, second, wish.axes, wish.where)
    shared = _ring_of(np.array([low, high]), first.domain.crs, plane)
    data = common_data(maps[:1], [shared], plane)
    data |= {"limits": None, "sides": [one.name for one in maps]}
    panel = data["panels"][0] | {"name": " minus ".join(data["sides"]), "is_headed": False}
    data["panels"] = [panel]
    width = float(np.ptp(shared[:, 0]))
    starts = [zoom_of_squares(width / columns) for columns, _ in sizes]
    starts[0] = 0.0
    panel["sheets"] = [
        packed_sheet(one, first, data)
        | {"zoom": [start, end], "limits": difference_limits(one.density, one.is_clear)}
        for one, start, end in zip(found, starts, [*starts[1:], 99.0], strict=True)
    ]
    said = [
        how_to_read(),
        STRONG,
        "Squares become smaller as you zoom in.",
        CHANCE.replace("is at", "is, for squares of one size, at"),
        *(note for note in [counted_differs_note(maps)] if note is not None),
    ]
    return _with_outlines(data, maps[:1], wish), said


def explained(maps: Sequence[Named]) -> list[str]:
    """What the counts of split people on the maps mean."""
    said = dict.fromkeys(explain_people(one.release.quantity) for one in maps)
    return [one for one in said if one]


def zoom_of_squares(width: float, pixels: int = SQUARE_PIXELS) -> float:
    """From which zoom on a square of this width is so many pixels wide."""
    return float(np.log2(pixels / (512 * width)))


def how_to_read() -> str:
    return (
        "Point at the map, tap it, or move it with the arrow keys, for a count and its "
        f"{LEVEL_TEXT} interval."
    )


def plane_of(maps: Sequence[Named]) -> Plane | None:
    domain = maps[0].release.domain
    return Plane.of(domain) if domain.crs is None else None


def common_data(
    maps: Sequence[Named], rings: Sequence[FloatArray], plane: Plane | None
) -> dict[str, Any]:
    """The data common to all maps: their frames in the square, and their names."""
    corners = np.concatenate(rings)
    (west, north), (east, south) = corners.min(axis=0), corners.max(axis=0)
    degrees = [[_longitude(west), _latitude(south)], [_longitude(east), _latitude(north)]]
    frame = float(west), float(north), float(max(east - west, south - north))
    return {
        "plane": None if plane is None else plane.to_dict(),
        "frame": frame,
        "bounds": degrees,
        "unit": _unit(maps[0].release),
        "panels": [
            {
                "number": number,
                "name": one.name,
                "quantity": one.release.quantity,
                "frames": [ring.tolist()],
                "is_headed": len(maps) > 1,
            }
            for number, (one, ring) in enumerate(zip(maps, rings, strict=True))
        ],
    }


def frame_ring(release: Release, wish: Wish, plane: Plane | None) -> FloatArray:
    """The frame around the map."""
    ranges = full_ranges(release.domain, wish.where)[list(drawn_axes(release.domain, wish.axes))]
    return _ring_of(ranges.T, release.domain.crs, plane)


def _ring_of(bounds: FloatArray, crs: str | None, plane: Plane | None) -> FloatArray:
    """The frame around the low and high ends along both axes."""
    corners = corners_in_square(bounds.reshape(1, 4), crs, plane).reshape(4, 2)
    return np.asarray(corners[[0, 1, 3, 2]])


def _longitude(x: float) -> float:
    return float((x - 0.5) * 360)


def _latitude(y: float) -> float:
    return float(np.degrees(np.arcsin(np.tanh((0.5 - y) * 2 * np.pi))))


def _unit(release: Release) -> str:
    """The unit of area of a density. A map that lies nowhere on earth has no km²."""
    from htf.frame.areas import square_kilometres

    one = np.zeros((1, 2), dtype=np.int64)
    is_known = square_kilometres(release.domain, one, one + 1) is not None
    return "km²" if is_known else "cell"


def packed_sheet(cells: Rectangles, release: Release, data: dict[str, Any]) -> dict[str, Any]:
    """The rectangles, packed for the file."""
    packed: dict[str, Any] = packed_boxes(cells.boxes, release, data)
    columns = {"low": cells.low, "high": cells.high}
    if cells.sides is None:
        columns["count"] = cells.count
    else:  # the script subtracts one from the other, so that all three agree
        columns |= dict(zip(("first", "second"), cells.sides, strict=True))
    packed |= packed_numbers(columns, cells.std_error)
    packed["area"] = pack(np.asarray(cells.area, dtype=np.float32))
    packed["clear"] = pack(cells.marks)
    return packed


def packed_numbers(columns: dict[str, FloatArray], std_error: FloatArray) -> dict[str, str]:
    """Digits far below the standard error are dropped, because they compress badly."""
    step = 2.0 ** np.floor(np.log2(np.maximum(std_error, 1e-6) / STEPS))
    return {
        name: pack(np.asarray(np.rint(values / step) * step, dtype=np.float32))
        for name, values in columns.items()
    }


def packed_boxes(boxes: FloatArray, release: Release, data: dict[str, Any]) -> dict[str, Any]:
    plane = None if data["plane"] is None else Plane(**data["plane"])
    corners = packed_corners(boxes, release.domain.crs, plane, data["frame"])
    return {"length": len(boxes), "corners": pack(corners)}


def _with_outlines(data: dict[str, Any], maps: Sequence[Named], wish: Wish) -> dict[str, Any]:
    for panel, one in zip(data["panels"], maps, strict=True):
        boxes = leaf_boxes(one.release, wish.axes, wish.where)
        panel["outlines"] = None if boxes is None else packed_boxes(boxes, one.release, data)
    return data


def _panel(panel: dict[str, Any]) -> str:
    heading = f"<h2>{escape(panel['name'])}</h2>" if panel["is_headed"] else ""
    return f'<section class="panel" data-panel="{panel["number"]}">{heading}<div class="map"></div></section>'


def _statement(maps: Sequence[Named]) -> tuple[str, str]:
    """One line, and the full privacy statements below it. Each claim concerns only its own release."""
    claims = [
        f"ε = {one.release.epsilon} for each {unit_of(one.release.protection)}" for one in maps
    ]
    if len(set(claims)) > 1:
        claims = [f"{one.name} with {claim}" for one, claim in zip(maps, claims, strict=True)]
    line = f"Differentially private: {', '.join(dict.fromkeys(claims))}. What this means"
    if not all(one.release.private for one in maps):
        line = f"{NOT_PRIVATE}. What this means"
    full = []
    for one in maps:
        head = f"<p><strong>{escape(one.name)}</strong></p>" if len(maps) > 1 else ""
        full.append(f"{head}<p>{escape(one.release.statement)}</p>")
    return line, "".join(full)


def drawn_basemap(wish: Wish, data: dict[str, Any]) -> dict[str, Any] | None:
    """The base map around a map; none for one that lies nowhere on earth, or has one that is fetched."""
    if isinstance(wish.basemap, Path) and data["plane"] is not None:
        raise InputError(
            "this release has no reference system, so tiles have no place on its map: leave out --basemap"
        )
    if not wish.basemap or wish.style is not None or data["plane"] is not None:
        return None
    (west, south), (east, north) = data["bounds"]
    bounds = west, south, east, north
    told = json.dumps(around(bounds), separators=(",", ":"))
    drawn: dict[str, Any] = {"around": pack_text(told), "credit": CREDIT}
    if isinstance(wish.basemap, Path):
        tiles, credit = carried_tiles(wish.basemap, bounds, fitting_zoom(bounds))
        drawn |= {"tiles": tiles, "credit": f"{CREDIT}, {credit}"}
    return drawn


def _about_base_map(style: str | None, drawn: dict[str, Any] | None) -> str:
    if drawn is not None:
        return f"{ABOUT_BASEMAP} {ABOUT_TILES if 'tiles' in drawn else ''}".strip()
    if style is None:
        return ""
    host = urlsplit(style).netloc
    return (
        f"The base map is fetched from {host}, which sees who looks and at which part of the map."
    )


def _policy(style: str | None) -> str:
    """The security policy of the file: it may only draw and, with a base map, fetch that."""
    fetched = " https: http:" if style else ""
    connect = fetched.strip() or "'none'"
    return (
        "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; worker-src blob:; "
        f"child-src blob:; img-src data: blob:{fetched}; connect-src {connect}"
    )


def check_style(style: str | None) -> None:
    """Refuse anything but a web address, before drawing."""
    if style is not None and not re.match(r"https?://\S+$", style):
        raise InputError(
            f"--style takes the web address of a MapLibre style, or of tiles with {{z}}/{{x}}/{{y}}, got {style!r}"
        )
