"""Names for the cells of an axis: categories from a public list, or zones of a public layer.

Cell i of such an axis is `[i, i + 1)`, and has a name. Above the cells there may be levels: districts that join
tracts, and a city that joins districts. Cells are in such an order that everything on every level is one range of
cells. So regions, accounting, estimates and error bars need to know nothing of names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htf.base import arguments
from htf.errors import InputError

MOST_NAMES = 50_000  # of one axis
# Bytes of JSON, of all axes of a map: the header of a release has room for that.
LONGEST_NAMES = 3 * 2**20
MOST_LEVELS = 8
LONGEST_LABEL = 200  # characters
BETWEEN = ":"  # a level and a label, where the label alone is of two levels


@dataclass(frozen=True, slots=True)
class Level:
    """The names of one level of an axis, in the order of cells.

    Attributes
    ----------
    name : str
        What the level is called, such as `district`.
    labels : tuple of str
        The name of each of its zones or categories. No two are equal.
    starts : tuple of int
        The first cell of each. It ends where the next one begins.

    Examples
    --------
    >>> import htf
    >>> htf.Names.of({"kind": ["tram", "bus"]}).levels[0].labels
    ('tram', 'bus')
    """

    name: str
    labels: tuple[str, ...]
    starts: tuple[int, ...]

    def __post_init__(self) -> None:
        name = arguments.text(self.name, "the name of a level")
        if not 0 < len(name) <= LONGEST_LABEL or not name.isprintable():
            raise InputError(f"the name of a level is a short printable text, got {name!r:.100}")
        labels = arguments.items(self.labels, f"the labels of {name!r}", "a list of texts")
        starts = arguments.items(self.starts, f"the starts of {name!r}", "a list of whole numbers")
        object.__setattr__(self, "labels", tuple(_check_label(one, name) for one in labels))
        object.__setattr__(
            self, "starts", tuple(arguments.whole(one, "the start of a label") for one in starts)
        )
        if not 1 <= len(self.labels) <= MOST_NAMES:
            raise InputError(
                f"the level {name!r} must have between 1 and {MOST_NAMES:,} names, got {len(self.labels):,}"
            )
        _refuse_twice(self.labels, name)
        if len(self.starts) != len(self.labels) or self.starts[0] != 0:
            raise InputError(
                f"the level {name!r} needs one start for each label, the first of them 0"
            )
        if any(low >= high for low, high in zip(self.starts, self.starts[1:], strict=False)):
            raise InputError(f"the starts of the level {name!r} must go up")


@dataclass(frozen=True, slots=True)
class Outlines:
    """The public outlines of the zones of an axis, in the order of cells, and the other columns of their layer.

    Attributes
    ----------
    shapes : tuple of bytes
        Polygons as well-known binary, in the reference system of the map. Empty for the rest, which has no outline.
    attributes : tuple of (str, tuple)
        Names of columns and their values.
    crs : str, optional
        The reference system of the outlines, if the map is yet to learn it from them.

    Examples
    --------
    >>> import htf
    >>> from htf.frame.names import Outlines
    >>> Outlines((b"",), (("wards", (3,)),)).attributes
    (('wards', (3,)),)
    """

    shapes: tuple[bytes, ...]
    attributes: tuple[tuple[str, tuple[Any, ...]], ...] = ()
    crs: str | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        for name, values in self.attributes:
            if len(values) != len(self.shapes):
                raise InputError(f"the column {name!r:.100} of zones has not one value for each")


@dataclass(frozen=True, slots=True)
class Names:
    """The names of the cells of an axis, and of the levels above them.

    Attributes
    ----------
    levels : tuple of Level
        From the cells up.
    rest : str, optional
        The label of the last cell, if that takes every value or place without a name of its own. Without it, such
        records are left out.
    outlines : Outlines, optional
        Where the cells are zones.

    Raises
    ------
    InputError
        If the levels do not nest, or there are too many names.

    Examples
    --------
    >>> import htf
    >>> kinds = htf.Names.of({"kind": ["tram", "bus", "bike"], "group": ["public", "public", "own"]})
    >>> kinds.range_of("public")
    (0, 2)
    """

    levels: tuple[Level, ...]
    rest: str | None = None
    outlines: Outlines | None = None

    def __post_init__(self) -> None:
        levels = arguments.items(
            self.levels, "the levels of names", "a tuple of htf.frame.names.Level"
        )
        for level in levels:
            arguments.instance(level, Level, "each level of names")
        object.__setattr__(self, "levels", tuple(levels))
        if not 1 <= len(self.levels) <= MOST_LEVELS:
            raise InputError(
                f"names have between 1 and {MOST_LEVELS} levels, got {len(self.levels)}"
            )
        _refuse_twice([level.name for level in self.levels], "levels")
        cells = self.levels[0]
        if cells.starts != tuple(range(len(cells.labels))):
            raise InputError(f"each label of the lowest level, {cells.name!r}, is one cell")
        for below, above in zip(self.levels, self.levels[1:], strict=False):
            if not set(above.starts) <= set(below.starts):
                raise InputError(f"the level {above.name!r} cuts through labels of {below.name!r}")
        if self.rest is not None and self.rest != cells.labels[-1]:
            raise InputError(f"the rest must be the last label, got {self.rest!r:.100}")
        if self.outlines is not None and len(self.outlines.shapes) != len(self):
            raise InputError("zones need one outline for each name")

    @classmethod
    def of(
        cls,
        columns: Mapping[str, Sequence[str]],
        *,
        rest: str | None = None,
        outlines: Outlines | None = None,
    ) -> Names:
        """Make names from columns that are in the order of cells already.

        Parameters
        ----------
        columns : mapping
            One column of labels for each level, from the lowest up, all with one entry for each cell.
        rest : str, optional
            The label of a further, last cell for all other values. It has that label on every level.
        outlines : Outlines, optional
            Where the cells are zones; of the rest too.

        Returns
        -------
        Names
            The names.

        Raises
        ------
        InputError
            If a label stands in two places, so that it is no range of cells.

        Examples
        --------
        >>> htf.Names.of({"kind": ["tram", "bus"]}, rest="other").levels[0].labels
        ('tram', 'bus', 'other')
        """
        known = arguments.mapping(columns, "columns of names", "a dictionary of lists")
        for name, labels in known.items():
            arguments.items(labels, f"the labels of {name!r:.100}", "a list of texts")
        arguments.optional(arguments.text, rest, "the rest of names")
        arguments.optional(arguments.instance, outlines, Outlines, "outlines of names")
        sizes = {len(labels) for labels in known.values()}
        if len(sizes) != 1:
            raise InputError("the columns of names need one label for each cell, all of them")
        levels: list[Level] = []
        for name, labels in known.items():
            all_labels = [*labels, *([] if rest is None else [rest])]
            starts = [
                place
                for place, label in enumerate(all_labels)
                if place == 0 or label != all_labels[place - 1] or not levels
            ]
            levels.append(Level(name, tuple(all_labels[s] for s in starts), tuple(starts)))
        return cls(tuple(levels), rest, outlines)

    def __len__(self) -> int:
        return len(self.levels[0].labels)

    def edges(self, level: int) -> NDArray[np.int64]:
        """Find where the labels of a level begin, in cells, and where the last one ends.

        Parameters
        ----------
        level : int
            The number of the level. 0 is the lowest.

        Returns
        -------
        ndarray of int
            One more than there are labels.

        Examples
        --------
        >>> kinds.edges(1)
        array([0, 2, 3])
        """
        number = arguments.whole(level, "the number of a level")
        if not 0 <= number < len(self.levels):
            raise InputError(f"names have the levels 0 to {len(self.levels) - 1}, got {number}")
        return np.array([*self.levels[number].starts, len(self)], dtype=np.int64)

    def level_number(self, name: str) -> int:
        """Find a level by its name.

        Parameters
        ----------
        name : str
            Its name.

        Returns
        -------
        int
            Its number. 0 is the lowest.

        Raises
        ------
        InputError
            If there is no such level.

        Examples
        --------
        >>> kinds.level_number("group")
        1
        """
        known = [level.name for level in self.levels]
        if arguments.text(name, "the name of a level") not in known:
            raise InputError(f"there is no level {name!r:.100}: there are {', '.join(known)}")
        return known.index(name)

    def range_of(self, label: str, level: str | None = None) -> tuple[int, int]:
        """Find the cells of a label.

        Parameters
        ----------
        label : str
            The label, or `level:label` if two levels have it.
        level : str, optional
            The level it is of, by default any.

        Returns
        -------
        (int, int)
            The first cell, and the one after the last.

        Raises
        ------
        InputError
            If there is no such label, or it means different cells on two levels.

        Examples
        --------
        >>> kinds.range_of("kind:bus")
        (1, 2)
        """
        asked = arguments.text(label, "a name on an axis")
        found = self._ranges(asked, level)
        start, _, end = asked.partition(BETWEEN)
        if not found and level is None and start in [one.name for one in self.levels]:
            found = self._ranges(end, start)
        if not found:
            where = "" if level is None else f" on the level {level!r:.100}"
            raise InputError(
                f"there is no {asked!r:.100}{where}: {self._hint(asked)}{self._example(level)}"
            )
        ranges = set(found.values())
        if len(ranges) > 1:
            ways = " or ".join(f"{name}{BETWEEN}{asked}" for name in found)
            raise InputError(f"{asked!r:.100} is a name on several levels: write {ways}")
        return ranges.pop()

    def _ranges(self, label: str, level: str | None) -> dict[str, tuple[int, int]]:
        found = {}
        for one in self._asked(level):
            if label in one.labels:
                place, ends = one.labels.index(label), (*one.starts, len(self))
                found[one.name] = (ends[place], ends[place + 1])
        return found

    def _asked(self, level: str | None) -> Sequence[Level]:
        return self.levels if level is None else [self.levels[self.level_number(level)]]

    def _hint(self, asked: str) -> str:
        """The same name in other letters, if there is one."""
        labels = (label for level in self.levels for label in level.labels)
        alike = (one for one in labels if one.casefold().strip() == asked.casefold().strip())
        return next((f"is {label!r} meant? " for label in alike), "")

    def _example(self, level: str | None) -> str:
        known = []
        for one in self._asked(level):
            shown = ", ".join(repr(label) for label in one.labels[:3])
            more = ", …" if len(one.labels) > 3 else ""
            known.append(f"{one.name} has {shown}{more}")
        return "; ".join(known)

    def label_of(self, low: int, high: int, first: int = 0) -> str:
        """Name a range of cells: by its label on the lowest level that has one, else by its ends.

        Parameters
        ----------
        low, high : int
            The first cell, and the one after the last.
        first : int
            The number of the lowest level to look at. 0 is all of them.

        Returns
        -------
        str
            The label.

        Examples
        --------
        >>> kinds.label_of(0, 2), kinds.label_of(1, 3)
        ('public', 'bus … bike')
        """
        low, high = (arguments.whole(end, "low and high, each") for end in (low, high))
        if not 0 <= low < high <= len(self):
            raise InputError(
                f"cells go from 0 to {len(self)}, low before high, got {low} and {high}"
            )
        first = arguments.whole(first, "the first level", 0)
        for number, level in enumerate(self.levels[first:], start=first):
            edges = self.edges(number)
            place = int(np.searchsorted(edges, low))
            if place < len(level.labels) and edges[place] == low and edges[place + 1] == high:
                return level.labels[place]
        cells = self.levels[0].labels
        return f"{cells[low]} … {cells[high - 1]}"

    def to_dict(self) -> dict[str, Any]:
        """Describe the names with plain values, for JSON. Outlines are left out.

        Returns
        -------
        dict
            What `from_dict` takes.

        Examples
        --------
        >>> kinds.to_dict()["levels"][1]
        {'name': 'group', 'labels': ['public', 'own'], 'starts': [0, 2]}
        """
        levels = [
            {"name": one.name, "labels": list(one.labels), "starts": list(one.starts)}
            for one in self.levels
        ]
        return {"levels": levels, "rest": self.rest, "zones": self.outlines is not None}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], outlines: Outlines | None = None) -> Names:
        """Make names from what `to_dict` gave.

        Parameters
        ----------
        data : mapping
            The levels and the rest.
        outlines : Outlines, optional
            Where the cells are zones, by default empty ones.

        Returns
        -------
        Names
            The names.

        Raises
        ------
        InputError
            If something is missing or wrong.

        Examples
        --------
        >>> htf.Names.from_dict(kinds.to_dict()) == kinds
        True
        """
        known = arguments.fields(data, "names", ("levels", "rest", "zones"))
        has_zones = arguments.flag(known["zones"], "whether names are zones")
        given = arguments.items(known["levels"], "the levels of names", "a list of dictionaries")
        fields = ("name", "labels", "starts")
        levels = tuple(Level(**arguments.fields(one, "a level", fields)) for one in given)
        arguments.optional(arguments.text, known["rest"], "the rest of names")
        if has_zones and outlines is None:
            outlines = Outlines((b"",) * len(levels[0].labels))
        return cls(levels, known["rest"], outlines)


def _check_label(label: object, level: str) -> str:
    text = arguments.text(label, f"each label of {level!r}")
    if not text.strip() or len(text) > LONGEST_LABEL or not text.isprintable():
        raise InputError(
            f"a label of {level!r} is a printable text of at most {LONGEST_LABEL} characters, got {text!r:.100}"
        )
    return text


def _refuse_twice(labels: Sequence[str], what: str) -> None:
    seen = set()
    for label in labels:
        if label in seen:
            raise InputError(
                f"{label!r:.100} stands twice among {what!r}: names must differ, and each must be one range of cells"
            )
        seen.add(label)
