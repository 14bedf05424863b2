"""What is drawn: the answers of a release on a grid, in zones, or as lines, with a title and a place in time. Public.

`kinds.py` has a class for each way to draw. `picture.py` draws layers with matplotlib and `browser/page.py` for a browser;
which layers are given decides how they are arranged (`draw.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from htf.base import arguments
from htf.errors import InputError
from htf.maps.window import PLACES
from htf.query.where import Where

if TYPE_CHECKING:
    from htf.release.release import Release
    from htf.series.plan import SeriesPlan
    from htf.series.series import Series


@dataclass(frozen=True, eq=False)
class Layer:
    """The counts of a release on a map, ready to be drawn with `draw`. `Layer.of` makes one.

    Attributes
    ----------
    release : Release
        Where the counts come from.
    title : str
        What to call it.
    axes : (str, str)
        The axes that are drawn. Others are summed.
    where : mapping
        Ranges of axes, such as `{"hour": (7, 10)}`.
    level : str, optional
        The level of zones.
    second : Layer, optional
        Another layer that is subtracted from it.
    step : str, optional
        Its place among others: a period of a series, or a part of an axis.
    along : str, optional
        The axis that it is a part of.
    plan : SeriesPlan, optional
        The plan of the series that it is a period of.

    Examples
    --------
    >>> import htf, numpy as np
    >>> domain = htf.Domain.from_bounds(0, 0, 2, 2, cells=2)
    >>> matrix = htf.FrequencyMatrix.from_dense(domain, [[500, 20], [0, 30]])
    >>> may, june = (
    ...     htf.Layer.of(htf.publish(matrix, 1), month) for month in ("May", "June")
    ... )
    >>> htf.draw([may, june], "both.png")
    >>> htf.draw([june.minus(may)], "difference.png")
    >>> june.minus(may).name
    'June minus May'
    """

    release: Release
    title: str
    axes: tuple[str, str] = PLACES[0]
    where: Where = field(default_factory=dict)
    level: str | None = None
    second: Layer | None = None
    step: str | None = None
    along: str | None = None
    plan: SeriesPlan | None = None

    @staticmethod
    def of(
        release: Release,
        title: str | None = None,
        *,
        axes: tuple[str, str] = PLACES[0],
        where: Where | None = None,
        level: str | None = None,
    ) -> Layer:
        """The counts of a release: on a grid, by zones if it has zones, or as lines if these are trips between zones and
        `where` names neither end.

        Parameters
        ----------
        release : Release
            The release.
        title : str, optional
            What to call it, by default its mechanism and epsilon.
        axes : (str, str)
            The axes to draw. Others are summed.
        where : mapping, optional
            Ranges of axes, such as `{"hour": (7, 10)}`.
        level : str, optional
            The level of zones, by default the lowest.

        Returns
        -------
        Layer
            What `draw` takes.

        Raises
        ------
        InputError
            If there are no such axes or zones, or a range is off the map.

        Examples
        --------
        >>> htf.Layer.of(june.release, where={"x": (0, 1)}).where
        {'x': (0, 1)}
        """
        from htf.maps.kinds import layer_of

        return layer_of(release, title, axes, where, level)

    @staticmethod
    def distinct(release: Release, title: str | None = None) -> Layer:
        """The table of different people of a release: box by box, by zone, or as lines between zones. These do not add
        up, so colours are numbers of people, not densities.

        Parameters
        ----------
        release : Release
            A release with a table of different people.
        title : str, optional
            What to call it, by default its mechanism and epsilon.

        Returns
        -------
        Layer
            What `draw` takes.

        Raises
        ------
        InputError
            If the release has no such table, or it has several numbers for one place.

        Examples
        --------
        >>> import htf
        >>> rides = {"lon": [0.5, 0.6, 1.5], "lat": [0.5, 0.4, 1.5], "rider": ["a", "a", "b"]}
        >>> domain = htf.Domain.from_bounds(0, 0, 2, 2, cells=2)
        >>> people = htf.read_people_by_box(rides, domain, 2, user="rider")
        >>> distinct = htf.measure_distinct(people, 1, noise="seeded:1")
        >>> matrix = htf.read_points(rides, domain, user="rider")
        >>> release = htf.publish(matrix, 2, bought=[distinct], noise="seeded:2")
        >>> htf.draw([htf.Layer.distinct(release)], "distinct.png")
        """
        from htf.maps.kinds import people_of

        return people_of(release, title)

    @staticmethod
    def periods(
        series: Series,
        *,
        axes: tuple[str, str] = PLACES[0],
        where: Where | None = None,
        level: str | None = None,
    ) -> list[Layer]:
        """The last release of each period of a series, in the order of time.

        Parameters
        ----------
        series : Series
            The series.
        axes : (str, str)
            The axes to draw. Others are summed.
        where : mapping, optional
            Ranges of axes, such as `{"hour": (7, 10)}`.
        level : str, optional
            The level of zones, by default the lowest.

        Returns
        -------
        list of Layer
            Small multiples in a picture, and a page with a slider in a browser.

        Raises
        ------
        InputError
            If the series has no release yet.

        Examples
        --------
        >>> recipe = htf.Recipe(domain=domain, epsilon=1)
        >>> series = htf.Series.create("city", recipe, "month", releases=12)
        >>> for month in ("2026-01", "2026-02"):
        ...     release = series.add(matrix, month)
        >>> htf.draw(htf.Layer.periods(series), "months.html")
        """
        from htf.maps.kinds import layer_of
        from htf.series.series import Series

        arguments.instance(series, Series, "series", "open one with htf.Series(folder)")
        if not series.periods:
            raise InputError(f"{series.folder} has no release yet: add one with `htf series add`")
        name = series.folder.resolve().name
        return [
            layer_of(
                series.release(period), name, axes, where, level, step=period, plan=series.plan
            )
            for period in series.periods
        ]

    def by(self, name: str) -> list[Layer]:
        """A layer for each of up to 24 steps of an axis that is not drawn, or for each of its names.

        Parameters
        ----------
        name : str
            The axis, or a level of names on it.

        Returns
        -------
        list of Layer
            Small multiples in a picture, and a page with a slider in a browser.

        Raises
        ------
        InputError
            If there is no such axis, it is drawn, or it has too many names.

        Examples
        --------
        >>> hour = htf.Axis("hour", 0, 24, 4)
        >>> rides = htf.FrequencyMatrix.from_dense(
        ...     htf.Domain((*domain.axes, hour)), np.full((2, 2, 4), 50)
        ... )
        >>> layer = htf.Layer.of(htf.publish(rides, 1), "rides")
        >>> [one.step for one in layer.by("hour")]
        ['hour 0 to 6', 'hour 6 to 12', 'hour 12 to 18', 'hour 18 to 24']
        """
        from htf.maps.kinds import steps_along

        return [*steps_along(self, name)]

    def minus(self, other: Layer) -> Layer:
        """How much more there is here than in another layer, with what is no more than noise pale.

        Parameters
        ----------
        other : Layer
            Another layer of the same kind.

        Returns
        -------
        Layer
            The difference.

        Raises
        ------
        InputError
            If the maps do not overlap, have other zones, or count different quantities.

        Examples
        --------
        >>> htf.draw([june.minus(may)], "change.html")
        """
        from htf.maps.kinds import subtract

        return subtract(self, other)

    @property
    def name(self) -> str:
        """The title, of a difference those of both.

        Examples
        --------
        >>> may.name
        'May'
        """
        return self.title if self.second is None else f"{self.title} minus {self.second.title}"
