"""Points that cannot be read: a message without data, exit code 2, nothing charged, nothing written."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from htf import BudgetFile, Domain, InputError, Release, read_points
from htf.cli import main
from support import require, require_package

SECRET = "51.4778901"
PASSWORD = "hunter2"
GOOD = f"lon,lat,who,at\n0.5,0.5,ann,2020-01-01T10:00:00\n0.25,{SECRET},bob,2020-01-01T11:00:00\n"

OURS = ("htf", "builtins", "pyproj")  # which quotes names of reference systems, and no data

Arguments = list[str]


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[BaseException]:
    """The errors that commands ended with."""
    found: list[BaseException] = []
    complain = main._complain

    def keep(message: str, code: int, error: BaseException) -> int:
        found.append(error)
        return complain(message, code, error)

    monkeypatch.setattr(main, "_complain", keep)
    return found


def release(folder: Path, *arguments: Any, bounds: str = "0,0,1,1") -> Arguments:
    if not (folder / "budget.sqlite").exists():
        unit = "one person" if "--user" in arguments else "one record"
        BudgetFile.create(folder / "budget.sqlite", "pings", 1, unit=unit)
    asked = ["--bounds", bounds, "--cells", "8", "--mechanism", "ug", "--epsilon", "0.5"]
    charged = ["--budget", folder / "budget.sqlite", "--dataset", "pings"]
    given = [*arguments, *asked, *charged, "--noise", "fast", "-o", folder / "out.parquet"]
    return ["release", *map(str, given)]


def check_nothing_happened(folder: Path, told: str) -> None:
    assert SECRET not in told
    assert PASSWORD not in told
    assert "Traceback" not in told
    assert not list(folder.glob("*out*"))
    assert not list(folder.glob("**/*unfinished*"))
    assert BudgetFile(folder / "budget.sqlite", "pings").account().entries == ()


def check_chain(error: BaseException | None) -> None:
    """A debugger or logger walks from an error to what it came from."""
    while error is not None:
        assert SECRET not in repr(error)
        assert PASSWORD not in repr(error)
        assert type(error).__module__.split(".")[0] in OURS, "an engine's own error"
        error = error.__cause__ or error.__context__


def table(folder: Path, name: str, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), folder / name)
    return folder / name


def csv(folder: Path, text: str, name: str = "points.csv") -> Path:
    (folder / name).write_bytes(text.encode("utf-8") if isinstance(text, str) else text)
    return folder / name


def cut(path: Path) -> Path:
    path.write_bytes(path.read_bytes()[:-20])
    return path


def many(folder: Path, *write: Callable[[Path], Any], name: str = "many") -> Path:
    (folder / name).mkdir()
    for make in write:
        make(folder / name)
    return folder / name


def sqlite_file(folder: Path) -> Path:
    with closing(sqlite3.connect(folder / "points.sqlite")) as connection:
        connection.execute("CREATE TABLE pings (lon, lat)")
        connection.execute(f"INSERT INTO pings VALUES (0.5, {SECRET})")
        connection.commit()
    return folder / "points.sqlite"


def sqlite_bytes(folder: Path) -> Path:
    path = sqlite_file(folder)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"INSERT INTO pings VALUES (0.5, CAST(x'ff' || '{SECRET}' AS TEXT))")
        connection.commit()
    return path


def duckdb_file(folder: Path) -> Path:
    with duckdb.connect(str(folder / "points.duckdb")) as connection:
        connection.execute(f"CREATE TABLE pings AS SELECT 0.5 AS lon, {SECRET} AS lat, 'a' AS at")
    return folder / "points.duckdb"


def geo(crs: str) -> Callable[[Path], Any]:
    def write(folder: Path) -> None:
        import geopandas

        frame = geopandas.GeoDataFrame(geometry=geopandas.points_from_xy([0.5], [0.5]), crs=crs)
        frame.to_parquet(folder / f"{crs.replace(':', '')}.parquet")

    return write


def polygons(folder: Path) -> tuple[Any, ...]:
    shape = f'{{"type": "Polygon", "coordinates": [[[0, 0], [{SECRET}, 0], [0, 1], [0, 0]]]}}'
    feature = f'{{"type": "Feature", "properties": {{}}, "geometry": {shape}}}'
    return (csv(folder, f'{{"type": "FeatureCollection", "features": [{feature}]}}', "a.geojson"),)


UNREACHABLE = f"postgresql://ann:{PASSWORD}@127.0.0.1:1/city"
LON_LAT: dict[str, Any] = {"lon": [0.5], "lat": [float(SECRET)]}
PEOPLE = ("--user", "who", "--max-records", "2")

BAD: dict[str, tuple[Callable[[Path], tuple[Any, ...]], str]] = {
    "no such column": (lambda f: (csv(f, GOOD), "--x", "nope", "--y", "lat"), "must name the columns"),
    "no such column of a table": (lambda f: (table(f, "a.parquet", **LON_LAT), "--x", "nope", "--y", "lat"), "no column 'nope'; there are 'lon', 'lat'"),
    "no such user": (lambda f: (table(f, "a.parquet", **LON_LAT), *PEOPLE), "no column 'who'"),
    "text for numbers": (lambda f: (csv(f, f"lon,lat\nE0.5,N{SECRET}\n"),), "must hold numbers, but it holds text"),
    "text in a table": (lambda f: (table(f, "a.parquet", lon=[SECRET], lat=[1.0]),), "'lon' must hold numbers, but it holds string"),
    "users are fractions": (lambda f: (table(f, "a.parquet", **LON_LAT, who=[1.5]), *PEOPLE), "must identify people by whole numbers or text"),
    "times are truths": (lambda f: (table(f, "a.parquet", **LON_LAT, at=[True], who=["a"]), *PEOPLE, "--time", "at"), "must hold times, but it holds boolean"),
    "times in another form": (lambda f: (csv(f, "lon,lat,who,at\n0.5,0.5,ann,11/09/2017\n"), *PEOPLE, "--time", "at"), "must hold times, as in"),
    "a cut file": (lambda f: (cut(table(f, "a.parquet", **LON_LAT)),), "cannot read"),
    "an empty file": (lambda f: (csv(f, "", "a.parquet"),), "cannot read"),
    "one cut file of many": (lambda f: (many(f, lambda g: table(g, "a.parquet", **LON_LAT), lambda g: cut(table(g, "b.parquet", **LON_LAT))),), "many/b.parquet"),
    "one ragged file of many": (lambda f: (many(f, lambda g: csv(g, GOOD), lambda g: csv(g, GOOD + f"{SECRET},1\n", "b.csv")),), "cannot read"),
    "an open quote": (lambda f: (csv(f, GOOD + f'"{SECRET},1,2,3\n'),), "quoted field that never ends"),
    "not UTF-8": (lambda f: (csv(f, GOOD.encode() + b"0.5,0.5,J\xfcrgen " + SECRET.encode() + b",\n"),), "not text in UTF-8"),  # type: ignore[arg-type]
    "UTF-16": (lambda f: (csv(f, GOOD.encode("utf-16")),), "give --read encoding=utf-16"),  # type: ignore[arg-type]
    "a wrong encoding": (lambda f: (csv(f, GOOD.replace("ann", "J\xfcrgen")), "--read", "encoding=ascii"), "is not text in ascii"),
    "decimal commas": (lambda f: (csv(f, f"lon;lat\n0,5;{SECRET.replace('.', ',')}\n"),), "(to read it: --read decimal=,)"),
    "most decimal commas": (lambda f: (csv(f, "lon;lat\n0,5;0,5\n0,5;0,5\n0;0\n"),), "--read decimal=,"),
    "a title": (lambda f: (csv(f, f"Pings of {SECRET}\n\n{GOOD}"),), "give --read skip-lines=2"),
    "totals": (lambda f: (csv(f, f"{GOOD}Total,{SECRET}\n"),), "line 4 (2)"),
    "dates with points": (lambda f: (csv(f, "lon,lat,who,at\n0.5,0.5,ann,31.09.2017 08:30\n"), *PEOPLE, "--time", "at"), "give --read time-format='%d.%m.%Y %H:%M'"),
    "a layer of polygons": (polygons, "points are needed"),
    "other columns": (lambda f: (many(f, lambda g: csv(g, GOOD), lambda g: csv(g, "lat,lon\n1,2\n", "b.csv")),), "differ from file to file"),
    "other types": (lambda f: (many(f, lambda g: table(g, "a.parquet", lon=[1], lat=[1.0]), lambda g: table(g, "b.parquet", **LON_LAT)),), "'lon' is not the same in all files"),
    "a column less": (lambda f: (many(f, lambda g: table(g, "a.parquet", **LON_LAT), lambda g: table(g, "b.parquet", lon=[0.5])),), "'lat' is not the same in all files"),
    "text and Parquet": (lambda f: (many(f, lambda g: table(g, "a.parquet", **LON_LAT), lambda g: csv(g, GOOD)),), "text files and Parquet files"),
    "other systems": (lambda f: (many(f, geo("EPSG:4326"), geo("EPSG:27700")),), "differ in their column of points or its reference system"),
    "an empty folder": (lambda f: (many(f),), "has no files"),
    "a folder that is called a file": (lambda f: (many(f, name="a.csv"),), "has no files"),
    "no file": (lambda f: (f / "none.csv",), "there is no file"),
    "no such memory": (lambda f: (csv(f, GOOD), "--read", "memory=lots"), "as in 500MB or 4GB, got 'lots'"),
    "no such engine": (lambda f: (csv(f, GOOD), "--read", "engine=abacus"), "must be one of duckdb, spark"),
    "little memory for Spark": (lambda f: (csv(f, GOOD), "--read", "engine=spark", "--read", "memory=50MB"), "at least 600MB"),
    "no such system": (lambda f: (csv(f, GOOD), "--read", "points-crs=EPSG:1"), "no reference system 'EPSG:1'"),
    "a table of a text file": (lambda f: (csv(f, GOOD), "--read", "table=pings"), "is for a database"),
    "no table": (lambda f: (sqlite_file(f),), "which table of the database"),
    "unknown table of SQLite": (lambda f: (sqlite_file(f), "--read", "table=nope"), "no table 'nope'"),
    "unknown table of DuckDB": (lambda f: (duckdb_file(f), "--read", "table=nope"), "cannot read the table nope"),
    "not SQLite": (lambda f: (csv(f, GOOD * 50, "a.sqlite"), "--read", "table=pings"), "not an SQLite file"),
    "not SQLite, a query": (lambda f: (csv(f, GOOD * 50, "a.db"), "--read", "sql=SELECT lon, lat FROM pings"), "cannot read a.db"),
    "not DuckDB": (lambda f: (csv(f, GOOD * 500, "a.duckdb"), "--read", "table=pings"), "cannot read"),
    "a bad query": (lambda f: (duckdb_file(f), "--read", f"sql=SELECT CAST('{SECRET}N' || lon AS DOUBLE) AS lon, 0.5 AS lat FROM pings"), "cannot read"),
    "an unreachable server": (lambda _: (UNREACHABLE, "--read", "table=pings"), "the server does not answer"),
    "another kind of server": (lambda _: (UNREACHABLE.replace("postgresql", "mysql"), "--read", "table=t"), "only addresses of postgresql://"),
    "a spelling": (lambda _: (UNREACHABLE.replace("postgresql", "PostgreSQL"), "--read", "table=t"), "only addresses of postgresql://"),
    "no table of a server": (lambda _: (UNREACHABLE,), "which table"),
    "an address that is none": (lambda _: (f"postgresql://ann:{PASSWORD}@[", "--read", "table=t"), "cannot read from the server"),
}  # fmt: skip
QUERIES = [
    "INSERT INTO pings VALUES (1, 2)", "SELECT 1; DROP TABLE pings", "DROP TABLE pings", "DELETE FROM pings", "", "nonsense",
    "WITH a AS (DELETE FROM pings RETURNING *) SELECT * FROM a", "SELECT * INTO b FROM pings", "PRAGMA user_version",
]  # fmt: skip


@pytest.mark.parametrize("sql", QUERIES)
@pytest.mark.parametrize("make", [sqlite_file, duckdb_file])
def test_a_query_is_one_select(
    make: Callable[[Path], Path], sql: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main.run(release(tmp_path, make(tmp_path), "--read", f"sql={sql}")) == 2
    told = "".join(capfd.readouterr())
    assert "--read sql takes one SELECT" in told
    check_nothing_happened(tmp_path, told)


@pytest.mark.parametrize("case", BAD)
def test_bad_points(
    case: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], seen: list[BaseException]
) -> None:
    make, says = BAD[case]
    code = main.run(release(tmp_path, *make(tmp_path)))
    out, err = capfd.readouterr()
    assert code == 2, err
    assert says in err
    check_nothing_happened(tmp_path, out + err)
    check_chain(seen[0])


@pytest.mark.parametrize(
    ("bounds", "says"),
    [
        ("1,0,0,1", "west must be less than east"),
        ("0,0,0,1", "west must be less than east"),
        ("0,1,1,0", "south must be less than north"),
        ("0,40,1,200", "are longitude and latitude swapped?"),
    ],
)
def test_bad_bounds(
    bounds: str, says: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main.run(release(tmp_path, csv(tmp_path, GOOD), bounds=bounds)) == 2
    told = "".join(capfd.readouterr())
    assert says in told
    check_nothing_happened(tmp_path, told)


# --- what goes wrong outside the file ----------------------------------------------------------------


@pytest.mark.parametrize("name", ["points.csv", "points.parquet", "points.duckdb"])
def test_a_file_that_changes_while_it_is_read(
    name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Something is added to it while the engine runs."""
    path, more = tmp_path / name, ("--read", "table=pings") if name.endswith("duckdb") else ()
    with duckdb.connect(str(path) if more else ":memory:") as connection:
        number = 400_000 if name == "points.csv" else 2_000_000  # text takes far longer to read
        rows = f"SELECT random() AS lon, random() AS lat FROM range({number})"
        made = f"CREATE TABLE pings AS {rows}" if more else f"COPY ({rows}) TO '{path}'"
        connection.execute(made)
    told = 0

    @contextmanager
    def bar(_: str, total: float) -> Iterator[Callable[[float], None]]:
        def change(_: float) -> None:
            nonlocal told
            told += total == 1
            with open(path, "ab") as file:
                file.write(b"\n")

        yield change

    monkeypatch.setattr("htf.ingest.engines.POLL_SECONDS", 0.002)
    monkeypatch.setattr("htf.cli.making.working", bar)
    assert main.run(release(tmp_path, path, *more)) == 2
    err = capfd.readouterr().err
    assert f"{name} changed while it was read" in err
    check_nothing_happened(tmp_path, err)
    assert told > 0


