"""The rectangles, with counts and intervals, that make up a map in the browser. Public."""

from __future__ import annotations

import base64
import math
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htf.frame.areas import square_kilometres
from htf.frame.domain import Domain, FloatArray, IntArray
from htf.maps.browser.mercator import Plane, corners_in_square
from htf.maps.comparison import Difference, grid_rows
from htf.maps.views import drawn_axes, outlines, ranges_in_cells, view
from htf.query.answer import Answer
from htf.query.where import Where
from htf.release.release import Release

MOST_RECTANGLES = 250_000  # about 2 MB of a file
MOST_OUTLINES = 250_000


@dataclass(frozen=True, slots=True, eq=False)
class Rectangles:
    """Rectangles W,S,E,N in map coordinates, with the answer of the release for each."""

    boxes: FloatArray
    area: FloatArray  # km², or cells where the ground is not known
    count: FloatArray
    low: FloatArray
    high: FloatArray
    std_error: FloatArray
    is_clear: NDArray[np.bool_]  # more than noise
    sides: tuple[FloatArray, FloatArray] | None = None  # both counts, for a difference
    is_unsure: NDArray[np.bool_] | None = None  # none or many: see htf.query.unsure

    @property
    def density(self) -> FloatArray:
        return self.count / self.area

    @property
    def marks(self) -> NDArray[np.uint8]:
        """1 where a count is more than noise, 2 where nobody can tell (colours.js)."""
        unsure = 0 if self.is_unsure is None else self.is_unsure & ~self.is_clear
        return np.asarray(self.is_clear + np.multiply(2, unsure), dtype=np.uint8)


def rectangles(
    release: Release, axes: tuple[str, str], where: Where | None, most: int = MOST_RECTANGLES
) -> tuple[Rectangles, str]:
    """All leaves of a plain map if there are not too many, else the squares of a grid; and a text that
    says which of the two. Each is coloured if its own interval lies above zero."""
    domain = release.domain
    is_plain = domain.dimensions == 2 and drawn_axes(domain, axes) == (0, 1) and not where
    if is_plain and len(release) <= most:
        return _leaves(release), "The rectangles are the leaves of the release."
    first, end = ranges_in_cells(domain, drawn_axes(domain, axes), where)
    cells = (end - first)[list(drawn_axes(domain, axes))]
    scale = min(1.0, math.sqrt(most / float(np.prod(cells))))
    shape = max(int(cells[0] * scale), 1), max(int(cells[1] * scale), 1)
    seen = view(release, axes, where, shape)
    answers = release.count(grid_rows(release, axes, where, *seen.edges))
    made = _on_grid(seen.domain, answers, answers.low > 0, cells)
    why = "the cells" if scale == 1 else "squares: the release has more leaves than this file shows"
    return made, f"The rectangles are {why}, {shape[0]:,} by {shape[1]:,}."


def _leaves(release: Release) -> Rectangles:
    domain, low, high = release.domain, release.low, release.high
    boxes = in_map_coordinates(domain, low, high)
    area = square_kilometres(domain, low, high)
    if area is None:
        area = np.prod(high - low, axis=1).astype(np.float64)
    answers = release.count(boxes)
    unsure = release.derived.unsure_leaves
    return Rectangles(boxes, area, *_columns(answers), answers.low > 0, is_unsure=unsure)


def difference_rectangles(differences: Difference) -> Rectangles:
    """How much more `first` has than `second` in each square, with the interval of that difference."""
    plain = _on_grid(differences.domain, differences.first, differences.is_beyond_noise, None)
    return Rectangles(
        plain.boxes, plain.area, differences.value, differences.low, differences.high, differences.std_error,
        plain.is_clear, (differences.first.count, differences.second.count),
    )  # fmt: skip


def distinct_rectangles(release: Release) -> Rectangles:
    """The boxes of the table of different people. They do not add up, so their number is no density: each has area 1."""
    table = release.count_distinct()
    boxes = np.column_stack([table.west, table.south, table.east, table.north])
    columns = table.different_people, table.low, table.high, table.std_error
    return Rectangles(boxes, np.ones(len(table)), *columns, table.low > 0)


