"""Vector tiles, read by GDAL: the leaves and squares of each tile, rounded below the noise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import shapely

from htf import Release
from htf.maps import vector_tiles
from htf.maps.tiles import tile_bounds, tile_contents
from htf.maps.vector_tiles import BUFFER, EXTENT, STEPS, encode_layer
from serving import BOUNDS, tiles_over
from support import require_module

MEDIA = "application/vnd.mapbox-vector-tile"


def read(tile: bytes, path: Path) -> Any:
    """A tile as GDAL has it, in its own units with y upwards."""
    pyogrio = require_module("pyogrio", "geo")
    path.write_bytes(tile)
    found = pyogrio.read_dataframe(f"MVT:{path}", CLIP="NO")
    flipped = shapely.transform(
        found.geometry.to_numpy(), lambda xy: [[x, EXTENT - y] for x, y in xy]
    )
    return found.set_geometry(flipped)


def get(api: httpx.Client, name: str, place: tuple[int, ...], query: str = "") -> httpx.Response:
    answer = api.get(f"/api/releases/{name}/tiles/{'/'.join(map(str, place))}.mvt{query}")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == MEDIA
    return answer


def boxes_of(layer: Any) -> Any:
    low = layer[["west", "south"]].to_numpy()
    return np.column_stack([low, low + layer[["width", "height"]].to_numpy()])


@pytest.mark.parametrize(
    ("name", "z", "query", "where"),
    [
        ("city", 9, "", {}),
        ("city", 12, "", {}),
        ("hours", 10, "?where=hour=7:10", {"hour": (7, 10)}),
        ("seeded", 10, "", {}),
    ],
)
def test_they_say_what_the_release_does(
    api: httpx.Client,
    releases: dict[str, Release],
    tmp_path: Path,
    name: str,
    z: int,
    query: str,
    where: Any,
) -> None:
    release = releases[name]
    for place in tiles_over(BOUNDS, z)[:4]:
        layer = read(get(api, name, place, query).content, tmp_path / "tile.mvt")
        inside = tile_contents(release, tile_bounds(*place), where)  # without the buffer
        assert inside is not None
        assert inside.area is not None
        assert len(inside) <= len(layer) <= 1.4 * len(inside) + 4
        exact = release.count(boxes_of(layer), where or None)
        for column in ("count", "low", "high", "std_error"):
            if column in layer:  # of leaves; squares have a count only
                error = np.abs(layer[column] - getattr(exact, column))
                assert (error <= exact.std_error / STEPS / 2 + 1e-6 * exact.count).all()
        assert ("low" in layer) == (name != "hours")
        assert (layer["clear"].to_numpy() == (exact.low > 0)).all()
        known = inside.columns["count"] / inside.area
        densities = dict(zip(map(tuple, inside.boxes.round(9)), known.tolist(), strict=True))
        for row, count, error, density in zip(
            np.round(boxes_of(layer), 9),
            exact.count,
            exact.std_error,
            layer["density"],
            strict=True,
        ):
            right = densities.get(tuple(row), 0)
            if right > 0:
                allowed = right * error / count / STEPS / 2
                assert abs(density - right) <= allowed + 1e-6 * right
        assert densities.keys() <= {*map(tuple, np.round(boxes_of(layer), 9))}
        assert ("not_private" in layer) == (name == "seeded")


def on_map(layer: Any, place: tuple[int, int, int]) -> Any:
    """Shapes in degrees."""
    z, x, y = place

    def there(units: Any) -> Any:
        across, down = (units / EXTENT + [x, y]).T / 2**z
        latitude = np.degrees(np.arctan(np.sinh(np.pi * (1 - 2 * down))))
        return np.column_stack([across * 360 - 180, latitude])

    return shapely.transform(layer.geometry.to_numpy(), there)


@pytest.mark.parametrize("name", ["city", "metres"])
def test_neighbouring_tiles_join(
    api: httpx.Client, releases: dict[str, Release], tmp_path: Path, name: str
) -> None:
    """Each covers its tile and a little more, and each shape is its box up to a unit of the tile."""
    bounds = api.get(f"/api/releases/{name}").json()["bounds84"]
    places = tiles_over(bounds, 10 if name == "city" else 13)
    window = shapely.box(-BUFFER, -BUFFER, EXTENT + BUFFER, EXTENT + BUFFER)
    covered = []
    for place in places:
        body = get(api, name, place).content
        if not body:
            continue
        layer = read(body, tmp_path / "tile.mvt")
        assert window.covers(layer.geometry.to_numpy()).all()
        assert layer.geometry.is_valid.all()
        exact = releases[name].count(boxes_of(layer))
        assert np.allclose(layer["count"], exact.count, atol=float(exact.std_error.max()) / STEPS)
        covered += [one.buffer(1e-9) for one in on_map(layer, place)]
    domain = releases[name].domain
    x, y = domain.axes[:2]
    outline = shapely.segmentize(shapely.box(x.low, y.low, x.high, y.high), (x.high - x.low) / 64)
    if name == "metres":
        import pyproj

        there = pyproj.Transformer.from_crs(domain.crs, "OGC:CRS84", always_xy=True)
        outline = shapely.transform(
            outline, lambda xy: np.column_stack(there.transform(xy[:, 0], xy[:, 1]))
        )
    missing = outline.difference(shapely.union_all(covered))
    unit = 360 / 2 ** places[0][0] / EXTENT
    assert missing.area < outline.length * unit
    assert shapely.union_all(covered).difference(outline).area < outline.length * unit


def test_squares_where_leaves_are_many(
    releases: dict[str, Release], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("htf.maps.tiles.MOST_LEAVES", 10)
    place = tiles_over(BOUNDS, 10)[1]
    plain = vector_tiles.vector_tile(releases["city"], place, {}, intervals=False)
    layer = read(plain, tmp_path / "tile.mvt")
    assert "low" not in layer
    full = read(vector_tiles.vector_tile(releases["city"], place, {}), tmp_path / "tile.mvt")
    exact = releases["city"].count(boxes_of(full))
    assert np.allclose(full["high"], exact.high, atol=float(exact.std_error.max()) / STEPS)
    assert (full["count"] == layer["count"]).all()
    assert (full["low"] <= full["count"]).all()


def test_a_leaf_smaller_than_a_unit_stays(releases: dict[str, Release], tmp_path: Path) -> None:
    release = releases["city"]
    layer = read(vector_tiles.vector_tile(release, (0, 0, 0), {}), tmp_path / "tile.mvt")
    assert len(layer) == len(release)
    assert (layer.geometry.area >= 1).all()


def test_numbers_of_all_lengths(tmp_path: Path) -> None:
    """Far corners, many of them, and values that differ in every feature: varints of one to five bytes."""
    generator = np.random.default_rng(4)
    sides = generator.integers(3, 300, 40)
    rings, starts = [], [0]
    for side in sides:
        turn = np.sort(generator.uniform(0, 2 * np.pi, side))
        size = generator.choice([9000, 700_000, 50_000_000])
        rings.append(np.round(size * np.column_stack([np.cos(turn), np.sin(turn)])).astype(int))
        starts.append(starts[-1] + int(side))
    columns: dict[str, Any] = {
        "number": generator.normal(size=40),
        "short": generator.normal(size=40).astype(np.float32),
        "is": generator.uniform(size=40) < 0.5,
    }
    layer = read(
        encode_layer("any", np.concatenate(rings), np.array(starts), columns), tmp_path / "tile.mvt"
    )
    for name, column in columns.items():
        assert (layer[name].to_numpy() == column).all()
    for shape, ring in zip(layer.geometry, rings, strict=True):
        assert shape.equals(shapely.Polygon(ring))


def test_empty_ones_and_those_that_there_are_not(api: httpx.Client) -> None:
    assert get(api, "city", (11, 0, 0)).content == b""
    for path, status in (
        ("city/tiles/3/8/0.mvt", 404),
        ("nowhere/tiles/3/1/0.mvt", 404),
        ("hours/tiles/3/1/0.mvt?where=x=-30:-29.9", 400),
        ("hours/tiles/3/1/0.mvt?where=minute=0:1", 422),
    ):
        assert api.get(f"/api/releases/{path}").status_code == status


def test_they_are_cached_and_compressed(api: httpx.Client) -> None:
    place = tiles_over(BOUNDS, 11)[4]
    first = get(api, "city", place)
    assert first.headers["content-encoding"] == "gzip"
    path = f"/api/releases/city/tiles/{'/'.join(map(str, place))}"
    again = api.get(f"{path}.mvt", headers={"If-None-Match": first.headers["etag"]})
    assert again.status_code == 304


def test_rounding_stays_below_the_noise() -> None:
    generator = np.random.default_rng(2)
    error = np.exp(generator.normal(size=1000, scale=5))
    values = np.exp(generator.normal(size=1000, scale=5))
    rounded = vector_tiles._by_error(values, error)
    assert (np.abs(rounded - values) <= error / STEPS / 2 + 1e-7 * values).all()
    exact = vector_tiles._by_error(values, np.zeros(1000))
    assert (exact == values.astype(np.float32)).all()
    assert not np.signbit(vector_tiles._by_error(np.array([-0.001]), np.array([5.0]))).any()


def test_what_a_tile_holds_is_what_reaches_into_it(releases: dict[str, Release]) -> None:
    assert tile_contents(releases["city"], (0.0, 0.0, 1.0, 1.0), {}) is None
    found = tile_contents(releases["city"], (-30.01, 39.99, -30.0, 40.0), {})
    assert found is not None
    assert (found.boxes[:, 0] < -30.0).all()
    assert (found.boxes[:, 2] > -30.01).all()
