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
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from htf.base import arguments
from htf.errors import InputError
from htf.files import check_name, check_regular, is_file, is_same
from htf.privacy.account import ONE_RECORD, PENDING, PUBLISHED, UNITS, WITHDRAWN, Account, Entry
from htf.privacy.apart import UNSAID, ToldApart, as_stored, check_told_apart
from htf.privacy.budget_store import READ, WRITE, Books, open_books
from htf.privacy.epsilon import Epsilon, EpsilonLike
from htf.privacy.protection import price_of_map
from htf.privacy.purchases import MEASURED, MEASURED_BY_KIND, Measured

if TYPE_CHECKING:
    from htf.release.release import Release

LONGEST_NAME = 200
ADD_OR_REMOVE = "added or removed"  # the neighbouring relation of every unit
BY_HAND = "measurements"  # what is charged and is no mechanism
JOURNALS = ("-journal", "-wal", "-shm")
FOUND, CHANGED, MISSING = "found", "changed", "missing"  # what became of a published file


class BudgetFile:
    """The account of one data set in a budget file, which adds up the epsilon of several releases.

    Any number of processes may use the file at once. Give the account to `publish`: it is charged
    before any noise is drawn, and nothing is ever refunded.

    Parameters
    ----------
    path : str or Path
        The budget file. `create` makes one.
    dataset : str
        The name of the data in that file.

    Raises
    ------
    InputError
        If the file or the account is not there.

    Examples
    --------
    >>> import htf
    >>> pings = htf.BudgetFile.create("budget.sqlite", "pings", cap=2)
    >>> pings = htf.BudgetFile("budget.sqlite", "pings")
    >>> domain = htf.Domain.from_bounds(0, 0, 2, 2, cells=2)
    >>> matrix = htf.FrequencyMatrix.from_dense(domain, [[500, 20], [0, 30]])
    >>> release = htf.publish(matrix, epsilon="0.5", budget=pings, label="June")
    >>> pings.save(release, "june.parquet").state
    'published'
    >>> str(pings.account().left)
    '1.5'
    """

    __slots__ = ("_resumed", "after_failure", "attempts", "dataset", "path")

    def __init__(self, path: str | Path, dataset: str) -> None:
        """Open an account that is there already."""
        self.path = arguments.path(path, "the budget file")
        self.dataset = arguments.text(dataset, "dataset")
        # By this object, whether they went through or not: the file tells. An interruption may come just
        # when a charge is on the disk, before anybody has been given its entry.
        self.attempts: list[Entry] = []
        self._resumed: list[Entry] = []
        self.after_failure = ""  # what to do about a charge without a release, if not the usual
        self.account()

    def __repr__(self) -> str:
        return f"BudgetFile({str(self.path)!r}, {self.dataset!r})"

    @classmethod
    def create(
        cls, path: str | Path, dataset: str, cap: EpsilonLike, *, unit: str = ONE_RECORD
    ) -> BudgetFile:
        """Make an account, in a new file or beside other accounts. Its cap is final.

        Parameters
        ----------
        path : str or Path
            The budget file.
        dataset : str
            The name of the data.
        cap : Epsilon, str, int, float, Decimal or Fraction
            The most that all releases together may spend.
        unit : {"one record", "one person", "one person in one day", …}
            What an epsilon protects.

        Returns
        -------
        BudgetFile
            The account.

        Raises
        ------
        InputError
            If the account is there already, or an argument is wrong.

        Examples
        --------
        >>> htf.BudgetFile.create("budget.sqlite", "riders", cap=1, unit="one person")
        BudgetFile('budget.sqlite', 'riders')
        """
        path, most = arguments.path(path, "the budget file"), Epsilon.of(cap)
        check_regular(path)
        _check_name(dataset)
        if not isinstance(unit, str) or unit not in UNITS:
            raise arguments.unfit("the unit", " or ".join(map(repr, UNITS)), unit)
        with open_books(path, WRITE, new=True) as books:
            if _as_read(dataset) in map(_as_read, books.accounts):
                raise InputError(
                    f"{path} already has a budget for {dataset!r}, and a budget is never replaced: "
                    f"see `htf budget show {path.name}`"
                )
            books.execute(
                "INSERT INTO dataset (name, unit, relation, cap_units, cap, created)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                (dataset, unit, ADD_OR_REMOVE, most.units, str(most), _now()),
            )
        return cls(path, dataset)

    def account(self) -> Account:
        """Read what was spent up to now, and on what.

        Returns
        -------
        Account
            The account as it is in the file.

        Raises
        ------
        InputError
            If the file cannot be read.

        Examples
        --------
        >>> [entry.label for entry in pings.account().entries]
        ['June']
        """
        with open_books(self.path, READ) as books:
            return books.account(self.dataset)

    def charge(
        self,
        epsilon: EpsilonLike,
        mechanism: str,
        label: str = "",
        *,
        unit: str = ONE_RECORD,
        told_apart: ToldApart | None = None,
    ) -> Entry:
        """Enter a charge for good, or raise and leave everything as it was.

        `publish` does this for you. A commit may fail after it is done, for example while the folder is
        synced. Then the error says that the charge stands, and nothing is released for it.

        Parameters
        ----------
        epsilon : Epsilon, str, int, float, Decimal or Fraction
            What to charge.
        mechanism : str
            What it is charged for.
        label : str
            What to call the charge.
        unit : {"one record", "one person", "one person in one day", …}
            What the epsilon protects.
        told_apart : ToldApart, optional
            By which columns people and their periods are told apart. The first charge to an account of people notes it.

        Returns
        -------
        Entry
            The charge, pending.

        Raises
        ------
        InputError
            If the account counts another unit, or tells units apart in another way, or an argument is wrong.
        BudgetError
            If too little is left, or the account is closed.

        Examples
        --------
        >>> pings.charge("0.25", "htf", "a test").state
        'pending'
        """
        price = Epsilon.of(epsilon)
        for given, what in ((mechanism, "mechanism"), (label, "label"), (unit, "the unit")):
            arguments.text(given, what)
        check_told_apart(told_apart)
        if self._resumed:
            self.account().check_told_apart(told_apart)
        if (pending := self._taken_up(price, mechanism, label, unit)) is not None:
            with open_books(self.path, WRITE) as books:  # the run before may not have said it
                _note(books, books.account(self.dataset), told_apart)
            return pending
        entry = Entry(secrets.token_hex(8), _now(), mechanism, _storable(label), price, unit)
        entering = False
        try:
            with open_books(self.path, WRITE) as books:
                account = books.account(self.dataset)
                account.check(price, unit)
                account.check_told_apart(told_apart)
                entering = True
                self.attempts.append(entry)
                _note(books, account, told_apart)
                books.execute(
                    "INSERT INTO entry (id, dataset, charged, mechanism, label, epsilon_units, epsilon,"
                    " unit, state) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (entry.id, self.dataset, entry.charged, mechanism, entry.label, price.units,
                        str(price), unit, PENDING),
                )  # fmt: skip
        except BaseException as error:
            error.add_note(self.what_became(entry) if entering else _not_charged(price))
            raise
        return entry

    def resume(self, entries: Sequence[Entry]) -> None:
        """Take up pending charges: the next charges that equal them are not entered again.

        This is for a run that was interrupted after it was charged. It is sound only if nothing was seen of what that run
        had drawn: then only one release comes of the charge (docs/proofs/series.md).

        Parameters
        ----------
        entries : sequence of Entry
            Pending charges of this account.

        Raises
        ------
        InputError
            If a charge is not pending.

        Examples
        --------
        >>> entry = pings.charge("0.25", "htf", "May")
        >>> again = htf.BudgetFile("budget.sqlite", "pings")
        >>> again.resume([entry])
        >>> again.charge("0.25", "htf", "May") == entry
        True
        """
        self._resumed = [self._waiting(entry.id) for entry in entries]

    @property
    def resumes(self) -> bool:
        """Whether charges wait to be taken up."""
        return bool(self._resumed)

    def _taken_up(self, price: Epsilon, mechanism: str, label: str, unit: str) -> Entry | None:
        """The pending charge that a new one equals, once."""
        wanted = price, mechanism, _storable(label), unit
        for entry in self._resumed:
            if (entry.epsilon, entry.mechanism, entry.label, entry.unit) == wanted:
                self._resumed.remove(entry)
                self.attempts.append(entry)
                return self._waiting(entry.id)
        if self._resumed:
            told = self._resumed[0]
            raise InputError(
                f"the run that is taken up was charged {told.epsilon} for {told.mechanism}, and this one would be charged "
                f"{price} for {mechanism}: give the same options as then. Nothing was charged now"
            )
        return None

    def save(self, release: Release, path: str | Path, *, overwrite: bool = False) -> Entry:
        """Write a release that was charged here, and enter it as published, with its SHA-256.

        Parameters
        ----------
        release : Release
            The release.
        path : str or Path
            Where to write it.
        overwrite : bool
            Whether a file of that name may be replaced.

        Returns
        -------
        Entry
            The charge, published.

        Raises
        ------
        InputError
            If the release was not charged here, or the file cannot be written.

        Examples
        --------
        >>> release = htf.publish(matrix, epsilon="0.5", budget=pings, label="July")
        >>> pings.save(release, "july.parquet").file
        'july.parquet'
        """
        from htf.release.file import save
        from htf.release.release import Release

        arguments.instance(release, Release, "release", "make one with htf.publish")
        path = arguments.path(path, "the output")
        arguments.flag(overwrite, "overwrite")
        ours = [entry for entry in self.attempts if entry.id == release.budget_entry]
        with still_charged(self, *ours):
            self.check_output(path)
            entry = self._waiting(release.budget_entry)
            save(release, path, overwrite=overwrite, budget=self)
            return self._enter_written(entry, release, path)

    def publish(self, id_: str, path: str | Path) -> Entry:
        """Enter a release that was written, after something broke before it could be entered.

        Nothing is refunded by this. It is refused for a file that cannot be what was charged.

        Parameters
        ----------
        id_ : str
            The id of the pending entry.
        path : str or Path
            The file of the release.

        Returns
        -------
        Entry
            The charge, published.

        Raises
        ------
        InputError
            If the file does not belong to the entry.

        Examples
        --------
        >>> release = htf.publish(matrix, epsilon="0.5", budget=pings)
        >>> release.save("august.parquet")
        >>> pings.publish(release.budget_entry, "august.parquet").state
        'published'
        """
        from htf.release.release import Release
        from htf.verification import verify

        path, entry = arguments.path(path, "the release"), self._waiting(_check_id(id_))
        release = Release.load(path)
        wrong = [check.name for check in verify(path) if not check.passed]
        if wrong:
            raise InputError(f"{path} is inconsistent: {', '.join(wrong)}. Nothing was entered")
        check_adds_up(release.private, release.parameters)
        _check_charged_for(release, entry, path)
        digest = digest_of(path)
        for other in self.account().entries:
            if other.sha256 == digest and _paid_for(other, release) == _paid_for(entry, release):
                raise InputError(
                    f"{path} was entered already, as entry {other.id}. Nothing was entered"
                )
        beside = [] if _paid_for(entry, release) else self._waiting_bought(release)
        return self._publish([entry, *beside], path, digest)

    def withdraw(self, id_: str) -> Entry:
        """Enter that a published file is withdrawn, and may be deleted or overwritten.

        Nothing is refunded: others have seen it. What was bought for the file goes with it.

        Parameters
        ----------
        id_ : str
            The id of the published entry.

        Returns
        -------
        Entry
            The charge, withdrawn.

        Raises
        ------
        InputError
            If nothing was published under this id, or it was withdrawn already.

        Examples
        --------
        >>> pings.withdraw(pings.account().entries[0].id).state
        'withdrawn'
        """
        now = _now()
        _check_id(id_)
        with open_books(self.path, WRITE) as books:
            found = _find(books.account(self.dataset), id_, self.path)
            if found.state == PENDING:
                raise InputError(
                    f"entry {id_} is pending: nothing was published that could be withdrawn. If its "
                    "release was written, enter it with `htf budget publish` first"
                )
            if found.state == WITHDRAWN:
                raise InputError(f"entry {id_} was withdrawn already, on {found.withdrawn}")
            books.execute(
                "UPDATE entry SET state = ?, withdrawn = ? WHERE dataset = ? AND sha256 = ? AND state = ?",
                (WITHDRAWN, now, self.dataset, found.sha256, PUBLISHED),
            )
        return replace(found, state=WITHDRAWN, withdrawn=now)

    def check_bought(self, bought: Measured) -> None:
        """Refuse what was not charged here, such as an activity: its epsilon would be missing from the sum.

        Parameters
        ----------
        bought : Activity, DistinctCounts or Clipped
            What was measured before the map.

        Raises
        ------
        InputError
            If it was not charged to this account.

        Examples
        --------
        >>> riders = htf.BudgetFile.create("budget.sqlite", "guests", cap=1, unit="one person")
        >>> people = htf.RecordsPerPerson([500, 300, 150, 40, 10])
        >>> activity = htf.measure_activity(people, "0.1", budget=riders)
        >>> riders.check_bought(activity)
        """
        if not isinstance(bought, MEASURED):
            kinds = " or ".join(kind.__name__ for kind in MEASURED)
            raise arguments.unfit("what was bought before the map", kinds, bought)
        charged = bought.budget_entry, bought.charged_as, bought.epsilon
        if charged in [(e.id, e.mechanism, e.epsilon) for e in self.account().entries]:
            return
        raise InputError(
            f"{bought.name} was not charged to {self.dataset!r} in {self.path}, and the release would "
            "be charged without it: measure it with this budget"
        )

    def close(self) -> Account:
        """Close the account: no more charges, ever.

        Returns
        -------
        Account
            The account, closed.

        Raises
        ------
        InputError
            If the file cannot be written.

        Examples
        --------
        >>> pings.close().closed is None
        False
        """
        with open_books(self.path, WRITE) as books:
            account = books.account(self.dataset)
            if account.closed is None:
                account = replace(account, closed=_now())
                books.execute(
                    "UPDATE dataset SET closed = ? WHERE name = ?", (account.closed, self.dataset)
                )
        return account

    def check_output(self, path: Path) -> None:
        """Refuse to write a release over the budget file, or over a journal that SQLite keeps for it.

        Parameters
        ----------
        path : Path
            Where a release is to be written.

        Raises
        ------
        InputError
            If that is part of the budget file.

        Examples
        --------
        >>> from pathlib import Path
        >>> pings.check_output(Path("september.parquet"))
        """
        path = arguments.path(path, "the output")
        check_name(path)
        ours = self.path.resolve()
        journals = {ours.with_name(ours.name + end) for end in JOURNALS}
        if path.resolve() in journals or is_same(path, ours):
            raise InputError(f"cannot write {path}: it is part of the budget file")

    def may_overwrite(self, path: str | Path) -> None:
        """Refuse to overwrite what was charged to a budget and cannot be made again.

        That is a file which any account of this budget file lists as published, and a release that names
        its charge. It may be overwritten once its entry is withdrawn.

        Parameters
        ----------
        path : str or Path
            The file.

        Raises
        ------
        InputError
            If it must not be overwritten.

        Examples
        --------
        >>> pings.may_overwrite("september.parquet")
        """
        from htf.release.file import charged_entry, is_release

        path = arguments.path(path, "the output")
        if not path.is_file():
            return
        digest, named = digest_of(path), charged_entry(path)
        accounts = read_accounts(self.path)
        listed = [
            (a, e) for a in accounts for e in a.entries if named == e.id or digest == e.sha256
        ]
        for account, entry in listed:
            if entry.state != WITHDRAWN:
                raise InputError(
                    f"cannot overwrite {path}: {account.dataset!r} was charged {entry.epsilon} for it, as "
                    f"entry {entry.id}, and it cannot be made again. Take another name; or, to give it up: "
                    f"`htf budget withdraw {quote(str(self.path))} --dataset {quote(account.dataset)} "
                    f"--entry {entry.id}`"
                )
        if not listed and not is_release(path):
            self._check_not_damaged(path, accounts)
        if named is not None and not listed:
            raise InputError(
                f"cannot overwrite {path}: it was charged to a budget as entry {named}, which is not in "
                f"{self.path}. Take another name"
            )

    def _check_not_damaged(self, path: Path, accounts: Iterable[Account]) -> None:
        """Refuse what has the name of a published file and is no release: perhaps it was one."""
        for entry in (entry for account in accounts for entry in account.entries):
            if (entry.state, entry.file) == (PUBLISHED, path.name):
                raise InputError(
                    f"cannot overwrite {path}: entry {entry.id} was published under this name, and what is there now is "
                    f"no release. If it is damaged, restore it from a copy (`htf budget check {quote(str(self.path))}`); "
                    "if it is something else, move it away, or take another name"
                )

    def _enter_written(self, entry: Entry, release: Release, path: Path) -> Entry:
        """Enter a release that is on the disk. Whatever fails here says so."""
        try:
            together = [entry, *self._waiting_bought(release)]
            return self._publish(together, path, digest_of(path))
        except InputError as error:
            usual = (
                f"If `htf budget show` lists it as pending, enter it: `htf budget publish {quote(self.path.name)} "
                f"--dataset {quote(self.dataset)} --entry {entry.id} {quote(path.name)}`"
            )
            raise InputError(
                f"{path} was written, but its charge could not be entered as published: {error}. "
                + (self.after_failure or usual)
            ) from None

    def _publish(self, entries: list[Entry], path: Path, digest: str) -> Entry:
        """All of them have been published in this one file. The first, as it is now."""
        first = replace(entries[0], state=PUBLISHED, file=_storable(path.name), sha256=digest)
        try:
            with open_books(self.path, WRITE) as books:
                account = books.account(self.dataset)
                for entry in entries:
                    books.execute(
                        "UPDATE entry SET state = ?, file = ?, sha256 = ? WHERE id = ?",
                        (PUBLISHED, first.file, digest, _find(account, entry.id, self.path).id),
                    )
        except InputError:
            if self._look_up(first.id) != first:  # a commit may fail when it is done already
                raise
        return first

    def _waiting_bought(self, release: Release) -> list[Entry]:
        """The charges of what led to the release, unless an earlier release has published them."""
        ids = {one.budget_entry for one in release.bought}
        return [e for e in self.account().pending if e.id in ids]

    def _waiting(self, id_: str | None) -> Entry:
        if id_ is None:
            raise InputError("this release was charged to no budget file: publish it with `budget`")
        entry = _find(self.account(), id_, self.path)
        if entry.state != PENDING:
            raise InputError(f"the release of entry {id_} was published already, as {entry.file}")
        return entry

    def _look_up(self, id_: str) -> Entry | None:
        """What the file holds of an entry. Raises if it cannot be read."""
        return next((entry for entry in self.account().entries if entry.id == id_), None)

    def what_became(self, charge: Entry) -> str:
        """Say whether a charge stands, and what to do, after something went wrong. It is read from the file.

        Parameters
        ----------
        charge : Entry
            The charge.

        Returns
        -------
        str
            A sentence or two.

        Examples
        --------
        >>> print(pings.what_became(pings.account().entries[0]).split(",")[0])
        The charge of 0.5 stands
        """
        place = f"entry {charge.id} of {self.dataset!r} in {self.path}"
        try:
            found = self._look_up(charge.id)
        except (InputError, OSError):
            return (
                f"The charge of {charge.epsilon} may stand, as {place}: the file cannot be read to see. `htf budget "
                "show` tells, once it can be."
            )
        if found is None:
            return _not_charged(charge.epsilon)
        return f"The charge of {found.epsilon} stands, as {place}. {self._next_step(found)}"

    def _next_step(self, entry: Entry) -> str:
        if entry.state != PENDING:
            return f"Its release is complete: {entry.file}."
        if (kind := MEASURED_BY_KIND.get(entry.mechanism)) is not None:
            return (
                f"It paid for {kind.name}, which was measured before the map and is not refunded: another run that buys "
                "it is charged again (docs/budget.md)."
            )
        if self.after_failure:
            return f"No release was entered for it. {self.after_failure}"
        return (
            "No release was entered for it, and nothing is refunded: another run is charged again. If its file "
            f"is there anyway, enter it: `htf budget publish {quote(str(self.path))} --dataset {quote(self.dataset)} "
            f"--entry {entry.id} FILE`."
        )


