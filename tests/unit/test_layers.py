"""Layers of zones as axes: what is read, in which order, and what is refused."""

from __future__ import annotations

import datetime as dt
import sys
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pandas as pd
import pytest
import shapely

from htf import Axis, Domain, InputError, Names, read_points, read_zones
from htf.errors import MissingExtraError
from htf.frame.zone_index import find_cells
from htf.ingest import layers
from support import counted

SQUARES = [shapely.box(x, y, x + 1, y + 1) for x, y in ((0, 0), (1, 0), (0, 1), (1, 1))]
BERN = 2_600_000, 1_200_000  # a place in Switzerland, in EPSG:2056


def layer(crs: str | None = "EPSG:2056", shapes: Any = None, **columns: Any) -> Any:
    named = {"tract": list("abcd"), "district": ["n", "s", "n", "s"], **columns}
    return geopandas.GeoDataFrame(named, geometry=SQUARES if shapes is None else shapes, crs=crs)


def names_of(axis: Axis) -> Names:
    assert axis.names is not None
    return axis.names


def shapes_of(axis: Axis) -> Any:
    outlines = names_of(axis).outlines
    assert outlines is not None
    return shapely.from_wkb([shape or None for shape in outlines.shapes])


def test_upper_zones_are_ranges_in_order_of_first_appearance() -> None:
    axis = read_zones(layer(city=["x", "y", "x", "y"]), "tract", ["district", "city"])
    names = names_of(axis)
    assert (axis.name, axis.cells, axis.inputs) == ("zone", 4, ("x", "y"))
    assert [level.name for level in names.levels] == ["tract", "district", "city"]
    assert names.levels[0].labels == ("a", "c", "b", "d")
    assert names.levels[1].labels == ("n", "s")
    assert names.range_of("y") == (2, 4)
    assert shapely.equals(shapes_of(axis), np.array(SQUARES)[[0, 2, 1, 3]]).all()
    assert names_of(read_zones(layer(), "tract")).levels[0].labels == ("a", "b", "c", "d")


def test_upper_zones_of_three_levels_stay_together() -> None:
    """Also where a district appears before the city of an earlier one is complete."""
    frame = layer(district=["1", "2", "3", "1"], city=["x", "y", "x", "x"])
    names = names_of(read_zones(frame, "tract", ["district", "city"]))
    assert names.levels[0].labels == ("a", "d", "c", "b")
    assert names.levels[1].labels == ("1", "3", "2")
    assert names.levels[2].labels == ("x", "y")


def test_the_map_is_in_the_reference_system_of_its_zones() -> None:
    assert Domain((read_zones(layer(), "tract"),)).crs == "EPSG:2056"
    assert Domain((read_zones(layer("EPSG:4326"), "tract"),)).crs == "OGC:CRS84"
    assert Domain((read_zones(layer(None), "tract", crs="EPSG:2056"),)).crs == "EPSG:2056"
    with pytest.raises(InputError, match="are in EPSG:2056, but the map is in EPSG:27700"):
        Domain((read_zones(layer(), "tract"),), "EPSG:27700")


def test_attributes_are_plain_values() -> None:
    day = dt.datetime(2020, 1, 2, 3, 4, 5)
    frame = layer(
        people=[1, 2, 3, 4],
        share=[0.5, np.nan, np.inf, 2.0],
        when=pd.Series([day, None, day, day]),
        seen=[True, False, True, None],
        code=pd.array([1, None, 3, 4], dtype="Int64"),
    )
    axis = read_zones(frame, "tract", elsewhere="zone")
    outlines = names_of(axis).outlines
    assert outlines is not None
    assert dict(outlines.attributes) == {
        "tract": (*"abcd", None), "district": ("n", "s", "n", "s", None), "people": (1, 2, 3, 4, None),
        "share": (0.5, None, None, 2.0, None), "when": (day.isoformat(), None, *[day.isoformat()] * 2, None),
        "seen": (True, False, True, None, None), "code": (1, None, 3, 4, None),
    }  # fmt: skip
    assert (names_of(axis).rest, outlines.shapes[-1]) == ("elsewhere", b"")


def test_codes_become_text() -> None:
    frame = layer(tract=[10.0, 20.0, 30.0, 40.0], district=[1, 2, 1, 2])
    names = names_of(read_zones(frame, "tract", ["district"]))
    assert names.levels[0].labels == ("10", "30", "20", "40")
    assert names.levels[1].labels == ("1", "2")


