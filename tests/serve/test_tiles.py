"""Tiles against brute force: where they lie, that they tile the map, and what they count."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import httpx
import numpy as np
import pytest
import shapely

from htf import Domain, FrequencyMatrix, Release, publish
from htf.maps.tiles import Contents, tile_bounds, tile_contents
from htf.maps.views import view
from htf.query.columns import OF_LEAVES
from htf.query.where import Where
from htf.serve import tiles
from htf.serve.holdings import Holding, load_holdings
from htf.serve.limits import Refusal
from serving import BOUNDS, tile_at, tiles_over


def tiles_of(
    release: Release, bounds: tuple[float, ...], z: int, where: Where | None = None
) -> list[Contents]:
    """What the tiles over the bounds hold."""
    found = [tile_contents(release, tile_bounds(*at), where or {}) for at in tiles_over(bounds, z)]
    return [one for one in found if one is not None]


def answers_in(tiles: list[Contents], name: str) -> dict[tuple[float, ...], Any]:
    """A column of answers by box. Rectangles on an edge are in several tiles, and the same in each."""
    found: dict[tuple[float, ...], Any] = {}
    for tile in tiles:
        for box, value in zip(tile.boxes.tolist(), tile.columns[name].tolist(), strict=True):
            assert found.setdefault(tuple(box), value) == value
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
def test_parts_cover_the_map_once(releases: dict[str, Release], z: int) -> None:
    """The rectangles of all tiles lie side by side and cover the map, each with its own answer."""
    inner = BOUNDS if z < 14 else (-30.02, 39.98, -29.98, 40.02)
    tiles, release = tiles_of(releases["city"], inner, z), releases["city"]
    for name in OF_LEAVES:
        told = answers_in(tiles, name)
        boxes = np.array([*told])
        expected = getattr(release.count(boxes), name)
        assert [*told.values()] == pytest.approx(expected, rel=1e-9, abs=1e-9)
    shapes = shapely.box(*boxes.T)
    assert shapely.union_all(shapely.buffer(shapes, 1e-9)).covers(shapely.box(*inner))
    assert abs(shapely.area(shapes).sum() - shapely.union_all(shapes).area) < 1e-9


def test_area_is_that_on_the_ground(releases: dict[str, Release]) -> None:
    from pyproj import Geod

    ground = Geod(ellps="WGS84")
    (tile, *_) = tiles_of(releases["city"], (-30, 40, -29.99, 40.01), 12)
    assert tile.area is not None
    for box, area in [*zip(tile.boxes, tile.area, strict=True)][:20]:
        outline = shapely.segmentize(shapely.box(*box), 1e-4)
        assert area == pytest.approx(
            abs(ground.geometry_area_perimeter(outline)[0]) / 1e6, rel=1e-4
        )


def test_a_grid_where_parts_are_many(
    releases: dict[str, Release], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("htf.maps.tiles.MOST_LEAVES", 10)
    monkeypatch.setattr("htf.maps.tiles.GRID", 16)
    for z in (8, 11):
        tiles = tiles_of(releases["city"], BOUNDS, z)
        assert all(len(tile) <= (10 if tile.are_leaves else 16 * 16) for tile in tiles)
        assert not all(tile.are_leaves for tile in tiles)
        told = answers_in(tiles, "count")
        counts = releases["city"].count(np.array([*told])).count
        assert np.allclose(counts, [*told.values()], atol=1e-6)


def test_more_axes_are_summed(releases: dict[str, Release]) -> None:
    release = releases["hours"]
    for where in ({}, {"hour": (7, 10)}):
        told = answers_in(tiles_of(release, BOUNDS, 9, where), "count")
        assert sum(told.values()) == pytest.approx(release.count(None, where).count[0], abs=1e-6)
        counts = release.count(np.array([*told]), where).count
        assert np.allclose(counts, [*told.values()], atol=1e-6)


def test_tiles_without_anything(api: httpx.Client) -> None:
    for name, tile in (
        ("city", "11/0/0"),
        ("metres", "3/0/0"),
        ("metres", "0/0/0"),
        ("city", "24/0/0"),
    ):
        answer = api.get(f"/api/releases/{name}/tiles/{tile}.mvt")
        assert answer.status_code == 200
        assert answer.content == b"" or tile == "0/0/0"


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("city/tiles/3/8/0.mvt", 404, "there is no tile 3/8/0"),
        ("city/tiles/25/0/0.mvt", 404, "there is no tile"),
        ("city/tiles/99999999999/0/0.mvt", 404, "there is no tile"),
        (f"city/tiles/{'9' * 5000}/0/0.mvt", 404, "there is no tile"),
        (f"city/tiles/3/{'9' * 5000}/0.mvt", 404, "there is no tile"),
        (f"city/tiles/3/0/{'9' * 5000}.mvt", 404, "there is no tile"),
        ("city/tiles/1_0/0/0.mvt", 404, "there is no tile"),
        ("city/tiles/%D9%A3/0/0.mvt", 404, "there is no tile"),
        ("city/tiles/3/-1/0.mvt", 404, "there is no tile 3/-1/0"),
        ("city/tiles/3/1/0.png", 404, "nothing here"),
        ("nowhere/tiles/3/1/0.mvt", 404, "this release has no reference system"),
        ("hours/tiles/3/1/0.mvt?where=x=-30:-29.9", 400, "a tile already names the place"),
        ("hours/tiles/3/1/0.mvt?where=minute=0:1", 422, "there is no axis 'minute'"),
        ("hours/tiles/3/1/0.mvt?box=0,0,1,1", 400, "there is no parameter 'box'"),
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


def test_what_is_more_than_noise_is_as_on_every_map(releases: dict[str, Release]) -> None:
    """Leaves and squares are where their own interval lies above zero."""
    city, hours = releases["city"], releases["hours"]
    told = {
        tuple(box): clear
        for tile in tiles_of(city, BOUNDS, 11)
        for box, clear in zip(tile.boxes.tolist(), tile.is_clear.tolist(), strict=True)
    }
    clear = city.count(np.array([*told])).low > 0
    assert [*told.values()] == clear.tolist()
    assert len(told) == len(city)
    assert {True, False} <= set(told.values())
    seen = view(hours, cells=10_000)
    x, y = hours.domain.axes[:2]
    same = []
    for tile in tiles_of(hours, BOUNDS, 11):
        for (west, south, east, _), is_clear in zip(tile.boxes, tile.is_clear, strict=True):
            if east - west < 1.5 * x.cell_width:
                at = round((west - x.low) / x.cell_width), round((south - y.low) / y.cell_width)
                same.append(is_clear == seen.is_clear[at])
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
