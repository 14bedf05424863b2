"""Time and memory of counting points per cell, against the engine's own plain count of the same file.

    python benchmarks/ingest.py                                     # DuckDB, 10 million points
    python benchmarks/ingest.py --sizes 10,30,100 --folder FOLDER   # with stages, their model, and memory
    python benchmarks/ingest.py --engine spark

Files of points are made once, in the folder. All ways of counting take turns, and the least time of
each is taken, of the clock and of the processor (all threads together); a shared machine disturbs the
second less. Linux only.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from htf import Domain, FrequencyMatrix, read_points
from htf.frame.domain import IntArray
from htf.ingest.engines import open_spark

MILLION = 1_000_000
BOUNDS = (-30.176, 39.865, -29.824, 40.135)
CELLS = 1024
MOST = 30  # records of a person
RECORDS_EACH = 10  # on average
SKEW = 1.5  # of people: 1 would make all alike
PLACES = 5000
BATCH = MILLION
START, MONTH = 1_700_000_000, 30 * 86_400
PEOPLE = {"user": "user", "count": "people"}
KEPT = {"user": "user", "max_records": MOST}
TARGETS = {"records": 1.3, "people": 4.0, "kept records": 4.0}


class Taken(NamedTuple):
    """Seconds."""

    clock: float
    processor: float


Ways = Mapping[str, Callable[[], object]]


# Points ------------------------------------------------------------------------------------------


def make_points(path: Path, number: int, seed: int = 5) -> None:
    """Visits in order of time, around some thousand places, by people who turn up at random.

    Someone's records are about Poisson, with an expectation that is 6.7 for most and falls from some
    hundreds with the person's rank. Rows of one person lie far apart, and numbers of people are random
    ones of 63 bits: the hardest case for counting them.
    """
    generator = np.random.default_rng(seed)
    west, south, east, north = BOUNDS
    centres = generator.uniform((west, south), (east, north), (PLACES, 2))
    spreads = np.minimum(generator.pareto(1.2, PLACES) * 2e-4 + 1e-4, 0.05)
    kinds = {"lon": pa.float64(), "lat": pa.float64(), "user": pa.int64(), "ts": pa.int64()}
    schema = pa.schema(list(kinds.items()))
    with pq.ParquetWriter(path, schema) as writer:
        for first in range(0, number, BATCH):
            rows = min(BATCH, number - first)
            place = (generator.random(rows) ** 2 * PLACES).astype(np.int64)
            at = centres[place] + generator.normal(size=(rows, 2)) * spreads[place, None]
            rank = generator.random(rows) ** SKEW * (number // RECORDS_EACH)
            user = rank.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(1)
            start, stop = (MONTH * edge // number for edge in (first, first + rows))
            when = START + np.sort(generator.integers(start, stop, rows))
            columns = at[:, 0], at[:, 1], user.astype(np.int64), when
            writer.write_batch(pa.record_batch(list(map(pa.array, columns)), schema=schema))


def points_in(folder: Path, millions: float) -> Path:
    path = folder / f"points-{millions:g}m.parquet"
    if not path.exists():
        make_points(path, round(millions * MILLION))
    return path


def named_points(path: Path) -> Path:
    """The same points, of people with names."""
    named = path.with_suffix(".named.parquet")
    if not named.exists():
        query = f"SELECT lon, lat, 'person-' || user AS user, ts FROM '{path}'"
        with duckdb.connect() as connection:
            connection.execute(f"COPY ({query}) TO '{named}'")
    return named


# Ways of counting ----------------------------------------------------------------------------------


def domain() -> Domain:
    return Domain.from_bounds(*BOUNDS, cells=CELLS)


def plain_parts(table: str) -> dict[str, str]:
    """SQL of the plain count, and of parts of it and of the work for people."""
    x, y = domain().axes
    cell = (
        f"CAST(floor((lon - ({x.low!r})) * {x.cells_per_unit!r}) AS BIGINT) * {CELLS}"
        f" + CAST(floor((lat - ({y.low!r})) * {y.cells_per_unit!r}) AS BIGINT)"
    )
    inside = f"lon >= {x.low!r} AND lon < {x.high!r} AND lat >= {y.low!r} AND lat < {y.high!r}"
    rows = f"FROM {table} WHERE {inside}"
    many = f'SELECT "user" {rows} GROUP BY "user" HAVING count(*) > {MOST}'
    return {
        "read": f"SELECT sum(lon), sum(lat) FROM {table}",
        "cell": f"SELECT sum({cell}) {rows}",
        "plain": f"SELECT {cell} AS cell, count(*) AS records {rows} GROUP BY 1",
        "persons": f"SELECT count(*) FROM ({many})",
        "cut": f'SELECT count(*), sum({cell}) {rows} AND "user" IN ({many})',
    }


def ask_duckdb(query: str) -> Any:
    """In a connection of its own, as whoever counts once does; another would hold the file."""
    with duckdb.connect() as connection:
        connection.execute(
            "SET enable_progress_bar = false"
        )  # it would be printed among the results
        return connection.sql(query).to_arrow_table()


def ways_of_reading(path: Path, **engine: Any) -> dict[str, Callable[[], FrequencyMatrix]]:
    def way(**told: Any) -> Callable[[], FrequencyMatrix]:
        return lambda: read_points(path, domain(), ["lon", "lat"], **told, **engine)

    return {
        "records": way(),
        "people": way(**PEOPLE),
        "people per day": way(**PEOPLE, time="ts", per="day"),
        "people per month": way(**PEOPLE, time="ts", per="month"),
        "people, once per day": way(**PEOPLE, time="ts", once_per="day"),
        "kept records": way(**KEPT),
        "kept records, with times": way(**KEPT, time="ts"),
        "kept records, once per day": way(**KEPT, time="ts", once_per="day"),
    }


def check_same(plain: Any, matrix: FrequencyMatrix) -> None:
    """What is compared must be the same work."""
    found = np.asarray(plain["cell"].to_numpy()), np.asarray(plain["records"].to_numpy())
    order = np.argsort(found[0])
    coordinates = matrix.exact_coordinates.astype(np.int64)
    cells: IntArray = coordinates[0] * CELLS + coordinates[1]
    assert np.array_equal(found[0][order], cells)
    assert np.array_equal(found[1][order], matrix.exact_counts)


def take_turns(
    ways: Ways, rounds: int, processor_time: Callable[[], float] = time.process_time
) -> dict[str, Taken]:
    taken: dict[str, list[Taken]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            clock, processor = time.perf_counter(), processor_time()
            way()
            spent = Taken(time.perf_counter() - clock, processor_time() - processor)
            taken[name].append(spent)
    return {name: Taken(*map(min, zip(*each, strict=True))) for name, each in taken.items()}


# Reports -------------------------------------------------------------------------------------------


def show_table(headers: Sequence[str], rows: Iterator[Sequence[object]]) -> None:
    print("| " + " | ".join(headers) + " |")
    print("| --- |" + " ---: |" * (len(headers) - 1))
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |", flush=True)


def show_fixed(folder: Path, rounds: int) -> None:
    """What a process pays once, and what each reading pays whatever its size; of up to three processes the least."""
    tiny = points_in(folder, 0.001)
    code = f"""
