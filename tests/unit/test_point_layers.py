"""Points in GeoJSON, GeoPackage, shapefile and zip: their own reference systems, and every record read by itself."""

from __future__ import annotations

import gzip
import json
import sqlite3
import warnings
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import geopandas
import pyarrow as pa
import pytest
import shapely

from htf import Axis, Domain, InputError, check_points, publish, read_points, read_prior
from htf.cli.main import run
from htf.errors import NothingInsideError
from htf.ingest import vector
from htf.ingest.remarks import NothingInside
from htf.ingest.sources import files_behind
from htf.privacy.origins import FileMark, check_not_data
from support import counted

MAP = Domain.from_bounds(0, 0, 4, 4, 4)
PLACES = [(0.5, 1.5), (2.5, 3.5), (2.5, 3.5), (9.0, 9.0)]
CELLS = {(0, 1): 1, (2, 3): 2}
PEOPLE = ["ann", "bob", "bob", "ann"]


def frame(crs: str = "EPSG:4326", geometry: Any = None) -> geopandas.GeoDataFrame:
    points = geometry or [shapely.Point(one) for one in PLACES]
    return geopandas.GeoDataFrame({"Who": PEOPLE[: len(points)]}, geometry=points, crs=crs)


def zipped(archive: Path, *files: Path) -> Path:
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as opened:
        for file in files:
            opened.write(file, f"inner/{file.name}")
    return archive


def in_geojson(folder: Path) -> Path:
    frame().to_file(folder / "a.geojson")
    return folder / "a.geojson"


def in_geopackage(folder: Path) -> Path:
    frame().to_file(folder / "a.gpkg", layer="pings")
    return folder / "a.gpkg"


def in_shapefile(folder: Path) -> Path:
    frame().to_file(folder / "a.shp")
    return folder / "a.shp"


def in_flatgeobuf(folder: Path) -> Path:
    frame().to_file(folder / "a.fgb")
    return folder / "a.fgb"


def in_zipped_shapefile(folder: Path) -> Path:
    in_shapefile(folder)
    return zipped(folder / "shape.zip", *sorted(folder.glob("a.*")))


def in_zipped_csv(folder: Path) -> Path:
    rows = [f"{x},{y},{who}" for (x, y), who in zip(PLACES, PEOPLE, strict=True)]
    for number in range(2):
        part = rows[2 * number : 2 * number + 2]
        (folder / f"{number}.csv").write_text("\n".join(["lon,lat,Who", *part]))
    return zipped(folder / "text.zip", folder / "0.csv", folder / "1.csv")


def in_zipped_geopackage(folder: Path) -> Path:
    return zipped(folder / "layer.zip", in_geopackage(folder))


MAKERS = [
    in_geojson,
    in_geopackage,
    in_shapefile,
    in_flatgeobuf,
    in_zipped_shapefile,
    in_zipped_csv,
    in_zipped_geopackage,
]


@pytest.mark.parametrize("make", MAKERS)
def test_points_are_counted(make: Callable[[Path], Path], tmp_path: Path) -> None:
    path = make(tmp_path)
    assert counted(read_points(path, MAP)) == CELLS
    user = "Who" if make is in_geojson else "who"  # of GeoJSON, names are exact
    assert counted(read_points(path, MAP, user=user, max_records=1)) == {(0, 1): 1, (2, 3): 1}
    found = check_points(path, MAP)
    assert (found.rows, found.inside, found.outside, found.people) == (4, 3, 1, 2)
    assert found.unread == []
    assert "points  (x, y)" in str(found) or make is in_zipped_csv


@pytest.mark.parametrize("make", MAKERS)
def test_the_files_of_the_data_are_known(make: Callable[[Path], Path], tmp_path: Path) -> None:
    """So that none of them is taken for public."""
    path = make(tmp_path)
    matrix = read_points(path, MAP)
    assert path.absolute() in [mark.path for mark in matrix.files]
    assert set(files_behind(str(path))) == {mark.path for mark in matrix.files}
    path.write_bytes(path.read_bytes() + b" ")
    assert matrix.files[0].size < path.stat().st_size


