"""Releases of zones over HTTP: the map, the table, and what boxes get told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import jsonschema
import pytest
import shapely

from htf import (
    Domain,
    Release,
    inside_zones,
    publish,
    read_points,
    read_zones,
    synthetic_trips,
    synthetic_zones,
)
from htf.serve.holdings import load_holdings
from htf.serve.limits import Limits
from serving import client, running
from zoning import boxes_with_offences, squares, zoned


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("zones")
    releases = {
        "plain": zoned(),
        "kinds": zoned("kinds"),
        "trips": zoned("trips"),
        "rest": zoned("rest"),
        "metres": zoned(crs="EPSG:28992", side=1000),
        "nowhere": zoned(crs=None),
        "boxes": boxes_with_offences(),
    }
    for name, release in releases.items():
        release.save(folder / f"{name}.parquet")
    return {name: folder / f"{name}.parquet" for name in releases}


@pytest.fixture(scope="module")
def api(made: dict[str, Path]) -> Iterator[httpx.Client]:
    with (
        running(list(made.values()), allow_not_private=True) as (address, _),
        client(address) as found,
    ):
        yield found


def get(api: httpx.Client, path: str) -> Any:
    found = api.get(f"/api/releases/{path}")
    assert found.status_code == 200, found.text
    return found.json()


def test_the_list_tells_levels_labels_and_bounds(api: httpx.Client) -> None:
    told = {one["id"]: one for one in api.get("/api/releases").json()["releases"]}
    levels = ["tract", "district"]
    assert told["plain"]["zones"] == [{"axis": "zone", "levels": levels}]
    assert [one["axis"] for one in told["trips"]["zones"]] == ["zone", "dest_zone"]
    assert told["boxes"]["zones"] == []
    assert told["plain"]["bounds84"] == pytest.approx([4, 52, 4.6, 52.2])
    assert told["nowhere"]["bounds84"] is None
    names = told["kinds"]["axes"][1]["names"]
    assert names["levels"][1]["labels"] == ["Violent", "Property"]


@pytest.mark.parametrize("level", ["tract", "district"])
def test_zones_have_outlines_and_the_answers_of_the_release(
    api: httpx.Client, made: dict[str, Path], level: str
) -> None:
    release = Release.load(made["kinds"])
    where = "where=offence%3DViolent"
    found = get(api, f"kinds/zones?level={level}&{where}")
    table = release.table(level, where={"offence": "Violent"})
    assert (found["level"], found["unit"], found["counted"]) == (level, "km²", "records")
    assert found["labels"][0] == level
    rows = [feature["properties"] for feature in found["features"]]
    assert [row[level] for row in rows] == table[level].to_pylist()
    for name in ("count", "std_error", "low", "high"):
        assert [row[name] for row in rows] == table[name].to_pylist()
    assert all(row["clear"] == (row["low"] > 0) for row in rows)
    assert rows[0]["density"] == pytest.approx(rows[0]["count"] / rows[0]["area"])
    shape = shapely.geometry.shape(found["features"][0]["geometry"])
    assert shape.equals_exact(squares()[0], 1e-6) or level == "district"
    assert ("dwellings" in rows[0]) == (level == "tract")


def test_trips_are_drawn_at_the_other_end(api: httpx.Client, made: dict[str, Path]) -> None:
    release = Release.load(made["trips"])
    assert get(api, "trips/zones")["axis"] == "zone"
    assert get(api, "trips/zones?axis=dest_zone")["axis"] == "dest_zone"
    found = get(api, f"trips/zones?level=district&where={quote('zone=District 1')}")
    assert found["axis"] == "dest_zone"
    counts = [feature["properties"]["count"] for feature in found["features"]]
    table = release.table("dest_zone:district", where={"zone": "District 1"})
    assert counts == table["count"].to_pylist()


def test_the_rest_has_no_outline_and_metres_become_degrees(api: httpx.Client) -> None:
    rest = get(api, "rest/zones")["features"][-1]
    assert rest["geometry"] is None
    assert (rest["properties"]["area"], rest["properties"]["density"]) == (0, None)
    metres = get(api, "metres/zones")["features"][0]["geometry"]["coordinates"][0][0]
    assert 3 < metres[0] < 4


def test_tables_by_names_and_steps(api: httpx.Client, made: dict[str, Path]) -> None:
    release = Release.load(made["kinds"])
    found = get(api, "kinds/table?by=district&by=group")
    table = release.table("district", "group")
    assert found["labels"] == {n: table[n].to_pylist() for n in ("district", "group")}
    assert found["count"] == table["count"].to_pylist()
    assert len(get(api, "plain/table")["count"]) == 12
    assert get(api, "boxes/table?by=offence")["labels"]["offence"] == [
        "Assault",
        "Robbery",
        "Theft",
    ]
    one = get(api, f"plain/count?where={quote('zone=District 1')}")
    assert one["count"] == Release.load(made["plain"]).count(where={"zone": "District 1"}).count[0]


def test_names_in_a_body_of_boxes(api: httpx.Client, made: dict[str, Path]) -> None:
    body = {"boxes": [[4, 52, 5, 52.6]], "where": {"offence": "Assault"}}
    found = api.post("/api/releases/boxes/counts", json=body).json()
    expected = Release.load(made["boxes"]).count(where={"offence": "Assault"}).count[0]
    assert found["count"] == [pytest.approx(expected)]


def test_they_are_kept_and_compressed(api: httpx.Client) -> None:
    path = "/api/releases/plain/zones?level=district"
    first = api.get(path)
    assert first.headers["content-encoding"] == "gzip"
    assert first.headers["content-type"] == "application/geo+json"
    etag = first.headers["etag"]
    assert api.get(path, headers={"If-None-Match": etag}).status_code == 304
    other = api.get(f"{path}&where={quote('zone=District 1')}")
    assert other.headers["etag"] != etag


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("plain/tiles/3/1/0.mvt", 404, "this release has zones, so it has no tiles: …/zones"),
        ("plain/leaves", 404, "this release has zones"),
        ("plain/count?box=0,0,1,1", 422, "counts zones, which have names"),
        ("trips/count?box=0,0,1,1", 422, "where=zone=NAME"),
        ("boxes/zones", 404, "this release has no zones"),
        ("nowhere/zones", 404, "no reference system"),
        ("plain/zones?level=town", 422, "there is no level 'town'"),
        ("plain/zones?axis=dest_zone", 422, "there is no axis of zones 'dest_zone'"),
        ("plain/zones?level=tract&level=district", 400, "give level once"),
        ("plain/zones?box=1", 400, "there is no parameter 'box'"),
        ("plain/zones?where=zone=Tract", 422, "there is no 'Tract'"),
        ("plain/table?by=town", 422, "there is no level 'town'"),
        ("boxes/table", 422, "this release has no zones"),
        ("none/table", 404, "there is no such release"),
    ],
)
def test_mistakes(api: httpx.Client, path: str, status: int, text: str) -> None:
    found = api.get(f"/api/releases/{path}")
    assert found.status_code == status
    assert text in found.json()["detail"]


def test_boxes_and_polygons_are_refused_in_words(api: httpx.Client) -> None:
    shape = {"type": "Polygon", "coordinates": [[[4, 52], [5, 52], [5, 53], [4, 52]]]}
    for path, body in (("counts", {"boxes": [[0, 0, 1, 1]]}), ("polygons", shape)):
        found = api.post(f"/api/releases/trips/{path}", json=body)
        assert found.status_code == 422
        assert "counts zones, which have names" in found.json()["detail"]


def test_a_table_of_too_many_rows_is_refused(made: dict[str, Path]) -> None:
    limits = Limits(boxes=100)
    with (
        running([made["trips"]], allow_not_private=True, limits=limits) as (address, _),
        client(address) as api,
    ):
        found = api.get("/api/releases/trips/table?by=tract")
        assert found.status_code == 413
        assert "at most 100 rows at once, got 144" in found.json()["detail"]


@pytest.mark.parametrize(
    ("form", "path"),
    [
        ("/api/releases", "/api/releases"),
        ("/api/releases/{id}", "/api/releases/trips"),
        ("/api/releases/{id}/zones", "/api/releases/rest/zones"),
        ("/api/releases/{id}/zones", "/api/releases/boxes/zones"),
        ("/api/releases/{id}/table", "/api/releases/kinds/table?by=district&by=offence"),
        ("/api/releases/{id}/table", "/api/releases/kinds/table?by=town"),
    ],
)
def test_answers_are_as_described(api: httpx.Client, form: str, path: str) -> None:
    document = api.get("/openapi.json").json()
    answer = api.get(path)
    told = document["paths"][form]["get"]["responses"][str(answer.status_code)]
    schema = told["content"][answer.headers["content-type"]]["schema"]
    whole = {**schema, "components": document["components"]}
    jsonschema.validate(answer.json(), whole, cls=jsonschema.Draft202012Validator)


def test_a_map_inside_zones_is_served_with_its_zones(tmp_path: Path) -> None:
    """Both claim what both cost together."""
    trips, layer = synthetic_trips(5000), synthetic_zones(tracts=20, districts=4)
    domain = Domain.from_bounds(*trips.domain_bounds, cells=64)
    tracts = Domain((read_zones(layer, "tract", ["district"]),))
    points = [trips.x, trips.y]
    maps = publish(read_points(points, domain), "0.8", noise="seeded:1")
    both = inside_zones(maps, publish(read_points(points, tracts), "0.2", noise="seeded:1"))
    both.save(tmp_path / "both.parquet")
    held = load_holdings([tmp_path / "both.parquet"], allow_not_private=True)
    assert {name: one.about["name"] for name, one in held.items()} == {
        "both": "both",
        "both-zones": "both zones",
    }
    assert [one.about["epsilon"] for one in held.values()] == ["1", "1"]
    assert held["both"].about["zones"] == []
    assert held["both-zones"].about["zones"][0]["levels"] == ["tract", "district"]
    assert held["both-zones"].about["leaves"] == 20
    assert len({one.seed for one in held.values()}) == 2
