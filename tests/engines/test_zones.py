"""Zones and categories on every engine, against a slow reference in fractions; and one record more or less."""

from __future__ import annotations

import csv
import math
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import geopandas
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

from htf import Axis, Domain, InputError, Names, read_people_by_box, read_points, read_zones
from htf.frame.names import Outlines
from support import NaiveRecord, counted, exact_zone, naive_counts, naive_shares

GENERATOR = np.random.default_rng(4)
SITES = shapely.MultiPoint(GENERATOR.random((12, 2)))
TILES = list(shapely.get_parts(shapely.voronoi_polygons(SITES)))
TILES[3] = TILES[3].difference(TILES[3].centroid.buffer(0.05))  # a hole
LAYER = geopandas.GeoDataFrame(
    {"zone": [f"z{n}" for n in range(len(TILES))], "district": [str(n % 3) for n in range(len(TILES))]},
    geometry=TILES,
    crs="EPSG:2056",
)  # fmt: skip
ZONES = read_zones(LAYER, "zone", ["district"])
DESTINATIONS = read_zones(LAYER.iloc[:7], "zone", elsewhere="zone", name="dest_zone")
KINDS = ["tram", "bus", "Bus", "it's", 'a "b"', "Ωμέγα", "e\u0301", "é"]
KIND = Axis.named("kind", Names.of({"kind": KINDS}))
ANY_KIND = Axis.named("kind", Names.of({"kind": KINDS}, rest="other"))
COLUMNS = ["x", "y", "dx", "dy", "hour", "kind", "person"]


class Row(NamedTuple):
    x: float | None
    y: float | None
    dx: float | None
    dy: float | None
    hour: float
    kind: str | None
    person: str


def hard_numbers() -> list[tuple[float | None, float | None]]:
    corners = shapely.get_coordinates(TILES)
    beside = [np.nextafter(corners, direction) for direction in (np.inf, -np.inf)]
    known = [(float(x), float(y)) for x, y in np.concatenate([corners, *beside])]
    odd: list[float | None] = [math.nan, math.inf, -math.inf, None, 1e308, 5e-324, 1e17]
    return [*known, *((value, 0.5) for value in odd), *((0.5, value) for value in odd)]


def make_rows(number: int = 1200) -> list[Row]:
    hard, kinds = hard_numbers(), [*KINDS, "BUS", " bus", "ferry", "", None]

    def place() -> tuple[float | None, float | None]:
        if GENERATOR.random() < 0.5:
            return hard[GENERATOR.integers(len(hard))]
        x, y = GENERATOR.uniform(-0.3, 1.3, 2).tolist()
        return x, y

    return [
        Row(
            *place(),
            *place(),
            float(GENERATOR.integers(0, 24)),
            kinds[GENERATOR.integers(len(kinds))],
            f"p{int(GENERATOR.random() ** 2 * 90)}",
        )
        for _ in range(number)
    ]


ROWS = make_rows()
DOMAINS: dict[str, tuple[Domain, list[str]]] = {
    "zones": (Domain((ZONES,)), ["x", "y"]),
    "hours": (Domain((ZONES, Axis("hour", 0, 24, 6))), ["x", "y", "hour"]),
    "flows": (Domain((ZONES, DESTINATIONS)), ["x", "y", "dx", "dy"]),
    "flows of kinds": (Domain((ZONES, DESTINATIONS, ANY_KIND)), ["x", "y", "dx", "dy", "kind"]),
    "kinds on a map": (Domain((Axis("x", 0, 1, 5), Axis("y", 0, 1, 4), KIND)), ["x", "y", "kind"]),
}
CASES: dict[str, dict[str, Any]] = {
    "records": {},
    "people": {"user": "person"},
    "kept": {"user": "person", "max_records": 3},
    "once": {"user": "person", "once_per": "all"},
}


@cache
def naive_zone(axis: Axis, x: float | None, y: float | None) -> float | None:
    """The first zone of a point, in fractions; the rest for finite places in none."""
    if x is None or y is None or not (math.isfinite(x) and math.isfinite(y)):
        return None
    assert axis.names is not None
    assert axis.names.outlines is not None
    shapes = [shapely.from_wkb(shape) for shape in axis.names.outlines.shapes if shape]
    for number, shape in enumerate(shapes):
        west, south, east, north = shape.bounds
        if west <= x <= east and south <= y <= north and exact_zone(shape, x, y):
            return number
    return None if axis.names.rest is None else len(shapes)


