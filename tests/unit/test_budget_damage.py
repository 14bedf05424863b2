"""Budget files that were damaged or altered are refused, and those of the format before still work."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pytest

from htf import BudgetError, BudgetFile, Domain, Epsilon, FrequencyMatrix, InputError, publish
from htf.cli.main import run
from htf.privacy import budget_store as store
from htf.privacy.budget import read_accounts
from reliability.flips import HARMLESS, REFUSED, bits_of_rows, make_budget, try_flips
from support import Connections

MATRIX = FrequencyMatrix.from_dense(Domain.from_bounds(0, 0, 1, 1, 4), np.full((4, 4), 17))

# The format before, as it was written.
SCHEMA_1 = (
    """CREATE TABLE dataset (
        name TEXT PRIMARY KEY NOT NULL,
        unit TEXT NOT NULL,
        relation TEXT NOT NULL,
        cap_units INTEGER NOT NULL CHECK (typeof(cap_units) = 'integer' AND cap_units > 0),
        cap TEXT NOT NULL,
        created TEXT NOT NULL,
        closed TEXT)""",
    """CREATE TABLE entry (
        number INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        dataset TEXT NOT NULL REFERENCES dataset (name),
        charged TEXT NOT NULL,
        mechanism TEXT NOT NULL,
        label TEXT NOT NULL,
        epsilon_units INTEGER NOT NULL CHECK (typeof(epsilon_units) = 'integer' AND epsilon_units > 0),
        epsilon TEXT NOT NULL,
        unit TEXT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('pending', 'published')),
        file TEXT,
        sha256 TEXT CHECK ((state = 'published') = (sha256 IS NOT NULL)))""",
    """CREATE TRIGGER charges_fit BEFORE INSERT ON entry
        WHEN NOT EXISTS (SELECT 1 FROM dataset WHERE name = new.dataset AND closed IS NULL
            AND unit = new.unit AND cap_units >= new.epsilon_units
            + (SELECT coalesce(sum(epsilon_units), 0) FROM entry WHERE dataset = new.dataset))
        BEGIN SELECT raise(ABORT, 'the charge does not fit'); END""",
    """CREATE TRIGGER charges_stand BEFORE UPDATE ON entry
        WHEN old.state <> 'pending' OR new.number <> old.number OR new.id <> old.id
            OR new.dataset <> old.dataset OR new.epsilon_units <> old.epsilon_units
            OR new.epsilon <> old.epsilon OR new.unit <> old.unit
        BEGIN SELECT raise(ABORT, 'a charge is never changed'); END""",
    """CREATE TRIGGER charges_stay BEFORE DELETE ON entry
        BEGIN SELECT raise(ABORT, 'a charge is never deleted'); END""",
    """CREATE TRIGGER caps_stand BEFORE UPDATE ON dataset
        WHEN old.closed IS NOT NULL OR new.name <> old.name OR new.unit <> old.unit
            OR new.relation <> old.relation OR new.cap_units <> old.cap_units OR new.cap <> old.cap
        BEGIN SELECT raise(ABORT, 'a budget is never changed'); END""",
    """CREATE TRIGGER caps_stay BEFORE DELETE ON dataset
        BEGIN SELECT raise(ABORT, 'a budget is never deleted'); END""",
)


@pytest.fixture
def budget(tmp_path: Path) -> BudgetFile:
    made = BudgetFile.create(tmp_path / "budget.sqlite", "pings", "1")
    made.charge("0.4", "ug", "spring.parquet")
    made.charge("0.3", "ug", "summer.parquet")
    BudgetFile.create(tmp_path / "budget.sqlite", "trips", "1")
    return made


@contextmanager
def without_triggers(path: Path) -> Iterator[sqlite3.Connection]:
    """Rows may be changed; the schema is the same again afterwards."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        found = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
        triggers = found.fetchall()
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        yield connection
        for _, sql in triggers:
            connection.execute(sql)


