"""Sums of a weight: what is refused, what is said, what is charged, the file, and what is compared."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from htf import (
    BudgetFile,
    Curator,
    Domain,
    Epsilon,
    FrequencyMatrix,
    HtfError,
    InputError,
    Layer,
    Protection,
    Recipe,
    Release,
    make_mechanism,
    measure_activity,
    measure_clipped,
    publish,
    read_points,
    verify,
)
from htf.curator.contributions import RecordsPerPerson
from htf.curator.frequency import WeighedRecords
from htf.curator.noise import ScriptedNoise
from htf.errors import ReleaseFileError
from htf.ingest.points import read_records_of_each
from htf.ingest.reading import Reading
from htf.privacy.activity import Activity
from htf.privacy.clipping import Clipped
from htf.query.answer import Answer
from htf.query.columns import COLUMNS

DOMAIN = Domain.from_bounds(0, 0, 1, 1, 4)
WEIGHED = Protection(weight="passengers", max_weight=6)
OF_PEOPLE = Protection("person", 3, weight="passengers", max_weight=6)


def matrix(
    protection: Protection = WEIGHED, exact: WeighedRecords | None = None
) -> FrequencyMatrix:
    cells = np.indices((4, 4), dtype=np.int32).reshape(2, -1)
    weighed = WeighedRecords(980, 20) if exact is None else exact
    return FrequencyMatrix(DOMAIN, cells, np.full(16, 170), protection, weighed=weighed)


def released(protection: Protection = WEIGHED, price: str | None = "0.05") -> Release:
    counts = matrix(protection)
    bought = () if price is None else (measure_clipped(counts, price, noise="seeded:1"),)
    return publish(counts, 1, noise="seeded:2", bought=bought)


# --- what is protected ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("protection", "quantity", "told", "spoken", "most"),
    [
        (WEIGHED, "sum of passengers", "sum of passengers, at most 6 per record", "one record, passengers up to 6", 6),
        (
            OF_PEOPLE, "sum of passengers", "sum of passengers, at most 6 per record and 3 records per person",
            "one person, at most 3 records each, passengers up to 6 per record", 18,
        ),
        (
            Protection("person", 1, per="day", weight="fare", max_weight=1000), "sum of fare",
            "sum of fare, at most 1,000 per record and 1 record per person and day",
            "one person in one day, at most 1 record each, fare up to 1000 per record", 1000,
        ),
    ],
)  # fmt: skip
def test_protections_are_told(
    protection: Protection, quantity: str, told: str, spoken: str, most: int
) -> None:
    assert (protection.quantity, protection.told, protection.spoken) == (quantity, told, spoken)
    assert protection.most_shares == most
    assert Protection.from_dict(protection.to_dict()) == protection
    assert Protection.from_dict(json.loads(json.dumps(protection.to_dict()))) == protection


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"max_weight": 6}, "needs the column of weights"),
        ({"weight": "p", "max_weight": 0}, "largest weight of a record must be a whole number between 1 and 1048576"),
        ({"weight": "p", "max_weight": 2**21}, "between 1 and 1048576"),
        ({"weight": "p", "max_weight": 2.5}, "whole number"),
        ({"weight": ""}, "1 to 100 printable characters"),
        ({"weight": " p"}, "no blanks around it"),
        ({"weight": "a\x1b[2J"}, "printable"),
        ({"weight": "w" * 101}, "1 to 100"),
        ({"unit": "person", "count": "people", "shares": 256, "weight": "p", "max_weight": 4097}, "256 shares of a person"),
        ({"unit": "person", "once_per": "day", "weight": "p", "max_weight": 2}, "their weights may differ"),
        ({"unit": "person", "max_records": 2**11, "weight": "p", "max_weight": 2**10}, "more than 1048576 together"),
    ],
)  # fmt: skip
def test_protections_that_cannot_be(given: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        Protection(**given)


RIDES = {
    "lon": [0.5, 0.5, 0.6, 0.1],
    "lat": [0.5, 0.5, 0.6, 0.1],
    "passengers": [1.5, 9.0, float("nan"), -2.0],
    "taxi": [1, 1, 2, 3],
}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"weight": "passengers"}, "give --weight COLUMN:W"),
        ({"max_weight": 6}, "give --weight COLUMN:W"),
        ({"weight": "seats", "max_weight": 6}, "no column 'seats'"),
        ({"weight": "passengers", "max_weight": 6, "user": "taxi"}, "--max-records K"),
        ({"weight": "passengers", "max_weight": 4097, "user": "taxi", "count": "people"}, "lower the largest weight"),
        ({"weight": "passengers", "max_weight": 6, "user": "taxi", "max_records": 2, "once_per": "all"}, "may differ"),
        ({"weight": "passengers", "max_weight": "many"}, "whole number"),
    ],
)  # fmt: skip
def test_readings_that_cannot_be(options: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        read_points(RIDES, DOMAIN, **options)


def test_weights_of_split_people_are_means_of_each() -> None:
    """A taxi with a ride of 1 and one of 6 counts as 3.5; those without a weight count nothing."""
    options = {"weight": "passengers", "max_weight": 6, "user": "taxi", "count": "people"}
    found = read_points(RIDES, DOMAIN, **options)  # type: ignore[arg-type]
    assert int(found.exact_counts.sum()) == 256 * 7 // 2
    assert found.exact_weighed is not None
    assert found.exact_weighed.exact == (128, 128)
    unit = found.protection
    assert (unit.most_records, unit.most_shares) == (256, 256 * 6)
    assert (unit.quantity, unit.piece, unit.pieces) == (
        "sum of passengers of split people", "share of a unit of passengers", "shares of a unit of passengers",
    )  # fmt: skip
    release = publish(
        found, 1, noise="seeded:1", bought=(measure_clipped(found, "0.1", noise="seeded:2"),)
    )
    assert release.record_epsilon == Epsilon.of("0.9") // (256 * 6)
    assert release.count().count[0] == pytest.approx(3.5, abs=60)
    for said in (
        "sum of passengers of split people",
        "each person counts with the mean weight",
        "shares of people",
    ):
        assert said in release.statement


def test_what_is_left_out_is_told_to_the_curator() -> None:
    notes: list[str] = []
    read = read_points(RIDES, DOMAIN, weight="passengers", max_weight=6, tell=notes.append)
    assert int(read.exact_counts.sum()) == 1 + 6
    assert read.exact_weighed is not None
    assert read.exact_weighed.exact == (1, 1)
    (note,) = (note for note in notes if "eyes" in note)
    assert "1 of 4 rows is left out: the column 'passengers' is negative there" in note
    assert "1 of 4 rows is left out: the column 'passengers' holds no number there" in note


def test_nothing_that_has_a_weight_is_an_error() -> None:
    nothing = {**RIDES, "passengers": [None, -1.0, float("inf"), float("nan")]}
    with pytest.raises(HtfError, match="none there has a weight in 'passengers'"):
        read_points(nothing, DOMAIN, weight="passengers", max_weight=6)


def test_weights_of_zero_are_weights() -> None:
    zeros = {**RIDES, "passengers": [0, 0, 0, 0]}
    read = read_points(zeros, DOMAIN, weight="passengers", max_weight=6)
    assert len(read.exact_counts) == 0
    assert read.exact_weighed is not None
    assert read.exact_weighed.exact == (4, 0)


def test_records_without_a_weight_are_not_records_of_a_person() -> None:
    """Of weights, the activity is about what they come to, each at most the limit."""
    reading = Reading(user="taxi", max_records=2, weight="passengers", max_weight=6)
    assert read_records_of_each(RIDES, DOMAIN, reading, 9).tolist() == [0] * 6 + [1, 0, 0]
    assert read_records_of_each(RIDES, DOMAIN, reading, 5).tolist() == [0] * 4 + [1]


# --- cut records -------------------------------------------------------------------------------------


def test_noise_is_added_to_both_numbers() -> None:
    clipped = measure_clipped(matrix(), 1, noise=ScriptedNoise([3, -5]))
    assert (clipped.within, clipped.above) == (983, 15)
    assert not clipped.private


def test_a_person_with_k_records_is_covered(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[list[int], int]] = []

    def draw(_: ScriptedNoise, units: Any, sensitivity: int) -> Any:
        asked.append((units.tolist(), sensitivity))
        return np.zeros(len(units), dtype=np.int64)

    monkeypatch.setattr(ScriptedNoise, "draw", draw)
    measure_clipped(matrix(OF_PEOPLE), "0.3", noise=ScriptedNoise([0]))
    assert asked[-1] == ([3 * 10**14] * 2, 3)


def test_noise_that_might_not_fit_64_bits_is_refused_before_the_charge(tmp_path: Path) -> None:
    """Beyond them the noise is cut off or wraps around, and what is refused then is paid for already."""
    many = Protection("person", 2**20, weight="passengers", max_weight=1)
    budget = BudgetFile.create(tmp_path / "budget.sqlite", "people", 2, unit=many.name)
    with pytest.raises(InputError, match=r"costs at least 0\.000000001048576"):
        measure_clipped(matrix(many), "0.000000001048575", noise="fast", budget=budget)
    assert not budget.account().entries
    enough = measure_clipped(matrix(many), "0.000000001048576", noise="fast", budget=budget)
    assert abs(enough.above) < 2**57
    split = Protection("person", count="people", shares=256, weight="passengers", max_weight=6)
    with pytest.raises(InputError, match=r"costs at least 0\.000000000000256"):
        measure_clipped(matrix(split), "0.000000000000255", noise="seeded:1")
    recipe = Recipe(
        bounds=(0, 0, 1, 1), cells=4, epsilon=1, spend=["clipped=1e-10"],
        user="taxi", max_records=2**20, weight="passengers", max_weight=1,
    )  # fmt: skip
    with pytest.raises(InputError, match="the number of cut records costs at least"):
        recipe.quote()


def test_a_curator_takes_the_name_of_noise_with_what_was_bought() -> None:
    clipped = measure_clipped(matrix(), "0.05", noise="seeded:1")
    made = Curator(matrix(), Epsilon.of(1), "seeded:2", bought=[clipped]).run(make_mechanism("htf"))  # type: ignore[arg-type]
    assert not made.private
    with pytest.raises(InputError, match="needs secret noise there too"):
        Curator(matrix(), Epsilon.of(1), "fast", bought=[clipped])  # type: ignore[arg-type]


def test_it_is_charged_for_its_unit(tmp_path: Path) -> None:
    for protection in (WEIGHED, OF_PEOPLE):
        budget = BudgetFile.create(
            tmp_path / "budget.sqlite", protection.unit, 2, unit=protection.name
        )
        counts = matrix(protection)
        clipped = measure_clipped(counts, "0.05", noise="fast", budget=budget)
        made = publish(counts, 1, noise="fast", budget=budget, bought=(clipped,))
        budget.save(made, tmp_path / f"{protection.unit}.parquet")
        entries = [(e.mechanism, str(e.epsilon), e.state) for e in budget.account().entries]
        assert entries == [("clipped", "0.05", "published"), ("htf", "0.95", "published")]
        with pytest.raises(InputError, match="was not charged to"):
            publish(
                counts, 1, noise="fast", budget=budget, bought=(replace(clipped, budget_entry="x"),)
            )


def test_cut_records_that_do_not_belong(tmp_path: Path) -> None:
    clipped = measure_clipped(matrix(), "0.05", noise="seeded:1")
    for other in (
        replace(WEIGHED, weight="fare"),
        replace(WEIGHED, max_weight=7),
        OF_PEOPLE,
        Protection(),
    ):
        exact = None if other.weight is None else WeighedRecords(1, 1)
        cells = np.zeros((2, 1), dtype=np.int32)
        counts = FrequencyMatrix(DOMAIN, cells, np.ones(1, np.int64), other, weighed=exact)
        with pytest.raises(InputError, match="cut records were measured for one record"):
            publish(counts, 1, noise="seeded:1", bought=(clipped,))
    publish(matrix(replace(WEIGHED, of_query=True)), 1, noise="seeded:1", bought=(clipped,))
    with pytest.raises(InputError, match="needs secret noise there too"):
        publish(matrix(), 1, noise="fast", bought=(clipped,))
    with pytest.raises(InputError, match=r"\(the number of cut records\) cost 0\.05"):
        publish(matrix(), "0.05", noise="seeded:1", bought=(clipped,))
    plain = FrequencyMatrix.from_dense(DOMAIN, np.ones((4, 4), dtype=np.int64))
    with pytest.raises(InputError, match="does not know which records were cut"):
        measure_clipped(plain, 1)
    with pytest.raises(InputError, match="records without weights cannot be cut"):
        FrequencyMatrix(DOMAIN, np.zeros((2, 1), np.int32), np.ones(1, np.int64), weighed=WeighedRecords(1, 1))  # fmt: skip
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("weight", "most"), [(None, 1), ("passengers", 5), ("fares", OF_PEOPLE.max_weight)]
)
def test_an_activity_of_other_weights_does_not_fit(weight: str | None, most: int) -> None:
    people = RecordsPerPerson([5, 4, 3], None, weight, most)
    activity = measure_activity(people, "0.1", noise="seeded:1")
    with pytest.raises(InputError, match="measure it with the same weight and limit"):
        publish(matrix(OF_PEOPLE), 1, noise="seeded:1", bought=(activity,))


def test_an_activity_of_weights_is_written_with_them() -> None:
    people = RecordsPerPerson([5, 4, 3], None, "passengers", 6)
    activity = measure_activity(people, "0.1", noise="seeded:1")
    told = activity.to_dict()
    assert (told["weight"], told["max_weight"]) == ("passengers", 6)
    assert Activity.from_dict(told) == activity
    plain = measure_activity(RecordsPerPerson([5, 4, 3]), "0.1", noise="seeded:1")
    assert plain.people == activity.people, "the noise is that of any activity"
    assert "weight" not in plain.to_dict()
    assert Activity.from_dict(plain.to_dict()) == plain
    with pytest.raises(InputError, match="needs the column of weights"):
        RecordsPerPerson([5, 4, 3], None, None, 6)


def test_a_share_that_noise_hides_is_not_told() -> None:
    few = Clipped(3, 1, WEIGHED, Epsilon.of("0.05"), "none", False)
    assert few.share is None
    made = publish(matrix(exact=WeighedRecords(0, 0)), 1, noise="seeded:1", bought=(few,))
    assert "the noise is too large to tell" in made.statement
    assert Clipped(10**6, 0, WEIGHED, Epsilon.of(1), "none", False).share == pytest.approx(
        (0, 0, 4e-6), abs=1e-6
    )


# --- the release -------------------------------------------------------------------------------------


def test_a_release_claims_the_total() -> None:
    made = released()
    assert made.epsilon == Epsilon.of(1)
    assert made.record_epsilon == Epsilon.of("0.95") // 6
    assert released(OF_PEOPLE).record_epsilon == Epsilon.of("0.95") // 18
    assert made.bought == (made.clipped,)
    checks = verify(made)
    assert all(check.passed for check in checks)
    assert "clipped" in [check.name for check in checks]


def test_the_statement_says_what_was_cut() -> None:
    said, unknown, people = (
        released().statement,
        released(price=None).statement,
        released(OF_PEOPLE).statement,
    )
    for text in (said, unknown, people):
        assert "A count is a sum of passengers." in text
        assert "at most 6 times" in text
        assert "is not known: sums may be lower than the truth" in text
        assert "which column was added up and its limit of 6 per record" in text
    assert "for 0.05 of the epsilon of 1: about 2" in said
    assert "A weight above 6 counts as 6. How much was cut off by that is not known" in unknown
    assert "per unit of passengers, so that a record of any weight loses at most epsilon" in said
    assert "At most 3 records per person were kept" in people
    assert "per unit of passengers, so that all records of a person together" in people


def test_numbers_say_what_they_count() -> None:
    made = released()
    told = "sum of passengers, at most 6 per record"
    answers = made.count([[0, 0, 0.5, 0.5]])
    assert (made.quantity, made.counted) == ("sum of passengers", told)
    assert (answers.quantity, answers.counted) == (made.quantity, told)
    assert answers.to_labelled_columns()["counted"].tolist() == [told]
    assert made.summary()["counted"] == told
    assert COLUMNS["count"].describe(made.quantity) == "Best guess of the sum of passengers."
    assert "number of records" in COLUMNS["count"].describe("records")


def test_it_travels_in_the_file(tmp_path: Path) -> None:
    for number, made in enumerate((released(), released(OF_PEOPLE), released(price=None))):
        path = tmp_path / f"{number}.parquet"
        made.save(path)
        back = Release.load(path)
        assert back == made
        assert back.clipped == made.clipped
        assert all(check.passed for check in verify(path))


CHANGES: dict[str, tuple[dict[str, Any], str]] = {
    "another limit": ({"protection": {**WEIGHED.to_dict(), "max_weight": 5}}, "cut records were measured"),
    "no weight": ({"protection": Protection().to_dict()}, "cut records were measured"),
    "fewer cut": ({"clipped": {**measure_clipped(matrix(), "0.05", noise="seeded:1").to_dict(), "above": 0}}, "changed"),
    "a number beyond": ({"clipped": {"above": 2**63}}, "beyond 64 bits"),
    "half a record": ({"clipped": {**measure_clipped(matrix(), "0.05", noise="seeded:1").to_dict(), "above": 0.5}}, "whole number"),
    "one number": ({"clipped": {"above": 1}}, "cut records must have .*, but has no within"),
}  # fmt: skip


@pytest.mark.parametrize("case", CHANGES)
def test_changed_files_are_refused(case: str, tmp_path: Path) -> None:
    changes, says = CHANGES[case]
    path = tmp_path / "release.parquet"
    released().save(path)
    table = pq.read_table(path)
    header = json.loads(table.schema.metadata[b"htf"])
    metadata = {**table.schema.metadata, b"htf": json.dumps({**header, **changes}).encode()}
    pq.write_table(table.replace_schema_metadata(metadata), path)
    with pytest.raises(ReleaseFileError, match=says):
        Release.load(path)


def test_unlike_quantities_are_not_subtracted() -> None:
    plain = publish(FrequencyMatrix.from_dense(DOMAIN, np.full((4, 4), 99)), 1, noise="seeded:1")
    fares = released(replace(WEIGHED, weight="fare"))
    for first, second in ((released(), plain), (released(), fares)):
        with pytest.raises(InputError, match="their difference means nothing"):
            Layer.of(first).minus(Layer.of(second))
    Layer.of(released()).minus(Layer.of(released(price=None)))


# --- means -------------------------------------------------------------------------------------------

PLAIN = FrequencyMatrix.from_dense(DOMAIN, np.full((4, 4), 60))


def counts(protection: Protection = Protection(), domain: Domain = DOMAIN) -> Release:  # noqa: B008
    cells = np.indices(domain.shape, dtype=np.int32).reshape(2, -1)
    dense = FrequencyMatrix(domain, cells, np.full(domain.size, 60), protection)
    return publish(dense, 1, noise="seeded:4")


def ratio(sums: Release, counts: Release, *asked: Any) -> Answer:
    return sums.count(*asked).per(counts.count(*asked))


def test_a_mean_is_the_ratio_with_fiellers_interval() -> None:
    sums, records = released(), counts()
    boxes = [[0, 0, 1, 1], [0, 0, 0.5, 0.5], [0.1, 0.1, 0.7, 0.6]]
    means = ratio(sums, records, boxes)
    over, under = sums.count(boxes), records.count(boxes)
    assert np.array_equal(means.mean, over.count / under.count)
    assert means.bounded.all()
    s, a = over.raw, over.high - over.raw
    n, b = under.raw, under.high - under.raw
    for end in (means.low, means.high):
        assert np.square(s - end * n) == pytest.approx(np.square(a) + np.square(end * b), rel=1e-9)
    assert np.all((means.low < s / n) & (s / n < means.high))
    assert means.counted == "mean of passengers, at most 6 per record"
    whole = ratio(sums, records)
    assert (len(whole), whole.mean[0]) == (1, means.mean[0])


def test_polygons_and_ranges() -> None:
    shapely = pytest.importorskip("shapely")
    sums, records = released(), counts()
    of_box = ratio(sums, records, [0.25, 0.25, 0.75, 0.75])
    square = shapely.box(0.25, 0.25, 0.75, 0.75)
    of_polygon = sums.count_polygons(square).per(records.count_polygons(square))
    assert of_polygon.mean == pytest.approx(of_box.mean)
    assert of_polygon.high == pytest.approx(of_box.high, rel=1e-6)
    with pytest.raises(InputError, match="different questions"):
        sums.count([0, 0, 1, 1]).per(records.count_polygons(square))
    with pytest.raises(InputError, match="hour"):
        ratio(sums, records, None, {"hour": (7, 10)})


def test_a_mean_of_perhaps_nothing_is_unbounded() -> None:
    nothing = FrequencyMatrix.from_dense(DOMAIN, np.zeros((4, 4), dtype=np.int64))
    records = publish(nothing, "0.1", "singular", noise=ScriptedNoise([0]))
    means = ratio(released(), records, [[0, 0, 0.25, 0.25], [0, 0, 1, 1]])
    assert not means.bounded.any()
    assert (means.low == -np.inf).all()
    assert (means.high == np.inf).all()
    columns = means.to_labelled_columns()
    assert columns["low"].null_count == columns["high"].null_count == 2
    assert np.isnan(means.mean).all()
    assert columns["mean"].null_count == 2
    assert isinstance(pa.table(columns), pa.Table)


def test_no_mean_is_below_zero() -> None:
    empty = FrequencyMatrix(
        DOMAIN,
        np.empty((2, 0), np.int32),
        np.empty(0, np.int64),
        WEIGHED,
        weighed=WeighedRecords(9, 0),
    )
    sums = publish(empty, 1, noise="seeded:3")
    means = ratio(sums, counts(), [[0, 0, 0.5, 0.5], [0.5, 0.5, 1, 1], [0, 0, 1, 1]])
    assert means.bounded.all()
    assert (means.low == 0).all()
    assert (means.high >= 0).all()


def test_releases_that_have_no_mean() -> None:
    sums, person = released(), Protection("person", 3)
    shared = Protection("person", count="people", shares=256)
    larger = Domain.from_bounds(0, 0, 2, 2, 4)
    for first, second, says in (
        (counts(), counts(), "needs the sum of a weight"),
        (sums, sums, "a mean is per record"),
        (sums, counts(shared), "needs the same records in both"),
        (sums, counts(person), "needs the same records in both"),
        (released(OF_PEOPLE), counts(), "needs the same records in both"),
        (released(OF_PEOPLE), counts(Protection("person", 4)), "needs the same records in both"),
        (sums, counts(domain=larger), "different maps"),
    ):
        with pytest.raises(InputError, match=says):
            ratio(first, second)
    ratio(released(OF_PEOPLE), counts(person))
    ratio(sums, counts(Protection(of_query=True)))
    activity = measure_activity(RecordsPerPerson([50, 40, 30]), "0.1", noise="seeded:1")
    cells = np.indices((4, 4), dtype=np.int32).reshape(2, -1)
    scaled = FrequencyMatrix(DOMAIN, cells, np.full(16, 60), person)
    with pytest.raises(InputError, match="--spend activity=0"):
        ratio(released(OF_PEOPLE), publish(scaled, 1, noise="seeded:1", bought=(activity,)))
