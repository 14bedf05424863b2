"""The results of a bench: stored as they arrive, read as a tidy table.

In the folder of a bench, `parts/` holds finished results, in files that are written whole and never changed.
`results.parquet` and `failures.parquet` are made from them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from htf.errors import InputError, OutputError
from htf.files import is_same, lies_in, make_folder, write_whole
from htf.frame.domain import FloatArray
from htf_bench.metrics import MRE
from htf_bench.specs import BenchSpec, label_of
from htf_bench.trials import Bench, Outcome, Plan, trial_key

# On every result of the bench.
WARNING = "Computed from the exact data: NOT FOR PUBLICATION."
CONSEQUENCE = (
    "Choosing a mechanism, a grid or a bound by these results, on the very data that is to be "
    "released, voids the privacy guarantee."
)
MARKING = f"{WARNING} {CONSEQUENCE}"
FAILURE = "failure"
PARTS, PART_FILES = "parts", "[0-9]*.parquet"
SECONDS_BETWEEN_PARTS = 1.0
MOST_PARTS = 50  # more are put together when the bench is next opened

TIDY = pa.schema(
    [
        ("dataset", pa.string()),
        ("mechanism", pa.string()),
        ("parameters", pa.string()),
        ("epsilon", pa.float64()),
        ("workload", pa.string()),
        ("run", pa.int32()),
        ("metric", pa.string()),
        ("value", pa.float64()),
        ("seconds", pa.float64()),
    ]
)
KEPT = pa.schema([("trial", pa.string()), *TIDY, (FAILURE, pa.string())])


def check_folder(folder: Path, inputs: Iterable[Path], *, overwrite: bool = False) -> None:
    """Refuse a folder in which the results could replace files of others: their names are common ones.

    A bench continues in a folder that has its results. Those are made anew from its parts.
    """
    if not os.path.isdir(folder):
        return
    try:
        there = list(folder.iterdir())
    except OSError as error:
        raise OutputError(f"cannot write results to {folder}: {error.strerror}") from None
    for given in inputs:
        if lies_in(given, folder) or any(is_same(given, file) for file in there):
            raise OutputError(
                f"cannot write results to {folder}: {given}, which is read, is in it. Give another folder"
            )
    is_bench = any((folder / PARTS).glob(PART_FILES)) or [f.name for f in there] == [PARTS]
    if there and not is_bench and not overwrite:
        raise OutputError(
            f"cannot write results to {folder}: it has files that are not of a bench. Give a new folder, "
            "or --overwrite to replace files of the same names"
        )


class Store:
    """The finished trials in a folder. Killed at any time, it loses a second of work."""

    def __init__(self, folder: Path) -> None:
        self._parts = folder / PARTS
        make_folder(self._parts)
        self._rows: list[dict[str, Any]] = []
        self._written_at = time.monotonic()
        self._number = 0
        files = self._files()
        if len(files) > MOST_PARTS:
            self._write(self.read())
            for path in files:
                path.unlink(missing_ok=True)

    def add(self, bench: Bench, outcome: Outcome) -> None:
        self._rows += _rows_of(bench, outcome)
        if time.monotonic() - self._written_at > SECONDS_BETWEEN_PARTS:
            self.flush()

    def flush(self) -> None:
        if self._rows:
            self._write(pa.Table.from_pylist(self._rows, schema=KEPT))
            self._rows = []
        self._written_at = time.monotonic()

    def read(self) -> pa.Table:
        """Everything that was kept; a trial that was kept twice has its first rows."""
        tables = [_read_part(path) for path in self._files()]
        seen: set[str] = set()
        kept = []
        for table in tables:
            trials = table["trial"].to_pylist()
            kept.append(table.filter(pa.array([trial not in seen for trial in trials], pa.bool_())))
            seen.update(trials)
        return pa.concat_tables(kept) if kept else KEPT.empty_table()

    def _files(self) -> list[Path]:
        return sorted(self._parts.glob(PART_FILES))

    def _write(self, table: pa.Table) -> None:
        # The process number keeps two benches in one folder apart.
        self._number += 1
        name = f"{time.time_ns():020d}-{os.getpid()}-{self._number}.parquet"
        write_marked(table, self._parts / name, overwrite=False)


class Results:
    """The finished trials of a plan, for tables, figures and claims."""

    def __init__(self, kept: pa.Table) -> None:
        failed = pc.equal(kept["metric"], FAILURE)
        order = [(name, "ascending") for name in TIDY.names[:7]]
        tidy = kept.filter(pc.invert(failed)).select(TIDY.names)
        self.table = tidy.sort_by(order)
        self.failed = kept.filter(failed).drop_columns(["trial", "metric", "value", "workload"])
        self._values: dict[tuple[Any, ...], dict[int, float]] = {}
        for row in self.table.to_pylist():
            key = tuple(row[n] for n in (*TIDY.names[:5], "metric"))
            self._values.setdefault(key, {})[row["run"]] = row["value"]

    def by_run(
        self, data_set: str, spec: BenchSpec | None, epsilon: str, workload: str, metric: str = MRE
    ) -> dict[int, float]:
        """The value of each run; empty where there is none."""
        if spec is None:
            return {}
        place = (data_set, spec.mechanism, spec.parameters_text, float(epsilon), workload, metric)
        return self._values.get(place, {})

    def values(
        self, data_set: str, spec: BenchSpec | None, epsilon: str, workload: str, metric: str = MRE
    ) -> FloatArray:
        return np.array(list(self.by_run(data_set, spec, epsilon, workload, metric).values()))

    def best(
        self,
        data_set: str,
        specs: Iterable[BenchSpec],
        epsilon: str,
        workload: str,
        metric: str = MRE,
    ) -> BenchSpec | None:
        """The one with the least mean over the runs: how a height is chosen in comparisons."""
        means = {
            spec: found.mean()
            for spec in specs
            if len(found := self.values(data_set, spec, epsilon, workload, metric))
        }
        return min(means, key=lambda spec: means[spec]) if means else None

    def failures(self) -> list[tuple[str, str, float, str]]:
        """Trials without a result: data set, mechanism, epsilon and reason."""
        return [
            (
                row["dataset"],
                label_of(row["mechanism"], row["parameters"]),
                row["epsilon"],
                row[FAILURE],
            )
            for row in self.failed.to_pylist()
        ]

    def write(self, folder: Path) -> None:
        write_marked(self.table, folder / "results.parquet")
        write_marked(self.failed, folder / "failures.parquet")


def read_results(plan: Plan, kept: pa.Table, passing: Sequence[Outcome] = ()) -> Results:
    """The results of the plan's trials, as a folder may hold more; and failures that were not kept."""
    wanted = {trial_key(plan.bench, trial) for trial in plan.trials}
    mask = [trial in wanted for trial in kept["trial"].to_pylist()]
    rows = [row for outcome in passing for row in _rows_of(plan.bench, outcome)]
    told = pa.Table.from_pylist(rows, schema=KEPT)
    return Results(pa.concat_tables([kept.filter(pa.array(mask, pa.bool_())), told]))


