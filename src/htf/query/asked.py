"""What an answer was asked for: the boxes or polygons, with the names and attributes that came with them.

Answers carry it, so that a table of them says what each row is about. Nothing is computed until a table is made.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from htf.base.read_only import ReadOnlyArrays, make_read_only

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from htf.frame.domain import Domain, FloatArray


@runtime_checkable
class Asked(Protocol):
    """The questions of a table of answers, one for each row."""

    def edges(self) -> dict[str, Any]:
        """Columns that say what a row is, if they are numbers or names of the map."""

    def given(self) -> dict[str, Any]:
        """Columns that came with the questions, such as the attributes of a layer."""

    def layer(self) -> Layer:
        """A shape for each row. Needs shapely."""

    def index(self) -> Any:
        """The index that the rows had in a frame of pandas, or None."""


class Layer(NamedTuple):
    """Shapes, and the reference system they are in."""

    shapes: NDArray[np.object_]
    crs: Any


@dataclass(frozen=True, slots=True, eq=False)
class AskedBoxes(ReadOnlyArrays):
    """Boxes, as full rows of edges (htf.query.where)."""

    domain: Domain
    rows: FloatArray

    def __post_init__(self) -> None:
        make_read_only(self.rows)

    def edges(self) -> dict[str, Any]:
        from htf.query.tables import edge_columns

        return {**self._names(), **edge_columns(self.domain, self.rows)}

    def given(self) -> dict[str, Any]:
        return {}

    def layer(self) -> Layer:
        from htf.errors import InputError
        from htf.query.frames import rectangles
        from htf.query.named import outlines_of
        from htf.query.shapes import need_shapely

        need_shapely("A frame with shapes")
        if self.domain.zoned:
            return Layer(outlines_of(self.domain, self.rows), self.domain.crs)
        if not self.domain.has_map:
            raise InputError(
                f"shapes need a map with axes x and y, but this one has {', '.join(self.domain.names)}: use to_pandas()"
            )
        return Layer(rectangles(self.domain, self.rows), self.domain.crs)

    def index(self) -> None:
        return None

    def _names(self) -> dict[str, list[str]]:
        """What rows are called along axes whose cells have names."""
        from htf.query.where import show_range

        size = self.domain.dimensions
        found = {}
        for place, axis in enumerate(self.domain.axes):
            if axis.names is not None:
                ends = self.rows[:, [place, size + place]].tolist()
                found[axis.name] = [show_range(axis, low, high) for low, high in ends]
        return found


@dataclass(frozen=True, slots=True, eq=False)
class AskedPolygons:
    """Polygons as they were given, with what came with them."""

    shapes: NDArray[np.object_]
    crs: Any
    frame: Any = None  # of GeoPandas, if they came in one
    properties: tuple[Any, ...] = ()  # of GeoJSON

    def edges(self) -> dict[str, Any]:
        return {}

    def given(self) -> dict[str, Any]:
        from htf.query.frames import attributes, property_columns

        if self.frame is not None:
            return attributes(self.frame)
        return property_columns(self.properties)

    def layer(self) -> Layer:
        return Layer(self.shapes, self.crs)

    def index(self) -> Any:
        return getattr(self.frame, "index", None)
