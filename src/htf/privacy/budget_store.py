"""How accounts are kept in an SQLite file, and how damage to it is found.

A seal, the SHA-256 of every field of every row, is written in the same transaction as each change. Every
transaction, also one that only reads, first checks SQLite's own structures, the schema, the seal and the
sums. So a row that was lost, altered or added past this module is seen, and the file is refused.
Why so: docs/decisions/0008-budget-file.md.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from htf.errors import InputError
from htf.files import is_file, is_folder
from htf.privacy.account import Account, Entry
from htf.privacy.apart import is_stored
from htf.privacy.epsilon import Epsilon

FORMAT = 3  # the only one that is read: those before were of versions that were never released
APPLICATION_ID = 0x48544642  # "HTFB", by which SQLite files are told apart
BUSY_SECONDS = 30.0  # how long to wait for another process that is charging
# The second keeps other writers out from the first look on.
READ, WRITE = "BEGIN", "BEGIN IMMEDIATE"
SETTINGS = (
    # EXTRA is FULL, and after a commit also syncs the folder: else a power cut could bring back the
    # journal, and with it the state before the charge.
    "synchronous = EXTRA",
    "fullfsync = ON",
    "foreign_keys = ON",
    "cell_size_check = ON",
)

DATASET_FIELDS = "number, name, unit, relation, cap_units, cap, created, closed, told_apart"
ENTRY_FIELDS = "number, id, dataset, charged, mechanism, label, epsilon_units, epsilon, unit, state, file, sha256, withdrawn"

TABLES = (
    """CREATE TABLE dataset (
        number INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        unit TEXT NOT NULL,
        relation TEXT NOT NULL,
        cap_units INTEGER NOT NULL CHECK (typeof(cap_units) = 'integer' AND cap_units > 0),
        cap TEXT NOT NULL,
        created TEXT NOT NULL,
        closed TEXT,
        told_apart TEXT)""",
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
        state TEXT NOT NULL CHECK (state IN ('pending', 'published', 'withdrawn')),
        file TEXT,
        sha256 TEXT CHECK ((state = 'pending') = (sha256 IS NULL)),
        withdrawn TEXT CHECK ((state = 'withdrawn') = (withdrawn IS NOT NULL)))""",
    """CREATE TABLE seal (
        number INTEGER PRIMARY KEY CHECK (number = 1),
        sha256 TEXT NOT NULL)""",
)
# The triggers guard against mistakes made past this module, say in a database browser. REPLACE deletes the
# rows that are in its way, and no trigger on deletion hears of it: so rows must be new when they come.
TRIGGERS = (
    """CREATE TRIGGER budgets_are_new BEFORE INSERT ON dataset
        WHEN EXISTS (SELECT 1 FROM dataset WHERE number = new.number OR name = new.name)
        BEGIN SELECT raise(ABORT, 'a budget is never made anew'); END""",
    """CREATE TRIGGER charges_are_new BEFORE INSERT ON entry
        WHEN new.state <> 'pending'
            OR EXISTS (SELECT 1 FROM entry WHERE number = new.number OR id = new.id)
        BEGIN SELECT raise(ABORT, 'a charge is never replaced'); END""",
    """CREATE TRIGGER charges_fit BEFORE INSERT ON entry
        WHEN NOT EXISTS (SELECT 1 FROM dataset WHERE name = new.dataset AND closed IS NULL
            AND unit = new.unit AND cap_units >= new.epsilon_units
            + (SELECT coalesce(sum(epsilon_units), 0) FROM entry WHERE dataset = new.dataset))
        BEGIN SELECT raise(ABORT, 'the charge does not fit'); END""",
    """CREATE TRIGGER charges_stand BEFORE UPDATE ON entry
        WHEN (new.number, new.id, new.dataset, new.charged, new.mechanism, new.label,
                new.epsilon_units, new.epsilon, new.unit)
            IS NOT (old.number, old.id, old.dataset, old.charged, old.mechanism, old.label,
                old.epsilon_units, old.epsilon, old.unit)
            OR NOT ((old.state = 'pending' AND new.state = 'published')
                OR (old.state = 'published' AND new.state = 'withdrawn'
                    AND new.file IS old.file AND new.sha256 IS old.sha256))
        BEGIN SELECT raise(ABORT, 'a charge is never changed'); END""",
    """CREATE TRIGGER charges_stay BEFORE DELETE ON entry
        BEGIN SELECT raise(ABORT, 'a charge is never deleted'); END""",
    """CREATE TRIGGER caps_stand BEFORE UPDATE ON dataset
        WHEN (new.number, new.name, new.unit, new.relation, new.cap_units, new.cap, new.created)
            IS NOT (old.number, old.name, old.unit, old.relation, old.cap_units, old.cap, old.created)
            OR old.closed IS NOT NULL
            OR (old.told_apart IS NOT NULL AND new.told_apart IS NOT old.told_apart)
        BEGIN SELECT raise(ABORT, 'a budget is never changed'); END""",
    """CREATE TRIGGER caps_stay BEFORE DELETE ON dataset
        BEGIN SELECT raise(ABORT, 'a budget is never deleted'); END""",
    """CREATE TRIGGER seals_are_one BEFORE INSERT ON seal
        WHEN EXISTS (SELECT 1 FROM seal)
        BEGIN SELECT raise(ABORT, 'there is one seal'); END""",
    """CREATE TRIGGER seals_stay BEFORE DELETE ON seal
        BEGIN SELECT raise(ABORT, 'the seal is never deleted'); END""",
)


