"""The HTTP API: its routes, and the handling that every request shares.

Starlette does the routing and sends files; replies are our own (htf.serve.replies). The most frequent request,
the count of one box, bypasses the router and is counted together with others of the same moment.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
import orjson
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse
from starlette.routing import Route, Router

from htf.errors import InputError, MissingExtraError
from htf.estimation.distinct import DISTINCT_COLUMNS
from htf.frame.domain import Domain, FloatArray
from htf.maps.basemap import CREDIT
from htf.maps.browser.base_map import around
from htf.maps.browser.street_tiles import Archive, overlaps
from htf.maps.tiles import Bounds
from htf.query.boxes import count_boxes
from htf.query.columns import COLUMNS, place
from htf.query.outside import outside_note, polygons_note
from htf.query.polygons import count_polygons
from htf.query.texts import read_where
from htf.query.where import Where
from htf.release.release import Release
from htf.serve import questions, site
from htf.serve.holdings import Holding, file_stamp
from htf.serve.limits import Limits, Refusal
from htf.serve.logs import RequestLog, log, log_fault
from htf.serve.metrics import Metrics
from htf.serve.openapi import describe
from htf.serve.prefix import prefix_of
from htf.serve.replies import (
    API_HEADERS,
    ARROW,
    GEOJSON,
    JSON,
    MAX_AGE,
    NO_STORE,
    PAGE_HEADERS,
    TEXT,
    VECTOR_TILE,
    Header,
    Packed,
    Reply,
    accepts_gzip,
    fresh_reply,
    header,
    is_known,
    moved_to,
    new_reply,
    not_modified,
    packed_reply,
    refusal_reply,
    small_reply,
    zip_if_asked,
)
from htf.serve.tiles import (
    TileCache,
    check_tiles,
    make_outlines,
    make_tile,
    make_vector_tile,
    read_place,
    tile_bounds,
)
from htf.serve.workers import Deadline, Together, Workers
from htf.serve.zones import ask_table, check_zones, make_zones

INSIDE = place("inside")
COUNT_ROUTE = "/api/releases/{id}/count"
PREFIX = "htf.prefix"  # of a request, where a proxy adds one
UNMATCHED = ""  # the route, in logs and metrics, of requests that match none
SLICE = 8192  # boxes counted between two looks at the clock
POLYGON_SLICE = 256
MOST_LISTED = 100
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


@dataclass(frozen=True, slots=True)
class Prepared:
    """Releases, and what is made of each before it is served."""

    holdings: dict[str, Holding]
    together: dict[str, Together]
    told: dict[str, Packed]


def prepare(holdings: dict[str, Holding]) -> Prepared:
    """May take a while: in a thread, if others are to be answered meanwhile."""
    together = {name: Together(one.release) for name, one in holdings.items()}
    return Prepared(holdings, together, {n: Packed.of(_told(one)) for n, one in holdings.items()})


class Gone(Exception):
    """The client has closed the connection."""


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


class Service:
    """The ASGI application over the releases it holds. Without any it is starting, and says so."""

    def __init__(
        self, holdings: dict[str, Holding] | None = None, settings: Settings | None = None
    ) -> None:
        self.settings = settings or Settings()
        self.limits = self.settings.limits
        self.holdings: dict[str, Holding] = {}
        self.together: dict[str, Together] = {}
        self.told: dict[str, Packed] = {}
        self.is_ready = False
        self.workers = Workers(self.limits)
        self.metrics = Metrics()
        self.log = RequestLog(self.settings.log_queries)
        self.tiles = TileCache(self.limits.tile_cache)
        self.assets = site.load_site(self.settings.brand)
        shared = "private" if self.settings.token else "public"
        self.cache: Header = (b"cache-control", f"{shared}, max-age={MAX_AGE}".encode())
        self._held_bytes = 0
        self.router = Router(
            [Route(path, endpoint, methods=[method]) for path, method, endpoint in self._routes()],
            redirect_slashes=False,
        )
        self.names = {endpoint: path.replace(":path}", "}") for path, _, endpoint in self._routes()}
        if holdings is not None:
            self.hold(prepare(holdings))

    def hold(self, prepared: Prepared) -> None:
        """Serve these releases from now on. Requests that are being answered keep the release that they have."""
        same = {name for name, one in prepared.holdings.items() if self.holdings.get(name) is one}
        kept = {name: self.together[name] for name in same}
        self.holdings, self.told = prepared.holdings, prepared.told
        self.together = {**prepared.together, **kept}
        self.is_ready = True

    def _routes(self) -> list[tuple[str, str, Callable[[Request], Any]]]:
        one = "/api/releases/{id}"
        return [
            (COUNT_ROUTE, "GET", self.count),
            (f"{one}/tiles/{{z}}/{{x}}/{{y}}.geojson", "GET", self.tile),
            (f"{one}/tiles/{{z}}/{{x}}/{{y}}.mvt", "GET", self.vector_tile),
            (f"{one}/leaves", "GET", self.leaves),
            (f"{one}/zones", "GET", self.zones),
            (f"{one}/table", "GET", self.table),
            (f"{one}/counts", "POST", self.counts),
            (f"{one}/polygons", "POST", self.polygons),
            (f"{one}/distinct", "GET", self.distinct),
            (f"{one}/basemap", "GET", self.basemap),
            (f"{one}/download", "GET", self.download),
            (one, "GET", self.about),
            ("/api/releases", "GET", self.list_releases),
            ("/api/basemap/{z}/{x}/{y}.mvt", "GET", self.street_tile),
            ("/healthz", "GET", self.health),
            ("/metrics", "GET", self.show_metrics),
            ("/openapi.json", "GET", self.openapi),
            ("/docs", "GET", self.reference),
            ("/static/{name:path}", "GET", self.static),
            ("/", "GET", self.page),
        ]

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
            except Gone:
                return
            except Exception as error:
                if sending.status:  # too late for another answer; the connection is closed
                    raise
                await refusal_reply(as_refusal(error))(scope, receive, sending)
            status = sending.status
        finally:
            self.metrics.running -= 1
            seconds = perf_counter() - started
            route = self._route(scope)
            self.metrics.add(route, status, seconds)
            self.log.add(scope, route, status, seconds, sending.size)

    async def _answer(self, scope: Any, receive: Any, sending: Watched) -> None:
        if self.settings.root_path or self.settings.trust_proxy:
            prefix = scope[PREFIX] = prefix_of(
                scope, self.settings.root_path, self.settings.trust_proxy
            )
            if prefix and scope["path"] == prefix:
                await moved_to(prefix + "/")(scope, receive, sending)
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
                scope["endpoint"] = self.count
                reply = await self._count(scope, holding)
                sending.status, sending.size = reply.status, len(reply.body)  # faster than watching
                await reply(scope, receive, sending.send)
                return
        scope["app"] = self  # so that the router raises if nothing matches
        await self.router(scope, receive, sending)

    def _route(self, scope: Any) -> str:
        return self.names.get(scope.get("endpoint"), UNMATCHED)

    def _check_token(self, scope: Any, path: str) -> None:
        """Refuse a request without the token. The page itself, which asks for the token, and the health
        check are open."""
        if not (path.startswith("/api") or path == "/metrics"):
            return
        kind, _, given = (header(scope, b"authorization") or b"").partition(b" ")
        is_right = hmac.compare_digest(given.strip(), self.settings.token or b"")
        if kind.lower() != b"bearer" or not is_right:
            told = "this is not the token" if given else "this needs a token"
            raise Refusal(401, f"{told}: Authorization: Bearer …", {"WWW-Authenticate": "Bearer"})

    # Routes.

    async def count(self, request: Request) -> Reply:
        return await self._count(request.scope, self._holding(request))

    async def _count(self, scope: Any, holding: Holding) -> Reply:
        query = scope["query_string"]
        etag = holding.etag(b"count?" + query)
        if is_known(scope, etag):
            return not_modified(etag, self.cache)
        row = questions.read_row(holding.release.domain, query)
        answer = await self.together[holding.id].count(row)
        self.metrics.boxes += 1
        told: dict[str, Any] = {**dict(zip(COLUMNS, answer, strict=True)), **holding.label}
        if not answer[INSIDE]:
            told |= warning(holding.release.domain, np.array([row]), np.zeros(1))
        return small_reply(etag, orjson.dumps(told), self.cache)

    async def counts(self, request: Request) -> Reply:
        holding, body = self._holding(request), await self._body(request)
        domain, limits = holding.release.domain, self.limits
        media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        query, zipped = request.scope["query_string"], accepts_gzip(request.scope)

        def from_json(deadline: Deadline) -> tuple[int, Reply]:
            questions.read_parameters(query, ())
            rows = questions.read_json_boxes(body, domain, limits)
            columns = count_rows(holding.release, rows, deadline)
            notes = {**holding.label, **warning(domain, rows, columns[INSIDE])}
            told = {**dict(zip(COLUMNS, columns, strict=True)), **notes}
            told_json = orjson.dumps(told, option=orjson.OPT_SERIALIZE_NUMPY)
            return len(rows), fresh_reply(*_with(JSON, *zip_if_asked(told_json, zipped)))

        def from_arrow(deadline: Deadline) -> tuple[int, Reply]:
            where = questions.read_where_parameter(query)
            rows = questions.read_arrow_boxes(body, domain, where, limits)
            columns = count_rows(holding.release, rows, deadline)
            notes = {**holding.label, **warning(domain, rows, columns[INSIDE])}
            return len(rows), fresh_reply(to_arrow(columns, notes), ARROW, [])

        work = {JSON.decode(): from_json, "": from_json, ARROW.decode(): from_arrow}.get(media)
        if work is None:
            raise Refusal(415, f"send boxes as {JSON.decode()} or {ARROW.decode()}, got {media!r}")
        number, reply = await self._work(work, len(body))
        self.metrics.boxes += number
        return reply

    async def polygons(self, request: Request) -> Reply:
        holding, body = self._holding(request), await self._body(request)
        where = questions.read_where_parameter(request.scope["query_string"])
        zipped = accepts_gzip(request.scope)

        def work(deadline: Deadline) -> tuple[int, Reply]:
            release = holding.release
            shapes = questions.read_polygons(body, release.domain, self.limits)
            domain, index = release.domain, release.derived.answering_index
            answers: list[dict[str, float]] = []
            for start in range(0, max(len(shapes), 1), POLYGON_SLICE):
                deadline.check()
                part = shapes[start : start + POLYGON_SLICE]
                answers += count_polygons(domain, index, part, where=where).to_dicts()
            note = polygons_note(domain, np.array([answer["inside"] for answer in answers]))
            told = orjson.dumps({"answers": answers, **_as_warning(note), **holding.label})
            return len(shapes), fresh_reply(*_with(JSON, *zip_if_asked(told, zipped)))

        number, reply = await self._work(work, len(body))
        self.metrics.polygons += number
        return reply

    async def tile(self, request: Request) -> Reply:
        holding, place, bounds = self._tile(request)
        make = functools.partial(make_tile, holding, bounds)
        return await self._drawn(request, holding, b"tile/%d/%d/%d" % place, GEOJSON, make)

    async def vector_tile(self, request: Request) -> Reply:
        holding, place, _ = self._tile(request)
        make = functools.partial(make_vector_tile, holding, place)
        return await self._drawn(request, holding, b"mvt/%d/%d/%d" % place, VECTOR_TILE, make)

    def _tile(self, request: Request) -> tuple[Holding, tuple[int, int, int], Bounds]:
        holding = self._holding(request)
        place = read_place(*(request.path_params[name] for name in "zxy"))
        check_tiles(holding.release.domain)
        return holding, place, tile_bounds(*place)

    async def leaves(self, request: Request) -> Reply:
        holding = self._holding(request)
        check_tiles(holding.release.domain)
        make = functools.partial(make_outlines, holding)
        return await self._drawn(request, holding, b"leaves", JSON, make)

    async def _drawn(
        self,
        request: Request,
        holding: Holding,
        name: bytes,
        media: bytes,
        make: Callable[[Where], Packed],
    ) -> Reply:
        """Something to draw within `where`."""
        where = questions.read_where_parameter(request.scope["query_string"])
        return await self._cached(request, holding, name, media, lambda _: make(where))

    async def zones(self, request: Request) -> Reply:
        holding = self._holding(request)
        asked = questions.read_parameters(request.scope["query_string"], ("level", "axis", "where"))
        check_zones(holding.release.domain)
        level, axis = (questions.read_one(asked, name) for name in ("level", "axis"))
        where = read_where(asked.get("where", ()), "where")
        make = functools.partial(make_zones, holding, level, axis, where)
        return await self._cached(request, holding, b"zones", GEOJSON, lambda _: make())

    async def table(self, request: Request) -> Reply:
        holding = self._holding(request)
        asked = questions.read_parameters(request.scope["query_string"], ("by", "where"))
        where = read_where(asked.get("where", ()), "where")

        def make(deadline: Deadline) -> Packed:
            release = holding.release
            named = ask_table(release.domain, asked.get("by", []), where, self.limits)
            columns = count_rows(release, named.rows, deadline)
            told = {"labels": named.columns, **dict(zip(COLUMNS, columns, strict=True))}
            told |= {**holding.label, **warning(release.domain, named.rows, columns[INSIDE])}
            return Packed.of(orjson.dumps(told, option=orjson.OPT_SERIALIZE_NUMPY))

        return await self._cached(request, holding, b"table", JSON, make)

    async def _cached(
        self,
        request: Request,
        holding: Holding,
        name: bytes,
        media: bytes,
        make: Callable[[Deadline], Packed],
    ) -> Reply:
        """An answer that is kept, because many people look at the same map."""
        scope = request.scope
        query = scope["query_string"]
        etag = holding.etag(b"%s?%s" % (name, query))
        found = self.tiles.get(etag)
        if found is not None:
            self.metrics.cached_tiles += 1
        elif is_known(scope, etag):
            return not_modified(etag, self.cache)
        else:
            found = await self.workers.run(make)
            self.tiles.put(etag, found)
        return packed_reply(scope, etag, found, media, self.cache, API_HEADERS)

    async def distinct(self, request: Request) -> Reply:
        holding = self._holding(request)
        questions.read_parameters(request.scope["query_string"], ())
        if holding.release.distinct is None:
            raise Refusal(404, "this release has no table of different people")
        etag = holding.etag(b"distinct")
        found = self.tiles.get(etag)
        if found is None:
            found = await self.workers.run(lambda _: Packed.of(_distinct(holding)))
            self.tiles.put(etag, found)
        return packed_reply(request.scope, etag, found, JSON, self.cache, API_HEADERS)

    async def basemap(self, request: Request) -> Reply:
        holding = self._holding(request)
        questions.read_parameters(request.scope["query_string"], ())
        bounds, streets = holding.about["bounds84"], self.settings.streets
        if not self.settings.basemap:
            bounds = None
        kind = streets.etag if streets else str(self.settings.basemap)
        return await self._cached(
            request,
            holding,
            b"basemap/" + kind.encode(),  # which a server with other options has not
            JSON,
            lambda _: Packed.of(_basemap(bounds, streets)),
        )

    async def street_tile(self, request: Request) -> Reply:
        scope, streets = request.scope, self.settings.streets
        questions.read_parameters(scope["query_string"], ())
        place = read_place(*(request.path_params[name] for name in "zxy"))
        tile_bounds(*place)
        if streets is None:
            raise Refusal(404, "this server has no tiles of a base map: --basemap gives it some")
        etag = hashlib.sha256(f"{streets.etag}/{place}".encode()).hexdigest()[:32]
        if is_known(scope, etag):
            return not_modified(etag, self.cache)
        found = await self.workers.run(lambda _: _street_tile(streets, place))
        return packed_reply(scope, etag, found, VECTOR_TILE, self.cache, API_HEADERS)

    async def download(self, request: Request) -> FileResponse | Reply:
        holding = self._holding(request)
        etag = holding.file_digest[:32]
        if is_known(request.scope, etag):
            return not_modified(etag, self.cache)
        if not holding.path.is_file() or file_stamp(holding.path) != holding.stamp:
            raise Refusal(
                503, "the file has changed since it was loaded: reload or restart the server"
            )
        mark = "" if holding.release.private else "NOT-PRIVATE-"
        return FileResponse(
            holding.path,
            media_type="application/vnd.apache.parquet",
            filename=mark + holding.path.name,
            headers={
                name.decode(): value.decode()
                for name, value in ((b"etag", f'"{etag}"'.encode()), self.cache, *API_HEADERS)
            },
        )

    async def about(self, request: Request) -> Reply:
        holding = self._holding(request)
        etag, packed = holding.etag(b"about"), self.told[holding.id]
        return packed_reply(request.scope, etag, packed, JSON, self.cache, API_HEADERS)

    async def list_releases(self, request: Request) -> Reply:
        asked = questions.read_parameters(request.scope["query_string"], ("limit", "offset"))
        limit = _read_whole(asked, "limit", MOST_LISTED, 1, MOST_LISTED)
        offset = _read_whole(asked, "offset", 0, 0, None)
        found = list(self.holdings.values())[offset : offset + limit]
        rest = len(self.holdings) - offset - len(found)
        address = f"{request.scope.get(PREFIX, '')}/api/releases"
        following = f"{address}?limit={limit}&offset={offset + limit}" if rest > 0 else None
        told = {
            "releases": [{**one.about, **one.mark} for one in found],
            "number": len(self.holdings),
            "next": following,
            "limits": self.limits.told(),
        }
        zipped, headers = zip_if_asked(orjson.dumps(told), accepts_gzip(request.scope))
        return fresh_reply(zipped, JSON, headers)

    async def health(self, _: Request) -> Reply:
        if self.is_ready:
            return fresh_reply(b'{"status":"ok"}', JSON, [])
        body = b'{"status":"starting"}'
        return new_reply(503, JSON, body, [NO_STORE, (b"retry-after", b"1")], API_HEADERS)

    async def show_metrics(self, _: Request) -> Reply:
        media = b"text/plain; version=0.0.4; charset=utf-8"
        return fresh_reply(self.metrics.text().encode(), media, [])

    async def openapi(self, request: Request) -> Reply:
        has_token, title = self.settings.token is not None, self.settings.brand.title
        prefix = request.scope.get(PREFIX, "")
        body = orjson.dumps(describe(self.limits, has_token, title, prefix))
        etag = hashlib.sha256(body).hexdigest()[:32]
        return packed_reply(request.scope, etag, Packed.of(body), JSON, NO_STORE, API_HEADERS)

    async def static(self, request: Request) -> Reply:
        asset = self.assets.get(request.path_params["name"])
        if asset is None:
            raise HTTPException(404)
        return packed_reply(
            request.scope, asset.etag, asset.packed, asset.media, self.cache, asset.headers
        )

    async def page(self, request: Request) -> Reply:
        asset = self.assets.get(site.INDEX)
        if asset is None:
            return new_reply(200, TEXT, site.WITHOUT_PAGE.encode(), [NO_STORE], PAGE_HEADERS)
        no_cache = (b"cache-control", b"no-cache")
        return packed_reply(
            request.scope, asset.etag, asset.packed, asset.media, no_cache, PAGE_HEADERS
        )

    async def reference(self, request: Request) -> Reply:
        asset = self.assets[site.REFERENCE]
        no_cache = (b"cache-control", b"no-cache")
        return packed_reply(
            request.scope, asset.etag, asset.packed, asset.media, no_cache, PAGE_HEADERS
        )

    # Helpers of several routes.

    def _holding(self, request: Request) -> Holding:
        holding = self.holdings.get(request.path_params["id"])
        if holding is None:
            raise Refusal(404, "there is no such release: /api/releases lists them")
        return holding

    def close(self) -> None:
        self.workers.close()
        self.log.write()

    async def _work(
        self, work: Callable[[Deadline], tuple[int, Reply]], size: int
    ) -> tuple[int, Reply]:
        """Work on a body. Its bytes count as held until the work is done."""
        self._hold(size)
        try:
            return await self.workers.run(work)
        finally:
            self._held_bytes -= size

    def _hold(self, size: int) -> None:
        if self._held_bytes + size > self.limits.all_bodies:
            raise Refusal(503, "the server is busy: try again", {"Retry-After": "2"})
        self._held_bytes += size

    async def _body(self, request: Request) -> bytes:
        """The whole body, or a refusal as soon as it is too large, too slow, or too much together with
        the bodies of other requests."""
        limits = self.limits
        too_large = Refusal(413, f"at most {limits.body:,} bytes at once: ask in parts")
        if int(header(request.scope, b"content-length") or 0) > limits.body:
            raise too_large
        chunks: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(limits.seconds):
                more = True
                while more:
                    message = await request.receive()
                    if message["type"] == "http.disconnect":
                        raise Gone
                    chunk = message.get("body", b"")
                    self._hold(len(chunk))
                    size += len(chunk)
                    if size > limits.body:
                        raise too_large
                    chunks.append(chunk)
                    more = message.get("more_body", False)
        except TimeoutError:
            raise Refusal(
                408, f"the body did not arrive within {limits.seconds:g} seconds"
            ) from None
        finally:
            self._held_bytes -= size
        return b"".join(chunks)


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


def count_rows(release: Release, rows: FloatArray, deadline: Deadline) -> FloatArray:
    """The columns of the answers. Rows were checked before, so that errors name the row that was sent."""
    columns = np.empty((len(COLUMNS), len(rows)))
    domain, index = release.domain, release.derived.answering_index
    for start in range(0, len(rows), SLICE):
        deadline.check()
        part = slice(start, start + SLICE)
        columns[:, part] = [*count_boxes(domain, index, rows[part]).to_columns().values()]
    return columns


def warning(domain: Domain, rows: FloatArray, inside: FloatArray) -> dict[str, str]:
    """The warning in an answer about boxes outside the map; empty if all boxes touch it."""
    return {} if inside.all() else _as_warning(outside_note(domain, rows, inside))


def _as_warning(note: str | None) -> dict[str, str]:
    return {} if note is None else {"warning": note}


def to_arrow(columns: FloatArray, notes: dict[str, str]) -> bytes:
    import pyarrow as pa

    schema = pa.schema([(name, pa.float64()) for name in COLUMNS], metadata=notes)
    batch = pa.record_batch([pa.array(column) for column in columns], schema=schema)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def _distinct(holding: Holding) -> bytes:
    found = holding.release.count_distinct()
    told = {name: getattr(found, name) for name in DISTINCT_COLUMNS}
    told |= {"quantity": found.quantity, **holding.mark}
    return orjson.dumps(told, option=orjson.OPT_SERIALIZE_NUMPY)


def _basemap(bounds: Bounds | None, streets: Archive | None) -> bytes:
    """Empty for a release that lies nowhere on earth, and on a server that was asked for none."""
    if bounds is None:
        return orjson.dumps({"parts": [], "zoom": 0, "names": [], "credit": None, "tiles": None})
    told = {**around(bounds), "credit": CREDIT, "tiles": None}
    if streets is not None and overlaps(bounds, streets.bounds):
        told |= {"credit": f"{CREDIT}, {streets.credit}", "tiles": streets.told()}
    return orjson.dumps(told)


def _street_tile(streets: Archive, place: tuple[int, int, int]) -> Packed:
    try:
        return Packed(*streets.tile(place))
    except InputError as error:  # which names a file of the server
        log("basemap-problem", message=str(error))
        raise Refusal(503, "the tiles of the base map cannot be read: restart the server") from None


def _told(holding: Holding) -> bytes:
    return orjson.dumps({**holding.release.summary(), **holding.about, **holding.mark})


def _with(media: bytes, body: bytes, headers: list[Header]) -> tuple[bytes, bytes, list[Header]]:
    return body, media, headers


def _read_whole(
    asked: dict[str, list[str]], name: str, default: int, least: int, most: int | None
) -> int:
    texts = asked.get(name, [str(default)])
    if len(texts) > 1:
        raise Refusal(400, f"give {name} once, got {', '.join(texts)}")
    text = texts[0]
    if not (text.isascii() and text.isdigit() and least <= int(text[:9]) and len(text) < 9):
        raise Refusal(400, f"{name} must be a whole number from {least} on, got {text!r}")
    return int(text) if most is None else min(int(text), most)
