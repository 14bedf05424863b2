"""The budget over several releases: exact sums, nothing refunded, and what is refused."""

from __future__ import annotations

import copy
import hashlib
import os
import pickle
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from time import sleep
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htf import BudgetError, BudgetFile, Domain, Epsilon, FrequencyMatrix, InputError, publish
from htf.curator.curator import Curator
from htf.curator.measurements import CountRegions, Measurement
from htf.curator.noise import FastNoise, ScriptedNoise, SeededNoise
from htf.curator.window import Steps, Window
from htf.frame.domain import IntArray
from htf.mechanisms.base import Histogram, Mechanism
from htf.privacy import budget as module
from htf.privacy import budget_store as store
from htf.privacy.account import Account, Entry
from htf.privacy.budget import read_accounts
from htf.privacy.ledger import Ledger

DOMAIN = Domain.from_bounds(0, 0, 1, 1, 4)
MATRIX = FrequencyMatrix.from_dense(DOMAIN, np.full((4, 4), 17))


@pytest.fixture
def budget(tmp_path: Path) -> BudgetFile:
    return BudgetFile.create(tmp_path / "budget.sqlite", "pings", "1")


class CountedNoise(FastNoise):
    """Knows how often it was asked."""

    draws = 0

    def draw(self, epsilon_units: IntArray, sensitivity: int) -> IntArray:
        self.draws += 1
        return super().draw(epsilon_units, sensitivity)


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """Past our module, as with a database browser."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


def refused(budget: BudgetFile, error: type[Exception], says: str, **options: Any) -> None:
    """A release is refused; nothing is drawn and nothing charged."""
    before, noise = budget.account(), CountedNoise()
    with pytest.raises(error, match=says):
        publish(MATRIX, mechanism="ug", budget=budget, **{"epsilon": 1, "noise": noise, **options})
    assert noise.draws == 0
    assert budget.account() == before


def test_publish_takes_the_old_name_of_budget(budget: BudgetFile) -> None:
    with pytest.warns(DeprecationWarning, match=r"is now publish\(budget=…\)"):
        old = publish(MATRIX, "0.4", "ug", ledger=budget)
    new = publish(MATRIX, "0.2", "ug", budget=budget)
    entries = budget.account().entries
    assert [entry.id for entry in entries] == [old.budget_entry, new.budget_entry]
    with pytest.raises(InputError, match="ledger is the old name of budget: give budget only"):
        publish(MATRIX, "0.1", "ug", budget=budget, ledger=budget)
    assert budget.account().entries == entries


def test_charges_add_up_exactly(budget: BudgetFile) -> None:
    for number in range(10):
        budget.charge(0.1, "ug", f"release {number}")  # ten floats of 0.1 come to less than 1
    account = budget.account()
    assert (account.spent, account.left) == (Epsilon.of(1), Epsilon(0))
    assert [entry.label for entry in account.entries] == [f"release {n}" for n in range(10)]
    with pytest.raises(BudgetError, match=r"epsilon 0\.000000000000001 is more than .* 0 of 1"):
        budget.charge("1e-15", "ug")


def test_what_a_charge_is(budget: BudgetFile) -> None:
    entry = budget.charge("0.123456789012345678", "ug", "spring")
    assert budget.account().entries == (entry,)
    assert entry.epsilon.units == 123_456_789_012_345  # rounded down, as in the release
    assert (entry.mechanism, entry.label, entry.unit) == ("ug", "spring", "one record")
    assert (entry.state, entry.file, entry.sha256) == ("pending", None, None)
    assert entry.charged.endswith("+00:00")
    assert len(entry.id) == 16
    assert entry.id != budget.charge("0.1", "ug").id


class Watching(FastNoise):
    """Draws only where the budget was charged."""

    def __init__(self, budget: BudgetFile) -> None:
        self.budget = budget

    def draw(self, epsilon_units: IntArray, sensitivity: int) -> IntArray:
        assert [entry.state for entry in self.budget.account().entries] == ["pending"]
        return super().draw(epsilon_units, sensitivity)


def test_a_release_is_charged_before_noise_and_published_after(
    budget: BudgetFile, tmp_path: Path
) -> None:
    release = publish(MATRIX, "0.4", "ug", noise=Watching(budget), budget=budget, label="spring")
    (entry,) = budget.account().pending
    assert release.budget_entry == entry.id
    saved = budget.save(release, tmp_path / "out.parquet")
    (entry,) = budget.account().entries
    assert entry == saved
    assert (entry.state, entry.file, entry.label) == ("published", "out.parquet", "spring")
    assert entry.sha256 == hashlib.sha256((tmp_path / "out.parquet").read_bytes()).hexdigest()
    assert budget.account().pending == ()
    assert budget.account().spent == release.epsilon == Epsilon.of("0.4")


def test_the_file_holds_nothing_of_the_data(budget: BudgetFile, tmp_path: Path) -> None:
    """Two data sets that could not differ more leave the same rows."""
    rows = []
    for name, counts in (("a", np.zeros((4, 4), int)), ("b", np.full((4, 4), 987_654))):
        own = BudgetFile.create(budget.path, name, 1)
        matrix = FrequencyMatrix.from_dense(DOMAIN, counts)
        own.save(publish(matrix, 1, "ug", budget=own, label="x"), tmp_path / f"{name}.parquet")
        (entry,) = own.account().entries
        told = entry.to_dict()
        rows.append({k: v for k, v in told.items() if k not in ("id", "charged", "sha256", "file")})
    assert rows[0] == rows[1]
    assert set(told) == {
        "id", "charged", "mechanism", "label", "epsilon", "epsilon_units", "unit", "state", "file",
        "sha256", "withdrawn",
    }  # fmt: skip
    assert str(tmp_path).encode() not in budget.path.read_bytes()


def test_beyond_the_cap(budget: BudgetFile) -> None:
    budget.charge("0.7", "ug")
    says = r"epsilon 0\.4 is more than the budget of 'pings' allows: 0\.3 of 1 remains \(0\.7 is spent, 0\.7 of it by"
    refused(budget, BudgetError, says, epsilon="0.4")
    budget.charge("0.3", "ug")


def test_nothing_is_left_of_a_budget_that_is_spent(budget: BudgetFile) -> None:
    budget.charge("1", "ug")
    assert budget.account().left == Epsilon(0)
    with pytest.raises(BudgetError, match="0 of 1"):
        budget.account().check(Epsilon(1))


def test_noise_that_hides_nothing(budget: BudgetFile) -> None:
    for noise in (SeededNoise(1), ScriptedNoise([0]), "seeded:7"):
        refused(budget, InputError, "seeded or scripted noise hides nothing", noise=noise)


def test_a_total_disclosed_exactly_does_not_add_up(budget: BudgetFile) -> None:
    from htf import make_mechanism

    with pytest.raises(InputError, match="public_total discloses"):
        publish(MATRIX, 1, make_mechanism("ug", public_total="272"), budget=budget)
    assert budget.account().entries == ()


def test_what_the_mechanism_refuses_beforehand_costs_nothing(budget: BudgetFile) -> None:
    with pytest.raises(BudgetError, match="for each of"):
        publish(MATRIX, "0.001", "htf-paper", budget=budget)
    assert budget.account().entries == ()


def test_what_fails_after_the_charge_says_that_it_stands(
    budget: BudgetFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(FastNoise):
        def draw(self, epsilon_units: IntArray, sensitivity: int) -> IntArray:  # noqa: ARG002
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        publish(MATRIX, "0.5", "ug", noise=Broken(), budget=budget)
    (entry,) = budget.account().pending
    (note,) = caught.value.__notes__
    assert note.startswith(
        f"The charge of 0.5 stands, as entry {entry.id} of 'pings' in {budget.path}. "
    )
    assert "another run is charged again" in note
    release = publish(MATRIX, "0.5", "ug", budget=budget)
    with pytest.raises(InputError, match="no folder") as refusal:
        budget.save(release, tmp_path / "no" / "out.parquet")
    assert str(release.budget_entry) in refusal.value.__notes__[0]
    assert budget.account().spent == Epsilon.of(1)
    with pytest.raises(BudgetError) as beyond:
        publish(MATRIX, "0.5", "ug", budget=budget)
    assert beyond.value.__notes__ == ["The charge of 0.5 was not entered: nothing of it is spent."]

    def fail(*_: Any) -> None:
        raise InputError("the disk is full")

    monkeypatch.setattr(BudgetFile, "_publish", fail)
    with pytest.raises(InputError, match=r"out.parquet was written, but .* the disk is full"):
        budget.save(release, tmp_path / "out.parquet")
    assert len(budget.account().pending) == 2


def test_questions_without_a_mechanism_are_charged_once(budget: BudgetFile) -> None:
    """And before the first answer is drawn."""
    curator = Curator(MATRIX, Epsilon.of(1), Watching(budget), budget=budget, label="by hand")
    assert budget.account().entries == ()
    for _ in range(2):
        (question,) = curator.window.count([0], Epsilon.of("0.5"), "all")
        curator.measure(question)
    (entry,) = budget.account().entries
    assert (entry.epsilon, entry.mechanism) == (Epsilon.of(1), "measurements")


class Nothing(Mechanism):
    """Asks no question."""

    name = "nothing"
    citation = "none"

    def build(self, window: Window) -> Steps[Histogram]:
        del window
        yield from ()
        return Histogram(np.array([0]), np.zeros(1), np.ones(1), "last-count")


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_curator_is_not_copied(copied: Callable[[Curator], object], budget: BudgetFile) -> None:
    """A copy would have a ledger of its own, for which nothing was charged."""
    curator = Curator(MATRIX, Epsilon.of(1), budget=budget)
    with pytest.raises(InputError, match="cannot be copied or pickled"):
        copied(curator)


def test_a_forked_curator_does_not_spend_the_charge_again(
    budget: BudgetFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    curator = Curator(MATRIX, Epsilon.of(1), FastNoise(), budget=budget)
    question = CountRegions("count", np.array([0]), np.array([Epsilon.of("0.4").units]))
    curator.measure(question)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(InputError, match="first used in another process"):
        curator.measure(question)
    assert curator.spent == Epsilon.of("0.4")


def test_threads_do_not_both_get_the_last_of_a_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each stops between its look at the sum and its charge."""

    def slowly(self: Ledger, measurement: Measurement, kind: type[np.generic]) -> Any:
        found = before(self, measurement, kind)
        sleep(0.02)
        return found

    before = Ledger._loss_with
    monkeypatch.setattr(Ledger, "_loss_with", slowly)
    curator = Curator(MATRIX, Epsilon.of(1), FastNoise())
    question = CountRegions("count", np.array([0]), np.array([Epsilon.of("0.6").units]))
    with ThreadPoolExecutor(4) as threads:
        asked = [threads.submit(curator.measure, question) for _ in range(4)]
    assert sum(one.exception() is None for one in asked) == 1


