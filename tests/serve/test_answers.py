"""What the server answers is what the library answers, bit for bit, and refused in the same words."""

from __future__ import annotations

import asyncio
import json
import struct
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pytest

from htf import Domain, InputError, Release, publish
from htf.frame.domain import FloatArray
from htf.serve.app import Service
from serving import BOUNDS, client, run_async, running
from support import PATIENCE, people_matrix

ARROW = "application/vnd.apache.arrow.stream"
NAMES = ("count", "std_error", "low", "high", "partial", "inside", "raw")


def told(answer: dict[str, Any], release: Release) -> dict[str, Any]:
    """An answer as the server gives it."""
    return {**answer, "counted": release.counted}


def random_boxes(release: Release, number: int, seed: int) -> FloatArray:
    """Boxes anywhere, some of which reach beyond the map or have no width."""
    x, y = release.domain.axes[:2]
    generator = np.random.default_rng(seed)
    edges = [
        np.sort(generator.uniform(a.low - a.cell_width, a.high + a.cell_width, (number, 2)))
        for a in (x, y)
    ]
    boxes = np.column_stack([edges[0][:, 0], edges[1][:, 0], edges[0][:, 1], edges[1][:, 1]])
    boxes[0, 2] = boxes[0, 0]
    return boxes


def as_stream(columns: dict[str, Any], **options: Any) -> bytes:
    table, sink = pa.table(columns), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, **options) as writer:
        writer.write_table(table, max_chunksize=7)
    return bytes(sink.getvalue())


def columns_of(boxes: FloatArray) -> dict[str, Any]:
    return dict(zip(("west", "south", "east", "north"), boxes.T, strict=True))


@pytest.mark.parametrize("name", ["city", "metres", "nowhere", "hours"])
def test_one_box(api: httpx.Client, releases: dict[str, Release], name: str) -> None:
    release = releases[name]
    for box in random_boxes(release, 20, 1):
        asked = ",".join(map(repr, box.tolist()))
        found = api.get(f"/api/releases/{name}/count", params={"box": asked})
        assert found.json() == told(release.count(box).to_dicts()[0], release)
        raw = api.get(f"/api/releases/{name}/count?box={asked}")  # commas as they are
        assert raw.json() == found.json()
    whole = api.get(f"/api/releases/{name}/count").json()
    assert whole == told(release.count().to_dicts()[0], release)


def test_boxes_that_come_together(
    served: tuple[str, Service], releases: dict[str, Release]
) -> None:
    """They are counted in one call; each gets its own answer, and a wrong one spoils no other."""
    boxes = random_boxes(releases["city"], 60, 2)

    async def ask() -> list[httpx.Response]:
        async with httpx.AsyncClient(base_url=served[0], timeout=PATIENCE, trust_env=False) as api:
            addresses = [
                f"/api/releases/city/count?box={','.join(map(repr, box))}" for box in boxes.tolist()
            ]
            addresses[30] = "/api/releases/city/count?box=3,0,1,1"
            return await asyncio.gather(*(api.get(address) for address in addresses))

    found = run_async(ask())
    expected = releases["city"].count(boxes).to_dicts()
    for number, (answer, right) in enumerate(zip(found, expected, strict=True)):
        if number == 30:
            assert answer.status_code == 422
        else:
            assert answer.json() == told(right, releases["city"])


def test_ranges_of_axes(api: httpx.Client, releases: dict[str, Release]) -> None:
    release, where = releases["hours"], {"hour": (7.0, 10.0)}
    box = random_boxes(release, 1, 3)[0]
    params = {"box": ",".join(map(repr, box.tolist())), "where": "hour=7:10"}
    found = api.get("/api/releases/hours/count", params=params).json()
    assert found == told(release.count(box, where).to_dicts()[0], release)
    only = api.get("/api/releases/hours/count", params={"where": "hour=7:10"}).json()
    assert only == told(release.count(None, where).to_dicts()[0], release)


