"""`htf report`: a release on three pages, for a board, a lawyer and a statistician."""

from __future__ import annotations

from dataclasses import MISSING
from pathlib import Path

import htf
from htf.base.options import argument, option
from htf.cli import declared
from htf.cli.options import OVERWRITE
from htf.cli.screen import remark, say, warn_if_not_private, working
from htf.errors import InputError

MOST_RUNS = 100


@declared.command()
def report(
    release_file: Path = argument("RELEASE|SERIES"),
    budget_file: Path | None = option(
        "Budget file that the release was charged to: adds the sum of all releases.",
        "FILE",
        flag="--budget",
    ),
    dataset: str | None = option("With --budget: the name of the data in that file.", "NAME"),
    title: str | None = option("Title of the report.  [default: the name of the file]", "TEXT"),
    runs: int | None = option(
        "Number of releases to simulate for the errors, 0 for none.  [default: 3, or 1 for very many leaves]",
        within=(0, MOST_RUNS),
    ),
    output: Path = option("File to write: .html.", default=MISSING, flag="-o --output"),
    overwrite: bool = OVERWRITE,
) -> None:
    """Write a report on a release in three pages: for a board, for a lawyer and for a statistician.

    It says in plain words what was published, what is protected and what not, how far counts are off, and whether the file
    holds together. It is made from the release alone and costs nothing. The file works offline; a browser prints it on
    three sheets of A4.

    Of a series, the report has the plan, all releases, and the latest release in detail.
    """
    from htf.report.document import check_report, save_report
    from htf.report.subject import read_subject

    if (budget_file is None) != (dataset is None):
        raise InputError("--budget FILE and --dataset NAME go together: give both, or none")
    account = None
    if budget_file is not None and dataset is not None:
        account = htf.BudgetFile(budget_file, dataset)
    check_report(release_file, output, account, overwrite=overwrite)
    with working("reading and simulating"):
        subject = read_subject(release_file, title, account, runs)
        save_report(subject, output, overwrite=overwrite)
    say(
        f"Wrote {output}: 3 pages on {release_file.name}, epsilon {subject.release.epsilon} for {subject.release.protection.name}."
    )
    warn_if_not_private(subject.release)
    if subject.failed:
        remark(
            f"WARNING: {release_file} is inconsistent ({', '.join(subject.failed)}), and the report says so on every page."
        )