def test_a_release_without_questions_is_charged_like_others(budget: BudgetFile) -> None:
    release = Curator(MATRIX, Epsilon.of("0.5"), FastNoise(), budget=budget).run(Nothing())
    (entry,) = budget.account().pending
    assert (release.budget_entry, entry.epsilon) == (entry.id, Epsilon.of("0.5"))


def test_a_release_is_published_once_and_where_it_was_charged(
    budget: BudgetFile, tmp_path: Path
) -> None:
    release = publish(MATRIX, "0.5", "ug", budget=budget)
    other = BudgetFile.create(budget.path, "trips", 1)
    with pytest.raises(InputError, match=r"no entry .* for 'trips'"):
        other.save(release, tmp_path / "out.parquet")
    with pytest.raises(InputError, match="charged to no budget file"):
        budget.save(publish(MATRIX, 1, "ug"), tmp_path / "out.parquet")
    assert not (tmp_path / "out.parquet").exists()
    budget.save(release, tmp_path / "out.parquet")
    assert budget.account().pending == ()
    with pytest.raises(InputError, match=r"published already, as out\.parquet"):
        budget.save(release, tmp_path / "again.parquet")


def test_a_budget_file_that_was_exchanged_meanwhile(
    budget: BudgetFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = publish(MATRIX, "0.5", "ug", budget=budget)

    def exchange(path: Path) -> str:
        budget.path.unlink()
        BudgetFile.create(budget.path, "pings", 1)
        return f"digest of {path.name}"

    monkeypatch.setattr(module, "digest_of", exchange)
    with pytest.raises(InputError, match=r"out.parquet was written, but .* has no entry "):
        budget.save(release, tmp_path / "out.parquet")


def test_a_release_is_not_written_over_the_budget(budget: BudgetFile, tmp_path: Path) -> None:
    release = publish(MATRIX, "0.5", "ug", budget=budget)
    (tmp_path / "link").symlink_to(budget.path)
    os.link(budget.path, tmp_path / "hard")
    for name in ("budget.sqlite", "link", "hard", "budget.sqlite-journal", "budget.sqlite-wal"):
        with pytest.raises(InputError, match="part of the budget file"):
            budget.save(release, tmp_path / name)
    assert len(budget.account().pending) == 1


def test_units_that_do_not_add_up(budget: BudgetFile) -> None:
    with pytest.raises(InputError, match="for one record, but this charge is for one person"):
        budget.charge("0.1", "ug", unit="one person")
    people = BudgetFile.create(budget.path, "people", 1, unit="one person")
    refused(people, InputError, "for one person, but this charge is for one record")


def test_a_budget_is_made_once(budget: BudgetFile) -> None:
    budget.charge("0.4", "ug")
    for name in ("pings", "Pings"):
        with pytest.raises(InputError, match="never replaced"):
            BudgetFile.create(budget.path, name, 5)
    assert budget.account().left == Epsilon.of("0.6")
    BudgetFile.create(budget.path, "trips", 5)
    BudgetFile.create(budget.path, "caf\u00e9", 5)
    with pytest.raises(InputError, match="never replaced"):  # which looks the same
        BudgetFile.create(budget.path, "cafe\u0301", 5)
    assert [account.dataset for account in read_accounts(budget.path)] == [
        "pings",
        "trips",
        "caf\u00e9",
    ]


@pytest.mark.parametrize("name", ["", " ", "a ", "a\nb", "x" * 201])
def test_names(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="needs a name"):
        BudgetFile.create(tmp_path / "budget.sqlite", name, 1)
    assert not (tmp_path / "budget.sqlite").exists()


def test_closed_is_closed(budget: BudgetFile, tmp_path: Path) -> None:
    release = publish(MATRIX, "0.5", "ug", budget=budget)
    closed = budget.close().closed
    assert closed is not None
    refused(budget, BudgetError, "closed on", epsilon="0.1")
    assert budget.close().closed == closed
    budget.save(release, tmp_path / "out.parquet")  # it was charged before
    with pytest.raises(InputError, match="never replaced"):
        BudgetFile.create(budget.path, "pings", 1)


def test_files_that_are_no_budget(tmp_path: Path, budget: BudgetFile) -> None:
    (tmp_path / "text.txt").write_text("no database, but long enough to be looked into" * 100)
    (tmp_path / "empty").touch()
    for name, table in (("other.sqlite", "dataset"), ("notes.sqlite", "notes")):
        with opened(tmp_path / name) as connection:
            connection.execute(f"CREATE TABLE {table} (name)")
    for name, says in (
        ("no.sqlite", "there is no budget file"),
        (".", "there is no budget file"),
        ("empty", "not a budget file"),
        ("text.txt", "not a budget file"),
        ("other.sqlite", "not a budget file"),
    ):
        with pytest.raises(InputError, match=says):
            BudgetFile(tmp_path / name, "pings")
        with pytest.raises(InputError, match=says):
            read_accounts(tmp_path / name)
    for name in (".", "text.txt", "other.sqlite", "notes.sqlite", "no/budget.sqlite"):
        with pytest.raises(InputError):
            BudgetFile.create(tmp_path / name, "pings", 1)
    with pytest.raises(InputError, match="no budget for 'trips'; it has 'pings'"):
        BudgetFile(budget.path, "trips")
    assert not (tmp_path / "no.sqlite").exists()
    with opened(tmp_path / "notes.sqlite") as connection:  # nothing was put into it
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("notes",)]