@pytest.mark.parametrize("name", ["city", "metres", "nowhere", "hours"])
def test_many_boxes(api: httpx.Client, releases: dict[str, Release], name: str) -> None:
    boxes = random_boxes(releases[name], 100, 4)
    expected = releases[name].count(boxes).to_columns()
    found = api.post(f"/api/releases/{name}/counts", json={"boxes": boxes.tolist()}).json()
    assert found == told({key: c.tolist() for key, c in expected.items()}, releases[name])
    answer = api.post(
        f"/api/releases/{name}/counts",
        content=as_stream(columns_of(boxes)),
        headers={"Content-Type": ARROW},
    )
    assert answer.headers["content-type"] == ARROW
    table = pa.ipc.open_stream(answer.content).read_all()
    for key in NAMES:
        assert np.array_equal(table[key].to_numpy(), expected[key])


def test_more_boxes_than_are_counted_at_once(
    api: httpx.Client, releases: dict[str, Release]
) -> None:
    boxes = random_boxes(releases["city"], 10_000, 5)
    found = api.post("/api/releases/city/counts", json={"boxes": boxes.tolist()}).json()
    with pytest.warns(UserWarning, match="outside of the map") as warned:
        expected = releases["city"].count(boxes).to_columns()
    assert found.pop("warning") == str(warned[0].message)
    assert found == told({key: c.tolist() for key, c in expected.items()}, releases["city"])


def test_boxes_outside_are_warned_of(api: httpx.Client) -> None:
    west, south, east, north = BOUNDS
    swapped = [south, west, north, east]
    bounds = f"from {west} to {east} along x and from {south} to {north} along y"
    text = ",".join(map(str, swapped))
    found = api.get(f"/api/releases/city/count?box={text}").json()
    assert {name: found[name] for name in NAMES} == dict.fromkeys(NAMES, 0.0)
    assert f"lies outside of the map, which goes {bounds}." in found["warning"]
    assert "With x and y swapped it would lie on the map" in found["warning"]
    many = api.post("/api/releases/city/counts", json={"boxes": [BOUNDS, swapped]}).json()
    assert many["inside"] == [1.0, 0.0]
    assert many["warning"].startswith("1 of 2 boxes lies outside of the map")
    stream = as_stream(columns_of(np.array([BOUNDS, swapped])))
    arrow = api.post(
        "/api/releases/city/counts", content=stream, headers={"Content-Type": ARROW}
    ).content
    assert pa.ipc.open_stream(arrow).schema.metadata[b"warning"] == many["warning"].encode()
    half = api.get(f"/api/releases/city/count?box={2 * west - east},{south},{east},{north}").json()
    assert half["inside"] == pytest.approx(0.5)
    assert "warning" not in half
    corners = [[south, west], [north, west], [north, east], [south, west]]
    polygon = {"type": "Polygon", "coordinates": [corners]}
    answer = api.post("/api/releases/city/polygons", json=polygon).json()
    assert answer["warning"].startswith("No area of the polygons lies on the map (OGC:CRS84)")


def test_many_boxes_and_ranges(api: httpx.Client, releases: dict[str, Release]) -> None:
    release, where = releases["hours"], {"hour": (7, 10)}
    boxes = random_boxes(release, 10, 6)
    expected = release.count(boxes, where).to_columns()
    body = {"boxes": boxes.tolist(), "where": where}
    found = api.post("/api/releases/hours/counts", json=body).json()
    assert found["high"] == expected["high"].tolist()
    ranges = {"hour_low": np.full(10, 7), "hour_high": np.full(10, 10, np.float32)}
    for columns, query in (
        ({**columns_of(boxes), **ranges}, ""),
        (columns_of(boxes), "?where=hour=7:10"),
    ):
        answer = api.post(
            f"/api/releases/hours/counts{query}",
            content=as_stream(columns),
            headers={"Content-Type": ARROW},
        )
        table = pa.ipc.open_stream(answer.content).read_all()
        assert np.array_equal(table["count"].to_numpy(), expected["count"])


