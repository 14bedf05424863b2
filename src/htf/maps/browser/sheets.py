"""Sheets: the numbers of many places on a map in a browser, packed. Public.

Static/offline/sheets.js reads them. Places are rectangles (rectangles.py) or zones (shapes.py).
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htf.frame.domain import FloatArray
from htf.maps.layer import Layer
from htf.maps.scale import density_limits, difference_limits
from htf.maps.zone_views import per_area
from htf.query.answer import Answer
from htf.query.change import check_comparable, error_of_change, mark_together, subtracted

STEPS = 32  # numbers are rounded to 1/32 of their standard error
Packed = dict[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Sheet:
    """What a release says about many places, or how two of them differ there."""

    area: FloatArray  # 0 for what has no place on the map
    columns: dict[str, FloatArray]
    std_error: FloatArray
    is_clear: NDArray[np.bool_]  # more than noise
    is_unsure: NDArray[np.bool_] | None = None  # none or many: see htf.query.unsure

    @classmethod
    def of(
        cls,
        area: FloatArray,
        answers: Answer,
        is_clear: NDArray[np.bool_],
        is_unsure: NDArray[np.bool_] | None = None,
    ) -> Sheet:
        columns = {name: getattr(answers, name) for name in ("count", "low", "high")}
        return cls(area, columns, answers.std_error, is_clear, is_unsure)

    @classmethod
    def of_difference(
        cls, area: FloatArray, changes: Answer, is_clear: NDArray[np.bool_] | None = None
    ) -> Sheet:
        """The script subtracts one count from the other, so that all three agree."""
        sides = {"first": changes.after, "second": changes.before}
        marks = changes.beyond_noise if is_clear is None else is_clear
        ends = {"low": changes.low, "high": changes.high}
        return cls(area, sides | ends, error_of_change(changes), marks)

    @property
    def is_difference(self) -> bool:
        return "first" in self.columns

    @property
    def density(self) -> FloatArray:
        columns = self.columns
        value = columns["first"] - columns["second"] if self.is_difference else columns["count"]
        return per_area(value, self.area)

    def packed(self, limits: tuple[float, float]) -> Packed:
        """Marks are 1 where a count is more than noise, 2 where nobody can tell (colours.js)."""
        unsure = 0 if self.is_unsure is None else self.is_unsure & ~self.is_clear
        marks = np.asarray(self.is_clear + np.multiply(2, unsure), dtype=np.uint8)
        numbers = packed_numbers(self.columns, self.std_error)
        return {**numbers, "clear": pack(marks), "limits": limits}


def packed_sheets(sheets: Sequence[Sheet], limits: Sequence[tuple[float, float]]) -> list[Packed]:
    """A sheet for each shape, with the ends of its scale."""
    pairs = zip(sheets, limits, strict=True)
    return [{"shape": n} | one.packed(ends) for n, (one, ends) in enumerate(pairs)]


def packed_changes(
    layers: Sequence[Layer], answers: Sequence[Sequence[Answer]], areas: Sequence[FloatArray]
) -> list[list[Packed] | None]:
    """Changes to each layer but the first, which has none before it: a sheet for each shape. In all steps, colours mean the
    same; marks hold for all steps and shapes together."""
    for before, after in pairwise(layers):
        check_comparable(after.release, before.release)
    found = [list(map(subtracted, after, before)) for before, after in pairwise(answers)]
    marks = iter(mark_together(list(chain.from_iterable(found))))
    steps = [
        [Sheet.of_difference(area, one, next(marks)) for area, one in zip(areas, step, strict=True)]
        for step in found
    ]
    limits = [limits_of(of_shape) for of_shape in zip(*steps, strict=True)]
    return [None, *(packed_sheets(sheets, limits) for sheets in steps)]


def limits_of(sheets: Sequence[Sheet]) -> tuple[float, float]:
    """The ends of the scale of colours that sheets share, as for a picture."""
    density, clear, area = (
        np.concatenate([getattr(one, name) for one in sheets])
        for name in ("density", "is_clear", "area")
    )
    there = area > 0
    if sheets[0].is_difference:
        return difference_limits(density[there], clear[there])
    return density_limits(density[clear & there], area[clear & there])


def packed_numbers(columns: dict[str, FloatArray], std_error: FloatArray) -> dict[str, str]:
    """Digits far below the standard error are dropped, because they compress badly."""
    step = 2.0 ** np.floor(np.log2(np.maximum(std_error, 1e-6) / STEPS))
    return {
        name: pack(np.asarray(np.rint(values / step) * step, dtype=np.float32))
        for name, values in columns.items()
    }


def pack(values: NDArray[Any]) -> str:
    """Numbers as text: little-endian, then deflated."""
    raw = values.astype(values.dtype.newbyteorder("<")).tobytes()
    return base64.b64encode(zlib.compress(raw, 9)).decode()


def pack_text(text: str) -> str:
    """A long text, deflated."""
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()