import time
times = [time.perf_counter()]
import htf
times.append(time.perf_counter())
domain = htf.Domain.from_bounds(*{BOUNDS}, cells={CELLS})
for told in ({{}}, {{}}, {KEPT}, {KEPT}, {PEOPLE}, {PEOPLE}):
    htf.read_points({str(tiny)!r}, domain, ["lon", "lat"], **told)
    times.append(time.perf_counter())
print([after - before for before, after in zip(times, times[1:])])
"""
    runs = [json.loads(_python("-c", code)) for _ in range(min(rounds, 3))]
    labels = (
        "import htf",
        "first reading: import Ibis and DuckDB, compile",
        "later ones: compile, open, close",
        "first with kept records",
        "later ones with kept records",
        "first with people",
        "later ones with people",
    )
    print("\nA thousand points, in a new process")
    show_table(
        ("what", "seconds"),
        (
            (label, f"{min(times):.3f}")
            for label, times in zip(labels, zip(*runs, strict=True), strict=True)
        ),
    )


def show_times(path: Path, rounds: int) -> None:
    plain = plain_parts(f"'{path}'")["plain"]
    reading = ways_of_reading(path)
    named = ways_of_reading(named_points(path))
    ways: dict[str, Callable[[], object]] = {
        "plain": lambda: ask_duckdb(plain),
        **reading,
        "people, with names": named["people"],
        "kept records, with names": named["kept records"],
    }
    check_same(ask_duckdb(plain), reading["records"]())
    _show_ratios(f"DuckDB {duckdb.__version__}, {_rows(path):,} points", take_turns(ways, rounds))


def _show_ratios(title: str, taken: Mapping[str, Taken]) -> None:
    plain = taken["plain"]
    print(f"\n{title}, {CELLS} x {CELLS} cells; kept: at most {MOST} records of a person")
    show_table(
        ("what", "seconds", "times plain", "processor", "times plain", "target"),
        (
            (
                name, f"{spent.clock:.2f}", f"{spent.clock / plain.clock:.2f}",
                f"{spent.processor:.2f}", f"{spent.processor / plain.processor:.2f}",
                TARGETS.get(name, ""),
            )
            for name, spent in taken.items()
        ),
    )  # fmt: skip


def show_stages(folder: Path, sizes: Sequence[float], rounds: int) -> None:
    """Seconds of the processor for each stage, a straight line through the first two sizes, and what it
    says of the last."""
    found = [_stages(points_in(folder, size), rounds) for size in sizes]
    print(
        f"\nStages, seconds of the processor; the line is through {sizes[0]:g} and {sizes[1]:g} M"
    )
    columns = [f"{size:g} M" for size in sizes]
    show_table(
        ("stage", *columns, "per billion points", f"line at {columns[-1]}", "off by"),
        (_on_a_line(name, sizes, [each[name] for each in found]) for name in found[0]),
    )


def _on_a_line(name: str, sizes: Sequence[float], seconds: Sequence[float]) -> list[str]:
    slope = (seconds[1] - seconds[0]) / (sizes[1] - sizes[0])
    line = seconds[0] + slope * (sizes[-1] - sizes[0])
    return [
        name, *(f"{each:.2f}" for each in seconds),
        f"{1000 * slope:.0f}", f"{line:.2f}", f"{line / seconds[-1] - 1:+.0%}",
    ]  # fmt: skip


def _stages(path: Path, rounds: int) -> dict[str, float]:
    """Each is the difference of two ways of counting, of which one does a thing more."""
    parts = plain_parts(f"'{path}'")
    reading = ways_of_reading(path)
    ways: dict[str, Callable[[], object]] = {
        **{name: lambda query=query: ask_duckdb(query) for name, query in parts.items()},  # type: ignore[misc]
        "records": reading["records"],
        "kept": reading["kept records"],
        "people": reading["people"],
    }
    taken = {name: spent.processor for name, spent in take_turns(ways, rounds).items()}
    return {
        "read two columns": taken["read"],
        "filter, find the cell": taken["cell"] - taken["read"],
        "count per cell": taken["plain"] - taken["cell"],
        "move and sort non-empty cells, fixed costs": taken["records"] - taken["plain"],
        "**records, all**": taken["records"],
        "read again, count per person": taken["persons"],
        "read again, find records of those cut": taken["cut"] - taken["persons"],
        "rank these, take off": taken["kept"] - taken["records"] - taken["cut"],
        "**kept records, all**": taken["kept"],
        "number each person's records, share out": taken["people"] - taken["records"],
        "**people, all**": taken["people"],
    }


def show_bytes(path: Path, sizes: Sequence[float], folder: Path) -> None:
    footer = pq.ParquetFile(path).metadata
    stored = {footer.schema.column(number).name: 0 for number in range(footer.num_columns)}
    for group in range(footer.num_row_groups):
        for number, name in enumerate(stored):
            stored[name] += footer.row_group(group).column(number).total_compressed_size
    print("\nBytes of a point in the file:", end=" ")
    print(", ".join(f"{name} {size / footer.num_rows:.1f}" for name, size in stored.items()))
    for size in sizes:
        query = plain_parts(f"'{points_in(folder, size)}'")["plain"]
        print(f"Non-empty cells of {size:g} M points: {ask_duckdb(query).num_rows:,}")


def show_memory(folder: Path, sizes: Sequence[float], memory: str) -> None:
    """Of all of a new process, of which Python, Ibis and DuckDB take some 200 MB."""
    print("\nPeak memory of a new process, MB, and seconds")
    headers = ("points", "of", "cap", "MB", "on the clock", "processor")
    asked: dict[str, Mapping[str, Any]] = {"records": {}, "kept records": KEPT, "people": PEOPLE}
    runs = ((size, name, cap) for size in sizes for name in asked for cap in (None, memory))
    show_table(
        headers,
        (
            (
                f"{size:g} M", name, cap or "none",
                *_told(_in_a_new_process(points_in(folder, size), asked[name], cap)),
            )
            for size, name, cap in runs
        ),
    )  # fmt: skip


def show_cells(path: Path) -> None:
    """The same points on a finer grid: what the cells cost that hold any."""
    print(f"\n{_rows(path):,} points in a new process: peak memory, MB, and seconds")
    headers = ("grid", "non-empty cells", "MB", "on the clock", "processor")
    runs = ((side, _in_a_new_process(path, {}, None, side)) for side in (CELLS, 16 * CELLS))
    show_table(
        headers,
        ((f"{side} x {side}", f"{found['cells']:,}", *_told(found)) for side, found in runs),
    )


def _told(found: Mapping[str, float]) -> tuple[str, ...]:
    return f"{found['peak'] / 1e6:.0f}", f"{found['clock']:.1f}", f"{found['processor']:.1f}"


def _in_a_new_process(
    path: Path, told: Mapping[str, Any], memory: str | None, side: int = CELLS
) -> dict[str, float]:
    code = f"""
