"""The routes: each with its address, parameters and bodies, its words (the docstring), and its handler."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import orjson
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse

from htf.errors import InputError
from htf.query.columns import PEOPLE_COLUMNS
from htf.query.where import Where
from htf.serve import answers, questions, replies, schemas
from htf.serve.declared import Parameter, as_bytes, as_json, read_all, read_one, read_whole, route
from htf.serve.holdings import file_stamp
from htf.serve.limits import Refusal
from htf.serve.logs import log
from htf.serve.prefix import PREFIX
from htf.serve.questions import BOX, WHERE, WHERE_OF_ARROW
from htf.serve.replies import ARROW, JSON, Header, Packed, Reply
from htf.serve.site import INDEX
from htf.serve.tiles import VECTOR_GZIP, make_outlines, make_vector_tile, read_place
from htf.serve.zone_map import ask_table, make_zones

if TYPE_CHECKING:
    from htf.serve.app import Ask

MOST_LISTED = 100
ONE = "/api/releases/{id}"
COUNT = f"{ONE}/count"
LIMIT = Parameter("limit", "At most so many.", read_whole(MOST_LISTED, 1, MOST_LISTED), int)
OFFSET = Parameter("offset", "From here on.", read_whole(0, 0), int)
LEVEL = Parameter("level", "Such as district; by default the lowest.", read_one)
AXIS = Parameter("axis", "By default the first axis of zones that `where` leaves.", read_one)
BY = Parameter(
    "by",
    "A level, such as district, of every axis of zones that has it; zone:district is that of one axis. Or an axis, such "
    "as hour. By default the lowest level of zones; may be repeated.",
    read_all,
    [str],
    ["district"],
)
ARROW_STREAM = as_bytes(ARROW)
HEALTH = as_json("Health", {"status": schemas.one_of("ok", "starting")})


@route("/api/releases", LIMIT, OFFSET, gives=as_json("Releases", schemas.RELEASES))
async def list_releases(ask: Ask, limit: int, offset: int) -> Reply:
    """The releases, in the order they were given."""
    holdings = ask.service.holdings
    found = [*holdings.values()][offset : offset + limit]
    end = offset + len(found)
    address = f"{ask.scope.get(PREFIX, '')}/api/releases"
    told = {
        "releases": [{**one.about, **one.mark} for one in found],
        "number": len(holdings),
        "next": f"{address}?limit={limit}&offset={end}" if end < len(holdings) else None,
        "limits": ask.service.limits.told(),
    }
    return replies.zipped_reply(ask.scope, orjson.dumps(told))


@route(ONE, gives=as_json("Release", schemas.RELEASE))
def describe_release(ask: Ask) -> bytes:
    """All of a release but its leaves: privacy statement, ledger, parameters."""
    one = ask.holding
    return orjson.dumps({**one.release.summary(), **one.about, **one.mark})


@route(COUNT, BOX, WHERE, gives=as_json("Answer", schemas.ANSWER))
async def count_box(ask: Ask, **_: Any) -> Reply:
    """The count of one box; without a box, of the whole map."""
    return await ask.service.count(ask.scope, ask.holding)  # which is fast, and reads them itself


@route(
    f"{ONE}/counts",
    WHERE_OF_ARROW,
    takes={**as_json("Boxes", schemas.BOXES), **ARROW_STREAM},
    gives={**as_json("Answers", schemas.ANSWERS), **ARROW_STREAM},
    errors=(415,),
)
def count_boxes(ask: Ask, where: Where) -> Reply:
    """The counts of many boxes, as JSON or as an Arrow stream (uncompressed). At most {boxes:,} boxes and
    {megabytes} MB."""
    holding, limits = ask.holding, ask.service.limits
    domain = holding.release.domain
    media = ask.request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media == ARROW.decode():
        rows = questions.read_arrow_boxes(ask.body, domain, where, limits)
        ask.boxes = len(rows)
        return replies.new_reply(200, ARROW, answers.counts_as_arrow(holding, rows, ask.deadline))
    if media not in ("", JSON.decode()):
        raise Refusal(415, f"send boxes as {JSON.decode()} or {ARROW.decode()}, got {media!r}")
    if where:
        raise Refusal(400, "there is no parameter 'where' of JSON: its body has a member where")
    rows = questions.read_json_boxes(ask.body, domain, limits)
    ask.boxes = len(rows)
    return replies.zipped_reply(ask.scope, answers.counts_as_json(holding, rows, ask.deadline))


@route(
    f"{ONE}/polygons",
    WHERE,
    takes={
        **as_json("Polygons", schemas.POLYGONS, replies.GEOJSON),
        **as_json("Polygons", schemas.POLYGONS),
    },
    gives=as_json("PolygonAnswers", schemas.POLYGON_ANSWERS),
    errors=(501,),
)
def count_polygons(ask: Ask, where: Where) -> Reply:
    """The counts of polygons in longitude and latitude. At most {polygons:,} of them and {corners:,} corners."""
    shapes = questions.read_polygons(ask.body, ask.holding.release.domain, ask.service.limits)
    ask.polygons = len(shapes)
    return replies.zipped_reply(
        ask.scope, answers.polygon_counts(ask.holding, shapes, where, ask.deadline)
    )


@route(
    f"{ONE}/distinct",
    gives=as_json(
        "DistinctPeople",
        {
            **{f"{name}?": [float] for name in answers.EDGES},
            "labels?": schemas.LABELS,
            **{name: [float] for name in PEOPLE_COLUMNS},
            "quantity": schemas.DISTINCT_QUANTITY,
            **schemas.MARK,
        },
    ),
)
def distinct_people(ask: Ask) -> bytes:
    """The table of different people, if the release has one: in the boxes of a fixed grid, or of areas with `labels`, such
    as zones. They do not add up."""
    if ask.holding.release.distinct is None:
        raise Refusal(404, "this release has no table of different people")
    return answers.different_people(ask.holding)


@route(
    f"{ONE}/zones",
    LEVEL,
    AXIS,
    WHERE,
    gives=as_json("Zones", schemas.ZONES, replies.GEOJSON),
    errors=(501,),
)
def zones(ask: Ask, level: str | None, axis: str | None, where: Where) -> bytes:
    """The outlines of the zones of a level, with answers. Of trips, if `where` names one end, zones are those of the
    other end."""
    return make_zones(ask.holding, level, axis, where)


@route(f"{ONE}/table", BY, WHERE, gives=as_json("Table", schemas.TABLE), errors=(413,))
def count_by_name(ask: Ask, by: list[str], where: Where) -> bytes:
    """Counts by name: a row for each zone or category of a level, or for each step of an axis. At most {boxes:,}
    rows."""
    asked = ask_table(ask.holding.release.domain, by, where, ask.service.limits)
    return answers.counts_as_json(ask.holding, asked.rows, ask.deadline, labels=asked.columns)


@route(f"{ONE}/tiles/{{z}}/{{x}}/{{y}}.mvt", WHERE, gives=as_bytes(replies.VECTOR_TILE))
def vector_tile(ask: Ask, where: Where) -> Packed:
    """A web map tile as a Mapbox Vector Tile: leaves of the release where they are few, else squares. Layer `counts`,
    numbers rounded to a sixteenth of their standard error or less. `west`, `south`, `width` and `height` are those of
    the whole leaf or square."""
    place = read_place(ask.request.path_params)
    return Packed.of(make_vector_tile(ask.holding, place, where), VECTOR_GZIP)


@route(f"{ONE}/leaves", WHERE, gives=as_json("Outlines", schemas.OUTLINES), errors=(413,))
def leaves(ask: Ask, where: Where) -> bytes:
    """The outlines of all leaves, to draw: corners within a frame of Web Mercator, as columns of 32-bit floats W,S,E,N,
    or SW,SE,NW,NE where sides are not upright; deflated, base64."""
    return make_outlines(ask.holding, where)


@route(f"{ONE}/download", gives=as_bytes(replies.PARQUET))
async def download(ask: Ask) -> FileResponse | Reply:
    """The file of the release, GeoParquet; parts of it by Range."""
    holding, cache = ask.holding, ask.service.cache
    etag = holding.file_digest[:32]
    if replies.is_known(ask.scope, etag):
        return replies.not_modified(etag, cache)
    if not holding.path.is_file() or file_stamp(holding.path) != holding.stamp:
        raise Refusal(503, "the file has changed since it was loaded: reload or restart the server")
    mark = "" if holding.release.private else "NOT-PRIVATE-"
    headers = [(b"etag", f'"{etag}"'.encode()), cache, *replies.API_HEADERS]
    return FileResponse(
        holding.path,
        media_type=replies.PARQUET.decode(),
        filename=mark + holding.path.name,
        headers={name.decode(): value.decode() for name, value in headers},
    )


@route(f"{ONE}/basemap", gives=as_json("Basemap", schemas.BASEMAP))
def basemap(ask: Ask) -> bytes:
    """Water, borders and names of places around a release, to draw: fine near it, coarse from afar. Empty if the release
    lies nowhere on earth, or the server was started without a base map."""
    settings = ask.service.settings
    bounds = ask.holding.about["bounds84"] if settings.basemap else None
    return answers.base_map(bounds, settings.streets)


@route("/api/basemap/{z}/{x}/{y}.mvt", gives=as_bytes(replies.VECTOR_TILE))
async def basemap_tile(ask: Ask) -> Reply:
    """A tile of the archive of `--basemap`, such as streets. Without bytes if the archive has none there."""
    service, streets = ask.service, ask.service.settings.streets
    place = read_place(ask.request.path_params)
    if streets is None:
        raise Refusal(404, "this server has no tiles of a base map: --basemap gives it some")
    etag = hashlib.sha256(f"{streets.etag}/{place}".encode()).hexdigest()[:32]
    if replies.is_known(ask.scope, etag):
        return replies.not_modified(etag, service.cache)
    try:
        found = await service.workers.run(lambda _: Packed(*streets.tile(place)))
    except InputError as error:  # which names a file of the server
        log("basemap-problem", message=str(error))
        raise Refusal(503, "the tiles of the base map cannot be read: restart the server") from None
    return replies.packed_reply(ask.scope, etag, found, replies.VECTOR_TILE, service.cache)


@route("/healthz", gives=HEALTH, errors={503: HEALTH})
async def health(ask: Ask) -> Reply:
    """Whether the server is ready. While it loads its releases the status is 503."""
    if ask.service.is_ready:
        return replies.new_reply(200, JSON, b'{"status":"ok"}')
    return replies.new_reply(
        503, JSON, b'{"status":"starting"}', [replies.NO_STORE, (b"retry-after", b"1")]
    )


@route("/metrics", gives=as_bytes("text/plain", str))
async def metrics(ask: Ask) -> Reply:
    """For Prometheus."""
    media = b"text/plain; version=0.0.4; charset=utf-8"
    return replies.new_reply(200, media, ask.service.metrics.text().encode())


@route("/openapi.json", gives=as_bytes(JSON))
async def openapi(ask: Ask) -> Reply:
    """This."""
    from htf.serve.openapi import describe

    settings = ask.service.settings
    prefix = ask.scope.get(PREFIX, "")
    has_token = settings.token is not None
    body = orjson.dumps(describe(settings.limits, has_token, settings.brand.title, prefix))
    etag = hashlib.sha256(body).hexdigest()[:32]
    return replies.packed_reply(ask.scope, etag, Packed.of(body), JSON, replies.NO_STORE)


@route("/static/{name:path}", gives=as_bytes("*/*"))
async def static(ask: Ask) -> Reply:
    """The page's own files."""
    return _asset(ask, ask.request.path_params["name"], ask.service.cache)


@route("/", gives=as_bytes("text/html", str))
async def page(ask: Ask) -> Reply:
    """A page with a map."""
    return _asset(ask, INDEX, replies.NO_CACHE)


def _asset(ask: Ask, name: str, cache: Header) -> Reply:
    found = ask.service.assets.get(name)
    if found is None:
        raise HTTPException(404)
    return replies.packed_reply(
        ask.scope, found.etag, found.packed, found.media, cache, found.headers
    )
