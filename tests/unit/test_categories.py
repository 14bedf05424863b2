"""Axes of names from a public list."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from htf import Axis, Domain, InputError, Names, read_points
from htf.ingest.layers import read_category
from support import counted


def labels(axis: Axis, level: int = 0) -> tuple[str, ...]:
    assert axis.names is not None
    return axis.names.levels[level].labels


def test_lists(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("\ufeffTheft\n\n  Assault \nRob, ery\n", encoding="utf-8")
    assert labels(read_category("offence", str(tmp_path / "list.txt"))) == (
        "Theft",
        "Assault",
        "Rob, ery",
    )
    assert labels(read_category("offence", "Theft, Assault", "other")) == (
        "Theft",
        "Assault",
        "other",
    )
    (tmp_path / "list.csv").write_text(
        'offence,group\nTheft,goods\nAssault,people\n"Fire, arson",goods\n'
    )
    axis = read_category("kind", str(tmp_path / "list.csv"), "other")
    assert labels(axis) == ("Theft", "Fire, arson", "Assault", "other")
    assert labels(axis, 1) == ("goods", "people", "other")
    assert axis.name == "kind"


REFUSED: dict[str, tuple[str, str]] = {
    "empty.txt": ("\n \n", "the list of 'kind' is empty"),
    "empty.csv": ("", "must have a first line"),
    "header.csv": ("a,b\n", "the list of 'kind' is empty"),
    "ragged.csv": ("a,b\n1\n", "as many names on every line"),
    "twice.csv": ("a,a\n1,2\n", "names a level twice"),
    "crossed.csv": ("a,b,c\n1,x,p\n2,x,q\n", "levels must nest, but b 'x' lies in two of c: 'p' and 'q'"),
    "twins.txt": ("one\none\n", "'one' stands twice"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_lists_that_are_refused(name: str, tmp_path: Path) -> None:
    text, words = REFUSED[name]
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=words):
        read_category("kind", str(tmp_path / name))


def test_files_that_are_not_there_or_no_text(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no file"):
        read_category("kind", str(tmp_path / "list.txt"))
    (tmp_path / "list.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="is it text in UTF-8"):
        read_category("kind", str(tmp_path / "list.txt"))


KINDS = ["tram", "bus", "Bus"]
TEXTS = ["tram", "bus", "BUS", " bus", "", None, "other", "bus"]


@pytest.mark.parametrize("by_function", [False, True])
@pytest.mark.parametrize("rest", [None, "other"])
def test_texts_are_compared_letter_by_letter(
    rest: str | None, by_function: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Missing texts are in no cell, not even in that of all others."""
    if by_function:
        monkeypatch.setattr("htf.ingest.rows.MOST_COMPARED", 1)
    domain = Domain((Axis.named("kind", Names.of({"kind": KINDS}, rest=rest)),))
    wanted = {(0,): 1, (1,): 2} | ({} if rest is None else {(3,): 3})
    assert counted(read_points(pa.table({"kind": TEXTS}), domain)) == wanted


def test_text_files_have_no_spaces_around_fields(tmp_path: Path) -> None:
    path = tmp_path / "trips.csv"
    path.write_text("kind,n\ntram,1\n bus ,2\nBus,3\n,4\nferry,5\n")
    domain = Domain((Axis.named("kind", Names.of({"kind": KINDS})), Axis("n", 0, 10, 1)))
    assert counted(read_points(path, domain)) == {(0, 0): 1, (1, 0): 1, (2, 0): 1}


@pytest.mark.parametrize("kind", [pa.int32(), pa.int64(), pa.uint8()])
def test_whole_numbers_are_names_too(kind: Any) -> None:
    domain = Domain((Axis.named("code", Names.of({"code": ["7", "12"]})),))
    table = pa.table({"code": pa.array([7, 12, 12, 3, None], kind)})
    assert counted(read_points(table, domain)) == {(0,): 1, (1,): 2}


def test_other_columns_are_refused() -> None:
    domain = Domain((Axis.named("code", Names.of({"code": ["7"]})),))
    with pytest.raises(InputError, match="column 'code' must hold names, as text or whole numbers"):
        read_points({"code": [7.0]}, domain)


@pytest.mark.parametrize("one", TEXTS)
@pytest.mark.parametrize("by_function", [False, True])
def test_one_record_more_changes_one_cell_by_one(
    one: str | None, by_function: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if by_function:
        monkeypatch.setattr("htf.ingest.rows.MOST_COMPARED", 1)
    domain = Domain((Axis.named("kind", Names.of({"kind": KINDS}, rest="other")),))
    without = counted(read_points(pa.table({"kind": ["tram", "x"]}), domain))
    added = counted(read_points(pa.table({"kind": ["tram", one, "x"]}), domain))
    changes = {cell: added[cell] - without.get(cell, 0) for cell in added}
    assert sorted(changes.values())[-1] == (1 if one else 0)
    assert sum(changes.values()) == (1 if one else 0)