def _on_grid(
    grid: Domain, answers: Answer, is_clear: NDArray[np.bool_], cells: FloatArray | None
) -> Rectangles:
    """The squares of a grid. `cells` is how many cells of the release it has each way."""
    boxes, area = squares_of(grid, cells)
    return Rectangles(boxes, area, *_columns(answers), is_clear)


def squares_of(grid: Domain, cells: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
    """The squares of a grid as rows W,S,E,N, and their areas."""
    columns, rows = grid.shape
    low = np.stack(np.divmod(np.arange(columns * rows), rows), axis=1)
    boxes = in_map_coordinates(grid, low, low + 1)
    area = square_kilometres(grid, low, low + 1)
    if area is None:
        each = 1.0 if cells is None else float(np.prod(cells)) / (columns * rows)
        area = np.full(len(low), each)
    return boxes, area


def _columns(answers: Answer) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    return answers.count, answers.low, answers.high, answers.std_error


def in_map_coordinates(domain: Domain, low: IntArray, high: IntArray) -> FloatArray:
    """Rectangles in cells of the first two axes, as rows W,S,E,N in map coordinates."""
    x, y = domain.axes[:2]
    edges = (
        x.from_cells(low[:, 0]),
        y.from_cells(low[:, 1]),
        x.from_cells(high[:, 0]),
        y.from_cells(high[:, 1]),
    )
    return np.column_stack(edges)


def leaf_boxes(release: Release, axes: tuple[str, str], where: Where | None) -> FloatArray | None:
    """The outlines of the leaves, W,S,E,N; None if there are too many to tell them apart."""
    leaves = outlines(release, axes, where)
    return leaves if len(leaves) <= MOST_OUTLINES else None


def weighted_limits(sheets: list[Rectangles]) -> tuple[float, float]:
    """The ends of the colour scale, as for a picture (htf.maps.plot.colour_limits), in which large
    rectangles have more pixels."""
    from htf.maps.plot import limits_by_area

    density = np.concatenate([one.density[one.is_clear] for one in sheets])
    area = np.concatenate([one.area[one.is_clear] for one in sheets])
    return limits_by_area(density, area)


def packed_corners(
    boxes: FloatArray, crs: str | None, plane: Plane | None, frame: tuple[float, float, float]
) -> NDArray[np.float32]:
    """Corners within the frame (x, y, size), column after column: four numbers per rectangle if its
    sides are upright, else eight."""
    corners = corners_in_square(boxes, crs, plane)
    x, y, size = frame
    inside = (corners - np.tile([x, y], 4)) / size
    upright = np.all(inside[:, [0, 2, 1, 5]] == inside[:, [4, 6, 3, 7]])
    kept = inside[:, [0, 1, 6, 7]] if upright else inside
    return np.asarray(kept.T.ravel(), dtype=np.float32)


def pack(values: NDArray[Any]) -> str:
    """Numbers as text: little-endian, then deflated."""
    raw = values.astype(values.dtype.newbyteorder("<")).tobytes()
    return base64.b64encode(zlib.compress(raw, 9)).decode()


def pack_text(text: str) -> str:
    """A long text, deflated."""
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def packed_outlines(release: Release, where: Where | None) -> dict[str, Any] | None:
    """The leaves along the first two axes, in their own frame; None if there are too many."""
    first, second = release.domain.names[:2]
    boxes = leaf_boxes(release, (first, second), where)
    if boxes is None:
        return None
    plane = Plane.of(release.domain) if release.domain.crs is None else None
    corners = corners_in_square(boxes, release.domain.crs, plane).reshape(-1, 2)
    low, high = corners.min(axis=0), corners.max(axis=0)
    frame = float(low[0]), float(low[1]), float(np.max(high - low))
    packed = pack(packed_corners(boxes, release.domain.crs, plane, frame))
    return {"frame": frame, "length": len(boxes), "corners": packed}
