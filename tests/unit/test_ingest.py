"""From points to cells: edges, dirt, and all kinds of tables."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htf import Axis, Domain, FrequencyMatrix, InputError, read_points
from htf.curator.frequency import MOST_RECORDS
from htf.errors import NothingInsideError
from htf.ingest.engines import Engine, open_duckdb
from htf.ingest.people import CELL
from htf.ingest.points import _to_matrix, read_matrix, read_records_of_each
from htf.ingest.reading import Reading
from htf.ingest.rows import cell_of
from htf.ingest.sources import Source
from support import dense, grid
from telling import examples

DOMAIN = Domain.from_bounds(-10, 40, 10, 60, (4, 2))
LON = [-10.0, 9.999999, 10.0, -10.000001, 0.0, math.nan, math.inf, -math.inf, 3.0, 3.0]
LAT = [40.0, 59.999999, 50.0, 50.0, 60.0, 50.0, 50.0, 50.0, math.nan, 55.0]
EXPECTED = np.array([[1, 0], [0, 0], [0, 1], [0, 1]])  # of the above, three are inside

NOTHING_INSIDE = pytest.mark.filterwarnings("ignore::htf.ingest.remarks.NothingInside")


def sources(folder: Path) -> dict[str, Any]:
    table = pa.table({"name": ["x"] * len(LON), "lat": LAT, "lon": LON})
    pq.write_table(table, folder / "points.parquet")
    pd.DataFrame({"lat": LAT, "lon": LON}).to_csv(folder / "points.csv", index=False)
    pd.DataFrame({"lat": LAT, "lon": LON}).to_csv(folder / "points.csv.gz", index=False)
    return {
        "parquet": folder / "points.parquet",
        "parquet as text": str(folder / "points.parquet"),
        "csv": folder / "points.csv",
        "csv.gz": folder / "points.csv.gz",
        "arrow": table,
        "pandas": table.to_pandas(),
        "polars": pl.from_arrow(table),
        "mapping": {"lon": LON, "lat": LAT},
        "arrays": (np.array(LON), np.array(LAT)),
        "array": np.array([LON, LAT]),
    }


@pytest.mark.parametrize("kind", [
    "parquet", "parquet as text", "csv", "csv.gz", "arrow", "pandas", "polars", "mapping", "arrays", "array",
])  # fmt: skip
def test_every_source_gives_the_same_cells(kind: str, tmp_path: Path) -> None:
    """Lower edges are inside, upper ones outside; NaN, infinite and missing points are left out."""
    matrix = read_points(sources(tmp_path)[kind], DOMAIN)
    assert dense(matrix).tolist() == EXPECTED.tolist()


def test_missing_values_and_whole_numbers() -> None:
    table = pa.table(
        {"lon": pa.array([1, None, 3], pa.int32()), "lat": pa.array([45, 46, None], pa.int8())}
    )
    assert dense(read_points(table, DOMAIN)).sum() == 1
    frame = pl.DataFrame({"lon": [1.0, None], "lat": [45.0, 45.0]})
    assert dense(read_points(frame, DOMAIN)).sum() == 1


@NOTHING_INSIDE
def test_nothing_inside_is_an_empty_matrix() -> None:
    for source in ((np.array([500.0]), np.array([1.0])), (np.array([]), np.array([]))):
        assert dense(read_points(source, DOMAIN, allow_empty=True)).sum() == 0
        with pytest.raises(NothingInsideError, match="No record is inside the bounds"):
            read_points(source, DOMAIN)


def test_three_and_four_axes() -> None:
    generator = np.random.default_rng(2)
    for dimensions in (1, 3, 4):
        domain = grid(*range(3, 3 + dimensions))
        points = generator.uniform(-1, 8, (dimensions, 500))
        expected = np.histogramdd(points.T, bins=[np.arange(n + 1) for n in domain.shape])[0]
        assert dense(read_points(points, domain)).tolist() == expected.tolist()


@given(
    st.floats(-1e3, 1e3),
    st.floats(1e-3, 1e3),
    st.integers(1, 10_000),
    st.lists(st.floats(-1e3, 2e3), min_size=1, max_size=30),
)
@examples(60)
def test_cells_agree_with_the_axis_to_the_bit(
    low: float, width: float, cells: int, values: list[float]
) -> None:
    """The SQL expression against Axis.to_cells, also next to cell edges and just below the top."""
    axis = Axis("x", low, low + width, cells)
    points = np.array(
        [*values, low, *np.nextafter(axis.from_cells(np.arange(min(cells, 50))), -np.inf)]
    )
    points = np.append(points, np.nextafter(axis.high, -np.inf))
    inside = points[(points >= axis.low) & (points < axis.high)]
    expected = np.minimum(np.floor(axis.to_cells(inside)), cells - 1).astype(int)
    matrix = read_points([points], Domain((axis,)))
    counts = dict(
        zip(matrix.exact_coordinates[0].tolist(), matrix.exact_counts.tolist(), strict=True)
    )
    assert counts == dict(
        zip(*(a.tolist() for a in np.unique(expected, return_counts=True)), strict=True)
    )


SECRET = "51.4778901"


def failing(folder: Path) -> dict[str, Any]:
    (folder / "text.csv").write_text(f"lon,lat\n1,{SECRET}N\n2,{SECRET}N\n")
    (folder / "text.parquet").touch()
    pq.write_table(pa.table({"lon": [{SECRET: 1}], "lat": [1.0]}), folder / "text.parquet")
    (folder / "ragged.csv").write_text(
        "lon,lat\n" + f"1,{SECRET}\n" * 50 + f'"1,{SECRET}\n2,3,4,5\n'
    )
    (folder / "notes.docx").write_text("hello")
    (folder / "cut.parquet").write_bytes(b"PAR1" + SECRET.encode() * 10)
    (folder / "wide.csv").write_text("lon,lat\n" + f"1,{SECRET}\n" * 50 + f"1,{SECRET},3\n")
    (folder / "bare.csv").write_text(f"ann,1,{SECRET}\nbob,2,{SECRET}\n")
    return {
        "text.csv": (folder / "text.csv", "'lat' must hold numbers, but it holds text"),
        "text.parquet": (folder / "text.parquet", "'lon' must hold numbers, but it holds struct"),
        "ragged.csv": (folder / "ragged.csv", "quoted field that never ends"),
        "wide.csv": (folder / "wide.csv", "cannot read"),
        "bare.csv": (folder / "bare.csv", "first line of .* must name the columns"),
        "notes.docx": (folder / "notes.docx", "name must end in one of"),
        "cut.parquet": (folder / "cut.parquet", "cannot read .*cut.parquet"),
        "missing.csv": (folder / "missing.csv", "there is no file"),
        "object": (object(), "cannot read points from an object"),
        "uneven": (([1.0, 2.0], [1.0]), "arrays of numbers of the same length"),
        "three": (([1.0], [1.0], [1.0]), "2 axes, so it needs as many arrays, got 3"),
        "columns": (
            pa.table({"x": [1.0], "lat": [2.0]}),
            "Of 'x', 'lat', none would do: name them",
        ),
    }


@pytest.mark.parametrize("case", [
    "text.csv", "text.parquet", "ragged.csv", "wide.csv", "bare.csv", "notes.docx", "cut.parquet", "missing.csv", "object", "uneven", "three", "columns",
])  # fmt: skip
def test_bad_input_is_named_without_quoting_the_data(case: str, tmp_path: Path) -> None:
    source, says = failing(tmp_path)[case]
    with pytest.raises(InputError, match=says) as caught:
        read_points(source, DOMAIN)
    told = str(caught.value) + repr(caught.value.__cause__) + str(caught.value.__suppress_context__)
    assert SECRET not in told
    assert caught.value.__context__ is None, "the reader's own message must not be kept"


def test_one_column_for_each_axis() -> None:
    with pytest.raises(InputError, match=r"2 axes \(x, y\)"):
        read_points(pa.table({"lon": [1.0]}), DOMAIN, ["lon"])


def test_odd_column_names_are_only_names() -> None:
    table = {'lon"; DROP TABLE points; --': [1.0], "la't": [45.0]}
    assert dense(read_points(table, DOMAIN, list(table))).sum() == 1


def test_progress_is_a_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shares: list[float] = []
    monkeypatch.setattr("htf.ingest.engines.POLL_SECONDS", 0.001)
    table = pa.table({"lon": np.zeros(3_000_000), "lat": np.full(3_000_000, 45.0)})
    pq.write_table(table, tmp_path / "many.parquet")
    read_points(tmp_path / "many.parquet", DOMAIN, progress=shares.append)
    assert shares
    assert all(0 <= share <= 1 for share in shares)


ONE_CELL: Any = np.zeros((2, 1), dtype=np.int32)
NO_ARRAY: Any = [1]


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda d: FrequencyMatrix.from_dense(d, np.zeros((2, 4))), r"shape \(2, 4\), the domain \(4, 2\)"),
        (lambda d: FrequencyMatrix.from_dense(d, np.full((4, 2), 0.5)), "whole numbers"),
        (lambda d: FrequencyMatrix.from_dense(d, np.full((4, 2), -1)), "must not be negative"),
        (lambda d: FrequencyMatrix.from_cells(d, [[4], [0]]), "axis 'x' must lie between 0 and 3"),
        (lambda d: FrequencyMatrix.from_cells(d, [[-1, 3], [0, 0]]), "axis 'x' must lie between 0 and 3"),
        (lambda d: FrequencyMatrix.from_cells(d, [[0, 4], [0, 0]]), "axis 'x' must lie between 0 and 3"),
        (lambda d: FrequencyMatrix.from_cells(d, [[0, 1], [0, 0]], [3, -1]), "must not be negative"),
        (lambda d: FrequencyMatrix.from_cells(d, [[0], [0]], [1, 2]), "one count for each cell"),
        (lambda d: FrequencyMatrix.from_cells(d, [[0], [0]], [2**60]), r"more than 2\*\*40"),
        # Of half a record the half would show: noise is of whole numbers.
        (lambda d: FrequencyMatrix(d, ONE_CELL, np.array([0.5])), "counts must be an array of whole numbers"),
        (lambda d: FrequencyMatrix(d, ONE_CELL, NO_ARRAY), "counts must be an array of whole numbers"),
        (lambda d: FrequencyMatrix(d, ONE_CELL * 0.5, np.array([1])), "coordinates must be an array of whole"),
        (lambda d: FrequencyMatrix(d, ONE_CELL, np.array([1, 2])), "a row for each axis, a column for each"),
        (lambda d: FrequencyMatrix(d, ONE_CELL[:, None], np.array([[1]])), "a row for each axis, a column for each"),
    ],
)  # fmt: skip
def test_bad_matrices_are_refused(build: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        build(DOMAIN)


def test_repeated_cells_add_up() -> None:
    matrix = FrequencyMatrix.from_cells(DOMAIN, [[1, 1, 3, 0], [0, 0, 1, 0]], [5, 6, 7, 0])
    assert dense(matrix).tolist() == [[0, 0], [11, 0], [0, 0], [0, 7]]
    assert len(matrix.exact_counts) == 2
    assert not matrix.exact_counts.flags.writeable
    assert not matrix.exact_coordinates.flags.writeable
    single = FrequencyMatrix.from_cells(DOMAIN, [[1, 3], [0, 1]])
    assert dense(single).tolist() == [[0, 0], [1, 0], [0, 0], [0, 1]]
    assert len(FrequencyMatrix.from_cells(DOMAIN, [[], []]).exact_counts) == 0


def read_text(folder: Path, text: str, name: str = "points.csv", **options: Any) -> int:
    (folder / name).write_bytes(text.encode())
    matrix = read_points(folder / name, DOMAIN, **options)
    return int(matrix.exact_counts.sum())


def test_one_record_does_not_change_how_the_others_are_read(tmp_path: Path) -> None:
    """A reader that guesses the quote from the rows would lose half of these to one apostrophe."""
    rows = ["1.5,45.5,Cafe"] * 3000 + ["1.5,45.5,'Inoteca"] + ["1.5,45.5,Cafe"] * 3000
    text = "lon,lat,venue\n" + "\n".join(rows)
    before = read_text(tmp_path, text + "\n")
    after = read_text(tmp_path, text + "\n1.5,45.5,Students'\n")
    assert (before, after) == (6001, 6002)


@NOTHING_INSIDE
@pytest.mark.parametrize(
    ("text", "records"),
    [
        ("lon,lat\n", 0),
        ("lon,lat\nn/a,45\n1,45\n,\n", 1),
        ("lon;lat\n1;45\n2;46\n", 2),
        ("a\tlon\tlat\nx,y\t1\t45\n", 1),
        ("lat|lon\n45|1\n", 1),
        ("lon,lat\r\n1,45\r\n2,45\r\n", 2),
        ("\ufefflon,lat\n1,45\n", 1),
        ('lon,lat,name\n1,45,"a, ""b"""\n"2","46",c\n', 2),
        ('"lon", "lat"\n1,45\n', 1),
        ("lon,lat\n 1 , 45 \n1e0,4.5e1\n", 2),
    ],
)
def test_text_files_of_many_habits(tmp_path: Path, text: str, records: int) -> None:
    assert read_text(tmp_path, text, allow_empty=True) == records


