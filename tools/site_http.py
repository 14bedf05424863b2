"""The page on the HTTP API, written from its OpenAPI document: what `/openapi.json` says, for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from site_commands import cell, escaped

Schema = dict[str, Any]
COMPONENT = "#/components/schemas/"


def http_page(document: Schema) -> str:
    """Markdown on every route, and on every object that one takes or gives."""
    paths, schemas = document["paths"], document["components"]["schemas"]
    return "\n".join([*_routes(paths), *_errors(paths), *_objects(schemas)])


def _routes(paths: Schema) -> Iterator[str]:
    yield "## Routes\n"
    for path, methods in paths.items():
        for method, operation in methods.items():
            yield f"### {method.upper()} {path}\n"
            yield escaped(operation["summary"]) + "\n"
            yield from _table(
                ("parameter", "meaning"),
                [
                    (f"`{one['name']}`", escaped(one.get("description", "In the path.")))
                    for one in operation.get("parameters", ())
                ],
            )
            body = operation.get("requestBody")
            rows = [("takes", _media(body["content"]))] if body else []
            responses = operation["responses"]
            rows.append(("gives", _media(responses["200"]["content"])))
            errors = ", ".join(status for status in responses if status != "200")
            yield from _table(("", "body"), [*rows, *([("errors", errors)] if errors else [])])


def _errors(paths: Schema) -> Iterator[str]:
    yield "## Errors\n\nThe body of an error is an [Error](#error).\n"
    told = {
        status: answer["description"]
        for methods in paths.values()
        for operation in methods.values()
        for status, answer in operation["responses"].items()
        if status != "200"
    }
    yield from _table(("status", "meaning"), [(one, escaped(told[one])) for one in sorted(told)])


def _objects(schemas: Schema) -> Iterator[str]:
    yield "## Objects\n"
    for name, schema in schemas.items():
        yield f"### {name}\n"
        yield from _table(("member", "kind", "meaning"), [*_members(schema, "")])
        if "description" in schema:
            yield escaped(schema["description"]) + "\n"


def _members(schema: Schema, before: str) -> Iterator[tuple[str, str, str]]:
    for name, member in schema.get("properties", {}).items():
        full = f"{before}{name}"
        optional = "" if name in schema.get("required", ()) else ", not always there"
        kind, inner, suffix = _kind(member)
        yield f"`{full}`", kind + optional, escaped(member.get("description", ""))
        yield from _members(inner, f"{full}{suffix}.")


def _kind(schema: Schema) -> tuple[str, Schema, str]:
    """The kind of a value in words, the object that it is or has, and what stands before its members."""
    if "$ref" in schema:
        return _link(schema["$ref"]), {}, ""
    if "enum" in schema:
        return " or ".join(f"`{one}`" for one in schema["enum"]), {}, ""
    if "const" in schema:
        return f"`{schema['const']}`", {}, ""
    if "anyOf" in schema:
        kinds = [_kind(one) for one in schema["anyOf"]]
        objects = [(inner, suffix) for _, inner, suffix in kinds if inner]
        return " or ".join(kind for kind, *_ in kinds), *(objects or [({}, "")])[0]
    kinds = schema.get("type", "any")
    kind = kinds if isinstance(kinds, str) else " or ".join(kinds)
    if "array" in kind and "items" in schema:
        items, inner, suffix = _kind(schema["items"])
        return f"{kind} of {items}", inner, f"[]{suffix}"
    return kind, schema, ""


def _media(content: Schema) -> str:
    told = []
    for media, one in content.items():
        schema = one.get("schema", {})
        of = f" ({_link(schema['$ref'])})" if "$ref" in schema else ""
        told.append(f"`{media}`{of}")
    return " or ".join(told)


def _link(reference: str) -> str:
    name = reference.removeprefix(COMPONENT)
    return f"[{name}](#{name.lower()})"


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> Iterator[str]:
    if rows:
        yield f"| {' | '.join(head)} |\n|{' --- |' * len(head)}"
        yield from (f"| {' | '.join(map(cell, row))} |" for row in rows)
        yield ""
