"""`htf release --max-records`, which measures how many records people have: what it charges and prints, what is
refused before anything is charged, and what is said if something fails between the two charges."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import htf.ingest.points
import htf.verification
from htf import (
    BudgetFile,
    Domain,
    Epsilon,
    InputError,
    RecordsPerPerson,
    Release,
    ToldApart,
    best_max_records,
    measure_activity,
    read_records_per_person,
    verify,
)
from htf.cli.main import run
from htf.errors import NothingInsideError

DRAW = np.random.default_rng(2)
RECORDS = DRAW.geometric(0.12, 1400)  # of each person
TRUTH = int(RECORDS.sum())


@pytest.fixture(scope="module")
def points(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Records of 1400 people, anywhere."""
    path = tmp_path_factory.mktemp("points") / "points.csv"
    who = np.repeat(np.arange(len(RECORDS)), RECORDS)
    rows = zip(DRAW.random(TRUTH), DRAW.random(TRUTH), who, strict=True)
    lines = "".join(f"{x:.6f},{y:.6f},p{n},2026-01-{n % 9 + 1:02d}\n" for x, y, n in rows)
    path.write_text(f"lon,lat,who,day\n{lines}")
    return path


@pytest.fixture
def budget(tmp_path: Path) -> BudgetFile:
    return BudgetFile.create(tmp_path / "budget.sqlite", "pings", 3, unit="one person")


def command(points: Any, budget: BudgetFile, *more: Any) -> list[str]:
    asked = ["--bounds", "0,0,1,1", "--cells", "16", "--epsilon", "1", "--noise", "fast"]
    to = ["--budget", budget.path, "--dataset", "pings", "-o", budget.path.parent / "out.parquet"]
    return [
        "release",
        *map(str, [points, *asked, "--mechanism", "ug", "--user", "who", *to, *more]),
    ]


def charges(budget: BudgetFile) -> list[tuple[str, str, str]]:
    return [(e.mechanism, str(e.epsilon), e.state) for e in budget.account().entries]


def published(budget: BudgetFile) -> Release:
    path = budget.path.parent / "out.parquet"
    assert [check for check in verify(path) if not check.passed] == []
    return Release.load(path)


