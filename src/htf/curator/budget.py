"""A budget that lasts over several releases of the same data: an SQLite file.

A release is charged before its first noise is drawn, in one durable transaction. So whatever fails
afterwards, what the file says was spent is never less than what was published. Nothing is refunded.

The file holds what the curator decided (cap, epsilon, mechanism, label, name of the output), when a
charge was made, and the digest of what was published. Nothing else: no count, bound or path of the
data, and not how long a release took. Why so: docs/decisions/0008-budget-file.md.
"""

from __future__ import annotations

import hashlib
import secrets
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from htf.epsilon import Epsilon
from htf.errors import BudgetError, InputError, OutputError
from htf.files import check_name, check_regular, is_same
from htf.protection import OF_RECORDS, Suggestion, price_of_records, suggested_at

if TYPE_CHECKING:
    from htf.release import Release

FORMAT = 1
APPLICATION_ID = 0x48544642  # "HTFB", by which SQLite files are told apart
BUSY_SECONDS = 30.0  # how long to wait for another process that is charging
LONGEST_NAME = 200
ONE_RECORD = OF_RECORDS.name
ADD_OR_REMOVE = "added or removed"  # the neighbouring relation of every unit
SUGGESTION, BY_HAND = "max-records", "measurements"  # what is charged and is no mechanism
JOURNALS = ("-journal", "-wal", "-shm")
PENDING, PUBLISHED = "pending", "published"

# The triggers guard against mistakes made past this module, say in a database browser.
SCHEMA = (
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


@dataclass(frozen=True, slots=True)
class Entry:
    """One charge. It stays pending until its release has been written."""

    id: str
    charged: str  # when, in UTC
    mechanism: str
    label: str
    epsilon: Epsilon
    unit: str
    state: str
    file: str | None  # the name of what was published, without its folder
    sha256: str | None

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "epsilon": str(self.epsilon), "epsilon_units": self.epsilon.units}


@dataclass(frozen=True, slots=True)
class Account:
    """The budget of one data set, and what was charged to it."""

    dataset: str
    unit: str
    relation: str
    cap: Epsilon
    created: str
    closed: str | None
    entries: tuple[Entry, ...]

    @property
    def spent(self) -> Epsilon:
        return _total(self.entries)

    @property
    def left(self) -> Epsilon:
        return Epsilon(max(self.cap.units - self.spent.units, 0))

    @property
    def pending(self) -> tuple[Entry, ...]:
        """Charges whose release is being made, or was broken off. They count like the others."""
        return tuple(entry for entry in self.entries if entry.state == PENDING)

    def check(self, epsilon: Epsilon, unit: str = ONE_RECORD) -> None:
        """Refuse a charge that does not fit."""
        if unit != self.unit:
            raise InputError(
                f"{self.dataset!r} counts epsilon for {self.unit}, and this is a charge for {unit}: "
                "epsilons of different units do not add up. Keep to one unit for all releases of these "
                "data; docs/budget.md says what it means to use both. Nothing was charged"
            )
        if self.closed is not None:
            raise BudgetError(f"{self.dataset!r} was closed on {self.closed}: no more is released")
        if epsilon > self.left:
            waiting = _total(self.pending)
            of_it = f", {waiting} of it by charges that are pending" if waiting.units else ""
            raise BudgetError(
                f"epsilon {epsilon} is more than what is left for {self.dataset!r}: {self.left} of "
                f"{self.cap} ({self.spent} is spent{of_it}). Nothing was charged"
            )

    def to_dict(self) -> dict[str, Any]:
        exact = {name: getattr(self, name) for name in ("cap", "spent", "left")}
        return {
            "dataset": self.dataset,
            "unit": self.unit,
            "relation": self.relation,
            **{name: str(value) for name, value in exact.items()},
            **{f"{name}_units": value.units for name, value in exact.items()},
            "created": self.created,
            "closed": self.closed,
            "entries": [entry.to_dict() for entry in self.entries],
        }


