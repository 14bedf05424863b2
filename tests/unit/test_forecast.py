"""Forecasts: populations that stand in, and errors measured as the bench measures them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from htf import (
    BudgetError,
    Domain,
    Epsilon,
    FrequencyMatrix,
    InputError,
    Protection,
    RecordsPerPerson,
    Release,
    measure_activity,
    publish,
    read_points,
)
from htf.estimation.activity import read_profiles
from htf.estimation.nonnegative import non_negative
from htf.forecasts.datasets import City, DataSet
from htf.forecasts.population import Population, RecordsByActivity, RecordsEach, visits
from htf.forecasts.protecting import SCALINGS, Counted, Known, release_people
from htf.forecasts.simulation import MOST_RUNS_BESIDE, Area, Forecast, Simulation, simulate
from htf.forecasts.specs import Spec
from htf.forecasts.standins import PastRelease, PublicPoints, scatter
from htf.forecasts.trials import Bench, Trial, seeded_noise
from htf.forecasts.workloads import read_workload
from htf.release.file import is_release
from htf_bench.datasets import GaussianSet
from htf_bench.metrics import MRE
from htf_bench.specs import BenchSpec
from htf_bench.trials import BenchTrial, run_trial
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
        outcome = run_trial(BENCH, BenchTrial(SMALL, BenchSpec.of("htf"), "0.5", run))
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
    from htf.forecasts.datasets import City

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


QUANTILES = RecordsEach((0.5, 0.9, 1.0), (5, 40, 900))


def some_people(number: int = 2000, records: RecordsEach = QUANTILES) -> Population:
    return Population("people", City("city", 50_000, 64), number, records)


def test_quantiles_are_met() -> None:
    each = QUANTILES.of_people(100_000, np.random.default_rng(1))
    assert each.min() == 1
    assert 500 < each.max() <= 900
    assert np.mean(each <= 5) == pytest.approx(0.5, abs=0.02)
    assert np.mean(each <= 40) == pytest.approx(0.9, abs=0.01)
    assert set(RecordsEach.read("7").of_people(10, np.random.default_rng(1))) == {7}
    beyond = RecordsEach.read("0.5:5,0.9:40").of_people(100_000, np.random.default_rng(1))
    assert (
        1000 < beyond.max() < 100_000
    )  # where the last quantile is not that of all, some have more
    assert np.all(np.diff(each) >= 0)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("many", "quantiles SHARE:RECORDS"),
        ("0.5:5;0.9:40", "quantiles SHARE:RECORDS"),
        ("0.5:5,0.9", "quantiles SHARE:RECORDS"),
        ("0.5:40,0.9:5", "must not fall"),
        ("0.9:5,0.5:40", "must rise"),
        ("0.5:5,0.5:6", "must rise"),
        ("0.5:5,1.1:6", "above 0 and at most 1"),
        ("0:1,1:6", "above 0 and at most 1"),
        ("0.5:0,1:6", "between 1 and"),
        ("0", "between 1 and"),
        ("0.5:5", "one quantile does not tell"),
    ],
)
def test_wrong_quantiles(text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        RecordsEach.read(text)


def test_shares_of_people_are_those_of_the_reader(tmp_path: Path) -> None:
    """The simulation hands out shares as `read_points` does for the same records."""
    people = some_people(300)
    located = people.located
    x, y = (located.coordinates[axis][located.cell] for axis in (0, 1))
    domain = people.domain
    lon, lat = (a.from_cells(c + 0.5) for a, c in zip(domain.axes, (x, y), strict=True))
    table = pa.table({"lon": lon, "lat": lat, "who": located.person})
    pq.write_table(table, tmp_path / "p.parquet")
    real = read_points(tmp_path / "p.parquet", domain, ["lon", "lat"], user="who", count="people")
    made = people.shared(Counted().protection(1))
    assert made.protection == real.protection
    assert np.all(dense(made) == dense(real))
    assert made.exact_counts.sum() == 300 * made.protection.shares


def test_records_that_are_kept() -> None:
    people = some_people(500)
    each = people.records_each
    kept = people.kept(Protection("person", 8), np.random.default_rng(2))
    assert kept.exact_counts.sum() == np.minimum(each, 8).sum()
    assert np.all(dense(kept) <= dense(people.load()))
    assert people.load().exact_counts.sum() == each.sum()


def test_people_return_and_stay_near() -> None:
    """Two records of one person are in the same sixteenth of the map far more often than those of two people."""
    located = some_people(2000, RecordsEach.alike(20)).located
    mixed = np.random.default_rng(1).permuted(located.cell.reshape(2000, 20), axis=1)
    cells = located.coordinates[:, mixed] // 16
    same = np.mean(np.all(cells[:, :, 0] == cells[:, :, 11], axis=0))
    other = np.mean(np.all(cells[:, :-1, 0] == cells[:, 1:, 11], axis=0))
    assert same > other + 0.2
    first = visits(np.array([1000, 3]), np.random.default_rng(1))
    assert np.all(first[first] == first)
    assert np.all(first <= np.arange(1003))
    assert np.all(first[1000:] >= 1000)  # nobody goes to the places of others
    assert 300 < len(np.unique(first[:1000])) < 700  # about 1000**0.9


def test_the_map_of_people_is_that_of_the_stand_in() -> None:
    """Over populations: quarters of the map have the share of records that they have in the stand-in."""
    places = City("city", 50_000, 64)
    there = dense(places.load()).reshape(2, 32, 2, 32).sum(axis=(1, 3)) / 50_000
    found = np.zeros((2, 2))
    for draw in range(8):
        people = Population("p", places, 2000, RecordsEach.alike(10), draw)
        found += dense(people.load()).reshape(2, 32, 2, 32).sum(axis=(1, 3)) / 20_000 / 8
    assert np.abs(found - there).max() < 0.02


def test_counting_people_has_no_bias() -> None:
    made = Simulation(some_people(), Spec.of("htf"), Epsilon.of(1), 2, BENCH, Counted())
    found = simulate(made)
    assert (found.people, found.quantity, found.counted) == (2000, "split people", "split people")
    for area in found.main.areas:
        assert area.biases is not None
        assert area.noises is not None
        assert np.abs(area.biases).max() == 0
        assert np.allclose(area.noises, area.errors)
    assert found.main.areas[0].count < 2000
    again = simulate(made)
    assert [a.to_dict() for a in again.main.areas] == [a.to_dict() for a in found.main.areas]


def test_counting_records_has_the_bias_of_those_not_kept() -> None:
    """Unscaled, bias is the share of records that are not kept; scaled, it is far less."""
    people = some_people(5000)
    kept = {}
    for share in (Fraction(0), Fraction(1, 10)):
        counted = Counted("records", 5, share)
        found = simulate(Simulation(people, Spec.of("htf"), Epsilon.of(2), 2, BENCH, counted))
        assert found.main.kept == (5, 5)
        kept[share] = found
    unscaled, scaled = kept.values()
    assert (unscaled.counted, scaled.counted) == (
        "records, at most 5 per person",
        "records, at most 5 per person, scaled",
    )
    each = people.records_each
    missing = 1 - np.minimum(each, 5).sum() / each.sum()
    area, same = unscaled.main.areas[0], scaled.main.areas[0]
    assert area.biases is not None
    assert same.biases is not None
    assert area.biases.mean() == pytest.approx(missing * area.count, rel=0.3)
    assert same.biases.mean() < area.biases.mean() / 2
    assert area.to_dict()["median_bias"]["mean"] == area.biases.mean()


@pytest.mark.slow
def test_the_number_of_records_is_found_in_each_run() -> None:
    counted = Counted("records", None, Fraction(1, 10), 1000)
    found = simulate(
        Simulation(some_people(5000), Spec.of("htf"), Epsilon.of(1), 3, BENCH, counted)
    )
    assert len(found.main.kept) == 3
    assert all(1 <= most <= 1000 for most in found.main.kept)
    assert "per person, scaled" in found.counted
    if len(set(found.main.kept)) > 1:
        assert f"at most {min(found.main.kept)} to {max(found.main.kept)}" in found.counted


@pytest.mark.slow
def test_totals_are_drawn_several_times_for_each_map() -> None:
    """As a release of the same records with another activity would be scaled."""
    people, counted = some_people(2000), Counted("records", 5, Fraction(1, 10))
    trial = Trial(people, Spec.of("htf"), "1", 0)
    made = release_people(BENCH, trial, counted)
    assert len(made.scalings) == SCALINGS == len(set(made.scalings))
    assert made.scalings[0] == 1
    each = RecordsPerPerson.from_records(people.records_each, 2**20)
    for number in (1, SCALINGS - 1):
        noise = seeded_noise(BENCH, trial, f"activity {number}")
        again = measure_activity(each, "0.1", noise=noise)
        other = publish(made.measured, 1, noise=seeded_noise(BENCH, trial), bought=(again,))
        wanted = made.release.estimates * made.scalings[number]
        assert np.allclose(other.estimates, wanted, rtol=1e-9)
    assert release_people(BENCH, trial, replace(counted, activity=Fraction(0))).scalings == (1.0,)
    assert release_people(BENCH, trial, Counted()).scalings == (1.0,)
    for asked, number in ((counted, 2 * SCALINGS), (Counted(), 2)):
        found = simulate(Simulation(people, Spec.of("htf"), Epsilon.of(1), 2, BENCH, asked))
        assert {len(area.errors) for area in found.main.areas} == {number}
        assert len(found.main.kept) == 2


def test_records_follow_the_middle_of_what_the_activity_leaves_open() -> None:
    """The mean of 50 populations is that of one profile: a deviation of more than 6 standard errors fails, by chance
    less than once in 100 million seeds."""
    noisy = RecordsPerPerson.from_records(some_people(2000).records_each, 2**20)
    records = RecordsByActivity(measure_activity(noisy, "0.05", noise="seeded:1"))
    profiles = read_profiles(records.activity)
    numbers = profiles.grid.numbers
    totals = profiles.people @ numbers
    below = profiles.weights[totals < np.median(totals)].sum()
    assert 0 < below < 1  # several profiles are possible
    drawn = [records.of_people(2000, np.random.default_rng(seed)).mean() for seed in range(50)]
    error = np.std(drawn, ddof=1) / 50**0.5
    order = np.argsort(totals)
    middle = order[np.searchsorted(np.cumsum(profiles.weights[order]), 0.5)]
    profile = profiles.people[middle]
    wanted = profile @ np.rint(numbers) / profile.sum()
    assert abs(np.mean(drawn) - wanted) < 6 * error


def test_what_a_release_of_people_tells() -> None:
    people = some_people(5000)
    shared = publish(people.shared(Counted().protection(1)), 1, noise="seeded:1")
    of_people = Known.of(shared)
    assert of_people is not None
    assert of_people.people == pytest.approx(5000, rel=0.02)
    assert (of_people.counted, of_people.records) == (Counted(), None)
    bought = measure_activity(
        RecordsPerPerson.from_records(people.records_each, 2**20), "0.1", noise="seeded:1"
    )
    kept = people.kept(Protection("person", 8), np.random.default_rng(2))
    scaled = Known.of(publish(kept, 1, noise="seeded:1", bought=(bought,)))
    assert scaled is not None
    assert scaled.counted == Counted("records", 8, Fraction(1, 10))
    assert scaled.records == RecordsByActivity(bought)
    assert scaled.people == pytest.approx(5000, rel=0.05)
    drawn = scaled.records.of_people(5000, np.random.default_rng(1))
    assert np.median(drawn) == pytest.approx(np.median(people.records_each), rel=0.5)
    plain = Known.of(publish(kept, 1, noise="seeded:1"))
    assert plain is not None
    assert (plain.counted, plain.people) == (Counted("records", 8), None)
    assert Known.of(release_of(city_matrix())) is None


def test_a_forecast_of_people_comes_near_the_truth() -> None:
    """From a release of one population, the error of releases of another one of the same kind."""
    real = some_people(20_000)
    truth = simulate(Simulation(real, Spec.of("htf"), Epsilon.of(1), 2, BENCH, Counted()))
    shared = publish(real.shared(Counted().protection(1)), 1, noise="seeded:1")
    places = PastRelease("past", shared, 200_000, of_leaves=True)
    past = Population("past", places, 20_000, RecordsEach.alike(10))
    forecast = simulate(Simulation(past, Spec.of("htf"), Epsilon.of(1), 2, BENCH, Counted()))
    for there, here in zip(truth.main.areas, forecast.main.areas, strict=True):
        assert here.error == pytest.approx(there.error, rel=0.5)


def test_wrong_counts_of_people() -> None:
    with pytest.raises(InputError, match="the activity must be measured"):
        Counted("records")
    with pytest.raises(InputError, match="stand_in"):
        Simulation(SMALL, Spec.of("htf"), Epsilon.of(1), 1, BENCH, Counted())
    with pytest.raises(InputError, match="fewer people or records"):
        _ = some_people(1_000_000, RecordsEach.alike(100)).records_each