def test_python_and_the_command_find_the_same_k(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Of the records inside the bounds: most people have a few there, and 40 more elsewhere."""
    inside = np.repeat(np.arange(800), DRAW.geometric(0.4, 800))
    outside = np.repeat(np.arange(800), 40)
    who = np.concatenate([inside, outside])
    x = DRAW.random(len(who)) + 5 * (np.arange(len(who)) >= len(inside))
    lines = "".join(f"{a:.6f},{b:.6f},p{n}\n" for a, b, n in zip(x, DRAW.random(len(who)), who, strict=True))  # fmt: skip
    points, out = tmp_path / "points.csv", tmp_path / "out.parquet"
    points.write_text(f"lon,lat,who\n{lines}")
    domain = Domain.from_bounds(0, 0, 1, 1, cells=16)
    visits: Any = {"source": points, "domain": domain, "columns": ["lon", "lat"], "user": "who"}
    people = read_records_per_person(**visits)
    activity = measure_activity(people, "0.1", noise="seeded:7")
    most = best_max_records(activity, Epsilon.of("0.9"), 1000)
    asked = ["--bounds", "0,0,1,1", "--cells", "16", "--epsilon", "1", "--user", "who"]
    found = ["--max-records", "auto", "--noise", "seeded:7", "-o", str(out)]
    assert run(["release", str(points), *asked, *found]) == 0, capfd.readouterr().err
    made = Release.load(out)
    assert made.activity is not None
    assert made.activity.people == activity.people
    assert made.protection.max_records == most
    everywhere = np.unique(who, return_counts=True)[1]
    wrong = measure_activity(RecordsPerPerson.from_records(everywhere, 1000), "0.1", noise="seeded:7")  # fmt: skip
    assert best_max_records(wrong, Epsilon.of("0.9"), 1000) > most  # which counts all records


# --- what is charged ------------------------------------------------------------------------------

CHARGED: dict[str, tuple[list[str], list[tuple[str, str]]]] = {
    "a tenth": (["--max-records", "3"], [("activity", "0.1"), ("ug", "0.9")]),
    "a share": (["--max-records", "3", "--spend", "activity=1/3"], [("activity", "0.333333333333333"), ("ug", "0.666666666666667")]),
    "nothing": (["--max-records", "3", "--spend", "activity=0"], [("ug", "1")]),
    "auto": (["--max-records", "auto"], [("activity", "0.1"), ("ug", "0.9")]),
    "people": ([], [("ug", "1")]),
}  # fmt: skip


@pytest.mark.parametrize("case", CHARGED)
def test_each_part_is_charged_once(
    case: str, points: Path, budget: BudgetFile, capfd: pytest.CaptureFixture[str]
) -> None:
    options, wanted = CHARGED[case]
    assert run(command(points, budget, *options)) == 0, capfd.readouterr().err
    assert charges(budget) == [(*one, "published") for one in wanted]
    assert budget.account().spent == Epsilon.of(1)
    release = published(budget)
    assert release.epsilon == Epsilon.of(1)
    assert {one.charged_as for one in release.bought} == {name for name, _ in wanted} - {"ug"}
    told = "".join(capfd.readouterr())
    assert "ε = 2 of 3 remains" in told
    assert ("Keeping at most" in told) == (case == "auto")
    for exact in (str(TRUTH), f"{TRUTH:,}", "1400", "1,400"):
        assert exact not in told
    assert run(["budget", "check", str(budget.path)]) == 0
    assert capfd.readouterr().out.count("found") == len(wanted)


def test_counts_are_of_all_records(points: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.parquet"
    asked = ["--bounds", "0,0,1,1", "--cells", "16", "--user", "who", "--max-records", "3"]
    made = [
        "release",
        str(points),
        *asked,
        "--epsilon",
        "2",
        "--noise",
        "seeded:1",
        "-o",
        str(output),
    ]
    for share, most, truth in (("0", 0.05, np.minimum(RECORDS, 3).sum()), ("0.1", 0.2, TRUTH)):
        assert run([*made, "--spend", f"activity={share}", "--overwrite"]) == 0
        found = Release.load(output).count([0, 0, 1, 1])
        assert found.low[0] < truth < found.high[0]
        assert found.count[0] == pytest.approx(truth, rel=most)


def test_a_number_that_follows_is_told_and_kept_to(
    points: Path, budget: BudgetFile, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(command(points, budget, "--max-records", "auto")) == 0
    release = published(budget)
    most = release.protection.max_records
    assert 1 <= most <= 1000
    assert release.activity is not None
    assert release.activity.decides
    records = "record" if most == 1 else "records"
    assert (
        f"Keeping at most {most} {records} per person: by the noisy activity"
        in capfd.readouterr().out
    )
    assert run(["info", str(budget.path.parent / "out.parquet")]) == 0
    told = " ".join(capfd.readouterr().out.split())
    assert "The number of records to keep per person follows from it" in told
    assert f"Activity, for epsilon 0.1; counts are multiplied by {release.factor:.4g}" in told


def test_periods_are_charged_for_their_own_unit(points: Path, tmp_path: Path) -> None:
    budget = BudgetFile.create(tmp_path / "b.sqlite", "pings", 3, unit="one person in one day")
    by_day = ["--max-records", "3", "--per", "day", "--time", "day"]
    assert run(command(points, budget, *by_day)) == 0
    release = published(budget)
    assert release.activity is not None
    assert release.activity.per == "day"
    assert {entry.unit for entry in budget.account().entries} == {"one person in one day"}


# --- what is refused before anything is charged ---------------------------------------------------

AUTO = ("--max-records", "auto")
REFUSED: dict[str, tuple[list[str], int, str]] = {
    "all of it": (["--max-records", "3", "--spend", "activity=1"], 2, "a share of epsilon, from 0 to below 1"),
    "more than all": (["--max-records", "3", "--spend", "activity=1.5"], 2, "a share of epsilon"),
    "less than nothing": (["--max-records", "3", "--spend", "activity=-0.1"], 2, "a share of epsilon"),
    "no number": (["--max-records", "3", "--spend", "activity=x"], 2, "got 'x'"),
    "not a number": (["--max-records", "3", "--spend", "activity=nan"], 2, "a share of epsilon"),
    "by nothing": (["--max-records", "3", "--spend", "activity=1/0"], 2, "a share of epsilon"),
    "of people": (["--spend", "activity=0.5"], 2, "here split people are counted: leave it out, or count records (--max-records K)"),
    "of people, by their name": (["--count", "people", "--spend", "activity=0.1"], 2, "--spend activity=0.1: the activity is for counting records"),
    "none of people": (["--spend", "activity=0"], 2, "--spend activity=0: the activity is for"),
    "auto of nothing": ([*AUTO, "--spend", "activity=0"], 2, "give --spend activity a share above 0"),
    "auto of people": ([*AUTO, "--count", "people"], 2, "leave out --max-records auto"),
    "less than a unit": (["--max-records", "3", "--epsilon", "5e-15"], 2, "less than 0.000000000004096, the smallest: spend more, or leave it out (--spend activity=0)"),
    "a range of no people": (["--max-records", "3", "--most-records", "1048577"], 2, "between 1 and 1048576"),
    "more than anybody counts as having": (["--max-records", "3000"], 2, "choose a larger --most-records, or keep fewer"),
    "too little for each": (["--max-records", "50000", "--epsilon", "4.2e-11"], 2, "is less than 1e-15 each"),
    "too little for the range": ([*AUTO, "--spend", "activity=0.9", "--epsilon", "4.6e-12"], 2, "over 1000 records per person is less than 1e-15"),
    "too little for the mechanism": ([*AUTO, "--mechanism", "htf-paper", "--epsilon", "0.001"], 3, "is too small"),
    "over the cap": ([*AUTO, "--epsilon", "3.1"], 3, "more than"),
    "not private": ([*AUTO, "--noise", "seeded:1"], 2, "seeded or scripted noise"),
    "another unit": ([*AUTO, "--per", "day", "--time", "day"], 2, "epsilons of different units cannot be added"),
    "another ending": ([*AUTO, "-o", "out.csv"], 2, "the name must end in .parquet"),
    "no folder": ([*AUTO, "-o", "nowhere/out.parquet"], 2, "there is no folder"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_can_be_told_without_the_data_is_refused_before_they_are_read(
    case: str, budget: BudgetFile, capfd: pytest.CaptureFixture[str]
) -> None:
    options, code, says = REFUSED[case]
    before = budget.path.read_bytes()
    assert run(command("not-there.csv", budget, *options)) == code
    told = " ".join(capfd.readouterr().err.split())
    assert says in told
    assert "Nothing was charged" in told
    assert budget.path.read_bytes() == before


def test_auto_needs_people(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    asked = ["--bounds", "0,0,1,1", "--epsilon", "1", "-o", str(tmp_path / "out.parquet")]
    assert run(["release", "not-there.csv", *asked, "--max-records", "auto"]) == 2
    assert "--max-records auto limits the records per person: name" in capfd.readouterr().err
    assert run(["release", "not-there.csv", *asked, "--spend", "activity=0.2"]) == 2
    told = " ".join(capfd.readouterr().err.split())
    assert (
        "--spend activity=0.2: the activity is for counting records of people: leave it out, or name the column of people with --user"
        in told
    )


@pytest.mark.parametrize("most", ["3", "auto"])
def test_nobody_inside_charges_nothing(
    most: str, points: Path, budget: BudgetFile, capfd: pytest.CaptureFixture[str]
) -> None:
    asked = command(points, budget, "--max-records", most, "--bounds", "5,5,6,6")
    assert run(asked) == 2
    assert "No record is inside the bounds" in capfd.readouterr().err
    assert charges(budget) == []
    assert run([*asked, "--allow-empty"]) == 0
    assert [one[0] for one in charges(budget)] == ["activity", "ug"]
    assert published(budget).activity is not None


def broken_reading(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(htf.ingest.points, "read_matrix", fail)


def test_what_cannot_be_read_is_not_charged(
    points: Path,
    budget: BudgetFile,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """If K is known, the map's records are read before the activity is charged."""
    broken_reading(monkeypatch, InputError("the disk is full"))
    assert run(command(points, budget, "--max-records", "3")) == 2
    assert "Nothing was charged" in capfd.readouterr().err
    assert charges(budget) == []


# --- between the two charges ----------------------------------------------------------------------


@pytest.mark.parametrize("error", [InputError("the disk is full"), NothingInsideError("gone")])
def test_what_fails_after_the_activity_says_that_its_charge_stands(
    error: Exception,
    points: Path,
    budget: BudgetFile,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    broken_reading(monkeypatch, error)
    assert run(command(points, budget, "--max-records", "auto")) == 2
    (entry,) = budget.account().entries
    assert charges(budget) == [("activity", "0.1", "pending")]
    told = " ".join(capfd.readouterr().err.split())
    assert f"The charge of 0.1 stands, as entry {entry.id} of 'pings'" in told
    assert (
        "It paid for the activity of people, which was measured before the map and is not refunded"
        in told
    )
    assert "Nothing was charged" not in told
    monkeypatch.undo()
    assert run(command(points, budget, "--max-records", "3")) == 0
    assert f"(entry {entry.id}, out.parquet) is pending" in capfd.readouterr().err
    assert budget.account().spent == Epsilon.of("1.1")


def test_a_budget_that_others_used_up_in_between(
    points: Path,
    budget: BudgetFile,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    import htf.estimation.activity as module

    found = module.best_max_records

    def meanwhile(*given: Any) -> int:
        who = ToldApart("who")
        budget.charge("2.5", "ug", "of somebody else", unit="one person", told_apart=who)
        return found(*given)

    monkeypatch.setattr(module, "best_max_records", meanwhile)
    assert run(command(points, budget, "--max-records", "auto")) == 3
    told = " ".join(capfd.readouterr().err.split())
    assert "The charge of 0.1 stands" in told
    assert "The charge of 0.9 was not entered: nothing of it is spent." in told
    assert budget.account().spent == Epsilon.of("2.6")


def test_a_number_that_the_mechanism_refuses_is_halved(
    points: Path, budget: BudgetFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The paper's mechanism needs some epsilon for each record. 800 records each leave too little."""
    import htf.estimation.activity as module

    for place in (module, htf.verification):
        monkeypatch.setattr(place, "best_max_records", lambda *_: 800)
    options = ["--max-records", "auto", "--mechanism", "htf-paper"]
    assert run(command(points, budget, *options)) == 0
    assert 1 <= published(budget).protection.max_records < 800
    assert run([*command(points, budget, "--mechanism", "htf-paper", "--max-records", "800"), "-o", str(budget.path.parent / "b.parquet")]) == 3  # fmt: skip


def test_an_output_that_cannot_be_written_in_the_end_is_saved_elsewhere(
    points: Path,
    budget: BudgetFile,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    import htf.estimation.activity as module

    output = budget.path.parent / "out.parquet"
    found = module.best_max_records

    def meanwhile(*given: Any) -> int:
        output.write_text("something of mine")
        return found(*given)

    monkeypatch.setattr(module, "best_max_records", meanwhile)
    assert run(command(points, budget, "--max-records", "auto")) == 2
    told = " ".join(capfd.readouterr().err.split())
    assert "The release is complete, as" in told
    assert [state for *_, state in charges(budget)] == ["published", "published"]
    assert output.read_text() == "something of mine"
