"""Specs, data sets, trials, what is kept of them, and the judgement of claims."""

from __future__ import annotations

import json
import math
import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from htf import Domain, InputError
from htf.files import UNFINISHED
from htf.forecasts.accuracy import show_number, show_value
from htf.forecasts.places import City
from htf_bench import results as results_module
from htf_bench.claims import (
    CLAIMS,
    SPARSITY,
    claims_page,
    gains_with_sparsity,
    is_parabolic,
    judge_claims,
)
from htf_bench.datasets import GaussianSet, gaussian_matrix, gaussian_sets, is_matrix, open_matrix
from htf_bench.judging import HELD, NOT_HELD, UNDECIDED, UNKNOWN, Judge, ratio_interval
from htf_bench.paper import (
    FULL,
    HTF,
    LOS_ANGELES_POINTS,
    QUICK,
    RANDOM,
    Design,
    Scale,
    plan_paper,
    tree_label,
)
from htf_bench.results import MARKING, Results, Store, finished_trials, read_results
from htf_bench.runner import run_plan, run_trials, trials_to_do
from htf_bench.specs import (
    ZERO,
    BenchSpec,
    all_specs,
    height_ladder,
    label_of,
    read_spec,
    read_specs,
)
from htf_bench.summary import compare_all, contenders
from htf_bench.trials import Bench, Outcome, Plan, Trial, plan_trials, run_trial, trial_key
from htf_bench.workloads import read_workload

DOMAIN = Domain.from_bounds(0, 0, 1, 1, 1024)
BENCH = Bench((read_workload("random"), read_workload("2%")), 50, seed=1)
SMALL = GaussianSet("small", 5, 1, points=5000, cells=64)


def test_a_spec_has_one_way_to_be_said() -> None:
    plain = read_spec("htf-paper")
    assert read_spec("htf-paper:stop_count=100:height=none") == plain
    assert read_spec("htf-paper:stop_count=050").label == "htf-paper:stop_count=50"
    both = read_spec("htf-paper:stop_count=50:height=12")
    assert both == read_spec("htf-paper:height=12:stop_count=50")
    assert (both.height, both.family) == (12, "htf-paper:stop_count=50")
    assert both.make().parameters() == both.parameters
    assert json.loads(both.parameters_text)["search_rounds"] == 3
    assert label_of("htf-paper", both.parameters_text) == both.label
    for wrong, says in (
        ("magic", "no mechanism 'magic'"),
        ("htf-paper:size=3", "no parameter 'size'"),
        ("htf-paper:height", "NAME:PARAMETER=VALUE"),
        ("htf-paper:height=tall", "whole number, got 'tall'"),
    ):
        with pytest.raises(InputError, match=says):
            read_spec(wrong)


def test_the_floors_are_always_there_and_nothing_is_twice() -> None:
    specs = read_specs("htf-paper, htf-paper:stop_count=100", DOMAIN)
    assert specs[0] == BenchSpec(ZERO)
    assert [spec.mechanism for spec in specs].count("htf-paper") == 1
    assert len(read_specs("all,htf-paper", DOMAIN)) == len(read_specs("all", DOMAIN))
    with pytest.raises(InputError, match="takes names with commas"):
        read_specs(" , ", DOMAIN)


def test_heights_that_a_user_must_choose_come_as_a_ladder() -> None:
    ladder = height_ladder("htf-paper", {}, DOMAIN, [4, 8, 40])
    assert [spec.height for spec in ladder] == [4, 8]
    assert all(spec.of_ladder for spec in ladder)
    (group,) = contenders(ladder)
    assert group.label == "htf-paper, best height"
    found = {spec.mechanism: spec for spec in all_specs(DOMAIN)}
    assert not found["htf-paper"].of_ladder  # it chooses its own
    for tree in {"kdtree", "quadtree"} & found.keys():
        assert found[tree].of_ladder


def test_gaussian_sets() -> None:
    sets = gaussian_sets()
    assert [s.name for s in sets] == [
        "gaussian-20-1", "gaussian-20-2", "gaussian-50-1", "gaussian-50-2", "gaussian-100-1", "gaussian-100-2",
    ]  # fmt: skip
    spreads = {}
    for sigma in (20, 50):
        matrix = gaussian_matrix(sigma, 1, points=40_000)
        assert matrix.exact_counts.sum() == 40_000
        assert matrix.domain.shape == (1024, 1024)
        x = np.repeat(matrix.exact_coordinates[0], matrix.exact_counts)
        spreads[sigma] = x.std()
        again = gaussian_matrix(sigma, 1, points=40_000)
        assert np.array_equal(again.exact_coordinates, matrix.exact_coordinates)
    assert spreads[20] == pytest.approx(20, rel=0.05)
    other = gaussian_matrix(20, 2, points=100)
    assert not np.array_equal(
        other.exact_coordinates[:, :10],
        gaussian_matrix(20, 1, points=100).exact_coordinates[:, :10],
    )


