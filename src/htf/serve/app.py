"""The service: the handling that every request shares. Its routes are in `htf.serve.routes`.

Starlette does the routing and sends files; replies are our own (htf.serve.replies). The most frequent request,
the count of one box, bypasses the router and is counted together with others of the same moment.
"""

from __future__ import annotations

import asyncio
import functools
import hmac
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from starlette import routing
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from htf.errors import InputError, MissingExtraError
from htf.maps.browser.street_tiles import Archive
from htf.serve import questions, replies, routes, site
from htf.serve.answers import one_count
from htf.serve.declared import ROUTES, Route, is_guarded, read_query
from htf.serve.holdings import Holding
from htf.serve.limits import Limits, Refusal
from htf.serve.logs import RequestLog, log_fault
from htf.serve.metrics import Metrics
from htf.serve.prefix import PREFIX, prefix_of
from htf.serve.replies import Header, Packed, Reply
from htf.serve.tiles import TileCache
from htf.serve.workers import Deadline, Workers, busy

UNMATCHED = ""  # the route, in logs and metrics, of requests that match none
CLOSED_BY_CLIENT = 499  # in logs only


@dataclass(frozen=True, slots=True)
class Settings:
    """Options for running the service."""

    token: bytes | None = None
    cors: tuple[str, ...] = ()
    log_queries: bool = False
    limits: Limits = field(default_factory=Limits)
    basemap: bool = True  # whether the page draws the base map that HTF carries
    brand: site.Brand = field(default_factory=site.Brand)
    streets: Archive | None = None  # vector tiles that the page draws on the base map, close up
    root_path: str = ""  # the prefix of all paths, as a proxy has it
    trust_proxy: bool = False  # whether X-Forwarded-Prefix is believed


class Watched:
    """A `send` function that notes the status and the number of bytes sent."""

    __slots__ = ("send", "size", "status")

    def __init__(self, send: Any) -> None:
        self.send, self.status, self.size = send, 0, 0

    def __call__(self, message: Any) -> Any:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        else:
            self.size += len(message.get("body", b""))
        return self.send(message)


@dataclass(slots=True)
class Ask:
    """A request on its way: what its handler is given, and what it counted."""

    service: Service
    request: Request
    holding: Holding  # the same until the answer, though the service may change its releases; None without an id
    deadline: Deadline
    body: bytes = b""
    held: int = 0  # bytes of the body, which count until it is answered
    boxes: int = 0
    polygons: int = 0

    @property
    def scope(self) -> Any:
        return self.request.scope