def test_a_copy_in_an_archive_is_noticed(tmp_path: Path) -> None:
    """The data are in an archive, and the prior is a file of it."""
    text = tmp_path / "points.csv"
    text.write_text("lon,lat\n0.5,1.5\n2.5,3.5\n")
    matrix = read_points(zipped(tmp_path / "points.zip", text), MAP)
    with pytest.raises(InputError, match="is one of the files of the data"):
        publish(matrix, 1, prior=read_prior(text, MAP), noise="fast")
    other = tmp_path / "other.csv"
    other.write_text("lon,lat\n0.5,1.5\n")
    publish(matrix, 1, prior=read_prior(other, MAP), noise="fast")


@pytest.mark.parametrize(
    "pack", [gzip.compress, lambda text: pa.compress(text, "zstd", asbytes=True)]
)
def test_a_packed_copy_in_an_archive_is_noticed(
    pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    """A member of the archive is packed itself, and the prior is that member, or what it holds."""
    text = b"lon,lat\n" + b"".join(b"0.%03d,0.5\n" % n for n in range(900))
    ending = "gz" if pack is gzip.compress else "zst"
    priors = [tmp_path / "points.csv", tmp_path / f"points.csv.{ending}"]
    priors[0].write_bytes(text)
    priors[1].write_bytes(pack(text))
    other = tmp_path / f"other.csv.{ending}"
    other.write_bytes(pack(text[:-12]))
    data = [FileMark.of(zipped(tmp_path / "data.zip", priors[1]))]
    for prior in priors:
        with pytest.raises(InputError, match="is one of the files of the data"):
            check_not_data(FileMark.of(prior), data)
    check_not_data(FileMark.of(other), data)
    (tmp_path / "broken.csv.gz").write_bytes(b"not packed")
    with pytest.raises(InputError, match="cannot compare"):
        check_not_data(
            FileMark.of(priors[0]),
            [FileMark.of(zipped(tmp_path / "broken.zip", tmp_path / "broken.csv.gz"))],
        )


def test_their_own_reference_system_is_used(tmp_path: Path) -> None:
    for name in ("a.gpkg", "a.shp", "a.geojson", "a.fgb"):
        frame().to_crs("EPSG:3857").to_file(tmp_path / name)
        assert counted(read_points(tmp_path / name, MAP)) == CELLS
    zipped(tmp_path / "a.zip", *sorted(tmp_path.glob("a.[sdpc]*")))
    assert counted(read_points(tmp_path / "a.zip", MAP)) == CELLS


@pytest.mark.parametrize("name", ["a.gpkg", "a.shp", "a.fgb"])
def test_other_geometries_are_refused(name: str, tmp_path: Path) -> None:
    frame(geometry=[shapely.box(0, 0, 1, 1)]).to_file(tmp_path / name)
    with pytest.raises(InputError, match="Polygon, and points are needed"):
        read_points(tmp_path / name, MAP)


def test_several_layers(tmp_path: Path) -> None:
    frame().to_file(tmp_path / "a.gpkg", layer="pings")
    frame(geometry=[shapely.Point(0.5, 0.5)]).to_file(tmp_path / "a.gpkg", layer="others")
    with pytest.raises(
        InputError, match="has 2 layers: name one with --read table, of 'pings', 'others'"
    ):
        read_points(tmp_path / "a.gpkg", MAP)
    assert counted(read_points(tmp_path / "a.gpkg", MAP, table="pings")) == CELLS
    zipped(tmp_path / "a.zip", tmp_path / "a.gpkg")
    assert counted(read_points(tmp_path / "a.zip", MAP, table="others")) == {(0, 0): 1}
    with pytest.raises(InputError, match="has no layer 'x'; it has 'pings', 'others'"):
        read_points(tmp_path / "a.gpkg", MAP, table="x")
    in_geojson(tmp_path)
    zipped(tmp_path / "b.zip", tmp_path / "a.gpkg", tmp_path / "a.geojson")
    with pytest.raises(
        InputError, match="several layers or kinds of files: name one with --read table"
    ):
        read_points(tmp_path / "b.zip", MAP)
    assert counted(read_points(tmp_path / "b.zip", MAP, table="a.geojson")) == CELLS


ODD: dict[str, Any] = {
    "a polygon": {"geometry": {"type": "Polygon", "coordinates": []}, "properties": {"who": 1}},
    "nothing": {"geometry": None, "properties": None},
    "no geometry": {},
    "text": {
        "geometry": {"type": "Point", "coordinates": ["1_0", "1"]},
        "properties": {"who": "x"},
    },
    "truth": {"geometry": {"type": "Point", "coordinates": [True, False]}},
    "one number": {"geometry": {"type": "Point", "coordinates": [1]}},
    "a fraction": {
        "geometry": {"type": "Point", "coordinates": [99, 99]},
        "properties": {"who": 1.5, "more": {"a": [1]}},
    },
}


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_feature_changes_no_other(odd: str, tmp_path: Path) -> None:
    """A reader that gives columns types would read all people in another way."""
    plain = [
        {"geometry": {"type": "Point", "coordinates": one}, "properties": {"who": 10**17 + n % 2}}
        for n, one in enumerate(PLACES)
    ]
    path = tmp_path / "a.geojson"
    options: dict[str, Any] = {"user": "who", "max_records": 1}
    collections = [plain, [*plain, ODD[odd]], [ODD[odd], *plain]]
    found = []
    for one in collections:
        path.write_text(json.dumps({"features": one, "type": "FeatureCollection", "bbox": [1.5]}))
        found.append(counted(read_points(path, MAP, **options)))
    assert found[1:] == found[:1] * 2
    assert check_points(path).people == 2 + (odd in ("a polygon", "text", "a fraction"))


def features(*made: tuple[tuple[float, float], dict[str, Any]]) -> dict[str, Any]:
    return {
        "type": "FeatureCollection",
        "features": [
            {"geometry": {"type": "Point", "coordinates": place}, "properties": said}
            for place, said in made
        ],
    }


HOURS = Domain((*MAP.axes, Axis("hour", 0, 24, 24)), MAP.crs)
NAMED: dict[str, tuple[dict[str, Any], Domain, dict[str, Any]]] = {
    "another case": ({"WHO": "x"}, MAP, {"user": "WHO", "max_records": 1}),
    "like a function": ({"hour(at)": 3}, HOURS, {"columns": [None, None, "hour(at)"]}),
    "the points": ({"geometry": "x"}, MAP, {}),
    "two like it": ({"Who": 1, "wHO": 1}, MAP, {"user": "WHO", "max_records": 1}),
    "a name that was not there": ({"so": 1}, MAP, {"user": "so", "max_records": 1}),
}


@pytest.mark.parametrize("odd", NAMED)
def test_the_names_in_a_feature_change_no_other(odd: str, tmp_path: Path) -> None:
    """GeoJSON has no header: the names in one record must not decide what a name means to all."""
    properties, domain, options = NAMED[odd]
    plain = [(one, {"who": n, "at": "2024-03-01T05:00"}) for n, one in enumerate(PLACES)]
    path, found = tmp_path / "a.geojson", []
    for made in (plain, [*plain, ((3.5, 0.5), properties)]):
        path.write_text(json.dumps(features(*made)))
        with warnings.catch_warnings(action="ignore", category=NothingInside):
            counts = counted(read_points(path, domain, allow_empty=True, **options))
        found.append({cell: n for cell, n in counts.items() if cell[:2] != (3, 0)})
    assert found[0] == found[1]
    assert bool(found[0]) == ("user" not in options)
    assert check_points(path).rows == 5


def test_a_name_that_no_feature_has_is_an_empty_column(tmp_path: Path) -> None:
    path = tmp_path / "a.geojson"
    path.write_text(json.dumps(features(((0.5, 0.5), {"who": "ann"}))))
    with pytest.raises(NothingInsideError, match="none there names a person in 'Who'"):
        read_points(path, MAP, user="Who")
    with pytest.raises(
        InputError, match="there is no column 'Who', but one is like it: name 'who'"
    ):
        check_points(path, user="Who")
    path.write_text(json.dumps(features()))
    with pytest.warns(NothingInside):
        assert counted(read_points(path, MAP, user="who", allow_empty=True)) == {}


@pytest.mark.parametrize(
    ("kind", "why"),
    [("Polygon", r"a\.geojson holds Polygon, and points are needed"), ("Jane Doe 12.5", "bounds")],
)
def test_geojson_without_a_point_is_as_records_without_a_place(
    kind: str, why: str, tmp_path: Path
) -> None:
    """One point more is a neighbouring data set, so a program must be able to go on; and nothing is quoted."""
    path = tmp_path / "a.geojson"
    one = {"geometry": {"type": kind, "coordinates": [[1, 2]]}, "properties": {}}
    path.write_text(json.dumps({"type": "FeatureCollection", "features": [one] * 3}))
    with pytest.raises(NothingInsideError, match=why) as raised:
        read_points(path, MAP)
    assert "Jane" not in str(raised.value)
    with pytest.warns(NothingInside):
        assert counted(read_points(path, MAP, allow_empty=True)) == {}


def test_an_odd_row_of_a_geopackage_changes_no_other(tmp_path: Path) -> None:
    """Text in a column of numbers is not 0, and bytes that are no geometry are no point."""
    path = tmp_path / "a.gpkg"
    numbers = frame()
    numbers["Who"] = [0, 1, 1, 0]
    numbers.to_file(path, layer="pings")
    with closing(sqlite3.connect(path)) as connection:
        for name in ("rtree_pings_geom_insert", "trigger_insert_feature_count_pings"):
            connection.execute(f"DROP TRIGGER IF EXISTS {name}")
        connection.execute("INSERT INTO pings (geom, Who) VALUES (x'00ff', 'zero')")
        connection.execute("INSERT INTO pings (geom, Who) VALUES (NULL, 'nought')")
        connection.commit()
    assert counted(read_points(path, MAP)) == CELLS
    found = check_points(path, user="Who")
    assert found.people == 4
    assert [(one["rows"], one["reason"]) for one in found.unread] == [
        (1, "the column 'geom' is empty there"),
        (1, "the column 'geom' holds no point there"),
    ]


def test_no_warning_quotes_a_record_of_a_shapefile(tmp_path: Path) -> None:
    path = tmp_path / "a.shp"
    frame().assign(n=[123.5, 2.5, 3.5, 4.5]).to_file(path)
    fields = path.with_suffix(".dbf")
    fields.write_bytes(fields.read_bytes().replace(b"123.5", b"1SECR"))
    with warnings.catch_warnings(action="error", category=RuntimeWarning):
        read_points(path, MAP, weight="n", max_weight=9)
        check_points(path)


def test_geojson_is_read_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector, "ROWS_AT_ONCE", 3)
    path = tmp_path / "a.geojson"
    frame().assign(Who=["Zoë", "Jürgen", 'a"b', "x\ny"]).to_file(path)
    assert counted(read_points(path, MAP)) == CELLS
    assert check_points(path, user="Who").people == 4


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"type": "FeatureCollection"}', "must be a GeoJSON FeatureCollection"),
        ('{"type": "Feature", "geometry": null}', "must be a GeoJSON FeatureCollection"),
        ("[1, 2]", "must be a GeoJSON FeatureCollection"),
        ('{"type": "FeatureCollection", "features": [{"a": 1}', "cannot read"),
        ('{"type": "FeatureCollection", "features": [{} {}]}', "cannot read"),
        ("", "must be a GeoJSON FeatureCollection"),
    ],
)
def test_geojson_that_is_none(text: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "a.geojson").write_text(text)
    with pytest.raises(InputError, match=why):
        read_points(tmp_path / "a.geojson", MAP)


