"""Files for GIS tools: reopened with GeoPandas, pyogrio, rasterio and GDAL's own programs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pyogrio
import pytest
import rasterio
import shapely
from pyarrow import csv

from htf import Axis, Domain, FrequencyMatrix, InputError, Names, Release, publish
from htf.curator.noise import SeededNoise
from htf.errors import ReleaseFileError
from htf.export.layers import leaf_columns, leaf_layer, leaves_rule
from htf.export.provenance import provenance
from htf.export.raster import write_raster
from htf.export.vector import WRITERS, write_layer, write_rows
from htf.frame.names import Outlines
from support import city_matrix, grid, people_matrix, read_layer, run_program
from zoning import COUNTS, boxes_with_offences, layer, zoned

BOUNDS = (-30.2, 39.8, -29.8, 40.2)
PLAIN: dict[str, Any] = {
    ".csv": lambda path: csv.read_csv(path).to_pandas(),
    ".xlsx": pandas.read_excel,
}
MAPS = [*WRITERS]
ENDINGS = [*WRITERS, *PLAIN]
BY_GDAL = [".geojson", ".fgb", ".gpkg"]


def release_of(domain: Domain | None = None, mechanism: str = "htf", noise: Any = None) -> Release:
    matrix = city_matrix()
    domain = domain or Domain.from_bounds(*BOUNDS, 64)
    moved = FrequencyMatrix(domain, matrix.exact_coordinates, matrix.exact_counts)
    return publish(moved, 0.5, mechanism, noise=noise or SeededNoise(1))


def in_metres() -> Domain:
    axes = Axis("x", 530_000, 533_200, 64), Axis("y", 180_000, 182_000, 64)
    return Domain(axes, "EPSG:27700")


def with_hours() -> Release:
    generator = np.random.default_rng(7)
    counts = generator.poisson(generator.exponential(20, (16, 8, 24)))
    axes = (Axis("x", *BOUNDS[::2], 16), Axis("y", *BOUNDS[1::2], 8), Axis("hour", 0, 24, 24))
    matrix = FrequencyMatrix.from_dense(Domain(axes, "OGC:CRS84"), counts)
    return publish(matrix, 1, noise=SeededNoise(2))


@pytest.fixture(scope="module")
def release() -> Release:
    return release_of()


def write(release: Release, path: Path, **options: Any) -> Path:
    table, layer = lambda: pa.table(leaf_columns(release)), lambda: leaf_layer(release)
    write_rows(table, layer, path, provenance(release, "a test"), "leaves", **options)
    return path


def read(path: Path) -> geopandas.GeoDataFrame:
    if path.suffix == ".parquet":
        return geopandas.read_parquet(path)
    return read_layer(path)


def sorted_rows(layer: geopandas.GeoDataFrame) -> geopandas.GeoDataFrame:
    """FlatGeobuf orders features along a curve."""
    by = [name for name in layer.columns if name.endswith("_low")]
    return layer.sort_values(by).reset_index(drop=True)


@pytest.mark.parametrize("suffix", MAPS)
def test_layers_come_back_as_they_were(release: Release, tmp_path: Path, suffix: str) -> None:
    layer = sorted_rows(read(write(release, tmp_path / f"city{suffix}")))
    expected = sorted_rows(leaf_layer(release))
    assert len(layer) == len(release)
    assert (layer["counted"] == "records").all()
    for name in expected.columns.drop(["geometry", "counted"]):
        assert np.allclose(layer[name], expected[name], rtol=1e-12, atol=1e-9), name
    apart = shapely.symmetric_difference(layer.geometry.to_numpy(), expected.geometry.to_numpy())
    assert np.all(shapely.area(apart) < 1e-10 * shapely.area(expected.geometry.to_numpy()).max())
    assert layer.crs.to_epsg() == 4326 or layer.crs.to_string() == "OGC:CRS84"
    assert layer["count"].sum() == pytest.approx(release.estimates.sum())
    assert layer.total_bounds == pytest.approx(BOUNDS)


def test_columns_are_what_the_release_answers(release: Release) -> None:
    layer = leaf_layer(release)
    answers = release.count(layer.bounds.to_numpy())
    for name in ("count", "std_error", "low", "high"):
        assert np.allclose(layer[name], getattr(answers, name), atol=1e-6)
    assert np.allclose(layer["count"], release.estimates)
    km2 = layer.to_crs("+proj=laea +lat_0=40 +lon_0=-30").area / 1e6
    assert np.allclose(layer["density"] * km2, layer["count"], rtol=1e-4)
    cover = shapely.union_all(layer.geometry.to_numpy())
    assert cover.area == pytest.approx(0.16)
    assert shapely.area(layer.geometry.to_numpy()).sum() == pytest.approx(0.16)


@pytest.mark.parametrize("suffix", MAPS)
def test_each_file_says_what_it_protects(release: Release, tmp_path: Path, suffix: str) -> None:
    path = write(release, tmp_path / f"city{suffix}")
    if suffix == ".parquet":
        told = json.loads(pq.read_schema(path).metadata[b"htf-export"])
    elif suffix == ".geojson":
        collection = json.loads(path.read_text())
        told = collection["htf-export"]
        assert collection["description"] == release.statement
        assert "crs" not in collection  # RFC 7946 has none
    else:
        metadata = pyogrio.read_info(path, layer=pyogrio.list_layers(path)[0, 0])["layer_metadata"]
        told = json.loads(metadata["htf-export"])
        assert metadata["DESCRIPTION"] == release.statement
    assert told == provenance(release, "a test")
    assert (told["quantity"], told["counted"]) == ("records", "records")
    assert told["private"] is False
    assert told["statement"].startswith("NOT PRIVATE")
    assert told["epsilon"] == "0.5"


@pytest.mark.parametrize("suffix", ENDINGS)
def test_files_of_people_say_people(tmp_path: Path, suffix: str) -> None:
    release = publish(people_matrix(Domain.from_bounds(*BOUNDS, 64)), 1, noise=SeededNoise(1))
    path = write(release, tmp_path / f"people{suffix}")
    layer = PLAIN.get(suffix, read)(path)
    assert (layer["counted"] == "split people").all()
    assert layer["count"].sum() == pytest.approx(release.estimates.sum(), abs=1e-6)
    assert "people per square kilometre" in leaves_rule(release.quantity)
    assert provenance(release, "a test")["quantity"] == "split people"


def test_the_statement_of_a_csv_is_beside_it(release: Release, tmp_path: Path) -> None:
    path = write(release, tmp_path / "city.csv")
    table = csv.read_csv(path)
    expected = leaf_columns(release)
    assert table.column_names == list(expected)
    for name, values in expected.items():
        assert np.array_equal(table[name].to_numpy(), values)
    text = (tmp_path / "city.csv.statement.txt").read_text()
    assert release.statement in text
    assert text.startswith("About city.csv\n\nNOT PRIVATE")


@pytest.mark.parametrize("suffix", BY_GDAL)
def test_gdal_opens_layers(release: Release, tmp_path: Path, suffix: str) -> None:
    path = write(release, tmp_path / f"city{suffix}")
    told = run_program("ogrinfo", "gdal-bin", "-so", "-al", path)
    assert f"Feature Count: {len(release)}" in told
    assert "Geometry: Polygon" in told
    assert 'ID["EPSG",4326]' in told
    assert re.search(r"Extent: \(-30.2\d*, 39.8\d*\) - \(-29.8\d*, 40.2\d*\)", told)
    for name in ("count", "std_error", "low", "high", "density", "x_low", "y_high"):
        assert f"\n{name}: Real" in told
    if suffix != ".fgb":  # shown by GDAL from 3.9 on; pyogrio has it above
        assert "NOT PRIVATE" in told
    assert "Layer name: leaves" in told


@pytest.mark.parametrize("suffix", [*MAPS, ".tif"])
def test_other_reference_systems(tmp_path: Path, suffix: str) -> None:
    release = release_of(in_metres())
    path = tmp_path / f"city{suffix}"
    if suffix == ".tif":
        write_raster(release, path)
        with rasterio.open(path) as file:
            assert file.crs.to_epsg() == 27700
            assert tuple(file.transform)[:6] == pytest.approx((50, 0, 530_000, 0, -31.25, 182_000))
        return
    layer = sorted_rows(read(write(release, path)))
    if suffix == ".geojson":  # always in degrees
        assert layer.total_bounds == pytest.approx([-0.13, 51.50, -0.08, 51.52], abs=0.01)
    else:
        assert layer.crs.to_epsg() == 27700
        assert layer.total_bounds == pytest.approx([530_000, 180_000, 533_200, 182_000])
        assert np.allclose(layer["density"] * layer.area / 1e6, layer["count"])


def test_maps_without_a_reference_system(tmp_path: Path) -> None:
    release = release_of(grid(64, 64))
    layer = read(write(release, tmp_path / "city.gpkg"))
    assert "density" not in layer
    write_raster(release, tmp_path / "city.tif")
    with rasterio.open(tmp_path / "city.tif") as file:
        assert file.crs is None
        assert tuple(file.transform)[:6] == (1, 0, 0, 0, -1, 64)
    with pytest.raises(InputError, match=r"GeoJSON is in longitude.*write \.gpkg or \.csv"):
        write(release, tmp_path / "city.geojson")
    assert not (tmp_path / "city.geojson").exists()


def test_further_axes_are_columns(tmp_path: Path) -> None:
    release = with_hours()
    layer = read(write(release, tmp_path / "city.fgb"))
    assert {"hour_low", "hour_high"} <= set(layer.columns)
    assert layer["count"].sum() == pytest.approx(release.estimates.sum())
    volume = (
        shapely.area(layer.geometry.to_numpy()) * (layer["hour_high"] - layer["hour_low"])
    ).sum()
    assert volume == pytest.approx(0.16 * 24)


def test_a_line_is_no_map() -> None:
    matrix = FrequencyMatrix.from_dense(grid(8), np.arange(8) * 100)
    release = publish(matrix, 1, noise=SeededNoise(1))
    assert list(leaf_columns(release)) == [
        "count",
        "std_error",
        "low",
        "high",
        "x_low",
        "x_high",
        "counted",
    ]
    with pytest.raises(InputError, match=r"has x: export it as \.csv"):
        leaf_layer(release)


NAMES_BY_KIND = {
    "plain": ["tract", "district", "dwellings"],
    "rest": ["tract", "district", "dwellings"],
    "kinds": ["tract", "district", "dwellings", "offence", "group"],
    "trips": ["tract", "district", "dwellings", *(f"dest_zone {n}" for n in ("tract", "district", "dwellings"))],
}  # fmt: skip


@pytest.mark.parametrize("suffix", ENDINGS)
@pytest.mark.parametrize("kind", NAMES_BY_KIND)
def test_zones_keep_their_names(kind: str, suffix: str, tmp_path: Path) -> None:
    """And their levels and attributes, in every format."""
    release, path = zoned(kind), tmp_path / f"zones{suffix}"
    found = PLAIN.get(suffix, read)(write(release, path))
    assert list(found)[: len(NAMES_BY_KIND[kind])] == NAMES_BY_KIND[kind]
    by_low = found.sort_values([name for name in found if name.endswith("_low")])
    first = by_low.iloc[0]
    assert list(first[["tract", "district", "dwellings"]]) == ["Tract 01", "District 1", 0]
    last = by_low.iloc[-1]
    assert last["district" if kind == "rest" else "tract"] == (
        "elsewhere" if kind == "rest" else "Tract 12"
    )
    total = release.count().count[0]
    assert found["count"].sum() == pytest.approx(total)
    if kind == "trips":
        assert last["dest_zone tract"] == "Tract 12"
    if suffix in MAPS:
        shapes = {"trips": {"LineString"}}.get(kind, {"Polygon", "MultiPolygon"})
        assert set(found.geom_type[~found.is_empty].dropna()) <= shapes


def test_names_of_leaves_that_hold_several_zones() -> None:
    release = publish(
        FrequencyMatrix.from_dense(zoned().domain, COUNTS), 1, "uniform", noise="seeded:1"
    )
    columns = leaf_columns(release)
    assert columns["tract"].to_pylist() == ["Tract 01 … Tract 12"]
    assert columns["dwellings"].to_pylist() == [None]
    (shape,) = leaf_layer(release).geometry
    assert shape.area == pytest.approx(0.12)


def test_a_column_of_the_layer_that_is_called_as_the_answer() -> None:
    outlines = layer().outlines
    assert outlines is not None
    given = Outlines(outlines.shapes, (("Count", tuple(range(12))),))
    axis = Axis.named("zone", Names.of({"tract": [f"t{n}" for n in range(12)]}, outlines=given))
    matrix = FrequencyMatrix.from_dense(Domain((axis,), "OGC:CRS84"), COUNTS)
    release = publish(matrix, 1, "singular", noise="seeded:1")
    assert leaf_columns(release)["given_Count"].to_pylist() == list(range(12))
    assert release.table()["given_Count"].to_pylist() == list(range(12))


def test_categories_of_a_map_have_names() -> None:
    layer = leaf_layer(boxes_with_offences())
    assert set(zip(layer["offence"], layer["group"], strict=True)) == {
        ("Assault", "Violent"),
        ("Robbery", "Violent"),
        ("Theft", "Property"),
    }


def test_trips_to_the_rest_have_no_line(tmp_path: Path) -> None:
    names = layer("elsewhere")
    domain = Domain((Axis.named("zone", names), Axis.named("dest_zone", names)), "OGC:CRS84")
    matrix = FrequencyMatrix.from_dense(domain, np.full(domain.shape, 50))
    release = publish(matrix, 1, "hb", noise="seeded:1")
    for suffix in MAPS:
        found = read(write(release, tmp_path / f"trips{suffix}"))
        is_line = (found["tract"] != "elsewhere") & (found["dest_zone tract"] != "elsewhere")
        assert len(found) == 13 * 13
        assert (found.geom_type == "LineString")[is_line].all()
        assert (found.geometry.isna() | found.is_empty)[~is_line].all()


def test_a_layer_of_any_polygons(release: Release, tmp_path: Path) -> None:
    """Such as zones: other columns, text among them, and other shapes."""
    shapes = [shapely.Point(-30, 40).buffer(0.1), shapely.MultiPolygon([shapely.box(0, 0, 1, 1)])]
    layer = geopandas.GeoDataFrame(
        {"zone": ["a", "b"], "count": [1.5, 2]}, geometry=shapes, crs=4326
    )
    for suffix in WRITERS:
        path = tmp_path / f"zones{suffix}"
        write_layer(layer, path, provenance(release, "zones"), "zones")
        assert sorted(read(path)["zone"]) == ["a", "b"]


def test_a_layer_is_no_release(release: Release, tmp_path: Path) -> None:
    path = write(release, tmp_path / "layer.parquet")
    with pytest.raises(ReleaseFileError, match="but not a release"):
        Release.load(path)


def test_other_endings_are_refused(release: Release, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"'city.shp': the name must end in one of .*\.gpkg"):
        write_layer(leaf_layer(release), tmp_path / "city.shp", {})
    assert list(tmp_path.iterdir()) == []


def test_files_are_replaced_whole(release: Release, tmp_path: Path) -> None:
    for suffix in ENDINGS:
        path = tmp_path / f"city{suffix}"
        path.write_text("an older file")
        with pytest.raises(InputError, match="it already exists"):
            write(release, path)
        write(release, path, overwrite=True)
    write_raster(release, tmp_path / "city.tif")
    names = {f"city{suffix}" for suffix in [*ENDINGS, ".tif"]} | {"city.csv.statement.txt"}
    assert {path.name for path in tmp_path.iterdir()} == names


def by_asking(release: Release, rows: int, columns: int, **where: Any) -> Any:
    """What `count` says of each pixel, from the north west corner on."""
    west, south, east, north = BOUNDS
    x, y = np.linspace(west, east, columns + 1), np.linspace(north, south, rows + 1)
    boxes = [[x[j], y[i + 1], x[j + 1], y[i]] for i in range(rows) for j in range(columns)]
    return release.count(boxes, **where).count.reshape(rows, columns)


@pytest.mark.parametrize("pixels", [64, 10, 1])
@pytest.mark.parametrize("mechanism", ["htf", "htf-paper"])
def test_pixels_hold_what_the_release_answers(tmp_path: Path, mechanism: str, pixels: int) -> None:
    release = release_of(mechanism=mechanism)
    write_raster(release, tmp_path / "city.tif", pixels)
    with rasterio.open(tmp_path / "city.tif") as file:
        counts = file.read(1)
    assert counts.shape == (pixels, pixels)
    assert np.allclose(counts, by_asking(release, pixels, pixels), rtol=1e-6, atol=1e-6)
    assert counts.sum(dtype=float) == pytest.approx(release.estimates.sum(), rel=1e-6)


def test_rasters_sum_or_cut_further_axes(tmp_path: Path) -> None:
    release = with_hours()
    for where in (None, {"hour": (7, 10.5)}):
        write_raster(release, tmp_path / "city.tif", where=where, overwrite=True)
        with rasterio.open(tmp_path / "city.tif") as file:
            assert file.shape == (8, 16)
            expected = by_asking(release, 8, 16, where=where)
            assert np.allclose(file.read(1), expected, rtol=1e-6, atol=1e-6)
            rule = json.loads(file.tags()["htf-export"])["rule"]
        assert ("hour 7 to 10.5" in rule) == (where is not None)


def test_nothing_is_exactly_nothing(tmp_path: Path) -> None:
    counts = np.zeros((64, 64), dtype=np.int64)
    counts[:8, :8] = 10_000
    domain = Domain.from_bounds(*BOUNDS, 64)
    release = publish(FrequencyMatrix.from_dense(domain, counts), 1, noise=SeededNoise(1))
    write_raster(release, tmp_path / "city.tif")
    with rasterio.open(tmp_path / "city.tif") as file:
        found = file.read(1)
    assert np.mean(found == 0) > 0.5
    assert found[-1, 0] > 9000  # the south-west corner is the last row's first pixel
    assert found[0, -1] < 100


def test_a_raster_of_people_says_people(tmp_path: Path) -> None:
    release = publish(people_matrix(Domain.from_bounds(*BOUNDS, 64)), 1, noise=SeededNoise(1))
    write_raster(release, tmp_path / "people.tif")
    with rasterio.open(tmp_path / "people.tif") as file:
        assert file.tags(1)["units"] == "split people per pixel"
        told = json.loads(file.tags()["htf-export"])
        assert file.read(1).sum() == pytest.approx(release.estimates.sum(), rel=1e-4)
    assert told["rule"].startswith("Expected split people of each pixel")
    assert told["counted"] == "split people"


def test_the_raster_is_cloud_optimised_and_says_what_it_is(tmp_path: Path) -> None:
    release = release_of(Domain.from_bounds(*BOUNDS, 2048))
    path = tmp_path / "city.tif"
    assert write_raster(release, path).domain.shape == (1024, 1024)
    with rasterio.open(path) as file:
        assert file.tags(ns="IMAGE_STRUCTURE")["LAYOUT"] == "COG"
        assert file.overviews(1) == [2]
        assert np.isnan(file.nodata)
        assert file.descriptions == ("count",)
        assert file.tags(1)["units"] == "records per pixel"
        tags = file.tags()
    assert tags["TIFFTAG_IMAGEDESCRIPTION"] == release.statement
    assert json.loads(tags["htf-export"])["epsilon"] == "0.5"
    told = json.loads(run_program("gdalinfo", "gdal-bin", "-json", path))
    assert told["metadata"]["IMAGE_STRUCTURE"]["LAYOUT"] == "COG"
    assert told["size"] == [1024, 1024]
    assert told["metadata"][""]["TIFFTAG_IMAGEDESCRIPTION"].startswith("NOT PRIVATE")
    assert 'ID["EPSG",4326]' in told["coordinateSystem"]["wkt"]
    corners = told["cornerCoordinates"]
    assert [*corners["lowerLeft"], *corners["upperRight"]] == pytest.approx(BOUNDS)
    assert told["bands"][0]["noDataValue"] == "NaN"
