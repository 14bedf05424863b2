"""`htf export` and `htf sample` as a user meets them."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from htf import Axis, Domain, FrequencyMatrix, Release, publish
from htf.cli.main import run
from htf.curator.noise import SeededNoise, noise_from_text
from support import city_matrix, read_layer

BOUNDS = (-74.3, 40.4, -73.6, 41.0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("export")
    matrix = city_matrix()
    domain = Domain.from_bounds(*BOUNDS, 64)
    moved = FrequencyMatrix(domain, matrix.exact_coordinates, matrix.exact_counts)
    publish(moved, 0.5, noise=noise_from_text("fast")).save(place / "out.parquet")
    publish(moved, 0.5, noise=SeededNoise(1)).save(place / "seeded.parquet")
    axes = (*Domain.from_bounds(*BOUNDS, 8).axes, Axis("hour", 0, 24, 24))
    counts = np.random.default_rng(1).poisson(30, (8, 8, 24))
    hours = FrequencyMatrix.from_dense(Domain(axes, "OGC:CRS84"), counts)
    publish(hours, 0.5, noise=SeededNoise(1)).save(place / "hours.parquet")
    return place


def htf(*arguments: Any) -> int:
    return run([str(argument) for argument in arguments])


@pytest.mark.parametrize(
    "suffix", [".geojson", ".fgb", ".gpkg", ".parquet", ".csv", ".tif", ".TIF"]
)
def test_export(
    folder: Path, tmp_path: Path, suffix: str, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"city{suffix}"
    assert htf("export", folder / "out.parquet", "-o", path) == 0
    told = capfd.readouterr()
    what = "64 x 64 pixels" if suffix.lower() == ".tif" else "leaves"
    assert f"{what}, epsilon 0.5." in " ".join(told.out.split())
    assert told.err == ""
    assert path.stat().st_size > 1000
    assert (tmp_path / "city.csv.statement.txt").exists() == (suffix == ".csv")
    assert htf("export", folder / "seeded.parquet", "-o", path, "--overwrite") == 0
    assert "NOT PRIVATE" in capfd.readouterr().err
    if suffix != ".TIF":
        carried = path.with_name("city.csv.statement.txt") if suffix == ".csv" else path
        assert b"NOT PRIVATE" in carried.read_bytes()


def test_export_of_a_range(folder: Path, tmp_path: Path) -> None:
    import rasterio

    release = Release.load(folder / "hours.parquet")
    for options, expected in (
        ([], release.count([BOUNDS])),
        (["--where", "hour=7:10", "--pixels", 4], release.count([BOUNDS], where={"hour": (7, 10)})),
    ):
        path = tmp_path / f"h{len(options)}.tif"
        assert htf("export", folder / "hours.parquet", "-o", path, *options) == 0
        with rasterio.open(path) as file:
            counts = file.read(1)
        assert counts.shape == ((4, 4) if options else (8, 8))
        assert counts.sum(dtype=float) == pytest.approx(expected.count[0], rel=1e-6)


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_sample(
    folder: Path, tmp_path: Path, suffix: str, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"points{suffix}"
    options = ["-o", path, "--n", 1234, "--seed", 5]
    assert htf("sample", folder / "out.parquet", *options) == 0
    told = capfd.readouterr()
    assert "1,234 synthetic points (lon, lat)" in told.out
    assert "This release is 0.5-differentially private" in told.out
    points = csv.read_csv(path) if suffix == ".csv" else pq.read_table(path)
    expected = Release.load(folder / "out.parquet").sample(1234, seed=5)
    assert points.to_pydict() == expected.to_pydict()
    assert htf("sample", folder / "seeded.parquet", *options, "--overwrite") == 0
    told = capfd.readouterr()
    assert "NOT PRIVATE" in told.out
    assert "NOT PRIVATE" in told.err


def test_a_sample_is_released_again_by_its_default_columns(folder: Path, tmp_path: Path) -> None:
    points, again = tmp_path / "points.parquet", tmp_path / "again.parquet"
    assert htf("sample", folder / "out.parquet", "-o", points) == 0
    bounds = ",".join(map(str, BOUNDS))
    assert (
        htf("release", points, "--bounds", bounds, "--cells", 64, "--epsilon", 2, "-o", again) == 0
    )
    first, second = Release.load(folder / "out.parquet"), Release.load(again)
    assert pq.read_metadata(points).num_rows == round(first.estimates.sum())
    # Noise of scale 1/2 a count: 60 is far out.
    assert abs(second.estimates.sum() - first.estimates.sum()) < 60


def test_an_empty_release_gives_no_points(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    empty = FrequencyMatrix.from_dense(Domain.from_bounds(*BOUNDS, 8), np.zeros((8, 8), dtype=int))
    publish(empty, 1, "uniform", noise=SeededNoise(3)).save(tmp_path / "none.parquet")
    assert Release.load(tmp_path / "none.parquet").estimates.sum() <= 0
    path = tmp_path / "points.parquet"
    assert htf("sample", tmp_path / "none.parquet", "-o", path) == 0
    assert "The release counts no records." in capfd.readouterr().out
    assert pq.read_table(path).to_pydict() == {"lon": [], "lat": []}
    assert json.loads(pq.read_schema(path).metadata[b"htf-sample"])["points"] == 0


def mistakes(folder: Path) -> dict[str, tuple[list[Any], str]]:
    release, out = folder / "out.parquet", folder / "never.tif"
    return {
        "shapefile": (
            ["export", release, "-o", folder / "never.shp"],
            "must end in one of .geojson",
        ),
        "no ending": (["export", release, "-o", folder / "never"], ".csv, .tif"),
        "no folder": (["export", release, "-o", folder / "no" / "a.tif"], "there is no folder"),
        "no release": (["export", folder / "no.parquet", "-o", out], "there is no file"),
        "onto itself": (["export", release, "-o", release, "--overwrite"], "it is also the input"),
        "points onto itself": (
            ["sample", release, "-o", release, "--overwrite"],
            "it is also the input",
        ),
        "no output": (["export", release], "'--output'"),
        "no pixels": (["export", release, "-o", out, "--pixels", "0"], "0 is not in the range"),
        "pixels of polygons": (
            ["export", release, "-o", folder / "never.gpkg", "--pixels", "9"],
            "--pixels is for .tif",
        ),
        "no such axis": (["export", release, "-o", out, "--where", "hour=7:10"], "no axis 'hour'"),
        "half a range": (["export", release, "-o", out, "--where", "x=7"], "got 'x=7'"),
        "points of a map": (["sample", release, "-o", out], "must end in .csv or .parquet"),
        "no points": (["sample", release, "-o", folder / "never.csv", "--n", "-3"], "-3 is not in"),
    }


@pytest.mark.parametrize("case", list(mistakes(Path())))
def test_mistakes(case: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    arguments, says = mistakes(folder)[case]
    assert htf(*arguments) == 2
    told = capfd.readouterr()
    assert says in " ".join(told.err.split())
    assert "Traceback" not in told.err + told.out
    assert not [path for path in folder.iterdir() if "never" in path.name]
    assert Release.load(folder / "out.parquet").private


@pytest.mark.parametrize(
    ("package", "suffix"), [("geopandas", ".parquet"), ("pyogrio", ".gpkg"), ("rasterio", ".tif")]
)
def test_missing_packages_are_named(
    package: str,
    suffix: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    assert htf("export", folder / "out.parquet", "-o", folder / f"never{suffix}") == 2
    told = " ".join(capfd.readouterr().err.split())
    assert f"needs the package '{package}'" in told
    assert 'pip install "htf-dp[geo]"' in told
    plain = folder / f"plain-{package}.csv"  # needs none
    assert htf("export", folder / "out.parquet", "-o", plain) == 0


@pytest.mark.parametrize("suffix", [".geojson", ".fgb", ".gpkg", ".parquet", ".csv", ".tif"])
def test_a_folder_that_takes_no_files(suffix: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    """Stands for a full disk: root may write to /proc, and then cannot."""
    if not os.access("/proc", os.W_OK):
        pytest.skip("only root is let that far")
    assert htf("export", folder / "out.parquet", "-o", f"/proc/city{suffix}") == 2
    assert f"cannot write /proc/city{suffix}" in " ".join(capfd.readouterr().err.split())


@pytest.mark.parametrize("zones", ["h3:7", "5,3"])
@pytest.mark.parametrize("suffix", [".csv", ".gpkg"])
def test_zones_add_up_to_the_release(folder: Path, tmp_path: Path, zones: str, suffix: str) -> None:

    path = tmp_path / f"zones{suffix}"
    assert (
        htf("export", folder / "hours.parquet", "--grid", zones, "--where", "hour=7:10", "-o", path)
        == 0
    )
    found = csv.read_csv(path)["count"] if suffix == ".csv" else read_layer(path)["count"]
    carried = path.with_name("zones.csv.statement.txt") if suffix == ".csv" else path
    assert b"Counted: hour from 7 to 10." in carried.read_bytes()
    total = Release.load(folder / "hours.parquet").count(where={"hour": (7, 10)}).count[0]
    assert float(np.sum(found.to_numpy())) == pytest.approx(total, rel=1e-9)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--grid", "h3:7", "-o", "zones.tif"), "zones are a layer"),
        (("--grid", "h3:1_0", "-o", "zones.gpkg"), "--grid takes h3:N"),
        (("--grid", "h3:16", "-o", "zones.gpkg"), "from 0 to 15"),
        (("--grid", "5", "-o", "zones.gpkg"), "--grid"),
        (("--grid", "0,5", "-o", "zones.gpkg"), "0"),
        (("--grid", "1.5,5", "-o", "zones.gpkg"), "whole numbers of columns and rows, got '1.5,5'"),
        (("--grid", "nan,5", "-o", "zones.gpkg"), "got 'nan,5'"),
        (("--grid", "5,inf", "-o", "zones.gpkg"), "got '5,inf'"),
        (("--grid", "5,1e15", "-o", "zones.gpkg"), "about 1e+15 zones"),
        (("--grid", "5,1e300", "-o", "zones.gpkg"), "must be a whole number below 2**63"),
    ],
)
def test_zones_that_cannot_be(
    folder: Path,
    tmp_path: Path,
    options: tuple[Any, ...],
    says: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert htf("export", folder / "out.parquet", *options) == 2
    assert says in capfd.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_an_archive_of_tiles(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Opened by GDAL, and by the format's own reader: all leaves are in the deepest tiles, once or where tiles meet."""
    import pyogrio
    from pmtiles.reader import MmapSource, Reader

    path = tmp_path / "map.pmtiles"
    assert htf("export", folder / "out.parquet", "-o", path) == 0
    assert "tiles down to zoom" in capsys.readouterr().out
    release = Release.load(folder / "out.parquet")
    layer = pyogrio.read_dataframe(path)
    assert layer.crs.to_epsg() == 3857
    leaves = layer.drop_duplicates(["west", "south"])
    assert len(leaves) == len(release)
    assert leaves["count"].sum() == pytest.approx(
        release.count().count[0], abs=leaves["std_error"].sum() / 32
    )
    with open(path, "rb") as file:
        reader = Reader(MmapSource(file))
        about, header = reader.metadata(), reader.header()
    assert about["description"] == release.statement
    assert about["htf-export"]["private"] is True
    assert about["vector_layers"][0]["maxzoom"] == header["max_zoom"]
    assert header["min_zoom"] == 0
    assert header["min_lon_e7"] == round(BOUNDS[0] * 10**7)
    seen = set(layer.columns) - {"geometry", "mvt_id"}
    assert seen == set(about["vector_layers"][0]["fields"])