import json, time, htf
started = time.perf_counter()
domain = htf.Domain.from_bounds(*{BOUNDS}, cells={side})
found = htf.read_points({str(path)!r}, domain, ["lon", "lat"], memory={memory!r}, **{dict(told)!r})
clock, processor = time.perf_counter() - started, time.process_time()
lines = open("/proc/self/status").read().splitlines()  # ru_maxrss would count the parent's
peak = 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
print(json.dumps(dict(peak=peak, clock=clock, processor=processor, cells=len(found.exact_counts))))
"""
    return dict(json.loads(_python("-c", code)))


def show_spark(path: Path, rounds: int) -> None:
    """In one session: the first time, in which Java compiles, and later ones."""
    with spark_session() as session:
        session.read.parquet(str(path)).createOrReplaceTempView("points")
        plain = plain_parts("points")["plain"]
        reading = ways_of_reading(path, engine="spark")
        ways: dict[str, Callable[[], object]] = {
            "plain": lambda: session.sql(plain).toArrow(),
            "records": reading["records"],
            "people": reading["people"],
            "people, once per day": reading["people, once per day"],
            "kept records": reading["kept records"],
            "kept records, once per day": reading["kept records, once per day"],
        }
        java = int(session._jvm.java.lang.ProcessHandle.current().pid())
        taken = [take_turns(ways, times, lambda: _processor_time(java)) for times in (1, rounds)]
        check_same(session.sql(plain).toArrow(), reading["records"]())
    for title, each in zip(("the first time", "later"), taken, strict=True):
        _show_ratios(f"Spark, {_rows(path):,} points, {title}", each)


def _processor_time(process: int) -> float:
    """Of another process, so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def spark_session() -> Iterator[Any]:
    """As `htf` would start it, kept for all ways of counting: an active session is used."""
    with open_spark("4g") as engine:
        yield engine.session


def _rows(path: Path) -> int:
    return int(pq.ParquetFile(path).metadata.num_rows)


def _python(*arguments: str) -> str:
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _numbers(listed: str) -> list[float]:
    return [float(number) for number in listed.split(",") if number]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="where files of points are kept")
    parser.add_argument("--points", type=float, default=10, help="millions, for times")
    parser.add_argument("--sizes", default="", help="millions, at least two, for stages and memory")
    parser.add_argument("--memory-sizes", default="", help="for memory alone, if fewer than those")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--memory", default="2GB", help="the cap for memory")
    parser.add_argument("--engine", choices=("duckdb", "spark"), default="duckdb")
    options = parser.parse_args()
    sizes = _numbers(options.sizes)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if options.engine == "spark":
            show_spark(points_in(folder, options.points), options.rounds)
            return
        show_fixed(folder, options.rounds)
        show_times(points_in(folder, options.points), options.rounds)
        show_cells(points_in(folder, options.points))
        if sizes:
            show_bytes(points_in(folder, sizes[-1]), sizes, folder)
            show_memory(folder, _numbers(options.memory_sizes) or sizes, options.memory)
            show_stages(folder, sizes, options.rounds)


if __name__ == "__main__":
    main()