def test_columns_may_be_called_anything(tmp_path: Path) -> None:
    """`cell` and `records` are names in our own query, and usual ones in phone data."""
    text = "cell,records,p0,lat\n1,2,3,45\n1,2,3,45\n2,9,3,45\n"
    for column in ("cell", "records", "p0"):
        assert read_text(tmp_path, text, columns=[column, "lat"]) == 3
    axis = Domain((Axis("x", 0.0, 10.0, 5),))
    matrix = read_points({"cell": [1.0, 1.2, 9.0]}, axis, ["cell"])
    assert matrix.exact_counts.tolist() == [2, 1] or matrix.exact_counts.tolist() == [1, 2]


def test_a_column_name_may_look_like_a_query(tmp_path: Path) -> None:
    text = "lon FROM x,lat\nnone,45\n"
    with pytest.raises(InputError, match="'lon FROM x' must hold numbers, but it holds text"):
        read_text(tmp_path, text, columns=["lon FROM x", "lat"])


def test_a_name_that_is_a_pattern_is_refused(tmp_path: Path) -> None:
    (tmp_path / "g1.csv").write_text("lon,lat\n1,45\n")
    with pytest.raises(InputError, match="must not contain"):
        read_text(tmp_path, "lon,lat\n1,45\n", name="g[1].csv")