class BudgetFile:
    """The account of one data set in a budget file. Any number of processes may use it at once."""

    __slots__ = ("dataset", "path")

    def __init__(self, path: str | Path, dataset: str) -> None:
        """An account that is there already; `create` makes one."""
        self.path, self.dataset = Path(path), dataset
        self.account()

    def __repr__(self) -> str:
        return f"BudgetFile({str(self.path)!r}, {self.dataset!r})"

    @classmethod
    def create(
        cls,
        path: str | Path,
        dataset: str,
        cap: Epsilon | str | int | float | Decimal | Fraction,
        *,
        unit: str = ONE_RECORD,
    ) -> BudgetFile:
        """A new account, in a new file or beside other accounts. Its cap is final."""
        path, most = Path(path), Epsilon.of(cap)
        check_regular(path)
        _check_name(dataset)
        with _transaction(path, new=True) as connection:
            taken = [row[0] for row in connection.execute("SELECT name FROM dataset")]
            if dataset.casefold() in (name.casefold() for name in taken):
                raise InputError(
                    f"{path} has a budget for {dataset!r} already, and a budget is never made anew: "
                    f"see `htf budget show {path.name}`"
                )
            row = (dataset, unit, ADD_OR_REMOVE, most.units, str(most), _now())
            connection.execute("INSERT INTO dataset VALUES (?, ?, ?, ?, ?, ?, NULL)", row)
        return cls(path, dataset)

    def account(self) -> Account:
        """What was spent up to now, and on what."""
        with _transaction(self.path, "BEGIN") as connection:
            return _read_account(connection, self.path, self.dataset)

    def charge(
        self,
        epsilon: Epsilon | str | int | float | Decimal | Fraction,
        mechanism: str,
        label: str = "",
        *,
        unit: str = ONE_RECORD,
    ) -> Entry:
        """Enter a charge, for good, or raise and leave everything as it was."""
        price = Epsilon.of(epsilon)
        entry = Entry(
            secrets.token_hex(8), _now(), mechanism, label, price, unit, PENDING, None, None
        )
        row = (
            entry.id, self.dataset, entry.charged, mechanism, label, price.units, str(price), unit, PENDING,
        )  # fmt: skip
        with _transaction(self.path) as connection:
            _read_account(connection, self.path, self.dataset).check(price, unit)
            connection.execute(
                "INSERT INTO entry (id, dataset, charged, mechanism, label, epsilon_units, epsilon,"
                " unit, state) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                row,
            )
        return entry

    def save(self, release: Release, path: str | Path, *, overwrite: bool = False) -> Entry:
        """Write a release that was charged here, and enter it as published, with its SHA-256."""
        from htf.release_file import save

        path = Path(path)
        self.check_output(path)
        entry = self._waiting(release.budget_entry)
        with still_charged(lambda: entry.id, entry.epsilon):
            save(release, path, overwrite=overwrite, budget=self)
            try:
                self._publish([entry, *self._waiting_suggestion(release)], path)
            except InputError as error:
                raise InputError(
                    f"{path} was written, but its charge could not be entered as published: {error}. Enter "
                    "it with `htf budget publish`"
                ) from None
        return self._find(entry.id)

    def publish(self, id_: str, path: str | Path) -> Entry:
        """Enter a release as published that was written, and then something broke before its entry.

        Nothing is refunded by this. It is refused for a file that cannot be what was charged.
        """
        from htf.release import Release
        from htf.verification import verify

        path, entry = Path(path), self._waiting(id_)
        release = Release.load(path)
        wrong = [check.name for check in verify(path) if not check.passed]
        if wrong:
            raise InputError(
                f"{path} does not hold together: {', '.join(wrong)}. Nothing was entered"
            )
        check_adds_up(release.private, release.parameters)
        _check_charged_for(release, entry, path)
        digest = _digest(path)
        for other in self.account().entries:
            if other.sha256 == digest and (other.mechanism == SUGGESTION) == (
                entry.mechanism == SUGGESTION
            ):
                raise InputError(
                    f"{path} was entered already, as entry {other.id}. Nothing was entered"
                )
        self._publish([entry], path)
        return self._find(id_)

    def check_suggestion(self, suggestion: Suggestion) -> None:
        """Refuse one that was not charged here: its epsilon would be missing from the sum."""
        charged = suggestion.budget_entry, SUGGESTION, suggestion.epsilon
        if charged in [(e.id, e.mechanism, e.epsilon) for e in self.account().entries]:
            return
        raise InputError(
            f"the suggestion of {suggestion.max_records} records was not charged to {self.dataset!r} in "
            f"{self.path}, and the release would be charged without it: make it with this budget"
        )

    def close(self) -> Account:
        """No more charges, ever."""
        with _transaction(self.path) as connection:
            account = _read_account(connection, self.path, self.dataset)
            if account.closed is None:
                row = (_now(), self.dataset)
                connection.execute("UPDATE dataset SET closed = ? WHERE name = ?", row)
        return self.account()

    def may_overwrite(self, path: Path) -> None:
        """Refuse to overwrite what was charged to a budget and cannot be made again."""
        from htf.release_file import charged_entry

        listed = {entry.sha256 for entry in self.account().entries}
        if charged_entry(path) is not None or _digest(path) in listed:
            raise OutputError(f"cannot overwrite {path}: a budget was charged for it")

    def check_output(self, path: Path) -> None:
        """Refuse to write a release over the budget file, or over a journal that SQLite keeps for it."""
        check_name(path)
        ours = self.path.resolve()
        journals = {ours.with_name(ours.name + end) for end in JOURNALS}
        if path.resolve() in journals or is_same(path, ours):
            raise InputError(f"cannot write {path}: it is part of the budget file")

    def _publish(self, entries: list[Entry], path: Path) -> None:
        """All of them have been published in this one file."""
        digest = _digest(path)
        with _transaction(self.path) as connection:
            for entry in entries:
                changed = connection.execute(
                    "UPDATE entry SET state = ?, file = ?, sha256 = ? WHERE id = ?",
                    (PUBLISHED, path.name, digest, entry.id),
                )
                if changed.rowcount != 1:
                    raise InputError(f"{self.path} has no entry {entry.id} any more")

    def _waiting_suggestion(self, release: Release) -> list[Entry]:
        """The charge of what led to the release, unless an earlier release has published it."""
        if release.suggestion is None:
            return []
        return [e for e in self.account().pending if e.id == release.suggestion.budget_entry]

    def _waiting(self, id_: str | None) -> Entry:
        if id_ is None:
            raise InputError("this release was charged to no budget file: publish it with `ledger`")
        entry = self._find(id_)
        if entry.state != PENDING:
            raise InputError(f"the release of entry {id_} was published already, as {entry.file}")
        return entry

    def _find(self, id_: str) -> Entry:
        for entry in self.account().entries:
            if entry.id == id_:
                return entry
        raise InputError(f"{self.path} has no entry {id_} for {self.dataset!r}")