def read_accounts(path: str | Path) -> list[Account]:
    """All accounts of a budget file, in the order in which they were made."""
    with open_books(arguments.path(path, "the budget file"), READ) as books:
        return list(books.accounts.values())


@dataclass(frozen=True, slots=True)
class Publication:
    """What became of a file that an entry lists as published."""

    dataset: str
    entry: Entry
    state: str  # found, changed or missing
    path: Path | None  # where it is

    def to_dict(self) -> dict[str, Any]:
        path = None if self.path is None else str(self.path)
        entry = {"entry": self.entry.id, "file": self.entry.file, "sha256": self.entry.sha256}
        return {"dataset": self.dataset, **entry, "state": self.state, "path": path}


def check_publications(accounts: Iterable[Account], folders: Iterable[Path]) -> list[Publication]:
    """Compare published files, looked for by name in the folders, with the digests of their entries."""
    accounts, folders = list(accounts), list(folders)
    known = {entry.sha256 for account in accounts for entry in account.entries}
    return [
        Publication(account.dataset, entry, *_look_for(entry, folders, known))
        for account in accounts
        for entry in account.entries
        if entry.state == PUBLISHED
    ]


def _look_for(entry: Entry, folders: list[Path], known: set[str | None]) -> tuple[str, Path | None]:
    """A file of the same name that is another entry's is not this one, changed. One that was saved elsewhere may have got the
    name since that it was meant to have."""
    names = dict.fromkeys((str(entry.file), Path(entry.label).name or str(entry.file)))
    paths = [folder / name for name in [*names, f"{entry.label}.parquet"] for folder in folders]
    digests = {path: digest_of(path) for path in paths if is_file(path)}
    for path, digest in digests.items():
        if digest == entry.sha256:
            return FOUND, path
    for path, digest in digests.items():
        if digest not in known:
            return CHANGED, path
    return MISSING, None