def test_archives_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(b"PK\3\4 no archive")
    with pytest.raises(InputError, match=r"cannot read a\.zip"):
        read_points(tmp_path / "a.zip", MAP)
    (tmp_path / "a.md").write_text("points")
    with pytest.raises(InputError, match="has no file that ends in one of"):
        read_points(zipped(tmp_path / "b.zip", tmp_path / "a.md"), MAP)
    with pytest.raises(InputError, match=r"--read engine is not for \.zip files"):
        read_points(tmp_path / "b.zip", MAP, engine="spark")
    with pytest.raises(InputError, match=r"--read sql is not for \.geojson files"):
        read_points(in_geojson(tmp_path), MAP, sql="SELECT 1")
    with pytest.raises(InputError, match="there is no file"):
        read_points(tmp_path / "none.gpkg", MAP)


def test_a_file_that_an_archive_does_not_hold(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("lon,lat\n0.5,1.5\n")
    archive = zipped(tmp_path / "a.zip", tmp_path / "a.csv")
    with pytest.raises(InputError, match=r"a\.zip has no file 'nosuch': .* of inner/a\.csv"):
        read_points(archive, MAP, table="nosuch")
    for name in ("a", "a.csv", "inner/a.csv"):
        assert counted(read_points(archive, MAP, table=name)) == {(0, 1): 1}
    with pytest.raises(InputError, match="has no layer 'nosuch'"):
        read_points(in_zipped_geopackage(tmp_path), MAP, table="nosuch")


@pytest.mark.parametrize("names", [("a.csv", "a.CSV"), ("a.csv", "a.csv")])
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_files_of_one_name_in_an_archive(names: tuple[str, str], tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as opened:
        for name in names:
            opened.writestr(name, "lon,lat\n0.5,1.5\n")
    with pytest.raises(
        InputError, match=r"a\.zip has two files whose names differ by case at most"
    ):
        read_points(tmp_path / "a.zip", MAP)


def test_a_messy_table_in_an_archive(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    rows = [f"{x};{y}".replace(".", ",") for x, y in PLACES]
    text = tmp_path / "a.csv"
    text.write_bytes("\n".join(["Überschrift", "lon;lat", *rows]).encode("utf-16"))
    archive = zipped(tmp_path / "a.zip", text)
    assert run(["check", str(archive), "--bounds", "0,0,4,4"]) == 0
    assert "--read encoding=utf-16 --read skip-lines=1 --read decimal=," in capfd.readouterr().out
    found = read_points(archive, MAP, encoding="utf-16", skip_lines=1, decimal=",")
    assert counted(found) == CELLS


@pytest.mark.parametrize("is_zipped", [False, True])
def test_a_layer_that_is_a_view_is_a_query(tmp_path: Path, is_zipped: bool) -> None:
    """How the rows of a view are made is no part of the guarantee, and the statement says so."""
    path = in_geopackage(tmp_path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE VIEW twice AS SELECT * FROM pings UNION ALL SELECT * FROM pings")
        columns = "table_name, column_name, geometry_type_name, srs_id, z, m"
        connection.execute(
            f"INSERT INTO gpkg_geometry_columns ({columns}) SELECT 'twice', column_name, geometry_type_name, srs_id, z, m"
            " FROM gpkg_geometry_columns"
        )
        connection.commit()
    source = zipped(tmp_path / "a.zip", path) if is_zipped else path
    of_query = {
        layer: read_points(source, MAP, table=layer).protection.of_query
        for layer in (("pings", "twice") if not is_zipped else ())
    }
    if not is_zipped:
        assert of_query == {"pings": False, "twice": True}
    else:
        with pytest.raises(InputError, match="name one with --read table, of 'pings', 'twice'"):
            read_points(source, MAP)
