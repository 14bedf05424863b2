"""Whether a series is consistent: each release alone, and all of them with the plan and the budget. Public."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from htf.errors import HtfError
from htf.privacy.account import PUBLISHED
from htf.privacy.budget import digest_of
from htf.privacy.epsilon import Epsilon
from htf.release.file import read
from htf.release.release import Release
from htf.series.borrowing import BORROWED_FROM, background_of
from htf.series.folder import Released, unfinished, unit_name
from htf.series.series import Series
from htf.verification import Check, verify_file


def verify_series(folder: str | Path) -> list[Check]:
    """Check every release, the plan and the budget of a series.

    Parameters
    ----------
    folder : str or Path
        The folder of the series.

    Returns
    -------
    list of Check
        One for each release, and those of the series.

    Raises
    ------
    InputError
        If there is no series in the folder.

    Examples
    --------
    >>> [check.name for check in verify_series("city") if not check.passed]
    []
    """
    series = Series(folder)
    digests = {one.label: digest_of(one.path) for one in series.released}
    checks = [_check_release(series, one, digests) for one in series.released]
    return [*checks, _check_entries(series, digests), _check_spent(series)]


def _check_release(series: Series, one: Released, digests: dict[str, str]) -> Check:
    """A release is sound, and is what the plan says."""
    try:
        file = read(one.path)
    except HtfError as error:
        return Check(one.label, False, str(error))
    wrong, release = [check.name for check in verify_file(file) if not check.passed], file.release
    if release.domain != series.plan.domain:
        wrong.append("another map")
    if release.epsilon != series.plan.each:
        wrong.append(f"epsilon {release.epsilon}, not {series.plan.each}")
    if release.protection.name != unit_name(series.plan):
        wrong.append(f"for {release.protection.name}")
    if release.background is not None and not _follows(series, release):
        wrong.append("its background is not what earlier releases say")
    strange = [
        prior.name
        for prior in release.priors[:1]
        if prior.name.endswith(".parquet") and prior.sha256 not in digests.values()
    ]
    wrong += [f"its prior {name} is no release of the series" for name in strange]
    told = ", ".join(wrong) or f"sound, epsilon {release.epsilon}, as planned"
    return Check(one.label, not wrong, told)


def _follows(series: Series, release: Release) -> bool:
    """Whether the background is what the releases say that it was borrowed from."""
    paths = {digest_of(one.path): one.path for one in series.released}
    marks = release.facts.get(BORROWED_FROM)
    if not isinstance(marks, list) or not marks or not set(marks) <= set(paths):
        return False
    found = background_of(release, [Release.load(paths[mark]) for mark in marks])
    known = release.background
    return known is not None and all(
        np.allclose(*pair, rtol=1e-6, atol=1e-6)
        for pair in ((found.values, known.values), (found.variances, known.variances))
    )


def _check_entries(series: Series, digests: dict[str, str]) -> Check:
    """Every release was charged and entered, and every entry has its release."""
    entries = [entry for account in series.accounts() for entry in account.entries]
    published = {one.label: one.sha256 for one in entries if one.state == PUBLISHED}
    files = {one.label: one.file for one in entries if one.state == PUBLISHED}
    wrong = [f"{label} is not entered" for label in digests if label not in published]
    wrong += [
        f"{label} is not the file that was entered"
        if label in digests
        else f"{label} has no file: put {files[label]} back, or bring it in with `htf series adopt`"
        for label, sha256 in published.items()
        if digests.get(label) != sha256
    ]
    pending = [one.label for one in entries if one.state not in (PUBLISHED, "withdrawn")]
    wrong += [f"the charge of {label} is pending" for label in pending]
    wrong += [
        f"{left.name} is left of an interrupted run: delete it"
        for left in unfinished(series.folder)
    ]
    return Check(
        "entries", not wrong, "; ".join(wrong) or f"{len(digests)} releases, each charged once"
    )


def _check_spent(series: Series) -> Check:
    """No unit loses more than the plan allows: the sum, or the largest of what single periods cost."""
    spent = [sum(entry.epsilon.units for entry in one.entries) for one in series.accounts()]
    most = max(spent, default=0)
    told = f"one unit loses at most {Epsilon(most) if most else 0} of {series.plan.total}"
    as_planned = all(
        (one.cap, one.unit) == (series.plan.total, unit_name(series.plan))
        for one in series.accounts()
    )
    labels = {e.label.partition(".")[0] for one in series.accounts() for e in one.entries}
    if not as_planned:
        told += ", but the budget file has another cap or unit than the plan"
    if len(labels) > series.plan.releases:
        told += (
            f", but {len(labels)} periods were charged, of {series.plan.releases} that were planned"
        )
    passed = as_planned and len(labels) <= series.plan.releases
    return Check("budget", passed and most <= series.plan.total.units, told)