def _paid_for(entry: Entry, release: Release) -> str | None:
    """What the entry paid for beside the map of this release; None if it paid for the map."""
    beside = {*MEASURED_BY_KIND, *(one.charged_as for one in release.bought)}
    return entry.mechanism if entry.mechanism in beside else None


def _check_charged_for(release: Release, entry: Entry, path: Path) -> None:
    """Refuse a release that is not what this entry can have been charged for."""
    found, mechanism = price_of_map(release.epsilon, *release.bought), release.mechanism
    if (beside := _paid_for(entry, release)) is not None:
        bought = (one.epsilon for one in release.bought if one.charged_as == beside)
        found, mechanism = next(bought, Epsilon(0)), beside
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
def still_charged(budget: BudgetFile | None, *charges: Entry) -> Iterator[None]:
    """Whatever goes wrong says what became of these charges, and of those that are attempted meanwhile."""
    before = 0 if budget is None else len(budget.attempts)
    try:
        yield
    except BaseException as error:
        if budget is not None:
            tell_charges(error, budget, [*charges, *budget.attempts[before:]])
        raise


def tell_charges(error: BaseException, budget: BudgetFile, charges: Iterable[Entry]) -> None:
    """Each charge once, though several that call each other know of it."""
    for charge in charges:
        note = budget.what_became(charge)
        if note not in getattr(error, "__notes__", []):
            error.add_note(note)