class Service:
    """The ASGI application over the releases it holds. Without any it is starting, and says so."""

    def __init__(
        self, holdings: dict[str, Holding] | None = None, settings: Settings | None = None
    ) -> None:
        self.settings = settings or Settings()
        self.limits = self.settings.limits
        self.holdings: dict[str, Holding] = {}
        self.is_ready = False
        self.workers = Workers(self.limits)
        self.metrics = Metrics()
        self.log = RequestLog(self.settings.log_queries)
        self.tiles = TileCache(self.limits.tile_cache)
        self.assets = site.load_site(self.settings.brand)
        shared = "private" if self.settings.token else "public"
        self.cache: Header = (b"cache-control", f"{shared}, max-age={replies.MAX_AGE}".encode())
        streets = self.settings.streets
        kind = streets.etag if streets else str(self.settings.basemap)
        self._options = kind.encode()  # that answers depend on: of ETags
        self._held_bytes = 0
        endpoints = {one: functools.partial(self._run, one) for one in ROUTES}
        self.router = routing.Router(
            [routing.Route(one.path, end, methods=[one.method]) for one, end in endpoints.items()],
            redirect_slashes=False,
        )
        self.forms: dict[Any, str] = {end: one.form for one, end in endpoints.items()}
        (self._count_endpoint,) = (end for end, form in self.forms.items() if form == routes.COUNT)
        if holdings is not None:
            self.hold(holdings)

    def hold(self, holdings: dict[str, Holding]) -> None:
        """Serve these releases from now on. Requests that are being answered keep the release that they have."""
        self.holdings, self.is_ready = holdings, True

    # Handling that every request shares.

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        started, sending = perf_counter(), Watched(send)
        self.metrics.running += 1
        status = CLOSED_BY_CLIENT
        try:
            try:
                await self._answer(scope, receive, sending)
            except ClientDisconnect:
                return
            except Exception as error:
                if sending.status:  # too late for another answer; the connection is closed
                    raise
                await replies.refusal_reply(as_refusal(error))(scope, receive, sending)
            status = sending.status
        finally:
            self.metrics.running -= 1
            seconds = perf_counter() - started
            route = self.forms.get(scope.get("endpoint"), UNMATCHED)
            self.metrics.add(route, status, seconds)
            self.log.add(scope, route, status, seconds, sending.size)

    async def _answer(self, scope: Any, receive: Any, sending: Watched) -> None:
        if self.settings.root_path or self.settings.trust_proxy:
            prefix = scope[PREFIX] = prefix_of(
                scope, self.settings.root_path, self.settings.trust_proxy
            )
            if prefix and scope["path"] == prefix:
                await replies.moved_to(prefix + "/")(scope, receive, sending)
                return
            if prefix and scope["path"].startswith(prefix + "/"):
                scope["path"] = scope["path"][len(prefix) :]  # before anything asks for a token
        path = scope["path"]
        if self.settings.token is not None:
            self._check_token(scope, path)
        if not self.is_ready and path.startswith("/api"):
            raise Refusal(
                503, "the server is starting: it loads its releases", {"Retry-After": "1"}
            )
        if scope["method"] == "GET" and path.endswith("/count"):
            holding = self.holdings.get(path[len("/api/releases/") : -len("/count")])
            if holding is not None and path.startswith("/api/releases/"):
                scope["endpoint"] = self._count_endpoint
                reply = await self.count(scope, holding)
                sending.status, sending.size = reply.status, len(reply.body)  # faster than watching
                await reply(scope, receive, sending.send)
                return
        scope["app"] = self  # so that the router raises if nothing matches
        await self.router(scope, receive, sending)

    def _check_token(self, scope: Any, path: str) -> None:
        if not is_guarded(path):
            return
        kind, _, given = (replies.header(scope, b"authorization") or b"").partition(b" ")
        is_right = hmac.compare_digest(given.strip(), self.settings.token or b"")
        if kind.lower() != b"bearer" or not is_right:
            told = "this is not the token" if given else "this needs a token"
            raise Refusal(401, f"{told}: Authorization: Bearer …", {"WWW-Authenticate": "Bearer"})

    # Routes.

    async def count(self, scope: Any, holding: Holding) -> Reply:
        query = scope["query_string"]
        etag = holding.etag(b"count?" + query)
        if replies.is_known(scope, etag):
            return replies.not_modified(etag, self.cache)
        row = questions.read_row(holding.release.domain, query)
        answer = await holding.together.count(row)
        self.metrics.boxes += 1
        return replies.small_reply(etag, one_count(holding, row, answer), self.cache)

    async def _run(self, route: Route, request: Request) -> Reply | Response:
        holding: Any = self.holdings.get(request.path_params.get("id", ""))
        if route.has_id and holding is None:
            raise Refusal(404, "there is no such release: /api/releases lists them")
        ask = Ask(self, request, holding, Deadline(self.limits.seconds))
        values: dict[str, Any] = {}
        if route.path.startswith("/api"):
            values = read_query(request.scope["query_string"], route.parameters)
        if not (route.is_cached or route.takes):
            reply: Reply | Response = await route.handler(ask, **values)
            return reply

        def work(deadline: Deadline) -> Any:
            ask.deadline = deadline
            made = route.handler(ask, **values)
            return Packed.of(made) if isinstance(made, bytes) else made

        return await (
            self._cached(route, ask, work) if route.is_cached else self._posted(ask, work)
        )

    async def _cached(self, route: Route, ask: Ask, work: Callable[[Deadline], Packed]) -> Reply:
        scope = ask.scope
        asked = f"{scope['path']}?".encode() + scope["query_string"]
        etag = ask.holding.etag(b"%s %s" % (self._options, asked))
        found = self.tiles.get(etag)
        if found is not None:
            self.metrics.cached_tiles += 1
        elif replies.is_known(scope, etag):
            return replies.not_modified(etag, self.cache)
        else:
            found = await self.workers.run(work)
            self.tiles.put(etag, found)
        (media,) = route.gives
        return replies.packed_reply(scope, etag, found, media.encode(), self.cache)

    async def _posted(self, ask: Ask, work: Callable[[Deadline], Reply]) -> Reply:
        try:
            await self._read_body(ask)
            reply = await self.workers.run(work)
        finally:
            self._held_bytes -= ask.held
        self.metrics.boxes += ask.boxes
        self.metrics.polygons += ask.polygons
        return reply

    async def _read_body(self, ask: Ask) -> None:
        """The whole body, or a refusal as soon as it is too large, too slow, or too much together with
        the bodies of other requests."""
        limits = self.limits
        too_large = Refusal(413, f"at most {limits.body:,} bytes at once: ask in parts")
        if int(replies.header(ask.scope, b"content-length") or 0) > limits.body:
            raise too_large
        chunks: list[bytes] = []
        try:
            async with asyncio.timeout(limits.seconds):
                async for chunk in ask.request.stream():
                    if self._held_bytes + len(chunk) > limits.all_bodies:
                        raise busy()
                    self._held_bytes += len(chunk)
                    ask.held += len(chunk)
                    if ask.held > limits.body:
                        raise too_large
                    chunks.append(chunk)
        except TimeoutError:
            raise Refusal(
                408, f"the body did not arrive within {limits.seconds:g} seconds"
            ) from None
        ask.body = b"".join(chunks)

    def close(self) -> None:
        self.workers.close()
        self.log.write()


def make_app(service: Service) -> Any:
    """The service with CORS for the named origins only."""
    origins = service.settings.cors
    if not origins:
        return service
    return CORSMiddleware(
        service,
        allow_origins=list(origins),
        allow_methods=["GET", "POST"],
        allow_headers=["Authorization", "Content-Type", "If-None-Match"],
        expose_headers=["ETag", "Content-Disposition"],
    )


def as_refusal(error: Exception) -> Refusal:
    """An error as a refusal. Our own errors say what to do; all others are bugs of ours, and say nothing."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, MissingExtraError):
        return Refusal(501, str(error))
    if isinstance(error, InputError):
        return Refusal(422, str(error))
    if isinstance(error, HTTPException):
        told = {404: "there is nothing here: /openapi.json says what there is"}
        detail = told.get(error.status_code, error.detail)
        return Refusal(error.status_code, detail, error.headers)
    log_fault(error)
    return Refusal(500, "this is a bug in HTF; the log of the server says where")
