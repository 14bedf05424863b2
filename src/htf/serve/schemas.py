"""What bodies look like, as JSON Schema, from a short form: `str`, `int` (from 0 on), `float` and `bool`, `[form]` for a
list, `{"name": form}` for an object, in which a name that ends in `?` may be missing, and None for anything.

A form of our own, because columns of answers are declared as data (`htf.query.columns`), which classes of models cannot
take up; and no body is read or made through a model (docs/decisions/0011-http-server.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
from htf.serve.limits import Limits

Form = Any


class Schema(dict[str, Any]):
    """A schema as JSON Schema has it, and no form."""


KINDS: dict[type, Schema] = {
    str: Schema(type="string"),
    float: Schema(type="number"),
    int: Schema(type="integer", minimum=0),
    bool: Schema(type="boolean"),
}
SCHEMAS: dict[str, Schema] = {}  # that have names, as components of the document


def schema(form: Form) -> Schema:
    if form is None:
        return Schema()
    if isinstance(form, Schema):
        return form
    if isinstance(form, type):
        return KINDS[form]
    if isinstance(form, list):
        return Schema(type="array", items=schema(form[0]))
    return Schema(
        type="object",
        required=[name for name in form if not name.endswith("?")],
        properties={name.removesuffix("?"): schema(one) for name, one in form.items()},
    )


def named(name: str, form: Form) -> Schema:
    SCHEMAS[name] = schema(form)
    return Schema({"$ref": f"#/components/schemas/{name}"})


def said(form: Form, words: str) -> Schema:
    return Schema(schema(form), description=words)


def maybe(form: Form) -> Schema:
    """The same or null."""
    found = schema(form)
    return Schema(found, type=[found["type"], "null"])


def one_of(*values: str) -> Schema:
    return Schema(enum=[*values])


def answer(columns: Mapping[str, Column] = COLUMNS) -> dict[str, Form]:
    """The columns of an answer."""

    def unit(column: Column) -> str:
        return f"what `{COUNTED}` says" if column.unit == QUANTITY else column.unit

    return {
        name: said(float, f"{column.describe()} ({unit(column)})")
        for name, column in columns.items()
    }


BOX = Schema(type="array", items=schema(float), minItems=2)
WHOLE_NUMBERS = Schema(type="array", items=Schema(type="integer"))
MARK = {
    "not_private?": said(str, "There only where a release is not private, such as one for tests.")
}
COUNTED_MEMBER = {
    COUNTED: said(
        str,
        f"{COUNTED_MEANS} Such as split people, or records, at most 20 per person. In an Arrow stream it is metadata "
        "of the schema.",
    )
}
LABEL = {**COUNTED_MEMBER, **MARK}
WARNED = {
    **COUNTED_MEMBER,
    "warning?": said(
        str,
        "There only where nothing of a box, or of all polygons, lies on the map: says which boxes, where the map "
        "lies, and whether they would lie on it with x and y swapped. In an Arrow stream it is metadata of the schema.",
    ),
    **MARK,
}
MANY = {name: [float] for name in COLUMNS}  # answers as columns
DENSITY = f"The count per km², of {ANY_QUANTITY}."


def _bounds(words: str) -> Schema:
    edges = Schema(type="array", items=schema(float), minItems=4, maxItems=4)
    return said(maybe(edges), words)


AXIS = {
    "name": str,
    "low": float,
    "high": float,
    "cells": int,
    "names?": said(
        {
            "levels": [{"name": str, "labels": [str], "starts": [int]}],
            "rest": maybe(str),
            "zones": bool,
        },
        "There only where cells have names. A label of a level has the cells from its start up to the next. The rest "
        "takes every value without a name of its own.",
    ),
}
ABOUT = {
    "id": str,
    "name": str,
    "series": said(
        maybe({"id": str, "name": str, "period": str}),
        "Which period of which series it is, such as 2026-03. Periods of a series come one after another in the "
        "list. Null for a release of its own.",
    ),
    "private": bool,
    "epsilon": said(str, "A decimal number, exact."),
    "unit": one_of("record", "person"),
    "protects": said(str, "What epsilon is for, such as one person in one day."),
    "quantity": said(
        str,
        "What counts are numbers of: records, a sum of a weight, split people or, for example, split person-days. "
        f"{explain_people(split_people())}",
    ),
    "explained": said(str, "What a count of split people means. Empty for records and sums."),
    **COUNTED_MEMBER,
    "mechanism": str,
    "leaves": int,
    "crs": maybe(str),
    "bounds": _bounds("W,S,E,N in the coordinates of the map."),
    "bounds84": _bounds("W,S,E,N in degrees."),
    "axes": [AXIS],
    "zones": said(
        [{"axis": str, "levels": [str]}],
        "The axes whose cells are zones, with the names of their levels from the lowest up. Two of them are the ends "
        "of trips. Empty for a release of boxes.",
    ),
    "total": answer(OF_LEAVES),
    **MARK,
}
RELEASE = {
    **ABOUT,
    "statement": str,
    "noise": str,
    "ledger": [None],
    "parameters": None,
    "meaning": said(
        maybe({}),
        "What epsilon means, in odds and beside values that others use. Null if not private.",
    ),
}
RELEASES = {
    "releases": [ABOUT],
    "number": int,
    "next": said(maybe(str), "Where the list goes on."),
    "limits": said(
        dict.fromkeys(Limits().told(), int),
        "Of one request, at most: bytes of its body, boxes, polygons, corners of all its polygons.",
    ),
}
BOXES = {
    "boxes": [BOX],
    "where?": Schema(type="object", additionalProperties={"anyOf": [schema([float]), schema(str)]}),
}
POLYGONS = said(
    {"type": one_of("Polygon", "MultiPolygon", "Feature", "FeatureCollection")},
    "GeoJSON, in longitude and latitude.",
)
ANSWER = {**answer(), **WARNED}
ANSWERS = {**MANY, **WARNED}
POLYGON_ANSWERS = {"answers": [answer()], **WARNED}
LABELS = Schema(
    type="object",
    additionalProperties=schema([None]),
    description="Columns that say what each row is called.",
)
TABLE = {"labels": LABELS, **MANY, **WARNED}
DISTINCT_QUANTITY = said(
    str,
    "What is counted: different people or, for example, different person-days. "
    f"{explain_people(different_people())}",
)
ZONE = {
    "type": one_of("Feature"),
    "geometry": None,
    "properties": {
        **answer(OF_LEAVES),
        "density": said(maybe(float), DENSITY),
        "area": said(maybe(float), "In km²; 0 for the rest, which has no outline."),
        "clear": said(bool, "Whether the interval lies above zero."),
    },
}
ZONES = {
    "type": one_of("FeatureCollection"),
    "features": [ZONE],
    "epsilon": str,
    "axis": str,
    "level": str,
    "labels": said([str], "The properties that are labels: of this level, then of those above it."),
    "unit": said(str, "What a density is per."),
    **LABEL,
}
OUTLINES = {"frame": [float], "length": int, "corners": str, **MARK}
STEPS = said(
    WHOLE_NUMBERS, "x, y of the first corner in `unit` degrees, then steps from corner to corner."
)
BASEMAP = {
    "parts": [
        {
            "unit": float,
            "bounds": [float],
            "water": [[STEPS]],
            "lines": [{"kind": str, "rank": int, "lines": [STEPS]}],
        }
    ],
    "zoom": said(float, "Below it, the coarse part is drawn."),
    "names": said([[None]], "Name, longitude, latitude, rank and kind."),
    "credit": maybe(str),
    "tiles": said(
        maybe({"minzoom": int, "maxzoom": int, "bounds": [float], "layers": [str]}),
        "What /api/basemap has tiles of, if it covers the release.",
    ),
}
