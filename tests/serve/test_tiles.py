"""Tiles against brute force: where they lie, that they tile the map, and what they count."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import httpx
import numpy as np
import pytest
import shapely
from shapely.geometry import shape

from htf import Domain, FrequencyMatrix, Release, publish
from htf.maps.views import view
from htf.serve import tiles
from htf.serve.holdings import Holding, load_holdings
from htf.serve.limits import Refusal
from htf.serve.tiles import tile_bounds
from serving import BOUNDS, tile_at, tiles_over


def get_tiles(
    api: httpx.Client, name: str, bounds: tuple[float, ...], z: int, query: str = ""
) -> list[Any]:
    found = []
    for tile in tiles_over(bounds, z):
        answer = api.get(f"/api/releases/{name}/tiles/{'/'.join(map(str, tile))}.geojson{query}")
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"] == "application/geo+json"
        edge = shapely.box(*tile_bounds(*tile)).buffer(1e-8)
        features = answer.json()["features"]
        assert all(edge.covers(shape(feature["geometry"])) for feature in features)
        found += features
    return found


def test_bounds_of_tiles() -> None:
    assert tile_bounds(0, 0, 0) == pytest.approx((-180, -85.0511287798, 180, 85.0511287798))
    generator = np.random.default_rng(1)
    for z in (0, 1, 5, 14, 24):
        for longitude, latitude in generator.uniform((-180, -85), (180, 85), (20, 2)):
            west, south, east, north = tile_bounds(z, *tile_at(longitude, latitude, z))
            assert west <= longitude <= east
            assert south <= latitude <= north


@pytest.mark.parametrize("z", [8, 11, 14])
def test_parts_cover_the_map_once(api: httpx.Client, releases: dict[str, Release], z: int) -> None:
    """The features of all tiles lie side by side and cover the map, each with its own answer."""
    inner = BOUNDS if z < 14 else (-30.02, 39.98, -29.98, 40.02)
    features = get_tiles(api, "city", inner, z)
    shapes = [shape(feature["geometry"]) for feature in features]
    covered = shapely.union_all([one.buffer(1e-9) for one in shapes])
    assert covered.covers(shapely.box(*inner).buffer(-1e-7))
    overlap = sum(one.area for one in shapes) - shapely.union_all(shapes).area
    assert abs(overlap) < 1e-9
    for feature in features[:: max(1, len(features) // 50)]:
        said = feature["properties"]
        expected = releases["city"].count(said["box"]).to_dicts()[0]
        for name in said.keys() - {"box", "clear", "unsure", "density"}:
            assert said[name] == pytest.approx(expected[name], rel=1e-9, abs=1e-9)
        ring = shapely.get_coordinates(shape(feature["geometry"]))
        assert shapely.box(*said["box"]).buffer(1e-8).covers(shapely.LinearRing(ring))


def test_density_is_by_area(api: httpx.Client) -> None:
    from pyproj import Geod

    ground = Geod(ellps="WGS84")
    for feature in get_tiles(api, "city", (-30, 40, -29.99, 40.01), 12)[:20]:
        said = feature["properties"]
        area = (
            abs(
                ground.geometry_area_perimeter(shapely.segmentize(shapely.box(*said["box"]), 1e-4))[
                    0
                ]
            )
            / 1e6
        )
        assert said["density"] == pytest.approx(said["count"] / area, rel=1e-4)


def test_a_grid_where_parts_are_many(
    api: httpx.Client, releases: dict[str, Release], monkeypatch: pytest.MonkeyPatch, served: Any
) -> None:
    monkeypatch.setattr("htf.maps.tiles.MOST_LEAVES", 10)
    monkeypatch.setattr("htf.maps.tiles.GRID", 16)
    served[1].tiles._tiles.clear()
    for z in (8, 11):
        features = get_tiles(api, "city", BOUNDS, z)
        boxes = {
            tuple(feature["properties"]["box"]): feature["properties"]["count"]
            for feature in features
        }
        counts = releases["city"].count(np.array([*boxes])).count
        assert np.allclose(counts, [*boxes.values()], atol=1e-6)
        assert "std_error" not in features[0]["properties"]
        for tile in tiles_over(BOUNDS, z):
            part = api.get(f"/api/releases/city/tiles/{'/'.join(map(str, tile))}.geojson").json()
            assert len(part["features"]) <= 16 * 16
    served[1].tiles._tiles.clear()


def test_more_axes_are_summed(api: httpx.Client, releases: dict[str, Release]) -> None:
    release = releases["hours"]
    for query, where in (("", None), ("?where=hour=7:10", {"hour": (7, 10)})):
        features = get_tiles(api, "hours", BOUNDS, 9, query)
        boxes = {
            tuple(feature["properties"]["box"]): feature["properties"]["count"]
            for feature in features
        }
        assert sum(boxes.values()) == pytest.approx(release.count(None, where).count[0], abs=1e-6)
        counts = release.count(np.array([*boxes]), where).count
        assert np.allclose(counts, [*boxes.values()], atol=1e-6)


def test_a_map_in_metres(api: httpx.Client, releases: dict[str, Release]) -> None:
    """Shapes are in degrees, and cover the map as pyproj and shapely have it."""
    import pyproj

    x, y = releases["metres"].domain.axes
    there = pyproj.Transformer.from_crs("EPSG:32632", "OGC:CRS84", always_xy=True)
    bounds = there.transform_bounds(x.low, y.low, x.high, y.high)
    features = get_tiles(api, "metres", bounds, 11)
    shapes = [shape(feature["geometry"]) for feature in features]
    outline = shapely.transform(
        shapely.segmentize(shapely.box(x.low, y.low, x.high, y.high), 100),
        lambda xy: np.column_stack(there.transform(xy[:, 0], xy[:, 1])),
    )
    covered = shapely.union_all([one.buffer(1e-7) for one in shapes])
    assert covered.symmetric_difference(outline).area < 1e-4 * outline.area
    boxes = {
        tuple(feature["properties"]["box"]): feature["properties"]["count"] for feature in features
    }
    assert np.allclose(
        releases["metres"].count(np.array([*boxes])).count, [*boxes.values()], atol=1e-6
    )


def test_tiles_without_anything(api: httpx.Client) -> None:
    for name, tile in (
        ("city", "11/0/0"),
        ("metres", "3/0/0"),
        ("metres", "0/0/0"),
        ("city", "24/0/0"),
    ):
        answer = api.get(f"/api/releases/{name}/tiles/{tile}.geojson")
        assert answer.status_code == 200
        assert answer.json()["features"] == [] or tile == "0/0/0"


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("city/tiles/3/8/0.geojson", 404, "there is no tile 3/8/0"),
        ("city/tiles/25/0/0.geojson", 404, "there is no tile"),
        ("city/tiles/99999999999/0/0.geojson", 404, "there is no tile"),
        (f"city/tiles/{'9' * 5000}/0/0.geojson", 404, "there is no tile"),
        (f"city/tiles/3/{'9' * 5000}/0.geojson", 404, "there is no tile"),
        (f"city/tiles/3/0/{'9' * 5000}.geojson", 404, "there is no tile"),
        ("city/tiles/1_0/0/0.geojson", 404, "there is no tile"),
        ("city/tiles/%D9%A3/0/0.geojson", 404, "there is no tile"),
        ("city/tiles/3/-1/0.geojson", 404, "there is no tile 3/-1/0"),
        ("city/tiles/3/1/0.png", 404, "nothing here"),
        ("nowhere/tiles/3/1/0.geojson", 404, "this release has no reference system"),
        ("hours/tiles/3/1/0.geojson?where=x=-30:-29.9", 400, "a tile already names the place"),
        ("hours/tiles/3/1/0.geojson?where=minute=0:1", 422, "there is no axis 'minute'"),
        ("hours/tiles/3/1/0.geojson?box=0,0,1,1", 400, "there is no parameter 'box'"),
    ],
)
def test_tiles_that_there_are_not(api: httpx.Client, path: str, status: int, text: str) -> None:
    found = api.get(f"/api/releases/{path}")
    assert found.status_code == status
    assert text in found.json()["detail"]


def test_one_axis_has_no_tiles_and_counts(tmp_path: Any) -> None:
    from htf.frame.domain import Axis

    domain = Domain((Axis("hour", 0, 24, 24),))
    release = publish(FrequencyMatrix.from_cells(domain, np.arange(24)[None].repeat(9, 1)), 1, "hb")
    release.save(tmp_path / "line.parquet")
    holding: Holding = load_holdings([tmp_path / "line.parquet"])["line"]
    assert holding.about["bounds"] is None
    with pytest.raises(Refusal, match="no axes x and y"):
        tiles.check_tiles(domain)
    from htf.serve.questions import read_row

    assert read_row(domain, b"box=7,10") == [7.0, 10.0]


def test_what_is_more_than_noise_is_as_on_every_map(
    api: httpx.Client, releases: dict[str, Release]
) -> None:
    """Leaves and squares are where their own interval lies above zero."""
    city, hours = releases["city"], releases["hours"]
    said = {tuple(f["properties"]["box"]): f["properties"]["clear"] for f in get_tiles(api, "city", BOUNDS, 11)}  # fmt: skip
    clear = city.count(np.array([*said])).low > 0
    assert [*said.values()] == clear.tolist()
    assert len(said) == len(city)
    assert {True, False} <= set(said.values())
    seen = view(hours, cells=10_000)
    x, y = hours.domain.axes[:2]
    same = []
    for feature in get_tiles(api, "hours", BOUNDS, 11):
        west, south, east, _ = feature["properties"]["box"]
        if east - west < 1.5 * x.cell_width:
            at = round((west - x.low) / x.cell_width), round((south - y.low) / y.cell_width)
            same.append(feature["properties"]["clear"] == seen.is_clear[at])
    assert len(same) > 100
    assert all(same)


@pytest.mark.parametrize("name", ["city", "metres"])
def test_outlines_of_all_leaves(api: httpx.Client, releases: dict[str, Release], name: str) -> None:
    release = releases[name]
    told = api.get(f"/api/releases/{name}/leaves").json()
    assert told["length"] == len(release)
    packed = np.frombuffer(zlib.decompress(base64.b64decode(told["corners"])), "<f4")
    columns = packed.reshape(-1, told["length"]).astype(float)
    x, y, size = told["frame"]
    longitude = (columns[0] * size + x - 0.5) * 360
    latitude = np.degrees(np.arctan(np.sinh((0.5 - columns[1] * size - y) * 2 * np.pi)))
    axes = release.domain.axes
    found = sorted(zip(longitude.round(4), latitude.round(4), strict=True))
    west, south = axes[0].from_cells(release.low[:, 0]), axes[1].from_cells(release.low[:, 1])
    if name == "metres":
        import pyproj

        transformer = pyproj.Transformer.from_crs(release.domain.crs, "OGC:CRS84", always_xy=True)
        west, south = transformer.transform(west, south)
    expected = sorted(zip(np.round(west, 4), np.round(south, 4), strict=True))
    assert np.allclose(found, expected, atol=2e-4)


def test_outlines_of_too_many_or_of_nowhere(
    api: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert api.get("/api/releases/nowhere/leaves").status_code == 404
    assert api.get("/api/releases/hours/leaves?where=hour=7:10").json()["length"] > 0
    assert api.get("/api/releases/hours/leaves?where=x=0:1").status_code in (400, 422)
    monkeypatch.setattr("htf.maps.browser.rectangles.MOST_OUTLINES", 10)
    refused = api.get("/api/releases/hours/leaves?where=hour=8:11")
    assert refused.status_code == 413
    assert "too many to draw" in refused.json()["detail"]
