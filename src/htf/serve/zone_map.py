"""The map and the table of a release of zones: outlines with answers as GeoJSON, and counts by names as columns."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import orjson

from htf.frame.division import read_by
from htf.frame.domain import Domain
from htf.maps.browser.shapes import geojson_of, in_degrees, lighter
from htf.maps.zone_views import Zones, view_zones
from htf.query.columns import OF_LEAVES
from htf.query.named import zone_axis
from htf.query.question import Question
from htf.query.where import Where
from htf.serve.limits import Limits, Refusal

if TYPE_CHECKING:
    from htf.serve.holdings import Holding

OWN = (*OF_LEAVES, "area", "density", "clear")  # properties that are not labels
NOT_BOXES = (
    "this release counts zones, which have names, and not boxes or polygons: ask for where={axis}=NAME, or see "
    "…/zones and …/table"
)


def check_zones(domain: Domain) -> None:
    """Refuse a map of zones where there is none."""
    if not domain.outlined:
        raise Refusal(404, "this release has no zones: …/tiles has its map")
    if domain.crs is None:
        raise Refusal(
            404, "this release has no reference system, so it has no map: …/table has its counts"
        )


def refuse_boxes(domain: Domain) -> None:
    """Refuse boxes and polygons where there are only zones."""
    if domain.outlined and not domain.has_map:
        raise Refusal(422, NOT_BOXES.format(axis=domain.names[domain.outlined[0]]))


def levels_of(domain: Domain) -> list[dict[str, Any]]:
    """The axes of zones with the names of their levels, from the lowest up."""
    return [
        {
            "axis": domain.names[number],
            "levels": [level.name for level in domain.axes[number].levels],
        }
        for number in domain.outlined
    ]


def make_zones(holding: Holding, level: str | None, axis: str | None, where: Where) -> bytes:
    """The zones of a level as GeoJSON."""
    release = holding.release
    check_zones(release.domain)
    view = view_zones(release, level, where, axis)
    zones = view.zones
    labels, attributes = _names(zones)
    columns = {**labels, **attributes}
    answers = view.answers.to_columns(of_leaves=True)
    columns |= {name: column.tolist() for name, column in answers.items()}
    is_known, density = view.unit == "km²", view.density.tolist()
    columns["area"] = view.area.tolist() if is_known else [None] * len(zones.low)
    columns["density"] = [one if is_known and math.isfinite(one) else None for one in density]
    columns["clear"] = view.is_clear.tolist()
    rows = zip(*columns.values(), strict=True)
    outlines = geojson_of(in_degrees(lighter(zones.shapes), zones.domain.crs))
    features = [
        {"type": "Feature", "geometry": shape, "properties": dict(zip(columns, row, strict=True))}
        for shape, row in zip(outlines, rows, strict=True)
    ]
    said = {
        "type": "FeatureCollection",
        "epsilon": str(release.epsilon),
        "axis": zones.axis.name,
        "level": view.level,
        "labels": list(labels),
        "unit": view.unit,
        **holding.label,
    }
    return orjson.dumps({**said, "features": features})


def _names(zones: Zones) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
    """The labels of the level that is drawn and of those above it, and what the layer says of single zones, where its names
    are free."""
    axis = zones.axis
    names = axis.columns(zones.low, zones.high, zones.step)
    labels = {
        level.name if level.name not in OWN else f"{axis.name} {level.name}": names.pop(level.name)
        for level in axis.levels[zones.step :]
    }
    return labels, {n: column for n, column in names.items() if n not in OWN and n not in labels}


def ask_table(domain: Domain, by: list[str], where: Where, limits: Limits) -> Any:
    """The question of a table: a row for each name of the levels and axes `by`."""
    texts = by or [domain.names[zone_axis(domain)]]
    parts = [part for text in texts for part in read_by(domain, text)]
    number = 1
    for part in parts:
        number *= len(part.edges(domain)) - 1
    if number > limits.boxes:
        raise Refusal(413, f"at most {limits.boxes:,} rows at once, got {number:,}: ask for less")
    return Question.by(*by, where=where).rows(domain)