def refused(budget: BudgetFile, says: str) -> None:
    """By every use of the file."""
    before = budget.path.read_bytes()
    uses: list[Callable[[], object]] = [
        lambda: BudgetFile(budget.path, "pings"),
        lambda: read_accounts(budget.path),
        lambda: budget.charge("0.01", "ug"),
        budget.close,
        lambda: BudgetFile.create(budget.path, "more", 1),
    ]
    for use in uses:
        with pytest.raises(InputError, match=says) as caught:
            use()
        assert "Restore it from a copy" in str(caught.value)
    assert budget.path.read_bytes() == before


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE entry SET dataset = 'trips' WHERE number = 1",
        "UPDATE entry SET epsilon_units = 1, epsilon = '0.000000000000001' WHERE number = 1",
        "UPDATE entry SET label = 'autumn.parquet' WHERE number = 1",
        "UPDATE entry SET charged = '2020-01-01T00:00:00+00:00' WHERE number = 1",
        "UPDATE entry SET state = 'published', file = 'x', sha256 = 'y' WHERE number = 1",
        "DELETE FROM entry WHERE number = 1",
        "DELETE FROM entry WHERE number = 2",  # the last one
        "DELETE FROM entry",
        "DELETE FROM dataset WHERE name = 'trips'",
        "UPDATE dataset SET cap_units = 9000000000000000, cap = '9'",
        "UPDATE dataset SET closed = 'today' WHERE name = 'trips'",
        "INSERT INTO dataset VALUES (7, 'more', 'one record', '', 1, '0.000000000000001', '', NULL, NULL)",
        "UPDATE seal SET sha256 = '00'",
        "DELETE FROM seal",
    ],
)
def test_a_row_that_was_altered_lost_or_added(budget: BudgetFile, change: str) -> None:
    with without_triggers(budget.path) as connection:
        connection.execute(change)
    refused(budget, "is damaged: its rows are not those that were sealed")


def test_a_charge_for_nobody(budget: BudgetFile) -> None:
    with without_triggers(budget.path) as connection:
        connection.execute("UPDATE entry SET dataset = 'pongs' WHERE number = 1")
    refused(budget, "is damaged: a charge is for a data set that is not there")


def test_other_tables_or_triggers(budget: BudgetFile) -> None:
    with closing(sqlite3.connect(budget.path, isolation_level=None)) as connection:
        connection.execute("DROP TRIGGER charges_stay")
    refused(budget, "is damaged: its tables or triggers were changed")


