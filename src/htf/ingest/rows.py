"""The rows of an opened source: what the columns of each say, and which cell of the map it lies in. Sensitive.

Each expression depends on one row alone, so that no record has an influence on how another is read.

A record is at a name if its text equals that name, to the last letter, and in a zone by an exact test of its point against
outlines. Each record is placed alone, and by the same function on every engine, so that places are the same on all engines.
Coordinates that are missing, NaN or infinite are in no zone, and not elsewhere either. Short lists of names are compared in
the engine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import ibis
import numpy as np
from ibis.expr.types import IntegerValue, Table, Value

from htf.errors import InputError
from htf.frame.axis import LABEL, NUMBER, Axis
from htf.frame.crs import same_crs
from htf.frame.division import Division
from htf.frame.domain import Domain
from htf.ingest import columns, people
from htf.ingest import expressions as ex
from htf.ingest.engines import Engine
from htf.ingest.geometry import column_function, coordinate, projected
from htf.ingest.reading import Reading
from htf.ingest.sources import Source, moved, open_source
from htf.ingest.text import Needed
from htf.ingest.weights import as_weight
from htf.privacy.protection import PEOPLE

MOST_COMPARED = 50  # by the engine: it compares with one name after the other
TYPES = {"label": "string", "x": "float64", "y": "float64"}


@contextmanager
def open_rows(source: Any, domain: Domain, reading: Reading) -> Iterator[Rows]:
    """The rows of a source, which has all columns that are named or guessed."""
    wanted, others = reading.wanted(source, domain), reading.others
    given = tuple(name for name in (*wanted, *others) if name is not None)
    guessed = ["one pair like lon and lat (else give --x and --y)"] * (wanted[:2] == [None, None])
    needed = Needed(
        lambda header: columns.fits(wanted, others, header),
        ", ".join([*guessed, *map(repr, given)]),
        given,
    )
    with open_source(source, reading, needed) as stored:
        opened = stored.called(columns.columns_in(wanted, others, stored.columns))
        fields = columns.find_fields(opened.columns, domain, wanted, opened.geometry)
        for name in others:
            columns.check_there(name, opened.columns)
        yield Rows(opened, domain, reading, fields)


@dataclass(frozen=True, slots=True)
class Rows:
    """An open source, and the columns of it that give places on a map."""

    opened: Source
    domain: Domain
    reading: Reading
    fields: Sequence[columns.Field]

    @property
    def names(self) -> list[str]:
        """The columns that are used."""
        return list(dict.fromkeys([*(one.column for one in self.fields), *self.reading.others]))

    @property
    def swapped(self) -> Rows:
        """The same with x and y exchanged."""
        return replace(self, fields=[self.fields[1], self.fields[0], *self.fields[2:]])

    def table(self, most: int | None = None) -> Table:
        """The columns that are used, as they are stored; of the first rows alone."""
        table = self.opened.select(self.names)
        return table if most is None else table.limit(most)

    def values(self, table: Table) -> dict[str, Any]:
        """The value of each column of places, under our own names, which no column of the data can have."""
        return {f"v{n}": self._value(table, field) for n, field in enumerate(self.fields)}

    def _value(self, table: Table, field: columns.Field) -> Value:
        column = table[field.column]
        if field.of_geometry:
            return coordinate(column, field.part, self.opened.engine.columns_as)
        if field.of_names:
            return ex.as_label(column, field.column, self.opened.text)
        if not field.of_time:
            return self.opened.number(table, field.column)
        return ex.OF_TIME[field.part](self.seconds(table, field.column)).cast("float64")

    def seconds(self, table: Table, name: str) -> IntegerValue:
        """The times of a column, in seconds since 1970."""
        text, reading = self.has_texts(table, name), self.reading
        seconds = ex.as_seconds(table[name], name, text, reading.time_unit, reading.form)
        return seconds + reading.utc_offset if reading.utc_offset else seconds

    def has_texts(self, table: Table, name: str) -> bool:
        """Whether we read times from text. A database reads them better with its own functions."""
        engine = self.opened.engine
        return self.opened.text or (engine.columns_as != "" and table[name].type().is_string())

    def person(self, table: Table) -> Value:
        """The person of each row; missing where nobody is named."""
        return ex.as_person(table[self.reading.user], str(self.reading.user), self.opened.text)

    def whose(self, table: Table) -> dict[str, Any]:
        """The person of each record, and its period, time and weight where they matter."""
        reading, values = self.reading, dict[str, Any]()
        if reading.user is not None:
            values[people.PERSON] = self.person(table)
            if self.opened.collates and values[people.PERSON].type().is_string():
                values[people.SPELLING] = ex.digest(values[people.PERSON])
            if reading.per is not None:
                values[people.PERIOD] = ex.period(
                    self.seconds(table, str(reading.time)), reading.per
                )
            if reading.once_per is not None or reading.counted != PEOPLE:
                values[people.TIME] = self._time_key(table)
        if reading.weight is not None:
            weight = self.opened.number(table, reading.weight)
            values[people.WEIGHT] = as_weight(weight, int(reading.max_weight or 1))
        if reading.spans:
            values[people.WHEN] = self.seconds(table, str(reading.time))
        return values

    def _time_key(self, table: Table) -> IntegerValue:
        """The key that tells a person's records in one cell apart. Records without a time share one key."""

        nothing, reading = ibis.literal(0).cast("int64"), self.reading
        if reading.time is None or reading.once_per == "all":
            return nothing
        seconds = self.seconds(table, reading.time)
        key = seconds if reading.once_per is None else ex.slot(seconds, reading.once_per)
        return ibis.coalesce(key, nothing)

    @property
    def crs(self) -> str | None:
        """The reference system of the points, if it is not that of the map."""
        domain = self.domain
        crs = self.reading.crs or (self.opened.crs if self.fields[0].of_geometry else None)
        columns.refuse_degrees(self.fields, domain, crs)
        if crs is None:
            return None
        if not columns.pairs(domain):
            raise InputError(
                f"a reference system ({crs}) needs two axes x and y, but the map has none"
            )
        if domain.crs is None:
            raise InputError(
                f"the points are in {crs}, but the map names no reference system: give it one"
            )
        if same_crs(crs, domain.crs):
            return None
        if self.counted_in_place and not self.opened.engine.columns_as:
            raise InputError(
                f"a database cannot transform {crs} to {domain.crs} for us: do it in the query, as with "
                "PostGIS's ST_Transform"
            )
        return crs

    @property
    def counted_in_place(self) -> bool:
        """Whether the engine that has the rows can find their places. Not every engine can call functions of ours."""
        calls_functions = any(map(needs_function, self.domain.axes))
        return self.opened.engine.columns_as != "" or not calls_functions

    @contextmanager
    def placed(self, table: Table, **others: Any) -> Iterator[tuple[Engine, Table]]:
        """The place of each row along each axis, and other columns; and the engine that counts them: the one that has
        the rows, unless it cannot call our functions and has to."""
        crs, values = self.crs, table.select(**self.values(table), **others)
        if self.counted_in_place:
            yield self.opened.engine, self._on_map(values, crs, self.opened.engine)
        else:
            with moved(self.opened, values, self.reading.memory) as (engine, rows):
                yield engine, self._on_map(rows, crs, engine)

    def _on_map(self, rows: Table, crs: str | None, engine: Engine) -> Table:
        """The place along each axis, from the values of columns, and all other columns."""
        values = [rows[f"v{n}"] for n in range(len(self.fields))]
        if crs is not None:
            for first in columns.pairs(self.domain):
                xy, to = slice(first, first + 2), str(self.domain.crs)
                values[xy] = projected(values[xy], crs, to, engine.columns_as)
        places, waiting = {}, iter(values)
        for number, axis in enumerate(self.domain.axes):
            of_axis = [next(waiting) for _ in axis.inputs]
            places[f"p{number}"] = place_of(of_axis, axis, engine.columns_as, self.opened.collates)
        others = {name: rows[name] for name in rows.columns[len(values) :]}
        return rows.select(**places, **others)


