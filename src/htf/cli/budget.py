"""Commands for a budget over several releases: `htf budget init`, `show`, `publish`, `close`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from htf.cli.screen import console, safe_text, show_table
from htf.errors import InputError
from htf.protection import OF_RECORDS, PERSON, RECORD, Protection

if TYPE_CHECKING:
    from htf.curator.budget import Account, BudgetFile, Entry
    from htf.curator.noise import NoiseSource
    from htf.epsilon import Epsilon
    from htf.mechanisms.base import Mechanism
    from htf.release import Release

SHOWN_OF_DIGEST = 12

file_argument = click.argument("file", type=click.Path(path_type=Path))
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
    from htf.curator.budget import BudgetFile

    account = BudgetFile.create(file, dataset, cap, unit=Protection(unit).name).account()
    click.echo(
        f"Made a budget for {dataset} in {file}: epsilon {account.cap} for each {unit}, over all "
        "releases."
    )


@budget.command()
@file_argument
@click.option("--dataset", metavar="NAME", help="Only this one.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def show(file: Path, dataset: str | None, as_json: bool) -> None:
    """Show what was spent, on what, and what is left."""
    from htf.curator.budget import BudgetFile, read_accounts

    accounts = read_accounts(file) if dataset is None else [BudgetFile(file, dataset).account()]
    if as_json:
        click.echo(json.dumps([account.to_dict() for account in accounts], indent=2))
        return
    for account in accounts:
        _show_account(account)


@budget.command()
@file_argument
@dataset_option
@click.option("--entry", required=True, metavar="ID", help="The charge that is pending.")
@click.argument("release_file", metavar="RELEASE", type=click.Path(path_type=Path))
def publish(file: Path, dataset: str, entry: str, release_file: Path) -> None:
    """Enter RELEASE for a charge that is pending although its release was written.

    That is so if the machine stopped between the two. Nothing is refunded by it.
    """
    from htf.curator.budget import BudgetFile

    found = BudgetFile(file, dataset).publish(entry, release_file)
    click.echo(
        f"Entry {found.id}, of epsilon {found.epsilon} for {found.unit}, is published as {found.file}."
    )


@budget.command()
@file_argument
@dataset_option
def close(file: Path, dataset: str) -> None:
    """Allow no more charges, ever."""
    from htf.curator.budget import BudgetFile

    account = BudgetFile(file, dataset).close()
    click.echo(
        f"{dataset} is closed since {account.closed}: {account.spent} of {account.cap} was spent."
    )


def open_budget(ledger: Path | None, dataset: str | None, output: Path) -> BudgetFile | None:
    """The budget that a release is to be charged to, if any."""
    from htf.curator.budget import BudgetFile

    if (ledger is None) != (dataset is None):
        raise InputError("give both or neither: --ledger FILE --dataset NAME")
    if ledger is None or dataset is None:
        return None
    found = BudgetFile(ledger, dataset)
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
    from htf.curator.budget import check_adds_up

    check_adds_up(noise.private, mechanism.parameters())
    account = budget.account()
    _tell_pending(account)
    account.check(epsilon, protection.name)


def tell_charge(budget: BudgetFile | None, release: Release) -> None:
    if budget is not None:
        account = budget.account()
        told = f"Charged to {account.dataset} in {budget.path} as entry {release.budget_entry}: "
        click.echo(safe_text(f"{told}{account.left} of {account.cap} is left."))


def _show_account(account: Account) -> None:
    from rich.markup import escape

    state = "" if account.closed is None else f"; closed since {account.closed}"
    title = f"{escape(account.dataset)}: {account.spent} spent of {account.cap}, {account.left} left{state}"
    rows = [
        (e.id, e.charged, escape(e.mechanism), escape(e.label), e.epsilon, e.state, _published(e))
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
        click.echo(
            f"Note: the charge of {entry.epsilon} on {entry.charged} (entry {entry.id}, {safe_text(entry.label)}) "
            "is pending: its release is being made, or was broken off. It counts all the same.",
            err=True,
        )