@pytest.mark.parametrize("ending", ["gpkg", "geojson", "shp", "parquet", "geoparquet"])
def test_kinds_of_files(ending: str, tmp_path: Path) -> None:
    frame = layer("EPSG:4326", shapes=[shapely.affinity.scale(one, 0.5, 0.5) for one in SQUARES])
    path = tmp_path / f"zones.{ending}"
    frame.to_parquet(path) if "parquet" in ending else frame.to_file(path)
    axis = read_zones(str(path), "tract", ["district"])
    assert names_of(axis).levels[0].labels == ("a", "c", "b", "d")
    assert Domain((axis,)).crs == "OGC:CRS84"
    assert shapely.equals(shapes_of(axis), frame.geometry.to_numpy()[[0, 2, 1, 3]]).all()


def test_the_one_layer_of_polygons_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "zones.gpkg"
    points = geopandas.GeoDataFrame({"n": [1]}, geometry=[shapely.Point(0, 0)], crs="EPSG:2056")
    points.to_file(path, layer="stations")
    with pytest.raises(InputError, match="has no polygons"):
        read_zones(path, "tract")
    layer().to_file(path, layer="tracts")
    assert read_zones(path, "tract").cells == 4
    layer().to_file(path, layer="districts")
    with pytest.raises(InputError, match=r"several layers of polygons \(tracts, districts\)"):
        read_zones(path, "tract")


REFUSED: dict[str, tuple[Any, str]] = {
    "no zones": (lambda: layer().iloc[:0], "the frame has no zones"),
    "no outline": (lambda: layer(shapes=[*SQUARES[:3], None]), "the zone 'd' has no outline"),
    "empty": (lambda: layer(shapes=[shapely.Polygon(), *SQUARES[1:]]), "the zone 'a' has no outline"),
    "a line": (lambda: layer(shapes=[SQUARES[0].exterior, *SQUARES[1:]]), "the zone 'a' is a LinearRing"),
    "no name": (lambda: layer(tract=["a", None, "c", "d"]), "zone 1 .* has no name in the column 'tract'"),
    "twins": (lambda: layer(tract=list("abca")), "two zones of the frame are named 'a'"),
    "no crs": (lambda: layer(None), "names no reference system: say which it is in with --crs"),
    "overlap": (
        lambda: layer(shapes=[shapely.box(0, 0, 1.5, 1), *SQUARES[1:]]),
        "the zones 'a' and 'b' of the frame overlap, by 50 % of the smaller one",
    ),
    "one in another": (
        lambda: layer(shapes=[shapely.box(0.4, 1.4, 0.5, 1.5), *SQUARES[1:]]),
        "the zones 'a' and 'c' of the frame overlap, by 100 %",
    ),
    "the same twice": (lambda: layer(shapes=[SQUARES[1], *SQUARES[1:]]), "'a' and 'b' .* overlap"),
    "nothing left": (
        lambda: layer(shapes=[shapely.Polygon([(0, 0), (1, 1), (0, 0)]), *SQUARES[1:]]),
        "the outline of the zone 'a' encloses no area",
    ),
    "far away": (
        lambda: layer(shapes=[shapely.Polygon([(0, 0), (1e90, 0), (1, 1)]), *SQUARES[1:]]),
        "the zone 'a' has a corner that is no finite place",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case: str) -> None:
    make, words = REFUSED[case]
    with pytest.raises(InputError, match=words):
        read_zones(make(), "tract")


def test_levels_that_do_not_nest_are_refused() -> None:
    words = "levels must nest, but district 'n' lies in two of city: 'x' and 'z'"
    with pytest.raises(InputError, match=words):
        read_zones(layer(city=["x", "y", "z", "y"]), "tract", ["district", "city"])


def test_wrong_arguments() -> None:
    with pytest.raises(InputError, match="has no column 'ward'; there are 'tract', 'district'"):
        read_zones(layer(), "ward")
    with pytest.raises(InputError, match="a column of its own"):
        read_zones(layer(), "tract", ["tract"])
    with pytest.raises(InputError, match="elsewhere"):
        read_zones(layer(), "tract", elsewhere="keep")
    with pytest.raises(InputError, match="there is no file"):
        read_zones("nowhere.gpkg", "tract")
    with pytest.raises(InputError, match="no reference system"):
        read_zones(layer(), "tract", crs="EPSG:0")
    with pytest.raises(InputError, match="stands twice"):
        read_zones(layer(tract=["a", "b", "c", "elsewhere"]), "tract", elsewhere="zone")


def test_a_file_that_is_no_layer(tmp_path: Path) -> None:
    for name in ("zones.gpkg", "zones.parquet", "zones.geojson"):
        (tmp_path / name).write_text("nonsense")
        with pytest.raises(InputError, match=f"cannot read zones from .*{name}"):
            read_zones(tmp_path / name, "tract")


def test_too_many_zones_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "MOST_NAMES", 4)
    with pytest.raises(InputError, match="has 4 zones: at most 3 are supported"):
        read_zones(layer(), "tract")