def within(places: Sequence[Any], domain: Domain) -> Any:
    """Whether places are inside the map; false or missing for a missing one. Engines sort NaN above every number, so
    `< high` is false for it, as for infinity. If an engine skips a filter by this, NaN still has no cell."""
    along = zip(places, domain.axes, strict=True)
    return ibis.and_(
        *((at >= ex.constant(axis.low)) & (at < ex.constant(axis.high)) for at, axis in along)
    )


def inside_of(rows: Table, domain: Domain) -> Table:
    """The rows inside the bounds."""
    return rows.filter(within(places_in(rows, domain), domain))


def places_in(rows: Table, domain: Domain) -> list[Any]:
    """The place along each axis."""
    return [rows[f"p{number}"] for number in range(domain.dimensions)]


def in_span(rows: Table, reading: Reading) -> Table:
    """The rows of the span of time that is asked for. A row whose time cannot be read is in none."""
    if reading.since is not None:
        rows = rows.filter(rows[people.WHEN] >= reading.since)
    if reading.until is not None:
        rows = rows.filter(rows[people.WHEN] < reading.until)
    return rows


def cell_of(rows: Table, domain: Domain, engine: Engine) -> IntegerValue:
    """Row-major numbers of cells; missing for a place in no cell, whatever was filtered before."""
    cell: Any = None
    for number, axis in enumerate(domain.axes):
        along = _cell_on_axis(rows, number, axis, engine)
        cell = along if cell is None else cell * axis.cells + along
    return cell