def read_accounts(path: str | Path) -> list[Account]:
    """All accounts of a budget file, in the order in which they were made."""
    path = Path(path)
    with _transaction(path, "BEGIN") as connection:
        return [_read_account(connection, path, name) for name in _names(connection)]


def _check_charged_for(release: Release, entry: Entry, path: Path) -> None:
    """Refuse a release that is not what this entry can have been charged for."""
    if entry.mechanism == SUGGESTION:
        found, mechanism = suggested_at(release.suggestion), SUGGESTION
    else:
        found, mechanism = price_of_records(release.epsilon, release.suggestion), release.mechanism
    same = (entry.epsilon, entry.unit) == (found, release.protection.name)
    if not (same and entry.mechanism in (mechanism, BY_HAND)):
        raise InputError(
            f"{path} is not what entry {entry.id} was charged for: that is epsilon {entry.epsilon} for "
            f"{entry.unit} by {entry.mechanism}, the file has {found} for {release.protection.name} by "
            f"{mechanism}. Nothing was entered"
        )


def check_adds_up(private: bool, parameters: Mapping[str, Any]) -> None:
    """Refuse releases that an epsilon does not fully account for."""
    if not private:
        raise InputError(
            "seeded or scripted noise hides nothing, and is not for a budget file: leave the file out "
            "for tests. Nothing was charged"
        )
    if parameters.get("public_total") is not None:
        raise InputError(
            "public_total discloses the number of records exactly, which no epsilon accounts for and "
            "no budget file can add up: leave one of them out. Nothing was charged"
        )


@contextmanager
def still_charged(charged: Callable[[], str | None], epsilon: Epsilon) -> Iterator[None]:
    """Whatever goes wrong after the charge says that it stands."""
    try:
        yield
    except BaseException as error:
        if (entry := charged()) is not None:
            error.add_note(f"The charge of {epsilon} stands, as entry {entry} of the budget file.")
        raise