def finished_trials(kept: pa.Table) -> set[str]:
    return set(kept["trial"].to_pylist())


def _rows_of(bench: Bench, outcome: Outcome) -> list[dict[str, Any]]:
    trial = outcome.trial
    common = {
        "trial": trial_key(bench, trial),
        "dataset": trial.data_set.name,
        "mechanism": trial.spec.mechanism,
        "parameters": trial.spec.parameters_text,
        "epsilon": float(trial.epsilon),
        "run": trial.run,
        "seconds": outcome.seconds,
    }
    if outcome.failure:
        nothing = {"workload": "", "metric": FAILURE, "value": None}
        return [{**common, **nothing, FAILURE: outcome.failure}]
    return [
        {**common, "workload": workload, "metric": metric, "value": value}
        for workload, metric, value in outcome.values
    ]


def write_marked(table: pa.Table, path: Path, *, overwrite: bool = True) -> None:
    """Write a table that says that it is not for publication: anew, when a bench goes on."""
    marked = table.replace_schema_metadata({"warning": MARKING})
    write_whole(path, lambda unfinished: pq.write_table(marked, unfinished), overwrite=overwrite)


def _read_part(path: Path) -> pa.Table:
    try:
        return pq.read_table(path).cast(KEPT)
    except (pa.ArrowException, OSError):
        raise InputError(f"{path} is damaged: delete it, and its trials are run again") from None
