"""The report as one HTML file: three pages, no scripts, nothing fetched. Public.

A policy in its head forbids it to fetch anything, as in the maps. A browser prints it on three sheets of A4.
"""

from __future__ import annotations

from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from htf.base import arguments
from htf.errors import InputError
from htf.files import check_output, write_text
from htf.privacy.budget import BudgetFile
from htf.report.board import board_page
from htf.report.html import Markup, element, join, markup
from htf.report.lawyer import lawyer_page
from htf.report.statistician import statistician_page
from htf.report.subject import Subject, read_subject

STYLE = Path(__file__).with_name("report.css")
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
HTML = ".html"
HEAD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}: report</title>
<style>{style}</style>
</head>
<body>"""
NOT_PRIVATE = (
    "NOT PRIVATE. The noise came from a seed or a script, and anyone who knows it can subtract it. This release must not be "
    "published. The pages show what would hold with secret noise."
)
PAGES = (
    ("For the board", board_page),
    ("For the lawyer", lawyer_page),
    ("For the statistician", statistician_page),
)


def write_report(
    release: str | Path,
    output: str | Path,
    *,
    budget: BudgetFile | None = None,
    title: str | None = None,
    runs: int | None = None,
    overwrite: bool = False,
) -> None:
    """Write a report on a release, or on a series: a page for a board, one for a lawyer, one for a statistician.

    The file needs no network, and a browser prints it on three sheets. It is made from the release alone, so it costs
    nothing. Needs matplotlib.

    Parameters
    ----------
    release : str or Path
        The file of a release, or the folder of a series.
    output : str or Path
        The file to write, .html.
    budget : BudgetFile, optional
        The account that the release was charged to. The report then has the sum of all its releases.
    title : str, optional
        The title, by default the name of the file.
    runs : int, optional
        How many releases to simulate for the errors; 0 for none. By default 3, and 1 if there are very many leaves.
    overwrite : bool
        Whether a file of that name may be replaced.

    Raises
    ------
    InputError
        If the release was not charged to that account, or an argument is wrong.
    ReleaseFileError
        If the file is damaged, or is no release.
    OutputError
        If the output cannot be written, or must not be.

    Examples
    --------
    >>> import htf
    >>> domain = htf.Domain.from_bounds(0, 0, 1, 1, cells=16)
    >>> matrix = htf.FrequencyMatrix.from_cells(domain, [[3] * 500, [5] * 500])
    >>> htf.publish(matrix, epsilon=1).save("city.parquet")
    >>> htf.write_report("city.parquet", "report.html", title="A made-up city", runs=1)
    """
    source, path = arguments.path(release, "release"), arguments.path(output, "the output")
    if budget is not None:
        arguments.instance(
            budget, BudgetFile, "budget", "open one with htf.BudgetFile(path, dataset)"
        )
    if runs is not None:
        arguments.whole(runs, "runs", 0)
    check_report(source, path, budget, overwrite=arguments.flag(overwrite, "overwrite"))
    save_report(read_subject(source, title, budget, runs), path, overwrite=overwrite)


def check_report(source: Path, path: Path, budget: BudgetFile | None, *, overwrite: bool) -> None:
    """Refuse an output before anything is computed."""
    if path.suffix.lower() != HTML:
        raise InputError(
            f"a report is a {HTML} file, got {path.name!r}: print it to PDF with a browser"
        )
    inputs = [source] if budget is None else [source, budget.path]
    check_output(path, overwrite=overwrite, inputs=inputs)


def save_report(subject: Subject, path: Path, *, overwrite: bool = False) -> None:
    write_text(path, html_report(subject), overwrite=overwrite)


def html_report(subject: Subject) -> str:
    """The text of the file."""
    pages = [
        element(
            "article",
            _head(subject, number, name),
            *_warnings(subject),
            make(subject),
            _foot(subject, number),
            css="page" if number == 1 else "page dense",
        )
        for number, (name, make) in enumerate(PAGES, start=1)
    ]
    head = HEAD.format(
        policy=POLICY, title=markup(subject.title), style=STYLE.read_text(encoding="utf-8")
    )
    return "\n".join([head, *map(str, pages), "</body>", "</html>", ""])


def _head(subject: Subject, number: int, name: str) -> Markup:
    first = number == 1
    return element(
        "header",
        element("p", name, css="audience"),
        element("h1" if first else "p", subject.title, css="" if first else "title"),
    )


def _warnings(subject: Subject) -> list[Markup]:
    found = []
    if not subject.release.private:
        found.append(element("p", NOT_PRIVATE, css="alarm"))
    if subject.failed:
        said = (
            f"DOES NOT HOLD TOGETHER. These checks failed: {', '.join(subject.failed)}. Do not rely on the file before you "
            "know why; page 3 has the findings."
        )
        found.append(element("p", said, css="alarm"))
    warning = subject.meaning.warning
    if warning is not None:
        found.append(element("p", warning[0].upper() + warning[1:], css="caution"))
    return found


def _foot(subject: Subject, number: int) -> Markup:
    today = datetime.now(UTC).date().isoformat()
    said = (
        f"{subject.file}, SHA-256 {subject.sha256[:16]}…",
        f"made {today} with HTF {version('htf-dp')} (htf report)",
        f"page {number} of {len(PAGES)}",
    )
    return element("footer", join(*(element("span", one) for one in said)))