@contextmanager
def _transaction(
    path: Path, begin: str = "BEGIN IMMEDIATE", *, new: bool = False
) -> Iterator[sqlite3.Connection]:
    """All or nothing. `BEGIN IMMEDIATE` keeps other writers out from the first look on."""
    if path.is_dir() or not (path.is_file() or new):
        raise InputError(f"there is no budget file {path}: `htf budget init` makes one")
    if not path.parent.is_dir():
        raise InputError(f"cannot make {path}: there is no folder {path.parent}")
    try:
        with closing(_connect(path, "rwc" if new else "rw")) as connection:
            connection.execute(begin)
            if not (new and _make_tables(connection)):
                _check_format(connection, path)
            yield connection
            connection.execute("COMMIT")
    except sqlite3.Error as error:
        raise InputError(f"{path} {_reason(error)}") from None


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    """EXTRA is FULL, and after a commit also syncs the folder: else a power cut could bring back the
    journal, and with it the state before the charge."""
    address = f"{path.absolute().as_uri()}?mode={mode}"
    connection = sqlite3.connect(address, uri=True, isolation_level=None, timeout=BUSY_SECONDS)
    for setting in ("synchronous = EXTRA", "fullfsync = ON", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {setting}")
    return connection


def _make_tables(connection: sqlite3.Connection) -> bool:
    """Whether the file was empty, and is now a budget file."""
    if connection.execute("SELECT count(*) FROM sqlite_master").fetchone() != (0,):
        return False
    if _pragma(connection, "application_id") or _pragma(connection, "user_version"):
        return False
    for statement in SCHEMA:
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {FORMAT}")
    return True


def _check_format(connection: sqlite3.Connection, path: Path) -> None:
    if _pragma(connection, "application_id") != APPLICATION_ID:
        raise InputError(f"{path} is not a budget file: `htf budget init` makes one")
    number = _pragma(connection, "user_version")
    if number != FORMAT:
        raise InputError(
            f"{path} has format {number}, and this version knows format {FORMAT}: upgrade htf-dp"
        )


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _names(connection: sqlite3.Connection) -> list[str]:
    return [row[0] for row in connection.execute("SELECT name FROM dataset ORDER BY rowid")]


def _read_account(connection: sqlite3.Connection, path: Path, dataset: str) -> Account:
    found = connection.execute(
        "SELECT name, unit, relation, cap_units, cap, created, closed FROM dataset WHERE name = ?",
        (dataset,),
    ).fetchone()
    if found is None:
        known = ", ".join(map(repr, _names(connection)))
        raise InputError(f"{path} has no budget for {dataset!r}; it has {known}")
    name, unit, relation, cap_units, cap, created, closed = found
    rows = connection.execute(
        "SELECT id, charged, mechanism, label, epsilon_units, epsilon, unit, state, file, sha256"
        " FROM entry WHERE dataset = ? ORDER BY number",
        (dataset,),
    )
    entries = tuple(
        Entry(id_, charged, mechanism, label, _exact(path, units, text), *rest)
        for id_, charged, mechanism, label, units, text, *rest in rows.fetchall()
    )
    return Account(name, unit, relation, _exact(path, cap_units, cap), created, closed, entries)


def _exact(path: Path, units: int, text: str) -> Epsilon:
    """An epsilon is stored twice; a file in which the two differ was tampered with or is damaged."""
    found = Epsilon(units)
    if str(found) != text:
        raise InputError(
            f"{path} is damaged: an epsilon is {found} in one place and {text} in another"
        )
    return found


def _total(entries: tuple[Entry, ...]) -> Epsilon:
    return Epsilon(sum(entry.epsilon.units for entry in entries))


def _check_name(dataset: str) -> None:
    if not (
        dataset.strip() == dataset and dataset.isprintable() and 0 < len(dataset) <= LONGEST_NAME
    ):
        raise InputError(
            f"a data set needs a name of 1 to {LONGEST_NAME} printable characters, got {dataset!r}"
        )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _digest(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _reason(error: sqlite3.Error) -> str:
    """What SQLite found, in words. Its messages quote nothing of the data: it never sees them."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    nothing = "Nothing is released without a charge"
    return {
        sqlite3.SQLITE_BUSY: f"is in use by another process: try again. {nothing}",
        sqlite3.SQLITE_READONLY: f"is read-only, and cannot be charged. {nothing}",
        sqlite3.SQLITE_CANTOPEN: f"cannot be opened, or its folder does not allow writing. {nothing}",
        sqlite3.SQLITE_FULL: f"cannot be written, the disk is full. {nothing}",
        sqlite3.SQLITE_IOERR: f"cannot be read or written ({error}). {nothing}",
        sqlite3.SQLITE_NOTADB: "is not a budget file: `htf budget init` makes one",
        sqlite3.SQLITE_CORRUPT: f"is damaged ({error}). {nothing}",
    }.get(code, f"cannot be used ({error}). {nothing}")
