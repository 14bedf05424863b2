"""Series: the plan, one release for a period, what is charged when, and what is asked of all periods."""

from __future__ import annotations

import json
import os
import weakref
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pytest

import htf
import zoning
from htf import BudgetError, Domain, Epsilon, FrequencyMatrix, InputError, Recipe, Series, publish
from htf.cli.main import run
from htf.curator.noise import FastNoise, SeededNoise
from htf.errors import OutputError
from htf.estimation.background import Background, join
from htf.estimation.prior import Prior
from htf.frame.crs import CRS84
from htf.frame.domain import Axis
from htf.ingest.reading import Reading, read_moment
from htf.query.cells import cell_counts
from htf.series.borrowing import borrow
from htf.series.folder import BUDGET
from htf.series.periods import KINDS, Period
from htf.series.plan import share_of_total
from htf.series.verification import verify_series

DOMAIN = Domain.from_bounds(0, 0, 1, 1, cells=16)


class FixedNoise(SeededNoise):
    """The same noise every time, which passes for secret: what is marked here does not depend on luck."""

    private = True

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.description = FastNoise.description


def counts(month: int, people: bool = False, more: int = 0) -> FrequencyMatrix:
    places = np.random.default_rng(month).beta(2, 5, (2, 1500 + more))
    if not people:
        return htf.read_points(list(places), DOMAIN)
    table = {"lon": places[0], "lat": places[1], "who": np.arange(places.shape[1]) % 400}
    return htf.read_points(table, DOMAIN, ["lon", "lat"], user="who")


UNITS: dict[str, dict[str, Any]] = {
    "record": {},
    "person": {"user": "who"},
    **{f"person-{per}": {"user": "who", "per": per, "time": "when"} for per in ("week", "month")},
}


def create(folder: Path, **changes: Any) -> Series:
    """A series of six months, whose total is 1."""
    given: dict[str, Any] = {"unit": "record", "total": 1, "releases": 6, "each": None, **changes}
    total, releases = given["total"], given["releases"]
    recipe = Recipe(domain=DOMAIN, **UNITS[given["unit"]], epsilon=given["each"] or total)
    if given["each"] is None:
        recipe = replace(recipe, epsilon=share_of_total(recipe, releases))
    return Series.create(
        folder, recipe, given.get("period", "month"), releases=releases, total=total
    )


@pytest.fixture(scope="module")
def year(tmp_path_factory: pytest.TempPathFactory) -> Series:
    """Four months, the last of which has a third more."""
    made = create(tmp_path_factory.mktemp("series") / "year")
    for month in range(1, 5):
        made.add(counts(month, more=500 * (month == 4)), f"2026-0{month}", noise=FixedNoise(month))
    return made


@pytest.mark.parametrize(
    ("kind", "text", "start", "end"),
    [
        ("day", "2024-02-29", date(2024, 2, 29), date(2024, 3, 1)),
        ("week", "2026-W01", date(2025, 12, 29), date(2026, 1, 5)),
        ("month", "2026-12", date(2026, 12, 1), date(2027, 1, 1)),
        ("quarter", "2026-Q4", date(2026, 10, 1), date(2027, 1, 1)),
        ("year", "2026", date(2026, 1, 1), date(2027, 1, 1)),
    ],
)
def test_periods_begin_and_end(kind: str, text: str, start: date, end: date) -> None:
    period = Period.read(text, kind)
    assert (period.start, period.end) == (start, end)
    assert period.seconds[1] - period.seconds[0] == (end - start).days * 86400
    assert Period.read(KINDS[kind].form, kind).name == KINDS[kind].form


@pytest.mark.parametrize("text", ["2026-3", "2026-13", "March", "", "2026-03-01", "2026-03\n"])
def test_what_is_no_month(text: str) -> None:
    with pytest.raises(InputError, match="a month is written like 2026-03, got"):
        Period.read(text, "month")


def test_periods_are_in_order() -> None:
    weeks = [Period.read(text, "week") for text in ("2026-W02", "2025-W52", "2026-W01")]
    assert [week.name for week in sorted(weeks)] == ["2025-W52", "2026-W01", "2026-W02"]


def test_what_a_release_costs_depends_on_the_unit(tmp_path: Path) -> None:
    """docs/proofs/series.md: periods add up for a person, and for no other unit."""
    plans = {
        unit: create(tmp_path / unit, unit=unit, total=2, releases=24).plan
        for unit in ("record", "person", "person-month")
    }
    assert {unit: plan.unit for unit, plan in plans.items()} == {unit: unit for unit in plans}
    assert plans["record"].each == plans["person-month"].each == Epsilon.of(2)
    assert plans["person"].each.units == Epsilon.of(2).units // 24
    assert "loses at most epsilon 2." in plans["person"].told[-1]
    assert "loses up to epsilon 48." in plans["person-month"].told[-1]
    assert "k times" in plans["record"].told[-1]