def naive_kind(axis: Axis, text: str | None, strips: bool) -> float | None:
    assert axis.names is not None
    text = text.strip() if strips and text else text
    if not text:
        return None
    labels = axis.names.levels[0].labels
    rest = None if axis.names.rest is None else len(labels) - 1
    return labels.index(text) if text in labels else rest


def places(row: Row, domain: Domain, strips: bool) -> list[float | None]:
    known = {"x": row.x, "y": row.y, "hour": row.hour}
    found: list[float | None] = []
    for axis in domain.axes:
        if axis.outlines is not None:
            at = (row.x, row.y) if axis.name == "zone" else (row.dx, row.dy)
            found.append(naive_zone(axis, *at))
        else:
            found.append(naive_kind(axis, row.kind, strips) if axis.names else known[axis.name])
    return found


def expected(rows: list[Row], domain: Domain, case: str, strips: bool) -> Any:
    records: list[NaiveRecord] = [(places(row, domain, strips), row.person, None) for row in rows]
    asked = CASES[case]
    if case in ("records", "kept"):
        return naive_counts(records, domain, asked.get("max_records"))
    return naive_shares(records, domain, 256, asked.get("once_per"))


def table_of(rows: list[Row]) -> pa.Table:
    kinds = [pa.float64()] * 5 + [pa.string()] * 2
    return pa.table(
        {n: pa.array(column, k) for n, k, column in zip(COLUMNS, kinds, zip(*rows, strict=True), strict=True)}
    )  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place, table = tmp_path_factory.mktemp("zones"), table_of(ROWS)
    pq.write_table(table, place / "trips.parquet", row_group_size=300)
    with open(place / "trips.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows(
            ["" if v is None else repr(v) if isinstance(v, float) else v for v in r] for r in ROWS
        )
    with duckdb.connect(str(place / "trips.duckdb")) as connection:
        connection.register("given", table)
        numbers = ", ".join(f"{name} double" for name in COLUMNS[:5])
        # In which upper and lower case are equal.
        connection.execute(
            f"CREATE TABLE trips ({numbers}, kind varchar COLLATE NOCASE, person varchar)"
        )
        connection.execute("INSERT INTO trips SELECT * FROM given")
    with closing(sqlite3.connect(place / "trips.sqlite")) as connection:
        connection.execute(f"CREATE TABLE trips ({', '.join(COLUMNS)})")
        marks = ", ".join("?" * len(COLUMNS))
        connection.executemany(f"INSERT INTO trips VALUES ({marks})", ROWS)
        connection.commit()
    return place


@pytest.fixture(scope="module")
def server(postgres: Any) -> Iterator[str]:
    import psycopg

    address = str(postgres.get_uri())
    numbers = ", ".join(f"{name} float8" for name in COLUMNS[:5])
    with psycopg.connect(address) as connection:
        connection.execute(f"CREATE TABLE trips ({numbers}, kind text, person text)")
        with connection.cursor().copy("COPY trips FROM STDIN") as copy:
            for row in ROWS:
                copy.write_row(row)
    yield address
    with psycopg.connect(address) as connection:
        connection.execute("DROP TABLE trips")


def check(source: Any, name: str, case: str, strips: bool = False, **options: Any) -> None:
    domain, columns = DOMAINS[name]
    matrix = read_points(source, domain, columns, **CASES[case], **options)
    assert counted(matrix) == expected(ROWS, domain, case, strips)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", DOMAINS)
def test_in_duckdb(name: str, case: str, folder: Path) -> None:
    check(folder / "trips.parquet", name, case)
    check(folder / "trips.duckdb", name, case, table="trips")
    check(folder / "trips.csv", name, case, strips=True)
    check(folder / "trips.sqlite", name, case, strips=True, table="trips")


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", DOMAINS)
def test_in_postgresql(name: str, case: str, server: str) -> None:
    check(server, name, case, table="trips")
    check(server, name, case, sql="SELECT * FROM trips")


