"""Limits, caching, compression, tokens, origins and headers, over a real connection."""

from __future__ import annotations

import gzip
import hashlib
import re
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from htf import InputError
from htf.query.boxes import count_boxes
from htf.serve import answers as serve_answers
from htf.serve import questions, site
from htf.serve.app import Service
from htf.serve.holdings import load_holdings
from htf.serve.limits import Limits
from htf.serve.metrics import BUCKETS
from htf.serve.replies import Packed, accepts_gzip, is_known
from serving import client, running
from support import PATIENCE, wait_for

COUNT = "/api/releases/city/count?box=-30,39.95,-29.9,40"
TILE = "/api/releases/city/tiles/10/427/387.mvt"
TOKEN = "a-token-of-some-length"
FORMS = ("count", "counts", "tiles/{z}/{x}/{y}.mvt")  # of addresses, without what is asked


@pytest.mark.parametrize("path", [COUNT, TILE, "/api/releases/city", "/api/releases/city/download"])
def test_who_has_it_gets_304(api: httpx.Client, path: str) -> None:
    first = api.get(path)
    etag = first.headers["etag"]
    assert etag.startswith('"')  # strong
    assert first.headers["cache-control"] == "public, max-age=300"
    for known in (etag, f'"other", W/{etag}', "*"):
        again = api.get(path, headers={"If-None-Match": known})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["etag"].strip('"').removesuffix("-gz") == etag.strip('"').removesuffix(
            "-gz"
        )
        assert again.headers["cache-control"] == first.headers["cache-control"]
    assert api.get(path, headers={"If-None-Match": '"other"'}).status_code == 200


def test_etags_tell_answers_apart(api: httpx.Client) -> None:
    paths = [
        COUNT,
        COUNT + "1",
        COUNT.replace("city", "seeded"),
        TILE,
        TILE.replace("427", "426"),
        "/api/releases/city",
        "/api/releases/hours",
        "/api/releases/hours/tiles/10/427/387.mvt",
        "/api/releases/hours/tiles/10/427/387.mvt?where=hour=7:10",
    ]
    etags = [api.get(path).headers["etag"] for path in paths]
    assert len(set(etags)) == len(paths)
    assert etags == [api.get(path).headers["etag"] for path in paths]