COPY = "charged, mechanism, label, {}, epsilon, unit, state, file, sha256, withdrawn FROM entry"
OF_PINGS = "name, unit, relation, 9 * cap_units, '9', created, NULL, NULL FROM dataset WHERE name = 'pings'"


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM entry",
        "DELETE FROM dataset",
        "DELETE FROM seal",
        "UPDATE entry SET epsilon_units = 1",
        "UPDATE entry SET dataset = 'trips'",
        "UPDATE entry SET label = 'another'",
        "UPDATE entry SET state = 'pending', file = NULL, sha256 = NULL WHERE state = 'published'",
        "UPDATE entry SET sha256 = 'another' WHERE state = 'published'",
        "UPDATE dataset SET cap_units = 5000000000000000",
        "UPDATE dataset SET unit = 'one person'",
        "UPDATE dataset SET created = 'long ago'",
        "UPDATE dataset SET closed = NULL WHERE name = 'trips'",
        "UPDATE entry SET state = 'published'",  # without its digest
        "UPDATE entry SET state = 'withdrawn' WHERE state = 'published'",  # without a date
        f"INSERT INTO entry SELECT 5, 'x', dataset, {COPY.format('epsilon_units')}",
        f"INSERT INTO entry SELECT 5, 'x', 'trips', {COPY.format(1)}",
        f"INSERT INTO entry SELECT 5, 'x', dataset, {COPY.format(1)} WHERE state = 'published'",
        f"INSERT OR REPLACE INTO entry SELECT number, id, dataset, {COPY.format(1)}",
        f"INSERT OR REPLACE INTO entry SELECT number, 'x', dataset, {COPY.format(1)}",
        f"INSERT OR REPLACE INTO entry SELECT NULL, id, dataset, {COPY.format(1)}",
        f"INSERT OR IGNORE INTO entry SELECT number, id, dataset, {COPY.format(1)}",
        f"REPLACE INTO entry SELECT number, id, 'more', {COPY.format(1)}",
        f"INSERT INTO entry SELECT number, id, dataset, {COPY.format(1)} WHERE true ON CONFLICT (number) DO UPDATE SET epsilon_units = 1",
        f"INSERT OR REPLACE INTO dataset SELECT number, {OF_PINGS}",
        f"INSERT OR REPLACE INTO dataset SELECT NULL, {OF_PINGS}",
        f"INSERT OR REPLACE INTO dataset SELECT number, 'x' || {OF_PINGS}",
        "UPDATE OR REPLACE dataset SET number = 2 WHERE number = 1",
        "UPDATE OR REPLACE entry SET number = 2 WHERE number = 1",
        "UPDATE OR REPLACE entry SET id = (SELECT id FROM entry WHERE number = 1) WHERE number = 2",
        f"INSERT INTO entry SELECT NULL, id, dataset, {COPY.format(1)} WHERE true ON CONFLICT (id) DO UPDATE SET epsilon_units = 1",
        f"INSERT INTO dataset SELECT NULL, {OF_PINGS} ON CONFLICT (name) DO UPDATE SET cap_units = 9",
        "INSERT OR REPLACE INTO seal VALUES (1, '')",
    ],
)  # fmt: skip
@pytest.mark.parametrize("recursive", [True, False])
def test_the_file_itself_refuses_to_forget(
    budget: BudgetFile, statement: str, recursive: bool, tmp_path: Path
) -> None:
    """Also where REPLACE would delete rows, which no trigger on deletion hears of."""
    budget.charge("0.3", "ug")
    budget.save(publish(MATRIX, "0.3", "ug", budget=budget), tmp_path / "out.parquet")
    BudgetFile.create(budget.path, "trips", 1).close()
    BudgetFile.create(budget.path, "more", 1)
    before = read_accounts(budget.path)
    with opened(budget.path) as connection:
        connection.execute(f"PRAGMA recursive_triggers = {recursive}")
        with pytest.raises(sqlite3.IntegrityError):
            connection.execute(statement)
    assert read_accounts(budget.path) == before


