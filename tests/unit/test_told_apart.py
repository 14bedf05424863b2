"""Charges add up only if they mean the same people, and the same days: accounts and series keep how these are told apart."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import htf
from htf import BudgetFile, Recipe, Series, ToldApart
from htf.cli.main import run
from htf.curator.noise import FastNoise
from htf.errors import InputError
from htf.privacy import budget_store as store

DOMAIN = htf.Domain.from_bounds(0, 0, 1, 1, cells=4)
DAY, PERSON = "one person in one day", "one person"
UTC = ToldApart("rider", "time")
# What another clock or person column is.
OTHERS = {
    "offset": ToldApart("rider", "time", utc_offset=12 * 3600),
    "time column": ToldApart("rider", "ended"),
    "time unit": ToldApart("rider", "time", time_unit="ms"),
    "time format": ToldApart("rider", "time", time_format="%d.%m.%Y"),
    "person": ToldApart("driver", "time"),
    "nothing said": None,
}


def table(**others: Any) -> dict[str, Any]:
    random = np.random.default_rng(1)
    days = np.datetime64("2026-01-01T00:00") + random.integers(0, 3000, 200).astype(
        "timedelta64[m]"
    )
    who = np.arange(200) % 20
    days = days.astype("datetime64[s]")
    places = {"lon": random.random(200), "lat": random.random(200)}
    return {**places, "rider": who, "driver": who % 7, "time": days, "ended": days, **others}


@pytest.fixture
def days(tmp_path: Path) -> BudgetFile:
    return BudgetFile.create(tmp_path / "budget.sqlite", "riders", 2, unit=DAY)


@pytest.mark.parametrize("what", OTHERS)
def test_an_account_keeps_how_people_and_days_are_told_apart(days: BudgetFile, what: str) -> None:
    days.charge("0.5", "htf", "June", unit=DAY, told_apart=UTC)
    days.charge("0.5", "htf", "July", unit=DAY, told_apart=ToldApart("rider", "time"))
    with pytest.raises(
        InputError,
        match=r"apart by the column .rider., and their days by the column .time. at UTC.00:00, but",
    ) as refused:
        days.charge("0.25", "htf", "August", unit=DAY, told_apart=OTHERS[what])
    assert "make another budget" in str(refused.value)
    assert "nothing of it is spent" in refused.value.__notes__[0]
    assert str(days.account().spent) == "1"


def test_both_ways_are_named(days: BudgetFile) -> None:
    days.charge("0.5", "htf", unit=DAY, told_apart=UTC)
    with pytest.raises(InputError, match=r"at UTC\+00:00, but this charge .* 'time' at UTC\+12:00"):
        days.charge("0.5", "htf", unit=DAY, told_apart=OTHERS["offset"])


@pytest.mark.parametrize("what", OTHERS)
def test_people_are_told_apart_by_their_column_alone(tmp_path: Path, what: str) -> None:
    riders = BudgetFile.create(tmp_path / "b.sqlite", "riders", 2, unit=PERSON)
    riders.charge("0.5", "htf", unit=PERSON, told_apart=UTC)
    if what in ("person", "nothing said"):
        with pytest.raises(InputError, match="tells people apart by the column 'rider', but"):
            riders.charge("0.5", "htf", unit=PERSON, told_apart=OTHERS[what])
    else:
        riders.charge("0.5", "htf", unit=PERSON, told_apart=OTHERS[what])


def test_records_need_nothing(tmp_path: Path) -> None:
    pings = BudgetFile.create(tmp_path / "b.sqlite", "pings", 2)
    for told in (UTC, None, OTHERS["person"]):
        pings.charge("0.5", "htf", told_apart=told)
    assert pings.account().told_apart is None


def test_a_program_that_says_nothing_is_no_pin_and_fits_none(days: BudgetFile) -> None:
    """So that what it paid for is not lost if the map after it says how people are told apart."""
    for _ in range(2):
        days.charge("0.25", "htf", unit=DAY)
    days.charge("0.25", "htf", unit=DAY, told_apart=UTC)
    with pytest.raises(InputError, match="the program which counted them did not say"):
        days.charge("0.25", "htf", unit=DAY)
    with pytest.raises(InputError, match="but this charge does so by the column 'rider'"):
        days.charge("0.25", "htf", unit=DAY, told_apart=OTHERS["offset"])


def test_a_run_that_is_taken_up_notes_it_too(days: BudgetFile) -> None:
    """A charge of a program that did not say it, and that is still pending."""
    days.charge("0.5", "htf", unit=DAY)
    again = BudgetFile(days.path, days.dataset)
    again.resume([one for one in again.account().entries if one.state == "pending"][-1:])
    again.charge("0.5", "htf", unit=DAY, told_apart=UTC)
    with pytest.raises(InputError, match="tells people apart by the column 'rider'"):
        BudgetFile(days.path, days.dataset).charge(
            "0.5", "htf", unit=DAY, told_apart=OTHERS["offset"]
        )


def read(**options: Any) -> htf.FrequencyMatrix:
    given = {"user": "rider", "time": "time", "per": "day", "max_records": 2, **options}
    return htf.read_points(table(), DOMAIN, ["lon", "lat"], **given)


def test_what_is_bought_before_the_map_must_mean_the_same_days(days: BudgetFile) -> None:
    """An activity by days of UTC, and a map by days that begin twelve hours later."""
    by_hand = htf.RecordsPerPerson([30, 20, 5], told_apart=UTC)
    activity = htf.measure_activity(by_hand, "0.1", noise=FastNoise(), budget=days, per="day")
    options: dict[str, Any] = {"noise": FastNoise(), "budget": days, "bought": [activity]}
    for without in (
        {},
        {"budget": None},
    ):  # a release claims one epsilon for one unit, charged or not
        with pytest.raises(InputError, match=r"at UTC\+00:00, and the counts do so"):
            htf.publish(read(utc_offset=12 * 3600), 1, "uniform", **(options | without))
    htf.publish(read(), 1, "uniform", **options)
    unsaid = htf.RecordsPerPerson([30, 20, 5])
    with pytest.raises(InputError, match="did not say"):
        htf.measure_activity(unsaid, "0.1", noise=FastNoise(), budget=days, per="day")
    boxes = htf.read_people_by_box(
        table(), DOMAIN, 2, ["lon", "lat"], user="driver", time="time", per="day"
    )
    with pytest.raises(InputError, match="but this charge does so by the column 'driver'"):
        htf.measure_distinct(boxes, "0.1", noise=FastNoise(), budget=days)
    of_drivers = htf.measure_distinct(boxes, "0.1", noise=FastNoise())
    with pytest.raises(InputError, match="the counts do so by the column 'rider'"):
        htf.publish(read(), 1, "uniform", noise=FastNoise(), bought=[of_drivers])
    unknown = htf.measure_activity(unsaid, "0.1", noise=FastNoise(), per="day")
    htf.publish(read(), 1, "uniform", noise=FastNoise(), bought=[unknown])
    assert str(days.account().spent) == "1"


def test_the_command_refuses_another_clock_before_it_reads(
    tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    import pandas

    monkeypatch.chdir(tmp_path)
    pandas.DataFrame(table()).to_parquet("rides.parquet")
    assert (
        run(
            [
                "budget",
                "init",
                "b.sqlite",
                "--dataset",
                "rides",
                "--cap",
                "9",
                "--unit",
                "person-day",
            ]
        )
        == 0
    )
    words = [
        "release",
        "rides.parquet",
        "--user",
        "rider",
        "--time",
        "time",
        "--per",
        "day",
        "--bounds",
        "0,0,1,1",
        "--cells",
        "4",
    ]
    words += [
        "--epsilon",
        "1",
        "--budget",
        "b.sqlite",
        "--dataset",
        "rides",
        "--noise",
        "fast",
        "--mechanism",
        "uniform",
    ]
    assert run([*words, "--read", "utc-offset=+00:00", "-o", "a.parquet"]) == 0
    capsys.readouterr()
    for options in (["--read", "utc-offset=+12:00"], ["--read", "utc-offset=+12:00", "--dry-run"]):
        assert run([*words, *options, "-o", "b.parquet"]) == 2
        said = " ".join(capsys.readouterr().err.split())
        assert "at UTC+00:00" in said
        assert "at UTC+12:00" in said
        assert "Nothing was charged" in said
    of_records = [one for one in words if one not in ("--user", "rider", "--per", "day")]
    assert run([*of_records, "-o", "b.parquet"]) == 2  # what is wrong is the unit, and it says so
    assert "but this charge is for one record" in " ".join(capsys.readouterr().err.split())
    assert not Path("b.parquet").exists()
    assert run(["budget", "show", "b.sqlite"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert (
        "told apart by the column 'rider', and their days by the column 'time' at UTC+00:00"
        in shown
    )
    assert run(["budget", "show", "b.sqlite", "--json"]) == 0
    (account,) = json.loads(capsys.readouterr().out)
    assert account["told_apart"] == {
        "user": "rider",
        "time": "time",
        "time_unit": "s",
        "utc_offset": 0,
    }


@pytest.mark.parametrize("text", ["no JSON", "[1]", "7"])
def test_it_is_kept_and_sealed(days: BudgetFile, text: str) -> None:
    days.charge("0.5", "htf", unit=DAY, told_apart=UTC)
    with closing(sqlite3.connect(days.path)) as connection:
        with pytest.raises(sqlite3.IntegrityError, match="a budget is never changed"):
            connection.execute("UPDATE dataset SET told_apart = ?", (text,))
        connection.rollback()
        connection.execute("DROP TRIGGER caps_stand")
        connection.execute("UPDATE dataset SET told_apart = ?", (text,))
        (sql,) = (one for one in store.TRIGGERS if "caps_stand" in one)
        connection.execute(sql)
        connection.commit()
    with pytest.raises(InputError, match="is damaged"):
        days.account()


# Series ------------------------------------------------------------------------------------------


def people(**options: Any) -> htf.FrequencyMatrix:
    return htf.read_points(table(), DOMAIN, ["lon", "lat"], **{"user": "rider", **options})


def test_a_series_keeps_the_column_of_people(tmp_path: Path) -> None:
    recipe = Recipe(domain=DOMAIN, user="rider", epsilon=1)
    made = Series.create(tmp_path / "s", recipe, "month", releases=4)
    made.add(people(), "2026-01", noise="fast")
    with pytest.raises(
        InputError, match=r'"user": "rider".*, but these counts by .*"user": "driver"'
    ):
        made.add(people(user="driver"), "2026-02", noise="fast")
    assert len(made.accounts()[0].entries) == 1
    made.add(people(), "2026-02", noise="fast")


def test_a_series_of_days_keeps_the_clock_of_a_program(tmp_path: Path) -> None:
    recipe = Recipe(domain=DOMAIN, user="rider", per="day", time="time", epsilon=1)
    made = Series.create(tmp_path / "s", recipe, "day", releases=4)
    days: dict[str, Any] = {"time": "time", "per": "day"}
    made.add(people(**days), "2026-01-01", noise="fast")
    with pytest.raises(InputError, match="a record might be in two periods"):
        made.add(people(**days, utc_offset=3600), "2026-01-02", noise="fast")
    made.add(people(**days), "2026-01-02", noise="fast")