def box_of(rows: Table, domain: Domain, engine: Engine, division: Division) -> IntegerValue:
    """Row-major numbers of the areas of a division. That of a place in no cell is missing, or its cell is."""
    box = ibis.literal(0).cast("int64")
    for number, (axis, edges) in enumerate(zip(domain.axes, division.edges(domain), strict=True)):
        if (parts := len(edges) - 1) == 1:
            continue
        cell = _cell_on_axis(rows, number, axis, engine)
        if division.grid is None:
            along = people.part_along(cell, edges, engine.columns_as)
        else:
            along = ex.part_of(cell, axis.cells, parts)
        box = box * parts + along
    return box


def _cell_on_axis(rows: Table, number: int, axis: Axis, engine: Engine) -> IntegerValue:
    """The cell along one axis, as by Axis.to_cells. A place just below the upper edge must not be
    rounded across it.

    The arithmetic is monotonic: if the last number below the edge is not rounded across it, none is,
    and rows need no check. A missing cell stays missing: engines ignore it in a `least`, which would
    put it into the last cell.
    """
    place: Any = rows[f"p{number}"]
    if not engine.floors_anything:
        place = ex.within(place, axis.low, axis.high)
    whole = ex.floor((place - ex.constant(axis.low)) * ex.constant(axis.cells_per_unit))
    if axis.to_cells(np.nextafter(axis.high, axis.low)) < axis.cells:
        return whole
    kept: IntegerValue = (whole >= axis.cells).ifelse(axis.cells - 1, whole)
    return kept


# Places -----------------------------------------------------------------------------------------


def needs_function(axis: Axis) -> bool:
    """Whether places are found by our function, and not by the engine."""
    return axis.inputs != NUMBER and (axis.inputs != LABEL or axis.cells > MOST_COMPARED)


def place_of(values: Sequence[Any], axis: Axis, columns_as: str, collates: bool) -> Any:
    """Where records are along an axis, from the values of its columns; missing or NaN if nowhere."""
    if needs_function(axis):
        return _placing(axis, columns_as)(*values)
    if axis.inputs == NUMBER:
        return values[0]
    names = axis.levels[0].labels
    return ex.place_in_list(values[0], names, axis.has_rest, collates).cast("float64")


@lru_cache(maxsize=16)
def _placing(axis: Axis, columns_as: str) -> Any:
    axis.place(*(np.empty(0) for _ in axis.inputs))  # an error is raised here, not in the engine
    kind, name = TYPES[axis.inputs[0]], f"htf_{axis.plural}_{axis.key}"
    return column_function(axis.place, name, kind, len(axis.inputs), columns_as)
