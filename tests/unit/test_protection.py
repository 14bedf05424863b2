"""What an epsilon protects, as a release claims it: one person, rows of a query, a bound looked up with
noise; in its file, its statement, its checks and the budget it is charged to."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from htf import (
    BudgetError,
    BudgetFile,
    Curator,
    Domain,
    Epsilon,
    FrequencyMatrix,
    InputError,
    Protection,
    RecordsPerPerson,
    Release,
    make_mechanism,
    measure_activity,
    publish,
    verify,
)
from htf.curator.noise import SeededNoise
from htf.errors import ReleaseFileError
from htf.privacy.activity import Activity
from htf.privacy.protection import OF_RECORDS, epsilon_per_share
from htf.release.header import FORMAT

DOMAIN = Domain.from_bounds(0, 0, 1, 1, 4)
PERSON = Protection("person", 5, "hour")
PEOPLE = RecordsPerPerson.from_records([1, 1, 2, 3, 8, 8, 40], 20)
ONE_PERSON = "one person"


def matrix(protection: Protection = PERSON) -> FrequencyMatrix:
    cells = np.indices((4, 4), dtype=np.int32).reshape(2, -1)
    return FrequencyMatrix(DOMAIN, cells, np.full(16, 17), protection)


def made(protection: Protection = PERSON, **options: Any) -> Release:
    return publish(matrix(protection), **{"epsilon": 1, "mechanism": "ug", **options})


def measured(**options: Any) -> Activity:
    return measure_activity(PEOPLE, **{"epsilon": "0.2", "noise": "fast", **options})


def wrong(release: Release | Path) -> list[str]:
    return [check.name for check in verify(release) if not check.passed]


@pytest.fixture
def budget(tmp_path: Path) -> BudgetFile:
    return BudgetFile.create(tmp_path / "budget.sqlite", "pings", 2, unit=ONE_PERSON)


# --- the claim ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("claim", "says"),
    [
        (("people", 5), "unit must be one of record, person, got 'people'"),
        (("person", 1, None, False, "visits"), "one of records, people, got 'visits'"),
        (("person", 1, None, False, "people", "year"), "one of day, week, month, got 'year'"),
        (("person", 1, None, False, "people", None, 0), "between 1 and 1048576, got 0"),
        (("person", 2, None, False, "people", None, 256), "leave out the number of records kept"),
        (("person", 1, None, False, "records", None, 256), "records are counted whole, not in 256"),
        (("record", 1, None, False, "people", None, 256), "no column names the person"),
        (("record", 1, None, False, "records", "day"), "no column names the person"),
        (("person", 0), "whole number between 1 and 1048576, got 0"),
        (("person", -1), "between 1 and 1048576, got -1"),
        (("person", 2**20 + 1), "between 1 and 1048576, got 1048577"),
        (("person", 0.5), "whole number, got 0.5"),  # half a record would have twice the epsilon
        (("person", 2.0), "whole number, got 2.0"),
        (("person", True), "whole number, got True"),
        (("person", "3"), "whole number, got '3'"),
        (("person", 5, "week"), "one of hour, day, all, got 'week'"),
        (("person", 5, None, "no"), "of_query must be"),
        (("record", 2), "no column names the person"),
        (("record", 1, "day"), "no column names the person"),
    ],
)
def test_claims_that_cannot_be_kept_are_refused(claim: tuple[Any, ...], says: str) -> None:
    with pytest.raises(InputError, match=says):
        Protection(*claim)


def test_claims_at_their_bounds() -> None:
    for number in (1, 256, 2**20):
        counted = Protection("person", count="people", shares=number)
        assert counted.most_shares == number
        assert epsilon_per_share(Epsilon.of(1), counted).units == 10**15 // number
        kept = Protection("person", number)
        assert epsilon_per_share(Epsilon.of(1), kept).units == 10**15 // number


def test_a_release_claims_the_whole_for_a_person() -> None:
    release = made()
    assert (release.epsilon, release.record_epsilon) == (Epsilon.of(1), Epsilon.of("0.2"))
    assert release.spent <= release.record_epsilon
    assert "epsilon=1 for one person" in repr(release)
    told = release.summary()
    assert (told["epsilon"], told["record_epsilon"]) == ("1", "0.2")
    assert told["protection"] == asdict(release.protection)
    assert told["activity"] is None
    plain = made(OF_RECORDS)
    assert plain.record_epsilon == plain.epsilon
    assert "person" not in repr(plain)


def test_the_window_and_the_ledger_have_the_share_of_a_record() -> None:
    curator = Curator(matrix(), Epsilon.of(1), SeededNoise(1))
    assert curator.window.epsilon == Epsilon.of("0.2")
    assert repr(curator) == "Curator(epsilon=1, exact counts not shown)"
    (question,) = curator.window.count([0], Epsilon.of("0.200000000000001"), "all")
    with pytest.raises(BudgetError, match=r"more than the total of 0\.2"):
        curator.measure(question)


def test_a_share_below_the_least_epsilon_is_refused() -> None:
    many = Protection("person", 2**20)
    least = made(many, epsilon="1.048576e-9", mechanism="uniform")
    assert least.record_epsilon == Epsilon(1)
    with pytest.raises(InputError, match="over 1048576 records per person is less than 1e-15"):
        made(many, epsilon="1.048575e-9")


def test_what_a_mechanism_refuses_is_told_in_terms_of_a_person() -> None:
    says = (
        r"for each of.*\(with one person, at most 5 records each, each record has epsilon 0\.0002\)"
    )
    with pytest.raises(BudgetError, match=says):
        made(epsilon="0.001", mechanism="htf-paper")
    with pytest.raises(BudgetError) as plain:
        made(OF_RECORDS, epsilon="0.001", mechanism="htf-paper")
    assert "for a record" not in str(plain.value)


def test_what_a_budget_refuses_is_told_as_it_is(budget: BudgetFile) -> None:
    with pytest.raises(
        BudgetError, match=r"(?s)epsilon 3 is more than .* nothing of it is spent\.$"
    ):
        made(epsilon=3, budget=budget)


# --- the statement --------------------------------------------------------------------------------


def said(protection: Protection, **options: Any) -> str:
    return made(protection, **options).statement


def test_the_statement_for_records_says_early_what_is_not_protected() -> None:
    release = made(OF_RECORDS)
    text = release.statement
    first, *_, last = text.split("\n\n")
    assert last == f"Noise: {release.noise}. Mechanism: {release.mechanism}."
    assert (
        "The unit of protection is one record: adding or removing any one record changes" in first
    )
    assert "The records of one person are NOT protected together" in first
    for words in ("LIMIT", "were kept", "chosen with noise"):
        assert words not in text


def test_the_statement_for_a_person() -> None:
    text = said(Protection("person", 5))
    for words in (
        "1-differentially private",
        "The unit of protection is one person: adding or removing all records of any one person",
        "At most 5 records per person were kept",
        "epsilon 0.2 per record",
        "Records that name no person were dropped",
        "they may be lower than the truth",
        "Someone with several identifiers is protected as if they were several people",
        "for one of them alone the guarantee is twice epsilon",
        "how many records were kept per person; facts",
        "do not depend on any one person",
    ):
        assert words in text
    for words in (
        "NOT protected together",
        "Only one record per person",
        "distinct",
        "{",
        "any one record",
    ):
        assert words not in text
    assert "At most 1 record per person was kept" in said(Protection("person", 1))


@pytest.mark.parametrize(
    ("once_per", "words", "distinct"),
    [("hour", "per person, cell and hour was used. At most 5 records", False),
     ("day", "per person, cell and day was used. At most 5 records", False),
     ("all", "per person and cell was used. At most 5 records", True)],
)  # fmt: skip
def test_the_statement_of_once_per(once_per: str, words: str, distinct: bool) -> None:
    text = said(Protection("person", 5, once_per))
    assert words in text
    assert ("the count of one cell is a number of different people" in text) == distinct


def test_the_statement_of_a_query() -> None:
    for protection in (Protection(of_query=True), Protection("person", 2, of_query=True)):
        text = said(protection)
        assert "The records are the rows that a query or view returns" in text
        assert (
            f"a LIMIT, a join or an aggregate lets {protection.name} change the rows of others"
            in text
        )


def test_the_statement_of_a_number_that_follows_and_of_a_total() -> None:
    release = made(bought=(replace(measured(), decides=True),))
    assert "The number of records to keep per person follows from it" in release.statement
    # What was chosen with noise is covered, and not named among what is public beforehand.
    assert "the range from which the number of records to keep was chosen" in release.statement
    assert "how many records were kept per person" not in release.statement
    assert "for 0.2 of the epsilon of 1" in release.statement
    told = said(PERSON, mechanism=make_mechanism("ug", public_total="272"))
    assert "Whether any one person is part of that number is not protected" in told


# --- the file and its checks ----------------------------------------------------------------------

PROTECTIONS = [
    PERSON, Protection("person"), Protection("person", 7, "all", True), Protection(of_query=True),
]  # fmt: skip


def header(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(pq.read_schema(path).metadata[b"htf"])
    return found


@pytest.mark.parametrize("protection", PROTECTIONS)
def test_it_travels_in_the_file(protection: Protection, tmp_path: Path) -> None:
    release, path = made(protection), tmp_path / "r.parquet"
    release.save(path)
    again = Release.load(path)
    assert again == release
    assert (again.protection, again.statement) == (protection, release.statement)
    assert again != replace(release, protection=OF_RECORDS)
    assert header(path)["format"] == FORMAT
    assert wrong(path) == []


def test_a_plain_file_says_nothing_of_people(tmp_path: Path) -> None:
    made(OF_RECORDS).save(tmp_path / "r.parquet")
    told = header(tmp_path / "r.parquet")
    assert told["format"] == FORMAT
    assert set(told) == {
        "format", "software", "domain", "epsilon", "mechanism", "parameters", "facts", "estimator",
        "noise", "private", "ledger", "statement", "digest", "columns_digest",
    }  # fmt: skip


@pytest.mark.parametrize("per", [None, "day", "week", "month"])
def test_what_people_are_counted_by_travels_too(per: str | None, tmp_path: Path) -> None:
    counted = Protection("person", once_per="day", count="people", per=per, shares=256)
    release, path = made(counted), tmp_path / "r.parquet"
    release.save(path)
    again = Release.load(path)
    assert again == release
    assert (again.protection, again.statement) == (counted, release.statement)
    assert again.record_epsilon == Epsilon(10**15 // 256)
    assert again.quantity == ("split people" if per is None else f"split person-{per}s")
    assert wrong(path) == []
    for name, value in (
        ("shares", 255),
        ("count", "records"),
        ("per", "day" if per is None else None),
    ):
        changed = tmp_path / f"{name}.parquet"
        release.save(changed)
        rewrite(changed, lambda told, field={name: value}: told["protection"].update(field))
        with pytest.raises(ReleaseFileError, match=r"was changed|is damaged"):
            Release.load(changed)


def test_an_activity_travels_too(tmp_path: Path) -> None:
    release, path = made(bought=(measured(),)), tmp_path / "r.parquet"
    assert (release.epsilon, release.record_epsilon) == (Epsilon.of(1), Epsilon.of("0.16"))
    release.save(path)
    again = Release.load(path)
    assert again == release
    assert again.activity == release.activity
    assert again != replace(release, bought=(), factor=1.0)
    assert again.summary()["activity"]["most"] == 20
    assert wrong(path) == []


def rewrite(path: Path, change: Any) -> None:
    table = pq.read_table(path)
    found = header(path)
    change(found)
    metadata = {**table.schema.metadata, b"htf": json.dumps(found).encode()}
    pq.write_table(table.replace_schema_metadata(metadata), path)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda h: h["protection"].update(max_records=1), "was changed"),
        (lambda h: h["protection"].update(once_per=None), "was changed"),
        (lambda h: h["protection"].update(unit="record"), "is damaged"),
        (lambda h: h["protection"].update(max_records=0), "is damaged"),
        (lambda h: h["protection"].update(extra=1), "is damaged"),
        (lambda h: h.update(protection=None), "is damaged"),
        (lambda h: h.pop("protection"), "is damaged"),  # an activity is for people
        (lambda h: (h.pop("protection"), h.pop("activity"), h.update(factor=2.0)), "is damaged"),
        (lambda h: (h.pop("activity"), h.update(factor=2.0)), "is damaged"),  # a factor is left
        (lambda h: h["activity"].update(epsilon="0.1"), "was changed"),
        (lambda h: h["activity"].update(epsilon="1"), "is damaged"),
        (lambda h: h["activity"].update(most=21), "was changed"),
        (lambda h: h["activity"].update(most=0), "is damaged"),
        (lambda h: h.update(epsilon="2"), "was changed"),
    ],
)
def test_changed_claims_are_refused(tmp_path: Path, change: Any, says: str) -> None:
    path = tmp_path / "r.parquet"
    made(bought=(measured(),)).save(path)
    rewrite(path, change)
    with pytest.raises(ReleaseFileError, match=says):
        Release.load(path)


def test_verify_finds_claims_that_do_not_follow(tmp_path: Path) -> None:
    release = made(bought=(measured(),))
    assert wrong(release) == []
    (spend,) = [check for check in verify(release) if check.name == "spend"]
    assert spend.finding.startswith("the measurements spend 0.16 of 0.16")
    assert spend.finding.endswith("a person loses at most 1 of 1")
    weaker = replace(PERSON, max_records=6)
    assert "spend" in wrong(replace(release, protection=weaker))
    assert release.activity is not None
    dearer = replace(release.activity, epsilon=Epsilon.of("0.3"))
    assert "spend" in wrong(replace(release, bought=(dearer,)))
    assert "spend" in wrong(replace(release, epsilon=Epsilon.of("0.999999999999999")))
    for change in (
        {"private": False},
        {"noise": "seeded:1"},
        {"private": False, "noise": "seeded:1"},
    ):
        assert wrong(replace(release, bought=(replace(release.activity, **change),))) == ["noise"]
    path = tmp_path / "r.parquet"
    release.save(path)
    words = "1-differentially private for one person"
    rewrite(path, lambda h: h.update(statement=words, software="htf-dp 9"))
    assert wrong(path) == []
    for other in (f"0.{words}", f"1{words}"):  # the end of another number
        rewrite(path, lambda h, other=other: h.update(statement=other))
        assert wrong(path) == ["statement"]
    rewrite(path, lambda h: h.update(statement=words.replace("person", "record")))
    assert wrong(path) == ["statement"]


# --- activities -----------------------------------------------------------------------------------


def test_people_are_counted_and_not_shown() -> None:
    assert PEOPLE.exact_persons.tolist() == [2, 1, 1, 0, 0, 0, 0, 2, *[0] * 11, 1]
    assert repr(PEOPLE) == "RecordsPerPerson(1 to 20 records, exact numbers not shown)"
    assert RecordsPerPerson.from_records([], 3).exact_persons.tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="read-only"):
        PEOPLE.exact_persons[0] = 3


@pytest.mark.parametrize(
    "persons", [[], [[1]], [0.5], [1, -1], [2**41], ["a"], np.zeros(2**20 + 1, int)]
)
def test_people_that_cannot_be(persons: Any) -> None:
    with pytest.raises(InputError):
        RecordsPerPerson(persons)


@pytest.mark.parametrize(("records", "most"), [([0], 5), ([1.5], 5), ([1], 0), ([1], 2**20 + 1)])
def test_records_that_cannot_be(records: Any, most: int) -> None:
    with pytest.raises(InputError):
        RecordsPerPerson.from_records(records, most)


# --- budgets --------------------------------------------------------------------------------------


def test_a_person_is_charged_the_whole(budget: BudgetFile, tmp_path: Path) -> None:
    release = made(budget=budget)
    (entry,) = budget.account().entries
    assert (entry.epsilon, entry.unit) == (Epsilon.of(1), ONE_PERSON)
    assert budget.save(release, tmp_path / "r.parquet").state == "published"


def test_units_are_kept_apart(budget: BudgetFile) -> None:
    with pytest.raises(InputError, match="for one person, but this charge is for one record"):
        made(OF_RECORDS, budget=budget)
    records = BudgetFile.create(budget.path, "records", 2)
    for charge in (lambda: made(budget=records), lambda: measured(budget=records)):
        with pytest.raises(
            InputError, match=r"one record, but this charge is .* one person.*budget\.md"
        ):
            charge()
    assert budget.account().entries == records.account().entries == ()


def test_a_release_is_charged_what_its_activity_was_not(budget: BudgetFile, tmp_path: Path) -> None:
    found = measured(budget=budget)
    release = made(budget=budget, bought=(found,))
    assert budget.account().spent == release.epsilon == Epsilon.of(1)
    assert len(budget.account().pending) == 2
    entry = budget.save(release, tmp_path / "r.parquet")
    assert entry.epsilon == Epsilon.of("0.8")
    assert budget.account().pending == ()
    assert {e.sha256 for e in budget.account().entries} == {entry.sha256}
    again = made(budget=budget, bought=(found,), epsilon="0.5")  # it is paid, and may be used again
    budget.save(again, tmp_path / "again.parquet")
    assert budget.account().spent == Epsilon.of("1.3")
    assert budget.account().entries[0].file == "r.parquet"


# --- entering what was written --------------------------------------------------------------------


@pytest.fixture
def lost(budget: BudgetFile, tmp_path: Path) -> Path:
    """A release that was written, and whose charges are still pending."""
    release = made(budget=budget, bought=(measured(budget=budget),))
    release.save(tmp_path / "r.parquet")
    return tmp_path / "r.parquet"


def test_what_was_written_can_be_entered(budget: BudgetFile, lost: Path) -> None:
    ids = [entry.id for entry in budget.account().pending]
    for id_ in ids:
        entry = budget.publish(id_, lost)
        assert (entry.state, entry.file) == ("published", "r.parquet")
        assert entry.sha256 == hashlib.sha256(lost.read_bytes()).hexdigest()
    assert budget.account().pending == ()
    assert budget.account().spent == Epsilon.of(1)  # nothing is refunded
    with pytest.raises(InputError, match=r"published already, as r\.parquet"):
        budget.publish(ids[0], lost)


def test_what_cannot_be_what_was_charged_is_not_entered(
    budget: BudgetFile, lost: Path, tmp_path: Path
) -> None:
    before = budget.account()
    activity, id_ = (entry.id for entry in before.pending)
    path, exact_total = tmp_path / "other.parquet", make_mechanism("ug", public_total="272")
    for other, says in (
        (made(), r"charged for: that is epsilon 0\.8 for one person by ug, the file has 1 for one"),
        (made(OF_RECORDS, epsilon="0.8"), "the file has 0.8 for one record by ug"),
        (made(epsilon="0.8", mechanism="singular"), "for one person by singular"),
        (made(epsilon="0.8", noise="seeded:1"), "seeded or scripted noise hides nothing"),
        (made(epsilon="0.8", mechanism=exact_total), "public_total discloses"),
        (replace(made(epsilon="0.8"), estimator="magic"), "is inconsistent: sums"),
    ):
        other.save(path, overwrite=True)
        with pytest.raises(InputError, match=says):
            budget.publish(id_, path)
    made().save(path, overwrite=True)
    with pytest.raises(InputError, match="the file has 0 for one person by activity"):
        budget.publish(activity, path)
    with pytest.raises(InputError, match="no entry x for"):
        budget.publish("x", lost)
    path.write_text("no release")
    with pytest.raises(ReleaseFileError, match="not a sound Parquet file"):
        budget.publish(id_, path)
    assert budget.account() == before


def test_a_file_is_entered_once(budget: BudgetFile, lost: Path, tmp_path: Path) -> None:
    _, id_ = (entry.id for entry in budget.account().pending)
    made(epsilon="0.8", budget=budget)  # lost for good
    budget.publish(id_, lost)
    (_, twin) = budget.account().pending
    shutil.copy(lost, tmp_path / "copy.parquet")
    with pytest.raises(InputError, match=f"entered already, as entry {id_}"):
        budget.publish(twin.id, tmp_path / "copy.parquet")