def test_matrices_from_numpy_files(tmp_path: Path) -> None:
    counts = np.arange(12).reshape(3, 4)
    np.save(tmp_path / "one.npy", counts)
    np.savez(tmp_path / "two.npz", A=counts, B=counts.astype(float))
    for text in ("one.npy", "two.npz:A", "two.npz:B"):
        assert is_matrix(text)
        found = open_matrix(str(tmp_path / text))
        assert found.domain.shape == (3, 4)
        matrix = found.load()
        assert matrix.exact_counts.sum() == 66
    assert open_matrix(str(tmp_path / "one.npy"), (0, 0, 30, 40)).domain.axes[1].high == 40
    assert not is_matrix("points.csv")
    np.save(tmp_path / "cube.npy", np.zeros((2, 2, 2)))
    (tmp_path / "bad.npy").write_text("no")
    for text, says in (
        ("two.npz", "there are A, B"),
        ("two.npz:C", "there are A, B"),
        ("none.npy", "there is no file"),
        ("cube.npy", "two axes"),
        ("bad.npy", "not a NumPy file"),
    ):
        with pytest.raises(InputError, match=says):
            open_matrix(str(tmp_path / text))


def test_a_trial_repeats_itself_and_shares_its_queries() -> None:
    trial = Trial(SMALL, BenchSpec.of("htf-paper"), "0.5", 0)
    first, again = run_trial(BENCH, trial), run_trial(BENCH, trial)
    assert first.values == again.values
    assert first.failure == ""
    assert {(w, m) for w, m, _ in first.values} == {
        *((w, m) for w in ("random", "2%") for m in ("MRE", "MRE-0.1%", "RMSE", "MAE")), ("", "boxes"), ("", "height"),
    }  # fmt: skip
    assert first.values != run_trial(BENCH, replace(trial, run=1)).values
    # The error of answering zero tells the queries: the same at every epsilon, others in other runs.
    zero = Trial(SMALL, BenchSpec(ZERO), "0.5", 0)
    assert run_trial(BENCH, zero).values == run_trial(BENCH, replace(zero, epsilon="0.1")).values
    assert run_trial(BENCH, zero).values != run_trial(BENCH, replace(zero, run=1)).values


def test_a_failure_is_an_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    poor = Trial(SMALL, BenchSpec.of("htf-paper", {"epsilon_partition_level": "0.1"}), "0.1", 0)
    outcome = run_trial(BENCH, poor)
    assert outcome.failure.startswith("BudgetError: epsilon 0.1 is too small")
    assert outcome.is_lasting

    def fail(*_: Any, **__: Any) -> None:
        raise MemoryError("a point at 51.4778901")

    monkeypatch.setattr("htf_bench.trials.publish", fail)
    outcome = run_trial(BENCH, Trial(SMALL, BenchSpec.of("htf-paper"), "0.1", 0))
    assert outcome.failure.startswith("MemoryError in fail")
    assert "51.4" not in outcome.failure
    assert not outcome.is_lasting


def test_a_key_covers_all_that_matters(tmp_path: Path) -> None:
    trial = Trial(SMALL, BenchSpec.of("htf-paper"), "0.5", 0)
    variants = {
        trial_key(BENCH, trial),
        trial_key(replace(BENCH, seed=2), trial),
        trial_key(replace(BENCH, queries=51), trial),
        trial_key(replace(BENCH, workloads=BENCH.workloads[:1]), trial),
        trial_key(BENCH, replace(trial, run=1)),
        trial_key(BENCH, replace(trial, epsilon="0.4")),
        trial_key(BENCH, replace(trial, spec=BenchSpec.of("htf-paper", {"height": 3}))),
        trial_key(BENCH, replace(trial, data_set=replace(SMALL, points=5001))),
    }
    assert len(variants) == 8
    np.save(tmp_path / "m.npy", np.ones((2, 2)))
    filed = replace(trial, data_set=open_matrix(str(tmp_path / "m.npy")))
    before = trial_key(BENCH, filed)
    np.save(tmp_path / "m.npy", np.ones((2, 2), dtype=np.int8))
    assert trial_key(BENCH, filed) != before


