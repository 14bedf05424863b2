"""The description of the API is valid, names all routes, and is true of real answers."""

from __future__ import annotations

import inspect
from typing import Any

import httpx
import jsonschema
import pytest
from openapi_spec_validator import validate
from starlette.routing import Route

from htf.serve.app import Service
from htf.serve.declared import ROUTES
from htf.serve.limits import Limits
from htf.serve.openapi import describe
from htf.serve.routes import COUNT


@pytest.mark.parametrize("has_token", [False, True])
def test_it_is_valid(has_token: bool) -> None:
    document = describe(Limits(), has_token)
    validate(document)
    assert document["security"] == ([{"token": []}] if has_token else [])


def test_it_names_all_routes(served: tuple[str, Service]) -> None:
    routes = {
        (served[1].forms[one.endpoint], method.lower())
        for one in served[1].router.routes
        if isinstance(one, Route)
        for method in (one.methods or set()) - {"HEAD"}
    }
    told = {
        (path, method)
        for path, methods in describe(Limits(), False)["paths"].items()
        for method in methods
    }
    assert routes == told


def test_every_parameter_is_read_as_declared() -> None:
    """By a handler that takes it, so that none is described and then ignored."""
    for route in ROUTES:
        taken = inspect.signature(route.handler).parameters
        if route.form != COUNT:  # which reads them itself
            assert [*taken] == ["ask", *(one.name for one in route.parameters)], route.path
        assert inspect.getdoc(route.handler)


BOXES = {"boxes": [[-30, 39.95, -29.9, 40]]}
POLYGON = {
    "type": "Polygon",
    "coordinates": [[[-30, 39.95], [-29.9, 39.95], [-29.9, 40], [-30, 39.95]]],
}


@pytest.mark.parametrize(
    ("method", "form", "path", "body"),
    [
        ("get", "/api/releases", "/api/releases", None),
        ("get", "/api/releases", "/api/releases?limit=0", None),
        ("get", "/api/releases/{id}", "/api/releases/metres", None),
        ("get", "/api/releases/{id}", "/api/releases/nowhere", None),
        ("get", "/api/releases/{id}", "/api/releases/none", None),
        ("get", "/api/releases/{id}/count", "/api/releases/seeded/count", None),
        ("get", "/api/releases/{id}/count", "/api/releases/city/count?box=1", None),
        ("get", "/api/releases/{id}/count", "/api/releases/city/count?box=1,1,2,2", None),
        ("post", "/api/releases/{id}/counts", "/api/releases/city/counts", BOXES),
        ("post", "/api/releases/{id}/counts", "/api/releases/city/counts", {}),
        ("post", "/api/releases/{id}/polygons", "/api/releases/city/polygons", POLYGON),
        ("get", "/healthz", "/healthz", None),
    ],
)  # fmt: skip
def test_answers_are_as_described(
    api: httpx.Client, method: str, form: str, path: str, body: Any
) -> None:
    document = api.get("/openapi.json").json()
    answer = api.request(method, path, json=body)
    told = document["paths"][form][method]["responses"][str(answer.status_code)]
    media = answer.headers["content-type"]
    schema = {**told["content"][media]["schema"], "components": document["components"]}
    jsonschema.validate(answer.json(), schema, cls=jsonschema.Draft202012Validator)
