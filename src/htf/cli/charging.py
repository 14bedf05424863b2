"""Charging `htf release` to a budget file: open it, check it, and say what was charged."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import htf
from htf.cli.screen import remark, say
from htf.errors import InputError

if TYPE_CHECKING:
    from htf.privacy.account import Account

BUDGET = "htf.budget"  # in Click's context: the file that is charged
CHARGE, NOTHING = "The charge of ", "Nothing was charged"  # notes about charges start like this


def open_budget(file: Path | None, dataset: str | None, output: Path) -> htf.BudgetFile | None:
    """The budget that a release is charged to, if there is one."""

    if (file is None) != (dataset is None):
        raise InputError("give both --budget FILE and --dataset NAME, or neither")
    if file is None or dataset is None:
        return None
    budget = htf.BudgetFile(file, dataset)
    click.get_current_context().meta[BUDGET] = budget
    budget.check_output(output)
    return budget


def note_account(budget: htf.BudgetFile, told_apart: htf.ToldApart | None) -> None:
    """Say what a charge will note that earlier ones did not, how people are told apart, and which of them have no release."""
    from htf.privacy.apart import as_stored, spoken

    account = budget.account()
    kept = as_stored(told_apart, account.unit)
    if account.entries and account.told_apart is None and kept is not None:
        remark(
            f"Note: the charges of {account.dataset!r} up to now do not say how people are told apart (a program entered "
            f"them). This one notes it: {spoken(kept, account.unit)}. If earlier ones did so in another way, stop "
            "now, and make another budget."
        )
    if not budget.resumes:
        report_pending(account)


def report_charge(budget: htf.BudgetFile | None, release: htf.Release, remains: str = "") -> None:
    """Everything is done by now, so a file that cannot be read again is no failure. `remains` says what the rest is for, if
    not for just anything."""
    if budget is None:
        return
    charged = f"Charged to {budget.dataset} in {budget.path} as entry {release.budget_entry}"
    try:
        account = budget.account()
    except InputError as error:
        say(f"{charged}.")
        remark(f"Note: cannot read how much epsilon remains: {error}.")
    else:
        say(f"{charged}: ε = {account.left} of {account.cap} remains{remains}.")


def report_pending(account: Account) -> None:
    """Warn of charges without a release."""
    for entry in account.pending:
        remark(
            f"Note: the charge of {entry.epsilon} on {entry.charged} (entry {entry.id}, {entry.label}) "
            "is pending: its release is still being made, or was interrupted. It counts anyway."
        )


def notes_charges(command: Callable[..., None]) -> Callable[..., None]:
    """A decorator: with a budget file, every error says what was charged."""

    @wraps(command)
    def wrapped(**options: Any) -> None:
        try:
            command(**options)
        except BaseException as error:
            is_named = options.get("budget") is not None  # even if it could not be opened
            if click.get_current_context().meta.get(BUDGET) or is_named:
                _note_charges(error)
            raise

    return wrapped


def _note_charges(error: BaseException) -> None:
    """Ask the budget file itself: an interruption may come right after a charge."""
    from htf.privacy.budget import tell_charges

    budget = click.get_current_context().meta.get(BUDGET)
    if budget is not None:
        tell_charges(error, budget, budget.attempts)
    if not notes_about_charges(error) and NOTHING not in str(error):
        error.add_note(f"{NOTHING}.")


def notes_about_charges(error: BaseException) -> list[str]:
    """The notes that say what was charged. Click wraps an interruption in an error of its own."""
    notes = [*getattr(error, "__notes__", []), *getattr(error.__cause__, "__notes__", [])]
    return [note for note in notes if note.startswith((CHARGE, NOTHING))]