def test_the_total_is_what_releases_cost_unless_it_is_given(tmp_path: Path) -> None:
    for user, total in ((None, "0.5"), ("who", 6)):
        recipe = Recipe(domain=DOMAIN, user=user, epsilon="0.5")
        made = Series.create(tmp_path / str(user), recipe, "month", releases=12)
        assert made.plan.total == Epsilon.of(total)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"period": "decade"}, "the period must be one of"),
        ({"releases": 0}, "between 1 and 10,000 releases, got 0"),
        ({"each": 2}, "more than the total of 1"),
        ({"unit": "person", "each": "0.5"}, "cost a person more than the total of 1"),
        ({"unit": "person-week"}, "needs releases of weeks, not of months"),
    ],
)
def test_plans_that_do_not_add_up(tmp_path: Path, wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        create(tmp_path / "s", **wrong)
    assert not (tmp_path / "s").exists()


def test_the_plan_is_final(tmp_path: Path) -> None:
    made = create(tmp_path / "a", each="0.25")
    assert Series(tmp_path / "a").plan == made.plan
    with pytest.raises(InputError, match="is not an empty folder"):
        create(tmp_path / "a")
    with pytest.raises(InputError, match=r"is no series: it has no series\.json"):
        Series(tmp_path)
    for damage in ("{", "[]", '{"format": 3}'):
        (tmp_path / "a" / "series.json").write_text(damage)
        with pytest.raises(InputError, match="cannot read the plan"):
            Series(tmp_path / "a")
    (tmp_path / "a" / "series.json").write_text('{"format": 2}')
    with pytest.raises(InputError, match=r"has the format 2, .* begin a new one, whose total is"):
        Series(tmp_path / "a")


def test_a_period_is_released_once(year: Series) -> None:
    before = [account.spent for account in year.accounts()]
    with pytest.raises(InputError, match=r"2026-02 was released already, as 2026-02\.parquet"):
        year.add(counts(2), "2026-02", noise="fast")
    with pytest.raises(InputError, match="nothing to correct"):
        year.add(counts(9), "2026-09", noise="fast", correct=True)
    with pytest.raises(BudgetError, match="0 of 1 remains"):
        year.add(counts(2), "2026-02", noise="fast", correct=True)
    assert [account.spent for account in year.accounts()] == before
    assert year.periods == ["2026-01", "2026-02", "2026-03", "2026-04"]


def test_a_release_borrows_from_those_before_it(year: Series) -> None:
    assert year.release("2026-01").priors == ()
    assert [prior.name for prior in year.release("2026-02").priors] == ["2026-01.parquet"]
    names = [prior.name for prior in year.release("2026-04").priors]
    assert names == ["2026-03.parquet", "mean of 2026-01 to 2026-03"]
    assert all(check.passed for check in verify_series(year.folder))


def test_a_release_of_the_past_borrows_only_from_its_past(tmp_path: Path) -> None:
    made = create(tmp_path / "s")
    made.add(counts(3), "2026-03", noise="fast")
    assert made.add(counts(1), "2026-01", noise="fast").priors == ()
    assert made.periods == ["2026-01", "2026-03"]


def test_epsilons_of_persons_add_up(tmp_path: Path) -> None:
    made = create(tmp_path / "s", unit="person", releases=3)
    for month in (1, 2, 3):
        made.add(counts(month, people=True), f"2026-0{month}", noise="fast")
    (account,) = made.accounts()
    assert account.spent.units == 3 * made.plan.each.units <= Epsilon.of(1).units
    with pytest.raises(InputError, match="the plan is for 3 releases, and all of them were made"):
        made.add(counts(4, people=True), "2026-04", noise="fast")
    with pytest.raises(BudgetError):
        made.add(counts(3, people=True), "2026-03", noise="fast", correct=True)


def test_a_correction_is_a_new_file(tmp_path: Path) -> None:
    made = create(tmp_path / "s", each="0.5")
    first = made.add(counts(1), "2026-01", noise="fast")
    made.add(counts(1), "2026-01", noise="fast", correct=True)
    assert htf.Release.load(tmp_path / "s" / "2026-01.parquet") == first
    assert made.release("2026-01") != first
    assert [one.label for one in made.released] == ["2026-01", "2026-01.2"]
    assert made.accounts()[0].spent == Epsilon.of(1)
    assert all(check.passed for check in verify_series(made.folder))
    with pytest.raises(BudgetError):
        made.add(counts(1), "2026-01", noise="fast", correct=True)


def test_other_units_and_maps_are_refused_before_any_charge(tmp_path: Path) -> None:
    made = create(tmp_path / "s")
    other = FrequencyMatrix.from_dense(
        Domain.from_bounds(0, 0, 1, 1, cells=8), np.ones((8, 8), int)
    )
    for matrix, message in (
        (counts(1, people=True), "is for one record, but the counts are for one person"),
        (other, "the counts are of another map"),
    ):
        with pytest.raises(InputError, match=message):
            made.add(matrix, "2026-01", noise="fast")
    assert [entry for account in made.accounts() for entry in account.entries] == []


def test_seeded_noise_is_refused(tmp_path: Path) -> None:
    made = create(tmp_path / "s")
    with pytest.raises(InputError, match="seeded"):
        made.add(counts(1), "2026-01", noise="seeded:1")
    assert made.periods == []


def interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Series:
    """A series whose second period was charged, and not written."""
    made = create(tmp_path / "s", unit="person", releases=4)
    made.add(counts(1, people=True), "2026-01", noise="fast")

    def stopped(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(htf.BudgetFile, "save", stopped)
        with pytest.raises(KeyboardInterrupt):
            made.add(counts(2, people=True), "2026-02", noise="fast")
    return Series(made.folder)


def test_an_interrupted_release_is_taken_up_under_its_charge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = interrupted(tmp_path, monkeypatch)
    spent = made.accounts()[0].spent
    assert [check.name for check in verify_series(made.folder) if not check.passed] == ["entries"]
    with pytest.raises(InputError, match="If nothing of its release was seen, take it up"):
        made.add(counts(2, people=True), "2026-02", noise="fast")
    made.add(counts(2, people=True), "2026-02", noise="fast", resume=True)
    (account,) = made.accounts()
    assert account.spent == spent
    assert [entry.state for entry in account.entries] == ["published", "published"]
    assert all(check.passed for check in verify_series(made.folder))


def test_a_release_that_was_written_is_entered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = create(tmp_path / "s")

    def stopped(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(htf.BudgetFile, "_enter_written", stopped)
        with pytest.raises(KeyboardInterrupt):
            made.add(counts(1), "2026-01", noise="fast")
    written = htf.Release.load(made.folder / "2026-01.parquet")
    assert Series(made.folder).add(counts(1), "2026-01", noise="fast") == written
    (account,) = made.accounts()
    assert [entry.state for entry in account.entries] == ["published"]


@pytest.mark.parametrize("around", [False, True])
def test_all_that_was_bought_for_it_is_entered_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, around: bool
) -> None:
    """Else its charges would be pending for ever, and a correction would be taken for an interrupted run."""
    more: dict[str, Any] = {"user": "who", "count": "people", "weight": "n", "max_weight": 2}
    if around:
        more["inside"] = Domain((Axis.named("zone", zoning.layer()),), CRS84)
    domain = Domain.from_bounds(4, 52, 4.6, 52.2, cells=8)
    recipe = htf.Recipe(domain=domain, epsilon=1, distinct=2, **more)
    made = Series.create(tmp_path / "s", recipe, "month", releases=2, total=3)
    along = np.linspace(0.01, 0.99, 500)
    rides = {
        "lon": 4 + 0.6 * along,
        "lat": 52 + 0.2 * along,
        "who": np.arange(500) % 90,
        "n": [1, 3] * 250,
    }

    def stopped(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(htf.BudgetFile, "_enter_written", stopped)
        with pytest.raises(KeyboardInterrupt):
            made.add(rides, "2026-01", noise="fast")
    assert [one.state for one in made.accounts()[0].entries] == ["pending"] * (3 + around)
    Series(made.folder).add(rides, "2026-01", noise="fast")
    assert [one.state for one in made.accounts()[0].entries] == ["published"] * (3 + around)
    assert all(check.passed for check in verify_series(made.folder))
    made.add(rides, "2026-01", noise="fast", correct=True)
    assert str(made.accounts()[0].spent) == "2"


def test_a_charge_is_taken_up_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = interrupted(tmp_path, monkeypatch)
    (pending,) = made.accounts()[0].pending
    budget = htf.BudgetFile(made.folder / BUDGET, "series")
    budget.resume([pending])
    same = pending.epsilon, pending.mechanism, pending.label
    told: dict[str, Any] = {"unit": pending.unit, "told_apart": htf.ToldApart("who")}
    assert budget.charge(*same, **told) == pending
    assert not budget.resumes
    assert budget.charge(*same, **told).id != pending.id
    (published, *_) = budget.account().entries
    with pytest.raises(InputError, match="was published already"):
        budget.resume([published])


def test_one_process_at_a_time(tmp_path: Path) -> None:
    made = create(tmp_path / "s")
    with made.adding("2026-01"), pytest.raises(InputError, match="another process is adding"):
        Series(made.folder).add(counts(2), "2026-02", noise="fast")


def test_what_verify_finds(tmp_path: Path) -> None:
    made = create(tmp_path / "s", each="0.5")
    for month in (1, 2):
        made.add(counts(month), f"2026-0{month}", noise="fast")

    def wrong() -> list[str]:
        return [check.name for check in verify_series(made.folder) if not check.passed]

    assert wrong() == []
    file = made.folder / "2026-02.parquet"
    content = file.read_bytes()
    file.unlink()
    htf.publish(counts(2), "0.25", noise="fast").save(file)
    assert wrong() == ["2026-02", "entries"]
    file.unlink()
    assert wrong() == ["entries"]
    with pytest.raises(InputError, match="put it back"):
        made.add(counts(2), "2026-02", noise="fast")
    file.write_bytes(content)
    assert wrong() == []
    (made.folder / "2026-03.parquet").write_bytes(content)
    assert wrong() == ["entries"]


def test_boxes_over_time(year: Series) -> None:
    rows = [[0, 0, 0.5, 0.5], [0.5, 0, 1, 1]]
    table = year.count(rows).to_arrow()
    assert table["period"].to_pylist()[::2] == year.periods
    for period in year.periods:
        expected = year.release(period).count(rows)
        mine = table.filter(pyarrow.compute.equal(table["period"], period))
        assert mine["count"].to_pylist() == expected.count.tolist()


def test_boxes_outside_are_warned_of_once(year: Series) -> None:
    with pytest.warns(UserWarning, match="1 of 2 boxes lies outside of the map") as told:
        year.count([[0, 0, 0.5, 0.5], [2, 2, 3, 3]])
    assert [one.filename for one in told] == [__file__]


def test_changes_over_time(year: Series) -> None:
    changes = year.count().changes()
    assert changes.periods == {"since": year.periods[:-1], "period": year.periods[1:]}
    assert changes.beyond_noise.tolist() == [False, False, True]
    assert changes.change[2] == pytest.approx(500, abs=80)  # three deviations of this fixed noise
    last = year.release("2026-04").count().minus(year.release("2026-03").count())
    assert changes.change[2] == last.change[0]


def test_marks_are_for_the_whole_table(year: Series) -> None:
    """Asked about many boxes, what is marked among few may not be."""
    edges = np.linspace(0, 1, 17)
    x, y = (one.ravel() for one in np.meshgrid(edges[:-1], edges[:-1]))
    rows = np.column_stack([x, y, x + 1 / 16, y + 1 / 16])
    together = int(year.count(rows).changes().beyond_noise.sum())
    alone = sum(
        int(after.count(rows).minus(before.count(rows)).beyond_noise.sum())
        for before, after in zip(
            map(year.release, year.periods[:-1]), map(year.release, year.periods[1:]), strict=True
        )
    )
    assert together <= alone


def test_a_change_needs_two(tmp_path: Path) -> None:
    made = create(tmp_path / "s")
    with pytest.raises(InputError, match="has no release yet"):
        made.count()
    made.add(counts(1), "2026-01", noise="fast")
    with pytest.raises(InputError, match="a change needs two"):
        made.count().changes()
    with pytest.raises(InputError, match="2026-05 was not released"):
        made.release("2026-05")


def test_only_records_of_the_period_count() -> None:
    times = [
        "2026-02-28T23:59:59",
        "2026-03-01T00:00:00",
        "2026-03-31T23:59:59",
        "2026-04-01",
        "",
        "soon",
    ]
    table = {"lon": [0.5] * 6, "lat": [0.5] * 6, "when": times}
    since, until = Period.read("2026-03", "month").seconds
    for span in ((since, until), ("2026-03-01", "2026-04-01")):
        matrix = htf.read_points(table, DOMAIN, time="when", since=span[0], until=span[1])
        assert matrix.exact_counts.sum() == 2
    later = htf.read_points(table, DOMAIN, time="when", since="2026-03-01", utc_offset=1)
    assert later.exact_counts.sum() == 4
    assert read_moment("2026-03-01") == since
    with pytest.raises(InputError, match="needs times: name their column with --time"):
        Reading(since=since)
    with pytest.raises(InputError, match="must end after it starts"):
        Reading(time="when", since=until, until=since)
    for wrong in ("March", "2026-03-01T00:00:00+01:00"):
        with pytest.raises(InputError, match="without a time zone, got"):
            read_moment(wrong)


@pytest.fixture
def incidents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three months of points with their times and people, in one file."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(1)
    days = random.integers(0, 90, 6000)
    rows = ["lon,lat,when,who"]
    for x, y, day, who in zip(
        *random.beta(2, 5, (2, 6000)), days, random.integers(0, 900, 6000), strict=True
    ):
        rows.append(f"{x:.5f},{y:.5f},{np.datetime64('2026-01-01') + int(day)}T12:00:00,{who}")
    (tmp_path / "points.csv").write_text("\n".join(rows) + "\n")
    return tmp_path


def make_recipe(**fields: Any) -> None:
    lines = [f"{name} = {json.dumps(one)}" for name, one in fields.items()]
    Path("city.toml").write_text("\n".join(lines))


def make(unit: str, *options: str, **fields: Any) -> None:
    """A series by a recipe without an epsilon, whose periods are told apart by their times."""
    make_recipe(**{"bounds": "0,0,1,1", "cells": "32", "time": "when"} | UNITS[unit] | fields)
    plan = ["--period", "month", "--epsilon-total", "2", "--releases", "6", *options]
    assert run(["series", "init", "city", "city.toml", *plan]) == 0


def test_the_commands(incidents: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make("record")
    assert "Other periods tell nothing about it." in capsys.readouterr().out
    add = ["series", "add", "city", "points.csv", "--noise", "fast"]
    for month in ("2026-01", "2026-02", "2026-03"):
        assert run([*add, "--period", month]) == 0
    assert "The prior mean of 2026-01 to 2026-02 was" in " ".join(capsys.readouterr().out.split())
    assert run([*add, "--period", "2026-03"]) == 2
    assert "was released already" in capsys.readouterr().err
    total = htf.read_points(
        "points.csv",
        Domain.from_bounds(0, 0, 1, 1, cells=32),
        time="when",
        since="2026-01-01",
        until="2026-02-01",
    )
    held = Series("city").release("2026-01").count()
    assert abs(held.count[0] - total.exact_counts.sum()) < 400  # of 2,000: far beyond any noise
    assert run(["series", "show", "city"]) == 0
    assert "3 of 6 periods were released" in capsys.readouterr().out
    assert run(["series", "show", "city", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["entries"]) == 3
    assert run(["verify", "city"]) == 0
    assert incidents.exists()


def test_questions_by_the_commands(incidents: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make("record")
    for month in ("2026-01", "2026-02"):
        command = ["series", "add", "city", "points.csv", "--noise", "fast"]
        assert run([*command, "--period", month]) == 0
    capsys.readouterr()
    box = ["--box", "0.1,0.1,0.4,0.4"]
    assert run(["query", "city", *box, "--by", "period", "--json"]) == 0
    assert [row["period"] for row in json.loads(capsys.readouterr().out)] == ["2026-01", "2026-02"]
    assert run(["query", "city", *box, "--change"]) == 0
    assert "more than noise" in capsys.readouterr().out
    assert run(["query", "city", *box]) == 0
    for name in ("boxes.csv", "boxes.png", "change.svg", "long.csv", "long.gpkg"):
        command = (
            ["export", "city", "--grid", "4,4"]
            if name.startswith("long")
            else ["query", "city", *box]
        )
        more = ["--change"] if name.startswith("change") else []
        assert run([*command, *more, "-o", name]) == 0
        assert run([*command, *more, "-o", name]) == 2  # nothing is overwritten
    assert len(pyarrow.csv.read_csv("long.csv")) == 2 * 16
    for wrong in (["--by", "hour"], ["--zone", "North"], ["-o", "boxes.tif"]):
        assert run(["query", "city", *wrong]) == 2
    assert run(["query", str(incidents / "city" / "2026-01.parquet"), "--change"]) == 2
    assert run(["export", "city", "-o", "raster.tif"]) == 2


@pytest.mark.parametrize("unit", ["person", "person-month"])
def test_people_by_the_commands(incidents: Path, unit: str) -> None:
    make(unit)
    command = ["series", "add", "city", "points.csv", "--period", "2026-01", "--noise", "fast"]
    assert run(command) == 0
    made = Series("city").release("2026-01")
    assert made.protection.name == ("one person" if unit == "person" else "one person in one month")
    people = 900 * (1 - (1 - 1 / 900) ** (6000 * 31 / 90))  # so many of 900 are expected in a month
    assert made.count().count[0] == pytest.approx(people, abs=350)
    assert incidents.exists()


def test_a_mistake_of_the_curator_costs_nothing(
    incidents: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make("record")
    command = ["series", "add", "city", "points.csv", "--noise", "fast"]
    for wrong in (
        ["--period", "2026-1"],
        ["--period", "2026-09"],  # nothing happened then
        ["--period", "2026-01", "--user", "who"],  # the recipe says who is protected
        ["--period", "2026-01", "--noise", "seeded:1"],
    ):
        assert run([*command, *wrong]) == 2
    assert [entry for account in Series("city").accounts() for entry in account.entries] == []
    assert incidents.exists()
    capsys.readouterr()


def test_a_release_carries_what_it_has_borrowed(year: Series, tmp_path: Path) -> None:
    made = year.release("2026-04")
    assert made.background is not None
    assert made.background.periods == 3
    assert "borrow from 3 other releases" in made.statement
    assert year.release("2026-01").background is None
    path = tmp_path / "again.parquet"
    made.save(path)
    assert htf.Release.load(path) == made
    assert all(check.passed for check in htf.verify(path))
    known = replace(made.background, values=np.asarray(made.background.values * 1.01))
    (wrong,) = (one.name for one in htf.verify(replace(made, background=known)) if not one.passed)
    assert wrong == "sums"
    with pytest.raises(InputError, match="one value for each region"):
        replace(made, background=Background(np.ones(3), np.ones(3), 1))
    with pytest.raises(InputError, match="'last-count' cannot use a background"):
        replace(made, priors=(), estimator="last-count")
    with pytest.raises(InputError, match="the trust in priors"):
        replace(made, facts={"rounds": 1})


def test_a_background_that_earlier_releases_do_not_say_is_found(tmp_path: Path) -> None:
    made = create(tmp_path / "s")
    for month in (1, 2):
        made.add(counts(month), f"2026-0{month}", noise="fast")
    second = made.release("2026-02")
    assert second.background is not None
    other = borrow(second, [publish(counts(7), 1, noise="fast")])
    file = made.folder / "2026-02.parquet"
    file.unlink()
    other.save(file)
    (found, *_) = (check for check in verify_series(made.folder) if not check.passed)
    assert found.name == "2026-02"
    assert "its background is not what earlier releases say" in found.finding


def test_revisions_cost_nothing_and_rewrite_nothing(year: Series, tmp_path: Path) -> None:
    before = {path.name: path.read_bytes() for path in year.folder.iterdir()}
    revised = year.revised("2026-01")
    own = year.release("2026-01")
    assert revised.background is not None
    assert revised.background.periods == 3
    assert np.array_equal(revised.measurements.value, own.measurements.value)
    assert not np.array_equal(revised.estimates, own.estimates)
    assert all(check.passed for check in htf.verify(revised))
    assert run(["series", "revise", str(year.folder), "-o", str(tmp_path / "new")]) == 0
    assert len(list((tmp_path / "new").iterdir())) == 4
    assert run(["series", "revise", str(year.folder), "-o", str(tmp_path / "new")]) == 2
    assert {path.name: path.read_bytes() for path in year.folder.iterdir()} == before


def borrowed_over_plain(alike: bool, seed: int) -> float:
    """ln of the error of squares with what was borrowed over that without, from the same counts, in the fourth to sixth
    month; of one map, or of maps that have nothing in common."""
    cells = Domain.from_bounds(0, 0, 1, 1, cells=64)
    edges = np.linspace(0, 1, 9)
    x, y = (one.ravel() for one in np.meshgrid(edges[:-1], edges[:-1], indexing="ij"))
    rows = np.column_stack([x, y, x + 1 / 8, y + 1 / 8])
    found: list[float] = []
    before: list[htf.Release] = []
    for month in range(6):
        blocks = np.random.default_rng([seed, 0 if alike else month]).gamma(0.3, 2.5, (8, 8))
        exact = np.random.default_rng([seed, 100 + month]).poisson(np.kron(blocks, np.ones((8, 8))))
        matrix = FrequencyMatrix.from_dense(cells, exact)
        true = exact.reshape(8, 8, 8, 8).sum(axis=(1, 3)).ravel()
        noise = f"seeded:{10 * seed + month}"
        plain = publish(matrix, "0.1", noise=noise)
        if before:
            mean = np.mean([cell_counts(one) for one in before], axis=0)
            prior = Prior.of(mean, cells, "mean", "0" * 64)
            made = borrow(publish(matrix, "0.1", prior=prior, noise=noise), before)
            errors = [np.abs(one.count(rows).count - true).mean() for one in (made, plain)]
            found.append(float(np.log(errors[0] / errors[1])))
        before.append(plain)
    return float(np.mean(found[2:]))


def test_borrowing_pays_where_little_changes_and_costs_next_to_nothing_where_all_does() -> None:
    """Twelve seeds give 0.59 (0.46 to 0.76) and 1.00 (0.99 to 1.04); here three, which are fixed."""
    alike, apart = (
        np.exp(np.mean([borrowed_over_plain(a, s) for s in range(3)])) for a in (True, False)
    )
    assert alike < 0.7
    assert apart < 1.02


def test_a_background_is_joined_by_the_inverse_of_variances() -> None:
    """Where nothing drifts and all is trusted: the formula, with the scatter of events. The root stands by itself."""
    values = np.full(40, 100.0)
    background = Background(values, np.full(40, 4.0), 4)
    level = np.zeros(40, dtype=np.int64)
    measured = values + np.random.default_rng(1).normal(0, 3, 40)
    measured[0] = 100.0
    found, variances = join(measured, np.full(40, 9.0), background, level, np.ones(40), 1.0)
    assert found[0] == 100
    assert variances[0] == 9
    assert np.all(np.abs(found[1:] - 100) <= np.abs(measured[1:] - 100))
    assert np.all(variances[1:] < 9)
    alone, _ = join(measured, np.full(40, 9.0), background, level, np.zeros(40), 1.0)
    assert alone == pytest.approx(measured, abs=1e-3)
    jumped = measured.copy()
    jumped[7] = 900.0
    assert join(jumped, np.full(40, 9.0), background, level, np.ones(40), 1.0)[0][7] == 900


def test_drift_is_found_where_earlier_periods_had_next_to_nothing() -> None:
    """Small regions lie where this period has records. Earlier periods that had none there are not close to it, however
    sure they are, and with little trust the counts stand."""
    generator = np.random.default_rng(3)
    true = generator.gamma(0.5, 400, 200)
    measured = true + generator.laplace(0, 45, 200)
    level = np.ones(200, dtype=np.int64)
    level[0], measured[0] = 0, 40_000.0
    background = Background(np.r_[40_000.0, generator.normal(1, 1, 199)], np.full(200, 2.0), 4)
    found, _ = join(measured, np.full(200, 2 * 45.0**2), background, level, np.full(200, 0.1), 1.0)
    moved = np.sqrt(np.mean((found - measured) ** 2))
    assert moved < 0.05 * 64  # of the deviation of the noise


def test_releases_after_the_first_foresee_where_to_cut(year: Series) -> None:
    settings = [year.release(month).parameters["foresight"] for month in year.periods]
    assert settings == [0.0] + [4.0] * (len(settings) - 1)


@pytest.mark.parametrize(
    ("values", "variances", "periods"),
    [([1.0, 2.0], [1.0], 1), ([1.0], [0.0], 1), ([np.nan], [1.0], 1), ([1.0], [1.0], 0)],
)
def test_backgrounds_that_are_none(
    values: list[float], variances: list[float], periods: int
) -> None:
    with pytest.raises(InputError, match="background"):
        Background(np.array(values), np.array(variances), periods)


def test_the_clock_does_not_change(incidents: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By another clock a record might be in two months, and what both cost would add up."""
    make("record")
    command = ["series", "add", "city", "points.csv", "--noise", "fast"]
    assert run([*command, "--period", "2026-01"]) == 0
    assert run([*command, "--period", "2026-02", "--utc-offset", "+01:00"]) == 2
    assert "No such option" in capsys.readouterr().err
    made = Series("city")
    for other in ({}, {"time": "when", "utc_offset": 3600}, {"time": "when", "time_unit": "ms"}):
        matrix = htf.read_points("points.csv", made.domain, **other)
        with pytest.raises(InputError, match="a record might be in two periods"):
            made.add(matrix, "2026-02", noise="fast")
    of_program = FrequencyMatrix.from_cells(made.domain, [[3], [4]])
    with pytest.raises(InputError, match="by a program that does not say how"):
        made.add(of_program, "2026-02", noise="fast")
    counted = htf.read_points(
        "points.csv", made.domain, time="when", since="2026-02-01", until="2026-03-01"
    )
    made.add(counted, "2026-02", noise="fast")
    assert made.periods == ["2026-01", "2026-02"]
    assert incidents.exists()


def test_a_lost_or_older_budget_file_is_not_replaced(tmp_path: Path) -> None:
    made = create(tmp_path / "s", each="0.5")
    older = (made.folder / BUDGET).read_bytes()
    made.add(counts(1), "2026-01", noise="fast")
    (made.folder / BUDGET).write_bytes(older)
    with pytest.raises(InputError, match="its budget file knows nothing of it"):
        made.add(counts(2), "2026-02", noise="fast")
    (made.folder / BUDGET).unlink()
    with pytest.raises(InputError, match="has lost its budget file"):
        made.add(counts(2), "2026-02", noise="fast")
    assert not (made.folder / BUDGET).exists()
    assert run(["series", "show", str(made.folder)]) == 2


def test_a_changed_plan_is_found(tmp_path: Path) -> None:
    made = create(tmp_path / "s", each="0.5")
    made.add(counts(1), "2026-01", noise="fast")
    file = made.folder / "series.json"
    file.write_text(file.read_text().replace('"epsilon_total": "1"', '"epsilon_total": "5"'))
    with pytest.raises(InputError, match="one of them was changed"):
        Series(made.folder).add(counts(2), "2026-02", noise="fast")
    assert "budget" in [check.name for check in verify_series(made.folder) if not check.passed]


def test_what_a_killed_run_left_is_removed(tmp_path: Path) -> None:
    """It may be a whole release, with noise of its own."""
    made = create(tmp_path / "s")
    made.add(counts(1), "2026-01", noise="fast")
    left = made.folder / ".htf-0123.parquet"
    left.write_bytes((made.folder / "2026-01.parquet").read_bytes())
    assert [check.name for check in verify_series(made.folder) if not check.passed] == ["entries"]
    made.add(counts(2), "2026-02", noise="fast")
    assert not left.exists()
    assert all(check.passed for check in verify_series(made.folder))


def test_the_number_of_periods_is_that_of_charges(tmp_path: Path) -> None:
    made = create(tmp_path / "s", releases=1)
    made.add(counts(1), "2026-01", noise="fast")
    (made.folder / "2026-01.parquet").rename(tmp_path / "away.parquet")
    with pytest.raises(InputError, match="the plan is for 1 releases"):
        made.add(counts(2), "2026-02", noise="fast")


def test_a_release_is_taken_up_with_the_options_it_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = interrupted(tmp_path, monkeypatch)
    (pending,) = made.accounts()[0].pending
    budget = htf.BudgetFile(made.folder / BUDGET, "series")
    budget.resume([pending])
    with pytest.raises(InputError, match="give the same options as then"):
        budget.charge(
            "0.001",
            pending.mechanism,
            pending.label,
            unit=pending.unit,
            told_apart=htf.ToldApart("who"),
        )
    with pytest.raises(InputError, match="no interrupted release of"):
        made.add(counts(3, people=True), "2026-03", noise="fast", resume=True)
    assert len(made.accounts()[0].entries) == 2


def test_periods_count_the_same(tmp_path: Path) -> None:
    made = create(tmp_path / "s", unit="person")
    places = {"lon": [0.5] * 9, "lat": [0.5] * 9, "who": list(range(9))}
    kept = htf.read_points(places, DOMAIN, ["lon", "lat"], user="who", max_records=3)
    with pytest.raises(InputError, match="this counts split people, but the counts are of records"):
        made.add(kept, "2026-01", noise="fast")
    assert not made.accounts()[0].entries


def test_a_series_of_kept_records_is_charged_once(incidents: Path) -> None:
    """Without the activity of people, counts are of kept records."""
    make("person", max_records=3, spend=["activity=0"])
    assert run([*ADD, "--period", "2026-01"]) == 0
    made = Series("city")
    (account,) = made.accounts()
    assert [(entry.mechanism, entry.epsilon) for entry in account.entries] == [
        ("htf", made.plan.each)
    ]
    assert made.release("2026-01").activity is None
    assert made.release("2026-01").protection.max_records == 3
    assert incidents.exists()


# Recipes of every kind ----------------------------------------------------------------------------

ADD = ["series", "add", "city", "points.csv", "--noise", "fast"]
KINDS_OF_RECIPES: dict[str, dict[str, Any]] = {
    "by hour": {"axes": ["hour:hour(when):0:24:4"]},
    "by category": {"categories": ["kind=tram,bus"]},
    "trips": {"dest_x": "to_lon", "dest_y": "to_lat"},
    "sums": {"weight": "riders", "max_weight": 3},
    "records of people": {"user": "who", "max_records": 3},
    "the best number of records": {"user": "who", "max_records": "auto"},
    "records of people in a month": {"user": "who", "max_records": 3, "per": "month"},
    "different people": {"user": "who", "distinct": 4},
    "zones": {"zones": "zones.gpkg", "by": "tract", "within": "district"},
    "trips between zones": {
        "zones": "zones.gpkg", "by": "tract", "dest_x": "to_lon", "dest_y": "to_lat",
    },
    "zones by category": {"zones": "zones.gpkg", "by": "tract", "categories": ["kind=tram,bus"]},
    "inside zones": {"zones": "zones.gpkg", "by": "tract", "bounds": "-30.1,39.9,-29.9,40.1"},
}  # fmt: skip


@pytest.fixture(scope="module")
def rides(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rides of three months within a city of zones, with people, passengers and kinds."""
    place, random = tmp_path_factory.mktemp("rides"), np.random.default_rng(1)
    htf.synthetic_zones(tracts=12, districts=3).to_file(place / "zones.gpkg")
    city = htf.synthetic_city(6000, seed=1)
    table = {
        "lon": city.x, "lat": city.y, "to_lon": city.x[::-1], "to_lat": city.y[::-1],
        "when": np.datetime64("2026-01-01", "s") + random.integers(0, 90 * 24 * 3600, 6000),
        "who": random.integers(0, 900, 6000), "riders": random.integers(1, 5, 6000),
        "kind": random.choice(["tram", "bus"], 6000),
    }  # fmt: skip
    pyarrow.csv.write_csv(pyarrow.table(table), place / "points.csv")
    return place


@pytest.mark.parametrize("kind", KINDS_OF_RECIPES)
def test_every_recipe_has_a_series(
    kind: str, rides: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Two months, each by one command that names nothing but points and period."""
    monkeypatch.chdir(tmp_path)
    for name in ("zones.gpkg", "points.csv"):
        Path(name).symlink_to(rides / name)
    fields = KINDS_OF_RECIPES[kind]
    if "zones" not in fields:
        fields = {"bounds": "-30.1,39.9,-29.9,40.1", "cells": 16, **fields}
    make_recipe(time="when", **fields)
    plan = ["--epsilon-total", "4", "--releases", "2"]
    assert run(["series", "init", "city", "city.toml", *plan]) == 0
    for month in ("2026-01", "2026-02"):
        assert run([*ADD, "--period", month]) == 0
    made = Series("city")
    recipe = htf.Recipe(source=None, time="when", **fields, epsilon=made.plan.each)
    bought = sorted(recipe.quote().prices)
    for month in made.periods:
        release = made.release(month)
        assert sorted(one.kind for one in release.bought) == bought
        assert release.epsilon == made.plan.each
        alone = replace(recipe, source="points.csv", since=f"{month}-01", until=ENDS[month])
        wanted = alone.make(noise="seeded:1")
        assert (release.domain, release.quantity) == (wanted.domain, wanted.quantity)
        error = 6 * (release.count().std_error[0] + wanted.count().std_error[0])
        assert abs(release.count().count[0] - wanted.count().count[0]) < error
    charged = [account.spent for account in made.accounts()]
    assert charged == ([Epsilon.of(4)] if made.plan.adds_up else [Epsilon.of(4)] * 2)
    states = {one.state for account in made.accounts() for one in account.entries}
    assert states == {"published"}
    assert all(check.passed for check in verify_series("city"))
    assert made.count().changes().change.shape == (1,)


ENDS = {"2026-01": "2026-02-01", "2026-02": "2026-03-01"}


def test_names_of_periods_are_plain_digits() -> None:
    for text in ("\u0662\u0660\u0662\u0666-\u0660\u0661", "9999-12"):
        with pytest.raises(InputError, match="a month is written like"):
            Period.read(text, "month")


def test_what_no_plan_can_hold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = Recipe(domain=DOMAIN, epsilon=1, time="when")
    prior = Prior.of(np.ones((2, 2)), DOMAIN, "even", "0" * 64)
    for wrong, message in (
        ({"since": "2026-01-01"}, "the period says which times count"),
        ({"mechanism": htf.make_mechanism("htf")}, "an object of Python"),
        ({"prior": [prior]}, "an object of Python"),
    ):
        with pytest.raises(InputError, match=message):
            Series.create(tmp_path / "s", replace(recipe, **wrong), "month", releases=2)
    (tmp_path / "no.toml").write_text('bounds = "0,0,1,1"')
    init = ["series", "init", str(tmp_path / "s"), str(tmp_path / "no.toml"), "--releases", "2"]
    assert run(init) == 2
    assert "give --epsilon-total, or an epsilon in the recipe" in capsys.readouterr().err
    assert not (tmp_path / "s").exists()


def spent(made: Series) -> list[Epsilon]:
    return [account.spent for account in made.accounts()]


def test_a_correction_takes_nothing_from_later_periods_unasked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = create(tmp_path / "s", unit="person", releases=4)
    made.add(counts(1, people=True), "2026-01", noise="fast")
    before = spent(made)
    with pytest.raises(
        BudgetError, match=r"0\.75 of 1 remains now, and 0\.5 afterwards, for 2 of the 3 periods"
    ):
        made.add(counts(1, people=True), "2026-01", noise="fast", correct=True)
    with pytest.raises(InputError, match="is for a correction"):
        made.add(counts(2, people=True), "2026-02", noise="fast", take_from_later=True)
    assert spent(made) == before
    again: dict[str, Any] = {"noise": "fast", "correct": True, "take_from_later": True}
    made.add(counts(1, people=True), "2026-01", **again)
    for month in (2, 3):
        made.add(counts(month, people=True), f"2026-0{month}", noise="fast")
    with pytest.raises(BudgetError, match="0 of 1 remains"):
        made.add(counts(4, people=True), "2026-04", noise="fast")
    assert run(["series", "show", str(made.folder)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "3 of 4 periods were released. The budget allows 0 of the 1 that are planned." in shown


def test_a_plan_with_room_allows_corrections(
    incidents: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make("person", epsilon="0.25")
    add = ["series", "add", "city", "points.csv", "--noise", "fast"]
    add += ["--period", "2026-01"]
    assert run(add) == 0
    assert run([*add, "--correct"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "1.75 of 2 remains now, and 1.5 afterwards, for 5 of the 5 periods" in told
    assert run([*add, "--correct"]) == 0
    assert run([*add, "--correct"]) == 3
    assert "So 1 of them could no longer be released" in " ".join(capsys.readouterr().err.split())
    assert spent(Series("city")) == [Epsilon.of("0.75")]
    assert incidents.exists()


def test_a_failure_says_how_to_take_the_release_up(
    incidents: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    make("record")
    add = ["series", "add", "city", "points.csv", "--noise", "fast"]

    def broken(*_: Any, **__: Any) -> None:
        raise htf.InputError("the disk is gone")

    with monkeypatch.context() as patch:
        patch.setattr(htf.BudgetFile, "save", broken)
        assert run([*add, "--period", "2026-01"]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert "`htf series add city … --period 2026-01 --resume`" in told
    assert "charged again" not in told.replace("nothing is charged again", "")
    assert run([*add, "--period", "2026-01", "--resume"]) == 0
    assert spent(Series("city")) == [Epsilon.of(2)]
    assert incidents.exists()


def saved_elsewhere(place: Path, monkeypatch: pytest.MonkeyPatch, entered: bool) -> Path:
    """A release of a series whose place could not be written, in a folder for temporary files."""
    make("record")
    place.mkdir()
    monkeypatch.setattr("htf.files.gettempdir", lambda: str(place))
    save = htf.BudgetFile.save

    def refuse(budget: htf.BudgetFile, release: htf.Release, path: Path, **options: Any) -> Any:
        if path.parent != place:
            raise htf.errors.OutputError(f"cannot write {path}: no space left")
        if entered:
            return save(budget, release, path, **options)
        release.save(path)
        raise InputError("the budget file cannot be written")

    with monkeypatch.context() as patch:
        patch.setattr(htf.BudgetFile, "save", refuse)
        add = ["series", "add", "city", "points.csv", "--noise", "fast"]
        assert run([*add, "--period", "2026-01"]) == 2
    (spare,) = place.iterdir()
    return spare


@pytest.mark.parametrize("entered", [True, False])
def test_a_release_that_was_saved_elsewhere_is_brought_in(
    incidents: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    entered: bool,
) -> None:
    spare = saved_elsewhere(incidents / "elsewhere", monkeypatch, entered)
    assert "htf series adopt city" in " ".join(capsys.readouterr().err.split())
    add = ["series", "add", "city", "points.csv", "--noise", "fast"]
    if not entered:  # its charge is pending: the same command finds the release, and draws nothing
        before = spent(Series("city"))
        assert run([*add, "--period", "2026-01", "--resume"]) == 0
        assert "was released by a run that was stopped" in capsys.readouterr().out
        assert Series("city").release("2026-01") == htf.Release.load(spare)
        assert spent(Series("city")) == before
        assert all(check.passed for check in verify_series("city"))
        return
    assert run([*add, "--period", "2026-01"]) == 2
    assert "htf series a" in capsys.readouterr().err
    (wrong,) = (check for check in verify_series("city") if not check.passed)
    assert "htf series adopt" in wrong.finding
    before = spent(Series("city"))
    assert run(["series", "adopt", "city", str(spare)]) == 0
    assert "Nothing was charged." in capsys.readouterr().out
    made = Series("city")
    assert made.release("2026-01") == htf.Release.load(spare)
    assert spent(made) == before
    assert all(check.passed for check in verify_series("city"))
    assert run(["budget", "check", f"city/{BUDGET}"]) == 0
    assert run(["series", "adopt", "city", str(spare)]) == 2
    assert "already exists" in capsys.readouterr().err


@pytest.mark.parametrize("beside", [True, False])
def test_a_spare_file_is_not_drawn_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, beside: bool
) -> None:
    """The place was taken, the release was saved elsewhere, and the process died before the entry. There is one release of
    this charge, and no second draw: also not while something is in its place."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.setattr("htf.files.gettempdir", lambda: str(elsewhere))
    made = interrupted(tmp_path, monkeypatch)
    (pending,) = made.accounts()[0].pending
    publishing = htf.BudgetFile(made.folder / BUDGET, "series")
    publishing.resume([pending])
    drawn = publish(
        counts(2, people=True),
        made.plan.each,
        pending.mechanism,
        prior=made.priors("2026-02"),
        noise="fast",
        budget=publishing,
        label="2026-02",
    )
    spare = (made.folder if beside else elsewhere) / "release-0123abcd.parquet"
    drawn.save(spare)
    (elsewhere / "release-of-others.parquet").write_text("no release")
    (elsewhere / "release-folder.parquet").mkdir()
    (made.folder / "2026-02.parquet").write_text("something came here meanwhile")
    for resume in (False, True):
        with pytest.raises(InputError, match="is in its way: move that away"):
            Series(made.folder).add(counts(2, people=True), "2026-02", noise="fast", resume=resume)
    (made.folder / "2026-02.parquet").unlink()
    found = Series(made.folder).add(counts(2, people=True), "2026-02", noise="fast", resume=True)
    assert found == drawn
    assert (made.folder / "2026-02.parquet").read_bytes() == spare.read_bytes()
    assert [one.state for one in made.accounts()[0].entries] == ["published"] * 2
    assert all(check.passed for check in verify_series(made.folder))


def test_links_among_temporary_files_are_not_taken_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.setattr("htf.files.gettempdir", lambda: str(elsewhere))
    made = interrupted(tmp_path, monkeypatch)
    (elsewhere / "release-a.parquet").symlink_to(made.folder / "2026-01.parquet")
    os.mkfifo(elsewhere / "release-b.parquet")
    assert list(made._spares()) == []


# What others may put into a folder -----------------------------------------------------------------


@pytest.mark.parametrize("kind", ["link", "dangling link", "pipe", "folder"])
def test_a_lock_is_never_followed_nor_emptied(tmp_path: Path, kind: str) -> None:
    """Whoever can write to the folder could let it lead to any file of whoever adds."""
    made = create(tmp_path / "s")
    victim, lock = tmp_path / "victim", made.folder / "series.lock"
    if kind == "link":
        victim.write_text("precious")
    if kind == "pipe":
        os.mkfifo(lock)
    elif kind == "folder":
        lock.mkdir()
    else:
        lock.symlink_to(victim)
    with pytest.raises(OutputError, match=r"cannot write"):
        made.add(counts(1), "2026-01", noise="fast")
    assert not made.accounts()
    assert (victim.read_text() == "precious") if kind == "link" else not victim.exists()
    if kind == "link":  # nor by another name of the same file
        lock.unlink()
        os.link(victim, lock)
        made.add(counts(1), "2026-01", noise="fast")
        assert victim.read_text() == "precious"


@pytest.mark.parametrize("name", [".htf-x.parquet", "2026-02.parquet", "release-x.parquet"])
def test_folders_that_are_named_like_releases_are_left_alone(tmp_path: Path, name: str) -> None:
    made = create(tmp_path / "s")
    made.add(counts(1), "2026-01", noise="fast")
    (made.folder / name).mkdir()
    (made.folder / name / "kept").write_text("kept")
    assert all(check.passed for check in verify_series(made.folder))
    if name == "2026-02.parquet":
        with pytest.raises(htf.HtfError, match="it is a folder"):
            made.add(counts(2), "2026-02", noise="fast")
        assert len(made.accounts()) == 2
    else:
        made.add(counts(2), "2026-02", noise="fast")
    assert (made.folder / name / "kept").exists()


@pytest.mark.parametrize("name", ["counted.json", "series.json", BUDGET])
@pytest.mark.parametrize("kind", ["folder", "[]", "\0"])
def test_parts_of_a_series_that_are_something_else_are_told(
    tmp_path: Path, name: str, kind: str
) -> None:
    made = create(tmp_path / "s")
    made.add(counts(1), "2026-01", noise="fast")
    path = made.folder / name
    path.unlink(missing_ok=True)
    if kind == "folder":
        path.mkdir()
    else:
        path.write_text(kind)

    def use() -> None:
        again = Series(made.folder)
        again.add(counts(2), "2026-02", noise="fast")

    with pytest.raises(InputError):
        use()


def test_a_dry_run_writes_nothing(incidents: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No lock, no account, no clock, and nothing of an interrupted run is finished or removed."""
    make("record")
    (incidents / "city" / ".htf-left.parquet").write_text("left")

    def state() -> dict[str, bytes]:
        return {one.name: one.read_bytes() for one in (incidents / "city").iterdir()}

    before = state()
    add = ["series", "add", "city", "points.csv", "--noise", "fast", "--dry-run"]
    assert run([*add, "--period", "2026-01"]) == 0
    assert "This was a dry run" in capsys.readouterr().err
    assert state() == before


def test_only_what_was_charged_is_brought_in(
    incidents: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spare = saved_elsewhere(incidents / "elsewhere", monkeypatch, False)
    release = htf.Release.load(spare)
    publish(counts(1), 2, noise="fast").save("foreign.parquet")
    Series.create("other", Recipe(domain=release.domain, epsilon=2), "month", releases=1)
    damaged = replace(release, estimates=release.estimates * 1.5)
    damaged.save("damaged.parquet")
    for folder, file, message in (
        ("city", "foreign.parquet", "is of another map"),
        ("other", str(spare), "was not charged to other"),
        ("city", "damaged.parquet", "is inconsistent"),
    ):
        assert run(["series", "adopt", folder, file]) == 2
        assert message in " ".join(capsys.readouterr().err.split())
    assert Series("city").periods == []
    assert run(["series", "adopt", "city", str(spare)]) == 0
    Path("city/2026-01.parquet").rename("away.parquet")
    replace(release, facts={**release.facts, "note": 1}).save("changed.parquet")
    assert run(["series", "adopt", "city", "changed.parquet"]) == 2
    assert "its SHA-256 is another one" in " ".join(capsys.readouterr().err.split())


def test_a_release_that_cannot_borrow_is_kept(
    incidents: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    make("record")
    add = ["series", "add", "city", "points.csv", "--noise", "fast"]
    assert run([*add, "--period", "2026-01"]) == 0

    def broken(*_: Any, **__: Any) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr("htf.series.borrowing.borrow", broken)
        assert run([*add, "--period", "2026-02"]) == 0
        assert "could not borrow from the releases before it (MemoryError)" in " ".join(
            capsys.readouterr().err.split()
        )
        with pytest.warns(UserWarning, match="2026-03 could not borrow"):
            Series("city").finish(
                Series("city").release("2026-02"), Period.read("2026-03", "month")
            )
    made = Series("city")
    assert made.release("2026-02").background is None
    assert [len(account.entries) for account in made.accounts()] == [1, 1]
    assert all(check.passed for check in verify_series("city"))
    assert incidents.exists()


def test_priors_hold_few_grids_at_once(year: Series, monkeypatch: pytest.MonkeyPatch) -> None:
    """A grid may have a quarter of a gigabyte, and there may be twelve."""
    alive: list[int] = []
    most = 0

    class Grid(np.ndarray[Any, Any]):
        pass

    def watched(release: htf.Release) -> Any:
        nonlocal most
        grid = cell_counts(release).view(Grid)
        alive.append(0)
        weakref.finalize(grid, alive.pop)
        most = max(most, len(alive))
        return grid

    monkeypatch.setattr("htf.series.folder.cell_counts", watched)
    found = year.priors("2026-05")
    assert most == 2  # of four releases
    expected = np.mean([cell_counts(year.release(period)) for period in year.periods], axis=0)
    mean = Prior.of(expected, DOMAIN, "mean", "0" * 64)
    assert np.allclose(found[1].weights, mean.weights)


def test_an_empty_period_says_what_to_do(
    incidents: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make("record")
    add = ["series", "add", "city", "points.csv", "--noise", "fast"]
    assert run([*add, "--period", "2026-09"]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert (
        "No record of 2026-09 is inside the bounds. Check the times (the column when), --period"
        in told
    )
    assert "release the period anyway with --allow-empty" in told
    assert "Nothing was charged." in told
    assert run([*add, "--period", "2026-09", "--allow-empty"]) == 0
    assert "remains for corrections of 2026-09" in " ".join(capsys.readouterr().out.split())
    assert Series("city").periods == ["2026-09"]
    assert incidents.exists()


def test_a_series_of_sums_is_charged_once(incidents: Path) -> None:
    """Without the share of cut weights, which is a purchase of its own."""
    make("record", weight="riders", max_weight=3, spend=["clipped=0"])
    text = Path("points.csv").read_text().splitlines()
    rows = [
        f"{text[0]},riders",
        *(f"{row},{1 + number % 4}" for number, row in enumerate(text[1:])),
    ]
    Path("points.csv").write_text("\n".join(rows) + "\n")
    add = ["series", "add", "city", "points.csv", "--noise", "fast"]
    for month in ("2026-01", "2026-02"):
        assert run([*add, "--period", month]) == 0
    made = Series("city")
    assert [len(account.entries) for account in made.accounts()] == [1, 1]
    assert made.release("2026-02").background is not None
    expected = (1 + 2 + 3 + 3) / 4 * 6000 * 31 / 90
    assert made.count().count[0] == pytest.approx(expected, abs=400)
    assert made.count().counted == "sum of riders, at most 3 per record"
    assert all(check.passed for check in verify_series("city"))
    assert incidents.exists()


def test_a_charge_of_another_name_leads_out_of_no_series(tmp_path: Path) -> None:
    """The label of a charge is free, and names the file that a release is brought in as."""
    of_people = counts(1, people=True)
    recipe = Recipe(domain=of_people.domain, user="who", epsilon=1)
    inside = Series.create(tmp_path / "city", recipe, "month", releases=3)
    charged = htf.BudgetFile(tmp_path / "city" / "budget.sqlite", "series")
    labels = ("../escaped", "2026-01.x", "2026-01./../../x", "next month")
    for number, label in enumerate(labels):
        spare = tmp_path / f"spare-{number}.parquet"
        publish(of_people, "0.5", noise="fast", budget=charged, label=label).save(spare)
        with pytest.raises(InputError, match=r"month|period"):
            inside.adopt(spare)
    assert len([*tmp_path.rglob("*.parquet")]) == len(labels)
