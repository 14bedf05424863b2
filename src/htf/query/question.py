"""Questions: what is asked of a release or of each release of a series, without any of them at hand.

A question is about rows: boxes, zones or the steps of axes, all of which are edges on the map (`htf.query.asked`); or about
polygons, or the table of different people. To add a kind, make a subclass with its `answer`.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from htf.base import arguments
from htf.errors import InputError
from htf.query.answer import Answer, first_period
from htf.query.asked import AskedRows
from htf.query.columns import PEOPLE
from htf.query.where import Where, full_rows, read_where

if TYPE_CHECKING:
    from htf.frame.division import Division
    from htf.frame.domain import Domain
    from htf.query.shapes import Gathered
    from htf.release.release import Release

OUR_CALLER = 3  # levels up the stack: the warning names the line that asked


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """What is asked of a release or a series: boxes, polygons, zones, or a row for each name of a level.

    The same question can be asked of many releases: `Release.ask` and `Series.ask` answer it. Without any argument it is
    about the whole map.

    Examples
    --------
    >>> import htf
    >>> city = htf.synthetic_city(20_000, seed=1)
    >>> domain = htf.Domain.from_bounds(*city.domain_bounds, cells=64)
    >>> matrix = htf.read_points([city.x, city.y], domain)
    >>> release = htf.publish(matrix, epsilon=1, noise="seeded:1")
    >>> question = htf.Question.boxes([-30.02, 39.98, -29.98, 40.02])
    >>> bool(release.ask(question).low[0] > 0)
    True
    """

    edges: Any = None  # of boxes, or the file that has them
    names: tuple[str, ...] = ()  # of zones
    steps: tuple[str, ...] = ()  # levels and axes that get a row for each of their names
    where: Where = field(default_factory=dict)

    @classmethod
    def boxes(
        cls, boxes: Any = None, where: Where | None = None, *, by: Sequence[str] = ()
    ) -> Question:
        """Ask about boxes.

        Parameters
        ----------
        boxes : array_like, str or Path, optional
            One box W,S,E,N in map coordinates, or many as rows; by default the whole map. A box may also name every
            axis, all low edges first, then all high ones. The name of a file stands for the boxes in it.
        where : mapping, optional
            Ranges of further axes, such as `{"hour": (7, 10)}`, or names on them, such as `{"offence": "Assault"}`.
            Other axes are counted whole.
        by : sequence of str
            Levels and axes, as in `by`: each box gets a row for each of their names.

        Returns
        -------
        Question
            The question.

        Raises
        ------
        InputError
            If an argument is of the wrong kind. Whether boxes fit a map shows when it is asked.

        Examples
        --------
        >>> len(release.ask(htf.Question.boxes([[-30.1, 39.9, -30, 40], [-30, 40, -29.9, 40.1]])))
        2
        """
        return cls(boxes, steps=_texts(by, "by"), where=read_where(where))

    @classmethod
    def zones(cls, *names: str, where: Where | None = None, by: Sequence[str] = ()) -> Question:
        """Ask about zones or other names along the first axis that has zones.

        Parameters
        ----------
        *names : str
            Zones of any level.
        where : mapping, optional
            As in `boxes`.
        by : sequence of str
            As in `boxes`.

        Returns
        -------
        Question
            The question.

        Raises
        ------
        InputError
            If there is no name, or an argument is of the wrong kind.

        Examples
        --------
        >>> htf.Question.zones("North", "South").names
        ('North', 'South')
        """
        if not names:
            raise InputError("name a zone at least: to count every one, Question.by")
        return cls(names=_texts(names, "zones"), steps=_texts(by, "by"), where=read_where(where))

    @classmethod
    def by(cls, *names: str, where: Where | None = None) -> Question:
        """Ask for a row for each name of a level, or for each step of an axis.

        Parameters
        ----------
        *names : str
            Levels, such as `district`, and axes, such as `hour`. A level of zones that both ends of trips have gives
            a row for each pair; `zone:district` is of one axis. By default the first axis of zones.
        where : mapping, optional
            As in `boxes`.

        Returns
        -------
        Question
            The question.

        Raises
        ------
        InputError
            If an argument is of the wrong kind.

        Examples
        --------
        >>> htf.Question.by("district", "hour").steps
        ('district', 'hour')
        """
        return cls(steps=_texts(names, "by") or ("",), where=read_where(where))

    @classmethod
    def polygons(
        cls,
        geometries: Any,
        *,
        crs: Any = None,
        where: Where | None = None,
        labels: Sequence[str] | None = None,
    ) -> Question:
        """Ask about polygons. Needs shapely.

        Parameters
        ----------
        geometries : object
            Polygons as shapely geometries, a GeoPandas series or frame, GeoJSON, or what `grid_zones` and `h3_zones`
            make; one or many.
        crs : object, optional
            The reference system of bare shapely geometries, by default that of the map.
        where : mapping, optional
            As in `boxes`.
        labels : sequence of str, optional
            What to call them. Zones have their own labels.

        Returns
        -------
        Question
            The question.

        Raises
        ------
        InputError
            If something is not a polygon, or there is not one label for each.

        Examples
        --------
        >>> hexagons = htf.h3_zones(release.domain, 5)
        >>> release.ask(htf.Question.polygons(hexagons)).to_arrow().column_names[:2]
        ['label', 'count']
        """
        from htf.query.shapes import gather
        from htf.query.tilings import Tiling

        if isinstance(geometries, Tiling):
            labels, geometries = geometries.labels, geometries.geometries
        gathered = gather(geometries)
        known = None if labels is None else _texts(labels, "labels")
        if known is not None and len(known) != len(gathered.shapes):
            raise InputError(
                f"polygons need one label for each: {len(known):,} for {len(gathered.shapes):,}"
            )
        return PolygonQuestion(where=read_where(where), gathered=gathered, crs=crs, labels=known)

    @classmethod
    def different_people(cls) -> Question:
        """Ask for the table of different people: how many were in each box of its grid, or in each zone of its level.

        The boxes are fixed, and must not be added up: somebody who was in two of them counts in both.

        Returns
        -------
        Question
            The question.

        Examples
        --------
        >>> release.ask(htf.Question.different_people())
        Traceback (most recent call last):
        htf.errors.InputError: this release has no table of different people: one is made with `htf release --user COLUMN --distinct 16`
        """
        return PeopleQuestion()

    def rows(self, domain: Domain) -> Any:
        """Place a question about boxes or names on a map, for those who write exports or pages.

        Parameters
        ----------
        domain : Domain
            The map.

        Returns
        -------
        object
            The edges of each row as `rows`, and in `columns` what the rows are called.

        Raises
        ------
        InputError
            If the question does not fit the map.

        Examples
        --------
        >>> question.rows(release.domain).rows
        array([[-30.02,  39.98, -29.98,  40.02]])
        """
        asked = self._boxes(domain)
        if not (self.names or self.steps):
            return asked
        from htf.frame.division import read_by
        from htf.query.named import ask_by, ask_names, zone_axis

        if self.names:
            asked = ask_names(asked, zone_axis(domain), self.names)
        texts = [text or domain.names[zone_axis(domain)] for text in self.steps]
        return ask_by(asked, [part for text in texts for part in read_by(domain, text)])

    def answer(self, release: Release) -> Answer:
        """Answer for a release, as `Release.ask` does, but without a warning of places outside its map.

        Parameters
        ----------
        release : Release
            The release.

        Returns
        -------
        Answer
            One entry for each row.

        Raises
        ------
        InputError
            If the question does not fit the map.

        Examples
        --------
        >>> len(question.answer(release))
        1
        """
        from htf.query.boxes import count_rows

        source = self._source(release)
        asked = self.rows(source.domain)
        return _by(source, count_rows(asked, source.derived.index_for(asked)))

    def _source(self, release: Release) -> Release:
        """The zones of a map inside zones, if names are asked for that the map does not have."""
        zones = release.zones
        if zones is None or self.edges is not None or not (self.names or self.steps):
            return release
        from htf.frame.division import has_name

        known = not self.names and all(has_name(release.domain, text) for text in self.steps)
        return release if known else zones

    def _boxes(self, domain: Domain) -> AskedRows:
        if isinstance(self.edges, (str, Path)):
            from htf.query.box_files import read_box_file

            return read_box_file(
                arguments.path(self.edges, "the file of boxes"), domain, self.where
            )
        return AskedRows(domain, full_rows(domain, self.edges, self.where))


@dataclass(frozen=True, slots=True, eq=False)
class PolygonQuestion(Question):
    """A question about polygons, with what came with them."""

    gathered: Gathered = field(kw_only=True)
    crs: Any = None
    labels: tuple[str, ...] | None = None

    def answer(self, release: Release) -> Answer:
        from htf.query.polygons import count_polygons

        about = {"crs": self.crs, "where": self.where, "labels": self.labels}
        index = release.derived.answering_index
        return _by(release, count_polygons(release.domain, index, self.gathered, **about))


@dataclass(frozen=True, slots=True, eq=False)
class PeopleQuestion(Question):
    """A question about different people in the boxes or zones that a release has fixed."""

    def answer(self, release: Release) -> Answer:
        from htf.estimation.distinct import estimate_distinct

        if release.distinct is None:
            raise InputError(
                "this release has no table of different people: one is made with `htf release --user COLUMN --distinct 16`"
            )
        found = estimate_distinct(release.distinct)
        values = found.different_people, found.std_error, found.low, found.high
        asked = _areas(release.distinct.division, release.domain)
        return Answer(PEOPLE, values, found.quantity, found.quantity, asked, (release,))


def _areas(division: Division, domain: Domain) -> AskedRows:
    """A row for each area of a division, in the order of their numbers."""
    from htf.query.named import ask_by

    whole = AskedRows(domain, full_rows(domain))
    if division.grid is None:
        return ask_by(whole, division.parts(domain))
    edges = division.edges(domain)
    lines = [axis.from_cells(edge) for axis, edge in zip(domain.axes, edges, strict=True)]
    low = np.meshgrid(*(line[:-1] for line in lines), indexing="ij")
    high = np.meshgrid(*(line[1:] for line in lines), indexing="ij")
    return replace(whole, rows=np.column_stack([ends.ravel() for ends in (*low, *high)]))


def ask(question: object, release: Release) -> Answer:
    """The answer, with a warning if some of it is about places outside the map."""
    return warn_of_outside(check_question(question).answer(release), OUR_CALLER + 1)


def warn_of_outside(answer: Answer, levels: int = OUR_CALLER) -> Answer:
    """Warn of places outside the map, on behalf of the line that asked."""
    if answer.kind != PEOPLE and not answer.inside.all():
        first = first_period(answer)
        note = first.asked.note(first.inside)
        if note is not None:
            warnings.warn(note, UserWarning, levels)
    return answer


def check_question(given: object) -> Question:
    remedy = "make one with htf.Question.boxes, polygons, zones or by"
    return arguments.instance(given, Question, "the question", remedy)


def _by(release: Release, answer: Answer) -> Answer:
    """The answer, which now says who answered and what was counted."""
    return replace(answer, quantity=release.quantity, counted=release.counted, releases=(release,))


def _texts(given: Sequence[str], name: str) -> tuple[str, ...]:
    listed = arguments.items(given, name, "a list of texts")
    return tuple(arguments.text(one, f"each text of {name}") for one in listed)
