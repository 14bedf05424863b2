"""What an answer was asked for: boxes, names or polygons, with the names and attributes that came with them.

Answers carry it, so that every table, file and picture of them says what each row is about. Nothing is computed until it
is shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from htf.base.read_only import ReadOnlyArrays, make_read_only
from htf.frame.domain import Domain, FloatArray, IntArray
from htf.frame.ground import ground_of
from htf.query.where import Where, show_range

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

NAMES = ("name", "id", "label")  # names of columns that tell rows apart on the screen
LABEL = "label"
Headed = list[tuple[str, list[str]]]  # columns of text under their headings


class Shaped(NamedTuple):
    """Shapes, and the reference system they are in."""

    shapes: NDArray[np.object_]
    crs: Any


@dataclass(frozen=True, slots=True, eq=False)
class AskedRows(ReadOnlyArrays):
    """Boxes, zones and names: full rows of edges (htf.query.where), and columns that say what each is called."""

    domain: Domain
    rows: FloatArray
    columns: Mapping[str, Any] = field(default_factory=dict)
    levels: Mapping[int, int] = field(default_factory=dict)  # asked for by name, of which axes

    def __post_init__(self) -> None:
        make_read_only(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def what(self) -> str:
        """What a row is, in a word."""
        return "zone" if self.domain.outlined and not self.domain.has_map else "box"

    def take(self, order: IntArray) -> AskedRows:
        """These rows, in this order."""
        columns = {n: [column[place] for place in order] for n, column in self._lists().items()}
        return replace(self, rows=self.rows[order], columns=columns)

    def is_same(self, other: object) -> bool:
        """Whether the rows of another map are about the same places. Places on axes with names are those of one list."""
        if not isinstance(other, AskedRows) or not np.array_equal(self.rows, other.rows):
            return False
        axes = zip(self.domain.axes, other.domain.axes, strict=True)
        return all(one == two for one, two in axes if one.levels or two.levels)

    def edges(self) -> dict[str, Any]:
        """The part of each axis with names, unless other columns say it or it is whole; and the edges along the rest."""
        from htf.query.tables import edge_columns

        return {**self._parts(), **edge_columns(self.domain, self.rows)}

    def given(self) -> dict[str, pa.Array]:
        """Columns that came with the boxes, or that a layer has of zones."""
        from htf.query.named import as_column

        return {name: as_column(column) for name, column in self.columns.items()}

    def layer(self) -> Shaped:
        """A shape for each row. Needs shapely."""
        return Shaped(ground_of(self.domain).shapes(self.rows), self.domain.crs)

    def index(self) -> None:
        return None

    def texts(self) -> Headed:
        """What tells rows apart on a screen: their names, their edges on the map, the range of each further axis.

        Where names tell them apart, the edges are left out: both would not fit."""
        has_map, number = self.domain.has_map, len(self)
        header, names = (has_map and _naming_column(self.given())) or ("", [])
        columns = [(header, names)] if names else []
        if has_map and len(set(names)) < number:
            columns.append(("box", [_show_box(self.domain, row) for row in self.rows]))
        for axis in range(2 if has_map else 0, self.domain.dimensions):
            shown = self._ranges(axis)
            if shown != names:
                columns.append((self.domain.names[axis], shown))
        return columns

    def note(self, inside: FloatArray) -> str | None:
        """A warning of boxes outside the map."""
        from htf.query.outside import outside_note

        return outside_note(self.domain, self.rows, inside)

    def _ranges(self, number: int) -> list[str]:
        axis, level = self.domain.axes[number], self.levels.get(number)
        ends = self.rows[:, [number, self.domain.dimensions + number]].tolist()
        return [show_range(axis, low, high, level) for low, high in ends]

    def _parts(self) -> dict[str, list[str]]:
        named = [
            n for n, axis in enumerate(self.domain.axes) if axis.levels and n not in self.levels
        ]
        found = {self.domain.names[number]: self._ranges(number) for number in named}
        return {name: shown for name, shown in found.items() if set(shown) - {"all"}}

    def _lists(self) -> dict[str, list[Any]]:
        return {
            name: column if isinstance(column, list) else column.to_pylist()
            for name, column in self.columns.items()
        }


@dataclass(frozen=True, slots=True, eq=False)
class AskedPolygons:
    """Polygons as they were given, with what came with them."""

    domain: Domain
    shapes: NDArray[np.object_]
    crs: Any
    where: Where
    frame: Any = None  # of GeoPandas, if they came in one
    properties: tuple[Any, ...] = ()  # of GeoJSON
    labels: tuple[str, ...] | None = None
    order: IntArray | None = None  # of the rows; None: as they were given

    what = "polygon"

    def __len__(self) -> int:
        return len(self.shapes if self.order is None else self.order)

    def take(self, order: IntArray) -> AskedPolygons:
        return replace(self, order=order if self.order is None else self.order[order])

    def is_same(self, other: object) -> bool:
        return (
            isinstance(other, AskedPolygons)
            and {**self.where} == {**other.where}
            and np.array_equal(self.layer().shapes, other.layer().shapes)
        )

    def edges(self) -> dict[str, Any]:
        return {} if self.labels is None else {LABEL: self._in_order(self.labels)}

    def given(self) -> dict[str, pa.Array]:
        """Attributes. A column `label` that has the labels is not repeated."""
        from htf.query.frames import attributes, property_columns

        columns = (
            property_columns(self.properties) if self.frame is None else attributes(self.frame)
        )
        if self.labels is not None and LABEL in columns:
            texts = ["" if one is None else str(one) for one in columns[LABEL].to_pylist()]
            if texts == list(self.labels):
                del columns[LABEL]
        if self.order is None:
            return columns
        return {name: column.take(self.order) for name, column in columns.items()}

    def layer(self) -> Shaped:
        return Shaped(self.shapes if self.order is None else self.shapes[self.order], self.crs)

    def index(self) -> Any:
        index = getattr(self.frame, "index", None)
        return index if index is None or self.order is None else index[self.order]

    def texts(self) -> Headed:
        known = self.labels or [str(number) for number in range(len(self.shapes))]
        return [("polygon", self._in_order(known))]

    def note(self, inside: FloatArray) -> str | None:
        from htf.query.outside import polygons_note

        return polygons_note(self.domain, inside)

    def _in_order(self, texts: Any) -> list[str]:
        return list(texts) if self.order is None else [texts[place] for place in self.order]


Asked = AskedRows | AskedPolygons


def _naming_column(given: Mapping[str, pa.Array]) -> tuple[str, list[str]] | None:
    """The column that tells rows apart: `name`, `id` or `label`, or the first text column."""
    import pyarrow as pa

    found = {name.casefold(): name for name in [*given][::-1]}  # the first of several
    texts = [name for name, column in given.items() if pa.types.is_string(column.type)]
    for name in (*(found[one] for one in NAMES if one in found), *texts):
        return name, ["" if value is None else str(value) for value in given[name].to_pylist()]
    return None


def _show_box(domain: Domain, row: FloatArray) -> str:
    size = domain.dimensions
    return ", ".join(f"{edge:.10g}" for edge in (*row[:2], *row[size : size + 2]))
