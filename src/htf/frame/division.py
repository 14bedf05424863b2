"""How a map is divided into areas that are counted one by one: boxes of a grid, or the names of levels. Public.

A division cuts every axis of a map at public edges. So each cell, and each record, is in one area at most.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from htf.base import arguments
from htf.errors import InputError
from htf.frame.domain import Axis, Domain, IntArray, read_pair
from htf.frame.grids import even_edges
from htf.frame.names import BETWEEN

MOST_BOXES = 4096  # of a grid: 64 x 64
MOST_AREAS = 2**15  # by names: their counts fit into the header of a release
BETWEEN_STEPS = ","


@dataclass(frozen=True, slots=True)
class Division:
    """The areas of a map: boxes of a grid over its first two axes, or names along some axes, each combination an area.

    Exactly one of both is given. `by` is a level such as `district`, an axis such as `hour`, or several with commas
    between them.
    """

    grid: tuple[int, int] | None = None
    by: str | None = None

    def __post_init__(self) -> None:
        if (self.grid is None) == (self.by is None):
            raise InputError("a map is divided by a grid or by names: give one of both")
        if self.by is not None and not arguments.text(self.by, "what to divide by").strip():
            raise InputError("say by which level or axis a map is divided, such as district")
        if self.grid is not None:
            object.__setattr__(self, "grid", _check_grid(self.grid))

    @classmethod
    def of(cls, given: object) -> Division:
        """From a number of boxes along both axes, or one for each, or a text about names."""
        if isinstance(given, Division):
            return given
        return cls(by=given) if isinstance(given, str) else cls(_check_grid(given))

    @property
    def given(self) -> tuple[int, int] | str:
        """What it was made of."""
        return self.grid or str(self.by)

    def parts(self, domain: Domain) -> list[Part]:
        """The axes that are divided by names, and the level of each."""
        text = str(self.by)
        texts = [text] if has_name(domain, text) else text.split(BETWEEN_STEPS)
        found = [part for one in texts for part in read_by(domain, one.strip())]
        if len({part.axis for part in found}) < len(found):
            raise InputError(f"{text!r:.100} divides an axis twice: name one level of it")
        return sorted(found, key=lambda part: part.axis)

    def edges(self, domain: Domain) -> list[IntArray]:
        """Where areas begin along every axis, in cells, and where the last one ends. Refuses a map that it does not fit."""
        found = [np.array([0, axis.cells], dtype=np.int64) for axis in domain.axes]
        if self.grid is not None:
            _check_grid_fits(self.grid, domain)
            found[:2] = even_edges(domain.shape[:2], self.grid)
            return found
        for part in self.parts(domain):
            found[part.axis] = part.edges(domain)
        number = math.prod(len(one) - 1 for one in found)
        if number > MOST_AREAS:
            raise InputError(
                f"{self.by!r:.100} divides this map into {number:,} areas, but at most {MOST_AREAS:,} are counted: take a "
                "higher level, or one axis"
            )
        return found

    def number(self, domain: Domain) -> int:
        """How many areas there are."""
        return math.prod(len(one) - 1 for one in self.edges(domain))

    def told(self, number: int) -> str:
        """What there are `number` of."""
        if self.grid is None:
            return f"{number:,} areas by {self.by}"
        return "{} x {} boxes".format(*self.grid)

    def whole(self, number: int) -> str:
        """The same, as a whole."""
        told = self.told(number)
        return told if self.grid is None else f"a grid of {told} over the map"

    @property
    def boxes(self) -> int | None:
        """How many areas there are, if that needs no map."""
        return None if self.grid is None else math.prod(self.grid)

    @property
    def place(self) -> tuple[str, str]:
        """What an area is called, and several."""
        return ("an area", "areas") if self.grid is None else ("a box", "boxes")


@dataclass(frozen=True, slots=True)
class Part:
    """An axis that gets a row for each label of a level, or for each cell if its cells have no names."""

    axis: int
    level: int = 0

    def edges(self, domain: Domain) -> IntArray:
        """Where its labels or cells begin, in cells, and where the last one ends."""
        return domain.axes[self.axis].edges(self.level)


def read_level(domain: Domain, text: str) -> list[Part]:
    """`district` is that level of every axis of zones that has it, so that flows are between districts.

    If no axis of zones has it, an axis of categories may. `zone:district` is that of one axis.
    """
    start, _, end = arguments.text(text, "a level").partition(BETWEEN)
    if end and start in domain.names:
        number = domain.names.index(start)
        return [Part(number, domain.axes[number].level_number(end))]
    having = [n for n, axis in enumerate(domain.axes) if text in _levels(axis)]
    outlined = [n for n in having if n in domain.outlined]
    found = [Part(n, domain.axes[n].level_number(text)) for n in outlined or having]
    if not found and "," in text:
        raise InputError(
            f"a level is one name, got {text!r:.100}: give one by --level and another by --by"
        )
    if not found:
        raise InputError(f"there is no level {text!r:.100}: {_known(domain)}")
    return found


def read_by(domain: Domain, text: str) -> list[Part]:
    """As `read_level`, or the name of an axis: every name of its lowest level, or every step of it."""
    if arguments.text(text, "what to count by") in domain.names:
        return [Part(domain.names.index(text))]
    return read_level(domain, text)


def has_name(domain: Domain, text: str) -> bool:
    """Whether `read_by` knows it."""
    try:
        return bool(read_by(domain, text))
    except InputError:
        return False


def _levels(axis: Axis) -> list[str]:
    return [level.name for level in axis.levels]


def _known(domain: Domain) -> str:
    known = [f"{axis.name} has {', '.join(_levels(axis))}" for axis in domain.axes if axis.levels]
    return "; ".join(known) or "no axis of this release has names"


def _check_grid(given: object) -> tuple[int, int]:
    """The number of boxes along two axes: one whole number for both, or a pair."""
    columns, rows = read_pair(given, "the grid of different people")
    if columns < 1 or rows < 1 or columns * rows > MOST_BOXES:
        raise InputError(
            f"the grid of different people has at least one box along each axis and at most {MOST_BOXES:,} in all, "
            f"got {columns} x {rows}: for small areas use the map itself"
        )
    return columns, rows


def _check_grid_fits(grid: tuple[int, int], domain: Domain) -> None:
    """Refuse a grid with more boxes along an axis than the map has cells."""
    if not domain.has_map:
        names = ", ".join(domain.names)
        raise InputError(
            "different people are counted in boxes of the first two axes of a map, x and y, but this one has "
            f"{names}: {_instead(domain)}"
        )
    for boxes, axis in zip(grid, domain.axes[:2], strict=True):
        if boxes > axis.cells:
            raise InputError(
                f"the grid of different people has {boxes} boxes along {axis.name!r}, but the map has only {axis.cells} "
                "cells there: take fewer boxes, or more cells"
            )


def _instead(domain: Domain) -> str:
    """Which names the map can be divided by."""
    levels = list(dict.fromkeys(name for axis in domain.axes for name in _levels(axis)))
    return f"name a level instead, such as {levels[0]}" if levels else "give it a map"