def test_compression(api: httpx.Client) -> None:
    about = "/openapi.json"
    plain = api.get(about, headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    with api.stream("GET", about, headers={"Accept-Encoding": "br, gzip"}) as packed:
        raw = b"".join(packed.iter_raw())
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.headers["vary"] == plain.headers["vary"] == "Accept-Encoding"
    assert packed.headers["etag"] != plain.headers["etag"]  # strong ones are of the bytes
    assert len(raw) < len(plain.content) / 3
    assert gzip.decompress(raw) == plain.content
    boxes = {"boxes": [[-30, 39.95, -29.9, 40]] * 100}
    assert api.post("/api/releases/city/counts", json=boxes).headers["content-encoding"] == "gzip"
    assert "content-encoding" not in api.get(COUNT).headers  # too short
    download = api.get("/api/releases/city/download")
    assert "content-encoding" not in download.headers


@pytest.mark.parametrize(
    ("value", "taken"),
    [
        ("gzip", True),
        ("br, GZIP;q=0.5", True),
        ("*", True),
        ("", False),
        ("gzip;q=0", False),
        ("gzip; q=0.0", False),
    ],
)
def test_who_takes_gzip(value: str, taken: bool) -> None:
    assert accepts_gzip({"headers": [(b"accept-encoding", value.encode())]}) == taken
    assert not is_known({"headers": []}, "x")


def test_headers_for_browsers(api: httpx.Client) -> None:
    for path in ("/", COUNT, "/nothing", "/healthz", TILE, "/api/releases/city/download"):
        assert api.get(path).headers["x-content-type-options"] == "nosniff"
        policy = api.get(path).headers["content-security-policy"]
        assert policy.startswith("default-src 'none'")
        assert "unsafe-eval" not in policy
        assert "script-src 'unsafe" not in policy
        assert "server" not in api.get(path).headers
    policy = api.get("/").headers["content-security-policy"]
    assert "script-src 'self';" in policy
    assert "worker-src 'self' blob:" in policy
    assert api.get("/").headers["x-frame-options"] == "DENY"


def test_the_page_and_its_files(
    files: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site, "STATIC", tmp_path)
    wheel = tmp_path / "wheel"
    monkeypatch.setattr(site, "find_maplibre", lambda name: next(wheel.glob(name), None))
    with running([files["city"]]) as (address, _), client(address) as api:
        assert api.get("/").status_code == 404
        assert api.get("/static/maplibre-gl.js").status_code == 404
    named = '<script src="static/map.js"></script><script src="static/none.js"></script>'
    (tmp_path / "index.html").write_text(f"<p>Hello{'!' * 2000}{named}")
    (tmp_path / "map.js").write_text("1")
    wheel.mkdir()
    (wheel / "maplibre-gl.js").write_text("2")
    with running([files["city"]]) as (address, _), client(address) as api:
        page = api.get("/")
        assert page.text.startswith("<p>Hello")
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        assert page.headers["cache-control"] == "no-cache"
        assert api.get("/", headers={"If-None-Match": page.headers["etag"]}).status_code == 304
        (script,) = re.findall(r'"(static/map.js\?v=[^"]+)"', page.text)  # another after an upgrade
        assert script.endswith(hashlib.sha256(b"1").hexdigest()[:8])
        assert '"static/none.js"' in page.text
        assert api.get(script).headers["content-type"].startswith("text/javascript")
        assert api.get("/static/maplibre-gl.js").text == "2"
        for outside in ("../app.py", "%2e%2e/app.py", "..%2fapp.py", "/etc/passwd", ""):
            assert api.get(f"/static/{outside}").status_code == 404


def test_what_there_is_not(api: httpx.Client) -> None:
    for path in (
        "/nothing",
        "/api",
        "/api/releases/",
        "/api/releases/none",
        "/api/releases/none/count",
        "/count",
    ):
        found = api.get(path)
        assert found.status_code == 404
        assert found.json()["detail"]
        assert found.headers["cache-control"] == "no-store"
    wrong = api.post("/api/releases/city/count")
    assert wrong.status_code == 405
    assert "GET" in wrong.headers["allow"]
    assert api.get("/api/releases/city/counts").status_code == 405
    head = api.head(COUNT)
    assert (head.status_code, head.content) == (200, b"")
    assert int(head.headers["content-length"]) == len(api.get(COUNT).content)


def test_health_and_metrics(files: dict[str, Path]) -> None:
    with running([files["city"]]) as (address, _), client(address) as api:
        assert api.get("/healthz").json() == {"status": "ok"}
        for _ in range(3):
            api.get(COUNT)
        api.get(COUNT + ",5")
        api.get("/nothing/else")
        api.post("/api/releases/city/counts", json={"boxes": [[-30, 39.95, -29.9, 40]] * 7})
        for _ in range(2):
            api.get(TILE)
        found = api.get("/metrics")
    assert found.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = dict(line.rsplit(" ", 1) for line in found.text.splitlines() if line[0] != "#")
    route = 'route="/api/releases/{id}/count"'
    assert lines[f'htf_requests_total{{{route},status="200"}}'] == "3"
    assert lines[f'htf_requests_total{{{route},status="422"}}'] == "1"
    assert lines['htf_requests_total{route="",status="404"}'] == "1"
    assert lines[f"htf_request_seconds_count{{{route}}}"] == "4"
    assert lines[f'htf_request_seconds_bucket{{{route},le="+Inf"}}'] == "4"
    assert float(lines[f"htf_request_seconds_sum{{{route}}}"]) > 0
    assert lines["htf_boxes_counted_total"] == "10"
    assert lines["htf_cached_tiles_total"] == "1"
    assert lines["htf_running_requests"] == "1"
    told = {label for line in lines for label in re.findall(r'(\w+)="(.*?)"', line)}
    assert {name for name, _ in told} == {"route", "status", "le"}
    assert {value for name, value in told if name == "route"} == {
        "", "/healthz", *(f"/api/releases/{{id}}/{form}" for form in FORMS),
    }  # fmt: skip
    assert {value for name, value in told if name == "status"} == {"200", "404", "422"}
    assert {value for name, value in told if name == "le"} == {*map(str, BUCKETS), "+Inf"}


@pytest.fixture(scope="module")
def small(files: dict[str, Path]) -> Any:
    limits = Limits(body=20_000, all_bodies=30_000, boxes=50, polygons=3, corners=3000)
    with running([files["city"], files["metres"]], limits=limits) as found:
        yield found


def test_too_much_at_once(small: tuple[str, Service]) -> None:
    address = "/api/releases/city/counts"
    box = [-30, 39.95, -29.9, 40]
    with client(small[0]) as api:
        found = api.post(address, json={"boxes": [box] * 51})
        assert found.status_code == 413
        assert found.json()["detail"] == "at most 50 boxes at once, got 51: send several requests"
        assert api.post(address, json={"boxes": [box] * 50}).status_code == 200
        for content in (b" " * 20_001, iter([b" " * 15_000] * 2)):  # told before, and not
            found = api.post(address, content=content)
            assert found.status_code == 413
            assert found.headers["connection"] == "close"
        ring = [[-30, 39.95], [-29.9, 39.95], [-29.9, 40], [-30, 39.95]]
        feature = {
            "type": "Feature",
            "properties": {},
            "geometry": {"type": "Polygon", "coordinates": [ring]},
        }
        many = {"type": "FeatureCollection", "features": [feature] * 4}
        assert api.post("/api/releases/city/polygons", json=many).status_code == 413
        assert small[1]._held_bytes == 0


def comb(teeth: int, height: float, crossing: bool = False) -> dict[str, Any]:
    """Thin teeth side by side; crossing ones come back as teeth too, over those that went."""
    steps = np.arange(teeth)
    there = np.column_stack([-30 + steps * 1e-4, 39.95 + steps % 2 * height])
    down = steps[::-1] % 2 * height if crossing else np.full(teeth, 0.05)
    back = np.column_stack([-30 + steps[::-1] * 1e-4, 39.949 - down])
    if crossing:
        back[:, 1] += 0.002
    return {"type": "Polygon", "coordinates": [np.round([*there, *back, there[0]], 4).tolist()]}


def test_polygons_that_are_too_dear(files: dict[str, Path]) -> None:
    paths = [files["city"], files["metres"]]
    with running(paths, limits=Limits(corners=3000)) as (address, _), client(address) as api:
        found = api.post("/api/releases/city/polygons", json=comb(400, 0.1, crossing=True))
        assert found.status_code == 422
        assert "1 polygons cross themselves and have up to 801 corners" in found.json()["detail"]
        found = api.post("/api/releases/city/polygons", json=comb(1600, 0.1))
        assert (
            found.json()["detail"]
            == "at most 3,000 corners at once, got 3,201: send several requests"
        )
        for right in (comb(1400, 0.1), comb(100, 0.1, crossing=True)):
            assert api.post("/api/releases/city/polygons", json=right).status_code == 200
        found = api.post("/api/releases/metres/polygons", json=comb(1400, 40.0))
        assert found.status_code == 422
        assert "too long" in found.json()["detail"]


def test_a_body_that_does_not_come(files: dict[str, Path]) -> None:
    with running([files["city"]], limits=Limits(seconds=0.5)) as (address, service):
        host, port = address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=PATIENCE) as sock:
            started = time.monotonic()
            sock.sendall(
                b"POST /api/releases/city/counts HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{"
            )
            assert sock.recv(100).startswith(b"HTTP/1.1 408")
            assert time.monotonic() - started > 0.4  # it was waited for
        wait_for(lambda: service._held_bytes == 0)


