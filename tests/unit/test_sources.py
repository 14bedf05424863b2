"""Where points may be: databases, folders, tables, geometries and reference systems."""

from __future__ import annotations

import json
import sqlite3
import struct
import warnings
from contextlib import closing
from pathlib import Path
from typing import Any

import geopandas
import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pyproj
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from htf import Axis, Domain, InputError, Release, publish, read_points
from htf.ingest.columns import find_fields
from htf.ingest.engines import read_memory
from htf.ingest.geometry import decode_points
from htf.ingest.remarks import NothingInside
from support import Connections, counted, dense
from telling import examples

DOMAIN = Domain.from_bounds(-10, 40, 10, 60, (4, 2))
TABLE = pa.table({"lon": [-9.0, 0.5, 9.0], "lat": [41.0, 55.0, 59.0], "who": ["a", "b", "a"]})
EXPECTED = {(0, 0): 1, (2, 1): 1, (3, 1): 1}


# --- files -----------------------------------------------------------------------------------------


def test_folders_and_patterns(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    for number, name in enumerate(("a.parquet", "deep/b.parquet", "deep/c.pq")):
        pq.write_table(TABLE.slice(number, 1), tmp_path / name)
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".b.parquet.crc").touch()
    assert counted(read_points(tmp_path, DOMAIN)) == EXPECTED
    assert counted(read_points(str(tmp_path / "**/*.p*"), DOMAIN)) == EXPECTED
    assert counted(read_points(tmp_path / "deep/*.parquet", DOMAIN)) == {(2, 1): 1}


def test_a_folder_of_packed_text(tmp_path: Path) -> None:
    frame = TABLE.to_pandas()
    frame[:1].to_csv(tmp_path / "a.csv.gz", index=False)
    with pa.output_stream(tmp_path / "b.csv.zst", compression="zstd") as file:
        file.write(frame[1:2].to_csv(index=False).encode())
    frame[2:].to_csv(tmp_path / "c.csv", index=False)
    assert counted(read_points(tmp_path, DOMAIN)) == EXPECTED


def test_row_numbers_without_a_name(tmp_path: Path) -> None:
    """As pandas writes them."""
    TABLE.to_pandas().to_csv(tmp_path / "a.csv")
    assert counted(read_points(tmp_path / "a.csv", DOMAIN)) == EXPECTED


def test_files_may_differ_in_columns_that_are_not_needed(tmp_path: Path) -> None:
    pq.write_table(TABLE.slice(0, 1), tmp_path / "a.parquet")
    pq.write_table(TABLE.slice(1).drop(["who"]), tmp_path / "b.parquet")
    assert counted(read_points(tmp_path, DOMAIN)) == EXPECTED
    with pytest.raises(InputError, match="'who' is not the same in all files"):
        read_points(tmp_path, DOMAIN, user="who", max_records=1)


# --- names -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("there", "x", "y"),
    [
        (["id", "Lat", "LON"], "LON", "Lat"),
        (["pickup_longitude", "pickup_latitude"], "pickup_longitude", "pickup_latitude"),
        (["lng", "lat", "dest_lng", "dest_lat"], "lng", "lat"),
        (["easting", "northing"], "easting", "northing"),
        (["start_lon", "start_lat", "end_lon", "end_lat"], None, None),
        (["lon", "lat", "x", "y"], None, None),
        (["lon", "latitude"], None, None),
    ],
)
def test_only_one_sensible_guess(there: list[str], x: str | None, y: str | None) -> None:
    if x is None:
        with pytest.raises(InputError, match="which columns are x and y"):
            find_fields(there, DOMAIN, [None, None], None)
        return
    found = find_fields(there, DOMAIN, [None, None], None)
    assert [field.column for field in found] == [x, y]


def test_a_guess_is_said() -> None:
    told: list[str] = []
    read_points(TABLE, DOMAIN, tell=told.append)
    assert told == ["Using the columns 'lon' as x and 'lat' as y."]
    told.clear()
    read_points(TABLE, DOMAIN, ["lon", "lat"], tell=told.append)
    assert told == []


