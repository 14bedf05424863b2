"""What a report is about: a release in its file, or a series in its folder, with all that is known about it. Public.

Everything is computed from the file, the budget file and a simulation that starts from the release. No data are read.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from htf.base import arguments
from htf.errors import InputError
from htf.files import is_folder
from htf.forecasts.release_errors import ReleaseErrors, errors_of
from htf.privacy.account import Account, Entry, total
from htf.privacy.budget import BudgetFile, digest_of
from htf.privacy.epsilon import Epsilon
from htf.privacy.meaning import Meaning
from htf.release.file import read
from htf.release.release import Release
from htf.series.plan import SeriesPlan, is_series
from htf.series.series import Series
from htf.series.verification import verify_series
from htf.verification import Check, verify_file

LONGEST_TITLE = 120


@dataclass(frozen=True, eq=False)
class Subject:
    """A release, and what a report says about it. In a series it is the latest release."""

    title: str
    file: str  # its name, without the folder
    release: Release
    sha256: str
    software: str  # that wrote the file
    checks: tuple[Check, ...]
    errors: ReleaseErrors
    account: Account | None = None
    series: Series | None = None
    entries: tuple[Entry, ...] = ()  # all charges of the budget, or of the series
    files: tuple[tuple[str, str], ...] = ()  # of a series: the files with their digests

    @property
    def meaning(self) -> Meaning:
        return Meaning(self.release.epsilon, self.release.protection)

    @property
    def plan(self) -> SeriesPlan | None:
        return None if self.series is None else self.series.plan

    @property
    def all_spent(self) -> Epsilon | None:
        """What all releases cost one unit together, as far as the budget file knows; None if none was given."""
        if self.account is not None:
            return self.account.spent
        if self.series is None:
            return None
        spent = [total(one.entries) for one in self.series.accounts()]
        return max(spent, default=Epsilon(0))

    @property
    def cap(self) -> Epsilon | None:
        """The most that one unit may ever lose by the budget."""
        if self.account is not None:
            return self.account.cap
        return None if self.plan is None else self.plan.total

    @property
    def failed(self) -> list[str]:
        """The checks that did not pass."""
        return [check.name for check in self.checks if not check.passed]


def read_subject(
    path: Path, title: str | None, budget: BudgetFile | None, runs: int | None
) -> Subject:
    """Read and check a release or a series, and simulate."""
    if title is not None:
        _check_title(title)
    if is_series(path):
        return _of_series(path, title, budget, runs)
    if is_folder(path):
        raise InputError(
            f"{path} is a folder and no series: give the file of one release, such as {path / 'city.parquet'}"
        )
    file, sha256 = read(path), digest_of(path)
    release = file.release
    account = None if budget is None else _account_of(budget, release, sha256, path)
    return Subject(
        title or path.stem,
        path.name,
        release,
        sha256,
        str(file.header["software"]),
        tuple(verify_file(file)),
        errors_of(release, runs),
        account,
        entries=() if account is None else account.entries,
    )


def _check_title(title: str) -> None:
    arguments.text(title, "the title")
    if not title.strip() or not title.isprintable() or len(title) > LONGEST_TITLE:
        raise InputError(
            f"a title has 1 to {LONGEST_TITLE} printable characters, got {arguments.described(title)}"
        )


def _account_of(budget: BudgetFile, release: Release, sha256: str, path: Path) -> Account:
    """The account, which must have this release in it: else the sum of all releases would leave it out."""
    account = budget.account()
    ids = {entry.id for entry in account.entries}
    digests = {entry.sha256 for entry in account.entries}
    if sha256 not in digests and release.budget_entry not in ids:
        raise InputError(
            f"{path} was not charged to {budget.dataset!r} in {budget.path}, so that the sum there leaves it out: name the "
            "budget that it was charged to, or none"
        )
    return account


def _of_series(
    path: Path, title: str | None, budget: BudgetFile | None, runs: int | None
) -> Subject:
    if budget is not None:
        raise InputError("a series has a budget file of its own: leave out --budget and --dataset")
    series = Series(path)
    released = series.released
    if not released:
        raise InputError(f"{path} has no release yet, so there is nothing to report on")
    latest = released[-1]
    release = series.release(latest.period.name)
    files = tuple((one.path.name, digest_of(one.path)) for one in released)
    accounts = series.accounts()
    return Subject(
        title or path.resolve().name,
        latest.path.name,
        release,
        dict(files)[latest.path.name],
        str(read(latest.path).header["software"]),
        tuple(verify_series(path)),
        errors_of(release, runs),
        series=series,
        entries=tuple(entry for account in accounts for entry in account.entries),
        files=files,
    )