def _not_charged(epsilon: Epsilon) -> str:
    return f"The charge of {epsilon} was not entered: nothing of it is spent."


def _note(books: Books, account: Account, told_apart: ToldApart | None) -> None:
    """The first charge that says how units are told apart notes it; it has been checked that others say the same."""
    said = as_stored(told_apart, account.unit)
    if account.told_apart is None and said not in (None, UNSAID):
        books.execute("UPDATE dataset SET told_apart = ? WHERE name = ?", (said, account.dataset))


def _find(account: Account, id_: str, path: Path) -> Entry:
    for entry in account.entries:
        if entry.id == id_:
            return entry
    raise InputError(f"{path} has no entry {id_} for {account.dataset!r}")


def _check_id(id_: object) -> str:
    return arguments.text(id_, "the id of an entry", "`htf budget show` lists them")


def _check_name(dataset: str) -> None:
    if not arguments.is_name(dataset, LONGEST_NAME):
        raise InputError(
            f"a data set needs a name of 1 to {LONGEST_NAME} printable characters, got "
            f"{arguments.described(dataset)}"
        )


def _as_read(name: str) -> str:
    """The same for names that look alike: by case, or by how a letter with an accent is stored."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def _storable(text: str) -> str:
    """File names may hold bytes that are no text, and SQLite would refuse them."""
    return text.encode(errors="backslashreplace").decode()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def digest_of(path: Path) -> str:
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
