"""The OpenAPI 3.1 document, which follows from the routes as they are declared."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

from htf.serve import routes  # noqa: F401 - which declares them
from htf.serve.declared import AN_ERROR, ROUTES, Media, Parameter, Route, is_guarded
from htf.serve.limits import MEGABYTE, Limits
from htf.serve.schemas import SCHEMAS, schema

STATUS = {
    400: "What was sent cannot be read.",
    401: "The token is missing or wrong.",
    404: "There is no such thing.",
    408: "The body came too slowly.",
    413: "Too much at once.",
    415: "A format that is not known.",
    422: "What was asked makes no sense; the detail says what to do.",
    501: "An optional package is not installed.",
    503: "Starting, too busy, or it took too long.",
}
PATH_WORDS = {"id": "As the list of releases has it."}


def describe(
    limits: Limits, has_token: bool, title: str | None = None, prefix: str = ""
) -> dict[str, Any]:
    """The whole document. All its paths are below the prefix of a proxy."""
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
        "security": [{"token": []}] if has_token else [],
        "paths": {
            one.form: {one.method.lower(): _operation(one, limits, has_token)} for one in ROUTES
        },
        "components": {
            "schemas": SCHEMAS,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}} if has_token else {},
        },
    }


def _operation(route: Route, limits: Limits, has_token: bool) -> dict[str, Any]:
    words = " ".join((inspect.getdoc(route.handler) or "").split())
    parameters = [*_in_path(route.path), *map(_in_query, route.parameters)]
    responses = {"200": {"description": "The answer.", "content": _content(route.gives)}}
    for status, media in sorted(_errors(route, has_token).items()):
        responses[str(status)] = {"description": STATUS[status], "content": _content(media)}
    return {
        "operationId": re.sub(r"_(\w)", lambda found: found[1].upper(), route.handler.__name__),
        "summary": words.format(**limits.told(), megabytes=limits.body // MEGABYTE),
        **({"parameters": parameters} if parameters else {}),
        **(
            {"requestBody": {"required": True, "content": _content(route.takes)}}
            if route.takes
            else {}
        ),
        "responses": responses,
        **({} if is_guarded(route.path) else {"security": []}),
    }


def _errors(route: Route, has_token: bool) -> dict[int, Media]:
    found = set()
    if route.path.startswith("/api"):
        found |= {400, 503}
    if has_token and is_guarded(route.path):
        found.add(401)
    if "{" in route.path:
        found.add(404)
    if route.has_id and route.parameters:
        found.add(422)
    if route.takes:
        found |= {408, 413}
    return {**dict.fromkeys(found, AN_ERROR), **route.errors}


def _in_path(path: str) -> Iterator[dict[str, Any]]:
    for name in re.findall(r"{(\w+)", path):
        form = int if name in "zxy" else str
        words = {"description": PATH_WORDS[name]} if name in PATH_WORDS else {}
        yield {"name": name, "in": "path", "required": True, "schema": schema(form), **words}


def _in_query(one: Parameter) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": one.name,
        "in": "query",
        "schema": schema(one.form),
        "description": one.words,
    }
    if isinstance(one.form, list):
        found |= {"style": "form", "explode": True}
    return found if one.example is None else {**found, "example": one.example}


def _content(media: Media) -> dict[str, Any]:
    return {name: {"schema": one} for name, one in media.items()}
