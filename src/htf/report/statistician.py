"""The third page, for a statistician: mechanism, ledger, errors by size, sizes of leaves, checks, digests. Public."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version

import numpy as np

from htf.estimation.homogeneous import PRIOR_TRUST
from htf.estimation.level import LEVEL_TEXT
from htf.forecasts.release_errors import AreaErrors
from htf.frame.domain import FloatArray
from htf.query.answer_texts import show_count
from htf.release.file import digests
from htf.release.release import Release
from htf.report.html import Content, Markup, element, join, picture, rows, section, table
from htf.report.pictures import size_picture
from htf.report.sizes import LeafSizes
from htf.report.subject import Subject
from htf.report.words import is_square, per_cent, short, things

MOST_LINES = 9  # of the ledger
MOST_CHECKS = 13
MOST_OF_SERIES = 4  # checks of a series, and files
LONGEST_VALUE = 48
LONGEST_FINDING = 96


def statistician_page(subject: Subject) -> Markup:
    release = subject.release
    return join(
        element(
            "div",
            section("Mechanism", rows(_mechanism(release))),
            section(_ledger_title(release), _ledger(release)),
            css="columns",
        ),
        element("h2", "Errors by size of area"),
        _errors(subject),
        _sizes(release),
        element("h2", "Checks (htf verify)"),
        _checks(subject),
        element("h2", "Files and versions"),
        rows(_versions(subject)),
    )


def _mechanism(release: Release) -> Iterator[tuple[str, Content]]:
    yield "mechanism", release.mechanism
    yield "noise", release.noise
    yield "estimates", f"{release.estimator}, from {len(release.measurements):,} noisy measurements"
    yield "map", "; ".join(map(str, release.domain.axes))
    yield "reference system", release.domain.crs or "none"
    if release.protection.most_shares > 1:
        yield f"ε of one {release.protection.piece}", str(release.record_epsilon)
    if release.factor != 1:
        yield "counts multiplied by", f"{release.factor:.4g}, by the activity of people"
    if release.activity is not None:
        activity = release.activity
        yield f"someone with more {activity.things}", f"counts as having {activity.most:,}"
    facts = {name: fact for name, fact in release.facts.items() if name != PRIOR_TRUST}
    for name, values in (("parameters", release.parameters), ("found with noise", facts)):
        if values:
            told = (
                f"{key} = {shortened(str(value), LONGEST_VALUE)}" for key, value in values.items()
            )
            yield name, ", ".join(told)
    for prior in release.priors:
        yield "prior", f"{prior.name} (SHA-256 {prior.sha256[:16]}…)"


def shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}…"


def _ledger_title(release: Release) -> str:
    each = "" if release.protection.most_shares == 1 else f" for each {release.protection.piece}"
    return f"Ledger: {short(release.spent)} of {short(release.record_epsilon)} spent{each}"


def _ledger(release: Release) -> Markup:
    lines = []
    for line in release.ledger:
        most, spent = short(line.largest_epsilon), short(line.spent_after)
        lines.append((line.label, line.kind, f"{line.answers:,}", most, spent))
    left = len(lines) - MOST_LINES
    if left > 0:
        lines[MOST_LINES - 1 : -1] = [(f"… {left} more lines: htf info", "", "", "", "")]
    return table(("for", "kind", ">answers", ">ε each, at most", ">spent"), lines)


def _errors(subject: Subject) -> Markup:
    errors, quantity = subject.errors, subject.release.quantity
    headers = ["area", ">typical count", f">typical {LEVEL_TEXT} interval"]
    if errors.runs > 0:
        headers += [">simulated: typical error", ">1 in 20 above", ">intervals that hold"]
    lines = [list(_errors_of(row, quantity)) for row in errors.areas]
    return join(table(headers, lines), element("p", " ".join(_notes(subject)), css="note"))


def _errors_of(row: AreaErrors, quantity: str) -> Iterator[Content]:
    """What is expected, and what was simulated."""
    share, found = row.relative_margin, row.simulated
    relative = "" if share is None or share > 10 else f" ({per_cent(share)})"
    yield row.name
    yield show_count(row.count, quantity)
    yield f"± {show_count(row.margin, quantity)}{relative}"
    if found is not None:
        yield _spread(found.errors, quantity)
        yield show_count(float(found.large_errors.mean()), quantity)
        yield per_cent(float(found.covered.mean()))


def _spread(values: FloatArray, quantity: str) -> str:
    """The mean over runs, with the least and the most."""
    mean = show_count(float(values.mean()), quantity)
    if len(values) == 1:
        return mean
    low, high = (show_count(float(end), quantity) for end in (values.min(), values.max()))
    return f"{mean} ({low} to {high})"


def _notes(subject: Subject) -> Iterator[str]:
    errors, release = subject.errors, subject.release
    if any(map(is_square, errors.areas)):
        number = max(row.number for row in errors.areas)
        yield f"{number:,} squares of each size lie around {things(release.quantity)} of the release."
    yield f"Counts, intervals and errors are medians, in {release.quantity}."
    yield f"The promise is that {LEVEL_TEXT} of intervals hold the true count."
    if errors.runs == 0:
        yield f"Nothing was simulated: {errors.reason}."
        return
    times = "once" if errors.runs == 1 else f"{errors.runs} times"
    yield (
        f"Simulated {times} with seed {errors.seed}, at no cost: records were scattered as the release counts them, and were "
        "released again by the same mechanism with other noise"
        + ("; in brackets, the least and the most of the runs." if errors.runs > 1 else ".")
    )
    yield "Real records may lie less evenly inside regions, and then real errors are larger."
    yield from errors.notes
    worst = min(
        (float(row.simulated.covered.mean()) for row in errors.areas if row.simulated), default=1.0
    )
    if worst < 0.9:
        yield (
            f"Intervals held the truth in as few as {per_cent(worst)} of cases: with the mechanism {release.mechanism} "
            "they are for the noise alone, and leave out how unevenly records lie inside regions."
        )


def _sizes(release: Release) -> Markup:
    sizes = LeafSizes.of(release)
    if sizes is None:
        return Markup("")
    quantity = things(release.quantity)
    lines = [
        (f"about {sizes.told(side)}", f"{leaves:,}", per_cent(area), per_cent(held))
        for side, leaves, area, held in sizes.classes
    ]
    headers = ("side of a region", ">regions", ">share of the map", f">share of {quantity}")
    told = (
        f"A region counts as one number, so nothing finer is known. Half of all {quantity} are in regions of at most "
        f"{sizes.fine} a side."
    )
    shown = picture(size_picture(release, sizes), "A map of the sizes of regions.", "sizes")
    facts = section("Fine and coarse", table(headers, lines), element("p", told, css="note"))
    return element("div", facts, element("figure", shown), css="columns picture")


def _checks(subject: Subject) -> Markup:
    of_series = subject.series is not None
    most = MOST_OF_SERIES if of_series else MOST_CHECKS
    # Failures before all others; then those of the whole series and of the latest releases.
    checks = sorted(subject.checks[:: -1 if of_series else 1], key=lambda check: check.passed)
    marks = {True: element("span", "ok", css="ok"), False: element("span", "WRONG", css="wrong")}
    lines = [
        (check.name, marks[check.passed], shortened(check.finding, LONGEST_FINDING))
        for check in checks[:most]
    ]
    made = table(("check", "result", "finding"), lines)
    left = len(checks) - len(lines)
    note = "These checks compare the file with itself. They cannot show that the noise was drawn honestly."
    if left > 0:
        more = "more checks passed" if checks[most].passed else "more checks, some of which failed"
        note = f"{left} {more}: `htf verify` has all. {note}"
    return element("div", made, element("p", note, css="note"), css="checks")


def _versions(subject: Subject) -> Iterator[tuple[str, Content]]:
    files = subject.files or ((subject.file, subject.sha256),)
    for name, sha256 in files[-MOST_OF_SERIES:]:
        yield name, element("span", "SHA-256 ", element("code", sha256))
    if len(files) > MOST_OF_SERIES:
        yield "", f"{len(files) - MOST_OF_SERIES} earlier files: the budget file has their digests"
    if not subject.files:
        said, held = digests(subject.release)
        both = f"{said[:24]}… (header), {held[:24]}… (rows)"
        yield "its contents", element("span", "SHA-256 ", element("code", both))
    yield "made by", subject.software
    yield (
        "report by",
        f"htf-dp {version('htf-dp')}, NumPy {np.__version__}, OpenDP {version('opendp')}; simulations are seeded, so that the "
        "same versions give the same numbers",
    )
