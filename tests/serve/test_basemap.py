"""The base map of the page: around a release, cached, and empty where there is none."""

from __future__ import annotations

import httpx


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
    assert told == {"parts": [], "zoom": 0, "names": [], "credit": None}
