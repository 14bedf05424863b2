"""Names of cells: levels that nest, each label a range of cells."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htf import Axis, Domain, InputError, Names
from htf.frame import names as names_module
from htf.frame.names import Level, Outlines

KINDS = Names.of(
    {"kind": ["tram", "bus", "bike"], "group": ["public", "public", "own"]}, rest="other"
)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=6), st.booleans())
def test_each_label_is_its_cells(sizes: list[int], with_rest: bool) -> None:
    """Against lists: the cells of a label are those that carry it."""
    groups = [f"g{n}" for n, size in enumerate(sizes) for _ in range(size)]
    cells = [f"c{n}" for n in range(len(groups))]
    names = Names.of({"cell": cells, "group": groups}, rest="rest" if with_rest else None)
    columns = {"cell": cells, "group": groups}
    if with_rest:
        columns = {name: [*column, "rest"] for name, column in columns.items()}
    assert len(names) == len(columns["cell"])
    for number, (level, column) in enumerate(columns.items()):
        assert names.levels[number].labels == tuple(dict.fromkeys(column))
        for label in dict.fromkeys(column):
            low, high = names.range_of(label, level)
            assert [n for n, one in enumerate(column) if one == label] == [*range(low, high)]
            assert names.label_of(low, high) in (
                label,
                column[low],
                cells[low : low + 1][:1][0] if low < len(cells) else label,
            )
        assert names.edges(number).tolist()[-1] == len(names)
    assert Names.from_dict(names.to_dict()) == names


def test_labels_by_level() -> None:
    assert KINDS.range_of("group:public") == KINDS.range_of("public") == (0, 2)
    assert KINDS.range_of("other") == (3, 4)  # of both levels, which agree
    assert KINDS.label_of(0, 2) == "public"
    assert KINDS.label_of(1, 3) == "bus … bike"
    twice = Names.of({"kind": ["a", "b"], "group": ["a", "a"]})
    with pytest.raises(InputError, match="several levels: write kind:a or group:a"):
        twice.range_of("a")
    assert twice.range_of("kind:a") == (0, 1)
    assert twice.range_of("a", "group") == (0, 2)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ("Bus", "is 'bus' meant"),
        ("plane", "kind has 'tram', 'bus', 'bike', …; group has 'public', 'own', 'other'"),
        ("kind:public", "there is no 'kind:public'"),
    ],
)
def test_no_such_label(asked: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        KINDS.range_of(asked)
    with pytest.raises(InputError, match="no level 'zone': there are kind, group"):
        KINDS.range_of("bus", "zone")


WRONG: dict[str, tuple[Any, str]] = {
    "a district in two places": (
        lambda: Names.of({"tract": ["a", "b", "c"], "district": ["N", "S", "N"]}),
        "'N' stands twice among 'district'",
    ),
    "a tract twice": (lambda: Names.of({"tract": ["a", "a"]}), "'a' stands twice among 'tract'"),
    "levels of one name": (
        lambda: Names((Level("a", ("x",), (0,)), Level("a", ("y",), (0,)))),
        "'a' stands twice",
    ),
    "columns of two lengths": (
        lambda: Names.of({"tract": ["a", "b"], "district": ["N"]}),
        "one label for each cell",
    ),
    "levels that cross": (
        lambda: Names(
            (
                Level("a", ("1", "2", "3"), (0, 1, 2)),
                Level("b", ("x", "y"), (0, 2)),
                Level("c", ("p", "q"), (0, 1)),
            )
        ),
        "'c' cuts through labels of 'b'",
    ),
    "a blank": (lambda: Names.of({"tract": [" "]}), "a printable text"),
    "a control character": (lambda: Names.of({"tract": ["a\x1b[31m"]}), "a printable text"),
    "a long label": (lambda: Names.of({"tract": ["x" * 201]}), "at most 200 characters"),
    "the rest in the middle": (
        lambda: Names((Level("a", ("r", "b"), (0, 1)),), rest="r"),
        "the rest must be the last label",
    ),
    "too few outlines": (
        lambda: Names.of({"tract": ["a", "b"]}, outlines=Outlines((b"",))),
        "one outline for each",
    ),
    "a column too short": (lambda: Outlines((b"",), (("mayor", ()),)), "'mayor'"),
    "no names": (lambda: Names.of({"tract": []}), "between 1 and"),
    "starts that go down": (lambda: Level("a", ("x", "y"), (0, 0)), "must go up"),
    "another number of cells": (lambda: Axis("kind", 0, 3, 3, KINDS), "Axis.named"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_no_names_are(name: str) -> None:
    make, says = WRONG[name]
    with pytest.raises(InputError, match=says):
        make()


def test_a_map_has_room_for_its_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """A header that could not be written would show only after the charge."""
    monkeypatch.setattr("htf.frame.domain.LONGEST_NAMES", 300)
    long = Names.of({"kind": ["a" * 150, "b" * 150]})
    with pytest.raises(InputError, match="more than 300 bytes"):
        Domain((Axis.named("kind", long),))
    assert names_module.LONGEST_NAMES < 2**22


def test_a_map_of_names() -> None:
    kind = Axis.named("kind", KINDS)
    domain = Domain((kind, Axis("hour", 0, 24, 24)))
    assert not domain.has_map
    assert domain.outlined == ()
    assert Domain.from_dict(domain.to_dict()) == domain
    assert kind.to_cells(np.array([1.0])).tolist() == [1.0]
    on_map = Domain((Axis("x", 0, 1, 2), Axis("y", 0, 1, 2), kind), "EPSG:4326")
    assert on_map.has_map
