"""Forecasts: populations that stand in, and errors measured as the bench measures them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from htf import BudgetError, Domain, Epsilon, FrequencyMatrix, InputError, Release, publish
from htf.estimation.nonnegative import non_negative
from htf.evaluation.datasets import DataSet, GaussianSet
from htf.evaluation.forecast import MOST_RUNS_BESIDE, Area, Forecast, Simulation, simulate
from htf.evaluation.metrics import MRE
from htf.evaluation.specs import Spec
from htf.evaluation.standins import PastRelease, PublicPoints, scatter
from htf.evaluation.trials import Bench, Trial, run_trial
from htf.evaluation.workloads import read_workload
from htf.release.file import is_release
from support import city_matrix, dense, grid

SMALL = GaussianSet("small", 5, 1, points=20_000, cells=64)
BENCH = Bench(tuple(map(read_workload, ("data-1%", "2%", "random"))), 200, 1)


def release_of(matrix: FrequencyMatrix, mechanism: str = "htf", epsilon: str = "0.5") -> Release:
    return publish(matrix, epsilon, mechanism, noise="seeded:1")


def plan(stand_in: DataSet = SMALL, epsilon: str = "0.5", runs: int = 2, **spec: str) -> Simulation:
    made = Spec.of(spec.get("mechanism", "htf"))
    return Simulation(stand_in, made, Epsilon.of(epsilon), runs, BENCH)


@pytest.mark.parametrize("mechanism", ["htf", "htf-paper", "uniform"])
def test_a_release_stands_in_as_it_was_published(mechanism: str) -> None:
    release = release_of(city_matrix(), mechanism)
    counts = dense(PastRelease("r", release).load())
    parts = release.derived.parts
    weights = non_negative(parts)
    expected = weights * (round(release.estimates.sum()) / weights.sum())
    held = [
        counts[tuple(map(slice, low, high))].sum()
        for low, high in zip(parts.low, parts.high, strict=True)
    ]
    assert np.abs(held - expected).max() < 1
    assert abs(counts.sum() - release.estimates.sum()) < 5 * np.sqrt(len(parts.low))
    assert np.all(counts == dense(PastRelease("r", release).load()))  # fixed, as one population is


def test_records_are_spread_over_the_cells_of_their_box() -> None:
    release = release_of(city_matrix(), "uniform")
    counts = dense(PastRelease("r", release, points=4096 * 100).load())
    assert counts.sum() == 4096 * 100
    assert np.mean((counts - 100) ** 2) == pytest.approx(100, rel=0.15)  # of a multinomial draw


def test_a_release_scaled_and_on_a_coarser_grid() -> None:
    release = release_of(city_matrix())
    fine = PastRelease("r", release, points=5000)
    coarse = PastRelease("r", release, points=5000, cells=(16, 32))
    assert abs(dense(fine.load()).sum() - 5000) < 200
    assert coarse.domain.shape == (16, 32)
    assert [(a.low, a.high) for a in coarse.domain.axes] == [(0.0, 64.0)] * 2
    blocks = dense(fine.load()).reshape(16, 4, 32, 2).sum(axis=(1, 3))
    assert np.all(dense(coarse.load()) == blocks)
    assert dense(PastRelease("r", release, points=1).load()).sum() >= 1


@pytest.mark.parametrize("cells", [(128, 64), (48, 64), (64,), (0, 64)])
def test_a_grid_that_does_not_fit_the_release(cells: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="does not fit the release, which has 64 x 64"):
        PastRelease("r", release_of(city_matrix()), cells=cells)


def test_a_release_of_nothing_cannot_stand_in() -> None:
    empty = FrequencyMatrix.from_dense(grid(8, 8), np.zeros((8, 8), dtype=int))
    releases = [publish(empty, 50, "uniform", noise=f"seeded:{seed}") for seed in range(3)]
    with pytest.raises(InputError, match="no records"):
        PastRelease("r", min(releases, key=lambda r: float(r.estimates.sum()))).load()


def test_public_points_as_they_are_or_drawn_from(tmp_path: Path) -> None:
    path = tmp_path / "points.parquet"
    pq.write_table(pa.table({"lon": [0.1] * 30 + [0.9] * 10, "lat": [0.1] * 30 + [0.9] * 10}), path)
    domain = Domain.from_bounds(0, 0, 1, 1, 2)
    there = PublicPoints("p", path, ("lon", "lat"), domain)
    assert dense(there.load()).tolist() == [[30, 0], [0, 10]]
    more = dense(PublicPoints("p", path, ("lon", "lat"), domain, 40_000).load())
    assert more.sum() == 40_000
    assert more[0, 0] == pytest.approx(30_000, rel=0.02)
    elsewhere = Domain.from_bounds(5, 5, 6, 6, 2)
    with pytest.raises(InputError, match=r"none of the points of points\.parquet"):
        PublicPoints("p", path, ("lon", "lat"), elsewhere).load()
    assert not is_release(path)
    release_of(city_matrix()).save(tmp_path / "r.parquet")
    assert is_release(tmp_path / "r.parquet")


def test_errors_are_those_of_the_bench() -> None:
    found = simulate(plan())
    assert found.records == 20_000
    for run in range(2):
        outcome = run_trial(BENCH, Trial(SMALL, Spec.of("htf"), "0.5", run))
        bench = {workload: value for workload, metric, value in outcome.values if metric == MRE}
        for area in found.main.areas:
            assert area.relative_errors[run] == bench[area.workload.text]
    at_records, squares, _ = found.main.areas
    assert at_records.share == pytest.approx(0.01, rel=0.2)
    assert squares.share == pytest.approx(0.02, rel=0.2)
    assert at_records.count > squares.count
    for area in found.main.areas:
        assert np.all(area.errors < area.large_errors)
        assert area.km is None  # this map is not one of the earth
    again = simulate(plan())
    assert [a.to_dict() for a in again.main.areas] == [a.to_dict() for a in found.main.areas]


def test_more_budget_less_error_and_every_release_is_told() -> None:
    """Of `ug`, whose error is mostly noise: three runs tell the budgets apart."""
    told: list[tuple[int, int]] = []
    found = simulate(
        plan(runs=4, mechanism="ug"), lambda done, total, _: told.append((done, total))
    )
    assert [str(o.epsilon) for o in found.outlooks] == ["0.25", "0.5", "1"]
    assert [o.runs for o in found.outlooks] == [MOST_RUNS_BESIDE, 4, MOST_RUNS_BESIDE]
    less, same, more = map(found.change, found.outlooks)
    assert less > 1.2
    assert more < 0.8
    assert same == pytest.approx(1)
    assert told == [(0, 10), *((done, 10) for done in range(10))]


def test_budgets_that_cannot_be() -> None:
    assert [str(e) for e in plan(epsilon="1000").budgets] == ["1000", "500"]
    assert [e.units for e in plan(epsilon="1e-15").budgets] == [1, 2]
    with pytest.raises(BudgetError):
        simulate(plan(epsilon="0.01", mechanism="htf-paper"))
    half, asked, _ = simulate(plan(epsilon="0.02", mechanism="htf-paper")).outlooks
    assert asked.areas
    assert (half.areas, half.failure != "") == ((), True)


class Real(GaussianSet):
    """A set of which everything is known, for a forecast to be held against."""

    def load(self) -> FrequencyMatrix:
        return city_matrix(self.cells, self.points)

    @property
    def domain(self) -> Domain:
        return grid(self.cells, self.cells)


def test_a_forecast_from_a_release_comes_near_the_truth() -> None:
    real = Real("real", 1, 1, points=200_000, cells=256)
    past = PastRelease("past", release_of(real.load()))
    truth, forecast = simulate(plan(real)), simulate(plan(past))
    for there, here in zip(truth.main.areas, forecast.main.areas, strict=True):
        assert here.count == pytest.approx(there.count, rel=0.1)
        assert here.error == pytest.approx(there.error, rel=0.5)


def test_sizes_in_kilometres() -> None:
    from htf.evaluation.datasets import City

    found: Forecast = simulate(plan(City("city", 5000, 64), runs=1))
    square: Area = found.main.areas[1]
    assert square.km == pytest.approx((30 * np.sqrt(0.02),) * 2, rel=0.1)
    assert square.to_dict()["median_error"]["deviation_over_runs"] is None


@pytest.mark.parametrize("unevenness", [0.0, 0.2, 0.9])
def test_records_are_strewn_as_unevenly_as_said(unevenness: float) -> None:
    """The first cut's share has the mean and the variance of the beta distribution of `scatter`.

    4,000 boxes of 1,000 records, fixed seed: the variance is within 15 % (three standard deviations of
    its estimate at the least even setting) plus what drawing records adds.
    """
    boxes, records = 4000, 1000
    low = np.column_stack([np.arange(boxes) * 8, np.zeros(boxes, dtype=np.int64)])
    high = low + 8
    cells, counts = scatter(
        low, high, np.full(boxes, records), unevenness, np.random.default_rng(5)
    )
    assert counts.sum() == boxes * records
    assert len(np.unique(cells, axis=0)) == len(cells)
    left = np.bincount(cells[:, 0] // 8, counts * (cells[:, 0] % 8 < 4), minlength=boxes) / records
    drawn = (1 - unevenness) / (4 * records)
    assert left.mean() == pytest.approx(0.5, abs=0.03)
    assert left.var() == pytest.approx(unevenness / 4 + drawn, rel=0.15)
