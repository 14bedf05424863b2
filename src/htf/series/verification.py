"""Whether a series holds together: each release by itself, and all of them with the plan and the budget. Public."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from htf.errors import HtfError
from htf.privacy.account import PUBLISHED
from htf.privacy.budget import digest_of
from htf.privacy.epsilon import Epsilon
from htf.release.release import Release
from htf.series.borrowing import background_of
from htf.series.folder import REMEMBERED, Released, unit_name
from htf.series.series import Series
from htf.verification import Check, verify


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
    """A release is sound by itself, and is what the plan says."""
    wrong = [check.name for check in verify(one.path) if not check.passed]
    try:
        release = Release.load(one.path)
    except HtfError as error:
        return Check(one.label, False, str(error))
    if release.domain != series.plan.domain:
        wrong.append("another map")
    if release.epsilon != series.plan.each:
        wrong.append(f"epsilon {release.epsilon}, not {series.plan.each}")
    if release.protection.name != unit_name(series.plan):
        wrong.append(f"for {release.protection.name}")
    if release.background is not None and not _follows(series, one, release):
        wrong.append("its background is not what earlier releases say")
    strange = [prior.name for prior in release.priors[:1] if prior.sha256 not in digests.values()]
    wrong += [f"its prior {name} is no release of the series" for name in strange]
    told = ", ".join(wrong) or f"sound, epsilon {release.epsilon}, as planned"
    return Check(one.label, not wrong, told)


def _follows(series: Series, one: Released, release: Release) -> bool:
    """Whether the background is what the releases say that were there before this one was charged."""
    charged = {e.label: e.charged for account in series.accounts() for e in account.entries}
    before: dict[str, Released] = {}
    for other in series.released:
        is_older = charged.get(other.label, "") <= charged.get(one.label, "")
        if other.period.start < one.period.start and is_older:
            before[other.period.name] = other
    known = [Release.load(other.path) for other in list(before.values())[-REMEMBERED:]]
    if not known or release.background is None:
        return False
    found = background_of(release, known)
    pairs = (
        (found.values, release.background.values),
        (found.variances, release.background.variances),
    )
    return all(np.allclose(*pair, rtol=1e-6, atol=1e-6) for pair in pairs)


def _check_entries(series: Series, digests: dict[str, str]) -> Check:
    """Every release was charged and entered, and every entry has its release."""
    entries = [entry for account in series.accounts() for entry in account.entries]
    published = {one.label: one.sha256 for one in entries if one.state == PUBLISHED}
    wrong = [f"{label} is not entered" for label in digests if label not in published]
    wrong += [
        f"{label} is not the file that was entered" if label in digests else f"{label} has no file"
        for label, sha256 in published.items()
        if digests.get(label) != sha256
    ]
    pending = [one.label for one in entries if one.state not in (PUBLISHED, "withdrawn")]
    wrong += [f"the charge of {label} is pending" for label in pending]
    return Check(
        "entries", not wrong, "; ".join(wrong) or f"{len(digests)} releases, each charged once"
    )


def _check_spent(series: Series) -> Check:
    """No unit loses more than the plan allows: the sum, or the largest of what single periods cost."""
    spent = [sum(entry.epsilon.units for entry in one.entries) for one in series.accounts()]
    most = max(spent, default=0)
    told = f"one unit loses at most {Epsilon(most) if most else 0} of {series.plan.total}"
    return Check("budget", most <= series.plan.total.units, told)
