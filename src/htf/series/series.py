"""A series: a folder with a plan, a budget file, and one release for each period.

Each release borrows from those before it. They are given to it as priors, as far as the noisy counts of the new period bear
them out (htf.estimation.trust), which costs nothing. A release is never rewritten: a correction is a new file with a
number, and is charged again.

A release that was interrupted is taken up again under its own charge, so that nothing is charged twice. That is sound as
long as nothing of it was seen: then only the second attempt has told anything (docs/proofs/series.md).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from htf.base import arguments
from htf.errors import InputError
from htf.estimation.homogeneous import PRIOR_TRUST
from htf.estimation.prior import Prior
from htf.files import make_folder
from htf.privacy.account import PENDING, Account, Entry
from htf.privacy.budget import BudgetFile, digest_of, read_accounts
from htf.privacy.protection import PERSON, RECORD, Protection
from htf.query.cells import cell_counts
from htf.release.release import Release
from htf.series.periods import Period
from htf.series.plan import IN_PERIOD, PLAN, SeriesPlan

if TYPE_CHECKING:
    from htf.curator.frequency import FrequencyMatrix
    from htf.curator.noise import NoiseSource

BUDGET = "budget.sqlite"
ALL = "series"  # the account of a series whose periods add up
LOCK = "series.lock"
REMEMBERED = 12  # releases before, of which the mean is a prior


@dataclass(frozen=True, slots=True)
class Released:
    """A release of a series: its period, which attempt at it this is (2 is the first correction), and its file."""

    period: Period
    number: int
    path: Path

    @property
    def label(self) -> str:
        """As the budget file calls it."""
        return label_of(self.period, self.number)


@dataclass(frozen=True, slots=True)
class Addition:
    """A release that is about to be made: everything that could be checked was checked."""

    period: Period
    output: Path
    label: str
    budget: BudgetFile
    priors: tuple[Prior, ...]


class Series:
    """A folder of releases over periods on one map, with one plan for its budget.

    Parameters
    ----------
    folder : str or Path
        The folder, which `create` or `htf series init` has made.

    Raises
    ------
    InputError
        If there is no series in the folder.

    Examples
    --------
    >>> import htf
    >>> domain = htf.Domain.from_bounds(0, 0, 1, 1, cells=16)
    >>> plan = htf.SeriesPlan.of(domain, "month", "record", total=1, releases=12)
    >>> series = htf.Series.create("city", plan)
    >>> for month, people in (("2026-01", 500), ("2026-02", 700)):
    ...     matrix = htf.FrequencyMatrix.from_cells(domain, [[3] * people, [5] * people])
    ...     release = series.add(matrix, month)
    >>> series.periods
    ['2026-01', '2026-02']
    >>> series.changes([0, 0, 0.5, 0.5])["beyond_noise"].to_pylist()
    [True]
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = arguments.path(folder, "the folder of a series")
        self.plan = SeriesPlan.read(self.folder)

    def __repr__(self) -> str:
        return f"Series({str(self.folder)!r})"

    @classmethod
    def create(cls, folder: str | Path, plan: SeriesPlan) -> Series:
        """Make a series in a new or empty folder. Its plan is final.

        Parameters
        ----------
        folder : str or Path
            The folder.
        plan : SeriesPlan
            The plan.

        Returns
        -------
        Series
            The series, without any release.

        Raises
        ------
        InputError
            If something is in the folder already.

        Examples
        --------
        >>> htf.Series.create("town", plan).periods
        []
        """
        path = arguments.path(folder, "the folder of a series")
        arguments.instance(plan, SeriesPlan, "plan", "make one with htf.SeriesPlan.of")
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise InputError(f"{path} exists and is not an empty folder: give another name")
        make_folder(path)
        if plan.adds_up:
            BudgetFile.create(path / BUDGET, ALL, plan.total, unit=unit_name(plan))
        plan.write(path)
        return cls(path)

    @property
    def periods(self) -> list[str]:
        """The periods that were released, in order."""
        return list(dict.fromkeys(one.period.name for one in self.released))

    @property
    def released(self) -> list[Released]:
        """All releases, corrections after what they correct, in the order of time."""
        found = []
        for path in self.folder.glob("*.parquet"):
            matched = re.fullmatch(r"(.+?)(?:\.(\d+))?\.parquet", path.name)
            with suppress(InputError):
                period = self.plan.read_period(matched[1] if matched else "")
                found.append(Released(period, int((matched and matched[2]) or 1), path))
        return sorted(found, key=lambda one: (one.period, one.number))

    @property
    def latest(self) -> dict[str, Released]:
        """The last release of each period: a correction stands for what it corrects."""
        return {one.period.name: one for one in self.released}

    def release(self, period: str) -> Release:
        """Read the release of a period, with its last correction.

        Parameters
        ----------
        period : str
            Its name, such as `2026-03`.

        Returns
        -------
        Release
            The release.

        Raises
        ------
        InputError
            If that period was not released.

        Examples
        --------
        >>> str(series.release("2026-01").epsilon)
        '1'
        """
        found = self.latest.get(self.plan.read_period(period).name)
        if found is None:
            known = ", ".join(self.periods) or "none"
            raise InputError(f"{period} was not released in {self.folder}; released are: {known}")
        return self._load(found.path)

    def _load(self, path: Path) -> Release:
        if path not in self._loaded:
            release = Release.load(path)
            if release.domain != self.plan.domain:
                raise InputError(f"{path} is of another map than the series: move it away")
            self._loaded[path] = release
        return self._loaded[path]

    @cached_property
    def _loaded(self) -> dict[Path, Release]:
        return {}

    def accounts(self) -> list[Account]:
        """What was spent, in one account for all periods or in one for each.

        Returns
        -------
        list of Account
            The accounts.

        Examples
        --------
        >>> [str(account.left) for account in series.accounts()]
        ['0', '0']
        """
        path = self.folder / BUDGET
        return read_accounts(path) if path.exists() else []

    def add(
        self,
        matrix: FrequencyMatrix,
        period: str,
        *,
        noise: NoiseSource | str = "opendp",
        correct: bool = False,
        resume: bool = False,
    ) -> Release:
        """Charge, release and save one more period.

        Parameters
        ----------
        matrix : FrequencyMatrix
            The exact counts of this period alone.
        period : str
            Its name, such as `2026-03`.
        noise : NoiseSource or str
            Where noise comes from. It must be secret.
        correct : bool
            Whether to release a period once more. The correction is charged again.
        resume : bool
            Whether to take up a release of this period that was interrupted, under its own charge. Do so only if nothing
            of it was seen.

        Returns
        -------
        Release
            The release, which is in the folder too.

        Raises
        ------
        InputError
            If the period was released already, or the data do not fit the plan.
        BudgetError
            If too little is left.

        Examples
        --------
        >>> series.add(matrix, "2026-02")
        Traceback (most recent call last):
        htf.errors.InputError: 2026-02 was released already, as 2026-02.parquet. To release a correction, which is charged again: correct=True (htf series add --correct)
        """
        from htf.publication import publish  # here: reading a series loads nothing that sees data

        with self.adding(period, correct=correct, resume=resume) as addition:
            if isinstance(addition, Release):
                return addition
            self.check_matrix(matrix)
            made = publish(
                matrix,
                self.plan.each,
                prior=addition.priors,
                noise=noise,
                budget=addition.budget,
                label=addition.label,
            )
            made = self.finish(made, addition.period)
            addition.budget.save(made, addition.output)
            return made

    @contextmanager
    def adding(
        self, period: str, *, correct: bool = False, resume: bool = False
    ) -> Iterator[Addition | Release]:
        """Check everything about a period that is to be released, while no other process adds one. If an earlier run wrote
        its release and was stopped before the entry was complete, the entry is completed, and the release is given."""
        wanted = self.plan.read_period(period)
        with _locked(self.folder / LOCK):
            done = self._complete(wanted)
            yield self._prepare(wanted, correct, resume) if done is None else done

    def check_matrix(self, matrix: FrequencyMatrix) -> None:
        """Refuse counts of another map or another unit."""
        if matrix.domain != self.plan.domain:
            raise InputError(
                "the counts are of another map than the series: read them on series.plan.domain"
            )
        self.check_unit(matrix.protection)

    def check_unit(self, protection: Protection) -> None:
        """Refuse data that protect another unit than the plan."""
        if protection.name != unit_name(self.plan):
            raise InputError(
                f"the series protects {unit_name(self.plan)}, but these counts are for {protection.name}"
                + _unit_hint(self.plan)
            )

    def _complete(self, period: Period) -> Release | None:
        """Enter a release that an interrupted run has written, if there is one."""
        for one in self.released:
            entry = self._entry(one.label) if one.period == period else None
            if entry is not None and entry.state == PENDING:
                release = self._load(one.path)
                if release.budget_entry == entry.id:
                    self._budget(period).publish(entry.id, one.path)
                    return release
        return None

    def _prepare(self, period: Period, correct: bool, resume: bool) -> Addition:
        done = [one for one in self.released if one.period == period]
        number = max((one.number for one in done), default=0) + 1
        pending = self._pending(period)
        if done and not correct:
            raise InputError(
                f"{period.name} was released already, as {done[-1].path.name}. To release a correction, which is charged "
                "again: correct=True (htf series add --correct)"
            )
        if correct and not done:
            raise InputError(f"{period.name} was not released yet, so there is nothing to correct")
        self._check_known(period, number)
        if not done and len(self.periods) >= self.plan.releases:
            raise InputError(
                f"the plan is for {self.plan.releases} releases, and all of them were made: begin another series"
            )
        budget = self._budget(period)
        if pending:
            self._take_up(budget, pending, resume)
        label = label_of(period, number)
        output = self.folder / f"{label}.parquet"
        return Addition(period, output, label, budget, self.priors(period.name))

    def _take_up(self, budget: BudgetFile, pending: list[Entry], resume: bool) -> None:
        if not resume:
            told = ", ".join(f"{one.epsilon} (entry {one.id})" for one in pending)
            raise InputError(
                f"an earlier run for {pending[0].label} was charged {told} and did not finish. If nothing of its release "
                "was seen, take it up under that charge: resume=True (htf series add --resume). Nothing is charged again"
            )
        budget.resume(pending)

    def _check_known(self, period: Period, number: int) -> None:
        """Refuse a release whose file has gone, or that would hide one."""
        entry = self._entry(label_of(period, number))
        if entry is not None and entry.state != PENDING:
            raise InputError(
                f"the budget says that {entry.label} was published as {entry.file}, but the file is not in "
                f"{self.folder}: put it back"
            )

    def priors(self, period: str) -> tuple[Prior, ...]:
        """What the releases before a period say about it: the last of them, and the mean of them all.

        Parameters
        ----------
        period : str
            The period.

        Returns
        -------
        tuple of Prior
            Up to two priors.

        Examples
        --------
        >>> [prior.name for prior in series.priors("2026-03")]
        ['2026-02.parquet', 'mean of 2026-01 to 2026-02']
        """
        return self._priors(self._before(self.plan.read_period(period)))

    def _priors(self, others: list[Released]) -> tuple[Prior, ...]:
        """The last of several releases, and the mean of them all."""
        if not others:
            return ()
        counts = [cell_counts(self._load(one.path)) for one in others]
        marks = [digest_of(one.path) for one in others]
        found = [(others[-1].path.name, marks[-1], counts[-1])]
        if len(others) > 1:
            names = f"mean of {others[0].period.name} to {others[-1].period.name}"
            together = hashlib.sha256("".join(marks).encode()).hexdigest()
            found.append((names, together, np.mean(counts, axis=0)))
        domain = self.plan.domain
        return tuple(
            Prior.of(counts, domain, name, sha) for name, sha, counts in found if counts.any()
        )

    def _before(self, period: Period) -> list[Released]:
        """The last releases before a period."""
        return [one for one in self.latest.values() if one.period.start < period.start][
            -REMEMBERED:
        ]

    def revised(self, period: str) -> Release:
        """Estimate a period anew, with what later periods have told too. This costs nothing.

        Parameters
        ----------
        period : str
            A period that was released.

        Returns
        -------
        Release
            The same measurements with other estimates. The file of the period stays as it is.

        Raises
        ------
        InputError
            If that period was not released.

        Examples
        --------
        >>> series.revised("2026-01").background.periods
        1
        """
        from htf.series.borrowing import borrow

        release, own = self.release(period), self.latest[period]
        others = [one for one in self.latest.values() if one.period != own.period]
        nearest = sorted(others, key=lambda one: abs(one.period.start - own.period.start))
        known = sorted(nearest[:REMEMBERED], key=lambda one: one.period)
        facts = {name: fact for name, fact in release.facts.items() if name != PRIOR_TRUST}
        bare = replace(release, facts=facts, background=None, priors=self._priors(known))
        return borrow(bare, [self._load(one.path) for one in known])

    def finish(self, made: Release, period: Period) -> Release:
        """The release with what it borrows from those before it, which costs nothing."""
        from htf.series.borrowing import borrow

        return borrow(made, [self._load(one.path) for one in self._before(period)])

    def _budget(self, period: Period) -> BudgetFile:
        """The account that a release of this period is charged to. Where periods do not add up each has its own."""
        path, name = self.folder / BUDGET, ALL if self.plan.adds_up else period.name
        if name not in [account.dataset for account in self.accounts()]:
            return BudgetFile.create(path, name, self.plan.total, unit=unit_name(self.plan))
        return BudgetFile(path, name)

    def _entries(self) -> list[Entry]:
        return [entry for account in self.accounts() for entry in account.entries]

    def _entry(self, label: str) -> Entry | None:
        """The last charge of a release by that name."""
        return next((one for one in reversed(self._entries()) if one.label == label), None)

    def _pending(self, period: Period) -> list[Entry]:
        labels = re.compile(rf"{re.escape(period.name)}(\.\d+)?")
        return [
            one for one in self._entries() if one.state == PENDING and labels.fullmatch(one.label)
        ]

    def count(self, boxes: Any = None, where: Any = None) -> Any:
        """Count the same boxes in every period.

        Parameters
        ----------
        boxes : array_like, optional
            As in `Release.count`.
        where : mapping, optional
            As in `Release.count`.

        Returns
        -------
        pyarrow.Table
            A row for each period and box: `period`, `box` (its number), and the columns of `Answers`.

        Raises
        ------
        InputError
            If nothing was released, or a box is wrong.

        Examples
        --------
        >>> series.count([0, 0, 0.5, 0.5])["period"].to_pylist()
        ['2026-01', '2026-02']
        """
        from htf.series.questions import count_periods

        return count_periods(self, lambda release: release.count(boxes, where))

    def changes(self, boxes: Any = None, where: Any = None) -> Any:
        """Find what changed in the same boxes, from each period to the next one that was released.

        Parameters
        ----------
        boxes : array_like, optional
            As in `Release.count`.
        where : mapping, optional
            As in `Release.count`.

        Returns
        -------
        pyarrow.Table
            A row for each pair of periods and each box: `since`, `period`, `box`, and the columns of `Changes`. The
            chance that any mark in the table is false is at most 5 %.

        Raises
        ------
        InputError
            If fewer than two periods were released, or a box is wrong.

        Examples
        --------
        >>> series.changes([0, 0, 0.5, 0.5])["since"].to_pylist()
        ['2026-01']
        """
        from htf.series.questions import changes_of_periods

        return changes_of_periods(self, lambda release: release.count(boxes, where))


def label_of(period: Period, number: int) -> str:
    return period.name if number == 1 else f"{period.name}.{number}"


def unit_name(plan: SeriesPlan) -> str:
    """As statements and budget files call the unit of a plan."""
    if plan.unit == RECORD:
        return Protection().name
    return Protection(PERSON, per=IN_PERIOD.get(plan.unit)).name


def _unit_hint(plan: SeriesPlan) -> str:
    if plan.unit == RECORD:
        return ": leave out --user"
    if plan.unit == PERSON:
        return ": give --user COLUMN, without --per"
    return f": give --user COLUMN, --time COLUMN and --per {IN_PERIOD[plan.unit]}"


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One process at a time adds to a series. The lock goes with the process, however that ends."""
    try:
        import fcntl
    except ImportError:  # not on Windows: there, the cap of the budget still holds
        yield
        return
    with open(path, "w", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(
                f"another process is adding to {path.parent}: wait until it has finished"
            ) from None
        yield


__all__ = ["PLAN", "Addition", "Released", "Series", "label_of", "unit_name"]