def test_work_that_takes_too_long_and_a_queue_that_is_full(
    files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One is counted, one waits for the thread, and two find no room. Nobody counts on for those who gave up."""
    go_on, counted = threading.Event(), []

    def held_up(*arguments: Any) -> Any:
        counted.append(1)
        go_on.wait(PATIENCE)
        return count_boxes(*arguments)

    monkeypatch.setattr(serve_answers, "SLICE", 1)
    monkeypatch.setattr(serve_answers, "count_boxes", held_up)
    limits = Limits(seconds=0.5, threads=1, waiting=1)
    with running([files["city"]], limits=limits) as (address, service), client(address) as api:

        def ask(_: int = 0) -> httpx.Response:
            boxes = [[-30, 39.95, -29.9, 40]] * 60
            return api.post("/api/releases/city/counts", json={"boxes": boxes})

        with ThreadPoolExecutor(2) as pool:
            late = pool.map(ask, range(2))
            wait_for(lambda: service.workers._jobs == 2)
            busy = [ask(), ask()]
        answers = [*busy, *late]
        assert [answer.status_code for answer in answers] == [503] * 4
        assert [answer.json()["detail"] for answer in answers] == [
            *["the server is busy: try again"] * 2,
            *["this took longer than 0.5 seconds: ask for less at once"] * 2,
        ]
        assert all("retry-after" in answer.headers for answer in answers)
        go_on.set()
        wait_for(lambda: service.workers._jobs == 0)  # it stops at its next look at the clock
        assert len(counted) == 1
        service.workers._limits = Limits()  # half a second may be too little on a busy machine
        assert ask().status_code == 200
        assert len(counted) == 61


def test_our_own_faults_do_not_quote(
    served: tuple[str, Service], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: Any) -> None:
        raise ZeroDivisionError("39.95")

    with client(served[0]) as api:
        for name in ("read_row", "read_json_boxes"):
            monkeypatch.setattr(questions, name, broken)
        for found in (api.get(COUNT), api.post("/api/releases/city/counts", json={"boxes": []})):
            assert found.status_code == 500
            assert found.json() == {
                "detail": "this is a bug in HTF; the log of the server says where"
            }
    logged = capsys.readouterr().err
    assert logged.count("ZeroDivisionError") == 2
    assert "39.95" not in logged


def test_a_token(files: dict[str, Path]) -> None:
    with running([files["city"]], token=TOKEN.encode()) as (address, _), client(address) as api:
        for path in (
            COUNT,
            TILE,
            "/api/releases",
            "/api/releases/none",
            "/metrics",
            "/api/nothing",
        ):
            for wrong in (
                None,
                "Bearer",
                "Bearer x",
                f"Basic {TOKEN}",
                f"Bearer {TOKEN}x",
                "Bearer é",
            ):
                headers = {} if wrong is None else {b"Authorization": wrong.encode()}
                found = api.get(path, headers=headers)
                assert found.status_code == 401
                assert found.headers["www-authenticate"] == "Bearer"
                is_given = wrong is not None and " " in wrong
                told = "this is not the token" if is_given else "this needs a token"
                assert found.json()["detail"].startswith(told)
        right = {"Authorization": f"bearer {TOKEN}"}
        found = api.get(COUNT, headers=right)
        assert found.status_code == 200
        assert found.headers["cache-control"] == "private, max-age=300"
        for path in ("/", "/healthz", "/openapi.json"):
            assert api.get(path).status_code == 200
        assert api.post("/api/releases/city/counts", content=b" " * 10**6).status_code == 401


def test_other_origins(files: dict[str, Path], api: httpx.Client) -> None:
    origin = "https://maps.example"
    asked = {
        "Origin": origin,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization",
    }
    off = api.get(COUNT, headers={"Origin": origin})
    assert not any(name.startswith("access-control") for name in off.headers)
    assert api.options(COUNT, headers=asked).status_code == 405
    with (
        running([files["city"]], cors=(origin,), token=TOKEN.encode()) as (address, _),
        client(address) as on,
    ):
        preflight = on.options(COUNT, headers=asked)  # which has no token
        assert preflight.status_code == 200
        assert preflight.headers["access-control-allow-origin"] == origin
        assert "POST" in preflight.headers["access-control-allow-methods"]
        refused = on.get(COUNT, headers={"Origin": origin})
        assert refused.status_code == 401
        assert refused.headers["access-control-allow-origin"] == origin
        other = on.get(COUNT, headers={"Origin": "https://other.example"})
        assert "access-control-allow-origin" not in other.headers


def test_what_is_not_private_is_not_served(files: dict[str, Path]) -> None:
    with pytest.raises(InputError, match=r"NOT PRIVATE .*seeded.*--allow-not-private"):
        load_holdings([files["city"], files["seeded"]])


def test_the_cache_of_tiles_has_an_end() -> None:
    from htf.serve.tiles import TileCache

    cache = TileCache(100)
    for number in range(5):
        cache.put(str(number), Packed(b"." * 30, None))
    assert [number for number in range(5) if cache.get(str(number))] == [2, 3, 4]
    cache.get("2")
    cache.put("5", Packed(b"." * 30, b"." * 10))
    assert [number for number in range(6) if cache.get(str(number))] == [2, 4, 5]
    cache.put("6", Packed(b"." * 101, None))
    assert cache.get("6") is None