@dataclass(frozen=True, slots=True)
class Rows:
    """All that a budget file holds, as it is stored: datasets and entries in the order they were made."""

    datasets: list[tuple[Any, ...]]
    entries: list[tuple[Any, ...]]

    def seal(self) -> str:
        text = json.dumps([FORMAT, self.datasets, self.entries], separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Books:
    """A budget file within one transaction: its accounts, checked, and the way to write."""

    path: Path
    connection: sqlite3.Connection
    accounts: dict[str, Account]

    def account(self, dataset: str) -> Account:
        if dataset not in self.accounts:
            known = ", ".join(map(repr, self.accounts))
            raise InputError(f"{self.path} has no budget for {dataset!r}; it has {known}")
        return self.accounts[dataset]

    def execute(self, statement: str, values: tuple[Any, ...]) -> int:
        """The number of rows that it has changed."""
        return self.connection.execute(statement, values).rowcount


class Damage(InputError):
    """A budget file that is not as it was written. It is neither read nor charged."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(
            f"{path} is damaged: {what}. Restore it from a copy, and see that the copy has every "
            "release that was published since (docs/budget.md)"
        )


@contextmanager
def open_books(path: Path, begin: str = READ, *, new: bool = False) -> Iterator[Books]:
    """All or nothing."""
    _check_place(path, new, begin)
    try:
        with _connect(path, "rwc" if new else "rw") as connection:
            connection.execute(begin)
            if new and _is_empty(connection):
                _make(connection)
            _check_format(connection, path)
            yield Books(path, connection, _read_checked(connection, path))
            if begin == WRITE:
                _write_seal(connection)
            connection.execute("COMMIT")
    except sqlite3.Error as error:
        raise _as_input_error(path, error) from None
    except UnicodeDecodeError:  # SQLite quotes a damaged schema in its message
        raise Damage(path, "its schema is no text") from None


def _check_place(path: Path, new: bool, begin: str) -> None:
    if is_folder(path) or not (is_file(path) or new):
        raise InputError(f"there is no budget file {path}: `htf budget init` makes one")
    if not is_folder(path.parent):
        raise InputError(f"cannot make {path}: there is no folder {path.parent}")
    if begin == WRITE and is_file(path) and path.stat().st_nlink > 1:
        raise InputError(
            f"{path} has a second name (a hard link), by which a charge that was interrupted would not be found: remove one of "
            "the two, or copy the file"
        )


@contextmanager
def _connect(path: Path, mode: str) -> Iterator[sqlite3.Connection]:
    """Closed on every way out: since Python 3.13 it is an error to leave that to the collector."""
    address = f"{path.absolute().as_uri()}?mode={mode}"
    with closing(
        sqlite3.connect(address, uri=True, isolation_level=None, timeout=BUSY_SECONDS)
    ) as connection:
        for setting in SETTINGS:
            connection.execute(f"PRAGMA {setting}")
        yield connection


def _is_empty(connection: sqlite3.Connection) -> bool:
    return not (
        _number(connection, "SELECT count(*) FROM sqlite_master")
        or _number(connection, "PRAGMA application_id")
        or _number(connection, "PRAGMA user_version")
    )


def _make(connection: sqlite3.Connection) -> None:
    for statement in (*TABLES, *TRIGGERS):
        connection.execute(statement)
    _write_seal(connection)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {FORMAT}")


def _check_format(connection: sqlite3.Connection, path: Path) -> None:
    if _number(connection, "PRAGMA application_id") != APPLICATION_ID:
        raise InputError(f"{path} is not a budget file{OR_DAMAGED}")
    number = _number(connection, "PRAGMA user_version")
    if number > FORMAT:
        raise InputError(
            f"{path} has format {number}, and this version reads format {FORMAT} alone: upgrade htf-dp"
        )
    if number < FORMAT:
        raise InputError(
            f"{path} has format {number}, made by a version that was never released, and this one reads format {FORMAT} "
            "alone. Nothing of it was read, and what it spent stays spent: see what is left with the version that made it "
            "(`htf budget show`), and make a new file with that as its cap (`htf budget init`)"
        )


def _number(connection: sqlite3.Connection, question: str) -> int:
    return int(connection.execute(question).fetchone()[0])


def _read_checked(connection: sqlite3.Connection, path: Path) -> dict[str, Account]:
    """All accounts, once SQLite finds nothing wrong, the schema is ours and the seal is that of the rows."""
    found = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if found != ("ok",):
        raise Damage(path, f"SQLite finds {_first_line(found)}")
    if connection.execute("PRAGMA foreign_key_check").fetchone() is not None:
        raise Damage(path, "a charge is for a data set that is not there")
    _check_schema(connection, path)
    rows = _read_rows(connection)
    try:
        if connection.execute("SELECT sha256 FROM seal").fetchall() != [(rows.seal(),)]:
            raise Damage(
                path, "its rows are not those that were sealed; one was altered, lost or added"
            )
        return _accounts(path, rows)
    except (TypeError, ValueError, OverflowError):
        raise Damage(path, "a row has a value of another type") from None


def _check_schema(connection: sqlite3.Connection, path: Path) -> None:
    found = connection.execute(
        "SELECT sql FROM sqlite_master WHERE name NOT LIKE 'sqlite!_%' ESCAPE '!'"
    )
    if sorted(str(sql) for (sql,) in found) != sorted((*TABLES, *TRIGGERS)):
        raise Damage(path, "its tables or triggers were changed")


def _read_rows(connection: sqlite3.Connection) -> Rows:
    return Rows(
        connection.execute(f"SELECT {DATASET_FIELDS} FROM dataset ORDER BY 1").fetchall(),
        connection.execute(f"SELECT {ENTRY_FIELDS} FROM entry ORDER BY 1").fetchall(),
    )


def _write_seal(connection: sqlite3.Connection) -> None:
    seal = _read_rows(connection).seal()
    changed = connection.execute("UPDATE seal SET sha256 = ?", (seal,))
    if changed.rowcount == 0:
        connection.execute("INSERT INTO seal VALUES (1, ?)", (seal,))


def _accounts(path: Path, rows: Rows) -> dict[str, Account]:
    """With sums that hold, for which the seal vouches; but whoever can write the file can seal it."""
    found: dict[str, Account] = {}
    charges: dict[str, list[Entry]] = {row[1]: [] for row in rows.datasets}
    for row in rows.entries:
        charges[row[2]].append(_entry(path, row))
    for _, name, unit, relation, cap_units, cap, created, closed, told_apart in rows.datasets:
        most, own = _exact(path, cap_units, cap), tuple(charges[name])
        found[name] = Account(name, unit, relation, most, created, closed, own, told_apart)
        if not is_stored(told_apart):
            raise Damage(path, f"how {name!r} tells people apart is no JSON")
    for account in found.values():
        if any(entry.unit != account.unit for entry in account.entries):
            raise Damage(path, f"epsilons of {account.dataset!r} are for different units")
        if account.spent > account.cap:
            raise Damage(path, f"more is spent of {account.dataset!r} than its cap allows")
    return found


def _entry(path: Path, row: tuple[Any, ...]) -> Entry:
    _, id_, _, charged, mechanism, label, units, text, unit, state, file, sha256, withdrawn = row
    price = _exact(path, units, text)
    return Entry(id_, charged, mechanism, label, price, unit, state, file, sha256, withdrawn)


def _exact(path: Path, units: int, text: str) -> Epsilon:
    """An epsilon is stored twice, as a number and as text."""
    found = Epsilon(units)
    if str(found) != text:
        raise Damage(path, f"an epsilon is {found} in one place and {text} in another")
    return found


OR_DAMAGED = ", or is damaged: restore it from a copy, or make a new one with `htf budget init`"


def _as_input_error(path: Path, error: sqlite3.Error) -> InputError:
    """What SQLite found, in words. Its messages quote nothing of the data: it never sees them."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    unreadable = type(error) is sqlite3.OperationalError and code == sqlite3.SQLITE_ERROR
    if code == sqlite3.SQLITE_CORRUPT or unreadable:  # no such column, or text that is not UTF-8
        return Damage(path, f"SQLite finds {_first_line((str(error),))}")
    reason = {
        sqlite3.SQLITE_BUSY: "is in use by another process: try again",
        sqlite3.SQLITE_READONLY: "is read-only, and cannot be charged",
        sqlite3.SQLITE_CANTOPEN: "cannot be opened, or its folder does not allow writing",
        sqlite3.SQLITE_FULL: "cannot be written, the disk is full",
        sqlite3.SQLITE_IOERR: f"cannot be read or written ({error})",
        sqlite3.SQLITE_NOTADB: f"is not a budget file{OR_DAMAGED}",
    }.get(code, f"cannot be used ({error})")
    return InputError(f"{path} {reason}")


def _first_line(found: tuple[Any, ...] | None) -> str:
    """Printable, and not longer than a line: what SQLite says may quote a damaged schema."""
    text = "nothing" if found is None else str(found[0]).replace("*** in database main ***", "")
    printable = "".join(c if c.isprintable() else " " for c in text)
    return " ".join(printable.split())[:100]
