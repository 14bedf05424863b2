"""The folder of a series: its plan, its budget file, its releases, and what is about to be added.

Each release borrows from those before it. They are given to it as priors, as far as the noisy counts of the new period bear
them out (htf.estimation.trust), which costs nothing. A release is never rewritten: a correction is a new file with a
number, and is charged again.

A release that was interrupted is taken up again under its own charge, so that nothing is charged twice. That is sound as
long as nothing of it was seen: then only the second attempt has told anything (docs/proofs/series.md).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import stat
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import Any

from htf.base import arguments
from htf.errors import BudgetError, InputError
from htf.estimation.prior import Prior
from htf.files import SPARE, UNFINISHED, is_same, open_own, spare_folders, write_text, write_whole
from htf.privacy.account import PENDING, WITHDRAWN, Account, Entry
from htf.privacy.apart import ToldApart
from htf.privacy.budget import BudgetFile, digest_of, read_accounts
from htf.privacy.epsilon import Epsilon
from htf.privacy.protection import RECORD
from htf.query.cells import cell_counts
from htf.recipes.recipe import Recipe
from htf.release.file import charged_entry
from htf.release.release import Release
from htf.series.periods import Period
from htf.series.plan import SeriesPlan, period_of, read_plan

BUDGET = "budget.sqlite"
ALL = "series"  # the account of a series whose periods add up
LOCK, COUNTED = "series.lock", "counted.json"
BY_RECIPE, BY_PROGRAM = "the recipe", "a program"  # who told people and periods apart
REMEMBERED = 12  # releases before, of which the mean is a prior


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=4)


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
    budget: BudgetFile | None  # None in a dry run, if the period has no account yet
    recipe: Recipe  # of this release, but for its source
    told: str = ""  # what a correction leaves of the budget


class SeriesFolder:
    """What is in the folder of a series. `htf.Series` is what others see of it."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = arguments.path(folder, "the folder of a series")
        self.plan = read_plan(self.folder)
        self._loaded: dict[Path, Release] = {}

    @property
    def periods(self) -> list[str]:
        """The periods that were released, in order."""
        return list(dict.fromkeys(one.period.name for one in self.released))

    @property
    def released(self) -> list[Released]:
        """All releases, corrections after what they correct, in the order of time."""
        found = []
        for path in self.folder.glob("*.parquet"):
            matched = re.fullmatch(r"(.+?)(?:\.([2-9]|[1-9][0-9]+))?\.parquet", path.name, re.ASCII)
            with suppress(InputError):
                if not path.is_file():
                    continue
                period = period_of(self.plan, matched[1] if matched else "")
                found.append(Released(period, int((matched and matched[2]) or 1), path))
        return sorted(found, key=lambda one: (one.period, one.number))

    @property
    def latest(self) -> dict[str, Released]:
        """The last release of each period: a correction stands for what it corrects."""
        return {one.period.name: one for one in self.released}

    def _load(self, path: Path) -> Release:
        if path not in self._loaded:
            release = Release.load(path)
            if release.domain != self.plan.domain:
                raise InputError(f"{path} is of another map than the series: move it away")
            if not release.private:
                raise InputError(f"{path} is not private (noise: {release.noise}): move it away")
            self._loaded[path] = release
        return self._loaded[path]

    @contextmanager
    def adding(
        self,
        period: str,
        *,
        correct: bool = False,
        resume: bool = False,
        take_from_later: bool = False,
        dry_run: bool = False,
    ) -> Iterator[Addition | Release]:
        """Check everything about a period that is to be released, while no other process adds one. If an earlier run wrote
        its release and was stopped before the entry was complete, the entry is completed, and the release is given. A dry
        run writes nothing, not even a lock."""
        wanted = period_of(self.plan, period)
        if take_from_later and not correct:
            raise InputError("--take-from-later is for a correction: give --correct too")
        if dry_run:
            addition = self._prepare(wanted, correct, resume=False, dry_run=True)
            yield self._with_room(addition, correct, take_from_later)
            return
        with _locked(self.folder / LOCK):
            for left in unfinished(self.folder):
                left.unlink()
            done = self._complete(wanted)
            if done is not None:
                yield done
                return
            addition = self._prepare(wanted, correct, resume)
            yield addition if resume else self._with_room(addition, correct, take_from_later)

    def _bring_in(self, path: Path) -> Release:
        """Copy a release that was saved elsewhere to its place, and enter it if that is missing. Its charge says which period
        it is of."""
        with _locked(self.folder / LOCK):
            return self._take_in(path)

    def _take_in(self, path: Path) -> Release:
        release = self._load(path)
        entry = next((one for one in self._entries() if one.id == release.budget_entry), None)
        if entry is None or entry.state == WITHDRAWN:
            raise InputError(
                f"{path} was not charged to {self.folder}, or was withdrawn: only a release of this series is brought in"
            )
        if entry.state != PENDING and digest_of(path) != entry.sha256:
            raise InputError(
                f"{path} is not the file that was published for {entry.label}: its SHA-256 is another one"
            )
        name, _, number = entry.label.partition(".")
        period = period_of(
            self.plan, name
        )  # before anything is written: a charge may be called anything
        if number and not (number.isascii() and number.isdecimal()):
            raise InputError(
                f"{path} was charged as {entry.label!r}, which is no period of the series"
            )
        output = self.folder / f"{entry.label}.parquet"
        moved = not is_same(path, output)
        if moved:
            write_whole(output, lambda new: shutil.copyfile(path, new))
        if entry.state == PENDING:
            try:
                self._enter(period, entry, output)
            except InputError:
                if moved:
                    output.unlink()
                raise
        return self._load(output)

    def _complete(self, period: Period) -> Release | None:
        """Enter a release that an interrupted run has written, if there is one: in its place, or elsewhere, because its place
        could not be written. To draw again would make a second release of the same charge."""
        for one in self.released:
            entry = self._entry(one.label) if one.period == period else None
            if entry is None or entry.state != PENDING:
                continue
            if charged_entry(one.path) == entry.id:
                release = self._load(one.path)
                self._enter(period, entry, one.path)
                return release
        pending = {entry.id: entry for entry in self._pending(period)}
        for path in self._spares() if pending else ():
            entry = pending.get(charged_entry(path) or "")
            if entry is None:
                continue
            output = self.folder / f"{entry.label}.parquet"
            if os.path.lexists(output):
                raise InputError(
                    f"{path} is the release of {entry.label} that an interrupted run has made, and {output} is in its way: move "
                    "that away, and run the same command again. Nothing was charged now"
                )
            return self._take_in(path)
        return None

    def _enter(self, period: Period, entry: Entry, path: Path) -> None:
        """Enter a release under all that its run was charged; the map comes last, so that a run that is stopped here goes on."""
        budget = self._budget(period)
        together = [one for one in self._pending(period) if one.label == entry.label]
        for one in sorted(together, key=lambda one: one.id == entry.id):
            budget.publish(one.id, path)

    def _spares(self) -> Iterator[Path]:
        """Releases that were saved elsewhere. Of what is among temporary files, only our own: anybody may write there."""
        for folder in spare_folders(self.folder / BUDGET):
            for path in sorted(folder.glob(f"{SPARE}*.parquet")):
                with suppress(OSError):
                    found = path.lstat()
                    is_ours = folder == self.folder or found.st_uid == _this_user(found)
                    if stat.S_ISREG(found.st_mode) and is_ours:
                        yield path

    def _prepare(
        self, period: Period, correct: bool, resume: bool, dry_run: bool = False
    ) -> Addition:
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
        if resume and not pending:
            raise InputError(
                f"no interrupted release of {period.name} to resume: leave out --resume"
            )
        used = self.used
        if period.name not in used and len(used) >= self.plan.releases:
            raise InputError(
                f"the plan is for {self.plan.releases} releases, and all of them were made: begin another series"
            )
        budget = None if dry_run and not self._has_account(period) else self._budget(period)
        if pending and budget is not None:
            self._take_up(budget, pending, resume)
        label = label_of(period, number)
        output = self.folder / f"{label}.parquet"
        return Addition(period, output, label, budget, self._recipe(period, label))

    def _with_room(self, addition: Addition, correct: bool, take_from_later: bool) -> Addition:
        """Where periods add up, a correction may take what later periods were meant to cost. That is refused unless the
        curator has said so."""
        if not correct or addition.budget is None:
            return addition
        account, each = addition.budget.account(), self.plan.each
        if each > account.left:  # the charge itself refuses that
            return addition
        left = Epsilon(account.left.units - each.units)
        now = f"Correcting {addition.period.name} costs epsilon {each}: {account.left} of {account.cap} remains now"
        if not self.plan.adds_up:
            return replace(addition, told=f"{now}, and {left} afterwards, for this period.")
        planned = self.plan.releases - len(self.used)
        possible = min(planned, left.units // each.units)
        lost = planned - possible
        after = f"{left} afterwards, for {possible} of the {planned} periods that are still planned"
        if lost and not take_from_later:
            raise BudgetError(
                f"{now[0].lower()}{now[1:]}, and {after}. So {lost} of them could no longer be released. To correct it anyway: "
                "take_from_later=True (htf series add --correct --take-from-later). Nothing was charged"
            )
        gone = f". {lost} of them can no longer be released." if lost else "."
        return replace(addition, told=f"{now}, and {after}{gone}")

    def affordable(self) -> int:
        """How many more releases the budget of a series allows whose periods add up."""
        return self.accounts()[0].left.units // self.plan.each.units

    @property
    def used(self) -> set[str]:
        """The periods that were released or charged."""
        return {*self.periods, *(one.label.partition(".")[0] for one in self._entries())}

    def _take_up(self, budget: BudgetFile, pending: list[Entry], resume: bool) -> None:
        if not resume:
            told = ", ".join(f"{one.epsilon} (entry {one.id})" for one in pending)
            raise InputError(
                f"an earlier run for {pending[0].label} was charged {told} and did not finish. If nothing of its release "
                "was seen, take it up under that charge: resume=True (htf series add --resume). Nothing is charged again"
            )
        budget.resume(pending)

    def _check_known(self, period: Period, number: int) -> None:
        """Refuse a release whose file has gone, or that would hide one; and a budget that does not know what is there, or
        has another cap than the plan."""
        for account in self.accounts():
            if (account.cap, account.unit) != (self.plan.total, unit_name(self.plan)):
                raise InputError(
                    f"the plan says {self.plan.total} for {unit_name(self.plan)}, but the budget file {account.cap} for "
                    f"{account.unit}: one of them was changed. Restore it from a copy"
                )
        known = {entry.label for entry in self._entries()}
        for one in self.released:
            if one.label not in known:
                raise InputError(
                    f"{one.path.name} is in {self.folder}, but its budget file knows nothing of it: move the file away, or "
                    "restore the budget file that it was charged to"
                )
        entry = self._entry(label_of(period, number))
        if entry is not None and entry.state != PENDING:
            raise InputError(
                f"the budget says that {entry.label} was published as {entry.file}, but {self.folder} has no "
                f"{entry.label}.parquet: put it back. If it was saved elsewhere: `{self._command('adopt')} PATH/{entry.file}`"
            )

    def _priors(self, others: list[Released]) -> tuple[Prior, ...]:
        """The last of several releases, and the mean of them all."""
        if not others:
            return ()
        marks = [digest_of(one.path) for one in others]
        last = cell_counts(self._load(others[-1].path))
        found = [(others[-1].path.name, marks[-1], last)]
        if len(others) > 1:
            names = f"mean of {others[0].period.name} to {others[-1].period.name}"
            together = hashlib.sha256("".join(marks).encode()).hexdigest()
            # One grid at a time: a grid may have a quarter of a gigabyte.
            rest = sum(cell_counts(self._load(one.path)) for one in others[:-1])
            found.append((names, together, (rest + last) / len(others)))
        domain = self.plan.domain
        return tuple(
            Prior.of(counts, domain, name, sha) for name, sha, counts in found if counts.any()
        )

    def _before(self, period: Period) -> list[Released]:
        """The last releases before a period."""
        return [one for one in self.latest.values() if one.period.start < period.start][
            -REMEMBERED:
        ]

    def finish(self, made: Release, period: Period, tell: Callable[[str], None] = _warn) -> Release:
        """The release with what it borrows from those before it, which costs nothing. It has been paid for: if borrowing
        fails, whatever the reason, it is kept as it is."""
        from htf.series.borrowing import borrow

        try:
            before = self._before(period)
            marks = [digest_of(one.path) for one in before]
            return borrow(made, [self._load(one.path) for one in before], marks)
        except Exception as error:
            reason = str(error) if isinstance(error, InputError) else type(error).__name__
            tell(
                f"Note: {period.name} could not borrow from the releases before it ({reason}). It is released without "
                "that: it is as private, and as sound, but less accurate. Its own counts are whole."
            )
            return made

    def fill(
        self, addition: Addition, source: Any, *, allow_empty: bool = False, dry_run: bool = False
    ) -> Recipe:
        """The recipe of a release, from its source. Refuses the layer of zones, and counts of other people or times."""
        empty = allow_empty or addition.recipe.allow_empty
        recipe = replace(addition.recipe, source=source, allow_empty=empty)
        self._check_not_layer(recipe.files)
        if not dry_run:
            self._pin(recipe.told_apart)
        return recipe

    def _recipe(self, period: Period, label: str) -> Recipe:
        """That of the plan for one period, with what earlier ones say."""
        from htf.series.borrowing import foreseeing, foresees

        recipe = self.plan.recipe
        earlier = self._priors(self._before(period)) if foresees(recipe) else ()
        since, until = (None, None) if recipe.time is None else period.seconds
        return replace(
            recipe,
            since=since,
            until=until,
            prior=(*earlier, *recipe.prior),
            settings=foreseeing(recipe) if earlier else recipe.settings,
            label=label,
        )

    def _pin(self, told: ToldApart | None) -> None:
        """Refuse counts whose people or periods are told apart in another way than the recipe's: a record might be in two
        periods, or somebody be two people, and then what both cost would add up. A program may not say how it counts.
        Then it counts all periods."""
        reading = self.plan.recipe.reading().told_apart
        user = reading.user if told is None or self.plan.unit == RECORD else told.user
        same = told is None or (told.clock, user) == (reading.clock, reading.user)
        by = {"by": BY_PROGRAM if told is None else BY_RECIPE}
        known = self._read_json(COUNTED) if self._entries() else by
        if same and by == known:
            write_text(self.folder / COUNTED, json.dumps(by) + "\n", overwrite=True)
            return
        raise InputError(
            f"the periods and people of {self.folder} are told apart by {(known or by)['by']}, {_by_columns(reading)}, but these "
            f"counts by {'a program that does not say how' if told is None else _by_columns(told)}: a record might be in two "
            "periods, or other people be meant. Nothing was charged"
        )

    def _read_json(self, name: str) -> dict[str, Any] | None:
        """A small file that the series keeps; None if it is not there."""
        path = self.folder / name
        if not os.path.lexists(path):
            return None
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            if isinstance(found, dict):
                return found
        except (OSError, ValueError, RecursionError):
            pass
        raise InputError(f"{path} is damaged: restore it from a copy")

    def _check_not_layer(self, data: Iterable[Path]) -> None:
        """Refuse data whose file is a layer of zones or a list of categories, or a copy of it: its names are published."""
        for file in data if self.plan.layers else ():
            if file.is_file() and (name := self.plan.layers.get(digest_of(file))) is not None:
                raise InputError(
                    f"{file} is {name}, which names the zones or categories of {self.folder}, or a copy of it. They are "
                    "published, so they must be public and made without these data"
                )

    def _budget(self, period: Period) -> BudgetFile:
        """The account that a release of this period is charged to. Where periods do not add up each has its own."""
        path, name = self.folder / BUDGET, self._name(period)
        if not self._has_account(period):  # the file itself is there
            budget = BudgetFile.create(path, name, self.plan.total, unit=unit_name(self.plan))
        else:
            budget = BudgetFile(path, name)
        budget.after_failure = (
            "It is not lost, and nothing is charged again. If its file is in the folder, run the same command again, which "
            f"enters it. If the file was saved elsewhere: `{self._command('adopt')} FILE`. If there is no file, and nothing of "
            f"the release was seen: `{self._command('add')} … --period {period.name} --resume`, with the same options."
        )
        return budget

    def _name(self, period: Period) -> str:
        return ALL if self.plan.adds_up else period.name

    def _has_account(self, period: Period) -> bool:
        return self._name(period) in [account.dataset for account in self.accounts()]

    def _command(self, name: str) -> str:
        return f"htf series {name} {quote(str(self.folder))}"

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

    def accounts(self) -> list[Account]:
        """What was spent, in one account for all periods or in one for each."""
        path = self.folder / BUDGET
        if not path.exists():
            raise InputError(
                f"{self.folder} has lost its budget file {BUDGET}: restore it from a copy that knows all releases"
            )
        found = read_accounts(path)
        return found if self.plan.adds_up else [one for one in found if one.dataset != ALL]


def unfinished(folder: Path) -> list[Path]:
    """Releases that a killed run had not moved to their place yet. Other things of such a name are not ours."""
    found = folder.glob(f"{UNFINISHED}*.parquet")
    return sorted(one for one in found if one.is_file() and not one.is_symlink())


def _this_user(found: os.stat_result) -> int:
    return os.getuid() if hasattr(os, "getuid") else found.st_uid


def label_of(period: Period, number: int) -> str:
    return period.name if number == 1 else f"{period.name}.{number}"


def unit_name(plan: SeriesPlan) -> str:
    """As statements and budget files call the unit of a plan."""
    return plan.quote.unit.name


def _by_columns(told: ToldApart) -> str:
    """In words, for messages."""
    return json.dumps({**told.clock, "user": told.user}, sort_keys=True)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One process at a time adds to a series. The lock goes with the process, however that ends."""
    try:
        import fcntl
    except ImportError:  # not on Windows: there, the cap of the budget still holds
        yield
        return
    with open_own(path) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(
                f"another process is adding to {path.parent}: wait until it has finished"
            ) from None
        yield