def outcomes_of(
    values: dict[tuple[BenchSpec, str, str], list[float]], data_set: Any
) -> list[Outcome]:
    """Made-up errors: spec, epsilon and workload to the values of the runs."""
    found: dict[Trial, list[tuple[str, str, float]]] = {}
    for (spec, epsilon, workload), runs in values.items():
        for run, value in enumerate(runs):
            metric = "height" if workload == "" else "MRE"
            found.setdefault(Trial(data_set, spec, epsilon, run), []).append(
                (workload, metric, value)
            )
    return [Outcome(trial, tuple(told), seconds=1.0) for trial, told in found.items()]


def made_up(folder: Path, outcomes: list[Outcome]) -> Results:
    store = Store(folder)
    for outcome in outcomes:
        store.add(BENCH, outcome)
    store.flush()
    return read_results(Plan(BENCH, tuple(o.trial for o in outcomes)), store.read())


def test_what_is_kept_is_read_once_and_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = BenchSpec.of("htf-paper")
    outcomes = outcomes_of({(spec, "0.1", "random"): [1.0, 2.0, 3.0]}, SMALL)
    outcomes.append(Outcome(Trial(SMALL, spec, "0.2", 0), failure="BudgetError: too small"))
    made_up(tmp_path, outcomes)
    results = made_up(tmp_path, outcomes)  # everything kept twice
    assert results.values("small", spec, "0.1", "random").tolist() == [1, 2, 3]
    assert [reason for *_, reason in results.failures()] == ["BudgetError: too small"]
    results.write(tmp_path)
    table = pq.read_table(tmp_path / "results.parquet")
    assert table.column_names == [
        "dataset", "mechanism", "parameters", "epsilon", "workload", "run", "metric", "value", "seconds",
    ]  # fmt: skip
    assert table.num_rows == 3
    assert pq.read_table(tmp_path / "failures.parquet").num_rows == 1
    for name in ("results.parquet", "failures.parquet"):
        assert pq.read_metadata(tmp_path / name).metadata[b"warning"].decode() == MARKING
    # Many parts become one, with the same content.
    before = Store(tmp_path).read()
    assert len(list((tmp_path / "parts").glob("*.parquet"))) == 2
    monkeypatch.setattr(results_module, "MOST_PARTS", 1)
    after = Store(tmp_path).read()
    assert len(list((tmp_path / "parts").glob("*.parquet"))) == 1
    assert after.equals(before)
    assert len(finished_trials(after)) == 4
    # A damaged part is named.
    (tmp_path / "parts" / "00.parquet").write_text("no")
    with pytest.raises(InputError, match=r"00\.parquet is damaged"):
        Store(tmp_path).read()


def test_the_best_height_is_what_is_compared(tmp_path: Path) -> None:
    ladder = height_ladder("htf-paper", {}, DOMAIN, [4, 6, 8])
    values = {
        (spec, "0.1", "random"): [error, error + 2]
        for spec, error in zip(ladder, (5.0, 2.0, 9.0), strict=True)
    }
    results = made_up(
        tmp_path, outcomes_of({**values, (BenchSpec(ZERO), "0.1", "random"): [4.0]}, SMALL)
    )
    entrants = contenders([BenchSpec(ZERO), *ladder])
    lines = compare_all(results, "small", "0.1", ["random"], entrants)
    assert [line.label for line in lines] == ["htf-paper, best height (6)", "zero (floor)"]
    assert show_value(lines[0].values[0]) == "3.0 ± 1.4"
    assert compare_all(results, "small", "0.3", ["random"], entrants) == []


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0"),
        (0.01234, "0.012"),
        (1.234, "1.2"),
        (12.34, "12"),
        (12345.6, "12,346"),
        (1e-7, "0.0000"),
    ],
)
def test_numbers_on_the_screen(value: float, shown: str) -> None:
    assert show_number(value) == shown


def test_ratios_have_students_interval() -> None:
    ratio, low, high = ratio_interval(np.array([1.0, 4.0]), np.array([2.0, 2.0]))
    # Logarithms -ln 2 and ln 2: mean 0, standard error ln 2; t is 12.71 at one degree of freedom.
    assert ratio == pytest.approx(1)
    assert (math.log(low), math.log(high)) == pytest.approx(
        (-12.71 * math.log(2), 12.71 * math.log(2))
    )
    assert ratio_interval(np.array([1.0]), np.array([2.0])) == (0.5, 0.0, math.inf)


@pytest.fixture
def design() -> Design:
    return plan_paper(TINY, [], runs=3, seed=1)


TINY = Scale(3, 50, (4, 6, 8), ("0.1", "0.5"), ("0.1", "0.5"), (City("town", 1000, 64), SMALL))