@NOTHING_INSIDE
def test_masked_and_missing_values_in_memory() -> None:
    masked = np.ma.masked_array([1.0, 2.0, 3.0], mask=[False, True, False])
    assert read_points((masked, np.full(3, 45.0)), DOMAIN).exact_counts.sum() == 2
    nothing = pd.DataFrame({"lon": [None, None], "lat": [1.0, 2.0]})
    assert read_points(nothing, DOMAIN, allow_empty=True).exact_counts.sum() == 0


def test_cells_one_row_for_each_axis() -> None:
    with pytest.raises(InputError, match="one row for each of 2 axes"):
        FrequencyMatrix.from_cells(DOMAIN, [[0, 1], [1, 0], [2, 1]])


@pytest.mark.parametrize("once_per", [None, "all"])
def test_people_are_told_apart_where_a_database_takes_them_for_one(
    once_per: str | None, tmp_path: Path
) -> None:
    """In a column that knows no case; what is kept would else hang on the order of rows."""
    generator = np.random.default_rng(8)
    names = np.repeat(["a", "A", "b"], 12)
    x = generator.integers(0, 8, names.size) + 0.5
    domain, found = Domain.from_bounds(0, 0, 8, 1, (8, 1)), list[Any]()
    reading: dict[str, Any] = {"user": "who", "max_records": 3, "once_per": once_per}
    for kind in ("varchar", *["varchar collate nocase"] * 5):
        name = tmp_path / f"{len(found)}.duckdb"
        with duckdb.connect(name) as connection:
            connection.execute(f"CREATE TABLE t (x double, y double, who {kind})")
            order = generator.permutation(names.size)
            rows = [(float(x[n]), 0.5, str(names[n])) for n in order]
            connection.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
        matrix = read_points(name, domain, ["x", "y"], table="t", **reading)
        assert matrix.exact_counts.sum() == 3 * 3
        found.append(dense(matrix).tolist())
    assert found == found[:1] * 6


