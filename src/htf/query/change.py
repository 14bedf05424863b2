"""The change from one release to another, in the same boxes, polygons or zones. Public.

The noise of two releases is drawn apart, so the squares of their errors add up. What is shown is the difference of the two
counts, so that the three numbers agree. Its interval is made like that of a count: around the difference of the raw
answers, which have next to no bias, and where the shown difference lies outside, it reaches as far.

Which changes are more than noise is decided for all of them together, by Holm's rule (Scandinavian Journal of Statistics,
1979): the chance that even one mark is false is at most 5 %, however the errors depend on each other. Errors are sums of
Laplace noise, whose tails are longer than those of the normal law, so the longer of the two is taken. Where a box
cuts leaves, records that are spread unevenly in them add an error whose law is not known: there the rule is as good as the
intervals are (docs/measurements.md has what was measured).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from htf.errors import InputError
from htf.estimation.level import OUTSIDE
from htf.estimation.noise_law import NORMAL_DEVIATIONS
from htf.frame.crs import same_crs
from htf.frame.domain import FloatArray
from htf.query.answer import PERIOD, SINCE, Answer, check_same_question
from htf.query.columns import CHANGES, COUNTS
from htf.query.ratios import divide
from htf.release.release import Release

WHY_STRICTER = "a mark needs a clearer change than an interval does"
SAME_INSIDE = 1e-9  # shares of boxes on the two maps that differ by less are the same


def changes_between(after: Answer, before: Answer) -> Answer:
    """What changed from the second answer to the first, to the same question. Refuses answers that mean other things."""
    if not after.kind == before.kind == COUNTS:
        raise InputError(f"only counts can be subtracted, not {after.kind} and {before.kind}")
    for first, second in zip(after.releases, before.releases, strict=False):
        check_comparable(first, second)
    periods = _periods(after, before)
    check_same_question(after, before)
    apart = np.abs(after.inside - before.inside) > SAME_INSIDE
    if np.any(apart):
        raise InputError(
            f"question {1 + int(np.argmax(apart))} lies on one of the maps more than on the other: "
            "compare only what both maps cover"
        )
    return replace(subtracted(after, before), periods=periods)


def subtracted(after: Answer, before: Answer) -> Answer:
    """The same for answers whose rows are known to be about the same places."""
    shown, raw = after.count - before.count, after.raw - before.raw
    down, up = reaches(after, before)
    _, *ratios = divide(after, before)
    percent, percent_low, percent_high = (100 * (one - 1) for one in ratios)
    values = (
        before.count,
        after.count,
        shown,
        np.minimum(raw - down, shown),
        np.maximum(raw + up, shown),
        percent,
        np.fmin(percent_low, percent),
        np.fmax(percent_high, percent),
        mark_beyond_noise(raw, widest_reach(after, before)),
    )
    about = after.quantity, after.counted, after.asked, after.releases, after.periods
    return Answer(CHANGES, values, *about, (after, before))


def error_of_change(changes: Answer) -> FloatArray:
    """The standard error of each change."""
    after, before = changes.parts
    return np.hypot(after.std_error, before.std_error)


def mark_together(tables: Sequence[Answer]) -> list[NDArray[np.bool_]]:
    """Which changes of all these tables are more than noise: the chance that any mark is false is at most 5 %."""
    raw = [one.parts[0].raw - one.parts[1].raw for one in tables]
    reach = [widest_reach(*one.parts) for one in tables]
    marked = mark_beyond_noise(np.concatenate(raw), np.concatenate(reach))
    return np.split(marked, np.cumsum([len(one) for one in raw])[:-1])


def _periods(after: Answer, before: Answer) -> dict[str, list[str]]:
    later, earlier = after.periods.get(PERIOD), before.periods.get(PERIOD)
    if (later is None) != (earlier is None):
        raise InputError(
            "one answer is of a series and the other of a release: ask both for the same"
        )
    if later is None or earlier is None:
        return {}
    return {PERIOD: later} if later == earlier else {SINCE: earlier, PERIOD: later}


def check_comparable(first: Release, second: Release) -> None:
    """Refuse two releases whose numbers mean different things."""
    if first.counted != second.counted:
        raise InputError(
            f"one release counts {first.counted} and the other {second.counted}, so their difference means nothing: "
            "make both count the same"
        )
    systems = first.domain.crs, second.domain.crs
    if systems[0] != systems[1] and (None in systems or not same_crs(*map(str, systems))):
        raise InputError(
            f"the maps have different reference systems, {systems[0]} and {systems[1]}: they cannot be compared"
        )
    if first.domain.axes[2:] != second.domain.axes[2:] and first.domain.axes != second.domain.axes:
        raise InputError(
            "the two releases have different further axes: compare releases with the same axes"
        )


def unmarked_note(low: FloatArray, high: FloatArray, marked: NDArray[np.bool_]) -> str | None:
    """A note on why some changes of a table have no mark although their intervals leave out zero; None if there are none."""
    number, many = int(np.sum(~marked & ((low > 0) | (high < 0)))), len(marked)
    if number == 0:
        return None
    if many == 1:
        return f"The interval of the change leaves out zero, but it is not marked: {WHY_STRICTER}."
    which = "1 change has" if number == 1 else f"{number:,} changes have"
    return (
        f"{which} no mark although the interval leaves out zero: of {many:,} intervals, about {OUTSIDE * many:,.2g} miss the "
        f"true change by chance. Marks allow for that (Holm's rule over the whole table): {WHY_STRICTER}."
    )


def reaches(after: Answer, before: Answer) -> tuple[FloatArray, FloatArray]:
    """How far the difference of raw answers may be too high, and too low. The lower side of an interval may have been cut
    off at zero, so it is taken from the standard error; the upper side may be longer."""
    (down, up), (down_before, up_before) = (
        (NORMAL_DEVIATIONS * one.std_error, one.high - one.raw) for one in (after, before)
    )
    return np.hypot(down, up_before), np.hypot(up, down_before)


def widest_reach(after: Answer, before: Answer) -> FloatArray:
    """How far the difference of raw answers may be off, by the longer side of each interval. Where a box cuts leaves, what
    is spread unevenly in them has longer tails than noise; the longer side makes room for that."""
    down, up = (
        np.maximum(NORMAL_DEVIATIONS * one.std_error, one.high - one.raw) for one in (after, before)
    )
    return np.hypot(down, up)


def mark_beyond_noise(raw: FloatArray, reach: FloatArray) -> NDArray[np.bool_]:
    """Which differences are more than noise, by Holm's rule over all of them."""
    deviations = np.divide(
        NORMAL_DEVIATIONS * np.abs(raw), reach, out=np.zeros(len(raw)), where=reach > 0
    )
    chances = chance_beyond(deviations)
    order = np.argsort(chances, kind="stable")
    limits = OUTSIDE / np.arange(len(raw), 0, -1)
    passed = np.logical_and.accumulate(chances[order] <= limits)
    marked = np.zeros(len(raw), dtype=np.bool_)
    marked[order[passed]] = True
    return marked


def chance_beyond(deviations: FloatArray) -> FloatArray:
    """At most the chance that noise is so many of its standard deviations away from zero, to either side."""
    from math import erfc

    normal = np.array([erfc(one / np.sqrt(2)) for one in deviations.tolist()])
    return np.asarray(np.maximum(normal, np.exp(-np.sqrt(2) * deviations)))
