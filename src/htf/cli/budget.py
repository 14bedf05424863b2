"""`htf budget`: one privacy budget over several releases. Its commands are init, show, check and more."""

from __future__ import annotations

from dataclasses import MISSING
from pathlib import Path
from typing import TYPE_CHECKING

import click

import htf
from htf.base.options import argument, option
from htf.cli import declared
from htf.cli.charging import report_pending
from htf.cli.options import JSON, RELEASE, UNITS
from htf.cli.screen import console, say, say_json, show_table
from htf.errors import InputError
from htf.files import is_folder
from htf.privacy.protection import RECORD

if TYPE_CHECKING:
    from htf.privacy.account import Account, Entry
    from htf.privacy.budget import Publication

SHOWN_OF_DIGEST = 12
FILE = argument()
DATASET = option("Name of the data.", "NAME", default=MISSING)


@click.group()
def budget() -> None:
    """Keep one privacy budget over all releases of the same data."""


@declared.command(budget)
def init(
    file: Path = FILE,
    dataset: str = DATASET,
    cap: str = option("Epsilon for all releases together. It is final.", default=MISSING),
    unit: str = option("What epsilon protects.", default=RECORD, choices=UNITS),
) -> None:
    """Create a budget, in a new FILE or beside others. `htf release --budget` charges it."""

    account = htf.BudgetFile.create(file, dataset, cap, unit=UNITS[unit].name).account()
    say(
        f"Created a budget for {dataset} in {file}: epsilon {account.cap} for {account.unit}, over all "
        "releases."
    )


@declared.command(budget)
def show(
    file: Path = FILE,
    dataset: str | None = option("Show only this budget.", "NAME"),
    as_json: bool = JSON,
) -> None:
    """Show what was spent, on what, and what remains."""
    from htf.privacy.budget import read_accounts

    accounts = read_accounts(file) if dataset is None else [htf.BudgetFile(file, dataset).account()]
    if as_json:
        say_json([account.to_dict() for account in accounts])
        return
    for account in accounts:
        _show_account(account)


@declared.command(budget)
def check(
    file: Path = FILE,
    folders: tuple[Path, ...] = option(
        "Also look for published files here. Can be repeated.", "FOLDER", flag="--in"
    ),
    as_json: bool = JSON,
) -> None:
    """Check FILE for damage, and compare published files with their digests.

    Published files are looked up by name beside FILE, in the current folder and in each --in FOLDER. The
    exit code is 2 if FILE is damaged or a published file was changed. A missing file is no error.
    """
    from htf.privacy.budget import CHANGED, check_publications, read_accounts

    for folder in folders:
        if not is_folder(folder):
            raise InputError(f"there is no folder {folder}")
    accounts = read_accounts(file)  # damage is refused here
    publications = check_publications(accounts, [file.parent, Path(), *folders])
    if as_json:
        say_json([publication.to_dict() for publication in publications])
    else:
        _show_publications(file, accounts, publications)
    changed = [str(one.path) for one in publications if one.state == CHANGED]
    if changed:
        raise InputError(
            f"{', '.join(changed)} is not what was published under that name: find out what changed it, and "
            "restore it from a copy. If you gave it up on purpose, record that with `htf budget withdraw`"
        )


@declared.command(budget)
def withdraw(
    file: Path = FILE,
    dataset: str = DATASET,
    entry: str = option("Entry of the published release.", "ID", default=MISSING),
) -> None:
    """Record that a published file is withdrawn, before you delete or overwrite it.

    Its epsilon stays spent, because others may have copies.
    """

    withdrawn = htf.BudgetFile(file, dataset).withdraw(entry)
    say(
        f"Entry {withdrawn.id} is withdrawn: {withdrawn.file} may be deleted or overwritten. Its epsilon of "
        f"{withdrawn.epsilon} stays spent."
    )


@declared.command(budget)
def publish(
    file: Path = FILE,
    dataset: str = DATASET,
    entry: str = option("Entry of the pending charge.", "ID", default=MISSING),
    release_file: Path = RELEASE,
) -> None:
    """Record RELEASE for a charge that is pending although its release was written.

    This happens if the machine stops between the two. Nothing is refunded.
    """

    published = htf.BudgetFile(file, dataset).publish(entry, release_file)
    say(
        f"Entry {published.id}, of epsilon {published.epsilon} for {published.unit}, is published as "
        f"{published.file}."
    )


@declared.command(budget)
def close(file: Path = FILE, dataset: str = DATASET) -> None:
    """Close a budget for good: it allows no more charges."""

    account = htf.BudgetFile(file, dataset).close()
    say(
        f"{dataset} has been closed since {account.closed}: {account.spent} of {account.cap} was spent."
    )


def _show_publications(
    file: Path, accounts: list[Account], publications: list[Publication]
) -> None:
    entries = sum(len(account.entries) for account in accounts)
    budgets, charges = _plural(len(accounts), "budget"), _plural(entries, "charge")
    say(f"{file} is sound: {budgets} with {charges}.")
    if publications:
        rows = [(p.entry.id, p.dataset, p.entry.file, p.state, p.path or "") for p in publications]
        show_table(("entry", "data set", "file", "state", "where"), rows)
    for account in accounts:
        report_pending(account)


def _plural(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _show_account(account: Account) -> None:
    state = "" if account.closed is None else f"; closed since {account.closed}"
    title = (
        f"{account.dataset}: {account.spent} spent of {account.cap}, {account.left} remains{state}"
    )
    rows = [
        (e.id, e.charged, e.mechanism, e.label, e.epsilon, e.state, _published(e))
        for e in account.entries
    ]
    headers = ("entry", "charged", "mechanism", "label", ">epsilon", "state", "SHA-256")
    show_table(headers, rows, title)
    told = f" People are told apart {account.people}." if account.people else ""
    console().print(f"Epsilon is for {account.unit}, {account.relation}.{told}", soft_wrap=True)
    report_pending(account)


def _published(entry: Entry) -> str:
    return "" if entry.sha256 is None else f"{entry.sha256[:SHOWN_OF_DIGEST]}…"
