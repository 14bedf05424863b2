"""Replies: JSON, ETags, gzip and the headers that every reply has.

A reply is sent without a framework's response object, because making one takes longer than a count.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import orjson

from htf.serve.limits import Refusal

Header = tuple[bytes, bytes]

JSON, GEOJSON = b"application/json", b"application/geo+json"
ARROW = b"application/vnd.apache.arrow.stream"
PARQUET = b"application/vnd.apache.parquet"
VECTOR_TILE = b"application/vnd.mapbox-vector-tile"
WORTH_GZIP = 1024  # bytes
GZIP_LEVEL = 4
LONGEST_DETAIL = 1000  # characters: errors quote what was sent
MAX_AGE = 300  # seconds; a file may be replaced by another at a restart
NO_STORE: Header = (b"cache-control", b"no-store")
NO_CACHE: Header = (b"cache-control", b"no-cache")
# A browser must not run, frame or guess the type of an answer. The page has its own policy.
API_HEADERS: list[Header] = [
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
]
# MapLibre makes its worker from a blob, and pictures from data and blobs.
PAGE_HEADERS: list[Header] = [
    (b"x-content-type-options", b"nosniff"),
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; "
        b"img-src 'self' data: blob:; font-src 'self'; worker-src 'self' blob:; child-src blob:; "
        b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), microphone=()"),
]


class Reply:
    """Status, headers and body, to be awaited as an ASGI application."""

    __slots__ = ("body", "headers", "status")

    def __init__(self, status: int, headers: list[Header], body: bytes = b"") -> None:
        self.status, self.headers, self.body = status, headers, body

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:  # noqa: ARG002 - ASGI's own form
        start = {"type": "http.response.start", "status": self.status, "headers": self.headers}
        await send(start)
        await send({"type": "http.response.body", "body": self.body})


@dataclass(frozen=True, slots=True)
class Packed:
    """A body, also compressed if that is worth it."""

    plain: bytes
    zipped: bytes | None

    @classmethod
    def of(cls, body: bytes, level: int = GZIP_LEVEL) -> Packed:
        return cls(body, gzip.compress(body, level, mtime=0) if _is_worth(body) else None)

    @property
    def size(self) -> int:
        return len(self.plain) + len(self.zipped or b"")


def new_reply(
    status: int,
    media: bytes,
    body: bytes,
    headers: Iterable[Header] = (NO_STORE,),
    frame: list[Header] = API_HEADERS,
) -> Reply:
    first = [(b"content-type", media), (b"content-length", b"%d" % len(body))]
    return Reply(status, [*first, *headers, *frame], body)


def packed_reply(
    scope: Any,
    etag: str,
    packed: Packed,
    media: bytes,
    cache: Header,
    frame: list[Header] = API_HEADERS,
) -> Reply:
    """A cacheable answer: compressed for clients that accept it, or 304 for those that have it."""
    headers = [cache]
    if packed.zipped is not None:
        headers.append((b"vary", b"Accept-Encoding"))
    if is_known(scope, etag):
        return Reply(304, [(b"etag", _quoted(etag)), *headers, *frame])
    body = packed.plain
    if packed.zipped is not None and accepts_gzip(scope):
        body, etag = packed.zipped, etag + "-gz"  # another representation has another ETag
        headers.append((b"content-encoding", b"gzip"))
    return new_reply(200, media, body, [(b"etag", _quoted(etag)), *headers], frame)


def small_reply(etag: str, body: bytes, cache: Header) -> Reply:
    """A count: too short to be compressed."""
    return new_reply(200, JSON, body, [(b"etag", _quoted(etag)), cache])


def moved_to(address: str) -> Reply:
    return Reply(308, [(b"location", address.encode()), (b"content-length", b"0"), *API_HEADERS])


def not_modified(etag: str, cache: Header) -> Reply:
    return Reply(304, [(b"etag", _quoted(etag)), cache, *API_HEADERS])


def zipped_reply(scope: Any, body: bytes) -> Reply:
    """JSON that is made once, compressed if that is wanted and worth it."""
    headers = [NO_STORE, (b"vary", b"Accept-Encoding")]
    if accepts_gzip(scope) and _is_worth(body):
        body = gzip.compress(body, GZIP_LEVEL, mtime=0)
        headers.append((b"content-encoding", b"gzip"))
    return new_reply(200, JSON, body, headers)


def refusal_reply(refusal: Refusal) -> Reply:
    """Errors are JSON with the text that the command line would give."""
    headers = [(name.lower().encode(), text.encode()) for name, text in refusal.headers.items()]
    if refusal.status in (408, 413):
        headers.append((b"connection", b"close"))  # the rest of the request is not read
    body = orjson.dumps({"detail": refusal.detail[:LONGEST_DETAIL]})
    return new_reply(refusal.status, JSON, body, [NO_STORE, *headers])


def header(scope: Any, name: bytes) -> bytes | None:
    """The first header of that name, which is in lower case."""
    for found, value in scope["headers"]:
        if found == name:
            return bytes(value)
    return None


def is_known(scope: Any, etag: str) -> bool:
    """Whether the client has this representation, compressed or not."""
    value = header(scope, b"if-none-match")
    if value is None:
        return False
    known = {part.strip().removeprefix("W/") for part in value.decode("latin-1").split(",")}
    return "*" in known or f'"{etag}"' in known or f'"{etag}-gz"' in known


def accepts_gzip(scope: Any) -> bool:
    value = (header(scope, b"accept-encoding") or b"").decode("latin-1").lower()
    for part in value.split(","):
        name, _, weight = part.partition(";")
        if name.strip() in ("gzip", "*"):
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


def _is_worth(body: bytes) -> bool:
    return len(body) >= WORTH_GZIP


def _quoted(etag: str) -> bytes:
    return b'"%s"' % etag.encode()