def test_a_file_that_cannot_be_written(budget: BudgetFile, monkeypatch: pytest.MonkeyPatch) -> None:
    connect = store._connect
    monkeypatch.setattr(store, "_connect", lambda path, _: connect(path, "ro"))
    refused(budget, InputError, "is read-only, and cannot be charged")


def test_a_file_in_use_is_waited_for(budget: BudgetFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "BUSY_SECONDS", 0.05)
    with opened(budget.path) as other:
        other.execute("BEGIN IMMEDIATE")
        refused(budget, InputError, "in use by another process")
        other.execute("ROLLBACK")
    budget.charge("0.1", "ug")


def test_a_failing_commit_makes_no_release(
    budget: BudgetFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that may not grow, as on a full disk."""
    connect = store._connect

    @contextmanager
    def cramped(path: Path, mode: str) -> Iterator[sqlite3.Connection]:
        with connect(path, mode) as connection:
            connection.execute("PRAGMA max_page_count = 1")  # as many as there are
            yield connection

    monkeypatch.setattr(store, "_connect", cramped)
    refused(budget, InputError, "the disk is full", label="x" * 10_000)


def test_a_charge_is_durable(budget: BudgetFile) -> None:
    with store._connect(budget.path, "rw") as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (3,)  # EXTRA
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)


@given(st.lists(st.integers(1, 10**18), max_size=20), st.integers(1, 10**18))
def test_sums_are_exact(prices: list[int], cap: int) -> None:
    """Of any prices, in Python's integers; what an account lets through never passes its cap."""
    taken: list[Entry] = []
    for number, units in enumerate(prices):
        account = Account("d", "one record", "", Epsilon(cap), "", None, tuple(taken))
        assert account.spent.units + account.left.units == cap
        fits = sum(entry.epsilon.units for entry in taken) + units <= cap
        try:
            account.check(Epsilon(units))
        except BudgetError:
            assert not fits
        else:
            assert fits
            price = Epsilon(units)
            taken.append(Entry(str(number), "", "", "", price, "one record", "pending", None, None))


def test_a_file_with_a_second_name_takes_no_charges(budget: BudgetFile, tmp_path: Path) -> None:
    """SQLite names a journal after the name that was opened: by the other one, a charge would be lost after a crash."""
    other = tmp_path / "other.sqlite"
    os.link(budget.path, other)
    for path in (budget.path, other):
        with pytest.raises(InputError, match=r"has a second name .a hard link."):
            BudgetFile(path, "pings").charge("0.1", "ug")
    assert not budget.account().entries
    other.unlink()
    other.symlink_to(budget.path)  # the journal is beside the file itself
    BudgetFile(other, "pings").charge("0.1", "ug")
    assert [str(one.epsilon) for one in budget.account().entries] == ["0.1"]