def test_polygons(api: httpx.Client, releases: dict[str, Release]) -> None:
    west, south, east, north = BOUNDS
    triangle = [[west, south], [east, south], [east, north], [west, south]]
    hole = [[-30.0, 39.95], [-29.9, 39.95], [-29.9, 40.0], [-30.0, 39.95]]
    one = {"type": "Polygon", "coordinates": [triangle]}
    two = {"type": "MultiPolygon", "coordinates": [[triangle, hole]]}
    feature = {"type": "Feature", "properties": {}, "geometry": one}
    many = {"type": "FeatureCollection", "features": [feature, {**feature, "geometry": two}]}
    empty = {"type": "FeatureCollection", "features": [{**feature, "geometry": None}, feature]}
    for asked in (one, two, feature, many, empty):
        found = api.post("/api/releases/city/polygons", json=asked).json()["answers"]
        assert found == releases["city"].count_polygons(asked).to_dicts()
    found = api.post("/api/releases/hours/polygons?where=hour=7:10", json=many).json()["answers"]
    assert found == releases["hours"].count_polygons(many, where={"hour": (7, 10)}).to_dicts()
    none = api.post("/api/releases/city/polygons", json={**many, "features": []})
    assert none.json() == told({"answers": []}, releases["city"])


def test_polygons_of_a_map_in_metres(api: httpx.Client, releases: dict[str, Release]) -> None:
    corners = [[8.3, 46.9], [8.4, 46.9], [8.38, 46.99], [8.3, 46.9]]
    asked = {"type": "Polygon", "coordinates": [corners]}
    found = api.post("/api/releases/metres/polygons", json=asked).json()["answers"]
    expected = releases["metres"].count_polygons(asked).to_dicts()
    assert found == expected
    assert found[0]["count"] > 0


def test_the_list_and_one_release(api: httpx.Client, releases: dict[str, Release]) -> None:
    told = api.get("/api/releases").json()
    assert [one["id"] for one in told["releases"]] == [*releases]
    assert (told["number"], told["next"]) == (5, None)
    assert told["limits"] == {
        "bytes": 2**24,
        "boxes": 500_000,
        "polygons": 10_000,
        "corners": 200_000,
    }
    for one in told["releases"]:
        release = releases[one["id"]]
        total = release.count().to_dicts()[0]
        assert one["total"] == {name: total[name] for name in NAMES[:4]}
        assert one["leaves"] == len(release)
        assert one["private"] == release.private
        about = api.get(f"/api/releases/{one['id']}").json()
        assert about.items() >= {**json.loads(json.dumps(release.summary())), **one}.items()
    found = {one["id"]: one for one in told["releases"]}
    assert found["city"]["bounds"] == found["city"]["bounds84"] == list(BOUNDS)
    assert found["nowhere"]["bounds84"] is None
    assert np.allclose(found["metres"]["bounds84"], [8.277, 46.91, 8.411, 47.0], atol=0.01)


def test_people_are_called_people_everywhere(tmp_path: Path) -> None:
    people = publish(
        people_matrix(Domain.from_bounds(*BOUNDS, 64), per="week"), 1, noise="seeded:1"
    )
    people.save(tmp_path / "weeks.parquet")
    polygon = {
        "type": "Polygon",
        "coordinates": [[[-30, 39.95], [-29.9, 39.95], [-29.9, 40], [-30, 39.95]]],
    }
    at, box = "/api/releases/weeks", [[-30, 39.95, -29.9, 40]]
    with (
        running([tmp_path / "weeks.parquet"], allow_not_private=True) as (address, _),
        client(address) as api,
    ):
        (about,) = api.get("/api/releases").json()["releases"]
        answers = [
            api.get(at),
            api.get(f"{at}/count"),
            api.post(f"{at}/counts", json={"boxes": box}),
            api.post(f"{at}/polygons", json=polygon),
        ]
        stream = as_stream(columns_of(np.array(box)))
        arrow = api.post(f"{at}/counts", content=stream, headers={"Content-Type": ARROW})
    assert (about["quantity"], about["counted"]) == ("split person-weeks", "split person-weeks")
    assert (about["unit"], about["protects"]) == ("person", "one person in one week")
    for answer in answers:
        assert answer.json()["counted"] == "split person-weeks"
    assert pa.ipc.open_stream(arrow.content).schema.metadata[b"counted"] == b"split person-weeks"


