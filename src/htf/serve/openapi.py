"""The API described in OpenAPI 3.1, written by hand because it is small.

A test compares it with the routes and checks real answers against it.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from htf.estimation.distinct import DISTINCT_COLUMNS
from htf.privacy.protection import different_people, explain_people, split_people
from htf.query.columns import (
    ANY_QUANTITY,
    COLUMNS,
    COUNTED,
    COUNTED_MEANS,
    OF_LEAVES,
    QUANTITY,
    Column,
)
from htf.serve.limits import MEGABYTE, Limits

Schema = dict[str, Any]

NUMBER: Schema = {"type": "number"}
NUMBERS: Schema = {"type": "array", "items": NUMBER}
TEXT: Schema = {"type": "string"}
TEXTS: Schema = {"type": "array", "items": TEXT}
WHOLE: Schema = {"type": "integer", "minimum": 0}
BOX: Schema = {"type": "array", "items": NUMBER, "minItems": 2}
BOUNDS: Schema = {"type": ["array", "null"], "items": NUMBER, "minItems": 4, "maxItems": 4}
LIMITS: Schema = {
    "type": "object",
    "required": [*Limits().told()],
    "properties": dict.fromkeys(Limits().told(), WHOLE),
    "description": "Of one request, at most: bytes of its body, boxes, polygons, corners of all its polygons.",
}
DIFFERENT: Schema = {
    **TEXT,
    "description": "What is counted: different people or, for example, different person-days. "
    f"{explain_people(different_people())}",
}
MEANING: Schema = {
    "type": ["object", "null"],
    "description": "What epsilon means, in odds and beside values that others use. Null if not private.",
}
MARK: dict[str, Schema] = {
    "not_private": {
        **TEXT,
        "description": "There only where a release is not private, such as one for tests.",
    }
}
LABEL: dict[str, Schema] = {
    COUNTED: {
        **TEXT,
        "description": f"{COUNTED_MEANS} Such as split people, or records, at most 20 per person. In an Arrow stream it "
        "is metadata of the schema.",
    }
}
WARNING: dict[str, Schema] = {
    "warning": {
        **TEXT,
        "description": "There only where nothing of a box, or of all polygons, lies on the map: says which boxes, "
        "where the map lies, and whether they would lie on it with x and y swapped. In an Arrow stream it is "
        "metadata of the schema.",
    }
}


def describe(
    limits: Limits, has_token: bool, title: str | None = None, prefix: str = ""
) -> dict[str, Any]:
    """The whole document. All its paths are below the prefix of a proxy."""
    security: list[Schema] = [{"token": []}] if has_token else []
    return {
        "openapi": "3.1.0",
        "info": {
            "title": title or "htf serve",
            "version": version("htf-dp"),
            "description": "Counts with error bars from differentially private releases of location data. "
            "Every answer is computed from the release alone: asking costs no privacy.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        **({"servers": [{"url": prefix}]} if prefix else {}),
        "security": security,
        "paths": {
            **_list_paths(),
            **_count_paths(limits),
            **_zone_paths(limits),
            **_file_paths(),
            **_basemap_paths(),
            **_own_paths(),
        },
        "components": {
            "schemas": _schemas(),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}} if has_token else {},
        },
    }


def _list_paths() -> dict[str, Any]:
    return {
        "/api/releases": {
            "get": _operation(
                "listReleases",
                "The releases, in the order they were given.",
                _json("Releases"),
                [
                    _query("limit", WHOLE, "At most so many."),
                    _query("offset", WHOLE, "From here on."),
                ],
                errors=(400,),
            )
        },
        "/api/releases/{id}": {
            "get": _operation(
                "describeRelease",
                "All of a release but its leaves: privacy statement, ledger, parameters.",
                _json("Release"),
                [ID],
                errors=(404,),
            )
        },
    }


def _count_paths(limits: Limits) -> dict[str, Any]:
    most = f"At most {limits.boxes:,} boxes and {limits.body // MEGABYTE} MB."
    return {
        "/api/releases/{id}/count": {
            "get": _operation(
                "countBox",
                "The count of one box; without a box, of the whole map.",
                _json("Answer"),
                [ID, _query("box", TEXT, "W,S,E,N in the coordinates of the map."), WHERE],
                errors=(400, 404, 422),
            )
        },
        "/api/releases/{id}/counts": {
            "post": _operation(
                "countBoxes",
                f"The counts of many boxes, as JSON or as an Arrow stream (uncompressed). {most}",
                {**_json("Answers"), **_media("application/vnd.apache.arrow.stream")},
                [ID, {**WHERE, "description": "Of an Arrow stream; JSON has its own."}],
                {**_json("Boxes"), **_media("application/vnd.apache.arrow.stream")},
                errors=(400, 404, 408, 413, 415, 422, 503),
            )
        },
        "/api/releases/{id}/distinct": {
            "get": _operation(
                "distinctPeople",
                "The table of different people in the boxes of a fixed grid, if the release has one. Boxes do not add up.",
                _json("DistinctPeople"),
                [ID],
                errors=(400, 404, 503),
            )
        },
        "/api/releases/{id}/polygons": {
            "post": _operation(
                "countPolygons",
                f"The counts of polygons in longitude and latitude. At most {limits.polygons:,} of them "
                f"and {limits.corners:,} corners.",
                _json("PolygonAnswers"),
                [ID, WHERE],
                {"application/geo+json": {"schema": _named("Polygons")}, **_json("Polygons")},
                errors=(400, 404, 408, 413, 422, 501, 503),
            )
        },
    }


def _file_paths() -> dict[str, Any]:
    return {
        "/api/releases/{id}/tiles/{z}/{x}/{y}.mvt": {
            "get": _operation(
                "vectorTile",
                "A web map tile as a Mapbox Vector Tile: leaves of the release where they are few, else squares. Layer `counts`, numbers rounded to a sixteenth of their standard "
                "error or less. `west`, `south`, `width` and `height` are those of the whole leaf or square.",
                _media("application/vnd.mapbox-vector-tile"),
                [ID, *PLACE, WHERE],
                errors=(400, 404, 422, 503),
            )
        },
        "/api/releases/{id}/leaves": {
            "get": _operation(
                "leaves",
                "The outlines of all leaves, to draw: corners within a frame of Web Mercator, as columns of "
                "32-bit floats W,S,E,N, or SW,SE,NW,NE where sides are not upright; deflated, base64.",
                _json("Outlines"),
                [ID, WHERE],
                errors=(400, 404, 413, 422, 503),
            )
        },
        "/api/releases/{id}/download": {
            "get": _operation(
                "download",
                "The file of the release, GeoParquet; parts of it by Range.",
                _media("application/vnd.apache.parquet"),
                [ID],
                errors=(404, 503),
            )
        },
    }


def _basemap_paths() -> dict[str, Any]:
    return {
        "/api/releases/{id}/basemap": {
            "get": _operation(
                "basemap",
                "Water, borders and names of places around a release, to draw: fine near it, coarse from afar. "
                "Empty if the release lies nowhere on earth, or the server was started without a base map.",
                _json("Basemap"),
                [ID],
                errors=(400, 404, 503),
            )
        },
        "/api/basemap/{z}/{x}/{y}.mvt": {
            "get": _operation(
                "basemapTile",
                "A tile of the archive of `--basemap`, such as streets. Without bytes if the archive has none there.",
                _media("application/vnd.mapbox-vector-tile"),
                PLACE,
                errors=(400, 404, 503),
            )
        },
    }


def _zone_paths(limits: Limits) -> dict[str, Any]:
    return {
        "/api/releases/{id}/zones": {
            "get": _operation(
                "zones",
                "The outlines of the zones of a level, with answers. Of trips, if `where` names one end, zones are "
                "those of the other end.",
                {"application/geo+json": {"schema": _named("Zones")}},
                [
                    ID,
                    _query("level", TEXT, "Such as district; by default the lowest."),
                    _query("axis", TEXT, "By default the first axis of zones that `where` leaves."),
                    WHERE,
                ],
                errors=(400, 404, 422, 501, 503),
            )
        },
        "/api/releases/{id}/table": {
            "get": _operation(
                "countByName",
                "Counts by name: a row for each zone or category of a level, or for each step of an axis. At most "
                f"{limits.boxes:,} rows.",
                _json("Table"),
                [ID, BY, WHERE],
                errors=(400, 404, 413, 422, 503),
            )
        },
    }


def _own_paths() -> dict[str, Any]:
    def plain(name: str, told: str, content: dict[str, Any], open_to_all: bool = True) -> Schema:
        operation = _operation(name, told, content, [], errors=())
        return {"get": {**operation, "security": []} if open_to_all else operation}

    name = {"name": "name", "in": "path", "required": True, "schema": TEXT}
    static = _operation("static", "The page's own files.", _media("*/*"), [name], errors=(404,))
    return {
        "/healthz": _health(),
        "/metrics": plain("metrics", "For Prometheus.", _text("text/plain"), open_to_all=False),
        "/openapi.json": plain("openapi", "This.", {"application/json": {"schema": {}}}),
        "/static/{name}": {"get": {**static, "security": []}},
        "/": plain("page", "A page with a map.", {**_text("text/html"), **_text("text/plain")}),
    }


def _health() -> Schema:
    told = "Whether the server is ready. While it loads its releases the status is 503."
    operation = _operation("health", told, _json("Health"), [], errors=())
    responses = operation["responses"] | {
        "503": {"description": "Starting.", "content": _json("Health")}
    }
    return {"get": {**operation, "responses": responses, "security": []}}


ID: Schema = {
    "name": "id",
    "in": "path",
    "required": True,
    "schema": TEXT,
    "description": "As the list of releases has it.",
}
PLACE: list[Schema] = [
    {"name": name, "in": "path", "required": True, "schema": WHOLE} for name in ("z", "x", "y")
]
WHERE: Schema = {
    "name": "where",
    "in": "query",
    "schema": {"type": "array", "items": TEXT},
    "style": "form",
    "explode": True,
    "description": "A range of a further axis, such as hour=7:10, or a name on one, such as offence=Assault or "
    "zone=District 1; may be repeated.",
    "example": ["hour=7:10"],
}
BY: Schema = {
    "name": "by",
    "in": "query",
    "schema": {"type": "array", "items": TEXT},
    "style": "form",
    "explode": True,
    "description": "A level, such as district, of every axis of zones that has it; zone:district is that of one axis. "
    "Or an axis, such as hour. By default the lowest level of zones; may be repeated.",
    "example": ["district"],
}


def _operation(
    name: str,
    told: str,
    content: dict[str, Any],
    parameters: list[Schema],
    body: dict[str, Any] | None = None,
    *,
    errors: tuple[int, ...],
) -> Schema:
    responses: dict[str, Any] = {"200": {"description": "The answer.", "content": content}}
    for status in errors:
        responses[str(status)] = {"description": STATUS[status], "content": _json("Error")}
    operation: Schema = {"operationId": name, "summary": told, "responses": responses}
    if parameters:
        operation["parameters"] = parameters
    if body is not None:
        operation["requestBody"] = {"required": True, "content": body}
    return operation


STATUS = {
    400: "What was sent cannot be read.",
    404: "There is no such thing.",
    408: "The body came too slowly.",
    413: "Too much at once.",
    415: "A format that is not known.",
    422: "What was asked makes no sense; the detail says what to do.",
    501: "An optional package is not installed.",
    503: "Too busy, or it took too long.",
}


def _query(name: str, schema: Schema, told: str) -> Schema:
    return {"name": name, "in": "query", "schema": schema, "description": told}


def _named(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _json(name: str) -> dict[str, Any]:
    return {"application/json": {"schema": _named(name)}}


def _text(media: str) -> dict[str, Any]:
    return {media: {"schema": TEXT}}


def _media(media: str) -> dict[str, Any]:
    return {media: {"schema": {}}}


def _object(required: dict[str, Any], optional: dict[str, Any] | None = None) -> Schema:
    properties = {**required, **(optional or {})}
    return {"type": "object", "required": [*required], "properties": properties}


def _schemas() -> dict[str, Schema]:
    return {
        "Error": _object({"detail": TEXT}),
        "Health": _object({"status": {"enum": ["ok", "starting"]}}),
        **_release_schemas(),
        **_question_schemas(),
        **_answer_schemas(),
    }


def _release_schemas() -> dict[str, Schema]:
    axis = _object(
        {"name": TEXT, "low": NUMBER, "high": NUMBER, "cells": WHOLE}, {"names": _axis_names()}
    )
    zones = _object({"axis": TEXT, "levels": TEXTS})
    about = {
        "id": TEXT,
        "name": TEXT,
        "series": {
            "anyOf": [_object({"id": TEXT, "name": TEXT, "period": TEXT}), {"type": "null"}],
            "description": "Which period of which series it is, such as 2026-03. Periods of a series come one after "
            "another in the list. Null for a release of its own.",
        },
        "private": {"type": "boolean"},
        "epsilon": {**TEXT, "description": "A decimal number, exact."},
        "unit": {"enum": ["record", "person"]},
        "protects": {
            **TEXT,
            "description": "What epsilon is for, such as one person in one day.",
        },
        **_quantity(),
        **LABEL,
        "mechanism": TEXT,
        "leaves": WHOLE,
        "crs": {"type": ["string", "null"]},
        "bounds": {**BOUNDS, "description": "W,S,E,N in the coordinates of the map."},
        "bounds84": {**BOUNDS, "description": "W,S,E,N in degrees."},
        "axes": {"type": "array", "items": axis},
        "zones": {
            "type": "array",
            "items": zones,
            "description": "The axes whose cells are zones, with the names of their levels from the lowest up. Two of "
            "them are the ends of trips. Empty for a release of boxes.",
        },
        "total": _object(_answer(OF_LEAVES)),
    }
    summary = {"statement": TEXT, "noise": TEXT, "ledger": {"type": "array"}, "parameters": {}}
    releases = {"type": "array", "items": _object(about, MARK)}
    following = {"type": ["string", "null"], "description": "Where the list goes on."}
    told = {"releases": releases, "number": WHOLE, "next": following, "limits": LIMITS}
    return {
        "Releases": _object(told),
        "Release": _object({**about, **summary, "meaning": MEANING}, MARK),
    }


def _quantity() -> Schema:
    quantity = (
        "What counts are numbers of: records, a sum of a weight, split people or, for example, split "
        f"person-days. {explain_people(split_people())}"
    )
    explained = "What a count of split people means. Empty for records and sums."
    return {
        "quantity": {**TEXT, "description": quantity},
        "explained": {**TEXT, "description": explained},
    }


def _axis_names() -> Schema:
    level = _object({"name": TEXT, "labels": TEXTS, "starts": {"type": "array", "items": WHOLE}})
    return {
        **_object(
            {
                "levels": {"type": "array", "items": level},
                "rest": {"type": ["string", "null"]},
                "zones": {"type": "boolean"},
            }
        ),
        "description": "There only where cells have names. A label of a level has the cells from its start up to the "
        "next. The rest takes every value without a name of its own.",
    }


def _question_schemas() -> dict[str, Schema]:
    kinds = ["Polygon", "MultiPolygon", "Feature", "FeatureCollection"]
    return {
        "Boxes": _object(
            {"boxes": {"type": "array", "items": BOX}},
            {"where": {"type": "object", "additionalProperties": {"anyOf": [NUMBERS, TEXT]}}},
        ),
        "Polygons": {
            **_object({"type": {"enum": kinds}}),
            "description": "GeoJSON, in longitude and latitude.",
        },
    }


def _answer_schemas() -> dict[str, Schema]:
    bars = _answer(COLUMNS)
    answers = {"type": "array", "items": _object(bars)}
    return {
        "Answer": _object({**bars, **LABEL}, {**WARNING, **MARK}),
        "Answers": _object({**dict.fromkeys(bars, NUMBERS), **LABEL}, {**WARNING, **MARK}),
        "PolygonAnswers": _object({"answers": answers, **LABEL}, {**WARNING, **MARK}),
        "Table": _object(
            {
                "labels": {
                    "type": "object",
                    "additionalProperties": {"type": "array"},
                    "description": "Columns that say what each row is called.",
                },
                **dict.fromkeys(bars, NUMBERS),
                **LABEL,
            },
            {**WARNING, **MARK},
        ),
        "Zones": _zones(),
        "DistinctPeople": _object(
            {**dict.fromkeys(DISTINCT_COLUMNS, NUMBERS), "quantity": DIFFERENT}, MARK
        ),
        "Basemap": _basemap(),
        "Outlines": _object({"frame": NUMBERS, "length": WHOLE, "corners": TEXT}, MARK),
    }


def _answer(columns: Mapping[str, Column]) -> dict[str, Schema]:
    return {
        name: {**NUMBER, "description": f"{column.describe()} ({_unit(column)})"}
        for name, column in columns.items()
    }


def _unit(column: Column) -> str:
    return f"what `{COUNTED}` says" if column.unit == QUANTITY else column.unit


def _basemap() -> Schema:
    steps = {
        "type": "array",
        "items": {"type": "integer"},
        "description": "x, y of the first corner in `unit` degrees, then steps from corner to corner.",
    }
    many = {"type": "array", "items": steps}
    line = _object({"kind": TEXT, "rank": WHOLE, "lines": many}, {})
    part = _object(
        {
            "unit": NUMBER,
            "bounds": NUMBERS,
            "water": {"type": "array", "items": many},
            "lines": {"type": "array", "items": line},
        },
        {},
    )
    name = {"type": "array", "description": "Name, longitude, latitude, rank and kind."}
    tiles = {
        **_object(
            {
                "minzoom": WHOLE,
                "maxzoom": WHOLE,
                "bounds": NUMBERS,
                "layers": {"type": "array", "items": TEXT},
            },
            {},
        ),
        "description": "What /api/basemap has tiles of, if it covers the release.",
    }
    return _object(
        {
            "parts": {"type": "array", "items": part},
            "zoom": {**NUMBER, "description": "Below it, the coarse part is drawn."},
            "names": {"type": "array", "items": name},
            "credit": {"type": ["string", "null"]},
            "tiles": {"anyOf": [tiles, {"type": "null"}]},
        },
        {},
    )


def _zones() -> Schema:
    density = {"type": ["number", "null"], "description": f"The count per km², of {ANY_QUANTITY}."}
    area = {
        "type": ["number", "null"],
        "description": "In km²; 0 for the rest, which has no outline.",
    }
    clear = {"type": "boolean", "description": "Whether the interval lies above zero."}
    properties = _object({**_answer(OF_LEAVES), "density": density, "area": area, "clear": clear})
    feature = _object({"type": {"const": "Feature"}, "geometry": {}, "properties": properties})
    labels = {
        **TEXTS,
        "description": "The properties that are labels: of this level, then of those above it.",
    }
    return _object(
        {
            "type": {"const": "FeatureCollection"},
            "features": {"type": "array", "items": feature},
            "epsilon": TEXT,
            "axis": TEXT,
            "level": TEXT,
            "labels": labels,
            "unit": {**TEXT, "description": "What a density is per."},
            **LABEL,
        },
        MARK,
    )