def htf(arguments: Arguments, *before: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [*before, sys.executable, "-m", "htf", *arguments]
    settings = {**os.environ, **environment}
    return subprocess.run(command, env=settings, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", ["points.csv", "points.parquet", "points.sqlite", "points.duckdb"])
def test_files_that_may_not_be_read(name: str, tmp_path: Path) -> None:
    """Root may read all, unless the power to do so is taken away."""
    before: tuple[str, ...] = ()
    if os.geteuid() == 0:
        caps = "-dac_override,-dac_read_search"
        before = (require("setpriv", "util-linux"), "--inh-caps", caps, "--bounding-set", caps)
    csv(tmp_path, GOOD)
    table(tmp_path, "points.parquet", **LON_LAT)
    sqlite_file(tmp_path)
    duckdb_file(tmp_path)
    (tmp_path / name).chmod(0)
    more = ("--read", "table=pings") if name.endswith(("sqlite", "duckdb")) else ()
    ran = htf(release(tmp_path, tmp_path / name, *more), *before)
    assert ran.returncode == 2, ran.stderr
    assert "cannot read" in ran.stderr
    check_nothing_happened(tmp_path, ran.stdout + ran.stderr)


def crowd(folder: Path) -> Path:
    """Many people with many records each: what has to be ranked is larger than the memory allowed."""
    with duckdb.connect() as connection:
        rows = f"SELECT random() AS lon, random() AS lat, '{SECRET}-' || (i % 300000) AS who FROM range(1500000) t(i)"
        connection.execute(f"COPY ({rows}) TO '{folder / 'crowd.parquet'}'")
    return folder / "crowd.parquet"


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.name != "posix" or os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root can mount a small disk")
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting is not permitted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.slow
def test_a_full_disk(tiny_disk: Path, tmp_path: Path) -> None:
    asked = (crowd(tmp_path), "--user", "who", "--max-records", "2", "--read", "memory=120MB")
    ran = htf(release(tmp_path, *asked), TMPDIR=str(tiny_disk))
    assert ran.returncode == 2, ran.stderr
    assert "the disk is full" in ran.stderr
    check_nothing_happened(tmp_path, ran.stdout + ran.stderr)
    assert list(tiny_disk.iterdir()) == []
    ran = htf(release(tmp_path, *asked))  # with room for what does not fit, it can be done
    assert ran.returncode == 0, ran.stderr


def test_too_little_memory(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], seen: list[BaseException]
) -> None:
    assert main.run(release(tmp_path, crowd(tmp_path), *PEOPLE, "--read", "memory=30MB")) == 2
    told = "".join(capfd.readouterr())
    assert "it needs more memory: allow more with --read memory" in told
    check_nothing_happened(tmp_path, told)
    check_chain(seen[0])


HOLD = """
import sys, duckdb
connection = duckdb.connect(sys.argv[1])
print("ready", flush=True)
sys.stdin.read()
"""


def test_a_database_in_use(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = duckdb_file(tmp_path)
    command, pipe = [sys.executable, "-c", HOLD, str(path)], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdin is not None
        writer.stdout.readline()
        assert main.run(release(tmp_path, path, "--read", "table=pings")) == 2
        writer.stdin.close()
    told = "".join(capfd.readouterr())
    assert "another program is using it" in told
    check_nothing_happened(tmp_path, told)
    with closing(sqlite3.connect(sqlite_file(tmp_path))) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        code = main.run(release(tmp_path, tmp_path / "points.sqlite", "--read", "table=pings"))
    assert code == 2
    told = "".join(capfd.readouterr())
    assert "another program is using it" in told
    check_nothing_happened(tmp_path, told)


def test_a_server_s_troubles(
    postgres: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str], seen: list[BaseException]
) -> None:
    address = postgres.get_uri()
    postgres.psql(f"CREATE TABLE texts AS SELECT '{SECRET}N' AS lon, 0.5::float8 AS lat;")
    wrong = address.replace("/postgres?", "/nowhere?")
    for source, more, says in (
        (address, ("--read", "table=nope"), "cannot read the table nope of the database server"),
        (address, ("--read", "table=texts"), "'lon' must hold numbers, but it holds string"),
        (address, ("--read", "sql=SELECT lon::float8 AS lon, lat FROM texts"), "cannot read the database"),
        (address, ("--read", "sql=SELECT missing FROM texts"), "cannot read the result of the query"),
        (address, ("--read", "sql=DELETE FROM texts RETURNING *"), "--read sql takes one SELECT"),
        (address, ("--read", "sql=SELECT * INTO b FROM texts"), "--read sql takes one SELECT"),
        (address, ("--read", "sql=SELECT 1.0::float8 AS lon, lat FROM texts", "--read", "points-crs=EPSG:27700"), "do it in the query"),
        (wrong, ("--read", "table=texts"), "the database's name"),
    ):  # fmt: skip
        assert main.run(release(tmp_path, source, *more)) == 2
        told = "".join(capfd.readouterr())
        assert says in told
        check_nothing_happened(tmp_path, told)
    for error in seen:
        check_chain(error)
    postgres.psql("DROP TABLE texts;")


@pytest.mark.slow
def test_spark_is_silent_about_the_data(tmp_path: Path) -> None:
    """In a process of its own, whose output is all there is."""
    require("java", "openjdk-17-jre-headless")
    require_package("pyspark", "pyspark")
    path = csv(tmp_path, GOOD + f"{SECRET},1\n")
    ran = htf(release(tmp_path, path, "--read", "engine=spark"))
    assert ran.returncode == 2, ran.stderr
    assert "cannot read" in ran.stderr
    assert "lon" not in ran.stderr.replace("'lon'", ""), "a query, or a line of the file"
    check_nothing_happened(tmp_path, ran.stdout + ran.stderr)


# --- nothing inside, and x and y exchanged -----------------------------------------------------------


def test_nothing_inside_is_refused_or_released_with_a_warning(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = csv(tmp_path, "a,b\n45.5,0.5\n45.6,0.25\n")
    asked = release(tmp_path, path, "--x", "a", "--y", "b", bounds="0,40,1,50")
    assert main.run(asked) == 2
    out, err = capfd.readouterr()
    assert "No record is inside the bounds" in err
    assert "are 'a' and 'b' swapped, or the bounds?" in err
    assert "Nothing was charged" in err
    check_nothing_happened(tmp_path, out + err)
    assert main.run([*asked, "--allow-empty"]) == 0
    out, err = capfd.readouterr()
    assert "No record is inside the bounds" in err
    assert "No record" not in out
    assert len(Release.load(tmp_path / "out.parquet")) > 0


EMPTY = {
    "a first line only": "lon,lat,who\n",
    "empty fields": "lon,lat,who\n,,a\n,,b\n",
    "no numbers": "lon,lat,who\nE1,N2,a\n",
    "elsewhere": f"lon,lat,who\n500,{SECRET},a\n",
    "nobody": "lon,lat,who\n0.5,0.5,\n",
}


@pytest.mark.parametrize("case", EMPTY)
@pytest.mark.parametrize("bound", [("--max-records", "2"), ("--max-records", "auto")])
def test_what_only_the_data_tell_is_refused_before_the_charge_and_can_be_allowed(
    case: str, bound: tuple[str, str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    asked = release(tmp_path, csv(tmp_path, EMPTY[case]), "--user", "who", *bound)
    assert main.run(asked) == 2
    told = "".join(capfd.readouterr())
    assert "No record is inside the bounds" in told
    assert "--allow-empty" in told
    check_nothing_happened(tmp_path, told)
    assert main.run([*asked, "--allow-empty"]) == 0
    assert (tmp_path / "out.parquet").exists()
    entries = BudgetFile(tmp_path / "budget.sqlite", "pings").account().entries
    assert {entry.state for entry in entries} == {"published"}


def test_nothing_inside_for_another_reason(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main.run(release(tmp_path, csv(tmp_path, "lon,lat\n500,500\n"))) == 2
    err = capfd.readouterr().err
    assert "No record is inside the bounds" in err
    assert "swapped" not in err


def test_names_that_are_swapped(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = csv(tmp_path, GOOD)
    assert main.run(release(tmp_path, path, "--x", "lat", "--y", "lon")) == 2
    told = "".join(capfd.readouterr())
    assert "x should be the longitude, but it is the column 'lat'" in told
    check_nothing_happened(tmp_path, told)


def test_python_gets_an_error_without_an_engine_behind_it(tmp_path: Path) -> None:
    domain = Domain.from_bounds(0, 0, 1, 1, 4)
    import polars as pl

    path = csv(tmp_path, f"lon,lat\n1,2\n{SECRET}N,2\n")
    sources: list[Any] = [
        pl.scan_csv(path, schema={"lon": pl.Float64, "lat": pl.Float64}),
        {"lon": [1.0, SECRET], "lat": [1.0, 2.0]},
        {"lon": [object()], "lat": [np.float64(SECRET)]},
        {"lon": np.zeros((2, 2)), "lat": np.zeros(2)},
    ]
    for source in sources:
        with pytest.raises(InputError) as caught:
            read_points(source, domain)
        check_chain(caught.value)
