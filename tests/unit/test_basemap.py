"""The base map that HTF carries: what is where, how much of it a map gets, and that it stays small."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from htf import Domain, FrequencyMatrix, publish
from htf.maps.basemap import CELLS, FILE, Bounds, Crop, crop, crop_to_size, widened
from htf.maps.browser.base_map import around
from htf.maps.browser.sheets import pack_text

TORONTO: Bounds = (-79.65, 43.57, -79.11, 43.87)
SINGAPORE: Bounds = (103.6, 1.22, 104.05, 1.48)
GREAT_BRITAIN: Bounds = (-8.0, 49.8, 2.0, 61.0)
WORLD: Bounds = (-180.0, -60.0, 180.0, 80.0)


def is_water(part: Crop, x: float, y: float) -> bool:
    """Whether an odd number of edges lies to the east of a place."""
    crossings = 0
    for ring in (ring for polygon in part.water for ring in polygon):
        a, b = ring[:-1], ring[1:]
        spans = (a[:, 1] > y) != (b[:, 1] > y)
        height = np.where(spans, b[:, 1] - a[:, 1], 1.0)
        at = a[:, 0] + (y - a[:, 1]) / height * (b[:, 0] - a[:, 0])
        crossings += int((spans & (at > x)).sum())
    return crossings % 2 == 1


@pytest.mark.parametrize(
    ("bounds", "wet", "dry", "name"),
    [
        (TORONTO, (-79.3, 43.58), (-79.4, 43.75), "Toronto"),
        (SINGAPORE, (103.75, 1.23), (103.82, 1.36), "Singapore"),
        ((-74.26, 40.48, -73.7, 40.92), (-74.05, 40.55), (-73.95, 40.65), "New York"),
        ((-0.52, 51.28, 0.34, 51.7), None, (-0.1, 51.4), "London"),
    ],
)
def test_cities_lie_where_they_are(
    bounds: Bounds, wet: tuple[float, float] | None, dry: tuple[float, float], name: str
) -> None:
    part = crop(bounds)
    assert wet is None or is_water(part, *wet)
    assert not is_water(part, *dry)
    assert name in {one.name for one in part.names}


def test_a_crop_has_the_water_of_the_whole() -> None:
    """Cutting at the edges adds and removes no water."""
    small, large = crop(SINGAPORE), crop(widened(SINGAPORE, 3))
    west, south, east, north = SINGAPORE
    generator = np.random.default_rng(1)
    places = generator.uniform((west, south), (east, north), (200, 2))
    found = [is_water(small, x, y) for x, y in places]
    assert found == [is_water(large, x, y) for x, y in places]
    assert 20 < sum(found) < 180
    corners = np.concatenate([ring for polygon in small.water for ring in polygon])
    assert (corners > np.array([west, south]) - 1e-9).all()
    assert (corners < np.array([east, north]) + 1e-9).all()


def test_coasts_have_no_edges_that_water_was_cut_along() -> None:
    part = crop((100.0, -2.0, 106.0, 7.0))  # across several cells
    for _, line in part.lines["coasts"]:
        at_edge = np.abs(line - np.rint(line / CELLS[0]) * CELLS[0]) < 1e-9
        assert not (at_edge[1:] & at_edge[:-1]).any()


def test_large_maps_are_coarse_and_have_few_names() -> None:
    part = crop_to_size(GREAT_BRITAIN, 4000, 12)
    assert part.level > 0
    assert part.size <= 4000
    assert part.names[0].name == "London"
    assert len(part.names) == 12


def test_a_margin_ends_at_the_edge_of_the_world() -> None:
    assert widened((0.0, 0.0, 2.0, 1.0), 1.0) == (-2.0, -1.0, 4.0, 2.0)
    assert widened((170.0, 80.0, 180.0, 85.0), 2.0) == (150.0, 70.0, 180.0, 90.0)


@pytest.mark.parametrize(
    ("bounds", "most"), [(TORONTO, 40_000), (GREAT_BRITAIN, 120_000), (WORLD, 120_000)]
)
def test_a_file_grows_little(bounds: Bounds, most: int) -> None:
    told = around(bounds)
    assert len(pack_text(json.dumps(told, separators=(",", ":")))) < most
    assert told["names"] == sorted(told["names"], key=lambda row: row[3])


def test_steps_lead_back_to_the_places() -> None:
    told = around(SINGAPORE)
    near = told["parts"][0]
    drawn = Crop(
        (0, 0, 0, 0), 0, [[walked(ring, near["unit"]) for ring in near["water"][0]]], {}, []
    )
    for polygon in near["water"][1:]:
        drawn.water.append([walked(ring, near["unit"]) for ring in polygon])
    assert is_water(drawn, 103.75, 1.23)
    assert not is_water(drawn, 103.82, 1.36)


def walked(steps: list[int], unit: float) -> Any:
    return np.cumsum(np.array(steps).reshape(-1, 2), axis=0) * unit


def test_the_file_stays_small() -> None:
    assert FILE.stat().st_size < 4_200_000


def test_a_picture_has_coasts_and_names() -> None:
    pytest.importorskip("matplotlib")
    release = publish(
        random_matrix(Domain.from_bounds(*SINGAPORE, cells=16)), 1, "ug", noise="seeded:1"
    )
    plain, drawn = release.plot().axes[0], release.plot(basemap=True).axes[0]
    words = {text.get_text() for text in drawn.texts} - {text.get_text() for text in plain.texts}
    assert {"Natural Earth", "Singapore"} <= words
    assert len(drawn.collections) > len(plain.collections)
    assert drawn.get_xlim() == plain.get_xlim()
    assert drawn.get_ylim() == plain.get_ylim()


def random_matrix(domain: Domain) -> FrequencyMatrix:
    return FrequencyMatrix.from_dense(domain, np.random.default_rng(1).poisson(9, domain.shape))


def test_a_map_in_metres_has_the_same_places() -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("pyproj")
    from matplotlib.text import Annotation

    metres = Domain.from_bounds(500_000, 150_000, 564_000, 214_000, 16, crs="EPSG:27700")
    release = publish(random_matrix(metres), 1, "ug", noise="seeded:1")
    ax = release.plot(basemap=True).axes[0]
    found = {text.get_text(): text.xy for text in ax.texts if isinstance(text, Annotation)}
    assert found["London"] == pytest.approx((530_000, 180_000), abs=6_000)


def test_a_map_that_lies_nowhere_has_none() -> None:
    pytest.importorskip("matplotlib")
    nowhere = Domain.from_bounds(0, 0, 16, 16, 16, crs=None)
    ax = publish(random_matrix(nowhere), 1, "ug", noise="seeded:1").plot(basemap=True).axes[0]
    assert "Natural Earth" not in {text.get_text() for text in ax.texts}
