"""Commands for a budget over several releases: `htf budget init`, `show`, `check`, `publish` and more."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from htf.cli.screen import console, say, say_json, show_table
from htf.cli.types import FileName
from htf.errors import InputError
from htf.files import is_folder
from htf.privacy.protection import OF_RECORDS, PERSON, RECORD, Protection

if TYPE_CHECKING:
    from htf.curator.noise import NoiseSource
    from htf.mechanisms.base import Mechanism
    from htf.privacy.account import Account, Entry
    from htf.privacy.budget import BudgetFile, Publication
    from htf.privacy.epsilon import Epsilon
    from htf.release.release import Release

SHOWN_OF_DIGEST = 12
BUDGET = "htf.budget"  # in Click's context: the file that is charged
CHARGE, NOTHING = "The charge of ", "Nothing was charged"  # so start the notes about charges

file_argument = click.argument("file", type=FileName())
dataset_option = click.option("--dataset", required=True, metavar="NAME", help="Name of the data.")


@click.group()
def budget() -> None:
    """Keep one privacy budget over all releases of the same data."""


@budget.command()
@file_argument
@dataset_option
@click.option("--cap", required=True, help="The epsilon of all releases together. It is final.")
@click.option(
    "--unit",
    type=click.Choice([RECORD, PERSON]),
    default=RECORD,
    show_default=True,
    help="Whom each epsilon is for.",
)
def init(file: Path, dataset: str, cap: str, unit: str) -> None:
    """Make a budget, in a new FILE or beside others. `htf release --ledger` charges it."""
    from htf.privacy.budget import BudgetFile

    account = BudgetFile.create(file, dataset, cap, unit=Protection(unit).name).account()
    say(
        f"Made a budget for {dataset} in {file}: epsilon {account.cap} for each {unit}, over all "
        "releases."
    )


@budget.command()
@file_argument
@click.option("--dataset", metavar="NAME", help="Only this one.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def show(file: Path, dataset: str | None, as_json: bool) -> None:
    """Show what was spent, on what, and what is left."""
    from htf.privacy.budget import BudgetFile, read_accounts

    accounts = read_accounts(file) if dataset is None else [BudgetFile(file, dataset).account()]
    if as_json:
        say_json(json.dumps([account.to_dict() for account in accounts], indent=2))
        return
    for account in accounts:
        _show_account(account)


@budget.command()
@file_argument
@click.option(
    "--in",
    "folders",
    multiple=True,
    metavar="FOLDER",
    type=FileName(),
    help="Look for published files here too; may be repeated.",
)
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def check(file: Path, folders: tuple[Path, ...], as_json: bool) -> None:
    """Check FILE for damage, and compare the published files with their digests.

    They are looked for by name beside FILE, in the current folder, and in each --in FOLDER. The exit code is
    2 if FILE is damaged or a published file was changed. A file that is not found is no error.
    """
    from htf.privacy.budget import CHANGED, check_publications, read_accounts

    for folder in folders:
        if not is_folder(folder):
            raise InputError(f"there is no folder {folder}")
    accounts = read_accounts(file)  # damage is refused here
    found = check_publications(accounts, [file.parent, Path(), *folders])
    if as_json:
        say_json(json.dumps([publication.to_dict() for publication in found], indent=2))
    else:
        _show_publications(file, accounts, found)
    changed = [str(publication.path) for publication in found if publication.state == CHANGED]
    if changed:
        raise InputError(
            f"{', '.join(changed)} is not what was published under that name: find out what changed it, and "
            "restore it from a copy. If it was given up on purpose, enter that with `htf budget withdraw`"
        )


@budget.command()
@file_argument
@dataset_option
@click.option("--entry", required=True, metavar="ID", help="The charge that is published.")
def withdraw(file: Path, dataset: str, entry: str) -> None:
    """Enter that a published file is withdrawn, before it is deleted or overwritten.

    Its charge stands: whoever has a copy keeps it. Nothing is refunded.
    """
    from htf.privacy.budget import BudgetFile

    found = BudgetFile(file, dataset).withdraw(entry)
    say(
        f"Entry {found.id} is withdrawn: {found.file} may be deleted or overwritten. Its epsilon of "
        f"{found.epsilon} stays spent."
    )


@budget.command()
@file_argument
@dataset_option
@click.option("--entry", required=True, metavar="ID", help="The charge that is pending.")
@click.argument("release_file", metavar="RELEASE", type=FileName())
def publish(file: Path, dataset: str, entry: str, release_file: Path) -> None:
    """Enter RELEASE for a charge that is pending although its release was written.

    That is so if the machine stopped between the two. Nothing is refunded by it.
    """
    from htf.privacy.budget import BudgetFile

    found = BudgetFile(file, dataset).publish(entry, release_file)
    say(
        f"Entry {found.id}, of epsilon {found.epsilon} for {found.unit}, is published as {found.file}."
    )


@budget.command()
@file_argument
@dataset_option
def close(file: Path, dataset: str) -> None:
    """Allow no more charges, ever."""
    from htf.privacy.budget import BudgetFile

    account = BudgetFile(file, dataset).close()
    say(
        f"{dataset} has been closed since {account.closed}: {account.spent} of {account.cap} was spent."
    )


def open_budget(ledger: Path | None, dataset: str | None, output: Path) -> BudgetFile | None:
    """The budget that a release is to be charged to, if any."""
    from htf.privacy.budget import BudgetFile

    if (ledger is None) != (dataset is None):
        raise InputError("give both or neither: --ledger FILE --dataset NAME")
    if ledger is None or dataset is None:
        return None
    found = BudgetFile(ledger, dataset)
    click.get_current_context().meta[BUDGET] = found
    found.check_output(output)
    return found


def check_charge(
    budget: BudgetFile,
    epsilon: Epsilon,
    mechanism: Mechanism,
    noise: NoiseSource,
    protection: Protection = OF_RECORDS,
) -> None:
    """Refuse early, before the data are read, what the charge would refuse anyway."""
    from htf.privacy.budget import check_adds_up

    check_adds_up(noise.private, mechanism.parameters())
    account = budget.account()
    _tell_pending(account)
    account.check(epsilon, protection.name)


def tell_charge(budget: BudgetFile | None, release: Release) -> None:
    """All is done by now: if the file cannot be read again, that is no failure."""
    if budget is None:
        return
    charged = f"Charged to {budget.dataset} in {budget.path} as entry {release.budget_entry}"
    try:
        account = budget.account()
    except InputError as error:
        say(f"{charged}.")
        say(f"Note: how much is left could not be read: {error}.", err=True)
    else:
        say(f"{charged}: {account.left} of {account.cap} is left.")


def tells_what_was_charged(command: Callable[..., None]) -> Callable[..., None]:
    """Whoever gave a budget file learns from every error what became of the budget."""

    @wraps(command)
    def wrapped(**options: Any) -> None:
        try:
            command(**options)
        except BaseException as error:
            if options["ledger"] is not None:
                _tell_what_was_charged(error)
            raise

    return wrapped


def _tell_what_was_charged(error: BaseException) -> None:
    """The budget file itself is asked: an interruption may come between a charge and whoever it is for."""
    from htf.privacy.budget import tell_charges

    budget = click.get_current_context().meta.get(BUDGET)
    if budget is not None:
        tell_charges(error, budget, budget.attempts)
    if not told_charges(error) and NOTHING not in str(error):
        error.add_note(f"{NOTHING}.")


def told_charges(error: BaseException) -> list[str]:
    """What was charged before it went wrong. Click puts an error of its own before an interruption."""
    found = [*getattr(error, "__notes__", []), *getattr(error.__cause__, "__notes__", [])]
    return [note for note in found if note.startswith((CHARGE, NOTHING))]


def _show_publications(file: Path, accounts: list[Account], found: list[Publication]) -> None:
    entries = sum(len(account.entries) for account in accounts)
    budgets, charges = _some(len(accounts), "budget"), _some(entries, "charge")
    say(f"{file} is sound: {budgets} with {charges}.")
    if found:
        rows = [(p.entry.id, p.dataset, p.entry.file, p.state, p.path or "") for p in found]
        show_table(("entry", "data set", "file", "state", "where"), rows)
    for account in accounts:
        _tell_pending(account)


def _some(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _show_account(account: Account) -> None:
    state = "" if account.closed is None else f"; closed since {account.closed}"
    title = f"{account.dataset}: {account.spent} spent of {account.cap}, {account.left} left{state}"
    rows = [
        (e.id, e.charged, e.mechanism, e.label, e.epsilon, e.state, _published(e))
        for e in account.entries
    ]
    headers = ("entry", "charged", "mechanism", "label", ">epsilon", "state", "SHA-256")
    show_table(headers, rows, title)
    console().print(f"Epsilon is for {account.unit}, {account.relation}.", soft_wrap=True)
    _tell_pending(account)


def _published(entry: Entry) -> str:
    return "" if entry.sha256 is None else f"{entry.sha256[:SHOWN_OF_DIGEST]}…"


def _tell_pending(account: Account) -> None:
    for entry in account.pending:
        say(
            f"Note: the charge of {entry.epsilon} on {entry.charged} (entry {entry.id}, {entry.label}) "
            "is pending: its release is being made, or was broken off. It counts all the same.",
            err=True,
        )
