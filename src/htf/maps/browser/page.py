"""Layers as one HTML file that works without a network: alone, side by side, subtracted, or with a slider through steps.

The file carries everything: MapLibre, our scripts, outlines, and numbers with intervals. A policy in its head forbids it to
fetch anything, unless a base map was asked for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from htf.errors import InputError
from htf.estimation.level import OUTSIDE
from htf.maps.basemap import CREDIT
from htf.maps.browser.assets import LICENCE, maplibre, own
from htf.maps.browser.base_map import around, fitting_zoom
from htf.maps.browser.modules import joined
from htf.maps.browser.rectangles import GridSheets
from htf.maps.browser.shapes import ShapeSheets
from htf.maps.browser.sheets import pack_text
from htf.maps.browser.street_tiles import carried_tiles
from htf.maps.kinds import Drawn, OfPeople, check_layers, counted_differs_note
from htf.maps.layer import Layer
from htf.maps.picture import NOT_PRIVATE, shown_for_all, told_periods, unit_of
from htf.maps.scale import CHANCE, STRONG
from htf.query.answer_texts import counts_of

ENTRY, TEMPLATE = "offline/offline.js", "offline/offline.html"
STYLES = ("shared/base.css", "shared/map.css", "shared/time.css", "offline/offline.css")
MOST_MAPS = 2  # side by side
ABOUT_BASEMAP = "The base map is from Natural Earth; its coasts and borders may be off by 2 km."
ABOUT_TILES = "Close up it is drawn from other tiles, which the file carries too."


def page_of(
    given: Sequence[Layer],
    *,
    boxes: bool = False,
    title: str | None = None,
    basemap: bool | Path = True,
    style: str | None = None,
) -> str:
    """The text of the file."""
    layers = check_layers(given)
    first = layers[0]
    _check(layers, boxes)
    made = GridSheets(layers) if first.kind == "grid" else ShapeSheets(layers)
    data = {**made.data, "boxes": boxes, "style": style, **_arranged(layers, made)}
    data["basemap"] = drawn = _drawn_basemap(basemap, style, data)
    words = _subtitle(layers)
    shown = [shown_for_all(layers)] if first.step else [side for one in layers for side in one.sides]  # fmt: skip
    summary, statement = _statement(shown)
    plan = first.plan
    statement = "".join(f"<p>{escape(text)}</p>" for text in (plan.told if plan else [])) + statement  # fmt: skip
    name = first.title if first.step else " and ".join(one.name for one in layers)
    is_private = all(one.release.private for one in shown)
    caption = [*made.caption, *_caption(layers, data), _about_base_map(style, drawn)]
    return _fill(
        own(TEMPLATE),
        policy=_policy(style),
        description=escape(" ".join(one.release.statement for one in shown), quote=True),
        title=escape(title or name, quote=True),
        subtitle=escape("; ".join(dict.fromkeys([*([name] if title else []), *words]))),
        badge="" if is_private else f'<strong class="badge">{NOT_PRIVATE}</strong>',
        styles="".join([maplibre("maplibre-gl.css"), *map(own, STYLES)]),
        panels="".join(_panel(panel) for panel in data["panels"]),
        caption=escape(" ".join(text for text in caption if text)),
        claim="" if is_private else "not-private",
        summary=escape(summary),
        statement=statement,
        licence=own(LICENCE),
        data=json.dumps(data).replace("<", "\\u003c"),
        maplibre=maplibre("maplibre-gl.js"),
        script=joined(ENTRY),
    )


def _check(layers: Sequence[Drawn], boxes: bool) -> None:
    first = layers[0]
    if first.step is None and len(layers) > MOST_MAPS:
        raise InputError(f"a page shows one map or two side by side, got {len(layers)} layers")
    if first.step is None and len(layers) > 1:
        first.check_alike(layers[1])
    if boxes and first.kind != "grid":
        first.outlines()  # which refuses
    kinds = {one.kind for one in layers}
    if len(kinds) > 1:
        raise InputError("the steps of a page are drawn alike: some are zones, and some are not")


def _arranged(layers: Sequence[Drawn], made: GridSheets | ShapeSheets) -> dict[str, Any]:
    """Panels side by side with a step each, or one with many."""
    first = layers[0]
    numbers = range(len(layers))
    steps = [one.step for one in layers if one.step is not None]
    groups = [list(numbers)] if steps else [[number] for number in numbers]
    is_series = layers[0].plan is not None
    return {
        "sides": [one.title for one in first.sides] if first.second else None,
        "steps": steps,
        "at": len(steps) - 1 if is_series else 0,
        "changes": made.changes() if is_series and len(layers) > 1 else None,
        "panels": [
            {
                "number": number,
                "name": layers[group[0]].name,
                "quantity": layers[group[0]].quantity,
                "is_headed": len(groups) > 1,
                "steps": [made.sheets(place) for place in group],
                **made.panel(number),
            }
            for number, group in enumerate(groups)
        ],
        "shapes": made.data["shapes"],  # which changes add to
    }


def _subtitle(layers: Sequence[Drawn]) -> list[str]:
    """Under the title: mechanism and epsilon, what is counted, and what was done to other axes."""
    last = layers[-1]
    sides = [last] if last.step is not None else [side for one in layers for side in one.sides]
    words = [side.heading.replace("  ", " ") for side in sides]
    if last.plan is not None:
        words = [told_periods(layers)]
    if not isinstance(last, OfPeople):
        words += [counts_of(side.release.counted) for side in sides]
    words += [side.summed for side in sides]
    return [text for text in words if text]


def _caption(layers: Sequence[Drawn], data: dict[str, Any]) -> list[str]:
    """What the arrangement means, and the quantity."""
    first = layers[0]
    sides = first.sides if first.second else layers if first.step is None else layers[-1:]
    said = []
    if first.second is not None:
        sizes = "is, for squares of one size, at" if first.kind == "grid" else "is at"
        chance = CHANCE.replace("square", first.shape).replace("is at", sizes)
        said += [STRONG, chance]
    elif first.step is not None:
        said.append("Move from one map to the next with the slider, the arrow keys, or “Play”.")
    elif len(layers) > 1:
        said.append("Both maps have the same colours, and move together.")
    if data["changes"] is not None and first.plan is not None:
        places = "are in squares, smaller ones as you zoom in, and" if first.kind == "grid" else "are by zone, and"  # fmt: skip
        said.append(
            f"Changes {places} only those that are more than noise have a colour. The chance that any {first.shape} "
            f"of any {first.plan.period} is coloured without reason is at most {OUTSIDE * 100:g} %."
        )
    note = counted_differs_note(sides)
    explained = dict.fromkeys(one.explained for one in sides)
    return [*said, *([note] if note else []), *(text for text in explained if text)]


def _fill(template: str, **texts: str) -> str:
    """Fill a template in one pass, so that inserted text is never filled in again."""
    return re.sub(r"\{\{(\w+)\}\}", lambda match: texts[match[1]], template)


def _panel(panel: dict[str, Any]) -> str:
    heading = f"<h2>{escape(panel['name'])}</h2>" if panel["is_headed"] else ""
    return f'<section class="panel" data-panel="{panel["number"]}">{heading}<div class="map"></div></section>'


def _statement(shown: Sequence[Drawn]) -> tuple[str, str]:
    """One line, and the full privacy statements below it. Each claim concerns only its own release."""
    claims = [
        f"ε = {one.release.epsilon} for each {unit_of(one.release.protection)}" for one in shown
    ]
    if len(set(claims)) > 1:
        claims = [f"{one.title} with {claim}" for one, claim in zip(shown, claims, strict=True)]
    line = f"Differentially private: {', '.join(dict.fromkeys(claims))}"
    if not all(one.release.private for one in shown):
        line = NOT_PRIVATE
    heads = [f"<p><strong>{escape(one.title)}</strong></p>" for one in shown]
    full = [
        f"{head if len(shown) > 1 else ''}<p>{escape(one.release.statement)}</p>"
        for head, one in zip(heads, shown, strict=True)
    ]
    return f"{line}. What this means", "".join(full)


def _drawn_basemap(
    basemap: bool | Path, style: str | None, data: dict[str, Any]
) -> dict[str, Any] | None:
    """The base map around a map; none for one that lies nowhere on earth, or has one that is fetched."""
    is_nowhere = data["plane"] is not None
    if isinstance(basemap, Path) and is_nowhere:
        raise InputError(
            "this release has no reference system, so tiles have no place on its map: leave out --basemap"
        )
    if not basemap or style is not None or is_nowhere:
        return None
    (west, south), (east, north) = data["bounds"]
    bounds = west, south, east, north
    packed = json.dumps(around(bounds), separators=(",", ":"))
    drawn: dict[str, Any] = {"around": pack_text(packed), "credit": CREDIT}
    if isinstance(basemap, Path):
        tiles, credit = carried_tiles(basemap, bounds, fitting_zoom(bounds))
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