def test_triggers_that_were_taken_out_of_the_schema(budget: BudgetFile) -> None:
    with closing(sqlite3.connect(budget.path, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("DELETE FROM sqlite_master WHERE type = 'trigger'")
    with closing(sqlite3.connect(budget.path, isolation_level=None)) as connection:
        connection.execute("UPDATE entry SET epsilon_units = 1, epsilon = '0.000000000000001'")
    refused(budget, "is damaged: its tables or triggers were changed")


def test_pages_that_were_lost(budget: BudgetFile) -> None:
    whole = budget.path.read_bytes()
    budget.path.write_bytes(whole[:4096] + b"\0" * (len(whole) - 4096))
    refused(budget, "is damaged: SQLite finds")
    budget.path.write_bytes(whole[:8192])
    refused(budget, "is damaged: SQLite finds")


def test_a_damaged_file_on_the_command_line(
    budget: BudgetFile, capfd: pytest.CaptureFixture[str]
) -> None:
    with without_triggers(budget.path) as connection:
        connection.execute("DELETE FROM entry WHERE number = 2")
    for command in (["show"], ["check"], ["close", "--dataset", "pings"]):
        assert run(["budget", command[0], str(budget.path), *command[1:]]) == 2
        assert "is damaged: its rows are not those" in capfd.readouterr().err


def test_flipped_bits(tmp_path: Path) -> None:
    """A sample; `make reliability` tries more. Neither outcome may be all there is."""
    make_budget(tmp_path / "budget.sqlite")
    content = (tmp_path / "budget.sqlite").read_bytes()
    words = (b"pings", b"trips", b"one record", b"one person", b"HTFB")
    rows = random.Random(1).sample(bits_of_rows(content, words), 250)
    spread = range(0, 8 * len(content), 8 * 503 + 3)
    outcomes, findings = try_flips(content, [*rows, *spread, *range(160, 800, 17)], tmp_path)
    assert findings == []
    assert set(outcomes) == {REFUSED, HARMLESS}
    assert outcomes[REFUSED] > 150


def test_every_bit_of_a_charge(tmp_path: Path) -> None:
    """The name of its data set, its id and its epsilon: here a flip once took the charge out of the sum."""
    path = tmp_path / "budget.sqlite"
    made = BudgetFile.create(path, "pings", 1)
    entry = made.charge("0.8", "ug", "spring.parquet")
    content = path.read_bytes()
    start = content.index(f"{entry.id}pings{entry.charged}".encode())
    bits = range(8 * (start + 14), 8 * (start + 24))
    outcomes, findings = try_flips(content, bits, tmp_path)
    assert findings == []
    assert outcomes == {REFUSED: len(bits)}


def old_budget(path: Path) -> BudgetFile:
    """A file of format 1 with charges in both states."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in SCHEMA_1:
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {store.APPLICATION_ID}")
        connection.execute("PRAGMA user_version = 1")
        for name, closed in (("pings", None), ("trips", "2026-02-01T00:00:00+00:00")):
            connection.execute(
                "INSERT INTO dataset VALUES (?, 'one record', 'added or removed', ?, '1', '2026', ?)",
                (name, 10**15, None),
            )
            connection.execute(
                "INSERT INTO entry (id, dataset, charged, mechanism, label, epsilon_units, epsilon, unit,"
                " state) VALUES (?, ?, '2026', 'ug', 'l', ?, '0.3', 'one record', 'pending')",
                (f"id of {name}", name, 3 * 10**14),
            )
            connection.execute("UPDATE dataset SET closed = ? WHERE name = ?", (closed, name))
        connection.execute(
            "UPDATE entry SET state = 'published', file = 'f', sha256 = 'd' WHERE dataset = 'trips'"
        )
    return BudgetFile(path, "pings")


def format_of(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


def test_the_format_before_is_read_and_upgraded_by_the_next_charge(tmp_path: Path) -> None:
    budget = old_budget(tmp_path / "old.sqlite")
    before = read_accounts(budget.path)
    assert [account.spent for account in before] == [Epsilon.of("0.3")] * 2
    assert [account.closed is None for account in before] == [True, False]
    assert [entry.state for account in before for entry in account.entries] == [
        "pending",
        "published",
    ]
    with pytest.raises(BudgetError):
        budget.charge("0.8", "ug")
    assert format_of(budget.path) == 1  # what only looks, or is refused, changes nothing
    entry = budget.charge("0.7", "ug")
    assert format_of(budget.path) == store.FORMAT
    pings, trips = read_accounts(budget.path)
    assert trips == before[1]
    assert pings.entries == (*before[0].entries, entry)
    with pytest.raises(BudgetError):
        budget.charge("1e-15", "ug")
    with without_triggers(budget.path) as connection:
        connection.execute("DELETE FROM entry WHERE number = 1")
    refused(budget, "not those that were sealed")


def test_an_upgraded_file_is_like_a_new_one(tmp_path: Path) -> None:
    budget = old_budget(tmp_path / "old.sqlite")
    release = publish(MATRIX, "0.5", "ug", budget=budget)
    budget.save(release, tmp_path / "out.parquet")
    BudgetFile.create(tmp_path / "new.sqlite", "pings", 1)
    schemas = []
    for name in ("old.sqlite", "new.sqlite"):
        with closing(sqlite3.connect(tmp_path / name)) as connection:
            found = connection.execute("SELECT name, sql FROM sqlite_master ORDER BY name")
            schemas.append(found.fetchall())
    assert schemas[0] == schemas[1]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("UPDATE entry SET dataset = 'pongs'", "a data set that is not there"),
        ("UPDATE entry SET unit = 'one person'", "for different units"),
        ("UPDATE entry SET epsilon_units = 1", "in one place and 0.3 in another"),
        ("UPDATE dataset SET cap_units = 1, cap = '0.000000000000001'", "than its cap allows"),
        ("UPDATE dataset SET name = x'ff' WHERE name = 'trips'", "a data set that is not there"),
        ("CREATE TABLE seal (number, sha256)", "not the tables of a budget file"),
        ("DROP TABLE entry", "not the tables of a budget file"),
    ],
)
def test_damage_to_the_format_before_as_far_as_it_can_be_seen(
    tmp_path: Path, change: str, says: str
) -> None:
    budget = old_budget(tmp_path / "old.sqlite")
    with closing(sqlite3.connect(budget.path, isolation_level=None)) as connection:
        for (name,) in connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'trigger'"
        ).fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute(change)
    refused(budget, says)


def test_a_sealed_file_that_says_it_is_of_the_format_before(budget: BudgetFile) -> None:
    """Else the seal could be got rid of by one number in the file's head."""
    with closing(sqlite3.connect(budget.path, isolation_level=None)) as connection:
        connection.execute("PRAGMA user_version = 1")
    refused(budget, "not the tables of a budget file")


def test_connections_are_closed_on_every_way_out(
    budget: BudgetFile, tmp_path: Path, connections: Connections
) -> None:
    """Also where a PRAGMA fails at once."""
    (tmp_path / "text").write_text("no database, but long enough to be looked into" * 100)
    for path in (tmp_path / "text", tmp_path / "none", budget.path):
        with pytest.raises(InputError):
            BudgetFile(path, "songs")
    with pytest.raises(InputError):
        BudgetFile.create(tmp_path / "text", "pings", 1)
    budget.charge("0.1", "ug")
    assert connections.made >= 4
    assert connections.left_open == 0


@pytest.mark.parametrize("unit", ["record", "person", "", "one household", None, 1])
def test_units_are_known_ones(tmp_path: Path, unit: str) -> None:
    with pytest.raises(
        InputError, match=r"the unit must be 'one record' or 'one person' or .*, got"
    ):
        BudgetFile.create(tmp_path / "budget.sqlite", "pings", 1, unit=unit)
    assert not (tmp_path / "budget.sqlite").exists()
