"""Means: the sum of a weight divided by the number of records, with intervals, from two releases.

Both numbers have errors, and the two releases have noise of their own. The interval of their ratio is Fieller's. Let s
be the middle of the interval of the sum and a half its width, n and b the same of the number of records. The interval
holds the values r >= 0 with

    (s - r n)^2 <= a^2 + r^2 b^2,

those for which s - r n may be zero. No mean is below zero, because weights are not. If n may be zero, no ratio can be
ruled out, and the interval is unbounded. Records that are spread unevenly disturb the sum and the number alike. The
formula takes the errors as independent, so intervals are rather too wide there (docs/measurements.md has what was measured).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from htf.errors import InputError
from htf.frame.domain import FloatArray
from htf.query.answer import Answer, check_same_question
from htf.query.columns import COUNTS, MEANS
from htf.release.release import Release


def means_of(sums: Answer, counts: Answer) -> Answer:
    """The mean weight of a record, from the sums of a weight and the number of records; or of a person, whose mean counts
    once, from those of split people."""
    if not (sums.kind == counts.kind == COUNTS and sums.periods == counts.periods):
        raise InputError("a mean is made of two counts, of a release or of the same periods")
    for over, under in zip(sums.releases, counts.releases, strict=True):
        check_pair(over, under)
    check_same_question(sums, counts)
    bounded, ratio, low, high = divide(sums, counts)
    counted = sums.counted.replace("sum of", "mean of", 1)
    partial = np.maximum(sums.partial, counts.partial)
    values = ratio, low, high, bounded, sums.count, counts.count, partial, sums.inside
    return Answer(
        MEANS, values, counted, counted, sums.asked, sums.releases, sums.periods, (sums, counts)
    )


def check_pair(over: Release, under: Release) -> None:
    """Refuse two releases whose numbers cannot be divided."""
    if over.protection.weight is None:
        raise InputError(
            f"the first release counts {over.counted}, but a mean needs the sum of a weight (htf release --weight)"
        )
    if under.protection.weight is not None:
        raise InputError(
            f"the second release counts {under.counted}, but a mean is per record or person: give a release of them, "
            "without a weight"
        )
    for place, one in (("first", over), ("second", under)):
        if one.activity is not None:
            raise InputError(
                f"the {place} release counts {one.counted}, of all records: a mean divides what was counted of those kept. "
                "Make both with --spend activity=0"
            )
    plain = replace(over.protection, weight=None, max_weight=1, of_query=False)
    if plain != replace(under.protection, of_query=False):
        raise InputError(
            f"the first release is for {over.protection.spoken}, and the second for {under.protection.spoken}: a mean "
            "needs the same records in both"
        )
    if over.domain != under.domain:
        raise InputError(
            "the two releases have different maps: a mean needs the same bounds, axes and cells in both"
        )


def divide(
    sums: Answer, counts: Answer
) -> tuple[NDArray[np.bool_], FloatArray, FloatArray, FloatArray]:
    """The ratio of two counts of the same places, whose errors are independent: whether its interval is bounded, the best
    guess, and both ends."""
    over, under = sums.count, counts.count
    n, b = _middle(counts)
    bounded = n > b
    with np.errstate(all="ignore"):
        mean = np.where(under > 0, over / under, np.nan)
        low, high = _interval(sums, counts)
    bounded &= np.isfinite(low) & np.isfinite(high)
    return bounded, mean, np.where(bounded, low, -np.inf), np.where(bounded, high, np.inf)


def _interval(sums: Answer, counts: Answer) -> tuple[FloatArray, FloatArray]:
    """Both ends, for numbers of records whose interval is above zero. The roots are written so that nothing cancels."""
    s, a = _middle(sums)
    n, b = _middle(counts)
    lead, constant = (n - b) * (n + b), (s - a) * (s + a)
    root = np.sqrt(np.maximum(np.square(a * n) + np.square(b) * (s - a) * (s + a), 0.0))
    high = (s * n + root) / lead
    low = constant / (s * n + root)
    return np.where(s > a, low, 0.0), np.maximum(high, 0.0)


def _middle(answers: Answer) -> tuple[FloatArray, FloatArray]:
    """The raw answer, and how far off it may be. The upper side of an interval is never the shorter one, and its lower side may
    have been cut off at zero."""
    return answers.raw, answers.high - answers.raw
