"""What is counted has a shape on the ground: a rectangle of a map, a zone, or the line of a trip between two zones.

`ground_of` says which. Files, tables, layers and pages ask it for shapes, and not which axes there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from htf.base.extras import need
from htf.errors import InputError
from htf.frame import well_known
from htf.frame.domain import Axis, Domain, FloatArray, IntArray
from htf.frame.grids import rows_of

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Ground:
    """The shapes of what is counted: here boxes along the first two axes, which are coordinates."""

    along: tuple[Axis, ...]  # every axis of the map
    axes: tuple[int, ...] = (0, 1)  # those that say where something is

    header: ClassVar[dict[str, Any]] = {
        "geometry_types": ["Polygon"],
        "orientation": "counterclockwise",
    }  # what GeoParquet says of a column of them

    def bounds(self) -> tuple[float, float, float, float]:
        """W,S,E,N of all shapes."""
        x, y = self.along[:2]
        return x.low, y.low, x.high, y.high

    def shapes(self, rows: FloatArray) -> Any:
        """A shape for each full row of edges. Needs shapely."""
        size = len(self.along)
        shapely = need("A frame with shapes", "shapely")
        return shapely.box(rows[:, 0], rows[:, 1], rows[:, size], rows[:, size + 1])

    def binary(self, low: IntArray, high: IntArray) -> pa.Array:
        """A shape for each range of cells, as well-known binary in a column of Arrow."""
        import pyarrow as pa

        content = well_known.rectangles(*rows_of(self.along[:2], low, high).T)
        ends = np.arange(len(low) + 1, dtype=np.int32) * well_known.RECTANGLE
        buffers = [None, pa.py_buffer(ends), pa.py_buffer(content)]
        return pa.Array.from_buffers(pa.binary(), len(low), buffers)


class ZoneGround(Ground):
    """The zones of one axis."""

    __slots__ = ()
    header: ClassVar[dict[str, Any]] = {"geometry_types": ["MultiPolygon", "Polygon"]}

    def bounds(self) -> tuple[float, float, float, float]:
        boxes = [well_known.boxes_around(_outlines(self.along[number])) for number in self.axes]
        known = np.concatenate(boxes)
        known = known[np.isfinite(known).all(axis=1)]
        if len(known) == 0:
            return 0.0, 0.0, 0.0, 0.0
        west, south = known[:, :2].min(axis=0).tolist()
        east, north = known[:, 2:].max(axis=0).tolist()
        return west, south, east, north

    def shapes(self, rows: FloatArray) -> Any:
        return self._shapes_along(self.axes[0], rows)

    def _shapes_along(self, number: int, rows: FloatArray) -> Any:
        return self.along[number].outline(rows[:, number], rows[:, len(self.along) + number])

    def binary(self, low: IntArray, high: IntArray) -> pa.Array:
        import pyarrow as pa

        place = self.axes[0]
        shapes = tuple(one or well_known.NOTHING for one in _outlines(self.along[place]))
        ends = zip(low[:, place].tolist(), high[:, place].tolist(), strict=True)
        found = [shapes[a] if b == a + 1 else well_known.joined(shapes[a:b]) for a, b in ends]
        return pa.array(found, pa.binary())


class TripGround(ZoneGround):
    """Lines from the zones of one axis to those of another."""

    __slots__ = ()
    header: ClassVar[dict[str, Any]] = {"geometry_types": ["LineString"]}

    def shapes(self, rows: FloatArray) -> Any:
        shapely = need("A layer of zones", "shapely")
        ends = [self._shapes_along(number, rows) for number in self.axes[:2]]
        has_both = ~np.any([shapely.is_empty(end) for end in ends], axis=0)  # the rest has no place
        points = [shapely.get_coordinates(shapely.point_on_surface(end[has_both])) for end in ends]
        lines = np.full(len(rows), shapely.LineString(), dtype=object)
        lines[has_both] = shapely.linestrings(np.stack(points, axis=1))
        return lines

    def binary(self, low: IntArray, high: IntArray) -> pa.Array:
        import pyarrow as pa

        ends = [
            well_known.middles(_outlines(self.along[number]), low[:, number], high[:, number])
            for number in self.axes[:2]
        ]
        start = well_known.START.pack(1, well_known.LINE, 2)
        return pa.array([start + line.tobytes() for line in np.stack(ends, axis=1)], pa.binary())


def ground_of(domain: Domain) -> Ground:
    """The shapes of a map. Zones come before boxes where it has both. Refuses a map without any."""
    if domain.outlined:
        kind = ZoneGround if len(domain.outlined) == 1 else TripGround
        return kind(domain.axes, domain.outlined)
    if not domain.has_map:
        raise InputError(
            f"shapes need a map with axes x and y, or zones, but this one has {', '.join(domain.names)}: use to_pandas()"
        )
    return Ground(domain.axes)


def _outlines(axis: Axis) -> well_known.Shapes:
    assert axis.outlines is not None
    return axis.outlines.shapes