def test_a_single_axis_is_called_by_its_name() -> None:
    domain = Domain((Axis("age", 0, 100, 10),))
    assert counted(read_points({"age": [5.0, 7.0, 95.0]}, domain)) == {(0,): 2, (9,): 1}
    with pytest.raises(InputError, match="needs two axes"):
        read_points({"age": [5.0]}, domain, crs="EPSG:27700")


@pytest.mark.parametrize(
    ("text", "size"), [("4GB", 4 * 10**9), ("500 mb", 5 * 10**8), ("1.5g", 15 * 10**8), ("2GiB", 2 * 10**9)]
)  # fmt: skip
def test_sizes_of_memory(text: str, size: int) -> None:
    assert read_memory(text) == size
    for bad in ("", "GB", "-1GB", "0", "4 parsecs", "80%"):
        with pytest.raises(InputError, match="as in 500MB or 4GB"):
            read_memory(bad)


# --- tables of Ibis: what is a query ---------------------------------------------------------------


@pytest.fixture
def database() -> Any:
    connection = ibis.duckdb.connect()
    connection.con.register("given", TABLE)
    connection.raw_sql("CREATE TABLE pings AS SELECT * FROM given")
    connection.raw_sql("CREATE VIEW seen AS SELECT * FROM pings")
    return connection


def test_tables_of_ibis_and_what_is_a_query(database: Any, tmp_path: Path) -> None:
    pings = database.table("pings")
    pq.write_table(TABLE, tmp_path / "a.parquet")
    sources = {
        "table": (pings, False),
        "memory": (ibis.memtable(TABLE), False),
        "view": (database.table("seen"), True),
        "filter": (pings.filter(pings.lon > -100), True),
        "limit": (pings.limit(3), True),
        "sql": (database.sql("SELECT * FROM pings", schema=pings.schema()), True),
        "file": (database.read_parquet(tmp_path / "a.parquet"), True),  # Ibis makes a view of it
    }
    for name, (table, of_query) in sources.items():
        matrix = read_points(table, DOMAIN, user="who", max_records=2)
        assert counted(matrix) == EXPECTED, name
        assert matrix.protection.of_query is of_query, name
    assert database.table("pings").count().execute() == 3  # the connection is still good


def test_tables_of_ibis_in_other_engines(tmp_path: Path) -> None:
    """Their rows go to DuckDB, so that people are bounded everywhere alike."""
    with closing(sqlite3.connect(tmp_path / "a.sqlite")) as connection:
        TABLE.to_pandas().to_sql("pings", connection, index=False)
    lite = ibis.sqlite.connect(tmp_path / "a.sqlite")
    polars = ibis.polars.connect({"pings": pl.from_arrow(TABLE)})
    for backend in (lite, polars):
        matrix = read_points(backend.table("pings"), DOMAIN, user="who", max_records=2)
        assert counted(matrix) == EXPECTED
        assert matrix.protection.of_query  # in doubt
    lite.disconnect()


def test_connections_to_sqlite_are_closed_on_every_way_out(
    tmp_path: Path, connections: Connections
) -> None:
    with closing(sqlite3.connect(tmp_path / "a.sqlite")) as connection:
        TABLE.to_pandas().to_sql("pings", connection, index=False)
    (tmp_path / "b.sqlite").write_text("no database, but long enough to be looked into" * 100)
    for name, wrong, says in (
        ("a", {"memory": "much"}, "memory is a size"),
        ("a", {"table": "none"}, "no table"),
        ("a", {"columns": ["lon", "none"]}, "no column"),
        ("b", {}, "cannot read"),
    ):
        with pytest.raises(InputError, match=says):
            read_points(tmp_path / f"{name}.sqlite", DOMAIN, **{"table": "pings", **wrong})  # type: ignore[arg-type]
    assert counted(read_points(tmp_path / "a.sqlite", DOMAIN, table="pings")) == EXPECTED
    assert connections.made >= 6
    assert connections.left_open == 0


