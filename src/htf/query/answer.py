"""What a release or a series answers: numbers with their errors, and what was asked beside them.

One class serves every question: counts, changes, means and different people differ in their columns, which
`htf.query.columns` declares. Tables, files, pages and pictures are made of it alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from htf.base import arguments
from htf.base.extras import need
from htf.base.read_only import ReadOnlyArrays, make_read_only
from htf.errors import InputError
from htf.frame.domain import FloatArray, IntArray
from htf.privacy.protection import RECORDS
from htf.query.columns import COUNTED, KINDS, OF_LEAVES, describe_columns

if TYPE_CHECKING:
    import geopandas
    import pandas
    import pyarrow as pa
    from numpy.typing import NDArray

    from htf.release.release import Release

PERIOD, SINCE = "period", "since"


class Columns:
    """The columns that answers of one kind or another have, for tools that check types and complete names."""

    __slots__ = ()

    if TYPE_CHECKING:
        count: FloatArray
        std_error: FloatArray
        low: FloatArray
        high: FloatArray
        partial: FloatArray
        inside: FloatArray
        raw: FloatArray
        before: FloatArray
        after: FloatArray
        change: FloatArray
        percent: FloatArray
        percent_low: FloatArray
        percent_high: FloatArray
        beyond_noise: NDArray[np.bool_]
        mean: FloatArray
        bounded: NDArray[np.bool_]
        sum: FloatArray
        records: FloatArray
        different_people: FloatArray
        west: FloatArray
        south: FloatArray
        east: FloatArray
        north: FloatArray
    else:

        def __getattr__(self, name: str) -> Any:
            """A column of the answer, or an edge of its boxes, such as `west`."""
            if name.startswith("_") or name in Answer.__slots__:  # while it is unpickled
                raise AttributeError(name)
            if name in KINDS[self.kind].columns:
                return self.values[list(KINDS[self.kind].columns).index(name)]
            edges = {} if self.asked is None else self.asked.edges()
            if name not in edges:
                raise AttributeError(f"{self.kind} have no {name!r}")
            return edges[name]


@dataclass(frozen=True, slots=True, eq=False)
class Answer(Columns, ReadOnlyArrays):
    """Numbers with their errors, one entry for each box, polygon or name, in read-only arrays.

    `Release.ask`, `Release.count` and `Series.ask` make one. Each column is an attribute. Counts have `count`,
    `std_error`, `low`, `high`, `partial`, `inside` and `raw`; `minus` and `per` give changes and means, and
    [counts for boxes](../answers.md) says what each column means. The answer of a series has a row for each period and
    box, period by period.

    Attributes
    ----------
    kind : str
        What kind of numbers these are: `counts`, `changes`, `means` or `different people`.
    values : tuple of ndarray
        The columns in order.
    quantity : str
        What is counted, in one or two words, such as `split people`: `Release.quantity`.
    counted : str
        The same with its bound, such as `records, at most 20 per person`: `Release.counted`.
    asked : object, optional
        What was asked, for the tables that `to_pandas`, `to_geopandas` and `to_arrow` make.
    releases : tuple of Release
        The releases that answered; of a series, one for each period.
    periods : dict of list
        Of a series: the period of each row, and `since` when a change is counted.
    parts : tuple of Answer
        What a change or a mean was computed from.

    Examples
    --------
    >>> import htf
    >>> domain = htf.Domain.from_bounds(0, 0, 2, 2, cells=2)
    >>> matrix = htf.FrequencyMatrix.from_dense(domain, [[500, 20], [0, 30]])
    >>> release = htf.publish(matrix, 1, noise="seeded:1")
    >>> answers = release.count([[0, 0, 1, 1], [0, 0, 2, 2]])
    >>> answers.count.round()
    array([500., 550.])
    """

    kind: str
    values: tuple[NDArray[Any], ...]
    quantity: str = RECORDS
    counted: str = RECORDS
    asked: Any = field(default=None, repr=False)  # an Asked, if it is known
    releases: tuple[Release, ...] = field(default=(), repr=False)
    periods: Mapping[str, list[str]] = field(default_factory=dict, repr=False)
    parts: tuple[Answer, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        make_read_only(self.values)

    def __len__(self) -> int:
        return len(self.values[0])

    def __dir__(self) -> Iterable[str]:
        return [*object.__dir__(self), *KINDS[self.kind].columns]

    def minus(self, other: Answer) -> Answer:
        """Subtract what was counted before: what changed, with intervals, and which changes are more than noise.

        Parameters
        ----------
        other : Answer
            The counts of the same question from before, of the same things. The maps may differ, if both cover it.

        Returns
        -------
        Answer
            `before`, `after`, `change`, its 95 % interval `low` and `high`, the same in `percent`, and `beyond_noise`. The
            chance that any mark of the table is false is at most 5 %.

        Raises
        ------
        InputError
            If the two count different things, or answer different questions.

        Examples
        --------
        >>> more = htf.FrequencyMatrix.from_dense(domain, [[900, 20], [0, 30]])
        >>> later = htf.publish(more, 1, noise="seeded:2")
        >>> changes = later.count([[0, 0, 1, 1], [1, 1, 2, 2]]).minus(release.count([[0, 0, 1, 1], [1, 1, 2, 2]]))
        >>> changes.beyond_noise
        array([ True, False])
        """
        from htf.query.change import changes_between

        return changes_between(self, check_answer(other))

    def per(self, counts: Answer) -> Answer:
        """Divide sums of a weight by the number of records: the mean weight of a record, with intervals.

        Both releases come from the same records: one with a weight, one without. Someone who is in both is protected
        by the sum of both epsilons.

        Parameters
        ----------
        counts : Answer
            The number of records, for the same question, on the same map and for the same unit.

        Returns
        -------
        Answer
            `mean`, its 95 % interval `low` and `high`, whether that is `bounded`, the `sum`, the `records`, `partial` and
            `inside`.

        Raises
        ------
        InputError
            If the two do not go together.

        Examples
        --------
        >>> taxis = {"lon": [0.5] * 500, "lat": [0.5] * 500, "passengers": [2] * 480 + [9] * 20}
        >>> weighed = htf.read_points(taxis, domain, weight="passengers", max_weight=6)
        >>> sums = htf.publish(weighed, 1, noise="seeded:1")
        >>> trips = htf.publish(htf.read_points(taxis, domain), 1, noise="seeded:2")
        >>> means = sums.count().per(trips.count())
        >>> bool(means.low[0] < 2.16 < means.high[0]), means.counted
        (True, 'mean of passengers, at most 6 per record')
        """
        from htf.query.ratios import means_of

        return means_of(self, check_answer(counts))

    def changes(self) -> Answer:
        """Find what changed from each period of a series to the next one that was released.

        Returns
        -------
        Answer
            What `minus` gives, for each pair of periods. The chance that any mark of the whole table is false is at
            most 5 %.

        Raises
        ------
        InputError
            If these are no counts of at least two periods.

        Examples
        --------
        >>> release.count().changes()
        Traceback (most recent call last):
        htf.errors.InputError: changes over time need the answer of a series: subtract one answer from another with minus
        """
        if PERIOD not in self.periods:
            raise InputError(
                "changes over time need the answer of a series: subtract one answer from another with minus"
            )
        if len(self.releases) < 2:
            raise InputError("the series has one release, and a change needs two")
        size = len(first_period(self))
        later, earlier = self.take(slice(size, None)), self.take(slice(None, -size))
        return replace(later, releases=self.releases[1:]).minus(
            replace(earlier, releases=self.releases[:-1])
        )

    def take(self, rows: slice | IntArray) -> Answer:
        """Select rows.

        Parameters
        ----------
        rows : slice or ndarray of int
            Their places.

        Returns
        -------
        Answer
            These rows alone, in this order.

        Examples
        --------
        >>> answers.take(slice(1, None)).count.round()
        array([550.])
        """
        order = np.arange(len(self))[rows]
        return replace(
            self,
            values=tuple(column[order] for column in self.values),
            asked=None if self.asked is None else self.asked.take(order),
            periods={name: [texts[n] for n in order] for name, texts in self.periods.items()},
        )

    @property
    def named(self) -> list[tuple[str, list[str]]]:
        """What tells rows apart on a screen: columns of text, each after its heading."""
        known = [] if self.asked is None else self.asked.texts()
        return [*((name, texts) for name, texts in self.periods.items()), *known]

    @property
    def rule(self) -> str:
        """How the rows were computed, with the meaning of each column."""
        from htf.query.where import told_where

        what = "question" if self.asked is None else self.asked.what
        period = "period and " if self.periods else ""
        columns = describe_columns(
            self.counted if self.parts else self.quantity, KINDS[self.kind].columns
        )
        where = told_where(getattr(self.asked, "where", {}))
        return f"One row per {period}{what} that was asked for, with {KINDS[self.kind].rule}. {columns}{where}"

    def to_columns(self, *, of_leaves: bool = False) -> dict[str, NDArray[Any]]:
        """All arrays by name, ready for a data frame.

        Parameters
        ----------
        of_leaves : bool
            Whether to leave out columns that say nothing about a whole leaf.

        Returns
        -------
        dict of ndarray
            The columns.

        Examples
        --------
        >>> list(answers.to_columns())
        ['count', 'std_error', 'low', 'high', 'partial', 'inside', 'raw']
        """
        columns = dict(zip(KINDS[self.kind].columns, self.values, strict=True))
        return {n: c for n, c in columns.items() if n in OF_LEAVES} if of_leaves else columns

    def to_labelled_columns(self, *, of_leaves: bool = False) -> dict[str, Any]:
        """All arrays by name for a file, and a last column `counted` that says what is counted.

        Parameters
        ----------
        of_leaves : bool
            Whether to leave out columns that say nothing about a whole leaf.

        Returns
        -------
        dict of ndarray or pyarrow.Array
            The columns. Percentages and ends of intervals that are not bounded are missing.

        Examples
        --------
        >>> answers.to_labelled_columns()["counted"]
        array(['records', 'records'], dtype=object)
        """
        columns = {
            name: _finite(values) if KINDS[self.kind].columns[name].may_be_missing else values
            for name, values in self.to_columns(of_leaves=of_leaves).items()
        }
        return {**columns, COUNTED: np.full(len(self), self.counted, dtype=object)}

    def to_dicts(self) -> list[dict[str, Any]]:
        """One dictionary for each row.

        Returns
        -------
        list of dict
            The rows.

        Examples
        --------
        >>> round(answers.to_dicts()[0]["count"])
        500
        """
        rows = zip(*(column.tolist() for column in self.values), strict=True)
        return [dict(zip(KINDS[self.kind].columns, row, strict=True)) for row in rows]

    def to_arrow(self) -> pa.Table:
        """Make a table of Arrow: what was asked, all that came with it, and the answers.

        Returns
        -------
        pyarrow.Table
            One row for each box or polygon. Boxes have the columns `west`, `south`, `east` and `north`, polygons
            the attributes that came with them, and zones what their layer says. Rows of a series start with the
            `period`. A column whose name the answers use gets `given_` before it.

        Examples
        --------
        >>> answers.to_arrow().column_names[:5]
        ['west', 'south', 'east', 'north', 'count']
        """
        from htf.query.frames import join_columns

        edges, given = ({}, {}) if self.asked is None else (self.asked.edges(), self.asked.given())
        return join_columns({**self.periods, **edges}, given, self.to_labelled_columns())

    def to_pandas(self) -> pandas.DataFrame:
        """Make a data frame of pandas, with the columns of `to_arrow`. Needs pandas.

        Returns
        -------
        pandas.DataFrame
            One row for each box or polygon. Polygons of a frame of GeoPandas keep its index.

        Raises
        ------
        MissingExtraError
            If pandas is not installed.

        Examples
        --------
        >>> answers.to_pandas()["count"].round().tolist()
        [500.0, 550.0]
        """
        from htf.query.frames import as_frame

        need("A data frame", "pandas", extra="tables")
        return self._indexed(as_frame(self.to_arrow()))

    def to_geopandas(self) -> geopandas.GeoDataFrame:
        """Make a data frame of GeoPandas: the columns of `to_arrow`, and a shape for each row. Needs geopandas.

        Returns
        -------
        geopandas.GeoDataFrame
            Boxes as rectangles in the reference system of the map, polygons as they were given, and zones as their
            layer has them.

        Raises
        ------
        InputError
            If the answers do not know what was asked, or there is no map.
        MissingExtraError
            If GeoPandas is not installed.

        Examples
        --------
        >>> answers.to_geopandas().geometry[0].bounds
        (0.0, 0.0, 1.0, 1.0)
        """
        from htf.query.frames import as_layer

        need("A frame with shapes", "geopandas")
        if self.asked is None:
            raise InputError(
                "these answers do not know what was asked: take those of Release.ask, Release.count or Release.count_polygons"
            )
        layer = self.asked.layer()
        return self._indexed(as_layer(self.to_arrow(), layer.shapes, layer.crs))

    def _indexed(self, frame: Any) -> Any:
        index = None if self.asked is None else self.asked.index()
        return frame if index is None else frame.set_axis(index, axis="index")

    def _repr_html_(self) -> str:
        """What a notebook shows: the first rows."""
        from htf.query.frames import first_rows_html

        return first_rows_html(self.to_arrow())


def first_period(answer: Answer) -> Answer:
    """The rows of the first period of a series; of a release, all."""
    return answer.take(slice(len(answer) // max(len(answer.releases), 1)))


def over_periods(answers: Mapping[str, Answer]) -> Answer:
    """The answers of several periods to one question as one answer, period by period."""
    first = next(iter(answers.values()))
    size = len(first)
    order = np.tile(np.arange(size), len(answers))
    return replace(
        first,
        values=tuple(
            np.concatenate(columns)
            for columns in zip(*(one.values for one in answers.values()), strict=True)
        ),
        asked=None if first.asked is None else first.asked.take(order),
        releases=tuple(release for one in answers.values() for release in one.releases),
        periods={PERIOD: [period for period in answers for _ in range(size)]},
    )


def check_answer(given: object) -> Answer:
    remedy = "take what Release.ask or Series.ask gives"
    return arguments.instance(given, Answer, "the other answer", remedy)


def check_same_question(one: Answer, other: Answer) -> None:
    """Refuse two answers whose rows are about different places."""
    asked = one.asked, other.asked
    if None in asked or asked[0] is asked[1] or asked[0].is_same(asked[1]):
        return
    domains = asked[0].domain, asked[1].domain
    if domains[0] == domains[1]:
        raise InputError("the two answers are to different questions: ask both the same")
    what = "zones" if any(domain.outlined for domain in domains) else "maps"
    raise InputError(
        f"the two releases have different {what}: name the boxes or polygons to compare, within both"
    )


def _finite(column: NDArray[Any]) -> Any:
    import pyarrow as pa

    return pa.array(column, mask=~np.isfinite(column))
