"""The invented city: the same for the same seed, and shaped as a city is."""

from __future__ import annotations

import math

import numpy as np
import pytest

from htf.errors import InputError
from htf.frame.domain import Domain, FloatArray
from htf.synthetic import city as synthetic
from htf.synthetic.city import CityPoints, is_park, is_water, synthetic_city
from htf.synthetic.trips import synthetic_trips


@pytest.fixture(scope="module")
def city() -> CityPoints:
    return synthetic_city()


def to_km(city: CityPoints) -> tuple[FloatArray, FloatArray]:
    """Kilometres east and north of the south-west corner, by way of the public box alone."""
    west, south, east, north = city.domain_bounds
    return (
        (city.x - west) / (east - west) * synthetic.SIDE_KM,
        (city.y - south) / (north - south) * synthetic.SIDE_KM,
    )


def share_near(city: CityPoints, east: float, north: float, radius: float) -> float:
    x, y = to_km(city)
    return float(np.mean(np.hypot(x - east, y - north) < radius))


def box_middles(bounds: tuple[float, float, float, float], side: int) -> tuple[FloatArray, ...]:
    west, south, east, north = bounds
    fraction = (np.arange(side) + 0.5) / side
    x, y = np.meshgrid(west + fraction * (east - west), south + fraction * (north - south))
    return x.ravel(), y.ravel()


def test_the_same_seed_gives_the_same_points() -> None:
    first, second, other = (synthetic_city(20_000, seed) for seed in (7, 7, 8))
    np.testing.assert_array_equal(first.x, second.x)
    np.testing.assert_array_equal(first.y, second.y)
    assert not np.any(first.x == other.x)


@pytest.mark.parametrize("points", [1, 10_000, 1_000_001])
def test_gives_the_number_of_points_that_is_asked_for(points: int) -> None:
    city = synthetic_city(points)
    assert city.x.shape == city.y.shape == (points,)
    assert city.x.dtype == city.y.dtype == np.float64
    assert np.isfinite(city.x).all()
    assert np.isfinite(city.y).all()


def test_refuses_a_city_without_points() -> None:
    with pytest.raises(InputError, match="points=0"):
        synthetic_city(0)


def test_the_box_is_a_square_in_the_open_ocean(city: CityPoints) -> None:
    square = Domain.square(synthetic.LATITUDE, synthetic.LONGITUDE, synthetic.SIDE_KM)
    west, south, east, north = city.domain_bounds
    x, y = square.axes
    assert (west, south, east, north) == pytest.approx((x.low, y.low, x.high, y.high))
    assert -31 < west < east < -29
    assert 39 < south < north < 41
    inside = (city.x >= west) & (city.x < east) & (city.y >= south) & (city.y < north)
    assert 0.95 < inside.mean() < 1  # the country goes on beyond the box


def test_no_point_is_in_the_water_or_in_a_park(city: CityPoints) -> None:
    assert not is_water(city.x, city.y).any()
    assert not is_park(city.x, city.y).any()


def test_there_is_water_and_there_are_parks(city: CityPoints) -> None:
    x, y = box_middles(city.domain_bounds, 300)
    assert 0.25 < is_water(x, y).mean() < 0.45
    assert 0.02 < is_park(x, y).mean() < 0.10
    west, south, east, north = city.domain_bounds
    corners = is_water(np.array([west, east, west, east]), np.array([south, south, north, north]))
    assert corners.tolist() == [True, True, False, False]


def test_the_sea_is_empty_on_a_map_as_well(city: CityPoints) -> None:
    """Without asking `is_water`: the southern sixth holds points on its islands only."""
    x, y = to_km(city)
    south = y < 5.0
    on_islands = np.zeros(len(x), dtype=bool)
    for island in synthetic.ISLANDS:
        on_islands |= np.hypot(x - island.east, y - island.north) < 1.1 * island.along
    assert south.sum() > 100
    assert np.all(on_islands[south])


def test_about_an_eighth_of_the_cells_hold_points(city: CityPoints) -> None:
    west, south, east, north = city.domain_bounds
    counts, _, _ = np.histogram2d(city.x, city.y, 1024, [[west, east], [south, north]])
    assert 0.10 < np.mean(counts > 0) < 0.15
    assert counts.max() > 100 * np.median(counts[counts > 0])  # a long tail


def test_ten_times_the_points_is_the_same_city() -> None:
    west, south, east, north = synthetic.BOUNDS
    few, many = (
        np.histogram2d(c.x, c.y, 32, [[west, east], [south, north]], density=True)[0]
        for c in (synthetic_city(30_000), synthetic_city(300_000))
    )
    assert np.corrcoef(few.ravel(), many.ravel())[0, 1] > 0.99


@pytest.mark.parametrize("district", synthetic.DISTRICTS[2:6])
def test_streets_concentrate_points(city: CityPoints, district: synthetic._District) -> None:
    """Positions modulo the block peak in the direction of the streets, and in no other."""

    def peak(degrees: float) -> float:
        x, y = to_km(city)
        x, y = x - district.east, y - district.north
        near = np.hypot(x, y) < 2 * district.across
        angle = math.radians(degrees)
        along = x[near] * math.cos(angle) + y[near] * math.sin(angle)
        return float(np.abs(np.mean(np.exp(2j * math.pi * along / district.block))))

    assert peak(district.degrees) > 0.15
    assert peak(district.degrees + 90) > 0.15
    assert peak(district.degrees + 37) < 0.05


def test_roads_concentrate_points(city: CityPoints) -> None:
    """Of twenty strips of fifty metres across the northern road, one stands out."""
    x, y = to_km(city)
    strip = (y > 27.0) & (y < 28.0) & (np.abs(x - 11.0) < 0.5)
    histogram, _ = np.histogram(x[strip], bins=20)
    assert strip.sum() > 500
    assert histogram.max() > 3 * np.median(histogram) + 100


def test_hotspots_are_sharp_and_the_centre_is_the_busiest(city: CityPoints) -> None:
    terminal_east, terminal_north, _, _ = synthetic.SPOTS[0]
    assert share_near(city, terminal_east, terminal_north, 0.15) > 0.01
    assert share_near(city, terminal_east + 0.4, terminal_north, 0.15) < 0.001
    assert share_near(city, 14.0, 12.0, 1.5) > 3 * share_near(city, 19.3, 13.6, 1.5) > 0.04


def test_trips_are_short_and_leave_the_outskirts_in_the_morning() -> None:
    trips, again = synthetic_trips(20_000, seed=3), synthetic_trips(20_000, seed=3)
    for name in ("x", "y", "dest_x", "dest_y", "hour"):
        assert np.array_equal(getattr(trips, name), getattr(again, name))
    assert np.all((trips.hour >= 0) & (trips.hour < 24))
    length = np.hypot((trips.dest_x - trips.x) * 85.3, (trips.dest_y - trips.y) * 111.3)
    anywhere = np.hypot((trips.x[::-1] - trips.x) * 85.3, (trips.y[::-1] - trips.y) * 111.3)
    assert np.median(length) < 0.6 * np.median(anywhere)
    _, south, _, north = trips.domain_bounds
    far = np.abs(trips.y - (south + north) / 2) > 0.3 * (north - south)
    morning = (trips.hour > 6) & (trips.hour < 10)
    assert morning[far].mean() > 1.3 * morning[~far].mean()