def test_tables_in_memory_of_odd_kinds() -> None:
    frame = TABLE.to_pandas()
    for who in ("category", "object", "string"):
        kept = read_points(frame.astype({"who": who}), DOMAIN, user="who", max_records=1)
        assert kept.exact_counts.sum() == 2
    whole = pd.DataFrame({"lon": [1, 2], "lat": [45, 46], "who": pd.array([1, pd.NA], "Int64")})
    assert read_points(whole, DOMAIN, user="who", max_records=1).exact_counts.sum() == 1
    with pytest.raises(InputError, match=r"astype\('Int64'\)"):
        read_points(whole.assign(who=[1, np.nan]), DOMAIN, user="who", max_records=1)


# --- geometries ------------------------------------------------------------------------------------

BRITISH = Domain.from_bounds(400_000, 100_000, 600_000, 300_000, 20, crs="EPSG:27700")


def britain(number: int = 400) -> tuple[Any, Any]:
    draw = np.random.default_rng(8)
    return draw.uniform(-3, 1.5, number), draw.uniform(50, 54, number)


def expected_in_britain() -> dict[tuple[int, ...], int]:
    """By pyproj directly."""
    change = pyproj.Transformer.from_crs("OGC:CRS84", "EPSG:27700", always_xy=True)
    x, y = change.transform(*britain())
    edges = [np.linspace(a.low, a.high, a.cells + 1) for a in BRITISH.axes]
    counts = np.histogram2d(x, y, bins=edges)[0]
    return {(int(i), int(j)): int(counts[i, j]) for i, j in zip(*np.nonzero(counts), strict=True)}


@pytest.mark.parametrize("encoding", ["WKB", "geoarrow"])
@pytest.mark.parametrize("crs", ["EPSG:4326", "OGC:CRS84", "EPSG:27700", "EPSG:3857"])
def test_points_of_any_system_on_a_british_map(crs: str, encoding: Any, tmp_path: Path) -> None:
    points = geopandas.points_from_xy(*britain(), crs="EPSG:4326")
    frame = geopandas.GeoDataFrame(geometry=points).to_crs(crs)
    frame.to_parquet(tmp_path / "a.parquet", geometry_encoding=encoding, schema_version="1.1.0")
    assert counted(read_points(tmp_path / "a.parquet", BRITISH)) == expected_in_britain()
    assert counted(read_points(frame, BRITISH)) == expected_in_britain()
    x, y = np.array(frame.geometry.x), np.array(frame.geometry.y)
    plain = read_points({"x": x, "y": y}, BRITISH, crs=crs)
    assert counted(plain) == expected_in_britain()


def test_axes_of_degrees_are_longitude_and_latitude() -> None:
    """Whatever the order that EPSG has for them."""
    for crs in ("EPSG:4326", "OGC:CRS84", "WGS84"):
        assert counted(read_points(TABLE, DOMAIN, crs=crs)) == EXPECTED


def test_columns_that_are_named_are_not_of_the_geometry_s_system() -> None:
    frame = geopandas.GeoDataFrame(
        TABLE.to_pandas(), geometry=geopandas.points_from_xy([4e5] * 3, [1e5] * 3), crs="EPSG:27700"
    )
    assert counted(read_points(frame, DOMAIN, ["lon", "lat"])) == EXPECTED
    assert counted(read_points(frame.drop(columns="geometry"), DOMAIN)) == EXPECTED


def test_a_map_without_a_system_refuses_points_that_have_one() -> None:
    plain = Domain((Axis("x", -10, 10, 4), Axis("y", 40, 60, 2)))
    assert counted(read_points(TABLE, plain)) == EXPECTED
    with pytest.raises(InputError, match="names no reference system"):
        read_points(TABLE, plain, crs="EPSG:27700")