def test_the_list_comes_in_pages(api: httpx.Client) -> None:
    seen, address = [], "/api/releases?limit=2"
    while address:
        page = api.get(address).json()
        seen += [one["id"] for one in page["releases"]]
        address = page["next"]
    assert seen == ["city", "hours", "metres", "nowhere", "seeded"]
    for wrong in (
        "limit=0",
        "limit=-1",
        "offset=x",
        "limit=",
        "page=2",
        "offset=99999999999",
        "limit=1&limit=2",
    ):
        assert api.get(f"/api/releases?{wrong}").status_code == 400


def test_the_file_itself(api: httpx.Client, files: dict[str, Path]) -> None:
    found = api.get("/api/releases/city/download")
    assert found.content == files["city"].read_bytes()
    assert found.headers["content-disposition"] == 'attachment; filename="city.parquet"'
    part = api.get("/api/releases/city/download", headers={"Range": "bytes=4-9"})
    assert (part.status_code, part.content) == (206, found.content[4:10])


def test_what_is_not_private_says_so_everywhere(api: httpx.Client) -> None:
    box = [[-30, 39.95, -29.9, 40]]
    polygon = {
        "type": "Polygon",
        "coordinates": [[[-30, 39.95], [-29.9, 39.95], [-29.9, 40], [-30, 39.95]]],
    }
    at = "/api/releases/seeded"
    answers = [
        api.get(at),
        api.get(f"{at}/count"),
        api.post(f"{at}/counts", json={"boxes": box}),
        api.post(f"{at}/polygons", json=polygon),
    ]
    for answer in answers:
        assert answer.json()["not_private"].startswith("NOT PRIVATE: the noise was seeded")
    assert "not_private" in api.get("/api/releases").json()["releases"][-1]
    stream = as_stream(columns_of(np.array(box)))
    arrow = api.post(f"{at}/counts", content=stream, headers={"Content-Type": ARROW})
    assert pa.ipc.open_stream(arrow.content).schema.metadata[b"not_private"]
    assert "NOT-PRIVATE-" in api.get(f"{at}/download").headers["content-disposition"]
    assert "not_private" not in api.get("/api/releases/city/count").json()


@pytest.mark.parametrize(
    ("query", "box", "where"),
    [
        ("box=1,0,0,1", [1, 0, 0, 1], None),
        ("box=1,2", [1, 2], None),
        ("where=minute=7:10", None, {"minute": (7, 10)}),
        ("where=hour=10:7", None, {"hour": (10, 7)}),
        ("where=hour=7:7", None, {"hour": (7, 7)}),
        ("where=hour=30:40", None, {"hour": (30, 40)}),
        ("box=0,0,1,1&where=x=0:1", [0, 0, 1, 1], {"x": (0, 1)}),
    ],
)
def test_the_words_are_those_of_the_library(
    api: httpx.Client, releases: dict[str, Release], query: str, box: Any, where: Any
) -> None:
    with pytest.raises(InputError) as expected:
        releases["hours"].count(box, where)
    found = api.get(f"/api/releases/hours/count?{query}")
    assert (found.status_code, found.json()) == (422, {"detail": str(expected.value)})
    if box is None:
        return
    body = {"boxes": [box], "where": where or {}}
    found = api.post("/api/releases/hours/counts", json=body)
    assert found.status_code == 422


