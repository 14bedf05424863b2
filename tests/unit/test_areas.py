"""Areas on the ground, against geodesic polygons of pyproj and plain projections."""

from __future__ import annotations

import numpy as np
import pyproj
import pytest

from htf import Axis, Domain
from htf.frame.areas import square_kilometres
from htf.frame.domain import FloatArray


def of_whole_map(west: float, south: float, east: float, north: float, crs: str | None) -> float:
    domain = Domain((Axis("x", west, east, 4), Axis("y", south, north, 5)), crs)
    cells = np.array([(x, y) for x in range(4) for y in range(5)])
    areas: FloatArray | None = square_kilometres(domain, cells, cells + 1)
    assert areas is not None
    assert areas.shape == (20,)
    whole = square_kilometres(domain, np.array([[0, 0]]), np.array([[4, 5]]))
    assert whole is not None
    assert areas.sum() == pytest.approx(whole[0], rel=1e-9)
    return float(whole[0])


@pytest.mark.parametrize("bounds", [(-30, 40, -29, 41), (10, -70, 30, -60), (0, 0, 90, 90)])
@pytest.mark.parametrize(
    ("crs", "ellipsoid"), [("OGC:CRS84", "WGS84"), ("EPSG:4269", "GRS80"), ("EPSG:4277", "airy")]
)
def test_degrees(bounds: tuple[float, float, float, float], crs: str, ellipsoid: str) -> None:
    west, south, east, north = bounds
    # A parallel is no geodesic, but in small steps it nearly is.
    along = np.linspace(west, east, 20_001)
    x = np.concatenate([along, along[::-1]])
    y = np.concatenate([np.full(20_001, float(south)), np.full(20_001, float(north))])
    expected = abs(pyproj.Geod(ellps=ellipsoid).polygon_area_perimeter(x, y)[0]) / 1e6
    assert of_whole_map(*bounds, crs) == pytest.approx(expected, rel=1e-6)


def test_the_earth() -> None:
    assert of_whole_map(-180, -90, 180, 90, "OGC:CRS84") == pytest.approx(510_065_621.724)


def test_other_units() -> None:
    assert of_whole_map(400_000, 100_000, 410_000, 120_000, "EPSG:27700") == pytest.approx(200)
    feet = of_whole_map(900_000, 100_000, 910_000, 120_000, "EPSG:2263")  # New York, in US feet
    assert feet == pytest.approx(200 * (1200 / 3937) ** 2)


def test_maps_that_do_not_tell() -> None:
    cells = np.zeros((1, 2), dtype=np.int64)
    for crs in (None, "EPSG:4978"):  # nothing, and earth-centred coordinates
        domain = Domain((Axis("x", 0, 4, 4), Axis("y", 0, 4, 4)), crs)
        assert square_kilometres(domain, cells, cells + 1) is None
    line = Domain((Axis("x", 0, 4, 4),), "OGC:CRS84")
    assert square_kilometres(line, cells[:, :1], cells[:, :1] + 1) is None
