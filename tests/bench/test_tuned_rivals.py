"""Rivals at their best setting: which settings there are, which one is picked, and the tables of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from htf import Domain, InputError
from htf_bench.datasets import GaussianSet
from htf_bench.judging import ratio_interval
from htf_bench.metrics import MRE
from htf_bench.results import MARKING, Results, Store, read_results
from htf_bench.specs import ZERO, BenchSpec, read_spec
from htf_bench.summary import Contender
from htf_bench.trials import Bench, Outcome, Plan, Trial
from htf_bench.tuned import (
    Comparison,
    compare_with_rivals,
    conclusions,
    floor_rival,
    judged_specs,
    rivals_page,
    table_rows,
    tuned_rivals,
    write_rivals,
)
from htf_bench.workloads import read_workload

SMALL = GaussianSet("small", 5, 1, points=5000, cells=64)
BENCH = Bench((read_workload("random"),), 50, seed=1)
UG = Contender("ug, best setting", (read_spec("ug"), read_spec("ug:side=8")))
AG = Contender("ag, best setting", (read_spec("ag"), read_spec("ag:c=40:c2=20")))


def settings(domain: Domain) -> dict[str, list[str]]:
    return {r.specs[0].mechanism: [s.label for s in r.specs] for r in tuned_rivals(domain)}


def test_settings_go_as_far_as_the_map() -> None:
    found = settings(Domain.from_bounds(0, 0, 1, 1, 1024))
    assert found["ug"] == [
        "ug", *(f"ug:side={side}" for side in (8, 16, 32, 64, 128, 256, 512, 1024)),
    ]  # fmt: skip
    assert found["quadtree"] == [f"quadtree:height={h}" for h in (*range(1, 11),)]
    assert {"ag", "ag:alpha=0.1:c=0.625:c2=1.25", "ag:c=40.0:c2=20.0"} <= {*found["ag"]}
    assert {"privtree", "privtree:threshold=-1000", "privtree:threshold=1000"} <= {
        *found["privtree"]
    }
    for labels in found.values():
        assert len(labels) == len(set(labels))
    small = settings(Domain.from_bounds(0, 0, 1, 1, (16, 5)))
    assert small["ug"] == ["ug", "ug:side=8", "ug:side=16"]
    assert small["quadtree"] == [f"quadtree:height={h}" for h in range(1, 5)]
    one = settings(Domain.from_bounds(0, 0, 1, 1, 1))
    assert (one["ug"], one["quadtree"]) == (["ug"], ["quadtree:height=0"])
    # A quadtree of 4096 x 4096 leaves is refused.
    assert settings(Domain.from_bounds(0, 0, 1, 1, 4096))["quadtree"][-1] == "quadtree:height=11"


def test_floors_are_not_judged() -> None:
    ours = read_spec("htf")
    assert judged_specs([*floor_rival().specs, ours], "htf") == [ours]
    with pytest.raises(InputError, match="give htf,tuned, got 'zero'"):
        judged_specs(floor_rival().specs, "zero")


def results_of(folder: Path, errors: dict[BenchSpec, list[float]]) -> tuple[Results, Plan]:
    store = Store(folder)
    trials = []
    for spec, runs in errors.items():
        for run, error in enumerate(runs):
            trials.append(Trial(SMALL, spec, "0.1", run))
            store.add(BENCH, Outcome(trials[-1], (("random", MRE, error),)))
    store.flush()
    plan = Plan(BENCH, tuple(trials))
    return read_results(plan, store.read()), plan


def compared(folder: Path, ours: list[float]) -> Comparison:
    errors = {
        read_spec("htf"): ours,
        BenchSpec(ZERO): [90.0, 95.0],
        UG.specs[0]: [30.0, 50.0],
        UG.specs[1]: [20.0, 25.0],
        AG.specs[0]: [10.0, 35.0],
        AG.specs[1]: [22.0, 20.0],
    }
    results, plan = results_of(folder, errors)
    rivals = [UG, AG, Contender("quadtree, best setting", (read_spec("quadtree:height=3"),))]
    (one,) = compare_with_rivals(results, plan, [read_spec("htf")], [*rivals, floor_rival()])
    return one


def test_the_setting_with_the_least_mean_counts(tmp_path: Path) -> None:
    """A rival without results is left out. AG's best is not the one with the best single run."""
    one = compared(tmp_path, [10.0, 12.0])
    assert [(choice.rival, choice.spec.label) for choice in one.choices] == [
        ("ug", "ug:side=8"), ("ag", "ag:c=40.0:c2=20.0"), ("floors", "zero"),
    ]  # fmt: skip
    assert one.best.rival == "ag"
    expected = ratio_interval(np.array([10.0, 12.0]), np.array([22.0, 20.0]))
    assert (one.best.ratio, one.best.low, one.best.high) == expected


def test_the_page_and_the_file_say_which_setting_it_was(tmp_path: Path) -> None:
    one = compared(tmp_path, [10.0, 12.0])
    rows = table_rows(one, " *")
    assert [row[:3] for row in rows] == [
        ("random *", "htf", ""),
        ("", "ag (best)", "c=40 c2=20"),
        ("", "ug", "side=8"),
        ("", "floors", "zero"),
    ]
    assert rows[1][3:] == ("21 ± 1.4", f"0.52 ({one.best.low:.2f} to {one.best.high:.2f})")
    page = rivals_page([one], "htf evaluate")
    assert MARKING in page
    assert "|  | ag (best) | c=40 c2=20 | 21 ± 1.4 | 0.52 (" in page
    (line,) = conclusions([one])
    assert line.startswith("htf, MRE: 0.52 times the error of the best rival")
    write_rivals([one], tmp_path, "htf evaluate")
    table = pq.read_table(tmp_path / "rivals.parquet")
    assert table.schema.metadata[b"warning"].decode() == MARKING
    best = [row for row in table.to_pylist() if row["is_best"]]
    assert [(row["rival"], row["setting"]) for row in best] == [("ag", "ag:c=40.0:c2=20.0")]
    assert (best[0]["error"], best[0]["rival_error"]) == (11.0, 21.0)


def test_one_run_has_no_interval(tmp_path: Path) -> None:
    assert table_rows(compared(tmp_path, [11.0]))[1][-1] == "0.50"
