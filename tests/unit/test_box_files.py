"""Files of boxes as people have them: separators, byte order marks, names, and mistakes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htf import Domain, InputError
from htf.query.box_files import read_box_file
from telling import examples

DOMAIN = Domain.from_bounds(0, 50, 10, 60, 32)
ROW = [1.5, 52.0, 2.25, 53.0]
PLAIN = "name,west,south,east,north\nÖst,1.5,52,2.25,53\n"


def read(folder: Path, data: str | bytes) -> tuple[list[list[float]], dict[str, list[Any]]]:
    path = folder / "boxes.csv"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    found = read_box_file(path, DOMAIN, {})
    return found.rows.tolist(), {name: column.to_pylist() for name, column in found.given().items()}


@pytest.mark.parametrize(
    "data",
    [
        PLAIN,
        b"\xef\xbb\xbf" + PLAIN.encode(),
        PLAIN.replace(",", ";"),
        PLAIN.replace(",", ";").replace(".", ","),  # as spreadsheets write it where decimals are commas
        b"\xef\xbb\xbf" + PLAIN.replace(",", "\t").replace(".", ",").encode(),
        PLAIN.replace(",", "|"),
        PLAIN.replace("\n", "\r\n"),
        PLAIN.replace(",", " , "),
        '"name","west","south","east","north"\n"Öst","1.5","52","2.25","53"\n\n',
    ],
    ids=["plain", "mark", "semicolons", "decimal commas", "tabs", "bars", "windows", "blanks", "quoted"],
)  # fmt: skip
def test_the_same_boxes_however_they_are_written(tmp_path: Path, data: str | bytes) -> None:
    rows, given = read(tmp_path, data)
    assert rows == [ROW]
    assert [name.strip() for name in given["name"]] == ["Öst"]


def test_other_columns_are_kept_as_they_were_written(tmp_path: Path) -> None:
    rows, found = read(
        tmp_path,
        "id,code,share,when,odd,some,west,south,east,north,note,\n"
        '7,00123,0.5,2020-01-01,nan,4,1,51,2,52,"a, ""b""\nc",x\n'
        "8,00045,12.25,true,1.50,,1,51,2,52,,y\n",
    )
    assert len(rows) == 2
    assert found == {
        "id": [7, 8],
        "code": ["00123", "00045"],
        "share": [0.5, 12.25],
        "when": ["2020-01-01", "true"],
        "odd": ["nan", "1.50"],
        "some": [4, None],
        "note": ['a, "b"\nc', ""],
        "column 12": ["x", "y"],
    }


texts = st.text(st.characters(exclude_characters='\r\n"', exclude_categories=["Cs"]), max_size=8)


@examples(150)
@given(st.lists(texts | st.integers().map(str) | st.floats().map(str), min_size=1, max_size=5))
def test_nothing_is_lost(tmp_path_factory: pytest.TempPathFactory, names: list[str]) -> None:
    """Whatever a column holds, writing it again gives the same text."""
    quoted = "".join(f'"{name}",1,51,2,52\n' for name in names)
    folder = tmp_path_factory.mktemp("boxes")
    _, given = read(folder, "name,west,south,east,north\n" + quoted)
    for kept, name in zip(given["name"], names, strict=True):
        again = "" if kept is None else str(kept)
        assert again == name or (isinstance(kept, float) and kept == float(name))


MISTAKES = {
    "no file": (None, "there is no file"),
    "empty": (b"", "must have the columns west, south, east, north; west, south, east, north is missing"),
    "no edges": (b"a,b\n1,2\n", "west, south, east, north is missing"),
    "some edges": (b"west;south;east\n1;2;3\n", "north is missing"),
    "Latin-1": (PLAIN.encode("latin-1"), "line 2 is not UTF-8. Save it as CSV in UTF-8"),
    "Latin-1 header": ("größe,west,south,east,north\n".encode("latin-1"), "line 1 is not UTF-8"),
    "UTF-16": (PLAIN.encode("utf-16"), "line 1 is not UTF-8"),
    "decimal commas": (b"west,south,east,north\n1,5,51,2,52\n", "cannot read boxes"),
    "quoted commas": (b'west,south,east,north\n"1,5",51,2,52\n', "numbers in the column west, got '1,5' in row 0"),
    "a word": (b"west,south,east,north\n1,51,2,52\n1,51,two,52\n", "numbers in the column east, got 'two' in row 1"),
    "missing": (b"west,south,east,north\n1,,2,52\n", "numbers in the column south, got '' in row 0"),
    "underscores": (b"west,south,east,north\n1_0,51,2,52\n", "numbers in the column west, got '1_0'"),
    "two names": (b"a,west,south,east,north,a\n1,1,51,2,52,3\n", "has two columns 'a': rename one"),
    "two edges": (b"west,west,south,east,north\n1,1,51,2,52\n", "has two columns 'west'"),
    "ragged": (b"west,south,east,north\n1,51,2\n", "cannot read boxes"),
}  # fmt: skip


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes_are_named(tmp_path: Path, case: str) -> None:
    data, says = MISTAKES[case]
    path = tmp_path / "boxes.csv"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(InputError) as error:
        read_box_file(path, DOMAIN, {})
    assert says in str(error.value)


def test_a_header_alone_is_no_box(tmp_path: Path) -> None:
    rows, given = read(tmp_path, "west,south,east,north,name\n")
    assert rows == []
    assert given == {"name": []}
