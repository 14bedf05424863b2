"""The change from one release to another, in the same boxes, polygons or zones. Public.

The noise of two releases is drawn apart, so the squares of their errors add up. What is shown is the difference of the two
counts, so that the three numbers agree. Its interval is made like that of a count: around the difference of the raw
answers, which have next to no bias, and where the shown difference lies outside, it reaches as far.

Which changes are more than noise is decided for all of them together, by Holm's rule (Scandinavian Journal of Statistics,
1979): the chance that even one mark is false is at most 5 %, however the errors depend on each other. Errors are sums of
Laplace noise, whose tails are longer than those of the normal law, so the longer of the two is taken. Where a box
cuts leaves, records that are spread unevenly in them add an error whose law is not known: there the rule is as good as the
intervals are (docs/series.md has what was measured).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from htf.base import arguments
from htf.base.read_only import ReadOnlyArrays
from htf.errors import InputError
from htf.estimation.level import LEVEL_TEXT, OUTSIDE
from htf.estimation.noise_law import NORMAL_DEVIATIONS
from htf.frame.crs import same_crs
from htf.frame.domain import FloatArray
from htf.query.ratios import check_truths, divide
from htf.query.tabular import Tabular, check_asked

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from htf.query.columns import Answers
    from htf.query.where import Where
    from htf.release.release import Release

COLUMNS = {
    "before": "Best guess of the {counted} before.",
    "after": "Best guess of the {counted} after.",
    "change": "After minus before.",
    "low": f"Lower end of the {LEVEL_TEXT} interval of the change.",
    "high": f"Upper end of the {LEVEL_TEXT} interval of the change.",
    "percent": "The change in per cent of what was before. Empty where nothing was expected before.",
    "percent_low": f"Lower end of its {LEVEL_TEXT} interval. Empty where there may have been nothing before.",
    "percent_high": f"Upper end of its {LEVEL_TEXT} interval. Empty where there may have been nothing before.",
    "beyond_noise": "Whether the change is more than noise. The chance that any mark of this table is false is at most "
    f"{OUTSIDE * 100:g} % (Holm's rule).",
    "counted": "What was counted.",
}
WHY_STRICTER = "a mark needs a clearer change than an interval does"
SAME_INSIDE = 1e-9  # shares of boxes on the two maps that differ by less are the same


@dataclass(frozen=True, slots=True, eq=False)
class Changes(Tabular, ReadOnlyArrays):
    """Changes with their intervals, one entry for each box, polygon or zone, in read-only arrays. `Release.difference` makes
    them.

    Attributes
    ----------
    before, after : ndarray of float
        The counts of both releases.
    change : ndarray of float
        `after` minus `before`.
    low, high : ndarray of float
        The 95 % interval of the change.
    percent, percent_low, percent_high : ndarray of float
        The same in per cent of `before`: NaN where nothing was expected before, and -inf to inf where there may have been
        nothing.
    beyond_noise : ndarray of bool
        Which changes are more than noise. The chance that any of them is not is at most 5 %.
    counted : str
        What was counted.
    asked : object, optional
        What was asked, for the tables that `to_pandas`, `to_geopandas` and `to_arrow` make.

    Examples
    --------
    >>> import htf
    >>> domain = htf.Domain.from_bounds(0, 0, 2, 2, cells=2)
    >>> may = htf.FrequencyMatrix.from_dense(domain, [[500, 20], [0, 30]])
    >>> june = htf.FrequencyMatrix.from_dense(domain, [[900, 20], [0, 30]])
    >>> before, after = (htf.publish(data, 1, noise="seeded:1") for data in (may, june))
    >>> changes = after.difference(before, [[0, 0, 1, 1], [1, 1, 2, 2]])
    >>> changes.change.round().astype(int), changes.beyond_noise
    (array([400,   0]), array([ True, False]))
    """

    before: FloatArray
    after: FloatArray
    change: FloatArray
    low: FloatArray
    high: FloatArray
    percent: FloatArray
    percent_low: FloatArray
    percent_high: FloatArray
    beyond_noise: NDArray[np.bool_]
    counted: str
    asked: Any = field(default=None, kw_only=True, repr=False)  # an Asked

    def __post_init__(self) -> None:
        arguments.text(self.counted, "what is counted (counted) of changes")
        check_asked(self.asked)
        arguments.row(self.change, "f", "change of changes")
        for name, column in self._arrays().items():
            if name == "beyond_noise":
                check_truths(column, "beyond_noise of changes")
            else:
                arguments.row(column, "f", f"{name} of changes")
            if len(column) != len(self.change):
                raise InputError(f"{name} of changes must be as long as change")
            column.flags.writeable = False

    def __len__(self) -> int:
        return len(self.change)

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {name: getattr(self, name) for name in COLUMNS if name != "counted"}

    def to_columns(self) -> dict[str, Any]:
        """All arrays by name and a last column that says what was counted, ready for a data frame or a file.

        Returns
        -------
        dict of ndarray
            The columns.

        Examples
        --------
        >>> list(changes.to_columns())[:3]
        ['before', 'after', 'change']
        """
        return {**self._arrays(), "counted": np.full(len(self), self.counted, dtype=object)}

    def to_labelled_columns(self) -> dict[str, Any]:
        """The same as `to_columns`: what changes are made into tables by.

        Returns
        -------
        dict of ndarray
            The columns.

        Examples
        --------
        >>> list(changes.to_labelled_columns()) == list(changes.to_columns())
        True
        """
        return self.to_columns()


def difference_of(
    after: Release,
    before: Release,
    boxes: Any = None,
    *,
    polygons: Any = None,
    crs: Any = None,
    where: Where | None = None,
) -> Changes:
    """What changed from one release to another; `Release.difference` describes the arguments."""
    check_comparable(after, before)
    if polygons is not None:
        if boxes is not None:
            raise InputError("give boxes or polygons, not both")
        answers = [one.count_polygons(polygons, crs=crs, where=where) for one in (after, before)]
    else:
        if boxes is None and after.domain != before.domain:
            raise InputError(
                "the two releases have different maps: name the boxes or polygons to compare"
            )
        answers = [one.count(boxes, where) for one in (after, before)]
    return changes_between(*answers)


def check_comparable(after: Release, before: Release) -> None:
    """Refuse two releases whose numbers mean different things."""
    from htf.release.release import check_release

    first, second = check_release(after, "the release"), check_release(before, "the other release")
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


def changes_between(after: Answers, before: Answers) -> Changes:
    """What changed from the second answers to the first, to the same questions."""
    apart = np.abs(after.inside - before.inside) > SAME_INSIDE
    if np.any(apart):
        raise InputError(
            f"question {1 + int(np.argmax(apart))} lies on one of the maps more than on the other: "
            "compare only what both maps cover"
        )
    shown, raw = after.count - before.count, after.raw - before.raw
    down, up = reaches(after, before)
    ratio = divide(after, before, after.counted)
    percent = 100 * (ratio.mean - 1)
    percent_low, percent_high = 100 * (ratio.low - 1), 100 * (ratio.high - 1)
    return Changes(
        np.array(before.count),
        np.array(after.count),
        shown,
        np.minimum(raw - down, shown),
        np.maximum(raw + up, shown),
        percent,
        np.fmin(percent_low, percent),
        np.fmax(percent_high, percent),
        mark_beyond_noise(raw, widest_reach(after, before)),
        after.counted,
        asked=after.asked,
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


def reaches(after: Answers, before: Answers) -> tuple[FloatArray, FloatArray]:
    """How far the difference of raw answers may be too high, and too low. The lower side of an interval may have been cut
    off at zero, so it is taken from the standard error; the upper side may be longer."""
    (down, up), (down_before, up_before) = (
        (NORMAL_DEVIATIONS * one.std_error, one.high - one.raw) for one in (after, before)
    )
    return np.hypot(down, up_before), np.hypot(up, down_before)


def widest_reach(after: Answers, before: Answers) -> FloatArray:
    """How far the difference of raw answers may be off, by the longer side of each interval. Where a box cuts leaves, what
    is spread unevenly in them has longer tails than noise; the longer side makes room for that."""
    return np.hypot(
        *(
            np.maximum(NORMAL_DEVIATIONS * one.std_error, one.high - one.raw)
            for one in (after, before)
        )
    )


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
