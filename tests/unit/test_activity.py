"""How many people have how many records, found with noise: its classes, its price and its charge, the release that
carries it, and what is made of it."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from htf import (
    BudgetFile,
    Domain,
    Epsilon,
    FrequencyMatrix,
    HtfError,
    InputError,
    Protection,
    RecordsPerPerson,
    Release,
    best_max_records,
    measure_activity,
    publish,
    verify,
)
from htf.curator.contributions import parts_by_mark
from htf.curator.noise import FastNoise, ScriptedNoise, SeededNoise
from htf.curator.noise_check import check_noise
from htf.errors import ReleaseFileError
from htf.estimation.activity import read_profiles
from htf.estimation.activity_bounds import lower_sums, records_beyond_bounds, upper_sums
from htf.estimation.worth import LARGEST, Worth, scale_to_all, worth_of
from htf.frame.domain import IntArray
from htf.privacy.activity import LEAST_PRICE, PARTS, Activity, marks
from htf.privacy.protection import OF_RECORDS
from telling import telling

DOMAIN = Domain.from_bounds(0, 0, 1, 1, 4)
PERSON = Protection("person", 5)
ONE_PERSON = "one person"
MOST = 2**20
DRAWS = np.random.default_rng(5)
GROUPS: dict[str, IntArray] = {
    "lognormal": np.maximum(1, np.rint(DRAWS.lognormal(2, 1.2, 20_000))).astype(np.int64),
    "Pareto": np.clip(np.ceil(DRAWS.pareto(1.5, 20_000)), 1, MOST).astype(np.int64),
    "geometric": DRAWS.geometric(0.1, 20_000),
    "alike": np.full(5000, 300),
    "single": np.ones(5000, dtype=np.int64),
    "one heavy": np.r_[DRAWS.geometric(0.4, 5000), 100_000],
}
SMOOTH = ("lognormal", "Pareto", "geometric")


def matrix(protection: Protection = PERSON, count: int = 170) -> FrequencyMatrix:
    cells = np.indices((4, 4), dtype=np.int32).reshape(2, -1)
    return FrequencyMatrix(DOMAIN, cells, np.full(16, count), protection)


def made(protection: Protection = PERSON, **options: Any) -> Release:
    return publish(matrix(protection), **{"epsilon": 1, "mechanism": "ug", **options})


def of_group(name: str) -> RecordsPerPerson:
    return RecordsPerPerson.from_records(GROUPS[name], MOST)


def measured(name: str = "lognormal", **options: Any) -> Activity:
    return measure_activity(of_group(name), **{"epsilon": "0.1", "noise": "fast", **options})


def wrong(release: Release | Path) -> list[str]:
    return [check.name for check in verify(release) if not check.passed]


@pytest.fixture
def budget(tmp_path: Path) -> BudgetFile:
    return BudgetFile.create(tmp_path / "budget.sqlite", "pings", 2, unit=ONE_PERSON)


# --- the measurement ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "wanted"),
    [
        (1, {1: 4096}),
        (2, {2: 4096}),
        (3, {2: 2048, 4: 2048}),
        (7, {4: 1024, 8: 3072}),
        (64, {64: 4096}),
        (65, {64: 4096 - 67, 125: 67}),  # 67.1 parts of 4096
        (499, {125: 11, 500: 4085}),
        (2000, {2000: 4096}),
        (90_000, {2000: 4096}),
    ],
)
def test_a_person_is_split_between_two_marks(number: int, wanted: dict[int, int]) -> None:
    counted = parts_by_mark(RecordsPerPerson.from_records([number], 2000)).tolist()
    found = {mark: parts for mark, parts in zip(marks(2000), counted, strict=True) if parts}
    assert found == wanted
    assert sum(counted) == PARTS


def test_marks_double_and_then_are_four_times_as_far() -> None:
    assert marks(2000) == (1, 2, 4, 8, 16, 32, 64, 125, 500, 2000)
    assert marks(2**20) == tuple(2**power for power in range(7)) + tuple(
        4**power for power in range(4, 11)
    )
    assert [marks(most) for most in (1, 2, 3, 5, 64)] == [
        (1,),
        (1, 2),
        (1, 2, 3),
        (1, 2, 5),
        (1, 2, 4, 8, 16, 32, 64),
    ]
    for most in (*range(1, 300), 999, 2**20 - 1):
        found = marks(most)
        assert (found[0], found[-1]) == (1, most)
        assert all(low < high <= 4 * low for low, high in itertools.pairwise(found))


def test_the_noise_is_added_to_each_class() -> None:
    people = RecordsPerPerson([5, 4, 3, 2, 1])
    found = measure_activity(people, 1, noise=ScriptedNoise([-6, 3, 5]))
    assert found.people == tuple((parts_by_mark(people) + np.array([-6, 3, 5])).tolist())
    assert (found.most, sum(found.counted)) == (5, 15 + 2 / 4096)
    assert (found.epsilon, found.noise, found.private) == (Epsilon.of(1), "scripted", False)
    assert (found.decides, found.per, found.budget_entry) == (False, None, None)
    assert measured(noise=SeededNoise(3)) == measured(noise="seeded:3")
    assert measured().private
    assert measured(per="day").per == "day"


def test_it_pays_the_whole_price_for_each_mark() -> None:
    """Each person moves the marks together by one, so the noise of every mark is that of all of epsilon."""
    rates: list[tuple[Any, int]] = []

    class Watching(ScriptedNoise):
        def draw_at(self, rate: Any, size: int) -> IntArray:
            rates.append((rate, size))
            return super().draw_at(rate, size)

    measured(epsilon="0.3", noise=Watching())
    assert rates == [(Epsilon.of("0.3").fraction / PARTS, len(marks(MOST)))]


def test_it_is_charged_before_it_is_drawn(budget: BudgetFile) -> None:
    class Watching(FastNoise):
        broken, tested = False, False

        def draw_at(self, rate: Any, size: int) -> IntArray:
            assert not self.tested or len(budget.account().pending) == 1 + self.broken
            if self.broken:
                raise KeyboardInterrupt
            return super().draw_at(rate, size)

    noise = Watching()
    check_noise(noise)  # which draws, and hides nothing with it
    noise.tested = True
    found = measured(noise=noise, budget=budget, label="how active")
    (entry,) = budget.account().entries
    told = entry.id, entry.mechanism, entry.label, entry.epsilon, entry.unit
    assert told == (found.budget_entry, "activity", "how active", Epsilon.of("0.1"), ONE_PERSON)
    noise.broken = True
    with pytest.raises(KeyboardInterrupt) as caught:
        measured(noise=noise, budget=budget)
    (note,) = caught.value.__notes__
    assert note.startswith("The charge of 0.1 stands, as entry ")
    assert (
        "It paid for the activity of people, which was measured before the map and is not refunded"
        in note
    )
    assert budget.account().spent == Epsilon.of("0.2")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"noise": "seeded:1"}, "seeded or scripted noise hides nothing"),
        ({"per": "day"}, "this charge is for one person in one day"),
        ({"per": "year"}, "one of day, week, month"),
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": "1e-16"}, "epsilon"),
        ({"epsilon": "4e-15"}, "costs at least 0.000000000004096"),
        ({"epsilon": 3}, "more than"),
        ({"noise": "loud"}, "noise"),
        ({"label": 7}, "label"),
    ],
)
def test_what_is_refused_charges_nothing(
    options: dict[str, Any], says: str, budget: BudgetFile
) -> None:
    with pytest.raises(HtfError, match=says):
        measured(budget=budget, **options)
    assert budget.account().entries == ()


# --- its fields -----------------------------------------------------------------------------------

SOUND = Activity(tuple(range(14)), 2**20, Epsilon.of("0.1"), "fast", True)
SHORT = Activity((9, 8, 7), 4, Epsilon.of("0.1"), "fast", True)


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("people", tuple(range(13)), "each of 14 marks, none beyond 2"),
        ("people", tuple(range(15)), "got 15 numbers"),
        ("people", (0.5, *range(13)), "whole number"),
        ("people", (True, *range(13)), "whole number"),
        ("people", ("1", *range(13)), "whole number"),
        ("people", (2**62 + 1, *range(13)), "none beyond 2"),
        ("people", (-(2**62) - 1, *range(13)), "none beyond 2"),
        ("people", "12345678901234", "list of whole numbers"),
        ("people", None, "list of whole numbers"),
        ("epsilon", "0.1", "the epsilon of the activity"),
        ("epsilon", Epsilon(0), "must be positive"),
        ("noise", None, "the noise of the activity"),
        ("private", "no", "private must be"),
        ("private", 1, "private must be"),
        ("decides", None, "decides must be"),
        ("per", "hour", "one of day, week, month"),
        ("per", 1, "period"),
        ("budget_entry", 7, "the budget entry of the activity"),
    ],
)
def test_activities_that_nobody_makes_are_refused(field: str, value: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        replace(SOUND, **{field: value})
    if field not in ("epsilon", "budget_entry"):
        with pytest.raises(InputError, match=says):
            Activity.from_dict({**SOUND.to_dict(), field: value})


def test_there_and_back() -> None:
    numbers = (-(2**62), 2**62, *range(12))
    for activity in (
        SOUND,
        SHORT,
        replace(SOUND, people=numbers, decides=True, per="week", private=False),
        replace(SOUND, people=list(numbers), budget_entry="an entry"),  # type: ignore[arg-type]
    ):
        again = Activity.from_dict(json.loads(json.dumps(activity.to_dict())))
        assert again == activity
        assert again.budget_entry is None
    for name in SOUND.to_dict():
        with pytest.raises(InputError, match=name):
            Activity.from_dict({k: v for k, v in SOUND.to_dict().items() if k != name})
    with pytest.raises(InputError, match="more"):
        Activity.from_dict({**SOUND.to_dict(), "more": 1})


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"most": None}, "whole number"),
        ({"most": 6}, "each of 4 marks"),
        ({"most": 0}, "between 1 and 1048576"),
        ({"most": 2.5}, "whole number"),
    ],
)
def test_marks_that_nobody_makes_are_refused(change: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        replace(SHORT, **change)


# --- the release ----------------------------------------------------------------------------------


def test_a_release_claims_the_total() -> None:
    release = made(bought=(measured(),))
    assert (release.epsilon, release.record_epsilon) == (Epsilon.of(1), Epsilon.of("0.18"))
    (spend,) = [check for check in verify(release) if check.name == "spend"]
    assert spend.finding.endswith("a person loses at most 1 of 1")
    assert wrong(release) == []


def test_counts_are_multiplied_after_the_noise() -> None:
    """What is measured of the map is what a release without the activity measures, at the same epsilon."""
    plain = made(epsilon="0.9", noise="seeded:1")
    scaled = made(bought=(measured(noise="seeded:2"),), noise="seeded:1")
    for name, column in plain.measurements.columns().items():
        assert np.array_equal(column, scaled.measurements.columns()[name])
    assert scaled.factor > 1
    assert np.allclose(scaled.estimates, plain.estimates * scaled.factor)
    whole = [release.count([0, 0, 1, 1]) for release in (plain, scaled)]
    assert whole[1].count[0] == pytest.approx(whole[0].count[0] * scaled.factor)
    assert whole[1].high[0] - whole[1].count[0] > scaled.factor * (
        whole[0].high[0] - whole[0].count[0]
    )


@pytest.mark.parametrize(
    ("protection", "says"),
    [
        (OF_RECORDS, "needs records of people, but here the unit is one record"),
        (Protection("person", count="people", shares=256), "people are counted"),
        (
            Protection("person", 5, per="day"),
            "measured for one person, but the unit of the release is one person in one day",
        ),
    ],
)
def test_releases_that_it_does_not_fit(protection: Protection, says: str) -> None:
    with pytest.raises(InputError, match=says):
        made(protection, bought=(measured(),))
    with pytest.raises(InputError, match=says):
        measured().check_fits(protection)


def test_periods_are_told_apart() -> None:
    """A person-day is a small part of a person: what is measured for it costs a person much more."""
    by_day = measured(per="day")
    assert made(Protection("person", 5, per="day"), bought=(by_day,)).bought == (by_day,)
    for other in (PERSON, Protection("person", 5, per="week")):
        with pytest.raises(InputError, match=r"for one person in one day, but .*\(per\)"):
            made(other, bought=(by_day,))


def test_activities_that_do_not_belong(budget: BudgetFile, tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"\(the activity of people\) cost 0\.1.* 0\.1 leaves nothing for the map"
    ):
        made(epsilon="0.1", bought=(measured(),))
    with pytest.raises(
        InputError, match=r"the activity of people was measured with noise .* \(seeded:1\)"
    ):
        made(bought=(measured(noise="seeded:1"),))
    assert not made(bought=(measured(noise="seeded:1"),), noise="seeded:1").private
    charged = measured(budget=budget)
    other = BudgetFile.create(tmp_path / "other.sqlite", "pings", 2, unit=ONE_PERSON)
    for activity, file in (
        (measured(), budget),  # charged to nobody
        (charged, other),
        (replace(charged, epsilon=Epsilon.of("0.01")), budget),
        (replace(charged, budget_entry=other.charge("0.1", "ug", unit=ONE_PERSON).id), other),
    ):
        before = file.account()
        with pytest.raises(InputError, match="the activity of people was not charged to 'pings'"):
            made(bought=(activity,), budget=file)
        assert file.account() == before


def test_two_charges_are_entered_and_withdrawn_together(budget: BudgetFile, tmp_path: Path) -> None:
    activity = measured(budget=budget)
    first = made(bought=(activity,), budget=budget)
    assert [(e.mechanism, str(e.epsilon), e.state) for e in budget.account().entries] == [
        ("activity", "0.1", "pending"),
        ("ug", "0.9", "pending"),
    ]
    entry = budget.save(first, tmp_path / "first.parquet")
    assert {e.sha256 for e in budget.account().entries} == {entry.sha256}
    # A second release by the same activity claims it too, and is charged for its map alone.
    second = made(epsilon="0.5", bought=(activity,), budget=budget)
    assert budget.account().spent == Epsilon.of("1.4")
    assert second.epsilon == Epsilon.of("0.5")
    budget.withdraw(entry.id)
    states = [e.state for e in budget.account().entries]
    assert states == ["withdrawn", "withdrawn", "pending"]


def test_what_broke_before_it_was_entered_is_entered_by_hand(
    budget: BudgetFile, tmp_path: Path
) -> None:
    path = tmp_path / "r.parquet"
    activity = measured(budget=budget)
    unrelated = budget.charge("0.2", "activity", unit=ONE_PERSON)
    made(bought=(activity,), budget=budget).save(path)
    of_activity, _, of_map = budget.account().entries
    with pytest.raises(
        InputError, match=r"charged for: that is epsilon 0\.2 for one person by activity"
    ):
        budget.publish(unrelated.id, path)
    for entry in (of_map, of_activity):
        assert budget.publish(entry.id, path).state == "published"
        with pytest.raises(InputError, match="was published already"):
            budget.publish(entry.id, path)
    assert [e.id for e in budget.account().pending] == [unrelated.id]


# --- the statement --------------------------------------------------------------------------------


def test_the_statement_tells_of_it() -> None:
    release = made(bought=(measured(),))
    text = release.statement
    for words in (
        "measured with noise first, for 0.1 of the epsilon of 1.",
        f"counts were multiplied by {release.factor:.4g}",
        "The noise is that of epsilon 0.18 per record",
        "how many records were kept per person; facts",
    ):
        assert words in text
    for words in ("lower than the truth", "follows from it", "{"):
        assert words not in text
    assert release.counted == "records, at most 5 per person, scaled"
    decided = made(bought=(replace(measured(), decides=True),)).statement
    assert "The number of records to keep per person follows from it." in decided
    assert "how many records were kept per person; facts" not in decided
    assert "the range from which the number of records to keep was chosen" in decided
    once = made(Protection("person", 5, "all"), bought=(measured(),)).statement
    assert "different people" not in once  # they are multiplied


# --- the file -------------------------------------------------------------------------------------


def header(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(pq.read_schema(path).metadata[b"htf"])
    return found


def rewrite(path: Path, change: Any) -> None:
    table, found = pq.read_table(path), header(path)
    change(found)
    metadata = {**table.schema.metadata, b"htf": json.dumps(found).encode()}
    pq.write_table(table.replace_schema_metadata(metadata), path)


def test_it_travels_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    activity = replace(measured(), decides=True)
    kept = best_max_records(activity, Epsilon.of("0.9"))
    release = made(Protection("person", kept), bought=(activity,))
    release.save(path)
    again = Release.load(path)
    assert again == release
    assert (again.activity, again.factor) == (release.activity, release.factor)
    assert (again.statement, worth_of(again)) == (release.statement, worth_of(release))
    assert again != replace(release, bought=(measured(),))
    assert again.summary()["activity"]["decides"] is True
    assert wrong(path) == []
    boxes = [[0, 0, 1, 1], [0, 0, 0.3, 0.6]]
    one, other = again.count(boxes), release.count(boxes)
    for name in ("count", "std_error", "low", "high"):
        assert np.array_equal(getattr(one, name), getattr(other, name))


HOSTILE: dict[str, Any] = {
    "factor: another": (lambda h: h.update(factor=h["factor"] * 1.01), "was changed"),
    "factor: gone": (lambda h: h.pop("factor"), "was changed"),
    "factor: NaN": (lambda h: h.update(factor=float("nan")), "damaged"),
    "factor: infinite": (lambda h: h.update(factor=float("inf")), "damaged"),
    "factor: negative": (lambda h: h.update(factor=-2.0), "damaged"),
    "factor: below 1": (lambda h: h.update(factor=0.5), "damaged"),
    "factor: 1e308": (lambda h: h.update(factor=1e308), "damaged"),
    "factor: text": (lambda h: h.update(factor="2"), "damaged"),
    "factor: truth": (lambda h: h.update(factor=True), "damaged"),
    "factor: nothing": (lambda h: h.update(factor=None), "damaged"),
    "factor: list": (lambda h: h.update(factor=[2.0]), "damaged"),
    "activity: gone": (lambda h: h.pop("activity"), "damaged"),  # a factor needs one
    "activity: gone too": (lambda h: (h.pop("activity"), h.pop("factor")), "was changed"),
    "activity: text": (lambda h: h.update(activity="x"), "damaged"),
    "activity: 13 marks": (lambda h: h["activity"]["people"].pop(), "damaged"),
    "activity: another mark": (lambda h: h["activity"]["people"].__setitem__(9, 1), "was changed"),
    "activity: without its last mark": (lambda h: h["activity"].pop("most"), "has no most"),
    "activity: another most": (lambda h: h["activity"].update(most=2**20 - 1), "was changed"),
    "activity: 15 marks": (lambda h: h["activity"]["people"].append(1), "damaged"),
    "activity: a text in it": (lambda h: h["activity"]["people"].__setitem__(0, "1"), "damaged"),
    "activity: half a person": (lambda h: h["activity"]["people"].__setitem__(0, 0.5), "damaged"),
    "activity: 2**62 + 1": (lambda h: h["activity"]["people"].__setitem__(0, 2**62 + 1), "damaged"),
    "activity: a person more": (lambda h: h["activity"]["people"].__setitem__(0, 9), "was changed"),
    "activity: cheaper": (lambda h: h["activity"].update(epsilon="0.01"), "was changed"),
    "activity: free": (lambda h: h["activity"].update(epsilon="0"), "damaged"),
    "activity: all of it": (lambda h: h["activity"].update(epsilon="1"), "damaged"),
    "activity: by day": (lambda h: h["activity"].update(per="day"), "damaged"),
    "activity: by year": (lambda h: h["activity"].update(per="year"), "damaged"),
    "activity: not private": (lambda h: h["activity"].update(private=False), "was changed"),
    "activity: more": (lambda h: h["activity"].update(more=1), "damaged"),
    "protection: of records": (lambda h: h.pop("protection"), "damaged"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_changed_files_are_refused(case: str, tmp_path: Path) -> None:
    change, says = HOSTILE[case]
    path = tmp_path / "r.parquet"
    made(bought=(measured(),)).save(path)
    rewrite(path, change)
    with pytest.raises(ReleaseFileError, match=says):
        Release.load(path)


def test_verify_finds_claims_that_do_not_follow() -> None:
    release = made(bought=(measured(),))
    activity: Any = release.activity
    # With another digest these would load.
    assert "sums" in wrong(replace(release, factor=release.factor * (1 + 1e-6)))
    assert "sums" in wrong(replace(release, factor=1.0))
    scaled = replace(release, factor=2.0, estimates=release.estimates / release.factor * 2)
    assert "sums" in wrong(scaled)
    people = (activity.people[0] + 10_000 * PARTS, *activity.people[1:3], 0, *activity.people[4:])
    assert "sums" in wrong(replace(release, bought=(replace(activity, people=people),)))
    assert "spend" in wrong(
        replace(release, bought=(replace(activity, epsilon=Epsilon.of("0.2")),))
    )
    for change in ({"private": False}, {"noise": "seeded:1"}, {"private": False, "noise": "x"}):
        assert wrong(replace(release, bought=(replace(activity, **change),))) == ["noise"]
    with pytest.raises(InputError, match="the factor of a release is at least 1, and 1 without"):
        replace(release, bought=())


# --- what is made of it ---------------------------------------------------------------------------


def exact(name: str) -> Activity:
    """Without noise."""
    people = parts_by_mark(RecordsPerPerson.from_records(GROUPS[name], MOST))
    return Activity(tuple(people.tolist()), MOST, Epsilon.of(1), "fast", True)


@pytest.mark.parametrize("name", [*SMOOTH, "single"])
@pytest.mark.parametrize("most", [1, 10, 100])
def test_totals_come_back(name: str, most: int) -> None:
    profiles, records = read_profiles(exact(name)), GROUPS[name]
    beyond, error, above = profiles.records_beyond(most, profiles.records_up_to(most))
    assert above >= error
    assert beyond + profiles.records_up_to(most) == pytest.approx(records.sum(), rel=0.06)
    assert abs(beyond - np.maximum(records - most, 0).sum()) <= 2 * error + 0.04 * records.sum()
    assert profiles.weights.sum() == pytest.approx(1)


@pytest.mark.parametrize("name", SMOOTH)
def test_the_number_to_keep_is_stable(name: str) -> None:
    people = of_group(name)
    left = Epsilon.of("0.9")
    found = [
        best_max_records(measure_activity(people, "0.1", noise=f"seeded:{seed}"), left)
        for seed in range(10)
    ]
    assert max(found) <= 1.5 * min(found)
    assert 2 < np.median(found) < np.quantile(GROUPS[name], 0.999)


def test_the_number_to_keep_follows_what_is_left_and_the_range() -> None:
    activity = exact("lognormal")
    found = [best_max_records(activity, Epsilon.of(left)) for left in ("0.001", "0.1", "10")]
    assert found == sorted(found)
    assert found[0] < found[-1]
    for most in (1, 2, 3, MOST):
        assert 1 <= best_max_records(activity, Epsilon.of(1000), most) <= most
    for most in (0, -1, MOST + 1):
        with pytest.raises(InputError, match="between 1 and 1048576"):
            best_max_records(activity, Epsilon.of(1), most)
    assert best_max_records(exact("single"), Epsilon.of(1)) == 1


ODD: dict[str, list[int]] = {
    "nobody": [0] * 14,
    "fewer than nobody": [-5] * 14,
    "huge": [2**62] * 14,
    "hugely negative": [-(2**62)] * 14,
    "both": [2**62, -(2**62)] * 7,
    "one person": [1, *[0] * 13],
    "one person with most records": [*[0] * 13, 1],
    "all in the last class": [*[0] * 13, 2**62],
    "all in the first class": [2**62, *[0] * 13],
    "noise": DRAWS.laplace(0, 10, 14).round().astype(int).tolist(),
    "much noise": DRAWS.laplace(0, 1e15, 14).round().astype(int).tolist(),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("people", ODD.values(), ids=ODD)
@pytest.mark.parametrize(
    "price", telling([str(LEAST_PRICE), "0.1", "1000"], lambda price: price == "0.1")
)
def test_no_numbers_break_it(people: list[int], price: str) -> None:
    activity = replace(SOUND, people=tuple(people), epsilon=Epsilon.of(price))
    profiles = read_profiles(activity)
    assert np.all(np.isfinite(profiles.people) & (profiles.people >= 0))
    assert 1 <= best_max_records(activity, Epsilon.of("0.9")) <= MOST
    for most in (1, 7, MOST):
        protection = Protection("person", most)
        for sizes in ([3.0, -10.0, 50.0], [-9.0, 1.0], [0.0], [1e17, -1e17]):
            estimates = np.array(sizes)
            factor = scale_to_all(estimates, np.ones(len(sizes)), protection, activity)
            assert 1 <= factor < np.inf
            assert np.all(np.abs(estimates * factor) <= LARGEST)
            worth = Worth.of(protection, activity, factor, float(estimates.sum()) * factor)
            assert 0 <= worth.of_total < np.inf
            assert 0 <= worth.of_place <= 2
            assert 0 <= worth.above < np.inf


def test_noise_alone_is_not_taken_for_records() -> None:
    """With 20 people who have a record each, noise of 10 at a mark of many records must not count as such."""
    people, factors = RecordsPerPerson.from_records([1] * 20, MOST), []
    for seed in range(20):
        activity = measure_activity(people, "0.1", noise=f"seeded:{seed}")
        factors.append(scale_to_all(np.array([20.0]), np.ones(1), Protection("person", 1), activity))  # fmt: skip
    assert max(factors) < 3


@pytest.mark.parametrize("total", [-40.0, 0.0, 1.0])
def test_a_total_that_noise_hides_is_not_divided_by(total: float) -> None:
    activity = exact("Pareto")
    profiles = read_profiles(activity)
    factor = scale_to_all(np.array([total]), np.ones(1), PERSON, activity)
    kept = profiles.records_up_to(5)
    bound = 1 + 2 * profiles.records_beyond(5, kept / 2)[0] / kept
    assert 1 < factor <= bound < 5


def test_the_factor_brings_kept_records_to_all() -> None:
    for name in SMOOTH:
        kept = np.minimum(GROUPS[name], 5).sum()
        factor = scale_to_all(np.array([kept]), np.ones(1), PERSON, exact(name))
        assert factor * kept == pytest.approx(GROUPS[name].sum(), rel=0.06)
    assert scale_to_all(np.array([1.0]), np.ones(1), PERSON, None) == 1.0


def test_huge_noise_does_not_break_a_release() -> None:
    """A release that was paid for must not fail because its numbers are too large."""
    for seed in range(10):
        activity = measured("one heavy", epsilon="2e-9", noise=f"seeded:{seed}")
        release = made(Protection("person", 3), epsilon="1e-8", mechanism="uniform", bought=(activity,), noise="seeded:1")  # fmt: skip
        assert wrong(release) == []


# --- what counts are worth ------------------------------------------------------------------------


def answers() -> list[np.ndarray[Any, Any]]:
    count = np.array([-5.0, 0.0, 3.0, 40.0, 1000.0])
    return [count, np.full(5, 2.0), count - 4, count + 5]


def test_worth_keeps_the_count_and_widens() -> None:
    plain = Worth(2.0).of_answers(*answers())
    assert np.array_equal(plain, 2 * np.array(answers()))
    for of_total, of_place in ((0.1, 0.0), (0.0, 0.1), (0.3, 0.2)):
        found = Worth(2.0, of_total, of_place, 3000.0, above=of_total).of_answers(*answers())
        assert np.array_equal(found[0], plain[0])
        assert np.all(found[1] >= plain[1])
        assert np.all(found[2] <= plain[2] + 1e-9)
        assert np.all(found[3] >= plain[3] - 1e-9)
        assert found[3][-1] > plain[3][-1]
        assert np.all(found[2] <= found[0])
        assert np.all(found[0] <= found[3])


def test_the_whole_map_has_no_local_error() -> None:
    count = np.array([1000.0])
    exactly = count, np.zeros(1), count, count
    _, error, low, high = Worth(1.5, 0.0, 0.2, 1500.0).of_answers(*exactly)
    assert (error[0], low[0], high[0]) == (0, 1500, 1500)
    _, error, low, high = Worth(1.5, 0.1, 0.2, 1500.0, above=0.1).of_answers(*exactly)
    assert error == pytest.approx(150)
    assert low < 1500 < high
    small = Worth(1.0, 0.0, 0.2, 1e9).of_answers(*exactly)
    assert small[1] == pytest.approx(200)


def test_worth_of_protections() -> None:
    shared = Worth.of(Protection("person", count="people", shares=256), None, 1.0, 7.0)
    assert shared == Worth(1 / 256)
    estimates, scales = np.array([256.0, -512.0]), np.array([256.0, 2560.0])
    back = shared.as_counted(*shared.of_estimates(estimates, scales))
    assert np.allclose(back, [estimates, scales])
    # Nobody may have more than K, but how sure that is counts too.
    worth = Worth.of(Protection("person", MOST), exact("one heavy"), 1.0, 5000.0)
    assert worth.of_total == 0
    rare = replace(SOUND, people=(5000, *[0] * 13), epsilon=Epsilon.of("0.001"))
    beyond, error, above = read_profiles(rare).records_beyond(16, 5000.0)
    factor = scale_to_all(np.array([5000.0]), np.ones(1), Protection("person", 16), rare)
    worth = Worth.of(Protection("person", 16), rare, factor, 5000.0 * factor)
    assert worth.of_total == pytest.approx(error / (5000 + beyond), rel=1e-3)
    assert worth.above == pytest.approx(above / (5000 + beyond), rel=1e-3)
    for name in SMOOTH:
        activity, most = exact(name), Protection("person", 5)
        kept = float(np.minimum(GROUPS[name], 5).sum())
        factor = scale_to_all(np.array([kept]), np.ones(1), most, activity)
        worth = Worth.of(most, activity, factor, kept * factor)
        _, error, _ = read_profiles(activity).records_beyond(5, kept)
        assert worth.of_total == pytest.approx(error / (kept * factor))
        assert 0 < worth.of_place < 0.4


def test_displaced_records_lie_between_none_and_all() -> None:
    for name in GROUPS:
        profiles = read_profiles(exact(name))
        kept = [1, 5, 50, 500, MOST]
        displaced = profiles.displaced(kept)
        assert np.all((displaced >= 0) & (displaced <= 2))
        assert displaced[-1] == pytest.approx(0, abs=1e-9)
        numbers = profiles.grid.numbers
        assert numbers[0] == 1
        assert np.all(np.diff(numbers) > 0)


def test_a_total_may_be_further_above() -> None:
    even = Worth(2.0, 0.1, 0.05, 3000.0, above=0.1).of_answers(*answers())
    found = Worth(2.0, 0.1, 0.05, 3000.0, above=0.3).of_answers(*answers())
    for number in (0, 2):
        assert np.array_equal(found[number], even[number])
    only = Worth(2.0, 0.0, 0.0, 3000.0, above=0.3).of_answers(*answers())
    assert only[3][-1] > 2 * answers()[3][-1]  # nothing below, and yet above
    assert np.all(found[1] >= even[1])  # one standard error for both sides: the larger
    assert np.all(found[3] >= even[3])
    assert found[3][-1] - found[0][-1] > 2 * (even[3][-1] - even[0][-1])


def test_places_differ_more_where_people_are_few() -> None:
    """By 4000 / people, and never by more than all that is displaced."""
    shape = np.array([40, 20, 20, 10, 6, 3, 1, *[0] * 7])
    found = []
    for people in (50, 2000, 4000, 8000):
        numbers = tuple((shape * people // 100 * PARTS).tolist())
        activity = replace(SOUND, people=numbers, epsilon=Epsilon.of(1000))
        displaced = float(read_profiles(activity).displaced(2)[0])
        of_place = Worth.of(Protection("person", 2), activity, 2.0, 1e4).of_place
        found.append(of_place / displaced)
    assert found == pytest.approx([1.0, 0.4, 0.2, 0.2], rel=0.05)


# --- the interval of the total --------------------------------------------------------------------

LAWS: dict[str, Any] = {
    "lognormal": lambda chance: np.rint(chance.lognormal(2, 1.2, 10_000)),
    "few people": lambda chance: np.rint(chance.lognormal(1.6, 1.5, 300)),
    "capped": lambda chance: np.minimum(np.rint(chance.lognormal(1.6, 1.3, 25_000)), 120),
    "Pareto 1.1": lambda chance: chance.pareto(1.1, 12_000) + 1,
    "Pareto 1.3": lambda chance: chance.pareto(1.3, 12_000) + 1,
    "Pareto 3": lambda chance: 10 * chance.pareto(3, 12_000) + 10,
    "two kinds": lambda chance: np.where(chance.random(10_000) < 0.9, 3, chance.poisson(200, 10_000)),
    "20 machines": lambda chance: np.r_[np.rint(chance.lognormal(1.3, 1, 12_000)), chance.integers(300, 900, 20)],
    "5 machines": lambda chance: np.r_[np.rint(chance.lognormal(1.3, 1, 12_000)), chance.integers(2000, 7000, 5)],
    "taxis": lambda chance: np.r_[np.clip(np.rint(chance.lognormal(2, 1, 7900)), 1, 255), chance.integers(256, 800, 21)],
    "alike": lambda _: np.full(5000, 37),
    "single": lambda _: np.ones(5000),
}  # fmt: skip
DRAWN, HELD = 40, 32


@pytest.mark.parametrize("law", LAWS)
def test_intervals_of_totals_hold_for_any_law(law: str) -> None:
    """At least 32 of 40 draws. If 95 of 100 hold, fewer do less than once in 4,000 seeds; seeds are fixed."""
    inside, most = 0, 2**13
    for seed in range(DRAWN):
        records = np.clip(LAWS[law](np.random.default_rng(seed)), 1, most).astype(np.int64)
        people = RecordsPerPerson.from_records(records, most)
        activity = measure_activity(people, "0.1", noise=f"seeded:{seed}")
        low, high = records_beyond_bounds(activity, 16, float(np.minimum(records, 16).sum()))
        inside += low <= np.maximum(records - 16, 0).sum() <= high
    assert inside >= HELD


@pytest.mark.parametrize("kept", [1, 3, 16, 37, 200, 999])
def test_sums_bound_the_records_beyond(kept: int) -> None:
    """For every single person, and so for all together: never above, and never below."""
    at, numbers = marks(1000), range(1, 1001)
    each = [parts_by_mark(RecordsPerPerson.from_records([number], 1000)) for number in numbers]
    exact = np.array(each) / PARTS
    beyond, records = np.maximum(np.array(numbers) - kept, 0)[:, None], np.array(numbers)[:, None]
    (lower, low_of_all), (upper, high_of_all) = lower_sums(at, kept), upper_sums(at, kept)
    assert np.all(exact @ lower.T <= np.where(low_of_all, records, beyond) + 1e-9)
    assert np.all(exact @ upper.T >= np.where(high_of_all, records, beyond) - 1e-9)
    assert np.all(exact @ upper[1] <= records[:, 0] + 1)


def test_the_interval_narrows_to_the_truth_without_noise() -> None:
    for records in GROUPS.values():
        most = int(
            records.max()
        )  # where a thousandth of a person is this many records, divided by 1000
        people = RecordsPerPerson.from_records(records, most)
        activity = measure_activity(people, 1000, noise="seeded:1")
        for kept in (1, 4, 64):
            truth = np.maximum(records - kept, 0).sum()
            within = float(np.minimum(records, kept).sum())
            assert records_beyond_bounds(activity, kept, within) == pytest.approx(
                (truth, truth), rel=0.02, abs=2 + 8 * most / 1000
            )
    assert records_beyond_bounds(activity, most, 1.0) == (0, 0)


def test_an_estimate_lies_in_its_interval_and_follows_the_marks() -> None:
    """20,000 people with at most 120 records each, at a price that shows them."""
    records = np.minimum(GROUPS["lognormal"], 120)
    kept, wrong = float(np.minimum(records, 64).sum()), []
    for seed in range(10):
        people = RecordsPerPerson.from_records(records, 2000)
        activity = measure_activity(people, 1, noise=f"seeded:{seed}")
        profiles = read_profiles(activity)
        beyond, below, above = profiles.records_beyond(64, kept)
        low, high = records_beyond_bounds(activity, 64, kept)
        assert (beyond - 1.96 * below, beyond + 1.96 * above) == pytest.approx(
            (low, high), rel=1e-3
        )
        wrong.append(beyond / np.maximum(records - 64, 0).sum() - 1)
    assert abs(np.median(wrong)) < 0.1


@pytest.mark.parametrize("law", ["two kinds", "thirds", "everyone 129"])
def test_a_total_follows_marks_that_stand_alone(law: str) -> None:
    """No curve leads to them. The price shows them, by more than four scales of noise."""
    laws = {"thirds": lambda c: c.choice([3, 45, 700], 10_000, p=[0.8, 0.17, 0.03]), "everyone 129": lambda _: np.full(10_000, 129)}  # fmt: skip
    wrong = []
    for seed in range(20):
        records = (LAWS | laws)[law](np.random.default_rng(seed))
        records = np.maximum(records, 1).astype(np.int64)
        people = RecordsPerPerson.from_records(records, 2000)
        activity = measure_activity(people, "0.4", noise=f"seeded:{seed}")
        kept = float(np.minimum(records, 40).sum())
        beyond, _, _ = read_profiles(activity).records_beyond(40, kept)
        wrong.append((kept + beyond) / records.sum() - 1)
    assert abs(np.median(wrong)) < 0.01


def test_people_above_the_most_count_as_having_it() -> None:
    most, above = 50, RecordsPerPerson.from_records([10, 400, 90_000], 50)
    assert np.array_equal(parts_by_mark(above), parts_by_mark(RecordsPerPerson.from_records([10, 50, 50], most)))  # fmt: skip
    release = made(bought=(measure_activity(above, "0.1", noise="fast"),))
    assert "Someone with more than 50 records counts as having 50." in release.statement


def test_no_more_records_are_kept_than_the_activity_knows_of() -> None:
    """It could not scale them, and would say that nobody counts as having so many."""
    people = RecordsPerPerson.from_records(np.full(3000, 40), 10)
    activity = measure_activity(people, "0.1", noise="seeded:1")
    assert best_max_records(activity, Epsilon.of("0.9")) <= 10
    activity.check_fits(Protection("person", max_records=10))
    with pytest.raises(InputError, match=r"choose a larger --most-records, or keep fewer"):
        activity.check_fits(Protection("person", max_records=11))


def test_verify_finds_a_number_to_keep_that_does_not_follow() -> None:
    """It is said to follow from the activity. Half of it may be kept, where a mechanism refused more."""
    activity = replace(measured(noise="seeded:1"), decides=True)
    best = best_max_records(activity, Epsilon.of("0.9"))
    assert best > 4
    for kept, is_right in ((best, True), (best // 2, True), (best - 1, False)):
        release = made(Protection("person", kept), bought=(activity,), noise="seeded:2")
        assert ("activity" not in wrong(release)) == is_right
