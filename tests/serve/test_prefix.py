"""The server behind a proxy that puts a prefix before its paths, with a real nginx."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from htf import InputError
from htf.cli.main import run
from htf.serve.prefix import LONGEST, OWN, read_prefix
from serving import client, documented_proxies, nginx, running

DOCUMENTED = "http://127.0.0.1:8000"
TOKEN = b"a-token-of-a-test-0123456789"
BOX = "box=-30.1,39.95,-29.9,40.05"


@pytest.mark.parametrize("text", ["/maps", "/maps/", "/a/b.c/d~e_f-g", "/maps/city/"])
def test_prefixes(text: str) -> None:
    assert read_prefix(text, "--root-path") == text.rstrip("/")


@pytest.mark.parametrize("text", ["", "/"])
def test_no_prefix(text: str) -> None:
    assert read_prefix(text, "--root-path") == ""


@pytest.mark.parametrize(
    "text",
    [
        "maps", "//host", "//", "/maps//city", "/..", "/maps/../api", "/./a", "https://host/maps", "/a b", "/a?b", "/a#b",
        "/a\nb", "/\u00e9", "/%2e", "/a\\b", "/" + "a" * LONGEST, *(f"/{one}" for one in OWN), "/api/maps",
    ],
)  # fmt: skip
def test_what_is_no_prefix(text: str) -> None:
    with pytest.raises(InputError, match="--root-path"):
        read_prefix(text, "--root-path")


def test_a_wrong_prefix_is_refused_before_the_start(
    files: dict[str, Path], capfd: pytest.CaptureFixture[str]
) -> None:
    command = ["serve", str(files["city"]), "--port", "0", "--root-path"]
    assert run([*command, "maps"]) == 2
    assert "--root-path must be a path such as /maps" in capfd.readouterr().err
    assert run([*command, "/api"]) == 2
    assert "begins as the server's own paths do" in capfd.readouterr().err


def test_paths_with_and_without_the_prefix(files: dict[str, Path]) -> None:
    with running([files["city"]], root_path="/maps") as (address, _), client(address) as api:
        kept, stripped = (
            api.get(f"{before}/api/releases/city/count?{BOX}") for before in ("/maps", "")
        )
        assert kept.status_code == 200
        assert kept.content == stripped.content
        moved = api.get("/maps")
        assert (moved.status_code, moved.headers["location"]) == (308, "/maps/")
        assert api.get("/maps/").text == api.get("/").text
        assert api.get("/mapsapi/releases").status_code == 404
        assert api.get("/maps/maps/api/releases").status_code == 404
        assert api.get("/maps/healthz").status_code == 200
        assert api.get("/maps/openapi.json").json()["servers"] == [{"url": "/maps"}]


def test_a_prefix_opens_no_way_around_the_token(files: dict[str, Path]) -> None:
    settings: dict[str, Any] = {"root_path": "/maps", "trust_proxy": True, "token": TOKEN}
    with running([files["city"]], **settings) as (address, _), client(address) as api:
        for path in ("/maps/api/releases", "/api/releases", "/maps/metrics", "/maps/api/releases/city/count"):  # fmt: skip
            for headers in ({}, {"X-Forwarded-Prefix": "/maps"}, {"X-Forwarded-Prefix": "/other"}):
                assert api.get(path, headers=headers).status_code in (401, 404)
        forwarded = {"X-Forwarded-Prefix": "/other"}
        assert api.get("/other/api/releases", headers=forwarded).status_code == 401
        allowed = {"Authorization": f"Bearer {TOKEN.decode()}"}
        assert api.get("/maps/api/releases", headers=allowed).status_code == 200


def test_a_forwarded_prefix_is_believed_only_if_asked_to(files: dict[str, Path]) -> None:
    forwarded = {"X-Forwarded-Prefix": "/maps"}
    with running([files["city"]]) as (address, _), client(address, headers=forwarded) as api:
        assert "servers" not in api.get("/openapi.json").json()
        assert api.get("/maps/api/releases").status_code == 404
    with running([files["city"]], trust_proxy=True) as (address, _), client(address) as api:
        assert "servers" not in api.get("/openapi.json").json()
        told = api.get("/openapi.json", headers=forwarded).json()
        assert told["servers"] == [{"url": "/maps"}]
        for wrong in ("//host", "https://host", "/..", "/a b", "/api"):
            answer = api.get("/", headers={"X-Forwarded-Prefix": wrong})
            assert answer.status_code == 400
            assert "X-Forwarded-Prefix" in answer.json()["detail"]
            assert "location" not in answer.headers


STARTED: dict[str, dict[str, Any]] = {
    "stripped": {},
    "kept": {"root_path": "/maps"},
    "forwarded": {"trust_proxy": True},
}


@pytest.mark.parametrize(("kind", "location"), [*zip(STARTED, documented_proxies(), strict=True)])
def test_behind_nginx(kind: str, location: str, files: dict[str, Path], tmp_path: Path) -> None:
    with (
        running([files["city"], files["hours"]], **STARTED[kind]) as (address, _),
        nginx(tmp_path, location.replace(DOCUMENTED, address)) as proxy,
        client(proxy) as api,
        client(address) as direct,
    ):
        assert api.get("/api/releases").status_code == 404  # nothing but the prefix is served
        assert api.get("/maps", follow_redirects=True).text == direct.get("/").text
        asked = f"api/releases/city/count?{BOX}"
        assert api.get(f"/maps/{asked}").content == direct.get(f"/{asked}").content
        counted = api.post("/maps/api/releases/city/counts", json={"boxes": [[-30.1, 39.95, -29.9, 40.05]]})  # fmt: skip
        assert counted.json()["count"] == [api.get(f"/maps/{asked}").json()["count"]]
        told = api.get("/maps/openapi.json").json()
        if kind != "stripped":  # where nobody tells the server of the prefix
            assert told["servers"] == [{"url": "/maps"}]
            page = api.get("/maps/api/releases?limit=1").json()
            assert api.get(page["next"]).json()["releases"][0]["id"] == "hours"
