"""Budget files that were damaged or altered are refused, and so are those of other formats."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pytest

from htf import BudgetFile, Domain, FrequencyMatrix, InputError
from htf.cli.main import run
from htf.privacy import budget_store as store
from htf.privacy.budget import read_accounts
from reliability.flips import HARMLESS, REFUSED, bits_of_rows, make_budget, try_flips
from support import Connections

MATRIX = FrequencyMatrix.from_dense(Domain.from_bounds(0, 0, 1, 1, 4), np.full((4, 4), 17))


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


@pytest.mark.parametrize("number", [1, 2, store.FORMAT + 1])
def test_files_of_other_formats_are_refused(budget: BudgetFile, number: int) -> None:
    """With what to do, and never read as unspent. No use of the file changes it."""
    with closing(sqlite3.connect(budget.path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA user_version = {number}")
    before = budget.path.read_bytes()
    remedy = "upgrade htf-dp" if number > store.FORMAT else "make a new file with that as its cap"
    for use in (
        lambda: BudgetFile(budget.path, "pings"),
        lambda: read_accounts(budget.path),
        lambda: budget.charge("0.01", "ug"),
        lambda: BudgetFile.create(budget.path, "more", 1),
    ):
        with pytest.raises(InputError, match=f"has format {number}, .* reads format") as caught:
            use()
        assert remedy in str(caught.value)
    assert budget.path.read_bytes() == before


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