def test_an_archive_of_squares_of_some_hours(folder: Path, tmp_path: Path) -> None:
    import pyogrio

    path = tmp_path / "map.pmtiles"
    options = ("--where", "hour=7:10", "--max-zoom", "9")
    assert htf("export", folder / "hours.parquet", "-o", path, *options) == 0
    layer = pyogrio.read_dataframe(path).drop_duplicates(["west", "south"])
    release = Release.load(folder / "hours.parquet")
    expected = release.count(None, {"hour": (7, 10)}).count[0]
    assert layer["count"].sum() == pytest.approx(expected, rel=0.01)
    assert layer["not_private"].all()
    assert (layer["low"] <= layer["high"]).all()
    assert pyogrio.read_info(path)["dataset_metadata"]["ZOOM_LEVEL"] == "9"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("-o", "map.pmtiles", "--grid", "4,4"), "holds leaves and squares"),
        (("-o", "map.pmtiles", "--pixels", "4"), "--pixels is for .tif"),
        (("-o", "map.gpkg", "--max-zoom", "4"), "--max-zoom is for .pmtiles"),
        (("-o", "map.pmtiles", "--where", "x=-74:-73.9"), "a tile already names the place"),
    ],
)
def test_archives_that_cannot_be(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: tuple[str, ...],
    text: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert htf("export", folder / "out.parquet", *options) == 2
    assert text in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_map_of_nowhere_has_no_tiles(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    domain = Domain.from_bounds(0, 0, 8, 8, 8, crs=None)
    publish(
        FrequencyMatrix.from_dense(domain, np.ones((8, 8), int)), 1, "ug", noise="seeded:1"
    ).save(tmp_path / "plane.parquet")
    assert htf("export", tmp_path / "plane.parquet", "-o", tmp_path / "map.pmtiles") == 2
    assert "no reference system, so it has no tiles" in capsys.readouterr().err


def test_an_archive_ends_where_there_would_be_too_many_tiles(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("htf.export.tiles.MOST_TILES", 8)
    monkeypatch.setattr("htf.maps.tiles.MOST_LEAVES", 10)
    assert htf("export", folder / "out.parquet", "-o", tmp_path / "map.pmtiles") == 0
    assert "less than the release knows" in capsys.readouterr().out


def test_a_zoom_with_too_many_tiles_is_refused(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Before anything is written. The zoom that the message names is the deepest that fits."""
    monkeypatch.setattr("htf.export.tiles.MOST_TILES", 12)
    command = ("export", folder / "out.parquet", "-o", tmp_path / "map.pmtiles", "--max-zoom")
    assert htf(*command, 9) == 2
    told = re.search(
        r"zoom 9 needs [\d,]+ tiles, .* give --max-zoom (\d+) ", capsys.readouterr().err
    )
    assert told is not None
    fits = int(told[1])
    assert htf(*command, fits + 1) == 2
    assert list(tmp_path.iterdir()) == []
    assert htf(*command, fits) == 0
    made = re.search(r"(\d+) tiles down", capsys.readouterr().out)
    assert made is not None
    assert fits < int(made[1]) <= 12