@pytest.mark.parametrize(
    ("query", "status", "text"),
    [
        ("box=a,b,c,d", 422, "box takes W,S,E,N, 4 numbers with commas, got 'a,b,c,d'"),
        ("box=1e+0,0,2,1", 422, "4 numbers with commas"),  # + is a space in an address
        (
            "where=hour",
            422,
            "where takes AXIS=LOW:HIGH, such as hour=7:10, or AXIS=NAME, got 'hour'",
        ),
        ("where=hour=1:2&where=hour=3:4", 422, "where names hour twice"),
        ("bx=1,2,3,4", 400, "there is no parameter 'bx': it takes box, where"),
        ("box=0,0,1,1&box=0,0,1,1", 400, "POST many"),
        ("box=%ff%fe", 422, "4 numbers"),
        ("box=nan,0,0,1", 422, "4 numbers with commas, got 'nan,0,0,1'"),
        ("box=-inf,0,1e400,1", 422, "4 numbers"),
        ("box=1_0,0,50,1", 422, "4 numbers"),
        (f"box={'9' * 5000},0,0,1", 422, "4 numbers"),
        (f"box=0,0,1,0.{'1' * 5000}", 422, "4 numbers"),
        (f"where=hour={'9' * 5000}:1", 422, "a range of hour takes AXIS=LOW:HIGH"),
    ],
)
def test_mistakes_in_an_address(api: httpx.Client, query: str, status: int, text: str) -> None:
    found = api.get(f"/api/releases/hours/count?{query}")
    assert found.status_code == status
    assert text in found.json()["detail"]


@pytest.mark.parametrize(
    ("body", "status", "text"),
    [
        (b"{", 400, "not JSON"),
        (b"[1]", 400, "must be a JSON object"),
        (b"\xff", 400, "not JSON"),
        (b"[" * 100_000, 400, "not JSON"),
        (b"{}", 422, "the body must be"),
        (b'{"boxes": 5}', 422, "the body must be"),
        (b'{"boxes": [], "more": 1}', 422, "members boxes, more"),
        (b'{"boxes": [[1,2,3]]}', 422, "a box must be 4 numbers"),
        (b'{"boxes": [[1,2,3,4],[1]]}', 422, "a box must be 4 numbers"),
        (b'{"boxes": [["a",2,3,4]]}', 422, "must be numbers, got text"),
        (b'{"boxes": [["1_0","0","50","50"]]}', 422, "must be numbers, got text"),
        (b'{"boxes": ["1","2","3","4"]}', 422, "must be numbers, got text"),
        (b'{"boxes": [], "where": {"x": ["0","1"]}}', 422, "must be numbers, got text"),
        (b'{"boxes": [], "where": {"x": "79"}}', 422, "a range of x takes AXIS=LOW:HIGH"),
        (b'{"boxes": [[%s,0,1,1]]}' % (b"9" * 5000), 400, "not JSON"),
        (b'{"boxes": [[1%s,0,1,1]]}' % (b"0" * 30), 422, "swapped"),
        (b'{"boxes": [[null,2,3,4]]}', 422, "finite"),
        (b'{"boxes": [{}]}', 422, "a box must be 4 numbers"),
        (b'{"boxes": [[0,0,1,1],[9,0,1,1]]}', 422, "row 1 (counted from 0)"),
        (b'{"boxes": [], "where": [1]}', 422, "where must be an object"),
        (b'{"boxes": [], "where": {"x": 1}}', 422, "two numbers"),
        (b'{"boxes": [], "where": {"x": [%s]}}' % (b"1," * 100_000 + b"1"), 422, "two numbers"),
    ],
)
def test_mistakes_in_a_body(api: httpx.Client, body: bytes, status: int, text: str) -> None:
    found = api.post(
        "/api/releases/city/counts", content=body, headers={"Content-Type": "application/json"}
    )
    assert found.status_code == status
    assert text in found.json()["detail"]
    assert len(found.content) < 2000


def test_no_boxes_have_no_answers(api: httpx.Client) -> None:
    found = api.post("/api/releases/city/counts", json={"boxes": []})
    assert found.json() == {**{name: [] for name in NAMES}, "counted": "records"}