def judged(
    tmp_path: Path, design: Design, values: dict[tuple[BenchSpec, str, str], list[float]]
) -> Judge:
    results = made_up(tmp_path, outcomes_of(values, SMALL))
    return Judge(SMALL, design, results)


def test_claims_can_hold_and_fail(tmp_path: Path, design: Design) -> None:
    lineup = design.lineups["small"]
    ours, steps = lineup.singles[HTF], lineup.ladders[HTF]
    kd = lineup.ladders.get(tree_label("kdtree", "geo"))
    if kd is None:
        pytest.skip("no kd-tree among the mechanisms")
    curve = {
        (spec, "0.1", RANDOM): [error, error * 1.1, error * 1.05]
        for spec, error in zip(kd.values(), (90.0, 20.0, 60.0), strict=True)
    }
    own = {(ours, "0.1", RANDOM): [10.0, 11.0, 10.2]}
    claims = {claim.quote: claim for claim in CLAIMS}
    beats = next(claim for quote, claim in claims.items() if "as a user would meet" in quote)
    judge = judged(tmp_path / "a", design, {**curve, **own})
    finding = beats.judge(judge)
    assert finding.verdict == HELD
    assert "won 1, tied 0, lost 0" in finding.measured
    assert "kd-tree (geo) at height 6" in finding.measured
    assert is_parabolic(judge, "kdtree").verdict == HELD
    worse = {(ours, "0.1", RANDOM): [40.0, 44.0, 41.0]}
    assert beats.judge(judged(tmp_path / "b", design, {**curve, **worse})).verdict == NOT_HELD
    unclear = {(ours, "0.1", RANDOM): [10.0, 60.0, 20.0]}
    assert beats.judge(judged(tmp_path / "c", design, {**curve, **unclear})).verdict == UNDECIDED
    assert beats.judge(judged(tmp_path / "d", design, own)).verdict == UNKNOWN
    falling = {
        key: [value / (i + 1) for value in values] for i, (key, values) in enumerate(curve.items())
    }
    falling[(list(kd.values())[2], "0.1", RANDOM)] = [1.0, 1.0, 1.0]
    assert is_parabolic(judged(tmp_path / "e", design, falling), "kdtree").verdict == NOT_HELD
    assert steps.keys() == kd.keys()


def test_the_claim_about_sparsity_joins_data_sets(tmp_path: Path) -> None:
    sets = tuple(replace(SMALL, name=f"s{sigma}", sigma=sigma) for sigma in (5, 10))
    design = plan_paper(replace(TINY, data_sets=sets), [], runs=2, seed=1)
    lineup = design.lineups["s5"]
    if "AG" not in lineup.singles:
        pytest.skip("no AG among the mechanisms")

    def find(gains: tuple[float, float], folder: str) -> str:
        outcomes = [
            outcome
            for data_set, gain in zip(sets, gains, strict=True)
            for outcome in outcomes_of(
                {
                    (lineup.singles[HTF], "0.1", RANDOM): [10.0, 12.0],
                    (lineup.singles["AG"], "0.1", RANDOM): [10.0 * gain, 12.0 * gain],
                },
                data_set,
            )
        ]
        results = made_up(tmp_path / folder, outcomes)
        return gains_with_sparsity([Judge(s, design, results) for s in sets]).verdict

    assert find((2.0, 3.0), "grows") == HELD
    assert find((3.0, 2.0), "falls") == NOT_HELD


def test_a_page_without_results_says_so(tmp_path: Path, design: Design) -> None:
    found = judge_claims(design, made_up(tmp_path, []))
    assert len(found) == len(CLAIMS) + 1
    assert {finding.verdict for _, findings in found for finding in findings} == {UNKNOWN}
    page = claims_page(design, found, "htf paper")
    assert MARKING in page
    assert SPARSITY.quote in page


def test_the_papers_experiments_are_all_there() -> None:
    """Heights, epsilons, stop counts and sizes of section 5; and one plan without doubles."""
    assert [s.name for s in FULL.data_sets] == ["city", *(s.name for s in gaussian_sets())]
    design = plan_paper(FULL, [], runs=1, seed=1)
    trials = design.plan.trials
    assert len(set(trials)) == len(trials)
    labels = {(t.spec.label, t.epsilon) for t in trials if t.data_set.name == "city"}
    for wanted in (
        ("htf-paper", "0.1"),
        ("htf-paper:epsilon_partition_level=0.0005", "0.3"),
        ("htf-paper:height=14", "0.5"),
        ("htf-paper:stop_count=10", "0.2"),
        ("htf-paper:stop_count=50", "0.4"),
        (ZERO, "0.1"),
    ):
        assert wanted in labels
    assert [w.text for w in design.plan.bench.workloads] == ["random", "2%", "6%", "10%"]
    assert design.plan.bench.queries == 2000
    for figures in design.figures.values():
        assert [figure.name for figure in figures] == [
            "data-dependent",
            "grids",
            "data-independent",
        ]
    quick = plan_paper(QUICK, [], runs=1, seed=1).plan.trials
    assert len(quick) < len(trials) / 5
    with pytest.raises(InputError, match="different names"):
        plan_paper(QUICK, [City("city")], runs=1, seed=1)


