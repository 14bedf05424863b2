"""Means: the sum of a weight divided by the number of records, with intervals, from two releases.

Both numbers have errors, and the two releases have noise of their own. The interval of their ratio is Fieller's. Let s
be the middle of the interval of the sum and a half its width, n and b the same of the number of records. The interval
holds the values r >= 0 with

    (s - r n)^2 <= a^2 + r^2 b^2,

those for which s - r n may be zero. No mean is below zero, because weights are not. If n may be zero, no ratio can be
ruled out, and the interval is unbounded. Records that are spread unevenly disturb the sum and the number alike. The
formula takes the errors as independent, so intervals are rather too wide there (docs/weights.md has what was measured).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from htf.base import arguments
from htf.base.read_only import ReadOnlyArrays
from htf.errors import InputError
from htf.estimation.level import LEVEL_TEXT
from htf.frame.domain import FloatArray
from htf.privacy.protection import RECORDS, Protection
from htf.query.tabular import Tabular, check_asked

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from htf.query.columns import Answers
    from htf.query.where import Where
    from htf.release.release import Release

UNBOUNDED = "unbounded: there may be no record"
COLUMNS = {
    "mean": "Best guess of the {counted}. Empty where no record is expected.",
    "low": f"Lower end of its {LEVEL_TEXT} interval. Empty where the interval is unbounded.",
    "high": f"Upper end of its {LEVEL_TEXT} interval. Empty where the interval is unbounded.",
    "bounded": "Whether the interval is bounded. It is not where there may be no record at all.",
    "sum": "Best guess of the sum, from the first release.",
    "records": "Best guess of the number of records, from the second release.",
    "partial": "Share of the sum or the number, whichever is larger, that comes from leaves covered only in part.",
    "inside": "Share of the box or polygon that lies on the map.",
    "counted": "What the mean is of.",
}


@dataclass(frozen=True, slots=True, eq=False)
class Ratios(Tabular, ReadOnlyArrays):
    """Means with their intervals, one entry for each box or polygon, in read-only arrays. `ratio` makes them.

    Attributes
    ----------
    mean : ndarray of float
        The best guess: `sum` divided by `records`, or NaN where no record is expected.
    low, high : ndarray of float
        The 95 % interval. It is -inf to inf where it is not bounded.
    bounded : ndarray of bool
        Whether the interval is bounded. It is not where there may be no record at all.
    sum : ndarray of float
        The best guess of the sum.
    records : ndarray of float
        The best guess of the number of records.
    partial : ndarray of float
        The share of the sum or of the number, whichever is larger, that comes from leaves covered in part.
    inside : ndarray of float
        The share of the box or polygon that lies on the map.
    counted : str
        What the mean is of, such as `mean of passengers, at most 6 per record`.
    asked : object, optional
        What was asked, for the tables that `to_pandas`, `to_geopandas` and `to_arrow` make.

    Examples
    --------
    >>> import htf
    >>> domain = htf.Domain.from_bounds(0, 0, 2, 2, cells=2)
    >>> taxis = {"lon": [0.5] * 500, "lat": [0.5] * 500, "passengers": [2] * 480 + [9] * 20}
    >>> sums = htf.read_points(taxis, domain, weight="passengers", max_weight=6)
    >>> total = htf.publish(sums, 1, noise="seeded:1")
    >>> trips = htf.publish(htf.read_points(taxis, domain), 1, noise="seeded:2")
    >>> means = htf.ratio(total, trips)
    >>> bool(means.low[0] < 2.16 < means.high[0]), means.counted
    (True, 'mean of passengers, at most 6 per record')
    """

    mean: FloatArray
    low: FloatArray
    high: FloatArray
    bounded: NDArray[np.bool_]
    sum: FloatArray
    records: FloatArray
    partial: FloatArray
    inside: FloatArray
    counted: str
    asked: Any = field(default=None, kw_only=True, repr=False)  # an Asked

    def __post_init__(self) -> None:
        arguments.text(self.counted, "what is counted (counted) of means")
        check_asked(self.asked)
        for name, column in self.to_columns().items():
            if name == "bounded":
                check_truths(column, "bounded of means")
            else:
                arguments.row(column, "f", f"{name} of means")
            if len(column) != len(self.mean):
                raise InputError(f"{name} of means must be as long as mean")
            column.flags.writeable = False

    def __len__(self) -> int:
        return len(self.mean)

    def to_columns(self) -> dict[str, Any]:
        """All arrays by name, ready for a data frame.

        Returns
        -------
        dict of ndarray
            The columns.

        Examples
        --------
        >>> list(means.to_columns())
        ['mean', 'low', 'high', 'bounded', 'sum', 'records', 'partial', 'inside']
        """
        return {name: getattr(self, name) for name in COLUMNS if name != "counted"}

    def to_labelled_columns(self) -> dict[str, Any]:
        """All arrays by name for a file: unbounded ends are missing, and a last column says what the mean is of.

        Returns
        -------
        dict of ndarray or pyarrow.Array
            The columns.

        Examples
        --------
        >>> means.to_labelled_columns()["counted"].to_pylist()
        ['mean of passengers, at most 6 per record']
        """
        import pyarrow as pa

        columns = self.to_columns()
        for name in ("mean", "low", "high"):
            columns[name] = pa.array(columns[name], mask=~np.isfinite(columns[name]))
        return {**columns, "counted": pa.array([self.counted] * len(self), pa.string())}

    def to_dicts(self) -> list[dict[str, Any]]:
        """One dictionary for each mean.

        Returns
        -------
        list of dict
            The rows.

        Examples
        --------
        >>> means.to_dicts()[0]["bounded"]
        True
        """
        columns = self.to_columns()
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        return [dict(zip(columns, row, strict=True)) for row in rows]


def check_truths(column: object, name: str) -> None:
    if not isinstance(column, np.ndarray) or column.dtype != np.bool_ or column.ndim != 1:
        raise arguments.unfit(name, "an array of truth values with one axis", column)


def ratio(
    sums: Release,
    counts: Release,
    boxes: Any = None,
    *,
    polygons: Any = None,
    crs: Any = None,
    where: Where | None = None,
) -> Ratios:
    """Divide the sum of a weight by the number of records, in boxes or polygons: the mean weight of a record.

    Both releases come from the same records: one with a weight, one without. Someone who is in both is protected by the
    sum of both epsilons.

    Parameters
    ----------
    sums : Release
        A release of the sum of a weight.
    counts : Release
        A release of the number of records, on the same map and for the same unit.
    boxes : array_like, optional
        One box W,S,E,N or many, as in `Release.count`; by default the whole map.
    polygons : object, optional
        Polygons in place of boxes, as in `Release.count_polygons`.
    crs : object, optional
        The reference system of bare shapely geometries, by default that of the map.
    where : mapping, optional
        Ranges of further axes, such as `{"hour": (7, 10)}`.

    Returns
    -------
    Ratios
        One mean for each box or polygon, with its interval.

    Raises
    ------
    InputError
        If the releases do not go together, or boxes and polygons are both given.

    Examples
    --------
    >>> import htf
    >>> domain = htf.Domain.from_bounds(0, 0, 2, 2, cells=2)
    >>> taxis = {"lon": [0.5] * 500, "lat": [0.5] * 500, "passengers": [2] * 480 + [9] * 20}
    >>> sums = htf.read_points(taxis, domain, weight="passengers", max_weight=6)
    >>> total = htf.publish(sums, 1, noise="seeded:1")
    >>> trips = htf.publish(htf.read_points(taxis, domain), 1, noise="seeded:2")
    >>> htf.ratio(total, trips, [1, 1, 2, 2]).bounded
    array([False])
    """
    check_pair(sums, counts)
    if polygons is not None:
        if boxes is not None:
            raise InputError("give boxes or polygons, not both")
        found = [one.count_polygons(polygons, crs=crs, where=where) for one in (sums, counts)]
    else:
        found = [one.count(boxes, where) for one in (sums, counts)]
    return divide(found[0], found[1], mean_of(sums.protection))


def check_pair(sums: object, counts: object) -> None:
    """Refuse two releases whose numbers cannot be divided."""
    from htf.release.release import check_release

    over, under = check_release(sums, "sums"), check_release(counts, "counts")
    if over.protection.weight is None:
        raise InputError(
            f"the first release counts {over.counted}, but a mean needs the sum of a weight (htf release --weight)"
        )
    if under.quantity != RECORDS:
        raise InputError(
            f"the second release counts {under.counted}, but a mean is per record: give a release of the records, "
            "without a weight"
        )
    if under.activity is not None:
        raise InputError(
            f"the second release counts {under.counted}: its counts are of all records, but the sums only of those kept. "
            "Make it with --spend activity=0"
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


def mean_of(protection: Protection) -> str:
    """What the mean of a release of sums is of, to stand beside numbers."""
    return protection.told.replace("sum of", "mean of", 1)


def divide(sums: Answers, counts: Answers, counted: str) -> Ratios:
    """The ratio of two answers about the same boxes or polygons, whose errors are independent."""
    over, under = sums.count, counts.count
    n, b = _middle(counts)
    bounded = n > b
    with np.errstate(all="ignore"):
        mean = np.where(under > 0, over / under, np.nan)
        low, high = _interval(sums, counts)
    bounded &= np.isfinite(low) & np.isfinite(high)
    return Ratios(
        mean,
        np.where(bounded, low, -np.inf),
        np.where(bounded, high, np.inf),
        bounded,
        np.array(over),
        np.array(under),
        np.maximum(sums.partial, counts.partial),
        np.array(sums.inside),
        counted,
        asked=sums.asked,
    )


def _interval(sums: Answers, counts: Answers) -> tuple[FloatArray, FloatArray]:
    """Both ends, for numbers of records whose interval is above zero. The roots are written so that nothing cancels."""
    s, a = _middle(sums)
    n, b = _middle(counts)
    lead, constant = (n - b) * (n + b), (s - a) * (s + a)
    root = np.sqrt(np.maximum(np.square(a * n) + np.square(b) * (s - a) * (s + a), 0.0))
    high = (s * n + root) / lead
    low = constant / (s * n + root)
    return np.where(s > a, low, 0.0), np.maximum(high, 0.0)


def _middle(answers: Answers) -> tuple[FloatArray, FloatArray]:
    """The raw answer, and how far off it may be. The upper side of an interval is never the shorter one, and its lower side may
    have been cut off at zero."""
    return answers.raw, answers.high - answers.raw