@pytest.mark.parametrize(("low", "high", "crosses"), [(-1, 1e-20, True), (1, 2, False)])
def test_a_point_just_below_the_top_is_in_the_last_cell(
    low: float, high: float, crosses: bool
) -> None:
    """Whether it is rounded across the edge, as of the first axis, or not."""
    axis = Axis("x", low, high, 1024)
    point = np.nextafter(high, low)
    assert (axis.to_cells(point) == 1024) == crosses
    assert read_points([[point]], Domain((axis,))).exact_coordinates.tolist() == [[1023]]


def test_duckdb_tells_how_far_it_is_and_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    """Of queries that take longer than two seconds it prints a bar of its own, unless it is told not to."""
    shares: list[float] = []
    with open_duckdb(None) as engine:
        engine.connection.execute("SET progress_bar_time = 1")
        query = "SELECT hash(range) % 100 AS n FROM range(60_000_000)"
        engine.connection.execute(f"CREATE TEMP VIEW numbers AS {query}")
        numbers = engine.backend.table("numbers")
        engine.run(numbers.group_by("n").agg(records=numbers.count()), "numbers", shares.append)
    assert capfd.readouterr() == ("", "")
    assert shares[-1] == 1
    assert len(shares) > 1
    assert all(0 <= share <= 1 for share in shares)


