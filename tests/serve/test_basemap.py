"""The base map of the page: around a release, cached, and empty where there is none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from htf.maps.browser.street_tiles import Archive
from serving import BOUNDS, client, running, tile_at
from street_archive import write_archive


def test_it_is_around_the_release_and_cached(api: httpx.Client) -> None:
    answer = api.get("/api/releases/city/basemap")
    assert answer.status_code == 200
    told = answer.json()
    west, south, east, north = told["parts"][0]["bounds"]
    assert (west < -30.2, south < 39.8, east > -29.8, north > 40.2) == (True,) * 4
    assert told["credit"] == "Natural Earth"
    again = api.get("/api/releases/city/basemap", headers={"If-None-Match": answer.headers["etag"]})
    assert again.status_code == 304
    assert api.get("/api/releases/city/basemap?bounds=0,0,1,1").status_code == 400
    assert api.get("/api/releases/nothing/basemap").status_code == 404


def test_a_release_that_lies_nowhere_has_none(api: httpx.Client) -> None:
    told = api.get("/api/releases/nowhere/basemap").json()
    assert told == {"parts": [], "zoom": 0, "names": [], "credit": None, "tiles": None}


@pytest.fixture(scope="module")
def streets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archive]:
    archive = Archive(write_archive(tmp_path_factory.mktemp("streets") / "town.pmtiles", BOUNDS))
    yield archive
    archive.close()


def test_tiles_of_an_archive(files: dict[str, Path], streets: Archive) -> None:
    with running([files["city"], files["metres"]], streets=streets) as (address, _):
        api = client(address)
        told = api.get("/api/releases/city/basemap").json()
        assert told["tiles"] == streets.told()
        assert told["credit"] == "Natural Earth, © Mappers"
        assert api.get("/api/releases/metres/basemap").json()["tiles"] is None  # lies elsewhere
        x, y = tile_at(-30, 40, 10)
        found = api.get(f"/api/basemap/10/{x}/{y}.mvt")
        plain, zipped = streets.tile((10, x, y))
        assert found.content == plain != zipped
        assert found.headers["content-encoding"] == "gzip"
        assert found.headers["content-type"] == "application/vnd.mapbox-vector-tile"
        again = {"If-None-Match": found.headers["etag"]}
        assert api.get(f"/api/basemap/10/{x}/{y}.mvt", headers=again).status_code == 304
        bare = api.get(f"/api/basemap/10/{x}/{y}.mvt", headers={"Accept-Encoding": "identity"})
        assert bare.content == plain
        assert "content-encoding" not in bare.headers
        assert api.get("/api/basemap/10/0/0.mvt").content == b""
        for path in ("10/1024/0", "31/0/0", "a/0/0"):
            assert api.get(f"/api/basemap/{path}.mvt").status_code == 404
        assert api.get("/api/basemap/10/0/0.mvt?where=hour").status_code == 400


def test_tiles_need_the_token(files: dict[str, Path], streets: Archive) -> None:
    with running([files["city"]], streets=streets, token=b"0123456789abcdef") as (address, _):
        api = client(address)
        assert api.get("/api/basemap/10/0/0.mvt").status_code == 401
        given = {"Authorization": "Bearer 0123456789abcdef"}
        answer = api.get("/api/basemap/10/0/0.mvt", headers=given)
        assert answer.status_code == 200
        assert answer.headers["cache-control"].startswith("private")


def test_a_damaged_archive_is_not_named(files: dict[str, Path], tmp_path: Path) -> None:
    path = write_archive(tmp_path / "secret-place.pmtiles", BOUNDS, zooms=(3, 3))
    archive = Archive(path)
    path.write_bytes(b"")
    with running([files["city"]], streets=archive) as (address, _):
        answer = client(address).get("/api/basemap/3/3/3.mvt")
    archive.close()
    assert answer.status_code == 503
    assert "secret-place" not in answer.text


def test_without_an_archive_there_are_no_tiles(api: httpx.Client) -> None:
    answer = api.get("/api/basemap/10/0/0.mvt")
    assert answer.status_code == 404
    assert "--basemap" in answer.json()["detail"]
    assert api.get("/api/releases/city/basemap").json()["tiles"] is None


def test_the_etag_depends_on_the_options(files: dict[str, Path], api: httpx.Client) -> None:
    """Otherwise a browser would keep the base map of a server that was started with others."""
    kept = api.get("/api/releases/city/basemap").headers["etag"]
    with running([files["city"]], basemap=False) as (address, _):
        answer = client(address).get("/api/releases/city/basemap", headers={"If-None-Match": kept})
    assert answer.status_code == 200
    assert answer.json()["parts"] == []
