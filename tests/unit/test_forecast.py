"""Forecasts: populations that stand in, and errors measured as the bench measures them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

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
    Recipe,
    RecordsPerPerson,
    Release,
    measure_activity,
    publish,
    read_people_by_box,
    read_points,
)
from htf.estimation.activity import read_profiles
from htf.estimation.nonnegative import non_negative
from htf.estimation.worth import scale_to_all
from htf.forecasts.made_up import MadeUp, StandIn
from htf.forecasts.people import Crowd, RecordsByActivity, RecordsEach, visits
from htf.forecasts.places import City, DataSet, PastRelease, PointsFile, scatter
from htf.forecasts.plan import Assumed, like_release, plan_of
from htf.forecasts.questions import OfWorkload
from htf.forecasts.simulation import MOST_RUNS_BESIDE, SCALINGS, Area, Made, Simulation, simulate
from htf.forecasts.workloads import read_workload
from htf.frame.division import Division
from htf.frame.domain import IntArray
from htf.release.file import is_release
from htf_bench.datasets import GaussianSet
from htf_bench.metrics import MRE
from htf_bench.specs import BenchSpec
from htf_bench.trials import Bench, Trial, run_trial
from support import city_matrix, dense, grid

SMALL = GaussianSet("small", 5, 1, points=20_000, cells=64)
BENCH = Bench(tuple(map(read_workload, ("data-1%", "2%", "random"))), 200, 1)


def release_of(matrix: FrequencyMatrix, mechanism: str = "htf", epsilon: str = "0.5") -> Release:
    return publish(matrix, epsilon, mechanism, noise="seeded:1")


def plan(
    places: DataSet = SMALL,
    epsilon: str = "0.5",
    runs: int = 2,
    crowd: Crowd | None = None,
    **given: Any,
) -> Simulation:
    """Releases of a recipe on the map of a data set, whose records stand in. They are asked as by the bench."""
    recipe = Recipe(source=(), domain=places.domain, epsilon=epsilon, **given)
    stand_in = StandIn("points", places.name, "a set", places.domain, places, crowd)
    kinds = tuple(map(OfWorkload.of, BENCH.workloads))
    return Simulation(recipe.prepare(noise="seeded:1"), stand_in, kinds, runs, BENCH.queries)


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
    there = PointsFile("p", path, ("lon", "lat"), domain)
    assert dense(there.load()).tolist() == [[30, 0], [0, 10]]
    more = dense(PointsFile("p", path, ("lon", "lat"), domain, 40_000).load())
    assert more.sum() == 40_000
    assert more[0, 0] == pytest.approx(30_000, rel=0.02)
    elsewhere = Domain.from_bounds(5, 5, 6, 6, 2)
    with pytest.raises(InputError, match=r"none of the points of points\.parquet"):
        PointsFile("p", path, ("lon", "lat"), elsewhere).load()
    assert not is_release(path)
    release_of(city_matrix()).save(tmp_path / "r.parquet")
    assert is_release(tmp_path / "r.parquet")


def test_errors_are_those_of_the_bench() -> None:
    found = simulate(plan())
    assert found.plan.records == 20_000
    for run in range(2):
        outcome = run_trial(BENCH, Trial(SMALL, BenchSpec.of("htf"), "0.5", run))
        bench = {workload: value for workload, metric, value in outcome.values if metric == MRE}
        for area in found.main.areas:
            assert area.relative_errors[run] == bench[area.kind.text]
    at_records, squares, _ = found.main.areas
    assert at_records.share == pytest.approx(0.01, rel=0.2)
    assert squares.share == pytest.approx(0.02, rel=0.2)
    assert at_records.count > squares.count
    for area in found.main.areas:
        assert np.all(area.errors < area.large_errors)
        assert area.km is None  # this map is not one of the earth
    again = simulate(plan())
    assert [a.to_dict() for a in again.main.areas] == [a.to_dict() for a in found.main.areas]


def test_few_areas_say_little_about_another_budget() -> None:
    found = simulate(plan(runs=1))
    areas = [replace(area, errors=np.ones(1)) for area in found.main.areas[:2]]
    few, many = replace(areas[0], answers=3), replace(areas[1], answers=97)
    lucky = replace(few, errors=np.array([0.01]))
    beside = replace(found.main, areas=(lucky, replace(many, errors=np.array([2.0]))))
    compared = replace(found, main=replace(found.main, areas=(few, many)), beside=(beside,))
    assert compared.change(beside) == pytest.approx(0.01**0.03 * 2**0.97)


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
    least = plan(epsilon="1e-15", mechanism="uniform")
    assert [e.units for e in least.budgets] == [1, 2]
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
    from htf.forecasts.places import City

    found = simulate(plan(City("city", 5000, 64), runs=1))
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


CITY = City("city", 50_000, 64)


def some_people(number: int = 2000, records: RecordsEach = QUANTILES, run: int = 0) -> MadeUp:
    return StandIn("city", "people", "a city", CITY.domain, CITY, Crowd(number, records)).draw(run)


def each_of(people: MadeUp) -> IntArray:
    assert people.each is not None
    return people.each


def of_people(number: int = 2000, **given: Any) -> Simulation:
    return plan(CITY, "1", crowd=Crowd(number, QUANTILES), user="who", **given)


def all_records(people: MadeUp) -> FrequencyMatrix:
    return people.on(people.domain, people.number, Protection())


def kept_of(people: MadeUp, most: int) -> FrequencyMatrix:
    unit = Protection("person", most)
    return people.on(people.domain, people.counted(unit), unit)


def shared(people: MadeUp) -> FrequencyMatrix:
    unit = Protection("person", count="people", shares=256)
    return people.on(people.domain, people.counted(unit), unit)


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
    domain = people.domain
    lon, lat = (a.from_cells(c + 0.5) for a, c in zip(domain.axes, people.cells, strict=True))
    table = pa.table({"lon": lon, "lat": lat, "who": people.person})
    pq.write_table(table, tmp_path / "p.parquet")
    real = read_points(tmp_path / "p.parquet", domain, ["lon", "lat"], user="who", count="people")
    made = shared(people)
    assert made.protection == real.protection
    assert np.all(dense(made) == dense(real))
    assert made.exact_counts.sum() == 300 * made.protection.shares


def test_people_by_box_are_those_of_the_reader() -> None:
    people = some_people(300)
    lon, lat = (
        a.from_cells(c + 0.5) for a, c in zip(people.domain.axes, people.cells, strict=True)
    )
    source = {"lon": lon, "lat": lat, "who": people.person}
    real = read_people_by_box(source, people.domain, 8, user="who")
    made = people.people_by_box(Division.of(8), people.domain)
    assert np.all(made.sum(axis=0) == real.exact_people.sum(axis=0))
    assert np.all(made.sum(axis=1) == real.exact_people.sum(axis=1))


def test_records_that_are_kept() -> None:
    people = some_people(500)
    kept = kept_of(people, 8)
    assert kept.exact_counts.sum() == np.minimum(each_of(people), 8).sum()
    assert np.all(dense(kept) <= dense(all_records(people)))
    assert all_records(people).exact_counts.sum() == each_of(people).sum() == people.records


def test_people_return_and_stay_near() -> None:
    """Two records of one person are in the same sixteenth of the map far more often than those of two people."""
    people = some_people(2000, RecordsEach.alike(20))
    sixteenths = people.cells[0] // 16 * 4 + people.cells[1] // 16
    cells = np.random.default_rng(1).permuted(sixteenths.reshape(2000, 20), axis=1)
    same = np.mean(cells[:, 0] == cells[:, 11])
    other = np.mean(cells[:-1, 0] == cells[1:, 11])
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
        people = some_people(2000, RecordsEach.alike(10), draw)
        found += dense(all_records(people)).reshape(2, 32, 2, 32).sum(axis=(1, 3)) / 20_000 / 8
    assert np.abs(found - there).max() < 0.02


def test_counting_people_has_no_bias() -> None:
    found = simulate(of_people())
    assert (found.quantity, found.counted) == ("split people", "split people")
    for area in found.main.areas:
        assert np.abs(area.biases).max() == 0
        assert np.allclose(area.noises, area.errors)
    assert found.main.areas[0].count < 2000
    again = simulate(of_people())
    assert [a.to_dict() for a in again.main.areas] == [a.to_dict() for a in found.main.areas]


@pytest.mark.slow
def test_counting_records_has_the_bias_of_those_not_kept() -> None:
    """Unscaled, bias is the share of records that are not kept; scaled, it is far less."""
    plans = [
        replace(of_people(5000, max_records=5, spend={"activity": share}), runs=2)
        for share in (0, 0.1)
    ]
    unscaled, scaled = map(simulate, plans)
    assert unscaled.main.kept == scaled.main.kept == (5, 5)
    assert (unscaled.counted, scaled.counted) == (
        "records, at most 5 per person",
        "records, at most 5 per person, scaled",
    )
    each = each_of(plans[0].stand_in.draw(0))
    missing = 1 - np.minimum(each, 5).sum() / each.sum()
    area, same = unscaled.main.areas[0], scaled.main.areas[0]
    assert area.biases.mean() == pytest.approx(missing * area.count, rel=0.3)
    assert same.biases.mean() < area.biases.mean() / 2
    assert area.to_dict()["median_bias"]["mean"] == area.biases.mean()


@pytest.mark.slow
def test_the_number_of_records_is_found_in_each_run() -> None:
    found = simulate(replace(of_people(5000, max_records="auto"), runs=3))
    assert len(found.main.kept) == 3
    assert all(1 <= most <= 1000 for most in found.main.kept)
    assert "per person, scaled" in found.counted
    if len(set(found.main.kept)) > 1:
        assert f"at most {min(found.main.kept)} to {max(found.main.kept)}" in found.counted


@pytest.mark.slow
def test_totals_are_drawn_several_times_for_each_map() -> None:
    """As a release of the same records with another activity would be scaled."""
    asked, epsilon = of_people(max_records=5), Epsilon.of(1)
    made = Made.of(asked, epsilon, 0)
    assert len(made.scalings) == SCALINGS == len(set(made.scalings))
    assert made.scalings[0] == 1
    people = each_of(asked.stand_in.draw(0))
    assert made.release.activity is not None
    each = RecordsPerPerson.from_records(people, made.release.activity.ends[-1])
    for number in (1, SCALINGS - 1):
        noise = asked.noise(epsilon, 0, f"activity {number}")
        again = measure_activity(each, "0.1", noise=noise)
        kept = made.release.estimates / made.release.factor
        factor = scale_to_all(kept, made.release.scales, made.release.protection, again)
        assert made.scalings[number] == pytest.approx(factor / made.release.factor)
    for plain in (of_people(max_records=5, spend={"activity": 0}), of_people()):
        assert Made.of(plain, epsilon, 0).scalings == (1.0,)
    for one, number in ((asked, 2 * SCALINGS), (of_people(), 2)):
        found = simulate(one)
        assert {len(area.errors) for area in found.main.areas} == {number}
        assert len(found.main.kept) == 2


def test_records_follow_the_middle_of_what_the_activity_leaves_open() -> None:
    """The mean of 50 populations is that of one profile: a deviation of more than 6 standard errors fails, by chance
    less than once in 100 million seeds."""
    noisy = RecordsPerPerson.from_records(each_of(some_people(2000)), 2**20)
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
    of_shares = publish(shared(people), 1, noise="seeded:1")
    assert like_release(of_shares)["count"] == "people"
    made = plan_of(Recipe(source=None, epsilon=1), Assumed(like=of_shares))
    assert made.protection == of_shares.protection
    assert made.stand_in.crowd is not None
    assert made.stand_in.crowd.people == pytest.approx(5000, rel=0.02)
    bought = measure_activity(
        RecordsPerPerson.from_records(each_of(people), 2**20), "0.1", noise="seeded:1"
    )
    kept = kept_of(people, 8)
    scaled = publish(kept, 1, noise="seeded:1", bought=(bought,))
    made = plan_of(Recipe(source=None, epsilon=2), Assumed(like=scaled))
    assert made.prepared.reading.max_records == 8
    assert made.prepared.recipe.most_records == 2**20
    assert str(made.prepared.quote.prices["activity"]) == "0.2"
    crowd = made.stand_in.crowd
    assert crowd is not None
    assert crowd.records == RecordsByActivity(bought)
    assert crowd.people == pytest.approx(5000, rel=0.05)
    drawn = crowd.records.of_people(5000, np.random.default_rng(1))
    assert np.median(drawn) == pytest.approx(np.median(each_of(people)), rel=0.5)
    plain = publish(kept, 1, noise="seeded:1")
    with pytest.raises(InputError, match="say roughly how many"):
        plan_of(Recipe(source=None, epsilon=2), Assumed(like=plain))
    told = Assumed(like=plain, people=5000, records_per_person=QUANTILES)
    made = plan_of(Recipe(source=None, epsilon=2), told)
    assert (made.protection.max_records, dict(made.prepared.quote.prices)) == (8, {})
    made = plan_of(Recipe(source=None, epsilon=2), Assumed(like=release_of(city_matrix())))
    assert (made.stand_in.crowd, made.protection) == (None, Protection())


def test_a_forecast_of_people_comes_near_the_truth() -> None:
    """From a release of one population, the error of releases of another one of the same kind."""
    real = plan(CITY, "1", crowd=Crowd(20_000, QUANTILES), user="who")
    truth = simulate(real)
    past = publish(shared(real.stand_in.draw(0)), 1, noise="seeded:1")
    known = Assumed(like=past, records_per_person=RecordsEach.alike(10))
    made = plan_of(Recipe(source=None, epsilon=1), known, 2)
    forecast = simulate(replace(made, kinds=real.kinds, queries=real.queries))
    for there, here in zip(truth.main.areas, forecast.main.areas, strict=True):
        assert here.error == pytest.approx(there.error, rel=0.5)


def test_wrong_counts_of_people() -> None:
    with pytest.raises(InputError, match="fewer people or records"):
        some_people(1_000_000, RecordsEach.alike(100))
