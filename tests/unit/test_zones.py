"""Layers of zones tile the map: areas and counts add up, anywhere on the globe."""

from __future__ import annotations

import sys
from typing import Any

import h3
import numpy as np
import pytest
import shapely

from htf import Domain, FrequencyMatrix, InputError, Release, publish
from htf.errors import MissingExtraError
from htf.query.question import Question
from htf.query.tilings import Tiling, grid_zones, h3_zones
from support import grid

CITY = Domain.from_bounds(-30.176, 39.865, -29.824, 40.135, cells=64)
MAPS = {
    "a city": (CITY, 8),
    "smaller than a cell": (CITY, 2),
    "long and thin": (Domain.from_bounds(-30.2, 39.99, -27.2, 39.991, cells=64), 7),
    "the world": (Domain.from_bounds(-180, -90, 180, 90, cells=64), 1),
    "the world, finer": (Domain.from_bounds(-180, -90, 180, 90, cells=64), 2),
    "up to the antimeridian": (Domain.from_bounds(165, -20, 180, -10, cells=64), 4),
    "in metres": (Domain.from_bounds(490e3, 4.40e6, 530e3, 4.44e6, cells=64, crs="EPSG:32625"), 6),
    "the north pole": (Domain.from_bounds(-1e6, -1e6, 1e6, 1e6, cells=64, crs="EPSG:3995"), 2),
    "across the antimeridian": (
        Domain.from_bounds(1.0e6, 4.7e6, 2.6e6, 6.3e6, cells=64, crs="EPSG:2193"), 3,
    ),
}  # fmt: skip


def released(domain: Domain) -> Release:
    cells = np.random.default_rng(3).normal(32, 12, (2, 20_000)).astype(np.int64) % 64
    return publish(FrequencyMatrix.from_cells(domain, cells), "1", "htf", noise="seeded:1")


def assert_tiles(domain: Domain, zones: Tiling) -> None:
    x, y = domain.axes
    outline = shapely.box(x.low, y.low, x.high, y.high)
    areas = shapely.area(zones.geometries)
    assert np.all(areas > 0)
    assert np.all(shapely.is_valid(zones.geometries))
    assert areas.sum() == pytest.approx(outline.area, rel=1e-9)
    left = shapely.difference(outline, shapely.union_all(zones.geometries))
    assert left.area < 1e-9 * outline.area
    assert len(set(zones.labels)) == len(zones.labels) == len(zones.geometries)
    release = released(domain)
    layer = release.ask(Question.polygons(zones)).to_geopandas()
    assert layer["count"].sum() == pytest.approx(release.estimates.sum(), rel=1e-9)
    assert layer["inside"].to_numpy() == pytest.approx(1.0)
    assert layer.crs == domain.crs


@pytest.mark.parametrize("name", MAPS)
def test_h3_cells_tile_the_map(name: str) -> None:
    domain, resolution = MAPS[name]
    zones = h3_zones(domain, resolution)
    assert_tiles(domain, zones)
    assert all(h3.get_resolution(label) == resolution for label in zones.labels)


def test_all_cells_of_the_world_are_found() -> None:
    found = h3_zones(MAPS["the world"][0], 1).labels
    assert found == sorted(c for r in h3.get_res0_cells() for c in h3.cell_to_children(r, 1))


def test_h3_cells_are_where_h3_says() -> None:
    """Points fall in the zone of the cell that h3 itself gives them."""
    zones = h3_zones(CITY, 7)
    random = np.random.default_rng(6)
    x, y = (random.uniform(axis.low, axis.high, 500) for axis in CITY.axes)
    tree = shapely.STRtree(zones.geometries)
    point, zone = tree.query(shapely.points(x, y), predicate="intersects")
    own = [h3.latlng_to_cell(y[p], x[p], 7) for p in point]
    same = np.array([zones.labels[z] == cell for z, cell in zip(zone, own, strict=True)])
    assert same.mean() > 0.99  # edges are great circles to h3, and straight in degrees here


@pytest.mark.parametrize(
    ("options", "number"),
    [
        ({"width": 0.1}, 4 * 3),
        ({"width": 0.1, "height": 0.27}, 4),
        ({"width": 0.352 / 8, "height": 0.27 / 3}, 24),
        ({"columns": 7, "rows": 3}, 21),
        ({"rows": 5}, 25),
        ({"width": 10}, 1),
    ],
)
def test_grids_tile_the_map(options: dict[str, Any], number: int) -> None:
    zones = grid_zones(CITY, **options)
    assert len(zones.labels) == number
    assert_tiles(CITY, zones)


def test_labels_of_a_grid_count_from_the_south_west() -> None:
    zones = grid_zones(grid(6, 4), 2)
    assert zones.labels == ["1-1", "2-1", "3-1", "1-2", "2-2", "3-2"]
    assert zones.geometries[1].bounds == (2, 0, 4, 2)
    assert zones.geometries[3].bounds == (0, 2, 2, 4)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: grid_zones(CITY), "either a width and height"),
        (lambda: grid_zones(CITY, 0.1, columns=3), "either a width and height"),
        (lambda: grid_zones(CITY, -1), "must be positive, got -1"),
        (lambda: grid_zones(CITY, np.nan), "must be a finite number, got nan"),
        (lambda: grid_zones(CITY, columns=0), "whole numbers of columns and rows, got 0"),
        (lambda: grid_zones(CITY, 1e-9), "at most 1,000,000"),
        (lambda: grid_zones(CITY, columns=2000), "about 4,000,000 zones"),
        (lambda: grid_zones(grid(5), 1), "need a map with axes x and y"),
        (lambda: h3_zones(CITY, 16), "resolutions from 0 to 15, got 16"),
        (lambda: h3_zones(CITY, 13), "at most 1,000,000"),
        (lambda: h3_zones(grid(5, 5), 3), "no reference system"),
    ],
)
def test_mistakes_are_named(make: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        make()


def test_without_h3_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "h3", None)
    with pytest.raises(MissingExtraError, match=r"htf-dp\[geo\]"):
        h3_zones(CITY, 5)