@pytest.mark.parametrize(
    ("name", "case"),
    [*((name, "people") for name in DOMAINS), *(("flows of kinds", case) for case in CASES)],
)
@pytest.mark.usefixtures("spark")
def test_in_spark(name: str, case: str, folder: Path) -> None:
    check(folder / "trips.parquet", name, case, engine="spark")


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("name", ["flows of kinds", "kinds on a map"])
def test_long_lists_are_looked_up_alike(
    name: str, folder: Path, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("htf.ingest.rows.MOST_COMPARED", 1)
    check(folder / "trips.parquet", name, "people")
    check(folder / "trips.csv", name, "records", strips=True)
    check(folder / "trips.parquet", name, "people", engine="spark")
    check(server, name, "people", table="trips")


def test_points_of_another_reference_system(folder: Path, server: str) -> None:
    """Also from a database, which cannot transform them itself."""
    shapes = LAYER.assign(geometry=LAYER.translate(2_600_000, 1_200_000)).set_crs("EPSG:2056")
    domain = Domain((read_zones(shapes, "zone", crs="EPSG:3857"),))
    moved = "x + 2600000 AS x, y + 1200000 AS y FROM trips"
    found = [
        read_points(source, domain, ["x", "y"], crs="EPSG:2056", sql=f"SELECT {moved}")
        for source in (folder / "trips.duckdb", server)
    ]
    assert counted(found[0]) == counted(found[1])
    assert sum(counted(found[0]).values()) > 500


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", ["hours", "flows of kinds"])
def test_one_record_more_changes_its_own_cell_alone(name: str, case: str) -> None:
    """Every hard point, each alone among others; of a person of its own."""
    domain, columns = DOMAINS[name]
    few = ROWS[:40]
    without = counted(read_points(table_of(few), domain, columns, **CASES[case]))
    worth = 256 if case in ("people", "once") else 1
    for number, (x, y) in enumerate(hard_numbers()[::9]):
        row = Row(x, y, 0.5, 0.5, 3.0, "tram", "somebody new")
        at = (7 * number) % len(few)
        added = counted(
            read_points(table_of([*few[:at], row, *few[at:]]), domain, columns, **CASES[case])
        )
        changed = {c: n - without.get(c, 0) for c, n in added.items() if n != without.get(c, 0)}
        cell = places(row, domain, False)
        assert set(without) <= set(added)
        if None in cell:
            assert changed == {}
        else:
            ((where, by),) = changed.items()
            assert (where[0], by) == (cell[0], worth)


def test_arrays_and_guesses() -> None:
    domain = Domain((ZONES,))
    lists = [[row.x for row in ROWS], [row.y for row in ROWS]]
    arrays = [np.array(column, dtype=float) for column in lists]
    wanted = expected(ROWS, domain, "records", False)
    assert counted(read_points(arrays, domain)) == wanted
    said: list[str] = []
    assert (
        counted(
            read_points(
                {"lon": arrays[0], "lat": arrays[1]}, domain, tell=said.append, crs="EPSG:2056"
            )
        )
        == wanted
    )
    assert said[0] == "Using the columns 'lon' as x and 'lat' as y."
    points = geopandas.GeoDataFrame(
        geometry=shapely.points(*np.nan_to_num(arrays)), crs="EPSG:2056"
    )
    assert sum(counted(read_points(points, domain)).values()) >= sum(wanted.values())
    with pytest.raises(InputError, match=r"needs 2 \(x and y of zones\) arrays, got 1"):
        read_points([arrays[0]], domain)
    with pytest.raises(InputError, match=r"needs 2 \(x and y of zones\) columns, got x"):
        read_points({"x": [1.0], "y": [1.0]}, domain, ["x"])
    with pytest.raises(InputError, match="have the names of degrees"):
        read_points({"lon": arrays[0], "lat": arrays[1]}, domain)


def test_destinations_are_guessed_by_name() -> None:
    domain = DOMAINS["flows"][0]
    row = {"x": [0.5], "y": [0.5], "dest_x": [0.1], "dest_y": [0.2]}
    assert sum(counted(read_points(row, domain)).values()) == 1


def test_nothing_in_any_zone() -> None:
    with pytest.raises(InputError, match="No record is in any cell of the map") as caught:
        read_points({"x": [50.0], "y": [50.0]}, Domain((ZONES,)))
    assert "bounds W,S,E,N" not in str(caught.value)
    assert "--axis" not in str(caught.value)
    late = {"x": [0.5], "y": [0.5], "hour": [50]}
    with pytest.raises(InputError, match="the further axes"):
        read_points(late, Domain((ZONES, Axis("hour", 0, 24, 4))), ["x", "y", "hour"])


def test_zones_without_outlines() -> None:
    assert ZONES.names is not None
    bare = Names(ZONES.names.levels, None, Outlines((b"",) * ZONES.cells))
    with pytest.raises(InputError, match="have no outlines"):
        read_points({"x": [0.5], "y": [0.5]}, Domain((Axis.named("zone", bare),)))


def test_distinct_people_need_a_map() -> None:
    with pytest.raises(InputError, match="different people are counted"):
        read_people_by_box({"x": [0.5], "y": [0.5], "u": [1]}, DOMAINS["hours"][0], 2, user="u")