def test_without_geopandas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "geopandas", None)
    with pytest.raises(MissingExtraError, match="geo"):
        read_zones("zones.gpkg", "tract")


def test_slivers_belong_to_the_earlier_zone() -> None:
    shapes = [SQUARES[0], shapely.box(0.9995, 0, 2, 1), *SQUARES[2:]]
    for order in ("abcd", "bacd"):
        frame = layer(shapes=shapes).set_index("tract", drop=False).loc[list(order)]
        axis = read_zones(frame, "tract")
        found = find_cells(
            tuple(shapely.to_wkb(shapes_of(axis))), False, np.array([0.9997]), np.array([0.5])
        )
        assert found == 0


def test_outlines_that_cross_themselves_are_repaired() -> None:
    bow_tie = shapely.Polygon([(0, 0), (1, 1), (1, 0), (0, 1)])
    axis = read_zones(layer(shapes=[bow_tie, *SQUARES[1:]]), "tract")
    assert shapely.is_valid(shapes_of(axis)).all()
    points = {"x": [0.1, 0.9, 0.5, 0.5], "y": [0.5, 0.5, 0.1, 0.9]}
    assert counted(read_points(points, Domain((axis,)))) == {(0,): 2}


def test_holes_belong_to_no_zone_or_to_the_one_inside() -> None:
    holed = SQUARES[0].difference(shapely.box(0.4, 0.4, 0.6, 0.6))
    island = shapely.MultiPolygon([shapely.box(0.4, 0.4, 0.6, 0.5), SQUARES[3]])
    axis = read_zones(layer(shapes=[holed, *SQUARES[1:3], island]), "tract")
    points = {"x": [0.5, 0.5, 0.1, 1.5], "y": [0.45, 0.55, 0.1, 1.5]}
    assert counted(read_points(points, Domain((axis,)))) == {(0,): 1, (3,): 2}
    rest = read_zones(layer(shapes=[holed, *SQUARES[1:3], island]), "tract", elsewhere="zone")
    assert counted(read_points(points, Domain((rest,)))) == {(0,): 1, (3,): 2, (4,): 1}


def test_neighbours_share_their_border_in_another_reference_system() -> None:
    """Corners on long edges are the same for both, so no point between them is lost or counted twice."""
    west, south = BERN
    shapes = [
        shapely.Polygon([(west, south), (west + 9e4, south + 3e4), (west, south + 9e4)]),
        shapely.Polygon(
            [(west + 9e4, south + 3e4), (west + 9e4, south + 9e4), (west, south + 9e4)]
        ),
    ]
    frame = geopandas.GeoDataFrame({"tract": ["a", "b"]}, geometry=shapes, crs="EPSG:2056")
    axis = read_zones(frame, "tract", crs="EPSG:4326")
    one, other = shapes_of(axis)
    border = set(map(tuple, shapely.get_coordinates(one).tolist())) & set(
        map(tuple, shapely.get_coordinates(other).tolist())
    )
    assert len(border) > 200
    corners = np.array(sorted(border))
    near = np.concatenate([corners, np.nextafter(corners, np.inf), np.nextafter(corners, -np.inf)])
    inside = near[shapely.distance(shapely.boundary(one.union(other)), shapely.points(near)) > 1e-6]
    each = [find_cells((shapely.to_wkb(one_),), False, *inside.T) == 0 for one_ in (one, other)]
    assert len(inside) > 500
    assert np.array_equal(each[0], ~each[1])


def test_zones_across_the_antimeridian_stay_in_their_own_reference_system() -> None:
    island = shapely.box(-3e5, -3e5, 3e5, 3e5)
    crs = "+proj=laea +lat_0=-17 +lon_0=180"
    frame = geopandas.GeoDataFrame({"tract": ["Fiji"]}, geometry=[island], crs=crs)
    with pytest.raises(InputError, match="'Fiji' crosses the antimeridian"):
        read_zones(frame, "tract", crs="EPSG:4326")
    domain = Domain((read_zones(frame, "tract"),))
    points = {"lon": [179.0, -179.0, 170.0], "lat": [-17.0, -17.5, -17.0]}
    assert counted(read_points(points, domain, crs="EPSG:4326")) == {(0,): 2}
