"""Points are put into zones exactly: one zone for every point of a tiling, edges and corners included; and the same
zones as by fractions, whatever the outlines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from htf.frame import zone_index as index_module
from htf.frame.domain import FloatArray
from htf.frame.zone_index import find_cells, zone_index
from htf.frame.zone_kernels import TINY, exact_side, is_left
from support import exact_zone
from telling import examples

SCALES = [1.0, 1e-3, 5e6, 1e-12]
SHIFTS = [0.0, 0.1, 5e6, -118.25]


def found_in(shapes: Sequence[shapely.Geometry], points: FloatArray) -> FloatArray:
    return find_cells(tuple(shapely.to_wkb(list(shapes))), False, points[:, 0], points[:, 1])


def hard_points(shapes: Sequence[shapely.Geometry], draw: np.random.Generator) -> FloatArray:
    """Corners, points on edges or as near as doubles come, their neighbours, and points anywhere."""
    corners = shapely.get_coordinates(list(shapes))
    ends = corners[draw.integers(len(corners), size=(60, 2))]
    ring = draw.integers(len(corners) - 1, size=60)
    along = corners[ring] + draw.random((60, 1)) * (corners[ring + 1] - corners[ring])
    middle = (corners[ring] + corners[ring + 1]) / 2
    mixed = np.column_stack([ends[:, 0, 0], ends[:, 1, 1]])  # at the height of some corners
    low, high = corners.min(axis=0), corners.max(axis=0)
    anywhere = draw.uniform(low - (high - low) / 10, high + (high - low) / 10, (60, 2))
    near = np.concatenate([corners, along, middle, mixed])
    beside = [
        np.nextafter(near, near + direction) for direction in ([1, 0], [-1, 0], [0, 1], [0, -1])
    ]
    return np.concatenate([near, anywhere, *beside])


@st.composite
def tilings(draw: st.DrawFn) -> tuple[list[shapely.Geometry], np.random.Generator]:
    """Triangles or Voronoi cells, with corners on a coarse grid or anywhere, near 0 or far away from it."""
    seed, number = draw(st.integers(0, 2**32)), draw(st.integers(4, 25))
    generator = np.random.default_rng(seed)
    on_grid, of_triangles = draw(st.booleans()), draw(st.booleans())
    places = generator.integers(0, 7, (number, 2)) if on_grid else generator.random((number, 2))
    scale, shift = draw(st.sampled_from(SCALES)), draw(st.sampled_from(SHIFTS))
    if scale < 1e-6:
        shift = 0.0
    sites = shapely.MultiPoint(np.unique(places.astype(float), axis=0))
    make = shapely.delaunay_triangles if of_triangles else shapely.voronoi_polygons
    parts = shapely.get_parts(make(sites))
    moved = shapely.transform(parts, lambda corners: corners * scale + shift)
    return list(moved), generator


@examples(60)
@given(tilings())
def test_every_point_of_a_tiling_is_in_exactly_one_zone(
    tiling: tuple[list[shapely.Geometry], np.random.Generator],
) -> None:
    shapes, generator = tiling
    if not shapes:
        return
    points = hard_points(shapes, generator)
    each = np.array([found_in([shape], points) == 0 for shape in shapes])
    inside_all = found_in([shapely.union_all(shapes).convex_hull], points) == 0
    assert each.sum(axis=0).max() <= 1
    first = found_in(shapes, points)
    assert np.array_equal(np.isnan(first), each.sum(axis=0) == 0)
    there = ~np.isnan(first)
    assert np.all(each[first[there].astype(int), np.flatnonzero(there)])
    # Of a point deep inside, rounding of the outermost corners cannot matter.
    hull = shapely.union_all(shapes).convex_hull
    deep = shapely.distance(shapely.boundary(hull), shapely.points(points)) > 1e-6 * math.sqrt(
        hull.area
    )
    assert np.array_equal((each.sum(axis=0) == 1)[deep], inside_all[deep])


@examples(60)
@given(tilings())
def test_zones_are_those_of_exact_arithmetic(
    tiling: tuple[list[shapely.Geometry], np.random.Generator],
) -> None:
    shapes, generator = tiling
    if not shapes:
        return
    points = hard_points(shapes[:4], generator)
    shape = shapely.MultiPolygon(shapes[:4:2])
    found = found_in([shape], points) == 0
    wanted = [exact_zone(shape, x, y) for x, y in points.tolist()]
    assert found.tolist() == wanted


@examples(300)
@given(
    st.lists(
        st.one_of(
            st.sampled_from([0.0, 1.0, 0.1, 0.3, 5e6, 5e6 + 0.1, 2.0**-60, 1e-100, 1e80, -118.25]),
            st.floats(-1e80, 1e80).map(lambda v: 0.0 if abs(v) < TINY else v),
            st.floats(-1, 1).map(lambda v: 0.0 if abs(v) < TINY else v),
        ),
        min_size=6,
        max_size=6,
    )
)
def test_the_side_of_an_edge_is_exact(numbers: list[float]) -> None:
    x1, y1, x2, y2, x, y = map(Fraction, numbers)
    side = (x2 - x1) * (y - y1) - (y2 - y1) * (x - x1)
    assert exact_side(*numbers) == (side > 0) - (side < 0)
    if y1 <= y < y2:
        assert is_left(*numbers) == (side > 0)


@given(st.integers(0, 2**32), st.floats(0, 1), st.integers(-3, 3))
def test_points_near_a_line_are_on_the_right_side(seed: int, share: float, steps: int) -> None:
    """Doubles alone would err for many of them."""
    draw = np.random.default_rng(seed)
    x1, x2 = draw.uniform(5e6, 5e6 + 1, 2).tolist()
    y1, y2 = sorted(draw.uniform(5e6, 5e6 + 1, 2).tolist())
    x, y = x1 + share * (x2 - x1), y1 + share * (y2 - y1)
    for _ in range(abs(steps)):
        x = math.nextafter(x, math.copysign(math.inf, steps))
    edge = [Fraction(v) for v in (x1, y1, x2, y2, x, y)]
    side = (edge[2] - edge[0]) * (edge[5] - edge[1]) - (edge[3] - edge[1]) * (edge[4] - edge[0])
    if y1 <= y < y2:
        assert is_left(x1, y1, x2, y2, x, y) == (side > 0)


def test_holes_and_several_parts() -> None:
    ring = shapely.box(0, 0, 10, 10).difference(shapely.box(3, 3, 7, 7))
    lake = shapely.MultiPolygon([shapely.box(4, 4, 5, 5), shapely.box(20, 0, 21, 1)])
    points = np.array(
        [[1, 1], [4.5, 4.5], [3.5, 3.5], [20.5, 0.5], [15, 5], [3, 3], [7, 7], [10, 5]], float
    )
    assert found_in([ring, lake], points).tolist()[:4] == [
        0,
        1,
        pytest.approx(math.nan, nan_ok=True),
        1,
    ]
    assert np.isnan(found_in([ring, lake], points)).tolist() == [
        False,
        False,
        True,
        False,
        True,
        True,
        False,
        True,
    ]


@pytest.mark.parametrize("lines", [2, 3, 10, 2048])
def test_the_index_changes_nothing(lines: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(7)
    sites = shapely.MultiPoint(draw.random((40, 2)))
    shapes = shapely.segmentize(shapely.get_parts(shapely.voronoi_polygons(sites)), 0.1)
    points = hard_points(list(shapes), draw)
    wanted = found_in(list(shapes), points)
    monkeypatch.setattr(index_module, "MOST_LINES", lines)
    zone_index.cache_clear()
    assert np.array_equal(found_in(list(shapes), points), wanted, equal_nan=True)
    zone_index.cache_clear()


def test_an_index_that_would_be_too_large_is_made_coarser(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = [shapely.box(n, 0, n + 1, 100).segmentize(0.5) for n in range(20)]
    points = np.random.default_rng(0).uniform(0, (20, 100), (500, 2))
    wanted = np.floor(points[:, 0])
    monkeypatch.setattr(index_module, "MOST_ENTRIES", 9000)
    zone_index.cache_clear()
    assert np.array_equal(found_in(shapes, points), wanted)
    assert len(zone_index(tuple(shapely.to_wkb(shapes))).edges) <= 9000
    zone_index.cache_clear()


def test_agreement_with_shapely_away_from_edges() -> None:
    draw = np.random.default_rng(3)
    stars = [
        shapely.Polygon(
            np.array([x, y]) + r[:, None] * np.column_stack([np.cos(turn), np.sin(turn)])
        )
        for x, y in draw.uniform(0, 50, (30, 2))
        for turn, r in [(np.linspace(0, 2 * np.pi, 40)[:-1], draw.uniform(0.5, 4, 39))]
    ]
    points = draw.uniform(-5, 55, (20_000, 2))
    inside = shapely.contains_xy(np.array(stars)[:, None], points[:, 0], points[:, 1])
    wanted = np.where(inside.any(axis=0), inside.argmax(axis=0), np.nan)
    assert np.array_equal(found_in(stars, points), wanted, equal_nan=True)


def test_what_is_no_place_is_in_no_zone() -> None:
    """Not elsewhere either."""
    shapes = (shapely.to_wkb(shapely.box(0, 0, 1, 1)), b"")
    odd = [math.nan, math.inf, -math.inf]
    x = np.array([*odd, 0.5, 0.5, 0.5, 0.5, 7.0, 5e-324, -5e-324, 1e308])
    y = np.array([0.5, 0.5, 0.5, *odd, 0.5, 7.0, 0.5, 0.5, -1e308])
    found = find_cells(shapes, True, x, y)
    assert np.isnan(found[:6]).all()
    assert found[6:].tolist() == [0, 1, 0, 0, 1]
