"""What maps of a series have in common: its name, its releases, and the words above them."""

from __future__ import annotations

from htf.errors import InputError
from htf.release.release import Release
from htf.series.series import Series


def name_of(series: Series) -> str:
    """The name of its folder."""
    return series.folder.resolve().name


def releases_of(series: Series) -> dict[str, Release]:
    """The last release of each period, in the order of time; an error if there is none."""
    found = {period: series.release(period) for period in series.periods}
    if not found:
        raise InputError(f"{series.folder} has no release yet: add one with `htf series add`")
    return found


def told_periods(series: Series, names: list[str]) -> str:
    """Which periods are shown, and what each of them costs."""
    told = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
    return f"{told},  ε = {series.plan.each} for each {series.plan.period}"


def shown_for_all(releases: list[Release]) -> Release:
    """The release whose statement is shown: the latest, unless one is not private."""
    return next((one for one in releases if not one.private), releases[-1])