def test_mistakes_in_a_stream(api: httpx.Client) -> None:
    boxes = columns_of(np.array([[0.0, 0.0, 1.0, 1.0]] * 3))
    right = as_stream(boxes)
    packed = as_stream({"west": np.zeros(4096)}, options=pa.ipc.IpcWriteOptions(compression="zstd"))
    text = as_stream({**boxes, "north": ["a", "b", "c"]})
    lists = as_stream({**boxes, "north": [[1.0], [2.0], [3.0]]})
    wrong = [
        (b"", 400, "Arrow stream"),
        (b"nonsense", 400, "Arrow stream"),
        (right[:100], 400, "Arrow stream"),
        (right[: len(right) // 2], 400, "Arrow stream"),
        (packed, 400, "compressed"),
        (text, 400, "Arrow stream"),
        (lists, 400, "Arrow stream"),
        (as_stream({"west": [1.0]}), 422, "south, east, north is missing"),
        (as_stream({**boxes, "west": [0.0, None, 0.0]}), 422, "in row 1 (counted from 0)"),
    ]
    for body, status, said in wrong:
        found = api.post("/api/releases/city/counts", content=body, headers={"Content-Type": ARROW})
        assert (found.status_code, said in found.json()["detail"]) == (status, True), found.text
    assert (
        api.post(
            "/api/releases/city/counts", content=right, headers={"Content-Type": "text/csv"}
        ).status_code
        == 415
    )


def test_damaged_streams_are_refused_or_answered(api: httpx.Client) -> None:
    """Never with a fault of ours. A thousand places, some of which are numbers and may be anything."""
    right = as_stream(columns_of(np.array([[0.0, 0.0, 1.0, 1.0]] * 3)))
    generator = np.random.default_rng(7)
    for _ in range(150):
        body = bytearray(right)
        struct.pack_into(
            "<B", body, int(generator.integers(len(body))), int(generator.integers(256))
        )
        found = api.post(
            "/api/releases/city/counts", content=bytes(body), headers={"Content-Type": ARROW}
        )
        assert found.status_code in (200, 400, 413, 422), found.text


@pytest.mark.parametrize(
    ("body", "status", "text"),
    [
        (b"nonsense", 400, "not JSON"),
        (b"{}", 422, "is not GeoJSON"),
        (b'{"type": "Point", "coordinates": [0, 0]}', 422, "is a Point, not a polygon"),
        (b'{"type": "Polygon", "coordinates": [[[0, 0], [1, 1]]]}', 422, "GeoJSON"),
        (b'{"type": "Polygon", "coordinates": 5}', 422, "GeoJSON"),
    ],
)
def test_mistakes_in_polygons(api: httpx.Client, body: bytes, status: int, text: str) -> None:
    found = api.post("/api/releases/city/polygons", content=body)
    assert found.status_code == status
    assert text in found.json()["detail"]
    assert (
        "no reference system"
        in api.post(
            "/api/releases/nowhere/polygons", json={"type": "Polygon", "coordinates": []}
        ).json()["detail"]
    )


def test_ids_are_unique(files: dict[str, Path], tmp_path: Path) -> None:
    from serving import running

    other = tmp_path / "City.parquet"
    other.write_bytes(files["city"].read_bytes())
    third = tmp_path / "ü.parquet"
    third.write_bytes(files["city"].read_bytes())
    with running([files["city"], other, third]) as (address, _), client(address) as api:
        told = api.get("/api/releases").json()["releases"]
        assert [one["id"] for one in told] == ["city", "city-2", "release"]
        assert (
            "filename*=" in api.get("/api/releases/release/download").headers["content-disposition"]
        )
        other.write_bytes(b"something else")
        assert api.get("/api/releases/city-2/download").status_code == 503


def test_no_parameter_is_ignored(api: httpx.Client) -> None:
    for path in ("", "/download", "/distinct", "/basemap"):
        found = api.get(f"/api/releases/city{path}?where=hour=7:10")
        assert (found.status_code, found.json()["detail"]) == (
            400,
            "there is no parameter 'where': it takes none",
        )
    found = api.post("/api/releases/hours/counts?where=hour=7:10", json={"boxes": []})
    assert found.status_code == 400
    assert "its body has a member where" in found.json()["detail"]
