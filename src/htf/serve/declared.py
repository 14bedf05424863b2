"""What a route is. It is declared once, where its handler is, and the rest follows: addresses, reading of parameters, the
OpenAPI document, and the page of the documentation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from inspect import iscoroutinefunction
from typing import Any, TypeVar
from urllib.parse import unquote_plus

from htf.serve.limits import Refusal
from htf.serve.replies import JSON
from htf.serve.schemas import Form, Schema, named, schema

Media = dict[str, Schema]  # what a body is, by its media type
Handler = TypeVar("Handler", bound=Callable[..., Any])


def as_json(name: str, form: Form, media: bytes = JSON) -> Media:
    """A body of JSON, whose schema gets a name in the document."""
    return {media.decode(): named(name, form)}


def as_bytes(media: bytes | str, form: Form = None) -> Media:
    return {media if isinstance(media, str) else media.decode(): schema(form)}


AN_ERROR = as_json("Error", {"detail": str})


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a URL. `read` gets the texts that were given, perhaps none, and its name."""

    name: str
    words: str
    read: Callable[[list[str], str], Any]
    form: Form = str
    example: Any = None


@dataclass(frozen=True, slots=True, eq=False)
class Route:
    """A route of `async def handler(ask, **parameters) -> Reply`.

    The handler's docstring says in the API what it is for, and its name is the operation's. A handler that is an ordinary
    function runs in a thread. If the route takes a body, it has that in `ask.body`. If not, the route is one of a
    release, and the handler returns the body of an answer, which is kept, because many people look at the same map.
    """

    path: str
    handler: Callable[..., Any]
    parameters: tuple[Parameter, ...]
    gives: Media
    takes: Media | None
    errors: Mapping[int, Media]  # that do not follow from the rest

    @property
    def method(self) -> str:
        return "POST" if self.takes else "GET"

    @property
    def is_cached(self) -> bool:
        return not (self.takes or iscoroutinefunction(self.handler))

    @property
    def form(self) -> str:
        """The path as OpenAPI, logs and metrics have it."""
        return self.path.replace(":path}", "}")

    @property
    def has_id(self) -> bool:
        return "{id}" in self.path


ROUTES: list[Route] = []


def route(
    path: str,
    *parameters: Parameter,
    gives: Media,
    takes: Media | None = None,
    errors: Iterable[int] | Mapping[int, Media] = (),
) -> Callable[[Handler], Handler]:
    """Declare the route of a handler."""
    bodies = dict(errors) if isinstance(errors, Mapping) else dict.fromkeys(errors, AN_ERROR)

    def add(handler: Handler) -> Handler:
        ROUTES.append(Route(path, handler, parameters, gives, takes, bodies))
        return handler

    return add


def is_guarded(path: str) -> bool:
    """Whether a path needs the token. The page itself, which asks for the token, and the health check are open."""
    return path.startswith("/api") or path == "/metrics"


def read_query(query: bytes, parameters: Iterable[Parameter]) -> dict[str, Any]:
    """The values of parameters. An unknown one is an error, and not ignored."""
    given: dict[str, list[str]] = {one.name: [] for one in parameters}
    for part in query.split(b"&") if query else ():
        raw, _, value = part.partition(b"=")
        name, text = raw.decode("latin-1"), value.decode("latin-1")
        if name not in given:
            told = f"it takes {', '.join(given)}" if given else "it takes none"
            raise Refusal(400, f"there is no parameter {name!r}: {told}")
        given[name].append(unquote_plus(text) if "%" in text or "+" in text else text)
    return {one.name: one.read(given[one.name], one.name) for one in parameters}


def read_one(texts: list[str], name: str) -> str | None:
    """A parameter that is given once, or not at all."""
    if len(texts) > 1:
        raise Refusal(400, f"give {name} once, got {', '.join(texts)}")
    return texts[0] if texts else None


def read_all(texts: list[str], _: str) -> list[str]:
    return texts


def read_whole(default: int, least: int, most: int | None = None) -> Callable[..., int]:
    """A reader of a whole number, which is cut off at `most`."""

    def read(texts: list[str], name: str) -> int:
        text = read_one(texts, name)
        if text is None:
            return default
        if not (text.isascii() and text.isdigit() and least <= int(text[:9]) and len(text) < 9):
            raise Refusal(400, f"{name} must be a whole number from {least} on, got {text!r}")
        return int(text) if most is None else min(int(text), most)

    return read