def test_a_file_that_changes_before_the_end_is_refused(tmp_path: Path) -> None:
    """After the rows were counted, or while remarks are made. Records are counted, and those that are too many
    taken off again, in two readings: of different rows somebody could keep more than may be."""
    path, reading = tmp_path / "points.csv", Reading(["lon", "lat"], user="who")
    path.write_text("lon,lat,who\n3.0,55.0,ann\nnowhere,55.0,bob\n")

    def change(_: Any) -> None:
        with path.open("a") as file:
            file.write("\n")

    moments: list[dict[str, Any]] = [{"progress": change}, {"tell": change}]
    for options in moments:
        with pytest.raises(InputError, match="changed while it was read"):
            read_matrix(path, DOMAIN, replace(reading, max_records=2), **options)
    with pytest.raises(InputError, match="changed while it was read"):
        read_records_of_each(path, DOMAIN, reading, 2, progress=change)
    assert read_matrix(path, DOMAIN, replace(reading, max_records=2)).exact_counts.tolist() == [1]


def test_places_outside_have_no_cell_on_any_engine() -> None:
    """Some engines give a cell to what is not a number, so it is taken out before they are asked."""
    axis = Axis("x", 1.0, 4.0, 3)
    places = [math.nan, math.inf, -math.inf, 0.5, 1.0, 2.5, 3.9, 4.0, 9.0, None]
    rows = ibis.memtable(pa.table({"p0": pa.array(places, pa.float64())}))
    engine = Engine(ibis.duckdb.connect())
    assert not engine.floors_anything
    found = engine.fetch(rows.select(cell=cell_of(rows, Domain((axis,)), engine)))
    assert found["cell"].to_pylist() == [*[None] * 4, 0, 1, 2, *[None] * 3]


NO_SOURCE = Source(None, "", (), None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("cells", "records", "says"),
    [
        ([-1, 0], [1, 1], "outside of the bounds"),
        ([0, 4], [1, 1], "outside of the bounds"),
        ([1], [MOST_RECORDS + 1], "more than"),
        ([3, 0], [MOST_RECORDS, 1], "more than"),
    ],
)
def test_counts_that_no_engine_can_mean(cells: list[int], records: list[int], says: str) -> None:
    with pytest.raises(InputError, match=says):
        _to_matrix(grid(2, 2), {CELL: cells, "records": records}, Reading(), NO_SOURCE)


def test_as_many_records_as_are_supported() -> None:
    found = {CELL: [3, 0], "records": [1, MOST_RECORDS - 1]}
    matrix = _to_matrix(grid(2, 2), found, Reading(), NO_SOURCE)
    assert dense(matrix).tolist() == [[MOST_RECORDS - 1, 0], [0, 1]]