@pytest.mark.parametrize("last", ["0.5", "none"])
def test_points_of_text_are_refused_by_their_type(last: str, tmp_path: Path) -> None:
    """Whatever the text is: else one record would decide whether all others are read."""
    kind = pa.struct([("x", pa.string()), ("y", pa.string())])
    points = pa.array([{"x": "0.5", "y": "41"}, {"x": last, "y": "41"}], kind)
    about = {"encoding": "point", "geometry_types": ["Point"]}
    said = {"version": "1.1.0", "primary_column": "place", "columns": {"place": about}}
    table = pa.table({"place": points}).replace_schema_metadata({b"geo": json.dumps(said)})
    pq.write_table(table, tmp_path / "points.parquet")
    with pytest.raises(
        InputError, match=r"column 'place.x' must hold numbers, but it holds string"
    ):
        read_points(tmp_path / "points.parquet", DOMAIN)


@pytest.mark.parametrize("people", [[None, None], [None, "a"]])
def test_a_table_may_name_nobody(people: list[str | None]) -> None:
    """One name more or less does not decide whether it can be read."""
    frame = pd.DataFrame({"lon": [-9.0, 0.5], "lat": [41.0, 55.0]})
    frame["who"] = pd.Series(people, dtype=object)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NothingInside)
        found = read_points(frame, DOMAIN, user="who", max_records=1, allow_empty=True)
    assert sum(counted(found).values()) == people.count("a")


def test_other_geometries_than_points(tmp_path: Path) -> None:
    frame = geopandas.GeoDataFrame(geometry=[shapely.box(0, 0, 1, 1)], crs="EPSG:4326")
    frame.to_parquet(tmp_path / "a.parquet")
    with pytest.raises(InputError, match="holds Polygon in its column 'geometry'"):
        read_points(tmp_path / "a.parquet", DOMAIN)


def test_a_british_map_is_released_saved_asked_and_drawn(tmp_path: Path) -> None:
    points = geopandas.points_from_xy(*britain(4000), crs="EPSG:4326")
    matrix = read_points(geopandas.GeoDataFrame(geometry=points), BRITISH)
    release = publish(matrix, 1, noise="seeded:1")
    release.save(tmp_path / "a.parquet")
    loaded = Release.load(tmp_path / "a.parquet")
    assert loaded.domain.crs == "EPSG:27700"
    inside = dense(matrix)[:10, :].sum()
    answer = loaded.count([[400_000, 100_000, 500_000, 300_000]])
    assert abs(float(answer.count[0]) - inside) < 100  # noise of scale 1 in few boxes
    loaded.plot().savefig(tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 0


POINT = st.tuples(st.floats(allow_nan=False), st.floats(allow_nan=False))


def well_known(x: float, y: float, form: str) -> bytes | None:
    point = shapely.Point(x, y)
    forms: dict[str, Any] = {
        "little": lambda: shapely.to_wkb(point, byte_order=1),
        "big": lambda: shapely.to_wkb(point, byte_order=0),
        "z": lambda: shapely.to_wkb(shapely.Point(x, y, 7)),
        "srid": lambda: shapely.to_wkb(shapely.set_srid(point, 4326), include_srid=True),
        "none": lambda: None,
        "nothing": lambda: b"",
        "cut": lambda: shapely.to_wkb(point)[:20],
        "twice": lambda: shapely.to_wkb(point, byte_order=1) * 2,
        "junk": lambda: b"\xff" * 21,
    }
    found: bytes | None = forms[form]()
    return found


def as_objects(values: list[bytes | None]) -> Any:
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found


FORMS = ("little", "big", "z", "srid", "none", "nothing", "cut", "twice", "junk")


@given(st.lists(st.tuples(POINT, st.sampled_from(FORMS)), max_size=6))
@examples(150)
def test_a_point_is_decoded_by_its_own_bytes(given_: list[tuple[Any, str]]) -> None:
    """Alone or among others, whatever those are: two points in one field and none in the next are not
    one point in each."""
    texts = [well_known(point[0], point[1], form) for point, form in given_]
    for number in (0, 1):
        together = decode_points(as_objects(texts), number)
        alone = [float(decode_points(as_objects([text]), number)[0]) for text in texts]
        assert struct.pack(f"{len(alone)}d", *together) == struct.pack(f"{len(alone)}d", *alone)
        for (point, form), value in zip(given_, alone, strict=True):
            if form in ("little", "big", "z", "srid"):
                assert value == point[number]