def test_trials_come_run_by_run() -> None:
    pairs = [(BenchSpec(ZERO), "0.1"), (BenchSpec.of("htf-paper"), "0.1"), (BenchSpec(ZERO), "0.1")]
    assert [(t.spec.mechanism, t.run) for t in plan_trials(SMALL, pairs, 2)] == [
        (ZERO, 0), ("htf-paper", 0), (ZERO, 1), ("htf-paper", 1),
    ]  # fmt: skip


class Deadly(GaussianSet):
    """Ends the process that receives it."""

    def __reduce__(self) -> Any:
        return os._exit, (1,)


def test_a_process_that_dies_takes_only_its_trial_along() -> None:
    good = Trial(SMALL, BenchSpec(ZERO), "0.1", 0)
    trials = [good, replace(good, data_set=Deadly("deadly", 5, 1)), replace(good, run=1)]
    found = {outcome.trial: outcome for outcome in run_trials(BENCH, trials, 1)}
    assert found.keys() == set(trials)
    assert [bool(found[trial].failure) for trial in trials] == [False, True, False]
    assert "the process ended" in found[trials[1]].failure
    assert not found[trials[1]].is_lasting
    assert found[good].values == run_trial(BENCH, good).values


def test_a_trial_that_a_broken_pool_refuses_is_run_all_the_same() -> None:
    """A process dies while its outcome before is being written: the next trial finds no pool."""
    good = Trial(SMALL, BenchSpec(ZERO), "0.1", 0)
    deadly = replace(good, data_set=Deadly("deadly", 5, 1))
    trials = [good, deadly, replace(good, run=1), replace(good, run=2)]
    before = set(threading.enumerate())
    outcomes = run_trials(BENCH, trials, 1)
    found = [next(outcomes)]
    for thread in set(threading.enumerate()) - before:
        thread.join()  # those of the pool end when it is broken
    found += outcomes
    failed = [(outcome.trial, bool(outcome.failure)) for outcome in found]  # in any order
    assert len(failed) == len(trials)
    assert dict(failed) == {trial: trial is deadly for trial in trials}


def test_a_part_that_was_not_finished_counts_for_nothing(tmp_path: Path) -> None:
    """As a kill before it had its name leaves it: its trials are run again, and told once."""
    plan = Plan(
        BENCH, tuple(plan_trials(SMALL, [(BenchSpec(ZERO), "0.1"), (BenchSpec(ZERO), "0.5")], 1))
    )
    store = Store(tmp_path)
    for trial in plan.trials:
        store.add(BENCH, run_trial(BENCH, trial))
        store.flush()
    expected = store.read().drop_columns(["seconds"])
    assert trials_to_do(plan, tmp_path) == []
    *_, last = sorted((tmp_path / "parts").iterdir())
    last.rename(last.with_name(f"{UNFINISHED}0123abcd.parquet"))
    assert trials_to_do(plan, tmp_path) == [plan.trials[1]]
    results = run_plan(plan, tmp_path)
    assert results.table.num_rows == expected.num_rows
    assert Store(tmp_path).read().drop_columns(["seconds"]).equals(expected)


def test_the_papers_heights_are_for_its_number_of_points(tmp_path: Path) -> None:
    claim = next(claim for claim in CLAIMS if "levels 15, 16, and 17" in claim.quote)
    verdicts = {}
    for city in (City("large", LOS_ANGELES_POINTS, 64), City("small", 1000, 64)):
        design = plan_paper(replace(TINY, data_sets=(city,)), [], runs=1, seed=1)
        ours = design.lineups[city.name].singles[HTF]
        for heights in ((15, 17), (14, 17)):
            values = {
                (ours, e, ""): [float(h)] for e, h in zip(("0.1", "0.5"), heights, strict=True)
            }
            results = made_up(tmp_path / f"{city.name}{heights}", outcomes_of(values, city))
            verdicts[city.name, heights] = claim.judge(Judge(city, design, results)).verdict
    assert list(verdicts.values()) == [HELD, NOT_HELD, UNKNOWN, UNKNOWN]
