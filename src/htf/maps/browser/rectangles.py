"""Layers on a grid as a browser draws them: sheets of rectangles. Public."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htf.errors import InputError
from htf.estimation.level import LEVEL_TEXT
from htf.frame.areas import square_kilometres
from htf.frame.domain import Domain, FloatArray, IntArray
from htf.frame.grids import rows_of
from htf.maps.browser.mercator import Plane, corners_in_square, from_square
from htf.maps.browser.sheets import Packed, Sheet, limits_of, pack, packed_changes
from htf.maps.kinds import Boxes, Drawn, Grid
from htf.maps.views import outlines
from htf.maps.window import Window, is_same_system, row_areas, squares_of
from htf.query.where import Where
from htf.release.release import Release

MOST_RECTANGLES = 250_000  # about 2 MB of a file
MOST_IN_STEPS = 4 * MOST_RECTANGLES  # of all steps: about 8 MB
MOST_OUTLINES = 250_000
SQUARE_PIXELS = 14  # a square of a difference is at least as large on the screen
MOST_SQUARES = 32  # per side, of a change: the more there are, the larger it must be to be marked
MOST_GRIDS = 2
CHANGE_PIXELS = 28  # smaller squares of a change show once they are as large on the screen
HOW_TO_READ = (
    "Point at the map, tap it, or move it with the arrow keys, for a count and its "
    f"{LEVEL_TEXT} interval."
)


class GridSheets:
    """What a page of grids carries."""

    def __init__(self, given: Sequence[Drawn]) -> None:
        self.layers = layers = [layer for layer in given if isinstance(layer, Grid)]
        for layer in layers:
            _check_place(layer)
        if layers[0].step is None and len(layers) > 1:
            _check_overlap(*layers)
        shown = layers[-1:] if layers[0].step else layers
        self.plane = Plane.for_map(shown[0].release.domain)
        self.rings = [_ring(one.frame.domain, self.plane) for one in shown]
        corners = np.concatenate(self.rings)
        (west, north), (east, south) = corners.min(axis=0), corners.max(axis=0)
        self.frame = float(west), float(north), float(max(east - west, south - north))
        self.data: dict[str, Any] = {
            "kind": "grid",
            "plane": None if self.plane is None else self.plane.to_dict(),
            "frame": self.frame,
            "bounds": np.column_stack(
                from_square(*np.array([[west, east], [south, north]]))
            ).tolist(),
            "unit": layers[0].unit,
            "per_box": isinstance(layers[0], Boxes),
            "shapes": [],
        }
        most = MOST_IN_STEPS if layers[0].step else MOST_RECTANGLES
        most = min(MOST_RECTANGLES, most // len(layers))
        self._places: list[tuple[FloatArray, Sheet, str]] = []
        if layers[0].second is None:  # one scale of colours for all
            self._places = [rectangles(layer, most) for layer in layers]
            self.limits = limits_of([sheet for _, sheet, _ in self._places])

    def panel(self, number: int) -> dict[str, Any]:
        """The frame of a map, and the outlines of its leaves; those of steps are the sheets themselves."""
        layer, ring = self.layers[number], self.rings[number]
        frames = {"frames": [ring.tolist()], "outlines": None}
        if layer.step is not None:
            return frames | {"outlines": "sheets" if self._are_leaves() else None}
        boxes = replace(layer, second=None).outlines()
        if len(boxes) > MOST_OUTLINES:
            return frames
        return frames | {"outlines": self._place(boxes, layer)}

    def _are_leaves(self) -> bool:
        pairs = zip(self._places, self.layers, strict=True)
        return all(len(boxes) == len(layer.release) for (boxes, _, _), layer in pairs)

    def sheets(self, number: int) -> list[Packed]:
        """One that shows at every zoom; of a difference, larger and smaller squares."""
        layer = self.layers[number]
        if layer.second is None:
            boxes, sheet, _ = self._places[number]
            return [self._place(boxes, layer, sheet.area) | sheet.packed(self.limits)]
        window = layer.window
        grids = [window.grid(shape) for shape in window.shapes_to_compare()]
        sheets = [Sheet.of_difference(areas_of_squares(grid), layer.counts(grid)) for grid in grids]
        places = self._squares(grids, layer, SQUARE_PIXELS)
        return [
            place | sheet.packed(limits_of([sheet]))
            for place, sheet in zip(places, sheets, strict=True)
        ]

    def changes(self) -> list[list[Packed] | None]:
        """From each step to the next, in squares that all share."""
        latest = self.layers[-1]
        grids = grids_of_changes(latest)
        self.data["shapes"] = self._squares(grids, latest, CHANGE_PIXELS)
        answers = [[layer.counts(grid) for grid in grids] for layer in self.layers]
        return packed_changes(self.layers, answers, [areas_of_squares(grid) for grid in grids])

    @property
    def caption(self) -> list[str]:
        first = self.layers[0]
        if isinstance(first, Boxes):
            return [HOW_TO_READ, "Boxes whose interval reaches down to zero have no colour."]
        if first.second is not None:
            return [HOW_TO_READ, "Squares become smaller as you zoom in."]
        words = list(dict.fromkeys(said for _, _, said in self._places))
        if first.step is not None:
            words = [text.replace("of the release", "of each release") for text in words]
            if len(words) > 1:
                words = ["The rectangles are leaves, or squares where a release has too many."]
        elif len(words) > 1:
            words = [
                f"{one.title}: {said}"
                for one, (_, _, said) in zip(self.layers, self._places, strict=True)
            ]
        return [HOW_TO_READ, *words]

    def _squares(self, grids: Sequence[Domain], layer: Grid, pixels: int) -> list[Packed]:
        """Where the squares of grids are, and at which zooms they show: once they are so many pixels wide."""
        width = float(np.ptp(self.rings[0][:, 0]))
        starts = [float(np.log2(pixels / (512 * width / grid.shape[0]))) for grid in grids]
        zooms = pairwise([0.0, *starts[1:], 99.0])
        return [
            self._place(squares_of(grid), layer, areas_of_squares(grid)) | {"zoom": list(zoom)}
            for grid, zoom in zip(grids, zooms, strict=True)
        ]

    def _place(self, boxes: FloatArray, layer: Grid, area: FloatArray | None = None) -> Packed:
        """Where rectangles are, and how large."""
        corners = packed_corners(boxes, layer.release.domain.crs, self.plane, self.frame)
        packed = {"length": len(boxes), "corners": pack(corners)}
        return packed if area is None else packed | {"area": pack(area.astype(np.float32))}


def _check_overlap(one: Grid, other: Grid) -> None:
    """Maps of different reference systems must overlap in the square they are drawn in."""
    if is_same_system(one.release.domain, other.release.domain):
        one.check_beside(other)
        return
    first, second = (_ring(layer.frame.domain, None) for layer in (one, other))
    if np.any(np.maximum(first.min(0), second.min(0)) >= np.minimum(first.max(0), second.max(0))):
        raise InputError(f"the maps {one.title} and {other.title} do not overlap")


def _check_place(layer: Grid) -> None:
    if not layer.frame.is_place:
        names = ", ".join(layer.frame.domain.names)
        raise InputError(
            f"an HTML map shows places, and {names} are not places: draw them as .png or .svg"
        )


def grids_of_changes(layer: Grid) -> list[Domain]:
    """The squares in which steps are compared: large ones, and smaller ones for a closer look."""
    shapes = layer.asked.shapes_to_compare()
    kept = [one for one in shapes if max(one) <= MOST_SQUARES][-MOST_GRIDS:] or shapes[:1]
    return [layer.asked.grid(shape) for shape in kept]


def areas_of_squares(grid: Domain, unknown: float = 1.0) -> FloatArray:
    """Those of all squares, column after column."""
    return np.tile(row_areas(grid, unknown), grid.shape[0])


def rectangles(layer: Grid, most: int = MOST_RECTANGLES) -> tuple[FloatArray, Sheet, str]:
    """All leaves of a plain map if there are not too many, else the squares of a grid: rows W,S,E,N, their numbers, and a
    text that says which of the two. Each is coloured if its own interval lies above zero."""
    if isinstance(layer, Boxes):
        return _boxes_of(layer)
    release, window = layer.release, layer.window
    is_plain = release.domain.dimensions == 2 and window.drawn == (0, 1) and not layer.where
    if is_plain and len(release) <= most:
        return _leaves(release)
    columns, rows = np.ptp(window.cells, axis=1)[list(window.drawn)].tolist()
    scale = min(1.0, math.sqrt(most / (columns * rows)))
    shape = max(int(columns * scale), 1), max(int(rows * scale), 1)
    grid = window.grid(shape)
    answers = release.count(window.rows(grid))
    area = areas_of_squares(grid, columns * rows / math.prod(shape))
    why = "the cells" if scale == 1 else "squares: the release has more leaves than this file shows"
    text = f"The rectangles are {why}, {shape[0]:,} by {shape[1]:,}."
    return squares_of(grid), Sheet.of(area, answers, answers.low > 0), text


def _leaves(release: Release) -> tuple[FloatArray, Sheet, str]:
    domain, low, high = release.domain, release.low, release.high
    boxes = in_map_coordinates(domain, low, high)
    area = square_kilometres(domain, low, high)
    if area is None:
        area = np.prod(high - low, axis=1).astype(np.float64)
    answers = release.count(boxes)
    sheet = Sheet.of(area, answers, answers.low > 0, release.derived.unsure_leaves)
    return boxes, sheet, "The rectangles are the leaves of the release."


def _boxes_of(layer: Boxes) -> tuple[FloatArray, Sheet, str]:
    """Boxes do not add up, so their number is no density: each has area 1."""
    table = layer.table
    columns = {"count": table.different_people, "low": table.low, "high": table.high}
    sheet = Sheet(np.ones(len(table)), columns, table.std_error, table.low > 0)
    return layer.outlines(), sheet, ""


def in_map_coordinates(domain: Domain, low: IntArray, high: IntArray) -> FloatArray:
    """Rectangles in cells of the first two axes, as rows W,S,E,N in map coordinates."""
    return rows_of(domain.axes[:2], low, high)


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


def packed_outlines(release: Release, where: Where | None) -> dict[str, Any] | None:
    """The leaves along the first two axes, in their own frame; None if there are too many."""
    first, second = release.domain.names[:2]
    boxes = outlines(release, Window.of(release.domain, (first, second), where))
    if len(boxes) > MOST_OUTLINES:
        return None
    plane = Plane.for_map(release.domain)
    corners = corners_in_square(boxes, release.domain.crs, plane).reshape(-1, 2)
    low, high = corners.min(axis=0), corners.max(axis=0)
    frame = float(low[0]), float(low[1]), float(np.max(high - low))
    packed = pack(packed_corners(boxes, release.domain.crs, plane, frame))
    return {"frame": frame, "length": len(boxes), "corners": packed}


def _ring(domain: Domain, plane: Plane | None) -> FloatArray:
    """The frame around a map."""
    x, y = domain.axes
    bounds = np.array([[x.low, y.low, x.high, y.high]])
    corners = corners_in_square(bounds, domain.crs, plane).reshape(4, 2)
    return np.asarray(corners[[0, 1, 3, 2]])
