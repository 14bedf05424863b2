"""Time of `htf check` on millions of points, in Parquet and CSV, with and without people and times.

    python benchmarks/check.py                # 4 million made-up points
    python benchmarks/check.py --points 0.1 --rounds 1

Each check is a process of its own, as a curator would run it. The first run of a file is not counted: compiled
modules and the file are cached then. The least time of the others is shown, of the clock and of the processor (all
threads together); a shared machine disturbs the second less.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb

BOUNDS = "-30.176,39.865,-29.824,40.135"
MAKE = """
    COPY (
        SELECT round(-30 + (random() - 0.5) / 3, 6) AS lon, round(40 + (random() - 0.5) / 4, 6) AS lat,
            'p' || floor(random() * {people})::BIGINT AS "user",
            strftime(TIMESTAMP '2026-03-01' + INTERVAL (floor(random() * 2000000)::BIGINT) SECOND, '{form}') AS at
        FROM range({points})
    ) TO '{path}'
"""
FILES = {
    "Parquet": ("points.parquet", "%Y-%m-%dT%H:%M:%S"),
    "CSV": ("points.csv", "%Y-%m-%dT%H:%M:%S"),
    "CSV, dates as 31.03.2026 10:30": ("european.csv", "%d.%m.%Y %H:%M"),
}


def measure(command: list[str], rounds: int) -> tuple[float, float]:
    """The least time of the clock and of the processor, in seconds, after a first run."""
    clocks, processors = [], []
    for _ in range(rounds + 1):
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        clocks.append(time.perf_counter() - start)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        processors.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(clocks[1:]), min(processors[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=float, default=4.0, help="millions")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    points = int(options.points * 10**6)
    print("| file | columns | clock, s | processor, s |\n| --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for told, (name, form) in FILES.items():
            path = Path(folder) / name
            duckdb.sql(MAKE.format(points=points, people=points // 10 + 1, form=form, path=path))
            places = path.with_name(f"places-{name}")
            duckdb.sql(f"COPY (SELECT lon, lat FROM '{path}') TO '{places}'")
            for columns, file in (("places", places), ("places, people, times", path)):
                command = [sys.executable, "-m", "htf", "check", str(file), "--bounds", BOUNDS]
                clock, processor = measure(command, options.rounds)
                print(f"| {told} | {columns} | {clock:.1f} | {processor:.1f} |", flush=True)


if __name__ == "__main__":
    main()
